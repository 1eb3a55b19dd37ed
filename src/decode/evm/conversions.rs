//! Which tokens a conversion at a fixed price exchanged: a peg module's event states an amount of
//! one token and a fee in the other, and names neither.

use super::fixed_rate::are_alike;
use super::ledger::{Asset, Ledger, Move, transfer};
use super::transaction::{Account, Log, Transaction};
use super::words::{ZERO, units, word, words};
use crate::domain::{Side, Units};
use crate::registry::{Event, Peg};

/// Events of one transaction that are read: any contract may log more.
const EVENT_COUNT_MAX: usize = 16;
/// Logs before an event among which its two tokens are: a module logs it behind their transfers.
const LOG_COUNT_MAX: usize = 16;

/// What one event converted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conversion {
    taken: Move,
    given: Move,
    /// Whether a wallet ended with the one for the other, and so traded nothing by it.
    pub(super) is_wallets: bool,
}

/// The conversions of a transaction, with the events by the places of their logs.
pub(super) fn conversions(
    tx: &Transaction,
    events: &[(usize, &Event)],
    ledger: &Ledger,
    wallet: &Account,
) -> Vec<Conversion> {
    let pegs = events.iter().filter(|(_, event)| event.mints.or(event.burns).is_some());
    let mut read = Vec::new();
    for (at, event) in pegs.take(EVENT_COUNT_MAX) {
        if let Some((log, before)) = tx.logs.get(..=*at).and_then(<[Log]>::split_last) {
            read.extend(Conversion::read(event, log, before));
        }
    }
    if !read.is_empty() {
        let flows = ledger.of(wallet);
        for one in &mut read {
            let has = |m: &Move, side| {
                let net = flows.get(&m.asset).and_then(|flow| flow.net());
                net == Some((side, m.amount))
            };
            one.is_wallets = has(&one.taken, Side::Sell) && has(&one.given, Side::Buy);
        }
    }
    read
}

impl Conversion {
    /// By the last movements before its event that fit.
    fn read(event: &Event, log: &Log, before: &[Log]) -> Option<Self> {
        let (Peg { amount, fee }, mints) = match (event.mints, event.burns) {
            (Some(peg), _) => (peg, true),
            (None, peg) => (peg?, false),
        };
        let stated = |at| words(log).nth(at).map(units);
        let (amount, fee) = (stated(amount)?, stated(fee)?);
        let moves = || before.iter().rev().take(LOG_COUNT_MAX).filter_map(moved);
        let between = |m: &Move| m.from != ZERO && m.to != ZERO && !m.amount.is_zero();
        let held = moves().find(|m| between(m) && m.amount == amount)?;
        let made = |m: &Move| {
            let hands = if mints { m.from } else { m.to };
            (hands == ZERO || hands == log.address) && m.asset != held.asset
        };
        let whole = |units: Units| {
            if mints { units.checked_add(fee) } else { units.checked_sub(fee) }
        };
        let fits = |m: &Move| whole(m.amount).is_some_and(|whole| are_alike(whole, amount));
        let pegged = moves().find(|m| made(m) && fits(m))?;
        let (taken, given) = if mints { (held, pegged) } else { (pegged, held) };
        Some(Self { taken, given, is_wallets: false })
    }

    /// The token that one of the two became, or was.
    pub(super) fn other(&self, asset: Asset) -> Option<Asset> {
        match [self.taken.asset, self.given.asset] {
            [taken, given] if taken == asset => Some(given),
            [taken, given] if given == asset => Some(taken),
            _ => None,
        }
    }
}

fn moved(log: &Log) -> Option<Move> {
    let (from, to) = transfer(log)?;
    let amount = units(word(log, if log.topics.len() == 1 { 2 } else { 0 })?);
    Some(Move { asset: Asset::Token(log.address), from, to, amount })
}
