//! Finds the venues that ran in a transaction, and the assets that each exchanged.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::conversions::{Conversion, Placed, conversions, wrappers};
use super::ledger::{Asset, Ledger, Move};
use super::transaction::{Account, Log, Transaction};
use super::words::{NATIVE_PLACEHOLDER, ZERO, absolute, address, units, words};
use crate::domain::Units;
use crate::registry::{Chain, Contract, ContractKind, Event, EventKind, EvmTables};

/// Limit of assets for a venue whose event names none. No pool, nor a vault's pools on a route, has
/// more.
const HELD_COUNT_MAX: usize = 64;
/// Limit of movements that are searched for an event's amounts. No route has as many, but any
/// contract may log thousands.
const STATED_COUNT_MAX: usize = 256;

/// One event of the tables.
#[derive(Debug)]
pub(super) struct Venue<'a> {
    pub(super) log: &'a Log,
    pub(super) event: &'a Event,
    /// The emitting contract, where the tables have it.
    pub(super) contract: Option<&'a Contract>,
    /// The account whose assets were exchanged.
    pub(super) holder: Account,
    /// The assets that the event names, or that the holder moved.
    pub(super) assets: Vec<Asset>,
}

impl Venue<'_> {
    pub(super) fn name(&self, chain: &'_ Chain) -> &Arc<str> {
        self.contract.map_or_else(|| self.event.name(chain), |contract| &contract.name)
    }

    /// The account that acted as a contract, if the event states one.
    fn actor(&self) -> Option<Account> {
        let acts = self.event.kind == EventKind::Operation;
        let actor = self.event.actor.map_or(Some(self.log.address), |at| self.account(at));
        actor.filter(|_| acts)
    }

    /// The account in a word of the event.
    pub(super) fn account(&self, at: usize) -> Option<Account> {
        words(self.log).nth(at).and_then(address)
    }

    /// Whether the pool may have moved native coin that no event shows.
    pub(super) fn may_move_native(&self) -> bool {
        let vault = self.contract.is_some_and(|c| c.kind == ContractKind::Vault);
        let shown = self.assets.len() > 1 && !self.assets.contains(&Asset::Native);
        // Launchpads take and give native coin, unless their event names another asset.
        let may = self.event.native || self.event.kind == EventKind::Curve;
        may && (vault || !shown)
    }
}

/// A transaction from the perspective of one wallet, with the venues that ran in it.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) tx: &'a Transaction,
    pub(super) tables: &'a EvmTables,
    pub(super) chain: &'a Chain,
    pub(super) ledger: &'a Ledger,
    pub(super) wallet: &'a Account,
    pub(super) venues: Vec<Venue<'a>>,
    /// The called contract, where the tables have it.
    pub(super) called: Option<&'a Contract>,
    pub(super) conversions: Vec<Conversion>,
    wrappers: Vec<Conversion>,
    /// The assets that the venues' events name as exchanged.
    swapped: BTreeSet<Asset>,
    moved: Moved,
}

