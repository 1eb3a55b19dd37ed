//! One endpoint: its configuration, its observed state, and whether it may be used now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::limits::PoolLimits;
use super::named_rate::named_rate;
use super::rate::{RateAccount, RateShare};
use super::refusals::Refusals;
use super::secret::{SecretText, SecretUrl};
use super::selection::{Offer, PRESUMED_LATENCY};

/// Number of an endpoint in its pool, by configuration order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId(pub(crate) usize);

/// Configuration of an endpoint; `None` takes the pool's default.
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    pub url: SecretUrl,
    /// Calls in 1,000 seconds, so that slow rates remain integers; a batch costs as many as it
    /// contains. `None`: only the node's own limit.
    pub rate_millihertz: Option<u32>,
    /// A rate limit that endpoints of several pools share.
    pub rate_account: Option<RateAccount>,
    pub share: RateShare,
    pub concurrency: Option<usize>,
    pub batch: Option<usize>,
    pub headers: Vec<(String, SecretText)>,
}

impl EndpointConfig {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: SecretUrl::new(url),
            rate_millihertz: None,
            rate_account: None,
            share: RateShare::default(),
            concurrency: None,
            batch: None,
            headers: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointStatus {
    pub id: EndpointId,
    /// Scheme and host.
    pub label: String,
    pub resting: bool,
    pub in_flight: usize,
    pub batch: usize,
    pub latency: Duration,
    pub last_error: Option<String>,
    /// Time since the last useful answer.
    pub answered_ago: Option<Duration>,
    pub worked: Vec<String>,
    pub not_offered: Vec<String>,
    /// Per method: calls sent and calls that failed.
    pub calls: BTreeMap<String, CallCounts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallCounts {
    pub sent: u64,
    pub failed: u64,
}

/// How far requests may run ahead of the rate.
const BURST: Duration = Duration::from_millis(100);
/// Consecutive answers that report another chain, after which an endpoint no longer counts among
/// those that may serve a call.
const WRONG_CHAIN_ANSWERS: u32 = 2;
/// A cooldown longer than any wait, for an endpoint that reports another chain.
const WRONG_CHAIN_REST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Per cent of a rate named by refusals that is used: requests are not evenly spaced.
const NAMED_SHARE: u32 = 85;

#[derive(Debug, Clone, Copy)]
struct NamedRate {
    millihertz: u32,
    /// Number of refusals, those of one burst counted once.
    refusals: u32,
    until: Instant,
}

/// An endpoint that reported another chain: it serves only the chain query.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrongChain {
    method: &'static str,
    /// Consecutive answers that report another chain.
    answers: u32,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    began: Instant,
    /// When the booking expires: the caller may have stopped waiting for the permit.
    until: Instant,
}

#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) config: EndpointConfig,
    pub(super) label: String,
    /// Texts that its answers must not reveal, longest first.
    pub(super) secrets: Arc<[String]>,
    concurrency: usize,
    /// Current calls per request: below `batch_max` after a refusal or a timeout, until
    /// `reduced_until`.
    pub(super) batch: usize,
    batch_max: usize,
    reduced_until: Instant,
    leases: BTreeMap<u64, Lease>,
    next_lease: u64,
    rate: RateAccount,
    cooldown_ends: Instant,
    pub(super) wrong_chain: Option<WrongChain>,
    /// Until then the endpoint serves only calls that name it.
    excluded_until: Instant,
    excluded_since: Option<Instant>,
    /// Start of the first cooldown since the last success.
    unavailable_since: Option<Instant>,
    /// Consecutive failures; from `PoolLimits::breaker_failures` on it gets one request at a time.
    failures: u32,
    slow_downs: u32,
    slowed_at: Instant,
    named_rate: Option<NamedRate>,
    latency: Duration,
    measured_at: Instant,
    /// The last error that kept it from use.
    pub(super) last_error: Option<String>,
    pub(super) answered_at: Option<Instant>,
    pub(super) refusals: Refusals,
    pub(super) limits: PoolLimits,
    calls: BTreeMap<String, CallCounts>,
}

fn secrets(config: &EndpointConfig) -> Arc<[String]> {
    let mut all = config.url.secrets();
    all.extend(config.headers.iter().flat_map(|(_, value)| value.secrets()));
    all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    all.into()
}

