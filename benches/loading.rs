//! How near a load comes to the least that a node's limits allow: `cargo bench --bench loading`.
//!
//! The whole engine over the demo chains, in this process and on paused time: the figures are those
//! of the schedule alone, the same on every machine and however busy it is. A node answers after
//! 80 ms; its limit is a number of calls a second, or of requests at a time. Prints one Markdown
//! table; ends with 1 where a floor is not held.
//!
//! What is held against what: the least time is what all distinct calls take at the limit, or those
//! for transactions and lists by turns, and one round trip; what is asked twice is not in it.
//! `--transactions N` reads smaller wallets, `--only TEXT` some lines, `--only calls` counts the calls
//! for 1,000 trades by each way, with `--methods` by method, and what prices would take if
//! blocks far apart were read in one range; `--only newest` the round trips of a page of the newest
//! rows.

#![expect(clippy::print_stdout, reason = "the table is the result of this program")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run should stop")]
#![expect(clippy::indexing_slicing, reason = "as above")]
#![expect(clippy::float_arithmetic, reason = "ratios of times, no money")]

#[path = "../tests/it/support/paused.rs"]
mod paused;
#[path = "loading/seen.rs"]
mod seen;
#[path = "loading/world.rs"]
mod world;

use std::collections::BTreeSet;
use std::time::Duration;

use blotter::sources::Discovery;

use world::{Allowed, Read, Way, World};

const TRIP: Duration = Duration::from_millis(80);
const CALLS_A_SECOND: u64 = 50;
/// Of each wallet; less in the short form.
const TRANSACTIONS: u64 = 20_000;
const TRANSACTIONS_SHORT: u64 = 400;
const WALLETS: usize = 10;
/// How much slower the slow one is.
const SLOWER: u32 = 50;

/// Times that the least may be exceeded by.
const FLOOR: f64 = 1.15;
/// What a slow endpoint next to a fast one may cost.
const FLOOR_SLOW: f64 = 1.10;
/// Of the mean, how long the last of some wallets may take.
const FLOOR_SHARE: f64 = 1.15;
/// Requests to nodes for 1,000 trades by a gateway with traces, and calls without those for prices.
const NODE_CALLS_MAX: u64 = 60;
/// The least that Ethereum's reference pools log together, and the length of such a log in an answer.
const SWAPS_A_BLOCK: u64 = 1;
const SWAP_BYTES: u64 = 861;

const SINGLE: Allowed = Allowed { rate: Some(CALLS_A_SECOND), concurrency: 16, batch: 1 };
const BATCHES: Allowed = Allowed { rate: Some(CALLS_A_SECOND), concurrency: 16, batch: 20 };
const NO_RATE: Allowed = Allowed { rate: None, concurrency: 8, batch: 10 };

fn name_of(allowed: Allowed) -> String {
    let limit = match allowed.rate {
        Some(rate) => format!("{rate} calls a second"),
        None => format!("{} requests at a time", allowed.concurrency),
    };
    match allowed.batch {
        1 => format!("{limit}, no batches"),
        batch => format!("{limit}, batches of {batch}"),
    }
}

struct Line {
    what: String,
    took: Duration,
    least: Duration,
    floor: f64,
    calls: Calls,
    first: Duration,
}

/// Calls made, without those made twice, and those for transactions and lists alone.
struct Calls(u64, u64, u64);

impl Calls {
    fn of(world: &World) -> Self {
        let counts = world.counts();
        Self(counts.calls, counts.distinct(), counts.for_rows())
    }
}

impl Line {
    fn print(&self) -> bool {
        let ratio = self.took.as_secs_f64() / self.least.as_secs_f64();
        let trips = self.first.as_secs_f64() / TRIP.as_secs_f64();
        let Calls(calls, distinct, for_rows) = self.calls;
        println!(
            "| {} | {:.1} | {:.1} | {ratio:.3} | {:.2} | {} | {calls} | {distinct} | {for_rows} | \
             {trips:.1} |",
            self.what,
            self.took.as_secs_f64(),
            self.least.as_secs_f64(),
            self.floor,
            if ratio <= self.floor { "yes" } else { "**no**" },
        );
        ratio <= self.floor
    }
}

