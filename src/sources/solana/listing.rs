//! A list together with the state of its requests, and of the proof of its end.

use super::fetch::PageRequest;
use super::list::{Entry, Kind, List};
use crate::domain::Height;
use crate::rpc::{EndpointId, EndpointSet, Pool};

/// The highest first slot by which a node counts as one that keeps the whole chain.
pub(super) const FIRST_HEIGHTS: Height = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waits for the head and the accounts, before anything is listed.
    Opening,
    Reading,
    Ended,
}

/// Whether the wallet is known to exist, or not to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existence {
    Open,
    Asked,
    Known,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "four things that are known or not")]
pub(super) struct Listing {
    pub(super) address: [u8; 32],
    pub(super) list: List,
    pub(super) state: PageState,
    /// The list has not been restarted from the top yet.
    pub(super) is_fresh: bool,
    pub(super) late: LateState,
    /// The account's balance is another one than at the last head, and no entry since then has come.
    pub(super) has_moved: bool,
    /// The account was listed before, and something of it was missing.
    pub(super) is_relisted: bool,
    /// The endpoint whose list lacked it.
    lacking: Option<EndpointId>,
    /// A chunk has reported that the list was read to its end.
    pub(super) is_reported: bool,
    pub(super) last_by: Option<EndpointId>,
    /// The endpoints of the last two pages that overlapped as they must.
    pub(super) answered_by: [Option<EndpointId>; 2],
    pub(super) proof: EndProof,
    /// Endpoints that reported an end, and do not keep the wanted heights or do not say what they
    /// keep.
    pruned: EndpointSet,
    /// How often its end was requested again: then slow endpoints are waited for too.
    pub(super) reopened: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageState {
    /// No page has come.
    New,
    Asked {
        is_first: bool,
    },
    Paged,
}

/// Whether the list's entries above the delivered heights belong to the wallet too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LateState {
    Unwanted,
    Wanted,
    /// They were wanted, and have all come.
    Known,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndProof {
    Open,
    Asked,
    /// The lowest first block of the endpoints that reported the end.
    Kept(Height),
    /// None of these endpoints says what it keeps.
    Unknown,
}

impl Listing {
    pub(super) fn new(address: [u8; 32], list: List) -> Self {
        Self {
            address,
            list,
            state: PageState::New,
            is_fresh: true,
            late: LateState::Unwanted,
            has_moved: false,
            is_relisted: false,
            lacking: None,
            is_reported: false,
            last_by: None,
            answered_by: [None; 2],
            proof: EndProof::Open,
            pruned: EndpointSet::default(),
            reopened: 0,
        }
    }

    pub(super) fn is_late(&self) -> bool {
        self.late == LateState::Wanted
    }

    /// Whether the list ends with this page without the transaction that changed the account's
    /// balance. That one names the account, so an answer has left it out.
    pub(super) fn lacks_its_change(&mut self, page: &[Entry], low: Height) -> bool {
        let own = low..=self.list.high;
        self.has_moved &=
            !page.iter().any(|entry| !entry.has_failed() && own.contains(&entry.slot));
        self.has_moved && self.list.has_ended()
    }

    pub(super) fn begin_anew(&mut self, low: Height, high: Height) {
        let list = List::new(self.list.kind, low, high);
        let Self { late, is_relisted, lacking, .. } = *self;
        *self =
            Self { is_fresh: false, late, is_relisted, lacking, ..Self::new(self.address, list) };
    }

    /// Another list of an account of which something was missing, which replaces this one.
    pub(super) fn again(&mut self, list: List) -> Self {
        self.retire();
        // Most lists have one page, and a second answer for their end.
        let [first, last] = self.answered_by;
        let (late, lacking) = (LateState::Wanted, first.or(last));
        Self { late, is_relisted: true, lacking, ..Self::new(self.address, list) }
    }

    /// The endpoint that should not give the next page. `is_second`: that page confirms the last one.
    pub(super) fn avoided(&self, is_second: bool) -> Option<EndpointId> {
        self.last_by.filter(|_| is_second).or(self.lacking)
    }

    /// Ends this listing because another one of the same account replaces it: it delays no
    /// delivery, and reports nothing.
    pub(super) fn retire(&mut self) {
        self.list.end_here();
        (self.proof, self.is_reported) = (EndProof::Unknown, true);
    }

    /// Stops leaving endpoints out; false where none was left out.
    pub(super) fn ask_all(&mut self) -> bool {
        std::mem::take(&mut self.pruned) != EndpointSet::default()
    }

