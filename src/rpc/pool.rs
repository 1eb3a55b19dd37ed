//! The endpoints of one chain and what all calls share. `batch.rs` and `ask.rs` make the calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::endpoint::{Endpoint, EndpointConfig, EndpointId, EndpointStatus};
use super::endpoint_set::EndpointSet;
use super::error::UpstreamError;
use super::limits::PoolLimits;
use super::scheduler::{Admission, Lane};
use super::transport::Transport;
use crate::domain::{Clock, UnixMillis};

#[derive(Debug, Clone)]
pub struct CallOptions {
    pub lane: Lane,
    /// Only this endpoint.
    pub on: Option<EndpointId>,
    /// Another endpoint than this one, if there is one.
    pub avoid: Option<EndpointId>,
    /// Use the avoided endpoint again rather than a much slower one.
    pub in_time: bool,
    pub without: EndpointSet,
    /// The caller queries another endpoint if the named one fails: the call then fails early,
    /// provided another endpoint works and offers the method.
    pub(crate) is_replaceable: bool,
    /// An error that may be of the call alone ends it as soon as an unknown one does: after a few
    /// rounds over the endpoints.
    pub(crate) fails_soon: bool,
}

impl CallOptions {
    pub fn new(lane: Lane) -> Self {
        Self {
            lane,
            on: None,
            avoid: None,
            in_time: false,
            without: EndpointSet::default(),
            is_replaceable: false,
            fails_soon: false,
        }
    }

    pub(crate) fn failing_soon(&self) -> Self {
        Self { fails_soon: true, ..self.clone() }
    }

    /// The same options for one endpoint that the caller can replace if it fails.
    pub(crate) fn first_on(&self, id: EndpointId) -> Self {
        Self { on: Some(id), avoid: None, is_replaceable: true, ..self.clone() }
    }
}

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Pool {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) admission: Arc<Admission>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) limits: PoolLimits,
    pub(super) clock: Arc<dyn Clock>,
    random: AtomicU32,
    pub(super) requests: AtomicU64,
    next_id: AtomicU32,
}

impl Pool {
    pub fn new(
        endpoints: Vec<EndpointConfig>,
        transport: Arc<dyn Transport>,
        limits: PoolLimits,
        clock: Arc<dyn Clock>,
        seed: u32,
    ) -> Self {
        let mut endpoints: Vec<Endpoint> =
            endpoints.into_iter().map(|config| Endpoint::new(config, &limits)).collect();
        number_labels(&mut endpoints);
        let admission = Arc::new(Admission::new(endpoints, limits.clone()));
        // Xorshift needs a seed that is not zero.
        let random = AtomicU32::new(seed | 1);
        let requests = AtomicU64::new(0);
        // Other pools may reach the same service.
        let next_id = AtomicU32::new(seed);
        let inner = Inner { admission, transport, limits, clock, random, requests, next_id };
        Self { inner: Arc::new(inner) }
    }

    /// The attempts of one call, and their time.
    pub(crate) fn retries_max(&self) -> (u32, Duration) {
        (self.inner.limits.attempts_max, self.inner.limits.retry_time_max)
    }

    /// The first id of a JSON-RPC request of so many calls.
    pub(crate) fn take_ids(&self, calls: usize) -> u32 {
        self.inner.next_id.fetch_add(u32::try_from(calls).unwrap_or(u32::MAX), Ordering::Relaxed)
    }

    pub fn endpoints(&self) -> Vec<EndpointStatus> {
        let now = Instant::now();
        self.inner.admission.each(|id, endpoint| endpoint.status(id, now))
    }

    /// How long the endpoint's answers take; `None` if that was not measured recently.
    pub(crate) fn typical_latency(&self, id: EndpointId) -> Option<Duration> {
        let now = Instant::now();
        self.inner.admission.with(id, |endpoint| endpoint.typical_latency(now)).flatten()
    }

    pub(super) fn answered_at(&self, id: EndpointId) -> Option<Instant> {
        self.inner.admission.with(id, |endpoint| endpoint.answered_at).flatten()
    }

    pub(crate) fn ids(&self) -> Vec<EndpointId> {
        self.inner.admission.each(|id, _| id)
    }

    /// Options for two requests at once that are to be held against each other: each prefers another
    /// endpoint, as one may lack the same in all its answers. As they are where the caller prefers
    /// one.
    pub(crate) fn apart(&self, options: &CallOptions) -> [CallOptions; 2] {
        let mut ids = self.ids();
        ids.retain(|id| !options.without.contains(*id));
        ids.sort_by_key(|id| self.typical_latency(*id).unwrap_or(Duration::MAX));
        let is_free = options.on.is_none() && options.avoid.is_none();
        match ids.as_slice() {
            [fastest, .., slowest] if is_free => [slowest, fastest].map(|avoid| CallOptions {
                avoid: Some(*avoid),
                in_time: true,
                ..options.clone()
            }),
            _ => [options.clone(), options.clone()],
        }
    }

    /// Puts an endpoint on cooldown, because its answers cannot be right.
    pub fn cool_down(&self, id: EndpointId, pause: Duration) {
        self.inner.admission.with(id, |endpoint| endpoint.cool_down(pause, Instant::now()));
        self.inner.admission.reject_hopeless();
    }

    /// Disables an endpoint that reported another chain: until it is released it serves only the
    /// chain query `but_for`, even to calls that name it.
    pub(crate) fn disable(&self, id: EndpointId, but_for: &'static str) {
        self.inner.admission.with(id, |endpoint| endpoint.disable(but_for));
        self.inner.admission.reject_hopeless();
    }

