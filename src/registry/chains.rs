//! The chain table: `data/chains.toml`, checked at load.

use std::collections::HashSet;

use serde::Deserialize;

use super::RegistryError;
use crate::domain::{Address, ChainId, Family};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeCoin {
    pub symbol: String,
    pub decimals: u8,
}

/// Which block of an EVM chain counts as final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finality {
    /// The node's `finalized` tag.
    #[default]
    Finalized,
    /// The node's `safe` tag.
    Safe,
    /// So many blocks below the newest one, where tags tell nothing.
    Depth(u64),
}

/// One chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    pub id: ChainId,
    /// The `chain` value of the contract.
    pub slug: String,
    /// Other names that clients send for it.
    pub aliases: Vec<String>,
    pub name: String,
    pub family: Family,
    /// EVM and Tron: what `eth_chainId` must answer.
    pub chain_id: Option<u64>,
    /// Solana: what `getGenesisHash` must answer.
    pub genesis_hash: Option<String>,
    pub native: NativeCoin,
    pub wrapped_native: Address,
    /// Endpoints used when none is configured.
    pub rpc: Vec<String>,
    /// What their operators allow: calls a second, and calls in a batch.
    pub rpc_rate: Option<u32>,
    pub rpc_batch: Option<u32>,
    /// EVM: an open data gateway that may be asked without a key.
    pub portal: Option<String>,
    /// EVM: account lists (Etherscan's shape) that may be asked without a key.
    pub lists: Option<String>,
    /// EVM: the contract that makes many read-only calls in one.
    pub multicall: Option<Address>,
    /// EVM: when a block cannot be taken back any more.
    pub finality: Finality,
    /// Contracts whose `Transfer` events repeat movements of another asset: no tokens of their own.
    pub mirrors: Vec<Address>,
    /// Tokens worth one US dollar.
    pub stablecoins: Vec<Address>,
    /// Site that shows transactions to people.
    pub explorer: String,
    /// Heights kept below a head that the source of a list does not tell itself.
    pub index_lag: u64,
    /// Whether this build can read the chain.
    pub enabled: bool,
    /// When the default endpoints were tried live: a date, or `never`.
    pub verified: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    chain: Vec<ChainRow>,
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
    explorer: String,
    index_lag: u64,
    enabled: bool,
    verified: String,
}

pub(super) fn parse(text: &str) -> Result<Vec<Chain>, RegistryError> {
    let file: File = toml::from_str(text).map_err(|e| RegistryError::new("chains", e))?;
    let (mut ids, mut names) = (HashSet::new(), HashSet::new());
    for row in &file.chain {
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

impl Chain {
    fn from_row(row: ChainRow) -> Result<Self, RegistryError> {
        let address = |text: &String| {
            let fail = |e| RegistryError::new("chains", format!("{}: {text}: {e}", row.slug));
            Address::parse(row.family, text).map_err(fail)
        };
        let addresses = |texts: &[String]| texts.iter().map(address).collect::<Result<Vec<_>, _>>();
        let wrapped_native = address(&row.wrapped_native)?;
        let multicall = row.multicall.as_ref().map(address).transpose()?;
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
            explorer: row.explorer,
            index_lag: row.index_lag,
            enabled: row.enabled,
            verified: row.verified,
        })
    }
}
