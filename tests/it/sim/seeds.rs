//! Many seeds of one way, on several threads, and which of them fail.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use super::red;
use super::way::Way;

/// Seeds from here on have an endpoint of each kind whose answers lie in agreement with what a client
/// knows already.
const HOSTILE_FROM: u64 = 20_000;
/// Seeds from here on have nodes that stray to another chain, and nothing of the former.
const STRAY_FROM: u64 = 30_000;
/// Of each way; [`usual`] says how many a run takes.
const HOSTILE_SEEDS: u64 = 60;
const STRAY_SEEDS: u64 = 60;

/// Seeds of these worlds.
pub(super) fn apart() -> impl Iterator<Item = u64> {
    let strays = STRAY_FROM..STRAY_FROM + usual(STRAY_SEEDS);
    (HOSTILE_FROM..HOSTILE_FROM + usual(HOSTILE_SEEDS)).chain(strays)
}

pub(super) fn is_hostile(seed: u64) -> bool {
    (HOSTILE_FROM..STRAY_FROM).contains(&seed)
}

pub(super) fn strays(seed: u64) -> bool {
    seed >= STRAY_FROM
}

/// What a run saw.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Seen {
    pub(super) rows: u64,
    pub(super) requests: u64,
    pub(super) faults: u64,
    pub(super) crashes: u64,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.requests += other.requests;
        self.faults += other.faults;
        self.crashes += other.crashes;
    }
}

/// Runs the seeds that are asked for, else those given; none of them may fail, but for ways that are
/// known to.
pub(super) fn run_all(
    way: Way,
    (usual, threads): (impl Iterator<Item = u64>, usize),
    run: fn(Way, u64) -> Seen,
) {
    if !is_asked_for(way) {
        return;
    }
    let asked = std::env::var("BLOTTER_SIM_SEEDS").ok();
    let seeds: Vec<u64> = match &asked {
        Some(asked) => asked.split(',').flat_map(seeds_of).collect(),
        None => usual.filter(|seed| !red::fails(way, *seed)).collect(),
    };
    let (seen, mut failed) = on_threads(way, &seeds, threads, run);
    eprintln!("{}: {} seeds, {} failed: {seen:?}", way.name(), seeds.len(), failed.len());
    failed.sort_unstable();
    if asked.is_none() && red::is_red(way) {
        eprintln!("{}: known to fail: {failed:?}", way.name());
        return;
    }
    assert!(failed.is_empty(), "{}: seeds {failed:?}", way.name());
}

fn on_threads(
    way: Way,
    seeds: &[u64],
    threads: usize,
    run: fn(Way, u64) -> Seen,
) -> (Seen, Vec<u64>) {
    let next = AtomicU64::new(0);
    let name = way.name();
    let work = || {
        let (mut seen, mut failed) = (Seen::default(), Vec::new());
        let take = || usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
        while let Some(&seed) = seeds.get(take()) {
            if let Ok(one) = catch_unwind(AssertUnwindSafe(|| run(way, seed))) {
                seen.add(one);
                continue;
            }
            eprintln!(
                "{name} {seed} failed; BLOTTER_SIM_WAYS={name} BLOTTER_SIM_SEEDS={seed} repeats it"
            );
            failed.push(seed);
            if std::env::var_os("BLOTTER_SIM_STOP").is_some() {
                next.store(u64::MAX / 2, Ordering::Relaxed);
            }
        }
        (seen, failed)
    };
    let (mut seen, mut failed) = (Seen::default(), Vec::new());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            let (one, failures) = thread.join().unwrap();
            seen.add(one);
            failed.extend(failures);
        }
    });
    (seen, failed)
}

/// How many seeds a usual run takes: all where `BLOTTER_SIM_LONG` is set, as the gate does, and a tenth
/// otherwise.
pub(super) fn usual(all: u64) -> u64 {
    const TENTH: u64 = 10;
    if std::env::var_os("BLOTTER_SIM_LONG").is_some() { all } else { all / TENTH }
}

/// `BLOTTER_SIM_WAYS=logs,lists`; all where nothing is said.
fn is_asked_for(way: Way) -> bool {
    std::env::var("BLOTTER_SIM_WAYS")
        .map_or(true, |asked| asked.split(',').any(|name| name == way.name()))
}

/// `17` or `0..500`
fn seeds_of(asked: &str) -> Range<u64> {
    let number = |text: &str| text.parse().unwrap();
    match asked.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(asked)..number(asked) + 1,
    }
}
