//! The wire format of Etherscan's account lists, as Etherscan and Blockscout return them: all
//! values are strings, and errors come with status 200 and their reason in `result`
//! (docs.etherscan.io, "Common Error Messages"; docs.blockscout.com, "RPC endpoints").

use serde::Deserialize;
use serde_json::value::RawValue;

use super::descent::PageAsk;
use super::list_row::{ListRow, What, without_repeats};
use super::sent::SentNonce;
use super::texts;
use crate::decode::evm::{Account, NativeMove};
use crate::domain::{Height, Units};
use crate::rpc::classify::words;
use crate::rpc::{Ask, ReplyClass};

/// The requested page is longer than the index allows.
pub(super) const PAGE_TOO_LARGE: i64 = -1;
/// The index has not finished some of these blocks: its list is incomplete.
pub(super) const NOT_INDEXED: i64 = -2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ExplorerList {
    Transactions,
    Tokens,
    Calls,
}

impl ExplorerList {
    pub(super) const ALL: [Self; 3] = [Self::Transactions, Self::Tokens, Self::Calls];

    pub(super) fn action(self) -> &'static str {
        match self {
            Self::Transactions => "txlist",
            Self::Tokens => "tokentx",
            Self::Calls => "txlistinternal",
        }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    /// Field of JSON-RPC answers.
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRow<'a> {
    #[serde(borrow, alias = "transactionHash")]
    hash: Option<&'a RawValue>,
    block_number: Option<&'a RawValue>,
    time_stamp: Option<&'a RawValue>,
    transaction_index: Option<&'a RawValue>,
    nonce: Option<&'a RawValue>,
    from: Option<&'a RawValue>,
    to: Option<&'a RawValue>,
    value: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    is_error: Option<&'a RawValue>,
    #[serde(rename = "txreceipt_status")]
    receipt_status: Option<&'a RawValue>,
    contract_address: Option<&'a RawValue>,
    #[serde(rename = "tokenID")]
    token_id: Option<&'a RawValue>,
    #[serde(rename = "type")]
    kind: Option<&'a RawValue>,
    call_type: Option<&'a RawValue>,
    /// Position of a call in its transaction: Etherscan's field, and Blockscout's.
    trace_id: Option<&'a RawValue>,
    index: Option<&'a RawValue>,
}

/// A missing or wrong key, even if the text advises to retry.
const KEY: &[&str] = &["invalid api key", "missing api key", "invalid apikey", "api key attempts"];
const NOT_HERE: &[&str] = &[
    "missing or invalid action",
    "missing or invalid module",
    "not supported",
    "unsupported",
    "unknown action",
    "unknown module",
    "not found for this chain",
    "deprecated",
];
const TOO_LARGE: &[&str] =
    &["window is too large", "smaller result", "result set is too large", "offset"];
/// Texts for a retry, if nothing else matches.
const AGAIN: &[&str] = &["later", "unexpected"];

pub(super) fn read_list(status: u16, body: &[u8]) -> ReplyClass {
    read(status, body, |result| result.starts_with('['))
}

pub(super) fn read_head(status: u16, body: &[u8]) -> ReplyClass {
    let class = read(status, body, |result| result.starts_with("\"0x"));
    // The newest block is not required: an index may refuse it.
    if let ReplyClass::Refused { message, .. } | ReplyClass::Unknown { message, .. } = class {
        return ReplyClass::NotOffered(message);
    }
    class
}

fn read(status: u16, body: &[u8], is_good: fn(&str) -> bool) -> ReplyClass {
    let envelope = std::str::from_utf8(body).ok().and_then(|text| {
        let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
        (envelope.result.is_some() || envelope.message.is_some() || envelope.error.is_some())
            .then_some(envelope)
    });
    let Some(envelope) = envelope else { return of_status(status) };
    let result = envelope.result.map_or("", RawValue::get);
    // Blockscout: the list's blocks are not finished.
    if status == 200 && texts::scalar(envelope.status) == Some("2") {
        let message = texts::scalar(envelope.message).unwrap_or_default().to_owned();
        return ReplyClass::Refused { code: NOT_INDEXED, message };
    }
    if status == 200 && is_good(result) {
        return ReplyClass::Good;
    }
    let message = texts::scalar(envelope.message).unwrap_or_default();
    if status == 200 && says_nothing(message) && is_nothing(result) {
        return ReplyClass::Good;
    }
    let texts = [Some(message), texts::scalar(envelope.result), texts::scalar(envelope.error)];
    let words: Vec<&str> = texts.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    of_text(status, words.join(": "))
}

/// Whether a text is about an empty list ("No transactions found"). Other texts that begin so are
/// of failures.
fn says_nothing(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.starts_with("no ") && lower.contains("found")
}

