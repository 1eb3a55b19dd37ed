//! The records of all wallets, in parts.

use std::ops::Bound;

use super::codec;
use super::file_view::FileView;
use super::schema::WALLET_ID_TO_WALLET;
use super::schema::names::WALLETS;
use super::{StoreError, WalletId, WalletRecord};

impl FileView {
    /// Records of up to `limit` wallets behind a number, by number.
    pub(super) fn records(
        &self,
        behind: Option<WalletId>,
        limit: usize,
    ) -> Result<Vec<WalletRecord>, StoreError> {
        let wallets = self.snapshot.txn.open_table(WALLET_ID_TO_WALLET)?;
        let start = behind.map_or(Bound::Unbounded, |id| Bound::Excluded(id.0));
        let mut records = Vec::new();
        for entry in wallets.range::<u32>((start, Bound::Unbounded))?.take(limit) {
            let (id, wallet) = entry?;
            let wallet = codec::decode_wallet(WALLETS, wallet.value())?;
            records.push(self.read_state(WalletId(id.value()), wallet)?);
        }
        Ok(records)
    }
}
