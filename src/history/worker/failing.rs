//! Handling of a worker's failed steps.

use tokio::time::{Instant, sleep};

use super::{Flow, Worker};
use crate::domain::Height;
use crate::history::error::HistoryError;
use crate::history::failure_run::is_endpoint_failure;
use crate::history::ingest::IngestError;
use crate::rpc::UpstreamError;
use crate::store::WalletPatch;

impl Worker {
    /// Whether readers are not notified of the failure yet.
    fn is_not_reported(&mut self, error: &IngestError, began: Instant) -> bool {
        let failing_for = self.failures.note(began, Instant::now());
        let is_new = failing_for < self.inner.limits.quiet_retry_max;
        is_new && is_endpoint_failure(error) && self.source.works_in_part()
    }

    /// Handles a failed step: notifies the readers, then backs off before the next attempt.
    pub(super) async fn failed(&mut self, error: IngestError, began: Instant) -> Flow {
        self.read_tasks.clear();
        self.inner.metrics.load_failures.add(1);
        // A check for newer heights fails only before its first chunk, so its cut does not concern
        // the gaps below, and recording it would not delay the next check.
        if let IngestError::Upstream(UpstreamError::HistoryCut { first }) = error
            && !self.has_checked
        {
            self.cut_found = Some(Instant::now());
            return self.note_cut(first).await;
        }
        if self.is_not_reported(&error, began) {
            tracing::info!(%error, "loading a wallet failed; retrying at the endpoints that work");
            sleep(self.inner.limits.retry_pause_min).await;
            return Flow::Again;
        }
        tracing::warn!(%error, "loading a wallet failed; retrying after a growing pause");
        // Another process may be able to reach the chain.
        self.wallet_lock.release_lock(&self.inner.store).await;
        self.load.notify_failure(HistoryError::from(error));
        let pause = self.pause;
        self.pause = (pause * 2).min(self.inner.limits.retry_pause_max);
        // A new demand starts the next attempt early, but not before the shortest pause.
        let early = async {
            sleep(self.inner.limits.retry_pause_min).await;
            self.load.changed().await;
        };
        tokio::select! {
            biased;
            () = self.inner.tasks.cancelled() => return Flow::Exit,
            () = early => {}
            () = sleep(pause) => {}
        }
        if self.inner.remove_if_unwanted(&self.load) { Flow::Exit } else { Flow::Again }
    }

    async fn note_cut(&mut self, first: Height) -> Flow {
        let cut = WalletPatch { cut: Some(Some(first)), ..WalletPatch::default() };
        let noted = match self.record().await {
            Ok(Some(record)) => self.patch(&record, cut).await,
            // The wallet was forgotten; the next step notices it too.
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = noted {
            self.load.notify_failure(error);
            sleep(self.inner.limits.retry_pause_min).await;
        }
        Flow::Again
    }
}
