//! An open data gateway: filtered blocks as lines of JSON (SQD Portal, EVM API).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::logs::wallets_of;
use super::model::{EvmModel, PlacedTx};
use super::places::Made;
use super::script::WalletHistory;
use super::tx::{Frame, LogFilter, Op};
use super::{references, wire};
use crate::demo::faults::AnswerFaults;
use crate::demo::rpc::{HttpAnswer, set};
use crate::demo::timeline::Spot;
use crate::domain::{Account, Height, Word, defaults};

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct PortalOptions {
        /// Blocks by which it lags behind the chain's heads.
        pub lag: u64 = 0,
        pub first: Height = 0,
        /// Transactions after which an answer ends early.
        pub transactions_max: usize = 500,
        /// Whether it has traces, and the balances before and after each transaction.
        pub traces: bool = true,
        pub state_diffs: bool = true,
        /// Returns all that it knows of next to what was asked for.
        pub ignores_filters: bool = false,
        /// Every answer lacks what wallets sent with this nonce.
        pub hidden_nonce: Option<u64> = None,
        /// Transactions come with their nonces, where these are asked for.
        pub nonces: bool = true,
    }
}

pub(in crate::demo) fn answer(
    model: &EvmModel,
    options: &PortalOptions,
    path: &str,
    body: &[u8],
    answer_faults: AnswerFaults,
) -> HttpAnswer {
    let behind = options.lag.saturating_add(answer_faults.head_back);
    let newest = model.newest().saturating_sub(behind);
    let last = model.head().saturating_sub(behind);
    match path.rsplit('/').next().unwrap_or_default() {
        "finalized-head" => {
            let hash = wire::hex(&model.block_hash(last));
            reply(200, json!({"number": last, "hash": hash}).to_string())
        }
        "metadata" => {
            let metadata = json!({
                "dataset": format!("{}-demo", model.slug()), "aliases": [], "real_time": true,
                "start_block": options.first,
            });
            reply(200, metadata.to_string())
        }
        // The gateway has the blocks, and claims that it does not.
        "finalized-stream" | "stream" if answer_faults.empty => reply(204, ""),
        "finalized-stream" => {
            stream(model, options, body, last, answer_faults).unwrap_or_else(|bad| bad)
        }
        "stream" => stream(model, options, body, newest, answer_faults).unwrap_or_else(|bad| bad),
        _ => reply(404, "Not found"),
    }
}

