//! The `[chains.<slug>]` tables.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::secret::{SecretText, SecretUrl};
use super::units::Rate;
use crate::domain::{Address, Family};
use crate::registry::Registry;

/// Most endpoints of one chain.
const ENDPOINTS_MAX: usize = 64;

/// What is configured for one chain. Absent values are the chain table's.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainLayer {
    pub(super) enabled: Option<bool>,
    /// Own chains only.
    pub(super) family: Option<Family>,
    pub(super) chain_id: Option<u64>,
    pub(super) native: Option<String>,
    pub(super) wrapped_native: Option<String>,
    pub(super) rpc: Option<Vec<Endpoint>>,
    pub(super) portal: Option<SecretUrl>,
    pub(super) discovery: Option<Vec<Discovery>>,
    pub(super) explorer: Option<Explorer>,
    /// Where it stands, for errors.
    #[serde(skip)]
    pub(super) place: String,
}

/// An index with account lists.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Explorer {
    pub(super) url: SecretUrl,
    pub(super) key: Option<SecretText>,
}

/// Ways to find a wallet's transactions on an EVM chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Discovery {
    Portal,
    Explorer,
    Alchemy,
    Logs,
}

/// A node: its address alone, or a table with limits.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Endpoint {
    pub(super) url: SecretUrl,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) batch: Option<u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) headers: BTreeMap<String, SecretText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndpointTable {
    url: SecretUrl,
    rate: Option<Rate>,
    concurrency: Option<u32>,
    batch: Option<u32>,
    #[serde(default)]
    headers: BTreeMap<String, SecretText>,
}

impl Endpoint {
    pub(super) fn plain(url: SecretUrl) -> Self {
        Self { url, rate: None, concurrency: None, batch: None, headers: BTreeMap::new() }
    }
}

impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(EndpointVisitor)
    }
}

/// Written by hand, because an untagged enum would not say what is wrong.
struct EndpointVisitor;

impl<'de> Visitor<'de> for EndpointVisitor {
    type Value = Endpoint;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address or a table { url, rate, concurrency, batch, headers }")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Endpoint, E> {
        SecretUrl::parse(text).map(Endpoint::plain).map_err(E::custom)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Endpoint, M::Error> {
        let EndpointTable { url, rate, concurrency, batch, headers } =
            EndpointTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Endpoint { url, rate, concurrency, batch, headers })
    }
}

impl ChainLayer {
    pub(super) fn over(self, below: Self) -> Self {
        Self {
            enabled: self.enabled.or(below.enabled),
            family: self.family.or(below.family),
            chain_id: self.chain_id.or(below.chain_id),
            native: self.native.or(below.native),
            wrapped_native: self.wrapped_native.or(below.wrapped_native),
            rpc: self.rpc.or(below.rpc),
            portal: self.portal.or(below.portal),
            discovery: self.discovery.or(below.discovery),
            explorer: self.explorer.or(below.explorer),
            place: self.place,
        }
    }
}

/// Checks one chain's table and gives the chain's slug.
pub(super) fn check_chain(
    name: &str,
    chain: &ChainLayer,
    registry: &Registry,
) -> Result<String, String> {
    check_endpoints(chain)?;
    let Some(known) = registry.chain_named(name) else {
        check_own_chain(name, chain)?;
        return Ok(name.to_owned());
    };
    let told = [
        ("family", chain.family.is_some()),
        ("chain_id", chain.chain_id.is_some()),
        ("native", chain.native.is_some()),
        ("wrapped_native", chain.wrapped_native.is_some()),
    ];
    if let Some((key, _)) = told.iter().find(|(_, set)| *set) {
        return Err(format!(
            "{key} of {} is told by the chain table and cannot be set",
            known.slug
        ));
    }
    if known.family != Family::Evm {
        let evm_only = [
            ("explorer", chain.explorer.is_some()),
            ("portal", chain.portal.is_some()),
            ("discovery", chain.discovery.is_some()),
        ];
        if let Some((key, _)) = evm_only.iter().find(|(_, set)| *set) {
            return Err(format!("{key} is for EVM chains, {} is none", known.slug));
        }
    }
    Ok(known.slug.clone())
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
    let wrapped = chain.wrapped_native.as_deref();
    let needed = [
        ("chain_id", chain.chain_id.is_some()),
        ("native", chain.native.is_some()),
        ("wrapped_native", wrapped.is_some()),
        ("rpc", chain.rpc.is_some()),
    ];
    if let Some((key, _)) = needed.iter().find(|(_, set)| !*set) {
        return Err(format!("the own chain {name} needs {key}"));
    }
    wrapped.map_or(Ok(()), |text| match Address::parse(family, text) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("wrapped_native: {error}")),
    })
}
