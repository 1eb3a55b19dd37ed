//! The bytes on the wire, hand-written from the specification, and the server's behaviour towards
//! slow, silent and too many clients.

use std::time::Duration;

use blotter::api::{ApiLimits, Drained};
use blotter::domain::{
    Address, Cursor, Family, FilterTag, Position, Side, Trade, TradeKey, TxId, Units, UnixSeconds,
    ValueSource, Wallet,
};
use blotter::history::HistoryLimits;
use blotter::store::TokenRecord;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::served::{HEAD, SOL, World, header, path, read_until, text, trades, wallet};
use crate::support::source::Node;

const OWNER: &str = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU";
const BONK: &str = "DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263";
const NAMELESS: &str = "So11111111111111111111111111111111111111112";

fn solana(text: &str) -> Address {
    Address::parse(Family::Solana, text).unwrap()
}

fn owner() -> Wallet {
    Wallet { chain: SOL, address: solana(OWNER) }
}

fn known_trade(time: u32, side: Side, mint: &str, tx: u8) -> Trade {
    let height = u64::from(time) - 1_699_999_000;
    let key =
        TradeKey { time: UnixSeconds(time), height, index: 0, tx: TxId::solana(&[tx; 64]), leg: 0 };
    let venue = "Raydium".into();
    let valued = ValueSource::Unknown;
    Trade { key, side, mint: solana(mint), units: None, native: None, valued, venue }
}

/// A sell of BONK in full and an older buy of which little is known.
fn two_trades() -> Vec<Trade> {
    let sell = Trade {
        units: Some(Units::from(123_456_789_u64)),
        native: Some(Units::from(1_500_000_000_u64)),
        valued: ValueSource::Direct,
        ..known_trade(1_700_000_100, Side::Sell, BONK, 1)
    };
    let buy = Trade {
        units: Some(Units::from(5)),
        venue: "Orca \"Whirlpool\"".into(),
        ..known_trade(1_700_000_000, Side::Buy, NAMELESS, 2)
    };
    vec![sell, buy]
}

async fn world_of_two() -> World {
    let world = World::new();
    let (mint, symbol) = (solana(BONK), Some("BONK".into()));
    let bonk = TokenRecord { chain: SOL, mint, symbol, decimals: Some(5), asked_at: None };
    world.fill(&owner(), 0, two_trades(), vec![bonk]).await;
    world
}

fn sell_line() -> String {
    let signature = bs58::encode([1; 64]).into_string();
    format!(
        "{{\"signature\":\"{signature}\",\"side\":\"sell\",\"token\":\"BONK\",\
         \"tokenMint\":\"{BONK}\",\"amountSol\":1.5,\"amount\":1234.56789,\"dex\":\"Raydium\",\
         \"blockTime\":\"2023-11-14T22:15:00+00:00\"}}"
    )
}

fn buy_line() -> String {
    let signature = bs58::encode([2; 64]).into_string();
    format!(
        "{{\"signature\":\"{signature}\",\"side\":\"buy\",\"token\":\"So11…1112\",\
         \"tokenMint\":\"{NAMELESS}\",\"amountSol\":null,\"amount\":null,\
         \"dex\":\"Orca \\\"Whirlpool\\\"\",\"blockTime\":\"2023-11-14T22:13:20+00:00\"}}"
    )
}

/// The cursor behind one of the two trades.
fn cursor_after(at: usize) -> String {
    cursor(at, None)
}

/// The same of a walk that began at the newest row.
fn cursor_from_the_top(at: usize) -> String {
    cursor(at, Some(u64::try_from(at).unwrap() + 1))
}

fn cursor(at: usize, passed: Option<u64>) -> String {
    let position = Position::After(two_trades()[at].key);
    let filter = FilterTag::default();
    Cursor { head: Some(HEAD), filter, live: false, position, passed }.encode(&owner())
}

#[tokio::test]
async fn a_stream() {
    let world = world_of_two().await;
    let response = world.get(&path(&owner())).await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        text(&response),
        format!(
            "{{\"trades\":[{},{}],\"cursor\":\"{}\"}}\n\
             {{\"complete\":true,\"tradeCount\":2,\"wallet\":\"{OWNER}\",\
             \"firstTrade\":\"2023-11-14T22:13:20+00:00\"}}\n",
            sell_line(),
            buy_line(),
            cursor_from_the_top(1),
        )
    );
    let expected = [
        ("content-type", "application/x-ndjson; charset=utf-8"),
        ("cache-control", "no-store, no-transform"),
        ("x-accel-buffering", "no"),
        ("blotter-as-of", "1000000; 2026-11-21T07:05:51+00:00"),
        ("x-request-id", "00000000000000ab-1"),
    ];
    for (name, value) in expected {
        assert_eq!(header(&response, name), Some(value), "{name}");
    }
}

