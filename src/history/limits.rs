//! Every limit of the history engine, by name.

use std::time::Duration;

use crate::domain::defaults;
use crate::enrich::EnrichLimits;

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct HistoryLimits {
        /// Maximum age of the last check at which a walk without a cursor does not query new
        /// heights.
        pub freshness: Duration = Duration::from_secs(10),
        /// How long such a walk waits for the new head before it serves from the last check.
        pub head_wait_max: Duration = Duration::from_secs(2),
        /// Rows read per step of a walk.
        pub rows_per_step_max: usize = 1000,
        /// Prefetched rows of a shared store are read again if they are older than this.
        pub ahead_age_max: Duration = Duration::from_secs(1),
        /// Wallets with active readers at one time; above it a new one is rejected with a retry
        /// hint.
        pub wallets_active_max: usize = 1024,
        /// The same for wallets whose readers have the history and only follow.
        pub wallets_followed_max: usize = 16_384,
        /// How often a chain is scanned for its followed wallets, and the timeout of a scan: a
        /// minimum, an addition per wallet, and a maximum.
        pub scan_every: Duration = Duration::from_secs(10),
        pub scan_wait_min: Duration = Duration::from_secs(30),
        pub scan_wait_each: Duration = Duration::from_millis(250),
        pub scan_wait_max: Duration = Duration::from_secs(180),
        /// A followed wallet in which scans find nothing is read itself after this long, at most
        /// this many wallets per scan.
        pub follow_read_after: Duration = Duration::from_secs(60),
        pub follow_reads_per_scan: usize = 50,
        /// A wallet whose worker did not call for this long is no longer scanned.
        pub follow_lapse: Duration = Duration::from_secs(60),
        /// Background loads at one time.
        pub background_loads_max: usize = 8,
        /// Wallets of one key that may wait for background loading.
        pub background_per_key_max: usize = 64,
        /// Wallets of all keys that may wait for background loading.
        pub background_total_max: usize = 1024,
        /// A background load ends this long after the last request.
        pub background_lapse: Duration = Duration::from_secs(24 * 3600),
        /// A background load yields its place to another one after this long.
        pub background_slice: Duration = Duration::from_secs(30),
        /// A worker without work keeps its read tasks for this long.
        pub idle_grace: Duration = Duration::from_secs(2),
        /// The endpoints of a load are those that got requests within this time.
        pub endpoints_shown_age: Duration = Duration::from_secs(60),
        /// A check for newer heights is finished if it began within this time, even without
        /// readers.
        pub check_linger_max: Duration = Duration::from_secs(60),
        /// How often a wallet that another process loads is polled, and how often abandoned loads
        /// of other processes are searched for.
        pub follow_every: Duration = Duration::from_millis(200),
        pub adopt_every: Duration = Duration::from_secs(10),
        /// Failures are not reported to readers until this long after the first one, while another
        /// endpoint works.
        pub quiet_retry_max: Duration = Duration::from_secs(8),
        /// First and longest backoff after a failed load.
        pub retry_pause_min: Duration = Duration::from_secs(1),
        pub retry_pause_max: Duration = Duration::from_secs(30),
        /// Timeout of explaining one transaction, all calls included.
        pub explain_wait_max: Duration = Duration::from_secs(30),
        pub enrich: EnrichLimits = EnrichLimits::default(),
        /// How often unknown tokens are looked up again, and at most how many at once.
        pub tokens_check_every: Duration = Duration::from_secs(10),
        pub tokens_check_max: usize = 200,
        /// How often pending values are looked up again, and at most how many transactions at once.
        pub values_check_every: Duration = Duration::from_secs(10),
        pub values_check_max: usize = 50,
        /// Longest backoff of a chain's value backfill.
        pub values_pause_max: Duration = Duration::from_secs(300),
        /// How long a chunk waits for the chunks below, whose trades may give its lowest rows a
        /// value, and the most transactions that are joined.
        pub neighbours_wait: Duration = Duration::from_secs(1),
        pub neighbours_max: usize = 64,
        /// A history that the nodes have cut is read again after this long.
        pub cut_retry_after: Duration = Duration::from_secs(600),
        /// How long a stream that has delivered all rows, or a page without rows, waits for
        /// outstanding proofs.
        pub proof_wait_max: Duration = Duration::from_secs(20),
        /// First and longest backoff between rereads of spans whose proof is not accepted.
        pub reread_pause_min: Duration = Duration::from_secs(2),
        pub reread_pause_max: Duration = Duration::from_secs(600),
        pub eviction: EvictionLimits = EvictionLimits::default(),
        /// Number of wallets whose last request is remembered for eviction.
        pub used_wallets_max: usize = 100_000,
        pub audit: AuditLimits = AuditLimits::default(),
        /// Spans per wallet; above it the topmost gap is closed before a new span begins.
        pub spans_max: usize = 64,
        /// Anchors kept per wallet.
        pub anchors_max: usize = 64,
        /// Counts of filtered rows that are cached for later pages.
        pub match_counts_kept_max: usize = 256,
        /// How often counted usage is written.
        pub usage_flush_every: Duration = Duration::from_millis(500),
        /// (key, wallet) pairs whose delivered ranges stay cached after they were written; a pair
        /// with many ranges counts as several.
        pub usage_wallets_cached_max: usize = 10_000,
        /// Delivered ranges per (key, wallet); above it neighbours are joined, and rows between
        /// them are no longer counted.
        pub usage_ranges_max: usize = 16_384,
    }
}

defaults! {
    /// Limits of evicting wallets from a full store.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EvictionLimits {
        /// Per cent of a limited store's size at which eviction begins, at which it ends, and at
        /// which loading stops.
        pub from_percent: u64 = 85,
        pub to_percent: u64 = 70,
        pub full_percent: u64 = 95,
        /// Rows deleted per write of an eviction.
        pub rows_max: usize = 5_000,
        /// Wallets that one search returns, and records that it reads at once.
        pub wallets_max: usize = 64,
        pub records_max: usize = 1_000,
    }
}

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct AuditLimits {
        /// Calls per hour for audits; 0 disables them.
        // The configuration enables audits.
        pub calls_per_hour: u32 = 0,
        /// Shortest pause between two audit steps.
        pub pause_min: Duration = Duration::from_secs(10),
        /// Pause between two audits of one wallet.
        pub again_after: Duration = Duration::from_secs(24 * 3600),
        /// Recently requested wallets that are audited in turn.
        pub wallets_max: usize = 256,
    }
}
