//! Converts traded legs to one row per token.

use std::sync::Arc;

use super::ledger::Asset;
use super::native;
use super::own::{Leg, Measure, Own};
use super::pools;
use super::scene::{Scene, Venue, exchanges, is_pool};
use super::tips;
use super::transaction::Log;
use super::values;
use super::words::{address, units, words};
use crate::decode::{Decoded, DecodedTrade, Note, NoteKind};
use crate::domain::{Address, Side, Units};
use crate::registry::{Contract, ContractKind, EventKind};

pub(super) fn rows(scene: &Scene<'_>, own: &Own, legs: &[Leg]) -> Decoded {
    let mut decoded = Decoded::default();
    let both = |side| legs.iter().any(|leg| leg.side == side);
    let against_native = !(both(Side::Buy) && both(Side::Sell));
    let measure = if own.measure == Measure::Unknown && against_native {
        native::value(scene, own)
    } else if against_native && tips::is_open(scene) {
        Measure::Unknown
    } else {
        own.measure
    };
    if !against_native {
        decoded.side_payment = match own.measure {
            Measure::None => Units::ZERO,
            Measure::Gave(units) | Measure::Got(units) => units,
            // The call's value may have been passed on.
            Measure::Unknown => {
                own.known.gave.abs_diff(own.known.got).max(scene.coin_from_caller())
            }
        };
    }
    let natives = values::of_legs(scene, legs, measure, own.known);
    if against_native && natives.contains(&None) {
        let detail = "the native value is unknown".to_owned();
        decoded.notes.push(Note { kind: NoteKind::Unvalued, detail });
    }
    if !own.income.is_empty() {
        // The values of the other rows and of the income say nothing about each other.
        decoded.side_payment = Units::MAX;
    }
    let income = own.income.iter().map(|leg| (leg, None));
    let mut named = None;
    for (leg, native) in legs.iter().zip(natives).chain(income) {
        let Some(mint) = Address::from_bytes(scene.chain.family, &leg.token) else { continue };
        decoded.trades.push(DecodedTrade {
            side: leg.side,
            mint,
            units: Some(leg.units),
            native,
            venue: venue(scene, leg, &mut named),
        });
    }
    decoded.trades.sort_by_key(|trade| (trade.side == Side::Buy, trade.mint));
    decoded
}

/// A pool's event, and the name of the pool.
type NamedPool<'a> = (&'a Log, Arc<str>);

/// The venue that exchanged most of a token. `named` caches the last pool's name: the next leg
/// often has the same pool.
fn venue<'a>(scene: &Scene<'a>, leg: &Leg, named: &mut Option<NamedPool<'a>>) -> Arc<str> {
    let asset = Asset::Token(leg.token);
    let mut best: Option<(&Venue<'a>, Units)> = None;
    let pools = scene.venues.iter().filter(|venue| is_pool(venue.event.kind));
    for venue in pools.filter(|venue| venue.assets.contains(&asset)) {
        let mut share = scene.share(venue, asset);
        // A quote belongs to the leg for certain only if it covers all of the leg.
        if venue.event.quotes && words(venue.log).any(|word| units(word) == leg.units) {
            share = Units::MAX;
        }
        if best.is_none_or(|(_, most)| share > most) {
            best = Some((venue, share));
        }
    }
    if let Some((venue, _)) = best {
        if let Some((_, name)) = named.as_ref().filter(|(log, _)| std::ptr::eq(*log, venue.log)) {
            return name.clone();
        }
        let name = pool_name(scene, venue);
        *named = Some((venue.log, name.clone()));
        return name;
    }
    let trades = |kind: EventKind| exchanges(kind) || kind == EventKind::Fill;
    let names = |venue: &&Venue<'_>| trades(venue.event.kind) && venue.assets.contains(&asset);
    let first = || scene.venues.iter().find(|venue| trades(venue.event.kind));
    if let Some(venue) = scene.venues.iter().find(names).or_else(first) {
        let is_pool = is_pool(venue.event.kind);
        return if is_pool { pool_name(scene, venue) } else { venue.name(scene.chain).clone() };
    }
    if let Some(contract) = scene.called {
        return contract.name.clone();
    }
    let to = scene.tx.to.and_then(|to| Address::from_bytes(scene.chain.family, &to));
    to.map(|to| to.to_string()).unwrap_or_default().into()
}

/// Names a pool by its factory if that is known, else by the venue's own router if it took part,
/// else by the protocol of the event, or by the pool's address if that protocol's factories are
/// known.
fn pool_name(scene: &Scene<'_>, venue: &Venue<'_>) -> Arc<str> {
    if venue.contract.is_some() || venue.event.holder.is_some() {
        return venue.name(scene.chain).clone();
    }
    if let Some(name) = pools::factory_name(scene, venue) {
        return name;
    }
    let routers = words(venue.log).filter_map(address).filter_map(|who| scene.contract(&who));
    let own =
        |contract: &&Contract| contract.kind == ContractKind::Router && contract.is_exact(None);
    if let Some(router) = routers.into_iter().find(own) {
        return router.name.clone();
    }
    // If the protocol's factories are known, they would have matched its own pools: this pool
    // belongs to another venue, which only its address identifies.
    let protocol = venue.name(scene.chain);
    let recognized = scene.tables.factories(scene.chain).next().is_some()
        && scene.tables.all_factories().iter().any(|made| made.name == *protocol);
    let pool = Address::from_bytes(scene.chain.family, &venue.log.address).filter(|_| recognized);
    pool.map_or_else(|| protocol.clone(), |pool| pool.to_string().into())
}
