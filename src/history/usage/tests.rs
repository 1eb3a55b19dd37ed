//! Deliveries compared with a model, and what memory keeps in addition to the store.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::domain::{Address, ChainId, TxId, UnixSeconds, Wallet};
use crate::store::StoreOptions;

const KEY: KeyId = KeyId(1);

/// Row `at` counted from the newest.
fn key(at: u32) -> TradeKey {
    let (time, tx) = (UnixSeconds(1000 - at), TxId::solana(&[1; 64]));
    TradeKey { time, height: u64::from(1000 - at), index: 0, tx, leg: 0 }
}

proptest! {
    /// For any walks over one history of 60 rows, the rows counted are the set of the rows read.
    #[test]
    fn each_row_counts_once(walks in proptest::collection::vec((0_u32..60, 1_usize..15, 1_u32..4), 1..40)) {
        let (mut ranges, mut model, mut total) = (Vec::new(), BTreeSet::new(), 0);
        for (start, page, pages) in walks {
            let mut at = start;
            for _ in 0..pages {
                let rows: Vec<TradeKey> = (at..60).take(page).map(key).collect();
                if rows.is_empty() { break; }
                let after = if at == 0 { Position::Start } else { Position::After(key(at - 1)) };
                let (allowed, counted) = allowance(&ranges, after, &rows, u64::MAX);
                prop_assert_eq!(allowed, rows.len());
                join(&mut ranges, after, &rows);
                total += counted;
                model.extend(at..at + u32::try_from(rows.len()).unwrap());
                at += u32::try_from(rows.len()).unwrap();
                prop_assert_eq!(total, u64::try_from(model.len()).unwrap());
                for pair in ranges.windows(2) {
                    prop_assert!(pair[0].to < pair[1].from);
                }
                for row in 0..60 {
                    prop_assert_eq!(is_counted(&ranges, &key(row)), model.contains(&row));
                }
            }
        }
    }
}

/// A late row joins the block of a row that was delivered alone: both get positions within it.
#[test]
fn a_row_that_gets_another_place_in_its_block_is_not_counted_again() {
    let at = |tx: u8, index, leg| TradeKey { tx: TxId::solana(&[tx; 64]), index, leg, ..key(5) };
    let [late_above, late_below] = [at(2, 7, 0), at(3, 4, 0)];
    // The row was the last, the first, or the only one that was delivered.
    for (above, below) in [(true, false), (false, true), (false, false)] {
        let mut rows: Vec<TradeKey> = vec![at(1, 0, 0), at(1, 0, 1)];
        rows.extend(below.then(|| key(6)));
        if above {
            rows.insert(0, key(4));
        }
        let mut ranges = Vec::new();
        join(&mut ranges, Position::Start, &rows);
        for leg in [0, 1] {
            assert_eq!(
                allowance(&ranges, Position::Start, &[at(1, 5, leg)], 9),
                (1, 0),
                "{above} {below}"
            );
        }
        let all = [key(4), late_above, at(1, 5, 0), at(1, 5, 1), late_below, key(6)];
        let (allowed, counted) = allowance(&ranges, Position::Start, &all, 9);
        let new = all.len() - rows.len();
        assert_eq!(allowed, all.len());
        assert!(counted <= u64::try_from(new).unwrap(), "{counted} of {new}");
        join(&mut ranges, Position::Start, &all);
        assert_eq!(ranges.len(), 1);
    }
    // The opposite case: the late row is gone again.
    let mut ranges = Vec::new();
    join(&mut ranges, Position::Start, &[at(1, 5, 0)]);
    let of = |row| allowance(&ranges, Position::Start, &[row], 9);
    assert_eq!(of(at(1, 0, 0)), (1, 0));
    assert_eq!(of(at(2, 5, 0)), (1, 1), "another transaction");
    assert_eq!(of(at(1, 0, 1)), (1, 1), "another row of it");
}

/// The lower of two rows of a block was wrong and has been removed: now the upper one is alone.
#[test]
fn a_row_is_not_counted_again_where_the_row_below_it_is_gone() {
    let at = |tx: u8, index| TradeKey { tx: TxId::solana(&[tx; 64]), index, ..key(5) };
    let above = Position::After(key(4));
    for gone in [at(2, 47), at(2, 30)] {
        let mut ranges = Vec::new();
        join(&mut ranges, Position::Start, &[key(4), at(1, 47), gone]);
        let alone = [at(1, 0), key(6)];
        assert_eq!(allowance(&ranges, above, &alone, 9), (2, 1), "{gone:?}");
    }
    // The next row of the block is new, because the row that was delivered last is still there.
    let ranges = [DeliveredRange { from: key(4), to: at(2, 47) }];
    assert_eq!(allowance(&ranges, Position::After(at(2, 47)), &[at(1, 0)], 9), (1, 1));
    assert_eq!(allowance(&ranges, above, &[at(2, 47), at(1, 0)], 9), (2, 1));
}

