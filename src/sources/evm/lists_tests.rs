//! Runs each lister on the model, over random histories, caps, lag and faults: it must find exactly
//! what the chain of the model holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::alchemy::AlchemyLister;
use super::busy_fault::BusyFault;
use super::discovery::{Candidate, Discovery, Window};
use super::explorer::ExplorerLister;
use super::explorer_wire::ExplorerList;
use super::list_row::{ListRow, What, bare_row};
use super::lister::Lister;
use super::lists_model::{Model, ModelTx, POOL, ROUTER, SETTLEMENT, WALLET, Ways, subject};
use super::portal::PortalLister;
use crate::decode::evm::{Account, NativeMove, Word};
use crate::domain::{Doubts, Height, Units, UnixSeconds};
use crate::rpc::{EndpointId, UpstreamError};
use SaleKind::{Approval, Buy, Failed, Filled, Poison, Sell, Settled, Spam};

/// Xorshift: the same history for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SaleKind {
    Buy,
    Sell,
    Filled,
    Settled,
    Spam,
    Poison,
    Failed,
    Approval,
}

fn tx(block: Height, index: u32, kind: SaleKind, amount: u64) -> ModelTx {
    let stranger: Account = [0x55; 20];
    let (from, to, value) = match kind {
        Buy => (WALLET, ROUTER, amount),
        Sell | Failed | Approval => (WALLET, ROUTER, 0),
        Filled | Spam | Poison => (stranger, ROUTER, 0),
        Settled => (stranger, SETTLEMENT, 0),
    };
    let tokens = match kind {
        Buy => vec![(ROUTER, POOL, 3), (POOL, WALLET, amount)],
        Sell | Failed => vec![(WALLET, POOL, amount), (POOL, ROUTER, 3)],
        Filled => vec![(WALLET, POOL, amount), (POOL, WALLET, 5)],
        Settled => vec![(SETTLEMENT, WALLET, amount)],
        Spam => vec![(stranger, WALLET, amount), (stranger, POOL, amount)],
        Poison => vec![(WALLET, stranger, 0)],
        Approval => vec![],
    };
    let calls = match kind {
        Buy => vec![(ROUTER, WALLET, 1), (ROUTER, WALLET, 1), (ROUTER, POOL, 2)],
        Sell | Failed => vec![(ROUTER, WALLET, amount)],
        Filled | Settled | Spam | Poison | Approval => vec![],
    };
    ModelTx { block, index, from, to, value, failed: kind == Failed, tokens, calls }
}

fn history(dice: &mut Dice, count: u64, head: Height) -> Vec<(ModelTx, SaleKind)> {
    let kinds = [Buy, Sell, Filled, Settled, Spam, Poison, Failed, Approval];
    let mut all = BTreeMap::new();
    for _ in 0..count {
        let block = if dice.roll(3) == 0 { head / 2 } else { dice.roll(head + 1) };
        let index = u32::try_from(dice.roll(40)).unwrap();
        let kind = kinds[usize::try_from(dice.roll(8)).unwrap()];
        let amount = dice.roll(1_000) + 1;
        all.insert((block, index), (tx(block, index, kind, amount), kind));
    }
    all.into_values().collect()
}

/// The transactions that must be found, by hash, and the number of those that may only be counted.
fn expected(
    all: &[(ModelTx, SaleKind)],
    (low, high): (Height, Height),
) -> (BTreeMap<Word, ModelTx>, usize) {
    let (mut trades, mut spam) = (BTreeMap::new(), 0);
    for (tx, kind) in all.iter().filter(|(tx, _)| (low..=high).contains(&tx.block)) {
        match kind {
            Buy | Sell | Filled | Settled => {
                trades.insert(tx.hash(), tx.clone());
            }
            Spam => spam += 1,
            Poison | Failed | Approval => {}
        }
    }
    (trades, spam)
}

fn contiguous(windows: &[Window], low: Height, high: Height) {
    let mut top = Some(high);
    for window in windows {
        assert_eq!(Some(window.high), top, "one below the other");
        assert!(window.low <= window.high);
        let within = |found: &Candidate| (window.low..=window.high).contains(&found.block);
        assert!(window.found.iter().all(within));
        let places: Vec<_> = window.found.iter().map(|f| (f.block, f.index)).collect();
        assert!(places.is_sorted_by(|a, b| a >= b), "newest first");
        top = window.low.checked_sub(1);
    }
    assert_eq!(top, low.checked_sub(1), "down to the lowest");
}

