//! Bytes to trades: `cargo bench --bench decode`.
//!
//! The group `answers` takes recorded `getTransaction` answers: the folder that `BLOTTER_CORPUS`
//! names, else `../shared/corpus/sol` where it exists. Its first member is the bare scan of the
//! same JSON, which no decoder of JSON can beat.

#![expect(clippy::unwrap_used, reason = "a bench stops where its fixture is wrong")]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use blotter::decode::solana::{decode, parse};
use blotter::domain::{Address, Family};
use blotter::registry::Registry;
use criterion::{Criterion, Throughput};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

const ROUTE: &[u8] = include_bytes!("../tests/fixtures/solana_route.json");
const WALLET: &str = "6Sp2mYUHBALfoZ6DJff53Pc16i4nUtUZ6EGyRKjEaDk1";

/// A recorded case: one file.
#[derive(Deserialize)]
struct Case {
    wallet: String,
    rpc: Replies,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Replies {
    get_transaction: Box<RawValue>,
}

/// An answer's bytes, and whose trades are asked for.
struct Answer {
    wallet: [u8; 32],
    json: Vec<u8>,
}

fn main() {
    let registry = Registry::embedded().unwrap();
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(3))
        .warm_up_time(Duration::from_secs(1))
        .configure_from_args();
    one_route(&mut criterion, &registry);
    recorded(&mut criterion, &registry);
    criterion.final_summary();
}

fn one_route(criterion: &mut Criterion, registry: &Registry) {
    let wallet = key(WALLET);
    let tx = parse(ROUTE).unwrap();
    let mut group = criterion.benchmark_group("solana");
    group.throughput(Throughput::Bytes(ROUTE.len().try_into().unwrap()));
    group.bench_function("parse", |b| b.iter(|| parse(black_box(ROUTE)).unwrap()));
    group.bench_function("decode", |b| b.iter(|| decode(registry, &wallet, black_box(&tx))));
    group.bench_function("bytes to trades", |b| {
        b.iter(|| decode(registry, &wallet, &parse(black_box(ROUTE)).unwrap()));
    });
    group.finish();
}

fn recorded(criterion: &mut Criterion, registry: &Registry) {
    let answers = answers();
    if answers.is_empty() {
        return;
    }
    let mut group = criterion.benchmark_group("answers");
    group.throughput(Throughput::Elements(answers.len().try_into().unwrap()));
    group.bench_function("scan", |b| {
        b.iter(|| {
            for answer in &answers {
                let json = black_box(answer.json.as_slice());
                black_box(serde_json::from_slice::<IgnoredAny>(json).unwrap());
            }
        });
    });
    group.bench_function("parse", |b| {
        b.iter(|| {
            for answer in &answers {
                black_box(parse(black_box(&answer.json)).unwrap());
            }
        });
    });
    group.bench_function("trades", |b| {
        b.iter(|| {
            for answer in &answers {
                let tx = parse(black_box(&answer.json)).unwrap();
                black_box(decode(registry, &answer.wallet, &tx));
            }
        });
    });
    group.finish();
}

#[expect(clippy::print_stderr, reason = "tells what was left out")]
fn answers() -> Vec<Answer> {
    let folder = std::env::var_os("BLOTTER_CORPUS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus/sol"),
        PathBuf::from,
    );
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("answers: skipped, there is no folder {}", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let answer = |path: &PathBuf| {
        let case: Case = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let json = case.rpc.get_transaction.get().as_bytes().to_vec();
        Answer { wallet: key(&case.wallet), json }
    };
    paths.iter().map(answer).collect()
}

fn key(text: &str) -> [u8; 32] {
    let Address::Solana(key) = Address::parse(Family::Solana, text).unwrap() else {
        unreachable!("parsed as Solana")
    };
    key
}
