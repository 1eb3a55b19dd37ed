//! From what was traded to one row a token.

use std::sync::Arc;

use super::ledger::{Asset, Ledger};
use super::native;
use super::scene::{Scene, exchanges};
use super::trade::{Leg, Measure, Own};
use super::transaction::Account;
use crate::decode::{Decoded, DecodedTrade, Note, NoteKind};
use crate::domain::{Address, Side, Units};
use crate::registry::EventKind;

pub(super) fn rows(
    scene: &Scene<'_>,
    ledger: &Ledger,
    wallet: &Account,
    own: &Own,
    legs: &[Leg],
) -> Decoded {
    let mut decoded = Decoded::default();
    let both = |side| legs.iter().any(|leg| leg.side == side);
    let against_native = !(both(Side::Buy) && both(Side::Sell));
    let measure = match own.measure {
        Measure::Unknown if against_native => native::value(scene, ledger, wallet, own),
        known => known,
    };
    for leg in legs {
        let Some(mint) = Address::from_bytes(scene.chain.family, &leg.token) else { continue };
        let native = match (leg.side, measure) {
            (Side::Buy, Measure::Gave(units)) | (Side::Sell, Measure::Got(units))
                if against_native && legs.len() == 1 =>
            {
                Some(units)
            }
            _ => None,
        };
        decoded.trades.push(DecodedTrade {
            side: leg.side,
            mint,
            units: Some(leg.units),
            native,
            venue: venue(scene, ledger, leg),
        });
    }
    if against_native && decoded.trades.iter().any(|trade| trade.native.is_none()) {
        let detail = "the native value could not be told".to_owned();
        decoded.notes.push(Note { kind: NoteKind::Unvalued, detail });
    }
    decoded.trades.sort_by_key(|trade| (trade.side == Side::Buy, trade.mint));
    decoded
}

/// The venue that exchanged most of a token.
fn venue(scene: &Scene<'_>, ledger: &Ledger, leg: &Leg) -> Arc<str> {
    let asset = Asset::Token(leg.token);
    let mut best: Option<(&Arc<str>, Units)> = None;
    for venue in &scene.venues {
        let pool = matches!(venue.event.kind, EventKind::Pool | EventKind::Curve);
        if !pool || !venue.assets.contains(&asset) {
            continue;
        }
        let of_holder = ledger
            .moves
            .iter()
            .filter(|m| m.asset == asset && (m.from == venue.holder || m.to == venue.holder));
        let share = of_holder.map(|m| m.amount).max().unwrap_or_default();
        if best.is_none_or(|(_, most)| share > most) {
            best = Some((venue.name(scene.chain), share));
        }
    }
    if let Some((name, _)) = best {
        return name.clone();
    }
    let named =
        scene.venues.iter().find(|v| exchanges(v.event.kind) || v.event.kind == EventKind::Fill);
    if let Some(venue) = named {
        return venue.name(scene.chain).clone();
    }
    if let Some(contract) = scene.called {
        return contract.name.clone();
    }
    let to = scene.tx.to.and_then(|to| Address::from_bytes(scene.chain.family, &to));
    to.map(|to| to.to_string()).unwrap_or_default().into()
}
