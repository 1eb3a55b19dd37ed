//! Every limit of the pool, by name.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolLimits {
    /// One request, from the first byte sent to the last byte read.
    pub request_wait_max: Duration,
    /// Longest answer to one call, after decompression.
    pub body_bytes_max: usize,
    /// Longest answer to a batch.
    pub batch_body_bytes_max: usize,
    /// All attempts of one call together, without the time in the queue. Also the longest wait
    /// while no endpoint answers any request.
    pub retry_time_max: Duration,
    pub attempts_max: u32,
    pub backoff_min: Duration,
    pub backoff_max: Duration,
    /// Longest `Retry-After` that is respected on one endpoint.
    pub retry_after_max: Duration,
    /// Consecutive failures after which an endpoint goes on cooldown.
    pub breaker_failures: u32,
    pub breaker_rest: Duration,
    /// An endpoint's concurrent requests where the configuration has no number.
    pub concurrency_default: usize,
    /// An endpoint's calls per batch where the configuration has no number.
    pub batch_default: usize,
    /// Waiting calls in the queue of one chain.
    pub waiting_max: usize,
    /// One of this many permits goes to background work while both kinds wait.
    pub background_share: u32,
    /// A request is hedged with another endpoint after four times its usual latency, but not before
    /// this; for an endpoint without a measurement the usual latency is that of the fastest.
    pub hedge_after_min: Duration,
    /// The same where another endpoint than the last one should answer.
    pub hedge_other_after_min: Duration,
    /// A latency counts as unknown after this long without an answer.
    pub remeasure_after: Duration,
    /// A rate that a refusal names is kept to for so long.
    pub named_rate_age: Duration,
    /// One of this many requests may be hedged, and so many at once after a quiet time.
    pub hedge_share: u32,
    /// A permit that its waiter does not take for so long passes to the next one.
    pub turn_wait_max: Duration,
    /// Separate answers after which a method counts as unsupported by an endpoint.
    pub unsupported_answers: u32,
    /// The same for a missing key, plan or quota.
    pub denied_answers: u32,
    /// Pause after the first of them, four times as long after each further one.
    pub refusal_pause_min: Duration,
    /// Pause once there are enough, twice as long after each further one.
    pub refusal_rest_min: Duration,
    pub refusal_rest_max: Duration,
    /// Other endpoints are preferred for so long for a method that lacked old data.
    pub lacking_rest: Duration,
    /// Rounds over all endpoints while they answer with unknown errors.
    pub unknown_rounds: u32,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            request_wait_max: Duration::from_secs(20),
            body_bytes_max: 16 << 20,
            batch_body_bytes_max: 64 << 20,
            retry_time_max: Duration::from_secs(30),
            attempts_max: 12,
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(10),
            retry_after_max: Duration::from_secs(30),
            breaker_failures: 8,
            breaker_rest: Duration::from_secs(5),
            concurrency_default: 8,
            batch_default: 10,
            waiting_max: 100_000,
            background_share: 8,
            hedge_after_min: Duration::from_millis(500),
            hedge_other_after_min: Duration::from_secs(2),
            remeasure_after: Duration::from_secs(30),
            named_rate_age: Duration::from_secs(600),
            hedge_share: 10,
            turn_wait_max: Duration::from_millis(500),
            unsupported_answers: 3,
            denied_answers: 4,
            refusal_pause_min: Duration::from_millis(250),
            refusal_rest_min: Duration::from_secs(60),
            refusal_rest_max: Duration::from_secs(3600),
            lacking_rest: Duration::from_secs(60),
            unknown_rounds: 4,
        }
    }
}
