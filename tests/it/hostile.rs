//! The real server against malicious clients: every request is rejected with a 4xx status or not
//! answered, and all other clients are still served.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::support::program::{PATIENCE, Place, Server};

/// Sends bytes, returns the first status answered; `None` where the connection just ended.
fn send(server: &Server, bytes: &[u8]) -> Option<u16> {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The server may close the connection before it has read everything.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let status = text.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok();
    assert!(text.matches("HTTP/1.1 ").count() == 1, "two answers to one request:\n{text}");
    status
}

fn demo(place: &Place) -> (Server, String, String) {
    let server = place.serve(&["demo", "--listen", "127.0.0.1:0", "--node", "127.0.0.1:0"]);
    let (key, wallet) = (server.printed("key"), server.printed("wallet"));
    (server, key, wallet)
}

/// The rows of a page, without its head, which may move from one page to the next.
fn trades(server: &Server, path: &str, key: &str) -> serde_json::Value {
    let page: serde_json::Value = serde_json::from_str(&server.get(path, key).body).unwrap();
    page["trades"].clone()
}

/// Named requests, each of which must be rejected.
fn requests(wallet: &str, key: &str) -> Vec<(&'static str, Vec<u8>)> {
    let history = format!("/v1/wallets/{wallet}/history");
    let auth = format!("host: localhost\r\nconnection: close\r\nx-api-key: {key}\r\n");
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\n{auth}\r\n").into_bytes();
    let raw = |head: &str, body: &str| format!("{head}\r\n{auth}{body}").into_bytes();
    let start = format!("GET {history}?limit=1 HTTP/1.1");
    let post = format!("POST {history} HTTP/1.1");
    vec![
        ("huge target", get(&format!("/{}", "a".repeat(100_000)))),
        ("huge header", raw(&start, &format!("x-a: {}\r\n\r\n", "a".repeat(100_000)))),
        ("many headers", raw(&start, &("x-a: b\r\n".repeat(1000) + "\r\n"))),
        (
            "two lengths",
            raw(&post, "content-length: 3\r\ncontent-length: 5\r\n\r\nabcGET / HTTP/1.1\r\n\r\n"),
        ),
        (
            "length and chunks",
            raw(
                &post,
                "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            ),
        ),
        ("odd chunks", raw(&post, "transfer-encoding: xchunked\r\n\r\n0\r\n\r\n")),
        (
            "endless chunk",
            raw(&post, "transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc"),
        ),
        ("negative length", raw(&post, "content-length: -1\r\n\r\n")),
        ("huge length", raw(&post, "content-length: 99999999999999999999\r\n\r\n")),
        ("folded header", raw(&start, "x-a: b\r\n c: d\r\n\r\n")),
        ("header without name", raw(&start, ": b\r\n\r\n")),
        ("space before colon", raw(&start, "content-length : 3\r\n\r\nabc")),
        ("nul in header", raw(&start, "x-a: \0\r\n\r\n")),
        ("no version", format!("GET {history}\r\n{auth}\r\n").into_bytes()),
        ("other protocol", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("http2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        (
            "invalid bytes",
            [b"GET /v1/\xff\xfe HTTP/1.1\r\n".as_slice(), auth.as_bytes(), b"\r\n"].concat(),
        ),
        ("encoded invalid bytes", get("/v1/wallets/%ff%fe/history")),
        ("encoded nul", get(&format!("/v1/wallets/{wallet}%00/history"))),
        ("dots", get("/v1/../../etc/passwd")),
        ("encoded dots", get("/v1/wallets/%2e%2e%2f%2e%2e%2fkeys.toml/history")),
        ("double slash", get(&format!("//v1//wallets/{wallet}/history"))),
        ("another host's target", get("http://169.254.169.254/latest")),
        (
            "authority form",
            b"CONNECT example.com:443 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
                .to_vec(),
        ),
        ("two limits", get(&format!("{history}?limit=1&limit=2"))),
        ("two cursors", get(&format!("{history}?cursor=a&cursor=b"))),
        ("two chains", get(&format!("{history}?chain=sol&chain=eth"))),
        ("fraction", get(&format!("{history}?limit=1e3"))),
        ("percent cut", get(&format!("{history}?cursor=%"))),
        ("bad percent", get(&format!("{history}?cursor=%zz%ff"))),
        ("huge cursor", get(&format!("{history}?cursor={}", "A".repeat(20_000)))),
        ("key in lowercase", raw(&start, "").into_iter().map(|b| b.to_ascii_lowercase()).collect()),
        ("delete", raw(&format!("DELETE {history} HTTP/1.1"), "\r\n")),
        ("trace", raw(&format!("TRACE {history} HTTP/1.1"), "\r\n")),
        ("own method", raw(&format!("B{} {history} HTTP/1.1", "x".repeat(5000)), "\r\n")),
    ]
}

/// Heads and bodies that a proxy could parse as other requests than the server (smuggling).
fn smuggled(wallet: &str, key: &str) -> Vec<(&'static str, Vec<u8>)> {
    let history = format!("/v1/wallets/{wallet}/history");
    let auth = format!("host: localhost\r\nconnection: close\r\nx-api-key: {key}\r\n");
    let raw = |head: &str, body: &str| format!("{head}\r\n{auth}{body}").into_bytes();
    let start = format!("GET {history}?limit=1 HTTP/1.1");
    let post = format!("POST {history} HTTP/1.1");
    vec![
        ("chunked twice", raw(&post, "transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n")),
        (
            "chunks of another name first",
            raw(
                &post,
                "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            ),
        ),
        (
            "chunks with a space in their name",
            raw(&post, "transfer-encoding : chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
        ),
        (
            "vertical tab before chunked",
            raw(&post, "transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
        ),
        (
            "chunks in the old version",
            raw(
                &format!("POST {history} HTTP/1.0"),
                "transfer-encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            ),
        ),
        ("length with a sign", raw(&post, "content-length: +3\r\n\r\nabc")),
        ("length in hex", raw(&post, "content-length: 0x3\r\n\r\nabc")),
        ("two lengths in one", raw(&post, "content-length: 3, 5\r\n\r\nabc")),
        (
            "chunk with a long extension",
            raw(
                &post,
                &format!("transfer-encoding: chunked\r\n\r\n1;{}\r\na", "x".repeat(100_000)),
            ),
        ),
        (
            "chunk of minus one",
            raw(&post, "transfer-encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n"),
        ),
        (
            "endless trailers",
            raw(
                &post,
                &format!("transfer-encoding: chunked\r\n\r\n0\r\n{}", "a: b\r\n".repeat(20_000)),
            ),
        ),
        ("a line feed alone in a header", raw(&start, "x-a: b\nx-b: c\r\r\n\r\n")),
        ("two keys", raw(&start, &format!("x-api-key: {key}\r\n\r\n"))),
        (
            "two bearers",
            raw(
                &start,
                &format!("authorization: Bearer {key}\r\nauthorization: Bearer {key}\r\n\r\n"),
            ),
        ),
        (
            "upgrade to another protocol",
            raw(&start, "x-api-key: x\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n"),
        ),
    ]
}

/// Paths and parameters with a special meaning in other software.
fn tricks(wallet: &str, key: &str) -> Vec<(&'static str, Vec<u8>)> {
    let history = format!("/v1/wallets/{wallet}/history");
    let auth = format!("host: localhost\r\nconnection: close\r\nx-api-key: {key}\r\n");
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\n{auth}\r\n").into_bytes();
    vec![
        ("a header's end in the target", get(&format!("{history}%0d%0ax-a:%20b?limit=x"))),
        ("overlong dots", get("/v1/wallets/%c0%ae%c0%ae/history")),
        ("dots encoded twice", get("/v1/wallets/%252e%252e/history")),
        ("backslashes", get("/v1\\wallets\\..\\history")),
        ("encoded slash", get(&format!("/v1%2fwallets%2f{wallet}%2fhistory"))),
        ("a parameter of the path", get(&format!("/v1/wallets/{wallet};a=b/history"))),
        ("letters of full width", get("/v1/wallets/%ef%bc%8e%ef%bc%8e/history")),
        ("a wallet of a megabyte", get(&format!("/v1/wallets/{}/history", "1".repeat(30_000)))),
        ("a thousand limits", get(&format!("{history}?{}", "limit=1&".repeat(1000)))),
        ("limit below zero", get(&format!("{history}?limit=1&limit=-1"))),
        ("a limit of letters", get(&format!("{history}?limit=%F0%9F%92%A9"))),
    ]
}

#[test]
fn malformed_requests_are_refused_and_other_clients_are_served_on() {
    let place = Place::new();
    let (server, key, wallet) = demo(&place);
    let good = format!("/v1/wallets/{wallet}/history?limit=3");
    let rows = || trades(&server, &good, &key);
    let before = rows();
    assert_eq!(before.as_array().map(Vec::len), Some(3));
    let mut statuses = Vec::new();
    let all = [requests(&wallet, &key), smuggled(&wallet, &key), tricks(&wallet, &key)].concat();
    for (name, bytes) in all {
        let status = send(&server, &bytes);
        assert!(status.is_none_or(|s| (400..500).contains(&s)), "{name}: {status:?}");
        statuses.push((name, status));
        assert_eq!(rows(), before, "after {name}");
    }
    assert!(statuses.iter().filter(|(_, s)| s.is_some()).count() > 45, "{statuses:?}");
    assert!(!place.log("demo").contains("panicked"), "{}", place.log("demo"));
}

#[test]
fn bodies_that_no_route_takes_are_not_read() {
    let place = Place::new();
    let (server, key, wallet) = demo(&place);
    // Ten gigabytes announced as a compressed body: the answer does not wait for them.
    let head = format!(
        "GET /v1/wallets/{wallet}/history?limit=1 HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n\
         content-encoding: gzip\r\ncontent-length: 10000000000\r\n\r\n"
    );
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&[0x1f, 0x8b, 8, 0]).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert!([b"HTTP/1.1 200", b"HTTP/1.1 400", b"HTTP/1.1 413"].contains(&&answer), "{answer:?}");
}

#[test]
fn a_cursor_with_any_bit_turned_is_refused() {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let place = Place::new();
    let (server, key, wallet) = demo(&place);
    let history = format!("/v1/wallets/{wallet}/history?limit=2");
    let page: serde_json::Value = serde_json::from_str(&server.get(&history, &key).body).unwrap();
    let cursor = engine.decode(page["cursor"].as_str().unwrap()).unwrap();
    let mut tried = 0;
    for bit in 0..cursor.len() * 8 {
        let mut turned = cursor.clone();
        turned[bit / 8] ^= 1 << (bit % 8);
        let answer = server.get(&format!("{history}&cursor={}", engine.encode(&turned)), &key);
        assert_eq!(answer.status, 400, "bit {bit}: {}", answer.body);
        tried += 1;
    }
    assert!(tried > 500);
    // The same key with one wrong letter, at each position.
    for at in 0..key.len() {
        let mut guess = key.clone().into_bytes();
        guess[at] = if guess[at] == b'x' { b'y' } else { b'x' };
        assert_eq!(server.get(&history, std::str::from_utf8(&guess).unwrap()).status, 401);
    }
}

#[test]
fn idle_and_half_open_connections_and_streams_opened_in_a_loop_delay_no_client() {
    let place = Place::new();
    let (server, key, wallet) = demo(&place);
    let good = format!("/v1/wallets/{wallet}/history");
    server.get(&good, &key);
    // From the store, so that its rows are the same each time; only the head goes on.
    let rows = |body: &str| -> Vec<serde_json::Value> {
        let lines = body.lines().filter(|line| !line.is_empty());
        let parsed = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        parsed.flat_map(|line| line["trades"].as_array().cloned().unwrap_or_default()).collect()
    };
    let whole = rows(&server.get(&good, &key).body);
    let connect = || TcpStream::connect(&server.address).unwrap();
    let mut held: Vec<TcpStream> = (0..150).map(|_| connect()).collect();
    for (at, stream) in held.iter_mut().enumerate() {
        let part = format!("GET {good} HTTP/1.1\r\nhost: localhost\r\nx-a: ");
        let _ = stream.write_all(&part.as_bytes()[..at % part.len()]);
    }
    // Opened and dropped at once, a thousand times; none of them stays counted.
    for _ in 0..1000 {
        let mut stream = connect();
        let request = format!("GET {good} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
    }
    let started = std::time::Instant::now();
    loop {
        let answer = server.get(&good, &key);
        if answer.status == 200 {
            assert_eq!(rows(&answer.body), whole);
            break;
        }
        assert_eq!(answer.status, 429, "{}", answer.body);
        assert!(started.elapsed() < PATIENCE, "dropped streams stay counted");
    }
}

/// What a proxy in front takes for a body is not taken for a request here, and a rejected request
/// leaves nothing behind for the next one on the connection.
#[test]
fn a_request_hidden_in_a_body_is_never_answered() {
    let place = Place::new();
    let (server, key, wallet) = demo(&place);
    let hidden = "GET /healthz HTTP/1.1\r\nhost: hidden\r\n\r\n";
    let next = "GET /v1/chains HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let history = format!("/v1/wallets/{wallet}/history?limit=1");
    for (name, framing) in [
        ("length", format!("content-length: {}\r\n\r\n{hidden}", hidden.len())),
        (
            "chunks",
            format!(
                "transfer-encoding: chunked\r\n\r\n{:x}\r\n{hidden}\r\n0\r\n\r\n",
                hidden.len()
            ),
        ),
        (
            "chunks and a length",
            format!(
                "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{hidden}\r\n0\r\n\r\n",
                hidden.len()
            ),
        ),
    ] {
        for method in ["GET", "POST", "HEAD", "DELETE"] {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let first =
                format!("{method} {history} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n");
            let _ = stream.write_all(format!("{first}{framing}{next}").as_bytes());
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            let text = String::from_utf8_lossy(&answer);
            assert!(!text.contains("\"status\":\"ok\""), "{name}, {method}:\n{text}");
            assert!(text.matches("HTTP/1.1 ").count() <= 2, "{name}, {method}:\n{text}");
        }
    }
}

/// As many connections as the system allows two processes: every second one sends only a part of a
/// head, the rest have sent one request and stay open.
#[test]
fn thousands_of_idle_and_half_open_connections_delay_no_client() {
    let place = Place::new().variable("BLOTTER_SERVER_CONNECTIONS_PER_ADDRESS", "0");
    let (server, key, wallet) = demo(&place);
    let good = format!("/v1/wallets/{wallet}/history?limit=3");
    let rows = || trades(&server, &good, &key);
    let page = rows();
    let open = std::process::Command::new("sh").args(["-c", "ulimit -n"]).output().unwrap();
    let open: usize = String::from_utf8_lossy(&open.stdout).trim().parse().unwrap_or(3000);
    let many = 3000.min(open.saturating_sub(300));
    let mut held = Vec::new();
    for at in 0..many {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let whole = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-a: \r\n\r\n";
        let part = if at % 2 == 0 { at % (whole.len() - 4) } else { whole.len() };
        stream.write_all(&whole.as_bytes()[..part]).unwrap();
        held.push(stream);
        if at % 500 == 499 {
            assert_eq!(rows(), page, "next to {at}");
        }
    }
    assert_eq!(rows(), page);
    let metrics = server.get("/metrics", &key).body;
    let line = metrics.lines().find(|line| line.starts_with("blotter_http_connections ")).unwrap();
    let counted: usize = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(counted >= many, "{line}");
}

/// A client that tries keys needs a new connection for every few of them.
#[test]
fn a_client_that_guesses_keys_is_disconnected() {
    let place = Place::new();
    let (server, key, wallet) = demo(&place);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let guess = |key: &str| {
        format!(
            "GET /v1/wallets/{wallet}/history?limit=1 HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n\r\n"
        )
    };
    for at in 0..100 {
        // The last ones find the connection closed.
        let _ = stream.write_all(guess(&format!("blt_guess{at}")).as_bytes());
    }
    let _ = stream.write_all(guess(&key).as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let refused = text.matches("HTTP/1.1 401").count();
    assert!((1..=10).contains(&refused), "{refused} guesses on one connection");
    assert!(!text.contains("HTTP/1.1 200"), "answered behind the guesses");
    assert_eq!(server.get(&format!("/v1/wallets/{wallet}/history?limit=1"), &key).status, 200);
}