#[tokio::test]
async fn a_stream_from_a_cursor() {
    let world = world_of_two().await;
    let behind_first = format!("{}?cursor={}", path(&owner()), cursor_after(0));
    let last = format!(
        "{{\"complete\":true,\"tradeCount\":2,\"wallet\":\"{OWNER}\",\
         \"firstTrade\":\"2023-11-14T22:13:20+00:00\"}}\n"
    );
    assert_eq!(
        text(&world.get(&behind_first).await),
        format!("{{\"trades\":[{}],\"cursor\":\"{}\"}}\n{last}", buy_line(), cursor_after(1))
    );
    let behind_all = format!("{}?cursor={}", path(&owner()), cursor_after(1));
    assert_eq!(text(&world.get(&behind_all).await), last);
}

#[tokio::test]
async fn a_stream_of_a_wallet_without_trades() {
    let world = World::new();
    world.fill(&owner(), 0, vec![], vec![]).await;
    assert_eq!(
        text(&world.get(&path(&owner())).await),
        format!(
            "{{\"complete\":true,\"tradeCount\":0,\"wallet\":\"{OWNER}\",\"firstTrade\":null}}\n"
        )
    );
}

#[tokio::test]
async fn pages() {
    let world = world_of_two().await;
    let first = world.get(&format!("{}?limit=1", path(&owner()))).await;
    assert_eq!(
        text(&first),
        format!(
            "{{\"wallet\":\"{OWNER}\",\"pageSize\":1,\"trades\":[{}],\"complete\":true,\
             \"tradeCount\":2,\"totalPages\":2,\"cursor\":\"{}\"}}",
            sell_line(),
            cursor_from_the_top(0),
        )
    );
    let next = format!("{}?chain=sol&limit=1&cursor={}", path(&owner()), cursor_from_the_top(0));
    assert_eq!(header(&first, "link"), Some(&*format!("<{next}>; rel=\"next\"")));
    assert_eq!(header(&first, "content-type"), Some("application/json"));
    assert_eq!(header(&first, "content-length"), Some(&*first.body().len().to_string()));
    let last = world.get(&next).await;
    assert_eq!(
        text(&last),
        format!(
            "{{\"wallet\":\"{OWNER}\",\"pageSize\":1,\"trades\":[{}],\"complete\":true,\
             \"tradeCount\":2,\"totalPages\":2}}",
            buy_line(),
        )
    );
    assert_eq!(header(&last, "link"), None);
}

#[tokio::test]
async fn a_page_of_a_wallet_without_trades() {
    let world = World::new();
    world.fill(&owner(), 0, vec![], vec![]).await;
    assert_eq!(
        text(&world.get(&format!("{}?limit", path(&owner()))).await),
        format!(
            "{{\"wallet\":\"{OWNER}\",\"pageSize\":1000,\"trades\":[],\"complete\":true,\
             \"tradeCount\":0,\"totalPages\":0}}"
        )
    );
}

#[tokio::test]
async fn an_error_is_both_forms_in_one() {
    let world = World::new();
    let path = format!("{}?limit=many", path(&owner()));
    let authorization = ("authorization", "Bearer key-without-limits");
    let response = world.send("GET", &path, &[authorization, ("x-request-id", "mine-1")]).await;
    assert_eq!(response.status(), 400);
    let message = "parameter limit: expected an integer; values below 1 count as 1, \
        there is no maximum";
    assert_eq!(
        text(&response),
        format!(
            "{{\"error\":{{\"code\":\"VALIDATION_ERROR\",\"message\":\"{message}\",\
             \"timestamp\":\"2026-11-21T07:05:51+00:00\",\"requestId\":\"mine-1\"}},\
             \"type\":\"/errors/invalid_limit\",\"title\":\"Invalid limit\",\"status\":400,\
             \"detail\":\"{message}\",\"instance\":\"/v1/wallets/{OWNER}/history\"}}"
        )
    );
    assert_eq!(header(&response, "content-type"), Some("application/problem+json"));
    assert_eq!(header(&response, "x-request-id"), Some("mine-1"));
}

