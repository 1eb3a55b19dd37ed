//! Tron: from a transaction with its info to trades. Contracts there run as on EVM chains, with
//! the same events, so most of it is the EVM decoder's work.

mod raw;
mod transaction;

pub use raw::{RawError, account, asset, parse};
pub use transaction::{Asset, AssetMove, ExchangeId, NativeTrade, Transaction};

use super::Decoded;
use super::evm::Account;
use crate::registry::{Chain, EvmTables};

/// Raised whenever the same transaction may give other trades than before.
pub const DECODER_VERSION: u16 = 1;

/// The trades that a transaction holds for a wallet.
pub fn decode(
    _tables: &EvmTables,
    _chain: &Chain,
    _wallet: &Account,
    _tx: &Transaction,
) -> Decoded {
    Decoded::default()
}
