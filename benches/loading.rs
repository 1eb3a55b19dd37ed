//! How near a load comes to the least that a node's limits allow: `cargo bench --bench loading`.
//!
//! The whole engine over the demo chains, in this process and on paused time: the figures are those
//! of the schedule alone, the same on every machine and however busy it is. A node answers after
//! 80 ms; its limit is a number of calls a second, or of requests at a time.
//!
//! What is held against what: the least number of calls is one for each transaction that did not
//! fail (two on EVM chains, where the receipt is a call of its own) and one for each page of the
//! lists; the least time is what these take at the limit, and one round trip.

#![expect(clippy::print_stdout, reason = "the table is the result of this program")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run should stop")]
#![expect(clippy::indexing_slicing, reason = "as above")]
#![expect(clippy::float_arithmetic, reason = "ratios of times, no money")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::demo::evm::EvmModel;
use blotter::demo::solana::{SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport, Faults, evm};
use blotter::domain::{Clock, Filter, KeyId, UnixMillis, Wallet};
use blotter::history::{History, HistoryLimits, HistoryParts, Step, Tasks, WalkRequest, Want};
use blotter::registry::Registry;
use blotter::store::{Store, StoreOptions};
use blotter::upstream::{
    Discovery, EndpointConfig, EvmLimits, EvmParts, EvmSource, Pool, PoolLimits, SolanaLimits,
    SolanaSource, Source, Transport,
};
use tokio::time::Instant;

const TRIP: Duration = Duration::from_millis(80);
const CALLS_A_SECOND: u64 = 50;
/// Times that the least may be exceeded by.
const FLOOR: f64 = 1.15;
const LIST_PAGE: u64 = 1_000;

#[derive(Debug)]
struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(1_767_225_600_000 + u64::try_from(self.0.elapsed().as_millis()).unwrap())
    }
}

/// A file that is memory: real ones answer on other threads, which paused time does not wait for.
#[derive(Debug, Default)]
struct Disk(Mutex<Vec<u8>>);

