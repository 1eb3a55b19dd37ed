//! A take at Phoenix that is paid out of what the wallet has there: an order that it cancels may leave its
//! tokens with the exchange. Only the other side moves to the wallet. The log has both in lots, whose size
//! no transaction states, so that the amount of the one that stays there is unknown.

use std::ops::Range;
use std::sync::Arc;

use super::balances::{Asset, Ledger};
use super::events;
use super::scene::Scene;
use crate::decode::{Decoded, DecodedTrade};
use crate::domain::{Address, Side, Units};
use crate::registry::ProgramKind;

/// Where the trader's accounts of the two tokens are among those of a swap.
const TRADERS: Range<usize> = 4..6;

#[derive(Debug)]
struct Take<'a> {
    got: Asset,
    amount: Units,
    gave: Asset,
    venue: &'a Arc<str>,
}

/// Adds the rows of a single such take, for a transaction that has no others.
pub(super) fn add_take(scene: &Scene<'_>, ledger: &Ledger, decoded: &mut Decoded) {
    let mut takes = scene.groups.iter().filter_map(|group| take(scene, ledger, group));
    let (Some(take), None) = (takes.next(), takes.next()) else { return };
    decoded.notes.clear();
    for (asset, units, side) in
        [(take.gave, None, Side::Sell), (take.got, Some(take.amount), Side::Buy)]
    {
        let Asset::Token(at) = asset else { continue };
        let Some(key) = ledger.mints.get(at) else { continue };
        let mint = Address::Solana(*key);
        decoded.trades.push(DecodedTrade {
            side,
            mint,
            units: units.filter(|_| ledger.is_mint_explained(at)),
            native: (take.got == Asset::Native).then_some(take.amount),
            venue: take.venue.clone(),
        });
        let token = scene.tx.tokens.iter().find(|token| token.mint == *key);
        decoded.decimals.extend(token.map(|token| (mint, token.decimals)));
    }
}

fn take<'a>(scene: &Scene<'a>, ledger: &Ledger, group: &Range<usize>) -> Option<Take<'a>> {
    let call = scene.instruction(group.start)?;
    let book = scene.program(call).filter(|program| program.kind == ProgramKind::OrderBook)?;
    if !scene.takes(group.start) {
        return None;
    }
    let mut logs = group.clone().filter_map(|at| scene.instruction(at));
    if !logs.any(|log| log.program == call.program && events::took_at_phoenix(scene.tx, log)) {
        return None;
    }
    let net = scene.net(ledger, group);
    let mut assets = net.assets();
    let (Some((got, sum)), None) = (assets.next(), assets.next()) else { return None };
    // A wallet that only gives sold too little for a lot of the other token.
    if sum <= 0 {
        return None;
    }
    let [one, other] = scene.tx.accounts_of(call).get(TRADERS)? else { return None };
    let (one, other) = (own_asset(ledger, *one)?, own_asset(ledger, *other)?);
    let gave = match (one == got, other == got) {
        (true, false) => other,
        (false, true) => one,
        (true, true) | (false, false) => return None,
    };
    Some(Take { got, amount: Units::from(sum.unsigned_abs()), gave, venue: &book.name })
}

fn own_asset(ledger: &Ledger, at: u8) -> Option<Asset> {
    let account = Some(ledger.account(at)).filter(|account| account.own)?;
    if account.wrapped { Some(Asset::Native) } else { account.mint.map(Asset::Token) }
}
