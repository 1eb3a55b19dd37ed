//! What all datasets of an open data gateway (SQD Portal) share: one JSON object a line and block,
//! heads, and the meaning of HTTP statuses.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::domain::Height;
use crate::rpc::ReplyClass;

pub(in crate::sources) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

#[derive(Deserialize)]
pub(in crate::sources) struct RawHead {
    pub(in crate::sources) number: Height,
}

/// The field that a block of any dataset has.
#[derive(Deserialize)]
struct RawLine<'a> {
    #[serde(borrow, rename = "header")]
    _header: &'a RawValue,
}

/// The height of the newest block; `None` where the answer names none.
pub(in crate::sources) fn head(body: &[u8]) -> Option<Height> {
    let head: Option<RawHead> = serde_json::from_slice(body).ok()?;
    head.map(|head| head.number)
}

/// The first block of a dataset, 0 where its metadata name none; `None` where the answer is not the
/// metadata of a dataset.
pub(in crate::sources) fn first_block(body: &[u8]) -> Option<Height> {
    let metadata: Value = serde_json::from_slice(body).ok()?;
    let field = |name: &str| metadata.get(name).filter(|field| !field.is_null());
    match field("start_block") {
        Some(start) => start.as_u64(),
        None => ["dataset", "aliases", "real_time"].into_iter().find_map(field).map(|_| 0),
    }
}

pub(in crate::sources) fn classify_stream(status: u16, body: &[u8]) -> ReplyClass {
    if status != 200 {
        return classify_status(status, body);
    }
    let text = std::str::from_utf8(body).unwrap_or("?");
    // An error as JSON with status 200 is not a block: another endpoint is queried.
    let is_block = |line| serde_json::from_str::<RawLine<'_>>(line).is_ok();
    if lines(text).next().is_none() {
        ReplyClass::Again("an answer without any block".to_owned())
    } else if lines(text).all(is_block) {
        ReplyClass::Good
    } else {
        ReplyClass::Again("a line that is no block".to_owned())
    }
}

pub(in crate::sources) fn classify_value(status: u16, body: &[u8]) -> ReplyClass {
    if status != 200 {
        return classify_status(status, body);
    }
    match serde_json::from_slice::<&RawValue>(body) {
        Ok(_) => ReplyClass::Good,
        Err(_) => ReplyClass::Again("an answer that is no JSON".to_owned()),
    }
}

/// Classifies the answer to `/metadata`. An answer without a dataset's fields does not prove that
/// all blocks are kept; a 400 cannot be about parameters, as the request has none, so it is
/// retried.
pub(in crate::sources) fn classify_metadata(status: u16, body: &[u8]) -> ReplyClass {
    match status {
        200 if first_block(body).is_some() => ReplyClass::Good,
        200 => ReplyClass::Again("an answer that is no metadata of a dataset".to_owned()),
        400 => ReplyClass::Again("HTTP status 400 to a question without parameters".to_owned()),
        501 => ReplyClass::NotOffered("HTTP status 501".to_owned()),
        _ => classify_status(status, body),
    }
}

fn classify_status(status: u16, body: &[u8]) -> ReplyClass {
    let text = String::from_utf8_lossy(body).into_owned();
    let is_page = text.trim_start().starts_with('<');
    match status {
        204 => ReplyClass::Again("the gateway has not reached these blocks".to_owned()),
        // The chain was reorged, or the gateway is moving the block range between its workers.
        409 => ReplyClass::Again("the gateway's blocks do not fit together".to_owned()),
        429 | 529 => ReplyClass::SlowDown(None),
        400 => ReplyClass::Refused { code: 400, message: text },
        401..=403 => ReplyClass::Denied(format!("HTTP status {status}: {text}")),
        404 | 405 | 410 if !is_page => ReplyClass::NotOffered(text),
        _ => ReplyClass::Again(format!("HTTP status {status}: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, expected: &str) {
        let got = match classify_metadata(status, body.as_bytes()) {
            ReplyClass::Good => "good",
            ReplyClass::SlowDown(_) => "slow",
            ReplyClass::Again(_) => "again",
            ReplyClass::NotOffered(_) => "not here",
            ReplyClass::Denied(_) => "denied",
            ReplyClass::Unknown { .. } | ReplyClass::Refused { .. } => "refused",
        };
        assert_eq!(got, expected, "{status} {body}");
    }

    /// The pool masks keys before it truncates: a truncated key would not be recognized.
    #[test]
    fn a_text_is_handed_on_whole() {
        let body = format!("{} key-at-the-end", "x".repeat(190));
        for status in [400, 403, 404, 500] {
            let read = classify_value(status, body.as_bytes());
            assert!(format!("{read:?}").contains("key-at-the-end"), "{read:?}");
        }
    }

    #[test]
    fn only_metadata_of_a_dataset_say_where_it_begins() {
        let first = |body: &str| first_block(body.as_bytes());
        for (body, expected) in [
            (r#"{"dataset":"eth","aliases":[],"real_time":true,"start_block":405}"#, 405),
            (r#"{"start_block":405}"#, 405),
            (r#"{"dataset":"eth","aliases":["ethereum"],"real_time":false}"#, 0),
            (r#"{"real_time":true,"start_block":null}"#, 0),
        ] {
            assert_eq!(first(body), Some(expected), "{body}");
            check(200, body, "good");
        }
        for body in [
            r#"{"message":"too many requests"}"#,
            r#"{"dataset":"eth","start_block":"soon"}"#,
            r#"{"dataset":null}"#,
            "null",
            "{}",
            "<html>",
        ] {
            assert_eq!(first(body), None, "{body}");
            check(200, body, "again");
        }
        check(400, "bad request", "again");
        check(503, "", "again");
        check(429, "", "slow");
        check(403, "", "denied");
        for status in [404, 405, 501] {
            check(status, "Not found", "not here");
        }
        check(404, "<html>", "again");
    }
}
