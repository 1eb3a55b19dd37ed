//! Audits of finished histories, by every way: a row that an answer once omitted comes back,
//! whichever way read the rest, and nothing else changes.

use std::time::Duration;

use blotter::domain::{Height, Position, Span, TxId};
use blotter::history::{Extent, Repaired};
use blotter::store::{Chunk, WalletRecord};
use tokio::time::sleep;

use super::cut::{read, walk};
use super::way::Way;
use super::world::World;
use crate::support::trades::chunk;

const EVM_AND_TRON: [Way; 6] =
    [Way::Logs, Way::Explorer, Way::Transfers, Way::Portal, Way::Lists, Way::Events];

async fn record(world: &World) -> WalletRecord {
    let record = world.store.view().unwrap().wallet(&world.wallets[0]).await.unwrap().unwrap();
    WalletRecord::clone(&record)
}

fn span(record: &WalletRecord, height: Height) -> &Span {
    record.coverage.spans().iter().find(|one| (one.low..=one.high).contains(&height)).unwrap()
}

/// As if this height had been read, and accepted, with other transactions.
async fn rewrite(world: &World, height: Height, is_false: bool) {
    let record = record(world).await;
    let Span { decoder, proof, .. } = *span(&record, height);
    let mut trades = Vec::new();
    if is_false {
        let rows =
            world.store.view().unwrap().rows(record.id, Position::Start, 0, 500).await.unwrap();
        let like = rows.iter().filter(|row| row.bare.key.height == height);
        trades.extend(like.map(|row| row.to_row().trade));
        let mut other = trades[0].clone();
        other.key.index += 1;
        other.key.tx = match other.key.tx {
            TxId::Tron(_) => TxId::Tron([9; 32]),
            TxId::Solana(_) | TxId::Evm(_) => TxId::Evm([9; 32]),
        };
        trades.push(other);
    }
    let changed =
        Chunk { epoch: record.epoch, decoder, proof, ..chunk(record.id, height, height, trades) };
    world.store.write_chunk(changed).await.unwrap();
}

async fn loaded(way: Way, calls_per_hour: u32) -> (World, Vec<(Height, String)>) {
    let mut world = World::plain(way);
    world.setup.limits.audit.calls_per_hour = calls_per_hour;
    world.restart().await;
    let (rows, end) = read(&mut walk(&world, world.wallets[0], Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    (world, rows)
}

/// Walks until the history is complete again.
async fn settled(world: &World) -> Vec<(Height, String)> {
    for _ in 0..20 {
        let (rows, end) = read(&mut walk(world, world.wallets[0], Extent::All, None)).await;
        if end.complete {
            return rows;
        }
        sleep(Duration::from_secs(60)).await;
    }
    panic!("it is not complete again");
}

#[tokio::test(start_paused = true)]
async fn a_repair_brings_back_what_an_accepted_read_left_out() {
    for way in EVM_AND_TRON {
        let (world, rows) = loaded(way, 0).await;
        let lost = rows[15].0;
        rewrite(&world, lost, false).await;
        let (short, end) = read(&mut walk(&world, world.wallets[0], Extent::All, None)).await;
        assert!(end.complete && short.len() < rows.len(), "{way:?}: nothing shows it");
        let Repaired { heights, missing, unseen } =
            world.history.repair(world.wallets[0]).await.unwrap();
        assert_eq!((missing, unseen), (1, 0), "{way:?}");
        assert!(heights > lost, "{way:?}");
        assert_eq!(settled(&world).await, rows, "{way:?}");
        assert_eq!(world.history.metrics().audit_missing.get(), 1);
        let again = world.history.repair(world.wallets[0]).await.unwrap();
        assert_eq!((again.missing, again.unseen), (0, 0), "{way:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_and_not_seen_again_is_reported_and_stays() {
    for way in EVM_AND_TRON {
        let (world, rows) = loaded(way, 0).await;
        rewrite(&world, rows[15].0, true).await;
        let (more, end) = read(&mut walk(&world, world.wallets[0], Extent::All, None)).await;
        assert!(end.complete && more.len() > rows.len());
        let repaired = world.history.repair(world.wallets[0]).await.unwrap();
        // A way that sees less proves nothing about it.
        assert!(repaired.unseen <= 1 && repaired.missing == 0, "{way:?} {repaired:?}");
        let is_alone = matches!(way, Way::Logs | Way::Lists | Way::Events);
        assert!(repaired.unseen == 1 || !is_alone, "{way:?}");
        assert_eq!(settled(&world).await, more, "{way:?}: one answer deletes no row");
    }
}

/// Within the budget of calls, and not at all where it is switched off.
#[tokio::test(start_paused = true)]
async fn audits_go_on_in_the_background_within_their_budget() {
    for calls_per_hour in [0, 600] {
        let (world, rows) = loaded(Way::Explorer, calls_per_hour).await;
        rewrite(&world, rows[15].0, false).await;
        sleep(Duration::from_secs(60)).await;
        let before = world.requests();
        sleep(Duration::from_secs(10 * 3600)).await;
        let requests = world.requests() - before;
        assert!(requests <= u64::from(calls_per_hour) * 12, "{requests} requests");
        let audited = world.history.metrics().audited_heights.get();
        if calls_per_hour == 0 {
            assert_eq!((requests, audited), (0, 0));
            continue;
        }
        assert!(audited > 0 && world.history.metrics().audit_missing.get() == 1, "{audited}");
        assert_eq!(settled(&world).await, rows);
    }
}
