//! How many trades of whole demo wallets get a native value, what that costs in calls, and how far
//! learned prices are off.

#![expect(clippy::print_stderr, reason = "shows shares, calls and errors")]

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use blotter::demo::evm::{self, EvmModel, NodeOptions};
use blotter::demo::solana::{self, SolanaModel};
use blotter::demo::{DemoNode, DemoTransport};
use blotter::domain::{Address, Height, Price, Row, Side, TxId, Units, ValueSource, Wallet};
use blotter::history::{Extent, History, HistoryLimits, HistoryParts, Tasks};
use blotter::registry::{Chain, Registry};
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, Transport};
use blotter::sources::{
    Discovery, EvmLimits, EvmParts, EvmSource, SolanaLimits, SolanaSource, Source,
};
use blotter::store::Store;

use crate::support::prices::Errors;
use crate::support::script::Epoch;
use crate::support::trades::OPTIONS;
use crate::support::world::{World, finish};

/// Of each wallet.
const TRADES: u64 = 2_500;

enum Model {
    Solana(SolanaModel),
    Evm(Box<EvmModel>),
}

/// A row as the model made it.
struct True {
    tx: TxId,
    height: Height,
    side: Side,
    token: Address,
    units: Units,
    native: Option<Units>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum References {
    Readable,
    /// The chain has none.
    Absent,
    /// No node returns logs, and there is no gateway.
    Unreadable,
}

struct Demo {
    registry: Arc<Registry>,
    chain: Chain,
    model: Model,
}

impl Demo {
    fn new(slug: &str) -> Self {
        let registry = Arc::new(Registry::embedded().unwrap());
        let chain = registry.chain_named(slug).unwrap().clone();
        let model = if slug == "sol" {
            Model::Solana(SolanaModel::new(11))
        } else {
            Model::Evm(Box::new(EvmModel::new(11, &chain)))
        };
        Self { registry, chain, model }
    }

    fn source(&self, references: References) -> Source {
        let logs = references != References::Unreadable;
        let nodes = match &self.model {
            Model::Solana(model) => vec![DemoNode::new(model.clone(), 1)],
            Model::Evm(model) => {
                let model = || EvmModel::clone(model);
                vec![DemoNode::evm(model(), 1), DemoNode::explorer(model(), 2)]
            }
        };
        if !logs {
            nodes[0].set_options(NodeOptions { logs, ..NodeOptions::default() });
        }
        let names = ["demo.test/rpc", "demo.test/list"].map(str::to_owned);
        let transport: Arc<dyn Transport> =
            Arc::new(DemoTransport::new(names.into_iter().zip(nodes)));
        let pool = |path: &str| {
            let url = format!("https://demo.test/{path}");
            let endpoint = EndpointConfig { batch: Some(50), ..EndpointConfig::new(url) };
            let (transport, limits) = (Arc::clone(&transport), PoolLimits::default());
            Pool::new(vec![endpoint], transport, limits, Arc::new(Epoch), 7)
        };
        let rpc = pool("rpc");
        let mut chain = self.chain.clone();
        if references == References::Absent {
            (chain.reference_pools, chain.reference_ids) = (Vec::new(), Vec::new());
            chain.reference_vaults = Vec::new();
        }
        match &self.model {
            Model::Solana(_) => {
                let source = SolanaSource::new(rpc, None, SolanaLimits::default());
                Source::Solana(source.with_references(&chain))
            }
            Model::Evm(_) => Source::Evm(EvmSource::new(EvmParts {
                chain,
                registry: Arc::clone(&self.registry),
                rpc,
                explorer: (!logs).then(|| pool("list")),
                portal: None,
                discovery: vec![if logs { Discovery::Logs } else { Discovery::Explorer }],
                limits: EvmLimits::default(),
            })),
        }
    }

    fn history(&self, source: &Source) -> History {
        let backend = redb::backends::InMemoryBackend::new();
        History::new(HistoryParts {
            store: Store::in_step(backend, OPTIONS).unwrap(),
            registry: Arc::clone(&self.registry),
            sources: HashMap::from([(self.chain.id, source.clone())]),
            candles: None,
            clock: Arc::new(Epoch),
            limits: HistoryLimits::default(),
            tasks: Tasks::new(),
        })
    }

