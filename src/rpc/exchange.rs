//! One HTTP exchange with an endpoint, as the pool sends it.

use bytes::Bytes;

use super::transport::{Response, TransportError};

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

/// The response, of any status.
pub(super) type Received = Result<Response, TransportError>;
