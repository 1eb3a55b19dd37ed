//! EVM chains: from a transaction with its receipt to trades.

mod raw;
mod trace;
mod transaction;

pub use raw::{RawError, parse};
pub use trace::{parse_flat_trace, parse_trace};
pub use transaction::{Account, Log, NativeFlows, NativeMove, Transaction, Word};

use super::Decoded;
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
