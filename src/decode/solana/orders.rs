//! Finds fills of the wallet's orders by keepers: the wallet receives its side, and what it gives
//! leaves an account of the order, which received it in an earlier transaction.

use super::WRAPPED_SOL;
use super::balances::{Asset, Flow, Ledger};
use super::events::Filled;
use super::keys::AccountKey;
use super::scene::{Scene, keeps_orders};
use super::swaps::{Net, is_for_room};
use crate::registry::{Program, ProgramKind};

#[derive(Debug)]
pub(super) struct Fill<'a> {
    pub(super) program: &'a Program,
    pub(super) net: Net,
}

/// The fills of the wallet's orders, one per program.
pub(super) fn fills<'a>(scene: &Scene<'a>, ledger: &Ledger, wallet: &AccountKey) -> Vec<Fill<'a>> {
    let mut fills: Vec<Fill<'a>> = Vec::new();
    let keepers = scene.programs(&scene.whole);
    for program in keepers.filter(|p| keeps_orders(p.kind) || p.fills_orders()) {
        if fills.iter().any(|fill| fill.program.id == program.id) {
            continue;
        }
        let calls = calls_of(scene, program);
        let net = for_maker(scene, ledger, wallet, &calls)
            .or_else(|| for_order(scene, ledger, &calls))
            .or_else(|| reported_fill(scene, ledger, wallet, &calls));
        fills.extend(net.map(|net| Fill { program, net }));
    }
    fills
}

/// The program's calls that may fill and are not inside another of them.
fn calls_of(scene: &Scene<'_>, program: &Program) -> Vec<usize> {
    let is_call = |at: usize| scene.may_fill(at, program);
    let all = scene.whole.clone();
    all.filter(|at| is_call(*at) && !scene.callers(*at).skip(1).any(is_call)).collect()
}

/// A fill for the order's maker: the wallet only receives, while accounts of the order that are
/// listed with it in the call lose another asset.
fn for_maker(
    scene: &Scene<'_>,
    ledger: &Ledger,
    wallet: &AccountKey,
    calls: &[usize],
) -> Option<Net> {
    let mut net = Net::default();
    let (mut paying, mut listed): (Vec<(usize, Net)>, Vec<u8>) = (Vec::new(), Vec::new());
    for call in calls {
        let part = scene.net(ledger, &scene.tx.subtree(*call));
        net.merge(&part);
        if part.gains() {
            listed.extend(scene.tx.accounts_of(scene.instruction(*call)?));
            paying.push((*call, part));
        }
    }
    // A wallet that gives back what it received is a keeper that borrowed.
    let whole = scene.net(ledger, &scene.whole);
    let keeps = net.assets().all(|(asset, sum)| whole.get(asset) >= sum);
    if !net.gains() || net.losses() || !keeps {
        return None;
    }
    let got: Vec<Asset> = net.assets().map(|(asset, _)| asset).collect();
    let mut orders: Vec<AccountKey> = Vec::new();
    for call in calls {
        let mut owners = scene.escrow_owners(wallet, *call, &listed).into_iter();
        let order = owners.find(|owner| is_order(&held_by(scene, ledger, &[*call], owner), &got));
        orders.extend(order.filter(|order| !orders.contains(order)));
    }
    if paying.iter().any(|(call, part)| is_fee(scene, ledger, (calls, *call), part, &orders)) {
        return None;
    }
    let mut lost = Net::default();
    let named: Vec<usize> = calls.iter().copied().filter(|at| names(scene, ledger, *at)).collect();
    let sells = |held: &Net| held.assets().any(|(asset, sum)| sum < 0 && !got.contains(&asset));
    for order in &orders {
        // One owner may hold what several makers sell. A call that names the maker, and in which it
        // sells, is its own; others may lend what it sells.
        let own = Some(held_by(scene, ledger, &named, order)).filter(sells);
        lost.merge(&own.unwrap_or_else(|| held_by(scene, ledger, calls, order)));
    }
    swap_of(net, &lost)
}

/// Whether a call was given an account of the wallet.
fn names(scene: &Scene<'_>, ledger: &Ledger, call: usize) -> bool {
    let accounts = scene.instruction(call).map(|call| scene.tx.accounts_of(call));
    accounts.unwrap_or_default().iter().any(|account| ledger.is_own(Some(*account)))
}

/// Whether an escrow's owner lost what the wallet sells and received nothing else, unlike a pool.
fn is_order(held: &Net, got: &[Asset]) -> bool {
    let sold = |(asset, sum): (Asset, i128)| sum < 0 && (got.len() > 1 || !got.contains(&asset));
    held.assets().any(sold) && held.assets().all(|(asset, sum)| sum < 0 || got.contains(&asset))
}

/// What the token accounts of an owner gave and got in these calls.
fn held_by(scene: &Scene<'_>, ledger: &Ledger, calls: &[usize], owner: &AccountKey) -> Net {
    let is_held = |end: Option<u8>| {
        let known = end.filter(|at| ledger.is_explained(*at));
        known.and_then(|at| scene.owner(at)) == Some(owner)
    };
    let within =
        |flow: &&Flow| calls.iter().any(|call| scene.tx.subtree(*call).contains(&flow.instruction));
    let mut net = Net::default();
    for flow in ledger.flows.iter().filter(within).filter(|flow| !is_for_room(ledger, flow)) {
        match (is_held(flow.from), is_held(flow.to)) {
            (true, false) => net.add(flow.asset, -flow.without_rent()),
            (false, true) => net.add(flow.asset, flow.without_rent()),
            (true, true) | (false, false) => {}
        }
    }
    net
}

