//! Forgets a wallet while others serve.

use super::call::{CallError, repeated};
use super::store::{PgInner, PgStore, number, signed, unsigned};
use crate::domain::Wallet;
use crate::store::StoreError;
use crate::store::codec::decode_ranges;
use crate::store::credit::mark;
use crate::store::key::RowKey;
use crate::store::schema::names::RANGES;

impl PgStore {
    /// Deletes all that is stored of a wallet. What keys have counted of it stays, under a hash that
    /// is keyed by a secret of the database; `seed` becomes that secret where there is none. How
    /// many rows there were; `None` where the wallet is not known.
    pub(in crate::store) async fn forget(
        &self,
        wallet: &Wallet,
        seed: [u64; 4],
    ) -> Result<Option<u64>, StoreError> {
        repeated!(self.inner.failures, self.inner.forget(wallet, seed))
    }
}

impl PgInner {
    async fn forget(&self, wallet: &Wallet, seed: [u64; 4]) -> Result<Option<u64>, CallError> {
        let Some(id) = self.id_of(wallet).await? else { return Ok(None) };
        let connection = self.connection().await?;
        connection.begin().await?;
        let sql = "SELECT 1 FROM blotter.wallet_state WHERE wallet = $1 FOR UPDATE";
        if connection.query_opt(sql, &[&number(id)]).await?.is_none() {
            connection.commit().await?;
            self.ids.take(wallet);
            return Ok(None);
        }
        let seed = seed.map(u64::to_be_bytes);
        let sql = "INSERT INTO blotter.hash_key (secret) VALUES ($1) ON CONFLICT DO NOTHING";
        connection.execute(sql, &[&seed.as_flattened()]).await?;
        let secret = self.secret(&connection).await?.unwrap_or_default();
        let mark = mark(secret, wallet).to_be_bytes();
        let sql = "SELECT key_id, ranges FROM blotter.usage WHERE wallet = $1";
        for row in connection.query(sql, &[&number(id)]).await? {
            let key: i64 = row.try_get(0)?;
            let ranges = decode_ranges(RANGES, wallet.address.family(), row.try_get(1)?)?;
            let mut counted = 0;
            for range in ranges {
                let (from, to) = (RowKey::new(id, &range.from), RowKey::new(id, &range.to));
                let sql = "SELECT count(*) FROM blotter.trade
                           WHERE wallet = $1 AND key BETWEEN $2 AND $3";
                let row =
                    connection.query_opt(sql, &[&number(id), &from.bytes(), &to.bytes()]).await?;
                counted += row.map(|row| row.try_get(0)).transpose()?.map_or(0, unsigned);
            }
            let sql = "INSERT INTO blotter.credit (key_id, mark, remaining) VALUES ($1, $2, $3)
                       ON CONFLICT (key_id, mark)
                       DO UPDATE SET remaining = credit.remaining + EXCLUDED.remaining";
            connection.execute(sql, &[&key, &mark.as_slice(), &signed(counted)]).await?;
        }
        let sql = "DELETE FROM blotter.trade WHERE wallet = $1";
        let rows = connection.execute(sql, &[&number(id)]).await?;
        for table in ["usage", "account", "wanted_value", "demand", "wallet_state"] {
            let sql = format!("DELETE FROM blotter.{table} WHERE wallet = $1");
            connection.execute(&sql, &[&number(id)]).await?;
        }
        connection.execute("DELETE FROM blotter.wallet WHERE id = $1", &[&number(id)]).await?;
        connection.commit().await?;
        self.ids.take(wallet);
        self.wallets.take(&id);
        self.states.take(&id);
        Ok(Some(rows))
    }
}
