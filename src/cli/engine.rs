//! Assembles store, sources and history.

use std::sync::Arc;
use std::time::Duration;

use super::clock::SystemClock;
use super::config::Config;
use super::errors::CliError;
use super::keys::store::KeyStore;
use super::sources::{Nodes, candles, sources};
use super::storage;
use crate::history::{AuditLimits, Capacity, History, HistoryLimits, HistoryParts, Tasks};
use crate::registry::Registry;
use crate::rpc::Transport;

pub(super) struct Engine {
    pub(super) history: History,
    pub(super) keys: KeyStore,
    pub(super) nodes: Nodes,
    pub(super) tasks: Tasks,
    stop_wait_max: Duration,
}

impl Engine {
    /// Opens the store and creates a source for each enabled chain. Requires a tokio runtime.
    pub(super) async fn open(
        config: &Config,
        limits: HistoryLimits,
        registry: Arc<Registry>,
        transport: &Arc<dyn Transport>,
    ) -> Result<Self, CliError> {
        let store = storage::open(config).await?;
        let keys = KeyStore::of(config, &store);
        let nodes = Nodes::alone(transport);
        let candles = candles(config, &registry, &nodes)?;
        let sources = sources(config, &registry, &nodes)?;
        let tasks = Tasks::new();
        let history = History::new(HistoryParts {
            store,
            registry,
            sources,
            candles,
            clock: Arc::new(SystemClock),
            limits,
            tasks: tasks.clone(),
        });
        history.set_capacity(capacity(config));
        history.share_rates(nodes.share.clone());
        Ok(Self { history, keys, nodes, tasks, stop_wait_max: config.server.shutdown_wait.0 })
    }

    pub(super) async fn close(self) -> Result<(), CliError> {
        self.history.stop();
        if !self.tasks.shutdown(self.stop_wait_max).await {
            tracing::warn!("some tasks did not stop in time and were left");
        }
        let closed = self.history.close().await;
        closed.map_err(|error| CliError::failed("the store was not closed cleanly", error))
    }
}

/// Shortest interval between scans of a chain for followed wallets, however small `freshness` is.
const SCAN_EVERY_MIN: Duration = Duration::from_secs(1);

pub(super) fn history_limits(config: &Config) -> HistoryLimits {
    HistoryLimits {
        freshness: config.server.freshness.0,
        scan_every: config.server.freshness.0.max(SCAN_EVERY_MIN),
        head_wait_max: config.server.head_wait.0,
        audit: AuditLimits {
            calls_per_hour: config.audit.calls_per_hour,
            ..AuditLimits::default()
        },
        ..HistoryLimits::default()
    }
}

pub(super) fn capacity(config: &Config) -> Capacity {
    Capacity {
        max_bytes: config.storage.max_size.0.map(|size| size.0),
        min_free_bytes: config.storage.min_free.0,
    }
}
