//! Transactions of accounts that were found late, in heights that are delivered already.
//!
//! An account that another authority closed in a transaction that does not name the wallet is
//! neither open at the head nor seen to close. It is found by the newest transaction that names
//! both; the entries of its list above that place are delivered apart from the heights in order.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::hint::Mark;
use super::list::Entry;
use super::timeline::Timed;
use crate::domain::{Height, TxId};

#[derive(Debug, Default)]
pub(super) struct LateEntries {
    seen: BTreeSet<Mark>,
    waiting: Vec<Entry>,
    /// Requested transactions, and how often no endpoint returned one that waits.
    in_flight: HashSet<TxId>,
    retries: HashMap<TxId, u32>,
    ready: Vec<Timed>,
}

impl LateEntries {
    /// Adds the entries above a height whose transactions did not fail.
    pub(super) fn add(&mut self, entries: &[Entry], above: Height) {
        for entry in entries {
            if entry.slot > above && !entry.has_failed() && self.seen.insert((entry.slot, entry.id))
            {
                self.waiting.push(*entry);
            }
        }
    }

    /// Leaves out transactions that are delivered while a late account's list is read: other lists
    /// have them too.
    pub(super) fn skip(&mut self, delivered: impl Iterator<Item = Mark>) {
        self.seen.extend(delivered);
    }

    /// Forgets transactions above the highest slot that a page can still hold.
    pub(super) fn forget_above(&mut self, reach: Height) {
        if let Some(above) = reach.checked_add(1) {
            self.seen.split_off(&(above, TxId::solana(&[0; 64])));
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.waiting.is_empty() || !self.in_flight.is_empty()
    }

    pub(super) fn is_in_flight(&self, id: &TxId) -> bool {
        self.in_flight.contains(id)
    }

    /// Takes up to `count` entries to request, and the highest number of retries among them.
    pub(super) fn take(&mut self, count: usize) -> (Vec<Entry>, u32) {
        let at = self.waiting.len().saturating_sub(count);
        let taken = self.waiting.split_off(at);
        self.in_flight.extend(taken.iter().map(|entry| entry.id));
        let retries = taken.iter().filter_map(|entry| self.retries.get(&entry.id)).max();
        let retries = retries.copied().unwrap_or(0);
        (taken, retries)
    }

    pub(super) fn put(&mut self, id: &TxId, tx: Timed) {
        self.in_flight.remove(id);
        self.ready.push(tx);
    }

    /// No endpoint returned the transaction: it waits again. Returns how often this happened.
    pub(super) fn mark_for_retry(&mut self, entry: Entry) -> u32 {
        self.in_flight.remove(&entry.id);
        self.waiting.push(entry);
        let retries = self.retries.entry(entry.id).or_default();
        *retries += 1;
        *retries
    }

    pub(super) fn give_up(&mut self, id: &TxId) {
        self.waiting.retain(|entry| entry.id != *id);
    }

    /// All received transactions, newest first.
    pub(super) fn take_ready(&mut self) -> Vec<Timed> {
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_by_key(|(tx, _)| std::cmp::Reverse(tx.slot()));
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(slot: Height) -> Entry {
        Entry { slot, id: TxId::solana(&[7; 64]), time: None, failed: None }
    }

    #[test]
    fn what_no_page_can_hold_is_forgotten() {
        let mut late = LateEntries::default();
        late.skip((10..1000).map(|slot| (slot, TxId::solana(&[7; 64]))));
        late.forget_above(Height::MAX);
        assert_eq!(late.seen.len(), 990);
        late.forget_above(19);
        assert_eq!(late.seen.len(), 10);
        // Known transactions are skipped; forgotten ones are reported again.
        late.add(&[entry(15), entry(19)], 5);
        assert!(!late.is_open());
        late.add(&[entry(20)], 5);
        assert!(late.is_open());
    }
}
