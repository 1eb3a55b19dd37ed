//! Estimates the size of a wallet's history before it is read: from stored rows, else by few calls.

use std::time::Duration;

use tokio::time::timeout;

use super::error::HistoryError;
use super::{History, Result};
use crate::domain::{Position, Rows, Wallet};
use crate::rpc::{Lane, Priority, UpstreamError};
use crate::sources::Activity;

/// Transactions per second that a first load reads, roughly, with a good node.
const TRANSACTIONS_PER_SECOND: u64 = 200;
/// Number of newest stored rows in an estimate.
const SAMPLE_ROWS: usize = 3;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimate {
    /// The whole history is stored: `trades` is its count.
    pub is_exact: bool,
    pub trades: u64,
    /// Estimated seconds until a stream would be complete.
    pub seconds: u64,
    pub sample: Rows,
}

impl Estimate {
    /// The estimate from stored rows alone, after the nodes failed with `error`. Without rows it is
    /// no estimate: 0 would be read as an empty wallet.
    fn or(self, error: HistoryError) -> Result<Self> {
        tracing::debug!(%error, "an estimate is made from what is stored");
        if self == Self::default() { Err(error) } else { Ok(self) }
    }
}

impl History {
    /// Estimates a wallet's history from stored rows, if `with_stored`, and unless these are all,
    /// from few calls to nodes; if those do not answer in time, from stored rows alone.
    ///
    /// # Errors
    /// Where nothing is stored either: `UpstreamUnavailable`, or `NotEstimable` by any endpoint.
    pub async fn estimate(
        &self,
        wallet: Wallet,
        with_stored: bool,
        patience: Duration,
    ) -> Result<Estimate> {
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
            Ok(Err(error)) => stored.or(estimate_error(&error)),
            Err(_) => {
                let detail = "it took too long".to_owned();
                stored.or(HistoryError::UpstreamUnavailable { detail })
            }
        }
    }

    async fn stored(&self, wallet: Wallet) -> Result<Estimate> {
        let view = self.inner.view()?;
        let Some(record) = view.wallet(&wallet).await? else { return Ok(Estimate::default()) };
        let Some(top) = record.coverage.top() else { return Ok(Estimate::default()) };
        let floor = record.coverage.run_low(top).unwrap_or(top);
        let sample = view.rows(record.id, Position::Start, floor, SAMPLE_ROWS).await?;
        Ok(Estimate { is_exact: floor == 0, trades: record.count, seconds: 0, sample })
    }
}

/// The error if nodes give no estimate: an unsupported method stays unsupported, so no retry helps.
fn estimate_error(error: &UpstreamError) -> HistoryError {
    let detail = error.to_string();
    if matches!(error, UpstreamError::NotSupported { .. }) {
        HistoryError::NotEstimable { detail }
    } else {
        HistoryError::UpstreamUnavailable { detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_endpoint_offers_is_not_to_be_asked_for_again() {
        let lists = UpstreamError::NotSupported { method: "account lists".to_owned() };
        let error = estimate_error(&lists);
        assert!(matches!(error, HistoryError::NotEstimable { .. }), "{error:?}");
        let silent = UpstreamError::Unavailable { attempts: 1, last: "no answer".to_owned() };
        let away = estimate_error(&silent);
        assert!(matches!(away, HistoryError::UpstreamUnavailable { .. }), "{away:?}");
        // What is stored is an estimate in both cases.
        let stored = Estimate { trades: 3, ..Estimate::default() };
        for error in [error, away] {
            assert_eq!(stored.clone().or(error.clone()), Ok(stored.clone()));
            assert_eq!(Estimate::default().or(error.clone()), Err(error));
        }
    }
}
