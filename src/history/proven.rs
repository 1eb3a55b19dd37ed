//! Whether a wallet's stored history is complete: covered without a gap, with accepted proofs.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::Inner;
use super::error::HistoryError;
use crate::domain::{Doubts, Height, Proof, SourceAccount, Span, Wallet, Way, lock};
use crate::store::WalletRecord;

/// Wallets whose reread state is remembered; above it all are due again.
const REMEMBERED_MAX: usize = 4096;

/// State of a history from the first height to a walk's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Completeness {
    /// Some heights are not covered.
    Gap,
    /// All heights are covered, some with a doubt, so that they are to be read again, whichever the
    /// error is.
    Unproved(HistoryError),
    Complete,
}

impl Inner {
    pub(super) fn completeness(&self, record: &WalletRecord, head: Height) -> Completeness {
        if !record.coverage.is_complete(head) {
            return Completeness::Gap;
        }
        self.doubt(record, head).map_or(Completeness::Complete, Completeness::Unproved)
    }

    /// The first doubt of the run of covered heights from a height downwards, as an error.
    pub(super) fn doubt(&self, record: &WalletRecord, from: Height) -> Option<HistoryError> {
        let floor = record.coverage.run_low(from)?;
        // The chain was disabled: without a source no proof can be judged.
        if !self.sources.contains_key(&record.wallet.chain) {
            return Some(HistoryError::ChainDisabled);
        }
        let span = self.unproved(record, from).next().filter(|span| span.high >= floor)?;
        let (doubts, low, high) = (span.proof.doubts, span.low, span.high);
        Some(match self.depth_cut(record).filter(|first| high < *first) {
            Some(first) => HistoryError::HistoryCut { first },
            None => HistoryError::Unproved { doubts, low, high },
        })
    }

    /// The first height that endpoints keep, if everything below was read with no other doubt than
    /// that; `None` if that holds for all heights, because then no height is known to be kept.
    fn depth_cut(&self, record: &WalletRecord) -> Option<Height> {
        let blind_spots = self.sources.get(&record.wallet.chain)?.blind_spots();
        let mut first = 0;
        for span in record.coverage.spans() {
            let is_cut = span.low == first
                && span.missing.is_empty()
                && span.proof.doubts.without(blind_spots) == Doubts::DEPTH;
            if !is_cut {
                break;
            }
            first = span.high.saturating_add(1);
        }
        let top = record.coverage.top()?;
        (1..=top).contains(&first).then_some(first)
    }

    /// The first height that endpoints keep, as far as known, if heights below are missing or in
    /// doubt because of it.
    pub(super) fn cut(&self, record: &WalletRecord) -> Option<Height> {
        let is_open = |first: &Height| {
            first.checked_sub(1).is_some_and(|below| !record.coverage.covers(below))
        };
        record.cut.filter(is_open).or_else(|| self.depth_cut(record))
    }

    pub(super) fn is_complete(&self, record: &WalletRecord, head: Height) -> bool {
        self.completeness(record, head) == Completeness::Complete
    }

    /// Spans up to a height whose proof is not accepted, newest first.
    pub(super) fn unproved<'a>(
        &'a self,
        record: &'a WalletRecord,
        height: Height,
    ) -> impl Iterator<Item = &'a Span> {
        let source = self.sources.get(&record.wallet.chain);
        let accepts = move |proof| source.as_ref().is_none_or(|source| source.accepts(proof));
        record.coverage.unproved(height, accepts).filter(|span| may_hold_trades(span))
    }
}

/// False for a span of the genesis block alone: it has balances but no trade, so nothing in it can
/// be missed, and a read of it alone cannot be proved.
fn may_hold_trades(span: &Span) -> bool {
    span.high > 0
}

/// The range of the next reread: the highest span in doubt below `below`, else the newest one,
/// joined with those right below it.
pub(super) fn next_reread(spans: &[&Span], below: Option<Height>) -> Option<(Height, Height)> {
    let is_below = |span: &&Span| below.is_none_or(|below| span.high < below);
    let from = spans.get(spans.iter().position(is_below).unwrap_or(0)..)?;
    let touches = |(above, below): &(&&Span, &&Span)| below.high.checked_add(1) == Some(above.low);
    let last = from.iter().zip(from.iter().skip(1)).take_while(touches).count();
    Some((from.get(last)?.low, from.first()?.high))
}

/// Whether an earlier read queried all open token accounts: reads that could not do so leave a
/// doubt on the spans that they store.
pub(super) fn knows_accounts(record: &WalletRecord, accounts: &[SourceAccount]) -> bool {
    let lacks = |span: &Span| span.proof.doubts.contains(Doubts::TOKEN_ACCOUNTS);
    !accounts.is_empty() && !record.coverage.spans().iter().any(lacks)
}

#[derive(Debug, Clone, Copy)]
struct RereadState {
    due: Instant,
    pause: Duration,
    failures: usize,
    /// Lower end of the last failed reread: the next one is below, so that a height that stays in
    /// doubt does not block others.
    below: Height,
}

/// Rereads of unproved spans, with a backoff while they bring no better proof.
#[derive(Debug, Default)]
pub(super) struct Rereads(Mutex<HashMap<Wallet, RereadState>>);

impl Rereads {
    /// Number of consecutive failures; `None` while the next reread is not due.
    pub(super) fn due(&self, wallet: &Wallet) -> Option<usize> {
        match lock(&self.0).get(wallet) {
            Some(attempt) if attempt.due > Instant::now() => None,
            Some(attempt) => Some(attempt.failures),
            None => Some(0),
        }
    }

