//! Finds the native value of each row.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{Asset, Ledger, Move};
use super::own::{Leg, Measure};
use super::scene::{Scene, is_pool};
use super::side_legs::{founds_pool, without_tax};
use super::transaction::{Account, NativeFlows};
use super::words::{absolute, units, words};
use crate::decode::flow::Flow;
use crate::decode::is_part;
use crate::domain::{Side, Units};
use crate::registry::ContractKind;

/// The native value of each leg; `None` if unknown. `known`: the known native coin movements.
pub(super) fn of_legs(
    scene: &Scene<'_>,
    legs: &[Leg],
    measure: Measure,
    known: Flow,
) -> Vec<Option<Units>> {
    let has = |side| legs.iter().any(|leg| leg.side == side);
    // If inner calls are unknown, the call's value may have gone on.
    let came = scene.coin_from_caller();
    let stays = matches!(scene.tx.native, NativeFlows::Net { gained, .. } if gained == came);
    let is_seen = scene.ledger.native_known || came.is_zero() || stays;
    match (legs, measure) {
        ([leg], Measure::Gave(units)) if leg.side == Side::Buy && is_seen => {
            vec![Some(units).filter(|_| !founds_pool(scene, leg))]
        }
        ([leg], Measure::Got(units)) if leg.side == Side::Sell => vec![Some(units)],
        (_, Measure::Gave(_)) if !has(Side::Sell) => parts(scene, legs, (Side::Buy, measure)),
        (_, Measure::Got(_)) if !has(Side::Buy) => parts(scene, legs, (Side::Sell, measure)),
        ([a, b], Measure::Unknown) if a.side != b.side => of_pair(scene, (a, b), known.into()),
        ([a, b], _) if a.side != b.side => of_pair(scene, (a, b), measure),
        _ => vec![None; legs.len()],
    }
}

/// Values one token exchanged for another, or a sale and a purchase.
fn of_pair(scene: &Scene<'_>, (a, b): (&Leg, &Leg), measure: Measure) -> Vec<Option<Units>> {
    if let Some(parts) = of_two_trades(scene, (a, b), measure) {
        return parts;
    }
    let hop = |leg| through_native(scene, leg).or_else(|| by_makers(scene.ledger, leg));
    let loose = |leg| through(scene, leg, true);
    let hop = match (hop(a), hop(b)) {
        (Some(a), Some(b)) => (a == b).then_some(a),
        // Loose coin may be known only in part, so both sides must agree.
        (None, None) if loose(a).is_some() && loose(a) == loose(b) => loose(a),
        // The first pool may have given some coin to the wallet.
        (None, None) if matches!(measure, Measure::Got(_)) => None,
        (None, None) => between_pools(scene, (a, b)),
        (a, b) if a.or(b).is_some_and(|hop| is_fee(measure, hop)) => a.or(b),
        // The two differ by coin that the wallet added or kept.
        (a, b) => return vec![a, b],
    };
    vec![hop; 2]
}

/// Whether side payments are at most 1 % of the route's value, and so a fee.
fn is_fee(measure: Measure, hop: Units) -> bool {
    match measure {
        Measure::None => true,
        Measure::Gave(units) | Measure::Got(units) => !is_part(units, hop),
        Measure::Unknown => false,
    }
}

/// Values a sale and a purchase that are both against native coin, each by its own pools, if their
/// difference is what the wallet paid or kept.
fn of_two_trades(
    scene: &Scene<'_>,
    (a, b): (&Leg, &Leg),
    measure: Measure,
) -> Option<Vec<Option<Units>>> {
    if matches!(measure, Measure::None | Measure::Unknown) {
        return None;
    }
    let (first, second) = (value_of_part(scene, a)?, value_of_part(scene, b)?);
    let (sold, bought) = if a.side == Side::Sell { (first, second) } else { (second, first) };
    let difference = match measure {
        Measure::Gave(units) => bought.checked_sub(sold)? == units,
        Measure::Got(units) => sold.checked_sub(bought)? == units,
        Measure::None | Measure::Unknown => false,
    };
    difference.then(|| vec![Some(first), Some(second)])
}

/// Values several tokens against native coin, each by its own pools, if the values add up.
fn parts(scene: &Scene<'_>, legs: &[Leg], (side, all): (Side, Measure)) -> Vec<Option<Units>> {
    let parts: Vec<Option<Units>> = legs.iter().map(|leg| value_of_part(scene, leg)).collect();
    let sum = parts.iter().try_fold(Units::ZERO, |sum, part| sum.checked_add((*part)?));
    let sum = sum.map(|sum| if side == Side::Buy { Measure::Gave(sum) } else { Measure::Got(sum) });
    if sum == Some(all) { parts } else { vec![None; legs.len()] }
}

