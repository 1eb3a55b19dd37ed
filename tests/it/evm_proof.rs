//! What a read of an EVM wallet claims: empty, short or outdated answers prove nothing, and a
//! transaction that no endpoint returns hides nothing below it.

use std::sync::Arc;
use std::time::Duration;

use blotter::decode::evm::NativeFlows;
use blotter::domain::{Address, Doubts, Height, Proof, TxId, Way};
use blotter::registry::{Chain as RegistryChain, Registry};
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, UpstreamError};
use blotter::sources::{
    AbilityKind, Discovery, EvmLimits, EvmParts, EvmSource, GapRequest, Offered, RawTx, Source,
};
use tokio::time::Instant;

use crate::support::evm_node::{Chain, Net, Traces, UNKNOWN, WALLET, Ways, Word, hex};
use crate::support::reading::all_of;
use crate::support::script::Epoch;

const HEAD: Height = 300_000;
/// More than the newest block is above the final one.
const LAG: Height = 200;

fn source(net: &Arc<Net>, nodes: usize) -> Source {
    source_by(net, nodes, vec![Discovery::Logs])
}

fn source_by(net: &Arc<Net>, nodes: usize, discovery: Vec<Discovery>) -> Source {
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named("eth").unwrap().clone();
    source_of(net, nodes, (chain, discovery))
}

/// A source by logs, which assumes that nodes' indexes lag at most this many blocks.
fn source_lagging(net: &Arc<Net>, nodes: usize) -> Source {
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named("eth").unwrap().clone();
    source_of(net, nodes, (RegistryChain { index_lag: LAG, ..chain }, vec![Discovery::Logs]))
}

fn source_of(
    net: &Arc<Net>,
    nodes: usize,
    (chain, discovery): (RegistryChain, Vec<Discovery>),
) -> Source {
    let registry = Arc::new(Registry::embedded().unwrap());
    let pool = |hosts: Vec<String>| {
        let endpoint = |host: String| EndpointConfig {
            batch: Some(20),
            ..EndpointConfig::new(format!("http://{host}/planted-secret"))
        };
        let endpoints = hosts.into_iter().map(endpoint).collect();
        let transport: Arc<Net> = Arc::clone(net);
        Pool::new(endpoints, transport, PoolLimits::default(), Arc::new(Epoch), 3)
    };
    let gone = pool(vec!["gone".to_owned()]);
    Source::Evm(EvmSource::new(EvmParts {
        chain,
        registry,
        rpc: pool((0..nodes).map(|at| format!("node{at}")).collect()),
        explorer: Some(gone.clone()),
        portal: Some(gone),
        discovery,
        limits: EvmLimits::default(),
    }))
}

/// A sale every 1,000 blocks.
fn chain() -> Chain {
    let mut chain = Chain::new(HEAD);
    for at in 1..300 {
        chain.add(at * 1_000, &WALLET, &UNKNOWN).swap().transfer(&WALLET, &UNKNOWN, 7);
        chain.add(at * 1_000 + 3, &WALLET, &UNKNOWN).swap().transfer(&UNKNOWN, &WALLET, 7);
    }
    chain
}

/// The result of a read.
#[derive(Debug, Default)]
struct Got {
    found: Vec<(Height, Word)>,
    missing: Vec<(Height, TxId)>,
    doubts: Doubts,
    ways: Vec<Way>,
    high: Option<Height>,
    low: Height,
    error: Option<UpstreamError>,
}

impl Got {
    /// Whether it may count towards a complete history.
    fn is_accepted(&self, source: &Source) -> bool {
        let proof = |way: &Way| Proof::of(*way).with(self.doubts);
        self.error.is_none() && self.ways.iter().all(|way| source.accepts(proof(way)))
    }
}

async fn read(source: &Source, low: Height) -> Got {
    read_gap(source, GapRequest { low, ..all_of(Address::Evm(WALLET)) }).await
}

async fn read_gap(source: &Source, gap: GapRequest) -> Got {
    let mut reader = source.read(gap);
    let mut got = Got::default();
    loop {
        match reader.next().await {
            Ok(Some(chunk)) => {
                got.high = got.high.or(Some(chunk.high));
                got.low = chunk.low;
                got.doubts = got.doubts.union(chunk.proof.doubts);
                got.ways.push(chunk.proof.way);
                got.missing.extend(chunk.missing);
                for tx in chunk.txs {
                    let RawTx::Evm(tx, _) = tx else { panic!("of another family") };
                    assert!(!tx.logs.is_empty(), "as its receipt has it");
                    got.found.push((tx.block, tx.hash));
                }
            }
            Ok(None) => break,
            Err(error) => {
                got.error = Some(error);
                break;
            }
        }
    }
    got.found.sort_unstable();
    got
}