impl Endpoint {
    pub(super) fn new(config: EndpointConfig, limits: &PoolLimits) -> Self {
        let now = Instant::now();
        let batch_max = config.batch.unwrap_or(limits.batch_default).max(1);
        Self {
            label: config.url.label(),
            secrets: secrets(&config),
            concurrency: config.concurrency.unwrap_or(limits.concurrency_default).max(1),
            batch: batch_max,
            batch_max,
            reduced_until: now,
            rate: config.rate_account.clone().unwrap_or_default(),
            config,
            leases: BTreeMap::new(),
            next_lease: 0,
            cooldown_ends: now,
            wrong_chain: None,
            excluded_until: now,
            excluded_since: None,
            unavailable_since: None,
            failures: 0,
            slow_downs: 0,
            slowed_at: now,
            named_rate: None,
            latency: Duration::ZERO,
            measured_at: now,
            last_error: None,
            answered_at: None,
            refusals: Refusals::default(),
            limits: limits.clone(),
            calls: BTreeMap::new(),
        }
    }

    /// `Ok`: a request may be sent now. `Err`: not before this time, unless a request in flight
    /// ends earlier.
    pub(super) fn ready(&self, now: Instant) -> Result<(), Instant> {
        let ends = self.active_leases(now).map(|lease| lease.until);
        let full = (self.active_leases(now).count() >= self.allowed_concurrency())
            .then(|| ends.min())
            .flatten();
        let at = self.free_at(now).max(full.unwrap_or(now));
        if at <= now { Ok(()) } else { Err(at) }
    }

    /// The next time at which the endpoint may serve more than now.
    pub(super) fn next_change(&self, now: Instant) -> Option<Instant> {
        self.ready(now).err().into_iter().chain(self.refusals.next_end(now)).min()
    }

    fn free_at(&self, now: Instant) -> Instant {
        // A provider that names its rate may suspend clients that exceed it slightly.
        let burst = if self.rate_by_refusals(now).is_some() { Duration::ZERO } else { BURST };
        self.cooldown_until(None).max(self.rate.free_at(burst, now))
    }

    /// When the cooldown for a method ends; without one, that of the endpoint as a whole.
    fn cooldown_until(&self, method: Option<&str>) -> Instant {
        let until = self
            .refusals
            .until(method)
            .map_or(self.cooldown_ends, |until| until.max(self.cooldown_ends));
        let is_disabled = method.is_some_and(|method| self.is_disabled(method));
        if is_disabled { until + WRONG_CHAIN_REST } else { until }
    }

    fn is_disabled(&self, method: &str) -> bool {
        self.wrong_chain.is_some_and(|wrong| wrong.method != method)
    }

    /// Whether two answers reported another chain: data that only this endpoint offers is then
    /// missing.
    pub(super) fn is_of_another_chain(&self) -> bool {
        self.wrong_chain.is_some_and(|wrong| wrong.answers >= WRONG_CHAIN_ANSWERS)
    }

    fn active_leases(&self, now: Instant) -> impl Iterator<Item = &Lease> {
        self.leases.values().filter(move |lease| lease.until > now)
    }

    fn allowed_concurrency(&self) -> usize {
        if self.failures >= self.limits.breaker_failures { 1 } else { self.concurrency }
    }

    pub(super) fn offer(&self, at: usize, method: &str, calls: usize, now: Instant) -> Offer {
        let youngest = self.active_leases(now).map(|lease| lease.began).max();
        let doubts = u32::from(self.refusals.is_doubtful(method, now));
        let free_at = self.free_at(now).max(self.cooldown_until(Some(method)));
        Offer {
            at,
            failures: self.failures.max(doubts),
            typical_latency: self.typical_latency(now),
            in_flight: self.active_leases(now).count(),
            concurrency: self.allowed_concurrency(),
            youngest: youngest.map_or(Duration::ZERO, |began| now.saturating_duration_since(began)),
            free_in: free_at.saturating_duration_since(now),
            is_cooling_down: self.is_cooling_down(Some(method), now),
            spacing: self.cost(calls.min(self.batch)),
        }
    }

    /// Whether a cooldown applies to a method, or to the endpoint as a whole.
    pub(super) fn is_cooling_down(&self, method: Option<&str>, now: Instant) -> bool {
        self.cooldown_until(method) > now
    }

    /// Whether the endpoint's cooldown makes it silent for longer than `wait_max`, counted from
    /// `since` or from its first cooldown after a success, whichever is later.
    pub(super) fn is_silent_too_long(
        &self,
        method: &str,
        since: Instant,
        wait_max: Duration,
        now: Instant,
    ) -> bool {
        let since = self.unavailable_since.unwrap_or(now).max(since);
        let until = self.cooldown_until(Some(method));
        until > now && until.saturating_duration_since(since) > wait_max
    }

