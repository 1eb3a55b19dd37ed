//! Native coin where the inner calls are unknown: only what a protocol guarantees.

use std::collections::BTreeSet;

use super::ledger::{Asset, Move, is_movement, transfer};
use super::own::{Leg, Measure, Own, TWO};
use super::pool_coin;
use super::scene::{Scene, Venue, exchanges};
use super::transaction::{Account, CoinRoute, CoinSale, CoinTo, Log, NativeFlows, Terms};
use super::words::{NATIVE_PLACEHOLDER, ZERO, absolute, address, units, word, words};
use crate::domain::Units;
use crate::registry::{ContractKind, EventKind, Partner, Payout};

/// `swapExactETHForTokens` and its variant for fee-on-transfer tokens, the same under the names
/// that Avalanche's, LFJ's and Camelot's routers give them: by their interface such a call spends
/// exactly the coin that it receives, in any contract.
const EXACT_COIN_IN: [[u8; 4]; 7] = [
    [0x7f, 0xf3, 0x6a, 0xb5],
    [0xb6, 0xf9, 0xde, 0x95],
    [0xa2, 0xa1, 0x62, 0x3d],
    [0xc5, 0x75, 0x59, 0xdd],
    [0xb0, 0x66, 0xea, 0x7c],
    [0xe0, 0x38, 0xe6, 0xdc],
    [0xb4, 0x82, 0x2b, 0xe3],
];

/// Smaller numbers in events are counters, places and times, and larger ones addresses, hashes and text.
const COIN_MIN: Units = Units::from_limbs([1 << 32, 0, 0, 0]);
const COIN_LIMIT: Units = Units::from_limbs([0, 0, 1, 0]);

/// Flags of `ParaSwap`'s terms: the partner's fee is of what was given, or it shares a surplus.
const OF_WHAT_IS_GIVEN: usize = 15;
const OF_SURPLUS: usize = 16;
const SPLIT_SURPLUS: usize = 17;
const PARTS: Units = Units::from_limbs([10_000, 0, 0, 0]);
const PARTS_MASK: Units = Units::from_limbs([0x3fff, 0, 0, 0]);
/// The most that the contract lets a partner take, and up to which it may share a surplus too.
const PARTS_MAX: Units = Units::from_limbs([500, 0, 0, 0]);
const PARTS_WITH_SURPLUS: Units = Units::from_limbs([50, 0, 0, 0]);

/// Whether the wallet gave, and whether it received, native coin, as far as that is known.
pub(super) fn sides(scene: &Scene<'_>, own: &Own) -> (bool, bool) {
    let came = scene.came_along();
    if let NativeFlows::Net { gained, lost } = scene.tx.native
        && !came.is_zero()
    {
        // A loss is the wallet's own, and so is a gain above what came along.
        match (own.gave(), own.got()) {
            (false, true) if !lost.is_zero() => return (true, false),
            (true, false) if gained > came => return (false, true),
            (true | false, true | false) => {}
        }
    }
    let measure = match Measure::from(own.known) {
        Measure::None | Measure::Unknown => value(scene, own),
        Measure::Gave(_) if is_fee(scene, own) => Measure::Unknown,
        known @ (Measure::Gave(_) | Measure::Got(_)) => known,
    };
    match measure {
        Measure::Gave(_) => (true, false),
        Measure::Got(_) => (false, true),
        Measure::None | Measure::Unknown if own.gave() && !own.got() => {
            (false, !pays_others(scene) && may_have_got(scene))
        }
        Measure::None | Measure::Unknown => {
            let mut pools = scene.venues.iter().filter(|venue| exchanges(venue.event.kind));
            let spent = !scene.ledger.wraps.is_empty() || pools.any(moves_one);
            // What came along may be all that was spent, and was not the wallet's.
            let own_coin = scene.acts_inside() && came.is_zero();
            (own.got() && !own.gave() && own_coin && spent, false)
        }
    }
}

