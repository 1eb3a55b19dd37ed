//! Searches for events: the refusals of those that are too large.

use super::wire;
use crate::rpc::ask::ReplyClass;
use crate::rpc::classify::words;

/// Of a search that a node or what stands before it ended.
const TOO_LONG: &str = "the search takes too long";
const TIMEOUT_WORDS: [&str; 5] =
    ["timeout", "timed out", "time-out", "deadline exceeded", "took too long"];

/// A smaller range may be answered.
pub(super) fn is_too_wide(message: &str) -> bool {
    message == TOO_LONG || wire::is_too_much(message)
}

/// As [`wire::rpc_reading`], but a search that takes too long is not tried again as it is.
pub(super) fn search_reading(status: u16, body: &[u8]) -> ReplyClass {
    let is_slow = |text: &str| words::holds(&text.to_lowercase(), &TIMEOUT_WORDS);
    match wire::rpc_reading(status, body) {
        ReplyClass::Again(_) | ReplyClass::Unknown { .. } | ReplyClass::Refused { .. }
            if matches!(status, 408 | 504 | 524) =>
        {
            ReplyClass::Refused { code: i64::from(status), message: TOO_LONG.to_owned() }
        }
        ReplyClass::Again(text) | ReplyClass::Unknown { message: text, .. } if is_slow(&text) => {
            ReplyClass::Refused { code: 0, message: TOO_LONG.to_owned() }
        }
        read @ (ReplyClass::Good
        | ReplyClass::SlowDown(_)
        | ReplyClass::Again(_)
        | ReplyClass::NotOffered(_)
        | ReplyClass::Denied(_)
        | ReplyClass::Unknown { .. }
        | ReplyClass::Refused { .. }) => read,
    }
}
