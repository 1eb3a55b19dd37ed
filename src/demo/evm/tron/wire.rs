//! java-tron's format of transactions, their infos and blocks (`visible=false`): zero and empty
//! fields are omitted, amounts are 64-bit integers, addresses have 42 hex digits.

use serde_json::{Value, json};

use crate::demo::evm::model::{EvmModel, PlacedTx};
use crate::demo::evm::tx::{EventLog, Exchanged, Frame, Op};
use crate::demo::evm::wire::{flat, found_in};
use crate::demo::mix;
use crate::domain::{Account, Address, Word};

/// A transaction is created so long before its block, and expires so long after it.
const MADE_MILLIS: u64 = 3_000;
const GOOD_MILLIS: u64 = 57_000;
const FEE_LIMIT: u64 = 500_000_000;
/// `REVERT opcode executed`.
const REVERT_TEXT: &str = "524556455254206f70636f6465206578656375746564";
/// `call`.
const NOTE: &str = "63616c6c";
/// TRX among the assets of an exchange: an underscore.
const TRX: &str = "5f";
/// An exchange's number follows from its token's.
const EXCHANGES_FROM: u32 = 1_000_000;

pub(super) fn address(account: &Account) -> String {
    format!("41{}", hex::encode(account))
}

/// `T…`.
pub(super) fn text(account: &Account) -> String {
    Address::Tron(*account).to_string()
}

pub(super) fn millis(model: &EvmModel, height: u64) -> u64 {
    u64::from(model.time_of(height).0) * 1_000
}

fn amount(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// An object without its zero and empty fields.
fn compact(mut object: Value) -> Value {
    let empty = [json!(0), json!(""), json!([]), json!(false)];
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !empty.contains(value));
    }
    object
}

fn token_name(token: u32) -> String {
    hex::encode(token.to_string())
}

/// The kind of contract and its parameters.
fn contract(found: &PlacedTx) -> (&'static str, Value) {
    let call = &found.tx.call;
    let owner = address(&call.from);
    if let Some(Exchanged { token, buys, paid, got }) = found.tx.exchanged {
        let sold = if buys { TRX.to_owned() } else { token_name(token) };
        let value = json!({"owner_address": owner, "exchange_id": token - EXCHANGES_FROM,
            "token_id": sold, "quant": amount(paid), "expected": amount(got / 100 * 98)});
        return ("ExchangeTransactionContract", value);
    }
    if call.input.is_empty() {
        let paid = json!({"owner_address": owner, "to_address": address(&call.to),
            "amount": amount(call.value)});
        return ("TransferContract", paid);
    }
    let value = json!({"owner_address": owner, "contract_address": address(&call.to),
        "data": hex::encode(&call.input), "call_value": amount(call.value)});
    ("TriggerSmartContract", compact(value))
}

/// The answer of `getexchangebyid`.
pub(super) fn exchange(id: u64) -> Value {
    let token = u32::try_from(id).ok().and_then(|id| id.checked_add(EXCHANGES_FROM));
    match token.filter(|token| Address::is_tron_asset(*token)) {
        Some(token) => json!({
            "exchange_id": id, "creator_address": address(&[7; 20]), "create_time": 1_538_000_000_000_u64,
            "first_token_id": token_name(token), "first_token_balance": 1_u64 << 50,
            "second_token_id": TRX, "second_token_balance": 1_u64 << 50,
        }),
        None => json!({}),
    }
}

fn outcome(found: &PlacedTx) -> &'static str {
    if found.tx.call.failed { "REVERT" } else { "SUCCESS" }
}

/// `gettransactionbyid`.
pub(super) fn transaction(model: &EvmModel, found: &PlacedTx) -> Value {
    let (kind, value) = contract(found);
    let at = millis(model, found.spot.height);
    let below = model.block_hash(found.spot.height.saturating_sub(1));
    let slice = |from: usize, to: usize| hex::encode(below.get(from..to).unwrap_or_default());
    let data = compact(json!({
        "contract": [{"parameter": {"value": value,
            "type_url": format!("type.googleapis.com/protocol.{kind}")}, "type": kind}],
        "ref_block_bytes": slice(6, 8), "ref_block_hash": slice(8, 16),
        "expiration": at + GOOD_MILLIS, "timestamp": at.saturating_sub(MADE_MILLIS),
        "fee_limit": if kind == "TriggerSmartContract" { FEE_LIMIT } else { 0 },
    }));
    let signature = mix::key(mix::digest(1, &found.hash), &[1]);
    json!({
        "ret": [{"contractRet": outcome(found)}],
        "signature": [format!("{0}{0}1b", hex::encode(signature))],
        "txID": hex::encode(found.hash), "raw_data": data, "raw_data_hex": "",
    })
}

