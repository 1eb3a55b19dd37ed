//! The JSON-RPC methods of a node.

use serde_json::Value;

use crate::demo::faults::RpcCall;
use crate::demo::rpc::{CallReply, DemoError};

use super::desk::{CallResult, Desk};
use super::model::{EvmModel, PlacedTx};
use super::options::NodeOptions;
use super::{calls, logs, transfers, wire};

pub(in crate::demo) fn answer(
    model: &EvmModel,
    node: &NodeOptions,
    RpcCall { method, params, twist }: RpcCall<'_>,
) -> CallReply {
    let behind = node.lag.saturating_add(twist.head_back);
    let newest = model.newest().saturating_sub(behind);
    let last = model.head().saturating_sub(behind);
    let desk = Desk { model, node, params, newest, last, twist };
    result(&desk, method).map(|value| value.to_string().into_bytes())
}

fn result(desk: &Desk<'_>, method: &str) -> CallResult {
    let shown = |show: &dyn Fn(&PlacedTx) -> Value| {
        Ok(desk.found()?.map_or(Value::Null, |found| show(&found)))
    };
    match method {
        "eth_chainId" => Ok(wire::number(desk.chain_id()).into()),
        // What wallets and libraries ask a node first.
        "net_version" => Ok(desk.chain_id().to_string().into()),
        "web3_clientVersion" => Ok("Geth/v1.16.7-stable/linux-amd64/go1.25.1".into()),
        "eth_syncing" => Ok(false.into()),
        "eth_blockNumber" => Ok(wire::number(desk.newest).into()),
        "eth_getBlockByNumber" => desk.block(),
        "eth_getLogs" if desk.node.logs => logs::get(desk),
        // Public nodes of one chain answer so to any range.
        "eth_getLogs" => Err(DemoError::new(-32005, "limit exceeded")),
        "eth_getTransactionByHash" => shown(&|found| wire::transaction(desk.model, found)),
        "eth_getTransactionReceipt" => {
            shown(&|found| wire::receipt(desk.model, found, desk.node.log_times))
        }
        "eth_getTransactionByBlockNumberAndIndex" => desk.at_place(),
        "eth_getBlockReceipts" => desk.block_receipts(),
        "eth_getBalance" | "eth_getTransactionCount" => desk.state(method),
        "eth_getCode" => Ok(desk.code()),
        "eth_call" => calls::call(desk),
        "debug_traceTransaction" if desk.node.traces => desk.trace(),
        "trace_transaction" if desk.node.flat_traces => {
            shown(&|found| wire::flat_trace(desk.model, found).into())
        }
        "alchemy_getAssetTransfers" if desk.node.transfers => transfers::get(desk),
        _ => {
            let text = format!("the method {method} does not exist/is not available");
            Err(DemoError::new(-32601, text))
        }
    }
}
