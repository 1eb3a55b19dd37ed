//! Prices of native coins by chain and minute, in bounded tables: first in, first out.

use redb::{ReadableTable as _, ReadableTableMetadata as _, Table, WriteTransaction};

use crate::domain::{ChainId, LearnedPrice, Minute, Price};

use super::schema::names::LEARNED;
use super::schema::{MINUTE_TO_CANDLE, MINUTE_TO_LEARNED, ORDER_TO_CANDLE, ORDER_TO_LEARNED};
use super::{LIMITS, PriceRecord, Result, codec};

pub(super) struct Prices<'txn> {
    learned: Minutes<'txn>,
    candles: Minutes<'txn>,
}

impl<'txn> Prices<'txn> {
    pub(super) fn open(txn: &'txn WriteTransaction) -> Result<Self> {
        let minutes = |table, order| -> Result<Minutes<'txn>> {
            let (table, order) = (txn.open_table(table)?, txn.open_table(order)?);
            Ok(Minutes { table, order, max: LIMITS.price_minutes })
        };
        let learned = minutes(MINUTE_TO_LEARNED, ORDER_TO_LEARNED)?;
        Ok(Self { learned, candles: minutes(MINUTE_TO_CANDLE, ORDER_TO_CANDLE)? })
    }

    pub(super) fn put(&mut self, chain: ChainId, prices: &[PriceRecord]) -> Result<()> {
        for price in prices {
            match price {
                PriceRecord::Learned(price) => self.learn(chain, price)?,
                PriceRecord::Candle(minute, price) => self.candle(chain, *minute, *price)?,
            }
        }
        Ok(())
    }

    /// Of more prices than the limit, those with the lowest tags stay, independently of the order
    /// of their arrival.
    fn learn(&mut self, chain: ChainId, new: &LearnedPrice) -> Result<()> {
        let key = (chain.0, Minute::of(new.time).0);
        let mut prices = match self.learned.table.get(key)? {
            Some(bytes) => codec::decode_learned(LEARNED, bytes.value())?,
            None => Vec::new(),
        };
        if prices.iter().any(|known| known.tag == new.tag) {
            return Ok(());
        }
        prices.push(*new);
        prices.sort_by_key(|price| price.tag);
        prices.truncate(LIMITS.prices_per_minute);
        self.learned.put(key, &codec::encode_learned(&prices)?)
    }

    fn candle(&mut self, chain: ChainId, minute: Minute, price: Option<Price>) -> Result<()> {
        let key = (chain.0, minute.0);
        if self.candles.table.get(key)?.is_some() {
            return Ok(());
        }
        self.candles.put(key, &codec::encode_candle(price)?)
    }
}

/// A bounded table of minutes, with the order of their arrival.
struct Minutes<'txn> {
    table: Table<'txn, (u16, u32), &'static [u8]>,
    order: Table<'txn, u64, (u16, u32)>,
    max: u64,
}

impl Minutes<'_> {
    fn put(&mut self, key: (u16, u32), value: &[u8]) -> Result<()> {
        if self.table.insert(key, value)?.is_some() {
            return Ok(());
        }
        let last = self.order.last()?.map_or(0, |(last, _)| last.value());
        self.order.insert(last.saturating_add(1), key)?;
        while self.table.len()? > self.max {
            let Some(first) = self.order.pop_first()?.map(|(_, key)| key.value()) else { break };
            self.table.remove(first)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use redb::{Database, ReadableDatabase as _, backends::InMemoryBackend};

    use super::*;
    use crate::domain::UnixSeconds;

    fn learned(minute: u32, tag: u64) -> LearnedPrice {
        LearnedPrice { time: UnixSeconds(minute * 60 + 7), price: Price(tag.into()), tag }
    }

    fn write(database: &Database, max: u64, records: &[PriceRecord]) {
        let txn = database.begin_write().unwrap();
        {
            let mut prices = Prices::open(&txn).unwrap();
            (prices.learned.max, prices.candles.max) = (max, max);
            prices.put(ChainId(3), records).unwrap();
        }
        txn.commit().unwrap();
    }

    fn database() -> Database {
        Database::builder().create_with_backend(InMemoryBackend::new()).unwrap()
    }

    fn minutes(database: &Database) -> Vec<u32> {
        let txn = database.begin_read().unwrap();
        let table = txn.open_table(MINUTE_TO_LEARNED).unwrap();
        table.iter().unwrap().map(|entry| entry.unwrap().0.value().1).collect()
    }

    #[test]
    fn the_minute_that_came_first_goes_first() {
        let database = database();
        // A back-fill: the newest minutes come first.
        let records: Vec<_> =
            (0..6).rev().map(|at| PriceRecord::Learned(learned(at, at.into()))).collect();
        write(&database, 4, &records);
        assert_eq!(minutes(&database), [0, 1, 2, 3]);
        // Another price of a known minute is no new minute.
        write(&database, 4, &[PriceRecord::Learned(learned(3, 99))]);
        write(&database, 4, &[PriceRecord::Learned(learned(9, 1))]);
        assert_eq!(minutes(&database), [0, 1, 2, 9]);
    }

    #[test]
    fn a_minute_keeps_the_same_prices_in_any_order_of_arrival() {
        let tags: Vec<u64> = (0..20).map(|at| at * 7 % 20).collect();
        let kept = |tags: &[u64]| {
            let database = database();
            let record = |tag: &u64| PriceRecord::Learned(learned(5, *tag));
            write(&database, 4, &tags.iter().map(record).collect::<Vec<_>>());
            // The same transaction again, out of another wallet's history.
            write(&database, 4, &tags.iter().map(record).collect::<Vec<_>>());
            let txn = database.begin_read().unwrap();
            let table = txn.open_table(MINUTE_TO_LEARNED).unwrap();
            let bytes = table.get((3, 5)).unwrap().unwrap();
            codec::decode_learned(LEARNED, bytes.value()).unwrap()
        };
        let there = kept(&tags);
        let back = kept(&tags.iter().rev().copied().collect::<Vec<_>>());
        assert_eq!(there, back);
        let tags: Vec<u64> = there.iter().map(|price| price.tag).collect();
        assert_eq!(tags, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn the_first_candle_stays() {
        let database = database();
        let candle = |price| PriceRecord::Candle(Minute(5), price);
        write(&database, 4, &[candle(Some(Price(1))), candle(Some(Price(2))), candle(None)]);
        let txn = database.begin_read().unwrap();
        let table = txn.open_table(MINUTE_TO_CANDLE).unwrap();
        let bytes = table.get((3, 5)).unwrap().unwrap();
        assert_eq!(codec::decode_candle("t", bytes.value()).unwrap(), Some(Price(1)));
    }
}
