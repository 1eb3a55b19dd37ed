//! Decodes the answers of `TronGrid` v1, java-tron's HTTP API and its JSON-RPC (tronprotocol
//! documentation), and classifies their errors.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::envelope::{ListedTransaction, RawData, Ret, Text};
use super::seen::{SeenTx, SentTx, TxPurpose};
use crate::decode::evm::{Account, Word};
use crate::decode::tron::{self, Asset, ExchangeId, asset};
use crate::domain::Height;
use crate::rpc::classify::{self, TIME_OUTS, words};
use crate::rpc::{CallOutcome, ReplyClass, RpcError};
use crate::sources::evm::{ranges, wire as evm_wire};

/// Fields of error answers: nodes use `Error`, the index `success` and `error`.
#[derive(Deserialize, Default)]
struct Failed {
    #[serde(rename = "Error")]
    node: Option<String>,
    success: Option<bool>,
    error: Option<String>,
    #[serde(rename = "statusCode")]
    status: Option<i64>,
}

const SLOW_DOWN: &[&str] =
    &["frequency limit", "suspended", "lack of computing resources", "rate limit", "too many"];
/// A node lacks a service, or has it disabled.
const NOT_OFFERED: &[&str] = &["not support", "is closed", "not open", "lite fullnode"];
const AGAIN: &[&str] = &["internal", "nullpointer"];
/// Errors of the request itself (java-tron's `Util` and contract calls).
const OF_REQUEST: &[&str] =
    &["invalid address", "invalid hex", "invalid param", "revert", "no contract", "does not exist"];

/// Classifies a status and a body. An error may come with status 200.
pub fn reading(status: u16, body: &[u8]) -> ReplyClass {
    error_of(status, body).map_or_else(|read| read, |(code, text)| refusal(status, code, text))
}

/// Code and text of an error; the class of an answer that is no error.
fn error_of(status: u16, body: &[u8]) -> Result<(i64, String), ReplyClass> {
    // A valid answer is an object or a list; an error is never a list.
    let failed = match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => serde_json::from_slice::<Failed>(body).ok(),
        Some(b'[') => Some(Failed::default()),
        Some(_) | None => None,
    };
    let refused = failed.as_ref().is_some_and(|failed| {
        failed.node.is_some() || failed.success == Some(false) || failed.error.is_some()
    });
    if status < 400 && !refused {
        return Err(match failed {
            Some(_) if serde_json::from_slice::<&RawValue>(body).is_ok() => ReplyClass::Good,
            Some(_) | None => ReplyClass::Again("an answer that is no JSON".to_owned()),
        });
    }
    let failed = failed.unwrap_or_default();
    let code = failed.status.unwrap_or(i64::from(status));
    let text = failed.node.or(failed.error).unwrap_or_default();
    // The text may be a bare line after JSON.
    let text = if text.is_empty() { String::from_utf8_lossy(body).into_owned() } else { text };
    Ok((code, text))
}

/// Characters of a text that are matched. The whole text is kept: the pool masks keys before it
/// truncates.
const TEXT_CHARS_MAX: usize = 500;

/// Classifies all refusals: the first match decides by status, code and text. For an HTML page only
/// the status counts.
fn refusal(status: u16, code: i64, message: String) -> ReplyClass {
    let lower = message.chars().take(TEXT_CHARS_MAX).collect::<String>().to_lowercase();
    let is_page = lower.trim_start().starts_with('<');
    let holds = |table: &[&str]| !is_page && words::holds(&lower, table);
    if holds(words::LONG) {
        return ReplyClass::Denied(message);
    }
    if holds(SLOW_DOWN) || holds(words::RATE) {
        // "the query server is suspended for 30s"
        let seconds = number_behind(&lower, "suspended for ");
        return ReplyClass::SlowDown(seconds.map(Duration::from_secs));
    }
    match (status, code) {
        (429, _) | (_, 429) => ReplyClass::SlowDown(None),
        (401 | 402, _) | (_, 401 | 402) => ReplyClass::Denied(message),
        _ if holds(words::QUOTA) || holds(words::KEY) || holds(words::PLAN) => {
            ReplyClass::Denied(message)
        }
        // The index answers in this way to clients without a key, and goes on doing so for half a
        // minute.
        (403, _) | (_, 403) => ReplyClass::SlowDown(Some(KEYLESS_REST)),
        // The answer may also be an HTML page: a node without the index returns that of Jetty.
        (404 | 405 | 410 | 501, _) => ReplyClass::NotOffered(message),
        (408 | 500.., _) => ReplyClass::Again(format!("HTTP status {status}")),
        _ if holds(OF_REQUEST) => ReplyClass::Refused { code, message },
        _ if holds(NOT_OFFERED) => ReplyClass::NotOffered(message),
        _ if holds(AGAIN) || holds(words::TEMPORARY) => ReplyClass::Again(message),
        _ => ReplyClass::Unknown { code, message },
    }
}

