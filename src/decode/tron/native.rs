//! Trades of the protocol itself: no contract runs and no event is emitted.

use std::sync::Arc;

use super::transaction::{Asset, NativeTrade};
use crate::decode::{Decoded, DecodedTrade, Note, NoteKind};
use crate::domain::{Side, Units};

/// Names from java-tron's documentation.
const EXCHANGE: &str = "TRON Exchange";
const MARKET: &str = "TRON Market";

pub(super) fn decode(trade: &NativeTrade) -> Decoded {
    let mut decoded = Decoded::default();
    let (sold, paid, bought, got, venue) = match *trade {
        NativeTrade::Exchange { sold, paid, bought: Some(bought), got, .. } => {
            (sold, paid, bought, got, EXCHANGE)
        }
        NativeTrade::Market { sold, paid, bought, got } => (sold, paid, bought, got, MARKET),
        NativeTrade::Exchange { exchange, bought: None, .. } => {
            let detail = format!("the assets of exchange {exchange} are unknown");
            decoded.notes.push(Note { kind: NoteKind::OneSided, detail });
            return decoded;
        }
    };
    if paid.is_zero() || got.is_zero() {
        let detail = "an order was placed and nothing of it filled at once".to_owned();
        decoded.notes.push(Note { kind: NoteKind::Order, detail });
        return decoded;
    }
    let venue: Arc<str> = venue.into();
    let mut row = |side: Side, asset: Asset, units: Units, against: (Asset, Units)| {
        let Some(mint) = asset.address() else { return };
        let native = (against.0 == Asset::Trx).then_some(against.1);
        let (units, venue) = (Some(units), Arc::clone(&venue));
        decoded.trades.push(DecodedTrade { side, mint, units, native, venue });
    };
    row(Side::Sell, sold, paid, (bought, got));
    row(Side::Buy, bought, got, (sold, paid));
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Address;

    const TOKEN: u32 = 1_000_226;

    #[test]
    fn trx_is_the_measure_and_never_a_row() {
        let (paid, got) = (Units::from(100), Units::from(42));
        let bought = Some(Asset::Trc10(TOKEN));
        let trade = NativeTrade::Exchange { exchange: 9, sold: Asset::Trx, paid, bought, got };
        let rows = decode(&trade).trades;
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        assert_eq!((row.side, row.mint), (Side::Buy, Address::tron_asset(TOKEN)));
        assert_eq!((row.units, row.native, &*row.venue), (Some(got), Some(paid), EXCHANGE));
        let trade =
            NativeTrade::Market { sold: Asset::Trc10(TOKEN), paid, bought: Asset::Trx, got };
        let row = &decode(&trade).trades[0];
        assert_eq!((row.side, row.units, row.native), (Side::Sell, Some(paid), Some(got)));
    }

    #[test]
    fn two_tokens_are_two_rows() {
        let (paid, got) = (Units::from(100), Units::from(42));
        let (sold, bought) = (Asset::Trc10(TOKEN), Asset::Trc10(1_002_000));
        let rows = decode(&NativeTrade::Market { sold, paid, bought, got }).trades;
        let sides: Vec<_> = rows.iter().map(|row| (row.side, row.units, row.native)).collect();
        assert_eq!(sides, [(Side::Sell, Some(paid), None), (Side::Buy, Some(got), None)]);
    }

    #[test]
    fn an_order_that_waits_is_no_trade() {
        let (sold, bought) = (Asset::Trc10(TOKEN), Asset::Trx);
        let (paid, got) = (Units::ZERO, Units::ZERO);
        let decoded = decode(&NativeTrade::Market { sold, paid, bought, got });
        assert!(decoded.trades.is_empty());
        assert_eq!(decoded.notes[0].kind, NoteKind::Order);
        let unresolved =
            NativeTrade::Exchange { exchange: 9, sold, paid: Units::from(1), bought: None, got };
        assert!(decode(&unresolved).trades.is_empty());
    }
}
