//! One endpoint of a model: JSON-RPC envelopes, batches, faults and counts. It converts bytes to
//! bytes; the transports carry them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::evm::EvmModel;
use super::faults::{
    CallFaults, FaultMemory, Faults, RequestFault, RpcCall, TOO_MANY, tron_too_often, without_logs,
    without_members,
};
use super::mix::{self, Dice};
use super::rpc::{CallReply, DemoError, HttpAnswer, JSON};
use super::service::{DemoRequest, Options, Service};
use super::solana::{NodeOptions, SolanaModel};
use crate::domain::lock;

/// Method names that are counted separately; further ones are counted together.
const METHODS_MAX: usize = 64;

/// An endpoint of the demo chain. Cheap to clone; clones are the same endpoint.
#[derive(Debug, Clone)]
pub struct DemoNode {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    service: Service,
    seed: u64,
    options: Mutex<Options>,
    faults: Mutex<Faults>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    stats: NodeStats,
    open: u64,
    memory: FaultMemory,
}

impl Counts {
    fn hit(&mut self, fault: &'static str) {
        *self.stats.faults.entry(fault).or_default() += 1;
    }
}

/// Requests, calls and faults of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeStats {
    pub requests: u64,
    /// The maximum of concurrent requests, and of calls in one request.
    pub concurrent_max: u64,
    pub batch_max: usize,
    /// Calls of each method; entries of a batch count one by one.
    pub calls: BTreeMap<String, u64>,
    /// Requests and calls that a fault hit, by its name.
    pub faults: BTreeMap<&'static str, u64>,
}

impl NodeStats {
    pub fn calls_of(&self, method: &str) -> u64 {
        self.calls.get(method).copied().unwrap_or(0)
    }

    pub fn calls_total(&self) -> u64 {
        self.calls.values().sum()
    }
}

/// A request without an answer yet.
#[derive(Debug)]
pub(super) struct OpenRequest {
    node: DemoNode,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut counts = self.node.counts();
        counts.open = counts.open.saturating_sub(1);
    }
}

/// How a transport answers a request.
#[derive(Debug, Default)]
pub(super) struct NodeAnswer {
    pub(super) http: HttpAnswer,
    pub(super) retry_after: Option<Duration>,
    /// Before the head of the answer.
    pub(super) delay: Duration,
    /// Between the head of the answer and the end of its body.
    pub(super) slow: Duration,
    /// The connection ends before the body does.
    pub(super) cut: bool,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    params: Option<Vec<Value>>,
}

impl DemoNode {
    /// A Solana node. `seed` decides which requests the faults hit.
    pub fn new(model: SolanaModel, seed: u64) -> Self {
        Self::over(Service::Solana(model), seed)
    }

    /// A node of an EVM chain.
    pub fn evm(model: EvmModel, seed: u64) -> Self {
        Self::over(Service::Evm(model), seed)
    }

    /// Account lists of an EVM chain.
    pub fn explorer(model: EvmModel, seed: u64) -> Self {
        Self::over(Service::Explorer(model), seed)
    }

    /// An open data gateway to an EVM chain.
    pub fn portal(model: EvmModel, seed: u64) -> Self {
        Self::over(Service::Portal(model), seed)
    }

    /// An open data gateway to Solana.
    pub fn solana_portal(model: SolanaModel, seed: u64) -> Self {
        Self::over(Service::SolanaPortal(model), seed)
    }

    /// Tron's index with its nodes: lists by account, the HTTP interface and JSON-RPC.
    pub fn tron(model: EvmModel, seed: u64) -> Self {
        Self::over(Service::Tron(model), seed)
    }

    fn over(service: Service, seed: u64) -> Self {
        let options = Mutex::new(service.options());
        let (faults, counts) = (Mutex::new(Faults::none()), Mutex::default());
        Self { inner: Arc::new(Inner { service, seed, options, faults, counts }) }
    }

    /// Replaces the faults, from the next request on.
    pub fn set_faults(&self, faults: Faults) {
        *lock(&self.inner.faults) = faults;
    }

    /// Replaces the endpoint's options. With options of another kind of endpoint it answers no
    /// request.
    pub fn set_options(&self, options: impl Into<Options>) {
        *lock(&self.inner.options) = options.into();
    }

    /// Options of a Solana node; the defaults for other endpoints.
    pub fn options(&self) -> NodeOptions {
        let Options::Solana(options) = self.all_options() else { return NodeOptions::default() };
        options
    }

    fn all_options(&self) -> Options {
        lock(&self.inner.options).clone()
    }

    pub fn stats(&self) -> NodeStats {
        self.counts().stats.clone()
    }

    pub fn reset_stats(&self) {
        self.counts().stats = NodeStats::default();
    }

    pub fn faults(&self) -> Faults {
        lock(&self.inner.faults).clone()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        lock(&self.inner.counts)
    }

    /// Counts a request as open until the guard is dropped.
    pub(super) fn open(&self) -> OpenRequest {
        let mut counts = self.counts();
        counts.open += 1;
        counts.stats.concurrent_max = counts.stats.concurrent_max.max(counts.open);
        OpenRequest { node: self.clone() }
    }

