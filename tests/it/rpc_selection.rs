//! For any set of endpoints of which one works: no call is lost, no endpoint gets more than its
//! limits, and hedges of late requests stay few.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::rpc::{
    CallOptions, EndpointConfig, Lane, Pool, PoolLimits, Priority, Request, Response, Transport,
    TransportError,
};
use futures_util::future::{BoxFuture, join_all};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::script::{Epoch, calls};

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Answers after so many milliseconds.
    Works(u64),
    /// Works, and keeps every n-th request waiting for long.
    Stutters(u64),
    Dead,
    Silent,
    /// Refuses what is more than this in a second, independent of its configured rate.
    Limited(usize),
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    kind: Kind,
    concurrency: usize,
    /// Calls a second.
    rate: Option<u32>,
    batch: usize,
}

#[derive(Debug, Default)]
struct Log {
    open: usize,
    open_max: usize,
    /// When so many calls were sent.
    sent: Vec<(Instant, usize)>,
}

#[derive(Debug)]
struct Nodes {
    plans: Vec<Plan>,
    logs: Mutex<Vec<Log>>,
    /// Requests in flight by their body, and the hedges of each.
    bodies: Mutex<HashMap<Vec<u8>, usize>>,
    seconds: Mutex<usize>,
}

/// A request under way; who asked may leave.
struct Open<'a>(&'a Nodes, usize, Vec<u8>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.logs.lock().unwrap()[self.1].open -= 1;
        *self.0.bodies.lock().unwrap().get_mut(&self.2).unwrap() -= 1;
    }
}

impl Nodes {
    fn open(&self, at: usize, body: &[u8], calls: usize) -> Open<'_> {
        let mut logs = self.logs.lock().unwrap();
        let log = &mut logs[at];
        log.open += 1;
        log.open_max = log.open_max.max(log.open);
        log.sent.push((Instant::now(), calls));
        let mut bodies = self.bodies.lock().unwrap();
        let open = bodies.entry(body.to_vec()).or_default();
        *self.seconds.lock().unwrap() += usize::from(*open > 0);
        *open += 1;
        Open(self, at, body.to_vec())
    }

    fn requests(&self, at: usize, within: Duration) -> usize {
        let now = Instant::now();
        let logs = self.logs.lock().unwrap();
        logs[at].sent.iter().filter(|(sent, _)| now - *sent < within).count()
    }
}

impl Transport for Nodes {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            let host = request.url.label().trim_start_matches("http://").to_owned();
            let at: usize = host.trim_start_matches("node").parse().unwrap();
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let asked = body.as_array().cloned().unwrap_or_else(|| vec![body.clone()]);
            let _open = self.open(at, &request.body, asked.len());
            let number = self.requests(at, Duration::from_secs(1_000_000));
            match self.plans[at].kind {
                Kind::Works(ms) => sleep(Duration::from_millis(ms)).await,
                Kind::Stutters(every) => {
                    let late = u64::try_from(number).unwrap().is_multiple_of(every);
                    sleep(Duration::from_millis(if late { 9_000 } else { 50 })).await;
                }
                Kind::Dead => return Err(TransportError::Connect("refused".to_owned())),
                Kind::Silent => {
                    sleep(request.timeout).await;
                    return Err(TransportError::Timeout);
                }
                Kind::Limited(most) => {
                    let refused = self.requests(at, Duration::from_secs(1)) > most;
                    sleep(Duration::from_millis(40)).await;
                    if refused {
                        return Ok(Response { status: 429, retry_after: None, body: "".into() });
                    }
                }
            }
            let entry = |call: &Value| json!({"id": call["id"], "result": call["params"][0]});
            let answer = match asked.as_slice() {
                [one] => entry(one),
                many => many.iter().map(entry).collect(),
            };
            Ok(Response { status: 200, retry_after: None, body: answer.to_string().into() })
        })
    }
}

const ROUNDS_MAX: usize = 5;

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        (20_u64..4_000).prop_map(Kind::Works),
        (2_u64..20).prop_map(Kind::Stutters),
        Just(Kind::Dead),
        Just(Kind::Silent),
        (1_usize..20).prop_map(Kind::Limited),
    ]
}

fn plan(kind: impl Strategy<Value = Kind>) -> impl Strategy<Value = Plan> {
    let rate = proptest::option::of(20_u32..200);
    (kind, 1_usize..9, rate, 1_usize..12).prop_map(|(kind, concurrency, rate, batch)| Plan {
        kind,
        concurrency,
        rate,
        batch,
    })
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let works = plan((20_u64..1_000).prop_map(Kind::Works));
    let others = proptest::collection::vec(plan(kind()), 0..4);
    (works, others, any::<prop::sample::Index>()).prop_map(|(works, mut all, place)| {
        all.insert(place.index(all.len() + 1), works);
        all
    })
}

