//! The tables of the file and the check that a file is one of ours.

use redb::{
    Database, ReadTransaction, ReadableDatabase as _, TableDefinition, TableHandle as _,
    WriteTransaction,
};

use super::StoreError;

/// Raised when a program of the version before could no longer use the file. Values carry their
/// own version (`codec.rs`), so a new field alone does not raise it.
pub(super) const SCHEMA_VERSION: u64 = 3;

/// Names of the tables that errors name.
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
    pub(in crate::store) const WANTED_BESIDE: &str = "wanted_value_to_beside";
    pub(in crate::store) const LEARNED: &str = "minute_to_learned";
    pub(in crate::store) const CANDLES: &str = "minute_to_candle";
}

pub(super) const FORMAT: &str = "format";

/// API key and hash of a forgotten wallet to the trades of it that the key has counted.
pub(super) const CREDIT: TableDefinition<'_, (u64, u128), u64> =
    TableDefinition::new("forgotten_to_credit");
/// The secret part of those hashes.
pub(super) const HASH_KEY: TableDefinition<'_, &str, u64> = TableDefinition::new("hash_key");
pub(super) const NAME_TO_NUMBER: TableDefinition<'_, &str, u64> = TableDefinition::new("blotter");

/// Chain and address to number.
pub(super) const WALLET_TO_ID: TableDefinition<'_, &[u8], u32> =
    TableDefinition::new("wallet_to_id");
/// Never changes once written.
pub(super) const WALLET_ID_TO_WALLET: TableDefinition<'_, u32, &[u8]> =
    TableDefinition::new(names::WALLETS);
pub(super) const WALLET_ID_TO_STATE: TableDefinition<'_, u32, &[u8]> =
    TableDefinition::new(names::STATES);
/// Separate from the state because it is long and changes rarely.
pub(super) const WALLET_ID_TO_ANCHORS: TableDefinition<'_, u32, &[u8]> =
    TableDefinition::new(names::ANCHORS);
/// Separate from the state so that a start finds the few that have one.
pub(super) const WALLET_ID_TO_PENDING: TableDefinition<'_, u32, &[u8]> =
    TableDefinition::new(names::PENDING);
/// Wallet and account to what the source remembers.
pub(super) const ACCOUNT_TO_STATE: TableDefinition<'_, [u8; 36], &[u8]> =
    TableDefinition::new(names::ACCOUNTS);
/// The trades; keys of `key.rs`.
pub(super) const ROW_KEY_TO_TRADE: TableDefinition<'_, &[u8], &[u8]> =
    TableDefinition::new(names::TRADES);
/// Chain and mint to number.
pub(super) const TOKEN_TO_ID: TableDefinition<'_, &[u8], u32> = TableDefinition::new("token_to_id");
pub(super) const TOKEN_ID_TO_TOKEN: TableDefinition<'_, u32, &[u8]> =
    TableDefinition::new(names::TOKENS);
/// Tokens that lack a symbol or decimals, by when they were last asked for.
pub(super) const WANTED_TOKEN: TableDefinition<'_, [u8; 14], ()> =
    TableDefinition::new(names::WANTED);
pub(super) const VENUE_TO_ID: TableDefinition<'_, &str, u32> = TableDefinition::new("venue_to_id");
pub(super) const VENUE_ID_TO_NAME: TableDefinition<'_, u32, &str> =
    TableDefinition::new(names::VENUES);
/// API key and wallet to the ranges that were delivered.
pub(super) const USAGE_TO_RANGES: TableDefinition<'_, (u64, u32), &[u8]> =
    TableDefinition::new(names::RANGES);
/// API key to trades delivered.
pub(super) const KEY_TO_TOTAL: TableDefinition<'_, u64, u64> = TableDefinition::new("key_to_total");

/// Chain, then a row's key without its leg: transactions with a row that waits for its value.
pub(super) const WANTED_VALUE: TableDefinition<'_, &[u8], ()> =
    TableDefinition::new(names::WANTED_VALUES);
/// The side payments of those, in big-endian bytes; only where there was one.
pub(super) const WANTED_VALUE_TO_BESIDE: TableDefinition<'_, &[u8], [u8; 32]> =
    TableDefinition::new(names::WANTED_BESIDE);
/// Chain and minute to learned prices.
pub(super) const MINUTE_TO_LEARNED: TableDefinition<'_, (u16, u32), &[u8]> =
    TableDefinition::new(names::LEARNED);
