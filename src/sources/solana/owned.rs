//! What a gateway shows of a gap next to the lists: fetched from nodes once the lists are read, and
//! delivered with the rest.

use super::fetch::FetchedEntry;
use super::list::Entry;
use super::timeline::Timeline;
use crate::domain::Height;
use crate::rpc::error::Result;

/// Transactions that a gateway names as holding the wallet's token balances.
pub(super) enum OwnedState {
    /// None are asked for, or all have come.
    Done,
    InFlight,
    /// Those that no list names are fetched once the lists are read.
    Listed(Vec<Entry>),
}

impl OwnedState {
    /// Rows wait for it.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self, Self::Done)
    }

    /// What is to be fetched: what no list names, once the lists are read down to it.
    pub(super) fn take_unlisted(
        &mut self,
        frontier: Option<Height>,
        timeline: &mut Timeline,
    ) -> Option<Vec<Entry>> {
        let Self::Listed(entries) = self else { return None };
        let lowest = entries.iter().map(|entry| entry.slot).min();
        let is_above = |lowest| frontier.is_some_and(|frontier| frontier >= lowest);
        if lowest.is_some_and(is_above) {
            return None;
        }
        let mut entries = std::mem::take(entries);
        entries.retain(|entry| !entry.failed && !timeline.has(entry));
        *self = if entries.is_empty() { Self::Done } else { Self::InFlight };
        (!entries.is_empty()).then_some(entries)
    }
}

/// What nodes returned. A gateway that fails, or names what no node has, is no reason to stop.
pub(super) fn returned(fetched: Result<Vec<FetchedEntry>>) -> Vec<FetchedEntry> {
    match fetched {
        Ok(fetched) => fetched.into_iter().filter(|(_, tx)| tx.is_some()).collect(),
        Err(error) => {
            tracing::debug!(%error, "what the gateway names is left out");
            Vec::new()
        }
    }
}
