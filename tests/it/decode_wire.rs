//! Replies of nodes: both encodings, the fields that the source reads, and hostile bytes.

use blotter::decode::solana::{Transaction, decode, parse};
use blotter::domain::Side;
use blotter::registry::Registry;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::decode::{
    JUPITER, RAYDIUM, bought, check, filled, full_size, routed, run, sold_to_curve,
};
use crate::support::solana::{Tx, as_parsed, key};

const FLINT: &str = "FLiNTXPwppyoJabCoxc2uiiRygAHpmMXajiDXo2Ub1z";

fn parsed(tx: &Tx) -> Transaction {
    parse(tx.json().to_string().as_bytes()).unwrap()
}

#[test]
fn reports_what_the_source_asks() {
    let tx = parsed(&bought());
    assert_eq!(
        (tx.slot(), tx.block_time(), tx.index()),
        (250_000_000, Some(1_700_000_000), Some(7))
    );
    assert_eq!(tx.id().unwrap().to_string(), bs58::encode([7_u8; 64]).into_string());
    assert!(!tx.failed());
    // A temporary account of wrapped SOL needs no list of its own.
    assert!(tx.closed_token_accounts(&key("w")).is_empty());
    let mut closed = Tx::new("w");
    closed.account("w old", "OLD", "w", 0).close(1, "w old", "w", "w");
    assert_eq!(parsed(&closed).closed_token_accounts(&key("w")), [key("w old")]);
    // If the balances name no owner, as before 2022, the closer is the owner.
    closed.owners = false;
    assert_eq!(parsed(&closed).closed_token_accounts(&key("w")), [key("w old")]);
    assert!(parsed(&closed).closed_token_accounts(&key("other")).is_empty());
    let mut held = Tx::new("keeper");
    held.account("w bonk", "BONK", "w", 5).account("p bonk", "BONK", "p", 9);
    let amounts = [Some(5), Some(5)];
    assert_eq!(parsed(&held).held_token_accounts(&key("w")), [(key("w bonk"), amounts)]);
    assert!(parsed(&held).closed_token_accounts(&key("w")).is_empty());
    // Given to another owner: the wallet's until then.
    let mut given = held.json();
    for balance in given["meta"]["postTokenBalances"].as_array_mut().unwrap() {
        balance["owner"] = balance["mint"].clone();
    }
    let given = parse(given.to_string().as_bytes()).unwrap();
    assert_eq!(given.closed_token_accounts(&key("w")), [key("w bonk")]);
    assert!(given.held_token_accounts(&key("w")).is_empty());
}

/// Lists that nodes did not record yet are not missing: inner calls and token balances up to
/// October 2021, owners up to December 2021.
#[test]
fn a_reply_is_whole_where_it_holds_what_nodes_record() {
    let is_whole = |slot: u64, lacks: Option<&str>, owners: bool| {
        let mut tx = bought();
        tx.owners = owners;
        let mut given = tx.json();
        given["slot"] = slot.into();
        if let Some(name) = lacks {
            given["meta"][name] = Value::Null;
        }
        parse(given.to_string().as_bytes()).unwrap().is_whole()
    };
    for name in ["innerInstructions", "preTokenBalances", "postTokenBalances"] {
        assert!(is_whole(99_999_999, Some(name), false), "{name}");
        assert!(!is_whole(100_000_000, Some(name), false), "{name}");
    }
    assert!(is_whole(111_491_818, None, false) && !is_whole(111_491_819, None, false));
    assert!(is_whole(111_491_819, None, true));
    let mut failed = bought().json();
    failed["slot"] = 250_000_000_u64.into();
    failed["meta"]["innerInstructions"] = Value::Null;
    assert!(!parse(failed.to_string().as_bytes()).unwrap().is_whole());
    failed["meta"]["err"] = "ProgramAccountNotFound".into();
    assert!(parse(failed.to_string().as_bytes()).unwrap().is_whole(), "no call was made");
    // A list that is empty although the log shows an inner call is none.
    for (log, whole) in [(true, false), (false, true)] {
        let mut empty = bought().json();
        empty["meta"]["innerInstructions"] = json!([]);
        // Else balances show that some call is missing.
        empty["meta"]["postTokenBalances"] = empty["meta"]["preTokenBalances"].clone();
        if !log {
            let lines = empty["meta"]["logMessages"].as_array_mut().unwrap();
            lines.retain(|line| line.as_str().unwrap().ends_with("invoke [1]"));
        }
        assert_eq!(parse(empty.to_string().as_bytes()).unwrap().is_whole(), whole);
    }
    // A program may log the words that nodes log of a call.
    let mut logged = bought().json();
    let lines = logged["meta"]["logMessages"].as_array_mut().unwrap();
    lines.extend(vec![json!("Program log: invoke [2]"); 99]);
    assert!(parse(logged.to_string().as_bytes()).unwrap().is_whole());
    let mut cut = bought().json();
    let groups = cut["meta"]["innerInstructions"].as_array_mut().unwrap();
    groups.last_mut().unwrap()["instructions"].as_array_mut().unwrap().pop();
    assert!(!parse(cut.to_string().as_bytes()).unwrap().is_whole());
}

#[test]
fn both_encodings_say_the_same() {
    let registry = Registry::embedded().unwrap();
    for (tx, wallet) in
        [(bought(), "w"), (routed(), "w"), (filled(), "maker"), (sold_to_curve(), "w")]
    {
        let other = parse(as_parsed(tx.json()).to_string().as_bytes()).unwrap();
        assert_eq!(decode(&registry, &key(wallet), &other), run(&tx, wallet));
    }
}

