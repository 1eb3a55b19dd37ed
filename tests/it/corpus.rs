//! Decodes a folder of recorded transactions and judges each by its own expectation.
//!
//! The folder is not part of the project: `BLOTTER_CORPUS` names it, else `../shared/corpus/sol` is read; without
//! either the test says that it was skipped. A case is one JSON file: `wallet`, `kind` (`swap` or `not-a-trade`), `tags`, `ambiguous`,
//! `rpc.getTransaction`, `expected` and `alternatives` (`spend`, `receive`, `fees`: lists of
//! `{token, amount}` with exact decimals).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blotter::decode::Decoded;
use blotter::decode::solana::{decode, parse};
use blotter::domain::{Address, Family, Side};
use blotter::registry::Registry;
use serde_json::Value;
use sha2::Digest as _;

use crate::support::recorded::recorded;

/// These minimum shares may only be raised.
const EXACT_PERMILLE_MIN: usize = 980;
const NAMED_PERMILLE_MIN: usize = 980;

const NATIVE: &str = "native";
const WRAPPED: &str = "So11111111111111111111111111111111111111112";
/// Tags of cases that others call a trade and the balance rule does not.
const UNJUDGED: [&str; 6] = [
    "wrap-via-aggregator",
    "fixed-price-claim-not-dex",
    "psm-fixed-price",
    "lending-collateral-swap",
    "swap-plus-bridge",
    "one-sided",
];
/// The native side moved in another transaction.
const NATIVE_UNJUDGED: &str = "no-outflow-in-tx";

/// Decimal text as an integer of 10^-18.
fn scaled(text: &str) -> i128 {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{part:0<18}");
    sign * digits.parse::<i128>().unwrap()
}

fn flows(expected: &Value) -> BTreeMap<String, i128> {
    let mut net = BTreeMap::new();
    for (list, sign) in [("receive", 1), ("spend", -1), ("fees", -1)] {
        for entry in expected[list].as_array().into_iter().flatten() {
            let token = entry["token"].as_str().unwrap();
            let token = if [NATIVE, "SOL", WRAPPED].contains(&token) { NATIVE } else { token };
            let amount = &entry["amount"];
            let amount = amount.as_str().map_or_else(|| scaled(&amount.to_string()), scaled);
            *net.entry(token.to_owned()).or_insert(0) += sign * amount;
        }
    }
    net.retain(|_, amount| *amount != 0);
    net
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Exact,
    Missing,
    False,
    Wrong(String),
}

fn judge(case: &Value, decoded: &Decoded) -> Verdict {
    let first = judge_by(case, &case["expected"], decoded);
    let others = case["alternatives"].as_array().into_iter().flatten();
    let any = first == Verdict::Exact
        || others.into_iter().any(|other| judge_by(case, other, decoded) == Verdict::Exact);
    if any { Verdict::Exact } else { first }
}

fn judge_by(case: &Value, expected: &Value, decoded: &Decoded) -> Verdict {
    let rows = &decoded.trades;
    let mut net = flows(expected);
    if case["kind"] != "swap" || net.is_empty() {
        return if rows.is_empty() { Verdict::Exact } else { Verdict::False };
    }
    if rows.is_empty() {
        return Verdict::Missing;
    }
    let native = net.remove(NATIVE);
    let mut got = BTreeMap::new();
    for row in rows {
        let decimals = decoded.decimals.iter().find(|(mint, _)| *mint == row.mint);
        let (Some(units), Some((_, decimals))) = (row.units, decimals) else {
            return Verdict::Wrong("no amount".to_owned());
        };
        let amount = i128::try_from(units).unwrap() * 10_i128.pow(18 - u32::from(*decimals));
        let sign = if row.side == Side::Buy { 1 } else { -1 };
        *got.entry(row.mint.to_string()).or_insert(0) += sign * amount;
    }
    if got != net {
        return Verdict::Wrong(format!("tokens {got:?} expected {net:?} native {native:?}"));
    }
    let tagged = case["tags"].as_array().is_some_and(|tags| tags.contains(&NATIVE_UNJUDGED.into()));
    let one = net.len() == 1 && !tagged;
    let token_sign = net.values().next().copied().unwrap_or(0).signum();
    if let Some(native) = native.filter(|native| one && native.signum() != token_sign) {
        let values: Option<Vec<i128>> =
            rows.iter().map(|row| Some(i128::try_from(row.native?).unwrap())).collect();
        let Some(values) = values else { return Verdict::Wrong("no native value".to_owned()) };
        let total = values.iter().sum::<i128>() * 10_i128.pow(9);
        if total != native.abs() {
            let off = (total - native.abs()) / 10_i128.pow(9);
            return Verdict::Wrong(format!("native off by {off} of {}", native / 10_i128.pow(9)));
        }
    }
    Verdict::Exact
}

