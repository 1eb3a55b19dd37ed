//! Native prices from reference pools of the demo Solana, compared with trades whose native side is
//! known: it is hidden, computed from the price, and compared.

#![expect(clippy::print_stderr, reason = "shows how far estimates are off")]

use std::future;
use std::sync::{Arc, Mutex};

use blotter::demo::solana::{SolanaModel, TradeKind, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport};
use blotter::domain::{Address, Moment, Price, Units};
use blotter::registry::Registry;
use blotter::rpc::{
    EndpointConfig, Pool, PoolLimits, Request, Response, Transport, TransportError,
};
use blotter::sources::{SolanaLimits, SolanaSource, Source};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::support::prices::Errors;
use super::support::reading::lane;
use super::support::script::Epoch;

fn source(node: &DemoNode, with_references: bool) -> Source {
    let mounts = [("demo.test/sol".to_owned(), node.clone())];
    source_by(Arc::new(DemoTransport::new(mounts)), with_references)
}

fn source_by(transport: Arc<dyn Transport>, with_references: bool) -> Source {
    let endpoints = vec![EndpointConfig::new("https://demo.test/sol")];
    let pool = Pool::new(endpoints, transport, PoolLimits::default(), Arc::new(Epoch), 7);
    let source = SolanaSource::new(pool, None, SolanaLimits::default());
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named("sol").unwrap();
    Source::Solana(if with_references { source.with_references(chain) } else { source })
}

fn lamports(usdc: Units, price: Price) -> Units {
    usdc * Units::from(10).pow(Units::from(15)) / Units::from(price.0)
}

fn usdc() -> Address {
    Registry::embedded().unwrap().chain_named("sol").unwrap().stablecoins[0]
}

