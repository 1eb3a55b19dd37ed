//! Finds native coin paid to the block's producer: a fee for inclusion, not part of a trade.

use std::collections::BTreeSet;

use super::ledger::{Asset, Ledger, Move};
use super::scene::Scene;
use super::transaction::{Account, Transaction};
use super::words::ZERO;
use crate::domain::Units;
use crate::registry::Chain;

/// Whether a trade of the wallet may depend on who produced the block: the wallet paid coin to
/// accounts that may be the producer, or the account that paid the wallet paid such accounts more.
pub fn may_tip(chain: &Chain, wallet: &Account, tx: &Transaction) -> bool {
    let Some(ledger) = Ledger::read(tx, chain) else { return false };
    let of_own = |m: &&Move| m.asset == Asset::Native && m.to == *wallet;
    let own: Vec<&Move> = ledger.moves.iter().filter(of_own).collect();
    let payers: BTreeSet<Account> = own.iter().map(|m| m.from).collect();
    let mut by_payers = to_takers(&ledger, tx, |who| payers.contains(who));
    by_payers.retain(|m| m.to != *wallet);
    let gets_less = sum(&by_payers) > sum(&own);
    tx.from == *wallet && gets_less || !to_takers(&ledger, tx, |who| who == wallet).is_empty()
}

/// Whether the wallet paid coin to accounts that may be the producer, while the producer is
/// unknown.
pub(super) fn is_open(scene: &Scene<'_>) -> bool {
    scene.tx.producer.is_none() && by_wallet(scene).iter().any(|m| !is_tipped(scene, &m.to))
}

/// Whether what an account is paid is a tip: it produced the block, or belongs to a builder.
pub(super) fn is_tipped(scene: &Scene<'_>, who: &Account) -> bool {
    let is_builder = || scene.chain.builders.iter().any(|builder| builder.bytes() == who);
    scene.tx.producer.as_ref() == Some(who) || is_builder()
}

/// Amount that the wallet itself paid to the producer.
pub(super) fn paid(scene: &Scene<'_>) -> Units {
    let mut paid = by_wallet(scene);
    paid.retain(|m| is_tipped(scene, &m.to));
    sum(&paid)
}

fn by_wallet<'a>(scene: &Scene<'a>) -> Vec<&'a Move> {
    to_takers(scene.ledger, scene.tx, |who| who == scene.wallet)
}

/// Movements of coin by these accounts, in inner calls, to accounts that paid and logged nothing.
fn to_takers<'a>(
    ledger: &'a Ledger,
    tx: &Transaction,
    pays: impl Fn(&Account) -> bool,
) -> Vec<&'a Move> {
    let by_call = |m: &&Move| m.asset == Asset::Native && pays(&m.from) && Some(m.to) != tx.to;
    let mut paid: Vec<&Move> = ledger.moves.iter().filter(by_call).collect();
    if !paid.is_empty() {
        let mut active: BTreeSet<Account> = ledger.moves.iter().map(|m| m.from).collect();
        active.extend(tx.logs.iter().map(|log| log.address).chain([tx.from, ledger.wrapped, ZERO]));
        paid.retain(|m| !active.contains(&m.to));
    }
    paid
}

fn sum(moves: &[&Move]) -> Units {
    moves.iter().fold(Units::ZERO, |sum, m| sum.saturating_add(m.amount))
}
