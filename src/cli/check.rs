//! `blotter chains --check`: asks each endpoint what it can do.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::config::Config;
use super::config_chains::Endpoint;
use super::errors::CliError;
use super::sources::{endpoints, pool};
use crate::domain::Family;
use crate::registry::{Chain, Registry};
use crate::upstream::{CallOptions, Lane, Pool, PoolLimits, Priority, Transport, UpstreamError};

/// One try each, and not for long: a check tells how an endpoint is now.
const TRIES_MAX: u32 = 2;
const TRY_TIME_MAX: Duration = Duration::from_secs(10);
/// An address that has a history on every Solana chain: the program that makes token accounts.
const SOLANA_PROBE: &str = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";

/// What one endpoint can do.
#[derive(Debug, Serialize)]
struct Checked {
    chain: String,
    endpoint: String,
    /// It answers, and it is a node of this chain.
    usable: bool,
    latency_ms: Option<u64>,
    results: Vec<Finding>,
}

/// One thing that was asked.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    ok: bool,
    detail: String,
}

impl Finding {
    fn of(what: &'static str, answer: Result<String, String>) -> Self {
        let ok = answer.is_ok();
        let (Ok(detail) | Err(detail)) = answer;
        Self { what, ok, detail }
    }
}

/// Asks the endpoints of every chain of the table that is not switched off.
pub(super) async fn run(
    as_json: bool,
    config: &Config,
    registry: &Registry,
    transport: &Arc<dyn Transport>,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let mut all = Vec::new();
    for chain in registry.chains() {
        if config.chains.get(&chain.slug).is_some_and(|settings| settings.enabled == Some(false)) {
            continue;
        }
        for endpoint in endpoints(config, chain)? {
            let checked = check(chain, &endpoint, transport).await?;
            if !as_json {
                write_lines(&checked, out).map_err(CliError::Output)?;
            }
            all.push(checked);
        }
    }
    if as_json {
        writeln!(out, "{}", json!({ "endpoints": all })).map_err(CliError::Output)?;
    }
    let dead = all.iter().filter(|checked| !checked.usable).count();
    if dead > 0 {
        return Err(CliError::plain(format!("{dead} of {} endpoints cannot be used", all.len())));
    }
    Ok(())
}

fn write_lines(checked: &Checked, out: &mut dyn Write) -> std::io::Result<()> {
    let state = if checked.usable { "usable" } else { "NOT usable" };
    let latency = checked.latency_ms.map(|ms| format!(", {ms} ms")).unwrap_or_default();
    writeln!(out, "{}  {}  {state}{latency}", checked.chain, checked.endpoint)?;
    for finding in &checked.results {
        let mark = if finding.ok { "yes" } else { "no " };
        writeln!(out, "    {mark}  {}: {}", finding.what, finding.detail)?;
    }
    out.flush()
}

async fn check(
    chain: &Chain,
    endpoint: &Endpoint,
    transport: &Arc<dyn Transport>,
) -> Result<Checked, CliError> {
    let limits = PoolLimits {
        attempts_max: TRIES_MAX,
        retry_time_max: TRY_TIME_MAX,
        request_wait_max: TRY_TIME_MAX,
        ..PoolLimits::default()
    };
    let pool = pool(std::slice::from_ref(endpoint), transport, limits)?;
    let asked =
        Asked { pool, options: CallOptions::new(Lane::new(0, Arc::new(Priority::interactive()))) };
    let started = Instant::now();
    let identity = asked.identity(chain).await;
    let latency_ms = u64::try_from(started.elapsed().as_millis()).ok().filter(|_| identity.is_ok());
    let usable = identity.is_ok();
    let mut results = vec![Finding::of("is a node of this chain", identity)];
    if usable && chain.family == Family::Solana {
        results.extend(asked.solana().await);
    }
    Ok(Checked {
        chain: chain.slug.clone(),
        endpoint: endpoint.url.host(),
        usable,
        latency_ms,
        results,
    })
}

/// One endpoint in a pool of its own.
struct Asked {
    pool: Pool,
    options: CallOptions,
}

impl Asked {
    async fn call(&self, method: &'static str, params: Value) -> Result<Box<RawValue>, String> {
        let answer = self.pool.call(method, params, &self.options).await;
        answer.map(|answer| answer.result).map_err(|error| {
            let missing = matches!(error, UpstreamError::NotSupported { .. });
            if missing { "not offered".to_owned() } else { error.to_string() }
        })
    }

    /// The chain's own name for itself.
    async fn identity(&self, chain: &Chain) -> Result<String, String> {
        let (method, expected) = match chain.family {
            Family::Solana => ("getGenesisHash", chain.genesis_hash.clone()),
            Family::Evm => ("eth_chainId", chain.chain_id.map(|id| format!("{id:#x}"))),
            Family::Tron => return Err("this build has no check for Tron".to_owned()),
        };
        let answer = self.call(method, json!([])).await?;
        let told = answer.get().trim_matches('"').to_owned();
        match expected {
            Some(expected) if expected != told => {
                Err(format!("{method} is {told}, not {expected}"))
            }
            _ => Ok(told),
        }
    }

    async fn solana(&self) -> Vec<Finding> {
        let finalized = json!({"commitment": "finalized"});
        let head = self.call("getSlot", json!([finalized])).await;
        let first = self.call("getFirstAvailableBlock", json!([])).await;
        let query = json!([SOLANA_PROBE, {"limit": 1, "commitment": "finalized"}]);
        let list = self.call("getSignaturesForAddress", query.clone()).await;
        let full = self.call("getTransactionsForAddress", query).await;
        let text = |answer: Result<Box<RawValue>, String>| answer.map(|raw| raw.get().to_owned());
        let offered = |answer: Result<Box<RawValue>, String>| answer.map(|_| "offered".to_owned());
        let keeps_all = text(first).and_then(|first| match first.as_str() {
            "0" => Ok("from the first block".to_owned()),
            _ => Err(format!("only from slot {first}: old trades are missing")),
        });
        vec![
            Finding::of("finalized head", text(head)),
            Finding::of("keeps the whole history", keeps_all),
            Finding::of("lists an address (getSignaturesForAddress)", offered(list)),
            Finding::of("whole transactions by address (getTransactionsForAddress)", offered(full)),
        ]
    }
}
