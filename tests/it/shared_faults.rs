//! The shared store while its database is down, silent, slow, full or read-only, or while answers
//! are lost.

use std::time::Duration;

use blotter::api::ApiLimits;
use blotter::decode::solana::DECODER_VERSION;
use blotter::domain::{Filter, Height, KeyId, Position, Side, Trade, TradeKey, TxId, Wallet};
use blotter::history::{End, Extent, HistoryError, HistoryLimits, Step, Tasks, Walk, WalkRequest};
use blotter::store::{
    Chunk, DeliveredRange, Store, StoreError, StoreFailure, UsageUpdate, WalletPatch, Written,
};
use tokio::time::Instant;

use crate::support::arms;
use crate::support::served::{self, World};
use crate::support::source::Node;
use crate::support::trades::{chunk, stored, trade, wallet};
use crate::support::wire::Wire;
use crate::support::world::finish as read;

/// Longer than all repeats of a call.
const PATIENCE: Duration = Duration::from_secs(40);

fn failures(store: &Store, of: StoreFailure) -> u64 {
    let all = store.failed_calls();
    all.iter().find(|(kind, _)| *kind == of).map_or(0, |(_, count)| *count)
}

/// Waits for what other tasks do.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Counts a row for a key, once however often it is tried.
async fn count_once(store: &Store, key: KeyId, wallet: &Wallet) {
    let id = store.intern(wallet).await.unwrap().id;
    let row = trade(105, 5, 1).key;
    let change = |now: blotter::store::Counted| {
        if now.ranges.iter().any(|range| range.from == row) {
            return (None, ());
        }
        let ranges = vec![DeliveredRange { from: row, to: row }];
        let (total, credit) = (now.total + 1, now.credit);
        (Some(UsageUpdate { key, wallet: id, ranges, total, credit }), ())
    };
    store.recount(key, id, &change).await.unwrap();
}

/// One of each kind of write.
async fn writes(store: &Store, wallet: &Wallet) {
    let id = store.intern(wallet).await.unwrap().id;
    let part = |low: Height, high: Height, tx: u8| {
        let time = 100 + u32::try_from(high).unwrap();
        chunk(id, low, high, vec![trade(time, high, tx), trade(time - 1, high - 1, tx + 1)])
    };
    for written in [part(20, 29, 1), part(10, 19, 4), part(10, 19, 7), part(0, 9, 10)] {
        let written = store.write_chunk(written).await.unwrap();
        assert!(matches!(written, Written::Stored { .. }), "{written:?}");
    }
    let patch = WalletPatch { reopen: vec![(0, 4)], ..WalletPatch::default() };
    store.update_wallet(id, 0, patch).await.unwrap();
    count_once(store, KeyId(7), wallet).await;
}

#[tokio::test]
async fn an_answer_that_is_lost_at_any_place_loses_and_doubles_nothing() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let (store, plain) = (arms::connect(&wire.url).await, arms::connect(&url).await);
    let sure = arms::embedded();
    // The embedded arm has no recount: the rest of the writes is the same.
    let id = sure.intern(&wallet(0)).await.unwrap().id;
    for (low, high, tx) in [(20, 29, 1), (10, 19, 7), (0, 9, 10)] {
        let time = 100 + u32::try_from(high).unwrap();
        let rows = vec![trade(time, high, tx), trade(time - 1, high - 1, tx + 1)];
        sure.write_chunk(chunk(id, low, high, rows)).await.unwrap();
    }
    let patch = WalletPatch { reopen: vec![(0, 4)], ..WalletPatch::default() };
    sure.update_wallet(id, 0, patch).await.unwrap();
    let wanted = stored(&sure, &wallet(0)).await;
    let mut lost = 0;
    for after in 0_u8.. {
        wire.lose_answer(i64::from(after));
        writes(&store, &wallet(after)).await;
        let was_lost = wire.has_lost();
        assert_eq!(stored(&plain, &wallet(after)).await, wanted, "after {after} answers");
        let total = plain.view().unwrap().usage_total(KeyId(7)).await.unwrap();
        assert_eq!(total, u64::from(after) + 1, "after {after} answers");
        if !was_lost {
            break;
        }
        lost += 1;
    }
    assert!(lost > 15, "only {lost} answers were lost");
    assert!(failures(&store, StoreFailure::Connection) >= lost);
}