/// Moments of trades for USDC, what was paid or got, and the SOL that it is worth.
fn sides(model: &SolanaModel, trades: u64, routed: bool) -> Vec<(Moment, Units, Units)> {
    let wallet = model.add_named("dollars", WalletPlan::only(TradeKind::JupiterUsdc, trades));
    let usdc = usdc();
    let rows = model.truth(wallet).filter(|row| row.mint == usdc && row.native.is_some() == routed);
    rows.map(|row| {
        let worth = row.native.unwrap_or_else(|| lamports(row.units, model.price_at(row.slot)));
        (Moment { height: row.slot, time: row.time }, row.units, worth)
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn trades_for_dollars_are_worth_what_their_routes_passed_through() {
    let model = SolanaModel::new(11);
    let node = DemoNode::new(model.clone(), 1);
    let source = source(&node, true);
    for routed in [true, false] {
        node.reset_stats();
        let (sides, mut errors) = (sides(&model, 1_000, routed), Errors::default());
        for chunk in sides.chunks(100) {
            let at: Vec<Moment> = chunk.iter().map(|side| side.0).collect();
            let prices = source.native_prices(&at, &lane()).await.unwrap();
            for ((_, dollars, truth), price) in chunk.iter().zip(prices) {
                errors.add(price.map(|price| lamports(*dollars, price)), *truth);
            }
        }
        let calls = node.stats().calls_total();
        eprintln!("reference vaults, routed {routed}: {errors}, {calls} calls for {}", sides.len());
        errors.check(100, 5);
        assert!(calls <= 2 * u64::try_from(sides.len()).unwrap(), "{calls} calls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_price_depends_on_its_slot_alone_and_is_asked_once() {
    let model = SolanaModel::new(11);
    let node = DemoNode::new(model.clone(), 1);
    let mut at: Vec<Moment> = sides(&model, 200, true).into_iter().map(|side| side.0).collect();
    let head = model.head();
    at.push(Moment { height: head, time: SolanaModel::time_of(head) });
    let together = source(&node, true);
    let expected = together.native_prices(&at, &lane()).await.unwrap();
    assert!(expected.iter().flatten().count() * 20 > at.len() * 19);
    let asked = node.stats().calls_total();
    assert_eq!(together.native_prices(&at, &lane()).await.unwrap(), expected);
    assert_eq!(node.stats().calls_total(), asked, "what is known is not asked for again");
    model.advance(10_000);
    for (moment, expected) in at.iter().zip(&expected).step_by(7) {
        let alone = source(&node, true).native_prices(&[*moment], &lane()).await.unwrap();
        assert_eq!(alone, [*expected]);
    }
    let none = source(&node, false).native_prices(&at, &lane()).await.unwrap();
    assert!(none.iter().all(Option::is_none));
}

/// The first few answers about blocks are invalid, and later all of them.
#[derive(Debug)]
struct Pruned {
    node: DemoTransport,
    says: (&'static str, Value),
    left: Mutex<u32>,
}

impl Transport for Pruned {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let call = asked.get(0).unwrap_or(&asked);
        let mut left = self.left.lock().unwrap();
        if call["method"] != "getBlock" || *left == 0 {
            return self.node.send(request);
        }
        *left -= 1;
        let (field, value) = &self.says;
        let answer = json!({"jsonrpc": "2.0", "id": call["id"], *field: value});
        let body = if asked.is_array() { json!([answer]) } else { answer };
        let body = body.to_string().into();
        Box::pin(future::ready(Ok(Response { status: 200, retry_after: None, body })))
    }
}

/// Servers behind one address have different ranges: what one lacks another has, and a block that
/// none returns is requested again later.
#[tokio::test(start_paused = true)]
async fn one_answer_without_a_block_does_not_prove_that_a_price_is_missing() {
    let model = SolanaModel::new(11);
    let node = DemoNode::new(model.clone(), 1);
    let at = [sides(&model, 200, true)[0].0];
    let expected = source(&node, true).native_prices(&at, &lane()).await.unwrap();
    assert!(expected[0].is_some());
    let error = |code: i64| ("error", json!({"code": code, "message": "not here"}));
    for says in [("result", Value::Null), error(-32001), error(-32007), error(-32009)] {
        let by = |left| {
            let node = DemoTransport::new([("demo.test/sol".to_owned(), node.clone())]);
            let transport = Arc::new(Pruned { node, says: says.clone(), left: Mutex::new(left) });
            source_by(transport, true)
        };
        let shown = by(1).native_prices(&at, &lane()).await;
        assert_eq!(shown.unwrap(), expected, "{says:?}");
    }
    let never = ("result", Value::Null);
    let node = DemoTransport::new([("demo.test/sol".to_owned(), node.clone())]);
    let transport = Arc::new(Pruned { node, says: never, left: Mutex::new(u32::MAX) });
    let shown = source_by(transport, true).native_prices(&at, &lane()).await;
    assert!(shown.is_err(), "{shown:?}");
}

/// The blocks of the two highest slots are always missing; those below are there.
#[tokio::test(start_paused = true)]
async fn a_block_that_is_missing_for_good_leaves_the_price_to_the_next_lower_one() {
    let model = SolanaModel::new(11);
    let node = DemoNode::new(model.clone(), 1);
    let sides = sides(&model, 200, true);
    let limits = SolanaLimits::default();
    let (error, tries) =
        (json!({"code": -32004, "message": "not here"}), 2 * limits.missing_tries_max);
    let (mut asked, mut found) = (0, 0);
    for (moment, ..) in sides.iter().rev().step_by(5) {
        let node = DemoTransport::new([("demo.test/sol".to_owned(), node.clone())]);
        let (says, left) = (("error", error.clone()), Mutex::new(tries));
        let source = source_by(Arc::new(Pruned { node, says, left }), true);
        let head = model.head();
        if head > moment.height + limits.block_late_max + 64 {
            asked += 1;
            let prices = source.native_prices(&[*moment], &lane()).await.unwrap();
            found += prices.iter().flatten().count();
        }
    }
    assert!(asked > 3 && found * 4 > asked * 3, "{found} of {asked}");
}
