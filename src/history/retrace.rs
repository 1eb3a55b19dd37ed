//! Native coin that an endpoint failed to report when rows were stored: their transactions are read
//! again.

use futures_util::future::join_all;
use tokio::time::timeout;

use super::error::HistoryError;
use super::pricing::Doors;
use super::{Inner, ingest, valuing};
use crate::decode::{Decoded, DecodedTrade};
use crate::domain::{Trade, TxId, ValueSource, Wallet};
use crate::store::WalletId;

/// Transactions that were read again, and those of them of which all is known now.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Retraced {
    pub(super) requested: usize,
    pub(super) answered: usize,
}

impl Retraced {
    pub(super) fn add(&mut self, other: Self) {
        self.requested += other.requested;
        self.answered += other.answered;
    }
}

impl Inner {
    /// Gives a wallet's waiting rows the native coin that their transactions moved. Those whose
    /// endpoint fails again wait on; those that the transaction does not show have no value.
    pub(super) async fn retrace(
        &self,
        doors: &Doors<'_>,
        id: WalletId,
        trades: &mut [Trade],
    ) -> Result<Retraced, HistoryError> {
        let by_tx = || trades.chunk_by(|a, b| a.key.tx == b.key.tx);
        let waiting: Vec<TxId> = by_tx()
            .filter(|rows| valuing::awaits_native(rows))
            .filter_map(|rows| rows.first().map(|row| row.key.tx))
            .collect();
        if waiting.is_empty() {
            return Ok(Retraced::default());
        }
        let Some(record) = self.view()?.wallet_by_id(id).await? else {
            return Ok(Retraced::default());
        };
        let wallet = record.wallet;
        let read = join_all(waiting.iter().map(|tx| self.reread(doors, wallet, *tx))).await;
        let mut retraced = Retraced { requested: waiting.len(), answered: 0 };
        for (tx, decoded) in waiting.iter().zip(read) {
            let Some(decoded) = decoded else { continue };
            retraced.answered += 1;
            let rows = trades.iter_mut().filter(|row| row.key.tx == *tx);
            for row in rows.filter(|row| row.valued == ValueSource::Pending) {
                let traded = decoded.trades.iter().find(|traded| is_same(row, traded));
                row.native = traded.and_then(|traded| traded.native);
                row.valued = ValueSource::of_transaction(row.native);
            }
        }
        Ok(retraced)
    }

    /// `None` where no endpoint returns it, or one fails to report what moved inside.
    async fn reread(&self, doors: &Doors<'_>, wallet: Wallet, tx: TxId) -> Option<Decoded> {
        let read = doors.source.transaction(tx, wallet.address, doors.lane);
        let found = timeout(self.limits.values_ask_max, read).await.ok()?.ok()??;
        let is_known = !found.raw.awaits_native();
        is_known.then(|| ingest::decode_tx(&self.registry, &wallet, &found.raw))
    }
}

fn is_same(row: &Trade, traded: &DecodedTrade) -> bool {
    (row.side, row.mint, row.units) == (traded.side, traded.mint, traded.units)
}
