//! Pages that wait for less time than a load takes: no client is led in a circle.

use std::time::Duration;

use blotter::demo::solana::WalletPlan;
use blotter::demo::{Faults, Rate};
use blotter::domain::{Cursor, Row, Wallet};
use blotter::history::{End, Extent, HistoryError, WalkRequest};
use tokio::time::Instant;

use crate::support::truth::same;
use crate::support::world::{Build, World, finish};

const PAGE_WAIT: Duration = Duration::from_millis(300);
/// The longest time in which a client that retries at once gets neither a row nor an error.
const PATIENCE: Duration = Duration::from_secs(60);

async fn page(world: &World, wallet: Wallet, resume: Option<Cursor>) -> (Vec<Row>, End, Cursor) {
    let request = WalkRequest {
        window: PAGE_WAIT,
        resume: resume.map(Box::new),
        ..World::request(wallet, Extent::Rows(20))
    };
    let mut walk = world.history.walk(request).unwrap();
    let (rows, end) = finish(&mut walk).await;
    (rows, end, walk.cursor())
}

/// Pages until one of them holds an error, at once after each other.
async fn first_error(world: &World, wallet: Wallet, resume: Option<Cursor>) -> HistoryError {
    let (began, mut resume) = (Instant::now(), resume);
    while began.elapsed() < PATIENCE {
        let (rows, end, cursor) = page(world, wallet, resume).await;
        assert!(rows.is_empty() && !end.complete, "{end:?}");
        if let Some(error) = end.error {
            return error;
        }
        resume = Some(cursor);
    }
    panic!("{PATIENCE:?} of pages without a row and without an error");
}

#[tokio::test(start_paused = true)]
async fn a_wait_shorter_than_that_for_heads_shows_what_is_stored() {
    for faults in [
        Faults { silence: Rate::ALWAYS, ..Faults::none() },
        Faults { unavailable: Rate::ALWAYS, ..Faults::none() },
    ] {
        let world = Build::default().world();
        assert!(PAGE_WAIT < world.limits.head_wait_max);
        let wallet = world.add("stored", WalletPlan::trades(60));
        finish(&mut world.walk(wallet, Extent::All, None)).await;
        tokio::time::sleep(PATIENCE).await;
        world.set_faults(faults);
        let (mut all, mut resume) = (Vec::new(), None);
        for _ in 0..10 {
            let (rows, end, cursor) = page(&world, wallet, resume).await;
            assert!(!rows.is_empty(), "a page without a row: {end:?}");
            all.extend(rows);
            resume = Some(cursor);
            if end.complete && !end.more {
                break;
            }
        }
        same(&all, &world.truth(wallet));
    }
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_wallet_that_no_node_gives_end_in_an_error() {
    for faults in [
        Faults { silence: Rate::ALWAYS, ..Faults::none() },
        Faults { unavailable: Rate::ALWAYS, ..Faults::none() },
    ] {
        let world = Build::default().world();
        let wallet = world.add("unknown", WalletPlan::trades(60));
        world.set_faults(faults);
        let error = first_error(&world, wallet, None).await;
        assert!(matches!(error, HistoryError::UpstreamUnavailable { .. }), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_at_a_gap_that_no_node_closes_end_in_an_error() {
    for faults in [
        Faults { silence: Rate::ALWAYS, ..Faults::none() },
        Faults { unavailable: Rate::ALWAYS, ..Faults::none() },
    ] {
        let world = Build::default().world();
        let wallet = world.add("partial", WalletPlan::trades(3_000));
        let mut walk = world.walk(wallet, Extent::Rows(20), None);
        finish(&mut walk).await;
        drop(walk);
        tokio::time::sleep(PATIENCE).await;
        world.set_faults(faults);
        let mut resume = None;
        let edge = loop {
            let (rows, end, cursor) = page(&world, wallet, resume).await;
            assert!(!end.complete, "{end:?}");
            if rows.is_empty() {
                break cursor;
            }
            resume = Some(cursor);
        };
        let error = first_error(&world, wallet, Some(edge)).await;
        assert!(matches!(error, HistoryError::UpstreamUnavailable { .. }), "{error:?}");
    }
}
