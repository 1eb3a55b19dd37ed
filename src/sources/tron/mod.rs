//! Reads a Tron wallet's transactions: two lists by address if the nodes have them (`TronGrid`),
//! else events by block range; then each transaction with its info.
//!
//! A block is atomic: it is delivered only once every list has been read below it.

mod activity;
mod blocks;
mod depth;
mod depth_search;
mod envelope;
mod existence;
#[cfg(test)]
mod fake;
mod fetch;
mod indexed;
mod info_answers;
mod infos;
mod limits;
mod list;
mod list_proof;
mod lister;
mod logs;
mod missing;
mod offer;
mod open;
mod prices;
mod reader;
mod scan;
mod seen;
mod timeline;
mod tokens;
mod windows;
mod wire;

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use depth::Depths;
use indexed::Indexed;
use info_answers::InternalGivers;
pub use limits::{TronDiscovery, TronLimits};
use list::GivenList;
use offer::Offers;
use prices::References;
use serde_json::Value;
pub use wire::{reading as tron_reading, rpc_reading as tron_rpc_reading};

use super::ability::{Ability, AbilityKind, Offered};
use super::known_pools::KnownPools;
use super::page_sizes::PageSizes;
use super::server_reach::{RecentHead, ServerReach};
use crate::decode::tron::{Asset, ExchangeId};
use crate::domain::{Address, Doubts, Height, Proof, lock};
use crate::registry::Chain;
use crate::rpc::jsonrpc;
use crate::rpc::{
    Ask, Call, CallOptions, CallOutcome, ChainChecks, EndpointId, EndpointStatus, Pool, Reply,
    ReplyClass, Result, RpcError, UpstreamError,
};

/// Tron by nodes that speak its HTTP API. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TronSource {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: Pool,
    limits: TronLimits,
    /// Which endpoints offer account lists, how far those have indexed, and how deep endpoints keep
    /// events.
    offers: Mutex<Offers>,
    page_sizes: PageSizes<GivenList>,
    indexed: Mutex<Indexed>,
    depths: Mutex<Depths>,
    /// How far the servers of each endpoint have come, by the heads that come with events.
    node_reach: ServerReach<()>,
    /// The same where searches are requests of their own: heads from around them.
    log_heads: Mutex<HashMap<EndpointId, RecentHead>>,
    /// Heights that lists may lack below the head.
    index_lag: u64,
    /// What `eth_chainId` must answer.
    chain_id: Option<u64>,
    chain_checks: Arc<ChainChecks>,
    /// The assets of the protocol's exchanges; they never change.
    exchanges: Mutex<HashMap<ExchangeId, [Asset; 2]>>,
    internal_givers: Mutex<InternalGivers>,
    readers: Arc<AtomicUsize>,
    /// The chain row's pools, and those of them that are what it says, once that was asked.
    references: References,
    known_references: KnownPools,
}