    /// Excludes an endpoint for a while, except for calls that name it; no call waits for it.
    pub(crate) fn exclude(&self, id: EndpointId, pause: Duration) {
        self.inner.admission.with(id, |endpoint| endpoint.exclude(pause, Instant::now()));
        self.inner.admission.reject_hopeless();
    }

    /// Whether some endpoint has been excluded for less than `patience`: it may have data that the
    /// others lack.
    pub(crate) fn awaits_any(&self, patience: Duration) -> bool {
        let now = Instant::now();
        let awaited = self.inner.admission.each(|_, endpoint| endpoint.is_awaited(patience, now));
        awaited.contains(&true)
    }

    /// Enables an endpoint that reports the right chain again; a cooldown goes on.
    pub(crate) fn enable(&self, id: EndpointId) {
        self.inner.admission.with(id, |endpoint| endpoint.wrong_chain = None);
        self.inner.admission.dispatch();
    }

    /// Enables an endpoint again: ends its cooldown and its exclusion.
    pub(crate) fn release(&self, id: EndpointId) {
        self.inner.admission.with(id, |endpoint| endpoint.release(Instant::now()));
        self.inner.admission.dispatch();
    }

    /// Calls that fit into one request of the endpoint that takes most, by rates that recent
    /// refusals named: some providers count each call of a batch.
    pub fn calls_at_once(&self) -> usize {
        let now = Instant::now();
        most(self.inner.admission.each(|_, endpoint| endpoint.calls_at_once(now)))
    }

    pub(crate) fn now(&self) -> UnixMillis {
        self.inner.clock.now()
    }

    pub fn label(&self, id: EndpointId) -> String {
        self.inner.admission.with(id, |endpoint| endpoint.label.clone()).unwrap_or_default()
    }

    pub(crate) fn malformed(&self, by: EndpointId, what: impl Into<String>) -> UpstreamError {
        UpstreamError::Malformed { endpoint: self.label(by), what: what.into() }
    }

    /// Whether at least one of several endpoints works, so that a failed call may succeed there.
    pub(crate) fn works_in_part(&self) -> bool {
        let now = Instant::now();
        let work = self.inner.admission.each(|_, endpoint| endpoint.works(now));
        work.len() > 1 && work.contains(&true)
    }

    pub fn batch_size(&self) -> usize {
        self.inner.admission.each(|_, endpoint| endpoint.batch).into_iter().max().unwrap_or(1)
    }

    /// Number of requests of a method that all endpoints together, except `without`, take within
    /// one typical latency.
    pub(crate) fn parallel(&self, method: &str, without: EndpointSet) -> usize {
        let now = Instant::now();
        let of = |id, endpoint: &Endpoint| {
            let serves = !without.contains(id) && endpoint.serves(method, now);
            if serves { endpoint.parallel(now) } else { 0 }
        };
        self.inner.admission.each(of).into_iter().fold(0, usize::saturating_add)
    }

    pub(super) fn random(&self) -> u32 {
        let next = |mut x: u32| {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            Some(x)
        };
        let random = &self.inner.random;
        random.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(1)
    }
}

/// The largest of the endpoints' values: an endpoint that takes few calls must not split what
/// another takes whole.
fn most(named: Vec<Option<usize>>) -> usize {
    named.into_iter().map(|calls| calls.unwrap_or(usize::MAX)).max().unwrap_or(usize::MAX)
}

/// Numbers equal labels: several keys of one provider share its host, and errors and metrics name
/// endpoints by label.
fn number_labels(endpoints: &mut [Endpoint]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for endpoint in endpoints {
        let count = counts.entry(endpoint.label.clone()).or_default();
        *count += 1;
        if *count > 1 {
            endpoint.label = format!("{} #{count}", endpoint.label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::scripted::{ScriptedNodes, lane};

    #[test]
    fn an_endpoint_that_takes_few_calls_splits_nothing_that_another_takes() {
        assert_eq!(most(vec![Some(1)]), 1);
        assert_eq!(most(vec![Some(1), Some(3)]), 3);
        assert_eq!(most(vec![Some(1), None]), usize::MAX);
        assert_eq!(most(Vec::new()), usize::MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn two_keys_of_one_provider_have_labels_of_their_own() {
        let limits = PoolLimits::default();
        let endpoint = |url: &str| Endpoint::new(EndpointConfig::new(url), &limits);
        let mut all =
            ["https://a.example/one", "https://b.example", "https://a.example/two"].map(endpoint);
        number_labels(&mut all);
        let labels: Vec<&str> = all.iter().map(|one| one.label.as_str()).collect();
        assert_eq!(labels, ["https://a.example", "https://b.example", "https://a.example #2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn two_requests_apart_prefer_endpoints_of_their_own() {
        let nodes = ScriptedNodes::new(|_| (200, serde_json::Value::Null));
        let any = CallOptions::new(lane());
        let avoided = |hosts: &[&str], options: &CallOptions| {
            nodes.pool(hosts).apart(options).map(|options| options.avoid)
        };
        let [one, two, three] = [0, 1, 2].map(|at| Some(EndpointId(at)));
        assert_eq!(avoided(&["a", "b"], &any), [two, one]);
        assert_eq!(avoided(&["a", "b", "c"], &any), [three, one]);
        assert_eq!(avoided(&["a"], &any), [None, None]);
        // The caller has a preference.
        assert_eq!(avoided(&["a", "b"], &CallOptions { avoid: two, ..any.clone() }), [two, two]);
        assert_eq!(avoided(&["a", "b"], &any.first_on(EndpointId(0))), [None, None]);
        let mut two_left = any;
        two_left.without.insert(EndpointId(0));
        assert_eq!(avoided(&["a", "b", "c"], &two_left), [three, two]);
    }
}
