//! The wallet's movements in one transaction, netted per asset.

use std::collections::{BTreeMap, BTreeSet};

use super::dividends;
use super::ledger::{Asset, Move, TRANSFER_CALL};
use super::scene::{Scene, Venue};
use super::tips;
use super::transaction::{Account, Log, NativeFlows, Word};
use super::words::{ZERO, address, units, word, words};
use crate::decode::flow::Flow;
use crate::domain::{Side, Units};
use crate::registry::{ContractKind, EventKind};

/// A trade has few tokens, but a contract that distributes tokens may log thousands.
pub(super) const LEG_COUNT_MAX: usize = 64;
/// Limit of gas sponsor events per transaction: any contract may name a sponsor and log thousands.
const SPONSOR_LOG_COUNT_MAX: usize = 64;
pub(super) const TWO: Units = Units::from_limbs([2, 0, 0, 0]);

/// The net native coin, loose and wrapped, that the wallet gave or received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// It gave as much as it received, or nothing moved.
    None,
    Gave(Units),
    Got(Units),
    /// Inner calls may have moved more than is known.
    Unknown,
}

/// One token that the wallet gave or received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leg {
    pub(super) token: Account,
    pub(super) side: Side,
    pub(super) units: Units,
}

/// The wallet's movements in one transaction.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) legs: Vec<Leg>,
    /// The legs without those that only follow another leg (see `follows`).
    pub(super) exchanged: Vec<Leg>,
    /// Tokens received next to an exchange from accounts that exchanged nothing. Each is a purchase
    /// of unknown value, as the balance shows, and does not enter the values of the others.
    pub(super) income: Vec<Leg>,
    pub(super) measure: Measure,
    /// The value that it sent with the transaction, and its known movements of native coin.
    pub(super) known: Flow,
}

impl Own {
    pub(super) fn read(scene: &Scene<'_>) -> Self {
        let (mut legs, mut known) = (Vec::new(), Flow::default());
        let mut flows = scene.ledger.of(scene.wallet);
        leave_out_sponsors(scene, &mut flows);
        leave_out_gas_tokens(scene, &mut flows);
        leave_out_deposits(scene, &mut flows);
        leave_out_refunds(scene, &mut flows);
        add_escrow(scene, &mut flows);
        let unseen = dividends::remove(scene, &mut flows);
        let (charged, came) = (charged(scene), scene.coin_from_caller());
        if let Some(flow) = flows.get_mut(&Asset::Native) {
            flow.gave = flow.gave.saturating_sub(charged).saturating_sub(tips::paid(scene));
            // Call value that stays in the wallet is not part of a trade.
            flow.got = flow.got.saturating_sub(came.saturating_sub(flow.gave));
        }
        let wrapped = flows.get(&Asset::Token(scene.ledger.wrapped)).copied().unwrap_or_default();
        for (asset, flow) in flows {
            if scene.ledger.is_measure(asset) {
                known.join(flow);
            } else if let Asset::Token(token) = asset {
                legs.extend(flow.net().map(|(side, units)| Leg { token, side, units }));
            }
        }
        let measure = match scene.tx.native {
            NativeFlows::Calls(_)
            | NativeFlows::Unknown
            | NativeFlows::Gone
            | NativeFlows::Refused
                if scene.ledger.native_known =>
            {
                known.into()
            }
            // A net change includes network fees, dividends and call value that went on.
            NativeFlows::Net { gained, .. }
                if unseen || pays_network(scene) || ![Units::ZERO, gained].contains(&came) =>
            {
                Measure::Unknown
            }
            NativeFlows::Net { gained, lost } => {
                let (mut flow, got) = (wrapped, gained.saturating_sub(came));
                flow.join(Flow { got, gave: lost.saturating_sub(charged) });
                flow.into()
            }
            NativeFlows::Calls(_)
            | NativeFlows::Unknown
            | NativeFlows::Gone
            | NativeFlows::Refused => Measure::Unknown,
        };
        let few = legs.len() <= LEG_COUNT_MAX;
        let follows = |leg: &&Leg| few && follows(scene, &legs, leg);
        let exchanged = legs.iter().filter(|leg| !follows(leg)).copied().collect();
        let mut own = Self { legs, exchanged, income: Vec::new(), measure, known };
        if Measure::from(known) == Measure::None && own.got() && !own.gave() {
            own.measure = paid_before(scene, &own).map_or(measure, Measure::Gave);
        }
        own
    }

