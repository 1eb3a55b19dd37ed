//! EVM chains: decodes a transaction and its receipt to trades.
//!
//! In this order:
//!
//! 1. [`bundle`] leaves out what other accounts' operations logged next to the wallet's. [`ledger`]
//!    lists every movement of assets: token events, native coin by the value and the inner calls as
//!    far as they are known, wraps. Mirrors repeat other contracts and are left out.
//! 2. [`scene`] finds the events and contracts of the tables, and which assets each exchanged:
//!    those that it names, else those that the holder of its assets moved.
//! 3. [`trade`] nets what the wallet gave and received per token; native coin, loose and wrapped,
//!    is one measure. It is a trade where the wallet gave one asset and received another that
//!    venues exchanged, and no share of a pool or vault was minted or burnt.
//! 4. Where the inner calls are unknown, [`native`] infers native coin only as far as a protocol
//!    guarantees it.
//! 5. [`values`] splits native value over the rows, [`rows`] and [`pools`] name the venues.
//!
//! Amounts come from movements alone; events identify the trade and its venue.

mod bundle;
mod calldata;
mod conversions;
mod counterparties;
mod dividends;
mod explain;
mod ledger;
mod native;
mod own;
mod pool_coin;
mod pools;
mod raw;
mod rows;
mod scene;
mod shape;
mod side_legs;
mod tips;
mod trace;
mod trade;
mod transaction;
mod values;
mod words;

pub(crate) use calldata::terms;
pub use explain::explain;
pub(super) use ledger::DEPOSIT;
pub(crate) use ledger::{TRANSFER, USER_OPERATION, WITHDRAWAL, hides_payment, repeats_native};
pub(super) use raw::bytes;
pub use raw::{RawError, parse};
pub use tips::may_tip;
pub use trace::{
    count_payments, is_flat_trace_whole, is_trace_of_another, may_lack_precompiles_alone,
    parse_flat_trace, parse_trace,
};
pub use transaction::{
    Account, CoinRoute, CoinSale, CoinTo, Log, NativeFlows, NativeMove, Terms, Topics, Transaction,
    Word,
};
pub(super) use words::{topic, units, word};

use ledger::Ledger;
use own::Own;
use scene::Scene;

use super::Decoded;
use crate::registry::{Chain, EvmTables};

/// Raised whenever the same transaction may decode to other trades than before.
pub const DECODER_VERSION: u16 = 20;

/// Whether inner calls may matter: the tables have an event or the called contract, unless it only
/// converts; or another contract than the wrapped coin's own was called, and coin was wrapped or
/// unwrapped, or this contract logged an event and took a token of its caller or gave it one for
/// coin.
pub fn may_trade(tables: &EvmTables, chain: &Chain, tx: &Transaction) -> bool {
    let wrapped = chain.wrapped_native.bytes();
    let wraps = |log: &Log| {
        let kind = log.topics.first();
        log.address == wrapped && (kind == Some(&DEPOSIT) || kind == Some(&WITHDRAWAL))
    };
    let deals = |to: Account| {
        let sides = if tx.value.is_zero() { (tx.from, to) } else { (to, tx.from) };
        tx.logs.iter().any(|log| log.address == to && !ledger::is_movement(log))
            && tx.logs.iter().filter_map(ledger::transfer).any(|moved| moved == sides)
    };
    tx.logs.iter().any(|log| is_known_event(tables, log))
        || tx.to.is_some_and(|to| tables.is_known(chain, &to))
        || tx.to.is_some_and(deals)
        || tx.to.is_some_and(|to| to != wrapped) && tx.logs.iter().any(wraps)
}

pub fn is_known_event(tables: &EvmTables, log: &Log) -> bool {
    match log.topics.first() {
        Some(topic) => !tables.events(topic).is_empty(),
        None => tables.anonymous(&log.address, log.data.len()).is_some(),
    }
}

pub fn decode(tables: &EvmTables, chain: &Chain, wallet: &Account, tx: &Transaction) -> Decoded {
    if !tx.succeeded {
        return Decoded::default();
    }
    let bundled = bundle::of_wallet((tables, chain), wallet, tx);
    let tx = bundled.as_ref().unwrap_or(tx);
    let Some(ledger) = Ledger::read(tx, chain) else { return Decoded::default() };
    let scene = Scene::read(tables, chain, tx, &ledger, wallet);
    let own = side_legs::without_extras(&scene, Own::read(&scene));
    if own.legs.is_empty() {
        return Decoded::default();
    }
    match trade::traded(&scene, &own) {
        Ok(legs) => {
            let mut decoded = rows::rows(&scene, &own, &legs);
            decoded.notes.extend(shape::note(&scene));
            decoded
        }
        Err(note) => Decoded { notes: note.into_iter().collect(), ..Decoded::default() },
    }
}
