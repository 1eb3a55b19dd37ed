//! Solana: decodes a `getTransaction` reply to trades.
//!
//! In this order:
//!
//! 1. A failed transaction has no trade; one in which no program of the tables trades has what
//!    [`shape`] finds.
//! 2. [`balances`] finds the wallet's own accounts and lists every movement of lamports and tokens.
//!    Loose and wrapped SOL, and the rent of own accounts, are one asset.
//! 3. Each outer instruction with all of its calls is a group; so is each that a smart account
//!    executes. In groups that run a venue, the movements between the wallet and others are netted
//!    per asset ([`swaps`]). Not counted: rent of others' accounts, relay tips, lamports that a
//!    router sends elsewhere (a bot's router: wrapped SOL too), what other signers take or give
//!    apart from the swap ([`signers`]), and the supply that a creator hands to a curve to launch a
//!    token. Fees inside a venue count.
//! 4. A group that gave one asset and received another is a swap, unless a pool's shares were
//!    minted or burnt, liquidity moved, or most of the proceeds were sent on to another account. A
//!    conversion that reverses what swaps exchanged cancels them. Groups that are not a swap by
//!    themselves are merged if they belong to one order book, which takes and settles in two calls,
//!    or to one router that takes in one call and swaps in the next.
//! 5. Lamports that a program gave without an instruction (a curve's price) are assigned to the
//!    group whose calls were given the paying accounts. If the wallet is a curve's own account, what
//!    it paid so is assigned to the groups in which it got tokens.
//! 6. For fills of the wallet's orders by keepers ([`orders`]), what the order's account lost counts.
//! 7. A platform's fee in a traded token outside the swap is added to it.
//! 8. What a take gave from [`free_funds`] at the exchange is added, or marked as unknown.
//! 9. [`rows`] nets the swaps per token and names the venue. One of several tokens counts as one of
//!    each if the calls of the venues that exchanged them add up to it ([`route`]).

mod action;
mod balances;
mod base58;
mod call_log;
mod consistency;
mod events;
mod explain;
mod frames;
mod free_funds;
mod keys;

mod orders;
mod raw;
mod raw_error;
mod route;
mod rows;
mod scene;
mod shape;
mod signers;
mod swaps;
mod transaction;
mod wire;

pub use explain::explain;
pub use raw::parse;
pub use raw_error::RawError;
pub use transaction::{OWNERS_FROM, Transaction};

use std::ops::Range;

use balances::{Asset, Flow, Ledger, Means};
use base58::address;
use events::CurveSale;
use keys::AccountKey;
use rows::RowSums;
use scene::Scene;
use swaps::Net;

use super::{Decoded, Note, NoteKind};
use crate::registry::{ProgramKind, Registry};

/// Raised whenever the same transaction may decode to other trades than before.
pub const DECODER_VERSION: u16 = 20;

