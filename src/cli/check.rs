//! `blotter chains --check`: asks each endpoint what it can do.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::config::Config;
use super::config_chains::Endpoint;
use super::errors::CliError;
use super::probe::{Asked, Finding};
use super::sources::{endpoints, pool};
use crate::registry::{Chain, Registry};
use crate::upstream::{CallOptions, Lane, PoolLimits, Priority, Transport};

/// One try each, and not for long: a check tells how an endpoint is now.
const TRIES_MAX: u32 = 2;
const TRY_TIME_MAX: Duration = Duration::from_secs(10);

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
    if usable {
        results.extend(asked.abilities(chain).await);
    }
    Ok(Checked {
        chain: chain.slug.clone(),
        endpoint: endpoint.url.host(),
        usable,
        latency_ms,
        results,
    })
}
