//! Native coin that moved in inner calls: amounts that no endpoint has, and amounts that an
//! endpoint has not returned yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::lists_model::{POOL, ROUTER, SETTLEMENT, WALLET, lane};
use super::native::Traced;
use super::node_model::{NO_METHOD, NodeFault, PRUNED, ScriptedNodes, nodes};
use super::texts::hex_text;
use super::{EvmSource, Past, wire};
use crate::decode::evm::{Log, NativeFlows, NativeMove, TRANSFER, Terms, Transaction, WITHDRAWAL};
use crate::domain::Units;
use crate::rpc::{CallOptions, EndpointId};
use crate::sources::chunk::RawTx;

const BLOCK: u64 = 60_000;
const HASH: [u8; 32] = [9; 32];

fn sale() -> Transaction {
    Transaction {
        hash: HASH,
        block: BLOCK,
        index: 0,
        producer: None,
        from: WALLET,
        to: Some(ROUTER),
        value: Units::ZERO,
        selector: None,
        terms: Terms::default(),
        succeeded: true,
        logs: Vec::new(),
        native: NativeFlows::Unknown,
    }
}

fn trace() -> Value {
    let (from, to) = (hex_text(&ROUTER), hex_text(&WALLET));
    let paid = json!({"type": "CALL", "from": from, "to": to, "value": "0x1e"});
    json!({"type": "CALL", "from": to, "to": from, "value": "0x0", "calls": [paid]})
}

fn traced() -> NativeFlows {
    let paid = NativeMove { from: ROUTER, to: WALLET, value: Units::from(30_u64) };
    NativeFlows::Calls(vec![paid])
}

/// The wallet's balances before and after the block, and the block, which contains the sale alone.
fn state(method: &str, params: &Value) -> Result<Value, NodeFault> {
    match method {
        "eth_getBalance" if params[1] == format!("{BLOCK:#x}") => Ok("0x82".into()),
        "eth_getBalance" => Ok("0x64".into()),
        "eth_getBlockByNumber" => {
            let (from, to) = (hex_text(&WALLET), hex_text(&ROUTER));
            let sale = json!({"hash": hex_text(&HASH), "from": from, "to": to, "value": "0x0"});
            Ok(json!({"miner": to, "transactions": [sale]}))
        }
        _ => Err(NO_METHOD),
    }
}

fn by_balance() -> NativeFlows {
    NativeFlows::Net { gained: Units::from(30_u64), lost: Units::ZERO }
}

/// Nodes without traces and old states.
fn bare() -> Arc<ScriptedNodes> {
    nodes(|_, method, _| Err(if method == "eth_getBalance" { PRUNED } else { NO_METHOD }))
}

async fn flows(source: &EvmSource) -> NativeFlows {
    flows_with_fee(source, 0).await
}

async fn flows_with_fee(source: &EvmSource, fee: u64) -> NativeFlows {
    let mut tx = sale();
    let open = vec![Traced { tx: &mut tx, fee: Some(Units::from(fee)), alone: true }];
    source.fill_native(&WALLET, open, &CallOptions::new(lane())).await;
    tx.native
}

/// The node always traces only the outermost call.
#[tokio::test(start_paused = true)]
async fn a_trace_without_the_payment_that_an_event_names_is_not_believed() {
    let nodes = nodes(|_, method, params| match method {
        "debug_traceTransaction" => {
            let mut bare = trace();
            bare.as_object_mut().unwrap().remove("calls");
            Ok(bare)
        }
        _ => state(method, params),
    });
    let source = nodes.source(&["one"]);
    for (amount, expected) in [(30, by_balance()), (0, NativeFlows::Calls(Vec::new()))] {
        let address = source.inner.chain.wrapped_native.bytes().try_into().unwrap();
        let mut tx = sale();
        tx.logs = vec![Log { address, topics: vec![WITHDRAWAL].into(), data: vec![amount; 32] }];
        let open = vec![Traced { tx: &mut tx, fee: Some(Units::ZERO), alone: true }];
        source.fill_native(&WALLET, open, &CallOptions::new(lane())).await;
        assert_eq!(tx.native, expected, "{amount}");
    }
}

