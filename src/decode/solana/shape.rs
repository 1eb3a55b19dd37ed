//! Recognizes a trade at a program that is in no table, by its shape alone: in one call that is
//! named a swap, the wallet gave one asset to an account that only the program can spend from, and
//! received another from it, and an event of the program states both amounts.

use super::Swap;
use super::action::Action;
use super::balances::{ASSOCIATED_TOKEN_PROGRAM, Asset, Flow, Ledger, Means};
use super::events;
use super::keys::AccountKey;
use super::rows::RowSums;
use super::scene::Scene;
use super::swaps::{Net, beyond_rent, is_for_room};
use super::transaction::Transaction;
use crate::decode::fixed_rate::is_short_price;
use crate::decode::{Decoded, Note, NoteKind};
use crate::domain::Units;
use crate::registry::{AccountKind, SolanaTables};

/// A fee in native coin is at most one part in this many.
const FEE_PART_MIN: u64 = 10;

/// What the wallet exchanged with one account of an asset.
#[derive(Debug)]
struct Side {
    asset: Asset,
    /// Of the wallet.
    units: u64,
    /// The amounts that an event may state: with a fee, and without.
    stated: [u64; 4],
}

/// One movement between the wallet and another account.
#[derive(Debug, Clone, Copy)]
struct Leg {
    asset: Asset,
    /// The other account: of a token account, its owner.
    holder: AccountKey,
    /// Of the wallet, and of the other account.
    units: u64,
    moved: u64,
}

#[derive(Debug, Default)]
struct Legs {
    gave: Vec<Leg>,
    got: Vec<Leg>,
    /// Lamports that the counterparty sent to others.
    passed: Vec<(AccountKey, u64)>,
}

/// The trade of a wallet at a program in no table. `None` if what happened has another shape.
pub(super) fn traded(
    tables: &SolanaTables,
    wallet: &AccountKey,
    tx: &Transaction,
) -> Option<Decoded> {
    let call = only_call(tables, wallet, tx)?;
    let scene = Scene::of_unknown(tx, tables)?;
    let ledger = Ledger::new(tx, wallet);
    let [gave, got] = sides(legs(&scene, &ledger, call)?)?;
    let is_plain = [&gave, &got].into_iter().all(|side| is_plain(tx, &ledger, side.asset));
    if !is_plain || !is_stated(tx, call, &gave, &got) {
        return None;
    }
    let mut net = Net::default();
    net.add(gave.asset, -i128::from(gave.units));
    net.add(got.asset, i128::from(got.units));
    let detail = "found by its shape: one asset for another with an account of a program that no \
                  table knows, whose event confirms both amounts";
    let note = Note { kind: NoteKind::UnknownVenue, detail: detail.to_owned() };
    let mut rows = RowSums::default();
    rows.add(&scene, &ledger, &Swap { ranges: vec![tx.subtree(call)], net });
    Some(rows.finish(&scene, &ledger, vec![note]))
}

/// The only outer call that calls others, if the wallet signed it and its name is that of a swap.
fn only_call(tables: &SolanaTables, wallet: &AccountKey, tx: &Transaction) -> Option<usize> {
    let signs = tx.find(wallet).is_some_and(|at| is_signer(tx, at));
    if !signs || tx.has_guessed_heights {
        return None;
    }
    let behind = tx.instructions.iter().skip(1);
    let mut calls = tx.instructions.iter().zip(behind).enumerate().filter(|(at, (call, next))| {
        let is_outer = call.parent.is_none() && next.parent == Some(*at);
        is_outer && tx.key(call.program) != Some(&ASSOCIATED_TOKEN_PROGRAM)
    });
    let (Some((at, (call, _))), None) = (calls.next(), calls.next()) else { return None };
    tables.names_swap(&tx.data_of(call)).then_some(at)
}

fn is_signer(tx: &Transaction, account: u8) -> bool {
    usize::from(account) < tx.signers
}

