//! Every limit of the Tron source, by name.

use std::time::Duration;

use crate::domain::{Height, defaults};

/// How to find a wallet's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TronDiscovery {
    /// By account lists, and by events if no endpoint has lists.
    #[default]
    Auto,
    /// By account lists alone.
    Lists,
    /// By events alone.
    Events,
}

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TronLimits {
        pub discovery: TronDiscovery = TronDiscovery::Auto,
        /// Transactions of one reader that are in flight or wait for delivery.
        pub run_ahead_max: usize = 400,
        /// The same for all readers together.
        pub run_ahead_total_max: usize = 4000,
        /// Transactions in flight of a reader that has delivered none yet.
        pub run_ahead_min: usize = 10,
        /// Entries listed ahead of the transactions.
        pub list_ahead_max: usize = 1000,
        /// Transactions per chunk; a block with more stays whole.
        pub chunk_max: usize = 200,
        /// Skipped entries after which one is fetched to learn its height.
        pub passed_max: usize = 2000,
        /// Attempts for a listed transaction that no node returns.
        pub missing_tries_max: u32 = 6,
        /// Pause before such an attempt, times its number.
        pub missing_pause: Duration = Duration::from_millis(500),
        /// Attempts for JSON-RPC answers that do not match the request.
        pub unfit_tries_max: u32 = 4,
        /// Missing transactions per read that are tolerated.
        pub missing_max: usize = 64,
        /// Consecutive answers of a list that lack known entries.
        pub misses_max: u32 = 3,
        /// Pause after a refusal of lists; doubles each time up to a maximum.
        pub lists_pause_min: Duration = Duration::from_secs(1),
        pub lists_pause_max: Duration = Duration::from_secs(10),
        /// An endpoint counts as without lists after this many refusals, each this long after the
        /// one before, and this long in all.
        pub lists_refusals_min: u32 = 3,
        pub lists_refusal_spacing: Duration = Duration::from_secs(5),
        pub lists_absent_after: Duration = Duration::from_secs(12),
        /// Pauses between queries for lists while a wallet is read by events.
        pub lists_probe_pause: Duration = Duration::from_secs(6),
        /// Entries of the first page of a read that continues above known heights.
        pub refresh_page: usize = 20,
        /// How long an observation of a list's indexed time is valid.
        pub indexed_age_max: Duration = Duration::from_secs(10),
        /// Longest time that a busy account's page may span, and greatest age of its newest entry.
        pub indexed_span_max: Duration = Duration::from_secs(600),
        pub indexed_entry_age_max: Duration = Duration::from_secs(3600),
        /// Longest wait for an observation.
        pub indexed_wait: Duration = Duration::from_secs(3),
        /// The same for a list without any observation: longer than a provider suspends a client.
        pub indexed_first_wait: Duration = Duration::from_secs(8),
        /// Blocks per search for events; java-tron allows 5,000 by default.
        pub logs_range_max: u64 = 5000,
        /// Searches for events per request.
        pub logs_batch_max: usize = 10,
        /// Concurrent requests for events: at most, and while few transactions are wanted.
        pub logs_ahead_max: usize = 16,
        pub logs_ahead_min: usize = 4,
        /// Wanted transactions per further concurrent request.
        pub logs_ahead_for: usize = 6,
        /// Fewest known blocks that are delivered even with few rows or none, while more is
        /// unknown.
        pub sparse_blocks: u64 = 100_000,
        /// Answers per search for events, until two endpoints agree.
        pub logs_votes_max: u32 = 12,
        /// Pages below a full first one that an estimate queries, and their timeout.
        pub activity_pages: u64 = 3,
        pub activity_wait: Duration = Duration::from_secs(3),
        /// Wallets per scan query; java-tron takes 1,000 topics in one position.
        pub scan_topics_max: usize = 1_000,
        /// Blocks below the head that a scan covers; wallets whose last scan is older are read
        /// themselves.
        pub scan_blocks_max: u64 = 1_000,
        /// Endpoints that one scan tries.
        pub scan_endpoints_max: usize = 4,
        /// Blocks within which a reference pool should have events.
        pub sentinel_blocks: u64 = 200,
        /// Blocks sampled for events if no reference pool has any.
        pub sample_blocks: u64 = 8,
        /// No contract ran below this block, provided the chain is longer than twice that.
        // 69 days after the first one, of three seconds each; contracts came after 106 days.
        pub events_from: Height = 2_000_000,
        /// How long an endpoint's depth is valid if it does not keep all events.
        pub depth_age_max: Duration = Duration::from_secs(600),
        /// Tokens per request: two calls each; java-tron takes 100 calls.
        pub tokens_batch: usize = 40,
        /// Concurrent tokens if each needs its own requests.
        pub tokens_parallel: usize = 8,
        /// Rounds of queries for tokens without an answer.
        pub token_rounds: u32 = 4,
        /// Time after which the known metadata is returned.
        pub tokens_wait: Duration = Duration::from_millis(2_500),
        /// The same while an endpoint allows few calls per second.
        pub tokens_wait_paced: Duration = Duration::from_secs(20),
        /// Protocol exchanges whose assets are cached.
        pub exchanges_max: usize = 1000,
        /// Cooldown of an endpoint that contradicts another one.
        pub contradiction_cooldown: Duration = Duration::from_secs(600),
    }
}
