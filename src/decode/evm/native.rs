//! Native coin where nobody tells what inner calls moved: only what a protocol guarantees.

use super::ledger::{Asset, Ledger, Move, tells_movement, transfer};
use super::scene::{Scene, Venue, exchanges};
use super::trade::{Leg, Measure, Own};
use super::transaction::{Account, Log, Word};
use super::words::{NATIVE_PLACEHOLDER, ZERO, address, nth, units};
use crate::domain::Units;
use crate::registry::{EventKind, Payout};

/// `swapExactETHForTokens` and the same for coins that take fees: by their interface such a call
/// spends the coin that it is given exactly, whichever contract has it.
const EXACT_COIN_IN: [[u8; 4]; 2] = [[0x7f, 0xf3, 0x6a, 0xb5], [0xb6, 0xf9, 0xde, 0x95]];

/// Whether the wallet gave, and whether it got, native coin, as far as that can be told.
pub(super) fn sides(
    scene: &Scene<'_>,
    ledger: &Ledger,
    wallet: &Account,
    own: &Own,
) -> (bool, bool) {
    let measure = match Measure::from(own.told) {
        Measure::None | Measure::Unknown => value(scene, ledger, wallet, own),
        told @ (Measure::Gave(_) | Measure::Got(_)) => told,
    };
    match measure {
        Measure::Gave(_) => (true, false),
        Measure::Got(_) => (false, true),
        Measure::None | Measure::Unknown if own.gave() && !own.got() => {
            let another = scene.tx.terms.receiver.is_some_and(|receiver| receiver != *wallet);
            (false, !another && may_have_got(scene, ledger, wallet))
        }
        Measure::None | Measure::Unknown => {
            let spent = !ledger.wraps.is_empty() || gives_native(scene);
            (own.got() && !own.gave() && scene.acts_inside(wallet) && spent, false)
        }
    }
}

/// Whether native coin came out of the route, and nothing else took it.
fn may_have_got(scene: &Scene<'_>, ledger: &Ledger, wallet: &Account) -> bool {
    if scene.venues.iter().any(|venue| venue.event.kind == EventKind::Bridge) {
        return false;
    }
    let unwrapped = !ledger.unwraps.is_empty();
    if !scene.acts(wallet) {
        return unwrapped && scene.fills();
    }
    if scene.calls_router() {
        return unwrapped || gives_native(scene);
    }
    // A contract that nobody knows: who speaks after the coin was unwrapped may have taken it.
    let is_unwrap = |log: &Log| ledger.unwraps_by(log).is_some();
    let Some(after) = scene.tx.logs.iter().rposition(is_unwrap) else {
        // Nothing was unwrapped: a pool of loose coin paid.
        return scene.venues.iter().any(|v| exchanges(v.event.kind) && v.may_move_native());
    };
    let behind = scene.tx.logs.get(after + 1..).unwrap_or_default();
    behind.iter().all(|log| {
        Some(log.address) == scene.tx.to
            || tells_movement(log)
            || scene.contract(&log.address).is_some()
            || scene.venues.iter().any(|venue| std::ptr::eq(venue.log, log))
    })
}

/// Whether a pool that ran may have given native coin that was never wrapped: such pools show the
/// movement of one of their two assets only.
fn gives_native(scene: &Scene<'_>) -> bool {
    scene.venues.iter().any(|venue| {
        exchanges(venue.event.kind) && (venue.assets.len() < 2 || venue.may_move_native())
    })
}

