//! Events and contracts of the EVM chains: `data/venues-evm.toml`.

use serde::Deserialize;

use super::RegistryError;

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
