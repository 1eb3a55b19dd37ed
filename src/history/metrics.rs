//! Counters of the engine, as plain numbers; the api renders them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Everything is a count since the start, but for the two gauges.
#[derive(Debug, Default)]
pub struct HistoryMetrics {
    pub transactions_decoded: Counter,
    pub trades_decoded: Counter,
    /// Transactions that look like a trade and are none, with a note that says why.
    pub notes: Counter,
    pub chunks_stored: Counter,
    pub chunks_stale: Counter,
    pub rows_delivered: Counter,
    pub load_failures: Counter,
    pub worker_panics: Counter,
    pub reorganisations: Counter,
    /// Gauge: wallets with a worker.
    pub workers: Counter,
    /// Gauge: open walks.
    pub walks: Counter,
}

#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, count: usize) {
        self.0.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn subtract_one(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
