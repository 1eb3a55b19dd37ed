//! One query about many wallets of a chain: which of them have something above their indexed
//! height. A hint, never a proof: the wallet's own read decides what happened.

use crate::domain::{Address, Height};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanTarget {
    pub wallet: Address,
    /// The highest height that the wallet's reads have covered.
    pub top: Height,
    /// Earlier scans found nothing between `top` and this height; at least `top`.
    pub seen: Height,
}

/// Result of a scan; nothing in it is confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scanned {
    /// The range of heights that was scanned, up to the final head. It covers a target only if the
    /// target's `seen` reaches at least the height right below `low`.
    pub low: Height,
    pub high: Height,
    /// Wallets with something above their `top`, and the highest such height.
    pub moved: Vec<(Address, Height)>,
}

/// The lowest height to scan: right above what all targets have seen, at most `blocks_max` blocks
/// below the head.
pub(super) fn lowest_unseen(targets: &[ScanTarget], high: Height, blocks_max: u64) -> Height {
    let seen = targets.iter().map(|target| target.seen.max(target.top)).min().unwrap_or(high);
    seen.max(high.saturating_sub(blocks_max)).saturating_add(1)
}
