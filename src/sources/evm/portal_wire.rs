//! Queries and answers of the open data gateway: one JSON object a line, one line a block (SQD
//! Portal: docs.sqd.dev, "EVM API"). The last block of an answer is always included, so that an
//! answer which ends early shows how far it came.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::texts::{self, hex_text};
use crate::decode::evm::{Account, Log, NativeMove, Word};
use crate::domain::{Height, Units, UnixSeconds};
use crate::rpc::ask::Reading;

/// `Transfer(address,address,uint256)`.
pub(super) const TRANSFER: Word = [
    0xdd, 0xf2, 0x52, 0xad, 0x1b, 0xe2, 0xc8, 0x9b, 0x69, 0xc2, 0xb0, 0x68, 0xfc, 0x37, 0x8d, 0xaa,
    0x95, 0x2b, 0xa7, 0xf1, 0x63, 0xc4, 0xa1, 0x16, 0x28, 0xf5, 0x5a, 0x4d, 0xf5, 0x23, 0xb3, 0xef,
];

/// The fields of each kind that an answer holds.
fn fields(with_traces: bool) -> Value {
    let mut fields = serde_json::Map::new();
    fields.insert("block".to_owned(), json!({"number": true, "timestamp": true}));
    fields.insert(
        "transaction".to_owned(),
        json!({
            "transactionIndex": true, "hash": true, "from": true, "to": true, "value": true,
            "sighash": true, "status": true,
        }),
    );
    fields.insert(
        "log".to_owned(),
        json!({
            "logIndex": true, "transactionIndex": true, "address": true, "topics": true,
            "data": true,
        }),
    );
    if with_traces {
        let names = json!({
            "transactionIndex": true, "traceAddress": true, "type": true, "subtraces": true,
            "error": true, "callFrom": true, "callTo": true, "callValue": true,
            "callCallType": true, "createFrom": true, "createValue": true,
            "createResultAddress": true, "suicideAddress": true, "suicideRefundAddress": true,
            "suicideBalance": true,
        });
        fields.insert("trace".to_owned(), names);
    }
    Value::Object(fields)
}

/// A query for the wallet's movements. All that it gave, and all that it sent, comes with logs
/// (and traces); of what only came in, which is mostly spam, only the transfer and who sent it.
pub(super) fn query(wallet: &Account, (from, to): (Height, Height), with_traces: bool) -> Value {
    let (plain, padded, transfer) =
        (hex_text(wallet), hex_text(&padded(wallet)), hex_text(&TRANSFER));
    let gave = json!({
        "topic0": [transfer], "topic1": [padded], "transaction": true, "transactionLogs": true,
        "transactionTraces": with_traces,
    });
    let got = json!({"topic0": [transfer], "topic2": [padded], "transaction": true});
    let sent = json!({"from": [plain], "logs": true, "traces": with_traces});
    // A wallet that is a contract pays by inner calls, in transactions of other senders.
    let paid = json!({
        "type": ["call"], "callFrom": [plain], "transaction": true, "transactionLogs": true,
    });
    let traces = if with_traces { vec![paid] } else { Vec::new() };
    json!({
        "type": "evm", "fromBlock": from, "toBlock": to, "fields": fields(with_traces),
        "logs": [gave, got], "transactions": [sent], "traces": traces,
    })
}

/// A query for all of the transactions in which these accounts sent these tokens to the wallet.
pub(super) fn details_query(
    wallet: &Account,
    (from, to): (Height, Height),
    (tokens, senders): (&BTreeSet<Account>, &BTreeSet<Account>),
    with_traces: bool,
) -> Value {
    let tokens: Vec<String> = tokens.iter().map(|token| hex_text(token)).collect();
    let senders: Vec<String> = senders.iter().map(|sender| hex_text(&padded(sender))).collect();
    let came = json!({
        "address": tokens, "topic0": [hex_text(&TRANSFER)], "topic1": senders,
        "topic2": [hex_text(&padded(wallet))], "transaction": true, "transactionLogs": true,
        "transactionTraces": with_traces,
    });
    json!({
        "type": "evm", "fromBlock": from, "toBlock": to, "fields": fields(with_traces),
        "logs": [came],
    })
}

