//! Clients that have less time than a look for newer heights takes.

use std::time::Duration;

use super::client::Client;
use super::way::Way;
use super::world::World;
use super::{finish, finish_poisoned};

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
