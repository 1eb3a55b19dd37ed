//! Simulated nodes for unit tests: a function answers by host, path and body.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{TronLimits, TronSource};
use crate::registry::Registry;
use crate::rpc::scripted::{Answered, rpc as answers};
pub(super) use crate::rpc::scripted::{ScriptedNodes, options};

/// A source of the main chain whose endpoints have these hosts.
pub(super) fn source(hosts: &[&str], nodes: &Arc<ScriptedNodes>, limits: TronLimits) -> TronSource {
    let chains = Registry::embedded().unwrap();
    TronSource::new(nodes.pool(hosts), chains.chain_named("tron").unwrap(), limits)
}

/// Answers JSON-RPC calls, single or batched, by method and first parameter.
pub(super) fn rpc(body: &Value, answer: impl Fn(&str, &Value) -> Value) -> Answered {
    answers(body, |method, params| Ok(answer(method, &params[0])))
}

/// A block's header.
pub(super) fn block(height: u64, millis: u64) -> Value {
    json!({"blockID": format!("{height:064x}"),
           "block_header": {"raw_data": {"number": height, "timestamp": millis}}})
}

/// Answers `wallet/getblock` for a chain with a block every three seconds.
pub(super) fn header(body: &Value) -> Answered {
    let height = body["id_or_num"].as_str().unwrap().parse().unwrap();
    (200, block(height, height * 3_000))
}

/// A number of JSON-RPC.
pub(super) fn quantity(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}
