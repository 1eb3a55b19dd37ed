//! Decides whether what a wallet gave and received is a trade.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{Asset, Flow, Ledger, Unique};
use super::native;
use super::scene::{Scene, Venue, exchanges};
use super::shape;
use super::side_legs;
use super::transaction::{Account, Log, NativeFlows};
use super::words::{ZERO, address, units, word};
use crate::decode::{Note, NoteKind};
use crate::domain::{Side, Units};
use crate::registry::{ContractKind, EventKind};

/// A trade has few tokens; a contract that distributes tokens may log thousands.
const LEG_COUNT_MAX: usize = 64;

/// What the wallet gave or received of the measure: native coin, loose and wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// As much as it received, or nothing.
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
    /// The legs that do not only follow another.
    pub(super) exchanged: Vec<Leg>,
    pub(super) measure: Measure,
    /// Native coin that it gave with the transaction, and its known movements of the measure.
    pub(super) known: Flow,
}

impl Own {
    pub(super) fn read(scene: &Scene<'_>, ledger: &Ledger, wallet: &Account) -> Self {
        let (mut legs, mut known) = (Vec::new(), Flow::default());
        let mut flows = ledger.of(wallet);
        leave_out_sponsors(scene, ledger, wallet, &mut flows);
        for (asset, flow) in flows {
            if ledger.is_measure(asset) {
                known.got = known.got.saturating_add(flow.got);
                known.gave = known.gave.saturating_add(flow.gave);
            } else if let Asset::Token(token) = asset {
                legs.extend(net(flow).map(|(side, units)| Leg { token, side, units }));
            }
        }
        let measure = match scene.tx.native {
            NativeFlows::Calls(_) | NativeFlows::Unknown if ledger.native_known => known.into(),
            NativeFlows::Net { gained, lost } => {
                let mut flow = wrapped_flow(ledger, wallet);
                flow.got = flow.got.saturating_add(gained);
                flow.gave = flow.gave.saturating_add(lost);
                flow.into()
            }
            NativeFlows::Calls(_) | NativeFlows::Unknown => Measure::Unknown,
        };
        let few = legs.len() <= LEG_COUNT_MAX;
        let follows = |leg: &&Leg| few && side_legs::follows(scene, ledger, wallet, &legs, leg);
        let exchanged = legs.iter().filter(|leg| !follows(leg)).copied().collect();
        let mut own = Self { legs, exchanged, measure, known };
        if Measure::from(known) == Measure::None && own.got() && !own.gave() {
            own.measure = paid_before(scene, &own).map_or(measure, Measure::Gave);
        }
        own
    }

    pub(super) fn gave(&self) -> bool {
        self.legs.iter().any(|leg| leg.side == Side::Sell)
    }

    pub(super) fn got(&self) -> bool {
        self.legs.iter().any(|leg| leg.side == Side::Buy)
    }
}

/// Removes the tokens that gas sponsors took, and returned: they pay for the network, not for the
/// trade. An operation of a smart account (EIP-4337) names its sponsor.
fn leave_out_sponsors(
    scene: &Scene<'_>,
    ledger: &Ledger,
    wallet: &Account,
    flows: &mut BTreeMap<Asset, Flow>,
) {
    let operated = |venue: &&Venue<'_>| venue.event.kind == EventKind::Operation;
    let sponsor = |log: &Log| match log.topics.as_slice() {
        [_, _, sender, sponsor] if address(sender) == Some(*wallet) => address(sponsor),
        _ => None,
    };
    let operations = scene.venues.iter().filter(operated);
    let sponsors: Vec<Account> = operations.filter_map(|venue| sponsor(venue.log)).collect();
    if sponsors.is_empty() {
        return;
    }
    for m in ledger.moves.iter().filter(|m| !ledger.is_measure(m.asset)) {
        let Some(flow) = flows.get_mut(&m.asset) else { continue };
        if m.from == *wallet && sponsors.contains(&m.to) {
            flow.gave = flow.gave.saturating_sub(m.amount);
        } else if m.to == *wallet && sponsors.contains(&m.from) {
            flow.got = flow.got.saturating_sub(m.amount);
        }
    }
}

/// Native coin that an order gave which had left the wallet in an earlier transaction: the eth-flow
/// contract is the order's owner, and the amount received identifies the wallet's order.
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

fn wrapped_flow(ledger: &Ledger, wallet: &Account) -> Flow {
    ledger.of(wallet).get(&Asset::Token(ledger.wrapped)).copied().unwrap_or_default()
}

fn net(flow: Flow) -> Option<(Side, Units)> {
    let Flow { got, gave } = flow;
    match got.cmp(&gave) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some((Side::Buy, got.saturating_sub(gave))),
        std::cmp::Ordering::Less => Some((Side::Sell, gave.saturating_sub(got))),
    }
}

impl From<Flow> for Measure {
    fn from(flow: Flow) -> Self {
        match net(flow) {
            None => Self::None,
            Some((Side::Buy, units)) => Self::Got(units),
            Some((Side::Sell, units)) => Self::Gave(units),
        }
    }
}

