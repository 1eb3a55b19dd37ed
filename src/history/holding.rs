//! A worker's hold on its wallet among the processes that share a store. An embedded store has one
//! process, which holds every wallet.

use tokio::sync::watch;

use super::Result;
use crate::store::{Store, WalletId};

#[derive(Debug)]
pub(super) struct Holding {
    /// Counts how often this process may have lost its wallets; `None` for an embedded store.
    losses: Option<watch::Receiver<u64>>,
    /// The wallet, and the losses at the time when it was taken.
    held: Option<(WalletId, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    Yes,
    /// It was taken just now, and its record may have changed.
    Now,
    ByAnother,
}

impl Holding {
    pub(super) fn new(store: &Store) -> Self {
        Self { losses: store.losses(), held: None }
    }

    pub(super) async fn take(&mut self, store: &Store, id: WalletId) -> Result<Held> {
        let Some(losses) = &mut self.losses else { return Ok(Held::Yes) };
        let now = *losses.borrow_and_update();
        if self.held == Some((id, now)) {
            return Ok(Held::Yes);
        }
        self.held = None;
        if !store.hold(id).await? {
            return Ok(Held::ByAnother);
        }
        self.held = Some((id, now));
        Ok(Held::Now)
    }

    /// Ready once the wallet may be another process's; never for an embedded store.
    pub(super) async fn lost(&mut self) {
        match &mut self.losses {
            // Its sender lives as long as the store.
            Some(losses) => drop(losses.changed().await),
            None => std::future::pending().await,
        }
    }

    /// Gives the wallet back, so that another process may load it at once.
    pub(super) async fn let_go(&mut self, store: &Store) {
        let Some((id, _)) = self.held.take() else { return };
        if let Err(error) = store.release(id).await {
            tracing::warn!(%error, "a wallet could not be given back; its lease ends by itself");
        }
    }
}
