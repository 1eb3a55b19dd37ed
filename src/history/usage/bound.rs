//! Bounds the number of delivered ranges of a key and a wallet.

use crate::store::DeliveredRange;

/// If there are too many ranges (reading with a filter creates them), joins half of them with their
/// neighbours: the nearest by height, because rows in between are no longer counted.
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

#[cfg(test)]
mod tests {
    use super::super::tests::range;
    use super::*;

    #[test]
    fn too_many_ranges_are_joined_and_nothing_delivered_is_forgotten() {
        let one = |at| range(at, at);
        let mut ranges: Vec<_> = (0..5).map(|at| one(2 * at)).collect();
        bound(&mut ranges, 5);
        assert_eq!(ranges.len(), 5);
        bound(&mut ranges, 4);
        assert_eq!(ranges, [range(0, 4), one(6), one(8)]);
        // What lies between becomes free: the least of it.
        let mut ranges: Vec<_> = [0, 100, 102, 300, 301, 303].map(one).to_vec();
        bound(&mut ranges, 5);
        assert_eq!(ranges, [one(0), range(100, 102), range(300, 303)]);
        let mut two = vec![one(0), one(900)];
        bound(&mut two, 0);
        assert_eq!(two, [range(0, 900)]);
    }
}
