//! Reads that go over all wallets.

use super::call::{Called, calls};
use super::store::{PgInner, number, unsigned, wallet_id};
use super::view::PgView;
use crate::domain::{KeyId, Wallet};
use crate::store::codec;
use crate::store::schema::names::{RANGES, WALLETS};
use crate::store::{DeliveredRange, Result, WalletId};

type Usage = (KeyId, WalletId, Vec<DeliveredRange>);

calls! {
    PgView:
    wallets(behind: Option<WalletId>, limit: usize) -> Vec<(WalletId, Wallet)>;
    all_usage() -> Vec<Usage>;
}

impl PgInner {
    async fn wallets(
        &self,
        behind: Option<WalletId>,
        limit: usize,
    ) -> Called<Vec<(WalletId, Wallet)>> {
        let sql = "SELECT id, record FROM blotter.wallet WHERE id > $1 ORDER BY id LIMIT $2";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.rows(sql, &[&behind.map_or(-1, number), &limit]).await?;
        let one = |row: &tokio_postgres::Row| {
            let wallet = codec::decode_wallet(WALLETS, row.try_get(1)?)?;
            Ok((wallet_id(row.try_get(0)?)?, wallet))
        };
        rows.iter().map(one).collect()
    }

    async fn all_usage(&self) -> Called<Vec<Usage>> {
        let sql = "SELECT key_id, wallet, ranges, record FROM blotter.usage
                   JOIN blotter.wallet ON id = wallet ORDER BY key_id, wallet";
        let rows = self.rows(sql, &[]).await?;
        let one = |row: &tokio_postgres::Row| {
            let wallet = codec::decode_wallet(WALLETS, row.try_get(3)?)?;
            let ranges = codec::decode_ranges(RANGES, wallet.address.family(), row.try_get(2)?)?;
            Ok((KeyId(unsigned(row.try_get(0)?)), wallet_id(row.try_get(1)?)?, ranges))
        };
        rows.iter().map(one).collect()
    }
}
