//! A pool of row buffers, reused if a filter rejects all rows of a step. Otherwise each of
//! thousands of streams would allocate memory before its first row.

use std::sync::Mutex;

use crate::domain::{Rows, lock};

/// More walks than this rarely read at the same moment.
const BUFFERS_KEPT_MAX: usize = 8;

#[derive(Debug, Default)]
pub(in crate::history) struct RowBuffers(Mutex<Vec<Rows>>);

impl RowBuffers {
    pub(super) fn take(&self) -> Rows {
        lock(&self.0).pop().unwrap_or_default()
    }

    /// Returns a buffer from [`RowBuffers::take`].
    pub(super) fn put(&self, buffer: Rows) {
        let mut kept = lock(&self.0);
        if kept.len() < BUFFERS_KEPT_MAX {
            kept.push(buffer);
        }
    }
}
