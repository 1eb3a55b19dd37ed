//! The API's answers: every route, every error code, streams and pages.

use std::time::Duration;

use blotter::api::ApiLimits;
use blotter::domain::{Cursor, FilterTag, Position, UnixMillis};
use blotter::history::HistoryLimits;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;
use warp::http::Response;

use crate::support::served::{
    HEAD, KEY, NOW, World, header, json, key, lines, path, ring, text, trade, trades, trades_of,
    wallet,
};
use crate::support::source::Node;

const EVM: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

#[track_caller]
fn assert_error(response: &Response<Bytes>, status: u16, group: &str, code: &str) -> Value {
    assert_eq!(response.status(), status, "{}", text(response));
    let body = json(response);
    assert_eq!(body["error"]["code"], group);
    assert_eq!(body["type"], format!("/errors/{code}"));
    assert_eq!(body["status"], status);
    assert_eq!(body["error"]["message"], body["detail"]);
    assert_eq!(header(response, "x-request-id"), body["error"]["requestId"].as_str());
    body
}

#[tokio::test]
async fn wrong_requests_get_an_error_that_names_the_fault() {
    let world = World::new();
    let address = wallet(1).address.to_string();
    let tron = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";
    let cases = [
        (format!("/v1/wallets/{EVM}/history"), "invalid_address", "32 bytes"),
        (format!("/v1/wallets/{tron}/history"), "invalid_address", "base58"),
        (format!("/v1/wallets/{address}/history?chain=eth"), "invalid_address", "0x followed by"),
        (format!("/v1/wallets/{address}/history?chain=tron"), "invalid_address", "begins with T"),
        (format!("/v1/wallets/{}b/history?chain=eth", &EVM[..41]), "invalid_address", "EIP-55"),
        ("/v1/wallets/%ff/history".into(), "invalid_address", "UTF-8"),
        ("/v1/wallets//history".into(), "invalid_address", "parameter address"),
        (format!("/v1/wallets/{address}/history?chain=doge"), "unknown_chain", "\"doge\""),
        (format!("/v1/wallets/{address}/history?chain=x"), "unknown_chain", "sol, eth, base, bsc"),
        (format!("/v1/wallets/{address}/history?limit=1.5"), "invalid_limit", "integer"),
        (format!("/v1/wallets/{address}/history?limit=1&limit=2"), "invalid_parameter", "limit"),
        (format!("/v1/wallets/{address}/history?chain=%ff"), "invalid_parameter", "chain"),
        (format!("/v1/wallets/{address}/history?cursor=abc"), "invalid_cursor", "exactly as"),
        (format!("/v1/wallets/{EVM}/history?chain=eth"), "chain_disabled", "not enabled"),
    ];
    for (path, code, said) in cases {
        let response = world.get(&path).await;
        let body = assert_error(&response, 400, "VALIDATION_ERROR", code);
        let message = body["detail"].as_str().unwrap();
        assert!(message.contains(said), "{path}: {message}");
        assert_eq!(header(&response, "retry-after"), None);
    }
}

#[tokio::test]
async fn a_cursor_is_refused_for_another_wallet() {
    let world = World::new();
    let cursor = Cursor {
        head: Some(1),
        filter: FilterTag::default(),
        live: false,
        position: Position::Start,
        passed: None,
    };
    let text = cursor.encode(&wallet(1));
    let response = world.get(&format!("{}?cursor={text}", path(&wallet(2)))).await;
    assert_error(&response, 400, "VALIDATION_ERROR", "invalid_cursor");
    let damaged = format!("{}?limit=1&cursor={}", path(&wallet(1)), &text[1..]);
    assert_error(&world.get(&damaged).await, 400, "VALIDATION_ERROR", "invalid_cursor");
}