/// An account as a topic.
pub(super) fn padded(account: &Account) -> Word {
    let mut word = [0; 32];
    if let Some(tail) = word.last_chunk_mut::<20>() {
        *tail = *account;
    }
    word
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) number: Height,
    pub(super) time: Option<UnixSeconds>,
    pub(super) txs: Vec<Tx>,
    pub(super) logs: Vec<PlacedLog>,
    pub(super) traces: Vec<Trace>,
}

#[derive(Debug)]
pub(super) struct Tx {
    pub(super) index: u32,
    pub(super) hash: Word,
    pub(super) from: Account,
    pub(super) to: Option<Account>,
    pub(super) value: Units,
    pub(super) selector: Option<[u8; 4]>,
    pub(super) failed: bool,
}

#[derive(Debug)]
pub(super) struct PlacedLog {
    pub(super) tx: u32,
    /// Its place in the block.
    pub(super) index: u32,
    pub(super) log: Log,
}

#[derive(Debug)]
pub(super) struct Trace {
    pub(super) tx: u32,
    pub(super) address: Vec<u32>,
    pub(super) below: Option<usize>,
    pub(super) failed: bool,
    /// Native coin that it moved, if any.
    pub(super) moved: Option<NativeMove>,
}

#[derive(Deserialize)]
struct RawBlock<'a> {
    header: RawHeader,
    #[serde(default, borrow)]
    transactions: Vec<RawTx<'a>>,
    #[serde(default, borrow)]
    logs: Vec<RawLog<'a>>,
    #[serde(default, borrow)]
    traces: Vec<RawTrace<'a>>,
}

#[derive(Deserialize)]
struct RawHeader {
    number: Height,
    #[serde(default)]
    timestamp: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTx<'a> {
    transaction_index: u32,
    hash: &'a str,
    from: &'a str,
    #[serde(default)]
    to: Option<&'a str>,
    #[serde(default, borrow)]
    value: Option<&'a RawValue>,
    #[serde(default)]
    sighash: Option<&'a str>,
    #[serde(default, borrow)]
    status: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLog<'a> {
    log_index: u32,
    transaction_index: u32,
    address: &'a str,
    topics: Vec<&'a str>,
    data: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTrace<'a> {
    transaction_index: u32,
    trace_address: Vec<u32>,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(default)]
    subtraces: Option<usize>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
    #[serde(default, borrow)]
    action: Option<RawAction<'a>>,
    #[serde(default, borrow)]
    result: Option<RawAction<'a>>,
}

/// A call, a creation, a destruction or what came of them: their fields have different names.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawAction<'a> {
    from: Option<&'a str>,
    to: Option<&'a str>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    call_type: Option<&'a str>,
    #[serde(rename = "type")]
    old_call_type: Option<&'a str>,
    address: Option<&'a str>,
    refund_address: Option<&'a str>,
    #[serde(borrow)]
    balance: Option<&'a RawValue>,
}

