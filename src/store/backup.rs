//! A copy of the store as it is at one moment, written while others read and write.

use std::fs;
use std::io;
use std::ops::Bound;
use std::path::Path;

use redb::{
    Database, Key, ReadTransaction, ReadableTable as _, TableDefinition, TableHandle as _, Value,
    WriteTransaction,
};

use super::schema::{ForTables, begin_write, for_tables};
use super::{FILE_NAME, Result, StoreError, StoreOptions, disk, file};

/// What a copy is called until it is whole.
const PARTIAL_NAME: &str = "trades.redb.part";
/// Memory for pages of the copy, which is written once from its start to its end.
const CACHE_BYTES: usize = 16 << 20;

/// Copies what a transaction sees into a folder, under its own name only when it is whole: bytes.
///
/// # Errors
/// `Io` with `AlreadyExists` where the folder holds a store.
pub(super) fn copy_to(from: &ReadTransaction, to: &Path) -> Result<u64> {
    disk::create_private_folder(to)?;
    let (target, partial) = (to.join(FILE_NAME), to.join(PARTIAL_NAME));
    if target.exists() {
        return Err(io::Error::from(io::ErrorKind::AlreadyExists).into());
    }
    if let Err(error) = write_copy(from, &partial) {
        let _ = fs::remove_file(&partial);
        return Err(error);
    }
    // A link fails where a file of that name came meanwhile; a rename would replace it.
    fs::hard_link(&partial, &target)?;
    fs::remove_file(&partial)?;
    fs::File::open(to)?.sync_all()?;
    Ok(fs::metadata(&target)?.len())
}

/// Writes a copy under another name, where nothing that matters stands.
pub(super) fn write_copy(from: &ReadTransaction, partial: &Path) -> Result<()> {
    // Left by a copy that a crash cut off.
    match fs::remove_file(partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let options = StoreOptions { cache_bytes: CACHE_BYTES };
    let backend = file::open_file(partial, options)?;
    let mut database = file::create_plain(&backend, options)?;
    copy_tables(from, &database)?;
    // Gives back what the file was made longer by ahead of need.
    database.compact().map_err(|error| StoreError::Engine(error.to_string()))?;
    Ok(())
}

/// Copies every table into a database that has none of them.
pub(super) fn copy_tables(from: &ReadTransaction, to: &Database) -> Result<()> {
    let txn = begin_write(to)?;
    let mut copied = Copied { from, to: &txn, names: Vec::new() };
    for_tables(&mut copied)?;
    copied.check_complete()?;
    txn.commit()?;
    Ok(())
}

struct Copied<'a> {
    from: &'a ReadTransaction,
    to: &'a WriteTransaction,
    names: Vec<String>,
}

impl ForTables for Copied<'_> {
    fn table<K: Key + 'static, V: Value + 'static>(
        &mut self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<()> {
        self.names.push(definition.name().to_owned());
        let (from, mut to) = (self.from.open_table(definition)?, self.to.open_table(definition)?);
        // A cursor fills each page; single inserts leave pages half empty.
        let mut cursor = to.upper_bound_mut(Bound::<K::SelfType<'_>>::Unbounded)?;
        for entry in from.iter()? {
            let (key, value) = entry?;
            cursor.insert_before(key.value(), value.value())?;
        }
        cursor.close()?;
        Ok(())
    }
}

impl Copied<'_> {
    /// A table that the schema's list lacks must not be lost without a word.
    fn check_complete(&self) -> Result<()> {
        for table in self.from.list_tables()? {
            if !self.names.iter().any(|name| name == table.name()) {
                return Err(StoreError::Engine(format!("table {} is not copied", table.name())));
            }
        }
        Ok(())
    }
}
