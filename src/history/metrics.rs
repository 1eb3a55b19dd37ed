//! Counters of the engine, as plain numbers; the api renders them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::domain::ValueSource;

/// Everything is a count since the start, but for the two gauges.
#[derive(Debug, Default)]
pub struct HistoryMetrics {
    pub transactions_decoded: Counter,
    pub trades_decoded: Counter,
    /// Transactions that look like a trade and are none, with a note that says why.
    pub notes: Counter,
    /// Trades by contracts that no table knows, found by their shape.
    pub unknown_venues: Counter,
    pub chunks_stored: Counter,
    pub chunks_stale: Counter,
    pub rows_delivered: Counter,
    pub load_failures: Counter,
    pub worker_panics: Counter,
    pub reorganisations: Counter,
    /// Wallets whose rows were deleted to make room.
    pub wallets_evicted: Counter,
    /// Heights of finished spans that were looked at again.
    pub audited_heights: Counter,
    /// Transactions that such looks found and that were not stored, and stored ones that two of them
    /// did not show.
    pub audit_missing: Counter,
    pub audit_unseen: Counter,
    /// Scans for followed wallets, those that failed, and wallets that they found to have moved.
    pub scans: Counter,
    pub scans_failed: Counter,
    pub scans_found: Counter,
    /// Rows stored or filled, by how their native value was found.
    pub values: Values,
    /// Gauge: wallets with a worker.
    pub workers: Counter,
    /// Gauge: open walks.
    pub walks: Counter,
}

#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

/// One counter for each way.
#[derive(Debug, Default)]
pub struct Values([Counter; ValueSource::ALL.len()]);

impl Values {
    pub fn iter(&self) -> impl Iterator<Item = (ValueSource, u64)> {
        ValueSource::ALL.into_iter().zip(self.0.iter().map(Counter::get))
    }

    pub(super) fn add(&self, source: ValueSource) {
        let counters = ValueSource::ALL.into_iter().zip(&self.0);
        for (_, counter) in counters.filter(|(known, _)| *known == source) {
            counter.add(1);
        }
    }
}

impl Counter {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, count: usize) {
        self.add_count(u64::try_from(count).unwrap_or(u64::MAX));
    }

    pub(super) fn add_count(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn subtract_one(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