/// Limits of time short enough to wait for.
fn short_limits() -> ApiLimits {
    ApiLimits {
        write_wait_max: Duration::from_millis(300),
        header_wait_max: Duration::from_millis(300),
        drain_wait_max: Duration::from_secs(5),
        ..ApiLimits::default()
    }
}

#[tokio::test]
async fn a_stream_opens_before_there_is_anything_to_send() {
    let world = World::new();
    let served = world.serve().await;
    let mut stream = served.open(&path(&wallet(7))).await;
    let head = read_until(&mut stream, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    drop(stream);
    assert_eq!(served.stop().await.unwrap(), Drained { cut: 0 });
    world.close().await;
}

#[tokio::test]
async fn a_stop_ends_streams_with_a_line_to_resume_from() {
    let world = World::with(short_limits(), &[]);
    // Its lower half is never loaded.
    world.fill(&wallet(7), 10, trades(20).into_iter().take(5).collect(), vec![]).await;
    let served = world.serve().await;
    let mut stream = served.open(&path(&wallet(7))).await;
    let begun = read_until(&mut stream, "}\n").await;
    let idle = TcpStream::connect(served.address).await.unwrap();
    let address = served.address;
    let ended = served.stop();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    let last = rest.lines().find(|line| line.starts_with('{')).unwrap();
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["complete"], false);
    assert_eq!(last["tradeCount"], 5);
    assert_eq!(last["error"]["code"], "SHUTTING_DOWN");
    let cursor = last["cursor"].as_str().unwrap();
    assert!(begun.contains(cursor), "it is the cursor behind the last row");
    assert!(rest.ends_with("0\r\n\r\n"), "the body ends as HTTP has it");
    assert_eq!(ended.await.unwrap(), Drained { cut: 0 });
    assert!(TcpStream::connect(address).await.is_err(), "nothing more is accepted");
    drop(idle);
    world.close().await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_dropped() {
    let world = World::with(short_limits(), &[]);
    world.fill(&wallet(3), 0, trades(30_000), vec![]).await;
    let served = world.serve().await;
    let mut stream = served.open(&path(&wallet(3))).await;
    // A history of some 10 MB does not fit into the system's buffers.
    while metric(&world, "blotter_http_slow_readers_total").await == 0 {
        tokio::task::yield_now().await;
    }
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text).await;
    assert!(!text.ends_with(b"0\r\n\r\n"), "the answer was cut");
    assert_eq!(metric(&world, "blotter_http_streams").await, 0);
    assert_eq!(served.stop().await.unwrap(), Drained { cut: 0 });
    world.close().await;
}

#[tokio::test]
async fn what_does_not_end_in_time_is_cut() {
    let limits = ApiLimits {
        write_wait_max: Duration::from_secs(600),
        drain_wait_max: Duration::from_millis(200),
        ..ApiLimits::default()
    };
    let world = World::with(limits, &[]);
    world.fill(&wallet(3), 0, trades(30_000), vec![]).await;
    let served = world.serve().await;
    let mut stream = served.open(&path(&wallet(3))).await;
    read_until(&mut stream, "\r\n\r\n").await;
    // The end of the answer must not fit into the system's buffers either.
    let (mut written, mut still) = (0, 0);
    while still < 100 {
        tokio::task::yield_now().await;
        let now = metric(&world, "blotter_http_trades_total").await;
        still = if now == written && now > 0 { still + 1 } else { 0 };
        written = now;
    }
    assert_eq!(served.stop().await.unwrap(), Drained { cut: 1 });
    world.close().await;
}

#[tokio::test]
async fn lines_that_are_ready_together_travel_together() {
    let steps_of_one = HistoryLimits { rows_per_step_max: 1, ..HistoryLimits::default() };
    let world = World::on(Node::Silent, steps_of_one, ApiLimits::default(), &[]);
    world.fill(&wallet(3), 0, trades(100), vec![]).await;
    let served = world.serve().await;
    let text = served.get(&path(&wallet(3))).await;
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    assert_eq!(body.matches("\"trades\":[{").count(), 100);
    // A chunk has two line breaks of HTTP; some 45 kB fit into one, and the last one is empty.
    assert_eq!(body.matches("\r\n").count() / 2, 2);
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_its_walk() {
    let world = World::new();
    let served = world.serve().await;
    for query in ["", "?limit=5"] {
        let stream = served.open(&format!("{}{query}", path(&wallet(7)))).await;
        while metric(&world, "blotter_walks").await == 0 {
            tokio::task::yield_now().await;
        }
        drop(stream);
        while metric(&world, "blotter_walks").await > 0 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(metric(&world, "blotter_http_streams").await, 0);
}

#[tokio::test]
async fn headers_that_do_not_arrive_end_the_connection() {
    let world = World::with(short_limits(), &[]);
    let served = world.serve().await;
    for sent in ["", "GET / HTTP/1.1\r\nhost: localhost\r\nx: "] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "", "after {sent:?}");
    }
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let world = World::new();
    let served = world.serve().await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let long = "x".repeat(ApiLimits::default().header_bytes_max);
    let request = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let status = read_until(&mut stream, "\r\n").await;
    assert!(status.starts_with("HTTP/1.1 431"), "{status}");
}