    /// Answers a request at once, without latency; `None` where the endpoint stays silent. For
    /// benches and tests that measure no transport.
    pub fn respond(&self, body: &[u8]) -> Option<Vec<u8>> {
        self.fetch("", Some(body)).map(|(_, body)| body)
    }

    /// The same for a request with a path and a query below the endpoint's own path: a POST of the
    /// body, or a GET. Also returns the status.
    pub fn fetch(&self, path: &str, body: Option<&[u8]>) -> Option<(u16, Vec<u8>)> {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let request = DemoRequest { method, path, query, body: body.unwrap_or_default() };
        self.handle(&request).map(|answer| (answer.http.status, answer.http.body))
    }

    /// Answers one request at the current time; `None` is silence.
    pub(super) fn handle(&self, request: &DemoRequest<'_>) -> Option<NodeAnswer> {
        let faults = self.faults();
        let (number, refused) = self.admit(&faults);
        let mut dice = Dice::new(self.inner.seed, &[number]);
        let delay = faults.delay(&mut dice);
        let hit = faults.request(&mut dice);
        let respond = |http| NodeAnswer { http, delay, ..NodeAnswer::default() };
        let too_many = |wait, chance| {
            if self.inner.service.is_tron() {
                return respond(tron_too_often(request.path, wait, chance));
            }
            let http = HttpAnswer::new(429, JSON, TOO_MANY);
            NodeAnswer { retry_after: wait, ..respond(http) }
        };
        if let Some(wait) = refused {
            return Some(too_many(Some(wait), number));
        }
        if let Some((_, name)) = hit {
            self.counts().hit(name);
        }
        if let Some(http) = self.refused(request, &faults) {
            return Some(respond(http));
        }
        if let Some(http) = hit.and_then(|(fault, _)| fault.answer(&mut dice)) {
            return Some(respond(http));
        }
        let json = |shuffle| respond(self.answer(request, number, &faults, shuffle));
        Some(match hit.map(|(fault, _)| fault) {
            Some(RequestFault::Silence) => return None,
            Some(RequestFault::TooMany) => too_many(None, dice.next()),
            Some(RequestFault::TooManyWithWait) => too_many(Some(faults.retry_after), dice.next()),
            Some(RequestFault::Suspended) => {
                let wait = faults.suspended_for;
                self.counts().memory.suspend(wait);
                too_many(Some(wait), dice.next())
            }
            Some(RequestFault::SlowBody) => NodeAnswer { slow: faults.slow_for, ..json(None) },
            Some(RequestFault::CutBody) => NodeAnswer { cut: true, ..json(None) },
            Some(RequestFault::Reordered) => json(Some(dice.next())),
            _ => json(None),
        })
    }

    /// The refusal of a whole request by a status.
    fn refused(&self, request: &DemoRequest<'_>, faults: &Faults) -> Option<HttpAnswer> {
        if faults.refused.is_empty() {
            return None;
        }
        let service = &self.inner.service;
        let name = service.name(request);
        let is_rpc = service.is_rpc(&self.all_options(), request);
        let body = if is_rpc { String::from_utf8_lossy(request.body) } else { Cow::Borrowed("") };
        let names = |method: &str| {
            if is_rpc { body.contains(&format!("\"{method}\"")) } else { method == name }
        };
        let hit = faults.refused.iter().find(|(method, _)| names(method));
        let refused = hit.and_then(|(_, how)| how.status());
        if refused.is_some() {
            self.counts().hit("refused");
        }
        refused
    }

    /// Counts a request; returns its number, and for a refused one the time without service.
    fn admit(&self, faults: &Faults) -> (u64, Option<Duration>) {
        let mut counts = self.counts();
        counts.stats.requests += 1;
        let refused = counts.memory.refusal(faults);
        if let Some((_, name)) = refused {
            counts.hit(name);
        }
        (counts.stats.requests, refused.map(|(wait, _)| wait))
    }

    fn answer(
        &self,
        request: &DemoRequest<'_>,
        number: u64,
        faults: &Faults,
        shuffle: Option<u64>,
    ) -> HttpAnswer {
        let service = &self.inner.service;
        let is_rpc = service.is_rpc(&self.all_options(), request);
        if is_rpc && request.method == Method::POST {
            return HttpAnswer::new(200, JSON, self.json(request.body, number, faults, shuffle));
        }
        if is_rpc {
            return HttpAnswer::new(405, "text/plain", "Method Not Allowed");
        }
        let name = service.name(request);
        let mut fault = faults.call(&mut Dice::new(self.inner.seed, &[mix::hash(number, &[0])]));
        let place = [request.path, service.subject(request).as_str()].join(&name);
        let question = mix::digest(2, place.as_bytes());
        let body: Option<Value> = serde_json::from_slice(request.body).ok();
        let subject = mix::digest(question, request.body);
        let of = (question, subject, faults.lies_twice);
        self.counts().memory.spare(&mut fault, faults, of);
        fault.busy |= faults.fails(&name, body.as_ref().and_then(|body| body.get("value")));
        self.count(&name, &fault);
        if let Some(refusal) = faults.refusal(&name) {
            self.counts().hit("refused");
            return refusal.plain();
        }
        service.plain(&self.all_options(), request, fault)
    }

