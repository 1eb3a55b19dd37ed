//! Events and contracts of the EVM chains and of Tron: `data/venues-evm.toml`,
//! `data/venues-tron.toml`, checked at load.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use serde::Deserialize;
use sha3::{Digest as _, Keccak256};

use super::pool_makers::{PoolMakers, PoolPlace};
use super::{Chain, RegistryError};
use crate::domain::{Account, Address, Family, Word};

const TABLE: &str = "venues-evm";

/// What an event says about the assets that moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A pool exchanged one asset for another.
    Pool,
    /// A launchpad's price curve sold or bought; may mint and burn.
    Curve,
    /// A router or an aggregator exchanged assets through others.
    Router,
    /// A signed order was filled; the assets go from trader to trader.
    Fill,
    /// `GPv2Settlement`'s `Trade`: owner, assets and amounts of one order.
    CowTrade,
    /// Liquidity of a pool or a position changed.
    Liquidity,
    /// A position of liquidity grew.
    Position,
    /// A conversion at a fixed price: not a trade.
    Conversion,
    /// Assets were bridged to another chain.
    Bridge,
    /// A smart account, named by the event or its emitter, executed an operation.
    Operation,
    /// A platform took a fee that no other event shows: unless it is stated, the payout is unknown.
    Fee,
}

/// Indices of the words of an event that state a payout, indexed words first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payout {
    pub to: usize,
    pub amount: usize,
    /// `None`: it pays native coin only.
    pub token: Option<usize>,
}

/// One kind of event, by its first topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    name: Arc<str>,
    /// Names by chain slug, where they differ.
    names: Vec<(String, Arc<str>)>,
    pub kind: EventKind,
    /// Other events share the topic: only contracts of the table count as emitters.
    pub known_only: bool,
    /// The account that holds the pool's assets, where it is not the emitter.
    pub holder: Option<Account>,
    /// Whether the pool may hold unwrapped native coin.
    pub native: bool,
    /// What an account was paid, exactly and after all fees.
    pub pays: Option<Payout>,
    /// What an account's order sold, of tokens that lay at the venue since an earlier transaction.
    pub escrow: Option<Payout>,
    /// The word that states native coin which the account in another word paid as a fee.
    pub charges: Option<usize>,
    /// The word that is positive where a contract of positions, which the event names, adds liquidity.
    pub grows: Option<usize>,
}

impl Event {
    /// The venue's name, unless the emitter has a more specific one.
    pub fn name(&self, chain: &Chain) -> &Arc<str> {
        let named = self.names.iter().find(|(slug, _)| *slug == chain.slug);
        named.map_or(&self.name, |(_, name)| name)
    }
}

/// The role of a contract in a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContractKind {
    /// Trades for its callers.
    Router,
    /// A router through which a trade may also reach a wallet that did not send the transaction.
    Exchange,
    /// Fills orders that other accounts signed.
    Settlement,
    /// Executes operations of smart accounts.
    EntryPoint,
    /// Places orders that sell native coin for their sender.
    EthFlow,
    /// Holds the assets of many pools.
    Vault,
    /// A launchpad's price curves.
    Launchpad,
    /// Holds liquidity positions.
    Positions,
    /// Converts at a fixed price.
    Conversion,
    /// An internal part of a venue, never called by users: fee collectors, executors.
    Part,
}

/// One contract.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four things that its code guarantees or not")]
pub struct Contract {
    pub name: Arc<str>,
    pub kind: ContractKind,
    exact: bool,
    /// Selectors of the calls to which `is_exact` applies.
    exact_calls: Vec<[u8; 4]>,
    /// Whether it spends all native coin that it receives.
    pub spends_whole: bool,
    /// Whether its caller receives all native coin that any contract unwraps below the call.
    pub pays_whole: bool,
    /// Whether it keeps a fee of that coin, stated in its input.
    pub charges: bool,
}

impl Contract {
    /// Whether a call spends exactly the native coin that the contract wraps, refunds the rest to
    /// its caller, and pays out all that it unwraps.
    pub fn is_exact(&self, selector: Option<[u8; 4]>) -> bool {
        self.exact || selector.is_some_and(|selector| self.exact_calls.contains(&selector))
    }
}

/// How a factory derives the address of a pool (EIP-1014).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolSalt {
    /// Both tokens, packed.
    Pair,
    /// Both tokens and whether the pool is a stable one, packed.
    StablePair,
    /// Both tokens and the fee, as words.
    Fee,
    /// Both tokens and the spacing of ticks, as words.
    Spacing,
    /// Both tokens, as words.
    Words,
}

/// A contract whose pools are recognized by their derived addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factory {
    pub name: Arc<str>,
    /// The contract that creates the pools.
    pub deployer: Account,
    pub code_hash: Word,
    pub salt: PoolSalt,
    /// Chain slugs; empty for all chains.
    chains: Vec<String>,
}

