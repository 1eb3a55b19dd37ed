//! Faults of the index in this process in its answers about busy accounts.

use std::ops::RangeInclusive;

use crate::domain::Height;

/// Blocks next to the head that an index works on.
const PENDING: u64 = 8;

/// What is wrong with answers about the rows of accounts that others use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BusyFault {
    /// The query takes too long; or only where all blocks are asked about.
    TooLarge,
    TooLargeInAll,
    /// Its blocks are worked on; or the newest ones alone, which all that is asked with them is
    /// refused for.
    Processing,
    NewestProcessing,
    /// Of many rows the first ones alone.
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
