//! Lists an account once more of which a transaction is missing, by its balances.

use super::ListReader;
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

    /// Lists the account again from the top, at another endpoint: the missing entry may be above the
    /// delivered heights. An entry that the second list lacks too is accepted as absent.
    fn list_again(&mut self, BalanceGap { account, low, high }: BalanceGap) {
        let before = self.listed.get(&account).and_then(|number| self.listings.get_mut(*number));
        let Some(before) = before.filter(|before| !before.is_relisted) else {
            tracing::debug!(low, high, "what balances show to be missing is in no list");
            return;
        };
        let list = List::new(Kind::Account, self.request.low, self.timeline.next_high);
        let again = before.again(list);
        self.list_by(again);
    }
}
