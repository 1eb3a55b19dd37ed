//! The shape of a wallet's history on any chain, by arithmetic: no history is stored.
//!
//! A history is numbered from its oldest transaction (0, the funding). After it come blocks of a
//! hundred, in each of which the same places are trades, failures and noise, so that the n-th trade
//! and the place of the n-th trade are both one table look-up.
//!
//! Heights are counted in ordinals: heights that have a block, without holes.

use std::ops::Deref;

use super::mix::{self, Dice};
use crate::domain::Height;

/// Transactions of one block of the pattern.
const BLOCK: u64 = 100;
/// Of this many consecutive transactions, the first `burst` share a height.
const BURST_PERIOD: u64 = 64;
/// Positions between two transactions of one wallet at one height.
const INDEX_STEP: u64 = 3;
const ARRIVALS_MAX: usize = 100_000;

/// Transactions number `start` and following, `count` of them, share one height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowd {
    pub start: u64,
    pub count: u64,
}

/// Parameters of a wallet's history. `WalletPlan::trades(n)` is a mixed trader of average habits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan<K> {
    /// Transactions that are trades; a token-for-token trade gives two rows.
    pub trades: u64,
    pub failed_percent: u8,
    /// Transfers, approvals, liquidity, wraps, staking, spam and the like in percent.
    pub noise_percent: u8,
    /// Solana: percentage of the possible trades that a keeper executes for the wallet.
    pub keeper_percent: u8,
    /// Solana: percentage of the wallet's signed transactions with version 1.
    pub version_1_percent: u8,
    /// Solana: token accounts that stay open with a balance, at most 256; others close after use.
    pub open_accounts: u32,
    /// Solana: token accounts that other accounts opened for their spam.
    pub spam_accounts: u32,
    /// Heights of the oldest transaction and of the plan's last; `None`: the chain's own.
    pub first: Option<Height>,
    pub last: Option<Height>,
    /// Size of occasional bursts at one height, at most 64.
    pub burst: u32,
    /// A run of transactions that are all at one height.
    pub crowd: Option<Crowd>,
    /// All trades are of this kind, where it fits chain and side; `None` is the natural mix.
    pub only: Option<K>,
    /// After the plan, a transaction every so many heights as the head moves.
    pub live_every: Option<u64>,
    /// EVM: an account without code; only for trades of kinds that need none.
    pub plain: bool,
}

impl<K> Plan<K> {
    pub(super) const fn new(failed_percent: u8, noise_percent: u8) -> Self {
        Self {
            trades: 0,
            failed_percent,
            noise_percent,
            keeper_percent: 20,
            version_1_percent: 8,
            open_accounts: 6,
            spam_accounts: 4,
            first: None,
            last: None,
            burst: 3,
            crowd: None,
            only: None,
            live_every: None,
            plain: false,
        }
    }
}

/// How a chain numbers its heights by ordinals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heights {
    pub(super) of: fn(u64) -> Height,
    /// Ordinal of a height that has a block, else of the next one, or of the one before it.
    pub(super) ordinal: fn(Height) -> u64,
    pub(super) ordinal_below: fn(Height) -> Option<u64>,
    /// A wallet's first position in a block is below this.
    pub(super) spread: u64,
}

/// The class of a place of the history, with its number within the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Funding,
    Trade(u64),
    Failed(u64),
    Noise(u64),
}

/// The hundred places of a block.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// The class of each place, with its number within the class in the block.
    places: Vec<Class>,
    /// Place of each trade, and of each noise transaction.
    trades: Vec<u64>,
    noises: Vec<u64>,
    failed: u64,
    noise: u64,
}

