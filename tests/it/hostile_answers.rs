//! Corrupted answers of nodes, explorers and gateways of every family, from a seed: nothing panics,
//! nothing waits for ever, chunks are well-formed. `BLOTTER_FUZZ_ROUNDS` makes the run longer.
#![expect(clippy::print_stderr, reason = "figures of a long run")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use blotter::decode;
use blotter::demo::evm::{EvmModel, WalletPlan as EvmPlan};
use blotter::demo::solana::{NodeOptions, SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport};
use blotter::domain::{Address, ChainId, Height};
use blotter::registry::Registry;
use blotter::rpc::{EndpointConfig, Lane, Pool, PoolLimits, Priority, Transport};
use blotter::sources::{
    Discovery, EvmLimits, EvmParts, EvmSource, GapRequest, RawTx, RunAhead, SolanaLimits,
    SolanaSource, Source, TronLimits, TronSource,
};
use tokio::time::timeout;

use crate::support::mangle::Mangled;
use crate::support::script::Epoch;
use crate::support::tron_node;

/// A read ends or gives up long before this time.
const ENDLESS: Duration = Duration::from_secs(3600);
const CHUNKS_MAX: usize = 10_000;

fn rounds(usual: u64) -> u64 {
    std::env::var("BLOTTER_FUZZ_ROUNDS").map_or(usual, |rounds| rounds.parse().unwrap())
}

fn pool(transport: &Arc<Mangled>, url: &str) -> Pool {
    let endpoint = EndpointConfig { batch: Some(10), ..EndpointConfig::new(url) };
    let transport: Arc<dyn Transport> = transport.clone();
    Pool::new(vec![endpoint], transport, PoolLimits::default(), Arc::new(Epoch), 7)
}

fn decoded(registry: &Registry, chain: &str, wallet: Address, tx: &RawTx) {
    let chain = registry.chain_named(chain).unwrap();
    match (tx, wallet) {
        (RawTx::Solana(tx, _), Address::Solana(key)) => {
            drop(decode::solana::decode(registry, &key, tx));
        }
        (RawTx::Evm(tx, _), Address::Evm(key)) => {
            drop(decode::evm::decode(registry.evm(), chain, &key, tx));
        }
        (RawTx::Tron(tx, _), Address::Tron(key)) => {
            drop(decode::tron::decode(registry.tron(), chain, &key, tx));
        }
        (RawTx::Solana(..) | RawTx::Evm(..) | RawTx::Tron(..), _) => panic!("another family"),
    }
}

/// Reads the whole history, and all other requests; returns what was read.
async fn read(registry: &Registry, chain: &str, source: &Source, wallet: Address) -> usize {
    let lane = Lane::new(1, Arc::new(Priority::interactive()));
    let request = GapRequest {
        wallet,
        low: 0,
        high: None,
        resume: None,
        accounts: Vec::new(),
        knows_accounts: true,
        lane: lane.clone(),
        first: true,
        another: None,
    };
    let mut reader = source.read(request);
    reader.set_run_ahead(RunAhead::All);
    let (mut below, mut count): (Option<Height>, usize) = (None, 0);
    for _ in 0..CHUNKS_MAX {
        let Ok(Some(chunk)) = reader.next().await else { break };
        assert!(chunk.low <= chunk.high && below.is_none_or(|low| chunk.high < low));
        below = Some(chunk.low);
        let inside = |tx: &RawTx| (chunk.low..=chunk.high).contains(&tx.height());
        assert!(chunk.txs.iter().all(inside), "outside of its chunk");
        count += chunk.txs.len();
        chunk.txs.iter().for_each(|tx| decoded(registry, chain, wallet, tx));
    }
    let mints = [wallet, Address::parse(wallet.family(), &wallet.to_string()).unwrap()];
    if let Ok(metas) = source.tokens(&mints, &lane).await {
        for symbol in metas.into_iter().filter_map(|meta| meta.symbol) {
            assert!(symbol.chars().count() <= 32 && !symbol.chars().any(char::is_control));
        }
    }
    drop(source.head(&lane).await);
    drop(source.block_hash(1_000, &lane).await);
    drop(source.block_order(1_000, &lane).await);
    drop(source.check_hash(1_000, [7; 32], &lane).await);
    count
}

