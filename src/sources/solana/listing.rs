//! A list with what is needed to ask for its next page, and whether its end can be believed.

use super::fetch::PageRequest;
use super::list::{Kind, List};
use crate::domain::Height;
use crate::rpc::endpoint::EndpointId;
use crate::rpc::endpoint_set::EndpointSet;
use crate::rpc::pool::Pool;

/// Slots that a node which keeps everything may name as its first.
pub(super) const FIRST_HEIGHTS: Height = 1;

/// How far a read has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waits for what must be known before anything is listed.
    Opening,
    Reading,
    Ended,
}

#[derive(Debug)]
pub(super) struct Listing {
    pub(super) address: [u8; 32],
    pub(super) list: List,
    pub(super) state: PageState,
    /// Not yet begun anew from the top.
    pub(super) is_fresh: bool,
    pub(super) late: LateState,
    /// A chunk reported that it is read to its end.
    pub(super) is_reported: bool,
    /// Who gave the last page.
    pub(super) last_by: Option<EndpointId>,
    /// Who gave the last two pages that held what they must.
    pub(super) answered_by: [Option<EndpointId>; 2],
    pub(super) proof: EndProof,
    /// Those that reported an end, and do not keep what is wanted or do not say so.
    pruned: EndpointSet,
    reopened: usize,
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

/// Whether what a list has above the delivered heights belongs to the wallet too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LateState {
    Unwanted,
    Wanted,
    /// It was wanted, and is here.
    Known,
}

/// What the end of a list stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndProof {
    Open,
    Asked,
    /// The first block kept by one of the endpoints that reported it.
    Kept(Height),
    /// None of them says what it keeps.
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

    /// From the top.
    pub(super) fn begin_anew(&mut self, low: Height, high: Height) {
        let list = List::new(self.list.kind, low, high);
        *self = Self { is_fresh: false, late: self.late, ..Self::new(self.address, list) };
    }

    /// Another listing of the same account takes its place: it holds nothing up, and reports nothing.
    pub(super) fn retire(&mut self) {
        self.list.end_here();
        (self.proof, self.is_reported) = (EndProof::Unknown, true);
    }

    /// None is left out any more; false where none was.
    pub(super) fn ask_all(&mut self) -> bool {
        std::mem::take(&mut self.pruned) != EndpointSet::default()
    }

    /// The slot at and below which something may be unknown; `None`: all down to `low` is known.
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

    /// The slot at and below which no node that was asked keeps what is wanted.
    pub(super) fn cut(&self, low: Height) -> Option<Height> {
        let EndProof::Kept(first) = self.proof else { return None };
        let is_ended = self.list.has_ended() && !self.list.is_passed();
        (is_ended && first > low.max(FIRST_HEIGHTS)).then(|| self.list.end().min(first - 1))
    }

    /// The next page, of the list of this number in a read that begins at `head`.
    pub(super) fn request(&self, number: usize, head: Height, is_first: bool) -> PageRequest {
        let list = &self.list;
        // A late list is of all that is above it too.
        let min_slot = |slot: Height| if self.is_late() { slot.max(head) } else { slot };
        PageRequest {
            list: number,
            address: self.address,
            before: list.before(),
            min_slot: list.min_slot().map(min_slot),
            lowest: list.lowest,
            is_newest: list.is_newest(is_first),
        }
    }

    pub(super) fn wants_proof(&self) -> bool {
        self.list.has_ended() && !self.list.is_passed() && self.proof == EndProof::Open
    }

    /// Who said that nothing follows.
    pub(super) fn ended_by(&self) -> [Option<EndpointId>; 2] {
        match self.list.kind {
            Kind::Wallet => self.answered_by,
            Kind::Account => [self.last_by, None],
        }
    }

    /// The endpoints that reported the end keep blocks from these on; another one may have more.
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

    /// Its end is asked for once more, of other endpoints than those that reported it. False: that was
    /// done often enough.
    pub(super) fn reopen_elsewhere(&mut self, endpoints: usize) -> bool {
        self.ended_by().into_iter().flatten().for_each(|id| self.pruned.insert(id));
        self.reopen_once_more(endpoints)
    }

    /// As often as there are endpoints, of which each may keep more than the others.
    fn reopen_once_more(&mut self, endpoints: usize) -> bool {
        let may = endpoints > 1 && self.reopened < endpoints;
        if may {
            self.reopened += 1;
            self.proof = EndProof::Open;
            self.list.reopen();
        }
        may
    }

    /// Endpoints that it is not asked of, while there are others.
    pub(super) fn without(&self, pool: &Pool) -> EndpointSet {
        let is_pruned = |id: EndpointId| self.pruned.contains(id);
        let is_any = self.pruned != EndpointSet::default();
        let has_others = || pool.endpoints().iter().any(|status| !is_pruned(status.id));
        if is_any && has_others() { self.pruned } else { EndpointSet::default() }
    }

    /// Others than those who reported its end are waited for.
    pub(super) fn was_reopened(&self) -> bool {
        self.reopened > 0
    }

    /// Read to its very end, from nodes that keep the whole chain.
    pub(super) fn is_whole(&self) -> bool {
        let all_kept = matches!(self.proof, EndProof::Kept(first) if first <= FIRST_HEIGHTS);
        self.list.has_ended() && !self.list.is_passed() && all_kept
    }
}
