//! A request to the API: method, target with its query (chain, cursor, filters, limit), headers,
//! body. Nothing that a client sends is a fault of the server, and what it answers is what it says.
//!
//! The first line is the method and the target, lines up to an empty one are headers, the rest is
//! the body. `WALLET` stands for a wallet that is known.

#![no_main]

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use blotter::api::{Api, ApiLimits, ApiParts, KeyInfo, Keys};
use blotter::domain::{Cursor, FilterTag, KeyId, Position, Wallet};
use blotter::history::{History, HistoryLimits, HistoryParts, Tasks};
use blotter::store::{Store, StoreOptions};
use blotter_fuzz::sample::{Sample, chain, solana_source};
use blotter_fuzz::{Epoch, REGISTRY, target};
use http::{HeaderName, HeaderValue, Method, Response, Uri};
use redb::backends::InMemoryBackend;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Runtime;
use warp::filters::BoxedFilter;

const KEY: &str = "key-without-limits";
const TARGET_BYTES_MAX: usize = 8_000;
/// Budgets of visitors fill up between two requests.
const PAUSE: Duration = Duration::from_secs(600);

struct World {
    runtime: Runtime,
    wallet: String,
    routes: BoxedFilter<(warp::reply::Response,)>,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(world());
}

fn world() -> World {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    let sample = Sample::solana(None, 12, false);
    let inside = runtime.enter();
    let options = StoreOptions { cache_bytes: 4 << 20 };
    let history = History::new(HistoryParts {
        store: Store::in_step(InMemoryBackend::new(), options).expect("a store"),
        registry: Arc::clone(&REGISTRY),
        sources: HashMap::from([(chain("sol").id, solana_source(&sample.transport))]),
        candles: None,
        clock: Arc::new(Epoch),
        limits: HistoryLimits::default(),
        tasks: Tasks::new(),
    });
    let key = KeyInfo {
        id: KeyId(1),
        public_id: format!("{:012x}", 1),
        name: None,
        rate_millis: None,
        quota: None,
        streams: None,
        chains: None,
        expires: None,
        revoked: false,
    };
    let keys = Keys::new([(Sha256::digest(KEY).into(), key)].into_iter().collect());
    let limits = ApiLimits { stream_window: Duration::from_secs(1), ..ApiLimits::default() };
    let routes = Api::new(ApiParts { history, keys, limits, seed: 1 }).routes();
    drop(inside);
    World { wallet: sample.wallet.to_string(), routes, runtime }
}

fn seeds() -> Vec<Vec<u8>> {
    let history = "GET /v1/wallets/WALLET/history?chain=sol";
    let key = format!("\nx-api-key: {KEY}\n");
    let wallet = Wallet { chain: chain("sol").id, address: Sample::solana(None, 12, false).wallet };
    let position = Position::Start;
    let cursor = Cursor { head: None, filter: FilterTag::default(), live: false, position, passed: None };
    let cursor = cursor.encode(&wallet);
    [
        format!("{history}&limit=2{key}"),
        format!("{history}&follow=false{key}accept-encoding: gzip;q=0.5, zstd, *;q=0\n"),
        format!("{history}&limit=5&side=buy&dex=Raydium&from=2025-01-31&to=1767225600{key}"),
        format!("{history}&limit=1&token=So11111111111111111111111111111111111111112{key}"),
        format!("{history}&limit=1&cursor={cursor}{key}if-none-match: \"x\"\n"),
        format!("GET /api/v1/wallets/WALLET/history\nauthorization: Bearer {KEY}\n"),
        "OPTIONS /v1/usage\norigin: https://a.test\naccess-control-request-method: GET\n".to_owned(),
        format!("GET /v1/usage{key}x-forwarded-for: 10.0.0.1, [::1]:7\n"),
        format!("GET /v1/chains{key}"),
        format!("HEAD /openapi.json{key}"),
        "POST /v1/billing/estimate\ncontent-type: application/json\n\n{\"addresses\":[\"WALLET\"],\"chain\":\"sol\"}".to_owned(),
        format!("GET /v1/wallets/WALLET/explain/{}?chain=sol{key}", "1".repeat(64)),
        "GET /metrics\n".to_owned(),
        "GET /readyz\n".to_owned(),
        "GET /page/v/main.js\n".to_owned(),
    ]
    .map(String::into_bytes)
    .to_vec()
}

fn attempt(bytes: &[u8]) {
    WORLD.with_borrow(|world| {
        let text = String::from_utf8_lossy(bytes).replace("WALLET", &world.wallet);
        world.runtime.block_on(async {
            if let Some(answer) = ask(world, &text).await {
                judge(&text, &answer);
            }
            tokio::time::advance(PAUSE).await;
        });
    });
}

async fn ask(world: &World, text: &str) -> Option<Response<bytes::Bytes>> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let method = Method::from_bytes(method.as_bytes()).ok()?;
    let right = target.starts_with('/') && target.len() <= TARGET_BYTES_MAX;
    right.then_some(target)?.parse::<Uri>().ok()?;
    let mut request = warp::test::request().method(method.as_str()).path(target).body(body);
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        let name = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) else { continue };
        request = request.header(name, value);
    }
    Some(request.reply(&world.routes).await)
}

fn judge(asked: &str, answer: &Response<bytes::Bytes>) {
    let status = answer.status().as_u16();
    assert!(status < 500, "{asked}: {answer:?}");
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    if header("content-encoding").is_some() || answer.body().is_empty() {
        return;
    }
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).is_ok();
    let kind = header("content-type").unwrap_or_default();
    if kind.starts_with("application/json") {
        assert!(json(answer.body()), "{asked}: {answer:?}");
    } else if kind.starts_with("application/x-ndjson") {
        let lines = answer.body().split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        assert!(lines.into_iter().all(json), "{asked}: {answer:?}");
    }
}

target!(seeds, attempt);
