//! A keeper's fill into accounts that another authority has closed since, from the node to the rows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use blotter::decode::solana::DECODER_VERSION;
use blotter::domain::{Address, ChainId, Clock, Height, Row, Side, Wallet};
use blotter::history::{End, Extent, History, HistoryLimits, HistoryParts, Tasks, WalkRequest};
use blotter::registry::Registry;
use blotter::rpc::{EndpointConfig, Pool, PoolLimits};
use blotter::sources::{SolanaLimits, SolanaSource, Source};
use blotter::store::{Chunk, Store, StoreOptions, WalletPatch};
use serde_json::Value;

use crate::decode::RAYDIUM;
use crate::support::paused::{Disk, TestClock};
use crate::support::solana::{Tx, key};
use crate::support::solana_node::{Chain, GENESIS, Net, Ways};
use crate::support::trades::chunk;
use crate::support::world::{World, finish};

/// The keeper trades as the delegate of the wallet's account; the message names its accounts alone.
fn filled() -> Tx {
    filled_by("keeper")
}

fn filled_by(trader: &str) -> Tx {
    let mut tx = Tx::new(trader);
    tx.account("w bonk", "BONK", "w", 100).account("p bonk", "BONK", "pool", 0);
    tx.account("w usdc", "USDC", "w", 0).account("p usdc", "USDC", "pool", 90);
    tx.call(RAYDIUM, &["w bonk", "p bonk", "p usdc", "w usdc", trader, "pool"], &[9]);
    tx.transfer(2, "w bonk", "p bonk", trader, 50);
    tx.transfer(2, "p usdc", "w usdc", "pool", 45);
    tx
}

/// The wallet opened both accounts long before.
fn opened() -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 100).account("w usdc", "USDC", "w", 0);
    tx
}

/// The wallet buys a coin by itself, with accounts that name no others.
fn bought(coin: &str) -> Tx {
    let (coins, dollars) = (format!("w {coin}"), format!("w usdt for {coin}"));
    let mut tx = Tx::new("w");
    tx.account(&coins, coin, "w", 0).account("p coin", coin, "pool", 90);
    tx.account(&dollars, "USDT", "w", 100).account("p usdt", "USDT", "pool", 0);
    tx.call(RAYDIUM, &[&dollars, "p usdt", "p coin", &coins, "w", "pool"], &[9]);
    tx.transfer(2, &dollars, "p usdt", "w", 50);
    tx.transfer(2, "p coin", &coins, "pool", 45);
    tx
}

/// What such a purchase names.
fn buyer(coin: &str) -> [[u8; 32]; 3] {
    [key("w"), key(&format!("w {coin}")), key(&format!("w usdt for {coin}"))]
}

/// Only the block shows where it stands.
fn unplaced(tx: &Tx) -> Value {
    let mut shown = tx.json();
    shown.as_object_mut().unwrap().remove("transactionIndex");
    shown
}

fn history(net: &Arc<Net>) -> History {
    history_on(net, &Disk::default())
}

fn history_on(net: &Arc<Net>, disk: &Disk) -> History {
    let clock: Arc<dyn Clock> = TestClock::start();
    let transport: Arc<Net> = Arc::clone(net);
    let endpoint =
        EndpointConfig { batch: Some(10), ..EndpointConfig::new("http://node0/".to_owned()) };
    let pool = Pool::new(vec![endpoint], transport, PoolLimits::default(), Arc::clone(&clock), 3);
    let genesis = Some(GENESIS.to_owned());
    let source = Source::Solana(SolanaSource::new(pool, genesis, SolanaLimits::default()));
    let options = StoreOptions { cache_bytes: 4 << 20 };
    History::new(HistoryParts {
        store: Store::in_step(disk.clone(), options).unwrap(),
        registry: Arc::new(Registry::embedded().unwrap()),
        sources: HashMap::from([(ChainId(1), source)]),
        candles: None,
        clock,
        limits: HistoryLimits::default(),
        tasks: Tasks::new(),
    })
}

