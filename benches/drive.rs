//! What is measured of a store, the same for ours and for a peer: each implements [`Engine`], is
//! its own program, and is run by `benches/compare/store.py`. One JSON line is the result.

use std::path::Path;
use std::time::{Duration, Instant};

use super::raw_trade::{RawTrade, raw_trade, splitmix};

const USAGE: &str = "usage:
  load FOLDER FIRST WALLETS EACH CHUNK AT_ONCE back|front   writes wallets FIRST.. of EACH trades
  scan FOLDER WALLETS EACH                                  reads all, twice
  seek FOLDER WALLETS EACH COUNT cold|warm LIMIT...         reads LIMIT rows behind random trades
  hammer FOLDER FIRST EACH CHUNK                            writes on and on, and prints each commit
  verify FOLDER FIRST EACH CHUNK REPORTED                    what is there of that";

/// Part of a wallet's history: trades `from..end`, counted from the newest of `trades`.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) wallet: u64,
    pub(crate) from: u64,
    pub(crate) end: u64,
    pub(crate) trades: u64,
}

pub(crate) trait Engine: Sized {
    /// A part in the form that the engine takes; making it is not measured.
    type Batch;
    fn open(folder: &Path) -> Self;
    /// Known from then on.
    fn add_wallet(&mut self, wallet: u64);
    fn prepare(&mut self, part: Part) -> Self::Batch;
    /// Durable on return.
    fn write(&mut self, batches: Vec<Self::Batch>);
    /// Rows of a wallet behind a trade, or from the newest one on: how many there were.
    fn read(&mut self, wallet: u64, behind: Option<RawTrade<'_>>, limit: u64, sum: &mut Sum)
    -> u64;
    fn close(self);
}

/// Of all that was read, in its order: engines that were given the same must give the same.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Sum(u64);

impl Sum {
    pub(crate) fn add(&mut self, row: &RawTrade<'_>) {
        let word = |bytes: &[u8]| bytes.iter().take(8).fold(0, |w, b| w << 8 | u64::from(*b));
        let place = u64::from(row.time) << 32 ^ row.height;
        let kind = u64::from(row.sell) | u64::try_from(row.venue.len()).unwrap() << 1;
        let parts =
            [place, word(&row.tx), word(&row.tx[64..]), word(&row.mint), row.units, row.native];
        for part in parts.into_iter().chain([kind]) {
            self.0 = (self.0 ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        }
    }
}

pub(crate) fn main<E: Engine>() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let number = |at: usize| arguments[at].parse::<u64>().unwrap();
    let folder = || Path::new(&arguments[1]);
    match arguments.first().map(String::as_str) {
        Some("load") => {
            let plan = Plan {
                first: number(2),
                wallets: number(3),
                each: number(4),
                chunk: number(5),
                at_once: number(6),
                is_back: arguments[7] == "back",
            };
            load::<E>(folder(), &plan);
        }
        Some("scan") => scan::<E>(folder(), number(2), number(3)),
        Some("seek") => {
            let limits: Vec<u64> = (6..arguments.len()).map(number).collect();
            seek::<E>(folder(), (number(2), number(3)), number(4), arguments[5] == "warm", &limits);
        }
        Some("hammer") => hammer::<E>(folder(), number(2), number(3), number(4)),
        Some("verify") => verify::<E>(folder(), number(2), number(3), number(4), number(5)),
        // `cargo test --benches` names nothing.
        _ => println!("{USAGE}"),
    }
}

struct Plan {
    first: u64,
    wallets: u64,
    each: u64,
    chunk: u64,
    /// Wallets that grow side by side; their parts are written together.
    at_once: u64,
    /// From the newest trade down, as a wallet is loaded; else up, as a followed one grows.
    is_back: bool,
}

fn load<E: Engine>(folder: &Path, plan: &Plan) {
    let mut engine = E::open(folder);
    let mut commits = Vec::new();
    let end = plan.first + plan.wallets;
    let step = |width: u64| usize::try_from(width).unwrap();
    let mut starts: Vec<u64> = (0..plan.each).step_by(step(plan.chunk)).collect();
    if !plan.is_back {
        starts.reverse();
    }
    for first in (plan.first..end).step_by(step(plan.at_once)) {
        let some = first..(first + plan.at_once).min(end);
        some.clone().for_each(|wallet| engine.add_wallet(wallet));
        for &from in &starts {
            let end = (from + plan.chunk).min(plan.each);
            let part = |wallet| Part { wallet, from, end, trades: plan.each };
            let batches = some.clone().map(|wallet| engine.prepare(part(wallet))).collect();
            let began = Instant::now();
            engine.write(batches);
            commits.push(began.elapsed());
        }
    }
    let began = Instant::now();
    engine.close();
    let closed = began.elapsed();
    let seconds = commits.iter().sum::<Duration>().as_secs_f64();
    let (rows, count) = (plan.wallets * plan.each, commits.len());
    let (p50, p99) = quantiles(&mut commits);
    let close_s = closed.as_secs_f64();
    println!(
        r#"{{"rows":{rows},"seconds":{seconds},"close_s":{close_s},"commits":{count},"p50_us":{p50},"p99_us":{p99}}}"#
    );
}

fn scan<E: Engine>(folder: &Path, wallets: u64, each: u64) {
    let mut engine = E::open(folder);
    let mut seconds = Vec::new();
    let mut sums = Vec::new();
    for _ in 0..2 {
        let began = Instant::now();
        let mut sum = Sum::default();
        let rows = read_all(&mut engine, wallets, &mut sum);
        assert_eq!(rows, wallets * each, "rows of the scan");
        seconds.push(began.elapsed().as_secs_f64());
        sums.push(sum.0);
    }
    assert_eq!(sums[0], sums[1], "two scans");
    engine.close();
    println!(
        r#"{{"rows":{},"first_s":{},"second_s":{},"sum":"{:016x}"}}"#,
        wallets * each,
        seconds[0],
        seconds[1],
        sums[0]
    );
}

fn read_all<E: Engine>(engine: &mut E, wallets: u64, sum: &mut Sum) -> u64 {
    (0..wallets).map(|wallet| engine.read(wallet, None, u64::MAX, sum)).sum()
}

fn seek<E: Engine>(folder: &Path, size: (u64, u64), count: u64, is_warm: bool, limits: &[u64]) {
    let (wallets, each) = size;
    let mut engine = E::open(folder);
    let mut sum = Sum::default();
    if is_warm {
        read_all(&mut engine, wallets, &mut sum);
    }
    for &limit in limits {
        let mut seed = 1;
        let mut rows = 0;
        let mut times = Vec::new();
        for _ in 0..count {
            let wallet = splitmix(&mut seed) % wallets;
            // So that there are enough rows behind it, where the wallet has them.
            let at = splitmix(&mut seed) % each.saturating_sub(limit).max(1);
            let behind = raw_trade(wallet, at, each);
            let began = Instant::now();
            rows += engine.read(wallet, Some(behind), limit, &mut sum);
            times.push(began.elapsed());
        }
        let (p50, p99) = quantiles(&mut times);
        println!(
            r#"{{"limit":{limit},"rows":{rows},"seeks":{count},"p50_us":{p50},"p99_us":{p99},"sum":"{:016x}"}}"#,
            sum.0
        );
    }
    engine.close();
}

/// Until it is killed: prints how many trades are durable after each commit.
fn hammer<E: Engine>(folder: &Path, first: u64, each: u64, chunk: u64) {
    let mut engine = E::open(folder);
    let mut reported = 0;
    for wallet in first.. {
        engine.add_wallet(wallet);
        for from in (0..each).step_by(usize::try_from(chunk).unwrap()) {
            let end = (from + chunk).min(each);
            let batch = engine.prepare(Part { wallet, from, end, trades: each });
            engine.write(vec![batch]);
            reported += end - from;
            println!("{reported}");
        }
    }
}

/// Opens after a kill, and compares all that was reported with what is there.
fn verify<E: Engine>(folder: &Path, first: u64, each: u64, chunk: u64, reported: u64) {
    let began = Instant::now();
    let mut engine = E::open(folder);
    let opened = began.elapsed().as_micros();
    let (mut stored, mut right) = (0, true);
    for wallet in first.. {
        engine.add_wallet(wallet);
        let (mut found, mut expected) = (Sum::default(), Sum::default());
        let rows = engine.read(wallet, None, u64::MAX, &mut found);
        (0..rows).for_each(|at| expected.add(&raw_trade(wallet, at, each)));
        right &= found == expected;
        stored += rows;
        if rows < each {
            break;
        }
    }
    // A commit may have been durable before it could be reported.
    let next = each.min(reported % each + chunk) + reported / each * each;
    let whole = right && (stored == reported || stored == next);
    let lost = reported.saturating_sub(stored);
    engine.close();
    println!(
        r#"{{"open_us":{opened},"reported":{reported},"stored":{stored},"lost":{lost},"whole":{whole}}}"#
    );
}

/// Median and 99th percentile in microseconds.
fn quantiles(times: &mut [Duration]) -> (String, String) {
    times.sort_unstable();
    let at = |share: usize| {
        let time = times.get(times.len().saturating_sub(1) * share / 100);
        let time = time.copied().unwrap_or_default();
        format!("{}.{:03}", time.as_micros(), time.subsec_nanos() % 1_000)
    };
    (at(50), at(99))
}
