//! Pure: which block hashes of a wallet's coverage are kept to notice a reorganisation.

use crate::domain::Height;
use crate::store::Anchor;

/// Adds a hash and thins the rest so that their distances from the newest one double.
pub(super) fn add(anchors: &[Anchor], new: Anchor, max: usize) -> Vec<Anchor> {
    let mut all: Vec<Anchor> =
        anchors.iter().copied().filter(|anchor| anchor.height < new.height).collect();
    all.sort_by_key(|anchor| anchor.height);
    let mut kept = Vec::with_capacity(all.len() + 1);
    let mut bucket = None;
    // From the oldest up, so that the one kept of each distance is the one that stays longest.
    for anchor in all {
        let distance = (new.height - anchor.height).ilog2();
        if bucket != Some(distance) {
            bucket = Some(distance);
            kept.push(anchor);
        }
    }
    kept.push(new);
    let surplus = kept.len().saturating_sub(max.max(1));
    kept.split_off(surplus)
}

/// Newest first: the order in which hashes are held against the chain.
pub(super) fn newest_first(anchors: &[Anchor]) -> Vec<Anchor> {
    let mut all = anchors.to_vec();
    all.sort_by_key(|anchor| std::cmp::Reverse(anchor.height));
    all
}

/// The height above which everything is cut, given the newest hash that still holds.
pub(super) fn cut_above(last_good: Option<Height>) -> Height {
    last_good.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However often heights are added: few are kept, the newest is among them, and for any
        /// depth there is one at most about twice as deep.
        #[test]
        fn stay_few_and_reach_back(steps in proptest::collection::vec(1_u64..50_000, 1..400)) {
            let (mut anchors, mut height) = (Vec::new(), 0);
            let first = steps[0];
            for step in steps {
                height += step;
                anchors = add(&anchors, Anchor { height, hash: [0; 32] }, 64);
                prop_assert!(anchors.len() <= 64);
                prop_assert_eq!(anchors.last().map(|a| a.height), Some(height));
            }
            prop_assert_eq!(anchors.first().map(|a| a.height), Some(first));
            prop_assert!(anchors.is_sorted_by_key(|a| a.height));
        }
    }
}
