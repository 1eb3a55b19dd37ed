//! Pure: the state of one of a wallet's lists that is read downwards page by page. The same for
//! every family.
//!
//! Each page must overlap the one before: it must hold known entries of the edge, the lowest
//! position seen; else it is a miss and is discarded. A short page does not end a list: the end
//! counts once a quorum of answers agrees that nothing follows. Searches by ranges of heights are
//! counted by [`RangeVotes`].

use std::collections::HashSet;
use std::hash::Hash;

use crate::rpc::EndpointId;

/// Number of answers that suffice: from several endpoints, or all from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quorum {
    pub(super) from_several: u8,
    pub(super) from_one: u8,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PagerRules {
    /// Answers that end a list: with known entries at the edge, and without any.
    pub(super) quorum: Quorum,
    pub(super) quorum_without_entries: Quorum,
    /// A page with new entries that was not cut counts as the first of these answers.
    pub(super) short_page_votes: bool,
    /// Consecutive misses after which the list is given up.
    pub(super) misses_max: u32,
    /// Consecutive cut pages that do not get below the edge, after which the list is given up.
    pub(super) pages_inside_max: u32,
}

/// Which entries of the edge a page must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    /// None: the page continues from the server's own cursor.
    Nothing,
    Any,
    All,
}

/// A page, reduced to what the pager needs.
#[derive(Debug)]
pub(super) struct PageView<P, K> {
    /// Positions and keys, in any order.
    pub(super) entries: Vec<(P, K)>,
    pub(super) overlap: Overlap,
    /// The page was cut: more entries may follow.
    pub(super) has_more: bool,
    pub(super) by: Option<EndpointId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageOutcome<P> {
    /// The page lacks known entries: query it again, on another endpoint if there is one.
    Miss,
    /// Too many misses or pages within the edge: the list is given up.
    Lost,
    /// The edge moved down to this position; all entries above it are known.
    Lower(P),
    /// The page was cut and stayed at the edge, of which `new` entries were not known.
    Inside { new: usize },
    /// This answer has nothing below the edge: one vote for the end.
    Nothing,
}

#[derive(Debug, Clone)]
pub(super) struct Pager<P, K> {
    rules: PagerRules,
    /// The lowest position seen, or the top of the list. Some of its entries may be unknown.
    edge: P,
    known: HashSet<K>,
    votes: EndVotes,
    misses: u32,
    pages_inside: u32,
    /// A miss showed entries below the edge: an answer with nothing below does not make up for it.
    is_denied: bool,
    has_ended: bool,
}

impl<P: Ord + Copy, K: Eq + Hash + Copy> Pager<P, K> {
    pub(super) fn new(rules: PagerRules, top: P) -> Self {
        Self {
            rules,
            edge: top,
            known: HashSet::new(),
            votes: EndVotes::default(),
            misses: 0,
            pages_inside: 0,
            is_denied: false,
            has_ended: false,
        }
    }

