//! Every limit of the EVM source, by name.

use std::time::Duration;

use crate::domain::defaults;

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EvmLimits {
        /// Transactions of one reader that are in flight or wait for delivery.
        pub run_ahead_max: usize = 400,
        /// The same at the start of a background read.
        pub run_ahead_first: usize = 50,
        /// Transactions per chunk; a block with more stays whole.
        pub chunk_max: usize = 100,
        /// Transactions of chunks that are ready together and delivered as one.
        pub joined_max: usize = 200,
        /// Transactions of the first chunk, small for early first rows.
        pub chunk_first: usize = 20,
        /// Blocks of the first log query, its maximum if longer ones were answered recently, and
        /// blocks of the largest query.
        pub log_blocks_first: u64 = 10_000,
        pub log_blocks_known: u64 = 160_000,
        pub log_blocks_max: u64 = 1 << 40,
        /// Logs per answer below which the next query covers more blocks.
        pub log_few: usize = 500,
        /// Logs in an answer from which it may have been cut without an error: its range is also
        /// queried in two parts.
        pub log_many: usize = 100,
        /// Smaller queries after which a size that was too large is tried again, at first and at
        /// most; doubles each time.
        pub log_queries_small: u32 = 16,
        pub log_queries_small_max: u32 = 1_024,
        /// Log queries per window if an endpoint takes no larger ones.
        pub log_queries_max: usize = 64,
        /// Blocks below an endpoint's newest known head from which queries need no head in the same
        /// request: closer to it another server behind the address may lag. Data that is not found
        /// this far below the head counts as gone.
        pub log_head_margin: u64 = 4_096,
        /// Gateway windows that one reader reads concurrently, after the first.
        pub portal_windows_max: usize = 3,
        /// Candidates of one block from which they are fetched by block.
        pub block_candidates_min: usize = 2,
        /// Wallets per scan query, if the endpoint is not known to take fewer, and the minimum.
        pub scan_topics_max: usize = 1_000,
        pub scan_topics_min: usize = 8,
        /// Blocks below the head that a scan covers; wallets whose last scan is older are read
        /// themselves.
        pub scan_blocks_max: u64 = 4_096,
        /// Attempts of one scan, over all endpoints and sizes.
        pub scan_attempts_max: u32 = 12,
        /// Attempts for a transaction that no node returns, and the pause before each, times its
        /// number.
        pub missing_tries_max: u32 = 6,
        pub missing_pause: Duration = Duration::from_millis(500),
        /// How long a failed way is tried only after the others, and the maximum after repeated
        /// failures.
        pub list_cooldown_first: Duration = Duration::from_secs(2),
        pub list_cooldown_max: Duration = Duration::from_secs(300),
        /// The most listed transactions per read that no endpoint returns.
        pub missing_max: usize = 64,
        /// Old states and traces that no endpoint had are not queried again within this time.
        pub state_cooldown: Duration = Duration::from_secs(600),
        /// Cooldown of an endpoint that contradicts another one.
        pub contradiction_cooldown: Duration = Duration::from_secs(600),
    }
}
