//! The sources of the chains: endpoints as configured, or as the chain table has them.

use std::collections::HashMap;
use std::sync::Arc;

use super::clock::SystemClock;
use super::config::Config;
use super::config_chains::Endpoint;
use super::engine::random_seed;
use super::errors::CliError;
use super::secret::SecretUrl;
use super::units::Rate;
use crate::domain::{ChainId, Family};
use crate::registry::{Chain, Registry};
use crate::upstream::{
    EndpointConfig, Pool, PoolLimits, SecretText, SolanaLimits, SolanaSource, Source, Transport,
    TronLimits, TronSource,
};

/// The chains that this build reads and the configuration does not switch off.
pub(super) fn enabled_chains<'a>(
    config: &Config,
    registry: &'a Registry,
) -> impl Iterator<Item = &'a Chain> {
    let off =
        |slug: &str| config.chains.get(slug).is_some_and(|chain| chain.enabled == Some(false));
    registry.chains().iter().filter(move |chain| chain.enabled && !off(&chain.slug))
}

/// The configured endpoints of a chain, else those of the table.
pub(super) fn endpoints(config: &Config, chain: &Chain) -> Result<Vec<Endpoint>, CliError> {
    if let Some(endpoints) = config.chains.get(&chain.slug).and_then(|chain| chain.rpc.clone()) {
        return Ok(endpoints);
    }
    // Within what the public nodes allow.
    let rate = chain.rpc_rate.map(|rate| Rate { millis: u64::from(rate) * 1000 });
    let batch = chain.rpc_batch;
    let parsed = chain.rpc.iter().map(|url| {
        SecretUrl::parse(url).map(|url| Endpoint { rate, batch, ..Endpoint::plain(url) })
    });
    parsed.collect::<Result<_, _>>().map_err(|reason| {
        CliError::plain(format!("the default endpoints of {}: {reason}", chain.slug))
    })
}

pub(super) fn sources(
    config: &Config,
    registry: &Registry,
    transport: &Arc<dyn Transport>,
) -> Result<HashMap<ChainId, Source>, CliError> {
    let mut sources = HashMap::new();
    for chain in enabled_chains(config, registry) {
        let endpoints = endpoints(config, chain)?;
        let pool = pool(&endpoints, transport, PoolLimits::default())?;
        sources.insert(chain.id, source(chain, pool)?);
    }
    Ok(sources)
}

fn source(chain: &Chain, pool: Pool) -> Result<Source, CliError> {
    match chain.family {
        Family::Solana => {
            let genesis_hash = chain.genesis_hash.clone();
            Ok(Source::Solana(SolanaSource::new(pool, genesis_hash, SolanaLimits::default())))
        }
        Family::Tron => Ok(Source::Tron(TronSource::new(pool, chain, TronLimits::default()))),
        Family::Evm => {
            let slug = &chain.slug;
            Err(CliError::plain(format!(
                "chain {slug} is enabled, but this build reads no EVM chain"
            )))
        }
    }
}

pub(super) fn pool(
    endpoints: &[Endpoint],
    transport: &Arc<dyn Transport>,
    limits: PoolLimits,
) -> Result<Pool, CliError> {
    let endpoints = endpoints.iter().map(endpoint_config).collect();
    // The pool wants 32 bits of it.
    let seed = u32::try_from(random_seed()? >> 32).unwrap_or_default();
    Ok(Pool::new(endpoints, Arc::clone(transport), limits, Arc::new(SystemClock), seed))
}

fn endpoint_config(endpoint: &Endpoint) -> EndpointConfig {
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    EndpointConfig {
        rate_millihertz: endpoint.rate.map(|rate| u32::try_from(rate.millis).unwrap_or(u32::MAX)),
        concurrency: endpoint.concurrency.map(count),
        batch: endpoint.batch.map(count),
        headers: endpoint
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), SecretText::new(value.expose())))
            .collect(),
        ..EndpointConfig::new(endpoint.url.expose())
    }
}
