//! Finds movements that only accompany an exchange, and exchanges whose output went to others.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{Asset, Ledger, Move, TRANSFER_CALL, Unique, transfer};
use super::own::{LEG_COUNT_MAX, Leg, Measure, Own, TWO};
use super::scene::{Scene, Venue, exchanges, is_pool};
use super::tips;
use super::transaction::{Account, Log};
use super::words::{ZERO, units, words};
use crate::decode::flow::Flow;
use crate::domain::{Side, Units};
use crate::registry::{ContractKind, EventKind};

/// Whether a non-fungible token is the mirror of a DN-404 token: it was minted or burnt in events
/// adjacent to the transfer of an exchanged token.
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

/// Removes tokens from the wallet's exchanged ones that moved next to an exchange which the
/// markets' events state completely: a reward that a venue mints, a fee in another token. In a call
/// of a known router, which may exchange without an event, only minted tokens are removed. Burnt
/// tokens stay, as they may be shares of what was exchanged. Income next to such an exchange is
/// separated.
pub(super) fn without_extras(scene: &Scene<'_>, mut own: Own) -> Own {
    let routed = scene.calls_router() && scene.tx.from == *scene.wallet;
    let is_extra = |leg: &&Leg| {
        let is_venue = scene.venues.iter().any(|venue| venue.log.address == leg.token);
        !scene.exchanged(Asset::Token(leg.token))
            && !is_venue
            && (is_minted(scene.ledger, leg) || (!routed && is_old(scene.ledger, leg)))
    };
    if own.exchanged.len() > LEG_COUNT_MAX || scene.fills() {
        return own;
    }
    let others: Vec<Leg> = own.exchanged.iter().filter(|leg| !is_extra(leg)).copied().collect();
    let has_row = |leg: &Leg| routed || scene.exchanged(Asset::Token(leg.token));
    let (income, rest): (Vec<Leg>, Vec<Leg>) =
        others.iter().partition(|leg| has_row(leg) && is_income(scene, &own, leg));
    if rest.len() < own.exchanged.len() && is_whole(scene, &own, &rest) {
        own.exchanged = rest;
        own.income = income;
    }
    own
}

/// Whether a token was paid to the wallet by accounts that exchanged nothing, as the distributor of
/// a taxed token pays holders within a transfer, before the exchange ends. Such an account received
/// no other token, and did not get this one from a pool. Native coin is not checked, because only a
/// trace shows it.
fn is_income(scene: &Scene<'_>, own: &Own, leg: &Leg) -> bool {
    if leg.side == Side::Sell || own.exchanged.len() < 2 {
        return false;
    }
    let asset = Asset::Token(leg.token);
    let venues = || {
        let exchanging = scene.venues.iter().filter(|venue| exchanges(venue.event.kind));
        exchanging.filter(|venue| venue.assets.contains(&asset))
    };
    let markets: BTreeSet<Account> = venues().map(|venue| venue.holder).collect();
    let is_market = |who: &Account| markets.contains(who);
    let moves = &scene.ledger.moves;
    let is_other = |m: &&Move| ![asset, Asset::Native].contains(&m.asset);
    let others: BTreeSet<Account> = moves.iter().filter(is_other).map(|m| m.to).collect();
    let got_other = |who: &Account| others.contains(who);
    let pays = |who: &Account| {
        let is_maker = [ZERO, leg.token].contains(who) || Some(*who) == scene.tx.to;
        !is_maker && !is_market(who) && !got_other(who)
    };
    // What a pool gave to another account may have been passed on to the wallet.
    let is_apart = |m: &Move| {
        let buys = |other: &Leg| other.token == m.to && other.token != leg.token;
        is_market(&m.to) || own.exchanged.iter().any(buys)
    };
    let of_asset = || moves.iter().filter(|m| m.asset == asset);
    let plain = |venue: &Venue<'_>| is_pool(venue.event.kind) && !venue.event.quotes;
    of_asset().filter(|m| m.to == *scene.wallet).all(|m| pays(&m.from))
        && of_asset().filter(|m| is_market(&m.from)).all(is_apart)
        && (scene.swapped(asset) || !scene.exchanged(asset))
        && venues().all(plain)
        && is_before_the_end(scene, leg)
}

/// Whether a market's event follows the last payment of a token to the wallet. What is bought with
/// the output of all markets is paid after them.
fn is_before_the_end(scene: &Scene<'_>, leg: &Leg) -> bool {
    let logs = scene.tx.logs.as_slice();
    let pays = |log: &Log| {
        log.address == leg.token && transfer(log).is_some_and(|(_, to)| to == *scene.wallet)
    };
    let is_market = |log: &Log| scene.markets().any(|venue| std::ptr::eq(venue.log, log));
    let behind = logs.iter().rposition(pays).and_then(|at| logs.get(at + 1..));
    behind.is_some_and(|behind| behind.iter().any(is_market))
}

/// Whether all movements of a received token are mints.
fn is_minted(ledger: &Ledger, leg: &Leg) -> bool {
    let mut moves = ledger.moves.iter().filter(|m| m.asset == Asset::Token(leg.token));
    leg.side == Side::Buy && moves.all(|m| m.from == ZERO)
}

