//! Scripted endpoints for unit tests, in this process: a function answers the requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::endpoint::EndpointConfig;
use super::limits::PoolLimits;
use super::pool::{CallOptions, Pool};
use super::priority::Priority;
use super::scheduler::Lane;
use super::transport::{Request, Response, Transport, TransportError};
use crate::domain::{Clock, UnixMillis, opaque};

#[derive(Debug)]
pub(crate) struct Epoch;

impl Clock for Epoch {
    fn now(&self) -> UnixMillis {
        UnixMillis(1_767_225_600_000)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum NodeFault {
    Rpc(i64, &'static str),
    /// The connection breaks: no answer to the whole request.
    Broken,
}

pub(crate) const NO_METHOD: NodeFault = NodeFault::Rpc(-32601, "the method does not exist");

/// A request: host, path and body.
pub(crate) type Asked<'a> = (&'a str, &'a str, &'a Value);

/// An answer: a status (0: the connection breaks) and a body, where a string is sent as it is.
pub(crate) type Answered = (u16, Value);

pub(crate) struct ScriptedNodes {
    answer: Box<dyn Fn(Asked<'_>) -> Answered + Send + Sync>,
    delay: Duration,
    /// Host and path of each request, and the methods of its JSON-RPC calls.
    asked: Mutex<Vec<String>>,
}

opaque!(ScriptedNodes);

impl ScriptedNodes {
    pub(crate) fn new(answer: impl Fn(Asked<'_>) -> Answered + Send + Sync + 'static) -> Arc<Self> {
        Self::after(Duration::ZERO, answer)
    }

    pub(crate) fn after(
        delay: Duration,
        answer: impl Fn(Asked<'_>) -> Answered + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { answer: Box::new(answer), delay, asked: Mutex::default() })
    }

    /// Number of requests with a path, or calls of a method, that ends with `end`.
    pub(crate) fn count(&self, end: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| asked.ends_with(end)).count()
    }

    pub(crate) fn pool(self: &Arc<Self>, hosts: &[&str]) -> Pool {
        self.pool_with(hosts, PoolLimits::default())
    }

    /// A pool that sends one call per request, one request at a time.
    pub(crate) fn pool_of_single_calls(self: &Arc<Self>, hosts: &[&str]) -> Pool {
        let limits =
            PoolLimits { batch_default: 1, concurrency_default: 1, ..PoolLimits::default() };
        self.pool_with(hosts, limits)
    }

    fn pool_with(self: &Arc<Self>, hosts: &[&str], limits: PoolLimits) -> Pool {
        let transport: Arc<dyn Transport> = self.clone();
        let config = |host: &&str| EndpointConfig::new(format!("http://{host}/"));
        let endpoints = hosts.iter().map(config).collect();
        Pool::new(endpoints, transport, limits, Arc::new(Epoch), 1)
    }
}

impl Transport for ScriptedNodes {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            tokio::time::sleep(self.delay).await;
            let url = request.url.expose().trim_start_matches("http://");
            let (host, path) = url.split_once('/').unwrap_or((url, ""));
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let methods = calls(&body).iter().filter_map(|call| call["method"].as_str());
            let asked = [url].into_iter().chain(methods).map(str::to_owned);
            self.asked.lock().unwrap().extend(asked);
            let body = match (self.answer)((host, path.trim_start_matches('/'), &body)) {
                (0, _) => return Err(TransportError::Broken("reset".to_owned())),
                (status, Value::String(text)) => (status, text),
                (status, body) => (status, body.to_string()),
            };
            Ok(Response { status: body.0, retry_after: None, body: body.1.into() })
        })
    }
}

fn calls(body: &Value) -> &[Value] {
    body.as_array().map_or(std::slice::from_ref(body), Vec::as_slice)
}

/// Answers JSON-RPC calls, single or batched, by method and parameters.
pub(crate) fn rpc(
    body: &Value,
    answer: impl Fn(&str, &Value) -> Result<Value, NodeFault>,
) -> Answered {
    let mut answers = Vec::new();
    for call in calls(body) {
        let (name, outcome) = match answer(call["method"].as_str().unwrap(), &call["params"]) {
            Ok(result) => ("result", result),
            Err(NodeFault::Rpc(code, message)) => {
                ("error", json!({"code": code, "message": message}))
            }
            Err(NodeFault::Broken) => return (0, Value::Null),
        };
        answers.push(json!({"jsonrpc": "2.0", "id": call["id"], name: outcome}));
    }
    (200, if body.is_array() { answers.into() } else { answers.remove(0) })
}

pub(crate) fn lane() -> Lane {
    Lane::new(1, Arc::new(Priority::interactive()))
}

pub(crate) fn options() -> CallOptions {
    CallOptions::new(lane())
}
