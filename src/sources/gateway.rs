//! What all datasets of an open data gateway have in common (SQD Portal): lines of JSON, one a block,
//! heads, and what a status means.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::domain::Height;
use crate::rpc::ask::ReplyClass;

/// The lines of an answer.
pub(in crate::sources) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

#[derive(Deserialize)]
struct RawHead {
    number: Height,
}

/// What each block of any dataset has.
#[derive(Deserialize)]
struct RawLine<'a> {
    #[serde(borrow, rename = "header")]
    _header: &'a RawValue,
}

#[derive(Deserialize)]
struct RawMetadata {
    #[serde(default)]
    start_block: Option<Height>,
}

/// The newest block; `None` where the answer has none.
pub(in crate::sources) fn head(body: &[u8]) -> Option<Height> {
    let head: Option<RawHead> = serde_json::from_slice(body).ok()?;
    head.map(|head| head.number)
}

/// The first block that the gateway has.
pub(in crate::sources) fn first_block(body: &[u8]) -> Option<Height> {
    serde_json::from_slice::<RawMetadata>(body).ok()?.start_block
}

/// What an answer to a query means.
pub(in crate::sources) fn read_stream(status: u16, body: &[u8]) -> ReplyClass {
    if status != 200 {
        return of_status(status, body);
    }
    let text = std::str::from_utf8(body).unwrap_or("?");
    // An error as JSON, with status 200, is no block: another endpoint is asked.
    let is_block = |line| serde_json::from_str::<RawLine<'_>>(line).is_ok();
    if lines(text).next().is_none() {
        ReplyClass::Again("an answer without any block".to_owned())
    } else if lines(text).all(is_block) {
        ReplyClass::Good
    } else {
        ReplyClass::Again("a line that is no block".to_owned())
    }
}

/// What an answer of one JSON value means.
pub(in crate::sources) fn read_value(status: u16, body: &[u8]) -> ReplyClass {
    if status != 200 {
        return of_status(status, body);
    }
    match serde_json::from_slice::<&RawValue>(body) {
        Ok(_) => ReplyClass::Good,
        Err(_) => ReplyClass::Again("an answer that is no JSON".to_owned()),
    }
}

fn of_status(status: u16, body: &[u8]) -> ReplyClass {
    /// Characters of a text that are kept.
    const TEXT_MAX: usize = 200;
    let text = String::from_utf8_lossy(body).chars().take(TEXT_MAX).collect::<String>();
    let is_page = text.trim_start().starts_with('<');
    match status {
        204 => ReplyClass::Again("the gateway has not reached these blocks".to_owned()),
        // A chain that parted; or a block range that moves from worker to worker.
        409 => ReplyClass::Again("the gateway's blocks do not fit together".to_owned()),
        429 | 529 => ReplyClass::SlowDown(None),
        400 => ReplyClass::Refused { code: 400, message: text },
        401..=403 => ReplyClass::Denied(format!("HTTP status {status}: {text}")),
        404 | 405 | 410 if !is_page => ReplyClass::NotOffered(text),
        _ => ReplyClass::Again(format!("HTTP status {status}: {text}")),
    }
}
