//! The `[chains.<slug>]` tables.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::secret::{ConfigSecret, ConfigUrl};
use super::units::RateSetting;
use crate::cli::errors::CliError;
use crate::domain::{Address, Family};
use crate::registry::{Chain, Finality, OwnChain, Registry};
use crate::sources::{Discovery, TronDiscovery};

const ENDPOINTS_MAX: usize = 64;

/// The configuration of one chain. The chain table provides absent values.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cli) struct ChainLayer {
    pub(in crate::cli) enabled: Option<bool>,
    // The next six: own chains only.
    pub(in crate::cli) family: Option<Family>,
    pub(in crate::cli) chain_id: Option<u64>,
    pub(in crate::cli) native: Option<String>,
    pub(in crate::cli) wrapped_native: Option<String>,
    pub(in crate::cli) multicall: Option<String>,
    pub(in crate::cli) finality: Option<Finality>,
    pub(in crate::cli) rpc: Option<Vec<NodeSetting>>,
    pub(in crate::cli) portal: Option<ConfigUrl>,
    pub(in crate::cli) discovery: Option<Vec<FindBy>>,
    pub(in crate::cli) explorer: Option<Explorer>,
    /// Position in the configuration, for error messages.
    #[serde(skip)]
    pub(in crate::cli) place: String,
}

/// A way to find transactions, as named in `discovery`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::cli) enum FindBy {
    Portal,
    Explorer,
    Alchemy,
    Logs,
    /// Tron: account lists.
    Lists,
    /// Tron: events by block range.
    Events,
}

impl FindBy {
    /// The way on an EVM chain.
    pub(in crate::cli) fn evm(self) -> Option<Discovery> {
        match self {
            Self::Portal => Some(Discovery::Portal),
            Self::Explorer => Some(Discovery::Explorer),
            Self::Alchemy => Some(Discovery::Alchemy),
            Self::Logs => Some(Discovery::Logs),
            Self::Lists | Self::Events => None,
        }
    }

    /// With both or neither named, lists are used if an endpoint offers them, else events.
    pub(in crate::cli) fn tron(named: &[Self]) -> TronDiscovery {
        match (named.contains(&Self::Lists), named.contains(&Self::Events)) {
            (true, false) => TronDiscovery::Lists,
            (false, true) => TronDiscovery::Events,
            (true, true) | (false, false) => TronDiscovery::Auto,
        }
    }

