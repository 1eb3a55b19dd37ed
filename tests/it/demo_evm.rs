//! The demo EVM chains' wire formats: each interface against the others, and all against a small
//! accounting that does not know how the chain is generated.

use std::collections::{BTreeMap, BTreeSet};

use blotter::demo::evm::{
    EvmModel, ExplorerOptions, LimitTexts, NodeOptions, TradeKind, TrueTrade, WalletPlan,
};
use blotter::demo::{DemoChains, DemoNode, DemoWallet, LARGE_TRADES_MAX, Loopback, LoopbackLimits};
use blotter::domain::{Address, Side, TxId, UnixSeconds};
use blotter::registry::Registry;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const DEPOSIT: &str = "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c";
const WITHDRAWAL: &str = "0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65";
const V2_SWAP: &str = "0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822";

fn chain(slug: &str) -> EvmModel {
    let registry = Registry::embedded().unwrap();
    EvmModel::new(3, registry.chain_named(slug).unwrap())
}

fn post(node: &DemoNode, method: &str, params: Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    serde_json::from_slice(&node.respond(call.to_string().as_bytes()).unwrap()).unwrap()
}

fn ask(node: &DemoNode, method: &str, params: Value) -> Value {
    let mut answer = post(node, method, params);
    assert!(answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].take()
}

