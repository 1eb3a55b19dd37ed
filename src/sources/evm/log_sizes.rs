//! Pure: the number of blocks per log query and the number of concurrent queries, by what the
//! endpoint has taken so far.

use super::limits::EvmLimits;
use super::ranges::Shrink;

#[derive(Debug)]
pub(super) struct LogSizes {
    pub(super) blocks: u64,
    pub(super) ranges: usize,
    answered: u64,
    refused: Option<RefusedSize>,
    /// Number of smaller ranges after which the next refused size is retried.
    retry_after: u32,
    /// First size if nothing is known.
    usual: u64,
}

/// A size that is not retried for a while.
#[derive(Debug, Clone, Copy)]
struct RefusedSize {
    blocks: u64,
    /// Number of smaller ranges before it is retried.
    left: u32,
}

impl LogSizes {
    pub(super) fn new(limits: &EvmLimits, blocks: u64) -> Self {
        let (usual, retry_after) = (limits.log_blocks_first, limits.log_queries_small);
        Self { blocks, ranges: 1, answered: 0, refused: None, retry_after, usual }
    }

    pub(super) fn is_free(&self) -> bool {
        self.refused.is_none()
    }

    /// Whether the next size may be refused: one was refused recently, and no size as large as the
    /// next was answered since.
    pub(super) fn is_tried(&self) -> bool {
        self.refused.is_some() && self.blocks > self.answered
    }

    pub(super) fn limit(&mut self, most: u64) {
        self.blocks = self.blocks.min(most).max(1);
    }

    /// Makes ranges smaller by at least one block; a range of one block stays.
    pub(super) fn shrink(&mut self, shrink: Shrink) {
        let refused = self.blocks;
        let most = match shrink {
            Shrink::To(blocks) | Shrink::AtMost(blocks) => blocks,
            Shrink::Half if (1..refused).contains(&self.answered) => self.answered,
            Shrink::Half if self.answered == 0 && refused > self.usual => self.usual,
            Shrink::Half => refused / 2,
        };
        if shrink == Shrink::Half {
            self.ranges = 1;
        }
        if !matches!(shrink, Shrink::AtMost(_)) {
            self.refused = Some(RefusedSize { blocks: refused, left: self.retry_after });
        }
        self.blocks = most.min(refused.saturating_sub(1)).max(1);
    }

    /// Records that `ranges` queries of the present size were answered. A size that was too large
    /// may be accepted elsewhere in the chain, and a slow endpoint may be fast again.
    pub(super) fn note_answered(&mut self, ranges: usize, limits: &EvmLimits) {
        self.answered = self.blocks;
        let Some(refused) = &mut self.refused else { return };
        refused.left = refused.left.saturating_sub(u32::try_from(ranges).unwrap_or(u32::MAX));
        if refused.left == 0 {
            self.refused = None;
            self.retry_after = self.retry_after.saturating_mul(2).min(limits.log_queries_small_max);
        }
    }

    pub(super) fn double(&mut self) {
        self.set(self.blocks.saturating_mul(2));
    }

    /// Makes ranges longer, up to `most` blocks, or more of them concurrent.
    pub(super) fn grow(&mut self, most: u64, limits: &EvmLimits) {
        let below = self.refused.map_or(u64::MAX, |size| size.blocks.saturating_sub(1));
        let larger = [4, 2].map(|times| self.blocks.saturating_mul(times));
        let fits = larger.into_iter().find(|blocks| *blocks <= most.min(below));
        // A known limit is used fully; from an unknown one some distance is kept.
        let known = || (most < below).then_some(most).or_else(|| self.between(limits));
        match fits.or_else(known).filter(|blocks| *blocks > self.blocks) {
            Some(blocks) => self.set(blocks),
            None => self.ranges = (self.ranges * 2).min(limits.log_queries_max),
        }
    }

    /// A size half-way to the first refused one, if that is far from the present size.
    fn between(&self, limits: &EvmLimits) -> Option<u64> {
        let refused = self.refused.filter(|_| self.retry_after == limits.log_queries_small)?;
        let half = refused.blocks.saturating_sub(self.blocks) / 2;
        (half >= self.blocks / 4).then_some(self.blocks + half)
    }

    /// Sets the size; one that may be refused is tried with a single range.
    fn set(&mut self, blocks: u64) {
        (self.blocks, self.ranges) = (blocks, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queries for one range: two filters with two answers each, and three answers where the first
    /// range of a size is requested alone.
    const QUERIES: [u64; 2] = [6, 4];

    /// Queries until `blocks` blocks are searched, at an endpoint that accepts ranges of `takes`.
    fn queries(takes: u64, blocks: u64) -> u64 {
        let limits = EvmLimits::default();
        let (mut sizes, mut left, mut sent) = (LogSizes::new(&limits, 10_000), blocks, 0);
        while left > 0 {
            let ranges = u64::try_from(sizes.ranges).unwrap().min(left.div_ceil(sizes.blocks));
            sent += ranges * QUERIES[usize::from(ranges > 1)];
            if sizes.blocks > takes {
                sizes.shrink(Shrink::Half);
                continue;
            }
            left = left.saturating_sub(ranges * sizes.blocks);
            sizes.note_answered(usize::try_from(ranges).unwrap(), &limits);
            sizes.grow(u64::MAX, &limits);
        }
        sent
    }

    #[test]
    fn a_limit_that_is_not_named_costs_at_most_a_third_more_queries() {
        for takes in [1_000, 2_000, 3_000, 5_000, 9_000] {
            let blocks = 300 * takes;
            let (least, sent) = (300 * QUERIES[1], queries(takes, blocks));
            assert!(sent * 3 <= least * 4, "{takes}: {sent}, of {least}");
        }
    }

    #[test]
    fn a_size_that_was_answered_is_gone_back_to() {
        let limits = EvmLimits::default();
        let mut sizes = LogSizes::new(&limits, 10_000);
        sizes.note_answered(1, &limits);
        sizes.grow(u64::MAX, &limits);
        assert_eq!((sizes.blocks, sizes.ranges), (40_000, 1));
        sizes.shrink(Shrink::Half);
        assert_eq!(sizes.blocks, 10_000, "which was answered");
        sizes.shrink(Shrink::Half);
        assert_eq!(sizes.blocks, 5_000, "as it is refused now");
        for (answered, blocks, ranges) in [(1, 7_500, 1), (1, 7_500, 2), (2, 7_500, 4)] {
            sizes.note_answered(answered, &limits);
            sizes.grow(u64::MAX, &limits);
            assert_eq!((sizes.blocks, sizes.ranges), (blocks, ranges));
            assert_eq!(sizes.is_tried(), ranges == 1);
        }
    }
    /// A size that worked for other wallets may be too large for a wallet with many more logs.
    #[test]
    fn a_first_size_that_is_refused_gives_way_to_the_usual_one() {
        let mut sizes = LogSizes::new(&EvmLimits::default(), 160_000);
        assert!(!sizes.is_tried(), "nothing was refused");
        sizes.shrink(Shrink::Half);
        assert_eq!(sizes.blocks, 10_000);
        sizes.shrink(Shrink::Half);
        assert_eq!(sizes.blocks, 5_000);
        assert!(sizes.is_tried(), "nothing was answered");
    }
}