/// An endpoint whose chain is not confirmed yet is excluded, and may be the only one that traces.
#[tokio::test(start_paused = true)]
async fn what_the_others_lack_is_open_while_an_endpoint_is_left_out() {
    let nodes = nodes(|host, method, _| match (host, method) {
        ("archive", "debug_traceTransaction") => Ok(trace()),
        (_, "eth_getBalance") => Err(PRUNED),
        _ => Err(NO_METHOD),
    });
    let source = nodes.source(&["bare", "archive"]);
    let pool = source.inner.pool.clone();
    pool.exclude(EndpointId(1), Duration::from_secs(20));
    assert_eq!(flows(&source).await, NativeFlows::Refused);
    pool.release(EndpointId(1));
    assert_eq!(flows(&source).await, traced());
}

/// An endpoint that never answers does not prevent a history from completing.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_has_long_been_left_out_is_not_waited_for() {
    let source = bare().source(&["bare", "dead"]);
    for at in 0..=31 {
        source.inner.pool.exclude(EndpointId(1), Duration::from_secs(20));
        if at % 31 == 0 {
            let expected = if at == 0 { NativeFlows::Refused } else { NativeFlows::Gone };
            assert_eq!(flows(&source).await, expected, "{at}");
        }
        tokio::time::advance(Duration::from_secs(20)).await;
    }
}

/// If one answer were enough, the next transactions would lack amounts for ten minutes, and this
/// one for good.
#[tokio::test(start_paused = true)]
async fn one_answer_that_a_state_is_gone_is_no_proof() {
    let asked = AtomicUsize::new(0);
    let nodes = nodes(move |_, method, params| match method {
        "eth_getBalance" if asked.fetch_add(1, Ordering::Relaxed) < 2 => Err(PRUNED),
        _ => state(method, params),
    });
    assert_eq!(flows(&nodes.source(&["one"])).await, by_balance());
}

#[tokio::test(start_paused = true)]
async fn a_node_without_traces_and_old_states_leaves_an_amount_unknown_and_is_not_asked_on() {
    let nodes = bare();
    let source = nodes.source(&["one"]);
    assert_eq!(flows(&source).await, NativeFlows::Gone);
    let asked = nodes.count("eth_getBalance");
    assert_eq!(flows(&source).await, NativeFlows::Gone);
    assert_eq!(nodes.count("eth_getBalance"), asked);
}

/// An amount that no endpoint ever had was not available to an earlier read either.
#[tokio::test(start_paused = true)]
async fn an_amount_that_a_node_dropped_is_gone_and_one_that_none_ever_shows_is_unknown() {
    for (traces, balances, expected) in [
        (NO_METHOD, NO_METHOD, NativeFlows::Unknown),
        (PRUNED, NO_METHOD, NativeFlows::Gone),
        (NO_METHOD, PRUNED, NativeFlows::Gone),
    ] {
        let nodes = nodes(move |_, method, _| match method {
            "debug_traceTransaction" => Err(traces),
            "eth_getBalance" => Err(balances),
            _ => Err(NO_METHOD),
        });
        let source = nodes.source(&["one"]);
        // The second time no endpoint is asked.
        for _ in 0..2 {
            assert_eq!(flows(&source).await, expected);
        }
    }
}

/// An amount that counts as unknown would never be queried again.
#[tokio::test(start_paused = true)]
async fn an_amount_whose_balances_or_block_fail_for_now_is_open() {
    for (fails, fault) in [
        ("eth_getBalance", NodeFault::Broken),
        ("eth_getBlockByNumber", NodeFault::Broken),
        ("eth_getBalance", NodeFault::Rpc(-32000, "header not found")),
    ] {
        let asked = AtomicUsize::new(0);
        let nodes = nodes(move |_, method, params| {
            let is_hit = || asked.fetch_add(1, Ordering::Relaxed) < 24;
            if method == fails && is_hit() { Err(fault) } else { state(method, params) }
        });
        let source = nodes.source(&["one"]);
        assert_eq!(flows(&source).await, NativeFlows::Refused, "{fails}");
        for _ in 0..24 {
            tokio::time::advance(Duration::from_secs(60)).await;
            if flows(&source).await == by_balance() {
                break;
            }
        }
        assert_eq!(flows(&source).await, by_balance(), "{fails}");
    }
}

