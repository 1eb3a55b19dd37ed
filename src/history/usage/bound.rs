//! How many delivered ranges are kept of a key and a wallet.

use crate::store::DeliveredRange;

/// Joins half of them with their neighbours where there are too many, as reading with a filter makes
/// them: the nearest by height, because what stands between is read for free from then on.
pub(super) fn bound(ranges: &mut Vec<DeliveredRange>, max: usize) {
    if ranges.len() <= max.max(1) {
        return;
    }
    let gap = |above: &DeliveredRange, below: &DeliveredRange| {
        (above.to.height.saturating_sub(below.from.height), below.from)
    };
    let neighbours = ranges.iter().zip(ranges.iter().skip(1));
    let mut gaps: Vec<_> = neighbours.map(|(above, below)| gap(above, below)).collect();
    gaps.sort_unstable();
    let Some(widest) = gaps.get(ranges.len() / 2 - 1).copied() else { return };
    ranges.dedup_by(|below, above| {
        let is_joined = gap(above, below) <= widest;
        if is_joined {
            above.to = below.to;
        }
        is_joined
    });
}