/// The native value of a trade against native coin alone, where the wallet's balance is not told.
pub(super) fn value(scene: &Scene<'_>, ledger: &Ledger, wallet: &Account, own: &Own) -> Measure {
    let sends = scene.tx.from == *wallet;
    if own.got() && !own.gave() {
        if scene.acts_inside(wallet) && Measure::from(own.told) == Measure::None {
            return Measure::Unknown;
        }
        if scene.tx.value.is_zero() || !sends {
            return own.told.into();
        }
        let wrapped = own.told.gave.saturating_sub(scene.tx.value);
        if !wrapped.is_zero() || !own.told.got.is_zero() {
            return Measure::Unknown;
        }
        return spent(scene, ledger).map_or(Measure::Unknown, Measure::Gave);
    }
    if own.gave() && !own.got() && scene.tx.value.is_zero() {
        let told = Measure::from(own.told);
        let paid = paid(scene, ledger, wallet, own);
        return match (told, paid) {
            (Measure::None, Some(units)) => Measure::Got(units),
            (told @ Measure::Got(_), None) => told,
            (Measure::Got(_) | Measure::Gave(_) | Measure::None | Measure::Unknown, _) => {
                Measure::Unknown
            }
        };
    }
    Measure::Unknown
}

fn sum(list: &[(Account, Units)], of: impl Fn(&Account) -> bool) -> Units {
    let amounts = list.iter().filter(|(who, _)| of(who)).map(|(_, amount)| *amount);
    amounts.fold(Units::ZERO, Units::saturating_add)
}

/// How much of the transaction's value was spent, where nothing of it can have come back unseen.
fn spent(scene: &Scene<'_>, ledger: &Ledger) -> Option<Units> {
    let (value, to) = (scene.tx.value, scene.tx.to?);
    let (wrapped, unwrapped) = (sum(&ledger.wraps, |_| true), sum(&ledger.unwraps, |_| true));
    if scene.called.is_some_and(|called| called.spends_whole) {
        return Some(value);
    }
    if wrapped == value && unwrapped.is_zero() {
        return Some(value);
    }
    // A pool took just as much as was sent: nothing was left to come back.
    let pools = || {
        let pool = |venue: &&Venue<'_>| match venue.event.kind {
            EventKind::Pool | EventKind::Curve => true,
            EventKind::Router => venue.event.pays.is_some(),
            EventKind::Fill
            | EventKind::CowTrade
            | EventKind::Liquidity
            | EventKind::Position
            | EventKind::Conversion
            | EventKind::Bridge
            | EventKind::Operation
            | EventKind::Fee => false,
        };
        scene.venues.iter().filter(pool)
    };
    let takes_exactly = scene.tx.selector.is_some_and(|call| EXACT_COIN_IN.contains(&call));
    if takes_exactly && unwrapped.is_zero() && !wrapped.is_zero() && wrapped <= value {
        return Some(value);
    }
    let whole = |word: &Word| units(word) == value || units(word) == value.wrapping_neg();
    if unwrapped.is_zero() && pools().any(|venue| super::words::words(venue.log).any(whole)) {
        return Some(value);
    }
    let by_called = |who: &Account| *who == to;
    let exact = scene.called.is_some_and(|called| called.is_exact(scene.tx.selector));
    let only = sum(&ledger.wraps, by_called) == wrapped
        && sum(&ledger.unwraps, by_called) == unwrapped
        && !wrapped.is_zero()
        && !pools().any(Venue::may_move_native);
    if exact && only && wrapped <= value { wrapped.checked_sub(unwrapped) } else { None }
}

/// How much native coin the wallet was paid for what it gave.
fn paid(scene: &Scene<'_>, ledger: &Ledger, wallet: &Account, own: &Own) -> Option<Units> {
    let mut told: Option<Units> = None;
    let charges = |venue: &Venue<'_>| venue.event.kind == EventKind::Fee;
    if scene.venues.iter().any(charges) {
        return None;
    }
    // An account that does several things at once may be paid by others unseen.
    let single = own.exchanged.len() == 1 && !scene.acts_inside(wallet);
    for venue in &scene.venues {
        let Some(pays) = venue.event.pays else { continue };
        if !single && venue.event.kind != EventKind::CowTrade {
            continue;
        }
        let Some(amount) = payout(venue, pays, wallet) else { continue };
        told = match (told, venue.event.kind) {
            (None, _) => Some(amount),
            // One order after the other.
            (Some(sum), EventKind::CowTrade) => sum.checked_add(amount),
            // The same payment told again, by an outer router.
            (Some(same), _) if same == amount => Some(same),
            (Some(_), _) => return None,
        };
    }
    if told.is_some() {
        return told;
    }
    let sends = scene.tx.from == *wallet;
    let another = scene.tx.terms.receiver.is_some_and(|receiver| receiver != *wallet);
    if !sends || another {
        return None;
    }
    through(scene, ledger, wallet, own)
}

