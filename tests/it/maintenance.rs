//! Copies and compaction of a store while it is read and written.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use blotter::domain::{KeyId, Position, Trade, TradeKey, TxId, UnixSeconds};
use blotter::store::{DeliveredRange, FILE_NAME, Store, StoreError, UsageUpdate, WalletId};
use tokio::task::JoinSet;

use crate::support::trades::{OPTIONS, chunk, stored, trade, wallet};

const CHUNK: u64 = 200;
const SECOND: Duration = Duration::from_secs(1);

/// The trade of a wallet at a height; one a height.
fn trade_at(height: u64) -> Trade {
    let key = TradeKey {
        time: UnixSeconds(u32::try_from(height).unwrap()),
        height,
        index: 0,
        tx: TxId::solana(&std::array::from_fn(|at| {
            u8::try_from((height >> (8 * (at % 4))) & 0xFF).unwrap()
        })),
        leg: 0,
    };
    Trade { key, ..trade(1, 1, 4) }
}

/// Loads heights below `count`, newest first as a back-fill does it.
async fn load(store: &Store, id: WalletId, count: u64, written: &AtomicU64) {
    let mut high = count;
    while high > 0 {
        let low = high.saturating_sub(CHUNK);
        let trades = (low..high).map(trade_at).collect();
        store.write_chunk(chunk(id, low, high - 1, trades)).await.unwrap();
        written.fetch_add(high - low, Ordering::Relaxed);
        high = low;
    }
}

/// Reads pages of a wallet until asked to end; returns the longest wait for a page.
async fn read(store: &Store, id: WalletId, ends: &AtomicBool) -> (Duration, u64) {
    let (mut longest, mut pages, mut after) = (Duration::ZERO, 0, Position::Start);
    while !ends.load(Ordering::Relaxed) {
        let started = Instant::now();
        let rows = store.view().unwrap().rows(id, after, 0, 100).await.unwrap();
        longest = longest.max(started.elapsed());
        pages += 1;
        after = rows.last_key().map_or(Position::Start, Position::After);
        tokio::task::yield_now().await;
    }
    (longest, pages)
}

fn spawned<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinSet<T> {
    let mut set = JoinSet::new();
    set.spawn(work);
    set
}

async fn joined<T: 'static>(mut set: JoinSet<T>) -> T {
    set.join_next().await.unwrap().unwrap()
}

async fn rows(store: &Store, seed: u8) -> Vec<(TradeKey, Trade)> {
    stored(store, &wallet(seed)).await.trades.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_backup_during_a_load_of_100_000_trades_opens_and_its_rows_match() {
    const WALLETS: u8 = 4;
    const EACH: u64 = 25_000;
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("live"), OPTIONS).unwrap();
    let mut ids = Vec::new();
    for seed in 1..=WALLETS {
        ids.push(store.intern(&wallet(seed)).await.unwrap().id);
    }
    let (written, ends) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let reader = {
        let (store, ends, id) = (store.clone(), Arc::clone(&ends), ids[0]);
        spawned(async move { read(&store, id, &ends).await })
    };
    let loads: Vec<_> = ids
        .iter()
        .map(|id| {
            let (store, written, id) = (store.clone(), Arc::clone(&written), *id);
            spawned(async move { load(&store, id, EACH, &written).await })
        })
        .collect();
    while written.load(Ordering::Relaxed) < 20_000 {
        tokio::task::yield_now().await;
    }
    let copy = place.path().join("copy");
    let before = written.load(Ordering::Relaxed);
    let bytes = store.backup(&copy).await.unwrap();
    let after = written.load(Ordering::Relaxed);
    for load in loads {
        joined(load).await;
    }
    ends.store(true, Ordering::Relaxed);
    let (longest, pages) = joined(reader).await;
    assert!(longest < SECOND, "a page took {longest:?}");
    assert!(pages > 100, "{pages} pages were read meanwhile");
    assert_eq!(written.load(Ordering::Relaxed), u64::from(WALLETS) * EACH);
    assert!(matches!(store.backup(&copy).await, Err(StoreError::Io(_))), "over a copy");
    let file = copy.join(FILE_NAME);
    assert_eq!(fs::metadata(&file).unwrap().len(), bytes);
    assert_eq!(fs::read_dir(&copy).unwrap().count(), 1, "no partial copy is left");

    let copied = Store::open(&copy, OPTIONS).unwrap();
    let mut count = 0;
    for seed in 1..=WALLETS {
        let (of_copy, live) = (rows(&copied, seed).await, rows(&store, seed).await);
        assert_eq!(live.len(), usize::try_from(EACH).unwrap());
        assert!(live.ends_with(&of_copy) || live.starts_with(&of_copy), "wallet {seed}");
        count += u64::try_from(of_copy.len()).unwrap();
    }
    assert!(before <= count && count <= after + 4 * CHUNK, "{before} {count} {after}");
    copied.close().await;
    store.close().await;
}

