//! Each trade counts once per key, however often it is read, by any cursor or mode.
//!
//! Kept as delivered ranges per (key, wallet), one per run of adjacent rows. The memory is ahead
//! of the store by at most one flush, so a crash may count a little too little, never too much.

mod bound;
mod ranges;

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use bound::bound;
use ranges::{allowance, holds, is_counted, join};

use crate::domain::{KeyId, Position, TradeKey, lock};
use crate::store::{Counted, Credit, DeliveredRange, Store, StoreError, UsageUpdate, WalletId};

/// A pair weighs one more for each so many ranges of it.
const RANGES_PER_WEIGHT: usize = 16;

#[derive(Debug, Default)]
struct KeyUsage {
    total: u64,
    wallets: HashMap<WalletId, Delivered>,
    /// Sum over `wallets`, kept up to date: rows are delivered too often to add it up each time.
    weight: usize,
    /// Counted since it was last given to a write.
    dirty: HashSet<WalletId>,
    /// Given to the write that runs: until that has ended, a view lacks it.
    writing: HashSet<WalletId>,
}

impl KeyUsage {
    fn put(&mut self, wallet: WalletId, delivered: Delivered) {
        self.remove(wallet);
        self.weight += weight(&delivered.ranges);
        self.wallets.insert(wallet, delivered);
    }

    fn remove(&mut self, wallet: WalletId) {
        let removed = self.wallets.remove(&wallet);
        self.weight -= removed.map_or(0, |delivered| weight(&delivered.ranges));
    }

    /// Keeps only what the store does not have yet.
    fn evict(&mut self) {
        let Self { wallets, weight: total, dirty, writing, .. } = self;
        wallets.retain(|wallet, _| dirty.contains(wallet) || writing.contains(wallet));
        *total = wallets.values().map(|delivered| weight(&delivered.ranges)).sum();
    }
}

/// What a key was given of one wallet.
#[derive(Debug, Clone, Default)]
struct Delivered {
    ranges: Vec<DeliveredRange>,
    /// Where the wallet was forgotten: what was counted of it before is not counted again.
    credit: Option<Credit>,
}

#[derive(Debug)]
pub(super) struct Usage {
    store: Store,
    keys: Mutex<HashMap<KeyId, KeyUsage>>,
    /// Wallets that are being forgotten, or were: nothing is counted of them. Locked inside `keys`. Their
    /// numbers are never given again.
    leaving: Mutex<HashSet<WalletId>>,
    /// Held by the one flush that runs.
    flushing: tokio::sync::Mutex<()>,
    /// Weight of all pairs above which those that are written down leave memory.
    wallets_cached_max: usize,
    ranges_max: usize,
}

/// A wallet that is being forgotten: nothing is counted of it meanwhile.
#[derive(Debug)]
pub(super) struct Leaving<'a> {
    usage: &'a Usage,
    wallet: WalletId,
    is_gone: bool,
}

impl Leaving<'_> {
    /// It was forgotten.
    pub(super) fn finish(mut self) {
        self.usage.forget(self.wallet);
        self.is_gone = true;
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if !self.is_gone {
            let _keys = lock(&self.usage.keys);
            lock(&self.usage.leaving).remove(&self.wallet);
        }
    }
}

/// Rows that a walk is about to hand out: adjacent, right behind `after`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery<'a, K> {
    pub(super) key: KeyId,
    /// Trades that the key may be counted in all; `None` is without end.
    pub(super) quota: Option<u64>,
    pub(super) wallet: WalletId,
    pub(super) after: Position,
    /// The row right below them, where rows are delivered upwards: they join its range where it was
    /// counted for the key.
    pub(super) below: Option<TradeKey>,
    pub(super) rows: &'a [K],
}

impl Usage {
    pub(super) fn new(store: Store, wallets_cached_max: usize, ranges_max: usize) -> Self {
        let (keys, leaving, flushing) =
            (Mutex::default(), Mutex::default(), tokio::sync::Mutex::default());
        Self { store, keys, leaving, flushing, wallets_cached_max, ranges_max }
    }

    /// Counts a delivery and returns how many of its rows the quota allows.
    pub(super) async fn deliver<K: AsRef<TradeKey> + Sync>(
        &self,
        delivery: &Delivery<'_, K>,
    ) -> Result<usize, StoreError> {
        if delivery.key == KeyId::LOCAL {
            return Ok(delivery.rows.len());
        }
        if self.store.is_shared() {
            return Box::pin(self.deliver_shared(delivery)).await;
        }
        loop {
            if let Some(allowed) = self.count_loaded(delivery)? {
                return Ok(allowed);
            }
            self.load(delivery.key, delivery.wallet).await?;
        }
    }

