//! Reorgs of every depth, by each way of reading: after the next read each row is on the new chain.

use tokio::time::sleep;

use super::client::Client;
use super::finish;
use super::way::Way;
use super::world::World;
use super::{FRESHNESS, LISTED};

/// From the newest trade down.
const DEPTHS: usize = 24;

async fn check(way: Way, depth: usize) {
    let mut world = World::plain(way);
    world.chain.advance(LISTED);
    world.learn();
    let target = world.chain.head() - LISTED;
    finish(&world, &mut Client::new(0, 1, 1), target, true).await;
    super::trouble::say(&format!("{} {depth} deep", way.name()));
    assert!(world.reorganise_at(0, depth), "the wallet has fewer than {depth} trades");
    // The truth is the current chain: no row of the old one may be left.
    world.forked = false;
    sleep(FRESHNESS).await;
    finish(&world, &mut Client::new(1, 2, 1), target, true).await;
    world.check_store(0);
    world.check_all(0, target);
    world.history.stop();
    assert!(world.history.tasks().shutdown(std::time::Duration::from_secs(5)).await);
}

async fn check_depths(way: Way) {
    for depth in 0..DEPTHS {
        check(way, depth).await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_every_depth_by_logs() {
    check_depths(Way::Logs).await;
}

#[tokio::test(start_paused = true)]
async fn of_every_depth_by_explorer() {
    check_depths(Way::Explorer).await;
}

#[tokio::test(start_paused = true)]
async fn of_every_depth_by_transfers() {
    check_depths(Way::Transfers).await;
}

#[tokio::test(start_paused = true)]
async fn of_every_depth_by_portal() {
    check_depths(Way::Portal).await;
}

#[tokio::test(start_paused = true)]
async fn of_every_depth_by_lists() {
    check_depths(Way::Lists).await;
}

#[tokio::test(start_paused = true)]
async fn of_every_depth_by_events() {
    check_depths(Way::Events).await;
}
