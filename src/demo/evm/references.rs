//! Reference pools: somebody swaps the native coin for dollars in each of them every few blocks, at
//! the price of the time. What wallets swap there is not told by them.

use crate::demo::mix::{self, Dice};
use crate::domain::{Height, Units};

use super::logs::Filter;
use super::places::{Account, Made, Places};
use super::tx::{Arg, Gas, Stage, Tx};

/// A pool's state is within as many millionths of the price: what its fee lets stand.
const BAND: u64 = 400;
/// One in so many milliseconds of blocks holds a swap.
const EVERY_MILLIS: u64 = 12_000;
/// Dollars on a pool's dollar side.
const DEPTH: u128 = 4_000_000;
/// Places of such swaps in their blocks begin here.
pub(super) const INDEX: u32 = 300;
const WEI: u128 = 1_000_000_000_000_000_000;

/// A pool of the wrapped coin and the dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) pool: Account,
    /// A pair that tells its reserves, not a pool that tells the root of its price.
    pub(super) is_pair: bool,
}

impl Reference {
    /// The pools that a filter is about, where it is about nothing else.
    pub(super) fn named(places: &Places, filter: &Filter) -> Option<Vec<(u32, Self)>> {
        let addresses = filter.addresses.as_ref()?;
        let of =
            |address: &Account| (0..).zip(&places.references).find(|(_, one)| one.pool == *address);
        addresses.iter().map(of).map(|one| one.map(|(at, one)| (at, *one))).collect()
    }

    /// What somebody swapped in the pool in a block, if anybody did.
    pub(super) fn swap(&self, places: &Places, at: u32, height: Height) -> Option<Tx> {
        let number = mix::digest(places.seed, &self.pool);
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
        let mut stage = Stage::new(places, who, self.pool, 0);
        stage.input("swap(address,bool,int256,uint160,bytes)", &[Arg::Of(who), Arg::Int(dollars)]);
        let first = places.wrapped < places.dollar.token;
        if self.is_pair {
            pair(&mut stage, price, first);
        } else {
            pool(&mut stage, (who, price), (native, dollars, buys), first);
        }
        let gas = Gas { used: 130_000 + u64::from(at), ..Gas::default() };
        Some(stage.end(gas))
    }
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
    let (above, below) = (per_coin, Units::from(WEI));
    let (above, below) = if native_first { (above, below) } else { (below, above) };
    // The square root with 96 binary places, by way of one with 64 and one with 32.
    let root: Units = (above << 128) / below;
    let root = root.root(2) << 32;
    // As much as makes the dollar side as deep: liquidity is the side times the root, or through it.
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
    stage.log(
        "Swap(address,address,int256,int256,uint160,uint128,int24)",
        &[Arg::Of(who), Arg::Of(who)],
        &[first, second, raw(root), raw(liquidity), Arg::Int(0)],
    );
}
