//! Gains over HTTP: the same bytes as the command line's, or a note that the history is incomplete.

use std::time::Duration;

use blotter::api::ApiLimits;
use blotter::domain::{KeyId, ValueSource, Wallet};
use blotter::history::HistoryLimits;
use serde_json::{Value, json as shape};

use crate::support::served::{KEY, World, header, json, key, path, text, trades, wallet};
use crate::support::source::Node;

fn pnl(wallet: &Wallet, query: &str) -> String {
    path(wallet).replace("/history", "/pnl") + query
}

/// A world with one wallet of so many trades, wholly stored.
async fn filled(count: u32, limits: ApiLimits) -> (World, Wallet) {
    let world = World::with(limits, &[("narrow", key(2, |key| key.quota = Some(10)))]);
    let wallet = wallet(1);
    world.fill(&wallet, 0, trades(count), vec![]).await;
    (world, wallet)
}

#[tokio::test]
async fn figures_are_of_the_period_and_count_once() {
    let (world, wallet) = filled(600, ApiLimits::default()).await;
    let response = world.get(&pnl(&wallet, "")).await;
    assert_eq!(response.status(), 200, "{}", text(&response));
    assert!(header(&response, "blotter-as-of").is_some());
    let all = json(&response);
    assert_eq!((&all["complete"], &all["trades"]), (&true.into(), &600.into()));
    assert_eq!(
        (&all["method"], &all["from"], &all["native"]),
        (&"fifo".into(), &Value::Null, &"SOL".into())
    );
    assert_eq!(
        all["totals"]["buys"].as_u64().unwrap() + all["totals"]["sells"].as_u64().unwrap(),
        600
    );
    assert_eq!(all["tokens"].as_array().unwrap().len(), 5);
    assert!(all.get("disposals").is_none() && all.get("valuesPending").is_none());
    assert_eq!(world.history.usage(KeyId(1)).await.unwrap(), 600);

    // Without decimals there are no amounts, so that nothing is realised and nothing is guessed.
    assert_eq!(all["totals"]["withoutAmount"], 600);
    let time = |number: u32| 1_700_000_000 + number * 60;
    let query = format!("?from={}&to={}&method=hifo&disposals=1", time(100), time(300));
    let part = json(&world.get(&pnl(&wallet, &query)).await);
    assert_eq!((&part["trades"], &part["disposals"]), (&200.into(), &shape!([])));
    assert_eq!(part["from"], "2023-11-14T23:53:20+00:00");
    assert_eq!(
        world.history.usage(KeyId(1)).await.unwrap(),
        600,
        "read again, and not counted again"
    );
    world.close().await;
}

/// Figures change when these values come.
#[tokio::test]
async fn figures_name_the_rows_whose_value_is_still_looked_for() {
    let (world, wallet) = (World::new(), wallet(1));
    let mut rows = trades(30);
    for row in rows.iter_mut().take(7) {
        (row.native, row.valued) = (None, ValueSource::Pending);
    }
    world.fill(&wallet, 0, rows, vec![]).await;
    let all = json(&world.get(&pnl(&wallet, "")).await);
    assert_eq!((&all["complete"], &all["valuesPending"]), (&true.into(), &7.into()));
    world.close().await;
}

#[tokio::test]
async fn a_key_whose_quota_does_not_reach_gets_no_figures() {
    let (world, wallet) = filled(600, ApiLimits::default()).await;
    let response = world.get_as("narrow", &pnl(&wallet, "")).await;
    assert_eq!(
        (response.status().as_u16(), &json(&response)["type"]),
        (402, &"/errors/quota_exceeded".into())
    );
    for (query, code) in [
        ("?method=lofo", "invalid_parameter"),
        ("?chain=doge", "unknown_chain"),
        ("?mehtod=fifo", "invalid_parameter"),
        ("?year=2025&to=5", "invalid_parameter"),
    ] {
        let response = world.get(&pnl(&wallet, query)).await;
        assert_eq!(response.status(), 400, "{query}");
        assert_eq!(json(&response)["type"], format!("/errors/{code}"), "{query}");
    }
    assert_eq!(world.send("GET", &pnl(&wallet, ""), &[]).await.status(), 401);
    assert_eq!(world.send("POST", &pnl(&wallet, ""), &[]).await.status(), 405);
    world.close().await;
}

