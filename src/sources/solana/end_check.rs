//! Checks the end of full-transaction pages against the wallet's list of signatures: a provider
//! that keeps only the newest epochs ends its pages early and agrees with itself.
//!
//! A transaction that names only token accounts fills an order of the wallet, and the order's own
//! transaction names the wallet: where the wallet's list has ended, no such transaction lies below.

use super::fetch::{PageReply, PageRequest};
use super::full_pages::FIRST_SLOT;
use super::hint::Mark;
use super::list::{Entry, Kind, List};
use super::list_page::ListPage;
use super::listing::{FIRST_HEIGHTS, Listing, PageState};
use crate::domain::Height;
use crate::rpc::{EndpointId, Result, UpstreamError};
use crate::sources::pager::PageOutcome;

/// What the list shows about the end of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndVerdict {
    Open,
    /// Nothing lies below, according to nodes that keep the whole chain.
    Confirmed,
    /// Nothing lies below that pages can return, but something lies below the first slot of pages.
    GoesOn,
    /// Something lies below that pages should have returned.
    Contradicted,
    /// The list has no end that is proved.
    Lost,
}

#[derive(Debug)]
pub(super) enum EndQuestion {
    Page(Box<PageRequest>, Option<EndpointId>),
    /// The first blocks kept by the endpoints that reported the end.
    FirstKept([Option<EndpointId>; 2]),
}

#[derive(Debug)]
pub(super) struct EndCheck {
    listing: Listing,
    low: Height,
    high: Height,
    /// The lowest slot that pages have returned.
    oldest: Option<Height>,
    is_proof_asked: bool,
    pub(super) verdict: EndVerdict,
    avoid: Option<EndpointId>,
}

impl EndCheck {
    /// Continues below the two lowest entries of pages that name the wallet; begins at the top
    /// where there are no two. `avoid`: an endpoint that returned the pages.
    pub(super) fn new(
        wallet: [u8; 32],
        (low, high): (Height, Height),
        oldest: Option<Height>,
        marks: Option<(Mark, Mark)>,
        avoid: Option<EndpointId>,
    ) -> Self {
        let list = List::new(Kind::Wallet, low, high);
        let list = match marks {
            Some(((_, above), tail)) => list.resumed(above, tail),
            None => list,
        };
        let listing = Listing::new(wallet, list);
        let (is_proof_asked, verdict) = (false, EndVerdict::Open);
        Self { listing, low, high, oldest, is_proof_asked, verdict, avoid }
    }

    pub(super) fn question(&mut self) -> Option<EndQuestion> {
        if self.verdict != EndVerdict::Open || self.is_proof_asked {
            return None;
        }
        if self.listing.list.has_ended() {
            self.is_proof_asked = true;
            return Some(EndQuestion::FirstKept(self.listing.ended_by()));
        }
        if matches!(self.listing.state, PageState::Asked { .. }) {
            return None;
        }
        self.listing.state = PageState::Asked { is_first: false };
        // Where there are pages, they have already returned the newest transactions.
        let request = self.listing.request(0, self.high, false);
        Some(EndQuestion::Page(Box::new(request), self.listing.last_by.or(self.avoid)))
    }

    pub(super) fn absorb(&mut self, page: PageReply) -> Result<()> {
        self.listing.state = PageState::Paged;
        let ListPage { entries, goes_on, by } = match page {
            Err(UpstreamError::Malformed { .. } | UpstreamError::Rpc { .. }) => {
                if self.listing.list.miss() == PageOutcome::Lost {
                    self.verdict = EndVerdict::Lost;
                }
                return Ok(());
            }
            page => page?,
        };
        self.listing.last_by = Some(by);
        match self.listing.list.absorb(&entries, goes_on) {
            PageOutcome::Lower(_) | PageOutcome::Inside { .. } | PageOutcome::Nothing => {
                let [_, previous] = self.listing.answered_by;
                self.listing.answered_by = [previous, Some(by)];
                self.judge(&entries);
            }
            PageOutcome::Miss => {}
            PageOutcome::Lost => self.verdict = EndVerdict::Lost,
        }
        Ok(())
    }

    fn judge(&mut self, entries: &[Entry]) {
        let top = self.oldest.map_or(self.high, |oldest| oldest.saturating_sub(1));
        let below = || entries.iter().filter(|entry| (self.low..=top).contains(&entry.slot));
        let in_pages = |entry: &Entry| entry.slot >= FIRST_SLOT && !entry.has_failed();
        if below().any(in_pages) {
            tracing::warn!(
                top,
                "full-transaction pages end above entries of the signature list; their end is rejected"
            );
            self.verdict = EndVerdict::Contradicted;
        } else if below().any(|entry| entry.slot < FIRST_SLOT) {
            self.verdict = EndVerdict::GoesOn;
        } else if self.listing.list.is_passed() {
            self.verdict = EndVerdict::Confirmed;
        }
    }

    pub(super) fn prove(&mut self, kept: &[(EndpointId, Height)]) {
        let first = kept.iter().map(|(_, first)| *first).min();
        let is_kept = first.is_some_and(|first| first <= self.low.max(FIRST_HEIGHTS));
        self.verdict = if is_kept { EndVerdict::Confirmed } else { EndVerdict::Lost };
    }
}
