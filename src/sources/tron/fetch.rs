//! Fetching: which listed transactions are worth it, and each with its info.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

use serde_json::json;

use super::TronSource;
use super::timeline::Relevance;
use super::wire::{self, SeenTx, SentTx, TxPurpose, Unreadable};
use crate::decode::evm::{Account, Word};
use crate::decode::tron::{Asset, ExchangeId, Transaction, parse};
use crate::domain::Height;
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;

const TRANSACTION: [&str; 2] = ["walletsolidity/gettransactionbyid", "wallet/gettransactionbyid"];
const INFO: [&str; 2] = ["walletsolidity/gettransactioninfobyid", "wallet/gettransactioninfobyid"];

/// What a listed transaction proved to be.
#[derive(Debug)]
pub(super) enum Fetched {
    Transaction(Box<Transaction>),
    Failed(Box<Transaction>),
    /// By what it asks for it cannot be a trade.
    Unwanted,
    /// No node gives it by its id.
    Missing,
    /// Nor in the block of this height.
    Lost(Height),
}

/// Decides by the index's lists. To trade, a wallet gives and receives: tokens that only came in,
/// in a transaction that the wallet did not send, are no trade.
pub(super) fn want_listed(seen: &SeenTx) -> Relevance {
    match &seen.sent {
        Some(sent) => want_sent(seen, sent),
        None if seen.gave || seen.inner => Relevance::Fetch,
        None => Relevance::Pass,
    }
}

/// Decides by events: the sender is not known yet.
pub(super) fn want_found(seen: &SeenTx) -> Relevance {
    if seen.gave || seen.got { Relevance::Fetch } else { Relevance::Pass }
}

pub(super) fn want_sent(seen: &SeenTx, sent: &SentTx) -> Relevance {
    let wanted = match sent.kind {
        TxPurpose::Failed | TxPurpose::Plain => false,
        TxPurpose::TokenCall => seen.gave && seen.got,
        TxPurpose::Call => sent.is_wallets || seen.gave || seen.inner,
        TxPurpose::NativeTrade => sent.is_wallets,
    };
    if wanted { Relevance::Fetch } else { Relevance::Pass }
}

impl TronSource {
    /// A listed transaction with its info; `always`: whether it is wanted or not.
    pub(super) async fn fetch(
        &self,
        id: Word,
        wallet: &Account,
        seen: SeenTx,
        always: bool,
        options: &CallOptions,
    ) -> Result<Fetched, UpstreamError> {
        let body = json!({"value": hex::encode(id)});
        let sent = if let Some(sent) = &seen.sent {
            sent.clone()
        } else {
            let reply = self.post_solid(TRANSACTION, &body, options).await?;
            let what = "gettransactionbyid gave no transaction";
            let found = wire::transaction(&reply.body, &id, wallet)
                .map_err(|Unreadable| self.malformed(reply.endpoint, what))?;
            let Some(sent) = found else { return Ok(Fetched::Missing) };
            // One that failed has no events.
            if sent.kind == TxPurpose::Failed && (seen.gave || seen.got) {
                return Ok(Fetched::Missing);
            }
            sent
        };
        if !always && want_sent(&seen, &sent) == Relevance::Pass {
            return Ok(Fetched::Unwanted);
        }
        let reply = self.post_solid(INFO, &body, options).await?;
        if wire::is_empty(&reply.body) {
            return Ok(Fetched::Missing);
        }
        let listed = (sent.json.as_str(), wallet, &seen);
        self.joined(id, listed, (&reply.body, reply.endpoint), options).await
    }

    /// A transaction and its info; `Fetched::Missing` where that lacks what the list shows.
    pub(super) async fn joined(
        &self,
        id: Word,
        (tx, wallet, seen): (&str, &Account, &SeenTx),
        (info, by): (&[u8], EndpointId),
        options: &CallOptions,
    ) -> Result<Fetched, UpstreamError> {
        let mut tx = parse(tx.as_bytes(), info).map_err(|error| {
            let what = format!("transaction {}: {error}", hex::encode(id));
            self.malformed(by, &what)
        })?;
        let shows_it = || tx.call.logs.iter().any(|log| log.mentions(wallet));
        if (seen.gave || seen.got) && !(tx.call.succeeded && shows_it()) {
            return Ok(Fetched::Missing);
        }
        if !tx.call.succeeded {
            return Ok(Fetched::Failed(Box::new(tx)));
        }
        if let Some(exchange) = tx.unresolved_exchange() {
            self.set_exchange_assets(exchange, &mut tx, options).await?;
        }
        Ok(Fetched::Transaction(Box::new(tx)))
    }

    /// Which assets an exchange of the protocol has.
    async fn set_exchange_assets(
        &self,
        exchange: ExchangeId,
        tx: &mut Transaction,
        options: &CallOptions,
    ) -> Result<(), UpstreamError> {
        let assets = self.exchanges().get(&exchange).copied();
        if let Some(assets) = assets {
            tx.set_exchange_assets(assets);
            return Ok(());
        }
        let (body, mut options) = (json!({"id": exchange}), options.clone());
        // The transaction went through: an exchange that a node does not know is asked for again.
        for _ in 0..self.inner.limits.missing_tries_max {
            let reply = match self.post("wallet/getexchangebyid", &body, &options).await {
                Ok(reply) => reply,
                // Then it stays untold, and so does the trade.
                Err(error) if error.is_final() => return Ok(()),
                Err(error) => return Err(error),
            };
            let what = "getexchangebyid gave none";
            let told = wire::exchange(&reply.body)
                .map_err(|Unreadable| self.malformed(reply.endpoint, what))?;
            if let Some(assets) = told {
                tx.set_exchange_assets(assets);
                let mut known = self.exchanges();
                if known.len() < self.inner.limits.exchanges_max {
                    known.insert(exchange, assets);
                }
                return Ok(());
            }
            options.avoid = Some(reply.endpoint);
        }
        Ok(())
    }

    fn exchanges(&self) -> MutexGuard<'_, HashMap<ExchangeId, [Asset; 2]>> {
        self.inner.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
