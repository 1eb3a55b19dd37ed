//! What a way to find a wallet's transactions tells, whichever it is.

use crate::decode::evm::{NativeMove, Transaction, Word};
use crate::domain::{Height, Resume, UnixSeconds};

/// A transaction that may be a trade of the wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) hash: Word,
    pub(super) block: Height,
    pub(super) index: Option<u32>,
    pub(super) time: Option<UnixSeconds>,
    /// The transaction with its receipt, where the list gives it whole.
    pub(super) whole: Option<Box<Transaction>>,
    /// Native coin moved by its inner calls, where the list tells all that touch the wallet.
    pub(super) calls: Option<Vec<NativeMove>>,
    /// Whether the wallet sent it or gave anything in it, as far as the list tells.
    pub(super) sent: Option<bool>,
}

/// Heights of which the list tells every candidate; newest first, one below the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) low: Height,
    pub(super) high: Height,
    pub(super) found: Vec<Candidate>,
    pub(super) resume: Option<Resume>,
    /// Transactions that only came in, from nobody known.
    pub(super) skipped: usize,
}
