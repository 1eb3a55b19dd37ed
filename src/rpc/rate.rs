//! When the calls so far are paid for by a rate (generic cell rate algorithm), on tokio's clock, so
//! that it works on paused time; and among how many processes the rates of endpoints are divided.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::domain::lock;
use tokio::time::Instant;

/// The account of one rate. Endpoints of several pools that share it stay within the rate together:
/// for an address that counts the requests of all chains, or a key that does.
#[derive(Debug, Clone)]
pub struct RateAccount(Arc<Mutex<Instant>>);

impl Default for RateAccount {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl RateAccount {
    fn paid_until(&self) -> MutexGuard<'_, Instant> {
        lock(&self.0)
    }

    /// When a request may begin that runs at most so far ahead of the rate.
    pub(super) fn free_at(&self, burst: Duration, now: Instant) -> Instant {
        self.paid_until().checked_sub(burst).unwrap_or(now)
    }

    pub(super) fn pay(&self, cost: Duration, now: Instant) {
        let mut paid_until = self.paid_until();
        *paid_until = paid_until.max(now) + cost;
    }

    pub(super) fn refund(&self, cost: Duration) {
        let mut paid_until = self.paid_until();
        *paid_until = paid_until.checked_sub(cost).unwrap_or(*paid_until);
    }
}

/// Among how many processes rates are divided. Clones share the number.
#[derive(Debug, Clone)]
pub struct RateShare(Arc<AtomicU32>);

impl Default for RateShare {
    fn default() -> Self {
        Self(Arc::new(AtomicU32::new(1)))
    }
}

impl RateShare {
    pub fn set(&self, processes: u32) {
        self.0.store(processes.max(1), Ordering::Relaxed);
    }

    pub(super) fn processes(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
