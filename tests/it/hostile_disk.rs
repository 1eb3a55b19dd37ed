//! The real binary on a disk that is full, unwritable, or holds something else.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::program::{Answer, Place, Server};

const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"];
/// The id of a user who owns no files.
const NOBODY: u32 = 65_534;
/// An address that the demo's chain gives a history of its own.
const SMALL: &str = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU";
/// Another one.
const UNKNOWN: &str = "9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM";

/// The request id of streams.
const ASKED_AS: &str = "asked-by-the-test-of-disks";

/// Rows and last line of a stream.
fn stream(server: &Server, wallet: &str, key: &str) -> (Vec<Value>, Value) {
    let headers = format!("authorization: Bearer {key}\r\nx-request-id: {ASKED_AS}\r\n");
    let answer = server.send("GET", &format!("/v1/wallets/{wallet}/history"), &headers);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let lines: Vec<Value> = answer
        .body
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let rows = lines.iter().filter_map(|line| line["trades"].as_array()).flatten().cloned();
    (rows.collect(), lines.last().unwrap().clone())
}

/// The first page that is not answered: pages that a failed write gave back take some rows more.
fn first_refused(server: &Server, wallet: &str, key: &str) -> Answer {
    let mut path = format!("/v1/wallets/{wallet}/history?limit=1000");
    loop {
        let page = server.get(&path, key);
        if page.status != 200 {
            return page;
        }
        let body: Value = serde_json::from_str(&page.body).unwrap();
        let cursor = body["cursor"].as_str().unwrap_or_else(|| panic!("it ends: {}", page.body));
        path = format!("/v1/wallets/{wallet}/history?limit=1000&cursor={cursor}");
    }
}

/// Checks that the last line of a stream and a page's error name the full disk and whether to
/// retry, without the path of the store.
fn is_of_a_full_disk(server: &Server, large: &str, key: &str, last: &Value) {
    let error = &last["error"];
    assert_eq!(
        (&last["complete"], &error["code"], &error["type"], &error["retryable"]),
        (&false.into(), &"STORAGE_FULL".into(), &"/errors/storage_full".into(), &true.into())
    );
    let said = error["message"].as_str().unwrap();
    assert!(said.contains("storage") && said.contains("full"), "{said}");
    assert!(!said.contains("data/") && !said.contains("os error"), "{said}");
    let page = first_refused(server, large, key);
    assert_eq!(page.status, 503, "{}", page.body);
    assert!(page.head.to_lowercase().contains("\r\nretry-after: "), "{}", page.head);
    assert!(page.body.contains("/errors/storage_full"), "{}", page.body);
}

fn first_key(server: &Server) -> String {
    server.stderr.lines().find(|line| line.starts_with("blt_")).unwrap().to_owned()
}

#[test]
fn a_full_disk_is_reported_and_stored_rows_are_still_served() {
    let elsewhere = Place::new();
    let demo = elsewhere.serve(&["demo", "--listen", "127.0.0.1:0", "--node", "127.0.0.1:0"]);
    let (large, node) = (demo.printed("wallet"), demo.printed("node:"));
    let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &node);
    let mut server = place.serve(&SERVE);
    let key = first_key(&server);
    let stored = stream(&server, SMALL, &key);
    assert_eq!(stored.1["complete"], true);
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));

    let bytes = fs::metadata(place.path().join("data/trades.redb")).unwrap().len();
    let mut server = place.serve_within(bytes.div_ceil(512), &SERVE);
    let (rows, last) = stream(&server, &large, &key);
    is_of_a_full_disk(&server, &large, &key, &last);
    let log = place.log("serve");
    let named = log.lines().any(|line| line.contains(ASKED_AS) && line.contains("storage_full"));
    assert!(named && log.contains("the store"), "{log}");
    for _ in 0..3 {
        assert_eq!(stream(&server, SMALL, &key), stored, "what is stored is not served on");
    }
    server.signal("TERM");
    server.wait();

    let server = place.serve(&SERVE);
    assert_eq!(stream(&server, SMALL, &key), stored);
    let (all, last) = stream(&server, &large, &key);
    assert_eq!(last["complete"], true);
    assert!(all.len() > rows.len(), "{} and {}", rows.len(), all.len());
    for (row, before) in all.iter().zip(&rows) {
        let mut before = before.clone();
        // Metadata may have become known since: a symbol in place of the shortened mint, and a
        // value.
        if before["token"].as_str().unwrap().contains('…') {
            before["token"] = row["token"].clone();
        }
        if before["amountSol"].is_null() {
            before["amountSol"] = row["amountSol"].clone();
        }
        assert_eq!(*row, before);
    }
    assert_eq!(last["tradeCount"], all.len());
}

#[test]
fn a_foreign_file_is_refused_and_left_as_it_was() {
    let place = Place::new();
    let mut server = place.serve(&SERVE);
    server.signal("TERM");
    server.wait();
    let file = place.path().join("data/trades.redb");
    let whole = fs::read(&file).unwrap();
    let cases = [
        ("cut in half", whole[..whole.len() / 2].to_vec()),
        ("its first page alone", whole[..4096].to_vec()),
        ("text", b"2026-01-01 bought 3 BONK\n".repeat(50)),
        ("another database", [b"SQLite format 3\0".as_slice(), &[7; 8192]].concat()),
        ("one byte", vec![1]),
    ];
    for (name, bytes) in cases {
        fs::write(&file, &bytes).unwrap();
        let ran = place.run(&SERVE);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains("trades.redb"), "{name}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{name}: {}", ran.stderr);
        assert!(fs::read(&file).unwrap() == bytes, "{name}: the file was changed");
    }
}