#[tokio::test]
async fn a_lost_answer_to_a_shared_text_is_no_conflict() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let store = arms::connect(&wire.url).await;
    for after in 0.. {
        let name = format!("text {after}");
        wire.lose_answer(after);
        assert!(store.put_document(&name, "", "a").await.unwrap(), "after {after} answers");
        assert_eq!(store.document(&name).await.unwrap(), "a");
        if !wire.has_lost() {
            return assert!(after > 2);
        }
    }
}

/// Whether a call failed because the database cannot be reached.
fn is_unreachable<T>(outcome: Result<T, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Unreachable(_)))
}

#[tokio::test]
async fn each_call_to_a_silent_database_ends_by_its_deadline() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let store = arms::connect(&wire.url).await;
    writes(&store, &wallet(1)).await;
    let record = store.view().unwrap().wallet(&wallet(1)).await.unwrap().unwrap();
    let (id, epoch) = (record.id, record.epoch);
    wire.silence();
    // Nothing arrives: the time passes at once.
    tokio::time::pause();
    let started = Instant::now();
    let view = store.view().unwrap();
    let outcomes = [
        is_unreachable(view.wallet(&wallet(1)).await),
        is_unreachable(view.rows(id, Position::Start, 0, 5).await),
        is_unreachable(view.newer_rows(id, Position::Start, 5).await),
        is_unreachable(view.count_above(id, 0, 5).await),
        is_unreachable(view.anchors(id).await),
        is_unreachable(view.accounts(id).await),
        is_unreachable(view.pending().await),
        is_unreachable(view.usage_total(KeyId(7)).await),
        is_unreachable(view.usage(KeyId(7), id).await),
        is_unreachable(view.wallets(None, 5).await),
        is_unreachable(store.write_chunk(chunk(id, 40, 49, vec![])).await),
        is_unreachable(store.update_wallet(id, epoch, WalletPatch::default()).await),
        is_unreachable(store.cut_back(id, 5).await),
        is_unreachable(store.write_usage(vec![]).await),
        is_unreachable(store.intern(&wallet(2)).await),
        is_unreachable(store.forget(wallet(1), [1; 4]).await),
        is_unreachable(store.release(id).await),
        is_unreachable(store.document("keys").await),
        is_unreachable(store.put_document("keys", "", "a").await),
        is_unreachable(store.stats().await),
    ];
    assert_eq!(outcomes, [true; 20]);
    let each = started.elapsed() / 20;
    assert!(each < PATIENCE, "{each:?} for a call");
    assert!(failures(&store, StoreFailure::Timeout) > 20);
    tokio::time::resume();
    wire.open();
    // The old connections are not used any more.
    let written = store.write_chunk(chunk(id, 40, 49, vec![])).await.unwrap();
    assert!(matches!(written, Written::Stored { .. }));
}

/// A request makes several calls one after the other: each would take as long as a failover.
#[tokio::test]
async fn in_a_long_outage_each_call_waits_for_a_short_time() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let store = arms::connect(&wire.url).await;
    let world = world(store.clone());
    until("no lease", || store.takes_writes()).await;
    wire.silence();
    tokio::time::pause();
    let read = || async {
        let started = Instant::now();
        assert!(is_unreachable(store.document("keys").await));
        started.elapsed()
    };
    let first = read().await;
    assert!(first > Duration::from_secs(15), "a failover is waited for: {first:?}");
    let next = read().await;
    assert!(next < Duration::from_secs(12), "{next:?}");
    tokio::time::resume();
    wire.open();
    store.document("keys").await.unwrap();
    world.close().await;
}

#[tokio::test]
async fn connections_that_lead_nowhere_are_given_up_together() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let store = arms::connect(&wire.url).await;
    let read = || store.document("keys");
    // Each of them opens a connection, which is idle afterwards.
    let made = tokio::join!(read(), read(), read(), read());
    assert!([made.0, made.1, made.2, made.3].iter().all(Result::is_ok));
    wire.strand();
    let started = Instant::now();
    store.document("keys").await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(9), "{:?}", started.elapsed());
}

#[tokio::test]
async fn reading_goes_on_with_a_slow_database_and_after_a_cut_connection() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let store = arms::connect(&wire.url).await;
    wire.slow(Duration::from_millis(20));
    writes(&store, &wallet(1)).await;
    wire.cut();
    let (writing, of) = (store.clone(), Tasks::new());
    let written = of.spawn(async move { writes(&writing, &wallet(2)).await });
    until("no call failed", || failures(&store, StoreFailure::Connection) > 2).await;
    wire.open();
    written.await.unwrap();
    assert_eq!(stored(&store, &wallet(2)).await, stored(&store, &wallet(1)).await);
}

