//! `blotter admin`, reloads and the two logs, on the real program.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::program::{PATIENCE, Place, Server};

const DEMO: [&str; 5] = ["demo", "--listen", "127.0.0.1:0", "--data-dir", "data"];
const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"];

/// The JSON answer of an `admin` command; panics if it fails.
fn admin(place: &Place, args: &[&str]) -> Value {
    let ran = place.run(&[&["admin", "--json", "--data-dir", "data"], args].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Streams a wallet's history to its end and returns the body.
fn history(server: &Server, wallet: &str, key: &str) -> String {
    let answer = server.get(&format!("/v1/wallets/{wallet}/history?limit=100000"), key);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    body["trades"].to_string()
}

#[test]
fn a_server_is_copied_while_it_serves_and_the_copy_serves_the_same() {
    let place = Place::new();
    let demo = place.serve(&DEMO);
    let (key, wallet) = (demo.printed("key"), demo.printed("wallet"));
    let page: Value = serde_json::from_str(
        &demo.get(&format!("/v1/wallets/{wallet}/history?limit=10"), &key).body,
    )
    .unwrap();
    let trades = history(&demo, &wallet, &key);
    let copied = admin(&place, &["backup", "copy"]);
    let file = place.path().join("copy/trades.redb");
    assert_eq!(copied["bytes"], fs::metadata(file).unwrap().len());
    let again = place.run(&["admin", "backup", "copy", "--data-dir", "data"]);
    assert_eq!(again.code, Some(1), "over a copy: {}", again.stdout);
    let before = admin(&place, &["status"]);
    assert!(before["store"]["trades"].as_u64().unwrap() > 2_000, "{before}");
    drop(demo);
    // Keys, rows and cursors are still there, and no node could have supplied them.
    let place = place.variable("BLOTTER_CHAINS_SOL_RPC", "http://127.0.0.1:9/");
    let served = place.serve(&["serve", "--listen", "127.0.0.1:0", "--data-dir", "copy"]);
    assert_eq!(history(&served, &wallet, &key), trades);
    let cursor = page["cursor"].as_str().unwrap();
    let path = format!("/v1/wallets/{wallet}/history?limit=5&cursor={cursor}");
    let next: Value = serde_json::from_str(&served.get(&path, &key).body).unwrap();
    assert_eq!(next["trades"].as_array().unwrap().len(), 5, "{next}");
    let usage: Value = serde_json::from_str(&served.get("/v1/usage", &key).body).unwrap();
    assert_eq!(
        usage["tradesCounted"],
        serde_json::from_str::<Value>(&trades).unwrap().as_array().unwrap().len()
    );
}

#[test]
fn a_wallet_is_forgotten_and_the_file_compacted_while_it_serves() {
    let place = Place::new();
    let demo = place.serve(&DEMO);
    let (key, wallet) = (demo.printed("key"), demo.printed("wallet"));
    let trades = history(&demo, &wallet, &key);
    let count = serde_json::from_str::<Value>(&trades).unwrap().as_array().unwrap().len();
    let forgotten = admin(&place, &["forget", &wallet]);
    assert_eq!(forgotten["rows"], count);
    assert_eq!(admin(&place, &["forget", &wallet])["rows"], Value::Null);
    let compacted = admin(&place, &["compact"]);
    assert!(compacted["after"].as_u64() < compacted["before"].as_u64(), "{compacted}");
    // The wallet loads again, and its trades are not counted again.
    assert_eq!(history(&demo, &wallet, &key), trades);
    let usage: Value = serde_json::from_str(&demo.get("/v1/usage", &key).body).unwrap();
    assert_eq!(usage["tradesCounted"], count);
    let audit = lines(&place.path().join("data/audit.ndjson"));
    let forgotten = audit.iter().find(|line| line["event"] == "forget").unwrap();
    assert_eq!((&forgotten["rows"], &forgotten["chain"]), (&json!(count), &json!("sol")));
    assert!(!audit.iter().any(|line| line.to_string().contains(&wallet)), "it is forgotten");
    let mode = fs::metadata(place.path().join("data/audit.ndjson")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let wrong = place.run(&["admin", "forget", "nonsense", "--data-dir", "data"]);
    assert_eq!(wrong.code, Some(2), "a wrong argument: {}", wrong.stderr);
    assert!(wrong.stderr.contains("address"), "{}", wrong.stderr);
}

#[test]
fn status_loads_and_pauses_are_shown() {
    let place = Place::new();
    let demo = place.serve(&[
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        "data",
        "--large",
        "300000",
    ]);
    let (key, wallet) = (demo.printed("key"), demo.printed("large"));
    assert_eq!(admin(&place, &["pause"]), json!({"paused": true}));
    // The load behind a stream that was cut goes on in the background, where it is paused.
    let mut stream = std::net::TcpStream::connect(&demo.address).unwrap();
    let request = format!(
        "GET /v1/wallets/{wallet}/history HTTP/1.1\r\nHost: localhost\r\nx-api-key: {key}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let started = Instant::now();
    let load = loop {
        let loads = admin(&place, &["loads"]);
        let load = loads.as_array().unwrap().iter().find(|load| load["wallet"] == wallet.as_str());
        // Rows are stored before the coverage that includes them.
        let has_come =
            |load: &&Value| load["trades"].as_u64() > Some(0) && load["reachedTime"].is_string();
        if let Some(load) = load.filter(has_come) {
            break load.clone();
        }
        assert!(started.elapsed() < PATIENCE, "{loads}");
    };
    assert_eq!((&load["chain"], &load["readers"]), (&json!("sol"), &json!(1)), "{load}");
    assert_eq!(load["complete"], false, "{load}");
    let endpoints = load["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 1, "by which it is read: {load}");
    assert!(endpoints[0].as_str().unwrap().starts_with("http"), "{load}");
    let table = place.run(&["admin", "loads", "--data-dir", "data"]).stdout;
    assert!(table.starts_with("CHAIN") && table.contains(&wallet), "{table}");
    drop(stream);
    let status = admin(&place, &["status"]);
    assert_eq!(status["paused"], true, "{status}");
    assert!(status["store"]["diskFreeBytes"].as_u64() > Some(0), "{status}");
    assert_eq!(admin(&place, &["resume"]), json!({"paused": false}));
    let text = place.run(&["admin", "status", "--data-dir", "data"]).stdout;
    assert!(text.contains("store.trades  ") && text.contains("paused  false"), "{text}");
}

#[test]
fn a_key_is_in_force_as_soon_as_it_is_made() {
    let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", "http://127.0.0.1:9/");
    let server = place.serve(&SERVE);
    let made = place.run(&["admin", "keys", "create", "--json", "--data-dir", "data"]);
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert_eq!(server.get("/v1/usage", key).status, 200);
    let ran = place.run(&["admin", "keys", "revoke", id, "--data-dir", "data"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(server.get("/v1/usage", key).status, 401);
    let audit = lines(&place.path().join("data/audit.ndjson"));
    // The first line records the key that the server created.
    let events: Vec<&Value> = audit.iter().map(|line| &line["event"]).collect();
    assert_eq!(events, ["key created", "key created", "key revoked"]);
    assert!(
        audit.iter().skip(1).all(|line| line["key"] == id && line["uid"].is_u64()),
        "{audit:?}"
    );
    assert!(!format!("{audit:?}").contains(key));
}

/// Two processes on one database may be given one folder.
#[test]
fn a_socket_at_which_another_process_answers_is_left_to_it() {
    let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", "http://127.0.0.1:9/");
    fs::create_dir(place.path().join("data")).unwrap();
    let path = place.path().join("data/admin.sock");
    let other = UnixListener::bind(&path).unwrap();
    let inode = || fs::symlink_metadata(&path).unwrap().ino();
    let before = inode();
    let mut server = place.serve(&SERVE);
    assert!(server.stderr.contains("a data folder of its own"), "{}", server.stderr);
    assert_eq!(inode(), before);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    assert_eq!(inode(), before, "it was removed with a server that did not bind it");
    assert!(!path.with_file_name("admin.sock.new").exists());
    drop(other);
}

/// Sends one line and returns the answer.
fn ask(path: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(line.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer
}

#[test]
fn the_socket_is_its_owners_and_a_stale_one_is_replaced() {
    let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", "http://127.0.0.1:9/");
    fs::create_dir(place.path().join("data")).unwrap();
    let path = place.path().join("data/admin.sock");
    drop(UnixListener::bind(&path).unwrap());
    let stale = place.run(&["admin", "status", "--data-dir", "data"]);
    assert_eq!(stale.code, Some(1));
    assert!(stale.stderr.contains("no server answers"), "{}", stale.stderr);
    let mut server = place.serve(&SERVE);
    let meta = fs::metadata(&path).unwrap();
    assert!(meta.file_type().is_socket());
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    for wrong in ["", "\n", "{}\n", "{\"command\":\"exec\"}\n", "\u{0}\n"] {
        assert!(ask(&path, wrong).contains("error") || wrong.is_empty(), "{wrong:?}");
    }
    assert!(ask(&path, "{\"command\":\"status\"}\n").starts_with("{\"ok\":"));
    let relative = ask(&path, "{\"command\":\"backup\",\"path\":\"copy\"}\n");
    assert!(relative.contains("absolute"), "{relative}");
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    assert!(!path.exists(), "a server that ended leaves no socket");
}

/// Permissions keep others out; if they do not, the server checks the peer's user.
#[test]
fn another_user_is_refused() {
    let is_root = std::process::Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !is_root {
        return;
    }
    let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", "http://127.0.0.1:9/");
    let _server = place.serve(&SERVE);
    let socket = place.path().join("data/admin.sock");
    for (path, mode) in [(place.path(), 0o755), (socket.parent().unwrap(), 0o755), (&socket, 0o666)]
    {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let script = "import socket,sys;s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1]);\
                  s.sendall(b'{\"command\":\"status\"}\\n');print(s.makefile().readline())";
    let mut command = std::process::Command::new("python3");
    command.args(["-c", script]).arg(&socket);
    std::os::unix::process::CommandExt::uid(&mut command, 65_534);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("only the user that runs the server"), "{text}");
}

#[test]
fn a_reload_puts_settings_in_force_and_keeps_the_old_ones_on_an_error() {
    let place = Place::new().file(
        "blotter.toml",
        "[server]\nconnections_per_address = 100\n[chains.sol]\nrpc = ['http://127.0.0.1:9/']\n",
    );
    let server = place.serve(&SERVE);
    let config = place.path().join("blotter.toml");
    let chains = |key: &str| -> Value {
        let body = server.get("/v1/chains", key).body;
        let all: Value = serde_json::from_str(&body).unwrap();
        let of = |slug| {
            all["chains"]
                .as_array()
                .unwrap()
                .iter()
                .find(|one| one["slug"] == slug)
                .unwrap()
                .clone()
        };
        json!({"sol": of("sol")["upstream"]["endpoints"], "tron": of("tron")["status"]})
    };
    let key = server.stderr.lines().find(|line| line.starts_with("blt_")).unwrap().to_owned();
    assert_eq!(admin(&place, &["reload"]), json!({"changed": [], "restart": []}));
    fs::write(
        &config,
        "[server]\nconnections_per_address = 90\npage_wait = '3s'\nlisten = '127.0.0.1:1'\n\
         allowed_hosts = 'trades.example'\n[storage]\nmax_size = '1GiB'\n[chains.tron]\n\
         enabled = false\n[chains.sol]\nrpc = ['http://127.0.0.1:9/', 'http://127.0.0.2:9/']\n\
         [chains.own]\nfamily = 'evm'\nchain_id = 5\nnative = 'ETH'\nrpc = ['http://h.example']\n\
         wrapped_native = '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2'\n",
    )
    .unwrap();
    let reloaded = admin(&place, &["reload"]);
    let changed = json!([
        "server.allowed_hosts",
        "server.connections_per_address",
        "server.page_wait",
        "storage.max_size",
        "chains.sol",
        "chains.tron"
    ]);
    // The listen address is a flag here, which overrides the file.
    assert_eq!(reloaded, json!({"changed": changed, "restart": ["chains.own"]}));
    let now = chains(&key);
    assert_eq!((now["sol"].as_array().unwrap().len(), &now["tron"]), (2, &json!("disabled")));
    assert_eq!(admin(&place, &["status"])["store"]["maxBytes"], 1 << 30);

    fs::write(&config, "[server]\npage_wait = 'soon'\n").unwrap();
    let wrong = place.run(&["admin", "reload", "--data-dir", "data"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("page_wait"), "{}", wrong.stderr);
    server.signal("HUP");
    let audit = place.path().join("data/audit.ndjson");
    let started = Instant::now();
    while !lines(&audit).iter().any(|line| line["error"].to_string().contains("page_wait")) {
        assert!(started.elapsed() < PATIENCE, "{:?}", lines(&audit));
    }
    assert_eq!(chains(&key), now, "the old one is in force");
    fs::write(&config, "[chains.sol]\nrpc = ['http://127.0.0.3:9/']\n").unwrap();
    server.signal("HUP");
    let started = Instant::now();
    while chains(&key)["sol"][0]["label"] != "http://127.0.0.3:9" {
        assert!(started.elapsed() < PATIENCE, "{}", chains(&key));
    }
    let audit = lines(&audit);
    let by: Vec<&Value> = audit.iter().map(|line| &line["by"]).collect();
    assert_eq!(by.last(), Some(&&json!("SIGHUP")), "{audit:?}");
}

/// A line of a stream, of which only the rows are counted.
#[derive(serde::Deserialize)]
struct Rows {
    #[serde(default)]
    trades: Vec<serde::de::IgnoredAny>,
}

#[test]
fn a_reload_under_64_streams_loses_none() {
    let node = Place::new();
    let demo = node.serve(&[
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--node",
        "127.0.0.1:0",
        "--large",
        "20000",
    ]);
    let (rpc, wallet) = (demo.printed("node:"), demo.printed("large"));
    let config = |wait: &str, url: &str| {
        format!(
            "[server]\nstream_window = '600s'\npage_wait = '{wait}'\n[chains.sol]\nrpc = ['{url}']\n"
        )
    };
    let place = Place::new().file("blotter.toml", &config("1s", &rpc));
    let server = place.serve(&SERVE);
    let key = server.stderr.lines().find(|line| line.starts_with("blt_")).unwrap().to_owned();
    let path = format!("/v1/wallets/{wallet}/history");
    let ends: Vec<Value> = std::thread::scope(|scope| {
        let stream = || {
            let body = server.get(&path, &key).body;
            let count: usize = body
                .lines()
                .filter(|line| !line.is_empty())
                .map(|line| serde_json::from_str::<Rows>(line).unwrap().trades.len())
                .sum();
            let last = body.lines().last().unwrap();
            let mut end: Value = serde_json::from_str(last).unwrap();
            end["counted"] = json!(count);
            end
        };
        let streams: Vec<_> = (0..64).map(|_| scope.spawn(stream)).collect();
        // During the load, the node's URL is changed again and again.
        for (at, url) in
            [rpc.replace("127.0.0.1", "localhost"), rpc.clone()].iter().cycle().take(6).enumerate()
        {
            fs::write(place.path().join("blotter.toml"), config(&format!("{}s", at + 2), url))
                .unwrap();
            let reloaded = admin(&place, &["reload"]);
            assert!(reloaded["changed"].to_string().contains("chains.sol"), "{reloaded}");
            std::thread::sleep(Duration::from_millis(50));
        }
        streams.into_iter().map(|stream| stream.join().unwrap()).collect()
    });
    for end in &ends {
        assert_eq!(
            (&end["complete"], &end["tradeCount"]),
            (&json!(true), &end["counted"]),
            "{end}"
        );
        assert_eq!(end, &ends[0]);
    }
    assert!(ends[0]["tradeCount"].as_u64() >= Some(20_000), "{}", ends[0]);
}

#[test]
fn each_request_is_one_line_of_the_access_log_without_its_wallet() {
    let place = Place::new().variable("BLOTTER_LOG_ACCESS", "access.ndjson");
    let demo = place.serve(&DEMO);
    let (key, wallet) = (demo.printed("key"), demo.printed("wallet"));
    let path = format!("/v1/wallets/{wallet}/history");
    let stream = demo.get(&path, &key);
    let page = demo.get(&format!("{path}?limit=3"), &key);
    demo.get(&path, "blt_wrong");
    demo.get("/healthz", "");
    let file = place.path().join("access.ndjson");
    let started = Instant::now();
    while lines(&file).len() < 4 {
        assert!(started.elapsed() < PATIENCE, "{:?}", lines(&file));
    }
    let log = lines(&file);
    let of = |name: &str| log.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("route"), ["history", "history", "history", "healthz"]);
    assert_eq!(of("status"), [200, 200, 401, 200]);
    assert_eq!(of("bytes")[..2], [json!(stream.body.len()), json!(page.body.len())]);
    assert_eq!(of("key")[2], Value::Null);
    assert!(of("key")[0].is_string() && log[0]["key"] == log[1]["key"], "{log:?}");
    assert!(log.iter().all(|line| line["client"] == "127.0.0.1"), "{log:?}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains(&wallet) && !text.contains(&key), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_access_log_holds_paths_where_that_is_configured() {
    let place = Place::new()
        .variable("BLOTTER_CHAINS_SOL_RPC", "http://127.0.0.1:9/")
        .variable("BLOTTER_LOG_ACCESS", "access.ndjson")
        .variable("BLOTTER_LOG_PATHS", "true");
    let server = place.serve(&SERVE);
    let path = "/v1/wallets/So11111111111111111111111111111111111111112/history";
    server.get(path, "blt_wrong");
    let file = place.path().join("access.ndjson");
    let started = Instant::now();
    while lines(&file).is_empty() {
        assert!(started.elapsed() < PATIENCE);
    }
    assert_eq!(lines(&file)[0]["path"], path);
}
