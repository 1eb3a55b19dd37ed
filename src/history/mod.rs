//! The history engine: one worker per wallet loads what readers demand, readers walk the stored
//! rows.
//!
//! The only entry point for `api` and `cli`. Only stored rows are served.

mod anchors;
mod audit;
mod backfill;
mod capacity;
mod chains;
mod chunk_join;
mod error;
mod estimate;
mod explain;
mod failure_run;
mod following;
mod ingest;
mod late;
mod limits;
mod maintenance;
mod metrics;
mod movements;
mod names;
mod plan;
mod proven;
mod read_task;
mod ready_limit;
mod report;
mod scanning;
mod sharing;
mod tasks;
mod usage;
mod walk;
mod wallet_load;
mod wallet_lock;
mod worker;
mod workers;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use tokio::sync::{Semaphore, watch};

pub use crate::decode::explain::{Asset, Explanation, FoundVenue, LeftOut, Movement, Why};
pub use crate::decode::{DecodedTrade, Note, NoteKind};
pub use crate::sources::{Ability, AbilityKind, Offered};
pub use crate::store::{Share, StoreFailure, StoreStats};
pub use audit::Repaired;
pub use capacity::Capacity;
pub use error::HistoryError;
pub use estimate::Estimate;
pub use explain::Explained;
pub use limits::{AuditLimits, HistoryLimits};
pub use maintenance::{Load, Status};
pub use metrics::{Counter, HistoryMetrics, Values};
pub use movements::{Moved, Moves, Sum};
pub use report::{CoverageReport, SpanReport};
pub use sharing::Sharing;
pub use tasks::Tasks;
pub use walk::{AsOf, End, Extent, Step, Walk, WalkRequest};

use crate::domain::{ChainId, Clock, Height, KeyId, Wallet, opaque};
use crate::enrich::{EnrichCache, Enricher};
use crate::registry::Registry;
use crate::rpc::{EndpointStatus, RateShare};
use crate::sources::{Candles, Source};
use crate::store::{Store, View};
use capacity::EvictionState;
use chains::Chains;
use following::Following;
use plan::Demand;
use usage::Usage;
use wallet_load::WalletLoad;

type Result<T, E = HistoryError> = std::result::Result<T, E>;

#[derive(Debug)]
pub struct HistoryParts {
    pub store: Store,
    pub registry: Arc<Registry>,
    /// One source per configured chain.
    pub sources: HashMap<ChainId, Source>,
    /// A service for prices that the chains do not contain.
    pub candles: Option<Candles>,
    pub clock: Arc<dyn Clock>,
    pub limits: HistoryLimits,
    pub tasks: Tasks,
}

/// The history engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct History {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    registry: Arc<Registry>,
    sources: Chains,
    enricher: Enricher,
    clock: Arc<dyn Clock>,
    limits: HistoryLimits,
    tasks: Tasks,
    metrics: Arc<HistoryMetrics>,
    usage: Usage,
    match_counts: walk::MatchCounts,
    row_buffers: walk::RowBuffers,
    rereads: proven::Rereads,
    audits: audit::Audits,
    /// Chains of which it was logged that no endpoint offers blocks.
    blockless: Mutex<HashSet<ChainId>>,
    following: Following,
    loads: Mutex<HashMap<Wallet, Arc<WalletLoad>>>,
    /// Wallets that are being forgotten: no reader may attend them.
    forgetting: Mutex<HashSet<Wallet>>,
    eviction_state: EvictionState,
    paused: watch::Sender<bool>,
    lanes: std::sync::atomic::AtomicU64,
    background_permits: Arc<Semaphore>,
}

opaque!(Inner, limits);

