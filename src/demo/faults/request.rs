//! Faults of whole requests.

use crate::demo::mix::Dice;
use crate::demo::rpc::{HttpAnswer, JSON};

/// The body of status 429.
pub(in crate::demo) const TOO_MANY: &str = "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":429,\"message\":\"Too many requests \
                        for a specific RPC call\"},\"id\":null}";
/// The body of a garbled answer, and that of a proxy's error page.
const GARBAGE: &str = "{\"jsonrpc\":\"2.0\",\u{1}";
const PAGE: &str = "<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>";

/// A fault of a whole request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::demo) enum RequestFault {
    TooMany,
    TooManyWithWait,
    Unavailable,
    Silence,
    SlowBody,
    CutBody,
    Garbage,
    Html,
    Reordered,
    Suspended,
}

impl RequestFault {
    /// The answer in place of the node's own, where the fault is one.
    pub(in crate::demo) fn answer(self, dice: &mut Dice) -> Option<HttpAnswer> {
        Some(match self {
            Self::Unavailable => HttpAnswer::new(503, "text/plain", "Service Unavailable"),
            Self::Garbage => HttpAnswer::new(200, JSON, GARBAGE),
            Self::Html => {
                HttpAnswer::new(if dice.percent(50) { 200 } else { 502 }, "text/html", PAGE)
            }
            Self::TooMany
            | Self::TooManyWithWait
            | Self::Silence
            | Self::SlowBody
            | Self::CutBody
            | Self::Reordered
            | Self::Suspended => return None,
        })
    }
}