/// One wallet against the least.
async fn alone(way: Way, allowed: Allowed, transactions: u64) -> Line {
    let world = World::new(way, 1, transactions, allowed, &[TRIP]);
    let read = world.read().await[0];
    assert!(read.rows > 0, "{way:?}");
    Line {
        what: format!("{}, {}", way.name(), name_of(allowed)),
        took: read.whole,
        least: allowed.least(&world.counts()),
        floor: FLOOR,
        calls: Calls::of(&world),
        first: read.first,
    }
}

/// Some wallets at once share one limit: the last one is done when the limit allows, and not long
/// after the others.
async fn together(way: Way, allowed: Allowed, transactions: u64) -> [Line; 2] {
    let world = World::new(way, WALLETS, transactions, allowed, &[TRIP]);
    let reads = world.read().await;
    let last = reads.iter().map(|read| read.whole).max().unwrap();
    let first = reads.iter().map(|read| read.first).max().unwrap();
    let all: Duration = reads.iter().map(|read| read.whole).sum();
    let what = format!("{}, {WALLETS} wallets at once, {}", way.name(), name_of(allowed));
    let line = |what: String, least: Duration, floor: f64| Line {
        what,
        took: last,
        least,
        floor,
        calls: Calls::of(&world),
        first,
    };
    let shared = format!("{what}: the last one against the mean of all");
    let mean = all / u32::try_from(WALLETS).unwrap();
    [line(what, allowed.least(&world.counts()), FLOOR), line(shared, mean, FLOOR_SHARE)]
}

/// A slow endpoint next to a fast one, against the fast one alone.
async fn next_to_a_slow_one(way: Way, allowed: Allowed, transactions: u64) -> Line {
    let read = async |trips: &[Duration]| -> (Read, Calls) {
        let world = World::new(way, 1, transactions, allowed, trips);
        (world.read().await[0], Calls::of(&world))
    };
    let (alone, _) = read(&[TRIP]).await;
    // The slow one is named first: neither has a measurement.
    let (mixed, calls) = read(&[TRIP * SLOWER, TRIP]).await;
    assert_eq!(alone.rows, mixed.rows, "{way:?}");
    Line {
        what: format!(
            "{}, {}, a node {SLOWER} times slower next to it",
            way.name(),
            name_of(allowed)
        ),
        took: mixed.whole,
        least: alone.whole,
        floor: FLOOR_SLOW,
        calls,
        first: mixed.first,
    }
}

enum Case {
    Alone(Way, Allowed),
    Together(Way, Allowed),
    NextToSlow(Way, Allowed),
}

fn cases() -> Vec<Case> {
    let lists = Way::Evm(Discovery::Explorer);
    let gateway = Way::Evm(Discovery::Portal);
    let logs = Way::Evm(Discovery::Logs);
    let rated =
        [Way::Solana, Way::SolanaPages, lists, gateway, logs, Way::TronLists, Way::TronEvents];
    let mut cases: Vec<Case> = Vec::new();
    for way in rated {
        // Tron's own interface knows no batches, and pages come one by one.
        if ![Way::TronLists, Way::SolanaPages].contains(&way) {
            cases.push(Case::Alone(way, BATCHES));
        }
        cases.push(Case::Alone(way, SINGLE));
    }
    cases.push(Case::Alone(Way::Solana, NO_RATE));
    cases.push(Case::Together(Way::Solana, BATCHES));
    cases.push(Case::Together(logs, BATCHES));
    cases.push(Case::NextToSlow(Way::Solana, BATCHES));
    for way in [Way::Solana, lists, logs, Way::TronLists] {
        cases.push(Case::NextToSlow(way, NO_RATE));
    }
    cases
}

