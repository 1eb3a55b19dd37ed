//! Explains why a transaction decodes to its trades: the wallet's movements, the venues, and what
//! is in no row. Separate from decoding, which it does not slow down.

use std::collections::BTreeMap;

use super::flow::Flow;
use super::{Decoded, DecodedTrade};
use crate::domain::{Address, Side, Units};

/// A transaction as one wallet sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The transaction failed: only its fee was paid.
    pub failed: bool,
    pub decoded: Decoded,
    pub movements: Vec<Movement>,
    /// Whether the movements of native coin are complete.
    pub native_known: bool,
    pub venues: Vec<FoundVenue>,
    pub left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asset {
    /// The chain's coin, loose or wrapped.
    Native,
    Token(Address),
}

/// What the wallet's accounts received from and gave to other accounts of one asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Movement {
    pub asset: Asset,
    pub got: Units,
    pub gave: Units,
}

/// A program or contract of the tables that took part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundVenue {
    pub name: String,
    /// Its role.
    pub part: &'static str,
    pub address: Option<Address>,
}

/// A movement that is in no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    pub why: Why,
    pub asset: Asset,
    pub units: Units,
    /// The wallet received it.
    pub came: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// The network fee of the transaction, priority included.
    NetworkFee,
    /// A relay's tip for inclusion.
    Tip,
    /// A bot's or a wallet application's own fee.
    BotFee,
    /// Rent of new accounts, of the wallet or of others.
    Rent,
    /// Rent refunded by accounts that were closed.
    RentBack,
    /// A token that no venue exchanged.
    NotExchanged,
    /// A token that was minted or burnt in step with an exchanged one.
    Follows,
    /// A token that a gas sponsor kept for the network fee.
    GasSponsor,
    /// Native coin in addition to the trade: a transfer, a fee of a program outside the swap,
    /// change.
    SidePayment,
    /// Part of a row's amount that the wallet did not give: an account of its order held it since
    /// an earlier transaction.
    FromOrder,
    /// The movement was not a trade.
    NoTrade,
}

impl Explanation {
    /// Lists what the rows and the named items leave of the movements.
    pub(super) fn list_left_out(&mut self) {
        let mut left: BTreeMap<Asset, Flow> = BTreeMap::new();
        for Movement { asset, got, gave } in &self.movements {
            left.entry(*asset).or_default().join(Flow { got: *got, gave: *gave });
        }
        for trade in &self.decoded.trades {
            take_row(&mut left, trade);
        }
        // The movements do not include the network fee, and rent stays the wallet's own.
        for out in &self.left_out {
            if matches!(out.why, Why::Tip | Why::BotFee) {
                left.entry(out.asset).or_default().add(out.units, !out.came);
            }
        }
        let is_trade = !self.decoded.trades.is_empty();
        for (asset, flow) in left {
            let Some((side, units)) = flow.net() else { continue };
            let came = side == Side::Buy;
            let row = self.decoded.trades.iter().find(|trade| Asset::Token(trade.mint) == asset);
            let why = match asset {
                _ if !is_trade => Why::NoTrade,
                // For a row without its value or amount, the remainder is unknown.
                _ if row.is_some_and(|row| row.units.is_none()) => continue,
                Asset::Native if !self.native_known || self.is_unvalued() => continue,
                _ if came && self.gave_less_than_rows(asset) => Why::FromOrder,
                Asset::Native => Why::SidePayment,
                Asset::Token(_) => Why::NotExchanged,
            };
            self.left_out.push(LeftOut { why, asset, units, came });
        }
    }

    /// Whether the wallet itself gave less of an asset than its rows state.
    fn gave_less_than_rows(&self, asset: Asset) -> bool {
        let of_row = |trade: &DecodedTrade| match asset {
            Asset::Native if trade.side == Side::Buy => trade.native,
            Asset::Token(mint) if trade.side == Side::Sell && trade.mint == mint => trade.units,
            Asset::Native | Asset::Token(_) => None,
        };
        let rows = self.decoded.trades.iter().filter_map(of_row);
        let rows = rows.fold(Units::ZERO, Units::saturating_add);
        let moved = self.movements.iter().find(|movement| movement.asset == asset);
        moved.map_or(Units::ZERO, |movement| movement.gave) < rows
    }

    /// Whether a row against native coin lacks its value.
    fn is_unvalued(&self) -> bool {
        let trades = &self.decoded.trades;
        let both = |side| trades.iter().any(|trade| trade.side == side);
        let token_for_token = both(Side::Buy) && both(Side::Sell);
        !token_for_token && trades.iter().any(|trade| trade.native.is_none())
    }
}

fn take_row(left: &mut BTreeMap<Asset, Flow>, trade: &DecodedTrade) {
    let bought = trade.side == Side::Buy;
    let mut take = |asset, units: Option<Units>, came: bool| {
        // A row explains a movement, so it is booked on the other side.
        left.entry(asset).or_default().add(units.unwrap_or_default(), !came);
    };
    take(Asset::Token(trade.mint), trade.units, bought);
    take(Asset::Native, trade.native, !bought);
}

impl FoundVenue {
    pub(super) fn push_new(venues: &mut Vec<Self>, venue: Self) {
        if !venues.contains(&venue) {
            venues.push(venue);
        }
    }
}
