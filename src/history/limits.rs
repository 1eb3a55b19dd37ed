//! Every limit of the history engine, by name.

use std::time::Duration;

use crate::enrich::EnrichLimits;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryLimits {
    /// A walk without a cursor asks for new heights when the last check is older than this.
    pub freshness: Duration,
    /// How long it waits for them before it serves from the last check.
    pub head_wait_max: Duration,
    /// Rows of one step of a walk.
    pub rows_per_step_max: usize,
    /// Rows of a shared store that were read ahead longer ago than this are read again.
    pub ahead_age_max: Duration,
    /// Wallets with readers or loading at one time; above it a new one is rejected with a retry
    /// hint.
    pub wallets_active_max: usize,
    /// The same of wallets whose readers all have the history and only follow.
    pub wallets_followed_max: usize,
    /// How often a chain is scanned for all its followed wallets, and how long one scan may take: so
    /// long, and so long for each wallet, up to a longest time.
    pub scan_every: Duration,
    pub scan_wait_min: Duration,
    pub scan_wait_each: Duration,
    pub scan_wait_max: Duration,
    /// A followed wallet in which scans find nothing is read for itself after this long, so many of
    /// them between two scans.
    pub follow_read_after: Duration,
    pub follow_reads_per_scan: usize,
    /// A wallet that was not followed for this long is scanned for no more.
    pub follow_lapse: Duration,
    /// Wallets that load in the background at one time.
    pub background_loads_max: usize,
    /// Wallets of one key that may wait for background loading.
    pub background_per_key_max: usize,
    /// Wallets of all keys that may wait for background loading.
    pub background_total_max: usize,
    /// A background load without a request for this long ends.
    pub background_lapse: Duration,
    /// A background load lets another one go on after this long.
    pub background_slice: Duration,
    /// A worker without work keeps its readers this long.
    pub idle_grace: Duration,
    /// A load's endpoints are those that its requests went to within this time.
    pub endpoints_shown_age: Duration,
    /// A look for newer heights goes on this long after its last reader has left.
    pub check_linger_max: Duration,
    /// How often a wallet is looked at that another process loads, and how often loads are looked for
    /// that a process has left.
    pub follow_every: Duration,
    pub adopt_every: Duration,
    /// First and longest pause after a failed load.
    pub retry_pause_min: Duration,
    pub retry_pause_max: Duration,
    /// Of what completes a chunk before it is stored.
    pub enrich: EnrichLimits,
    /// How often unknown tokens are looked up again, and how many at a time.
    pub tokens_check_every: Duration,
    pub tokens_check_max: usize,
    /// How often values are looked up again after a source failed, and how many transactions at a
    /// time.
    pub values_check_every: Duration,
    pub values_check_max: usize,
    /// Longest pause of a chain whose sources keep failing.
    pub values_pause_max: Duration,
    /// How long a chunk waits for the ones below it whose trades may give its lowest rows a value,
    /// and how many transactions are joined so.
    pub neighbours_wait: Duration,
    pub neighbours_max: usize,
    /// A history that the nodes have cut is tried again after this long.
    pub cut_retry_after: Duration,
    /// A stream that has delivered all rows, and a page without rows, wait so long for the proof that
    /// nothing is missing.
    pub proof_wait_max: Duration,
    /// First and longest pause between re-reads of spans whose proof is not accepted.
    pub reread_pause_min: Duration,
    pub reread_pause_max: Duration,
    pub eviction: EvictionLimits,
    /// Wallets whose last use is remembered apart from their last check.
    pub used_wallets_max: usize,
    pub audit: AuditLimits,
    /// Spans of one wallet; above it the topmost gap is closed before a new span begins.
    pub spans_max: usize,
    /// Hashes kept per wallet to notice a reorganisation.
    pub anchors_max: usize,
    /// Counts of filtered rows that are kept for the next page.
    pub tallies_kept_max: usize,
    /// How often counted usage is written down.
    pub usage_flush_every: Duration,
    /// (key, wallet) pairs whose delivered ranges stay in memory after they were written down; one of
    /// many ranges counts as several.
    pub usage_wallets_cached_max: usize,
    /// Delivered ranges of one (key, wallet); above it neighbours are joined, and what stands between
    /// them is read for free.
    pub usage_ranges_max: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self {
            freshness: Duration::from_secs(10),
            head_wait_max: Duration::from_secs(2),
            rows_per_step_max: 1000,
            ahead_age_max: Duration::from_secs(1),
            wallets_active_max: 1024,
            wallets_followed_max: 16_384,
            scan_every: Duration::from_secs(10),
            scan_wait_min: Duration::from_secs(30),
            scan_wait_each: Duration::from_millis(250),
            scan_wait_max: Duration::from_secs(180),
            follow_read_after: Duration::from_secs(60),
            follow_reads_per_scan: 50,
            follow_lapse: Duration::from_secs(60),
            background_loads_max: 8,
            background_per_key_max: 64,
            background_total_max: 1024,
            background_lapse: Duration::from_secs(24 * 3600),
            background_slice: Duration::from_secs(30),
            idle_grace: Duration::from_secs(2),
            endpoints_shown_age: Duration::from_secs(60),
            check_linger_max: Duration::from_secs(60),
            follow_every: Duration::from_millis(200),
            adopt_every: Duration::from_secs(10),
            retry_pause_min: Duration::from_secs(1),
            retry_pause_max: Duration::from_secs(30),
            enrich: EnrichLimits::default(),
            tokens_check_every: Duration::from_secs(10),
            tokens_check_max: 200,
            values_check_every: Duration::from_secs(10),
            values_check_max: 50,
            values_pause_max: Duration::from_secs(300),
            neighbours_wait: Duration::from_secs(1),
            neighbours_max: 64,
            cut_retry_after: Duration::from_secs(600),
            proof_wait_max: Duration::from_secs(20),
            reread_pause_min: Duration::from_secs(2),
            reread_pause_max: Duration::from_secs(600),
            eviction: EvictionLimits::default(),
            used_wallets_max: 100_000,
            audit: AuditLimits::default(),
            spans_max: 64,
            anchors_max: 64,
            tallies_kept_max: 256,
            usage_flush_every: Duration::from_millis(500),
            usage_wallets_cached_max: 10_000,
            usage_ranges_max: 16_384,
        }
    }
}

