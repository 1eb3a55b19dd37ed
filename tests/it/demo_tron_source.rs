//! The real reader over Tron's demo chain, by lists and by events: what it reads and the decoder
//! makes of it equals the model.

use std::sync::Arc;
use std::time::Duration;

use blotter::decode::tron::decode;
use blotter::demo::evm::tron::NodeOptions;
use blotter::demo::evm::{EvmModel, TradeKind, TrueTrade, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport, Faults, Rate};
use blotter::domain::{Address, Side, TxId, Units};
use blotter::registry::{Chain, Registry};
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, Transport, UpstreamError};
use blotter::sources::{GapRequest, RawTx, RunAhead, Source, TokenMeta, TronLimits, TronSource};
use tokio::time::Instant;

use crate::support::reading::{all_of, lane};
use crate::support::script::Epoch;

struct World {
    registry: Registry,
    chain: Chain,
    model: EvmModel,
    node: DemoNode,
}

fn world(options: NodeOptions) -> World {
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named("tron").unwrap().clone();
    let model = EvmModel::new(11, &chain);
    let node = DemoNode::tron(model.clone(), 1);
    node.set_options(options);
    World { registry, chain, model, node }
}

/// No lists by account.
fn plain_node() -> NodeOptions {
    NodeOptions { lists: false, ..NodeOptions::default() }
}

/// Transaction, height, side, token, amount and native value.
type Fact = (TxId, u64, Side, Address, Option<Units>, Option<Units>);

fn request(wallet: Address, low: u64, high: Option<u64>) -> GapRequest {
    GapRequest { low, high, ..all_of(wallet) }
}

impl World {
    fn source(&self, rate: Option<u32>) -> Source {
        let mounts = [("demo.test/tron".to_owned(), self.node.clone())];
        let transport: Arc<dyn Transport> = Arc::new(DemoTransport::new(mounts));
        let endpoint = EndpointConfig {
            batch: Some(50),
            rate_millihertz: rate,
            ..EndpointConfig::new("https://demo.test/tron")
        };
        let (limits, clock) = (PoolLimits::default(), Arc::new(Epoch));
        let pool = Pool::new(vec![endpoint], transport, limits, clock, 7);
        Source::Tron(TronSource::new(pool, &self.chain, TronLimits::default()))
    }

    /// From the block `low` up.
    async fn read(&self, source: &Source, wallet: Address, low: u64) -> Vec<Fact> {
        let mut facts = Vec::new();
        let (error, _) = self.drain(source, request(wallet, low, None), &mut facts).await;
        assert_eq!(error, None);
        facts
    }

