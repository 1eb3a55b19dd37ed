//! Pure: one address's list of signatures, read page by page.
//!
//! Nodes order the signatures of a slot differently, lose or repeat some where pages meet, and
//! answer `[]` for a cursor that they do not know. So the next page is requested from two slots
//! above the lowest one seen, and must hold a known entry of the lowest slot; and a list ends only
//! when two answers agree that nothing follows. A page that is merely short counts as one such
//! answer only: nodes give up early, or return fewer entries than requested. One of several entries
//! that stays in the lowest slot counts as none, as the slot may fill what the node returns: the
//! next one is requested from further inside, in the end from the last entry but one.

use crate::domain::{Height, TxId};
use crate::sources::pager::{Overlap, PageOutcome, PageView, Pager, PagerRules, Quorum};

/// Signatures in a page: the most that nodes return.
pub(super) const PAGE_MAX: usize = 1000;
/// A page of fewer entries was not cut.
pub(super) const FEW: usize = 5;
/// Pages in a row without a new entry, after which a list is given up: a node that ignores the
/// cursor returns the same page for ever.
const REPEATS_MAX: u32 = 12;
/// As many, after which short pages from above the lowest slot count for the end: where nodes order
/// that slot differently, none may be read from inside it.
const INSIDE_MAX: u32 = 5;
/// From inside the lowest slot; see [`List::start`].
const INNERMOST: u8 = 2;
/// A wallet's own list: a page that is cut short counts as one vote for the end, and the next page,
/// cut short where it overlaps that one, as another.
const WALLET_RULES: PagerRules =
    PagerRules { quorum: Quorum { from_several: 3, from_one: 3 }, ..RULES };
const RULES: PagerRules = PagerRules {
    quorum: Quorum { from_several: 2, from_one: 2 },
    // For a list without any entry. An account that exists was created by some transaction, and an
    // unused address is seldom queried: an empty answer is likely false, or of a node that pruned
    // the blocks.
    quorum_without_entries: Quorum { from_several: 4, from_one: 4 },
    short_page_votes: true,
    misses_max: 4,
    pages_inside_max: u32::MAX,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) slot: Height,
    pub(super) id: TxId,
    pub(super) time: Option<i64>,
    /// `None` where the list does not show it.
    pub(super) failed: Option<bool>,
}

impl Entry {
    pub(super) fn has_failed(&self) -> bool {
        self.failed == Some(true)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Wallet,
    /// A token account; most of its entries are in the wallet's list too.
    Account,
}

#[derive(Debug)]
pub(super) struct List {
    pub(super) kind: Kind,
    pager: Pager<Height, TxId>,
    /// Entry of the slot right above the lowest one.
    above: Option<TxId>,
    /// Entry of a slot above that one, from which the next page is requested: a node may lose the
    /// entry right behind its cursor, which then is one of a slot that was read whole.
    cursor: Option<TxId>,
    /// The cursor is not an entry of this list: a node that does not know it answers `[]`.
    is_anchored: bool,
    /// The last entries seen in the lowest slot.
    tail: [Option<TxId>; 2],
    pub(super) lowest: Option<Height>,
    /// The slot of `above`, and that of `cursor` where the list named it.
    above_at: Option<Height>,
    cursor_at: Option<Height>,
    /// Heights above this one are not wanted.
    pub(super) high: Height,
    /// Heights below this one are not wanted.
    low: Height,
    /// How far down the next page begins: 0 at `cursor`; while the lowest slot fills whole pages, 1
    /// at `above`, then 2 inside the slot. From `above` too where the slot above fills pages.
    inside: u8,
    /// Pages in a row that may have been cut, without a new entry.
    repeats: u32,
}

impl List {
    /// A list from the top; entries above `high` will not be wanted.
    pub(super) fn new(kind: Kind, low: Height, high: Height) -> Self {
        let rules = match kind {
            Kind::Wallet => WALLET_RULES,
            Kind::Account => RULES,
        };
        Self {
            kind,
            // The first entries may lie above the wanted heights.
            pager: Pager::new(rules, Height::MAX),
            above: None,
            cursor: None,
            is_anchored: false,
            tail: [None; 2],
            lowest: None,
            above_at: None,
            cursor_at: None,
            high,
            low,
            inside: 0,
            repeats: 0,
        }
    }

