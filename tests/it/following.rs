//! Many followed wallets of one chain: one scan finds those that moved, and only they are read. A
//! scan is a hint: what it misses comes late but is not lost, and it proves nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::demo::evm::{EvmModel, NodeOptions, WalletPlan, tron};
use blotter::demo::solana;
use blotter::demo::{DemoNode, DemoTransport, Faults, Rate};
use blotter::domain::{Address, KeyId, Wallet};
use blotter::history::{Extent, History, HistoryLimits, HistoryParts, Step, Tasks, WalkRequest};
use blotter::registry::Registry;
use blotter::rpc::{EndpointConfig, Lane, Pool, PoolLimits, Priority, Transport};
use blotter::sources::{
    Discovery, EvmLimits, EvmParts, EvmSource, ScanTarget, Source, TronLimits, TronSource,
};
use blotter::store::{Store, StoreOptions};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::support::paused::{Disk, TestClock};
use crate::support::world::{Build, World};

const HEAD: u64 = 400_000;
const SECOND: Duration = Duration::from_secs(1);
/// What a scan finds is read in this time.
const READ: Duration = Duration::from_secs(3);

/// A chain of the EVM kind with its endpoints and a service.
struct Chain {
    model: EvmModel,
    node: DemoNode,
    explorer: DemoNode,
    source: Source,
    history: History,
    limits: HistoryLimits,
}

impl Chain {
    fn new(slug: &str, discovery: Discovery, limits: HistoryLimits) -> Self {
        let registry = Arc::new(Registry::embedded().unwrap());
        let chain = registry.chain_named(slug).unwrap().clone();
        let model = EvmModel::with_head(5, &chain, Some(HEAD));
        let is_tron = slug == "tron";
        let node = if is_tron {
            DemoNode::tron(model.clone(), 1)
        } else {
            DemoNode::evm(model.clone(), 1)
        };
        let explorer = DemoNode::explorer(model.clone(), 2);
        let mounts = [("node".to_owned(), node.clone()), ("list/api".to_owned(), explorer.clone())];
        let transport: Arc<dyn Transport> = Arc::new(DemoTransport::new(mounts));
        let clock = TestClock::start();
        let pool = |path: &str| {
            let endpoint =
                EndpointConfig { batch: Some(50), ..EndpointConfig::new(format!("http://{path}")) };
            let transport = Arc::clone(&transport);
            Pool::new(vec![endpoint], transport, PoolLimits::default(), Arc::clone(&clock), 7)
        };
        let source = if is_tron {
            Source::Tron(TronSource::new(pool("node"), &chain, TronLimits::default()))
        } else {
            Source::Evm(EvmSource::new(EvmParts {
                chain: chain.clone(),
                registry: Arc::clone(&registry),
                rpc: pool("node"),
                explorer: Some(pool("list/api")),
                portal: None,
                discovery: vec![discovery],
                limits: EvmLimits::default(),
            }))
        };
        let history = History::new(HistoryParts {
            store: Store::in_step(Disk::default(), StoreOptions { cache_bytes: 4 << 20 }).unwrap(),
            registry,
            sources: HashMap::from([(chain.id, source.clone())]),
            candles: None,
            clock,
            limits: limits.clone(),
            tasks: Tasks::new(),
        });
        Self { model, node, explorer, source, history, limits }
    }

    fn add(&self, count: usize) -> Vec<Wallet> {
        let plan = WalletPlan { first: Some(HEAD / 2), ..WalletPlan::trades(2) };
        let registry = Registry::embedded().unwrap();
        let chain = registry.chain_named(self.model.slug()).unwrap().id;
        let named = |n| self.model.add_named(&format!("followed {n}"), plan);
        (0..count).map(|n| Wallet { chain, address: named(n) }).collect()
    }

    fn calls(&self) -> u64 {
        [&self.node, &self.explorer].map(|node| node.stats().calls_total()).iter().sum()
    }
}

/// When each wallet's live rows came.
type Arrivals = Arc<Mutex<HashMap<Wallet, Vec<Instant>>>>;

/// Readers of many wallets, from the histories on.
struct Readers {
    arrivals: Arrivals,
    live: Arc<Mutex<usize>>,
    tasks: JoinSet<()>,
}

impl Readers {
    /// Ready once all are live and scanned for.
    async fn follow(history: &History, wallets: &[Wallet], limits: &HistoryLimits) -> Self {
        let (arrivals, live) = (Arrivals::default(), Arc::default());
        let mut readers = Self { arrivals, live, tasks: JoinSet::new() };
        for wallet in wallets {
            readers.add(history, *wallet);
        }
        while *readers.live.lock().unwrap() < wallets.len() {
            sleep(SECOND).await;
        }
        sleep(limits.scan_every * 2 + READ).await;
        readers
    }

