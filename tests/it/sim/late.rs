//! A row that comes late while a client follows the chain. No cursor can place it, so the walk ends
//! with an error, and a new one has the row.

use std::time::Duration;

use blotter::domain::{Cursor, TxId};
use blotter::history::{Extent, HistoryError, Step, WalkRequest};
use tokio::time::sleep;

use super::client::Client;
use super::way::Way;
use super::world::World;
use super::{FRESHNESS, LISTED, finish};
use crate::support::world::World as Plain;

const WINDOW: Duration = Duration::from_secs(55);
/// Requests until what is new has come, and until what was late is known.
const TRIES: usize = 60;

#[derive(Default)]
struct Seen {
    cursor: Option<Cursor>,
    rows: Vec<TxId>,
}

impl Seen {
    /// One request, and the error that it ended with.
    async fn request(&mut self, world: &World) -> Option<HistoryError> {
        let request = Plain::request(world.wallets[0], Extent::All);
        let resume = self.cursor.map(Box::new);
        let request = WalkRequest { resume, follow: true, window: WINDOW, ..request };
        let mut walk = world.history.walk(request).unwrap();
        loop {
            match walk.next().await {
                Step::Rows(rows) => self.rows.extend(rows.iter().map(|row| row.bare.key.tx)),
                Step::End(end) => {
                    assert!(!end.complete, "{end:?}");
                    self.cursor = Some(walk.cursor());
                    return end.error;
                }
            }
        }
    }

    /// Requests until one ends as is wanted.
    async fn until(
        &mut self,
        world: &World,
        wanted: impl Fn(&Self, Option<&HistoryError>) -> bool,
    ) {
        for _ in 0..TRIES {
            let error = self.request(world).await;
            if wanted(self, error.as_ref()) {
                return;
            }
            assert_eq!(error, None);
            sleep(FRESHNESS).await;
        }
        panic!("{} rows at {:?}", self.rows.len(), self.cursor);
    }
}

fn ids(world: &World) -> Vec<TxId> {
    let facts = world.chain.facts(world.wallets[0].address);
    let mut ids: Vec<TxId> = facts.iter().map(|fact| fact.tx).collect();
    ids.dedup();
    ids
}

/// The second of three new transactions is given late: while the client waits, or is away.
async fn check(way: Way, is_away: bool) {
    let mut world = World::plain(way);
    let mut seen = Seen::default();
    let cursor_is_live = |seen: &Seen| seen.cursor.is_some_and(|cursor| cursor.live);
    seen.until(&world, |seen, _| cursor_is_live(seen)).await;
    world.chain.arrive(world.wallets[0].address, 3);
    let target = world.chain.head();
    let ids = ids(&world);
    let late = ids[1];
    world.chain.withhold(&[late]);
    world.poison = Some(late);
    world.chain.advance(LISTED);
    world.learn();
    seen.until(&world, |seen, _| seen.rows.contains(&ids[0])).await;
    assert!(seen.rows.contains(&ids[2]) && !seen.rows.contains(&late), "{way:?}");

    world.chain.withhold(&[]);
    world.poison = None;
    if is_away {
        finish(&world, &mut Client::paging(1_000), target, true).await;
    }
    let is_changed = |error: Option<&HistoryError>| error == Some(&HistoryError::Changed);
    seen.until(&world, |_, error| is_changed(error)).await;
    assert!(!seen.rows.contains(&late), "{way:?}: its place is not behind the cursor");

    let mut anew = Seen::default();
    anew.until(&world, |seen, _| cursor_is_live(seen)).await;
    anew.rows.dedup();
    assert_eq!(anew.rows, ids, "{way:?}");
    world.history.stop();
    assert!(world.history.tasks().shutdown(Duration::from_secs(5)).await);
}

/// The newest of three new transactions is given late: above all that was delivered, so that it comes in
/// its order.
async fn check_above(way: Way) {
    let mut world = World::plain(way);
    let mut seen = Seen::default();
    seen.until(&world, |seen, _| seen.cursor.is_some_and(|cursor| cursor.live)).await;
    world.chain.arrive(world.wallets[0].address, 3);
    let ids = ids(&world);
    world.chain.withhold(&[ids[0]]);
    world.poison = Some(ids[0]);
    world.chain.advance(LISTED);
    world.learn();
    seen.until(&world, |seen, _| seen.rows.contains(&ids[1])).await;
    assert!(!seen.rows.contains(&ids[0]), "{way:?}");
    world.chain.withhold(&[]);
    world.poison = None;
    seen.until(&world, |seen, _| seen.rows.contains(&ids[0])).await;
    world.history.stop();
    assert!(world.history.tasks().shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(start_paused = true)]
async fn a_late_row_above_all_that_a_follower_has_comes_in_its_order() {
    for way in [Way::Logs, Way::Explorer, Way::Transfers, Way::Lists] {
        check_above(way).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_is_not_left_without_a_late_row() {
    for way in [Way::Logs, Way::Explorer, Way::Transfers, Way::Lists] {
        for is_away in [false, true] {
            check(way, is_away).await;
        }
    }
}
