//! Decides which listed transactions are needed, and fetches each with its info.

use serde_json::json;

use super::TronSource;
use super::seen::{FAILED_ANSWERS, SeenTx, SentTx, TxPurpose};
use super::wire::{self, Unreadable};
use crate::decode::evm::{Account, NativeFlows, Word};
use crate::decode::tron::{ExchangeId, Transaction, lacks_calls, parse};
use crate::domain::{Height, lock};
use crate::rpc::{CallOptions, EndpointId, Result, UpstreamError, unless_final};
use crate::sources::chunk::{FoundTx, RawTx};

pub(super) const TRANSACTION: [&str; 2] =
    ["walletsolidity/gettransactionbyid", "wallet/gettransactionbyid"];
pub(super) const INFO: [&str; 2] =
    ["walletsolidity/gettransactioninfobyid", "wallet/gettransactioninfobyid"];

#[derive(Debug)]
pub(super) enum Fetched {
    Transaction(Box<Transaction>),
    Failed(Box<Transaction>),
    /// Its contract type, and the entries of the lists, show that it cannot be a trade.
    Unwanted,
    /// No node returns it by its id.
    Missing,
    /// Nor in the block of this height; or its trade cannot be read.
    Lost(Height),
}

/// Decides by the index's lists. A trade gives and receives: a transaction that the wallet did not
/// send and that only brought it tokens is no trade.
pub(super) fn want_listed(seen: &SeenTx) -> bool {
    seen.sent.as_ref().map_or(seen.gave || seen.inner, |sent| want_sent(seen, sent))
}

/// Decides by the first answer of each list; that a transaction failed needs two answers.
pub(super) fn want_by_first_answers(seen: &SeenTx) -> bool {
    let is_doubtful = seen.sent.as_ref().is_some_and(|sent| sent.failures > 0);
    !is_doubtful && want_listed(seen)
}

/// Decides by events: the sender is not known yet.
pub(super) fn want_found(seen: &SeenTx) -> bool {
    seen.moved()
}

/// Decides by the transaction itself: that it failed needs two answers, and none that shows tokens
/// which it moved.
pub(super) fn want_sent(seen: &SeenTx, sent: &SentTx) -> bool {
    let wanted = match sent.kind {
        TxPurpose::Plain => false,
        TxPurpose::TokenCall => seen.gave && seen.got,
        TxPurpose::Call => sent.is_wallets || seen.gave || seen.inner,
        TxPurpose::NativeTrade => sent.is_wallets,
    };
    wanted && (!sent.has_failed() || seen.moved())
}

impl Fetched {
    /// Nodes accept no block in which a transaction states another result than it had: one that
    /// states success has not failed.
    pub(super) fn held_against(self, sent: &SentTx) -> Self {
        if matches!(self, Self::Failed(_)) && sent.is_good { Self::Missing } else { self }
    }
}

impl TronSource {
    /// Fetches a listed transaction with its info; `always`: even if it is not needed.
    pub(super) async fn fetch(
        &self,
        id: Word,
        wallet: &Account,
        seen: SeenTx,
        always: bool,
        options: &CallOptions,
    ) -> Result<Fetched> {
        let Some(sent) = self.sent_of(id, wallet, &seen, options).await? else {
            return Ok(Fetched::Missing);
        };
        // A failed transaction has no events.
        if sent.has_failed() && seen.moved() {
            return Ok(Fetched::Missing);
        }
        if !always && !want_sent(&seen, &sent) {
            return Ok(Fetched::Unwanted);
        }
        self.with_info(id, &sent, (wallet, &seen), options).await
    }

    /// One transaction by its id; `None` if no node has it among solid blocks. Failed ones are
    /// returned too.
    pub(crate) async fn single(
        &self,
        id: Word,
        wallet: &Account,
        options: &CallOptions,
    ) -> Result<Option<FoundTx>> {
        match self.fetch(id, wallet, SeenTx::default(), true, options).await? {
            Fetched::Transaction(tx) | Fetched::Failed(tx) => {
                let time = tx.time;
                Ok(Some(FoundTx { raw: RawTx::Tron(tx, time), fee: None }))
            }
            Fetched::Unwanted | Fetched::Missing => Ok(None),
            Fetched::Lost(_) => Err(UpstreamError::unavailable("no endpoint gives its exchange")),
        }
    }

