//! Coordination of the processes that share a store: leases, duties and exact usage. An embedded
//! store has one process, which holds every wallet and every duty.

use tokio::sync::watch;

use super::{Arm, Result, Share, Store, StoreError, StoreFailure, UsageUpdate, View, WalletId};
use crate::domain::{KeyId, Position};
use crate::store::{Credit, DeliveredRange};

/// The usage of a key: its total, and of one wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    pub total: u64,
    pub ranges: Vec<DeliveredRange>,
    pub credit: Option<Credit>,
}

const NOT_SHARED: StoreError = StoreError::Invalid("a request of shared stores");

/// Calls the shared arm; `$alone` is the result of an embedded store.
macro_rules! shared {
    ($self:ident, $alone:expr, |$store:pat_param| $shared:expr) => {
        match &$self.0 {
            Arm::File(_) => $alone,
            #[cfg(feature = "postgres")]
            Arm::Shared($store) => $shared,
        }
    };
}

#[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "of the shared arm"))]
impl Store {
    /// Whether several processes may use the store.
    pub fn is_shared(&self) -> bool {
        shared!(self, false, |_| true)
    }

    /// A view that reads a wallet's record and its rows behind a position as of one moment.
    pub fn view_at(&self, after: Position, limit: usize) -> Result<View> {
        self.open_view(Some((after, limit)))
    }

    pub(super) fn open_view(&self, ahead: Option<(Position, usize)>) -> Result<View> {
        match &self.0 {
            Arm::File(store) => store.view().map(View::of_file),
            #[cfg(feature = "postgres")]
            Arm::Shared(store) => Ok(View::of_shared(store.view(ahead))),
        }
    }

    /// Changes the usage of a key in a transaction that no other process interleaves with. `change`
    /// returns the update, if any; it may be called again after a failure.
    pub async fn recount<T: Send>(
        &self,
        key: KeyId,
        wallet: WalletId,
        change: &(dyn Fn(Counted) -> (Option<UsageUpdate>, T) + Sync),
    ) -> Result<T> {
        shared!(self, Err(NOT_SHARED), |store| Box::pin(store.recount(key, wallet, change)).await)
    }

    /// Renews the lease of this process until the future is dropped.
    pub async fn keep_lease(&self) {
        shared!(self, std::future::pending::<()>().await, |store| store.keep_lease().await);
    }

    /// Counts losses of this process's lease, and so of its wallets. `None` for an embedded store.
    pub fn losses(&self) -> Option<watch::Receiver<u64>> {
        shared!(self, None, |store| Some(store.losses()))
    }

    /// This process's share, as it changes. `None` for an embedded store.
    pub fn share(&self) -> Option<watch::Receiver<Share>> {
        shared!(self, None, |store| Some(store.share()))
    }

    /// The number of live processes, including this one.
    pub fn processes(&self) -> u32 {
        self.share().map_or(1, |share| share.borrow().processes())
    }

    /// Whether this process can write: it holds a lease.
    pub fn takes_writes(&self) -> bool {
        shared!(self, true, |store| store.is_alive())
    }

    /// Failed calls so far, by kind; most of them were retried.
    pub fn failed_calls(&self) -> Vec<(StoreFailure, u64)> {
        shared!(self, Vec::new(), |store| store.failed_calls())
    }

    /// Takes a wallet that no live process holds, and returns whether this process holds it now.
    /// Taking over a dead process's wallet raises its epoch.
    pub async fn hold(&self, id: WalletId) -> Result<bool> {
        shared!(self, Ok(true), |store| Box::pin(store.hold(id)).await)
    }

    pub async fn release(&self, id: WalletId) -> Result<()> {
        shared!(self, Ok(()), |store| Box::pin(store.release(id)).await)
    }

    /// Takes a duty, which one process at a time has, and returns whether this process has it.
    pub async fn take_duty(&self, name: &str) -> Result<bool> {
        shared!(self, Ok(true), |store| Box::pin(store.take_duty(name)).await)
    }

    /// A shared text; empty where there is none.
    pub async fn document(&self, name: &str) -> Result<String> {
        shared!(self, Err(NOT_SHARED), |store| Box::pin(store.document(name)).await)
    }

    /// Replaces a shared text if it still is `before`, and returns whether it did.
    pub async fn put_document(&self, name: &str, before: &str, after: &str) -> Result<bool> {
        shared!(self, Err(NOT_SHARED), |store| Box::pin(store.put_document(name, before, after))
            .await)
    }
}