/// `gettransactioninfobyid`; `inner`: whether the node keeps internal transactions.
pub(super) fn info(model: &EvmModel, found: &PlacedTx, inner: bool) -> Value {
    let (kind, _) = contract(found);
    let tx = &found.tx;
    let runs = kind == "TriggerSmartContract";
    let (fee, used) = if runs { (amount(tx.gas.cost()), tx.gas.used) } else { (0, 0) };
    let receipt = compact(json!({
        "net_usage": 345, "energy_fee": fee, "energy_usage_total": used,
        "result": if runs { outcome(found) } else { "" },
    }));
    let (result, message) = if tx.call.failed { ("FAILED", REVERT_TEXT) } else { ("", "") };
    compact(json!({
        "id": hex::encode(found.hash), "blockNumber": found.spot.height,
        "blockTimeStamp": millis(model, found.spot.height), "contractResult": [""],
        "fee": fee, "receipt": receipt, "result": result, "resMessage": message,
        "exchange_received_amount": tx.exchanged.map_or(0, |exchanged| amount(exchanged.got)),
        "contract_address": if runs { address(&tx.call.to) } else { String::new() },
        "internal_transactions": if runs && inner { inner_calls(found) } else { Vec::new() },
        "log": tx.logs.iter().map(log).collect::<Vec<_>>(),
    }))
}

fn log(log: &EventLog) -> Value {
    let topics: Vec<String> = log.topics.iter().map(hex::encode).collect();
    compact(json!({"address": hex::encode(log.address), "topics": topics,
        "data": hex::encode(&log.data)}))
}

/// One internal transaction.
pub(super) struct InternalCall {
    pub(super) from: Account,
    pub(super) to: Account,
    pub(super) value: u128,
    pub(super) rejected: bool,
}

/// All of them, each before those that it caused.
pub(super) fn inner(found: &PlacedTx) -> Vec<InternalCall> {
    let inner = |(_, frame, rejected): (Vec<usize>, &Frame, bool)| {
        // A delegate call moves nothing.
        let (to, value) = match frame.op {
            Op::Call => (frame.to, frame.value),
            Op::Static => (frame.to, 0),
            Op::Delegate => (frame.from, 0),
        };
        InternalCall { from: frame.from, to, value, rejected }
    };
    flat(&found.tx.call).into_iter().skip(1).map(inner).collect()
}

fn inner_calls(found: &PlacedTx) -> Vec<Value> {
    let call = |(at, inner): (u64, InternalCall)| {
        let moved = compact(json!({"callValue": amount(inner.value)}));
        compact(json!({
            "hash": inner_hash(found, at), "caller_address": address(&inner.from),
            "transferTo_address": address(&inner.to), "callValueInfo": [moved], "note": NOTE,
            "rejected": inner.rejected,
        }))
    };
    (0..).zip(inner(found)).map(call).collect()
}

pub(super) fn inner_hash(found: &PlacedTx, at: u64) -> String {
    hex::encode(mix::key(mix::digest(3, &found.hash), &[at]))
}

/// A block id: the number, then the hash.
fn id(model: &EvmModel, height: u64) -> Word {
    let mut id = model.block_hash(height);
    let number = u32::try_from(model.chain_id()).unwrap_or(0);
    if let (0, Some(end)) = (height, id.last_chunk_mut()) {
        *end = number.to_be_bytes();
    }
    id
}

/// `getblock`; `whole`: with the transactions that the model has met.
pub(super) fn block(model: &EvmModel, height: u64, whole: bool) -> Value {
    let parent = height.checked_sub(1).map_or([0; 32], |below| model.block_hash(below));
    let filled = |name: &[u8]| hex::encode(mix::key(mix::digest(height, name), &[height]));
    let found = if whole { found_in(model, height) } else { Vec::new() };
    compact(json!({
        "blockID": hex::encode(id(model, height)),
        "block_header": {
            "raw_data": {
                "number": height, "txTrieRoot": filled(b"root"), "version": 31,
                "witness_address": address(&[8; 20]), "parentHash": hex::encode(parent),
                "timestamp": millis(model, height),
            },
            "witness_signature": format!("{0}{0}00", filled(b"witness")),
        },
        "transactions": found.iter().map(|found| transaction(model, found)).collect::<Vec<_>>(),
    }))
}
