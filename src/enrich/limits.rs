//! Every limit of the stage, by name.

use std::time::Duration;

use crate::domain::defaults;

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct EnrichLimits {
        /// Longest wait for the symbols of a chunk's new tokens.
        pub token_wait_max: Duration = Duration::from_secs(3),
        /// The same where an amount depends on them, and the pause between its attempts.
        pub decimals_wait_max: Duration = Duration::from_secs(30),
        pub decimals_pause: Duration = Duration::from_secs(1),
        /// A token without a symbol is asked for again after this long.
        pub token_retry_after: Duration = Duration::from_secs(3600),
        /// Names of pools that are kept in memory.
        pub pool_names_max: usize = 4_096,
        /// Longest wait of a chunk for the prices that its rows need; what lacks one then is stored
        /// without a value, and asked for on the side.
        pub value_wait_max: Duration = Duration::from_secs(3),
        /// After a wait in vain the next chunks of the chain do not wait for this long.
        pub values_rest: Duration = Duration::from_secs(30),
        /// Longest wait for a price or a transaction that is asked for on the side.
        pub values_ask_max: Duration = Duration::from_secs(60),
        /// Stored rows that are looked at for what a token was worth.
        pub values_rows_around_max: usize = 200,
    }
}