/// The legs that were traded, or why there is no trade.
pub(super) fn traded(
    scene: &Scene<'_>,
    ledger: &Ledger,
    wallet: &Account,
    own: &Own,
) -> Result<Vec<Leg>, Option<Note>> {
    let routed = scene.calls_router() && scene.tx.from == *wallet;
    let all = routed || scene.fills();
    if !all && !scene.venues.iter().any(|venue| exchanges(venue.event.kind)) {
        return shape::traded(scene, ledger, wallet, own).ok_or(None);
    }
    refusal(scene, ledger, wallet, own, routed)?;
    let known = |leg: &&Leg| all || scene.exchanged(Asset::Token(leg.token));
    let legs: Vec<Leg> = own.exchanged.iter().filter(known).copied().collect();
    let has = |legs: &[Leg], side| legs.iter().any(|leg| leg.side == side);
    let (gave, got) = (has(&legs, Side::Sell), has(&legs, Side::Buy));
    let (native_gave, native_got) = match own.measure {
        Measure::None => (false, false),
        Measure::Gave(_) => (true, false),
        Measure::Got(_) => (false, true),
        Measure::Unknown => native::sides(scene, ledger, wallet, own),
    };
    // If a token moved that no venue exchanged, native coin on the same side is a fee or change.
    let other = |side| own.exchanged.iter().any(|leg| leg.side == side && !legs.contains(leg));
    let gave = gave || (native_gave && !other(Side::Sell));
    let got = got || (native_got && !other(Side::Buy));
    match (gave, got) {
        (true, true) if side_legs::went_on(scene, ledger, wallet, own, &legs) => {
            no(NoteKind::OneSided, "most of what the exchange gave went on to another account")
        }
        (true, true) if !legs.is_empty() => Ok(legs),
        (true, true) | (false, false) => Err(None),
        (true, false) => no(NoteKind::OneSided, "a venue ran and the wallet only gave"),
        (false, true) if circled(ledger, wallet, own) => {
            no(NoteKind::RoundTrip, "what the wallet gave came back as the same asset")
        }
        (false, true) => no(NoteKind::OneSided, "a venue ran and the wallet only got"),
    }
}

/// Other events by which the exchange is not a trade of the wallet. `routed`: the wallet called a
/// contract that trades for its callers.
fn refusal(
    scene: &Scene<'_>,
    ledger: &Ledger,
    wallet: &Account,
    own: &Own,
    routed: bool,
) -> Result<(), Option<Note>> {
    let known = |venue: &Venue<'_>| exchanges(venue.event.kind) && venue.log.address == *wallet;
    if scene.venues.iter().any(known) {
        // A pool is the counterparty of trades, which are not trades of its own.
        return Err(None);
    }
    if own.legs.len() > LEG_COUNT_MAX {
        return no(NoteKind::OneSided, "more tokens moved than any trade has");
    }
    if own.exchanged.iter().any(|leg| is_share(scene, ledger, wallet, leg)) {
        return no(NoteKind::Liquidity, "shares of a pool or a vault were minted or burnt");
    }
    let kinds = || scene.venues.iter().map(|venue| venue.event.kind);
    if !routed
        && kinds().any(|kind| kind == EventKind::Position)
        && !kinds().any(|kind| kind == EventKind::Curve)
    {
        // The position took what was swapped, and only change came back.
        return no(NoteKind::Liquidity, "a position of liquidity grew");
    }
    let uniques: BTreeSet<Unique> = ledger.uniques.iter().copied().collect();
    if let Some(unique) = uniques.iter().find(|unique| {
        (unique.from == *wallet || unique.to == *wallet)
            && !own.legs.iter().any(|leg| leg.token == unique.token)
            && !side_legs::mirrors(scene, wallet, own, unique)
    }) {
        let positions = scene.contract(&unique.token);
        let positions = positions.is_some_and(|c| c.kind == ContractKind::Positions);
        let kind = if positions { NoteKind::Liquidity } else { NoteKind::OneSided };
        return no(kind, "a token that is one of its kind changed hands");
    }
    Ok(())
}

/// Whether the wallet gave some of the one asset of which it has more at the end.
fn circled(ledger: &Ledger, wallet: &Account, own: &Own) -> bool {
    let flows = ledger.of(wallet);
    match own.legs.as_slice() {
        [leg] => flows.get(&Asset::Token(leg.token)).is_some_and(|flow| !flow.gave.is_zero()),
        _ => false,
    }
}

fn no<T>(kind: NoteKind, detail: &str) -> Result<T, Option<Note>> {
    Err(Some(Note { kind, detail: detail.to_owned() }))
}

/// Whether a token is a share, minted or burnt here for a deposit or withdrawal: no venue exchanged
/// it.
fn is_share(scene: &Scene<'_>, ledger: &Ledger, wallet: &Account, leg: &Leg) -> bool {
    let asset = Asset::Token(leg.token);
    let pool =
        |kind| scene.venues.iter().any(|v| v.log.address == leg.token && v.event.kind == kind);
    // A pool that is the token of its own shares.
    if pool(EventKind::Pool) {
        return true;
    }
    if scene.exchanged(asset) {
        return false;
    }
    if pool(EventKind::Liquidity) {
        return true;
    }
    ledger.moves.iter().filter(|m| m.asset == asset).any(|m| match leg.side {
        Side::Buy => m.from == ZERO && m.amount >= leg.units,
        Side::Sell => m.from == *wallet && (m.to == ZERO || m.to == leg.token),
    })
}
