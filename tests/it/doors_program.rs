//! The real binary at its limits: TLS towards servers, quotas over restarts, unwritable disks,
//! exhausted descriptors, metrics, exit codes.

#![cfg(unix)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use rustls::pki_types::PrivateKeyDer;
use serde_json::Value;

use crate::support::program::{PATIENCE, Place, Server};

/// An address for which the demo chain generates a history.
const SMALL: &str = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU";
const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"];
const PAGE: &str = "{\"wallet\":\"7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU\",\
    \"pageSize\":10000,\"trades\":[{\"signature\":\
    \"1111111111111111111111111111111111111111111111111111111111111111\",\"side\":\"buy\",\
    \"token\":\"BONK\",\"tokenMint\":\"DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263\",\
    \"amountSol\":1.5,\"amount\":2,\"dex\":\"Orca\",\"blockTime\":\"2026-01-01T00:00:00+00:00\"}],\
    \"complete\":true,\"tradeCount\":1,\"totalPages\":1}";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A server with a self-signed certificate that answers one page; returns the requests that it got.
fn tls_server(folder: &Path) -> (SocketAddr, mpsc::Receiver<String>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let text = base64::engine::general_purpose::STANDARD.encode(made.cert.der());
    let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
    fs::write(folder.join("root.pem"), pem).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    let (asked_of, heard) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = rustls::StreamOwned::new(connection, stream);
            let mut asked = vec![0; 8192];
            let read = tls.read(&mut asked).unwrap_or(0);
            asked.truncate(read);
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{PAGE}",
                PAGE.len()
            );
            let _ = tls.write_all(head.as_bytes());
            tls.conn.send_close_notify();
            let _ = tls.flush();
            if asked_of.send(String::from_utf8_lossy(&asked).into_owned()).is_err() {
                return;
            }
        }
    });
    (address, heard)
}

#[test]
fn a_server_behind_tls_is_asked_over_tls() {
    let place = Place::new();
    let (address, heard) = tls_server(place.path());
    let root = place.path().join("root.pem").display().to_string();
    let place = place.variable("SSL_CERT_FILE", &root);
    let url = format!("https://localhost:{}", address.port());
    for (command, format) in [("history", "ndjson"), ("history", "csv"), ("pnl", "json")] {
        let ran =
            place.run(&[command, SMALL, "--url", &url, "--key", "planted", "--format", format]);
        assert_eq!(ran.code, Some(0), "{command} {format}: {}", ran.stderr);
        assert!(ran.stdout.contains("BONK"), "{command} {format}: {}", ran.stdout);
        let asked = heard.recv_timeout(PATIENCE).unwrap().to_ascii_lowercase();
        assert!(asked.contains("authorization: bearer planted"), "{asked}");
        assert!(asked.starts_with("get /v1/wallets/"), "{asked}");
    }
}