/// What the wallet exchanged in a call. `None` if anything else happened there, or if any token was
/// minted or burnt in the transaction.
fn legs(scene: &Scene<'_>, ledger: &Ledger, call: usize) -> Option<Legs> {
    let program = scene.instruction(call)?.program;
    let range = scene.tx.subtree(call);
    let is_known = |at: usize| {
        scene.instruction(at).is_some_and(|inner| {
            let is_associated = scene.tx.key(inner.program) == Some(&ASSOCIATED_TOKEN_PROGRAM);
            inner.action != Action::Call || inner.program == program || is_associated
        })
    };
    let is_supply = |flow: &Flow| matches!(flow.means, Means::Mint | Means::Burn);
    if !range.clone().all(is_known) || ledger.flows.iter().any(is_supply) {
        return None;
    }
    let mut legs = Legs::default();
    let inside =
        |flow: &&Flow| range.contains(&flow.instruction) && !is_outside(scene, ledger, flow);
    for flow in ledger.flows.iter().filter(inside) {
        let (from, to) = (flow.from?, flow.to?);
        if !matches!(flow.means, Means::Pay | Means::Transfer) {
            return None;
        }
        let holder = |at| holder(scene.tx, ledger, at);
        let leg = |holder, units| Leg { asset: flow.asset, holder, units, moved: flow.amount };
        if ledger.is_own(Some(from)) {
            legs.gave.push(leg(holder(to)?, flow.amount));
            continue;
        }
        // Only a program signs for an account that is no signer of the transaction.
        let action = &scene.instruction(flow.instruction)?.action;
        let signer = if let Action::Pay { from, .. } = *action {
            from
        } else if let Action::Transfer { authority, .. } = *action {
            authority?
        } else {
            return None;
        };
        let is_programs = !is_signer(scene.tx, signer) && scene.parent(flow) == Some(call);
        if !is_programs || scene.tx.key(signer) != Some(&holder(from)?) {
            return None;
        }
        if ledger.is_own(Some(to)) {
            legs.got.push(leg(holder(from)?, flow.received));
        } else if flow.asset == Asset::Native {
            legs.passed.push((holder(from)?, flow.amount));
        } else {
            return None;
        }
    }
    add_uninstructed(scene, ledger, call, &mut legs)?;
    Some(legs)
}

/// Whether a movement is no side of an exchange: within the wallet, rent, or a tip.
fn is_outside(scene: &Scene<'_>, ledger: &Ledger, flow: &Flow) -> bool {
    let (out, into) = (ledger.is_own(flow.from), ledger.is_own(flow.to));
    let Some(to) = flow.to.filter(|_| out != into) else { return out && into };
    let is_tip = || {
        let known = scene.tx.key(to).and_then(|key| scene.tables.account(key));
        matches!(known, Some(AccountKind::Tip | AccountKind::BotFee))
    };
    match flow.means {
        Means::Create => out && beyond_rent(ledger, flow, out) == 0,
        Means::Pay if is_for_room(ledger, flow) => beyond_rent(ledger, flow, out) == 0,
        Means::Pay => out && (is_tip() || scene.is_rent(ledger, flow, to)),
        Means::Transfer | Means::Mint | Means::Burn | Means::Close { .. } => false,
    }
}

/// The owner of a token account; any other account itself.
fn holder(tx: &Transaction, ledger: &Ledger, at: u8) -> Option<AccountKey> {
    if ledger.account(at).mint.is_none() {
        return tx.key(at).copied();
    }
    let token = tx.tokens.iter().find(|token| token.account == at)?;
    token.owner_after.or(token.owner_before)
}

/// Adds the lamports that an account of the call's program gave the wallet without an instruction.
/// `None` if it is unknown which, or if a closed account gave some.
fn add_uninstructed(
    scene: &Scene<'_>,
    ledger: &Ledger,
    call: usize,
    legs: &mut Legs,
) -> Option<()> {
    let lamports = scene.uninstructed(ledger);
    if scene.refunded(ledger) != 0 {
        return None;
    }
    if lamports == 0 {
        return Some(());
    }
    let payers = scene.payers(ledger);
    let [(payer, paid)] = payers.as_slice() else { return None };
    let is_given = scene.tx.accounts_of(scene.instruction(call)?).contains(payer);
    if !is_given || is_signer(scene.tx, *payer) || ledger.is_own(Some(*payer)) {
        return None;
    }
    let (units, moved) = (u64::try_from(lamports).ok()?, u64::try_from(*paid).ok()?);
    let holder = holder(scene.tx, ledger, *payer)?;
    legs.got.push(Leg { asset: Asset::Native, holder, units, moved });
    Some(())
}

