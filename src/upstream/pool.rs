//! The endpoints of one chain as one: retries, failover, batches, hedging.
//!
//! Not guaranteed: that a call is sent once. Everything asked here only reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout};

use super::ask::Ask;
use super::endpoint::{Endpoint, EndpointConfig, EndpointId, EndpointSet, EndpointStatus};
use super::error::UpstreamError;
use super::jsonrpc::{self, Whole};
use super::limits::PoolLimits;
use super::policy::{self, Failure, Verdict};
use super::queue::{Admission, Lane, Needs, Permit};
use super::secret::mask;
use super::transport::{Method, Request, Response, Transport, TransportError};
use crate::domain::Clock;

/// For whom and where a call is made.
#[derive(Debug, Clone)]
pub struct CallOptions {
    pub lane: Lane,
    /// Only this endpoint.
    pub on: Option<EndpointId>,
    /// Another endpoint than this one, where there is one.
    pub avoid: Option<EndpointId>,
}

impl CallOptions {
    pub fn new(lane: Lane) -> Self {
        Self { lane, on: None, avoid: None }
    }
}

/// A method with its parameters.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: &'static str,
    pub params: Value,
}

/// A result, and who gave it.
#[derive(Debug)]
pub struct Answer {
    pub result: Box<RawValue>,
    pub endpoint: EndpointId,
}

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    admission: Arc<Admission>,
    transport: Arc<dyn Transport>,
    limits: PoolLimits,
    clock: Arc<dyn Clock>,
    random: AtomicU32,
}

/// A call that has no result yet.
#[derive(Clone, Copy)]
pub(super) struct Open {
    /// Its place in the caller's list.
    at: usize,
    attempts: u32,
    since: Instant,
    avoid: Option<EndpointId>,
    /// Those who said that they do not have it.
    without: EndpointSet,
}

impl Open {
    pub(super) fn new(at: usize, options: &CallOptions) -> Self {
        let (since, without) = (Instant::now(), EndpointSet::default());
        Self { at, attempts: 0, since, avoid: options.avoid, without }
    }
}

/// How one request ended.
struct Landed {
    endpoint: Option<EndpointId>,
    outcomes: Vec<(Open, Result<Box<RawValue>, Failure>)>,
    /// Calls that did not fit into the endpoint's batch.
    left: Vec<Open>,
    refused: Option<UpstreamError>,
    sent_calls: usize,
    retry_after: Option<Duration>,
}

impl Pool {
    pub fn new(
        endpoints: Vec<EndpointConfig>,
        transport: Arc<dyn Transport>,
        limits: PoolLimits,
        clock: Arc<dyn Clock>,
        seed: u32,
    ) -> Self {
        let endpoints =
            endpoints.into_iter().map(|config| Endpoint::new(config, &limits)).collect();
        let admission = Arc::new(Admission::new(endpoints, limits.clone()));
        // Xorshift needs a seed that is not zero.
        let random = AtomicU32::new(seed | 1);
        Self { inner: Arc::new(Inner { admission, transport, limits, clock, random }) }
    }

    /// One call.
    pub async fn call(
        &self,
        method: &'static str,
        params: Value,
        options: &CallOptions,
    ) -> Result<Answer, UpstreamError> {
        let mut answers = self.batch(&[Call { method, params }], options).await;
        answers.pop().unwrap_or(Err(UpstreamError::NoEndpoint))
    }

    /// Many calls, each with its own result, in the order asked. Split by what the endpoints take
    /// at once; a call that fails is tried again by itself.
    pub async fn batch(
        &self,
        calls: &[Call],
        options: &CallOptions,
    ) -> Vec<Result<Answer, UpstreamError>> {
        let mut results: Vec<Option<Result<Answer, UpstreamError>>> =
            calls.iter().map(|_| None).collect();
        let mut flights = FuturesUnordered::new();
        let all: Vec<Open> = (0..calls.len()).map(|at| Open::new(at, options)).collect();
        for group in self.grouped(all) {
            flights.push(self.fly(calls, group, options, Duration::ZERO));
        }
        while let Some(landed) = flights.next().await {
            for (group, pause) in self.settle(calls, options, landed, &mut results) {
                flights.push(self.fly(calls, group, options, pause));
            }
        }
        results.into_iter().map(|one| one.unwrap_or(Err(UpstreamError::NoEndpoint))).collect()
    }

