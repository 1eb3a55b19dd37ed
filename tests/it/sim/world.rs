//! The world of one seed: a chain, its nodes, their faults, wallets, and a disk under the service.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use blotter::demo::evm::TradeKind;
use blotter::demo::{DemoTransport, Faults};
use blotter::domain::{Clock, Height, KeyId, TxId, Wallet};
use blotter::history::{Capacity, History, HistoryLimits, HistoryParts, Tasks};
use blotter::registry::Registry;
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, Transport};
use blotter::sources::{SolanaLimits, Source};
use blotter::store::{Store, StoreOptions};

use super::chain::Chain;
use super::clock::JumpClock;
use super::dice::Dice;
use super::peer::{Peer, Role};
use super::refusing::{Bad, Refusing};
use super::strays::{Straying, Strays};
use super::truth::{Mark, Truth};
use super::way::Way;
use super::{evm, seeds, solana};
use crate::support::disk::{Disk, Kept};
use crate::support::ready::now;

const TASKS_END: Duration = Duration::from_secs(5);

/// What a service is configured with; the same over all its starts.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "what a world has, each by itself")]
pub(super) struct Setup {
    pub(super) endpoints: Vec<(Option<usize>, Option<usize>)>,
    pub(super) limits: HistoryLimits,
    pub(super) solana: solana::Settings,
    pub(super) pool_seed: u32,
    /// All nodes but the first lag, calls go one by one to any of them, and most trades are done by
    /// keepers, who name only the wallet's token accounts.
    pub(super) torn: bool,
    /// An endpoint that refuses everything.
    pub(super) bad: Option<Bad>,
    /// A node's pages of full transactions lack some that lists show.
    pub(super) lying_pages: bool,
    /// An endpoint of each kind lies in agreement with what is known already.
    pub(super) hostile: bool,
    /// Nonces count what the wallets sent.
    pub(super) counted: bool,
    /// All trades are of this kind.
    pub(super) only: Option<TradeKind>,
    /// Nodes that another chain's may stand in for.
    pub(super) strays: Option<Arc<Strays>>,
}

/// The world that a seed creates before any service runs.
pub(super) struct Seeded {
    pub(super) chain: Chain,
    pub(super) peers: Vec<Peer>,
    pub(super) wallets: Vec<Wallet>,
    pub(super) setup: Setup,
}

pub(super) struct World {
    pub(super) way: Way,
    pub(super) chain: Chain,
    pub(super) peers: Vec<Peer>,
    pub(super) wallets: Vec<Wallet>,
    pub(super) truths: RefCell<Vec<Truth>>,
    pub(super) history: History,
    pub(super) source: Source,
    pub(super) store: Store,
    pub(super) disk: Disk,
    /// Which trades each key was ever handed.
    pub(super) handed: RefCell<BTreeMap<KeyId, HashSet<Mark>>>,
    /// Usage may be behind what was delivered, because a crash lost counts.
    pub(super) forgot: bool,
    /// The chain was replaced at some time.
    pub(super) forked: bool,
    pub(super) crashes: u64,
    pub(super) setup: Setup,
    pub(super) clock: JumpClock,
    /// A transaction of a wallet that no node gives, and never will.
    pub(super) poison: Option<TxId>,
    /// The transaction of these that look-ups by id fail on, rather than find nothing.
    pub(super) failing: Option<TxId>,
    /// A listed transaction was set aside at some time: nodes fell behind it after it was listed, or
    /// failed on it.
    pub(super) set_aside: Cell<bool>,
    registry: Arc<Registry>,
}

impl World {
    /// Whether rows may come late into a span that was read, because the read was not accepted.
    pub(super) fn has_doubts(&self) -> bool {
        self.way.has_doubts() || self.setup.lying_pages || self.set_aside.get()
    }

    /// Whether what was delivered may differ from what is true now.
    pub(super) fn is_uncertain(&self) -> bool {
        self.forked || self.has_doubts()
    }

