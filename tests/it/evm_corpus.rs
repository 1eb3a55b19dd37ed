//! Decodes a folder of recorded EVM transactions and judges each by its own expectation.
//!
//! The folder is not part of the project: `BLOTTER_CORPUS_EVM` names it, else `../shared/corpus/evm` is read; without
//! either the test says that it was skipped. A case is one JSON file below it: `chain`, `wallet`, `kind` (`swap` or `not-a-trade`),
//! `tags`, `tokens.*.decimals`, `rpc` (`eth_getTransactionByHash`, `eth_getTransactionReceipt`,
//! `internal`), and what is expected: `walletDelta.*.raw` in base units, else `expected` (`spend`,
//! `receive`, `fees`: lists of `{token, amount}` with exact decimals).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blotter::decode::Decoded;
use blotter::decode::evm::{NativeFlows, NativeMove, Transaction, decode, parse};
use blotter::domain::{Address, Family, Side, Units};
use blotter::registry::{Chain, Registry};
use serde_json::Value;

use crate::support::recorded::recorded;

/// These minimum shares may only be raised.
const WITH_CALLS_PERMILLE_MIN: usize = 980;
const WITHOUT_CALLS_PERMILLE_MIN: usize = 900;
const NAMED_PERMILLE_MIN: usize = 980;

const NATIVE: &str = "native";
/// Tags of cases that others call a trade and the balance rule does not.
const UNJUDGED: [&str; 6] = [
    "wrap-via-aggregator",
    "fixed-price-claim-not-dex",
    "psm-fixed-price",
    "lending-collateral-swap",
    "swap-plus-bridge",
    "one-sided",
];
/// The native side moved in another transaction, or through another account.
const NATIVE_UNJUDGED: [&str; 3] =
    ["no-outflow-in-tx", "erc4337", "batch-with-another-tracked-wallet"];
/// The old euro contract on Gnosis repeats every transfer of the new one.
const MIRROR: (&str, &str) =
    ("mirror-token-double-transfer", "0xcb444e90d8198415266c6a2724b7900fb12fc56e");

struct Case {
    name: String,
    json: Value,
}

impl Case {
    fn tagged(&self, tags: &[&str]) -> bool {
        let own = self.json["tags"].as_array().into_iter().flatten();
        own.filter_map(Value::as_str).any(|tag| tags.contains(&tag))
    }

    fn decimals(&self, token: &str) -> u32 {
        let decimals = &self.json["tokens"][token]["decimals"];
        if token == NATIVE { 18 } else { u32::try_from(decimals.as_u64().unwrap()).unwrap() }
    }

    /// What the wallet got (positive) or gave of each asset, in base units.
    fn flows(&self, chain: &Chain) -> BTreeMap<String, i128> {
        let mut net = BTreeMap::new();
        let mut add = |token: &str, raw: i128| {
            let token = token.to_lowercase();
            let wrapped = token == chain.wrapped_native.to_string().to_lowercase();
            *net.entry(if wrapped { NATIVE.to_owned() } else { token }).or_insert(0) += raw;
        };
        if let Some(deltas) = self.json["walletDelta"].as_object().filter(|d| !d.is_empty()) {
            for (token, delta) in deltas {
                if !(self.tagged(&[MIRROR.0]) && token == MIRROR.1) {
                    add(token, delta["raw"].as_str().unwrap().parse().unwrap());
                }
            }
        } else if self.json["expected"].is_object() {
            for (list, sign) in [("receive", 1), ("spend", -1), ("fees", -1)] {
                for entry in self.json["expected"][list].as_array().into_iter().flatten() {
                    let token = entry["token"].as_str().unwrap();
                    add(token, sign * raw(&entry["amount"], self.decimals(token)));
                }
            }
        }
        net.retain(|_, amount| *amount != 0);
        net
    }
}

/// Exact decimal text as base units.
fn raw(amount: &Value, decimals: u32) -> i128 {
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let width = usize::try_from(decimals).unwrap();
    format!("{whole}{part:0<width$}").parse().unwrap()
}

fn cases(folder: &Path) -> Vec<Case> {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::<PathBuf>::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    found.sort();
    let read = |path: PathBuf| Case {
        name: path.with_extension("").strip_prefix(folder).unwrap().display().to_string(),
        json: serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap(),
    };
    found.into_iter().map(read).filter(|case| !case.tagged(&UNJUDGED)).collect()
}

/// The transaction, with the recorded inner calls or without.
fn transaction(case: &Case, with_calls: bool) -> Transaction {
    let rpc = &case.json["rpc"];
    let text = |name: &str| rpc[name].to_string();
    let tx = text("eth_getTransactionByHash");
    let receipt = text("eth_getTransactionReceipt");
    let mut tx = parse(tx.as_bytes(), receipt.as_bytes()).unwrap();
    if let Some(rows) = rpc["internal"].as_array().filter(|_| with_calls) {
        tx.native = NativeFlows::Calls(rows.iter().filter_map(native_move).collect());
    }
    tx
}

/// One row of an index's list; some list delegate calls with their parent's value.
fn native_move(row: &Value) -> Option<NativeMove> {
    let kind = ["callType", "type"].into_iter().filter_map(|key| row[key].as_str());
    let kind = kind.into_iter().find(|kind| !kind.is_empty()).unwrap_or("call");
    let account = |key: &str| match Address::parse(Family::Evm, row[key].as_str()?).ok()? {
        Address::Evm(bytes) => Some(bytes),
        Address::Solana(_) | Address::Tron(_) => None,
    };
    let error = row["isError"].as_str().unwrap_or("0");
    let value: Units = row["value"].as_str()?.parse().ok()?;
    let moves = !["delegatecall", "staticcall"].contains(&kind) && error == "0" && !value.is_zero();
    moves.then_some(NativeMove { from: account("from")?, to: account("to")?, value })
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Exact,
    Missing,
    False,
    NoNative,
    Wrong(String),
}

