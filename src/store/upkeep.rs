//! Maintenance of a store that no process has open: copy, compaction, forgetting a wallet.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use redb::{CompactionError, StorageBackend as _};

use super::file::{self, SharedBackend};
use super::forget::forget_in;
use super::{FILE_NAME, Result, StoreError, StoreOptions, backup, disk};
use crate::domain::Wallet;

/// Rounds of moving pages, each a commit; few rounds move any.
const COMPACT_ROUNDS_MAX: usize = 64;

fn existing(folder: &Path, options: StoreOptions) -> Result<SharedBackend> {
    let path = folder.join(FILE_NAME);
    fs::metadata(&path)?;
    file::open_file(&path, options)
}

/// Copies the file into another folder while no process can write to it. The copy can be opened
/// like the original.
pub fn copy(folder: &Path, to: &Path, options: StoreOptions) -> Result<u64> {
    let backend = existing(folder, options)?;
    // Held until the end: a server that starts meanwhile finds the store in use.
    file::lock_whole(&backend, &backend.name)?;
    let bytes = backup::whole(to, |partial| {
        backup::remove_left(partial)?;
        let mut target = disk::private_file().write(true).create_new(true).open(partial)?;
        io::copy(&mut File::open(folder.join(FILE_NAME))?, &mut target)?;
        Ok(target.sync_all()?)
    })?;
    drop(backend);
    Ok(bytes)
}

/// Returns free pages to the file system, and the bytes before and after.
pub fn compact(folder: &Path, options: StoreOptions) -> Result<(u64, u64)> {
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

/// Deletes a wallet and the ranges that keys have read of it, and returns how many rows it had;
/// `None` for an unknown wallet. Totals of keys stay, and so does what each has counted of the
/// wallet, under a hash keyed by a secret of the file; `seed` becomes that secret where there is
/// none.
pub fn forget(
    folder: &Path,
    options: StoreOptions,
    wallet: &Wallet,
    seed: [u64; 4],
) -> Result<Option<u64>> {
    let backend = existing(folder, options)?;
    forget_in(&file::open_database(&backend, options)?, wallet, seed)
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
        // While it is open no other process may touch it.
        let refused = copy(&folder, &copied, OPTIONS);
        assert!(matches!(refused, Err(StoreError::Locked { .. })), "{refused:?}");
        assert!(matches!(compact(&folder, OPTIONS), Err(StoreError::Locked { .. })));
        let refused = forget(&folder, OPTIONS, &wallet(1), [1; 4]);
        assert!(matches!(refused, Err(StoreError::Locked { .. })));
        store.close().await;
        drop(store);

        // Where it cannot be written apart first, no half copy takes its name.
        let part = copied.join("trades.redb.part");
        fs::create_dir_all(&part).unwrap();
        assert!(copy(&folder, &copied, OPTIONS).is_err() && !copied.join(FILE_NAME).exists());
        fs::remove_dir(&part).unwrap();
        fs::write(&part, "half").unwrap();
        let held = File::open(&copied).unwrap();
        held.lock().unwrap();
        assert!(copy(&folder, &copied, OPTIONS).is_err() && part.exists(), "one is written there");
        drop(held);
        // A link in its place is not followed.
        let other = place.path().join("other");
        fs::rename(&part, &other).unwrap();
        std::os::unix::fs::symlink(&other, &part).unwrap();
        copy(&folder, &copied, OPTIONS).unwrap();
        assert!(!part.exists() && fs::read(&other).unwrap() == b"half");
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
