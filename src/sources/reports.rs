//! What a source reports of tokens, blocks and its endpoints.

use std::sync::Arc;

use crate::domain::Address;
use crate::rpc::endpoint::EndpointStatus;

/// A token's symbol, as far as the chain has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMeta {
    pub mint: Address,
    pub symbol: Option<Arc<str>>,
    pub decimals: Option<u8>,
}

/// State of a chain's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStatus {
    pub endpoints: Vec<EndpointStatus>,
}
