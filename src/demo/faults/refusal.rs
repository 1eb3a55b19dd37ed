//! Refusals of a method, a list or a path: seen at public nodes, indexes and the proxies in front
//! of them.

use std::time::Duration;

use serde_json::json;

use crate::demo::rpc::{DemoError, HttpAnswer, JSON};

listed! {
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
}

impl Refusal {
    /// The refusal of the whole request, where it is one.
    pub(in crate::demo) fn status(self) -> Option<HttpAnswer> {
        const HTML: &str = "text/html";
        let (status, content_type, body) = match self {
            Self::Unauthorized => (401, JSON, "{\"message\":\"Unauthorized\"}"),
            Self::NotFound => (404, HTML, "<!DOCTYPE html><html><h1>404</h1></html>"),
            Self::MethodNotAllowed => (405, HTML, "<html><h1>405 Not Allowed</h1></html>"),
            Self::Gone => (410, HTML, "<html><h1>410 Gone</h1></html>"),
            Self::NotImplemented => (501, "text/plain", "Not Implemented"),
            Self::NoMethod | Self::Unusual | Self::Processing | Self::Unknown => return None,
        };
        Some(HttpAnswer::new(status, content_type, body))
    }

    fn text(self) -> &'static str {
        let unusual = "unusual activity detected, access denied";
        if self == Self::Unusual { unusual } else { "backend said 0x17" }
    }

    /// The error of one call.
    pub(in crate::demo) fn error(self) -> DemoError {
        let code = if self == Self::Unusual { -32000 } else { -32099 };
        if self == Self::NoMethod {
            return DemoError::new(-32601, "the method does not exist/is not available");
        }
        DemoError::new(code, self.text())
    }

    /// The answer of an index or of a node's HTTP interface.
    pub(in crate::demo) fn plain(self) -> HttpAnswer {
        let missing = "Error! Missing Or invalid Action name";
        let text = if self == Self::NoMethod { missing } else { self.text() };
        // Some indexes refuse under the title of an empty list.
        let title = if self == Self::Unusual { "No transactions found" } else { "NOTOK" };
        let body = if self == Self::Processing {
            json!({"status": "2", "result": [],
                "message": "Internal transactions for this address are still being processed"})
        } else {
            json!({"status": "0", "message": title, "result": text,
                "Error": text, "success": false, "error": text})
        };
        HttpAnswer::json(200, &body)
    }
}

/// Tron's refusal of too many requests: the index's suspension in its known forms, or a node at its
/// capacity.
pub(in crate::demo) fn tron_too_often(
    path: &str,
    wait: Option<Duration>,
    chance: u64,
) -> HttpAnswer {
    let Some(wait) = wait else {
        let text = "class java.lang.IllegalAccessException : lack of computing resources";
        return HttpAnswer::json(200, &json!({"Error": text}));
    };
    let seconds = wait.as_millis().div_ceil(1_000).max(1);
    let text = format!(
        "The key exceeds the frequency limit(15), and the query server is suspended for {seconds}s"
    );
    let status = if chance.is_multiple_of(2) { 403 } else { 429 };
    if path.trim_start_matches('/').starts_with("v1") {
        let error = json!({"success": false, "error": text, "statusCode": status});
        return HttpAnswer::json(status, &error);
    }
    let status = if chance.is_multiple_of(3) { 200 } else { status };
    HttpAnswer::json(status, &json!({"Error": text}))
}
