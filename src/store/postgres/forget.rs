//! Forgets a wallet while other processes serve.

use super::LIMITS;
use super::call::{Arguments, CallError, Called, Connection, retried};
use super::store::{PgInner, PgStore, number, unsigned};
use crate::domain::{Height, Wallet};
use crate::store::codec::decode_ranges;
use crate::store::credit::mark;
use crate::store::key::{RowKey, height_of};
use crate::store::schema::names::RANGES;
use crate::store::{Result, StoreError, WalletId};

/// A wallet that is being forgotten.
#[derive(Debug, Clone, Copy)]
struct Leaving<'a> {
    id: WalletId,
    wallet: &'a Wallet,
    /// The keyed hash of the wallet, under which credits stay.
    mark: [u8; 16],
    rows: u64,
}

impl PgStore {
    /// As [`upkeep::forget`](crate::store::upkeep::forget), with a secret of the database. A large
    /// wallet is deleted in several transactions; between them its oldest heights are not covered.
    pub(in crate::store) async fn forget(
        &self,
        wallet: &Wallet,
        seed: [u64; 4],
    ) -> Result<Option<u64>> {
        let Self { inner } = self;
        let found = retried!(inner.failures, inner.leaving(wallet, seed))?;
        let Some(leaving) = found else { return Ok(None) };
        while retried!(inner.failures, inner.credit_next(leaving))? {}
        while retried!(inner.failures, inner.forget_part(leaving))? {}
        inner.ids.take(wallet);
        inner.wallets.take(&leaving.id);
        inner.states.take(&leaving.id);
        Ok(Some(leaving.rows))
    }
}

impl PgInner {
    async fn leaving<'a>(&self, wallet: &'a Wallet, seed: [u64; 4]) -> Called<Option<Leaving<'a>>> {
        let Some(id) = self.id_of(wallet).await? else { return Ok(None) };
        let connection = self.connection().await?;
        let sql = "SELECT count FROM blotter.wallet_state WHERE wallet = $1";
        let Some(state) = connection.query_opt(sql, &[&number(id)]).await? else {
            connection.give_back();
            self.ids.take(wallet);
            return Ok(None);
        };
        let seed = seed.map(u64::to_be_bytes);
        let sql = "INSERT INTO blotter.hash_key (secret) VALUES ($1) ON CONFLICT DO NOTHING";
        connection.execute(sql, &[&seed.as_flattened()]).await?;
        let secret = self.secret(&connection).await?.unwrap_or_default();
        connection.give_back();
        let mark = mark(secret, wallet).to_be_bytes();
        Ok(Some(Leaving { id, wallet, mark, rows: unsigned(state.try_get(0)?) }))
    }

    async fn credit_next(&self, leaving: Leaving<'_>) -> Called<bool> {
        let connection = self.connection().await?;
        connection.begin().await?;
        let is_credited = credit_one(&connection, leaving).await?;
        connection.commit().await?;
        Ok(is_credited)
    }

    /// Deletes the oldest rows, or the whole wallet where few are left; true if more is left.
    async fn forget_part(&self, leaving: Leaving<'_>) -> Called<bool> {
        let Leaving { id, wallet, .. } = leaving;
        let connection = self.connection().await?;
        connection.begin().await?;
        let mut found = match self.lock(&connection, id, None, true).await {
            Err(CallError::Store(StoreError::UnknownWallet(_))) => {
                connection.commit().await?;
                return Ok(false);
            }
            found => found?.ok_or(StoreError::Overtaken)?,
        };
        // A reader may have counted rows since.
        while credit_one(&connection, leaving).await? {}
        let sql = "SELECT key FROM blotter.trade WHERE wallet = $1
                   ORDER BY key DESC LIMIT 1 OFFSET $2";
        let row = connection.query_opt(sql, &[&number(id), &LIMITS.forgotten_rows]).await?;
        let key: Option<&[u8]> = row.as_ref().map(|row| row.try_get(0)).transpose()?;
        if let Some(newest) = key.and_then(height_of) {
            let (of, before) = ((id, wallet.chain), found.state.count);
            self.reopen(&connection, of, &mut found.state, (Height::MIN, newest)).await?;
            // Rows that the state does not count are deleted with the wallet.
            if found.state.count < before {
                self.put_state(&connection, id, &found, (true, &None)).await?;
                self.finish(connection, id, found).await?;
                return Ok(true);
            }
        }
        for table in ["trade", "account", "wanted_value", "demand", "wallet_state"] {
            let sql = format!("DELETE FROM blotter.{table} WHERE wallet = $1");
            connection.execute(&sql, &[&number(id)]).await?;
        }
        connection.execute("DELETE FROM blotter.wallet WHERE id = $1", &[&number(id)]).await?;
        connection.commit().await?;
        Ok(false)
    }
}

/// Turns what one key has counted of the wallet into a credit, in the transaction of the
/// connection. False where no key has counted any.
async fn credit_one(
    connection: &Connection,
    Leaving { id, wallet, mark, .. }: Leaving<'_>,
) -> Called<bool> {
    let sql = "SELECT key_id FROM blotter.usage WHERE wallet = $1 LIMIT 1";
    let Some(row) = connection.query_opt(sql, &[&number(id)]).await? else { return Ok(false) };
    let key: i64 = row.try_get(0)?;
    // Counting a delivery takes this lock too, so none interleaves.
    let sql = "SELECT 1 FROM blotter.key_total WHERE key_id = $1 FOR UPDATE";
    connection.query_opt(sql, &[&key]).await?;
    let sql = "DELETE FROM blotter.usage WHERE key_id = $1 AND wallet = $2 RETURNING ranges";
    let row = connection.query_opt(sql, &[&key, &number(id)]).await?;
    let Some(row) = row else { return Ok(true) };
    let ranges = decode_ranges(RANGES, wallet.address.family(), row.try_get(0)?)?;
    let end = |key| RowKey::new(id, key).bytes().to_vec();
    let newest: Vec<Vec<u8>> = ranges.iter().map(|range| end(&range.from)).collect();
    let oldest: Vec<Vec<u8>> = ranges.iter().map(|range| end(&range.to)).collect();
    let sql = "INSERT INTO blotter.credit (key_id, mark, remaining)
               SELECT $1, $2, coalesce(sum(inside), 0)::bigint
               FROM unnest($4::bytea[], $5::bytea[]) AS part(newest, oldest), LATERAL (
                   SELECT count(*) AS inside FROM blotter.trade
                   WHERE wallet = $3 AND key BETWEEN newest AND oldest) counted
               ON CONFLICT (key_id, mark)
               DO UPDATE SET remaining = credit.remaining + EXCLUDED.remaining";
    let args: &Arguments<'_> = &[&key, &mark.as_slice(), &number(id), &newest, &oldest];
    connection.execute(sql, args).await?;
    Ok(true)
}