fn truth(net: &Net) -> Vec<(Height, Word)> {
    net.chain.lock().unwrap().truth(0, Height::MAX)
}

/// The read is complete, and true if it is accepted.
#[track_caller]
fn is_true(source: &Source, net: &Net, got: &Got) {
    assert_eq!(got.error, None);
    assert_eq!((got.high, got.low), (Some(HEAD), 0));
    assert_eq!(got.found.len(), truth(net).len());
    assert_eq!(got.found, truth(net));
    assert!(got.is_accepted(source), "{:?}", got.doubts);
}

#[tokio::test(start_paused = true)]
async fn logs_of_an_archive_node_are_accepted() {
    let net = Net::new(chain(), vec![Ways::default()]);
    let source = source(&net, 1);
    is_true(&source, &net, &read(&source, 0).await);
}

/// The node has old blocks when its depth is checked, and lacks them in some answers before or
/// after.
#[tokio::test(start_paused = true)]
async fn a_node_that_lacks_old_blocks_now_and_then_is_read_in_full() {
    for every in [2, 3, 5, 7] {
        let dropping = Ways { logs_from: 280_000, drops_every: Some(every), ..Ways::default() };
        for range_max in [u64::MAX, 5_000] {
            let net = Net::new(chain(), vec![Ways { range_max, ..dropping.clone() }]);
            let source = source(&net, 1);
            let got = read(&source, 0).await;
            let is_whole = got.found == truth(&net);
            assert!(is_whole || !got.is_accepted(&source), "{every}, {range_max}");
            // Unless every second request lacks them.
            assert!(is_whole || every == 2, "{every}, {range_max}");
        }
    }
}

/// A node that was restored from older blocks, or whose address leads to a lagging server: it had
/// been seen further, and now returns `[]` for the blocks that it lacks.
#[tokio::test(start_paused = true)]
async fn a_node_that_falls_back_far_is_not_believed_above_where_it_has_come_now() {
    for (range_max, seconds) in [(u64::MAX, 6), (5_000, 6), (u64::MAX, 31), (5_000, 31)] {
        let ways = Ways { range_max, ..Ways::default() };
        let net = Net::new(chain(), vec![ways.clone()]);
        let source = source(&net, 1);
        is_true(&source, &net, &read(&source, 0).await);
        net.set(0, Ways { lag: 100_000, ..ways.clone() });
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        // Far below the head that the node reported.
        let high = HEAD - 10_000;
        let gap = GapRequest { high: Some(high), ..all_of(Address::Evm(WALLET)) };
        let got = read_gap(&source, gap.clone()).await;
        assert!(got.error.is_some(), "{} found, {:?}", got.found.len(), got.doubts);
        net.set(0, ways);
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        let got = read_gap(&source, gap).await;
        assert_eq!(got.error, None);
        assert_eq!(got.found, net.chain.lock().unwrap().truth(0, high));
        assert!(got.is_accepted(&source), "{:?}", got.doubts);
    }
}

/// With sales at the head.
fn busy_at_head() -> Chain {
    let mut chain = chain();
    for below in [15, 1] {
        let sale = chain.add(HEAD - below, &WALLET, &UNKNOWN).swap();
        sale.transfer(&WALLET, &UNKNOWN, 7);
    }
    chain
}

/// The read is true up to the height that it reached.
#[track_caller]
fn is_true_below(source: &Source, net: &Net, got: &Got, least: Height) {
    assert_eq!((got.error.clone(), got.low), (None, 0));
    let high = got.high.unwrap();
    assert!((least..=HEAD).contains(&high), "{high}");
    assert_eq!(got.found, net.chain.lock().unwrap().truth(0, high));
    assert!(got.is_accepted(source), "{:?}", got.doubts);
}

