//! What processes that share a store owe each other. An embedded store has one process: it holds
//! every wallet, and does every duty.

use tokio::sync::watch;

use super::{Arm, Result, Share, Store, StoreError, StoreFailure, UsageUpdate, View, WalletId};
use crate::domain::{KeyId, Position};
use crate::store::{Credit, DeliveredRange};

/// What a key has counted in all and of one wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    pub total: u64,
    pub ranges: Vec<DeliveredRange>,
    pub credit: Option<Credit>,
}

/// Asked of an embedded store what only a shared one has.
const NOT_SHARED: StoreError = StoreError::Invalid("a request of shared stores");

/// What the shared arm does, or else what is so for a process that is alone.
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
    /// Several processes may use it.
    pub fn is_shared(&self) -> bool {
        shared!(self, false, |_| true)
    }

    /// A view that reads rows behind a position together with the record of a wallet, so that both
    /// are of one moment.
    pub fn view_at(&self, after: Position, limit: usize) -> Result<View> {
        match &self.0 {
            Arm::File(store) => store.view().map(View::of_file),
            #[cfg(feature = "postgres")]
            Arm::Shared(store) => Ok(View::of_shared(store.view().reading(after, limit))),
        }
    }

    /// Changes what a key has counted, in one transaction over all processes. `change` returns what
    /// is written, where anything is; it may be called again after a failure.
    pub async fn recount<T: Send>(
        &self,
        key: KeyId,
        wallet: WalletId,
        change: &(dyn Fn(Counted) -> (Option<UsageUpdate>, T) + Sync),
    ) -> Result<T> {
        shared!(self, Err(NOT_SHARED), |store| Box::pin(store.recount(key, wallet, change)).await)
    }

    /// Says that this process lives, until it is dropped.
    pub async fn keep_lease(&self) {
        shared!(self, std::future::pending::<()>().await, |store| store.keep_lease().await);
    }

    /// Counts how often this process may have lost its wallets. `None` for an embedded store.
    pub fn losses(&self) -> Option<watch::Receiver<u64>> {
        shared!(self, None, |store| Some(store.losses()))
    }

    /// This process's place among those that are alive, as it changes. `None` for an embedded store.
    pub fn share(&self) -> Option<watch::Receiver<Share>> {
        shared!(self, None, |store| Some(store.share()))
    }

    /// Processes that are alive, this one among them.
    pub fn processes(&self) -> u32 {
        self.share().map_or(1, |share| share.borrow().processes())
    }

    /// Whether writes can be made now: a process that could not renew its lease makes none.
    pub fn takes_writes(&self) -> bool {
        shared!(self, true, |store| store.is_alive())
    }

    /// Calls that failed so far, by kind; most of them were repeated.
    pub fn failed_calls(&self) -> Vec<(StoreFailure, u64)> {
        shared!(self, Vec::new(), |store| store.failed_calls())
    }

    /// Takes a wallet that no living process holds; true where this one holds it now. Taking over a
    /// dead process's wallet raises its epoch.
    pub async fn hold(&self, id: WalletId) -> Result<bool> {
        shared!(self, Ok(true), |store| Box::pin(store.hold(id)).await)
    }

    /// Gives a wallet back.
    pub async fn release(&self, id: WalletId) -> Result<()> {
        shared!(self, Ok(()), |store| Box::pin(store.release(id)).await)
    }

    /// Work that one process at a time does, by name; true where it is this one's.
    pub async fn take_duty(&self, name: &str) -> Result<bool> {
        shared!(self, Ok(true), |store| Box::pin(store.take_duty(name)).await)
    }

    /// A text that the processes share; empty where there is none.
    pub async fn document(&self, name: &str) -> Result<String> {
        shared!(self, Err(NOT_SHARED), |store| Box::pin(store.document(name)).await)
    }

    /// Replaces a shared text where it is still as it was before; false where it is not.
    pub async fn put_document(&self, name: &str, before: &str, after: &str) -> Result<bool> {
        shared!(self, Err(NOT_SHARED), |store| Box::pin(store.put_document(name, before, after))
            .await)
    }
}
