//! The worker registry: each wallet in demand has one `WalletLoad` and one worker.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;

use super::error::HistoryError;
use super::walk::{WalkRequest, millis};
use super::wallet_load::WalletLoad;
use super::worker::Worker;
use super::{Inner, Result};
use crate::domain::{KeyId, UnixMillis, Wallet, lock};
use crate::store::{Pending, WalletPatch, WalletRecord};

impl Inner {
    /// Passes the wallet's `WalletLoad` to `demand`, creating it with a worker if there is none.
    pub(super) fn attend<T>(
        self: &Arc<Self>,
        wallet: Wallet,
        is_reader: bool,
        demand: impl FnOnce(&Arc<WalletLoad>) -> T,
    ) -> Result<T> {
        let mut loads = lock(&self.loads);
        if lock(&self.forgetting).contains(&wallet) {
            return Err(HistoryError::Overloaded);
        }
        if let Some(load) = loads.get(&wallet) {
            self.record_use(wallet, is_reader);
            return Ok(demand(load));
        }
        if is_reader && self.is_full(&loads) {
            return Err(HistoryError::Overloaded);
        }
        self.record_use(wallet, is_reader);
        let load = Arc::new(WalletLoad::new(wallet));
        let result = demand(&load);
        loads.insert(wallet, Arc::clone(&load));
        drop(loads);
        let inner = Arc::clone(self);
        self.tasks.spawn_load(async move { inner.run_worker(load).await });
        Ok(result)
    }

    /// Not called for rejected readers: requests for ever new wallets would fill the memory.
    fn record_use(&self, wallet: Wallet, is_reader: bool) {
        if is_reader {
            self.eviction_state.used(wallet, self.clock.now(), self.limits.used_wallets_max);
        }
    }

    fn is_full(&self, loads: &HashMap<Wallet, Arc<WalletLoad>>) -> bool {
        let read = loads.values().filter(|load| load.has_readers());
        let (followed, active): (Vec<_>, Vec<_>) = read.partition(|load| load.is_followed());
        active.len() >= self.limits.wallets_active_max
            || followed.len() >= self.limits.wallets_followed_max
    }

    /// Ends the walks of a wallet that another process has forgotten.
    pub(super) fn close(&self, load: &Arc<WalletLoad>) {
        self.remove_load(load);
        load.close();
    }

    /// Removes it from the registry; later demand gets a new one.
    fn remove_load(&self, load: &Arc<WalletLoad>) {
        let mut loads = lock(&self.loads);
        if loads.get(&load.wallet).is_some_and(|known| Arc::ptr_eq(known, load)) {
            loads.remove(&load.wallet);
        }
    }

    /// Runs a wallet's worker; after a panic, which is logged, readers get an error and the worker
    /// restarts.
    async fn run_worker(self: Arc<Self>, load: Arc<WalletLoad>) {
        self.metrics.workers.add(1);
        loop {
            // Read before the source: if sources are replaced in between, the worker takes the new
            // one.
            let generation = self.sources.generation();
            let Some(source) = self.sources.get(&load.wallet.chain) else {
                // The chain was disabled before the worker started or restarted.
                self.remove_load(&load);
                load.notify_failure(HistoryError::ChainDisabled);
                break;
            };
            let lane = self.lanes.fetch_add(1, Ordering::Relaxed);
            let chain = (source, generation);
            let mut worker = Worker::new(Arc::clone(&self), Arc::clone(&load), chain, lane);
            let ran = AssertUnwindSafe(worker.run()).catch_unwind().await;
            worker.end().await;
            if ran.is_ok() {
                break;
            }
            self.metrics.worker_panics.add(1);
            tracing::error!("loading a wallet panicked");
            load.notify_failure(HistoryError::Internal);
            tokio::time::sleep(self.limits.retry_pause_max).await;
            if self.remove_if_unwanted(&load) {
                break;
            }
        }
        self.metrics.workers.subtract_one();
    }

    /// Removes it if neither a reader nor the background needs the wallet; returns whether it did
    /// so or was closed.
    pub(super) fn remove_if_unwanted(&self, load: &WalletLoad) -> bool {
        let mut loads = lock(&self.loads);
        // A closed one is no longer in the registry, but its successor may be.
        let unwanted = load.is_closed() || !load.is_wanted();
        if unwanted && !load.is_closed() {
            loads.remove(&load.wallet);
        }
        unwanted
    }

    /// Continues to load what a walk left when it ended, also after a restart.
    pub(super) fn continue_in_background(
        self: &Arc<Self>,
        request: &WalkRequest,
        error: Option<&HistoryError>,
    ) {
        let for_good = match error {
            None
            | Some(
                HistoryError::ShuttingDown
                | HistoryError::UpstreamUnavailable { .. }
                | HistoryError::Unproved { .. }
                | HistoryError::Internal,
            ) => false,
            Some(
                HistoryError::NotAWallet { .. }
                | HistoryError::ChainDisabled
                | HistoryError::NotEstimable { .. }
                | HistoryError::HistoryCut { .. }
                | HistoryError::Changed
                | HistoryError::QuotaExceeded
                | HistoryError::KeyEnded
                | HistoryError::Overloaded
                | HistoryError::StoreFull { .. }
                | HistoryError::Store { .. },
            ) => true,
        };
        if for_good || !self.has_background_room(&request.wallet, request.key) {
            return;
        }
        let until = self.clock.now().0.saturating_add(millis(self.limits.background_lapse));
        let pending = Pending { key: request.key, until: UnixMillis(until) };
        let attended =
            self.attend(request.wallet, false, |load| load.set_background(Some(pending)));
        if attended.is_ok() {
            let (inner, wallet) = (Arc::clone(self), request.wallet);
            self.tasks.spawn(async move {
                if let Err(error) = inner.patch_pending(wallet, Some(pending)).await {
                    tracing::error!(%error, "cannot store a background load; a restart will not resume it");
                }
            });
        }
    }

    /// Whether a key may have one more wallet loaded in the background.
    fn has_background_room(&self, wallet: &Wallet, key: KeyId) -> bool {
        let loads = lock(&self.loads);
        let (mut of_key, mut in_all) = (0, 0);
        for load in loads.values().filter(|load| load.wallet != *wallet) {
            if let Some(pending) = load.background() {
                in_all += 1;
                of_key += usize::from(pending.key == key);
            }
        }
        of_key < self.limits.background_per_key_max && in_all < self.limits.background_total_max
    }

    /// Ends the background demand: it is met, or its last request is too long ago.
    pub(super) async fn clear_background(&self, load: &WalletLoad) -> Result<()> {
        load.set_background(None);
        self.patch_pending(load.wallet, None).await
    }

    async fn patch_pending(&self, wallet: Wallet, pending: Option<Pending>) -> Result<()> {
        let record = match pending {
            Some(_) => self.store.intern(&wallet).await?,
            // A forgotten wallet is not created again.
            None => match self.view()?.wallet(&wallet).await? {
                Some(record) => WalletRecord::clone(&record),
                None => return Ok(()),
            },
        };
        let patch = WalletPatch { pending: Some(pending), ..WalletPatch::default() };
        let written = self.store.update_wallet(record.id, record.epoch, patch).await;
        Ok(written.map(drop)?)
    }

    /// Writes usage at intervals until the tasks are cancelled; `close` writes the rest.
    pub(super) async fn flush_usage(self: Arc<Self>) {
        while self.tasks.run(tokio::time::sleep(self.limits.usage_flush_every)).await.is_some() {
            if let Err(error) = self.usage.flush().await {
                tracing::error!(%error, "cannot write usage; retrying");
            }
        }
    }
}
