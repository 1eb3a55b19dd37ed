//! The events for which a reader of lists waits, and what it does on each.

use tokio::time::Instant;

use super::{ListEvent, ListReader};
use crate::domain::{Doubts, Height};
use crate::rpc::classify::UNKNOWN_SIGNATURE;
use crate::rpc::{Result, UpstreamError};
use crate::sources::chunk::RawChunk;
use crate::sources::prefetch::{ChunkSizes, PrefetchReader, Prefetcher, Urgency};
use crate::sources::solana::fetch::PageReply;
use crate::sources::solana::list::{Kind, List};
use crate::sources::solana::listing::{Existence, Listing, PageState, Phase};
use crate::sources::solana::owned::{self, OwnedState};

impl ListReader {
    /// Notes where first pages begin: the first entries of another chain's list overlap with nothing
    /// that would show them. Those of a late list are delivered with any chunk.
    fn note_first(&mut self, pages: &[(usize, PageReply)]) {
        for (number, page) in pages {
            let (Some(listing), Ok(page)) = (self.listings.get(*number), page) else { continue };
            if listing.state != (PageState::Asked { is_first: true }) {
                continue;
            }
            let highest = page.entries.iter().map(|entry| entry.slot).max().unwrap_or_default();
            let top = if listing.is_late() { Height::MAX } else { listing.list.high.max(highest) };
            let [open, asked] = self.unnamed;
            self.unnamed = [open.max(Some(top)), asked];
        }
    }

    /// Asks for the chain again while the transactions are fetched, one question at a time: a wallet
    /// may have hundreds of lists, found one after another.
    fn name_again(&mut self) {
        let [top @ Some(_), None] = self.unnamed else { return };
        self.unnamed = [None, top];
        let (source, options) = (self.source.clone(), self.options.clone());
        let read = (self.begun, Instant::now());
        self.prefetcher.push(Box::pin(async move {
            ListEvent::Named(source.confirm_chain(read, &options).await)
        }));
    }

    fn take_pages(&mut self, pages: Vec<(usize, PageReply)>) -> Result<()> {
        self.note_first(&pages);
        for (number, page) in pages {
            match page {
                Ok(page) => self.page(number, page)?,
                Err(error @ UpstreamError::Malformed { .. }) => self.torn(number, error)?,
                Err(error @ UpstreamError::Rpc { code: UNKNOWN_SIGNATURE, .. }) => {
                    self.unknown_cursor(number, error)?;
                }
                // One that may keep more is waited for, unless it has no lists.
                Err(error @ UpstreamError::Unavailable { .. }) => {
                    return self.open_elsewhere(error);
                }
                Err(error) if self.listings.get_mut(number).is_some_and(Listing::ask_all) => {
                    self.torn(number, error)?;
                }
                Err(error) => return self.open_elsewhere(error),
            }
        }
        Ok(())
    }
}

impl PrefetchReader for ListReader {
    type Event = ListEvent;
    type Chunk = RawChunk;

    fn prefetcher(&mut self) -> &mut Prefetcher<ListEvent> {
        &mut self.prefetcher
    }

    fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    fn request_more(&mut self, urgency: Urgency) {
        if self.prefetcher.is_premature(urgency)
            || matches!(self.phase, Phase::Opening | Phase::Ended)
        {
            return;
        }
        self.name_again();
        self.ask_pages(urgency);
        self.ask_transactions(urgency);
        self.ask_failed();
        self.ask_late();
        self.ask_proofs();
        self.ask_existence();
        self.fetch_owned();
    }

    fn absorb(&mut self, event: ListEvent) -> Result<()> {
        match event {
            ListEvent::Opened(opening) => self.opened(opening?),
            ListEvent::Accounts(opening) => self.add_accounts(opening?),
            ListEvent::Anchored(anchor) => {
                let high = self.request.high.unwrap_or_default();
                let list = List::new(Kind::Wallet, self.request.low, high);
                match anchor? {
                    Some(above) => self.start(high, list.from(above)),
                    None => self.start(high, list),
                }
            }
            ListEvent::Pages(pages) => self.take_pages(pages)?,
            ListEvent::Named(named) => {
                named?;
                let [open, _] = self.unnamed;
                self.unnamed = [open, None];
            }
            ListEvent::Fetched(fetched) => self.take_fetched(fetched?)?,
            ListEvent::FirstKept(numbers, kept) => self.ended(numbers, kept)?,
            ListEvent::Exists(exists) => {
                if exists? {
                    self.doubts = self.doubts.union(Doubts::UNCONFIRMED);
                }
                self.existence = Existence::Known;
            }
            ListEvent::NotFailed(asked, not_failed) => {
                self.timeline.confirm_failed(&asked, &not_failed);
            }
            ListEvent::Owned(Ok(found)) => {
                let entries = found.into_iter().map(|(_, entry)| entry).collect();
                self.owned = OwnedState::Listed(entries);
                self.fetch_owned();
            }
            ListEvent::Owned(Err(error)) => {
                self.owned = OwnedState::Done;
                owned::returned(Err(error));
            }
            ListEvent::OwnedFetched(fetched) => {
                self.owned = OwnedState::Done;
                for (entry, tx) in owned::returned(fetched) {
                    self.timeline.add_in_flight(&entry);
                    self.fetched(entry, tx);
                }
            }
        }
        Ok(())
    }

    fn deliver(&mut self) -> Result<Option<RawChunk>> {
        let limits = &self.source.inner.limits;
        let mut sizes = ChunkSizes {
            chunk_min: self.chunk_min,
            chunk_max: limits.chunk_max,
            skipped_max: limits.skipped_max,
        };
        if matches!(self.phase, Phase::Opening | Phase::Ended) || self.late.is_open() {
            return Ok(None);
        }
        if self.is_nothing_listed() && self.existence != Existence::Known {
            return Ok(None);
        }
        self.check_balances(self.frontier());
        let frontier = self.frontier();
        if let Some(first) = self.cut_at(frontier) {
            if self.timeline.next_high < first {
                return Err(self.cut_error(first));
            }
            sizes.skipped_max = 0;
        }
        let Some(ready) = self.timeline.deliver(frontier, &sizes) else { return Ok(None) };
        self.chunk_min = (self.chunk_min * 2).min(sizes.chunk_max / 2);
        if self.timeline.done {
            self.phase = Phase::Ended;
        }
        Ok(Some(self.chunk(ready)))
    }
}
