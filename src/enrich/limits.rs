//! Every limit of the stage, by name.

use std::time::Duration;

use crate::domain::defaults;

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EnrichLimits {
        /// Longest wait for the symbols of a chunk's new tokens, and for names of its pools.
        pub token_wait_max: Duration = Duration::from_secs(3),
        /// Longest wait for decimals, on which amounts depend, and the pause between its attempts.
        pub decimals_wait_max: Duration = Duration::from_secs(30),
        pub decimals_pause: Duration = Duration::from_secs(1),
        /// Time after which a token without a symbol is looked up again.
        pub token_retry_after: Duration = Duration::from_secs(3600),
        /// Names of pools that are kept in memory.
        pub pool_names_max: usize = 4_096,
        /// Longest wait of a chunk for the prices that its rows need; a row that lacks one then is
        /// stored without a value, which the value backfill adds.
        pub value_wait_max: Duration = Duration::from_secs(3),
        /// After a timeout the next chunks of the chain wait for no prices for this long.
        pub values_pause: Duration = Duration::from_secs(30),
        /// Longest wait of the value backfill for prices or a transaction.
        pub values_ask_max: Duration = Duration::from_secs(60),
        /// Stored rows that are searched for the value of a token.
        pub values_rows_around_max: usize = 200,
    }
}
