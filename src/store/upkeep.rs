//! What is done to a store that nobody else has open: copy it, make it smaller, forget a wallet.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Bound;
use std::path::Path;

use redb::{BackendError, CompactionError, Database, StorageBackend as _};

use super::credit;
use super::file::{self, SharedBackend};
use super::key::{RowKey, account_key, address_key};
use super::schema::{
    ACCOUNT_TO_STATE, ROW_KEY_TO_TRADE, WALLET_ID_TO_ANCHORS, WALLET_ID_TO_PENDING,
    WALLET_ID_TO_STATE, WALLET_ID_TO_WALLET, WALLET_TO_ID, WANTED_VALUE, WANTED_VALUE_TO_BESIDE,
};
use super::{FILE_NAME, StoreError, StoreOptions, WalletId};
use crate::domain::Wallet;

/// Rounds of moving pages; each one is a commit, and few do anything.
const COMPACT_ROUNDS_MAX: usize = 64;

/// A store's file that is there.
fn existing(folder: &Path, options: StoreOptions) -> Result<SharedBackend, StoreError> {
    let path = folder.join(FILE_NAME);
    fs::metadata(&path)?;
    file::open_file(&path, options)
}

/// Copies the file into another folder while nobody can write to it. What is copied can be opened
/// like the original.
pub fn copy(folder: &Path, to: &Path, options: StoreOptions) -> Result<u64, StoreError> {
    let backend = existing(folder, options)?;
    // Held until the end: a server that starts meanwhile is told that the store is in use.
    match backend.try_lock_range(Bound::Unbounded, Bound::Unbounded) {
        Ok(true) | Err(BackendError::Unsupported) => {}
        Ok(false) => {
            let file = folder.join(FILE_NAME).display().to_string();
            return Err(StoreError::Locked { file });
        }
        Err(error) => return Err(io::Error::from(error).into()),
    }
    file::create_folder(to)?;
    let target = to.join(FILE_NAME);
    let bytes = copy_new(&folder.join(FILE_NAME), &target)?;
    drop(backend);
    Ok(bytes)
}

/// Never over a file that is there.
fn copy_new(from: &Path, to: &Path) -> io::Result<u64> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut target = options.open(to)?;
    let bytes = io::copy(&mut File::open(from)?, &mut target)?;
    target.sync_all()?;
    Ok(bytes)
}

/// Gives free pages back to the file system: bytes before and after.
pub fn compact(folder: &Path, options: StoreOptions) -> Result<(u64, u64), StoreError> {
    let backend = existing(folder, options)?;
    let before = backend.len()?;
    let mut database = file::open_database(&backend, options)?;
    for _ in 0..COMPACT_ROUNDS_MAX {
        match database.compact() {
            Ok(true) => {}
            Ok(false) => break,
            Err(CompactionError::Storage(error)) => return Err(error.into()),
            Err(error) => return Err(StoreError::Engine(error.to_string())),
        }
    }
    drop(database);
    Ok((before, fs::metadata(folder.join(FILE_NAME))?.len()))
}

/// Deletes all that is stored of a wallet, and what readers were given of it. Totals of keys stay,
/// and so does what each has counted of the wallet, under a hash keyed by a secret of the file;
/// `seed` becomes that secret where there is none. How many rows there were; `None` where the wallet is not known.
pub fn forget(
    folder: &Path,
    options: StoreOptions,
    wallet: &Wallet,
    seed: [u64; 4],
) -> Result<Option<u64>, StoreError> {
    let backend = existing(folder, options)?;
    forget_in(&file::open_database(&backend, options)?, wallet, seed)
}

