//! Answers of all families.

/// A JSON-RPC error.
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
#[derive(Debug)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}
