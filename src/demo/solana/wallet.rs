//! The parameters of a wallet's history.

use crate::demo::state::{KnownWallet, Making};
use crate::demo::timeline::{Heights, Plan};
use crate::domain::Height;

use super::{TradeKind, slots};

const HEIGHTS: Heights = Heights {
    of: slots::slot,
    ordinal: slots::ordinal,
    ordinal_below: slots::ordinal_below,
    spread: 400,
};
const BOUNDS: (Height, Height) = (slots::DEFAULT_FIRST, slots::DEFAULT_HEAD - 200);

pub type WalletPlan = Plan<TradeKind>;
pub(super) type WalletHistory = KnownWallet<32, TradeKind>;

pub(super) const MAKING: Making<TradeKind> =
    Making { plan: WalletPlan::trades, heights: HEIGHTS, bounds: BOUNDS };

impl WalletPlan {
    pub fn trades(trades: u64) -> Self {
        let (first, last) = BOUNDS;
        Self { trades, first: Some(first), last: Some(last), ..Self::new(8, 12) }
    }

    /// Every trade of one kind, and nothing else in between.
    pub fn only(kind: TradeKind, trades: u64) -> Self {
        Self { failed_percent: 0, noise_percent: 0, only: Some(kind), ..Self::trades(trades) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::timeline::{Class, Crowd, HistoryShape, Spot};

    fn history(plan: &WalletPlan) -> HistoryShape {
        HistoryShape::new((5, 7), plan, HEIGHTS, BOUNDS)
    }

    fn check(plan: WalletPlan) {
        let last = plan.last.unwrap();
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
        let (first, last) = (Some(1_000), Some(1_400));
        check(WalletPlan { first, last, burst: 0, ..WalletPlan::trades(100) });
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
