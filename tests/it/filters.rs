//! Filters of rows: what they pass equals the model's rows, by pages and as a stream; counts, usage
//! and cursors refer to these rows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use blotter::api::ApiLimits;
use blotter::demo::solana::{TrueTrade, WalletPlan};
use blotter::demo::{Faults, Rate};
use blotter::domain::{Address, Filter, KeyId, Position, Side, Trade, UnixSeconds, Wallet};
use blotter::history::{Extent, HistoryError, HistoryLimits, Step, WalkRequest};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::support::served::{
    World, header, json, key, lines, path, text, trade, trades, trades_of, wallet,
};
use crate::support::world::{Build, World as Demo, finish};

fn signatures(rows: &[Value]) -> Vec<String> {
    rows.iter().map(|row| row["signature"].as_str().unwrap().to_owned()).collect()
}

fn expected(count: u32, wanted: impl Fn(u32, &Trade) -> bool) -> Vec<String> {
    let all = (0..count).rev().map(|number| (number, trade(number)));
    all.filter(|(number, trade)| wanted(*number, trade))
        .map(|(_, t)| t.key.tx.to_string())
        .collect()
}

/// Reads pages by their `Link` headers.
async fn page_through(world: &World, first: String) -> Vec<Value> {
    let (mut pages, mut next) = (Vec::new(), Some(first));
    while let Some(path) = next {
        let response = world.get(&path).await;
        assert_eq!(response.status(), 200, "{}", text(&response));
        let link = header(&response, "link").map(str::to_owned);
        pages.push(json(&response));
        next = link.map(|link| {
            let end = link.strip_suffix(">; rel=\"next\"").unwrap();
            end.strip_prefix('<').unwrap().to_owned()
        });
        assert_eq!(next.is_some(), pages.last().unwrap().get("cursor").is_some());
        assert!(pages.len() < 1000, "the walk does not end");
    }
    pages
}

#[tokio::test]
async fn streams_and_pages_hold_the_rows_that_match() {
    const COUNT: u32 = 2500;
    let world = World::new();
    let wallet = wallet(1);
    world.fill(&wallet, 0, trades(COUNT), vec![]).await;
    let mint = trade(3).mint;
    let time = |number: u32| trade(number).key.time.0;
    let cases: Vec<(String, Vec<String>)> = vec![
        (format!("token={mint}"), expected(COUNT, |_, t| t.mint == mint)),
        ("side=sell".into(), expected(COUNT, |_, t| t.side == Side::Sell)),
        ("dex=RAYDIUM".into(), expected(COUNT, |_, _| true)),
        ("dex=orca".into(), vec![]),
        ("side=buy&dex=orca".into(), vec![]),
        ("token=So11111111111111111111111111111111111111112".into(), vec![]),
        (format!("from={}", time(2400)), expected(COUNT, |n, _| n >= 2400)),
        (format!("to={}", time(70)), expected(COUNT, |n, _| n < 70)),
        (
            format!("from={}&to={}", time(1200), trade(1300).key.time),
            expected(COUNT, |n, _| (1200..1300).contains(&n)),
        ),
        (
            format!("side=buy&token={mint}&dex=Raydium&from={}&to={}", time(900), time(2101)),
            expected(COUNT, |n, t| {
                t.side == Side::Buy && t.mint == mint && (900..2101).contains(&n)
            }),
        ),
        (format!("from={}", time(COUNT)), vec![]),
        ("to=0".into(), vec![]),
    ];
    for (query, expected) in cases {
        let stream = lines(&world.get(&format!("{}?{query}", path(&wallet))).await);
        let rows = trades_of(&stream);
        assert_eq!(signatures(&rows), expected, "{query}");
        let last = stream.last().unwrap();
        assert_eq!(last["complete"], true, "{query}");
        assert_eq!(last["tradeCount"], expected.len(), "{query}");
        let oldest = rows.last().map_or(Value::Null, |row| row["blockTime"].clone());
        assert_eq!(last["firstTrade"], oldest, "{query}");

        for limit in [100, 5000] {
            let first = format!("{}?limit={limit}&{query}", path(&wallet));
            let pages = if limit == 100 {
                page_through(&world, first).await
            } else {
                vec![json(&world.get(&first).await)]
            };
            assert_eq!(signatures(&trades_of(&pages)), expected, "{query}");
            for page in &pages {
                assert_eq!(page["tradeCount"], expected.len(), "{query} {limit}");
                assert_eq!(page["totalPages"], expected.len().div_ceil(limit), "{query} {limit}");
                assert_eq!(page["complete"], true);
            }
            assert_eq!(pages.len(), expected.len().div_ceil(limit).max(1), "{query} {limit}");
        }
    }
}

