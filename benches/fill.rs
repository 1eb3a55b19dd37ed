//! Fills a data folder with synthetic trades, for measurements on large files.
//!
//! `cargo bench --bench fill -- FOLDER WALLETS TRADES_EACH [--forever]`. It goes on where an earlier
//! run stopped: wallets that are there are left alone. With `--forever` it then writes on and on
//! to more wallets, to be killed in the middle of it, and says after each acknowledged chunk how
//! many trades it has kept. The wallets count as checked just now, so that a server serves them
//! without asking a node first.

#![expect(clippy::print_stdout, reason = "what was written is the result of this program")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run should stop")]
#![expect(clippy::indexing_slicing, reason = "as above")]

use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use blotter::domain::UnixMillis;
use blotter::store::{Chunk, FILE_NAME, Store, StoreOptions};
use futures_util::future::join_all;

mod synthetic;

use synthetic::{chunk, wallet};

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 64 << 20 };
const CHUNK: u64 = 1_000;
/// Wallets that are loaded at once: their chunks join commits.
const AT_ONCE: u64 = 8;

/// Trades have to look as if they had just been asked for, or a server would go and ask.
#[expect(clippy::disallowed_methods, reason = "a program of its own, not a part of the service")]
fn now() -> UnixMillis {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    UnixMillis(u64::try_from(now).unwrap())
}

/// Calls `kept` after each chunk that was acknowledged.
async fn load(store: &Store, number: u64, trades: u64, mut kept: impl FnMut(u64)) {
    let checked_at = Some(now());
    let record = store.intern(&wallet(number)).await.unwrap();
    if !record.coverage.spans().is_empty() {
        return;
    }
    let mut from = 0;
    while from < trades {
        let chunk = chunk(record.id, number, from, CHUNK, trades);
        let count = u64::try_from(chunk.trades.len()).unwrap();
        store.write_chunk(Chunk { checked_at, ..chunk }).await.unwrap();
        kept(count);
        from += CHUNK;
    }
}

async fn fill(folder: &Path, wallets: u64, trades: u64, forever: bool) {
    let store = Store::open(folder, OPTIONS).unwrap();
    let began = Instant::now();
    for first in (0..wallets).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let some = first..(first + AT_ONCE).min(wallets);
        join_all(some.map(|number| load(&store, number, trades, |_| ()))).await;
    }
    let rows = store.stats().await.unwrap().rows;
    let bytes = std::fs::metadata(folder.join(FILE_NAME)).unwrap().len();
    let seconds = began.elapsed().as_secs_f64();
    println!("{rows} trades, {} bytes each, in {seconds:.1} s", bytes / rows.max(1));
    let more = if forever { u64::from(u32::MAX) } else { 0 };
    let mut all = 0;
    for extra in 1..=more {
        let kept = |count| {
            all += count;
            println!("kept {all}");
        };
        load(&store, wallets + extra, trades, kept).await;
    }
    store.close().await;
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if arguments.len() < 3 {
        // `cargo test --benches` names no folder.
        println!("usage: fill FOLDER WALLETS TRADES_EACH [--forever]");
        return;
    }
    let number = |at: usize| arguments[at].parse::<u64>().unwrap();
    let forever = arguments.iter().any(|arg| arg == "--forever");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(fill(Path::new(&arguments[0]), number(1), number(2), forever));
}