    /// The transaction from the list, else by its id; one that seems to have failed is queried
    /// again, at another endpoint if possible. `None` if no node returns it.
    async fn sent_of(
        &self,
        id: Word,
        wallet: &Account,
        seen: &SeenTx,
        options: &CallOptions,
    ) -> Result<Option<SentTx>> {
        let is_settled = |sent: &&SentTx| sent.failures == 0 || sent.has_failed() && !seen.moved();
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

    /// A transaction with its info. If only the info reports that it failed, the info is queried
    /// again, at another endpoint if possible.
    pub(super) async fn confirmed_info(
        &self,
        id: Word,
        sent: &SentTx,
        (wallet, seen): (&Account, &SeenTx),
        options: &CallOptions,
    ) -> Result<(Fetched, EndpointId)> {
        let (body, mut options) = (json!({"value": hex::encode(id)}), options.clone());
        let mut failures = sent.failures;
        loop {
            let reply = self.post_solid(INFO, &body, &options).await?;
            if wire::is_empty(&reply.body) {
                return Ok((Fetched::Missing, reply.endpoint));
            }
            let listed = (sent.json.as_str(), wallet, seen);
            let info = (reply.body.as_ref(), reply.endpoint);
            let fetched = self.joined_with_info(id, listed, info, &options).await?;
            failures += 1;
            if failures >= FAILED_ANSWERS || !matches!(fetched, Fetched::Failed(_)) {
                return Ok((fetched.held_against(sent), reply.endpoint));
            }
            options.avoid = Some(reply.endpoint);
        }
    }

    /// A transaction joined with its info; `Fetched::Missing` if the info lacks what the list
    /// shows, `Fetched::Lost` if no endpoint returns the assets of its exchange.
    pub(super) async fn joined_with_info(
        &self,
        id: Word,
        (tx, wallet, seen): (&str, &Account, &SeenTx),
        (info, by): (&[u8], EndpointId),
        options: &CallOptions,
    ) -> Result<Fetched> {
        let mut tx = parse(tx.as_bytes(), info).map_err(|error| {
            let what = format!("transaction {}: {error}", hex::encode(id));
            self.malformed(by, &what)
        })?;
        let shows_it = || tx.call.logs.iter().any(|log| log.mentions(wallet));
        if seen.moved() && !(tx.call.succeeded && shows_it()) {
            return Ok(Fetched::Missing);
        }
        if !tx.call.succeeded {
            return Ok(Fetched::Failed(Box::new(tx)));
        }
        let wrapped = &self.inner.references.wrapped;
        if lacks_calls(info, &tx, wrapped) {
            tx.call.native = NativeFlows::Unknown;
        }
        if let Some(exchange) = tx.unresolved_exchange() {
            self.set_exchange_assets(exchange, &mut tx, options).await?;
            if tx.unresolved_exchange().is_some() {
                return Ok(Fetched::Lost(tx.call.block));
            }
        }
        Ok(Fetched::Transaction(Box::new(tx)))
    }

    async fn set_exchange_assets(
        &self,
        exchange: ExchangeId,
        tx: &mut Transaction,
        options: &CallOptions,
    ) -> Result<()> {
        let assets = lock(&self.inner.exchanges).get(&exchange).copied();
        if let Some(assets) = assets {
            tx.set_exchange_assets(assets);
            return Ok(());
        }
        // An exchange is that of many transactions.
        let mut options = CallOptions { fails_soon: false, ..options.clone() };
        let body = json!({"id": exchange});
        // The transaction succeeded, so the exchange exists: a node that lacks it is not believed.
        for _ in 0..self.inner.limits.missing_tries_max {
            let answer = self.post("wallet/getexchangebyid", &body, &options).await;
            let Some(reply) = unless_final(answer)? else { return Ok(()) };
            let what = "getexchangebyid gave none";
            let given = wire::exchange(&reply.body, exchange)
                .map_err(|Unreadable| self.malformed(reply.endpoint, what))?;
            if let Some(assets) = given {
                tx.set_exchange_assets(assets);
                let mut known = lock(&self.inner.exchanges);
                if known.len() < self.inner.limits.exchanges_max {
                    known.insert(exchange, assets);
                }
                return Ok(());
            }
            options.avoid = Some(reply.endpoint);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use serde_json::Value;
    use tokio::time::sleep;

    use super::super::TronLimits;
    use super::super::fake::{self, ScriptedNodes, options};
    use super::super::info_answers::has_internal;
    use super::*;
    use crate::domain::{Address, Doubts};

    pub(in super::super) const WALLET: Account = [7; 20];
    pub(in super::super) const ID: Word = [1; 32];

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
    pub(in super::super) fn listed(results: &[&str]) -> SeenTx {
        let mut seen = SeenTx::default();
        for result in results {
            let body = json!({"data": [transaction(result)]}).to_string();
            let page = wire::transactions(body.as_bytes(), &WALLET).unwrap();
            seen.join(page.rows.into_iter().next().unwrap().seen);
        }
        seen
    }

    /// The first answers, by number, that report the transaction and its info as failed.
    fn nodes([failed, failed_infos]: [u64; 2]) -> Arc<ScriptedNodes> {
        let asked = [const { AtomicU64::new(0) }; 2];
        ScriptedNodes::new(move |(_, path, _)| {
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

    async fn fetched(seen: &SeenTx, failed: [u64; 2]) -> (Fetched, Arc<ScriptedNodes>) {
        let nodes = nodes(failed);
        let source = fake::source(&["one", "other"], &nodes, TronLimits::default());
        let fetched = source.fetch(ID, &WALLET, seen.clone(), false, &options()).await.unwrap();
        (fetched, nodes)
    }

    #[test]
    fn a_row_that_one_answer_shows_as_failed_is_asked_for() {
        assert!(want_listed(&listed(&["SUCCESS"])) && want_listed(&listed(&["REVERT"])));
        assert!(!want_listed(&listed(&["REVERT", "REVERT"])));
        for results in [["REVERT", "SUCCESS"], ["SUCCESS", "REVERT"]] {
            assert!(want_listed(&listed(&results)), "{results:?}");
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

    /// An info, or a transaction that is listed without its result: an inner call's entry does not
    /// show it.
    #[tokio::test(start_paused = true)]
    async fn an_answer_that_says_failed_is_confirmed_by_another_one() {
        let (good, inner) = (listed(&["SUCCESS"]), SeenTx { inner: true, ..SeenTx::default() });
        let mut unstated = good.clone();
        unstated.sent.as_mut().unwrap().is_good = false;
        for (failed, asked) in [(0, 1), (1, 2), (9, 2)] {
            let (fetched_tx, nodes) = fetched(&unstated, [0, failed]).await;
            assert_eq!(matches!(fetched_tx, Fetched::Failed(_)), failed > 1, "{fetched_tx:?}");
            assert_eq!(nodes.count("infobyid"), asked);
            // One that states its success did not fail.
            let (fetched_tx, _) = fetched(&good, [0, failed]).await;
            assert_eq!(matches!(fetched_tx, Fetched::Missing), failed > 1, "{fetched_tx:?}");
            let (fetched_tx, nodes) = fetched(&inner, [failed, 0]).await;
            assert_eq!(matches!(fetched_tx, Fetched::Unwanted), failed > 1, "{fetched_tx:?}");
            assert_eq!(nodes.count("gettransactionbyid"), asked);
        }
    }

    /// The other list shows tokens that it moved: the transaction itself decides.
    #[test]
    fn a_transaction_that_moved_tokens_did_not_fail() {
        let mut seen = listed(&["REVERT", "REVERT"]);
        assert!(!want_listed(&seen));
        seen.gave = true;
        assert!(want_listed(&seen));
    }

    #[tokio::test(start_paused = true)]
    async fn a_mark_of_failure_next_to_moved_tokens_is_looked_up() {
        let seen = SeenTx { gave: true, ..listed(&["REVERT", "REVERT"]) };
        for (failed, sent) in [(0, true), (9, false)] {
            let source =
                fake::source(&["one", "other"], &nodes([failed, 0]), TronLimits::default());
            let found = source.sent_of(ID, &WALLET, &seen, &options()).await.unwrap().unwrap();
            assert_eq!(!found.has_failed(), sent);
            let fetched = source.fetch(ID, &WALLET, seen.clone(), false, &options()).await.unwrap();
            assert!(matches!(fetched, Fetched::Missing), "the info lacks its log: {fetched:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_answer_that_says_failed_is_none_of_a_single_transaction() {
        let source = fake::source(&["one"], &nodes([0, 1]), TronLimits::default());
        let found = source.single(ID, &WALLET, &options()).await.unwrap().unwrap();
        let RawTx::Tron(tx, _) = found.raw else { panic!("another family") };
        assert!(tx.call.succeeded);
        assert_eq!(Address::Tron(tx.call.from), Address::Tron(WALLET));
    }

    pub(in super::super) const TOKEN: &str = "41eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
    const CALLED: &str = "41dddddddddddddddddddddddddddddddddddddddd";
    pub(in super::super) const POOL: Account = [8; 20];
    pub(in super::super) const HOSTS: [&str; 2] = ["one", "other"];

    /// Infos by the number of earlier queries, and by host.
    pub(in super::super) fn info_nodes(
        give: impl Fn(u64, &str) -> Value + Send + Sync + 'static,
    ) -> Arc<ScriptedNodes> {
        let asked = AtomicU64::new(0);
        ScriptedNodes::new(move |(host, path, _)| match path {
            "walletsolidity/gettransactioninfobyid" => {
                (200, give(asked.fetch_add(1, Ordering::Relaxed), host))
            }
            _ => (404, json!({"error": "not found"})),
        })
    }

    pub(in super::super) async fn given(source: &TronSource, seen: &SeenTx) -> Transaction {
        let fetched_tx = source.fetch(ID, &WALLET, seen.clone(), false, &options()).await.unwrap();
        let Fetched::Transaction(tx) = fetched_tx else { panic!("{fetched_tx:?}") };
        *tx
    }

    pub(in super::super) fn transfer(contract: &str, from: Account, to: Account) -> Value {
        let word = |account: Account| format!("{:0>64}", hex::encode(account));
        let topic = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
        json!({"address": contract, "topics": [topic, word(from), word(to)],
               "data": format!("{:064x}", 5)})
    }

    /// Tokens of the wallet for TRX, which the called contract pays.
    pub(in super::super) fn sale(contract: &str, has_internal: bool) -> Value {
        let mut sale = info("SUCCESS");
        sale["log"] = json!([transfer(contract, WALLET, POOL)]);
        if has_internal {
            let to = format!("41{}", hex::encode(WALLET));
            sale["internal_transactions"] = json!([{"caller_address": CALLED,
                "transferTo_address": to, "callValueInfo": [{"callValue": 9}]}]);
        }
        sale
    }

    /// Tokens for tokens: one of the two transfers alone is no trade.
    #[tokio::test(start_paused = true)]
    async fn an_info_with_one_of_two_listed_transfers_is_confirmed_by_another_endpoint() {
        let seen = SeenTx { gave: true, got: true, ..listed(&["SUCCESS"]) };
        for shown in [0, 1] {
            // Tokens that brought nothing take a third answer.
            let by_both = 3 - shown;
            for (cut_by, asked, logs) in [("", 1, 2), ("one", 2, 2), ("one other", by_both, 1)] {
                let nodes = info_nodes(move |_, host| {
                    let both = [transfer(TOKEN, WALLET, POOL), transfer(TOKEN, POOL, WALLET)];
                    let mut swap = info("SUCCESS");
                    let is_cut = cut_by.contains(host);
                    swap["log"] = if is_cut { json!([both[shown]]) } else { json!(both) };
                    swap["internal_transactions"] = json!([]);
                    swap
                });
                let source = fake::source(&HOSTS, &nodes, TronLimits::default());
                let tx = given(&source, &seen).await;
                assert_eq!(tx.call.logs.len(), logs, "only {shown}, by {cut_by}");
                assert_eq!(nodes.count("infobyid"), asked, "only {shown}, by {cut_by}");
            }
        }
    }

    /// Events of fewer topics name the wallet without a side.
    #[tokio::test(start_paused = true)]
    async fn an_event_of_another_shape_shows_both_sides() {
        let seen = SeenTx { gave: true, got: true, ..listed(&["SUCCESS"]) };
        let nodes = info_nodes(|_, _| {
            let mut swap = sale(CALLED, true);
            swap["log"][0]["topics"].as_array_mut().unwrap().pop();
            swap
        });
        let source = fake::source(&HOSTS, &nodes, TronLimits::default());
        given(&source, &seen).await;
        assert_eq!(nodes.count("infobyid"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn internal_transactions_that_one_endpoint_has_are_found_whichever_answers_first() {
        for (giver, asked) in [("one", 1), ("other", 2)] {
            let nodes = info_nodes(move |_, host| sale(TOKEN, host == giver));
            let source = fake::source(&HOSTS, &nodes, TronLimits::default());
            assert!(has_internal(&given(&source, &listed(&["SUCCESS"])).await), "{giver}");
            assert_eq!(nodes.count("infobyid"), asked, "{giver}");
        }
    }

    /// Servers behind one address.
    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_gave_internal_transactions_is_asked_for_them_again() {
        // There are eleven transactions; only the second answers for the first and for the last one
        // have internal transactions. Eight in a row take eight answers, the next ones two.
        let nodes = info_nodes(|asked, _| sale(TOKEN, asked == 1 || asked == 69));
        let source = fake::source(&["one"], &nodes, TronLimits::default());
        for at in 0..11 {
            let tx = given(&source, &listed(&["SUCCESS"])).await;
            assert_eq!(has_internal(&tx), at == 0 || at == 10, "{at}");
            // One that lacks them next to others that have them is in doubt.
            let is_doubtful = source.doubts_of_calls(&[tx]) == Doubts::UNCONFIRMED;
            assert_eq!(is_doubtful, (1..8).contains(&at), "{at}");
            sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(nodes.count("infobyid"), 2 + 8 * 8 + 2 * 2);
    }

    /// A trade without its other asset has no row.
    #[tokio::test(start_paused = true)]
    async fn a_trade_at_an_exchange_that_no_endpoint_gives_is_lost_for_now() {
        let other =
            json!({"exchange_id": 8, "first_token_id": "31303032303030", "second_token_id": "5f"});
        for (status, body) in [(405, json!({})), (404, json!({})), (200, json!({})), (200, other)] {
            let nodes = ScriptedNodes::new(move |(_, path, _)| match path {
                "wallet/getexchangebyid" => (status, body.clone()),
                _ => (200, info("SUCCESS")),
            });
            let source = fake::source(&HOSTS, &nodes, TronLimits::default());
            let value = json!({"owner_address": format!("41{}", hex::encode(WALLET)),
                               "exchange_id": 9, "token_id": "5f", "quant": 100});
            let contract =
                json!({"type": "ExchangeTransactionContract", "parameter": {"value": value}});
            let tx = json!({"txID": hex::encode(ID), "ret": [{"contractRet": "SUCCESS"}],
                            "raw_data": {"contract": [contract]}})
            .to_string();
            let (mut info, seen) = (info("SUCCESS"), SeenTx::default());
            info["exchange_received_amount"] = 42.into();
            let (of, by) = ((tx.as_str(), &WALLET, &seen), EndpointId(0));
            let info = info.to_string();
            let joined = source.joined_with_info(ID, of, (info.as_bytes(), by), &options()).await;
            assert!(matches!(joined, Ok(Fetched::Lost(9))), "{status}: {joined:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn internal_transactions_are_asked_for_where_an_inner_call_is_proven() {
        for (contract, inner, asked) in [(CALLED, false, 1), (CALLED, true, 3), (TOKEN, false, 3)] {
            let nodes = info_nodes(move |_, _| sale(contract, false));
            let source = fake::source(&HOSTS, &nodes, TronLimits::default());
            let seen = SeenTx { inner, ..listed(&["SUCCESS"]) };
            given(&source, &seen).await;
            assert_eq!(nodes.count("infobyid"), asked, "{contract}, {inner}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_answer_without_the_transaction_leaves_the_first_one() {
        for second in [json!({}), json!({"id": "00"}), info("REVERT")] {
            let nodes = info_nodes(
                move |asked, _| {
                    if asked == 0 { sale(TOKEN, false) } else { second.clone() }
                },
            );
            let source = fake::source(&HOSTS, &nodes, TronLimits::default());
            let tx = given(&source, &listed(&["SUCCESS"])).await;
            assert_eq!(tx.call.logs.len(), 1);
            assert!(nodes.count("infobyid") > 1);
        }
    }
}
