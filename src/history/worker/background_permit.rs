//! The permits of workers that only the background needs, and how long it needs them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Worker;
use crate::history::Result;
use crate::history::tasks::after;

impl Worker {
    /// Whether the worker may load now. One that only the background needs must hold one of few
    /// permits, which it gives back after a time slice so that others can load.
    pub(super) async fn may_work(&mut self) -> bool {
        if self.load.has_readers() {
            self.background = None;
            return true;
        }
        let slice = self.inner.limits.background_slice;
        if self.background.as_ref().is_some_and(|(_, since)| since.elapsed() < slice) {
            return true;
        }
        self.background = None;
        if self.inner.is_paused() {
            self.release_resources().await;
            self.resumed().await;
            return false;
        }
        let permits = Arc::clone(&self.inner.background_permits);
        if permits.available_permits() == 0 {
            self.release_resources().await;
        }
        let lapse = self.lapses_in();
        tokio::select! {
            biased;
            () = self.inner.tasks.cancelled() => false,
            () = self.load.changed() => false,
            () = after(lapse) => false,
            permit = permits.acquire_owned() => {
                self.background = permit.ok().map(|permit| (permit, Instant::now()));
                self.background.is_some()
            }
        }
    }

    /// Drops prefetched chunks and the wallet's lock, which other processes can take meanwhile.
    async fn release_resources(&mut self) {
        self.read_tasks.clear();
        self.wallet_lock.release_lock(&self.inner.store).await;
    }

    /// Ready once background work is resumed or the wallet's demand changes.
    async fn resumed(&self) {
        let (lapse, mut paused) = (self.lapses_in(), self.inner.paused.subscribe());
        tokio::select! {
            biased;
            () = self.inner.tasks.cancelled() => {}
            () = self.load.changed() => {}
            () = after(lapse) => {}
            _ = paused.wait_for(|paused| !paused) => {}
        }
    }

    /// Ends a background load whose last request is too long ago.
    pub(super) async fn lapse(&self) -> Result<()> {
        let now = self.inner.clock.now();
        match self.load.background() {
            Some(pending) if pending.until <= now => self.inner.clear_background(&self.load).await,
            Some(_) | None => Ok(()),
        }
    }

    /// How long the worker may still work, if no reader waits.
    pub(super) fn lapses_in(&self) -> Option<Duration> {
        let (linger, now) = (self.inner.limits.check_linger_max, self.inner.clock.now());
        let background = self.load.background().map_or(linger, |pending| pending.until.since(now));
        (!self.load.has_readers()).then_some(background)
    }
}