/// What came of the wallet's token as native coin below its call, less what the contract called
/// keeps of it: whole, where that contract is known to pay it out whole.
fn through(scene: &Scene<'_>, ledger: &Ledger, wallet: &Account, own: &Own) -> Option<Units> {
    let (to, called) = (scene.tx.to?, scene.called?);
    let exact = called.is_exact(scene.tx.selector);
    if !exact && !called.pays_whole {
        return None;
    }
    let loose = loose(scene, ledger, &to)?;
    let [leg] = own.exchanged.as_slice() else {
        let [(unwrapper, all)] = ledger.unwraps.as_slice() else { return None };
        let only = exact && *unwrapper == to && loose.is_zero();
        return (only && !all.is_zero()).then_some(*all);
    };
    let behind = after_giving(scene, ledger, wallet, leg)?;
    let mut sum = loose;
    for (who, amount) in ledger.unwraps_in(behind) {
        if who != to && !called.pays_whole {
            return None;
        }
        sum = sum.checked_add(amount)?;
    }
    let kept = if called.charges { scene.tx.terms.charged? } else { Units::ZERO };
    sum.checked_sub(kept).filter(|paid| !paid.is_zero())
}

/// Native coin that pools gave to a contract without wrapping it; `None` where one may have given
/// some unseen.
fn loose(scene: &Scene<'_>, ledger: &Ledger, to: &Account) -> Option<Units> {
    let wrapped = Asset::Token(ledger.wrapped);
    let gave = |m: &Move, venue: &Venue<'_>| m.from == venue.holder && m.asset == wrapped;
    let mut venues = scene
        .venues
        .iter()
        .filter(|venue| venue.may_move_native() && !ledger.moves.iter().any(|m| gave(m, venue)));
    venues.try_fold(Units::ZERO, |sum, venue| {
        sum.checked_add(payout(venue, venue.event.pays.filter(|pays| pays.token.is_some())?, to)?)
    })
}

/// The events after the wallet gave the last of a token. A coin that takes fees sells what it kept
/// of them through the same routers while the wallet's transfer is under way: where it could have
/// done so later, or the wallet was paid before, there are none.
fn after_giving<'a>(
    scene: &'a Scene<'_>,
    ledger: &Ledger,
    wallet: &Account,
    leg: &Leg,
) -> Option<&'a [Log]> {
    let logs = scene.tx.logs.as_slice();
    let gives = |log: &Log, who: &Account| {
        log.address == leg.token && transfer(log).is_some_and(|(from, _)| from == *who)
    };
    let last = logs.iter().rposition(|log| gives(log, wallet))?;
    let (before, after) = (logs.get(..last)?, logs.get(last + 1..)?);
    let sold = |logs: &[Log]| logs.iter().any(|log| gives(log, &leg.token));
    let paid_before = ledger.unwraps_in(before).next().is_some() && !sold(before);
    (!sold(after) && !paid_before).then_some(after)
}

/// What an event says was paid to the wallet, where that was native coin.
fn payout(venue: &Venue<'_>, pays: Payout, wallet: &Account) -> Option<Units> {
    let account = |at: usize| nth(venue.log, at).and_then(address);
    if account(pays.to) != Some(*wallet) {
        return None;
    }
    if let Some(token) = pays.token {
        let token = account(token)?;
        if token != NATIVE_PLACEHOLDER && token != ZERO {
            return None;
        }
    }
    nth(venue.log, pays.amount).map(units)
}