    /// Reads until the end or an error; returns the lowest block.
    async fn drain(
        &self,
        source: &Source,
        request: GapRequest,
        facts: &mut Vec<Fact>,
    ) -> (Option<UpstreamError>, Option<u64>) {
        let Address::Tron(account) = request.wallet else { panic!("another family") };
        let mut reader = source.read(request);
        reader.set_run_ahead(RunAhead::All);
        let (mut low, mut error) = (None, None);
        loop {
            let chunk = match reader.next().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(failure) => {
                    error = Some(failure);
                    break;
                }
            };
            low = Some(chunk.low);
            for tx in chunk.txs {
                let RawTx::Tron(tx, time) = tx else { panic!("another family") };
                assert_eq!(time, self.model.time_of(tx.call.block));
                let decoded = decode(self.registry.tron(), &self.chain, &account, &tx);
                let id = TxId::Tron(tx.call.hash);
                let fact = |t: blotter::decode::DecodedTrade| {
                    (id, tx.call.block, t.side, t.mint, t.units, t.native)
                };
                facts.extend(decoded.trades.into_iter().map(fact));
            }
        }
        facts.sort_unstable_by_key(|fact| (fact.1, fact.0, fact.2 == Side::Buy));
        (error, low)
    }

    fn truth(&self, wallet: Address, shown: impl Fn(&TrueTrade) -> bool) -> Vec<Fact> {
        facts(self.model.truth(wallet).filter(shown))
    }

    /// Reads a mixed wallet and compares each row with the model; `shown`: the trades that this way
    /// can see at all.
    async fn check(&self, plan: WalletPlan, shown: impl Fn(&TrueTrade) -> bool) {
        let wallet = self.model.add_named("trader", plan);
        let found = self.read(&self.source(None), wallet, low(&plan)).await;
        self.compare((wallet, plan), &found, shown);
    }

    /// The same where a read may end with an error that passes, and goes on from there.
    async fn check_with_retries(&self, plan: WalletPlan, shown: impl Fn(&TrueTrade) -> bool) {
        let wallet = self.model.add_named("trader", plan);
        let (source, mut facts) = (self.source(None), Vec::new());
        let mut request = request(wallet, low(&plan), None);
        for _ in 0..3 {
            let (error, reached) = self.drain(&source, request.clone(), &mut facts).await;
            let Some(error) = error else { break };
            assert!(!error.is_final(), "{error}");
            request.high = reached.map_or(request.high, |low| Some(low - 1));
        }
        self.compare((wallet, plan), &facts, shown);
    }

    fn compare(
        &self,
        (wallet, plan): (Address, WalletPlan),
        found: &[Fact],
        shown: impl Fn(&TrueTrade) -> bool,
    ) {
        let truth = self.truth(wallet, shown);
        assert!(u64::try_from(truth.len()).unwrap() >= plan.trades * 3 / 4);
        for (found, truth) in found.iter().zip(&truth) {
            assert_eq!(found, truth);
        }
        assert_eq!(found.len(), truth.len());
    }
}

fn facts(truth: impl Iterator<Item = TrueTrade>) -> Vec<Fact> {
    let fact = |t: TrueTrade| (t.hash, t.height, t.side, t.token, Some(t.units), t.native);
    let mut truth: Vec<Fact> = truth.map(fact).collect();
    truth.sort_unstable_by_key(|fact| (fact.1, fact.0, fact.2 == Side::Buy));
    truth
}

/// A wallet of a year, so that searches for events end soon.
fn mixed(trades: u64) -> WalletPlan {
    WalletPlan { noise_percent: 40, first: Some(75_000_000), ..WalletPlan::trades(trades) }
}

fn low(plan: &WalletPlan) -> u64 {
    plan.first.unwrap_or(0)
}

/// Tokens that have no contract leave no event.
fn has_events(t: &TrueTrade) -> bool {
    t.kind != TradeKind::Exchange
}

#[tokio::test(start_paused = true)]
async fn both_ways_find_all_trades() {
    world(NodeOptions::default()).check(mixed(400), |_| true).await;
    world(plain_node()).check(mixed(400), has_events).await;
    // A node without its own view of solid blocks.
    let options = NodeOptions { page_max: 50, ..NodeOptions::default() };
    world(options).check(mixed(150), |_| true).await;
}

#[tokio::test(start_paused = true)]
async fn nodes_that_keep_no_inner_calls_give_no_wrong_value() {
    for lists in [true, false] {
        let world = world(NodeOptions { lists, inner_calls: false, ..NodeOptions::default() });
        let wallet = world.model.add_named("trader", mixed(400));
        let found = world.read(&world.source(None), wallet, low(&mixed(0))).await;
        let truth = world.truth(wallet, |t| lists || has_events(t));
        let mut unvalued = 0;
        for row in &found {
            let same = |t: &&Fact| (t.0, t.2, t.3, t.4) == (row.0, row.2, row.3, row.4);
            let truth = truth.iter().find(same).unwrap();
            assert!(row.5.is_none() || row.5 == truth.5, "{row:?} is not {truth:?}");
            unvalued += usize::from(row.5.is_none() && truth.5.is_some());
        }
        let mut ids: Vec<_> = found.iter().map(|row| (row.0, row.3)).collect();
        ids.dedup();
        assert_eq!(ids.len(), found.len(), "no row twice");
        assert!(found.len() * 100 >= truth.len() * 95, "{} of {}", found.len(), truth.len());
        assert!(unvalued * 5 <= found.len(), "{unvalued} of {}", found.len());
    }
}