#[tokio::test]
async fn a_stream_goes_on_behind_any_line_with_the_same_filter_only() {
    let world = World::new();
    let wallet = wallet(1);
    world.fill(&wallet, 0, trades(3000), vec![]).await;
    let base = format!("{}?side=sell", path(&wallet));
    let stream = lines(&world.get(&base).await);
    let all = trades_of(&stream);
    let mut seen = 0;
    for line in &stream[..stream.len() - 1] {
        seen += line["trades"].as_array().unwrap().len();
        let cursor = line["cursor"].as_str().unwrap();
        let rest = lines(&world.get(&format!("{base}&cursor={cursor}")).await);
        assert_eq!(trades_of(&rest), all[seen..]);
        assert_eq!(rest.last().unwrap(), stream.last().unwrap());
        for other in ["side=buy", "", "side=sell&dex=orca", "side=sell&from=5"] {
            let response = world.get(&format!("{}?{other}&cursor={cursor}", path(&wallet))).await;
            assert_eq!(response.status(), 400, "{other}");
            assert_eq!(json(&response)["type"], "/errors/invalid_cursor");
        }
    }
    assert_eq!(seen, all.len());
}

#[tokio::test]
async fn a_wrong_filter_is_reported_by_name() {
    let world = World::new();
    for (query, name) in [
        ("token=BONK", "token"),
        ("side=up", "side"),
        ("dex=", "dex"),
        ("from=soon", "from"),
        ("to=2026-02-30", "to"),
        ("from=5&to=4", "to"),
        ("follow=maybe", "follow"),
        ("follow=1&limit=3", "follow"),
        ("side=buy&side=buy", "side"),
    ] {
        let response = world.get(&format!("{}?{query}", path(&wallet(1)))).await;
        assert_eq!(response.status(), 400, "{query}");
        let body = json(&response);
        assert_eq!(body["type"], "/errors/invalid_parameter", "{query}");
        let message = body["detail"].as_str().unwrap();
        assert!(message.starts_with(&format!("parameter {name}: ")), "{message}");
    }
}

#[tokio::test]
async fn rows_count_once_under_any_filter() {
    let keys = [("counted", key(7, |_| {})), ("small", key(8, |key| key.quota = Some(50)))];
    let world = World::with(ApiLimits::default(), &keys);
    let wallet = wallet(1);
    world.fill(&wallet, 0, trades(600), vec![]).await;
    let sells = expected(600, |_, t| t.side == Side::Sell).len();
    let steps = [
        ("?side=sell", sells),
        ("?side=sell&limit=1000", sells),
        ("?dex=none", sells),
        ("?side=buy", 600),
        ("", 600),
    ];
    for (query, total) in steps {
        world.get_as("counted", &format!("{}{query}", path(&wallet))).await;
        let usage = json(&world.get_as("counted", "/v1/usage").await);
        assert_eq!(usage["tradesCounted"], total, "{query}");
    }
    let stream = lines(&world.get_as("small", &format!("{}?side=sell", path(&wallet))).await);
    let all = expected(600, |_, t| t.side == Side::Sell);
    assert_eq!(signatures(&trades_of(&stream)), all[..50]);
    let last = stream.last().unwrap();
    assert_eq!(last["error"]["code"], "QUOTA_EXCEEDED");
    assert_eq!(last["complete"], false);
}