    pub(super) fn new(way: Way, seed: u64, dice: &mut Dice) -> Self {
        let registry = Arc::new(Registry::embedded().unwrap());
        let mut seeded = match way {
            Way::Solana => solana::seeded(seed, dice),
            Way::Logs | Way::Explorer | Way::Transfers | Way::Portal | Way::Lists | Way::Events => {
                evm::seeded(way, &registry, seed, dice)
            }
        };
        seeded.setup.strays = seeds::strays(seed).then(|| Strays::of(&seeded, seed));
        Self::of(way, registry, seeded)
    }

    /// One endpoint of each kind that a way needs, and one wallet.
    pub(super) fn plain(way: Way) -> Self {
        let registry = Arc::new(Registry::embedded().unwrap());
        let seeded = evm::plain(way, &registry);
        Self::of(way, registry, seeded)
    }

    pub(super) fn in_bursts(way: Way, burst: u32) -> Self {
        let registry = Arc::new(Registry::embedded().unwrap());
        let seeded = evm::in_bursts(way, &registry, burst);
        Self::of(way, registry, seeded)
    }

    /// Two endpoints of each kind, of which one may refuse everything.
    pub(super) fn doubled(way: Way, bad: Option<Bad>) -> Self {
        Self::copied(way, 2, bad)
    }

    /// So many endpoints of each kind, of which one may refuse everything.
    pub(super) fn copied(way: Way, copies: u64, bad: Option<Bad>) -> Self {
        let registry = Arc::new(Registry::embedded().unwrap());
        let mut seeded = if way == Way::Solana {
            solana::plain_of(copies, bad.is_some_and(|bad| !bad.seed.is_multiple_of(2)))
        } else {
            evm::plain_of(way, &registry, usize::try_from(copies).unwrap())
        };
        seeded.setup.bad = bad;
        Self::of(way, registry, seeded)
    }

    /// An account without code by account lists, with so many endpoints of each kind.
    pub(super) fn counted(way: Way, copies: usize, is_plain: bool) -> Self {
        let registry = Arc::new(Registry::embedded().unwrap());
        let seeded = evm::counted(way, &registry, copies, is_plain);
        Self::of(way, registry, seeded)
    }

    fn of(way: Way, registry: Arc<Registry>, seeded: Seeded) -> Self {
        let Seeded { chain, peers, wallets, setup } = seeded;
        let truths = wallets.iter().map(|wallet| Truth::of(&chain, wallet.address)).collect();
        let (clock, disk) = (JumpClock::start(), Disk::default());
        let source = source(&chain, &registry, &peers, &setup, &clock);
        let (history, store) = service(&setup, &registry, &wallets, &source, &clock, &disk);
        Self {
            way,
            chain,
            peers,
            wallets,
            truths: RefCell::new(truths),
            history,
            source,
            store,
            disk,
            handed: RefCell::default(),
            forgot: false,
            forked: false,
            crashes: 0,
            setup,
            clock,
            poison: None,
            failing: None,
            set_aside: Cell::new(false),
            registry,
        }
    }

    /// Kills the process and starts it on what the disk kept.
    pub(super) async fn crash(&mut self, kept: Kept) {
        let image = self.disk.image(kept);
        self.history.stop();
        assert!(self.history.tasks().shutdown(TASKS_END).await, "tasks do not end");
        self.forgot = true;
        self.crashes += 1;
        self.start(Disk::holding(image));
    }

    /// Stops and starts it in order.
    pub(super) async fn restart(&mut self) {
        self.history.stop();
        assert!(self.history.tasks().shutdown(TASKS_END).await, "tasks do not end");
        self.forgot |= self.history.close().await.is_err();
        self.start(Disk::holding(self.disk.image(Kept::All)));
    }

    fn start(&mut self, disk: Disk) {
        self.disk = disk;
        self.source = source(&self.chain, &self.registry, &self.peers, &self.setup, &self.clock);
        let (history, store) = service(
            &self.setup,
            &self.registry,
            &self.wallets,
            &self.source,
            &self.clock,
            &self.disk,
        );
        (self.history, self.store) = (history, store);
        now(self.history.resume_pending()).unwrap();
    }