/// One selection of the query: its conditions, and the included parts of the transaction.
#[derive(Default)]
struct Pick {
    filter: LogFilter,
    from: Option<Vec<Account>>,
    to: Option<Vec<Account>>,
    kind: PickKind,
    transaction: bool,
    logs: bool,
    traces: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum PickKind {
    Logs,
    #[default]
    Transactions,
    /// Transactions that change the balance of `from`.
    StateDiffs,
}

pub(in crate::demo) fn reply(status: u16, body: impl Into<Vec<u8>>) -> HttpAnswer {
    HttpAnswer::new(status, "application/x-ndjson", body)
}

fn bad(text: &str) -> HttpAnswer {
    reply(400, text)
}

/// A query of chains of a kind, and its blocks as far as the gateway has them; or its refusal.
pub(in crate::demo) fn asked(
    body: &[u8],
    kind: &str,
    (first, head): (Height, Height),
) -> Result<(Value, (Height, Height)), HttpAnswer> {
    let query: Value = serde_json::from_slice(body).map_err(|_| bad("Couldn't parse the query"))?;
    let height = |name: &str| query.get(name).and_then(Value::as_u64);
    let low = height("fromBlock").ok_or_else(|| bad("missing field `fromBlock`"))?;
    if query.get("type").and_then(Value::as_str) != Some(kind) {
        return Err(bad("missing field `type`"));
    }
    if low > head {
        return Err(reply(204, ""));
    }
    if low < first {
        return Err(bad(&format!("Block {low} is below the first block {first}")));
    }
    let high = height("toBlock").unwrap_or(head).min(head);
    Ok((query, (low, high)))
}

fn stream(
    model: &EvmModel,
    options: &PortalOptions,
    body: &[u8],
    head: Height,
    answer_faults: AnswerFaults,
) -> Result<HttpAnswer, HttpAnswer> {
    let (query, (low, high)) = asked(body, "evm", (options.first, head))?;
    let mut picks = picks(&query).map_err(bad)?;
    if options.ignores_filters {
        picks.push(Pick { transaction: true, logs: true, ..Pick::default() });
    }
    if !options.traces && picks.iter().any(|pick| pick.traces) {
        return Err(bad("traces are not available in this dataset"));
    }
    if !options.state_diffs && picks.iter().any(|pick| pick.kind == PickKind::StateDiffs) {
        return Err(bad("state diffs are not available in this dataset"));
    }
    let mut fields = query.get("fields").cloned().unwrap_or_default();
    if !options.nonces
        && let Some(asked) = fields.get_mut("transaction").and_then(Value::as_object_mut)
    {
        asked.remove("nonce");
    }
    let search = Search { model, picks, fields, range: (low, high), options };
    let (mut blocks, end) = by_block(search.found(answer_faults), high, options.transactions_max);
    // The last block of the range is always included.
    blocks.entry(end).or_default();
    let line = |(height, parts)| format!("{}\n", block(model, height, parts, &search.fields));
    Ok(reply(200, blocks.into_iter().map(line).collect::<String>()))
}

/// Lists of one transaction's parts, by their names in a block.
type Parts = [(&'static str, Vec<Value>); 4];

struct Search<'a> {
    model: &'a EvmModel,
    options: &'a PortalOptions,
    picks: Vec<Pick>,
    fields: Value,
    range: (Height, Height),
}

impl Search<'_> {
    /// What is to be shown, after faults.
    fn found(&self, answer_faults: AnswerFaults) -> Vec<(Spot, Parts)> {
        let mut found = self.matches();
        // Histories are made apart from one another. At one place stands one transaction: that of
        // whom is asked for first.
        found.sort_by_key(|(spot, _)| *spot);
        found.dedup_by_key(|(spot, _)| *spot);
        answer_faults.omit_logs(&mut found);
        answer_faults.lie.reduce(&mut found, |(spot, _)| spot.height);
        found
    }

    /// Matches in ascending order: of each wallet as many as one answer can hold.
    fn matches(&self) -> Vec<(Spot, Parts)> {
        let Self { model, options, range, .. } = *self;
        let most = options.transactions_max;
        let mut wallets: Vec<Arc<WalletHistory>> = Vec::new();
        for pick in &self.picks {
            let named = pick.from.as_ref().or(pick.to.as_ref());
            let all = match named {
                Some(named) => named.iter().filter_map(|account| model.wallet(account)).collect(),
                None if references::are_all(model.places(), &pick.filter) => continue,
                None => wallets_of(&pick.filter, model),
            };
            for wallet in all {
                if wallets.iter().all(|known| known.address != wallet.address) {
                    wallets.push(wallet);
                }
            }
        }
        let mut matches = Vec::new();
        for swaps in self.picks.iter().filter_map(|pick| model.reference_swaps(&pick.filter, range))
        {
            let part = |found: PlacedTx| Some((found.spot, self.selected(&found)?));
            matches.extend(swaps.filter_map(part).take(most + 1));
        }
        for wallet in &wallets {
            let (mut count, mut last) = (0, None);
            let is_hidden = |found: &PlacedTx| {
                let is_sent = found.tx.call.from == wallet.address;
                is_sent && options.hidden_nonce == Some(found.nonce)
            };
            for found in model.transactions(wallet, range).filter(|found| !is_hidden(found)) {
                if count >= most && last != Some(found.spot.height) {
                    break;
                }
                if let Some(part) = self.selected(&found) {
                    matches.push((found.spot, part));
                    (count, last) = (count + 1, Some(found.spot.height));
                }
            }
        }
        matches
    }

    /// The selected parts of a transaction: its item, its events and traces by kind.
    fn selected(&self, found: &PlacedTx) -> Option<Parts> {
        let fields = &self.fields;
        let logs = &found.tx.logs;
        let diffs = |pick: &Pick| -> Vec<Value> {
            let accounts = pick.from.iter().flatten();
            accounts.filter_map(|one| self.balance_diff(found, one)).collect()
        };
        let fits = |pick: &&Pick| match pick.kind {
            PickKind::Logs => logs.iter().any(|log| pick.filter.fits(log)),
            PickKind::Transactions => pick.fits_ends(&found.tx.call),
            PickKind::StateDiffs => !diffs(pick).is_empty(),
        };
        let picks: Vec<&Pick> = self.picks.iter().filter(fits).collect();
        let of = |kind| picks.iter().copied().filter(move |pick| pick.kind == kind);
        let any = |part: fn(&Pick) -> bool| picks.iter().any(|pick| part(pick));
        let with_tx = any(|pick| pick.transaction).then(|| transaction(found, fields));
        let all_logs = any(|pick| pick.logs);
        let is_shown = |log| all_logs || of(PickKind::Logs).any(|pick| pick.filter.fits(log));
        let events = logs.iter().enumerate().filter(|(_, log)| is_shown(log));
        let traces = any(|pick| pick.traces).then(|| traces(found, fields));
        (!picks.is_empty()).then(|| {
            [
                ("transactions", with_tx.into_iter().collect()),
                ("logs", events.map(|(at, _)| log(found, at, fields)).collect()),
                ("traces", traces.unwrap_or_default()),
                ("stateDiffs", of(PickKind::StateDiffs).flat_map(diffs).collect()),
            ]
        })
    }

    /// How a transaction changes an account's balance; `None` where it does not.
    fn balance_diff(&self, found: &PlacedTx, account: &Account) -> Option<Value> {
        let wallet = self.model.wallet(account)?;
        let (got, gave) = moved(&found.tx.call, account);
        let fee = if found.tx.call.from == *account { found.tx.gas.cost() } else { 0 };
        let below = found.spot.height.checked_sub(1)?;
        // Of several transactions in a block, each begins with the balance with which the block
        // began.
        let before = self.model.holding(&wallet, below).balance;
        let after = (before + got).checked_sub(gave + fee)?;
        let all = json!({
            "transactionIndex": found.spot.index, "address": wire::hex(account), "key": "balance",
            "kind": "*", "prev": wire::number(before), "next": wire::number(after),
        });
        (before != after).then(|| chosen(&self.fields, "stateDiff", &all))
    }
}

impl Pick {
    fn fits_ends(&self, call: &Frame) -> bool {
        let fits = |choice: &Option<Vec<Account>>, end: &Account| {
            choice.as_ref().is_none_or(|choice| choice.contains(end))
        };
        fits(&self.from, &call.from) && fits(&self.to, &call.to)
    }
}

/// By block, as far as one answer goes, and where it ends.
pub(in crate::demo) fn by_block<T>(
    found: impl IntoIterator<Item = (Spot, T)>,
    high: Height,
    most: usize,
) -> (BTreeMap<Height, Vec<T>>, Height) {
    let mut blocks: BTreeMap<Height, Vec<T>> = BTreeMap::new();
    let (mut end, mut count) = (high, 0);
    for (spot, part) in found {
        if count >= most && !blocks.contains_key(&spot.height) {
            break;
        }
        count += 1;
        blocks.entry(spot.height).or_default().push(part);
        // An early end is at a block boundary.
        end = if count < most { high } else { spot.height };
    }
    (blocks, end)
}

fn picks(query: &Value) -> Result<Vec<Pick>, &'static str> {
    let list = |name: &str| query.get(name).and_then(Value::as_array).into_iter().flatten();
    let mut picks = Vec::new();
    for raw in list("logs") {
        let words = |name: &str| all(raw, name, wire::bytes);
        let mut topics =
            vec![words("topic0")?, words("topic1")?, words("topic2")?, words("topic3")?];
        while topics.last().is_some_and(Option::is_none) {
            topics.pop();
        }
        picks.push(Pick {
            filter: LogFilter { addresses: all(raw, "address", wire::bytes)?, topics },
            kind: PickKind::Logs,
            transaction: flag(raw, "transaction"),
            logs: flag(raw, "transactionLogs"),
            traces: flag(raw, "transactionTraces"),
            ..Pick::default()
        });
    }
    for raw in list("transactions") {
        picks.push(Pick {
            from: all(raw, "from", wire::bytes)?,
            to: all(raw, "to", wire::bytes)?,
            logs: flag(raw, "logs"),
            transaction: true,
            traces: flag(raw, "traces"),
            ..Pick::default()
        });
    }
    for raw in list("stateDiffs") {
        if raw.get("key") != Some(&json!(["balance"])) {
            return Err("only balances are offered");
        }
        picks.push(Pick {
            from: all(raw, "address", wire::bytes)?,
            kind: PickKind::StateDiffs,
            transaction: flag(raw, "transaction"),
            ..Pick::default()
        });
    }
    Ok(picks)
}

