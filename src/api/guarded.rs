//! A walk that ends if its caller's key is revoked, expires or has used up a lowered quota.

use std::ops::Deref;
use std::sync::Arc;

use futures_util::future::OptionFuture;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::App;
use super::auth::{Caller, KeyInfo, KeyRing};
use crate::domain::{KeyId, UnixMillis};
use crate::history::{HistoryError, Step, Walk};

pub(super) struct Guarded {
    app: Arc<App>,
    walk: Walk,
    key: KeyId,
    quota: Option<u64>,
    changes: watch::Receiver<Arc<KeyRing>>,
    ends_at: Option<Instant>,
    has_ended: bool,
}

impl Deref for Guarded {
    type Target = Walk;

    fn deref(&self) -> &Walk {
        &self.walk
    }
}

impl Guarded {
    pub(super) fn new(app: &Arc<App>, caller: &Caller, walk: Walk) -> Self {
        let mut changes = app.keys.changes();
        // The key may have changed since the caller was authenticated.
        changes.mark_changed();
        let KeyInfo { id, quota, expires, .. } = *caller.key;
        let ends_at = expires.map(|at| moment(app, at));
        Self { app: Arc::clone(app), walk, key: id, quota, changes, ends_at, has_ended: false }
    }

    /// The next rows, or the end. Cancel safe.
    pub(super) async fn next(&mut self) -> Step {
        loop {
            let expiry = self.ends_at.filter(|_| !self.has_ended);
            // Boxed, because most keys do not expire, and thousands of streams wait here.
            let expiry = expiry.map(|at| Box::pin(sleep_until(at)));
            tokio::select! {
                biased;
                Some(()) = OptionFuture::from(expiry) => self.end(HistoryError::KeyEnded),
                Ok(()) = self.changes.changed(), if !self.has_ended => Box::pin(self.check()).await,
                step = self.walk.next() => return step,
            }
        }
    }

    /// Checks the key after a change of the key ring.
    async fn check(&mut self) {
        let Some(key) = self.app.keys.valid(self.key, self.app.history.clock().now()) else {
            return self.end(HistoryError::KeyEnded);
        };
        self.ends_at = key.expires.map(|at| moment(&self.app, at));
        if key.quota == self.quota {
            return;
        }
        self.quota = key.quota;
        self.walk.set_quota(key.quota);
        // If the store fails here, the walk fails too.
        let used = self.app.history.usage(self.key).await.unwrap_or_default();
        if key.quota.is_some_and(|quota| used >= quota) {
            self.end(HistoryError::QuotaExceeded);
        }
    }

    fn end(&mut self, reason: HistoryError) {
        self.has_ended = true;
        self.walk.stop(reason);
    }
}

/// Converts a time of the wall clock to the clock of timers.
fn moment(app: &App, at: UnixMillis) -> Instant {
    let left = at.0.saturating_sub(app.history.clock().now().0);
    Instant::now() + std::time::Duration::from_millis(left)
}
