//! The EVM source against nodes with the faults of real ones: every possible trade exactly once, in
//! chunks without gaps, within limits of calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use blotter::decode::evm::{Account, NativeFlows};
use blotter::domain::{Address, Height, Units};
use blotter::registry::Registry;
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, UpstreamError};
use blotter::sources::{
    Discovery, EvmLimits, EvmParts, EvmSource, GapReader, GapRequest, HashCheck, RawChunk, RawTx,
    RunAhead, Source,
};
use tokio::time::Instant;

use crate::support::evm_node::{
    Chain, Net, OTHER, PRODUCER, Placed, SETTLEMENT, Says, Traces, UNKNOWN, WALLET, Ways, Word,
    account,
};
use crate::support::reading::{all_of, lane};
use crate::support::script::Epoch;

fn pool(net: &Arc<Net>, hosts: &[String], batch: usize) -> Pool {
    let endpoint = |host: &String| EndpointConfig {
        batch: Some(batch),
        ..EndpointConfig::new(format!("http://{host}/planted-secret"))
    };
    let transport: Arc<Net> = Arc::clone(net);
    let endpoints = hosts.iter().map(endpoint).collect();
    Pool::new(endpoints, transport, PoolLimits::default(), Arc::new(Epoch), 3)
}

fn source_on(net: &Arc<Net>, nodes: usize, batch: usize, discovery: Vec<Discovery>) -> Source {
    let registry = Arc::new(Registry::embedded().unwrap());
    let hosts: Vec<String> = (0..nodes).map(|at| format!("node{at}")).collect();
    let gone = Some(pool(net, &["gone".to_owned()], 1));
    Source::Evm(EvmSource::new(EvmParts {
        chain: registry.chain_named("eth").unwrap().clone(),
        registry,
        rpc: pool(net, &hosts, batch),
        explorer: gone.clone(),
        portal: gone,
        discovery,
        limits: EvmLimits::default(),
    }))
}

fn source_with(net: &Arc<Net>, nodes: usize, batch: usize) -> Source {
    source_on(net, nodes, batch, vec![Discovery::Logs])
}

fn all() -> GapRequest {
    all_of(Address::Evm(WALLET))
}

/// The result of a read, whose chunks are checked as they come.
#[derive(Debug, Default)]
struct Got {
    chunks: Vec<(Height, Height, usize)>,
    found: Vec<(Height, Word)>,
    native: BTreeMap<Word, NativeFlows>,
    producers: BTreeMap<Word, Option<Account>>,
    missing: Vec<Height>,
    error: Option<UpstreamError>,
}

impl Got {
    fn take(&mut self, chunk: RawChunk) {
        assert!(chunk.low <= chunk.high);
        if let Some((low, ..)) = self.chunks.last() {
            assert_eq!(chunk.high + 1, *low, "chunks touch");
        }
        self.chunks.push((chunk.low, chunk.high, chunk.txs.len()));
        self.missing.extend(chunk.missing.iter().map(|(height, _)| *height));
        let mut above = (chunk.high, u32::MAX);
        for tx in chunk.txs {
            let RawTx::Evm(tx, time) = tx else { panic!("of another family") };
            assert!(tx.block >= chunk.low, "inside");
            assert!((tx.block, tx.index) < above, "newest first, each once");
            above = (tx.block, tx.index);
            assert!(tx.succeeded);
            assert_eq!(u64::from(time.0), 1_600_000_000 + tx.block);
            self.found.push((tx.block, tx.hash));
            self.producers.insert(tx.hash, tx.producer);
            self.native.insert(tx.hash, tx.native);
        }
    }

    fn low(&self) -> Option<Height> {
        self.chunks.last().map(|(low, ..)| *low)
    }

    #[track_caller]
    fn is(&self, truth: Vec<(Height, Word)>) {
        let mut found = self.found.clone();
        found.sort_unstable();
        assert_eq!(found.len(), truth.len());
        assert_eq!(found, truth);
    }
}

async fn drain(reader: &mut GapReader) -> Got {
    let mut got = Got::default();
    loop {
        match reader.next().await {
            Ok(Some(chunk)) => got.take(chunk),
            Ok(None) => return got,
            Err(error) => {
                got.error = Some(error);
                assert!(matches!(reader.next().await, Ok(None)), "nothing comes behind an error");
                return got;
            }
        }
    }
}