#[test]
fn a_certificate_that_is_not_trusted_ends_it_before_the_key_is_sent() {
    let place = Place::new();
    let (address, heard) = tls_server(place.path());
    let url = format!("https://localhost:{}", address.port());
    let ran = place.run(&["history", SMALL, "--url", &url, "--key", "planted", "--quiet"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("ertificate"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("planted"), "{}", ran.stderr);
    assert!(!heard.recv_timeout(PATIENCE).unwrap().contains("planted"));
}

#[test]
fn a_key_is_not_sent_in_plain_text_beyond_this_machine() {
    let place = Place::new();
    let far = "http://blotter.example:8080";
    let key = ["--url", far, "--key", "planted"];
    let signature = bs58::encode([1; 64]).into_string();
    for command in [
        vec!["history", SMALL],
        vec!["history", SMALL, "--format", "csv", "--output", "out.csv"],
        vec!["pnl", SMALL],
        vec!["verify", SMALL],
        vec!["explain", &signature, "--wallet", SMALL],
    ] {
        let ran = place.run(&[&command[..], &key[..]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("--insecure") && ran.stderr.contains("https"),
            "{}",
            ran.stderr
        );
    }
    let ran = place.run(&["verify", SMALL, "--against", "http://node.example/planted"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--insecure"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("planted"), "{}", ran.stderr);
    let place = place.variable("BLOTTER_URL", far).variable("BLOTTER_KEY", "planted");
    assert_eq!(place.run(&["pnl", SMALL]).code, Some(2));
}

#[test]
fn a_server_that_cannot_be_reached_is_a_failure_with_nothing_on_stdout() {
    let place = Place::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}");
    for format in ["table", "csv", "json", "ndjson"] {
        let args = ["history", SMALL, "--url", &url, "--key", "k", "--format", format];
        let ran = place.run(&args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{format}: {}", ran.stderr);
        assert!(ran.stderr.contains("reached"), "{}", ran.stderr);
    }
}

fn usage(server: &Server, key: &str) -> u64 {
    json(&server.get("/v1/usage", key).body)["tradesCounted"].as_u64().unwrap()
}

fn stop(mut server: Server) {
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_quota_holds_for_explanations_and_a_forgotten_wallet_is_not_counted_again() {
    let place = Place::new();
    let create = |more: &[&str]| {
        let args = [&["keys", "create", "--json", "--data-dir", "data"], more].concat();
        json(&place.run(&args).stdout)["key"].as_str().unwrap().to_owned()
    };
    let (key, poor) = (create(&[]), create(&["--quota", "5"]));
    let demo = || place.serve(&["demo", "--listen", "127.0.0.1:0", "--data-dir", "data"]);
    let server = demo();
    let path = format!("/v1/wallets/{SMALL}/history");
    let page = json(&server.get(&format!("{path}?limit=5"), &poor).body);
    let signature = page["trades"][0]["signature"].as_str().unwrap();
    let explain = format!("/v1/wallets/{SMALL}/explain/{signature}");
    let refused = server.get(&explain, &poor);
    assert_eq!(refused.status, 402, "{}", refused.body);
    assert_eq!(json(&refused.body)["type"], "/errors/quota_exceeded");
    assert_eq!(server.get(&explain, &key).status, 200);
    assert_eq!(server.get(&path, &key).status, 200);
    let counted = usage(&server, &key);
    assert!(counted > 10, "{counted}");
    stop(server);
    for _ in 0..2 {
        stop(server_again(&place, &demo, &path, &key, &poor, counted));
    }
    let audit = fs::read_to_string(place.path().join("data/audit.ndjson")).unwrap();
    assert_eq!(audit.matches("\"event\":\"forget\"").count(), 2, "{audit}");
    assert!(!audit.contains(SMALL), "it is forgotten: {audit}");
    let server = demo();
    assert_eq!((usage(&server, &key), usage(&server, &poor)), (counted, 5));
    let more = server.get(&format!("{path}?limit=6"), &poor);
    assert_eq!(json(&more.body)["trades"].as_array().unwrap().len(), 5, "{}", more.body);
    stop(server);
}

/// Forgets the wallet, starts again, reads all of it with one key and a part with the other.
fn server_again(
    place: &Place,
    demo: &dyn Fn() -> Server,
    path: &str,
    key: &str,
    poor: &str,
    counted: u64,
) -> Server {
    let forgotten = place.run(&["forget", SMALL, "--data-dir", "data"]);
    assert_eq!(forgotten.code, Some(0), "{}", forgotten.stderr);
    let server = demo();
    assert_eq!(server.get(path, key).status, 200);
    assert_eq!(usage(&server, key), counted, "counted again");
    let page = json(&server.get(&format!("{path}?limit=5"), poor).body);
    assert_eq!(page["trades"].as_array().unwrap().len(), 5);
    assert_eq!(usage(&server, poor), 5);
    server
}

#[test]
fn a_start_writes_no_keys_that_have_not_changed() {
    use std::os::unix::fs::MetadataExt as _;
    let place = Place::new();
    stop(place.serve(&SERVE));
    let file = place.path().join("data/keys.toml");
    let state = || {
        let meta = fs::metadata(&file).unwrap();
        (meta.ino(), meta.mtime(), meta.mtime_nsec(), fs::read(&file).unwrap())
    };
    let before = state();
    stop(place.serve(&SERVE));
    assert_eq!(state(), before);
    // As on a full disk, the new file cannot be created.
    fs::create_dir(place.path().join("data/keys.toml.new")).unwrap();
    stop(place.serve(&SERVE));
    assert_eq!(state(), before);
}

/// A server with a limit of descriptors, soft or soft and hard.
fn serve_within(place: &Place, limit: &str) -> Server {
    let mut command = Command::new("sh");
    let script = format!("ulimit {limit} && exec \"$@\"");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_blotter")]).args(SERVE);
    command.current_dir(place.path()).env_clear().stdin(Stdio::null());
    place.serve_by(command, "serve")
}

/// Whether a connection from another address of loopback is answered.
fn is_served_elsewhere(server: &Server) -> bool {
    let address: SocketAddr = server.address.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let asked = async {
            let mut stream = socket.connect(address).await?;
            let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            stream.write_all(request).await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            Ok::<_, std::io::Error>(answer.starts_with(b"HTTP/1.1 200 "))
        };
        matches!(tokio::time::timeout(Duration::from_secs(10), asked).await, Ok(Ok(true)))
    })
}

#[test]
fn descriptors_of_one_address_do_not_stop_another() {
    for limit in ["-Sn 256", "-n 256"] {
        let place = Place::new();
        let server = serve_within(&place, limit);
        let mut held = Vec::new();
        for _ in 0..300 {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: l");
            held.push(stream);
        }
        assert!(is_served_elsewhere(&server), "{limit}: {}", place.log("serve"));
        drop(held);
        stop(server);
    }
}

#[test]
fn metrics_are_asked_apart_or_with_a_key() {
    let place = Place::new().file("blotter.toml", "[server]\nmetrics_key = true\n");
    let server = place.serve(&SERVE);
    let key = server.stderr.lines().find(|line| line.starts_with("blt_")).unwrap().to_owned();
    assert_eq!(server.get("/metrics", "wrong").status, 401);
    assert_eq!(server.send("GET", "/metrics", "").status, 401);
    assert_eq!(server.get("/metrics", &key).status, 200);
    stop(server);

    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!("[server]\nmetrics_listen = '{free}'\n");
    let place = Place::new().file("blotter.toml", &text);
    let server = place.serve(&SERVE);
    assert_eq!(server.send("GET", "/metrics", "").status, 404);
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(free).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {free}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let metrics = ask("/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200 ") && metrics.contains("blotter_"), "{metrics}");
    assert!(ask("/v1/usage").starts_with("HTTP/1.1 404 "));
    stop(server);
}

#[test]
fn a_proxy_in_front_is_named_in_allowed_hosts() {
    let text = "[server]\nallowed_hosts = 'trades.example, *.inner.example'\n";
    let place = Place::new().file("blotter.toml", text);
    let server = place.serve(&SERVE);
    let ask = |host: &str| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    for host in ["trades.example", "TRADES.example:443", "a.inner.example", "localhost"] {
        assert_eq!(ask(host), "200", "{host}");
    }
    for host in ["other.example", "inner.example", "xtrades.example"] {
        assert_eq!(ask(host), "421", "{host}");
    }
}

#[test]
fn a_backup_onto_an_existing_file_names_it() {
    let place = Place::new();
    stop(place.serve(&SERVE));
    let backup = || place.run(&["backup", "copy", "--data-dir", "data"]);
    assert_eq!(backup().code, Some(0));
    let ran = backup();
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("copy/trades.redb") && ran.stderr.contains("exists"),
        "{}",
        ran.stderr
    );
    // Keys alone are those of a server that has stored nothing yet.
    let keys = place.path().join("fresh/keys.toml");
    fs::create_dir(place.path().join("fresh")).unwrap();
    fs::write(&keys, "").unwrap();
    let ran = place.run(&["backup", "fresh", "--data-dir", "data"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("fresh/keys.toml exists"), "{}", ran.stderr);
    assert_eq!(fs::read_dir(place.path().join("fresh")).unwrap().count(), 1);
}

#[test]
fn an_expiry_is_written_as_from_is() {
    let place = Place::new();
    for (given, kept) in [
        ("4102444800", "2100-01-01T00:00:00+00:00"),
        ("2100-01-01", "2100-01-01T00:00:00+00:00"),
        ("2100-01-01T01:00:00+01:00", "2100-01-01T00:00:00+00:00"),
    ] {
        let made = place.run(&["keys", "create", "--expires", given, "--data-dir", given]);
        assert_eq!(made.code, Some(0), "{given}: {}", made.stderr);
        let listed = json(&place.run(&["keys", "list", "--json", "--data-dir", given]).stdout);
        assert_eq!(listed["keys"][0]["expires"], kept, "{given}");
    }
}

#[test]
fn the_configuration_shows_public_addresses_whole() {
    let shown = Place::new().run(&["config"]).stdout;
    let data =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/data/chains.toml")).unwrap();
    let data: toml::Table = toml::from_str(&data).unwrap();
    let chains = data["chain"].as_array().unwrap();
    let urls: Vec<&str> = chains
        .iter()
        .flat_map(|chain| chain["rpc"].as_array().unwrap())
        .filter_map(|url| url.as_str())
        .collect();
    assert!(urls.len() > 8, "{urls:?}");
    for url in urls {
        assert!(shown.contains(&format!("\"{url}\"")), "{url}: {shown}");
    }
}
