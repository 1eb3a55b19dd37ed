//! Every limit of the EVM source, by name.

use std::time::Duration;

use crate::domain::defaults;

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EvmLimits {
        /// Transactions of one reader that are asked for or wait to be delivered.
        pub run_ahead_max: usize = 400,
        /// The same at the start of a background read.
        pub run_ahead_first: usize = 50,
        /// Transactions of one chunk, but for a block that holds more.
        pub chunk_max: usize = 100,
        /// Transactions of chunks that are ready at the same time and delivered as one.
        pub joined_max: usize = 200,
        /// The first chunk, so that the first rows come early.
        pub chunk_first: usize = 20,
        /// Blocks of the first log query, the same at most where longer ones were answered of late, and of
        /// the largest.
        pub log_blocks_first: u64 = 10_000,
        pub log_blocks_known: u64 = 160_000,
        pub log_blocks_max: u64 = 1 << 40,
        /// Logs in an answer below which the next query is larger.
        pub log_few: usize = 500,
        /// Queries of a smaller size after which a size that was too much is tried again, at first and at
        /// most: twice as many after each time.
        pub log_queries_small: u32 = 16,
        pub log_queries_small_max: u32 = 1_024,
        /// Log queries of one window where an endpoint takes no larger ones.
        pub log_queries_max: usize = 64,
        /// Blocks below an endpoint's newest known head that it is asked about without its head in the same
        /// request: another server behind its address may not have come so far. As far below the head
        /// what is not found is taken to be gone.
        pub log_head_margin: u64 = 4_096,
        /// Windows of a gateway that one reader reads at once, after the first.
        pub portal_windows_max: usize = 3,
        /// Wanted transactions of one block from which on they are requested by the block.
        pub block_candidates_min: usize = 2,
        /// Wallets of one query of a scan, where the endpoint is not known to take fewer, and the fewest
        /// that are tried.
        pub scan_topics_max: usize = 1_000,
        pub scan_topics_min: usize = 8,
        /// Blocks below the head that a scan looks at; a wallet that was not seen for longer reads for
        /// itself.
        pub scan_blocks_max: u64 = 4_096,
        /// Attempts of one scan, over all endpoints and sizes.
        pub scan_attempts_max: u32 = 12,
        /// Tries for a transaction that no node gives, and the pause before each, times its number.
        pub missing_tries_max: u32 = 6,
        pub missing_pause: Duration = Duration::from_millis(500),
        /// A way to find transactions that failed comes after the others this long, and at most so
        /// long after more failures in a row.
        pub list_rest_first: Duration = Duration::from_secs(2),
        pub list_rest: Duration = Duration::from_secs(300),
        /// Listed transactions of one read that no endpoint gives.
        pub missing_max: usize = 64,
        /// Old states and traces that no endpoint had are not requested again so soon.
        pub state_rest: Duration = Duration::from_secs(600),
        /// Cooldown of an endpoint that contradicts another one.
        pub bench: Duration = Duration::from_secs(600),
    }
}