    /// What each endpoint is like now.
    pub fn endpoints(&self) -> Vec<EndpointStatus> {
        let now = Instant::now();
        self.inner.admission.each(|id, endpoint| endpoint.status(id, now))
    }

    /// Lets an endpoint rest, because what it tells cannot be right.
    pub fn bench(&self, id: EndpointId, pause: Duration) {
        self.inner.admission.with(id, |endpoint| endpoint.rest(pause, Instant::now()));
    }

    pub fn label(&self, id: EndpointId) -> String {
        self.inner.admission.with(id, |endpoint| endpoint.label.clone()).unwrap_or_default()
    }

    /// The largest batch that an endpoint takes now.
    pub fn batch_size(&self) -> usize {
        self.inner.admission.each(|_, endpoint| endpoint.batch).into_iter().max().unwrap_or(1)
    }

    /// As large as can be sent at once, with only such calls together as may go to the same
    /// endpoints.
    fn grouped(&self, open: Vec<Open>) -> Vec<Vec<Open>> {
        let size = self.batch_size();
        let mut alike: BTreeMap<EndpointSet, Vec<Open>> = BTreeMap::new();
        for one in open {
            alike.entry(one.without).or_default().push(one);
        }
        alike.values().flat_map(|all| all.chunks(size).map(<[Open]>::to_vec)).collect()
    }

    pub(super) fn needs(
        options: &CallOptions,
        open: &Open,
        method: &'static str,
        calls: usize,
    ) -> Needs {
        let (lane, on) = (options.lane.clone(), options.on);
        Needs { lane, on, avoid: open.avoid, without: open.without, method, calls }
    }

    /// Waits, takes a turn, sends one request.
    async fn fly(
        &self,
        calls: &[Call],
        mut group: Vec<Open>,
        options: &CallOptions,
        pause: Duration,
    ) -> Landed {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        let Some(first) = group.first() else {
            return Landed::refused(group, UpstreamError::NoEndpoint);
        };
        let method = calls.get(first.at).map_or("", |call| call.method);
        let needs = Self::needs(options, first, method, group.len());
        let permit = match self.admit(needs.clone()).await {
            Ok(permit) => permit,
            Err(error) => return Landed::refused(group, error),
        };
        let left = group.split_off(permit.calls.min(group.len()));
        let asked: Vec<(&str, &Value)> = group
            .iter()
            .filter_map(|open| calls.get(open.at))
            .map(|call| (call.method, &call.params))
            .collect();
        let ask = Ask {
            name: needs.method,
            path: String::new(),
            query: Vec::new(),
            body: Some(Bytes::from(jsonrpc::encode(&asked))),
        };
        let (endpoint, response) = self.send_hedged(permit, &needs, &ask, asked.len()).await;
        let mut landed = self.read(endpoint, &asked, group, response);
        landed.left = left;
        landed
    }

    /// A place in the queue, for at most the time for tries.
    pub(super) async fn admit(&self, needs: Needs) -> Result<Permit, UpstreamError> {
        let wait = self.inner.limits.retry_time_max;
        let pinned = needs.on.is_some();
        let admitted = self.inner.admission.admit(needs);
        if !pinned {
            return admitted.await;
        }
        timeout(wait, admitted).await.unwrap_or_else(|_| {
            let last = "the endpoint rests".to_owned();
            Err(UpstreamError::Unavailable { attempts: 0, last })
        })
    }