    fn add(&mut self, history: &History, wallet: Wallet) {
        let mut walk = history
            .walk(WalkRequest { follow: true, ..World::request(wallet, Extent::All) })
            .unwrap();
        let (arrivals, live) = (Arc::clone(&self.arrivals), Arc::clone(&self.live));
        self.tasks.spawn(async move {
            loop {
                let was_live = walk.is_live();
                match walk.next().await {
                    Step::Rows(rows) if was_live => {
                        let mut arrivals = arrivals.lock().unwrap();
                        arrivals
                            .entry(wallet)
                            .or_default()
                            .extend(rows.iter().map(|_| Instant::now()));
                    }
                    Step::Rows(_) => *live.lock().unwrap() += usize::from(walk.is_live()),
                    Step::End(end) => panic!("{end:?}"),
                }
            }
        });
    }

    /// How long after now the wallet's next row comes.
    async fn next_row(&self, wallet: Wallet) -> Duration {
        let (began, count) = (Instant::now(), self.rows(wallet));
        let came = async {
            while self.rows(wallet) == count {
                sleep(SECOND / 10).await;
            }
        };
        timeout(Duration::from_secs(1800), came).await.unwrap();
        began.elapsed()
    }

    fn rows(&self, wallet: Wallet) -> usize {
        self.arrivals.lock().unwrap().get(&wallet).map_or(0, Vec::len)
    }
}

/// Wallets are read only if a scan finds them or fails.
fn by_scans_alone() -> HistoryLimits {
    let never = Duration::from_secs(360_000);
    HistoryLimits { follow_read_after: never, ..HistoryLimits::default() }
}

fn lane() -> Lane {
    Lane::new(0, Arc::new(Priority::interactive()))
}

