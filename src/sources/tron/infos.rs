//! Transaction infos, from several answers if one lacks a side or inner calls, which not all
//! endpoints keep.

use tokio::time::sleep;

use super::TronSource;
use super::fetch::Fetched;
use super::info_answers::{InfoAnswers, has_internal};
use super::seen::{SeenTx, SentTx};
use crate::decode::evm::{Account, NativeFlows, Word};
use crate::decode::tron::Transaction;
use crate::domain::{Doubts, Height, lock};
use crate::rpc::{CallOptions, EndpointId, Result};

/// Answers without a transaction, after which an endpoint counts as lacking it for now.
const LACKING_ANSWERS: u32 = 3;
/// Blocks by which the head of such an endpoint must be above the transaction, so that the endpoint
/// does not lack it because it is behind.
const LACKING_DEPTH: Height = 20;

impl TronSource {
    /// A transaction with its info. The info is queried again, on another endpoint if there is one,
    /// if it lacks a side of the wallet that the list shows; and on each endpoint that may return
    /// internal transactions, if inner calls are proven and it has none.
    pub(super) async fn with_info(
        &self,
        id: Word,
        sent: &SentTx,
        (wallet, seen): (&Account, &SeenTx),
        options: &CallOptions,
    ) -> Result<Fetched> {
        let mut answers =
            InfoAnswers::new((wallet, seen), sent.kind, self.inner.references.wrapped);
        let mut any = options.clone();
        while !answers.is_settled() {
            let (tx, by) = match self.confirmed_info(id, sent, (wallet, seen), &any).await? {
                (Fetched::Transaction(tx), by) => (tx, by),
                (fetched, _) => return Ok(fetched),
            };
            self.add_info(&mut answers, tx, by);
            any.avoid = Some(by);
        }
        // Servers behind one address differ too: the endpoint of the last answer is queried again,
        // after the others.
        let mut givers = self.internal_givers();
        givers.sort_by_key(|id| Some(*id) == any.avoid);
        for on in givers {
            if !answers.lacks_calls() {
                break;
            }
            self.ask_giver(on, &mut answers, (id, sent, (wallet, seen)), options).await;
        }
        // Where such answers are the exception, they are false.
        let is_kept = |block| lock(&self.inner.internal_givers).keep(block);
        answers.is_refused |= answers.block().is_some_and(is_kept);
        Ok(answers.into_best().map_or(Fetched::Missing, Fetched::Transaction))
    }

    /// Adds answers of one endpoint until one has inner calls.
    async fn ask_giver(
        &self,
        on: EndpointId,
        answers: &mut InfoAnswers<'_>,
        (id, sent, of): (Word, &SentTx, (&Account, &SeenTx)),
        options: &CallOptions,
    ) {
        let block = answers.block().unwrap_or_default();
        let most = lock(&self.inner.internal_givers).more_answers(on, block);
        for _ in 0..most {
            match self.info_on(id, sent, of, &options.first_on(on)).await {
                Ok(Some(tx)) => self.add_info(answers, tx, on),
                // An endpoint that fails may have inner calls. One that has returned none for long
                // counts as having none.
                lacking => {
                    answers.is_refused = true;
                    let has_none = match lacking {
                        Err(error) => error.is_final(),
                        Ok(_) => self.is_far_above(on, answers.block(), options).await,
                    };
                    if has_none {
                        lock(&self.inner.internal_givers).note(on, None, &self.inner.limits);
                    }
                    return;
                }
            }
            if !answers.lacks_calls() {
                return;
            }
        }
        lock(&self.inner.internal_givers).note_bare(on, block);
    }

    pub(super) fn add_info(
        &self,
        answers: &mut InfoAnswers<'_>,
        tx: Box<Transaction>,
        by: EndpointId,
    ) {
        if has_internal(&tx) || answers.is_inner_call_proven(&tx) {
            let mut givers = lock(&self.inner.internal_givers);
            let given = has_internal(&tx).then_some(tx.call.block);
            givers.note(by, given, &self.inner.limits);
        }
        answers.add(tx);
    }