    /// The same under the key's row, which all processes count in. Ranges only grow, so that what
    /// memory holds as delivered needs no count.
    async fn deliver_shared<K: AsRef<TradeKey> + Sync>(
        &self,
        delivery: &Delivery<'_, K>,
    ) -> Result<usize, StoreError> {
        let Delivery { key, wallet, .. } = *delivery;
        if self.is_delivered(delivery) {
            return Ok(delivery.rows.len());
        }
        let change = |Counted { mut total, mut ranges, mut credit }: Counted| {
            let (allowed, grew) = self.charge(delivery, &mut total, &mut ranges, &mut credit);
            let update = UsageUpdate { key, wallet, ranges: ranges.clone(), total, credit };
            (grew.then_some(update), (allowed, ranges))
        };
        let (allowed, ranges) = self.store.recount(key, wallet, &change).await?;
        self.make_room();
        let mut keys = lock(&self.keys);
        keys.entry(key).or_default().put(wallet, Delivered { ranges, credit: None });
        Ok(allowed)
    }

    /// Whether memory knows that all of the rows were delivered before.
    fn is_delivered<K: AsRef<TradeKey>>(&self, delivery: &Delivery<'_, K>) -> bool {
        let keys = lock(&self.keys);
        let known = keys.get(&delivery.key).and_then(|usage| usage.wallets.get(&delivery.wallet));
        let ends = delivery.rows.first().zip(delivery.rows.last());
        known.zip(ends).is_some_and(|(known, (first, last))| {
            holds(&known.ranges, first.as_ref(), last.as_ref())
        })
    }

    /// The same by what is in memory; `None` where that lacks the key or the wallet.
    ///
    /// # Errors
    /// `UnknownWallet` from the flush on before which a wallet is forgotten: what a key has counted of it
    /// becomes its credit there, and what came later would be counted again.
    fn count_loaded<K: AsRef<TradeKey>>(
        &self,
        delivery: &Delivery<'_, K>,
    ) -> Result<Option<usize>, StoreError> {
        let mut keys = lock(&self.keys);
        if lock(&self.leaving).contains(&delivery.wallet) {
            return Err(StoreError::UnknownWallet(delivery.wallet));
        }
        let Some(usage) = keys.get_mut(&delivery.key) else { return Ok(None) };
        let known = usage.wallets.get_mut(&delivery.wallet);
        let Some(Delivered { ranges, credit }) = known else { return Ok(None) };
        let before = weight(ranges);
        let (allowed, grew) = self.charge(delivery, &mut usage.total, ranges, credit);
        if grew {
            usage.weight = usage.weight + weight(ranges) - before;
            usage.dirty.insert(delivery.wallet);
        }
        Ok(Some(allowed))
    }

    /// Counts a delivery: how many of its rows the quota allows, and whether the ranges grew.
    fn charge<K: AsRef<TradeKey>>(
        &self,
        delivery: &Delivery<'_, K>,
        total: &mut u64,
        ranges: &mut Vec<DeliveredRange>,
        credit: &mut Option<Credit>,
    ) -> (usize, bool) {
        let credited = credit.map_or(0, |credit| credit.left);
        let left = delivery.quota.map_or(u64::MAX, |quota| quota.saturating_sub(*total));
        let left = left.saturating_add(credited);
        let (allowed, counted) = allowance(ranges, delivery.after, delivery.rows, left);
        let rows = delivery.rows.get(..allowed).unwrap_or_default();
        let mut grew = join(ranges, delivery.after, rows);
        if let Some((last, below)) = rows.last().zip(delivery.below)
            && is_counted(ranges, &below)
        {
            grew |= join(ranges, Position::Start, &[*last.as_ref(), below]);
        }
        if grew {
            bound(ranges, self.ranges_max);
        }
        *total = total.saturating_add(counted.saturating_sub(credited));
        if let Some(credit) = credit {
            credit.left = credit.left.saturating_sub(counted);
        }
        (allowed, grew)
    }

    /// Trades counted for a key so far.
    pub(super) async fn total(&self, key: KeyId) -> Result<u64, StoreError> {
        // Memory is ahead of a file, and behind a store that others count in too.
        let known = lock(&self.keys).get(&key).map(|usage| usage.total);
        let known = known.filter(|_| !self.store.is_shared());
        match known {
            Some(total) => Ok(total),
            None => self.store.view()?.usage_total(key).await,
        }
    }

    /// Writes down what was counted since the last flush, once a flush that runs has ended.
    pub(super) async fn flush(&self) -> Result<(), StoreError> {
        let _turn = self.flushing.lock().await;
        let updates = self.take_dirty();
        if updates.is_empty() {
            return Ok(());
        }
        let written = self.store.write_usage(updates).await;
        self.after_write(&written);
        written
    }

    fn after_write(&self, written: &Result<(), StoreError>) {
        for usage in lock(&self.keys).values_mut() {
            let writing = std::mem::take(&mut usage.writing);
            if written.is_err() {
                usage.dirty.extend(writing);
            }
        }
        // Ranges grow without a load, and only now may those that grew be left out.
        self.make_room();
    }

