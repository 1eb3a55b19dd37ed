//! Hostile bodies, for the one route that reads a body and for those that read none, and heads and
//! bodies that come too slowly.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use blotter::api::ApiLimits;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};

use crate::support::program::{PATIENCE, Place, Server};
use crate::support::served::{KEY, Served, World, path, wallet};

const ESTIMATE: &str = "/v1/billing/estimate";
const OWNER: &str = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU";

fn demo(place: &Place) -> (Server, String) {
    let server = place.serve(&["demo", "--listen", "127.0.0.1:0"]);
    let key = server.printed("key");
    (server, key)
}

/// The status of what is answered to a request, and the answer; 0 where the connection just ended.
fn send(server: &Server, line: &str, headers: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}\r\n"
    );
    // The server may close the connection before it has read everything.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    (status.unwrap_or(0), text)
}

fn zipped(mebibytes: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![b'0'; 1 << 20];
    for _ in 0..mebibytes {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap()
}

/// The most memory that a process ever had, in KiB.
#[cfg(target_os = "linux")]
fn peak(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Bodies of clients are never decompressed: a compression bomb is invalid JSON.
#[cfg(target_os = "linux")]
#[test]
fn packed_bodies_are_not_unpacked() {
    let place = Place::new();
    let (server, key) = demo(&place);
    let post = |path: &str, coding: &str, body: &[u8]| {
        let headers = format!(
            "x-api-key: {key}\r\ncontent-encoding: {coding}\r\ncontent-length: {}\r\n",
            body.len()
        );
        send(&server, &format!("POST {path}"), &headers, body)
    };
    let asked = format!("{{\"addresses\":[\"{OWNER}\"]}}");
    assert_eq!(post(ESTIMATE, "identity", asked.as_bytes()).0, 200);
    let before = peak(&server);
    // Ten MiB within the length that is read, and a quarter of a GiB beyond it.
    let (small, huge) = (zipped(10), zipped(256));
    assert!(small.len() < ApiLimits::default().estimate_body_bytes_max && huge.len() < 1 << 20);
    for coding in ["gzip", "gzip, gzip", "deflate", "br", "zstd", "x"] {
        for bomb in [&small, &huge] {
            for path in [ESTIMATE.to_owned(), format!("/v1/wallets/{OWNER}/history")] {
                let (status, answer) = post(&path, coding, bomb);
                assert!(status == 0 || (400..500).contains(&status), "{path} {coding}: {answer}");
            }
        }
        assert_eq!(post(ESTIMATE, coding, &small).0, 400, "{coding}");
    }
    let after = peak(&server);
    assert!(after < before + (8 << 10), "{before} KiB, then {after} KiB");
    assert!(!place.log("demo").contains("panicked"), "{}", place.log("demo"));
}

/// Each has a name and a body that is no list of addresses.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &str| text.as_bytes().to_vec();
    let one = format!("\"{OWNER}\"");
    let all = |count: usize| format!("{{\"addresses\":[{}]}}", vec![one.clone(); count].join(","));
    vec![
        ("nothing", vec![]),
        ("no text", vec![0xff, 0xfe, 0x80]),
        ("no text inside", [b"{\"addresses\":[\"".as_slice(), &[0xc0, 0xae], b"\"]}"].concat()),
        ("half a letter", text(r#"{"addresses":["\ud800"]}"#)),
        ("a byte order mark", text(&format!("\u{feff}{}", all(1)))),
        ("no object", text("[1,2,3]")),
        ("no list", text(r#"{"addresses":"x"}"#)),
        ("no texts", text(r#"{"addresses":[1e999,-1,null,[]]}"#)),
        ("none", text(&all(0))),
        ("more than may be", text(&all(21))),
        ("as many as fit", text(&all(300))),
        ("the same twice", text(&format!("{{\"addresses\":[{one}],\"addresses\":[{one}]}}"))),
        ("two documents", text(&format!("{}{}", all(1), all(1)))),
        ("deep", text(&format!("{{\"addresses\":{}", "[".repeat(16_000)))),
        ("deep sibling", text(&format!("{{\"x\":{},", "{\"a\":".repeat(3_000)))),
        ("a huge number", text(&format!("{{\"addresses\":[{}]}}", "9".repeat(16_000)))),
        ("another chain", text(&format!("{{\"addresses\":[{one}],\"chain\":\"eth\"}}"))),
        ("no chain", text(&format!("{{\"addresses\":[{one}],\"chain\":\"../../x\"}}"))),
        ("a nul", text(&format!("{{\"addresses\":[\"{OWNER}\0\"]}}"))),
        ("too long", vec![b' '; 17_000]),
    ]
}

#[test]
fn a_body_that_cannot_be_read_is_the_clients_fault() {
    let place = Place::new();
    let (server, key) = demo(&place);
    for (name, body) in bodies() {
        let key = format!("x-api-key: {key}\r\n");
        let whole = format!("{key}content-length: {}\r\n", body.len());
        let (status, answer) = send(&server, &format!("POST {ESTIMATE}"), &whole, &body);
        assert_eq!(status, 400, "{name}: {answer}");
        // One byte per chunk, up to the limit.
        let chunked = format!("{key}transfer-encoding: chunked\r\n");
        let pieces =
            body.iter().take(2_000).flat_map(|byte| [b'1', b'\r', b'\n', *byte, b'\r', b'\n']);
        let pieces: Vec<u8> = pieces.chain(*b"0\r\n\r\n").collect();
        let (status, answer) = send(&server, &format!("POST {ESTIMATE}"), &chunked, &pieces);
        assert_eq!(status, 400, "{name}, in pieces: {answer}");
        // Shorter than announced: the client disconnects in the middle.
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let head = format!(
            "POST {ESTIMATE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{key}content-length: 16000\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), &body[..body.len().min(9_000)]].concat()).unwrap();
    }
    // Without an end: answered as soon as it is too long.
    let endless = format!("x-api-key: {key}\r\ntransfer-encoding: chunked\r\n");
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST {ESTIMATE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{endless}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    for _ in 0..5 {
        stream.write_all(&[b"1000\r\n".as_slice(), &[b' '; 0x1000], b"\r\n"].concat()).unwrap();
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 400");
    assert!(!place.log("demo").contains("panicked"), "{}", place.log("demo"));
}

/// Sends the request a byte a second, on paused time, and returns when the server closed.
async fn trickle(served: &Served, begin: &str) -> (Duration, String) {
    let mut stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
    stream.write_all(begin.as_bytes()).await.unwrap();
    let (began, mut answer) = (Instant::now(), Vec::new());
    for _ in 0..600 {
        let _ = stream.write_all(b"a").await;
        let read = timeout(Duration::from_secs(1), stream.read_buf(&mut answer)).await;
        if let Ok(Ok(0) | Err(_)) = read {
            return (began.elapsed(), String::from_utf8_lossy(&answer).into_owned());
        }
    }
    panic!("it is listened to for ever");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_a_byte_a_second_is_not_waited_for() {
    let limits = ApiLimits::default();
    let (most, body_most) = (limits.header_wait_max, limits.estimate_body_wait_max);
    let world = World::new();
    let served = world.serve().await;
    for begin in ["", "GET /", "GET / HTTP/1.1\r\nhost: localhost\r\nx-a: "] {
        let (took, answer) = trickle(&served, begin).await;
        assert!(took <= most + Duration::from_secs(2), "{begin:?}: {took:?}");
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{begin:?}: {answer}");
    }
    let begin = format!(
        "POST {ESTIMATE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nx-api-key: {KEY}\r\nconnection: close\r\n\
         content-length: 9999\r\n\r\n"
    );
    let (took, answer) = trickle(&served, &begin).await;
    assert!(took <= body_most + most + Duration::from_secs(2), "{took:?}");
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("in time"), "{answer}");
    // A body that is never read delays no other client.
    let begin = format!(
        "GET {}?limit=1 HTTP/1.1\r\nhost: localhost\r\nx-api-key: wrong\r\ncontent-length: 9999\r\n\r\n",
        path(&wallet(1))
    );
    let (took, answer) = trickle(&served, &begin).await;
    assert!(took <= most + Duration::from_secs(2), "{took:?}");
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    drop(served.stop().await);
    world.close().await;
}
