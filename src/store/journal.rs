//! The changes that are committed while a copy of the file is made, to be applied to it as well.

use std::sync::Mutex;

use redb::Database;

use super::apply::Tables;
use super::forget::forget_in;
use super::intern::Known;
use super::job::Change;
use super::schema::begin_write;
use super::{LIMITS, Result, StoreError};
use crate::domain::{Wallet, lock, opaque};

pub(super) enum JournalEntry {
    /// A write, with its weight.
    Write(usize, Change),
    Forget(Wallet, [u64; 4]),
}

#[derive(Default)]
enum State {
    /// No copy is being made.
    #[default]
    Off,
    On {
        entries: Vec<JournalEntry>,
        weight: usize,
    },
    /// The copy cannot be brought up to date.
    Abandoned(&'static str),
}

/// The writer adds to it. The thread that makes the copy takes from it and, in the last step, the
/// writer in its place.
#[derive(Default)]
pub(super) struct Journal(Mutex<State>);

opaque!(Journal);

impl Journal {
    /// # Errors
    /// `Invalid` while another copy is being made.
    pub(super) fn begin(&self) -> Result<()> {
        let mut state = lock(&self.0);
        if let State::On { .. } = *state {
            return Err(StoreError::Invalid("a second compaction at the same time"));
        }
        *state = State::On { entries: Vec::new(), weight: 0 };
        Ok(())
    }

    pub(super) fn end(&self) {
        *lock(&self.0) = State::Off;
    }

    pub(super) fn add(&self, new: impl IntoIterator<Item = JournalEntry>) {
        let mut state = lock(&self.0);
        let State::On { entries, weight } = &mut *state else { return };
        for entry in new {
            *weight += if let JournalEntry::Write(weight, _) = entry { weight } else { 1 };
            entries.push(entry);
        }
        if *weight > LIMITS.journal_records {
            *state = State::Abandoned("more is written than the copy can take");
        }
    }

    pub(super) fn abandon(&self, reason: &'static str) {
        let mut state = lock(&self.0);
        if let State::On { .. } = *state {
            *state = State::Abandoned(reason);
        }
    }

    /// Takes the entries that were added since the last call, with the sum of their weights.
    pub(super) fn take(&self) -> Result<(Vec<JournalEntry>, usize)> {
        match &mut *lock(&self.0) {
            State::On { entries, weight } => Ok((std::mem::take(entries), std::mem::take(weight))),
            State::Abandoned(reason) => Err(StoreError::Invalid(reason)),
            State::Off => Err(StoreError::Invalid("a journal that was ended")),
        }
    }
}

/// Applies entries to a copy. The same changes in the same order give the same rows and numbers.
pub(super) fn replay(entries: Vec<JournalEntry>, to: &Database, known: &mut Known) -> Result<()> {
    let mut changes = Vec::new();
    for entry in entries {
        match entry {
            JournalEntry::Write(_, change) => changes.push(change),
            JournalEntry::Forget(wallet, seed) => {
                commit(std::mem::take(&mut changes), to, known)?;
                forget_in(to, &wallet, seed)?;
            }
        }
    }
    commit(changes, to, known)
}

fn commit(changes: Vec<Change>, to: &Database, known: &mut Known) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    known.changed.clear();
    let txn = begin_write(to)?;
    {
        let mut tables = Tables::open(&txn)?;
        for change in changes {
            change(&mut tables, known)?;
        }
    }
    txn.commit()?;
    Ok(())
}
