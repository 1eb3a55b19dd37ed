//! Transactions that a source found after their heights were delivered.

use std::collections::BTreeMap;

use super::ingest::{Ingest, IngestError};
use crate::domain::{Height, Span};
use crate::sources::{RawChunk, RawTx};
use crate::store::Chunk;

impl Ingest<'_> {
    /// One chunk for each stored height of these transactions: it adds their rows and leaves all else
    /// of the height as it is. Heights that are not stored are left out: the read that covers them
    /// knows the account by then.
    pub(super) async fn late_chunks(&self, txs: Vec<RawTx>) -> Result<Vec<Chunk>, IngestError> {
        let mut by_height: BTreeMap<Height, Vec<RawTx>> = BTreeMap::new();
        for tx in txs {
            by_height.entry(tx.height()).or_default().push(tx);
        }
        let mut chunks = Vec::new();
        for (height, txs) in by_height {
            let mut spans = self.record.coverage.spans().iter();
            let Some(span) = spans.find(|span| (span.low..=span.high).contains(&height)) else {
                continue;
            };
            let raw = within(span, height, txs);
            let brought = raw.ids();
            chunks.push(self.enrich(self.decode(raw).await, Some(brought), None).await?);
        }
        Ok(chunks)
    }
}

/// A single height of a span, as it is stored.
fn within(span: &Span, height: Height, txs: Vec<RawTx>) -> RawChunk {
    RawChunk {
        low: height,
        high: height,
        txs,
        late: Vec::new(),
        resume: span.resume.clone().filter(|_| span.low == height),
        proof: span.proof,
        missing: span.missing.iter().map(|id| (height, *id)).collect(),
        accounts: Vec::new(),
        tip: None,
    }
}
