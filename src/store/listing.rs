//! Reads of the file that go over all wallets.

use std::ops::Bound;

use redb::ReadableTable as _;

use super::codec;
use super::file_view::FileView;
use super::schema::names::{RANGES, WALLETS};
use super::schema::{USAGE_TO_RANGES, WALLET_ID_TO_WALLET};
use super::{DeliveredRange, Result, WalletId, WalletRecord};
use crate::domain::{KeyId, Wallet};

impl FileView {
    pub(super) fn wallets(
        &self,
        behind: Option<WalletId>,
        limit: usize,
    ) -> Result<Vec<(WalletId, Wallet)>> {
        let table = self.snapshot.txn.open_table(WALLET_ID_TO_WALLET)?;
        let from = behind.map_or(Bound::Unbounded, |id| Bound::Excluded(id.0));
        let mut wallets = Vec::new();
        for entry in table.range((from, Bound::Unbounded))?.take(limit) {
            let (id, bytes) = entry?;
            wallets.push((WalletId(id.value()), codec::decode_wallet(WALLETS, bytes.value())?));
        }
        Ok(wallets)
    }

    pub(super) fn records(
        &self,
        behind: Option<WalletId>,
        limit: usize,
    ) -> Result<Vec<WalletRecord>> {
        let wallets = self.wallets(behind, limit)?;
        wallets.into_iter().map(|(id, wallet)| self.read_state(id, wallet)).collect()
    }

    pub(super) fn all_usage(&self) -> Result<Vec<(KeyId, WalletId, Vec<DeliveredRange>)>> {
        let mut usage = Vec::new();
        for entry in self.snapshot.txn.open_table(USAGE_TO_RANGES)?.iter()? {
            let (place, bytes) = entry?;
            let (key, id) = place.value();
            let id = WalletId(id);
            let Some(wallet) = self.plain_wallet(id)? else { continue };
            let ranges = codec::decode_ranges(RANGES, wallet.address.family(), bytes.value())?;
            usage.push((KeyId(key), id, ranges));
        }
        Ok(usage)
    }
}