fn judge(case: &Case, chain: &Chain, decoded: &Decoded) -> Verdict {
    let rows = &decoded.trades;
    let mut net = case.flows(chain);
    if case.json["kind"] != "swap" || net.is_empty() {
        return if rows.is_empty() { Verdict::Exact } else { Verdict::False };
    }
    if rows.is_empty() {
        return Verdict::Missing;
    }
    let native = net.remove(NATIVE);
    let mut got = BTreeMap::new();
    for row in rows {
        let Some(units) = row.units else { return Verdict::Wrong("no amount".to_owned()) };
        let sign = if row.side == Side::Buy { 1 } else { -1 };
        let token = row.mint.to_string().to_lowercase();
        *got.entry(token).or_insert(0) += sign * i128::try_from(units).unwrap();
    }
    if got != net {
        return Verdict::Wrong(format!("tokens {got:?} expected {net:?} native {native:?}"));
    }
    let one = net.len() == 1 && !case.tagged(&NATIVE_UNJUDGED);
    let token_sign = net.values().next().copied().unwrap_or(0).signum();
    if let Some(native) = native.filter(|native| one && native.signum() != token_sign) {
        let values: Option<Vec<i128>> =
            rows.iter().map(|row| Some(i128::try_from(row.native?).unwrap())).collect();
        let Some(values) = values else { return Verdict::NoNative };
        let total: i128 = values.iter().sum();
        if total != native.abs() {
            return Verdict::Wrong(format!("native {total} expected {}", native.abs()));
        }
    }
    Verdict::Exact
}

#[derive(Debug, Default)]
struct Tally {
    cases: usize,
    exact: usize,
    unvalued: usize,
    wrong: usize,
    rows: usize,
    named: usize,
    lines: Vec<String>,
}

fn run(registry: &Registry, cases: &[Case], with_calls: bool) -> Tally {
    let mut tally = Tally { cases: cases.len(), ..Tally::default() };
    for case in cases {
        let chain = registry.chain_named(case.json["chain"].as_str().unwrap()).unwrap();
        let wallet = case.json["wallet"].as_str().unwrap();
        let Address::Evm(wallet) = Address::parse(Family::Evm, wallet).unwrap() else {
            unreachable!("parsed as EVM")
        };
        let decoded = decode(registry.evm(), chain, &wallet, &transaction(case, with_calls));
        let named = |venue: &str| Address::parse(Family::Evm, venue).is_err();
        tally.rows += decoded.trades.len();
        for row in decoded.trades.iter().filter(|row| !named(&row.venue)) {
            tally.lines.push(format!("{}: unnamed {}", case.name, row.venue));
        }
        let both = |side| decoded.trades.iter().any(|row| row.side == side);
        if both(Side::Buy)
            && both(Side::Sell)
            && decoded.trades.iter().any(|row| row.native.is_none())
        {
            let wrapped = chain.wrapped_native.to_string().to_lowercase();
            let logs = case.json["rpc"]["eth_getTransactionReceipt"]["logs"].to_string();
            tally.lines.push(format!("{}: novalue hop={}", case.name, logs.contains(&wrapped)));
        }
        tally.named += decoded.trades.iter().filter(|row| named(&row.venue)).count();
        let verdict = judge(case, chain, &decoded);
        match verdict {
            Verdict::Exact => tally.exact += 1,
            Verdict::NoNative => tally.unvalued += 1,
            Verdict::Missing => {}
            Verdict::False | Verdict::Wrong(_) => tally.wrong += 1,
        }
        if verdict != Verdict::Exact {
            let venues: Vec<&str> = decoded.trades.iter().map(|row| &*row.venue).collect();
            let notes: Vec<&str> = decoded.notes.iter().map(|note| &*note.detail).collect();
            tally.lines.push(format!("{}: {verdict:?} {venues:?} {notes:?}", case.name));
        }
    }
    tally
}

#[test]
#[expect(clippy::print_stderr, reason = "lists the cases that are wrong")]
fn recorded_transactions_come_out_exactly_where_a_corpus_is_given() {
    let Some(folder) = recorded("BLOTTER_CORPUS_EVM", "evm") else { return };
    let registry = Registry::embedded().unwrap();
    let cases = cases(Path::new(&folder));
    assert!(!cases.is_empty(), "the folder holds no case");
    let passes = [(true, WITH_CALLS_PERMILLE_MIN), (false, WITHOUT_CALLS_PERMILLE_MIN)];
    let tallies = passes.map(|(with_calls, _)| run(&registry, &cases, with_calls));
    for (tally, (with_calls, _)) in tallies.iter().zip(passes) {
        for line in &tally.lines {
            eprintln!("{line}");
        }
        let Tally { cases, exact, unvalued, wrong, rows, named, .. } = tally;
        eprintln!(
            "calls known: {with_calls}: {exact} of {cases} exact, {unvalued} without native value, \
             {wrong} wrong or false, {named} of {rows} rows named"
        );
    }
    for (tally, (_, permille)) in tallies.into_iter().zip(passes) {
        let Tally { cases, exact, wrong, rows, named, .. } = tally;
        assert_eq!(wrong, 0);
        assert!(exact * 1_000 >= cases * permille);
        assert!(named * 1_000 >= rows * NAMED_PERMILLE_MIN);
    }
}
