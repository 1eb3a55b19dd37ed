//! From a chunk of raw transactions to the rows that are written.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use super::Inner;
use super::enrich::prices::{self, Doors, SidePayments};
use super::enrich::valuation;
use super::error::HistoryError;
use crate::decode::{self, Decoded, DecodedTrade, NoteKind};
use crate::domain::{
    Address, Doubts, Height, Trade, TradeKey, TxId, UnixMillis, UnixSeconds, ValueSource,
};
use crate::rpc::{Lane, UpstreamError};
use crate::sources::{RawChunk, Source};
use crate::store::{Chunk, PriceRecord, StoreError, TokenRecord, View, WalletRecord};

/// Transactions decoded before other tasks get a turn.
const DECODE_RUN: usize = 32;
/// How often a block is fetched again that came back empty, or without transactions that are known
/// to be in it: an order by id would differ the next time.
const BLOCK_TRIES_MAX: u32 = 12;
/// Stored rows of one time that are looked at for others of the same block.
const BLOCK_ROWS_MAX: usize = 1_000;

/// What is needed to turn a wallet's raw chunks into stored ones.
#[derive(Debug)]
pub(super) struct Ingest<'a> {
    pub(super) inner: &'a Inner,
    pub(super) source: &'a Source,
    pub(super) lane: &'a Lane,
    pub(super) record: &'a WalletRecord,
}

/// A chunk with what its transactions traded.
pub(super) struct DecodedChunk {
    pub(super) raw: RawChunk,
    traded: Vec<Traded>,
}

/// A decoded transaction that has trades.
struct Traded {
    tx: TxId,
    time: UnixSeconds,
    height: Height,
    index: Option<u32>,
    decoded: Decoded,
    awaits_native: bool,
}

