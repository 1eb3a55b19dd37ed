//! Values of rows that their transactions do not contain: set once, kept when the rows are read
//! again, and waited for where a source failed.

use std::collections::HashMap;

use redb::{ReadableTable as _, Table, WriteTransaction};

use crate::domain::{ChainId, Trade, TxId, Units, ValueSource};

use super::StoreError;
use super::key::{RowKey, tx_of, wanted_value_key};
use super::schema::names::TRADES;
use super::schema::{WANTED_VALUE, WANTED_VALUE_TO_BESIDE};
use super::trade_codec::{self, StoredTrade};

/// A deleted row, key and value, whose transaction does not contain its value.
pub(super) type Gone = (Vec<u8>, Vec<u8>);

/// A transaction with a row that waits, and what it moved in addition to its tokens.
type Waiting = (Vec<u8>, Option<[u8; 32]>);

/// The transactions with a row that waits.
pub(super) struct PendingValues<'txn> {
    table: Table<'txn, &'static [u8], ()>,
    side_payment: Table<'txn, &'static [u8], [u8; 32]>,
}

impl<'txn> PendingValues<'txn> {
    pub(super) fn open(txn: &'txn WriteTransaction) -> Result<Self, StoreError> {
        Ok(Self {
            table: txn.open_table(WANTED_VALUE)?,
            side_payment: txn.open_table(WANTED_VALUE_TO_BESIDE)?,
        })
    }

    /// `rows` are those of `trades`, in their order.
    pub(super) fn add(
        &mut self,
        chain: ChainId,
        rows: &[(RowKey, StoredTrade)],
        trades: &[&Trade],
        side_payment: &HashMap<TxId, Units>,
    ) -> Result<(), StoreError> {
        let waits = |row: &StoredTrade| row.valued == ValueSource::Pending;
        for ((key, _), trade) in rows.iter().zip(trades).filter(|((_, row), _)| waits(row)) {
            let key = wanted_value_key(chain, key.bytes());
            self.table.insert(key.as_slice(), ())?;
            if let Some(units) = side_payment.get(&trade.key.tx).filter(|units| !units.is_zero()) {
                self.side_payment.insert(key.as_slice(), units.to_be_bytes::<32>())?;
            }
        }
        Ok(())
    }

    /// What waits of these rows, before [`PendingValues::forget`] of all rows there.
    pub(super) fn waiting(
        &self,
        chain: ChainId,
        rows: &[(RowKey, StoredTrade)],
    ) -> Result<Vec<Waiting>, StoreError> {
        let pending = rows.iter().filter(|(_, row)| row.valued == ValueSource::Pending);
        let waiting = pending.map(|(key, _)| {
            let key = wanted_value_key(chain, key.bytes());
            let side_payment = self.side_payment.get(key.as_slice())?.map(|units| units.value());
            Ok((key, side_payment))
        });
        waiting.collect()
    }

    /// Rows that stay where they were go on waiting.
    pub(super) fn put_back(&mut self, waiting: Vec<Waiting>) -> Result<(), StoreError> {
        for (key, side_payment) in waiting {
            self.table.insert(key.as_slice(), ())?;
            if let Some(units) = side_payment {
                self.side_payment.insert(key.as_slice(), units)?;
            }
        }
        Ok(())
    }

    /// The rows of these transactions are no more.
    pub(super) fn forget(&mut self, chain: ChainId, gone: &[Gone]) -> Result<(), StoreError> {
        gone.iter().try_for_each(|(key, _)| self.remove(chain, key))
    }

    pub(super) fn remove(&mut self, chain: ChainId, row_key: &[u8]) -> Result<(), StoreError> {
        let key = wanted_value_key(chain, row_key);
        self.table.remove(key.as_slice())?;
        self.side_payment.remove(key.as_slice())?;
        Ok(())
    }
}

/// Restores the values of rows that were replaced, where the transaction still decodes alike: the
/// same tokens in the same amounts, and no value of its own.
pub(super) fn keep(gone: &[Gone], rows: &mut [(RowKey, StoredTrade)]) -> Result<(), StoreError> {
    let mut given: HashMap<&[u8], Vec<StoredTrade>> = HashMap::new();
    for (key, value) in gone {
        let old = trade_codec::decode_trade(TRADES, value)?;
        if old.valued.is_derived() {
            given.entry(tx_of(key)).or_default().push(old);
        }
    }
    if given.is_empty() {
        return Ok(());
    }
    for rows in rows.chunk_by_mut(|(a, _), (b, _)| tx_of(a.bytes()) == tx_of(b.bytes())) {
        let tx = rows.first().map(|(key, _)| tx_of(key.bytes()).to_vec()).unwrap_or_default();
        let Some(given) = given.get(tx.as_slice()) else { continue };
        let fits = |old: &StoredTrade, new: &StoredTrade| {
            let what = |row: &StoredTrade| (row.token, row.side, row.units);
            what(old) == what(new) && !new.valued.is_of_transaction()
        };
        if !given.iter().all(|old| rows.iter().any(|(_, new)| fits(old, new))) {
            continue;
        }
        for (_, new) in rows {
            if let Some(old) = given.iter().find(|old| fits(old, new)) {
                (new.native, new.valued) = (old.native, old.valued);
            }
        }
    }
    Ok(())
}
