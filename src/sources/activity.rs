//! The number of a wallet's transactions by one call: for estimates, never for what is stored.

use super::source::Source;
use crate::domain::Address;
use crate::rpc::error::UpstreamError;
use crate::rpc::scheduler::Lane;

/// Transactions of a wallet, trades or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    pub transactions: u64,
    /// The call shows so many at most; there may be more.
    pub more: bool,
}

impl Activity {
    /// What a page of a list shows.
    pub(super) fn of_page(entries: usize, page_max: usize) -> Self {
        let transactions = u64::try_from(entries).unwrap_or(u64::MAX);
        Self { transactions, more: entries >= page_max }
    }
}

impl Source {
    pub async fn activity(&self, wallet: Address, lane: &Lane) -> Result<Activity, UpstreamError> {
        match self {
            Self::Solana(source) => source.activity(wallet, lane).await,
            Self::Evm(source) => source.activity(wallet, lane).await,
            Self::Tron(source) => source.activity(wallet, lane).await,
        }
    }
}