/// An event without a topic.
#[derive(Debug)]
pub struct Anonymous {
    /// The only contract that logs it; `None`: any may.
    pub emitter: Option<Account>,
    data_bytes: usize,
    pub event: Event,
}

/// Events and contracts of the EVM chains, for the decoder and the lists.
#[derive(Debug)]
pub struct EvmTables {
    events: HashMap<Word, Vec<Event>>,
    anonymous: Vec<Anonymous>,
    contracts: HashMap<Account, Vec<(Vec<String>, Contract)>>,
    factories: Vec<Factory>,
    makers: PoolMakers,
}

impl EvmTables {
    /// Events with this first topic.
    pub fn events(&self, topic: &Word) -> &[Event] {
        self.events.get(topic).map(Vec::as_slice).unwrap_or_default()
    }

    /// The event without a topic that a contract logs with so many bytes of data.
    pub fn anonymous(&self, emitter: &Account, data_bytes: usize) -> Option<&Anonymous> {
        let fits = |row: &&Anonymous| {
            row.data_bytes == data_bytes && row.emitter.is_none_or(|known| known == *emitter)
        };
        self.anonymous.iter().filter(fits).max_by_key(|row| row.emitter.is_some())
    }

    pub fn contract(&self, chain: &Chain, account: &Account) -> Option<&Contract> {
        let rows = self.contracts.get(account)?;
        let (_, contract) = rows.iter().find(|(chains, _)| on(chains, chain))?;
        Some(contract)
    }

    /// Factories that may have pools on a chain.
    pub fn factories<'a>(&'a self, chain: &'a Chain) -> impl Iterator<Item = &'a Factory> {
        self.factories.iter().filter(|factory| on(&factory.chains, chain))
    }

    /// The name of the factory of a pool, derived at most once in a while.
    pub fn maker(
        &self,
        place: PoolPlace,
        derive: impl FnOnce() -> Option<Arc<str>>,
    ) -> Option<Arc<str>> {
        self.makers.get(place, derive)
    }

    /// Whether a trade through this contract may reach a wallet that did not send the transaction.
    pub fn is_settlement(&self, chain: &Chain, account: &Account) -> bool {
        self.contract(chain, account).is_some_and(|contract| match contract.kind {
            ContractKind::Exchange | ContractKind::Settlement | ContractKind::EntryPoint => true,
            ContractKind::Router
            | ContractKind::EthFlow
            | ContractKind::Vault
            | ContractKind::Launchpad
            | ContractKind::Positions
            | ContractKind::Conversion
            | ContractKind::Part => false,
        })
    }

    /// Whether the tables name a contract.
    pub fn is_known(&self, chain: &Chain, account: &Account) -> bool {
        self.contract(chain, account).is_some()
    }
}