impl TronSource {
    pub fn new(pool: Pool, chain: &Chain, limits: TronLimits) -> Self {
        let account = |address: &Address| address.bytes().try_into().ok();
        let references = References {
            pools: chain.reference_pools.iter().filter_map(account).collect(),
            stables: chain.stablecoins.iter().filter_map(account).collect(),
            wrapped: account(&chain.wrapped_native).unwrap_or_default(),
            native_decimals: chain.native.decimals,
            blocks: chain.reference_blocks,
        };
        let inner = Inner {
            pool,
            limits,
            offers: Mutex::default(),
            page_sizes: PageSizes::default(),
            indexed: Mutex::default(),
            depths: Mutex::default(),
            node_reach: ServerReach::default(),
            log_heads: Mutex::default(),
            index_lag: chain.index_lag,
            chain_id: chain.chain_id,
            chain_checks: Arc::default(),
            exchanges: Mutex::default(),
            internal_givers: Mutex::default(),
            readers: Arc::default(),
            references,
            known_references: KnownPools::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The nodes, their chain checks, and the cooldown of one that contradicts the others.
    pub(super) fn nodes(&self) -> (&Pool, &ChainChecks, Duration) {
        (&self.inner.pool, &self.inner.chain_checks, self.inner.limits.contradiction_cooldown)
    }

    pub(super) async fn head(&self, options: &CallOptions) -> Result<Height> {
        Ok(self.solid_head(options).await?.height)
    }

    /// Whether a span that was read so counts towards a complete history.
    pub(super) fn accepts(&self, proof: Proof) -> bool {
        self.blind_spots().contains(proof.doubts)
    }

    /// What the strongest way cannot find: events, if no endpoint has lists; inner calls, if no
    /// endpoint returns internal transactions.
    pub(super) fn blind_spots(&self) -> Doubts {
        let when = |is_blind, doubt| if is_blind { doubt } else { Doubts::NONE };
        when(self.has_no_lists(), Doubts::TRC10)
            .union(when(self.internal_givers().is_empty(), Doubts::INNER_CALLS))
    }

    pub(super) fn endpoints(&self) -> Vec<EndpointStatus> {
        self.inner.pool.endpoints()
    }

    pub(super) fn abilities(&self) -> Vec<Vec<Ability>> {
        let of = |status: &EndpointStatus| {
            let lists = match lock(&self.inner.offers).of(status.id, &self.inner.limits) {
                Some(true) => Offered::Yes,
                Some(false) => Offered::No,
                None => Offered::Unknown,
            };
            vec![Ability::new(AbilityKind::AccountLists, lists), self.events_of(status.id)]
        };
        self.inner.pool.endpoints().iter().map(of).collect()
    }

    /// Asks a node's HTTP API; `name` is its path too.
    async fn post(&self, name: &'static str, body: &Value, options: &CallOptions) -> Result<Reply> {
        let body = Some(Bytes::from(body.to_string()));
        let ask = Ask { name, path: format!("/{name}"), query: Vec::new(), body };
        self.inner.pool.ask(&ask, wire::reading, options).await
    }

    /// Asks for what is solid; a node that offers no such view answers for what it has, and then
    /// only what is known to be solid may be asked for.
    async fn post_solid(
        &self,
        [solid, plain]: [&'static str; 2],
        body: &Value,
        options: &CallOptions,
    ) -> Result<Reply> {
        match self.post(solid, body, options).await {
            Err(UpstreamError::NotSupported { .. }) => self.post(plain, body, options).await,
            answered => answered,
        }
    }

    async fn rpc(&self, name: &'static str, calls: &[Call], options: &CallOptions) -> RpcAnswers {
        self.rpc_asker(wire::rpc_reading).ask(name, calls, options).await
    }

    fn rpc_asker(&self, read: fn(u16, &[u8]) -> ReplyClass) -> RpcAsker {
        let tries_max = self.inner.limits.unfit_tries_max;
        RpcAsker { pool: self.inner.pool.clone(), tries_max, read }
    }

    fn malformed(&self, endpoint: EndpointId, what: &str) -> UpstreamError {
        self.inner.pool.malformed(endpoint, what)
    }

    /// What an endpoint says of one of several calls.
    fn refused(&self, by: EndpointId, RpcError { code, message }: RpcError) -> UpstreamError {
        UpstreamError::Rpc { endpoint: self.inner.pool.label(by), code, message }
    }
}

const LOGS: &str = "eth_getLogs";
/// EIP-1474.
const LIMIT_EXCEEDED: i64 = -32_005;

/// Answers to several calls, and the endpoint that gave them.
type RpcAnswers = Result<(Vec<CallOutcome>, EndpointId)>;

/// A node's JSON-RPC, next to its HTTP API.
struct RpcAsker {
    pool: Pool,
    tries_max: u32,
    read: fn(u16, &[u8]) -> ReplyClass,
}

impl RpcAsker {
    /// Makes many calls in one request, or in several at one endpoint if it allows fewer calls per
    /// second or request; each call has its own answer.
    async fn ask(&self, name: &'static str, calls: &[Call], options: &CallOptions) -> RpcAnswers {
        let (mut answers, mut options) = (Vec::with_capacity(calls.len()), options.clone());
        let mut most = self.pool.calls_at_once().max(1);
        while let Some(part) = calls.get(answers.len()..).and_then(|rest| rest.chunks(most).next())
        {
            match self.ask_at_once(name, part, &options).await {
                Ok((more, endpoint)) => {
                    answers.extend(more);
                    options.on = Some(endpoint);
                }
                // One error in place of all answers: it may take fewer calls. Searches have ranges,
                // which are split where they are made.
                Err(UpstreamError::Rpc { code, message, .. })
                    if part.len() > 1
                        && name != LOGS
                        && (code == LIMIT_EXCEEDED || wire::is_too_wide(code, &message)) =>
                {
                    most = part.len() / 2;
                }
                Err(error) => return Err(error),
            }
        }
        options.on.map(|endpoint| (answers, endpoint)).ok_or(UpstreamError::NoEndpoint)
    }

    /// Answers that do not match the calls do not count: the calls are made again, at another
    /// endpoint if possible.
    async fn ask_at_once(
        &self,
        name: &'static str,
        calls: &[Call],
        options: &CallOptions,
    ) -> RpcAnswers {
        let first_id = self.pool.take_ids(calls.len());
        let asked: Vec<&Call> = calls.iter().collect();
        let body = Some(Bytes::from(jsonrpc::encode(first_id, &asked)));
        let ask = Ask { name, path: "/jsonrpc".to_owned(), query: Vec::new(), body };
        let mut options = options.clone();
        let mut tries = 0;
        loop {
            let reply = self.pool.ask(&ask, self.read, &options).await?;
            let Reply { body, endpoint } = reply;
            let answers = jsonrpc::decode(&body, first_id, calls.len()).ok();
            let answers =
                answers.and_then(|all| all.into_iter().collect::<Option<Vec<CallOutcome>>>());
            if let Some(answers) = answers {
                return Ok((answers, endpoint));
            }
            tries += 1;
            if tries >= self.tries_max {
                return Err(self.pool.malformed(endpoint, format!("no answer to {name}")));
            }
            options.avoid = Some(endpoint);
        }
    }
}
