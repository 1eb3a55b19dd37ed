//! Reads a Solana wallet's transactions: lists of signatures, merged; transactions, fetched ahead.
//!
//! A slot is atomic: it is delivered only once every list has been read below it.

mod activity;
mod backlog;
mod balance_chain;
mod balances;
mod blocks;
mod end_check;
mod fetch;
mod full_pages;
mod gateway;
mod hint;
mod index_reach;
mod late;
mod limits;
mod list;
mod list_page;
mod list_reader;
mod listing;
mod open;
mod owned;
mod page_reader;
mod price_wire;
mod prices;
#[cfg(test)]
mod proof_tests;
mod reader;
mod scan;
mod segment;
mod segments;
mod statuses;
mod timeline;
mod tokens;
mod wire;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) use blocks::{DROPPED, NOT_AVAILABLE};
pub use limits::SolanaLimits;

use super::ability::{Ability, AbilityKind};
use super::page_sizes::PageSizes;
use crate::domain::{Height, lock};
use crate::registry::Chain;
use crate::rpc::{
    CallOptions, ChainChecks, EndpointId, EndpointStatus, Pool, Result, UpstreamError,
};
use full_pages::PageOffers;
use index_reach::{BusyAccount, IndexReach};
use prices::References;

/// Solana by JSON-RPC nodes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SolanaSource {
    inner: Arc<Inner>,
    references: Arc<References>,
    /// An open data gateway, for what lists do not name.
    gateway: Option<Pool>,
    /// Shows how far lists have come; `None` takes their word.
    busy: Option<BusyAccount>,
}

#[derive(Debug)]
struct Inner {
    pool: Pool,
    limits: SolanaLimits,
    /// What `getGenesisHash` must answer.
    genesis_hash: Option<String>,
    chain_checks: Arc<ChainChecks>,
    readers: Arc<AtomicUsize>,
    page_offers: PageOffers,
    reach: IndexReach,
    page_sizes: PageSizes<EndpointId>,
    /// The first block that endpoints were found to keep.
    first_kept: Mutex<BTreeMap<EndpointId, Height>>,
}

impl SolanaSource {
    pub fn new(pool: Pool, genesis_hash: Option<String>, limits: SolanaLimits) -> Self {
        let inner = Inner {
            pool,
            limits,
            genesis_hash,
            chain_checks: Arc::default(),
            readers: Arc::default(),
            page_offers: PageOffers::default(),
            reach: IndexReach::default(),
            page_sizes: PageSizes::default(),
            first_kept: Mutex::default(),
        };
        Self { inner: Arc::new(inner), references: Arc::default(), gateway: None, busy: None }
    }

    /// Prices come from the reference pools of the chain's row.
    #[must_use]
    pub fn with_references(self, chain: &Chain) -> Self {
        Self { references: Arc::new(References::of(chain)), ..self }
    }

    /// The nodes, their chain checks, and the cooldown of one that contradicts the others.
    pub(super) fn nodes(&self) -> (&Pool, &ChainChecks, Duration) {
        (&self.inner.pool, &self.inner.chain_checks, self.inner.limits.contradiction_cooldown)
    }

    pub(super) async fn head(&self, options: &CallOptions) -> Result<Height> {
        let params = serde_json::json!([{"commitment": "finalized"}]);
        let answer = self.inner.pool.call("getSlot", params, options).await?;
        wire::number(&answer.result).ok_or_else(|| self.malformed(answer.endpoint, "getSlot"))
    }

    pub(super) fn endpoints(&self) -> Vec<EndpointStatus> {
        let pools = [&self.inner.pool].into_iter().chain(&self.gateway);
        pools.flat_map(Pool::endpoints).collect()
    }

    pub(super) fn abilities(&self) -> Vec<Vec<Ability>> {
        let of = |status: &EndpointStatus| {
            let by = |kind, method| Ability::by_methods(kind, status, &[method]);
            let lists = by(AbilityKind::SignatureLists, "getSignaturesForAddress");
            let pages = by(AbilityKind::FullPages, "getTransactionsForAddress");
            vec![
                Ability { from: lock(&self.inner.first_kept).get(&status.id).copied(), ..lists },
                by(AbilityKind::TokenAccounts, "getTokenAccountsByOwner"),
                Ability { most: self.page_size(status.id), ..pages },
            ]
        };
        let gateways = self.gateway.iter().flat_map(Pool::endpoints).map(|_| Vec::new());
        self.inner.pool.endpoints().iter().map(of).chain(gateways).collect()
    }

    fn malformed(&self, endpoint: EndpointId, what: &str) -> UpstreamError {
        self.inner.pool.malformed(endpoint, what)
    }
}

/// An answer; `None` where it is refused.
fn if_offered<T>(answered: Result<T>) -> Result<Option<T>> {
    match answered {
        Err(error) if is_refusal(&error) => Ok(None),
        answered => answered.map(Some),
    }
}

/// The same; `None` also while all endpoints that offer the method are on a cooldown, which may be
/// long.
fn if_offered_now<T>(answered: Result<T>) -> Result<Option<T>> {
    match answered {
        Err(UpstreamError::Unavailable { attempts: 0, .. }) => Ok(None),
        answered => if_offered(answered),
    }
}

/// No endpoint serves the method, or the node refuses the question: to ask again changes nothing.
fn is_refusal(error: &UpstreamError) -> bool {
    matches!(
        error,
        UpstreamError::NotSupported { .. }
            | UpstreamError::Refused { .. }
            | UpstreamError::Rpc { .. }
    )
}