/// Whether a call that only sells has coin with it that is less than half of what was unwrapped: a fee
/// of a platform, or a tip.
fn is_fee(scene: &Scene<'_>, own: &Own) -> bool {
    let sells = own.gave() && !own.got() && scene.tx.from == *scene.wallet;
    let only = own.known.gave == scene.tx.value && own.known.got.is_zero();
    sells && only && scene.tx.value < sum(&scene.ledger.unwraps, |_| true) / TWO
}

/// Whether the call gives its output, or its native coin, to others than the wallet: by its input, or by
/// the called contract's own event.
fn pays_others(scene: &Scene<'_>) -> bool {
    let terms = scene.tx.terms;
    let by_input = terms.receiver.is_some_and(|receiver| receiver != *scene.wallet)
        || terms.coin == CoinTo::Others;
    // Whom another sender's call pays says nothing about orders that it fills.
    scene.tx.from == *scene.wallet && (by_input || states_another(scene))
}

/// Whether the called router states that it paid native coin to another account, and to the wallet
/// none. A contract of the tables passes on what it is paid.
fn states_another(scene: &Scene<'_>) -> bool {
    let by_called = |venue: &&Venue<'_>| {
        venue.event.kind == EventKind::Router && Some(venue.log.address) == scene.tx.to
    };
    let mut another = false;
    for venue in scene.venues.iter().filter(by_called) {
        let pays = venue.event.pays.filter(|pays| !pays.caller);
        let Some((to, _)) = pays.and_then(|pays| paid_native(venue, pays)) else { continue };
        if to == *scene.wallet {
            return false;
        }
        another |= Some(to) != scene.tx.to && scene.contract(&to).is_none();
    }
    another
}

/// Whether native coin left the route and no other account took it.
fn may_have_got(scene: &Scene<'_>) -> bool {
    if scene.venues.iter().any(|venue| is_sent_on(scene, venue)) {
        return false;
    }
    let unwrapped = !scene.ledger.unwraps.is_empty();
    if !scene.acts() {
        return scene.fills() && (unwrapped || is_taken_by_filler(scene));
    }
    if scene.calls_router() {
        return unwrapped || pool_coin::is_left(scene, moves_one);
    }
    // Of a contract outside the tables: an emitter after the unwrap may have taken the coin.
    let is_unwrap = |log: &Log| scene.ledger.unwraps_by(log).is_some();
    let Some(after) = scene.tx.logs.iter().rposition(is_unwrap) else {
        // Nothing was unwrapped: a pool of unwrapped coin paid.
        return pool_coin::is_left(scene, Venue::may_move_native);
    };
    let (logs, behind) = scene.tx.logs.split_at(after + 1);
    let unwrapped = logs.last().and_then(|log| word(log, 0)).map(units).unwrap_or_default();
    behind.iter().all(|log| {
        Some(log.address) == scene.tx.to
            || is_movement(log)
            || scene.contract(&log.address).is_some()
            || scene.venues.iter().any(|venue| std::ptr::eq(venue.log, log))
            || is_of_less(log, unwrapped)
    })
}

/// Whether a bridge took what the call exchanged. In a bundle another account's deposit says nothing about
/// the wallet.
fn is_sent_on(scene: &Scene<'_>, venue: &Venue<'_>) -> bool {
    let by = venue.event.actor.and_then(|at| venue.account(at));
    venue.event.kind == EventKind::Bridge
        && (scene.tx.from == *scene.wallet || by.is_none_or(|by| by == *scene.wallet))
}

/// Whether a settlement's event names the wallet and the account that took all that the wallet gave, and
/// neither that account nor the settlement gave another token to a third one: it paid with coin of its
/// own.
fn is_taken_by_filler(scene: &Scene<'_>) -> bool {
    let tokens = || scene.ledger.moves.iter().filter(|m| m.asset != Asset::Native);
    let mut given = tokens().filter(|m| m.from == *scene.wallet);
    let Some(Move { asset, to: filler, .. }) = given.next() else { return false };
    let is_alone = given.all(|m| m.asset == *asset && m.to == *filler);
    let is_theirs =
        |settlement: &Account, who: &Account| [scene.wallet, filler, settlement].contains(&who);
    let pays_third = |settlement: &Account| {
        let gives = |who: &Account| who == filler || who == settlement;
        tokens().any(|m| m.asset != *asset && gives(&m.from) && !is_theirs(settlement, &m.to))
    };
    let names = |log: &Log, who: &Account| words(log).filter_map(address).any(|one| one == *who);
    let settled = |venue: &Venue<'_>| {
        venue.event.kind == EventKind::Fill
            && venue.contract.is_some_and(|known| known.kind == ContractKind::Settlement)
    };
    is_alone
        && scene.venues.iter().filter(|venue| settled(venue)).any(|venue| {
            names(venue.log, scene.wallet)
                && names(venue.log, filler)
                && !pays_third(&venue.log.address)
        })
}