/// An ignored filter would give the figures of the whole wallet under its name.
#[tokio::test]
async fn parameters_of_a_history_are_refused_by_name() {
    let (world, wallet) = filled(30, ApiLimits::default()).await;
    for name in ["token", "side", "dex", "limit", "cursor", "follow", "format"] {
        for query in [format!("?{name}=1"), format!("?chain=sol&{name}"), format!("?x=1&{name}=")] {
            let response = world.get(&pnl(&wallet, &query)).await;
            assert_eq!(response.status(), 400, "{query}: {}", text(&response));
            let body = json(&response);
            assert_eq!(body["type"], "/errors/invalid_parameter");
            let said = body["detail"].as_str().unwrap();
            assert!(said.starts_with(&format!("parameter {name}: gains are ")), "{said}");
            assert!(said.contains("leave it out"), "{said}");
        }
    }
    // Unrelated parameters are ignored, as in all routes.
    assert_eq!(world.get(&pnl(&wallet, "?version=2")).await.status(), 200);
    world.close().await;
}

#[tokio::test]
async fn a_wallet_beyond_the_limit_is_refused_and_not_held() {
    let limits = ApiLimits { pnl_rows_max: 599, ..ApiLimits::default() };
    let (world, wallet) = filled(600, limits).await;
    let response = world.get(&pnl(&wallet, "")).await;
    assert_eq!(
        (response.status().as_u16(), &json(&response)["type"]),
        (422, &"/errors/too_many_trades".into())
    );
    world.close().await;
    let limits = ApiLimits { pnl_rows_max: 600, ..ApiLimits::default() };
    let (world, wallet) = filled(600, limits).await;
    assert_eq!(world.get(&pnl(&wallet, "")).await.status(), 200);
    world.close().await;
}

/// The nodes do not answer: the request waits as long as a page, and the answer says what is there.
#[tokio::test(start_paused = true)]
async fn an_incomplete_history_has_no_figures() {
    let world = World::new();
    let wallet = wallet(1);
    world.fill(&wallet, 500, trades(600).into_iter().take(90).collect(), vec![]).await;
    let response = world.get(&pnl(&wallet, "?method=average")).await;
    assert_eq!(response.status(), 200);
    let expected = shape!({
        "wallet": wallet.address.to_string(), "chain": "sol", "complete": false, "tradeCount": 90,
    });
    assert_eq!(json(&response), expected);

    let refuses = World::on(Node::Refuses, HistoryLimits::default(), ApiLimits::default(), &[]);
    let response = refuses.get(&pnl(&wallet, "")).await;
    assert_eq!(
        (response.status().as_u16(), &json(&response)["type"]),
        (503, &"/errors/upstream_unavailable".into())
    );
}

/// Waiting requests occupy slots; a client that disconnects frees its slot.
#[tokio::test(start_paused = true)]
async fn only_so_many_are_worked_out_at_once() {
    let limits = ApiLimits { pnl_at_once_max: 2, pnl_per_key_max: 1, ..ApiLimits::default() };
    let rated = key(2, |key| key.rate_millis = Some(50_000));
    let keys = [("second", rated), ("third", key(3, |_| {}))];
    let world = World::with(limits, &keys);
    let (silent, stored) = (wallet(8), wallet(1));
    world.fill(&stored, 0, trades(10), vec![]).await;
    let (waits, stored) = (pnl(&silent, ""), pnl(&stored, ""));
    let (first, second) = (world.get_as(KEY, &waits), world.get_as("second", &waits));
    let (mut first, mut second) = (Box::pin(first), Box::pin(second));
    for waiting in [&mut first, &mut second] {
        assert!(tokio::time::timeout(Duration::from_secs(1), waiting).await.is_err(), "it waits");
    }
    let own = world.get_as(KEY, &stored).await;
    assert_eq!(
        (own.status().as_u16(), &json(&own)["type"]),
        (429, &"/errors/too_many_streams".into())
    );
    let rated = world.get_as("second", &stored).await;
    assert_eq!(rated.status(), 429);
    assert!(header(&rated, "ratelimit").is_some(), "what the key has left");
    let other = world.get_as("third", &stored).await;
    assert_eq!(
        (other.status().as_u16(), &json(&other)["type"]),
        (503, &"/errors/overloaded".into())
    );
    drop(first);
    assert_eq!(world.get_as(KEY, &stored).await.status(), 200, "the place is back");
    drop(second);
}

