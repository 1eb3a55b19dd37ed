//! A wallet of the demo chain: how large its history is, what stands at which place of it, and in
//! which slot. Every question is arithmetic; nothing of a history is ever held.
//!
//! A history is numbered from its oldest transaction (0, the funding). After it come blocks of a
//! hundred, in each of which the same places are trades, failures and noise, so that the n-th
//! trade and the place of the n-th trade are both one look into a table.

use crate::demo::mix::{self, Dice};

use super::keys::Key;
use super::{TradeKind, slots};

/// Transactions of one block of the pattern.
const BLOCK: u64 = 100;
/// Of as many transactions in a row, the first `burst` share a slot.
const BURST_PERIOD: u64 = 64;
/// Places between two transactions of one wallet in one slot.
const INDEX_STEP: u64 = 3;
/// Below this place no transaction of a wallet stands in its slot.
const INDEX_SPREAD: u64 = 400;
/// How often trades may arrive after the plan was made.
const ARRIVALS_MAX: usize = 100_000;

/// How a wallet's history looks. `WalletPlan::trades(n)` is a mixed trader of average habits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalletPlan {
    /// Transactions that are trades; one of token for token gives two rows.
    pub trades: u64,
    /// Of a hundred transactions, how many failed.
    pub failed_percent: u8,
    /// Of a hundred transactions, how many are transfers, liquidity, staking, spam and the like.
    pub noise_percent: u8,
    /// Of the trades that a keeper can do for the wallet, how many in a hundred are.
    pub keeper_percent: u8,
    /// Of a hundred transactions signed by the wallet, how many have version 1.
    pub version_1_percent: u8,
    /// Token accounts that stay open with a holding, at most 256; the others close after use.
    pub open_accounts: u32,
    /// Token accounts that strangers opened for their spam.
    pub spam_accounts: u32,
    /// Slot of the oldest transaction.
    pub first_slot: u64,
    /// Slot at which the planned trades are reached.
    pub last_slot: u64,
    /// Transactions that share a slot now and then, at most 64.
    pub burst: u32,
    /// A run of transactions that all stand in one slot.
    pub crowd: Option<Crowd>,
    /// All trades are of this kind, where it fits the side; `None` is the natural mix.
    pub only: Option<TradeKind>,
    /// Once the plan is through, a transaction comes every so many slots as the head moves on.
    pub live_every: Option<u64>,
}

/// Transactions number `start` and following, `count` of them, stand in one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowd {
    pub start: u64,
    pub count: u64,
}

impl WalletPlan {
    pub fn trades(trades: u64) -> Self {
        Self {
            trades,
            failed_percent: 8,
            noise_percent: 12,
            keeper_percent: 20,
            version_1_percent: 8,
            open_accounts: 6,
            spam_accounts: 4,
            first_slot: slots::DEFAULT_FIRST,
            last_slot: slots::DEFAULT_HEAD - 200,
            burst: 3,
            crowd: None,
            only: None,
            live_every: None,
        }
    }

    /// Every trade of one kind, and nothing else in between.
    pub fn only(kind: TradeKind, trades: u64) -> Self {
        Self { failed_percent: 0, noise_percent: 0, only: Some(kind), ..Self::trades(trades) }
    }
}

/// What a place of the history holds, with its number among its like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Funding,
    Trade(u64),
    Failed(u64),
    Noise(u64),
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Trade(u64),
    Failed(u64),
    Noise(u64),
}

/// The hundred places of a block.
#[derive(Debug, Clone)]
struct Pattern {
    places: Vec<Place>,
    /// Place of each trade, and of each piece of noise.
    trades: Vec<u64>,
    noises: Vec<u64>,
    failed: u64,
    noise: u64,
}