/// What one node shows for the newest blocks is not assumed of another, the one for long ranges,
/// whose logs lag behind its reported head.
#[tokio::test(start_paused = true)]
async fn logs_that_are_behind_their_nodes_head_are_not_believed_up_to_it() {
    let short = Ways { range_max: 10, ..Ways::default() };
    let lagging = Ways { logs_lag: 84, ..Ways::default() };
    for nodes in [vec![short.clone(), lagging.clone()], vec![lagging.clone(), short]] {
        let net = Net::new(busy_at_head(), nodes);
        let source = source_lagging(&net, 2);
        let got = read(&source, 0).await;
        is_true_below(&source, &net, &got, HEAD - LAG);
        // Read by long ranges below.
        assert!(net.calls("eth_getLogs") < 2_000, "{}", net.calls("eth_getLogs"));
    }
}

/// The height is known from another list, which failed afterwards.
#[tokio::test(start_paused = true)]
async fn logs_that_are_behind_show_nothing_of_a_height_that_is_known() {
    let net = Net::new(busy_at_head(), vec![Ways { logs_lag: 84, ..Ways::default() }]);
    let source = source_lagging(&net, 1);
    let gap = GapRequest { high: Some(HEAD), ..all_of(Address::Evm(WALLET)) };
    let got = read_gap(&source, gap.clone()).await;
    assert!(got.error.is_some(), "{} found, {:?}", got.found.len(), got.doubts);
    net.set(0, Ways::default());
    tokio::time::sleep(Duration::from_secs(60)).await;
    is_true(&source, &net, &read_gap(&source, gap).await);
}

/// If no contract has logs in the newest blocks, nothing shows how far logs go; nothing waits.
#[tokio::test(start_paused = true)]
async fn a_quiet_chain_is_read_as_far_up_as_its_nodes_logs_go_at_least() {
    let quiet = Ways { quiet: true, logs_lag: 84, ..Ways::default() };
    let net = Net::new(busy_at_head(), vec![quiet]);
    let source = source_lagging(&net, 1);
    is_true_below(&source, &net, &read(&source, 0).await, HEAD - LAG);
}