    pub(super) fn edge(&self) -> P {
        self.edge
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether a page ends at the edge and holds nothing of it that is not known. Where it may have
    /// been cut, it neither is a vote nor takes any back.
    pub(super) fn is_repeat(&mut self, page: &PageView<P, K>) -> bool {
        let is_known = |(at, key): &(P, K)| *at > self.edge || self.known.contains(key);
        let ends_here = page.entries.iter().any(|(at, _)| *at == self.edge);
        let is_repeat = ends_here && page.entries.iter().all(is_known);
        if is_repeat {
            self.misses = 0;
        }
        is_repeat
    }

    pub(super) fn misses(&self) -> u32 {
        self.misses
    }

    pub(super) fn votes(&self) -> u8 {
        self.votes.count
    }

    /// Whether some answers, but not yet a quorum, agree that the list has ended.
    pub(super) fn wants_more_votes(&self) -> bool {
        self.votes.count > 0 && !self.votes.reach(self.quorum())
    }

    /// Counts an answer that cannot be right.
    pub(super) fn miss(&mut self) -> PageOutcome<P> {
        self.misses = self.misses.saturating_add(1);
        if self.misses > self.rules.misses_max { PageOutcome::Lost } else { PageOutcome::Miss }
    }

    pub(super) fn absorb(&mut self, page: &PageView<P, K>) -> PageOutcome<P> {
        if !self.overlaps(page) {
            // It cannot be read, and yet shows that something follows.
            if page.entries.iter().any(|(at, _)| *at < self.edge) {
                self.votes.clear();
                self.is_denied = true;
            }
            return self.miss();
        }
        let lowest = page.entries.iter().map(|(at, _)| *at).min();
        let step = match lowest.filter(|lowest| *lowest < self.edge) {
            Some(lowest) => self.move_edge_down(lowest, page),
            None => self.stay_at_edge(page),
        };
        // Else two endpoints of which one denies what the other shows are asked for ever.
        let is_in_vain = self.is_denied && matches!(step, PageOutcome::Nothing);
        if !is_in_vain && !matches!(step, PageOutcome::Lost) {
            self.misses = 0;
        }
        step
    }

    /// Moves the edge to a position whose known entries are `known`.
    pub(super) fn move_to(&mut self, edge: P, known: impl IntoIterator<Item = K>) {
        (self.edge, self.known) = (edge, known.into_iter().collect());
        (self.pages_inside, self.misses, self.is_denied) = (0, 0, false);
        self.votes.clear();
    }

    /// Moves the edge below a position whose entries are all known, after one answer with nothing
    /// below it; that answer counts as the first vote for the end.
    pub(super) fn pass_edge(&mut self, below: P, by: Option<EndpointId>) {
        self.move_to(below, []);
        self.votes.add(by);
    }

    pub(super) fn clear_votes(&mut self) {
        self.votes.clear();
    }

    /// Ends the list: the caller needs nothing below.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Reopens a list whose end was reported by an endpoint that may have pruned the rest: one more
    /// answer is required.
    pub(super) fn reopen(&mut self) {
        self.has_ended = false;
        self.votes.clear();
        self.votes.add(None);
    }

    fn overlaps(&self, page: &PageView<P, K>) -> bool {
        let holds = |key: &K| page.entries.iter().any(|(_, of)| of == key);
        match page.overlap {
            Overlap::Nothing => true,
            Overlap::Any => self.known.is_empty() || self.known.iter().any(holds),
            Overlap::All => {
                let keys: HashSet<K> = page.entries.iter().map(|(_, key)| *key).collect();
                self.known.is_subset(&keys)
            }
        }
    }

    fn move_edge_down(&mut self, lowest: P, page: &PageView<P, K>) -> PageOutcome<P> {
        let at_lowest = page.entries.iter().filter(|(at, _)| *at == lowest);
        self.move_to(lowest, at_lowest.map(|(_, key)| *key));
        if self.rules.short_page_votes && !page.has_more {
            self.votes.add(page.by);
        }
        PageOutcome::Lower(lowest)
    }

    fn stay_at_edge(&mut self, page: &PageView<P, K>) -> PageOutcome<P> {
        let quorum = self.quorum();
        let known = self.known.len();
        let at_edge = page.entries.iter().filter(|(at, _)| *at == self.edge);
        self.known.extend(at_edge.map(|(_, key)| *key));
        let new = self.known.len() - known;
        // New entries at the edge: the answers that voted for the end lacked them.
        if new > 0 || page.has_more {
            self.votes.clear();
        }
        if page.has_more {
            self.pages_inside += 1;
            let is_endless = self.pages_inside > self.rules.pages_inside_max;
            return if is_endless { PageOutcome::Lost } else { PageOutcome::Inside { new } };
        }
        self.votes.add(page.by);
        self.has_ended |= self.votes.reach(quorum);
        PageOutcome::Nothing
    }

    fn quorum(&self) -> Quorum {
        if self.known.is_empty() { self.rules.quorum_without_entries } else { self.rules.quorum }
    }
}

/// Counts the answers that agree that a list has ended.
#[derive(Debug, Clone, Default)]
struct EndVotes {
    count: u8,
    last_by: Option<EndpointId>,
    is_from_several: bool,
}

impl EndVotes {
    fn add(&mut self, by: Option<EndpointId>) {
        self.count = self.count.saturating_add(1);
        self.is_from_several |= self.last_by.zip(by).is_some_and(|(last, by)| last != by);
        self.last_by = by.or(self.last_by);
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    fn reach(&self, quorum: Quorum) -> bool {
        let needed = if self.is_from_several { quorum.from_several } else { quorum.from_one };
        self.count >= needed
    }
}

/// Compares the answers to a search over a range of heights: the range counts as answered by the
/// answers that hold everything that any answer holds.
///
/// `K` identifies an item that was found; `V` identifies the answer's endpoint.
#[derive(Debug)]
pub(super) struct RangeVotes<K, V> {
    known: HashSet<K>,
    /// Number of known items that each answer held, and its endpoint.
    answers: Vec<(usize, V)>,
}

impl<K: Eq + Hash, V> RangeVotes<K, V> {
    pub(super) fn new() -> Self {
        Self { known: HashSet::new(), answers: Vec::new() }
    }

