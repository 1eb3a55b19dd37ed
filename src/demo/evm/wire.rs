//! The format of transactions, receipts, blocks and traces (Ethereum's execution API).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::keccak256;
use super::model::{EvmModel, PlacedTx};
use super::places::Made;
use super::tx::{EventLog, Frame, Op, TRANSFER};
use crate::demo::mix;
use crate::demo::rpc::set;
use crate::domain::{Account, Word};

/// Log indices reserved per transaction, so that they are unique in a block.
const LOGS_PER_PLACE: u64 = 64;
const GAS_LIMIT: u64 = 1_500_000;

pub(super) fn hex(bytes: &[u8]) -> String {
    const_hex::encode_prefixed(bytes)
}

pub(super) fn number(value: impl Into<u128>) -> String {
    format!("{:#x}", value.into())
}

/// An account or a word.
pub(super) fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    ::hex::decode_to_slice(text.strip_prefix("0x")?, &mut bytes).ok()?;
    Some(bytes)
}

pub(super) fn log_index(found: &PlacedTx, at: u64) -> u64 {
    u64::from(found.spot.index) * LOGS_PER_PLACE + at
}

pub(super) fn transaction(model: &EvmModel, found: &PlacedTx) -> Value {
    let call = &found.tx.call;
    let gas = found.tx.gas;
    json!({
        "blockHash": hex(&model.block_hash(found.spot.height)),
        "blockNumber": number(found.spot.height),
        "from": hex(&call.from), "to": hex(&call.to),
        "gas": number(GAS_LIMIT), "gasPrice": number(gas.price),
        "maxFeePerGas": number(gas.price * 2), "maxPriorityFeePerGas": number(gas.price / 10),
        "hash": hex(&found.hash), "input": hex(&call.input), "nonce": number(found.nonce),
        "transactionIndex": number(found.spot.index), "value": number(call.value),
        "type": "0x2", "accessList": [], "chainId": number(model.chain_id()),
        "v": "0x1", "yParity": "0x1",
        "r": hex(&mix::key(mix::digest(1, &found.hash), &[1])), "s": hex(&mix::key(mix::digest(1, &found.hash), &[2])),
    })
}

pub(super) fn receipt(model: &EvmModel, found: &PlacedTx, times: bool) -> Value {
    let gas = found.tx.gas;
    let call = &found.tx.call;
    let logs = (0..).zip(&found.tx.logs);
    let logs = logs.map(|(at, log)| self::log(model, found, at, log, times));
    let mut receipt = json!({
        "blockHash": hex(&model.block_hash(found.spot.height)),
        "blockNumber": number(found.spot.height),
        "contractAddress": null,
        "cumulativeGasUsed": number(gas.used * u64::from(found.spot.index + 1)),
        "effectiveGasPrice": number(gas.price), "gasUsed": number(gas.used),
        "from": hex(&call.from), "to": hex(&call.to),
        "logs": logs.collect::<Vec<_>>(),
        "logsBloom": hex(&bloom(&found.tx.logs)),
        "status": if call.failed { "0x0" } else { "0x1" },
        "transactionHash": hex(&found.hash),
        "transactionIndex": number(found.spot.index), "type": "0x2",
    });
    if model.places().has_l1_fee {
        set(&mut receipt, "l1Fee", number(gas.l1_fee));
        set(&mut receipt, "l1GasUsed", "0x640");
        set(&mut receipt, "l1GasPrice", "0x3b9aca00");
    }
    receipt
}

pub(super) fn log(
    model: &EvmModel,
    found: &PlacedTx,
    at: u64,
    log: &EventLog,
    times: bool,
) -> Value {
    let mut value = json!({
        "address": hex(&log.address),
        "topics": log.topics.iter().map(|topic| hex(topic)).collect::<Vec<_>>(),
        "data": hex(&log.data),
        "blockHash": hex(&model.block_hash(found.spot.height)),
        "blockNumber": number(found.spot.height),
        "transactionHash": hex(&found.hash),
        "transactionIndex": number(found.spot.index),
        "logIndex": number(log_index(found, at)), "removed": false,
    });
    if times {
        set(&mut value, "blockTimestamp", number(model.time_of(found.spot.height).0));
    }
    value
}

/// The transactions of a block, with those that no node returns.
pub(super) fn all_in(model: &EvmModel, height: u64) -> Vec<PlacedTx> {
    let mut found = Vec::new();
    for wallet in model.wallets() {
        found.extend(model.transactions(&wallet, (height, height)));
    }
    found
}

/// The transactions of a block that the model has met, in their order.
pub(super) fn found_in(model: &EvmModel, height: u64) -> Vec<PlacedTx> {
    let mut found = all_in(model, height);
    found.retain(|found| !model.is_withheld(&found.hash));
    found.sort_by_key(|found| found.spot.index);
    found
}