async fn read(source: &Source, request: GapRequest) -> Got {
    let got = drain(&mut source.read(request.clone())).await;
    if got.error.is_none() {
        assert_eq!(got.low(), Some(request.low));
    }
    got
}

/// One transaction of a kind by number.
fn place(chain: &mut Chain, block: Height, kind: u64) -> &mut Placed {
    let settlement = account(SETTLEMENT);
    match kind % 10 {
        0 => chain
            .add(block, &OTHER, &UNKNOWN)
            .transfer(&UNKNOWN, &WALLET, 5)
            .transfer(&UNKNOWN, &OTHER, 5)
            .unwanted(),
        1 => chain.add(block, &OTHER, &UNKNOWN).transfer(&WALLET, &UNKNOWN, 0).unwanted(),
        2 => chain.add(block, &WALLET, &UNKNOWN).transfer(&WALLET, &UNKNOWN, 5).fails(),
        3 => chain.add(block, &OTHER, &settlement).transfer(&WALLET, &settlement, 9).transfer(
            &settlement,
            &WALLET,
            8,
        ),
        4 => chain.add(block, &OTHER, &settlement).transfer(&settlement, &WALLET, 8),
        5 => chain
            .add(block, &OTHER, &UNKNOWN)
            .user_operation(&WALLET)
            .transfer(&UNKNOWN, &WALLET, 3),
        6 => chain.add(block, &OTHER, &WALLET).transfer(&UNKNOWN, &WALLET, 3),
        7 => chain.add(block, &WALLET, &UNKNOWN).gives(50).swap().transfer(&UNKNOWN, &WALLET, 7),
        _ => chain
            .add(block, &WALLET, &UNKNOWN)
            .swap()
            .transfer(&WALLET, &UNKNOWN, 7)
            .call(&UNKNOWN, &WALLET, 30),
    }
}

/// A wallet with runs of transactions in some blocks and long pauses between others.
fn busy_chain(count: u64, head: Height, seed: u64) -> Chain {
    let mut chain = Chain::new(head);
    let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut roll = move || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice
    };
    let mut blocks: Vec<Height> = (0..count / 2)
        .flat_map(|_| {
            let block = 1 + roll() % (head - 1);
            vec![block; usize::try_from(1 + roll() % 3).unwrap()]
        })
        .collect();
    blocks.sort_unstable();
    for block in blocks {
        place(&mut chain, block, roll() >> 20);
    }
    chain
}

fn truth(net: &Net, low: Height, high: Height) -> Vec<(Height, Word)> {
    net.chain.lock().unwrap().truth(low, high)
}

#[tokio::test(start_paused = true)]
async fn gives_every_transaction_that_may_be_a_trade_once() {
    for gives_time in [false, true] {
        let chain = busy_chain(2000, 5_000_000, 1);
        let net = Net::new(chain, vec![Ways { gives_time, ..Ways::default() }]);
        let got = read(&source_with(&net, 1, 20), all()).await;
        assert_eq!(got.error, None);
        got.is(truth(&net, 0, Height::MAX));
        assert!(net.calls("eth_getLogs") < 120, "{}", net.calls("eth_getLogs"));
        // Blocks with several wanted transactions are requested with their receipts.
        let by_block = net.calls("eth_getBlockReceipts");
        let headers = net.calls("eth_getBlockByNumber").saturating_sub(by_block);
        assert_eq!(headers <= 100, gives_time, "times in logs cost a block of many: {headers}");
    }
}

