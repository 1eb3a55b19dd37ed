//! The commands that a running server executes for its operator.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::reload::{Reload, Reloaded};
use super::upkeep::{BACKUP_OF_DATABASE, COMPACTION_OF_DATABASE, copy_keys, refuse_existing};
use crate::cli::VERSION;
use crate::cli::admin::{AdminRequest, AdminResponse};
use crate::cli::clock::SystemClock;
use crate::cli::errors::CliError;
use crate::cli::keys::audit::Audit;
use crate::cli::keys::watch::KeysWatch;
use crate::cli::seed::random_seeds;
use crate::domain::{Address, Clock as _, UnixMillis, Wallet, lock};
use crate::history::{History, HistoryError, Status};
use crate::registry::Chain;

pub(in crate::cli) struct Operator {
    pub(in crate::cli) history: History,
    pub(in crate::cli) folder: PathBuf,
    pub(in crate::cli) keys: Arc<KeysWatch>,
    pub(in crate::cli) audit: Audit,
    pub(in crate::cli) started: UnixMillis,
    /// `None` for a server without a configuration to reload.
    pub(in crate::cli) reload: Option<Reload>,
    /// Time and outcome of the last reload.
    pub(in crate::cli) reloaded: Mutex<Option<Value>>,
}

fn failed(error: &HistoryError) -> CliError {
    CliError::plain(error.to_string())
}

impl Operator {
    pub(super) async fn answer(&self, request: AdminRequest, user: u32) -> AdminResponse {
        let by = format!("admin, uid {user}");
        let done = match request {
            AdminRequest::Backup { path } => self.backup(&path).await,
            AdminRequest::Forget { chain, address } => self.forget(&chain, &address, &by).await,
            AdminRequest::Compact => self.compact().await,
            AdminRequest::Keys => {
                self.keys.follow().await.map(|()| Value::Null).map_err(CliError::from)
            }
            AdminRequest::Status => self.status().await,
            AdminRequest::Loads => self.loads().await,
            AdminRequest::Pause => Ok(self.pause(true)),
            AdminRequest::Resume => Ok(self.pause(false)),
            AdminRequest::Reload => self.reload(&by).map(|reloaded| json!(reloaded)),
        };
        match done {
            Ok(value) => AdminResponse::Ok(value),
            Err(error) => AdminResponse::Error(error.report().replacen("error: ", "", 1)),
        }
    }

    async fn backup(&self, to: &Path) -> Result<Value, CliError> {
        if !to.is_absolute() {
            return Err(CliError::plain("a backup needs an absolute path"));
        }
        self.refuse_shared(BACKUP_OF_DATABASE)?;
        refuse_existing(to)?;
        tracing::info!(to = %to.display(), "backup started");
        let bytes = self.history.backup(to).await.map_err(|error| failed(&error))?;
        copy_keys(&self.folder, to)?;
        tracing::info!(to = %to.display(), bytes, "backup complete");
        Ok(json!({ "bytes": bytes }))
    }

    fn refuse_shared(&self, instead: &str) -> Result<(), CliError> {
        self.history.sharing().map_or(Ok(()), |_| Err(CliError::plain(instead)))
    }

    async fn forget(&self, slug: &str, address: &str, by: &str) -> Result<Value, CliError> {
        let registry = self.history.registry();
        let unknown = || CliError::plain(format!("there is no chain {slug:?}"));
        let chain = registry.chain_named(slug).ok_or_else(unknown)?;
        let address = Address::parse(chain.family, address)
            .map_err(|rule| CliError::plain(format!("the address: {rule}")))?;
        let wallet = Wallet { chain: chain.id, address };
        let rows =
            self.history.forget(wallet, random_seeds()?).await.map_err(|error| failed(&error))?;
        // Without the address, which is to be forgotten.
        self.audit.record("forget", &json!({ "chain": chain.slug, "rows": rows, "by": by }));
        Ok(json!({ "rows": rows }))
    }

