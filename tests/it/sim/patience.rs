//! Clients that wait less than a request for newer heights takes.

use std::time::Duration;

use blotter::domain::TxId;
use blotter::history::{Extent, Step, WalkRequest};
use tokio::time::Instant;

use super::client::Client;
use super::trouble::fail_on;
use super::way::Way;
use super::world::World;
use super::{finish, finish_poisoned};
use crate::support::truth::Fact;
use crate::support::world::World as Plain;

/// A page waits two seconds for newer heights. A new transaction that no node returns delays their
/// read for longer: it completes all the same, and the next page has the new rows.
#[tokio::test(start_paused = true)]
async fn pages_alone_come_past_a_new_transaction_that_no_node_gives() {
    for way in [Way::Logs, Way::Explorer, Way::Transfers, Way::Lists] {
        let mut world = World::plain(way);
        let mut client = Client::paging(1_000);
        finish(&world, &mut client, world.chain.head() - 200, true).await;
        let wallet = world.wallets[0].address;
        world.chain.arrive(wallet, 3);
        let target = world.chain.head();
        let withheld = world.chain.facts(wallet)[0].tx;
        world.chain.withhold(&[withheld]);
        world.poison = Some(withheld);
        world.chain.advance(200);
        world.learn();
        finish_poisoned(&world, &mut client, target).await;
        world.history.stop();
        assert!(world.history.tasks().shutdown(Duration::from_secs(5)).await);
    }
}

/// One of several transactions of a block comes late, after the others were stored, and is placed
/// in order.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_comes_late_has_its_place_in_its_block() {
    for way in [Way::Logs, Way::Explorer, Way::Transfers, Way::Lists] {
        // The newest of many, and either of two.
        for (burst, crowd, at) in [(20, 3..=64, 0), (2, 2..=2, 0), (2, 2..=2, 1)] {
            let world = World::in_bursts(way, burst);
            let facts = world.chain.facts(world.wallets[0].address);
            let mut blocks = facts.chunk_by(|a, b| a.slot == b.slot).map(ids);
            let block = blocks.find(|block| crowd.contains(&block.len())).unwrap();
            assert_eq!(after_it_came_late(world, block[at]).await, ids(&facts), "{way:?}");
        }
    }
}

/// Of each family: every node fails on one transaction, and gives it later.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_every_node_fails_on_comes_once_they_give_it() {
    for way in [Way::Solana, Way::Logs, Way::Explorer, Way::Transfers, Way::Lists, Way::Events] {
        let mut world = World::doubled(way, None);
        let facts = world.chain.facts(world.wallets[0].address);
        let late = facts[facts.len() / 2].tx;
        world.failing = Some(late);
        fail_on(&world, world.failing);
        assert!(after_it_came_late(world, late).await.contains(&late), "{way:?}");
    }
}

/// Of each family, with one endpoint of a kind and with three: every node fails on one transaction
/// for ever. A page, which waits 20 seconds, has what is below it soon.
#[tokio::test(start_paused = true)]
async fn one_page_comes_past_a_transaction_that_every_node_fails_on() {
    const SOON: Duration = Duration::from_secs(8);
    let ways = [Way::Solana, Way::Logs, Way::Explorer, Way::Transfers, Way::Lists, Way::Events];
    for (way, copies) in ways.into_iter().flat_map(|way| [(way, 1), (way, 3)]) {
        let world = World::copied(way, copies, None);
        let facts = world.chain.facts(world.wallets[0].address);
        let failing = facts[facts.len() / 2].tx;
        world.chain.withhold(&[failing]);
        fail_on(&world, Some(failing));
        let request = Plain::request(world.wallets[0], Extent::Rows(1_000));
        let request = WalkRequest { window: Duration::from_secs(20), ..request };
        let mut walk = world.history.walk(request).unwrap();
        let (began, mut came, mut rows) = (Instant::now(), Duration::ZERO, Vec::new());
        while let Step::Rows(new) = walk.next().await {
            rows.extend(new.iter().map(|row| row.bare.key.tx));
            came = began.elapsed();
        }
        rows.dedup();
        let mut expected = ids(&facts);
        expected.retain(|id| *id != failing);
        assert_eq!(rows, expected, "{way:?}, {copies} endpoints");
        assert!(came < SOON, "{way:?}, {copies} endpoints: {came:?}");
        world.history.stop();
        assert!(world.history.tasks().shutdown(Duration::from_secs(5)).await);
    }
}

fn ids(facts: &[Fact]) -> Vec<TxId> {
    let mut ids: Vec<_> = facts.iter().map(|fact| fact.tx).collect();
    ids.dedup();
    ids
}

/// The stored transactions, newest first, of a wallet that was read once without one of them.
async fn after_it_came_late(mut world: World, late: TxId) -> Vec<TxId> {
    world.chain.withhold(&[late]);
    world.poison = Some(late);
    let mut client = Client::paging(1_000);
    let target = world.chain.head() - 200;
    finish_poisoned(&world, &mut client, target).await;
    assert!(!world.stored(0).contains(&late));
    assert!(world.failing.is_none() || !world.accepts_all(0), "that height is in doubt");
    world.chain.withhold(&[]);
    fail_on(&world, None);
    world.poison = None;
    finish(&world, &mut client, target, true).await;
    let mut stored = world.stored(0);
    stored.dedup();
    world.history.stop();
    assert!(world.history.tasks().shutdown(Duration::from_secs(5)).await);
    stored
}
