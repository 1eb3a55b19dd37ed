//! The faults of the demo's endpoints, in process and over a port.

use std::collections::HashSet;
use std::time::Duration;

use blotter::demo::evm::{self, EvmModel};
use blotter::demo::solana::{NodeOptions, SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport, Faults, Loopback, LoopbackLimits, Rate};
use blotter::domain::TxId;
use blotter::registry::Registry;
use blotter::rpc::{HttpMethod, Request, Response, SecretUrl, Transport as _, TransportError};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

const TIMEOUT: Duration = Duration::from_secs(10);
const LIMIT: usize = 1 << 22;

fn node() -> (SolanaModel, DemoNode) {
    let model = SolanaModel::new(9);
    (model.clone(), DemoNode::new(model, 4))
}

fn call(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

async fn send(node: &DemoNode, body: &Value) -> Result<Response, TransportError> {
    let transport = DemoTransport::new([("one.test".to_owned(), node.clone())]);
    let request = Request {
        method: HttpMethod::Post,
        url: SecretUrl::new("https://one.test"),
        headers: Vec::new(),
        body: body.to_string().into(),
        timeout: TIMEOUT,
        body_bytes_max: LIMIT,
    };
    transport.send(request).await
}

async fn slot(node: &DemoNode) -> Result<Response, TransportError> {
    send(node, &call(1, "getSlot", json!([]))).await
}

fn read(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_request_does_what_it_says() {
    let (_, node) = node();
    let always = |set: fn(&mut Faults)| {
        let mut faults = Faults::none();
        set(&mut faults);
        node.set_faults(faults);
    };
    always(|f| f.too_many = Rate::ALWAYS);
    let answer = slot(&node).await.unwrap();
    assert_eq!((answer.status, answer.retry_after), (429, None));
    always(|f| (f.too_many_with_wait, f.retry_after) = (Rate::ALWAYS, Duration::from_secs(7)));
    assert_eq!(slot(&node).await.unwrap().retry_after.as_deref(), Some("7"));
    always(|f| f.unavailable = Rate::ALWAYS);
    assert_eq!(slot(&node).await.unwrap().status, 503);
    always(|f| f.html = Rate::ALWAYS);
    assert!(slot(&node).await.unwrap().body.starts_with(b"<!DOCTYPE html>"));
    always(|f| f.garbage = Rate::ALWAYS);
    assert!(serde_json::from_slice::<Value>(&slot(&node).await.unwrap().body).is_err());
    always(|f| f.cut_body = Rate::ALWAYS);
    let cut = slot(&node).await.unwrap_err();
    assert!(matches!(cut, TransportError::Broken(_)), "{cut}");
    always(|f| f.silence = Rate::ALWAYS);
    let start = Instant::now();
    assert_eq!(slot(&node).await.unwrap_err(), TransportError::Timeout);
    assert_eq!(start.elapsed(), TIMEOUT);
    always(|f| (f.slow_body, f.slow_for) = (Rate::ALWAYS, Duration::from_secs(3)));
    let start = Instant::now();
    assert_eq!(slot(&node).await.unwrap().status, 200);
    assert!(start.elapsed() >= Duration::from_secs(3));
    always(|f| f.latency = Duration::from_millis(120));
    let start = Instant::now();
    slot(&node).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(120));
    let stats = node.stats();
    assert_eq!((stats.requests, stats.calls_of("getSlot")), (9, 3));
    assert_eq!(stats.faults.values().sum::<u64>(), 8, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn each_fault_of_a_call_does_what_it_says() {
    let (model, node) = node();
    let address = model.add_named("w", WalletPlan { burst: 9, ..WalletPlan::trades(400) });
    node.set_faults(Faults { wrong_id: Rate::ALWAYS, ..Faults::none() });
    assert_ne!(read(&slot(&node).await.unwrap())["id"], 1);
    node.set_faults(Faults { null_result: Rate::ALWAYS, ..Faults::none() });
    assert_eq!(read(&slot(&node).await.unwrap())["result"], Value::Null);
    node.set_faults(Faults { busy: Rate::ALWAYS, ..Faults::none() });
    assert_eq!(read(&slot(&node).await.unwrap())["error"]["code"], -32005);
    node.set_faults(Faults { head_back: Rate::ALWAYS, head_back_slots: 70, ..Faults::none() });
    assert_eq!(read(&slot(&node).await.unwrap())["result"], json!(model.head() - 70));

    let page = async |faults, before: Option<&Value>| {
        node.set_faults(faults);
        let options = json!({"limit": 50, "before": before});
        let body = call(1, "getSignaturesForAddress", json!([address.to_string(), options]));
        read(&send(&node, &body).await.unwrap())["result"].as_array().unwrap().clone()
    };
    let plain = page(Faults::none(), None).await;
    assert!(page(Faults { empty_page: Rate::ALWAYS, ..Faults::none() }, None).await.is_empty());
    let doubled = page(Faults { duplicate: Rate::ALWAYS, ..Faults::none() }, None).await;
    assert_eq!((&doubled[0], &doubled[1], doubled.len()), (&plain[0], &plain[0], 50));
    let short = page(Faults { short_page: Rate::ALWAYS, ..Faults::none() }, None).await;
    assert!((5..50).contains(&short.len()) && plain.starts_with(&short), "{} entries", short.len());
    let same_slot = plain.windows(2).position(|pair| pair[0]["slot"] == pair[1]["slot"]).unwrap();
    let (cursor, next) = (&plain[same_slot]["signature"], &plain[same_slot + 1]);
    let lost = page(Faults { lost: Rate::ALWAYS, ..Faults::none() }, Some(cursor)).await;
    assert!(!lost.contains(next) && lost.contains(&plain[same_slot + 2]));

    // Flips stay inside a slot, differ between calls, and lose nothing when pages do not cut one.
    let flipped = Faults { flipped_order: Rate::ALWAYS, ..Faults::none() };
    let (first, second) = (page(flipped.clone(), None).await, page(flipped, None).await);
    let slots = |list: &[Value]| list.iter().map(|e| e["slot"].clone()).collect::<Vec<_>>();
    assert_eq!((slots(&first), slots(&second)), (slots(&plain), slots(&plain)));
    assert_ne!(first, second);
}

/// For each family and each look-up.
#[test]
fn the_transaction_that_a_node_fails_on_is_an_error_and_others_are_given() {
    let registry = Registry::embedded().unwrap();
    let rpc = |method, id: TxId| {
        let options = json!({"encoding": "json", "maxSupportedTransactionVersion": 1});
        (String::new(), call(1, method, json!([id.to_string(), options])))
    };
    let post = |path: &str, id: TxId| (path.to_owned(), json!({"value": id.to_string()}));
    let is_given = |node: &DemoNode, (path, body): (String, Value)| {
        let (status, body) = node.fetch(&path, Some(body.to_string().as_bytes())).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let fails = body["error"].is_object() || body["Error"].is_string();
        let is_any =
            body["result"].is_object() || body["id"].is_string() || body["txID"].is_string();
        assert!(status == 200 && fails != is_any, "{body}");
        is_any
    };
    let holds = |node: &DemoNode, ids: &[TxId], ask: &dyn Fn(TxId) -> (String, Value)| {
        let (first, last) = (ids[0], *ids.last().unwrap());
        node.set_faults(Faults { fails_on: Some(first), ..Faults::none() });
        assert_eq!([first, last].map(|id| is_given(node, ask(id))), [false, true]);
        node.set_faults(Faults::none());
        assert!(is_given(node, ask(first)));
    };
    let (model, solana) = node();
    let wallet = model.add_named("wallet", WalletPlan::trades(5));
    let ids: Vec<TxId> = model.truth(wallet).map(|trade| trade.signature).collect();
    holds(&solana, &ids, &|id| rpc("getTransaction", id));
    for slug in ["eth", "tron"] {
        let model = EvmModel::new(5, registry.chain_named(slug).unwrap());
        let wallet = model.add_named("wallet", evm::WalletPlan::trades(5));
        let ids: Vec<TxId> = model.truth(wallet).map(|trade| trade.hash).collect();
        if slug == "tron" {
            let node = DemoNode::tron(model, 1);
            holds(&node, &ids, &|id| post("/walletsolidity/gettransactionbyid", id));
            holds(&node, &ids, &|id| post("/wallet/gettransactioninfobyid", id));
        } else {
            let node = DemoNode::evm(model, 1);
            for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
                holds(&node, &ids, &|id| rpc(method, id));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn batches_have_a_size_and_may_lose_their_order() {
    let (_, node) = node();
    let batch: Vec<Value> = (0..40).map(|id| call(id, "getSlot", json!([]))).collect();
    let ids = |answer: &Value| {
        answer.as_array().unwrap().iter().map(|a| a["id"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let plain = ids(&read(&send(&node, &json!(batch)).await.unwrap()));
    assert_eq!(plain, (0..40).collect::<Vec<_>>());
    node.set_faults(Faults { reordered: Rate::ALWAYS, ..Faults::none() });
    let shuffled = ids(&read(&send(&node, &json!(batch)).await.unwrap()));
    assert_ne!(shuffled, plain);
    assert_eq!(shuffled.iter().collect::<HashSet<_>>().len(), 40);
    node.set_options(NodeOptions { batch_max: 39, ..NodeOptions::default() });
    assert!(read(&send(&node, &json!(batch)).await.unwrap())["error"].is_object());
    node.set_faults(Faults::latency(Duration::from_millis(50)));
    tokio::join!(slot(&node), slot(&node), slot(&node)).0.unwrap();
    let stats = node.stats();
    assert_eq!((stats.batch_max, stats.concurrent_max), (40, 3));
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_counts_by_the_second() {
    let (_, node) = node();
    node.set_faults(Faults { requests_per_second: Some(5), ..Faults::none() });
    for second in 0..3 {
        for n in 0..8 {
            let status = slot(&node).await.unwrap().status;
            assert_eq!(status, if n < 5 { 200 } else { 429 }, "{second} {n}");
        }
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(node.stats().faults["requests_per_second"], 9);
}

#[tokio::test(start_paused = true)]
async fn a_storm_hits_about_as_often_as_it_says_and_always_the_same() {
    let run = async || {
        let (_, node) = node();
        node.set_faults(Faults::storm(Rate(20)));
        for _ in 0..2_000 {
            let _ = slot(&node).await;
        }
        node.stats()
    };
    let stats = run().await;
    for name in ["too_many", "unavailable", "silence", "cut_body", "html", "wrong_id", "busy"] {
        assert!((15..70).contains(&stats.faults[name]), "{name} {stats:?}");
    }
    assert_eq!(stats, run().await);
}

#[tokio::test]
async fn the_same_node_answers_on_a_port() {
    let (model, node) = node();
    let limits = LoopbackLimits { request_max: 1_000, ..LoopbackLimits::default() };
    let server = Loopback::bind(0, [("one".to_owned(), node.clone())], limits).await.unwrap();
    let (address, handle) = (server.address(), server.handle());
    assert_eq!(server.url("one"), format!("http://{address}/one"));
    let exchange = async |path: &str, body: &str| {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (kind, length) = ("application/json", body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let client =
        async {
            let body = call(3, "getSlot", json!([])).to_string();
            let answer = exchange("/one", &body).await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            assert!(answer.ends_with(&format!(
                "{{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":3}}",
                model.head()
            )));
            assert!(exchange("/two", &body).await.starts_with("HTTP/1.1 404 "));
            assert!(exchange("/one", &"x".repeat(1_001)).await.starts_with("HTTP/1.1 413 "));
            node.set_faults(Faults { cut_body: Rate::ALWAYS, ..Faults::none() });
            let cut = exchange("/one", &body).await;
            assert!(cut.starts_with("HTTP/1.1 200 ") && !cut.ends_with("0\r\n\r\n"), "{cut}");
            node.set_faults(Faults { html: Rate::ALWAYS, ..Faults::none() });
            assert!(exchange("/one", &body).await.contains("content-type: text/html\r\n"));
            let (too_many_with_wait, retry_after) = (Rate::ALWAYS, Duration::from_secs(7));
            node.set_faults(Faults { too_many_with_wait, retry_after, ..Faults::none() });
            assert!(exchange("/one", &body).await.contains("retry-after: 7\r\n"));
            handle.stop();
        };
    tokio::join!(server.run(), client);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