    pub(super) fn gave(&self) -> bool {
        self.exchanged.iter().any(|leg| leg.side == Side::Sell)
    }

    pub(super) fn got(&self) -> bool {
        self.exchanged.iter().any(|leg| leg.side == Side::Buy)
    }
}

/// Removes the tokens that gas sponsors took or returned: they pay for the network, not the trade.
fn leave_out_sponsors(scene: &Scene<'_>, flows: &mut BTreeMap<Asset, Flow>) {
    for (asset, sponsored) in of_sponsors(scene) {
        if let Some(flow) = flows.get_mut(&asset) {
            flow.gave = flow.gave.saturating_sub(sponsored.gave);
            flow.got = flow.got.saturating_sub(sponsored.got);
        }
    }
}

/// Removes the gas tokens that the wallet burns: they pay for the network, not for the trade.
fn leave_out_gas_tokens(scene: &Scene<'_>, flows: &mut BTreeMap<Asset, Flow>) {
    let tokens = scene.chain.gas_tokens.iter().filter_map(|token| token.bytes().try_into().ok());
    for asset in tokens.map(Asset::Token) {
        let Some(flow) = flows.get_mut(&asset) else { continue };
        let burns = |m: &&Move| m.asset == asset && m.from == *scene.wallet && m.to == ZERO;
        for m in scene.ledger.moves.iter().filter(burns) {
            flow.gave = flow.gave.saturating_sub(m.amount);
        }
    }
}

/// Removes native coin that moves between an account and its EIP-4337 entry point: a deposit for
/// the network fee, or its refund.
fn leave_out_deposits(scene: &Scene<'_>, flows: &mut BTreeMap<Asset, Flow>) {
    let runs = |account: &Account| {
        scene.contract(account).is_some_and(|known| known.kind == ContractKind::EntryPoint)
    };
    let Some(flow) = flows.get_mut(&Asset::Native) else { return };
    for m in scene.ledger.moves.iter().filter(|m| m.asset == Asset::Native) {
        if m.from == *scene.wallet && runs(&m.to) {
            flow.gave = flow.gave.saturating_sub(m.amount);
        } else if m.to == *scene.wallet && runs(&m.from) {
            flow.got = flow.got.saturating_sub(m.amount);
        }
    }
}

/// Removes native coin that a wallet acting as a contract pays directly to the sender: it repays a
/// relayer for the network fee. If the sender gave anything, the payment may be its price and
/// stays.
fn leave_out_refunds(scene: &Scene<'_>, flows: &mut BTreeMap<Asset, Flow>) {
    let (moves, sender) = (&scene.ledger.moves, scene.tx.from);
    let relays = scene.acts_inside() && !moves.iter().any(|m| m.from == sender);
    let Some(flow) = flows.get_mut(&Asset::Native).filter(|_| relays) else { return };
    for m in moves.iter().filter(|m| m.asset == Asset::Native) {
        if m.from == *scene.wallet && m.to == sender {
            flow.gave = flow.gave.saturating_sub(m.amount);
        }
    }
}

/// Adds tokens that the wallet's orders sold and that had left it in an earlier transaction, if the
/// venue gave at least as much here. Only known contracts count: any other could log another
/// account.
fn add_escrow(scene: &Scene<'_>, flows: &mut BTreeMap<Asset, Flow>) {
    let mut sold: BTreeMap<(Asset, Account), Units> = BTreeMap::new();
    for venue in &scene.venues {
        let Some(escrow) = venue.event.escrow.filter(|_| venue.contract.is_some()) else {
            continue;
        };
        let word = |at| words(venue.log).nth(at);
        let account = |at| word(at).and_then(address);
        if let (Some(token), Some(amount)) = (escrow.token.and_then(account), word(escrow.amount))
            && account(escrow.to) == Some(*scene.wallet)
        {
            let sum = sold.entry((Asset::Token(token), venue.log.address)).or_default();
            *sum = sum.saturating_add(units(amount));
        }
    }
    for ((asset, venue), amount) in sold {
        let gave = scene.ledger.of(&venue).get(&asset).map_or(Units::ZERO, |flow| flow.gave);
        let flow = flows.entry(asset).or_default();
        if flow.gave.is_zero() && gave >= amount {
            flow.gave = amount;
        }
    }
}

