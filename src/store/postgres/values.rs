//! Values of pending rows.

use super::call::{Called, Connection, calls};
use super::names::chain;
use super::store::{PgInner, PgStore, Stored, number, stored, unsigned, wallet_id};
use super::write::Columns;
use crate::domain::{ChainId, Units, ValueSource};
use crate::store::codec::corrupt;
use crate::store::key::{RowBounds, RowKey, rows_of_wanted, transaction_of, wanted_value_key};
use crate::store::schema::names::{TRADES, WANTED_VALUES};
use crate::store::trade_codec::{StoredTrade, decode_trade, is_derived_or_pending};
use crate::store::values::DeletedRow;
use crate::store::{
    NewValue, PriceRecord, Result, StoreError, WalletId, WantedPlace, WantedValue, Written,
};

calls! {
    PgStore:
    write_values(
        id: WalletId, epoch: u64, values: Vec<NewValue>, prices: Vec<PriceRecord>
    ) -> Written = values(id, epoch, &values, &prices);
}

impl PgInner {
    /// Transactions with pending rows, without their rows, and the bounds of the rows' keys.
    pub(super) async fn wanted_places(
        &self,
        of: ChainId,
        behind: &WantedPlace,
        limit: usize,
    ) -> Called<Vec<(WantedValue, RowBounds)>> {
        let sql = "SELECT wanted.wallet, epoch, key, side_payment
                   FROM blotter.wanted_value wanted JOIN blotter.wallet_state state
                       ON state.wallet = wanted.wallet
                   WHERE chain = $1 AND key > $2 ORDER BY key LIMIT $3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.rows(sql, &[&chain(of), &behind.0, &limit]).await?;
        let one = |row: &tokio_postgres::Row| {
            let key: Vec<u8> = row.try_get(2)?;
            let (_, bounds) =
                rows_of_wanted(&key).ok_or_else(|| corrupt(WANTED_VALUES, "a short key"))?;
            let side_payment: Option<&[u8]> = row.try_get(3)?;
            let wanted = WantedValue {
                id: wallet_id(row.try_get(0)?)?,
                epoch: unsigned(row.try_get(1)?),
                trades: Vec::new(),
                side_payment: side_payment.and_then(Units::try_from_be_slice).unwrap_or_default(),
                place: WantedPlace(key),
            };
            Ok((wanted, bounds))
        };
        rows.iter().map(one).collect()
    }

    /// Removes the entries of deleted rows.
    pub(super) async fn forget_wanted(
        &self,
        connection: &Connection,
        (id, of): (WalletId, ChainId),
        gone: &[DeletedRow],
    ) -> Called<()> {
        let valued = gone.iter().filter(|(_, value)| is_derived_or_pending(value));
        let keys: Vec<Vec<u8>> = valued.map(|(key, _)| wanted_value_key(of, key)).collect();
        if keys.is_empty() {
            return Ok(());
        }
        self.wait_no_more(connection, (id, of), &keys).await
    }

    async fn wait_no_more(
        &self,
        connection: &Connection,
        (id, of): (WalletId, ChainId),
        keys: &[Vec<u8>],
    ) -> Called<()> {
        let sql = "DELETE FROM blotter.wanted_value
                   WHERE chain = $1 AND wallet = $2 AND key = ANY($3)";
        connection.execute(sql, &[&chain(of), &number(id), &keys]).await?;
        Ok(())
    }

    async fn values(
        &self,
        id: WalletId,
        epoch: u64,
        new: &[NewValue],
        prices: &[PriceRecord],
    ) -> Called<Written> {
        let wallet = self.wallet_of(id).await?.ok_or(StoreError::UnknownWallet(id))?;
        // In a transaction of their own: they stay even if the rows are stale.
        if !prices.is_empty() {
            let connection = self.connection().await?;
            self.put_prices(&connection, wallet.chain, prices).await?;
            connection.give_back();
        }
        let connection = self.connection().await?;
        connection.begin().await?;
        let sql = format!(
            "SELECT {} FROM blotter.wallet_state WHERE wallet = $1 FOR UPDATE",
            super::store::STATE_COLUMNS
        );
        let row = connection.query_opt(&sql, &[&number(id)]).await?;
        let Stored { state, .. } = stored(&row.ok_or(StoreError::UnknownWallet(id))?)?;
        if state.epoch != epoch {
            connection.commit().await?;
            return Ok(Written::Stale);
        }
        for new in new {
            self.value(&connection, (id, wallet.chain), new).await?;
        }
        connection.commit().await?;
        Ok(Written::Stored { count: state.count, coverage: state.coverage })
    }

    /// Sets the value of a row that is pending and has the same units.
    async fn value(
        &self,
        connection: &Connection,
        (id, of): (WalletId, ChainId),
        new: &NewValue,
    ) -> Called<()> {
        let key = RowKey::new(id, &new.key);
        let start = transaction_of(key.bytes());
        let end = [start, &[0xFF; 3]].concat();
        let sql = "SELECT key, value FROM blotter.trade
                   WHERE wallet = $1 AND key >= $2 AND key < $3";
        let mut is_waiting = false;
        for row in connection.query(sql, &[&number(id), &start, &end]).await? {
            let (found, value): (&[u8], &[u8]) = (row.try_get(0)?, row.try_get(1)?);
            let old = decode_trade(TRADES, value)?;
            let waits = old.valued == ValueSource::Pending;
            if waits && found == key.bytes() && old.units == new.units {
                let row = StoredTrade { native: new.native, valued: new.valued, ..old };
                let Columns { values, .. } = Columns::of(&[(key, row)]);
                let sql = "UPDATE blotter.trade SET value = $3 WHERE wallet = $1 AND key = $2";
                connection.execute(sql, &[&number(id), &found, &values.first()]).await?;
                is_waiting |= new.valued == ValueSource::Pending;
            } else {
                is_waiting |= waits;
            }
        }
        if is_waiting {
            return Ok(());
        }
        self.wait_no_more(connection, (id, of), &[wanted_value_key(of, key.bytes())]).await
    }
}
