//! The chain table: `data/chains.toml`, checked at load.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::RegistryError;
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
    /// So many blocks below the newest one, on chains whose tags are not usable.
    Depth(u64),
}

/// A pool of the native coin and a stablecoin in a contract that holds many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceId {
    pub manager: Address,
    pub stable: Address,
    pub id: [u8; 32],
}

/// The two token accounts of a Solana pool of the wrapped coin and a stablecoin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceVaults {
    pub native: Address,
    pub stable: Address,
    /// The pool's fee on the input, in millionths.
    pub fee: u32,
}

/// One chain.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// EVM: an open data gateway that serves requests without a key.
    pub portal: Option<String>,
    /// EVM: account lists (Etherscan's API) that serve requests without a key.
    pub lists: Option<String>,
    /// EVM: the contract that aggregates many read-only calls.
    pub multicall: Option<Address>,
    /// EVM: when a block is final.
    pub finality: Finality,
    /// Contracts whose `Transfer` events repeat movements of another asset: not tokens of their
    /// own.
    pub mirrors: Vec<Address>,
    /// Tokens worth one US dollar.
    pub stablecoins: Vec<Address>,
    /// EVM and Tron: pools of the wrapped coin and a stablecoin, by which dollars convert to the
    /// coin.
    pub reference_pools: Vec<Address>,
    /// EVM: the same in contracts that hold many pools (Uniswap V4), of the unwrapped coin.
    pub reference_ids: Vec<ReferenceId>,
    /// Solana: reference pools by their vaults.
    pub reference_vaults: Vec<ReferenceVaults>,
    /// EVM and Tron: how many blocks below a height a reference pool's state still counts as its
    /// state at that height.
    pub reference_blocks: u64,
    /// The native coin's name at a price service.
    pub price_coin: Option<String>,
    /// Block explorer for links to transactions.
    pub explorer: String,
    /// Heights that an index may lag behind the head, where it does not report its own head.
    pub index_lag: u64,
    /// EVM: whether an account without code sends transactions of consecutive nonces, and an index
    /// lists all of them.
    pub counts_sent: bool,
    /// Date at which the default endpoints were last tried, or `never`.
    pub verified: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    chain: Vec<ChainRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VaultRow {
    native: String,
    stable: String,
    fee: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IdRow {
    manager: String,
    stable: String,
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainRow {
    id: u16,
    slug: String,
    aliases: Vec<String>,
    name: String,
    family: Family,
    chain_id: Option<u64>,
    genesis_hash: Option<String>,
    native: NativeCoin,
    wrapped_native: String,
    rpc: Vec<String>,
    rpc_rate: Option<u32>,
    rpc_batch: Option<u32>,
    portal: Option<String>,
    lists: Option<String>,
    multicall: Option<String>,
    #[serde(default)]
    finality: Finality,
    #[serde(default)]
    mirrors: Vec<String>,
    #[serde(default)]
    stablecoins: Vec<String>,
    #[serde(default)]
    reference_pools: Vec<String>,
    #[serde(default)]
    reference_ids: Vec<IdRow>,
    #[serde(default)]
    reference_vaults: Vec<VaultRow>,
    reference_blocks: Option<u64>,
    price_coin: Option<String>,
    explorer: String,
    index_lag: u64,
    #[serde(default)]
    counts_sent: bool,
    verified: String,
}

pub(super) fn parse(text: &str) -> Result<Vec<Chain>, RegistryError> {
    let file: File = toml::from_str(text).map_err(|e| RegistryError::new("chains", e))?;
    let (mut ids, mut names) = (HashSet::new(), HashSet::new());
    for row in &file.chain {
        if row.id >= OWN_ID_MIN {
            return Err(RegistryError::new("chains", format!("id {} is too large", row.id)));
        }
        if !ids.insert(row.id) {
            return Err(RegistryError::new("chains", format!("id {} stands twice", row.id)));
        }
        for name in row.aliases.iter().chain([&row.slug]) {
            if !names.insert(name.clone()) {
                return Err(RegistryError::new("chains", format!("name {name} stands twice")));
            }
        }
    }
    file.chain.into_iter().map(Chain::from_row).collect()
}

/// An EVM chain that the table does not have, as its user describes it.
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
const REFERENCE_BLOCKS: u64 = 16;

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
            stablecoins: Vec::new(),
            reference_pools: Vec::new(),
            reference_ids: Vec::new(),
            reference_vaults: Vec::new(),
            reference_blocks: REFERENCE_BLOCKS,
            price_coin: None,
            explorer: String::new(),
            index_lag: OWN_INDEX_LAG,
            counts_sent: false,
            verified: "never".to_owned(),
        }
    }
}

/// Derived from the name, so that stored data stays the chain's under any other configuration.
fn own_id(slug: &str) -> ChainId {
    let digest = Sha256::digest(slug);
    let number = digest.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes));
    ChainId(number | OWN_ID_MIN)
}

impl Chain {
    fn from_row(row: ChainRow) -> Result<Self, RegistryError> {
        let address = |text: &String| {
            let fail = |e| RegistryError::new("chains", format!("{}: {text}: {e}", row.slug));
            Address::parse(row.family, text).map_err(fail)
        };
        let addresses = |texts: &[String]| texts.iter().map(address).collect::<Result<Vec<_>, _>>();
        let wrapped_native = address(&row.wrapped_native)?;
        let multicall = row.multicall.as_ref().map(address).transpose()?;
        let reference_pools = addresses(&row.reference_pools)?;
        let of_id = |row: &IdRow| {
            let mut id = [0; 32];
            hex::decode_to_slice(row.id.trim_start_matches("0x"), &mut id)
                .map_err(|e| RegistryError::new("chains", format!("{}: {e}", row.id)))?;
            let (manager, stable) = (address(&row.manager)?, address(&row.stable)?);
            Ok(ReferenceId { manager, stable, id })
        };
        let reference_ids = row.reference_ids.iter().map(of_id).collect::<Result<_, _>>()?;
        let of_vaults = |row: &VaultRow| {
            let (native, stable) = (address(&row.native)?, address(&row.stable)?);
            Ok(ReferenceVaults { native, stable, fee: row.fee })
        };
        let reference_vaults =
            row.reference_vaults.iter().map(of_vaults).collect::<Result<_, RegistryError>>()?;
        let (mirrors, stablecoins) = (addresses(&row.mirrors)?, addresses(&row.stablecoins)?);
        Ok(Self {
            id: ChainId(row.id),
            slug: row.slug,
            aliases: row.aliases,
            name: row.name,
            family: row.family,
            chain_id: row.chain_id,
            genesis_hash: row.genesis_hash,
            native: row.native,
            wrapped_native,
            rpc: row.rpc,
            rpc_rate: row.rpc_rate,
            rpc_batch: row.rpc_batch,
            portal: row.portal,
            lists: row.lists,
            multicall,
            finality: row.finality,
            mirrors,
            stablecoins,
            reference_pools,
            reference_ids,
            reference_vaults,
            reference_blocks: row.reference_blocks.unwrap_or(REFERENCE_BLOCKS).max(1),
            price_coin: row.price_coin,
            explorer: row.explorer,
            index_lag: row.index_lag,
            counts_sent: row.counts_sent,
            verified: row.verified,
        })
    }
}
