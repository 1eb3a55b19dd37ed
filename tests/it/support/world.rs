//! A whole service in this process: demo chain, in-process transport, a store in memory, paused
//! time. Expected rows come from the chain's model.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use blotter::demo::solana::{SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport, Faults};
use blotter::domain::{ChainId, Clock, Cursor, Filter, KeyId, Row, UnixMillis, Wallet};
use blotter::history::{
    End, Extent, History, HistoryLimits, HistoryParts, Step, Tasks, Walk, WalkRequest,
};
use blotter::registry::Registry;
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, Transport};
use blotter::sources::{Candles, SolanaLimits, SolanaSource, Source};
use blotter::store::{Store, StoreOptions};

use tempfile::TempDir;

use super::paused::{Disk, TestClock};
use super::truth::{Fact, facts};

pub(crate) struct World {
    pub(crate) model: SolanaModel,
    pub(crate) nodes: Vec<DemoNode>,
    pub(crate) history: History,
    pub(crate) store: Store,
    pub(crate) limits: HistoryLimits,
    clock: Arc<dyn Clock>,
    disk: Disk,
    /// Where the store is a real file.
    folder: Option<TempDir>,
    candles: Option<Arc<dyn Transport>>,
}

pub(crate) struct Build {
    pub(crate) seed: u64,
    pub(crate) nodes: usize,
    pub(crate) batch: Option<usize>,
    pub(crate) concurrency: Option<usize>,
    /// Calls a second that each node is asked at most.
    pub(crate) rate: Option<u32>,
    pub(crate) limits: HistoryLimits,
    pub(crate) solana: SolanaLimits,
    /// Where a price service is asked.
    pub(crate) candles: Option<Arc<dyn Transport>>,
    /// Keeps the store in a real file.
    pub(crate) folder: Option<TempDir>,
    /// Another store than one in memory.
    pub(crate) store: Option<Store>,
    /// Another clock for the history alone.
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

impl Default for Build {
    fn default() -> Self {
        let (limits, solana) = (HistoryLimits::default(), SolanaLimits::default());
        let (candles, folder, store, clock) = (None, None, None, None);
        let (batch, concurrency, rate) = (None, None, None);
        Self {
            seed: 1,
            nodes: 1,
            batch,
            concurrency,
            rate,
            limits,
            solana,
            candles,
            folder,
            store,
            clock,
        }
    }
}

impl Build {
    pub(crate) fn world(self) -> World {
        let model = SolanaModel::new(self.seed);
        let nodes: Vec<DemoNode> = (0..self.nodes)
            .map(|at| DemoNode::new(model.clone(), u64::try_from(at).unwrap()))
            .collect();
        let clock = TestClock::start();
        let disk = Disk::default();
        let (history, store) = service(&self, &nodes, &clock, &disk);
        let Self { limits, candles, folder, .. } = self;
        World { model, nodes, history, store, limits, clock, disk, folder, candles }
    }
}

fn service(
    build: &Build,
    nodes: &[DemoNode],
    clock: &Arc<dyn Clock>,
    disk: &Disk,
) -> (History, Store) {
    let hosts = nodes.iter().enumerate().map(|(at, node)| (format!("node{at}"), node.clone()));
    let transport: Arc<dyn Transport> = Arc::new(DemoTransport::new(hosts));
    let endpoints = (0..nodes.len())
        .map(|at| EndpointConfig {
            batch: build.batch,
            concurrency: build.concurrency,
            rate_millihertz: build.rate.map(|rate| rate * 1000),
            ..EndpointConfig::new(format!("http://node{at}/planted-secret"))
        })
        .collect();
    let pool = Pool::new(endpoints, transport, PoolLimits::default(), Arc::clone(clock), 7);
    let registry = Arc::new(Registry::embedded().unwrap());
    let chain = registry.chain(ChainId(1)).unwrap();
    let source = SolanaSource::new(pool, chain.genesis_hash.clone(), build.solana.clone());
    let source = Source::Solana(source.with_busy_account(chain));
    let candles = build.candles.as_ref().map(|transport| {
        let endpoints = vec![EndpointConfig::new("http://prices.test".to_owned())];
        let limits = PoolLimits::default();
        let pool = Pool::new(endpoints, Arc::clone(transport), limits, Arc::clone(clock), 7);
        Candles::new(pool, &registry)
    });
    let options = StoreOptions { cache_bytes: 4 << 20 };
    let store = match (&build.store, &build.folder) {
        (Some(store), _) => store.clone(),
        (None, Some(folder)) => Store::open_in_step(folder.path(), options).unwrap(),
        (None, None) => Store::in_step(disk.clone(), options).unwrap(),
    };
    let history = History::new(HistoryParts {
        store: store.clone(),
        registry,
        sources: HashMap::from([(ChainId(1), source)]),
        candles,
        clock: Arc::clone(build.clock.as_ref().unwrap_or(clock)),
        limits: build.limits.clone(),
        tasks: Tasks::new(),
    });
    (history, store)
}

impl World {
    pub(crate) fn add(&self, name: &str, plan: WalletPlan) -> Wallet {
        Wallet { chain: ChainId(1), address: self.model.add_named(name, plan) }
    }

