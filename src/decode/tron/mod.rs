//! Tron: decodes a transaction and its info to trades. Contracts run there as on EVM chains, with
//! the same events, so most of the work is the EVM decoder's.

mod evm_view;
mod explain;
mod inner_calls;
mod native;
mod payout;
mod raw;
mod transaction;
mod wire;

pub use explain::explain;
pub(crate) use inner_calls::{lacks_calls, may_lack_calls};
pub use raw::{RawError, asset, parse};
pub use transaction::{Asset, AssetMove, ExchangeId, NativeTrade, Transaction};
pub use wire::account;

use evm_view::EvmView;

use super::evm::{self, Account};
use super::{Decoded, DecodedTrade, Note, NoteKind};
use crate::domain::Side;
use crate::registry::{Chain, EvmTables};

/// Raised whenever the same transaction may decode to other trades than before.
pub const DECODER_VERSION: u16 = 11;

/// The trades of a wallet in a transaction.
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
    let EvmView { call, payout_unknown } = EvmView::read(tables, chain, wallet, tx);
    let mut decoded = evm::decode(tables, chain, wallet, &call);
    let sold = |trade: &&mut DecodedTrade| payout_unknown && trade.side == Side::Sell;
    for trade in decoded.trades.iter_mut().filter(sold).filter(|trade| trade.native.is_some()) {
        trade.native = None;
        let detail = "the router's input does not state the receiver".to_owned();
        decoded.notes.push(Note { kind: NoteKind::Unvalued, detail });
    }
    decoded
}
