//! Which heights of a wallet's history are stored: pure interval arithmetic.
//!
//! Invariant: spans are disjoint and ascending, and adjacent spans differ in their decoder version,
//! their proof or a missing transaction.

use std::collections::BTreeMap;

use super::{Doubts, Proof, TxId};

/// The chain's own clock: a slot or a block number.
pub type Height = u64;

/// Where a source continues below a span: a hint that the source checks, never a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume(pub Vec<u8>);

/// Inclusive heights of which every trade that the read found is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub low: Height,
    pub high: Height,
    /// Version of the decoder that produced it.
    pub decoder: u16,
    /// Where the source continues below `low`.
    pub resume: Option<Resume>,
    pub proof: Proof,
    /// Listed transactions of these heights that no endpoint returned.
    pub missing: Vec<TxId>,
}

/// Inclusive heights without a span, with the hint of the span directly above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub low: Height,
    pub high: Height,
    pub resume: Option<Resume>,
}

impl Span {
    /// Splits the span into ascending spans: one for each height with missing transactions, and the
    /// heights between them.
    pub fn around_missing(self, missing: &[(Height, TxId)]) -> Vec<Self> {
        let mut heights: BTreeMap<Height, Vec<TxId>> = BTreeMap::new();
        for (height, tx) in missing.iter().filter(|(h, _)| (self.low..=self.high).contains(h)) {
            heights.entry(*height).or_default().push(*tx);
        }
        let (mut spans, mut low, mut resume) = (Vec::new(), Some(self.low), self.resume.clone());
        let mut add = |low, high, doubts, missing| {
            let (resume, proof) = (resume.take(), self.proof.with(doubts));
            spans.push(Self { low, high, decoder: self.decoder, resume, proof, missing });
        };
        for (height, missing) in heights {
            if let Some(low) = low.filter(|low| *low < height) {
                add(low, height - 1, Doubts::NONE, Vec::new());
            }
            add(height, height, Doubts::MISSING, missing);
            low = height.checked_add(1).filter(|low| *low <= self.high);
        }
        if let Some(low) = low {
            add(low, self.high, Doubts::NONE, Vec::new());
        }
        spans
    }

    fn touches(&self, above: &Self) -> bool {
        self.high.checked_add(1) == Some(above.low)
    }

    fn may_join(&self, above: &Self) -> bool {
        let none_missing = self.missing.is_empty() && above.missing.is_empty();
        none_missing && self.touches(above) && self.decoder == above.decoder
    }

    fn is_like(&self, other: &Self) -> bool {
        let none_missing = self.missing.is_empty() && other.missing.is_empty();
        none_missing && self.decoder == other.decoder && self.proof == other.proof
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    spans: Vec<Span>,
}

impl Coverage {
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub fn top(&self) -> Option<Height> {
        self.spans.last().map(|span| span.high)
    }

    pub fn covers(&self, height: Height) -> bool {
        self.span_at(height).is_some()
    }

    /// Adds a span: replaces what it overlaps and merges with neighbours of equal decoder, proof
    /// and missing transactions.
    pub fn insert(&mut self, span: Span) {
        assert!(span.low <= span.high, "a span ends before it begins");
        self.remove(span.low, span.high);
        let at = self.spans.partition_point(|other| other.high < span.low);
        self.spans.insert(at, span);
        self.join_at(at + 1);
        self.join_at(at);
    }

    /// Joins span `at` to the one below it where they touch.
    fn join_at(&mut self, at: usize) {
        let Some([below, above]) = at.checked_sub(1).and_then(|from| self.spans.get(from..=at))
        else {
            return;
        };
        if below.touches(above) && below.is_like(above) {
            let above = self.spans.remove(at);
            if let Some(below) = self.spans.get_mut(at - 1) {
                below.high = above.high;
            }
        }
    }

    /// Removes the inclusive heights, which become a gap.
    pub fn remove(&mut self, low: Height, high: Height) {
        let mut kept = Vec::with_capacity(self.spans.len() + 1);
        for span in self.spans.drain(..) {
            if span.high < low || high < span.low {
                kept.push(span);
                continue;
            }
            if span.low < low {
                kept.push(Span { high: low - 1, ..span.clone() });
            }
            if high < span.high {
                // Its lower edge moved, so the hint no longer fits.
                kept.push(Span { low: high + 1, resume: None, ..span });
            }
        }
        self.spans = kept;
    }

    /// The lowest height that is reached from `height` downwards without a gap; `None` where
    /// `height` itself is not covered.
    pub fn run_low(&self, height: Height) -> Option<Height> {
        let mut low = None;
        for span in self.spans.iter().rev().skip_while(|span| span.low > height) {
            match low {
                None if height <= span.high => low = Some(span.low),
                Some(edge) if span.high.checked_add(1) == Some(edge) => low = Some(span.low),
                None | Some(_) => break,
            }
        }
        low
    }