    pub(super) fn offers(&self, method: &str, now: Instant) -> bool {
        !self.refusals.is_absent(method, now)
    }

    /// Whether the endpoint may serve the method: not disabled, unsupported or refused now.
    pub(super) fn serves(&self, method: &str, now: Instant) -> bool {
        !self.is_disabled(method)
            && self.offers(method, now)
            && self.refusals.until(Some(method)).is_none_or(|at| at <= now)
    }

    /// Books a request of up to `wanted` calls; returns its number and how many calls it may
    /// contain.
    pub(super) fn begin(&mut self, wanted: usize, now: Instant, until: Instant) -> (u64, usize) {
        if now >= self.reduced_until {
            self.batch = self.batch_max;
        }
        let calls = wanted.min(self.batch).max(1);
        self.leases.retain(|_, lease| lease.until > now);
        self.next_lease += 1;
        self.leases.insert(self.next_lease, Lease { began: now, until });
        self.rate.pay(self.cost(calls), now);
        (self.next_lease, calls)
    }

    /// Calls per 1,000 seconds that recent refusals named; a single refusal does not count, as it
    /// may be accidental.
    fn rate_by_refusals(&self, now: Instant) -> Option<u32> {
        let named = self.named_rate.filter(|named| named.refusals > 1 && now < named.until);
        named.map(|named| named.millihertz)
    }

    /// Calls that fit into one request by the rate that recent refusals named.
    pub(super) fn calls_at_once(&self, now: Instant) -> Option<usize> {
        usize::try_from(self.rate_by_refusals(now)? / 1_000).ok().map(|calls| calls.max(1))
    }

