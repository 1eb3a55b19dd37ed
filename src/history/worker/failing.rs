//! What a worker does once a step has failed.

use tokio::time::{Instant, sleep};

use super::{Flow, Worker};
use crate::domain::Height;
use crate::history::error::HistoryError;
use crate::history::failure_run::is_of_endpoint;
use crate::history::ingest::IngestError;
use crate::rpc::UpstreamError;
use crate::store::WalletPatch;

impl Worker {
    /// Whether readers need not know of a failure yet.
    fn may_pass(&mut self, error: &IngestError, began: Instant) -> bool {
        let failing_for = self.failures.note(began, Instant::now());
        let is_new = failing_for < self.inner.limits.quiet_retry_max;
        is_new && is_of_endpoint(error) && self.source.works_in_part()
    }

    /// Notifies the readers, then backs off before the next attempt.
    pub(super) async fn failed(&mut self, error: IngestError, began: Instant) -> Flow {
        self.pumps.clear();
        self.inner.metrics.load_failures.add(1);
        // Of a look for newer heights, which fails in front of its first chunk alone, it says nothing of
        // the gaps below, and would not keep the next look from beginning at once.
        if let IngestError::Upstream(UpstreamError::HistoryCut { first }) = error
            && !self.has_checked
        {
            self.cut_found = Some(Instant::now());
            return self.note_cut(first).await;
        }
        if self.may_pass(&error, began) {
            tracing::info!(%error, "loading a wallet failed, and begins anew at the endpoints that work");
            sleep(self.inner.limits.retry_pause_min).await;
            return Flow::Again;
        }
        tracing::warn!(%error, "loading a wallet failed");
        // Another process may reach the chain meanwhile.
        self.holding.let_go(&self.inner.store).await;
        self.board.tell_failure(HistoryError::from(error));
        let pause = self.pause;
        self.pause = (pause * 2).min(self.inner.limits.retry_pause_max);
        // A new demand is worth an early try, but not a storm of them.
        let early = async {
            sleep(self.inner.limits.retry_pause_min).await;
            self.board.changed().await;
        };
        tokio::select! {
            biased;
            () = self.inner.tasks.cancelled() => return Flow::Exit,
            () = early => {}
            () = sleep(pause) => {}
        }
        if self.inner.dismiss(&self.board) { Flow::Exit } else { Flow::Again }
    }

    async fn note_cut(&mut self, first: Height) -> Flow {
        let cut = WalletPatch { cut: Some(Some(first)), ..WalletPatch::default() };
        let noted = match self.record().await {
            Ok(Some(record)) => self.patch(&record, cut).await,
            // The next step sees so too.
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = noted {
            self.board.tell_failure(error);
            sleep(self.inner.limits.retry_pause_min).await;
        }
        Flow::Again
    }
}
