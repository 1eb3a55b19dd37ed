//! Pages of full transactions: few calls, several segments at once, and providers whose pages do not
//! hold what they should.

use std::time::Duration;

use blotter::demo::solana::{NodeOptions, WalletPlan};
use blotter::demo::{Faults, Rate};
use blotter::domain::Wallet;
use blotter::history::{Extent, Step};
use tokio::time::Instant;

use crate::support::truth::same;
use crate::support::world::{Build, World, finish};

/// Makes nodes offer pages.
fn offer(world: &World, at: usize, change: impl FnOnce(&mut NodeOptions)) {
    let mut options = world.nodes[at].options();
    options.transactions_for_address = true;
    change(&mut options);
    world.nodes[at].set_options(options);
}

fn calls_of(world: &World, methods: &[&str]) -> u64 {
    let of =
        |method: &&str| world.nodes.iter().map(|node| node.stats().calls_of(method)).sum::<u64>();
    methods.iter().map(of).sum()
}

const FOR_ROWS: [&str; 4] = [
    "getTransactionsForAddress",
    "getSignaturesForAddress",
    "getTransaction",
    "getFirstAvailableBlock",
];

/// Reads a wallet to its end; rows as the model has them, and when the last one came.
async fn read(world: &World, wallet: Wallet) -> Duration {
    let began = Instant::now();
    let (mut rows, mut last) = (Vec::new(), Duration::ZERO);
    let mut walk = world.walk(wallet, Extent::All, None);
    let end = loop {
        match walk.next().await {
            Step::Rows(more) => {
                last = began.elapsed();
                rows.extend(more);
            }
            Step::End(end) => break end,
        }
    };
    assert!(end.complete, "{end:?}");
    same(&rows, &world.truth(wallet));
    last
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_transactions_take_few_calls_and_seconds() {
    let world = Build { rate: Some(50), ..Build::default() }.world();
    offer(&world, 0, |_| {});
    world.set_faults(Faults::latency(Duration::from_millis(80)));
    // What the node offers is known.
    read(&world, world.add("first", WalletPlan::trades(300))).await;
    let before = calls_of(&world, &FOR_ROWS);
    let all_before = world.calls();
    let wallet = world.add("busy", WalletPlan::trades(8_700));
    let took = read(&world, wallet).await;
    let (calls, all) = (calls_of(&world, &FOR_ROWS) - before, world.calls() - all_before);
    assert_eq!(calls_of(&world, &["getTransaction"]), 0, "lists were read");
    assert!(calls <= 112 && took < Duration::from_secs(8), "{calls} calls, {all} in all, {took:?}");
}

#[tokio::test(start_paused = true)]
async fn pages_are_as_large_as_the_endpoint_takes() {
    let world = Build::default().world();
    offer(&world, 0, |options| options.full_page_max = 1_000);
    world.set_faults(Faults::latency(Duration::from_millis(80)));
    read(&world, world.add("first", WalletPlan::trades(300))).await;
    let before = calls_of(&world, &FOR_ROWS);
    read(&world, world.add("busy", WalletPlan::trades(4_000))).await;
    let calls = calls_of(&world, &FOR_ROWS) - before;
    assert!(calls <= 20 && calls_of(&world, &["getTransaction"]) == 0, "{calls}");
}

#[tokio::test(start_paused = true)]
async fn several_segments_cost_no_row_where_pages_end_early() {
    for seed in 1..=4 {
        let world = Build { seed, nodes: 2, ..Build::default() }.world();
        offer(&world, 0, |_| {});
        offer(&world, 1, |options| options.lag = 20);
        let short_page = Rate(100);
        let latency = Duration::from_millis(80);
        world.set_faults(Faults { short_page, latency, ..Faults::none() });
        let plan = WalletPlan { burst: 40, ..WalletPlan::trades(3_000) };
        read(&world, world.add("short", plan)).await;
    }
}

/// Free endpoints and keys of one chain add up: their rates together are the rate.
#[tokio::test(start_paused = true)]
async fn rates_of_several_endpoints_add_up() {
    for (nodes, with_pages) in [(1, false), (3, false), (3, true)] {
        let world = Build { nodes, rate: Some(5), batch: Some(1), ..Build::default() }.world();
        for at in (0..nodes).filter(|_| with_pages) {
            offer(&world, at, |_| {});
        }
        world.set_faults(Faults::latency(Duration::from_millis(80)));
        let wallet = world.add("shared", WalletPlan::trades(if with_pages { 6_000 } else { 500 }));
        let began = Instant::now();
        read(&world, wallet).await;
        let (took, calls) = (began.elapsed(), world.calls());
        let count = u64::try_from(nodes).unwrap();
        let least = Duration::from_millis(calls * 1_000 / (5 * count));
        assert!(
            took * 100 <= least * 115,
            "{nodes} nodes: {calls} calls in {took:?}, not {least:?}"
        );
        for node in &world.nodes {
            let part = node.stats().calls_total() * count;
            assert!(part * 100 >= calls * 75, "a node took {part} of {calls}");
        }
    }
}

/// Another server answers at the node's address since the last read.
#[tokio::test(start_paused = true)]
async fn the_newest_page_of_a_node_that_names_another_chain_is_not_believed() {
    let world = Build::default().world();
    offer(&world, 0, |_| {});
    world.set_faults(Faults::latency(Duration::from_millis(80)));
    let known = world.add("known", WalletPlan::trades(100));
    read(&world, known).await;
    let other = "4uhcVJyU9pJkvQyS88uRDiswHScCKQY3zQsfCFbz7TLA";
    offer(&world, 0, |options| other.clone_into(&mut options.genesis_hash));
    let new = world.add("new", WalletPlan::trades(1_500));
    let mut walk = world.walk(new, Extent::All, None);
    let Step::End(end) = walk.next().await else { panic!("rows of another chain") };
    assert!(!end.complete, "{end:?}");
}

/// Pages that hold the newest slots alone agree with themselves; the list of signatures does not.
#[tokio::test(start_paused = true)]
async fn pages_of_the_newest_epochs_alone_never_pass_as_the_history() {
    let mut world = Build::default().world();
    offer(&world, 0, |_| {});
    let wallet = world.add("old", WalletPlan::trades(1_500));
    let truth = world.truth(wallet);
    let slots: Vec<u64> = truth.iter().map(|fact| fact.slot).collect();
    let middle = slots[slots.len() / 3];
    offer(&world, 0, |options| options.full_pages_from = middle);
    read(&world, wallet).await;
    assert!(calls_of(&world, &["getTransaction"]) > 0, "the rest is read by lists");
    // The same where another node's pages hold all.
    world = Build { nodes: 2, ..Build::default() }.world();
    offer(&world, 0, |options| options.full_pages_from = middle);
    offer(&world, 1, |_| {});
    let wallet = world.add("old", WalletPlan::trades(1_500));
    read(&world, wallet).await;
}

/// Pages that leave out what names token accounts alone leave a doubt, and lists remove it.
#[tokio::test(start_paused = true)]
async fn pages_that_ignore_token_accounts_never_pass_as_the_history() {
    let world = Build::default().world();
    offer(&world, 0, |options| options.full_pages_by_owner = false);
    let plan = WalletPlan { keeper_percent: 60, ..WalletPlan::trades(600) };
    let wallet = world.add("kept", plan);
    let (_, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    if !end.complete {
        tokio::time::sleep(Duration::from_secs(3_600)).await;
    }
    read(&world, wallet).await;
}

/// The index of pages is behind the node's slot and says nothing of it; the list of signatures is not.
#[tokio::test(start_paused = true)]
async fn pages_that_are_behind_their_node_hide_nothing() {
    for full_pages_lag in [200, 1_000, 5_000] {
        let world = Build::default().world();
        offer(&world, 0, |_| {});
        let kept = || WalletPlan { keeper_percent: 60, ..WalletPlan::trades(300) };
        read(&world, world.add("early", kept())).await;
        assert_eq!(calls_of(&world, &["getTransaction"]), 0, "read by pages");
        offer(&world, 0, |options| options.full_pages_lag = full_pages_lag);
        let last = world.model.head() - 1;
        let plan = WalletPlan { first: Some(last - 4_000), last: Some(last), ..kept() };
        let wallet = world.add("late", plan);
        read(&world, wallet).await;
    }
}
