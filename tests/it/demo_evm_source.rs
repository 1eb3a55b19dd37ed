//! The real reader over the demo EVM chains, by each way of discovery: what it reads and the
//! decoder makes of it equals the model.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use blotter::decode::evm::{CoinTo, decode};
use blotter::demo::evm::{
    EvmModel, ExplorerOptions, LimitTexts, NodeOptions, PortalOptions, TradeKind, TrueTrade,
    WalletPlan,
};
use blotter::demo::{DemoNode, DemoTransport, Faults, Rate};
use blotter::domain::{Address, Doubts, Side, TxId, Units};
use blotter::registry::{Chain, Registry};
use blotter::rpc::{
    EndpointConfig, Pool, PoolLimits, Request, Response, SecretUrl, Transport, TransportError,
};
use blotter::sources::{
    Discovery, EvmLimits, EvmParts, EvmSource, GapRequest, RawTx, RunAhead, Source,
};
use futures_util::future::BoxFuture;
use serde_json::json;

use crate::support::reading::all_of;
use crate::support::script::Epoch;

struct World {
    registry: Arc<Registry>,
    chain: Chain,
    model: EvmModel,
    rpc: DemoNode,
    explorer: DemoNode,
    portal: DemoNode,
}

fn world(slug: &str) -> World {
    let registry = Arc::new(Registry::embedded().unwrap());
    let chain = registry.chain_named(slug).unwrap().clone();
    let model = EvmModel::new(11, &chain);
    let rpc = DemoNode::evm(model.clone(), 1);
    let explorer = DemoNode::explorer(model.clone(), 2);
    let portal = DemoNode::portal(model.clone(), 3);
    World { registry, chain, model, rpc, explorer, portal }
}

/// What a list without inner calls does not show: a wallet that also sends for itself gives native
/// coin in a transaction that another account sends to a contract which the list does not name.
const UNSEEN: (TradeKind, Side) = (TradeKind::UserOp, Side::Buy);

type Fact = (TxId, u64, u32, Side, Address, Option<Units>, Option<Units>);

impl World {
    fn source(&self, discovery: &[Discovery]) -> Source {
        self.source_through(Arc::new(self.transport()), discovery)
    }

    fn transport(&self) -> DemoTransport {
        let mounts = [
            ("demo.test/evm/it", &self.rpc),
            ("demo.test/explorer/it/api", &self.explorer),
            ("demo.test/portal/it", &self.portal),
        ];
        let mounts = mounts.map(|(name, node)| (name.to_owned(), node.clone()));
        DemoTransport::new(mounts)
    }

    fn source_through(&self, transport: Arc<dyn Transport>, discovery: &[Discovery]) -> Source {
        let pool = |path: &str| {
            let endpoint = EndpointConfig {
                batch: Some(50),
                ..EndpointConfig::new(format!("https://demo.test/{path}"))
            };
            let clock = Arc::new(Epoch);
            Pool::new(vec![endpoint], Arc::clone(&transport), PoolLimits::default(), clock, 7)
        };
        Source::Evm(EvmSource::new(EvmParts {
            chain: self.chain.clone(),
            registry: Arc::clone(&self.registry),
            rpc: pool("evm/it"),
            explorer: Some(pool("explorer/it/api?apikey=planted-secret")),
            portal: Some(pool("portal/it")),
            discovery: discovery.to_vec(),
            limits: EvmLimits::default(),
        }))
    }

    async fn read(&self, discovery: Discovery, wallet: Address) -> Vec<Fact> {
        self.read_by(&[discovery], wallet).await
    }

    async fn read_by(&self, discovery: &[Discovery], wallet: Address) -> Vec<Fact> {
        self.read_gap(&self.source(discovery), all_of(wallet)).await.0
    }

