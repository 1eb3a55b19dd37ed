//! Deletes a wallet from an open database.

use redb::{Database, ReadableTable as _, WriteTransaction};

use super::credit;
use super::key::{RowKey, accounts_of, address_key};
use super::schema::{
    ACCOUNT_TO_STATE, NAME_TO_NUMBER, ROW_KEY_TO_TRADE, UNFORGOTTEN, WALLET_ID_TO_ANCHORS,
    WALLET_ID_TO_PENDING, WALLET_ID_TO_STATE, WALLET_ID_TO_WALLET, WALLET_TO_ID, WANTED_VALUE,
    WANTED_VALUE_TO_SIDE_PAYMENT, begin_write,
};
use super::{Result, WalletId};
use crate::domain::Wallet;

/// Returns how many rows were deleted; `None` for an unknown wallet. Only the writer may call it,
/// between its transactions.
pub(super) fn forget_in(
    database: &Database,
    wallet: &Wallet,
    seed: [u64; 4],
) -> Result<Option<u64>> {
    let txn = begin_write(database)?;
    let key = address_key(wallet.chain, &wallet.address);
    let found = {
        let mut ids = txn.open_table(WALLET_TO_ID)?;
        ids.remove(key.as_slice())?.map(|id| WalletId(id.value()))
    };
    let Some(id) = found else {
        txn.abort()?;
        return Ok(None);
    };
    credit::keep(&txn, id, wallet, seed)?;
    keep_number(&txn, id)?;
    txn.open_table(WALLET_ID_TO_WALLET)?.remove(id.0)?;
    txn.open_table(WALLET_ID_TO_STATE)?.remove(id.0)?;
    txn.open_table(WALLET_ID_TO_ANCHORS)?.remove(id.0)?;
    txn.open_table(WALLET_ID_TO_PENDING)?.remove(id.0)?;
    txn.open_table(ACCOUNT_TO_STATE)?.retain_in(accounts_of(id), |_, _| false)?;
    let mut rows = 0;
    let (start, end) = (RowKey::start(id), RowKey::end(id));
    txn.open_table(ROW_KEY_TO_TRADE)?.retain_in(start.bytes()..end.bytes(), |_, _| {
        rows += 1;
        false
    })?;
    let of_chain = |key: RowKey| [&wallet.chain.0.to_be_bytes(), key.bytes()].concat();
    let (start, end) = (of_chain(RowKey::start(id)), of_chain(RowKey::end(id)));
    let wanted = start.as_slice()..end.as_slice();
    txn.open_table(WANTED_VALUE)?.retain_in(wanted.clone(), |_, ()| false)?;
    txn.open_table(WANTED_VALUE_TO_SIDE_PAYMENT)?.retain_in(wanted, |_, _| false)?;
    txn.commit()?;
    Ok(Some(rows))
}

/// Records the number, so that it is never given again.
fn keep_number(txn: &WriteTransaction, id: WalletId) -> Result<()> {
    let mut numbers = txn.open_table(NAME_TO_NUMBER)?;
    let kept = numbers.get(UNFORGOTTEN)?.map_or(0, |number| number.value());
    numbers.insert(UNFORGOTTEN, kept.max(u64::from(id.0) + 1))?;
    Ok(())
}
