//! Pure: one list of an account, read downwards page by page.
//!
//! Indexes cut pages at undocumented limits, also inside a block. A block is complete only once a
//! lower one was seen, or once a page that cannot have been cut ends with it; paging continues AT
//! the lowest block seen, and that page must contain its known rows. A list has ended only when two
//! pages agree that nothing follows, and one that is read from its lowest entry up begins there: an
//! answer that is cut at a known row looks like an end, but shows the lowest entries if it is asked
//! for them.

use super::list_row::ListRow;
use crate::decode::evm::Word;
use crate::domain::Height;
use crate::sources::pager::{Overlap, PageOutcome, PageView, Pager, PagerRules, Quorum};

/// Every page is already an answer that two requests agree on, so one page ends a list with known
/// rows.
const RULES: PagerRules = PagerRules {
    quorum: Quorum { from_several: 1, from_one: 1 },
    quorum_without_entries: Quorum { from_several: 2, from_one: 2 },
    short_page_votes: false,
    misses_max: 4,
    pages_inside_max: u32::MAX,
};
/// Consecutive rows that may repeat the page before: equal transfers of one transaction look alike.
const REPEATS_MAX: usize = 64;

/// Pages of a single block.
const PAGES_MAX: u32 = 10_000;

/// A page to query: rows from height `end` downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageAsk {
    pub(super) low: Height,
    pub(super) end: Height,
    /// Page number, from 1.
    pub(super) page: u32,
    /// Rows per page; `None`: as many as the list returns.
    pub(super) rows: Option<usize>,
    /// The page confirms an end that two answers have shown: one more answer, from the lowest entry
    /// up, suffices if it [shows that end](Descent::shows_end).
    pub(super) confirms_end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DescentOutcome {
    Taken,
    /// The page lacks known rows: query it again, on another endpoint if possible.
    Missed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ListFault {
    #[error("rows are not in the order asked for")]
    Disordered,
    #[error("pages repeat each other")]
    Repeats,
    #[error("pages lack what others held")]
    Misses,
}

#[derive(Debug, Clone)]
pub(super) struct Descent {
    low: Height,
    pager: Pager<Height, Word>,
    /// Known rows, newest first.
    rows: Vec<ListRow>,
    /// Rows of the edge's block on pages that contain no other block.
    inside: Option<SingleBlockPages>,
    /// Rows of the edge's block on the last page, if it held other blocks too: they are taken with
    /// the next page, which is shorter and so not cut.
    edge_rows: Vec<ListRow>,
    expects_end: bool,
    /// The last answer began with the known rows of the edge, from the lowest entry up.
    is_end_shown: bool,
    /// Consecutive such answers that did not.
    denials: u32,
}

#[derive(Debug, Clone)]
struct SingleBlockPages {
    page: u32,
    /// Number of rows on each page.
    size: usize,
    rows: Vec<ListRow>,
    last: Vec<ListRow>,
    repeats: usize,
}

impl Descent {
    pub(super) fn new(low: Height, high: Height) -> Self {
        let mut pager = Pager::new(RULES, high);
        if high < low {
            pager.end();
        }
        let (rows, edge_rows) = (Vec::new(), Vec::new());
        let (expects_end, is_end_shown) = (false, false);
        Self { low, pager, rows, inside: None, edge_rows, expects_end, is_end_shown, denials: 0 }
    }

    /// The lowest height with all rows known from it up; `None` if there is none yet.
    pub(super) fn known_from(&self) -> Option<Height> {
        if self.is_ended() { Some(self.low) } else { self.pager.edge().checked_add(1) }
    }

    pub(super) fn is_ended(&self) -> bool {
        self.pager.has_ended()
    }

    /// Known rows that were not taken yet, newest first.
    pub(super) fn rows(&self) -> &[ListRow] {
        &self.rows
    }

    /// The next page to query; `None` if the list has ended.
    pub(super) fn ask(&self) -> Option<PageAsk> {
        if self.is_ended() {
            return None;
        }
        let (page, rows) = match &self.inside {
            Some(inside) => (inside.page, Some(inside.size)),
            None => (1, None),
        };
        let (end, confirms_end) = (self.pager.edge(), self.expects_end);
        Some(PageAsk { low: self.low, end, page, rows, confirms_end })
    }

    /// Ends the list and drops its rows, which are not needed.
    pub(super) fn give_up(&mut self) {
        self.rows.clear();
        self.inside = None;
        self.pager.end();
    }

    /// Returns to the first page of the block, because the following ones are not available.
    pub(super) fn restart(&mut self) {
        self.inside = None;
    }

    /// Expects the end of the list: two equal pages had fewer rows than requested.
    pub(super) fn expect_end(&mut self) {
        self.expects_end = self.inside.is_none() && !self.edge_rows.is_empty();
    }

    /// Ends the list: three equal pages without a key for a next one have nothing below. Without
    /// rows, more answers are needed.
    pub(super) fn end(&mut self) {
        if !self.is_ended() && self.inside.is_none() && !self.edge_rows.is_empty() {
            self.rows.append(&mut self.edge_rows);
            self.pager.end();
        }
    }

    /// Whether a page holds exactly the known rows of the edge. One that lacks some is asked for
    /// again; any other page shows that the list goes on. An error if too many did not confirm it.
    pub(super) fn shows_end(&mut self, page: &[ListRow]) -> Result<bool, ListFault> {
        let is_known = |row: &ListRow| self.edge_rows.iter().any(|known| known.hash == row.hash);
        let is_part = page.iter().all(is_known);
        self.is_end_shown = is_part && page.len() == self.edge_rows.len();
        self.expects_end = is_part && !self.is_end_shown;
        self.denials = if self.is_end_shown { 0 } else { self.denials + 1 };
        if self.denials > RULES.misses_max { Err(ListFault::Misses) } else { Ok(self.is_end_shown) }
    }

    /// Processes a page; `is_whole`: it cannot have been cut.
    pub(super) fn absorb(
        &mut self,
        page: Vec<ListRow>,
        is_whole: bool,
    ) -> Result<DescentOutcome, ListFault> {
        if !self.is_in_order(&page) {
            return Err(ListFault::Disordered);
        }
        self.expects_end = false;
        if self.inside.is_some() {
            self.absorb_inside(page, is_whole)
        } else {
            self.absorb_first(page, is_whole)
        }
    }

    /// Removes and returns known rows at or above a height, newest first.
    pub(super) fn take_from(&mut self, height: Height) -> Vec<ListRow> {
        let count = self.rows.partition_point(|row| row.block >= height);
        self.rows.drain(..count).collect()
    }

    fn is_in_order(&self, page: &[ListRow]) -> bool {
        let falling = page.windows(2).all(|two| match two {
            [above, below] => above.block >= below.block,
            _ => true,
        });
        falling && page.iter().all(|row| (self.low..=self.pager.edge()).contains(&row.block))
    }

    fn absorb_first(
        &mut self,
        page: Vec<ListRow>,
        is_whole: bool,
    ) -> Result<DescentOutcome, ListFault> {
        let edge = self.pager.edge();
        // A page that was cut inside the edge's block may lack some of its known rows.
        let is_cut = !is_whole && page.last().is_some_and(|row| row.block == edge);
        let view = PageView {
            entries: page.iter().map(|row| (row.block, row.hash)).collect(),
            overlap: if is_cut { Overlap::Any } else { Overlap::All },
            has_more: is_cut,
            by: None,
        };
        let is_end_shown = std::mem::take(&mut self.is_end_shown);
        match self.pager.absorb(&view) {
            PageOutcome::Miss => return Ok(DescentOutcome::Missed),
            PageOutcome::Lost => return Err(ListFault::Misses),
            PageOutcome::Lower(lowest) => {
                self.denials = 0;
                let above = page.partition_point(|row| row.block > lowest);
                self.edge_rows =
                    page.get(above..).filter(|_| above > 0).unwrap_or_default().to_vec();
                self.rows.extend(page.into_iter().take(above));
            }
            PageOutcome::Inside { .. } => {
                let (size, rows) = (page.len(), page.clone());
                self.inside =
                    Some(SingleBlockPages { page: 2, size, rows, last: page, repeats: 0 });
            }
            PageOutcome::Nothing if page.is_empty() => {}
            PageOutcome::Nothing if !is_end_shown && edge > self.low => {
                self.pager.reopen();
                (self.edge_rows, self.expects_end) = (page, true);
            }
            // Two answers agreed on what is known of the edge, and one shows its end.
            PageOutcome::Nothing if is_end_shown => {
                self.rows.append(&mut self.edge_rows);
                self.step_below();
            }
            PageOutcome::Nothing => {
                self.rows.extend(page);
                self.step_below();
            }
        }
        Ok(DescentOutcome::Taken)
    }

    fn absorb_inside(
        &mut self,
        page: Vec<ListRow>,
        is_whole: bool,
    ) -> Result<DescentOutcome, ListFault> {
        let Some(mut inside) = self.inside.take() else { return Ok(DescentOutcome::Taken) };
        let lowest = page.last().map(|row| row.block);
        match lowest {
            None => {
                self.rows.append(&mut inside.rows);
                self.step_below();
            }
            Some(lowest) if lowest < self.pager.edge() => {
                self.rows.append(&mut inside.rows);
                self.continue_at(lowest, page);
            }
            Some(_) if is_whole => {
                self.rows.append(&mut inside.rows);
                self.rows.extend(page);
                self.step_below();
            }
            Some(_) => {
                inside.repeats = if page == inside.last { inside.repeats + page.len() } else { 0 };
                if inside.repeats > REPEATS_MAX || inside.page >= PAGES_MAX {
                    return Err(ListFault::Repeats);
                }
                inside.page += 1;
                inside.rows.extend(page.iter().cloned());
                inside.last = page;
                self.inside = Some(inside);
            }
        }
        Ok(DescentOutcome::Taken)
    }

    /// Continues at the page's lowest block, in which the page may have been cut.
    fn continue_at(&mut self, lowest: Height, page: Vec<ListRow>) {
        let above = page.partition_point(|row| row.block > lowest);
        self.pager.move_to(lowest, page.iter().skip(above).map(|row| row.hash));
        self.edge_rows.clear();
        self.rows.extend(page.into_iter().take(above));
    }

    /// Continues below a block that is complete, after one answer with nothing below it.
    fn step_below(&mut self) {
        match self.pager.edge().checked_sub(1).filter(|below| *below >= self.low) {
            Some(below) if !self.pager.has_ended() => {
                self.edge_rows.clear();
                self.pager.pass_edge(below, None);
            }
            Some(_) => {}
            None => self.pager.end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::list_row::bare_row as row;
    use super::*;

    /// A list from block 20 down, of which one page has been read.
    fn begun(page: Vec<ListRow>) -> Descent {
        let mut list = Descent::new(0, 20);
        list.absorb(page, false).unwrap();
        list
    }

    /// What a list answers: at most `cap` rows of the page.
    fn answer(all: &[ListRow], ask: &PageAsk, size: usize, cap: usize) -> Vec<ListRow> {
        let asked = ask.rows.unwrap_or(size);
        let within = all.iter().filter(|row| (ask.low..=ask.end).contains(&row.block));
        let skipped = asked * (usize::try_from(ask.page).unwrap() - 1);
        let mut rows: Vec<ListRow> = within.cloned().collect();
        if ask.confirms_end {
            rows.reverse();
        }
        rows.into_iter().skip(skipped).take(asked.min(cap)).collect()
    }

    fn read(
        all: &[ListRow],
        low: Height,
        high: Height,
        size: usize,
        cap: usize,
    ) -> (Vec<ListRow>, usize) {
        let mut list = Descent::new(low, high);
        let (mut taken, mut calls, mut largest) = (Vec::new(), 0, 0);
        while let Some(ask) = list.ask() {
            calls += 1;
            assert!(calls < 10_000, "it ends");
            let page = answer(all, &ask, size, cap);
            let is_whole = page.len() < ask.rows.unwrap_or(size) && page.len() < largest;
            largest = largest.max(page.len());
            if !ask.confirms_end || list.shows_end(&page).unwrap() {
                assert_eq!(list.absorb(page, is_whole), Ok(DescentOutcome::Taken));
            }
            if let Some(from) = list.known_from() {
                taken.extend(list.take_from(from));
            }
        }
        (taken, calls)
    }

    proptest! {
        /// For any caps and any number of rows in a block, every row is returned once, in order.
        #[test]
        fn every_row_comes_once(
            blocks in proptest::collection::vec(0_u64..40, 0..60),
            size in 1_usize..12, cap in 1_usize..12, low in 0_u64..5, high in 30_u64..45,
        ) {
            let mut blocks = blocks;
            blocks.sort_unstable_by(|a, b| b.cmp(a));
            let all: Vec<ListRow> = (0..).zip(&blocks).map(|(id, block)| row(*block, id)).collect();
            let expected: Vec<ListRow> =
                all.iter().filter(|row| (low..=high).contains(&row.block)).cloned().collect();
            prop_assert_eq!(read(&all, low, high, size, cap).0, expected);
        }
    }

    #[test]
    fn a_short_list_takes_three_calls_and_an_empty_one_two() {
        let all = [row(9, 1), row(7, 2), row(3, 3)];
        assert_eq!(read(&all, 0, 20, 1000, 1000), (all.to_vec(), 3));
        assert_eq!(read(&all, 3, 20, 1000, 1000), (all.to_vec(), 2), "nothing can be below");
        assert_eq!(read(&[], 0, 20, 1000, 1000), (vec![], 2));
    }

    #[test]
    fn an_end_that_two_answers_have_shown_is_confirmed_by_its_rows_alone() {
        let mut list = begun(vec![row(9, 1), row(7, 2), row(7, 3)]);
        assert!(list.ask().is_some_and(|ask| !ask.confirms_end), "nothing was agreed on");
        list.expect_end();
        assert!(list.ask().is_some_and(|ask| ask.confirms_end && ask.end == 7));
        // Answers with more rows or other rows show that it goes on, and one with fewer nothing.
        let below = [row(7, 2), row(7, 3), row(5, 4)];
        for (other, again) in [
            (&below[..], false),
            (&below[..1], true),
            (&[row(7, 2), row(7, 4)], false),
            (&[], true),
        ] {
            list.expect_end();
            assert_eq!(list.shows_end(other), Ok(false));
            assert!(list.ask().is_some_and(|ask| ask.confirms_end == again));
        }
        list.expect_end();
        let end = vec![row(7, 3), row(7, 2)];
        assert_eq!(list.shows_end(&end), Ok(true));
        list.absorb(end, true).unwrap();
        assert!(list.is_ended() && list.take_from(0).len() == 3);
        // A page of a single block may be cut within it, and an empty list has no rows to compare.
        for page in [vec![row(9, 1), row(9, 2)], vec![]] {
            let mut list = begun(page);
            list.expect_end();
            assert!(list.ask().is_some_and(|ask| !ask.confirms_end));
        }
    }

    /// Two answers are cut at the known entry; the lowest entry is another one.
    #[test]
    fn an_end_that_only_pages_from_above_show_is_none() {
        let mut list = begun(vec![row(9, 1), row(7, 2)]);
        for _ in 0..RULES.misses_max {
            list.absorb(vec![row(7, 2)], true).unwrap();
            assert!(!list.is_ended() && list.ask().is_some_and(|ask| ask.confirms_end));
            assert_eq!(list.shows_end(&[row(3, 3), row(7, 2)]), Ok(false));
            assert!(list.ask().is_some_and(|ask| !ask.confirms_end && ask.end == 7));
        }
        let mut denied = list.clone();
        denied.absorb(vec![row(7, 2)], true).unwrap();
        assert_eq!(denied.shows_end(&[row(3, 3)]), Err(ListFault::Misses));
        list.absorb(vec![row(7, 2), row(3, 3)], true).unwrap();
        list.absorb(vec![row(3, 3)], true).unwrap();
        assert_eq!(list.shows_end(&[row(3, 3)]), Ok(true));
        list.absorb(vec![row(3, 3)], true).unwrap();
        assert!(list.is_ended() && list.take_from(0).len() == 3);
    }

    #[test]
    fn an_end_that_three_answers_have_shown_needs_no_other_page_but_for_an_empty_list() {
        let mut list = begun(vec![row(9, 1), row(7, 2), row(7, 3)]);
        assert_eq!(list.known_from(), Some(8));
        list.end();
        assert_eq!((list.ask(), list.take_from(0).len()), (None, 3));
        let mut list = begun(vec![]);
        list.end();
        assert!(list.ask().is_some());
    }

    #[test]
    fn a_page_that_lacks_a_part_of_what_is_known_is_not_taken() {
        let mut list = begun(vec![row(9, 1), row(7, 2), row(7, 3)]);
        let cut = vec![row(7, 3), row(5, 4)];
        assert_eq!(list.absorb(cut, false), Ok(DescentOutcome::Missed));
        assert_eq!(list.absorb(vec![row(7, 3)], true), Ok(DescentOutcome::Missed));
        let whole = vec![row(7, 2), row(7, 3), row(5, 4)];
        assert_eq!(list.absorb(whole, false), Ok(DescentOutcome::Taken));
        assert_eq!(list.take_from(6).len(), 3);
    }

    #[test]
    fn a_page_without_the_known_entry_ends_nothing() {
        let mut list = begun(vec![row(9, 1), row(7, 2)]);
        for _ in 0..RULES.misses_max {
            assert_eq!(list.absorb(vec![], false), Ok(DescentOutcome::Missed));
            assert_eq!(list.known_from(), Some(8));
        }
        assert_eq!(list.absorb(vec![row(7, 3)], true), Err(ListFault::Misses));
    }

    #[test]
    fn pages_in_another_order_are_refused() {
        let mut list = Descent::new(5, 20);
        assert_eq!(list.absorb(vec![row(7, 1), row(9, 2)], false), Err(ListFault::Disordered));
        assert_eq!(list.absorb(vec![row(21, 1)], false), Err(ListFault::Disordered));
        assert_eq!(list.absorb(vec![row(4, 1)], false), Err(ListFault::Disordered));
    }

    #[test]
    fn a_list_that_does_not_turn_pages_is_given_up() {
        let mut list = Descent::new(0, 9);
        let page: Vec<ListRow> = (0..100).map(|id| row(9, id)).collect();
        list.absorb(page.clone(), false).unwrap();
        assert_eq!(list.absorb(page, false), Err(ListFault::Repeats));
    }
}
