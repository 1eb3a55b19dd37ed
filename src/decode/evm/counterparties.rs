//! Finds counterparties that no table knows: accounts that took one token and gave another, both
//! amounts of which an event states. Only movements of tokens count, wrapped native coin among
//! them, as inner calls may be unknown.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{Asset, is_movement};
use super::own::{Leg, Own, TWO};
use super::scene::Scene;
use super::transaction::Account;
use super::words::{ZERO, absolute, address, units, words};
use crate::decode::fixed_rate::is_fixed_rate;
use crate::decode::flow::Flow;
use crate::domain::{Side, Units};

/// Limit of accounts whose exchange is compared with the events. No route has as many, but any
/// contract may log thousands of movements.
const COUNT_MAX: usize = 64;

/// An asset and how much of it moved.
pub(super) type Amount = (Asset, Units);

/// What an account took and gave over the transaction.
#[derive(Debug, Clone, Copy)]
struct Counterparty {
    took: Amount,
    gave: Amount,
}

impl Counterparty {
    /// `None` unless the account exchanged one asset for one other at a price of the market.
    fn read(flows: &BTreeMap<Asset, Flow>) -> Option<Self> {
        let mut nets = flows.iter().filter_map(|(asset, flow)| Some((*asset, flow.net()?)));
        let (Some(one), Some(other), None) = (nets.next(), nets.next(), nets.next()) else {
            return None;
        };
        let (took, gave) = match (one, other) {
            ((a, (Side::Buy, took)), (b, (Side::Sell, gave)))
            | ((b, (Side::Sell, gave)), (a, (Side::Buy, took))) => ((a, took), (b, gave)),
            _ => return None,
        };
        (!is_fixed_rate(took.1, gave.1)).then_some(Self { took, gave })
    }

    /// Whether an event states both amounts: one of the account itself, or one that names a token
    /// of the two. A wallet whose own event does so is the venue of others, as a known pool is.
    fn is_stated(&self, scene: &Scene<'_>, account: &Account) -> bool {
        let tokens = [self.took.0, self.gave.0];
        if tokens.contains(&Asset::Token(*account)) {
            return false;
        }
        scene.tx.logs.iter().any(|log| {
            let has = |amount: Units| words(log).any(|word| absolute(units(word)) == amount);
            let mut named = words(log).filter_map(address);
            !is_movement(log)
                && ![scene.ledger.wrapped, *scene.wallet].contains(&log.address)
                && has(self.took.1)
                && has(self.gave.1)
                && (log.address == *account || named.any(|one| tokens.contains(&Asset::Token(one))))
        })
    }
}

/// The counterparties of a transaction other than the wallet and the venues of the tables, whose
/// events name what they exchanged.
fn counterparties(scene: &Scene<'_>) -> Vec<Counterparty> {
    let mut flows: BTreeMap<Account, BTreeMap<Asset, Flow>> = BTreeMap::new();
    for m in scene.ledger.moves.iter().filter(|m| m.asset != Asset::Native) {
        for (account, came) in [(m.from, false), (m.to, true)] {
            flows.entry(account).or_default().entry(m.asset).or_default().add(m.amount, came);
        }
    }
    let is_other = |who: &Account| {
        ![ZERO, *scene.wallet].contains(who) && !scene.venues.iter().any(|v| v.holder == *who)
    };
    let others = flows.iter().filter(|(who, _)| is_other(who));
    let found = others.filter_map(|(who, flows)| Some((who, Counterparty::read(flows)?)));
    let stated = found.take(COUNT_MAX).filter(|(who, one)| one.is_stated(scene, who));
    stated.map(|(_, one)| one).collect()
}

/// Whether counterparties exchanged what the wallet gave for what it received, in one step or
/// several.
pub(super) fn connect(scene: &Scene<'_>, gave: Amount, got: Amount) -> bool {
    let all = counterparties(scene);
    let mut reached = BTreeSet::from([gave.0]);
    let is_next = |reached: &BTreeSet<Asset>, one: &Counterparty| {
        reached.contains(&one.took.0) && !reached.contains(&one.gave.0)
    };
    while let Some(next) = all.iter().find(|one| is_next(&reached, one)) {
        reached.insert(next.gave.0);
    }
    let taken = all.iter().map(|one| one.took).filter(|took| took.0 == gave.0);
    let on_route = all.iter().filter(|one| reached.contains(&one.took.0));
    let given = on_route.map(|one| one.gave).filter(|given| given.0 == got.0);
    is_most(sum(taken), gave.1) && is_most(got.1, sum(given))
}

/// Whether counterparties exchanged a token that no venue did for one that a venue did: a step at
/// an end of the route. The wallet must have moved no other token on that side.
pub(super) fn link(scene: &Scene<'_>, own: &Own, leg: &Leg) -> bool {
    let is_alone = own.exchanged.iter().all(|other| other == leg || other.side != leg.side);
    if !is_alone || own.exchanged.len() > 2 || !scene.acts() {
        return false;
    }
    let asset = Asset::Token(leg.token);
    let all = counterparties(scene);
    let sides = all.iter().map(|one| match leg.side {
        Side::Buy => (one.gave, one.took),
        Side::Sell => (one.took, one.gave),
    });
    let steps = sides.filter(|(end, inner)| end.0 == asset && scene.swapped(inner.0));
    let moved = sum(steps.map(|(end, _)| end));
    match leg.side {
        Side::Buy => is_most(leg.units, moved),
        Side::Sell => is_most(moved, leg.units),
    }
}

fn sum(amounts: impl Iterator<Item = Amount>) -> Units {
    amounts.fold(Units::ZERO, |sum, (_, amount)| sum.saturating_add(amount))
}

/// Whether a part is more than half of the whole: fees and taxes take less.
fn is_most(part: Units, whole: Units) -> bool {
    part <= whole && part > whole / TWO
}
