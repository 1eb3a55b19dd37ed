//! Usage: each trade counts once per key, however often and in whichever mode it is read.
//!
//! Stored as delivered ranges per (key, wallet), one per run of adjacent rows. Memory is ahead of
//! the store by at most one flush, so a crash may count too little, never too much.

mod bound;
mod ranges;

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bound::bound;
use ranges::{allowance, contains_both, is_counted, join};

use crate::domain::{KeyId, Position, TradeKey, lock};
use crate::store::{Counted, Credit, DeliveredRange, Store, StoreError, UsageUpdate, WalletId};

/// A pair's weight is 1, plus 1 for each this many ranges.
const RANGES_PER_WEIGHT: usize = 16;

#[derive(Debug, Default)]
struct KeyUsage {
    total: u64,
    wallets: HashMap<WalletId, Delivered>,
    /// Sum of the weights in `wallets`, maintained because rows are delivered too often to
    /// recompute it.
    weight: usize,
    /// Wallets with counts that no write has taken yet.
    dirty: HashSet<WalletId>,
    /// Wallets in the write that runs: until it ends, a view lacks their counts.
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

    /// Drops all ranges that the store has.
    fn evict(&mut self) {
        let Self { wallets, weight: total, dirty, writing, .. } = self;
        wallets.retain(|wallet, _| dirty.contains(wallet) || writing.contains(wallet));
        *total = wallets.values().map(|delivered| weight(&delivered.ranges)).sum();
    }
}

/// What a key has received of one wallet.
#[derive(Debug, Clone, Default)]
struct Delivered {
    ranges: Vec<DeliveredRange>,
    /// Set if the wallet was forgotten: trades counted before are not counted again.
    credit: Option<Credit>,
}

#[derive(Debug)]
pub(super) struct Usage {
    store: Store,
    keys: Mutex<HashMap<KeyId, KeyUsage>>,
    /// Wallets that are being forgotten: nothing is counted of them. Locked inside `keys`.
    uncounted: Mutex<HashSet<WalletId>>,
    /// Counts what left memory: what was read of the store before that may be older than what left.
    removals: AtomicU64,
    /// Held by the one flush that runs.
    flushing: tokio::sync::Mutex<()>,
    /// Total weight of pairs above which written ones are evicted from memory.
    wallets_cached_max: usize,
    ranges_max: usize,
}

/// A wallet that is being forgotten; nothing is counted for it while this exists.
#[derive(Debug)]
pub(super) struct ForgettingWallet<'a> {
    usage: &'a Usage,
    wallet: WalletId,
}

impl ForgettingWallet<'_> {
    /// The wallet was forgotten: the store no longer knows its number, which is never assigned
    /// again.
    pub(super) fn finish(self) {
        self.usage.forget(self.wallet);
    }
}

impl Drop for ForgettingWallet<'_> {
    fn drop(&mut self) {
        let _keys = lock(&self.usage.keys);
        lock(&self.usage.uncounted).remove(&self.wallet);
    }
}

/// What the store has of a key and a wallet.
#[derive(Debug)]
struct Loaded {
    /// The removals before it was read.
    removals: u64,
    total: u64,
    delivered: Delivered,
}

/// Rows that a walk is about to hand out: adjacent, right behind `after`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery<'a, K> {
    pub(super) key: KeyId,
    /// The most trades that the key may be counted; `None` is without limit.
    pub(super) quota: Option<u64>,
    pub(super) wallet: WalletId,
    pub(super) after: Position,
    /// For upward delivery: the row right below, whose range they join if it was counted for the
    /// key.
    pub(super) below: Option<TradeKey>,
    pub(super) rows: &'a [K],
}

