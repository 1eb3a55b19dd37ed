//! Infers native coin if the inner calls are unknown: only what a protocol guarantees.

use std::collections::BTreeSet;

use super::ledger::{Asset, Move, is_movement, transfer};
use super::own::{Leg, Measure, Own, TWO};
use super::pool_coin;
use super::scene::{Scene, Venue, exchanges};
use super::transaction::{Account, CoinRoute, CoinSale, CoinTo, Log, NativeFlows, Terms};
use super::words::{NATIVE_PLACEHOLDER, ZERO, absolute, address, units, word, words};
use crate::domain::Units;
use crate::registry::{ContractKind, EventKind, Partner, Payout};

/// `swapExactETHForTokens` and its variant for fee-on-transfer tokens, also under the names that
/// the routers of Avalanche, LFJ and Camelot give them. By their interface such a call spends
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

/// Words below this range are counters, indexes and times; above it addresses, hashes and text.
const COIN_MIN: Units = Units::from_limbs([1 << 32, 0, 0, 0]);
const COIN_LIMIT: Units = Units::from_limbs([0, 0, 1, 0]);

/// Flags in `ParaSwap`'s terms: the partner's fee is on the input, or shares a surplus.
const OF_WHAT_IS_GIVEN: usize = 15;
const OF_SURPLUS: usize = 16;
const SPLIT_SURPLUS: usize = 17;
const PARTS: Units = Units::from_limbs([10_000, 0, 0, 0]);
const PARTS_MASK: Units = Units::from_limbs([0x3fff, 0, 0, 0]);
/// The maximum partner fee, and the maximum at which the partner may share a surplus as well.
const PARTS_MAX: Units = Units::from_limbs([500, 0, 0, 0]);
const PARTS_WITH_SURPLUS: Units = Units::from_limbs([50, 0, 0, 0]);

/// Whether the wallet gave, and whether it received, native coin, as far as is known.
pub(super) fn sides(scene: &Scene<'_>, own: &Own) -> (bool, bool) {
    let came = scene.coin_from_caller();
    if let NativeFlows::Net { gained, lost } = scene.tx.native
        && !came.is_zero()
    {
        // A loss is the wallet's own, and so is a gain above the value that the call brought.
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
            // The value of the call may be all that was spent, and it was not the wallet's coin.
            let own_coin = scene.acts_inside() && came.is_zero();
            (own.got() && !own.gave() && own_coin && spent, false)
        }
    }
}

/// Whether the value of a call that only sells is a platform's fee or a tip: it is less than half
/// of what was unwrapped.
fn is_fee(scene: &Scene<'_>, own: &Own) -> bool {
    let sells = own.gave() && !own.got() && scene.tx.from == *scene.wallet;
    let only = own.known.gave == scene.tx.value && own.known.got.is_zero();
    sells && only && scene.tx.value < sum(&scene.ledger.unwraps, |_| true) / TWO
}

/// Whether the call pays its output, or its native coin, to other accounts, by its input or by the
/// called contract's own event.
fn pays_others(scene: &Scene<'_>) -> bool {
    let terms = scene.tx.terms;
    let by_input = terms.receiver.is_some_and(|receiver| receiver != *scene.wallet)
        || terms.coin == CoinTo::Others;
    // The receivers of another sender's call do not matter for the orders that it fills.
    scene.tx.from == *scene.wallet && (by_input || states_another(scene))
}

/// Whether the called router's events state a payment of native coin to another account and none to
/// the wallet. A receiver that is in the tables does not count, because it passes the coin on.
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

