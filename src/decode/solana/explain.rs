//! Explains a Solana transaction.

use super::balances::{Asset as Moved, Flow, Ledger, Means};
use super::decode;
use super::keys::AccountKey;
use super::scene::{Scene, acts};
use super::swaps::{is_for_room, returned_rent};
use super::transaction::Transaction;
use crate::decode::explain::{Asset, Explanation, FoundVenue, LeftOut, Movement, Why};
use crate::domain::{Address, Units};
use crate::registry::{AccountKind, ProgramKind, Registry, SolanaTables};

/// The wallet's movements, and why they became the rows that `decode` returns.
pub fn explain(registry: &Registry, wallet: &[u8; 32], tx: &Transaction) -> Explanation {
    let ledger = Ledger::new(tx, wallet);
    let mut explanation =
        Explanation { failed: tx.failed, native_known: true, ..Explanation::default() };
    if ledger.wallet == Some(0) {
        explanation.left_out.push(native(Why::NetworkFee, tx.fee, false));
    }
    if tx.failed {
        return explanation;
    }
    explanation.decoded = decode(registry, wallet, tx);
    let is_trade = !explanation.decoded.trades.is_empty();
    let unknown = || Scene::of_unknown(tx, registry.solana()).filter(|_| is_trade);
    let (uninstructed, refunded) = Scene::new(tx, registry.solana())
        .or_else(unknown)
        .map_or((0, 0), |scene| (scene.uninstructed(&ledger), scene.refunded(&ledger)));
    explanation.movements = movements(&ledger, uninstructed);
    explanation.venues = venues(registry.solana(), tx);
    explanation.left_out.extend(fees(registry.solana(), &ledger, tx));
    explanation.left_out.extend(rent(&ledger, refunded));
    explanation.list_left_out();
    explanation
}

fn native(why: Why, lamports: u64, came: bool) -> LeftOut {
    LeftOut { why, asset: Asset::Native, units: Units::from(lamports), came }
}

/// The movements between the wallet's accounts and others, by asset. `uninstructed`: lamports that
/// programs gave it without an instruction, which are included.
fn movements(ledger: &Ledger, uninstructed: i128) -> Vec<Movement> {
    let mut sums: Vec<(Moved, u128, u128)> = Vec::new();
    let mut add = |asset: Moved, got: u128, gave: u128| match sums
        .iter_mut()
        .find(|(known, ..)| *known == asset)
    {
        Some((_, in_all, out_all)) => {
            *in_all = in_all.saturating_add(got);
            *out_all = out_all.saturating_add(gave);
        }
        None => sums.push((asset, got, gave)),
    };
    for flow in &ledger.flows {
        match (ledger.is_own(flow.from), ledger.is_own(flow.to)) {
            (true, false) => add(flow.asset, 0, u128::from(flow.amount)),
            (false, true) => add(flow.asset, u128::from(flow.received), 0),
            (true, true) | (false, false) => {}
        }
    }
    if uninstructed > 0 {
        add(Moved::Native, uninstructed.unsigned_abs(), 0);
    }
    let movement = |(asset, got, gave): (Moved, u128, u128)| {
        let asset = match asset {
            Moved::Native => Asset::Native,
            Moved::Token(mint) => Asset::Token(Address::Solana(*ledger.mints.get(mint)?)),
        };
        Some(Movement { asset, got: Units::from(got), gave: Units::from(gave) })
    };
    sums.into_iter().filter_map(movement).collect()
}

fn venues(tables: &SolanaTables, tx: &Transaction) -> Vec<FoundVenue> {
    let mut venues = Vec::new();
    for instruction in &tx.instructions {
        let Some(key) = tx.key(instruction.program) else { continue };
        let known = tables.program(key).filter(|program| acts(tx, instruction, program));
        let Some(program) = known else { continue };
        let venue = FoundVenue {
            name: program.name.to_string(),
            part: part(program.kind),
            address: Some(Address::Solana(*key)),
        };
        FoundVenue::push_new(&mut venues, venue);
    }
    venues
}

fn part(kind: ProgramKind) -> &'static str {
    match kind {
        ProgramKind::Amm => "pool",
        ProgramKind::Curve => "price curve of a launchpad",
        ProgramKind::OrderBook => "order book",
        ProgramKind::Aggregator => "aggregator: routes a swap through venues",
        ProgramKind::Router => "router of a trading bot",
        ProgramKind::Limit => "orders that keepers fill",
        ProgramKind::Dca => "orders in instalments that keepers fill",
        ProgramKind::Rfq => "market maker that signs its quote",
        ProgramKind::Conversion => "conversion at a fixed price: no trade",
        ProgramKind::Part => "part that venues call",
        ProgramKind::SmartAccount => "smart account: executes instructions of its own",
    }
}

/// Tips and bots' fees, found by the table of their accounts.
fn fees(tables: &SolanaTables, ledger: &Ledger, tx: &Transaction) -> Vec<LeftOut> {
    let fee = |flow: &Flow| {
        let left = ledger.is_own(flow.from) && !ledger.is_own(flow.to);
        let to: &AccountKey = tx.key(flow.to.filter(|_| left)?)?;
        let why = match (tables.account(to)?, flow.asset) {
            (AccountKind::Tip, Moved::Native) => Why::Tip,
            (AccountKind::BotFee, Moved::Native) => Why::BotFee,
            (AccountKind::Tip | AccountKind::BotFee | AccountKind::ProtocolFee, _) => return None,
        };
        Some(native(why, flow.amount, false))
    };
    ledger.flows.iter().filter_map(fee).collect()
}

/// Rent of the wallet's accounts, paid and refunded; `refunded` came without an instruction.
fn rent(ledger: &Ledger, refunded: i128) -> Vec<LeftOut> {
    let mut put = 0_u64;
    let mut back = 0_u64;
    for flow in &ledger.flows {
        if !(ledger.is_own(flow.from) && ledger.is_own(flow.to)) {
            continue;
        }
        match flow.means {
            Means::Create => put = put.saturating_add(rent_within(ledger, flow)),
            Means::Pay if is_for_room(ledger, flow) => {
                put = put.saturating_add(rent_within(ledger, flow));
            }
            Means::Close { rent } => back = back.saturating_add(rent),
            Means::Pay | Means::Transfer | Means::Mint | Means::Burn => {}
        }
    }
    let by_others = returned_rent(ledger, &(0..usize::MAX), |account| ledger.is_own(account));
    for other in [by_others, refunded] {
        back = back.saturating_add(u64::try_from(other).unwrap_or(0));
    }
    let put = (put > 0).then(|| native(Why::Rent, put, false));
    let back = (back > 0).then(|| native(Why::RentBack, back, true));
    put.into_iter().chain(back).collect()
}

/// How much of an account's funding is rent. The rest of a wrapped account's funding is its SOL.
fn rent_within(ledger: &Ledger, flow: &Flow) -> u64 {
    let account = flow.to.map(|to| ledger.account(to));
    account.filter(|account| account.wrapped).map_or(flow.amount, |to| to.rent.min(flow.amount))
}
