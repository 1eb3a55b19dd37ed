//! The response to a connection above a limit: one error, sent without reading a request, so that
//! many such connections cost little.

use super::App;
use super::error::ApiError;
use super::reply;

/// The path, as no request is read.
const UNREAD: &str = "";

/// The whole response, as bytes for the socket.
pub(super) fn answer(app: &App) -> Vec<u8> {
    let error = ApiError::ConnectionsFull;
    let request_id = app.request_id(None);
    let message = error.message();
    let now = app.history.clock().now();
    let body = reply::problem(&error, &message, now, &request_id, UNREAD);
    let status = error.kind().status;
    let retry_after = reply::retry_after(app, &error).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\n\
         retry-after: {retry_after}\r\nx-request-id: {request_id}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}
