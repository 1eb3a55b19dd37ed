//! Pure: one list of the index, read downwards by time.
//!
//! Each page starts at the time of the last entry, inclusive, so that pages overlap and do not
//! depend on the index's cursor (`fingerprint`), which is used only if one moment fills more than a
//! page. A page without a cursor does not prove the end: that requires equal answers to the same
//! query, each with the overlap: two of different endpoints, or three of one; for an empty list,
//! four.

use super::blocks::BLOCK_MILLIS;
use super::wire::Page;
use crate::decode::evm::Word;
use crate::rpc::EndpointId;
use crate::sources::pager::{Overlap, PageOutcome, PageView, Pager, PagerRules, Quorum};

/// Entries per page; the index's maximum (`TronGrid` documentation).
pub(super) const PAGE_MAX: usize = 200;
/// Answers for the newest page.
const TOPS: u8 = 2;
/// Misses in a row after which a moment whose page is still short is passed, as one that may have
/// more entries: an index may name a cursor next to its last page too.
const SHORT_PAGE_MISSES: u32 = 2;
const END: Quorum = Quorum { from_several: 2, from_one: 3 };
const RULES: PagerRules = PagerRules {
    quorum: END,
    quorum_without_entries: Quorum { from_several: 4, from_one: 4 },
    short_page_votes: false,
    // The reader gives a list up by its own limit.
    misses_max: u32::MAX,
    pages_inside_max: 1000,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ListKind {
    /// Transactions that the wallet sent, or that paid TRX to it or called it.
    Transactions,
    /// Movements of its TRC-20 tokens.
    Transfers,
}

/// A list of an endpoint.
pub(super) type GivenList = (EndpointId, ListKind);

impl ListKind {
    pub(super) const BOTH: [Self; 2] = [Self::Transactions, Self::Transfers];
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListCursor {
    /// Milliseconds, inclusive: this moment and all below.
    pub(super) max: u64,
    pub(super) fingerprint: Option<String>,
    /// Milliseconds to add to `max`: blocks have whole seconds, so the answer is the same but no
    /// cache returns it.
    pub(super) nudge: u64,
    /// No entry is known yet: entries below the wanted heights are requested too, because any entry
    /// proves that the list is not empty by mistake.
    pub(super) is_first: bool,
}

impl ListCursor {
    fn at(max: u64) -> Self {
        Self { max, fingerprint: None, nudge: 0, is_first: false }
    }
}

#[derive(Debug)]
pub(super) struct IndexedList {
    pager: Pager<u64, Word>,
    pub(super) cursor: ListCursor,
    /// Answers for the newest entries, and where the shortest of them ended.
    tops: u8,
    top_end: u64,
    /// Entries of its longest page.
    longest: usize,
    /// Moments that filled a page without a cursor, so that further entries of them may be missing.
    cuts: Vec<u64>,
}

impl IndexedList {
    pub(super) fn new(top: u64) -> Self {
        let cursor = ListCursor { is_first: true, ..ListCursor::at(top) };
        Self {
            pager: Pager::new(RULES, top),
            cursor,
            tops: 0,
            top_end: 0,
            longest: 0,
            cuts: Vec::new(),
        }
    }

    pub(super) fn misses(&self) -> u32 {
        self.pager.misses()
    }

    /// Whether the next answer confirms the last one.
    pub(super) fn is_second_look(&self) -> bool {
        self.pager.votes() > 0 || self.pager.misses() > 0 || self.tops == 1
    }

    pub(super) fn is_begun(&self) -> bool {
        self.pager.has_ended() || !self.cursor.is_first
    }

    /// The moment at and below which entries may be unknown; `None`: all above `floor` are known.
    pub(super) fn frontier(&self, floor: u64) -> Option<u64> {
        let below = self.pager.edge();
        (!self.pager.has_ended() && below > floor).then_some(below)
    }

    /// The moment above which the list was returned at least once; `u64::MAX` if it was not.
    pub(super) fn shown_above(&self) -> u64 {
        match self.tops {
            _ if self.is_begun() => self.pager.edge(),
            0 => u64::MAX,
            _ => self.top_end,
        }
    }

    /// Processes a page; false if it cannot be right and must be queried again.
    pub(super) fn absorb(&mut self, page: &Page, by: EndpointId) -> bool {
        if self.is_wrong(page) {
            return self.missed();
        }
        self.longest = self.longest.max(page.items);
        if self.is_cut(page) || self.is_short(page) {
            self.pass_moment();
            return true;
        }
        let lowest = page.rows.iter().map(|row| row.at).min().filter(|at| *at < self.cursor.max);
        if let Some(lowest) = lowest.filter(|_| self.cursor.is_first) {
            self.absorb_top(page, lowest);
            return true;
        }
        let view = PageView {
            entries: page.rows.iter().map(|row| (row.at, row.id)).collect(),
            overlap: if self.is_overlapped(page) { Overlap::Any } else { Overlap::Nothing },
            has_more: lowest.is_none() && page.fingerprint.is_some(),
            by: Some(by),
        };
        match self.pager.absorb(&view) {
            PageOutcome::Lower(lowest) => self.cursor = ListCursor::at(lowest),
            PageOutcome::Inside { .. } => self.cursor.fingerprint.clone_from(&page.fingerprint),
            PageOutcome::Nothing => {
                // A cursor of the index is valid only with the same query.
                let is_followed = self.cursor.fingerprint.is_some();
                self.cursor.nudge = if is_followed { 0 } else { u64::from(self.pager.votes()) };
            }
            PageOutcome::Miss => {
                self.cursor.fingerprint = None;
                return false;
            }
            PageOutcome::Lost => return self.missed(),
        }
        true
    }

    /// Continues at the time of the next lower block, as this moment may have more entries than the
    /// list returned. Queries reach past the cursor's time by less than that.
    fn pass_moment(&mut self) {
        let moment = self.cursor.max;
        self.cuts.push(moment);
        match moment.checked_sub(BLOCK_MILLIS) {
            Some(below) => {
                self.pager.move_to(below, []);
                self.cursor = ListCursor::at(below);
            }
            None => self.pager.end(),
        }
    }

    /// Whether a moment at or above this one was returned in part; each is reported once.
    pub(super) fn take_cuts(&mut self, reached: u64) -> bool {
        let before = self.cuts.len();
        self.cuts.retain(|at| *at < reached);
        self.cuts.len() < before
    }

    /// Counts a miss. The known entries of the current moment may have been taken for complete too
    /// early, so it is read from its first page again.
    fn missed(&mut self) -> bool {
        self.pager.miss();
        self.cursor.fingerprint = None;
        false
    }

    /// The newest page is queried twice, because a lagging server omits entries without a sign. The
    /// list continues where the shorter answer ends.
    fn absorb_top(&mut self, page: &Page, lowest: u64) {
        self.tops += 1;
        self.top_end = self.top_end.max(lowest);
        if self.tops < TOPS {
            self.pager.move_to(self.cursor.max, []);
            self.cursor.nudge = u64::from(self.tops);
            return;
        }
        let end = self.top_end;
        let at_end = page.rows.iter().filter(|row| row.at == end);
        self.pager.move_to(end, at_end.map(|row| row.id));
        self.cursor = ListCursor::at(end);
    }

    /// Whether the page must contain entries of its first moment: not if it continues at the
    /// index's cursor, or if that moment fills it, as others may come first.
    fn is_overlapped(&self, page: &Page) -> bool {
        let fills = page.fingerprint.is_some() && self.is_of_one_moment(page);
        self.cursor.fingerprint.is_none() && !fills
    }

    fn is_of_one_moment(&self, page: &Page) -> bool {
        page.rows.iter().all(|row| row.at == self.cursor.max)
    }

    fn is_wrong(&self, page: &Page) -> bool {
        let ListCursor { max, fingerprint, .. } = &self.cursor;
        let unordered = !page.rows.is_sorted_by(|one, next| one.at >= next.at);
        let above = page.rows.iter().any(|row| row.at > *max);
        let circles = page.fingerprint.is_some() && page.fingerprint == *fingerprint;
        // An earlier answer had entries.
        let vanished = self.tops > 0 && self.cursor.is_first && page.rows.is_empty();
        let is_cut = self.is_cut(page) && self.pager.misses() == 0;
        let may_pass = page.items > 0 && !self.cursor.is_first;
        let is_short =
            self.is_short(page) && !(may_pass && self.pager.misses() >= SHORT_PAGE_MISSES);
        unordered || vanished || above || circles || is_short || is_cut
    }

    /// Whether a page of one moment is short and names a cursor, which leads past the entries that
    /// it lacks. Whole pages differ in size too: entries may be repeated, and each index has a
    /// limit of its own.
    fn is_short(&self, page: &Page) -> bool {
        let follows = page.fingerprint.is_some() && self.is_of_one_moment(page) && !page.is_full;
        follows && page.items < self.longest.div_ceil(2).max(1)
    }

    /// Whether a page is full, of one moment, and without a cursor: then it shows nothing below,
    /// and the moment may have more entries.
    fn is_cut(&self, page: &Page) -> bool {
        let is_full = page.is_full || page.items >= PAGE_MAX;
        is_full
            && !page.rows.is_empty()
            && page.fingerprint.is_none()
            && self.is_of_one_moment(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tron::seen::SeenTx;
    use crate::sources::tron::wire::FoundRow;

    fn row(at: u64, number: u8) -> FoundRow {
        FoundRow { id: [number; 32], at, height: None, seen: SeenTx::default() }
    }

    fn page(rows: &[(u64, u8)], fingerprint: Option<&str>) -> Page {
        let rows: Vec<FoundRow> = rows.iter().map(|(at, number)| row(*at, *number)).collect();
        let fingerprint = fingerprint.map(str::to_owned);
        Page { items: rows.len(), rows, is_full: false, fingerprint }
    }

    /// A list whose newest page was given twice.
    fn begun(rows: &[(u64, u8)], fingerprint: Option<&str>) -> IndexedList {
        let mut list = IndexedList::new(100);
        list.absorb(&page(rows, fingerprint), ONE);
        assert_eq!((list.frontier(0), list.is_second_look()), (Some(100), true));
        list.absorb(&page(rows, fingerprint), ONE);
        list
    }

    #[test]
    fn the_newest_entries_are_asked_for_twice() {
        let mut list = IndexedList::new(100);
        list.absorb(&page(&[(80, 2), (70, 3)], Some("a")), ONE);
        assert_eq!(&list.cursor, &ListCursor { nudge: 1, is_first: true, ..ListCursor::at(100) });
        assert!(!list.absorb(&page(&[], None), OTHER));
        // A server that was behind lacked the newest entries; those that the other server did not
        // show are requested again.
        list.absorb(&page(&[(90, 1), (80, 2)], Some("a")), OTHER);
        assert_eq!((&list.cursor, list.frontier(0)), (&ListCursor::at(80), Some(80)));
        assert!(!list.absorb(&page(&[(70, 3)], None), ONE));
    }

    const ONE: EndpointId = EndpointId(0);
    const OTHER: EndpointId = EndpointId(1);

    #[test]
    fn pages_overlap_and_two_endpoints_end_the_list() {
        let mut list = IndexedList::new(100);
        assert_eq!(list.frontier(0), Some(100));
        assert!(list.cursor.is_first);
        for _ in 0..2 {
            assert!(list.absorb(&page(&[(90, 1), (80, 2)], Some("a")), ONE));
        }
        assert_eq!((list.cursor.max, list.frontier(0)), (80, Some(80)));
        assert!(!list.cursor.is_first);
        assert!(list.absorb(&page(&[(80, 2), (70, 3)], None), ONE));
        // Two answers show nothing below 70.
        assert!(list.absorb(&page(&[(70, 3)], None), ONE));
        assert_eq!((list.frontier(0), list.cursor.nudge), (Some(70), 1));
        assert!(list.absorb(&page(&[(70, 3)], None), OTHER));
        assert_eq!(list.frontier(0), None);
    }

    #[test]
    fn one_endpoint_is_asked_three_times_for_the_end() {
        let mut list = begun(&[(90, 1)], None);
        for _ in 0..2 {
            list.absorb(&page(&[(90, 1)], None), ONE);
            assert_eq!(list.frontier(0), Some(90));
        }
        // Another entry of that moment: the answers so far lacked it.
        list.absorb(&page(&[(90, 1), (90, 2)], None), ONE);
        assert_eq!(list.frontier(0), Some(90));
        // A further entry, below that moment.
        list.absorb(&page(&[(90, 1), (90, 2), (60, 3)], None), ONE);
        assert_eq!((list.cursor.max, list.frontier(0)), (60, Some(60)));
        for votes in 1..=3 {
            list.absorb(&page(&[(60, 3)], None), ONE);
            assert_eq!(list.frontier(0).is_none(), votes == 3);
        }
    }

    #[test]
    fn an_empty_list_is_asked_for_again() {
        let mut list = IndexedList::new(100);
        for by in [ONE, OTHER, ONE] {
            list.absorb(&page(&[], None), by);
            assert!(list.frontier(0).is_some() && list.is_second_look());
            assert!(list.cursor.is_first);
        }
        list.absorb(&page(&[], None), OTHER);
        assert_eq!(list.frontier(0), None);
    }

    #[test]
    fn a_short_page_whose_cursor_leads_past_its_moment_is_asked_for_again() {
        let mut first = IndexedList::new(100);
        assert!(!first.absorb(&page(&[], Some("a")), ONE));
        assert_eq!((first.frontier(0), &first.cursor.fingerprint), (Some(100), &None));
        let mut list = begun(&[(90, 1), (85, 3), (80, 2)], Some("a"));
        let cut = [(80, 2)];
        for (misses, rows) in [(1, &cut[..0]), (2, &cut[..]), (3, &cut[..0])] {
            assert!(!list.absorb(&page(rows, Some("b")), ONE));
            assert_eq!((list.misses(), list.frontier(0)), (misses, Some(80)));
            assert_eq!(list.cursor.fingerprint, None);
        }
        // One whose entries are of no interest is followed.
        let approvals = Page { items: 200, ..page(&[], Some("b")) };
        assert!(list.absorb(&approvals, ONE));
        assert_eq!(list.cursor.fingerprint.as_deref(), Some("b"));
        // So is a full one of an endpoint whose pages are shorter than those of another one.
        let full: Vec<(u64, u8)> = (2..22).map(|number| (80, number)).collect();
        let full = Page { is_full: true, ..page(&full, Some("c")) };
        assert!(list.absorb(&full, OTHER));
        assert_eq!(list.cursor.fingerprint.as_deref(), Some("c"));
    }

    /// Its cursor is never followed.
    #[test]
    fn a_moment_whose_page_is_short_in_each_answer_is_passed_in_doubt() {
        let mut list = IndexedList::new(10_000);
        for _ in 0..2 {
            list.absorb(&page(&[(9_000, 1), (8_000, 2), (6_000, 3)], Some("a")), ONE);
        }
        let short = page(&[(6_000, 3)], Some("b"));
        for is_passed in [false, false, true] {
            assert_eq!(list.absorb(&short, ONE), is_passed);
        }
        assert_eq!((&list.cursor, list.frontier(0)), (&ListCursor::at(3_000), Some(3_000)));
        assert!(list.take_cuts(6_000));
    }

    #[test]
    fn a_moment_that_fills_a_page_is_followed() {
        let mut list = begun(&[(90, 1), (80, 2)], Some("a"));
        list.absorb(&page(&[(80, 4), (80, 5)], Some("b")), ONE);
        assert_eq!(list.cursor.fingerprint.as_deref(), Some("b"));
        assert_eq!(list.frontier(0), Some(80));
        // A list that returns the same cursor again would never end.
        assert!(!list.absorb(&page(&[(80, 6)], Some("b")), ONE));
        list.absorb(&page(&[(80, 4), (80, 5)], Some("b")), ONE);
        list.absorb(&page(&[(80, 2), (70, 3)], Some("c")), ONE);
        assert_eq!((list.cursor.max, list.cursor.fingerprint.as_ref()), (70, None));
    }

    #[test]
    fn a_moment_that_fills_a_page_without_a_cursor_ends_no_list() {
        let mut list = IndexedList::new(10_000);
        for _ in 0..2 {
            list.absorb(&page(&[(9_000, 1), (6_000, 2)], Some("a")), ONE);
        }
        let full: Vec<(u64, u8)> = (0..200).map(|number| (6_000, number)).collect();
        assert!(!list.absorb(&page(&full, None), ONE), "asked for again");
        for by in [ONE, OTHER] {
            assert!(list.absorb(&page(&full, None), by) == (by == ONE), "it is above the cursor");
            assert_eq!((&list.cursor, list.frontier(0)), (&ListCursor::at(3_000), Some(3_000)));
        }
        assert!(list.absorb(&page(&[(3_000, 3), (700, 4)], None), ONE));
        assert_eq!(list.frontier(0), Some(700));
        // It is not known what else belongs to that moment.
        assert_eq!([6_001, 6_000, 6_000].map(|at| list.take_cuts(at)), [false, true, false]);
    }

    #[test]
    fn a_page_that_lacks_the_overlap_or_the_order_is_no_answer() {
        let mut list = begun(&[(90, 1), (80, 2)], Some("a"));
        for wrong in [&[][..], &[(70, 3)], &[(70, 3), (80, 2)], &[(99, 3), (80, 2)]] {
            assert!(!list.absorb(&page(wrong, None), ONE));
        }
        assert_eq!((list.misses(), list.frontier(0)), (4, Some(80)));
        list.absorb(&page(&[(80, 2), (70, 3)], Some("b")), ONE);
        assert_eq!((list.misses(), list.frontier(0)), (0, Some(70)));
    }

    #[test]
    fn what_is_not_wanted_is_not_waited_for() {
        let list = begun(&[(90, 1), (40, 2)], Some("a"));
        assert_eq!(list.frontier(40), None);
        assert_eq!(list.frontier(39), Some(40));
    }
}
