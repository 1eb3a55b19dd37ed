//! Refusals of a method, a list or a path: seen at public nodes, indexes and the proxies in front
//! of them.

use super::rpc::{DemoError, HttpAnswer};

/// A refusal that says nothing about the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Status 401: the key.
    Unauthorized,
    /// Status 404 with an HTML page.
    NotFound,
    /// Statuses 405, 410 and 501.
    MethodNotAllowed,
    Gone,
    NotImplemented,
    /// `-32601`; of an index: a missing action.
    NoMethod,
    /// An error object that asks for identification.
    Unusual,
    /// Status "2" of an index that is still processing internal transactions (Blockscout).
    Processing,
    /// An error with an unknown text.
    Unknown,
}

const TEXT_UNUSUAL: &str = "unusual activity detected, access denied";
const TEXT_UNKNOWN: &str = "backend said 0x17";

impl Refusal {
    pub const ALL: [Self; 9] = [
        Self::Unauthorized,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Gone,
        Self::NotImplemented,
        Self::NoMethod,
        Self::Unusual,
        Self::Processing,
        Self::Unknown,
    ];

    /// The refusal of the whole request, where it is one.
    pub(super) fn status(self) -> Option<(u16, &'static str, &'static str)> {
        const HTML: &str = "text/html";
        match self {
            Self::Unauthorized => Some((401, "application/json", "{\"message\":\"Unauthorized\"}")),
            Self::NotFound => Some((404, HTML, "<!DOCTYPE html><html><h1>404</h1></html>")),
            Self::MethodNotAllowed => Some((405, HTML, "<html><h1>405 Not Allowed</h1></html>")),
            Self::Gone => Some((410, HTML, "<html><h1>410 Gone</h1></html>")),
            Self::NotImplemented => Some((501, "text/plain", "Not Implemented")),
            Self::NoMethod | Self::Unusual | Self::Processing | Self::Unknown => None,
        }
    }

    /// The error of one call.
    pub(super) fn error(self) -> DemoError {
        match self {
            Self::NoMethod => DemoError::new(-32601, "the method does not exist/is not available"),
            Self::Unusual => DemoError::new(-32000, TEXT_UNUSUAL),
            Self::Unauthorized
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::Gone
            | Self::NotImplemented
            | Self::Processing
            | Self::Unknown => DemoError::new(-32099, TEXT_UNKNOWN),
        }
    }

    /// The answer of an index or of a node's HTTP interface.
    pub(super) fn plain(self) -> HttpAnswer {
        let text = match self {
            Self::NoMethod => "Error! Missing Or invalid Action name",
            Self::Unusual => TEXT_UNUSUAL,
            Self::Unauthorized
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::Gone
            | Self::NotImplemented
            | Self::Processing
            | Self::Unknown => TEXT_UNKNOWN,
        };
        let body = if self == Self::Processing {
            serde_json::json!({"status": "2", "result": [],
                "message": "Internal transactions for this address are still being processed"})
        } else {
            serde_json::json!({"status": "0", "message": "NOTOK", "result": text,
                "Error": text, "success": false, "error": text})
        };
        let body = body.to_string().into_bytes();
        HttpAnswer { status: 200, content_type: "application/json", body }
    }
}