    /// Continues where an earlier read stopped: `tail` is its lowest entry, `above` the one above
    /// it.
    pub(super) fn resumed(mut self, above: TxId, tail: (Height, TxId)) -> Self {
        self.pager.move_to(tail.0, [tail.1]);
        Self { cursor: Some(above), tail: [None, Some(tail.1)], lowest: Some(tail.0), ..self }
    }

    /// Begins at a signature of the chain right above the wanted heights.
    pub(super) fn from(self, above: TxId) -> Self {
        Self { cursor: Some(above), is_anchored: true, ..self }
    }

    /// All entries above this slot are known; `None`: all wanted entries are.
    pub(super) fn frontier(&self) -> Option<Height> {
        (!self.has_ended()).then_some(self.pager.edge().min(self.high))
    }

    pub(super) fn has_ended(&self) -> bool {
        self.pager.has_ended()
    }

    /// Whether all entries above the heights that the list was begun for are known.
    pub(super) fn is_known_above(&self) -> bool {
        self.frontier().is_none_or(|open| open < self.high)
    }

    /// The highest slot that the next page can hold.
    pub(super) fn reach(&self) -> Height {
        self.cursor_at.unwrap_or(Height::MAX)
    }

    /// Whether the list was read below the wanted heights; its end does not matter then.
    pub(super) fn is_passed(&self) -> bool {
        self.lowest.is_some_and(|lowest| lowest < self.low)
    }

    /// At and below this slot, the only evidence that nothing follows is the answer that ended the
    /// list.
    pub(super) fn end(&self) -> Height {
        self.lowest.map_or(self.high, |lowest| lowest.saturating_sub(1))
    }

    pub(super) fn end_here(&mut self) {
        self.pager.end();
    }

    /// Requests the end once more: it was reported by a node that may have pruned what follows.
    pub(super) fn reopen(&mut self) {
        self.pager.reopen();
    }

    pub(super) fn before(&self) -> Option<TxId> {
        self.start(self.inside)
    }

    fn start(&self, inside: u8) -> Option<TxId> {
        let [above_last, _] = self.tail;
        match inside {
            0 => self.cursor,
            1 => self.above,
            _ => above_last,
        }
    }

    /// The list began at a signature that is not one of its entries, and no entry has come: no
    /// entry of the page can show how far the node's index has come. A node that finds the
    /// signature in its blocks returns what its index has below it, also where the index is behind.
    fn is_blind(&self) -> bool {
        self.is_anchored && self.lowest.is_none()
    }

    /// The slot that a node must have reached to answer the next page. From the top, or from a
    /// signature that is not an entry, a node that lags would leave out the newest entries without
    /// a sign.
    pub(super) fn min_slot(&self) -> Option<Height> {
        (self.is_blind() || self.before().is_none()).then_some(self.high)
    }

    /// Whether the next page decides what is newest: the first page does, and while the list has no
    /// entry, every page.
    pub(super) fn is_newest(&self, is_first: bool) -> bool {
        self.is_blind() || self.before().is_none() && (is_first || self.lowest.is_none())
    }

    /// The end was reported, but not by enough answers: the next one is requested from another
    /// endpoint.
    pub(super) fn wants_second_answer(&self) -> bool {
        self.pager.wants_more_votes()
    }

    /// The last page lacked known entries or repeated them: another endpoint may do better.
    pub(super) fn missed(&self) -> bool {
        self.pager.misses() > 0 || self.repeats > 1
    }

    pub(super) fn miss(&mut self) -> PageOutcome<Height> {
        self.pager.miss()
    }

