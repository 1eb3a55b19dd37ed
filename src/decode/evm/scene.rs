//! Which venues ran in a transaction, and which assets they exchanged.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::ledger::{Asset, Ledger, Move};
use super::transaction::{Account, Log, Transaction};
use super::words::{NATIVE_PLACEHOLDER, ZERO, address, words};
use crate::registry::{Chain, Contract, ContractKind, Event, EventKind, EvmTables};

/// One event of the tables.
#[derive(Debug)]
pub(super) struct Venue<'a> {
    pub(super) log: &'a Log,
    pub(super) event: &'a Event,
    /// The contract that emitted it, where the tables know it.
    pub(super) contract: Option<&'a Contract>,
    /// Whose assets were exchanged.
    pub(super) holder: Account,
    /// The assets that it names, or that its holder moved.
    pub(super) assets: Vec<Asset>,
}

impl Venue<'_> {
    pub(super) fn name(&self, chain: &'_ Chain) -> &Arc<str> {
        self.contract.map_or_else(|| self.event.name(chain), |contract| &contract.name)
    }

    /// Whether the pool may have moved native coin that no event shows.
    pub(super) fn may_move_native(&self) -> bool {
        let vault = self.contract.is_some_and(|c| c.kind == ContractKind::Vault);
        self.event.native && (vault || self.assets.len() < 2)
    }
}

#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) tx: &'a Transaction,
    pub(super) tables: &'a EvmTables,
    pub(super) chain: &'a Chain,
    pub(super) venues: Vec<Venue<'a>>,
    /// The contract that was called, where the tables know it.
    pub(super) called: Option<&'a Contract>,
}

impl<'a> Scene<'a> {
    pub(super) fn read(
        tables: &'a EvmTables,
        chain: &'a Chain,
        tx: &'a Transaction,
        ledger: &Ledger,
    ) -> Self {
        let called = tx.to.as_ref().and_then(|to| tables.contract(chain, to));
        let mut scene = Self { tx, tables, chain, venues: Vec::new(), called };
        let moved = Moved::read(ledger);
        for log in &tx.logs {
            scene.venues.extend(venue(tables, chain, &moved, log));
        }
        scene
    }

    /// Whether an event says that an asset was exchanged.
    pub(super) fn exchanged(&self, asset: Asset) -> bool {
        self.venues.iter().any(|venue| exchanges(venue.event.kind) && venue.assets.contains(&asset))
    }

    /// Whether orders were filled: what moves then goes from trader to trader.
    pub(super) fn fills(&self) -> bool {
        self.venues.iter().any(|venue| venue.event.kind == EventKind::Fill)
    }

    /// Whether a contract was called that trades for its callers.
    pub(super) fn calls_router(&self) -> bool {
        self.called.is_some_and(|contract| match contract.kind {
            ContractKind::Router | ContractKind::Exchange | ContractKind::Launchpad => true,
            ContractKind::Settlement
            | ContractKind::EntryPoint
            | ContractKind::EthFlow
            | ContractKind::Vault
            | ContractKind::Positions
            | ContractKind::Conversion
            | ContractKind::Part => false,
        })
    }

    pub(super) fn is_mirror(&self, token: &Account) -> bool {
        self.chain.mirrors.iter().any(|mirror| mirror.bytes() == token)
    }

    pub(super) fn contract(&self, account: &Account) -> Option<&'a Contract> {
        self.tables.contract(self.chain, account)
    }
}

pub(super) fn exchanges(kind: EventKind) -> bool {
    match kind {
        EventKind::Pool | EventKind::Curve | EventKind::Router | EventKind::CowTrade => true,
        EventKind::Fill | EventKind::Liquidity | EventKind::Conversion | EventKind::Bridge => false,
    }
}

/// What moved, by token and by account.
struct Moved {
    tokens: HashSet<Account>,
    by_account: HashMap<Account, Vec<Asset>>,
    wrapped: Account,
}

impl Moved {
    fn read(ledger: &Ledger) -> Self {
        let mut moved =
            Self { tokens: HashSet::new(), by_account: HashMap::new(), wrapped: ledger.wrapped };
        for Move { asset, from, to, .. } in &ledger.moves {
            if let Asset::Token(token) = asset {
                moved.tokens.insert(*token);
            }
            for account in [from, to].into_iter().filter(|account| **account != ZERO) {
                let assets = moved.by_account.entry(*account).or_default();
                if !assets.contains(asset) {
                    assets.push(*asset);
                }
            }
        }
        moved
    }

    /// The assets that an event names.
    fn named(&self, log: &Log) -> Vec<Asset> {
        let mut named = Vec::new();
        for token in words(log).filter_map(address) {
            let asset = if token == NATIVE_PLACEHOLDER {
                Asset::Native
            } else if token == self.wrapped || self.tokens.contains(&token) {
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

fn venue<'a>(
    tables: &'a EvmTables,
    chain: &'a Chain,
    moved: &Moved,
    log: &'a Log,
) -> Option<Venue<'a>> {
    let rows = tables.events(log.topics.first()?);
    let contract = tables.contract(chain, &log.address);
    let fits = |event: &&Event| {
        !event.known_only || contract.is_some_and(|contract| contract.name == *event.name(chain))
    };
    let event = rows.iter().find(fits)?;
    let holder = event.holder.unwrap_or(log.address);
    let mut assets = moved.named(log);
    // A vault's event names what this pool exchanged; what else the vault moved is another's.
    if assets.len() < 2 && exchanges(event.kind) {
        let held = moved.by_account.get(&holder).map(Vec::as_slice).unwrap_or_default();
        let more: Vec<Asset> = held.iter().filter(|a| !assets.contains(a)).copied().collect();
        assets.extend(more);
    }
    Some(Venue { log, event, contract, holder, assets })
}
