//! Transactions of a gap that a gateway lists next to the signature lists: they are fetched from
//! nodes once the lists are read, and delivered with the rest.

use super::fetch::{Fetched, FetchedEntry};
use super::list::Entry;
use super::timeline::Timeline;
use crate::domain::Height;
use crate::rpc::Result;

/// Transactions that a gateway lists because they hold token balances of the wallet.
pub(super) enum OwnedState {
    /// No transactions are wanted, or all have arrived.
    Done,
    InFlight,
    /// Transactions that are in no list are fetched once the lists are read.
    Listed(Vec<Entry>),
}

impl OwnedState {
    /// Whether the delivery of rows waits for it.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self, Self::Done)
    }

    /// Takes the transactions to fetch: those in no list, once the lists are read down to them.
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
        entries.retain(|entry| !entry.has_failed() && !timeline.has(entry));
        *self = if entries.is_empty() { Self::Done } else { Self::InFlight };
        (!entries.is_empty()).then_some(entries)
    }
}

/// The transactions that nodes returned. A gateway that fails, or lists transactions that no node
/// has, does not stop the read.
pub(super) fn returned(fetched: Result<Vec<FetchedEntry>>) -> Vec<FetchedEntry> {
    match fetched {
        Ok(mut fetched) => {
            fetched.retain(|(_, tx)| matches!(tx, Fetched::Transaction(_)));
            fetched
        }
        Err(error) => {
            tracing::debug!(%error, "what the gateway names is left out");
            Vec::new()
        }
    }
}
