//! Invalid input is rejected early, with messages that name the parameter and the remedy.

#![cfg(unix)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::support::program::{PATIENCE, Place, Ran};

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
        ("BLOTTER_SERVER_STREAM_WINDOW", "0s", "at least 100ms"),
        ("BLOTTER_CHAINS_ETH_DISCOVERY", ",", "discovery is empty"),
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

/// Otherwise its password would become part of a folder's name.
#[cfg(feature = "postgres")]
#[test]
fn an_address_is_not_taken_for_a_folder() {
    let place = Place::new();
    let wrong = "mysql://me:planted@h/planted";
    let database = "postgres://me:planted@h/planted";
    for (args, part) in [
        (["storage", "copy", "--from", wrong, "--to", "data"], "--from: "),
        (["storage", "copy", "--from", "data", "--to", wrong], "--to: "),
        (["keys", "create", "--name", "a", "--data-dir", database], "BLOTTER_STORAGE_URL"),
    ] {
        let ran = place.run(&args);
        check(&ran, 2, &[part]);
        assert!(!ran.stderr.contains("planted"), "{}", ran.stderr);
    }
    assert!(["mysql:", "postgres:", "data"].iter().all(|name| !place.path().join(name).exists()));
}

#[test]
fn a_data_folder_that_cannot_be_used_is_named() {
    let place = Place::new().file("data", "a file");
    check(&place.run(&SERVE), 1, &["data folder data", "--data-dir"]);
    let ran = place.run(&["history", WALLET, "--data-dir", "data/below"]);
    check(&ran, 1, &["data folder data/below", "--data-dir"]);
}

#[test]
fn a_folder_in_use_and_an_existing_copy_are_named_with_what_to_do() {
    let place = Place::new();
    let server = place.serve(&SERVE);
    for command in ["pnl", "history"] {
        let ran = place.run(&[command, WALLET, "--data-dir", "data"]);
        check(&ran, 1, &["data folder data is in use", "--url", "another folder"]);
        assert!(!ran.stderr.contains("blotter history"), "{}", ran.stderr);
    }
    check(&place.run(&SERVE), 1, &["data folder data is in use", "--data-dir"]);
    let backup = || place.run(&["admin", "backup", "copy", "--data-dir", "data"]);
    assert_eq!(backup().code, Some(0));
    check(&backup(), 1, &["copy/trades.redb exists already: name another folder"]);
    drop(server);
}

#[test]
fn a_port_in_use_is_named_with_the_setting_and_a_free_one() {
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = held.local_addr().unwrap().to_string();
    let place = Place::new().variable("BLOTTER_SERVER_METRICS_LISTEN", &busy);
    check(&place.run(&SERVE), 1, &[&busy, "server.metrics_listen", "127.0.0.1:0"]);
    let place = Place::new();
    let ran = place.run(&["serve", "--listen", &busy, "--data-dir", "data"]);
    check(&ran, 1, &[&busy, "--listen", "127.0.0.1:0"]);
    let demo = ["demo", "--large", "10", "--listen", "127.0.0.1:0", "--node", &busy];
    check(&place.run(&demo), 1, &[&busy, "--node", "127.0.0.1:0"]);
}

#[test]
fn a_free_port_for_metrics_is_named() {
    let place = Place::new().variable("BLOTTER_SERVER_METRICS_LISTEN", "127.0.0.1:0");
    let server = place.serve(&SERVE);
    let (_, rest) = server.stderr.split_once("metrics are served at http://").unwrap();
    let address = rest.split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn names_of_keys_do_not_reach_a_terminal_as_control_characters() {
    let place = Place::new();
    let named = |name: &str| place.run(&["keys", "create", "--name", name, "--data-dir", "data"]);
    for name in ["a\u{1b}[31m", "a\nb", "a\tb", "a\u{9b}b"] {
        check(&named(name), 2, &["--name", "control characters"]);
    }
    assert_eq!(named("Ünïcode name").code, Some(0));
    // Of an earlier program.
    let file = place.path().join("data/keys.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("Ünïcode name", "a\\u001b[31mred\\nline")).unwrap();
    let listed = place.run(&["keys", "list", "--data-dir", "data"]).stdout;
    assert!(listed.contains("red") && !listed.contains('\u{1b}'), "{listed}");
    assert_eq!(listed.lines().count(), 2, "{listed}");
}

#[test]
fn a_chain_that_is_named_twice_is_one_chain_of_a_key() {
    let place = Place::new();
    let chains = "eth,ETH,ethereum,base";
    let ran = place.run(&["keys", "create", "--chains", chains, "--data-dir", "data"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let listed = place.run(&["keys", "list", "--json", "--data-dir", "data"]).stdout;
    assert!(listed.contains(r#""chains":["eth","base"]"#), "{listed}");
}

#[test]
fn a_transaction_in_another_form_is_refused_with_its_own() {
    let place = Place::new();
    let wallet = "0x00000000000000000000000000000000000000aa";
    let ran = place.run(&["explain", &"ab".repeat(32), "--wallet", wallet, "--chain", "eth"]);
    check(&ran, 2, &["hex of 32 bytes (on EVM chains behind 0x)"]);
}

#[test]
fn an_id_that_no_key_has_is_refused_as_that() {
    let place = Place::new();
    let ran = place.run(&["keys", "revoke", "000000000000", "--data-dir", "data"]);
    check(&ran, 2, &["no key has this id", "keys list"]);
    check(&place.run(&["keys", "revoke", "7"]), 2, &["12 hex digits"]);
}

/// Only the server may learn of the wallet: no public default node is asked.
#[test]
fn verify_through_a_server_asks_no_node_that_is_not_configured() {
    let place = Place::new();
    let far = ["verify", WALLET, "--url", "http://127.0.0.1:9", "--key", "k"];
    check(&place.run(&far), 2, &["BLOTTER_CHAINS_SOL_RPC", "[chains.sol]", "public nodes"]);
    let place = Place::new()
        .variable("BLOTTER_URL", "http://127.0.0.1:9")
        .variable("BLOTTER_KEY", "k")
        .variable("BLOTTER_CHAINS_ETH_RPC", "http://127.0.0.1:9");
    check(&place.run(&["verify", WALLET]), 2, &["BLOTTER_CHAINS_SOL_RPC"]);
    // With a node of the chain it goes on, to a server that is not there.
    let place = place.variable("BLOTTER_CHAINS_SOL_RPC", "http://127.0.0.1:9");
    check(&place.run(&["verify", WALLET]), 1, &["reached"]);
}