/// The native coin that events state as paid by the wallet to a platform on top of its trade.
fn charged(scene: &Scene<'_>) -> Units {
    let stated = scene.venues.iter().filter_map(|venue| {
        let amount = words(venue.log).nth(venue.event.charges?).map(units)?;
        words(venue.log).filter_map(address).any(|payer| payer == *scene.wallet).then_some(amount)
    });
    stated.fold(Units::ZERO, Units::saturating_add)
}

/// The gas sponsors or relayers that the wallet's operations name; the zero address if the wallet
/// pays for itself.
fn sponsors(scene: &Scene<'_>) -> impl Iterator<Item = Account> {
    scene.operations().filter_map(|one| one.account(one.event.sponsor?))
}

/// Whether the wallet's balance change includes network fees, paid directly or repaid to a relayer.
fn pays_network(scene: &Scene<'_>) -> bool {
    let repaid =
        |at: usize, log: &Log| words(log).nth(at).is_some_and(|word| !units(word).is_zero());
    let repays = |one: &Venue<'_>| one.event.repays.is_some_and(|at| repaid(at, one.log));
    sponsors(scene).any(|one| one == ZERO) || scene.operations().any(repays)
}

/// The amounts that events of the wallet's operations state as paid back to who sent them.
fn repaid(scene: &Scene<'_>) -> BTreeSet<Units> {
    let stated = |one: &Venue<'_>| words(one.log).nth(one.event.repays?).map(units);
    scene.operations().filter_map(stated).filter(|amount| !amount.is_zero()).collect()
}

/// What the wallet gave to, and got back from, the gas sponsors of its operations or accounts that
/// collect for them, or as an operation's event states it (a Safe's, which names no account; a
/// delegation's, which has the terms). If that account is the zero address, the tokens were burnt
/// or minted.
pub(super) fn of_sponsors(scene: &Scene<'_>) -> BTreeMap<Asset, Flow> {
    let sponsors: BTreeSet<Account> = sponsors(scene).filter(|one| *one != ZERO).collect();
    let logs = scene.tx.logs.iter().filter(|log| sponsors.contains(&log.address));
    let logs: Vec<&Log> = logs.take(SPONSOR_LOG_COUNT_MAX).collect();
    let mut with_others: BTreeMap<(Asset, Account), Flow> = BTreeMap::new();
    let (repaid, signed) = (repaid(scene), signed(scene));
    let may_pay = !sponsors.is_empty() || !repaid.is_empty() || !signed.is_empty();
    let is_token = |m: &&Move| may_pay && !scene.ledger.is_measure(m.asset);
    for m in scene.ledger.moves.iter().filter(is_token) {
        if m.from == *scene.wallet {
            with_others.entry((m.asset, m.to)).or_default().add(m.amount, false);
        } else if m.to == *scene.wallet {
            with_others.entry((m.asset, m.from)).or_default().add(m.amount, true);
        }
    }
    let mut flows: BTreeMap<Asset, Flow> = BTreeMap::new();
    let few = with_others.len() <= LEG_COUNT_MAX;
    for ((asset, other), flow) in with_others {
        let repays = matches!(flow.net(), Some((Side::Sell, kept)) if repaid.contains(&kept));
        let sends = few && is_signed(scene, &signed, (asset, other), flow);
        if repays || sends || sponsors.contains(&other) || charges(&logs, (asset, other), flow) {
            flows.entry(asset).or_default().join(flow);
        }
    }
    flows
}

/// Whether a gas sponsor's event states what an account kept of the wallet's tokens: it has the
/// amount, and the token or the account.
fn charges(logs: &[&Log], (asset, collector): (Asset, Account), flow: Flow) -> bool {
    let (Asset::Token(token), Some((Side::Sell, kept))) = (asset, flow.net()) else { return false };
    let names = |log: &Log| {
        words(log).filter_map(address).any(|named| named == token || named == collector)
    };
    logs.iter().any(|log| words(log).any(|word| units(word) == kept) && names(log))
}

