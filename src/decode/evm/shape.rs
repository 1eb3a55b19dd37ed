//! Recognizes a trade through a contract that is in no table, by its shape alone: in one call the
//! wallet gave one asset to one counterparty and received another from it, and an event confirms
//! both; or several counterparties did so step by step, each confirmed. Shares, debts, NFTs and
//! fixed rates are not trades.

use std::collections::BTreeMap;

use super::counterparties::{self, Amount};
use super::ledger::{Asset, Ledger, Move, is_movement, transfer};
use super::native;
use super::own::{Leg, Measure, Own};
use super::scene::Scene;
use super::transaction::{Account, Log};
use super::words::{NATIVE_PLACEHOLDER, ZERO, absolute, address, units, words};
use crate::decode::fixed_rate::{is_fixed_rate, is_short_price};
use crate::decode::flow::Flow;
use crate::decode::{Note, NoteKind};
use crate::domain::{Side, Units};
use crate::registry::{ContractKind, EventKind};

/// A fee that an event leaves out is at most a tenth.
const FEE_PART: Units = Units::from_limbs([10, 0, 0, 0]);

/// One side of an exchange.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// `None`: the wrapped native coin.
    token: Option<Account>,
    units: Units,
}

impl Part {
    fn amount(&self, wrapped: Account) -> Amount {
        (Asset::Token(self.token.unwrap_or(wrapped)), self.units)
    }
}

/// The legs of a trade by a contract that is in no table.
pub(super) fn traded(scene: &Scene<'_>, own: &Own) -> Option<Vec<Leg>> {
    let (gave, got) = parts(scene, own)?;
    let to = scene.tx.to?;
    let unknown = is_unknown(scene) && to != scene.ledger.wrapped;
    let direct = || {
        scene.tx.from == *scene.wallet
            && to != *scene.wallet
            && !moved_coin(scene.ledger, scene.wallet)
            && has_counterparty(scene.ledger, scene.wallet, gave, got)
            && scene.tx.logs.iter().any(|log| confirms(scene.ledger, log, gave, got))
    };
    let (wrapped, both) = (scene.ledger.wrapped, [gave, got]);
    let plain = || both.iter().all(|part| is_plain(scene.ledger, part));
    let found = unknown
        && scene.acts()
        && !is_fixed_rate(gave.units, got.units)
        && scene.ledger.uniques.is_empty()
        && both.iter().all(|part| part.token != Some(to) && is_indexed(scene, part))
        && !any_minted(scene.ledger)
        && (plain() && (direct() || is_for_coin(scene, gave, got))
            || counterparties::connect(scene, gave.amount(wrapped), got.amount(wrapped)));
    found.then(|| own.legs.clone())
}

/// Whether neither the called contract nor any event of the call is in a table, but for those that
/// run operations of smart accounts.
fn is_unknown(scene: &Scene<'_>) -> bool {
    scene.called.is_none_or(|called| called.kind == ContractKind::EntryPoint)
        && scene.venues.iter().all(|venue| venue.event.kind == EventKind::Operation)
}

/// Notes a trade that was recognized by its shape.
pub(super) fn note(scene: &Scene<'_>) -> Option<Note> {
    let detail = "found by its shape: one asset for another with counterparties that events \
                  confirm, by a contract that no table knows";
    let note = Note { kind: NoteKind::UnknownVenue, detail: detail.to_owned() };
    is_unknown(scene).then_some(note)
}

/// What the wallet gave and received, where that is one asset for one other.
fn parts(scene: &Scene<'_>, own: &Own) -> Option<(Part, Part)> {
    let token = |leg: &Leg| Part { token: Some(leg.token), units: leg.units };
    let coin = |units| Part { token: None, units };
    let measure = match own.measure {
        Measure::Unknown => native::value(scene, own),
        known @ (Measure::None | Measure::Gave(_) | Measure::Got(_)) => known,
    };
    match (own.legs.as_slice(), measure) {
        ([a, b], Measure::None | Measure::Unknown) if a.side != b.side => {
            let (sold, bought) = if a.side == Side::Sell { (a, b) } else { (b, a) };
            Some((token(sold), token(bought)))
        }
        ([leg], Measure::Gave(units)) if leg.side == Side::Buy => Some((coin(units), token(leg))),
        ([leg], Measure::Got(units)) if leg.side == Side::Sell => Some((token(leg), coin(units))),
        _ => None,
    }
}

/// Whether the wallet gave or received unwrapped native coin. Its further path is often not fully
/// known, so a sale of goods looks like an exchange.
fn moved_coin(ledger: &Ledger, wallet: &Account) -> bool {
    let coin = |m: &Move| m.asset == Asset::Native && (m.from == *wallet || m.to == *wallet);
    ledger.moves.iter().any(coin)
}

