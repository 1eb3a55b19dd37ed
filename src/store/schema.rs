//! The tables of the file, and the check that a file holds them.

use std::ops::Bound;

use redb::{
    Database, Durability, Key, ReadTransaction, ReadableDatabase as _, ReadableTable as _,
    TableDefinition, TableHandle as _, Value, WriteTransaction,
};

use super::{Result, StoreError};

/// Raised when a program of the previous version could no longer use the file. Values carry their
/// own version (`codec.rs`), so a new field alone does not raise it.
pub(super) const SCHEMA_VERSION: u64 = 3;

/// Names of the tables that errors report.
pub(super) mod names {
    pub(in crate::store) const WALLETS: &str = "wallet_id_to_wallet";
    pub(in crate::store) const STATES: &str = "wallet_id_to_state";
    pub(in crate::store) const ANCHORS: &str = "wallet_id_to_anchors";
    pub(in crate::store) const PENDING: &str = "wallet_id_to_pending";
    pub(in crate::store) const ACCOUNTS: &str = "account_to_state";
    pub(in crate::store) const TRADES: &str = "row_key_to_trade";
    pub(in crate::store) const TOKENS: &str = "token_id_to_token";
    pub(in crate::store) const WANTED: &str = "wanted_token";
    pub(in crate::store) const VENUES: &str = "venue_id_to_name";
    pub(in crate::store) const RANGES: &str = "usage_to_ranges";
    pub(in crate::store) const WANTED_VALUES: &str = "wanted_value";
    pub(in crate::store) const SIDE_PAYMENTS: &str = "wanted_value_to_beside";
    pub(in crate::store) const LEARNED: &str = "minute_to_learned";
    pub(in crate::store) const CANDLES: &str = "minute_to_candle";
}

pub(super) const FORMAT: &str = "format";
/// All forgotten wallets have lower numbers than this.
pub(super) const UNFORGOTTEN: &str = "unforgotten";

/// Declares each table once, and the functions that go over all of them.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident: $key:ty => $value:ty, $name:expr;)*) => {
        $($(#[$doc])*
        pub(super) const $table: TableDefinition<'_, $key, $value> = TableDefinition::new($name);)*

        const TABLE_NAMES: &[&str] = &[$($name),*];

        pub(super) fn create_tables(txn: &WriteTransaction) -> Result<()> {
            $(txn.open_table($table)?;)*
            Ok(())
        }

        /// Copies every table into a database that has none of them. A table that is not declared
        /// here is an error: a copy must not lose it.
        pub(super) fn copy_tables(from: &ReadTransaction, to: &Database) -> Result<()> {
            if let Some(other) = from.list_tables()?.find(|table| !TABLE_NAMES.contains(&table.name())) {
                return Err(StoreError::Engine(format!("table {} is not copied", other.name())));
            }
            let txn = begin_write(to)?;
            $(copy_table(from, &txn, $table)?;)*
            txn.commit()?;
            Ok(())
        }
    };
}

tables! {
    NAME_TO_NUMBER: &str => u64, "blotter";
    /// Chain and address to number.
    WALLET_TO_ID: &[u8] => u32, "wallet_to_id";
    /// Never changes once written.
    WALLET_ID_TO_WALLET: u32 => &[u8], names::WALLETS;
    WALLET_ID_TO_STATE: u32 => &[u8], names::STATES;
    /// Separate from the state because it is long and changes rarely.
    WALLET_ID_TO_ANCHORS: u32 => &[u8], names::ANCHORS;
    /// Separate from the state so that a start finds the few wallets that have one.
    WALLET_ID_TO_PENDING: u32 => &[u8], names::PENDING;
    /// Wallet and account to the state that the source keeps.
    ACCOUNT_TO_STATE: [u8; 36] => &[u8], names::ACCOUNTS;
    /// The trades; keys of `key.rs`.
    ROW_KEY_TO_TRADE: &[u8] => &[u8], names::TRADES;
    /// Chain and mint to number.
    TOKEN_TO_ID: &[u8] => u32, "token_to_id";
    TOKEN_ID_TO_TOKEN: u32 => &[u8], names::TOKENS;
    /// Tokens that lack a symbol or decimals, by the time of their last look-up.
    WANTED_TOKEN: [u8; 14] => (), names::WANTED;
    VENUE_TO_ID: &str => u32, "venue_to_id";
    VENUE_ID_TO_NAME: u32 => &str, names::VENUES;
    /// API key and wallet to the ranges that were delivered.
    USAGE_TO_RANGES: (u64, u32) => &[u8], names::RANGES;
    /// API key to trades delivered.
    KEY_TO_TOTAL: u64 => u64, "key_to_total";
    /// Chain, then a row's key without its leg: transactions with a pending row.
    WANTED_VALUE: &[u8] => (), names::WANTED_VALUES;
    /// The side payments of those, in big-endian bytes, where they are not zero.
    WANTED_VALUE_TO_SIDE_PAYMENT: &[u8] => [u8; 32], names::SIDE_PAYMENTS;
    /// Chain and minute to learned prices.
    MINUTE_TO_LEARNED: (u16, u32) => &[u8], names::LEARNED;
    /// The order in which the minutes arrived, so that the oldest arrival is removed first.
    ORDER_TO_LEARNED: u64 => (u16, u32), "order_to_learned";
    /// Chain and minute to the candle source's answer.
    MINUTE_TO_CANDLE: (u16, u32) => &[u8], names::CANDLES;
    ORDER_TO_CANDLE: u64 => (u16, u32), "order_to_candle";
    /// API key and hash of a forgotten wallet to the trades of the wallet that the key has counted.
    CREDIT: (u64, u128) => u64, "forgotten_to_credit";
    /// The secret part of those hashes.
    HASH_KEY: &str => u64, "hash_key";
}