    /// Drives a walk until a node has worked out a call of this method; the answer may still be on
    /// its way, and no row is there.
    pub(crate) async fn until_asked(&self, method: &str, walk: &mut Walk) {
        let asked = async {
            while self.nodes.iter().all(|node| node.stats().calls_of(method) == 0) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            step = walk.next() => panic!("came before {method} was asked: {step:?}"),
            () = asked => {}
        }
    }

    /// Stops the service as a shutdown would and starts another one on the same disk and nodes.
    pub(crate) async fn restart(self) -> Self {
        let Self { model, nodes, history, store, limits, clock, disk, folder, candles } = self;
        history.stop();
        assert!(history.tasks().shutdown(Duration::from_secs(5)).await, "tasks end in time");
        history.close().await.unwrap();
        drop((history, store));
        let (limits, candles) = (limits.clone(), candles.clone());
        let build = Build { limits, candles, folder, ..Build::default() };
        let (history, store) = service(&build, &nodes, &clock, &disk);
        let Build { limits, candles, folder, .. } = build;
        Self { model, nodes, history, store, limits, clock, disk, folder, candles }
    }

    pub(crate) fn request(wallet: Wallet, want: Extent) -> WalkRequest {
        let window = Duration::from_secs(3600);
        WalkRequest {
            wallet,
            key: KeyId(1),
            quota: None,
            resume: None,
            filter: Filter::default(),
            follow: false,
            want,
            window,
        }
    }

    pub(crate) fn walk(&self, wallet: Wallet, want: Extent, resume: Option<Cursor>) -> Walk {
        let resume = resume.map(Box::new);
        self.history.walk(WalkRequest { resume, ..Self::request(wallet, want) }).unwrap()
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        for node in &self.nodes {
            node.set_faults(faults.clone());
        }
    }

    pub(crate) fn calls(&self) -> u64 {
        self.nodes.iter().map(|node| node.stats().calls_total()).sum()
    }

    pub(crate) fn now(&self) -> UnixMillis {
        self.clock.now()
    }

    /// The model's rows, newest first.
    pub(crate) fn truth(&self, wallet: Wallet) -> Vec<Fact> {
        facts(&self.model, wallet.address)
    }
}

/// Walks to the end.
pub(crate) async fn finish(walk: &mut Walk) -> (Vec<Row>, End) {
    let mut all = Vec::new();
    loop {
        match walk.next().await {
            Step::Rows(rows) => all.extend(rows),
            Step::End(end) => return (all, end),
        }
    }
}

/// Pages of `size` to the end, as a client reads them.
pub(crate) async fn pages(world: &World, wallet: Wallet, size: u64) -> Vec<Row> {
    let (mut all, mut resume) = (Vec::new(), None);
    loop {
        let mut walk = world.walk(wallet, Extent::Rows(size), resume);
        let (rows, end) = finish(&mut walk).await;
        assert!(u64::try_from(rows.len()).unwrap() <= size);
        all.extend(rows);
        if end.complete && !end.more {
            return all;
        }
        resume = Some(walk.cursor());
    }
}