#[tokio::test(start_paused = true)]
async fn a_fill_into_accounts_that_another_authority_closed_has_its_rows() {
    let (wallet, accounts) = (key("w"), [key("w bonk"), key("w usdc")]);
    let mut chain = Chain::new(10_000);
    chain.add(500, &[wallet, accounts[0], accounts[1]]).shows(opened().json());
    chain.add(700, &accounts).shows(filled().json());
    for account in accounts {
        chain.add(800, &[[5; 32], account]);
    }
    for slot in 0..400 {
        chain.add(2000 + slot, &[wallet]);
    }
    let net = Net::new(chain, vec![Ways::default()]);
    let history = history(&net);
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(wallet) };
    let walk = || history.walk(World::request(wallet, Extent::All)).unwrap();
    let (_, end) = finish(&mut walk()).await;
    assert!(end.complete, "{end:?}");
    let (rows, end) = finish(&mut walk()).await;
    assert!(end.complete, "{end:?}");
    let got: Vec<_> = rows.iter().map(|row| (row.trade.key.height, row.trade.side)).collect();
    assert_eq!(got, [(700, Side::Sell), (700, Side::Buy)]);
}

/// Its block at slot 3,000 holds these purchases and the late fill, behind a stranger's transaction where
/// that is in the same slot.
fn chain_with_a_late_fill(coins: &[&str], fill_at: usize, stranger: Height) -> Chain {
    let (wallet, accounts) = (key("w"), [key("w bonk"), key("w usdc")]);
    let mut chain = Chain::new(10_000);
    chain.add(500, &[wallet, accounts[0], accounts[1]]).shows(opened().json());
    for slot in 0..600 {
        chain.add(1_000 + slot, &[wallet]);
    }
    chain.add(stranger, &[[9; 32]]);
    for place in 0..=coins.len() {
        if place == fill_at {
            chain.add(3_000, &accounts).shows(unplaced(&filled()));
        }
        if let Some(coin) = coins.get(place) {
            chain.add(3_000, &buyer(coin)).shows(unplaced(&bought(coin)));
        }
    }
    for account in accounts {
        chain.add(3_500, &[[5; 32], account]);
    }
    chain
}

/// What the wallet of such a chain traded, the newest first.
async fn traded_with_a_late_fill(coins: &[&str], fill_at: usize, stranger: Height) -> Vec<Address> {
    let chain = chain_with_a_late_fill(coins, fill_at, stranger);
    let history = history(&Net::new(chain, vec![Ways::default()]));
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(key("w")) };
    let (rows, end) = read(&history, wallet).await;
    assert!(end.complete, "{end:?}");
    assert_eq!(rows.len(), 2 + 2 * coins.len());
    rows.iter().map(|row| row.trade.mint).collect()
}

fn place(mints: &[Address], coin: &str) -> usize {
    mints.iter().position(|mint| *mint == Address::Solana(key(coin))).unwrap()
}

/// Two trades of the wallet in the same block were stored before it.
#[tokio::test(start_paused = true)]
async fn a_late_fill_has_its_place_in_its_block() {
    let mints = traded_with_a_late_fill(&["WIF", "JUP"], 2, 3_000).await;
    let [fill, jup, wif] = ["BONK", "JUP", "WIF"].map(|coin| place(&mints, coin));
    assert!(fill < jup && jup < wif, "{mints:?}");
}

/// The trade that was stored before it had been the wallet's only one of its block, and stands without
/// a position.
#[tokio::test(start_paused = true)]
async fn a_late_fill_is_ordered_below_a_single_trade_that_followed_it() {
    let mints = traded_with_a_late_fill(&["JUP"], 0, 3_000).await;
    assert!(place(&mints, "JUP") < place(&mints, "BONK"), "{mints:?}");
}

/// The fill is the block's first transaction: its position is the same as none, and by their signatures
/// the two stand the other way round.
#[tokio::test(start_paused = true)]
async fn a_late_fill_that_is_first_in_its_block_is_ordered_below_a_single_trade() {
    let mints = traded_with_a_late_fill(&["JUP"], 0, 2_999).await;
    assert!(place(&mints, "JUP") < place(&mints, "BONK"), "{mints:?}");
}

