//! A store of limited size: the wallets not read for longest are evicted, and reloaded on demand.

use std::time::Duration;

use blotter::demo::solana::WalletPlan;
use blotter::domain::{KeyId, Position, Wallet};
use blotter::history::{Capacity, Extent, HistoryError, Step, WalkRequest};
use blotter::store::Chunk;

use crate::support::trades::chunk;
use crate::support::truth::same;
use crate::support::world::{Build, World, finish, pages};

const TRADES: u64 = 2_000;
/// Space for about seven of these wallets, and the megabyte of an empty store.
const CAP: u64 = 3 << 20;

fn on_file() -> World {
    let folder = Some(tempfile::tempdir().unwrap());
    Build { folder, ..Build::default() }.world()
}

fn limited(world: &World, max_bytes: u64) {
    world.history.set_capacity(Capacity { max_bytes: Some(max_bytes), min_free_bytes: 0 });
}

fn written(world: &World) -> u64 {
    world.store.size().unwrap().unwrap().disk_bytes
}

async fn stored_rows(world: &World, wallet: Wallet) -> u64 {
    let view = world.store.view().unwrap();
    view.wallet(&wallet).await.unwrap().map_or(0, |record| record.count)
}

/// Reads a wallet to its end, resuming after each cut, and lets its worker end.
async fn read(world: &World, wallet: Wallet) {
    let (mut rows, mut resume, mut ends) = (Vec::new(), None, Vec::new());
    for _ in 0..20 {
        let mut walk = world.walk(wallet, Extent::All, resume);
        let (more, end) = finish(&mut walk).await;
        rows.extend(more);
        assert!(written(world) <= CAP, "{} bytes are written", written(world));
        if end.complete && !end.more {
            same(&rows, &world.truth(wallet));
            tokio::time::sleep(Duration::from_secs(5)).await;
            return;
        }
        ends.push((end, world.store.size().unwrap()));
        resume = Some(walk.cursor());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("the wallet never ended: {ends:?}");
}

/// Reads seven wallets and more. How many fit depends on how writes were batched, which varies with
/// the machine's load.
async fn read_until_one_is_evicted(world: &World) {
    for at in 0..20 {
        read(world, world.add(&format!("other{at}"), WalletPlan::trades(TRADES))).await;
        if at >= 6 && world.history.metrics().wallets_evicted.get() > 0 {
            return;
        }
    }
    panic!("no wallet was evicted");
}

#[tokio::test(start_paused = true)]
async fn ten_large_wallets_under_a_cap_are_all_answered_and_never_above_it() {
    let world = on_file();
    limited(&world, CAP);
    let wallets: Vec<Wallet> =
        (0..10).map(|at| world.add(&format!("w{at}"), WalletPlan::trades(TRADES))).collect();
    for wallet in &wallets {
        read(&world, *wallet).await;
    }
    let evicted = world.history.metrics().wallets_evicted.get();
    assert!(evicted >= 3, "{evicted} wallets made room");
    assert_eq!(stored_rows(&world, wallets[0]).await, 0, "the oldest went first");
    assert!(stored_rows(&world, wallets[9]).await > 0);
    // Again, in another order, by pages too.
    for wallet in wallets.iter().rev().step_by(2) {
        read(&world, *wallet).await;
    }
    same(&pages(&world, wallets[2], 700).await, &world.truth(wallets[2]));
    assert!(written(&world) <= CAP);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_and_the_usage_outlive_an_eviction() {
    let world = on_file();
    let wallet = world.add("first", WalletPlan::trades(TRADES));
    let mut walk = world.walk(wallet, Extent::Rows(500), None);
    let (mut rows, _) = finish(&mut walk).await;
    let cursor = walk.cursor();
    drop(walk);
    read(&world, wallet).await;
    let counted = world.history.usage(KeyId(1)).await.unwrap();
    assert_eq!(counted, u64::try_from(world.truth(wallet).len()).unwrap());
    limited(&world, CAP);
    for at in 0..7 {
        read(&world, world.add(&format!("other{at}"), WalletPlan::trades(TRADES))).await;
    }
    assert_eq!(stored_rows(&world, wallet).await, 0, "it was evicted");
    let counted = world.history.usage(KeyId(1)).await.unwrap();
    let mut walk = world.walk(wallet, Extent::All, Some(cursor));
    let (more, end) = finish(&mut walk).await;
    assert!(end.complete, "{end:?}");
    rows.extend(more);
    same(&rows, &world.truth(wallet));
    assert_eq!(world.history.usage(KeyId(1)).await.unwrap(), counted, "read again, not counted");
}

#[tokio::test(start_paused = true)]
async fn a_followed_wallet_is_never_evicted() {
    let world = on_file();
    let followed = world.add("followed", WalletPlan::trades(TRADES));
    let request = WalkRequest { follow: true, ..World::request(followed, Extent::All) };
    let mut walk = world.history.walk(request).unwrap();
    let count = u64::try_from(world.truth(followed).len()).unwrap();
    while !walk.is_live() {
        assert!(matches!(walk.next().await, Step::Rows(_)));
    }
    limited(&world, CAP);
    read_until_one_is_evicted(&world).await;
    assert_eq!(stored_rows(&world, followed).await, count);
}

#[tokio::test(start_paused = true)]
async fn a_wallet_that_is_streamed_is_never_evicted() {
    let world = on_file();
    let streamed = world.add("streamed", WalletPlan::trades(TRADES));
    read(&world, streamed).await;
    let count = stored_rows(&world, streamed).await;
    // A slow client: it has read one step of its stream and is still connected.
    let mut walk = world.walk(streamed, Extent::All, None);
    let mut rows = Vec::new();
    match walk.next().await {
        Step::Rows(first) => rows.extend(first),
        Step::End(end) => panic!("{end:?}"),
    }
    limited(&world, CAP);
    read_until_one_is_evicted(&world).await;
    assert_eq!(stored_rows(&world, streamed).await, count);
    // It is not evicted either if it is the only wallet left.
    let huge = world.add("huge", WalletPlan::trades(25_000));
    let mut filling = world.walk(huge, Extent::All, None);
    while let Step::Rows(_) = filling.next().await {
        assert_eq!(stored_rows(&world, streamed).await, count);
    }
    let (more, end) = finish(&mut walk).await;
    assert!(end.complete, "{end:?}");
    rows.extend(more);
    same(&rows, &world.truth(streamed));
}

#[tokio::test(start_paused = true)]
async fn a_wallet_that_is_loading_is_never_evicted() {
    let world = on_file();
    let loading = world.add("loading", WalletPlan::trades(TRADES));
    // The rest of the load goes on in the background, which is paused here.
    world.history.set_paused(true);
    let mut walk = world.walk(loading, Extent::All, None);
    assert!(matches!(walk.next().await, Step::Rows(_)));
    walk.stop(HistoryError::ShuttingDown);
    let (_, end) = finish(&mut walk).await;
    assert!(!end.complete, "{end:?}");
    drop(walk);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let loads = world.history.loads().await.unwrap();
    assert!(loads.iter().any(|one| one.wallet == loading && one.background), "{loads:?}");
    let count = stored_rows(&world, loading).await;
    assert!(count > 0);
    limited(&world, CAP);
    read_until_one_is_evicted(&world).await;
    assert_eq!(stored_rows(&world, loading).await, count);
    world.history.set_paused(false);
    read(&world, loading).await;
}

#[tokio::test(start_paused = true)]
async fn a_wallet_larger_than_the_cap_ends_with_a_reason_and_leaves_room_for_others() {
    let world = on_file();
    limited(&world, CAP);
    let (small, huge) = (
        world.add("small", WalletPlan::trades(300)),
        world.add("huge", WalletPlan::trades(25_000)),
    );
    let (rows, end) = finish(&mut world.walk(huge, Extent::All, None)).await;
    assert!(!end.complete && !rows.is_empty());
    let Some(HistoryError::StoreFull { reason }) = end.error else { panic!("{:?}", end.error) };
    assert!(reason.contains("storage.max_size"), "{reason}");
    assert!(written(&world) <= CAP);
    // Its own background load has to end first.
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.history.set_paused(true);
    let rows = pages(&world, small, 1_000).await;
    same(&rows, &world.truth(small));
}

#[tokio::test(start_paused = true)]
async fn a_disk_without_room_stops_loads_and_deletes_no_stored_row() {
    let world = on_file();
    let stored = world.add("stored", WalletPlan::trades(300));
    let (rows, end) = finish(&mut world.walk(stored, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    // Its worker ends before the next wallet is asked for.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let full = Capacity { max_bytes: None, min_free_bytes: u64::MAX };
    world.history.set_capacity(full);
    let other = world.add("other", WalletPlan::trades(300));
    let (none, end) = finish(&mut world.walk(other, Extent::All, None)).await;
    assert!(none.is_empty() && !end.complete, "{end:?}");
    let error = end.error.map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("storage.min_free"), "{error}");
    assert_eq!(world.history.metrics().wallets_evicted.get(), 0);
    assert_eq!(stored_rows(&world, stored).await, u64::try_from(rows.len()).unwrap());
    world.history.set_capacity(Capacity::default());
    let (rows, end) = finish(&mut world.walk(other, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    same(&rows, &world.truth(other));
}

/// New rows cannot be stored: a client that follows the wallet gets the reason.
#[tokio::test(start_paused = true)]
async fn a_full_disk_ends_a_stream_that_follows_with_the_reason() {
    let world = on_file();
    let wallet = world.add("followed", WalletPlan::trades(300));
    let follow = WalkRequest { follow: true, ..World::request(wallet, Extent::All) };
    let mut walk = world.history.walk(follow.clone()).unwrap();
    let mut rows = Vec::new();
    while !walk.is_live() {
        let Step::Rows(more) = walk.next().await else { panic!("it ends before it is live") };
        rows.extend(more);
    }
    world.history.set_capacity(Capacity { max_bytes: None, min_free_bytes: u64::MAX });
    let before = world.truth(wallet);
    world.model.arrive(wallet.address, 3);
    let (none, end) = finish(&mut walk).await;
    assert!(
        none.is_empty() && matches!(end.error, Some(HistoryError::StoreFull { .. })),
        "{end:?}"
    );
    same(&rows, &before);
    world.history.set_capacity(Capacity::default());
    let resume = Some(Box::new(walk.cursor()));
    let (more, end) =
        finish(&mut world.history.walk(WalkRequest { resume, ..follow }).unwrap()).await;
    assert_eq!(end.error, None);
    let all: Vec<_> = more.into_iter().rev().chain(rows).collect();
    same(&all, &world.truth(wallet));
}

/// An audit of finished heights writes as a load does.
#[tokio::test(start_paused = true)]
async fn a_repair_writes_nothing_where_the_disk_has_too_little_left() {
    let world = on_file();
    let wallet = world.add("first", WalletPlan::trades(200));
    read(&world, wallet).await;
    let view = world.store.view().unwrap();
    let record = view.wallet(&wallet).await.unwrap().unwrap();
    let rows = view.rows(record.id, Position::Start, 0, 500).await.unwrap();
    drop(view);
    // Simulates an accepted read that missed a height.
    let height = rows.bare()[15].key.height;
    let at = |span: &&blotter::domain::Span| (span.low..=span.high).contains(&height);
    let span = record.coverage.spans().iter().find(at).unwrap();
    let (decoder, proof) = (span.decoder, span.proof);
    let emptied = chunk(record.id, height, height, Vec::new());
    let emptied = Chunk { epoch: record.epoch, decoder, proof, ..emptied };
    world.store.write_chunk(emptied).await.unwrap();
    let left = stored_rows(&world, wallet).await;
    assert!(left < record.count);
    world.history.set_capacity(Capacity { max_bytes: None, min_free_bytes: u64::MAX });
    let refused = world.history.repair(wallet).await;
    assert!(matches!(refused, Err(HistoryError::StoreFull { .. })), "{refused:?}");
    assert_eq!(stored_rows(&world, wallet).await, left);
    world.history.set_capacity(Capacity::default());
    assert_eq!(world.history.repair(wallet).await.unwrap().missing, 1);
    assert_eq!(stored_rows(&world, wallet).await, record.count);
}