#[tokio::test]
async fn every_wrong_key_gets_the_same_answer() {
    let past = UnixMillis(NOW.0 - 1);
    let keys = [
        ("old", key(2, |key| key.expires = Some(past))),
        ("gone", key(3, |key| key.revoked = true)),
    ];
    let world = World::with(ApiLimits::default(), &keys);
    let cases: [&[(&str, &str)]; 11] = [
        &[],
        &[("authorization", "")],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer ")],
        &[("authorization", KEY)],
        &[("authorization", "Basic a2V5")],
        &[("authorization", "Bearer unknown")],
        &[("authorization", "Bearer old")],
        &[("authorization", "Bearer gone")],
        &[("x-api-key", "gone")],
        &[("x-api-key", "")],
    ];
    let mut first: Option<String> = None;
    for headers in cases {
        for path in ["/v1/wallets/x/history?chain=none", "/api/v1/usage"] {
            let headers = [headers, &[("x-request-id", "r")]].concat();
            let response = world.send("GET", path, &headers).await;
            assert_error(&response, 401, "INVALID_SESSION", "unauthorized");
            assert_eq!(header(&response, "www-authenticate"), Some("Bearer realm=\"blotter\""));
            let body = text(&response).replace(path.split('?').next().unwrap(), "PATH");
            assert_eq!(first.get_or_insert(body.clone()), &body, "{headers:?}");
        }
    }
    for headers in [[("authorization", "bEARER key-without-limits")], [("x-api-key", KEY)]] {
        assert_eq!(world.send("GET", "/v1/usage", &headers).await.status(), 200);
    }
}

#[tokio::test]
async fn a_replaced_key_ring_is_in_force_at_once() {
    let world = World::new();
    world.keys.replace(ring(&[("new", key(1, |_| {}))]));
    assert_eq!(world.get("/v1/usage").await.status(), 401);
    assert_eq!(world.get_as("new", "/v1/usage").await.status(), 200);
}

#[tokio::test]
async fn paths_and_methods() {
    let world = World::new();
    for path in
        ["/nothing", "/v1", "/v1/wallets", "/v2/chains", "/v1/wallets/a/b/history", "/api/chains"]
    {
        assert_error(&world.get(path).await, 404, "NOT_FOUND", "not_found");
    }
    let history = path(&wallet(1));
    for path in [&*history, "/v1/chains", "/v1/usage", "/healthz", "/readyz", "/metrics"] {
        for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
            let response = world.send(method, path, &[]).await;
            assert_error(&response, 405, "METHOD_NOT_ALLOWED", "method_not_allowed");
            assert_eq!(header(&response, "allow"), Some("GET, HEAD, OPTIONS"), "{method} {path}");
        }
        let options = world.send("OPTIONS", path, &[]).await;
        assert_eq!((options.status().as_u16(), text(&options)), (204, ""));
        assert_eq!(header(&options, "allow"), Some("GET, HEAD, OPTIONS"), "{path}");
    }
}

/// The CORS preflight of a browser, and the headers that it needs in every answer.
#[tokio::test]
async fn pages_of_other_sites_may_ask() {
    let world = World::new();
    let path = path(&wallet(1));
    let origin = ("origin", "https://app.example");
    let asked = [
        origin,
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "authorization"),
    ];
    let answer = world.send("OPTIONS", &path, &asked).await;
    assert_eq!(header(&answer, "access-control-allow-origin"), Some("*"));
    let allowed = |name| header(&answer, name).unwrap().to_owned();
    assert!(allowed("access-control-allow-methods").contains("GET"));
    let headers = allowed("access-control-allow-headers");
    assert!(headers.contains("authorization") && headers.contains("x-api-key"), "{headers}");
    for (path, status) in [(&*path, 401), ("/v1/chains", 200), ("/nothing", 404)] {
        let answer = world.send("GET", path, &[origin]).await;
        assert_eq!(answer.status(), status);
        assert_eq!(header(&answer, "access-control-allow-origin"), Some("*"));
        let seen = header(&answer, "access-control-expose-headers").unwrap();
        assert!(seen.contains("blotter-as-of") && seen.contains("x-request-id"), "{seen}");
    }
}

