//! Native prices from reference pools of the demo EVM chains, compared with trades whose native
//! side is known: it is hidden, computed from the price, and compared.

#![expect(clippy::print_stderr, reason = "shows how far estimates are off")]

use std::future;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::demo::evm::{
    EvmModel, LimitTexts, NodeOptions, PortalOptions, TradeKind, TrueTrade, WalletPlan,
};
use blotter::demo::{DemoNode, DemoTransport, Faults, Rate};
use blotter::domain::{Moment, Price, Units};
use blotter::registry::{Chain, Registry};
use blotter::rpc::{
    EndpointConfig, Pool, PoolLimits, Request, Response, Transport, TransportError,
};
use blotter::sources::{Discovery, EvmLimits, EvmParts, EvmSource, Source};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::support::prices::Errors;
use super::support::reading::lane;
use super::support::script::Epoch;

/// The chains whose demo has reference pools.
const CHAINS: [&str; 6] = ["eth", "base", "bsc", "hyperevm", "monad", "robinhood"];

/// Trades per chain.
const TRADES: u64 = 300;

struct World {
    registry: Arc<Registry>,
    chain: Chain,
    model: EvmModel,
    rpc: DemoNode,
    portal: DemoNode,
}

fn world(slug: &str) -> World {
    let registry = Arc::new(Registry::embedded().unwrap());
    let chain = registry.chain_named(slug).unwrap().clone();
    let model = EvmModel::new(11, &chain);
    let rpc = DemoNode::evm(model.clone(), 1);
    let portal = DemoNode::portal(model.clone(), 3);
    World { registry, chain, model, rpc, portal }
}

impl World {
    fn source(&self, with_portal: bool) -> Source {
        let mounts = [("demo.test/rpc", &self.rpc), ("demo.test/portal", &self.portal)];
        let mounts = mounts.map(|(name, node)| (name.to_owned(), node.clone()));
        self.source_by(Arc::new(DemoTransport::new(mounts)), with_portal)
    }

    fn source_by(&self, transport: Arc<dyn Transport>, with_portal: bool) -> Source {
        self.source_of(transport, &["rpc"], with_portal)
    }

    fn source_of(
        &self,
        transport: Arc<dyn Transport>,
        nodes: &[&str],
        with_portal: bool,
    ) -> Source {
        let pool = |paths: &[&str]| {
            let endpoint = |path: &&str| EndpointConfig {
                batch: Some(50),
                ..EndpointConfig::new(format!("https://demo.test/{path}"))
            };
            let endpoints = paths.iter().map(endpoint).collect();
            let (transport, limits) = (Arc::clone(&transport), PoolLimits::default());
            Pool::new(endpoints, transport, limits, Arc::new(Epoch), 7)
        };
        Source::Evm(EvmSource::new(EvmParts {
            chain: self.chain.clone(),
            registry: Arc::clone(&self.registry),
            rpc: pool(nodes),
            explorer: None,
            portal: with_portal.then(|| pool(&["portal"])),
            discovery: vec![Discovery::Logs],
            limits: EvmLimits::default(),
        }))
    }

    /// What the wallet's routes exchanged for dollars: base units, and the native coin they passed
    /// through, or what it was worth where they passed through none.
    fn dollar_sides(&self, kind: TradeKind, trades: u64) -> Vec<(Moment, Units, Units)> {
        let plan = WalletPlan { only: Some(kind), ..WalletPlan::trades(trades) };
        let wallet = self.model.add_named("dollars", plan);
        let dollar = self.chain.stablecoins[0];
        let rows = self.model.truth(wallet).filter(|row| row.token == dollar);
        rows.map(|row: TrueTrade| {
            let moment = Moment { height: row.height, time: row.time };
            let worth = row
                .native
                .unwrap_or_else(|| self.native(row.units, self.model.price_at(row.height)));
            (moment, row.units, worth)
        })
        .collect()
    }

    fn native(&self, dollars: Units, price: Price) -> Units {
        let decimals = if self.chain.slug == "bsc" { 18 } else { 6 };
        let power = |digits: u32| Units::from(10).pow(Units::from(digits));
        dollars * power(30) / power(decimals) / Units::from(price.0)
    }