fn on(chains: &[String], chain: &Chain) -> bool {
    chains.is_empty() || chains.contains(&chain.slug)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    event: Vec<EventRow>,
    #[serde(default)]
    anonymous: Vec<AnonymousRow>,
    contract: Vec<ContractRow>,
    #[serde(default)]
    factory: Vec<FactoryRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventRow {
    id: u16,
    signature: Option<String>,
    topic: String,
    name: String,
    #[serde(default)]
    names: HashMap<String, String>,
    kind: EventKind,
    #[serde(default)]
    known_only: bool,
    holder: Option<String>,
    #[serde(default)]
    native: bool,
    pays: Option<Payout>,
    escrow: Option<Payout>,
    charges: Option<usize>,
    grows: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnonymousRow {
    id: u16,
    address: Option<String>,
    data_bytes: usize,
    name: String,
    kind: EventKind,
    #[serde(default)]
    native: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "columns of the row, each absent or true")]
struct ContractRow {
    id: u16,
    #[serde(default)]
    chains: Vec<String>,
    address: String,
    name: String,
    kind: ContractKind,
    #[serde(default)]
    exact: bool,
    #[serde(default)]
    exact_calls: Vec<String>,
    #[serde(default)]
    spends_whole: bool,
    #[serde(default)]
    pays_whole: bool,
    #[serde(default)]
    charges: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FactoryRow {
    id: u16,
    #[serde(default)]
    chains: Vec<String>,
    deployer: String,
    code_hash: String,
    salt: PoolSalt,
    name: String,
}

/// Interns the venues' names.
#[derive(Default)]
struct Names(HashSet<Arc<str>>);

impl Names {
    fn get(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.0.insert(name.clone());
        name
    }
}

pub(super) fn parse(text: &str, chains: &[Chain]) -> Result<EvmTables, RegistryError> {
    let file: File = toml::from_str(text).map_err(|e| RegistryError::new(TABLE, e))?;
    let mut names = Names::default();
    let slugs: HashSet<&str> = chains.iter().map(|chain| &*chain.slug).collect();
    let of_events = file.event.iter().map(|row| row.id);
    unique(of_events.chain(file.anonymous.iter().map(|row| row.id)))?;
    unique(file.contract.iter().map(|row| row.id))?;
    unique(file.factory.iter().map(|row| row.id))?;
    let of_chains = file.contract.iter().flat_map(|row| &row.chains);
    for slug in of_chains.chain(file.factory.iter().flat_map(|row| &row.chains)) {
        if !slugs.contains(slug.as_str()) {
            return fail(format!("there is no chain {slug}"));
        }
    }
    let factories = file.factory.into_iter().map(|row| factory(row, &mut names));
    Ok(EvmTables {
        factories: factories.collect::<Result<_, _>>()?,
        events: events(file.event, &mut names)?,
        anonymous: anonymous(file.anonymous, &mut names)?,
        contracts: contracts(file.contract, &mut names)?,
        makers: PoolMakers::default(),
    })
}

fn events(
    rows: Vec<EventRow>,
    names: &mut Names,
) -> Result<HashMap<Word, Vec<Event>>, RegistryError> {
    let mut events: HashMap<Word, Vec<Event>> = HashMap::default();
    for row in rows {
        let topic = word(&row.topic)?;
        let hash = row.signature.as_ref().map(|text| Word::from(Keccak256::digest(text)));
        if hash.is_some_and(|hash| hash != topic) {
            return fail(format!("event {}: the topic is not its signature's hash", row.id));
        }
        let event = Event {
            name: names.get(&row.name),
            names: row.names.into_iter().map(|(slug, name)| (slug, names.get(&name))).collect(),
            kind: row.kind,
            known_only: row.known_only,
            holder: row.holder.as_deref().map(account).transpose()?,
            native: row.native,
            pays: row.pays,
            escrow: row.escrow,
            charges: row.charges,
            grows: row.grows,
        };
        let others = events.entry(topic).or_default();
        // Events of known contracts only are compared first.
        let free = others.iter().any(|other| !other.known_only);
        match (event.known_only, free) {
            (true, _) => others.insert(0, event),
            (false, false) => others.push(event),
            (false, true) => return fail(format!("event {}: the topic stands twice", row.id)),
        }
    }
    Ok(events)
}

fn anonymous(rows: Vec<AnonymousRow>, names: &mut Names) -> Result<Vec<Anonymous>, RegistryError> {
    let mut events: Vec<Anonymous> = Vec::new();
    for row in rows {
        let (emitter, data_bytes) =
            (row.address.as_deref().map(account).transpose()?, row.data_bytes);
        if events.iter().any(|one| one.emitter == emitter && one.data_bytes == data_bytes) {
            return fail(format!("event {}: {data_bytes} bytes stand twice", row.id));
        }
        let event = Event {
            name: names.get(&row.name),
            names: Vec::new(),
            kind: row.kind,
            known_only: false,
            holder: None,
            native: row.native,
            pays: None,
            escrow: None,
            charges: None,
            grows: None,
        };
        events.push(Anonymous { emitter, data_bytes, event });
    }
    Ok(events)
}

type Contracts = HashMap<Account, Vec<(Vec<String>, Contract)>>;

fn contracts(rows: Vec<ContractRow>, names: &mut Names) -> Result<Contracts, RegistryError> {
    let mut contracts = Contracts::default();
    for row in rows {
        let others = contracts.entry(account(&row.address)?).or_default();
        let meets = |chains: &Vec<String>| {
            chains.is_empty()
                || row.chains.is_empty()
                || chains.iter().any(|chain| row.chains.contains(chain))
        };
        if others.iter().any(|(chains, _)| meets(chains)) {
            return fail(format!("contract {} stands twice", row.address));
        }
        let contract = Contract {
            name: names.get(&row.name),
            kind: row.kind,
            exact: row.exact,
            exact_calls: row.exact_calls.iter().map(|text| hex(text)).collect::<Result<_, _>>()?,
            spends_whole: row.spends_whole,
            pays_whole: row.pays_whole,
            charges: row.charges,
        };
        others.push((row.chains, contract));
    }
    Ok(contracts)
}

fn factory(row: FactoryRow, names: &mut Names) -> Result<Factory, RegistryError> {
    Ok(Factory {
        name: names.get(&row.name),
        deployer: account(&row.deployer)?,
        code_hash: word(&row.code_hash)?,
        salt: row.salt,
        chains: row.chains,
    })
}

fn unique(ids: impl Iterator<Item = u16>) -> Result<(), RegistryError> {
    let mut seen = HashSet::default();
    for id in ids {
        if !seen.insert(id) {
            return fail(format!("id {id} stands twice"));
        }
    }
    Ok(())
}

/// Parses an address of an EVM chain or of Tron, which share their contracts.
fn account(text: &str) -> Result<Account, RegistryError> {
    let family = if text.starts_with('T') { Family::Tron } else { Family::Evm };
    match Address::parse(family, text) {
        Ok(Address::Evm(bytes) | Address::Tron(bytes)) => Ok(bytes),
        Ok(Address::Solana(_)) => fail(format!("{text}: another family")),
        Err(error) => fail(format!("{text}: {error}")),
    }
}

fn word(text: &str) -> Result<Word, RegistryError> {
    hex(text)
}

fn hex<const N: usize>(text: &str) -> Result<[u8; N], RegistryError> {
    let mut bytes = [0; N];
    let read = ::hex::decode_to_slice(text.strip_prefix("0x").unwrap_or(text), &mut bytes);
    read.map_err(|e| RegistryError::new(TABLE, format!("{text}: {e}")))?;
    Ok(bytes)
}

fn fail<T>(reason: String) -> Result<T, RegistryError> {
    Err(RegistryError::new(TABLE, reason))
}

#[cfg(test)]
mod tests {
    use super::super::{Registry, Texts};
    use super::*;

    const EVENT: &str = r#"
        [[event]]
        id = 1
        signature = "Transfer(address,address,uint256)"
        topic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
        name = "A venue"
        kind = "pool"
    "#;
    const CONTRACT: &str = r#"
        [[contract]]
        id = 1
        chains = ["eth"]
        address = "0x111111125421cA6dc452d289314280a0f8842A65"
        name = "1inch"
        kind = "exchange"
    "#;

    fn read(text: &str) -> Result<Registry, RegistryError> {
        Registry::parse(Texts { venues_evm: text, ..Texts::EMBEDDED })
    }

    #[track_caller]
    fn refused(text: &str, reason: &str) {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }

    /// Hashes as public explorers and the contracts' own documentation list them.
    #[test]
    fn topics_are_those_of_the_contracts() {
        let registry = Registry::embedded().unwrap();
        let topics = [
            ("d78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822", "Uniswap V2"),
            ("c42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67", "Uniswap V3"),
            ("40e9cecb9f5f1f1c5b9c97dec2917b7ee92e57ba5563708daca94dd84ad7112f", "Uniswap V4"),
            ("2170c741c41531aec20e7c107c24eecfdd15e69c9bb0a8dd37b1840b9e0b207b", "Balancer V2"),
            ("8b3e96f2b889fa771c53c981b40daf005f63f637f1869f707052d15a3dd97140", "Curve"),
            ("a07a543ab8a018198e99ca0184c93fe9050a79400a0a723441f84de1d972cc17", "CoW Swap"),
        ];
        let eth = registry.chain_named("eth").unwrap();
        for (topic, name) in topics {
            let events = registry.evm().events(&word(topic).unwrap());
            assert_eq!(events.len(), 1, "{name}");
            assert_eq!(&**events[0].name(eth), name);
        }
    }

    #[test]
    fn contracts_are_found_by_chain_and_kind() {
        let registry = read(&format!("{EVENT}{CONTRACT}")).unwrap();
        let (eth, base) =
            (registry.chain_named("eth").unwrap(), registry.chain_named("base").unwrap());
        let exchange = account("0x111111125421cA6dc452d289314280a0f8842A65").unwrap();
        assert!(registry.evm().is_known(eth, &exchange));
        assert!(registry.evm().is_settlement(eth, &exchange));
        assert!(!registry.evm().is_known(base, &exchange));
        assert!(!registry.evm().is_settlement(eth, &[1; 20]));
    }

    #[test]
    fn rows_that_cannot_be_used_are_refused() {
        let both = format!("{EVENT}{CONTRACT}");
        assert!(read(&both).is_ok());
        refused(&both.replace("Transfer(address", "Transfer(bytes"), "not its signature's hash");
        refused(&both.replace("0xddf2", "0xzzf2"), "nvalid");
        refused(&both.replace("4280a0f8842A65", "4280a0f8842a65"), "checksum");
        refused(&both.replace("\"eth\"", "\"nowhere\""), "no chain");
        refused(&both.replace("exchange", "bazaar"), "bazaar");
        refused(&format!("{EVENT}{EVENT}{CONTRACT}"), "id 1 stands twice");
        let other_id = |text: &str| text.replace("id = 1", "id = 2");
        refused(&format!("{both}{}", other_id(EVENT)), "topic stands twice");
        refused(&format!("{both}{}", other_id(CONTRACT)), "stands twice");
    }
}