    /// The slot at and below which entries may be unknown; `None`: everything down to `low` is
    /// known.
    pub(super) fn frontier(&self, low: Height) -> Option<Height> {
        let open = self.list.frontier();
        if open.is_some() || self.list.is_passed() {
            return open;
        }
        match self.proof {
            EndProof::Open | EndProof::Asked => Some(self.list.end()),
            EndProof::Kept(_) => self.cut(low),
            EndProof::Unknown => None,
        }
    }

    /// The slot at and below which none of the endpoints that answered keeps the wanted heights.
    pub(super) fn cut(&self, low: Height) -> Option<Height> {
        let EndProof::Kept(first) = self.proof else { return None };
        let is_ended = self.list.has_ended() && !self.list.is_passed();
        (is_ended && first > low.max(FIRST_HEIGHTS)).then(|| self.list.end().min(first - 1))
    }

    pub(super) fn request(&self, number: usize, head: Height, is_first: bool) -> PageRequest {
        let list = &self.list;
        // A late list includes everything above the read's heights too.
        let min_slot = |slot: Height| if self.is_late() { slot.max(head) } else { slot };
        PageRequest {
            list: number,
            address: self.address,
            before: list.before(),
            min_slot: list.min_slot().map(min_slot),
            lowest: list.lowest,
            first: list.first(),
            is_newest: list.is_newest(is_first),
        }
    }

    pub(super) fn wants_proof(&self) -> bool {
        self.list.has_ended() && !self.list.is_passed() && self.proof == EndProof::Open
    }

    pub(super) fn ended_by(&self) -> [Option<EndpointId>; 2] {
        match self.list.kind {
            Kind::Wallet => self.answered_by,
            Kind::Account => [self.last_by, None],
        }
    }

    /// Takes the first blocks that the endpoints which reported the end keep; where they keep too
    /// little, another endpoint may have more.
    pub(super) fn prove(&mut self, kept: &[(EndpointId, Height)], low: Height, endpoints: usize) {
        let first = kept.iter().map(|(_, first)| *first).min();
        self.proof = first.map_or(EndProof::Unknown, EndProof::Kept);
        if self.cut(low).is_some() {
            let lacks = |first: Height| first > low.max(FIRST_HEIGHTS);
            let pruned = kept.iter().filter(|(_, first)| lacks(*first));
            pruned.for_each(|(id, _)| self.pruned.insert(*id));
            self.reopen_once_more(endpoints);
        }
    }

    /// Requests the end once more, from other endpoints than those that reported it. False: this
    /// was done often enough.
    pub(super) fn reopen_elsewhere(&mut self, endpoints: usize) -> bool {
        self.ended_by().into_iter().flatten().for_each(|id| self.pruned.insert(id));
        self.reopen_once_more(endpoints)
    }

    /// At most as often as there are endpoints, of which each may keep more than the others.
    fn reopen_once_more(&mut self, endpoints: usize) -> bool {
        let may = endpoints > 1 && self.reopened < endpoints;
        if may {
            self.reopened += 1;
            self.proof = EndProof::Open;
            self.list.reopen();
        }
        may
    }

    /// Endpoints to leave out of requests, while there are others.
    pub(super) fn without(&self, pool: &Pool) -> EndpointSet {
        let is_pruned = |id: EndpointId| self.pruned.contains(id);
        let is_any = self.pruned != EndpointSet::default();
        let has_others = || pool.endpoints().iter().any(|status| !is_pruned(status.id));
        if is_any && has_others() { self.pruned } else { EndpointSet::default() }
    }

    /// Whether the list was read to its end, from nodes that keep the whole chain.
    pub(super) fn is_whole(&self) -> bool {
        let all_kept = matches!(self.proof, EndProof::Kept(first) if first <= FIRST_HEIGHTS);
        self.list.has_ended() && !self.list.is_passed() && all_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_lacked_is_asked_of_another_endpoint() {
        let list = || List::new(Kind::Account, 0, 100);
        let [one, other] = [0, 1].map(|at| Some(EndpointId(at)));
        for (answered_by, avoided) in [([one, other], one), ([None, other], other)] {
            let mut listing = Listing::new([7; 32], list());
            (listing.answered_by, listing.last_by) = (answered_by, other);
            assert_eq!([false, true].map(|second| listing.avoided(second)), [None, other]);
            let mut again = listing.again(list());
            assert!(again.is_late() && again.is_relisted && listing.list.has_ended());
            assert_eq!(again.avoided(false), avoided);
            again.begin_anew(0, 100);
            assert_eq!(again.avoided(false), avoided);
        }
    }
}
