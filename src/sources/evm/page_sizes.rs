//! How many rows each list of an endpoint of an index has given in one page: indexes cut their answers
//! at caps that they do not name.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::explorer_wire::ExplorerList;
use crate::rpc::endpoint::EndpointId;

type ListOf = (EndpointId, ExplorerList);

/// Rows of the longest page.
#[derive(Debug, Default)]
pub(super) struct PageSizes(Mutex<HashMap<ListOf, usize>>);

impl PageSizes {
    pub(super) fn note(&self, of: ListOf, rows: usize) {
        let mut all = self.lock();
        let longest = all.entry(of).or_default();
        *longest = rows.max(*longest);
    }

    /// Whether a list has given more rows than these in one page: then they were not cut at its cap.
    pub(super) fn gives_more(&self, of: ListOf, rows: usize) -> bool {
        self.lock().get(&of).is_some_and(|longest| *longest > rows)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ListOf, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