fn refusal(node: &DemoNode, method: &str, params: Value) -> (i64, String) {
    let error = post(node, method, params)["error"].take();
    (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
}

fn number(value: &Value) -> u128 {
    u128::from_str_radix(value.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

/// The low 128 bits of a word of an event's data.
fn word(log: &Value, at: usize) -> u128 {
    let data = log["data"].as_str().unwrap();
    u128::from_str_radix(&data[2 + at * 64 + 32..2 + at * 64 + 64], 16).unwrap()
}

fn lower(address: Address) -> String {
    address.to_string().to_lowercase()
}

fn topic(address: &str) -> String {
    format!("0x{}{}", "0".repeat(24), address.trim_start_matches("0x"))
}

fn hash(id: TxId) -> String {
    id.to_string()
}

/// What one transaction moved for a wallet: native coin in all calls, tokens by contract.
#[derive(Debug, Default)]
struct Moved {
    native: i128,
    tokens: BTreeMap<String, i128>,
}

/// Adds what a call and its subcalls moved, unless they were reverted.
fn add_calls(call: &Value, wallet: &str, native: &mut i128) {
    if call.get("error").is_some() {
        return;
    }
    if call["type"] == "CALL" {
        let value = i128::try_from(number(&call["value"])).unwrap();
        *native += if call["to"] == wallet { value } else { 0 };
        *native -= if call["from"] == wallet { value } else { 0 };
    }
    for inner in call["calls"].as_array().into_iter().flatten() {
        add_calls(inner, wallet, native);
    }
}

fn moved(node: &DemoNode, wrapped: &str, wallet: &str, hash: &str) -> Moved {
    let trace = ask(node, "debug_traceTransaction", json!([hash, {"tracer": "callTracer"}]));
    let receipt = ask(node, "eth_getTransactionReceipt", json!([hash]));
    let mut moved = Moved::default();
    add_calls(&trace, wallet, &mut moved.native);
    for log in receipt["logs"].as_array().unwrap() {
        let topics = log["topics"].as_array().unwrap();
        let token = log["address"].as_str().unwrap().to_owned();
        let mut add = |units: i128| *moved.tokens.entry(token.clone()).or_default() += units;
        if topics[0] == TRANSFER && topics.len() == 3 {
            let units = i128::try_from(word(log, 0)).unwrap();
            add(if topics[2] == topic(wallet) { units } else { 0 });
            add(if topics[1] == topic(wallet) { -units } else { 0 });
        }
        if token == wrapped && topics[1] == topic(wallet) {
            let units = i128::try_from(word(log, 0)).unwrap();
            add(if topics[0] == DEPOSIT { units } else { 0 });
            add(if topics[0] == WITHDRAWAL { -units } else { 0 });
        }
    }
    moved.tokens.retain(|_, units| *units != 0);
    moved
}

fn fee(node: &DemoNode, wallet: &str, hash: &str) -> u128 {
    let receipt = ask(node, "eth_getTransactionReceipt", json!([hash]));
    if receipt["from"] != wallet {
        return 0;
    }
    let l1 = receipt.get("l1Fee").map_or(0, number);
    number(&receipt["gasUsed"]) * number(&receipt["effectiveGasPrice"]) + l1
}

const WETH: &str = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2";
const WETH_BASE: &str = "0x4200000000000000000000000000000000000006";

#[test]
fn the_truth_is_what_the_transactions_moved() {
    for (slug, wrapped) in [("eth", WETH), ("base", WETH_BASE)] {
        let model = chain(slug);
        let node = DemoNode::evm(model.clone(), 1);
        let address = model.add_named("accountant", WalletPlan::trades(150));
        let (wallet, mut kinds) = (lower(address), BTreeSet::new());
        let truth: Vec<TrueTrade> = model.truth(address).collect();
        for rows in truth.chunk_by(|a, b| a.hash == b.hash) {
            let moved = moved(&node, wrapped, &wallet, &hash(rows[0].hash));
            let returned: BTreeMap<String, i128> = rows
                .iter()
                .map(|row| {
                    let units: i128 = row.units.to();
                    (lower(row.token), if row.side == Side::Buy { units } else { -units })
                })
                .collect();
            assert_eq!(moved.tokens, returned, "{:?}", rows[0].kind);
            if let [row] = rows {
                let native: i128 = row.native.unwrap().to();
                let expected = if row.side == Side::Buy { -native } else { native };
                assert_eq!(moved.native, expected, "{:?}", row.kind);
            } else {
                assert_eq!(moved.native, 0);
            }
            kinds.insert(format!("{:?}", rows[0].kind));
        }
        // Two kinds occur only on Tron.
        assert_eq!(kinds.len(), TradeKind::ALL.len() - 2, "{kinds:?}");
    }
}

#[test]
fn balances_and_nonces_follow_the_transactions() {
    for (slug, wrapped) in [("eth", WETH), ("base", WETH_BASE)] {
        let model = chain(slug);
        let node = DemoNode::evm(model.clone(), 1);
        let plan = WalletPlan { noise_percent: 40, failed_percent: 12, ..WalletPlan::trades(160) };
        let address = model.add_named("balances", plan);
        let wallet = lower(address);
        let mut all: Vec<String> = model.transactions_of(address).map(|(id, _)| hash(id)).collect();
        all.reverse();
        let (mut balance, mut sent, mut held) = (0_i128, 0, BTreeMap::new());
        let mut last = 0;
        for (at, hash) in all.iter().enumerate() {
            let tx = ask(&node, "eth_getTransactionByHash", json!([hash]));
            let height = number(&tx["blockNumber"]);
            assert!(height >= last);
            if tx["from"] == wallet.as_str() {
                assert_eq!(number(&tx["nonce"]), sent);
                sent += 1;
            }
            let moved = moved(&node, wrapped, &wallet, hash);
            balance += moved.native - i128::try_from(fee(&node, &wallet, hash)).unwrap();
            assert!(balance >= 0, "{hash}");
            for (token, units) in moved.tokens {
                let held: &mut i128 = held.entry(token).or_default();
                *held += units;
                assert!(*held >= 0, "{hash} gives more than there is");
            }
            last = height;
            let next = all.get(at + 1).map(|next| {
                number(&ask(&node, "eth_getTransactionByHash", json!([next]))["blockNumber"])
            });
            if next != Some(height) {
                let block = format!("{height:#x}");
                let returned = ask(&node, "eth_getBalance", json!([wallet, block]));
                assert_eq!(i128::try_from(number(&returned)).unwrap(), balance, "{at} {hash}");
                let returned = ask(&node, "eth_getTransactionCount", json!([wallet, block]));
                assert_eq!(number(&returned), sent);
            }
        }
    }
}

#[test]
fn a_log_query_gives_what_the_receipts_hold() {
    let model = chain("eth");
    let node = DemoNode::evm(model.clone(), 1);
    let address =
        model.add_named("logs", WalletPlan { noise_percent: 45, ..WalletPlan::trades(120) });
    let wallet = topic(&lower(address));
    let all: Vec<Value> = model
        .transactions_of(address)
        .flat_map(|(id, _)| {
            let receipt = ask(&node, "eth_getTransactionReceipt", json!([hash(id)]));
            receipt["logs"].as_array().unwrap().clone()
        })
        .collect();
    let mut places = BTreeSet::new();
    for log in &all {
        assert!(places.insert((number(&log["blockNumber"]), number(&log["logIndex"]))));
    }
    let check = |topics: Value, fits: &dyn Fn(&Vec<Value>) -> bool| {
        let query = json!({"fromBlock": "0x0", "toBlock": "finalized", "topics": topics});
        let got = ask(&node, "eth_getLogs", json!([query])).as_array().unwrap().clone();
        let mut expected: Vec<Value> =
            all.iter().filter(|log| fits(log["topics"].as_array().unwrap())).cloned().collect();
        expected.sort_by_key(|log| (number(&log["blockNumber"]), number(&log["logIndex"])));
        assert!(!got.is_empty());
        assert_eq!(got, expected);
    };
    check(json!([TRANSFER, wallet]), &|topics| {
        topics[0] == TRANSFER && topics.get(1).is_some_and(|topic| *topic == wallet.as_str())
    });
    check(json!([[TRANSFER, DEPOSIT], null, wallet]), &|topics| {
        topics[0] == TRANSFER && topics.get(2).is_some_and(|topic| *topic == wallet.as_str())
    });
    check(json!([V2_SWAP]), &|topics| topics[0] == V2_SWAP);
}

#[test]
fn a_log_query_that_is_too_large_is_refused_in_the_words_of_its_node() {
    let model = chain("eth");
    let node = DemoNode::evm(model.clone(), 1);
    let address = model.add_named("limits", WalletPlan::trades(100));
    let topics = json!([TRANSFER, null, topic(&lower(address))]);
    let query = json!([{"fromBlock": "0x1", "toBlock": "0x1000000", "topics": topics}]);
    let says = |texts, log_blocks_max, logs_max| {
        let options = NodeOptions { texts, log_blocks_max, logs_max, ..NodeOptions::default() };
        node.set_options(options);
        let all = json!([{"fromBlock": "0x1", "toBlock": "latest", "topics": topics}]);
        let query = if log_blocks_max.is_some() { query.clone() } else { all };
        refusal(&node, "eth_getLogs", query)
    };
    assert_eq!(
        says(LimitTexts::Infura, Some(10_000), None),
        (-32602, "range 16777216 exceeds limit of 10000".to_owned())
    );
    assert_eq!(
        says(LimitTexts::PublicNode, Some(50_000), None).1,
        "exceed maximum block range: 50000"
    );
    assert_eq!(
        says(LimitTexts::Reth, Some(100_000), None).1,
        "query exceeds max block range 100000"
    );
    let (code, text) = says(LimitTexts::Alchemy, Some(500), None);
    assert_eq!(code, -32600);
    assert!(text.ends_with("this block range should work: [0x1, 0x1f4]"), "{text}");
    let (code, text) = says(LimitTexts::Infura, None, Some(10));
    assert_eq!(code, -32005);
    // The range that the error suggests works, and has as many logs as fit.
    let range = text.split('[').nth(1).unwrap().trim_end_matches([']', '.']).to_owned();
    let (from, to) = range.split_once(", ").unwrap();
    let logs =
        ask(&node, "eth_getLogs", json!([{"fromBlock": from, "toBlock": to, "topics": topics}]));
    assert!((1..=10).contains(&logs.as_array().unwrap().len()), "{text}");
    node.set_options(NodeOptions { logs: false, ..NodeOptions::default() });
    assert_eq!(refusal(&node, "eth_getLogs", query), (-32005, "limit exceeded".to_owned()));
}

#[test]
fn blocks_follow_each_other_and_tags_name_them() {
    let model = chain("base");
    let node = DemoNode::evm(model.clone(), 1);
    assert_eq!(ask(&node, "eth_chainId", json!([])), "0x2105");
    let block = |which: &str| ask(&node, "eth_getBlockByNumber", json!([which, false]));
    let (last, newest) = (block("finalized"), block("latest"));
    assert_eq!(number(&last["number"]), u128::from(model.head()));
    assert_eq!(number(&newest["number"]), u128::from(model.newest()));
    assert_eq!(newest["number"], ask(&node, "eth_blockNumber", json!([])));
    assert!(number(&block("safe")["number"]) > number(&last["number"]));
    let below = block(&format!("{:#x}", model.head() - 1));
    assert_eq!(last["parentHash"], below["hash"]);
    // Base has a block every two seconds; the model's head is the first second of 2026.
    assert_eq!(number(&last["timestamp"]), 1_767_225_600);
    assert_eq!(number(&below["timestamp"]), 1_767_225_598);
    assert_eq!(block(&format!("{:#x}", model.newest() + 1)), Value::Null);
    let address = model.add_named("blocks", WalletPlan::trades(30));
    let row = model.truth(address).next().unwrap();
    let found = block(&format!("{:#x}", row.height));
    assert!(found["transactions"].as_array().unwrap().contains(&json!(hash(row.hash))));
    // After a reorg the hashes differ, and the old ones are gone.
    model.reorg(row.height);
    assert_eq!(ask(&node, "eth_getTransactionByHash", json!([hash(row.hash)])), Value::Null);
    assert_ne!(block(&format!("{:#x}", row.height))["hash"], found["hash"]);
    let again = model.truth(address).next().unwrap();
    assert_eq!((again.height, again.units), (row.height, row.units));
    assert_ne!(again.hash, row.hash);
}

#[test]
fn what_a_node_does_not_offer_or_keep_it_refuses() {
    let model = chain("eth");
    let node = DemoNode::evm(model.clone(), 1);
    let address = model.add_named("offers", WalletPlan::trades(30));
    let id = hash(model.truth(address).next().unwrap().hash);
    node.set_options(NodeOptions {
        traces: false,
        state_blocks: Some(128),
        tags: false,
        first_available: model.head(),
        ..NodeOptions::default()
    });
    let traced = refusal(&node, "debug_traceTransaction", json!([id, {"tracer": "callTracer"}]));
    assert_eq!(traced.0, -32601);
    assert_eq!(refusal(&node, "alchemy_getAssetTransfers", json!([{}])).0, -32601);
    let old = refusal(&node, "eth_getBalance", json!([lower(address), "0x1000"]));
    assert!(old.1.starts_with("missing trie node"), "{}", old.1);
    assert_eq!(refusal(&node, "eth_getBlockByNumber", json!(["finalized", false])).0, -32602);
    assert_eq!(ask(&node, "eth_getTransactionReceipt", json!([id])), Value::Null);
    assert_eq!(node.fetch("", None).unwrap().0, 405);
}

#[test]
fn tokens_report_their_names() {
    let model = chain("eth");
    let node = DemoNode::evm(model.clone(), 1);
    let address = model.add_named("tokens", WalletPlan::trades(40));
    let call =
        |to: &str, data: &str| ask(&node, "eth_call", json!([{"to": to, "data": data}, "latest"]));
    // WETH: 18 decimals, and its symbol as an ABI string by hand.
    assert_eq!(number(&call(WETH, "0x313ce567")), 18);
    let symbol = format!("0x{:064x}{:064x}{:0<64}", 32, 4, hex::encode("WETH"));
    assert_eq!(call(WETH, "0x95d89b41"), symbol);
    let usdc = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48";
    assert_eq!(number(&call(usdc, "0x313ce567")), 6);
    let coin = lower(model.truth(address).find(|t| lower(t.token) != usdc).unwrap().token);
    assert!(call(&coin, "0x95d89b41").as_str().unwrap().len() >= 66);
    assert_eq!(refusal(&node, "eth_call", json!([{"to": WETH, "data": "0x12345678"}])).0, 3);
    // An account without code gives nothing.
    assert_eq!(call(&lower(address), "0x313ce567"), "0x");
}

fn get(lists: &DemoNode, query: &str) -> Value {
    let (status, body) = lists.fetch(query, None).unwrap();
    assert_eq!(status, 200);
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn account_lists_return_what_the_chain_does() {
    let model = chain("base");
    let (node, lists) = (DemoNode::evm(model.clone(), 1), DemoNode::explorer(model.clone(), 1));
    let plan = WalletPlan { noise_percent: 45, failed_percent: 10, ..WalletPlan::trades(80) };
    let address = model.add_named("lists", plan);
    let wallet = lower(address);
    let list = |action: &str, more: &str| {
        get(
            &lists,
            &format!(
                "?module=account&action={action}&address={wallet}&endblock={}{more}",
                model.head()
            ),
        )["result"]
            .take()
    };
    let of = |rows: &Value| -> BTreeSet<String> {
        let rows = rows.as_array().unwrap();
        rows.iter().map(|row| row["hash"].as_str().unwrap().to_owned()).collect()
    };
    let (mut outer, mut tokens, mut calls) = (BTreeSet::new(), BTreeSet::new(), 0_i128);
    for (id, _) in model.transactions_of(address) {
        let id = hash(id);
        let tx = ask(&node, "eth_getTransactionByHash", json!([id]));
        let receipt = ask(&node, "eth_getTransactionReceipt", json!([id]));
        let mine = |end: &Value| *end == wallet.as_str();
        if mine(&tx["from"]) || mine(&tx["to"]) {
            outer.insert(id.clone());
        }
        let padded = topic(&wallet);
        let names = |log: &Value| {
            let topics = log["topics"].as_array().unwrap();
            topics[0] == TRANSFER && topics.len() == 3 && topics[1..].contains(&json!(padded))
        };
        if receipt["logs"].as_array().unwrap().iter().any(names) {
            tokens.insert(id.clone());
        }
        let trace = ask(&node, "debug_traceTransaction", json!([id, {"tracer": "callTracer"}]));
        for inner in trace["calls"].as_array().into_iter().flatten() {
            if trace.get("error").is_none() {
                add_calls(inner, &wallet, &mut calls);
            }
        }
    }
    let sorted = |sort: &str| list("txlist", &format!("&sort={sort}"));
    assert_eq!(of(&sorted("asc")), outer);
    let mut reversed = sorted("desc").as_array().unwrap().clone();
    reversed.reverse();
    assert_eq!(json!(reversed), sorted("asc"));
    assert_eq!(of(&list("tokentx", "")), tokens);
    let returned = list("txlistinternal", "");
    let returned: i128 = returned
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["isError"] == "0")
        .map(|row| {
            let value: i128 = row["value"].as_str().unwrap().parse().unwrap();
            if row["to"] == wallet.as_str() { value } else { -value }
        })
        .sum();
    assert_eq!(returned, calls);
}

#[test]
fn account_lists_have_pages_caps_heads_and_errors() {
    let model = chain("base");
    let lists = DemoNode::explorer(model.clone(), 1);
    let wallet = lower(model.add_named("pages", WalletPlan::trades(80)));
    let get = |query: &str| get(&lists, query);
    let tokens = |more: &str| {
        let head = model.head();
        let action = "module=account&action=tokentx";
        get(&format!("?{action}&address={wallet}&endblock={head}&sort=desc{more}"))["result"].take()
    };
    let page = |page: u32| tokens(&format!("&page={page}&offset=7"));
    let all = tokens("");
    assert_eq!(page(2), json!(all.as_array().unwrap()[7..14]));
    lists.set_options(ExplorerOptions { rows_max: 5, ..ExplorerOptions::default() });
    assert_eq!(page(1), json!(all.as_array().unwrap()[..5]));
    let head = get("?module=proxy&action=eth_blockNumber");
    assert_eq!(number(&head["result"]), u128::from(model.newest()));
    let wide = format!("?module=account&action=txlist&address={wallet}&page=11&offset=1000");
    let refused = get(&wide);
    assert_eq!((&refused["status"], &refused["message"]), (&json!("0"), &json!("NOTOK")));
    let none = get(&format!("?module=account&action=tokentx&address={wallet}&endblock=1"));
    assert_eq!(none, json!({"status": "0", "message": "No transactions found", "result": []}));
}

#[test]
fn the_gateway_returns_what_the_chain_does() {
    let model = chain("eth");
    let (node, portal) = (DemoNode::evm(model.clone(), 1), DemoNode::portal(model.clone(), 1));
    let address = model.add_named("gateway", WalletPlan::trades(60));
    let wallet = lower(address);
    let (status, head) = portal.fetch("/finalized-head", None).unwrap();
    let head: Value = serde_json::from_slice(&head).unwrap();
    assert_eq!((status, head["number"].as_u64()), (200, Some(model.head())));
    let query = |from: u64| {
        json!({
            "type": "evm", "fromBlock": from, "toBlock": model.head(),
            "fields": {
                "block": {"timestamp": true},
                "transaction": {"hash": true, "transactionIndex": true},
                "log": {"logIndex": true, "address": true, "topics": true, "data": true},
                "trace": {"transactionIndex": true, "traceAddress": true, "callTo": true, "callValue": true},
            },
            "logs": [{
                "topic0": [TRANSFER], "topic1": [topic(&wallet)], "transaction": true,
                "transactionLogs": true, "transactionTraces": true,
            }],
        })
    };
    let stream = |from: u64| {
        let body = query(from).to_string();
        let (status, lines) = portal.fetch("/finalized-stream", Some(body.as_bytes())).unwrap();
        assert_eq!(status, 200);
        let lines = String::from_utf8(lines).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let blocks = stream(0);
    assert_eq!(blocks.last().unwrap()["header"]["number"], model.head());
    assert!(blocks.iter().all(|block| block["header"].get("hash").is_none()));
    let expected: BTreeSet<String> = model
        .transactions_of(address)
        .map(|(id, _)| hash(id))
        .filter(|id| {
            let receipt = ask(&node, "eth_getTransactionReceipt", json!([id]));
            receipt["logs"]
                .as_array()
                .unwrap()
                .iter()
                .any(|log| log["topics"][0] == TRANSFER && log["topics"][1] == topic(&wallet))
        })
        .collect();
    let mut found = BTreeSet::new();
    for block in &blocks {
        for tx in block["transactions"].as_array().into_iter().flatten() {
            let id = tx["hash"].as_str().unwrap();
            found.insert(id.to_owned());
            if block["transactions"].as_array().unwrap().len() == 1 {
                let receipt = ask(&node, "eth_getTransactionReceipt", json!([id]));
                let logs = receipt["logs"].as_array().unwrap();
                assert_eq!(block["logs"].as_array().unwrap().len(), logs.len());
                for (got, log) in block["logs"].as_array().unwrap().iter().zip(logs) {
                    assert_eq!(
                        u128::from(got["logIndex"].as_u64().unwrap()),
                        number(&log["logIndex"])
                    );
                    assert_eq!((&got["topics"], &got["data"]), (&log["topics"], &log["data"]));
                }
                let trace = &block["traces"][0];
                assert_eq!(trace["traceAddress"], json!([]));
                let tx = ask(&node, "eth_getTransactionByHash", json!([id]));
                assert_eq!(trace["action"], json!({"to": tx["to"], "value": tx["value"]}));
            }
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn the_gateway_says_where_it_ends_and_what_it_does_not_understand() {
    let model = chain("eth");
    let portal = DemoNode::portal(model.clone(), 1);
    let from = |height: u64| json!({"type": "evm", "fromBlock": height}).to_string();
    let status = |path: &str, body: &str| portal.fetch(path, Some(body.as_bytes())).unwrap().0;
    assert_eq!(status("/finalized-stream", &from(model.head())), 200);
    assert_eq!(status("/finalized-stream", &from(model.head() + 1)), 204);
    assert_eq!(status("/stream", &from(model.head() + 1)), 200);
    assert_eq!(status("/stream", "{}"), 400);
    assert_eq!(status("/else", "{}"), 404);
    let (_, metadata) = portal.fetch("/metadata", None).unwrap();
    let metadata: Value = serde_json::from_slice(&metadata).unwrap();
    assert_eq!(metadata["start_block"], 0);
}

#[test]
fn the_history_goes_on_as_the_head_moves() {
    let model = chain("base");
    let plan = WalletPlan { live_every: Some(100), ..WalletPlan::trades(50) };
    let address = model.add_named("live", plan);
    let before: Vec<TrueTrade> = model.truth(address).collect();
    model.advance(100_000);
    let after: Vec<TrueTrade> = model.truth(address).collect();
    assert!(after.len() > before.len() + 300);
    assert_eq!(after[after.len() - before.len()..], before);
    let head = model.arrive(address, 5);
    let arrived: Vec<TrueTrade> = model.truth(address).collect();
    let new = &arrived[..arrived.len() - after.len()];
    assert!((5..=10).contains(&new.len()), "{}", new.len());
    assert!(new.iter().all(|row| row.height <= head));
}

#[test]
fn a_large_history_costs_no_more_than_a_small_one() {
    let model = chain("base");
    let node = DemoNode::evm(model.clone(), 1);
    let address = model.add_named("million", WalletPlan::trades(1_000_000));
    assert!(model.transaction_count(address) > 1_300_000);
    let row = model.truth(address).next().unwrap();
    let from = format!("{:#x}", row.height - 1_000);
    let topics = json!([TRANSFER, null, topic(&lower(address))]);
    let logs = ask(
        &node,
        "eth_getLogs",
        json!([{"fromBlock": from, "toBlock": "latest", "topics": topics}]),
    );
    assert!(!logs.as_array().unwrap().is_empty());
    let balance = ask(&node, "eth_getBalance", json!([lower(address), "latest"]));
    assert!(number(&balance) > 0);
}

#[test]
fn all_chains_come_out_of_one_number() {
    let registry = Registry::embedded().unwrap();
    let chains = DemoChains::new(9, &registry);
    let slugs: Vec<&str> = chains.slugs().collect();
    assert_eq!(slugs[0], "sol");
    for slug in ["eth", "base", "bsc", "hyperevm", "monad", "robinhood"] {
        assert!(slugs.contains(&slug), "{slugs:?}");
        let paths = chains.paths(slug).unwrap();
        assert_eq!(paths.rpc, format!("evm/{slug}"));
        let nodes = chains.nodes();
        let (_, node) = nodes.iter().find(|(path, _)| *path == paths.rpc).unwrap();
        let returned = number(&ask(node, "eth_chainId", json!([])));
        let expected = registry.chain_named(slug).unwrap().chain_id.unwrap();
        assert_eq!(returned, u128::from(expected));
        let all = [paths.explorer.unwrap(), paths.portal.unwrap()];
        assert!(all.iter().all(|path| nodes.iter().any(|(name, _)| name == path)));
    }
    let samples = chains.add_samples(LARGE_TRADES_MAX);
    assert_eq!(samples.len(), slugs.len() * 2);
    let eth = chains.evm("eth").unwrap();
    let sample = samples.iter().find(|sample| sample.chain == "eth").unwrap();
    let rows = eth.truth(sample.address).count();
    assert!(rows >= 2_500, "{rows}");
    // The largest that can be asked for is whole below every chain's head: with the rest of a
    // hundred being failures and noise, the plan's last trade is there.
    for large in samples.iter().filter(|sample| sample.name == "large") {
        let count = chains.evm(&large.chain).map_or_else(
            || chains.solana().transaction_count(large.address) * 80 / 100,
            |model| model.transaction_count(large.address) * 70 / 100,
        );
        assert!(count.abs_diff(LARGE_TRADES_MAX) < 100, "{}: {count}", large.chain);
    }
    // A year later there are more.
    chains.follow(UnixSeconds(1_798_761_600));
    assert_eq!(eth.time_of(eth.head()), UnixSeconds(1_798_761_600));
    assert!(eth.truth(sample.address).count() > rows + 200);
}

/// On each chain a wallet trades while the demo runs, so that following it shows something.
#[test]
fn the_live_wallets_trade_on_as_the_heads_follow_the_clock() {
    let chains = DemoChains::new(9, &Registry::embedded().unwrap());
    chains.follow(UnixSeconds(1_798_761_600));
    let live = chains.add_live();
    assert_eq!(live.len(), chains.slugs().count());
    let trades = |wallet: &DemoWallet| match chains.evm(&wallet.chain) {
        Some(model) => model.truth(wallet.address).count(),
        None => chains.solana().truth(wallet.address).count(),
    };
    let before: Vec<usize> = live.iter().map(trades).collect();
    chains.follow(UnixSeconds(1_798_761_600 + 120));
    for (wallet, before) in live.iter().zip(before) {
        let new = trades(wallet) - before;
        assert!((60..100).contains(&before), "{}: {before} trades at first", wallet.chain);
        assert!((3..40).contains(&new), "{}: {new} trades in two minutes", wallet.chain);
    }
}

#[tokio::test]
async fn one_port_offers_every_interface_by_its_path() {
    let chains = DemoChains::new(9, &Registry::embedded().unwrap());
    let server = Loopback::bind(0, chains.nodes(), LoopbackLimits::default()).await.unwrap();
    let (address, handle) = (server.address(), server.handle());
    let exchange = async |head: &str, body: &str| {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let head = format!(
            "{head} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let client = async {
        let body = json!({"jsonrpc": "2.0", "id": 4, "method": "eth_chainId"}).to_string();
        let answer = exchange("POST /evm/base", &body).await;
        assert!(answer.ends_with(r#"{"jsonrpc":"2.0","result":"0x2105","id":4}"#), "{answer}");
        let list = exchange("GET /explorer/eth/api?module=account&action=other&x=1", "").await;
        assert!(list.contains("Missing Or invalid Action name"), "{list}");
        let head = exchange("GET /portal/eth/finalized-head", "").await;
        assert!(head.contains(r#""number":24136000"#), "{head}");
        assert!(exchange("GET /evm/eth", "").await.starts_with("HTTP/1.1 405 "));
        assert!(exchange("POST /evm/none", &body).await.starts_with("HTTP/1.1 404 "));
        assert!(exchange("DELETE /evm/eth", "").await.starts_with("HTTP/1.1 405 "));
        handle.stop();
    };
    tokio::join!(server.run(), client);
}