/// The lines of an answer that was found good; `None` where one cannot be read.
pub(super) fn blocks(body: &[u8]) -> Option<Vec<Block>> {
    lines(std::str::from_utf8(body).ok()?).map(block).collect()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

fn block(line: &str) -> Option<Block> {
    let raw: RawBlock<'_> = serde_json::from_str(line).ok()?;
    Some(Block {
        number: raw.header.number,
        time: raw.header.timestamp.map(UnixSeconds),
        txs: raw.transactions.iter().map(tx).collect::<Option<_>>()?,
        logs: raw.logs.iter().map(log).collect::<Option<_>>()?,
        traces: raw.traces.iter().map(trace).collect::<Option<_>>()?,
    })
}

fn tx(raw: &RawTx<'_>) -> Option<Tx> {
    Some(Tx {
        index: raw.transaction_index,
        hash: texts::word(raw.hash)?,
        from: texts::account(raw.from)?,
        to: raw
            .to
            .filter(|to| !to.is_empty())
            .map(|to| texts::account(to).ok_or(()))
            .transpose()
            .ok()?,
        value: texts::units(texts::scalar(raw.value)?)?,
        selector: raw.sighash.and_then(texts::selector),
        failed: texts::scalar(raw.status).is_some_and(|text| texts::number(text) == Some(0)),
    })
}

fn log(raw: &RawLog<'_>) -> Option<PlacedLog> {
    let topics: Vec<Word> = raw.topics.iter().map(|t| texts::word(t)).collect::<Option<_>>()?;
    // An event has at most four topics (the LOG4 instruction).
    let log = Log { address: texts::account(raw.address)?, topics, data: texts::data(raw.data)? };
    (log.topics.len() <= 4).then_some(PlacedLog {
        tx: raw.transaction_index,
        index: raw.log_index,
        log,
    })
}

fn trace(raw: &RawTrace<'_>) -> Option<Trace> {
    let action = raw.action.as_ref();
    let created = || raw.result.as_ref().and_then(|result| result.address);
    let (from, to, value) = match (raw.kind, action) {
        ("call", Some(action)) => {
            let moves = matches!(action.call_type.or(action.old_call_type), Some("call") | None);
            (action.from, action.to, action.value.filter(|_| moves))
        }
        ("create", Some(action)) => (action.from, created(), action.value),
        ("suicide" | "selfdestruct", Some(action)) => {
            (action.address, action.refund_address, action.balance)
        }
        _ => (None, None, None),
    };
    let failed = texts::scalar(raw.error).is_some();
    let value = texts::scalar(value).map_or(Some(Units::ZERO), texts::units)?;
    let moved = if failed || value == Units::ZERO {
        None
    } else {
        Some(NativeMove { from: texts::account(from?)?, to: texts::account(to?)?, value })
    };
    Some(Trace {
        tx: raw.transaction_index,
        address: raw.trace_address.clone(),
        below: raw.subtraces,
        failed,
        moved: moved.filter(|moved| moved.from != moved.to),
    })
}

#[derive(Deserialize)]
struct RawHead {
    number: Height,
}

#[derive(Deserialize)]
struct RawMetadata {
    #[serde(default)]
    start_block: Option<Height>,
}

/// The newest block; `None` where the answer has none.
pub(super) fn head(body: &[u8]) -> Option<Height> {
    let head: Option<RawHead> = serde_json::from_slice(body).ok()?;
    head.map(|head| head.number)
}

/// The first block that the gateway has.
pub(super) fn first_block(body: &[u8]) -> Option<Height> {
    serde_json::from_slice::<RawMetadata>(body).ok()?.start_block
}

/// What an answer to a query means.
pub(super) fn read_stream(status: u16, body: &[u8]) -> Reading {
    if status != 200 {
        return of_status(status, body);
    }
    let text = std::str::from_utf8(body).unwrap_or("?");
    let is_json = |line| serde_json::from_str::<&RawValue>(line).is_ok();
    if lines(text).next().is_none() {
        Reading::Again("an answer without any block".to_owned())
    } else if lines(text).all(is_json) {
        Reading::Good
    } else {
        Reading::Again("a line that is no JSON".to_owned())
    }
}

/// What an answer of one JSON value means.
pub(super) fn read_value(status: u16, body: &[u8]) -> Reading {
    if status != 200 {
        return of_status(status, body);
    }
    match serde_json::from_slice::<&RawValue>(body) {
        Ok(_) => Reading::Good,
        Err(_) => Reading::Again("an answer that is no JSON".to_owned()),
    }
}

fn of_status(status: u16, body: &[u8]) -> Reading {
    /// Characters of a text that are kept.
    const TEXT_MAX: usize = 200;
    let text = String::from_utf8_lossy(body).chars().take(TEXT_MAX).collect::<String>();
    let is_page = text.trim_start().starts_with('<');
    match status {
        204 => Reading::Again("the gateway has not reached these blocks".to_owned()),
        // A chain that parted; or a block range that moves from worker to worker.
        409 => Reading::Again("the gateway's blocks do not fit together".to_owned()),
        429 | 529 => Reading::SlowDown(None),
        400 => Reading::Refused { code: 400, message: text },
        401..=403 => Reading::Denied(format!("HTTP status {status}: {text}")),
        404 | 405 | 410 if !is_page => Reading::NotOffered(text),
        _ => Reading::Again(format!("HTTP status {status}: {text}")),
    }
}
