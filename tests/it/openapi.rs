//! The `OpenAPI` document against the server: its routes and statuses exist, and answers match it.

use std::collections::BTreeSet;

use blotter::api::{Api, ApiLimits, ApiParts, Keys};
use blotter::domain::{ChainId, TxId, ValueSource};
use blotter::history::HistoryLimits;
use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::Value;
use warp::http::Response;

use crate::support::schema::check;
use crate::support::served::{KEY, World, header, json, key, path, ring, text, trades, wallet};
use crate::support::source::Node;

fn document() -> Value {
    serde_json::from_str(include_str!("../../data/openapi.json")).unwrap()
}

/// Headers that HTTP itself, or a general rule of the document, allows in every answer.
const COMMON: [&str; 10] = [
    "content-type",
    "content-length",
    "content-encoding",
    "cache-control",
    "vary",
    "x-accel-buffering",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "x-content-type-options",
    "content-security-policy",
];

fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(at) => document.pointer(&at[1..]).unwrap(),
        None => value,
    }
}

/// Holds an answer against what the document says of its path, method and status.
#[track_caller]
fn described(document: &Value, route: &str, method: &str, response: &Response<Bytes>) {
    let status = response.status().as_u16().to_string();
    let described = &document["paths"][route][method]["responses"][&status];
    assert!(
        described.is_object(),
        "{method} {route} does not describe {status}: {}",
        text(response)
    );
    let described = resolved(document, described);
    for name in response.headers().keys().map(http::HeaderName::as_str) {
        let is_described = described["headers"]
            .as_object()
            .unwrap()
            .keys()
            .any(|known| known.eq_ignore_ascii_case(name));
        assert!(is_described || COMMON.contains(&name), "{route} {status}: header {name}");
    }
    let kind = header(response, "content-type").unwrap().split(';').next().unwrap();
    let schema = &described["content"][kind]["schema"];
    assert!(schema.is_object(), "{route} {status}: {kind}");
    if kind.ends_with("json") && !kind.ends_with("ndjson") {
        check(document, schema, &json(response)).unwrap();
    } else if kind.ends_with("ndjson") {
        for line in text(response).lines().filter(|line| !line.is_empty()) {
            check(document, schema, &serde_json::from_str(line).unwrap()).unwrap();
        }
    }
}

async fn post(world: &World, body: &str, headers: &[(&str, &str)]) -> Response<Bytes> {
    let mut request = warp::test::request().method("POST").path("/v1/billing/estimate").body(body);
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        request = request.header("content-type", "application/json");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.reply(&world.api.routes()).await
}

const HISTORY: &str = "/v1/wallets/{address}/history";

#[tokio::test(start_paused = true)]
async fn what_is_answered_is_what_is_described() {
    let document = document();
    let keys = [
        ("poor", key(2, |key| key.quota = Some(0))),
        ("slow", key(3, |key| key.rate_millis = Some(1))),
        ("narrow", key(4, |key| key.chains = Some(vec![ChainId(2)]))),
        ("busy", key(5, |key| key.streams = Some(0))),
    ];
    let world = World::with(ApiLimits::default(), &keys);
    let wallet = wallet(1);
    world.fill(&wallet, 0, trades(1500), vec![]).await;
    let path = path(&wallet);
    let mut seen = BTreeSet::new();
    let mut history = |response: &Response<Bytes>| {
        described(&document, HISTORY, "get", response);
        seen.insert(response.status().as_u16());
    };
    for query in ["", "?limit=10", "?limit=1200", "?limit=2000", "?side=sell", "?limit=7&dex=none"]
    {
        history(&world.get(&format!("{path}{query}")).await);
    }
    history(&world.get(&path.replace("/v1", "/api/v1")).await);
    // A silent node, so that the stream has to be resumed.
    history(&world.get(&crate::support::served::path(&crate::support::served::wallet(9))).await);
    for query in ["?limit=x", "?chain=doge", "?chain=eth", "?cursor=x", "?from=x", "?follow=2"] {
        history(&world.get(&format!("{path}{query}")).await);
    }
    history(&world.send("GET", &path, &[]).await);
    history(&world.get_as("poor", &format!("{path}?limit=5")).await);
    history(&world.get_as("narrow", &path).await);
    history(&world.get_as("busy", &path).await);
    history(&world.get_as("slow", &format!("{path}?limit=1")).await);
    history(&world.get_as("slow", &format!("{path}?limit=1")).await);
    history(&world.send("POST", &path, &[]).await);
    world.history.stop();
    history(&world.get(&path).await);
    assert_eq!(seen, BTreeSet::from([200, 400, 401, 402, 403, 405, 429, 503]));

    let refuses = World::on(Node::Refuses, HistoryLimits::default(), ApiLimits::default(), &[]);
    let unknown = crate::support::served::path(&crate::support::served::wallet(3));
    let response = refuses.get(&format!("{unknown}?limit=5")).await;
    assert_eq!(response.status(), 503);
    described(&document, HISTORY, "get", &response);
    described(&document, HISTORY, "get", &refuses.get(&unknown).await);
}