/// Empty lists come as `[]`, null or the same text; another text is the reason of a refusal.
fn is_nothing(result: &str) -> bool {
    let text = result.trim_matches('"');
    text.is_empty() || text == "null" || text.starts_with('[') || says_nothing(text)
}

fn of_status(status: u16) -> ReplyClass {
    match status {
        429 => ReplyClass::SlowDown(None),
        401..=403 => ReplyClass::Denied(format!("HTTP status {status}")),
        _ => ReplyClass::Again(format!("HTTP status {status} without the JSON that was asked for")),
    }
}

/// One table; the first match decides. The text of a rate limit advises to use a key, that of a
/// busy service to pay, and that of a wrong key to retry later.
fn of_text(status: u16, text: String) -> ReplyClass {
    let lower = text.to_lowercase();
    let holds = |table: &[&str]| words::holds(&lower, table);
    let is_quota = holds(words::LONG);
    if holds(KEY) {
        ReplyClass::Denied(text)
    } else if holds(TOO_LARGE) {
        ReplyClass::Refused { code: PAGE_TOO_LARGE, message: text }
    } else if (status == 429 || holds(words::RATE)) && !is_quota {
        ReplyClass::SlowDown(None)
    } else if holds(words::TEMPORARY) || holds(words::BUSY) {
        ReplyClass::Again(text)
    } else if matches!(status, 401..=403)
        || is_quota
        || holds(words::QUOTA)
        || holds(words::PLAN)
        || holds(words::KEY)
    {
        ReplyClass::Denied(text)
    } else if holds(NOT_HERE) {
        ReplyClass::NotOffered(text)
    } else if status >= 500 || holds(AGAIN) {
        ReplyClass::Again(text)
    } else {
        ReplyClass::Unknown { code: i64::from(status), message: text }
    }
}

/// The rows of a list in the order of the answer; `None` if one cannot be decoded.
pub(super) fn rows(list: ExplorerList, body: &[u8], wallet: &Account) -> Option<Vec<ListRow>> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).ok()?;
    let result = envelope.result.map_or("", RawValue::get);
    if !result.starts_with('[') {
        return Some(Vec::new());
    }
    let rows: Vec<RawRow<'_>> = serde_json::from_str(result).ok()?;
    let marked = |raw| Some((mark(raw), row(list, raw, wallet)?));
    rows.iter().map(marked).collect::<Option<Vec<_>>>().map(without_repeats)
}

pub(super) fn head(body: &[u8]) -> Option<Height> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).ok()?;
    texts::number(texts::scalar(envelope.result)?)
}

fn row(list: ExplorerList, raw: &RawRow<'_>, wallet: &Account) -> Option<ListRow> {
    Some(ListRow {
        hash: texts::word(texts::scalar(raw.hash)?)?,
        block: texts::number(texts::scalar(raw.block_number)?)?,
        index: texts::scalar(raw.transaction_index).and_then(texts::index),
        time: texts::scalar(raw.time_stamp).and_then(texts::time),
        sent: if list == ExplorerList::Transactions { sent(raw, wallet) } else { SentNonce::No },
        what: match list {
            ExplorerList::Transactions => {
                let failed = failed(raw)? || texts::scalar(raw.receipt_status) == Some("0");
                let (from, to) = (account(raw.from)?, account(raw.to));
                let value = texts::units(texts::scalar(raw.value)?)?;
                let selector = texts::scalar(raw.input).and_then(texts::selector);
                if failed { What::Failed } else { What::Outer { from, to, value, selector } }
            }
            ExplorerList::Tokens => token(raw)?,
            ExplorerList::Calls => call(raw, wallet)?,
        },
    })
}

/// `None` if the row does not say it in a known form: a guess would hide a transaction.
fn failed(raw: &RawRow<'_>) -> Option<bool> {
    match texts::scalar(raw.is_error).unwrap_or("0") {
        "0" | "false" => Some(false),
        "1" | "true" => Some(true),
        _ => None,
    }
}

fn account(raw: Option<&RawValue>) -> Option<Account> {
    texts::scalar(raw).and_then(texts::account)
}

fn mark<'a>(raw: &RawRow<'a>) -> Option<&'a str> {
    texts::scalar(raw.trace_id).or(texts::scalar(raw.index)).filter(|mark| !mark.is_empty())
}

fn sent(raw: &RawRow<'_>, wallet: &Account) -> SentNonce {
    if account(raw.from).as_ref() != Some(wallet) {
        return SentNonce::No;
    }
    texts::scalar(raw.nonce).and_then(texts::number).map_or(SentNonce::Unnumbered, SentNonce::Nonce)
}

