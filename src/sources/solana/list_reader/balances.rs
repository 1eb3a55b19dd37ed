//! Lists an account once more of which a transaction is missing, by its balances.

use super::ListReader;
use crate::decode::solana::Transaction;
use crate::domain::Height;
use crate::sources::solana::balance_chain::BalanceGap;
use crate::sources::solana::list::{Kind, List};
use crate::sources::solana::listing::{LateState, Listing};

impl ListReader {
    /// Looks at the balances of what can be delivered.
    pub(super) fn check_balances(&mut self, frontier: Option<Height>) {
        let listing = |account: &[u8; 32]| {
            let listing = self.listings.get(*self.listed.get(account)?)?;
            (listing.list.kind == Kind::Account && !listing.is_late()).then_some(listing)
        };
        let is_listed = |account: &[u8; 32], slot| {
            let is_covered = |of: &Listing| slot <= of.list.high || of.late == LateState::Known;
            listing(account).is_some_and(is_covered)
        };
        let is_oldest = |account: &[u8; 32], slot| {
            listing(account).is_some_and(|of| of.is_whole() && of.list.lowest == Some(slot))
        };
        let settled: Vec<_> = self.timeline.settled(frontier).collect();
        let gaps = self.chain.add(&settled, is_listed, is_oldest);
        for gap in gaps {
            self.list_again(gap);
        }
    }

    /// From the top, as what is missing may be above what is delivered. What a second list lacks too
    /// is believed.
    fn list_again(&mut self, gap: BalanceGap) {
        let before =
            self.listed.get(&gap.account).and_then(|number| self.listings.get_mut(*number));
        if before.as_ref().is_none_or(|before| before.is_relisted) {
            return;
        }
        before.into_iter().for_each(Listing::retire);
        let list = List::new(Kind::Account, self.request.low, self.timeline.next_high);
        let mut again = Listing::new(gap.account, list);
        (again.late, again.is_relisted) = (LateState::Wanted, true);
        self.list_by(again);
        self.gaps.push(gap);
    }

    pub(super) fn fill_gaps(&mut self, tx: &Transaction, slot: Height) {
        self.gaps.retain(|gap| !gap.is_filled_by(tx, slot));
    }

    /// Of gaps in delivered heights, what is missing was not found.
    pub(super) fn pass_gaps(&mut self, low: Height) {
        self.gaps.retain(|gap| gap.low.max(self.request.low) < low);
    }
}