/// Issue 16, 1: the node returns `[]` for blocks whose receipts it has pruned.
#[tokio::test(start_paused = true)]
async fn a_pruned_node_alone_proves_nothing_below_what_it_keeps() {
    let pruned = Ways { logs_from: 200_000, ..Ways::default() };
    for range_max in [u64::MAX, 5_000] {
        let net = Net::new(chain(), vec![Ways { range_max, ..pruned.clone() }]);
        let source = source(&net, 1);
        let got = read(&source, 0).await;
        assert!(!got.is_accepted(&source), "{} of 598", got.found.len());
        let kept = read(&source, 210_000).await;
        assert!(kept.is_accepted(&source), "{:?} {:?}", kept.error, kept.doubts);
        // The node gets its old blocks back.
        net.set(0, Ways { range_max, ..Ways::default() });
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        is_true(&source, &net, &read(&source, 0).await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_archive_node_next_to_a_pruned_one_is_used() {
    let pruned = Ways { logs_from: 200_000, ..Ways::default() };
    let refuses = |says| Ways { refuses_receipts: Some(says), ..pruned.clone() };
    let shows_nothing = Ways { refuses_blocks: Some("not today"), ..pruned.clone() };
    let (says_pruned, says_nothing) = (refuses("history is pruned"), refuses("not today"));
    for pruned in [pruned, shows_nothing, says_pruned, says_nothing] {
        for nodes in [vec![Ways::default(), pruned.clone()], vec![pruned.clone(), Ways::default()]]
        {
            let net = Net::new(chain(), nodes);
            let source = source(&net, 2);
            for _ in 0..2 {
                is_true(&source, &net, &read(&source, 0).await);
            }
        }
    }
}

/// Issue 16, 5: transient `[]`, answers that stop early, backends that are behind.
#[tokio::test(start_paused = true)]
async fn one_empty_or_short_answer_is_not_believed() {
    for every in [3, 5, 7] {
        let faults = [
            Ways { empty_logs_every: every, ..Ways::default() },
            Ways { short_logs_every: every, ..Ways::default() },
            Ways { behind_every: every, behind: 70, ..Ways::default() },
            Ways { empty_logs_every: every, range_max: 5_000, ..Ways::default() },
        ];
        for ways in faults {
            for nodes in [1, 2] {
                let net = Net::new(chain(), vec![ways.clone(); nodes]);
                let source = source(&net, nodes);
                let got = read(&source, 0).await;
                assert_eq!(got.error, None);
                let is_whole = got.found == truth(&net);
                let shown = (got.found.len(), got.doubts);
                assert!(is_whole || !got.is_accepted(&source), "{shown:?} {ways:?}");
                assert!(is_whole, "{shown:?} {ways:?}");
            }
        }
    }
}

/// One server answers all that is in one request.
#[tokio::test(start_paused = true)]
async fn two_empty_requests_are_not_believed() {
    for range_max in [u64::MAX, 5_000] {
        let ways = Ways { full_requests_every: 3, range_max, ..Ways::default() };
        let net = Net::new(chain(), vec![ways]);
        let source = source(&net, 1);
        let got = read(&source, 0).await;
        let is_whole = got.found == truth(&net);
        let shown = (got.found.len(), got.doubts, got.error.clone());
        assert!(is_whole || !got.is_accepted(&source), "{shown:?}, {range_max}");
    }
}

/// Two nodes, each of which always omits what the other one has: all is found, but no number of
/// answers proves it.
#[tokio::test(start_paused = true)]
async fn answers_that_never_agree_leave_a_doubt() {
    let chain = chain();
    let hidden = [150_000, 250_000].map(|block| chain.truth(block, block)[0].1);
    let ways = hidden.map(|hash| Ways { hides_logs_of: Some(hash), ..Ways::default() });
    let net = Net::new(chain, ways.to_vec());
    let source = source(&net, 2);
    let got = read(&source, 0).await;
    assert_eq!((got.error.clone(), got.low), (None, 0));
    assert_eq!(got.found, truth(&net));
    assert!(got.doubts.contains(Doubts::UNCONFIRMED), "{:?}", got.doubts);
    assert!(!got.is_accepted(&source));
}

/// The depth, range and refusals that reads found of each endpoint.
#[tokio::test(start_paused = true)]
async fn what_is_found_of_each_node_is_shown() {
    let logs = |source: &Source| {
        source.abilities()[0].iter().find(|one| one.kind == AbilityKind::Logs).cloned().unwrap()
    };
    let net = Net::new(chain(), vec![Ways::default()]);
    let whole = source(&net, 1);
    assert_eq!((logs(&whole).offered, logs(&whole).from), (Offered::Unknown, None));
    is_true(&whole, &net, &read(&whole, 0).await);
    let found = logs(&whole);
    assert_eq!((found.offered, found.lacks, found.most), (Offered::Yes, None, None));
    assert!(found.from.is_some_and(|from| from < 10_000) && !found.is_short(), "{found:?}");
    let pruned = Ways { logs_from: 200_000, range_max: 5_000, ..Ways::default() };
    let short = source(&Net::new(chain(), vec![pruned]), 1);
    assert!(!read(&short, 0).await.is_accepted(&short));
    let found = logs(&short);
    assert_eq!((found.offered, found.most), (Offered::Yes, Some(5_000)));
    assert!(found.lacks.is_some_and(|height| height < 200_000) && found.is_short(), "{found:?}");
    assert!(found.from.is_some_and(|from| from >= 200_000), "{found:?}");
}

/// Issue 16, 7.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_no_endpoint_gives_hides_nothing_below_it() {
    let chain = chain();
    let lacks = chain.truth(150_000, 150_000)[0];
    let net = Net::new(chain, vec![Ways { lacks: Some(lacks.1), ..Ways::default() }]);
    let source = source(&net, 1);
    let got = read(&source, 0).await;
    assert_eq!((got.error, got.missing), (None, vec![(lacks.0, TxId::Evm(lacks.1))]));
    assert_eq!(got.low, 0);
    let mut given = truth(&net);
    given.retain(|one| *one != lacks);
    assert_eq!(got.found, given);
    assert!(net.calls("eth_getTransactionByHash") < 620, "bounded");
}

/// One on which every endpoint always fails: by hash only, in every way, or on its block's time.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_every_endpoint_fails_on_hides_nothing_below_it() {
    let one = chain().truth(150_000, 150_000)[0];
    let (hash, block) = (hex(&one.1), format!("{:#x}", one.0));
    let cases = [
        ("eth_getTransactionReceipt", &hash, false, true),
        ("eth_getTransactionReceipt", &hash, true, false),
        ("eth_getTransactionByHash", &hash, true, false),
        ("eth_getBlockByNumber", &block, false, false),
    ];
    // An error that passes elsewhere, and one that no table knows.
    for says in ["internal error", "rlp: element is larger than containing list"] {
        for (method, on, lacks, is_given) in cases {
            let breaks = Some((method, on.clone(), says));
            let lacks = lacks.then_some(one.1);
            let net = Net::new(chain(), vec![Ways { lacks, breaks, ..Ways::default() }]);
            let (source, began) = (source(&net, 1), Instant::now());
            let got = read(&source, 0).await;
            assert_eq!((got.error.clone(), got.low), (None, 0), "{method} {says}");
            let took = began.elapsed();
            assert!(took < Duration::from_secs(10), "{method} {says}: {took:?}");
            let mut given = truth(&net);
            given.retain(|tx| is_given || *tx != one);
            assert_eq!(got.found, given, "{method} {says}");
            let missing = if is_given { vec![] } else { vec![(one.0, TxId::Evm(one.1))] };
            assert_eq!(got.missing, missing, "{method} {says}");
        }
    }
}

/// Some services return only the newest logs of a range, the same ones in every answer.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_cut_alike_each_time_is_not_believed() {
    for logs_cap in [100, 120, 200] {
        for nodes in [1, 2] {
            let ways = Ways { logs_cap, ..Ways::default() };
            let net = Net::new(chain(), vec![ways; nodes]);
            let source = source(&net, nodes);
            is_true(&source, &net, &read(&source, 0).await);
            assert!(net.calls("eth_getLogs") < 400, "{}", net.calls("eth_getLogs"));
        }
    }
}

