//! Rows of one wallet as they come from the database.

use std::collections::BTreeSet;
use std::collections::HashMap;

use tokio_postgres::Row;

use super::call::{CallError, Connection};
use super::names::Resolved;
use super::store::Inner;
use crate::domain::{BareRow, Family, Rows, TradeKey};
use crate::store::StoreError;
use crate::store::codec::corrupt;
use crate::store::key::read_row_key;
use crate::store::schema::names::{TOKENS, TRADES, VENUES};
use crate::store::trade_codec::{StoredTrade, decode_trade};

pub(super) fn decode(
    rows: &[Row],
    (key, value): (usize, usize),
    family: Family,
) -> Result<Vec<(TradeKey, StoredTrade)>, CallError> {
    let one = |row: &Row| {
        let key = read_row_key(row.try_get(key)?, family)
            .ok_or_else(|| corrupt(TRADES, "a key that is none"))?;
        Ok((key, decode_trade(TRADES, row.try_get(value)?)?))
    };
    rows.iter().map(one).collect()
}

impl Inner {
    /// Rows with their names, in room that other rows had.
    pub(super) async fn named(
        &self,
        connection: &Connection,
        trades: &[(TradeKey, StoredTrade)],
        mut rows: Rows,
    ) -> Result<Rows, CallError> {
        let tokens: BTreeSet<u32> = trades.iter().map(|(_, trade)| trade.token).collect();
        let venues: BTreeSet<u32> = trades.iter().map(|(_, trade)| trade.venue).collect();
        let names = self.resolve(connection, tokens, venues).await?;
        rows.make_room(trades.len());
        fill(&mut rows, trades, &names)?;
        Ok(rows)
    }
}

fn fill(
    rows: &mut Rows,
    trades: &[(TradeKey, StoredTrade)],
    names: &Resolved,
) -> Result<(), StoreError> {
    let mut tokens: HashMap<u32, usize> = HashMap::new();
    for (id, token) in &names.tokens {
        tokens.insert(*id, rows.add_token(token.clone()));
    }
    let mut venues: HashMap<u32, usize> = HashMap::new();
    for (id, venue) in &names.venues {
        venues.insert(*id, rows.add_venue(venue.clone()));
    }
    for (key, trade) in trades {
        let StoredTrade { side, units, native, valued, .. } = *trade;
        let token = tokens.get(&trade.token).ok_or_else(|| corrupt(TOKENS, "no such token"))?;
        let venue = venues.get(&trade.venue).ok_or_else(|| corrupt(VENUES, "no such venue"))?;
        let (token, venue) = (*token, *venue);
        rows.push(BareRow { key: *key, side, units, native, valued, token, venue });
    }
    Ok(())
}
