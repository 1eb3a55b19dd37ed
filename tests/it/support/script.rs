//! Endpoints that follow a script, for tests of the pool on paused time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::domain::{Clock, UnixMillis};
use blotter::rpc::{
    Call, CallOptions, EndpointConfig, Lane, Pool, PoolLimits, Priority, Request, Response,
    Transport, TransportError,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

#[derive(Debug)]
pub(crate) struct Epoch;

impl Clock for Epoch {
    fn now(&self) -> UnixMillis {
        UnixMillis(1_767_225_600_000)
    }
}

/// What an endpoint does with the next request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Each call is answered with its first parameter.
    Echo,
    /// As `Echo`, but `absent` is no method.
    Lacks,
    /// Ids are shuffled, one entry comes twice, one is missing.
    Muddle,
    Status(u16, &'static str, Option<&'static str>),
    Body(&'static str),
    /// As `Echo`, but so many milliseconds later.
    Late(u64),
    /// As `Echo`, but so many milliseconds later for each call, or too late.
    Each(u64),
    Break,
    Never,
}

/// Endpoints by host, each with a script that ends in a last act which repeats.
#[derive(Default)]
pub(crate) struct Script {
    acts: Mutex<Vec<(String, VecDeque<Act>)>>,
    latency: Mutex<Vec<(String, Duration)>>,
    /// Host, time and calls of every request.
    sent: Mutex<Vec<(String, Instant, Vec<Value>)>>,
    requests: Mutex<Vec<Request>>,
}

/// Shows nothing of it: tests look for keys in what the pool shows.
impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Script")
    }
}

impl Script {
    pub(crate) fn host(
        self,
        host: &str,
        latency_ms: u64,
        acts: impl IntoIterator<Item = Act>,
    ) -> Self {
        self.acts.lock().unwrap().push((host.to_owned(), acts.into_iter().collect()));
        let latency = Duration::from_millis(latency_ms);
        self.latency.lock().unwrap().push((host.to_owned(), latency));
        self
    }

    fn act(&self, host: &str) -> Act {
        let mut all = self.acts.lock().unwrap();
        let (_, acts) = all.iter_mut().find(|(name, _)| name == host).unwrap();
        if acts.len() > 1 { acts.pop_front().unwrap() } else { acts[0].clone() }
    }

    pub(crate) fn sent_to(&self, host: &str) -> usize {
        self.sent.lock().unwrap().iter().filter(|(to, ..)| to == host).count()
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn sent(&self) -> Vec<(String, Instant, Vec<Value>)> {
        self.sent.lock().unwrap().clone()
    }
}

impl Transport for Script {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            let host = request.url.label().trim_start_matches("http://").to_owned();
            self.requests.lock().unwrap().push(request.clone());
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let calls = match body {
                Value::Array(calls) => calls,
                one @ (Value::Object(_)
                | Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)) => vec![one],
            };
            let act = self.act(&host);
            self.sent.lock().unwrap().push((host.clone(), Instant::now(), calls.clone()));
            let latency =
                self.latency.lock().unwrap().iter().find(|(name, _)| *name == host).unwrap().1;
            sleep(latency).await;
            answer(act, &calls, request.timeout).await
        })
    }
}

async fn answer(act: Act, calls: &[Value], wait: Duration) -> Result<Response, TransportError> {
    let ok = |body: String| {
        Ok(Response { status: 200, retry_after: None, body: body.into_bytes().into() })
    };
    let entry = |call: &Value| json!({"id": call["id"], "result": call["params"][0]});
    let echo = || match calls {
        [one] => ok(entry(one).to_string()),
        many => ok(many.iter().map(entry).collect::<Value>().to_string()),
    };
    match act {
        Act::Echo => echo(),
        Act::Lacks => {
            let error = json!({"code": -32601, "message": "Method not found"});
            let entry = |call: &Value| {
                let is_absent = call["method"] == "absent";
                if is_absent { json!({"id": call["id"], "error": error}) } else { entry(call) }
            };
            match calls {
                [one] => ok(entry(one).to_string()),
                many => ok(many.iter().map(entry).collect::<Value>().to_string()),
            }
        }
        Act::Muddle => {
            let mut all: Vec<Value> = calls.iter().skip(1).map(entry).collect();
            all.reverse();
            all.extend(all.first().cloned());
            ok(Value::from(all).to_string())
        }
        Act::Status(status, text, retry_after) => Ok(Response {
            status,
            retry_after: retry_after.map(str::to_owned),
            body: text.as_bytes().to_vec().into(),
        }),
        Act::Body(text) => ok(text.to_owned()),
        Act::Break => Err(TransportError::Broken("reset".to_owned())),
        Act::Late(ms) => {
            sleep(Duration::from_millis(ms)).await;
            echo()
        }
        Act::Each(ms) => {
            let work = Duration::from_millis(ms) * u32::try_from(calls.len()).unwrap();
            sleep(work.min(wait)).await;
            if work < wait { echo() } else { Err(TransportError::Timeout) }
        }
        Act::Never => {
            sleep(wait).await;
            Err(TransportError::Timeout)
        }
    }
}

pub(crate) fn pool(script: &Arc<Script>, endpoints: Vec<EndpointConfig>) -> Pool {
    let transport: Arc<dyn Transport> = script.clone();
    Pool::new(endpoints, transport, PoolLimits::default(), Arc::new(Epoch), 1)
}

pub(crate) fn at(host: &str) -> EndpointConfig {
    EndpointConfig::new(format!("http://{host}/planted"))
}

pub(crate) fn lane(id: u64) -> CallOptions {
    CallOptions::new(Lane::new(id, Arc::new(Priority::interactive())))
}

pub(crate) fn calls(count: usize) -> Vec<Call> {
    (0..count).map(|at| Call { method: "echo", params: json!([at]) }).collect()
}

/// Every call has its own answer.
pub(crate) async fn echoes(pool: &Pool, count: usize, options: &CallOptions) {
    let answers = pool.batch(&calls(count), options).await;
    let got: Vec<String> = answers.iter().map(|a| a.as_ref().unwrap().result.to_string()).collect();
    let wanted: Vec<String> = (0..count).map(|at| at.to_string()).collect();
    assert_eq!(got, wanted);
}
