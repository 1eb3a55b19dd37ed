//! The one place that starts background tasks, so that shutdown can cancel and await them.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::ready_limit::ReadyLimit;

/// All background tasks of the process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    ready: ReadyLimit,
}

impl Tasks {
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a task that should watch [`Tasks::cancelled`] itself.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.tracker.spawn(future)
    }

    /// Starts a task that loads: it leaves room for those that answer requests.
    pub(super) fn spawn_load<F>(&self, future: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn(self.ready.take(future))
    }

    /// Starts a task that ends when the handle is dropped.
    pub(super) fn spawn_owned<F>(&self, future: F) -> AbortOnDropHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        AbortOnDropHandle::new(self.spawn(future))
    }

    /// Asks every task to end.
    pub fn cancel(&self) {
        self.stop.cancel();
    }

    pub fn is_cancelled(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// The result of `work`; `None` once the tasks are cancelled.
    pub async fn run<F: Future>(&self, work: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            () = self.cancelled() => None,
            given = work => Some(given),
        }
    }

    /// Ready once the tasks are cancelled.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.stop.cancelled()
    }

    /// Cancels all tasks and waits for them; false if some did not end within this time.
    pub async fn shutdown(&self, wait_max: Duration) -> bool {
        self.cancel();
        self.tracker.close();
        tokio::time::timeout(wait_max, self.tracker.wait()).await.is_ok()
    }
}

/// Ready after `time`; never if it is `None`.
pub(super) async fn after(time: Option<Duration>) {
    let Some(time) = time else { return std::future::pending().await };
    tokio::time::sleep(time).await;
}
