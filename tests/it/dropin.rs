//! What clients that were written for a hosted service of this shape send and read: keys, chain
//! names, streams and pages, cut streams, quota, rates, error bodies, estimates.

use std::time::Duration;

use blotter::api::ApiLimits;
use blotter::domain::{ChainId, Wallet};
use futures_util::future::join_all;
use serde_json::Value;
use warp::http::Response;

use crate::support::served::{
    KEY, World, header, json, key, lines, path, read_until, text, trades, trades_of, wallet,
};

const TRADE: [&str; 8] =
    ["amount", "amountSol", "blockTime", "dex", "side", "signature", "token", "tokenMint"];

fn members(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

async fn filled(count: u32) -> (World, Wallet) {
    let keys = [
        ("poor", key(2, |key| key.quota = Some(10))),
        ("slow", key(3, |key| key.rate_millis = Some(500))),
    ];
    let world = World::with(ApiLimits::default(), &keys);
    world.fill(&wallet(1), 0, trades(count), vec![]).await;
    (world, wallet(1))
}

/// Reads a stream as such a client does: line by line, only `trades` and `complete` matter, blank
/// and unknown lines are skipped.
fn accumulate(body: &str) -> (Vec<Value>, Option<Value>) {
    let mut trades = Vec::new();
    for line in body.split('\n').map(str::trim).filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_str(line).unwrap();
        if line.get("complete").is_some() {
            return (trades, Some(line));
        }
        if let Some(more) = line["trades"].as_array() {
            trades.extend(more.iter().cloned());
        }
    }
    (trades, None)
}

#[tokio::test]
async fn both_headers_both_prefixes_and_every_name_of_a_chain_give_the_same_answer() {
    let (world, wallet) = filled(20).await;
    let bearer = format!("Bearer {KEY}");
    let first = text(&world.get(&path(&wallet)).await).to_owned();
    for headers in [
        vec![("authorization", &*bearer)],
        vec![("x-api-key", KEY)],
        vec![("x-api-key", KEY), ("accept", "application/json"), ("user-agent", "sdk/1.0")],
        vec![("authorization", &*bearer), ("accept", "application/x-ndjson")],
        vec![("authorization", &*bearer), ("content-type", "application/json")],
    ] {
        for prefix in ["/v1", "/api/v1"] {
            for chain in ["", "?chain=sol", "?chain=solana", "?chain=SOL", "?chain=Solana"] {
                let path = format!("{prefix}{}{chain}", &path(&wallet)[3..]);
                let response = world.send("GET", &path, &headers).await;
                assert_eq!(text(&response), first, "{path} {headers:?}");
            }
        }
    }
    // The other chains are known by name too, and are disabled in this server.
    let evm = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    for chain in
        ["eth", "ethereum", "base", "bsc", "bnb", "hyperevm", "hyperliquid", "monad", "robinhood"]
    {
        let path = format!("/v1/wallets/{evm}/history?chain={chain}");
        assert_eq!(json(&world.get(&path).await)["type"], "/errors/chain_disabled", "{chain}");
    }
}

#[tokio::test]
async fn a_stream_is_lines_of_trades_and_one_last_line() {
    let (world, wallet) = filled(2500).await;
    let response = world.get(&path(&wallet)).await;
    assert!(header(&response, "content-type").unwrap().starts_with("application/x-ndjson"));
    let lines = lines(&response);
    let (last, batches) = lines.split_last().unwrap();
    for line in batches {
        assert_eq!(members(line), ["cursor", "trades"]);
        assert!(line["trades"].as_array().unwrap().iter().all(|trade| members(trade) == TRADE));
    }
    assert_eq!(members(last), ["complete", "firstTrade", "tradeCount", "wallet"]);
    let (trades, end) = accumulate(text(&response));
    assert_eq!((trades.len(), &end.unwrap()), (2500, last));
    assert_eq!(last["firstTrade"], trades.last().unwrap()["blockTime"]);
    assert!(last["firstTrade"].as_str().unwrap().ends_with("+00:00"));
    let newest_first =
        |pair: &[Value]| pair[0]["blockTime"].as_str() >= pair[1]["blockTime"].as_str();
    assert!(trades.windows(2).all(newest_first));
}