    fn is_for(self, family: Family) -> bool {
        match family {
            Family::Solana => false,
            Family::Evm => self.evm().is_some(),
            Family::Tron => self.evm().is_none(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table { url, key, rate }")]
pub(in crate::cli) struct Explorer {
    pub(in crate::cli) url: ConfigUrl,
    pub(in crate::cli) key: Option<ConfigSecret>,
    pub(in crate::cli) rate: Option<RateSetting>,
}

impl Explorer {
    /// The endpoint with its key in the query, and with the chain id if one index serves all
    /// chains.
    pub(in crate::cli) fn endpoint(&self, chain: &Chain) -> Result<NodeSetting, CliError> {
        let mut url = self.url.expose().to_owned();
        let mut join = |name: &str, value: &str| {
            let sign = if url.contains('?') { '&' } else { '?' };
            url = format!("{url}{sign}{name}={value}");
        };
        let host = self.url.host();
        // The multichain APIs of Etherscan and Blockscout (their documentation).
        let number = chain.chain_id.unwrap_or_default().to_string();
        match host.as_str() {
            "api.etherscan.io" if !self.url.expose().contains("chainid=") => {
                join("chainid", &number);
            }
            "api.blockscout.com" if !self.url.expose().contains("chain_id=") => {
                join("chain_id", &number);
            }
            _ => {}
        }
        if let Some(key) = &self.key {
            join("apikey", key.expose());
        }
        let wrong = |reason| CliError::plain(format!("explorer of {}: {reason}", chain.slug));
        let url = ConfigUrl::parse(&url).map_err(wrong)?;
        Ok(NodeSetting { rate: self.rate, ..NodeSetting::plain(url) })
    }
}

/// A node: a URL, or a table with limits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::cli) struct NodeSetting {
    pub(in crate::cli) url: ConfigUrl,
    pub(in crate::cli) rate: Option<RateSetting>,
    pub(in crate::cli) concurrency: Option<u32>,
    pub(in crate::cli) batch: Option<u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(in crate::cli) headers: BTreeMap<String, ConfigSecret>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndpointTable {
    url: ConfigUrl,
    rate: Option<RateSetting>,
    concurrency: Option<u32>,
    batch: Option<u32>,
    #[serde(default)]
    headers: BTreeMap<String, ConfigSecret>,
}

impl NodeSetting {
    pub(in crate::cli) fn plain(url: ConfigUrl) -> Self {
        Self { url, rate: None, concurrency: None, batch: None, headers: BTreeMap::new() }
    }
}

impl<'de> Deserialize<'de> for NodeSetting {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(EndpointVisitor)
    }
}

/// Hand-written, because errors of an untagged enum do not name the cause.
struct EndpointVisitor;

impl<'de> Visitor<'de> for EndpointVisitor {
    type Value = NodeSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address or a table { url, rate, concurrency, batch, headers }")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<NodeSetting, E> {
        ConfigUrl::parse(text).map(NodeSetting::plain).map_err(E::custom)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<NodeSetting, M::Error> {
        let EndpointTable { url, rate, concurrency, batch, headers } =
            EndpointTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(NodeSetting { url, rate, concurrency, batch, headers })
    }
}

impl ChainLayer {
    pub(in crate::cli) fn has_lists(&self) -> bool {
        self.explorer.is_some() || self.portal.is_some()
    }

    /// This layer's values, and `below` for those that are absent.
    pub(in crate::cli) fn over(self, below: Self) -> Self {
        Self {
            enabled: self.enabled.or(below.enabled),
            family: self.family.or(below.family),
            chain_id: self.chain_id.or(below.chain_id),
            native: self.native.or(below.native),
            wrapped_native: self.wrapped_native.or(below.wrapped_native),
            multicall: self.multicall.or(below.multicall),
            finality: self.finality.or(below.finality),
            rpc: self.rpc.or(below.rpc),
            portal: self.portal.or(below.portal),
            discovery: self.discovery.or(below.discovery),
            explorer: self.explorer.or(below.explorer),
            place: self.place,
        }
    }
}

/// Checks one chain's table and returns the chain's slug.
pub(in crate::cli) fn check_chain(
    name: &str,
    chain: &ChainLayer,
    registry: &Registry,
) -> Result<String, String> {
    check_endpoints(chain)?;
    let Some(known) = registry.chain_named(name) else {
        check_own_chain(name, chain)?;
        check_discovery(Family::Evm, chain)?;
        return Ok(name.to_owned());
    };
    let fixed = [
        ("family", chain.family.is_some()),
        ("chain_id", chain.chain_id.is_some()),
        ("native", chain.native.is_some()),
        ("wrapped_native", chain.wrapped_native.is_some()),
        ("multicall", chain.multicall.is_some()),
        ("finality", chain.finality.is_some()),
    ];
    if let Some((key, _)) = fixed.iter().find(|(_, set)| *set) {
        return Err(format!(
            "{key} of {} is fixed by the chain table and cannot be set",
            known.slug
        ));
    }
    if known.family != Family::Evm {
        let evm_only = [
            ("explorer", chain.explorer.is_some()),
            ("portal", chain.portal.is_some() && known.family == Family::Tron),
            ("discovery", chain.discovery.is_some() && known.family == Family::Solana),
        ];
        if let Some((key, _)) = evm_only.iter().find(|(_, set)| *set) {
            return Err(format!("{key} is for EVM chains, {} is none", known.slug));
        }
    }
    check_discovery(known.family, chain)?;
    Ok(known.slug.clone())
}

fn check_discovery(family: Family, chain: &ChainLayer) -> Result<(), String> {
    // On Tron an empty list means the same as none.
    if family == Family::Evm && chain.discovery.as_ref().is_some_and(Vec::is_empty) {
        return Err("discovery is empty: leave it out, or name a way to find wallets".to_owned());
    }
    let named = chain.discovery.iter().flatten();
    if named.clone().all(|way| way.is_for(family)) {
        return Ok(());
    }
    Err(match family {
        Family::Tron => "discovery of Tron names \"lists\", \"events\" or both",
        Family::Evm | Family::Solana => {
            "discovery names \"portal\", \"explorer\", \"alchemy\" and \"logs\"; \"lists\" and \
             \"events\" are Tron's"
        }
    }
    .to_owned())
}

fn check_endpoints(chain: &ChainLayer) -> Result<(), String> {
    let Some(endpoints) = &chain.rpc else { return Ok(()) };
    if endpoints.is_empty() {
        return Err("rpc is empty: leave it out to use the default endpoints".to_owned());
    }
    if endpoints.len() > ENDPOINTS_MAX {
        return Err(format!("rpc has more than {ENDPOINTS_MAX} endpoints"));
    }
    for endpoint in endpoints {
        if endpoint.concurrency == Some(0) || endpoint.batch == Some(0) {
            return Err("concurrency and batch of an endpoint are at least 1".to_owned());
        }
        for (name, value) in &endpoint.headers {
            let right = name.parse::<http::HeaderName>().is_ok()
                && http::HeaderValue::from_str(value.expose()).is_ok();
            if !right {
                return Err(format!("{name} is no header, or its value cannot be sent"));
            }
        }
    }
    Ok(())
}

/// Multicall3's address on most chains (its list of deployments).
const MULTICALL: &str = "0xcA11bde05977b3631167028862bE2a173976CA11";

fn check_own_chain(name: &str, chain: &ChainLayer) -> Result<(), String> {
    let slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.is_empty() || !name.chars().all(slug) {
        return Err(format!("{name} is no chain name: use a-z and 0-9"));
    }
    let Some(family) = chain.family else {
        return Err(format!(
            "{name} is not in the chain table; an own chain needs family = \"evm\""
        ));
    };
    if family != Family::Evm {
        return Err("an own chain has family = \"evm\"".to_owned());
    }
    own_chain(name, chain).map(drop)
}

/// A chain that the chain table lacks and the configuration defines.
pub(in crate::cli) fn own_chain(name: &str, chain: &ChainLayer) -> Result<OwnChain, String> {
    let needs = |key: &str| format!("the own chain {name} needs {key}");
    let address = |key: &str, text: &str| {
        Address::parse(Family::Evm, text).map_err(|error| format!("{key}: {error}"))
    };
    let wrapped_native = chain.wrapped_native.as_deref().ok_or_else(|| needs("wrapped_native"))?;
    if chain.rpc.is_none() {
        return Err(needs("rpc"));
    }
    Ok(OwnChain {
        slug: name.to_owned(),
        chain_id: chain.chain_id.ok_or_else(|| needs("chain_id"))?,
        native: chain.native.clone().ok_or_else(|| needs("native"))?,
        wrapped_native: address("wrapped_native", wrapped_native)?,
        multicall: Some(address("multicall", chain.multicall.as_deref().unwrap_or(MULTICALL))?),
        finality: chain.finality.unwrap_or_default(),
    })
}
