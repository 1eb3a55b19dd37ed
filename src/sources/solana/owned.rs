//! What a gateway shows of a gap next to the lists: fetched from nodes, and delivered with the rest.

use super::fetch::Fetched;
use super::list::Entry;
use super::list_reader::{ListEvent, ListReader};
use crate::domain::Height;
use crate::rpc::error::UpstreamError;

/// Transactions that a gateway names as holding the wallet's token balances.
pub(super) enum OwnedState {
    /// None are asked for, or all have come.
    Done,
    InFlight,
    /// Those that no list names are fetched once the lists are read.
    Listed(Vec<Entry>),
}

impl ListReader {
    /// Asks the gateway about a gap that is short enough.
    pub(super) fn ask_owned(&mut self, high: Height) {
        self.owned = OwnedState::Done;
        let range = (self.request.low, high);
        if !self.source.is_scanned(range) {
            return;
        }
        self.owned = OwnedState::InFlight;
        let (source, wallet) = (self.source.clone(), self.request.wallet);
        let lane = self.options.lane.clone();
        self.prefetcher.push(Box::pin(async move {
            ListEvent::Owned(source.owned(&[wallet], range, &lane).await)
        }));
    }

    /// Fetches what the gateway names and no list does, once the lists have been read so far.
    pub(super) fn fetch_owned(&mut self) {
        let frontier = self.lists_frontier();
        let is_cut = self.cut_at(frontier).is_some();
        let OwnedState::Listed(entries) = &mut self.owned else { return };
        let lowest = entries.iter().map(|entry| entry.slot).min();
        let is_read = |lowest| frontier.is_none_or(|frontier| frontier < lowest);
        if lowest.is_some_and(|lowest| !is_read(lowest) && !is_cut) {
            return;
        }
        let mut entries = std::mem::take(entries);
        entries.retain(|entry| !entry.failed && !self.timeline.has(entry));
        self.owned = OwnedState::Done;
        if entries.is_empty() {
            return;
        }
        self.owned = OwnedState::InFlight;
        let (source, options) = (self.source.clone(), self.options.clone());
        self.prefetcher.push(Box::pin(async move {
            ListEvent::OwnedFetched(source.transactions(entries, options).await)
        }));
    }

    /// A gateway that fails, or names what no node returns, is no reason to stop.
    pub(super) fn owned_fetched(
        &mut self,
        fetched: Result<Vec<Fetched>, UpstreamError>,
    ) -> Result<(), UpstreamError> {
        self.owned = OwnedState::Done;
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(error) => {
                tracing::debug!(%error, "what the gateway names is left out");
                return Ok(());
            }
        };
        for (entry, tx) in fetched {
            if let Some(tx) = tx {
                self.timeline.add_in_flight(&entry);
                self.fetched(entry, Some(tx))?;
            }
        }
        Ok(())
    }
}