#[tokio::test]
async fn numbers_are_text_where_that_is_asked_for() {
    let (world, wallet) = filled(1500, ApiLimits::default()).await;
    let plain = world.get(&path(&wallet)).await;
    assert_eq!(world.get(&(path(&wallet) + "?numbers=number")).await.body(), plain.body());
    let quoted = world.get(&(path(&wallet) + "?numbers=string")).await;
    // The digits are the same ones, in quotes.
    let mut expected = String::new();
    let mut rest = text(&plain);
    while let Some(at) = rest.find("\"amountSol\":") {
        let (before, number) = rest.split_at(at + "\"amountSol\":".len());
        let end = number.find(',').unwrap();
        expected.push_str(&[before, "\"", &number[..end], "\""].concat());
        rest = &number[end..];
    }
    expected.push_str(rest);
    assert_eq!(text(&quoted), expected);

    let page = world.get(&(path(&wallet) + "?limit=3&numbers=string")).await;
    let next = header(&page, "link").unwrap();
    assert!(next.contains("&numbers=string&cursor="), "{next}");
    assert_eq!(json(&page)["trades"][0]["amountSol"], "1.499");
    let figures = json(&world.get(&pnl(&wallet, "?numbers=string")).await);
    assert!(figures["totals"]["realised"].is_string() && figures["totals"]["buys"].is_u64());
    for wrong in ["?numbers=text", "?number=string"] {
        assert_eq!(world.get(&(path(&wallet) + wrong)).await.status(), 400, "{wrong}");
    }
    world.close().await;
}

/// The same bytes as the command line writes, over the demo's wallet with amounts and sales.
#[tokio::test(flavor = "multi_thread")]
async fn figures_are_what_the_command_line_writes() {
    use blotter::demo::DemoNode;
    use blotter::demo::solana::{SolanaModel, WalletPlan};

    use crate::support::loops::with_nodes;
    use crate::support::program::Place;

    let model = SolanaModel::new(33);
    let wallet = model.add_named("gains", WalletPlan::trades(700)).to_string();
    let nodes = vec![("sol".to_owned(), DemoNode::new(model, 1))];
    with_nodes(nodes, move |urls| {
        let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &urls[0]);
        let figures = |arguments: &[&str]| {
            let ran = place.run(&[&["pnl", &*wallet, "--format", "json"], arguments].concat());
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            ran.stdout
        };
        let mut served = place.serve(&["serve", "--listen", "127.0.0.1:0"]);
        let key = served.stderr.lines().find(|line| line.starts_with("blt_")).unwrap().to_owned();
        let get = |query: &str| served.get(&format!("/v1/wallets/{wallet}/pnl{query}"), &key).body;
        let answers: Vec<(Vec<&str>, String)> = [
            (vec![], ""),
            (vec!["--method", "lifo"], "?method=lifo"),
            (vec!["--method", "hifo", "--disposals"], "?method=hifo&disposals=1"),
            (vec!["--year", "2026", "--disposals"], "?year=2026&disposals=1"),
        ]
        .into_iter()
        .map(|(arguments, query)| (arguments, get(query)))
        .collect();
        served.signal("TERM");
        assert_eq!(served.wait(), Some(0));
        for (arguments, answer) in answers {
            assert_eq!(figures(&arguments), answer, "{arguments:?}");
        }
    })
    .await;
}
