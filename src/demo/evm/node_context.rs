//! The answers about blocks, transactions, state and contracts: token metadata, one by one or many
//! at once (mds1/multicall3).

use serde_json::Value;

use super::coins::Coin;
use super::model::{EvmModel, PlacedTx};
use super::options::NodeOptions;
use super::places::MULTICALL3;
use super::tx::Arg;
use super::wire;
use crate::demo::faults::AnswerFaults;
use crate::demo::mix;
use crate::demo::rpc::DemoError;
use crate::domain::{Account, Height, Word};

/// The context in which a node answers one call.
pub(super) struct NodeContext<'a> {
    pub(super) model: &'a EvmModel,
    pub(super) node: &'a NodeOptions,
    pub(super) params: &'a [Value],
    pub(super) newest: Height,
    pub(super) finalized: Height,
    pub(super) answer_faults: AnswerFaults,
}

pub(super) type CallResult = Result<Value, DemoError>;

impl NodeContext<'_> {
    pub(super) fn chain_id(&self) -> u64 {
        self.node.chain_id.unwrap_or(self.model.chain_id())
    }

    /// The block that a parameter selects.
    pub(super) fn height(&self, value: Option<&Value>) -> Result<Height, DemoError> {
        let text = value.and_then(Value::as_str).unwrap_or("latest");
        match text {
            "latest" | "pending" => Ok(self.newest),
            "finalized" | "safe" if !self.node.tags => {
                Err(DemoError::invalid(format!("invalid argument 0: unknown tag \"{text}\"")))
            }
            "finalized" => Ok(self.finalized),
            "safe" => Ok(self.finalized.midpoint(self.newest)),
            digits => quantity(digits).ok_or_else(|| {
                DemoError::invalid("invalid argument 0: hex string without 0x prefix")
            }),
        }
    }

    pub(super) fn block(&self) -> CallResult {
        let height = self.height(self.params.first())?;
        let known = self.has_block(height);
        let whole = self.params.get(1).and_then(Value::as_bool).unwrap_or(false);
        Ok(if known { wire::block(self.model, height, whole) } else { Value::Null })
    }

    pub(super) fn find_transaction(&self) -> Result<Option<PlacedTx>, DemoError> {
        let wrong = || DemoError::invalid("invalid argument 0: hex string has a wrong length");
        let hash = self.params.first().and_then(Value::as_str).and_then(wire::bytes);
        let found = self.model.find(&hash.ok_or_else(wrong)?);
        let known = self.node.first_available.max(self.node.hashes_from)..=self.newest;
        Ok(found.filter(|found| known.contains(&found.spot.height)))
    }

    fn has_block(&self, height: Height) -> bool {
        (self.node.first_available..=self.newest).contains(&height)
    }

    pub(super) fn transaction_by_index(&self) -> CallResult {
        let height = self.height(self.params.first())?;
        let index = self.params.get(1).and_then(Value::as_str).and_then(quantity);
        let mut all = wire::found_in(self.model, height).into_iter();
        let found = all.find(|found| Some(u64::from(found.spot.index)) == index);
        let found = found.filter(|_| self.has_block(height));
        Ok(found.map_or(Value::Null, |found| wire::transaction(self.model, &found)))
    }

    pub(super) fn block_receipts(&self) -> CallResult {
        let height = self.height(self.params.first())?;
        if !self.has_block(height) {
            return Ok(Value::Null);
        }
        let receipt = |found: &PlacedTx| wire::receipt(self.model, found, self.node.log_times);
        Ok(wire::found_in(self.model, height).iter().map(receipt).collect())
    }

    pub(super) fn trace(&self) -> CallResult {
        let tracer = self.params.get(1).and_then(|options| options.get("tracer"));
        if tracer.and_then(Value::as_str) != Some("callTracer") {
            return Err(DemoError::invalid("only the callTracer is offered"));
        }
        let Some(found) = self.find_transaction()? else {
            return Err(DemoError::new(-32000, "transaction not found"));
        };
        self.check_state(found.spot.height)?;
        Ok(wire::call_trace(&found.tx.call))
    }

    fn check_state(&self, height: Height) -> Result<(), DemoError> {
        let kept = self.node.state_blocks.is_none_or(|blocks| height + blocks >= self.newest);
        if kept {
            return Ok(());
        }
        let root = wire::hex(&self.model.block_hash(height));
        let text = format!("missing trie node {root} (path ) state is not available");
        Err(DemoError::new(-32000, text))
    }

    fn account(&self) -> Option<Account> {
        self.params.first().and_then(Value::as_str).and_then(wire::bytes)
    }

    pub(super) fn state(&self, method: &str) -> CallResult {
        let wrong = || DemoError::invalid("invalid argument 0: not an address");
        let account = self.account().ok_or_else(wrong)?;
        let height = self.height(self.params.get(1))?;
        if height > self.newest {
            return Err(DemoError::new(-32000, "header not found"));
        }
        self.check_state(height)?;
        let Some(wallet) = self.model.wallet(&account) else { return Ok("0x0".into()) };
        let holding = self.model.holding(&wallet, height);
        let sent = u128::from(holding.sent + self.node.sent_more);
        Ok(wire::number(if method == "eth_getBalance" { holding.balance } else { sent }).into())
    }

    pub(super) fn code(&self) -> Value {
        let account = self.account();
        let wallet = account.and_then(|account| self.model.wallet(&account));
        if wallet.as_ref().is_some_and(|wallet| wallet.plan.plain) {
            return "0x".into();
        }
        let is_wallet = account.is_none() || wallet.is_some();
        // Wallets send transactions and act as smart accounts too: they delegate (EIP-7702).
        let delegated = "0xef010063c0c19a282a1b52b07dd5a65b58948a07dae32b";
        if is_wallet { delegated } else { "0x6080604052" }.into()
    }
}

