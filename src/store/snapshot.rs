//! Snapshots that readers share between two commits: a read transaction with the tables that most
//! reads need. Beginning it and opening them costs as much as reading some rows.

use std::sync::{Arc, Mutex, OnceLock};

use redb::{Key, ReadOnlyTable, ReadTransaction, TableDefinition, Value};

use super::schema::{ROW_KEY_TO_TRADE, TOKEN_TO_ID, WALLET_ID_TO_STATE, WALLET_TO_ID};
use super::{LIMITS, Result, WalletId, WalletRecord};
use crate::domain::{BoundedCache, UnixSeconds, Wallet, lock, opaque};

type Opened<K, V> = OnceLock<ReadOnlyTable<K, V>>;

pub(super) struct Snapshot {
    pub(super) txn: ReadTransaction,
    /// Edition of the reader cache, from before the transaction began.
    pub(super) edition: u64,
    /// The opening of the file that it reads.
    pub(super) opened: u64,
    /// Keeps its database open if another file replaces it.
    _pin: Arc<()>,
    wallet_ids: Opened<&'static [u8], u32>,
    token_ids: Opened<&'static [u8], u32>,
    states: Opened<u32, &'static [u8]>,
    trades: Opened<&'static [u8], &'static [u8]>,
    /// Wallets that were looked up: consecutive pages look up the same one.
    pub(super) records: BoundedCache<Wallet, Arc<WalletRecord>>,
    /// Time of the oldest row of wallets that have rows.
    pub(super) first_times: BoundedCache<WalletId, UnixSeconds>,
}

impl Snapshot {
    pub(super) fn new(txn: ReadTransaction, edition: u64, opened: u64, pin: Arc<()>) -> Self {
        Self {
            txn,
            edition,
            opened,
            _pin: pin,
            wallet_ids: OnceLock::new(),
            token_ids: OnceLock::new(),
            states: OnceLock::new(),
            trades: OnceLock::new(),
            records: BoundedCache::new(LIMITS.snapshot_records),
            first_times: BoundedCache::new(LIMITS.snapshot_records),
        }
    }

    pub(super) fn wallet_ids(&self) -> Result<&ReadOnlyTable<&'static [u8], u32>> {
        self.table(&self.wallet_ids, WALLET_TO_ID)
    }

    pub(super) fn token_ids(&self) -> Result<&ReadOnlyTable<&'static [u8], u32>> {
        self.table(&self.token_ids, TOKEN_TO_ID)
    }

    pub(super) fn states(&self) -> Result<&ReadOnlyTable<u32, &'static [u8]>> {
        self.table(&self.states, WALLET_ID_TO_STATE)
    }

    pub(super) fn trades(&self) -> Result<&ReadOnlyTable<&'static [u8], &'static [u8]>> {
        self.table(&self.trades, ROW_KEY_TO_TRADE)
    }

    fn table<'a, K: Key + 'static, V: Value + 'static>(
        &self,
        kept: &'a Opened<K, V>,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<&'a ReadOnlyTable<K, V>> {
        if let Some(table) = kept.get() {
            return Ok(table);
        }
        let table = self.txn.open_table(definition)?;
        Ok(kept.get_or_init(|| table))
    }
}

opaque!(Snapshot);

/// The snapshot that new readers get, for as long as nothing was committed since.
#[derive(Debug, Default)]
pub(super) struct Latest(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How often the snapshot was dropped: one that began earlier is not the latest.
    changes: u64,
    kept: Option<Arc<Snapshot>>,
}

impl Latest {
    /// The shared snapshot, else a new one. No lock is held while it begins.
    pub(super) fn get_or(&self, begin: impl FnOnce() -> Result<Snapshot>) -> Result<Arc<Snapshot>> {
        let changes = {
            let state = lock(&self.0);
            if let Some(kept) = &state.kept {
                return Ok(Arc::clone(kept));
            }
            state.changes
        };
        let snapshot = Arc::new(begin()?);
        let mut state = lock(&self.0);
        if state.changes == changes {
            state.kept = Some(Arc::clone(&snapshot));
        }
        Ok(snapshot)
    }

    /// Drops the shared snapshot: before a commit, so that it keeps no page from being reused;
    /// after it, before any reader is notified; and when the file is closed.
    pub(super) fn forget(&self) {
        let mut state = lock(&self.0);
        state.changes += 1;
        let kept = state.kept.take();
        drop(state);
        drop(kept);
    }
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;
    use redb::{Database, ReadableDatabase as _};

    use super::*;

    #[test]
    fn a_snapshot_is_kept_until_it_is_forgotten_and_never_where_it_began_before_that() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let begin = || Ok(Snapshot::new(database.begin_read().unwrap(), 0, 1, Arc::default()));
        let latest = Latest::default();
        let first = latest.get_or(begin).unwrap();
        assert!(Arc::ptr_eq(&first, &latest.get_or(begin).unwrap()), "shared");
        latest.forget();
        let overtaken = latest.get_or(|| {
            let snapshot = begin();
            latest.forget();
            snapshot
        });
        let (overtaken, now) = (overtaken.unwrap(), latest.get_or(begin).unwrap());
        assert!(!Arc::ptr_eq(&first, &now) && !Arc::ptr_eq(&overtaken, &now));
        assert!(Arc::ptr_eq(&now, &latest.get_or(begin).unwrap()));
    }
}
