//! Estimates the size of a wallet before it is read: from what is stored, else by few calls.

use std::time::Duration;

use tokio::time::timeout;

use super::History;
use super::error::HistoryError;
use crate::domain::{Position, Rows, Wallet};
use crate::rpc::{Lane, Priority, UpstreamError};
use crate::sources::Activity;

/// Transactions that a fresh load gets through in a second, roughly, with a good node.
const TRANSACTIONS_PER_SECOND: u64 = 200;
/// Newest stored rows that are shown.
const SAMPLE_ROWS: usize = 3;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimate {
    /// The history is stored: the count is what it holds.
    pub is_exact: bool,
    pub trades: u64,
    /// Until a stream of it would be complete.
    pub seconds: u64,
    pub sample: Rows,
}

impl Estimate {
    /// What is stored alone. Nothing is no estimate: 0 would be read as an empty wallet.
    fn or(self, error: HistoryError) -> Result<Self, HistoryError> {
        tracing::debug!(%error, "an estimate is made from what is stored");
        if self == Self::default() { Err(error) } else { Ok(self) }
    }

    fn or_unavailable(self, detail: String) -> Result<Self, HistoryError> {
        self.or(HistoryError::UpstreamUnavailable { detail })
    }
}

impl History {
    /// What is stored of the wallet, where that may be used, and where that is not all, what few
    /// calls to nodes show; a node that does not answer in time leaves it at what is stored.
    ///
    /// # Errors
    /// Where nothing is stored either: `UpstreamUnavailable`, or `NotEstimable` by any endpoint.
    pub async fn estimate(
        &self,
        wallet: Wallet,
        with_stored: bool,
        patience: Duration,
    ) -> Result<Estimate, HistoryError> {
        let source = self.inner.sources.get(&wallet.chain).ok_or(HistoryError::ChainDisabled)?;
        let stored = if with_stored { self.stored(wallet).await? } else { Estimate::default() };
        if stored.is_exact {
            return Ok(stored);
        }
        let lane = Lane::unowned(Priority::interactive());
        let asked = timeout(patience, source.activity(wallet.address, &lane));
        match self.inner.tasks.run(asked).await.ok_or(HistoryError::ShuttingDown)? {
            Ok(Ok(Activity { transactions, .. })) => Ok(Estimate {
                trades: stored.trades.max(transactions),
                seconds: transactions.div_ceil(TRANSACTIONS_PER_SECOND),
                ..stored
            }),
            Ok(Err(UpstreamError::NotAWallet { reason })) => {
                Err(HistoryError::NotAWallet { detail: reason })
            }
            Ok(Err(error @ UpstreamError::NotSupported { .. })) => {
                let detail = error.to_string();
                stored.or(HistoryError::NotEstimable { detail })
            }
            Ok(Err(error)) => stored.or_unavailable(error.to_string()),
            Err(_) => stored.or_unavailable("it took too long".to_owned()),
        }
    }

    async fn stored(&self, wallet: Wallet) -> Result<Estimate, HistoryError> {
        let view = self.inner.view()?;
        let Some(record) = view.wallet(&wallet).await? else { return Ok(Estimate::default()) };
        let Some(top) = record.coverage.top() else { return Ok(Estimate::default()) };
        let floor = record.coverage.run_low(top).unwrap_or(top);
        let sample = view.rows(record.id, Position::Start, floor, SAMPLE_ROWS).await?;
        Ok(Estimate { is_exact: floor == 0, trades: record.count, seconds: 0, sample })
    }
}
