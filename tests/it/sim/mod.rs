//! The whole engine in one process, on paused time, from one seed: a chain with faulty nodes, a
//! disk that loses power, clients that come and go. At all times a client's walk is a prefix of the
//! truth, and `complete` is reported only when it is true. Once the faults stop, everything is
//! delivered within a limited number of requests. The chain is Solana, an EVM chain or Tron, each
//! by all of its ways of discovery.
//!
//! A usual run takes a tenth of the seeds; with `BLOTTER_SIM_LONG` set, as in the gate, all of
//! them. `BLOTTER_SIM_SEEDS=17 cargo test --test it sim` repeats one seed, `=0..100000` runs long;
//! `BLOTTER_SIM_WAYS=logs,lists` runs only some ways. With `BLOTTER_SIM_STOP` set, the first
//! failing seed ends the run; with `BLOTTER_SIM_SHOW` the faults of each endpoint are printed.
#![expect(clippy::print_stderr, reason = "a seed that failed is printed at once")]

mod audit;
mod chain;
mod checks;
mod client;
mod clock;
mod counts;
mod cut;
mod dice;
mod evm;
mod follower;
mod late;
mod named;
mod patience;
mod peer;
mod red;
mod refusing;
mod reorgs;
mod seeds;
mod sieve;
mod solana;
mod strays;
mod trouble;
mod truth;
mod way;
mod world;

use std::time::Duration;

use blotter::demo::Faults;
use blotter::demo::solana::NodeOptions;
use blotter::domain::Height;
use blotter::history::{Capacity, End, HistoryError};
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

use crate::support::disk::Kept;
use client::Client;
use dice::Dice;
use follower::Follower;
use peer::{Peer, Role};
use seeds::{Seen, run_all};
use solana::faults;
use strays::Strays;
use way::Way;
use world::World;

const SEEDS: u64 = 500;
const THREADS: usize = 2;
/// Seeds that once failed.
const KEPT_SEEDS: &[u64] = &[
    240, 260, 301, 331, 357, 404, 448, 489, 624, 646, 707, 729, 774, 1152, 1173, 1229, 1232, 1881,
    3696, 4145, 4622,
];
/// How many walks a client gets until it must have everything, once nothing fails any more.
const CALM_TRIES: usize = 60;
/// Blocks that lists may lag behind at most.
const LISTED: u64 = 200;
/// Solana's last slots, which may have been skipped.
const SKIPPED: u64 = 8;
const FRESHNESS: Duration = Duration::from_secs(11);
/// Solana's seeds with nodes whose pages lie.
const LIAR_SEEDS: u64 = 100;

#[test]
fn under_any_failure_each_walk_is_the_truth_and_ends_complete() {
    let usual = KEPT_SEEDS.iter().copied().chain(0..seeds::usual(SEEDS)).chain(seeds::apart());
    run_all(Way::Solana, (usual, THREADS), run);
}

#[test]
fn pages_that_lie_hide_no_row_for_ever_and_end_nothing_complete() {
    let seeds = solana::LIARS_FROM..solana::LIARS_FROM + seeds::usual(LIAR_SEEDS);
    run_all(Way::Solana, (seeds, THREADS), run);
}

#[test]
fn evm_by_logs() {
    run_all(Way::Logs, (red::seeds_of(Way::Logs), 1), run);
}

#[test]
fn evm_by_explorer() {
    run_all(Way::Explorer, (red::seeds_of(Way::Explorer), 1), run);
}

#[test]
fn evm_by_transfers() {
    run_all(Way::Transfers, (red::seeds_of(Way::Transfers), 1), run);
}

#[test]
fn evm_by_portal() {
    run_all(Way::Portal, (red::seeds_of(Way::Portal), 1), run);
}

#[test]
fn tron_by_lists() {
    run_all(Way::Lists, (red::seeds_of(Way::Lists), 1), run);
}

#[test]
fn tron_by_events() {
    run_all(Way::Events, (red::seeds_of(Way::Events), 1), run);
}

fn run(way: Way, seed: u64) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(simulate(way, seed))
}

