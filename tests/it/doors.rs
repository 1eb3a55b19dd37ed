//! What callers can do at the HTTP interface apart from requesting a history: keys that end while
//! their streams are open, cross-site requests, ambiguous requests, misspelt parameters.

use std::time::Duration;

use blotter::api::ApiLimits;
use blotter::demo::solana::WalletPlan;
use blotter::domain::{Address, ChainId, UnixMillis, Wallet};
use blotter::history::HistoryLimits;
use bytes::Bytes;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep};
use warp::http::Response;

use crate::support::served::{
    KEY, NOW, Served, World, header, json, key, lines, path, ring, text, trades, wallet,
};
use crate::support::source::Node;

const ESTIMATE: &str = "/v1/billing/estimate";

/// Runs a request while the keys change after some time; also returns how long it took.
async fn during(
    world: &World,
    asked: &str,
    path: &str,
    after: Duration,
    change: impl FnOnce(),
) -> (Response<Bytes>, Duration) {
    let began = Instant::now();
    let change = async {
        sleep(after).await;
        change();
    };
    let (response, ()) = tokio::join!(world.get_as(asked, path), change);
    (response, began.elapsed())
}

/// Stores the newest 1,401 of 1,900 trades: the rest is still to be loaded.
async fn fill_upper(world: &World, wallet: &Wallet) {
    let upper = trades(1_900).into_iter().filter(|trade| trade.key.height >= 500);
    world.fill(wallet, 500, upper.collect(), vec![]).await;
}

const AFTER: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_secs(5);

