//! Fetching: which listed transactions are worth it, and each with its info.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

use serde_json::json;

use super::TronSource;
use super::seen::{FAILED_ANSWERS, SeenTx, SentTx, TxPurpose};
use super::timeline::Relevance;
use super::wire::{self, Unreadable};
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

/// That a transaction failed is not believed of one answer.
pub(super) fn want_sent(seen: &SeenTx, sent: &SentTx) -> Relevance {
    let wanted = match sent.kind {
        TxPurpose::Plain => false,
        TxPurpose::TokenCall => seen.gave && seen.got,
        TxPurpose::Call => sent.is_wallets || seen.gave || seen.inner,
        TxPurpose::NativeTrade => sent.is_wallets,
    };
    if wanted && !sent.has_failed() { Relevance::Fetch } else { Relevance::Pass }
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
        let Some(sent) = self.sent_of(id, wallet, &seen, options).await? else {
            return Ok(Fetched::Missing);
        };
        // One that failed has no events.
        if sent.has_failed() && seen.sent.is_none() && (seen.gave || seen.got) {
            return Ok(Fetched::Missing);
        }
        if !always && want_sent(&seen, &sent) == Relevance::Pass {
            return Ok(Fetched::Unwanted);
        }
        self.with_info(id, &sent, (wallet, &seen), options).await
    }

    /// A transaction as it is listed, else by its id; one that is said to have failed once more, by
    /// another endpoint where there is one. `None` where no node gives it.
    async fn sent_of(
        &self,
        id: Word,
        wallet: &Account,
        seen: &SeenTx,
        options: &CallOptions,
    ) -> Result<Option<SentTx>, UpstreamError> {
        let is_settled = |sent: &&SentTx| sent.failures == 0 || sent.has_failed();
        if let Some(sent) = seen.sent.as_ref().filter(is_settled) {
            return Ok(Some(sent.clone()));
        }
        let mut failures = seen.sent.as_ref().map_or(0, |sent| sent.failures);
        let (body, mut options) = (json!({"value": hex::encode(id)}), options.clone());
        loop {
            let reply = self.post_solid(TRANSACTION, &body, &options).await?;
            let what = "gettransactionbyid gave no transaction";
            let found = wire::transaction(&reply.body, &id, wallet)
                .map_err(|Unreadable| self.malformed(reply.endpoint, what))?;
            let Some(mut sent) = found else { return Ok(None) };
            if sent.failures > 0 {
                failures += sent.failures;
                sent.failures = failures;
            }
            if sent.failures == 0 || sent.has_failed() {
                return Ok(Some(sent));
            }
            options.avoid = Some(reply.endpoint);
        }
    }

    /// A transaction with its info; an info that alone says that it failed is asked for once more, of
    /// another endpoint where there is one.
    async fn with_info(
        &self,
        id: Word,
        sent: &SentTx,
        (wallet, seen): (&Account, &SeenTx),
        options: &CallOptions,
    ) -> Result<Fetched, UpstreamError> {
        let (body, mut options) = (json!({"value": hex::encode(id)}), options.clone());
        let mut failures = sent.failures;
        loop {
            let reply = self.post_solid(INFO, &body, &options).await?;
            if wire::is_empty(&reply.body) {
                return Ok(Fetched::Missing);
            }
            let listed = (sent.json.as_str(), wallet, seen);
            let info = (reply.body.as_ref(), reply.endpoint);
            let fetched = self.joined(id, listed, info, &options).await?;
            failures += 1;
            if failures >= FAILED_ANSWERS || !matches!(fetched, Fetched::Failed(_)) {
                return Ok(fetched);
            }
            options.avoid = Some(reply.endpoint);
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use serde_json::Value;

    use super::super::TronLimits;
    use super::super::fake::{self, FakeNodes, options};
    use super::*;
    use crate::domain::Address;

    const WALLET: Account = [7; 20];
    const ID: Word = [1; 32];

    /// A call that the wallet sent.
    fn transaction(result: &str) -> Value {
        let owner = format!("41{}", hex::encode(WALLET));
        let value = json!({"owner_address": owner, "contract_address": format!("41{}", "dd".repeat(20)),
                           "data": "18cbafe5"});
        let contract = json!({"type": "TriggerSmartContract", "parameter": {"value": value}});
        json!({"txID": hex::encode(ID), "ret": [{"contractRet": result}], "blockNumber": 9,
               "block_timestamp": 1_000, "raw_data": {"contract": [contract]}})
    }

    fn info(result: &str) -> Value {
        json!({"id": hex::encode(ID), "blockNumber": 9, "blockTimeStamp": 1_000,
               "receipt": {"result": result}, "log": []})
    }

    /// The row of a list with this transaction.
    fn listed(results: &[&str]) -> SeenTx {
        let mut seen = SeenTx::default();
        for result in results {
            let body = json!({"data": [transaction(result)]}).to_string();
            let page = wire::transactions(body.as_bytes(), &WALLET).unwrap();
            seen.join(page.rows.into_iter().next().unwrap().seen);
        }
        seen
    }

    /// The transaction and its info fail in so many first answers.
    fn nodes([failed, failed_infos]: [u64; 2]) -> Arc<FakeNodes> {
        let asked = [const { AtomicU64::new(0) }; 2];
        FakeNodes::new(move |(_, path, _)| {
            let result = |at: usize, first: u64| {
                let is_first = asked[at].fetch_add(1, Ordering::Relaxed) < first;
                if is_first { "REVERT" } else { "SUCCESS" }
            };
            match path {
                "walletsolidity/gettransactionbyid" => (200, transaction(result(0, failed))),
                "walletsolidity/gettransactioninfobyid" => (200, info(result(1, failed_infos))),
                _ => (404, json!({"error": "not found"})),
            }
        })
    }

    async fn fetched(seen: &SeenTx, failed: [u64; 2]) -> (Fetched, Arc<FakeNodes>) {
        let nodes = nodes(failed);
        let source = fake::source(&["one", "other"], nodes.clone(), TronLimits::default());
        let fetched = source.fetch(ID, &WALLET, seen.clone(), false, &options()).await.unwrap();
        (fetched, nodes)
    }

    #[test]
    fn a_row_that_one_answer_shows_as_failed_is_asked_for() {
        assert_eq!(want_listed(&listed(&["SUCCESS"])), Relevance::Fetch);
        assert_eq!(want_listed(&listed(&["REVERT"])), Relevance::Fetch);
        assert_eq!(want_listed(&listed(&["REVERT", "REVERT"])), Relevance::Pass);
        for results in [["REVERT", "SUCCESS"], ["SUCCESS", "REVERT"]] {
            assert_eq!(want_listed(&listed(&results)), Relevance::Fetch, "{results:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_row_is_confirmed_by_the_transaction_itself() {
        let seen = listed(&["REVERT"]);
        let (fetched_tx, _) = fetched(&seen, [0, 0]).await;
        let Fetched::Transaction(tx) = fetched_tx else { panic!("{fetched_tx:?}") };
        assert!(tx.call.succeeded);
        let (fetched_tx, nodes) = fetched(&seen, [9, 0]).await;
        assert!(matches!(fetched_tx, Fetched::Unwanted), "{fetched_tx:?}");
        assert_eq!(nodes.count("gettransactionbyid") + nodes.count("infobyid"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_info_that_says_failed_is_confirmed_by_another_answer() {
        let seen = listed(&["SUCCESS"]);
        for (failed, asked) in [(0, 1), (1, 2), (9, 2)] {
            let (fetched_tx, nodes) = fetched(&seen, [0, failed]).await;
            assert_eq!(matches!(fetched_tx, Fetched::Failed(_)), failed > 1, "{fetched_tx:?}");
            assert_eq!(nodes.count("infobyid"), asked);
        }
    }

    /// What an inner call names shows nothing of the transaction itself.
    #[tokio::test(start_paused = true)]
    async fn a_transaction_that_is_listed_without_its_result_is_failed_by_two_answers() {
        let seen = SeenTx { inner: true, ..SeenTx::default() };
        for (failed, asked) in [(0, 1), (1, 2), (9, 2)] {
            let (fetched_tx, nodes) = fetched(&seen, [failed, 0]).await;
            assert_eq!(matches!(fetched_tx, Fetched::Unwanted), failed > 1, "{fetched_tx:?}");
            assert_eq!(nodes.count("gettransactionbyid"), asked);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_answer_that_says_failed_is_none_of_a_single_transaction() {
        let source = fake::source(&["one"], nodes([0, 1]), TronLimits::default());
        let lane = options().lane;
        let found = source.single(ID, &WALLET, &lane).await.unwrap().unwrap();
        let crate::sources::chunk::RawTx::Tron(tx, _) = found.raw else { panic!("another family") };
        assert!(tx.call.succeeded);
        assert_eq!(Address::Tron(tx.call.from), Address::Tron(WALLET));
    }
}