    /// Something happens on the chain.
    pub(super) fn event(&self, dice: &mut Dice) {
        let wallet = dice.pick(&self.wallets);
        match dice.range(0, 3) {
            0 => self.chain.advance(dice.pick(&[1, 20, 500, 50_000])),
            _ => self.chain.arrive(wallet.address, dice.pick(&[1, 1, 2, 5, 20])),
        }
        self.learn();
    }

    /// Brings the truths up to the head.
    pub(super) fn learn(&self) {
        for (truth, wallet) in self.truths.borrow_mut().iter_mut().zip(&self.wallets) {
            truth.advance(&self.chain, wallet.address);
        }
    }

    /// Replaces the chain from some trade of a wallet on.
    pub(super) fn reorganise(&mut self, dice: &mut Dice) {
        let wallet = dice.pick(&self.wallets);
        let deep = usize::try_from(dice.range(0, 30)).unwrap();
        if let Some(height) = self.chain.trade_height(wallet.address, deep) {
            self.fork_at(height);
        }
    }

    /// Replaces the chain from a trade of a wallet on, by how many newer ones it has.
    pub(super) fn reorganise_at(&mut self, wallet: usize, depth: usize) -> bool {
        let height = self.chain.trade_height(self.wallets[wallet].address, depth);
        height.inspect(|height| self.fork_at(*height)).is_some()
    }

    /// Replaces the newest blocks, above all rows: other transactions are in their place.
    pub(super) fn reorganise_above(&mut self, dice: &mut Dice) {
        let (wallet, head) = (dice.pick(&self.wallets), self.chain.head());
        let newest = |wallet: &Wallet| self.chain.trade_height(wallet.address, 0);
        let newest = self.wallets.iter().filter_map(newest).max();
        let from = newest.unwrap_or(0).max(head.saturating_sub(dice.pick(&[2, 50, 1_000]))) + 1;
        if from >= head {
            return;
        }
        self.chain.set_head(from);
        self.chain.arrive(wallet.address, dice.pick(&[1, 3]));
        self.chain.set_head(head.max(self.chain.head()));
        self.fork_at(from);
    }

    /// Limits the store to less than it holds: wallets that are not in use are evicted; if there
    /// are none, loads end with an error.
    pub(super) fn crowd(&self, dice: &mut Dice) {
        let max = u64::try_from(self.disk.bytes()).unwrap() / 100 * dice.pick(&[50, 90, 100]);
        self.history.set_capacity(Capacity { max_bytes: Some(max), min_free_bytes: 0 });
    }

    fn fork_at(&mut self, height: Height) {
        super::trouble::say(&format!("other blocks from {height} on, head {}", self.chain.head()));
        self.chain.reorg(height);
        self.forked = true;
        for (truth, wallet) in self.truths.borrow_mut().iter_mut().zip(&self.wallets) {
            truth.fork(&self.chain, wallet.address);
        }
    }

    pub(super) fn set_faults(&self, mut of: impl FnMut() -> Faults) {
        self.peers.iter().for_each(|peer| peer.node.set_faults(of()));
    }

    pub(super) fn requests(&self) -> u64 {
        self.peers.iter().map(|peer| peer.node.stats().requests).sum()
    }

    /// No endpoint got more concurrent requests than it is configured for.
    pub(super) fn check_manners(&self) {
        for (peer, (concurrency, batch)) in self.peers.iter().zip(&self.setup.endpoints) {
            let (stats, usual) = (peer.node.stats(), PoolLimits::default());
            let at_once = u64::try_from(concurrency.unwrap_or(usual.concurrency_default)).unwrap();
            let seen = stats.concurrent_max;
            assert!(seen <= at_once, "{seen} at once of {at_once} at {:?}", peer.role);
            // Tron's nodes take what is asked of them in one request of its own kind.
            let batch = batch.unwrap_or(usual.batch_default);
            assert!(self.way.is_tron() || stats.batch_max <= batch, "{}", stats.batch_max);
        }
    }
}