/// Whether no movement of a token is a mint or burn, including those by its own contract.
fn is_old(ledger: &Ledger, leg: &Leg) -> bool {
    let made = |account: &Account| [ZERO, leg.token].contains(account);
    let mut moves = ledger.moves.iter().filter(|m| m.asset == Asset::Token(leg.token));
    !moves.any(|m| made(&m.from) || made(&m.to))
}

/// Whether events of pools and orders state both the amount that the wallet gave of one asset and
/// the amount that it received of one other. Neither can then be the price of something else.
fn is_whole(scene: &Scene<'_>, own: &Own, legs: &[Leg]) -> bool {
    let (sold, bought): (Vec<&Leg>, Vec<&Leg>) =
        legs.iter().partition(|leg| leg.side == Side::Sell);
    let coin = |side| match (own.measure, side) {
        (Measure::Gave(units), Side::Sell) | (Measure::Got(units), Side::Buy) => Some(units),
        (Measure::Unknown, _) => match (Measure::from(own.known), side) {
            (Measure::Gave(units), Side::Sell) | (Measure::Got(units), Side::Buy) => Some(units),
            (Measure::None | Measure::Gave(_) | Measure::Got(_) | Measure::Unknown, _) => {
                coin_moved(scene, side, &sold)
            }
        },
        (Measure::None | Measure::Gave(_) | Measure::Got(_), _) => None,
    };
    let amount = |legs: &[&Leg], side| match legs {
        [] => coin(side),
        [leg] => without_tax(scene, leg),
        [_, _, ..] => None,
    };
    let is_stated = |amount: Units| {
        let is_it = |word| [amount, amount.wrapping_neg()].contains(&units(word));
        scene.markets().any(|venue| words(venue.log).any(is_it))
    };
    let sides = [amount(&sold, Side::Sell), amount(&bought, Side::Buy)];
    sides.into_iter().all(|amount| amount.is_some_and(is_stated))
}

/// The amount of a token that its pool took or gave: the leg without the tax that the token's
/// contract takes from what the wallet or the pools give.
pub(super) fn without_tax(scene: &Scene<'_>, leg: &Leg) -> Option<Units> {
    let is_tax = |m: &&Move| {
        let taken = m.to == leg.token || m.to == ZERO;
        let from_it = match leg.side {
            Side::Sell => m.from == *scene.wallet,
            Side::Buy => m.from != leg.token,
        };
        m.asset == Asset::Token(leg.token) && taken && from_it
    };
    let taxes = scene.ledger.moves.iter().filter(is_tax).map(|m| m.amount);
    let tax = taxes.fold(Units::ZERO, Units::saturating_add);
    match leg.side {
        Side::Sell => leg.units.checked_sub(tax),
        Side::Buy => leg.units.checked_add(tax),
    }
}

/// The native coin that entered the exchange or was unwrapped after it, if calls are unknown.
fn coin_moved(scene: &Scene<'_>, side: Side, sold: &[&Leg]) -> Option<Units> {
    let amount = match side {
        Side::Sell => scene.tx.value,
        Side::Buy => {
            // A taxed token may sell its collected tax before the wallet gives the token.
            let logs = scene.tx.logs.as_slice();
            let gives = |log: &Log| {
                sold.iter().any(|leg| leg.token == log.address)
                    && transfer(log).is_some_and(|(from, _)| from == *scene.wallet)
            };
            let behind = logs.iter().rposition(gives).and_then(|at| logs.get(at + 1..));
            let unwraps = scene.ledger.unwraps_in(behind.unwrap_or(logs));
            unwraps.map(|(_, amount)| amount).fold(Units::ZERO, Units::saturating_add)
        }
    };
    Some(amount).filter(|amount| !amount.is_zero())
}

/// Whether most of the exchange's output went on to others, through a bridge, as a payment or as
/// liquidity, so that the wallet received only change.
pub(super) fn went_on(scene: &Scene<'_>, own: &Own, legs: &[Leg]) -> bool {
    if !scene.acts_alone() || scene.fills() || own.exchanged.len() != legs.len() {
        return false;
    }
    let mut bought = legs.iter().filter(|leg| leg.side == Side::Buy).peekable();
    let has_bought = bought.peek().is_some();
    let went = |asset: Asset, units: Units| away(scene, asset) > units;
    bought.all(|leg| went(Asset::Token(leg.token), leg.units))
        && match own.measure {
            Measure::None | Measure::Gave(_) | Measure::Unknown => has_bought,
            Measure::Got(units) => {
                // In another sender's call a router may pay coin to others, too.
                let is_known = scene.ledger.native_known && scene.tx.from == *scene.wallet;
                is_known && went(Asset::Native, units) && !others_sell(scene, legs)
            }
        }
}