    /// From now on nothing is counted of a wallet, until that is given up.
    pub(super) fn leave(&self, wallet: WalletId) -> Leaving<'_> {
        let _keys = lock(&self.keys);
        lock(&self.leaving).insert(wallet);
        Leaving { usage: self, wallet, is_gone: false }
    }

    /// Leaves out what is in memory of a wallet that was forgotten.
    fn forget(&self, wallet: WalletId) {
        let mut keys = lock(&self.keys);
        for usage in keys.values_mut() {
            usage.remove(wallet);
            usage.dirty.remove(&wallet);
            usage.writing.remove(&wallet);
        }
    }

    /// What is to be written: also what a flush took whose caller stopped waiting.
    fn take_dirty(&self) -> Vec<UsageUpdate> {
        let mut keys = lock(&self.keys);
        let mut updates = Vec::new();
        for (&key, usage) in keys.iter_mut() {
            let KeyUsage { total, wallets, dirty, writing, .. } = usage;
            writing.extend(dirty.drain());
            for &wallet in writing.iter() {
                // An update replaces what is stored: an empty one would wipe it.
                let known = wallets.get(&wallet).cloned();
                let Some(Delivered { ranges, credit }) = known else { continue };
                updates.push(UsageUpdate { key, wallet, ranges, total: *total, credit });
            }
        }
        updates
    }

    /// Brings the usage of a key, with its ranges of a wallet, into memory. What is there already
    /// is ahead of the store and stays.
    async fn load(&self, key: KeyId, wallet: WalletId) -> Result<(), StoreError> {
        self.make_room();
        let is_known = lock(&self.keys).contains_key(&key);
        let total = if is_known { None } else { Some(self.store.view()?.usage_total(key).await?) };
        let view = self.store.view()?;
        let ranges = view.usage(key, wallet).await?;
        let credit = view.credit(key, wallet).await?;
        let mut keys = lock(&self.keys);
        // A key is never taken out of memory.
        if let Some(total) = total {
            keys.entry(key).or_insert(KeyUsage { total, ..KeyUsage::default() });
        }
        if let Some(usage) = keys.get_mut(&key)
            && !usage.wallets.contains_key(&wallet)
        {
            usage.put(wallet, Delivered { ranges, credit });
        }
        Ok(())
    }

    fn make_room(&self) {
        let mut keys = lock(&self.keys);
        let weight: usize = keys.values().map(|usage| usage.weight).sum();
        if weight > self.wallets_cached_max {
            keys.values_mut().for_each(KeyUsage::evict);
        }
    }
}

fn weight(ranges: &[DeliveredRange]) -> usize {
    1 + ranges.len() / RANGES_PER_WEIGHT
}

#[cfg(test)]
mod tests {
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
        /// Walks of any kind over one history of 60 rows: what is counted is the set of rows read.
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

    /// A late row joins the block of one that was delivered alone: both get the block's positions.
    #[test]
    fn a_row_that_gets_another_place_in_its_block_is_not_counted_again() {
        let at =
            |tx: u8, index, leg| TradeKey { tx: TxId::solana(&[tx; 64]), index, leg, ..key(5) };
        let [late_above, late_below] = [at(2, 7, 0), at(3, 4, 0)];
        // It was the last, the first, and the only one of what was delivered.
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
        // The other way round: the late one is gone.
        let mut ranges = Vec::new();
        join(&mut ranges, Position::Start, &[at(1, 5, 0)]);
        let of = |row| allowance(&ranges, Position::Start, &[row], 9);
        assert_eq!(of(at(1, 0, 0)), (1, 0));
        assert_eq!(of(at(2, 5, 0)), (1, 1), "another transaction");
        assert_eq!(of(at(1, 0, 1)), (1, 1), "another row of it");
    }

    /// The lower one of two rows of a block was false and is gone: the other one stands alone now.
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
        // The next one of the block is new: the one that was delivered last is still there.
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

    /// On a store in a folder, with two wallets in it.
    async fn open(cached: usize, ranges_max: usize) -> (tempfile::TempDir, Usage, [WalletId; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions { cache_bytes: 1 << 20 };
        let store = Store::open_in_step(folder.path(), options).unwrap();
        let wallet = |byte| Wallet { chain: ChainId(1), address: Address::Solana([byte; 32]) };
        let one = store.intern(&wallet(1)).await.unwrap().id;
        let other = store.intern(&wallet(2)).await.unwrap().id;
        (folder, Usage::new(store, cached, ranges_max), [one, other])
    }

    /// Hands out so many rows from one on, counted from the newest.
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
        // The commit runs: a load makes room, and the walk goes on.
        deliver(&usage, other, 0, 1).await;
        deliver(&usage, one, 2, 2).await;
        usage.after_write(&usage.store.write_usage(updates).await);
        assert_eq!(stored(&usage, one).await, [range(0, 1)]);
        usage.flush().await.unwrap();
        assert_eq!(held(&usage), (0, vec![]));
        // A mark without ranges wipes nothing.
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
        let leaving = usage.leave(one);
        assert!(is_refused().await);
        deliver(&usage, other, 0, 1).await;
        assert_eq!(usage.total(KEY).await.unwrap(), 3);
        // It could not be forgotten.
        drop(leaving);
        assert_eq!(usage.deliver(&late).await.unwrap(), 2);
        usage.leave(one).finish();
        assert!(is_refused().await);
        assert_eq!((usage.total(KEY).await.unwrap(), held(&usage).1), (5, vec![other]));
    }

    /// A cursor that one key got is resumed under another one, which was never given the row below.
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
}
