//! A source's report on a token.

use std::sync::Arc;

use crate::domain::Address;

/// A token's symbol and decimals, as far as the chain has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMeta {
    pub mint: Address,
    pub symbol: Option<Arc<str>>,
    pub decimals: Option<u8>,
}
