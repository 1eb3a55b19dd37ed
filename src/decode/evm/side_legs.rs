//! Movements that only follow an exchange, and exchanges whose output went on to other accounts.

use super::ledger::{Asset, Ledger, Move, Unique, transfer};
use super::own::{Leg, Measure, Own};
use super::scene::{Scene, exchanges};
use super::transaction::{Account, Log};
use super::words::ZERO;
use crate::domain::{Side, Units};
use crate::registry::ContractKind;

/// `transfer(address,uint256)`.
const TRANSFER_CALL: [u8; 4] = [0xa9, 0x05, 0x9c, 0xbb];

/// Whether a non-fungible token was minted or burnt as part of the transfer of an exchanged token:
/// the mirror of a DN-404 token, whose events are adjacent to that transfer.
pub(super) fn mirrors(scene: &Scene<'_>, own: &Own, unique: &Unique) -> bool {
    let positions = scene.contract(&unique.token);
    if positions.is_some_and(|contract| contract.kind == ContractKind::Positions) {
        return false;
    }
    let side = match (unique.from == ZERO, unique.to == ZERO) {
        (true, false) => Side::Buy,
        (false, true) => Side::Sell,
        _ => return false,
    };
    let logs = scene.tx.logs.as_slice();
    let is_mirror = |log: &Log| log.address == unique.token;
    let (Some(first), Some(last)) =
        (logs.iter().position(is_mirror), logs.iter().rposition(is_mirror))
    else {
        return false;
    };
    let unbroken = logs.get(first..=last).is_some_and(|run| run.iter().all(is_mirror));
    let moves = |log: &Log| {
        let leg = own.legs.iter().find(|leg| leg.token == log.address && leg.side == side);
        let owner = transfer(log).map(|(from, to)| if side == Side::Buy { to } else { from });
        leg.is_some_and(|leg| scene.exchanged(Asset::Token(leg.token)))
            && owner == Some(*scene.wallet)
    };
    let before = first.checked_sub(1).and_then(|at| logs.get(at));
    let after = logs.get(last + 1);
    unbroken && before.into_iter().chain(after).any(moves)
}

/// Whether most of the exchange's output for the wallet went on to others, by a bridge or as a
/// payment: what came back is change.
pub(super) fn went_on(scene: &Scene<'_>, own: &Own, legs: &[Leg]) -> bool {
    if scene.tx.from != *scene.wallet || scene.fills() || own.exchanged.len() != legs.len() {
        return false;
    }
    let mut bought = legs.iter().filter(|leg| leg.side == Side::Buy);
    match (bought.next(), bought.next(), own.measure) {
        (Some(leg), None, Measure::None | Measure::Gave(_) | Measure::Unknown) => {
            let asset = Asset::Token(leg.token);
            onward(scene, asset) > leg.units
        }
        (None, _, Measure::Got(units))
            if scene.ledger.native_known && !sells_itself(scene.ledger, legs) =>
        {
            onward(scene, Asset::Native) > units
        }
        _ => false,
    }
}

/// Whether the wallet did nothing but send a token to accounts that answered with nothing. What it got
/// meanwhile, as of the taxes that the token's contract sold, is not for it.
pub(super) fn was_sent(scene: &Scene<'_>, leg: &Leg) -> bool {
    let calls_token = scene.tx.from == *scene.wallet && scene.tx.to == Some(leg.token);
    let sends = calls_token && scene.tx.selector == Some(TRANSFER_CALL);
    let moves = &scene.ledger.moves;
    let takes_part = |who: &Account| {
        *who == leg.token
            || moves.iter().any(|m| m.from == *who)
            || scene.venues.iter().any(|v| exchanges(v.event.kind) && v.holder == *who)
    };
    let of_leg = |m: &&Move| m.from == *scene.wallet && m.asset == Asset::Token(leg.token);
    sends && leg.side == Side::Sell && !moves.iter().filter(of_leg).any(|m| takes_part(&m.to))
}

/// Whether a fee-on-transfer token sold its collected fees meanwhile, through the same router.
fn sells_itself(ledger: &Ledger, legs: &[Leg]) -> bool {
    ledger
        .moves
        .iter()
        .any(|m| legs.iter().any(|leg| m.asset == Asset::Token(leg.token) && m.from == leg.token))
}

/// How much of an asset the wallet's payers gave to accounts other than pools and the asset itself.
fn onward(scene: &Scene<'_>, asset: Asset) -> Units {
    let is_pool =
        |who: &Account| scene.venues.iter().any(|v| exchanges(v.event.kind) && v.holder == *who);
    let takes_part = |who: &Account| {
        let itself = match asset {
            Asset::Token(token) => token == *who,
            Asset::Native => scene.ledger.wrapped == *who,
        };
        itself || *who == ZERO || is_pool(who)
    };
    let of_asset = || scene.ledger.moves.iter().filter(|m| m.asset == asset);
    let pays = |who: &Account| of_asset().any(|m| m.from == *who && m.to == *scene.wallet);
    let away = of_asset().filter(|m| {
        m.to != *scene.wallet && !takes_part(&m.from) && !takes_part(&m.to) && pays(&m.from)
    });
    away.fold(Units::ZERO, |sum, m| sum.saturating_add(m.amount))
}
