//! Searches for events: the refusals of those that are too large.

use super::wire;
use crate::rpc::ask::Reading;

/// Of a search that a node or what stands before it ended.
const TOO_LONG: &str = "the search takes too long";
const TIMEOUT_WORDS: [&str; 5] =
    ["timeout", "timed out", "time-out", "deadline exceeded", "took too long"];

/// A smaller range may be answered.
pub(super) fn is_too_wide(message: &str) -> bool {
    message == TOO_LONG || wire::is_too_much(message)
}

/// As [`wire::rpc_reading`], but a search that takes too long is not tried again as it is.
pub(super) fn search_reading(status: u16, body: &[u8]) -> Reading {
    let is_slow = |text: &str| {
        let text = text.to_lowercase();
        TIMEOUT_WORDS.iter().any(|words| text.contains(words))
    };
    match wire::rpc_reading(status, body) {
        Reading::Again(_) | Reading::Unknown { .. } | Reading::Refused { .. }
            if matches!(status, 408 | 504 | 524) =>
        {
            Reading::Refused { code: i64::from(status), message: TOO_LONG.to_owned() }
        }
        Reading::Again(text) | Reading::Unknown { message: text, .. } if is_slow(&text) => {
            Reading::Refused { code: 0, message: TOO_LONG.to_owned() }
        }
        read @ (Reading::Good
        | Reading::SlowDown(_)
        | Reading::Again(_)
        | Reading::NotOffered(_)
        | Reading::Denied(_)
        | Reading::Unknown { .. }
        | Reading::Refused { .. }) => read,
    }
}