/// Of the eviction of wallets from a full store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictionLimits {
    /// Where the size of the store is limited: the shares of that size, in percent, at which wallets
    /// are evicted, down to which, and at which nothing more is loaded.
    pub from_percent: u64,
    pub to_percent: u64,
    pub full_percent: u64,
    /// Rows that one write of an eviction deletes.
    pub rows_max: usize,
    /// Wallets that one search finds for eviction, and how many records it reads at a time.
    pub wallets_max: usize,
    pub records_max: usize,
}

impl Default for EvictionLimits {
    fn default() -> Self {
        Self {
            from_percent: 85,
            to_percent: 70,
            full_percent: 95,
            rows_max: 5_000,
            wallets_max: 64,
            records_max: 1_000,
        }
    }
}

/// Of second looks at finished spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLimits {
    /// Calls an hour for second looks at finished spans; 0 switches them off.
    pub calls_per_hour: u32,
    /// Shortest pause between two such looks.
    pub pause_min: Duration,
    /// A wallet whose spans were all looked at is looked at again after this long.
    pub again_after: Duration,
    /// Wallets asked for lately that are looked at in turn.
    pub wallets_max: usize,
}

impl Default for AuditLimits {
    fn default() -> Self {
        Self {
            // The configuration switches it on.
            calls_per_hour: 0,
            pause_min: Duration::from_secs(10),
            again_after: Duration::from_secs(24 * 3600),
            wallets_max: 256,
        }
    }
}