#[tokio::test(start_paused = true)]
async fn faults_change_nothing_but_the_time() {
    for options in [NodeOptions::default(), plain_node()] {
        let lists = options.lists;
        let world = world(options);
        let storm = Faults { empty_page: Rate::NEVER, ..Faults::storm(Rate(10)) };
        world.node.set_faults(Faults {
            head_back: Rate::NEVER,
            null_result: Rate::NEVER,
            suspended: Rate(2),
            ..storm
        });
        world.check_with_retries(mixed(250), |t| lists || has_events(t)).await;
        let faults = world.node.stats().faults;
        assert!(!lists || faults.contains_key("lost_cursor"), "{faults:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn infos_that_come_late_and_pages_that_come_empty_lose_nothing() {
    let world = world(NodeOptions::default());
    let late = Faults { null_result: Rate(20), empty_page: Rate(20), ..Faults::none() };
    world.node.set_faults(late);
    world.check(mixed(300), |_| true).await;
}

#[tokio::test(start_paused = true)]
async fn narrow_searches_for_events_find_the_same() {
    for (log_blocks_max, logs_max) in [(1_300, 10_000), (5_000, 12)] {
        let mut options = plain_node();
        options.node.log_blocks_max = Some(log_blocks_max);
        options.node.logs_max = Some(logs_max);
        let world = world(options);
        world.check(mixed(200), has_events).await;
    }
}

/// A search for events finds nothing in blocks that a node does not keep, and proves nothing.
#[tokio::test(start_paused = true)]
async fn a_node_that_lacks_old_blocks_says_so_and_gives_the_rest() {
    let first = 77_000_123;
    let mut options = plain_node();
    options.node.first_available = first;
    let world = world(options);
    let wallet = world.model.add_named("trader", mixed(300));
    let all = world.truth(wallet, has_events);
    let kept: Vec<Fact> = all.iter().filter(|fact| fact.1 >= first).copied().collect();
    assert!(!kept.is_empty() && kept.len() < all.len());
    let source = world.source(None);
    let mut facts = Vec::new();
    let (error, low) =
        world.drain(&source, request(wallet, low(&mixed(0)), None), &mut facts).await;
    assert_eq!(error, Some(UpstreamError::HistoryCut { first }));
    assert_eq!((low, facts), (Some(first), kept));
    // Asking again does not show what lies below.
    let mut none = Vec::new();
    let below = request(wallet, 0, Some(first - 1));
    let (error, low) = world.drain(&source, below, &mut none).await;
    assert_eq!((error, low), (Some(UpstreamError::HistoryCut { first }), None));
}

#[tokio::test(start_paused = true)]
async fn tokens_are_named_by_json_rpc_and_by_the_http_interface() {
    for json_rpc in [true, false] {
        let world = world(NodeOptions { json_rpc, ..NodeOptions::default() });
        let wallet = world.model.add_named("trader", WalletPlan::trades(200));
        let mut mints: Vec<Address> = world.model.truth(wallet).map(|t| t.token).collect();
        mints.sort_unstable();
        mints.dedup();
        let metas = world.source(None).tokens(&mints, &lane()).await.unwrap();
        assert_eq!(metas.len(), mints.len());
        for TokenMeta { mint, symbol, decimals } in metas {
            assert!(symbol.is_some() && decimals.is_some(), "{mint}");
            if mint.as_tron_asset().is_some() {
                assert!(decimals < Some(7) && symbol.unwrap().starts_with("ASSET"));
            }
        }
    }
}

/// Another server answers at the node's address in the middle of a read: its events of this wallet
/// would be none.
#[tokio::test(start_paused = true)]
async fn events_that_a_node_gives_before_it_names_another_chain_are_not_believed() {
    let (world, plan) = (world(plain_node()), mixed(300));
    world.node.set_faults(Faults::latency(Duration::from_millis(40)));
    let wallet = world.model.add_named("trader", plan);
    let mut reader = world.source(None).read(request(wallet, low(&plan), None));
    let first = reader.next().await.unwrap().unwrap();
    assert!(first.low > low(&plan));
    let mut other = plain_node();
    other.node.chain_id = Some(0x94a9_059e);
    world.node.set_options(other);
    let error = loop {
        match reader.next().await {
            Ok(Some(_)) => {}
            end => break end.err().map(|error| error.to_string()).unwrap_or_default(),
        }
    };
    assert!(error.contains("named another chain"), "{error}");
}

/// The same of its lists, whose newest entries nothing that is known would show to be another
/// chain's.
#[tokio::test(start_paused = true)]
async fn the_newest_entries_of_lists_that_name_another_chain_are_not_believed() {
    let (world, plan) = (world(NodeOptions::default()), mixed(300));
    world.node.set_faults(Faults::latency(Duration::from_millis(40)));
    let wallet = world.model.add_named("trader", plan);
    let source = world.source(None);
    let mut first = source.read(request(wallet, low(&plan), None));
    first.next().await.unwrap().unwrap();
    let mut other = NodeOptions::default();
    other.node.chain_id = Some(0x94a9_059e);
    world.node.set_options(other);
    let mut reader = source.read(request(wallet, low(&plan), None));
    let error = reader.next().await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("named another chain"), "{error}");
}

/// The pages of 200 that a list of `entries` takes: each page repeats the moment in which the last
/// one ended, and the end is requested twice.
fn pages(entries: u64, repeated_max: u64) -> u64 {
    entries.div_ceil(200 - repeated_max) + 4
}

/// 20,000 trades at 200 a page and 15 requests a second, from an index that suspends fast callers.
#[tokio::test(start_paused = true)]
#[expect(clippy::print_stderr, reason = "states the calls")]
async fn a_long_history_comes_whole_through_rates_and_suspensions() {
    const TRADES: u64 = 20_000;
    let world = world(NodeOptions::default());
    let plan = WalletPlan { noise_percent: 10, failed_percent: 5, ..WalletPlan::trades(TRADES) };
    let wallet = world.model.add_named("long", plan);
    world.node.set_faults(Faults {
        suspended: Rate(1),
        lost_cursor: Rate(20),
        latency: Duration::from_millis(40),
        ..Faults::none()
    });
    let began = Instant::now();
    let found = world.read(&world.source(Some(15_000)), wallet, 0).await;
    let seconds = began.elapsed().as_secs();
    let truth: Vec<TrueTrade> = world.model.truth(wallet).collect();
    assert!(found == facts(truth.iter().cloned()), "{} rows of {}", found.len(), truth.len());
    let stats = world.node.stats();
    let fault = |name: &str| stats.faults.get(name).copied().unwrap_or(0);
    let (suspensions, refused) =
        (fault("suspended"), fault("suspended") + fault("refused_while_suspended"));
    let (requests, calls) = (stats.requests, &stats.calls);
    eprintln!(
        "{} rows by {requests} requests in {seconds} s, {refused} of them refused: {calls:?}",
        found.len()
    );
    let all = world.model.transaction_count(wallet);
    let of = |kind| truth.iter().filter(move |t| t.kind == kind).map(|t| t.hash);
    let mut relayed: Vec<TxId> = of(TradeKind::Cow).collect();
    relayed.dedup();
    let count = |count: usize| u64::try_from(count).unwrap();
    // One info for each trade, and for four of sixteen kinds of noise: calls that might be trades.
    let noise = all / 10 + 1;
    assert!(stats.calls_of("gettransactioninfobyid") <= TRADES + noise.div_ceil(16) * 4);
    // What another account sent is fetched separately.
    assert_eq!(stats.calls_of("gettransactionbyid"), count(relayed.len()));
    assert!(stats.calls_of("getexchangebyid") <= count(of(TradeKind::Exchange).count()));
    let transfers = all * 2;
    let lists = stats.calls_of("transactions") + stats.calls_of("trc20");
    assert!(lists <= pages(all, 3) + pages(transfers, 9) + fault("lost_cursor"), "{lists}");
    assert!(requests - refused <= calls.values().sum::<u64>());
    assert!(suspensions > 10 && requests <= 23_000, "{requests}");
    assert!(seconds <= requests / 15 + suspensions * 31 + 10, "{seconds}");
}
