//! Finds the two tokens of a conversion at a fixed price. A peg module's event states an amount of
//! one token and a fee in the other without naming either; other conversion events name both
//! tokens.

use super::ledger::{Asset, Ledger, Move, is_movement, token_move};
use super::transaction::{Account, Log, Transaction, Word};
use super::words::{ZERO, address, topic, units, word, words};
use crate::decode::fixed_rate::are_alike;
use crate::domain::{Side, Units};
use crate::registry::{Event, Peg};

/// Limit of conversion events per transaction, because any contract may log more.
const EVENT_COUNT_MAX: usize = 16;
/// How many logs before an event are searched for its tokens, whose transfers precede it.
const LOG_COUNT_MAX: usize = 16;

/// `Deposit(address,address,uint256,uint256)` of a vault (EIP-4626): sender, owner, assets, shares.
const DEPOSITED: Word = topic("dcbc1c05240f31ff3ad067ef1ee35ce4997762752e3a095284754544f4c709d7");
/// `Withdraw(address,address,address,uint256,uint256)`: sender, receiver, owner, assets, shares.
const WITHDRAWN: Word = topic("fbde797d201c681b91056529119e0b02407c7bb96a4a2c75c01fc9667232c8db");

/// A conversion event, its index among the logs, and the assets that it names.
pub(super) struct Placed<'a> {
    pub(super) at: usize,
    pub(super) event: &'a Event,
    pub(super) assets: &'a [Asset],
}

/// The movements of the two assets that one event converted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conversion {
    sides: [Move; 2],
    /// Whether the wallet converted for itself, so that it is no trade: over the transaction it
    /// gave at least as much of the one asset and received at most as much of the other (an
    /// aggregator may take a fee).
    pub(super) is_wallets: bool,
}

pub(super) fn conversions(
    tx: &Transaction,
    events: &[Placed<'_>],
    ledger: &Ledger,
    wallet: &Account,
) -> Vec<Conversion> {
    let mut found = Vec::new();
    for Placed { at, event, assets } in events.iter().take(EVENT_COUNT_MAX) {
        if let Some((log, before)) = tx.logs.get(..=*at).and_then(<[Log]>::split_last) {
            let sides = pegged(event, log, before).or_else(|| named(assets, before));
            found.extend(sides.map(|sides| Conversion { sides, is_wallets: false }));
        }
    }
    mark_own(&mut found, ledger, wallet);
    found
}

/// Conversions into or out of vault shares, wrapped tokens and shares of pools: tokens whose own
/// contract minted or burnt them in exchange for another token. The inner token is the first side.
pub(super) fn wrappers(tx: &Transaction, ledger: &Ledger, wallet: &Account) -> Vec<Conversion> {
    let (mut found, moves) = (Vec::new(), &ledger.moves);
    let made = |m: &&Move| (m.from == ZERO || m.to == ZERO) && !ledger.is_measure(m.asset);
    for outer in moves.iter().filter(made).take(EVENT_COUNT_MAX) {
        let by_outer = |account: Account| Asset::Token(account) == outer.asset;
        let is_inner = |m: &&Move| {
            let passed = if outer.from == ZERO { m.to } else { m.from };
            by_outer(passed) && m.asset != outer.asset && !ledger.is_measure(m.asset)
        };
        let direct = moves.iter().find(is_inner);
        let stated = stated(tx, ledger, outer).filter(|inner| Some(*inner) != direct);
        let own = direct.or(stated);
        let pooled = if own.is_none() { pooled(tx, ledger, outer) } else { None };
        let all = direct.into_iter().chain(stated).chain(pooled);
        found.extend(all.map(|inner| Conversion { sides: [*inner, *outer], is_wallets: false }));
    }
    mark_own(&mut found, ledger, wallet);
    found
}

/// The movement of the inner token that a vault's event states for a share. A vault may keep its
/// assets in a lending market, so the movement need not begin or end at the vault.
fn stated<'a>(tx: &Transaction, ledger: &'a Ledger, share: &Move) -> Option<&'a Move> {
    let is_vault = |log: &&Log| Asset::Token(log.address) == share.asset;
    tx.logs.iter().filter(is_vault).find_map(|log| {
        let (minted, account) = match log.topics.as_slice() {
            [DEPOSITED, sender, _] => (true, address(sender)?),
            [WITHDRAWN, _, receiver, _] => (false, address(receiver)?),
            _ => return None,
        };
        let (assets, shares) = (units(word(log, 0)?), units(word(log, 1)?));
        if minted != (share.from == ZERO) || shares != share.amount {
            return None;
        }
        ledger.moves.iter().find(|m| {
            let passed = if minted { m.from } else { m.to };
            let is_other = m.asset != share.asset && !ledger.is_measure(m.asset);
            passed == account && m.amount == assets && is_other
        })
    })
}

