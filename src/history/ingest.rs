//! Turns chunks of raw transactions into rows: decode, then enrich; the caller stores them.

use std::collections::HashSet;

use super::error::HistoryError;
use super::{Inner, Result};
use crate::decode::{self, DecodedTrade, NoteKind};
use crate::domain::{Height, TxId, UnixMillis, UnixSeconds};
use crate::enrich::{DecodedTx, EnrichError, Enriched, Lookups};
use crate::rpc::{Lane, UpstreamError};
use crate::sources::{RawChunk, RawTx, Source};
use crate::store::{Chunk, StoreError, WalletRecord};

/// Transactions decoded before the task yields.
const DECODE_RUN: usize = 32;

/// The context for turning a wallet's raw chunks into chunks to store.
#[derive(Debug)]
pub(super) struct Ingest<'a> {
    pub(super) inner: &'a Inner,
    pub(super) record: &'a WalletRecord,
    pub(super) lookups: Lookups<'a>,
}

pub(super) struct DecodedChunk {
    pub(super) raw: RawChunk,
    traded: Vec<DecodedTx>,
}

impl<'a> Ingest<'a> {
    pub(super) fn new(
        inner: &'a Inner,
        source: &'a Source,
        lane: &'a Lane,
        record: &'a WalletRecord,
    ) -> Result<Self> {
        let lookups = inner.enricher.lookups(record.wallet.chain, source, lane);
        Ok(Self { inner, record, lookups: lookups.ok_or(HistoryError::ChainDisabled)? })
    }

    /// Decodes the transactions of a chunk, yielding to other tasks; no side effects except
    /// counters.
    pub(super) async fn decode(&self, raw: RawChunk) -> DecodedChunk {
        let mut traded = Vec::new();
        for (at, raw_tx) in raw.txs.iter().enumerate() {
            if at % DECODE_RUN == DECODE_RUN - 1 {
                tokio::task::yield_now().await;
            }
            let decoded = raw_tx.decode(&self.inner.registry, &self.record.wallet);
            let (unknown, notes): (Vec<_>, Vec<_>) =
                decoded.notes.iter().partition(|note| note.kind == NoteKind::UnknownVenue);
            self.inner.metrics.notes.add(notes.len());
            self.inner.metrics.unknown_venues.add(unknown.len());
            if let Some(id) = raw_tx.id().filter(|_| !decoded.trades.is_empty()) {
                self.inner.metrics.trades_decoded.add(decoded.trades.len());
                let (time, height, index) = (raw_tx.time(), raw_tx.height(), raw_tx.index());
                let awaits_native = raw_tx.awaits_native();
                traded.push(DecodedTx { id, time, height, index, decoded, awaits_native });
            }
        }
        self.inner.metrics.transactions_decoded.add(raw.txs.len());
        DecodedChunk { raw, traded }
    }

    /// Enriches a chunk. `reread`: ids of the transactions that were read again, if the heights are
    /// stored already.
    pub(super) async fn enrich(
        &self,
        DecodedChunk { raw, traded }: DecodedChunk,
        reread: Option<HashSet<TxId>>,
        checked_at: Option<UnixMillis>,
    ) -> Result<Chunk, IngestError> {
        let enriched = self.lookups.enrich(self.record.id, traded, reread.is_some()).await?;
        let Enriched { trades, side_payment, tokens, prices, doubts } = enriched;
        for trade in &trades {
            self.inner.metrics.values.add(trade.valued);
        }
        // Only rows that are stored already can come from an earlier read that saw native movements
        // which no endpoint shows now.
        let again = raw.txs.iter().filter(|_| reread.is_some());
        let is_unshown = |tx: &&RawTx| tx.is_unshown(&self.inner.registry, &self.record.wallet);
        let unshown = again.filter(is_unshown).filter_map(RawTx::id).collect();
        Ok(Chunk {
            id: self.record.id,
            epoch: self.record.epoch,
            low: raw.low,
            high: raw.high,
            decoder: decode::version(self.record.wallet.address.family()),
            resume: raw.resume,
            proof: raw.proof.with(doubts),
            missing: raw.missing,
            reread,
            unshown,
            trades,
            tokens,
            accounts: raw.accounts,
            anchors: None,
            prices,
            side_payment,
            checked_at,
        })
    }
}

impl DecodedChunk {
    /// Height and time of its oldest transaction.
    pub(super) fn reached(&self) -> Option<(Height, UnixSeconds)> {
        self.raw.txs.last().map(|tx| (tx.height(), tx.time()))
    }

    pub(super) fn trades_until(&self, time: u32) -> impl Iterator<Item = &[DecodedTrade]> {
        let until = self.traded.iter().filter(move |one| one.time.0 <= time);
        until.map(|one| one.decoded.trades.as_slice())
    }

    /// Appends the chunk right below, which has the same proof.
    pub(super) fn join(&mut self, lower: Self) {
        self.raw.join(lower.raw);
        self.traded.extend(lower.traded);
    }
}

/// Why a chunk could not be decoded and enriched.
#[derive(Debug, thiserror::Error)]
pub(super) enum IngestError {
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    #[error(transparent)]
    History(#[from] HistoryError),
}

impl From<IngestError> for HistoryError {
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::History(error) => error,
            IngestError::Upstream(UpstreamError::HistoryCut { first }) => {
                Self::HistoryCut { first }
            }
            IngestError::Upstream(UpstreamError::NotAWallet { reason }) => {
                Self::NotAWallet { detail: reason }
            }
            IngestError::Upstream(error) => Self::UpstreamUnavailable { detail: error.to_string() },
        }
    }
}

impl From<EnrichError> for IngestError {
    fn from(error: EnrichError) -> Self {
        match error {
            EnrichError::Upstream(error) => error.into(),
            EnrichError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for IngestError {
    fn from(error: StoreError) -> Self {
        Self::History(error.into())
    }
}
