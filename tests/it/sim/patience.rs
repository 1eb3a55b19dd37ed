//! Clients that have less time than a look for newer heights takes.

use std::time::Duration;

use super::client::Client;
use super::way::Way;
use super::world::World;
use super::{finish, finish_poisoned};
use crate::support::truth::Fact;

/// A page waits two seconds for newer heights. A new transaction that no node gives holds such a look
/// up for longer: it is finished all the same, and the next page has what is new.
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

/// One of several transactions of a block comes alone, after the others were stored: it has its place
/// among them.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_comes_late_has_its_place_in_its_block() {
    for way in [Way::Logs, Way::Explorer, Way::Transfers, Way::Lists] {
        let mut world = World::in_bursts(way);
        let wallet = world.wallets[0].address;
        let facts = world.chain.facts(wallet);
        // The last of at least three in their block.
        let ids = |facts: &[Fact]| {
            let mut ids: Vec<_> = facts.iter().map(|fact| fact.tx).collect();
            ids.dedup();
            ids
        };
        let mut blocks = facts.chunk_by(|a, b| a.slot == b.slot).map(ids);
        let withheld = blocks.find(|block| block.len() >= 3).unwrap()[0];
        world.chain.withhold(&[withheld]);
        world.poison = Some(withheld);
        let mut client = Client::paging(1_000);
        let target = world.chain.head() - 200;
        finish_poisoned(&world, &mut client, target).await;
        assert!(!world.stored(0).contains(&withheld), "{way:?}");
        world.chain.withhold(&[]);
        world.poison = None;
        finish(&world, &mut client, target, true).await;
        let mut stored = world.stored(0);
        stored.dedup();
        assert_eq!(stored, ids(&facts), "{way:?}");
        world.history.stop();
        assert!(world.history.tasks().shutdown(Duration::from_secs(5)).await);
    }
}
