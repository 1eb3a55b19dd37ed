//! The parameters of a wallet's history.

use crate::demo::state::{KnownWallet, Making};
use crate::demo::timeline::{Crowd, Heights, Shape};

use super::{TradeKind, slots};

/// A wallet's first position in a slot is below this.
const INDEX_SPREAD: u64 = 400;

/// Parameters of a wallet's history. `WalletPlan::trades(n)` is a mixed trader of average habits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalletPlan {
    /// Transactions that are trades; a token-for-token trade gives two rows.
    pub trades: u64,
    /// Failed transactions in percent.
    pub failed_percent: u8,
    /// Transfers, liquidity, staking, spam and the like in percent.
    pub noise_percent: u8,
    /// Percentage of the possible trades that a keeper executes for the wallet.
    pub keeper_percent: u8,
    /// Percentage of the wallet's signed transactions with version 1.
    pub version_1_percent: u8,
    /// Token accounts that stay open with a balance, at most 256; the others close after use.
    pub open_accounts: u32,
    /// Token accounts that other accounts opened for their spam.
    pub spam_accounts: u32,
    /// Slot of the oldest transaction.
    pub first_slot: u64,
    /// Slot at which the planned trades are reached.
    pub last_slot: u64,
    /// Size of occasional bursts in one slot, at most 64.
    pub burst: u32,
    /// A run of transactions that are all in one slot.
    pub crowd: Option<Crowd>,
    /// All trades are of this kind, where it fits the side; `None` is the natural mix.
    pub only: Option<TradeKind>,
    /// After the plan, a transaction every so many slots as the head moves.
    pub live_every: Option<u64>,
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

pub(super) type WalletHistory = KnownWallet<32, WalletPlan>;

const HEIGHTS: Heights = Heights {
    of: slots::slot,
    ordinal: slots::ordinal,
    ordinal_below: slots::ordinal_below,
    spread: INDEX_SPREAD,
};

/// Plans state their own bounds.
pub(super) const MAKING: Making<WalletPlan> =
    Making { plan: WalletPlan::trades, shape: |plan, _| shape(plan), bounds: (0, 0) };

fn shape(plan: &WalletPlan) -> Shape {
    Shape {
        trades: plan.trades,
        failed_percent: plan.failed_percent,
        noise_percent: plan.noise_percent,
        first: slots::ordinal(plan.first_slot),
        last: slots::ordinal(plan.last_slot),
        burst: plan.burst,
        crowd: plan.crowd,
        live_every: plan.live_every,
        heights: HEIGHTS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::timeline::{Class, HistoryShape, Spot};

    fn history(plan: &WalletPlan) -> HistoryShape {
        HistoryShape::new(5, 7, shape(plan))
    }

    fn check(plan: WalletPlan) {
        let last = plan.last_slot;
        let wallet = history(&plan);
        let count = wallet.count_at(last);
        let trades = (0..count).filter(|n| matches!(wallet.class(*n), Class::Trade(_))).count();
        assert_eq!(u64::try_from(trades).unwrap(), plan.trades);
        let mut before: Option<Spot> = None;
        for number in 0..count {
            let spot = wallet.spot(number).unwrap();
            assert!(slots::has_block(spot.height));
            if let Some(before) = before {
                assert!((before.height, before.index) < (spot.height, spot.index), "{number}");
            }
            before = Some(spot);
            let through = wallet.count_at(spot.height);
            assert!(through > number);
            assert!(wallet.spot(through - 1).unwrap().height == spot.height);
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
        assert_eq!(history(&WalletPlan::trades(0)).count_at(u64::MAX), 0);
    }

    #[test]
    fn what_arrives_stands_above_the_head() {
        for live_every in [None, Some(30)] {
            let plan = WalletPlan { live_every, ..WalletPlan::trades(500) };
            let mut wallet = history(&plan);
            let mut head = slots::DEFAULT_HEAD;
            for _ in 0..5 {
                let before = wallet.count_at(head);
                let top = wallet.arrive(7, head);
                assert!(wallet.spot(before).unwrap().height > head);
                let count = wallet.count_at(top);
                let trades =
                    (before..count).filter(|n| matches!(wallet.class(*n), Class::Trade(_)));
                assert_eq!(trades.count(), 7);
                head = top + 1_000;
            }
        }
    }
}
