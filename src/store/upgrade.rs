//! Upgrades files of earlier formats. Since format 2 keys hold signatures as base58 digits
//! (`domain::Signature`).

use redb::{Database, ReadableTable as _, TableDefinition, Value, WriteTransaction};

use crate::domain::Signature;

use super::Result;
use super::key::{LEG_BYTES, TX_AT, WANTED_TX_AT};
use super::schema::{
    FORMAT, NAME_TO_NUMBER, ROW_KEY_TO_TRADE, SCHEMA_VERSION, WANTED_VALUE,
    WANTED_VALUE_TO_SIDE_PAYMENT, begin_write, create_tables,
};

const SCRATCH: &str = "upgrade";

/// The first format whose keys hold signatures as digits. The upgrade from it to the next one
/// rewrites nothing: each wallet's state is rewritten with its next write.
const WIDE_SIGNATURES: u64 = 2;

/// Upgrades a file, in one transaction.
pub(super) fn upgrade(database: &Database, found: u64) -> Result<()> {
    tracing::info!(found, "the store has an earlier format; upgrading it");
    let txn = begin_write(database)?;
    create_tables(&txn)?;
    if found < WIDE_SIGNATURES {
        widen_signatures(&txn)?;
    }
    txn.open_table(NAME_TO_NUMBER)?.insert(FORMAT, SCHEMA_VERSION)?;
    txn.commit()?;
    tracing::info!("the store is upgraded");
    Ok(())
}

/// Rewrites the tables with signatures in their keys. Keys stay in order, so that each table is
/// written from start to end.
fn widen_signatures(txn: &WriteTransaction) -> Result<()> {
    rewrite(txn, ROW_KEY_TO_TRADE, TX_AT, LEG_BYTES)?;
    rewrite(txn, WANTED_VALUE, WANTED_TX_AT, 0)?;
    rewrite(txn, WANTED_VALUE_TO_SIDE_PAYMENT, WANTED_TX_AT, 0)
}

fn rewrite<V: Value + 'static>(
    txn: &WriteTransaction,
    name: TableDefinition<'static, &'static [u8], V>,
    tx_at: usize,
    behind: usize,
) -> Result<()> {
    let scratch = TableDefinition::<&[u8], V>::new(SCRATCH);
    {
        let (old, mut new) = (txn.open_table(name)?, txn.open_table(scratch)?);
        for entry in old.iter()? {
            let (key, value) = entry?;
            let widened = widened(key.value(), tx_at, behind);
            new.insert(widened.as_deref().unwrap_or(key.value()), value.value())?;
        }
    }
    txn.delete_table(name)?;
    txn.rename_table(scratch, name)?;
    Ok(())
}

/// `None` for a key that holds no signature.
fn widened(key: &[u8], tx_at: usize, behind: usize) -> Option<Vec<u8>> {
    let (head, rest) = key.split_at_checked(tx_at)?;
    let (tx, tail) = rest.split_at_checked(rest.len().checked_sub(behind)?)?;
    let stored = Signature::from_bytes(tx.try_into().ok()?).to_stored();
    Some([head, &stored, tail].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ChainId, TradeKey, TxId, UnixSeconds};
    use crate::store::WalletId;
    use crate::store::key::{RowKey, wanted_value_key};

    fn key(tx: TxId) -> RowKey {
        let time = UnixSeconds(5);
        RowKey::new(WalletId(1), &TradeKey { time, height: 6, index: 7, tx, leg: 8 })
    }

    #[test]
    fn a_key_of_the_first_format_becomes_one_of_the_second() {
        let new = key(TxId::solana(&[9; 64]));
        let bytes = new.bytes();
        let old = [&bytes[..TX_AT], &[9; 64], &bytes[bytes.len() - LEG_BYTES..]].concat();
        assert_eq!(widened(&old, TX_AT, LEG_BYTES).as_deref(), Some(bytes));

        let new = wanted_value_key(ChainId(3), bytes);
        let old = [&new[..WANTED_TX_AT], &[9; 64]].concat();
        assert_eq!(widened(&old, WANTED_TX_AT, 0), Some(new));
    }

    #[test]
    fn other_keys_stay() {
        let evm = key(TxId::Evm([9; 32]));
        assert_eq!(widened(evm.bytes(), TX_AT, LEG_BYTES), None);
        assert_eq!(widened(&wanted_value_key(ChainId(3), evm.bytes()), WANTED_TX_AT, 0), None);
        assert_eq!(widened(&[], TX_AT, LEG_BYTES), None);
    }
}
