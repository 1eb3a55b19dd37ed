//! Queries and answers of the open data gateway: one JSON object per line and block (SQD Portal:
//! docs.sqd.dev, "EVM API"). An answer always contains the last block that it covers, which shows
//! how far an answer that ended early reached.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::texts::{self, hex_text};
use super::wire::topic;
use crate::decode::evm::{Account, Log, NativeMove, TRANSFER, Terms, Topics, Word, terms};
use crate::domain::{Height, Units, UnixSeconds};
use crate::sources::gateway::lines;

/// How a gateway shows native coin that moved inside transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NativeBy {
    Traces,
    /// By the wallet's balance before and after each transaction.
    StateDiffs,
    Nothing,
}

impl NativeBy {
    /// What to request from a dataset that lacks this.
    pub(super) fn weaker(self) -> Option<Self> {
        match self {
            Self::Traces => Some(Self::StateDiffs),
            Self::StateDiffs => Some(Self::Nothing),
            Self::Nothing => None,
        }
    }
}

fn fields(native: NativeBy) -> Value {
    let by_balance = native == NativeBy::StateDiffs;
    let transaction = json!({
        "transactionIndex": true, "hash": true, "from": true, "to": true, "value": true,
        "sighash": true, "status": true, "nonce": true, "type": by_balance, "gasUsed": by_balance,
        "effectiveGasPrice": by_balance,
    });
    let log = json!({
        "logIndex": true, "transactionIndex": true, "address": true, "topics": true, "data": true,
    });
    let traces = json!({
        "transactionIndex": true, "traceAddress": true, "type": true, "subtraces": true,
        "error": true, "callFrom": true, "callTo": true, "callValue": true, "callCallType": true,
        "createFrom": true, "createValue": true, "createResultAddress": true,
        "suicideAddress": true, "suicideRefundAddress": true, "suicideBalance": true,
    });
    let diffs = json!({
        "transactionIndex": true, "address": true, "key": true, "kind": true, "prev": true,
        "next": true,
    });
    let native = match native {
        NativeBy::Traces => Some(("trace", traces)),
        NativeBy::StateDiffs => Some(("stateDiff", diffs)),
        NativeBy::Nothing => None,
    };
    // The API treats a missing field as false.
    let block = json!({"number": true, "timestamp": true, "miner": by_balance});
    let all = [("block", block), ("transaction", transaction), ("log", log)];
    all.into_iter().chain(native).collect()
}

/// A query for the wallet's movements. Transactions in which it gave or sent something come with
/// logs (and traces); of those that only brought something, mostly spam, only the transfer and its
/// sender.
pub(super) fn query(wallet: &Account, (from, to): (Height, Height), native: NativeBy) -> Value {
    let with_traces = native == NativeBy::Traces;
    let (plain, padded, transfer) = (hex_text(wallet), topic(wallet), hex_text(&TRANSFER));
    let gave = json!({
        "topic0": [transfer], "topic1": [padded], "transaction": true, "transactionLogs": true,
        "transactionTraces": with_traces,
    });
    let got = json!({"topic0": [transfer], "topic2": [padded], "transaction": true});
    let sent = json!({"from": [plain], "logs": true, "traces": with_traces});
    // A contract wallet pays by inner calls in transactions of other senders.
    let paid = json!({
        "type": ["call"], "callFrom": [plain], "transaction": true, "transactionLogs": true,
    });
    let changed = json!({"address": [plain], "key": ["balance"], "transaction": true});
    let only = |by: NativeBy, item: Value| if native == by { vec![item] } else { Vec::new() };
    json!({
        "type": "evm", "fromBlock": from, "toBlock": to, "fields": fields(native),
        "logs": [gave, got], "transactions": [sent], "traces": only(NativeBy::Traces, paid),
        "stateDiffs": only(NativeBy::StateDiffs, changed),
    })
}

/// A query for all parts of the transactions in which these accounts sent these tokens to the
/// wallet.
pub(super) fn details_query(
    wallet: &Account,
    (from, to): (Height, Height),
    (tokens, senders): (&BTreeSet<Account>, &BTreeSet<Account>),
    native: NativeBy,
) -> Value {
    let tokens: Vec<String> = tokens.iter().map(|token| hex_text(token)).collect();
    let senders: Vec<String> = senders.iter().map(topic).collect();
    let came = json!({
        "address": tokens, "topic0": [hex_text(&TRANSFER)], "topic1": senders,
        "topic2": [topic(wallet)], "transaction": true, "transactionLogs": true,
        "transactionTraces": native == NativeBy::Traces,
    });
    json!({
        "type": "evm", "fromBlock": from, "toBlock": to, "fields": fields(native),
        "logs": [came],
    })
}

