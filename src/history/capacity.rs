//! Keeps the store below its size limit: rows of the wallets that were least recently requested are
//! evicted first. They are loaded again on request; cursors stay valid, and usage is kept.

use std::collections::HashMap;
use std::sync::Mutex;

use super::error::HistoryError;
use super::{History, Inner, Result};
use crate::domain::{Height, UnixMillis, Wallet, lock};
use crate::store::{StoreSize, WalletId, WalletPatch, WalletRecord, Written};

/// Limits of the store's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    /// Bytes on disk that the store may use; `None` is without limit.
    pub max_bytes: Option<u64>,
    /// Free bytes to leave on the disk: with less, loading stops, or wallets are evicted if the
    /// size is limited.
    pub min_free_bytes: u64,
}

/// Estimates which part of the file holds rows. redb reuses freed pages before the file grows, so
/// the file is assumed to be full whenever it grows; rows deleted later count as free space.
#[derive(Debug, Default)]
struct Gauge {
    bytes: u64,
    rows: u64,
}

impl Gauge {
    /// Bytes in use.
    fn used(&mut self, size: StoreSize) -> u64 {
        if size.disk_bytes != self.bytes {
            (self.bytes, self.rows) = (size.disk_bytes, size.rows);
        }
        self.rows = self.rows.max(size.rows);
        let used = u128::from(self.bytes) * u128::from(size.rows) / u128::from(self.rows.max(1));
        u64::try_from(used).unwrap_or(u64::MAX)
    }
}

#[derive(Debug, Default)]
pub(super) struct EvictionState {
    capacity: Mutex<Capacity>,
    gauge: Mutex<Gauge>,
    /// Times of the wallets' last requests since the start.
    used: Mutex<HashMap<Wallet, UnixMillis>>,
    /// Serializes evictions.
    turn: tokio::sync::Mutex<()>,
}

impl EvictionState {
    pub(super) fn capacity(&self) -> Capacity {
        *lock(&self.capacity)
    }

    /// Notes that a wallet was requested; keeps at most `max` such times.
    pub(super) fn used(&self, wallet: Wallet, now: UnixMillis, max: usize) {
        // Eviction order matters only with a size limit.
        if self.capacity().max_bytes.is_some() {
            let mut used = lock(&self.used);
            used.insert(wallet, now);
            drop_oldest(&mut used, max);
        }
    }

    fn last_use(&self, record: &WalletRecord) -> UnixMillis {
        let used = lock(&self.used).get(&record.wallet).copied();
        used.max(record.checked_at).unwrap_or(UnixMillis(0))
    }
}

/// Drops the older half if there are more than `max` entries.
fn drop_oldest(used: &mut HashMap<Wallet, UnixMillis>, max: usize) {
    if used.len() > max {
        let mut times: Vec<UnixMillis> = used.values().copied().collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        used.retain(|_, at| *at >= median);
    }
}

impl History {
    /// Limits the store from now on.
    pub fn set_capacity(&self, capacity: Capacity) {
        *lock(&self.inner.eviction_state.capacity) = capacity;
    }
}

impl Inner {
    /// Makes room for one more chunk, where the store has a limit.
    ///
    /// # Errors
    /// `StoreFull` where every wallet with rows is in use, or the disk has too little left.
    pub(super) async fn make_room(&self) -> Result<()> {
        let Some(state) = self.fill_state()? else { return Ok(()) };
        if !state.is_above(self.limits.eviction.from_percent) {
            return Ok(());
        }
        let _turn = self.eviction_state.turn.lock().await;
        loop {
            let Some(state) = self.fill_state()? else { return Ok(()) };
            if !state.is_above(self.limits.eviction.to_percent) {
                return Ok(());
            }
            if !state.may_evict {
                return state.check(self.limits.eviction.full_percent);
            }
            let mut evicted = 0;
            for (id, wallet) in self.evictable()? {
                evicted += u64::from(self.evict(id, wallet).await?);
                let state = self.fill_state()?;
                if state.is_none_or(|state| !state.is_above(self.limits.eviction.to_percent)) {
                    return Ok(());
                }
            }
            if evicted == 0 {
                return state.check(self.limits.eviction.full_percent);
            }
        }
    }

    /// How full the store is; `None` if no limit applies now.
    fn fill_state(&self) -> Result<Option<FillState>> {
        let capacity = self.eviction_state.capacity();
        if capacity == Capacity::default() {
            return Ok(None);
        }
        let Some(size) = self.store.size()? else { return Ok(None) };
        let used = lock(&self.eviction_state.gauge).used(size);
        let free = size.disk_free_bytes.unwrap_or(u64::MAX);
        if capacity.max_bytes.is_none() && free >= capacity.min_free_bytes {
            return Ok(None);
        }
        let left = free.saturating_sub(capacity.min_free_bytes);
        let by_disk = size.disk_bytes.saturating_add(left);
        let max = capacity.max_bytes.unwrap_or(0).min(by_disk);
        Ok(Some(FillState { used, max, may_evict: capacity.max_bytes.is_some() }))
    }

