//! Every limit of the Tron source, by name.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TronLimits {
    /// Transactions of one reader that are asked for or wait to be delivered.
    pub run_ahead_max: usize,
    /// The same for all readers together.
    pub run_ahead_total_max: usize,
    /// Transactions asked for at once by a reader that has delivered none yet.
    pub run_ahead_min: usize,
    /// Entries listed ahead of the transactions.
    pub list_ahead_max: usize,
    /// Transactions of one chunk, but for a block that holds more.
    pub chunk_max: usize,
    /// Entries passed over after which one is looked at only to learn how far down they are.
    pub passed_max: usize,
    /// Tries for a listed transaction that no node gives.
    pub missing_tries_max: u32,
    /// Pause before such a try, times its number.
    pub missing_pause: Duration,
    /// Tries for answers of JSON-RPC that do not fit what was asked.
    pub unfit_tries_max: u32,
    /// Answers in a row of a list that lack what it held before.
    pub misses_max: u32,
    /// Blocks of one search for events; java-tron allows 5,000 where nothing else is set.
    pub logs_range_max: u64,
    /// Searches for events in one request.
    pub logs_batch_max: usize,
    /// Requests for events under way.
    pub logs_ahead_max: usize,
    /// Tokens asked about in one request: two calls each; java-tron takes 100 in one.
    pub tokens_batch: usize,
    /// Tokens asked about at once where each takes requests of its own.
    pub tokens_parallel: usize,
    /// After this, what is known of tokens is told.
    pub tokens_wait: Duration,
    /// Pairs of the protocol's exchanges that are remembered.
    pub exchanges_max: usize,
    /// Rest of an endpoint that tells what another one contradicts.
    pub bench: Duration,
}

impl Default for TronLimits {
    fn default() -> Self {
        Self {
            run_ahead_max: 400,
            run_ahead_total_max: 4000,
            run_ahead_min: 10,
            list_ahead_max: 1000,
            chunk_max: 200,
            passed_max: 2000,
            missing_tries_max: 6,
            missing_pause: Duration::from_millis(500),
            unfit_tries_max: 4,
            misses_max: 3,
            logs_range_max: 5000,
            logs_batch_max: 10,
            logs_ahead_max: 4,
            tokens_batch: 40,
            tokens_parallel: 8,
            tokens_wait: Duration::from_millis(2_500),
            exchanges_max: 1000,
            bench: Duration::from_secs(600),
        }
    }
}