/// It is stored, and its heights were read again since, but no account is known that shows it: the read
/// below brings it once more. The other trade of its block is given by no node by now.
#[tokio::test(start_paused = true)]
async fn a_late_fill_that_comes_once_more_leaves_its_heights_proved() {
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(key("w")) };
    let disk = Disk::default();
    let chain = || chain_with_a_late_fill(&["JUP"], 1, 2_999);
    let before = history_on(&Net::new(chain(), vec![Ways::default()]), &disk);
    let (rows, end) = read(&before, wallet).await;
    assert!(end.complete && rows.len() == 4, "{end:?}");
    before.stop();
    assert!(before.tasks().shutdown(Duration::from_secs(5)).await);
    drop(before);

    let store = Store::in_step(disk.clone(), StoreOptions { cache_bytes: 4 << 20 }).unwrap();
    let record = store.view().unwrap().wallet(&wallet).await.unwrap().unwrap();
    let (proof, top) = (record.coverage.spans()[0].proof, record.coverage.top().unwrap());
    // With the last of the coverage the accounts go.
    let forget = WalletPatch { reopen: vec![(0, top)], ..WalletPatch::default() };
    store.update_wallet(record.id, record.epoch, forget).await.unwrap();
    let trades = rows.iter().map(|row| row.trade.clone()).collect();
    let upper = Chunk {
        epoch: record.epoch,
        decoder: DECODER_VERSION,
        proof,
        ..chunk(record.id, 1_000, top, trades)
    };
    store.write_chunk(upper).await.unwrap();
    store.close().await;
    drop(store);

    let jup = rows.iter().find(|row| row.trade.mint == Address::Solana(key("JUP"))).unwrap();
    let lacks = Some(jup.trade.key.tx);
    let net = Net::new(chain(), vec![Ways { lacks, ..Ways::default() }]);
    let (again, end) = read(&history_on(&net, &disk), wallet).await;
    assert!(end.complete, "{end:?}");
    let keys = |rows: &[Row]| rows.iter().map(|row| row.trade.key).collect::<Vec<_>>();
    assert_eq!(keys(&again), keys(&rows));
    assert!(net.lists_of(key("w bonk")) > 0, "the fill came late once more");
}

/// Listed after its heights were delivered, and given by no node until later.
#[tokio::test(start_paused = true)]
async fn a_late_fill_that_no_node_gives_is_missing_until_one_does() {
    let (wallet, accounts) = (key("w"), [key("w bonk"), key("w usdc")]);
    let mut chain = Chain::new(10_000);
    chain.add(500, &[wallet, accounts[0], accounts[1]]).shows(opened().json());
    for slot in 0..600 {
        chain.add(1_000 + slot, &[wallet]);
    }
    chain.add(3_000, &accounts).shows(filled().json());
    for account in accounts {
        chain.add(3_500, &[[5; 32], account]);
    }
    let of_fill = chain.truth(&accounts, 3_000, 3_000);
    let [(_, id)] = of_fill.as_slice() else { panic!("one fill: {of_fill:?}") };
    let net = Net::new(chain, vec![Ways { lacks: Some(*id), ..Ways::default() }]);
    let history = history(&net);
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(wallet) };
    let walk = || history.walk(World::request(wallet, Extent::All)).unwrap();
    for _ in 0..3 {
        let (rows, end) = finish(&mut walk()).await;
        assert!(rows.is_empty() && !end.complete, "{end:?}");
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
    let report = history.coverage(wallet).await.unwrap().unwrap();
    let missing = report.spans.iter().flat_map(|one| &one.span.missing);
    assert_eq!(missing.collect::<Vec<_>>(), [id]);
    net.set(0, Ways::default());
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    finish(&mut walk()).await;
    let (rows, end) = finish(&mut walk()).await;
    assert!(end.complete, "{end:?}");
    assert_eq!(rows.iter().filter(|row| row.trade.key.height == 3_000).count(), 2);
}

/// Wherever a read is broken off, the next one knows what it has to look for above itself.
#[tokio::test(start_paused = true)]
async fn a_late_fill_outlives_a_restart_at_any_row() {
    let (wallet, accounts) = (key("w"), [key("w bonk"), key("w usdc")]);
    let mut chain = Chain::new(10_000);
    chain.add(500, &[wallet, accounts[0], accounts[1]]).shows(opened().json());
    for slot in 0..30 {
        chain.add(1_000 + slot, &buyer("WIF")).shows(bought("WIF").json());
    }
    chain.add(3_000, &accounts).shows(filled().json());
    for account in accounts {
        chain.add(3_500, &[[5; 32], account]);
    }
    let net = Net::new(chain, vec![Ways::default()]);
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(wallet) };
    let disk = Disk::default();
    for rows in 1..40 {
        let history = history_on(&net, &disk);
        finish(&mut history.walk(World::request(wallet, Extent::Rows(rows))).unwrap()).await;
        history.stop();
        assert!(history.tasks().shutdown(Duration::from_secs(5)).await);
    }
    let history = history_on(&net, &disk);
    let walk = || history.walk(World::request(wallet, Extent::All)).unwrap();
    finish(&mut walk()).await;
    let (rows, end) = finish(&mut walk()).await;
    assert!(end.complete, "{end:?}");
    assert_eq!(rows.len(), 62);
    assert_eq!(rows.iter().filter(|row| row.trade.key.height == 3_000).count(), 2);
}

