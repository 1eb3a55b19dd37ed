//! Heights that a read left in doubt are never reported complete, and are read again.

use std::collections::HashMap;
use std::time::Duration;

use blotter::decode::solana::DECODER_VERSION;
use blotter::demo::solana::WalletPlan;
use blotter::demo::{Faults, Rate};
use blotter::domain::{Doubts, Proof, UnixMillis, Wallet, Way};
use blotter::history::{End, Extent, HistoryError, Step};
use blotter::store::{Chunk, WalletPatch, WalletRecord};

use crate::support::trades::chunk;
use crate::support::truth::{Fact, same};
use crate::support::world::{Build, World, finish};

const MONTH_MS: u64 = 30 * 24 * 3600 * 1000;

async fn loaded(trades: u64) -> (World, Wallet) {
    let world = Build::default().world();
    let wallet = world.add("proved", WalletPlan::trades(trades));
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    same(&rows, &world.truth(wallet));
    (world, wallet)
}

async fn record(world: &World, wallet: Wallet) -> WalletRecord {
    let record = world.store.view().unwrap().wallet(&wallet).await.unwrap().unwrap();
    WalletRecord::clone(&record)
}

/// Simulates that no endpoint returned the transaction of this row when its height was read.
async fn lose(world: &World, wallet: Wallet, fact: &Fact) {
    let WalletRecord { id, epoch, .. } = record(world, wallet).await;
    let lost = Chunk {
        epoch,
        decoder: DECODER_VERSION,
        proof: Proof::of(Way::Signatures),
        missing: vec![(fact.slot, fact.tx)],
        ..chunk(id, fact.slot, fact.slot, vec![])
    };
    world.store.write_chunk(lost).await.unwrap();
}

fn without(truth: &[Fact], lost: &Fact) -> Vec<Fact> {
    truth.iter().filter(|fact| fact.slot != lost.slot).copied().collect()
}

#[track_caller]
fn assert_unproved(end: &End, lost: &Fact) {
    assert!(!end.complete, "{end:?}");
    let Some(HistoryError::Unproved { doubts, low, high }) = &end.error else { panic!("{end:?}") };
    assert_eq!((*doubts, *low, *high), (Doubts::MISSING, lost.slot, lost.slot));
}

#[tokio::test(start_paused = true)]
async fn what_lies_below_a_transaction_that_no_endpoint_gives_is_served_and_not_called_complete() {
    let (world, wallet) = loaded(60).await;
    let truth = world.truth(wallet);
    let lost = truth[20];
    lose(&world, wallet, &lost).await;
    world.set_faults(Faults { unavailable: Rate::ALWAYS, ..Faults::none() });
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    same(&rows, &without(&truth, &lost));
    assert_unproved(&end, &lost);
    let report = world.history.coverage(wallet).await.unwrap().unwrap();
    let doubtful: Vec<_> = report.spans.iter().filter(|span| !span.accepted).collect();
    assert!(!report.complete && report.gaps.is_empty());
    assert_eq!(doubtful.len(), 1);
    assert_eq!(doubtful[0].span.missing, [lost.tx]);
    assert_eq!(doubtful[0].span.proof.doubts, Doubts::MISSING);
}

/// Pages: rows come, the last page does not end the history.
#[tokio::test(start_paused = true)]
async fn pages_do_not_end_complete_below_a_missing_transaction() {
    let (world, wallet) = loaded(60).await;
    let truth = world.truth(wallet);
    let lost = truth[20];
    lose(&world, wallet, &lost).await;
    world.set_faults(Faults { unavailable: Rate::ALWAYS, ..Faults::none() });
    let mut walk = world.walk(wallet, Extent::Rows(1_000_000), None);
    let (rows, end) = finish(&mut walk).await;
    same(&rows, &without(&truth, &lost));
    assert_unproved(&end, &lost);
    let (rows, end) = finish(&mut world.walk(wallet, Extent::Rows(10), Some(walk.cursor()))).await;
    assert!(rows.is_empty());
    assert_unproved(&end, &lost);
}

