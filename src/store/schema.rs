//! The tables of the file and the check that a file is one of ours.

use redb::{
    Database, Durability, Key, ReadTransaction, ReadableDatabase as _, TableDefinition,
    TableHandle as _, Value, WriteTransaction,
};

use super::{Result, StoreError};

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
/// No wallet that has this number or a higher one was forgotten.
pub(super) const UNFORGOTTEN: &str = "unforgotten";

/// Something that is done with every table.
pub(super) trait ForTables {
    fn table<K: Key + 'static, V: Value + 'static>(
        &mut self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<()>;
}

/// Declares each table once, with what is done with all of them.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident: $key:ty => $value:ty, $name:expr;)*) => {
        $($(#[$doc])*
        pub(super) const $table: TableDefinition<'_, $key, $value> = TableDefinition::new($name);)*

        pub(super) fn create_tables(txn: &WriteTransaction) -> Result<()> {
            $(txn.open_table($table)?;)*
            Ok(())
        }

        pub(super) fn for_tables(each: &mut impl ForTables) -> Result<()> {
            $(each.table($table)?;)*
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
    /// Separate from the state so that a start finds the few that have one.
    WALLET_ID_TO_PENDING: u32 => &[u8], names::PENDING;
    /// Wallet and account to what the source remembers.
    ACCOUNT_TO_STATE: [u8; 36] => &[u8], names::ACCOUNTS;
    /// The trades; keys of `key.rs`.
    ROW_KEY_TO_TRADE: &[u8] => &[u8], names::TRADES;
    /// Chain and mint to number.
    TOKEN_TO_ID: &[u8] => u32, "token_to_id";
    TOKEN_ID_TO_TOKEN: u32 => &[u8], names::TOKENS;
    /// Tokens that lack a symbol or decimals, by when they were last asked for.
    WANTED_TOKEN: [u8; 14] => (), names::WANTED;
    VENUE_TO_ID: &str => u32, "venue_to_id";
    VENUE_ID_TO_NAME: u32 => &str, names::VENUES;
    /// API key and wallet to the ranges that were delivered.
    USAGE_TO_RANGES: (u64, u32) => &[u8], names::RANGES;
    /// API key to trades delivered.
    KEY_TO_TOTAL: u64 => u64, "key_to_total";
    /// Chain, then a row's key without its leg: transactions with a row that waits for its value.
    WANTED_VALUE: &[u8] => (), names::WANTED_VALUES;
    /// The side payments of those, in big-endian bytes; only where there was one.
    WANTED_VALUE_TO_BESIDE: &[u8] => [u8; 32], names::WANTED_BESIDE;
    /// Chain and minute to learned prices.
    MINUTE_TO_LEARNED: (u16, u32) => &[u8], names::LEARNED;
    /// In which order the minutes came, so that the first of them goes first.
    ORDER_TO_LEARNED: u64 => (u16, u32), "order_to_learned";
    /// Chain and minute to the candle source's answer.
    MINUTE_TO_CANDLE: (u16, u32) => &[u8], names::CANDLES;
    ORDER_TO_CANDLE: u64 => (u16, u32), "order_to_candle";
    /// API key and hash of a forgotten wallet to the trades of it that the key has counted.
    CREDIT: (u64, u128) => u64, "forgotten_to_credit";
    /// The secret part of those hashes.
    HASH_KEY: &str => u64, "hash_key";
}

/// What an opened file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileFormat {
    /// No table yet.
    Empty,
    Current,
    /// Of an earlier format, to be brought up to date before it is used.
    Earlier(u64),
}

/// Reads only. `NewerFormat` for a file that a later program has raised, `Foreign` for one that is
/// not ours.
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

/// Makes an empty file ours: every table exists from then on, in one transaction.
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
    let txn = begin_write(database)?;
    create_tables(&txn)?;
    txn.commit()?;
    Ok(())
}

/// Begins a change. Its commit is durable before it returns, and an unclean end then costs
/// milliseconds at the next start instead of a walk over all.
pub(super) fn begin_write(database: &Database) -> Result<WriteTransaction> {
    let mut txn = database.begin_write()?;
    txn.set_durability(Durability::Immediate)
        .map_err(|error| StoreError::Engine(error.to_string()))?;
    txn.set_quick_repair(true);
    Ok(txn)
}