fn endpoint(at: usize, plan: &Plan) -> EndpointConfig {
    EndpointConfig {
        rate_millihertz: plan.rate.map(|rate| rate * 1_000),
        concurrency: Some(plan.concurrency),
        batch: Some(plan.batch),
        ..EndpointConfig::new(format!("http://node{at}"))
    }
}

async fn holds(plans: Vec<Plan>, lanes: u64, each: usize) {
    let logs = plans.iter().map(|_| Log::default()).collect();
    let nodes = Arc::new(Nodes {
        logs: Mutex::new(logs),
        bodies: Mutex::default(),
        seconds: Mutex::default(),
        plans: plans.clone(),
    });
    let endpoints = plans.iter().enumerate().map(|(at, plan)| endpoint(at, plan)).collect();
    let known = Arc::clone(&nodes);
    let transport: Arc<dyn Transport> = known;
    let limits = PoolLimits::default();
    let share = usize::try_from(limits.hedge_share).unwrap();
    let pool = Pool::new(endpoints, transport, limits, Arc::new(Epoch), 1);
    let all = (0..lanes).map(|lane| {
        let pool = pool.clone();
        async move {
            let options = CallOptions::new(Lane::new(lane, Arc::new(Priority::interactive())));
            // Calls of their own, so that a body identifies its call.
            let mut asked = calls(each);
            for (at, call) in asked.iter_mut().enumerate() {
                call.params = json!([u64::try_from(at).unwrap() + lane * 1_000_000]);
            }
            // A call that only reached silent or full nodes ends in an error; its reader retries.
            for _ in 0..ROUNDS_MAX {
                let answers = pool.batch(&asked, &options).await;
                let mut failed = Vec::new();
                for (call, answer) in asked.into_iter().zip(answers) {
                    match answer {
                        Ok(answer) => {
                            assert_eq!(answer.result.get(), call.params[0].to_string());
                        }
                        Err(_) => failed.push(call),
                    }
                }
                asked = failed;
            }
            assert!(asked.is_empty(), "{} calls are lost", asked.len());
        }
    });
    join_all(all).await;
    let (mut requests, seconds) = (0, *nodes.seconds.lock().unwrap());
    for (at, (log, plan)) in nodes.logs.lock().unwrap().iter().zip(&plans).enumerate() {
        requests += log.sent.len();
        assert!(log.open_max <= plan.concurrency, "node{at}: {} at once", log.open_max);
        let Some(rate) = plan.rate else { continue };
        for (first, (from, _)) in log.sent.iter().enumerate() {
            let window = log.sent[first..].iter();
            let window = window.take_while(|(sent, _)| *sent - *from < Duration::from_secs(1));
            let calls: usize = window.map(|(_, calls)| calls).sum();
            // A tenth of a second ahead of the rate, and the request that crosses it.
            let most = usize::try_from(rate).unwrap() * 11 / 10 + plan.batch;
            assert!(calls <= most, "node{at}: {calls} calls in a second of {rate}");
        }
    }
    let most = share + (requests - seconds) / share + 1;
    assert!(seconds <= most, "{seconds} second requests next to {}", requests - seconds);
    assert!(pool.endpoints().iter().all(|endpoint| endpoint.in_flight == 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn no_call_is_lost_and_no_limit_is_broken(
        plans in plans(),
        lanes in 1_u64..4,
        each in 1_usize..120,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(holds(plans, lanes, each));
    }
}

/// A wallet's load is hundreds of calls in sequence. A node fifty times slower than the other must
/// not slow it down, in either order of configuration.
#[tokio::test(start_paused = true)]
async fn a_slow_endpoint_next_to_a_fast_one_costs_no_time() {
    let plan = |ms| Plan { kind: Kind::Works(ms), concurrency: 8, rate: None, batch: 10 };
    for plans in [[plan(80), plan(4_000)], [plan(4_000), plan(80)]] {
        let began = Instant::now();
        holds(plans.to_vec(), 1, 4_000).await;
        // 400 requests, eight at a time, 80 ms each: 4 s.
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

/// Of a late request and its hedge the caller sees one answer. Two silent nodes once hedged each
/// other in turns, next to one that works.
#[tokio::test(start_paused = true)]
async fn silent_endpoints_that_are_asked_in_pairs_hide_no_working_node() {
    let plan = |kind, concurrency, batch| Plan { kind, concurrency, rate: None, batch };
    let silent = [plan(Kind::Silent, 2, 5), plan(Kind::Silent, 1, 4)];
    let works = plan(Kind::Works(500), 1, 1);
    holds(vec![silent[0], silent[1], works], 2, 3).await;
}