    /// One endpoint's answer about a transaction that another endpoint returned; `None` if it lacks
    /// the transaction.
    async fn info_on(
        &self,
        id: Word,
        sent: &SentTx,
        of: (&Account, &SeenTx),
        options: &CallOptions,
    ) -> Result<Option<Box<Transaction>>> {
        for tries in 1..=LACKING_ANSWERS {
            match self.confirmed_info(id, sent, of, options).await?.0 {
                Fetched::Transaction(tx) => return Ok(Some(tx)),
                Fetched::Missing if tries < LACKING_ANSWERS => {
                    sleep(self.inner.limits.missing_pause * tries).await;
                }
                Fetched::Missing | Fetched::Failed(_) | Fetched::Unwanted | Fetched::Lost(_) => {
                    break;
                }
            }
        }
        Ok(None)
    }

    async fn is_far_above(
        &self,
        id: EndpointId,
        block: Option<Height>,
        options: &CallOptions,
    ) -> bool {
        let head = self.solid_head(&options.first_on(id)).await;
        let is_above = |block: Height| head.is_ok_and(|head| head.height >= block + LACKING_DEPTH);
        block.is_some_and(is_above)
    }

    pub(super) fn internal_givers(&self) -> Vec<EndpointId> {
        let (mut ids, givers) = (self.inner.pool.ids(), lock(&self.inner.internal_givers));
        ids.retain(|id| givers.may_give(*id, &self.inner.limits));
        ids
    }

