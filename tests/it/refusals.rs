//! What the program refuses: early, in words that name the parameter and what to do.

#![cfg(unix)]

use crate::support::program::{Place, Ran};

const WALLET: &str = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU";

#[track_caller]
fn check(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{}", ran.stderr);
    for part in parts {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
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