/// Whether an event states amounts of coin, and each is less than half of what was unwrapped: a fee.
/// One that states none may be a bridge's.
fn is_of_less(log: &Log, unwrapped: Units) -> bool {
    let is_coin = |units: &Units| (COIN_MIN..COIN_LIMIT).contains(units);
    let mut amounts = words(log).map(|word| absolute(units(word))).filter(is_coin).peekable();
    amounts.peek().is_some() && amounts.all(|amount| amount < unwrapped / TWO)
}

/// Whether a pool may have moved native coin that was never wrapped: such pools log the movement of
/// one of their two assets only.
fn moves_one(venue: &Venue<'_>) -> bool {
    venue.assets.len() < 2 || venue.may_move_native()
}

/// The native value of a trade against native coin alone, where the wallet's balance is unknown.
pub(super) fn value(scene: &Scene<'_>, own: &Own) -> Measure {
    let sends = scene.tx.from == *scene.wallet;
    if own.got() && !own.gave() {
        if scene.acts_inside() && Measure::from(own.known) == Measure::None {
            return Measure::Unknown;
        }
        if scene.tx.value.is_zero() || !sends {
            return own.known.into();
        }
        let wrapped = own.known.gave.saturating_sub(scene.tx.value);
        if !wrapped.is_zero() || !own.known.got.is_zero() {
            return Measure::Unknown;
        }
        return spent(scene).map_or(Measure::Unknown, Measure::Gave);
    }
    if own.gave() && !own.got() && scene.tx.value.is_zero() {
        let known = Measure::from(own.known);
        let paid = paid(scene, own);
        return match (known, paid) {
            (Measure::None, Some(units)) => Measure::Got(units),
            (known @ Measure::Got(_), None) => known,
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

/// How much of the transaction's value was spent, where no refund can be invisible.
fn spent(scene: &Scene<'_>) -> Option<Units> {
    let value = scene.tx.value;
    let (wrapped, unwrapped) =
        (sum(&scene.ledger.wraps, |_| true), sum(&scene.ledger.unwraps, |_| true));
    if scene.called.is_some_and(|called| called.spends_whole) {
        return Some(value);
    }
    if wrapped == value && unwrapped.is_zero() {
        return Some(value);
    }
    // A pool took exactly what was sent: there was no refund.
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
    let whole = |venue: &Venue<'_>| {
        let only = &venue.event.amounts;
        let mut amounts =
            words(venue.log).enumerate().filter(|(at, _)| only.is_empty() || only.contains(at));
        let kept = kept_by(scene.venues.iter(), venue, scene);
        let entered = |stated: Units| stated == value || value.checked_sub(kept) == Some(stated);
        amounts.any(|(_, word)| entered(units(word)) || units(word) == value.wrapping_neg())
    };
    if let Some(pool) = pools().find(|venue| unwrapped.is_zero() && whole(venue)) {
        let back = pool.event.refunds.and_then(|at| words(pool.log).nth(at)).map(units);
        // A contract in between may keep it.
        let comes = |back: &Units| back.is_zero() || Some(pool.log.address) == scene.tx.to;
        let back = back.unwrap_or_default();
        return if comes(&back) { value.checked_sub(back) } else { None };
    }
    let by_called = |who: &Account| Some(*who) == scene.tx.to;
    let exact = scene.called.is_some_and(|called| called.is_exact(scene.tx.selector));
    match scene.tx.terms.coin {
        CoinTo::Others if exact => return Some(value),
        CoinTo::Shared => return None,
        CoinTo::Others | CoinTo::Unsaid | CoinTo::Sender => {}
    }
    let only = sum(&scene.ledger.wraps, by_called) == wrapped
        && sum(&scene.ledger.unwraps, by_called) == unwrapped
        && !wrapped.is_zero()
        && !pools().any(Venue::may_move_native);
    if exact && only && wrapped <= value { wrapped.checked_sub(unwrapped) } else { None }
}

/// How much native coin the wallet was paid for what it gave.
fn paid(scene: &Scene<'_>, own: &Own) -> Option<Units> {
    let mut sum_paid: Option<Units> = None;
    let unstated = |venue: &Venue<'_>| {
        let event = venue.event;
        event.kind == EventKind::Fee && event.charges.is_none() && event.keeps.is_none()
    };
    let pays = |venue: &&Venue<'_>, fee: &Venue<'_>| {
        venue.event.pays.is_some() && venue.log.address == fee.log.address
    };
    // Of which of several payments it was kept is unknown.
    let unplaced = |fee: &Venue<'_>| {
        kept(scene, fee).is_some() && scene.venues.iter().filter(|one| pays(one, fee)).count() != 1
    };
    if scene.venues.iter().any(|venue| unstated(venue) || unplaced(venue)) {
        return None;
    }
    // An account with several exchanges at once may be paid by others invisibly.
    let single = own.exchanged.len() == 1 && !scene.acts_inside();
    for (at, venue) in scene.venues.iter().enumerate() {
        let Some(pays) = venue.event.pays else { continue };
        if !single && venue.event.kind != EventKind::CowTrade {
            continue;
        }
        let Some(amount) = payout(venue, pays, scene.wallet) else { continue };
        if !is_paid(scene, venue, (pays, amount)) {
            continue;
        }
        let amount = amount.checked_sub(kept_by(scene.venues.iter().skip(at + 1), venue, scene))?;
        sum_paid = match (sum_paid, venue.event.kind) {
            (None, _) => Some(amount),
            // Orders add up.
            (Some(sum), EventKind::CowTrade) => sum.checked_add(amount),
            // An outer router repeats the same payment.
            (Some(same), _) if same == amount => Some(same),
            (Some(_), _) => return None,
        };
    }
    if sum_paid.is_some() {
        return sum_paid;
    }
    let sends = scene.tx.from == *scene.wallet;
    if !sends || pays_others(scene) || scene.venues.iter().any(|fee| kept(scene, fee).is_some()) {
        return None;
    }
    let sale = scene.tx.terms.sale;
    match (sale.and_then(|sale| Some((sale.route?, sale.parts))), own.exchanged.as_slice()) {
        (Some(routed), [_]) => by_events(scene, routed),
        (Some(_) | None, _) => through(scene, own),
    }
}

