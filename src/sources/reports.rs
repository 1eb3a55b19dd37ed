//! A source's reports on tokens and endpoints.

use std::sync::Arc;

use crate::domain::Address;
use crate::rpc::EndpointStatus;

/// A token's symbol and decimals, as far as the chain has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMeta {
    pub mint: Address,
    pub symbol: Option<Arc<str>>,
    pub decimals: Option<u8>,
}

/// State of a chain's endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStatus {
    pub endpoints: Vec<EndpointStatus>,
}
