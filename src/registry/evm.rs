//! Events and contracts of the EVM chains and of Tron: `data/venues-evm.toml`,
//! `data/venues-tron.toml`, checked at load.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use serde::Deserialize;
use sha3::{Digest as _, Keccak256};

use super::{Chain, RegistryError, fields};
use crate::domain::{Account, BoundedCache, ChainId, Word};

const TABLE: &str = "venues-evm";
/// Pools whose factory is cached, about 130 bytes each.
const POOLS_CACHED: usize = 16_384;

/// What an event reports about the assets that moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A pool exchanged one asset for another.
    #[default]
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
    /// A platform took a fee that no other event shows: the payout is known only where it is
    /// stated.
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
    /// `to` is the caller: the account that it paid stands in the call's input alone.
    #[serde(default)]
    pub caller: bool,
}

/// Indices of the words of an event that state on which terms a partner takes a part of what it
/// pays, indexed words first: `ParaSwap`'s fifth version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partner {
    pub account: usize,
    pub terms: usize,
    /// What the sale was expected to give: more than that may be shared. `None` of a purchase.
    pub expected: Option<usize>,
}

/// Indices of the words of a peg module's event that state what it exchanged, indexed words first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peg {
    /// In units of the token that the module holds.
    pub amount: usize,
    /// In units of the token that it mints and burns; `None`: it takes none.
    pub fee: Option<usize>,
}

/// One kind of event, by its first topic.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    id: u16,
    signature: Option<String>,
    #[serde(deserialize_with = "fields::hex")]
    topic: Word,
    name: Arc<str>,
    /// Names by chain slug, where they differ.
    #[serde(default)]
    names: HashMap<String, Arc<str>>,
    pub kind: EventKind,
    /// Other events share the topic: only contracts of the table count as emitters.
    #[serde(default)]
    pub known_only: bool,
    /// The account that holds the pool's assets, where it is not the emitter.
    #[serde(default, deserialize_with = "fields::some_account")]
    pub holder: Option<Account>,
    /// Whether the pool may hold unwrapped native coin.
    #[serde(default)]
    pub native: bool,
    /// What an account received, exactly and after all fees.
    pub pays: Option<Payout>,
    /// The share of a partner in that payment.
    pub partner: Option<Partner>,
    /// What an account's order sold of tokens that the venue held since an earlier transaction.
    pub escrow: Option<Payout>,
    /// The word with the account that acted by an operation, where that is not the emitter, or that
    /// sent assets to another chain.
    pub actor: Option<usize>,
    /// The word with the account that paid the network for an operation; zero where none did.
    pub sponsor: Option<usize>,
    /// The word with what the account paid back to the sender of its operation.
    pub repays: Option<usize>,
    /// Other accounts, such as market makers or vaults, hold what it exchanged: only the event
    /// states the amounts.
    #[serde(default)]
    pub quotes: bool,
    /// The words that are amounts, where others repeat the requested ones; empty where all may be.
    #[serde(default)]
    pub amounts: Vec<usize>,
    /// The signed words with the pool's changes: positive for what it gave, negative for what it
    /// took.
    pub deltas: Option<[usize; 2]>,
    /// The word with the native coin that the account in another word paid as a fee.
    pub charges: Option<usize>,
    /// What a router kept for an account: of the payment that was sent or, where it is stated after
    /// the router's own payment, of that one.
    pub keeps: Option<Payout>,
    /// The word with the native coin that was refunded.
    pub refunds: Option<usize>,
    /// The word that is positive where a contract of positions, which the event names, adds
    /// liquidity.
    pub grows: Option<usize>,
    /// What a conversion took for a token that it minted, before its fee.
    pub mints: Option<Peg>,
    /// What a conversion gave for a token that it burnt, after its fee.
    pub burns: Option<Peg>,
}

