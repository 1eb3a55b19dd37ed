//! Faults of the simulated index in answers about busy accounts.

use std::ops::RangeInclusive;

use crate::domain::Height;

/// Blocks below the head that the index has not finished.
const PENDING: u64 = 8;

/// A fault in answers about accounts that many transactions use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BusyFault {
    /// The query times out; or only if it covers all blocks.
    TooLarge,
    TooLargeInAll,
    /// Its blocks are being indexed, or only the newest ones are, and the query is refused as a
    /// whole.
    Processing,
    NewestProcessing,
    /// Only the first of many rows are returned.
    Cut,
}

impl BusyFault {
    pub(super) fn concerns(
        self,
        within: &RangeInclusive<Height>,
        head: Height,
        rows: usize,
    ) -> bool {
        match self {
            Self::TooLarge | Self::Processing => true,
            Self::TooLargeInAll => *within.start() == 0,
            Self::NewestProcessing => within.end() + PENDING > head,
            Self::Cut => rows >= 10,
        }
    }
}
