//! The row buffer of a step, reused where a filter rejects all rows. Otherwise each of thousands of
//! streams would allocate new memory before its first row.

use std::sync::Mutex;

use crate::domain::{Rows, lock};

/// More walks than this hardly read at the same moment.
const ROOMS_KEPT_MAX: usize = 8;

#[derive(Debug, Default)]
pub(in crate::history) struct Rooms(Mutex<Vec<Rows>>);

impl Rooms {
    pub(super) fn take(&self) -> Rows {
        lock(&self.0).pop().unwrap_or_default()
    }

    /// Takes back what [`Rooms::take`] gave.
    pub(super) fn put(&self, room: Rows) {
        let mut kept = lock(&self.0);
        if kept.len() < ROOMS_KEPT_MAX {
            kept.push(room);
        }
    }
}
