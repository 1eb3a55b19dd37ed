//! Why a history cannot be told, in words that a client may see: never a URL, never a secret.

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
    /// No endpoint is known to keep what lies below this height.
    #[error(
        "the configured nodes keep the history only from height {first}: what is older is not \
         known; configure a node with full history"
    )]
    HistoryCut { first: Height },
    /// All heights were read, some in a way that leaves a doubt: they are read again.
    #[error(
        "the history is not proved complete: heights {low} to {high} were read with a doubt \
         ({doubts}); they are read again, ask later"
    )]
    Unproved { doubts: Doubts, low: Height, high: Height },
    /// A cursor's walk can no longer end as a whole: rows came or went above it since.
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
    #[error("the server is shutting down; resume with the cursor")]
    ShuttingDown,
    /// The store failed; the cause is in the log.
    #[error("the store cannot be read or written: {detail}")]
    Store { detail: String },
    #[error("loading this wallet failed inside the server; it was logged")]
    Internal,
}

impl HistoryError {
    /// The first height that the nodes keep, where the history is cut.
    pub fn history_cut(&self) -> Option<Height> {
        if let Self::HistoryCut { first } = self { Some(*first) } else { None }
    }
}

impl From<StoreError> for HistoryError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "the store failed");
        Self::Store { detail: error.to_string() }
    }
}