impl Event {
    /// The venue's name, unless the emitter has a more specific one.
    pub fn name(&self, chain: &Chain) -> &Arc<str> {
        self.names.get(&chain.slug).unwrap_or(&self.name)
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

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "five independent guarantees of its code")]
pub struct Contract {
    id: u16,
    /// Chain slugs; empty for all chains.
    #[serde(default)]
    chains: Vec<String>,
    #[serde(deserialize_with = "fields::account")]
    address: Account,
    pub name: Arc<str>,
    pub kind: ContractKind,
    #[serde(default)]
    exact: bool,
    /// Selectors of the calls to which `is_exact` applies.
    #[serde(default, deserialize_with = "fields::selectors")]
    exact_calls: Vec<[u8; 4]>,
    /// Whether it spends all native coin that it receives.
    #[serde(default)]
    pub spends_whole: bool,
    /// Whether its caller receives all native coin that any contract unwraps below the call.
    #[serde(default)]
    pub pays_whole: bool,
    /// Whether it keeps a fee of that coin, stated in its input.
    #[serde(default)]
    pub charges: bool,
    /// Whether every venue that it calls emits an event of the tables: without one it trades
    /// nothing.
    #[serde(default)]
    pub pools_only: bool,
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factory {
    id: u16,
    pub name: Arc<str>,
    /// The contract that creates the pools.
    #[serde(deserialize_with = "fields::account")]
    pub deployer: Account,
    #[serde(deserialize_with = "fields::hex")]
    pub code_hash: Word,
    pub salt: PoolSalt,
    /// Chain slugs; empty for all chains.
    #[serde(default)]
    chains: Vec<String>,
}

impl Factory {
    pub fn is_on(&self, chain: &Chain) -> bool {
        on(&self.chains, chain)
    }

    /// Whether its pools are tokens of their own, whose name a copy keeps.
    pub fn makes_pairs(&self) -> bool {
        matches!(self.salt, PoolSalt::Pair | PoolSalt::StablePair)
    }
}

/// An event without a topic.
#[derive(Debug)]
pub struct Anonymous {
    /// The only contract that logs it; `None`: any may.
    pub emitter: Option<Account>,
    data_bytes: usize,
    pub event: Event,
}

/// All that a pool's factory depends on, next to the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolPlace {
    pub chain: ChainId,
    pub pool: Account,
    /// The tokens of the pool, the lower one first.
    pub pair: [Account; 2],
}

/// Events and contracts of the EVM chains, for the decoder and the lists.
#[derive(Debug)]
pub struct EvmTables {
    events: HashMap<Word, Vec<Event>>,
    anonymous: Vec<Anonymous>,
    contracts: HashMap<Account, Vec<Contract>>,
    factories: Vec<Factory>,
    /// Names of factories by pool; `None` for pools of none.
    makers: BoundedCache<PoolPlace, Option<Arc<str>>>,
}

impl EvmTables {
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
        self.contracts.get(account)?.iter().find(|contract| on(&contract.chains, chain))
    }

    pub fn factories<'a>(&'a self, chain: &'a Chain) -> impl Iterator<Item = &'a Factory> {
        self.factories.iter().filter(|factory| factory.is_on(chain))
    }

    /// The factories of all chains.
    pub fn all_factories(&self) -> &[Factory] {
        &self.factories
    }

    /// The name of the factory of a pool, cached: `derive` takes a hundred hashes, and wallets trade
    /// in the same pools again.
    pub fn maker(
        &self,
        place: PoolPlace,
        derive: impl FnOnce() -> Option<Arc<str>>,
    ) -> Option<Arc<str>> {
        self.makers.get(&place).unwrap_or_else(|| {
            let name = derive();
            self.makers.put(place, name.clone());
            name
        })
    }

    /// Whether a trade through this contract may reach a wallet that did not send the transaction.
    pub fn is_settlement(&self, chain: &Chain, account: &Account) -> bool {
        use ContractKind::{EntryPoint, Exchange, Settlement};
        let contract = self.contract(chain, account);
        contract.is_some_and(|found| matches!(found.kind, Exchange | Settlement | EntryPoint))
    }

    /// Whether the tables name a contract that may exchange what a call gives it: more than a token
    /// that only wraps another one.
    pub fn is_known(&self, chain: &Chain, account: &Account) -> bool {
        let contract = self.contract(chain, account);
        contract.is_some_and(|found| found.kind != ContractKind::Conversion)
    }
}

