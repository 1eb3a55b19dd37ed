//! Tron: from a transaction with its info to trades. Contracts there run as on EVM chains, with
//! the same events, so most of it is the EVM decoder's work.

pub mod envelope;
mod explain;
mod native;
mod payout;
mod raw;
mod told;
mod transaction;

pub use explain::explain;
pub use raw::{RawError, account, asset, parse};
pub use transaction::{Asset, AssetMove, ExchangeId, NativeTrade, Transaction};

use told::Told;

use super::evm::{self, Account};
use super::{Decoded, DecodedTrade, Note, NoteKind};
use crate::domain::Side;
use crate::registry::{Chain, EvmTables};

/// Raised whenever the same transaction may give other trades than before.
pub const DECODER_VERSION: u16 = 2;

/// The trades that a transaction holds for a wallet.
pub fn decode(tables: &EvmTables, chain: &Chain, wallet: &Account, tx: &Transaction) -> Decoded {
    if !tx.call.succeeded {
        return Decoded::default();
    }
    match &tx.native_trade {
        Some(trade) if tx.call.from == *wallet => native::decode(trade),
        Some(_) => Decoded::default(),
        None => contract(tables, chain, wallet, tx),
    }
}

fn contract(tables: &EvmTables, chain: &Chain, wallet: &Account, tx: &Transaction) -> Decoded {
    let Told { call, pay_is_untold } = Told::read(tables, chain, wallet, tx);
    let mut decoded = evm::decode(tables, chain, wallet, &call);
    let sold = |trade: &&mut DecodedTrade| pay_is_untold && trade.side == Side::Sell;
    for trade in decoded.trades.iter_mut().filter(sold).filter(|trade| trade.native.is_some()) {
        trade.native = None;
        let detail = "the router's input does not tell whom it paid".to_owned();
        decoded.notes.push(Note { kind: NoteKind::Unvalued, detail });
    }
    decoded
}