pub(super) fn setup(nodes: usize, dice: &mut Dice) -> Setup {
    let endpoint = |_| {
        let concurrency = [None, Some(1), Some(2), Some(8), Some(30)];
        (dice.pick(&concurrency), dice.pick(&[None, Some(1), Some(3), Some(20)]))
    };
    let endpoints = (0..nodes).map(endpoint).collect();
    let limits = HistoryLimits {
        rows_per_step_max: dice.pick(&[1, 3, 40, 1000]),
        background_loads_max: dice.pick(&[1, 8]),
        background_slice: Duration::from_secs(dice.range(1, 30)),
        spans_max: dice.pick(&[2, 4, 64]),
        usage_wallets_cached_max: dice.pick(&[1, 10_000]),
        ..HistoryLimits::default()
    };
    let solana = SolanaLimits {
        chunk_max: dice.pick(&[1, 7, 50, 200]),
        run_ahead_max: dice.pick(&[20, 400]),
        list_ahead_max: dice.pick(&[30, 3000]),
        skipped_max: dice.pick(&[3, 5000]),
        ..SolanaLimits::default()
    };
    let solana = solana::Settings { limits: solana, references: false };
    let pool_seed = u32::try_from(dice.range(0, 1_000_000)).unwrap();
    let (torn, bad, lying_pages, hostile) = (false, None, false, false);
    let (counted, only, strays) = (false, None, None);
    Setup {
        endpoints,
        limits,
        solana,
        pool_seed,
        torn,
        bad,
        lying_pages,
        hostile,
        counted,
        only,
        strays,
    }
}

/// Pools of the endpoints of each kind, as one source.
fn source(
    chain: &Chain,
    registry: &Arc<Registry>,
    peers: &[Peer],
    setup: &Setup,
    clock: &JumpClock,
) -> Source {
    let hosts = peers.iter().enumerate().map(|(at, peer)| (peer.host(at), peer.node.clone()));
    let transport: Arc<dyn Transport> = Arc::new(DemoTransport::new(hosts));
    let transport = match setup.bad {
        Some(bad) => Arc::new(Refusing::new(transport, bad)),
        None => transport,
    };
    let transport = match &setup.strays {
        Some(strays) => Arc::new(Straying { inner: transport, strays: Arc::clone(strays) }),
        None => transport,
    };
    let pool =
        |fits: fn(&Role) -> bool| {
            let endpoint = |(at, (peer, &(concurrency, batch))): (usize, (&Peer, &_))| {
                EndpointConfig { batch, concurrency, ..EndpointConfig::new(peer.url(at)) }
            };
            let all = peers.iter().zip(&setup.endpoints).enumerate();
            let endpoints: Vec<_> = all.filter(|(_, (p, _))| fits(&p.role)).map(endpoint).collect();
            let clock: Arc<dyn Clock> = Arc::new(clock.clone());
            let (limits, transport) = (PoolLimits::default(), Arc::clone(&transport));
            let there = !endpoints.is_empty();
            there.then(|| Pool::new(endpoints, transport, limits, clock, setup.pool_seed))
        };
    match chain {
        Chain::Solana(_) => {
            solana::source(&setup.solana, pool(|role| *role == Role::Solana).unwrap(), registry)
        }
        Chain::Evm(_, chain, way) => evm::source(*way, chain, registry, pool),
    }
}

fn service(
    setup: &Setup,
    registry: &Arc<Registry>,
    wallets: &[Wallet],
    source: &Source,
    clock: &JumpClock,
    disk: &Disk,
) -> (History, Store) {
    let store = Store::in_step(disk.clone(), StoreOptions { cache_bytes: 1 << 20 }).unwrap();
    let history = History::new(HistoryParts {
        store: store.clone(),
        registry: Arc::clone(registry),
        sources: HashMap::from([(wallets[0].chain, source.clone())]),
        candles: None,
        clock: Arc::new(clock.clone()),
        limits: setup.limits.clone(),
        tasks: Tasks::new(),
    });
    (history, store)
}