impl<'a> Scene<'a> {
    pub(super) fn read(
        tables: &'a EvmTables,
        chain: &'a Chain,
        tx: &'a Transaction,
        ledger: &'a Ledger,
        wallet: &'a Account,
    ) -> Self {
        let called = tx.to.as_ref().and_then(|to| tables.contract(chain, to));
        let moved = Moved::read(ledger);
        let venue = |log| venue((tables, chain), ledger, &moved, log);
        let placed = tx.logs.iter().enumerate();
        let (places, venues): (Vec<usize>, Vec<Venue<'_>>) =
            placed.filter_map(|(at, log)| Some((at, venue(log)?))).unzip();
        let converts = |(_, venue): &(usize, &Venue<'_>)| venue.event.kind == EventKind::Conversion;
        let events: Vec<Placed<'_>> = places
            .into_iter()
            .zip(&venues)
            .filter(converts)
            .map(|(at, venue)| Placed { at, event: venue.event, assets: &venue.assets })
            .collect();
        let conversions = conversions(tx, &events, ledger, wallet);
        let exchanges = venues.iter().filter(|venue| exchanges(venue.event.kind));
        let swapped = exchanges.flat_map(|venue| venue.assets.iter().copied()).collect();
        let wrappers = wrappers(tx, ledger, wallet);
        Self {
            tx,
            tables,
            chain,
            ledger,
            wallet,
            venues,
            called,
            conversions,
            wrappers,
            swapped,
            moved,
        }
    }

    /// The largest single movement of an asset by the venue's holder.
    pub(super) fn share(&self, venue: &Venue<'_>, asset: Asset) -> Units {
        let held = self.moved.by(&venue.holder);
        let at = held.binary_search_by_key(&asset, |held| held.asset).ok();
        at.and_then(|at| held.get(at)).map(|held| held.most).unwrap_or_default()
    }

    /// Whether an event states that an asset was exchanged, directly or by way of another.
    pub(super) fn exchanged(&self, asset: Asset) -> bool {
        self.swapped(asset) || self.is_converted(asset)
    }

    /// Whether an asset was exchanged through one or two conversions on the route to or from a
    /// market, inside a wrapped token, or as what a token of the tables wraps or is minted for.
    pub(super) fn is_converted(&self, asset: Asset) -> bool {
        let others = |of| {
            let on_route = self.conversions.iter().filter(|one| !one.is_wallets);
            on_route.filter_map(move |one| one.other(of))
        };
        let twice = |by| others(by).any(|next| next != asset && self.swapped(next));
        let on_route = |by| self.swapped(by) || twice(by);
        let inside = || self.wrapped().any(|[inner, outer]| inner == asset && self.swapped(outer));
        let comes_in = |inner| self.swapped(inner) || self.is_staked(inner);
        let wraps = |[inner, outer]: [Asset; 2]| outer == asset && comes_in(inner);
        let around = || self.is_wrapper(asset) && self.wrapped().any(wraps);
        others(asset).any(on_route) || inside() || around() || self.is_staked(asset)
    }

    /// Whether a route had a token of the tables minted for coin, of which a market exchanged some.
    /// A router's own event also names coin that was only staked, and what the route gave a pool
    /// was wrapped into nothing.
    fn is_staked(&self, asset: Asset) -> bool {
        let coin = [Asset::Native, Asset::Token(self.ledger.wrapped)];
        let at_market = |venue: &&Venue<'_>| {
            let kind = venue.event.kind;
            exchanges(kind) && kind != EventKind::Router
        };
        let of_coin = |venue: &Venue<'_>| coin.iter().any(|one| venue.assets.contains(one));
        let markets = || self.venues.iter().filter(at_market);
        let is_minted = |m: &Move| m.asset == asset && m.from == ZERO && m.to != *self.wallet;
        let is_laid_in = |m: &Move| !markets().any(|venue| venue.holder == m.to);
        self.is_wrapper(asset)
            && markets().any(of_coin)
            && self.ledger.moves.iter().any(is_minted)
            && !self.wrappers.iter().filter_map(|one| one.inner_of(asset)).any(is_laid_in)
    }

    /// Whether an asset was wrapped or unwrapped, or became or was a share, by such a conversion.
    pub(super) fn wraps(&self, asset: Asset, is_it: impl Fn(&Conversion) -> bool) -> bool {
        self.wrappers.iter().any(|one| one.other(asset).is_some() && is_it(one))
    }

    /// Whether a token is nothing but another one, wrapped.
    pub(super) fn is_wrapper(&self, asset: Asset) -> bool {
        let Asset::Token(token) = asset else { return false };
        self.contract(&token).is_some_and(|known| known.kind == ContractKind::Conversion)
    }

    fn wrapped(&self) -> impl Iterator<Item = [Asset; 2]> {
        self.wrappers.iter().filter_map(Conversion::inner_and_outer)
    }

    /// Whether a venue's event states that an asset was exchanged.
    pub(super) fn swapped(&self, asset: Asset) -> bool {
        self.swapped.contains(&asset)
    }

    /// Whether a pool or an order exchanged anything. A router's own event does not count: the
    /// router may only have converted.
    pub(super) fn has_market(&self) -> bool {
        self.markets().next().is_some()
    }

    /// The events of pools and orders.
    pub(super) fn markets(&self) -> impl Iterator<Item = &Venue<'a>> {
        self.venues.iter().filter(|venue| is_market(venue.event.kind))
    }

    /// Whether orders were filled: assets then move between traders.
    pub(super) fn fills(&self) -> bool {
        self.venues.iter().any(|venue| venue.event.kind == EventKind::Fill)
    }

    /// Whether the called contract trades for its callers.
    pub(super) fn calls_router(&self) -> bool {
        self.called.is_some_and(|contract| match contract.kind {
            ContractKind::Router | ContractKind::Exchange | ContractKind::Launchpad => {
                !contract.pools_only || self.has_market()
            }
            ContractKind::Settlement
            | ContractKind::EntryPoint
            | ContractKind::EthFlow
            | ContractKind::Vault
            | ContractKind::Positions
            | ContractKind::Conversion
            | ContractKind::Part => false,
        })
    }

