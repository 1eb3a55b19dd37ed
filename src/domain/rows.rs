//! A run of a wallet's rows between the store and the client. Most rows share their token and venue
//! with others: these are stored once, and a row costs no reference count.

use std::ops::Range;
use std::sync::Arc;

use super::{Decimal, Row, Side, Token, Trade, TradeKey, Units, ValueSource};

/// Rows in the order of delivery.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    bare: Vec<BareRow>,
    tokens: Vec<Arc<Token>>,
    venues: Vec<Arc<str>>,
}

/// A row whose token and venue are indices into its [`Rows`].
#[derive(Debug, Clone, Copy)]
pub struct BareRow {
    pub key: TradeKey,
    pub side: Side,
    pub units: Option<Units>,
    pub native: Option<Units>,
    pub valued: ValueSource,
    /// The index that [`Rows::add_token`] returned.
    pub token: usize,
    /// The index that [`Rows::add_venue`] returned.
    pub venue: usize,
}

/// One row with its token and venue.
#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a> {
    pub bare: &'a BareRow,
    pub token: &'a Arc<Token>,
    pub venue: &'a Arc<str>,
}

impl Rows {
    /// Rows with their names; `None` where one lacks its token or venue.
    pub fn of(bare: Vec<BareRow>, tokens: Vec<Arc<Token>>, venues: Vec<Arc<str>>) -> Option<Self> {
        let is_named = |row: &BareRow| row.token < tokens.len() && row.venue < venues.len();
        bare.iter().all(is_named).then_some(Self { bare, tokens, venues })
    }

    /// Removes all rows and reserves capacity for so many.
    pub fn make_room(&mut self, rows: usize) {
        self.bare.clear();
        self.tokens.clear();
        self.venues.clear();
        self.bare.reserve(rows);
    }

    pub fn add_token(&mut self, token: Arc<Token>) -> usize {
        self.tokens.push(token);
        self.tokens.len() - 1
    }

    pub fn add_venue(&mut self, venue: Arc<str>) -> usize {
        self.venues.push(venue);
        self.venues.len() - 1
    }

    /// Appends a row.
    ///
    /// # Panics
    ///
    /// If its token or venue was not added before: another one would take that index.
    #[inline]
    pub fn push(&mut self, row: BareRow) {
        assert!(
            row.token < self.tokens.len() && row.venue < self.venues.len(),
            "a row whose names were not added"
        );
        self.bare.push(row);
    }

    pub fn len(&self) -> usize {
        self.bare.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bare.is_empty()
    }

    /// The rows without their names.
    pub fn bare(&self) -> &[BareRow] {
        &self.bare
    }

    pub fn venues(&self) -> &[Arc<str>] {
        &self.venues
    }

    pub fn iter(&self) -> impl Iterator<Item = RowRef<'_>> {
        self.iter_from(0)
    }

    /// The rows from an index on; `skip` would iterate over those before it.
    pub fn iter_from(&self, at: usize) -> impl Iterator<Item = RowRef<'_>> {
        self.bare.get(at..).unwrap_or_default().iter().map(|bare| self.named(bare))
    }

    pub fn last_key(&self) -> Option<TradeKey> {
        self.bare.last().map(|row| row.key)
    }

    pub fn truncate(&mut self, rows: usize) {
        self.bare.truncate(rows);
    }

    /// Retains only these ranges, which ascend.
    pub fn keep(&mut self, ranges: &[Range<usize>]) {
        if let [Range { start: 0, end }] = ranges {
            return self.bare.truncate(*end);
        }
        let mut kept = ranges.iter().cloned().flatten().peekable();
        let mut at = 0..;
        self.bare.retain(|_| kept.next_if_eq(&at.next().unwrap_or_default()).is_some());
    }

    pub fn to_vec(&self) -> Vec<Row> {
        self.iter().map(RowRef::to_row).collect()
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "`push` takes no row with other places")]
    fn named<'a>(&'a self, bare: &'a BareRow) -> RowRef<'a> {
        RowRef { bare, token: &self.tokens[bare.token], venue: &self.venues[bare.venue] }
    }
}