fn cases(folder: &Path) -> Vec<(PathBuf, Value)> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let judged = |case: &Value| {
        let tags = case["tags"].as_array().into_iter().flatten();
        let unjudged = tags.filter_map(Value::as_str).any(|tag| UNJUDGED.contains(&tag));
        case["chain"] == "sol"
            && [Value::Null, false.into(), "".into()].contains(&case["ambiguous"])
            && !unjudged
    };
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read(&path).unwrap();
            (path, serde_json::from_slice(&text).unwrap())
        })
        .filter(|(_, case)| judged(case))
        .collect()
}

#[test]
#[expect(clippy::print_stderr, reason = "lists the cases that are wrong")]
fn recorded_transactions_come_out_exactly_where_a_corpus_is_given() {
    let Some(folder) = recorded("BLOTTER_CORPUS", "sol") else { return };
    let registry = Registry::embedded().unwrap();
    let (mut exact, mut wrong, mut rows, mut named) = (0, Vec::new(), 0, 0);
    let mut false_trades = 0;
    let cases = cases(Path::new(&folder));
    for (path, case) in &cases {
        let Address::Solana(wallet) =
            Address::parse(Family::Solana, case["wallet"].as_str().unwrap()).unwrap()
        else {
            unreachable!("parsed as Solana")
        };
        let name = path.file_stem().unwrap().to_string_lossy();
        let tx = match parse(case["rpc"]["getTransaction"].to_string().as_bytes()) {
            Ok(tx) => tx,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let decoded = decode(&registry, &wallet, &tx);
        if case["kind"] == "swap" {
            let known = |venue: &str| Address::parse(Family::Solana, venue).is_err();
            rows += decoded.trades.len();
            named += decoded.trades.iter().filter(|row| known(&row.venue)).count();
        }
        let verdict = judge(case, &decoded);
        if verdict == Verdict::Exact {
            exact += 1;
            continue;
        }
        false_trades += usize::from(verdict == Verdict::False);
        let venues: Vec<&str> = decoded.trades.iter().map(|row| &*row.venue).collect();
        wrong.push(format!("{name}: {verdict:?} {venues:?} {:?}", decoded.notes));
    }
    for line in &wrong {
        eprintln!("{line}");
    }
    eprintln!(
        "{exact} of {} exact, {false_trades} false, {named} of {rows} rows named",
        cases.len()
    );
    assert!(!cases.is_empty(), "the folder holds no case");
    assert_eq!(false_trades, 0);
    assert!(exact * 1_000 >= cases.len() * EXACT_PERMILLE_MIN);
    assert!(named * 1_000 >= rows * NAMED_PERMILLE_MIN);
}

/// Every program of the tables has another address, which is in none: what is still found is found
/// by its shape, as the tables have it.
#[test]
fn recorded_swaps_at_programs_of_no_table_are_as_the_tables_have_them() {
    let Some(folder) = recorded("BLOTTER_CORPUS", "sol") else { return };
    let registry = Registry::embedded().unwrap();
    let table = include_str!("../../data/venues-solana.toml");
    let programs: Vec<(&str, String)> = table
        .lines()
        .filter_map(|line| line.strip_prefix("address = \"")?.strip_suffix('"'))
        .map(|address| (address, renamed(address)))
        .collect();
    let mut found = 0;
    for (path, case) in cases(Path::new(&folder)) {
        let wallet = Address::parse(Family::Solana, case["wallet"].as_str().unwrap());
        let Ok(Address::Solana(wallet)) = wallet else { unreachable!("parsed as Solana") };
        let text = case["rpc"]["getTransaction"].to_string();
        let unknown = programs.iter().filter(|(address, _)| text.contains(address));
        let unknown = unknown.fold(text.clone(), |text, (known, new)| text.replace(known, new));
        let rows = |text: &str| {
            let decoded = decode(&registry, &wallet, &parse(text.as_bytes()).unwrap());
            let rows = decoded.trades.into_iter();
            rows.map(|row| (row.side, row.mint, row.units, row.native)).collect::<Vec<_>>()
        };
        let by_shape = rows(&unknown);
        if !by_shape.is_empty() {
            assert_eq!(by_shape, rows(&text), "{}", path.display());
            found += 1;
        }
    }
    // Those of PumpSwap and Pump.fun that are called directly and call no other program.
    assert!(found >= 8, "{found}");
}

fn renamed(address: &str) -> String {
    let key: [u8; 32] = sha2::Sha256::digest(address).into();
    Address::Solana(key).to_string()
}