/// The value of one of several tokens, which a sum has to confirm. It allows for the tax of the
/// token's contract and for pools that others use in the same transaction.
fn value_of_part(scene: &Scene<'_>, leg: &Leg) -> Option<Units> {
    through_native(scene, leg).or_else(|| {
        let untaxed = Leg { units: without_tax(scene, leg)?, ..*leg };
        let directly = || direct_exchange(scene, &untaxed).or_else(|| by_deltas(scene, leg));
        through_native(scene, &untaxed).or_else(directly)
    })
}

/// What a single pool of a vault took or gave for exactly a leg, as its event states with signs. It
/// does not state which assets these were.
fn by_deltas(scene: &Scene<'_>, leg: &Leg) -> Option<Units> {
    let is_given = leg.side == Side::Buy;
    let pools = scene.venues.iter().filter(|venue| is_pool(venue.event.kind));
    let mut stated = pools.filter_map(|venue| {
        let side = |at: usize| words(venue.log).nth(at).map(units);
        let [one, other] = venue.event.deltas?;
        let (one, other) = (side(one)?, side(other)?);
        let fits = |(of_leg, paid): &(Units, Units)| {
            of_leg.bit(255) != is_given
                && paid.bit(255) == is_given
                && absolute(*of_leg) == leg.units
        };
        let (_, paid) = [(one, other), (other, one)].into_iter().find(fits)?;
        Some(absolute(paid)).filter(|paid| !paid.is_zero())
    });
    let only = stated.next()?;
    stated.next().is_none().then_some(only)
}

/// The coin that the wallet exchanged directly with a token's pools, if that covers the whole leg.
/// Other movements of the pools then belong to others.
fn direct_exchange(scene: &Scene<'_>, leg: &Leg) -> Option<Units> {
    let (token, wrapped) = (Asset::Token(leg.token), Asset::Token(scene.ledger.wrapped));
    let (holders, wallet) = (holders(scene, token)?, scene.wallet);
    let (mut of_token, mut of_coin) = (Flow::default(), Flow::default());
    for m in &scene.ledger.moves {
        let taken = m.from == *wallet && holders.contains(&m.to);
        if !(taken || m.to == *wallet && holders.contains(&m.from)) {
            continue;
        }
        let flow = match m.asset {
            asset if asset == token => &mut of_token,
            asset if asset == wrapped => &mut of_coin,
            Asset::Native | Asset::Token(_) => return None,
        };
        flow.add(m.amount, taken);
    }
    let (moved, paid) = (net(of_token, leg.side)?, net(of_coin, other(leg.side))?);
    (moved == leg.units && !paid.is_zero()).then_some(paid)
}

/// The coin for which a leg was exchanged, if pools of only this token and wrapped native coin
/// exchanged all of it.
fn through_native(scene: &Scene<'_>, leg: &Leg) -> Option<Units> {
    through(scene, leg, false)
}

/// The same as `through_native`; with `loose`, pools may also hold unwrapped coin.
fn through(scene: &Scene<'_>, leg: &Leg, loose: bool) -> Option<Units> {
    let (token, wrapped) = (Asset::Token(leg.token), Asset::Token(scene.ledger.wrapped));
    let is_coin = |asset: Asset| asset == wrapped || (loose && asset == Asset::Native);
    let (mut exchanged, mut value) = (Units::ZERO, Units::ZERO);
    for holder in &holders(scene, token)? {
        let flows = scene.ledger.of(holder);
        if flows.keys().any(|asset| *asset != token && !is_coin(*asset)) {
            return None;
        }
        let flow = |asset| flows.get(&asset).copied().unwrap_or_default();
        let mut coin = flow(wrapped);
        if loose {
            coin.join(flow(Asset::Native));
        }
        let (moved, paid) = (net(flow(token), leg.side)?, net(coin, other(leg.side))?);
        if paid.is_zero() && !moved.is_zero() {
            // Its coin moved in an unknown way.
            return None;
        }
        exchanged = exchanged.checked_add(moved)?;
        value = value.checked_add(paid)?;
    }
    (exchanged == leg.units && !value.is_zero()).then_some(value)
}

