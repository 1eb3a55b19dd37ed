//! The shared store: the model test, and several processes on one database, each with its own
//! connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blotter::demo::Faults;
use blotter::demo::solana::WalletPlan;
use blotter::domain::{Clock, KeyId, Position, TradeKey, UnixMillis, Wallet};
use blotter::history::{Extent, HistoryError, HistoryLimits, Step, Tasks, Walk};
use blotter::store::{Counted, DeliveredRange, Store, StoreError, UsageUpdate, WalletId, Written};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::shared_faults;
use crate::store::{HEIGHTS, WALLETS, check_model_on, ops};
use crate::support::arms;
use crate::support::paused::TestClock;
use crate::support::trades::{chunk, stored, trade, wallet};
use crate::support::world::{Build, World, finish};

/// Longer than the lease, after which a process counts as dead.
const LEASE: Duration = Duration::from_secs(12);

fn keeps_to_the_model(disorder: i8) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let Some(store) = runtime.block_on(arms::shared()) else { return };
    let mut runner = TestRunner::new(ProptestConfig::with_cases(48));
    let cases = (ops(disorder), 0..HEIGHTS, 0..20_usize, 0..20_usize);
    let outcome = runner.run(&cases, |(ops, floor, skip, limit)| {
        runtime.block_on(async {
            for seed in 0..WALLETS {
                store.forget(wallet(seed), [1; 4]).await.unwrap();
            }
            check_model_on(&store, &ops, (floor, skip, limit)).await;
        });
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn it_holds_what_a_map_holds() {
    keeps_to_the_model(0);
}

#[test]
fn it_does_so_when_times_and_heights_disagree() {
    keeps_to_the_model(4);
}

/// Sends a process's heartbeats until it is dropped.
struct Process {
    store: Store,
    beating: tokio::task::JoinHandle<()>,
}

impl Process {
    async fn start(url: &str) -> Self {
        let store = arms::connect(url).await;
        let beating = store.clone();
        let beating = Tasks::new().spawn(async move { beating.keep_lease().await });
        let known = store.clone();
        // Its first heartbeat is under way.
        while !known.take_duty(&format!("start {url} {}", getrandom::u64().unwrap())).await.unwrap()
        {
            tokio::task::yield_now().await;
        }
        Self { store, beating }
    }

    /// Ends without releasing anything: its lease expires.
    fn kill(self) {
        self.beating.abort();
    }
}

/// Waits until a process holds a wallet.
async fn held(store: &Store, id: WalletId, within: Duration) -> bool {
    let until = tokio::time::Instant::now() + within;
    while tokio::time::Instant::now() < until {
        if store.hold(id).await.unwrap() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}

#[tokio::test]
async fn one_process_writes_a_wallet_and_a_dead_ones_wallet_is_taken_over() {
    let Some(url) = arms::database().await else { return };
    let (one, two) = (Process::start(&url).await, Process::start(&url).await);
    let record = one.store.intern(&wallet(1)).await.unwrap();
    assert_eq!(two.store.intern(&wallet(1)).await.unwrap(), record, "one number everywhere");
    assert!(held(&one.store, record.id, LEASE).await);
    assert!(!two.store.hold(record.id).await.unwrap());
    let first = vec![trade(105, 5, 1)];
    let stale = two.store.write_chunk(chunk(record.id, 0, 9, first.clone())).await.unwrap();
    assert_eq!(stale, Written::Stale, "another process holds it");
    one.store.write_chunk(chunk(record.id, 0, 9, first)).await.unwrap();
    // What one has stored, the other reads at once.
    assert_eq!(stored(&two.store, &wallet(1)).await.trades.len(), 1);

    let (store, id) = (one.store.clone(), record.id);
    one.kill();
    assert!(held(&two.store, id, LEASE).await, "a dead process's wallet is taken over");
    let late = store.write_chunk(chunk(id, 10, 19, vec![trade(112, 12, 2)])).await.unwrap();
    assert_eq!(late, Written::Stale, "the one that woke changes nothing");
    let epoch = stored(&two.store, &wallet(1)).await.epoch;
    assert_eq!(epoch, 1, "a takeover raises it");
    let next = blotter::store::Chunk { epoch, ..chunk(id, 10, 19, vec![trade(112, 12, 2)]) };
    assert!(matches!(two.store.write_chunk(next).await.unwrap(), Written::Stored { count: 2, .. }));

    // A process that stops in order releases its wallets.
    two.store.release(id).await.unwrap();
    let three = Process::start(&url).await;
    assert!(held(&three.store, id, Duration::from_secs(5)).await);
    assert_eq!(stored(&three.store, &wallet(1)).await.epoch, 1);
}

/// A process whose load of a wallet waits for its turn does not hold the wallet.
#[tokio::test]
async fn a_wallet_that_waits_for_its_turn_is_free_for_other_processes() {
    let Some(url) = arms::database().await else { return };
    let (one, two) = (Process::start(&url).await, Process::start(&url).await);
    let limits = HistoryLimits { background_loads_max: 0, ..HistoryLimits::default() };
    let store = Some(one.store.clone());
    let world = Build { limits, store, ..Build::default() }.world();
    let (large, mut walk) = reads_a_large_wallet(&world).await;
    let id = two.store.intern(&large).await.unwrap().id;
    assert!(!two.store.hold(id).await.unwrap(), "its reader is being served");
    // The rest after its window is left to the background.
    walk.stop(HistoryError::Internal);
    finish(&mut walk).await;
    drop(walk);
    assert!(held(&two.store, id, LEASE).await);
    world.history.stop();
    assert!(world.history.tasks().shutdown(Duration::from_secs(5)).await);
}

/// Fails each task that reads it, once it is broken.
#[derive(Debug)]
struct Breakable(Arc<dyn Clock>, AtomicBool);

impl Clock for Breakable {
    fn now(&self) -> UnixMillis {
        assert!(!self.1.load(Ordering::Relaxed), "planted");
        self.0.now()
    }
}

/// A wallet that is still being loaded, and a walk that has its first rows.
async fn reads_a_large_wallet(world: &World) -> (Wallet, Walk) {
    world.set_faults(Faults::latency(Duration::from_millis(50)));
    let large = world.add("large", WalletPlan::trades(50_000));
    let mut walk = world.walk(large, Extent::All, None);
    assert!(matches!(walk.next().await, Step::Rows(_)));
    (large, walk)
}

/// Its process keeps running, and retries only after a while.
#[tokio::test]
async fn a_wallet_whose_worker_panicked_is_free_for_other_processes() {
    let Some(url) = arms::database().await else { return };
    let (one, two) = (Process::start(&url).await, Process::start(&url).await);
    let clock = Arc::new(Breakable(TestClock::start(), AtomicBool::new(false)));
    let (store, of_history): (_, Arc<dyn Clock>) = (Some(one.store.clone()), clock.clone());
    let world = Build { store, clock: Some(of_history), ..Build::default() }.world();
    let (large, _walk) = reads_a_large_wallet(&world).await;
    let id = two.store.intern(&large).await.unwrap().id;
    assert!(!two.store.hold(id).await.unwrap(), "its reader is being served");
    clock.1.store(true, Ordering::Relaxed);
    assert!(held(&two.store, id, LEASE).await);
}

/// Its open walks end with the attempt, and other processes can take the wallet.
#[tokio::test]
async fn a_wallet_that_could_not_be_forgotten_is_free_for_other_processes() {
    let Some(url) = arms::database().await else { return };
    let (one, two) = (Process::start(&url).await, Process::start(&url).await);
    let world = Build { store: Some(one.store.clone()), ..Build::default() }.world();
    let (large, mut walk) = reads_a_large_wallet(&world).await;
    let id = two.store.intern(&large).await.unwrap().id;
    assert!(!two.store.hold(id).await.unwrap(), "its reader is being served");
    let refusal = "CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS $$
                   BEGIN RAISE EXCEPTION 'refused'; END $$;
                   CREATE TRIGGER refused BEFORE DELETE ON blotter.wallet
                   FOR EACH ROW EXECUTE FUNCTION refused()";
    shared_faults::run(&url, &[refusal]).await;
    assert!(world.history.forget(large, [1; 4]).await.is_err());
    assert!(held(&two.store, id, LEASE).await);
    let (_, end) = finish(&mut walk).await;
    assert!(!end.complete, "{end:?}");
    drop(walk);
    world.history.stop();
    assert!(world.history.tasks().shutdown(Duration::from_secs(5)).await);
}

#[tokio::test]
async fn usage_over_processes_is_exact_and_stops_at_the_quota() {
    let Some(url) = arms::database().await else { return };
    let stores = [arms::connect(&url).await, arms::connect(&url).await, arms::connect(&url).await];
    let id = stores[0].intern(&wallet(1)).await.unwrap().id;
    let (key, quota) = (KeyId(7), 150_u64);
    let count = |store: Store, from: u32| async move {
        let mut counted = 0;
        for at in from..from + 100 {
            let row = trade(1_000 - at, u64::from(1_000 - at), 1).key;
            let change = |now: Counted| {
                if now.total >= quota {
                    return (None, 0);
                }
                let mut ranges = now.ranges;
                ranges.push(DeliveredRange { from: row, to: row });
                let update = UsageUpdate {
                    key,
                    wallet: id,
                    ranges,
                    total: now.total + 1,
                    credit: now.credit,
                };
                (Some(update), 1)
            };
            counted += store.recount(key, id, &change).await.unwrap();
        }
        counted
    };
    let [one, two, three] = stores.clone();
    let (a, b, c) = tokio::join!(count(one, 0), count(two, 100), count(three, 200));
    assert_eq!(a + b + c, quota);
    let view = stores[1].view().unwrap();
    assert_eq!(view.usage_total(key).await.unwrap(), quota);
    assert_eq!(view.usage(key, id).await.unwrap().len(), usize::try_from(quota).unwrap());
}

#[tokio::test]
async fn rows_removed_between_two_reads_of_a_view_are_an_error_and_never_a_gap() {
    let Some(url) = arms::database().await else { return };
    let (one, two) = (arms::connect(&url).await, arms::connect(&url).await);
    let id = one.intern(&wallet(1)).await.unwrap().id;
    let trades = (1..=9_u8).map(|at| trade(100 + u32::from(at), u64::from(at), at)).collect();
    one.write_chunk(chunk(id, 0, 9, trades)).await.unwrap();

    let apart = two.view().unwrap();
    let together = two.view_at(Position::Start, 5).unwrap();
    for view in [&apart, &together] {
        assert!(view.wallet(&wallet(1)).await.unwrap().is_some());
    }
    one.cut_back(id, 4).await.unwrap();
    let overtaken = apart.rows(id, Position::Start, 0, 5).await;
    assert!(matches!(overtaken, Err(StoreError::Overtaken)), "{overtaken:?}");
    let rows = together.rows(id, Position::Start, 0, 5).await.unwrap();
    assert_eq!(rows.len(), 5, "read with the record");
}

#[tokio::test]
async fn texts_are_replaced_by_one_process_at_a_time() {
    let Some(url) = arms::database().await else { return };
    let (one, two) = (arms::connect(&url).await, arms::connect(&url).await);
    assert_eq!(one.document("keys").await.unwrap(), "");
    assert!(one.put_document("keys", "", "a").await.unwrap());
    assert!(!two.put_document("keys", "", "b").await.unwrap());
    assert!(two.put_document("keys", "a", "b").await.unwrap());
    assert_eq!(one.document("keys").await.unwrap(), "b");
}

/// A forgotten wallet gets a new number, and rows that a key has counted are not counted again.
#[tokio::test]
async fn a_wallet_is_forgotten_while_others_serve() {
    let Some(url) = arms::database().await else { return };
    let (one, two) = (arms::connect(&url).await, arms::connect(&url).await);
    let id = one.intern(&wallet(1)).await.unwrap().id;
    let trades: Vec<_> =
        (1..=9_u8).map(|at| trade(100 + u32::from(at), u64::from(at), at)).collect();
    one.write_chunk(chunk(id, 0, 9, trades.clone())).await.unwrap();
    assert_eq!(stored(&two, &wallet(1)).await.trades.len(), 9);
    let ranges = vec![DeliveredRange { from: trades[8].key, to: trades[5].key }];
    let update = UsageUpdate { key: KeyId(3), wallet: id, ranges, total: 4, credit: None };
    one.write_usage(vec![update]).await.unwrap();
    assert_eq!(two.forget(wallet(1), [5; 4]).await.unwrap(), Some(9));
    assert_eq!(two.forget(wallet(1), [6; 4]).await.unwrap(), None);
    assert!(one.view().unwrap().wallet(&wallet(1)).await.unwrap().is_none());
    let again = one.intern(&wallet(1)).await.unwrap().id;
    assert_ne!(again, id);
    let view = two.view().unwrap();
    assert_eq!(view.credit(KeyId(3), again).await.unwrap().map(|credit| credit.left), Some(4));
    assert_eq!(view.usage_total(KeyId(3)).await.unwrap(), 4);
}

/// Counts a row for a key.
async fn count(
    store: &Store,
    (key, id): (KeyId, WalletId),
    row: TradeKey,
) -> Result<(), StoreError> {
    let change = |now: Counted| {
        let mut ranges = now.ranges;
        ranges.push(DeliveredRange { from: row, to: row });
        let (total, credit) = (now.total + 1, now.credit);
        (Some(UsageUpdate { key, wallet: id, ranges, total, credit }), ())
    };
    store.recount(key, id, &change).await
}

/// Rows that became a key's credit are not counted again. Counts that were in flight at the time
/// would be, with the next load.
#[tokio::test]
async fn nothing_is_counted_of_a_wallet_that_another_process_has_forgotten() {
    let Some(url) = arms::database().await else { return };
    let (one, two) = (arms::connect(&url).await, arms::connect(&url).await);
    let id = one.intern(&wallet(1)).await.unwrap().id;
    let trades = [trade(101, 1, 1), trade(102, 2, 2)];
    one.write_chunk(chunk(id, 0, 9, trades.to_vec())).await.unwrap();
    let (key, of) = (KeyId(4), (KeyId(4), id));
    count(&one, of, trades[1].key).await.unwrap();
    assert_eq!(two.forget(wallet(1), [5; 4]).await.unwrap(), Some(2));
    let counted = count(&one, of, trades[0].key).await;
    assert!(matches!(counted, Err(StoreError::UnknownWallet(_))), "{counted:?}");
    let again = one.intern(&wallet(1)).await.unwrap().id;
    let view = two.view().unwrap();
    assert_eq!(view.usage_total(key).await.unwrap(), 1);
    assert_eq!(view.credit(key, again).await.unwrap().map(|credit| credit.left), Some(1));
}

/// Readers in other processes end as in the one that forgets the wallet, and do not recreate it.
#[tokio::test]
async fn a_wallet_that_another_process_forgets_ends_its_readers_and_stays_forgotten() {
    let Some(url) = arms::database().await else { return };
    let (one, two) = (Process::start(&url).await, arms::connect(&url).await);
    let world = Build { store: Some(one.store.clone()), ..Build::default() }.world();
    let (large, mut walk) = reads_a_large_wallet(&world).await;
    assert!(two.forget(large, [1; 4]).await.unwrap().is_some());
    let (_, end) = finish(&mut walk).await;
    assert_eq!(end.error, Some(HistoryError::Changed));
    drop(walk);
    // No task in flight brings it back.
    world.history.stop();
    assert!(world.history.tasks().shutdown(Duration::from_secs(5)).await);
    assert!(two.view().unwrap().wallet(&large).await.unwrap().is_none());
}

/// An audit by a process that does not hold the wallet stores nothing, and says so.
#[tokio::test]
async fn a_repair_of_a_wallet_that_another_process_holds_is_refused() {
    let Some(url) = arms::database().await else { return };
    let (one, two) = (Process::start(&url).await, Process::start(&url).await);
    let shortly = Duration::from_millis(1);
    let limits = HistoryLimits { retry_pause_min: shortly, ..HistoryLimits::default() };
    let world = Build { store: Some(one.store.clone()), limits, ..Build::default() }.world();
    let small = world.add("small", WalletPlan::trades(50));
    let (rows, end) = finish(&mut world.walk(small, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    let record = two.store.intern(&small).await.unwrap();
    assert!(held(&two.store, record.id, LEASE).await);
    // Simulates an accepted read that missed a height.
    let record = two.store.intern(&small).await.unwrap();
    let height = rows[15].trade.key.height;
    let fits = |span: &&blotter::domain::Span| (span.low..=span.high).contains(&height);
    let span = record.coverage.spans().iter().find(fits).unwrap();
    let emptied = blotter::store::Chunk {
        epoch: record.epoch,
        decoder: span.decoder,
        proof: span.proof,
        ..chunk(record.id, height, height, Vec::new())
    };
    let written = two.store.write_chunk(emptied).await.unwrap();
    let Written::Stored { count: left, .. } = written else { panic!("{written:?}") };
    assert!(left < record.count);

    let refused = world.history.repair(small).await;
    assert!(matches!(refused, Err(HistoryError::Store { .. })), "{refused:?}");
    assert_eq!(world.history.metrics().audit_missing.get(), 0, "nothing came of it");
    assert_eq!(two.store.intern(&small).await.unwrap().count, left);
    two.store.release(record.id).await.unwrap();
    assert_eq!(world.history.repair(small).await.unwrap().missing, 1);
    assert_eq!(two.store.intern(&small).await.unwrap().count, record.count);
    world.history.stop();
    assert!(world.history.tasks().shutdown(Duration::from_secs(5)).await);
}

/// Waits until a process sees this many processes.
async fn sees(store: &Store, processes: u32) {
    let mut share = store.share().unwrap();
    let counted = share.wait_for(|share| share.processes() == processes);
    tokio::time::timeout(LEASE * 2, counted).await.unwrap().unwrap();
}

#[tokio::test]
async fn processes_divide_what_they_share() {
    let Some(url) = arms::database().await else { return };
    let (one, two) = (Process::start(&url).await, Process::start(&url).await);
    let three = Process::start(&url).await;
    let all = [&one, &two, &three].map(|process| process.store.clone());
    for store in &all {
        sees(store, 3).await;
    }
    let places = all.clone().map(|store| store.share().unwrap().borrow().of_places(5));
    assert_eq!(places.iter().sum::<u32>(), 5, "{places:?}");
    // The wallets of a dead process go to the others.
    three.kill();
    for store in &all[..2] {
        sees(store, 2).await;
    }
    let places = [&one, &two].map(|process| process.store.share().unwrap().borrow().of_places(5));
    assert_eq!(places.iter().sum::<u32>(), 5, "{places:?}");
}