impl Pattern {
    fn new(plan: &WalletPlan, dice: &mut Dice) -> Self {
        let failed = u64::from(plan.failed_percent.min(49));
        let noise = u64::from(plan.noise_percent.min(49));
        // A seeded selection walk: what is left of each class decides the odds of the next place.
        let (mut left_failed, mut left_noise) = (failed, noise);
        let (mut places, mut trades, mut noises) = (Vec::new(), Vec::new(), Vec::new());
        for place in 0..BLOCK {
            let draw = dice.range(0, BLOCK - place - 1);
            if draw < left_failed {
                places.push(Place::Failed(failed - left_failed));
                left_failed -= 1;
            } else if draw < left_failed + left_noise {
                places.push(Place::Noise(noise - left_noise));
                noises.push(place);
                left_noise -= 1;
            } else {
                places.push(Place::Trade(u64::try_from(trades.len()).unwrap_or(0)));
                trades.push(place);
            }
        }
        Self { places, trades, noises, failed, noise }
    }

    fn trade_count(&self) -> u64 {
        BLOCK - self.failed - self.noise
    }

    fn class(&self, number: u64) -> Class {
        let Some(number) = number.checked_sub(1) else { return Class::Funding };
        let (block, place) = (number / BLOCK, usize::try_from(number % BLOCK).unwrap_or(0));
        match self.places.get(place) {
            Some(Place::Failed(n)) => Class::Failed(block * self.failed + n),
            Some(Place::Noise(n)) => Class::Noise(block * self.noise + n),
            Some(Place::Trade(n)) => Class::Trade(block * self.trade_count() + n),
            None => Class::Funding,
        }
    }

    /// Number in the history of the trade number `trade`.
    fn number_of_trade(&self, trade: u64) -> u64 {
        let (block, rest) = (trade / self.trade_count(), trade % self.trade_count());
        let place = usize::try_from(rest).ok().and_then(|rest| self.trades.get(rest));
        1 + block * BLOCK + place.copied().unwrap_or(0)
    }

    /// Number in the history of the `n`-th piece of noise, where there is any.
    fn number_of_noise(&self, n: u64) -> Option<u64> {
        let (block, rest) = (n.checked_div(self.noise)?, n.checked_rem(self.noise)?);
        let place = self.noises.get(usize::try_from(rest).ok()?)?;
        Some(1 + block * BLOCK + place)
    }

    /// How many of `places`, which repeat in every block, stand below a number of the history.
    fn below(places: &[u64], number: u64) -> u64 {
        let Some(number) = number.checked_sub(1) else { return 0 };
        let (block, rest) = (number / BLOCK, number % BLOCK);
        let count = |n: usize| u64::try_from(n).unwrap_or(0);
        block * count(places.len()) + count(places.partition_point(|place| *place < rest))
    }
}

/// A run of transactions at even distances. Positions are counted in slots that have a block.
#[derive(Debug, Clone, Copy)]
struct Segment {
    first: u64,
    /// `u64::MAX` while it goes on with the chain.
    count: u64,
    base: u64,
    stride: u64,
}

/// Where a transaction stands on the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) slot: u64,
    /// Place in the block.
    pub(super) index: u32,
}

#[derive(Debug, Clone)]
pub(super) struct WalletHistory {
    pub(super) address: Key,
    /// Stands for the address where 32 bytes have no room.
    pub(super) tag: u64,
    pub(super) plan: WalletPlan,
    pattern: Pattern,
    segments: Vec<Segment>,
    jitter: u64,
}

impl WalletHistory {
    pub(super) fn new(seed: u64, address: Key, plan: WalletPlan) -> Self {
        let tag = mix::digest(seed, &address);
        let pattern = Pattern::new(&plan, &mut Dice::new(seed, &[tag, 1]));
        let mut segments = Vec::new();
        if plan.trades > 0 {
            let count = pattern.number_of_trade(plan.trades - 1) + 1;
            let base = slots::ordinal(plan.first_slot);
            let span = slots::ordinal(plan.last_slot).saturating_sub(base);
            segments.push(Segment { first: 0, count, base, stride: (span / count).max(1) });
            if let Some(every) = plan.live_every {
                let base = slots::ordinal(plan.last_slot).max(base + span) + 1;
                segments.push(Segment {
                    first: count,
                    count: u64::MAX,
                    base,
                    stride: every.max(1),
                });
            }
        }
        Self { address, tag, plan, pattern, segments, jitter: mix::hash(seed, &[tag, 2]) }
    }