/// The pools that exchanged a token. `None` if one shares its account with other pools.
fn holders(scene: &Scene<'_>, token: Asset) -> Option<BTreeSet<Account>> {
    let mut holders = BTreeSet::new();
    for venue in scene.venues.iter().filter(|venue| is_pool(venue.event.kind)) {
        if venue.assets.contains(&token) {
            let vault = venue.contract.is_some_and(|c| c.kind == ContractKind::Vault);
            if vault || venue.event.holder.is_some() {
                return None;
            }
            holders.insert(venue.holder);
        }
    }
    Some(holders)
}

/// The same as `through_native` if the counterparties were market makers or pools outside the
/// tables: the accounts that exchanged only this token for only wrapped native coin, if they
/// exchanged all of the leg.
fn by_makers(ledger: &Ledger, leg: &Leg) -> Option<Units> {
    let (token, wrapped) = (Asset::Token(leg.token), Asset::Token(ledger.wrapped));
    let mut flows: BTreeMap<Account, BTreeMap<Asset, Flow>> = BTreeMap::new();
    for m in &ledger.moves {
        flows.entry(m.from).or_default().entry(m.asset).or_default().add(m.amount, false);
        flows.entry(m.to).or_default().entry(m.asset).or_default().add(m.amount, true);
    }
    let (mut exchanged, mut value) = (Units::ZERO, Units::ZERO);
    for mut flows in flows.into_values() {
        flows.retain(|_, flow| flow.got != flow.gave);
        let (Some(of_token), Some(of_coin), 2) =
            (flows.get(&token), flows.get(&wrapped), flows.len())
        else {
            continue;
        };
        if let (Some(moved), Some(paid)) =
            (net(*of_token, leg.side), net(*of_coin, other(leg.side)))
        {
            exchanged = exchanged.checked_add(moved)?;
            value = value.checked_add(paid)?;
        }
    }
    (exchanged == leg.units && !value.is_zero()).then_some(value)
}

/// The same if both tokens tax their transfers, so that no pool exchanged exactly a leg's amount:
/// the wrapped native coin that the sold token's only pool gave to the bought token's only pool, if
/// nothing else went into either and the wallet passed nothing on.
fn between_pools(scene: &Scene<'_>, (a, b): (&Leg, &Leg)) -> Option<Units> {
    let (sold, bought) = if a.side == Side::Sell { (a, b) } else { (b, a) };
    let (first, second) = (pool_of(scene, sold)?, pool_of(scene, bought)?);
    let sum = |token: Account, is: &dyn Fn(&Move) -> bool| {
        let moves = scene.ledger.moves.iter().filter(|m| m.asset == Asset::Token(token) && is(m));
        moves.map(|m| m.amount).fold(Units::ZERO, Units::saturating_add)
    };
    let wrapped = scene.ledger.wrapped;
    let hop = sum(wrapped, &|m| m.from == first && m.to == second);
    let all = sum(wrapped, &|m| m.to == second);
    // A token's contract that sells its collected tax is a second seller.
    let taken = sum(sold.token, &|m| m.to == first && m.from != sold.token);
    let given = sum(bought.token, &|m| m.from == second);
    let passed_on = sum(bought.token, &|m| m.from == *scene.wallet);
    let is_whole = hop == all && taken <= sold.units && given >= bought.units;
    let is_route = !hop.is_zero() && !taken.is_zero() && passed_on.is_zero();
    (is_whole && is_route).then_some(hop)
}

/// The only pool of a token, if it moved this token and the wrapped native coin alone.
fn pool_of(scene: &Scene<'_>, leg: &Leg) -> Option<Account> {
    let (token, wrapped) = (Asset::Token(leg.token), Asset::Token(scene.ledger.wrapped));
    let pools = scene.venues.iter().filter(|venue| is_pool(venue.event.kind));
    let mut pools = pools.filter(|venue| venue.assets.contains(&token));
    let pool = pools.next()?.holder;
    let is_alone = pools.all(|venue| venue.holder == pool);
    let mut assets = scene.ledger.of(&pool).into_keys();
    (is_alone && assets.all(|asset| asset == token || asset == wrapped)).then_some(pool)
}

fn other(side: Side) -> Side {
    match side {
        Side::Buy => Side::Sell,
        Side::Sell => Side::Buy,
    }
}

/// The net amount that a pool gave for a buy, or received for a sell.
fn net(flow: Flow, side: Side) -> Option<Units> {
    match side {
        Side::Buy => flow.gave.checked_sub(flow.got),
        Side::Sell => flow.got.checked_sub(flow.gave),
    }
}
