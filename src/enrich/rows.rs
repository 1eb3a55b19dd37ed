//! From a decoded transaction to its rows, with the values that it contains itself.

use super::valuation;
use crate::decode::{Decoded, DecodedTrade};
use crate::domain::{Height, Trade, TradeKey, TxId, UnixSeconds, ValueSource};

/// A decoded transaction that has trades.
#[derive(Debug)]
pub struct DecodedTx {
    pub id: TxId,
    pub time: UnixSeconds,
    pub height: Height,
    pub index: Option<u32>,
    pub decoded: Decoded,
    /// The native coin of inner calls is unknown, and only because an endpoint failed.
    pub awaits_native: bool,
}

impl DecodedTx {
    pub(super) fn into_rows(self) -> Vec<Trade> {
        let Self { id: tx, time, height, index, decoded, awaits_native } = self;
        let index = index.unwrap_or(0);
        let row = |(trade, leg): (DecodedTrade, u16)| Trade {
            key: TradeKey { time, height, index, tx, leg },
            side: trade.side,
            mint: trade.mint,
            units: trade.units,
            native: trade.native,
            valued: ValueSource::of_transaction(trade.native),
            venue: trade.venue,
        };
        let mut rows: Vec<Trade> = decoded.trades.into_iter().zip(0..).map(row).collect();
        valuation::mark_routed(&mut rows);
        if awaits_native {
            valuation::await_native(&mut rows);
        }
        rows
    }
}