    fn wallet(&self, address: Address) -> Wallet {
        Wallet { chain: self.chain.id, address }
    }

    fn truth(&self, address: Address) -> Vec<True> {
        match &self.model {
            Model::Solana(model) => model
                .truth(address)
                .map(|t| True {
                    tx: t.signature,
                    height: t.slot,
                    side: t.side,
                    token: t.mint,
                    units: t.units,
                    native: t.native,
                })
                .collect(),
            Model::Evm(model) => model
                .truth(address)
                .map(|t| True {
                    tx: t.hash,
                    height: t.height,
                    side: t.side,
                    token: t.token,
                    units: t.units,
                    native: t.native,
                })
                .collect(),
        }
    }

    fn is_dollar(&self, token: &Address) -> bool {
        self.chain.stablecoins.contains(token)
    }

    /// What so many millionths of a dollar are worth by construction.
    fn worth(&self, dollars: Units, height: Height) -> Units {
        let Price(price) = match &self.model {
            Model::Solana(model) => model.price_at(height),
            Model::Evm(model) => model.price_at(height),
        };
        let whole = u32::from(self.chain.native.decimals) + 12 - 6;
        dollars * Units::from(10).pow(Units::from(whole)) / Units::from(price)
    }
}

fn calls(source: &Source) -> u64 {
    source.endpoints().iter().flat_map(|one| one.calls.values()).map(|n| n.sent).sum()
}

/// All rows of a wallet, once none waits for its value.
async fn settled(history: &History, wallet: Wallet) -> Vec<Row> {
    for _ in 0..200 {
        let mut walk = history.walk(World::request(wallet, Extent::All)).unwrap();
        let (rows, end) = finish(&mut walk).await;
        assert!(end.complete, "{end:?}");
        if rows.iter().all(|row| row.trade.valued != ValueSource::Pending) {
            return rows;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    panic!("rows wait for ever");
}

type Place = (TxId, Side, Address);

fn by_place(rows: &[Row]) -> HashMap<Place, &Row> {
    rows.iter().map(|row| ((row.trade.key.tx, row.trade.side, row.trade.mint), row)).collect()
}

/// Every row whose route passed through the native coin has exactly that value; of rows against
/// dollars alone at least 95 in a hundred have one, for few calls.
async fn check_share(slug: &str, calls_per_moment: (u64, u64)) {
    let demo = Demo::new(slug);
    let address = match &demo.model {
        Model::Solana(model) => model.add_named("whole", solana::WalletPlan::trades(TRADES)),
        Model::Evm(model) => model.add_named("whole", evm::WalletPlan::trades(TRADES)),
    };
    let mut asked = [0; 2];
    let mut rows = Vec::new();
    let both = [References::Absent, References::Readable];
    for (references, asked) in both.into_iter().zip(&mut asked) {
        let source = demo.source(references);
        rows = settled(&demo.history(&source), demo.wallet(address)).await;
        *asked = calls(&source);
    }
    let extra = asked[1].saturating_sub(asked[0]);
    let truth = demo.truth(address);
    let found = by_place(&rows);
    assert_eq!((rows.len(), found.len()), (truth.len(), truth.len()));
    let dollars: BTreeSet<TxId> =
        truth.iter().filter(|t| demo.is_dollar(&t.token)).map(|t| t.tx).collect();
    let (mut routed, mut sided, mut valued, mut errors) = (0, 0, 0, Errors::default());
    let mut moments = BTreeSet::new();
    for t in &truth {
        let row = found[&(t.tx, t.side, t.token)];
        if t.native.is_some() {
            routed += 1;
            assert_eq!(row.trade.native, t.native, "{row:?}");
            assert!(row.trade.valued.is_of_transaction());
        } else if dollars.contains(&t.tx) {
            sided += 1;
            valued += usize::from(row.trade.native.is_some());
            moments.insert(t.height);
            if demo.is_dollar(&t.token) {
                errors.add(row.trade.native, demo.worth(t.units, t.height));
            }
        }
    }
    let moments = u64::try_from(moments.len()).unwrap();
    let per_thousand = extra * 1_000 / TRADES;
    eprintln!(
        "{slug}: {routed} rows valued by their routes, {valued} of {sided} against dollars; \
         {extra} calls for {moments} blocks, {per_thousand} per 1,000 trades; {errors}"
    );
    assert!(routed > 1_000 && sided > 100, "{routed} and {sided}");
    assert!(valued * 100 >= sided * 95, "{valued} of {sided}");
    errors.check(50, 5);
    let (each, of) = calls_per_moment;
    assert!(extra <= moments * each / of + 20, "{extra} calls for {moments} blocks");
}

/// A block of the grid holds no swap of a pool in one of three, of both in one of nine, and a slot
/// now and then holds no block: fewer than three blocks for two moments.
#[tokio::test(start_paused = true)]
async fn wallets_of_solana_have_their_values_for_few_calls() {
    check_share("sol", (3, 2)).await;
}

/// One range of blocks for each trade, a wider one at most where it is empty; and what the pools
/// exchange, once.
#[tokio::test(start_paused = true)]
async fn wallets_of_ethereum_have_their_values_for_few_calls() {
    check_share("eth", (2, 1)).await;
}

#[tokio::test(start_paused = true)]
async fn wallets_of_base_have_their_values_for_few_calls() {
    check_share("base", (2, 1)).await;
}

/// Dollars that no route valued, so many seconds apart, where reference pools return nothing;
/// another wallet's routes in the same hours teach the price.
async fn learned(slug: &str, seconds: u64, references: References) -> (Errors, usize) {
    let demo = Demo::new(slug);
    let trades = if slug == "sol" { 1_000 } else { 500 };
    let (teacher, learner) = match &demo.model {
        Model::Solana(model) => {
            let kind = solana::TradeKind::JupiterUsdc;
            let plan = solana::WalletPlan::only(kind, trades);
            let first = plan.last.map(|last| last - trades * seconds * 5 / 2);
            let plan = solana::WalletPlan { first, ..plan };
            (model.add_named("teacher", plan), model.add_named("learner", plan))
        }
        Model::Evm(model) => {
            let last = model.head() - 1_000;
            let first = last - model.blocks_in(trades * seconds);
            let plan = |kind| evm::WalletPlan {
                first: Some(first),
                last: Some(last),
                ..evm::WalletPlan::only(kind, trades)
            };
            let teacher = model.add_named("teacher", plan(evm::TradeKind::V2Hop));
            (teacher, model.add_named("learner", plan(evm::TradeKind::V3Dollar)))
        }
    };
    let history = demo.history(&demo.source(references));
    settled(&history, demo.wallet(teacher)).await;
    let rows = settled(&history, demo.wallet(learner)).await;
    let found = by_place(&rows);
    let (mut errors, mut learned, mut all) = (Errors::default(), 0, 0);
    for t in demo.truth(learner) {
        if t.native.is_some() || !demo.is_dollar(&t.token) {
            continue;
        }
        let row = found[&(t.tx, t.side, t.token)];
        all += 1;
        // Where no price was learned, another trade of the token may give one.
        let is_learned = row.trade.valued == ValueSource::Learned;
        learned += usize::from(is_learned);
        let native = row.trade.native.filter(|_| is_learned);
        errors.add(native, demo.worth(t.units, t.height));
    }
    (errors, learned * 100 / all)
}

#[tokio::test(start_paused = true)]
async fn learned_prices_are_near_what_dollars_are_worth() {
    for slug in ["sol", "eth", "base"] {
        // A handful of trades in the time that counts, and next to none.
        for (seconds, percent_min) in [(60, 90), (240, 30)] {
            let (errors, percent) = learned(slug, seconds, References::Absent).await;
            eprintln!("learned, {slug}, one in {seconds} s: {errors}, {percent} %");
            errors.check(50, 100);
            assert!(percent >= percent_min, "{percent} %");
        }
    }
}

/// Nodes that never return logs are no reason to wait for ever.
#[tokio::test(start_paused = true)]
async fn where_no_node_reads_the_pools_prices_are_learned() {
    let (errors, percent) = learned("base", 60, References::Unreadable).await;
    eprintln!("learned, base without logs: {errors}, {percent} %");
    errors.check(50, 100);
    assert!(percent >= 90, "{percent} %");
}