/// What the wallet gave and what it received, of one asset each and with one counterparty. Of
/// native coin, others may have got a fee.
fn sides(legs: Legs) -> Option<[Side; 2]> {
    let Legs { gave, got, passed } = legs;
    let first = *got.first()?;
    let is_fee = |leg: &Leg| leg.asset == Asset::Native && leg.holder != first.holder;
    let (fees, gave): (Vec<Leg>, Vec<Leg>) = gave.into_iter().partition(is_fee);
    let asset = gave.first()?.asset;
    let is_given = |leg: &Leg| (leg.asset, leg.holder) == (asset, first.holder);
    let is_gotten = |leg: &Leg| (leg.asset, leg.holder) == (first.asset, first.holder);
    let is_single = asset != first.asset && gave.iter().all(is_given) && got.iter().all(is_gotten);
    if !is_single || passed.iter().any(|(payer, _)| *payer != first.holder) {
        return None;
    }
    let (fee, passed) = (sum(fees.iter().map(units))?, sum(passed.iter().map(|(_, sent)| *sent))?);
    let (given, gotten) = (sum(gave.iter().map(units))?, sum(got.iter().map(units))?);
    let moved = sum(got.iter().map(|leg| leg.moved))?;
    // A fee that the program takes without an instruction is missing from what came.
    let (gave_units, got_units, whole, lost) = match (asset, first.asset) {
        (Asset::Native, _) => (given.checked_add(fee)?, gotten, given.checked_add(fee)?, 0),
        (_, Asset::Native) => (
            given,
            gotten.checked_sub(fee)?,
            moved.checked_add(passed)?,
            moved.checked_sub(gotten)?,
        ),
        (Asset::Token(_), Asset::Token(_)) => (given, gotten, 0, 0),
    };
    let (less, more) = if asset == Asset::Native { (passed, 0) } else { (0, passed) };
    let stated = [gave_units, given, given.checked_sub(less)?, given];
    let gave = Side { asset, units: gave_units, stated };
    let stated = [got_units, gotten, moved, moved.checked_add(more)?];
    let got = Side { asset: first.asset, units: got_units, stated };
    let fees = fee.checked_add(passed)?.checked_add(lost)?;
    (fees <= whole / FEE_PART_MIN).then_some([gave, got])
}

fn units(leg: &Leg) -> u64 {
    leg.units
}

fn sum(mut parts: impl Iterator<Item = u64>) -> Option<u64> {
    parts.try_fold(0_u64, u64::checked_add)
}

/// Whether a token is divisible and the balances agree with what moved, as is native coin.
fn is_plain(tx: &Transaction, ledger: &Ledger, asset: Asset) -> bool {
    let Asset::Token(mint) = asset else { return true };
    let token = tx.tokens.iter().find(|token| ledger.mints.get(mint) == Some(&token.mint));
    token.is_some_and(|token| token.decimals > 0) && ledger.is_mint_explained(mint)
}

/// Whether an event of the call's program states both amounts, and these are at no fixed price.
fn is_stated(tx: &Transaction, call: usize, gave: &Side, got: &Side) -> bool {
    let pairs = || gave.stated.iter().flat_map(|one| got.stated.iter().map(move |two| (one, two)));
    let is_fixed = |(one, two): (&u64, &u64)| is_short_price(Units::from(*one), Units::from(*two));
    if pairs().any(is_fixed) {
        return false;
    }
    let program = tx.instructions.get(call).map(|call| call.program);
    let inner = tx.instructions.get(tx.subtree(call)).unwrap_or_default();
    let mut own =
        inner.iter().filter(|log| log.parent == Some(call) && Some(log.program) == program);
    let states =
        |event: &[u8], amount: &u64| event.windows(8).any(|part| part == amount.to_le_bytes());
    own.any(|log| {
        events::logged(tx, log).is_some_and(|event| {
            pairs().any(|(one, two)| states(&event, one) && states(&event, two))
        })
    })
}