impl redb::StorageBackend for Disk {
    fn len(&self) -> std::io::Result<u64> {
        Ok(u64::try_from(self.0.lock().unwrap().len()).unwrap())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        out.copy_from_slice(&self.0.lock().unwrap()[at..at + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.lock().unwrap().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        self.0.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// What an endpoint allows.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    /// Calls a second; a batch costs as many as it holds.
    rate: Option<u64>,
    concurrency: u64,
    batch: u64,
}

impl Allowed {
    fn endpoint(&self, url: &str) -> EndpointConfig {
        EndpointConfig {
            rate_millihertz: self.rate.map(|rate| u32::try_from(rate * 1_000).unwrap()),
            concurrency: Some(usize::try_from(self.concurrency).unwrap()),
            batch: Some(usize::try_from(self.batch).unwrap()),
            ..EndpointConfig::new(url)
        }
    }

    /// The least time for so many calls of transactions and so many pages of lists.
    fn least(&self, calls: u64, pages: u64) -> Duration {
        let requests = calls.div_ceil(self.batch) + pages;
        let turns = u32::try_from(requests.div_ceil(self.concurrency)).unwrap();
        let by_turns = TRIP * turns;
        let by_rate = self.rate.map(|rate| Duration::from_millis((calls + pages) * 1_000 / rate));
        by_turns.max(by_rate.unwrap_or_default()) + TRIP
    }
}

fn pool(
    endpoints: Vec<EndpointConfig>,
    nodes: &[(&str, DemoNode)],
    clock: &Arc<dyn Clock>,
) -> Pool {
    let hosts = nodes.iter().map(|(name, node)| ((*name).to_owned(), node.clone()));
    let transport: Arc<dyn Transport> = Arc::new(DemoTransport::new(hosts));
    Pool::new(endpoints, transport, PoolLimits::default(), Arc::clone(clock), 7)
}

fn engine(registry: &Arc<Registry>, slug: &str, source: Source, clock: &Arc<dyn Clock>) -> History {
    let chain = registry.chain_named(slug).unwrap().id;
    let options = StoreOptions { cache_bytes: 64 << 20 };
    History::new(HistoryParts {
        store: Store::in_step(Disk::default(), options).unwrap(),
        registry: Arc::clone(registry),
        sources: HashMap::from([(chain, source)]),
        candles: None,
        clock: Arc::clone(clock),
        limits: HistoryLimits::default(),
        tasks: Tasks::new(),
    })
}

/// Time to the first rows and to the end, and rows.
async fn read(history: &History, wallet: Wallet) -> (Duration, Duration, usize) {
    let began = Instant::now();
    let window = Duration::from_secs(36_000);
    let request = WalkRequest {
        wallet,
        key: KeyId(1),
        quota: None,
        resume: None,
        filter: Filter::default(),
        follow: false,
        want: Want::All,
        window,
    };
    let mut walk = history.walk(request).unwrap();
    let (mut first, mut rows) = (None, 0);
    loop {
        match walk.next().await {
            Step::Rows(more) => {
                first.get_or_insert_with(|| began.elapsed());
                rows += more.len();
            }
            Step::End(end) => {
                assert!(end.complete && end.error.is_none(), "{end:?}");
                return (first.unwrap_or_default(), began.elapsed(), rows);
            }
        }
    }
}

struct Line {
    what: String,
    first: Duration,
    whole: Duration,
    least: Duration,
    calls: u64,
    least_calls: u64,
    /// Whether the line is held to the floor, or only shown.
    held: bool,
}

impl Line {
    fn print(&self) -> bool {
        let ratio = self.whole.as_secs_f64() / self.least.as_secs_f64();
        let trips = self.first.as_secs_f64() / TRIP.as_secs_f64();
        let kept = !self.held || ratio <= FLOOR;
        println!(
            "{:<58} {:>9.1} {:>9.1} {:>6.3} {:>9} {:>9} {:>7.1} {}",
            self.what,
            self.whole.as_secs_f64(),
            self.least.as_secs_f64(),
            ratio,
            self.calls,
            self.least_calls,
            trips,
            if kept { "" } else { "above the floor" }
        );
        kept
    }
}

struct Solana {
    registry: Arc<Registry>,
    model: SolanaModel,
    clock: Arc<dyn Clock>,
}

impl Solana {
    fn new() -> Self {
        let registry = Arc::new(Registry::embedded().unwrap());
        let clock: Arc<dyn Clock> = Arc::new(TestClock(Instant::now()));
        Self { registry, model: SolanaModel::new(1), clock }
    }

    fn node(&self, trip: Duration) -> DemoNode {
        let node = DemoNode::new(self.model.clone(), 1);
        node.set_faults(Faults::latency(trip));
        node
    }

    fn engine(&self, allowed: &[Allowed], nodes: &[DemoNode]) -> History {
        let names: Vec<String> = (0..nodes.len()).map(|at| format!("node{at}")).collect();
        let endpoints = names.iter().zip(allowed);
        let endpoints = endpoints.map(|(name, one)| one.endpoint(&format!("http://{name}/")));
        let hosts: Vec<_> = names.iter().map(String::as_str).zip(nodes.iter().cloned()).collect();
        let pool = pool(endpoints.collect(), &hosts, &self.clock);
        let genesis = self.registry.chain_named("sol").unwrap().genesis_hash.clone();
        let source = Source::Solana(SolanaSource::new(pool, genesis, SolanaLimits::default()));
        engine(&self.registry, "sol", source, &self.clock)
    }

    fn wallet(&self, name: &str, trades: u64) -> Wallet {
        let chain = self.registry.chain_named("sol").unwrap().id;
        Wallet { chain, address: self.model.add_named(name, WalletPlan::trades(trades)) }
    }

    /// Transactions to fetch and pages to list: the wallet's own list and one page for each of its
    /// token accounts are what the design asks for.
    fn least(&self, wallet: Wallet, calls: &std::collections::BTreeMap<String, u64>) -> (u64, u64) {
        let all = self.model.transaction_count(wallet.address);
        let fetched = calls.get("getTransaction").copied().unwrap_or(0).min(all);
        let lists = calls.get("getSignaturesForAddress").copied().unwrap_or(0);
        (fetched, lists.max(all / LIST_PAGE))
    }
}

async fn solana(what: &str, trades: u64, allowed: Allowed) -> Line {
    let world = Solana::new();
    let wallet = world.wallet("measured", trades);
    let node = world.node(TRIP);
    let history = world.engine(&[allowed], std::slice::from_ref(&node));
    let (first, whole, _) = read(&history, wallet).await;
    let stats = node.stats();
    let (transactions, pages) = world.least(wallet, &stats.calls);
    Line {
        what: what.to_owned(),
        first,
        whole,
        least: allowed.least(transactions, pages),
        calls: stats.calls_total(),
        least_calls: transactions + pages,
        held: true,
    }
}

/// Ten wallets at once share one limit: the last one is done when the limit allows, and none is
/// done long before its share would let it.
async fn fair(trades: u64, allowed: Allowed) -> Line {
    let world = Solana::new();
    let wallets: Vec<_> = (0..10).map(|at| world.wallet(&format!("fair{at}"), trades)).collect();
    let node = world.node(TRIP);
    let history = world.engine(&[allowed], std::slice::from_ref(&node));
    let ends = futures_util::future::join_all(wallets.iter().map(|one| read(&history, *one))).await;
    let last = ends.iter().map(|(_, whole, _)| *whole).max().unwrap_or_default();
    let earliest = ends.iter().map(|(_, whole, _)| *whole).min().unwrap_or_default();
    let first = ends.iter().map(|(first, _, _)| *first).max().unwrap_or_default();
    let stats = node.stats();
    let fetched = stats.calls_of("getTransaction");
    let pages = stats.calls_of("getSignaturesForAddress");
    let share = earliest.as_secs_f64() / last.as_secs_f64();
    Line {
        what: format!("sol, ten wallets at once (first done at {share:.2} of the last)"),
        first,
        whole: last,
        least: allowed.least(fetched, pages),
        calls: stats.calls_total(),
        least_calls: fetched + pages,
        held: true,
    }
}

/// A slow endpoint beside a fast one, against the fast one alone.
async fn beside_a_slow_one(trades: u64, allowed: Allowed) -> Line {
    let mut times = Vec::new();
    let mut calls = 0;
    for slow in [false, true] {
        let world = Solana::new();
        let wallet = world.wallet("measured", trades);
        let mut nodes = vec![world.node(TRIP)];
        if slow {
            nodes.push(world.node(TRIP * 50));
        }
        let history = world.engine(&vec![allowed; nodes.len()], &nodes);
        times.push(read(&history, wallet).await);
        calls = nodes.iter().map(|node| node.stats().calls_total()).sum();
    }
    Line {
        what: "sol, a node 50 times slower beside it (least: without it)".to_owned(),
        first: times[1].0,
        whole: times[1].1,
        least: times[0].1,
        calls,
        least_calls: 0,
        held: true,
    }
}

async fn ethereum(what: &str, discovery: Discovery, trades: u64, allowed: Allowed) -> Line {
    let registry = Arc::new(Registry::embedded().unwrap());
    let clock: Arc<dyn Clock> = Arc::new(TestClock(Instant::now()));
    let chain = registry.chain_named("eth").unwrap().clone();
    let model = EvmModel::new(1, &chain);
    let wallet = Wallet {
        chain: chain.id,
        address: model.add_named("measured", evm::WalletPlan::trades(trades)),
    };
    let node = DemoNode::evm(model.clone(), 1);
    let list = match discovery {
        Discovery::Portal => DemoNode::portal(model.clone(), 3),
        Discovery::Explorer | Discovery::Alchemy | Discovery::Logs => {
            DemoNode::explorer(model.clone(), 2)
        }
    };
    for one in [&node, &list] {
        one.set_faults(Faults::latency(TRIP));
    }
    let list_pool =
        pool(vec![EndpointConfig::new("http://list/")], &[("list", list.clone())], &clock);
    let source = Source::Evm(EvmSource::new(EvmParts {
        rpc: pool(vec![allowed.endpoint("http://node/")], &[("node", node.clone())], &clock),
        explorer: (discovery == Discovery::Explorer).then(|| list_pool.clone()),
        portal: (discovery == Discovery::Portal).then(|| list_pool.clone()),
        discovery: vec![discovery],
        limits: EvmLimits::default(),
        registry: Arc::clone(&registry),
        chain,
    }));
    let history = engine(&registry, "eth", source, &clock);
    let (first, whole, _) = read(&history, wallet).await;
    let (stats, lists) = (node.stats(), list.stats());
    let calls = stats.calls_total();
    let pages = lists.requests;
    let transactions =
        stats.calls_of("eth_getTransactionReceipt") + stats.calls_of("eth_getTransactionByHash");
    let traced = stats.calls_of("debug_traceTransaction") + stats.calls_of("trace_transaction");
    // The list is asked beside the node, page after page: what comes last counts.
    let by_list = TRIP * u32::try_from(pages).unwrap();
    let logs = stats.calls_of("eth_getLogs");
    Line {
        what: what.to_owned(),
        first,
        whole,
        least: allowed.least(transactions + traced + logs, 0).max(by_list),
        calls: calls + pages,
        least_calls: transactions + traced + logs + pages,
        held: true,
    }
}

fn main() {
    // `cargo bench -- --test` and `cargo test --benches` want one short turn.
    let short = std::env::args().any(|arg| arg == "--test");
    let trades = if short { 500 } else { 14_000 };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let rate = Some(CALLS_A_SECOND);
    let single = Allowed { rate, concurrency: 16, batch: 1 };
    let batches = Allowed { rate, concurrency: 16, batch: 20 };
    let unlimited = Allowed { rate: None, concurrency: 8, batch: 10 };
    println!(
        "{:<58} {:>9} {:>9} {:>6} {:>9} {:>9} {:>7}",
        format!("a wallet of {trades} trades, {} ms away", TRIP.as_millis()),
        "seconds",
        "least",
        "ratio",
        "calls",
        "least",
        "trips"
    );
    let kept = runtime.block_on(async {
        let mut kept = true;
        kept &= solana("sol, 50 calls a second, no batches", trades, single).await.print();
        kept &= solana("sol, 50 calls a second, batches of 20", trades, batches).await.print();
        kept &= solana("sol, 8 requests at a time, batches of 10", trades, unlimited).await.print();
        kept &= fair(trades / 10, batches).await.print();
        kept &= beside_a_slow_one(trades / 4, unlimited).await.print();
        for (name, discovery) in [("lists", Discovery::Explorer), ("gateway", Discovery::Portal)] {
            let what = format!("eth by {name}, 50 calls a second, batches of 20");
            kept &= ethereum(&what, discovery, trades / 4, batches).await.print();
        }
        let what = "eth by logs, 50 calls a second, batches of 20";
        kept &= ethereum(what, Discovery::Logs, trades / 4, batches).await.print();
        kept
    });
    println!("trips: until the first rows, in round trips; floor: {FLOOR} of the least time");
    if !kept {
        std::process::exit(1);
    }
}