    /// Wallets with rows that have neither a reader nor a load, least recently requested first.
    fn evictable(&self) -> Result<Vec<(WalletId, Wallet)>> {
        let max = self.limits.eviction.wallets_max;
        let mut found: Vec<(UnixMillis, WalletId, Wallet)> = Vec::new();
        let mut behind = None;
        loop {
            let records = self.store.records(behind, self.limits.eviction.records_max)?;
            let Some(last) = records.last() else { break };
            behind = Some(last.id);
            let idle = records.iter().filter(|one| one.count > 0 && !self.is_attended(&one.wallet));
            found.extend(idle.map(|one| (self.eviction_state.last_use(one), one.id, one.wallet)));
            if found.len() > 2 * max {
                found.sort_unstable_by_key(|(at, id, _)| (*at, *id));
                found.truncate(max);
            }
        }
        found.sort_unstable_by_key(|(at, id, _)| (*at, *id));
        found.truncate(max);
        Ok(found.into_iter().map(|(_, id, wallet)| (id, wallet)).collect())
    }

    fn is_attended(&self, wallet: &Wallet) -> bool {
        lock(&self.loads).contains_key(wallet)
    }

    /// Deletes rows and coverage of a wallet, oldest first, in writes of bounded size. False if the
    /// wallet has come into use: its remaining rows stay.
    async fn evict(&self, id: WalletId, wallet: Wallet) -> Result<bool> {
        let Some(record) = self.view()?.wallet(&wallet).await?.filter(|record| record.id == id)
        else {
            return Ok(false);
        };
        let Some(top) = record.coverage.top().filter(|_| !self.is_attended(&wallet)) else {
            return Ok(false);
        };
        // Rolls back nothing, but advances the epoch, so that a chunk in flight becomes stale.
        let epoch = self.store.cut_back(id, top).await?;
        tracing::info!(rows = record.count, "the rows of a wallet are deleted to make room");
        self.metrics.wallets_evicted.add(1);
        loop {
            if self.is_attended(&wallet) {
                return Ok(false);
            }
            let max = self.limits.eviction.rows_max;
            let newest = self.view()?.oldest_part(id, max).await?;
            let patch = WalletPatch {
                reopen: vec![(0, newest.unwrap_or(Height::MAX))],
                anchors: newest.is_none().then(Vec::new),
                cut: Some(None),
                ..WalletPatch::default()
            };
            if let Written::Stale = self.store.update_wallet(id, epoch, patch).await? {
                return Ok(false);
            }
            if newest.is_none() {
                return Ok(true);
            }
        }
    }
}

/// How full the store is.
#[derive(Debug, Clone, Copy)]
struct FillState {
    used: u64,
    max: u64,
    may_evict: bool,
}

impl FillState {
    fn is_above(self, percent: u64) -> bool {
        !self.may_evict || u128::from(self.used) * 100 >= u128::from(self.max) * u128::from(percent)
    }

    fn check(self, percent: u64) -> Result<()> {
        if !self.is_above(percent) {
            return Ok(());
        }
        let reason = if self.may_evict {
            "storage.max_size is reached and every stored wallet is in use; raise it"
        } else {
            "the disk has less than storage.min_free left; make room"
        };
        Err(HistoryError::StoreFull { reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Address, ChainId};

    fn size(disk_bytes: u64, rows: u64) -> StoreSize {
        StoreSize { file_bytes: disk_bytes, disk_bytes, rows, disk_free_bytes: None }
    }

    #[test]
    fn deleted_rows_count_as_free_until_the_file_grows() {
        let mut gauge = Gauge::default();
        assert_eq!(gauge.used(size(1000, 10)), 1000);
        assert_eq!(gauge.used(size(1000, 5)), 500);
        assert_eq!(gauge.used(size(1000, 8)), 800);
        assert_eq!(gauge.used(size(1000, 20)), 1000, "it holds more rows than was known");
        assert_eq!(gauge.used(size(1100, 21)), 1100);
        assert_eq!(gauge.used(size(400, 7)), 400, "it was compacted");
        assert_eq!(Gauge::default().used(size(0, 0)), 0);
    }

    #[test]
    fn the_wallets_whose_use_is_remembered_are_bounded() {
        let eviction_state = EvictionState::default();
        *lock(&eviction_state.capacity) = Capacity { max_bytes: Some(1), min_free_bytes: 0 };
        let wallet = |seed| Wallet { chain: ChainId(1), address: Address::Solana([seed; 32]) };
        for seed in 0..=u8::MAX {
            eviction_state.used(wallet(seed), UnixMillis(u64::from(seed)), 10);
            let used = lock(&eviction_state.used);
            assert!(used.len() <= 10 && used.contains_key(&wallet(seed)), "{} wallets", used.len());
        }
    }
}