/// Restarts a read below what the last one delivered, as the loader does.
async fn read_on(source: &Source, reads: usize) -> Got {
    let mut got = Got::default();
    for _ in 0..reads {
        let high = got.low().map(|low| low - 1);
        let mut reader = source.read(GapRequest { high, first: false, ..all() });
        let error = loop {
            match reader.next().await {
                Ok(Some(chunk)) => got.take(chunk),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        if error.is_none() {
            return got;
        }
        got.error = error;
    }
    panic!("still no end: {:?}", got.error);
}

#[tokio::test(start_paused = true)]
async fn nodes_with_limits_and_faults_cost_no_transaction() {
    for seed in 0..24 {
        let chain = busy_chain(600, 300_000, seed + 7);
        let says = [Says::Range, Says::Most, Says::TooMuch];
        let ways = |at: u64| Ways {
            range_max: [u64::MAX, 500, 2_000, 10_000][usize::try_from((seed + at) % 4).unwrap()],
            results_max: [usize::MAX, 60, 20][usize::try_from((seed / 2 + at) % 3).unwrap()],
            says: says[usize::try_from((seed + at) % 3).unwrap()],
            gives_time: at == 0,
            null_every: 17 + seed,
            misplaces_every: 23,
            too_many_every: 13,
            lag: if at == 1 { seed * 1000 } else { 0 },
            traces: [Traces::Tree, Traces::Flat, Traces::None]
                [usize::try_from((seed + at) % 3).unwrap()],
            ..Ways::default()
        };
        let net = Net::new(chain, vec![ways(0), ways(1)]);
        let got = read_on(&source_with(&net, 2, 10), 10).await;
        let head = got.chunks[0].1;
        assert!(head == 300_000 || head == 300_000 - seed * 1000, "seed {seed}: {head}");
        got.is(truth(&net, 0, head));
    }
}

#[tokio::test(start_paused = true)]
async fn a_limited_range_takes_few_calls_beyond_its_number() {
    for says in [Says::Range, Says::Most, Says::TooMuch] {
        let ways = Ways { range_max: 2_000, says, ..Ways::default() };
        let net = Net::new(busy_chain(300, 2_000_000, 2), vec![ways]);
        let source = source_with(&net, 1, 50);
        read(&source, all()).await.is(truth(&net, 0, Height::MAX));
        let calls = net.calls("eth_getLogs");
        // Two calls for each of 1,000 ranges, each sent twice. A limit without a number is
        // approached from below.
        let bound = if says == Says::TooMuch { 8_000 } else { 4_200 };
        assert!(calls <= bound, "{says:?}: {calls}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_too_many_logs_is_split() {
    for says in [Says::Range, Says::TooMuch] {
        let ways = Ways { results_max: 50, says, ..Ways::default() };
        let net = Net::new(busy_chain(3_000, 1_000_000, 5), vec![ways]);
        let got = read(&source_with(&net, 1, 50), all()).await;
        assert_eq!(got.error, None);
        got.is(truth(&net, 0, Height::MAX));
        let calls = net.calls("eth_getLogs");
        assert!(calls < 1_500, "about 4,000 logs by 50: {calls}");
    }
}

/// 100,000 unsolicited tokens cost one light call each, and nothing more.
#[tokio::test(start_paused = true)]
async fn a_flood_of_spam_is_cheap() {
    let mut chain = Chain::new(1_000_000);
    for at in 0..100_000 {
        place(&mut chain, 1_000 + at * 5, 0);
    }
    place(&mut chain, 900_000, 9);
    place(&mut chain, 500, 9);
    let net = Net::new(chain, vec![Ways { gives_time: true, ..Ways::default() }]);
    let got = read(&source_with(&net, 1, 100), all()).await;
    assert_eq!(got.error, None);
    got.is(truth(&net, 0, Height::MAX));
    assert_eq!(net.calls("eth_getTransactionReceipt"), 2);
    assert_eq!(net.calls("debug_traceTransaction"), 2);
    assert_eq!(net.calls("eth_getTransactionByHash"), 100_002);
    assert!(net.requests() < 1_300, "{}", net.requests());
}

/// Address poisoning by zero transfers does not even cost that.
#[tokio::test(start_paused = true)]
async fn transfers_of_nothing_cost_nothing() {
    let mut chain = Chain::new(1_000_000);
    for at in 0..10_000 {
        place(&mut chain, 1_000 + at * 50, 1);
    }
    let net = Net::new(chain, vec![Ways::default()]);
    let got = read(&source_with(&net, 1, 100), all()).await;
    assert_eq!((got.error, got.found.len()), (None, 0));
    assert_eq!(net.calls("eth_getTransactionByHash"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_behind_hides_nothing() {
    for batch in [1, 20] {
        for order in 0..2 {
            let mut nodes = vec![Ways::default(), Ways::default()];
            nodes[order].lag = 200_000;
            let net = Net::new(busy_chain(400, 300_000, 11), nodes);
            let source = source_with(&net, 2, batch);
            // A gap whose top only one of the nodes has reached.
            let got = read(&source, GapRequest { high: Some(290_000), ..all() }).await;
            assert_eq!(got.error, None, "node {order} is behind");
            got.is(truth(&net, 0, 290_000));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn blocks_that_no_node_has_yet_are_no_empty_blocks() {
    let net = Net::new(busy_chain(400, 300_000, 12), vec![Ways::default()]);
    let source = source_with(&net, 1, 20);
    let got = read(&source, GapRequest { high: Some(300_065), ..all() }).await;
    assert_eq!((got.error.is_some(), got.chunks.len()), (true, 0));
    net.chain.lock().unwrap().set_head(300_001);
    let got = read(&source, GapRequest { high: Some(300_065), ..all() }).await;
    got.is(truth(&net, 0, 300_065));
}

#[tokio::test(start_paused = true)]
async fn a_node_without_logs_leaves_them_to_another() {
    let nodes = vec![Ways { gives_logs: false, ..Ways::default() }, Ways::default()];
    let net = Net::new(busy_chain(400, 300_000, 13), nodes);
    let got = read(&source_with(&net, 2, 20), all()).await;
    assert_eq!(got.error, None);
    got.is(truth(&net, 0, Height::MAX));
    // Two queries, each asked once more, until three answers apart from each other say so.
    assert!(net.calls_of(0, "eth_getLogs") <= 12, "{}", net.calls_of(0, "eth_getLogs"));
}

/// A second answer may come from another endpoint, unless that one slows the read.
#[tokio::test(start_paused = true)]
async fn a_much_slower_node_next_to_a_quick_one_costs_little() {
    let read_by = async |nodes: Vec<Ways>| {
        let (count, net) = (nodes.len(), Net::new(busy_chain(400, 300_000, 15), nodes));
        let began = Instant::now();
        let got = read(&source_with(&net, count, 20), all()).await;
        assert_eq!(got.error, None);
        got.is(truth(&net, 0, Height::MAX));
        began.elapsed()
    };
    // Many ranges, each with a second answer.
    let quick = Ways { range_max: 5_000, ..Ways::default() };
    let slow = Ways { slower: 50, ..quick.clone() };
    let (alone, both) = (read_by(vec![quick.clone()]).await, read_by(vec![slow, quick]).await);
    // Its head and chain are asked for, and it is measured once.
    assert!(both <= alone + Duration::from_secs(15), "{alone:?} {both:?}");
}

/// The one with the small range does not hold up the other.
#[tokio::test(start_paused = true)]
async fn the_largest_range_is_used() {
    let small = Ways { range_max: 10, ..Ways::default() };
    for nodes in [vec![small.clone(), Ways::default()], vec![Ways::default(), small]] {
        let net = Net::new(busy_chain(400, 3_000_000, 14), nodes);
        let got = read(&source_with(&net, 2, 20), all()).await;
        assert_eq!(got.error, None);
        got.is(truth(&net, 0, Height::MAX));
        assert!(net.calls("eth_getLogs") < 120, "{}", net.calls("eth_getLogs"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_node_next_to_a_good_one_only_costs_time() {
    for order in 0..2 {
        let mut nodes = vec![Ways::default(), Ways::default()];
        nodes[order].dead = true;
        let net = Net::new(busy_chain(400, 3_000_000, 15), nodes);
        let source = source_with(&net, 2, 20);
        let began = Instant::now();
        let chunk = source.read(all()).next().await.unwrap().unwrap();
        assert!(!chunk.txs.is_empty() || chunk.low < chunk.high);
        let waited = began.elapsed();
        assert!(waited < Duration::from_secs(60), "{waited:?}");
        let got = read(&source, all()).await;
        assert_eq!(got.error, None);
        got.is(truth(&net, 0, Height::MAX));
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_way_goes_on_where_one_ends() {
    let net = Net::new(busy_chain(400, 3_000_000, 16), vec![Ways::default()]);
    let every = vec![Discovery::Portal, Discovery::Explorer, Discovery::Alchemy, Discovery::Logs];
    let source = source_on(&net, 1, 20, every);
    for high in [None, Some(2_000_000)] {
        let got = read(&source, GapRequest { high, ..all() }).await;
        assert_eq!(got.error, None);
        got.is(truth(&net, 0, high.unwrap_or(Height::MAX)));
    }
    let none = source_on(&net, 1, 20, vec![Discovery::Portal, Discovery::Alchemy]);
    let got = read(&none, all()).await;
    assert!(got.error.is_some() && got.chunks.is_empty(), "{:?}", got.chunks);
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_chain_is_left_alone() {
    let wrong = Ways { chain_id: 56, ..Ways::default() };
    let net = Net::new(busy_chain(100, 9_000, 8), vec![wrong.clone(), Ways::default()]);
    let got = read(&source_with(&net, 2, 10), all()).await;
    assert_eq!(got.error, None);
    got.is(truth(&net, 0, Height::MAX));
    assert_eq!(net.calls_of(0, "eth_getLogs"), 0);

    let net = Net::new(Chain::new(100), vec![wrong]);
    let source = source_with(&net, 1, 10);
    for _ in 0..2 {
        let got = read(&source, all()).await;
        assert!(matches!(got.error, Some(UpstreamError::WrongChain { .. })), "{:?}", got.error);
    }
}

/// Another server answers at the node's address in the middle of a read: its logs of this wallet
/// would be none.
#[tokio::test(start_paused = true)]
async fn what_a_node_lists_before_it_names_another_chain_is_not_believed() {
    let net = Net::new(busy_chain(400, 3_000_000, 16), vec![Ways::default()]);
    let source = source_with(&net, 1, 20);
    let mut reader = source.read(all());
    reader.next().await.unwrap().unwrap();
    net.set(0, Ways { chain_id: 56, ..Ways::default() });
    let got = drain(&mut reader).await;
    let error = got.error.clone().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("named another chain"), "{error}, down to {:?}", got.low());
    net.set(0, Ways::default());
    tokio::time::advance(Duration::from_secs(61)).await;
    read(&source, all()).await.is(truth(&net, 0, Height::MAX));
}

#[tokio::test(start_paused = true)]
async fn without_tags_the_head_is_so_many_blocks_down() {
    let net =
        Net::new(busy_chain(100, 9_000, 8), vec![Ways { knows_tags: false, ..Ways::default() }]);
    let source = source_with(&net, 1, 10);
    let lag = Registry::embedded().unwrap().chain_named("eth").unwrap().index_lag;
    assert_eq!((lag, source.head(&lane()).await), (64, Ok(9_000)));
    let got = read(&source, all()).await;
    got.is(truth(&net, 0, 9_000));
}

#[tokio::test(start_paused = true)]
async fn a_listed_transaction_that_no_endpoint_gives_is_found_missing() {
    let mut chain = Chain::new(100_000);
    for at in 1..200 {
        place(&mut chain, at * 100, 9);
    }
    let lacks = Some(place(&mut chain, 5_050, 9).hash);
    let net = Net::new(chain, vec![Ways { lacks, ..Ways::default() }]);
    let source = source_with(&net, 1, 5);
    let got = read(&source, all()).await;
    assert_eq!((got.error, got.missing), (None, vec![5_050]));
    assert_eq!(got.found.len() + 1, truth(&net, 0, Height::MAX).len());
    net.set(0, Ways::default());
    read(&source, all()).await.is(truth(&net, 0, Height::MAX));
}

#[tokio::test(start_paused = true)]
async fn goes_on_at_any_height() {
    let net = Net::new(busy_chain(600, 300_000, 6), vec![Ways::default()]);
    let source = source_with(&net, 1, 10);
    for (low, high) in [(0, 0), (0, 1), (7, 150_000), (150_000, 150_000), (299_999, 300_000)] {
        let request = GapRequest { low, high: Some(high), first: false, ..all() };
        let got = read(&source, request).await;
        assert_eq!(got.error, None);
        assert_eq!(got.chunks[0].1, high);
        got.is(truth(&net, low, high));
    }
    let above = GapRequest { low: 300_001, ..all() };
    assert_eq!(drain(&mut source.read(above)).await.chunks, []);
}

#[tokio::test(start_paused = true)]
async fn a_next_that_is_dropped_loses_nothing_and_a_dropped_reader_asks_nothing() {
    let net = Net::new(busy_chain(800, 300_000, 9), vec![Ways::default()]);
    let source = source_with(&net, 1, 10);
    let mut reader = source.read(all());
    let (mut got, mut impatience) = (Got::default(), 0);
    loop {
        impatience += 1;
        let wait = Duration::from_millis(30 + impatience % 50);
        let step = if impatience % 3 == 0 {
            let _ = tokio::time::timeout(wait, reader.drive()).await;
            continue;
        } else {
            tokio::time::timeout(wait, reader.next()).await
        };
        match step {
            Err(_) => {}
            Ok(chunk) => match chunk.unwrap() {
                Some(chunk) => got.take(chunk),
                None => break,
            },
        }
    }
    got.is(truth(&net, 0, Height::MAX));

    let mut reader = source.read(all());
    reader.next().await.unwrap();
    drop(reader);
    let before = net.requests();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(net.requests(), before);
}

/// A reader that takes no chunks has few of them waiting.
#[tokio::test(start_paused = true)]
async fn fetches_only_so_far_ahead() {
    let some = RunAhead::rows(200);
    for (wanted, most) in [(RunAhead::Unknown, 100), (some, 280), (RunAhead::All, 800)] {
        let mut chain = Chain::new(2_000_000);
        for at in 1..20_000 {
            place(&mut chain, at * 90, 9);
        }
        let net = Net::new(chain, vec![Ways::default()]);
        let mut reader = source_with(&net, 1, 20).read(all());
        reader.set_run_ahead(wanted);
        let _ = tokio::time::timeout(Duration::from_secs(3_600), reader.drive()).await;
        let fetched = net.calls("eth_getTransactionReceipt");
        assert!((20..=most).contains(&fetched), "{wanted:?}: {fetched}");
    }
}

/// Head and chain, logs, transactions, traces; the first time that an endpoint answers so long, the
/// parts of that answer too.
#[tokio::test(start_paused = true)]
async fn the_first_rows_come_after_four_round_trips() {
    let mut chain = Chain::new(2_000_000);
    for at in 0..1_000 {
        place(&mut chain, 1_999_990 - at * 90, 9);
    }
    chain.add(5, &OTHER, &UNKNOWN);
    let net = Net::new(chain, vec![Ways::default()]);
    let source = source_with(&net, 1, 100);
    for round_trips in [5, 4] {
        let began = Instant::now();
        let chunk = source.read(all()).next().await.unwrap().unwrap();
        assert!(!chunk.txs.is_empty());
        assert_eq!(began.elapsed().as_millis() / 100, round_trips);
    }
}

fn calls(value: u64) -> NativeFlows {
    use blotter::decode::evm::NativeMove;
    let moved = NativeMove { from: UNKNOWN, to: WALLET, value: Units::from(value) };
    NativeFlows::Calls(vec![moved])
}

/// Sells against native coin, one of them next to another of the wallet's transactions.
fn sells() -> (Chain, [Word; 3]) {
    let mut chain = Chain::new(100_000);
    let old = place(&mut chain, 500, 9).hash;
    let adjacent = place(&mut chain, 60_000, 9).hash;
    place(&mut chain, 60_000, 3);
    let alone = place(&mut chain, 70_000, 9).hash;
    // For neither of these are inner calls needed.
    chain.add(80_000, &WALLET, &UNKNOWN).transfer(&WALLET, &OTHER, 4);
    place(&mut chain, 90_000, 2);
    (chain, [old, adjacent, alone])
}

#[tokio::test(start_paused = true)]
async fn native_coin_comes_from_any_endpoint_that_has_it() {
    let net_gain = NativeFlows::Net { gained: Units::from(30_u64), lost: Units::ZERO };
    let (unknown, gone) = (NativeFlows::Unknown, NativeFlows::Gone);
    let with = |traces, past_from, keeps_states| Ways {
        traces,
        past_from,
        keeps_states,
        ..Ways::default()
    };
    let cases = [
        (with(Traces::Tree, 0, false), [calls(30), calls(30), calls(30)]),
        (with(Traces::Flat, 0, false), [calls(30), calls(30), calls(30)]),
        (with(Traces::None, 0, true), [net_gain.clone(), unknown.clone(), net_gain.clone()]),
        (with(Traces::None, 0, false), [unknown.clone(), unknown.clone(), unknown.clone()]),
        (with(Traces::Tree, 1_000, true), [gone.clone(), calls(30), calls(30)]),
        (with(Traces::None, 1_000, true), [gone, unknown, net_gain]),
    ];
    for (ways, expected) in cases {
        let (chain, hashes) = sells();
        let net = Net::new(chain, vec![ways.clone()]);
        let got = read(&source_with(&net, 1, 10), all()).await;
        assert_eq!(got.error, None);
        got.is(truth(&net, 0, Height::MAX));
        let values = hashes.map(|hash| got.native[&hash].clone());
        assert_eq!(values, expected, "{ways:?}");
    }
}

/// For a contract that paid coin, and for a sale of which more went on than came to the wallet.
#[tokio::test(start_paused = true)]
async fn the_block_producer_is_read_where_a_trade_may_depend_on_it() {
    for gives_time in [false, true] {
        let mut chain = Chain::new(100_000);
        let paying = chain.add(50_000, &OTHER, &WALLET).swap().transfer(&WALLET, &UNKNOWN, 7);
        let paying = paying.call(&WALLET, &PRODUCER, 9).hash;
        let outbid = place(&mut chain, 60_000, 9).call(&UNKNOWN, &OTHER, 31).hash;
        let plain = place(&mut chain, 70_000, 9).call(&UNKNOWN, &OTHER, 30).hash;
        let wrapped = account("0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2");
        let wrapping = place(&mut chain, 80_000, 9).call(&UNKNOWN, &wrapped, 31).hash;
        let net = Net::new(chain, vec![Ways { gives_time, ..Ways::default() }]);
        let got = read(&source_with(&net, 1, 10), all()).await;
        assert_eq!(got.error, None);
        got.is(truth(&net, 0, Height::MAX));
        let known = [paying, outbid, plain, wrapping].map(|hash| got.producers[&hash]);
        assert_eq!(known, [Some(PRODUCER), Some(PRODUCER), None, None], "{gives_time}");
    }
}

/// No log shows the payment, and the balance change includes both.
#[tokio::test(start_paused = true)]
async fn a_payment_in_the_block_of_a_trade_leaves_its_amount_open() {
    let mut chain = Chain::new(100_000);
    let sold = place(&mut chain, 60_000, 9).hash;
    chain.add(60_000, &OTHER, &WALLET).unwanted().value = 777;
    let other = place(&mut chain, 70_000, 9).hash;
    let ways = Ways { traces: Traces::None, ..Ways::default() };
    let net = Net::new(chain, vec![ways]);
    let got = read(&source_with(&net, 1, 10), all()).await;
    got.is(truth(&net, 0, Height::MAX));
    assert_eq!(got.native[&sold], NativeFlows::Unknown);
    let gained = NativeFlows::Net { gained: Units::from(30_u64), lost: Units::ZERO };
    assert_eq!(got.native[&other], gained);
}

/// In one read: traces of higher blocks do not make older ones wait for a trace.
#[tokio::test(start_paused = true)]
async fn what_is_too_old_to_be_traced_is_not_waited_for_next_to_what_is_not() {
    let mut chain = Chain::new(100_000);
    let old = place(&mut chain, 60_000, 9).hash;
    let new = place(&mut chain, 60_100, 9).hash;
    let ways = Ways { past_from: 60_050, keeps_states: false, ..Ways::default() };
    let net = Net::new(chain, vec![ways]);
    let got = read(&source_with(&net, 1, 10), all()).await;
    assert_eq!(
        (got.native[&old].clone(), got.native[&new].clone()),
        (NativeFlows::Gone, calls(30))
    );
}

/// Otherwise the next ones would lack amounts for ten minutes, and this one for good.
#[tokio::test(start_paused = true)]
async fn one_answer_that_a_transaction_is_too_old_to_be_traced_is_no_proof() {
    let mut chain = Chain::new(100_000);
    let sold = place(&mut chain, 60_000, 9).hash;
    let ways = Ways { old_traces: 1, keeps_states: false, ..Ways::default() };
    let net = Net::new(chain, vec![ways]);
    let got = read(&source_with(&net, 1, 10), all()).await;
    assert_eq!(got.native[&sold], calls(30));
}

/// Its payment is in no log: without the trace it is no sale, and it would not be read again.
#[tokio::test(start_paused = true)]
async fn a_sale_that_the_node_that_traces_has_not_come_to_waits_for_its_trace() {
    let mut chain = Chain::new(100_000);
    let old = place(&mut chain, 60_000, 9).hash;
    let new = place(&mut chain, 99_990, 9).hash;
    let bare = Ways { traces: Traces::None, keeps_states: false, ..Ways::default() };
    let behind = Ways { traceable: 0..99_980, keeps_states: false, ..Ways::default() };
    let net = Net::new(chain, vec![bare, behind]);
    let source = source_with(&net, 2, 10);
    let refresh = GapRequest { low: 99_000, ..all() };
    let got = read(&source, refresh.clone()).await;
    assert_eq!(got.native[&new], NativeFlows::Refused);
    // Nothing below counts as too old for it.
    let got = read(&source, all()).await;
    let native = [old, new].map(|hash| got.native[&hash].clone());
    assert_eq!(native, [calls(30), NativeFlows::Refused]);
    net.set(1, Ways { keeps_states: false, ..Ways::default() });
    let got = read(&source, refresh).await;
    assert_eq!(got.native[&new], calls(30));
}

/// Geth prunes its index of transaction hashes, and does not find old ones later.
#[tokio::test(start_paused = true)]
async fn a_sale_far_below_the_head_that_no_node_finds_to_trace_is_not_waited_for() {
    let mut chain = Chain::new(100_000);
    let sold = place(&mut chain, 60_000, 9).hash;
    let ways = Ways { traceable: 90_000..Height::MAX, keeps_states: false, ..Ways::default() };
    let net = Net::new(chain, vec![ways]);
    let got = read(&source_with(&net, 1, 10), all()).await;
    assert_eq!(got.native[&sold], NativeFlows::Gone);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_keeps_the_past_helps_one_that_does_not() {
    let (chain, hashes) = sells();
    let pruned = Ways { past_from: 99_000, ..Ways::default() };
    let net = Net::new(chain, vec![pruned.clone(), pruned, Ways::default()]);
    let got = read(&source_with(&net, 3, 10), all()).await;
    for hash in hashes {
        assert_eq!(got.native[&hash], calls(30));
    }
}

/// If no endpoint keeps old states, not every transaction requests them in vain.
#[tokio::test(start_paused = true)]
async fn what_no_endpoint_keeps_is_soon_no_longer_requested() {
    let mut chain = Chain::new(3_000_000);
    for at in 1..3_000 {
        place(&mut chain, at * 900, 9);
    }
    let net = Net::new(chain, vec![Ways { past_from: 2_900_000, ..Ways::default() }]);
    let got = read(&source_with(&net, 1, 20), all()).await;
    got.is(truth(&net, 0, Height::MAX));
    let asked = net.calls("debug_traceTransaction") + net.calls("eth_getBalance");
    assert!(asked < 1_500, "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_hash_differs_only_when_two_nodes_agree() {
    let check = async |salts: &[u8]| {
        let nodes = salts.iter().map(|salt| Ways { hash_salt: *salt, ..Ways::default() });
        let source = source_with(&Net::new(Chain::new(1_000), nodes.collect()), salts.len(), 10);
        assert_eq!(source.check_hash(2_000, [1; 32], &lane()).await, Ok(HashCheck::Gone));
        source.check_hash(5, [1; 32], &lane()).await.unwrap()
    };
    assert_eq!(check(&[1, 1]).await, HashCheck::Same);
    assert_eq!(check(&[2, 2]).await, HashCheck::Differs);
    // The first node is asked first: one answer against another decides nothing.
    assert_eq!(check(&[1, 2]).await, HashCheck::Same);
    assert_eq!(check(&[2, 1]).await, HashCheck::Unknown);
    for alone in [[2, 1, 1], [1, 2, 1], [1, 1, 2]] {
        assert_eq!(check(&alone).await, HashCheck::Same);
    }
}