impl Ingest<'_> {
    /// Orders and completes a chunk; the caller writes it. `reread`: what was seen of heights that are
    /// stored already.
    pub(super) async fn chunk(
        &self,
        DecodedChunk { raw, mut traded }: DecodedChunk,
        reread: Option<HashSet<TxId>>,
        checked_at: Option<UnixMillis>,
    ) -> Result<Chunk, IngestError> {
        self.order(&mut traded, reread.is_some()).await?;
        let decoded = traded.iter_mut().map(|one| &mut one.decoded).collect();
        let chain = self.record.wallet.chain;
        self.inner.name_pools(self.source, chain, self.lane, decoded).await;
        let (tokens, unanswered) = self.tokens(&traded).await?;
        let side_payment: SidePayments =
            traded.iter().map(|one| (one.tx, one.decoded.side_payment)).collect();
        let (trades, prices) = self.value(traded, &side_payment, &tokens).await?;
        Ok(Chunk {
            id: self.record.id,
            epoch: self.record.epoch,
            low: raw.low,
            high: raw.high,
            decoder: decode::version(self.record.wallet.address.family()),
            resume: raw.resume,
            proof: raw.proof.with(unanswered),
            missing: raw.missing,
            reread,
            trades,
            tokens,
            accounts: raw.accounts,
            anchors: None,
            prices,
            side_payment,
            checked_at,
        })
    }

    /// Rows with their values, and the prices met on the way.
    async fn value(
        &self,
        traded: Vec<Traded>,
        side_payment: &SidePayments,
        tokens: &[TokenRecord],
    ) -> Result<(Vec<Trade>, Vec<PriceRecord>), IngestError> {
        let mut trades: Vec<Trade> = Vec::new();
        for one in traded {
            let awaits_native = one.awaits_native;
            let mut rows: Vec<Trade> = one.into_rows().collect();
            valuation::classify_values(&mut rows);
            if awaits_native {
                valuation::await_native(&mut rows);
            }
            trades.append(&mut rows);
        }
        let Self { inner, source, lane, record } = *self;
        let chain = inner.registry.chain(record.wallet.chain);
        let mut prices = Vec::new();
        if let Some(chain) = chain {
            let doors = Doors { inner, chain, source, lane };
            prices = prices::value(&doors, record.id, &mut trades, side_payment, tokens).await?;
        }
        for trade in &trades {
            inner.metrics.values.add(trade.valued);
        }
        Ok((trades, prices))
    }

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
            if let Some(tx) = raw_tx.id().filter(|_| !decoded.trades.is_empty()) {
                self.inner.metrics.trades_decoded.add(decoded.trades.len());
                let (time, height, index) = (raw_tx.time(), raw_tx.height(), raw_tx.index());
                let awaits_native = raw_tx.awaits_native();
                traded.push(Traded { tx, time, height, index, decoded, awaits_native });
            }
        }
        self.inner.metrics.transactions_decoded.add(raw.txs.len());
        DecodedChunk { raw, traded }
    }

    /// Sets positions: the block's where the wallet traded several times in it, else 0, so that a
    /// key does not depend on the node that reported it.
    async fn order(&self, traded: &mut [Traded], is_stored: bool) -> Result<(), IngestError> {
        let mut by_height: BTreeMap<Height, Vec<&mut Traded>> = BTreeMap::new();
        for one in traded {
            by_height.entry(one.height).or_default().push(one);
        }
        for (height, mut same) in by_height {
            let is_alone = match same.as_slice() {
                [one] => !is_stored || self.is_alone(one).await?,
                _ => false,
            };
            if let [one] = same.as_mut_slice()
                && is_alone
            {
                one.index = Some(0);
            } else if same.iter().any(|one| one.index.is_none()) {
                let wanted: Vec<TxId> = same.iter().map(|one| one.tx).collect();
                let positions = self.positions(height, &wanted).await?;
                for one in same {
                    one.index = Some(positions.get(&one.tx).copied().unwrap_or(0));
                }
            }
        }
        Ok(())
    }

    /// Whether no other transaction is stored of its block: a second read may bring one of several.
    async fn is_alone(&self, one: &Traded) -> Result<bool, IngestError> {
        let view = self.inner.view()?;
        let rows = view.rows_between(self.record.id, one.time, one.time, BLOCK_ROWS_MAX).await?;
        let is_other = |key: &TradeKey| key.height == one.height && key.tx != one.tx;
        Ok(!rows.bare().iter().any(|row| is_other(&row.key)))
    }

    /// Positions in a block; empty where no node can return them, and then the order is by id.
    async fn positions(
        &self,
        height: Height,
        wanted: &[TxId],
    ) -> Result<HashMap<TxId, u32>, IngestError> {
        for _ in 0..BLOCK_TRIES_MAX {
            match self.source.block_order(height, self.lane).await {
                Ok(ids) => {
                    let positions: HashMap<TxId, u32> = ids.into_iter().zip(0..).collect();
                    if wanted.iter().all(|id| positions.contains_key(id)) {
                        return Ok(positions);
                    }
                }
                Err(error) if error.is_final() => {
                    tracing::warn!(height, %error, "no node returns the order inside this block; rows are ordered by transaction id");
                    return Ok(HashMap::new());
                }
                Err(error) => return Err(error.into()),
            }
        }
        // Better an order by id than a wallet that never gets past this block.
        tracing::warn!(height, "the block came back without transactions that are in it");
        Ok(HashMap::new())
    }

    /// Decimals that the transactions hold, and symbols of tokens that are not known yet; with a doubt
    /// where no endpoint answered for the decimals of a token.
    async fn tokens(&self, traded: &[Traded]) -> Result<(Vec<TokenRecord>, Doubts), IngestError> {
        let chain = self.record.wallet.chain;
        let mut tokens: BTreeMap<Address, TokenRecord> = BTreeMap::new();
        let mints: BTreeSet<Address> = traded
            .iter()
            .flat_map(|one| one.decoded.trades.iter().map(|trade| trade.mint))
            .collect();
        for &mint in &mints {
            let decimals = traded
                .iter()
                .flat_map(|one| &one.decoded.decimals)
                .find_map(|(of, decimals)| (*of == mint).then_some(*decimals));
            tokens
                .insert(mint, TokenRecord { chain, mint, symbol: None, decimals, asked_at: None });
        }
        let unknown = self.unknown(&self.inner.view()?, &mints).await?;
        if !unknown.is_empty() {
            self.look_up(&unknown, &mut tokens).await?;
        }
        let is_answered = unanswered(&unknown, &tokens).is_empty();
        let doubts = if is_answered { Doubts::NONE } else { Doubts::UNCONFIRMED };
        Ok((tokens.into_values().collect(), doubts))
    }

    /// Tokens without a symbol that were not asked for lately.
    async fn unknown(
        &self,
        view: &View,
        mints: &BTreeSet<Address>,
    ) -> Result<Vec<Address>, IngestError> {
        let now = self.inner.clock.now();
        let mut unknown = Vec::new();
        for &mint in mints {
            let known = view.token(self.record.wallet.chain, &mint).await?;
            let settled = known.is_some_and(|token| {
                let asked = token.asked_at.filter(|at| *at <= now).map(|at| now.since(at));
                token.symbol.is_some()
                    || asked.is_some_and(|ago| ago < self.inner.limits.token_retry_after)
            });
            if !settled {
                unknown.push(mint);
            }
        }
        Ok(unknown)
    }

    /// A symbol that is not returned in time is fetched again later. Without decimals there is no
    /// amount: then the chunk waits for nodes that fail only for a while, and requests tokens again
    /// that a limited endpoint left out.
    async fn look_up(
        &self,
        mints: &[Address],
        tokens: &mut BTreeMap<Address, TokenRecord>,
    ) -> Result<(), IngestError> {
        let limits = &self.inner.limits;
        let until = Instant::now() + limits.decimals_wait_max;
        self.look_up_once(mints, tokens, limits.decimals_wait_max).await?;
        loop {
            let open = unanswered(mints, tokens);
            let left = until.saturating_duration_since(Instant::now());
            if open.is_empty() || left <= limits.retry_pause_min {
                return Ok(());
            }
            tokio::time::sleep(limits.retry_pause_min).await;
            // What is still open then is a doubt, no error.
            if self.look_up_once(&open, tokens, left).await.is_err() {
                return Ok(());
            }
        }
    }

    async fn look_up_once(
        &self,
        mints: &[Address],
        tokens: &mut BTreeMap<Address, TokenRecord>,
        decimals_wait: Duration,
    ) -> Result<(), IngestError> {
        let lacks_decimals =
            mints.iter().any(|mint| tokens.get(mint).is_some_and(|token| token.decimals.is_none()));
        let wait = if lacks_decimals { decimals_wait } else { self.inner.limits.token_wait_max };
        let asked = self.source.tokens(mints, self.lane);
        let metas = match tokio::time::timeout(wait, asked).await {
            Ok(Ok(metas)) => metas,
            Ok(Err(error)) if lacks_decimals && !error.is_final() => return Err(error.into()),
            Err(_) if lacks_decimals => {
                let last = "the decimals of tokens were not returned in time".to_owned();
                return Err(UpstreamError::Unavailable { attempts: 1, last }.into());
            }
            Ok(Err(_)) | Err(_) => return Ok(()),
        };
        let asked_at = Some(self.inner.clock.now());
        for meta in metas {
            if let Some(token) = tokens.get_mut(&meta.mint) {
                token.symbol = meta.symbol;
                token.decimals = token.decimals.or(meta.decimals);
                token.asked_at = asked_at;
            }
        }
        Ok(())
    }
}