/// A block with the transactions of the wallets that the model has met, whole or by hash.
pub(super) fn block(model: &EvmModel, height: u64, whole: bool) -> Value {
    let listed =
        |found: &PlacedTx| if whole { transaction(model, found) } else { hex(&found.hash).into() };
    let transactions: Vec<Value> = found_in(model, height).iter().map(listed).collect();
    let filled = |name: &[u8]| hex(&mix::key(mix::digest(height, name), &[height]));
    let parent = height.checked_sub(1).map_or([0; 32], |below| model.block_hash(below));
    json!({
        "number": number(height), "hash": hex(&model.block_hash(height)),
        "parentHash": hex(&parent), "timestamp": number(model.time_of(height).0),
        "miner": hex(&model.places().made(Made::Miner, height % 9)),
        "baseFeePerGas": "0xee6b280", "gasLimit": "0x2aea540", "gasUsed": "0x1036640",
        "difficulty": "0x0", "extraData": "0x", "mixHash": filled(b"mix"),
        "nonce": "0x0000000000000000", "receiptsRoot": filled(b"receipts"),
        "stateRoot": filled(b"state"), "transactionsRoot": filled(b"transactions"),
        "sha3Uncles": "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
        "logsBloom": hex(&block_bloom(model, height)), "size": "0xa4b1", "uncles": [],
        "transactions": transactions,
    })
}

/// The bloom filter of a block's events, including those of other users.
fn block_bloom(model: &EvmModel, height: u64) -> [u8; 256] {
    let all = model.strangers_in(height).into_iter().chain(all_in(model, height));
    bloom(&all.flat_map(|found| found.tx.logs).collect::<Vec<_>>())
}

/// The bloom filter of events (Yellow Paper, 4.4.3).
fn bloom(logs: &[EventLog]) -> [u8; 256] {
    let mut bloom = [0; 256];
    // Most logs share their first topic and some addresses: each is hashed once.
    let parts: BTreeSet<&[u8]> = logs
        .iter()
        .flat_map(|log| log.topics.iter().map(Word::as_slice).chain([log.address.as_slice()]))
        .collect();
    for part in parts {
        for pair in keccak256(&[part]).chunks_exact(2).take(3) {
            let number = pair.iter().fold(0, |all, byte| all << 8 | usize::from(*byte)) % 2048;
            if let Some(byte) = bloom.get_mut(255 - number / 8) {
                *byte |= 1 << (number % 8);
            }
        }
    }
    bloom
}

/// Geth's `callTracer`.
pub(super) fn call_trace(frame: &Frame) -> Value {
    let mut value = json!({
        "type": call_type(frame.op).to_uppercase(),
        "from": hex(&frame.from), "to": hex(&frame.to),
        "gas": number(GAS_LIMIT), "gasUsed": "0x5208", "input": hex(&frame.input),
    });
    if frame.op != Op::Static {
        set(&mut value, "value", number(frame.value));
    }
    let (name, text) =
        if frame.failed { ("error", "execution reverted") } else { ("output", "0x") };
    set(&mut value, name, text);
    if !frame.calls.is_empty() {
        set(&mut value, "calls", frame.calls.iter().map(call_trace).collect::<Vec<_>>());
    }
    value
}

/// Every frame with its trace address, and whether it was reverted, alone or with an outer one.
pub(super) fn flat(frame: &Frame) -> Vec<(Vec<usize>, &Frame, bool)> {
    let mut all = Vec::new();
    let mut open = vec![(Vec::new(), frame, frame.failed)];
    while let Some((place, frame, undone)) = open.pop() {
        for (at, call) in frame.calls.iter().enumerate().rev() {
            open.push(([place.as_slice(), &[at]].concat(), call, undone || call.failed));
        }
        all.push((place, frame, undone));
    }
    all
}

pub(super) struct TokenEvent {
    pub(super) kind: &'static str,
    pub(super) token: Account,
    pub(super) from: Account,
    pub(super) to: Account,
    pub(super) data: Word,
}

pub(super) fn token_events(model: &EvmModel, found: &PlacedTx) -> Vec<TokenEvent> {
    let signatures = &model.places().signatures;
    let kinds = [
        ("Transfer", signatures.topic(TRANSFER)),
        ("Approval", signatures.topic("Approval(address,address,uint256)")),
    ];
    let read = |log: &EventLog| {
        let [topic, from, to] = log.topics.as_slice() else { return None };
        let (kind, _) = kinds.iter().find(|(_, known)| known == topic)?;
        Some(TokenEvent {
            kind,
            token: log.address,
            from: *from.last_chunk()?,
            to: *to.last_chunk()?,
            data: *log.data.first_chunk()?,
        })
    };
    found.tx.logs.iter().filter_map(read).collect()
}

pub(super) fn amount(log: &EventLog) -> Option<u128> {
    log.data.last_chunk().map(|bytes| u128::from_be_bytes(*bytes))
}

pub(super) fn call_type(op: Op) -> &'static str {
    match op {
        Op::Call => "call",
        Op::Delegate => "delegatecall",
        Op::Static => "staticcall",
    }
}

/// Parity's `trace_transaction`.
pub(super) fn flat_trace(model: &EvmModel, found: &PlacedTx) -> Vec<Value> {
    let row = |(place, frame, _): (Vec<usize>, &Frame, bool)| {
        let mut row = json!({
            "action": {
                "callType": call_type(frame.op), "from": hex(&frame.from), "to": hex(&frame.to),
                "gas": number(GAS_LIMIT), "input": hex(&frame.input), "value": number(frame.value),
            },
            "blockHash": hex(&model.block_hash(found.spot.height)),
            "blockNumber": found.spot.height,
            "subtraces": frame.calls.len(), "traceAddress": place,
            "transactionHash": hex(&found.hash), "transactionPosition": found.spot.index,
            "type": "call",
        });
        if frame.failed {
            set(&mut row, "error", "Reverted");
        } else {
            set(&mut row, "result", json!({"gasUsed": "0x5208", "output": "0x"}));
        }
        row
    };
    flat(&found.tx.call).into_iter().map(row).collect()
}