    pub(super) fn class(&self, number: u64) -> Class {
        self.pattern.class(number)
    }

    pub(super) fn number_of_trade(&self, trade: u64) -> u64 {
        self.pattern.number_of_trade(trade)
    }

    pub(super) fn number_of_noise(&self, n: u64) -> Option<u64> {
        self.pattern.number_of_noise(n)
    }

    /// How many trades the history holds below a number.
    pub(super) fn trades_below(&self, number: u64) -> u64 {
        Pattern::below(&self.pattern.trades, number)
    }

    pub(super) fn noises_below(&self, number: u64) -> u64 {
        Pattern::below(&self.pattern.noises, number)
    }

    fn segment_of(&self, number: u64) -> Option<&Segment> {
        let after = self.segments.partition_point(|segment| segment.first <= number);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        (number - segment.first < segment.count).then_some(segment)
    }

    /// The transaction whose slot this one shares; itself where it stands alone.
    fn leader(&self, segment: &Segment, number: u64) -> u64 {
        if let Some(crowd) = self.plan.crowd
            && number >= crowd.start
            && number < crowd.start.saturating_add(crowd.count)
        {
            return crowd.start;
        }
        let start = number - number % BURST_PERIOD;
        let burst = u64::from(self.plan.burst);
        let inside = number % BURST_PERIOD < burst && number >= BURST_PERIOD;
        let leader = if inside { start.max(segment.first) } else { number };
        // A burst that would begin inside the crowd begins behind it.
        self.plan.crowd.map_or(leader, |crowd| {
            let end = crowd.start.saturating_add(crowd.count);
            if number >= end { leader.max(end) } else { leader }
        })
    }

    pub(super) fn spot(&self, number: u64) -> Option<Spot> {
        let segment = self.segment_of(number)?;
        let leader = self.leader(segment, number);
        let ordinal = self.ordinal(segment, leader);
        let slot = slots::slot(ordinal);
        let spread = mix::hash(self.jitter, &[slot]) % INDEX_SPREAD;
        let index = spread + (number - leader) * INDEX_STEP;
        Some(Spot { slot, index: u32::try_from(index).unwrap_or(u32::MAX) })
    }

    fn ordinal(&self, segment: &Segment, leader: u64) -> u64 {
        let leader = leader.max(segment.first);
        let jitter = mix::hash(self.jitter, &[leader, 3]) % segment.stride;
        segment.base + (leader - segment.first) * segment.stride + jitter
    }