fn flag(raw: &Value, name: &str) -> bool {
    raw.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// `Ok(None)` where the query has no condition.
fn all<T>(
    raw: &Value,
    name: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<Vec<T>>, &'static str> {
    let read = |text: &Value| text.as_str().and_then(&read).ok_or("a filter cannot be read");
    match raw.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(texts)) => texts.iter().map(read).collect::<Result<_, _>>().map(Some),
        Some(_) => Err("a filter is no list"),
    }
}

fn block(model: &EvmModel, height: Height, parts: Vec<Parts>, fields: &Value) -> Value {
    let parent = height.checked_sub(1).map_or([0; 32], |below| model.block_hash(below));
    let header = json!({
        "number": height, "hash": wire::hex(&model.block_hash(height)),
        "parentHash": wire::hex(&parent), "timestamp": model.time_of(height).0,
        "miner": wire::hex(&model.places().made(Made::Miner, height % 9)),
    });
    let mut lists: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (name, list) in parts.into_iter().flatten() {
        lists.entry(name).or_default().extend(list);
    }
    lists.retain(|_, list| !list.is_empty());
    let mut block = json!(lists);
    set(&mut block, "header", chosen(fields, "block", &header));
    block
}

/// The selected fields; a block's number is always included.
fn chosen(fields: &Value, kind: &str, all: &Value) -> Value {
    let asked = |name: &str| {
        fields.get(kind).is_some_and(|kind| flag(kind, name))
            || (kind == "block" && name == "number")
    };
    let all = all.as_object().into_iter().flatten();
    let chosen = all.filter(|(name, _)| asked(name));
    Value::Object(chosen.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn transaction(found: &PlacedTx, fields: &Value) -> Value {
    let call = &found.tx.call;
    let sighash = call.input.get(..4).map(wire::hex);
    let all = json!({
        "transactionIndex": found.spot.index, "hash": wire::hex(&found.hash),
        "from": wire::hex(&call.from), "to": wire::hex(&call.to),
        "value": wire::number(call.value), "sighash": sighash,
        "input": wire::hex(&call.input), "nonce": found.nonce,
        "status": u8::from(!call.failed), "type": 2, "gasUsed": wire::number(found.tx.gas.used),
        "effectiveGasPrice": wire::number(found.tx.gas.price),
    });
    chosen(fields, "transaction", &all)
}

fn log(found: &PlacedTx, at: usize, fields: &Value) -> Value {
    let index = wire::log_index(found, u64::try_from(at).unwrap_or(0));
    let Some(log) = found.tx.logs.get(at) else { return Value::Null };
    let topics: Vec<String> = log.topics.iter().map(|topic: &Word| wire::hex(topic)).collect();
    let all = json!({
        "logIndex": index, "transactionIndex": found.spot.index,
        "transactionHash": wire::hex(&found.hash), "address": wire::hex(&log.address),
        "topics": topics, "data": wire::hex(&log.data),
    });
    chosen(fields, "log", &all)
}

/// Native coin that an account got and gave by calls that were not reverted.
fn moved(call: &Frame, account: &Account) -> (u128, u128) {
    let sum = |end: fn(&Frame) -> &Account| {
        let calls = wire::flat(call)
            .into_iter()
            .filter(|(_, frame, undone)| !undone && frame.op == Op::Call && end(frame) == account);
        calls.map(|(_, frame, _)| frame.value).sum::<u128>()
    };
    (sum(|frame| &frame.to), sum(|frame| &frame.from))
}

fn traces(found: &PlacedTx, fields: &Value) -> Vec<Value> {
    let row = |(place, frame, _): (Vec<usize>, &Frame, bool)| {
        let all = json!({
            "transactionIndex": found.spot.index, "traceAddress": place, "type": "call",
            "subtraces": frame.calls.len(),
            "error": frame.failed.then_some("Reverted"), "revertReason": null,
        });
        // Each by its names in the query and in the answer.
        let action = [
            ("callFrom", "from", json!(wire::hex(&frame.from))),
            ("callTo", "to", json!(wire::hex(&frame.to))),
            ("callValue", "value", json!(wire::number(frame.value))),
            ("callCallType", "callType", json!(wire::call_type(frame.op))),
        ];
        let asked = |name: &str| fields.get("trace").is_some_and(|trace| flag(trace, name));
        let parts = action.into_iter().filter(|(name, ..)| asked(name));
        let action: Map<String, Value> =
            parts.map(|(_, name, value)| (name.to_owned(), value)).collect();
        let mut row = chosen(fields, "trace", &all);
        if !action.is_empty() {
            set(&mut row, "action", action);
        }
        row
    };
    wire::flat(&found.tx.call).into_iter().map(row).collect()
}