impl Pattern {
    fn new(failed_percent: u8, noise_percent: u8, dice: &mut Dice) -> Self {
        let (failed, noise) = (u64::from(failed_percent.min(49)), u64::from(noise_percent.min(49)));
        // A seeded selection: the remainder of each class decides the odds of the next place.
        let (mut left_failed, mut left_noise) = (failed, noise);
        let (mut places, mut trades, mut noises) = (Vec::new(), Vec::new(), Vec::new());
        for place in 0..BLOCK {
            let draw = dice.range(0, BLOCK - place - 1);
            if draw < left_failed {
                places.push(Class::Failed(failed - left_failed));
                left_failed -= 1;
            } else if draw < left_failed + left_noise {
                places.push(Class::Noise(noise - left_noise));
                noises.push(place);
                left_noise -= 1;
            } else {
                places.push(Class::Trade(u64::try_from(trades.len()).unwrap_or(0)));
                trades.push(place);
            }
        }
        Self { places, trades, noises, failed, noise }
    }

    fn trade_count(&self) -> u64 {
        BLOCK - self.failed - self.noise
    }

    pub(super) fn class(&self, number: u64) -> Class {
        let Some(number) = number.checked_sub(1) else { return Class::Funding };
        let (block, place) = (number / BLOCK, usize::try_from(number % BLOCK).unwrap_or(0));
        match self.places.get(place) {
            Some(Class::Failed(n)) => Class::Failed(block * self.failed + n),
            Some(Class::Noise(n)) => Class::Noise(block * self.noise + n),
            Some(Class::Trade(n)) => Class::Trade(block * self.trade_count() + n),
            Some(Class::Funding) | None => Class::Funding,
        }
    }

    /// Number in the history of the trade number `trade`.
    pub(super) fn number_of_trade(&self, trade: u64) -> u64 {
        let (block, rest) = (trade / self.trade_count(), trade % self.trade_count());
        let place = usize::try_from(rest).ok().and_then(|rest| self.trades.get(rest));
        1 + block * BLOCK + place.copied().unwrap_or(0)
    }

    /// Number in the history of the `n`-th noise transaction, if there is any.
    pub(super) fn number_of_noise(&self, n: u64) -> Option<u64> {
        let (block, rest) = (n.checked_div(self.noise)?, n.checked_rem(self.noise)?);
        let place = self.noises.get(usize::try_from(rest).ok()?)?;
        Some(1 + block * BLOCK + place)
    }

    pub(super) fn trades_below(&self, number: u64) -> u64 {
        Self::below(&self.trades, number)
    }

    pub(super) fn noises_below(&self, number: u64) -> u64 {
        Self::below(&self.noises, number)
    }

    /// How many of `places`, which repeat in every block, are below a number of the history.
    fn below(places: &[u64], number: u64) -> u64 {
        let Some(number) = number.checked_sub(1) else { return 0 };
        let (block, rest) = (number / BLOCK, number % BLOCK);
        let count = |n: usize| u64::try_from(n).unwrap_or(0);
        block * count(places.len()) + count(places.partition_point(|place| *place < rest))
    }
}

/// A run of transactions at even distances.
#[derive(Debug, Clone, Copy)]
struct Segment {
    first: u64,
    /// `u64::MAX` while it continues with the chain.
    count: u64,
    base: u64,
    stride: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) height: Height,
    pub(super) index: u32,
}

#[derive(Debug, Clone)]
pub(super) struct HistoryShape {
    burst: u64,
    crowd: Option<Crowd>,
    heights: Heights,
    pattern: Pattern,
    segments: Vec<Segment>,
    jitter: u64,
}

impl Deref for HistoryShape {
    type Target = Pattern;

    fn deref(&self) -> &Pattern {
        &self.pattern
    }
}

