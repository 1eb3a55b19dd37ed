//! Invalid or out-of-range numbers in each place of a node's answer: the transaction is rejected,
//! or decoded as before. No amount is ever derived from them.

#![expect(clippy::print_stderr, reason = "prints how much was tried")]

use blotter::decode::{DecodedTrade, evm, solana, tron};
use blotter::demo::DemoNode;
use blotter::demo::evm::tron::NodeOptions;
use blotter::demo::evm::{EvmModel, TradeKind, WalletPlan};
use blotter::demo::solana::{SolanaModel, WalletPlan as SolanaPlan};
use blotter::domain::{Address, Side, TxId, Units};
use blotter::registry::Registry;
use serde_json::{Value, json};

use crate::demo_decode::raw;
use crate::support::places::each_place;

/// JSON texts, none of which is a valid number of base units, block or second.
const ODD: [&str; 20] = [
    "-1",
    "-0.5",
    "1.5",
    "1e400",
    "1e-400",
    "18446744073709551616",
    "999999999999999999999999999999999999999999999999999999999999999999999999999999999",
    "\"-1\"",
    "\"-0x1\"",
    "\"0x-1\"",
    "\"0xg\"",
    "\"0x1ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\"",
    "\"999999999999999999999999999999999999999999999999999999999999999999999999999999999\"",
    "\"1e5\"",
    "\"1.5\"",
    "\" 1\"",
    "\"1_000\"",
    "\"\u{663}\"",
    "\"NaN\"",
    "true",
];

/// Side, token, units, native.
type Row = (Side, Address, Option<Units>, Option<Units>);

fn rows(trades: &[DecodedTrade]) -> Vec<Row> {
    trades.iter().map(|t| (t.side, t.mint, t.units, t.native)).collect()
}

/// Every place with a number, or with a text that is one in any base.
fn places(value: &Value, found: &mut Vec<String>) {
    each_place(value, "", &mut |at, value| {
        let digits = value.as_str().map(|text| text.strip_prefix("0x").unwrap_or(text));
        let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
        if value.is_number() || digits.is_some_and(is_hex) {
            found.push(at.to_owned());
        }
    });
}

/// Puts each odd number into each place of some answers about one transaction.
#[track_caller]
fn check(name: &str, answers: &[Value], read: impl Fn(&[String]) -> Option<Vec<Row>>) {
    let texts: Vec<String> = answers.iter().map(ToString::to_string).collect();
    let whole = read(&texts).unwrap();
    assert!(!whole.is_empty(), "{name}: nothing to lose");
    let (mut tried, mut refused) = (0, 0);
    for (number, answer) in answers.iter().enumerate() {
        let mut all = Vec::new();
        places(answer, &mut all);
        for place in all {
            let mut changed = answer.clone();
            *changed.pointer_mut(&place).unwrap() = "@@".into();
            let changed = changed.to_string();
            for odd in ODD {
                let mut texts = texts.clone();
                texts[number] = changed.replace("\"@@\"", odd);
                tried += 1;
                let Some(rows) = read(&texts) else {
                    refused += 1;
                    continue;
                };
                let part = |some: &Option<Units>, of: &Option<Units>| some.is_none() || some == of;
                let known = |row: &Row| {
                    whole.iter().any(|w| {
                        (w.0, w.1) == (row.0, row.1) && part(&row.2, &w.2) && part(&row.3, &w.3)
                    })
                };
                assert!(
                    rows.iter().all(known),
                    "{name}: {odd} in {place}: {rows:?}, not {whole:?}"
                );
            }
        }
    }
    eprintln!("{name}: {tried} tried, {refused} refused");
    assert!(refused * 10 > tried, "{name}: of {tried} only {refused} were refused");
}

#[test]
fn solana_numbers_beyond_range() {
    let registry = Registry::embedded().unwrap();
    let model = SolanaModel::new(5);
    let node = DemoNode::new(model.clone(), 1);
    let wallet = model.add_named("numbers", SolanaPlan::trades(40));
    let Address::Solana(key) = wallet else { unreachable!() };
    let truth: Vec<TxId> = model.truth(wallet).map(|t| t.signature).step_by(12).take(3).collect();
    for signature in truth {
        let answer: Value = serde_json::from_slice(&raw(&node, &signature)).unwrap();
        check(&format!("{signature}"), &[answer], |texts| {
            let tx = solana::parse(texts[0].as_bytes()).ok()?;
            Some(rows(&solana::decode(&registry, &key, &tx).trades))
        });
    }
}

#[test]
fn evm_numbers_beyond_range() {
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named("eth").unwrap();
    let model = EvmModel::new(5, chain);
    let node = DemoNode::evm(model.clone(), 1);
    for kind in TradeKind::ALL {
        let wallet = model.add_named(&format!("{kind:?}"), WalletPlan::only(kind, 4));
        let Address::Evm(account) = wallet else { unreachable!() };
        let hash =
            format!("0x{}", hex::encode(model.truth(wallet).next().unwrap().hash.to_bytes()));
        let ask = |method: &str, params: Value| {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let answer = node.respond(call.to_string().as_bytes()).unwrap();
            serde_json::from_slice::<Value>(&answer).unwrap()["result"].take()
        };
        let answers = [
            ask("eth_getTransactionByHash", json!([hash])),
            ask("eth_getTransactionReceipt", json!([hash])),
            ask("debug_traceTransaction", json!([hash, {"tracer": "callTracer"}])),
        ];
        check(&format!("{kind:?}"), &answers, |texts| {
            let mut tx = evm::parse(texts[0].as_bytes(), texts[1].as_bytes()).ok()?;
            tx.native = evm::NativeFlows::Calls(evm::parse_trace(texts[2].as_bytes()).ok()?);
            Some(rows(&evm::decode(registry.evm(), chain, &account, &tx).trades))
        });
    }
}

#[test]
fn tron_numbers_beyond_range() {
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named("tron").unwrap();
    let model = EvmModel::new(5, chain);
    let node = DemoNode::tron(model.clone(), 1);
    node.set_options(NodeOptions::default());
    let wallet = model.add_named("numbers", WalletPlan::trades(40));
    let Address::Tron(account) = wallet else { unreachable!() };
    let hashes: Vec<TxId> = model.truth(wallet).map(|t| t.hash).step_by(7).take(5).collect();
    for hash in hashes {
        let ask = |name: &str| {
            let body = json!({"value": hex::encode(hash.to_bytes())}).to_string();
            let path = format!("/walletsolidity/{name}");
            let (_, body) = node.fetch(&path, Some(body.as_bytes())).unwrap();
            serde_json::from_slice::<Value>(&body).unwrap()
        };
        let answers = [ask("gettransactionbyid"), ask("gettransactioninfobyid")];
        check(&format!("{hash}"), &answers, |texts| {
            let tx = tron::parse(texts[0].as_bytes(), texts[1].as_bytes()).ok()?;
            Some(rows(&tron::decode(registry.tron(), chain, &account, &tx).trades))
        });
    }
}
