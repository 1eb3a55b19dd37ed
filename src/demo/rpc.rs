//! Answers of all families.

use serde_json::Value;

pub(super) const JSON: &str = "application/json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DemoError {
    pub(super) code: i64,
    pub(super) message: String,
    /// JSON text.
    pub(super) data: Option<String>,
}

impl DemoError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }
}

/// The JSON text of a result.
pub(super) type CallReply = Result<Vec<u8>, DemoError>;

/// An answer that is not JSON-RPC.
#[derive(Debug, Default)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

impl HttpAnswer {
    pub(super) fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type, body: body.into() }
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, JSON, body.to_string())
    }
}

pub(super) fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value.into());
    }
}
