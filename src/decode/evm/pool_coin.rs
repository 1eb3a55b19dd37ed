//! Finds native coin that pools paid out unwrapped, if inner calls are unknown. Coin that was
//! wrapped afterwards or went into another pool has reached no account.

use std::collections::BTreeSet;

use super::ledger::{Asset, Move};
use super::own::TWO;
use super::scene::{Scene, Venue, exchanges};
use super::transaction::Account;
use super::words::{absolute, units, words};
use crate::domain::Units;
use crate::registry::EventKind;

/// Limit of pools and movements to compare: no route has as many, but a contract may log thousands.
const COUNT_MAX: usize = 256;
/// A hook is assumed to take or add less than one eighth of the amount that its pool states.
const HOOK_PART: Units = Units::from_limbs([8, 0, 0, 0]);

/// An amount that a pool paid out or took in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Side {
    is_given: bool,
    amount: Units,
}

/// Whether an account may have received native coin from these pools.
pub(super) fn may_reach_account<'a>(
    scene: &Scene<'a>,
    may_give: impl Fn(&Venue<'a>) -> bool,
) -> bool {
    let gives = |venue: &&Venue<'a>| exchanges(venue.event.kind) && may_give(venue);
    let mut wraps: Vec<(Account, Units)> = scene.ledger.wraps.clone();
    wraps.truncate(COUNT_MAX);
    let (mut open, mut holders) = (Vec::new(), BTreeSet::new());
    for (at, venue) in scene.venues.iter().filter(gives).enumerate() {
        if let Some(sides) = sides(venue) {
            open.extend(sides);
            holders.insert(venue.holder);
        } else if !is_wrapped(venue, &mut wraps) {
            return true;
        }
        if at >= COUNT_MAX {
            return true;
        }
    }
    drop_tokens(&mut open, &scene.ledger.moves, &holders);
    open.retain(|side| {
        let same = |(_, amount): &(Account, Units)| side.is_given && *amount == side.amount;
        wraps.iter().position(same).map(|at| wraps.swap_remove(at)).is_none()
    });
    let sum = |is_given: bool| {
        let sides = open.iter().filter(|side| side.is_given == is_given);
        sides.fold(Units::ZERO, |sum, side| sum.saturating_add(side.amount))
    };
    let wrapped = wraps.iter().fold(Units::ZERO, |sum, (_, amount)| sum.saturating_add(*amount));
    let (given, taken) = (sum(true), sum(false));
    !open.is_empty() && given != taken && given != taken.saturating_add(wrapped)
}

/// Both sides of a pool's event that states signed amounts.
fn sides(venue: &Venue<'_>) -> Option<[Side; 2]> {
    let side = |at: usize| {
        let stated = words(venue.log).nth(at).map(units)?;
        Some(Side { is_given: !stated.bit(255), amount: absolute(stated) })
    };
    let [one, other] = venue.event.deltas?;
    let sides = [side(one)?, side(other)?];
    (sides[0].is_given != sides[1].is_given).then_some(sides)
}

/// Whether another account wrapped an amount that this pool states. Launchpads are excluded,
/// because they also state fees, which are wrapped separately. Words of 0 and 1 may be indexes or
/// flags.
fn is_wrapped(venue: &Venue<'_>, wraps: &mut Vec<(Account, Units)>) -> bool {
    let states = |amount: Units| words(venue.log).any(|word| absolute(units(word)) == amount);
    let of_it = |(who, amount): &(Account, Units)| {
        *who != venue.holder && *amount >= TWO && states(*amount)
    };
    venue.event.kind == EventKind::Pool
        && wraps.iter().position(of_it).map(|at| wraps.swap_remove(at)).is_some()
}

/// Removes the sides that equal a token movement, then pairs of sides between two of the pools,
/// then sides that a token movement nearly equals because a hook kept the difference.
fn drop_tokens(open: &mut Vec<Side>, moves: &[Move], holders: &BTreeSet<Account>) {
    let of_token = |m: &&Move| m.asset != Asset::Native;
    let side = |m: &Move| {
        let is_given = holders.contains(&m.from);
        (is_given || holders.contains(&m.to)).then_some(Side { is_given, amount: m.amount })
    };
    let mut moved: Vec<Side> =
        moves.iter().filter(of_token).filter_map(side).take(COUNT_MAX).collect();
    moved.retain(|side| !drop_one(open, |other| other == side));
    let mut left: Vec<Side> = Vec::new();
    for side in open.drain(..) {
        let is_back = |other: &Side| *other == Side { is_given: !side.is_given, ..side };
        if !drop_one(&mut left, is_back) {
            left.push(side);
        }
    }
    for Side { is_given, amount } in moved {
        let is_near = |other: &Side| {
            let apart = other.amount.abs_diff(amount);
            other.is_given == is_given && apart < other.amount / HOOK_PART
        };
        drop_one(&mut left, is_near);
    }
    *open = left;
}

fn drop_one(sides: &mut Vec<Side>, fits: impl Fn(&Side) -> bool) -> bool {
    sides.iter().position(fits).map(|at| sides.swap_remove(at)).is_some()
}
