//! Pure: the native coin's price from events of reference pools. The same for EVM chains and Tron,
//! whose pools are of the same kind.
//!
//! The price is a pool's state after an event, not the ratio of the exchanged amounts: those
//! contain the fee and the trade's own price impact. Between two events a pool does not change, so
//! the state after the last one is the price at every block until the next, and nothing above a
//! block changes it: a trade at the head has the same value now and later.

use std::collections::{BTreeSet, HashMap};

use crate::decode::evm::{Account, Word};
use crate::domain::{Height, Moment, Price, Units};

/// keccak256 of `Sync(uint112,uint112)`: a pair's reserves (Uniswap/v2-core, `IUniswapV2Pair`).
const SYNC: &str = "0x1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1";
/// keccak256 of `Swap(address,address,int256,int256,uint160,uint128,int24)` (Uniswap/v3-core).
const SWAP_V3: &str = "0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67";
/// The same with two amounts of protocol fees appended (pancakeswap/pancake-v3-contracts).
const SWAP_PANCAKE: &str = "0x19b47279256b2a23a1665c810c8d55a1758940ee09377d4f8d26497a3577dc83";
/// keccak256 of `Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)`
/// (Uniswap/v4-core, `IPoolManager`).
const SWAP_V4: &str = "0x40e9cecb9f5f1f1c5b9c97dec2917b7ee92e57ba5563708daca94dd84ad7112f";
/// First topics of the events that are decoded.
pub(super) const TOPICS: [&str; 4] = [SYNC, SWAP_V3, SWAP_PANCAKE, SWAP_V4];

/// Whole dollars of liquidity on the stablecoin side below which a pool's price is ignored: it is
/// drained, or has no liquidity at its price.
const DEPTH_MIN: u64 = 10_000;
/// Prices above a million dollars are rejected as errors.
const PRICE_MAX: Price = Price(1_000_000_000_000_000_000);
/// Factor by which the search range grows where the first range holds no event.
const WIDER_FACTOR: u64 = 16;
/// Per cent by which a price may differ from the median of its neighbours.
const NEIGHBOUR_PERCENT: u128 = 20;
/// Per cent by which pools may differ from each other.
const POOLS_PERCENT: u128 = 5;

/// Integers for squares of prices with 96 binary places, times powers of ten.
type Wide = ruint::Uint<512, 8>;

/// Inclusive heights.
pub(super) type Range = (Height, Height);

/// The block ranges that determine the prices at some heights: `blocks` below each, adjacent ones
/// merged.
pub(super) fn ranges(heights: &BTreeSet<Height>, blocks: u64) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for &high in heights {
        let low = high.saturating_sub(blocks);
        match ranges.last_mut().filter(|last| low <= last.1.saturating_add(1)) {
            Some(last) => last.1 = high,
            None => ranges.push((low, high)),
        }
    }
    ranges
}

pub(super) fn split((low, high): Range, blocks: u64) -> Vec<Range> {
    let blocks = blocks.max(1);
    let parts = (high - low) / blocks + 1;
    (0..parts)
        .map(|at| low + at * blocks)
        .map(|low| (low, high.min(low.saturating_add(blocks - 1))))
        .collect()
}

/// A pool of the native coin and a stablecoin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReferencePool {
    /// The contract that emits its events.
    pub(super) emitter: Account,
    /// Its id where one contract holds many pools (Uniswap v4).
    pub(super) id: Option<Word>,
    /// The native coin is the pool's first token.
    pub(super) native_first: bool,
    pub(super) native_decimals: u8,
    pub(super) stable_decimals: u8,
}

/// An event of a pool; lists of them are in chain order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PoolEvent {
    pub(super) height: Height,
    pub(super) emitter: Account,
    pub(super) topics: Vec<Word>,
    pub(super) data: Vec<u8>,
}

/// A pool's price after its last event in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PriceAfter {
    height: Height,
    price: Price,
}

/// Heights whose prices are wanted, and the prices found so far.
#[derive(Debug)]
pub(super) struct Search {
    open: BTreeSet<Height>,
    found: HashMap<Height, Price>,
}

impl Search {
    /// Without reference pools there is nothing to search.
    pub(super) fn new(pools: &[ReferencePool], at: &[Moment]) -> Self {
        let wanted = at.iter().filter(|_| !pools.is_empty());
        Self { open: wanted.map(|moment| moment.height).collect(), found: HashMap::new() }
    }

    /// Numbers of blocks to search below each height: the chain's configured number, then more
    /// where those hold no event.
    pub(super) fn search_depths(near: u64) -> [u64; 2] {
        [near, near.saturating_mul(WIDER_FACTOR)]
    }

    pub(super) fn open(&self) -> &BTreeSet<Height> {
        &self.open
    }

