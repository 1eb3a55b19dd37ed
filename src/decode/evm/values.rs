//! Native value of each row.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{Asset, Ledger, Move};
use super::own::{Leg, Measure};
use super::scene::{Scene, is_pool};
use super::side_legs::without_tax;
use super::transaction::{Account, NativeFlows};
use crate::decode::flow::Flow;
use crate::decode::is_part;
use crate::domain::{Side, Units};
use crate::registry::ContractKind;

/// The native value of each leg, `None` where it is unknown. `known`: what is known of the measure.
pub(super) fn of_legs(
    scene: &Scene<'_>,
    legs: &[Leg],
    measure: Measure,
    known: Flow,
) -> Vec<Option<Units>> {
    let has = |side| legs.iter().any(|leg| leg.side == side);
    // Unseen, what came along may have gone on: only the token's own pools show that it did not.
    let came = scene.came_along();
    let stays = matches!(scene.tx.native, NativeFlows::Net { gained, .. } if gained == came);
    let is_seen = scene.ledger.native_known || came.is_zero() || stays;
    match (legs, measure) {
        ([leg], Measure::Gave(units)) if leg.side == Side::Buy && is_seen => vec![Some(units)],
        ([leg], Measure::Got(units)) if leg.side == Side::Sell => vec![Some(units)],
        (_, Measure::Gave(_)) if !has(Side::Sell) => parts(scene, legs, (Side::Buy, measure)),
        (_, Measure::Got(_)) if !has(Side::Buy) => parts(scene, legs, (Side::Sell, measure)),
        ([a, b], Measure::Unknown) if a.side != b.side => of_pair(scene, (a, b), known.into()),
        ([a, b], _) if a.side != b.side => of_pair(scene, (a, b), measure),
        _ => vec![None; legs.len()],
    }
}

/// One token for another, or a sale and a purchase.
fn of_pair(scene: &Scene<'_>, (a, b): (&Leg, &Leg), measure: Measure) -> Vec<Option<Units>> {
    if let Some(parts) = of_two_trades(scene, (a, b), measure) {
        return parts;
    }
    let hop = |leg| through_native(scene, leg).or_else(|| by_makers(scene.ledger, leg));
    let loose = |leg| through(scene, leg, true);
    let hop = match (hop(a), hop(b)) {
        (Some(a), Some(b)) => (a == b).then_some(a),
        // Loose coin may be known in part: both sides have to say the same.
        (None, None) if loose(a).is_some() && loose(a) == loose(b) => loose(a),
        // The first pool may have given some to the wallet.
        (None, None) if matches!(measure, Measure::Got(_)) => None,
        (None, None) => between_pools(scene, (a, b)),
        (a, b) if a.or(b).is_some_and(|hop| is_fee(measure, hop)) => a.or(b),
        // Between the two lies coin that the wallet added or kept.
        (a, b) => return vec![a, b],
    };
    vec![hop; 2]
}

/// Whether coin next to a route is too little to be part of it: at most 1 % of what passed.
fn is_fee(measure: Measure, hop: Units) -> bool {
    match measure {
        Measure::None => true,
        Measure::Gave(units) | Measure::Got(units) => !is_part(units, hop),
        Measure::Unknown => false,
    }
}

/// Of two trades against native coin, a sale and a purchase: each by its own pools, where their
/// difference is what the wallet paid or kept.
fn of_two_trades(
    scene: &Scene<'_>,
    (a, b): (&Leg, &Leg),
    measure: Measure,
) -> Option<Vec<Option<Units>>> {
    if matches!(measure, Measure::None | Measure::Unknown) {
        return None;
    }
    let (first, second) = (alone(scene, a)?, alone(scene, b)?);
    let (sold, bought) = if a.side == Side::Sell { (first, second) } else { (second, first) };
    let difference = match measure {
        Measure::Gave(units) => bought.checked_sub(sold)? == units,
        Measure::Got(units) => sold.checked_sub(bought)? == units,
        Measure::None | Measure::Unknown => false,
    };
    difference.then(|| vec![Some(first), Some(second)])
}

/// Several tokens against native coin: each is valued by its own pools, where the values add up.
fn parts(scene: &Scene<'_>, legs: &[Leg], (side, all): (Side, Measure)) -> Vec<Option<Units>> {
    let parts: Vec<Option<Units>> = legs.iter().map(|leg| alone(scene, leg)).collect();
    let sum = parts.iter().try_fold(Units::ZERO, |sum, part| sum.checked_add((*part)?));
    let sum = sum.map(|sum| if side == Side::Buy { Measure::Gave(sum) } else { Measure::Got(sum) });
    if sum == Some(all) { parts } else { vec![None; legs.len()] }
}

/// What one of several tokens was exchanged for, where a sum has to confirm it: with the tax that its
/// contract takes, and at pools that others use too.
fn alone(scene: &Scene<'_>, leg: &Leg) -> Option<Units> {
    through_native(scene, leg).or_else(|| {
        let untaxed = Leg { units: without_tax(scene, leg)?, ..*leg };
        through_native(scene, &untaxed).or_else(|| straight(scene, &untaxed))
    })
}

/// What the wallet and a token's pools exchanged straight with each other, where that is all of the token:
/// the pools' other movements are of others.
fn straight(scene: &Scene<'_>, leg: &Leg) -> Option<Units> {
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

/// What a token was exchanged for, where pools of only this token and the wrapped native coin
/// exchanged all of it.
fn through_native(scene: &Scene<'_>, leg: &Leg) -> Option<Units> {
    through(scene, leg, false)
}

/// The same; with `loose`, of pools that may hold coin that is not wrapped.
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
            // Its coin moved in a way that is not known.
            return None;
        }
        exchanged = exchanged.checked_add(moved)?;
        value = value.checked_add(paid)?;
    }
    (exchanged == leg.units && !value.is_zero()).then_some(value)
}

/// The pools that exchanged a token; `None` where one shares an account with others.
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

/// The same where market makers, or pools outside the tables, were the counterparties: the accounts
/// that ended with only this token for only the wrapped native coin, or the reverse, where they
/// exchanged all of it.
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

/// The same where both tokens keep a part of each transfer, so that no pool exchanged what a leg
/// has: the wrapped native coin that the sold token's only pool gave to the bought token's only
/// pool, where nothing else went into either and the wallet passed nothing on.
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
    // A contract that sells its collected tax is another seller.
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

/// What a pool gave for a buy, or received for a sell.
fn net(flow: Flow, side: Side) -> Option<Units> {
    match side {
        Side::Buy => flow.gave.checked_sub(flow.got),
        Side::Sell => flow.got.checked_sub(flow.gave),
    }
}