    async fn errors(&self, source: &Source, kind: TradeKind, trades: u64) -> Errors {
        let sides = self.dollar_sides(kind, trades);
        assert!(sides.len() > 100, "{} of {kind:?}", sides.len());
        let mut errors = Errors::default();
        for chunk in sides.chunks(100) {
            let at: Vec<Moment> = chunk.iter().map(|side| side.0).collect();
            let prices = source.native_prices(&at, &lane()).await.unwrap();
            for ((_, dollars, truth), price) in chunk.iter().zip(prices) {
                errors.add(price.map(|price| self.native(*dollars, price)), *truth);
            }
        }
        errors
    }
}

#[tokio::test(start_paused = true)]
async fn trades_for_dollars_are_worth_what_their_routes_passed_through() {
    for slug in CHAINS {
        let world = world(slug);
        let source = world.source(false);
        let kind = if slug == "hyperevm" || slug == "monad" {
            TradeKind::V3Dollar
        } else {
            TradeKind::V2Hop
        };
        let errors = world.errors(&source, kind, TRADES).await;
        let before: u64 = calls(&source);
        eprintln!("reference pools, {slug}: {errors}, {before} calls");
        errors.check(1, 0);
        // One range a trade, and the pools' tokens once: what no route passed through.
        assert!(before <= 2 * TRADES + 20, "{before} calls");
    }
}

fn calls(source: &Source) -> u64 {
    source.endpoints().iter().flat_map(|one| one.calls.values()).map(|n| n.sent).sum()
}

/// One by one, all at once, from nodes with small ranges, from a gateway: prices are the same.
#[tokio::test(start_paused = true)]
async fn a_price_depends_on_its_height_alone() {
    let world = world("base");
    let mut at: Vec<Moment> =
        world.dollar_sides(TradeKind::V3Dollar, 120).into_iter().map(|side| side.0).collect();
    // Some in the same window, and at the head.
    let one = at[7];
    at.extend((0..20).map(|n| Moment { height: one.height + n * 3, ..one }));
    at.push(Moment { height: world.model.head(), time: world.model.time_of(world.model.head()) });
    let together = world.source(false).native_prices(&at, &lane()).await.unwrap();
    assert!(together.iter().all(Option::is_some));
    let source = world.source(false);
    for (moment, expected) in at.iter().zip(&together).step_by(5) {
        let alone = source.native_prices(&[*moment], &lane()).await.unwrap();
        assert_eq!(alone, [*expected]);
    }
    for texts in [LimitTexts::Alchemy, LimitTexts::PublicNode, LimitTexts::Curt] {
        world.rpc.set_options(NodeOptions {
            log_blocks_max: Some(5),
            texts,
            ..NodeOptions::default()
        });
        let narrow = world.source(false).native_prices(&at, &lane()).await.unwrap();
        assert_eq!(narrow, together, "{texts:?}");
    }
    world.rpc.set_options(NodeOptions { logs: false, ..NodeOptions::default() });
    world.portal.set_options(PortalOptions { transactions_max: 7, ..PortalOptions::default() });
    let gateway = world.source(true).native_prices(&at, &lane()).await.unwrap();
    assert_eq!(gateway, together, "by the gateway");
    // If nodes cannot answer, the price is unknown, not zero.
    let refused = world.source(false).native_prices(&at, &lane()).await.unwrap_err();
    assert!(refused.is_final(), "{refused}");
    world.model.advance(5_000);
    world.rpc.set_options(NodeOptions::default());
    let later = world.source(false).native_prices(&at, &lane()).await.unwrap();
    assert_eq!(later, together, "what comes later changes nothing");
}

#[tokio::test(start_paused = true)]
async fn without_any_source_there_is_no_price() {
    let mut world = world("base");
    let old = Moment { height: 1_000, time: world.model.time_of(1_000) };
    world.chain.reference_pools.clear();
    let source = world.source(false);
    assert_eq!(source.native_prices(&[old], &lane()).await.unwrap(), [None]);
    assert_eq!(calls(&source), 0);
    // Contracts of another kind than the row says are not used as reference pools.
    world.chain.reference_pools = world.chain.stablecoins.clone();
    assert_eq!(world.source(false).native_prices(&[old], &lane()).await.unwrap(), [None]);
}

