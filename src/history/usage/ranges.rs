//! Which rows the delivered ranges contain, and how a delivery extends them.

use crate::domain::{Position, TradeKey};
use crate::store::DeliveredRange;

/// How many rows may be delivered if `left` more may be counted, and how many of them count.
pub(super) fn allowance<K: AsRef<TradeKey>>(
    ranges: &[DeliveredRange],
    after: Position,
    rows: &[K],
    left: u64,
) -> (usize, u64) {
    if let (Some(first), Some(last)) = (rows.first(), rows.last())
        && contains_both(ranges, first.as_ref(), last.as_ref())
    {
        return (rows.len(), 0);
    }
    let (mut allowed, mut counted) = (0, 0);
    let mut above = after;
    for row in rows {
        let row = row.as_ref();
        if !is_counted(ranges, row) && !may_have_left_range(ranges, above, row) {
            if counted == left {
                break;
            }
            counted += 1;
        }
        allowed += 1;
        above = Position::After(*row);
    }
    (allowed, counted)
}

pub(super) fn contains_both(ranges: &[DeliveredRange], first: &TradeKey, last: &TradeKey) -> bool {
    let at = ranges.partition_point(|range| range.to < *first);
    ranges.get(at).is_some_and(|range| range.from <= *first && range.to >= *last)
}

/// Whether a row was counted, even if its index in the block was another one then: a late row of
/// the same block changes indexes, and that can move only the end rows of ranges out of them.
pub(super) fn is_counted(ranges: &[DeliveredRange], key: &TradeKey) -> bool {
    if contains_both(ranges, key, key) {
        return true;
    }
    let at = ranges.partition_point(|range| range.to < *key);
    let (above, below) = ranges.split_at(at);
    let is_here = |end: &TradeKey| end.height == key.height;
    let above = above.iter().rev().take_while(|range| is_here(&range.to));
    let below = below.iter().take_while(|range| is_here(&range.from));
    above.chain(below).any(|range| {
        let stood = |end: TradeKey| TradeKey { index: end.index, ..*key };
        let is_within = |stood: TradeKey| range.from <= stood && stood <= range.to;
        let ends = [range.from, range.to].into_iter();
        ends.filter(|end| is_here(end) && end.tx == key.tx).any(|end| is_within(stood(end)))
    })
}

/// Whether a row may have moved out of the end of a range because another row of its block was
/// removed: the range's last key then lies between the row and the row above it. It is unknown
/// which row was counted, so no row of the block is counted again.
fn may_have_left_range(ranges: &[DeliveredRange], above: Position, key: &TradeKey) -> bool {
    let Position::After(above) = above else { return false };
    let at = ranges.partition_point(|range| range.to < *key);
    let nearest = at.checked_sub(1).and_then(|at| ranges.get(at));
    nearest.is_some_and(|range| range.to.height == key.height && above < range.to)
}

/// Adds a run of adjacent rows to the ranges, joined with the ranges that it touches. False if one
/// range contained it already.
pub(super) fn join<K: AsRef<TradeKey>>(
    ranges: &mut Vec<DeliveredRange>,
    after: Position,
    rows: &[K],
) -> bool {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return false };
    let (first, last) = (first.as_ref(), last.as_ref());
    let touches = |range: &DeliveredRange| match after {
        Position::After(key) => range.to >= key && range.from <= *last,
        Position::Start => range.to >= *first && range.from <= *last,
    };
    let start = ranges.partition_point(|range| range.to < *first && !touches(range));
    let end = start + ranges.iter().skip(start).take_while(|range| touches(range)).count();
    let mut joined = DeliveredRange { from: *first, to: *last };
    for range in ranges.iter().take(end).skip(start) {
        joined.from = joined.from.min(range.from);
        joined.to = joined.to.max(range.to);
    }
    if ranges.get(start..end) == Some(&[joined]) {
        return false;
    }
    ranges.splice(start..end, [joined]);
    true
}
