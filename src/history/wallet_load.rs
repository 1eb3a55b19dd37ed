//! What the readers of one wallet share with its worker: readers register demand, the worker
//! publishes progress.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::error::HistoryError;
use super::plan::Demand;
use crate::domain::{Height, UnixSeconds, Wallet, lock};
use crate::rpc::Priority;
use crate::store::Pending;

/// Progress of the worker, for the readers.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    /// Counts all events after which readers should look at the store again.
    pub(super) news: u64,
    /// Number of failures, and the last one.
    pub(super) failures: u64,
    pub(super) failure: Option<HistoryError>,
    /// The oldest transaction of the latest chunk.
    pub(super) reached: Option<(Height, UnixSeconds)>,
}

#[derive(Debug, Default)]
struct Demands {
    next: u64,
    readers: BTreeMap<u64, Demand>,
    background: Option<Pending>,
}

/// The demand for one wallet and the progress of its worker; at most one worker serves it.
#[derive(Debug)]
pub(super) struct WalletLoad {
    pub(super) wallet: Wallet,
    pub(super) priority: Arc<Priority>,
    demands: Mutex<Demands>,
    changed: Notify,
    progress: watch::Sender<Progress>,
    closed: CancellationToken,
}

/// A reader's demand; dropping it withdraws the demand, which stops loads that only it required.
#[derive(Debug)]
pub(super) struct DemandGuard {
    pub(super) load: Arc<WalletLoad>,
    number: u64,
}

impl WalletLoad {
    pub(super) fn new(wallet: Wallet) -> Self {
        Self {
            wallet,
            priority: Arc::new(Priority::background()),
            demands: Mutex::default(),
            changed: Notify::new(),
            progress: watch::Sender::default(),
            closed: CancellationToken::new(),
        }
    }

    /// Registers a reader's demand. Wakes the worker only if the demand needs more than stored
    /// rows.
    pub(super) fn demand(self: &Arc<Self>, demand: Demand) -> DemandGuard {
        let mut demands = lock(&self.demands);
        let number = demands.next;
        demands.next += 1;
        demands.readers.insert(number, demand);
        self.priority.set_interactive(true);
        drop(demands);
        if demand != Demand::default() {
            self.changed.notify_one();
        }
        DemandGuard { load: Arc::clone(self), number }
    }

    /// Sets the background demand, which is for all heights until it expires.
    pub(super) fn set_background(&self, pending: Option<Pending>) {
        lock(&self.demands).background = pending;
        self.changed.notify_one();
    }

    pub(super) fn background(&self) -> Option<Pending> {
        lock(&self.demands).background
    }

    pub(super) fn has_readers(&self) -> bool {
        !lock(&self.demands).readers.is_empty()
    }

    /// Whether all readers have delivered the history and only wait for new rows.
    pub(super) fn is_followed(&self) -> bool {
        let demands = lock(&self.demands);
        let only_follows = |demand: &Demand| demand.follows && demand.edge.is_none();
        !demands.readers.is_empty() && demands.readers.values().all(only_follows)
    }

    pub(super) fn is_wanted(&self) -> bool {
        let demands = lock(&self.demands);
        !demands.readers.is_empty() || demands.background.is_some()
    }

    /// All demands; the background's is like that of a reader that wants the whole history.
    pub(super) fn snapshot(&self) -> Vec<Demand> {
        let demands = lock(&self.demands);
        let everything = Demand { all_below: Some(Height::MAX), ..Demand::default() };
        let background = demands.background.as_ref().map(|_| everything);
        demands.readers.values().copied().chain(background).collect()
    }

    /// Ends the worker, and every walk with an error, because the wallet is being forgotten.
    pub(super) fn close(&self) {
        self.closed.cancel();
        self.notify_failure(HistoryError::Changed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Ready once it is closed.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    pub(super) fn readers(&self) -> usize {
        lock(&self.demands).readers.len()
    }

    pub(super) fn progress(&self) -> Progress {
        self.progress.borrow().clone()
    }

    /// Makes the worker plan again.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Ready when a demand has changed since the last call.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Notifies the readers to read the store again.
    pub(super) fn notify_update(&self) {
        self.progress.send_modify(|progress| progress.news += 1);
    }

    /// The same, with the height and time of the oldest transaction read.
    pub(super) fn notify_progress(&self, reached: Option<(Height, UnixSeconds)>) {
        self.progress.send_modify(|progress| {
            progress.news += 1;
            progress.reached = reached.or(progress.reached);
        });
    }

    pub(super) fn notify_failure(&self, error: HistoryError) {
        self.progress.send_modify(|progress| {
            progress.failures += 1;
            progress.failure = Some(error);
        });
    }
}

impl DemandGuard {
    pub(super) fn update(&self, change: impl FnOnce(&mut Demand)) {
        let mut demands = lock(&self.load.demands);
        let Some(demand) = demands.readers.get_mut(&self.number) else { return };
        let before = *demand;
        change(demand);
        let changed = *demand != before;
        drop(demands);
        if changed {
            self.load.changed.notify_one();
        }
    }
}

impl Drop for DemandGuard {
    fn drop(&mut self) {
        let mut demands = lock(&self.load.demands);
        let demand = demands.readers.remove(&self.number);
        let concerns_worker = demand.is_some_and(|demand| demand != Demand::default())
            || demands.background.is_some();
        if demands.readers.is_empty() {
            self.load.priority.set_interactive(false);
        }
        drop(demands);
        if concerns_worker {
            self.load.changed.notify_one();
        }
    }
}
