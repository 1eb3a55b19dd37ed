//! The stage between decode and store: looks up what rows need and their transactions do not
//! contain. Decoded transactions enter; rows with positions, names and values leave.
//!
//! Asks through [`Source`] and [`Candles`] alone; reads the store and writes nothing.

mod limits;
mod order;
mod pools;
mod prices;
mod reference;
mod retrace;
mod tokens;
mod valuation;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::time::Instant;
use tokio::try_join;

pub use limits::EnrichLimits;
pub use pools::name_pools;
pub use prices::Quotes;
pub use retrace::Retraced;
pub use valuation::TOKEN_AGE_MAX;

use crate::decode::{Decoded, DecodedTrade};
use crate::domain::{
    Address, BoundedCache, ChainId, Clock, Doubts, Height, Trade, TradeKey, TxId, Units,
    UnixSeconds, ValueSource,
};
use crate::registry::{Chain, Registry};
use crate::rpc::{Lane, UpstreamError};
use crate::sources::{Candles, Source};
use crate::store::{PriceRecord, Store, StoreError, TokenRecord, WalletId};

/// Native coin that transactions moved in addition to tokens.
pub type SidePayments = HashMap<TxId, Units>;

/// The stage, with its cache.
#[derive(Debug)]
pub struct Enricher {
    pub store: Store,
    pub registry: Arc<Registry>,
    pub candles: Option<Candles>,
    pub clock: Arc<dyn Clock>,
    pub limits: EnrichLimits,
    pub kept: EnrichCache,
}

/// What is kept in memory: names of pools, and the chains whose prices are not waited for.
#[derive(Debug)]
pub struct EnrichCache {
    pool_names: BoundedCache<(ChainId, Address), Arc<str>>,
    price_pauses: values::PricePauses,
}

impl EnrichCache {
    pub fn new(limits: &EnrichLimits) -> Self {
        let pool_names = BoundedCache::new(limits.pool_names_max);
        Self { pool_names, price_pauses: values::PricePauses::default() }
    }
}

/// The stage for one chain: its source, and the lane of the requests.
#[derive(Debug, Clone, Copy)]
pub struct Lookups<'a> {
    enricher: &'a Enricher,
    pub chain: &'a Chain,
    source: &'a Source,
    lane: &'a Lane,
}

/// A decoded transaction that has trades.
#[derive(Debug)]
pub struct DecodedTx {
    pub id: TxId,
    pub time: UnixSeconds,
    pub height: Height,
    pub index: Option<u32>,
    pub decoded: Decoded,
    /// The native coin of inner calls is unknown, and only because an endpoint failed.
    pub awaits_native: bool,
}

impl DecodedTx {
    fn into_rows(self) -> Vec<Trade> {
        let Self { id: tx, time, height, index, decoded, awaits_native } = self;
        let index = index.unwrap_or(0);
        let row = |(trade, leg): (DecodedTrade, u16)| Trade {
            key: TradeKey { time, height, index, tx, leg },
            side: trade.side,
            mint: trade.mint,
            units: trade.units,
            native: trade.native,
            valued: ValueSource::of_transaction(trade.native),
            venue: trade.venue,
        };
        let mut rows: Vec<Trade> = decoded.trades.into_iter().zip(0..).map(row).collect();
        valuation::mark_routed(&mut rows);
        if awaits_native {
            valuation::await_native(&mut rows);
        }
        rows
    }
}

/// The results of decoding and valuing the transactions of a chunk.
#[derive(Debug)]
pub struct Enriched {
    pub trades: Vec<Trade>,
    pub side_payment: SidePayments,
    pub tokens: Vec<TokenRecord>,
    /// Prices to be stored.
    pub prices: Vec<PriceRecord>,
    /// Doubts about facts that no endpoint established.
    pub doubts: Doubts,
}

#[derive(Debug, thiserror::Error)]
pub enum EnrichError {
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Enricher {
    /// `None` for a chain that no table has.
    pub fn lookups<'a>(
        &'a self,
        chain: ChainId,
        source: &'a Source,
        lane: &'a Lane,
    ) -> Option<Lookups<'a>> {
        let chain = self.registry.chain(chain)?;
        Some(Lookups { enricher: self, chain, source, lane })
    }
}

impl Lookups<'_> {
    /// Completes a wallet's transactions. `is_stored`: others of their heights may be stored.
    pub async fn enrich(
        &self,
        id: WalletId,
        mut txs: Vec<DecodedTx>,
        is_stored: bool,
    ) -> Result<Enriched, EnrichError> {
        // Concurrent: none needs the results of the others.
        let (positions, (tokens, doubts), (), reference) = try_join!(
            order::look_up(self, id, &txs, is_stored),
            tokens::look_up(self, &txs),
            pools::look_up(self, txs.iter().map(|tx| &tx.decoded)).map(Ok),
            reference::look_up(self, &txs).map(Ok),
        )?;
        for tx in &mut txs {
            // The block's where the wallet traded several times in it, else 0, so that a key does not
            // depend on the node that reported the transaction.
            let of_block = positions.get(&tx.height).and_then(|block| block.get(&tx.id));
            tx.index = Some(of_block.copied().unwrap_or(0));
            pools::set_names(self, &mut tx.decoded);
        }
        let side_payment = txs.iter().map(|tx| (tx.id, tx.decoded.side_payment)).collect();
        let mut trades: Vec<Trade> = txs.into_iter().flat_map(DecodedTx::into_rows).collect();
        let prices =
            values::look_up(self, id, &mut trades, &side_payment, &tokens, &reference).await?;
        Ok(Enriched { trades, side_payment, tokens, prices, doubts })
    }

    /// Looks up prices for stored rows without a value, of any wallets.
    pub async fn quotes(&self, waiting: &[Trade]) -> Result<Quotes, StoreError> {
        let coins = values::coins(self, waiting, &[]).await?;
        let moments = prices::moments(&coins, waiting);
        let deadline = Instant::now() + self.enricher.limits.values_ask_max;
        let reference = Box::pin(self.source.native_prices(&moments, self.lane));
        prices::quotes(self, reference, &moments, &[], Some(deadline)).await
    }

    /// Values a wallet's stored rows that have no value yet: by prices, by its other trades, and by
    /// reading their transactions again.
    pub async fn value_again(
        &self,
        id: WalletId,
        waiting: &mut [Trade],
        side_payment: &SidePayments,
        quotes: &Quotes,
    ) -> Result<Retraced, StoreError> {
        let coins = values::coins(self, waiting, &[]).await?;
        values::set_values(self, &coins, id, waiting, side_payment, quotes).await?;
        retrace::retrace(self, id, waiting).await
    }
}
