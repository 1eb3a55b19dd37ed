//! Typed tables out of `data/`, checked at load: a new chain or venue is a row.

mod chains;
mod evm;
mod fields;
mod solana;

pub use chains::{Chain, Finality, NativeCoin, OwnChain, ReferenceId, ReferenceVaults};
pub use evm::{
    Contract, ContractKind, Event, EventKind, EvmTables, Factory, Partner, Payout, Peg, PoolPlace,
    PoolSalt,
};
pub use solana::{AccountKind, Program, ProgramKind, SolanaTables};

use crate::domain::ChainId;

/// A row of `data/` that is not valid.
#[derive(Debug, thiserror::Error)]
#[error("the {table} table cannot be used: {reason}")]
pub struct RegistryError {
    table: &'static str,
    reason: String,
}

impl RegistryError {
    fn new(table: &'static str, reason: impl std::fmt::Display) -> Self {
        Self { table, reason: reason.to_string() }
    }
}

#[derive(Debug)]
pub struct Registry {
    chains: Vec<Chain>,
    solana: SolanaTables,
    evm: EvmTables,
    tron: EvmTables,
}

/// The texts of `data/`.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    pub chains: &'a str,
    pub venues_solana: &'a str,
    pub accounts_solana: &'a str,
    pub venues_evm: &'a str,
    pub venues_tron: &'a str,
}

impl Texts<'static> {
    /// Compiled in.
    pub const EMBEDDED: Self = Self {
        chains: include_str!("../../data/chains.toml"),
        venues_solana: include_str!("../../data/venues-solana.toml"),
        accounts_solana: include_str!("../../data/accounts-solana.toml"),
        venues_evm: include_str!("../../data/venues-evm.toml"),
        venues_tron: include_str!("../../data/venues-tron.toml"),
    };
}

impl Registry {
    /// The tables that are compiled in.
    pub fn embedded() -> Result<Self, RegistryError> {
        Self::parse(Texts::EMBEDDED)
    }

    pub fn parse(texts: Texts<'_>) -> Result<Self, RegistryError> {
        let chains = chains::parse(texts.chains)?;
        Ok(Self {
            solana: solana::parse(texts.venues_solana, texts.accounts_solana)?,
            evm: evm::parse(texts.venues_evm, &chains)?,
            tron: evm::parse(texts.venues_tron, &chains)?,
            chains,
        })
    }

    /// Adds a chain that the table does not have; each name is unique.
    pub fn add(&mut self, own: OwnChain) -> Result<(), RegistryError> {
        let chain = Chain::from(own);
        let slug = &chain.slug;
        if self.chain_named(slug).is_some() {
            return Err(RegistryError::new("chains", format!("name {slug} stands twice")));
        }
        if let Some(other) = self.chain(chain.id) {
            let reason = format!("{slug} and {} need different names", other.slug);
            return Err(RegistryError::new("chains", reason));
        }
        self.chains.push(chain);
        Ok(())
    }

    pub fn solana(&self) -> &SolanaTables {
        &self.solana
    }

    pub fn evm(&self) -> &EvmTables {
        &self.evm
    }

    /// Events and contracts of Tron, in the same form as those of the EVM chains.
    pub fn tron(&self) -> &EvmTables {
        &self.tron
    }

    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    pub fn chain(&self, id: ChainId) -> Option<&Chain> {
        self.chains.iter().find(|chain| chain.id == id)
    }

    /// Finds a chain by its slug or an alias, in any case.
    pub fn chain_named(&self, name: &str) -> Option<&Chain> {
        let is = |known: &String| known.eq_ignore_ascii_case(name);
        self.chains.iter().find(|chain| is(&chain.slug) || chain.aliases.iter().any(is))
    }
}
