//! The real binary: flags, configuration, keys, the demo server from the outside, signals.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::program::Place;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn wrong_flags_are_usage_errors() {
    let place = Place::new();
    for args in [
        &["serve", "--lisen", "x"][..],
        &["serve", "--listen", "8080"],
        &["history"],
        &["history", "abc", "--format", "xml"],
        &["keys", "revoke", "7"],
        &["fly"],
        &[],
    ] {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("Usage:") || ran.stderr.contains("error:"), "{}", ran.stderr);
    }
}

#[test]
fn help_and_version_are_no_errors() {
    let place = Place::new();
    for args in
        [&["--help"][..], &["--version"], &["history", "--help"], &["keys", "create", "--help"]]
    {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert!(ran.stdout.contains("blotter"));
    }
    // A release build names its commit and target; any other build says that it is not one.
    let named =
        option_env!("BLOTTER_BUILD").unwrap_or(concat!(env!("CARGO_PKG_VERSION"), " (no release)"));
    assert_eq!(place.run(&["--version"]).stdout, format!("blotter {named}\n"));
}

#[test]
fn a_wrong_configuration_is_named_by_file_line_and_key() {
    let place = Place::new().file("blotter.toml", "[server]\nlisten = '127.0.0.1:0'\nlimit = 5\n");
    let ran = place.run(&["serve"]);
    assert_eq!(ran.code, Some(2));
    for part in ["blotter.toml", "line 3", "limit"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    let ran = place.run(&["config", "--config", "missing.toml"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("missing.toml"), "{}", ran.stderr);
}

#[test]
fn the_configuration_is_shown_merged_and_without_secrets() {
    let file = "[server]\npage_wait = '3s'\n[chains.sol]\nrpc = ['https://me:word@h.example/v2/aB3dE5fG7hI9jK1l?api-key=word2', \
                { url = 'https://g.example', headers = { x-token = 'word3' } }]\n\
                [chains.eth]\nexplorer = { url = 'https://e.example/api', key = 'word4' }\n";
    let place = Place::new().file("blotter.toml", file).variable("BLOTTER_SERVER_FRESHNESS", "5s");
    let ran = place.run(&["config", "--data-dir", "elsewhere"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown: toml::Table = toml::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["server"]["page_wait"].as_str(), Some("3s"));
    assert_eq!(shown["server"]["freshness"].as_str(), Some("5s"));
    assert_eq!(shown["server"]["listen"].as_str(), Some("127.0.0.1:8080"));
    assert_eq!(shown["storage"]["path"].as_str(), Some("elsewhere"));
    assert!(ran.stdout.contains("h.example") && ran.stdout.contains("x-token"));
    // Every limit of every layer, those that are settings and those that are not.
    for limit in [
        "connections_per_address = 1024",
        "connections_per_address_max: 1024",
        "header_wait_max: 30s",
        "wallets_active_max: 1024",
        "body_bytes_max: 16777216",
        "queued_jobs: 256",
    ] {
        assert!(ran.stdout.contains(limit), "{limit}: {}", ran.stdout);
    }
    for secret in ["word", "aB3dE5fG7hI9jK1l"] {
        assert!(!ran.stdout.contains(secret), "{}", ran.stdout);
    }
}

#[test]
fn the_chain_table_says_what_is_read() {
    let file = "[chains.tron]\nenabled = false\n[chains.foo]\nfamily = 'evm'\nchain_id = 5\nnative = 'ETH'\n\
                wrapped_native = '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2'\nrpc = ['http://h.example']\n";
    let place = Place::new().file("blotter.toml", file);
    let shown = json(&place.run(&["chains", "--json"]).stdout);
    let state = |slug: &str| {
        let chains = shown["chains"].as_array().unwrap();
        chains.iter().find(|chain| chain["slug"] == slug).unwrap()["state"].clone()
    };
    assert_eq!(state("sol"), "enabled");
    assert_eq!(state("robinhood"), "enabled");
    assert_eq!(state("tron"), "off");
    assert_eq!(state("foo"), "enabled");
    let ran = place.run(&["history", "TNUC9Qb1rRpS5CbWLmNMxXBjyFoydXjWFR", "--chain", "tron"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("switched off"), "{}", ran.stderr);
}

#[test]
fn keys_are_made_listed_and_revoked() {
    let place = Place::new().variable("BLOTTER_DATA_DIR", "data/here");
    let made = json(
        &place
            .run(&["keys", "create", "--json", "--name", "one", "--rate", "0.5", "--quota", "9"])
            .stdout,
    );
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert!(key.starts_with("blt_") && key.len() == 4 + 43 && id.len() == 12);
    let listed = json(&place.run(&["keys", "list", "--json"]).stdout);
    let first = &listed["keys"][0];
    assert_eq!(
        (&first["id"], &first["name"], &first["quota"]),
        (&id.into(), &"one".into(), &9.into())
    );
    assert_eq!((&first["rate"], &first["state"]), (&0.5.into(), &"active".into()));
    assert_eq!(place.run(&["keys", "revoke", id]).code, Some(0));
    assert!(place.run(&["keys", "list"]).stdout.contains("revoked"));
    let text = std::fs::read_to_string(place.path().join("data/here/keys.toml")).unwrap();
    assert!(!text.contains(&key[4..]), "{text}");
    assert_eq!(place.run(&["keys", "revoke", "0123456789ab"]).code, Some(1));
    assert_eq!(place.run(&["keys", "create", "--chains", "sol,mars"]).code, Some(2));
    assert_eq!(place.run(&["keys", "create", "--expires", "yesterday"]).code, Some(2));
}

/// The trades of a stream's lines, and its final line.
fn trades(lines: &str) -> (Vec<Value>, Value) {
    let mut lines: Vec<Value> = lines.lines().filter(|line| !line.is_empty()).map(json).collect();
    let last = lines.pop().unwrap();
    let trades = lines.iter().flat_map(|line| line["trades"].as_array().unwrap().clone());
    (trades.collect(), last)
}

/// For a complete history, one line on stderr names its proof.
#[track_caller]
fn is_covered(stderr: &str) {
    let is_it = stderr.starts_with("coverage: heights 0 to ") && stderr.lines().count() == 1;
    assert!(is_it && stderr.ends_with(", read and proved\n"), "{stderr}");
}

#[test]
fn the_demo_streams_pages_and_is_read_by_every_way() {
    let place = Place::new();
    let demo = place.serve(&["demo", "--listen", "127.0.0.1:0", "--node", "127.0.0.1:0"]);
    let (key, wallet, node) = (demo.printed("key"), demo.printed("wallet"), demo.printed("node:"));
    let path = format!("/v1/wallets/{wallet}/history");

    let stream = demo.get(&path, &key);
    assert_eq!(stream.status, 200, "{}", stream.body);
    assert!(stream.head.to_ascii_lowercase().contains("application/x-ndjson"));
    let (streamed, last) = trades(&stream.body);
    assert_eq!((&last["complete"], &last["wallet"]), (&true.into(), &wallet.as_str().into()));
    assert_eq!(last["tradeCount"], streamed.len());
    assert!(streamed.len() >= 2_500, "a trade has a row or two");
    assert_eq!(last["firstTrade"], streamed.last().unwrap()["blockTime"]);
    assert!(streamed.is_sorted_by_key(|trade| std::cmp::Reverse(trade["blockTime"].to_string())));

    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = json(&demo.get(&format!("{path}?limit=999{cursor}"), &key).body);
        paged.extend(page["trades"].as_array().unwrap().clone());
        let Some(next) = page["cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(paged, streamed);

    let url = demo.url();
    let asked = ["history", &wallet, "--url", &url, "--key", &key, "--format", "ndjson"];
    let ran = place.run(&asked);
    assert_eq!(ran.code, Some(0));
    is_covered(&ran.stderr);
    assert_eq!(trades(&ran.stdout), (streamed.clone(), last.clone()));
    let batch = json(ran.stdout.lines().nth_back(1).unwrap());
    assert!(batch["cursor"].is_null(), "a server gives none behind the last rows");
    let ran = place.run(&[&asked[..], &["--quiet"]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let (first, end) = trades(&place.run(&[&asked[..], &["--limit", "10"]].concat()).stdout);
    let is_cut = |end: &Value| {
        let known = (&end["complete"], &end["tradeCount"]);
        known == (&false.into(), &streamed.len().into()) && end["cursor"].is_string()
    };
    assert!(first == streamed[..10] && is_cut(&end), "rows remain: {end}");

    // On a data folder of its own, through the demo's node, without the server.
    let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &node);
    let ran = place.run(&["history", &wallet, "--format", "ndjson"]);
    assert_eq!(ran.code, Some(0));
    is_covered(&ran.stderr);
    assert_eq!(trades(&ran.stdout), (streamed.clone(), last));
    let ran =
        place.run(&["history", &wallet, "--format", "csv", "--output", "out.csv", "--limit", "10"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    let text = std::fs::read_to_string(place.path().join("out.csv")).unwrap();
    assert_eq!(text.lines().count(), 11, "a head and ten rows");
    let ran = place.run(&["history", &wallet, "--format", "ndjson", "--limit", "10"]);
    let (first, end) = trades(&ran.stdout);
    assert!(first == streamed[..10] && is_cut(&end), "rows remain: {end}");
    let ran = place.run(&["history", &wallet, "--format", "json", "--limit", "1"]);
    assert_eq!(json(&ran.stdout)["trades"][0], streamed[0]);
}

#[test]
fn the_large_wallet_of_the_demo_trades_on_where_that_is_asked_for() {
    let place = Place::new().variable("BLOTTER_SERVER_STREAM_WINDOW", "12s");
    let args = ["demo", "--listen", "127.0.0.1:0", "--large", "20", "--trade-every", "1"];
    let demo = place.serve(&args);
    let (key, wallet) = (demo.printed("key"), demo.printed("large"));
    let stream = demo.get(&format!("/v1/wallets/{wallet}/history?follow=1"), &key);
    assert!(stream.body.contains("\"live\":true"), "{}", stream.body);
}

#[test]
fn keys_follow_the_file_while_the_server_runs() {
    let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", "http://127.0.0.1:9/");
    let server = place.serve(&["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]);
    let first = server.stderr.lines().find(|line| line.starts_with("blt_")).unwrap();
    assert_eq!(server.get("/v1/usage", first).status, 200);
    assert_eq!(server.get("/v1/usage", "blt_wrong").status, 401);
    let made = json(&place.run(&["keys", "create", "--json", "--data-dir", "data"]).stdout);
    let key = made["key"].as_str().unwrap();
    server.get_until(200, "/v1/usage", key);
    let id = made["id"].as_str().unwrap();
    assert_eq!(json(&server.get("/v1/usage", key).body)["key"]["id"], id);
    assert_eq!(place.run(&["keys", "revoke", id, "--data-dir", "data"]).code, Some(0));
    server.get_until(401, "/v1/usage", key);
    assert_eq!(server.get("/v1/usage", first).status, 200);
    // The server has the folder open: a second process says where to connect instead.
    let wallet = "So11111111111111111111111111111111111111112";
    let ran = place.run(&["history", wallet, "--data-dir", "data"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--url"), "{}", ran.stderr);
}

#[test]
fn a_second_start_makes_no_second_key() {
    let place = Place::new();
    for first in [true, false] {
        let mut server = place.serve(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(server.stderr.contains("blt_"), first);
        server.child.kill().unwrap();
        server.wait();
    }
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_server_in_order() {
    for name in ["TERM", "INT"] {
        let place = Place::new();
        let mut server = place.serve(&["serve", "--listen", "127.0.0.1:0"]);
        server.signal(name);
        assert_eq!(server.wait(), Some(0), "{name}");
        assert!(TcpStream::connect(&server.address).is_err());
    }
}

#[test]
fn an_address_in_use_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = Place::new().run(&["serve", "--listen", &address]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains(&address), "{}", ran.stderr);
}

/// A node without any method: its errors are final.
fn useless_node() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                let header = line.to_ascii_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            let asked: Value = serde_json::from_slice(&body).unwrap();
            let refuse = |call: &Value| {
                serde_json::json!({"jsonrpc": "2.0", "id": call["id"],
                    "error": {"code": -32601, "message": "Method not found"}})
            };
            let batch = asked.as_array().map(|calls| calls.iter().map(refuse).collect());
            let answer: Value = batch.unwrap_or_else(|| refuse(&asked));
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            let _ = reader.get_mut().write_all((head + &answer).as_bytes());
        }
    });
    url
}

#[test]
fn a_history_that_is_not_complete_says_so_and_leaves_no_file() {
    let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &useless_node());
    let wallet = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU";
    let ran = place.run(&["history", wallet, "--format", "csv", "--output", "out.csv"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{}", ran.stderr);
    let left = std::fs::read_dir(place.path()).unwrap().flatten().map(|entry| entry.file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["blotter-data"]);
    let ran = place.run(&["chains", "--check", "--json"]);
    assert_eq!(ran.code, Some(1));
    let sol = &json(&ran.stdout)["endpoints"][0];
    assert_eq!((&sol["chain"], &sol["usable"]), (&"sol".into(), &false.into()));
}

/// A demo that is killed cannot clean up; the next one does.
#[cfg(unix)]
#[test]
fn what_a_killed_demo_left_goes_with_the_next_one() {
    let place = Place::new();
    let temporary = place.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let place = place.variable("TMPDIR", temporary.to_str().unwrap());
    let demo = || place.serve(&["demo", "--listen", "127.0.0.1:0", "--large", "10"]);
    let left = || {
        let entries = std::fs::read_dir(&temporary).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let mut killed = demo();
    killed.signal("KILL");
    killed.wait();
    let old = left();
    assert_eq!(old.len(), 2, "a folder and its lock: {old:?}");
    // Two at once do not affect each other.
    let (mut one, mut other) = (demo(), demo());
    let names = left();
    assert!(names.len() == 4 && old.iter().all(|name| !names.contains(name)), "{names:?}");
    for demo in [&mut one, &mut other] {
        demo.signal("TERM");
        assert_eq!(demo.wait(), Some(0));
    }
    assert_eq!(left(), Vec::<String>::new());
}