    /// The topmost gap at or below a height; `None` where all is covered down to 0.
    pub fn gap_below(&self, height: Height) -> Option<Gap> {
        let (high, resume) = match self.run_low(height) {
            None => (self.gap_high(height), None),
            Some(low) => (low.checked_sub(1)?, self.span_at(low).and_then(|s| s.resume.clone())),
        };
        let above = self.spans.iter().find(|span| span.low.checked_sub(1) == Some(high));
        let resume = resume.or_else(|| above.and_then(|span| span.resume.clone()));
        let low = self.spans.iter().rev().find(|span| span.high <= high).map_or(0, |s| s.high + 1);
        Some(Gap { low, high, resume })
    }

    /// Top of the gap that holds `height`, but not above `height` where nothing is covered above.
    fn gap_high(&self, height: Height) -> Height {
        self.spans.iter().find(|span| span.low > height).map_or(height, |span| span.low - 1)
    }

    pub fn span_at(&self, height: Height) -> Option<&Span> {
        self.spans.iter().find(|span| span.low <= height && height <= span.high)
    }

    /// Merges neighbours of different proofs, uniting their doubts, the lowest first, while there
    /// are more such neighbours than this: reads that alternate between ways must not grow the
    /// record. Spans with missing transactions stay apart, and are not counted: many of them must
    /// not undo what second reads prove.
    pub fn coarsen(&mut self, seams_max: usize) {
        let above = self.spans.iter().skip(1);
        let seams = self.spans.iter().zip(above).filter(|(below, above)| below.may_join(above));
        let mut surplus = seams.count().saturating_sub(seams_max);
        if surplus == 0 {
            return;
        }
        let mut joined: Vec<Span> = Vec::with_capacity(self.spans.len());
        for span in self.spans.drain(..) {
            match joined.last_mut() {
                Some(below) if surplus > 0 && below.may_join(&span) => {
                    below.high = span.high;
                    below.proof = below.proof.joined(span.proof);
                    surplus -= 1;
                }
                Some(_) | None => joined.push(span),
            }
        }
        self.spans = joined;
    }

    /// The number of contiguous ranges of covered heights.
    pub fn runs(&self) -> usize {
        let above = self.spans.iter().skip(1);
        let gaps = self.spans.iter().zip(above).filter(|(below, above)| !below.touches(above));
        gaps.count() + usize::from(!self.spans.is_empty())
    }

    /// Whether each of the inclusive heights is covered.
    pub fn covers_all(&self, low: Height, high: Height) -> bool {
        self.run_low(high).is_some_and(|lowest| lowest <= low)
    }

    /// Whether everything from height 0 to `height` is covered.
    pub fn is_complete(&self, height: Height) -> bool {
        self.run_low(height) == Some(0)
    }

    /// The spans at or below a height whose proof is not accepted, newest first.
    pub fn unproved(
        &self,
        height: Height,
        accepts: impl Fn(Proof) -> bool,
    ) -> impl Iterator<Item = &Span> {
        let below = self.spans.iter().rev().skip_while(move |span| span.low > height);
        below.filter(move |span| !accepts(span.proof))
    }