/// Runs rounds of one family; `make` gives a source over nodes whose answers are changed.
async fn run(
    name: &str,
    chain: &str,
    usual: u64,
    make: impl Fn(&Arc<Registry>, u64, usize) -> (Source, Arc<Mangled>, Address),
) {
    let registry = Arc::new(Registry::embedded().unwrap());
    let (mut changed, mut found) = (0, 0);
    for seed in 0..rounds(usual) {
        let share = [0, 5, 20, 60, 100][usize::try_from(seed % 5).unwrap()];
        let (source, mangled, wallet) = make(&registry, seed, share);
        let all = read(&registry, chain, &source, wallet);
        let got = timeout(ENDLESS, all).await;
        let got = got.unwrap_or_else(|_| panic!("{name}, seed {seed}: it never ends"));
        // The same shows that it would have read something without the limit.
        assert!(share > 0 || got > 0, "{name}, seed {seed}: nothing");
        found += got;
        changed += mangled.changed.load(Ordering::Relaxed);
    }
    eprintln!("{name}: {changed} answers changed, {found} transactions read");
    assert!(changed > usual);
}

#[tokio::test(start_paused = true)]
async fn garbled_solana_nodes() {
    run("solana", "sol", 40, |registry, seed, share| {
        let model = SolanaModel::new(5);
        let wallet = model.add_named("ruined", WalletPlan::trades(12));
        let node = DemoNode::new(model, seed);
        let known = NodeOptions::default();
        let transactions_for_address = seed.is_multiple_of(3);
        node.set_options(NodeOptions { transactions_for_address, ..known });
        let inner = Arc::new(DemoTransport::new([("node0".to_owned(), node)]));
        let mangled = Mangled::new(inner, seed, share);
        let genesis = registry.chain(ChainId(1)).unwrap().genesis_hash.clone();
        let pool = pool(&mangled, "http://node0/planted");
        let source = SolanaSource::new(pool, genesis, SolanaLimits::default());
        (Source::Solana(source), mangled, wallet)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn garbled_evm_nodes_explorers_and_gateways() {
    run("evm", "eth", 40, |registry, seed, share| {
        let registry = Arc::clone(registry);
        let chain = registry.chain_named("eth").unwrap().clone();
        let model = EvmModel::new(11, &chain);
        let wallet = model.add_named("ruined", EvmPlan::trades(12));
        let inner = Arc::new(DemoTransport::new([
            ("demo.test/evm/it".to_owned(), DemoNode::evm(model.clone(), seed)),
            ("demo.test/explorer/it/api".to_owned(), DemoNode::explorer(model.clone(), seed)),
            ("demo.test/portal/it".to_owned(), DemoNode::portal(model, seed)),
        ]));
        let mangled = Mangled::new(inner, seed, share);
        let ways = [Discovery::Portal, Discovery::Explorer, Discovery::Logs];
        let first = usize::try_from(seed % 3).unwrap();
        let discovery = ways[first..].iter().chain(&ways[..first]).copied().collect();
        let source = EvmSource::new(EvmParts {
            chain,
            registry,
            rpc: pool(&mangled, "https://demo.test/evm/it"),
            explorer: Some(pool(&mangled, "https://demo.test/explorer/it/api")),
            portal: Some(pool(&mangled, "https://demo.test/portal/it")),
            discovery,
            limits: EvmLimits::default(),
        });
        (Source::Evm(source), mangled, wallet)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn garbled_tron_nodes_and_lists() {
    run("tron", "tron", 40, |registry, seed, share| {
        let mut chain = tron_node::Chain::new(50_000);
        for at in 1..=12 {
            chain.swap(at * 1_000);
        }
        let ways = tron_node::Ways::default();
        let mangled = Mangled::new(Arc::new(tron_node::Net::new(chain, ways)), seed, share);
        let chain = registry.chain_named("tron").unwrap();
        let pool = pool(&mangled, "http://node/planted-secret");
        let source = TronSource::new(pool, chain, TronLimits::default());
        (Source::Tron(source), mangled, Address::Tron(tron_node::WALLET))
    })
    .await;
}
