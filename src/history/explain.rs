//! Explains one transaction of a wallet: reads it from a node and compares it with the stored rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::timeout;

use super::error::HistoryError;
use super::{History, Inner, Result};
use crate::decode::explain::{Asset, Explanation};
use crate::domain::{Address, Height, Position, Row, Token, TradeKey, TxId, UnixSeconds, Wallet};
use crate::enrich::name_pools;
use crate::rpc::{Lane, Priority};
use crate::store::TokenRecord;

/// The most rows of one transaction that are read.
const ROWS_MAX: usize = 256;

/// What a transaction was for a wallet, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    pub tx: TxId,
    pub height: Height,
    pub time: UnixSeconds,
    pub explanation: Explanation,
    /// Metadata of the tokens that occur in it.
    pub tokens: BTreeMap<Address, Token>,
    /// Its stored rows as they are served, if any.
    pub stored: Vec<Row>,
}

impl History {
    /// Explains a transaction; `None` if no node has it. Stores nothing.
    ///
    /// # Errors
    /// `UpstreamUnavailable` where that takes too long, `ShuttingDown` once the tasks are to end.
    pub async fn explain(&self, wallet: Wallet, tx: TxId) -> Result<Option<Explained>> {
        let inner = &self.inner;
        // Boxed, so that futures of other requests do not have its size of 15 KiB.
        let explained = Box::pin(inner.explained(wallet, tx));
        let asked = timeout(inner.limits.explain_wait_max, explained);
        let answered = inner.tasks.run(asked).await.ok_or(HistoryError::ShuttingDown)?;
        answered.unwrap_or_else(|_| {
            let detail = "it took too long".to_owned();
            Err(HistoryError::UpstreamUnavailable { detail })
        })
    }
}

impl Inner {
    async fn explained(&self, wallet: Wallet, tx: TxId) -> Result<Option<Explained>> {
        let source = self.sources.get(&wallet.chain).ok_or(HistoryError::ChainDisabled)?;
        // An own lane, so that the scheduler alternates with the wallets that load.
        let lane = self.lanes.fetch_add(1, Ordering::Relaxed);
        let lane = Lane::new(lane, Arc::new(Priority::interactive()));
        let found = source
            .transaction(tx, wallet.address, &lane)
            .await
            .map_err(|error| HistoryError::UpstreamUnavailable { detail: error.to_string() })?;
        let Some(found) = found else { return Ok(None) };
        let Some(mut explanation) = found.raw.explain(&self.registry, &wallet, found.fee) else {
            return Ok(None);
        };
        if let Some(lookups) = self.enricher.lookups(wallet.chain, &source, &lane) {
            name_pools(&lookups, &mut explanation.decoded).await;
        }
        let (height, time) = (found.raw.height(), found.raw.time());
        let mints = mentioned_tokens(&explanation);
        let (view, mut tokens) = (self.view()?, BTreeMap::new());
        for &mint in &mints {
            let token = view.token(wallet.chain, &mint).await?;
            let Some(TokenRecord { symbol, decimals, .. }) = token else { continue };
            let decoded = explanation.decoded.decimals.iter().find(|(of, _)| *of == mint);
            let decimals = decimals.or(decoded.map(|(_, decimals)| *decimals));
            tokens.insert(mint, Token::new(mint, symbol, decimals));
        }
        drop(view);
        let unknown: Vec<Address> =
            mints.into_iter().filter(|mint| !tokens.contains_key(mint)).collect();
        // An explanation without symbols is still useful.
        let named =
            if unknown.is_empty() { Ok(Vec::new()) } else { source.tokens(&unknown, &lane).await };
        for meta in named.unwrap_or_default() {
            let token = Token::new(meta.mint, meta.symbol, meta.decimals);
            tokens.insert(meta.mint, token);
        }
        let stored = self.rows_of(&wallet, tx, height, time).await?;
        Ok(Some(Explained { tx, height, time, explanation, tokens, stored }))
    }

    /// The stored rows of one transaction.
    async fn rows_of(
        &self,
        wallet: &Wallet,
        tx: TxId,
        height: Height,
        time: UnixSeconds,
    ) -> Result<Vec<Row>> {
        let view = self.view()?;
        let Some(record) = view.wallet(wallet).await? else { return Ok(Vec::new()) };
        // A key right before the first row that this block can have.
        let before = TradeKey { time, height, index: u32::MAX, tx, leg: u16::MAX };
        let rows = view.rows(record.id, Position::After(before), height, ROWS_MAX).await?;
        Ok(rows.into_iter().filter(|row| row.trade.key.tx == tx).collect())
    }
}

fn mentioned_tokens(explanation: &Explanation) -> Vec<Address> {
    let moved = explanation.movements.iter().map(|movement| movement.asset);
    let left = explanation.left_out.iter().map(|left| left.asset);
    let mut mints: Vec<Address> = moved
        .chain(left)
        .filter_map(|asset| match asset {
            Asset::Token(mint) => Some(mint),
            Asset::Native => None,
        })
        .chain(explanation.decoded.trades.iter().map(|trade| trade.mint))
        .collect();
    mints.sort_unstable();
    mints.dedup();
    mints
}