/// An amount without hundredths of a percent of it, one after the other.
fn without(amount: Units, parts: [Units; 2]) -> Option<Units> {
    let one = |rest: Units, part| rest.checked_sub(rest.checked_mul(part)? / PARTS);
    parts.into_iter().try_fold(amount, one)
}

/// Native coin of a sale in Uniswap V4 that the called router's commands name, as its last pool's
/// event states it: its pools have no hooks, and no other pool gave coin.
fn by_events(scene: &Scene<'_>, (route, parts): (CoinRoute, [Units; 2])) -> Option<Units> {
    let may_give = |venue: &&Venue<'_>| exchanges(venue.event.kind) && venue.may_move_native();
    let pools: Vec<&Venue<'_>> = scene.venues.iter().filter(may_give).collect();
    let is_routed = |venue: &&Venue<'_>| {
        let vault = venue.contract.is_some_and(|known| known.kind == ContractKind::Vault);
        vault && venue.account(1) == scene.tx.to
    };
    let last = pools.last().filter(|last| words(last.log).next() == Some(&route.pool))?;
    let [coin, _] = last.event.deltas?;
    let given = words(last.log).nth(coin).map(units).filter(|given| !given.bit(255))?;
    let exact = scene.called?.is_exact(scene.tx.selector);
    let is_whole = exact && pools.len() == route.hops && pools.iter().all(is_routed);
    without(given, parts).filter(|paid| is_whole && !paid.is_zero())
}

