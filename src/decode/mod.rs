//! From a raw transaction to trades and notes: pure functions that never fail and do no I/O.

pub mod evm;
pub mod explain;
pub mod solana;
pub mod tron;

use std::sync::Arc;

use crate::domain::{Address, Family, Side, Units};

/// Version of a family's decoder, kept with what it decoded.
pub fn version(family: Family) -> u16 {
    match family {
        Family::Solana => solana::DECODER_VERSION,
        Family::Evm => evm::DECODER_VERSION,
        Family::Tron => tron::DECODER_VERSION,
    }
}

/// What a transaction was for one wallet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decoded {
    /// In a fixed order: sells before buys, each by mint.
    pub trades: Vec<DecodedTrade>,
    /// Why something that looks like a trade is none, or what stayed unknown.
    pub notes: Vec<Note>,
    /// Decimals of the tokens in `trades`, where the transaction tells them.
    pub decimals: Vec<(Address, u8)>,
    /// Native coin that the wallet gave or got beside tokens that it both gave and got: what it
    /// gave for a token is then more than the other tokens. The largest number where it is not told.
    pub beside: Units,
}

/// One token that the wallet gave or got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedTrade {
    pub side: Side,
    pub mint: Address,
    /// Base units of the token; `None` where they cannot be told.
    pub units: Option<Units>,
    /// Native value in the chain's smallest unit; `None` where it cannot be told.
    pub native: Option<Units>,
    pub venue: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub kind: NoteKind,
    pub detail: String,
}

/// Why something is no trade, or not told whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoteKind {
    /// A known venue ran, but the wallet only gave or only got.
    OneSided,
    /// Shares of a pool were minted or burnt.
    Liquidity,
    /// Staking, wrapping or another conversion at a fixed price.
    Conversion,
    /// An order was placed, changed or cancelled.
    Order,
    /// The wallet ended with what it began.
    RoundTrip,
    /// The native value could not be told.
    Unvalued,
    /// A trade by a contract that no table knows, found by its shape.
    UnknownVenue,
}
