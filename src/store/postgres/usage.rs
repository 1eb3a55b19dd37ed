//! Usage, exact over all processes: a delivery is counted under a lock of its key's row.

use std::collections::BTreeMap;

use futures_util::future::{try_join3, try_join4};

use super::call::{Called, Connection, retried};
use super::store::{PgInner, PgStore, number, signed, unsigned};
use crate::domain::{Family, KeyId, Wallet};
use crate::store::codec::{decode_ranges, encode_ranges};
use crate::store::credit::mark;
use crate::store::schema::names::RANGES;
use crate::store::{Counted, Credit, DeliveredRange, Result, StoreError, UsageUpdate, WalletId};

impl PgStore {
    pub(in crate::store) async fn write_usage(&self, updates: Vec<UsageUpdate>) -> Result<()> {
        retried!(self.inner.failures, async {
            let connection = self.inner.connection().await?;
            connection.begin().await?;
            put(&connection, &updates).await?;
            connection.commit().await
        })
    }

    pub(in crate::store) async fn recount<T: Send>(
        &self,
        key: KeyId,
        wallet: WalletId,
        change: &(dyn Fn(Counted) -> (Option<UsageUpdate>, T) + Sync),
    ) -> Result<T> {
        retried!(self.inner.failures, self.inner.recount(key, wallet, change))
    }
}

/// Writes updates by pipelined statements; of several updates of one place the last one.
async fn put(connection: &Connection, updates: &[UsageUpdate]) -> Called<()> {
    let (mut totals, mut places, mut credits) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for UsageUpdate { key, wallet, ranges, total, credit } in updates {
        let key = signed(key.0);
        totals.insert(key, signed(*total));
        places.insert((key, number(*wallet)), encode_ranges(*wallet, ranges)?);
        if let Some(Credit { mark, left }) = credit {
            credits.insert((key, mark.to_be_bytes().to_vec()), signed(*left));
        }
    }
    let (keys, totals): (Vec<_>, Vec<_>) = totals.into_iter().unzip();
    let (of, ranges): (Vec<_>, Vec<_>) = places.into_iter().unzip();
    let (keys_of, wallets): (Vec<_>, Vec<_>) = of.into_iter().unzip();
    let (of, left): (Vec<_>, Vec<_>) = credits.into_iter().unzip();
    let (credited, marks): (Vec<_>, Vec<_>) = of.into_iter().unzip();
    let write_credits = async {
        if credited.is_empty() {
            return Ok(0);
        }
        connection.execute(PUT_CREDITS, &[&credited, &marks, &left]).await
    };
    try_join3(
        connection.execute(PUT_TOTALS, &[&keys, &totals]),
        connection.execute(PUT_RANGES, &[&keys_of, &wallets, &ranges]),
        write_credits,
    )
    .await?;
    Ok(())
}

const PUT_TOTALS: &str = "
INSERT INTO blotter.key_total (key_id, total) SELECT * FROM unnest($1::bigint[], $2::bigint[])
ON CONFLICT (key_id) DO UPDATE SET total = EXCLUDED.total";

const PUT_RANGES: &str = "
INSERT INTO blotter.usage (key_id, wallet, ranges)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])
ON CONFLICT (key_id, wallet) DO UPDATE SET ranges = EXCLUDED.ranges";

const PUT_CREDITS: &str = "
INSERT INTO blotter.credit (key_id, mark, remaining)
SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[])
ON CONFLICT (key_id, mark) DO UPDATE SET remaining = EXCLUDED.remaining";

impl PgInner {
    async fn recount<T: Send>(
        &self,
        key: KeyId,
        id: WalletId,
        change: &(dyn Fn(Counted) -> (Option<UsageUpdate>, T) + Sync),
    ) -> Called<T> {
        let wallet = self.wallet_of(id).await?.ok_or(StoreError::UnknownWallet(id))?;
        let connection = self.connection().await?;
        let number_of_key = signed(key.0);
        let wallet_number = number(id);
        // Pipelined, but executed in order: the ranges are read under the lock. Forgetting the
        // wallet locks its state before the key as well, so it waits, or has deleted the state.
        let keep = "SELECT 1 FROM blotter.wallet_state WHERE wallet = $1 FOR KEY SHARE";
        let lock = "SELECT total FROM blotter.key_total WHERE key_id = $1 FOR UPDATE";
        let read = "SELECT ranges FROM blotter.usage WHERE key_id = $1 AND wallet = $2";
        let ((), is_kept, total, ranges) = try_join4(
            connection.begin(),
            connection.query_opt(keep, &[&wallet_number]),
            connection.query_opt(lock, &[&number_of_key]),
            connection.query_opt(read, &[&number_of_key, &wallet_number]),
        )
        .await?;
        if is_kept.is_none() {
            connection.roll_back().await?;
            return Err(StoreError::UnknownWallet(id).into());
        }
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
            put(&connection, &[update]).await?;
        }
        connection.commit().await?;
        Ok(outcome)
    }

    pub(super) async fn usage_total(&self, key: KeyId) -> Called<u64> {
        let sql = "SELECT total FROM blotter.key_total WHERE key_id = $1";
        let row = self.row(sql, &[&signed(key.0)]).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?.map_or(0, unsigned))
    }

    pub(super) async fn usage_ranges(
        &self,
        key: KeyId,
        id: WalletId,
        family: Family,
    ) -> Called<Vec<DeliveredRange>> {
        let sql = "SELECT ranges FROM blotter.usage WHERE key_id = $1 AND wallet = $2";
        let row = self.row(sql, &[&signed(key.0), &number(id)]).await?;
        let Some(row) = row else { return Ok(Vec::new()) };
        Ok(decode_ranges(RANGES, family, row.try_get(0)?)?)
    }

    pub(super) async fn credit(&self, key: KeyId, wallet: &Wallet) -> Called<Option<Credit>> {
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
    ) -> Called<Option<Credit>> {
        let Some(secret) = self.secret(connection).await? else { return Ok(None) };
        let mark = mark(secret, wallet);
        let sql = "SELECT remaining FROM blotter.credit WHERE key_id = $1 AND mark = $2";
        let bytes = mark.to_be_bytes();
        let row = connection.query_opt(sql, &[&signed(key.0), &bytes.as_slice()]).await?;
        let left: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
        Ok(left.map(|left| Credit { mark, left: unsigned(left) }))
    }

    /// The secret part of the hashes of forgotten wallets.
    pub(super) async fn secret(&self, connection: &Connection) -> Called<Option<[u64; 4]>> {
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
