//! Typed tables out of `data/`, checked at load: a new chain or venue is a row.

mod chains;

pub use chains::{Chain, NativeCoin};

use crate::domain::ChainId;

/// A row of `data/` that cannot be used.
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

/// All tables.
#[derive(Debug)]
pub struct Registry {
    chains: Vec<Chain>,
}

impl Registry {
    /// The tables that are compiled in.
    pub fn embedded() -> Result<Self, RegistryError> {
        Self::parse(include_str!("../../data/chains.toml"))
    }

    pub fn parse(chains: &str) -> Result<Self, RegistryError> {
        Ok(Self { chains: chains::parse(chains)? })
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