async fn simulate(way: Way, seed: u64) -> Seen {
    let mut dice = Dice::new(seed, 0);
    let mut world = World::new(way, seed, &mut dice);
    let clients = dice.range(1, 4);
    let client = |at| Client::new(at, seed, world.wallets.len()).sifting(at, seed, &world);
    let mut clients: Vec<Client> = (0..clients).map(client).collect();
    // Uses separate random numbers, so that the rest of the seed is unchanged.
    let mut apart = Dice::new(seed, 511);
    let mut follower = apart.one_in(2).then(|| Follower::new(&world, seed));
    let is_crowded = apart.one_in(6);
    let may_fork = dice.one_in(8);
    for _ in 0..dice.range(1, 4) {
        if is_crowded && apart.one_in(2) {
            world.crowd(&mut apart);
        }
        turmoil(&mut world, (&mut clients, &mut follower), &mut dice).await;
        world.history.set_capacity(Capacity::default());
        if may_fork && dice.one_in(2) {
            if apart.one_in(3) {
                world.reorganise_above(&mut apart);
            } else {
                world.reorganise(&mut dice);
            }
        }
    }
    calm(&mut world, (&mut clients, &mut follower)).await;
    let faults = world.peers.iter().flat_map(|peer| peer.node.stats().faults.into_values()).sum();
    let rows = world.history.metrics().rows_delivered.get();
    Seen { rows, requests: world.requests(), faults, crashes: world.crashes }
}

/// A period in which anything may fail, and its end.
async fn turmoil(
    world: &mut World,
    (clients, follower): (&mut [Client], &mut Option<Follower>),
    dice: &mut Dice,
) {
    refill(world).await;
    match world.way {
        Way::Solana => solana_troubles(world, dice),
        Way::Logs | Way::Explorer | Way::Transfers | Way::Portal | Way::Lists | Way::Events => {
            trouble::begin(world, dice);
        }
    }
    match dice.range(0, 9) {
        0..=2 => world.disk.power_off_at_sync(world.disk.syncs() + dice.range(1, 25)),
        3 => {
            let from = world.disk.changes() + dice.range(1, 60);
            world.disk.fail_changes(from..from + dice.range(1, 30));
        }
        4 => world.disk.set_capacity(Some(world.disk.bytes())),
        _ => {}
    }
    let long = Duration::from_millis(dice.pick(&[300, 3_000, 20_000, 120_000]));
    let shared: &World = world;
    let life = join_all(clients.iter_mut().map(|client| client.live(shared)));
    let life = async {
        match follower {
            Some(follower) => drop(tokio::join!(life, follower.live(shared))),
            None => drop(life.await),
        }
    };
    let chain = async {
        loop {
            sleep(long / 4).await;
            shared.event(dice);
        }
    };
    let strays = Strays::wander(shared.setup.strays.as_deref());
    let _ = timeout(long, async { tokio::join!(life, chain, strays) }).await;
    Strays::end(world).await;
    end(world, dice).await;
    for wallet in 0..world.wallets.len() {
        world.check_store(wallet);
    }
}

fn solana_troubles(world: &mut World, dice: &mut Dice) {
    world.set_faults(|| faults(dice));
    for (at, Peer { node, .. }) in world.peers.iter().enumerate() {
        let mut options = node.options();
        options.lag = match world.setup.torn {
            false if dice.one_in(3) => dice.pick(&[3, 150, 5000]),
            true if at > 0 => dice.pick(&[20, 150, 5000]),
            false | true => 0,
        };
        // Uses separate random numbers, so that the rest of the seed is unchanged.
        let mut apart = Dice::new(dice.clone().next(), 510);
        options.list_lag = if apart.one_in(4) { apart.pick(&[1, 6, 150, 5000]) } else { 0 };
        options.full_pages_lag = if apart.one_in(8) { apart.pick(&[6, 5000]) } else { 0 };
        // Fields that nodes without extended metadata, or of another client, do not return.
        let lacks: [&[&str]; 8] =
            [&["innerInstructions", "logMessages"], &["owner"], &[], &[], &[], &[], &[], &[]];
        let nulled = apart.pick(&lacks);
        world.set_aside.set(world.set_aside.get() || !nulled.is_empty());
        node.set_faults(Faults { nulled, ..node.faults() });
        trouble::say(&format!("head {} {options:?} {nulled:?}", world.chain.head()));
        let pruned =
            dice.one_in(12).then(|| world.chain.head() - dice.pick(&[100, 100_000, 50_000_000]));
        options.first_available = pruned.unwrap_or(0);
        node.set_options(options);
    }
    if world.setup.hostile {
        solana::lie_in_agreement(&world.peers, &mut Dice::new(dice.clone().next(), 519));
    }
    let mut apart = Dice::new(dice.clone().next(), 516);
    if world.poison.is_some() || apart.one_in(2) {
        trouble::withhold(world, &mut apart);
    }
}

