//! Reads an EVM wallet's transactions: a list gives windows of candidates, transactions and
//! receipts are prefetched, native flows come from any endpoint that has them.

pub(super) mod abi;
mod abilities;
mod activity;
mod alchemy;
#[cfg(test)]
mod alchemy_tests;
mod alchemy_wire;
pub(super) mod balances;
mod block_payments;
mod blocks;
#[cfg(test)]
mod busy_fault;
mod by_block;
mod descent;
mod discovery;
mod empty_lists;
mod explorer;
mod explorer_reach;
mod explorer_wire;
mod fees;
mod fetch;
mod index_start;
mod limits;
mod list_client;
mod list_row;
mod lister;
#[cfg(test)]
mod lists_model;
#[cfg(test)]
mod lists_tests;
mod log_asker;
mod log_depth;
mod log_nodes;
mod log_requests;
mod log_search;
mod log_sizes;
mod logs;
mod merge;
mod native;
mod native_balance;
#[cfg(test)]
mod native_tests;
#[cfg(test)]
mod node_model;
mod open;
mod plain;
mod pool_events;
mod pool_names;
mod portal;
mod portal_answers;
mod portal_candidates;
mod portal_sent;
mod portal_traces;
mod portal_window;
mod portal_wire;
mod prices;
pub(super) mod ranges;
#[cfg(test)]
mod reach_tests;
mod reader;
mod receipts;
pub(super) mod scan;
mod sent;
mod sent_witness;
mod subject;
mod texts;
mod timed;
pub(super) mod tokens;
pub(super) mod wire;

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

pub use discovery::Discovery;
pub use limits::EvmLimits;

use super::known_pools::KnownPools;
use super::reference::ReferencePool;
use super::server_reach::RecentHead;
use super::symbol::TokenMeta;
use crate::decode::evm::{Account, Word};
use crate::domain::{Address, Doubts, Height, Proof, Way, lock};
use crate::registry::{Chain, Registry};
use crate::rpc::{
    CallOptions, ChainChecks, EndpointId, EndpointStatus, Pool, Result, UpstreamError,
};
use abilities::Abilities;
use log_depth::Sentinel;
use log_nodes::LogNodes;

/// The endpoints and settings with which an EVM chain is read.
#[derive(Debug)]
pub struct EvmParts {
    pub chain: Chain,
    pub registry: Arc<Registry>,
    pub rpc: Pool,
    /// Account lists in Etherscan's shape.
    pub explorer: Option<Pool>,
    /// An open data gateway.
    pub portal: Option<Pool>,
    /// The ways of discovery in the order in which they are tried; their endpoints are configured.
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
    chain_checks: Arc<ChainChecks>,
    /// Failed ways: the number of consecutive failures, and until when the other ways come first.
    failures: Mutex<HashMap<Discovery, (u32, Instant)>>,
    abilities: Arc<Abilities>,
    /// The blocks up to which lists were complete when they were last asked.
    list_heads: Mutex<HashMap<Discovery, ListHead>>,
    /// Wallets without code: the block in which that was seen, and when.
    plain: Mutex<HashMap<Account, (Height, Instant)>>,
    log_nodes: Mutex<LogNodes>,
    sentinel: Mutex<Sentinel>,
    /// A final head, and the first block at or above it with logs of busy contracts.
    busy_above: Mutex<Option<(Height, Height)>>,
    /// Up to which heights no endpoint had traces and states, and until when that counts.
    pruned: Mutex<HashMap<Past, (Height, Instant)>>,
    /// The highest heights for which a node that offers traces, or states, refused them as pruned.
    dropped: Mutex<HashMap<Past, Height>>,
    references: KnownPools,
    /// Blocks of which a header's hash is not the one that their transactions name: the hash, and
    /// the number of reads that found it.
    other_heads: Mutex<HashMap<Height, (Word, u32)>>,
    readers: Arc<AtomicUsize>,
}

/// Data of old blocks that nodes may have pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Past {
    Traces,
    States,
    /// Look-ups of transactions by hash.
    Hashes,
}

/// The height of a list, which may fall back.
#[derive(Debug, Clone, Copy, Default)]
struct ListHead {
    late: RecentHead,
    last: Height,
}