    /// How many transactions stand in slots up to `slot`: the numbers below the answer.
    pub(super) fn count_at(&self, slot: u64) -> u64 {
        let Some(top) = slots::ordinal_below(slot) else { return 0 };
        let after = self.segments.partition_point(|segment| segment.base <= top);
        let Some(segment) = after.checked_sub(1).and_then(|at| self.segments.get(at)) else {
            return 0;
        };
        // Positions grow with the number, so the answer lies between two bounds of even steps.
        let (mut low, mut high) =
            (0, segment.count.min((top - segment.base) / segment.stride + self.longest_run() + 1));
        while low < high {
            let middle = low + (high - low) / 2;
            let number = segment.first + middle;
            if self.ordinal(segment, self.leader(segment, number)) <= top {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        segment.first + low
    }

    fn longest_run(&self) -> u64 {
        u64::from(self.plan.burst).max(self.plan.crowd.map_or(0, |crowd| crowd.count))
            + BURST_PERIOD
    }

    /// Adds transactions above `head` until `trades` more of them are trades; returns the highest
    /// slot used. Beyond [`ARRIVALS_MAX`] calls nothing more arrives.
    pub(super) fn arrive(&mut self, trades: u64, head: u64) -> u64 {
        if trades == 0 || self.segments.len() > ARRIVALS_MAX {
            return head;
        }
        let first = self.count_at(head);
        let mut number = first;
        let mut left = trades;
        while left > 0 {
            if matches!(self.class(number), Class::Trade(_)) {
                left -= 1;
            }
            number += 1;
        }
        let live = self.segments.last().filter(|segment| segment.count == u64::MAX).copied();
        self.segments.retain(|segment| segment.first < first);
        if let Some(last) = self.segments.last_mut() {
            last.count = last.count.min(first - last.first);
        }
        let base = slots::ordinal(head) + 1;
        let segment = Segment { first, count: number - first, base, stride: 1 };
        let top = base + (number - first);
        self.segments.push(segment);
        if let Some(live) = live {
            self.segments.push(Segment { first: number, base: top + 1, ..live });
        }
        slots::slot(top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(plan: WalletPlan) {
        let last = plan.last_slot;
        let wallet = WalletHistory::new(5, [7; 32], plan);
        let count = wallet.count_at(last);
        let trades = (0..count).filter(|n| matches!(wallet.class(*n), Class::Trade(_))).count();
        assert_eq!(u64::try_from(trades).unwrap(), plan.trades);
        let mut before: Option<Spot> = None;
        for number in 0..count {
            let spot = wallet.spot(number).unwrap();
            assert!(slots::has_block(spot.slot));
            if let Some(before) = before {
                assert!((before.slot, before.index) < (spot.slot, spot.index), "{number}");
            }
            before = Some(spot);
            let through = wallet.count_at(spot.slot);
            assert!(through > number);
            assert!(wallet.spot(through - 1).unwrap().slot == spot.slot);
            match wallet.class(number) {
                Class::Trade(trade) => {
                    assert_eq!(wallet.number_of_trade(trade), number);
                    assert_eq!(wallet.trades_below(number), trade);
                }
                Class::Noise(n) => {
                    assert_eq!(wallet.number_of_noise(n), Some(number));
                    assert_eq!(wallet.noises_below(number), n);
                }
                Class::Funding | Class::Failed(_) => {}
            }
        }
        assert_eq!(wallet.spot(count).is_some(), plan.live_every.is_some());
    }

    #[test]
    fn slots_and_numbers_lead_to_each_other() {
        check(WalletPlan::trades(1));
        check(WalletPlan::trades(2_345));
        check(WalletPlan { burst: 40, ..WalletPlan::trades(900) });
        let crowd = Some(Crowd { start: 333, count: 1_200 });
        check(WalletPlan { crowd, burst: 7, ..WalletPlan::trades(3_000) });
        check(WalletPlan { live_every: Some(50), ..WalletPlan::trades(100) });
        let (first_slot, last_slot) = (1_000, 1_400);
        check(WalletPlan { first_slot, last_slot, burst: 0, ..WalletPlan::trades(100) });
        assert_eq!(WalletHistory::new(5, [7; 32], WalletPlan::trades(0)).count_at(u64::MAX), 0);
    }

    #[test]
    fn what_arrives_stands_above_the_head() {
        for live_every in [None, Some(30)] {
            let plan = WalletPlan { live_every, ..WalletPlan::trades(500) };
            let mut wallet = WalletHistory::new(5, [7; 32], plan);
            let mut head = slots::DEFAULT_HEAD;
            for _ in 0..5 {
                let before = wallet.count_at(head);
                let top = wallet.arrive(7, head);
                assert!(wallet.spot(before).unwrap().slot > head);
                let count = wallet.count_at(top);
                let trades =
                    (before..count).filter(|n| matches!(wallet.class(*n), Class::Trade(_)));
                assert_eq!(trades.count(), 7);
                head = top + 1_000;
            }
        }
    }
}