/// A receipt without the events that the list shows for its transaction is rejected.
#[tokio::test(start_paused = true)]
async fn a_receipt_without_the_listed_transfer_is_not_believed() {
    let bare = |every| Ways { bare_every: every, ..Ways::default() };
    let failed = |every| Ways { failed_every: every, ..Ways::default() };
    for ways in [bare(3), failed(3)] {
        let net = Net::new(chain(), vec![ways]);
        let source = source(&net, 1);
        is_true(&source, &net, &read(&source, 0).await);
    }
    for liar in [bare(1), failed(1)] {
        let net = Net::new(chain(), vec![liar.clone(), Ways::default()]);
        let two = source(&net, 2);
        is_true(&two, &net, &read(&two, 0).await);
        // Receipts by block are complete.
        let net = Net::new(chain(), vec![liar]);
        let one = source(&net, 1);
        is_true(&one, &net, &read(&one, 0).await);
    }
}

/// A trace without the call of a pool that logged a trade lacks what the pool paid.
#[tokio::test(start_paused = true)]
async fn a_trace_that_leaves_out_calls_is_asked_for_elsewhere() {
    let router = [0x55; 20];
    let mut chain = Chain::new(HEAD);
    for at in 1..30 {
        let sale = chain.add(at * 1_000, &WALLET, &router).swap().transfer(&WALLET, &UNKNOWN, 7);
        sale.call(&router, &WALLET, 5);
    }
    let hollow = Ways { hollow_traces: true, keeps_states: false, ..Ways::default() };
    let net = Net::new(chain, vec![hollow, Ways::default()]);
    let two = source(&net, 2);
    let paid = async |source: &Source| {
        let (mut reader, mut paid) = (source.read(all_of(Address::Evm(WALLET))), 0);
        while let Some(chunk) = reader.next().await.unwrap() {
            let is_paid = |tx: &&RawTx| {
                let RawTx::Evm(tx, _) = tx else { panic!("of another family") };
                matches!(&tx.native, NativeFlows::Calls(calls) if calls.len() == 1)
            };
            paid += chunk.txs.iter().filter(is_paid).count();
        }
        paid
    };
    assert_eq!(paid(&two).await, 29);
}

/// Logs replace a gateway for an account without code; the account may get code later.
#[tokio::test(start_paused = true)]
async fn that_an_account_has_no_code_is_believed_for_a_minute() {
    let ways = |code| Ways { code: Some(code), ..Ways::default() };
    let net = Net::new(chain(), vec![ways("0x")]);
    let source = source_by(&net, 1, vec![Discovery::Portal, Discovery::Logs]);
    let is_in_doubt = async || read(&source, 0).await.doubts.contains(Doubts::INNER_CALLS);
    assert!(!is_in_doubt().await);
    net.set(0, ways("0xef0100"));
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(is_in_doubt().await);
}

