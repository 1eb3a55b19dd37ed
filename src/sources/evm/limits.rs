//! Every limit of the EVM source, by name.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvmLimits {
    /// Transactions of one reader that are asked for or wait to be delivered.
    pub run_ahead_max: usize,
    /// The same at the start of a background read.
    pub run_ahead_first: usize,
    /// Transactions of one chunk, but for a block that holds more.
    pub chunk_max: usize,
    /// Transactions of chunks that are ready at the same time and delivered as one.
    pub joined_max: usize,
    /// The first chunk, so that the first rows come early.
    pub chunk_first: usize,
    /// Blocks of the first log query, the same at most where longer ones were answered of late, and of
    /// the largest.
    pub log_blocks_first: u64,
    pub log_blocks_known: u64,
    pub log_blocks_max: u64,
    /// Logs in an answer below which the next query is larger.
    pub log_few: usize,
    /// Queries of a smaller size after which a size that was too much is tried again, at first and at
    /// most: twice as many after each time.
    pub log_queries_small: u32,
    pub log_queries_small_max: u32,
    /// Log queries of one window where an endpoint takes no larger ones.
    pub log_queries_max: usize,
    /// Blocks below an endpoint's newest known head that it is asked about without its head in the same
    /// request: another server behind its address may not have come so far. As far below the head
    /// what is not found is taken to be gone.
    pub log_head_margin: u64,
    /// Windows of a gateway that one reader reads at once, after the first.
    pub portal_windows_max: usize,
    /// Wanted transactions of one block from which on they are requested by the block.
    pub block_candidates_min: usize,
    /// Wallets of one query of a scan, where the endpoint is not known to take fewer, and the fewest
    /// that are tried.
    pub scan_topics_max: usize,
    pub scan_topics_min: usize,
    /// Blocks below the head that a scan looks at; a wallet that was not seen for longer reads for
    /// itself.
    pub scan_blocks_max: u64,
    /// Attempts of one scan, over all endpoints and sizes.
    pub scan_attempts_max: u32,
    /// Tries for a transaction that no node gives, and the pause before each, times its number.
    pub missing_tries_max: u32,
    pub missing_pause: Duration,
    /// A way to find transactions that failed comes after the others this long, and at most so
    /// long after more failures in a row.
    pub list_rest_first: Duration,
    pub list_rest: Duration,
    /// Listed transactions of one read that no endpoint gives.
    pub missing_max: usize,
    /// Old states and traces that no endpoint had are not requested again so soon.
    pub state_rest: Duration,
    /// Cooldown of an endpoint that contradicts another one.
    pub bench: Duration,
}

impl Default for EvmLimits {
    fn default() -> Self {
        Self {
            run_ahead_max: 400,
            run_ahead_first: 50,
            chunk_max: 100,
            joined_max: 200,
            chunk_first: 20,
            log_blocks_first: 10_000,
            log_blocks_known: 160_000,
            log_blocks_max: 1 << 40,
            log_few: 500,
            log_queries_small: 16,
            log_queries_small_max: 1_024,
            log_queries_max: 64,
            log_head_margin: 4_096,
            portal_windows_max: 3,
            block_candidates_min: 2,
            scan_topics_max: 1_000,
            scan_topics_min: 8,
            scan_blocks_max: 4_096,
            scan_attempts_max: 12,
            missing_tries_max: 6,
            missing_pause: Duration::from_millis(500),
            list_rest_first: Duration::from_secs(2),
            list_rest: Duration::from_secs(300),
            missing_max: 64,
            state_rest: Duration::from_secs(600),
            bench: Duration::from_secs(600),
        }
    }
}
