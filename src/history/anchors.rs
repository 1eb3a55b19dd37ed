//! Pure: which block hashes of a wallet's coverage are kept to notice a reorganisation.

use crate::domain::Height;
use crate::sources::{HashCheck, RawChunk, RawTx, Tip};
use crate::store::Anchor;

/// Hashes from the newest down, each of which proves the one below if it is on the chain. The
/// newest does not yet: a reorg may have replaced the block below it before it was fetched. So both
/// are checked against the chain together, at the next refresh.
pub(super) const LOOSE: usize = 2;

/// The block to be kept for a chunk that was read from the head: it must lie above all rows.
pub(super) fn of_tip(chunk: &RawChunk) -> Option<Anchor> {
    let Tip { height, hash } = chunk.tip?;
    let newest = chunk.txs.first().map(RawTx::height);
    let lies_above = newest.is_none_or(|newest| newest <= height) && chunk.low <= height;
    lies_above.then_some(Anchor { height, hash })
}

/// Adds a hash and thins the rest so that their distances from the newest one double. The one that
/// was the newest stays until it was held against the chain together with its follower. One that is
/// kept of the same height stays, and so do those above: only a cut-back takes them away.
pub(super) fn add(anchors: &[Anchor], new: Anchor, max: usize) -> Vec<Anchor> {
    let mut hashes = anchors.to_vec();
    if hashes.iter().all(|anchor| anchor.height != new.height) {
        hashes.push(new);
    }
    hashes.sort_by_key(|anchor| anchor.height);
    let newest = hashes.pop().unwrap_or(new);
    let last = hashes.pop();
    let mut kept = Vec::with_capacity(hashes.len() + 1);
    let mut bucket = None;
    // From the oldest up, so that the one kept of each distance is the one that stays longest.
    for anchor in hashes {
        let distance = (newest.height - anchor.height).ilog2();
        if bucket != Some(distance) {
            bucket = Some(distance);
            kept.push(anchor);
        }
    }
    kept.extend(last);
    kept.push(newest);
    let surplus = kept.len().saturating_sub(max.max(1));
    kept.split_off(surplus)
}

/// Newest first: the order in which hashes are held against the chain.
pub(super) fn newest_first(anchors: &[Anchor]) -> Vec<Anchor> {
    let mut all = anchors.to_vec();
    all.sort_by_key(|anchor| std::cmp::Reverse(anchor.height));
    all
}

/// What holding hashes against the chain, from the newest down, has come to.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    checked: usize,
    differs: bool,
    last_good: Option<Height>,
}

impl Verdict {
    /// Takes in the next lower one. True where those below need not be looked at.
    pub(super) fn add(&mut self, height: Height, check: HashCheck) -> bool {
        self.checked += 1;
        match check {
            // Blocks above say nothing about what was read before they were fetched.
            HashCheck::Differs => (self.differs, self.last_good) = (true, None),
            HashCheck::Same => self.last_good = self.last_good.or(Some(height)),
            HashCheck::Unknown => {}
        }
        let is_settled = self.last_good.is_some() || !self.differs;
        self.checked >= LOOSE && is_settled
    }

    /// The height above which everything is to be read again.
    pub(super) fn cut_above(&self) -> Option<Height> {
        self.differs.then_some(self.last_good.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn judge(checks: &[HashCheck]) -> (usize, Option<Height>) {
        let (mut verdict, mut asked) = (Verdict::default(), 0);
        for (height, check) in (1..=10).rev().zip(checks) {
            asked += 1;
            if verdict.add(height, *check) {
                break;
            }
        }
        (asked, verdict.cut_above())
    }

    #[test]
    fn two_that_stand_end_the_look_and_one_that_differs_goes_on_to_the_next_good_one() {
        use HashCheck::{Differs, Same, Unknown};
        assert_eq!(judge(&[Same, Same, Differs]), (2, None));
        assert_eq!(judge(&[Unknown, Unknown, Differs]), (2, None));
        assert_eq!(judge(&[Same, Differs, Differs, Same, Same]), (4, Some(7)));
        assert_eq!(judge(&[Differs, Same, Same]), (2, Some(9)));
        assert_eq!(judge(&[Differs, Unknown, Same]), (3, Some(8)));
        assert_eq!(judge(&[Differs, Differs]), (2, Some(0)));
        assert_eq!(judge(&[Same]), (1, None));
    }

    #[test]
    fn what_is_known_of_a_height_is_replaced_by_nothing_that_comes_later() {
        let anchor = |height, hash| Anchor { height, hash: [hash; 32] };
        let kept = add(&[anchor(100, 1), anchor(200, 1)], anchor(150, 2), 64);
        assert_eq!(kept, [anchor(100, 1), anchor(150, 2), anchor(200, 1)]);
        assert_eq!(add(&kept, anchor(200, 2), 64), kept);
    }

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