    /// The topmost span that an older version of the decoder read. A newer one's stays: two
    /// programs on one database would undo each other's work for ever.
    pub fn stale(&self, decoder: u16) -> Option<&Span> {
        self.spans.iter().rev().find(|span| span.decoder < decoder)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::Way;

    const TOP: u64 = 40;

    #[derive(Debug, Clone)]
    enum Op {
        Insert(u64, u64, u16),
        Remove(u64, u64),
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let range = (0..TOP, 0..TOP).prop_map(|(a, b)| (a.min(b), a.max(b)));
        let op = prop_oneof![
            4 => (range.clone(), 0_u16..2).prop_map(|((l, h), v)| Op::Insert(l, h, v)),
            1 => range.prop_map(|(l, h)| Op::Remove(l, h)),
            1 => (0..TOP).prop_map(|low| Op::Remove(low, u64::MAX)),
        ];
        proptest::collection::vec(op, 0..12)
    }

    /// Applies the operations; also returns the decoder of each height.
    fn apply(ops: &[Op]) -> (Coverage, BTreeMap<u64, u16>) {
        let (mut coverage, mut model) = (Coverage::default(), BTreeMap::new());
        for op in ops {
            match *op {
                Op::Insert(low, high, decoder) => {
                    let resume = Some(Resume(vec![u8::try_from(low).unwrap()]));
                    let doubts = if low % 2 == 0 { Doubts::NONE } else { Doubts::TRC10 };
                    let proof = Proof::of(Way::Lists).with(doubts);
                    coverage.insert(Span { low, high, decoder, resume, proof, missing: vec![] });
                    model.extend((low..=high).map(|height| (height, decoder)));
                }
                Op::Remove(low, high) => {
                    coverage.remove(low, high);
                    model.retain(|h, _| *h < low || *h > high);
                }
            }
        }
        (coverage, model)
    }

    proptest! {
        #[test]
        fn covers_what_a_set_of_heights_holds(ops in ops()) {
            let (coverage, model) = apply(&ops);
            for height in 0..TOP {
                prop_assert_eq!(coverage.covers(height), model.contains_key(&height));
                let decoder = coverage.span_at(height).map(|span| span.decoder);
                prop_assert_eq!(decoder, model.get(&height).copied());
            }
            prop_assert_eq!(coverage.top(), model.last_key_value().map(|(height, _)| *height));
            for decoder in 0..3 {
                let older = model.iter().rev().find(|(_, by)| **by < decoder);
                let stale = coverage.stale(decoder).map(|span| span.high);
                prop_assert_eq!(stale, older.map(|(height, _)| *height));
            }
            for pair in coverage.spans().windows(2) {
                prop_assert!(pair[0].high < pair[1].low);
                let touch = pair[0].high + 1 == pair[1].low;
                prop_assert!(!touch || !pair[0].is_like(&pair[1]));
            }
        }

        #[test]
        fn runs_and_gaps_are_those_of_the_set(ops in ops(), from in 0..TOP) {
            let (coverage, model) = apply(&ops);
            let run = (0..=from).rev().take_while(|h| model.contains_key(h)).last();
            prop_assert_eq!(coverage.run_low(from), run);
            prop_assert_eq!(coverage.is_complete(from), run == Some(0));
            for low in 0..=from {
                let all = (low..=from).all(|height| model.contains_key(&height));
                prop_assert_eq!(coverage.covers_all(low, from), all);
            }
            let missing = (0..=from).rev().find(|h| !model.contains_key(h));
            let gap = coverage.gap_below(from);
            prop_assert_eq!(gap.is_some(), missing.is_some());
            if let (Some(gap), Some(missing)) = (gap, missing) {
                prop_assert!(gap.low <= missing && missing <= gap.high);
                prop_assert!((gap.low..=gap.high).all(|h| !model.contains_key(&h)));
                prop_assert!(gap.low == 0 || model.contains_key(&(gap.low - 1)));
                prop_assert!(gap.high >= from || model.contains_key(&(gap.high + 1)));
            }
        }

        /// Coarser spans hold the same heights and runs, and every doubt of a height.
        #[test]
        fn coarser_spans_hold_the_same_heights(ops in ops(), at in 0..TOP) {
            let (fine, _) = apply(&ops);
            let mut coarse = fine.clone();
            coarse.coarsen(0);
            prop_assert_eq!(coarse.runs(), fine.runs());
            prop_assert_eq!(coarse.run_low(at), fine.run_low(at));
            let doubts = |of: &Coverage| of.span_at(at).map(|span| span.proof.doubts);
            if let (Some(fine), Some(coarse)) = (doubts(&fine), doubts(&coarse)) {
                prop_assert!(coarse.contains(fine));
            }
            let decoder = |of: &Coverage| of.span_at(at).map(|span| span.decoder);
            prop_assert_eq!(decoder(&coarse), decoder(&fine));
            for pair in coarse.spans().windows(2) {
                prop_assert!(!pair[0].touches(&pair[1]) || pair[0].decoder != pair[1].decoder);
            }
        }

        /// However often neighbours are joined, spans with missing transactions undo no proof.
        #[test]
        fn many_missing_transactions_undo_no_proof(missing in 1_u64..40, good in 500_u64..540) {
            let span = |low, high, doubts, missing| {
                let proof = Proof::of(Way::Lists).with(doubts);
                Span { low, high, decoder: 1, resume: None, proof, missing }
            };
            let mut coverage = Coverage::default();
            coverage.insert(span(0, 999, Doubts::UNCONFIRMED, vec![]));
            for at in 0..missing {
                let missed = vec![TxId::Evm([1; 32])];
                coverage.insert(span(100 + 2 * at, 100 + 2 * at, Doubts::MISSING, missed));
            }
            coverage.insert(span(good, good, Doubts::NONE, vec![]));
            let doubts = |of: &Coverage| of.span_at(good).map(|span| span.proof.doubts);
            coverage.coarsen(2);
            prop_assert_eq!(doubts(&coverage), Some(Doubts::NONE));
            coverage.coarsen(1);
            prop_assert_eq!(doubts(&coverage), Some(Doubts::UNCONFIRMED));
        }

        /// A hint is used only at the edge for which it was written.
        #[test]
        fn a_hint_stays_with_its_lower_edge(ops in ops()) {
            for span in apply(&ops).0.spans() {
                if let Some(Resume(hint)) = &span.resume {
                    prop_assert_eq!(hint, &vec![u8::try_from(span.low).unwrap()]);
                }
            }
        }
    }
}
