//! Reference pools: other users swap native coin for dollars there every few blocks.

use super::places::{Made, Reference, TxPlaces};
use super::pools::SWAP_V3;
use super::tx::{Arg, Gas, LogFilter, Stage, Tx};
use crate::demo::mix::{self, Dice};
use crate::domain::{Account, Height, Units, Word};

/// A pool's state is within so many millionths of the price: the margin that its fee leaves.
const BAND: u64 = 400;
/// There is a swap each time this many milliseconds of blocks have passed.
const EVERY_MILLIS: u64 = 12_000;
/// Dollars on a pool's dollar side.
const DEPTH: u128 = 4_000_000;
/// Positions of these swaps in their blocks begin here.
pub(super) const INDEX: u32 = 300;

/// Whether a filter concerns such pools and nothing else.
pub(super) fn are_all(places: &TxPlaces, filter: &LogFilter) -> bool {
    let all_are = |all: &Vec<Account>| all.iter().all(|address| places.is_reference(address));
    filter.addresses.as_ref().is_some_and(all_are)
}

/// The pools whose swaps may match a filter: those that it names, or whose token's events it
/// selects. A filter without addresses concerns wallets alone.
pub(super) fn touched(places: &TxPlaces, filter: &LogFilter) -> Vec<(u32, Reference)> {
    let named: Vec<&Vec<Word>> = filter.topics.iter().skip(1).flatten().collect();
    if named.is_empty() && filter.addresses.is_none() {
        return Vec::new();
    }
    let emits = |pool: &Account| {
        let [wrapped, dollar] = [&places.wrapped, &places.dollar.token];
        let fits = |any: &Vec<Account>| [pool, wrapped, dollar].iter().any(|a| any.contains(a));
        filter.addresses.as_ref().is_none_or(fits)
    };
    let is_named = |pool: &Account| {
        let word = Arg::Of(*pool).word();
        named.is_empty() || named.iter().any(|words| words.contains(&word))
    };
    let all = (0..).zip(places.references.iter().copied());
    all.filter(|(_, one)| emits(&one.pool) && is_named(&one.pool)).collect()
}

/// Whether other users use an account all the time.
pub(super) fn is_busy(places: &TxPlaces, account: &Account) -> bool {
    [places.wrapped, places.dollar.token].contains(account) || places.is_reference(account)
}

/// The swap in the pool in a block, if there is one.
pub(super) fn swap(
    reference: &Reference,
    places: &TxPlaces,
    at: u32,
    height: Height,
) -> Option<Tx> {
    let number = mix::digest(places.seed, &reference.pool);
    let mut dice = Dice::new(number, &[height, 17]);
    let every = (EVERY_MILLIS / places.block_millis()).max(1);
    if !dice.next().is_multiple_of(every) {
        return None;
    }
    let offset = dice.range(0, 2 * BAND);
    let price = places.price(height) / 1_000_000 * u128::from(1_000_000 - BAND + offset);
    let dollars = u128::from(dice.range(100, 40_000)) * places.dollar_unit();
    let native = places.wei(dollars, price);
    let buys = dice.percent(50);
    let who = places.made(Made::Stranger, dice.range(0, 500));
    let mut stage = Stage::new(places, who, reference.pool, 0);
    stage.input("swap(address,bool,int256,uint160,bytes)", &[Arg::Of(who), Arg::Int(dollars)]);
    let (dollar_sum, native_sum) = ((places.dollar.token, dollars), (places.wrapped, native));
    let (paid, got) = if buys { (dollar_sum, native_sum) } else { (native_sum, dollar_sum) };
    stage.pull(paid.0, who, reference.pool, paid.1);
    stage.transfer(got.0, who, got.1);
    let first = places.wrapped < places.dollar.token;
    if reference.is_pair {
        pair(&mut stage, price, first);
    } else {
        pool(&mut stage, (who, price), (native, dollars, buys), first);
    }
    let gas = Gas { used: 130_000 + u64::from(at), ..Gas::default() };
    Some(stage.end(gas))
}

/// Reserves at the price, then the swap.
fn pair(stage: &mut Stage<'_>, price: u128, native_first: bool) {
    let dollars = DEPTH * stage.places.dollar_unit();
    let native = stage.places.wei(dollars, price);
    let (native, dollars) = (Arg::Int(native), Arg::Int(dollars));
    let reserves = if native_first { [native, dollars] } else { [dollars, native] };
    stage.log("Sync(uint112,uint112)", &[], &reserves);
}

fn pool(
    stage: &mut Stage<'_>,
    (who, price): (Account, u128),
    (native, dollars, buys): (u128, u128, bool),
    native_first: bool,
) {
    // Base units of the dollar for a whole coin.
    let unit = stage.places.dollar_unit();
    let per_coin = Units::from(price) * Units::from(unit) / Units::from(1_000_000_000_000_u64);
    let (above, below) = (per_coin, Units::from(stage.places.milli * 1_000));
    let (above, below) = if native_first { (above, below) } else { (below, above) };
    // The square root with 96 binary places, computed from one with 64 and one with 32.
    let root: Units = (above << 128) / below;
    let root = root.root(2) << 32;
    // The liquidity for the depth of the dollar side: the side times the root, or divided by it.
    let depth = Units::from(DEPTH * unit);
    let one = Units::ONE << 96;
    let liquidity = if native_first { depth * one / root } else { depth * root / one };
    let (native, dollars) = if buys {
        (Arg::Minus(native), Arg::Int(dollars))
    } else {
        (Arg::Int(native), Arg::Minus(dollars))
    };
    let [first, second] = if native_first { [native, dollars] } else { [dollars, native] };
    let raw = |number: Units| Arg::Raw(number.to_be_bytes());
    let data = [first, second, raw(root), raw(liquidity), Arg::Int(0)];
    stage.log(SWAP_V3, &[Arg::Of(who); 2], &data);
}