async fn run(case: Case, transactions: u64) -> Vec<Line> {
    match case {
        Case::Alone(way, allowed) => vec![alone(way, allowed, transactions).await],
        Case::Together(way, allowed) => {
            let each = transactions / u64::try_from(WALLETS).unwrap();
            together(way, allowed, each.max(50)).await.into()
        }
        Case::NextToSlow(way, allowed) => {
            vec![next_to_a_slow_one(way, allowed, transactions).await]
        }
    }
}

/// Ways with the calls that a transaction which is no page's takes at the least, and the
/// transactions that a page holds.
const CALLS_AT_LEAST: [(Way, u64, u64); 7] = [
    (Way::Solana, 1, 1_000),
    (Way::SolanaPages, 0, 100),
    (Way::Evm(Discovery::Portal), 0, 500),
    (Way::Evm(Discovery::Explorer), 2, 10_000),
    (Way::Evm(Discovery::Logs), 3, 10_000),
    (Way::TronLists, 1, 200),
    (Way::TronEvents, 2, 10_000),
];

/// Questions that need the answer of the one before, until a page of a wallet's newest rows is known. All
/// end with tokens and prices. Solana: accounts, lists, transactions, lists of accounts that these show,
/// their transactions; its pages of transactions: a page. A gateway: head, logs, details of what came
/// in. Account lists: how far they have come, pages, transactions. Logs: head, logs, transactions,
/// receipts, traces. Tron's lists: how far they have come, pages, transactions in two turns of 64; its
/// events: head, blocks kept, events, transactions, what came of them.
///
/// Then the round trips that a page of the first wallet may take, and one of the next.
const QUESTIONS: [(Way, u32, [f64; 2]); 7] = [
    (Way::Solana, 6, [6.5, 6.5]),
    // One more than the least and one: rows wait until the node has named its chain again, as those
    // of another chain's page overlap with nothing that would show them.
    (Way::SolanaPages, 2, [6.5, 4.5]),
    (Way::Evm(Discovery::Portal), 4, [5.5, 5.5]),
    (Way::Evm(Discovery::Explorer), 4, [5.5, 4.5]),
    (Way::Evm(Discovery::Logs), 6, [9.5, 7.5]),
    (Way::TronLists, 5, [9.5, 6.5]),
    (Way::TronEvents, 6, [12.5, 11.5]),
];
const PAGE: u64 = 100;

/// Round trips until the first rows and a whole page of wallets never seen, the first one of
/// a process and the next one. False: a page takes more of them than it may.
fn print_newest() -> bool {
    println!(
        "\n| way | least | first rows, round trips | a page of {PAGE} | at most | of the next wallet | a \
         page of {PAGE} |\n|---|---|---|---|---|---|---|"
    );
    let mut kept = true;
    for (way, least, most) in QUESTIONS {
        let reads = on_paused_time(async {
            let wide = Allowed { rate: None, concurrency: 64, batch: 100 };
            World::new(way, 2, way.transactions(1_000), wide, &[TRIP]).read_newest(PAGE).await
        });
        let trips = |time: Duration| time.as_secs_f64() / TRIP.as_secs_f64();
        let each = reads.iter().flat_map(|read| [trips(read.first), trips(read.whole)]);
        let mut figures: Vec<String> = each.map(|trips| format!("{trips:.1}")).collect();
        figures.insert(2, most.map(|most| most.to_string()).join(", "));
        println!("| {} | {least} | {} |", way.name(), figures.join(" | "));
        kept &= reads.iter().zip(most).all(|(read, most)| trips(read.whole) <= most);
    }
    kept
}

