//! Builds the sources of the chains from their configured or default endpoints.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};

use super::clock::SystemClock;
use super::config::Config;
use super::config::chains::{FindBy, NodeSetting};
use super::config::secret::ConfigUrl;
use super::config::units::RateSetting;
use super::errors::CliError;
use super::seed::random_seed;
use crate::domain::{ChainId, Family, lock};
use crate::registry::{Chain, Registry};
use crate::rpc::{EndpointConfig, Pool, PoolLimits, RateAccount, RateShare, SecretText, Transport};
use crate::sources::{
    Candles, Discovery, EvmLimits, EvmParts, EvmSource, SolanaLimits, SolanaSource, Source,
    TronLimits, TronSource,
};

/// The transport to the nodes and the rates that their pools share.
#[derive(Debug, Clone)]
pub(super) struct Nodes {
    pub(super) transport: Arc<dyn Transport>,
    /// The number of processes that divide the configured rates.
    pub(super) share: RateShare,
    lists: ListRates,
}

/// The rate accounts of gateways and explorers, by hash of host and key. These services count the
/// requests of all chains together.
#[derive(Debug, Clone, Default)]
struct ListRates(Arc<Mutex<HashMap<u64, RateAccount>>>);

impl ListRates {
    fn account(&self, list: &NodeSetting) -> RateAccount {
        let url = list.url.expose();
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let host: Vec<&str> = place.splitn(4, '/').take(3).collect();
        let key = query.split('&').find(|part| part.to_lowercase().starts_with("apikey="));
        let mut hasher = DefaultHasher::new();
        (host, key).hash(&mut hasher);
        let mut known = lock(&self.0);
        known.entry(hasher.finish()).or_default().clone()
    }
}

impl Nodes {
    /// Nodes whose rates no other process shares so far.
    pub(super) fn alone(transport: &Arc<dyn Transport>) -> Self {
        let (share, lists) = (RateShare::default(), ListRates::default());
        Self { transport: Arc::clone(transport), share, lists }
    }
}

/// The configured endpoints of a chain, else those of the chain table.
pub(super) fn endpoints(config: &Config, chain: &Chain) -> Result<Vec<NodeSetting>, CliError> {
    if let Some(endpoints) = config.chains.get(&chain.slug).and_then(|chain| chain.rpc.clone()) {
        return Ok(endpoints);
    }
    // The rate that the public nodes allow.
    let rate = chain.rpc_rate.map(|rate| RateSetting { millis: u64::from(rate) * 1000 });
    let batch = chain.rpc_batch;
    let parsed = chain.rpc.iter().map(|url| {
        ConfigUrl::parse(url).map(|url| NodeSetting { rate, batch, ..NodeSetting::plain(url) })
    });
    parsed.collect::<Result<_, _>>().map_err(|reason| {
        CliError::plain(format!("the default endpoints of {}: {reason}", chain.slug))
    })
}

pub(super) fn sources(
    config: &Config,
    registry: &Arc<Registry>,
    nodes: &Nodes,
) -> Result<HashMap<ChainId, Source>, CliError> {
    let mut sources = HashMap::new();
    for chain in registry.chains() {
        if let Some(source) = source(config, chain, registry, nodes)? {
            sources.insert(chain.id, source);
        }
    }
    Ok(sources)
}

/// Whether the configuration enables a chain, which is the default.
pub(super) fn is_on(config: &Config, chain: &Chain) -> bool {
    config.chains.get(&chain.slug).is_none_or(|layer| layer.enabled != Some(false))
}

/// The source of a chain; `None` if the configuration disables it.
pub(super) fn source(
    config: &Config,
    chain: &Chain,
    registry: &Arc<Registry>,
    nodes: &Nodes,
) -> Result<Option<Source>, CliError> {
    if !is_on(config, chain) {
        return Ok(None);
    }
    if config.chains.get(&chain.slug).is_some_and(|own| own.rpc.is_none() && own.has_lists()) {
        tracing::warn!(
            chain = %chain.slug,
            "an explorer or a gateway is configured but no node: public nodes serve other requests and see the wallets; name one in `rpc`"
        );
    }
    let endpoints = endpoints(config, chain)?;
    let rpc = pool(&endpoints, nodes, PoolLimits::default())?;
    let lists = ChainLists::of(config, chain)?;
    let open = |list: Option<NodeSetting>| list.map(|list| list_pool(&list, nodes)).transpose();
    Ok(Some(match chain.family {
        Family::Solana => {
            let genesis_hash = chain.genesis_hash.clone();
            let source = SolanaSource::new(rpc, genesis_hash, SolanaLimits::default());
            let source = source.with_references(chain).with_busy_account(chain);
            Source::Solana(source.with_gateway(open(lists.portal)?))
        }
        Family::Evm => Source::Evm(EvmSource::new(EvmParts {
            chain: chain.clone(),
            registry: Arc::clone(registry),
            rpc,
            explorer: open(lists.explorer)?,
            portal: open(lists.portal)?,
            discovery: lists.order,
            limits: EvmLimits::default(),
        })),
        Family::Tron => {
            let settings = config.chains.get(&chain.slug);
            let named = settings.and_then(|settings| settings.discovery.as_deref());
            let discovery = FindBy::tron(named.unwrap_or_default());
            let limits = TronLimits { discovery, ..TronLimits::default() };
            Source::Tron(TronSource::new(rpc, chain, limits))
        }
    }))
}

