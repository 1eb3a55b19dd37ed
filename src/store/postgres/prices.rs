//! Prices of native coins by chain and minute, bounded: first in, first out.

use super::call::{Called, Connection};
use super::names::chain;
use super::store::PgInner;
use crate::domain::{ChainId, LearnedPrice, Minute, UnixSeconds};
use crate::store::schema::names::{CANDLES, LEARNED};
use crate::store::{KeptCandle, PriceRecord, codec};

impl PgInner {
    /// Stores prices; existing ones stay.
    pub(super) async fn put_prices(
        &self,
        connection: &Connection,
        of: ChainId,
        prices: &[PriceRecord],
    ) -> Called<()> {
        let (mut learned, mut candles) = (Vec::new(), Vec::new());
        for price in prices {
            match price {
                PriceRecord::Learned(price) => {
                    let minute = i64::from(Minute::of(price.time).0);
                    let value = codec::encode_learned(&[*price])?;
                    learned.push((minute, (price.tag.to_be_bytes().to_vec(), value)));
                }
                PriceRecord::Candle(minute, price) => {
                    candles.push((i64::from(minute.0), codec::encode_candle(*price)?));
                }
            }
        }
        if !learned.is_empty() {
            let (minutes, rest): (Vec<_>, Vec<_>) = learned.into_iter().unzip();
            let (tags, values): (Vec<_>, Vec<_>) = rest.into_iter().unzip();
            let sql = "INSERT INTO blotter.learned_price (chain, minute, tag, value)
                       SELECT $1, m, t, v
                       FROM unnest($2::bigint[], $3::bytea[], $4::bytea[]) AS new(m, t, v)
                       ON CONFLICT DO NOTHING";
            connection.execute(sql, &[&chain(of), &minutes, &tags, &values]).await?;
        }
        if !candles.is_empty() {
            let (minutes, values): (Vec<_>, Vec<_>) = candles.into_iter().unzip();
            let sql = "INSERT INTO blotter.candle (chain, minute, value)
                       SELECT $1, m, v FROM unnest($2::bigint[], $3::bytea[]) AS new(m, v)
                       ON CONFLICT DO NOTHING";
            connection.execute(sql, &[&chain(of), &minutes, &values]).await?;
        }
        Ok(())
    }

    /// Removes prices above the limits. The process with a duty calls it.
    pub(super) async fn trim_prices(&self, connection: &Connection) -> Called<()> {
        let minutes = i64::try_from(crate::store::LIMITS.price_minutes).unwrap_or(i64::MAX);
        let each = i64::try_from(crate::store::LIMITS.prices_per_minute).unwrap_or(1);
        let sql = "DELETE FROM blotter.learned_price WHERE arrival < (
                       SELECT max(arrival) FROM blotter.learned_price) - $1";
        connection.execute(sql, &[&minutes.saturating_mul(each)]).await?;
        let sql = "DELETE FROM blotter.candle WHERE arrival < (
                       SELECT max(arrival) FROM blotter.candle) - $1";
        connection.execute(sql, &[&minutes]).await?;
        Ok(())
    }

    /// Of more prices in a minute than the limit, those with the lowest tags.
    pub(super) async fn learned_prices(
        &self,
        of: ChainId,
        from: UnixSeconds,
        to: UnixSeconds,
    ) -> Called<Vec<LearnedPrice>> {
        let (first, last) = (i64::from(Minute::of(from).0), i64::from(Minute::of(to).0));
        let each = i64::try_from(crate::store::LIMITS.prices_per_minute).unwrap_or(1);
        let sql = "SELECT value FROM (
                       SELECT minute, tag, value,
                              row_number() OVER (PARTITION BY minute ORDER BY tag) AS place
                       FROM blotter.learned_price
                       WHERE chain = $1 AND minute BETWEEN $2 AND $3) ranked
                   WHERE place <= $4 ORDER BY minute, tag";
        let mut prices = Vec::new();
        for row in self.rows(sql, &[&chain(of), &first, &last, &each]).await? {
            let minute = codec::decode_learned(LEARNED, row.try_get(0)?)?;
            prices.extend(minute.into_iter().filter(|p| from <= p.time && p.time <= to));
        }
        Ok(prices)
    }

    pub(super) async fn candle(&self, of: ChainId, minute: Minute) -> Called<KeptCandle> {
        let sql = "SELECT value FROM blotter.candle WHERE chain = $1 AND minute = $2";
        let row = self.row(sql, &[&chain(of), &i64::from(minute.0)]).await?;
        let Some(row) = row else { return Ok(KeptCandle::Unasked) };
        let price = codec::decode_candle(CANDLES, row.try_get(0)?)?;
        Ok(price.map_or(KeptCandle::Nothing, KeptCandle::Price))
    }
}
