//! What keys have counted, exact over all processes: each delivery is counted under its key's row.

use futures_util::future::try_join3;

use super::call::{CallError, Connection, repeated};
use super::store::{PgInner, PgStore, number, signed, unsigned};
use crate::domain::{Family, KeyId, Wallet};
use crate::store::codec::{decode_ranges, encode_ranges};
use crate::store::credit::mark;
use crate::store::schema::names::RANGES;
use crate::store::{Counted, Credit, DeliveredRange, StoreError, UsageUpdate, WalletId};

fn key_number(key: KeyId) -> i64 {
    signed(key.0)
}

impl PgStore {
    pub(in crate::store) async fn write_usage(
        &self,
        updates: Vec<UsageUpdate>,
    ) -> Result<(), StoreError> {
        repeated!(self.inner.failures, async {
            let connection = self.inner.connection().await?;
            connection.begin().await?;
            for update in &updates {
                put(&connection, update).await?;
            }
            connection.commit().await
        })
    }

    /// Changes what a key has counted, in one transaction. `change` returns what is written, where
    /// anything is, and may be called again after a failure.
    pub(in crate::store) async fn recount<T: Send>(
        &self,
        key: KeyId,
        wallet: WalletId,
        change: &(dyn Fn(Counted) -> (Option<UsageUpdate>, T) + Sync),
    ) -> Result<T, StoreError> {
        repeated!(self.inner.failures, self.inner.recount(key, wallet, change))
    }
}

async fn put(connection: &Connection, update: &UsageUpdate) -> Result<(), CallError> {
    let key = key_number(update.key);
    let ranges = encode_ranges(update.wallet, &update.ranges)?;
    let sql = "INSERT INTO blotter.key_total (key_id, total) VALUES ($1, $2)
               ON CONFLICT (key_id) DO UPDATE SET total = EXCLUDED.total";
    connection.execute(sql, &[&key, &signed(update.total)]).await?;
    put_ranges(connection, key, update.wallet, &ranges).await?;
    if let Some(Credit { mark, left }) = update.credit {
        let sql = "INSERT INTO blotter.credit (key_id, mark, remaining) VALUES ($1, $2, $3)
                   ON CONFLICT (key_id, mark) DO UPDATE SET remaining = EXCLUDED.remaining";
        let mark = mark.to_be_bytes();
        connection.execute(sql, &[&key, &mark.as_slice(), &signed(left)]).await?;
    }
    Ok(())
}

async fn put_ranges(
    connection: &Connection,
    key: i64,
    wallet: WalletId,
    ranges: &[u8],
) -> Result<(), CallError> {
    let sql = "INSERT INTO blotter.usage (key_id, wallet, ranges) VALUES ($1, $2, $3)
               ON CONFLICT (key_id, wallet) DO UPDATE SET ranges = EXCLUDED.ranges";
    connection.execute(sql, &[&key, &number(wallet), &ranges]).await?;
    Ok(())
}