    /// The doubts about inner calls of these transactions: without its payment, a sale for TRX is
    /// not recognized.
    pub(super) fn doubts_of_calls(&self, txs: &[Transaction]) -> Doubts {
        let are_any = |native| txs.iter().any(|tx| tx.call.native == native);
        let has_givers = lock(&self.inner.internal_givers).has_any();
        match (are_any(NativeFlows::Refused), are_any(NativeFlows::Gone) && !has_givers) {
            (false, false) => Doubts::NONE,
            (true, false) => Doubts::UNCONFIRMED,
            (false, true) => Doubts::INNER_CALLS,
            (true, true) => Doubts::UNCONFIRMED.union(Doubts::INNER_CALLS),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::Duration;

    use serde_json::json;

    use super::super::TronLimits;
    use super::super::fake::{self, ScriptedNodes, options};
    use super::super::fetch::tests::{
        HOSTS, ID, POOL, TOKEN, WALLET, given, info_nodes, listed, sale, transfer,
    };
    use super::*;
    use crate::decode::evm::WITHDRAWAL;

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_gives_no_internal_transactions_by_answers_over_time() {
        // The first answer, and one more from each endpoint, for three transactions.
        for (hosts, asked_for_three, asked_for_four) in [(&HOSTS[..1], 6, 7), (&HOSTS[..], 9, 11)] {
            let nodes = info_nodes(|_, _| sale(TOKEN, false));
            let source = fake::source(hosts, &nodes, TronLimits::default());
            for _ in 0..3 {
                let tx = given(&source, &listed(&["SUCCESS"])).await;
                assert_eq!(tx.call.native, NativeFlows::Gone);
                assert_eq!(source.doubts_of_calls(&[tx]), Doubts::INNER_CALLS);
                sleep(Duration::from_secs(5)).await;
            }
            assert_eq!(nodes.count("infobyid"), asked_for_three);
            assert_eq!(source.blind_spots(), Doubts::NONE);
            for more in 0..3 {
                given(&source, &listed(&["SUCCESS"])).await;
                assert_eq!(nodes.count("infobyid"), asked_for_four + more);
            }
            assert_eq!(source.blind_spots(), Doubts::INNER_CALLS);
        }
    }

    /// Of the servers behind one address, three of four keep no internal transactions.
    #[tokio::test(start_paused = true)]
    async fn internal_transactions_of_one_server_of_four_are_found() {
        let asked = AtomicU64::new(0);
        let nodes = info_nodes(move |_, _| {
            sale(TOKEN, asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(4))
        });
        let source = fake::source(&HOSTS[..1], &nodes, TronLimits::default());
        for _ in 0..4 {
            assert!(has_internal(&given(&source, &listed(&["SUCCESS"])).await));
        }
    }

    /// A node that keeps them since some block has none below: two answers each are enough there.
    #[tokio::test(start_paused = true)]
    async fn an_endpoint_without_older_internal_transactions_is_not_asked_for_ever() {
        let asked = AtomicU64::new(0);
        let nodes = info_nodes(move |_, _| sale(TOKEN, asked.fetch_add(1, Ordering::Relaxed) == 0));
        let source = fake::source(&HOSTS[..1], &nodes, TronLimits::default());
        for _ in 0..13 {
            given(&source, &listed(&["SUCCESS"])).await;
        }
        // One with them, eight of eight answers, four of two.
        assert_eq!(nodes.count("infobyid"), 1 + 8 * 8 + 4 * 2);
    }

    /// WTRX pays out by an inner call what it changes back.
    #[tokio::test(start_paused = true)]
    async fn inner_calls_without_the_payment_that_an_event_names_are_not_believed() {
        const WTRX: &str = "41891cdb91d149f23b1a45d9c5ca78a88d0cb44c18";
        for (amount, expected) in [(5, NativeFlows::Gone), (0, NativeFlows::Calls(Vec::new()))] {
            let nodes = info_nodes(move |_, _| {
                let mut bare = sale(TOKEN, false);
                bare["internal_transactions"] = json!([]);
                let topics = [hex::encode(WITHDRAWAL), format!("{:0>64}", "dd".repeat(20))];
                let data = format!("{amount:064x}");
                let log = json!({"address": WTRX, "topics": topics, "data": data});
                bare["log"].as_array_mut().unwrap().push(log);
                bare
            });
            let source = fake::source(&HOSTS[..1], &nodes, TronLimits::default());
            assert_eq!(
                given(&source, &listed(&["SUCCESS"])).await.call.native,
                expected,
                "{amount}"
            );
        }
    }

    /// Each contract with an event was called.
    #[tokio::test(start_paused = true)]
    async fn inner_calls_that_lack_one_of_a_contract_with_an_event_are_not_believed() {
        for (cut, is_known) in [(0, true), (1, true), (99, false)] {
            let asked = AtomicU64::new(0);
            let nodes = info_nodes(move |_, _| {
                let mut sale = sale(TOKEN, true);
                sale["log"][0]["address"] = TOKEN[2..].into();
                let mut call = sale["internal_transactions"][0].clone();
                call["transferTo_address"] = TOKEN.into();
                if asked.fetch_add(1, Ordering::Relaxed) >= cut {
                    sale["internal_transactions"].as_array_mut().unwrap().push(call);
                }
                sale
            });
            let source = fake::source(&HOSTS[..1], &nodes, TronLimits::default());
            let tx = given(&source, &listed(&["SUCCESS"])).await;
            assert_eq!(has_internal(&tx), is_known, "{cut}");
        }
    }

    /// The payment comes behind the last contract with an event.
    #[tokio::test(start_paused = true)]
    async fn inner_calls_that_lack_the_payment_are_asked_for_again() {
        for (cut, asked, is_paid) in [(0, 1, true), (1, 2, true), (2, 3, true), (3, 3, false)] {
            let nodes = info_nodes(move |at, _| {
                let mut sale = sale(TOKEN, true);
                let inner = sale["internal_transactions"].as_array_mut().unwrap();
                let mut call = inner[0].clone();
                call["transferTo_address"] = TOKEN.into();
                inner.insert(0, call);
                inner.truncate(if at < cut { 1 } else { 2 });
                sale
            });
            let source = fake::source(&HOSTS[..1], &nodes, TronLimits::default());
            let NativeFlows::Calls(moves) = given(&source, &listed(&["SUCCESS"])).await.call.native
            else {
                panic!("{cut}")
            };
            assert_eq!(moves.iter().any(|one| one.to == WALLET), is_paid, "{cut}");
            assert_eq!(nodes.count("infobyid"), asked, "{cut}");
        }
        // Tokens came, by an inner call that the list shows.
        let nodes = info_nodes(|_, _| {
            let mut swap = sale(TOKEN, true);
            swap["log"].as_array_mut().unwrap().push(transfer(TOKEN, POOL, WALLET));
            swap["internal_transactions"][0]["transferTo_address"] = TOKEN.into();
            swap
        });
        let source = fake::source(&HOSTS[..1], &nodes, TronLimits::default());
        for (inner, asked) in [(false, 1), (true, 4)] {
            given(&source, &SeenTx { inner, ..listed(&["SUCCESS"]) }).await;
            assert_eq!(nodes.count("infobyid"), asked);
        }
    }

    /// A failed query stays a doubt, however often another endpoint has answered without inner
    /// calls.
    #[tokio::test(start_paused = true)]
    async fn internal_transactions_that_an_endpoint_fails_to_give_are_waited_for() {
        let limited = json!({"Error": "the query server is suspended for 5s"});
        for (status, body) in [(403, limited), (429, json!({})), (503, json!({}))] {
            let fails = Arc::new(AtomicBool::new(true));
            let refuses = Arc::clone(&fails);
            let nodes = ScriptedNodes::new(move |(host, path, _)| match path {
                _ if host == "other" && refuses.load(Ordering::Relaxed) => (status, body.clone()),
                "walletsolidity/gettransactioninfobyid" => (200, sale(TOKEN, host == "other")),
                _ => (404, json!({"error": "not found"})),
            });
            let source = fake::source(&HOSTS, &nodes, TronLimits::default());
            for _ in 0..10 {
                let tx = given(&source, &listed(&["SUCCESS"])).await;
                assert_eq!(tx.call.native, NativeFlows::Refused, "{status}");
                assert_eq!(source.doubts_of_calls(&[tx]), Doubts::UNCONFIRMED, "{status}");
                sleep(Duration::from_secs(3)).await;
            }
            fails.store(false, Ordering::Relaxed);
            sleep(Duration::from_secs(600)).await;
            let tx = given(&source, &listed(&["SUCCESS"])).await;
            assert!(has_internal(&tx), "{status}");
            assert_eq!(source.doubts_of_calls(&[tx]), Doubts::NONE);
            assert_eq!(source.blind_spots(), Doubts::NONE);
        }
    }

    /// After a failure the pool queries another endpoint, whose answer does not count for the
    /// failed one.
    #[tokio::test(start_paused = true)]
    async fn one_failure_costs_no_internal_transactions() {
        for status in [429, 503] {
            let asked = AtomicU64::new(0);
            let nodes = ScriptedNodes::new(move |(host, path, _)| match path {
                "walletsolidity/gettransactioninfobyid" if host == "other" => {
                    let is_first = asked.fetch_add(1, Ordering::Relaxed) == 0;
                    if is_first { (status, json!({})) } else { (200, sale(TOKEN, true)) }
                }
                "walletsolidity/gettransactioninfobyid" => (200, sale(TOKEN, false)),
                _ => (404, json!({"error": "not found"})),
            });
            let source = fake::source(&HOSTS, &nodes, TronLimits::default());
            assert!(has_internal(&given(&source, &listed(&["SUCCESS"])).await), "{status}");
        }
    }

    /// An endpoint that lags has the info later; one that keeps no such blocks, and whose head is
    /// far above them, is recognized over time.
    #[tokio::test(start_paused = true)]
    async fn an_endpoint_without_the_transaction_may_be_behind() {
        // The transaction is of block 9.
        for (head, last) in [(28, NativeFlows::Refused), (29, NativeFlows::Gone)] {
            let nodes = ScriptedNodes::new(move |(host, path, _)| match path {
                "walletsolidity/gettransactioninfobyid" if host == "other" => (200, json!({})),
                "walletsolidity/gettransactioninfobyid" => (200, sale(TOKEN, false)),
                "walletsolidity/getnowblock" if host == "other" => (200, fake::block(head, 90_000)),
                "walletsolidity/getnowblock" => (200, fake::block(1_000, 3_000_000)),
                _ => (404, json!({"error": "not found"})),
            });
            let source = fake::source(&HOSTS, &nodes, TronLimits::default());
            let mut shown = Vec::new();
            for _ in 0..20 {
                let seen = listed(&["SUCCESS"]);
                let fetched = source.fetch(ID, &WALLET, seen, false, &options()).await.unwrap();
                if let Fetched::Transaction(tx) = fetched {
                    shown.push(tx.call.native);
                }
                sleep(Duration::from_secs(3)).await;
            }
            assert_eq!(shown.first(), Some(&NativeFlows::Refused), "{head}");
            assert_eq!(shown.last(), Some(&last), "{head}");
        }
    }
}
