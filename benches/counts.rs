//! One kind of work, so many times over, for `benches/counts.py`, which counts its instructions.
//!
//! `counts WORK ROUNDS`; without arguments it does each kind once. What is prepared is the same for
//! any number of rounds, so that the difference of two runs is the work alone.

#![expect(clippy::print_stdout, reason = "what was done is the result of this program")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run should stop")]
#![expect(clippy::indexing_slicing, reason = "as above")]

#[expect(dead_code, reason = "another bench needs more of it")]
#[path = "decode/recorded.rs"]
mod recorded;
mod synthetic;

use std::hint::black_box;
use std::path::Path;

use blotter::domain::row_json::rows_json;
use blotter::domain::{Numbers, Position, Row, Rows, Token};
use blotter::registry::Registry;
use blotter::store::{Store, StoreOptions, WalletId};
use futures_util::FutureExt as _;
use tokio::runtime::Runtime;

use synthetic::{chunk, trade, wallet};

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 64 << 20 };
const WORKS: [&str; 6] = ["encode", "page", "insert", "decode sol", "decode evm", "decode tron"];
const ROWS: u64 = 1_000;
const PAGE: usize = 100;
const NATIVE_DECIMALS: u8 = 9;
/// Recorded transactions of a family that one round decodes.
const CASES: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [work, rounds] = arguments.as_slice() {
        run(work, rounds.parse().unwrap());
    } else {
        for work in WORKS {
            run(work, 1);
        }
    }
}

fn run(work: &str, rounds: u64) {
    let done = match work {
        "encode" => encode(rounds),
        "page" => page(rounds),
        "insert" => insert(rounds),
        _ => decode(work.trim_start_matches("decode "), rounds),
    };
    println!("{work}: {done} in {rounds} rounds");
}

/// Bytes of rows as JSON.
fn encode(rounds: u64) -> usize {
    let rows: Rows = (0..ROWS)
        .map(|at| {
            let trade = trade(1, at, ROWS);
            let token = Token::new(trade.mint, Some("TOKEN".into()), Some(6));
            Row { token: token.into(), trade }
        })
        .collect();
    let mut out = Vec::new();
    (0..rounds).map(|_| written(&rows, &mut out)).sum()
}

fn written(rows: &Rows, out: &mut Vec<u8>) -> usize {
    out.clear();
    rows_json(black_box(rows), NATIVE_DECIMALS, Numbers::Literal, out);
    out.len()
}

/// A store in a folder, with a wallet of so many trades.
struct Stored {
    runtime: Runtime,
    store: Store,
    id: WalletId,
}

impl Stored {
    fn new(folder: &Path, trades: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = Store::open(folder, OPTIONS).unwrap();
        let id = runtime.block_on(store.intern(&wallet(1))).unwrap().id;
        let stored = Self { runtime, store, id };
        (0..trades).step_by(1_000).for_each(|from| stored.write(from, trades));
        stored
    }

    fn write(&self, from: u64, trades: u64) {
        let chunk = chunk(self.id, 1, from, 1_000, trades);
        self.runtime.block_on(self.store.write_chunk(chunk)).unwrap();
    }

    fn close(self) {
        self.runtime.block_on(self.store.close());
    }
}

/// Bytes of pages at places all over a wallet, from the store to JSON.
fn page(rounds: u64) -> usize {
    const TRADES: u64 = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let stored = Stored::new(folder.path(), TRADES);
    let (mut out, mut bytes) = (Vec::new(), 0);
    for round in 0..rounds {
        let after = Position::After(trade(1, round * 97 % (TRADES - 200), TRADES).key);
        let view = stored.store.view().unwrap();
        let found = view.wallet(&wallet(1)).now_or_never().unwrap().unwrap().unwrap();
        let rows = view.rows(found.id, after, 0, PAGE).now_or_never().unwrap().unwrap();
        bytes += written(&rows, &mut out);
    }
    stored.close();
    bytes
}

/// Trades that were written, a thousand a commit.
fn insert(rounds: u64) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let stored = Stored::new(folder.path(), 0);
    (0..rounds).for_each(|round| stored.write(round * 1_000, 1_000_000));
    let rows = stored.store.stats().now_or_never().unwrap().unwrap().rows;
    stored.close();
    usize::try_from(rows).unwrap()
}

/// Recorded answers that were decoded; none where they are not there.
fn decode(family: &str, rounds: u64) -> usize {
    let registry = Registry::embedded().unwrap();
    let cases = recorded::cases(family);
    let cases = &cases[..cases.len().min(CASES)];
    for _ in 0..rounds {
        for case in cases {
            drop(black_box(case.trades(&registry)));
        }
    }
    cases.len()
}
