//! A row of an account's list.

use std::collections::HashSet;

use super::sent::SentNonce;
use crate::decode::evm::{Account, NativeMove, Word};
use crate::domain::{Height, Units, UnixSeconds};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListRow {
    pub(super) hash: Word,
    pub(super) block: Height,
    pub(super) index: Option<u32>,
    pub(super) time: Option<UnixSeconds>,
    pub(super) sent: SentNonce,
    pub(super) what: What,
}

/// Drops rows that a page contains twice according to the index's own ids: a repeated call would
/// double an amount. Each index has its own kind of ids, so they are not part of a row.
pub(super) fn without_repeats<'a>(
    rows: impl IntoIterator<Item = (Option<&'a str>, ListRow)>,
) -> Vec<ListRow> {
    let mut seen = HashSet::new();
    let is_new = |(mark, row): &(Option<&'a str>, ListRow)| {
        let (Some(mark), What::Call(call)) = (mark, &row.what) else { return true };
        seen.insert((row.hash, *mark, *call))
    };
    rows.into_iter().filter(is_new).map(|(_, row)| row).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// The transaction itself.
    Outer { from: Account, to: Option<Account>, value: Units, selector: Option<[u8; 4]> },
    /// The same, reverted.
    Failed,
    /// The same according to an index that has shown no transaction without that mark.
    MarkedFailed,
    /// A token transfer with an amount above zero.
    Token { from: Account, to: Account },
    /// A call that gave native coin.
    Call(NativeMove),
    /// A row without a movement.
    Nothing,
}

#[cfg(test)]
pub(super) fn bare_row(block: Height, id: u8) -> ListRow {
    let (sent, what) = (SentNonce::No, What::Nothing);
    ListRow { hash: [id; 32], block, index: None, time: None, sent, what }
}

/// One row in one block for each of these numbers, newest first.
#[cfg(test)]
pub(super) fn bare_page(ids: &[u8]) -> Vec<ListRow> {
    ids.iter().map(|id| bare_row(100 - u64::from(*id), *id)).collect()
}
