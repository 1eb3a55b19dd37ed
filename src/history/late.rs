//! Late transactions: those that a source found after it had delivered their heights.

use std::collections::{BTreeMap, BTreeSet};

use super::ingest::{Ingest, IngestError};
use crate::domain::{Doubts, Height, Span, TradeKey, TxId};
use crate::sources::{RawChunk, RawTx};
use crate::store::Chunk;

/// The most stored rows of one second that are searched for rows of the same block.
const BLOCK_ROWS_MAX: usize = 1_000;

impl Ingest<'_> {
    /// Removes the late transactions from a chunk and returns one chunk per covered height, which
    /// adds their rows and changes nothing else of the height. Uncovered heights are skipped: a
    /// later read of them knows the account, as read tasks that do not are dropped. Late
    /// transactions that no endpoint returns are stored as missing.
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
            let raw = chunk_of_height(span, height, txs, &missing);
            let brought = raw.ids();
            let mut chunk = self.enrich(self.decode(raw).await, Some(brought), None).await?;
            if self.joins_row_without_index(&chunk).await? {
                chunk.proof = chunk.proof.with(Doubts::UNCONFIRMED);
            }
            // The height's other rows are still those of the older decoder.
            let decoder = span.decoder.min(chunk.decoder);
            chunks.push(Chunk { decoder, ..chunk });
        }
        Ok(chunks)
    }

    /// Lowest and highest height of the chunk's late transactions that lie in uncovered heights.
    pub(super) fn uncovered_late(&self, raw: &RawChunk) -> Option<(Height, Height)> {
        let missing = raw.missing.iter().map(|(height, _)| *height);
        let late = raw.late.iter().map(RawTx::height);
        let late = late.chain(missing.filter(|height| *height > raw.high));
        let open = || late.clone().filter(|height| !self.record.coverage.covers(*height));
        open().min().zip(open().max())
    }

    /// Whether the block has a stored transaction that was the wallet's only one there and so has
    /// no position: the height is then read again, which gives all its transactions positions.
    /// False if all late transactions are stored already: the height is in doubt or was read again
    /// before.
    async fn joins_row_without_index(&self, late: &Chunk) -> Result<bool, IngestError> {
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
        // The late transaction may be the block's first one, so only the stored one's index 0
        // counts.
        Ok(stored.next().is_some_and(|key| key.index == 0))
    }
}

fn chunk_of_height(span: &Span, height: Height, txs: Vec<RawTx>, missing: &[TxId]) -> RawChunk {
    let missing: BTreeSet<TxId> = span.missing.iter().chain(missing).copied().collect();
    RawChunk {
        low: height,
        high: height,
        txs,
        resume: span.resume.clone().filter(|_| span.low == height),
        proof: span.proof,
        missing: missing.into_iter().map(|id| (height, id)).collect(),
        ..RawChunk::default()
    }
}