fn token(raw: &RawRow<'_>) -> Option<What> {
    // Some indexes list NFTs in the token list too, with their id.
    let Some(value) = texts::scalar(raw.value) else { return Some(What::Nothing) };
    if texts::scalar(raw.token_id).is_some() || texts::units(value)? == Units::ZERO {
        return Some(What::Nothing);
    }
    Some(What::Token { from: account(raw.from)?, to: account(raw.to)? })
}

fn call(raw: &RawRow<'_>, wallet: &Account) -> Option<What> {
    // Blockscout lists delegate calls too, with their parent's value.
    let kind = texts::scalar(raw.call_type).or(texts::scalar(raw.kind)).unwrap_or("call");
    let moves = !matches!(kind, "delegatecall" | "staticcall" | "callcode");
    let value = texts::scalar(raw.value).map_or(Some(Units::ZERO), texts::units)?;
    if !moves || failed(raw)? || value == Units::ZERO {
        return Some(What::Nothing);
    }
    let from = account(raw.from)?;
    let to = account(raw.to).or_else(|| account(raw.contract_address))?;
    let touches = from == *wallet || to == *wallet;
    Some(if touches && from != to {
        What::Call(NativeMove { from, to, value })
    } else {
        What::Nothing
    })
}

/// Queries one page of an account's list, newest rows first.
pub(super) fn page_ask(list: ExplorerList, address: String, ask: &PageAsk, rows: usize) -> Ask {
    let query = vec![
        ("module", "account".to_owned()),
        ("action", list.action().to_owned()),
        ("address", address),
        ("startblock", ask.low.to_string()),
        ("endblock", ask.end.to_string()),
        ("page", ask.page.to_string()),
        ("offset", rows.to_string()),
        ("sort", if ask.confirms_end { "asc" } else { "desc" }.to_owned()),
    ];
    Ask { name: list.action(), path: String::new(), query, body: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALLET: Account = [0xaa; 20];

    #[track_caller]
    fn check(status: u16, body: &str, expected: &str) {
        let got = match read_list(status, body.as_bytes()) {
            ReplyClass::Good => "good",
            ReplyClass::SlowDown(_) => "slow",
            ReplyClass::Again(_) => "again",
            ReplyClass::NotOffered(_) => "not here",
            ReplyClass::Denied(_) => "denied",
            ReplyClass::Unknown { .. } => "unknown",
            ReplyClass::Refused { code: PAGE_TOO_LARGE, .. } => "too large",
            ReplyClass::Refused { code: NOT_INDEXED, .. } => "not indexed",
            ReplyClass::Refused { .. } => "refused",
        };
        assert_eq!(got, expected, "{status} {body}");
    }

    fn notok(result: &str) -> String {
        format!(r#"{{"status":"0","message":"NOTOK","result":"{result}"}}"#)
    }

    #[test]
    fn an_empty_list_is_a_success() {
        for body in [
            r#"{"status":"1","message":"OK","result":[]}"#,
            r#"{"status":"0","message":"No transactions found","result":[]}"#,
            r#"{"status":"0","message":"No token transfers found","result":null}"#,
            r#"{"message":"No internal transactions found","result":[],"status":"0"}"#,
            r#"{"status":"0","message":"No records found","result":"No records found"}"#,
        ] {
            check(200, body, "good");
            assert_eq!(rows(ExplorerList::Tokens, body.as_bytes(), &WALLET), Some(vec![]));
        }
    }

    #[test]
    fn error_texts_are_classified() {
        for (text, expected) in [
            ("Max rate limit reached, please use API Key for higher rate limit", "slow"),
            ("Max calls per sec rate limit reached (3/sec)", "slow"),
            ("Max daily rate limit reached. 100000 (100%) of 100000 day/limit", "denied"),
            ("Missing or unsupported chainid parameter (required for v2 api)", "not here"),
            ("Invalid API Key (#err2)|BQ1-", "denied"),
            ("Too many invalid api key attempts, please try again later", "denied"),
            ("Error! Missing Or invalid Action name", "not here"),
            ("Free API access is not supported for this chain. Please upgrade", "denied"),
            (
                "Free API access is temporarily unavailable due to unusually high network \
                 activity. We recommend upgrading to a paid plan",
                "again",
            ),
            ("Query Timeout occured. Please select a smaller result dataset", "too large"),
            ("Unexpected error, timeout or server too busy. Please try again later", "again"),
            ("Unexpected err, timeout occurred or server too busy. Please try again", "again"),
            ("Error! Invalid address format", "unknown"),
        ] {
            check(200, &notok(text), expected);
        }
        let window =
            "Result window is too large, PageNo x Offset size must be less than or equal to 10000";
        check(200, &format!(r#"{{"status":"0","message":"{window}","result":null}}"#), "too large");
        check(200, &notok(window), "too large");
        check(429, "", "slow");
        check(502, "<html>", "again");
        check(200, "<html>", "again");
        check(200, r#"{"status":"1","message":"OK","result":[{"#, "again");
        check(404, "<html>", "again");
        check(403, "<html>", "denied");
        check(400, r#"{"message":"Unknown module","result":null,"status":"0"}"#, "not here");
        let limit = "Max calls per sec rate limit reached (3/sec)";
        let body = format!(r#"{{"message":"No transactions found","result":"{limit}"}}"#);
        check(200, &body, "slow");
        check(200, r#"{"message":"No answer, try again","result":null}"#, "again");
        let pending =
            "Some internal transactions within this block range have not yet been processed";
        let body = format!(r#"{{"message":"{pending}","result":[],"status":"2"}}"#);
        check(200, &body, "not indexed");
    }

    fn one(list: ExplorerList, more: &str) -> What {
        let hash = "11".repeat(32);
        let body = format!(
            r#"{{"status":"1","message":"OK","result":[{{"hash":"0x{hash}","blockNumber":"7",
            "timeStamp":"1700000000","from":"0x{}","to":"0x{}"{more}}}]}}"#,
            "aa".repeat(20),
            "bb".repeat(20)
        );
        let mut rows = rows(list, body.as_bytes(), &WALLET).unwrap();
        assert_eq!((rows[0].block, rows[0].hash), (7, [0x11; 32]));
        rows.remove(0).what
    }

    #[test]
    fn rows_without_a_movement_and_failed_rows_are_recognized() {
        use ExplorerList::{Calls, Tokens, Transactions};
        let [from, to] = [[0xaa; 20], [0xbb; 20]];
        let moved = What::Call(NativeMove { from, to, value: Units::from(5) });
        let (token, value) = (What::Token { from, to }, Units::ZERO);
        let selector = Some([0x12, 0x34, 0x56, 0x78]);
        for (list, more, expected) in [
            (Calls, r#","value":"5","type":"call","isError":"0""#, moved.clone()),
            (Calls, r#","value":"5","isError":false"#, moved.clone()),
            (Calls, r#","value":5,"callType":"call""#, moved),
            (Calls, r#","value":"0","type":"call""#, What::Nothing),
            (Calls, r#","value":"5","type":"delegatecall""#, What::Nothing),
            (Calls, r#","value":"5","type":"call","callType":"staticcall""#, What::Nothing),
            (Calls, r#","value":"5","type":"call","isError":"1""#, What::Nothing),
            (Tokens, r#","value":"5","tokenDecimal":"""#, token),
            (Tokens, r#","value":"0""#, What::Nothing),
            // Tokens with an id are NFTs.
            (Tokens, r#","value":"1","tokenID":"7""#, What::Nothing),
            (Tokens, r#","tokenID":"7""#, What::Nothing),
            (Transactions, r#","value":"0","isError":"1""#, What::Failed),
            (Transactions, r#","value":"0","isError":true"#, What::Failed),
            (Transactions, r#","value":"0","isError":"0","txreceipt_status":"0""#, What::Failed),
            (
                Transactions,
                r#","value":"0","isError":"0","txreceipt_status":"","input":"0x12345678""#,
                What::Outer { from, to: Some(to), value, selector },
            ),
        ] {
            assert_eq!(one(list, more), expected, "{more}");
        }
    }

    #[test]
    fn a_call_that_a_page_has_twice_counts_once() {
        let call = |place: &str| {
            format!(
                r#"{{"blockNumber":"7","hash":"0x{:064}","from":"0x{}","to":"0x{}","value":"5"{place}}}"#,
                1,
                "aa".repeat(20),
                "bb".repeat(20),
            )
        };
        let of = |places: &[&str]| {
            let all: Vec<String> = places.iter().map(|place| call(place)).collect();
            let body = format!(r#"{{"status":"1","result":[{}]}}"#, all.join(","));
            rows(ExplorerList::Calls, body.as_bytes(), &WALLET).unwrap()
        };
        let count = |places: &[&str]| of(places).len();
        assert_eq!(count(&[r#","traceId":"0_1""#, r#","traceId":"0_1""#]), 1);
        assert_eq!(count(&[r#","index":"3""#, r#","index":"4""#, r#","index":"3""#]), 2);
        assert_eq!(count(&[r#","traceId":"0_1""#, r#","traceId":"0_2""#]), 2);
        // Two equal calls of one transaction, which nothing distinguishes.
        assert_eq!(count(&["", r#","traceId":"""#]), 2);
        // Indexes that name calls differently give the same rows.
        assert_eq!(of(&[r#","traceId":"0_1""#]), of(&[r#","index":"3""#]));
    }
}
