//! How fast the store takes trades, gives them back and finds a cursor, and how large they are.
//!
//! The file is filled once, newest first in chunks of 200 as a back-fill does it, then read.
//! `cargo bench --bench store -- --test` does all of it once on a small file.

#![expect(clippy::print_stdout, reason = "sizes are results of this program")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run should stop")]
#![expect(clippy::indexing_slicing, reason = "as above")]

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use blotter::domain::Position;
use blotter::store::{FILE_NAME, Store, StoreOptions};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::runtime::Runtime;

mod synthetic;

use synthetic::raw_trade::splitmix;
use synthetic::{chunk, trade, wallet};

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 64 << 20 };
const WALLETS: u64 = 1_000;
const CHUNK: u64 = 200;
/// Wallets that are loaded at once: their chunks join commits.
const AT_ONCE: u64 = 8;
const SLICE: usize = 1_000;

/// The outcome of a read of the embedded store, which is ready at once.
fn now<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().unwrap()
}

async fn load(store: &Store, number: u64, trades: u64) {
    let id = store.intern(&wallet(number)).await.unwrap().id;
    let mut from = 0;
    while from < trades {
        store.write_chunk(chunk(id, number, from, CHUNK, trades)).await.unwrap();
        from += CHUNK;
    }
}

fn fill(folder: &Path, wallets: u64, trades: u64, at_once: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = Store::open(folder, OPTIONS).unwrap();
    let start = Instant::now();
    for first in (0..wallets).step_by(usize::try_from(at_once).unwrap()) {
        let some = first..(first + at_once).min(wallets);
        runtime.block_on(join_all(some.map(|number| load(&store, number, trades))));
    }
    report(&format!("{at_once} wallets at once"), folder, &runtime, &store, start);
}

/// Wallets that are followed: ten new trades each, round by round, all above what is stored.
fn follow(folder: &Path, wallets: u64, trades: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = Store::open(folder, OPTIONS).unwrap();
    let start = Instant::now();
    for from in (0..trades / 10).rev().map(|round| round * 10) {
        let store = &store;
        let refresh = |number| async move {
            let id = store.intern(&wallet(number)).await.unwrap().id;
            store.write_chunk(chunk(id, number, from, 10, trades)).await.unwrap();
        };
        runtime.block_on(join_all((0..wallets).map(refresh)));
    }
    report("followed by tens", folder, &runtime, &store, start);
}

fn report(what: &str, folder: &Path, runtime: &Runtime, store: &Store, start: Instant) {
    let millis = u64::try_from(start.elapsed().as_millis()).unwrap().max(1);
    let rows = now(store.stats()).unwrap().rows;
    runtime.block_on(store.close());
    let file = std::fs::metadata(folder.join(FILE_NAME)).unwrap();
    println!(
        "{what}: {rows} trades in {millis} ms, {} a second; each has {} bytes on disk, {} of the file's length",
        rows * 1_000 / millis,
        bytes_on_disk(&file) / rows,
        file.len() / rows
    );
}

/// The file doubles while it is small, and what was never written takes no room.
#[cfg(unix)]
fn bytes_on_disk(file: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(file) * 512
}

#[cfg(not(unix))]
fn bytes_on_disk(file: &std::fs::Metadata) -> u64 {
    file.len()
}

fn scan(store: &Store, number: u64) -> u64 {
    let id = now(store.view().unwrap().wallet(&wallet(number))).unwrap().unwrap().id;
    let (mut after, mut seen) = (Position::Start, 0);
    loop {
        let rows = now(store.view().unwrap().rows(id, after, 0, SLICE)).unwrap();
        let Some(last) = rows.last_key() else { return seen };
        after = Position::After(last);
        seen += u64::try_from(rows.len()).unwrap();
        black_box(rows);
    }
}

fn store(criterion: &mut Criterion) {
    let small = std::env::args().any(|arg| arg == "--test");
    let (wallets, trades) = if small { (10, 1_000) } else { (WALLETS, 1_000) };
    let folder = tempfile::tempdir().unwrap();
    fill(&folder.path().join("one"), wallets / 10, trades, 1);
    follow(&folder.path().join("follow"), wallets / 5, trades / 2);
    let folder = folder.path().join("many");
    fill(&folder, wallets, trades, AT_ONCE);

    let store = Store::open(&folder, OPTIONS).unwrap();
    let mut group = criterion.benchmark_group("store");
    group.sample_size(10);
    group.throughput(Throughput::Elements(wallets * trades));
    group.bench_function("scan all in slices of 1000", |bencher| {
        bencher.iter(|| (0..wallets).map(|number| scan(&store, number)).sum::<u64>());
    });
    group.throughput(Throughput::Elements(1));
    let mut seed = 1;
    group.bench_function("seek a cursor and read 100", |bencher| {
        bencher.iter(|| {
            let number = splitmix(&mut seed) % wallets;
            let after = trade(number, splitmix(&mut seed) % trades, trades).key;
            let view = store.view().unwrap();
            let id = now(view.wallet(&wallet(number))).unwrap().unwrap().id;
            now(view.rows(id, Position::After(after), 0, 100)).unwrap()
        });
    });
    group.finish();
}

criterion_group!(benches, store);
criterion_main!(benches);
