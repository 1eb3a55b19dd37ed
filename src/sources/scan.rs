//! One question about many wallets of a chain: which of them moved above what is known of each. A
//! hint, never a proof: the wallet's own read decides what happened.

use crate::domain::{Address, Height};

/// A wallet of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanTarget {
    pub wallet: Address,
    /// The highest height that its own reads have covered.
    pub top: Height,
    /// Up to here earlier scans found nothing above `top`; at least `top`.
    pub seen: Height,
}

/// What one answer of the nodes shows. Nothing in it is confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scanned {
    /// The heights that were looked at, up to the final head; a target that was seen to less than
    /// right below `low` was not looked at.
    pub low: Height,
    pub high: Height,
    /// Wallets with something above their top, and the highest such height.
    pub moved: Vec<(Address, Height)>,
}

/// The lowest height to look at: right above what all targets were seen to, but no further down
/// from the head than `blocks_max`.
pub(super) fn lowest_unseen(targets: &[ScanTarget], high: Height, blocks_max: u64) -> Height {
    let seen = targets.iter().map(|target| target.seen.max(target.top)).min().unwrap_or(high);
    seen.max(high.saturating_sub(blocks_max)).saturating_add(1)
}
