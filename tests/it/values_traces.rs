//! Native coin that only a trace shows, where the node that traces fails for a while: the rows wait,
//! and are filled in without a reader.

use std::collections::HashMap;
use std::future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::demo::evm::{EvmModel, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport};
use blotter::domain::{Position, Row, Side, TxId, Units, ValueSource, Wallet};
use blotter::history::{End, Extent, History, HistoryLimits, HistoryParts, Tasks};
use blotter::registry::{Chain, Registry};
use blotter::rpc::{
    EndpointConfig, Pool, PoolLimits, Request, Response, Transport, TransportError,
};
use blotter::sources::{Discovery, EvmLimits, EvmParts, EvmSource, Source};
use blotter::store::{Store, WantedPlace};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::support::script::Epoch;
use crate::support::trades::OPTIONS;
use crate::support::world::{self, finish};

/// What the node answers to a request for traces; `None`: as it should.
type Refusal = Option<(i64, &'static str)>;

/// A node that refuses traces until it recovers.
#[derive(Debug)]
struct Tracing {
    node: DemoTransport,
    refusal: Mutex<Refusal>,
}

/// States of old blocks are never there: balances would show most of what traces do.
const PRUNED: (i64, &str) = (-32000, "missing trie node 0x00 (path ) state is not available");

impl Tracing {
    fn refuses(&self, call: &Value) -> Option<Value> {
        let method = call["method"].as_str().unwrap_or_default();
        let refusal = match method {
            "eth_getBalance" | "eth_getTransactionCount" => Some(PRUNED),
            "debug_traceTransaction" | "trace_transaction" => *self.refusal.lock().unwrap(),
            _ => None,
        };
        let (code, message) = refusal?;
        let error = json!({"code": code, "message": message});
        Some(json!({"jsonrpc": "2.0", "id": call["id"], "error": error}))
    }
}

impl Transport for Tracing {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
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
    let node = Arc::new(Tracing { node, refusal: Mutex::new(refusal) });
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
    fn add(&self, trades: u64) -> Wallet {
        let address = self.model.add_named("traced", WalletPlan::trades(trades));
        Wallet { chain: self.chain.id, address }
    }

    async fn stream(&self, wallet: Wallet) -> (Vec<Row>, End) {
        let request = world::World::request(wallet, Extent::All);
        finish(&mut self.history.walk(request).unwrap()).await
    }

    /// What is stored, without a reader that could load anything.
    async fn stored(&self, wallet: Wallet) -> Vec<Row> {
        let view = self.store.view().unwrap();
        let record = view.wallet(&wallet).await.unwrap().unwrap();
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
        // Not tried again at once, so that a second look ends without it.
        (-32050, "this transaction cannot be traced"),
    ];
    for refusal in refusals {
        let world = world(Some(refusal));
        let wallet = world.add(60);
        let (rows, end) = world.stream(wallet).await;
        assert!(!end.complete, "{refusal:?}");
        let open = world.open(wallet, &rows, ValueSource::Pending);
        assert!(open >= 3, "{open} rows wait, {refusal:?}");
        assert!(world.waiting().await >= open / 2);
        // Refused again and again they wait on.
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(world.open(wallet, &world.stored(wallet).await, ValueSource::Pending), open);
        *world.node.refusal.lock().unwrap() = None;
        tokio::time::sleep(Duration::from_secs(900)).await;
        let rows = world.stored(wallet).await;
        assert_eq!(world.open(wallet, &rows, ValueSource::Pending), 0, "{refusal:?}");
        assert_eq!(world.waiting().await, 0);
        let (rows, end) = world.stream(wallet).await;
        assert!(end.complete, "{refusal:?}, {end:?}");
        assert_eq!(rows.len(), world.model.truth(wallet.address).count());
    }
}

/// A node without traces will not have them later: nothing waits.
#[tokio::test(start_paused = true)]
async fn a_node_without_traces_leaves_nothing_waiting() {
    let world = world(Some((-32601, "the method debug_traceTransaction does not exist")));
    let wallet = world.add(60);
    let (rows, end) = world.stream(wallet).await;
    assert!(end.complete, "{end:?}");
    assert!(world.open(wallet, &rows, ValueSource::Unknown) >= 3);
    assert_eq!(world.waiting().await, 0);
}
