//! The chain table: `data/chains.toml`, checked at load.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{RegistryError, fields};
use crate::domain::{Address, ChainId, Family};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeCoin {
    pub symbol: String,
    pub decimals: u8,
}

/// The rule by which a block of an EVM chain is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Finality {
    /// The node's `finalized` tag.
    #[default]
    Finalized,
    /// The node's `safe` tag.
    Safe,
    /// A number of blocks below the newest one, on chains whose tags are not usable.
    Depth(u64),
}

/// A pool of the native coin and a stablecoin in a contract that holds many pools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceId {
    pub manager: Address,
    pub stable: Address,
    #[serde(deserialize_with = "fields::hex")]
    pub id: [u8; 32],
}

/// The two token accounts of a Solana pool of the wrapped coin and a stablecoin.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceVaults {
    pub native: Address,
    pub stable: Address,
    /// The pool's fee on the input, in millionths.
    pub fee: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    pub id: ChainId,
    /// The `chain` value of the contract.
    pub slug: String,
    /// Other names that clients send.
    pub aliases: Vec<String>,
    pub name: String,
    pub family: Family,
    /// EVM and Tron: the expected result of `eth_chainId`.
    pub chain_id: Option<u64>,
    /// Solana: the expected result of `getGenesisHash`.
    pub genesis_hash: Option<String>,
    pub native: NativeCoin,
    pub wrapped_native: Address,
    /// Endpoints used when none is configured.
    pub rpc: Vec<String>,
    /// Limits of their operators: calls a second, and calls in a batch.
    pub rpc_rate: Option<u32>,
    pub rpc_batch: Option<u32>,
    /// EVM and Solana: an open data gateway that serves requests without a key.
    pub portal: Option<String>,
    /// EVM: account lists (Etherscan's API) that serve requests without a key.
    pub lists: Option<String>,
    /// EVM: the contract that aggregates many read-only calls.
    pub multicall: Option<Address>,
    /// EVM: when a block is final.
    #[serde(default)]
    pub finality: Finality,
    /// Contracts whose `Transfer` events repeat movements of another asset: not tokens of their
    /// own.
    #[serde(default)]
    pub mirrors: Vec<Address>,
    /// EVM: pairs of tokens that are interfaces to one balance: a `Transfer` of the first one
    /// directly before the second one's is the same movement in another unit.
    #[serde(default)]
    pub interfaces: Vec<[Address; 2]>,
    /// EVM: accounts that builders of blocks name for tips, where headers do not name them.
    #[serde(default)]
    pub builders: Vec<Address>,
    /// EVM: tokens that are burnt for the network's refund of storage, which pays a part of its
    /// fee.
    #[serde(default)]
    pub gas_tokens: Vec<Address>,
    /// Tokens worth one US dollar.
    #[serde(default)]
    pub stablecoins: Vec<Address>,
    /// EVM and Tron: pools of the wrapped coin and a stablecoin, by which dollars convert to the
    /// coin.
    #[serde(default)]
    pub reference_pools: Vec<Address>,
    /// EVM: the same in contracts that hold many pools (Uniswap V4), of the unwrapped coin.
    #[serde(default)]
    pub reference_ids: Vec<ReferenceId>,
    /// Solana: reference pools by their vaults.
    #[serde(default)]
    pub reference_vaults: Vec<ReferenceVaults>,
    /// EVM and Tron: how many blocks below a height a reference pool's state still counts as its
    /// state at that height.
    #[serde(default = "reference_blocks")]
    pub reference_blocks: u64,
    /// The native coin's name at a price service.
    pub price_coin: Option<String>,
    /// Block explorer for links to transactions.
    pub explorer: String,
    /// Heights that an index may lag behind the head, where it does not report its own head.
    pub index_lag: u64,
    /// EVM: whether an account without code sends transactions of consecutive nonces, and an index
    /// lists all of them.
    #[serde(default)]
    pub counts_sent: bool,
    /// Date at which the default endpoints were last tried, or `never`.
    pub verified: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    chain: Vec<Chain>,
}

