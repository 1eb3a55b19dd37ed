//! Native coin that only a trace shows, while the tracing node fails: the rows wait, and are filled
//! in without a reader. Also how long a chunk waits for prices from a silent node.

use std::collections::HashMap;
use std::future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::decode::evm::DECODER_VERSION;
use blotter::demo::evm::{EvmModel, TradeKind, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport};
use blotter::domain::{Doubts, Position, Row, Side, TxId, Units, ValueSource, Wallet};
use blotter::history::{End, Extent, History, HistoryLimits, HistoryParts, Tasks};
use blotter::registry::{Chain, Registry};
use blotter::rpc::{
    EndpointConfig, Pool, PoolLimits, Request, Response, Transport, TransportError,
};
use blotter::sources::{Discovery, EvmLimits, EvmParts, EvmSource, Source};
use blotter::store::{Chunk, Store, WalletRecord, WantedPlace};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::script::Epoch;
use crate::support::trades::{OPTIONS, chunk};
use crate::support::world::{self, finish};

/// What the node answers to a request for traces; `None`: as it should.
type Refusal = Option<(i64, &'static str)>;

/// A node that refuses traces until it recovers.
#[derive(Debug)]
struct Tracing {
    node: DemoTransport,
    refusal: Mutex<Refusal>,
    /// Words of requests that are answered after so long.
    delays: Mutex<Vec<(&'static str, Duration)>>,
}

/// `token0()`, which the reference pools alone are asked for.
const TOKEN: &str = "0x0dfe1681";
const RECEIPT: &str = "eth_getTransactionReceipt";
/// `symbol()`, inside of one call for many.
const SYMBOL: &str = "95d89b41";
/// `Sync(uint112,uint112)`, by which their prices are looked for.
const SYNC: &str = "0x1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1";
/// No request waits for so long.
const NEVER: Duration = Duration::from_secs(3600);
/// States of old blocks are never there: balances would show most of what traces do.
const PRUNED: (i64, &str) = (-32000, "missing trie node 0x00 (path ) state is not available");
const NO_METHOD: (i64, &str) = (-32601, "the method does not exist");

impl Tracing {
    fn refuses(&self, call: &Value) -> Option<Value> {
        let method = call["method"].as_str().unwrap_or_default();
        let refusal = match method {
            "eth_getBalance" if *self.refusal.lock().unwrap() == Some(NO_METHOD) => Some(NO_METHOD),
            "eth_getBalance" | "eth_getTransactionCount" => Some(PRUNED),
            "debug_traceTransaction" | "trace_transaction" => *self.refusal.lock().unwrap(),
            _ => None,
        };
        let (code, message) = refusal?;
        let error = json!({"code": code, "message": message});
        Some(json!({"jsonrpc": "2.0", "id": call["id"], "error": error}))
    }

    /// How long a request waits before it is answered.
    fn delay(&self, request: &Request) -> Option<Duration> {
        let text = String::from_utf8_lossy(&request.body);
        let delays = self.delays.lock().unwrap();
        delays.iter().find(|(word, _)| text.contains(word)).map(|(_, delay)| *delay)
    }
}

impl Transport for Tracing {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        if let Some(delay) = self.delay(&request) {
            return Box::pin(async move {
                sleep(delay).await;
                self.node.send(request).await
            });
        }
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let Value::Array(calls) = asked else {
            let Some(refused) = self.refuses(&asked) else { return self.node.send(request) };
            return Box::pin(future::ready(Ok(response(&refused))));
        };
        let (refused, rest): (Vec<Value>, Vec<Value>) =
            calls.into_iter().partition(|call| self.refuses(call).is_some());
        if refused.is_empty() {
            return self.node.send(request);
        }
        let mut answers: Vec<Value> =
            refused.iter().filter_map(|call| self.refuses(call)).collect();
        Box::pin(async move {
            if !rest.is_empty() {
                let body = json!(rest).to_string().into();
                let given = self.node.send(Request { body, ..request }).await?;
                answers.extend(serde_json::from_slice::<Vec<Value>>(&given.body).unwrap());
            }
            Ok(response(&json!(answers)))
        })
    }
}

fn response(body: &Value) -> Response {
    Response { status: 200, retry_after: None, body: body.to_string().into() }
}

struct World {
    chain: Chain,
    model: EvmModel,
    node: Arc<Tracing>,
    store: Store,
    history: History,
}

fn world(refusal: Refusal) -> World {
    let registry = Arc::new(Registry::embedded().unwrap());
    let chain = registry.chain_named("eth").unwrap().clone();
    let model = EvmModel::new(11, &chain);
    let node = DemoNode::evm(model.clone(), 1);
    let node = DemoTransport::new([("demo.test/rpc".to_owned(), node)]);
    let (refusal, delays) = (Mutex::new(refusal), Mutex::default());
    let node = Arc::new(Tracing { node, refusal, delays });
    let transport: Arc<dyn Transport> = node.clone();
    let url = "https://demo.test/rpc".to_owned();
    let endpoint = EndpointConfig { batch: Some(50), ..EndpointConfig::new(url) };
    let source = Source::Evm(EvmSource::new(EvmParts {
        chain: chain.clone(),
        registry: Arc::clone(&registry),
        rpc: Pool::new(vec![endpoint], transport, PoolLimits::default(), Arc::new(Epoch), 7),
        explorer: None,
        portal: None,
        discovery: vec![Discovery::Logs],
        limits: EvmLimits::default(),
    }));
    let store = Store::in_step(redb::backends::InMemoryBackend::new(), OPTIONS).unwrap();
    let history = History::new(HistoryParts {
        store: store.clone(),
        registry,
        sources: HashMap::from([(chain.id, source)]),
        candles: None,
        clock: Arc::new(Epoch),
        limits: HistoryLimits::default(),
        tasks: Tasks::new(),
    });
    World { chain, model, node, store, history }
}

impl World {
    fn add(&self, plan: WalletPlan) -> Wallet {
        let address = self.model.add_named("traced", plan);
        Wallet { chain: self.chain.id, address }
    }

    async fn stream(&self, wallet: Wallet) -> (Vec<Row>, End) {
        let request = world::World::request(wallet, Extent::All);
        finish(&mut self.history.walk(request).unwrap()).await
    }

    async fn record(&self, wallet: Wallet) -> Arc<WalletRecord> {
        self.store.view().unwrap().wallet(&wallet).await.unwrap().unwrap()
    }

    /// As an older program left these rows, with a doubt that has all heights read again.
    async fn age(&self, wallet: Wallet, rows: &[Row]) {
        let record = self.record(wallet).await;
        for span in record.coverage.spans() {
            let inside = |row: &&Row| (span.low..=span.high).contains(&row.trade.key.height);
            let trades = rows.iter().filter(inside).map(|row| row.trade.clone()).collect();
            let aged = Chunk {
                epoch: record.epoch,
                decoder: span.decoder - 1,
                resume: span.resume.clone(),
                proof: span.proof.with(Doubts::UNCONFIRMED),
                ..chunk(record.id, span.low, span.high, trades)
            };
            self.store.write_chunk(aged).await.unwrap();
        }
    }

    /// What is stored, without a reader that could load anything.
    async fn stored(&self, wallet: Wallet) -> Vec<Row> {
        let (view, record) = (self.store.view().unwrap(), self.record(wallet).await);
        view.rows(record.id, Position::Start, 0, usize::MAX).await.unwrap().into_iter().collect()
    }

    async fn waiting(&self) -> usize {
        let view = self.store.view().unwrap();
        view.wanted_values(self.chain.id, &WantedPlace::default(), 10_000).await.unwrap().len()
    }

    /// How many rows have no native value although the model's have one; no other differs.
    fn open(&self, wallet: Wallet, rows: &[Row], valued: ValueSource) -> usize {
        let truth: HashMap<(TxId, Side, String), Option<Units>> = self
            .model
            .truth(wallet.address)
            .map(|row| ((row.hash, row.side, row.token.to_string()), row.native))
            .collect();
        let mut open = 0;
        for row in rows.iter().map(|row| &row.trade) {
            let expected = truth[&(row.key.tx, row.side, row.mint.to_string())];
            if row.native.is_some() {
                assert!(expected.is_none() || row.native == expected, "{row:?}, not {expected:?}");
            } else if expected.is_some() {
                assert_eq!(row.valued, valued, "{row:?}, not {expected:?}");
                open += 1;
            }
        }
        open
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_trace_leaves_its_rows_waiting_until_it_is_given() {
    let refusals = [
        (-32005, "rate limit exceeded"),
        (-32000, "execution timeout"),
        (-32603, "internal error"),
        // Of no table.
        (-32050, "this transaction cannot be traced"),
    ];
    for refusal in refusals {
        waits_until_traced(refusal, WalletPlan::trades(60)).await;
    }
}

/// A transaction that a lagging node cannot trace yet is not too old to be traced.
#[tokio::test(start_paused = true)]
async fn a_trace_that_is_not_found_near_the_head_leaves_its_rows_waiting() {
    let head = world(None).model.head();
    let plan = WalletPlan { first: Some(head - 3_000), last: Some(head), ..WalletPlan::trades(60) };
    for text in ["transaction not found", "header not found"] {
        waits_until_traced((-32000, text), plan).await;
    }
}

async fn waits_until_traced(refusal: (i64, &'static str), plan: WalletPlan) {
    let world = world(Some(refusal));
    let wallet = world.add(plan);
    let (rows, end) = world.stream(wallet).await;
    assert!(!end.complete, "{refusal:?}");
    let open = world.open(wallet, &rows, ValueSource::Pending);
    assert!(open >= 3, "{open} rows wait, {refusal:?}");
    assert!(world.waiting().await >= open / 2);
    // Refused again and again they wait on.
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.open(wallet, &world.stored(wallet).await, ValueSource::Pending), open);
    *world.node.refusal.lock().unwrap() = None;
    sleep(Duration::from_secs(900)).await;
    let rows = world.stored(wallet).await;
    assert_eq!(world.open(wallet, &rows, ValueSource::Pending), 0, "{refusal:?}");
    assert_eq!(world.waiting().await, 0);
    let (rows, end) = world.stream(wallet).await;
    assert!(end.complete, "{refusal:?}, {end:?}");
    assert_eq!(rows.len(), world.model.truth(wallet.address).count());
}

/// The second read of an upgrade comes when nodes have dropped the traces of the first.
#[tokio::test(start_paused = true)]
async fn what_a_trace_showed_stays_when_it_is_read_again_without_one() {
    let world = world(None);
    let wallet = world.add(WalletPlan::trades(60));
    let (_, end) = world.stream(wallet).await;
    assert!(end.complete, "{end:?}");
    let before = world.stored(wallet).await;
    assert_eq!(before.len(), world.model.truth(wallet.address).count());
    assert_eq!(world.open(wallet, &before, ValueSource::Unknown), 0);
    world.age(wallet, &before).await;
    *world.node.refusal.lock().unwrap() = Some(PRUNED);
    world.stream(wallet).await;
    sleep(Duration::from_secs(900)).await;
    let (_, end) = world.stream(wallet).await;
    assert!(end.complete, "{end:?}");
    let record = world.record(wallet).await;
    assert!(record.coverage.spans().iter().all(|span| span.decoder == DECODER_VERSION));
    let amounts = |rows: &[Row]| -> Vec<_> {
        let of = |row: &Row| (row.trade.key, row.trade.units, row.trade.native);
        rows.iter().map(of).collect()
    };
    assert_eq!(amounts(&world.stored(wallet).await), amounts(&before));
}

/// If no node ever showed inner calls, an older decoder saw no more than a newer one.
#[tokio::test(start_paused = true)]
async fn what_no_node_ever_showed_is_as_the_newer_decoder_has_it() {
    let world = world(Some(NO_METHOD));
    let wallet = world.add(WalletPlan::trades(60));
    let (before, end) = world.stream(wallet).await;
    assert!(end.complete, "{end:?}");
    assert!(world.open(wallet, &before, ValueSource::Unknown) >= 3);
    let mut wrong = before.clone();
    for row in wrong.iter_mut().filter(|row| row.trade.valued == ValueSource::Unknown) {
        (row.trade.native, row.trade.valued) = (Some(Units::from(77)), ValueSource::Direct);
    }
    world.age(wallet, &wrong).await;
    world.stream(wallet).await;
    sleep(Duration::from_secs(900)).await;
    let (_, end) = world.stream(wallet).await;
    assert!(end.complete, "{end:?}");
    let values = |rows: &[Row]| -> Vec<_> {
        rows.iter().map(|row| (row.trade.key, row.trade.native, row.trade.valued)).collect()
    };
    assert_eq!(values(&world.stored(wallet).await), values(&before));
}

/// A node without traces will not have them later: nothing waits.
#[tokio::test(start_paused = true)]
async fn a_node_without_traces_leaves_nothing_waiting() {
    let world = world(Some((-32601, "the method debug_traceTransaction does not exist")));
    let wallet = world.add(WalletPlan::trades(60));
    let (rows, end) = world.stream(wallet).await;
    assert!(end.complete, "{end:?}");
    assert!(world.open(wallet, &rows, ValueSource::Unknown) >= 3);
    assert_eq!(world.waiting().await, 0);
}

/// Time of a stream of trades that want a price, and how many rows wait for theirs then.
async fn priced(delays: &[(&'static str, Duration)]) -> (Duration, usize) {
    let world = world(None);
    *world.node.delays.lock().unwrap() = delays.to_vec();
    // One round of queries, whether chunks are delivered together or not: a round has 50.
    let plan = WalletPlan { only: Some(TradeKind::V3Dollar), ..WalletPlan::trades(40) };
    let wallet = world.add(plan);
    let began = Instant::now();
    let (rows, end) = world.stream(wallet).await;
    assert!(end.complete, "{end:?}");
    let waits = |row: &&Row| row.trade.valued == ValueSource::Pending;
    (began.elapsed(), rows.iter().filter(waits).count())
}

/// Three seconds in all, for what the reference pools are and for what they exchanged.
#[tokio::test(start_paused = true)]
async fn a_chunk_waits_once_for_prices_that_do_not_come() {
    let (plain, _) = priced(&[]).await;
    for quiet in [Duration::from_secs(2), NEVER] {
        let (held, pending) = priced(&[(TOKEN, quiet), (SYNC, NEVER)]).await;
        assert!(pending > 0, "{quiet:?}");
        assert!(held <= plain + Duration::from_secs(4), "{held:?}, {plain:?}, {quiet:?}");
    }
}

/// What the pools are is the same for all wallets: it is asked for next to the list.
#[tokio::test(start_paused = true)]
async fn what_the_reference_pools_are_is_asked_for_while_transactions_are() {
    const WAIT: Duration = Duration::from_secs(2);
    let (receipts, _) = priced(&[(RECEIPT, WAIT)]).await;
    let (both, pending) = priced(&[(TOKEN, WAIT), (RECEIPT, WAIT)]).await;
    assert_eq!((both, pending), (receipts, 0));
}

/// The two waits of the first chunk are one.
#[tokio::test(start_paused = true)]
async fn prices_are_asked_for_while_tokens_are() {
    const WAIT: Duration = Duration::from_secs(2);
    let (plain, _) = priced(&[]).await;
    let (tokens, _) = priced(&[(SYMBOL, WAIT)]).await;
    let (prices, _) = priced(&[(SYNC, WAIT)]).await;
    let (both, pending) = priced(&[(SYMBOL, WAIT), (SYNC, WAIT)]).await;
    assert_eq!(pending, 0);
    assert!(tokens >= plain + WAIT && prices >= plain + WAIT, "{tokens:?} {prices:?} {plain:?}");
    assert!(both + plain + WAIT <= tokens + prices, "{both:?} {tokens:?} {prices:?} {plain:?}");
}
