//! The parameters of a wallet's history.

use crate::demo::state::{KnownWallet, Making};
use crate::demo::timeline::{Crowd, Heights, Shape};
use crate::domain::Height;

use super::TradeKind;
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

pub(super) type WalletHistory = KnownWallet<20, WalletPlan>;

/// Every block is a height.
const HEIGHTS: Heights = Heights {
    of: |height| height,
    ordinal: |height| height,
    ordinal_below: Some,
    spread: INDEX_SPREAD,
};

pub(super) fn making(places: &TxPlaces) -> Making<WalletPlan> {
    let bounds = (places.default_first(), places.anchor.saturating_sub(200));
    Making { plan: WalletPlan::trades, shape, bounds }
}

fn shape(plan: &WalletPlan, (first, last): (Height, Height)) -> Shape {
    Shape {
        trades: plan.trades,
        failed_percent: plan.failed_percent,
        noise_percent: plan.noise_percent,
        first: plan.first.unwrap_or(first),
        last: plan.last.unwrap_or(last),
        burst: plan.burst,
        crowd: plan.crowd,
        live_every: plan.live_every,
        heights: HEIGHTS,
    }
}