/// Nodes get their pruned blocks back, and only while no reader is active: where a node's lists
/// end, and from which block on it keeps them, are reported one after the other.
async fn refill(world: &mut World) {
    if world.peers.iter().all(|peer| peer.node.options().first_available == 0) {
        return;
    }
    world.restart().await;
    for Peer { node, .. } in &world.peers {
        node.set_options(NodeOptions { first_available: 0, ..node.options() });
    }
}

/// The process is killed, loses power, is stopped in order, or continues.
async fn end(world: &mut World, dice: &mut Dice) {
    let kept =
        [Kept::Nothing, Kept::All, Kept::Header, Kept::Some(dice.next()), Kept::Some(dice.next())];
    match dice.range(0, 5) {
        0 => world.restart().await,
        1 | 2 => world.crash(dice.pick(&kept)).await,
        // With the power off nothing goes on.
        _ if world.disk.is_off() => world.crash(dice.pick(&kept)).await,
        _ => {}
    }
    world.disk.keep_well();
}

/// Nothing fails any more: every client gets everything, and then no requests are made.
async fn calm(world: &mut World, (clients, follower): (&mut [Client], &mut Option<Follower>)) {
    trouble::say("calm");
    refill(world).await;
    world.set_faults(Faults::none);
    for Peer { node, .. } in world.peers.iter().filter(|peer| peer.role == Role::Solana) {
        node.set_options(NodeOptions { lag: 0, list_lag: 0, full_pages_lag: 0, ..node.options() });
    }
    trouble::end(world);
    if world.forked {
        // A check right before the reorg counts as fresh for this long.
        sleep(FRESHNESS).await;
    }
    let target = world.chain.head();
    // Lists are read only up to where they are known to be complete.
    world.chain.advance(if world.way.has_doubts() { LISTED } else { SKIPPED });
    world.learn();
    let before = world.requests();
    for client in clients.iter_mut() {
        if world.is_poisoned(client.wallet) {
            finish_poisoned(world, client, target).await;
            continue;
        }
        finish(world, client, target, false).await;
        if world.has_doubts() {
            finish(world, client, target, true).await;
        }
        world.check_usage(client.key);
    }
    let followed = world.requests();
    if let Some(follower) = follower {
        follower.calm(world, target).await;
    }
    // It asks for newer heights for as long as its windows are.
    let followed = world.requests() - followed;
    quiet(world).await;
    valued(world).await;
    for wallet in 0..world.wallets.len() {
        world.check_store(wallet);
        // Wallets without a client at the end may have been evicted, or be partially stored.
        let asks = |client: &Client| client.wallet == wallet && client.filter.is_none();
        if clients.iter().any(asks) {
            world.check_all(wallet, target);
        }
    }
    let transactions: u64 =
        world.wallets.iter().map(|wallet| world.chain.transaction_count(wallet.address)).sum();
    let spent = world.requests() - before - followed;
    let most = world.way.requests_max(transactions).max(ranges_max(world) + 12 * transactions);
    let by_method = || world.peers.iter().map(|peer| peer.node.stats().calls).collect::<Vec<_>>();
    assert!(spent <= most, "{spent} requests for {transactions} transactions: {:?}", by_method());
    world.check_manners();
    assert_eq!(world.history.metrics().worker_panics.get(), 0);
}

