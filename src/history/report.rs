//! The coverage of a wallet for operators: spans with their proof, gaps, cut.

use super::error::HistoryError;
use super::{History, Inner, Result};
use crate::domain::{Coverage, Doubts, Height, Span, UnixMillis, Wallet};
use crate::sources::Source;
use crate::store::WalletRecord;

/// The most spans and gaps of a report; a wallet usually has a few.
const SPANS_MAX: usize = 1000;

/// What was read of a wallet's history, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoverageReport {
    /// All heights up to `top` are covered with accepted proofs.
    pub complete: bool,
    /// The highest covered height, and the time of the last check for newer ones.
    pub top: Option<Height>,
    pub checked_at: Option<UnixMillis>,
    /// Number of stored rows.
    pub rows: u64,
    /// The first height that the nodes keep, if heights below are missing or in doubt because of
    /// it.
    pub cut: Option<Height>,
    /// Doubts of every configured way of this chain.
    pub blind_spots: Doubts,
    /// Newest first.
    pub spans: Vec<SpanReport>,
    /// Inclusive ranges that are not covered, newest first.
    pub gaps: Vec<(Height, Height)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanReport {
    pub span: Span,
    /// The span's proof is accepted: it counts towards a complete history.
    pub accepted: bool,
}

impl History {
    /// The coverage of a wallet; `None` if nothing is stored of it.
    pub async fn coverage(&self, wallet: Wallet) -> Result<Option<CoverageReport>> {
        let inner = &self.inner;
        if !inner.sources.contains_key(&wallet.chain) {
            return Err(HistoryError::ChainDisabled);
        }
        let record = inner.view()?.wallet(&wallet).await?;
        Ok(record.map(|record| inner.coverage_report(&record)))
    }

    /// Doubts of every configured way of a chain.
    pub fn blind_spots(&self, chain: crate::domain::ChainId) -> Doubts {
        self.inner.sources.get(&chain).map_or(Doubts::NONE, |source| source.blind_spots())
    }
}

impl Inner {
    fn coverage_report(&self, record: &WalletRecord) -> CoverageReport {
        let top = record.coverage.top();
        let source = self.sources.get(&record.wallet.chain);
        let accepted =
            |span: &Span| source.as_ref().is_some_and(|source| source.accepts(span.proof));
        let spans = record.coverage.spans().iter().rev().take(SPANS_MAX);
        CoverageReport {
            complete: top.is_some_and(|top| self.is_complete(record, top)),
            top,
            checked_at: record.checked_at,
            rows: record.count,
            cut: self.cut(record),
            blind_spots: source.as_ref().map_or(Doubts::NONE, Source::blind_spots),
            spans: spans
                .map(|span| SpanReport { span: span.clone(), accepted: accepted(span) })
                .collect(),
            gaps: gaps(&record.coverage),
        }
    }
}

fn gaps(coverage: &Coverage) -> Vec<(Height, Height)> {
    let (mut gaps, mut from) = (Vec::new(), coverage.top());
    while let Some(gap) = from.and_then(|height| coverage.gap_below(height)) {
        gaps.push((gap.low, gap.high));
        from = gap.low.checked_sub(1);
        if gaps.len() >= SPANS_MAX {
            break;
        }
    }
    gaps
}