/// One host accepts connections and is silent, one is down: the third is used.
#[tokio::test]
async fn of_several_hosts_the_one_that_answers_is_taken() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    wire.silence();
    let (user, rest) = url.rsplit_once('@').unwrap();
    let silent = wire.url.rsplit_once('@').unwrap().1.split_once('/').unwrap().0;
    let several = format!("{user}@{silent},127.0.0.1:1,{rest}");
    let started = Instant::now();
    let store = arms::connect(&several).await;
    writes(&store, &wallet(1)).await;
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

/// Statements by a connection of their own.
pub(crate) async fn run(url: &str, statements: &[&str]) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let driver = Tasks::new().spawn(async { connection.await.unwrap() });
    for statement in statements {
        client.batch_execute(statement).await.unwrap();
    }
    drop(client);
    driver.await.unwrap();
}

fn world(store: Store) -> World {
    World::on_store(store, Node::Silent, HistoryLimits::default(), ApiLimits::default(), &[])
}

async fn readiness(world: &World) -> u16 {
    world.get("/readyz").await.status().as_u16()
}

#[tokio::test]
async fn a_database_that_takes_no_writes_or_is_full_is_waited_for_and_shown() {
    let Some(url) = arms::database().await else { return };
    let store = arms::connect(&url).await;
    let world = world(store.clone());
    until("no lease", || store.takes_writes()).await;
    assert_eq!(readiness(&world).await, 200);
    let database = url.rsplit_once('/').unwrap().1;
    let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let set =
        |to: &str| format!("ALTER DATABASE {database} SET default_transaction_read_only = {to}");
    run(&url, &[&set("on"), all]).await;
    let (writing, of) = (store.clone(), Tasks::new());
    let written = of.spawn(async move { writes(&writing, &wallet(1)).await });
    until("still ready", || !store.takes_writes()).await;
    assert_eq!(readiness(&world).await, 503);
    assert!(failures(&store, StoreFailure::ReadOnly) > 2);
    run(&url, &["SET default_transaction_read_only = off", &set("off"), all]).await;
    written.await.unwrap();
    until("not ready again", || store.takes_writes()).await;
    assert_eq!(readiness(&world).await, 200);

    let full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
                CREATE TRIGGER full_disk BEFORE INSERT ON blotter.trade
                FOR EACH ROW EXECUTE FUNCTION full_disk()";
    run(&url, &[full]).await;
    let writing = store.clone();
    let written = of.spawn(async move { writes(&writing, &wallet(2)).await });
    until("not full", || failures(&store, StoreFailure::Full) > 2).await;
    run(&url, &["DROP TRIGGER full_disk ON blotter.trade"]).await;
    written.await.unwrap();

    // It answers, and renews no lease.
    let no_lease = "CREATE TRIGGER no_lease BEFORE UPDATE ON blotter.node
                    FOR EACH ROW EXECUTE FUNCTION full_disk()";
    run(&url, &[no_lease]).await;
    until("still alive", || !store.takes_writes()).await;
    assert_eq!(readiness(&world).await, 503);
    run(&url, &["DROP TRIGGER no_lease ON blotter.node"]).await;
    until("no new lease", || store.takes_writes()).await;
    assert_eq!(readiness(&world).await, 200);
    assert_eq!(stored(&store, &wallet(1)).await, stored(&store, &wallet(2)).await);
    let metrics = world.get("/metrics").await;
    let metrics = String::from_utf8_lossy(metrics.body()).into_owned();
    for reason in ["read_only", "full"] {
        let line = format!("blotter_store_failed_calls_total{{reason=\"{reason}\"}} ");
        let count = metrics.split(&line).nth(1).and_then(|rest| rest.lines().next());
        assert!(count.is_some_and(|count| count != "0"), "{reason}: {metrics}");
    }
    world.close().await;
}

async fn finish(walk: &mut Walk) -> (usize, End) {
    let mut count = 0;
    loop {
        match walk.next().await {
            Step::Rows(rows) => count += rows.len(),
            Step::End(end) => return (count, end),
        }
    }
}

fn request(wallet: Wallet) -> WalkRequest {
    WalkRequest {
        wallet,
        key: KeyId(1),
        quota: None,
        resume: None,
        filter: Filter::default(),
        follow: false,
        want: Extent::All,
        window: Duration::from_secs(3_600),
    }
}

#[tokio::test]
async fn a_stream_over_a_database_that_stays_away_ends_with_an_error_and_a_cursor() {
    stays_away(Filter::default(), 0).await;
}