    /// Sends, and asks another endpoint too when this one takes far longer than it usually does.
    pub(super) async fn send_hedged(
        &self,
        permit: Permit,
        needs: &Needs,
        ask: &Ask,
        calls: usize,
    ) -> (EndpointId, Result<Response, TransportError>) {
        let endpoint = permit.endpoint;
        let usual = self.inner.admission.with(endpoint, |e| e.latency()).unwrap_or_default();
        let patience = (usual * 4).max(self.inner.limits.hedge_after_min);
        let first = self.send(&permit, ask, calls);
        tokio::pin!(first);
        if needs.on.is_some() || usual.is_zero() {
            return (endpoint, first.await);
        }
        if let Ok(response) = timeout(patience, &mut first).await {
            return (endpoint, response);
        }
        let elsewhere = Needs { avoid: Some(endpoint), ..needs.clone() };
        let second = self.inner.admission.try_admit(&elsewhere);
        let Some(second) = second.filter(|p| p.endpoint != endpoint && p.calls >= calls) else {
            return (endpoint, first.await);
        };
        tokio::select! {
            response = &mut first => (endpoint, response),
            response = self.send(&second, ask, calls) => match response {
                Ok(response) => (second.endpoint, Ok(response)),
                Err(_) => (endpoint, first.await),
            },
        }
    }

    async fn send(
        &self,
        permit: &Permit,
        ask: &Ask,
        calls: usize,
    ) -> Result<Response, TransportError> {
        let Inner { admission, limits, transport, .. } = &*self.inner;
        let config = admission.with(permit.endpoint, |endpoint| endpoint.config.clone());
        let Some(EndpointConfig { url, headers, .. }) = config else {
            return Err(TransportError::Connect("no such endpoint".to_owned()));
        };
        let body_bytes_max =
            if calls > 1 { limits.batch_body_bytes_max } else { limits.body_bytes_max };
        let timeout = limits.request_wait_max;
        let began = Instant::now();
        let url = url.join(&ask.path, &ask.query);
        let method = if ask.body.is_some() { Method::Post } else { Method::Get };
        let body = ask.body.clone().unwrap_or_default();
        let request = Request { method, url, headers, body, timeout, body_bytes_max };
        let response = transport.send(request).await;
        if response.as_ref().is_ok_and(|response| response.status < 400) {
            admission.with(permit.endpoint, |endpoint| endpoint.succeeded(began.elapsed()));
        }
        response
    }

    fn read(
        &self,
        endpoint: EndpointId,
        asked: &[(&str, &Value)],
        group: Vec<Open>,
        response: Result<Response, TransportError>,
    ) -> Landed {
        let retry_after = self.heed(endpoint, &response);
        let answers = understand(response, group.len(), &self.secrets(endpoint));
        let sent_calls = group.len();
        let outcomes: Vec<_> = match answers {
            Ok(answers) => group
                .into_iter()
                .zip(answers)
                .map(|(open, answer)| (open, answer.unwrap_or(Err(Failure::Missing))))
                .collect(),
            Err(failure) => group.into_iter().map(|open| (open, Err(failure.clone()))).collect(),
        };
        for ((method, _), (_, outcome)) in asked.iter().zip(&outcomes) {
            self.count(endpoint, method, outcome.is_err());
        }
        let (left, refused) = (Vec::new(), None);
        Landed { endpoint: Some(endpoint), outcomes, left, refused, sent_calls, retry_after }
    }

    /// Lets an endpoint rest for as long as its answer asks for; tells how long.
    pub(super) fn heed(
        &self,
        endpoint: EndpointId,
        response: &Result<Response, TransportError>,
    ) -> Option<Duration> {
        let refused = response.as_ref().ok().filter(|response| response.status >= 400)?;
        let now = self.inner.clock.now().seconds().0;
        let pause = policy::retry_after(refused.retry_after.as_deref()?, now)?;
        let pause = pause.min(self.inner.limits.retry_after_max);
        self.bench(endpoint, pause);
        Some(pause)
    }