/// Answers calls of contracts with an `error`, or a `result` of its own, for a while.
#[derive(Debug)]
struct Refusing {
    node: DemoTransport,
    says: Mutex<Option<(&'static str, Value)>>,
    /// Which of the requests for calls it answers so.
    spoilt: Range<usize>,
    asked: AtomicUsize,
}

impl Refusing {
    fn new(world: &World, says: (&'static str, Value)) -> Arc<Self> {
        let node = DemoTransport::new([("demo.test/rpc".to_owned(), world.rpc.clone())]);
        let (says, asked) = (Mutex::new(Some(says)), AtomicUsize::new(0));
        Arc::new(Self { node, says, spoilt: 0..usize::MAX, asked })
    }

    /// Contracts return nothing in one request, whichever it is.
    fn once(world: &World, at: usize) -> Arc<Self> {
        let whole = Arc::into_inner(Self::new(world, ("result", json!("0x")))).unwrap();
        Arc::new(Self { spoilt: at..at + 1, ..whole })
    }

    fn recover(&self) {
        *self.says.lock().unwrap() = None;
    }
}

impl Transport for Refusing {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let answer = |call: &Value, (field, value): &(&str, Value)| json!({"jsonrpc": "2.0", "id": call["id"], *field: value});
        let is_call = |call: &Value| call["method"] == "eth_call";
        let all = asked.as_array().map_or(std::slice::from_ref(&asked), Vec::as_slice);
        if all.iter().any(is_call) {
            let number = self.asked.fetch_add(1, Ordering::Relaxed);
            if !self.spoilt.contains(&number) {
                return self.node.send(request);
            }
        }
        let body = match (&*self.says.lock().unwrap(), &asked) {
            (Some(says), Value::Array(calls)) if calls.iter().any(is_call) => {
                Value::Array(calls.iter().map(|call| answer(call, says)).collect())
            }
            (Some(says), call) if is_call(call) => answer(call, says),
            _ => return self.node.send(request),
        };
        let body = body.to_string().into();
        Box::pin(future::ready(Ok(Response { status: 200, retry_after: None, body })))
    }
}

/// A node whose first answer to each search for events shows none.
#[derive(Debug)]
struct EmptyFirst {
    node: DemoTransport,
    searched: Mutex<Vec<Value>>,
    /// Later answers are errors.
    refuses: bool,
}

impl EmptyFirst {
    fn new(world: &World, refuses: bool) -> Arc<Self> {
        let node = DemoTransport::new([("demo.test/rpc".to_owned(), world.rpc.clone())]);
        Arc::new(Self { node, searched: Mutex::default(), refuses })
    }

    fn is_first(&self, call: &Value) -> bool {
        let mut searched = self.searched.lock().unwrap();
        let is_first = !searched.contains(&call["params"]);
        searched.push(call["params"].clone());
        is_first
    }
}

impl Transport for EmptyFirst {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let all = asked.as_array().map_or(std::slice::from_ref(&asked), Vec::as_slice);
        let mut replaced: Vec<(Value, &str, Value)> = Vec::new();
        for call in all.iter().filter(|call| call["method"] == "eth_getLogs") {
            match (self.is_first(call), self.refuses) {
                (true, _) => replaced.push((call["id"].clone(), "result", json!([]))),
                (false, true) => {
                    let error = json!({"code": -32000, "message": "try again later"});
                    replaced.push((call["id"].clone(), "error", error));
                }
                (false, false) => {}
            }
        }
        Box::pin(async move {
            let mut response = self.node.send(request).await?;
            replace_answers(&mut response, |answer| {
                if let Some((id, field, value)) = replaced.iter().find(|one| one.0 == answer["id"])
                {
                    *answer = json!({"jsonrpc": "2.0", "id": id, *field: value});
                }
            });
            Ok(response)
        })
    }
}

/// Changes the answers of a request, one or many.
fn replace_answers(response: &mut Response, mut replace: impl FnMut(&mut Value)) {
    let mut body: Value = serde_json::from_slice(&response.body).unwrap();
    match body.as_array_mut() {
        Some(answers) => answers.iter_mut().for_each(replace),
        None => replace(&mut body),
    }
    response.body = body.to_string().into();
}

