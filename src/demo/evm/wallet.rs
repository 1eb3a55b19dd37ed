//! A wallet of the demo chain: the parameters of its history, and the block of each transaction.

use std::ops::Deref;

use crate::demo::mix;
use crate::demo::timeline::{Crowd, HistoryShape, Shape, Spot};

use super::TradeKind;
use super::hash::Account;
use super::places::TxPlaces;

/// A wallet's first position in a block is below this.
const INDEX_SPREAD: u64 = 90;

/// Parameters of a wallet's history. `WalletPlan::trades(n)` is a mixed trader of average habits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalletPlan {
    /// Transactions that are trades; a token-for-token trade gives two rows.
    pub trades: u64,
    /// Failed transactions in percent.
    pub failed_percent: u8,
    /// Transfers, approvals, liquidity, wraps and spam in percent.
    pub noise_percent: u8,
    /// Blocks of the oldest transaction and of the one that completes the plan; `None`: the chain's
    /// own.
    pub first: Option<u64>,
    pub last: Option<u64>,
    /// Size of occasional bursts in one block, at most 64.
    pub burst: u32,
    /// A run of transactions that are all in one block.
    pub crowd: Option<Crowd>,
    /// All trades are of this kind, where it fits the chain and the side; `None` is the natural
    /// mix.
    pub only: Option<TradeKind>,
    /// After the plan, a transaction every so many blocks as the head moves.
    pub live_every: Option<u64>,
    /// An account without code; only for trades of kinds that need none.
    pub plain: bool,
}

impl WalletPlan {
    pub fn trades(trades: u64) -> Self {
        Self {
            trades,
            failed_percent: 6,
            noise_percent: 24,
            first: None,
            last: None,
            burst: 3,
            crowd: None,
            only: None,
            live_every: None,
            plain: false,
        }
    }

    /// Every trade of one kind, and nothing else in between.
    pub fn only(kind: TradeKind, trades: u64) -> Self {
        Self { failed_percent: 0, noise_percent: 0, only: Some(kind), ..Self::trades(trades) }
    }
}

#[derive(Debug, Clone)]
pub(super) struct WalletHistory {
    pub(super) address: Account,
    pub(super) tag: u64,
    pub(super) plan: WalletPlan,
    timeline: HistoryShape,
}

impl Deref for WalletHistory {
    type Target = HistoryShape;

    fn deref(&self) -> &HistoryShape {
        &self.timeline
    }
}

impl WalletHistory {
    pub(super) fn new(places: &TxPlaces, address: Account, plan: WalletPlan) -> Self {
        let tag = mix::digest(places.seed, &address);
        let shape = Shape {
            trades: plan.trades,
            failed_percent: plan.failed_percent,
            noise_percent: plan.noise_percent,
            first: plan.first.unwrap_or(places.default_first()),
            last: plan.last.unwrap_or(places.anchor.saturating_sub(200)),
            burst: plan.burst,
            crowd: plan.crowd,
            live_every: plan.live_every,
        };
        Self { address, tag, plan, timeline: HistoryShape::new(places.seed, tag, shape) }
    }

    pub(super) fn spot(&self, number: u64) -> Option<Spot> {
        self.timeline.place(number, |height| height, INDEX_SPREAD)
    }

    /// Adds transactions above `head` until `trades` more of them are trades; returns the highest
    /// block used.
    pub(super) fn arrive(&mut self, trades: u64, head: u64) -> u64 {
        let first = self.count_at(head);
        self.timeline.arrive(trades, first, head + 1).unwrap_or(head)
    }
}
