//! Logs: to stderr, filtered by `BLOTTER_LOG`.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use super::environment::Environment;
use super::errors::CliError;

const VARIABLE: &str = "BLOTTER_LOG";

/// Starts logging; `default` applies where the variable is not set.
pub(super) fn start(environment: &Environment, json: bool, default: &str) -> Result<(), CliError> {
    let wanted = environment.get(VARIABLE).unwrap_or(default);
    let filter = EnvFilter::builder()
        .parse(wanted)
        .map_err(|error| CliError::Usage(format!("{VARIABLE}={wanted}: {error}")))?;
    let colour = std::io::stderr().is_terminal() && environment.get("NO_COLOR").is_none();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start (two runs in one test process) keeps the first.
    let started = if json {
        builder.json().with_ansi(false).try_init()
    } else {
        builder.with_ansi(colour).try_init()
    };
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
    Ok(())
}