/// How long the index rejects clients without a key after too many requests (`TronGrid`
/// documentation).
const KEYLESS_REST: Duration = Duration::from_secs(30);

fn number_behind(text: &str, words: &str) -> Option<u64> {
    let (_, rest) = text.split_once(words)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// An answer that does not have the expected form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

#[derive(Deserialize)]
struct AccountState<'a> {
    #[serde(borrow)]
    address: Option<Text<'a>>,
    #[serde(default)]
    create_time: u64,
}

/// When an account was created, in milliseconds; `None` if the node does not have it.
pub(super) fn account_made(body: &[u8]) -> Result<Option<u64>, Unreadable> {
    let state: AccountState<'_> = serde_json::from_slice(body).map_err(|_| Unreadable)?;
    Ok(state.address.map(|_| state.create_time))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) rows: Vec<FoundRow>,
    /// Entries on the page, including those that are skipped.
    pub(super) items: usize,
    /// A limit of the index may have cut it.
    pub(super) is_full: bool,
    pub(super) fingerprint: Option<String>,
}

impl Page {
    /// All rows of two answers to one query, as far down as both reach. If one of them does not go
    /// down, or is unordered, only the other counts: an end requires two answers that show it.
    pub(super) fn joined(self, other: Self) -> Self {
        let low = match (self.end(), other.end()) {
            (Some(end), Some(other)) => end.max(other),
            (None, Some(_)) => return other,
            (_, None) => return self,
        };
        // The cursor belongs to this answer's own end.
        let is_whole = self.end() == Some(low);
        let fingerprint = self.fingerprint.filter(|_| is_whole);
        let mut rows = self.rows;
        let mut places = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            places.entry(row.id).or_insert(at);
        }
        for more in other.rows {
            match places.get(&more.id).and_then(|at| rows.get_mut(*at)) {
                Some(row) => row.seen.join(more.seen),
                None => rows.push(more),
            }
        }
        rows.retain(|row| row.at >= low);
        rows.sort_by_key(|row| Reverse(row.at));
        let is_full = self.is_full || other.is_full;
        Self { items: self.items.max(rows.len()), rows, is_full, fingerprint }
    }

    /// Position of its last entry, if that is below its first.
    fn end(&self) -> Option<u64> {
        let (first, last) = (self.rows.first()?.at, self.rows.last()?.at);
        let is_sorted = self.rows.is_sorted_by(|one, next| one.at >= next.at);
        (last < first && is_sorted).then_some(last)
    }
}

/// One entry of a list, or one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundRow {
    pub(super) id: Word,
    /// Its position: milliseconds of its block in the index's lists, a height in events.
    pub(super) at: u64,
    pub(super) height: Option<Height>,
    pub(super) seen: SeenTx,
}

#[derive(Deserialize)]
struct Envelope<T> {
    data: Vec<T>,
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    fingerprint: Option<String>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, rename = "txID", alias = "tx_id")]
    id: Text<'a>,
    block_timestamp: u64,
    #[serde(rename = "blockNumber")]
    height: Option<Height>,
    #[serde(borrow, default)]
    ret: Vec<Ret<'a>>,
    #[serde(borrow)]
    raw_data: Option<RawData<'a>>,
}

/// Calls that only move or release one token: `transfer`, `approve` and the like.
const TOKEN_CALLS: [&str; 6] =
    ["a9059cbb", "095ea7b3", "d73dd623", "66188463", "39509351", "a457c2d7"];

/// `/v1/accounts/{address}/transactions`.
pub(super) fn transactions(body: &[u8], wallet: &Account) -> Option<Page> {
    page(body, |item: &&RawValue| transaction_row(item, wallet))
}

