//! One endpoint: what is configured, what was learned of it, and whether it may be asked now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::limits::PoolLimits;
use super::secret::{SecretText, SecretUrl};

/// Number of an endpoint in its pool, by configuration order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId(pub(super) usize);

/// Some endpoints of a pool; those with numbers of 128 and more are never in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct EndpointSet(u128);

impl EndpointSet {
    fn bit(id: EndpointId) -> u128 {
        u32::try_from(id.0).ok().and_then(|at| 1_u128.checked_shl(at)).unwrap_or(0)
    }

    pub(super) fn insert(&mut self, id: EndpointId) {
        self.0 |= Self::bit(id);
    }

    pub(super) fn contains(self, id: EndpointId) -> bool {
        self.0 & Self::bit(id) != 0
    }
}

/// How an endpoint is configured; `None` takes the pool's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointConfig {
    pub url: SecretUrl,
    /// Calls in 1,000 seconds, so that slow rates stay integers; a batch costs as many as it
    /// holds. `None`: no limit but the node's own.
    pub rate_millihertz: Option<u32>,
    pub concurrency: Option<usize>,
    pub batch: Option<usize>,
    pub headers: Vec<(String, SecretText)>,
}

impl EndpointConfig {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: SecretUrl::new(url),
            rate_millihertz: None,
            concurrency: None,
            batch: None,
            headers: Vec::new(),
        }
    }
}

/// What an endpoint is like now, for people and metrics.
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
    pub not_offered: Vec<String>,
    /// Per method: calls sent and calls that failed.
    pub calls: BTreeMap<String, CallCounts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallCounts {
    pub sent: u64,
    pub failed: u64,
}

/// How far ahead of its rate an endpoint may be asked.
const BURST: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) config: EndpointConfig,
    pub(super) label: String,
    /// What its answers must not reveal, longest first.
    pub(super) secrets: Arc<[String]>,
    concurrency: usize,
    pub(super) batch: usize,
    in_flight: usize,
    /// When the calls so far are paid for by the rate (generic cell rate algorithm).
    /// tokio's clock, not the system's, so that it works on paused time.
    paid_until: Instant,
    resting_until: Instant,
    failures: u32,
    slow_downs: u32,
    latency: Duration,
    last_error: Option<String>,
    not_offered: BTreeMap<String, Instant>,
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
        Self {
            label: config.url.label(),
            secrets: secrets(&config),
            concurrency: config.concurrency.unwrap_or(limits.concurrency_default).max(1),
            batch: config.batch.unwrap_or(limits.batch_default).max(1),
            config,
            in_flight: 0,
            paid_until: now,
            resting_until: now,
            failures: 0,
            slow_downs: 0,
            latency: Duration::ZERO,
            last_error: None,
            not_offered: BTreeMap::new(),
            calls: BTreeMap::new(),
        }
    }

    /// `Ok`: may be asked now. `Err(Some)`: from then on. `Err(None)`: once a request has ended.
    pub(super) fn ready(&self, now: Instant) -> Result<(), Option<Instant>> {
        let at = self.resting_until.max(self.paid_until.checked_sub(BURST).unwrap_or(now));
        if self.in_flight >= self.concurrency {
            return Err(None);
        }
        if at <= now { Ok(()) } else { Err(Some(at)) }
    }

    pub(super) fn is_resting(&self, now: Instant) -> bool {
        self.resting_until > now
    }

    pub(super) fn offers(&self, method: &str, now: Instant) -> bool {
        self.not_offered.get(method).is_none_or(|until| *until <= now)
    }

    /// Smaller is better: the expected wait behind what is in flight.
    pub(super) fn load(&self) -> (u32, u128) {
        let waiting = u128::try_from(self.in_flight + 1).unwrap_or(u128::MAX);
        (self.failures.min(2), self.latency.as_micros().saturating_mul(waiting))
    }

    /// Books a request of up to `wanted` calls; returns how many it may hold.
    pub(super) fn begin(&mut self, wanted: usize, now: Instant) -> usize {
        let calls = wanted.min(self.batch).max(1);
        self.in_flight += 1;
        if let Some(rate) = self.config.rate_millihertz.filter(|rate| *rate > 0) {
            let count = u32::try_from(calls).unwrap_or(u32::MAX);
            self.paid_until = self.paid_until.max(now) + Duration::from_secs(1000) * count / rate;
        }
        calls
    }

    pub(super) fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    pub(super) fn count(&mut self, method: &str, failed: bool) {
        let counts = self.calls.entry(method.to_owned()).or_default();
        counts.sent += 1;
        counts.failed += u64::from(failed);
    }

    pub(super) fn succeeded(&mut self, took: Duration) {
        self.failures = 0;
        self.slow_downs = 0;
        self.latency = if self.latency.is_zero() { took } else { (self.latency * 7 + took) / 8 };
    }

    /// Usual time of an answer; zero before the first one.
    pub(super) fn latency(&self) -> Duration {
        self.latency
    }

    /// A failure of its own: rests after several in a row.
    pub(super) fn failed(&mut self, error: String, limits: &PoolLimits, now: Instant) {
        self.failures += 1;
        self.last_error = Some(error);
        if self.failures >= limits.breaker_failures {
            self.rest(limits.breaker_rest, now);
        }
    }

    /// It asked for less; returns how often in a row.
    pub(super) fn slowed_down(&mut self, error: String) -> u32 {
        self.last_error = Some(error);
        self.slow_downs = self.slow_downs.saturating_add(1);
        self.slow_downs
    }

    pub(super) fn rest(&mut self, pause: Duration, now: Instant) {
        self.resting_until = self.resting_until.max(now + pause);
    }

    pub(super) fn does_not_offer(&mut self, method: &str, until: Instant) {
        self.not_offered.insert(method.to_owned(), until);
    }

    pub(super) fn status(&self, id: EndpointId, now: Instant) -> EndpointStatus {
        let absent = |(method, until): (&String, &Instant)| (*until > now).then(|| method.clone());
        EndpointStatus {
            id,
            label: self.label.clone(),
            resting: self.is_resting(now),
            in_flight: self.in_flight,
            batch: self.batch,
            latency: self.latency,
            last_error: self.last_error.clone(),
            not_offered: self.not_offered.iter().filter_map(absent).collect(),
            calls: self.calls.clone(),
        }
    }
}
