//! A trade, its place in the history, and the row that is served.

use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use super::{Address, Decimal, Height, TxId, Units, UnixSeconds, named};

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Side {
        Buy = "buy",
        Sell = "sell",
    }
}

/// Where a trade stands in a wallet's history. Keys order the rows as they are delivered: newest
/// first by block time, height and position in the block, then by transaction id and leg.
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

impl AsRef<Self> for TradeKey {
    fn as_ref(&self) -> &Self {
        self
    }
}

named! {
    /// How a trade's native value was found, or why it has none.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ValueSource {
        /// Native coin was exchanged for the token. Also [`Self::Route`] in rows of the first
        /// stored form, which does not distinguish the two.
        Direct = "direct",
        /// One token was traded for another, and the route passed through the native coin.
        Route = "route",
        /// Its dollars at the price of the chain's reference pools.
        ReferencePool = "reference_pool",
        /// Its dollars at a price derived from the trades of any wallet.
        Learned = "learned",
        /// Its dollars at the price of the configured candle source.
        Candle = "candle",
        /// From the value of one of its tokens in another trade of the wallet within a minute.
        Token = "token",
        /// None yet: a source failed; the value is looked up again later.
        Pending = "pending",
        /// None: no source has a price.
        Unknown = "unknown",
    }
}

impl ValueSource {
    /// The source of a value that is derived from the row's own transaction alone.
    pub const fn of_transaction(native: Option<Units>) -> Self {
        if native.is_some() { Self::Direct } else { Self::Unknown }
    }

    /// Whether the transaction itself contains the value.
    pub const fn is_of_transaction(self) -> bool {
        matches!(self, Self::Direct | Self::Route)
    }

    /// Whether the value was computed from a price.
    pub const fn is_derived(self) -> bool {
        matches!(self, Self::ReferencePool | Self::Learned | Self::Candle | Self::Token)
    }
}

/// One buy or sell of one token, as decoded and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trade {
    pub key: TradeKey,
    pub side: Side,
    pub mint: Address,
    /// Change of the wallet's balance of the token; `None` where it is unknown.
    pub units: Option<Units>,
    /// Native value in the chain's smallest unit; `None` where it is unknown.
    pub native: Option<Units>,
    /// Provenance of `native`; not part of the contract's rows.
    pub valued: ValueSource,
    pub venue: Arc<str>,
}

/// Metadata of a token. Unknown decimals make amounts null, never a guess.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub mint: Address,
    /// The cleaned symbol; `None` where the contract has none.
    pub symbol: Option<Arc<str>>,
    pub decimals: Option<u8>,
    written: Written,
}

impl Token {
    pub fn new(mint: Address, symbol: Option<Arc<str>>, decimals: Option<u8>) -> Self {
        Self { mint, symbol, decimals, written: Written::default() }
    }

    /// The token's part of a row's JSON, formatted once: many rows share a token, and a mint's text
    /// takes a division (base58) or a hash (EIP-55).
    pub fn written(&self, write: impl FnOnce(&Self) -> Vec<u8>) -> &[u8] {
        self.written.0.get_or_init(|| write(self).into())
    }
}

/// Derived from the other fields, so two tokens are equal whether it is set or not.
#[derive(Debug, Clone, Default)]
struct Written(OnceLock<Box<[u8]>>);

impl PartialEq for Written {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Written {}

/// A stored trade with the metadata needed to show it.
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