    fn cost(&self, calls: usize) -> Duration {
        let count = u32::try_from(calls).unwrap_or(u32::MAX);
        let count = count.saturating_mul(self.config.share.processes());
        let named = self.rate_by_refusals(Instant::now()).map(|rate| rate * NAMED_SHARE / 100);
        let rate = self.config.rate_millihertz.into_iter().chain(named).min();
        let rate = rate.filter(|rate| *rate > 0);
        rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1000) * count / rate)
    }

    /// Number of requests that rate and concurrency allow within one typical latency.
    pub(super) fn parallel(&self, now: Instant) -> usize {
        let usual = self.typical_latency(now).unwrap_or(PRESUMED_LATENCY);
        let cost = self.cost(1).as_micros();
        let by_rate = usual.as_micros().checked_div(cost).map_or(u128::MAX, |count| count + 1);
        self.allowed_concurrency().min(usize::try_from(by_rate).unwrap_or(usize::MAX))
    }

    pub(super) fn extend(&mut self, lease: u64, now: Instant, to: Instant) -> bool {
        let lease = self.leases.get_mut(&lease).filter(|lease| lease.until > now);
        lease.map(|lease| *lease = Lease { began: now, until: to }).is_some()
    }

    pub(super) fn end(&mut self, lease: u64) {
        self.leases.remove(&lease);
    }

    pub(super) fn refund(&mut self, calls: usize) {
        self.rate.refund(self.cost(calls));
    }

    pub(super) fn count(&mut self, method: &str, failed: bool) {
        let counts = self.calls.entry(method.to_owned()).or_default();
        counts.sent += 1;
        counts.failed += u64::from(failed);
    }

    pub(super) fn succeeded(&mut self, began: Instant, took: Duration) {
        self.failures = 0;
        self.answered_at = Some(Instant::now());
        self.record_latency(took);
        // An answer to a request that was sent before the slow-down does not end it.
        if began >= self.slowed_at {
            self.slow_downs = 0;
            self.unavailable_since = None;
        }
    }

    /// Typical latency; `None` if it was not measured recently.
    pub(super) fn typical_latency(&self, now: Instant) -> Option<Duration> {
        let is_old = now.saturating_duration_since(self.measured_at) > self.limits.remeasure_after;
        (!is_old && !self.latency.is_zero()).then_some(self.latency)
    }

    /// Records a latency. An increase counts sooner than a decrease, because results are delivered
    /// in order.
    fn record_latency(&mut self, took: Duration) {
        self.measured_at = Instant::now();
        self.latency = match self.latency {
            Duration::ZERO => took,
            known if took > known => (known + took) / 2,
            known => (known * 7 + took) / 8,
        };
    }

    /// Records that another endpoint answered first: this one's latency is above `after`.
    pub(super) fn record_overtaken(&mut self, after: Duration) {
        self.record_latency(self.latency.max(after * 2));
    }

    /// Records a failure; consecutive ones start a cooldown.
    pub(super) fn failed(&mut self, error: String, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.last_error = Some(error);
        if self.failures >= self.limits.breaker_failures {
            self.cool_down(self.limits.breaker_cooldown, now);
        }
    }

    /// Whether it refuses for lack of a key or a quota, or has been unavailable for longer than
    /// calls are retried.
    pub(super) fn is_out(&self, method: &str, now: Instant) -> bool {
        let since = self.unavailable_since.map(|since| now.saturating_duration_since(since));
        let is_long = since.is_some_and(|since| since >= self.limits.retry_time_max);
        self.refusals.is_denied(method, now) || is_long && self.is_cooling_down(Some(method), now)
    }

    /// Records a request to slow down; returns the number of consecutive ones. Those for requests
    /// sent before the last slow-down belong to the same burst.
    pub(super) fn slowed_down(&mut self, error: String, began: Instant, now: Instant) -> u32 {
        if let Some(millihertz) = named_rate(&error) {
            self.record_named_rate(millihertz, began, now);
        }
        self.last_error = Some(error);
        if began >= self.slowed_at {
            self.slow_downs = self.slow_downs.saturating_add(1);
            self.slowed_at = now;
        }
        self.slow_downs
    }

    fn record_named_rate(&mut self, millihertz: u32, began: Instant, now: Instant) {
        let known = self.named_rate.filter(|known| now < known.until);
        let is_another = began >= self.slowed_at;
        let refusals = known.map_or(0, |known| known.refusals) + u32::from(is_another);
        let until = now + self.limits.named_rate_age;
        self.named_rate = Some(NamedRate { millihertz, refusals, until });
        if let Some(calls) = self.calls_at_once(now) {
            self.reduce_batch(calls, now);
        }
    }

    /// Records a timeout of a batch: batches become smaller for a while if the endpoint answered
    /// anything recently. A silent endpoint is not helped by smaller ones.
    pub(super) fn timed_out(&mut self, calls: usize, now: Instant) {
        let is_new = |at| now.saturating_duration_since(at) < self.limits.named_rate_age;
        if calls > 1 && self.answered_at.is_some_and(is_new) {
            self.reduce_batch(calls / 2, now);
        }
    }

    pub(super) fn reduce_batch(&mut self, calls: usize, now: Instant) {
        self.batch = self.batch.min(calls).max(1);
        self.reduced_until = now + self.limits.named_rate_age;
    }

    pub(super) fn cool_down(&mut self, pause: Duration, now: Instant) {
        self.unavailable_since.get_or_insert(now);
        self.cooldown_ends = self.cooldown_ends.max(now + pause);
    }

    /// Records that the endpoint reported another chain: until it is released it serves only the
    /// method `but_for`.
    pub(super) fn disable(&mut self, but_for: &'static str) {
        let known = self.wrong_chain.map_or(0, |wrong| wrong.answers);
        self.wrong_chain = Some(WrongChain { method: but_for, answers: known.saturating_add(1) });
    }

    pub(super) fn exclude(&mut self, pause: Duration, now: Instant) {
        self.excluded_since.get_or_insert(now);
        self.excluded_until = self.excluded_until.max(now + pause);
    }

    pub(super) fn is_excluded(&self, now: Instant) -> bool {
        self.excluded_until > now
    }

    /// Whether the endpoint has been excluded for less than `patience` and may still answer.
    pub(super) fn is_awaited(&self, patience: Duration, now: Instant) -> bool {
        let is_new = |since| now.saturating_duration_since(since) < patience;
        self.is_excluded(now) && self.excluded_since.is_some_and(is_new)
    }

    pub(super) fn release(&mut self, now: Instant) {
        self.cooldown_ends = now;
        self.wrong_chain = None;
        self.excluded_until = now;
        self.excluded_since = None;
        self.unavailable_since = None;
    }

    pub(super) fn is_unavailable(&self, now: Instant) -> bool {
        self.is_cooling_down(None, now) || self.is_excluded(now) || self.wrong_chain.is_some()
    }

    pub(super) fn failed_in_a_row(&self) -> u32 {
        self.failures.saturating_add(self.slow_downs)
    }

    /// Whether the endpoint takes requests now and answered the last one.
    pub(super) fn works(&self, now: Instant) -> bool {
        self.answered_at.is_some() && self.failed_in_a_row() == 0 && !self.is_unavailable(now)
    }

    pub(super) fn status(&self, id: EndpointId, now: Instant) -> EndpointStatus {
        EndpointStatus {
            id,
            label: self.label.clone(),
            resting: self.is_unavailable(now),
            in_flight: self.active_leases(now).count(),
            batch: self.batch,
            latency: self.latency,
            last_error: self.last_error.clone(),
            answered_ago: self.answered_at.map(|at| now.saturating_duration_since(at)),
            worked: self.refusals.methods_worked(),
            not_offered: self.refusals.methods(now),
            calls: self.calls.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_lease_counts_until_its_end_and_cannot_be_extended_after_it() {
        let limits = PoolLimits::default();
        let config = EndpointConfig { concurrency: Some(1), ..EndpointConfig::new("http://one") };
        let (mut endpoint, now) = (Endpoint::new(config, &limits), Instant::now());
        let (first, _) = endpoint.begin(1, now, now + SECOND);
        assert_eq!(endpoint.ready(now), Err(now + SECOND));
        assert!(endpoint.extend(first, now, now + SECOND * 2));
        assert_eq!(endpoint.ready(now + SECOND), Err(now + SECOND * 2));
        assert!(!endpoint.extend(first, now + SECOND * 2, now + SECOND * 9), "it is over");
        let (second, _) = endpoint.begin(1, now + SECOND * 2, now + SECOND * 3);
        endpoint.end(first);
        assert!(endpoint.ready(now + SECOND * 2).is_err(), "the end of a lapsed one ends no other");
        endpoint.end(second);
        assert_eq!(endpoint.ready(now + SECOND * 2), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_that_two_refusals_name_is_kept_to_for_a_while() {
        let limits = PoolLimits::default();
        let mut endpoint = Endpoint::new(EndpointConfig::new("http://one"), &limits);
        let refuse = |endpoint: &mut Endpoint| {
            let now = Instant::now();
            endpoint.slowed_down("exceeded the allowed_rps(1)".to_owned(), now, now);
            endpoint.begin(1, now, now + SECOND);
        };
        refuse(&mut endpoint);
        assert_eq!(endpoint.ready(Instant::now()), Ok(()));
        tokio::time::advance(SECOND).await;
        refuse(&mut endpoint);
        let now = Instant::now();
        assert_eq!(endpoint.batch, 1, "more at once are never let through");
        let next = endpoint.ready(now).unwrap_err();
        assert!(next > now + SECOND && next < now + SECOND * 2);
        tokio::time::advance(limits.named_rate_age).await;
        let now = Instant::now();
        endpoint.begin(1, now, now + SECOND);
        assert_eq!(endpoint.ready(now), Ok(()), "it may have been raised");
        assert_eq!(endpoint.batch, limits.batch_default);
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_was_refused_is_smaller_for_a_while() {
        let (limits, now) = (PoolLimits::default(), Instant::now());
        let mut endpoint = Endpoint::new(EndpointConfig::new("http://one"), &limits);
        endpoint.reduce_batch(4, now);
        endpoint.reduce_batch(0, now);
        let until = now + limits.named_rate_age;
        assert_eq!(endpoint.begin(100, until - SECOND, until).1, 1);
        assert_eq!(endpoint.begin(100, until, until + SECOND).1, limits.batch_default);
    }

    fn of_one_call_a_second() -> (Endpoint, Instant) {
        let config = EndpointConfig::new("http://one");
        let config = EndpointConfig { rate_millihertz: Some(1_000), ..config };
        (Endpoint::new(config, &PoolLimits::default()), Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn processes_that_share_a_store_divide_the_rate() {
        let (mut endpoint, now) = of_one_call_a_second();
        let share = endpoint.config.share.clone();
        share.set(3);
        endpoint.begin(1, now, now + SECOND * 9);
        assert_eq!(endpoint.ready(now), Err(now + SECOND * 3 - BURST));
        share.set(1);
        endpoint.begin(1, now + SECOND * 3, now + SECOND * 9);
        assert_eq!(endpoint.ready(now + SECOND * 3), Err(now + SECOND * 4 - BURST));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_booked_and_not_sent_is_given_back() {
        let (mut endpoint, now) = of_one_call_a_second();
        assert_eq!(endpoint.begin(4, now, now + SECOND).1, 4);
        assert_eq!(endpoint.ready(now), Err(now + SECOND * 4 - BURST));
        endpoint.refund(3);
        assert_eq!(endpoint.ready(now), Err(now + SECOND - BURST));
    }
}