/// Coin, wrapped or not, that an event says a router kept of the route.
fn kept(scene: &Scene<'_>, fee: &Venue<'_>) -> Option<Units> {
    let keeps = fee.event.keeps?;
    let token = fee.account(keeps.token?)?;
    let is_coin = [NATIVE_PLACEHOLDER, ZERO, scene.ledger.wrapped].contains(&token);
    words(fee.log).nth(keeps.amount).map(units).filter(|_| is_coin)
}

/// Coin that events of a router say it kept.
fn kept_by<'a>(
    fees: impl Iterator<Item = &'a Venue<'a>>,
    router: &Venue<'_>,
    scene: &Scene<'_>,
) -> Units {
    let own = fees.filter(|fee| fee.log.address == router.log.address);
    own.filter_map(|fee| kept(scene, fee)).fold(Units::ZERO, Units::saturating_add)
}

/// Whether what an event states was native coin, and came to the account that it names.
fn is_paid(scene: &Scene<'_>, venue: &Venue<'_>, (pays, amount): (Payout, Units)) -> bool {
    // A pool states the same of a token that it gives.
    let unwrapped = || scene.ledger.unwraps.contains(&(venue.holder, amount));
    let of_any = pays.token.is_none() && venue.event.kind == EventKind::Pool;
    if of_any && !venue.may_move_native() && !unwrapped() {
        return false;
    }
    let called = Some(venue.log.address) == scene.tx.to;
    let sends = scene.tx.from == *scene.wallet;
    let to_caller = called && sends && scene.tx.terms.coin == CoinTo::Sender;
    (to_caller || !pays.caller) && !(called && pays_others(scene))
}

/// Native coin from the wallet's token below its call, less the fee of the called contract:
/// complete where that contract is known to pay out everything.
fn through(scene: &Scene<'_>, own: &Own) -> Option<Units> {
    let (to, called) = (scene.tx.to?, scene.called?);
    let exact = called.is_exact(scene.tx.selector);
    let Terms { coin, sale, .. } = scene.tx.terms;
    let sale = sale.filter(|sale| sale.route.is_none());
    let settler = sale.and_then(|sale| sale.by);
    let settles = settler.is_some() && called.kind == ContractKind::Exchange;
    let is_known = exact || called.pays_whole || settles;
    if !is_known || sale.is_none() && coin == CoinTo::Shared {
        return None;
    }
    let (sale, holder) = (sale.unwrap_or_default(), settler.unwrap_or(to));
    // Only of the chain's wrapped coin is it known how much is unwrapped.
    if sale.unwraps.is_some_and(|token| token != scene.ledger.wrapped) {
        return None;
    }
    let loose = loose(scene, &holder)?;
    let [leg] = own.exchanged.as_slice() else {
        let [(unwrapper, all)] = scene.ledger.unwraps.as_slice() else { return None };
        let only = exact && *unwrapper == to && loose.is_zero() && sale == CoinSale::default();
        return (only && !all.is_zero()).then_some(*all);
    };
    let behind = after_giving(scene, leg)?;
    let is_all = called.pays_whole && !has_another_seller(scene, leg);
    let mut sum = loose;
    for (who, amount) in scene.ledger.unwraps_in(behind) {
        if who != holder && !is_all {
            return None;
        }
        sum = sum.checked_add(amount)?;
    }
    let kept = if called.charges { scene.tx.terms.charged? } else { Units::ZERO };
    if sale.most.is_some_and(|most| sum > most) {
        return None;
    }
    without(sum.checked_sub(kept)?, sale.parts).filter(|paid| !paid.is_zero())
}

/// Whether an account next to the wallet gave a token and got none: what was unwrapped may have
/// been paid for that one. A token's own contract is not asked here.
fn has_another_seller(scene: &Scene<'_>, leg: &Leg) -> bool {
    let tokens = || scene.ledger.moves.iter().filter(|m| m.asset != Asset::Native);
    let got: BTreeSet<Account> = tokens().map(|m| m.to).collect();
    let is_other = |who: &Account| ![ZERO, *scene.wallet, leg.token].contains(who);
    tokens().any(|m| is_other(&m.from) && !got.contains(&m.from))
}