    /// Whether the wallet sent the transaction, or acts in it as a contract: by an operation of its
    /// own (EIP-4337), through its own code (EIP-7702), or as a Safe.
    pub(super) fn acts(&self) -> bool {
        let called = self.tx.from == *self.wallet || self.tx.to == Some(*self.wallet);
        called || self.operations().next().is_some()
    }

    /// Whether the wallet acts, and sends the transaction or no other account performs an operation
    /// in it.
    pub(super) fn acts_alone(&self) -> bool {
        let is_others = |venue: &Venue<'_>| venue.actor().is_some_and(|who| who != *self.wallet);
        self.acts() && (self.tx.from == *self.wallet || !self.venues.iter().any(is_others))
    }

    /// The events of operations that the wallet performed as a contract.
    pub(super) fn operations(&self) -> impl Iterator<Item = &Venue<'a>> {
        self.venues.iter().filter(|venue| venue.actor() == Some(*self.wallet))
    }

    /// The native coin that another account sent with its call of the wallet.
    pub(super) fn coin_from_caller(&self) -> Units {
        let is_called = self.tx.from != *self.wallet && self.tx.to == Some(*self.wallet);
        if is_called { self.tx.value } else { Units::ZERO }
    }

    /// Whether the wallet acts as a contract, so that its payments and actions are inner calls.
    pub(super) fn acts_inside(&self) -> bool {
        let sends = self.tx.from == *self.wallet && self.tx.to != Some(*self.wallet);
        !sends && self.acts()
    }

    pub(super) fn is_mirror(&self, token: &Account) -> bool {
        self.chain.mirrors.iter().any(|mirror| mirror.bytes() == token)
    }

    pub(super) fn contract(&self, account: &Account) -> Option<&'a Contract> {
        self.tables.contract(self.chain, account)
    }
}

/// Whether events of this kind state that the assets they name were exchanged.
pub(super) fn exchanges(kind: EventKind) -> bool {
    match kind {
        EventKind::Pool | EventKind::Curve | EventKind::Router | EventKind::CowTrade => true,
        EventKind::Fill
        | EventKind::Liquidity
        | EventKind::Position
        | EventKind::Conversion
        | EventKind::Bridge
        | EventKind::Operation
        | EventKind::Fee => false,
    }
}

fn is_market(kind: EventKind) -> bool {
    is_pool(kind) || kind == EventKind::Fill || kind == EventKind::CowTrade
}

pub(super) fn is_pool(kind: EventKind) -> bool {
    kind == EventKind::Pool || kind == EventKind::Curve
}

/// Movements by token and by account.
#[derive(Debug)]
struct Moved {
    /// Sorted by address.
    tokens: Vec<Account>,
    /// Sorted by account, then by asset.
    held: Vec<Held>,
    /// Tokens minted and burnt, with the amounts.
    made: Vec<(Asset, Units)>,
    wrapped: Account,
}

/// An asset that an account moved.
#[derive(Debug, Clone, Copy)]
struct Held {
    account: Account,
    asset: Asset,
    /// Index of its first movement.
    first: usize,
    /// Its largest movement.
    most: Units,
}

impl Moved {
    fn read(ledger: &Ledger) -> Self {
        let made = |m: &&Move| (m.from == ZERO || m.to == ZERO) && !ledger.is_measure(m.asset);
        let tokens = ledger.moves.iter().filter_map(|m| match m.asset {
            Asset::Token(token) => Some(token),
            Asset::Native => None,
        });
        let mut tokens: Vec<Account> = tokens.collect();
        tokens.sort_unstable();
        tokens.dedup();
        Self {
            tokens,
            held: held(&ledger.moves),
            made: ledger.moves.iter().filter(made).map(|m| (m.asset, m.amount)).collect(),
            wrapped: ledger.wrapped,
        }
    }

    /// The assets that an account moved.
    fn by(&self, account: &Account) -> &[Held] {
        let start = self.held.partition_point(|held| held.account < *account);
        let rest = self.held.get(start..).unwrap_or_default();
        let len = rest.partition_point(|held| held.account == *account);
        rest.get(..len).unwrap_or_default()
    }

