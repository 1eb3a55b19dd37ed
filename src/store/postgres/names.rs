//! Interns tokens and venues, and stores metadata of tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::call::{Arguments, Called, Connection};
use super::slice::{NumberSet, SliceNames, StoredSlice};
use super::store::{PgInner, signed, small, unsigned};
use crate::domain::{Address, ChainId, UnixMillis};
use crate::store::TokenRecord;
use crate::store::codec::{corrupt, family_number, family_of_number};
use crate::store::schema::names::{TOKENS, VENUES};

const TOKEN_COLUMNS: &str = "id, chain, mint, family, symbol, decimals, asked_at";

/// Adds metadata of existing tokens. Locks rows in one order, so that processes cannot deadlock.
const KNOWN_TOKENS: &str = "
WITH news AS (
    SELECT id, s, d, a FROM blotter.token
    JOIN unnest($1::integer[], $2::bytea[], $3::smallint[], $4::bytea[], $5::smallint[], $6::bigint[])
        AS new(c, m, f, s, d, a) ON chain = c AND mint = m
    ORDER BY chain, mint FOR UPDATE OF token
)
UPDATE blotter.token SET symbol = coalesce(s, symbol), decimals = coalesce(d, decimals),
    asked_at = greatest(asked_at, a)
FROM news WHERE token.id = news.id
RETURNING token.id, chain, mint, family, symbol, decimals, asked_at";

/// Adds new tokens; a conflict is with a process that added them meanwhile.
const NEW_TOKENS: &str = "
INSERT INTO blotter.token (chain, mint, family, symbol, decimals, asked_at)
SELECT * FROM unnest($1::integer[], $2::bytea[], $3::smallint[], $4::bytea[], $5::smallint[], $6::bigint[])
ON CONFLICT (chain, mint) DO UPDATE
    SET symbol = coalesce(EXCLUDED.symbol, token.symbol),
        decimals = coalesce(EXCLUDED.decimals, token.decimals),
        asked_at = greatest(token.asked_at, EXCLUDED.asked_at)
RETURNING id, chain, mint, family, symbol, decimals, asked_at";

pub(super) fn chain(chain: ChainId) -> i32 {
    i32::from(chain.0)
}

fn read_token(row: &tokio_postgres::Row) -> Called<(u32, TokenRecord)> {
    let id = small(row.try_get(0)?, TOKENS)?;
    let family = family_of_number(u8::try_from(row.try_get::<_, i16>(3)?).unwrap_or_default());
    let family = family.ok_or_else(|| corrupt(TOKENS, "an unknown family"))?;
    let mint = Address::from_bytes(family, row.try_get(2)?)
        .ok_or_else(|| corrupt(TOKENS, "an address of a wrong length"))?;
    let symbol: Option<&[u8]> = row.try_get(4)?;
    let symbol = symbol.map(std::str::from_utf8).transpose();
    let decimals: Option<i16> = row.try_get(5)?;
    let asked_at: Option<i64> = row.try_get(6)?;
    let chain: i32 = row.try_get(1)?;
    let record = TokenRecord {
        chain: ChainId(u16::try_from(chain).map_err(|_| corrupt(TOKENS, "an unknown chain"))?),
        mint,
        symbol: symbol.map_err(|error| corrupt(TOKENS, error))?.map(Arc::from),
        decimals: decimals.and_then(|decimals| u8::try_from(decimals).ok()),
        asked_at: asked_at.map(|at| UnixMillis(unsigned(at))),
    };
    Ok((id, record))
}

impl PgInner {
    /// The names of a slice, without a query where all of them are cached.
    pub(super) async fn names_of(&self, slice: &StoredSlice) -> Called<SliceNames> {
        let mut names = self.names.known(slice);
        if names.is_whole() {
            return Ok(names);
        }
        let connection = self.connection().await?;
        let StoredSlice { tokens, venues, .. } = slice;
        let lacking_tokens = lacking(tokens, &names.tokens);
        if !lacking_tokens.is_empty() {
            let sql = format!("SELECT {TOKEN_COLUMNS} FROM blotter.token WHERE id = ANY($1)");
            for row in connection.query(&sql, &[&lacking_tokens]).await? {
                let (id, record) = read_token(&row)?;
                put(&mut names.tokens, tokens.find(id), self.names.keep(id, &record));
            }
        }
        let lacking_venues = lacking(venues, &names.venues);
        if !lacking_venues.is_empty() {
            for (id, name) in self.read_venues(&connection, &lacking_venues).await? {
                put(&mut names.venues, venues.find(id), name);
            }
        }
        connection.give_back();
        Ok(names)
    }

    async fn read_venues(
        &self,
        connection: &Connection,
        ids: &[i64],
    ) -> Called<Vec<(u32, Arc<str>)>> {
        let sql = "SELECT id, name FROM blotter.venue WHERE id = ANY($1)";
        let mut found = Vec::new();
        for row in connection.query(sql, &[&ids]).await? {
            let id = small(row.try_get(0)?, VENUES)?;
            let name = std::str::from_utf8(row.try_get(1)?);
            let name: Arc<str> = name.map_err(|error| corrupt(VENUES, error))?.into();
            self.names.venues.put(id, Arc::clone(&name));
            self.names.venue_ids.put(Arc::clone(&name), id);
            found.push((id, name));
        }
        Ok(found)
    }

