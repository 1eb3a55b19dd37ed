//! Interns tokens and venues for the writer, and stores metadata of tokens.

use std::sync::Arc;

use foldhash::HashMap;
use redb::{ReadableTable as _, Table, WriteTransaction};

use crate::domain::{Address, ChainId, Trade};

use super::codec;
use super::key::{address_key, wanted_key};
use super::schema::names::TOKENS;
use super::schema::{TOKEN_ID_TO_TOKEN, TOKEN_TO_ID, VENUE_ID_TO_NAME, VENUE_TO_ID, WANTED_TOKEN};
use super::trade_codec::StoredTrade;
use super::{LIMITS, Result, StoreError, TokenRecord};

/// The writer's cache of numbers. It must be dropped after an aborted transaction, whose numbers
/// were never stored.
#[derive(Debug, Default)]
pub(super) struct Known {
    tokens: HashMap<(ChainId, Address), u32>,
    venues: HashMap<Arc<str>, u32>,
    /// Tokens whose records the open transaction has changed.
    pub(super) changed: Vec<u32>,
}

impl Known {
    fn make_room(&mut self) {
        if self.tokens.len() >= LIMITS.interned {
            self.tokens.clear();
        }
        if self.venues.len() >= LIMITS.interned {
            self.venues.clear();
        }
    }
}

pub(super) struct Names<'txn> {
    token_to_id: Table<'txn, &'static [u8], u32>,
    id_to_token: Table<'txn, u32, &'static [u8]>,
    wanted: Table<'txn, [u8; 14], ()>,
    venue_to_id: Table<'txn, &'static str, u32>,
    id_to_venue: Table<'txn, u32, &'static str>,
}

impl<'txn> Names<'txn> {
    pub(super) fn open(txn: &'txn WriteTransaction) -> Result<Self> {
        Ok(Self {
            token_to_id: txn.open_table(TOKEN_TO_ID)?,
            id_to_token: txn.open_table(TOKEN_ID_TO_TOKEN)?,
            wanted: txn.open_table(WANTED_TOKEN)?,
            venue_to_id: txn.open_table(VENUE_TO_ID)?,
            id_to_venue: txn.open_table(VENUE_ID_TO_NAME)?,
        })
    }

    /// A trade with numbers in place of its token and its venue.
    pub(super) fn stored(
        &mut self,
        known: &mut Known,
        chain: ChainId,
        trade: &Trade,
    ) -> Result<StoredTrade> {
        let token = self.token(known, chain, trade.mint)?;
        Ok(StoredTrade::of(trade, token, self.venue(known, &trade.venue)?))
    }

    /// The number of a token; a new one gets an empty record.
    pub(super) fn token(
        &mut self,
        known: &mut Known,
        chain: ChainId,
        mint: Address,
    ) -> Result<u32> {
        if let Some(id) = known.tokens.get(&(chain, mint)) {
            return Ok(*id);
        }
        let key = address_key(chain, &mint);
        let found = self.token_to_id.get(key.as_slice())?.map(|id| id.value());
        let id = if let Some(id) = found {
            id
        } else {
            let id = next_id(&self.id_to_token)?;
            self.token_to_id.insert(key.as_slice(), id)?;
            self.put_token(id, None, &TokenRecord::bare(chain, mint))?;
            id
        };
        known.make_room();
        known.tokens.insert((chain, mint), id);
        Ok(id)
    }

    pub(super) fn venue(&mut self, known: &mut Known, name: &Arc<str>) -> Result<u32> {
        if let Some(id) = known.venues.get(name) {
            return Ok(*id);
        }
        let found = self.venue_to_id.get(&**name)?.map(|id| id.value());
        let id = if let Some(id) = found {
            id
        } else {
            let id = next_id(&self.id_to_venue)?;
            self.venue_to_id.insert(&**name, id)?;
            self.id_to_venue.insert(id, &**name)?;
            id
        };
        known.make_room();
        known.venues.insert(Arc::clone(name), id);
        Ok(id)
    }

    /// Adds metadata of a token; fields that `news` lacks stay.
    pub(super) fn learn(&mut self, known: &mut Known, news: &TokenRecord) -> Result<()> {
        let id = self.token(known, news.chain, news.mint)?;
        let none = || codec::corrupt(TOKENS, format_args!("no token {id}"));
        let old = codec::decode_token(TOKENS, self.id_to_token.get(id)?.ok_or_else(none)?.value())?;
        let joined = old.joined(news);
        if joined != old {
            self.put_token(id, Some(&old), &joined)?;
            known.changed.push(id);
        }
        Ok(())
    }

    fn put_token(&mut self, id: u32, old: Option<&TokenRecord>, new: &TokenRecord) -> Result<()> {
        if let Some(key) = old.and_then(|old| wanted(id, old)) {
            self.wanted.remove(key)?;
        }
        if let Some(key) = wanted(id, new) {
            self.wanted.insert(key, ())?;
        }
        self.id_to_token.insert(id, codec::encode_token(new)?.as_slice())?;
        Ok(())
    }
}

/// The key under which a token waits for a look-up; `None` where it lacks nothing.
fn wanted(id: u32, token: &TokenRecord) -> Option<[u8; 14]> {
    (!token.is_whole()).then(|| wanted_key(token.chain, token.asked_at.map_or(0, |at| at.0), id))
}

pub(super) const TOO_MANY: StoreError = StoreError::Invalid("more than 2^32 records");

/// The number after the highest one of a table.
pub(super) fn next_id<V: redb::Value>(table: &Table<'_, u32, V>) -> Result<u32> {
    match table.last()? {
        None => Ok(0),
        Some((last, _)) => last.value().checked_add(1).ok_or(TOO_MANY),
    }
}
