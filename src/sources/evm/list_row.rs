//! A row of an account's list.

use std::collections::HashSet;

use super::sent::SentNonce;
use crate::decode::evm::{Account, NativeMove, Word};
use crate::domain::{Height, Units, UnixSeconds};

/// One row of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListRow {
    pub(super) hash: Word,
    pub(super) block: Height,
    pub(super) index: Option<u32>,
    pub(super) time: Option<UnixSeconds>,
    pub(super) sent: SentNonce,
    /// The index's own name of a movement: none of its transaction has the same. `None`: it gives
    /// none.
    pub(super) mark: Option<Box<str>>,
    pub(super) what: What,
}

/// Rows that a page has twice count once, where their marks show that they are the same: a call in
/// two rows would double an amount.
pub(super) fn without_repeats(mut rows: Vec<ListRow>) -> Vec<ListRow> {
    let mut seen = HashSet::new();
    let call = |row: &ListRow| match row.what {
        What::Call(call) => Some((row.hash, row.mark.clone()?, call)),
        What::Outer { .. } | What::Failed | What::Token { .. } | What::Nothing => None,
    };
    rows.retain(|row| call(row).is_none_or(|call| seen.insert(call)));
    rows
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
