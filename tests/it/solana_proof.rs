//! What a read of a Solana wallet claims: a single answer neither ends a list nor makes a
//! transaction missing, and a transaction that no endpoint returns hides nothing below it.

use std::sync::Arc;
use std::time::Duration;

use blotter::domain::{Address, ChainId, Doubts, Height, SourceAccount, TxId};
use blotter::registry::{Chain as ChainRow, Registry};
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, UpstreamError};
use blotter::sources::{GapRequest, SolanaLimits, SolanaSource, Source};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::support::reading::all_of;
use crate::support::script::Epoch;
use crate::support::solana_node::{Chain, GENESIS, Net, Ways};

const WALLET: [u8; 32] = [42; 32];

fn source(net: &Arc<Net>, nodes: usize) -> Source {
    Source::Solana(solana(net, nodes, None))
}

fn solana(net: &Arc<Net>, nodes: usize, batch: Option<usize>) -> SolanaSource {
    let endpoint = |at| EndpointConfig {
        batch,
        ..EndpointConfig::new(format!("http://node{at}/planted-secret"))
    };
    let transport: Arc<Net> = Arc::clone(net);
    let endpoints = (0..nodes).map(endpoint).collect();
    let pool = Pool::new(endpoints, transport, PoolLimits::default(), Arc::new(Epoch), 3);
    let genesis = Some(GENESIS.to_owned());
    SolanaSource::new(pool, genesis, SolanaLimits::default())
}

fn row() -> ChainRow {
    Registry::embedded().unwrap().chain(ChainId(1)).unwrap().clone()
}

/// A source that checks how far the lists have indexed.
fn asking(net: &Arc<Net>, nodes: usize, batch: usize) -> Source {
    Source::Solana(solana(net, nodes, Some(batch)).with_busy_account(&row()))
}

#[derive(Debug, Default)]
struct Got {
    found: Vec<(Height, TxId)>,
    missing: Vec<(Height, TxId)>,
    doubts: Doubts,
    low: Option<Height>,
    high: Option<Height>,
    accounts: Vec<SourceAccount>,
    error: Option<UpstreamError>,
}

async fn read(source: &Source) -> Got {
    read_gap(source, all_of(Address::Solana(WALLET))).await
}

