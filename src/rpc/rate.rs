//! Rate limiting by the generic cell rate algorithm, on tokio's clock so that it works with paused
//! time; and the number of processes that divide the endpoints' rates.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::domain::lock;
use tokio::time::Instant;

/// The account of one rate limit. Endpoints of several pools that share it stay within the limit
/// together, as some providers count the requests of all chains per client address or key. Holds
/// the time up to which requests are paid for.
#[derive(Debug, Clone)]
pub struct RateAccount(Arc<Mutex<Instant>>);

impl Default for RateAccount {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl RateAccount {
    /// When a request may be sent that runs at most `burst` ahead of the rate.
    pub(super) fn free_at(&self, burst: Duration, now: Instant) -> Instant {
        lock(&self.0).checked_sub(burst).unwrap_or(now)
    }

    pub(super) fn pay(&self, cost: Duration, now: Instant) {
        let mut paid_until = lock(&self.0);
        *paid_until = paid_until.max(now) + cost;
    }

    pub(super) fn refund(&self, cost: Duration) {
        let mut paid_until = lock(&self.0);
        *paid_until = paid_until.checked_sub(cost).unwrap_or(*paid_until);
    }
}

/// Number of processes that divide the rates. Clones share it.
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