/// A reload disables the chain during a walk: nothing says any more whether its proofs are
/// accepted.
#[tokio::test(start_paused = true)]
async fn a_chain_that_is_switched_off_makes_no_open_walk_complete() {
    let (world, wallet) = loaded(60).await;
    let truth = world.truth(wallet);
    let lost = truth[20];
    lose(&world, wallet, &lost).await;
    world.set_faults(Faults { unavailable: Rate::ALWAYS, ..Faults::none() });
    let mut walk = world.walk(wallet, Extent::All, None);
    let Step::Rows(first) = walk.next().await else { panic!("no rows") };
    world.history.replace_sources(HashMap::from([(wallet.chain, None)]));
    let (rest, end) = finish(&mut walk).await;
    same(&[first.to_vec(), rest].concat(), &without(&truth, &lost));
    assert!(!end.complete && end.error == Some(HistoryError::ChainDisabled), "{end:?}");
}

/// Retries come with growing pauses only, even if the node never returns it.
#[tokio::test(start_paused = true)]
async fn a_missing_transaction_is_asked_for_again_and_then_the_history_is_complete() {
    let (world, wallet) = loaded(60).await;
    let truth = world.truth(wallet);
    lose(&world, wallet, &truth[20]).await;
    world.set_faults(Faults { unavailable: Rate::ALWAYS, ..Faults::none() });
    let (_, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(!end.complete);
    let requests = || world.nodes[0].stats().requests;
    let before = requests();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let requests = requests() - before;
    assert!((1..2_000).contains(&requests), "{requests} requests in an hour");
    world.set_faults(Faults::none());
    tokio::time::sleep(Duration::from_secs(1200)).await;
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    same(&rows, &truth);
}

/// A client that continues by cursors lacks a row that came above its cursor: the answer does not
/// claim that it has all.
#[tokio::test(start_paused = true)]
async fn a_walk_above_whose_cursor_a_row_came_does_not_end_complete() {
    let (world, wallet) = loaded(60).await;
    let truth = world.truth(wallet);
    let lost = truth[3];
    lose(&world, wallet, &lost).await;
    world.set_faults(Faults { unavailable: Rate::ALWAYS, ..Faults::none() });
    let mut first = world.walk(wallet, Extent::Rows(30), None);
    let (rows, _) = finish(&mut first).await;
    assert_eq!(rows.len(), 30);
    let resume = first.cursor();
    drop(first);
    world.set_faults(Faults::none());
    for _ in 0..20 {
        let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
        if end.complete {
            same(&rows, &truth);
            let (rows, end) = finish(&mut world.walk(wallet, Extent::All, Some(resume))).await;
            assert_eq!(rows.len() + 30, without(&truth, &lost).len());
            assert!(!end.complete, "{end:?}");
            assert_eq!(end.error, Some(HistoryError::Changed));
            return;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    panic!("it never became complete");
}

/// The clock was ahead when the wallet was read: new trades still arrive.
#[tokio::test(start_paused = true)]
async fn a_check_from_the_future_is_no_check() {
    let (world, wallet) = loaded(30).await;
    let WalletRecord { id, epoch, .. } = record(&world, wallet).await;
    let ahead = UnixMillis(world.now().0 + MONTH_MS);
    let patch = WalletPatch { checked_at: Some(ahead), ..WalletPatch::default() };
    world.store.update_wallet(id, epoch, patch).await.unwrap();
    world.model.arrive(wallet.address, 5);
    let mut walk = world.walk(wallet, Extent::All, None);
    let (rows, end) = finish(&mut walk).await;
    assert!(end.complete, "{end:?}");
    same(&rows, &world.truth(wallet));
    assert!(walk.as_of().await.unwrap().at <= world.now(), "an answer as of a time to come");
}
