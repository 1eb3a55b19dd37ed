//! `blotter config`: the merged configuration with secrets hidden.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use super::config::chains::{ChainLayer, NodeSetting};
use super::config::secret::ConfigUrl;
use super::config::{Audit, Config, Log, Prices, Server, Storage};
use super::engine::history_limits;
use super::errors::CliError;
use super::serve::api_limits;
use super::sources::{ChainLists, is_on};
use super::storage;
use crate::registry::Registry;
use crate::rpc::PoolLimits;
use crate::sources::{EvmLimits, SolanaLimits, TronLimits};
use crate::store;

#[derive(Serialize)]
struct Shown<'a> {
    server: &'a Server,
    storage: &'a Storage,
    prices: &'a Prices,
    audit: &'a Audit,
    log: &'a Log,
    chains: BTreeMap<&'a str, ChainLayer>,
}

pub(super) fn run(
    config: &Config,
    registry: &Registry,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    check(config, registry)?;
    let mut chains: BTreeMap<&str, ChainLayer> =
        config.chains.iter().map(|(slug, chain)| (slug.as_str(), chain.clone())).collect();
    for chain in registry.chains() {
        let shown = chains.entry(&chain.slug).or_default();
        shown.enabled = Some(shown.enabled != Some(false));
        if shown.rpc.is_none() {
            let urls = chain.rpc.iter().filter_map(|url| ConfigUrl::public(url).ok());
            shown.rpc = Some(urls.map(NodeSetting::plain).collect());
        }
    }
    let Config { server, storage, prices, audit, log, .. } = config;
    let shown = Shown { server, storage, prices, audit, log, chains };
    let text = toml::to_string(&shown)
        .map_err(|error| CliError::failed("cannot write the configuration", error))?;
    let head = match &config.file {
        Some(path) => format!("# read from {}\n", path.display()),
        None => "# no file was read\n".to_owned(),
    };
    write!(out, "{head}{text}\n{}", built_in_limits(config)).map_err(CliError::Output)
}

/// Rejects what `serve` would reject, as far as that needs no store and no network.
fn check(config: &Config, registry: &Registry) -> Result<(), CliError> {
    storage::check(config)?;
    let mut on = registry.chains().iter().filter(|chain| is_on(config, chain));
    on.try_for_each(|chain| ChainLists::of(config, chain).map(drop))
}

/// The limits of each layer as comments.
fn built_in_limits(config: &Config) -> String {
    let layers = [
        format!("{:#?}", history_limits(config)),
        format!("{:#?}", api_limits(config)),
        format!("{:#?}", PoolLimits::default()),
        format!("{:#?}", SolanaLimits::default()),
        format!("{:#?}", EvmLimits::default()),
        format!("{:#?}", TronLimits::default()),
        format!("{:#?}", store::LIMITS),
    ];
    let lines = layers.iter().flat_map(|layer| layer.lines());
    let lines: Vec<String> = lines.map(|line| format!("# {line}\n")).collect();
    format!("# All limits; those that are no settings are built in.\n{}", lines.concat())
}
