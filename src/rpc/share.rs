//! Among how many processes the rates of endpoints are divided.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Clones share the number.
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
