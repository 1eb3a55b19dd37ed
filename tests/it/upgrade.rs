//! A folder of an earlier program: its rows, keys, cursors and usage, as that program answered them.
//! `tests/release/upgrade.py --fixture` has written `tests/fixtures/upgrade` with the program of
//! version 0.1.0, and tries the way back with it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::program::{Place, Server};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/upgrade");
const CHAINS: [&str; 3] = ["sol", "eth", "tron"];
const PAGES_MAX: usize = 60;
/// No node answers here.
const NOWHERE: &str = "http://127.0.0.1:9/";

/// A folder with a copy of what the earlier program left, and chains without a node.
fn place() -> Place {
    let place = Place::new()
        .variable("BLOTTER_CHAINS_SOL_RPC", NOWHERE)
        .variable("BLOTTER_CHAINS_ETH_RPC", NOWHERE)
        .variable("BLOTTER_CHAINS_TRON_RPC", NOWHERE)
        // What is stored is served once no new head was found within this time.
        .variable("BLOTTER_SERVER_HEAD_WAIT", "200ms");
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

/// So many rows from a cursor on, with every digit as text. Behind the last one a page would wait
/// for a proof, which takes a node.
fn rows(
    server: &Server,
    (seen, chain): (&Value, &str),
    key: &str,
    cursor: Option<&str>,
    count: usize,
) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), cursor.map(str::to_owned));
    let wallet = seen["wallet"].as_str().unwrap();
    let path = format!("/v1/wallets/{wallet}/history?chain={chain}&limit=20&numbers=string");
    for _ in 0..PAGES_MAX {
        let query = cursor.as_ref().map(|at| format!("&cursor={at}")).unwrap_or_default();
        let answer = server.get(&(path.clone() + &query), key);
        let page: Value = serde_json::from_str(&answer.body).unwrap();
        // Without a node a page may be refused; what is stored is asked for again.
        let Some(trades) = page["trades"].as_array() else { continue };
        rows.extend(trades.iter().cloned());
        if rows.len() >= count {
            return rows;
        }
        cursor = page["cursor"].as_str().map(str::to_owned);
    }
    panic!("no end after {PAGES_MAX} pages: {} rows", rows.len());
}

#[track_caller]
fn assert_the_same(server: &Server, answers: &Value) {
    let key = answers["key"].as_str().unwrap();
    for chain in CHAINS {
        let seen = &answers["wallets"][chain];
        let before = seen["rows"].as_array().unwrap();
        let all = rows(server, (seen, chain), key, None, before.len());
        assert_eq!(&all, before, "{chain}");
        let below = rows(server, (seen, chain), key, seen["cursor"].as_str(), before.len() - 20);
        assert_eq!(below, before[20..], "{chain}");
    }
    let usage: Value = serde_json::from_str(&server.get("/v1/usage", key).body).unwrap();
    assert_eq!(
        usage["tradesCounted"].to_string(),
        answers["usage"]["tradesCounted"].as_str().unwrap()
    );
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
