//! Classifies refusals of event searches that are too large.

use super::wire;
use crate::rpc::ReplyClass;
use crate::rpc::classify::words;

/// The text for a search that the node or its proxy ended.
const TOO_LONG: &str = "the search takes too long";
const TIMEOUT_WORDS: [&str; 5] =
    ["timeout", "timed out", "time-out", "deadline exceeded", "took too long"];

/// Whether a smaller range may be answered.
pub(super) fn is_too_wide(message: &str) -> bool {
    message == TOO_LONG || wire::is_too_much(message)
}

/// As [`wire::rpc_reading`], but a search that timed out is not retried unchanged.
pub(super) fn search_reading(status: u16, body: &[u8]) -> ReplyClass {
    let read = wire::rpc_reading(status, body);
    let (ReplyClass::Again(text)
    | ReplyClass::Unknown { message: text, .. }
    | ReplyClass::Refused { message: text, .. }) = &read
    else {
        return read;
    };
    let is_refused = matches!(read, ReplyClass::Refused { .. });
    let code = match status {
        408 | 504 | 524 => i64::from(status),
        _ if !is_refused && words::holds(&text.to_lowercase(), &TIMEOUT_WORDS) => 0,
        _ => return read,
    };
    ReplyClass::Refused { code, message: TOO_LONG.to_owned() }
}
