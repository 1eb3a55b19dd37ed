//! Decodes a folder of recorded Tron transactions and judges each by its own expectation, with the
//! inner calls that were recorded and without them.
//!
//! The folder is not part of the project: `BLOTTER_CORPUS_TRON` names it, else `../shared/corpus/tron`
//! is read; without either the test says that it was skipped. A case is one JSON file: `wallet`, `kind` (`swap` or `not-a-trade`),
//! `rpc.gettransactionbyid`, `rpc.gettransactioninfobyid`, `tokens` (decimals by address) and
//! `expected` (`spend`, `receive`: lists of `{token, amount}` with exact decimals).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blotter::decode::Decoded;
use blotter::decode::tron::{decode, parse};
use blotter::domain::{Address, Family, Side};
use blotter::registry::Registry;
use serde_json::Value;

use crate::support::recorded::recorded;

const NATIVE: &str = "native";
const NATIVE_DECIMALS: u32 = 6;

/// Decimal text as an integer of 10^-18.
fn scaled(text: &str) -> i128 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{part:0<18}").parse::<i128>().unwrap()
}

fn flows(expected: &Value) -> BTreeMap<String, i128> {
    let mut net = BTreeMap::new();
    for (list, sign) in [("receive", 1), ("spend", -1)] {
        for entry in expected[list].as_array().into_iter().flatten() {
            let token = entry["token"].as_str().unwrap().to_owned();
            *net.entry(token).or_insert(0) += sign * scaled(entry["amount"].as_str().unwrap());
        }
    }
    net.retain(|_, amount| *amount != 0);
    net
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Exact,
    /// All right except for an unknown native value.
    Unvalued,
    Missing,
    False,
    Wrong(String),
}

fn judge(case: &Value, decoded: &Decoded) -> Verdict {
    let rows = &decoded.trades;
    let mut net = flows(&case["expected"]);
    if case["kind"] != "swap" || net.is_empty() {
        return if rows.is_empty() { Verdict::Exact } else { Verdict::False };
    }
    if rows.is_empty() {
        return Verdict::Missing;
    }
    let native = net.remove(NATIVE);
    let mut got = BTreeMap::new();
    for row in rows {
        let mint = row.mint.to_string();
        let decimals = case["tokens"][&mint]["decimals"].as_u64();
        let decimals = decimals.or((mint == "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t").then_some(6));
        let (Some(units), Some(decimals)) = (row.units, decimals) else {
            return Verdict::Wrong(format!("no amount of {mint}"));
        };
        let scale = 18 - u32::try_from(decimals).unwrap();
        let amount = i128::try_from(units).unwrap() * 10_i128.pow(scale);
        let sign = if row.side == Side::Buy { 1 } else { -1 };
        *got.entry(mint).or_insert(0) += sign * amount;
    }
    if got != net {
        return Verdict::Wrong(format!("tokens {got:?} expected {net:?}"));
    }
    let token_sign = net.values().next().copied().unwrap_or(0).signum();
    let Some(native) = native.filter(|native| native.signum() != token_sign) else {
        return Verdict::Exact;
    };
    let scale = 10_i128.pow(18 - NATIVE_DECIMALS);
    let values = rows.iter().map(|row| row.native);
    match values.sum::<Option<blotter::domain::Units>>() {
        None if net.len() > 1 => Verdict::Exact,
        None => Verdict::Unvalued,
        Some(total) if i128::try_from(total).unwrap() * scale == native.abs() => Verdict::Exact,
        Some(total) => Verdict::Wrong(format!("native {total} expected {}", native / scale)),
    }
}

fn cases(folder: &Path) -> Vec<(PathBuf, Value)> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: PathBuf| {
        let case = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        (path, case)
    };
    paths.into_iter().map(read).filter(|(_, case): &(_, Value)| case["chain"] == "tron").collect()
}

#[test]
#[expect(clippy::print_stderr, reason = "lists the cases that are wrong")]
fn recorded_tron_transactions_come_out_exactly_where_a_corpus_is_given() {
    let Some(folder) = recorded("BLOTTER_CORPUS_TRON", "tron") else { return };
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named("tron").unwrap();
    let cases = cases(Path::new(&folder));
    assert!(!cases.is_empty(), "the folder holds no case");
    let mut wrong = 0;
    for with_calls in [true, false] {
        let (mut exact, mut unknown) = (0, 0);
        for (path, case) in &cases {
            let wallet = Address::parse(Family::Tron, case["wallet"].as_str().unwrap()).unwrap();
            let Address::Tron(wallet) = wallet else { unreachable!("parsed as Tron") };
            let name = path.file_stem().unwrap().to_string_lossy();
            let mut info = case["rpc"]["gettransactioninfobyid"].clone();
            if !with_calls {
                info.as_object_mut().unwrap().remove("internal_transactions");
            }
            let tx = case["rpc"]["gettransactionbyid"].to_string();
            let tx = parse(tx.as_bytes(), info.to_string().as_bytes()).unwrap();
            let decoded = decode(registry.tron(), chain, &wallet, &tx);
            match judge(case, &decoded) {
                Verdict::Exact => exact += 1,
                // Then nothing shows which TRX moved, or that it did.
                Verdict::Unvalued | Verdict::Missing if !with_calls => {
                    unknown += 1;
                    eprintln!("{name}: unknown without inner calls {:?}", decoded.notes);
                }
                verdict @ (Verdict::Unvalued
                | Verdict::Missing
                | Verdict::Wrong(_)
                | Verdict::False) => {
                    wrong += 1;
                    let venues: Vec<&str> = decoded.trades.iter().map(|row| &*row.venue).collect();
                    eprintln!("{name}: {verdict:?} {venues:?} {:?}", decoded.notes);
                }
            }
        }
        let of = cases.len();
        eprintln!("inner calls {with_calls}: {exact} of {of} exact, {unknown} unknown");
    }
    assert_eq!(wrong, 0);
}