pub(super) fn quantity(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

const WORD: usize = 32;
/// Calls in one call of the contract.
const CALLS_MAX: usize = 1_000;

/// `eth_call`.
pub(super) fn call(context: &NodeContext<'_>) -> CallResult {
    let wrong = || DemoError::invalid("invalid argument 0: cannot read the call");
    let query = context.params.first().ok_or_else(wrong)?;
    let text = |name: &str| query.get(name).and_then(Value::as_str);
    let to: Account = text("to").and_then(wire::bytes).ok_or_else(wrong)?;
    let data = text("data").or(text("input")).unwrap_or("0x");
    let data = hex::decode(data.trim_start_matches("0x")).map_err(|_| wrong())?;
    let returned = if to == MULTICALL3 {
        aggregate(context.model, &data)
    } else {
        return_data(context.model, &to, &data)
    };
    let data = returned.ok_or_else(|| DemoError::new(3, "execution reverted"))?;
    Ok(wire::hex(&data).into())
}

/// The return data of a contract; `None` where it reverts.
pub(super) fn return_data(model: &EvmModel, to: &Account, data: &[u8]) -> Option<Vec<u8>> {
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
        // Early tokens return 32 bytes instead of a string.
        let is_early = matches!(coin, Coin::Plain(number) if number % 8 == 2);
        return Some(if is_early { short } else { string });
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
    let (selector, data) = data.split_first_chunk::<4>()?;
    let known = "aggregate3((address,bool,bytes)[])";
    if *selector != model.places().signatures.selector(known) {
        return None;
    }
    let list = data.get(word_at(data, 0)?..)?;
    let count = word_at(list, 0)?;
    let entries = list.get(WORD..)?;
    if count > CALLS_MAX {
        return None;
    }
    let mut results = Vec::new();
    for at in 0..count {
        let entry = entries.get(word_at(entries, at * WORD)?..)?;
        let target: Account = *entry.get(12..)?.first_chunk()?;
        let may_fail = word_at(entry, WORD)? != 0;
        let call = entry.get(word_at(entry, 2 * WORD)?..)?;
        let call = call.get(WORD..)?.get(..word_at(call, 0)?)?;
        let given = return_data(model, &target, call);
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

fn word_at(data: &[u8], at: usize) -> Option<usize> {
    let word: &Word = data.get(at..)?.first_chunk()?;
    let (zeros, tail) = word.split_first_chunk::<24>()?;
    (zeros == &[0; 24]).then_some(())?;
    usize::try_from(u64::from_be_bytes(*tail.first_chunk()?)).ok()
}