#[tokio::test]
async fn pages_have_the_members_of_the_contract() {
    let (world, wallet) = filled(25).await;
    let (mut next, mut rows, mut pages) = (format!("{}?limit=10", path(&wallet)), vec![], 0);
    loop {
        let response = world.get(&next).await;
        assert_eq!(header(&response, "content-type"), Some("application/json"));
        let page = json(&response);
        pages += 1;
        assert_eq!((&page["tradeCount"], &page["totalPages"]), (&25.into(), &3.into()));
        assert_eq!((&page["pageSize"], &page["complete"]), (&10.into(), &true.into()));
        rows.extend(trades_of(std::slice::from_ref(&page)));
        let Some(cursor) = page["cursor"].as_str() else {
            let whole = ["complete", "pageSize", "totalPages", "tradeCount", "trades", "wallet"];
            assert_eq!(members(&page), whole);
            break;
        };
        next = format!("{}?limit=10&cursor={cursor}", path(&wallet));
    }
    assert_eq!((pages, rows.len()), (3, 25));
    // Clients send what they have: 0, negative, none, empty.
    for (limit, size) in [("limit=0", 1), ("limit=-1", 1), ("limit", 1000), ("limit=", 1000)] {
        let page = json(&world.get(&format!("{}?{limit}", path(&wallet))).await);
        assert_eq!(page["pageSize"], size, "{limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_wallet_that_is_not_loaded_yet_is_to_be_asked_again() {
    let world = World::new();
    let response = world.get(&format!("{}?limit=10", path(&wallet(4)))).await;
    let page = json(&response);
    assert_eq!(
        members(&page),
        ["complete", "cursor", "pageSize", "tradeCount", "trades", "wallet"]
    );
    assert_eq!((&page["complete"], &page["tradeCount"]), (&false.into(), &0.into()));
    assert_eq!(page["trades"], Value::Array(vec![]));
    let again =
        format!("{}?limit=10&cursor={}", path(&wallet(4)), page["cursor"].as_str().unwrap());
    assert_eq!(json(&world.get(&again).await), page);
}

/// Cut in the middle of a line, over a real connection, and resumed by the last whole line.
#[tokio::test]
async fn a_cut_stream_goes_on_at_the_last_cursor() {
    let (world, wallet) = filled(3000).await;
    let served = world.serve().await;
    let mut stream = served.open(&path(&wallet)).await;
    // Two lines, and a part of the third.
    let mut body = read_until(&mut stream, "\r\n\r\n").await;
    body.clear();
    for _ in 0..2 {
        body += &read_until(&mut stream, "}\n").await;
    }
    body += &read_until(&mut stream, "\"signature\":").await;
    drop(stream);
    let whole: Vec<Value> = body
        .lines()
        .filter(|line| line.starts_with('{'))
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    assert_eq!(whole.len(), 2);
    let cursor = whole[1]["cursor"].as_str().unwrap();
    let rest = world.get(&format!("{}?cursor={cursor}", path(&wallet))).await;
    let (rest, end) = accumulate(text(&rest));
    let all = accumulate(text(&world.get(&path(&wallet)).await)).0;
    assert_eq!([trades_of(&whole), rest].concat(), all);
    assert_eq!(end.unwrap()["complete"], true);
    drop(served.stop());
}

#[track_caller]
fn error_of(response: &Response<bytes::Bytes>, status: u16, code: &str) -> Value {
    assert_eq!(response.status(), status);
    let error = json(response)["error"].clone();
    assert_eq!(members(&error), ["code", "message", "requestId", "timestamp"]);
    assert_eq!(error["code"], code);
    assert!(error["message"].is_string() && error["timestamp"].is_string());
    error
}

#[tokio::test(start_paused = true)]
async fn errors_are_read_by_their_code() {
    let (world, wallet) = filled(40).await;
    let path = path(&wallet);
    error_of(&world.get("/v1/wallets/nonsense/history").await, 400, "VALIDATION_ERROR");
    error_of(&world.send("GET", &path, &[]).await, 401, "INVALID_SESSION");
    error_of(&world.get_as("wrong", &path).await, 401, "INVALID_SESSION");

    // With a quota the last rows come first, in a stream's last line or a shorter page; then 402.
    let (rows, end) = accumulate(text(&world.get_as("poor", &path).await));
    let end = end.unwrap();
    assert_eq!((rows.len(), &end["complete"]), (10, &Value::Bool(false)));
    assert_eq!(end["error"]["code"], "QUOTA_EXCEEDED");
    let rest = format!("{path}?cursor={}", end["cursor"].as_str().unwrap());
    error_of(&world.get_as("poor", &rest).await, 402, "QUOTA_EXCEEDED");
    let page = json(&world.get_as("poor", &format!("{path}?limit=20")).await);
    assert_eq!(page["trades"].as_array().unwrap().len(), 10);
    error_of(&world.get_as("poor", &format!("{rest}&limit=5")).await, 402, "QUOTA_EXCEEDED");

    let limited = format!("{path}?limit=1");
    assert_eq!(world.get_as("slow", &limited).await.status(), 200);
    let refused = world.get_as("slow", &limited).await;
    error_of(&refused, 429, "RATE_LIMITED");
    let wait: u64 = header(&refused, "retry-after").unwrap().parse().unwrap();
    tokio::time::sleep(Duration::from_secs(wait)).await;
    assert_eq!(world.get_as("slow", &limited).await.status(), 200);
}

/// Estimates: with and without a key.
#[tokio::test(start_paused = true)]
async fn estimates_say_whether_they_are_exact() {
    let (world, known) = filled(40).await;
    let unknown = wallet(2);
    assert_eq!(known.chain, ChainId(1));
    let body = format!("{{\"addresses\":[\"{}\",\"{}\"]}}", known.address, unknown.address);
    let ask = |key: Option<&'static str>, body: String| {
        let mut request = warp::test::request().method("POST").path("/api/v1/billing/estimate");
        request = request.header("content-type", "application/json").body(body);
        if let Some(key) = key {
            request = request.header("x-api-key", key);
        }
        let routes = world.api.routes();
        async move { request.reply(&routes).await }
    };
    let alone = format!("{{\"addresses\":[\"{}\"]}}", known.address);
    let with_key = json(&ask(Some(KEY), alone.clone()).await);
    let unnamed = alone.replace('}', ",\"chain\":\"\"}");
    assert_eq!(json(&ask(Some(KEY), unnamed).await), with_key, "as left out");
    let row = &with_key["addresses"][0];
    assert_eq!(
        members(row),
        ["address", "estimateType", "estimatedSeconds", "estimatedTradeCount", "sampleTrades"]
    );
    assert_eq!(row["address"], known.address.to_string());
    assert_eq!((&row["estimateType"], &row["estimatedTradeCount"]), (&"exact".into(), &40.into()));
    assert_eq!(row["estimatedSeconds"], 0);
    let newest = trades_of(&lines(&world.get(&path(&known)).await));
    assert_eq!(row["sampleTrades"].as_array().unwrap()[..], newest[..3]);
    // Nothing of the second is stored and its node is silent: there is no estimate.
    let refused = ask(Some(KEY), body.clone()).await;
    let said = error_of(&refused, 503, "UPSTREAM_UNAVAILABLE")["message"].clone();
    assert!(said.as_str().unwrap().starts_with("addresses[1]: "), "{said}");
    assert!(header(&refused, "retry-after").is_some());
    // Without a key what is stored is not used.
    error_of(&ask(None, alone).await, 503, "UPSTREAM_UNAVAILABLE");
    let usage = json(&world.get("/v1/usage").await);
    assert_eq!(usage["tradesCounted"], 40, "estimates are not counted");

    let many = vec![format!("\"{}\"", known.address); 21].join(",");
    let wrong = [
        String::new(),
        "[]".into(),
        "{}".into(),
        "{\"addresses\":[]}".into(),
        "{\"addresses\":[1]}".into(),
        format!("{{\"addresses\":[{many}]}}"),
        format!("{{\"addresses\":[\"{}\"],\"chain\":\"doge\"}}", known.address),
        format!("{{\"addresses\":[\"{}\"],\"chian\":\"sol\"}}", known.address),
        format!("{{\"addresses\":[\"{}\",\"0x1\"]}}", known.address),
        " ".repeat(20_000),
    ];
    for body in wrong {
        tokio::time::sleep(Duration::from_secs(20)).await;
        error_of(&ask(Some(KEY), body).await, 400, "VALIDATION_ERROR");
    }
}

/// Requests without a key are limited by client address, and in total.
#[tokio::test(start_paused = true)]
async fn estimates_have_a_rate_and_a_budget() {
    let (world, known) = filled(3).await;
    let ask = |addresses: usize, key: Option<&'static str>| {
        let list = vec![format!("\"{}\"", known.address); addresses].join(",");
        let mut request = warp::test::request().method("POST").path("/v1/billing/estimate");
        let body = format!("{{\"addresses\":[{list}]}}");
        request = request.header("content-type", "application/json").body(body);
        if let Some(key) = key {
            request = request.header("x-api-key", key);
        }
        let routes = world.api.routes();
        async move { request.reply(&routes).await }
    };
    // One in two seconds and ten seconds saved up: five at once.
    let burst = join_all((0..6).map(|_| ask(1, None))).await;
    // The node is silent: what is let in has no estimate.
    let refused: Vec<_> = burst.iter().filter(|answer| answer.status() != 503).collect();
    assert_eq!(refused.len(), 1);
    error_of(refused[0], 429, "RATE_LIMITED");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(ask(1, None).await.status(), 503);
    tokio::time::sleep(Duration::from_secs(60)).await;
    // Four wallets a second for all and ten seconds of it saved up: forty, key or not.
    for _ in 0..2 {
        assert_eq!(ask(20, Some(KEY)).await.status(), 200);
    }
    let refused = ask(1, Some(KEY)).await;
    error_of(&refused, 429, "RATE_LIMITED");
    assert!(header(&refused, "retry-after").is_some());
    // A list is answered in full or not at all: the wait applies to the whole list.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut list = ask(20, Some(KEY)).await;
    error_of(&list, 429, "RATE_LIMITED");
    assert_eq!(ask(1, Some(KEY)).await.status(), 200, "what is refused leaves others their turn");
    for _ in 0..2 {
        let Some(wait) = header(&list, "retry-after") else { break };
        tokio::time::sleep(Duration::from_secs(wait.parse().unwrap())).await;
        list = ask(20, Some(KEY)).await;
    }
    assert_eq!(list.status(), 200, "a client that obeys comes through");
}
