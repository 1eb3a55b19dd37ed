//! What the program refuses: early, in words that name the parameter and what to do.

#![cfg(unix)]

use crate::support::program::{Place, Ran};

const WALLET: &str = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU";
const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"];

#[track_caller]
fn check(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{}", ran.stderr);
    for part in parts {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[test]
fn config_refuses_what_serve_refuses() {
    for (name, value, part) in [
        ("BLOTTER_STORAGE_ENGINE", "postgres", "BLOTTER_STORAGE_URL"),
        ("BLOTTER_STORAGE_MAX_SIZE", "1MiB", "at least 64MiB"),
        ("BLOTTER_SERVER_CONNECTIONS", "0", "at least 1"),
        ("BLOTTER_SERVER_STREAM_WINDOW", "0s", "at least 1s"),
        ("BLOTTER_CHAINS_ETH_DISCOVERY", "", "discovery is empty"),
        ("BLOTTER_CHAINS_TRON_DISCOVERY", "", "discovery is empty"),
    ] {
        let place = Place::new().variable(name, value);
        check(&place.run(&["config"]), 2, &[part]);
        check(&place.run(&SERVE), 2, &[part]);
    }
    let file = "[chains.eth]\nrpc = ['http://127.0.0.1:9']\ndiscovery = ['explorer']\n";
    let place = Place::new().file("blotter.toml", file);
    check(&place.run(&["config"]), 2, &["eth", "no explorer is configured"]);
    check(&place.run(&SERVE), 2, &["eth", "no explorer is configured"]);
}

#[cfg(feature = "postgres")]
#[test]
fn config_refuses_an_address_that_is_no_database_and_does_not_show_it() {
    let place = Place::new().variable("BLOTTER_STORAGE_URL", "mysql://me:planted@h/planted");
    for args in [&["config"][..], &SERVE, &["keys", "list"]] {
        let ran = place.run(args);
        check(&ran, 2, &["storage.url", "postgres://"]);
        assert!(!ran.stderr.contains("planted"), "{}", ran.stderr);
    }
}

/// The wallet is known to the server alone: no default node may learn of it.
#[test]
fn verify_through_a_server_asks_no_node_that_is_not_configured() {
    let place = Place::new();
    let far = ["verify", WALLET, "--url", "http://127.0.0.1:9", "--key", "k"];
    check(&place.run(&far), 2, &["BLOTTER_CHAINS_SOL_RPC", "[chains.sol]", "public nodes"]);
    let place = Place::new()
        .variable("BLOTTER_URL", "http://127.0.0.1:9")
        .variable("BLOTTER_CHAINS_ETH_RPC", "http://127.0.0.1:9");
    check(&place.run(&["verify", WALLET]), 2, &["BLOTTER_CHAINS_SOL_RPC"]);
    // With a node of the chain it goes on, to a server that is not there.
    let place = place.variable("BLOTTER_CHAINS_SOL_RPC", "http://127.0.0.1:9");
    check(&place.run(&["verify", WALLET]), 1, &["reached"]);
}
