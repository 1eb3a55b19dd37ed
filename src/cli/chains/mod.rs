//! `blotter chains`: the chain table, and what the endpoints can do.

mod advice;
pub(super) mod check;
mod probe;
mod probe_tron;

use std::io::Write;

use serde::Serialize;

use crate::cli::config::Config;
use crate::cli::errors::CliError;
use crate::cli::table::{Align, format};
use crate::domain::Family;
use crate::registry::{Chain, Registry};

/// One line of the table.
#[derive(Debug, Serialize)]
struct Line<'a> {
    slug: &'a str,
    name: &'a str,
    family: Family,
    chain_id: Option<u64>,
    native: &'a str,
    state: State,
    endpoints: usize,
    /// Whether the endpoints are configured or the table's own.
    configured: bool,
    /// When the table's own were tried live: a date, or `never`.
    verified: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Enabled,
    /// Switched off in the configuration.
    Off,
}

impl State {
    fn text(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Off => "off",
        }
    }
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
                line.state.text().to_owned(),
                line.native.to_owned(),
                format!("{} {origin}", line.endpoints),
                line.verified.unwrap_or("-").to_owned(),
            ]
        })
        .collect();
    let columns = [
        ("CHAIN", Align::Left),
        ("NAME", Align::Left),
        ("STATE", Align::Left),
        ("COIN", Align::Left),
        ("ENDPOINTS", Align::Left),
        ("VERIFIED", Align::Left),
    ];
    out.write_all(format(&columns, &rows).as_bytes()).map_err(CliError::Output)
}

fn line<'a>(chain: &'a Chain, config: &Config) -> Line<'a> {
    let settings = config.chains.get(&chain.slug);
    let rpc = settings.and_then(|settings| settings.rpc.as_ref());
    let state = match settings.and_then(|settings| settings.enabled) {
        Some(false) => State::Off,
        Some(true) | None => State::Enabled,
    };
    Line {
        slug: &chain.slug,
        name: &chain.name,
        family: chain.family,
        chain_id: chain.chain_id,
        native: &chain.native.symbol,
        state,
        endpoints: rpc.map_or(chain.rpc.len(), Vec::len),
        configured: rpc.is_some(),
        verified: rpc.is_none().then_some(chain.verified.as_str()),
    }
}