    /// The entry with which the next page must begin where it is requested from inside the lowest
    /// slot: one that begins otherwise is in another order, which may put above that place what is
    /// not known.
    pub(super) fn first(&self) -> Option<TxId> {
        self.tail[1].filter(|_| self.inside == INNERMOST)
    }

    /// Adds a page. `goes_on`: more may follow it. The list is lost as well where a signature that
    /// is not one of its entries returns nothing.
    pub(super) fn absorb(&mut self, page: &[Entry], goes_on: bool) -> PageOutcome<Height> {
        let [_, last] = self.tail;
        if page.is_empty() && last.is_none() && self.is_anchored {
            return PageOutcome::Lost;
        }
        let step = self.step(page, goes_on);
        match step {
            PageOutcome::Miss | PageOutcome::Lost => {
                // Right above the lowest slot: fewer entries come before it there, and another
                // order does not matter.
                if self.pager.misses() > 1 {
                    self.inside = u8::from(self.above.is_some());
                }
                return step;
            }
            PageOutcome::Inside { new: 0 } => self.repeats += 1,
            PageOutcome::Nothing => {}
            PageOutcome::Lower(_) | PageOutcome::Inside { .. } => self.repeats = 0,
        }
        if self.repeats > REPEATS_MAX {
            return PageOutcome::Lost;
        }
        // To the end of such a slot: from further up, it would fill the page again and lack the last
        // entry.
        if step == (PageOutcome::Inside { new: 0 }) {
            let further = (self.inside + 1..=INNERMOST).find(|at| self.start(*at).is_some());
            self.inside = further.unwrap_or(self.inside);
            if self.repeats >= INSIDE_MAX {
                self.inside = u8::from(self.above.is_some());
            }
        } else if matches!(step, PageOutcome::Lower(_)) {
            self.inside = u8::from(self.inside > 1);
        }
        for entry in page {
            self.note(entry);
        }
        if self.is_passed() {
            self.pager.end();
        }
        step
    }

    fn step(&mut self, page: &[Entry], goes_on: bool) -> PageOutcome<Height> {
        let stays = self.lowest.is_some_and(|lowest| page.iter().all(|one| one.slot >= lowest));
        let may_be_cut = stays && page.len() >= FEW && self.repeats < INSIDE_MAX;
        let view = PageView {
            entries: page.iter().map(|entry| (entry.slot, entry.id)).collect(),
            overlap: Overlap::Any,
            has_more: goes_on || may_be_cut,
            by: None,
        };
        if view.has_more && self.pager.is_repeat(&view) {
            return PageOutcome::Inside { new: 0 };
        }
        self.pager.absorb(&view)
    }

