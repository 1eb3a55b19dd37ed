//! The world of one seed: a chain, its nodes, their faults, wallets, and a disk under the service.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use blotter::demo::solana::{Crowd, NodeOptions, SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport, Faults, Rate};
use blotter::domain::{ChainId, Clock, KeyId, Wallet};
use blotter::history::{History, HistoryLimits, HistoryParts, Tasks};
use blotter::registry::Registry;
use blotter::store::{Store, StoreOptions};
use blotter::upstream::{
    EndpointConfig, Pool, PoolLimits, SolanaLimits, SolanaSource, Source, Transport,
};

use super::dice::Dice;
use super::truth::{Mark, Truth};
use crate::support::disk::{Disk, Kept};
use crate::support::paused::TestClock;

pub(super) const SOL: ChainId = ChainId(1);
const TASKS_END: Duration = Duration::from_secs(5);

/// What a service is configured with; the same over all its starts.
#[derive(Debug)]
pub(super) struct Setup {
    endpoints: Vec<(Option<usize>, Option<usize>)>,
    limits: HistoryLimits,
    solana: SolanaLimits,
    pool_seed: u32,
    /// Reference pools tell prices.
    references: bool,
    /// All nodes but the first lag, calls go one by one to any of them, and most trades are done by
    /// keepers, who name only the wallet's token accounts.
    pub(super) torn: bool,
}

pub(super) struct World {
    pub(super) model: SolanaModel,
    pub(super) nodes: Vec<DemoNode>,
    pub(super) wallets: Vec<Wallet>,
    pub(super) truths: RefCell<Vec<Truth>>,
    pub(super) history: History,
    pub(super) store: Store,
    pub(super) disk: Disk,
    /// Which trades each key was ever handed.
    pub(super) handed: RefCell<BTreeMap<KeyId, HashSet<Mark>>>,
    /// Usage may be behind what was handed out: a crash forgot some.
    pub(super) forgot: bool,
    /// The chain was replaced at some time.
    pub(super) forked: bool,
    pub(super) crashes: u64,
    pub(super) setup: Setup,
    clock: Arc<dyn Clock>,
}

impl World {
    pub(super) fn new(seed: u64, dice: &mut Dice) -> Self {
        let model = SolanaModel::new(seed);
        let torn = Dice::new(seed, 501).one_in(6);
        let count = dice.pick(&[1, 1, 2, 2, 3]).max(if torn { 3 } else { 1 });
        let nodes: Vec<DemoNode> =
            (0..count).map(|at| DemoNode::new(model.clone(), dice.next() ^ at)).collect();
        for node in &nodes {
            let (transactions_for_address, transaction_index) = (dice.one_in(5), !dice.one_in(3));
            let known = NodeOptions::default();
            node.set_options(NodeOptions { transactions_for_address, transaction_index, ..known });
        }
        let wallets: Vec<Wallet> = (0..dice.pick(&[1, 1, 2, 3]))
            .map(|at: u64| {
                let mut plan = plan(&model, dice);
                if torn {
                    plan.keeper_percent = 80;
                }
                Wallet { chain: SOL, address: model.add_named(&format!("wallet {at}"), plan) }
            })
            .collect();
        let truths = wallets.iter().map(|wallet| Truth::of(&model, wallet.address)).collect();
        let mut setup =
            Setup { references: Dice::new(seed, 500).one_in(2), torn, ..setup(nodes.len(), dice) };
        // Often new heights come in while a walk waits for older ones.
        let freshness = Dice::new(seed, 502).pick(&[200, 2_000, 10_000]);
        setup.limits.freshness = Duration::from_millis(freshness);
        if torn {
            setup.endpoints.iter_mut().for_each(|(_, batch)| *batch = Some(1));
        }
        let clock = TestClock::start();
        let disk = Disk::default();
        let (history, store) = service(&setup, &nodes, &clock, &disk);
        Self {
            model,
            nodes,
            wallets,
            truths: RefCell::new(truths),
            history,
            store,
            disk,
            handed: RefCell::default(),
            forgot: false,
            forked: false,
            crashes: 0,
            setup,
            clock,
        }
    }

    /// Ends the process without a word and starts it on what the disk kept.
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
        let (history, store) = service(&self.setup, &self.nodes, &self.clock, &self.disk);
        (self.history, self.store) = (history, store);
        self.history.resume_pending().unwrap();
    }

    /// Something happens on the chain.
    pub(super) fn event(&self, dice: &mut Dice) {
        let wallet = dice.pick(&self.wallets);
        match dice.range(0, 3) {
            0 => drop(self.model.advance(dice.pick(&[1, 20, 500, 50_000]))),
            _ => drop(self.model.arrive(wallet.address, dice.pick(&[1, 1, 2, 5, 20]))),
        }
        self.learn();
    }

    /// Brings the truths up to the head.
    pub(super) fn learn(&self) {
        for (truth, wallet) in self.truths.borrow_mut().iter_mut().zip(&self.wallets) {
            truth.advance(&self.model, wallet.address);
        }
    }

    /// Replaces the chain from some trade of a wallet on.
    pub(super) fn reorganise(&mut self, dice: &mut Dice) {
        let wallet = dice.pick(&self.wallets);
        let deep = usize::try_from(dice.range(0, 30)).unwrap();
        let Some(trade) = self.model.truth(wallet.address).take(deep + 1).last() else { return };
        self.model.reorg(trade.slot);
        self.forked = true;
        for (truth, wallet) in self.truths.borrow_mut().iter_mut().zip(&self.wallets) {
            truth.fork(&self.model, wallet.address);
        }
    }

    pub(super) fn set_faults(&self, mut of: impl FnMut() -> Faults) {
        self.nodes.iter().for_each(|node| node.set_faults(of()));
    }

    pub(super) fn requests(&self) -> u64 {
        self.nodes.iter().map(|node| node.stats().requests).sum()
    }

    /// No endpoint was asked for more at once than it is configured for.
    pub(super) fn check_manners(&self) {
        for (node, (concurrency, batch)) in self.nodes.iter().zip(&self.setup.endpoints) {
            let (stats, usual) = (node.stats(), PoolLimits::default());
            let at_once = u64::try_from(concurrency.unwrap_or(usual.concurrency_default)).unwrap();
            assert!(stats.concurrent_max <= at_once, "{} at once", stats.concurrent_max);
            assert!(stats.batch_max <= batch.unwrap_or(usual.batch_default), "{}", stats.batch_max);
        }
    }
}

