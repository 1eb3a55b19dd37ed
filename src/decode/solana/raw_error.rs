//! Bounds of a reply, and why one cannot be read.

/// Bounds of one transaction; the chain allows far less.
pub(super) struct Limits {
    pub(super) bytes: usize,
    pub(super) keys: usize,
    pub(super) instructions: usize,
    /// Of all instructions together.
    pub(super) accounts: usize,
    pub(super) token_balances: usize,
}

pub(super) const LIMITS: Limits = Limits {
    bytes: 8 << 20,
    keys: 256,
    instructions: 512,
    accounts: 512 * 256,
    token_balances: 1_024,
};

/// Why a reply contains no readable transaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RawError {
    #[error("not the JSON of a transaction: {0}")]
    Json(String),
    #[error("the transaction has no {0}")]
    Missing(&'static str),
    #[error("the transaction has too many {0}")]
    TooMany(&'static str),
    #[error("the transaction holds a broken {0}")]
    Broken(&'static str),
}