/// The movement that a pool's own event states for a share which is a token of another contract, as
/// metapools trade them. The event must name the provider, who received or gave the share.
fn pooled<'a>(tx: &Transaction, ledger: &'a Ledger, share: &Move) -> Option<&'a Move> {
    let minted = share.from == ZERO;
    let provider = if minted { share.to } else { share.from };
    let names = |log: &&Log| !is_movement(log) && log.mentions(&provider);
    tx.logs.iter().filter(names).take(EVENT_COUNT_MAX).find_map(|log| {
        let sides = if minted { (provider, log.address) } else { (log.address, provider) };
        let stated = |m: &Move| words(log).any(|word| units(word) == m.amount);
        ledger.moves.iter().find(|m| {
            let is_other = m.asset != share.asset && !ledger.is_measure(m.asset);
            (m.from, m.to) == sides && is_other && stated(m)
        })
    })
}

/// Marks the conversions that the wallet made for itself.
fn mark_own(found: &mut [Conversion], ledger: &Ledger, wallet: &Account) {
    if found.is_empty() {
        return;
    }
    let flows = ledger.of(wallet);
    let net = |m: &Move| flows.get(&m.asset).and_then(|flow| flow.net());
    for one in found {
        let [(a, first), (b, second)] = one.sides.map(|m| (m.amount, net(&m)));
        one.is_wallets = match (first, second) {
            (Some((Side::Sell, sold)), Some((Side::Buy, bought))) => sold >= a && bought <= b,
            (Some((Side::Buy, bought)), Some((Side::Sell, sold))) => sold >= b && bought <= a,
            _ => false,
        };
    }
}

impl Conversion {
    /// The other asset of the conversion, if `asset` is one of its two.
    pub(super) fn other(&self, asset: Asset) -> Option<Asset> {
        match self.sides.map(|m| m.asset) {
            [first, second] if first == asset => Some(second),
            [first, second] if second == asset => Some(first),
            _ => None,
        }
    }

    /// The movement of what was wrapped, if an asset is the wrapped token of the conversion.
    pub(super) fn inner_of(&self, asset: Asset) -> Option<&Move> {
        let [inner, outer] = &self.sides;
        (outer.asset == asset).then_some(inner)
    }

    /// The assets of a wrapped token's conversion, unless the wallet converted for itself.
    pub(super) fn inner_and_outer(&self) -> Option<[Asset; 2]> {
        (!self.is_wallets).then_some(self.sides.map(|m| m.asset))
    }
}

/// Finds the latest movements before a peg module's event that fit its amount and fee.
fn pegged(event: &Event, log: &Log, before: &[Log]) -> Option<[Move; 2]> {
    let (Peg { amount, fee }, mints) = match (event.mints, event.burns) {
        (Some(peg), _) => (peg, true),
        (None, peg) => (peg?, false),
    };
    let stated = |at| words(log).nth(at).map(units);
    let (amount, fee) = (stated(amount)?, fee.map_or(Some(Units::ZERO), stated)?);
    let between = |m: &Move| m.from != ZERO && m.to != ZERO && !m.amount.is_zero();
    let held = last(before, |m| between(m) && m.amount == amount)?;
    let made = |m: &Move| {
        let hands = if mints { m.from } else { m.to };
        (hands == ZERO || hands == log.address) && m.asset != held.asset
    };
    let whole = |units: Units| if mints { units.checked_add(fee) } else { units.checked_sub(fee) };
    let fits = |m: &Move| whole(m.amount).is_some_and(|whole| are_alike(whole, amount));
    Some([held, last(before, |m| made(m) && fits(m))?])
}

/// Finds the latest movement of each of the two tokens that an event names.
fn named(assets: &[Asset], before: &[Log]) -> Option<[Move; 2]> {
    let [first, second] = assets else { return None };
    let moved = |asset: &Asset| last(before, |m| m.asset == *asset && !m.amount.is_zero());
    Some([moved(first)?, moved(second)?])
}

fn last(before: &[Log], fits: impl Fn(&Move) -> bool) -> Option<Move> {
    before.iter().rev().take(LOG_COUNT_MAX).filter_map(token_move).find(fits)
}
