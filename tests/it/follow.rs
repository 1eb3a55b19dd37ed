//! Streams that follow the chain: history and what is new, each trade once, through cuts, resumes
//! and restarts, against the demo chain's truth.

use std::time::Duration;

use blotter::api::{Api, ApiLimits, ApiParts, Keys};
use blotter::demo::solana::WalletPlan;
use blotter::domain::{Cursor, Filter, KeyId, Row, Side, Wallet};
use blotter::history::{Extent, HistoryLimits, Step, WalkRequest};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::support::served::{KEY, key, path, ring, trades_of};
use crate::support::truth;
use crate::support::world::{Build, World, finish};

const WINDOW: Duration = Duration::from_secs(55);

/// The rows that a client has collected: the history newest first, then new rows oldest first.
#[derive(Debug, Default)]
struct Received {
    history: Vec<Row>,
    live: Vec<Row>,
    cursor: Option<Cursor>,
}

impl Received {
    /// Reads until the walk ends or the client hangs up, after so many steps or a silence.
    async fn read(&mut self, world: &World, wallet: Wallet, filter: &Filter, steps: usize) {
        let mut walk = world
            .history
            .walk(WalkRequest {
                resume: self.cursor.map(Box::new),
                filter: filter.clone(),
                follow: true,
                window: WINDOW,
                ..World::request(wallet, Extent::All)
            })
            .unwrap();
        for _ in 0..steps {
            match timeout(Duration::from_secs(17), walk.next()).await {
                Ok(Step::Rows(rows)) if walk.is_live() => self.live.extend(rows),
                Ok(Step::Rows(rows)) => self.history.extend(rows),
                Ok(Step::End(end)) => {
                    assert!(!end.complete && end.more && end.error.is_none(), "{end:?}");
                    self.cursor = Some(walk.cursor());
                    return;
                }
                Err(_) => return,
            }
            self.cursor = Some(walk.cursor());
        }
    }

    /// All of it, newest first.
    fn rows(&self) -> Vec<Row> {
        self.live.iter().rev().chain(&self.history).cloned().collect()
    }
}

/// New trades from time to time, up to four at once; the intervals are fixed and uneven.
async fn arrive(world: &World, wallet: Wallet, batches: u64) {
    for batch in 0..batches {
        sleep(Duration::from_millis(700 + batch * 7919 % 14_000)).await;
        world.model.arrive(wallet.address, 1 + batch * 31 % 4);
    }
}

fn small_steps() -> Build {
    Build {
        limits: HistoryLimits { rows_per_step_max: 3, ..HistoryLimits::default() },
        ..Build::default()
    }
}

#[track_caller]
fn same(world: &World, wallet: Wallet, received: &Received) {
    truth::same(&received.rows(), &world.truth(wallet));
}

#[tokio::test(start_paused = true)]
async fn each_trade_comes_once_through_cuts_and_resumes() {
    let world = small_steps().world();
    let wallet = world.add("followed", WalletPlan::trades(40));
    let mut received = Received::default();
    let client = async {
        for round in 0..120 {
            received.read(&world, wallet, &Filter::default(), [1, 2, 3, 5, 100][round % 5]).await;
        }
    };
    tokio::join!(client, arrive(&world, wallet, 40));
    same(&world, wallet, &received);
    assert!(received.live.len() > 60, "{} live rows", received.live.len());
    let total = u64::try_from(received.rows().len()).unwrap();
    assert_eq!(world.history.usage(KeyId(1)).await.unwrap(), total);
}

#[tokio::test(start_paused = true)]
async fn a_restart_and_a_long_absence_lose_and_repeat_nothing() {
    let mut world = small_steps().world();
    let wallet = world.add("absent", WalletPlan::trades(30));
    let mut received = Received::default();
    for round in 0..6 {
        received.read(&world, wallet, &Filter::default(), 40).await;
        world.model.arrive(wallet.address, 10 + round * 50);
        if round % 2 == 1 {
            world = world.restart().await;
        }
        sleep(Duration::from_secs(100)).await;
        received.read(&world, wallet, &Filter::default(), 2).await;
    }
    for _ in 0..40 {
        received.read(&world, wallet, &Filter::default(), 100).await;
    }
    same(&world, wallet, &received);
}

#[tokio::test(start_paused = true)]
async fn a_filter_holds_for_what_is_new_too() {
    let world = small_steps().world();
    let wallet = world.add("filtered", WalletPlan::trades(50));
    let filter = Filter { side: Some(Side::Sell), ..Filter::default() };
    let mut received = Received::default();
    let client = async {
        for round in 0..60 {
            received.read(&world, wallet, &filter, [1, 4, 100][round % 3]).await;
        }
    };
    tokio::join!(client, arrive(&world, wallet, 25));
    let sells = world.truth(wallet).into_iter().filter(|fact| fact.side == Side::Sell);
    let sells: Vec<_> = sells.map(|fact| (fact.tx, fact.mint)).collect();
    let rows: Vec<_> =
        received.rows().iter().map(|row| (row.trade.key.tx, row.trade.mint)).collect();
    assert_eq!(rows, sells);
    assert_eq!(world.history.usage(KeyId(1)).await.unwrap(), u64::try_from(rows.len()).unwrap());
}

