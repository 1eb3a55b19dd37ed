//! A read begins once one node's chain is confirmed; a slow node, or one of another chain, neither
//! delays it nor contributes to it.

use std::time::Duration;

use blotter::demo::solana::{NodeOptions, WalletPlan};
use blotter::demo::{Faults, Rate};
use blotter::history::{Extent, Step};
use tokio::time::{Instant, sleep};

use crate::support::truth::same;
use crate::support::world::{Build, World, finish};

/// Time to the first rows and to the end, with a first node of these faults next to a good one.
async fn read(world: &World, name: &str, faults: Faults) -> (Duration, Duration) {
    world.nodes[0].set_faults(faults);
    world.nodes[1].set_faults(Faults::latency(Duration::from_millis(80)));
    let wallet = world.add(name, WalletPlan::trades(300));
    let began = Instant::now();
    let mut walk = world.walk(wallet, Extent::All, None);
    let Step::Rows(rows) = walk.next().await else { panic!("no rows") };
    let mut rows = rows.to_vec();
    let first = began.elapsed();
    let (rest, end) = finish(&mut walk).await;
    assert!(end.complete && end.error.is_none(), "{end:?}");
    rows.extend(rest);
    same(&rows, &world.truth(wallet));
    (first, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_delays_the_first_rows_by_little() {
    let world = Build { nodes: 2, ..Build::default() }.world();
    let silent = Faults { silence: Rate::ALWAYS, ..Faults::none() };
    let (first, _) = read(&world, "trader", silent).await;
    assert!(first < Duration::from_secs(2), "{first:?}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_node_delays_the_first_rows_by_little() {
    let world = Build { nodes: 2, ..Build::default() }.world();
    let slow = Faults::latency(Duration::from_secs(4));
    let (first, _) = read(&world, "trader", slow.clone()).await;
    assert!(first < Duration::from_secs(2), "{first:?}");
    // Once it has said what it is, the second opinion on the end of a list is its own.
    sleep(Duration::from_secs(5)).await;
    // But how far its lists have come.
    assert_eq!(world.nodes[0].stats().calls_of("getSignaturesForAddress"), 1);
    let (first, whole) = read(&world, "another", slow).await;
    assert!(first < Duration::from_secs(2) && whole < Duration::from_secs(10), "{whole:?}");
    assert!(world.nodes[0].stats().calls_of("getSignaturesForAddress") > 2);
}

/// Its cooldown ends, and it is queried then, however often others look meanwhile.
#[tokio::test(start_paused = true)]
async fn a_node_that_was_silent_is_asked_again() {
    let world = Build { nodes: 2, ..Build::default() }.world();
    let silent = Faults { silence: Rate::ALWAYS, ..Faults::none() };
    read(&world, "first", silent).await;
    world.nodes[0].set_faults(Faults::none());
    let known = world.nodes[0].stats();
    let asked = |method| world.nodes[0].stats().calls_of(method) - known.calls_of(method);
    for wallet in 0..20 {
        read(&world, &format!("wallet {wallet}"), Faults::none()).await;
        if asked("getTransaction") > 0 {
            break;
        }
        sleep(Duration::from_secs(8)).await;
    }
    assert!(asked("getTransaction") > 0, "{:?}", world.nodes[0].stats());
    // And at the end of the read in which it answers, for what that one listed.
    assert!((1..=2).contains(&asked("getGenesisHash")), "{:?}", world.nodes[0].stats());
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_chain_contributes_nothing_however_late_it_reports_it() {
    for late in [80, 1_500, 4_000] {
        let world = Build { nodes: 2, ..Build::default() }.world();
        let genesis_hash = "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY".to_owned();
        world.nodes[0].set_options(NodeOptions { genesis_hash, ..world.nodes[0].options() });
        let (first, _) = read(&world, "trader", Faults::latency(Duration::from_millis(late))).await;
        assert!(first < Duration::from_secs(2), "{late}: {first:?}");
        let asked = world.nodes[0].stats();
        assert_eq!(asked.calls_of("getTransaction"), 0, "{late}: {asked:?}");
        // But how far its lists have come.
        assert!(asked.calls_of("getSignaturesForAddress") <= 1, "{late}: {asked:?}");
    }
}

/// It is asked for its chain again and again, and for nothing else, also by calls that name it.
#[tokio::test(start_paused = true)]
async fn a_node_of_another_chain_contributes_nothing_when_asked_again() {
    let world = Build { nodes: 2, ..Build::default() }.world();
    let genesis_hash = "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY".to_owned();
    world.nodes[0].set_options(NodeOptions { genesis_hash, ..world.nodes[0].options() });
    let asked = || {
        let stats = world.nodes[0].stats();
        let of_chain = stats.calls_of("getGenesisHash");
        (of_chain, stats.calls_total() - of_chain)
    };
    read(&world, "first", Faults::none()).await;
    let (_, known) = asked();
    for number in 1..6 {
        sleep(Duration::from_secs(61 << number)).await;
        read(&world, &format!("wallet {number}"), Faults::none()).await;
        // Another chain takes two answers.
        assert_eq!(asked(), (2 * (number + 1), known), "{:?}", world.nodes[0].stats());
    }
}

/// A single answer may come from a confused proxy: the only node is asked again, and its other
/// abilities are not taken for lost meanwhile.
#[tokio::test(start_paused = true)]
async fn a_node_that_once_reported_another_chain_is_used_again() {
    let world = Build::default().world();
    let right = world.nodes[0].options();
    let genesis_hash = "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY".to_owned();
    world.nodes[0].set_options(NodeOptions { genesis_hash, ..right.clone() });
    let wallet = world.add("trader", WalletPlan::trades(300));
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(rows.is_empty() && !end.complete && end.error.is_some(), "{end:?}");
    world.nodes[0].set_options(right);
    sleep(Duration::from_secs(61)).await;
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    same(&rows, &world.truth(wallet));
}

/// Accounts are found one after another: the second answer on the end of each is no slow node's.
#[tokio::test(start_paused = true)]
async fn a_slow_node_is_not_waited_for_at_each_account() {
    let read = async |nodes: usize| {
        let (batch, concurrency) = (Some(10), Some(8));
        let world = Build { nodes, batch, concurrency, ..Build::default() }.world();
        world.set_faults(Faults::latency(Duration::from_millis(80)));
        for slow in &world.nodes[1..] {
            slow.set_faults(Faults::latency(Duration::from_secs(4)));
        }
        let wallet = world.add("trader", WalletPlan::trades(3_000));
        let began = Instant::now();
        let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
        assert!(end.complete, "{end:?}");
        same(&rows, &world.truth(wallet));
        began.elapsed()
    };
    let (alone, mixed) = (read(1).await, read(2).await);
    // Twice it is asked: about the end of the wallet's own list, and then whether it is still of
    // this chain.
    assert!(mixed < alone + Duration::from_secs(6), "{alone:?} alone, {mixed:?} mixed");
}