/// Whether the wallet only transferred a token, to accounts that gave nothing. What it received
/// meanwhile, such as a dividend from the tax that the token's contract sold, is not the price.
pub(super) fn was_sent(scene: &Scene<'_>, leg: &Leg) -> bool {
    let calls_token = scene.tx.from == *scene.wallet && scene.tx.to == Some(leg.token);
    let sends = calls_token && scene.tx.selector == Some(TRANSFER_CALL);
    let moves = &scene.ledger.moves;
    let takes_part = |who: &Account| {
        *who == leg.token || moves.iter().any(|m| m.from == *who) || is_holder(scene, who)
    };
    let of_leg = |m: &&Move| m.from == *scene.wallet && m.asset == Asset::Token(leg.token);
    sends && leg.side == Side::Sell && !moves.iter().filter(of_leg).any(|m| takes_part(&m.to))
}

/// Whether a token's contract sold its collected fees meanwhile, or another account, as one does
/// that collects them, gave at least half as much of its own as the wallet: the router's payments
/// may be theirs. Less is dust that a route had kept.
fn others_sell(scene: &Scene<'_>, legs: &[Leg]) -> bool {
    legs.iter().any(|leg| {
        let mut flows: BTreeMap<Account, Flow> = BTreeMap::new();
        for m in scene.ledger.moves.iter().filter(|m| m.asset == Asset::Token(leg.token)) {
            flows.entry(m.from).or_default().add(m.amount, false);
            flows.entry(m.to).or_default().add(m.amount, true);
        }
        flows.retain(|who, _| ![ZERO, *scene.wallet].contains(who) && !is_holder(scene, who));
        let sells = |(who, flow): (&Account, &Flow)| {
            let own = flow.gave.saturating_sub(flow.got);
            own > leg.units / TWO || *who == leg.token && !flow.gave.is_zero()
        };
        flows.iter().any(sells)
    })
}

/// Whether an account holds what a venue exchanged.
fn is_holder(scene: &Scene<'_>, who: &Account) -> bool {
    scene.venues.iter().any(|venue| exchanges(venue.event.kind) && venue.holder == *who)
}

/// How much of an asset did not reach the wallet.
fn away(scene: &Scene<'_>, asset: Asset) -> Units {
    onward(scene, asset).max(laid_in(scene, asset))
}

/// How much of an asset, of native coin in each form, the accounts that paid the wallet laid into
/// pools, whose events state it as liquidity.
fn laid_in(scene: &Scene<'_>, asset: Asset) -> Units {
    let is_it =
        |m: &&Move| m.asset == asset || asset == Asset::Native && scene.ledger.is_measure(m.asset);
    let moves = || scene.ledger.moves.iter().filter(is_it);
    let pays = |who: &Account| moves().any(|m| m.from == *who && m.to == *scene.wallet);
    let laid = moves().filter(|m| is_liquidity(scene, m) && pays(&m.from));
    laid.fold(Units::ZERO, |sum, m| sum.saturating_add(m.amount))
}

/// Whether a pool's event states what it took as liquidity.
fn is_liquidity(scene: &Scene<'_>, m: &Move) -> bool {
    scene.venues.iter().any(|venue| {
        let is_its = venue.event.kind == EventKind::Liquidity && venue.log.address == m.to;
        is_its && words(venue.log).any(|word| units(word) == m.amount)
    })
}

/// Whether coin was laid into a pool of a token while the wallet bought that token, which is
/// launched here: a part of what its creator gave, next to the price.
pub(super) fn founds_pool(scene: &Scene<'_>, leg: &Leg) -> bool {
    let moves = || scene.ledger.moves.iter();
    let holds = |who: Account| moves().any(|m| m.asset == Asset::Token(leg.token) && m.to == who);
    let mut coin = moves().filter(|m| scene.ledger.is_measure(m.asset));
    is_launched(scene.ledger, leg) && coin.any(|m| is_liquidity(scene, m) && holds(m.to))
}

/// Whether a token that the wallet got moved for the first time by being minted.
pub(super) fn is_launched(ledger: &Ledger, leg: &Leg) -> bool {
    let first = ledger.moves.iter().find(|m| m.asset == Asset::Token(leg.token));
    leg.side == Side::Buy && first.is_some_and(|first| first.from == ZERO)
}

/// How much of an asset the accounts that paid the wallet gave to other accounts, without pools,
/// the asset's own contract, burns and tips.
fn onward(scene: &Scene<'_>, asset: Asset) -> Units {
    let takes_part = |who: &Account| {
        let itself = match asset {
            Asset::Token(token) => token == *who,
            Asset::Native => scene.ledger.wrapped == *who,
        };
        itself || *who == ZERO || is_holder(scene, who)
    };
    let of_asset = || scene.ledger.moves.iter().filter(|m| m.asset == asset);
    let pays = |who: &Account| of_asset().any(|m| m.from == *who && m.to == *scene.wallet);
    let is_tip = |m: &Move| m.asset == Asset::Native && tips::is_tipped(scene, &m.to);
    let away = of_asset().filter(|m| {
        m.to != *scene.wallet
            && !is_tip(m)
            && !takes_part(&m.from)
            && !takes_part(&m.to)
            && pays(&m.from)
    });
    away.fold(Units::ZERO, |sum, m| sum.saturating_add(m.amount))
}