const SYSTEM_PROGRAM: AccountKey = [0; 32];
const TOKEN_PROGRAM: AccountKey = address("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
const TOKEN_2022_PROGRAM: AccountKey = address("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb");
const WRAPPED_SOL: AccountKey = address("So11111111111111111111111111111111111111112");

/// What a keeper keeps of the orders that it fills is at most one part in this many.
const REST_PART_MIN: i128 = 100;

/// A platform's fee is at most one part in this many of the traded amount.
const PLATFORM_FEE_PART_MIN: i128 = 10;

/// A group of instructions that swapped, with its movements.
#[derive(Debug)]
struct Swap {
    ranges: Vec<Range<usize>>,
    net: Net,
}

/// The trades of a wallet in a transaction.
pub fn decode(registry: &Registry, wallet: &[u8; 32], tx: &Transaction) -> Decoded {
    if tx.failed {
        return Decoded::default();
    }
    let Some(scene) = Scene::new(tx, registry.solana()) else {
        return shape::traded(registry.solana(), wallet, tx).unwrap_or_default();
    };
    let ledger = Ledger::new(tx, wallet);
    let mut notes = Vec::new();
    let mut swaps = candidates(&scene, &ledger);
    join_two_calls(&scene, &ledger, &mut swaps);
    add_uninstructed(&scene, &ledger, &mut swaps, wallet);
    add_own_payment(&scene, &ledger, &mut swaps);
    let (mut swaps, closings) = split_conversions(&scene, &ledger, swaps, &mut notes);
    add_platform_fees(&scene, &ledger, &mut swaps);
    for swap in &mut swaps {
        free_funds::mark_paid_in_part(&scene, &ledger, swap);
    }
    let fills = orders::fills(&scene, &ledger, wallet);
    if fills.is_empty() {
        remove_lent_swaps(&scene, &ledger, &mut swaps, &mut notes);
        free_funds::add_takes(&scene, &ledger, &mut swaps, &mut notes);
    }
    if swaps.iter().any(|swap| swap.net.unvalued) {
        let detail = "how many of the lamports that moved belong to a swap is unknown";
        notes.push(Note { kind: NoteKind::Unvalued, detail: detail.to_owned() });
    }
    let mut rows = RowSums::default();
    for swap in swaps.iter().chain(&closings) {
        let parts = route::parts(&scene, &ledger, swap, wallet);
        let parts = if parts.is_empty() { std::slice::from_ref(swap) } else { parts.as_slice() };
        for part in parts {
            rows.add(&scene, &ledger, part);
        }
    }
    for fill in &fills {
        rows.add_fill(&scene, &ledger, fill);
    }
    rows.finish(&scene, &ledger, notes)
}

/// Every group that runs a venue, with the wallet's movements in it.
fn candidates(scene: &Scene<'_>, ledger: &Ledger) -> Vec<Swap> {
    let mut swaps: Vec<Swap> = Vec::new();
    for group in scene.groups.iter().filter(|group| scene.may_trade(group)) {
        let outer = scene.kind(group.start);
        if scene.serves_orders(group.start) {
            continue;
        }
        let net = scene.net(ledger, group);
        let program = |range: &Range<usize>| scene.instruction(range.start).map(|i| i.program);
        // A single call may both take and settle.
        let joins = outer == Some(ProgramKind::OrderBook) && !takes_alone(scene, group, &net);
        let book = joins.then(|| program(group)).flatten();
        let same = swaps.iter_mut().find(|swap| {
            let [first, others @ ..] = swap.ranges.as_slice() else { return false };
            let of_book = book.is_some() && program(first) == book;
            of_book && (!others.is_empty() || !takes_alone(scene, first, &swap.net))
        });
        match same {
            Some(swap) => {
                swap.net.merge(&net);
                swap.ranges.push(group.clone());
            }
            None => swaps.push(Swap { ranges: vec![group.clone()], net }),
        }
    }
    swaps
}

/// Whether an order book's call is a swap without the book's other calls.
fn takes_alone(scene: &Scene<'_>, group: &Range<usize>, net: &Net) -> bool {
    net.is_swap() && scene.takes(group.start)
}

/// Separates the candidates into swaps and the conversions that reverse them: a stake pool, for
/// example, takes what the swaps brought and gives back what they gave.
fn split_conversions(
    scene: &Scene<'_>,
    ledger: &Ledger,
    candidates: Vec<Swap>,
    notes: &mut Vec<Note>,
) -> (Vec<Swap>, Vec<Swap>) {
    let (mut swaps, mut conversions) = (Vec::new(), Vec::new());
    for swap in candidates {
        match rejection_note(scene, ledger, &swap) {
            Some(note) if note.kind == NoteKind::Conversion => {
                notes.push(note);
                conversions.push(swap);
            }
            Some(note) => notes.push(note),
            None if swap.net.is_swap() => swaps.push(swap),
            None => {}
        }
    }
    let mut all = Net::default();
    for one in swaps.iter().chain(&conversions) {
        all.merge(&one.net);
    }
    // Conversions count only if they leave nothing on one side; else what was bought is the trade.
    if all.gains() && all.losses() {
        conversions.clear();
    }
    (swaps, conversions)
}

/// Removes swaps that belong to others' orders. A keeper routes what orders lend it through its own
/// accounts and pays the orders from the proceeds. Swaps that leave it nothing on one side are the
/// makers' trades.
fn remove_lent_swaps(
    scene: &Scene<'_>,
    ledger: &Ledger,
    swaps: &mut Vec<Swap>,
    notes: &mut Vec<Note>,
) {
    let mut lent = Net::default();
    let mut places = false;
    for group in scene.groups.iter().filter(|group| scene.serves_orders(group.start)) {
        lent.merge(&scene.net(ledger, group));
        places |= places_order(ledger, group);
    }
    if places || !lent.is_swap() {
        return;
    }
    let is_makers = |swaps: &[Swap]| {
        let mut left = lent.clone();
        for swap in swaps {
            left.merge(&swap.net);
        }
        // A small amount that a keeper adds or keeps is not a side of a trade.
        let counts = |(asset, sum): &(Asset, i128)| {
            sum.saturating_abs().saturating_mul(REST_PART_MIN) > lent.get(*asset).saturating_abs()
        };
        let mut sides = left.assets().filter(counts).map(|(_, sum)| sum > 0);
        sides.next().is_none_or(|first| sides.all(|side| side == first))
    };
    let count = swaps.len();
    if is_makers(swaps) {
        swaps.clear();
    } else {
        swaps.retain(|swap| !is_makers(std::slice::from_ref(swap)));
    }
    if swaps.len() < count {
        let detail = "the wallet swapped what orders of others lent it".to_owned();
        notes.push(Note { kind: NoteKind::Order, detail });
    }
}

/// Whether the wallet funds a new account in these instructions, as the placement of an order does.
fn places_order(ledger: &Ledger, group: &Range<usize>) -> bool {
    let mut flows = ledger.flows.iter().filter(|flow| group.contains(&flow.instruction));
    flows.any(|flow| flow.means == Means::Create && ledger.is_own(flow.from))
}

/// Joins two calls of a router: it may take what is sold in one, and swap or pay out in the next.
fn join_two_calls(scene: &Scene<'_>, ledger: &Ledger, swaps: &mut [Swap]) {
    let leader = |range: &Range<usize>| scene.instruction(range.start).map(|i| i.program);
    let acts = |at: usize| scene.kind(at).is_none() || scene.takes(at);
    let mut joined = Vec::new();
    for swap in swaps.iter_mut().filter(|swap| swap.net.gains() && !swap.net.losses()) {
        let is_open = |range: &&Range<usize>| {
            scene.leaf(range.start).is_none() && !joined.contains(&leader(range))
        };
        let Some(first) = swap.ranges.first().filter(is_open) else { continue };
        let routed = scene.kind(first.start) == Some(ProgramKind::Aggregator);
        let calls = scene.groups.iter().filter(|group| {
            let is_of_router = group.len() > 1 && leader(group) == leader(first);
            is_of_router && acts(group.start) && !scene.serves_orders(group.start)
        });
        let (mut net, mut ranges) = (Net::default(), Vec::new());
        for group in calls {
            let part = scene.net(ledger, group);
            // A call that swaps by itself is its own trade; one that a bot makes for another is
            // none.
            let is_given = part.losses() && scene.may_exchange(group);
            if !part.is_swap() && (routed || !is_given) {
                net.merge(&part);
                ranges.push(group.clone());
            }
        }
        if net.is_swap() {
            joined.push(leader(first));
            *swap = Swap { ranges, net };
        }
    }
}

/// Assigns lamports that moved without an instruction to the groups in which a curve took tokens,
/// or in which the wallet got nothing for its tokens, or to the only group. A program can pay only
/// out of accounts that its call was given.
fn add_uninstructed(scene: &Scene<'_>, ledger: &Ledger, swaps: &mut [Swap], wallet: &AccountKey) {
    let lamports = scene.uninstructed(ledger);
    if lamports == 0 {
        return;
    }
    let payers = scene.payers(ledger);
    let only = swaps.len() == 1;
    let mut paid: Vec<(&mut Swap, i128)> = Vec::new();
    // A router may pay several wallets, or for several tokens, out of one account of its program.
    let is_unpaid = |swap: &Swap| !swap.net.gains() && gave_tokens(swap);
    let counts = |swap: &&mut Swap| only || sold_to_curve(scene, swap) || is_unpaid(swap);
    for swap in swaps.iter_mut().filter(counts) {
        let most = paid_within(scene, &payers, swap);
        if most > 0 {
            paid.push((swap, most));
        }
    }
    if let [(swap, most)] = paid.as_mut_slice() {
        // One payer may have paid for something else, such as a claim.
        let claims = scene.claims_at_curve();
        let is_mixed = claims || payers.len() > 1;
        let reported = is_mixed.then(|| reported(scene, &swap.ranges, wallet)).flatten();
        match reported.filter(|reported| *reported <= lamports) {
            Some(reported) => swap.net.native += reported,
            None if lamports <= *most && !claims => swap.net.native += lamports,
            None => swap.net.unvalued = true,
        }
        return;
    }
    let parts: Vec<Option<i128>> =
        paid.iter().map(|(swap, _)| reported(scene, &swap.ranges, wallet)).collect();
    let sum: i128 = parts.iter().flatten().sum();
    let split = sum == lamports || (sum < lamports && parts.iter().all(Option::is_some));
    for ((swap, _), part) in paid.iter_mut().zip(parts) {
        if split {
            swap.net.native += part.unwrap_or(0);
        } else {
            swap.net.unvalued = true;
        }
    }
}

/// Handles a wallet that is a curve's account: it pays without an instruction for what it gets.
fn add_own_payment(scene: &Scene<'_>, ledger: &Ledger, swaps: &mut [Swap]) {
    let mut payers = scene.payers(ledger).into_iter();
    let own = payers.find(|(account, _)| ledger.wallet == Some(*account));
    let Some((_, lamports)) = own else { return };
    let sold = |flow: &&Flow| {
        let venue = scene.leaf(flow.instruction).map(|(_, program)| program.kind);
        let comes = !ledger.is_own(flow.from) && ledger.is_own(flow.to);
        // The supply of a launch is minted, not transferred.
        let is_token = flow.means == Means::Transfer && flow.asset != Asset::Native;
        comes && is_token && venue == Some(ProgramKind::Curve)
    };
    let sales: Vec<usize> = ledger.flows.iter().filter(sold).map(|flow| flow.instruction).collect();
    let bought = |swap: &&mut Swap| {
        swap.ranges.iter().any(|range| sales.iter().any(|at| range.contains(at)))
    };
    let mut bought = swaps.iter_mut().filter(bought);
    let Some(first) = bought.next() else { return };
    first.net.native -= lamports;
    for other in bought {
        first.net.merge(&std::mem::take(&mut other.net));
        first.ranges.append(&mut other.ranges);
    }
}

/// Whether the wallet gave tokens to a curve.
fn sold_to_curve(scene: &Scene<'_>, swap: &Swap) -> bool {
    let mut programs = swap.ranges.iter().flat_map(|range| scene.acting(range));
    gave_tokens(swap) && programs.any(|program| program.kind == ProgramKind::Curve)
}

fn gave_tokens(swap: &Swap) -> bool {
    swap.net.tokens.iter().any(|(_, sum)| *sum < 0)
}

/// The sum that those payers paid whose accounts were given to calls in these instructions. An
/// account that was also given to a claim counts only for a sale to a curve.
fn paid_within(scene: &Scene<'_>, payers: &[(u8, i128)], swap: &Swap) -> i128 {
    let sells = sold_to_curve(scene, swap);
    let counts = |account: u8| {
        let given = |at: &usize| {
            let call = scene.instruction(*at);
            call.is_some_and(|call| scene.tx.accounts_of(call).contains(&account))
        };
        let mut calls = swap.ranges.iter().flat_map(Range::clone).filter(given).peekable();
        calls.peek().is_some() && (sells || !calls.any(|at| scene.moves_liquidity(at)))
    };
    payers.iter().filter(|(account, _)| counts(*account)).map(|(_, lamports)| lamports).sum()
}

/// The lamports that curves report as paid to the wallet for its sales, if any do.
fn reported(scene: &Scene<'_>, ranges: &[Range<usize>], wallet: &AccountKey) -> Option<i128> {
    let inner = ranges.iter().flat_map(Range::clone);
    let sales = inner.filter_map(|at| CurveSale::read(scene.tx, scene.instruction(at)?));
    let own = sales.filter(|sale| sale.user == *wallet);
    own.map(|sale| i128::from(sale.paid)).reduce(|one, other| one + other)
}

fn rejection_note(scene: &Scene<'_>, ledger: &Ledger, swap: &Swap) -> Option<Note> {
    let (net, ranges) = (&swap.net, &swap.ranges);
    let own_call = |range: &Range<usize>| scene.kind(range.start) == Some(ProgramKind::OrderBook);
    let little = || scene.keeps_little(ledger, net, ranges);
    let (kind, detail) = match (net.gains(), net.losses()) {
        (false, false) => return None,
        _ if net.shares => (NoteKind::Liquidity, "a pool's shares were minted or burnt"),
        (true, false) => (NoteKind::OneSided, "a venue ran and the wallet only got"),
        (false, true) => (NoteKind::OneSided, "a venue ran and the wallet only gave"),
        (true, true) if scene.sends_on(ledger, net, ranges) || little() => {
            (NoteKind::OneSided, "most of what the swap gave went on to another account")
        }
        (true, true) if ranges.iter().all(|range| scene.converts(range)) => {
            (NoteKind::Conversion, "staking, or another conversion at a fixed price")
        }
        (true, true) if ranges.iter().any(|range| own_call(range) && !scene.takes(range.start)) => {
            (NoteKind::Order, "an order was placed, changed or cancelled")
        }
        (true, true) => return None,
    };
    Some(Note { kind, detail: detail.to_owned() })
}

/// Adds transfers of a traded token that are a platform's fee: another call of the program that led
/// the swap, or a small transfer by itself. It belongs to the only swap that traded the token.
fn add_platform_fees(scene: &Scene<'_>, ledger: &Ledger, swaps: &mut [Swap]) {
    let ranges: Vec<Range<usize>> = swaps.iter().flat_map(|swap| swap.ranges.clone()).collect();
    let outside = |group: &&Range<usize>| !scene.may_exchange(group) && !ranges.contains(group);
    for group in scene.groups.iter().filter(outside) {
        for flow in ledger.flows.iter().filter(|flow| group.contains(&flow.instruction)) {
            let (Asset::Token(_), Means::Transfer) = (flow.asset, flow.means) else { continue };
            let mut traded = swaps.iter_mut().filter(|swap| swap.net.get(flow.asset) != 0);
            let (Some(swap), None) = (traded.next(), traded.next()) else { continue };
            if is_platform_fee(scene, ledger, swap, (group, flow)) {
                swap.net.add(flow.asset, -i128::from(flow.amount));
            }
        }
    }
}

/// Whether a transfer outside a swap is its platform's fee.
fn is_platform_fee(
    scene: &Scene<'_>,
    ledger: &Ledger,
    swap: &Swap,
    (group, flow): (&Range<usize>, &Flow),
) -> bool {
    let leader = swap.ranges.first().and_then(|range| scene.instruction(range.start));
    let Some(leader) = leader else { return false };
    // Programs of the tables may do other things with the traded token.
    let known = scene.program(leader);
    let led = scene.programs(group).all(|one| known.is_some_and(|known| known.id == one.id));
    let same = scene.instruction(group.start).is_some_and(|i| i.program == leader.program);
    let amount = i128::from(flow.amount);
    let small = amount.saturating_mul(PLATFORM_FEE_PART_MIN) <= swap.net.get(flow.asset).abs();
    let sent = ledger.is_own(flow.from) && !ledger.is_own(flow.to);
    let counts = (same && (small || known.is_none())) || (group.len() == 1 && small);
    led && sent && counts && !scene.pays_sponsor(ledger, flow)
}