impl PgInner {
    async fn recount<T: Send>(
        &self,
        key: KeyId,
        id: WalletId,
        change: &(dyn Fn(Counted) -> (Option<UsageUpdate>, T) + Sync),
    ) -> Result<T, CallError> {
        let wallet = self.wallet_of(id).await?.ok_or(StoreError::UnknownWallet(id))?;
        let connection = self.connection().await?;
        let number_of_key = key_number(key);
        let wallet_number = number(id);
        // Sent at once, done one behind the other: the ranges are read under the lock.
        let lock = "SELECT total FROM blotter.key_total WHERE key_id = $1 FOR UPDATE";
        let read = "SELECT ranges FROM blotter.usage WHERE key_id = $1 AND wallet = $2";
        let lock_args: &super::call::Arguments<'_> = &[&number_of_key];
        let read_args: &super::call::Arguments<'_> = &[&number_of_key, &wallet_number];
        let ((), total, ranges) = try_join3(
            connection.begin(),
            connection.query_opt(lock, lock_args),
            connection.query_opt(read, read_args),
        )
        .await?;
        let Some(total) = total else {
            let sql = "INSERT INTO blotter.key_total (key_id, total) VALUES ($1, 0)
                       ON CONFLICT DO NOTHING";
            connection.execute(sql, &[&number_of_key]).await?;
            connection.commit().await?;
            return Box::pin(self.recount(key, id, change)).await;
        };
        let family = wallet.address.family();
        let ranges = match &ranges {
            Some(row) => decode_ranges(RANGES, family, row.try_get(0)?)?,
            None => Vec::new(),
        };
        let credit = self.credit_on(&connection, key, &wallet).await?;
        let total = unsigned(total.try_get(0)?);
        let (update, outcome) = change(Counted { total, ranges, credit });
        if let Some(update) = update {
            let ranges = encode_ranges(id, &update.ranges)?;
            let sql = "UPDATE blotter.key_total SET total = $2 WHERE key_id = $1";
            let total = signed(update.total);
            let args: &super::call::Arguments<'_> = &[&number_of_key, &total];
            try_join3(
                connection.execute(sql, args),
                put_ranges(&connection, number_of_key, id, &ranges),
                async {
                    match update.credit {
                        Some(_) => put(&connection, &update).await,
                        None => Ok(()),
                    }
                },
            )
            .await?;
        }
        connection.commit().await?;
        Ok(outcome)
    }

    pub(super) async fn usage_total(&self, key: KeyId) -> Result<u64, CallError> {
        let connection = self.connection().await?;
        let sql = "SELECT total FROM blotter.key_total WHERE key_id = $1";
        let row = connection.query_opt(sql, &[&key_number(key)]).await?;
        connection.give_back();
        Ok(row.map(|row| row.try_get(0)).transpose()?.map_or(0, unsigned))
    }

    pub(super) async fn usage_ranges(
        &self,
        key: KeyId,
        id: WalletId,
        family: Family,
    ) -> Result<Vec<DeliveredRange>, CallError> {
        let connection = self.connection().await?;
        let sql = "SELECT ranges FROM blotter.usage WHERE key_id = $1 AND wallet = $2";
        let row = connection.query_opt(sql, &[&key_number(key), &number(id)]).await?;
        connection.give_back();
        match row {
            Some(row) => Ok(decode_ranges(RANGES, family, row.try_get(0)?)?),
            None => Ok(Vec::new()),
        }
    }

    pub(super) async fn credit(
        &self,
        key: KeyId,
        wallet: &Wallet,
    ) -> Result<Option<Credit>, CallError> {
        let connection = self.connection().await?;
        let credit = self.credit_on(&connection, key, wallet).await?;
        connection.give_back();
        Ok(credit)
    }

    async fn credit_on(
        &self,
        connection: &Connection,
        key: KeyId,
        wallet: &Wallet,
    ) -> Result<Option<Credit>, CallError> {
        let Some(secret) = self.secret(connection).await? else { return Ok(None) };
        let mark = mark(secret, wallet);
        let sql = "SELECT remaining FROM blotter.credit WHERE key_id = $1 AND mark = $2";
        let bytes = mark.to_be_bytes();
        let row = connection.query_opt(sql, &[&key_number(key), &bytes.as_slice()]).await?;
        let left: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
        Ok(left.map(|left| Credit { mark, left: unsigned(left) }))
    }

    /// The secret part of the hashes of forgotten wallets.
    pub(super) async fn secret(
        &self,
        connection: &Connection,
    ) -> Result<Option<[u64; 4]>, CallError> {
        let sql = "SELECT secret FROM blotter.hash_key";
        let row = connection.query_opt(sql, &[]).await?;
        let bytes: Option<&[u8]> = row.as_ref().map(|row| row.try_get(0)).transpose()?;
        let Some(bytes) = bytes else { return Ok(None) };
        let mut secret = [0; 4];
        for (word, part) in secret.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = part.try_into().map_or(0, u64::from_be_bytes);
        }
        Ok(Some(secret))
    }
}