/// Whether a token is plain: not moved from or to its own contract as shares and claims are.
fn is_plain(ledger: &Ledger, part: &Part) -> bool {
    let Some(token) = part.token else { return true };
    let own = |m: &Move| m.from == token || m.to == token;
    !ledger.moves.iter().any(|m| m.asset == Asset::Token(token) && own(m))
}

/// Whether a token's transfers are indexed as ERC-20 requires. The first NFTs, like a few tokens of
/// that time, logged theirs without indexed words, and their last word is an id instead of an
/// amount.
fn is_indexed(scene: &Scene<'_>, part: &Part) -> bool {
    let Some(token) = part.token else { return true };
    let mut transfers =
        scene.tx.logs.iter().filter(|log| log.address == token && transfer(log).is_some());
    transfers.all(|log| log.topics.len() == 3)
}

/// Whether a token other than the wrapped native coin was minted or burnt.
fn any_minted(ledger: &Ledger) -> bool {
    let minted = |m: &Move| m.from == ZERO || m.to == ZERO;
    ledger.moves.iter().any(|m| minted(m) && !ledger.is_measure(m.asset))
}

/// Whether one account ended with what the wallet gave and without what the wallet received.
fn has_counterparty(ledger: &Ledger, wallet: &Account, gave: Part, got: Part) -> bool {
    let is = |part: Part, asset: Asset| match part.token {
        Some(token) => asset == Asset::Token(token),
        None => asset == Asset::Token(ledger.wrapped),
    };
    let mut flows: BTreeMap<Account, (Flow, Flow)> = BTreeMap::new();
    for m in &ledger.moves {
        for (account, came) in [(m.from, false), (m.to, true)] {
            let (given, gotten) = flows.entry(account).or_default();
            if is(gave, m.asset) {
                given.add(m.amount, came);
            } else if is(got, m.asset) {
                gotten.add(m.amount, came);
            }
        }
    }
    flows.iter().any(|(account, (given, gotten))| {
        *account != *wallet && given.got > given.gave && gotten.gave > gotten.got
    })
}

/// Whether the wallet exchanged loose coin for a token with one account, whose event states both
/// amounts, that of the coin with or without a fee. Goods have a price of few digits.
fn is_for_coin(scene: &Scene<'_>, gave: Part, got: Part) -> bool {
    let (token, amount, coin, buys) = match (gave.token, got.token) {
        (None, Some(token)) => (token, got.units, gave.units, true),
        (Some(token), None) => (token, gave.units, got.units, false),
        (Some(_), Some(_)) | (None, None) => return false,
    };
    let moves = |account: &Account| {
        scene.ledger.moves.iter().any(|m| {
            let (other, wallet) = if buys { (m.from, m.to) } else { (m.to, m.from) };
            m.asset == Asset::Token(token) && other == *account && wallet == *scene.wallet
        })
    };
    let is_coin = |stated: Units| {
        let lacks_fee = if buys { stated <= coin } else { stated >= coin };
        let is_near = stated.abs_diff(coin) <= coin / FEE_PART;
        lacks_fee && is_near && !is_short_price(stated, amount)
    };
    let states = |log: &Log| {
        let mut amounts = words(log).map(|word| absolute(units(word)));
        let names = || words(log).filter_map(address).any(|named| named == token);
        let has_amount = words(log).any(|word| absolute(units(word)) == amount);
        moves(&log.address)
            && (Some(log.address) == scene.tx.to || names())
            && has_amount
            && amounts.any(is_coin)
    };
    !is_short_price(coin, amount) && scene.tx.logs.iter().any(states)
}

/// Whether an event confirms an exchange: it contains both amounts, or both assets.
fn confirms(ledger: &Ledger, log: &Log, gave: Part, got: Part) -> bool {
    if is_movement(log) || log.address == ledger.wrapped {
        return false;
    }
    let amount = |part: Part| words(log).any(|word| units(word) == part.units);
    let asset = |part: Part| {
        words(log).filter_map(address).any(|named| match part.token {
            Some(token) => named == token,
            None => named == ledger.wrapped || named == NATIVE_PLACEHOLDER,
        })
    };
    let amounts = amount(gave) && amount(got);
    match (gave.token, got.token) {
        (Some(_), Some(_)) => amounts || (asset(gave) && asset(got)),
        // A number next to a price, as in an auction, may look like an amount.
        (None, _) | (_, None) => {
            amounts && [gave, got].into_iter().any(|part| part.token.is_some() && asset(part))
        }
    }
}