/// A chain that lacks the only transaction that names the wallet and its accounts, or has it as well.
fn chain_of_a_fill(shows_them: Option<&Tx>) -> Chain {
    let (wallet, accounts) = (key("w"), [key("w bonk"), key("w usdc")]);
    let mut chain = Chain::new(10_000);
    for slot in 0..600 {
        chain.add(1_000 + slot, &[wallet]);
    }
    chain.add(3_000, &accounts).shows(filled().json());
    for account in accounts {
        chain.add(3_500, &[[5; 32], account]);
    }
    if let Some(tx) = shows_them {
        chain.add(500, &[wallet, accounts[0], accounts[1]]).shows(tx.json());
    }
    chain
}

/// Reads twice: what is late to the first is there in the second.
async fn read(history: &History, wallet: Wallet) -> (Vec<Row>, End) {
    finish(&mut history.walk(World::request(wallet, Extent::All)).unwrap()).await;
    finish(&mut history.walk(World::request(wallet, Extent::All)).unwrap()).await
}

/// The first read missed that transaction.
async fn read_without_the_accounts(disk: &Disk, wallet: Wallet) {
    let before = history_on(&Net::new(chain_of_a_fill(None), vec![Ways::default()]), disk);
    let (rows, end) = read(&before, wallet).await;
    assert!(rows.is_empty() && end.complete, "{end:?}");
    before.stop();
    assert!(before.tasks().shutdown(Duration::from_secs(5)).await);
}

/// A newer program has read the heights in which an older one, on the same store, finds the fill: its
/// rows are the older one's, and the newer one reads them again.
#[tokio::test(start_paused = true)]
async fn a_late_fill_is_as_old_as_the_program_that_read_it() {
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(key("w")) };
    let disk = Disk::default();
    read_without_the_accounts(&disk, wallet).await;
    let store = Store::in_step(disk.clone(), StoreOptions { cache_bytes: 4 << 20 }).unwrap();
    let record = store.view().unwrap().wallet(&wallet).await.unwrap().unwrap();
    for span in record.coverage.spans().iter().filter(|span| span.high >= 2_500) {
        let newer = Chunk {
            epoch: record.epoch,
            decoder: DECODER_VERSION + 1,
            proof: span.proof,
            ..chunk(record.id, span.low.max(2_500), span.high, vec![])
        };
        store.write_chunk(newer).await.unwrap();
    }
    store.close().await;
    drop(store);
    let opened = opened();
    let net = Net::new(chain_of_a_fill(Some(&opened)), vec![Ways::default()]);
    let history = history_on(&net, &disk);
    assert_eq!(history.repair(wallet).await.unwrap().missing, 1);
    tokio::time::sleep(Duration::from_secs(600)).await;
    let (rows, end) = read(&history, wallet).await;
    assert!(end.complete, "{end:?}");
    assert_eq!(rows.iter().filter(|row| row.trade.key.height == 3_000).count(), 2);
    let report = history.coverage(wallet).await.unwrap().unwrap();
    let decoder = |height: Height| {
        let mut spans = report.spans.iter().map(|one| &one.span);
        spans.find(|span| (span.low..=span.high).contains(&height)).unwrap().decoder
    };
    assert_eq!([2_999, 3_000, 3_001].map(decoder), [1, 0, 1].map(|by| DECODER_VERSION + by));
}