impl Usage {
    pub(super) fn new(store: Store, wallets_cached_max: usize, ranges_max: usize) -> Self {
        let (keys, uncounted, removals) =
            (Mutex::default(), Mutex::default(), AtomicU64::default());
        let flushing = tokio::sync::Mutex::default();
        Self { store, keys, uncounted, removals, flushing, wallets_cached_max, ranges_max }
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
            if let Some(allowed) = self.count_cached(delivery)? {
                return Ok(allowed);
            }
            self.evict_if_full();
            let loaded = self.load(delivery.key, delivery.wallet).await?;
            self.keep(delivery.key, delivery.wallet, loaded);
        }
    }

    /// The same with a shared store, which counts under a lock of the key's row. Ranges only grow,
    /// so rows that memory knows as delivered need no count.
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
        self.evict_if_full();
        let mut keys = lock(&self.keys);
        keys.entry(key).or_default().put(wallet, Delivered { ranges, credit: None });
        Ok(allowed)
    }

    /// Whether memory knows that all rows were delivered before.
    fn is_delivered<K: AsRef<TradeKey>>(&self, delivery: &Delivery<'_, K>) -> bool {
        let keys = lock(&self.keys);
        let known = keys.get(&delivery.key).and_then(|usage| usage.wallets.get(&delivery.wallet));
        let ends = delivery.rows.first().zip(delivery.rows.last());
        known.zip(ends).is_some_and(|(known, (first, last))| {
            contains_both(&known.ranges, first.as_ref(), last.as_ref())
        })
    }

    /// The same with cached ranges; `None` if the key or the wallet is not cached.
    ///
    /// # Errors
    /// `UnknownWallet` once the wallet is being forgotten: the store turns its counts into a
    /// credit, and later counts would be repeated.
    fn count_cached<K: AsRef<TradeKey>>(
        &self,
        delivery: &Delivery<'_, K>,
    ) -> Result<Option<usize>, StoreError> {
        let mut keys = lock(&self.keys);
        if lock(&self.uncounted).contains(&delivery.wallet) {
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

    /// Counts a delivery; returns how many of its rows the quota allows, and whether the ranges
    /// grew.
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

    /// Number of trades counted for a key so far.
    pub(super) async fn total(&self, key: KeyId) -> Result<u64, StoreError> {
        // Memory is ahead of an embedded store, but behind a shared one.
        let known = lock(&self.keys).get(&key).map(|usage| usage.total);
        let known = known.filter(|_| !self.store.is_shared());
        match known {
            Some(total) => Ok(total),
            None => self.store.view()?.usage_total(key).await,
        }
    }

    /// Writes the counts since the last flush; waits for a running flush first.
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
        // Ranges grow without a load, and only after a write may the grown ones be evicted.
        self.evict_if_full();
    }

    pub(super) fn stop_counting(&self, wallet: WalletId) -> ForgettingWallet<'_> {
        let _keys = lock(&self.keys);
        lock(&self.uncounted).insert(wallet);
        ForgettingWallet { usage: self, wallet }
    }

    /// Removes a forgotten wallet from memory.
    fn forget(&self, wallet: WalletId) {
        let mut keys = lock(&self.keys);
        for usage in keys.values_mut() {
            usage.remove(wallet);
            usage.dirty.remove(&wallet);
            usage.writing.remove(&wallet);
        }
        self.removals.fetch_add(1, Ordering::Release);
    }

    /// The counts to write, including those of a flush whose caller stopped waiting.
    fn take_dirty(&self) -> Vec<UsageUpdate> {
        let mut keys = lock(&self.keys);
        let mut updates = Vec::new();
        for (&key, usage) in keys.iter_mut() {
            let KeyUsage { total, wallets, dirty, writing, .. } = usage;
            writing.extend(dirty.drain());
            for &wallet in writing.iter() {
                // An update replaces the stored ranges: an empty one would delete them.
                let known = wallets.get(&wallet).cloned();
                let Some(Delivered { ranges, credit }) = known else { continue };
                updates.push(UsageUpdate { key, wallet, ranges, total: *total, credit });
            }
        }
        updates
    }

    async fn load(&self, key: KeyId, wallet: WalletId) -> Result<Loaded, StoreError> {
        let removals = self.removals.load(Ordering::Acquire);
        let view = self.store.view()?;
        let total = view.usage_total(key).await?;
        let (ranges, credit) = (view.usage(key, wallet).await?, view.credit(key, wallet).await?);
        Ok(Loaded { removals, total, delivered: Delivered { ranges, credit } })
    }

    /// Brings the usage of a key, with its ranges of a wallet, into memory. What is there already
    /// is ahead of the store and stays.
    fn keep(&self, key: KeyId, wallet: WalletId, loaded: Loaded) {
        let mut keys = lock(&self.keys);
        if self.removals.load(Ordering::Acquire) != loaded.removals {
            return;
        }
        // A key is never taken out of memory.
        let new = || KeyUsage { total: loaded.total, ..KeyUsage::default() };
        let usage = keys.entry(key).or_insert_with(new);
        if !usage.wallets.contains_key(&wallet) {
            usage.put(wallet, loaded.delivered);
        }
    }

    fn evict_if_full(&self) {
        let mut keys = lock(&self.keys);
        let weight = |keys: &HashMap<_, KeyUsage>| keys.values().map(|usage| usage.weight).sum();
        let before: usize = weight(&keys);
        if before > self.wallets_cached_max {
            keys.values_mut().for_each(KeyUsage::evict);
            if weight(&keys) < before {
                self.removals.fetch_add(1, Ordering::Release);
            }
        }
    }
}

fn weight(ranges: &[DeliveredRange]) -> usize {
    1 + ranges.len() / RANGES_PER_WEIGHT
}

#[cfg(test)]
mod tests;
