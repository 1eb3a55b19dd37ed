//! Reads transactions again whose native coin an endpoint failed to report when their rows were
//! stored.

use futures_util::future::join_all;
use tokio::time::timeout;

use super::prices::transactions;
use super::{Enricher, Lookups, valuation};
use crate::decode::{Decoded, DecodedTrade};
use crate::domain::{Trade, TxId, ValueSource, Wallet};
use crate::store::{StoreError, WalletId};

/// How many transactions were read again, and how many of them completely.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retraced {
    pub requested: usize,
    pub answered: usize,
}

impl Retraced {
    pub fn add(&mut self, other: Self) {
        self.requested += other.requested;
        self.answered += other.answered;
    }
}

/// Sets the native coin that the transactions of a wallet's pending rows moved. Rows whose endpoint
/// fails again stay pending; rows that the transaction no longer decodes to get no value.
pub(super) async fn retrace(
    lookups: &Lookups<'_>,
    id: WalletId,
    trades: &mut [Trade],
) -> Result<Retraced, StoreError> {
    let waiting: Vec<TxId> = transactions(trades)
        .filter(|rows| valuation::awaits_native(rows))
        .filter_map(|rows| rows.first().map(|row| row.key.tx))
        .collect();
    if waiting.is_empty() {
        return Ok(Retraced::default());
    }
    let Some(record) = lookups.enricher.store.view()?.wallet_by_id(id).await? else {
        return Ok(Retraced::default());
    };
    let wallet = record.wallet;
    let read = join_all(waiting.iter().map(|tx| reread(lookups, wallet, *tx))).await;
    let mut retraced = Retraced { requested: waiting.len(), answered: 0 };
    for (tx, decoded) in waiting.iter().zip(read) {
        let Some(decoded) = decoded else { continue };
        retraced.answered += 1;
        revalue(trades, *tx, &decoded.trades);
    }
    Ok(retraced)
}

/// `None` where no endpoint returns the transaction, or one fails to report its inner calls.
async fn reread(lookups: &Lookups<'_>, wallet: Wallet, tx: TxId) -> Option<Decoded> {
    let Enricher { registry, limits, .. } = lookups.enricher;
    let read = lookups.source.transaction(tx, wallet.address, lookups.lane);
    let found = timeout(limits.values_ask_max, read).await.ok()?.ok()??;
    let is_known = !found.raw.awaits_native();
    is_known.then(|| found.raw.decode(registry, &wallet))
}

/// Values the pending rows of a transaction, each by its own leg: of equal legs the first row has
/// the first.
fn revalue(rows: &mut [Trade], tx: TxId, decoded: &[DecodedTrade]) {
    let mut left: Vec<&DecodedTrade> = decoded.iter().collect();
    for row in rows.iter_mut().filter(|row| row.key.tx == tx) {
        let at = left.iter().position(|traded| is_same(row, traded));
        let native = at.and_then(|at| left.remove(at).native);
        if row.valued == ValueSource::Pending {
            row.native = native;
            row.valued = ValueSource::of_transaction(native);
        }
    }
}

fn is_same(row: &Trade, traded: &DecodedTrade) -> bool {
    (row.side, row.mint, row.units) == (traded.side, traded.mint, traded.units)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::{Address, Side, TradeKey, Units, UnixSeconds};

    const TX: TxId = TxId::Evm([7; 32]);

    fn leg(native: u64) -> DecodedTrade {
        DecodedTrade {
            side: Side::Buy,
            mint: Address::Evm([1; 20]),
            units: Some(Units::from(9_u64)),
            native: Some(Units::from(native)),
            venue: Arc::from("a venue"),
        }
    }

    fn row(leg: u16, valued: ValueSource) -> Trade {
        let key = TradeKey { time: UnixSeconds(1), height: 1, index: 0, tx: TX, leg };
        let DecodedTrade { side, mint, units, venue, .. } = self::leg(0);
        Trade { key, side, mint, units, native: None, valued, venue }
    }

    #[test]
    fn legs_that_are_alike_keep_their_own_values() {
        let (pending, unknown) = (ValueSource::Pending, ValueSource::Unknown);
        let mut rows = [row(0, pending), row(1, pending), row(2, pending)];
        revalue(&mut rows, TX, &[leg(5), leg(6)]);
        let native = |row: &Trade| row.native;
        let of = |value: u64| Some(Units::from(value));
        assert_eq!(rows.each_ref().map(native), [of(5), of(6), None]);
        assert_eq!(rows[2].valued, unknown);
        // A row that is not pending has its leg too.
        let mut rows = [row(0, unknown), row(1, pending)];
        revalue(&mut rows, TX, &[leg(5), leg(6)]);
        assert_eq!(rows.each_ref().map(native), [None, of(6)]);
    }
}
