//! Every limit of the stage, by name.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnrichLimits {
    /// Longest wait for the symbols of a chunk's new tokens.
    pub token_wait_max: Duration,
    /// The same where an amount depends on them, and the pause between its attempts.
    pub decimals_wait_max: Duration,
    pub decimals_pause: Duration,
    /// A token without a symbol is asked for again after this long.
    pub token_retry_after: Duration,
    /// Names of pools that are kept in memory.
    pub pool_names_max: usize,
    /// Longest wait of a chunk for the prices that its rows need; what lacks one then is stored
    /// without a value, and asked for on the side.
    pub value_wait_max: Duration,
    /// After a wait in vain the next chunks of the chain do not wait for this long.
    pub values_rest: Duration,
    /// Longest wait for a price or a transaction that is asked for on the side.
    pub values_ask_max: Duration,
    /// Stored rows that are looked at for what a token was worth.
    pub values_rows_around_max: usize,
}

impl Default for EnrichLimits {
    fn default() -> Self {
        Self {
            token_wait_max: Duration::from_secs(3),
            decimals_wait_max: Duration::from_secs(30),
            decimals_pause: Duration::from_secs(1),
            token_retry_after: Duration::from_secs(3600),
            pool_names_max: 4_096,
            value_wait_max: Duration::from_secs(3),
            values_rest: Duration::from_secs(30),
            values_ask_max: Duration::from_secs(60),
            values_rows_around_max: 200,
        }
    }
}
