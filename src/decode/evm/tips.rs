//! Coin paid to who produced the block: a fee for a place in it, and no part of a trade.

use std::collections::BTreeSet;

use super::ledger::{Asset, Ledger, Move};
use super::scene::Scene;
use super::transaction::{Account, Transaction};
use super::words::ZERO;
use crate::domain::Units;
use crate::registry::Chain;

/// Whether a trade of the wallet may hang on who produced the block: it paid coin to accounts that may
/// have, or who paid it gave more to others.
pub fn may_tip(chain: &Chain, wallet: &Account, tx: &Transaction) -> bool {
    let Some(ledger) = Ledger::read(tx, chain) else { return false };
    let coin = || ledger.moves.iter().copied().filter(|m| m.asset == Asset::Native);
    let payers: BTreeSet<Account> = coin().filter(|m| m.to == *wallet).map(|m| m.from).collect();
    let others = coin().filter(|m| m.to != *wallet && payers.contains(&m.from));
    let sends = tx.from == *wallet;
    sends && sum(others) > sum(coin().filter(|m| m.to == *wallet))
        || !to_takers(&ledger, tx, wallet).is_empty()
}

/// Whether the wallet paid coin to accounts that may have produced the block, where that is not known.
pub(super) fn is_open(scene: &Scene<'_>) -> bool {
    scene.tx.producer.is_none() && !to_takers(scene.ledger, scene.tx, scene.wallet).is_empty()
}

/// What the wallet itself paid to who produced the block.
pub(super) fn paid(scene: &Scene<'_>) -> Units {
    let takers = to_takers(scene.ledger, scene.tx, scene.wallet).into_iter().copied();
    sum(takers.filter(|m| Some(m.to) == scene.tx.producer))
}

/// Coin that the wallet paid by inner calls to accounts that gave and logged nothing.
fn to_takers<'a>(ledger: &'a Ledger, tx: &Transaction, wallet: &Account) -> Vec<&'a Move> {
    let by_call = |m: &&Move| m.asset == Asset::Native && m.from == *wallet && Some(m.to) != tx.to;
    let mut paid: Vec<&Move> = ledger.moves.iter().filter(by_call).collect();
    if !paid.is_empty() {
        let mut active: BTreeSet<Account> = ledger.moves.iter().map(|m| m.from).collect();
        active.extend(tx.logs.iter().map(|log| log.address).chain([tx.from, ledger.wrapped, ZERO]));
        paid.retain(|m| !active.contains(&m.to));
    }
    paid
}

fn sum(moves: impl Iterator<Item = Move>) -> Units {
    moves.fold(Units::ZERO, |sum, m| sum.saturating_add(m.amount))
}