/// Whether native coin left the route without an account other than the wallet having taken it.
fn may_have_got(scene: &Scene<'_>) -> bool {
    if scene.venues.iter().any(|venue| is_sent_on(scene, venue)) {
        return false;
    }
    let unwrapped = !scene.ledger.unwraps.is_empty();
    if !scene.acts() {
        return scene.fills() && (unwrapped || is_taken_by_filler(scene));
    }
    if scene.calls_router() {
        return unwrapped || pool_coin::may_reach_account(scene, moves_one);
    }
    // A contract outside the tables that emits after the unwrap may have taken the coin.
    let is_unwrap = |log: &Log| scene.ledger.unwraps_by(log).is_some();
    let Some(after) = scene.tx.logs.iter().rposition(is_unwrap) else {
        // Nothing was unwrapped, so only a pool of unwrapped coin can have paid.
        return pool_coin::may_reach_account(scene, Venue::may_move_native);
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

/// Whether a bridge took what the call exchanged. If another account sent the transaction, only a
/// deposit in the wallet's name counts.
fn is_sent_on(scene: &Scene<'_>, venue: &Venue<'_>) -> bool {
    let by = venue.event.actor.and_then(|at| venue.account(at));
    venue.event.kind == EventKind::Bridge
        && (scene.tx.from == *scene.wallet || by.is_none_or(|by| by == *scene.wallet))
}

/// Whether a filler paid with its own coin: a settlement's event names the wallet and the account
/// that took all that the wallet gave, and neither this account nor the settlement gave another
/// token to a third one.
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

/// Whether an event states only fees: it has amounts of coin, each less than half of what was
/// unwrapped. An event without such amounts may be a bridge's.
fn is_of_less(log: &Log, unwrapped: Units) -> bool {
    let is_coin = |units: &Units| (COIN_MIN..COIN_LIMIT).contains(units);
    let mut amounts = words(log).map(|word| absolute(units(word))).filter(is_coin).peekable();
    amounts.peek().is_some() && amounts.all(|amount| amount < unwrapped / TWO)
}

/// Whether a pool may have moved native coin that was never wrapped: such pools log the movement of
/// only one of their two assets.
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

/// How much of the transaction's value was spent, if a refund without an event is ruled out.
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
    // A pool took exactly what was sent, so there was no refund.
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
        // A contract between pool and sender may keep the refund.
        let comes = |back: &Units| back.is_zero() || Some(pool.log.address) == scene.tx.to;
        let back = back.unwrap_or_default();
        return if comes(&back) { value.checked_sub(back) } else { None };
    }
    let by_called = |who: &Account| Some(*who) == scene.tx.to;
    let exact = scene.called.is_some_and(|called| called.is_exact(scene.tx.selector));
    match scene.tx.terms.coin {
        CoinTo::Others if exact => return Some(value),
        CoinTo::Shared => return None,
        CoinTo::Others | CoinTo::Unstated | CoinTo::Sender => {}
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
    // A fee that may belong to any of several payments cannot be assigned.
    let unplaced = |fee: &Venue<'_>| {
        kept(scene, fee).is_some() && scene.venues.iter().filter(|one| pays(one, fee)).count() != 1
    };
    if scene.venues.iter().any(|venue| unstated(venue) || unplaced(venue)) {
        return None;
    }
    // If an account exchanges several assets at once, others may pay it without an event.
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
            // Several orders of the wallet add up.
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

/// Deducts the fees (hundredths of a percent) one after the other.
fn without(amount: Units, parts: [Units; 2]) -> Option<Units> {
    let one = |rest: Units, part| rest.checked_sub(rest.checked_mul(part)? / PARTS);
    parts.into_iter().try_fold(amount, one)
}

/// The native coin of a Uniswap V4 sale that the called router's commands describe, as the last
/// pool's event states it. The pools must have no hooks, and no other pool may have given coin.
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

/// The coin, wrapped or not, that a router kept from the route according to this event.
fn kept(scene: &Scene<'_>, fee: &Venue<'_>) -> Option<Units> {
    let keeps = fee.event.keeps?;
    let token = fee.account(keeps.token?)?;
    let is_coin = [NATIVE_PLACEHOLDER, ZERO, scene.ledger.wrapped].contains(&token);
    words(fee.log).nth(keeps.amount).map(units).filter(|_| is_coin)
}

/// The coin that a router kept according to all of its events.
fn kept_by<'a>(
    fees: impl Iterator<Item = &'a Venue<'a>>,
    router: &Venue<'_>,
    scene: &Scene<'_>,
) -> Units {
    let own = fees.filter(|fee| fee.log.address == router.log.address);
    own.filter_map(|fee| kept(scene, fee)).fold(Units::ZERO, Units::saturating_add)
}

/// Whether the stated amount was native coin and reached the account that the event names.
fn is_paid(scene: &Scene<'_>, venue: &Venue<'_>, (pays, amount): (Payout, Units)) -> bool {
    // A pool that gives a token emits the same event.
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

/// The native coin that the wallet's token brought inside its call, less the called contract's fee.
/// It is complete only for contracts that are known to pay out everything.
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
    // Only for the chain's wrapped coin does an event state how much was unwrapped.
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

/// Whether an account other than the wallet gave a token and received none: what was unwrapped may
/// be its payment. A token's own contract is not counted here.
fn has_another_seller(scene: &Scene<'_>, leg: &Leg) -> bool {
    let tokens = || scene.ledger.moves.iter().filter(|m| m.asset != Asset::Native);
    let got: BTreeSet<Account> = tokens().map(|m| m.to).collect();
    let is_other = |who: &Account| ![ZERO, *scene.wallet, leg.token].contains(who);
    tokens().any(|m| is_other(&m.from) && !got.contains(&m.from))
}

/// The native coin that pools gave to a contract without wrapping it. `None` if a pool may have
/// given some without an event.
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

/// The events after the wallet's last transfer of the token. During that transfer a fee-on-transfer
/// token may sell its collected fees through the same routers. `None` if it may have done so later,
/// or if the wallet may have been paid before.
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

/// The native coin that an event states as paid to this account.
fn payout(venue: &Venue<'_>, pays: Payout, account: &Account) -> Option<Units> {
    paid_native(venue, pays).filter(|(to, _)| to == account).map(|(_, amount)| amount)
}

/// The account and the amount of a native coin payment that an event states.
fn paid_native(venue: &Venue<'_>, pays: Payout) -> Option<(Account, Units)> {
    if let Some(token) = pays.token {
        let token = venue.account(token)?;
        if token != NATIVE_PLACEHOLDER && token != ZERO {
            return None;
        }
    }
    let amount = words(venue.log).nth(pays.amount).map(units)?;
    let taken = venue.event.partner.map_or(Some(Units::ZERO), |by| taken(venue, by, amount))?;
    // A zero amount is no payment: the event may be a bridge's.
    let amount = amount.checked_sub(taken).filter(|paid| !paid.is_zero())?;
    Some((venue.account(pays.to)?, amount))
}

/// The partner's fee on an amount, by the terms in `ParaSwap`'s event: a version in the first byte,
/// flags, and hundredths of a percent in the last 14 bits. The versions share a surplus over the
/// expected amount differently, so its fee is known only above 0.5 %, which excludes any share.
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
