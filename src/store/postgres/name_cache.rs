//! Caches names of tokens and venues.

use std::sync::Arc;

use tokio::time::Instant;

use super::LIMITS;
use super::slice::{SliceNames, StoredSlice};
use crate::domain::{Address, BoundedCache, ChainId, Token};
use crate::store::TokenRecord;

/// Names never change, but a token may get its symbol or decimals: one that lacks them expires.
#[derive(Debug)]
pub(super) struct NameCache {
    pub(super) tokens: BoundedCache<u32, (Arc<Token>, Option<Instant>)>,
    pub(super) records: BoundedCache<(ChainId, Address), (u32, TokenRecord)>,
    pub(super) venues: BoundedCache<u32, Arc<str>>,
    pub(super) venue_ids: BoundedCache<Arc<str>, u32>,
}

impl NameCache {
    pub(super) fn new() -> Self {
        let max = LIMITS.names_known;
        Self {
            tokens: BoundedCache::new(max),
            records: BoundedCache::new(max),
            venues: BoundedCache::new(max),
            venue_ids: BoundedCache::new(max),
        }
    }

    pub(super) fn clear(&self) {
        self.tokens.clear();
        self.records.clear();
        self.venues.clear();
        self.venue_ids.clear();
    }

    pub(super) fn keep(&self, id: u32, record: &TokenRecord) -> Arc<Token> {
        let TokenRecord { chain, mint, symbol, decimals, .. } = record.clone();
        let is_whole = symbol.is_some() && decimals.is_some();
        let token = Arc::new(Token::new(mint, symbol, decimals));
        let until = (!is_whole).then(|| Instant::now() + LIMITS.names_refresh);
        self.tokens.put(id, (Arc::clone(&token), until));
        self.records.put((chain, mint), (id, record.clone()));
        token
    }

    pub(super) fn token(&self, id: u32) -> Option<Arc<Token>> {
        let (token, until) = self.tokens.get(&id)?;
        until.is_none_or(|until| Instant::now() < until).then_some(token)
    }

    pub(super) fn known(&self, StoredSlice { tokens, venues, .. }: &StoredSlice) -> SliceNames {
        SliceNames {
            tokens: tokens.all.iter().map(|id| self.token(*id)).collect(),
            venues: venues.all.iter().map(|id| self.venues.get(id)).collect(),
        }
    }

    pub(super) fn numbers(
        &self,
        chain: ChainId,
        mint: Address,
        venue: &Arc<str>,
    ) -> Option<(u32, u32)> {
        Some((self.records.get(&(chain, mint))?.0, self.venue_ids.get(venue)?))
    }
}