#[track_caller]
pub(super) fn check(
    windows: &[Window],
    all: &[(ModelTx, SaleKind)],
    (low, high): (Height, Height),
    has_calls: bool,
) {
    contiguous(windows, low, high);
    let (trades, spam_expected) = expected(all, (low, high));
    let (mut found, mut spam) = (BTreeMap::new(), 0);
    for candidate in windows.iter().flat_map(|window| &window.found) {
        // Marks of failure are looked up where a page holds several of them alone.
        if all.iter().any(|(tx, _)| tx.failed && tx.hash() == candidate.hash) {
            continue;
        }
        // Lists without calls may hide that a contract wallet gave something.
        if !has_calls && !trades.contains_key(&candidate.hash) {
            assert_eq!(candidate.sent, None);
            spam += 1;
            continue;
        }
        assert!(found.insert(candidate.hash, candidate).is_none(), "no candidate twice");
    }
    let hashes = |of: Vec<&Word>| of.into_iter().map(hex::encode).collect::<Vec<_>>();
    assert_eq!(hashes(found.keys().collect()), hashes(trades.keys().collect()));
    spam += windows.iter().map(|window| window.skipped).sum::<usize>();
    assert_eq!(spam, spam_expected);
    for (hash, candidate) in found {
        let tx = &trades[&hash];
        assert_eq!(candidate.block, tx.block);
        assert!(candidate.index.is_none_or(|index| index == tx.index));
        assert!(candidate.time.is_some());
        assert!(has_calls || candidate.calls.is_none(), "no source lists calls");
        if let Some(calls) = &candidate.calls {
            let mine = |from: &Account, to: &Account| *from == WALLET || *to == WALLET;
            let mut listed: Vec<NativeMove> =
                calls.iter().filter(|c| mine(&c.from, &c.to)).copied().collect();
            let mut real: Vec<NativeMove> = tx
                .calls
                .iter()
                .filter(|(from, to, _)| mine(from, to))
                .map(|(from, to, v)| NativeMove { from: *from, to: *to, value: Units::from(*v) })
                .collect();
            let key = |call: &NativeMove| (call.from, call.to, call.value);
            listed.sort_by_key(key);
            real.sort_by_key(key);
            assert_eq!(listed, real);
        }
        if let Some(whole) = &candidate.whole {
            assert_eq!((whole.block, whole.index, whole.from), (tx.block, tx.index, tx.from));
            assert_eq!((whole.to, whole.value), (Some(tx.to), Units::from(tx.value)));
            assert_eq!(whole.logs.len(), tx.tokens.len());
        }
    }
}

/// The account lists of the model's one endpoint, down from a height.
pub(super) fn explorer(model: &Arc<Model>, high: Height) -> ExplorerLister {
    ExplorerLister::new(model.client(&["one"]), (0, high))
}

impl Lister {
    pub(super) fn of_model(
        way: Discovery,
        model: &Arc<Model>,
        hosts: &[&str],
        range: (Height, Height),
    ) -> Self {
        let client = model.client(hosts);
        match way {
            Discovery::Explorer => Self::Explorer(Box::new(ExplorerLister::new(client, range))),
            Discovery::Alchemy => Self::Alchemy(Box::new(AlchemyLister::new(client, range))),
            Discovery::Portal => Self::Portal(Box::new(PortalLister::new(client, range, 3))),
            Discovery::Logs => panic!("the model has no logs"),
        }
    }

    /// Reads all windows; repeats after transient errors, as the reader does.
    pub(super) async fn all(&mut self) -> Vec<Window> {
        let (mut windows, mut errors) = (Vec::new(), 0);
        loop {
            match self.next().await {
                Ok(Some(window)) => windows.push(window),
                Ok(None) => return windows,
                Err(error) => {
                    errors += 1;
                    assert!(!error.is_final() && errors < 50, "{error}");
                }
            }
        }
    }
}

pub(super) async fn read_all(way: Discovery, model: &Arc<Model>, high: Height) -> Vec<Window> {
    Lister::of_model(way, model, &["one"], (0, high)).all().await
}

/// Blocks of the chain above the heights that are read, as an index may lack the newest blocks.
const ABOVE: u64 = 100;

