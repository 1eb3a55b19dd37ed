//! A chain, a wallet on it, and the engine that reads it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use blotter::demo::evm::{self, EvmModel};
use blotter::demo::solana::{self, SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport, Faults, evm::tron};
use blotter::domain::{Address, Clock, Filter, KeyId, Wallet};
use blotter::history::{Extent, History, HistoryLimits, HistoryParts, Step, Tasks, WalkRequest};
use blotter::registry::{Chain, Registry};
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, Transport};
use blotter::sources::{
    Discovery, EvmLimits, EvmParts, EvmSource, SolanaLimits, SolanaSource, Source, TronLimits,
    TronSource,
};
use blotter::store::{Store, StoreOptions};
use tokio::time::Instant;

use crate::TRIP;
use crate::paused::{Disk, TestClock};
use crate::seen::{Counts, Seen};

/// How a wallet's transactions are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Solana,
    /// By pages of full transactions.
    SolanaPages,
    Evm(Discovery),
    TronLists,
    TronEvents,
}

impl Way {
    fn slug(self) -> &'static str {
        match self {
            Self::Solana | Self::SolanaPages => "sol",
            Self::Evm(_) => "eth",
            Self::TronLists | Self::TronEvents => "tron",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Solana => "Solana",
            Self::SolanaPages => "Solana by pages",
            Self::Evm(Discovery::Portal) => "Ethereum by gateway",
            Self::Evm(Discovery::Explorer) => "Ethereum by lists",
            Self::Evm(Discovery::Logs | Discovery::Alchemy) => "Ethereum by logs",
            Self::TronLists => "Tron by lists",
            Self::TronEvents => "Tron by events",
        }
    }

    /// The inverse of `trades`.
    pub(crate) fn transactions(self, trades: u64) -> u64 {
        match self {
            Self::Solana | Self::SolanaPages => trades * 92 / 80,
            Self::Evm(_) | Self::TronLists | Self::TronEvents => trades * 94 / 70,
        }
    }

    /// Trades of a wallet that has about so many transactions that did not fail: the plans of the
    /// chains mix in others.
    fn trades(self, transactions: u64) -> u64 {
        match self {
            Self::Solana | Self::SolanaPages => transactions * 80 / 92,
            Self::Evm(_) | Self::TronLists | Self::TronEvents => transactions * 70 / 94,
        }
    }
}

/// What an endpoint allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    /// Calls a second; a batch costs as many as it holds.
    pub(crate) rate: Option<u64>,
    pub(crate) concurrency: u64,
    pub(crate) batch: u64,
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

    /// The least time: for all distinct calls at the rate, for transactions and lists by turns of
    /// as many requests as may be open, or page after page of an index next to the node; and one
    /// round trip.
    pub(crate) fn least(&self, counts: &Counts) -> Duration {
        let calls = counts.distinct() - counts.index_pages();
        let requests = counts.batched().div_ceil(self.batch) + counts.single() + counts.pages();
        let by_turns = TRIP * u32::try_from(requests.div_ceil(self.concurrency)).unwrap();
        let by_rate = self.rate.map(|rate| Duration::from_millis(calls * 1_000 / rate));
        let by_index = TRIP * u32::try_from(counts.index_pages()).unwrap();
        by_turns.max(by_rate.unwrap_or_default()).max(by_index) + TRIP
    }
}

enum Model {
    Solana(SolanaModel),
    Evm(EvmModel),
}

impl Model {
    fn add(&self, name: &str, trades: u64) -> Address {
        match self {
            Self::Solana(model) => model.add_named(name, WalletPlan::trades(trades)),
            Self::Evm(model) => model.add_named(name, evm::WalletPlan::trades(trades)),
        }
    }

    fn node(&self, way: Way, trip: Duration) -> DemoNode {
        let node = match (self, way) {
            (Self::Solana(model), _) => {
                let node = DemoNode::new(model.clone(), 1);
                let transactions_for_address = way == Way::SolanaPages;
                let known = node.options();
                node.set_options(solana::NodeOptions { transactions_for_address, ..known });
                node
            }
            (Self::Evm(model), Way::TronLists | Way::TronEvents) => {
                let node = DemoNode::tron(model.clone(), 1);
                let lists = way == Way::TronLists;
                node.set_options(tron::NodeOptions { lists, ..tron::NodeOptions::default() });
                node
            }
            (Self::Evm(model), Way::Solana | Way::SolanaPages | Way::Evm(_)) => {
                DemoNode::evm(model.clone(), 1)
            }
        };
        node.set_faults(Faults::latency(trip));
        node
    }

    fn index(&self, way: Way) -> Option<DemoNode> {
        let node = match (self, way) {
            (Self::Evm(model), Way::Evm(Discovery::Portal)) => DemoNode::portal(model.clone(), 3),
            (Self::Evm(model), Way::Evm(Discovery::Explorer)) => {
                DemoNode::explorer(model.clone(), 2)
            }
            (Self::Solana(_) | Self::Evm(_), _) => return None,
        };
        node.set_faults(Faults::latency(TRIP));
        Some(node)
    }
}

pub(crate) struct World {
    way: Way,
    history: History,
    seen: Arc<Seen>,
    pub(crate) wallets: Vec<Wallet>,
}

/// How one wallet was read: time to its first rows and to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read {
    pub(crate) first: Duration,
    pub(crate) whole: Duration,
    pub(crate) rows: usize,
    /// Of the rows.
    pub(crate) transactions: u64,
}