#[tokio::test(start_paused = true)]
async fn so_are_the_routes_next_to_the_history() {
    let document = document();
    let keys = [("slow", key(3, |key| key.rate_millis = Some(1)))];
    let world = World::with(ApiLimits::default(), &keys);
    for path in document["paths"].as_object().unwrap().keys().filter(|path| !path.contains('{')) {
        if document["paths"][path].get("get").is_some() {
            let response = world.get(path).await;
            assert_eq!(response.status(), 200, "{path}");
            described(&document, path, "get", &response);
            described(&document, path, "get", &world.send("PUT", path, &[]).await);
        }
    }
    described(&document, "/v1/chains", "get", &world.send("GET", "/v1/chains", &[]).await);
    for path in ["/v1/chains", "/v1/usage"] {
        described(&document, path, "get", &world.get_as("wrong", path).await);
    }
    world.get_as("slow", "/v1/usage").await;
    described(&document, "/v1/usage", "get", &world.get_as("slow", "/v1/usage").await);
    world.history.stop();
    let response = world.get("/readyz").await;
    assert_eq!(response.status(), 503);
    described(&document, "/readyz", "get", &response);
}

#[tokio::test(start_paused = true)]
async fn and_so_are_estimates() {
    let document = document();
    let keys = [("narrow", key(4, |key| key.chains = Some(vec![ChainId(2)])))];
    let world = World::with(ApiLimits::default(), &keys);
    let wallet = wallet(1);
    world.fill(&wallet, 0, trades(30), vec![]).await;
    let good = format!("{{\"addresses\":[\"{}\"]}}", wallet.address);
    let bearer = format!("Bearer {KEY}");
    let key = [("authorization", &*bearer)];
    let mut seen = BTreeSet::new();
    let mut estimate = |response: Response<Bytes>| {
        described(&document, "/v1/billing/estimate", "post", &response);
        seen.insert(response.status().as_u16());
    };
    estimate(post(&world, &good, &key).await);
    estimate(post(&world, "{", &key).await);
    estimate(post(&world, &good, &[("x-api-key", "wrong")]).await);
    estimate(post(&world, &good, &[("x-api-key", "narrow")]).await);
    estimate(world.send("GET", "/v1/billing/estimate", &[]).await);
    for answer in join_all((0..7).map(|_| post(&world, &good, &[]))).await {
        estimate(answer);
    }
    estimate(post(&world, &good, &[("content-type", "text/plain")]).await);
    world.history.stop();
    estimate(post(&world, "{\"addresses\":[\"11111111111111111111111111111112\"]}", &key).await);
    assert_eq!(seen, BTreeSet::from([200, 400, 401, 403, 405, 415, 429, 503]));
    let limits = ApiLimits { estimates: false, ..ApiLimits::default() };
    let off = post(&World::with(limits, &[]), &good, &[]).await;
    assert_eq!(json(&off)["type"], "/errors/estimates_disabled");
    described(&document, "/v1/billing/estimate", "post", &off);
}

/// A transaction that is a trade, one that is not, and invalid requests.
#[tokio::test(start_paused = true)]
async fn explanations_are_what_is_described() {
    const ROUTE: &str = "/v1/wallets/{address}/explain/{signature}";
    let document = document();
    let world = crate::support::world::Build::default().world();
    let wallet = world.add("explained", blotter::demo::solana::WalletPlan::trades(20));
    let limits = ApiLimits::default();
    let keys = Keys::new(ring(&[(KEY, key(1, |_| {}))]));
    let api = Api::new(ApiParts { history: world.history.clone(), keys, limits, seed: 1 });
    let mut seen = BTreeSet::new();
    let unknown = TxId::solana(&[9; 64]).to_string();
    let signatures = world.model.signatures(wallet.address).map(|tx| tx.to_string());
    for signature in signatures.chain([unknown, "short".to_owned()]) {
        let path = format!("/v1/wallets/{}/explain/{signature}", wallet.address);
        let ask = || warp::test::request().path(&path);
        let response = ask().header("x-api-key", KEY).reply(&api.routes()).await;
        described(&document, ROUTE, "get", &response);
        seen.insert(response.status().as_u16());
        described(&document, ROUTE, "get", &ask().reply(&api.routes()).await);
    }
    assert_eq!(seen, BTreeSet::from([200, 400, 404]));
}

