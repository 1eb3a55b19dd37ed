//! Tron: from a transaction with its info to trades. Contracts there run as on EVM chains, with
//! the same events, so most of it is the EVM decoder's work.

mod native;
mod raw;
mod told;
mod transaction;

pub use raw::{RawError, account, asset, parse};
pub use transaction::{Asset, AssetMove, ExchangeId, NativeTrade, Transaction};

use super::Decoded;
use super::evm::{self, Account};
use crate::registry::{Chain, EvmTables};

/// Raised whenever the same transaction may give other trades than before.
pub const DECODER_VERSION: u16 = 1;

/// The trades that a transaction holds for a wallet.
pub fn decode(tables: &EvmTables, chain: &Chain, wallet: &Account, tx: &Transaction) -> Decoded {
    if !tx.call.succeeded {
        return Decoded::default();
    }
    match &tx.native_trade {
        Some(trade) if tx.call.from == *wallet => native::decode(trade),
        Some(_) => Decoded::default(),
        None => evm::decode(tables, chain, wallet, &told::whole(wallet, tx)),
    }
}
