//! Values a token-for-token swap by the lamports that passed through its route.

use std::ops::Range;

use super::balances::{Asset, Flow, Ledger, Means};
use super::keys::AccountKey;
use super::scene::Scene;
use super::swaps::Net;
use super::{PLATFORM_FEE_PART_MIN, Swap, reported};

/// At most one part in this many: the lamports of a route that the wallet keeps or adds, by value,
/// and what venues exchanged of a token beyond what the wallet gave.
const REST_PART_MIN: i128 = 100;

/// A call of a venue, listed or not, or of a conversion such as unstaking, that exchanged one token
/// for lamports. The amounts are the largest movement of each, because the others are fees.
#[derive(Debug, Clone, Copy)]
struct Hop {
    mint: usize,
    tokens: u64,
    lamports: u64,
}

/// Divides a swap of several tokens into one for each, by the venues' calls in which the wallet's
/// accounts exchanged that token for lamports. Empty unless these add up to the whole swap.
pub(super) fn parts(
    scene: &Scene<'_>,
    ledger: &Ledger,
    swap: &Swap,
    wallet: &AccountKey,
) -> Vec<Swap> {
    let moved = |net: &Net| net.tokens.iter().filter(|(_, sum)| *sum != 0).count();
    let mine = || {
        let crosses = |flow: &&Flow| ledger.is_own(flow.from) != ledger.is_own(flow.to);
        let inside = |flow: &&Flow| swap.ranges.iter().any(|r| r.contains(&flow.instruction));
        ledger.flows.iter().filter(crosses).filter(inside)
    };
    let has_native = || swap.net.native != 0 || mine().any(|flow| flow.asset == Asset::Native);
    if moved(&swap.net) < 2 || swap.net.unvalued || !has_native() {
        return Vec::new();
    }
    let mut calls: Vec<usize> = Vec::new();
    for flow in mine() {
        let call = scene.leaf(flow.instruction).map(|(call, _)| call);
        calls.extend(call.filter(|call| !calls.contains(call)));
    }
    let (mut parts, mut all): (Vec<Swap>, Net) = (Vec::new(), Net::default());
    for call in calls {
        let range = scene.tx.subtree(call);
        let mut net = scene.net(ledger, &range);
        let ranges = vec![range];
        if !net.gains() {
            net.native += reported(scene, &ranges, wallet).unwrap_or(0);
        }
        let token = net.tokens.iter().find(|(_, sum)| *sum != 0);
        let Some(token) = token.filter(|_| net.is_swap() && moved(&net) == 1) else {
            return Vec::new();
        };
        let token = Asset::Token(token.0);
        all.merge(&net);
        match parts.iter_mut().find(|part| part.net.get(token) != 0) {
            Some(part) => {
                part.net.merge(&net);
                part.ranges.extend(ranges);
            }
            None => parts.push(Swap { ranges, net }),
        }
    }
    let lacks = |one: &Net, other: &Net| {
        one.assets().any(|(asset, sum)| other.get(asset) != sum || one.is_open(asset))
    };
    if lacks(&swap.net, &all) || lacks(&all, &swap.net) {
        parts.clear();
    }
    parts
}

/// The lamports for which the given token, or else the received one, was exchanged on the route.
///
/// A part of the token that took another path is valued at the same rate, unless it is the larger
/// part. `None` if the swap is not one token for one other, if neither was exchanged for lamports,
/// or if the wallet gave or received more lamports than dust.
pub(super) fn native_value(scene: &Scene<'_>, ledger: &Ledger, swap: &Swap) -> Option<i128> {
    let sides = sides(&swap.net)?;
    value(ledger, &swap.net, sides, &hops(scene, ledger, &swap.ranges))
}

/// The same for an order's fill, which the keeper may have routed anywhere in the transaction.
/// `None` if venues exchanged more than the order's tokens: the rest belongs to another order or
/// the keeper.
pub(super) fn value_of_fill(scene: &Scene<'_>, ledger: &Ledger, net: &Net) -> Option<i128> {
    let sides = sides(net)?;
    let hops = hops(scene, ledger, std::slice::from_ref(&scene.whole));
    let exceeds = |moved: &(usize, i128)| exceeds(&hops, *moved, REST_PART_MIN);
    if net.tokens.iter().any(exceeds) { None } else { value(ledger, net, sides, &hops) }
}

/// The given token and the received one; `None` if more tokens moved.
fn sides(net: &Net) -> Option<[(usize, i128); 2]> {
    let moved: Vec<(usize, i128)> =
        net.tokens.iter().copied().filter(|(_, sum)| *sum != 0).collect();
    let ([one, other], false) = (moved.as_slice(), net.unvalued) else { return None };
    if (one.1 < 0) == (other.1 < 0) {
        return None;
    }
    Some(if one.1 < 0 { [*one, *other] } else { [*other, *one] })
}