    fn note(&mut self, entry: &Entry) {
        let [_, last] = self.tail;
        match self.lowest {
            Some(lowest) if entry.slot > lowest => {}
            Some(lowest) if entry.slot == lowest => {
                if !self.tail.contains(&Some(entry.id)) {
                    self.tail = [last, Some(entry.id)];
                }
            }
            Some(_) | None => {
                if last.is_some() {
                    self.cursor = self.above.or(self.cursor);
                    self.above = last;
                    self.cursor_at = self.above_at;
                    self.above_at = self.lowest;
                }
                self.tail = [None, Some(entry.id)];
                self.lowest = Some(entry.slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn entry(slot: Height, number: u8) -> Entry {
        let mut id = [number; 64];
        id[..8].copy_from_slice(&slot.to_be_bytes());
        Entry { slot, id: TxId::solana(&id), time: None, failed: None }
    }

    /// A node's list with its own order inside slots, and pages that may lose their last entry.
    struct Node {
        entries: Vec<Entry>,
    }

    impl Node {
        fn page(&self, before: Option<TxId>, flip: bool, limit: usize, lies: bool) -> Vec<Entry> {
            if lies {
                return Vec::new();
            }
            let mut all = self.entries.clone();
            all.sort_by_key(|e| {
                (std::cmp::Reverse(e.slot), if flip { u8::MAX - last(e) } else { last(e) })
            });
            let from = before.map_or(0, |id| all.iter().position(|e| e.id == id).unwrap() + 1);
            all.into_iter().skip(from).take(limit).collect()
        }
    }

    fn last(entry: &Entry) -> u8 {
        let TxId::Solana(id) = entry.id else { unreachable!() };
        id.to_bytes()[63]
    }

    proptest! {
        /// With reversed orders, short pages and false empty answers, every entry is seen in the
        /// end, and no slot above the frontier ever lacks an entry.
        #[test]
        fn sees_every_entry(
            slots in proptest::collection::vec(1_u64..30, 0..60),
            moods in proptest::collection::vec((any::<bool>(), 3_usize..20, 0_u8..6), 200),
            of_wallet in any::<bool>(),
        ) {
            let entries: Vec<Entry> = slots.iter().enumerate().map(|(at, s)| entry(*s, u8::try_from(at).unwrap())).collect();
            let node = Node { entries: entries.clone() };
            let kind = if of_wallet { Kind::Wallet } else { Kind::Account };
            let mut list = List::new(kind, 0, 100);
            let mut seen = BTreeSet::new();
            let mut lied = 0;
            for (flip, limit, mood) in moods {
                if list.has_ended() { break; }
                // Short pages must at least reach below what is known of the lowest slot.
                let limit = limit + slots.len() / 2;
                let lies = mood == 0 && lied < 2;
                lied += u8::from(lies);
                let reach = list.reach();
                let mut page = node.page(list.before(), flip, limit, lies);
                prop_assert!(page.iter().all(|e| e.slot <= reach));
                let is_other = list.first().is_some_and(|first| {
                    page.first().is_none_or(|entry| entry.id != first)
                });
                if is_other {
                    page.clear();
                }
                match list.absorb(&page, page.len() >= PAGE_MAX) {
                    PageOutcome::Miss => prop_assert!(lies || is_other),
                    PageOutcome::Lost => prop_assert!(false),
                    PageOutcome::Lower(_) | PageOutcome::Inside { .. } | PageOutcome::Nothing => {
                        seen.extend(page.iter().map(|e| e.id));
                    }
                }
                let frontier = list.frontier().unwrap_or(0);
                for e in entries.iter().filter(|e| e.slot > frontier) {
                    prop_assert!(seen.contains(&e.id));
                }
            }
            prop_assert!(list.has_ended());
            prop_assert_eq!(seen.len(), entries.len());
        }
    }

    #[test]
    fn one_answer_ends_no_list_and_a_quorum_does() {
        for (kind, quorum) in [(Kind::Wallet, 3), (Kind::Account, 2)] {
            let mut list = List::new(kind, 0, 100);
            for _ in 1..quorum {
                list.absorb(&[entry(9, 1)], false);
                assert!(!list.has_ended() && list.wants_second_answer());
            }
            list.absorb(&[entry(9, 1)], false);
            assert!(list.has_ended());
        }
    }

    /// The node returns at most six entries, and a slot has more than six: in the middle of a list,
    /// at its end, and above another such slot.
    #[test]
    fn a_slot_that_fills_what_a_node_gives_is_passed_and_ends() {
        let full = (0..8).map(|number| entry(15, 30 + number));
        for below in [vec![], vec![entry(10, 19), entry(9, 20)], full.collect()] {
            for (many, kind) in (7..13).flat_map(|it| [(it, Kind::Wallet), (it, Kind::Account)]) {
                let slot = (0..many).map(|number| entry(20, 3 + number));
                let above = [entry(40, 1), entry(30, 2)].into_iter().chain(slot);
                let node = Node { entries: above.chain(below.iter().copied()).collect() };
                let (mut list, mut seen) = (List::new(kind, 0, 100), BTreeSet::new());
                let mut pages = 0;
                while !list.has_ended() {
                    let page = node.page(list.before(), false, 6, false);
                    let step = list.absorb(&page, false);
                    assert!(!matches!(step, PageOutcome::Miss | PageOutcome::Lost), "{many}");
                    seen.extend(page.iter().map(|entry| entry.id));
                    pages += 1;
                }
                assert_eq!(seen.len(), node.entries.len(), "{many}");
                assert!(pages <= 12, "{many}: {pages}");
            }
        }
    }

    fn slot_of(numbers: impl IntoIterator<Item = u8>) -> Vec<Entry> {
        numbers.into_iter().map(|number| entry(20, number)).collect()
    }

    /// What a slot that fills pages holds at its end is read from inside it, in one order alone; a
    /// node with another order is asked from above the slot again.
    #[test]
    fn a_slot_is_read_from_inside_in_one_order() {
        for kind in [Kind::Wallet, Kind::Account] {
            let mut list = List::new(kind, 0, 100);
            let above = [entry(40, 1), entry(30, 2)];
            let page: Vec<Entry> = above.into_iter().chain(slot_of(3..8)).collect();
            list.absorb(&page, true);
            assert_eq!((list.before(), list.first()), (Some(above[0].id), None));
            list.absorb(&page[1..], true);
            assert_eq!((list.before(), list.first()), (Some(above[1].id), None));
            list.absorb(&page[2..], true);
            let [.., inside, last] = &page[..] else { unreachable!() };
            assert_eq!((list.before(), list.first()), (Some(inside.id), Some(last.id)));
            assert_eq!(list.absorb(&[], false), PageOutcome::Miss);
            assert_eq!(list.first(), Some(last.id));
            assert_eq!(list.absorb(&[], false), PageOutcome::Miss);
            assert_eq!((list.before(), list.first()), (Some(above[1].id), None));
        }
    }

    /// It says neither that more follows nor that nothing does.
    #[test]
    fn a_full_page_of_known_entries_takes_no_vote_back() {
        let mut list = List::new(Kind::Account, 0, 100);
        list.absorb(&slot_of(1..9), true);
        list.absorb(&slot_of([8]), false);
        assert!(list.wants_second_answer());
        assert_eq!(list.absorb(&slot_of(1..9), true), PageOutcome::Inside { new: 0 });
        assert!(list.wants_second_answer() && !list.has_ended());
        list.absorb(&slot_of([8]), false);
        assert!(list.has_ended());
    }

    /// Each answer of another node is in another order: none goes on from what the one before ended
    /// with, and each shows all of the slot.
    #[test]
    fn orders_that_differ_keep_no_list_open() {
        for kind in [Kind::Wallet, Kind::Account] {
            let mut list = List::new(kind, 0, 100);
            for answer in 0..20_u8 {
                let mut page = slot_of((0..8).map(|at| 1 + (at + answer) % 8));
                if list.first().is_some_and(|first| first != page[0].id) {
                    page.clear();
                }
                if !list.has_ended() {
                    assert_ne!(list.absorb(&page, false), PageOutcome::Lost);
                }
            }
            assert!(list.has_ended());
        }
    }

    /// The page with the left-out entry is as long as the page without it, which began higher.
    #[test]
    fn an_entry_that_one_answer_left_out_keeps_no_list_open() {
        let [first, left_out, last] = [entry(40, 1), entry(30, 3), entry(20, 4)];
        let node = Node { entries: vec![first, entry(30, 2), left_out, last] };
        for kind in [Kind::Wallet, Kind::Account] {
            let (mut list, mut seen) = (List::new(kind, 0, 100), BTreeSet::new());
            list.absorb(&[first, entry(30, 2), last], false);
            for _ in 0..10 {
                let page = node.page(list.before(), false, PAGE_MAX, false);
                seen.extend(page.iter().map(|entry| entry.id));
                if !list.has_ended() {
                    assert_ne!(list.absorb(&page, false), PageOutcome::Lost);
                }
            }
            assert_eq!((list.has_ended(), seen.contains(&left_out.id)), (true, true));
        }
    }

    #[test]
    fn a_list_without_entries_is_asked_for_more_often() {
        for kind in [Kind::Wallet, Kind::Account] {
            let mut list = List::new(kind, 0, 100);
            for _ in 1..RULES.quorum_without_entries.from_one {
                list.absorb(&[], false);
                assert!(!list.has_ended() && list.wants_second_answer());
            }
            list.absorb(&[entry(9, 1)], false);
            assert!(!list.has_ended() && list.wants_second_answer());
            for _ in 0..2 {
                list.absorb(&[entry(9, 1)], false);
            }
            assert!(list.has_ended());
            let mut list = List::new(kind, 0, 100);
            for _ in 0..RULES.quorum_without_entries.from_one {
                list.absorb(&[], false);
            }
            assert!(list.has_ended());
        }
    }

    #[test]
    fn a_page_that_reaches_what_is_not_wanted_ends_a_list() {
        for kind in [Kind::Wallet, Kind::Account] {
            let mut list = List::new(kind, 5, 100);
            list.absorb(&[entry(9, 1), entry(4, 2)], false);
            assert!(list.has_ended());
        }
    }

    #[test]
    fn answers_without_entries_are_of_lists_that_have_come_far_enough() {
        let mut list = List::new(Kind::Wallet, 0, 100);
        assert!(list.is_newest(true));
        list.absorb(&[], false);
        assert!(list.is_newest(false), "what another answer lacked may be new");
        list.absorb(&[entry(9, 1)], false);
        assert!(!list.is_newest(false), "it shows an entry that is known to be there");
    }

    /// The signature may be no entry of the list: then a page that begins below it may be
    /// everything that the index has.
    #[test]
    fn a_page_below_a_foreign_signature_is_of_a_list_that_has_come_far_enough() {
        let mut below = List::new(Kind::Wallet, 0, 100).from(entry(101, 1).id);
        assert_eq!((below.is_newest(true), below.min_slot()), (true, Some(100)));
        below.absorb(&[entry(9, 1)], false);
        assert_eq!(
            (below.is_newest(false), below.min_slot()),
            (false, None),
            "it holds 9 or misses"
        );
        let known =
            List::new(Kind::Wallet, 0, 100).resumed(entry(102, 1).id, (101, entry(101, 2).id));
        assert_eq!((known.is_newest(true), known.min_slot()), (false, None));
    }

    #[test]
    fn an_empty_answer_to_a_known_cursor_is_none() {
        let mut list = List::new(Kind::Wallet, 0, 100);
        list.absorb(&[entry(9, 1), entry(8, 2)], false);
        for _ in 0..RULES.misses_max {
            assert_eq!(list.absorb(&[], false), PageOutcome::Miss);
        }
        assert_eq!(list.absorb(&[], false), PageOutcome::Lost);
        assert!(!list.has_ended());
    }

    #[test]
    fn a_page_that_is_given_again_and_again_is_given_up() {
        let number = |at: u64| entry(2_000 - at, u8::try_from(at % 200).unwrap());
        let page: Vec<Entry> = (0..1_000).map(number).collect();
        let mut list = List::new(Kind::Wallet, 0, 3_000);
        let given = (0..50)
            .map(|_| list.absorb(&page, page.len() >= PAGE_MAX))
            .take_while(|it| *it != PageOutcome::Lost);
        assert!(given.count() < 20);
        assert!(!list.has_ended());
    }

    #[test]
    fn the_next_page_is_asked_from_above_the_lowest_slot() {
        let mut list = List::new(Kind::Wallet, 0, 100);
        list.absorb(&[entry(9, 1), entry(8, 2), entry(8, 3)], false);
        assert_eq!(list.before(), None);
        assert_eq!(list.frontier(), Some(8));
        list.absorb(&[entry(9, 1), entry(8, 2), entry(8, 3), entry(7, 4)], false);
        assert_eq!(list.before(), Some(entry(9, 1).id));
        assert_eq!(list.frontier(), Some(7));
    }
}