/// Runs the program as an unprivileged user, also if the tests run as root.
fn unprivileged(place: &Place, args: &[&str]) -> Command {
    let program = place.path().join("blotter");
    let mut command = Command::new(&program);
    command.args(args).current_dir(place.path()).env_clear().stdin(Stdio::null());
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

/// A folder with the program and an empty data folder, for [`unprivileged`].
fn place_of_unprivileged_user() -> (Place, PathBuf) {
    let place = Place::new();
    fs::copy(env!("CARGO_BIN_EXE_blotter"), place.path().join("blotter")).unwrap();
    let data = place.path().join("data");
    fs::create_dir(&data).unwrap();
    if is_root() {
        std::os::unix::fs::chown(place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        std::os::unix::fs::chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    (place, data)
}

#[test]
fn a_folder_that_cannot_be_written_is_reported_and_left_as_it_was() {
    let (place, data) = place_of_unprivileged_user();
    let mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&data, 0o500);
    let ran = unprivileged(&place, &SERVE).output().unwrap();
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("data") && stderr.contains("ermission denied"), "{stderr}");
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
    mode(&data, 0o700);
}

/// From the start: what is stored is served, also after a crash, and nothing is written.
#[test]
fn a_store_that_cannot_be_written_is_served() {
    let elsewhere = Place::new();
    let demo = elsewhere.serve(&["demo", "--listen", "127.0.0.1:0", "--node", "127.0.0.1:0"]);
    let (place, data) = place_of_unprivileged_user();
    let made = unprivileged(&place, &["keys", "create", "--json", "--data-dir", "data"]).output();
    let made: Value = serde_json::from_slice(&made.unwrap().stdout).unwrap();
    let key = made["key"].as_str().unwrap();
    let serve = || {
        let mut command = unprivileged(&place, &SERVE);
        command.env("BLOTTER_CHAINS_SOL_RPC", demo.printed("node:"));
        place.serve_by(command, "serve")
    };
    for crashed in [false, true] {
        let mut server = serve();
        let stored = stream(&server, SMALL, key);
        assert_eq!(stored.1["complete"], true);
        server.signal(if crashed { "KILL" } else { "TERM" });
        server.wait();
        let modes = |folder, file| {
            for entry in fs::read_dir(&data).unwrap() {
                let path = entry.unwrap().path();
                fs::set_permissions(path, fs::Permissions::from_mode(file)).unwrap();
            }
            fs::set_permissions(&data, fs::Permissions::from_mode(folder)).unwrap();
        };
        modes(0o500, 0o400);
        let before = fs::read(data.join("trades.redb")).unwrap();
        let mut server = serve();
        for _ in 0..3 {
            assert_eq!(stream(&server, SMALL, key), stored);
        }
        assert!(place.log("serve").contains("cannot be written"), "{}", place.log("serve"));
        // What is not stored cannot be loaded, and the error says so.
        let other = stream(&server, UNKNOWN, key).1;
        assert_eq!(
            (&other["complete"], &other["error"]["code"]),
            (&false.into(), &"STORAGE_FULL".into())
        );
        assert_eq!(stream(&server, SMALL, key), stored);
        server.signal("TERM");
        server.wait();
        assert!(fs::read(data.join("trades.redb")).unwrap() == before, "the file was changed");
        modes(0o700, 0o600);
    }
}

/// If it becomes read-only while served: rows are served, and writes of new files name the reason.
#[test]
fn a_folder_that_becomes_read_only_is_served_on() {
    let elsewhere = Place::new();
    let demo = elsewhere.serve(&["demo", "--listen", "127.0.0.1:0", "--node", "127.0.0.1:0"]);
    let (place, data) = place_of_unprivileged_user();
    let made = unprivileged(&place, &["keys", "create", "--json", "--data-dir", "data"]).output();
    let made: Value = serde_json::from_slice(&made.unwrap().stdout).unwrap();
    let key = made["key"].as_str().unwrap();
    let serve = || {
        let mut command = unprivileged(&place, &SERVE);
        command.env("BLOTTER_CHAINS_SOL_RPC", demo.printed("node:"));
        place.serve_by(command, "serve")
    };
    let mut server = serve();
    let stored = stream(&server, SMALL, key);
    assert_eq!(stored.1["complete"], true);
    let modes = |folder, file| {
        for name in ["trades.redb", "keys.toml"] {
            fs::set_permissions(data.join(name), fs::Permissions::from_mode(file)).unwrap();
        }
        fs::set_permissions(&data, fs::Permissions::from_mode(folder)).unwrap();
    };
    modes(0o500, 0o400);
    for _ in 0..3 {
        assert_eq!(stream(&server, SMALL, key), stored);
    }
    let refused = unprivileged(&place, &["keys", "create", "--data-dir", "data"]).output().unwrap();
    let shown = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{shown}");
    assert!(shown.contains("keys") && shown.contains("ermission denied"), "{shown}");
    assert_eq!(stream(&server, SMALL, key), stored, "the key is still good");
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    modes(0o700, 0o600);
    assert_eq!(stream(&serve(), SMALL, key), stored);
}
