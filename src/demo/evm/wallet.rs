//! The parameters of a wallet's history.

use crate::demo::state::{KnownWallet, Making};
use crate::demo::timeline::{Heights, Plan};

use super::TradeKind;
use super::places::TxPlaces;

/// Every block is a height.
const HEIGHTS: Heights =
    Heights { of: |height| height, ordinal: |height| height, ordinal_below: Some, spread: 90 };

pub type WalletPlan = Plan<TradeKind>;
pub(super) type WalletHistory = KnownWallet<20, TradeKind>;

impl WalletPlan {
    pub fn trades(trades: u64) -> Self {
        Self { trades, ..Self::new(6, 24) }
    }

    /// Every trade of one kind, and nothing else in between.
    pub fn only(kind: TradeKind, trades: u64) -> Self {
        Self { trades, only: Some(kind), ..Self::new(0, 0) }
    }
}

pub(super) fn making(places: &TxPlaces) -> Making<TradeKind> {
    // Histories begin at three quarters of the chain's height.
    let anchor = places.anchor;
    let bounds = (anchor - anchor / 4, anchor.saturating_sub(200));
    Making { plan: WalletPlan::trades, heights: HEIGHTS, bounds }
}
