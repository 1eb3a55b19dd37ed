//! Reads an EVM wallet's transactions: windows of candidates from a list, transactions and receipts
//! fetched ahead, native flows from whoever knows them.

mod abi;
mod alchemy;
mod blocks;
mod descent;
mod discovery;
mod explorer;
mod explorer_wire;
mod fetch;
mod limits;
#[cfg(test)]
mod lists_model;
#[cfg(test)]
mod lists_tests;
mod logs;
mod merge;
mod native;
mod open;
mod portal;
mod portal_wire;
mod ranges;
mod reader;
mod subject;
mod texts;
mod tokens;
mod wire;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

pub use discovery::Discovery;
pub use limits::EvmLimits;
pub(super) use reader::EvmReader;

use super::endpoint::EndpointId;
use super::error::UpstreamError;
use super::pool::Pool;
use super::queue::Lane;
use super::source::{GapRequest, SourceStatus, TokenMeta};
use crate::decode::evm::Account;
use crate::domain::Address;
use crate::registry::{Chain, Registry};
use subject::Subject;

/// What an EVM chain is read with.
#[derive(Debug)]
pub struct EvmParts {
    pub chain: Chain,
    pub registry: Arc<Registry>,
    pub rpc: Pool,
    /// Account lists in Etherscan's shape.
    pub explorer: Option<Pool>,
    /// An open data gateway.
    pub portal: Option<Pool>,
    /// In the order in which they are tried; the endpoints that they need are there.
    pub discovery: Vec<Discovery>,
    pub limits: EvmLimits,
}

/// An EVM chain by its nodes and indexes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EvmSource {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    chain: Arc<Chain>,
    registry: Arc<Registry>,
    pool: Pool,
    explorer: Option<Pool>,
    portal: Option<Pool>,
    discovery: Vec<Discovery>,
    limits: EvmLimits,
    /// Endpoints that were asked for their chain, and whether they answered right.
    checked: Mutex<HashMap<EndpointId, bool>>,
    /// What failed of late is left alone until then.
    resting: Mutex<HashMap<Resting, Instant>>,
    /// Blocks that a log query may span.
    log_blocks_max: AtomicU64,
}

/// What may be left alone for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Resting {
    List(Discovery),
    Traces,
    States,
}

impl EvmSource {
    pub fn new(parts: EvmParts) -> Self {
        let EvmParts { chain, registry, rpc, explorer, portal, discovery, limits } = parts;
        let log_blocks_max = AtomicU64::new(limits.log_blocks_max);
        let (checked, resting) = (Mutex::default(), Mutex::default());
        let inner = Inner {
            chain: Arc::new(chain),
            registry,
            pool: rpc,
            explorer,
            portal,
            discovery,
            limits,
            checked,
            resting,
            log_blocks_max,
        };
        Self { inner: Arc::new(inner) }
    }

    pub(super) fn read(&self, request: GapRequest) -> EvmReader {
        EvmReader::new(self.clone(), request)
    }

    pub(super) fn status(&self) -> SourceStatus {
        let lists = [&self.inner.explorer, &self.inner.portal].into_iter().flatten();
        let pools = [&self.inner.pool].into_iter().chain(lists);
        SourceStatus { endpoints: pools.flat_map(Pool::endpoints).collect() }
    }

    pub(super) async fn tokens(
        &self,
        mints: &[Address],
        lane: &Lane,
    ) -> Result<Vec<TokenMeta>, UpstreamError> {
        tokens::tokens(&self.inner.pool, &self.inner.chain, mints, lane).await
    }

    /// Whose transactions are looked for.
    fn subject(&self, wallet: Account) -> Subject {
        let (chain, registry) = (Arc::clone(&self.inner.chain), Arc::clone(&self.inner.registry));
        Subject { wallet, chain, registry }
    }

    /// Whether a trade may reach through this contract a wallet that did not send the transaction.
    fn is_settlement(&self, account: &Account) -> bool {
        self.inner.registry.evm().is_settlement(&self.inner.chain, account)
    }

    fn malformed(&self, endpoint: EndpointId, what: &str) -> UpstreamError {
        let endpoint = self.inner.pool.label(endpoint);
        UpstreamError::Malformed { endpoint, what: what.to_owned() }
    }

    fn log_blocks_max(&self) -> u64 {
        self.inner.log_blocks_max.load(Ordering::Relaxed)
    }

    fn remember_log_blocks(&self, most: u64) {
        self.inner.log_blocks_max.fetch_min(most, Ordering::Relaxed);
    }

    fn rests(&self, what: Resting) -> bool {
        self.resting().get(&what).is_some_and(|until| *until > Instant::now())
    }

    fn rest(&self, what: Resting, pause: Duration) {
        self.resting().insert(what, Instant::now() + pause);
    }

    fn resting(&self) -> MutexGuard<'_, HashMap<Resting, Instant>> {
        self.inner.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