/// A row that comes late is above a filtered walk's cursor, or below it: only the first is missed.
#[tokio::test]
async fn a_filtered_walk_above_whose_cursor_a_row_came_does_not_end_complete() {
    const COUNT: u32 = 600;
    let filters = [
        (Filter { side: Some(Side::Buy), ..Filter::default() }, 400),
        (Filter { token: Some(trade(1).mint), ..Filter::default() }, 120),
        (Filter { from: Some(trade(200).key.time), ..Filter::default() }, 400),
    ];
    for (filter, count) in filters {
        for (late, error) in
            [(None, None), (Some(101), None), (Some(301), Some(HistoryError::Changed))]
        {
            let world = World::new();
            let wallet = wallet(1);
            let late = late.map(|number| trade(number).key);
            let stored = trades(COUNT).into_iter().filter(|trade| Some(trade.key) != late);
            world.fill(&wallet, 0, stored.collect(), vec![]).await;
            let walk = |want, resume| {
                let filter = filter.clone();
                let request = WalkRequest { filter, resume, ..Demo::request(wallet, want) };
                world.history.walk(request).unwrap()
            };
            // A full page ends before rows that its filter rejects.
            let (_, end) = finish(&mut walk(Extent::Rows(count), None)).await;
            assert!(end.complete && !end.more, "{end:?}");
            let mut page = walk(Extent::Rows(count * 3 / 4), None);
            finish(&mut page).await;
            let resume = Some(Box::new(page.cursor()));
            drop(page);
            world.fill(&wallet, 0, trades(COUNT), vec![]).await;
            let (_, end) = finish(&mut walk(Extent::All, resume)).await;
            assert_eq!((end.complete, &end.error), (error.is_none(), &error), "{late:?} {end:?}");
        }
    }
}

/// A lower block may have a slightly later time than a higher one, so a row that is barely too old
/// does not show that all heights below it are out of range.
#[tokio::test(start_paused = true)]
async fn a_row_that_is_barely_too_old_does_not_end_a_walk_above_unread_heights() {
    let (low, from) = (301, trade(400).key.time);
    let filter = Filter { from: Some(from), ..Filter::default() };
    for (seconds, is_reached) in [(1, false), (60, false), (61, true)] {
        for want in [Extent::All, Extent::Rows(500)] {
            let world = World::new();
            let wallet = wallet(1);
            let mut oldest = trade(300);
            oldest.key.time = UnixSeconds(from.0 - seconds);
            let stored = (400..600).rev().map(trade).chain([oldest]).collect();
            world.fill(&wallet, low, stored, vec![]).await;
            let request = Demo::request(wallet, want);
            let window = Duration::from_secs(9);
            let request = WalkRequest { filter: filter.clone(), window, ..request };
            let (rows, end) = finish(&mut world.history.walk(request).unwrap()).await;
            let seen = (rows.len(), end.complete, end.more);
            assert_eq!(seen, (200, is_reached, !is_reached), "{seconds} {want:?} {end:?}");
        }
    }
}

/// A count that was made during the load is kept for later pages: a row that comes late, into
/// heights that had been counted, is included in the number.
#[tokio::test]
async fn a_count_that_was_kept_has_the_row_that_came_late() {
    const COUNT: u32 = 600;
    const LATE: u32 = 401;
    let world = World::new();
    let wallet = wallet(1);
    let upper = |but: Option<u32>| -> Vec<Trade> {
        (300..COUNT).rev().filter(|number| Some(*number) != but).map(trade).collect()
    };
    world.fill(&wallet, 301, upper(Some(LATE)), vec![]).await;
    let walk = |want, resume| {
        let filter = Filter { side: Some(Side::Buy), ..Filter::default() };
        let request = WalkRequest { filter, resume, ..Demo::request(wallet, want) };
        world.history.walk(request).unwrap()
    };
    let mut page = walk(Extent::Rows(20), None);
    let (rows, end) = finish(&mut page).await;
    assert_eq!((rows.len(), end.complete, end.trade_count), (20, false, 199));
    let resume = Some(Box::new(page.cursor()));
    drop(page);
    world.fill(&wallet, 301, upper(None), vec![]).await;
    world.fill(&wallet, 0, trades(COUNT), vec![]).await;
    let (rows, end) = finish(&mut walk(Extent::All, resume)).await;
    assert_eq!((rows.len(), end.complete, end.trade_count), (380, true, 400), "{end:?}");
}