/// Native coin that pools gave to a contract without wrapping it; `None` where one may have given
/// some without an event.
fn loose(scene: &Scene<'_>, to: &Account) -> Option<Units> {
    let wrapped = Asset::Token(scene.ledger.wrapped);
    let gave = |m: &Move, venue: &Venue<'_>| m.from == venue.holder && m.asset == wrapped;
    let mut venues = scene.venues.iter().filter(|venue| {
        venue.may_move_native() && !scene.ledger.moves.iter().any(|m| gave(m, venue))
    });
    venues.try_fold(Units::ZERO, |sum, venue| {
        sum.checked_add(payout(venue, venue.event.pays.filter(|pays| pays.token.is_some())?, to)?)
    })
}

/// The events after the wallet gave the last of a token. A fee-on-transfer token sells its
/// collected fees through the same routers during the wallet's transfer: the result is empty where
/// it could have done so later, or where the wallet was paid before.
fn after_giving<'a>(scene: &'a Scene<'_>, leg: &Leg) -> Option<&'a [Log]> {
    let logs = scene.tx.logs.as_slice();
    let gives = |log: &Log, who: &Account| {
        log.address == leg.token && transfer(log).is_some_and(|(from, _)| from == *who)
    };
    let last = logs.iter().rposition(|log| gives(log, scene.wallet))?;
    let (before, after) = (logs.get(..last)?, logs.get(last + 1..)?);
    let sold = |logs: &[Log]| logs.iter().any(|log| gives(log, &leg.token));
    let paid_before = scene.ledger.unwraps_in(before).next().is_some() && !sold(before);
    (!sold(after) && !paid_before).then_some(after)
}

/// The native coin that an event says was paid to an account.
fn payout(venue: &Venue<'_>, pays: Payout, account: &Account) -> Option<Units> {
    paid_native(venue, pays).filter(|(to, _)| to == account).map(|(_, amount)| amount)
}

/// The account that an event says was paid native coin, and how much.
fn paid_native(venue: &Venue<'_>, pays: Payout) -> Option<(Account, Units)> {
    if let Some(token) = pays.token {
        let token = venue.account(token)?;
        if token != NATIVE_PLACEHOLDER && token != ZERO {
            return None;
        }
    }
    let amount = words(venue.log).nth(pays.amount).map(units)?;
    let taken = venue.event.partner.map_or(Some(Units::ZERO), |by| taken(venue, by, amount))?;
    // An event of an exchange may also stand for a bridge's, which paid nothing here.
    let amount = amount.checked_sub(taken).filter(|paid| !paid.is_zero())?;
    Some((venue.account(pays.to)?, amount))
}

/// What a partner took of an amount, by the terms that an event of `ParaSwap` states: a version in
/// the first byte, hundredths of a percent in the last 14 bits, and flags. Of a surplus over what
/// was expected its versions took different shares, so that it is known only where a fee of more
/// than 0.5 % takes the place of any share.
fn taken(venue: &Venue<'_>, by: Partner, amount: Units) -> Option<Units> {
    let stated = |at| words(venue.log).nth(at).map(units);
    let terms = stated(by.terms)?;
    let is_old = terms.byte(31) == 0;
    let none = venue.account(by.account)? == ZERO
        || !is_old && (terms.bit(OF_WHAT_IS_GIVEN) || terms.bit(OF_SURPLUS));
    if !none && !is_old && terms.bit(SPLIT_SURPLUS) {
        return None;
    }
    let parts = if none {
        Units::ZERO
    } else if is_old {
        terms
    } else {
        terms & PARTS_MASK
    };
    let surplus = match by.expected {
        Some(expected) => amount > stated(expected)?,
        None => false,
    };
    if parts > PARTS_MAX || surplus && parts <= PARTS_WITH_SURPLUS {
        return None;
    }
    Some(amount.checked_mul(parts)? / PARTS)
}