/// A range counts as empty after two answers, never after one.
#[tokio::test(start_paused = true)]
async fn one_answer_without_events_is_asked_again_and_none_where_the_next_ones_fail() {
    let world = world("eth");
    let sides = world.dollar_sides(TradeKind::V2Hop, 20);
    let at: Vec<Moment> = sides.into_iter().map(|side| side.0).collect();
    let expected = world.source(false).native_prices(&at, &lane()).await.unwrap();
    assert!(expected.iter().all(Option::is_some));
    let source = world.source_by(EmptyFirst::new(&world, false), false);
    assert_eq!(source.native_prices(&at, &lane()).await.unwrap(), expected);
    let source = world.source_by(EmptyFirst::new(&world, true), false);
    let shown = source.native_prices(&at, &lane()).await;
    assert!(shown.is_err(), "{shown:?}");
}

/// A good node that may be busy, a gateway, and a node that lacks old blocks and their events.
#[derive(Debug)]
struct Pruned {
    node: DemoTransport,
    from: u64,
    is_busy: AtomicBool,
}

impl Pruned {
    fn new(world: &World, from: u64) -> Arc<Self> {
        let mounts = [("rpc", &world.rpc), ("old", &world.rpc), ("portal", &world.portal)];
        let mounts = mounts.map(|(name, node)| (format!("demo.test/{name}"), node.clone()));
        Arc::new(Self { node: DemoTransport::new(mounts), from, is_busy: AtomicBool::new(false) })
    }

    /// What it answers in place of the node.
    fn lacks(&self, call: &Value) -> Option<Value> {
        let (at, lacking) = match call["method"].as_str()? {
            "eth_getLogs" => (&call["params"][0]["fromBlock"], json!([])),
            "eth_getBlockByNumber" => (&call["params"][0], Value::Null),
            _ => return None,
        };
        let height = u64::from_str_radix(at.as_str()?.strip_prefix("0x")?, 16).ok()?;
        (height < self.from).then(|| json!({"jsonrpc": "2.0", "id": call["id"], "result": lacking}))
    }
}

impl Transport for Pruned {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let url = request.url.expose().to_owned();
        if url.ends_with("rpc") && self.is_busy.load(Ordering::Relaxed) {
            let busy = Response { status: 429, retry_after: None, body: "".into() };
            return Box::pin(future::ready(Ok(busy)));
        }
        let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        Box::pin(async move {
            let mut response = self.node.send(request).await?;
            if !url.ends_with("old") {
                return Ok(response);
            }
            let all = asked.as_array().map_or(std::slice::from_ref(&asked), Vec::as_slice);
            let lacking: Vec<Value> = all.iter().filter_map(|call| self.lacks(call)).collect();
            replace_answers(&mut response, |answer| {
                if let Some(lacks) = lacking.iter().find(|one| one["id"] == answer["id"]) {
                    *answer = lacks.clone();
                }
            });
            Ok(response)
        })
    }
}

