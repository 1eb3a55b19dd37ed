//! More wallets than can be loaded at one time, on paused time: admitted ones are served in turns,
//! others are rejected with a retry hint, stored wallets are not affected, and rejected requests
//! leave no state.
#![allow(clippy::disallowed_methods, reason = "a test's own tasks end with its runtime")]

use std::sync::Arc;
use std::time::Duration;

use blotter::api::{Api, ApiLimits, ApiParts, Keys};
use blotter::demo::Faults;
use blotter::demo::solana::WalletPlan;
use blotter::domain::Wallet;
use blotter::history::{Extent, HistoryError, HistoryLimits, Step, Walk};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use crate::support::ready::now;
use crate::support::served::{KEY, key, ring};
use crate::support::world::{Build, World, finish};

const ACTIVE: usize = 12;
const SLOW: Duration = Duration::from_millis(200);

fn crowded() -> World {
    let limits = HistoryLimits {
        wallets_active_max: ACTIVE,
        background_loads_max: 2,
        background_total_max: 6,
        background_per_key_max: 4,
        ..HistoryLimits::default()
    };
    // Two requests at a time, each of ten transactions: far too few for so many.
    Build { limits, concurrency: Some(2), batch: Some(10), ..Build::default() }.world()
}

fn wallets(world: &World, name: &str, count: usize, trades: u64) -> Vec<Wallet> {
    (0..count).map(|at| world.add(&format!("{name} {at}"), WalletPlan::trades(trades))).collect()
}

/// The admitted walks, and the errors of the others.
async fn begin(
    world: &World,
    wallets: &[Wallet],
) -> (Vec<(Wallet, Walk, Step)>, Vec<HistoryError>) {
    let (mut begun, mut refused) = (Vec::new(), Vec::new());
    for wallet in wallets {
        match world.history.walk(World::request(*wallet, Extent::All)) {
            Ok(walk) => begun.push((*wallet, walk)),
            Err(error) => refused.push(error),
        }
    }
    let first = begun.into_iter().map(|(wallet, mut walk)| async move {
        let step = walk.next().await;
        (wallet, walk, step)
    });
    (join_all(first).await, refused)
}

#[tokio::test(start_paused = true)]
async fn admitted_clients_are_served_in_turns_and_others_get_retry_after() {
    let world = crowded();
    world.set_faults(Faults::latency(SLOW));
    let all = wallets(&world, "crowd", 60, 120);
    let (inside, refused) = begin(&world, &all).await;
    assert_eq!((inside.len(), refused.len()), (ACTIVE, 60 - ACTIVE));
    assert!(refused.iter().all(|error| matches!(error, HistoryError::Overloaded)), "{refused:?}");
    // Each has its first rows before any of them is complete.
    assert!(inside.iter().all(|(_, _, step)| matches!(step, Step::Rows(_))));
    let view = world.store.view().unwrap();
    let count = |wallet: &Wallet| now(view.wallet(wallet)).unwrap().unwrap().count;
    let counts: Vec<u64> = inside.iter().map(|(wallet, ..)| count(wallet)).collect();
    drop(view);
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(*most < 240 && *least > 0, "{counts:?}");
    let began = Instant::now();
    let ends = join_all(inside.into_iter().map(|(_, mut walk, _)| async move {
        let (_, end) = finish(&mut walk).await;
        (end, began.elapsed())
    }))
    .await;
    assert!(ends.iter().all(|(end, _)| end.complete), "{ends:?}");
    // No wallet waits for long after all others are done.
    let times: Vec<Duration> = ends.iter().map(|(_, took)| *took).collect();
    let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(*last < *first * 3 + Duration::from_secs(1), "{first:?} to {last:?}");
}

#[tokio::test(start_paused = true)]
async fn stored_wallets_are_answered_from_the_store_while_others_load() {
    let world = crowded();
    let stored = wallets(&world, "stored", 1, 40)[0];
    finish(&mut world.walk(stored, Extent::All, None)).await;
    sleep(Duration::from_secs(60)).await;
    world.set_faults(Faults::latency(SLOW));
    let crowd = wallets(&world, "crowd", ACTIVE - 1, 2_000);
    let (inside, _) = begin(&world, &crowd).await;
    assert_eq!(inside.len(), ACTIVE - 1);
    for _ in 0..5 {
        let began = Instant::now();
        let (rows, end) = finish(&mut world.walk(stored, Extent::Rows(10), None)).await;
        assert_eq!((rows.len(), end.error), (10, None));
        let most = world.limits.head_wait_max + Duration::from_millis(1);
        assert!(began.elapsed() <= most, "{:?}", began.elapsed());
        sleep(Duration::from_secs(12)).await;
    }
    drop(inside);
}

/// Thousands are rejected: they leave no state in the engine or on the disk.
#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_rejected_clients() {
    let world = crowded();
    world.set_faults(Faults::latency(Duration::from_secs(3600)));
    let crowd = wallets(&world, "crowd", ACTIVE, 10);
    let held: Vec<Walk> = crowd.iter().map(|w| world.walk(*w, Extent::All, None)).collect();
    let waiting = held.into_iter().map(|mut walk| async move { walk.next().await });
    let held = tokio::spawn(join_all(waiting));
    sleep(Duration::from_secs(1)).await;
    let before = (world.history.metrics().workers.get(), world.calls());
    for round in 0..20 {
        let more = wallets(&world, &format!("more {round}"), 100, 10);
        let (inside, refused) = begin(&world, &more).await;
        assert_eq!((inside.len(), refused.len()), (0, 100));
    }
    let after = (world.history.metrics().workers.get(), world.calls());
    assert_eq!(after, before, "workers and calls");
    let kept = world.store.stats().await.unwrap().wallets;
    assert!(kept <= u64::try_from(ACTIVE).unwrap(), "{kept} wallets are known");
    held.abort();
}

/// Clients get a 503 with Retry-After, and are admitted as soon as one leaves.
#[tokio::test(start_paused = true)]
async fn rejected_clients_get_retry_after() {
    let world = crowded();
    let keys = Keys::new(ring(&[(KEY, key(1, |_| {}))]));
    let api = Api::new(ApiParts {
        history: world.history.clone(),
        keys,
        limits: ApiLimits::default(),
        seed: 1,
    });
    let routes = Arc::new(api.routes());
    world.set_faults(Faults::latency(Duration::from_secs(3600)));
    let crowd = wallets(&world, "crowd", ACTIVE, 10);
    let held: Vec<_> = crowd
        .iter()
        .map(|wallet| {
            let mut walk = world.walk(*wallet, Extent::All, None);
            tokio::spawn(async move { walk.next().await })
        })
        .collect();
    sleep(Duration::from_secs(1)).await;
    let other = wallets(&world, "other", 1, 10)[0].address;
    let path = format!("/v1/wallets/{other}/history?limit=5");
    let ask = || async {
        warp::test::request().path(&path).header("x-api-key", KEY).reply(&*routes).await
    };
    let answer = ask().await;
    assert_eq!(answer.status(), 503, "{answer:?}");
    assert_eq!(answer.headers().get("retry-after").unwrap(), "5");
    assert!(String::from_utf8_lossy(answer.body()).contains("overloaded"), "{answer:?}");
    world.set_faults(Faults::none());
    held.iter().for_each(tokio::task::JoinHandle::abort);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(ask().await.status(), 200);
}