#[test]
fn a_walk_to_the_end_is_one_range() {
    let mut ranges = Vec::new();
    assert!(join(&mut ranges, Position::Start, &[key(0), key(1)]));
    assert!(join(&mut ranges, Position::After(key(1)), &[key(2), key(3)]));
    assert!(!join(&mut ranges, Position::After(key(0)), &[key(1)]));
    assert_eq!(ranges, [DeliveredRange { from: key(0), to: key(3) }]);
}

#[test]
fn the_quota_lets_known_rows_pass_and_stops_at_the_first_new_one_too_many() {
    let ranges = [DeliveredRange { from: key(0), to: key(2) }];
    let rows: Vec<TradeKey> = (0..6).map(key).collect();
    assert_eq!(allowance(&ranges, Position::Start, &rows, 2), (5, 2));
    assert_eq!(allowance(&ranges, Position::Start, &rows, 0), (3, 0));
}

pub(super) fn range(from: u32, to: u32) -> DeliveredRange {
    DeliveredRange { from: key(from), to: key(to) }
}

fn wallet_of(byte: u8) -> Wallet {
    Wallet { chain: ChainId(1), address: Address::Solana([byte; 32]) }
}

/// Opens usage on a store in a folder, with two wallets in it.
async fn open(cached: usize, ranges_max: usize) -> (tempfile::TempDir, Usage, [WalletId; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { cache_bytes: 1 << 20 };
    let store = Store::open_in_step(folder.path(), options).unwrap();
    let one = store.intern(&wallet_of(1)).await.unwrap().id;
    let other = store.intern(&wallet_of(2)).await.unwrap().id;
    (folder, Usage::new(store, cached, ranges_max), [one, other])
}

/// Delivers `count` rows from number `first` on, counted from the newest.
async fn deliver(usage: &Usage, wallet: WalletId, first: u32, count: u32) {
    let rows: Vec<TradeKey> = (first..first + count).map(key).collect();
    let above = first.checked_sub(1).map(key);
    let after = above.map_or(Position::Start, Position::After);
    let delivery = Delivery { key: KEY, quota: None, wallet, after, below: None, rows: &rows };
    assert_eq!(usage.deliver(&delivery).await.unwrap(), rows.len());
}

async fn stored(usage: &Usage, wallet: WalletId) -> Vec<DeliveredRange> {
    usage.store.view().unwrap().usage(KEY, wallet).await.unwrap()
}

/// Weight and wallets in memory.
fn held(usage: &Usage) -> (usize, Vec<WalletId>) {
    let keys = lock(&usage.keys);
    (keys[&KEY].weight, keys[&KEY].wallets.keys().copied().collect())
}

#[tokio::test(start_paused = true)]
async fn what_is_delivered_while_a_pair_is_written_is_not_lost() {
    let (_folder, usage, [one, other]) = open(0, 64).await;
    deliver(&usage, one, 0, 2).await;
    let updates = usage.take_dirty();
    // While the commit runs, a load makes room and the walk goes on.
    deliver(&usage, other, 0, 1).await;
    deliver(&usage, one, 2, 2).await;
    usage.after_write(&usage.store.write_usage(updates).await);
    assert_eq!(stored(&usage, one).await, [range(0, 1)]);
    usage.flush().await.unwrap();
    assert_eq!(held(&usage), (0, vec![]));
    // A mark without ranges removes nothing.
    lock(&usage.keys).get_mut(&KEY).unwrap().dirty.insert(one);
    usage.flush().await.unwrap();
    assert_eq!(stored(&usage, one).await, [range(0, 3)]);
    deliver(&usage, one, 0, 4).await;
    assert_eq!(usage.total(KEY).await.unwrap(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_failed_or_abandoned_write_keeps_what_was_counted() {
    let (_folder, usage, [one, _]) = open(0, 64).await;
    deliver(&usage, one, 0, 2).await;
    let taken = || {
        let updates = usage.take_dirty().into_iter();
        updates.map(|update| (update.wallet, update.ranges, update.total)).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        assert_eq!(taken(), [(one, vec![range(0, 1)], 2)]);
    }
    usage.store.close().await;
    assert!(usage.flush().await.is_err());
    assert_eq!(taken(), [(one, vec![range(0, 1)], 2)]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_counted_of_a_wallet_that_is_being_forgotten() {
    let (_folder, usage, [one, other]) = open(9, 64).await;
    deliver(&usage, one, 0, 2).await;
    let rows = [key(2), key(3)];
    let (quota, after) = (None, Position::After(key(1)));
    let late = Delivery { key: KEY, quota, wallet: one, after, below: None, rows: &rows };
    let is_refused =
        async || matches!(usage.deliver(&late).await, Err(StoreError::UnknownWallet(_)));
    let uncounted = usage.stop_counting(one);
    assert!(is_refused().await);
    deliver(&usage, other, 0, 1).await;
    assert_eq!(usage.total(KEY).await.unwrap(), 3);
    // The wallet could not be forgotten: its rows are counted again.
    drop(uncounted);
    assert_eq!(usage.deliver(&late).await.unwrap(), 2);
    let uncounted = usage.stop_counting(one);
    usage.store.forget(wallet_of(1), [1; 4]).await.unwrap();
    uncounted.finish();
    // The store has forgotten the wallet: memory keeps nothing of it.
    assert!(lock(&usage.uncounted).is_empty());
    assert!(is_refused().await);
    assert_eq!((usage.total(KEY).await.unwrap(), held(&usage).1), (5, vec![other]));
}

/// Between the moment at which a load reads the store and its end, the wallet is forgotten, or
/// leaves memory after more of its rows were counted.
#[tokio::test(start_paused = true)]
async fn what_was_read_before_a_wallet_left_memory_does_not_come_back() {
    let (_folder, usage, [one, other]) = open(1, 64).await;
    let early = usage.load(KEY, one).await.unwrap();
    deliver(&usage, one, 0, 3).await;
    usage.flush().await.unwrap();
    deliver(&usage, other, 0, 1).await;
    usage.flush().await.unwrap();
    assert!(held(&usage).1.is_empty());
    usage.keep(KEY, one, early);
    deliver(&usage, one, 0, 3).await;
    assert_eq!(usage.total(KEY).await.unwrap(), 4);
    let late = usage.load(KEY, one).await.unwrap();
    let uncounted = usage.stop_counting(one);
    usage.store.forget(wallet_of(1), [1; 4]).await.unwrap();
    uncounted.finish();
    usage.keep(KEY, one, late);
    assert!(held(&usage).1.is_empty());
}

/// A cursor of one key is resumed under another key, which has never received the row below.
#[tokio::test(start_paused = true)]
async fn rows_above_one_that_was_not_counted_do_not_join_it() {
    let (_folder, usage, [wallet, _]) = open(9, 64).await;
    let rows = [key(4)];
    let after = Position::Start;
    let above = |below| Delivery { key: KEY, quota: None, wallet, after, below, rows: &rows };
    let charge = |delivery: &Delivery<'_, TradeKey>, ranges: &mut Vec<DeliveredRange>| {
        let mut total = 0;
        usage.charge(delivery, &mut total, ranges, &mut None);
        total
    };
    let mut ranges = Vec::new();
    assert_eq!(charge(&above(Some(key(5))), &mut ranges), 1);
    assert_eq!(ranges, [range(4, 4)]);
    let mut ranges = vec![range(5, 9)];
    assert_eq!(charge(&above(Some(key(5))), &mut ranges), 1);
    assert_eq!(ranges, [range(4, 9)]);
}

#[tokio::test(start_paused = true)]
async fn a_flush_waits_for_the_one_that_runs() {
    let (_folder, usage, [one, _]) = open(9, 64).await;
    deliver(&usage, one, 0, 2).await;
    let turn = usage.flushing.lock().await;
    let second = std::time::Duration::from_secs(1);
    assert!(tokio::time::timeout(second, usage.flush()).await.is_err());
    drop(turn);
    usage.flush().await.unwrap();
    assert_eq!(stored(&usage, one).await, [range(0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn many_ranges_weigh_more_than_their_pair() {
    // 32 ranges weigh 1 + 32 / 16; where 31 are allowed, they are joined to 16.
    for (cached, max, kept, loaded) in [(3, 64, 3, 3), (2, 64, 0, 3), (2, 31, 2, 2)] {
        let (_folder, usage, [one, other]) = open(cached, max).await;
        for at in 0..32 {
            deliver(&usage, one, 2 * at, 1).await;
        }
        usage.flush().await.unwrap();
        assert_eq!(held(&usage).0, kept, "{cached} {max}");
        deliver(&usage, one, 0, 1).await;
        assert_eq!(held(&usage), (loaded, vec![one]));
        usage.forget(one);
        deliver(&usage, other, 0, 1).await;
        assert_eq!(held(&usage), (1, vec![other]));
    }
}