async fn run(way: Discovery, seed: u64) {
    let dice = &mut Dice(seed * 7_919 + 1);
    let head = dice.roll(400) + 20;
    let count = dice.roll(120);
    let all = history(dice, count, head);
    let (low, high) = (dice.roll(head / 2), head - dice.roll(head / 4 + 1));
    let ways = Ways {
        cap: usize::try_from(dice.roll(30)).unwrap() + 1,
        blocks: usize::try_from(dice.roll(12)).unwrap() + 1,
        trouble: usize::try_from(dice.roll(4) * 3).unwrap(),
        has_calls: dice.roll(4) > 0,
        ..Ways::default()
    };
    let has_calls = ways.has_calls;
    let txs = all.iter().map(|(tx, _)| tx.clone()).collect();
    let model = Model::new(txs, head + ABOVE, ways);
    let windows = Lister::of_model(way, &model, &["one"], (low, high)).all().await;
    check(&windows, &all, (low, high), has_calls);
    let shows_none = |found: &Candidate| found.calls.as_ref().is_some_and(Vec::is_empty);
    let mut found = windows.iter().flat_map(|window| &window.found);
    assert!(
        way != Discovery::Alchemy || !found.any(shows_none),
        "no list shows that there is no call"
    );
}

#[tokio::test(start_paused = true)]
async fn the_explorer_returns_what_the_chain_holds() {
    for seed in 1..100 {
        run(Discovery::Explorer, seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn asset_transfers_return_what_the_chain_holds() {
    for seed in 1..100 {
        run(Discovery::Alchemy, seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_gateway_returns_what_the_chain_holds() {
    for seed in 1..100 {
        run(Discovery::Portal, seed).await;
    }
}

pub(super) fn world(
    kind: SaleKind,
    blocks: impl Iterator<Item = Height>,
) -> Vec<(ModelTx, SaleKind)> {
    blocks.map(|block| (tx(block, 0, kind, 9), kind)).collect()
}

pub(super) fn model(all: &[(ModelTx, SaleKind)], head: Height, ways: Ways) -> Arc<Model> {
    Model::new(all.iter().map(|(tx, _)| tx.clone()).collect(), head, ways)
}

/// An index that lags behind another one never leaves a hole.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_lags_is_not_believed_above_its_head() {
    for way in [Discovery::Explorer, Discovery::Portal] {
        let all = world(Sell, (0..100).map(|at| at * 10));
        let lag = HashMap::from([("two".to_owned(), 300)]);
        let model = model(&all, 1_000, Ways { lag, ..Ways::default() });
        let windows = Lister::of_model(way, &model, &["two", "one"], (0, 995)).all().await;
        check(&windows, &all, (0, 995), true);
    }
}

#[tokio::test(start_paused = true)]
async fn each_reports_its_own_head() {
    let lag = HashMap::from([("one".to_owned(), 30)]);
    let model = model(&[], 1_000, Ways { lag, ..Ways::default() });
    // The head of account lists is below their newest rows.
    for (way, head) in [(Discovery::Explorer, 969), (Discovery::Portal, 970)] {
        let mut lister = Lister::of_model(way, &model, &["one"], (0, 1_000));
        assert_eq!(lister.head().await, Ok(Some(head)));
    }
}

/// Below its first block the gateway covers nothing; the next way takes over there.
#[tokio::test(start_paused = true)]
async fn a_gateway_without_the_oldest_blocks_says_so() {
    let all = world(Sell, (0..100).map(|at| at * 10));
    let model = model(&all, 1_000, Ways { first: 405, ..Ways::default() });
    let mut lister = Lister::of_model(Discovery::Portal, &model, &["one"], (0, 1_000));
    let window = lister.next().await.unwrap().unwrap();
    assert_eq!(window.doubts, Doubts::NONE, "its refusal said nothing about traces");
    check(&[window], &all, (405, 1_000), true);
    assert_eq!(lister.next().await, Err(UpstreamError::HistoryCut { first: 405 }));
}

/// 20,000 spam transfers give no candidate, and cost no calls but those for the pages of the list.
#[tokio::test(start_paused = true)]
async fn a_flood_of_spam_costs_no_candidate() {
    let mut all = world(Spam, 1..=20_000);
    all.extend(world(Sell, (1..=20).map(|at| 200_000 + at)));
    for way in [Discovery::Explorer, Discovery::Alchemy, Discovery::Portal] {
        let ways = Ways { cap: 2_000, blocks: 4_000, ..Ways::default() };
        let model = model(&all, 300_000 + ABOVE, ways);
        let windows = read_all(way, &model, 300_000).await;
        check(&windows, &all, (0, 300_000), true);
        let sent = model.sent.load(Ordering::Relaxed);
        assert!(sent < 260, "{way:?}: {sent} requests");
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_wallet_is_read_with_few_requests() {
    let all = world(Sell, [10, 20, 30_000].into_iter());
    for (way, most) in [(Discovery::Explorer, 12), (Discovery::Alchemy, 7), (Discovery::Portal, 3)]
    {
        let model = model(&all, 40_000 + ABOVE, Ways::default());
        let mut lister = Lister::of_model(way, &model, &["one"], (0, 40_000));
        // The height of an index is queried first, once per read.
        if let Lister::Explorer(lister) = &lister {
            lister.head().await.unwrap();
        }
        let looks = model.sent.load(Ordering::Relaxed);
        let windows = lister.all().await;
        check(&windows, &all, (0, 40_000), true);
        let sent = model.sent.load(Ordering::Relaxed) - looks;
        assert!(looks <= 13 && sent <= most, "{way:?}: {sent} requests after {looks}");
    }
}

#[tokio::test(start_paused = true)]
async fn times_come_with_the_rows() {
    let all = world(Buy, std::iter::once(77));
    for way in [Discovery::Explorer, Discovery::Portal] {
        let model = model(&all, 100 + ABOVE, Ways::default());
        let windows = read_all(way, &model, 100).await;
        let found = windows.into_iter().find_map(|mut window| window.found.pop()).unwrap();
        assert_eq!(found.time, Some(UnixSeconds(1_700_000_077)));
        assert_eq!((found.sent, found.whole.is_some()), (Some(true), way == Discovery::Portal));
    }
}

/// Issue 16, 3: a list of calls is refused for a while, or always.
#[tokio::test(start_paused = true)]
async fn a_refused_list_of_calls_is_asked_again_and_then_in_doubt() {
    let all = world(Sell, (1..=50).map(|at| at * 10));
    for (refusals, doubts) in [(3, Doubts::NONE), (usize::MAX, Doubts::INNER_CALLS)] {
        let ways = Ways { refuses_calls: refusals, ..Ways::default() };
        let model = model(&all, 1_000 + ABOVE, ways);
        for _ in 0..4 {
            let windows = read_all(Discovery::Explorer, &model, 1_000).await;
            check(&windows, &all, (0, 1_000), doubts.is_empty());
            assert!(windows.iter().all(|window| window.doubts == doubts), "{refusals}");
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        // A refusal does not prove that the index has no calls.
        assert!(!model.abilities.has_no_calls(Discovery::Explorer));
    }
}

/// That an index or a gateway has no calls is known after several proper answers.
#[tokio::test(start_paused = true)]
async fn what_follows_no_calls_is_known_after_some_answers() {
    let all = world(Buy, [10, 20].into_iter());
    for way in [Discovery::Explorer, Discovery::Portal] {
        let ways = Ways { has_calls: false, lists_no_calls_on: Some("one"), ..Ways::default() };
        let model = model(&all, 1_000 + ABOVE, ways);
        for known in [false, false, true] {
            let windows = read_all(way, &model, 1_000).await;
            assert!(windows.iter().all(|window| window.doubts == Doubts::INNER_CALLS));
            assert_eq!(model.abilities.has_no_calls(way), known, "{way:?}");
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
    }
}

/// Issue 16, 5: a page that stops early, or is empty, does not end the list.
#[tokio::test(start_paused = true)]
async fn one_short_or_empty_page_ends_no_list() {
    let all = world(Sell, (1..=50).map(|at| at * 10));
    for every in 2..12 {
        for (cap, kept) in [(1_000, 0), (1_000, 1), (1_000, 5), (20, 1), (30, 1), (40, 1)] {
            let ways = Ways { short_every: every, cap, kept, ..Ways::default() };
            let model = model(&all, 1_000 + ABOVE, ways);
            let windows = read_all(Discovery::Explorer, &model, 1_000).await;
            check(&windows, &all, (0, 1_000), true);
        }
    }
}

/// Each page but the first ends at its first row, which is known by then.
#[tokio::test(start_paused = true)]
async fn lists_that_end_at_what_is_known_are_held_against_their_other_end() {
    let all = world(Sell, (1..=50).map(|at| at * 10));
    for (ends_below, expected) in [(1_000, false), (0, true)] {
        let model = model(&all, 1_000 + ABOVE, Ways { ends_below, cap: 20, ..Ways::default() });
        let mut lister = explorer(&model, 1_000);
        let ends = loop {
            match lister.next().await {
                Ok(Some(_)) => {}
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        assert_eq!(ends, expected, "{ends_below}");
    }
}

/// Issue 16, 4: the lists are behind the head that the same index reports.
#[tokio::test(start_paused = true)]
async fn how_far_lists_have_come_is_learned_from_the_lists() {
    for list_lag in [0, 6, 70, 500] {
        let model = model(&[], 10_000, Ways { list_lag, ..Ways::default() });
        let lister = explorer(&model, 10_000);
        assert_eq!(lister.head().await, Ok(Some(10_000 - list_lag - 1)));
    }
}

/// A list that lags by hours shows old rows of busy accounts. So do little used accounts, whose
/// list may be as current as the index reports.
#[tokio::test(start_paused = true)]
async fn old_rows_of_busy_accounts_show_a_list_far_behind_and_those_of_quiet_ones_do_not() {
    let (head, list_lag) = (1_000_000, 5_000);
    let by_head = head - subject().chain.index_lag;
    for (busy_apart, reach) in [(1, head - list_lag - 1), (10_000, by_head)] {
        let model = model(&[], head, Ways { list_lag, busy_apart, ..Ways::default() });
        let lister = explorer(&model, head);
        assert_eq!(lister.head().await, Ok(Some(reach)), "rows {busy_apart} blocks apart");
    }
}

/// An index of 20,000 blocks, one of whose lists ends in the middle of the sales.
pub(super) fn with_list_behind(action: &'static str, ways: Ways) -> Arc<Model> {
    let model = model(&sales(), 20_000, ways);
    model.fall(action, FAR);
    model
}

pub(super) const FAR: u64 = 15_000;
/// The height to which the lists are known to reach, below their newest rows.
pub(super) const NEAR_HEAD: Height = 19_999;
pub(super) const FAR_BEHIND: Height = 4_999;

pub(super) fn sales() -> Vec<(ModelTx, SaleKind)> {
    world(Sell, (1..1_000).map(|at| at * 10))
}

/// Reads down from the height that the lists are found to have reached.
pub(super) async fn read_from_head(model: &Arc<Model>) -> (Height, Vec<Window>) {
    let mut lister = explorer(model, model.head);
    let high = lister.head().await.unwrap().unwrap();
    lister.set_high(high);
    (high, Lister::Explorer(Box::new(lister)).all().await)
}

#[track_caller]
pub(super) fn check_sales(high: Height, windows: &[Window], shows_calls: bool) {
    check(windows, &sales(), (0, high), shows_calls);
    let doubts = if shows_calls { Doubts::NONE } else { Doubts::INNER_CALLS };
    assert!(windows.iter().all(|window| window.doubts == doubts));
    let mut found = windows.iter().flat_map(|window| &window.found);
    assert!(found.all(|found| found.calls.is_some() == shows_calls));
}

/// Only the calls of the wrapped coin show how far the list of calls has come. Without them, that
/// list may lag hours behind the other lists, and lack the payments of sales.
#[tokio::test(start_paused = true)]
async fn calls_that_do_not_show_how_far_they_have_come_are_not_known() {
    for fault in [BusyFault::TooLarge, BusyFault::Processing, BusyFault::Cut] {
        let busy_fault = Some(("txlistinternal", fault, usize::MAX));
        let ways = Ways { busy_fault, ..Ways::default() };
        let model = with_list_behind("txlistinternal", ways);
        let (high, windows) = read_from_head(&model).await;
        assert_eq!(high, NEAR_HEAD, "as far as the other lists");
        check_sales(high, &windows, false);
        // Another read covers heights that were checked before.
        let windows = read_all(Discovery::Explorer, &model, high).await;
        check_sales(high, &windows, false);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_refused_for_a_moment_are_asked_for_again() {
    let faults = [
        (BusyFault::TooLargeInAll, usize::MAX, 0),
        (BusyFault::TooLarge, 3, 0),
        (BusyFault::Processing, 3, subject().chain.index_lag),
        // The fault lasts longer than the check, so the pages before the next one do not count.
        (BusyFault::Processing, 4, 0),
    ];
    for (fault, answers, below) in faults {
        let busy_fault = Some(("txlistinternal", fault, answers));
        let ways = Ways { busy_fault, ..Ways::default() };
        let (high, windows) = read_from_head(&model(&sales(), 20_000, ways)).await;
        assert_eq!(high, NEAR_HEAD - below);
        check_sales(high, &windows, true);
    }
}

/// A list that lags by hours shows old rows, as does the list of a little used account.
#[tokio::test(start_paused = true)]
async fn old_rows_are_not_passed_over_where_nothing_shows_how_much_an_account_is_used() {
    for action in ["txlist", "tokentx", "txlistinternal"] {
        for answers in [1, usize::MAX] {
            let busy_fault = Some((action, BusyFault::Cut, answers));
            let model = with_list_behind(action, Ways { busy_fault, ..Ways::default() });
            let (high, windows) = read_from_head(&model).await;
            let is_open = action == "txlistinternal" && answers > 1;
            let reach = if is_open { NEAR_HEAD } else { FAR_BEHIND };
            assert_eq!(high, reach, "{action}, {answers}");
            check_sales(high, &windows, !is_open);
        }
    }
}

/// An earlier read had seen the list at a greater height, so this read did not check it.
#[tokio::test(start_paused = true)]
async fn a_list_that_falls_back_alone_between_two_reads_is_noticed() {
    for action in ["txlist", "tokentx", "txlistinternal"] {
        let model = model(&sales(), 20_000, Ways::default());
        let (high, windows) = read_from_head(&model).await;
        check_sales(high, &windows, true);
        model.fall(action, FAR);
        let read = Lister::of_model(Discovery::Explorer, &model, &["one"], (0, high)).next().await;
        assert!(matches!(read, Err(UpstreamError::Unavailable { .. })), "{action}: {read:?}");
        model.fall(action, 0);
        tokio::time::sleep(Duration::from_secs(121)).await;
        let windows = read_all(Discovery::Explorer, &model, high).await;
        check_sales(high, &windows, true);
    }
}

/// Issue 16, 5: some of several servers behind one address lag.
#[tokio::test(start_paused = true)]
async fn an_index_counts_as_far_as_the_server_of_it_that_is_farthest_behind() {
    for every in [2, 3] {
        let ways = Ways { behind_every: every, behind: 70, ..Ways::default() };
        let model = model(&[], 10_000, ways);
        let lister = explorer(&model, 10_000);
        assert_eq!(lister.head().await, Ok(Some(10_000 - 70 - 1)), "every {every}");
    }
}

/// The same holds for nodes, by the heads that they reported recently; older heads are forgotten.
#[tokio::test(start_paused = true)]
async fn asset_transfers_count_as_far_as_the_server_that_is_farthest_behind() {
    let all = world(Sell, [10, 20, 900].into_iter());
    let model = model(&all, 1_000, Ways::default());
    for head in [1_000, 930] {
        model.abilities.node_reach.note(EndpointId(0), (), &[head]);
    }
    for (high, is_read) in [(931, false), (930, true)] {
        let read = Lister::of_model(Discovery::Alchemy, &model, &["one"], (0, high)).next().await;
        assert_eq!(read.is_ok(), is_read, "up to {high}");
    }
    tokio::time::sleep(Duration::from_secs(121)).await;
    let windows = read_all(Discovery::Alchemy, &model, 931).await;
    check(&windows, &all, (0, 931), true);
}

/// Such an index may have no token movements either.
#[tokio::test(start_paused = true)]
async fn an_index_that_marks_all_transactions_as_failed_is_not_believed() {
    for busy_failed in [false, true] {
        let model =
            model(&world(Failed, [10].into_iter()), 100, Ways { busy_failed, ..Ways::default() });
        let windows = read_all(Discovery::Explorer, &model, 50).await;
        let found: usize = windows.iter().map(|window| window.found.len()).sum();
        assert_eq!(found, usize::from(busy_failed));
    }
}

/// It has shown that others of this wallet did not fail; a page of failures alone is asked about.
#[tokio::test(start_paused = true)]
async fn an_index_that_comes_to_mark_all_transactions_as_failed_is_not_believed() {
    for (blocks, expected) in [(&[10_u64][..], 0), (&[10, 20], 2)] {
        let model = model(&world(Failed, blocks.iter().copied()), 100, Ways::default());
        let what = What::Outer { from: WALLET, to: None, value: Units::ZERO, selector: None };
        let shown = [ListRow { what, ..bare_row(5, 1) }];
        model.abilities.note_page((EndpointId(0), ExplorerList::Transactions), &shown);
        let windows = read_all(Discovery::Explorer, &model, 50).await;
        let found: usize = windows.iter().map(|window| window.found.len()).sum();
        assert_eq!(found, expected);
    }
}
