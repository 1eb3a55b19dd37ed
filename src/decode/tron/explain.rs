//! Explains a Tron transaction.

use super::decode;
use super::evm_view::EvmView;
use super::transaction::{Asset as Own, NativeTrade, Transaction};
use crate::decode::evm::{self, Account};
use crate::decode::explain::{Asset, Explanation, FoundVenue, Movement};
use crate::domain::Units;
use crate::registry::{Chain, EvmTables};

/// The wallet's movements, and why they became the rows that `decode` returns.
pub fn explain(
    tables: &EvmTables,
    chain: &Chain,
    wallet: &Account,
    tx: &Transaction,
) -> Explanation {
    let mut explanation = match &tx.native_trade {
        Some(trade) if tx.call.from == *wallet && tx.call.succeeded => native(trade),
        Some(_) => Explanation { failed: !tx.call.succeeded, ..Explanation::default() },
        None => {
            let EvmView { call, .. } = EvmView::read(tables, chain, wallet, tx);
            return Explanation {
                decoded: decode(tables, chain, wallet, tx),
                ..evm::explain(tables, chain, wallet, &call, None)
            };
        }
    };
    explanation.decoded = decode(tables, chain, wallet, tx);
    explanation.list_left_out();
    explanation
}

fn native(trade: &NativeTrade) -> Explanation {
    let (sold, paid, bought, got, name) = match *trade {
        NativeTrade::Exchange { sold, paid, bought, got, .. } => {
            (sold, paid, bought, got, "exchange of the protocol")
        }
        NativeTrade::Market { sold, paid, bought, got } => {
            (sold, paid, Some(bought), got, "market of the protocol")
        }
    };
    let asset = |own: Own| own.address().map_or(Asset::Native, Asset::Token);
    let gave = Movement { asset: asset(sold), got: Units::ZERO, gave: paid };
    let came = bought.map(|own| Movement { asset: asset(own), got, gave: Units::ZERO });
    let venue =
        FoundVenue { name: name.to_owned(), part: "no contract: the chain itself", address: None };
    Explanation {
        native_known: true,
        movements: [gave].into_iter().chain(came).collect(),
        venues: vec![venue],
        ..Explanation::default()
    }
}
