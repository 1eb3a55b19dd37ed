//! Transactions explained, on the command line and over HTTP.

use std::time::Duration;

use blotter::api::ApiLimits;
use blotter::demo::solana::{SolanaModel, TxKind, WalletPlan};
use blotter::demo::{DemoChains, DemoNode, evm};
use blotter::domain::Side;
use blotter::registry::Registry;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::support::loops::with_nodes;
use crate::support::program::{Place, Server};
use crate::support::served::{self, KEY, World, header, key, trade, wallet};

/// Numbers as their texts, because a reader of floats would round them.
pub(crate) fn json(text: &str) -> Value {
    let (mut quoted, mut exact, mut number) = (false, String::new(), false);
    let mut last = ' ';
    for c in text.chars() {
        if c == '"' && last != '\\' {
            quoted = !quoted;
        }
        let digit = !quoted && (c.is_ascii_digit() || (number && c == '.') || c == '-');
        if digit != number {
            exact.push('"');
            number = digit;
        }
        exact.push(c);
        last = c;
    }
    serde_json::from_str(&exact).unwrap_or_else(|error| panic!("{error}: {exact}"))
}

/// Native coin in base units, by moving the decimal point.
pub(crate) fn units(number: &Value, decimals: usize) -> i128 {
    let text = number.as_str().unwrap();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{part:0<decimals$}").parse().unwrap()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

/// The native coin that moved equals the rows plus what was left out, to the last unit.
fn check_balance(explained: &Value, decimals: usize) {
    let list = |name: &str| explained[name].as_array().unwrap().clone();
    let moved: i128 = list("movements")
        .iter()
        .filter(|movement| movement["mint"].is_null())
        .map(|movement| units(&movement["came"], decimals) - units(&movement["went"], decimals))
        .sum();
    let trades = list("trades");
    let known = ["movement", "route", "order"];
    if trades.iter().any(|trade| !known.contains(&text(trade, "valueFrom"))) {
        return;
    }
    let rows: i128 = trades
        .iter()
        .map(|trade| {
            let value = units(&trade["amountSol"], decimals);
            if trade["side"] == "buy" { -value } else { value }
        })
        .sum();
    let left: i128 = list("leftOut")
        .iter()
        .filter(|left| left["mint"].is_null())
        .filter(|left| {
            ["tip", "bot fee", "beside the trade", "from an order", "no trade"]
                .contains(&text(left, "what"))
        })
        .map(|left| {
            let value = units(&left["amount"], decimals);
            if left["direction"] == "in" { value } else { -value }
        })
        .sum();
    assert_eq!(moved, rows + left, "{explained:#}");
}

fn refusals_and_the_command_line(
    place: &Place,
    server: &Server,
    key: &str,
    wallet: &str,
    kinds: &[(String, TxKind)],
    node: &str,
) {
    // The error names what is wrong.
    let explain = |path: &str| server.get(&format!("/v1/wallets/{path}"), key);
    assert_eq!(explain(&format!("{wallet}/explain/abc")).status, 400);
    let unknown = format!("{}1", &kinds[0].0[..kinds[0].0.len() - 1]);
    let answer = explain(&format!("{wallet}/explain/{unknown}"));
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("parameter signature: no node"), "{}", answer.body);
    assert!(answer.body.contains("`chain`"), "{}", answer.body);
    let path = format!("/v1/wallets/{wallet}/explain/{}", kinds[0].0);
    assert_eq!(server.get(&path, "wrong").status, 401);
    // The command line says the same, by the server and by the node.
    let trade = kinds.iter().find(|(_, kind)| matches!(kind, TxKind::Trade(_))).unwrap();
    let args = ["explain", &trade.0, "--wallet", wallet, "--json"];
    let url = server.url();
    let asked = place.run(&[&args[..], &["--url", &url, "--key", key]].concat());
    assert_eq!((asked.code, asked.stderr.as_str()), (Some(0), ""));
    let own = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", node);
    let missing = ["explain", &unknown, "--wallet", wallet];
    let refused = place.run(&[&missing[..], &["--url", &url, "--key", key]].concat());
    assert!(refused.stderr.contains("parameter signature: no node"), "{}", refused.stderr);
    let refused = own.run(&missing);
    assert!(refused.stderr.contains("--chain"), "{}", refused.stderr);
    let ran = own.run(&args);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(json(&ran.stdout), json(&asked.stdout));
    let shown = own.run(&args[..4]).stdout;
    for part in ["a trade", "Movements of the wallet", "Venues", "BECAME"] {
        assert!(shown.contains(part), "{shown}");
    }
    let ran = own.run(&["explain", "abc", "--wallet", wallet]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_transaction_of_a_solana_wallet_is_explained() {
    let model = SolanaModel::new(51);
    let wallet = model.add_named("explained", WalletPlan::trades(60));
    let kinds: Vec<(String, TxKind)> = model
        .signatures(wallet)
        .take(60)
        .map(|id| (id.to_string(), model.kind_of(&id).unwrap()))
        .collect();
    let native: std::collections::HashMap<String, Option<i128>> = model
        .truth(wallet)
        .map(|row| {
            (row.signature.to_string(), row.native.map(|units| units.to_string().parse().unwrap()))
        })
        .collect();
    let mut legs: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    for row in model.truth(wallet) {
        *legs.entry(row.signature.to_string()).or_default() += 1;
    }
    let nodes = vec![("sol".to_owned(), DemoNode::new(model, 1))];
    with_nodes(nodes, move |urls| {
        let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &urls[0]);
        let server = place.serve(&["serve", "--listen", "127.0.0.1:0"]);
        let key = server.stderr.lines().find(|line| line.starts_with("blt_")).unwrap().to_owned();
        let wallet = wallet.to_string();
        let (mut traded, mut fees) = (0, 0);
        for (signature, kind) in &kinds {
            let path = format!("/v1/wallets/{wallet}/explain/{signature}?chain=sol");
            let answer = server.get(&path, &key);
            assert_eq!(answer.status, 200, "{}", answer.body);
            let explained = json(&answer.body);
            let is_trade = matches!(kind, TxKind::Trade(_));
            assert_eq!(explained["isTrade"], is_trade, "{kind:?}: {explained:#}");
            let verdict = text(&explained, "verdict");
            assert_eq!(verdict.starts_with("a trade"), is_trade, "{verdict}");
            if *kind == TxKind::Failed {
                assert!(verdict.contains("failed"));
                continue;
            }
            check_balance(&explained, 9);
            fees += usize::from(explained.to_string().contains("network fee"));
            if !is_trade {
                continue;
            }
            traded += 1;
            assert!(!explained["venues"].as_array().unwrap().is_empty(), "{explained:#}");
            let rows = explained["trades"].as_array().unwrap();
            let both = legs[signature] == 2;
            assert_eq!(rows.len(), legs[signature]);
            if let Some(truth) = native[signature] {
                assert_eq!(units(&rows[0]["amountSol"], 9), truth);
                let became = explained["movements"].to_string();
                let by_order = explained["leftOut"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|left| left["what"] == "from an order" && left["mint"].is_null());
                assert!(both || by_order != became.contains("amountSol"), "{explained:#}");
                let from = match (both, by_order) {
                    (true, _) => "route",
                    (false, true) => "order",
                    (false, false) => "movement",
                };
                assert_eq!(rows[0]["valueFrom"], from, "{explained:#}");
            }
        }
        assert!(traded > 20 && fees > 20, "{traded} trades, {fees} fees");
        refusals_and_the_command_line(&place, &server, &key, &wallet, &kinds, &urls[0]);
    })
    .await;
}

/// Explains each transaction of a demo wallet by the command line, and compares the rows with the
/// truth; returns the number of trades.
async fn explained_on(slug: &'static str, variable: &'static str, decimals: usize) -> usize {
    let chains = DemoChains::new(52, &Registry::embedded().unwrap());
    let model = chains.evm(slug).unwrap();
    let wallet = model.add_named("explained", evm::WalletPlan::trades(25));
    let all: Vec<String> =
        model.transactions_of(wallet).map(|(id, _)| id.to_string()).take(30).collect();
    let truth: Vec<evm::TrueTrade> = model.truth(wallet).collect();
    let rpc = chains.paths(slug).unwrap().rpc;
    let nodes = chains.nodes().into_iter().filter(|(path, _)| *path == rpc).collect();
    with_nodes(nodes, move |urls| {
        let place = Place::new().variable(variable, &urls[0]);
        let wallet = wallet.to_string();
        let mut trades = 0;
        for hash in &all {
            let args = ["explain", hash, "--wallet", &wallet, "--chain", slug, "--json"];
            let ran = place.run(&args);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{hash}");
            let explained = json(&ran.stdout);
            let legs: Vec<_> = truth.iter().filter(|row| row.hash.to_string() == *hash).collect();
            assert_eq!(explained["isTrade"], !legs.is_empty(), "{explained:#}");
            check_legs(&explained, &legs, decimals);
            if explained["nativeMovementsKnown"] == true {
                check_balance(&explained, decimals);
            }
            trades += usize::from(!legs.is_empty());
        }
        trades
    })
    .await
}

/// Each row is a trade that was made, to the last unit of native coin.
fn check_legs(explained: &Value, legs: &[&evm::TrueTrade], decimals: usize) {
    let rows = explained["trades"].as_array().unwrap();
    assert_eq!(rows.len(), legs.len(), "{explained:#}");
    for leg in legs {
        let side = if leg.side == Side::Buy { "buy" } else { "sell" };
        let mint = leg.token.to_string();
        let is_leg = |row: &&Value| row["side"] == side && row["tokenMint"] == mint.as_str();
        let row = rows.iter().find(is_leg).unwrap_or_else(|| panic!("{leg:?}: {explained:#}"));
        if let Some(native) = leg.native {
            let known = units(&row["amountSol"], decimals).to_string();
            assert_eq!(known, native.to_string(), "{explained:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evm_wallets_transactions_are_explained() {
    let trades = explained_on("eth", "BLOTTER_CHAINS_ETH_RPC", 18).await;
    assert!(trades > 10, "{trades} trades");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tron_wallets_transactions_are_explained() {
    let trades = explained_on("tron", "BLOTTER_CHAINS_TRON_RPC", 6).await;
    assert!(trades > 10, "{trades} trades");
}

#[test]
fn the_store_is_kept_up_and_the_shell_is_served() {
    let place = Place::new();
    let ran = place.run(&["backup", "copy"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--data-dir"), "{}", ran.stderr);
    let server = place.serve(&["serve", "--listen", "127.0.0.1:0"]);
    let wallet = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU";
    for args in [&["backup", "copy"][..], &["compact"], &["forget", wallet]] {
        let ran = place.run(args);
        assert_eq!(ran.code, Some(1), "{args:?}");
        assert!(ran.stderr.contains("blotter admin"), "{}", ran.stderr);
    }
    drop(server);
    let ran = place.run(&["backup", "copy"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(place.path().join("copy/keys.toml").exists());
    assert_eq!(place.run(&["keys", "list", "--data-dir", "copy"]).code, Some(0));
    assert_eq!(place.run(&["backup", "copy"]).code, Some(1), "nothing is overwritten");
    assert_eq!(place.run(&["compact"]).code, Some(0));
    let ran = place.run(&["forget", wallet]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("nothing is stored"), "{}", ran.stdout);
    for shell in ["bash", "zsh", "fish"] {
        let ran = place.run(&["completions", shell]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains("explain"), "{shell}");
    }
    let ran = place.run(&["man"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains(".TH blotter") && ran.stdout.contains("koinly"), "{}", ran.stdout);
    // For an address of another chain, the error says what to do.
    let evm = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    let ran = place.run(&["history", evm]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--chain"), "{}", ran.stderr);
    // A server without a key for it.
    let ran = place.run(&["pnl", wallet, "--url", "http://127.0.0.1:9"]);
    assert!(ran.stderr.contains("BLOTTER_KEY"), "{}", ran.stderr);
}

/// A node that never answers is waited for no longer than a limit, nor longer than the server runs.
#[tokio::test(start_paused = true)]
async fn what_no_node_answers_is_given_up_in_bounded_time() {
    let world = World::new();
    let path = format!("/v1/wallets/{}/explain/{}", wallet(1).address, trade(1).key.tx);
    let began = Instant::now();
    let answer = timeout(Duration::from_secs(60), world.get(&path)).await.expect("it has a limit");
    assert_eq!(answer.status(), 503);
    assert_eq!(served::json(&answer)["type"], "/errors/upstream_unavailable");
    assert!(header(&answer, "retry-after").is_some() && began.elapsed().as_secs() <= 30);
    let mut waiting = Box::pin(world.get(&path));
    assert!(timeout(Duration::from_secs(1), &mut waiting).await.is_err(), "it waits");
    let began = Instant::now();
    world.history.tasks().cancel();
    assert_eq!(served::json(&waiting.await)["type"], "/errors/shutting_down");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// Waiting requests occupy slots; a client that disconnects frees its slot.
#[tokio::test(start_paused = true)]
async fn only_so_many_are_explained_at_once() {
    let limits =
        ApiLimits { explain_at_once_max: 2, explain_per_key_max: 1, ..ApiLimits::default() };
    let rated = key(2, |key| key.rate_millis = Some(50_000));
    let keys = [("second", rated), ("third", key(3, |_| {}))];
    let world = World::with(limits, &keys);
    let path = format!("/v1/wallets/{}/explain/{}", wallet(1).address, trade(1).key.tx);
    let mut first = Box::pin(world.get_as(KEY, &path));
    let mut second = Box::pin(world.get_as("second", &path));
    let moment = Duration::from_secs(1);
    for waiting in [&mut first, &mut second] {
        assert!(timeout(moment, waiting).await.is_err(), "it waits");
    }
    let own = world.get_as(KEY, &path).await;
    let error = served::json(&own)["type"].clone();
    assert_eq!((own.status().as_u16(), error), (429, "/errors/too_many_streams".into()));
    let rated = world.get_as("second", &path).await;
    assert_eq!(rated.status(), 429);
    assert!(header(&rated, "ratelimit").is_some(), "what the key has left");
    let other = world.get_as("third", &path).await;
    let error = served::json(&other)["type"].clone();
    assert_eq!((other.status().as_u16(), error), (503, "/errors/overloaded".into()));
    drop(first);
    assert!(timeout(moment, world.get_as(KEY, &path)).await.is_err(), "the place is back");
}