    /// Evaluates the events of the `blocks` blocks below each height.
    pub(super) fn read(&mut self, pools: &[ReferencePool], events: &[PoolEvent], blocks: u64) {
        let found = &mut self.found;
        self.open.retain(|height| {
            match price_between(pools, events, height.saturating_sub(blocks), *height) {
                PoolPrice::Price(price) => found.insert(*height, price).is_some(),
                PoolPrice::Disagree => false,
                PoolPrice::Nothing => true,
            }
        });
    }

    pub(super) fn prices(&self, at: &[Moment]) -> Vec<Option<Price>> {
        at.iter().map(|moment| self.found.get(&moment.height).copied()).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PoolPrice {
    Price(Price),
    /// No event in the range: the search range must grow.
    Nothing,
    /// The pools' prices contradict each other.
    Disagree,
}

/// The price at height `at`, by the pools' events in the blocks from `low` on.
fn price_between(
    pools: &[ReferencePool],
    events: &[PoolEvent],
    low: Height,
    at: Height,
) -> PoolPrice {
    median_price(pools.iter().filter_map(|pool| {
        let states = block_states(pool, events, low, at);
        let (own, before): (Vec<PriceAfter>, Vec<PriceAfter>) =
            states.iter().partition(|one| one.height == at);
        match (before.last(), own.last()) {
            // The trade happened between the states before and after its block.
            (Some(entering), Some(leaving)) => interpolate(entering.price, leaving.price, 1, 2),
            (Some(one), None) | (None, Some(one)) => Some(one.price),
            (None, None) => None,
        }
    }))
}

/// A pool's price after each block's last event, without outliers.
fn block_states(
    pool: &ReferencePool,
    events: &[PoolEvent],
    low: Height,
    high: Height,
) -> Vec<PriceAfter> {
    let mut states: Vec<PriceAfter> = Vec::new();
    let in_range = |event: &&PoolEvent| (low..=high).contains(&event.height);
    for event in events.iter().filter(in_range) {
        let Some(price) = price(pool, event) else { continue };
        let one = PriceAfter { height: event.height, price };
        match states.last_mut().filter(|last| last.height == event.height) {
            Some(last) => *last = one,
            None => states.push(one),
        }
    }
    let mut sorted: Vec<Price> = states.iter().map(|one| one.price).collect();
    sorted.sort_unstable();
    if let Some(middle) = sorted.get(sorted.len() / 2).filter(|_| sorted.len() > 2) {
        states.retain(|one| is_within(one.price, *middle, NEIGHBOUR_PERCENT));
    }
    states
}

/// The median of the pools' prices (the first of two); with several pools at least two must agree.
fn median_price(prices: impl Iterator<Item = Price>) -> PoolPrice {
    let prices: Vec<Price> = prices.collect();
    let mut sorted = prices.clone();
    sorted.sort_unstable();
    let middle = match prices.as_slice() {
        [] => return PoolPrice::Nothing,
        [one] | [one, _] => *one,
        _ => sorted.get(sorted.len() / 2).copied().unwrap_or(Price(0)),
    };
    let agree = prices.iter().filter(|one| is_within(**one, middle, POOLS_PERCENT)).count();
    if prices.len() > 1 && agree < 2 { PoolPrice::Disagree } else { PoolPrice::Price(middle) }
}

fn is_within(one: Price, other: Price, percent: u128) -> bool {
    one.0.abs_diff(other.0).saturating_mul(100) <= other.0.saturating_mul(percent)
}

/// Linear interpolation: the price after `done` of `span` steps from `from` to `to`.
pub(super) fn interpolate(from: Price, to: Price, done: u64, span: u64) -> Option<Price> {
    if span == 0 {
        return Some(to);
    }
    let (done, span) = (u128::from(done), u128::from(span));
    let step = from.0.abs_diff(to.0).checked_mul(done)? / span;
    let price = if to >= from { from.0.checked_add(step) } else { from.0.checked_sub(step) };
    price.map(Price)
}

/// The pool's price after an event; `None` if the event is another pool's, or the pool too small.
fn price(pool: &ReferencePool, event: &PoolEvent) -> Option<Price> {
    if event.emitter != pool.emitter {
        return None;
    }
    let (words, _) = event.data.as_chunks::<32>();
    let number = |at: usize| words.get(at).map(|word| Units::from_be_bytes(*word));
    let topic = format!("0x{}", hex::encode(event.topics.first()?));
    match (topic.as_str(), pool.id) {
        (SYNC, None) => price_of_reserves(pool, number(0)?, number(1)?),
        (SWAP_V3 | SWAP_PANCAKE, None) => price_of_root(pool, number(2)?, number(3)?),
        (SWAP_V4, Some(id)) if event.topics.get(1) == Some(&id) => {
            price_of_root(pool, number(2)?, number(3)?)
        }
        _ => None,
    }
}

fn price_of_reserves(pool: &ReferencePool, first: Units, second: Units) -> Option<Price> {
    let (native, stable) = if pool.native_first { (first, second) } else { (second, first) };
    check_liquidity(pool, stable.to())?;
    ratio(pool, stable.to(), native.to())
}

/// `root`: square root of the price of the first token in the second, with 96 binary places;
/// `liquidity`: that of the current price range.
fn price_of_root(pool: &ReferencePool, root: Units, liquidity: Units) -> Option<Price> {
    let (root, liquidity): (Wide, Wide) = (root.to(), liquidity.to());
    if root.is_zero() || root.bit_len() > 160 || liquidity.bit_len() > 128 {
        return None;
    }
    let one = Wide::ONE << 96;
    let (square, one_square) = (root * root, Wide::ONE << 192);
    if pool.native_first {
        check_liquidity(pool, liquidity * root / one)?;
        ratio(pool, square, one_square)
    } else {
        check_liquidity(pool, liquidity * one / root)?;
        ratio(pool, one_square, square)
    }
}

fn check_liquidity(pool: &ReferencePool, stable: Wide) -> Option<()> {
    (stable >= Wide::from(DEPTH_MIN) * power_of_ten(pool.stable_decimals)).then_some(())
}

/// Price from an amount of the stablecoin per amount of the native coin, both in base units.
fn ratio(pool: &ReferencePool, stable: Wide, native: Wide) -> Option<Price> {
    let whole = power_of_ten(pool.native_decimals) * power_of_ten(Price::DECIMALS);
    let above = stable.checked_mul(whole)?;
    let below = native.checked_mul(power_of_ten(pool.stable_decimals))?;
    let price: u128 = above.checked_div(below)?.try_into().ok()?;
    (1..=PRICE_MAX.0).contains(&price).then_some(Price(price))
}

/// Decimals above this count as this many: more would overflow 512 bits.
pub(super) const DECIMALS_MAX: u8 = 24;

fn power_of_ten(decimals: u8) -> Wide {
    Wide::from(10).pow(Wide::from(decimals.min(DECIMALS_MAX)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha3::{Digest as _, Keccak256};

    use super::*;

    const POOL: ReferencePool = ReferencePool {
        emitter: [1; 20],
        id: None,
        native_first: false,
        native_decimals: 18,
        stable_decimals: 6,
    };

    fn topic(text: &str) -> Word {
        let mut word = [0; 32];
        hex::decode_to_slice(text.trim_start_matches("0x"), &mut word).unwrap();
        word
    }

    fn event(height: Height, topic0: &str, words: &[Units]) -> PoolEvent {
        let data = words.iter().flat_map(Units::to_be_bytes::<32>).collect();
        PoolEvent { height, emitter: POOL.emitter, topics: vec![topic(topic0)], data }
    }

    /// A pair with this price in dollars.
    fn sync(height: Height, dollars: u64) -> PoolEvent {
        let reserves = [Units::from(dollars) * Units::from(1_000_000_000_u64), ether(1_000)];
        event(height, SYNC, &reserves)
    }

    fn ether(whole: u64) -> Units {
        Units::from(whole) * Units::from(10).pow(Units::from(18))
    }

    fn dollars(whole: u64) -> Price {
        Price(u128::from(whole) * 1_000_000_000_000)
    }

    #[test]
    fn topics_are_the_hashes_of_their_events() {
        let events = [
            "Sync(uint112,uint112)",
            "Swap(address,address,int256,int256,uint160,uint128,int24)",
            "Swap(address,address,int256,int256,uint160,uint128,int24,uint128,uint128)",
            "Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)",
        ];
        for (known, event) in TOPICS.iter().zip(events) {
            assert_eq!(*known, format!("0x{}", hex::encode(Keccak256::digest(event))));
        }
    }

    /// Mainnet's USDC/WETH pool at 3,000 dollars: the square root of 10¹² / 3000 (18 - 6 decimals),
    /// times 2⁹⁶.
    #[test]
    fn a_root_gives_the_price_whichever_coin_is_first() {
        let root: Units = "1446501726624926496477173928747177".parse().unwrap();
        let deep = Units::from(1_u64 << 62);
        let swap = event(7, SWAP_V3, &[Units::ZERO, Units::ZERO, root, deep]);
        let found = price(&POOL, &swap).unwrap();
        assert!(is_within(found, dollars(3_000), 1), "{found:?}");
        assert!(found.0.abs_diff(dollars(3_000).0) < 1_000_000_000, "{found:?}");
        // Inverted, the price exceeds the accepted maximum.
        assert_eq!(price(&ReferencePool { native_first: true, ..POOL }, &swap), None);
        let inverse: Units = (Units::ONE << 192) / root;
        let swap = event(7, SWAP_PANCAKE, &[Units::ZERO, Units::ZERO, inverse, deep]);
        let found = price(&ReferencePool { native_first: true, ..POOL }, &swap).unwrap();
        assert!(found.0.abs_diff(dollars(3_000).0) < 1_000_000_000, "{found:?}");
    }

    #[test]
    fn pools_that_hold_next_to_nothing_say_nothing() {
        assert_eq!(price(&POOL, &sync(1, 3_000)), Some(dollars(3_000)));
        assert_eq!(price(&POOL, &sync(1, 9)), None, "9,000 dollars");
        let root: Units = "1446501726624926496477173928747177".parse().unwrap();
        let none = event(1, SWAP_V3, &[Units::ZERO, Units::ZERO, root, Units::ZERO]);
        assert_eq!(price(&POOL, &none), None);
    }

    #[test]
    fn one_contract_holds_many_pools() {
        let pool = ReferencePool { id: Some([9; 32]), ..POOL };
        let root: Units = "1446501726624926496477173928747177".parse().unwrap();
        let deep = Units::from(1_u64 << 62);
        let mut swap = event(1, SWAP_V4, &[Units::ZERO, Units::ZERO, root, deep]);
        swap.topics.push([9; 32]);
        assert!(price(&pool, &swap).is_some());
        assert_eq!(price(&POOL, &swap), None);
        swap.topics[1] = [8; 32];
        assert_eq!(price(&pool, &swap), None);
    }

    #[test]
    fn the_last_state_counts_and_in_the_own_block_both() {
        let events = [sync(10, 3_000), sync(12, 3_100), sync(12, 3_050), sync(14, 3_150)];
        let at = |at| price_between(&[POOL], &events, 5, at);
        assert_eq!(at(9), PoolPrice::Nothing);
        assert_eq!(at(10), PoolPrice::Price(dollars(3_000)));
        assert_eq!(at(11), PoolPrice::Price(dollars(3_000)));
        assert_eq!(
            at(12),
            PoolPrice::Price(dollars(3_025)),
            "between what it was and what it became"
        );
        assert_eq!(at(13), PoolPrice::Price(dollars(3_050)));
        assert_eq!(price_between(&[POOL], &events, 13, 13), PoolPrice::Nothing, "too old");
    }

    #[test]
    fn outliers_are_refused() {
        let events = [sync(1, 3_000), sync(2, 3_010), sync(3, 9_000)];
        assert_eq!(price_between(&[POOL], &events, 0, 4), PoolPrice::Price(dollars(3_010)));
        let other = ReferencePool { emitter: [2; 20], ..POOL };
        let third = ReferencePool { emitter: [3; 20], ..POOL };
        let of =
            |pool: &ReferencePool, dollars| PoolEvent { emitter: pool.emitter, ..sync(1, dollars) };
        let events = [sync(1, 3_000), of(&other, 3_400), of(&third, 3_010)];
        assert_eq!(price_between(&[POOL, other.clone()], &events, 0, 2), PoolPrice::Disagree);
        let all = [POOL, other, third];
        assert_eq!(price_between(&all, &events, 0, 2), PoolPrice::Price(dollars(3_010)));
    }

    #[test]
    fn windows_that_touch_are_read_as_one() {
        let heights = |all: &[Height]| all.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(ranges(&heights(&[3, 100, 105, 112]), 5), [(0, 3), (95, 105), (107, 112)]);
        assert_eq!(ranges(&heights(&[100, 106]), 5), [(95, 106)]);
        assert_eq!(split((10, 19), 4), [(10, 13), (14, 17), (18, 19)]);
        assert_eq!(split((10, 19), 10), [(10, 19)]);
        assert_eq!(split((7, 7), 0), [(7, 7)]);
    }

    proptest! {
        #[test]
        fn any_input_is_read_or_refused(
            data in proptest::collection::vec(any::<u8>(), 0..200), topic0 in 0_usize..4,
            native_first in any::<bool>(), stable_decimals in any::<u8>(),
        ) {
            let event = PoolEvent {
                height: 1, emitter: POOL.emitter, topics: vec![topic(TOPICS[topic0]); 2], data,
            };
            for id in [None, Some(topic(TOPICS[topic0]))] {
                let _ = price(&ReferencePool { id, native_first, stable_decimals, ..POOL }, &event);
            }
        }

        #[test]
        fn a_price_between_two_others_is_between_them(from in 1_u128..1 << 90, to in 1_u128..1 << 90, span in 1_u64..999, part in 0_u64..999) {
            let done = part.min(span);
            let price = interpolate(Price(from), Price(to), done, span).unwrap().0;
            prop_assert!((from.min(to)..=from.max(to)).contains(&price));
        }
    }
}