/// A query for the inputs of the transactions that the wallet sent. Inputs of received ones are
/// long and not needed.
pub(super) fn inputs_query(wallet: &Account, (from, to): (Height, Height)) -> Value {
    json!({
        "type": "evm", "fromBlock": from, "toBlock": to,
        "fields": {
            "block": {"number": true},
            "transaction": {
                "transactionIndex": true, "hash": true, "from": true, "to": true, "value": true,
                "input": true,
            },
        },
        "transactions": [{"from": [hex_text(wallet)]}],
    })
}

/// A query for the places of all calls in those transactions of a block that brought the wallet
/// tokens.
pub(super) fn traces_query(wallet: &Account, height: Height) -> Value {
    json!({
        "type": "evm", "fromBlock": height, "toBlock": height,
        "fields": {
            "block": {"number": true},
            "transaction": {
                "transactionIndex": true, "hash": true, "from": true, "to": true, "value": true,
            },
            "log": {
                "logIndex": true, "transactionIndex": true, "address": true, "topics": true,
                "data": true,
            },
            "trace": {"transactionIndex": true, "traceAddress": true, "type": true},
        },
        "logs": [{
            "topic0": [hex_text(&TRANSFER)], "topic2": [topic(wallet)], "transaction": true,
            "transactionTraces": true,
        }],
    })
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) number: Height,
    pub(super) time: Option<UnixSeconds>,
    pub(super) txs: Vec<Tx>,
    pub(super) logs: Vec<PlacedLog>,
    pub(super) traces: Vec<Trace>,
    pub(super) diffs: Vec<BalanceDiff>,
    /// The recipient of the fees, if requested.
    pub(super) miner: Option<Account>,
}

impl Block {
    /// Whether the block has more than its header, which is all that the last block of an answer
    /// may have.
    pub(super) fn has_content(&self) -> bool {
        let Self { txs, logs, traces, diffs, .. } = self;
        !(txs.is_empty() && logs.is_empty() && traces.is_empty() && diffs.is_empty())
    }
}

#[derive(Debug)]
pub(super) struct Tx {
    pub(super) index: u32,
    pub(super) hash: Word,
    pub(super) from: Account,
    pub(super) to: Option<Account>,
    pub(super) value: Units,
    pub(super) selector: Option<[u8; 4]>,
    /// The terms (receiver, kept fee) in its input, if requested.
    pub(super) terms: Option<Terms>,
    pub(super) failed: bool,
    pub(super) nonce: Option<u64>,
    /// If requested: transaction type, gas used and gas price.
    pub(super) kind: Option<u64>,
    pub(super) gas: Option<(Units, Units)>,
}

#[derive(Debug)]
pub(super) struct BalanceDiff {
    pub(super) tx: u32,
    pub(super) account: Account,
    pub(super) before: Units,
    pub(super) after: Units,
}

#[derive(Debug)]
pub(super) struct PlacedLog {
    pub(super) tx: u32,
    /// Index in the block.
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
    #[serde(borrow)]
    header: RawHeader<'a>,
    #[serde(default)]
    transactions: Vec<RawTx<'a>>,
    #[serde(default)]
    logs: Vec<RawLog<'a>>,
    #[serde(default)]
    traces: Vec<RawTrace<'a>>,
    #[serde(default, rename = "stateDiffs")]
    diffs: Vec<RawDiff<'a>>,
}

#[derive(Deserialize)]
struct RawHeader<'a> {
    number: Height,
    timestamp: Option<u32>,
    miner: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDiff<'a> {
    transaction_index: u32,
    address: &'a str,
    key: &'a str,
    prev: Option<&'a RawValue>,
    next: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTx<'a> {
    transaction_index: u32,
    hash: &'a str,
    from: &'a str,
    to: Option<&'a str>,
    value: Option<&'a RawValue>,
    sighash: Option<&'a str>,
    input: Option<&'a str>,
    status: Option<&'a RawValue>,
    nonce: Option<&'a RawValue>,
    #[serde(rename = "type")]
    kind: Option<&'a RawValue>,
    gas_used: Option<&'a RawValue>,
    effective_gas_price: Option<&'a RawValue>,
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
    subtraces: Option<usize>,
    error: Option<&'a RawValue>,
    action: Option<RawAction<'a>>,
    result: Option<RawAction<'a>>,
}

