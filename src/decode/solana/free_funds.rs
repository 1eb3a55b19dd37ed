//! Handles takes at Phoenix that are paid, wholly or in part, from the wallet's free funds at the
//! exchange: a cancelled order may leave its tokens there. The wallet then gave more than moved.
//! The log states both sides in lots, whose size no transaction states, so the amount is unknown.

use std::ops::Range;

use super::balances::{Asset, Ledger};
use super::events;
use super::scene::Scene;
use super::{Note, Swap};

/// The positions of the trader's base and quote accounts in a swap's account list.
const TRADERS: Range<usize> = 4..6;

/// One side of a take: the asset (if the trader's account is the wallet's), that account, the lots.
type TakeSide = (Option<Asset>, u8, u64);

/// Adds takes of which only the received side moved, unless another swap of the transaction brought
/// the token that the take gave, or gave the one that it brought: the net would be unknown.
pub(super) fn add_takes(
    scene: &Scene<'_>,
    ledger: &Ledger,
    swaps: &mut Vec<Swap>,
    notes: &mut Vec<Note>,
) {
    let takes = scene.groups.iter().filter_map(|group| take(scene, ledger, group));
    let takes: Vec<(Swap, Asset, Asset)> = takes.collect();
    let mixes = |(_, got, gave): &(Swap, Asset, Asset)| {
        let mut all = swaps.iter().chain(takes.iter().map(|(take, ..)| take));
        all.any(|swap| swap.net.get(*gave) > 0 || swap.net.is_open(*got))
    };
    let mixed: Vec<bool> = takes.iter().map(mixes).collect();
    for ((take, ..), _) in takes.into_iter().zip(mixed).filter(|(_, mixes)| !mixes) {
        swaps.push(take);
        notes.clear();
    }
}

fn take(scene: &Scene<'_>, ledger: &Ledger, group: &Range<usize>) -> Option<(Swap, Asset, Asset)> {
    let [(one, ..), (other, ..)] = sides(scene, ledger, group.start)?;
    let (one, other) = (one?, other?);
    let mut net = scene.net(ledger, group);
    let (got, sum) = {
        let mut assets = net.assets();
        assets.next().filter(|_| assets.next().is_none())?
    };
    // A wallet that only gave sold too little for one lot of the other token.
    if sum <= 0 {
        return None;
    }
    let gave = match (one == got, other == got) {
        (true, false) => other,
        (false, true) => one,
        (true, true) | (false, false) => return None,
    };
    net.add(gave, -1);
    net.leave_open(gave);
    Some((Swap { ranges: vec![group.clone()], net }, got, gave))
}

/// Marks the assets of which a swap gave more than moved. All lots of a side have one size, so what
/// moved for all of them is a multiple of their number. Markets use powers of ten; any other
/// multiple counts as a partial payment.
pub(super) fn mark_paid_in_part(scene: &Scene<'_>, ledger: &Ledger, swap: &mut Swap) {
    for at in swap.ranges.iter().flat_map(Range::clone) {
        let call = scene.tx.subtree(at);
        for (asset, account, lots) in sides(scene, ledger, at).into_iter().flatten() {
            let inside = ledger.flows.iter().filter(|flow| call.contains(&flow.instruction));
            let paid = inside.filter(|flow| flow.from == Some(account));
            let paid = paid.fold(0_u64, |sum, flow| sum.saturating_add(flow.amount));
            let is_whole = (0..20).any(|n| lots.checked_mul(10_u64.pow(n)) == Some(paid));
            let is_part = paid > 0 && lots > 0 && !is_whole;
            if let Some(asset) = asset.filter(|_| is_part) {
                swap.net.leave_open(asset);
            }
        }
    }
}

/// The base and quote sides of a take at Phoenix; `None` for other calls.
fn sides(scene: &Scene<'_>, ledger: &Ledger, at: usize) -> Option<[TakeSide; 2]> {
    let call = scene.instruction(at).filter(|_| scene.takes(at))?;
    let called = scene.tx.subtree(at).filter_map(|at| scene.instruction(at));
    let mut logs = called.filter(|log| log.program == call.program);
    let lots = logs.find_map(|log| events::taken_at_phoenix(scene.tx, log))?;
    let [base, quote] = scene.tx.accounts_of(call).get(TRADERS)? else { return None };
    let asset = |at: u8| {
        let account = Some(ledger.account(at)).filter(|account| account.own)?;
        if account.wrapped { Some(Asset::Native) } else { account.mint.map(Asset::Token) }
    };
    let [base_lots, quote_lots] = lots;
    Some([(asset(*base), *base, base_lots), (asset(*quote), *quote, quote_lots)])
}