fn value(ledger: &Ledger, net: &Net, sides: [(usize, i128); 2], hops: &[Hop]) -> Option<i128> {
    let value = sides.into_iter().find_map(|side| by_token(ledger, hops, side))?;
    let rest = net.native.checked_abs()?.checked_mul(REST_PART_MIN)?;
    (rest <= value).then_some(value)
}

fn sum(hops: &[Hop], mint: usize, of: fn(&Hop) -> u64) -> u128 {
    hops.iter().filter(|hop| hop.mint == mint).map(|hop| u128::from(of(hop))).sum()
}

/// Whether the hops exchanged more of a token than the wallet moved, by over one in `part` parts.
fn exceeds(hops: &[Hop], (mint, units): (usize, i128), part: i128) -> bool {
    let units = units.unsigned_abs();
    sum(hops, mint, |hop| hop.tokens).saturating_sub(units) > units / part.unsigned_abs()
}

/// Values a swap by one token. `None` also if the hops exchanged more: it is one leg of a larger
/// route.
fn by_token(ledger: &Ledger, hops: &[Hop], (mint, units): (usize, i128)) -> Option<i128> {
    // A platform may take its fee from what is received; the mint may take any share of a transfer.
    let taxed = |flow: &Flow| {
        let comes = flow.asset == Asset::Token(mint) && ledger.is_own(flow.to);
        comes && flow.received < flow.amount
    };
    let is_taxed = units > 0 && ledger.flows.iter().any(taxed);
    let part = if units < 0 { REST_PART_MIN } else { PLATFORM_FEE_PART_MIN };
    let tokens = sum(hops, mint, |hop| hop.tokens);
    let lamports = sum(hops, mint, |hop| hop.lamports);
    let whole = units.unsigned_abs();
    let is_leg = !is_taxed && exceeds(hops, (mint, units), part);
    if lamports == 0 || tokens.checked_mul(2)? < whole || is_leg {
        return None;
    }
    // A venue's fee in the token, taken before it swaps, is part of the price.
    let value = if tokens >= whole { lamports } else { lamports.checked_mul(whole)? / tokens };
    i128::try_from(value).ok()
}

/// The calls of venues, listed or not, and of conversions that exchanged a single token for
/// lamports.
fn hops(scene: &Scene<'_>, ledger: &Ledger, ranges: &[Range<usize>]) -> Vec<Hop> {
    let mut calls: Vec<(usize, bool, Vec<&Flow>)> = Vec::new();
    let inside = |flow: &&Flow| {
        let is_within = ranges.iter().any(|range| range.contains(&flow.instruction));
        is_within && !scene.moves_liquidity(flow.instruction)
    };
    for flow in ledger.flows.iter().filter(inside) {
        let venue = scene.leaf(flow.instruction).map(|(call, _)| call);
        let converts = venue.is_none();
        let counts = match flow.means {
            Means::Transfer => true,
            // A plain payment by a conversion may be an account's rent.
            Means::Pay => !converts,
            Means::Mint | Means::Burn => converts,
            Means::Create | Means::Close { .. } => false,
        };
        if !counts {
            continue;
        }
        let call = venue
            .or_else(|| scene.conversion(flow.instruction))
            .or_else(|| scene.unlisted(flow.instruction));
        let Some(call) = call else { continue };
        match calls.iter_mut().find(|(known, ..)| *known == call) {
            Some((_, _, flows)) => flows.push(flow),
            None => calls.push((call, converts, vec![flow])),
        }
    }
    calls.iter().filter_map(|(_, converts, flows)| hop(flows, *converts)).collect()
}

fn hop(flows: &[&Flow], converts: bool) -> Option<Hop> {
    let mut tokens = flows.iter().filter_map(|flow| match flow.asset {
        // If a conversion takes a fee, it burns less than it was given.
        Asset::Token(mint) if converts => Some((mint, given_with(flows, flow))),
        Asset::Token(mint) => Some((mint, flow.amount)),
        Asset::Native => None,
    });
    let (mint, mut most) = tokens.next()?;
    for (other, amount) in tokens {
        if other != mint {
            return None;
        }
        most = most.max(amount);
    }
    let lamports = flows.iter().filter(|flow| flow.asset == Asset::Native);
    let lamports = lamports.map(|flow| flow.amount).max()?;
    Some(Hop { mint, tokens: most, lamports })
}

/// The total that the flow's sender gave, or for a mint the total that its receiver got: Marinade
/// pays a deposit partly from its pool and mints the rest.
fn given_with(flows: &[&Flow], flow: &Flow) -> u64 {
    let same = |other: &&&Flow| {
        let end = if flow.from.is_some() { other.from == flow.from } else { other.to == flow.to };
        other.asset == flow.asset && end
    };
    flows.iter().filter(same).fold(0, |sum, other| sum.saturating_add(other.amount))
}
