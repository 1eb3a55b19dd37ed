//! Rows of one wallet as read from the database.

use std::sync::Arc;

use foldhash::HashMap;
use tokio_postgres::Row;

use super::call::Called;
use crate::domain::{BareRow, Family, Height, Rows, Token};
use crate::store::Result;
use crate::store::codec::corrupt;
use crate::store::key::read_row_key;
use crate::store::schema::names::{TOKENS, TRADES, VENUES};
use crate::store::trade_codec::decode_trade;

/// Rows whose tokens and venues are indices into sets of stored numbers.
#[derive(Debug, Default)]
pub(super) struct StoredSlice {
    rows: Vec<BareRow>,
    pub(super) tokens: NumberSet,
    pub(super) venues: NumberSet,
}

/// Distinct numbers in the order of their first occurrence.
#[derive(Debug, Default)]
pub(super) struct NumberSet {
    pub(super) all: Vec<u32>,
    places: HashMap<u32, usize>,
    /// The last one that was looked up: neighbouring rows often share it.
    last: Option<(u32, usize)>,
}

/// The names of a slice, in the order of their numbers.
#[derive(Debug)]
pub(super) struct SliceNames {
    pub(super) tokens: Vec<Option<Arc<Token>>>,
    pub(super) venues: Vec<Option<Arc<str>>>,
}

impl NumberSet {
    fn place(&mut self, number: u32) -> usize {
        if let Some((_, place)) = self.last.filter(|(last, _)| *last == number) {
            return place;
        }
        let next = self.all.len();
        let place = *self.places.entry(number).or_insert(next);
        if place == next {
            self.all.push(number);
        }
        self.last = Some((number, place));
        place
    }

    pub(super) fn find(&self, number: u32) -> Option<usize> {
        self.places.get(&number).copied()
    }
}

impl StoredSlice {
    /// A slice with capacity for so many rows.
    pub(super) fn with_room(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows), ..Self::default() }
    }

    /// Decodes a row of the database.
    pub(super) fn push(
        &mut self,
        row: &Row,
        (key, value): (usize, usize),
        family: Family,
    ) -> Called<()> {
        let key = read_row_key(row.try_get(key)?, family)
            .ok_or_else(|| corrupt(TRADES, "a key that is none"))?;
        let trade = decode_trade(TRADES, row.try_get(value)?)?;
        self.rows.push(BareRow {
            key,
            side: trade.side,
            units: trade.units,
            native: trade.native,
            valued: trade.valued,
            token: self.tokens.place(trade.token),
            venue: self.venues.place(trade.venue),
        });
        Ok(())
    }

    /// Restores the order: the rows of a `UNION ALL` may come in another one.
    pub(super) fn sort(&mut self) {
        if !self.rows.is_sorted_by_key(|row| row.key) {
            self.rows.sort_by_key(|row| row.key);
        }
    }

    /// Drops rows from the first one below `floor` on, and those above the limit. Returns whether
    /// the limit dropped any.
    pub(super) fn cut(&mut self, floor: Height, limit: usize) -> bool {
        let inside = self.rows.iter().take_while(|row| row.key.height >= floor).count();
        self.rows.truncate(inside.min(limit));
        inside > limit
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn named(self, SliceNames { tokens, venues }: SliceNames) -> Result<Rows> {
        let tokens: Option<Vec<_>> = tokens.into_iter().collect();
        let venues: Option<Vec<_>> = venues.into_iter().collect();
        let tokens = tokens.ok_or_else(|| corrupt(TOKENS, "no such token"))?;
        let venues = venues.ok_or_else(|| corrupt(VENUES, "no such venue"))?;
        let rows = Rows::of(self.rows, tokens, venues);
        rows.ok_or_else(|| corrupt(TRADES, "a row without a name"))
    }
}

impl SliceNames {
    pub(super) fn is_whole(&self) -> bool {
        self.tokens.iter().all(Option::is_some) && self.venues.iter().all(Option::is_some)
    }
}