    /// Height below which the next reread starts.
    pub(super) fn below(&self, wallet: &Wallet) -> Option<Height> {
        lock(&self.0).get(wallet).map(|attempt| attempt.below)
    }

    pub(super) fn failed(&self, wallet: Wallet, below: Height, (min, max): (Duration, Duration)) {
        let mut attempts = lock(&self.0);
        if attempts.len() >= REMEMBERED_MAX {
            attempts.clear();
        }
        let known = attempts.get(&wallet).filter(|known| known.failures > 0);
        let pause = known.map_or(min, |known| (known.pause * 2).min(max));
        let failures = known.map_or(1, |known| known.failures.saturating_add(1));
        let due = Instant::now() + pause;
        attempts.insert(wallet, RereadState { due, pause, failures, below });
    }

    /// Records a success: the next reread is due at once.
    pub(super) fn succeeded(&self, wallet: &Wallet) {
        if let Some(known) = lock(&self.0).get_mut(wallet) {
            *known = RereadState { due: Instant::now(), failures: 0, ..*known };
        }
    }

    /// Resets the state: the next reread is due at once, from the newest height in doubt.
    pub(super) fn begin_again(&self, wallet: &Wallet) {
        lock(&self.0).remove(wallet);
    }
}

/// The way of a proof whose list may lack transactions: some that the sent count includes, those
/// below its first block, or rows that nodes show of what it lists.
pub(super) fn doubted_list(proof: Proof) -> Option<Way> {
    let has = |doubts| proof.doubts.contains(doubts);
    let is_cut = proof.way == Way::Explorer && has(Doubts::DEPTH);
    let lists = matches!(proof.way, Way::Explorer | Way::Transfers);
    let lacks = lists && has(Doubts::UNCONFIRMED) || has(Doubts::SENT_COUNT);
    (is_cut || lacks).then_some(proof.way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Address, ChainId};

    const WALLET: Wallet = Wallet { chain: ChainId(1), address: Address::Solana([1; 32]) };

    fn span((low, high): (Height, Height)) -> Span {
        let (proof, missing) = (Proof::default(), Vec::new());
        Span { low, high, decoder: 1, resume: None, proof, missing }
    }

    #[test]
    fn a_list_that_may_lack_transactions_is_avoided() {
        use Way::{Explorer, Logs, Portal, Transfers};
        for (way, doubts, expected) in [
            (Explorer, Doubts::NONE, false),
            (Explorer, Doubts::INNER_CALLS, false),
            (Explorer, Doubts::DEPTH, true),
            (Logs, Doubts::DEPTH, false),
            (Portal, Doubts::SENT_COUNT, true),
            (Explorer, Doubts::UNCONFIRMED, true),
            (Transfers, Doubts::UNCONFIRMED, true),
            (Logs, Doubts::UNCONFIRMED, false),
        ] {
            let avoided = doubted_list(Proof::of(way).with(doubts));
            assert_eq!(avoided, expected.then_some(way), "{way:?} {doubts:?}");
        }
    }

    #[test]
    fn the_first_block_of_a_chain_alone_needs_no_proof() {
        assert!(!may_hold_trades(&span((0, 0))));
        for heights in [(0, 1), (1, 1), (0, 9)] {
            assert!(may_hold_trades(&span(heights)), "{heights:?}");
        }
    }

    #[test]
    fn spans_in_doubt_that_touch_are_read_by_one_read_below_what_was_tried_in_vain() {
        for (spans, below, read) in [
            (&[][..], None, None),
            (&[(5, 9)], None, Some((5, 9))),
            (&[(5, 9)], Some(9), Some((5, 9))),
            (&[(9, 9), (8, 8), (2, 7)], None, Some((2, 9))),
            (&[(9, 9), (8, 8), (2, 7)], Some(9), Some((2, 8))),
            (&[(9, 9), (8, 8), (2, 6), (0, 1)], None, Some((8, 9))),
            (&[(9, 9), (8, 8), (2, 6), (0, 1)], Some(8), Some((0, 6))),
            (&[(9, 9), (2, 7), (0, 1)], Some(0), Some((9, 9))),
        ] {
            let spans: Vec<Span> = spans.iter().copied().map(span).collect();
            let spans: Vec<&Span> = spans.iter().collect();
            assert_eq!(next_reread(&spans, below), read, "{spans:?} {below:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_between_vain_rereads_grow_and_a_success_ends_them() {
        let (rereads, second) = (Rereads::default(), Duration::from_secs(1));
        assert_eq!(rereads.due(&WALLET), Some(0));
        for (failures, pause) in [(1, 1), (2, 2), (3, 4), (4, 4)] {
            rereads.failed(WALLET, 7, (second, second * 4));
            tokio::time::advance((second * pause).saturating_sub(Duration::from_millis(1))).await;
            assert_eq!(rereads.due(&WALLET), None);
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(rereads.due(&WALLET), Some(failures));
        }
        rereads.succeeded(&WALLET);
        assert_eq!((rereads.due(&WALLET), rereads.below(&WALLET)), (Some(0), Some(7)));
        rereads.failed(WALLET, 3, (second, second * 4));
        tokio::time::advance(second).await;
        assert_eq!((rereads.due(&WALLET), rereads.below(&WALLET)), (Some(1), Some(3)));
        rereads.begin_again(&WALLET);
        assert_eq!((rereads.due(&WALLET), rereads.below(&WALLET)), (Some(0), None));
    }
}
