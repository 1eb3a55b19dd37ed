//! Duties of an engine towards the processes that share its store: it renews its lease and adopts
//! the loads of dead processes.

use std::sync::Arc;

use super::{Inner, Result};
use crate::domain::ChainId;
use crate::rpc::RateShare;
use crate::store::StoreFailure;

/// State of a shared store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharing {
    /// Number of live processes, including this one.
    pub processes: u32,
    /// Failed calls to the store by kind; most were retried.
    pub failed_calls: Vec<(StoreFailure, u64)>,
}

impl Inner {
    /// Keeps the endpoints' rates divided by the number of live processes.
    pub(super) fn share_rates(self: &Arc<Self>, rates: RateShare) {
        let Some(mut share) = self.store.share() else { return };
        let inner = Arc::clone(self);
        self.tasks.spawn(async move {
            loop {
                rates.set(share.borrow_and_update().processes());
                let Some(Ok(())) = inner.tasks.run(share.changed()).await else { return };
            }
        });
    }

    pub(super) fn start_sharing(self: &Arc<Self>) {
        if !self.store.is_shared() {
            return;
        }
        let inner = Arc::clone(self);
        self.tasks.spawn(async move {
            inner.tasks.run(inner.store.keep_lease()).await;
        });
        self.tasks.spawn(Arc::clone(self).adopt());
    }

    /// Adopts loads that dead processes left; one process at a time has this duty.
    async fn adopt(self: Arc<Self>) {
        while self.tasks.run(tokio::time::sleep(self.limits.adopt_every)).await.is_some() {
            if let Some(Err(error)) = self.tasks.run(self.adopt_once()).await {
                tracing::warn!(%error, "cannot search for abandoned loads of other processes; retrying");
            }
        }
    }

    async fn adopt_once(self: &Arc<Self>) -> Result<()> {
        if self.store.take_duty("loads").await? {
            self.resume_pending().await?;
        }
        Ok(())
    }

    /// Resumes the background loads that an earlier run or another process left.
    pub(super) async fn resume_pending(self: &Arc<Self>) -> Result<usize> {
        let now = self.clock.now();
        let pending = self.view()?.pending().await?;
        let mut resumed = 0;
        for (_, wallet, pending) in pending {
            if pending.until > now && self.sources.contains_key(&wallet.chain) {
                self.attend(wallet, false, |load| load.set_background(Some(pending)))?;
                resumed += 1;
            }
        }
        Ok(resumed)
    }

    /// Whether this process has a chain's duty that only one process may have. False if the store
    /// fails.
    pub(super) async fn has_duty(&self, work: &str, chain: ChainId) -> bool {
        let name = format!("{work} {}", chain.0);
        self.store.take_duty(&name).await.unwrap_or(false)
    }
}