/// Streams and pages, unpacked by another implementation's decoder.
#[tokio::test]
async fn answers_are_packed_as_the_client_likes() {
    let world = World::new();
    let wallet = wallet(1);
    world.fill(&wallet, 0, (1..=200).map(trade).collect(), vec![]).await;
    let path = path(&wallet);
    for path in [path.clone(), format!("{path}?limit=150"), format!("{path}?limit=5000")] {
        let plain = world.get(&path).await;
        assert_eq!(header(&plain, "content-encoding"), None);
        assert_eq!(header(&plain, "vary"), Some("accept-encoding"));
        for (accept, coding) in [("gzip, br", "gzip"), ("gzip, zstd", "zstd")] {
            let headers =
                [("authorization", &*format!("Bearer {KEY}")), ("accept-encoding", accept)];
            let packed = world.send("GET", &path, &headers).await;
            assert_eq!(header(&packed, "content-encoding"), Some(coding));
            assert!(packed.body().len() * 3 < plain.body().len(), "{coding}");
            let mut read = Vec::new();
            if coding == "gzip" {
                let mut decoder = flate2::read::MultiGzDecoder::new(&packed.body()[..]);
                std::io::Read::read_to_end(&mut decoder, &mut read).unwrap();
            } else {
                read = zstd::decode_all(&packed.body()[..]).unwrap();
            }
            assert_eq!(read, plain.body()[..], "{coding} {path}");
        }
    }
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_loads_nothing() {
    let world = World::new();
    let authorization = [("authorization", "Bearer key-without-limits")];
    for path in ["/v1/chains", "/v1/usage", "/healthz", "/readyz", "/v1/nothing"] {
        let (get, head) = (world.get(path).await, world.send("HEAD", path, &authorization).await);
        assert_eq!(get.status(), head.status());
        let names = ["content-type", "content-length", "cache-control"];
        for name in names.into_iter().filter(|_| get.status() == 200) {
            assert_eq!(header(&get, name), header(&head, name), "{path} {name}");
        }
        assert!(head.body().is_empty());
    }
    for (query, kind) in
        [("", "application/x-ndjson; charset=utf-8"), ("?limit=5", "application/json")]
    {
        let path = format!("{}{query}", path(&wallet(7)));
        let head = world.send("HEAD", &path, &authorization).await;
        assert_eq!((head.status().as_u16(), header(&head, "content-type")), (200, Some(kind)));
    }
    let refused =
        world.send("HEAD", &format!("{}?limit=x", path(&wallet(7))), &authorization).await;
    assert_eq!(refused.status(), 400);
    assert_eq!(json(&world.get("/v1/usage").await)["tradesCounted"], 0);
}

#[tokio::test]
async fn request_ids_are_taken_where_they_can_be_echoed() {
    let world = World::new();
    let long = "x".repeat(128);
    for good in ["a", "7f3e-42/é".trim_end_matches('é'), "\"quoted\"", &long] {
        let response = world.send("GET", "/nothing", &[("x-request-id", good)]).await;
        assert_eq!(header(&response, "x-request-id"), Some(good));
        assert_error(&response, 404, "NOT_FOUND", "not_found");
    }
    let too_long = "x".repeat(129);
    let mut seen = std::collections::HashSet::new();
    for bad in ["", "two words", "tab\there", "é", &too_long] {
        let response = world.send("GET", "/healthz", &[("x-request-id", bad)]).await;
        let made = header(&response, "x-request-id").unwrap().to_owned();
        assert!(made.starts_with("00000000000000ab-") && seen.insert(made), "{bad:?}");
    }
}

#[tokio::test]
async fn both_prefixes_and_all_names_of_a_chain_are_equal() {
    let world = World::new();
    world.fill(&wallet(1), 0, trades(3), vec![]).await;
    let address = wallet(1).address;
    let expected = world.get(&path(&wallet(1))).await.into_body();
    for path in [
        format!("/api/v1/wallets/{address}/history"),
        format!("/v1/wallets/{address}/history?chain=sol"),
        format!("/v1/wallets/{address}/history?chain=solana"),
        format!("/v1/wallets/{address}/history?chain=Solana&x=1&x=2&cursor="),
        format!(
            "/v1/wallets/%{:x}{}/history",
            address.to_string().as_bytes()[0],
            &address.to_string()[1..]
        ),
    ] {
        assert_eq!(world.get(&path).await.into_body(), expected, "{path}");
    }
}

#[tokio::test]
async fn the_size_of_a_page_is_what_the_client_asked_for() {
    let world = World::new();
    world.fill(&wallet(1), 0, trades(3), vec![]).await;
    let largest = (1_u64 << 53) - 1;
    for (limit, size, rows) in [
        ("", 1000, 3),
        ("=", 1000, 3),
        ("=2", 2, 2),
        ("=0", 1, 1),
        ("=-7", 1, 1),
        ("=1001", 1001, 3),
        ("=18446744073709551615", largest, 3),
        ("=99999999999999999999999999", largest, 3),
    ] {
        let page = json(&world.get(&format!("{}?limit{limit}", path(&wallet(1)))).await);
        assert_eq!(page["pageSize"], size, "limit{limit}");
        assert_eq!(page["trades"].as_array().unwrap().len(), rows, "limit{limit}");
        assert_eq!(page["totalPages"], 3_u64.div_ceil(size));
        assert_eq!(page["cursor"].is_null(), rows == 3);
    }
}

#[tokio::test]
async fn paging_to_the_end_is_the_stream() {
    let world = World::new();
    world.fill(&wallet(1), 0, trades(2500), vec![]).await;
    let stream = lines(&world.get(&path(&wallet(1))).await);
    let expected = trades_of(&stream);
    assert_eq!(expected.len(), 2500);
    assert_eq!(stream.last().unwrap()["tradeCount"], 2500);
    for limit in [333, 1000, 1001, 2499, 2500, 10_000_000] {
        let (mut pages, mut path_now) = (Vec::new(), format!("{}?limit={limit}", path(&wallet(1))));
        loop {
            let response = world.get(&path_now).await;
            let page = json(&response);
            assert_eq!(page["complete"], true);
            assert_eq!(page["tradeCount"], 2500);
            let cursor = page["cursor"].as_str().map(str::to_owned);
            pages.push(page);
            let Some(cursor) = cursor else { break };
            path_now = format!("{}?limit={limit}&cursor={cursor}", path(&wallet(1)));
        }
        assert_eq!(trades_of(&pages), expected, "limit={limit}");
        assert_eq!(u64::try_from(pages.len()).unwrap(), 2500_u64.div_ceil(limit));
    }
    // From the cursor of each line, the rest of the stream is the same.
    let mut rest = expected.as_slice();
    for line in &stream[..stream.len() - 1] {
        rest = &rest[line["trades"].as_array().unwrap().len()..];
        let cursor = line["cursor"].as_str().unwrap();
        let resumed = world.get(&format!("{}?cursor={cursor}", path(&wallet(1)))).await;
        assert_eq!(trades_of(&lines(&resumed)), rest);
    }
}

#[tokio::test]
async fn a_large_page_is_streamed_and_a_small_one_is_not() {
    let world = World::new();
    world.fill(&wallet(1), 0, trades(3000), vec![]).await;
    let large = world.get(&format!("{}?limit=2000", path(&wallet(1)))).await;
    assert_eq!(header(&large, "content-length"), None);
    assert_eq!(header(&large, "blotter-as-of"), Some("1000000; 2026-11-21T07:05:51+00:00"));
    let small = world.get(&format!("{}?limit=1000", path(&wallet(1)))).await;
    assert!(header(&small, "content-length").is_some() && header(&small, "link").is_some());
    assert_eq!(
        json(&small)["trades"].as_array(),
        json(&large)["trades"].as_array().map(|rows| rows[..1000].to_vec()).as_ref()
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_silent_node_beats_and_then_gives_a_cursor() {
    let world = World::new();
    let started = Instant::now();
    let response = world.get(&path(&wallet(7))).await;
    assert_eq!(started.elapsed().as_secs(), 55);
    let start = Cursor {
        head: None,
        filter: FilterTag::default(),
        live: false,
        position: Position::Start,
        passed: Some(0),
    };
    assert_eq!(
        text(&response),
        format!(
            "\n\n\n\n\n{{\"complete\":false,\"cursor\":\"{}\",\"tradeCount\":0,\
             \"wallet\":\"{}\"}}\n",
            start.encode(&wallet(7)),
            wallet(7).address,
        )
    );
    assert_eq!(header(&response, "blotter-as-of"), None);
}

#[tokio::test(start_paused = true)]
async fn a_page_waits_only_so_long() {
    let world = World::new();
    let started = Instant::now();
    let page = json(&world.get(&format!("{}?limit=10", path(&wallet(7)))).await);
    assert_eq!(started.elapsed().as_secs(), 20);
    let cursor = page["cursor"].as_str().unwrap().to_owned();
    let empty = json!({"wallet": wallet(7).address.to_string(), "pageSize": 10, "trades": [],
        "complete": false, "tradeCount": 0, "cursor": cursor});
    assert_eq!(page, empty);
    // The stored rows come at once, and the same cursor requests more.
    world.fill(&wallet(7), 10, vec![trade(20)], vec![]).await;
    let page = json(&world.get(&format!("{}?limit=10&cursor={cursor}", path(&wallet(7)))).await);
    assert_eq!(trades_of(std::slice::from_ref(&page)).len(), 1);
    assert_eq!((&page["complete"], &page["tradeCount"]), (&json!(false), &json!(1)));
    assert!(page["cursor"].is_string() && page["totalPages"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_fails() {
    let (history, limits) = (HistoryLimits::default(), ApiLimits::default());
    let world = World::on(Node::Refuses, history, limits, &[]);
    let page = world.get(&format!("{}?limit=10", path(&wallet(7)))).await;
    assert_error(&page, 503, "UPSTREAM_UNAVAILABLE", "upstream_unavailable");
    assert_eq!(header(&page, "retry-after"), Some("5"));
    let stream = world.get(&path(&wallet(7))).await;
    assert_eq!(stream.status(), 200);
    let last = lines(&stream).pop().unwrap();
    assert_eq!(last["complete"], false);
    assert_eq!(last["error"]["code"], "UPSTREAM_UNAVAILABLE");
    assert!(last["cursor"].is_string() && last["firstTrade"].is_null());
    // Stored rows are delivered; a page that gets no further than its cursor is the error again.
    world.fill(&wallet(7), 10, trades(20).into_iter().take(5).collect(), vec![]).await;
    let first = json(&world.get(&format!("{}?limit=5", path(&wallet(7)))).await);
    assert_eq!(trades_of(std::slice::from_ref(&first)).len(), 5);
    let cursor = first["cursor"].as_str().unwrap();
    let next = world.get(&format!("{}?limit=5&cursor={cursor}", path(&wallet(7)))).await;
    assert_error(&next, 503, "UPSTREAM_UNAVAILABLE", "upstream_unavailable");
    assert_eq!(header(&next, "retry-after"), Some("5"));
}

#[tokio::test]
async fn usage_counts_each_trade_once() {
    let quota = key(2, |key| {
        key.quota = Some(100);
        key.name = Some("desk".into());
    });
    let world = World::with(ApiLimits::default(), &[("counted", quota)]);
    world.fill(&wallet(1), 0, trades(30), vec![]).await;
    let usage = |world: World, expected: Value| async move {
        assert_eq!(json(&world.get_as("counted", "/v1/usage").await), expected);
        world
    };
    let body = |counted: u64| {
        json!({"key": {"id": "000000000002", "name": "desk"}, "tradesCounted": counted,
            "quota": 100, "remaining": 100 - counted})
    };
    let world = usage(world, body(0)).await;
    world.get_as("counted", &format!("{}?limit=10", path(&wallet(1)))).await;
    let world = usage(world, body(10)).await;
    world.get_as("counted", &format!("{}?limit=20", path(&wallet(1)))).await;
    let world = usage(world, body(20)).await;
    world.get_as("counted", &path(&wallet(1))).await;
    let world = usage(world, body(30)).await;
    let unlimited = json(&world.get("/v1/usage").await);
    assert_eq!(unlimited["quota"], Value::Null);
    assert_eq!(unlimited["remaining"], Value::Null);
}

#[tokio::test]
async fn a_used_up_quota_shortens_the_answer_and_then_refuses() {
    let keys = ["page", "stream"].map(|name| {
        let id = u64::try_from(name.len()).unwrap();
        (name, key(id, |key| key.quota = Some(7)))
    });
    let world = World::with(ApiLimits::default(), &keys);
    world.fill(&wallet(1), 0, trades(10), vec![]).await;
    let short = json(&world.get_as("page", &format!("{}?limit=10", path(&wallet(1)))).await);
    assert_eq!(trades_of(std::slice::from_ref(&short)).len(), 7);
    assert_eq!(short["complete"], false);
    let cursor = short["cursor"].as_str().unwrap();
    let rest = format!("{}?limit=10&cursor={cursor}", path(&wallet(1)));
    let refused = world.get_as("page", &rest).await;
    assert_error(&refused, 402, "QUOTA_EXCEEDED", "quota_exceeded");
    // Rows that were counted can be read again.
    let again = world.get_as("page", &format!("{}?limit=7", path(&wallet(1)))).await;
    assert_eq!(trades_of(&[json(&again)]).len(), 7);

    let cut = lines(&world.get_as("stream", &path(&wallet(1))).await);
    assert_eq!(trades_of(&cut).len(), 7);
    let last = cut.last().unwrap();
    assert_eq!(last["error"]["code"], "QUOTA_EXCEEDED");
    let rest = format!("{}?cursor={}", path(&wallet(1)), last["cursor"].as_str().unwrap());
    let refused = world.get_as("stream", &rest).await;
    assert_error(&refused, 402, "QUOTA_EXCEEDED", "quota_exceeded");
    let again = lines(&world.get_as("stream", &path(&wallet(1))).await);
    assert_eq!(trades_of(&again).len(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_reported_and_enforced() {
    let keys = [("two", key(2, |key| key.rate_millis = Some(2000)))];
    let world = World::with(ApiLimits::default(), &keys);
    let get = async || world.get_as("two", "/v1/usage").await;
    let first = get().await;
    assert_eq!(header(&first, "ratelimit-policy"), Some("\"default\";q=2;w=1"));
    assert_eq!(header(&first, "ratelimit"), Some("\"default\";r=1;t=1"));
    assert_eq!(get().await.status(), 200);
    let refused = get().await;
    assert_error(&refused, 429, "RATE_LIMITED", "rate_limited");
    assert_eq!(header(&refused, "retry-after"), Some("1"));
    assert_eq!(header(&refused, "ratelimit"), Some("\"default\";r=0;t=1"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(get().await.status(), 200);
    assert_eq!(header(&world.get("/v1/usage").await, "ratelimit"), None);
}

#[tokio::test]
async fn a_key_reads_the_chains_that_it_is_for() {
    let keys = [("none", key(2, |key| key.chains = Some(vec![])))];
    let world = World::with(ApiLimits::default(), &keys);
    let refused = world.get_as("none", &path(&wallet(1))).await;
    let body = assert_error(&refused, 403, "FORBIDDEN", "chain_not_allowed");
    assert!(body["detail"].as_str().unwrap().contains("sol"));
}

#[tokio::test(start_paused = true)]
async fn streams_are_counted_per_key_and_in_all() {
    let keys = [("one", key(2, |key| (key.streams, key.rate_millis) = (Some(1), Some(50_000))))];
    let limits = ApiLimits { streams_max: 2, ..ApiLimits::default() };
    let world = World::with(limits, &keys);
    world.fill(&wallet(1), 0, trades(3), vec![]).await;
    let routes = world.api.routes();
    let open = |key: &'static str| {
        let request = warp::test::request().path(&path(&wallet(7))).header("x-api-key", key);
        let mut reply = Box::pin(request.reply(&routes));
        // Opens the stream; its body stays unread.
        assert!(futures_util::FutureExt::now_or_never(&mut reply).is_none());
        reply
    };
    let first = open("one");
    let refused = world.get_as("one", &path(&wallet(1))).await;
    assert_error(&refused, 429, "TOO_MANY_STREAMS", "too_many_streams");
    assert_eq!(header(&refused, "retry-after"), Some("5"));
    assert!(header(&refused, "ratelimit").is_some(), "what the key has left");
    let large = world.get_as("one", &format!("{}?limit=1001", path(&wallet(1)))).await;
    assert_error(&large, 429, "TOO_MANY_STREAMS", "too_many_streams");
    let small = world.get_as("one", &format!("{}?limit=1000", path(&wallet(1)))).await;
    assert_eq!(small.status(), 200);
    let second = open(KEY);
    let refused = world.get(&path(&wallet(1))).await;
    assert_error(&refused, 503, "OVERLOADED", "overloaded");
    drop((first, second));
    assert_eq!(world.get_as("one", &path(&wallet(1))).await.status(), 200);
}

#[tokio::test]
async fn after_a_stop_nothing_is_ready_and_nothing_begins() {
    let world = World::new();
    assert_eq!(text(&world.get("/readyz").await), "{\"status\":\"ready\"}");
    world.history.stop();
    let ready = world.get("/readyz").await;
    assert_eq!((ready.status().as_u16(), text(&ready)), (503, "{\"status\":\"draining\"}"));
    assert_eq!(text(&world.get("/healthz").await), "{\"status\":\"ok\"}");
    let refused = world.get(&path(&wallet(1))).await;
    assert_error(&refused, 503, "SHUTTING_DOWN", "shutting_down");
    // Requests without a cursor get the same error.
    let gains = world.get(&path(&wallet(1)).replace("/history", "/pnl")).await;
    let body = assert_error(&gains, 503, "SHUTTING_DOWN", "shutting_down");
    assert!(!body["detail"].as_str().unwrap().contains("the cursor"), "{body}");
}

#[tokio::test]
async fn a_closed_store_is_an_internal_error_without_details() {
    let world = World::new();
    world.history.close().await.unwrap();
    let response = world.get(&format!("{}?limit=1", path(&wallet(1)))).await;
    let body = assert_error(&response, 500, "INTERNAL_ERROR", "internal");
    assert!(body["detail"].as_str().unwrap().starts_with("something failed inside the server"));
    let ready = world.get("/readyz").await;
    assert_eq!(text(&ready), "{\"status\":\"store unavailable\"}");
}

#[tokio::test]
async fn the_chain_table() {
    let world = World::new();
    let response = world.send("GET", "/v1/chains", &[]).await;
    let body = json(&response);
    let slugs: Vec<_> = body["chains"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["slug"].as_str().unwrap())
        .collect();
    let contract = ["sol", "eth", "base", "bsc", "tron", "hyperevm", "monad", "robinhood"];
    assert!(slugs.starts_with(&contract), "{slugs:?}");
    let sol = &body["chains"][0];
    assert_eq!(sol["aliases"], json!(["solana"]));
    assert_eq!(sol["native"], json!({"symbol": "SOL", "decimals": 9}));
    assert_eq!((&sol["family"], &sol["status"]), (&json!("solana"), &json!("live")));
    let nodes = json!({"state": "up", "endpointsTotal": 1, "endpointsResting": 0});
    assert_eq!(sol["upstream"], nodes);
    assert_eq!(body["chains"][1]["status"], "disabled");
    assert_eq!(body["chains"][1]["upstream"], Value::Null);
    let with_key = world.get("/v1/chains").await;
    assert_eq!(
        json(&with_key)["chains"][0]["upstream"]["endpoints"][0]["label"],
        "http://node.test"
    );
    assert!(!text(&with_key).contains("planted-secret"));
    let wrong_key = world.get_as("wrong", "/v1/chains").await;
    assert_error(&wrong_key, 401, "INVALID_SESSION", "unauthorized");
}

#[tokio::test]
async fn metrics_are_open_metrics_text() {
    let world = World::new();
    world.fill(&wallet(1), 0, trades(3), vec![]).await;
    world.get(&path(&wallet(1))).await;
    world.get("/nothing").await;
    let response = world.get("/metrics").await;
    assert!(!text(&response).contains("node.test"));
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(header(&response, "content-type"), Some(kind));
    let text = text(&response);
    assert!(text.ends_with("# EOF\n"));
    let version = env!("CARGO_PKG_VERSION");
    for line in [
        &*format!("blotter_build_info{{version=\"{version}\"}} 1"),
        "blotter_http_requests_total{route=\"history\",method=\"GET\",status=\"200\"} 1",
        "blotter_http_requests_total{route=\"unknown\",method=\"GET\",status=\"404\"} 1",
        "blotter_http_stream_lines_total 2",
        "blotter_http_trades_total 3",
        "blotter_trades_delivered_total 3",
        "blotter_values_total{source=\"route\"} 0",
        "blotter_store_trades 3",
        "blotter_upstream_endpoint_resting{chain=\"sol\",endpoint=\"0\"} 0",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    assert!(!text.contains(&wallet(1).address.to_string()) && !text.contains(KEY));
}

/// The head that filled wallets are known to.
#[tokio::test]
async fn a_cursor_from_before_the_first_row_restarts_the_walk() {
    let world = World::new();
    world.fill(&wallet(1), 0, trades(3), vec![]).await;
    let cursor = Cursor {
        head: Some(HEAD),
        filter: FilterTag::default(),
        live: false,
        position: Position::Start,
        passed: None,
    };
    let path = format!("{}?cursor={}", path(&wallet(1)), cursor.encode(&wallet(1)));
    assert_eq!(trades_of(&lines(&world.get(&path).await)).len(), 3);
}