/// A server that once returns zero for a state that it lacks. The wallet had 100 before the sale
/// and 130 after it, and 1 was the fee.
#[tokio::test(start_paused = true)]
async fn a_balance_that_cannot_be_is_no_amount() {
    for lacking in [BLOCK - 1, BLOCK] {
        let is_asked = AtomicBool::new(false);
        let nodes = nodes(move |_, method, params| {
            let is_it = method == "eth_getBalance" && params[1] == format!("{lacking:#x}");
            let lacks = is_it && !is_asked.swap(true, Ordering::Relaxed);
            if lacks { Ok("0x0".into()) } else { state(method, params) }
        });
        let source = nodes.source(&["one"]);
        let all = NativeFlows::Net { gained: Units::from(31_u64), lost: Units::ZERO };
        assert_eq!(flows_with_fee(&source, 1).await, all, "{lacking}");
    }
}

/// One answer leaves the payment out, shows a failure, or is of another transaction.
#[tokio::test(start_paused = true)]
async fn a_trace_that_contradicts_its_transaction_is_asked_for_again() {
    let (router, wallet) = (hex_text(&ROUTER), hex_text(&WALLET));
    let entry = |from: &str, to: &str, value: &str, subtraces: u32, at: &[u32]| {
        json!({
            "type": "call", "subtraces": subtraces, "traceAddress": at,
            "action": {"callType": "call", "from": from, "to": to, "value": value},
        })
    };
    let whole = [entry(&wallet, &router, "0x0", 1, &[]), entry(&router, &wallet, "0x1e", 0, &[0])];
    let (mut failed, mut others) = (whole.clone(), whole.clone());
    failed[0]["error"] = "out of gas".into();
    others[0]["action"]["value"] = "0x1".into();
    others[1]["action"]["value"] = "0x1f".into();
    for wrong in [json!(whole[..1]), json!(failed), json!(others)] {
        let (is_asked, right) = (AtomicBool::new(false), json!(whole));
        let nodes = nodes(move |_, method, _| match method {
            "trace_transaction" if is_asked.swap(true, Ordering::Relaxed) => Ok(right.clone()),
            "trace_transaction" => Ok(wrong.clone()),
            _ => Err(NO_METHOD),
        });
        assert_eq!(flows(&nodes.source(&["one"])).await, traced());
    }
}

/// A trace without calls is accepted after two such answers, as is one of which only precompiled
/// contracts may be missing; an unreadable one does not count, and one that ends below some level
/// is none.
#[tokio::test(start_paused = true)]
async fn one_trace_that_leaves_out_calls_is_not_believed_after_an_unreadable_one() {
    let (wallet, router) = (hex_text(&WALLET), hex_text(&ROUTER));
    let entry = |from: &str, to: &str, at: &[u32]| {
        json!({
            "type": "call", "subtraces": 1, "traceAddress": at,
            "action": {"callType": "call", "from": from, "to": to, "value": "0x0"},
        })
    };
    let outermost = entry(&wallet, &router, &[]);
    let ended = json!([outermost, entry(&router, &hex_text(&POOL), &[0])]);
    let mut stated = ended.clone();
    stated.as_array_mut().unwrap().iter_mut().for_each(|call| call["error"] = Value::Null);
    let mut own = json!([outermost, entry(&router, &router, &[0])]);
    own[1]["action"]["value"] = "0x5".into();
    let hollow = json!([outermost]);
    let mut created = json!([outermost, entry(&router, &hex_text(&POOL), &[0])]);
    created[1]["type"] = "create".into();
    let mut numbered = json!([outermost, entry(&router, &hex_text(&POOL), &[1])]);
    (numbered[0]["subtraces"], numbered[1]["subtraces"]) = (2.into(), 0.into());
    let none = NativeFlows::Calls(Vec::new());
    for (first, second, expected) in [
        (json!("cut"), hollow.clone(), NativeFlows::Refused),
        (hollow.clone(), hollow, none.clone()),
        (own.clone(), own, none.clone()),
        (created.clone(), created, none.clone()),
        (json!("cut"), numbered.clone(), NativeFlows::Refused),
        (numbered.clone(), numbered, none),
        (ended.clone(), ended, NativeFlows::Refused),
        (stated.clone(), stated, NativeFlows::Refused),
    ] {
        let is_asked = AtomicBool::new(false);
        let nodes = nodes(move |_, method, _| match method {
            "trace_transaction" if is_asked.swap(true, Ordering::Relaxed) => Ok(second.clone()),
            "trace_transaction" => Ok(first.clone()),
            _ => Err(NO_METHOD),
        });
        assert_eq!(flows(&nodes.source(&["one"])).await, expected);
    }
}

