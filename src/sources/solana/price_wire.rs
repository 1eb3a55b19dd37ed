//! Pure: the changes that a block's transactions made to the vaults of reference pools, and the
//! price that follows.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::pubkey;
use crate::domain::{Height, Price};

/// The two accounts of a pool of wrapped SOL and a stablecoin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vaults {
    pub(super) native: [u8; 32],
    pub(super) stable: [u8; 32],
    /// The part of the input that the pool keeps, in millionths.
    pub(super) fee: u32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Mints {
    pub(super) native: [u8; 32],
    pub(super) stables: Vec<[u8; 32]>,
}

/// Swaps below this many whole dollars are ignored: fees and rounding are large relative to them.
const DOLLARS_MIN: u128 = 20;
/// Percentage by which a swap may differ from the median of its block.
const SPREAD_PERCENT: u128 = 2;
const MILLION: u128 = 1_000_000;
/// The most slots between a block and its parent: more are not skipped in a row.
const SKIPPED_MAX: u64 = 1_000;
/// Tokens with more decimals are not expected.
const DECIMALS_MAX: u8 = 24;

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default)]
    transactions: Vec<Tx<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parent {
    parent_slot: Option<Height>,
}

#[derive(Deserialize)]
struct Tx<'a> {
    #[serde(borrow)]
    transaction: Accounts<'a>,
    #[serde(borrow)]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Accounts<'a> {
    #[serde(borrow)]
    account_keys: Vec<Key<'a>>,
}

#[derive(Deserialize)]
struct Key<'a> {
    #[serde(borrow)]
    pubkey: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    #[serde(borrow)]
    err: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pre_token_balances: Option<Vec<Balance<'a>>>,
    #[serde(borrow, default)]
    post_token_balances: Option<Vec<Balance<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Balance<'a> {
    account_index: usize,
    #[serde(borrow)]
    mint: Cow<'a, str>,
    #[serde(borrow)]
    ui_token_amount: Amount<'a>,
}

#[derive(Deserialize)]
struct Amount<'a> {
    #[serde(borrow)]
    amount: Cow<'a, str>,
    decimals: u8,
}

#[derive(Debug, Clone, Copy)]
struct Swap {
    price: Price,
    /// Base units of the stablecoin.
    dollars: u128,
}

/// Whether a block may be that of a slot, by its parent's: a block does not name its own slot, and
/// a cache may give another one, whose price is another.
pub(super) fn may_be_of(raw: &RawValue, slot: Height) -> bool {
    let parent = serde_json::from_str(raw.get()).ok().and_then(|block: Parent| block.parent_slot);
    parent.is_none_or(|parent| (slot.saturating_sub(SKIPPED_MAX)..slot).contains(&parent))
}

/// The price in a block (`getBlock` with the accounts of its transactions), from all swaps in all
/// reference pools together. `Ok(None)` where there was none; `Err` where the answer is not such a
/// block.
pub(super) fn price(raw: &RawValue, pools: &[Vaults], mints: &Mints) -> Result<Option<Price>, ()> {
    // serde would read an array as the fields of a block in their order.
    if raw.get().starts_with('[') {
        return Err(());
    }
    let block: Option<Block<'_>> = serde_json::from_str(raw.get()).map_err(|_| ())?;
    let Some(block) = block else { return Ok(None) };
    let swaps: Vec<Swap> =
        block.transactions.iter().flat_map(|tx| swaps(tx, pools, mints)).collect();
    Ok(of_swaps(swaps))
}

fn of_swaps(mut swaps: Vec<Swap>) -> Option<Price> {
    swaps.sort_by_key(|swap| swap.price);
    let half = swaps.iter().map(|swap| swap.dollars).sum::<u128>().div_ceil(2);
    let mut below = 0;
    let middle = swaps.iter().find(|swap| {
        below += swap.dollars;
        below >= half
    })?;
    let limit = middle.price.0 / 100 * SPREAD_PERCENT;
    let kept = swaps.iter().filter(|swap| swap.price.0.abs_diff(middle.price.0) <= limit);
    let (mut worth, mut dollars) = (0_u128, 0_u128);
    for swap in kept {
        worth = worth.checked_add(swap.price.0.checked_mul(swap.dollars)?)?;
        dollars += swap.dollars;
    }
    worth.checked_div(dollars).map(Price)
}