/// A call, creation or destruction, or its result; each kind has other field names.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAction<'a> {
    from: Option<&'a str>,
    to: Option<&'a str>,
    value: Option<&'a RawValue>,
    call_type: Option<&'a str>,
    #[serde(rename = "type")]
    old_call_type: Option<&'a str>,
    address: Option<&'a str>,
    refund_address: Option<&'a str>,
    balance: Option<&'a RawValue>,
}

/// The blocks of an answer that was classified as good; `None` if a line cannot be decoded.
pub(super) fn blocks(body: &[u8]) -> Option<Vec<Block>> {
    lines(std::str::from_utf8(body).ok()?).map(block).collect()
}

fn block(line: &str) -> Option<Block> {
    let raw: RawBlock<'_> = serde_json::from_str(line).ok()?;
    let txs: Vec<Tx> = raw.transactions.iter().map(tx).collect::<Option<_>>()?;
    has_one_a_place(&txs).then_some(())?;
    Some(Block {
        number: raw.header.number,
        time: raw.header.timestamp.map(UnixSeconds),
        txs,
        logs: raw.logs.iter().map(log).collect::<Option<_>>()?,
        traces: raw.traces.iter().map(trace).collect::<Option<_>>()?,
        diffs: raw
            .diffs
            .iter()
            .filter(|diff| diff.key == "balance")
            .map(diff)
            .collect::<Option<_>>()?,
        miner: raw.header.miner.and_then(texts::account),
    })
}

/// Whether each position has a single transaction: two at one position would share their logs, and
/// one would be lost.
fn has_one_a_place(txs: &[Tx]) -> bool {
    let mut places: HashMap<u32, Word> = HashMap::new();
    txs.iter().all(|tx| *places.entry(tx.index).or_insert(tx.hash) == tx.hash)
}

fn tx(raw: &RawTx<'_>) -> Option<Tx> {
    let from = texts::account(raw.from)?;
    let to = raw.to.filter(|to| !to.is_empty());
    let to = to.map(|to| texts::account(to).ok_or(())).transpose().ok()?;
    let terms = raw.input.map(|input| terms(input.as_bytes(), from, to));
    Some(Tx {
        index: raw.transaction_index,
        hash: texts::word(raw.hash)?,
        from,
        to,
        value: texts::units(texts::scalar(raw.value)?)?,
        selector: raw.sighash.and_then(texts::selector),
        terms,
        failed: texts::scalar(raw.status).is_some_and(|text| texts::number(text) == Some(0)),
        nonce: texts::scalar(raw.nonce).and_then(texts::number),
        kind: texts::scalar(raw.kind).and_then(texts::number),
        gas: units(raw.gas_used).zip(units(raw.effective_gas_price)),
    })
}

fn units(raw: Option<&RawValue>) -> Option<Units> {
    texts::units(texts::scalar(raw)?)
}

/// Accounts that do not exist before or after the transaction have a balance of zero then.
fn diff(raw: &RawDiff<'_>) -> Option<BalanceDiff> {
    let side = |raw| texts::scalar(raw).map_or(Some(Units::ZERO), texts::units);
    Some(BalanceDiff {
        tx: raw.transaction_index,
        account: texts::account(raw.address)?,
        before: side(raw.prev)?,
        after: side(raw.next)?,
    })
}

fn log(raw: &RawLog<'_>) -> Option<PlacedLog> {
    let topics: Topics = raw.topics.iter().map(|t| texts::word(t)).collect::<Option<_>>()?;
    // An event has at most four topics (LOG4).
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(places: [(u32, u8); 2]) -> Option<Vec<Block>> {
        let transactions = places.map(|(place, hash)| {
            json!({
                "transactionIndex": place, "hash": format!("0x{hash:064x}"),
                "from": format!("0x{:040x}", 1), "to": null, "value": "0x0", "status": 1,
            })
        });
        blocks(
            json!({"header": {"number": 7}, "transactions": transactions}).to_string().as_bytes(),
        )
    }

    #[test]
    fn an_index_of_a_block_holds_one_transaction() {
        assert_eq!(read([(0, 1), (1, 2)]).unwrap()[0].txs.len(), 2);
        assert!(read([(1, 2), (1, 2)]).is_some(), "the same one twice");
        assert!(read([(1, 1), (1, 2)]).is_none());
    }
}