    /// The assets that an event names.
    fn named(&self, log: &Log) -> Vec<Asset> {
        let mut named = Vec::new();
        for token in words(log).filter_map(address) {
            let asset = if token == NATIVE_PLACEHOLDER {
                Asset::Native
            } else if token == self.wrapped || self.tokens.binary_search(&token).is_ok() {
                Asset::Token(token)
            } else {
                continue;
            };
            if !named.contains(&asset) {
                named.push(asset);
            }
        }
        named
    }
}

fn held(moves: &[Move]) -> Vec<Held> {
    let mut all = Vec::with_capacity(2 * moves.len());
    for (first, Move { asset, from, to, amount }) in moves.iter().enumerate() {
        let accounts = [*from, *to].into_iter().filter(|account| *account != ZERO);
        let held = |account| Held { account, asset: *asset, first, most: *amount };
        all.extend(accounts.map(held));
    }
    all.sort_unstable_by_key(|held| (held.account, held.asset, held.first));
    all.dedup_by(|next, held| {
        let same = (next.account, next.asset) == (held.account, held.asset);
        if same {
            held.most = held.most.max(next.most);
        }
        same
    });
    all
}

/// The event of a log without topics. It must come from a known contract, or end with the amount of
/// a token's movement.
fn anonymous<'a>(tables: &'a EvmTables, ledger: &Ledger, log: &Log) -> Option<&'a Event> {
    let row = tables.anonymous(&log.address, log.data.len())?;
    let amount = Units::from(u128::from_be_bytes(*log.data.last_chunk()?));
    let moved = |m: &Move| m.asset != Asset::Native && m.amount == amount;
    (row.emitter.is_some() || ledger.moves.iter().any(moved)).then_some(&row.event)
}

fn venue<'a>(
    (tables, chain): (&'a EvmTables, &'a Chain),
    ledger: &Ledger,
    moved: &Moved,
    log: &'a Log,
) -> Option<Venue<'a>> {
    let contract = tables.contract(chain, &log.address);
    let fits = |event: &&Event| {
        !event.known_only || contract.is_some_and(|contract| contract.name == *event.name(chain))
    };
    let event = match log.topics.first() {
        Some(topic) => tables.events(topic).iter().find(fits)?,
        None => anonymous(tables, ledger, log)?,
    };
    let holder = event.holder.unwrap_or(log.address);
    let mut assets = moved.named(log);
    // A Balancer pool id begins with the pool's address: its share joined or left the pool.
    let share = words(log).find_map(|word| {
        let pool = Asset::Token(*word.first_chunk()?);
        assets.contains(&pool).then_some(pool)
    });
    // A vault's event names what this pool exchanged; the vault's other movements belong to other
    // pools.
    if assets.len() < 2 && exchanges(event.kind) {
        let mut more: Vec<&Held> = moved.by(&holder).iter().take(HELD_COUNT_MAX).collect();
        more.retain(|held| !assets.contains(&held.asset));
        more.sort_unstable_by_key(|held| held.first);
        assets.extend(more.iter().map(|held| held.asset));
    }
    // A fork's pools may be at another vault than the protocol's own.
    let is_elsewhere = event.holder.is_some() && moved.by(&holder).is_empty();
    if (event.quotes || is_elsewhere) && assets.len() < 2 {
        let stated = |m: &&Move| words(log).any(|word| absolute(units(word)) == m.amount);
        let moved = ledger.moves.iter().take(STATED_COUNT_MAX).filter(stated).map(|m| m.asset);
        let more: BTreeSet<Asset> = moved.filter(|asset| !assets.contains(asset)).collect();
        assets.extend(more);
    }
    if event.kind == EventKind::Curve && assets.len() < 2 {
        // Signed amounts are negative if the trader gave them.
        let signed = |amount: &Units| [*amount, amount.wrapping_neg()];
        let named = |amount: &Units| words(log).any(|word| signed(amount).contains(&units(word)));
        let made =
            moved.made.iter().filter(|(asset, amount)| named(amount) && !assets.contains(asset));
        assets.extend(made.map(|(asset, _)| *asset).collect::<Vec<_>>());
    }
    // A curve that wraps its fee keeps and pays the rest as unwrapped coin.
    let mut wraps = ledger.wraps.iter().take(STATED_COUNT_MAX);
    if event.kind == EventKind::Curve && wraps.any(|(who, _)| *who == holder) {
        assets.push(Asset::Native);
    }
    assets.retain(|asset| Some(*asset) != share);
    Some(Venue { log, event, contract, holder, assets })
}
