//! What the Tron source claims about the heights that it read, against nodes with false answers: a
//! span is accepted only if no possible trade is missing in it.

use std::sync::Arc;
use std::time::Duration;

use blotter::domain::{Address, Doubts, Height, Proof, TxId, Way};
use blotter::registry::Registry;
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, UpstreamError};
use blotter::sources::{
    AbilityKind, GapRequest, Offered, RawTx, RunAhead, Source, TronLimits, TronSource,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::reading::{all_of, lane};
use crate::support::script::Epoch;
use crate::support::tron_node::{Broken, Chain, Hosts, Net, WALLET, Ways, millis};

/// Blocks below the head that lists are not trusted with.
const LAG: Height = 40;

fn source(nodes: &[(&'static str, &Arc<Net>)]) -> Source {
    let hosts = Hosts(nodes.iter().map(|(name, net)| (*name, Arc::clone(net))).collect());
    let endpoint = |(name, _): &(&str, &Arc<Net>)| {
        EndpointConfig::new(format!("http://{name}/planted-secret"))
    };
    let endpoints = nodes.iter().map(endpoint).collect();
    let pool = Pool::new(endpoints, Arc::new(hosts), PoolLimits::default(), Arc::new(Epoch), 3);
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named("tron").unwrap();
    // These chains have events from their first block on.
    let limits = TronLimits { events_from: 0, ..TronLimits::default() };
    Source::Tron(TronSource::new(pool, chain, limits))
}

fn net(chain: Chain, ways: Ways) -> Arc<Net> {
    Arc::new(Net::new(chain, ways))
}

fn all() -> GapRequest {
    all_of(Address::Tron(WALLET))
}

#[derive(Debug, Default)]
struct Got {
    spans: Vec<(Height, Height, Proof)>,
    found: Vec<(Height, [u8; 32])>,
    missing: Vec<(Height, [u8; 32])>,
    /// Transactions without any event.
    without_events: usize,
    /// Those whose native coin an endpoint failed to report.
    awaited: usize,
    error: Option<UpstreamError>,
}

impl Got {
    /// All is read, and counts.
    #[track_caller]
    fn is_proof_of(&self, source: &Source, truth: &[(Height, [u8; 32])]) {
        assert_eq!(self.error, None);
        assert!(self.found == truth, "{} of {}", self.found.len(), truth.len());
        assert!(self.spans.iter().all(|(.., proof)| source.accepts(*proof)), "{:?}", self.spans);
        assert_eq!(self.spans.last().map(|(low, ..)| *low), Some(0));
    }
}

async fn read(source: &Source, request: GapRequest) -> Got {
    let mut reader = source.read(request);
    reader.set_run_ahead(RunAhead::All);
    let mut got = Got::default();
    loop {
        let chunk = match reader.next().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => {
                got.error = Some(error);
                break;
            }
        };
        got.spans.push((chunk.low, chunk.high, chunk.proof));
        for tx in chunk.txs {
            got.awaited += usize::from(tx.awaits_native());
            let RawTx::Tron(tx, _) = tx else { panic!("of another family") };
            got.without_events += usize::from(tx.call.logs.is_empty());
            got.found.push((tx.call.block, tx.call.hash));
        }
        for (height, id) in chunk.missing {
            let TxId::Tron(id) = id else { panic!("of another family") };
            assert!((chunk.low..=chunk.high).contains(&height));
            got.missing.push((height, id));
        }
    }
    got.found.sort_unstable();
    got
}

/// Trades of all kinds, some without any event, with noise between.
fn mixed(count: u64) -> Chain {
    let mut chain = Chain::new(count * 20 + 200);
    for number in 0..count {
        let height = 100 + number * 20;
        match number % 5 {
            0 => drop(chain.relayed(height)),
            1 => drop(chain.sale(height)),
            2 => chain.exchange(height, 9),
            _ => drop(chain.swap(height)),
        }
        chain.noise(height + number % 3, number);
    }
    chain
}

/// The same where every trade leaves an event.
fn shown(count: u64) -> Chain {
    let mut chain = Chain::new(count * 2_000 + 200);
    for number in 0..count {
        if number % 2 == 0 {
            chain.swap(100 + number * 2_000);
        } else {
            chain.sale(100 + number * 2_000);
        }
        chain.noise(105 + number * 2_000, number);
    }
    chain
}

/// Issue 16: one such answer switched the lists off, and what leaves no event was lost.
#[tokio::test(start_paused = true)]
async fn lists_that_worked_are_waited_for() {
    for status in [404, 401, 405, 410, 501] {
        let net = net(mixed(100), Ways::default());
        let source = source(&[("node", &net)]);
        let truth = net.chain.truth(0, u64::MAX);
        read(&source, all()).await.is_proof_of(&source, &truth);
        net.refuse_lists(status);
        let got = read(&source, all()).await;
        assert!(got.error.as_ref().is_some_and(|error| !error.is_final()), "{:?}", got.error);
        assert!(got.spans.iter().all(|(.., proof)| proof.way == Way::Lists), "{status}");
        net.refuse_lists(0);
        sleep(Duration::from_secs(60)).await;
        read(&source, all()).await.is_proof_of(&source, &truth);
        assert_eq!(source.blind_spots(), Doubts::NONE);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_before_anything_worked_is_no_lack_of_lists() {
    for status in [404, 401, 405, 410, 501] {
        let net = net(mixed(100), Ways::default());
        let source = source(&[("node", &net)]);
        net.refuse_lists(status);
        let back = async {
            sleep(Duration::from_secs(10)).await;
            net.refuse_lists(0);
        };
        let (got, ()) = tokio::join!(read(&source, all()), back);
        let by_events = got.spans.iter().filter(|(.., proof)| proof.way == Way::Events);
        for (.., proof) in by_events {
            assert!(!source.accepts(*proof), "{status}: {proof:?}");
        }
        sleep(Duration::from_secs(60)).await;
        read(&source, all()).await.is_proof_of(&source, &net.chain.truth(0, u64::MAX));
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_without_lists_is_recognised_by_answers_over_time() {
    let net = net(shown(30), Ways { no_index: true, ..Ways::default() });
    let source = source(&[("node", &net)]);
    assert_eq!(source.blind_spots(), Doubts::NONE);
    let began = Instant::now();
    let got = read(&source, all()).await;
    assert!(began.elapsed() >= Duration::from_secs(12));
    got.is_proof_of(&source, &net.chain.truth(0, u64::MAX));
    assert_eq!(source.blind_spots(), Doubts::TRC10);
    assert!(got.spans.iter().all(|(.., proof)| proof.doubts == Doubts::TRC10));
    // The lists are not requested at every read.
    let asked = net.calls("transactions");
    read(&source, all()).await.is_proof_of(&source, &net.chain.truth(0, u64::MAX));
    assert_eq!(net.calls("transactions"), asked);
}

/// The list of transactions alone does not show incoming tokens.
#[tokio::test(start_paused = true)]
async fn an_index_without_token_movements_is_read_by_events() {
    for status in [404, 401, 402] {
        let net = net(shown(30), Ways { transfers_refused: status, ..Ways::default() });
        let source = source(&[("node", &net)]);
        let mut got = read(&source, all()).await;
        // As one list works, the other one is asked for again, until it was refused for long.
        assert!(got.error.is_some() && got.found.is_empty(), "{status}");
        for _ in 0..4 {
            sleep(Duration::from_secs(6)).await;
            got = read(&source, all()).await;
        }
        assert_eq!(
            (got.error, got.spans.last().map(|(low, ..)| *low)),
            (None, Some(0)),
            "{status}"
        );
        assert!(got.found == net.chain.truth(0, u64::MAX), "{status}");
        assert!(got.spans.iter().all(|(.., proof)| proof.way == Way::Events), "{status}");
        // A key or a plan may give it later.
        let is_absent = status == 404;
        let mut spans = got.spans.iter();
        assert_eq!(spans.all(|(.., proof)| source.accepts(*proof)), is_absent, "{status}");
        assert_eq!(source.blind_spots() == Doubts::TRC10, is_absent, "{status}");
    }
}

/// An endpoint that is down may have lists.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_refuses_all_may_have_lists() {
    let plain = net(shown(30), Ways { no_index: true, ..Ways::default() });
    let index = net(shown(30), Ways::default());
    index.refuse_lists(503);
    let source = source(&[("plain", &plain), ("index", &index)]);
    let got = read(&source, all()).await;
    let accepted = got.spans.iter().any(|(.., proof)| source.accepts(*proof));
    assert!(!accepted && source.blind_spots().is_empty(), "{:?}", got.spans);
    index.refuse_lists(0);
    sleep(Duration::from_secs(120)).await;
    read(&source, all()).await.is_proof_of(&source, &plain.chain.truth(0, u64::MAX));
}

#[tokio::test(start_paused = true)]
async fn two_empty_pages_of_one_endpoint_are_no_proof() {
    let net = net(mixed(50), Ways { empty_pages: 2, ..Ways::default() });
    let source = source(&[("node", &net)]);
    read(&source, all()).await.is_proof_of(&source, &net.chain.truth(0, u64::MAX));
}

#[tokio::test(start_paused = true)]
async fn what_the_lists_have_not_indexed_is_not_claimed() {
    let behind = 1_500;
    let net = net(mixed(300), Ways { lists_behind: behind, busy_index: true, ..Ways::default() });
    let source = source(&[("node", &net)]);
    let indexed = 300 * 20 + 200 - behind;
    let got = read(&source, all()).await;
    assert!(got.spans[0].1 <= indexed, "{:?}", got.spans[0]);
    got.is_proof_of(&source, &net.chain.truth(0, indexed));
}

#[tokio::test(start_paused = true)]
async fn lists_that_are_known_to_be_indexed_are_read_up_to_the_lag() {
    let net = net(mixed(300), Ways { busy_index: true, ..Ways::default() });
    let source = source(&[("node", &net)]);
    let got = read(&source, all()).await;
    assert_eq!(got.spans[0].1, 300 * 20 + 200 - LAG);
}

#[tokio::test(start_paused = true)]
async fn an_empty_search_for_events_is_no_proof() {
    for empty_logs in [10, 20] {
        let net = net(shown(60), Ways { no_index: true, empty_logs, ..Ways::default() });
        let source = source(&[("node", &net)]);
        read(&source, all()).await.is_proof_of(&source, &net.chain.truth(0, u64::MAX));
    }
}

/// What endpoints have once indexed is no proof of a page that one of them gives later.
#[tokio::test(start_paused = true)]
async fn lists_that_fall_behind_end_no_read() {
    let net = net(mixed(300), Ways { busy_index: true, ..Ways::default() });
    let source = source(&[("node", &net)]);
    let truth = net.chain.truth(0, u64::MAX);
    read(&source, all()).await.is_proof_of(&source, &truth);
    net.set_lists_behind(500);
    let got = read(&source, all()).await;
    assert!(got.error.is_some_and(|error| !error.is_final()));
    let is_accepted = |height: &Height| {
        let mut spans = got.spans.iter().filter(|(.., proof)| source.accepts(*proof));
        spans.any(|(low, high, _)| (low..=high).contains(&height))
    };
    let lost = truth.iter().find(|one| is_accepted(&one.0) && !got.found.contains(one));
    assert_eq!(lost, None);
    net.set_lists_behind(0);
    sleep(Duration::from_secs(700)).await;
    read(&source, all()).await.is_proof_of(&source, &truth);
}

/// An account that exists has entries: lists without any are not accepted from any endpoint.
#[tokio::test(start_paused = true)]
async fn an_existing_account_with_empty_lists_is_in_doubt() {
    let is_accepted = async |account_made, empty_pages| {
        let net = net(mixed(10), Ways { empty_pages, account_made, ..Ways::default() });
        let source = source(&[("node", &net)]);
        let got = read(&source, all()).await;
        assert_eq!(got.error, None);
        got.spans.iter().all(|(.., proof)| source.accepts(*proof))
    };
    assert!(is_accepted(None, 1_000).await);
    assert!(!is_accepted(Some(millis(100)), 1_000).await);
    assert!(!is_accepted(Some(0), 1_000).await, "of the first block");
    assert!(is_accepted(Some(millis(100)), 0).await);
    assert!(is_accepted(Some(millis(1_000_000)), 1_000).await, "made later");
}

/// Token movements are listed, and the transactions are not: each height is in doubt.
#[tokio::test(start_paused = true)]
async fn a_list_without_transactions_leaves_all_heights_of_an_account_in_doubt() {
    let ways = Ways { no_transactions: true, account_made: Some(0), ..Ways::default() };
    let net = net(mixed(6_000), ways);
    let source = source(&[("node", &net)]);
    let got = read(&source, all()).await;
    assert_eq!(got.error, None);
    assert!(got.spans.len() > 1 && !got.found.is_empty());
    assert!(got.spans.iter().all(|(.., proof)| !source.accepts(*proof)), "{:?}", got.spans);
}

/// An index without any token movement does not show what others sent.
#[tokio::test(start_paused = true)]
async fn a_list_without_token_movements_is_in_doubt_where_transactions_hold_some() {
    let mut empty = Chain::new(1_000);
    empty.empty_transfer(100);
    for (busy_index, chain, expected) in [
        (false, shown(30), true),
        (true, shown(30), false),
        (true, shown(30).of_stablecoins(), true),
        (true, empty.of_stablecoins(), false),
    ] {
        let net = net(chain, Ways { no_transfers: true, busy_index, ..Ways::default() });
        let source = source(&[("node", &net)]);
        let got = read(&source, all()).await;
        assert_eq!(got.error, None);
        let mut found = net.chain.truth(0, u64::MAX);
        found.retain(|one| got.found.contains(one));
        assert!(!found.is_empty());
        let is_open = are_open(&got, &source, &found);
        assert_eq!(is_open, expected, "an index of others' movements may know none of these");
    }
}

/// That events were seen down to where one read ended is no sign that there are none below.
#[tokio::test(start_paused = true)]
async fn events_below_those_of_an_earlier_read_are_searched_for() {
    let net = net(shown(60), Ways { no_index: true, ..Ways::default() });
    let source = source(&[("node", &net)]);
    let above = read(&source, GapRequest { low: 100_000, ..all() }).await;
    assert_eq!((above.error, above.spans.last().map(|(low, ..)| *low)), (None, Some(100_000)));
    let below = read(&source, GapRequest { low: 50_000, high: Some(99_999), ..all() }).await;
    assert_eq!(below.error, None);
    assert!(below.found == net.chain.truth(50_000, 99_999));
}

/// A node whose events are gone below some height answers `[]` there.
#[tokio::test(start_paused = true)]
async fn events_are_taken_from_endpoints_that_keep_them() {
    let ways = Ways { no_index: true, ..Ways::default() };
    let archive = net(shown(60), ways.clone());
    let pruned = net(shown(60), Ways { logs_from: 70_003, ..ways });
    let truth = archive.chain.truth(0, u64::MAX);
    for nodes in
        [[("archive", &archive), ("pruned", &pruned)], [("pruned", &pruned), ("archive", &archive)]]
    {
        let source = source(&nodes);
        read(&source, all()).await.is_proof_of(&source, &truth);
    }
    let alone = source(&[("pruned", &pruned)]);
    let got = read(&alone, all()).await;
    let Some(UpstreamError::HistoryCut { first }) = got.error else { panic!("{:?}", got.error) };
    assert!((70_003..71_000).contains(&first), "{first}");
    assert!(got.found == archive.chain.truth(first, u64::MAX));
    assert_eq!(got.spans.last().map(|(low, ..)| *low), Some(first));
    let abilities = &alone.abilities()[0];
    let of = |kind| abilities.iter().find(|one| one.kind == kind).unwrap();
    assert_eq!(of(AbilityKind::AccountLists).offered, Offered::No);
    let events = of(AbilityKind::Events);
    assert_eq!((events.offered, events.from), (Offered::Yes, Some(first)));
    assert!(events.is_short(), "histories are cut there");
}

/// Two answers of one endpoint do not stand for another one that is configured and silent. One that
/// hangs makes no window too wide that the other one answers.
#[tokio::test(start_paused = true)]
async fn a_second_answer_comes_from_another_endpoint() {
    for hangs in [false, true] {
        let ways = Ways { no_index: true, ..Ways::default() };
        let one = net(shown(20), ways.clone());
        let other = net(shown(20), Ways { logs_time: u64::from(!hangs), hangs, ..ways });
        let source = source(&[("one", &one), ("other", &other)]);
        let began = Instant::now();
        let got = read(&source, all()).await;
        assert!(got.spans.iter().all(|(.., proof)| !source.accepts(*proof)), "{:?}", got.spans);
        if hangs {
            assert_eq!((got.error, got.spans.last().map(|(low, ..)| *low)), (None, Some(0)));
            assert!(began.elapsed() < Duration::from_secs(300), "{:?}", began.elapsed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn searches_that_take_too_long_are_split() {
    let net = net(shown(20), Ways { no_index: true, logs_time: 700, ..Ways::default() });
    let source = source(&[("node", &net)]);
    let began = Instant::now();
    read(&source, all()).await.is_proof_of(&source, &net.chain.truth(0, u64::MAX));
    assert!(began.elapsed() < Duration::from_secs(300), "{:?}", began.elapsed());
}

/// Issue 16: a listed transaction that no node gives hid all below it.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_is_given_only_by_its_block_is_read() {
    for no_index in [false, true] {
        let ways = Ways { no_index, lost_ids: vec![40, 41, 44], ..Ways::default() };
        let net = net(shown(30), ways);
        let source = source(&[("node", &net)]);
        read(&source, all()).await.is_proof_of(&source, &net.chain.truth(0, u64::MAX));
    }
}

/// A list shows a transaction's time but not its block: a head below that time does not show that
/// the block is missing.
#[tokio::test(start_paused = true)]
async fn a_transaction_is_not_looked_for_below_the_head_that_lacks_it() {
    // The sixteenth trade is sent by another account.
    let ways = Ways { lost_ids: vec![30], later_heads_behind: 300, ..Ways::default() };
    let net = net(mixed(20), ways);
    let source = source(&[("node", &net)]);
    let got = read(&source, all()).await;
    assert!(got.found.iter().all(|(height, _)| *height != 400), "its id gives nothing");
    let holds = |(low, high, proof): &(Height, Height, Proof)| {
        (*low..=*high).contains(&400) && source.accepts(*proof)
    };
    assert!(!got.spans.iter().any(holds), "{:?}", got.spans);
    assert!(matches!(got.error, Some(UpstreamError::Unavailable { .. })), "{:?}", got.error);
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_no_endpoint_gives_is_set_aside() {
    for no_index in [false, true] {
        // The eleventh trade: each has one transaction of noise behind it.
        let ways = Ways { no_index, lost_ids: vec![20], lost_in_blocks: true, ..Ways::default() };
        let net = net(shown(30), ways);
        let source = source(&[("node", &net)]);
        let got = read(&source, all()).await;
        assert_eq!(got.error, None);
        let (missing, rest): (Vec<_>, Vec<_>) =
            net.chain.truth(0, u64::MAX).into_iter().partition(|(height, _)| *height == 20_100);
        assert_eq!(got.missing, missing, "by events: {no_index}");
        assert!(got.found == rest, "by events: {no_index}");
        assert_eq!(got.spans.last().map(|(low, ..)| *low), Some(0));
        let asked = net.calls("bynum") + net.calls("byid") + net.calls("blocknum");
        assert!(asked <= 29 * 3 + 60, "{asked}");
    }
}

/// A chain with a transaction that nodes fail on: one that the wallet sent, or one of another account
/// with the wallet's tokens.
fn failing(is_relayed: bool) -> (Chain, (Height, [u8; 32])) {
    let mut chain = shown(10);
    let placed = if is_relayed { chain.relayed(11_337) } else { chain.swap(11_337) };
    let one = (placed.height, placed.id);
    (chain, one)
}

/// What nodes answer in place of a transaction: errors that pass elsewhere, that no table knows, and
/// what cannot be read.
fn failures((height, id): (Height, [u8; 32])) -> [(u16, Value); 5] {
    let says = |text: &str| json!({"Error": format!("class {text}")});
    [
        (200, says("java.lang.NullPointerException : null")),
        (200, says("org.tron.core.exception.BadItemException : rlp")),
        (500, json!("<html><h1>500 Server Error</h1></html>")),
        (200, json!({"id": 5, "blockNumber": height})),
        (200, json!([{"id": hex::encode(id), "blockNumber": height, "blockTimeStamp": "never"}])),
    ]
}

/// Issue 16, 7: one transaction whose info every endpoint fails on, or gives in no form that can be
/// read. By its block alone it is given.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_every_endpoint_fails_on_hides_nothing_below_it() {
    for (no_index, is_relayed, in_block) in [
        (false, false, true),
        (false, true, true),
        (true, false, true),
        (false, false, false),
        (true, true, false),
    ] {
        let (_, one) = failing(is_relayed);
        for answer in failures(one) {
            let case = format!("{answer:?}, events {no_index}, {is_relayed}, block {in_block}");
            let net = net(failing(is_relayed).0, Ways { no_index, ..Ways::default() });
            let source = source(&[("node", &net)]);
            let truth = net.chain.truth(0, u64::MAX);
            let is_error = answer.0 == 500 || answer.1["Error"].is_string();
            net.fail_on(Some(Broken { height: one.0, id: one.1, in_block, answer }));
            let began = Instant::now();
            let got = read(&source, all()).await;
            assert_eq!(
                (&got.error, got.spans.last().map(|span| span.0)),
                (&None, Some(0)),
                "{case}"
            );
            let is_given = |tx: &&(Height, [u8; 32])| !in_block || **tx != one;
            let given: Vec<_> = truth.iter().filter(is_given).copied().collect();
            assert_eq!(got.found, given, "{case}");
            let missing = if in_block { vec![one] } else { Vec::new() };
            assert_eq!(got.missing, missing, "{case}");
            // What cannot be read is asked for more often than what fails.
            let took_max = Duration::from_secs(if is_error { 15 } else { 200 });
            assert!(began.elapsed() < took_max, "{case}: {:?}", began.elapsed());
            net.fail_on(None);
            sleep(Duration::from_secs(60)).await;
            let got = read(&source, all()).await;
            assert_eq!(got.missing, [], "{case}");
            got.is_proof_of(&source, &truth);
        }
    }
}

/// Where endpoints answer no look-up by id, or nothing at all, the failure is not the transaction's.
#[tokio::test(start_paused = true)]
async fn a_failure_of_all_endpoints_sets_no_transaction_aside() {
    let (_, one) = failing(false);
    for answer in failures(one).into_iter().take(3) {
        for (method, status) in [("byid", 503), ("infobyid", 500), ("", 503)] {
            let net = net(failing(false).0, Ways::default());
            let source = source(&[("node", &net)]);
            read(&source, all()).await.is_proof_of(&source, &net.chain.truth(0, u64::MAX));
            let (height, id) = one;
            let broken = Broken { height, id, in_block: true, answer: answer.clone() };
            net.fail_on(Some(broken));
            net.refuse(method, status);
            let got = read(&source, all()).await;
            let case = format!("{method} {status}, {answer:?}");
            assert!(got.error.is_some_and(|error| !error.is_final()), "{case}");
            assert_eq!((got.missing, got.found.contains(&one)), (vec![], false), "{case}");
        }
    }
}

/// Neither by its id, where it comes in a form that cannot be read, nor by its block.
#[tokio::test(start_paused = true)]
async fn an_info_that_names_another_block_is_no_answer() {
    let mut chain = Chain::new(1_000);
    chain.swap(100);
    chain.exchange(200, 9);
    let net = net(chain, Ways::default());
    let source = source(&[("node", &net)]);
    let (truth, one) = (net.chain.truth(0, u64::MAX), net.chain.truth(200, 200)[0]);
    let info = json!([{"id": hex::encode(one.1), "blockNumber": 201, "blockTimeStamp": millis(201),
                       "receipt": {"result": "SUCCESS"}}]);
    let (height, id) = one;
    net.fail_on(Some(Broken { height, id, in_block: true, answer: (200, info) }));
    let got = read(&source, all()).await;
    assert_eq!((got.error, got.missing, got.found), (None, vec![one], net.chain.truth(100, 100)));
    net.fail_on(None);
    let got = read(&source, all()).await;
    assert_eq!(got.missing, []);
    got.is_proof_of(&source, &truth);
}

/// An info that lacks what a list shows of its transaction is no answer.
#[tokio::test(start_paused = true)]
async fn an_info_without_the_listed_transfer_is_not_believed() {
    for no_index in [false, true] {
        for bare_infos in [1, u64::MAX] {
            let net = net(shown(30), Ways { no_index, bare_infos, ..Ways::default() });
            let source = source(&[("node", &net)]);
            let got = read(&source, all()).await;
            assert_eq!(
                (got.error, got.missing, got.without_events),
                (None, vec![], 0),
                "{bare_infos}, by events: {no_index}"
            );
            assert!(
                got.found == net.chain.truth(0, u64::MAX),
                "{bare_infos}, by events: {no_index}"
            );
        }
    }
}

/// Whether each of these heights is inside a span that does not count.
fn are_open(got: &Got, source: &Source, heights: &[(Height, [u8; 32])]) -> bool {
    let is_open = |(height, _): &(Height, [u8; 32])| {
        let mut spans = got.spans.iter().filter(|(.., proof)| !source.accepts(*proof));
        spans.any(|(low, high, _)| (low..=high).contains(&height))
    };
    heights.iter().all(is_open)
}

/// A sale for TRX is none without its payment, which one of two endpoints shows.
#[tokio::test(start_paused = true)]
async fn inner_calls_that_an_endpoint_fails_to_give_are_read_again() {
    let sales = || {
        let mut chain = Chain::new(1_000);
        for number in 0..30 {
            chain.sale(100 + number * 20);
        }
        chain
    };
    let truth = sales().truth(0, u64::MAX);
    // Found by their ids, and by their blocks alone; no node here has the view of solid blocks.
    for (method, lost_ids) in [
        ("wallet/gettransactioninfobyid", Vec::new()),
        ("wallet/gettransactioninfobyblocknum", (0..30).collect()),
    ] {
        for status in [429, 503, 405] {
            let ways = Ways { lost_ids: lost_ids.clone(), ..Ways::default() };
            let lists = net(sales(), Ways { no_inner_calls: true, ..ways.clone() });
            let node = net(sales(), Ways { no_index: true, ..ways });
            let source = source(&[("lists", &lists), ("node", &node)]);
            node.refuse(method, status);
            let got = read(&source, all()).await;
            assert_eq!((got.error.clone(), got.awaited), (None, 30), "{method}: {status}");
            assert!(got.found == truth && are_open(&got, &source, &truth), "{:?}", got.spans);
            node.refuse("", 0);
            sleep(Duration::from_secs(700)).await;
            let got = read(&source, all()).await;
            assert_eq!(got.awaited, 0, "{method}: {status}");
            got.is_proof_of(&source, &truth);
        }
    }
}

/// Inner calls that no endpoint ever returned are a blind spot, until one returns them.
#[tokio::test(start_paused = true)]
async fn inner_calls_that_no_endpoint_gives_are_a_blind_spot() {
    let net = net(shown(30), Ways { no_inner_calls: true, ..Ways::default() });
    let source = source(&[("node", &net)]);
    let truth = net.chain.truth(0, u64::MAX);
    let first = read(&source, all()).await;
    assert!(first.error.is_none() && first.found == truth);
    assert!(are_open(&first, &source, &truth), "one answer is no proof: {:?}", first.spans);
    for _ in 0..4 {
        sleep(Duration::from_secs(6)).await;
        read(&source, all()).await;
    }
    assert_eq!(source.blind_spots(), Doubts::INNER_CALLS);
    assert!(!are_open(&first, &source, &truth));
    let got = read(&source, all()).await;
    assert!(got.spans.iter().any(|(.., proof)| proof.doubts == Doubts::INNER_CALLS));
    got.is_proof_of(&source, &truth);
}

/// Without a cursor, a page that is filled by one moment shows neither the list's end nor all
/// entries of that moment.
#[tokio::test(start_paused = true)]
async fn a_moment_that_fills_a_page_without_a_cursor_hides_nothing_below_it() {
    for (entries_max, count) in [(None, 150), (Some(20), 15)] {
        let mut chain = mixed(30);
        // Two token movements each.
        for _ in 0..count {
            chain.relayed(350);
        }
        let net = net(chain, Ways { no_cursors: true, entries_max, ..Ways::default() });
        let source = source(&[("node", &net)]);
        let got = read(&source, all()).await;
        assert_eq!(got.error, None);
        let (full, others): (Vec<_>, Vec<_>) =
            net.chain.truth(0, u64::MAX).into_iter().partition(|(height, _)| *height == 350);
        assert!(others.iter().all(|one| got.found.contains(one)), "{entries_max:?}");
        assert!(are_open(&got, &source, &full), "{entries_max:?}: {:?}", got.spans);
    }
}

/// Without the exchange's other asset such a trade has no row.
#[tokio::test(start_paused = true)]
async fn a_trade_at_an_exchange_that_no_endpoint_gives_is_read_again() {
    for status in [404, 405] {
        let mut chain = Chain::new(1_000);
        chain.swap(100);
        chain.exchange(200, 9);
        let net = net(chain, Ways::default());
        let source = source(&[("node", &net)]);
        let (truth, lost) = (net.chain.truth(0, u64::MAX), net.chain.truth(200, 200));
        net.refuse("getexchangebyid", status);
        let got = read(&source, all()).await;
        assert_eq!((got.error, got.missing), (None, lost), "{status}");
        assert!(got.found == net.chain.truth(100, 100), "{status}");
        net.refuse("", 0);
        sleep(Duration::from_secs(700)).await;
        let got = read(&source, all()).await;
        assert_eq!(got.missing, [], "{status}");
        got.is_proof_of(&source, &truth);
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_missing_transactions_are_an_error() {
    let lost_ids = (0..200).collect();
    let net = net(shown(100), Ways { lost_ids, lost_in_blocks: true, ..Ways::default() });
    let got = read(&source(&[("node", &net)]), all()).await;
    assert!(matches!(got.error, Some(UpstreamError::Unavailable { .. })), "{:?}", got.error);
    assert!(got.missing.len() <= 64);
}

#[tokio::test(start_paused = true)]
async fn a_null_about_a_token_is_no_answer() {
    let mints: Vec<Address> = (1..60).map(|number| Address::Tron([number; 20])).collect();
    for (null_tokens, count) in [(0, 59), (1, 59), (u64::MAX, 0)] {
        let net = net(Chain::new(100), Ways { null_tokens, ..Ways::default() });
        let metas = source(&[("node", &net)]).tokens(&mints, &lane()).await.unwrap_or_default();
        assert_eq!(metas.len(), count, "{null_tokens}");
        assert!(metas.iter().all(|meta| meta.decimals == Some(2) && meta.symbol.is_some()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_without_a_name_is_known_by_two_answers() {
    let net = net(Chain::new(100), Ways { mute_tokens: true, ..Ways::default() });
    let mints = [Address::Tron([5; 20])];
    let metas = source(&[("node", &net)]).tokens(&mints, &lane()).await.unwrap();
    assert_eq!(metas.len(), 1);
    assert_eq!((metas[0].decimals, metas[0].symbol.clone()), (None, None));
    assert_eq!(net.calls("jsonrpc"), 2, "asked twice");
}