impl HistoryShape {
    /// `tag` identifies the wallet; `first` and `last` stand for what the plan does not state.
    pub(super) fn new<K>(
        (seed, tag): (u64, u64),
        plan: &Plan<K>,
        heights: Heights,
        (first, last): (Height, Height),
    ) -> Self {
        let mut dice = Dice::new(seed, &[tag, 1]);
        let pattern = Pattern::new(plan.failed_percent, plan.noise_percent, &mut dice);
        let mut segments = Vec::new();
        if plan.trades > 0 {
            let count = pattern.number_of_trade(plan.trades - 1) + 1;
            let base = (heights.ordinal)(plan.first.unwrap_or(first));
            let last = (heights.ordinal)(plan.last.unwrap_or(last));
            let span = last.saturating_sub(base);
            segments.push(Segment { first: 0, count, base, stride: (span / count).max(1) });
            if let Some(every) = plan.live_every {
                let base = last.max(base + span) + 1;
                let stride = every.max(1);
                segments.push(Segment { first: count, count: u64::MAX, base, stride });
            }
        }
        let (burst, crowd, jitter) = (plan.burst.into(), plan.crowd, mix::hash(seed, &[tag, 2]));
        Self { burst, crowd, heights, pattern, segments, jitter }
    }

    fn segment_of(&self, number: u64) -> Option<&Segment> {
        let after = self.segments.partition_point(|segment| segment.first <= number);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        (number - segment.first < segment.count).then_some(segment)
    }

    /// The transaction whose height this one shares; itself where it is alone.
    fn leader(&self, segment: &Segment, number: u64) -> u64 {
        if let Some(crowd) = self.crowd
            && number >= crowd.start
            && number < crowd.start.saturating_add(crowd.count)
        {
            return crowd.start;
        }
        let start = number - number % BURST_PERIOD;
        let inside = number % BURST_PERIOD < self.burst && number >= BURST_PERIOD;
        let leader = if inside { start.max(segment.first) } else { number };
        // A burst that would begin inside the crowd begins after it.
        self.crowd.map_or(leader, |crowd| {
            let end = crowd.start.saturating_add(crowd.count);
            if number >= end { leader.max(end) } else { leader }
        })
    }

    pub(super) fn spot(&self, number: u64) -> Option<Spot> {
        let segment = self.segment_of(number)?;
        let leader = self.leader(segment, number);
        let Heights { of, spread, .. } = self.heights;
        let height = of(self.ordinal(segment, leader));
        let index = mix::hash(self.jitter, &[height]) % spread + (number - leader) * INDEX_STEP;
        Some(Spot { height, index: u32::try_from(index).unwrap_or(u32::MAX) })
    }

    fn ordinal(&self, segment: &Segment, leader: u64) -> u64 {
        let leader = leader.max(segment.first);
        let jitter = mix::hash(self.jitter, &[leader, 3]) % segment.stride;
        segment.base + (leader - segment.first) * segment.stride + jitter
    }

    /// The number of transactions up to a height, which are those with lower numbers.
    pub(super) fn count_at(&self, height: Height) -> u64 {
        let Some(top) = (self.heights.ordinal_below)(height) else { return 0 };
        let after = self.segments.partition_point(|segment| segment.base <= top);
        let Some(segment) = after.checked_sub(1).and_then(|at| self.segments.get(at)) else {
            return 0;
        };
        // Positions grow with the number, so the result lies between two bounds of even steps.
        let longest_run = self.burst.max(self.crowd.map_or(0, |crowd| crowd.count)) + BURST_PERIOD;
        let steps = (top - segment.base) / segment.stride + longest_run + 1;
        let (mut low, mut high) = (0, segment.count.min(steps));
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

    /// See [`ChainState::arrive`](super::ChainState); after [`ARRIVALS_MAX`] calls it adds nothing.
    pub(super) fn arrive(&mut self, trades: u64, head: Height) -> Height {
        if trades == 0 || self.segments.len() > ARRIVALS_MAX {
            return head;
        }
        let Heights { of, ordinal, .. } = self.heights;
        let (first, base) = (self.count_at(head), ordinal(head) + 1);
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
        self.segments.push(Segment { first, count: number - first, base, stride: 1 });
        let top = base + (number - first);
        if let Some(live) = live {
            self.segments.push(Segment { first: number, base: top + 1, ..live });
        }
        of(top)
    }
}
