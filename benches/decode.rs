//! Bytes to trades: `cargo bench --bench decode`.
//!
//! Apart from one route of Solana's, recorded answers of every family, below the folder that
//! `BLOTTER_CORPUS` names, else `../shared/corpus` where it exists. Each group's first member is the
//! bare scan of the same JSON, which no decoder of JSON can beat.

#![expect(clippy::unwrap_used, reason = "a bench stops where its fixture is wrong")]

#[path = "decode/recorded.rs"]
mod recorded;

use std::hint::black_box;
use std::time::Duration;

use blotter::decode::solana::{decode, parse};
use blotter::domain::{Address, Family};
use blotter::registry::Registry;
use criterion::{Criterion, Throughput};
use serde::de::IgnoredAny;

use self::recorded::Case;

const ROUTE: &[u8] = include_bytes!("../tests/fixtures/solana_route.json");
const WALLET: &str = "6Sp2mYUHBALfoZ6DJff53Pc16i4nUtUZ6EGyRKjEaDk1";

fn main() {
    let registry = Registry::embedded().unwrap();
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(3))
        .warm_up_time(Duration::from_secs(1))
        .configure_from_args();
    one_route(&mut criterion, &registry);
    for name in ["sol", "evm", "tron"] {
        recorded_answers(&mut criterion, &registry, name);
    }
    criterion.final_summary();
}

fn one_route(criterion: &mut Criterion, registry: &Registry) {
    let Address::Solana(wallet) = Address::parse(Family::Solana, WALLET).unwrap() else {
        unreachable!("parsed as Solana")
    };
    let tx = parse(ROUTE).unwrap();
    let mut group = criterion.benchmark_group("route");
    group.throughput(Throughput::Bytes(ROUTE.len().try_into().unwrap()));
    group.bench_function("parse", |b| b.iter(|| parse(black_box(ROUTE)).unwrap()));
    group.bench_function("decode", |b| b.iter(|| decode(registry, &wallet, black_box(&tx))));
    group.bench_function("bytes to trades", |b| {
        b.iter(|| decode(registry, &wallet, &parse(black_box(ROUTE)).unwrap()));
    });
    group.finish();
}

fn recorded_answers(criterion: &mut Criterion, registry: &Registry, name: &str) {
    let cases = recorded::cases(name);
    if cases.is_empty() {
        return;
    }
    let mut group = criterion.benchmark_group(format!("answers-{name}"));
    group.throughput(Throughput::Elements(cases.len().try_into().unwrap()));
    group.bench_function("scan", |b| {
        b.iter(|| {
            for json in cases.iter().flat_map(Case::answers) {
                black_box(serde_json::from_slice::<IgnoredAny>(black_box(json)).unwrap());
            }
        });
    });
    group.bench_function("parse", |b| b.iter(|| cases.iter().for_each(Case::parse)));
    group.bench_function("trades", |b| {
        b.iter(|| {
            for case in &cases {
                black_box(case.trades(registry));
            }
        });
    });
    group.finish();
}