/// Tokens whose decimals are not known, and for which no endpoint answered.
fn unanswered(mints: &[Address], tokens: &BTreeMap<Address, TokenRecord>) -> Vec<Address> {
    let is_open = |mint: &&Address| {
        let token = tokens.get(mint);
        token.is_some_and(|token| token.decimals.is_none() && token.asked_at.is_none())
    };
    mints.iter().filter(is_open).copied().collect()
}

impl DecodedChunk {
    /// Its oldest transaction.
    pub(super) fn reached(&self) -> Option<(Height, UnixSeconds)> {
        self.raw.txs.last().map(|tx| (tx.height(), tx.time()))
    }

    /// The trades of each transaction up to a time.
    pub(super) fn trades_until(&self, time: u32) -> impl Iterator<Item = &[DecodedTrade]> {
        let until = self.traded.iter().filter(move |one| one.time.0 <= time);
        until.map(|one| one.decoded.trades.as_slice())
    }

    /// Adds the chunk right below, read in the same way.
    pub(super) fn join(&mut self, lower: Self) {
        let raw = lower.raw;
        self.raw.low = raw.low;
        self.raw.resume = raw.resume;
        self.raw.txs.extend(raw.txs);
        self.raw.missing.extend(raw.missing);
        self.raw.accounts.extend(raw.accounts);
        self.traded.extend(lower.traded);
    }
}

impl Traded {
    fn into_rows(self) -> impl Iterator<Item = Trade> {
        let Self { tx, time, height, index, decoded, awaits_native: _ } = self;
        let index = index.unwrap_or(0);
        decoded.trades.into_iter().zip(0..).map(move |(trade, leg)| Trade {
            key: TradeKey { time, height, index, tx, leg },
            side: trade.side,
            mint: trade.mint,
            units: trade.units,
            native: trade.native,
            valued: ValueSource::of_transaction(trade.native),
            venue: trade.venue,
        })
    }
}

/// Why a chunk could not be made ready.
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

impl From<StoreError> for IngestError {
    fn from(error: StoreError) -> Self {
        Self::History(error.into())
    }
}