impl History {
    /// Starts the engine and its background tasks.
    pub fn new(parts: HistoryParts) -> Self {
        let HistoryParts { store, registry, sources, candles, clock, limits, tasks } = parts;
        let inner = Arc::new(Inner {
            usage: Usage::new(
                store.clone(),
                limits.usage_wallets_cached_max,
                limits.usage_ranges_max,
            ),
            background_permits: Arc::new(Semaphore::new(limits.background_loads_max)),
            metrics: Arc::default(),
            match_counts: walk::MatchCounts::default(),
            row_buffers: walk::RowBuffers::default(),
            rereads: proven::Rereads::default(),
            blockless: Mutex::default(),
            audits: audit::Audits::default(),
            following: Following::default(),
            loads: Mutex::default(),
            forgetting: Mutex::default(),
            eviction_state: EvictionState::default(),
            paused: watch::Sender::default(),
            lanes: std::sync::atomic::AtomicU64::new(1),
            enricher: Enricher {
                store: store.clone(),
                registry: Arc::clone(&registry),
                candles,
                clock: Arc::clone(&clock),
                kept: EnrichCache::new(&limits.enrich),
                limits: limits.enrich.clone(),
            },
            store,
            registry,
            sources: Chains::new(sources, &tasks),
            clock,
            limits,
            tasks,
        });
        inner.tasks.spawn(Arc::clone(&inner).flush_usage());
        inner.tasks.spawn(Arc::clone(&inner).complete_tokens());
        inner.tasks.spawn(Arc::clone(&inner).complete_values());
        inner.tasks.spawn(Arc::clone(&inner).audit_regularly());
        inner.start_sharing();
        Self { inner }
    }

    /// Opens a walk; its demand starts to load at once.
    pub fn walk(&self, request: WalkRequest) -> Result<Walk> {
        if self.inner.tasks.is_cancelled() {
            return Err(HistoryError::ShuttingDown);
        }
        if !self.inner.sources.contains_key(&request.wallet.chain) {
            return Err(HistoryError::ChainDisabled);
        }
        self.inner.audits.note(request.wallet, &self.inner.limits);
        let all_below = (request.want == Extent::All)
            .then(|| request.resume.as_ref().and_then(|cursor| cursor.head).unwrap_or(Height::MAX));
        let demand = Demand { all_below, ..Demand::default() };
        let guard = self.inner.attend(request.wallet, true, |load| load.demand(demand))?;
        Ok(Walk::new(Arc::clone(&self.inner), request, guard))
    }

    /// After a start: resumes the background loads of an earlier run; returns their number.
    pub async fn resume_pending(&self) -> Result<usize> {
        self.inner.resume_pending().await
    }

    /// Number of trades counted for a key so far.
    pub async fn usage(&self, key: KeyId) -> Result<u64> {
        Ok(self.inner.usage.total(key).await?)
    }

    /// State of each chain's endpoints.
    pub fn chains_status(&self) -> Vec<(ChainId, Vec<EndpointStatus>)> {
        let mut all: Vec<_> =
            self.inner.sources.all().iter().map(|(chain, one)| (*chain, one.endpoints())).collect();
        all.sort_by_key(|(chain, _)| *chain);
        all
    }

    /// What is known of the abilities of each endpoint of a chain, in the order of their status.
    pub fn abilities(&self, chain: ChainId) -> Vec<Vec<Ability>> {
        self.inner.sources.get(&chain).map(|source| source.abilities()).unwrap_or_default()
    }

    /// Divides the endpoints' rates among the processes that share the store.
    pub fn share_rates(&self, rates: RateShare) {
        self.inner.share_rates(rates);
    }

    /// Whether the store can be read and written.
    pub async fn is_ready(&self) -> bool {
        self.inner.store.takes_writes() && self.inner.store.stats().await.is_ok()
    }

    pub async fn store_stats(&self) -> Result<StoreStats> {
        Ok(self.inner.store.stats().await?)
    }

    /// The number of processes that share the store and its failed calls; `None` if it is not
    /// shared.
    pub fn sharing(&self) -> Option<Sharing> {
        let store = &self.inner.store;
        let sharing =
            || Sharing { processes: store.processes(), failed_calls: store.failed_calls() };
        store.is_shared().then(sharing)
    }

    /// Number of wallets that scans of their chain cover.
    pub fn followed(&self) -> u64 {
        u64::try_from(self.inner.following.count()).unwrap_or(u64::MAX)
    }

    pub fn metrics(&self) -> &HistoryMetrics {
        &self.inner.metrics
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.inner.registry
    }

    pub fn tasks(&self) -> &Tasks {
        &self.inner.tasks
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// Ends walks and workers; the next step of every open walk is its end.
    pub fn stop(&self) {
        self.inner.tasks.cancel();
    }

    /// Writes the last usage and closes the store; call it once the tasks have ended.
    pub async fn close(&self) -> Result<()> {
        self.inner.usage.flush().await?;
        self.inner.store.close().await;
        Ok(())
    }
}

impl Inner {
    fn view(&self) -> Result<View> {
        Ok(self.store.view()?)
    }
}