/// Two gaps with a span between them. The transaction that shows the accounts is in the lower one, which is
/// read while the upper one is open, by a reader that does not know them; the fill is in the upper one.
#[tokio::test(start_paused = true)]
async fn a_gap_above_that_is_open_is_not_closed_without_a_late_fill() {
    let (wallet, accounts) = (key("w"), [key("w bonk"), key("w usdc")]);
    let mut chain = Chain::new(10_000);
    chain.add(500, &[wallet, accounts[0], accounts[1]]).shows(opened().json());
    chain.add(11_000, &accounts).shows(filled().json());
    for account in accounts {
        chain.add(11_500, &[[5; 32], account]);
    }
    for (low, bought_at) in [(1_000, 9_900), (12_000, 19_900)] {
        for number in 0..300 {
            chain.add(low + number * 10, &[wallet]);
        }
        chain.add(bought_at, &buyer("WIF")).shows(bought("WIF").json());
    }
    let net = Net::new(chain, vec![Ways::default()]);
    let history = history(&net);
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(wallet) };
    let walk = |want| history.walk(World::request(wallet, want)).unwrap();
    let gaps = async || history.coverage(wallet).await.unwrap().unwrap().gaps;
    let mut first = walk(Extent::Rows(1));
    finish(&mut first).await;
    let resume = Some(Box::new(first.cursor()));
    drop(first);
    tokio::time::sleep(Duration::from_secs(600)).await;

    net.chain.lock().unwrap().set_head(20_000);
    finish(&mut walk(Extent::Rows(1))).await;
    let [upper, lower] = gaps().await[..] else { panic!("two gaps") };
    assert!(upper.0 <= 11_000 && 11_500 <= upper.1 && lower.0 <= 500 && 500 <= lower.1);
    let below = WalkRequest { resume, ..World::request(wallet, Extent::All) };
    finish(&mut history.walk(below).unwrap()).await;
    assert_eq!(gaps().await, [upper], "it is still open");
    finish(&mut walk(Extent::All)).await;
    let (rows, end) = finish(&mut walk(Extent::All)).await;
    assert!(end.complete, "{end:?}");
    let heights: Vec<_> = rows.iter().map(|row| row.trade.key.height).collect();
    assert_eq!(heights, [19_900, 19_900, 11_000, 11_000, 9_900, 9_900]);
}

/// The first read missed the only transaction that names the wallet and its accounts, whether that
/// is a trade or not: the audit that finds it has to bring what lies above it.
#[tokio::test(start_paused = true)]
async fn an_audit_brings_the_late_fills_of_what_a_read_missed() {
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(key("w")) };
    for (shows_them, missing) in [(opened(), 1), (filled_by("w"), 2)] {
        let disk = Disk::default();
        read_without_the_accounts(&disk, wallet).await;
        let whole = chain_of_a_fill(Some(&shows_them));
        let history = history_on(&Net::new(whole, vec![Ways::default()]), &disk);
        let repaired = history.repair(wallet).await.unwrap();
        assert_eq!((repaired.missing, repaired.unseen), (missing, 0));
        tokio::time::sleep(Duration::from_secs(600)).await;
        let (rows, end) = read(&history, wallet).await;
        assert!(end.complete, "{end:?}");
        assert_eq!(rows.len(), 2 * missing);
        assert_eq!(rows.iter().filter(|row| row.trade.key.height == 3_000).count(), 2);
        // What is stored by now is found no more: no audit reads the same heights for ever.
        assert_eq!(history.repair(wallet).await.unwrap().missing, 0);
    }
}

/// Without that list no read shows which accounts there are.
#[tokio::test(start_paused = true)]
async fn where_no_node_lists_token_accounts_no_read_is_a_proof() {
    let (wallet, accounts) = (key("w"), [key("w bonk"), key("w usdc")]);
    let mut chain = Chain::new(10_000);
    chain.add(700, &accounts).shows(filled().json());
    for slot in 0..40 {
        chain.add(1_000 + slot, &[wallet]);
    }
    let ways = Ways { lists_token_accounts: false, ..Ways::default() };
    stays_unproved(chain, ways).await;
}

/// Nothing is listed of an address, and no node says whether it exists.
#[tokio::test(start_paused = true)]
async fn where_no_node_says_whether_it_exists_an_empty_list_is_no_proof() {
    let ways = Ways { without: Some("getAccountInfo"), ..Ways::default() };
    stays_unproved(Chain::new(10_000), ways).await;
}

/// A node that does not say which blocks it keeps may have thrown old ones away.
#[tokio::test(start_paused = true)]
async fn where_no_node_says_what_it_keeps_no_read_is_a_proof() {
    let wallet = key("w");
    let mut chain = Chain::new(10_000);
    for slot in 0..40 {
        chain.add(1_000 + slot, &[wallet]);
    }
    let ways = Ways { without: Some("getFirstAvailableBlock"), ..Ways::default() };
    stays_unproved(chain, ways).await;
}

/// However often and late the wallet is asked for.
async fn stays_unproved(chain: Chain, ways: Ways) {
    let history = history(&Net::new(chain, vec![ways]));
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(key("w")) };
    for _ in 0..5 {
        let mut walk = history.walk(World::request(wallet, Extent::All)).unwrap();
        let (_, end) = finish(&mut walk).await;
        assert!(!end.complete, "{end:?}");
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
}