#[track_caller]
fn ends_for(response: &Response<Bytes>, code: &str, kind: &str) {
    let last = lines(response).pop().unwrap();
    assert_eq!(last["complete"], false, "{last}");
    assert!(last["cursor"].is_string(), "{last}");
    let error = &last["error"];
    assert_eq!((&error["code"], &error["type"]), (&code.into(), &kind.into()), "{last}");
    assert_eq!(error["retryable"], false, "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_revoked_or_deleted_key_ends_its_open_streams() {
    for deleted in [false, true] {
        let world = World::new();
        fill_upper(&world, &wallet(1)).await;
        for path in [path(&wallet(1)), path(&wallet(2)), format!("{}?follow=1", path(&wallet(1)))] {
            world.keys.replace(ring(&[(KEY, key(1, |_| {}))]));
            let revoke = || {
                let revoked = [(KEY, key(1, |key| key.revoked = true))];
                world.keys.replace(ring(if deleted { &[] } else { &revoked }));
            };
            let (response, took) = during(&world, KEY, &path, AFTER, revoke).await;
            assert_eq!(response.status(), 200);
            assert!(took <= SOON, "{took:?}");
            ends_for(&response, "INVALID_SESSION", "/errors/unauthorized");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_changes_otherwise_keeps_its_streams() {
    let world = World::new();
    let rename = || world.keys.replace(ring(&[(KEY, key(1, |key| key.name = Some("x".into())))]));
    let (response, took) = during(&world, KEY, &path(&wallet(2)), AFTER, rename).await;
    assert_eq!(took, ApiLimits::default().stream_window);
    assert!(lines(&response).pop().unwrap().get("error").is_none(), "{}", text(&response));
}

#[tokio::test(start_paused = true)]
async fn an_expiry_ends_an_open_stream() {
    let until = UnixMillis(NOW.0 + 3_000);
    let world =
        World::with(ApiLimits::default(), &[("short", key(2, |key| key.expires = Some(until)))]);
    let (response, took) = during(&world, "short", &path(&wallet(2)), AFTER, || {}).await;
    assert!(took <= SOON, "{took:?}");
    ends_for(&response, "INVALID_SESSION", "/errors/unauthorized");
}

#[tokio::test(start_paused = true)]
async fn a_lowered_quota_ends_an_open_stream() {
    let world = World::with(ApiLimits::default(), &[("poor", key(2, |_| {}))]);
    world.fill(&wallet(1), 0, trades(40), vec![]).await;
    let lower = || {
        let keys = [(KEY, key(1, |_| {})), ("poor", key(2, |key| key.quota = Some(10)))];
        world.keys.replace(ring(&keys));
    };
    let path = format!("{}?follow=1", path(&wallet(1)));
    let (response, took) = during(&world, "poor", &path, AFTER, lower).await;
    assert!(took <= SOON, "{took:?}");
    ends_for(&response, "QUOTA_EXCEEDED", "/errors/quota_exceeded");
}

/// A page that is sent in parts has no place for an error: it ends early, with a cursor.
#[tokio::test(start_paused = true)]
async fn a_revoked_key_ends_a_long_page() {
    let world = World::new();
    fill_upper(&world, &wallet(1)).await;
    let path = format!("{}?limit=5000", path(&wallet(1)));
    let revoke = || world.keys.replace(ring(&[]));
    let (response, took) = during(&world, KEY, &path, AFTER, revoke).await;
    assert!(took <= SOON, "{took:?}");
    let page = json(&response);
    assert_eq!(page["complete"], false);
    assert!(page["cursor"].is_string());
}

async fn post(world: &World, body: &str, headers: &[(&str, &str)]) -> Response<Bytes> {
    let mut request = warp::test::request().method("POST").path(ESTIMATE).body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.reply(&world.api.routes()).await
}

fn asked(wallet: &Wallet) -> String {
    format!("{{\"addresses\":[\"{}\"]}}", wallet.address)
}

/// Pages of other sites can send `text/plain` and forms without a preflight.
#[tokio::test(start_paused = true)]
async fn an_estimate_takes_json_alone() {
    let world = World::new();
    let body = asked(&wallet(1));
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "text/json", "application/jsonp"]
    {
        for key in [None, Some(("x-api-key", KEY))] {
            let headers: Vec<_> = [("content-type", kind)].into_iter().chain(key).collect();
            let response = post(&world, &body, &headers).await;
            assert_eq!(response.status(), 415, "{kind}: {}", text(&response));
            assert_eq!(json(&response)["type"], "/errors/unsupported_media_type");
        }
        sleep(Duration::from_secs(30)).await;
    }
    assert_eq!(post(&world, &body, &[("x-api-key", KEY)]).await.status(), 415);
    for kind in ["application/json", "Application/JSON; charset=utf-8"] {
        // Its node is silent, so that there is no estimate.
        assert_eq!(post(&world, &body, &[("content-type", kind)]).await.status(), 503);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_key_no_other_site_reads_an_estimate() {
    let world = World::new();
    let body = asked(&wallet(1));
    let json = ("content-type", "application/json");
    let origin = ("origin", "https://other.example");
    let without = post(&world, &body, &[json, origin]).await;
    assert_eq!(without.status(), 503);
    assert_eq!(header(&without, "access-control-allow-origin"), None);
    let with = post(&world, &body, &[json, origin, ("x-api-key", KEY)]).await;
    assert_eq!(header(&with, "access-control-allow-origin"), Some("*"));
}

#[tokio::test(start_paused = true)]
async fn without_a_key_stored_and_unknown_wallets_look_alike() {
    for node in [Node::Silent, Node::Refuses] {
        let mut seen = Vec::new();
        for at in 0..3 {
            let (history, limits) = (HistoryLimits::default(), ApiLimits::default());
            let world = World::on(node, history, limits, &[]);
            let (stored, part, unknown) = (wallet(1), wallet(2), wallet(3));
            world.fill(&stored, 0, trades(40), vec![]).await;
            fill_upper(&world, &part).await;
            let wallet = [stored, part, unknown][at];
            let headers = [("content-type", "application/json")];
            let began = Instant::now();
            let response = post(&world, &asked(&wallet), &headers).await;
            let body = text(&response).replace(&wallet.address.to_string(), "ADDRESS");
            seen.push((response.status(), body, began.elapsed()));
        }
        assert_eq!(seen[0], seen[2], "{node:?}");
        assert_eq!(seen[1], seen[2], "{node:?}");
    }
}

/// Sends bytes and reads to the end, or until nothing more comes.
async fn exchange(served: &Served, bytes: &str) -> String {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn requests_that_two_readers_would_read_differently_are_refused() {
    let world = World::new();
    let served = world.serve().await;
    let chunked = "transfer-encoding: chunked\r\n";
    let hidden = "0\r\n\r\nGET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let cases = [
        ("no host", "GET /healthz HTTP/1.1\r\n\r\n".to_owned()),
        ("two hosts", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: 127.0.0.1\r\n\r\n".into()),
        (
            "the same twice",
            "GET /healthz HTTP/1.1\r\nhost: localhost\r\nHost: localhost\r\n\r\n".into(),
        ),
        ("an empty host", "GET /healthz HTTP/1.1\r\nhost:\r\n\r\n".into()),
        (
            "a length before chunks",
            format!(
                "POST {ESTIMATE} HTTP/1.1\r\nhost: localhost\r\nContent-Length: 4\r\n{chunked}\r\n{hidden}"
            ),
        ),
        (
            "a length behind chunks",
            format!(
                "POST {ESTIMATE} HTTP/1.1\r\nhost: localhost\r\n{chunked}content-length:4\r\n\r\n{hidden}"
            ),
        ),
        (
            "behind another request",
            format!(
                "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\nPOST {ESTIMATE} HTTP/1.1\r\n\
                 host: localhost\r\ncontent-length: 4\r\n{chunked}\r\n{hidden}"
            ),
        ),
    ];
    for (name, request) in cases {
        let answer = exchange(&served, &request).await;
        let mut answers = answer.split("HTTP/1.1 ").skip(1);
        let last = if name == "behind another request" { answers.nth(1) } else { answers.next() };
        let last = last.unwrap_or_else(|| panic!("{name}: {answer}"));
        assert!(last.starts_with("400 "), "{name}: {answer}");
        assert!(last.contains("connection: close"), "{name}: {answer}");
        assert_eq!(answers.next(), None, "{name}: {answer}");
    }
    // Each header alone is valid; HTTP/1.0 needs no host.
    let body = asked(&wallet(1));
    let head = format!(
        "POST {ESTIMATE} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-api-key: {KEY}\r\ncontent-type: application/json\r\n"
    );
    let length = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    let pieces = format!("{head}{chunked}\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for request in [length, pieces, "GET /healthz HTTP/1.0\r\n\r\n".to_owned()] {
        let answer = exchange(&served, &request).await;
        // Its node is silent, so that there is no estimate.
        let status = if request.starts_with("GET") { " 200 OK\r\n" } else { " 503 Service" };
        assert!(answer.contains(status), "{request}: {answer}");
    }
    drop(served.stop().await);
    world.close().await;
}

/// A site whose name resolves to this machine (DNS rebinding) sends its own name as the host.
#[tokio::test]
async fn a_server_on_loopback_answers_to_loopback_names_alone() {
    let world = World::new();
    let served = world.serve().await;
    let port = served.address.port();
    let ask = |host: String| {
        format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")
    };
    for host in ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "[::1]", "blotter.localhost"]
    {
        for host in [host.to_owned(), format!("{host}:{port}"), format!("{host}:1")] {
            let answer = exchange(&served, &ask(host.clone())).await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{host}: {answer}");
        }
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "x",
        "[::2]",
        "localhost@evil.example",
    ] {
        for host in [host.to_owned(), format!("{host}:{port}")] {
            let answer = exchange(&served, &ask(host.clone())).await;
            let is_refused =
                answer.starts_with("HTTP/1.1 421 ") || answer.starts_with("HTTP/1.1 400 ");
            assert!(is_refused, "{host}: {answer}");
            assert!(!answer.contains("access-control-allow-origin"), "{host}: {answer}");
        }
    }
    let absolute =
        "GET http://evil.example/healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let answer = exchange(&served, absolute).await;
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
    assert!(answer.contains("/errors/misdirected"), "{answer}");
    drop(served.stop().await);
    world.close().await;
}

/// Opens a connection from an address of loopback.
async fn from(address: [u8; 4], served: &Served) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((address, 0).into()).unwrap();
    socket.connect(served.address).await.unwrap()
}

/// Whether a whole request is answered 200.
async fn is_served(mut stream: TcpStream) -> bool {
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    answer.starts_with(b"HTTP/1.1 200 ")
}

#[tokio::test(start_paused = true)]
async fn half_open_connections_of_one_address_leave_room_for_others() {
    let most = ApiLimits::default().connections_per_address_max;
    let limits = ApiLimits { connections_max: most, ..ApiLimits::default() };
    let world = World::with(limits, &[]);
    let served = world.serve().await;
    let mut held = Vec::new();
    for at in 0..most {
        let mut stream = from([127, 0, 0, 1], &served).await;
        if at % 2 == 0 {
            let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: l").await;
        }
        held.push(stream);
    }
    // Connections of a burst have the time to send a request.
    sleep(ApiLimits::default().half_open_grace + Duration::from_secs(1)).await;
    assert!(is_served(from([127, 0, 0, 2], &served).await).await);
    assert!(is_served(from([127, 0, 0, 1], &served).await).await);
    drop(held);
    drop(served.stop().await);
    world.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_misspelt_parameter_is_named_and_others_pass() {
    let world = World::new();
    world.fill(&wallet(1), 0, trades(3), vec![]).await;
    let path = path(&wallet(1));
    let near = [
        ("limt", "limit"),
        ("Limit", "limit"),
        ("limits", "limit"),
        ("LIMIT", "limit"),
        ("lmiit", "limit"),
        ("cursr", "cursor"),
        ("curser", "cursor"),
        ("cusror", "cursor"),
        ("crusr", "cursor"),
        ("chian", "chain"),
        ("chains", "chain"),
        ("tokens", "token"),
        ("sides", "side"),
        ("dexs", "dex"),
        ("form", "from"),
        ("From", "from"),
        ("TO", "to"),
        ("too", "to"),
        ("folow", "follow"),
        ("fellows", "follow"),
    ];
    for (wrong, right) in near {
        for query in [format!("{wrong}=1"), format!("limit=2&{wrong}"), format!("x=1&{wrong}=")] {
            let response = world.get(&format!("{path}?{query}")).await;
            assert_eq!(response.status(), 400, "{query}: {}", text(&response));
            let body = json(&response);
            assert_eq!(body["type"], "/errors/invalid_parameter");
            let said = body["detail"].as_str().unwrap();
            assert!(said.contains(&format!("{wrong:?}")) && said.contains(right), "{said}");
        }
    }
    for other in [
        "t",
        "_",
        "_t",
        "o",
        "v",
        "ts",
        "do",
        "api_key",
        "key",
        "page",
        "offset",
        "format",
        "sort",
        "order",
        "address",
        "time",
        "",
        "x%ff",
        "limitless",
        "fromage",
        "hex",
        "ref",
    ] {
        let response = world.get(&format!("{path}?limit=2&{other}=1")).await;
        assert_eq!(response.status(), 200, "{other}: {}", text(&response));
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_chain_and_an_empty_cursor_are_as_absent() {
    let world = World::new();
    world.fill(&wallet(1), 0, trades(3), vec![]).await;
    let path = path(&wallet(1));
    let plain = world.get(&format!("{path}?limit=2")).await;
    for query in ["chain=&limit=2", "cursor=&limit=2", "chain=&cursor=&limit=2", "chain&limit=2"] {
        let response = world.get(&format!("{path}?{query}")).await;
        assert_eq!((response.status().as_u16(), text(&response)), (200, text(&plain)), "{query}");
    }
}

/// A node's host is not shown to callers, who see a number instead.
#[tokio::test(start_paused = true)]
async fn no_caller_learns_the_host_of_a_node() {
    let world = World::on(Node::Refuses, HistoryLimits::default(), ApiLimits::default(), &[]);
    let page = world.get(&format!("{}?limit=5", path(&wallet(1)))).await;
    assert_eq!(page.status(), 503, "{}", text(&page));
    let stream = world.get(&path(&wallet(1))).await;
    let last = lines(&stream).pop().unwrap();
    assert_eq!(last["error"]["type"], "/errors/upstream_unavailable", "{last}");
    assert_eq!(last["error"]["retryable"], true, "{last}");
    for answer in [text(&page), text(&stream)] {
        assert!(!answer.contains("node.test"), "{answer}");
        assert!(answer.contains("node 1"), "{answer}");
    }
}

/// An address that is not a wallet is rejected before the first byte if that is known by then.
#[tokio::test(start_paused = true)]
async fn an_address_that_is_no_wallet_ends_a_stream_for_good() {
    let world = crate::support::world::Build::default().world();
    let keys = blotter::api::Keys::new(ring(&[(KEY, key(1, |_| {}))]));
    let parts = blotter::api::ApiParts {
        history: world.history.clone(),
        keys,
        limits: ApiLimits::default(),
        seed: 1,
    };
    let api = blotter::api::Api::new(parts);
    let program = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
    let address = Address::parse(blotter::domain::Family::Solana, program).unwrap();
    let wallet = Wallet { chain: ChainId(1), address };
    let ask = || {
        let request = warp::test::request().path(&path(&wallet)).header("x-api-key", KEY);
        let routes = api.routes();
        async move { request.reply(&routes).await }
    };
    let at_once = ask().await;
    assert_eq!(at_once.status(), 400, "{}", text(&at_once));
    assert_eq!(json(&at_once)["type"], "/errors/not_a_wallet");
    world.set_faults(blotter::demo::Faults::latency(Duration::from_secs(4)));
    let late = ask().await;
    if late.status() == 200 {
        let last: Value = lines(&late).pop().unwrap();
        assert_eq!(last["error"]["type"], "/errors/not_a_wallet", "{last}");
        assert_eq!(last["error"]["retryable"], false, "{last}");
    }
    let _ = world.add("other", WalletPlan::trades(1));
}
