//! Which token accounts of the wallet are listed, and what of them is reported for later reads.

use super::ListReader;
use crate::decode::solana::Transaction;
use crate::domain::{Doubts, Height, SourceAccount};
use crate::sources::chunk::LateAccounts;
use crate::sources::solana::list::{Kind, List};
use crate::sources::solana::listing::{LateState, Listing};
use crate::sources::solana::open::Opening;
use crate::sources::solana::wire::Balance;

impl ListReader {
    /// Accounts that no earlier read has asked for are listed as those that are known. What they hold
    /// is left open: the next read from the head lists them too.
    pub(super) fn add_accounts(&mut self, opening: Opening) {
        self.request.knows_accounts = true;
        if opening.accounts.is_none() {
            self.doubts = self.doubts.union(Doubts::TOKEN_ACCOUNTS);
        }
        for Balance { account, .. } in opening.accounts.unwrap_or_default() {
            if !self.known.contains_key(&account) {
                let open = Some(SourceAccount::OPEN);
                let found = SourceAccount { account, amount: open, oldest: None };
                self.request.accounts.push(found);
                self.known.insert(account, found);
                self.news.insert(account, found);
            }
        }
        self.begin();
    }

    /// Lists accounts of the wallet that a transaction shows, where nothing else has shown that they are
    /// to be listed.
    pub(super) fn list_shown(&mut self, tx: &Transaction, slot: Height) {
        let is_from_head = self.request.high.is_none();
        let is_delivered = slot > self.timeline.next_high;
        for account in tx.closed_token_accounts(&self.wallet) {
            let mut known = self.known.get_mut(&account);
            // Its list was read to an end above this slot, which was none: this close is not in it.
            let ended = known.as_mut().and_then(|known| known.oldest.take_if(|end| *end > slot));
            // Of one that is open again, and holds what it did, nothing above is listed yet.
            let is_open = known.as_ref().is_some_and(|known| known.amount.is_some());
            let may_lack = if is_delivered {
                // What those above a read have reported was theirs to list.
                is_from_head || known.is_none()
            } else {
                is_from_head && is_open
            };
            let is_late = may_lack || ended.is_some();
            self.list_found(account, slot, is_late);
        }
        for (account, amounts) in tx.held_token_accounts(&self.wallet) {
            let is_found = match self.known.get(&account) {
                // Neither open at the head nor closed in a transaction above: another authority closed
                // it.
                None => true,
                // It holds what it did at the last head, and held something else in between; or it was
                // closed, and has been opened and closed since.
                Some(known) => is_from_head && amounts.iter().flatten().any(|it| !known.held(*it)),
            };
            if is_found {
                self.list_found(account, slot, true);
            }
        }
    }

    /// Lists an account that was found in a transaction. `is_late`: entries above that transaction are of
    /// the wallet too.
    fn list_found(&mut self, account: [u8; 32], slot: Height, is_late: bool) {
        let high = slot.min(self.timeline.next_high);
        let before = self.listed.get(&account).and_then(|number| self.listings.get_mut(*number));
        if let Some(before) = before {
            // Answers come in any order: one of further up may come after the list was begun for one
            // below, by a node that has come so far, and no further.
            let wanted = if is_late { slot } else { high };
            if before.late != LateState::Unwanted || wanted <= before.list.high {
                return;
            }
            before.retire();
        }
        let list = List::new(Kind::Account, self.request.low, high);
        let mut listing = Listing::new(account, list);
        listing.late = if is_late { LateState::Wanted } else { LateState::Unwanted };
        self.list_by(listing);
        if is_late {
            // Until what is above is here, another read must find it as this one did.
            self.news.remove(&account);
            return;
        }
        let closed = SourceAccount { account, amount: None, oldest: None };
        self.news.entry(account).or_insert(closed);
    }

    /// News of accounts for the next chunk, whose highest slot is `high`.
    pub(super) fn take_news(&mut self, high: Height) -> (Vec<SourceAccount>, LateAccounts) {
        let mut reports_late = false;
        for listing in &mut self.listings {
            let account = listing.address;
            let closed = SourceAccount { account, amount: None, oldest: None };
            let known = self.known.get(&account).copied().unwrap_or(closed);
            // Reported once all above the place where it was found is here: what goes on below would
            // not look there again.
            if listing.is_late() && listing.list.is_known_above() {
                listing.late = LateState::Known;
                reports_late = true;
                self.news.entry(account).or_insert(known);
            }
            let has_ended = listing.is_whole() && !listing.is_late() && !listing.is_reported;
            listing.is_reported |= has_ended;
            if !has_ended || listing.list.kind != Kind::Account {
                continue;
            }
            let news = self.news.entry(account).or_insert(known);
            // Something has shown the account, so that its list cannot be empty.
            if listing.list.lowest.is_none() && news.amount != Some(SourceAccount::OPEN) {
                self.doubts = self.doubts.union(Doubts::UNCONFIRMED);
                continue;
            }
            news.oldest = Some(listing.list.lowest.unwrap_or(high));
        }
        let accounts: Vec<SourceAccount> = self.news.drain().map(|(_, account)| account).collect();
        for account in &accounts {
            self.known.insert(account.account, *account);
        }
        let waits = self.listings.iter().any(Listing::is_late);
        let late_accounts = match (reports_late, waits) {
            (false, _) => LateAccounts::Unreported,
            (true, true) => LateAccounts::Partly,
            (true, false) => LateAccounts::All,
        };
        (accounts, late_accounts)
    }
}
