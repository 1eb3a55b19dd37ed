//! EVM chains: from a transaction with its receipt to trades.

mod ledger;
mod native;
mod raw;
mod rows;
mod scene;
mod trace;
mod trade;
mod transaction;
mod words;

pub use raw::{RawError, parse};
pub use trace::{parse_flat_trace, parse_trace};
pub use transaction::{Account, Log, NativeFlows, NativeMove, Transaction, Word};

use ledger::Ledger;
use scene::Scene;
use trade::Own;

use super::Decoded;
use crate::registry::{Chain, EvmTables};

/// Raised whenever the same transaction may give other trades than before.
pub const DECODER_VERSION: u16 = 1;

/// The trades that a transaction holds for a wallet.
pub fn decode(tables: &EvmTables, chain: &Chain, wallet: &Account, tx: &Transaction) -> Decoded {
    let mut decoded = Decoded::default();
    let Ok(wrapped) = chain.wrapped_native.bytes().try_into() else { return decoded };
    if !tx.succeeded {
        return decoded;
    }
    let mirrors: Vec<Account> =
        chain.mirrors.iter().filter_map(|mirror| mirror.bytes().try_into().ok()).collect();
    let ledger = Ledger::read(tx, wrapped, &mirrors);
    let scene = Scene::read(tables, chain, tx, &ledger);
    let own = Own::read(&scene, &ledger, wallet);
    if own.legs.is_empty() {
        return decoded;
    }
    match trade::traded(&scene, &ledger, wallet, &own) {
        Ok(legs) => rows::rows(&scene, &ledger, wallet, &own, &legs),
        Err(note) => {
            decoded.notes.extend(note);
            decoded
        }
    }
}