async fn read_gap(source: &Source, gap: GapRequest) -> Got {
    let mut reader = source.read(gap);
    let mut got = Got::default();
    loop {
        match reader.next().await {
            Ok(Some(chunk)) => {
                got.low = Some(chunk.low);
                got.high = got.high.or(Some(chunk.high));
                got.doubts = got.doubts.union(chunk.proof.doubts);
                let ids = chunk.txs.iter().filter_map(|tx| Some((tx.height(), tx.id()?)));
                got.found.extend(ids);
                got.missing.extend(chunk.missing);
                got.accounts.extend(chunk.accounts);
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

fn truth(net: &Net) -> Vec<(Height, TxId)> {
    net.chain.lock().unwrap().truth(&[WALLET], 0, Height::MAX)
}

fn chain() -> Chain {
    let mut chain = Chain::new(1000);
    for slot in 1..40 {
        chain.add(slot * 3, &[WALLET]);
    }
    chain
}

/// Issue 16, 7.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_no_endpoint_gives_hides_nothing_below_it() {
    let is_null = |id| Ways { lacks: Some(id), ..Ways::default() };
    let is_error = |id, code| Ways { fails: Some((id, code)), ..Ways::default() };
    for alone in [false, true] {
        for code in [None, Some(-32603), Some(-32000)] {
            let mut chain = if alone { Chain::new(1000) } else { chain() };
            let lacks = (50, chain.add(50, &[WALLET]).id);
            let ways = code.map_or(is_null(lacks.1), |code| is_error(lacks.1, code));
            let net = Net::new(chain, vec![ways]);
            let (one, began) = (source(&net, 1), Instant::now());
            let got = read(&one).await;
            let case = format!("{code:?}, alone: {alone}");
            assert!(began.elapsed() < Duration::from_secs(8), "{case}: {:?}", began.elapsed());
            assert_eq!((got.error, got.missing, got.low), (None, vec![lacks], Some(0)), "{case}");
            let mut given = truth(&net);
            given.retain(|one| *one != lacks);
            assert_eq!(got.found, given, "{case}");
            let calls = net.calls("getTransaction");
            // An error is asked for again by the pool too.
            let bound = if code.is_none() { 60 } else { 120 };
            assert!(calls < bound, "{case}: {calls}");
            // Another node has it.
            net.set(0, Ways::default());
            let got = read(&one).await;
            assert_eq!((got.error, got.missing, got.found), (None, vec![], truth(&net)), "{case}");
        }
    }
}

/// One request has both; the answer for another transaction shows that the node works.
#[tokio::test(start_paused = true)]
async fn transactions_that_all_fail_are_set_aside_as_a_single_one_is() {
    for code in [-32603, -32000] {
        for is_the_node in [false, true] {
            let mut chain = Chain::new(1000);
            let lacks = [50, 40].map(|slot| (slot, chain.add(slot, &[WALLET]).id));
            let fails_all = Some((!is_the_node, code));
            let net = Net::new(chain, vec![Ways { fails_all, ..Ways::default() }]);
            let mut got = read(&source(&net, 1)).await;
            got.missing.sort_unstable_by_key(|(slot, _)| std::cmp::Reverse(*slot));
            let case = format!("{code}, the node: {is_the_node}");
            assert_eq!(got.error.is_some(), is_the_node, "{case}: {:?}", got.error);
            let expected = if is_the_node { Vec::new() } else { lacks.to_vec() };
            assert_eq!((got.found, got.missing), (Vec::new(), expected), "{case}");
        }
    }
}

/// Neighbours in one slot or in many, however many a request takes.
#[tokio::test(start_paused = true)]
async fn many_transactions_that_no_endpoint_gives_hide_nothing_below_them() {
    for (apart, batch) in [(0, 10), (0, 100), (1, 10), (1, 100)] {
        let mut chain = chain();
        for number in 0..100 {
            chain.add(500 + number * apart, &[WALLET]);
        }
        for slot in 700..740 {
            chain.add(slot, &[WALLET]);
        }
        let lacks_slots = Some((500, 599));
        let net = Net::new(chain, vec![Ways { lacks_slots, ..Ways::default() }]);
        let one = Source::Solana(solana(&net, 1, Some(batch)));
        let (mut found, mut missing, mut high) = (Vec::new(), Vec::new(), None);
        let mut reads = 0;
        while high != Some(0) {
            reads += 1;
            assert!(reads < 5, "{apart} {batch}");
            let all = all_of(Address::Solana(WALLET));
            let got = read_gap(&one, GapRequest { high, ..all }).await;
            found.extend(got.found);
            missing.extend(got.missing);
            high = got.low.map(|low| low.saturating_sub(1)).or(high);
        }
        found.sort_unstable();
        missing.sort_unstable();
        let (lacked, given): (Vec<_>, Vec<_>) =
            truth(&net).into_iter().partition(|(slot, _)| (500..600).contains(slot));
        assert_eq!(lacked.len(), 100);
        assert_eq!((found, missing), (given, lacked), "{apart} {batch}");
    }
}

/// If no transaction at all is returned, the endpoint is at fault.
#[tokio::test(start_paused = true)]
async fn a_read_ends_where_no_transaction_is_given_at_all() {
    let mut chain = Chain::new(1000);
    for slot in 1..900 {
        chain.add(slot, &[WALLET]);
    }
    let lacks_slots = Some((0, 1000));
    let net = Net::new(chain, vec![Ways { lacks_slots, ..Ways::default() }]);
    let got = read(&source(&net, 1)).await;
    assert!(matches!(got.error, Some(UpstreamError::Unavailable { .. })), "{:?}", got.error);
    let limits = SolanaLimits::default();
    assert!((limits.missing_max..300).contains(&got.missing.len()), "{}", got.missing.len());
}

#[tokio::test(start_paused = true)]
async fn an_existing_account_with_an_empty_list_is_in_doubt() {
    let mut chain = chain();
    let system = "11111111111111111111111111111111";
    let info = json!({"data": ["", "base64"], "owner": system, "executable": false, "lamports": 1});
    chain.set_info(WALLET, info);
    let empty = Ways { empty_page_every: 1, ..Ways::default() };
    let net = Net::new(chain, vec![empty.clone(), empty]);
    for nodes in [1, 2] {
        let source = source(&net, nodes);
        let got = read(&source).await;
        assert_eq!((got.error, got.low, got.found), (None, Some(0), vec![]));
        assert_eq!(got.doubts, Doubts::UNCONFIRMED);
    }
    // The lists have caught up.
    net.set(0, Ways::default());
    let got = read(&source(&net, 1)).await;
    assert_eq!((got.error, got.doubts, got.found), (None, Doubts::NONE, truth(&net)));
}

/// A trade of another account that names none but the wallet's token account.
#[tokio::test(start_paused = true)]
async fn an_answer_without_accounts_hides_none() {
    let account = [7; 32];
    let never = Ways { no_accounts_every: 1, ..Ways::default() };
    let some = Ways { no_accounts_every: 3, ..Ways::default() };
    let good = Ways::default();
    for ways in [vec![some], vec![never.clone(), good.clone()], vec![good, never]] {
        let nodes = ways.len();
        let mut chain = chain();
        chain.open_account(account, 1);
        chain.add(62, &[[5; 32], account]);
        let net = Net::new(chain, ways);
        let got = read(&source(&net, nodes)).await;
        assert_eq!(got.error, None);
        assert!(got.found.iter().any(|(slot, _)| *slot == 62), "{nodes}");
    }
}

/// The wallet trades up to the head, and each of the last slots names wrapped SOL.
fn busy_chain() -> Chain {
    let Address::Solana(wrapped) = row().wrapped_native else { unreachable!() };
    let mut chain = chain();
    for slot in 600..=1000 {
        chain.add(slot, &[wrapped]);
    }
    for slot in 0..10 {
        chain.add(991 + slot, &[WALLET]);
    }
    chain
}

/// Issue 16, 4, on Solana: the address index lags behind the slot that its own node reports, and
/// treats `minContextSlot` as reached.
#[tokio::test(start_paused = true)]
async fn what_the_lists_have_not_indexed_is_not_claimed() {
    for (list_lag, batch) in [(5, 10), (5, 1), (300, 10), (300, 1)] {
        let net = Net::new(busy_chain(), vec![Ways { list_lag, ..Ways::default() }]);
        let one = asking(&net, 1, batch);
        let (got, high) = (read(&one).await, 1000 - list_lag);
        let listed = net.chain.lock().unwrap().truth(&[WALLET], 0, high);
        assert_eq!((got.error, got.found, got.low), (None, listed, Some(0)));
        assert_eq!(got.high, Some(high), "nothing above is claimed");
        net.set(0, Ways::default());
        let got = read(&one).await;
        assert_eq!((got.error, got.low, got.found), (None, Some(0), truth(&net)));
    }
}

/// The blocks above are missing at the only node for good: a list needs none of them.
#[tokio::test(start_paused = true)]
async fn a_missing_block_above_holds_up_no_read_below_the_head() {
    let net = Net::new(chain(), vec![Ways { no_block: Some(60), ..Ways::default() }]);
    let gap = GapRequest { high: Some(57), first: false, ..all_of(Address::Solana(WALLET)) };
    let got = read_gap(&source(&net, 1), gap).await;
    let wanted = net.chain.lock().unwrap().truth(&[WALLET], 0, 57);
    assert_eq!((got.error, got.low, got.found), (None, Some(0), wanted));
}

#[tokio::test(start_paused = true)]
async fn lists_that_have_come_far_enough_are_read_where_others_have_not() {
    for (behind, batch) in [(0, 10), (1, 10), (0, 1), (1, 1)] {
        for list_lag in [20, 300] {
            let mut nodes = vec![Ways::default(); 2];
            nodes[behind].list_lag = list_lag;
            let net = Net::new(busy_chain(), nodes);
            let two = asking(&net, 2, batch);
            for _ in 0..4 {
                let got = read(&two).await;
                assert_eq!((got.error, got.low, got.found), (None, Some(0), truth(&net)));
            }
        }
    }
}

/// The lists of all answering nodes always lag by the same number of slots.
#[tokio::test(start_paused = true)]
async fn lists_that_stay_a_little_behind_are_waited_for_where_no_others_have_come_farther() {
    let Address::Solana(wrapped) = row().wrapped_native else { unreachable!() };
    let is_behind = |list_lag| Ways { list_lag, ..Ways::default() };
    let down = Ways { too_many_every: 1, ..Ways::default() };
    for nodes in [
        vec![is_behind(20), is_behind(20)],
        vec![down, is_behind(20)],
        vec![is_behind(300), is_behind(20)],
    ] {
        for batch in [10, 1] {
            let mut chain = busy_chain();
            for slot in 1001..=1600 {
                chain.add(slot, &[wrapped]);
            }
            let net = Net::new(chain, nodes.clone());
            let two = asking(&net, 2, batch);
            let chain_goes_on = async {
                for head in 1001..=1600 {
                    sleep(Duration::from_millis(400)).await;
                    net.chain.lock().unwrap().set_head(head);
                }
            };
            let (got, ()) = tokio::join!(read(&two), chain_goes_on);
            assert_eq!((got.error, got.low, got.found), (None, Some(0), truth(&net)), "{nodes:?}");
        }
    }
}

/// A node whose lists are current is used if those of the others are not.
#[tokio::test(start_paused = true)]
async fn lists_that_are_far_behind_are_not_waited_for_next_to_a_slower_node_whose_lists_are_not() {
    // If no node offers the newest hash, the fast ones are in cooldown after refusing it; otherwise
    // they are asked in turns unless they are excluded.
    for (batch, null_tips) in [(10, None), (1, None), (10, Some(0)), (1, Some(0))] {
        let is_behind = Ways { list_lag: 100, null_tips, ..Ways::default() };
        let latency = Duration::from_millis(400);
        let slower = Ways { latency, null_tips, ..Ways::default() };
        let net =
            Net::new(busy_chain(), vec![is_behind.clone(), is_behind.clone(), slower.clone()]);
        let three = asking(&net, 3, batch);
        // The slower node's chain identity is not confirmed yet.
        let first = read(&three).await;
        assert!(first.error.is_none_or(|error| !error.is_final()));
        let began = Instant::now();
        let got = read(&three).await;
        assert_eq!((got.error, got.low, got.found), (None, Some(0), truth(&net)));
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}

/// One node shows no wrapped SOL, and its lists are a little behind; a server of the other one is behind
/// now and then.
#[tokio::test(start_paused = true)]
async fn lists_that_show_nothing_are_not_read_up_to_another_nodes_head() {
    let Address::Solana(wrapped) = row().wrapped_native else { unreachable!() };
    let account = [7; 32];
    let mut exact = 0;
    for list_lag_every in 2..8 {
        let mut chain = busy_chain();
        chain.open_account(account, 5);
        chain.add(997, &[[5; 32], account]);
        let falls = Ways { list_lag: 10, list_lag_every, ..Ways::default() };
        let silent = Ways { list_lag: 10, short_pages: Some((wrapped, 0)), ..Ways::default() };
        let net = Net::new(chain, vec![falls, silent]);
        let two = asking(&net, 2, 10);
        for round in 0..8 {
            let got = read(&two).await;
            assert_eq!(got.error, None, "every {list_lag_every}, read {round}");
            let high = got.high.unwrap();
            let wanted = net.chain.lock().unwrap().truth(&[WALLET, account], 0, high);
            assert_eq!(
                (got.low, got.found),
                (Some(0), wanted),
                "every {list_lag_every}, read {round}"
            );
            exact += usize::from(high == 1000);
        }
    }
    assert!(exact > 0, "the node that shows them gave no head");
}

/// Below a span, lists of accounts are read from the top by any node.
#[tokio::test(start_paused = true)]
async fn lists_that_are_behind_hide_nothing_of_an_account_below_a_span() {
    let account = [7; 32];
    for (behind, batch) in [(0, 10), (1, 10), (0, 1), (1, 1)] {
        let mut chain = busy_chain();
        for slot in 0..80 {
            chain.add(105 + slot * 10, &[[5; 32], account]);
        }
        chain.open_account(account, 5);
        let mut nodes = vec![Ways::default(); 2];
        nodes[behind].list_lag = 300;
        let net = Net::new(chain, nodes);
        let two = asking(&net, 2, batch);
        for _ in 0..4 {
            let known = SourceAccount { account, amount: Some(5), oldest: None };
            let all = all_of(Address::Solana(WALLET));
            let gap = GapRequest { high: Some(880), accounts: vec![known], first: false, ..all };
            let got = read_gap(&two, gap).await;
            let wanted = net.chain.lock().unwrap().truth(&[WALLET, account], 0, 880);
            assert_eq!((got.error, got.low, got.found), (None, Some(0), wanted));
        }
    }
}

/// Where no list shows the account, the chain's lag is kept off.
#[tokio::test(start_paused = true)]
async fn lists_that_show_nothing_are_read_up_to_the_chains_lag() {
    let mut chain = chain();
    let lag = row().index_lag;
    chain.add(1000 - lag, &[WALLET]);
    chain.add(1000 - lag + 1, &[WALLET]);
    let net = Net::new(chain, vec![Ways::default()]);
    let got = read(&asking(&net, 1, 10)).await;
    let mut all = truth(&net);
    all.pop();
    assert_eq!((got.error, got.low, got.found), (None, Some(0), all));
}

/// The account is opened above the head of both nodes, and closed by another authority before the
/// next read.
#[tokio::test(start_paused = true)]
async fn an_account_that_is_open_above_the_head_is_listed_by_the_next_read() {
    let account = [7; 32];
    let traded = || {
        let mut chain = chain();
        chain.add(985, &[[5; 32], account]);
        chain
    };
    let mut chain = traded();
    chain.open_account_since(account, 5, 980);
    let net = Net::new(chain, vec![Ways::default(), Ways { lag: 50, ..Ways::default() }]);
    let got = read(&source(&net, 2)).await;
    let known: Vec<SourceAccount> = got.accounts.into_iter().collect();
    let held = known.first().map(|known| (known.account, known.amount));
    assert_eq!((got.error, held), (None, Some((account, Some(SourceAccount::OPEN)))));
    let net = Net::new(traded(), vec![Ways::default()]);
    let all = all_of(Address::Solana(WALLET));
    let gap = GapRequest { low: 951, accounts: known, first: false, ..all };
    let got = read_gap(&source(&net, 1), gap).await;
    let wanted = net.chain.lock().unwrap().truth(&[account], 951, 1000);
    assert_eq!((got.error, got.found, wanted.len()), (None, wanted, 1));
}

/// The lists of the only node are behind its accounts, and the account closed between the two.
#[tokio::test(start_paused = true)]
async fn an_account_that_closed_above_lists_that_are_behind_is_listed_by_the_next_read() {
    let account = [7; 32];
    let mut chain = busy_chain();
    for slot in [650, 985] {
        chain.add(slot, &[[5; 32], account]);
    }
    let net = Net::new(chain, vec![Ways { list_lag: 300, ..Ways::default() }]);
    let one = asking(&net, 1, 10);
    let mut known = SourceAccount { account, amount: Some(5), oldest: None };
    for (low, high, wanted) in [(601, 700, 1), (701, 1000, 11)] {
        let all = all_of(Address::Solana(WALLET));
        let gap = GapRequest { low, accounts: vec![known], first: false, ..all };
        let got = read_gap(&one, gap).await;
        let truth = net.chain.lock().unwrap().truth(&[WALLET, account], low, high);
        assert_eq!((got.error, got.high, got.found), (None, Some(high), truth.clone()));
        assert_eq!(truth.len(), wanted);
        known = *got.accounts.iter().rfind(|one| one.account == account).unwrap();
        let is_open = known.amount == Some(SourceAccount::OPEN);
        assert_eq!((is_open, known.amount.is_none()), (high == 700, high == 1000));
        net.set(0, Ways::default());
    }
}