/// Matching rows are counted run by run: the database goes down between two runs.
#[tokio::test]
async fn a_filtered_stream_over_a_database_that_stays_away_skips_no_row() {
    for answers in [40, 200, 301] {
        stays_away(Filter { side: Some(Side::Buy), ..Filter::default() }, answers).await;
    }
}

/// The database is silent after so many answers of a stream's second step.
async fn stays_away(filter: Filter, answers: i64) {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let world = world(arms::connect(&wire.url).await);
    let wallet = served::wallet(1);
    let all = || (0..3_000).rev().map(served::trade);
    world.fill(&wallet, 0, all().collect(), vec![]).await;
    let is_wanted = |trade: &Trade| filter.side.is_none_or(|side| side == trade.side);
    let wanted: Vec<TxId> = all().filter(is_wanted).map(|trade| trade.key.tx).collect();
    let request = WalkRequest { filter, ..request(wallet) };
    let mut walk = world.history.walk(request.clone()).unwrap();
    let Step::Rows(first) = walk.next().await else { panic!("no rows") };
    wire.silence_after(answers);
    // What passes before takes its time: only then it passes at once.
    let silent = async {
        wire.is_silent().await;
        tokio::time::pause();
    };
    let ((more, end), ()) = tokio::join!(read(&mut walk), silent);
    assert!(!end.complete && matches!(end.error, Some(HistoryError::Store { .. })), "{end:?}");
    let cursor = Box::new(walk.cursor());
    drop(walk);
    tokio::time::resume();
    wire.open();
    let mut walk = world.history.walk(WalkRequest { resume: Some(cursor), ..request }).unwrap();
    let (rest, end) = read(&mut walk).await;
    assert!(end.complete && end.error.is_none(), "{end:?}");
    let rows = first.to_vec().into_iter().chain(more).chain(rest);
    let got: Vec<TxId> = rows.map(|row| row.trade.key.tx).collect();
    assert_eq!(got, wanted);
    let count = u64::try_from(wanted.len()).unwrap();
    assert_eq!(end.trade_count, count);
    assert_eq!(world.history.usage(KeyId(1)).await.unwrap(), count, "counted = delivered");
    drop(walk);
    world.close().await;
}

/// The step that waits for the database continues between blank lines, to its own end.
#[tokio::test]
async fn over_http_a_stream_ends_with_an_error_once_the_database_stays_away() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let world = world(arms::connect(&wire.url).await);
    let wallet = served::wallet(1);
    world.fill(&wallet, 0, (0..3_000).rev().map(served::trade).collect(), vec![]).await;
    wire.silence_after(12);
    let silent = async {
        wire.is_silent().await;
        tokio::time::pause();
    };
    let path = format!("/v1/wallets/{}/history", wallet.address);
    let answer = async { tokio::time::timeout(PATIENCE * 10, world.get(&path)).await };
    let (answer, ()) = tokio::join!(answer, silent);
    let body = String::from_utf8_lossy(answer.expect("it ends").body()).into_owned();
    let last: serde_json::Value =
        serde_json::from_str(body.trim_end().lines().last().unwrap()).unwrap();
    let error = &last["error"];
    assert!(last["complete"] == false && error["retryable"] == true, "{last}");
    assert_eq!(error["type"], "/errors/storage_unavailable", "{last}");
    // Silence before the first rows has a blank line in front of everything.
    assert!(body.lines().any(str::is_empty), "blank lines meanwhile: {body}");
    tokio::time::resume();
    wire.open();
    world.close().await;
}

/// A chunk that only another epoch would take.
fn late(id: blotter::store::WalletId) -> Chunk {
    Chunk { epoch: 9, ..chunk(id, 30, 39, vec![]) }
}

#[tokio::test]
async fn a_lost_answer_makes_no_stale_write_good() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let store = arms::connect(&wire.url).await;
    let id = store.intern(&wallet(1)).await.unwrap().id;
    for after in 0..6 {
        wire.lose_answer(after);
        assert_eq!(store.write_chunk(late(id)).await.unwrap(), Written::Stale);
        wire.has_lost();
    }
}

/// Until a read that is under way has ended.
const SHORTLY: Duration = Duration::from_millis(200);

