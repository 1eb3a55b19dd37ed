//! Events and contracts of the EVM chains: `data/venues-evm.toml`.

use serde::Deserialize;

use super::{Chain, RegistryError};

/// What the decoder and the lists know about contracts and events of EVM chains.
#[derive(Debug)]
pub struct EvmTables {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {}

pub(super) fn parse(text: &str) -> Result<EvmTables, RegistryError> {
    let File {} = toml::from_str(text).map_err(|e| RegistryError::new("venues-evm", e))?;
    Ok(EvmTables {})
}

impl EvmTables {
    /// Whether a trade may reach through this contract a wallet that did not send the transaction.
    pub fn is_settlement(&self, _chain: &Chain, _account: &[u8; 20]) -> bool {
        false
    }

    /// Whether a contract is known by name.
    pub fn is_known(&self, _chain: &Chain, _account: &[u8; 20]) -> bool {
        false
    }
}