fn page<'a, T: Deserialize<'a>>(
    body: &'a [u8],
    row: impl Fn(&T) -> Option<FoundRow>,
) -> Option<Page> {
    let Envelope { data, meta } = serde_json::from_slice::<Envelope<T>>(body).ok()?;
    let rows = data.iter().map(row).collect::<Option<Vec<FoundRow>>>()?;
    let fingerprint = meta.and_then(|meta| meta.fingerprint).filter(|text| !text.is_empty());
    Some(Page { rows, items: data.len(), is_full: false, fingerprint })
}

fn transaction_row(raw: &RawValue, wallet: &Account) -> Option<FoundRow> {
    let item: Item<'_> = serde_json::from_str(raw.get()).ok()?;
    let sent = sent(&item.ret, item.raw_data.as_ref(), raw, wallet);
    // An entry of another form is an inner call.
    let inner = sent.as_ref().is_none_or(|sent| !sent.is_wallets);
    let seen = SeenTx { inner, sent, ..SeenTx::default() };
    Some(FoundRow { id: word(&item.id)?, at: item.block_timestamp, height: item.height, seen })
}

fn sent(
    ret: &[Ret<'_>],
    data: Option<&RawData<'_>>,
    raw: &RawValue,
    wallet: &Account,
) -> Option<SentTx> {
    let contract = data?.contract.first()?;
    let value = &contract.parameter.value;
    let stated = |is_good: bool| {
        let mut results = ret.iter().filter_map(|ret| ret.contract_ret.as_deref());
        results.any(|result| (result == "SUCCESS") == is_good)
    };
    let selector = value.data.as_deref().and_then(|data| data.get(..8)).unwrap_or_default();
    let kind = match &*contract.kind {
        "TriggerSmartContract" if TOKEN_CALLS.contains(&selector) => TxPurpose::TokenCall,
        "TriggerSmartContract" | "CreateSmartContract" => TxPurpose::Call,
        "ExchangeTransactionContract" | "MarketSellAssetContract" => TxPurpose::NativeTrade,
        _ => TxPurpose::Plain,
    };
    let called = value.contract_address.as_deref().and_then(account);
    let is_wallets =
        account(&value.owner_address).as_ref() == Some(wallet) || called.as_ref() == Some(wallet);
    let (failures, is_good) = (u32::from(stated(false)), stated(true));
    Some(SentTx { json: raw.get().to_owned(), kind, is_wallets, failures, is_good })
}

/// `/wallet/gettransactionbyid`; `None` inside if the node does not know it, or returns another
/// one.
pub(super) fn transaction(
    body: &[u8],
    asked: &Word,
    wallet: &Account,
) -> Result<Option<SentTx>, Unreadable> {
    let raw: &RawValue = serde_json::from_slice(body).map_err(|_| Unreadable)?;
    let ListedTransaction { id, ret, raw_data } =
        serde_json::from_str(raw.get()).map_err(|_| Unreadable)?;
    if id.is_none_or(|id| *id != *hex::encode(asked)) {
        return Ok(None);
    }
    sent(&ret, raw_data.as_ref(), raw, wallet).map(Some).ok_or(Unreadable)
}

#[derive(Deserialize)]
struct Transfer<'a> {
    #[serde(borrow)]
    transaction_id: Text<'a>,
    block_timestamp: u64,
    #[serde(borrow, default)]
    from: Text<'a>,
    #[serde(borrow, default)]
    to: Text<'a>,
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    value: Text<'a>,
}

/// `/v1/accounts/{address}/transactions/trc20`.
pub(super) fn transfers(body: &[u8], wallet: &Account) -> Option<Page> {
    page(body, |item: &Transfer<'_>| {
        let is = |text: &str| account(text).as_ref() == Some(wallet);
        let moved = item.kind.as_deref().is_none_or(|kind| kind == "Transfer")
            && item.value.bytes().any(|digit| digit != b'0');
        let (gave, got) = (moved && is(&item.from), moved && is(&item.to));
        let seen = SeenTx { gave, got, ..SeenTx::default() };
        Some(FoundRow {
            id: word(&item.transaction_id)?,
            at: item.block_timestamp,
            height: None,
            seen,
        })
    })
}

#[derive(Deserialize)]
struct BlockAnswer<'a> {
    #[serde(borrow, rename = "blockID")]
    id: Option<Text<'a>>,
    block_header: Option<BlockHeader>,
    #[serde(borrow, default)]
    transactions: Vec<BlockTransaction<'a>>,
}

#[derive(Deserialize)]
struct BlockHeader {
    raw_data: BlockData,
}

#[derive(Deserialize)]
struct BlockData {
    #[serde(default)]
    number: Height,
    #[serde(default)]
    timestamp: u64,
}