#[tokio::test]
async fn the_next_rows_are_read_while_the_last_ones_are_delivered() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let world = world(arms::connect(&wire.url).await);
    let wallet = served::wallet(1);
    world.fill(&wallet, 0, (0..3_000).rev().map(served::trade).collect(), vec![]).await;
    // All rows are counted by then: their delivery asks the database for nothing.
    let (rows, end) = finish(&mut world.history.walk(request(wallet)).unwrap()).await;
    assert!(rows == 3_000 && end.complete, "{rows} {end:?}");
    let mut walk = world.history.walk(request(wallet)).unwrap();
    assert!(matches!(walk.next().await, Step::Rows(_)));
    tokio::time::sleep(SHORTLY).await;
    wire.silence();
    let ahead = tokio::time::timeout(SHORTLY, walk.next()).await;
    assert!(matches!(ahead, Ok(Step::Rows(_))), "{ahead:?}");
    wire.open();
    let (rest, end) = finish(&mut walk).await;
    assert!(rest == 1_000 && end.complete, "{rest} {end:?}");
    drop(walk);
    world.close().await;
}

/// At any point between two answers of a read, another process stores rows above the walk's head.
#[tokio::test]
async fn a_walk_by_times_takes_no_row_that_is_stored_above_its_head_meanwhile() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let (world, other) = (world(arms::connect(&wire.url).await), arms::connect(&url).await);
    let wallet = served::wallet(1);
    world.fill(&wallet, 0, (0..50).rev().map(served::trade).collect(), vec![]).await;
    let id = other.intern(&wallet).await.unwrap().id;
    let to = Some(served::trade(1_000).key.time);
    let filter = Filter { to, ..Filter::default() };
    for (answers, number) in (0..12).zip(50_u32..) {
        let height = served::HEAD + u64::from(number);
        let above = served::trade(number);
        let above = Trade { key: TradeKey { height, ..above.key }, ..above };
        let low = if answers == 0 { served::HEAD + 1 } else { height };
        let above = chunk(id, low, height, vec![above]);
        let above = Chunk { decoder: DECODER_VERSION, ..above };
        let request = WalkRequest { filter: filter.clone(), ..request(wallet) };
        let mut walk = world.history.walk(request).unwrap();
        wire.silence_after(answers);
        let reading = async {
            let done = finish(&mut walk).await;
            // A walk that takes fewer answers has ended.
            wire.silence();
            done
        };
        let storing = async {
            wire.is_silent().await;
            let written = other.write_chunk(above).await.unwrap();
            assert!(matches!(written, Written::Stored { .. }), "{written:?}");
            wire.open();
        };
        let ((rows, end), ()) = tokio::join!(reading, storing);
        assert!(end.complete && end.error.is_none(), "{answers} answers: {end:?}");
        assert_eq!(u64::try_from(rows).unwrap(), end.trade_count, "{answers} answers");
        drop(walk);
        // One that was silent before its walk ended is silent now.
        wire.open();
    }
    world.close().await;
}

/// Its first rows come with the wallet's record; rows above them are not read from the database.
#[tokio::test]
async fn a_walk_by_times_reads_no_row_that_is_above_them() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let world = world(arms::connect(&wire.url).await);
    let wallet = served::wallet(1);
    world.fill(&wallet, 0, served::trades(1_000), vec![]).await;
    let filter = Filter { to: Some(served::trade(10).key.time), ..Filter::default() };
    let before = wire.received();
    let mut walk = world.history.walk(WalkRequest { filter, ..request(wallet) }).unwrap();
    let (rows, end) = finish(&mut walk).await;
    assert!(end.complete && end.error.is_none(), "{end:?}");
    assert_eq!((rows, end.trade_count), (10, 10));
    // A row is sent as more than 64 bytes, which are its signature.
    let received = wire.received() - before;
    assert!(received < 990 * 64, "{received} bytes for ten rows");
    drop(walk);
    world.close().await;
}

#[tokio::test]
async fn rows_that_were_read_ahead_long_ago_are_read_again() {
    let Some(url) = arms::database().await else { return };
    let world = world(arms::connect(&url).await);
    let wallet = served::wallet(1);
    world.fill(&wallet, 0, (0..3_000).rev().map(served::trade).collect(), vec![]).await;
    let mut walk = world.history.walk(request(wallet)).unwrap();
    assert!(matches!(walk.next().await, Step::Rows(_)));
    tokio::time::sleep(SHORTLY).await;
    let other = arms::connect(&url).await;
    let id = other.intern(&wallet).await.unwrap().id;
    let patch = WalletPatch { reopen: vec![(0, 2_000)], ..WalletPatch::default() };
    let left = other.update_wallet(id, 0, patch).await.unwrap();
    assert!(matches!(left, Written::Stored { count: 1_000, .. }), "{left:?}");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(2)).await;
    tokio::time::resume();
    let next = tokio::time::timeout(SHORTLY, walk.next()).await;
    assert!(!matches!(next, Ok(Step::Rows(_))), "rows that are stored no longer");
    drop(walk);
    world.close().await;
}