impl World {
    /// An endpoint for each of `trips`, each as far away as it says.
    pub(crate) fn new(
        way: Way,
        wallets: usize,
        transactions: u64,
        allowed: Allowed,
        trips: &[Duration],
    ) -> Self {
        let registry = Arc::new(Registry::embedded().unwrap());
        let chain = registry.chain_named(way.slug()).unwrap().clone();
        let model = match way {
            Way::Solana | Way::SolanaPages => Model::Solana(SolanaModel::new(1)),
            Way::Evm(_) | Way::TronLists | Way::TronEvents => Model::Evm(EvmModel::new(1, &chain)),
        };
        let add = |at: usize| model.add(&format!("measured{at}"), way.trades(transactions));
        let wallets: Vec<Wallet> =
            (0..wallets).map(|at| Wallet { chain: chain.id, address: add(at) }).collect();
        let name = |at: usize| format!("node{at}");
        let nodes = trips.iter().enumerate().map(|(at, trip)| (name(at), model.node(way, *trip)));
        let index = model.index(way).map(|node| ("index".to_owned(), node));
        let transport = DemoTransport::new(nodes.chain(index));
        let first = wallets.first().map(|wallet| wallet.address.bytes().to_vec());
        let by_request = matches!(way, Way::TronLists | Way::TronEvents);
        let seen = Seen::new(transport, hex::encode(first.unwrap_or_default()), by_request);
        let clock = TestClock::start();
        let ends = (0..trips.len()).map(|at| allowed.endpoint(&format!("http://{}", name(at))));
        let pools = Pools { seen: &seen, clock: &clock };
        let source = pools.source(way, &chain, &registry, (ends.collect(), allowed));
        let history = History::new(HistoryParts {
            store: Store::in_step(Disk::default(), StoreOptions { cache_bytes: 64 << 20 }).unwrap(),
            registry,
            sources: HashMap::from([(chain.id, source)]),
            candles: None,
            clock,
            limits: HistoryLimits::default(),
            tasks: Tasks::new(),
        });
        Self { way, history, seen, wallets }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.seen.counts()
    }

    /// Reads all its wallets at once.
    pub(crate) async fn read(&self) -> Vec<Read> {
        let each = self.wallets.iter().map(|one| self.read_one(*one, Extent::All));
        futures_util::future::join_all(each).await
    }

    /// Reads some of the newest rows of each wallet, one after the other.
    pub(crate) async fn read_newest(&self, rows: u64) -> Vec<Read> {
        let mut reads = Vec::new();
        for wallet in &self.wallets {
            reads.push(self.read_one(*wallet, Extent::Rows(rows)).await);
        }
        reads
    }

    async fn read_one(&self, wallet: Wallet, want: Extent) -> Read {
        let began = Instant::now();
        let window = Duration::from_secs(36_000);
        let request = WalkRequest {
            wallet,
            key: KeyId(1),
            quota: None,
            resume: None,
            filter: Filter::default(),
            follow: false,
            want,
            window,
        };
        let mut walk = self.history.walk(request).unwrap();
        let (mut first, mut rows, mut ids) = (None, 0, HashSet::new());
        loop {
            match walk.next().await {
                Step::Rows(more) => {
                    first.get_or_insert_with(|| began.elapsed());
                    rows += more.len();
                    ids.extend(more.iter().map(|row| row.bare.key.tx));
                }
                Step::End(end) => {
                    // A node that keeps no lists returns events as far down as it keeps blocks.
                    let is_whole = (end.complete || want != Extent::All) && end.error.is_none();
                    assert!(is_whole, "{:?} {end:?}", self.way);
                    let first = first.unwrap_or_default();
                    let transactions = u64::try_from(ids.len()).unwrap();
                    return Read { first, whole: began.elapsed(), rows, transactions };
                }
            }
        }
    }
}

struct Pools<'a> {
    seen: &'a Arc<Seen>,
    clock: &'a Arc<dyn Clock>,
}

impl Pools<'_> {
    fn pool(&self, endpoints: Vec<EndpointConfig>) -> Pool {
        let seen = Arc::clone(self.seen);
        let transport: Arc<dyn Transport> = seen;
        Pool::new(endpoints, transport, PoolLimits::default(), Arc::clone(self.clock), 7)
    }

    fn source(
        &self,
        way: Way,
        chain: &Chain,
        registry: &Arc<Registry>,
        (endpoints, allowed): (Vec<EndpointConfig>, Allowed),
    ) -> Source {
        let rpc = self.pool(endpoints);
        match way {
            Way::Solana | Way::SolanaPages => {
                let genesis = chain.genesis_hash.clone();
                let source = SolanaSource::new(rpc, genesis, SolanaLimits::default());
                Source::Solana(source.with_busy_account(chain))
            }
            Way::Evm(discovery) => {
                let concurrency = Some(usize::try_from(allowed.concurrency).unwrap());
                let index = EndpointConfig { concurrency, ..EndpointConfig::new("http://index/") };
                let index = || self.pool(vec![index.clone()]);
                Source::Evm(EvmSource::new(EvmParts {
                    rpc,
                    explorer: (discovery == Discovery::Explorer).then(index),
                    portal: (discovery == Discovery::Portal).then(index),
                    discovery: vec![discovery],
                    limits: EvmLimits::default(),
                    registry: Arc::clone(registry),
                    chain: chain.clone(),
                }))
            }
            Way::TronLists | Way::TronEvents => {
                Source::Tron(TronSource::new(rpc, chain, TronLimits::default()))
            }
        }
    }
}
