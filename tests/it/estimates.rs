//! Estimates of a wallet's size before it is read: near the truth for large wallets too.

use std::sync::Arc;
use std::time::Duration;

use blotter::api::{Api, ApiLimits, ApiParts, Keys};
use blotter::demo::evm::{EvmModel, WalletPlan};
use blotter::demo::solana;
use blotter::demo::{DemoNode, DemoTransport};
use blotter::registry::Registry;
use blotter::rpc::{EndpointConfig, Lane, Pool, PoolLimits, Priority};
use blotter::sources::{Source, TronLimits, TronSource};

use crate::support::script::Epoch;
use crate::support::served::{json, ring};
use crate::support::world::Build;

const PATIENCE: Duration = Duration::from_secs(5);

fn is_near(estimate: u64, truth: u64) -> bool {
    (truth / 2..=truth * 2).contains(&estimate)
}

#[tokio::test(start_paused = true)]
async fn a_large_wallet_of_solana_is_estimated_from_pages_at_several_depths() {
    let world = Build::default().world();
    for (trades, calls_max) in [(300, 1), (20_000, 10), (250_000, 10)] {
        let wallet = world.add(&format!("of {trades}"), solana::WalletPlan::trades(trades));
        let before = world.calls();
        let estimate = world.history.estimate(wallet, false, PATIENCE).await.unwrap();
        let calls = world.calls() - before;
        assert!(!estimate.is_exact && calls <= calls_max, "{estimate:?} by {calls} calls");
        assert!(is_near(estimate.trades, trades), "{} for {trades}", estimate.trades);
        assert_eq!(estimate.seconds, estimate.trades.div_ceil(200));
    }
}

/// Over HTTP without a key: the number only, and no rows.
#[tokio::test(start_paused = true)]
async fn without_a_key_an_estimate_has_a_number_and_no_rows() {
    let world = Build::default().world();
    let wallet = world.add("asked for", solana::WalletPlan::trades(300));
    let (history, limits) = (world.history.clone(), ApiLimits::default());
    let api = Api::new(ApiParts { history, keys: Keys::new(ring(&[])), limits, seed: 1 });
    let body = format!("{{\"addresses\":[\"{}\"]}}", wallet.address);
    let request = warp::test::request().method("POST").path("/v1/billing/estimate");
    let request = request.header("content-type", "application/json").body(body);
    let answer = json(&request.reply(&api.routes()).await);
    let row = &answer["addresses"][0];
    assert!(is_near(row["estimatedTradeCount"].as_u64().unwrap(), 300), "{answer}");
    assert_eq!(row["sampleTrades"], serde_json::json!([]), "{answer}");
}

/// The longest accepted list, at a node of one call a second, as public nodes are.
#[tokio::test(start_paused = true)]
async fn a_list_is_estimated_at_the_pace_of_a_public_node() {
    let world = Build { rate: Some(1), ..Build::default() }.world();
    let wallets =
        (0..20).map(|at| world.add(&format!("wallet {at}"), solana::WalletPlan::trades(30)));
    let addresses: Vec<String> = wallets.map(|wallet| wallet.address.to_string()).collect();
    let (history, limits) = (world.history.clone(), ApiLimits::default());
    let api = Api::new(ApiParts { history, keys: Keys::new(ring(&[])), limits, seed: 1 });
    let body = serde_json::json!({ "addresses": addresses }).to_string();
    let request = warp::test::request().method("POST").path("/v1/billing/estimate");
    let request = request.header("content-type", "application/json").body(body);
    let answer = json(&request.reply(&api.routes()).await);
    let rows = answer["addresses"].as_array().unwrap();
    assert_eq!(rows.len(), 20);
    assert!(rows.iter().all(|row| is_near(row["estimatedTradeCount"].as_u64().unwrap(), 30)));
}

#[tokio::test(start_paused = true)]
async fn a_large_wallet_of_tron_is_estimated_from_pages_over_its_life() {
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named("tron").unwrap();
    let model = EvmModel::new(5, chain);
    let node = DemoNode::tron(model.clone(), 1);
    let transport = Arc::new(DemoTransport::new([("node".to_owned(), node.clone())]));
    let endpoint = EndpointConfig::new("http://node".to_owned());
    let pool = Pool::new(vec![endpoint], transport, PoolLimits::default(), Arc::new(Epoch), 7);
    let source = Source::Tron(TronSource::new(pool, chain, TronLimits::default()));
    let lane = Lane::new(0, Arc::new(Priority::interactive()));
    for trades in [100, 5_000, 250_000] {
        let wallet = model.add_named(&format!("of {trades}"), WalletPlan::trades(trades));
        let before = node.stats().calls_total();
        let activity = source.activity(wallet, &lane).await.unwrap();
        let calls = node.stats().calls_total() - before;
        let truth = model.transaction_count(wallet);
        assert!(calls <= 10, "{calls} calls");
        assert_eq!(activity.is_rough, truth > 200);
        assert!(is_near(activity.transactions, truth), "{activity:?} for {truth}");
    }
}