    pub(super) async fn intern_venues(
        &self,
        connection: &Connection,
        venues: &BTreeSet<&Arc<str>>,
    ) -> Called<()> {
        let new: Vec<&[u8]> = venues
            .iter()
            .filter(|name| self.names.venue_ids.get(**name).is_none())
            .map(|name| name.as_bytes())
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO blotter.venue (name) SELECT n FROM unnest($1::bytea[]) n
                   WHERE NOT EXISTS (SELECT 1 FROM blotter.venue WHERE name = n)
                   ON CONFLICT DO NOTHING";
        connection.execute(sql, &[&new]).await?;
        let sql = "SELECT array_agg(id) FROM blotter.venue WHERE name = ANY($1)";
        let row = connection.query_opt(sql, &[&new]).await?;
        let ids: Option<Vec<i64>> = row.map(|row| row.try_get(0)).transpose()?.flatten();
        self.read_venues(connection, &ids.unwrap_or_default()).await?;
        Ok(())
    }

    /// Interns the tokens that have no number, and adds metadata of the others.
    pub(super) async fn learn(&self, connection: &Connection, news: &[TokenRecord]) -> Called<()> {
        let mut changed: BTreeMap<(ChainId, Address), TokenRecord> = BTreeMap::new();
        for news in news {
            let known = self.names.records.get(&(news.chain, news.mint)).map(|(_, old)| old);
            if known.as_ref().is_some_and(|old| old.joined(news) == *old) {
                continue;
            }
            let entry = changed.entry((news.chain, news.mint));
            entry.and_modify(|old| *old = old.joined(news)).or_insert_with(|| news.clone());
        }
        self.change(connection, KNOWN_TOKENS, &mut changed).await?;
        self.change(connection, NEW_TOKENS, &mut changed).await?;
        if changed.is_empty() {
            return Ok(());
        }
        Err(corrupt(TOKENS, "a token that is not there").into())
    }

    /// Writes metadata of tokens, and removes from `news` those that were written.
    async fn change(
        &self,
        connection: &Connection,
        sql: &str,
        news: &mut BTreeMap<(ChainId, Address), TokenRecord>,
    ) -> Called<()> {
        if news.is_empty() {
            return Ok(());
        }
        let records = || news.values();
        let chains: Vec<i32> = records().map(|news| chain(news.chain)).collect();
        let mints: Vec<&[u8]> = news.keys().map(|(_, mint)| mint.bytes()).collect();
        let family = |news: &TokenRecord| i16::from(family_number(news.mint.family()));
        let families: Vec<i16> = records().map(family).collect();
        let symbol = |news: &TokenRecord| news.symbol.as_ref().map(|text| text.as_bytes().to_vec());
        let symbols: Vec<Option<Vec<u8>>> = records().map(symbol).collect();
        let decimals: Vec<Option<i16>> =
            records().map(|news| news.decimals.map(i16::from)).collect();
        let asked_at: Vec<Option<i64>> =
            records().map(|news| news.asked_at.map(|at| signed(at.0))).collect();
        let args: &Arguments<'_> = &[&chains, &mints, &families, &symbols, &decimals, &asked_at];
        for row in connection.query(sql, args).await? {
            let (id, record) = read_token(&row)?;
            news.remove(&(record.chain, record.mint));
            self.names.keep(id, &record);
        }
        Ok(())
    }

    pub(super) async fn token(
        &self,
        chain_id: ChainId,
        mint: &Address,
    ) -> Called<Option<TokenRecord>> {
        if let Some((_, record)) = self.names.records.get(&(chain_id, *mint))
            && record.is_whole()
        {
            return Ok(Some(record));
        }
        let sql =
            format!("SELECT {TOKEN_COLUMNS} FROM blotter.token WHERE chain = $1 AND mint = $2");
        let row = self.row(&sql, &[&chain(chain_id), &mint.bytes()]).await?;
        let Some(row) = row else { return Ok(None) };
        let (id, record) = read_token(&row)?;
        self.names.keep(id, &record);
        Ok(Some(record))
    }

    pub(super) async fn tokens_wanting_symbols(
        &self,
        chain_id: ChainId,
        before: UnixMillis,
        limit: usize,
    ) -> Called<Vec<TokenRecord>> {
        let sql = format!(
            "SELECT {TOKEN_COLUMNS} FROM blotter.token
             WHERE chain = $1 AND (symbol IS NULL OR decimals IS NULL)
                 AND COALESCE(asked_at, 0) < $2
             ORDER BY COALESCE(asked_at, 0), id LIMIT $3"
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.rows(&sql, &[&chain(chain_id), &signed(before.0), &limit]).await?;
        rows.iter().map(|row| Ok(read_token(row)?.1)).collect()
    }
}

fn lacking<T>(numbers: &NumberSet, names: &[Option<T>]) -> Vec<i64> {
    let all = numbers.all.iter().zip(names);
    all.filter(|(_, name)| name.is_none()).map(|(id, _)| i64::from(*id)).collect()
}

fn put<T>(names: &mut [Option<T>], place: Option<usize>, name: T) {
    if let Some(slot) = place.and_then(|place| names.get_mut(place)) {
        *slot = Some(name);
    }
}
