//! Maintenance of a store that is in use: backup, compaction, forgetting a wallet, sizes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;

use super::file_store::FileStore;
use super::forget::forget_in;
use super::job::Job;
use super::journal::JournalEntry;
use super::{Arm, Result, Store, StoreError, WalletId, WalletRecord, backup};
use crate::domain::Wallet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSize {
    pub file_bytes: u64,
    /// Allocated bytes: only the written part of the length where the file system has sparse files.
    pub disk_bytes: u64,
    /// Stored rows of all wallets.
    pub rows: u64,
    /// Free bytes of the file system, where the store is a file.
    pub disk_free_bytes: Option<u64>,
}

impl Store {
    /// # Errors
    /// `Invalid` for a store that several processes share.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(clippy::unnecessary_wraps, reason = "a shared store is none")
    )]
    fn file(&self) -> Result<&FileStore> {
        match &self.0 {
            Arm::File(store) => Ok(store),
            #[cfg(feature = "postgres")]
            Arm::Shared(_) => Err(StoreError::Invalid("work on a file, of a shared database")),
        }
    }

    /// Writes a copy of what is stored now into a folder, while reads and writes go on, and returns
    /// its bytes. The file cannot reuse pages that are freed meanwhile, so it may grow until the
    /// copy is done.
    ///
    /// # Errors
    /// `Io` with `AlreadyExists` where the folder holds a store; nothing is overwritten.
    pub async fn backup(&self, to: &Path) -> Result<u64> {
        self.file()?.backup(to).await
    }

    /// Returns free space of the file to the disk while reads and writes go on, and the bytes
    /// before and after. The disk must have space for a copy.
    ///
    /// # Errors
    /// `Invalid` where the store is not a file on a disk, another compaction runs, or more is
    /// written than the copy can take; the file stays as it was.
    pub async fn compact(&self) -> Result<(u64, u64)> {
        self.file()?.compact().await
    }

    /// Deletes a wallet, as [`super::upkeep::forget`] does.
    pub async fn forget(&self, wallet: Wallet, seed: [u64; 4]) -> Result<Option<u64>> {
        match &self.0 {
            Arm::File(store) => store.forget(wallet, seed).await,
            #[cfg(feature = "postgres")]
            Arm::Shared(store) => Box::pin(store.forget(&wallet, seed)).await,
        }
    }

    /// Records of up to `limit` wallets with numbers above `behind`, by number.
    pub fn records(&self, behind: Option<WalletId>, limit: usize) -> Result<Vec<WalletRecord>> {
        self.file()?.view()?.read(|view| view.records(behind, limit))
    }

    /// `None` for a shared store.
    pub fn size(&self) -> Result<Option<StoreSize>> {
        self.file().ok().map(FileStore::size).transpose()
    }
}

impl FileStore {
    async fn backup(&self, to: &Path) -> Result<u64> {
        let (snapshot, to) = (self.inner.shared.snapshot()?, PathBuf::from(to));
        let (reply, copied) = oneshot::channel();
        let copy = move || {
            let copied = backup::copy_to(&snapshot.txn, &to);
            // Before the answer: its caller may close the store.
            drop(snapshot);
            let _ = reply.send(copied);
        };
        thread::Builder::new().name("store-backup".to_owned()).spawn(copy)?;
        copied.await.unwrap_or(Err(StoreError::Closed))
    }

    async fn forget(&self, wallet: Wallet, seed: [u64; 4]) -> Result<Option<u64>> {
        let (reply, answer) = oneshot::channel();
        let shared = Arc::clone(&self.inner.shared);
        let job = Job::Alone(Box::new(move || {
            let (opened, forget) =
                (shared.opened(), |database: &_| forget_in(database, &wallet, seed));
            let forgotten = shared.record_failure(opened, shared.with(forget));
            match &forgotten {
                Ok(_) => shared.journal.add([JournalEntry::Forget(wallet, seed)]),
                // The file may have lost the wallet all the same.
                Err(_) => shared.journal.abandon("a wallet could not be forgotten"),
            }
            let _ = reply.send(forgotten);
        }));
        self.ask(job, answer).await
    }

    fn size(&self) -> Result<StoreSize> {
        let shared = &self.inner.shared;
        let stats = self.stats()?;
        Ok(StoreSize {
            file_bytes: stats.file_bytes,
            disk_bytes: shared.disk_bytes()?,
            rows: stats.rows,
            disk_free_bytes: shared.disk_free_bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use redb::ReadableTable as _;
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::domain::{Address, ChainId, KeyId};
    use crate::store::key::usage_key;
    use crate::store::schema::{USAGE_TO_RANGES, begin_write};
    use crate::store::{StoreOptions, UsageUpdate};

    fn wallet(number: u8) -> Wallet {
        Wallet { chain: ChainId(2), address: Address::Evm([number; 20]) }
    }

    fn open() -> Store {
        let options = StoreOptions { cache_bytes: 1 << 20 };
        Store::on_backend(InMemoryBackend::new(), options).unwrap()
    }

    /// The file may have lost the wallet or not, so the copy could differ from it.
    #[tokio::test]
    async fn a_forget_that_failed_ends_the_copy_that_is_made() {
        let store = open();
        let id = store.intern(&wallet(1)).await.unwrap().id;
        let shared = &store.file().unwrap().inner.shared;
        let spoil = |database: &redb::Database| {
            let txn = begin_write(database)?;
            txn.open_table(USAGE_TO_RANGES)?.insert(usage_key(KeyId(1), id), &[0xFF; 3][..])?;
            Ok(txn.commit()?)
        };
        shared.with(spoil).unwrap();
        shared.journal.begin().unwrap();
        store.forget(wallet(2), [1; 4]).await.unwrap();
        assert_eq!(shared.journal.take().unwrap().1, 1, "what succeeds is done to the copy too");
        store.forget(wallet(1), [1; 4]).await.unwrap_err();
        assert!(shared.journal.take().is_err());
    }

    #[tokio::test]
    async fn usage_that_is_written_late_leaves_nothing_of_a_forgotten_wallet() {
        let store = open();
        let id = store.intern(&wallet(1)).await.unwrap().id;
        store.forget(wallet(1), [1; 4]).await.unwrap();
        let key = KeyId(1);
        let late = UsageUpdate { key, wallet: id, ranges: Vec::new(), total: 5, credit: None };
        store.write_usage(vec![late]).await.unwrap();
        let count = |database: &redb::Database| {
            Ok(begin_write(database)?.open_table(USAGE_TO_RANGES)?.iter()?.count())
        };
        assert_eq!(store.file().unwrap().inner.shared.with(count).unwrap(), 0);
        assert_eq!(store.view().unwrap().usage_total(key).await.unwrap(), 5);
    }
}