    pub(super) fn count(&self, endpoint: EndpointId, method: &str, failed: bool) {
        self.inner.admission.with(endpoint, |known| known.count(method, failed));
    }

    pub(super) fn secrets(&self, endpoint: EndpointId) -> Arc<[String]> {
        self.inner.admission.with(endpoint, |known| Arc::clone(&known.secrets)).unwrap_or_default()
    }

    /// Notes results and what was learned of the endpoint; returns what flies again, and when.
    fn settle(
        &self,
        calls: &[Call],
        options: &CallOptions,
        landed: Landed,
        results: &mut [Option<Result<Answer, UpstreamError>>],
    ) -> Vec<(Vec<Open>, Duration)> {
        let Landed { endpoint, outcomes, left, refused, sent_calls, retry_after } = landed;
        let mut again = vec![(left, Duration::ZERO)];
        if let Some(error) = refused {
            for (open, _) in outcomes {
                set(results, open.at, Err(error.clone()));
            }
            return Vec::new();
        }
        let Some(endpoint) = endpoint else { return Vec::new() };
        let mut judged = Vec::new();
        let mut retry: Vec<Open> = Vec::new();
        let mut pause = Duration::ZERO;
        for (open, outcome) in outcomes {
            let failure = match outcome {
                Ok(result) => {
                    set(results, open.at, Ok(Answer { result, endpoint }));
                    continue;
                }
                Err(failure) => failure,
            };
            let method = calls.get(open.at).map_or("", |call| call.method);
            let verdict = policy::judge(&failure, method, sent_calls > 1);
            judged.push((verdict, method, failure.to_string()));
            match self.next_try(open, method, options, (endpoint, verdict, &failure)) {
                Ok((open, wait)) => {
                    pause = pause.max(wait);
                    retry.push(open);
                }
                Err(error) => set(results, open.at, Err(error)),
            }
        }
        self.learn(endpoint, judged, sent_calls, retry_after);
        again.extend(self.grouped(retry).into_iter().map(|group| (group, pause)));
        again.retain(|(group, _)| !group.is_empty());
        again
    }

    /// The call once more with its pause, or its final error.
    pub(super) fn next_try(
        &self,
        open: Open,
        method: &'static str,
        options: &CallOptions,
        (endpoint, verdict, failure): (EndpointId, Verdict, &Failure),
    ) -> Result<(Open, Duration), UpstreamError> {
        let limits = &self.inner.limits;
        let attempts = open.attempts + 1;
        let mut again = Open { attempts, avoid: Some(endpoint), ..open };
        match verdict {
            Verdict::Final => return Err(failure.refusal(self.label(endpoint))),
            Verdict::SmallerBatch => return Ok((again, Duration::ZERO)),
            Verdict::Elsewhere => {
                again.without.insert(endpoint);
                let needs = Self::needs(options, &again, method, 1);
                if !self.inner.admission.is_servable(&needs) {
                    return Err(failure.refusal(self.label(endpoint)));
                }
            }
            Verdict::SlowDown | Verdict::Again | Verdict::NotOffered => {}
        }
        if attempts >= limits.attempts_max || again.since.elapsed() >= limits.retry_time_max {
            let last = format!("{}: {failure}", self.label(endpoint));
            return Err(UpstreamError::Unavailable { attempts, last });
        }
        let pause = match verdict {
            // The endpoint's own rest is the pause; another endpoint may take it at once.
            Verdict::SlowDown
            | Verdict::NotOffered
            | Verdict::SmallerBatch
            | Verdict::Elsewhere => Duration::ZERO,
            Verdict::Again | Verdict::Final => self.backoff(attempts),
        };
        Ok((again, pause))
    }

