//! A trade, its place in the history, and the row that is served.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{Address, Decimal, Height, TxId, Units, UnixSeconds};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Buy,
    Sell,
}

/// Where a trade stands in a wallet's history. Its order is the order of delivery: newest first by
/// block time, height and position in the block, then by transaction id and leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TradeKey {
    pub time: UnixSeconds,
    pub height: Height,
    /// Position in the block where the wallet has several trading transactions in it, else 0.
    pub index: u32,
    pub tx: TxId,
    /// Numbers the rows of one transaction.
    pub leg: u16,
}

impl Ord for TradeKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let rank = |key: &Self| (Reverse((key.time, key.height, key.index)), key.tx, key.leg);
        rank(self).cmp(&rank(other))
    }
}

impl PartialOrd for TradeKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// One buy or sell of one token, as decoded and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trade {
    pub key: TradeKey,
    pub side: Side,
    pub mint: Address,
    /// What the wallet's balance of the token moved by; `None` where it cannot be told.
    pub units: Option<Units>,
    /// Native value in the chain's smallest unit; `None` where it cannot be told.
    pub native: Option<Units>,
    pub venue: Arc<str>,
}

/// What a chain tells about a token. Unknown decimals make amounts null, never a guess.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub mint: Address,
    /// As the chain tells it, cleaned; `None` where it tells none.
    pub symbol: Option<Arc<str>>,
    pub decimals: Option<u8>,
}

/// A stored trade with what is needed to show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub trade: Trade,
    pub token: Arc<Token>,
}

impl Row {
    /// The token quantity; `None` where units or decimals are unknown.
    pub fn amount(&self) -> Option<Decimal> {
        Some(Decimal { units: self.trade.units?, decimals: self.token.decimals? })
    }
}
