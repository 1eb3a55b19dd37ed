//! Copies the store as of one moment, while others read and write.

use std::fs;
use std::io;
use std::path::Path;

use redb::ReadTransaction;

use super::schema::copy_tables;
use super::{FILE_NAME, Result, StoreError, StoreOptions, disk, file};

/// Name of a copy until it is complete.
const PARTIAL_NAME: &str = "trades.redb.part";
/// Page cache for the copy, which is written once from start to end.
const CACHE_BYTES: usize = 16 << 20;

/// Copies what a transaction sees into a folder, and returns the bytes of the copy.
///
/// # Errors
/// `Io` with `AlreadyExists` where the folder holds a store.
pub(super) fn copy_to(from: &ReadTransaction, to: &Path) -> Result<u64> {
    whole(to, |partial| write_copy(from, partial))
}

/// Has a copy written into a folder, and returns its bytes. It gets its name only when it is
/// complete.
///
/// # Errors
/// As [`copy_to`]; `Io` also where another process or thread writes one there.
pub(super) fn whole(to: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<u64> {
    disk::create_private_folder(to)?;
    // Two copies at once would write, and give its name to, one partial file. A file system without
    // locks has none of these errors.
    let folder = fs::File::open(to)?;
    if matches!(folder.try_lock(), Err(fs::TryLockError::WouldBlock)) {
        return Err(io::Error::other("another backup is written into this folder").into());
    }
    let (target, partial) = (to.join(FILE_NAME), to.join(PARTIAL_NAME));
    if target.exists() {
        return Err(io::Error::from(io::ErrorKind::AlreadyExists).into());
    }
    if let Err(error) = write(&partial) {
        let _ = fs::remove_file(&partial);
        return Err(error);
    }
    // A link fails where a file of that name exists by now; a rename would replace it.
    match fs::hard_link(&partial, &target) {
        Err(error) if has_no_links(&error) && !target.exists() => fs::rename(&partial, &target)?,
        linked => linked.and_then(|()| fs::remove_file(&partial))?,
    }
    folder.sync_all()?;
    Ok(fs::metadata(&target)?.len())
}

/// As FAT answers.
fn has_no_links(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported)
}

/// Removes what a crash may have left, and a link, which leads elsewhere.
pub(super) fn remove_left(partial: &Path) -> io::Result<()> {
    match fs::remove_file(partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes a copy in place of a file of that name.
pub(super) fn write_copy(from: &ReadTransaction, partial: &Path) -> Result<()> {
    remove_left(partial)?;
    let options = StoreOptions { cache_bytes: CACHE_BYTES };
    let backend = file::open_file(partial, options)?;
    let mut database = file::create_plain(&backend, options)?;
    copy_tables(from, &database)?;
    // Returns the space that was allocated in advance.
    database.compact().map_err(|error| StoreError::Engine(error.to_string()))?;
    Ok(())
}