/// Calls for a wallet of about 1,000 trades by each way, and the least that its transactions allow.
fn print_calls() {
    println!(
        "\n| way | transactions of trades | calls to nodes | to an index or gateway | least for rows \
         |\n|---|---|---|---|---|"
    );
    for (way, each, page) in CALLS_AT_LEAST {
        let (counts, transactions) = on_paused_time(async {
            let world = World::new(way, 1, way.transactions(1_000), BATCHES, &[TRIP]);
            let read = world.read().await[0];
            (world.counts(), read.transactions)
        });
        let least = transactions * each + transactions.div_ceil(page);
        let nodes = counts.calls - counts.index_calls;
        let (name, index) = (way.name(), counts.index_calls);
        println!("| {name} | {transactions} | {nodes} | {index} | {least} |");
        if way == Way::Evm(Discovery::Portal) {
            // Each price takes the logs of its own blocks; they come in batches.
            let logs = counts.by_method.get("eth_getLogs").copied().unwrap_or(0);
            let requests = counts.node_requests;
            assert!(nodes - logs <= NODE_CALLS_MAX && requests <= NODE_CALLS_MAX, "{requests}");
        }
        if std::env::args().any(|arg| arg == "--methods") {
            println!("{} requests to nodes: {:?}", counts.node_requests, counts.by_method);
            if way == Way::Evm(Discovery::Portal) {
                print_joined(&counts.priced);
            }
        }
    }
}

/// What prices would take if ranges of blocks so far apart were read as one, and how long the answers
/// would be at the least.
fn print_joined(priced: &BTreeSet<(u64, u64)>) {
    println!("\nblocks apart | calls for prices | blocks | longest range | megabytes");
    for apart in [0, 64, 500, 2_000, 5_000, 10_000, 50_000, 100_000] {
        let joined = joined(priced, apart);
        let length = |(high, low): &(u64, u64)| high - low + 1;
        let blocks: u64 = joined.iter().map(length).sum();
        let longest = joined.iter().map(length).max().unwrap_or(0);
        let bytes = blocks * SWAPS_A_BLOCK * SWAP_BYTES;
        println!("{apart} | {} | {blocks} | {longest} | {}", joined.len(), bytes.div_ceil(1 << 20));
    }
}

/// Ranges by their highest block, those at most so far apart as one.
fn joined(ranges: &BTreeSet<(u64, u64)>, apart: u64) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for &(high, low) in ranges {
        match joined.last_mut().filter(|last| low <= last.0.saturating_add(apart)) {
            Some(last) => *last = (high, last.1.min(low)),
            None => joined.push((high, low)),
        }
    }
    joined
}

/// Each on a clock of its own.
fn on_paused_time<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(work)
}

fn name(case: &Case) -> String {
    match case {
        Case::Alone(way, allowed) => format!("{}, {}", way.name(), name_of(*allowed)),
        Case::Together(way, _) => format!("{} together", way.name()),
        Case::NextToSlow(way, _) => format!("{} next to a slow one", way.name()),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let after = |flag: &str| args.iter().skip_while(|arg| *arg != flag).nth(1);
    // `cargo bench -- --test` and `cargo test --benches` want one short turn.
    let short = args.iter().any(|arg| arg == "--test");
    let usual = if short { TRANSACTIONS_SHORT } else { TRANSACTIONS };
    let transactions = after("--transactions").map_or(usual, |count| count.parse().unwrap());
    let only = after("--only");
    println!("Wallets of about {transactions} transactions, {} ms away.\n", TRIP.as_millis());
    println!(
        "| what | seconds | least | ratio | floor | holds | calls | distinct | for rows | first \
         rows after, in round trips |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    let (mut kept, mut is_quick) = (true, true);
    for case in cases() {
        if only.is_some_and(|only| !name(&case).contains(only.as_str())) {
            continue;
        }
        for line in on_paused_time(run(case, transactions)) {
            kept &= line.print();
        }
    }
    if only.is_none_or(|only| only == "calls") {
        print_calls();
    }
    if only.is_none_or(|only| only == "newest") {
        is_quick = print_newest();
    }
    // A wallet of a few hundred transactions is read in the time of its first round trips.
    if !(is_quick && (kept || short)) {
        std::process::exit(1);
    }
}