/// Fills a store with one of everything that a copy must include.
async fn fill(store: &Store) -> WalletId {
    let id = store.intern(&wallet(1)).await.unwrap().id;
    load(store, id, 4_000, &AtomicU64::new(0)).await;
    let range = DeliveredRange { from: trade_at(30).key, to: trade_at(10).key };
    let update =
        UsageUpdate { key: KeyId(7), wallet: id, ranges: vec![range], total: 21, credit: None };
    store.write_usage(vec![update]).await.unwrap();
    id
}

async fn assert_filled(store: &Store, id: WalletId) {
    assert_eq!(rows(store, 1).await.len(), 4_000);
    let view = store.view().unwrap();
    assert_eq!(view.usage_total(KeyId(7)).await.unwrap(), 21);
    assert_eq!(view.usage(KeyId(7), id).await.unwrap().len(), 1);
}

fn length(folder: &Path) -> u64 {
    fs::metadata(folder.join(FILE_NAME)).unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_compaction_while_all_goes_on_loses_nothing_and_gives_room_back() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path(), OPTIONS).unwrap();
    let id = fill(&store).await;
    // Free space, left by a forgotten wallet.
    let other = store.intern(&wallet(2)).await.unwrap().id;
    load(&store, other, 30_000, &AtomicU64::new(0)).await;
    assert_eq!(store.forget(wallet(2), [1; 4]).await.unwrap(), Some(30_000));
    let large = length(place.path());

    let (written, ends) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let reader = {
        let (store, ends) = (store.clone(), Arc::clone(&ends));
        spawned(async move { read(&store, id, &ends).await })
    };
    let third = store.intern(&wallet(3)).await.unwrap().id;
    let loader = {
        let (store, written) = (store.clone(), Arc::clone(&written));
        spawned(async move { load(&store, third, 10_000, &written).await })
    };
    let held = store.view().unwrap();
    let compacting = {
        let store = store.clone();
        spawned(async move { store.compact().await })
    };
    // A wallet that is forgotten during the copy stays forgotten.
    let gone = store.intern(&wallet(4)).await.unwrap().id;
    load(&store, gone, 400, &AtomicU64::new(0)).await;
    assert_eq!(store.forget(wallet(4), [1; 4]).await.unwrap(), Some(400));
    let (before, after) = joined(compacting).await.unwrap();
    joined(loader).await;
    ends.store(true, Ordering::Relaxed);
    let (longest, _) = joined(reader).await;
    assert!(longest < SECOND, "a page took {longest:?}");
    assert_eq!(before, large);
    assert!(after < before / 2, "{before} bytes before, {after} after");
    // A view from before reads on.
    assert_eq!(held.rows(id, Position::Start, 0, 10).await.unwrap().len(), 10);
    drop(held);
    assert_filled(&store, id).await;
    assert_eq!(rows(&store, 3).await.len(), 10_000);
    assert!(store.view().unwrap().wallet(&wallet(4)).await.unwrap().is_none());
    // What is written afterwards is in the new file, which is the one that opens next.
    let last = store.intern(&wallet(5)).await.unwrap().id;
    load(&store, last, 600, &AtomicU64::new(0)).await;
    store.close().await;
    drop(store);
    let store = Store::open(place.path(), OPTIONS).unwrap();
    assert_filled(&store, id).await;
    assert_eq!((rows(&store, 3).await.len(), rows(&store, 5).await.len()), (10_000, 600));
    store.close().await;
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "no copy is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_copy_holds_usage_and_opens_like_the_original() {
    let place = tempfile::tempdir().unwrap();
    let (live, copy) = (place.path().join("live"), place.path().join("copy"));
    let store = Store::open(&live, OPTIONS).unwrap();
    let id = fill(&store).await;
    // A partial copy of an earlier attempt is no obstacle, and is not a store.
    fs::create_dir(&copy).unwrap();
    fs::write(copy.join("trades.redb.part"), b"half").unwrap();
    store.backup(&copy).await.unwrap();
    let copied = Store::open(&copy, OPTIONS).unwrap();
    assert_filled(&copied, id).await;
    load(&copied, copied.intern(&wallet(9)).await.unwrap().id, 10, &AtomicU64::new(0)).await;
    copied.close().await;
    store.close().await;
}

#[tokio::test]
async fn what_a_crash_left_of_a_compaction_is_removed_and_ignored() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path(), OPTIONS).unwrap();
    let id = fill(&store).await;
    store.close().await;
    drop(store);
    let leftover = place.path().join("trades.redb.compact");
    fs::write(&leftover, b"half of a copy").unwrap();
    let store = Store::open(place.path(), OPTIONS).unwrap();
    assert!(!leftover.exists());
    assert_filled(&store, id).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_closed_during_a_compaction_stays_whole() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path(), OPTIONS).unwrap();
    let id = fill(&store).await;
    let compacting = {
        let store = store.clone();
        spawned(async move { store.compact().await })
    };
    store.close().await;
    drop(joined(compacting).await);
    drop(store);
    let store = Store::open(place.path(), OPTIONS).unwrap();
    assert_filled(&store, id).await;
    store.close().await;
}
