//! Decodes a raw transaction to trades and notes: pure functions that never fail and do no I/O.

mod abi;
pub mod evm;
pub mod explain;
mod fixed_rate;
mod flow;
mod json;
mod settler;
pub mod solana;
mod transaction;
pub mod tron;
mod universal_router;
mod v4_commands;

use std::sync::Arc;

pub use transaction::RawTx;

use crate::domain::{Address, Family, Side, Units};

/// The version of a family's decoder, stored with what it decoded.
pub fn version(family: Family) -> u16 {
    match family {
        Family::Solana => solana::DECODER_VERSION,
        Family::Evm => evm::DECODER_VERSION,
        Family::Tron => tron::DECODER_VERSION,
    }
}

/// The result of decoding a transaction for one wallet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decoded {
    /// In a fixed order: sells before buys, each by mint.
    pub trades: Vec<DecodedTrade>,
    /// Why something that looks like a trade is not one, or what stayed unknown.
    pub notes: Vec<Note>,
    /// Decimals of the tokens in `trades`, where the transaction contains them.
    pub decimals: Vec<(Address, u8)>,
    /// Native coin that the wallet gave or received in addition to tokens on both sides. If large,
    /// one token's value is not the other's. The maximum if unknown.
    pub side_payment: Units,
}

/// A side payment of at most one part in this many of the value is a fee. A larger one is part of
/// the price, so the tokens alone do not value each other.
const SIDE_PAYMENT_PART_MIN: u64 = 100;

/// Whether a side payment next to tokens of this value is more than a fee.
pub(crate) fn is_part(side_payment: Units, value: Units) -> bool {
    side_payment.saturating_mul(Units::from(SIDE_PAYMENT_PART_MIN)) > value
}

/// One token that the wallet gave or received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedTrade {
    pub side: Side,
    pub mint: Address,
    /// Base units of the token; `None` where they are unknown.
    pub units: Option<Units>,
    /// Native value in the chain's smallest unit; `None` where it is unknown.
    pub native: Option<Units>,
    pub venue: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub kind: NoteKind,
    pub detail: String,
}

/// Why something is not a trade, or is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoteKind {
    /// A known venue ran, but the wallet only gave or only received.
    OneSided,
    /// Shares of a pool were minted or burnt.
    Liquidity,
    /// Staking, wrapping or another conversion at a fixed price.
    Conversion,
    /// An order was placed, changed or cancelled.
    Order,
    /// The wallet ended with its initial balances.
    RoundTrip,
    /// The native value is unknown.
    Unvalued,
    /// A trade by a contract that is in no table, recognized by its shape.
    UnknownVenue,
}