impl EvmSource {
    pub fn new(parts: EvmParts) -> Self {
        let EvmParts { chain, registry, rpc, explorer, portal, discovery, limits } = parts;
        let inner = Inner {
            chain: Arc::new(chain),
            registry,
            pool: rpc,
            explorer,
            portal,
            discovery,
            limits,
            chain_checks: Arc::default(),
            failures: Mutex::default(),
            abilities: Arc::default(),
            list_heads: Mutex::default(),
            log_nodes: Mutex::default(),
            sentinel: Mutex::default(),
            busy_above: Mutex::default(),
            plain: Mutex::default(),
            pruned: Mutex::default(),
            dropped: Mutex::default(),
            references: KnownPools::default(),
            other_heads: Mutex::default(),
            readers: Arc::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The nodes, their chain checks, and the cooldown of a node that is alone with its answer.
    pub(super) fn nodes(&self) -> (&Pool, &ChainChecks, Duration) {
        (&self.inner.pool, &self.inner.chain_checks, self.inner.limits.contradiction_cooldown)
    }

    /// Whether a span with this proof counts towards a complete history.
    pub(super) fn accepts(&self, proof: Proof) -> bool {
        self.blind_spots().contains(proof.doubts)
    }

    /// The ways that are excluded from a second opinion on what this way found.
    fn second_opinion(&self, of: Option<Way>) -> Vec<Discovery> {
        let (same, others): (Vec<Discovery>, Vec<Discovery>) =
            self.inner.discovery.iter().partition(|kind| Some(kind.way()) == of);
        if others.is_empty() { Vec::new() } else { same }
    }

    /// What the strongest configured way cannot see.
    pub(super) fn blind_spots(&self) -> Doubts {
        let all = self.inner.discovery.iter().map(|kind| {
            let no_calls = self.inner.abilities.has_no_calls(*kind);
            kind.blind_spots().union(if no_calls { Doubts::INNER_CALLS } else { Doubts::NONE })
        });
        all.reduce(Doubts::intersection).unwrap_or_default()
    }

    pub(super) fn endpoints(&self) -> Vec<EndpointStatus> {
        let lists = [&self.inner.explorer, &self.inner.portal].into_iter().flatten();
        let pools = [&self.inner.pool].into_iter().chain(lists);
        pools.flat_map(Pool::endpoints).collect()
    }

    pub(super) async fn tokens(
        &self,
        mints: &[Address],
        options: &CallOptions,
    ) -> Result<Vec<TokenMeta>> {
        tokens::tokens(&self.inner.pool, &self.inner.chain, mints, options).await
    }

    /// Whether this contract may trade for a wallet that did not send the transaction.
    fn is_settlement(&self, account: &Account) -> bool {
        self.inner.registry.evm().is_settlement(&self.inner.chain, account)
    }

    fn malformed(&self, endpoint: EndpointId, what: &str) -> UpstreamError {
        self.inner.pool.malformed(endpoint, what)
    }

    /// Whether the other ways are tried before this one: it failed recently, or may not see inner
    /// calls that another way sees, in general or at the heights to read.
    fn comes_later(&self, kind: Discovery, (low, high): (Height, Option<Height>)) -> bool {
        let until = lock(&self.inner.failures).get(&kind).map(|(_, until)| *until);
        let lacks_traces = |heights| self.inner.abilities.has_untraced(heights);
        let is_blind = |kind: &Discovery| {
            kind.blind_spots().contains(Doubts::INNER_CALLS)
                || self.inner.abilities.may_have_no_calls(*kind)
                || *kind == Discovery::Portal && high.is_some_and(|high| lacks_traces(low..=high))
        };
        let all = &self.inner.discovery;
        let is_weaker = is_blind(&kind) && !all.iter().all(is_blind);
        is_weaker || until.is_some_and(|until| until > Instant::now())
    }

    /// The pause doubles with each failure in a row.
    fn note_list_failure(&self, kind: Discovery) {
        let limits = &self.inner.limits;
        let mut failures = lock(&self.inner.failures);
        let (count, until) = failures.entry(kind).or_insert((0, Instant::now()));
        let pause = limits.list_cooldown_first.saturating_mul(1 << (*count).min(16));
        *count = count.saturating_add(1);
        *until = Instant::now() + pause.min(limits.list_cooldown_max);
    }

    fn note_list_success(&self, kind: Discovery) {
        lock(&self.inner.failures).remove(&kind);
    }

    /// The height up to which a list was recently complete; 0 if it was not queried.
    fn list_head(&self, kind: Discovery) -> Height {
        let head = lock(&self.inner.list_heads).get(&kind).copied();
        head.and_then(|head| head.late.get(Instant::now())).unwrap_or(0)
    }

    fn note_list_head(&self, kind: Discovery, head: Height) {
        let mut heads = lock(&self.inner.list_heads);
        let known = heads.entry(kind).or_default();
        known.late.note(head, Instant::now());
        known.last = head;
    }

    /// Whether nodes recently lacked this data for the height.
    fn is_pruned(&self, what: Past, height: Height) -> bool {
        let pruned = lock(&self.inner.pruned);
        pruned.get(&what).is_some_and(|(top, until)| height <= *top && *until > Instant::now())
    }

    fn note_pruned(&self, what: Past, height: Height) {
        let until = Instant::now() + self.inner.limits.state_cooldown;
        let mut pruned = lock(&self.inner.pruned);
        // What is known of higher blocks holds for this one too.
        let is_known = |(top, until): &(Height, Instant)| height < *top && *until > Instant::now();
        if !pruned.get(&what).is_some_and(is_known) {
            pruned.insert(what, (height, until));
        }
    }
}
