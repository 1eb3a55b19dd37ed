//! Pure: which block hashes of a wallet's coverage are kept, as anchors that detect a reorg.

use std::time::Duration;

use crate::domain::Height;
use crate::sources::{HashCheck, RawChunk, RawTx, Tip};
use crate::store::Anchor;

/// Number of newest anchors that are always compared with the chain. An anchor on the chain proves
/// the one below it, but the newest is too weak: a reorg may have replaced blocks below it before
/// it was fetched.
pub(super) const ALWAYS_CHECKED: usize = 2;

/// The anchor of a chunk that was read from the head; `None` if a row of the chunk lies above it.
pub(super) fn from_chunk(chunk: &RawChunk) -> Option<Anchor> {
    let Tip { height, hash } = chunk.tip?;
    let newest = chunk.txs.first().map(RawTx::height);
    let lies_above = newest.is_none_or(|newest| newest <= height) && chunk.low <= height;
    lies_above.then_some(Anchor { height, hash })
}

/// Adds an anchor and thins the older ones so that their distances from the newest double. The
/// previous newest stays until it was compared with the chain together with its successor. An
/// anchor of the same height is not replaced, nor are those above removed: only a rollback removes
/// them.
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
    // From the oldest up: the oldest anchor of each distance is kept, which stays longest.
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

/// Newest first: the order in which anchors are compared with the chain.
pub(super) fn newest_first(anchors: &[Anchor]) -> Vec<Anchor> {
    let mut all = anchors.to_vec();
    all.sort_by_key(|anchor| std::cmp::Reverse(anchor.height));
    all
}

/// Nodes keep blocks for longer than this: a block that was on the chain within this time, and that
/// no node returns, is queried again.
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// The result of comparing anchors with the chain, from the newest down.
#[derive(Debug, Default)]
pub(super) struct AnchorComparison {
    /// The last comparison is so long ago that nodes may have pruned the blocks.
    may_be_pruned: bool,
    checked: usize,
    differs: bool,
    last_good: Option<Height>,
    undecided: Option<Height>,
    is_unasked: bool,
    /// The lowest and the highest block that no endpoint keeps.
    dropped: Option<(Height, Height)>,
}

/// What follows from the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReorgOutcome {
    /// No anchor differs. The blocks of anchors from the lower to the higher of these heights, if
    /// any, are kept by no endpoint.
    NoReorg(Option<(Height, Height)>),
    /// The chain was reorged: all heights above this one must be read again.
    RollBackTo(Height),
    /// The answers do not show whether the block at this height is still on the chain. New anchors
    /// would hide the question.
    Undecided(Height),
    /// No endpoint supports block queries. New anchors would hide the question as well.
    Unasked,
}

impl AnchorComparison {
    /// `rested`: time since the wallet was last compared with the chain, if known.
    pub(super) fn new(rested: Option<Duration>) -> Self {
        let may_be_pruned = rested.is_none_or(|rested| rested > KEPT_FOR);
        Self { may_be_pruned, ..Self::default() }
    }

    /// Adds the check of the next lower anchor. Returns true if no lower anchor needs a check.
    pub(super) fn add(&mut self, height: Height, check: HashCheck) -> bool {
        self.checked += 1;
        match check {
            // A match above does not prove what was read before that block was fetched.
            HashCheck::Differs => (self.differs, self.last_good) = (true, None),
            HashCheck::Same => self.last_good = self.last_good.or(Some(height)),
            HashCheck::Gone if self.may_be_pruned => {
                self.dropped = Some((height, self.dropped.map_or(height, |(_, high)| high)));
            }
            HashCheck::NotOffered => self.is_unasked = true,
            HashCheck::Gone | HashCheck::Unknown => {
                self.undecided = self.undecided.or(Some(height));
            }
        }
        let is_settled = self.last_good.is_some() || !self.differs;
        self.checked >= ALWAYS_CHECKED && is_settled
    }

    pub(super) fn outcome(&self) -> ReorgOutcome {
        match self.undecided {
            _ if self.differs => ReorgOutcome::RollBackTo(self.last_good.unwrap_or(0)),
            Some(height) => ReorgOutcome::Undecided(height),
            None if self.is_unasked => ReorgOutcome::Unasked,
            // Nodes prune old blocks first: where no checked block is kept, none below them is.
            None if self.last_good.is_none() => {
                ReorgOutcome::NoReorg(self.dropped.map(|(_, high)| (0, high)))
            }
            None => ReorgOutcome::NoReorg(self.dropped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn judge(rested: Option<Duration>, checks: &[HashCheck]) -> (usize, ReorgOutcome) {
        let (mut verdict, mut asked) = (AnchorComparison::new(rested), 0);
        for (height, check) in (1..=10).rev().zip(checks) {
            asked += 1;
            if verdict.add(height, *check) {
                break;
            }
        }
        (asked, verdict.outcome())
    }

    #[test]
    fn two_unchanged_anchors_end_the_check_and_a_changed_one_leads_to_the_next_lower_one() {
        use HashCheck::{Differs, Gone, Same};
        let judge = |checks: &[HashCheck]| judge(None, checks);
        assert_eq!(judge(&[Same, Same, Differs]), (2, ReorgOutcome::NoReorg(None)));
        assert_eq!(judge(&[Gone, Gone, Differs]), (2, ReorgOutcome::NoReorg(Some((0, 10)))));
        assert_eq!(judge(&[Same, Differs, Differs, Same, Same]), (4, ReorgOutcome::RollBackTo(7)));
        assert_eq!(judge(&[Differs, Same, Same]), (2, ReorgOutcome::RollBackTo(9)));
        assert_eq!(judge(&[Differs, Gone, Same]), (3, ReorgOutcome::RollBackTo(8)));
        assert_eq!(judge(&[Differs, Differs]), (2, ReorgOutcome::RollBackTo(0)));
        assert_eq!(judge(&[Same]), (1, ReorgOutcome::NoReorg(None)));
    }

    #[test]
    fn a_hash_that_answers_do_not_settle_stays_in_question() {
        use HashCheck::{Differs, Gone, Same, Unknown};
        let (lately, long_ago) = (Some(KEPT_FOR), Some(KEPT_FOR + Duration::from_secs(1)));
        for rested in [None, lately, long_ago] {
            assert_eq!(judge(rested, &[Same, Unknown, Same]), (2, ReorgOutcome::Undecided(9)));
            assert_eq!(judge(rested, &[Unknown, Unknown]), (2, ReorgOutcome::Undecided(10)));
            assert_eq!(judge(rested, &[Unknown, Differs, Same]), (3, ReorgOutcome::RollBackTo(8)));
        }
        assert_eq!(judge(lately, &[Gone, Same]), (2, ReorgOutcome::Undecided(10)));
        assert_eq!(judge(long_ago, &[Gone, Same]), (2, ReorgOutcome::NoReorg(Some((10, 10)))));
        assert_eq!(judge(long_ago, &[Same, Gone]), (2, ReorgOutcome::NoReorg(Some((9, 9)))));
    }

    #[test]
    fn what_no_endpoint_offers_hides_no_other_answer() {
        use HashCheck::{Differs, NotOffered, Same, Unknown};
        for (checks, outcome) in [
            (&[NotOffered, NotOffered][..], ReorgOutcome::Unasked),
            (&[Same, NotOffered], ReorgOutcome::Unasked),
            (&[NotOffered, Unknown], ReorgOutcome::Undecided(9)),
            (&[NotOffered, Differs, Same], ReorgOutcome::RollBackTo(8)),
        ] {
            assert_eq!(judge(None, checks).1, outcome, "{checks:?}");
        }
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
