//! Counters of the engine as plain numbers; `api` renders them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::domain::ValueSource;

/// Declares the counters since the start, each with its name and help text as they are rendered.
macro_rules! counters {
    ($($field:ident: $name:literal, $help:literal;)*) => {
        #[derive(Debug, Default)]
        pub struct HistoryMetrics {
            $(pub $field: Counter,)*
            /// Rows stored or filled, by how their native value was found.
            pub values: Values,
            /// Gauge: wallets with a worker.
            pub workers: Counter,
            /// Gauge: open walks.
            pub walks: Counter,
        }

        impl HistoryMetrics {
            /// Names, texts and values of all counts.
            pub fn counters(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$(($name, $help, self.$field.get())),*].into_iter()
            }
        }
    };
}

counters! {
    transactions_decoded: "transactions_decoded", "Transactions decoded";
    trades_decoded: "trades_decoded", "Trades decoded";
    notes: "decode_notes", "Transactions that look like a trade and are none";
    unknown_venues: "unknown_venue_trades",
        "Trades by contracts that no table knows, found by their shape";
    chunks_stored: "chunks_stored", "Chunks of history stored";
    chunks_stale: "chunks_stale", "Chunks dropped as stale";
    rows_delivered: "trades_delivered", "Trades handed to readers";
    load_failures: "load_failures", "Failed loads";
    worker_panics: "worker_panics", "Workers that panicked";
    reorganisations: "reorganisations", "Histories cut back";
    wallets_evicted: "wallets_evicted", "Wallets deleted to make room";
    audited_heights: "audited_heights", "Finished heights read a second time";
    audit_missing: "audit_missing", "Transactions that a second read of finished heights brought";
    audit_unseen: "audit_unseen", "Stored transactions that two later reads did not show";
    scans: "follow_scans", "Scans of a chain for its followed wallets";
    scans_failed: "follow_scans_failed", "Such scans that failed";
    scans_found: "follow_scans_found", "Followed wallets that such scans found to have moved";
}

#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

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
