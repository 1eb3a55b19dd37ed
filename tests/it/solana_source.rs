//! The Solana source against nodes with the faults of real ones: every transaction exactly once, in
//! chunks without gaps, within limits of calls.

use std::sync::Arc;
use std::time::Duration;

use blotter::domain::{Address, Doubts, Height, Resume, SourceAccount, TxId};
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, UpstreamError};
use blotter::sources::{
    AbilityKind, GapReader, GapRequest, HashCheck, LateAccounts, RawChunk, RawTx, RunAhead,
    SolanaLimits, SolanaSource, Source, Tip,
};
use serde_json::json;
use tokio::time::Instant;

use crate::support::reading::{all_of, lane};
use crate::support::script::Epoch;
use crate::support::solana_node::{Chain, GENESIS, Net, Ways, key, text};

const WALLET: [u8; 32] = [42; 32];

fn source_with(net: &Arc<Net>, nodes: usize, batch: usize) -> Source {
    let endpoint = |at| EndpointConfig {
        batch: Some(batch),
        ..EndpointConfig::new(format!("http://node{at}/planted-secret"))
    };
    let transport: Arc<Net> = Arc::clone(net);
    let endpoints = (0..nodes).map(endpoint).collect();
    let pool = Pool::new(endpoints, transport, PoolLimits::default(), Arc::new(Epoch), 3);
    let genesis = Some(GENESIS.to_owned());
    Source::Solana(SolanaSource::new(pool, genesis, SolanaLimits::default()))
}

fn all() -> GapRequest {
    all_of(Address::Solana(WALLET))
}

/// The result of a read, whose chunks are checked as they come.
#[derive(Debug, Default)]
struct Got {
    chunks: Vec<(Height, Height, usize)>,
    found: Vec<(Height, TxId)>,
    /// Of these, found above the heights of their chunk.
    late: Vec<(Height, TxId)>,
    accounts: Vec<SourceAccount>,
    resumes: Vec<(Height, Option<Resume>)>,
    doubts: Doubts,
    error: Option<UpstreamError>,
}

impl Got {
    fn take(&mut self, chunk: RawChunk) {
        self.doubts = self.doubts.union(chunk.proof.doubts);
        assert!(chunk.low <= chunk.high);
        if let Some((low, ..)) = self.chunks.last() {
            assert_eq!(chunk.high + 1, *low, "chunks touch");
        }
        self.chunks.push((chunk.low, chunk.high, chunk.txs.len()));
        let mut above = chunk.high;
        for tx in &chunk.txs {
            let RawTx::Solana(tx, time) = tx else { panic!("of another family") };
            assert!(tx.slot() >= chunk.low && tx.slot() <= above, "newest first, inside");
            above = tx.slot();
            assert_eq!(u64::from(time.0), 1_600_000_000 + tx.slot());
            self.found.push((tx.slot(), tx.id().unwrap()));
        }
        for tx in &chunk.late {
            assert!(tx.height() > chunk.high, "above what is delivered");
            self.late.push((tx.height(), tx.id().unwrap()));
        }
        self.found.extend(self.late.iter().skip(self.late.len() - chunk.late.len()));
        self.accounts.extend(chunk.accounts);
        self.resumes.push((chunk.low, chunk.resume));
    }

    fn low(&self) -> Option<Height> {
        self.chunks.last().map(|(low, ..)| *low)
    }

    /// The last report of each account.
    fn known(&self) -> Vec<SourceAccount> {
        let mut last: Vec<SourceAccount> = Vec::new();
        for account in &self.accounts {
            last.retain(|other| other.account != account.account);
            last.push(*account);
        }
        last
    }

