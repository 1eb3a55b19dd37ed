//! A row of an account's list.

use super::sent::SentNonce;
use crate::decode::evm::{Account, NativeMove, Word};
use crate::domain::{Height, Units, UnixSeconds};

/// One row of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) hash: Word,
    pub(super) block: Height,
    pub(super) index: Option<u32>,
    pub(super) time: Option<UnixSeconds>,
    pub(super) sent: SentNonce,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// The transaction itself.
    Outer { from: Account, to: Option<Account>, value: Units, selector: Option<[u8; 4]> },
    /// The same, taken back.
    Failed,
    /// A token transfer of more than nothing.
    Token { from: Account, to: Account },
    /// A call that gave native coin.
    Call(NativeMove),
    /// A row without a movement.
    Nothing,
}
