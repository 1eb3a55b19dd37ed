//! Errors of the store.

use std::sync::Arc;

use super::WalletId;
use crate::domain::named;

/// Cheap to clone: one failed commit answers every waiter with the same error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    #[error(
        "the store {file} is in use by another blotter: ask that one through its URL, or stop it"
    )]
    Locked { file: String },
    /// Nothing was changed in the file.
    #[error("the store has format {found}, this blotter reads up to {supported}: use a newer one")]
    NewerFormat { found: u64, supported: u64 },
    /// Nothing was changed in the file.
    #[error("{file} is no usable store ({reason}): move it away, or choose another folder")]
    Foreign { file: String, reason: String },
    /// Reading, writing or syncing failed: a full disk, a read-only file system, a broken device.
    /// A write with this error may be durable or not, but never in part; it can be repeated.
    #[error("the store could not use its file: {0}")]
    Io(#[source] Arc<std::io::Error>),
    #[error("table {table} of the store holds a damaged record: {reason}")]
    Corrupt { table: &'static str, reason: String },
    /// A record of a newer program in a file whose format this one supports.
    #[error("table {table} of the store holds a record of version {found}: use a newer blotter")]
    NewerRecord { table: &'static str, found: u8 },
    #[error("the store has no wallet number {}", .0.0)]
    UnknownWallet(WalletId),
    /// The caller broke a rule of [`Chunk`](super::Chunk) or of a number's range.
    #[error("the store was given something that it cannot hold: {0}")]
    Invalid(&'static str),
    /// The database reported a state that no other variant names.
    #[error("the store failed: {0}")]
    Engine(String),
    /// The database that holds the store does not answer, or takes no writes. A write with this
    /// error may be stored or not, but never in part; it can be repeated.
    #[error("the shared store cannot be reached: {0}")]
    Unreachable(String),
    /// The settings of the shared store cannot be used.
    #[error("the shared store cannot be used: {0}")]
    Unusable(String),
    /// Rows were removed between two reads of one view: take another view.
    #[error("rows were removed while they were read")]
    Overtaken,
    #[error("the store was closed")]
    Closed,
    /// The writer thread ended by a panic; reading goes on, writing needs a restart.
    #[error("the store's writer has stopped: restart the service")]
    WriterGone,
}

named! {
    /// Why a call to a shared store failed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum StoreFailure {
        /// It did not answer by the deadline.
        Timeout = "timeout",
        /// No connection could be made, or one was cut.
        Connection = "connection",
        /// It takes no writes.
        ReadOnly = "read_only",
        /// Its disk is full.
        Full = "full",
        /// It conflicted with another transaction.
        Conflict = "conflict",
        Other = "other",
    }
}

impl StoreError {
    /// Whether only the request is at fault, so that others of the same commit can go on.
    pub(super) fn is_of_one_request(&self) -> bool {
        use StoreError::{Corrupt, Invalid, NewerRecord, Overtaken, UnknownWallet};
        matches!(
            self,
            Corrupt { .. } | NewerRecord { .. } | UnknownWallet(_) | Invalid(_) | Overtaken
        )
    }
}

/// Every error of the database, and of input and output.
impl<E: Into<redb::Error>> From<E> for StoreError {
    fn from(error: E) -> Self {
        use redb::Error::{Corrupted, DatabaseClosed, Io, PreviousIo};
        let error = error.into();
        let text = error.to_string();
        if let Io(error) = error {
            Self::Io(Arc::new(error))
        } else if let Corrupted(reason) = error {
            Self::Corrupt { table: "(pages)", reason }
        } else if matches!(error, PreviousIo | DatabaseClosed) {
            // The file failed earlier, and is not reopened yet.
            Self::Io(Arc::new(std::io::Error::other(text)))
        } else {
            Self::Engine(text)
        }
    }
}