    fn json(&self, body: &[u8], number: u64, faults: &Faults, shuffle: Option<u64>) -> Vec<u8> {
        let options = self.all_options();
        let batch = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
        if !batch {
            return match serde_json::from_slice::<Entry<'_>>(body) {
                Ok(entry) => self.entry(&entry, &options, faults, mix::hash(number, &[0])),
                Err(_) => refusal(-32700, "Parse error"),
            };
        }
        let Ok(entries) = serde_json::from_slice::<Vec<Entry<'_>>>(body) else {
            return refusal(-32700, "Parse error");
        };
        {
            let mut counts = self.counts();
            counts.stats.batch_max = counts.stats.batch_max.max(entries.len());
        }
        if entries.is_empty() {
            return refusal(-32600, "Invalid request");
        }
        if entries.len() > options.batch_max() {
            return refusal(-32600, format!("Batch too large; max {}", options.batch_max()));
        }
        let mut answers: Vec<(u64, Vec<u8>)> = (1..)
            .zip(&entries)
            .map(|(at, entry)| {
                let answer = self.entry(entry, &options, faults, mix::hash(number, &[at]));
                (shuffle.map_or(at, |salt| mix::hash(salt, &[at])), answer)
            })
            .collect();
        answers.sort_by_key(|(rank, _)| *rank);
        let answers: Vec<Vec<u8>> = answers.into_iter().map(|(_, answer)| answer).collect();
        [&b"["[..], &answers.join(&b','), b"]"].concat()
    }

    /// Answers one call. `chance` is the number that selects its faults.
    fn entry(&self, entry: &Entry<'_>, options: &Options, faults: &Faults, chance: u64) -> Vec<u8> {
        let mut fault = faults.call(&mut Dice::new(self.inner.seed, &[chance]));
        let params = entry.params.as_deref().unwrap_or_default();
        let topics = params.first().and_then(|query| query.get("topics")).map(Value::to_string);
        let place = [entry.method.as_ref(), topics.unwrap_or_default().as_str()].concat();
        let question = mix::digest(2, place.as_bytes());
        let subject = params.first().and_then(Value::as_str).unwrap_or_default();
        let subject = mix::digest(question, subject.as_bytes());
        let twice = faults.lies_twice && entry.method == "getSignaturesForAddress";
        self.counts().memory.spare(&mut fault, faults, (question, subject, twice));
        self.count(&entry.method, &fault);
        let service = &self.inner.service;
        let nulled = fault.null_tokens && entry.method == "eth_call";
        let reply = if let Some(refusal) = faults.refusal(&entry.method) {
            self.counts().hit("refused");
            Err(refusal.error())
        } else if faults.fails(&entry.method, params.first()) {
            self.counts().hit("fails_on");
            Err(DemoError::new(-32603, "Internal error"))
        } else if fault.busy {
            Err(service.busy())
        } else if fault.null_result || nulled {
            Ok(b"null".to_vec())
        } else {
            let (method, answer_faults) = (entry.method.as_ref(), fault.answer_faults);
            let reply = service.call(options, RpcCall { method, params, answer_faults });
            let is_bare = fault.bare_receipts && entry.method == "eth_getTransactionReceipt";
            let reply = if is_bare { reply.map(without_logs) } else { reply };
            let is_nulled = !faults.nulled.is_empty() && entry.method.contains("ransaction");
            let bare = |reply| without_members(reply, faults.nulled);
            let reply = if is_nulled { reply.map(bare) } else { reply };
            reply.map(|reply| answer_faults.lie.content(method, reply))
        };
        let own = entry.id.map_or("null", RawValue::get);
        envelope(reply, if fault.wrong_id { "987654321" } else { own })
    }

    fn count(&self, method: &str, fault: &CallFaults) {
        let mut counts = self.counts();
        let stats = &mut counts.stats;
        if let Some(count) = stats.calls.get_mut(method) {
            *count += 1;
        } else {
            let known = stats.calls.len() < METHODS_MAX;
            *stats.calls.entry(if known { method } else { "other" }.to_owned()).or_default() += 1;
        }
        for name in fault.hits() {
            counts.hit(name);
        }
    }
}

/// `id`: JSON text.
fn envelope(reply: CallReply, id: &str) -> Vec<u8> {
    let (name, value) = match reply {
        Ok(result) => ("result", result),
        Err(DemoError { code, message, data }) => {
            // The text may quote the caller's input.
            let message = Value::from(message);
            let data = data.map(|data| format!(",\"data\":{data}")).unwrap_or_default();
            let error = format!("{{\"code\":{code},\"message\":{message}{data}}}");
            ("error", error.into_bytes())
        }
    };
    let head = format!("{{\"jsonrpc\":\"2.0\",\"{name}\":");
    [head.as_bytes(), &value, b",\"id\":", id.as_bytes(), b"}"].concat()
}

fn refusal(code: i64, message: impl Into<String>) -> Vec<u8> {
    envelope(Err(DemoError::new(code, message)), "null")
}