fn setup(nodes: usize, dice: &mut Dice) -> Setup {
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
    let pool_seed = u32::try_from(dice.range(0, 1_000_000)).unwrap();
    Setup { endpoints, limits, solana, pool_seed, references: false, torn: false }
}

fn service(
    setup: &Setup,
    nodes: &[DemoNode],
    clock: &Arc<dyn Clock>,
    disk: &Disk,
) -> (History, Store) {
    let hosts = nodes.iter().enumerate().map(|(at, node)| (format!("node{at}"), node.clone()));
    let transport: Arc<dyn Transport> = Arc::new(DemoTransport::new(hosts));
    let endpoint = |(at, &(concurrency, batch))| EndpointConfig {
        batch,
        concurrency,
        ..EndpointConfig::new(format!("http://node{at}/planted-secret"))
    };
    let endpoints = setup.endpoints.iter().enumerate().map(endpoint).collect();
    let (clock, limits) = (Arc::clone(clock), PoolLimits::default());
    let pool = Pool::new(endpoints, transport, limits, Arc::clone(&clock), setup.pool_seed);
    let registry = Arc::new(Registry::embedded().unwrap());
    let genesis = registry.chain(SOL).unwrap().genesis_hash.clone();
    let source = SolanaSource::new(pool, genesis, setup.solana.clone());
    let chain = registry.chain(SOL).unwrap();
    let source =
        Source::Solana(if setup.references { source.with_references(chain) } else { source });
    let store = Store::in_step(disk.clone(), StoreOptions { cache_bytes: 1 << 20 }).unwrap();
    let history = History::new(HistoryParts {
        store: store.clone(),
        registry,
        sources: HashMap::from([(SOL, source)]),
        candles: None,
        clock,
        limits: setup.limits.clone(),
        tasks: Tasks::new(),
    });
    (history, store)
}

fn plan(model: &SolanaModel, dice: &mut Dice) -> WalletPlan {
    let trades = match dice.range(0, 39) {
        0..=3 => 0,
        4..=7 => dice.range(1, 3),
        8..=29 => dice.range(4, 60),
        30..=37 => dice.range(60, 250),
        38 => dice.range(250, 500),
        _ => dice.pick(&[100, 600, 2000]),
    };
    let usual = WalletPlan::trades(trades);
    let head = model.head();
    let apart = dice.pick(&[1, 2, 10, 100_000, 1_000_000]);
    let last_slot = head - dice.pick(&[0, 1, 200, 5000]);
    let burst = dice.pick(&[1, 3, 20, 64]).min(u32::try_from(trades).unwrap().max(1));
    let crowd = || Crowd { start: trades / 3, count: (trades / 2).max(1) };
    WalletPlan {
        failed_percent: dice.pick(&[0, 8, 60]),
        noise_percent: dice.pick(&[0, 12, 30]),
        keeper_percent: dice.pick(&[0, 20, 80]),
        open_accounts: dice.pick(&[0, 6, 6, 40]),
        spam_accounts: dice.pick(&[0, 4]),
        // Up to five transactions a trade.
        first_slot: last_slot.saturating_sub((trades + 2) * 6 * apart).max(1000),
        last_slot,
        burst,
        crowd: dice.one_in(6).then(crowd),
        live_every: dice.one_in(4).then_some(900),
        ..usual
    }
}

/// Each kind with its own chance, most of them off.
pub(super) fn faults(dice: &mut Dice) -> Faults {
    if dice.one_in(8) {
        return Faults::latency(Duration::from_millis(dice.range(0, 400)));
    }
    let strength = dice.pick(&[20, 60, 150]);
    let mut rate = || if dice.one_in(3) { Rate(strength) } else { Rate::NEVER };
    let mut faults = Faults {
        too_many: rate(),
        too_many_with_wait: rate(),
        unavailable: rate(),
        silence: rate(),
        slow_body: rate(),
        cut_body: rate(),
        garbage: rate(),
        html: rate(),
        reordered: rate(),
        wrong_id: rate(),
        null_result: rate(),
        busy: rate(),
        duplicate: rate(),
        lost: rate(),
        empty_page: rate(),
        flipped_order: rate(),
        head_back: rate(),
        ..Faults::default()
    };
    // From dice of its own, so that the other faults stay what they were.
    let mut apart = Dice::new(dice.clone().next(), 503);
    faults.short_page = if apart.one_in(3) { Rate(strength) } else { Rate::NEVER };
    faults.head_back_slots = dice.pick(&[1, 50, 3000]);
    faults.latency = Duration::from_millis(dice.pick(&[0, 1, 80, 900]));
    faults.latency_jitter = Duration::from_millis(dice.pick(&[0, 100, 3000]));
    faults.requests_per_second = dice.one_in(6).then_some(20);
    faults
}