#[tokio::test(start_paused = true)]
async fn the_coverage_of_a_wallet_is_what_is_described() {
    const ROUTE: &str = "/v1/wallets/{address}/coverage";
    let document = document();
    let world = crate::support::world::Build::default().world();
    let wallet = world.add("covered", blotter::demo::solana::WalletPlan::trades(20));
    let keys = Keys::new(ring(&[(KEY, key(1, |_| {}))]));
    let limits = ApiLimits::default();
    let api = Api::new(ApiParts { history: world.history.clone(), keys, limits, seed: 1 });
    let path = format!("/v1/wallets/{}/coverage", wallet.address);
    let routes = api.routes();
    let ask = || warp::test::request().path(&path).header("x-api-key", KEY).reply(&routes);
    let shown = |response: &Response<Bytes>| -> Value {
        described(&document, ROUTE, "get", response);
        serde_json::from_slice(response.body()).unwrap()
    };
    let before = shown(&ask().await);
    assert_eq!((&before["complete"], &before["height"]), (&false.into(), &().into()));
    // The parameters of a history are not accepted here.
    let status = async |query: &str| {
        let path = format!("{path}?{query}");
        let asked = warp::test::request().path(&path).header("x-api-key", KEY).reply(&routes);
        asked.await.status().as_u16()
    };
    assert_eq!(status("limit=none&from=never&chain=sol").await, 200);
    assert_eq!((status("chian=sol").await, status("chain=nowhere").await), (400, 400));
    let mut walk = world.walk(wallet, blotter::history::Extent::All, None);
    crate::support::world::finish(&mut walk).await;
    let after = shown(&ask().await);
    let head = after["height"].clone();
    assert_eq!((&after["complete"], &after["gaps"]), (&true.into(), &serde_json::json!([])));
    let span = serde_json::json!([{"low": 0, "high": head, "way": "signatures", "doubts": [],
        "accepted": true, "missing": []}]);
    assert_eq!(after["spans"], span);
    described(
        &document,
        ROUTE,
        "get",
        &warp::test::request().path(&path).reply(&api.routes()).await,
    );
}

#[tokio::test(start_paused = true)]
async fn gains_are_what_is_described() {
    const ROUTE: &str = "/v1/wallets/{address}/pnl";
    let document = document();
    let keys = [
        ("poor", key(2, |key| key.quota = Some(0))),
        ("slow", key(3, |key| key.rate_millis = Some(1))),
        ("narrow", key(4, |key| key.chains = Some(vec![ChainId(2)]))),
    ];
    let limits = ApiLimits { pnl_rows_max: 1000, ..ApiLimits::default() };
    let world = World::with(limits, &keys);
    let (few, many) = (wallet(1), wallet(2));
    world.fill(&few, 0, trades(300), vec![]).await;
    world.fill(&many, 0, trades(1500), vec![]).await;
    let path = |wallet: &blotter::domain::Wallet| path(wallet).replace("/history", "/pnl");
    let mut seen = BTreeSet::new();
    let mut pnl = |response: &Response<Bytes>| {
        described(&document, ROUTE, "get", response);
        seen.insert(response.status().as_u16());
    };
    for query in ["", "?method=hifo&disposals=1", "?year=2023&numbers=string", "?method=x"] {
        pnl(&world.get(&format!("{}{query}", path(&few))).await);
    }
    pnl(&world.get(&path(&many)).await);
    pnl(&world.get(&path(&wallet(9))).await);
    pnl(&world.send("GET", &path(&few), &[]).await);
    pnl(&world.send("PUT", &path(&few), &[]).await);
    pnl(&world.get_as("poor", &path(&few)).await);
    pnl(&world.get_as("narrow", &path(&few)).await);
    pnl(&world.get_as("slow", &path(&few)).await);
    pnl(&world.get_as("slow", &path(&few)).await);
    world.history.stop();
    pnl(&world.get(&path(&few)).await);
    assert_eq!(seen, BTreeSet::from([200, 400, 401, 402, 403, 405, 422, 429, 503]));
}

#[test]
fn the_documents_version_is_the_builds() {
    assert_eq!(document()["info"]["version"], env!("CARGO_PKG_VERSION"));
}

/// A generated client sends every default value, which must not change the mode.
#[test]
fn no_default_selects_pages() {
    assert!(document()["components"]["parameters"]["limit"]["schema"].get("default").is_none());
}