/// The events of the wallet's operations by contracts of the tables: any other contract could log
/// terms that the wallet has not signed.
fn signed<'a>(scene: &Scene<'a>) -> Vec<&'a Log> {
    let known = scene.operations().filter(|one| one.contract.is_some());
    known.map(|one| one.log).take(SPONSOR_LOG_COUNT_MAX).collect()
}

/// Whether the terms of a delegation state a transfer by the wallet itself, as those of `MetaMask`
/// state the fee for its relayer: packed as token, receiver and amount, or as the call of the
/// token. A receiver that gave anything takes part in the exchange.
fn is_signed(
    scene: &Scene<'_>,
    signed: &[&Log],
    (asset, receiver): (Asset, Account),
    flow: Flow,
) -> bool {
    let (Asset::Token(token), Some((Side::Sell, sent))) = (asset, flow.net()) else { return false };
    let amount: Word = sent.to_be_bytes();
    let packed = [&token[..], &receiver, &amount].concat();
    let call = [&TRANSFER_CALL[..], &[0; 12], &receiver, &amount].concat();
    let takes_part = || scene.ledger.moves.iter().any(|m| m.from == receiver);
    let has = |log: &Log, part: &[u8]| log.data.windows(part.len()).any(|at| at == part);
    signed.iter().any(|log| has(log, &packed) || has(log, &call)) && !takes_part()
}

/// The native coin of an order that left the wallet in an earlier transaction. The order's owner is
/// the eth-flow contract, so the received amount identifies the wallet's order.
fn paid_before(scene: &Scene<'_>, own: &Own) -> Option<Units> {
    let [leg] = own.legs.as_slice() else { return None };
    let mut fitting = scene.venues.iter().filter_map(|venue| {
        if venue.event.kind != EventKind::CowTrade {
            return None;
        }
        let order = CowOrder::read(venue.log)?;
        let owner = scene.contract(&order.owner).map(|contract| contract.kind);
        let fits = owner == Some(ContractKind::EthFlow)
            && (order.bought == leg.token || scene.is_mirror(&order.bought))
            && order.bought_units == leg.units;
        fits.then_some(order.sold_units)
    });
    let only = fitting.next()?;
    fitting.all(|other| other == only).then_some(only)
}

/// One order that `GPv2Settlement` filled: `Trade(owner, sellToken, buyToken, sellAmount,
/// buyAmount, feeAmount, orderUid)`; the amount sold includes the fee.
struct CowOrder {
    owner: Account,
    bought: Account,
    sold_units: Units,
    bought_units: Units,
}

impl CowOrder {
    fn read(log: &Log) -> Option<Self> {
        Some(Self {
            owner: address(log.topics.get(1)?)?,
            bought: address(word(log, 1)?)?,
            sold_units: units(word(log, 2)?),
            bought_units: units(word(log, 3)?),
        })
    }
}

impl From<Flow> for Measure {
    fn from(flow: Flow) -> Self {
        match flow.net() {
            None => Self::None,
            Some((Side::Buy, units)) => Self::Got(units),
            Some((Side::Sell, units)) => Self::Gave(units),
        }
    }
}

/// Whether a token was only minted or burnt in step with an exchanged token on the same side: it is
/// a dividend tracker that repeats a holder's balance, not an asset of its own. It moves by at
/// least as much, because trackers count whole balances and drop those below their minimum.
fn follows(scene: &Scene<'_>, legs: &[Leg], leg: &Leg) -> bool {
    let asset = Asset::Token(leg.token);
    if scene.exchanged(asset) || scene.venues.iter().any(|v| v.log.address == leg.token) {
        return false;
    }
    let mut moves = scene.ledger.moves.iter().filter(|m| m.asset == asset);
    let repeats = moves.all(|m| match leg.side {
        Side::Buy => m.from == ZERO || m.to != *scene.wallet,
        Side::Sell => m.to == ZERO || m.from != *scene.wallet,
    });
    let same = |other: &Leg| {
        let exchanged = scene.exchanged(Asset::Token(other.token));
        let in_step = leg.units >= other.units && leg.units / TWO <= other.units;
        other.side == leg.side && in_step && exchanged
    };
    repeats && legs.iter().any(same)
}
