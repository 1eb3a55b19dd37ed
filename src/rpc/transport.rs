//! The interface to the network: sends a request, returns a response or an error. Knows no
//! JSON-RPC.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::secret::{SecretText, SecretUrl};

/// One HTTP exchange of the pool; `name` stands for the method where it is not JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Name in counters and in the record of refusals.
    pub name: &'static str,
    /// Appended to the path of the endpoint's URL: "" or "/v1/accounts/…".
    pub path: String,
    /// Appended to the query of the endpoint's URL (which may contain a key).
    pub query: Vec<(&'static str, String)>,
    /// POST with this JSON body; `None`: GET.
    pub body: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    Get,
    /// With a JSON body.
    Post,
}

#[derive(Debug, Clone)]
pub struct Request {
    pub method: HttpMethod,
    /// Complete, with path and query.
    pub url: SecretUrl,
    pub headers: Vec<(String, SecretText)>,
    /// Empty for `Get`.
    pub body: Bytes,
    /// From the first byte sent to the last byte read.
    pub timeout: Duration,
    /// Longest accepted body, counted after decompression.
    pub body_bytes_max: usize,
}

#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    /// The `Retry-After` header as received: seconds or a date.
    pub retry_after: Option<String>,
    pub body: Bytes,
}

/// Why there is no response. Texts never contain a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    #[error("no connection: {0}")]
    Connect(String),
    #[error("no answer in time")]
    Timeout,
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("the answer is longer than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
}

pub(super) type Received = Result<Response, TransportError>;

/// Sends requests over the network, or to a simulated node in this process.
pub trait Transport: fmt::Debug + Send + Sync {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>>;
}