/// New trades of some of many wallets of an EVM chain.
#[tokio::test(start_paused = true)]
async fn ten_thousand_wallets_of_an_evm_chain_take_at_most_25_calls_a_scan() {
    let chain = Chain::new("eth", Discovery::Explorer, HistoryLimits::default());
    let wallets = chain.add(10_000);
    let head = chain.model.head();
    let target = |wallet: &Wallet| ScanTarget { wallet: wallet.address, top: head, seen: head };
    let targets: Vec<ScanTarget> = wallets.iter().map(target).collect();
    let mut moved = Vec::new();
    for n in [0, 4_321, 9_999] {
        moved.push(wallets[n].address);
        chain.model.arrive(wallets[n].address, 2);
    }
    chain.node.reset_stats();
    let scan = chain.source.scan(&targets, &lane()).await.unwrap();
    let calls = chain.calls();
    assert!(calls <= 25, "{calls} calls");
    let mut found: Vec<Address> = scan.moved.iter().map(|(wallet, _)| *wallet).collect();
    found.sort_unstable();
    moved.sort_unstable();
    assert_eq!(found, moved);
    assert!(scan.moved.iter().all(|(_, height)| *height > head && *height <= scan.high));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_takes_few_topics_and_blocks_is_scanned_in_more_queries() {
    let chain = Chain::new("eth", Discovery::Explorer, HistoryLimits::default());
    let wallets = chain.add(300);
    let head = chain.model.head();
    chain.node.set_options(NodeOptions { log_blocks_max: Some(10), ..NodeOptions::default() });
    let targets: Vec<ScanTarget> = wallets
        .iter()
        .map(|wallet| ScanTarget { wallet: wallet.address, top: head, seen: head })
        .collect();
    chain.model.arrive(wallets[7].address, 1);
    chain.model.advance(100);
    let scan = chain.source.scan(&targets, &lane()).await.unwrap();
    assert_eq!(scan.moved.iter().map(|(one, _)| *one).collect::<Vec<_>>(), [wallets[7].address]);
    // A lagging node that shows nothing is not believed.
    chain.node.set_options(NodeOptions { lag: 40, ..NodeOptions::default() });
    let behind = ScanTarget { top: scan.high, seen: scan.high, ..targets[7] };
    chain.model.advance(50);
    let scan = chain.source.scan(&[behind], &lane()).await.unwrap();
    assert!(scan.high < chain.model.head());
}

#[tokio::test(start_paused = true)]
async fn a_quiet_wallet_of_an_evm_chain_costs_no_read_and_no_write() {
    let chain = Chain::new("eth", Discovery::Explorer, by_scans_alone());
    let wallets = chain.add(40);
    let readers = Readers::follow(&chain.history, &wallets, &chain.limits).await;
    quiet(&chain, &wallets, 5).await;
    shows(&chain, &readers, wallets[11]).await;
    quiet(&chain, &wallets, 5).await;
}

#[tokio::test(start_paused = true)]
async fn a_quiet_wallet_of_tron_costs_no_read_and_no_write() {
    let chain = Chain::new("tron", Discovery::Logs, by_scans_alone());
    let wallets = chain.add(30);
    let readers = Readers::follow(&chain.history, &wallets, &chain.limits).await;
    quiet(&chain, &wallets, 8).await;
    shows(&chain, &readers, wallets[11]).await;
}

/// Ten quiet minutes take this many calls per scan, and change nothing.
async fn quiet(chain: &Chain, wallets: &[Wallet], calls_a_scan: u64) {
    let (before, calls) = (reports(chain, wallets).await, chain.calls());
    for _ in 0..60 {
        chain.model.advance(1);
        sleep(chain.limits.scan_every).await;
    }
    let calls = chain.calls() - calls;
    assert!(calls <= 61 * calls_a_scan, "{calls} calls for 60 scans");
    assert!(calls >= 59, "{calls} calls for 60 scans");
    assert_eq!(reports(chain, wallets).await, before);
}

async fn reports(chain: &Chain, wallets: &[Wallet]) -> Vec<(Option<u64>, Option<u64>)> {
    let mut all = Vec::new();
    for wallet in wallets {
        let report = chain.history.coverage(*wallet).await.unwrap().unwrap();
        all.push((report.top, report.checked_at.map(|at| at.0)));
    }
    all
}

/// A final trade is shown within one scan, however long it was quiet.
async fn shows(chain: &Chain, readers: &Readers, wallet: Wallet) {
    chain.model.arrive(wallet.address, 1);
    // What lists may lack below the head.
    chain.model.advance(1_100);
    let took = readers.next_row(wallet).await;
    assert!(took <= chain.limits.scan_every + READ, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn five_hundred_wallets_of_solana_take_one_list_each_a_scan() {
    let build = Build { batch: Some(100), limits: by_scans_alone(), ..Build::default() };
    let world = build.world();
    let plan = solana::WalletPlan::trades(1);
    let wallets: Vec<Wallet> =
        (0..500).map(|n| world.add(&format!("followed {n}"), plan)).collect();
    let readers = Readers::follow(&world.history, &wallets, &world.limits).await;
    let (calls, lists) =
        (world.calls(), world.nodes[0].stats().calls_of("getSignaturesForAddress"));
    sleep(world.limits.scan_every * 6).await;
    let calls = world.calls() - calls;
    let lists = world.nodes[0].stats().calls_of("getSignaturesForAddress") - lists;
    assert!(calls <= 7 * 501 && lists >= 5 * 500, "{calls} calls, {lists} of them lists");
    world.model.arrive(wallets[77].address, 1);
    let took = readers.next_row(wallets[77]).await;
    assert!(took <= world.limits.scan_every + READ, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn without_scans_each_followed_wallet_is_read_as_one_that_is_asked_for() {
    let chain = Chain::new("eth", Discovery::Explorer, by_scans_alone());
    chain.node.set_options(NodeOptions { logs: false, ..NodeOptions::default() });
    let wallets = chain.add(3);
    let readers = Readers::follow(&chain.history, &wallets, &chain.limits).await;
    chain.model.arrive(wallets[1].address, 1);
    chain.model.advance(1_100);
    let took = readers.next_row(wallets[1]).await;
    assert!(took <= chain.limits.freshness + chain.limits.idle_grace + READ, "{took:?}");
    assert!(chain.history.metrics().scans_failed.get() > 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_scan_leaves_out_comes_with_the_wallets_own_read() {
    let limits = HistoryLimits::default();
    let chain = Chain::new("eth", Discovery::Explorer, limits.clone());
    let wallets = chain.add(3);
    let readers = Readers::follow(&chain.history, &wallets, &limits).await;
    chain.node.set_faults(Faults { empty_logs: Rate::ALWAYS, ..Faults::default() });
    chain.model.arrive(wallets[1].address, 1);
    chain.model.advance(1_100);
    let took = readers.next_row(wallets[1]).await;
    assert!(took <= limits.follow_read_after + limits.scan_every + READ, "{took:?}");
    assert!(took > limits.scan_every, "no scan could have shown it: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tron_node_without_events_vouches_for_no_wallet() {
    let chain = Chain::new("tron", Discovery::Logs, by_scans_alone());
    let mut pruned = tron::NodeOptions::default();
    (pruned.node.first_available, pruned.node.prunes_silently) = (HEAD * 2, true);
    let wallets = chain.add(2);
    let head = chain.model.head();
    let targets =
        wallets.iter().map(|wallet| ScanTarget { wallet: wallet.address, top: head, seen: head });
    let targets: Vec<ScanTarget> = targets.collect();
    chain.model.advance(30);
    assert!(chain.source.scan(&targets, &lane()).await.is_ok());
    chain.node.set_options(pruned);
    assert!(chain.source.scan(&targets, &lane()).await.is_err());
}

/// A reader that comes back behind its cursor follows on without a read of its own.
#[tokio::test(start_paused = true)]
async fn coming_back_to_a_followed_wallet_reads_nothing() {
    let chain = Chain::new("eth", Discovery::Explorer, by_scans_alone());
    let wallet = chain.add(1)[0];
    let window = Duration::from_secs(55);
    let request = WalkRequest { follow: true, window, ..World::request(wallet, Extent::All) };
    let mut walk = chain.history.walk(request.clone()).unwrap();
    let mut read_at = None;
    for round in 0..5 {
        while !matches!(walk.next().await, Step::End(_)) {}
        let report = chain.history.coverage(wallet).await.unwrap().unwrap();
        assert!(round == 0 || report.checked_at == read_at, "round {round}");
        read_at = report.checked_at;
        let resume = Some(Box::new(walk.cursor()));
        walk =
            chain.history.walk(WalkRequest { resume, key: KeyId(1), ..request.clone() }).unwrap();
    }
}