    /// The rows that a read finds, and the doubts that it leaves.
    async fn read_gap(&self, source: &Source, gap: GapRequest) -> (Vec<Fact>, Doubts) {
        let Address::Evm(account) = gap.wallet else { panic!("another family") };
        let mut reader = source.read(gap.clone());
        reader.set_run_ahead(RunAhead::All);
        let (mut facts, mut low, mut errors) = (Vec::new(), None, 0);
        let mut doubts = Doubts::NONE;
        loop {
            let chunk = match reader.next().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(error) => {
                    errors += 1;
                    assert!(errors < 4, "{error}");
                    // Continues below the last chunk, as the loader does.
                    let high = low.map(|low: u64| low - 1).or(gap.high);
                    reader = source.read(GapRequest { high, ..gap.clone() });
                    continue;
                }
            };
            low = Some(chunk.low);
            doubts = doubts.union(chunk.proof.doubts);
            for tx in chunk.txs {
                let RawTx::Evm(tx, time) = tx else { panic!("another family") };
                assert_eq!(time, self.model.time_of(tx.block));
                let decoded = decode(self.registry.evm(), &self.chain, &account, &tx);
                let hash = TxId::Evm(tx.hash);
                facts.extend(
                    decoded
                        .trades
                        .into_iter()
                        .map(|t| (hash, tx.block, tx.index, t.side, t.mint, t.units, t.native)),
                );
            }
        }
        facts.sort_by_key(|fact| std::cmp::Reverse((fact.1, fact.2)));
        (facts, doubts)
    }

    fn truth(&self, wallet: Address, shown: impl Fn(&TrueTrade) -> bool) -> Vec<Fact> {
        let fact =
            |t: TrueTrade| (t.hash, t.height, t.index, t.side, t.token, Some(t.units), t.native);
        self.model.truth(wallet).filter(shown).map(fact).collect()
    }
}

async fn check(world: &World, discovery: Discovery, trades: u64) {
    check_but(world, discovery, trades, None).await;
}

/// `hidden`: what the list does not show.
async fn check_but(
    world: &World,
    discovery: Discovery,
    trades: u64,
    hidden: Option<(TradeKind, Side)>,
) {
    let plan = WalletPlan { noise_percent: 40, ..WalletPlan::trades(trades) };
    let wallet = world.model.add_named("trader", plan);
    let found = world.read(discovery, wallet).await;
    let shown = |t: &TrueTrade| hidden != Some((t.kind, t.side));
    let truth = world.truth(wallet, shown);
    assert!(hidden.is_some() || u64::try_from(truth.len()).unwrap() >= trades);
    for (found, truth) in found.iter().zip(&truth) {
        assert_eq!(found, truth, "{discovery}");
    }
    assert_eq!(found.len(), truth.len(), "{discovery}");
}