fn swaps<'a>(
    tx: &'a Tx<'_>,
    pools: &'a [Vaults],
    mints: &'a Mints,
) -> impl Iterator<Item = Swap> + use<'a> {
    let meta = tx.meta.as_ref().filter(|meta| meta.err.is_none_or(|err| err.get() == "null"));
    let of = move |pool: &'a Vaults| {
        let (native, stable) = (place(tx, &pool.native)?, place(tx, &pool.stable)?);
        let is_stable = |mint: &[u8; 32]| mints.stables.contains(mint);
        let native = change(meta?, native, |mint| *mint == mints.native)?;
        let stable = change(meta?, stable, is_stable)?;
        swap(native, stable, pool.fee)
    };
    pools.iter().filter_map(of)
}

fn place(tx: &Tx<'_>, account: &[u8; 32]) -> Option<usize> {
    let is = |key: &Key<'_>| pubkey(&key.pubkey).as_ref() == Some(account);
    tx.transaction.account_keys.iter().position(is)
}

#[derive(Clone, Copy)]
struct Change {
    came: bool,
    amount: u128,
    decimals: u8,
}

fn change(meta: &Meta<'_>, at: usize, fits: impl Fn(&[u8; 32]) -> bool) -> Option<Change> {
    let of = |balances: &Option<Vec<Balance<'_>>>| {
        let balance = balances.as_ref()?.iter().find(|balance| balance.account_index == at)?;
        let amount: u64 = balance.ui_token_amount.amount.parse().ok()?;
        fits(&pubkey(&balance.mint)?).then_some((amount, balance.ui_token_amount.decimals))
    };
    let ((before, decimals), (after, _)) =
        (of(&meta.pre_token_balances)?, of(&meta.post_token_balances)?);
    let amount = u128::from(after.abs_diff(before));
    Some(Change { came: after > before, amount, decimals: decimals.min(DECIMALS_MAX) })
}

