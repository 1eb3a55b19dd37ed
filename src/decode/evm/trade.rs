//! Decides whether what a wallet gave and received is a trade.

use std::collections::BTreeSet;

use super::counterparties;
use super::ledger::{Asset, Ledger, Move, Unique};
use super::native;
use super::own::{LEG_COUNT_MAX, Leg, Measure, Own, TWO};
use super::scene::{Scene, Venue, exchanges};
use super::shape;
use super::side_legs::{self, is_launched};
use super::transaction::Account;
use super::words::{ZERO, address, units, words};
use crate::decode::{Note, NoteKind};
use crate::domain::{Side, Units};
use crate::registry::{ContractKind, EventKind};

/// The legs that were traded, or why there is no trade.
pub(super) fn traded(scene: &Scene<'_>, own: &Own) -> Result<Vec<Leg>, Option<Note>> {
    let routed = scene.calls_router() && scene.tx.from == *scene.wallet;
    let all = routed || scene.fills();
    if !all && !scene.venues.iter().any(|venue| exchanges(venue.event.kind)) {
        return shape::traded(scene, own).ok_or(None);
    }
    if only_converted(scene, own) {
        return reject(NoteKind::Conversion, "one token was converted to another at a fixed price");
    }
    reject_non_trades(scene, own, routed)?;
    let known = |leg: &&Leg| {
        let exchanged = all || scene.exchanged(Asset::Token(leg.token));
        (exchanged || counterparties::link(scene, own, leg)) && !side_legs::was_sent(scene, leg)
    };
    let legs: Vec<Leg> = own.exchanged.iter().filter(known).copied().collect();
    let has = |legs: &[Leg], side| legs.iter().any(|leg| leg.side == side);
    let (gave, got) = (has(&legs, Side::Sell), has(&legs, Side::Buy) || !own.income.is_empty());
    let (native_gave, native_got) = match own.measure {
        Measure::None => (false, false),
        Measure::Gave(_) => (true, false),
        Measure::Got(_) => (false, true),
        Measure::Unknown => native::sides(scene, own),
    };
    // If a token moved that no venue exchanged, native coin on the same side is a fee or change.
    let other = |side| own.exchanged.iter().any(|leg| leg.side == side && !legs.contains(leg));
    let gave = gave || (native_gave && !other(Side::Sell));
    let got = got || (native_got && !other(Side::Buy));
    match (gave, got) {
        (true, true) if side_legs::went_on(scene, own, &legs) => {
            reject(NoteKind::OneSided, "most of what the exchange gave went on to another account")
        }
        (true, true) if !legs.is_empty() => Ok(legs),
        (true, true) | (false, false) => Err(None),
        (true, false) => reject(NoteKind::OneSided, "a venue ran and the wallet only gave"),
        (false, true) if is_round_trip(scene.ledger, scene.wallet, own) => {
            reject(NoteKind::RoundTrip, "what the wallet gave came back as the same asset")
        }
        (false, true) => reject(NoteKind::OneSided, "a venue ran and the wallet only got"),
    }
}

/// Whether all that the wallet exchanged was converted at a fixed price and no market took part. A
/// router's own event reports such a conversion as an exchange.
fn only_converted(scene: &Scene<'_>, own: &Own) -> bool {
    let others = |of| scene.conversions.iter().filter_map(move |one| Some((one, one.other(of)?)));
    let is_own = |asset| own.exchanged.iter().any(|leg| Asset::Token(leg.token) == asset);
    // What one module gives may be converted at the next one.
    let leads_on = |from, by| others(by).any(|(_, end)| end != from && is_own(end));
    let converted = |leg: &Leg| {
        let asset = Asset::Token(leg.token);
        others(asset).any(|(one, other)| one.is_wallets || leads_on(asset, other))
    };
    !own.exchanged.is_empty() && !scene.has_market() && own.exchanged.iter().all(converted)
}

/// Checks the other reasons why the exchange is not a trade of the wallet. `routed`: the wallet
/// called a contract that trades for its callers.
fn reject_non_trades(scene: &Scene<'_>, own: &Own, routed: bool) -> Result<(), Option<Note>> {
    let known =
        |venue: &Venue<'_>| exchanges(venue.event.kind) && venue.log.address == *scene.wallet;
    if scene.venues.iter().any(known) {
        // A pool is the counterparty of others' trades and has none of its own.
        return Err(None);
    }
    if own.legs.len() > LEG_COUNT_MAX {
        return reject(NoteKind::OneSided, "more tokens moved than any trade has");
    }
    if own.exchanged.iter().any(|leg| is_share(scene, leg)) {
        return reject(NoteKind::Liquidity, "shares of a pool or a vault were minted or burnt");
    }
    if !routed
        && scene.venues.iter().any(|venue| takes_liquidity(scene, own, venue))
        && !scene.venues.iter().any(|venue| venue.event.kind == EventKind::Curve)
    {
        // The position took what was swapped, and only change came back.
        return reject(NoteKind::Liquidity, "a position of liquidity grew");
    }
    let uniques: BTreeSet<Unique> = scene.ledger.uniques.iter().copied().collect();
    if let Some(unique) = uniques.iter().find(|unique| {
        (unique.from == *scene.wallet || unique.to == *scene.wallet)
            && !own.legs.iter().any(|leg| leg.token == unique.token)
            && !side_legs::mirrors(scene, own, unique)
            && !is_creators(scene, own, unique)
    }) {
        let positions = scene.contract(&unique.token);
        let positions = positions.is_some_and(|c| c.kind == ContractKind::Positions);
        let kind = if positions { NoteKind::Liquidity } else { NoteKind::OneSided };
        return reject(kind, "a token that is one of its kind changed hands");
    }
    Ok(())
}