#[tokio::test(start_paused = true)]
async fn every_way_to_find_transactions_finds_all_trades() {
    for slug in ["eth", "base", "hyperevm"] {
        for discovery in
            [Discovery::Portal, Discovery::Explorer, Discovery::Alchemy, Discovery::Logs]
        {
            let world = world(slug);
            world.rpc.set_options(NodeOptions { transfers: true, ..NodeOptions::default() });
            // On most chains that list contains no calls.
            let hidden = (discovery == Discovery::Alchemy).then_some(UNSEEN);
            check_but(&world, discovery, 200, hidden.filter(|_| slug != "eth")).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn log_ranges_follow_what_nodes_say() {
    let texts = [
        LimitTexts::Alchemy,
        LimitTexts::Infura,
        LimitTexts::PublicNode,
        LimitTexts::Reth,
        LimitTexts::Curt,
    ];
    for texts in texts {
        for (log_blocks_max, logs_max) in [(Some(500_000), None), (None, Some(90))] {
            let world = world("eth");
            let options = NodeOptions { texts, log_blocks_max, logs_max, ..NodeOptions::default() };
            world.rpc.set_options(options);
            check(&world, Discovery::Logs, 200).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn short_pages_and_answers_that_stop_early_lose_nothing() {
    let world = world("base");
    world.explorer.set_options(ExplorerOptions { rows_max: 37, ..ExplorerOptions::default() });
    check(&world, Discovery::Explorer, 300).await;
    world.explorer.set_options(ExplorerOptions { blockscout: true, ..ExplorerOptions::default() });
    check(&world, Discovery::Explorer, 300).await;
    world.explorer.set_options(ExplorerOptions { calls: false, ..ExplorerOptions::default() });
    check_but(&world, Discovery::Explorer, 300, Some(UNSEEN)).await;
    let options = PortalOptions { transactions_max: 23, traces: false, ..PortalOptions::default() };
    world.portal.set_options(options);
    check(&world, Discovery::Portal, 300).await;
}

#[tokio::test(start_paused = true)]
async fn faults_change_nothing_but_the_time() {
    for discovery in [Discovery::Portal, Discovery::Explorer, Discovery::Logs] {
        let world = world("base");
        for node in [&world.rpc, &world.explorer, &world.portal] {
            let storm = Faults { empty_page: Rate::NEVER, ..Faults::storm(Rate(10)) };
            node.set_faults(Faults { head_back: Rate::NEVER, null_result: Rate::NEVER, ..storm });
        }
        check(&world, discovery, 150).await;
    }
}

/// Balances replace traces; without either, values are missing, never wrong.
#[tokio::test(start_paused = true)]
async fn nodes_without_traces_give_no_wrong_value() {
    for state_blocks in [None, Some(128)] {
        let world = world("eth");
        let options = NodeOptions { traces: false, state_blocks, ..NodeOptions::default() };
        world.rpc.set_options(options);
        let wallet = world.model.add_named("trader", WalletPlan::trades(300));
        let found = world.read(Discovery::Logs, wallet).await;
        let truth = world.truth(wallet, |_| true);
        let mut unvalued = 0;
        for row in &found {
            let same = |t: &&Fact| (t.0, t.3, t.4, t.5) == (row.0, row.3, row.4, row.5);
            let truth = truth.iter().find(same).unwrap();
            assert!(row.6.is_none() || row.6 == truth.6, "{row:?} is not {truth:?}");
            unvalued += usize::from(row.6.is_none() && truth.6.is_some());
        }
        // The missing rows are sales whose payment no endpoint shows.
        let share = if state_blocks.is_none() { 98 } else { 90 };
        assert!(found.len() * 100 >= truth.len() * share, "{} of {}", found.len(), truth.len());
        assert!(unvalued * 4 <= found.len(), "{unvalued} of {}", found.len());
    }
}

/// The calls for a wallet of 1,000 trades by each way, with list and log calls separate: the table
/// of docs/performance.md.
#[tokio::test(start_paused = true)]
#[expect(clippy::print_stderr, reason = "the figures of docs/performance.md")]
async fn calls_for_a_thousand_trades_stay_few() {
    let bounds = [
        (Discovery::Portal, 150),
        (Discovery::Explorer, 5_000),
        (Discovery::Alchemy, 5_000),
        (Discovery::Logs, 8_000),
    ];
    for (discovery, most) in bounds {
        let world = world("eth");
        world.rpc.set_options(NodeOptions { transfers: true, ..NodeOptions::default() });
        let wallet = world.model.add_named("trader", WalletPlan::trades(1_000));
        world.read(discovery, wallet).await;
        let calls = |node: &DemoNode| -> u64 { node.stats().calls.values().sum() };
        let counts = [&world.rpc, &world.explorer, &world.portal].map(calls);
        let all: u64 = counts.iter().sum();
        let logs = world.rpc.stats().calls_of("eth_getLogs");
        eprintln!("{discovery}: {all} calls, {logs} for logs; nodes, index, gateway: {counts:?}");
        assert!(all < most, "{discovery}: {all} calls, {logs} for logs, {counts:?}");
        let [nodes, ..] = counts;
        let by_method = world.rpc.stats().calls;
        assert!(discovery != Discovery::Portal || nodes <= 10, "{by_method:?}");
    }
}

/// Where a gateway has no traces and nodes neither traces nor old states, the balances before and
/// after each transaction give the native amounts.
#[tokio::test(start_paused = true)]
#[expect(clippy::print_stderr, reason = "the figures of docs/performance.md")]
async fn a_gateway_without_traces_gives_native_amounts_by_balances() {
    let mut right_by = Vec::new();
    for state_diffs in [false, true] {
        let world = world("eth");
        let bare = NodeOptions { traces: false, state_blocks: Some(1), ..NodeOptions::default() };
        world.rpc.set_options(bare);
        let options = PortalOptions { traces: false, state_diffs, ..PortalOptions::default() };
        world.portal.set_options(options);
        let wallet = world.model.add_named("trader", WalletPlan::trades(300));
        let found = world.read(Discovery::Portal, wallet).await;
        let truth = world.truth(wallet, |_| true);
        let right = truth.iter().filter(|fact| found.contains(fact)).count();
        let wrong = |row: &&Fact| row.6.is_some() && !truth.contains(row);
        assert_eq!(found.iter().find(wrong), None);
        let calls = world.rpc.stats().calls;
        eprintln!("state diffs {state_diffs}: {right} of {} right, {calls:?}", truth.len());
        right_by.push((right, truth.len()));
    }
    let [(bare, _), (right, all)] = right_by[..] else { panic!("{right_by:?}") };
    assert!(right * 100 >= all * 95 && bare < right, "{right_by:?}");
}

/// The receivers that inputs state are read from a gateway without calls and balances as from
/// nodes.
#[tokio::test(start_paused = true)]
async fn inputs_of_what_a_wallet_sent_come_from_a_gateway_without_calls() {
    let world = world("eth");
    let bare = NodeOptions { traces: false, state_blocks: Some(1), ..NodeOptions::default() };
    world.rpc.set_options(bare);
    let options = PortalOptions { traces: false, state_diffs: false, ..PortalOptions::default() };
    world.portal.set_options(options);
    let wallet = world.model.add_named("trader", WalletPlan::trades(100));
    let mut by_way = Vec::new();
    for way in [Discovery::Portal, Discovery::Logs] {
        let (source, mut terms) = (world.source(&[way]), HashMap::new());
        let mut reader = source.read(all_of(wallet));
        while let Some(chunk) = reader.next().await.unwrap() {
            terms.extend(chunk.txs.into_iter().map(|tx| match tx {
                RawTx::Evm(tx, _) => (tx.hash, tx.terms),
                RawTx::Solana(..) | RawTx::Tron(..) => panic!("of another family"),
            }));
        }
        by_way.push((terms, world.rpc.stats().calls_of("eth_getTransactionByHash")));
    }
    let [(gateway, 0), (nodes, _)] = &by_way[..] else { panic!("two ways") };
    let said = nodes.values().filter(|terms| terms.coin == CoinTo::Sender).count();
    assert!(said > 5, "{said} name their caller");
    for (hash, terms) in gateway {
        assert_eq!(nodes.get(hash), Some(terms), "{hash:?}");
    }
}

/// The dataset of a chain without real-time data ends days below the final head: nodes supply what
/// is above. Without another way nothing above the gateway's end is claimed.
#[tokio::test(start_paused = true)]
async fn what_a_gateway_does_not_have_yet_is_read_from_nodes() {
    let world = world("eth");
    let wallet = world.model.add_named("trader", WalletPlan::trades(300));
    let truth = world.truth(wallet, |_| true);
    let end = truth[60].1;
    let lag = world.model.head() - end;
    world.portal.set_options(PortalOptions { lag, ..PortalOptions::default() });
    let found = world.read_by(&[Discovery::Portal, Discovery::Logs], wallet).await;
    assert_eq!(found, truth);
    let newer = found.iter().filter(|row| row.1 > end).count();
    assert!(newer > 10, "{newer} of {}", found.len());
    let stats = world.rpc.stats();
    let receipts = usize::try_from(stats.calls_of("eth_getTransactionReceipt")).unwrap();
    assert!(receipts < newer * 3, "{receipts} receipts for {newer} rows of {}", found.len());
    let below = world.read(Discovery::Portal, wallet).await;
    assert_eq!(below, world.truth(wallet, |row| row.height <= end));
}

/// The same for an index whose lists stopped long ago. A slight delay of an index is waited for.
#[tokio::test(start_paused = true)]
async fn what_an_index_that_stands_still_does_not_have_is_read_from_nodes() {
    let world = world("eth");
    let wallet = world.model.add_named("trader", WalletPlan::trades(300));
    let truth = world.truth(wallet, |_| true);
    let end = truth[60].1;
    let list_lag = world.model.newest() - end;
    world.explorer.set_options(ExplorerOptions { list_lag, ..ExplorerOptions::default() });
    let found = world.read_by(&[Discovery::Explorer, Discovery::Logs], wallet).await;
    assert_eq!(found, truth);
    // A read of heights that are newer than the index.
    let refresh = GapRequest { low: end + 1, ..all_of(wallet) };
    let source = world.source(&[Discovery::Explorer, Discovery::Logs]);
    let (newer, _) = world.read_gap(&source, refresh).await;
    assert_eq!(newer, world.truth(wallet, |row| row.height > end));
    // Without another way nothing above its end is claimed.
    let below = world.read(Discovery::Explorer, wallet).await;
    assert!(truth.ends_with(&below) && below.iter().all(|row| row.1 <= end));
    assert!(below.len() > 100, "{}", below.len());
}

/// The gateway will have traces of blocks that it does not have yet: nodes without traces are not
/// the last word, even for an account without code.
#[tokio::test(start_paused = true)]
async fn what_nodes_without_traces_show_above_a_gateway_stays_in_doubt_until_it_is_there() {
    let world = world("eth");
    let bare = NodeOptions { traces: false, state_blocks: Some(1), ..NodeOptions::default() };
    world.rpc.set_options(bare);
    let plan = WalletPlan { plain: true, ..WalletPlan::only(TradeKind::V4, 40) };
    let wallet = world.model.add_named("trader", plan);
    let truth = world.truth(wallet, |_| true);
    let lag = world.model.head() - truth[10].1;
    world.portal.set_options(PortalOptions { lag, ..PortalOptions::default() });
    let source = world.source(&[Discovery::Portal, Discovery::Logs]);
    let (_, doubts) = world.read_gap(&source, all_of(wallet)).await;
    assert!(doubts.contains(Doubts::INNER_CALLS), "{doubts:?}");
    world.portal.set_options(PortalOptions::default());
    let again = GapRequest { high: Some(truth[0].1), ..all_of(wallet) };
    let (found, doubts) = world.read_gap(&source, again).await;
    assert_eq!(found, truth);
    assert!(!doubts.contains(Doubts::INNER_CALLS), "{doubts:?}");
}

/// Whether anything is newer than the gateway's end is unknown while the other way fails.
#[tokio::test(start_paused = true)]
async fn a_look_above_a_gateway_is_an_error_where_the_other_way_fails() {
    let world = world("eth");
    let wallet = world.model.add_named("trader", WalletPlan::trades(60));
    let end = world.truth(wallet, |_| true)[10].1;
    let lag = world.model.head() - end;
    world.portal.set_options(PortalOptions { lag, ..PortalOptions::default() });
    world.explorer.set_faults(Faults { unavailable: Rate(1_000), ..Faults::none() });
    let source = world.source(&[Discovery::Portal, Discovery::Explorer]);
    let refresh = GapRequest { low: end + 1, ..all_of(wallet) };
    let read = source.read(refresh.clone()).next().await;
    assert!(read.as_ref().is_err_and(|error| !error.is_final()), "{read:?}");
    // What the gateway has is read all the same.
    let below = world.read_gap(&source, all_of(wallet)).await.0;
    assert_eq!(below, world.truth(wallet, |row| row.height <= end));
    world.explorer.set_faults(Faults::none());
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    let (newer, _) = world.read_gap(&source, refresh).await;
    assert_eq!(newer, world.truth(wallet, |row| row.height > end));
}

/// An index that gives no page about a wallet.
#[derive(Debug)]
struct NoPages {
    all: DemoTransport,
    wallet: String,
}

impl Transport for NoPages {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let url = request.url.expose();
        if !url.contains("action=") || !url.contains(&self.wallet) {
            return self.all.send(request);
        }
        let failed = Response { status: 503, retry_after: None, body: "".into() };
        Box::pin(async move { Ok(failed) })
    }
}

/// The same if the other way fails only when its pages are requested.
#[tokio::test(start_paused = true)]
async fn a_look_above_a_gateway_is_an_error_where_the_other_ways_pages_fail() {
    let world = world("eth");
    let wallet = world.model.add_named("trader", WalletPlan::trades(60));
    let end = world.truth(wallet, |_| true)[10].1;
    let lag = world.model.head() - end;
    world.portal.set_options(PortalOptions { lag, ..PortalOptions::default() });
    let pages = NoPages { all: world.transport(), wallet: wallet.to_string().to_lowercase() };
    let source = world.source_through(Arc::new(pages), &[Discovery::Portal, Discovery::Explorer]);
    let refresh = GapRequest { low: end + 1, ..all_of(wallet) };
    let read = source.read(refresh).next().await;
    assert!(read.as_ref().is_err_and(|error| !error.is_final()), "{read:?}");
}

/// An index that was rebuilt from a later block shows a wallet as if it were younger.
#[tokio::test(start_paused = true)]
async fn what_an_index_does_not_have_below_its_first_block_is_in_doubt() {
    let world = world("eth");
    let wallet = world.model.add_named("trader", WalletPlan::trades(60));
    for first in [0, world.model.head() / 2] {
        world.explorer.set_options(ExplorerOptions { first, ..ExplorerOptions::default() });
        let mut reader = world.source(&[Discovery::Explorer]).read(all_of(wallet));
        let (mut doubts, mut low) = (Doubts::NONE, None);
        while let Some(chunk) = reader.next().await.unwrap() {
            (doubts, low) = (doubts.union(chunk.proof.doubts), Some(chunk.low));
        }
        assert_eq!((doubts.contains(Doubts::DEPTH), low), (first > 0, Some(0)));
    }
}

/// An index whose list of inner calls ends at a block without saying so, and which returns none of
/// the calls that would show it.
#[derive(Debug)]
struct LateCalls {
    index: DemoTransport,
    wrapped: String,
    until: u64,
}

impl LateCalls {
    fn cut(&self, url: &str) -> SecretUrl {
        let (before, rest) = url.split_once("endblock=").unwrap();
        let (end, after) = rest.split_once('&').unwrap();
        let end = end.parse::<u64>().unwrap().min(self.until);
        SecretUrl::new(format!("{before}endblock={end}&{after}"))
    }
}

impl Transport for LateCalls {
    fn send(&self, mut request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let url = request.url.expose().to_owned();
        let is_about_calls = url.contains("action=txlistinternal");
        if is_about_calls && url.contains(&self.wrapped) {
            let text = "Query Timeout occured. Please select a smaller result dataset";
            let body = json!({"status": "0", "message": "NOTOK", "result": text}).to_string();
            let refused = Response { status: 200, retry_after: None, body: body.into() };
            return Box::pin(async move { Ok(refused) });
        }
        if is_about_calls {
            request.url = self.cut(&url);
        }
        self.index.send(request)
    }
}

/// What such a list lacks is read from traces: without its payment a sale for native coin is no
/// sale.
#[tokio::test(start_paused = true)]
async fn calls_of_a_list_that_does_not_show_how_far_it_has_come_are_traced() {
    let world = world("eth");
    let wallet = world.model.add_named("trader", WalletPlan::only(TradeKind::V3, 200));
    let truth = world.truth(wallet, |_| true);
    let wrapped = world.chain.wrapped_native.to_string().to_lowercase();
    let late = LateCalls { index: world.transport(), wrapped, until: truth[100].1 };
    let source = world.source_through(Arc::new(late), &[Discovery::Explorer]);
    // From the head, and then up to the height that this read reached.
    for high in [None, Some(truth[0].1)] {
        let gap = GapRequest { high, ..all_of(wallet) };
        let (found, doubts) = world.read_gap(&source, gap).await;
        assert_eq!(found, truth);
        assert!(doubts.contains(Doubts::INNER_CALLS), "up to {high:?}");
    }
}

/// Several wanted transactions of one block: the block and its receipts, not two calls for each.
#[tokio::test(start_paused = true)]
async fn several_transactions_of_a_block_take_two_calls() {
    let world = world("eth");
    let plan = WalletPlan { burst: 60, ..WalletPlan::trades(600) };
    let wallet = world.model.add_named("bot", plan);
    let found = world.read(Discovery::Explorer, wallet).await;
    assert_eq!(found, world.truth(wallet, |_| true));
    let mut blocks: HashMap<u64, HashSet<TxId>> = HashMap::new();
    for (id, block, ..) in &found {
        blocks.entry(*block).or_default().insert(*id);
    }
    let crowded: usize = blocks.values().map(HashSet::len).filter(|count| *count > 1).sum();
    let stats = world.rpc.stats();
    let by_block = stats.calls_of("eth_getBlockReceipts");
    let by_hash = stats.calls_of("eth_getTransactionReceipt");
    let trades: usize = blocks.values().map(HashSet::len).sum();
    assert!(crowded > 50 && by_block > 0, "{crowded} of {trades}, {by_block} by block");
    // The check of the index's first block requests the senders of a few events.
    let looked_up = stats.calls_of("eth_getTransactionByHash");
    assert!((by_hash..=by_hash + 3).contains(&looked_up), "{:?}", stats.calls);
    let others = u64::try_from(trades - crowded).unwrap();
    // Transfers, liquidity and the like are fetched too.
    assert!(by_hash <= others * 2, "{by_hash} receipts for {others} trades in blocks of their own");
}