/// Whether the wallet only takes a fee of the maker's proceeds: the accounts that pay it in a call
/// pay another account more of the same asset. An order's account may make the two payments in
/// different calls.
fn is_fee(
    scene: &Scene<'_>,
    ledger: &Ledger,
    (calls, call): (&[usize], usize),
    got: &Net,
    orders: &[AccountKey],
) -> bool {
    let mut assets = got.assets();
    let (Some((asset, sum)), None) = (assets.next(), assets.next()) else { return false };
    let within = |flow: &Flow, call: usize| scene.tx.subtree(call).contains(&flow.instruction);
    let of_order = |flow: &Flow| {
        let owner = flow.from.and_then(|from| scene.owner(from));
        owner.is_some_and(|owner| orders.contains(owner))
    };
    let of_asset = || ledger.flows.iter().filter(|flow| flow.asset == asset);
    let pays = |from: Option<u8>| {
        let mut own = of_asset().filter(|flow| flow.from == from && ledger.is_own(flow.to));
        own.any(|flow| within(flow, call))
    };
    let paid = |flow: &Flow| {
        within(flow, call) || of_order(flow) && calls.iter().any(|call| within(flow, *call))
    };
    let others: Vec<&Flow> = of_asset()
        .filter(|flow| !ledger.is_own(flow.to) && pays(flow.from) && paid(flow))
        .collect();
    let total = |to: Option<u8>| -> i128 {
        others.iter().filter(|flow| flow.to == to).map(|flow| flow.without_rent()).sum()
    };
    others.iter().any(|flow| total(flow.to) > sum)
}

/// The swap of what the wallet got for what the order lost. If it bought one of several assets that
/// it got, the others are the unused rest of what it gave.
fn swap_of(mut net: Net, lost: &Net) -> Option<Net> {
    let got: Vec<Asset> = net.assets().map(|(asset, _)| asset).collect();
    let bought = got.iter().any(|asset| lost.get(*asset) >= 0);
    for (asset, sum) in lost.assets() {
        if sum < 0 && (bought || !got.contains(&asset)) {
            net.add(asset, sum);
        }
    }
    net.is_swap().then_some(net)
}

/// A fill for a wallet that is an order's own account: the program takes one asset from it, and a
/// swap in between pays it another. Smart accounts, which sign nothing either, are excluded.
fn for_order(scene: &Scene<'_>, ledger: &Ledger, calls: &[usize]) -> Option<Net> {
    let signs = ledger.wallet.is_some_and(|at| usize::from(at) < scene.tx.signers);
    let mut starts = scene.groups.iter().map(|group| scene.kind(group.start));
    if signs || starts.any(|kind| kind == Some(ProgramKind::SmartAccount)) {
        return None;
    }
    let mut taken = Net::default();
    for call in calls {
        taken.merge(&scene.net(ledger, &scene.tx.subtree(*call)));
    }
    let mut net = Net::default();
    for group in &scene.groups {
        if group.clone().any(|at| calls.contains(&at)) || !scene.may_trade(group) {
            continue;
        }
        let paid = scene.net(ledger, group);
        if paid.gains() && !paid.losses() {
            net.merge(&paid);
        }
    }
    swap_of(net, &taken)
}

/// The fill that Jupiter DCA's event reports, for users who are paid only when the order ends.
fn reported_fill(
    scene: &Scene<'_>,
    ledger: &Ledger,
    wallet: &AccountKey,
    calls: &[usize],
) -> Option<Net> {
    let inside = calls.iter().flat_map(|call| scene.tx.subtree(*call));
    let events = inside.filter_map(|at| Filled::read(scene.tx, scene.instruction(at)?));
    let mut net = Net::default();
    for event in events.filter(|event| event.user == *wallet) {
        let fee = if event.fee_mint == event.output { event.fee } else { 0 };
        let moved = |mint: &AccountKey, units: u64| {
            *mint == WRAPPED_SOL || scene.tx.units_moved(mint) >= u128::from(units)
        };
        if !moved(&event.input, event.given) || !moved(&event.output, event.got.saturating_sub(fee))
        {
            continue;
        }
        net.add(ledger.asset(&event.input)?, -i128::from(event.given));
        net.add(ledger.asset(&event.output)?, i128::from(event.got) - i128::from(fee));
    }
    net.is_swap().then_some(net)
}

impl Scene<'_> {
    fn owner(&self, account: u8) -> Option<&AccountKey> {
        let token = self.tx.tokens.iter().find(|token| token.account == account)?;
        token.owner_before.as_ref().or(token.owner_after.as_ref())
    }

    /// The owners of token accounts in a call, in the call's order, without the wallet and the
    /// signers. The owner or one of its accounts must be in `listed`.
    fn escrow_owners(&self, wallet: &AccountKey, call: usize, listed: &[u8]) -> Vec<AccountKey> {
        let signers = self.tx.keys.get(..self.tx.signers).unwrap_or_default();
        let is_listed = |key: &AccountKey| listed.iter().any(|at| self.tx.key(*at) == Some(key));
        let accounts = self.instruction(call).map(|call| self.tx.accounts_of(call));
        accounts
            .unwrap_or_default()
            .iter()
            .filter_map(|account| Some((account, self.owner(*account)?)))
            .filter(|(_, owner)| *owner != wallet && !signers.contains(owner))
            .filter(|(account, owner)| listed.contains(account) || is_listed(owner))
            .map(|(_, owner)| *owner)
            .collect()
    }
}
