//! `blotter chains`: the chain table and the abilities of endpoints.

pub(super) mod check;
mod probe;
mod probe_tron;

use std::io::Write;

use serde::Serialize;

use crate::cli::config::Config;
use crate::cli::errors::CliError;
use crate::cli::sources::is_on;
use crate::cli::table::format;
use crate::domain::Family;
use crate::registry::{Chain, Registry};

#[derive(Debug, Serialize)]
struct Line<'a> {
    slug: &'a str,
    name: &'a str,
    family: Family,
    chain_id: Option<u64>,
    native: &'a str,
    /// `enabled`, or `off` if disabled in the configuration.
    state: &'static str,
    endpoints: usize,
    /// Whether the endpoints are configured or the chain table's.
    configured: bool,
    /// When the table's endpoints were last tested: a date, or `never`.
    verified: Option<&'a str>,
}

pub(super) fn run(
    as_json: bool,
    config: &Config,
    registry: &Registry,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let lines: Vec<Line<'_>> = registry.chains().iter().map(|chain| line(chain, config)).collect();
    if as_json {
        let text = serde_json::to_string(&serde_json::json!({ "chains": lines }))
            .map_err(|error| CliError::failed("the table cannot be written", error))?;
        return writeln!(out, "{text}").map_err(CliError::Output);
    }
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            let origin = if line.configured { "configured" } else { "default" };
            vec![
                line.slug.to_owned(),
                line.name.to_owned(),
                line.state.to_owned(),
                line.native.to_owned(),
                format!("{} {origin}", line.endpoints),
                line.verified.unwrap_or("-").to_owned(),
            ]
        })
        .collect();
    let columns = ["CHAIN", "NAME", "STATE", "COIN", "ENDPOINTS", "VERIFIED"];
    out.write_all(format(&columns, &rows).as_bytes()).map_err(CliError::Output)
}

fn line<'a>(chain: &'a Chain, config: &Config) -> Line<'a> {
    let settings = config.chains.get(&chain.slug);
    let rpc = settings.and_then(|settings| settings.rpc.as_ref());
    Line {
        slug: &chain.slug,
        name: &chain.name,
        family: chain.family,
        chain_id: chain.chain_id,
        native: &chain.native.symbol,
        state: if is_on(config, chain) { "enabled" } else { "off" },
        endpoints: rpc.map_or(chain.rpc.len(), Vec::len),
        configured: rpc.is_some(),
        verified: rpc.is_none().then_some(chain.verified.as_str()),
    }
}