    #[track_caller]
    fn is(&self, truth: Vec<(Height, TxId)>) {
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

/// A wallet with many transactions in some slots, some that only name its token accounts, failed
/// ones among them.
fn busy_chain(count: u16, seed: u64) -> (Chain, Vec<[u8; 32]>) {
    let mut chain = Chain::new(1_000_000);
    let accounts: Vec<[u8; 32]> = (0..6).map(key).collect();
    let (mut slot, mut dice) = (500_000_u64, seed | 1);
    for _ in 0..count {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        slot -= if dice.is_multiple_of(3) { 0 } else { dice / 7 % 40 };
        let account = accounts[usize::try_from(dice / 11 % 6).unwrap()];
        let tx = match dice / 1000 % 10 {
            0 => chain.add(slot, &[[5; 32], account]),
            1..=3 => chain.add(slot, &[WALLET, account]),
            _ => chain.add(slot, &[WALLET]),
        };
        if (dice / 5000).is_multiple_of(8) {
            tx.failed();
        }
    }
    for account in &accounts {
        chain.open_account(*account, 100);
    }
    let mut keys = accounts;
    keys.push(WALLET);
    (chain, keys)
}

fn truth(net: &Net, keys: &[[u8; 32]], low: Height, high: Height) -> Vec<(Height, TxId)> {
    net.chain.lock().unwrap().truth(keys, low, high)
}

#[tokio::test(start_paused = true)]
async fn gives_every_transaction_once() {
    let (chain, keys) = busy_chain(3000, 1);
    let net = Net::new(chain, vec![Ways::default()]);
    let got = read(&source_with(&net, 1, 10), all()).await;
    assert_eq!(got.error, None);
    got.is(truth(&net, &keys, 0, Height::MAX));
}

#[tokio::test(start_paused = true)]
async fn nodes_that_disagree_and_lose_cost_no_transaction() {
    for seed in 0..10 {
        let (mut chain, keys) = busy_chain(1500, seed * 977 + 5);
        chain.forget_times(40);
        let ways = |at: u64| Ways {
            flips: true,
            loses_edge_every: 3 + (seed + at) % 4,
            empty_page_every: 5 + seed % 3,
            short_pages: Some((WALLET, 40 + usize::try_from(seed).unwrap() * 13)),
            null_every: 17,
            too_many_every: 13,
            ..Ways::default()
        };
        let net = Net::new(chain, vec![ways(0), ways(1)]);
        let source = source_with(&net, 2, 20);
        let mut got = Got::default();
        // A read that a node's faults end is begun again below what it gave, as the loader does.
        for _ in 0..20 {
            let mut request = all();
            if let Some((low, resume)) = got.resumes.last().cloned() {
                request = GapRequest { high: Some(low - 1), resume, first: false, ..request };
                request.accounts = got.known();
            }
            let mut reader = source.read(request);
            let error = loop {
                match reader.next().await {
                    Ok(Some(chunk)) => got.take(chunk),
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            if error.is_none() {
                break;
            }
        }
        assert_eq!(got.low(), Some(0), "seed {seed}");
        got.is(truth(&net, &keys, 0, Height::MAX));
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_rows_come_after_three_round_trips() {
    let (chain, _) = busy_chain(3000, 2);
    // It offers its newest block, as every real node does.
    let net = Net::new(chain, vec![Ways { null_tips: Some(0), ..Ways::default() }]);
    let source = source_with(&net, 1, 100);
    let began = Instant::now();
    let chunk = source.read(all()).next().await.unwrap().unwrap();
    assert!(!chunk.txs.is_empty());
    assert_eq!(began.elapsed().as_millis() / 100, 3, "head, lists, transactions");
}

/// Requests for n transactions: at most 1.05 (n / batch + n / 1000 + accounts) + 21.
#[tokio::test(start_paused = true)]
async fn asks_little_more_than_it_must() {
    for batch in [10, 100] {
        let (chain, keys) = busy_chain(12_000, 3);
        let net = Net::new(chain, vec![Ways::default()]);
        let mut reader = source_with(&net, 1, batch).read(all());
        reader.set_run_ahead(RunAhead::All);
        let got = drain(&mut reader).await;
        assert_eq!(got.error, None);
        let truth = truth(&net, &keys, 0, Height::MAX);
        let count = truth.len();
        got.is(truth);
        // One for each page of the wallet's list, one for what such a page marks as failed, and the
        // accounts' lists.
        let bound = (count / batch + 12 + 12 + 6) * 105 / 100 + 21;
        let requests = usize::try_from(net.requests()).unwrap();
        assert!(requests <= bound, "{requests} requests, bound {bound}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_history_ends_only_with_a_second_answer() {
    let mut chain = Chain::new(1000);
    chain.add(10, &[WALLET]);
    chain.add(20, &[WALLET]);
    let net = Net::new(chain, vec![Ways::default(), Ways::default()]);
    let got = read(&source_with(&net, 2, 10), all()).await;
    got.is(truth(&net, &[WALLET], 0, 1000));
    assert_eq!(net.lists_of(WALLET), 6, "three questions, two answers to each");
    for node in [0, 1] {
        assert!(net.calls_at(node, "getSignaturesForAddress") > 0, "both reported the end");
    }
    assert!(net.calls("getFirstAvailableBlock") >= 1, "one of them keeps the whole chain");
}

#[tokio::test(start_paused = true)]
async fn an_unused_address_is_complete_and_empty() {
    let net = Net::new(Chain::new(1000), vec![Ways::default()]);
    let got = read(&source_with(&net, 1, 10), all()).await;
    assert_eq!((got.error, got.found), (None, vec![]));
}

#[tokio::test(start_paused = true)]
async fn an_account_closed_in_a_transaction_joins_below_it() {
    let mut chain = Chain::new(10_000);
    let account = key(3);
    for slot in 0..60 {
        chain.add(100 + slot * 10, &[[5; 32], account]);
        chain.add(103 + slot * 10, &[WALLET]);
    }
    chain.add(1000, &[WALLET]).closes(account);
    for slot in 0..30 {
        chain.add(2000 + slot, &[WALLET]);
    }
    let net = Net::new(chain, vec![Ways::default()]);
    let got = read(&source_with(&net, 1, 10), all()).await;
    got.is(truth(&net, &[WALLET, account], 0, 10_000));
    let closed = got.accounts.iter().rfind(|known| known.account == account).unwrap();
    assert_eq!(*closed, SourceAccount { account, amount: None, oldest: Some(100) });
    assert_eq!(net.lists_of(account), 2, "its page, and that nothing follows");
}

/// The stored record says that the account's list ended above a transaction that closes it.
#[tokio::test(start_paused = true)]
async fn an_account_that_is_closed_below_its_oldest_transaction_is_listed_again() {
    let account = key(3);
    let mut chain = Chain::new(10_000);
    for slot in [100, 300, 600, 900] {
        chain.add(slot, &[[5; 32], account]);
    }
    chain.add(400, &[WALLET]).closes(account);
    let net = Net::new(chain, vec![Ways::default()]);
    let known = SourceAccount { account, amount: Some(5), oldest: Some(900) };
    let gap = GapRequest { high: Some(700), accounts: vec![known], first: false, ..all() };
    let got = read(&source_with(&net, 1, 10), gap).await;
    // Those above the heights of the read as well: 600 is of its own, 900 is late.
    got.is(truth(&net, &[WALLET, account], 0, 10_000));
    let whole = SourceAccount { oldest: Some(100), ..known };
    assert_eq!(got.known(), [whole]);
}

/// The answer about the lower one of two that close it comes first.
#[tokio::test(start_paused = true)]
async fn an_account_that_was_closed_twice_joins_below_the_upper_one() {
    let account = key(3);
    let mut chain = Chain::new(10_000);
    for slot in [901, 900] {
        chain.add(slot, &[WALLET]);
    }
    for slot in [700, 500] {
        chain.add(slot, &[WALLET]).closes(account);
    }
    for slot in [650, 600, 400] {
        chain.add(slot, &[[5; 32], account]);
    }
    // The third one that is asked for is that of slot 700.
    let net = Net::new(chain, vec![Ways { null_every: 3, ..Ways::default() }]);
    let got = read(&source_with(&net, 1, 10), all()).await;
    got.is(truth(&net, &[WALLET, account], 0, 10_000));
    assert_eq!(got.late, []);
    let closed = SourceAccount { account, amount: None, oldest: Some(400) };
    assert_eq!(got.known(), [closed]);
}

/// As before, but the upper transaction does not close it: another authority did so above.
#[tokio::test(start_paused = true)]
async fn an_account_that_was_closed_and_found_above_that_is_read_from_the_top() {
    let account = key(3);
    let mut chain = Chain::new(10_000);
    for slot in 0..400 {
        chain.add(2_000 + slot, &[WALLET]);
    }
    chain.add(700, &[WALLET]).holds(account);
    chain.add(500, &[WALLET]).closes(account);
    for slot in [1_000, 800, 650, 600, 400] {
        chain.add(slot, &[[5; 32], account]);
    }
    let net = Net::new(chain, vec![Ways { null_every: 401, ..Ways::default() }]);
    let got = read(&source_with(&net, 1, 10), all()).await;
    got.is(truth(&net, &[WALLET, account], 0, 10_000));
    let closed = SourceAccount { account, amount: None, oldest: Some(400) };
    assert_eq!(got.known(), [closed]);
}

/// A list is not read far ahead of its transactions' delivery, because its length has no bound.
#[tokio::test(start_paused = true)]
async fn a_list_stays_near_what_is_delivered() {
    let mut chain = Chain::new(1_000_000);
    for slot in 0..20_000 {
        chain.add(100 + slot, &[WALLET]);
    }
    let net = Net::new(chain, vec![Ways::default()]);
    let mut reader = source_with(&net, 1, 10).read(all());
    reader.set_run_ahead(RunAhead::All);
    let mut delivered = 0;
    while delivered < 2_000 {
        delivered += reader.next().await.unwrap().unwrap().txs.len();
        // As while a chunk is being stored: requested answers arrive.
        tokio::time::timeout(Duration::from_secs(5), reader.drive()).await.unwrap_err();
    }
    // Delivered and fetched 2,400, 3,000 that wait, and a page that goes beyond.
    let pages = net.lists_of(WALLET);
    assert!(pages <= 2 * 7, "{pages} answers of 1,000 for {delivered} transactions");
}

/// An account that another authority closed, in a transaction that does not name the wallet: only the
/// wallet's own transactions show that it was there.
#[tokio::test(start_paused = true)]
async fn an_account_that_another_authority_closed_is_found_by_what_names_it() {
    let account = key(3);
    for (lists_token_accounts, second) in [(true, key(4)), (false, key(4))] {
        let mut chain = Chain::new(10_000);
        for slot in 0..60 {
            chain.add(100 + slot * 10, &[[5; 32], account]);
            chain.add(103 + slot * 10, &[WALLET]);
        }
        chain.add(700, &[WALLET]).holds(account);
        chain.add(705, &[[5; 32], account]).failed();
        chain.add(706, &[[5; 32], account]);
        // A late transaction shows one more.
        chain.add(800, &[WALLET, account]).holds(second);
        chain.add(900, &[[5; 32], second]);
        chain.add(950, &[[5; 32], account]);
        for slot in 0..400 {
            chain.add(2000 + slot, &[WALLET]);
        }
        let net = Net::new(chain, vec![Ways { lists_token_accounts, ..Ways::default() }]);
        let got = read(&source_with(&net, 1, 10), all()).await;
        got.is(truth(&net, &[WALLET, account, second], 0, 10_000));
        assert!(!got.late.is_empty(), "delivery went on while they were unknown");
        let closed = got.known().into_iter().find(|known| known.account == account).unwrap();
        assert_eq!(closed, SourceAccount { account, amount: None, oldest: Some(100) });
    }
}

/// Other account updates, which may come with any chunk, do not report a late account.
#[tokio::test(start_paused = true)]
async fn the_chunk_that_reports_a_late_account_says_so() {
    let (account, open) = (key(3), key(4));
    let mut chain = Chain::new(10_000);
    chain.open_account(open, 5);
    chain.add(600, &[[5; 32], open]);
    chain.add(700, &[WALLET]).holds(account);
    chain.add(900, &[[5; 32], account]);
    for slot in 0..400 {
        chain.add(2000 + slot, &[WALLET]);
    }
    let net = Net::new(chain, vec![Ways::default()]);
    let mut reader = source_with(&net, 1, 10).read(all());
    let mut reports = Vec::new();
    while let Some(chunk) = reader.next().await.unwrap() {
        let shown: Vec<[u8; 32]> = chunk.accounts.iter().map(|known| known.account).collect();
        reports.push((shown, chunk.late_accounts));
    }
    assert_eq!(reports[0], (vec![open], LateAccounts::Unreported));
    let first = reports.iter().position(|(shown, _)| shown.contains(&account)).unwrap();
    for (at, (_, late)) in reports.iter().enumerate() {
        let wanted = if at == first { LateAccounts::All } else { LateAccounts::Unreported };
        assert_eq!(*late, wanted, "{at} of {reports:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_that_is_known_is_not_listed_again_for_being_named() {
    let mut chain = Chain::new(10_000);
    let account = key(3);
    chain.add(500, &[WALLET]).holds(account);
    chain.open_account(account, 5);
    let net = Net::new(chain, vec![Ways::default()]);
    let source = source_with(&net, 1, 10);
    let first = read(&source, all()).await;
    net.chain.lock().unwrap().add(11_000, &[WALLET]).holds(account);
    net.chain.lock().unwrap().set_head(12_000);
    let before = net.lists_of(account);
    let request = GapRequest { low: 10_001, accounts: first.known(), first: false, ..all() };
    let second = read(&source, request).await;
    assert_eq!((second.found.len(), second.late.len()), (1, 0));
    assert_eq!(net.lists_of(account), before, "its balance did not change");
}

/// Another authority filled an account that is empty at two heads; the wallet's own sale shows that it
/// held something in between.
#[tokio::test(start_paused = true)]
async fn an_account_that_holds_the_same_at_two_heads_and_moved_in_between_is_listed() {
    let (account, keeper) = (key(3), [5; 32]);
    for is_closed in [false, true] {
        let mut chain = Chain::new(10_000);
        chain.add(500, &[WALLET, account]);
        chain.open_account(account, 0);
        let net = Net::new(chain, vec![Ways::default()]);
        let source = source_with(&net, 1, 10);
        let first = read(&source, all()).await;
        {
            let mut chain = net.chain.lock().unwrap();
            chain.add(11_000, &[keeper, account]);
            let sold = chain.add(11_100, &[WALLET]);
            if is_closed {
                sold.closes(account)
            } else {
                sold.holds(account)
            };
            // Opened again, where it was closed.
            chain.add(11_200, &[keeper, account]);
            chain.set_head(12_000);
        }
        let request = GapRequest { low: 10_001, accounts: first.known(), first: false, ..all() };
        let second = read(&source, request).await;
        second.is(truth(&net, &[WALLET, account], 10_001, 12_000));
        let open = second.known().into_iter().find(|known| known.account == account);
        assert!(open.is_none_or(|open| open.held(0)), "{open:?}");
    }
}

/// The chain's state has an account without any list entry: what it did is unknown.
#[tokio::test(start_paused = true)]
async fn an_open_account_with_an_empty_list_is_in_doubt() {
    let account = key(3);
    for (since, is_doubted) in [(0, true), (20_000, false)] {
        let mut chain = Chain::new(10_000);
        chain.add(500, &[WALLET]);
        chain.open_account_since(account, 5, since);
        let net = Net::new(chain, vec![Ways::default()]);
        let got = read(&source_with(&net, 1, 10), all()).await;
        got.is(truth(&net, &[WALLET], 0, 10_000));
        assert_eq!(got.doubts.contains(Doubts::UNCONFIRMED), is_doubted, "open since {since}");
        let known = got.known().into_iter().find(|known| known.account == account);
        assert!(known.is_none_or(|known| known.oldest.is_none()), "{known:?}");
    }
}

/// A node that gives few signatures at a time says nothing of what follows them.
#[tokio::test(start_paused = true)]
async fn a_short_page_ends_no_list() {
    let account = key(3);
    for short in [WALLET, account] {
        let mut chain = Chain::new(10_000);
        for slot in 0..40 {
            chain.add(100 + slot * 10, &[[5; 32], account]);
            chain.add(103 + slot * 10, &[WALLET]);
        }
        chain.open_account(account, 100);
        let net = Net::new(chain, vec![Ways { short_pages: Some((short, 7)), ..Ways::default() }]);
        let got = read(&source_with(&net, 1, 10), all()).await;
        assert_eq!(got.error, None);
        got.is(truth(&net, &[WALLET, account], 0, 10_000));
    }
}

/// A node that leaves an entry out in the middle of a page, with those around it there.
#[tokio::test(start_paused = true)]
async fn an_entry_that_one_answer_lacks_inside_a_page_comes_from_the_other_one() {
    let mut chain = Chain::new(10_000);
    for slot in 0..2_500 {
        chain.add(1_000 + slot, &[WALLET]);
    }
    let net = Net::new(chain, vec![Ways { loses_inner_every: 3, ..Ways::default() }]);
    let got = read(&source_with(&net, 1, 10), all()).await;
    assert_eq!(got.error, None);
    got.is(truth(&net, &[WALLET], 0, 10_000));
}

/// The end of each list is requested once, in batches; not if a page reached what is known.
#[tokio::test(start_paused = true)]
async fn the_ends_of_accounts_are_asked_for_together() {
    let mut chain = Chain::new(10_000);
    let accounts: Vec<[u8; 32]> = (0..40).map(key).collect();
    for (at, account) in (0..).zip(&accounts) {
        chain.add(100 + at * 10, &[WALLET, *account]);
        chain.add(105 + at * 10, &[WALLET, *account]);
        chain.open_account(*account, 100);
    }
    let net = Net::new(chain, vec![Ways::default()]);
    let source = source_with(&net, 1, 20);
    let got = read(&source, all()).await;
    got.is(truth(&net, &[WALLET], 0, 10_000));
    assert_eq!(
        net.calls("getSignaturesForAddress"),
        88,
        "two for each list, four by two answers for the wallet's, whose first page may be cut"
    );
    // Not 40 for the ends alone. Two are for the node's chain, behind the first pages and at the end.
    assert!(net.requests() <= 28, "{} requests", net.requests());
    {
        let mut chain = net.chain.lock().unwrap();
        for account in &accounts {
            chain.add(10_050, &[WALLET, *account]);
            chain.set_amount(*account, 7);
        }
        chain.set_head(10_100);
    }
    let request = GapRequest { low: 10_001, accounts: got.known(), first: false, ..all() };
    let more = read(&source, request).await;
    more.is(truth(&net, &[WALLET], 10_001, 20_000));
    assert_eq!(
        net.calls("getSignaturesForAddress"),
        88 + 42,
        "one for each list, two for the wallet's"
    );
}

#[tokio::test(start_paused = true)]
async fn a_refresh_lists_only_accounts_that_moved() {
    let (chain, keys) = busy_chain(400, 4);
    let net = Net::new(chain, vec![Ways::default()]);
    let source = source_with(&net, 1, 10);
    let first = read(&source, all()).await;
    assert!(first.known().iter().all(|known| known.oldest.is_some()), "{:?}", first.accounts);
    let before = net.calls("getSignaturesForAddress");
    {
        let mut chain = net.chain.lock().unwrap();
        chain.add(1_000_500, &[[5; 32], keys[2]]);
        chain.set_amount(keys[2], 7);
        chain.set_head(1_001_000);
    }
    let request = GapRequest { low: 1_000_001, accounts: first.known(), first: false, ..all() };
    let got = read(&source, request).await;
    got.is(truth(&net, &keys, 1_000_001, Height::MAX));
    let asked = net.calls("getSignaturesForAddress") - before;
    assert!(asked <= 4, "the wallet and one account: {asked}");
}

/// A transaction that changes a balance names the account: a list without it is incomplete.
#[tokio::test(start_paused = true)]
async fn a_balance_that_changed_without_an_entry_is_in_doubt() {
    for (is_closed, is_listed) in [(false, true), (false, false), (true, true), (true, false)] {
        let (chain, keys) = busy_chain(400, 4);
        let net = Net::new(chain, vec![Ways::default()]);
        let source = source_with(&net, 1, 10);
        let first = read(&source, all()).await;
        {
            let mut chain = net.chain.lock().unwrap();
            if is_listed {
                chain.add(1_000_500, &[[5; 32], keys[2]]);
            }
            if is_closed {
                chain.close_account(keys[2]);
            } else {
                chain.set_amount(keys[2], 7);
            }
            chain.set_head(1_001_000);
        }
        let request = GapRequest { low: 1_000_001, accounts: first.known(), first: false, ..all() };
        let got = read(&source, request).await;
        got.is(truth(&net, &keys, 1_000_001, Height::MAX));
        let doubts = if is_listed { Doubts::NONE } else { Doubts::UNCONFIRMED };
        assert_eq!((got.error, got.doubts), (None, doubts), "closed: {is_closed}");
    }
}

#[tokio::test(start_paused = true)]
async fn goes_on_below_a_span_by_its_hint_or_without() {
    let (chain, keys) = busy_chain(2500, 6);
    let net = Net::new(chain, vec![Ways::default(), Ways { flips: true, ..Ways::default() }]);
    let source = source_with(&net, 2, 10);
    let first = read(&source, all()).await;
    let unread = |known| SourceAccount { oldest: None, ..known };
    let accounts: Vec<SourceAccount> = first.known().into_iter().map(unread).collect();
    let (low, hint) = first.resumes[first.resumes.len() / 2].clone();
    let useless = Resume(vec![9; 144]);
    for resume in [hint, None, Some(useless), Some(Resume(vec![1, 2]))] {
        let request = GapRequest {
            high: Some(low - 1),
            resume,
            accounts: accounts.clone(),
            first: false,
            ..all()
        };
        let got = read(&source, request).await;
        assert_eq!(got.error, None);
        got.is(truth(&net, &keys, 0, low - 1));
    }
}

/// Without a hint the reading begins at a block above, whose signature the answering node may not
/// know: then it answers `[]`, which is no end.
#[tokio::test(start_paused = true)]
async fn an_empty_answer_to_a_foreign_cursor_ends_no_history() {
    let mut chain = Chain::new(10_000);
    for slot in 0..50 {
        chain.add(100 + slot, &[WALLET]);
    }
    chain.add(5000, &[[8; 32]]);
    let ways = Ways { knows_foreign_cursors: false, ..Ways::default() };
    let net = Net::new(chain, vec![ways]);
    let request = GapRequest { high: Some(4000), first: false, ..all() };
    let got = read(&source_with(&net, 1, 10), request).await;
    assert_eq!(got.error, None);
    got.is(truth(&net, &[WALLET], 0, 4000));
}

#[tokio::test(start_paused = true)]
async fn cut_history_is_reported_after_the_rows() {
    let mut chain = Chain::new(10_000);
    for slot in 0..50 {
        chain.add(100 + slot * 100, &[WALLET]);
    }
    let net = Net::new(chain, vec![Ways { first_block: 3000, ..Ways::default() }]);
    let source = source_with(&net, 1, 10);
    let got = read(&source, all()).await;
    assert_eq!(got.error, Some(UpstreamError::HistoryCut { first: 3000 }));
    assert_eq!(got.low(), Some(3000));
    let lists = source.abilities()[0].first().cloned().unwrap();
    assert_eq!((lists.kind, lists.from), (AbilityKind::SignatureLists, Some(3000)));
    got.is(truth(&net, &[WALLET], 3000, 10_000));
}

/// One node keeps all, others do not: the history is whole, whichever of them gives what two answers
/// to a page are joined of.
#[tokio::test(start_paused = true)]
async fn a_pruned_node_next_to_a_full_one_cuts_nothing() {
    let alike = [(2, &[0][..]), (2, &[1]), (3, &[0, 1]), (3, &[0, 2]), (3, &[1, 2])]
        .map(|(nodes, pruned)| (nodes, pruned, [100; 3]));
    // Two that answer soon are not asked by turns until none is left to ask.
    let slow = [(3, &[0, 1][..], [80, 80, 500]), (3, &[0, 1], [80, 80, 4_000])];
    for (nodes, pruned, latencies) in alike.into_iter().chain(slow) {
        let mut chain = Chain::new(10_000);
        for slot in 0..50 {
            chain.add(100 + slot * 100, &[WALLET]);
        }
        let mut ways = vec![Ways::default(); nodes];
        for at in pruned {
            ways[*at].first_block = 3000;
        }
        for (of, latency) in ways.iter_mut().zip(latencies) {
            of.latency = Duration::from_millis(latency);
        }
        let net = Net::new(chain, ways);
        let source = source_with(&net, nodes, 10);
        let reads = async {
            loop {
                let got = read(&source, all()).await;
                // A slow one has not shown yet which chain it is of.
                if !matches!(got.error, Some(UpstreamError::Unavailable { .. })) {
                    return got;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let got = tokio::select! {
            got = reads => got,
            never = source.tend() => match never {},
        };
        assert_eq!(got.error, None, "of {nodes} nodes {pruned:?} are pruned, {latencies:?}");
        got.is(truth(&net, &[WALLET], 0, 10_000));
    }
}

/// Next to a pruned node, one that has no lists is not waited for.
#[tokio::test(start_paused = true)]
async fn a_node_without_lists_hides_no_cut() {
    for pruned in [0, 1] {
        let mut chain = Chain::new(10_000);
        for slot in 0..50 {
            chain.add(100 + slot * 100, &[WALLET]);
        }
        let without = Ways { without: Some("getSignaturesForAddress"), ..Ways::default() };
        let mut ways = vec![without; 2];
        ways[pruned] = Ways { first_block: 3000, ..Ways::default() };
        let got = read(&source_with(&Net::new(chain, ways), 2, 10), all()).await;
        assert_eq!(got.error, Some(UpstreamError::HistoryCut { first: 3000 }));
        assert_eq!(got.low(), Some(3000));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lagging_node_hides_nothing_below_the_head() {
    let (chain, keys) = busy_chain(600, 7);
    let net = Net::new(chain, vec![Ways::default(), Ways { lag: 505_000, ..Ways::default() }]);
    for batch in [1, 10] {
        let got = read(&source_with(&net, 2, batch), all()).await;
        assert_eq!(got.error, None);
        let head = got.chunks[0].1;
        got.is(truth(&net, &keys, 0, head));
    }
}

/// Below a span the lists of accounts are read from the top, by any node: one that lags must know
/// what is wanted.
#[tokio::test(start_paused = true)]
async fn a_lagging_node_hides_nothing_of_an_account_below_a_span() {
    let account = key(3);
    for lagging in [0, 1] {
        let mut chain = Chain::new(1000);
        for slot in 0..80 {
            chain.add(100 + slot * 10, &[WALLET]);
            chain.add(105 + slot * 10, &[[5; 32], account]);
        }
        chain.open_account(account, 5);
        let mut nodes = vec![Ways::default(); 2];
        nodes[lagging].lag = 300;
        let net = Net::new(chain, nodes);
        let source = source_with(&net, 2, 1);
        for _ in 0..4 {
            let known = SourceAccount { account, amount: Some(5), oldest: None };
            let request =
                GapRequest { high: Some(880), accounts: vec![known], first: false, ..all() };
            let got = read(&source, request).await;
            assert_eq!(got.error, None);
            got.is(truth(&net, &[WALLET, account], 0, 880));
        }
    }
}

/// The accounts are listed by a node that lags: a transaction that names only an account unknown to
/// it must not count as read.
#[tokio::test(start_paused = true)]
async fn balances_of_a_lagging_node_prove_nothing_above_its_head() {
    let (account, mut from_the_head) = (key(3), 0);
    for fresh in [0, 1] {
        let mut chain = Chain::new(1000);
        for slot in 0..50 {
            chain.add(100 + slot * 10, &[WALLET]);
        }
        chain.open_account_since(account, 5, 900);
        for slot in 0..5 {
            chain.add(950 + slot * 10, &[[5; 32], account]);
        }
        let mut nodes = vec![Ways { lag: 200, ..Ways::default() }; 2];
        nodes[fresh] = Ways { lists_token_accounts: false, ..Ways::default() };
        let net = Net::new(chain, nodes);
        for _ in 0..4 {
            let got = read(&source_with(&net, 2, 1), all()).await;
            assert_eq!(got.error, None);
            let head = got.chunks[0].1;
            got.is(truth(&net, &[WALLET, account], 0, head));
        }
        from_the_head += net.calls_at(fresh, "getSlot");
    }
    assert!(from_the_head > 0, "the node that does not lag was never asked for the head");
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_chain_is_left_alone() {
    let wrong = Ways { genesis: "4uhcVJyU9pJkvQyS88uRDiswHScCKQY3zQsfCFbz7TLA", ..Ways::default() };
    let (chain, keys) = busy_chain(100, 8);
    let net = Net::new(chain, vec![wrong.clone(), Ways::default()]);
    let got = read(&source_with(&net, 2, 10), all()).await;
    assert_eq!(got.error, None);
    got.is(truth(&net, &keys, 0, Height::MAX));

    let net = Net::new(Chain::new(100), vec![wrong]);
    let source = source_with(&net, 1, 10);
    for _ in 0..2 {
        let got = read(&source, all()).await;
        assert!(matches!(got.error, Some(UpstreamError::WrongChain { .. })), "{:?}", got.error);
    }
}

fn has_named_another_chain(got: &Got) {
    let error = got.error.clone().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("named another chain"), "{error}, down to {:?}", got.low());
}

/// Another server answers at the node's address since the last read: nothing that is known shows
/// that its newest entries are another chain's.
#[tokio::test(start_paused = true)]
async fn the_newest_entries_of_a_node_that_names_another_chain_are_not_believed() {
    let wrong = Ways { genesis: "4uhcVJyU9pJkvQyS88uRDiswHScCKQY3zQsfCFbz7TLA", ..Ways::default() };
    let (chain, _) = busy_chain(400, 8);
    let net = Net::new(chain, vec![Ways::default()]);
    let source = source_with(&net, 1, 10);
    source.read(all()).next().await.unwrap().unwrap();
    net.set(0, wrong);
    let got = read(&source, all()).await;
    has_named_another_chain(&got);
    assert!(got.chunks.is_empty(), "down to {:?}", got.low());
}

/// Another server answers at the node's address in the middle of a read: it ends every list.
#[tokio::test(start_paused = true)]
async fn a_list_that_ends_at_a_node_that_names_another_chain_has_not_ended() {
    let wrong = Ways { genesis: "4uhcVJyU9pJkvQyS88uRDiswHScCKQY3zQsfCFbz7TLA", ..Ways::default() };
    let (chain, _) = busy_chain(400, 8);
    let net = Net::new(chain, vec![Ways::default()]);
    let source = source_with(&net, 1, 10);
    let mut reader = source.read(all());
    assert!(reader.next().await.unwrap().unwrap().low > 0);
    net.set(0, wrong);
    let got = drain(&mut reader).await;
    has_named_another_chain(&got);
    assert!(reader.next().await.unwrap().is_none(), "nothing comes behind an error");
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_no_wallet_is_refused() {
    let data = |bytes: usize| {
        use base64::Engine as _;
        json!([base64::engine::general_purpose::STANDARD.encode(vec![1; bytes]), "base64"])
    };
    let token = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
    let system = "11111111111111111111111111111111";
    let cases = [
        (
            json!({"data": data(36), "owner": "BPFLoaderUpgradeab1e11111111111111111111111",
                "executable": true}),
            true,
        ),
        (json!({"data": data(82), "owner": token, "executable": false}), true),
        (json!({"data": data(165), "owner": token, "executable": false}), true),
        (json!({"data": data(0), "owner": system, "executable": false}), false),
        // A program's own account may hold tokens.
        (json!({"data": data(300), "owner": text(key(9)), "executable": false}), false),
    ];
    for (info, refused) in cases {
        let mut chain = Chain::new(1000);
        chain.add(5, &[WALLET]);
        chain.set_info(WALLET, info.clone());
        let net = Net::new(chain, vec![Ways::default()]);
        let got = read(&source_with(&net, 1, 10), all()).await;
        let is = matches!(got.error, Some(UpstreamError::NotAWallet { .. }));
        assert_eq!(is, refused, "{info}: {:?}", got.error);
    }
}

/// The head is one endpoint's, the lists are asked for there first: one that has none must not end
/// the read while another has them.
#[tokio::test(start_paused = true)]
async fn a_node_without_lists_next_to_a_full_one_ends_no_read() {
    for without in 0..2 {
        let mut chain = Chain::new(10_000);
        for slot in 0..50 {
            chain.add(100 + slot * 100, &[WALLET]);
        }
        let mut nodes = vec![Ways::default(), Ways::default()];
        nodes[without].without = Some("getSignaturesForAddress");
        let net = Net::new(chain, nodes);
        let source = source_with(&net, 2, 10);
        for round in 0..8 {
            let got = read(&source, all()).await;
            assert_eq!(got.error, None, "node {without} has no lists, round {round}");
            got.is(truth(&net, &[WALLET], 0, 10_000));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_list_no_token_accounts_still_give_the_wallets_own() {
    let mut chain = Chain::new(1000);
    chain.add(5, &[WALLET]);
    let ways = Ways { lists_token_accounts: false, ..Ways::default() };
    let net = Net::new(chain, vec![ways]);
    let got = read(&source_with(&net, 1, 10), all()).await;
    assert_eq!(got.error, None);
    got.is(truth(&net, &[WALLET], 0, 1000));
}

#[tokio::test(start_paused = true)]
async fn a_next_that_is_dropped_loses_nothing_and_a_dropped_reader_asks_nothing() {
    let (chain, keys) = busy_chain(800, 9);
    let net = Net::new(chain, vec![Ways::default()]);
    let source = source_with(&net, 1, 10);
    let mut reader = source.read(all());
    let mut got = Got::default();
    let mut impatience = 0;
    loop {
        impatience += 1;
        let wait = Duration::from_millis(30 + impatience % 50);
        match tokio::time::timeout(wait, reader.next()).await {
            Err(_) => {}
            Ok(chunk) => match chunk.unwrap() {
                Some(chunk) => got.take(chunk),
                None => break,
            },
        }
    }
    got.is(truth(&net, &keys, 0, Height::MAX));

    let mut reader = source.read(all());
    reader.next().await.unwrap();
    drop(reader);
    let before = net.requests();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(net.requests(), before);
}

/// Without the newest hash, a reorg during the read goes unnoticed.
#[tokio::test(start_paused = true)]
async fn a_null_for_the_newest_hash_is_asked_for_again() {
    for nulls in 0..=3 {
        let mut chain = Chain::new(1000);
        chain.add(5, &[WALLET]);
        let ways = Ways { null_tips: Some(nulls), hash_salt: 7, ..Ways::default() };
        let net = Net::new(chain, vec![ways]);
        let chunk = source_with(&net, 1, 10).read(all()).next().await.unwrap().unwrap();
        assert_eq!(chunk.tip, Some(Tip { height: 1000, hash: [7; 32] }), "{nulls} nulls");
        assert_eq!(net.calls("getLatestBlockhash"), nulls + 1);
    }
}

/// A wallet that rested for longer than nodes keep blocks is read on.
#[tokio::test(start_paused = true)]
async fn a_block_that_no_node_keeps_says_nothing_of_its_hash() {
    let mut chain = Chain::new(1000);
    chain.add(5, &[WALLET]);
    let ways = Ways { first_block: 6, ..Ways::default() };
    let source = source_with(&Net::new(chain, vec![ways; 2]), 2, 10);
    assert_eq!(source.check_hash(5, [1; 32], &lane()).await, Ok(HashCheck::Gone));
}

#[tokio::test(start_paused = true)]
async fn a_hash_differs_only_when_two_nodes_agree() {
    let check = async |salts: &[u8]| {
        let mut chain = Chain::new(1000);
        chain.add(5, &[WALLET]);
        let nodes = salts.iter().map(|salt| Ways { hash_salt: *salt, ..Ways::default() });
        let source = source_with(&Net::new(chain, nodes.collect()), salts.len(), 10);
        assert_eq!(source.check_hash(6, [1; 32], &lane()).await.unwrap(), HashCheck::Gone);
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
