//! Derived values of rows: set once, kept when rows are read again, pending where a source failed.

use std::collections::{HashMap, HashSet};

use redb::{ReadableTable as _, Table, WriteTransaction};

use crate::domain::{ChainId, Family, Trade, TxId, Units, ValueSource};

use super::key::{RowKey, read_row_key, tx_of, wanted_value_key};
use super::schema::names::TRADES;
use super::schema::{WANTED_VALUE, WANTED_VALUE_TO_SIDE_PAYMENT};
use super::trade_codec::{self, StoredTrade};
use super::{Chunk, Result};

/// Key and value of a deleted row whose native value a new read may be unable to find again.
pub(super) type DeletedRow = (Vec<u8>, Vec<u8>);

/// What a second read did not see of the transactions whose rows it replaces.
pub(super) struct SecondRead<'a> {
    pub(super) family: Family,
    unshown: &'a HashSet<TxId>,
    /// Unshown transactions in which the read found no trade.
    tradeless: HashSet<TxId>,
}

impl<'a> SecondRead<'a> {
    pub(super) fn of(chunk: &'a Chunk, family: Family) -> Self {
        let mut tradeless = chunk.unshown.clone();
        for trade in &chunk.trades {
            tradeless.remove(&trade.key.tx);
        }
        Self { family, unshown: &chunk.unshown, tradeless }
    }

    /// Whether a stored row has an exact value that the read could not see.
    pub(super) fn may_lack(&self, key: &[u8], value: &[u8]) -> bool {
        self.exact_of(self.unshown, key, value).is_some()
    }

    /// The transaction of a stored row, if its rows are kept: the row is a sale with an exact
    /// value, and the read found no trade because it could not see that value. The payment of a
    /// purchase is in the transaction or its logs, so a read that finds no purchase has seen all of
    /// it.
    pub(super) fn kept_transaction(&self, key: &[u8], value: &[u8]) -> Option<TxId> {
        self.exact_of(&self.tradeless, key, value).filter(|_| trade_codec::is_sale(value))
    }

    pub(super) fn may_keep_rows(&self) -> bool {
        !self.tradeless.is_empty()
    }

    fn exact_of(&self, ids: &HashSet<TxId>, key: &[u8], value: &[u8]) -> Option<TxId> {
        if ids.is_empty() || !trade_codec::has_exact_value(value) {
            return None;
        }
        read_row_key(key, self.family).map(|key| key.tx).filter(|tx| ids.contains(tx))
    }
}

/// The key of a transaction with a pending row, and its side payment.
type Waiting = (Vec<u8>, Option<[u8; 32]>);

/// The transactions with pending rows.
pub(super) struct PendingValues<'txn> {
    table: Table<'txn, &'static [u8], ()>,
    side_payment: Table<'txn, &'static [u8], [u8; 32]>,
}

impl<'txn> PendingValues<'txn> {
    pub(super) fn open(txn: &'txn WriteTransaction) -> Result<Self> {
        Ok(Self {
            table: txn.open_table(WANTED_VALUE)?,
            side_payment: txn.open_table(WANTED_VALUE_TO_SIDE_PAYMENT)?,
        })
    }

    /// Adds the pending ones of `rows`, which are those of `trades` in their order.
    pub(super) fn add(
        &mut self,
        chain: ChainId,
        rows: &[(RowKey, StoredTrade)],
        trades: &[&Trade],
        side_payment: &HashMap<TxId, Units>,
    ) -> Result<()> {
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

    /// The entries of the pending ones of these rows.
    pub(super) fn waiting(
        &self,
        chain: ChainId,
        rows: &[(RowKey, StoredTrade)],
    ) -> Result<Vec<Waiting>> {
        let pending = rows.iter().filter(|(_, row)| row.valued == ValueSource::Pending);
        let waiting = pending.map(|(key, _)| {
            let key = wanted_value_key(chain, key.bytes());
            let side_payment = self.side_payment.get(key.as_slice())?.map(|units| units.value());
            Ok((key, side_payment))
        });
        waiting.collect()
    }

    /// Restores the entries of rows that stay, after [`PendingValues::forget`] of all rows there.
    pub(super) fn put_back(&mut self, waiting: Vec<Waiting>) -> Result<()> {
        for (key, side_payment) in waiting {
            self.table.insert(key.as_slice(), ())?;
            if let Some(units) = side_payment {
                self.side_payment.insert(key.as_slice(), units)?;
            }
        }
        Ok(())
    }

    /// Removes the entries of deleted rows.
    pub(super) fn forget(&mut self, chain: ChainId, gone: &[DeletedRow]) -> Result<()> {
        gone.iter().try_for_each(|(key, _)| self.remove(chain, key))
    }

    pub(super) fn remove(&mut self, chain: ChainId, row_key: &[u8]) -> Result<()> {
        let key = wanted_value_key(chain, row_key);
        self.table.remove(key.as_slice())?;
        self.side_payment.remove(key.as_slice())?;
        Ok(())
    }
}

/// Restores the values of replaced rows whose transaction still decodes to the same tokens and
/// amounts without a value of its own. Exact values are in `gone` only if the read lacks them.
pub(super) fn keep(gone: &[DeletedRow], rows: &mut [(RowKey, StoredTrade)]) -> Result<()> {
    let mut given: HashMap<&[u8], Vec<StoredTrade>> = HashMap::new();
    for (key, value) in gone {
        let old = trade_codec::decode_trade(TRADES, value)?;
        if old.valued.is_derived() || old.valued.is_of_transaction() {
            given.entry(tx_of(key)).or_default().push(old);
        }
    }
    if given.is_empty() {
        return Ok(());
    }
    for rows in rows.chunk_by_mut(|(a, _), (b, _)| tx_of(a.bytes()) == tx_of(b.bytes())) {
        let tx = rows.first().map(|(key, _)| tx_of(key.bytes()).to_vec()).unwrap_or_default();
        let Some(given) = given.get(tx.as_slice()) else { continue };
        let is_alike = |old: &StoredTrade, new: &StoredTrade| {
            let what = |row: &StoredTrade| (row.token, row.side, row.units);
            what(old) == what(new)
        };
        let fits = |old: &StoredTrade, new: &StoredTrade| {
            is_alike(old, new) && !new.valued.is_of_transaction()
        };
        // A derived value is of the whole transaction, an exact one of its row.
        let is_there = |old: &StoredTrade| {
            let is_derived = old.valued.is_derived();
            rows.iter().any(|(_, new)| if is_derived { fits(old, new) } else { is_alike(old, new) })
        };
        if !given.iter().all(is_there) {
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
