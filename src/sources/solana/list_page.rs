//! Pure: a page of a list of signatures, from one answer or joined from two.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::list::Entry;
use crate::domain::{Height, TxId};
use crate::rpc::EndpointId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListPage {
    pub(super) entries: Vec<Entry>,
    /// More may follow: the page is full, or another answer holds more.
    pub(super) goes_on: bool,
    pub(super) by: EndpointId,
}

impl ListPage {
    pub(super) fn new(entries: Vec<Entry>, goes_on: bool, by: EndpointId) -> Self {
        Self { entries, goes_on, by }
    }

    /// Takes a page that begins otherwise for an empty one: it is in another order than the page that
    /// it goes on from.
    pub(super) fn beginning_with(mut self, first: Option<TxId>) -> Self {
        if first.is_some() && self.entries.first().map(|entry| entry.id) != first {
            self.entries.clear();
        }
        self
    }

    /// Where the page ends, if that is below the lowest slot of the list so far and its entries are
    /// in order.
    pub(super) fn end_below(&self, lowest: Option<Height>) -> Option<Height> {
        let end = self.end()?;
        let is_below = lowest.is_none_or(|lowest| end < lowest);
        let is_sorted = self.entries.is_sorted_by(|one, next| one.slot >= next.slot);
        (is_below && is_sorted).then_some(end)
    }

    fn end(&self) -> Option<Height> {
        Some(self.entries.last()?.slot)
    }

