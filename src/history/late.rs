//! Transactions that a source found after their heights were delivered.

use std::collections::{BTreeMap, BTreeSet};

use super::ingest::{Ingest, IngestError};
use crate::domain::{Doubts, Height, Span, TradeKey, TxId};
use crate::sources::{LateAccounts, RawChunk, RawTx};
use crate::store::Chunk;

/// Stored rows of one time that are looked at for others of the same block.
const BLOCK_ROWS_MAX: usize = 1_000;

impl Ingest<'_> {
    /// One chunk for each stored height of these transactions: it adds their rows and leaves all else
    /// of the height as it is. Heights that are not stored are left out: the read that covers them
    /// knows the account by then, as the pumps that do not know it are dropped.
    /// Those that no endpoint gives are noted as missing from their heights. Taken from the chunk.
    pub(super) async fn late_chunks(&self, raw: &mut RawChunk) -> Result<Vec<Chunk>, IngestError> {
        let mut by_height: BTreeMap<Height, (Vec<RawTx>, Vec<TxId>)> = BTreeMap::new();
        for tx in std::mem::take(&mut raw.late) {
            by_height.entry(tx.height()).or_default().0.push(tx);
        }
        for (height, id) in raw.missing.extract_if(.., |(height, _)| *height > raw.high) {
            by_height.entry(height).or_default().1.push(id);
        }
        let mut chunks = Vec::new();
        for (height, (txs, missing)) in by_height {
            let Some(span) = self.record.coverage.span_at(height) else { continue };
            let raw = within(span, height, txs, &missing);
            let brought = raw.ids();
            let mut chunk = self.enrich(self.decode(raw).await, Some(brought), None).await?;
            if self.joins_a_single_one(&chunk).await? {
                chunk.proof = chunk.proof.with(Doubts::UNCONFIRMED);
            }
            // The height's other rows stay as that version made them; a newer one has not read these.
            let decoder = span.decoder.min(chunk.decoder);
            chunks.push(Chunk { decoder, ..chunk });
        }
        Ok(chunks)
    }

    /// From which height to which late transactions of a chunk stand in some that are not stored.
    pub(super) fn leaves_out(&self, raw: &RawChunk) -> Option<(Height, Height)> {
        let missing = raw.missing.iter().map(|(height, _)| *height);
        let late = raw.late.iter().map(RawTx::height);
        let late = late.chain(missing.filter(|height| *height > raw.high));
        let open = || late.clone().filter(|height| !self.record.coverage.covers(*height));
        open().min().zip(open().max())
    }

    /// Whether a transaction of the block was stored as the wallet's only one there, without its
    /// position: the height is read again, which gives all of them theirs. Not so where all of the late
    /// ones are stored already: they joined it before, and the height is in doubt or was read again.
    async fn joins_a_single_one(&self, late: &Chunk) -> Result<bool, IngestError> {
        let Some(first) = late.trades.first() else { return Ok(false) };
        let (time, height) = (first.key.time, first.key.height);
        let view = self.inner.view()?;
        let rows = view.rows_between(late.id, time, time, BLOCK_ROWS_MAX).await?;
        let is_new = |key: &TradeKey| late.trades.iter().any(|trade| trade.key.tx == key.tx);
        let stored = || rows.bare().iter().map(|row| &row.key);
        if late.trades.iter().all(|trade| stored().any(|key| *key == trade.key)) {
            return Ok(false);
        }
        let mut stored = stored().filter(|key| key.height == height && !is_new(key));
        // The late one may be the block's first: its own 0 says nothing.
        Ok(stored.next().is_some_and(|key| key.index == 0))
    }
}

/// A single height of a span, as it is stored.
fn within(span: &Span, height: Height, txs: Vec<RawTx>, missing: &[TxId]) -> RawChunk {
    let missing: BTreeSet<TxId> = span.missing.iter().chain(missing).copied().collect();
    RawChunk {
        low: height,
        high: height,
        txs,
        late: Vec::new(),
        resume: span.resume.clone().filter(|_| span.low == height),
        proof: span.proof,
        missing: missing.into_iter().map(|id| (height, id)).collect(),
        accounts: Vec::new(),
        late_accounts: LateAccounts::Unreported,
        tip: None,
    }
}