/// Geth keeps the index of transaction hashes for 2,350,000 blocks.
#[tokio::test(start_paused = true)]
async fn transactions_that_are_no_longer_found_by_hash_are_found_by_place() {
    let net = Net::new(chain(), vec![Ways { hashes_from: 250_000, ..Ways::default() }]);
    let source = source(&net, 1);
    let began = Instant::now();
    let got = read(&source, 0).await;
    assert_eq!(got.missing, []);
    is_true(&source, &net, &got);
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn many_transactions_that_no_endpoint_gives_are_an_error() {
    let net = Net::new(chain(), vec![Ways { null_every: 1, ..Ways::default() }]);
    // Look-ups by block and index, and receipts, are answered; blocks below 1 are unknown.
    net.set(0, Ways { null_every: 1, logs_from: 1, ..Ways::default() });
    let source = source(&net, 1);
    let got = read(&source, 0).await;
    assert!(got.error.is_some() || got.missing.is_empty(), "{}", got.missing.len());
}

/// Issue 16, 1: heights that are read by logs while the index is down are served but not accepted.
#[tokio::test(start_paused = true)]
async fn a_weaker_way_than_the_strongest_is_not_accepted() {
    let net = Net::new(chain(), vec![Ways::default()]);
    let source = source_by(&net, 1, vec![Discovery::Explorer, Discovery::Logs]);
    let got = read(&source, 0).await;
    assert_eq!(got.error, None);
    assert_eq!(got.found, truth(&net));
    assert!(got.doubts.contains(Doubts::INNER_CALLS) && !got.is_accepted(&source));
}

/// Payments in inner calls are in no log. Without traces, a read in place of a way that lists calls
/// would lose their amounts for good, even for an account without code.
#[tokio::test(start_paused = true)]
async fn logs_that_lack_payments_are_not_accepted_in_place_of_a_list_of_calls() {
    for first in [Discovery::Explorer, Discovery::Portal] {
        for (traces, are_known) in [(Traces::None, false), (Traces::Tree, true)] {
            let ways = Ways { traces, keeps_states: false, code: Some("0x"), ..Ways::default() };
            let net = Net::new(chain(), vec![ways]);
            let both = source_by(&net, 1, vec![first, Discovery::Logs]);
            let got = read(&both, 0).await;
            assert_eq!(got.error, None);
            assert_eq!(got.found, truth(&net));
            assert_eq!(got.is_accepted(&both), are_known, "{first}, {traces:?}: {:?}", got.doubts);
            assert_eq!(got.doubts.contains(Doubts::INNER_CALLS), !are_known);
            // If no way lists calls, there is nothing to wait for.
            let alone = source(&net, 1);
            is_true(&alone, &net, &read(&alone, 0).await);
        }
    }
}

/// An earlier read may have seen them in the list; its amounts stay until the list is back.
#[tokio::test(start_paused = true)]
async fn payments_that_a_list_of_calls_may_have_shown_are_gone_while_it_is_away() {
    let router = [0x55; 20];
    let mut chain = Chain::new(HEAD);
    for at in 1..=5 {
        let sale = chain.add(at * 1_000, &WALLET, &router).swap();
        sale.transfer(&WALLET, &UNKNOWN, 7).call(&router, &WALLET, 5);
    }
    let (traces, code) = (Traces::None, Some("0x"));
    let ways = Ways { traces, keeps_states: false, code, ..Ways::default() };
    let net = Net::new(chain, vec![ways]);
    let flows = async |source: &Source| {
        let (mut reader, mut flows) = (source.read(all_of(Address::Evm(WALLET))), Vec::new());
        while let Some(chunk) = reader.next().await.unwrap() {
            flows.extend(chunk.txs.iter().map(|tx| {
                let RawTx::Evm(tx, _) = tx else { panic!("of another family") };
                tx.native.clone()
            }));
        }
        flows
    };
    let both = source_by(&net, 1, vec![Discovery::Explorer, Discovery::Logs]);
    assert_eq!(flows(&both).await, vec![NativeFlows::Gone; 5]);
    assert_eq!(flows(&source(&net, 1)).await, vec![NativeFlows::Unknown; 5]);
}