#[derive(Deserialize)]
struct BlockTransaction<'a> {
    #[serde(borrow, rename = "txID")]
    id: Text<'a>,
}

/// A block, as far as the node returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) height: Height,
    pub(super) hash: Word,
    pub(super) millis: u64,
    pub(super) ids: Vec<Word>,
}

/// `getnowblock`, `getblock`, `getblockbynum`; `None` inside for a block that does not exist.
pub(super) fn block(body: &[u8]) -> Result<Option<Block>, Unreadable> {
    let answer: BlockAnswer<'_> = serde_json::from_slice(body).map_err(|_| Unreadable)?;
    let (Some(id), Some(header)) = (answer.id, answer.block_header) else { return Ok(None) };
    let BlockData { number: height, timestamp: millis } = header.raw_data;
    let ids = answer.transactions.iter().map(|tx| word(&tx.id)).collect::<Option<_>>();
    let (hash, ids) = word(&id).zip(ids).ok_or(Unreadable)?;
    Ok(Some(Block { height, hash, millis, ids }))
}

/// `getexchangebyid`; `None` inside if it does not exist or is another one, or its tokens have no
/// ids.
pub(super) fn exchange(body: &[u8], asked: ExchangeId) -> Result<Option<[Asset; 2]>, Unreadable> {
    #[derive(Deserialize)]
    struct Exchange {
        #[serde(rename = "exchange_id")]
        id: Option<ExchangeId>,
        #[serde(rename = "first_token_id")]
        first: Option<String>,
        #[serde(rename = "second_token_id")]
        second: Option<String>,
    }
    let given: Exchange = serde_json::from_slice(body).map_err(|_| Unreadable)?;
    if given.id.is_some_and(|id| id != asked) {
        return Ok(None);
    }
    let pair = given.first.as_deref().zip(given.second.as_deref());
    Ok(pair.and_then(|(first, second)| Some([asset(first)?, asset(second)?])))
}

pub(super) fn word(text: &str) -> Option<Word> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text.strip_prefix("0x").unwrap_or(text), &mut bytes).ok()?;
    Some(bytes)
}

pub(super) fn account(text: &str) -> Option<Account> {
    tron::account(text).ok()
}

/// Whether the answer is `{}`, as nodes return for unknown items.
pub(super) fn is_empty(body: &[u8]) -> bool {
    body.iter().filter(|byte| !byte.is_ascii_whitespace()).eq(b"{}")
}

/// The number in the first of some answers of JSON-RPC.
pub(super) fn first_number(answers: &[CallOutcome]) -> Option<u64> {
    evm_wire::number(answers.first()?.as_ref().ok()?)
}

/// Events of a block, by the infos of its transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockEvents {
    /// There are no infos.
    Unknown,
    None,
    /// There are events; the first topic of one of them.
    Some(Word),
}

pub(super) fn block_events(body: &[u8]) -> BlockEvents {
    #[derive(Deserialize)]
    struct Info<'a> {
        #[serde(borrow, default)]
        log: Vec<Log<'a>>,
    }
    #[derive(Deserialize)]
    struct Log<'a> {
        #[serde(borrow, default)]
        topics: Vec<Text<'a>>,
    }
    let infos: Vec<Info<'_>> = serde_json::from_slice(body).unwrap_or_default();
    let mut logs = infos.iter().flat_map(|info| &info.log).peekable();
    if infos.is_empty() || logs.peek().is_none() {
        return if infos.is_empty() { BlockEvents::Unknown } else { BlockEvents::None };
    }
    let topic = logs.find_map(|log| word(log.topics.first()?));
    topic.map_or(BlockEvents::Unknown, BlockEvents::Some)
}

pub(super) fn heights(raw: &RawValue) -> Option<Vec<Height>> {
    #[derive(Deserialize)]
    struct At<'a> {
        #[serde(borrow, rename = "blockNumber")]
        height: Text<'a>,
    }
    let events: Vec<At<'_>> = serde_json::from_str(raw.get()).ok()?;
    events.iter().map(|event| evm_wire::hex_number(&event.height)).collect()
}

