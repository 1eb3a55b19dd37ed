//! The service's clock, which may be wrong for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use blotter::domain::{Clock, UnixMillis};

use crate::support::paused::TestClock;

#[derive(Debug, Clone)]
pub(super) struct JumpClock {
    right: Arc<dyn Clock>,
    ahead_ms: Arc<AtomicU64>,
}

impl JumpClock {
    pub(super) fn start() -> Self {
        Self { right: TestClock::start(), ahead_ms: Arc::default() }
    }

    /// Sets by how much it is ahead of the real time from now on.
    pub(super) fn set_ahead(&self, by: Duration) {
        self.ahead_ms.store(u64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for JumpClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.right.now().0 + self.ahead_ms.load(Ordering::Relaxed))
    }
}