pub(super) fn candles(
    config: &Config,
    registry: &Registry,
    nodes: &Nodes,
) -> Result<Option<Candles>, CliError> {
    let Some(url) = &config.prices.candles.0 else { return Ok(None) };
    let rate = Some(config.prices.candles_rate);
    let endpoint = NodeSetting { rate, ..NodeSetting::plain(url.clone()) };
    let pool = pool(&[endpoint], nodes, PoolLimits::default())?;
    Ok(Some(Candles::new(pool, registry)))
}

/// The explorer and the gateway of a chain; on an EVM chain also the order of discovery.
#[derive(Debug, Default)]
pub(super) struct ChainLists {
    pub(super) explorer: Option<NodeSetting>,
    pub(super) portal: Option<NodeSetting>,
    pub(super) order: Vec<Discovery>,
}

/// Cheapest first.
const DISCOVERY: [Discovery; 4] =
    [Discovery::Portal, Discovery::Explorer, Discovery::Alchemy, Discovery::Logs];

impl ChainLists {
    /// The lists of a chain: Solana has a gateway at most, and Tron none. The public lists of the
    /// chain table are used only if no endpoint of the chain is configured or `discovery` names
    /// them: an operator with own nodes may not want third parties to see which wallets are read.
    pub(super) fn of(config: &Config, chain: &Chain) -> Result<Self, CliError> {
        let settings = config.chains.get(&chain.slug);
        let named = settings.and_then(|settings| settings.discovery.as_deref());
        let named: Option<Vec<Discovery>> =
            named.map(|named| named.iter().filter_map(|way| way.evm()).collect());
        let own = settings.is_some_and(|own| own.rpc.is_some() || own.has_lists());
        let by_table = |kind: Discovery| match &named {
            Some(named) => named.contains(&kind),
            None => !own,
        };
        let table =
            |url: &Option<String>| url.as_deref().map(|url| public_list(url, chain)).transpose();
        let portal = match settings.and_then(|settings| settings.portal.clone()) {
            Some(url) => Some(NodeSetting::plain(url)),
            None if by_table(Discovery::Portal) => table(&chain.portal)?,
            None => None,
        };
        let explorer = match settings.and_then(|settings| settings.explorer.as_ref()) {
            Some(explorer) => Some(explorer.endpoint(chain)?),
            None if by_table(Discovery::Explorer) => table(&chain.lists)?,
            None => None,
        };
        let is_available = |kind: Discovery| match kind {
            Discovery::Portal => portal.is_some(),
            Discovery::Explorer => explorer.is_some(),
            Discovery::Alchemy | Discovery::Logs => true,
        };
        let order = match &named {
            None => DISCOVERY.into_iter().filter(|kind| is_available(*kind)).collect(),
            Some(named) => {
                if let Some(missing) = named.iter().find(|kind| !is_available(**kind)) {
                    return Err(CliError::Usage(format!(
                        "discovery of {} names {missing}, but no {missing} is configured",
                        chain.slug
                    )));
                }
                named.clone()
            }
        };
        Ok(Self { explorer, portal, order })
    }
}

/// Requests per second to keyless public lists: SQD Portal allows 20 in 10 seconds (its
/// documentation), and public explorers get the same rate.
const PUBLIC_LIST_RATE: u64 = 2;

fn public_list(url: &str, chain: &Chain) -> Result<NodeSetting, CliError> {
    let url = ConfigUrl::parse(url).map_err(|reason| {
        CliError::plain(format!("the default lists of {}: {reason}", chain.slug))
    })?;
    let rate = Some(RateSetting { millis: PUBLIC_LIST_RATE * 1000 });
    Ok(NodeSetting { rate, ..NodeSetting::plain(url) })
}

pub(super) fn pool(
    endpoints: &[NodeSetting],
    nodes: &Nodes,
    limits: PoolLimits,
) -> Result<Pool, CliError> {
    let endpoint = |endpoint| endpoint_config(endpoint, nodes.share.clone());
    pool_of(endpoints.iter().map(endpoint).collect(), nodes, limits)
}

/// Largest response of a gateway, which cuts its own at about 32 MB.
const LIST_BYTES_MAX: usize = 48 << 20;

fn list_pool(list: &NodeSetting, nodes: &Nodes) -> Result<Pool, CliError> {
    let rate_account = Some(nodes.lists.account(list));
    let config = endpoint_config(list, nodes.share.clone());
    let limits = PoolLimits { body_bytes_max: LIST_BYTES_MAX, ..PoolLimits::default() };
    pool_of(vec![EndpointConfig { rate_account, ..config }], nodes, limits)
}

fn pool_of(
    endpoints: Vec<EndpointConfig>,
    nodes: &Nodes,
    limits: PoolLimits,
) -> Result<Pool, CliError> {
    // The pool takes 32 bits.
    let seed = u32::try_from(random_seed()? >> 32).unwrap_or_default();
    Ok(Pool::new(endpoints, Arc::clone(&nodes.transport), limits, Arc::new(SystemClock), seed))
}

fn endpoint_config(endpoint: &NodeSetting, share: RateShare) -> EndpointConfig {
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    EndpointConfig {
        rate_millihertz: endpoint.rate.map(|rate| u32::try_from(rate.millis).unwrap_or(u32::MAX)),
        share,
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
