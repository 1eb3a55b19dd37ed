//! Bytes to trades: `cargo bench --bench decode`.

#![expect(clippy::unwrap_used, reason = "a bench stops where its fixture is wrong")]

use std::hint::black_box;
use std::time::Duration;

use blotter::decode::solana::{decode, parse};
use blotter::domain::{Address, Family};
use blotter::registry::Registry;
use criterion::{Criterion, Throughput};

const ROUTE: &[u8] = include_bytes!("../tests/fixtures/solana_route.json");
const WALLET: &str = "6Sp2mYUHBALfoZ6DJff53Pc16i4nUtUZ6EGyRKjEaDk1";

fn main() {
    let registry = Registry::embedded().unwrap();
    let Address::Solana(wallet) = Address::parse(Family::Solana, WALLET).unwrap() else { return };
    let tx = parse(ROUTE).unwrap();
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(3))
        .warm_up_time(Duration::from_secs(1))
        .configure_from_args();
    let mut group = criterion.benchmark_group("solana");
    group.throughput(Throughput::Bytes(ROUTE.len().try_into().unwrap()));
    group.bench_function("parse", |b| b.iter(|| parse(black_box(ROUTE)).unwrap()));
    group.bench_function("decode", |b| b.iter(|| decode(&registry, &wallet, black_box(&tx))));
    group.bench_function("bytes to trades", |b| {
        b.iter(|| decode(&registry, &wallet, &parse(black_box(ROUTE)).unwrap()));
    });
    group.finish();
    criterion.final_summary();
}