/// In which order the minutes came, so that the first of them goes first.
pub(super) const ORDER_TO_LEARNED: TableDefinition<'_, u64, (u16, u32)> =
    TableDefinition::new("order_to_learned");
/// Chain and minute to the candle source's answer.
pub(super) const MINUTE_TO_CANDLE: TableDefinition<'_, (u16, u32), &[u8]> =
    TableDefinition::new(names::CANDLES);
pub(super) const ORDER_TO_CANDLE: TableDefinition<'_, u64, (u16, u32)> =
    TableDefinition::new("order_to_candle");

/// What an opened file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileFormat {
    /// No table yet.
    Empty,
    Current,
    /// Of an earlier format, to be brought up to date before it is used.
    Earlier(u64),
    NotOurs,
}

/// Reads only. `NewerFormat` for a file that a later program has raised.
pub(super) fn inspect(txn: &ReadTransaction) -> Result<FileFormat, StoreError> {
    let mut tables = txn.list_tables()?.peekable();
    if tables.peek().is_none() {
        return Ok(FileFormat::Empty);
    }
    if !tables.any(|table| table.name() == NAME_TO_NUMBER.name()) {
        return Ok(FileFormat::NotOurs);
    }
    let format = match txn.open_table(NAME_TO_NUMBER) {
        Ok(table) => table.get(FORMAT)?.map(|number| number.value()),
        Err(redb::TableError::Storage(error)) => return Err(error.into()),
        Err(_) => None,
    };
    match format {
        None | Some(0) => Ok(FileFormat::NotOurs),
        Some(found) if found > SCHEMA_VERSION => {
            Err(StoreError::NewerFormat { found, supported: SCHEMA_VERSION })
        }
        Some(SCHEMA_VERSION) => Ok(FileFormat::Current),
        Some(found) => Ok(FileFormat::Earlier(found)),
    }
}

/// Makes an empty file ours: every table exists from then on, in one transaction.
pub(super) fn initialize(database: &Database) -> Result<(), StoreError> {
    let mut txn = database.begin_write()?;
    txn.set_quick_repair(true);
    create_tables(&txn)?;
    txn.open_table(NAME_TO_NUMBER)?.insert(FORMAT, SCHEMA_VERSION)?;
    txn.commit()?;
    Ok(())
}

/// Adds the tables that a file of an earlier program lacks.
pub(super) fn complete(database: &Database) -> Result<(), StoreError> {
    let txn = database.begin_read()?;
    let later = [
        WANTED_VALUE.name(),
        WANTED_VALUE_TO_BESIDE.name(),
        MINUTE_TO_LEARNED.name(),
        MINUTE_TO_CANDLE.name(),
        CREDIT.name(),
    ];
    let found: Vec<String> = txn.list_tables()?.map(|table| table.name().to_owned()).collect();
    drop(txn);
    if later.iter().all(|name| found.iter().any(|found| found == name)) {
        return Ok(());
    }
    let mut txn = database.begin_write()?;
    txn.set_quick_repair(true);
    create_tables(&txn)?;
    txn.commit()?;
    Ok(())
}

pub(super) fn create_tables(txn: &WriteTransaction) -> Result<(), StoreError> {
    txn.open_table(WALLET_TO_ID)?;
    txn.open_table(WALLET_ID_TO_WALLET)?;
    txn.open_table(WALLET_ID_TO_STATE)?;
    txn.open_table(WALLET_ID_TO_ANCHORS)?;
    txn.open_table(WALLET_ID_TO_PENDING)?;
    txn.open_table(ACCOUNT_TO_STATE)?;
    txn.open_table(ROW_KEY_TO_TRADE)?;
    txn.open_table(TOKEN_TO_ID)?;
    txn.open_table(TOKEN_ID_TO_TOKEN)?;
    txn.open_table(WANTED_TOKEN)?;
    txn.open_table(VENUE_TO_ID)?;
    txn.open_table(VENUE_ID_TO_NAME)?;
    txn.open_table(USAGE_TO_RANGES)?;
    txn.open_table(KEY_TO_TOTAL)?;
    txn.open_table(WANTED_VALUE)?;
    txn.open_table(WANTED_VALUE_TO_BESIDE)?;
    txn.open_table(MINUTE_TO_LEARNED)?;
    txn.open_table(ORDER_TO_LEARNED)?;
    txn.open_table(MINUTE_TO_CANDLE)?;
    txn.open_table(ORDER_TO_CANDLE)?;
    txn.open_table(CREDIT)?;
    txn.open_table(HASH_KEY)?;
    Ok(())
}
