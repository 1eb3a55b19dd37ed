//! State of a wallet that a source keeps between reads.

use super::Height;

/// A token account of a wallet, on chains where balances live in accounts of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceAccount {
    pub account: [u8; 32],
    /// The balance seen at the last head, in base units; `None` once it is closed.
    pub amount: Option<u64>,
    /// Set once its list was read to the end: the height of its oldest transaction.
    pub oldest: Option<Height>,
}
