//! A folder of an earlier program: its rows, keys, cursors and usage, as that program answered them.
//! `tests/release/upgrade.py --fixture` has written `tests/fixtures/upgrade` with the program of
//! version 0.1.0, and tries the way back with it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::program::{Place, Server};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/upgrade");
const CHAINS: [&str; 3] = ["sol", "eth", "tron"];
/// No node answers here.
const NOWHERE: &str = "http://127.0.0.1:9/";

/// A folder with a copy of what the earlier program left, and chains without a node.
fn place() -> Place {
    let place = Place::new()
        .variable("BLOTTER_CHAINS_SOL_RPC", NOWHERE)
        .variable("BLOTTER_CHAINS_ETH_RPC", NOWHERE)
        .variable("BLOTTER_CHAINS_TRON_RPC", NOWHERE);
    let data = place.path().join("data");
    fs::create_dir(&data).unwrap();
    for name in ["trades.redb", "keys.toml"] {
        fs::copy(Path::new(FIXTURE).join(name), data.join(name)).unwrap();
    }
    place
}

fn answers() -> Value {
    serde_json::from_str(&fs::read_to_string(Path::new(FIXTURE).join("answers.json")).unwrap())
        .unwrap()
}

fn serve(place: &Place, folder: &str) -> Server {
    place.serve(&["serve", "--listen", "127.0.0.1:0", "--data-dir", folder])
}

/// The rows from a cursor on, as far as pages come.
fn rows(server: &Server, seen: &Value, chain: &str, key: &str, cursor: Option<&str>) -> Vec<Value> {
    let (mut rows, mut query) = (Vec::new(), cursor.map(|at| format!("&cursor={at}")));
    loop {
        let wallet = seen["wallet"].as_str().unwrap();
        let path = format!("/v1/wallets/{wallet}/history?chain={chain}&limit=20");
        let answer = server.get(&(path + query.as_deref().unwrap_or_default()), key);
        // What has no proof is no complete history: a page behind the last row says so.
        if answer.status != 200 {
            return rows;
        }
        let page: Value = serde_json::from_str(&answer.body).unwrap();
        rows.extend(page["trades"].as_array().unwrap().iter().cloned());
        match page["cursor"].as_str() {
            Some(at) if page["trades"] != Value::Array(Vec::new()) => {
                query = Some(format!("&cursor={at}"));
            }
            _ => return rows,
        }
    }
}

#[track_caller]
fn assert_the_same(server: &Server, answers: &Value) {
    let key = answers["key"].as_str().unwrap();
    for chain in CHAINS {
        let seen = &answers["wallets"][chain];
        let before = seen["rows"].as_array().unwrap();
        assert_eq!(&rows(server, seen, chain, key, None), before, "{chain}");
        let below = rows(server, seen, chain, key, seen["cursor"].as_str());
        assert_eq!(below, before[20..], "{chain}");
    }
    let usage: Value = serde_json::from_str(&server.get("/v1/usage", key).body).unwrap();
    assert_eq!(usage["tradesCounted"], answers["usage"]["tradesCounted"]);
}

fn stop(mut server: Server) {
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_folder_of_version_0_1_0_is_served_as_that_version_served_it() {
    let (place, answers) = (place(), answers());
    for _ in 0..2 {
        let server = serve(&place, "data");
        assert_the_same(&server, &answers);
        stop(server);
    }
}

#[test]
fn its_backup_by_this_version_is_served_the_same() {
    let (place, answers) = (place(), answers());
    let server = serve(&place, "data");
    let ran = place.run(&["admin", "backup", "copy", "--data-dir", "data"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    stop(server);
    let server = serve(&place, "copy");
    assert_the_same(&server, &answers);
    stop(server);
}
