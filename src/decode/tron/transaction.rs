//! A Tron transaction with its effects, as far as nodes report them.

use crate::decode::evm::{self, Account};
use crate::domain::{Address, Units, UnixSeconds};

/// A transaction with its info.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// In the form of EVM chains: the owner is the sender, values are in sun. Nodes do not report
    /// its position in the block, so `index` is 0.
    pub call: evm::Transaction,
    pub time: UnixSeconds,
    /// The input of the called contract.
    pub input: Vec<u8>,
    /// Tokens of the protocol itself (TRC-10) that moved, in order.
    pub assets: Vec<AssetMove>,
    /// A trade of the protocol itself, which emits no event.
    pub native_trade: Option<NativeTrade>,
}

/// TRX, or a TRC-10 token by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Asset {
    Trx,
    Trc10(u32),
}

/// Tokens that one call, payment or trade transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AssetMove {
    pub from: Account,
    pub to: Account,
    /// The token's number.
    pub token: u32,
    /// In base units, never zero.
    pub value: Units,
}

/// Number of one of the protocol's own exchanges.
pub type ExchangeId = u64;

/// The result of a protocol trade for its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NativeTrade {
    /// `ExchangeTransactionContract`: a pool of two assets.
    Exchange {
        exchange: ExchangeId,
        sold: Asset,
        paid: Units,
        /// The exchange's other asset, which the transaction does not contain; set later.
        bought: Option<Asset>,
        got: Units,
    },
    /// `MarketSellAssetContract`: an order, as far as it was filled at once.
    Market { sold: Asset, paid: Units, bought: Asset, got: Units },
}

impl Transaction {
    /// The exchange whose assets must be looked up before the trade can be decoded.
    pub fn unresolved_exchange(&self) -> Option<ExchangeId> {
        match self.native_trade {
            Some(NativeTrade::Exchange { exchange, bought: None, .. }) => Some(exchange),
            Some(NativeTrade::Exchange { .. } | NativeTrade::Market { .. }) | None => None,
        }
    }

    /// Sets the assets of the exchange.
    pub fn set_exchange_assets(&mut self, assets: [Asset; 2]) {
        if let Some(NativeTrade::Exchange { sold, bought, .. }) = &mut self.native_trade {
            *bought = match assets {
                [first, second] if first == *sold => Some(second),
                [first, second] if second == *sold => Some(first),
                _ => None,
            };
        }
    }
}

impl Asset {
    /// The token's address; `None` for TRX.
    pub fn address(self) -> Option<Address> {
        match self {
            Self::Trx => None,
            Self::Trc10(number) => Some(Address::tron_asset(number)),
        }
    }
}
