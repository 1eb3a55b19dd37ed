//! `eth_call`: token metadata, one by one or many at once (mds1/multicall3).

use serde_json::Value;

use crate::demo::mix;
use crate::demo::rpc::DemoError;

use super::coins::Coin;
use super::desk::{CallResult, Desk};
use super::hash::{Account, Word};
use super::model::EvmModel;
use super::places::MULTICALL3;
use super::tx::Arg;
use super::wire;

const WORD: usize = 32;
/// Calls in one call of the contract.
const CALLS_MAX: usize = 1_000;

pub(super) fn call(desk: &Desk<'_>) -> CallResult {
    let wrong = || DemoError::invalid("invalid argument 0: cannot read the call");
    let query = desk.params.first().ok_or_else(wrong)?;
    let text = |name: &str| query.get(name).and_then(Value::as_str);
    let to: Account = text("to").and_then(wire::bytes).ok_or_else(wrong)?;
    let data = text("data").or(text("input")).unwrap_or("0x");
    let data = hex::decode(data.trim_start_matches("0x")).map_err(|_| wrong())?;
    let given =
        if to == MULTICALL3 { aggregate(desk.model, &data) } else { one(desk.model, &to, &data) };
    let data = given.ok_or_else(|| DemoError::new(3, "execution reverted"))?;
    Ok(wire::hex(&data).into())
}

/// The return data of a contract; `None` where it reverts.
pub(super) fn one(model: &EvmModel, to: &Account, data: &[u8]) -> Option<Vec<u8>> {
    let places = model.places();
    let is = |text| data.first_chunk::<4>() == Some(&places.signatures.selector(text));
    if places.is_reference(to) {
        let (wrapped, dollar) = (places.wrapped, places.dollar.token);
        let (first, second) = (wrapped.min(dollar), wrapped.max(dollar));
        let token = if is("token0()") { Some(first) } else { is("token1()").then_some(second) };
        return token.map(|token| Arg::Of(token).word().to_vec());
    }
    let Some(coin) = Coin::of(places, to) else {
        // A call of an account without code succeeds with no data.
        return model.wallet(to).map(|_| Vec::new());
    };
    if is("symbol()") || is("name()") {
        let symbol = coin.symbol(places);
        let short = mix::joined::<WORD>(&[symbol.as_bytes()]).to_vec();
        let string = [word(WORD), bytes(symbol.as_bytes())].concat();
        return Some(if coin.has_short_symbol() { short } else { string });
    }
    is("decimals()").then(|| Arg::Int(coin.decimals(places).into()).word().to_vec())
}

fn word(value: usize) -> Vec<u8> {
    Arg::Int(u128::try_from(value).unwrap_or(0)).word().to_vec()
}

fn bytes(data: &[u8]) -> Vec<u8> {
    let mut all = [&word(data.len()), data].concat();
    all.resize(all.len().next_multiple_of(WORD), 0);
    all
}

/// `aggregate3((target, allowFailure, callData)[])`, which returns `(success, returnData)[]`.
fn aggregate(model: &EvmModel, data: &[u8]) -> Option<Vec<u8>> {
    let (asked, data) = data.split_first_chunk::<4>()?;
    let known = "aggregate3((address,bool,bytes)[])";
    if *asked != model.places().signatures.selector(known) {
        return None;
    }
    let list = data.get(number(data, 0)?..)?;
    let count = number(list, 0)?;
    let entries = list.get(WORD..)?;
    if count > CALLS_MAX {
        return None;
    }
    let mut results = Vec::new();
    for at in 0..count {
        let entry = entries.get(number(entries, at * WORD)?..)?;
        let target: Account = *entry.get(12..)?.first_chunk()?;
        let may_fail = number(entry, WORD)? != 0;
        let call = entry.get(number(entry, 2 * WORD)?..)?;
        let call = call.get(WORD..)?.get(..number(call, 0)?)?;
        let given = one(model, &target, call);
        if given.is_none() && !may_fail {
            return None;
        }
        let succeeded = usize::from(given.is_some());
        let data = bytes(&given.unwrap_or_default());
        results.push([word(succeeded), word(2 * WORD), data].concat());
    }
    let mut out = [word(WORD), word(count)].concat();
    let mut offset = count * WORD;
    for result in &results {
        out.extend(word(offset));
        offset += result.len();
    }
    out.extend(results.concat());
    Some(out)
}

fn number(data: &[u8], at: usize) -> Option<usize> {
    let word: &Word = data.get(at..)?.first_chunk()?;
    let (zeros, tail) = word.split_first_chunk::<24>()?;
    (zeros == &[0; 24]).then_some(())?;
    usize::try_from(u64::from_be_bytes(*tail.first_chunk()?)).ok()
}