/// The item of a block's transactions, or of its infos, whose field `name` is this id.
pub(super) fn of_block(list: &RawValue, name: &str, id: &Word) -> Option<Box<RawValue>> {
    let all: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
    let is = |item: &&&RawValue| {
        let fields: HashMap<String, &RawValue> =
            serde_json::from_str(item.get()).unwrap_or_default();
        let text = fields.get(name).and_then(|text| serde_json::from_str(text.get()).ok());
        text.and_then(|text: String| word(&text)).as_ref() == Some(id)
    };
    all.iter().find(is).map(|item| (*item).to_owned())
}

/// The transactions of a block; `None` if it has none, or is not returned.
pub(super) fn block_transactions(body: &[u8]) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Whole<'a> {
        #[serde(borrow)]
        transactions: Option<&'a RawValue>,
    }
    serde_json::from_slice::<Whole<'_>>(body).ok()?.transactions.map(ToOwned::to_owned)
}

/// As [`reading`], for JSON-RPC: if one call of a batch was refused for its rate, all are retried.
pub fn rpc_reading(status: u16, body: &[u8]) -> ReplyClass {
    answers(status, body, is_too_large)
}

/// As [`rpc_reading`], but a search that timed out is not retried unchanged.
pub(super) fn search_reading(status: u16, body: &[u8]) -> ReplyClass {
    answers(status, body, is_too_wide)
}

/// `is_final`: a retry unchanged gives the same error, by its code and text.
fn answers(status: u16, body: &[u8], is_final: fn(i64, &str) -> bool) -> ReplyClass {
    #[derive(Deserialize)]
    struct Answer {
        error: Option<RpcError>,
    }
    let class_of = |(code, message): (i64, String)| {
        // A server that is away may name its own time-out of a connection.
        let is_answered = !matches!(status, 401..=403 | 429 | 502 | 503);
        if is_answered && is_final(code, &message) {
            ReplyClass::Refused { code, message }
        } else {
            refusal(status, code, message)
        }
    };
    let whole = || error_of(status, body).map_or_else(|read| read, class_of);
    if status >= 400 {
        return whole();
    }
    let errors: Vec<RpcError> = match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => match serde_json::from_slice::<Vec<Answer>>(body) {
            Ok(answers) => answers.into_iter().filter_map(|answer| answer.error).collect(),
            Err(_) => return ReplyClass::Again("an answer that is no JSON-RPC".to_owned()),
        },
        Some(_) => match serde_json::from_slice::<Answer>(body) {
            // An error for the whole batch.
            Ok(Answer { error: Some(RpcError { code, message }) }) => {
                let read = class_of((code, message));
                let ReplyClass::NotOffered(message) = read else { return read };
                return ReplyClass::Refused { code, message };
            }
            Ok(Answer { error: None }) | Err(_) => return whole(),
        },
        None => return ReplyClass::Again("an empty answer".to_owned()),
    };
    let is_slow = |read: &ReplyClass| {
        matches!(read, ReplyClass::SlowDown(_) | ReplyClass::Again(_) | ReplyClass::Denied(_))
    };
    let mut classes = errors.into_iter().map(|error| class_of((error.code, error.message)));
    classes.find(is_slow).unwrap_or(ReplyClass::Good)
}

/// Whether fewer searches of events, or of smaller ranges, may be answered. Of a page only the
/// status counts.
pub(super) fn is_too_wide(code: i64, message: &str) -> bool {
    let text = if message.trim_start().starts_with('<') { "" } else { message };
    TIME_OUTS.contains(&code)
        || classify::is_range(code, text)
        // java-tron: "Batch size 101 exceeds the limit of 100".
        || text.to_lowercase().contains("batch size")
}

/// The same without searches that took too long, which may be answered in time on a retry.
pub(super) fn is_too_large(code: i64, message: &str) -> bool {
    is_too_wide(code, message) && !ranges::is_time_out(code, message)
}

/// The limit that a node names: "exceed max block range: 5000".
pub(super) fn range_named(message: &str) -> Option<u64> {
    number_behind(message, "range: ").filter(|range| *range > 0)
}

/// Inclusive heights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeightRange {
    pub(super) low: Height,
    pub(super) high: Height,
}

impl HeightRange {
    pub(super) fn length(self) -> u64 {
        self.high - self.low + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pool masks keys before it truncates: a truncated key would not be recognized.
    #[test]
    fn the_text_of_a_refusal_is_handed_on_whole() {
        let body = format!("{} key-at-the-end", "x".repeat(190));
        for status in [402, 404, 418] {
            let read = reading(status, body.as_bytes());
            assert!(format!("{read:?}").contains("key-at-the-end"), "{read:?}");
        }
    }
}