#[tokio::test]
async fn one_connection_too_many_gets_an_answer() {
    let world = World::with(ApiLimits { connections_max: 1, ..ApiLimits::default() }, &[]);
    let served = world.serve().await;
    let first = served.open(&path(&wallet(7))).await;
    let mut second = TcpStream::connect(served.address).await.unwrap();
    let mut text = String::new();
    second.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("\r\nretry-after: 5"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/problem+json"), "{head}");
    assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["error"]["code"], "OVERLOADED");
    assert_eq!(body["type"], "/errors/overloaded");
    let id = body["error"]["requestId"].as_str().unwrap();
    assert!(head.contains(&format!("\r\nx-request-id: {id}")), "{head}");
    drop(first);
    // The place is free again once the server has seen the first one go.
    while served.get("/healthz").await.starts_with("HTTP/1.1 503 ") {
        tokio::task::yield_now().await;
    }
    assert_eq!(served.stop().await.unwrap(), Drained { cut: 0 });
    world.close().await;
}

/// Connects from an address of this machine; Linux has all of 127.0.0.0/8.
#[cfg(target_os = "linux")]
async fn connect_from(client: [u8; 4], server: std::net::SocketAddr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((client, 0).into()).unwrap();
    socket.connect(server).await.unwrap()
}

/// Whether a new connection from there is answered.
#[cfg(target_os = "linux")]
async fn is_served(client: [u8; 4], server: std::net::SocketAddr) -> bool {
    let mut stream = connect_from(client, server).await;
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    // One that is refused may be closed before it has said anything.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    answer.starts_with(b"HTTP/1.1 200 ")
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn one_address_cannot_hold_all_connections() {
    const GREEDY: [u8; 4] = [127, 0, 0, 2];
    const OTHER: [u8; 4] = [127, 0, 0, 3];
    let limits = ApiLimits {
        connections_max: 8,
        connections_per_address_max: 3,
        trusted_proxies: "127.0.0.4".parse().unwrap(),
        ..ApiLimits::default()
    };
    let world = World::with(limits, &[]);
    let served = world.serve().await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(connect_from(GREEDY, served.address).await);
    }
    assert!(!is_served(GREEDY, served.address).await);
    assert!(is_served(OTHER, served.address).await);
    assert_eq!(metric(&world, "blotter_http_connections_refused_total").await, 1);
    // Connections of a proxy are not counted by address: only the shared limit remains.
    for _ in 0..5 {
        held.push(connect_from([127, 0, 0, 4], served.address).await);
    }
    while metric(&world, "blotter_http_connections").await < 8 {
        tokio::task::yield_now().await;
    }
    assert!(!is_served(OTHER, served.address).await);
    // A client that leaves frees a place, for its address too.
    drop(held);
    while !is_served(GREEDY, served.address).await {
        tokio::task::yield_now().await;
    }
    assert_eq!(served.stop().await.unwrap(), Drained { cut: 0 });
    world.close().await;
}

#[tokio::test]
async fn one_connection_answers_many_requests() {
    let world = world_of_two().await;
    let served = world.serve().await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    for _ in 0..3 {
        stream.write_all(b"HEAD /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let head = read_until(&mut stream, "\r\n\r\n").await;
        assert!(head.contains("content-length: 15\r\n"), "{head}");
    }
    let mut old = TcpStream::connect(served.address).await.unwrap();
    old.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await.unwrap();
    let mut text = String::new();
    old.read_to_string(&mut text).await.unwrap();
    assert!(text.ends_with("\r\n\r\n{\"status\":\"ok\"}"), "{text}");
}

async fn metric(world: &World, name: &str) -> u64 {
    let response = world.get("/metrics").await;
    let line = text(&response).lines().find(|line| line.split(' ').next() == Some(name));
    line.and_then(|line| line.rsplit(' ').next()).unwrap().parse().unwrap()
}
