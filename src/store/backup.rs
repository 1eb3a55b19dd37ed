//! A copy of the store as it is at one moment, written while others read and write.

use std::fs;
use std::io;
use std::ops::Bound;
use std::path::Path;

use redb::{
    Database, Durability, Key, ReadTransaction, ReadableTable as _, TableDefinition,
    TableHandle as _, Value, WriteTransaction,
};

use super::schema::{
    ACCOUNT_TO_STATE, CREDIT, HASH_KEY, KEY_TO_TOTAL, MINUTE_TO_CANDLE, MINUTE_TO_LEARNED,
    NAME_TO_NUMBER, ORDER_TO_CANDLE, ORDER_TO_LEARNED, ROW_KEY_TO_TRADE, TOKEN_ID_TO_TOKEN,
    TOKEN_TO_ID, USAGE_TO_RANGES, VENUE_ID_TO_NAME, VENUE_TO_ID, WALLET_ID_TO_ANCHORS,
    WALLET_ID_TO_PENDING, WALLET_ID_TO_STATE, WALLET_ID_TO_WALLET, WALLET_TO_ID, WANTED_TOKEN,
    WANTED_VALUE, WANTED_VALUE_TO_BESIDE,
};
use super::{FILE_NAME, StoreError, StoreOptions, disk, file};

/// What a copy is called until it is whole.
const PARTIAL_NAME: &str = "trades.redb.part";
/// Memory for pages of the copy, which is written once from its start to its end.
const CACHE_BYTES: usize = 16 << 20;

/// Copies what a transaction sees into a folder, under its own name only when it is whole: bytes.
///
/// # Errors
/// `Io` with `AlreadyExists` where the folder holds a store.
pub(super) fn copy_to(from: &ReadTransaction, to: &Path) -> Result<u64, StoreError> {
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
pub(super) fn write_copy(from: &ReadTransaction, partial: &Path) -> Result<(), StoreError> {
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
pub(super) fn copy_tables(from: &ReadTransaction, to: &Database) -> Result<(), StoreError> {
    let mut txn = to.begin_write()?;
    txn.set_durability(Durability::Immediate)
        .map_err(|error| StoreError::Engine(error.to_string()))?;
    txn.set_quick_repair(true);
    let mut copied = Copied { from, to: &txn, names: Vec::new() };
    copied.table(NAME_TO_NUMBER)?;
    copied.table(WALLET_TO_ID)?;
    copied.table(WALLET_ID_TO_WALLET)?;
    copied.table(WALLET_ID_TO_STATE)?;
    copied.table(WALLET_ID_TO_ANCHORS)?;
    copied.table(WALLET_ID_TO_PENDING)?;
    copied.table(ACCOUNT_TO_STATE)?;
    copied.table(ROW_KEY_TO_TRADE)?;
    copied.table(TOKEN_TO_ID)?;
    copied.table(TOKEN_ID_TO_TOKEN)?;
    copied.table(WANTED_TOKEN)?;
    copied.table(VENUE_TO_ID)?;
    copied.table(VENUE_ID_TO_NAME)?;
    copied.table(USAGE_TO_RANGES)?;
    copied.table(KEY_TO_TOTAL)?;
    copied.table(WANTED_VALUE)?;
    copied.table(WANTED_VALUE_TO_BESIDE)?;
    copied.table(MINUTE_TO_LEARNED)?;
    copied.table(ORDER_TO_LEARNED)?;
    copied.table(MINUTE_TO_CANDLE)?;
    copied.table(ORDER_TO_CANDLE)?;
    copied.table(CREDIT)?;
    copied.table(HASH_KEY)?;
    copied.check_complete()?;
    txn.commit()?;
    Ok(())
}

struct Copied<'a> {
    from: &'a ReadTransaction,
    to: &'a WriteTransaction,
    names: Vec<String>,
}

impl Copied<'_> {
    fn table<K: Key + 'static, V: Value + 'static>(
        &mut self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<(), StoreError> {
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

    /// A table that the list above lacks must not be lost without a word.
    fn check_complete(&self) -> Result<(), StoreError> {
        for table in self.from.list_tables()? {
            if !self.names.iter().any(|name| name == table.name()) {
                return Err(StoreError::Engine(format!("table {} is not copied", table.name())));
            }
        }
        Ok(())
    }
}