fn on(chains: &[String], chain: &Chain) -> bool {
    chains.is_empty() || chains.contains(&chain.slug)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    event: Vec<Event>,
    #[serde(default)]
    anonymous: Vec<AnonymousRow>,
    contract: Vec<Contract>,
    #[serde(default)]
    factory: Vec<Factory>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnonymousRow {
    id: u16,
    #[serde(default, deserialize_with = "fields::some_account")]
    address: Option<Account>,
    data_bytes: usize,
    name: Arc<str>,
    kind: EventKind,
    #[serde(default)]
    native: bool,
}

pub(super) fn parse(text: &str, chains: &[Chain]) -> Result<EvmTables, RegistryError> {
    let file: File = toml::from_str(text).map_err(|e| RegistryError::new(TABLE, e))?;
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
    Ok(EvmTables {
        factories: file.factory,
        events: events(file.event)?,
        anonymous: anonymous(file.anonymous)?,
        contracts: contracts(file.contract)?,
        makers: BoundedCache::new(POOLS_CACHED),
    })
}

fn events(rows: Vec<Event>) -> Result<HashMap<Word, Vec<Event>>, RegistryError> {
    let mut events: HashMap<Word, Vec<Event>> = HashMap::default();
    for event in rows {
        let hash = event.signature.as_ref().map(|text| Word::from(Keccak256::digest(text)));
        if hash.is_some_and(|hash| hash != event.topic) {
            return fail(format!("event {}: the topic is not its signature's hash", event.id));
        }
        let others = events.entry(event.topic).or_default();
        // Events of known contracts only are compared first.
        let free = others.iter().any(|other| !other.known_only);
        match (event.known_only, free) {
            (true, _) => others.insert(0, event),
            (false, false) => others.push(event),
            (false, true) => return fail(format!("event {}: the topic stands twice", event.id)),
        }
    }
    Ok(events)
}

fn anonymous(rows: Vec<AnonymousRow>) -> Result<Vec<Anonymous>, RegistryError> {
    let mut events: Vec<Anonymous> = Vec::new();
    for row in rows {
        let (emitter, data_bytes) = (row.address, row.data_bytes);
        if events.iter().any(|one| one.emitter == emitter && one.data_bytes == data_bytes) {
            return fail(format!("event {}: {data_bytes} bytes stand twice", row.id));
        }
        let AnonymousRow { id, name, kind, native, .. } = row;
        let event = Event { id, name, kind, native, ..Event::default() };
        events.push(Anonymous { emitter, data_bytes, event });
    }
    Ok(events)
}

fn contracts(rows: Vec<Contract>) -> Result<HashMap<Account, Vec<Contract>>, RegistryError> {
    let mut contracts: HashMap<Account, Vec<Contract>> = HashMap::default();
    for row in rows {
        let others = contracts.entry(row.address).or_default();
        let meets = |other: &Contract| {
            other.chains.is_empty()
                || row.chains.is_empty()
                || other.chains.iter().any(|chain| row.chains.contains(chain))
        };
        if others.iter().any(meets) {
            return fail(format!("contract {} stands twice", hex::encode(row.address)));
        }
        others.push(row);
    }
    Ok(contracts)
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

fn fail<T>(reason: String) -> Result<T, RegistryError> {
    Err(RegistryError::new(TABLE, reason))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

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
            let topic = hex::decode(topic).unwrap().try_into().unwrap();
            let events = registry.evm().events(&topic);
            assert_eq!(events.len(), 1, "{name}");
            assert_eq!(&**events[0].name(eth), name);
        }
    }

    #[test]
    fn contracts_are_found_by_chain_and_kind() {
        let registry = read(&format!("{EVENT}{CONTRACT}")).unwrap();
        let (eth, base) =
            (registry.chain_named("eth").unwrap(), registry.chain_named("base").unwrap());
        let exchange = hex::decode("111111125421cA6dc452d289314280a0f8842A65").unwrap();
        let exchange = exchange.try_into().unwrap();
        assert!(registry.evm().is_known(eth, &exchange));
        assert!(registry.evm().is_settlement(eth, &exchange));
        assert!(!registry.evm().is_known(base, &exchange));
        assert!(!registry.evm().is_settlement(eth, &[1; 20]));
    }

    #[test]
    fn a_pool_is_derived_once_and_for_its_chain_and_pair_alone() {
        let (registry, derived) = (read(&format!("{EVENT}{CONTRACT}")).unwrap(), Cell::new(0));
        let maker = |place, name: Option<&str>| {
            let derive = || {
                derived.set(derived.get() + 1);
                name.map(Into::into)
            };
            (registry.evm().maker(place, derive).map(|name| name.to_string()), derived.get())
        };
        let place = PoolPlace { chain: ChainId(1), pool: [7; 20], pair: [[1; 20], [2; 20]] };
        let none = PoolPlace { pool: [8; 20], ..place };
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(maker(place, Some("V2")), (name("V2"), 1));
        assert_eq!(maker(none, None), (None, 2));
        // The result is cached, also where there is no maker.
        assert_eq!(maker(place, Some("other")), (name("V2"), 2));
        assert_eq!(maker(none, Some("other")), (None, 2));
        assert_eq!(maker(PoolPlace { chain: ChainId(2), ..place }, Some("V3")), (name("V3"), 3));
        assert_eq!(maker(PoolPlace { pair: [[1; 20], [3; 20]], ..place }, None), (None, 4));
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
