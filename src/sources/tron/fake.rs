//! Nodes of unit tests, in this process: a function answers what is asked, by host, path and body.

use std::fmt;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{TronLimits, TronSource};
use crate::domain::{Clock, UnixMillis};
use crate::registry::Registry;
use crate::rpc::endpoint::EndpointConfig;
use crate::rpc::limits::PoolLimits;
use crate::rpc::pool::{CallOptions, Pool};
use crate::rpc::priority::Priority;
use crate::rpc::scheduler::Lane;
use crate::rpc::transport::{Request, Response, Transport, TransportError};

#[derive(Debug)]
struct Epoch;

impl Clock for Epoch {
    fn now(&self) -> UnixMillis {
        UnixMillis(0)
    }
}

/// What is asked of a node: its host, the path, the body.
pub(super) type Asked<'a> = (&'a str, &'a str, &'a Value);

type Answer = dyn Fn(Asked<'_>) -> (u16, Value) + Send + Sync;

pub(super) struct FakeNodes {
    answer: Box<Answer>,
    /// Paths of all requests so far, with their hosts.
    asked: Mutex<Vec<String>>,
}

impl fmt::Debug for FakeNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeNodes").finish_non_exhaustive()
    }
}

impl FakeNodes {
    pub(super) fn new(
        answer: impl Fn(Asked<'_>) -> (u16, Value) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { answer: Box::new(answer), asked: Mutex::default() })
    }

    /// Requests so far whose host and path end so.
    pub(super) fn count(&self, end: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| asked.ends_with(end)).count()
    }
}

impl Transport for FakeNodes {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let url = request.url.expose().trim_start_matches("http://");
        let (host, path) = url.split_once('/').unwrap_or((url, ""));
        self.asked.lock().unwrap().push(format!("{host}/{path}"));
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let (status, body) = (self.answer)((host, path.trim_start_matches('/'), &body));
        let body = body.to_string().into();
        Box::pin(async move { Ok(Response { status, retry_after: None, body }) })
    }
}

/// A source of the main chain whose endpoints have these hosts.
pub(super) fn source(
    hosts: &[&str],
    transport: Arc<dyn Transport>,
    limits: TronLimits,
) -> TronSource {
    let endpoints = hosts.iter().map(|host| EndpointConfig::new(format!("http://{host}/")));
    let (pool, clock) = (PoolLimits::default(), Arc::new(Epoch));
    let pool = Pool::new(endpoints.collect(), transport, pool, clock, 1);
    TronSource::new(pool, Registry::embedded().unwrap().chain_named("tron").unwrap(), limits)
}

pub(super) fn options() -> CallOptions {
    CallOptions::new(Lane::new(1, Arc::new(Priority::interactive())))
}

/// The answers to JSON-RPC calls, one or many: by method and first parameter.
pub(super) fn rpc(body: &Value, answer: impl Fn(&str, &Value) -> Value) -> (u16, Value) {
    let one = |call: &Value| {
        let result = answer(call["method"].as_str().unwrap(), &call["params"][0]);
        json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
    };
    match body.as_array() {
        Some(calls) => (200, calls.iter().map(one).collect()),
        None => (200, one(body)),
    }
}

/// A block's header.
pub(super) fn block(height: u64, millis: u64) -> Value {
    json!({"blockID": format!("{height:064x}"),
           "block_header": {"raw_data": {"number": height, "timestamp": millis}}})
}

/// The answer to `wallet/getblock` of a chain with a block each three seconds.
pub(super) fn header(body: &Value) -> (u16, Value) {
    let height = body["id_or_num"].as_str().unwrap().parse().unwrap();
    (200, block(height, height * 3_000))
}

/// A number of JSON-RPC.
pub(super) fn quantity(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}
