//! A worker's lock on its wallet among the processes that share a store. With an embedded store
//! there is one process, which owns every wallet.

use tokio::sync::watch;

use super::Result;
use crate::store::{Store, WalletId};

#[derive(Debug)]
pub(super) struct WalletLock {
    /// Counts the times at which this process may have lost its locks; `None` for an embedded
    /// store.
    losses: Option<watch::Receiver<u64>>,
    /// The locked wallet, and the number of losses when it was locked.
    held: Option<(WalletId, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockState {
    Held,
    /// Locked just now: the wallet's record may have changed.
    Acquired,
    /// Another process has it.
    HeldByOther,
}

impl WalletLock {
    pub(super) fn new(store: &Store) -> Self {
        Self { losses: store.losses(), held: None }
    }

    pub(super) async fn take(&mut self, store: &Store, id: WalletId) -> Result<LockState> {
        let Some(losses) = &mut self.losses else { return Ok(LockState::Held) };
        let now = *losses.borrow_and_update();
        if self.held == Some((id, now)) {
            return Ok(LockState::Held);
        }
        self.held = None;
        if !store.hold(id).await? {
            return Ok(LockState::HeldByOther);
        }
        self.held = Some((id, now));
        Ok(LockState::Acquired)
    }

    /// Ready once another process may have locked the wallet; never for an embedded store.
    pub(super) async fn lost(&mut self) {
        match &mut self.losses {
            // Its sender lives as long as the store.
            Some(losses) => drop(losses.changed().await),
            None => std::future::pending().await,
        }
    }

    /// Releases the wallet, so that another process can load it at once.
    pub(super) async fn release_lock(&mut self, store: &Store) {
        let Some((id, _)) = self.held.take() else { return };
        if let Err(error) = store.release(id).await {
            tracing::warn!(%error, "cannot release a wallet; other processes can load it once its lease expires");
        }
    }
}