/// The requests needed to search all blocks for each wallet, at nodes with ranges of this many
/// blocks, since wallets that were never read are read now.
fn ranges_max(world: &World) -> u64 {
    /// Logs from the wallet, to it and of it, with a head: one call each; two answers to each range.
    const CALLS: u64 = 4;
    const ANSWERS: u64 = 2;
    /// At an endpoint of one call a request, logs that must be there are asked for before and after.
    const LOOKS: u64 = 2;
    let blocks = |peer: &Peer| match &peer.role {
        Role::Rpc(options) => options.log_blocks_max,
        Role::Solana | Role::Explorer(_) | Role::Portal(_) | Role::Tron(_) => None,
    };
    let Some(blocks) = world.peers.iter().filter_map(blocks).min() else { return 0 };
    let ranges = world.chain.head().div_ceil(blocks);
    let batches = world.setup.endpoints.iter().map(|(_, batch)| batch.unwrap_or(1));
    let batch = u64::try_from(batches.min().unwrap_or(1)).unwrap();
    let wallets = u64::try_from(world.wallets.len()).unwrap();
    let requests = if batch == 1 { CALLS + LOOKS } else { CALLS.div_ceil(batch) };
    wallets * ranges * requests * ANSWERS
}

/// Ends the walk that the client is on, then takes one more from the newest trade to the oldest.
async fn finish(world: &World, client: &mut Client, target: Height, strict: bool) {
    let (mut tries, mut last) = (0, None);
    let mut whole = false;
    while !whole {
        let before = client.walk.rows;
        let end = client.ask(world, false).await.unwrap();
        let has_all = end.complete && !end.more;
        if end.error == Some(HistoryError::Changed) {
            client.walk = client::Trail::default();
        }
        if !has_all && client.walk.rows > before {
            continue;
        }
        if has_all {
            let head = client.walk.cursor.and_then(|cursor| cursor.head);
            whole = head >= Some(target);
            if let Some(head) = head.filter(|_| whole && strict) {
                world.check_whole(client, head);
            }
            client.walk = client::Trail::default();
        }
        tries += 1;
        let lacks = || world.lacks(client.wallet);
        assert!(tries <= CALM_TRIES, "it never gets all; {last:?}, {end:?}; {}", lacks());
        last = Some(end);
        if !whole {
            sleep(FRESHNESS).await;
        }
    }
}

/// One transaction is never returned by any node: all others come, and the end is not complete.
async fn finish_poisoned(world: &World, client: &mut Client, target: Height) {
    for tries in 0.. {
        // A walk that cannot end keeps its head: only a new walk requests newer heights.
        client.walk = client::Trail::default();
        let last = walk_on(world, client).await;
        let head = client.walk.cursor.and_then(|cursor| cursor.head);
        let has_all = last.complete && !last.more && head >= Some(target);
        if has_all || world.is_whole(client, target) {
            return world.check_whole(client, target);
        }
        let lacks = || world.lacks(client.wallet);
        assert!(tries < CALM_TRIES, "one missing transaction hides others; {last:?}; {}", lacks());
        sleep(FRESHNESS).await;
    }
}

/// Asks as long as rows come: a page loads about as much as it shows.
async fn walk_on(world: &World, client: &mut Client) -> End {
    loop {
        let before = client.walk.rows;
        let end = client.ask(world, false).await.unwrap();
        if client.walk.rows == before {
            return end;
        }
    }
}

/// Waits until no worker is active.
async fn quiet(world: &World) {
    for _ in 0..600 {
        // Doubtful spans are read again in the background, for as long as a reader may ask.
        let all = 0..world.wallets.len();
        if world.history.metrics().workers.get() == 0
            || !all.into_iter().all(|w| world.accepts_all(w))
        {
            return;
        }
        sleep(Duration::from_secs(1)).await;
    }
    panic!("a worker is still active without demand");
}

/// Waits until no row waits for its value.
async fn valued(world: &World) {
    for _ in 0..200 {
        if world.pending().is_empty() {
            return;
        }
        sleep(Duration::from_secs(10)).await;
    }
    panic!(
        "rows wait for their values for ever: {:?}; {:?} is withheld",
        world.pending(),
        world.poison
    );
}
