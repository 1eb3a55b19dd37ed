//! Transactions that a source found after their heights were delivered.

use std::collections::{BTreeMap, BTreeSet};

use super::ingest::{Ingest, IngestError};
use crate::domain::{Height, Span, TxId};
use crate::sources::{RawChunk, RawTx};
use crate::store::Chunk;

impl Ingest<'_> {
    /// One chunk for each stored height of these transactions: it adds their rows and leaves all else
    /// of the height as it is. Heights that are not stored are left out: the read that covers them
    /// knows the account by then.
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
            let mut spans = self.record.coverage.spans().iter();
            let Some(span) = spans.find(|span| (span.low..=span.high).contains(&height)) else {
                continue;
            };
            let raw = within(span, height, txs, &missing);
            let brought = raw.ids();
            let chunk = self.enrich(self.decode(raw).await, Some(brought), None).await?;
            // The height's other rows stay as that version made them.
            chunks.push(Chunk { decoder: span.decoder, ..chunk });
        }
        Ok(chunks)
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
        tip: None,
    }
}