/// The same holds where traces are known to be gone already.
#[tokio::test(start_paused = true)]
async fn states_that_the_others_lack_are_open_while_an_endpoint_is_left_out() {
    let nodes = nodes(|host, method, params| match host {
        "archive" => state(method, params),
        _ if method == "eth_getBalance" => Err(PRUNED),
        _ => state(method, params),
    });
    let source = nodes.source(&["bare", "archive"]);
    source.note_pruned(Past::Traces, BLOCK);
    source.inner.pool.exclude(EndpointId(1), Duration::from_secs(20));
    assert_eq!(flows(&source).await, NativeFlows::Refused);
    source.inner.pool.release(EndpointId(1));
    assert_eq!(flows(&source).await, by_balance());
}

/// The log of a token transfer by the transaction `hash` in the wallet's block.
fn sold(hash: &[u8; 32]) -> Value {
    json!({
        "address": hex_text(&POOL), "data": format!("0x{:064x}", 7), "blockNumber": format!("{BLOCK:#x}"),
        "transactionHash": hex_text(hash), "transactionIndex": "0x0", "removed": false,
        "topics": [hex_text(&TRANSFER), wire::topic(&WALLET), wire::topic(&POOL)],
    })
}

/// Reads the sale by its hash from an archive node without traces, whose block has these transfers.
async fn reread(transfers: Vec<Value>) -> NativeFlows {
    let nodes = nodes(move |_, method, params| match method {
        "eth_getTransactionByHash" => Ok(json!({
            "hash": hex_text(&HASH), "blockNumber": format!("{BLOCK:#x}"), "transactionIndex": "0x0",
            "value": "0x0", "from": hex_text(&WALLET), "to": hex_text(&SETTLEMENT), "input": "0x",
        })),
        "eth_getTransactionReceipt" => Ok(json!({
            "transactionHash": hex_text(&HASH), "blockNumber": format!("{BLOCK:#x}"), "status": "0x1",
            "gasUsed": "0x0", "effectiveGasPrice": "0x1", "logs": [sold(&HASH)], "type": "0x2",
        })),
        "eth_getLogs" => Ok(json!(transfers)),
        "eth_getBlockByNumber" if params[1] == false => Ok(json!({
            "number": params[0], "hash": hex_text(&[1; 32]), "timestamp": "0x1",
            "transactions": [hex_text(&HASH)],
        })),
        _ => state(method, params),
    });
    let (source, options) = (nodes.source(&["one"]), CallOptions::new(lane()));
    let found = source.single(HASH, &WALLET, &options).await.unwrap().unwrap();
    let RawTx::Evm(tx, _) = found.raw else { panic!("of another family") };
    tx.native
}

/// A pending row is read again in this way: without the balances its amount would stay unknown.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_is_read_by_its_hash_has_what_its_balances_show() {
    assert_eq!(reread(vec![sold(&HASH)]).await, by_balance());
    // Another transaction of the block may have paid the wallet, and a node that lacks the logs of
    // the block proves nothing.
    assert_eq!(reread(vec![sold(&HASH), sold(&[8; 32])]).await, NativeFlows::Unknown);
    assert_eq!(reread(Vec::new()).await, NativeFlows::Refused);
}
