//! Why a history cannot be served, in texts that a client may see: never a URL, never a secret.

use crate::domain::{Doubts, Height};
use crate::store::StoreError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// No node answers for this chain now; `detail` names endpoints by label only.
    #[error("no node of this chain answers: {detail}")]
    UpstreamUnavailable { detail: String },
    #[error("the address is no wallet: {detail}")]
    NotAWallet { detail: String },
    #[error("this chain is not enabled on this server")]
    ChainDisabled,
    /// No endpoint is known to support what an estimate needs, and nothing is stored to estimate
    /// from.
    #[error("the endpoints of this chain give no estimates: {detail}; read the history itself")]
    NotEstimable { detail: String },
    /// No endpoint is known to keep blocks below this height.
    #[error(
        "the configured nodes keep the history only from height {first}: what is older is not \
         known; configure a node with full history"
    )]
    HistoryCut { first: Height },
    /// All heights were read, some with a doubt: these are being read again.
    #[error(
        "the history is not proved complete: heights {low} to {high} were read with a doubt \
         ({doubts}); they are read again, ask later"
    )]
    Unproved { doubts: Doubts, low: Height, high: Height },
    /// Rows above the cursor were added or removed, so that the walk can no longer be complete.
    #[error(
        "rows were added or removed above this cursor since its walk began; begin a new walk \
         without a cursor"
    )]
    Changed,
    #[error("the key's quota of trades is used up")]
    QuotaExceeded,
    #[error("the key was revoked or has expired; go on from the cursor with a valid one")]
    KeyEnded,
    #[error("too many wallets are being loaded; try again shortly")]
    Overloaded,
    #[error(
        "the server is shutting down; ask again shortly, with the last cursor where there is one"
    )]
    ShuttingDown,
    /// No more rows can be stored; stored rows are still served.
    #[error("the store is full: {reason}")]
    StoreFull { reason: &'static str },
    /// The store failed; the cause is in the log. It may pass where a database does not answer or
    /// takes no writes.
    #[error("the store cannot be read or written: {detail}")]
    Store { detail: String, may_pass: bool },
    #[error("loading this wallet failed inside the server; it was logged")]
    Internal,
}

impl HistoryError {
    /// The first height that the nodes keep, if the history is cut.
    pub fn history_cut(&self) -> Option<Height> {
        if let Self::HistoryCut { first } = self { Some(*first) } else { None }
    }
}

impl From<StoreError> for HistoryError {
    fn from(error: StoreError) -> Self {
        if let StoreError::UnknownWallet(_) = error {
            // The wallet was forgotten after its number was read.
            return Self::Changed;
        }
        tracing::error!(%error, "the store failed");
        if let Some(reason) = write_refusal(&error) {
            return Self::StoreFull { reason };
        }
        let may_pass = matches!(error, StoreError::Unreachable(_));
        Self::Store { detail: error.to_string(), may_pass }
    }
}

const NO_SPACE: &str = "its disk or its disk quota is full; make room";

const READ_ONLY: &str = "its folder cannot be written to; make it writable and start again";

/// Why no write can succeed for now. A full disk, a disk quota and a file size limit have the same
/// remedy.
fn write_refusal(error: &StoreError) -> Option<&'static str> {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let StoreError::Io(cause) = error else { return None };
    let kind = cause.kind();
    if [StorageFull, QuotaExceeded, FileTooLarge].contains(&kind) {
        return Some(NO_SPACE);
    }
    (kind == ReadOnlyFilesystem).then_some(READ_ONLY)
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    fn of(cause: Error) -> HistoryError {
        StoreError::from(cause).into()
    }

    #[test]
    fn a_full_or_read_only_disk_is_an_error_of_its_own() {
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge] {
            assert_eq!(of(kind.into()), HistoryError::StoreFull { reason: NO_SPACE }, "{kind}");
        }
        let read_only = of(ErrorKind::ReadOnlyFilesystem.into());
        assert_eq!(read_only, HistoryError::StoreFull { reason: READ_ONLY });
        let error = of(Error::other("a broken device"));
        assert!(matches!(error, HistoryError::Store { may_pass: false, .. }), "{error:?}");
    }

    #[test]
    fn a_database_that_does_not_answer_may_answer_later() {
        for (error, expected) in [
            (StoreError::Unreachable("no answer in time".to_owned()), true),
            (StoreError::Engine("permission denied".to_owned()), false),
        ] {
            let error = HistoryError::from(error);
            let passes = matches!(error, HistoryError::Store { may_pass: true, .. });
            assert_eq!(passes, expected, "{error:?}");
        }
    }
}
