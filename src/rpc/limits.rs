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
        /// Longest answer to a batch, after decompression.
        pub batch_body_bytes_max: usize = 64 << 20,
        /// All attempts of one call together, without the time in the queue. Also the longest wait
        /// while no endpoint answers any request.
        pub retry_time_max: Duration = Duration::from_secs(30),
        pub attempts_max: u32 = 12,
        /// Failed attempts after which a call gives up the endpoint that it names, if another one
        /// can serve the call instead.
        pub replaceable_failures_max: u32 = 3,
        /// Longest cooldown of that endpoint that such a call waits for: after this many failures,
        /// and before.
        pub replaceable_wait: Duration = Duration::from_secs(1),
        pub replaceable_first_wait: Duration = Duration::from_secs(5),
        pub backoff_min: Duration = Duration::from_millis(100),
        pub backoff_max: Duration = Duration::from_secs(10),
        /// Longest `Retry-After` that is respected on one endpoint.
        pub retry_after_max: Duration = Duration::from_secs(30),
        /// Consecutive failures after which an endpoint goes on cooldown.
        pub breaker_failures: u32 = 8,
        pub breaker_cooldown: Duration = Duration::from_secs(5),
        /// An endpoint's concurrent requests where the configuration has no number.
        pub concurrency_default: usize = 8,
        /// An endpoint's calls per batch where the configuration has no number.
        pub batch_default: usize = 10,
        /// Waiting calls in the queue of one chain.
        pub waiting_max: usize = 100_000,
        /// One of this many permits goes to background work while both kinds wait.
        pub background_share: u32 = 8,
        /// A request is hedged with another endpoint after four times its usual latency, but not
        /// before this; for an endpoint without a measurement the usual latency is that of the
        /// fastest.
        pub hedge_after_min: Duration = Duration::from_millis(500),
        /// The same where the answer should come from another endpoint than the last one.
        pub hedge_other_after_min: Duration = Duration::from_secs(2),
        /// A latency counts as unknown after this long without an answer.
        pub remeasure_after: Duration = Duration::from_secs(30),
        /// How long a rate limit named by a refusal, or a smaller batch, stays in force.
        pub named_rate_age: Duration = Duration::from_secs(600),
        /// One of this many requests may be hedged, and so many at once after a quiet time.
        pub hedge_share: u32 = 10,
        /// A granted permit that its waiter does not take within this time passes to the next
        /// waiter.
        pub turn_wait_max: Duration = Duration::from_millis(500),
        /// Separate answers after which a method counts as unsupported by an endpoint.
        pub unsupported_answers: u32 = 3,
        /// The same for refusals for lack of a key, a plan or a quota.
        pub denied_answers: u32 = 4,
        /// Pause after the first such answer; each further one makes it four times as long.
        pub refusal_pause_min: Duration = Duration::from_millis(250),
        /// Pause after enough such answers; each further one doubles it.
        pub refusal_cooldown_min: Duration = Duration::from_secs(60),
        pub refusal_cooldown_max: Duration = Duration::from_secs(3600),
        /// How long other endpoints are preferred for a method for which this one lacked old data.
        pub lacking_cooldown: Duration = Duration::from_secs(60),
        /// Rounds over all endpoints while they answer with unknown errors, or fail on one look-up.
        pub unknown_rounds: u32 = 4,
    }
}
