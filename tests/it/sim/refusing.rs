//! One endpoint of a kind refuses everything, some methods, or everything after some requests, by
//! one class of refusal or by unknown bodies, next to a good one. No incomplete history is reported
//! complete, and all rows come within the time that the good endpoint needs.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::rpc::{Request, Response, Transport, TransportError};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::client::Client;
use super::dice::Dice;
use super::way::Way;
use super::world::World;
use super::{finish, finish_poisoned};

const WAYS: [Way; 7] =
    [Way::Solana, Way::Logs, Way::Explorer, Way::Transfers, Way::Portal, Way::Lists, Way::Events];
/// Of each way; `BLOTTER_SIM_REFUSALS` asks for more.
const SEEDS: u64 = 12;
/// A load may take this many times as long as without a refusal.
const TIMES_MAX: u32 = 4;
const MORE_MAX: Duration = Duration::from_secs(60);
/// The extra time by events, where heights that only the other endpoint showed are read again (232
/// s were seen in 180 loads).
const MORE_BY_EVENTS_MAX: Duration = Duration::from_secs(300);

/// Which of a world's endpoints refuses, by what, and what it refuses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bad {
    pub(super) peer: usize,
    pub(super) seed: u64,
    pub(super) refused: Refused,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Refused {
    All,
    /// A third of the methods of JSON-RPC, by the seed.
    Methods,
    /// All after some requests, by the seed.
    Later,
}

/// Bodies by which providers refuse, with their status.
const CLASSES: [(u16, &str); 14] = [
    (401, "{\"message\":\"Unauthorized\"}"),
    (
        200,
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32000,\"message\":\"Unauthorized\"}}",
    ),
    (402, "payment required"),
    (403, "{\"Error\":\"Exceed the user daily usage\"}"),
    (404, "<html><h1>404</h1></html>"),
    (405, "Method Not Allowed"),
    (410, "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":410,\"message\":\"disabled\"}}"),
    (429, "{\"error\":{\"code\":-32429,\"message\":\"max usage reached\"}}"),
    (429, "error code: 1015"),
    (500, "backend said 0x17"),
    (501, "Not Implemented"),
    (503, "no backends available"),
    (521, "error code: 521"),
    (
        200,
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}",
    ),
];

/// Answers in place of one endpoint: always the same, or each time another body.
#[derive(Debug)]
pub(super) struct Refusing {
    inner: Arc<dyn Transport>,
    host: String,
    class: Option<(u16, &'static str)>,
    dice: Mutex<Dice>,
    bad: Bad,
    /// Requests that are answered before the first refusal.
    left: AtomicI64,
}

impl Refusing {
    pub(super) fn new(inner: Arc<dyn Transport>, bad: Bad) -> Self {
        let mut dice = Dice::new(bad.seed, 77);
        let class = (!dice.one_in(3)).then(|| dice.pick(&CLASSES));
        let host = format!("http://node{}", bad.peer);
        let left = AtomicI64::new(1_i64 << dice.range(0, 7));
        Self { inner, host, class, dice: Mutex::new(dice), bad, left }
    }

    fn refuses(&self, request: &Request) -> bool {
        request.url.label() == self.host
            && match self.bad.refused {
                Refused::All => true,
                Refused::Methods => method(request).is_some_and(|method| {
                    let sum = method.bytes().fold(self.bad.seed, |sum, byte| sum + u64::from(byte));
                    sum.is_multiple_of(3)
                }),
                Refused::Later => self.left.fetch_sub(1, Ordering::Relaxed) <= 0,
            }
    }

    fn refusal(&self) -> (u16, String) {
        if let Some((status, body)) = self.class {
            return (status, body.to_owned());
        }
        let mut dice = self.dice.lock().unwrap();
        let status =
            dice.pick(&[200, 300, 400, 401, 403, 404, 408, 409, 413, 418, 429, 500, 502, 504, 530]);
        let length = dice.range(0, 40);
        let words: String =
            (0..length).map(|_| char::from(u8::try_from(dice.range(32, 126)).unwrap())).collect();
        let code = dice.pick(&[-32_000_i64, -32_005, -32_602, -32_701, -1, 0, 3, 35, 4_444, 429]);
        let error = serde_json::json!({"code": code, "message": words});
        let body = match dice.range(0, 3) {
            0 => serde_json::json!({"jsonrpc": "2.0", "id": 0, "error": error}).to_string(),
            1 => serde_json::json!({"error": words}).to_string(),
            2 => {
                serde_json::json!({"status": "0", "message": "NOTOK", "result": words}).to_string()
            }
            _ => words,
        };
        (status, body)
    }
}

impl Transport for Refusing {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        if !self.refuses(&request) {
            return self.inner.send(request);
        }
        let (status, body) = self.refusal();
        Box::pin(async move {
            // It is quicker than the good one.
            sleep(Duration::from_millis(5)).await;
            Ok(Response { status, retry_after: None, body: body.into_bytes().into() })
        })
    }
}

/// Of the first call of a JSON-RPC request.
fn method(request: &Request) -> Option<String> {
    let body: Value = serde_json::from_slice(&request.body).ok()?;
    let first = body.get(0).unwrap_or(&body);
    Some(first["method"].as_str()?.to_owned())
}

/// The time until all is read; checks that nothing false was reported on the way.
async fn load(way: Way, bad: Option<Bad>) -> Duration {
    let world = World::doubled(way, bad);
    let mut client = Client::new(0, 1, 1);
    let (target, began) = (world.chain.head() - 200, Instant::now());
    if way == Way::Events && bad.is_some() {
        // Events that one endpoint alone gave stay in doubt while the other may keep them too.
        finish_poisoned(&world, &mut client, target).await;
    } else {
        finish(&world, &mut client, target, true).await;
    }
    let took = began.elapsed();
    if way != Way::Events {
        world.check_all(0, target);
    }
    drop(client);
    world.history.stop();
    assert!(world.history.tasks().shutdown(Duration::from_secs(5)).await);
    took
}

async fn check(way: Way, refused: Refused) {
    let asked = std::env::var("BLOTTER_SIM_REFUSALS").ok().and_then(|text| text.parse().ok());
    let alone = load(way, None).await;
    for seed in 0..asked.unwrap_or(SEEDS) {
        let peers = u64::try_from(World::doubled(way, None).peers.len()).unwrap();
        let peer = usize::try_from(Dice::new(seed, 78).range(0, peers - 1)).unwrap();
        super::trouble::say(&format!("{} {refused:?} seed {seed}, endpoint {peer}", way.name()));
        let took = load(way, Some(Bad { peer, seed, refused })).await;
        let name = way.name();
        super::trouble::say(&format!("{name} {refused:?} {seed} took {took:?}, alone {alone:?}"));
        let more = if way == Way::Events { MORE_BY_EVENTS_MAX } else { MORE_MAX };
        let most = alone * TIMES_MAX + more;
        assert!(
            took <= most,
            "{} {refused:?} seed {seed}, endpoint {peer}: {took:?}, alone {alone:?}",
            way.name()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_refuses_everything_takes_nothing_from_a_good_one() {
    for way in WAYS {
        check(way, Refused::All).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_refuses_some_methods_takes_nothing_from_a_good_one() {
    for way in WAYS {
        check(way, Refused::Methods).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_refuses_everything_later_takes_nothing_from_a_good_one() {
    for way in WAYS {
        check(way, Refused::Later).await;
    }
}