/// The same in a database that is open. Only the writer may call it, between its transactions.
pub(super) fn forget_in(
    database: &Database,
    wallet: &Wallet,
    seed: [u64; 4],
) -> Result<Option<u64>, StoreError> {
    let mut txn = database.begin_write()?;
    txn.set_quick_repair(true);
    let key = address_key(wallet.chain, &wallet.address);
    let found = {
        let mut ids = txn.open_table(WALLET_TO_ID)?;
        ids.remove(key.as_slice())?.map(|id| WalletId(id.value()))
    };
    let Some(id) = found else {
        txn.abort()?;
        return Ok(None);
    };
    credit::keep(&txn, id, wallet, seed)?;
    txn.open_table(WALLET_ID_TO_WALLET)?.remove(id.0)?;
    txn.open_table(WALLET_ID_TO_STATE)?.remove(id.0)?;
    txn.open_table(WALLET_ID_TO_ANCHORS)?.remove(id.0)?;
    txn.open_table(WALLET_ID_TO_PENDING)?.remove(id.0)?;
    let (start, end) = (account_key(id, &[0; 32]), account_key(id, &[0xFF; 32]));
    txn.open_table(ACCOUNT_TO_STATE)?.retain_in(start..=end, |_, _| false)?;
    let mut rows = 0;
    let (start, end) = (RowKey::start(id), RowKey::end(id));
    txn.open_table(ROW_KEY_TO_TRADE)?.retain_in(start.bytes()..end.bytes(), |_, _| {
        rows += 1;
        false
    })?;
    let of_chain = |key: RowKey| [&wallet.chain.0.to_be_bytes(), key.bytes()].concat();
    let (start, end) = (of_chain(RowKey::start(id)), of_chain(RowKey::end(id)));
    let wanted = start.as_slice()..end.as_slice();
    txn.open_table(WANTED_VALUE)?.retain_in(wanted.clone(), |_, ()| false)?;
    txn.open_table(WANTED_VALUE_TO_BESIDE)?.retain_in(wanted, |_, _| false)?;
    txn.commit()?;
    Ok(Some(rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Address, ChainId};
    use crate::store::Store;

    const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 1 << 20 };

    fn wallet(number: u8) -> Wallet {
        Wallet { chain: ChainId(2), address: Address::Evm([number; 20]) }
    }

    #[tokio::test]
    async fn a_store_is_copied_made_smaller_and_forgets() {
        let place = tempfile::tempdir().unwrap();
        let (folder, copied) = (place.path().join("one"), place.path().join("two"));
        assert!(matches!(copy(&folder, &copied, OPTIONS), Err(StoreError::Io(_))));
        let store = Store::open(&folder, OPTIONS).unwrap();
        let first = store.intern(&wallet(1)).await.unwrap();
        store.intern(&wallet(2)).await.unwrap();
        // While it is open nobody else may touch it.
        let refused = copy(&folder, &copied, OPTIONS);
        assert!(matches!(refused, Err(StoreError::Locked { .. })), "{refused:?}");
        assert!(matches!(compact(&folder, OPTIONS), Err(StoreError::Locked { .. })));
        let refused = forget(&folder, OPTIONS, &wallet(1), [1; 4]);
        assert!(matches!(refused, Err(StoreError::Locked { .. })));
        store.close().await;
        drop(store);

        copy(&folder, &copied, OPTIONS).unwrap();
        assert!(copy(&folder, &copied, OPTIONS).is_err(), "over a file that is there");
        assert_eq!(forget(&folder, OPTIONS, &wallet(1), [1; 4]).unwrap(), Some(0));
        assert_eq!(forget(&folder, OPTIONS, &wallet(1), [1; 4]).unwrap(), None);
        let (before, after) = compact(&folder, OPTIONS).unwrap();
        assert!(after <= before);
        for (folder, knows) in [(&folder, false), (&copied, true)] {
            let store = Store::open(folder, OPTIONS).unwrap();
            let view = store.view().unwrap();
            assert_eq!(view.wallet(&wallet(1)).await.unwrap().is_some(), knows);
            assert!(view.wallet(&wallet(2)).await.unwrap().is_some());
            assert_eq!(view.wallet_by_id(first.id).await.unwrap().is_some(), knows);
            drop(view);
            store.close().await;
        }
    }
}