fn copy_table<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    definition: TableDefinition<'_, K, V>,
) -> Result<()> {
    let (from, mut to) = (from.open_table(definition)?, to.open_table(definition)?);
    // A cursor fills each page; single inserts leave pages half empty.
    let mut cursor = to.upper_bound_mut(Bound::<K::SelfType<'_>>::Unbounded)?;
    for entry in from.iter()? {
        let (key, value) = entry?;
        cursor.insert_before(key.value(), value.value())?;
    }
    cursor.close()?;
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileFormat {
    /// No table yet.
    Empty,
    Current,
    /// Of an earlier format, to be brought up to date before it is used.
    Earlier(u64),
}

/// Reads the format.
///
/// # Errors
/// `NewerFormat` for a file of a newer program, `Foreign` for one of another program.
pub(super) fn inspect(txn: &ReadTransaction, name: &str) -> Result<FileFormat> {
    let foreign = || StoreError::Foreign {
        file: name.to_owned(),
        reason: "it belongs to another program".to_owned(),
    };
    let mut tables = txn.list_tables()?.peekable();
    if tables.peek().is_none() {
        return Ok(FileFormat::Empty);
    }
    if !tables.any(|table| table.name() == NAME_TO_NUMBER.name()) {
        return Err(foreign());
    }
    let format = match txn.open_table(NAME_TO_NUMBER) {
        Ok(table) => table.get(FORMAT)?.map(|number| number.value()),
        Err(redb::TableError::Storage(error)) => return Err(error.into()),
        Err(_) => None,
    };
    match format {
        None | Some(0) => Err(foreign()),
        Some(found) if found > SCHEMA_VERSION => {
            Err(StoreError::NewerFormat { found, supported: SCHEMA_VERSION })
        }
        Some(SCHEMA_VERSION) => Ok(FileFormat::Current),
        Some(found) => Ok(FileFormat::Earlier(found)),
    }
}

/// Creates all tables in an empty file, in one transaction.
pub(super) fn initialize(database: &Database) -> Result<()> {
    let txn = begin_write(database)?;
    create_tables(&txn)?;
    txn.open_table(NAME_TO_NUMBER)?.insert(FORMAT, SCHEMA_VERSION)?;
    txn.commit()?;
    Ok(())
}

/// Adds the tables that a file of an earlier program lacks.
pub(super) fn complete(database: &Database) -> Result<()> {
    let txn = database.begin_read()?;
    let found = txn.list_tables()?.filter(|table| TABLE_NAMES.contains(&table.name())).count();
    drop(txn);
    if found == TABLE_NAMES.len() {
        return Ok(());
    }
    let txn = begin_write(database)?;
    create_tables(&txn)?;
    txn.commit()?;
    Ok(())
}

/// Begins a write transaction. Its commit is durable before it returns, and after a crash the next
/// start takes milliseconds instead of a walk over the file.
pub(super) fn begin_write(database: &Database) -> Result<WriteTransaction> {
    let mut txn = database.begin_write()?;
    txn.set_durability(Durability::Immediate)
        .map_err(|error| StoreError::Engine(error.to_string()))?;
    txn.set_quick_repair(true);
    Ok(txn)
}