/// Each error code in the sources is in the document, and no other.
#[test]
fn every_code_of_an_error_is_described() {
    let source = include_str!("../../src/api/error.rs");
    let start = source.find("const UNAUTHORIZED").unwrap();
    let lower = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let codes: BTreeSet<String> = source[start..]
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(lower)
        .map(|code| format!("/errors/{code}"))
        .collect();
    let document = document();
    let listed = &document["components"]["schemas"]["Problem"]["properties"]["type"]["enum"];
    let listed: BTreeSet<String> =
        listed.as_array().unwrap().iter().map(|code| code.as_str().unwrap().to_owned()).collect();
    assert_eq!(listed, codes);
}

/// An explanation names a row's own native coin by what the rows around it are explained with.
#[test]
fn every_source_of_a_value_is_described() {
    let explained = |source: ValueSource| {
        if source == ValueSource::Direct { "movement" } else { source.name() }
    };
    let names: BTreeSet<&str> =
        ValueSource::ALL.into_iter().map(explained).chain(["order"]).collect();
    let document = document();
    let trades = &document["components"]["schemas"]["Explanation"]["properties"]["trades"];
    let described = trades["items"]["properties"]["valueFrom"]["enum"].as_array().unwrap();
    assert_eq!(described.iter().filter_map(Value::as_str).collect::<BTreeSet<_>>(), names);
    let page = include_str!("../../docs/values.md");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "docs/values.md says nothing of {name}");
    }
}

/// Each route of the sources is in the document.
#[test]
fn every_route_is_described() {
    let source = include_str!("../../src/api/routes.rs");
    let document = document();
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    let mut found = 0;
    for line in source.split("mod tests").next().unwrap().lines().map(str::trim) {
        let line = line.strip_prefix(['[', '&']).map(|line| line.trim_start_matches('['));
        let Some((inside, _)) = line.and_then(|line| line.split_once("] =>")) else { continue };
        if inside.contains("@ ..") {
            continue;
        }
        let segments: Vec<&str> = inside.split(", ").map(|s| s.trim_matches('"')).collect();
        // The parts of the page at the root are not a public interface.
        if segments[0] == "page" {
            continue;
        }
        let is_it = |path: &&&String| {
            let known: Vec<&str> = path.trim_start_matches("/v1").split('/').skip(1).collect();
            known.len() == segments.len()
                && known.iter().zip(&segments).all(|(known, segment)| {
                    let is_variable = !inside.contains(&format!("\"{segment}\""));
                    known == segment || (known.starts_with('{') && is_variable)
                })
        };
        assert!(paths.iter().any(|path| is_it(&path)), "{inside} is not described");
        found += 1;
    }
    assert_eq!(found, paths.len(), "a path is described that is no route");
}

/// The page names each path, parameter and shape, and needs no other site.
#[tokio::test]
async fn the_reference_page_has_it_all() {
    let world = World::new();
    let page = world.send("GET", "/docs", &[]).await;
    let page = text(&page);
    let document = document();
    let names = ["paths", "components/parameters", "components/schemas"];
    for group in names {
        for name in document.pointer(&format!("/{group}")).unwrap().as_object().unwrap().keys() {
            assert!(page.contains(name.as_str()), "{name}");
        }
    }
    for other in ["http://", "https://", "<script", "src="] {
        assert!(!page.contains(other), "{other}");
    }
    let llms = world.send("GET", "/llms.txt", &[]).await;
    assert!(text(&llms).contains("/v1/wallets/{address}/history"));
}

/// Of a store in a database alone.
const SHARED: [&str; 2] = ["blotter_store_failed_calls", "blotter_store_processes"];

/// The families that a text asks for.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let name = |(at, _): (usize, &str)| {
        let end = text[at..].find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap();
        let name = &text[at..at + end];
        let family = ["_total", "_bucket", "_info"].into_iter().find_map(|e| name.strip_suffix(e));
        family.unwrap_or(name)
    };
    text.match_indices("blotter_").map(name).collect()
}

/// The dashboard and the alerts use only existing metrics, and the dashboard shows all of them.
#[tokio::test]
async fn every_metric_of_the_board_is_measured() {
    let world = World::new();
    world.get("/v1/chains").await;
    let measured = world.get("/metrics").await;
    let types = text(&measured).lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let measured: BTreeSet<&str> =
        types.filter_map(|line| line.split(' ').next()).chain(SHARED).collect();
    let board = include_str!("../../docs/grafana.json");
    let _: Value = serde_json::from_str(board).unwrap();
    let board = metrics_in(board);
    assert_eq!(board, measured);
    let alerts = metrics_in(include_str!("../../docs/alerts.yaml"));
    assert!(alerts.is_subset(&measured), "{:?}", alerts.difference(&measured));
    assert!(
        alerts.is_superset(&BTreeSet::from(["blotter_audit_missing", "blotter_disk_free_bytes"]))
    );
}
