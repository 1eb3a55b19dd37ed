//! Every limit of the pool, by name.

use std::time::Duration;

use crate::domain::defaults;

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct PoolLimits {
        /// One request, from the first byte sent to the last byte read.
        pub request_wait_max: Duration = Duration::from_secs(20),
        /// Longest answer to one call, after decompression.
        pub body_bytes_max: usize = 16 << 20,
        /// Longest answer to a batch.
        pub batch_body_bytes_max: usize = 64 << 20,
        /// All attempts of one call together, without the time in the queue. Also the longest wait
        /// while no endpoint answers any request.
        pub retry_time_max: Duration = Duration::from_secs(30),
        pub attempts_max: u32 = 12,
        /// Failed attempts of a call after which it gives up an endpoint that it names, next to others
        /// that may be asked instead.
        pub replaceable_failures_max: u32 = 3,
        /// The longest cooldown of it that is waited for: after so many, and before.
        pub replaceable_wait: Duration = Duration::from_secs(1),
        pub replaceable_first_wait: Duration = Duration::from_secs(5),
        pub backoff_min: Duration = Duration::from_millis(100),
        pub backoff_max: Duration = Duration::from_secs(10),
        /// Longest `Retry-After` that is respected on one endpoint.
        pub retry_after_max: Duration = Duration::from_secs(30),
        /// Consecutive failures after which an endpoint goes on cooldown.
        pub breaker_failures: u32 = 8,
        pub breaker_rest: Duration = Duration::from_secs(5),
        /// An endpoint's concurrent requests where the configuration has no number.
        pub concurrency_default: usize = 8,
        /// An endpoint's calls per batch where the configuration has no number.
        pub batch_default: usize = 10,
        /// Waiting calls in the queue of one chain.
        pub waiting_max: usize = 100_000,
        /// One of this many permits goes to background work while both kinds wait.
        pub background_share: u32 = 8,
        /// A request is hedged with another endpoint after four times its usual latency, but not before
        /// this; for an endpoint without a measurement the usual latency is that of the fastest.
        pub hedge_after_min: Duration = Duration::from_millis(500),
        /// The same where another endpoint than the last one should answer.
        pub hedge_other_after_min: Duration = Duration::from_secs(2),
        /// A latency counts as unknown after this long without an answer.
        pub remeasure_after: Duration = Duration::from_secs(30),
        /// A rate that a refusal names is kept to for so long, and so is a smaller batch.
        pub named_rate_age: Duration = Duration::from_secs(600),
        /// One of this many requests may be hedged, and so many at once after a quiet time.
        pub hedge_share: u32 = 10,
        /// A permit that its waiter does not take for so long passes to the next one.
        pub turn_wait_max: Duration = Duration::from_millis(500),
        /// Separate answers after which a method counts as unsupported by an endpoint.
        pub unsupported_answers: u32 = 3,
        /// The same for a missing key, plan or quota.
        pub denied_answers: u32 = 4,
        /// Pause after the first of them, four times as long after each further one.
        pub refusal_pause_min: Duration = Duration::from_millis(250),
        /// Pause once there are enough, twice as long after each further one.
        pub refusal_rest_min: Duration = Duration::from_secs(60),
        pub refusal_rest_max: Duration = Duration::from_secs(3600),
        /// Other endpoints are preferred for so long for a method that lacked old data.
        pub lacking_rest: Duration = Duration::from_secs(60),
        /// Rounds over all endpoints while they answer with unknown errors.
        pub unknown_rounds: u32 = 4,
    }
}
