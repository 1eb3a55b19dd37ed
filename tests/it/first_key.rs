//! The keys that a first start creates: none if it fails, and each is recorded.

#![cfg(unix)]

use std::fs;
use std::net::TcpListener;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::program::Place;

fn audit(place: &Place) -> Vec<Value> {
    let text = fs::read_to_string(place.path().join("data/audit.ndjson")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The names of the keys that are stored.
fn names(place: &Place) -> Vec<Value> {
    let listed = place.run(&["keys", "list", "--json", "--data-dir", "data"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    listed["keys"].as_array().unwrap().iter().map(|key| key["name"].clone()).collect()
}

fn started(place: &Place, args: &[&str], name: &str, value: &str) -> Output {
    place.command(&[args, &["--data-dir", "data"]].concat()).env(name, value).output().unwrap()
}

#[test]
fn a_start_that_fails_late_makes_no_key() {
    let place = Place::new();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = held.local_addr().unwrap().to_string();
    let free = ["serve", "--listen", "127.0.0.1:0"];
    for (args, name, value) in [
        (&["serve", "--listen", busy.as_str()][..], "BLOTTER_LOG_PATHS", "false"),
        (&free, "BLOTTER_SERVER_METRICS_LISTEN", busy.as_str()),
        (&free, "BLOTTER_LOG_ACCESS", "missing/access.ndjson"),
    ] {
        let ran = started(&place, args, name, value);
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(1), "{name}: {stderr}");
        assert_eq!(names(&place), Vec::<Value>::new(), "{name}: {stderr}");
        assert!(!stderr.contains("blt_"), "{stderr}");
    }
    let server = place.serve(&["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]);
    let key = server.stderr.lines().find(|line| line.starts_with("blt_")).unwrap();
    // The key is valid from the first answer on.
    assert_eq!(server.get("/v1/usage", key).status, 200);
    assert_eq!(names(&place), [json!("first")]);
    let lines = audit(&place);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((&lines[0]["event"], &lines[0]["name"]), (&json!("key created"), &json!("first")));
}

/// Its chains would replace what a real server read.
#[test]
fn a_demo_touches_no_store_that_no_demo_made() {
    let demo = ["demo", "--large", "10", "--listen", "127.0.0.1:0"];
    let elsewhere = Place::new();
    let node = elsewhere.serve(&[&demo[..], &["--node", "127.0.0.1:0"]].concat());
    let wallet = node.printed("wallet");
    let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &node.printed("node:"));
    let read = ["history", &wallet, "--format", "csv", "--data-dir", "data"];
    let rows = place.run(&read).stdout;
    let on_it = [&demo[..], &["--seed", "2", "--data-dir", "data"]].concat();
    let ran = place.run(&on_it);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--data-dir"), "{}", ran.stderr);
    assert!(rows.lines().count() > 10 && place.run(&read).stdout == rows);
    // A demo continues with its own store.
    let again = [&demo[..], &["--data-dir", "own"]].concat();
    for _ in 0..2 {
        let mut server = place.serve(&again);
        assert_eq!(server.get("/v1/usage", &server.printed("key")).status, 200);
        server.child.kill().unwrap();
        server.child.wait().unwrap();
    }
}

#[test]
fn a_demo_that_fails_makes_no_key_and_one_that_runs_makes_one() {
    let place = Place::new();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = held.local_addr().unwrap().to_string();
    let demo = ["demo", "--large", "10", "--listen"];
    for (more, code) in [(&[busy.as_str()][..], 1), (&["127.0.0.1:0", "--node", &busy], 1)] {
        let ran = started(&place, &[&demo[..], more].concat(), "BLOTTER_LOG_PATHS", "false");
        assert_eq!(ran.status.code(), Some(code), "{}", String::from_utf8_lossy(&ran.stderr));
        assert_eq!(names(&place), Vec::<Value>::new(), "{more:?}");
    }
    let args = [&demo[..], &["127.0.0.1:0", "--data-dir", "data"]].concat();
    let server = place.serve(&args);
    assert_eq!(server.get("/v1/usage", &server.printed("key")).status, 200);
    assert_eq!(names(&place), [json!("demo")]);
    let lines = audit(&place);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((&lines[0]["event"], &lines[0]["name"]), (&json!("key created"), &json!("demo")));
}