    pub(super) fn holds(&self, key: &K) -> bool {
        self.known.contains(key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn is_answered(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Adds an answer; `false` if it differs from the answers before it.
    pub(super) fn add(&mut self, answer: HashSet<K>, by: V) -> bool {
        let (known, held, is_first) = (self.known.len(), answer.len(), self.answers.is_empty());
        self.known.extend(answer);
        self.answers.push((held, by));
        is_first || (self.known.len() == known && held == known)
    }

    /// Endpoints whose answers hold all known items.
    pub(super) fn agreeing(&self) -> impl Iterator<Item = &V> {
        self.answers.iter().filter(|(held, _)| *held == self.known.len()).map(|(_, by)| by)
    }

    /// Endpoints whose answers lack an item that another answer held.
    pub(super) fn lacking(&self) -> impl Iterator<Item = &V> {
        self.answers.iter().filter(|(held, _)| *held < self.known.len()).map(|(_, by)| by)
    }

    pub(super) fn into_known(self) -> HashSet<K> {
        self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: PagerRules = PagerRules {
        quorum: Quorum { from_several: 2, from_one: 3 },
        quorum_without_entries: Quorum { from_several: 4, from_one: 4 },
        short_page_votes: false,
        misses_max: 2,
        pages_inside_max: 3,
    };
    const ONE: EndpointId = EndpointId(0);
    const OTHER: EndpointId = EndpointId(1);

    fn page(entries: &[(u64, u8)], has_more: bool, by: EndpointId) -> PageView<u64, u8> {
        PageView { entries: entries.to_vec(), overlap: Overlap::Any, has_more, by: Some(by) }
    }

    #[test]
    fn pages_overlap_and_a_quorum_ends_the_list() {
        let mut pager = Pager::new(RULES, 100);
        assert_eq!(pager.absorb(&page(&[(90, 1), (80, 2)], false, ONE)), PageOutcome::Lower(80));
        assert_eq!((pager.edge(), pager.votes()), (80, 0), "a short page is no vote here");
        assert_eq!(pager.absorb(&page(&[(80, 2)], false, ONE)), PageOutcome::Nothing);
        assert!(pager.wants_more_votes() && !pager.has_ended());
        assert_eq!(pager.absorb(&page(&[(80, 2)], false, OTHER)), PageOutcome::Nothing);
        assert!(pager.has_ended() && !pager.wants_more_votes());
    }

    #[test]
    fn one_endpoint_gives_more_votes_and_an_empty_list_takes_most() {
        let mut some = Pager::new(RULES, 100);
        some.absorb(&page(&[(80, 2)], false, ONE));
        let mut none = Pager::new(RULES, 100);
        for votes in 1..=4 {
            some.absorb(&page(&[(80, 2)], false, ONE));
            assert_eq!(some.has_ended(), votes >= 3);
            none.absorb(&page(&[], false, if votes == 2 { OTHER } else { ONE }));
            assert_eq!(none.has_ended(), votes == 4);
        }
    }

    #[test]
    fn a_new_entry_of_the_edge_takes_the_votes_back() {
        let mut pager = Pager::new(RULES, 100);
        pager.absorb(&page(&[(80, 2)], false, ONE));
        pager.absorb(&page(&[(80, 2)], false, ONE));
        pager.absorb(&page(&[(80, 2), (80, 3)], false, OTHER));
        assert_eq!((pager.votes(), pager.has_ended()), (1, false));
    }

    #[test]
    fn a_page_without_the_overlap_counts_for_nothing_and_some_lose_the_list() {
        let mut pager = Pager::new(RULES, 100);
        pager.absorb(&page(&[(80, 2)], false, ONE));
        assert_eq!(pager.absorb(&page(&[], false, ONE)), PageOutcome::Miss);
        assert_eq!(pager.absorb(&page(&[(70, 3)], false, ONE)), PageOutcome::Miss);
        assert_eq!((pager.edge(), pager.votes(), pager.misses()), (80, 0, 2));
        assert_eq!(pager.absorb(&page(&[(80, 2), (70, 3)], false, ONE)), PageOutcome::Lower(70));
        assert_eq!(pager.misses(), 0);
        for left in [false, false, true] {
            assert_eq!(pager.miss() == PageOutcome::Lost, left);
        }
    }

    #[test]
    fn a_page_without_the_overlap_that_goes_further_takes_the_votes_back() {
        let mut pager = Pager::new(RULES, 100);
        pager.absorb(&page(&[(80, 2)], false, ONE));
        pager.absorb(&page(&[(80, 2)], false, ONE));
        assert_eq!(pager.absorb(&page(&[(90, 1)], false, OTHER)), PageOutcome::Miss);
        assert_eq!(pager.votes(), 1, "it shows nothing below");
        assert_eq!(pager.absorb(&page(&[(70, 3)], false, OTHER)), PageOutcome::Miss);
        assert_eq!(pager.votes(), 0);
    }

    /// One endpoint has lost the entry of the edge, and the other one all entries below.
    #[test]
    fn endpoints_of_which_one_denies_what_the_other_shows_lose_the_list() {
        let mut pager = Pager::new(RULES, 100);
        pager.absorb(&page(&[(80, 2)], false, ONE));
        for outcome in [PageOutcome::Miss, PageOutcome::Miss, PageOutcome::Lost] {
            assert_eq!(pager.absorb(&page(&[(70, 3)], false, OTHER)), outcome);
            assert_eq!(pager.absorb(&page(&[(80, 2)], false, ONE)), PageOutcome::Nothing);
        }
        pager.absorb(&page(&[(80, 2), (70, 3)], false, ONE));
        assert_eq!(pager.misses(), 0);
        pager.absorb(&page(&[], false, OTHER));
        pager.absorb(&page(&[(70, 3)], false, ONE));
        assert_eq!((pager.misses(), pager.votes()), (0, 1), "that miss showed nothing below");
    }

    #[test]
    fn a_page_repeats_what_is_known_where_it_ends_at_the_edge_without_a_new_entry() {
        let mut pager = Pager::new(RULES, 100);
        pager.absorb(&page(&[(90, 1), (80, 2), (80, 3)], true, ONE));
        pager.miss();
        for not in [&[(80, 2), (80, 4)][..], &[(80, 2), (70, 5)], &[(90, 1)], &[]] {
            assert!(!pager.is_repeat(&page(not, true, ONE)));
        }
        assert_eq!(pager.misses(), 1);
        assert!(pager.is_repeat(&page(&[(90, 6), (80, 3)], true, ONE)));
        assert_eq!(pager.misses(), 0);
    }

    #[test]
    fn the_overlap_is_what_the_caller_asks_for() {
        let begun = || {
            let mut pager = Pager::new(RULES, 100);
            pager.absorb(&page(&[(80, 2), (80, 3)], true, ONE));
            pager
        };
        let with = |overlap, entries: &[(u64, u8)]| {
            begun().absorb(&PageView { overlap, ..page(entries, false, ONE) })
        };
        assert_eq!(with(Overlap::All, &[(80, 2), (70, 4)]), PageOutcome::Miss);
        assert_eq!(with(Overlap::All, &[(80, 2), (80, 3), (70, 4)]), PageOutcome::Lower(70));
        assert_eq!(with(Overlap::Any, &[(70, 4)]), PageOutcome::Miss);
        assert_eq!(with(Overlap::Any, &[(80, 3)]), PageOutcome::Nothing);
        assert_eq!(with(Overlap::Nothing, &[(70, 4)]), PageOutcome::Lower(70));
    }

    #[test]
    fn pages_inside_of_an_edge_end_somewhere() {
        let mut pager = Pager::new(RULES, 100);
        pager.absorb(&page(&[(80, 2)], true, ONE));
        for number in 3..6 {
            assert_eq!(
                pager.absorb(&page(&[(80, 2), (80, number)], true, ONE)),
                PageOutcome::Inside { new: 1 }
            );
        }
        assert_eq!(pager.absorb(&page(&[(80, 2)], true, ONE)), PageOutcome::Lost);
    }

    #[test]
    fn a_short_page_is_a_vote_where_the_rules_say_so() {
        let mut pager = Pager::new(PagerRules { short_page_votes: true, ..RULES }, 100);
        pager.absorb(&page(&[(80, 2)], false, ONE));
        assert!(pager.votes() == 1 && pager.wants_more_votes());
        pager.absorb(&page(&[(80, 2)], false, OTHER));
        assert!(pager.has_ended());
        pager.reopen();
        assert!(!pager.has_ended() && pager.votes() == 1);
        pager.pass_edge(79, Some(ONE));
        assert_eq!((pager.edge(), pager.votes()), (79, 1));
    }

    fn add(votes: &mut RangeVotes<u8, u8>, answer: &[u8], by: u8) -> bool {
        votes.add(answer.iter().copied().collect(), by)
    }

    fn is_contradicted(votes: &RangeVotes<u8, u8>) -> bool {
        votes.lacking().next().is_some()
    }

    fn agreeing(votes: &RangeVotes<u8, u8>) -> Vec<u8> {
        votes.agreeing().copied().collect()
    }

    #[test]
    fn answers_agree_if_they_hold_every_row_that_any_answer_holds() {
        let mut votes = RangeVotes::new();
        assert!(!votes.is_answered() && votes.is_empty());
        assert!(add(&mut votes, &[1], 1));
        assert_eq!((agreeing(&votes), is_contradicted(&votes)), (vec![1], false));
        assert!(!add(&mut votes, &[1, 2], 2), "the one before lacked something");
        assert_eq!((agreeing(&votes), is_contradicted(&votes)), (vec![2], true));
        assert!(!add(&mut votes, &[2], 3), "it lacks something");
        assert!(add(&mut votes, &[2, 1], 4));
        assert_eq!(agreeing(&votes), [2, 4]);
        assert!(votes.lacking().eq(&[1, 3]), "whichever came first");
        assert!(votes.holds(&1) && !votes.holds(&3));
        assert_eq!(votes.into_known(), HashSet::from([1, 2]));
    }

    #[test]
    fn as_many_things_are_not_the_same_things() {
        let mut votes = RangeVotes::new();
        add(&mut votes, &[1], 1);
        assert!(!add(&mut votes, &[2], 2));
        assert!(agreeing(&votes).is_empty() && is_contradicted(&votes));
    }

    #[test]
    fn empty_answers_agree_until_one_is_not() {
        let mut votes = RangeVotes::new();
        assert!(add(&mut votes, &[], 1) && add(&mut votes, &[], 2));
        assert_eq!((agreeing(&votes), votes.is_empty()), (vec![1, 2], true));
        assert!(!add(&mut votes, &[1], 3));
        assert_eq!(agreeing(&votes), [3]);
    }
}