/// Two empty answers of a node that does not keep such old blocks prove nothing: the gateway is
/// asked, or the busy node later.
#[tokio::test(start_paused = true)]
async fn a_node_without_old_blocks_shows_no_lack_of_events() {
    let world = world("eth");
    let sides = world.dollar_sides(TradeKind::V2Hop, 20);
    let at: Vec<Moment> = sides.into_iter().map(|side| side.0).collect();
    let expected = world.source(false).native_prices(&at, &lane()).await.unwrap();
    assert!(expected.iter().all(Option::is_some));
    let middle = at[at.len() / 2].height;
    for from in [middle, u64::MAX] {
        let transport = Pruned::new(&world, from);
        let source = world.source_of(transport.clone(), &["old"], true);
        assert_eq!(source.native_prices(&at, &lane()).await.unwrap(), expected, "by the gateway");
        // What no source has is no reason to lose the others.
        let alone = world.source_of(transport.clone(), &["old"], false);
        let shown = alone.native_prices(&at, &lane()).await.unwrap();
        let is_kept = |moment: &Moment| moment.height > middle + 100 && from == middle;
        for ((moment, price), expected) in at.iter().zip(shown).zip(&expected) {
            assert!(price.is_none() || price == *expected);
            assert!(price.is_some() || !is_kept(moment), "{moment:?}");
        }
        transport.is_busy.store(true, Ordering::Relaxed);
        let both = world.source_of(transport.clone(), &["rpc", "old"], false);
        let shown = both.native_prices(&at, &lane()).await;
        assert!(shown.as_ref().is_err_and(|error| !error.is_final()), "{shown:?}");
        transport.is_busy.store(false, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(both.native_prices(&at, &lane()).await.unwrap(), expected);
    }
}

/// A failed call says nothing about a pool, and is repeated.
#[tokio::test(start_paused = true)]
async fn an_error_is_not_taken_for_what_a_pool_exchanges() {
    let world = world("eth");
    let sides = world.dollar_sides(TradeKind::V2Hop, 20);
    let at: Vec<Moment> = sides.into_iter().map(|side| side.0).collect();
    let expected = world.source(false).native_prices(&at, &lane()).await.unwrap();
    for (code, message) in
        [(-32602, "invalid argument 0"), (-32000, "daily quota"), (-32603, "internal error")]
    {
        let says = ("error", json!({"code": code, "message": message}));
        let transport = Refusing::new(&world, says);
        let source = world.source_by(transport.clone(), false);
        let shown = source.native_prices(&at, &lane()).await;
        assert!(shown.is_err(), "{message}: {shown:?}");
        transport.recover();
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        let shown = source.native_prices(&at, &lane()).await.unwrap();
        assert_eq!(shown, expected, "{message}");
    }
}

/// A row that is stored without a value for this reason would never get one.
#[tokio::test(start_paused = true)]
async fn one_answer_that_knows_nothing_of_pools_or_coins_is_asked_again_at_once() {
    let world = world("eth");
    let sides = world.dollar_sides(TradeKind::V2Hop, 20);
    let at: Vec<Moment> = sides.into_iter().map(|side| side.0).collect();
    let expected = world.source(false).native_prices(&at, &lane()).await.unwrap();
    for request in 0..2 {
        let source = world.source_by(Refusing::once(&world, request), false);
        assert_eq!(source.native_prices(&at, &lane()).await.unwrap(), expected, "{request}");
    }
}

/// A node that has not reached a pool's creation, or answers nonsense, knows no contract there: the
/// pool is skipped and requested again after a while, not earlier.
#[tokio::test(start_paused = true)]
async fn a_pool_that_no_node_knew_is_asked_for_again() {
    let world = world("eth");
    let sides = world.dollar_sides(TradeKind::V2Hop, 20);
    let at: Vec<Moment> = sides.into_iter().map(|side| side.0).collect();
    let expected = world.source(false).native_prices(&at, &lane()).await.unwrap();
    assert!(expected.iter().all(Option::is_some));
    let transport = Refusing::new(&world, ("result", json!("0x")));
    let source = world.source_by(transport.clone(), false);
    let unknown = vec![None; at.len()];
    assert_eq!(source.native_prices(&at, &lane()).await.unwrap(), unknown);
    let asked = calls(&source);
    transport.recover();
    for _ in 0..9 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(source.native_prices(&at, &lane()).await.unwrap(), unknown);
    }
    assert_eq!(calls(&source), asked, "not at each look");
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(source.native_prices(&at, &lane()).await.unwrap(), expected);
    // Contracts that are known are requested once.
    let of_contracts = |source: &Source| -> u64 {
        let calls = source.endpoints().into_iter().map(|one| one.calls);
        calls.filter_map(|of| of.get("eth_call").map(|counts| counts.sent)).sum()
    };
    let asked = of_contracts(&source);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(source.native_prices(&at, &lane()).await.unwrap(), expected);
    assert_eq!(of_contracts(&source), asked);
}

#[tokio::test(start_paused = true)]
async fn nodes_with_faults_give_the_same_prices() {
    let world = world("eth");
    let at: Vec<Moment> =
        world.dollar_sides(TradeKind::V2Hop, 120).into_iter().map(|side| side.0).collect();
    let expected = world.source(false).native_prices(&at, &lane()).await.unwrap();
    world.rpc.set_faults(Faults {
        too_many: Rate(200),
        unavailable: Rate(100),
        null_result: Rate(50),
        garbage: Rate(50),
        ..Faults::none()
    });
    let mut shown = None;
    for _ in 0..20 {
        if let Ok(prices) = world.source(false).native_prices(&at, &lane()).await {
            shown = Some(prices);
            break;
        }
    }
    assert_eq!(shown, Some(expected));
}