/// Whether a token that is one of its kind was minted for the creator of a token that is launched
/// here, of which the creator is the first buyer.
fn is_creators(scene: &Scene<'_>, own: &Own, unique: &Unique) -> bool {
    let known = scene.contract(&unique.token);
    let holds_position = known.is_some_and(|contract| contract.kind == ContractKind::Positions);
    let is_first =
        |leg: &Leg| is_launched(scene.ledger, leg) && scene.exchanged(Asset::Token(leg.token));
    unique.from == ZERO && !holds_position && own.exchanged.iter().any(is_first)
}

/// Whether an event adds liquidity to a position that may have taken what the wallet gave. The
/// first position of a token that is launched here takes only that token.
fn takes_liquidity(scene: &Scene<'_>, own: &Own, venue: &Venue<'_>) -> bool {
    let launched = || own.exchanged.iter().any(|leg| is_launched(scene.ledger, leg));
    if let Some(at) = venue.event.grows {
        let added = words(venue.log).nth(at).map(units);
        let added = added.is_some_and(|units| !units.is_zero() && !units.bit(255));
        let manages = |account: Account| {
            scene.contract(&account).is_some_and(|known| known.kind == ContractKind::Positions)
        };
        // In another sender's call the position may be anyone's.
        return added
            && scene.tx.from == *scene.wallet
            && words(venue.log).filter_map(address).any(manages)
            && !launched();
    }
    // The words after the id are the liquidity and the amount of each token.
    let alone = || words(venue.log).skip(1).any(|word| units(word).is_zero());
    venue.event.kind == EventKind::Position && !(alone() && launched())
}

/// Whether the only token of which the wallet's balance changed is one that it got more of than it
/// gave, and gave some of.
fn is_round_trip(ledger: &Ledger, wallet: &Account, own: &Own) -> bool {
    let flows = ledger.of(wallet);
    match own.legs.as_slice() {
        [leg] if leg.side == Side::Buy => {
            flows.get(&Asset::Token(leg.token)).is_some_and(|flow| !flow.gave.is_zero())
        }
        _ => false,
    }
}

fn reject<T>(kind: NoteKind, detail: &str) -> Result<T, Option<Note>> {
    Err(Some(Note { kind, detail: detail.to_owned() }))
}

/// Whether a token is a share that was minted or burnt for a deposit or a withdrawal.
fn is_share(scene: &Scene<'_>, leg: &Leg) -> bool {
    let asset = Asset::Token(leg.token);
    let pool =
        |kind| scene.venues.iter().any(|v| v.log.address == leg.token && v.event.kind == kind);
    // The token is a pool and its own share.
    if pool(EventKind::Pool) {
        return true;
    }
    // A router's own event may name what it got by a deposit, or redeemed.
    let at_market = |venue: &Venue<'_>| {
        let kind = venue.event.kind;
        kind != EventKind::Router && exchanges(kind) && venue.assets.contains(&asset)
    };
    let redeemed =
        leg.side == Side::Sell && !scene.has_market() && scene.wraps(asset, |one| one.is_wallets);
    let deposited = leg.side == Side::Buy && (!scene.has_market() || scene.wraps(asset, |_| true));
    let is_named = scene.swapped(asset) && !redeemed && !deposited;
    if is_named || scene.venues.iter().any(at_market) {
        return false;
    }
    // How the filler of an order came by a share, or what it did with one, does not matter; nor
    // does the event of a token that only wraps what a market exchanged.
    let is_passed_on = || is_filled(scene) || scene.is_wrapper(asset) && scene.is_converted(asset);
    if redeemed || pool(EventKind::Liquidity) && !is_passed_on() {
        return true;
    }
    // A peg module mints and burns what it converts, on the way to or from a market.
    if scene.is_converted(asset) {
        return false;
    }
    is_made(scene, leg)
}

/// Whether an order may have been filled for the wallet, which did nothing itself.
fn is_filled(scene: &Scene<'_>) -> bool {
    scene.fills() && !scene.acts()
}

/// Whether what the wallet received of a token was minted, or most of what it gave was burnt or
/// went to the token's contract (a tax takes less). If an order of the wallet was filled while it
/// did nothing, only a mint to the wallet counts; a token minted to the filler was bought from its
/// issuer.
fn is_made(scene: &Scene<'_>, leg: &Leg) -> bool {
    let moves = || scene.ledger.moves.iter().filter(|m| m.asset == Asset::Token(leg.token));
    let filled = is_filled(scene);
    let minted = |m: &Move| m.from == ZERO && (!filled || m.to == *scene.wallet);
    let gone = |m: &&Move| m.from == *scene.wallet && (m.to == ZERO || m.to == leg.token);
    let burnt = || moves().filter(gone).map(|m| m.amount);
    match leg.side {
        Side::Buy => moves().any(|m| minted(m) && m.amount >= leg.units),
        Side::Sell => burnt().fold(Units::ZERO, Units::saturating_add) > leg.units / TWO,
    }
}