pub(super) fn parse(text: &str) -> Result<Vec<Chain>, RegistryError> {
    let mut file: File = toml::from_str(text).map_err(|e| RegistryError::new("chains", e))?;
    let fail = |reason| Err(RegistryError { table: "chains", reason });
    let (mut ids, mut names) = (HashSet::new(), HashSet::new());
    for row in &mut file.chain {
        if row.id.0 >= OWN_ID_MIN {
            return fail(format!("id {} is too large", row.id.0));
        }
        if !ids.insert(row.id) {
            return fail(format!("id {} stands twice", row.id.0));
        }
        for name in row.aliases.iter().chain([&row.slug]) {
            if !names.insert(name.clone()) {
                return fail(format!("name {name} stands twice"));
            }
        }
        if let Some(other) = row.addresses().find(|address| address.family() != row.family) {
            return fail(format!("{}: {other} is of another family", row.slug));
        }
        row.reference_blocks = row.reference_blocks.max(1);
    }
    Ok(file.chain)
}

/// An EVM chain that the table does not have, from the user's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnChain {
    pub slug: String,
    pub chain_id: u64,
    pub native: String,
    pub wrapped_native: Address,
    pub multicall: Option<Address>,
    pub finality: Finality,
}

/// Chain numbers from here on belong to chains that the user defines.
const OWN_ID_MIN: u16 = 1 << 15;
/// Decimals of the native coin of every EVM chain, and the assumed index lag of an unknown one.
const OWN_DECIMALS: u8 = 18;
const OWN_INDEX_LAG: u64 = 64;

/// `reference_blocks` where a row has none.
fn reference_blocks() -> u64 {
    16
}

impl From<OwnChain> for Chain {
    fn from(own: OwnChain) -> Self {
        Self {
            id: own_id(&own.slug),
            name: own.slug.clone(),
            slug: own.slug,
            aliases: Vec::new(),
            family: Family::Evm,
            chain_id: Some(own.chain_id),
            genesis_hash: None,
            native: NativeCoin { symbol: own.native, decimals: OWN_DECIMALS },
            wrapped_native: own.wrapped_native,
            rpc: Vec::new(),
            rpc_rate: None,
            rpc_batch: None,
            portal: None,
            lists: None,
            multicall: own.multicall,
            finality: own.finality,
            mirrors: Vec::new(),
            interfaces: Vec::new(),
            builders: Vec::new(),
            gas_tokens: Vec::new(),
            stablecoins: Vec::new(),
            reference_pools: Vec::new(),
            reference_ids: Vec::new(),
            reference_vaults: Vec::new(),
            reference_blocks: reference_blocks(),
            price_coin: None,
            explorer: String::new(),
            index_lag: OWN_INDEX_LAG,
            counts_sent: false,
            verified: "never".to_owned(),
        }
    }
}

/// Derived from the name, so that stored data stays with its chain when the configuration changes.
fn own_id(slug: &str) -> ChainId {
    let digest = Sha256::digest(slug);
    let number = digest.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes));
    ChainId(number | OWN_ID_MIN)
}

impl Chain {
    fn addresses(&self) -> impl Iterator<Item = &Address> {
        let of_ids = self.reference_ids.iter().flat_map(|row| [&row.manager, &row.stable]);
        let of_vaults = self.reference_vaults.iter().flat_map(|row| [&row.native, &row.stable]);
        let lists = [&self.mirrors, &self.gas_tokens, &self.stablecoins, &self.reference_pools];
        let of_lists = lists.into_iter().flatten().chain(&self.multicall);
        let of_pairs = self.interfaces.iter().flatten().chain(&self.builders);
        of_lists.chain([&self.wrapped_native]).chain(of_pairs).chain(of_ids).chain(of_vaults)
    }
}