/// Its window may end where the history does, before what is new is asked for.
#[tokio::test]
async fn a_walk_that_follows_never_ends_as_complete() {
    let world = World::new();
    let wallet = wallet(1);
    // As many as one slice holds: the window ends behind them, before the walk is live.
    world.fill(&wallet, 0, trades(1_000), vec![]).await;
    let filter = Filter { token: Some(Address::Solana([99; 32])), ..Filter::default() };
    let (follow, window) = (true, Duration::ZERO);
    let request = Demo::request(wallet, Extent::All);
    let request = WalkRequest { filter, follow, window, ..request };
    let (rows, end) = finish(&mut world.history.walk(request).unwrap()).await;
    assert_eq!((rows.len(), end.complete, end.more), (0, false, true), "{end:?}");
}

/// One thread serves all: while it searches for one row among many, other tasks run.
#[tokio::test]
async fn a_rare_row_in_a_large_wallet_delays_no_other_client() {
    const COUNT: u32 = 40_000;
    let world = World::new();
    let wallet = wallet(1);
    let mut all = trades(COUNT);
    all.last_mut().unwrap().venue = "Rare".into();
    world.fill(&wallet, 0, all, vec![]).await;
    let (done, turns) = (AtomicBool::new(false), AtomicU64::new(0));
    let others = async {
        while !done.load(Ordering::Relaxed) {
            turns.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    };
    let asked = async {
        let page = json(&world.get(&format!("{}?limit=10&dex=rare", path(&wallet))).await);
        done.store(true, Ordering::Relaxed);
        page
    };
    let (page, ()) = tokio::join!(asked, others);
    assert_eq!(signatures(&trades_of(std::slice::from_ref(&page))), expected(COUNT, |n, _| n == 0));
    assert_eq!((&page["tradeCount"], page.get("cursor")), (&Value::from(1), None));
    // A slice holds 1,000 rows.
    assert!(turns.load(Ordering::Relaxed) >= 40, "{turns:?}");
}

/// A failure reaches a walk only after all that is stored: rows that its filter rejects are not the
/// end of what is stored.
#[tokio::test(start_paused = true)]
async fn a_failed_load_ends_a_filtered_walk_after_all_stored_rows() {
    let limits = HistoryLimits { rows_per_step_max: 3, ..HistoryLimits::default() };
    let world = Build { limits, ..Build::default() }.world();
    world.set_faults(Faults::latency(Duration::from_millis(80)));
    let wallet = world.add("rejected", WalletPlan::trades(20_000));
    let facts = world.truth(wallet);
    let is_new = |at: &usize| facts[..*at].iter().all(|fact| fact.mint != facts[*at].mint);
    let token = Some(facts[(3..40).find(is_new).unwrap()].mint);
    let filter = Filter { token, ..Filter::default() };
    let request = WalkRequest { filter, ..Demo::request(wallet, Extent::All) };
    let mut walk = world.history.walk(request).unwrap();
    let mut next = Box::pin(walk.next());
    assert!(timeout(Duration::from_millis(1), next.as_mut()).await.is_err(), "nothing is stored");
    let load = async || world.history.loads().await.unwrap().pop().unwrap();
    while load().await.rows < 60 {
        sleep(Duration::from_millis(10)).await;
    }
    world.set_faults(Faults { unavailable: Rate::ALWAYS, ..Faults::none() });
    while load().await.failures == 0 {
        sleep(Duration::from_secs(1)).await;
    }
    let Step::Rows(first) = next.await else { panic!("it ends above all that matches") };
    let (more, end) = finish(&mut walk).await;
    assert!(matches!(end.error, Some(HistoryError::UpstreamUnavailable { .. })), "{end:?}");
    let rows = first.into_iter().chain(more).map(|row| row.trade.key);
    let view = world.store.view().unwrap();
    let record = view.wallet(&wallet).await.unwrap().unwrap();
    let floor = record.coverage.run_low(record.coverage.top().unwrap()).unwrap();
    let stored = view.rows(record.id, Position::Start, floor, 20_000).await.unwrap();
    let stored = stored.into_iter().filter(|row| Some(row.trade.mint) == token);
    let stored: Vec<_> = stored.map(|row| row.trade.key).collect();
    assert_eq!(rows.collect::<Vec<_>>(), stored);
}

/// The model's rows that match, newest first.
fn truth(world: &Demo, wallet: Wallet, wanted: impl Fn(&TrueTrade) -> bool) -> Vec<String> {
    let rows = world.model.truth(wallet.address).filter(|row| wanted(row));
    rows.map(|row| row.signature.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_older_than_from_is_not_loaded() {
    // Rows of another token are passed over, those that are too old are not.
    for token in [None, Some(Address::Solana([9; 32]))] {
        let world = Build::default().world();
        world.set_faults(Faults::latency(Duration::from_millis(80)));
        let wallet = world.add("old", WalletPlan::trades(20_000));
        let from = world.model.truth(wallet.address).nth(150).unwrap().time;
        let filter = Filter { from: Some(from), token, ..Filter::default() };
        let request = WalkRequest { filter, ..Demo::request(wallet, Extent::All) };
        let (rows, end) = finish(&mut world.history.walk(request).unwrap()).await;
        let delivered: Vec<String> = rows.iter().map(|row| row.trade.key.tx.to_string()).collect();
        let expected = truth(&world, wallet, |row| row.time >= from && token.is_none());
        assert_eq!(delivered, expected);
        assert!(end.complete && !end.more && end.error.is_none(), "{end:?}");
        assert_eq!(end.trade_count, u64::try_from(expected.len()).unwrap());
        assert_eq!(end.first_trade, rows.last().map(|row| row.trade.key.time));
        sleep(Duration::from_secs(60)).await;
        let calls = world.nodes[0].stats().calls_of("getTransaction");
        assert!(calls <= 4_000, "{calls} transactions fetched for {} rows", expected.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_wallet_that_loads_while_it_is_filtered_gives_all_that_match() {
    let world = Build::default().world();
    world.set_faults(Faults::latency(Duration::from_millis(80)));
    let wallet = world.add("loads", WalletPlan::trades(900));
    let venue = world.model.truth(wallet.address).nth(10).unwrap().venue;
    let filter = Filter {
        venue: Some(venue.to_lowercase().into()),
        to: Some(UnixSeconds(world.model.truth(wallet.address).nth(100).unwrap().time.0)),
        ..Filter::default()
    };
    let expected = truth(&world, wallet, |row| row.venue == venue && Some(row.time) < filter.to);
    assert!(expected.len() > 10);
    let (mut read, mut resume) = (Vec::new(), None);
    loop {
        let request = WalkRequest {
            filter: filter.clone(),
            resume,
            ..Demo::request(wallet, Extent::Rows(7))
        };
        let mut walk = world.history.walk(request).unwrap();
        let end = loop {
            match walk.next().await {
                Step::Rows(rows) => {
                    read.extend(rows.bare().iter().map(|row| row.key.tx.to_string()));
                }
                Step::End(end) => break end,
            }
        };
        resume = Some(Box::new(walk.cursor()));
        if end.complete && !end.more {
            assert_eq!(end.trade_count, u64::try_from(expected.len()).unwrap());
            break;
        }
    }
    assert_eq!(read, expected);
    let counted = world.history.usage(KeyId(1)).await.unwrap();
    assert_eq!(counted, u64::try_from(expected.len()).unwrap());
}