/// A swap is where one side came and the other went; the pool's fee is deducted from the side that
/// came.
fn swap(native: Change, stable: Change, fee: u32) -> Option<Swap> {
    let power = |digits: u8| 10_u128.checked_pow(u32::from(digits));
    let unit = power(stable.decimals)?;
    if native.came == stable.came || native.amount == 0 || stable.amount < DOLLARS_MIN * unit {
        return None;
    }
    let rest = MILLION.checked_sub(u128::from(fee))?;
    let scale = power(native.decimals)?.checked_mul(power(Price::DECIMALS)?)? / unit;
    // Both sides are below 2⁶⁴.
    let (above, below) = if stable.came {
        (stable.amount.checked_mul(rest)?, native.amount.checked_mul(MILLION)?)
    } else {
        (stable.amount.checked_mul(MILLION)?, native.amount.checked_mul(rest)?)
    };
    let wide = |number: u128| crate::domain::Units::from(number);
    let price: u128 = (wide(above) * wide(scale) / wide(below)).try_into().ok()?;
    Some(Swap { price: Price(price), dollars: stable.amount })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NATIVE: &str = "So11111111111111111111111111111111111111112";
    const USDC: &str = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
    const VAULTS: [&str; 2] = [
        "EUuUbDcafPrmVTD5M6qoJAoyyNbihBhugADAxRMn5he9",
        "2WLWEuKDgkDUccTpbwYp1GToYktiSB1cXvreHUwiSUVP",
    ];

    /// A transaction by which the vaults change, in base units.
    fn tx(native: (u64, u64), stable: (u64, u64), err: &Value) -> Value {
        let balance = |at: u64, mint: &str, amount: u64, decimals: u8| {
            json!({"accountIndex": at, "mint": mint, "owner": VAULTS[0],
                "uiTokenAmount": {"amount": amount.to_string(), "decimals": decimals}})
        };
        json!({
            "transaction": {"accountKeys": [
                {"pubkey": USDC, "signer": true, "source": "transaction", "writable": true},
                {"pubkey": VAULTS[1]}, {"pubkey": VAULTS[0]},
            ], "signatures": ["1"]},
            "meta": {"err": err,
                "preTokenBalances": [balance(2, NATIVE, native.0, 9), balance(1, USDC, stable.0, 6)],
                "postTokenBalances": [balance(1, USDC, stable.1, 6), balance(2, NATIVE, native.1, 9)]},
            "version": 0,
        })
    }

    fn price_of(txs: &[Value], fee: u32) -> Option<Price> {
        let raw = RawValue::from_string(json!({"transactions": txs}).to_string()).unwrap();
        let key = |text: &str| pubkey(text).unwrap();
        let pools = [Vaults { native: key(VAULTS[0]), stable: key(VAULTS[1]), fee }];
        price(&raw, &pools, &Mints { native: key(NATIVE), stables: vec![key(USDC)] }).unwrap()
    }

    const SOL: u64 = 1_000_000_000;
    const DOLLAR: u64 = 1_000_000;

    fn dollars(cents: u128) -> Price {
        Price(cents * 10_000_000_000)
    }

    #[test]
    fn a_block_of_another_slot_is_noticed_by_its_parent() {
        let is_of =
            |block: &str| may_be_of(&RawValue::from_string(block.to_owned()).unwrap(), 5_000);
        for (parent, expected) in [(4_999, true), (4_000, true), (3_999, false), (5_000, false)] {
            assert_eq!(is_of(&format!(r#"{{"parentSlot":{parent}}}"#)), expected, "{parent}");
        }
        assert!(is_of("{}") && is_of(r#"{"parentSlot":null}"#), "it is not stated");
    }

    #[test]
    fn what_vaults_gave_and_got_is_a_price() {
        // 10 SOL out, 1,500 dollars in; and the other way round.
        let buy = tx((100 * SOL, 90 * SOL), (0, 1_500 * DOLLAR), &Value::Null);
        assert_eq!(price_of(std::slice::from_ref(&buy), 0), Some(dollars(15_000)));
        let sell = tx((90 * SOL, 100 * SOL), (2_000 * DOLLAR, 500 * DOLLAR), &Value::Null);
        assert_eq!(price_of(std::slice::from_ref(&sell), 0), Some(dollars(15_000)));
        // A fee of 1 % of what came in: 1,485 dollars for 10 SOL, 1,500 for 9.9.
        assert_eq!(price_of(&[buy], 10_000), Some(dollars(14_850)));
        assert_eq!(price_of(&[sell], 10_000), Some(Price(151_515_151_515_151)));
    }

    #[test]
    fn what_is_no_swap_says_nothing() {
        let fails =
            tx((100 * SOL, 90 * SOL), (0, 1_500 * DOLLAR), &json!({"InstructionError": [0]}));
        let liquidity = tx((0, 10 * SOL), (0, 1_500 * DOLLAR), &Value::Null);
        let dust = tx((100 * SOL, 100 * SOL - SOL / 10), (0, 15 * DOLLAR), &Value::Null);
        let still = tx((5, 5), (7, 7), &Value::Null);
        assert_eq!(price_of(&[fails, liquidity, dust, still], 0), None);
        assert_eq!(price_of(&[], 0), None);
    }

    #[test]
    fn swaps_count_by_their_size_and_outliers_do_not() {
        let fair = |dollars: u64| tx((1_000 * SOL, 990 * SOL), (0, dollars * DOLLAR), &Value::Null);
        // 1,500 and 1,510 dollars for 10 SOL, each by its own size.
        let expected = (1_500 * 150_000 + 1_510 * 151_000) * 1_000_000_000_u128 / 3_010;
        assert_eq!(price_of(&[fair(1_500), fair(1_510), fair(3_000)], 0), Some(Price(expected)));
    }

    #[test]
    fn any_input_is_read_or_refused() {
        let mints = Mints::default();
        for text in ["null", "{}", "{\"transactions\":[]}"] {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            assert_eq!(price(&raw, &[], &mints), Ok(None), "{text}");
        }
        for text in ["[]", "7", "{\"transactions\":[{}]}"] {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            assert_eq!(price(&raw, &[], &mints), Err(()), "{text}");
        }
    }
}