/// A node without `getLatestBlockhash`: the chain may replace blocks above the last row by others with
/// rows.
#[tokio::test(start_paused = true)]
async fn the_hash_that_is_kept_lies_above_what_was_read_without_rows() {
    let wallet = key("w");
    let mut chain = Chain::new(10_000);
    chain.add(1_000, &[wallet]);
    chain.add(10_000, &[[5; 32]]);
    let (net, disk) = (Net::new(chain, vec![Ways::default()]), Disk::default());
    let history = history_on(&net, &disk);
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(wallet) };
    let mut walk = history.walk(World::request(wallet, Extent::All)).unwrap();
    let (_, end) = finish(&mut walk).await;
    assert!(end.complete, "{end:?}");
    drop(walk);
    tokio::time::sleep(Duration::from_secs(1)).await;
    history.stop();
    assert!(history.tasks().shutdown(Duration::from_secs(5)).await);
    drop(history);
    let store = Store::in_step(disk, StoreOptions { cache_bytes: 4 << 20 }).unwrap();
    let view = store.view().unwrap();
    let record = view.wallet(&wallet).await.unwrap().unwrap();
    let kept = view.anchors(record.id).await.unwrap();
    assert_eq!(kept.last().map(|anchor| anchor.height), Some(10_000));
}

/// What a walk holds that began later, and left the reading time to end.
async fn count_later(history: &History, wallet: Wallet) -> usize {
    tokio::time::sleep(Duration::from_secs(600)).await;
    finish(&mut history.walk(World::request(wallet, Extent::All)).unwrap()).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let (rows, end) = finish(&mut history.walk(World::request(wallet, Extent::All)).unwrap()).await;
    assert!(end.complete, "{end:?}");
    rows.len()
}

/// The node refuses blocks for some time. Then the block whose hash is kept is another one, or missing
/// for good.
#[tokio::test(start_paused = true)]
async fn a_wallet_is_read_on_without_blocks_and_checked_once_they_are_given() {
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(key("w")) };
    for (hash_salt, no_block, cuts) in [(1, None, 1), (0, Some(10_000), 0)] {
        let ways = Ways { null_tips: Some(0), ..Ways::default() };
        let net = Net::new(Chain::new(10_000), vec![ways.clone()]);
        let goes_on = |head: Height, coin: &str| {
            let mut chain = net.chain.lock().unwrap();
            chain.add(head - 5_000, &buyer(coin)).shows(bought(coin).json());
            chain.add(head, &[[5; 32]]);
            chain.set_head(head);
        };
        goes_on(10_000, "WIF");
        let loaded = history(&net);
        let mut walk = loaded.walk(World::request(wallet, Extent::All)).unwrap();
        assert_eq!(finish(&mut walk).await.0.len(), 2);
        drop(walk);
        net.set(0, Ways { without: Some("getBlock"), hash_salt, ..ways.clone() });
        for (head, coin, rows) in [(20_000, "JUP", 4), (30_000, "BONK", 6)] {
            goes_on(head, coin);
            assert_eq!(count_later(&loaded, wallet).await, rows, "{coin}");
        }
        assert_eq!(loaded.metrics().reorganisations.get(), 0);
        net.set(0, Ways { no_block, hash_salt, ..ways });
        for (head, coin, rows) in [(40_000, "PYTH", 8), (50_000, "RAY", 10)] {
            goes_on(head, coin);
            assert_eq!(count_later(&loaded, wallet).await, rows, "{coin}");
        }
        assert_eq!(loaded.metrics().reorganisations.get(), cuts);
    }
}

/// Both trades of a slot whose block is not available: far below the head for good.
#[tokio::test(start_paused = true)]
async fn a_block_that_is_missing_for_good_hides_nothing_and_one_near_the_head_is_waited_for() {
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(key("w")) };
    for (slot, is_missing) in [(8_000, true), (9_000, false)] {
        let mut chain = Chain::new(10_000);
        chain.add(1_000, &buyer("WIF")).shows(bought("WIF").json());
        for coin in ["JUP", "BONK"] {
            chain.add(slot, &buyer(coin)).shows(unplaced(&bought(coin)));
        }
        let ways = Ways { no_block: Some(slot), ..Ways::default() };
        let net = Net::new(chain, vec![ways]);
        let history = history(&net);
        let (rows, end) = read(&history, wallet).await;
        assert_eq!((rows.len(), end.complete), (if is_missing { 6 } else { 0 }, is_missing));
        net.set(0, Ways::default());
        assert_eq!(count_later(&history, wallet).await, 6);
    }
}