    fn backoff(&self, attempt: u32) -> Duration {
        let limits = &self.inner.limits;
        policy::backoff(attempt, limits.backoff_min, limits.backoff_max, self.random())
    }

    fn random(&self) -> u32 {
        let next = |mut x: u32| {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            Some(x)
        };
        let random = &self.inner.random;
        random.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(1)
    }

    /// Remembers what a request told about its endpoint.
    pub(super) fn learn(
        &self,
        id: EndpointId,
        judged: Vec<(Verdict, &'static str, String)>,
        sent_calls: usize,
        retry_after: Option<Duration>,
    ) {
        let limits = &self.inner.limits;
        let jitter = self.random();
        let (mut slow, mut failed, mut smaller, mut absent) = (None, None, false, false);
        self.inner.admission.with(id, |endpoint| {
            for (verdict, method, text) in judged {
                match verdict {
                    Verdict::SlowDown => slow = Some(text),
                    Verdict::Again => failed = Some(text),
                    Verdict::SmallerBatch => smaller = true,
                    Verdict::NotOffered => {
                        absent = true;
                        endpoint.does_not_offer(method, Instant::now() + limits.not_offered_rest);
                    }
                    Verdict::Final | Verdict::Elsewhere => {}
                }
            }
            let now = Instant::now();
            if smaller {
                endpoint.batch = endpoint.batch.min((sent_calls / 2).max(1));
            }
            if let Some(text) = slow {
                let times = endpoint.slowed_down(text);
                let own = policy::backoff(times, limits.backoff_min, limits.backoff_max, jitter);
                let pause = retry_after.unwrap_or(own).min(limits.retry_after_max);
                endpoint.rest(pause, now);
            } else if let Some(text) = failed {
                endpoint.failed(text, limits, now);
            }
        });
        if absent {
            self.inner.admission.refuse_unservable();
        }
    }
}

impl Landed {
    fn refused(group: Vec<Open>, error: UpstreamError) -> Self {
        let outcomes = group.into_iter().map(|open| (open, Err(Failure::Missing))).collect();
        Self {
            endpoint: None,
            outcomes,
            left: Vec::new(),
            refused: Some(error),
            sent_calls: 0,
            retry_after: None,
        }
    }
}

fn set(
    results: &mut [Option<Result<Answer, UpstreamError>>],
    at: usize,
    result: Result<Answer, UpstreamError>,
) {
    if let Some(place) = results.get_mut(at) {
        *place = Some(result);
    }
}

type Entry = Option<Result<Box<RawValue>, Failure>>;

/// Status and body are read apart: an error may come with any status, and text with a good one.
fn understand(
    response: Result<Response, TransportError>,
    count: usize,
    secrets: &[String],
) -> Result<Vec<Entry>, Failure> {
    let response = response.map_err(Failure::Transport)?;
    let good = (200..300).contains(&response.status);
    match jsonrpc::decode(&response.body, count) {
        Ok(answers) if good || answers.iter().any(Option::is_some) => Ok(answers
            .into_iter()
            .map(|answer| {
                answer.map(|outcome| outcome.map_err(|error| rpc_failure(&error, secrets)))
            })
            .collect()),
        Err(Whole::Error(error)) => Err(rpc_failure(&error, secrets)),
        Err(Whole::Garbage) if good => Err(Failure::Garbage),
        Ok(_) | Err(Whole::Garbage) => {
            let text = mask(&String::from_utf8_lossy(&response.body), secrets);
            let text = text.chars().take(TEXT_MAX).collect();
            Err(Failure::Http { status: response.status, text })
        }
    }
}

/// Characters of an error page that are looked at.
const TEXT_MAX: usize = 500;

fn rpc_failure(error: &jsonrpc::RpcError, secrets: &[String]) -> Failure {
    let message = mask(&error.message, secrets);
    let message = message.chars().filter(|c| !c.is_control()).take(TEXT_MAX).collect();
    Failure::Rpc { code: error.code, message }
}