    /// The union of two answers to one page, as far down as both reach. A transaction that only one
    /// of them marks as failed is asked for. An answer that does not reach below the list's lowest
    /// slot, or is not in order, is ignored in favour of the other one: a node that keeps no more
    /// must not hide what follows. The last entries of a slot are in the order of one answer.
    pub(super) fn joined(self, other: Self, lowest: Option<Height>) -> Self {
        let low = match (self.end_below(lowest), other.end_below(lowest)) {
            (Some(end), Some(other)) => end.max(other),
            (None, Some(_)) => return other,
            (Some(_), None) => return self,
            (None, None) if self.entries.is_empty() => return other,
            (None, None) => lowest.unwrap_or_default(),
        };
        let is_lower = other.end().is_some_and(|end| self.end().is_none_or(|own| end < own));
        let by = if is_lower { other.by } else { self.by };
        let known: HashMap<TxId, Option<bool>> =
            other.entries.iter().map(|entry| (entry.id, entry.failed)).collect();
        let own: HashSet<TxId> = self.entries.iter().map(|entry| entry.id).collect();
        let settled = |entry: Entry| {
            let is_settled = known.get(&entry.id).is_none_or(|failed| *failed == entry.failed);
            Entry { failed: entry.failed.filter(|_| is_settled), ..entry }
        };
        let more = other.entries.into_iter().filter(|entry| !own.contains(&entry.id));
        let mut entries: Vec<Entry> = more.chain(self.entries.into_iter().map(settled)).collect();
        let shown = entries.len();
        entries.retain(|entry| entry.slot >= low);
        entries.sort_by_key(|entry| Reverse(entry.slot));
        let goes_on = self.goes_on || other.goes_on || entries.len() < shown;
        Self { entries, goes_on, by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: EndpointId = EndpointId(0);
    const OTHER: EndpointId = EndpointId(1);

    fn page(slots: &[Height], by: EndpointId) -> ListPage {
        let entry = |slot: &Height| {
            let id = TxId::solana(&[u8::try_from(*slot).unwrap(); 64]);
            Entry { slot: *slot, id, time: None, failed: None }
        };
        ListPage::new(slots.iter().map(entry).collect(), false, by)
    }

    /// Two answers for a page below slot 9, joined.
    fn below_nine(one: &[Height], other: &[Height]) -> ListPage {
        page(one, ONE).joined(page(other, OTHER), Some(9))
    }

    #[test]
    fn a_page_holds_all_that_either_of_two_answers_holds() {
        for (one, other, all) in [
            (&[9, 8, 7][..], &[9, 8, 7][..], &[9, 8, 7][..]),
            (&[9, 7, 5], &[9, 8, 7], &[9, 8, 7]),
            (&[9, 8], &[9, 8, 7, 3], &[9, 8]),
            // One answer is of a lagging server: neither page has the slots in between.
            (&[9, 8, 7], &[5, 4], &[9, 8, 7]),
            // A page has nothing below the lowest entry so far, or is not in order.
            (&[9], &[9, 8, 7, 3], &[9, 8, 7, 3]),
            (&[12, 11, 9], &[12, 9, 8], &[12, 9, 8]),
            (&[9], &[9], &[9]),
            (&[12, 9], &[11, 9], &[12, 11, 9]),
            (&[], &[9, 8], &[9, 8]),
            (&[9, 8], &[], &[9, 8]),
            (&[], &[9], &[9]),
            (&[7, 9, 2], &[9, 8, 7], &[9, 8, 7]),
        ] {
            let slots: Vec<Height> =
                below_nine(one, other).entries.iter().map(|entry| entry.slot).collect();
            assert_eq!(slots, all, "{one:?} {other:?}");
        }
    }

    /// The newest page does not continue from an entry that only a lagging server returns.
    #[test]
    fn the_newest_page_goes_no_further_than_both_answers() {
        let joined = page(&[9], ONE).joined(page(&[6, 5, 4], OTHER), None);
        assert_eq!(joined, ListPage { goes_on: true, ..page(&[9], OTHER) });
    }

    /// The next page may be requested from the last entry but one, and must begin with the last one.
    #[test]
    fn a_slot_ends_in_the_order_of_one_answer() {
        let entry = |number: u8| Entry {
            slot: 9,
            id: TxId::solana(&[number; 64]),
            time: None,
            failed: None,
        };
        let page =
            |of: &[u8], by| ListPage::new(of.iter().map(|it| entry(*it)).collect(), false, by);
        let joined = page(&[1, 2, 3], ONE).joined(page(&[4, 3, 2, 5], OTHER), Some(9));
        assert_eq!(joined, page(&[4, 5, 1, 2, 3], ONE));
        let begun = |first: Option<u8>| {
            let first = first.map(|number| entry(number).id);
            page(&[1, 2], ONE).beginning_with(first).entries.len()
        };
        assert_eq!([begun(None), begun(Some(1)), begun(Some(2))], [2, 2, 0]);
    }

    #[test]
    fn a_transaction_failed_if_both_answers_say_so() {
        let marked = |failed| {
            let mut page = page(&[9], ONE);
            page.entries.iter_mut().for_each(|entry| entry.failed = failed);
            page
        };
        for one in [Some(true), Some(false), None] {
            for other in [Some(true), Some(false), None] {
                let joined = marked(one).joined(marked(other), None);
                let failed = joined.entries.first().unwrap().failed;
                assert_eq!(failed, one.filter(|_| one == other), "{one:?} {other:?}");
            }
        }
    }

    /// Entries that one answer shows below the end of the other one show that the list goes on; the
    /// page counts as that of the endpoint that showed them.
    #[test]
    fn what_only_one_answer_shows_further_down_is_no_end() {
        assert!(!below_nine(&[9, 8], &[9, 8]).goes_on);
        for (one, other, by) in [(&[9, 8][..], &[9, 8, 7][..], OTHER), (&[9, 8, 7], &[9, 8], ONE)] {
            let joined = below_nine(one, other);
            assert_eq!((joined.goes_on, joined.by), (true, by), "{one:?} {other:?}");
        }
        assert_eq!(below_nine(&[12, 9], &[9, 8]).by, OTHER);
        assert_eq!(below_nine(&[], &[9]).by, OTHER);
        // Neither page is in order, so neither shows an end.
        assert!(below_nine(&[7, 9, 8], &[8, 9, 7]).goes_on);
    }
}