    async fn compact(&self) -> Result<Value, CliError> {
        self.refuse_shared(COMPACTION_OF_DATABASE)?;
        let (before, after) = self.history.compact().await.map_err(|error| failed(&error))?;
        tracing::info!(before, after, "the store was compacted");
        Ok(json!({ "before": before, "after": after }))
    }

    fn pause(&self, paused: bool) -> Value {
        self.history.set_paused(paused);
        tracing::info!(paused, "an operator paused or resumed background work");
        json!({ "paused": paused })
    }

    /// Reloads the configuration and logs the outcome.
    pub(in crate::cli) fn reload(&self, by: &str) -> Result<Reloaded, CliError> {
        let done = match &self.reload {
            Some(reload) => reload.run(),
            None => Err(CliError::plain("this server has no configuration to read again")),
        };
        let outcome = match &done {
            Ok(Reloaded { changed, restart }) => {
                tracing::info!(?changed, ?restart, by, "the configuration was reloaded");
                json!({ "changed": changed, "restart": restart, "by": by })
            }
            Err(error) => {
                let error = error.report();
                tracing::warn!(%error, by, "cannot reload the configuration; the previous one stays in force");
                json!({ "error": error, "by": by })
            }
        };
        self.audit.record("reload", &outcome);
        let time = SystemClock.now().seconds().to_string();
        *lock(&self.reloaded) = Some(json!({ "time": time, "outcome": outcome }));
        done
    }

    async fn status(&self) -> Result<Value, CliError> {
        let Status { size, stats, capacity, paused } =
            self.history.status().await.map_err(|error| failed(&error))?;
        let metrics = self.history.metrics();
        let chains: Vec<Value> = self
            .history
            .chains_status()
            .into_iter()
            .map(|(id, endpoints)| {
                let resting = endpoints.iter().filter(|one| one.resting).count();
                let in_flight: usize = endpoints.iter().map(|one| one.in_flight).sum();
                json!({
                    "chain": self.chain(id).map(|chain| &chain.slug),
                    "endpoints": endpoints.len(), "resting": resting, "inFlight": in_flight,
                })
            })
            .collect();
        let reloaded = lock(&self.reloaded).clone();
        Ok(json!({
            "version": VERSION,
            "process": std::process::id(),
            "started": self.started.seconds().to_string(),
            "uptimeSeconds": SystemClock.now().since(self.started).as_secs(),
            "folder": self.folder,
            "paused": paused,
            "store": {
                "fileBytes": size.map(|size| size.file_bytes),
                "diskBytes": size.map(|size| size.disk_bytes),
                "maxBytes": capacity.max_bytes,
                "diskFreeBytes": size.and_then(|size| size.disk_free_bytes),
                "trades": stats.rows, "wallets": stats.wallets, "tokens": stats.tokens,
                "evicted": metrics.wallets_evicted.get(),
            },
            "walks": metrics.walks.get(),
            "workers": metrics.workers.get(),
            "lastReload": reloaded,
            "chains": chains,
        }))
    }

    async fn loads(&self) -> Result<Value, CliError> {
        let loads = self.history.loads().await.map_err(|error| failed(&error))?;
        let rows = loads.iter().map(|load| {
            json!({
                "chain": self.chain(load.wallet.chain).map(|chain| &chain.slug),
                "wallet": load.wallet.address.to_string(),
                "readers": load.readers, "background": load.background,
                "trades": load.rows, "complete": load.complete,
                "top": load.top, "reached": load.reached,
                "reachedTime": load.reached_time.map(|time| time.to_string()),
                "failures": load.failures, "lastError": load.last_error,
                "endpoints": load.endpoints,
            })
        });
        Ok(Value::Array(rows.collect()))
    }

    fn chain(&self, id: crate::domain::ChainId) -> Option<&Chain> {
        self.history.registry().chain(id)
    }
}
