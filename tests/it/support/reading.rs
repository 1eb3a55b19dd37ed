//! What tests of sources ask with.

use std::sync::Arc;

use blotter::domain::Address;
use blotter::rpc::{Lane, Priority};
use blotter::sources::GapRequest;

pub(crate) fn lane() -> Lane {
    Lane::new(1, Arc::new(Priority::interactive()))
}

/// All that a wallet has, newest first.
pub(crate) fn all_of(wallet: Address) -> GapRequest {
    GapRequest {
        wallet,
        low: 0,
        high: None,
        resume: None,
        accounts: Vec::new(),
        knows_accounts: true,
        lane: lane(),
        first: true,
        another: None,
    }
}