/// A swap at Flint, whose two transfers are one batch call of the Token program; nodes also parse
/// its parts.
#[test]
fn a_batch_that_a_node_has_read_is_its_parts() {
    let mut tx = Tx::new("w");
    tx.account("w usdt", "USDT", "w", 24_372_943).account("p usdt", "USDT", "p", 44_625_588);
    tx.account("w usdg", "USDG", "w", 0).account("p usdg", "USDG", "p", 23_074_645);
    tx.call(FLINT, &["w", "w usdt", "p usdt", "w usdg", "p usdg", "p"], &[6]);
    tx.transfer(2, "w usdt", "p usdt", "w", 24_372_943);
    tx.transfer(2, "p usdg", "w usdg", "p", 20_854_786);
    let rows = [
        (Side::Sell, "USDT", 24_372_943, None, "Flint"),
        (Side::Buy, "USDG", 20_854_786, None, "Flint"),
    ];
    check(&tx, "w", &rows);
    let mut json = as_parsed(tx.json());
    let calls = json["meta"]["innerInstructions"][0]["instructions"].as_array_mut().unwrap();
    let parts: Vec<Value> = calls.iter().map(|call| call["parsed"].clone()).collect();
    calls.truncate(1);
    calls[0]["parsed"] = json!({"type": "batch", "info": {"instructions": parts}});
    let batch = parse(json.to_string().as_bytes()).unwrap();
    assert_eq!(decode(&Registry::embedded().unwrap(), &key("w"), &batch), run(&tx, "w"));
}

/// The example and the bench read a file; it is what the builder gives.
#[test]
fn the_fixture_is_a_built_transaction() {
    let fixture = include_bytes!("../fixtures/solana_route.json");
    let fixture: Value = serde_json::from_slice(fixture).unwrap();
    assert_eq!(fixture, full_size().json());
}

#[test]
fn refuses_what_is_no_transaction() {
    for bytes in [
        "",
        "null",
        "[]",
        "{}",
        "{\"slot\":1}",
        "\u{feff}{}",
        "{\"transaction\":[\"AQ==\",\"base64\"]}",
    ] {
        assert!(parse(bytes.as_bytes()).is_err(), "{bytes}");
    }
}

/// Puts another value where the walk ends.
fn mutate(value: &mut Value, path: &[prop::sample::Index], with: Value) {
    let Some((step, rest)) = path.split_first() else {
        *value = with;
        return;
    };
    match value {
        Value::Array(list) if !list.is_empty() => {
            let at = step.index(list.len());
            mutate(&mut list[at], rest, with);
        }
        Value::Object(map) if !map.is_empty() => {
            let at = step.index(map.len());
            let inner = map.values_mut().nth(at).unwrap();
            mutate(inner, rest, with);
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => *value = with,
    }
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<u64>().prop_map(Value::from),
        (0_u64..40).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<[u8; 12]>().prop_map(|data| bs58::encode(data).into_string().into()),
        any::<[u8; 32]>().prop_map(|data| bs58::encode(data).into_string().into()),
        "[ -~]{0,8}".prop_map(Value::from),
        Just(Value::Array(Vec::new())),
    ]
}

proptest! {
    /// For any answer of a node: an error or rows, never a panic; and rows that stay readable never
    /// exceed the token's movements in the transaction.
    #[test]
    fn no_reply_makes_it_panic(
        which in 0_usize..5,
        edits in prop::collection::vec((prop::collection::vec(any::<prop::sample::Index>(), 1..7), values()), 1..4),
        wallet in prop::sample::select(vec!["w", "maker", "pool", "keeper", "order"]),
    ) {
        let tx = [bought(), routed(), sold_to_curve(), filled(), bought()][which].clone();
        let mut json = tx.json();
        if which == 4 {
            json = as_parsed(json);
        }
        for (path, with) in edits {
            mutate(&mut json, &path, with);
        }
        if let Ok(tx) = parse(json.to_string().as_bytes()) {
            let registry = Registry::embedded().unwrap();
            decode(&registry, &key(wallet), &tx);
            tx.closed_token_accounts(&key(wallet));
        }
    }

    #[test]
    fn cut_bytes_are_refused(cut in any::<prop::sample::Index>()) {
        let text = routed().json().to_string();
        prop_assert!(parse(&text.as_bytes()[..cut.index(text.len())]).is_err());
    }

    /// A swap of any size next to any other movement: the rows never exceed the wallet's change of
    /// balance.
    #[test]
    fn rows_stay_within_what_the_balance_moved(
        sold in 1_u64..1_000, got in 1_u64..1_000, refund in 0_u64..1_000, price in 1_u64..1_000_000,
    ) {
        let refund = refund.min(sold - 1);
        let mut tx = Tx::new("w");
        tx.account("w bonk", "BONK", "w", 1_000).account("p bonk", "BONK", "p", 5_000);
        tx.account("w wif", "WIF", "w", 0).account("p wif", "WIF", "p", 5_000);
        tx.call(JUPITER, &["w"], &[1]);
        tx.inner(2, RAYDIUM, &["w bonk", "p bonk", "p wif", "w wif", "w", "p"], &[9]);
        tx.transfer(3, "w bonk", "p bonk", "w", sold).transfer(3, "p bonk", "w bonk", "p", refund);
        tx.transfer(3, "p wif", "w wif", "p", got);
        tx.pay(1, "w", "friend", price);
        let expected = [
            (Side::Sell, "BONK", sold - refund, None, "Raydium AMM v4"),
            (Side::Buy, "WIF", got, None, "Raydium AMM v4"),
        ];
        check(&tx, "w", &expected);
    }
}
