//! Every limit of the history engine, by name.

use std::time::Duration;

use crate::domain::defaults;
use crate::enrich::EnrichLimits;

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct HistoryLimits {
        /// A walk without a cursor asks for new heights when the last check is older than this.
        pub freshness: Duration = Duration::from_secs(10),
        /// How long it waits for them before it serves from the last check.
        pub head_wait_max: Duration = Duration::from_secs(2),
        /// Rows of one step of a walk.
        pub rows_per_step_max: usize = 1000,
        /// Rows of a shared store that were read ahead longer ago than this are read again.
        pub ahead_age_max: Duration = Duration::from_secs(1),
        /// Wallets with readers or loading at one time; above it a new one is rejected with a retry
        /// hint.
        pub wallets_active_max: usize = 1024,
        /// The same of wallets whose readers all have the history and only follow.
        pub wallets_followed_max: usize = 16_384,
        /// How often a chain is scanned for all its followed wallets, and how long one scan may take: so
        /// long, and so long for each wallet, up to a longest time.
        pub scan_every: Duration = Duration::from_secs(10),
        pub scan_wait_min: Duration = Duration::from_secs(30),
        pub scan_wait_each: Duration = Duration::from_millis(250),
        pub scan_wait_max: Duration = Duration::from_secs(180),
        /// A followed wallet in which scans find nothing is read for itself after this long, so many of
        /// them between two scans.
        pub follow_read_after: Duration = Duration::from_secs(60),
        pub follow_reads_per_scan: usize = 50,
        /// A wallet that was not followed for this long is scanned for no more.
        pub follow_lapse: Duration = Duration::from_secs(60),
        /// Wallets that load in the background at one time.
        pub background_loads_max: usize = 8,
        /// Wallets of one key that may wait for background loading.
        pub background_per_key_max: usize = 64,
        /// Wallets of all keys that may wait for background loading.
        pub background_total_max: usize = 1024,
        /// A background load without a request for this long ends.
        pub background_lapse: Duration = Duration::from_secs(24 * 3600),
        /// A background load lets another one go on after this long.
        pub background_slice: Duration = Duration::from_secs(30),
        /// A worker without work keeps its readers this long.
        pub idle_grace: Duration = Duration::from_secs(2),
        /// A load's endpoints are those that its requests went to within this time.
        pub endpoints_shown_age: Duration = Duration::from_secs(60),
        /// A look for newer heights goes on this long after its last reader has left.
        pub check_linger_max: Duration = Duration::from_secs(60),
        /// How often a wallet is looked at that another process loads, and how often loads are looked for
        /// that a process has left.
        pub follow_every: Duration = Duration::from_millis(200),
        pub adopt_every: Duration = Duration::from_secs(10),
        /// Failures next to an endpoint that works are not reported to readers before others have followed
        /// the first one for so long.
        pub quiet_retry_max: Duration = Duration::from_secs(8),
        /// First and longest pause after a failed load.
        pub retry_pause_min: Duration = Duration::from_secs(1),
        pub retry_pause_max: Duration = Duration::from_secs(30),
        /// One transaction is explained within this time, all calls to nodes together.
        pub explain_wait_max: Duration = Duration::from_secs(30),
        /// Of what completes a chunk before it is stored.
        pub enrich: EnrichLimits = EnrichLimits::default(),
        /// How often unknown tokens are looked up again, and how many at a time.
        pub tokens_check_every: Duration = Duration::from_secs(10),
        pub tokens_check_max: usize = 200,
        /// How often values are looked up again after a source failed, and how many transactions at a
        /// time.
        pub values_check_every: Duration = Duration::from_secs(10),
        pub values_check_max: usize = 50,
        /// Longest pause of a chain whose sources keep failing.
        pub values_pause_max: Duration = Duration::from_secs(300),
        /// How long a chunk waits for the ones below it whose trades may give its lowest rows a value,
        /// and how many transactions are joined so.
        pub neighbours_wait: Duration = Duration::from_secs(1),
        pub neighbours_max: usize = 64,
        /// A history that the nodes have cut is tried again after this long.
        pub cut_retry_after: Duration = Duration::from_secs(600),
        /// A stream that has delivered all rows, and a page without rows, wait so long for the proof that
        /// nothing is missing.
        pub proof_wait_max: Duration = Duration::from_secs(20),
        /// First and longest pause between re-reads of spans whose proof is not accepted.
        pub reread_pause_min: Duration = Duration::from_secs(2),
        pub reread_pause_max: Duration = Duration::from_secs(600),
        pub eviction: EvictionLimits = EvictionLimits::default(),
        /// Wallets whose last use is remembered apart from their last check.
        pub used_wallets_max: usize = 100_000,
        pub audit: AuditLimits = AuditLimits::default(),
        /// Spans of one wallet; above it the topmost gap is closed before a new span begins.
        pub spans_max: usize = 64,
        /// Hashes kept per wallet to notice a reorganisation.
        pub anchors_max: usize = 64,
        /// Counts of filtered rows that are kept for the next page.
        pub tallies_kept_max: usize = 256,
        /// How often counted usage is written down.
        pub usage_flush_every: Duration = Duration::from_millis(500),
        /// (key, wallet) pairs whose delivered ranges stay in memory after they were written down; one of
        /// many ranges counts as several.
        pub usage_wallets_cached_max: usize = 10_000,
        /// Delivered ranges of one (key, wallet); above it neighbours are joined, and what stands between
        /// them is read for free.
        pub usage_ranges_max: usize = 16_384,
    }
}

defaults! {
    /// Of the eviction of wallets from a full store.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EvictionLimits {
        /// Where the size of the store is limited: the shares of that size, in percent, at which wallets
        /// are evicted, down to which, and at which nothing more is loaded.
        pub from_percent: u64 = 85,
        pub to_percent: u64 = 70,
        pub full_percent: u64 = 95,
        /// Rows that one write of an eviction deletes.
        pub rows_max: usize = 5_000,
        /// Wallets that one search finds for eviction, and how many records it reads at a time.
        pub wallets_max: usize = 64,
        pub records_max: usize = 1_000,
    }
}

defaults! {
    /// Of second looks at finished spans.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct AuditLimits {
        /// Calls an hour for second looks at finished spans; 0 switches them off.
        // The configuration switches it on.
        pub calls_per_hour: u32 = 0,
        /// Shortest pause between two such looks.
        pub pause_min: Duration = Duration::from_secs(10),
        /// A wallet whose spans were all looked at is looked at again after this long.
        pub again_after: Duration = Duration::from_secs(24 * 3600),
        /// Wallets asked for lately that are looked at in turn.
        pub wallets_max: usize = 256,
    }
}