impl RowRef<'_> {
    pub fn to_row(self) -> Row {
        let BareRow { key, side, units, native, valued, .. } = *self.bare;
        let (mint, venue) = (self.token.mint, Arc::clone(self.venue));
        Row {
            trade: Trade { key, side, mint, units, native, valued, venue },
            token: Arc::clone(self.token),
        }
    }

    /// The token quantity; `None` where units or decimals are unknown.
    pub fn amount(&self) -> Option<Decimal> {
        Some(Decimal { units: self.bare.units?, decimals: self.token.decimals? })
    }
}

impl AsRef<TradeKey> for BareRow {
    fn as_ref(&self) -> &TradeKey {
        &self.key
    }
}

/// Equal rows, in whichever order their names were added.
impl PartialEq for Rows {
    fn eq(&self, other: &Self) -> bool {
        self.iter().map(RowRef::to_row).eq(other.iter().map(RowRef::to_row))
    }
}

impl IntoIterator for Rows {
    type Item = Row;
    type IntoIter = std::vec::IntoIter<Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.to_vec().into_iter()
    }
}

/// Consecutive equal names are stored once.
impl FromIterator<Row> for Rows {
    fn from_iter<I: IntoIterator<Item = Row>>(rows: I) -> Self {
        let mut all = Self::default();
        for Row { trade, token } in rows {
            let Trade { key, side, units, native, valued, venue, mint: _ } = trade;
            let known = all.tokens.iter().rposition(|known| Arc::ptr_eq(known, &token));
            let token = known.unwrap_or_else(|| all.add_token(token));
            let known = all.venues.iter().rposition(|known| *known == venue);
            let venue = known.unwrap_or_else(|| all.add_venue(venue));
            all.push(BareRow { key, side, units, native, valued, token, venue });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{Address, TxId, UnixSeconds};

    /// A row of one of three tokens and three venues.
    fn row(number: u8) -> Row {
        let token = Token::new(Address::Evm([number % 3; 20]), None, Some(number % 3));
        let tx = TxId::Evm([number; 32]);
        let trade = Trade {
            key: TradeKey { time: UnixSeconds(1), height: 2, index: 0, tx, leg: 0 },
            side: if number.is_multiple_of(2) { Side::Buy } else { Side::Sell },
            mint: token.mint,
            units: Some(Units::from(number)),
            native: None,
            valued: ValueSource::Unknown,
            venue: ["one", "two", "three"][usize::from(number / 3 % 3)].into(),
        };
        Row { trade, token: Arc::new(token) }
    }

    proptest! {
        #[test]
        fn rows_come_back_as_they_went_in_and_what_is_kept_is_kept(
            numbers in proptest::collection::vec(any::<u8>(), 0..40),
            kept in proptest::collection::vec(any::<bool>(), 40),
        ) {
            let rows: Vec<Row> = numbers.iter().copied().map(row).collect();
            let mut shared: Rows = rows.iter().cloned().collect();
            prop_assert!(shared.venues().len() <= 3);
            prop_assert_eq!(shared.to_vec(), rows.as_slice());
            for at in 0..rows.len() + 2 {
                let rest = rows.get(at..).unwrap_or_default().iter().map(|row| row.trade.key.tx);
                prop_assert!(shared.iter_from(at).map(|row| row.bare.key.tx).eq(rest));
            }
            let ranges: Vec<_> = (0..rows.len()).filter(|at| kept[*at]).map(|at| at..at + 1).collect();
            shared.keep(&ranges);
            let wanted = rows.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(row, _)| row);
            prop_assert_eq!(shared.to_vec(), wanted.collect::<Vec<_>>());
        }
    }
}
