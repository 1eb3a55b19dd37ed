//! Takes at Phoenix that are paid, wholly or in part, out of what the wallet has there: an order that it
//! cancels may leave its tokens with the exchange. What the wallet gave is then more than what moved. The
//! log has both sides in lots, whose size no transaction states, so that the amount is unknown.

use std::ops::Range;

use super::balances::{Asset, Ledger};
use super::events;
use super::scene::Scene;
use super::{Note, Swap};

/// Where the trader's accounts of the base and of the quote are among those of a swap.
const TRADERS: Range<usize> = 4..6;

/// One side of a take: the asset, where the trader's account is the wallet's; that account; the lots.
type TakeSide = (Option<Asset>, u8, u64);

/// Adds takes of which only the side that the wallet got moved. None that gave a token which another
/// swap of the transaction brought, or brought one that another gave: nothing shows which is more.
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
    // A wallet that only gives sold too little for a lot of the other token.
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

/// Marks what a swap gave more of than moved. All lots of a side have one size: what moved for all of
/// them is that many times their number. Markets choose powers of ten; any other is left open.
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

/// The base's side and the quote's, where a call takes at Phoenix.
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