/// Trades that are older than `from` become final while a stream waits, and while its client is away.
#[tokio::test(start_paused = true)]
async fn a_from_ahead_of_the_chain_holds_over_windows() {
    const BATCHES: [u64; 8] = [0, 2, 3, 1, 2, 4, 3, 0];
    let (world, ahead) = (small_steps().world(), small_steps().world());
    let plan = || WalletPlan::trades(50);
    let wallet = world.add("awaited", plan());
    let before = world.truth(wallet).len();
    assert_eq!(ahead.add("awaited", plan()), wallet);
    for count in BATCHES.into_iter().flat_map(|count| [count, count]) {
        ahead.model.arrive(wallet.address, count);
    }
    let truth = ahead.truth(wallet);
    let from = truth[(truth.len() - before) / 2].time;
    let filter = Filter { from: Some(from), ..Filter::default() };
    let (mut rows, mut resume) = (Vec::new(), None);
    for count in BATCHES {
        let request = World::request(wallet, Extent::All);
        let filter = filter.clone();
        let request = WalkRequest { resume, filter, follow: true, window: WINDOW, ..request };
        let mut walk = world.history.walk(request).unwrap();
        let ((more, end), ()) = tokio::join!(finish(&mut walk), async {
            sleep(WINDOW / 2).await;
            world.model.arrive(wallet.address, count);
        });
        assert!(end.error.is_none() && walk.is_live(), "{end:?}");
        rows.splice(0..0, more.into_iter().rev());
        resume = Some(Box::new(walk.cursor()));
        world.model.arrive(wallet.address, count);
    }
    assert_eq!(world.truth(wallet), truth);
    let wanted: Vec<_> = truth.into_iter().filter(|fact| fact.time >= from).collect();
    truth::same(&rows, &wanted);
}

/// The row below what is new was given to the key that the cursor came from.
#[tokio::test(start_paused = true)]
async fn a_live_cursor_under_another_key_counts_only_what_is_new() {
    let world = Build::default().world();
    let wallet = world.add("handed over", WalletPlan::trades(30));
    let mut received = Received::default();
    received.read(&world, wallet, &Filter::default(), 100).await;
    assert!(received.cursor.is_some_and(|cursor| cursor.live));
    world.model.arrive(wallet.address, 3);
    sleep(Duration::from_secs(100)).await;
    let resume = received.cursor.map(Box::new);
    let request = World::request(wallet, Extent::All);
    let request = WalkRequest { key: KeyId(2), resume, follow: true, window: WINDOW, ..request };
    let mut walk = world.history.walk(request).unwrap();
    let (rows, end) = finish(&mut walk).await;
    assert!(end.error.is_none() && !rows.is_empty(), "{end:?}");
    let counted = world.history.usage(KeyId(2)).await.unwrap();
    assert_eq!(counted, u64::try_from(rows.len()).unwrap());
}

fn api(world: &World) -> Api {
    let keys = Keys::new(ring(&[(KEY, key(1, |_| {}))]));
    let limits = ApiLimits::default();
    Api::new(ApiParts { history: world.history.clone(), keys, limits, seed: 1 })
}

async fn get(api: &Api, path: &str) -> String {
    let response =
        warp::test::request().path(path).header("x-api-key", KEY).reply(&api.routes()).await;
    String::from_utf8(response.body().to_vec()).unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn over_http_new_trades_stand_in_live_lines() {
    let world = Build::default().world();
    let wallet = world.add("http", WalletPlan::trades(25));
    let before = world.truth(wallet).len();
    let api = api(&world);
    let first = format!("{}?follow=1", path(&wallet));
    let (text, ()) = tokio::join!(get(&api, &first), async {
        sleep(Duration::from_secs(20)).await;
        world.model.arrive(wallet.address, 3);
    });
    // Ten seconds of silence are a blank line: with one batch of new trades at least three.
    assert!(text.lines().filter(|line| line.is_empty()).count() >= 3, "{text}");
    let stream = lines(&text);
    let (live, history): (Vec<Value>, Vec<Value>) =
        stream.iter().cloned().partition(|line| line.get("live").is_some());
    assert_eq!(live[0]["trades"].as_array().unwrap().len(), 0, "the history's end is marked");
    assert!(live.iter().all(|line| line["live"] == true && line["cursor"].is_string()));
    assert_eq!(trades_of(&history).len(), before);
    let new = world.truth(wallet).len() - before;
    assert_eq!(trades_of(&live).len(), new);
    let last = stream.last().unwrap();
    assert_eq!((&last["complete"], last["wallet"].is_string()), (&Value::Bool(false), true));
    assert_eq!(last["tradeCount"], world.truth(wallet).len());
    assert!(last.get("firstTrade").is_none() && last.get("error").is_none());

    // From the final line on, only what is newer.
    world.model.arrive(wallet.address, 2);
    let cursor = last["cursor"].as_str().unwrap();
    let resumed = lines(&get(&api, &format!("{first}&cursor={cursor}")).await);
    let newest = trades_of(&resumed);
    let order: Vec<String> =
        world.truth(wallet).iter().map(|fact| fact.tx.to_string()).take(newest.len()).collect();
    let received: Vec<String> =
        newest.iter().rev().map(|row| row["signature"].as_str().unwrap().to_owned()).collect();
    assert_eq!(received, order);
    assert_eq!(before + new + newest.len(), world.truth(wallet).len());

    // Such a cursor is for streams that follow.
    let plain = get(&api, &format!("{}?cursor={cursor}", path(&wallet))).await;
    assert_eq!(lines(&plain)[0]["type"], "/errors/invalid_cursor");
}
