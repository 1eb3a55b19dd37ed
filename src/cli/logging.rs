//! Logging to stderr, filtered by `BLOTTER_LOG`.

use std::io::IsTerminal as _;

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::config::environment::Environment;
use super::errors::CliError;

const VARIABLE: &str = "BLOTTER_LOG";

/// Starts logging; `default` is the filter if the variable is not set.
pub(super) fn start(environment: &Environment, json: bool, default: &str) -> Result<(), CliError> {
    let directives = environment.get(VARIABLE).unwrap_or(default);
    let filter: Targets = directives
        .parse()
        .map_err(|error| CliError::Usage(format!("{VARIABLE}={directives}: {error}")))?;
    let colour = std::io::stderr().is_terminal() && environment.get("NO_COLOR").is_none();
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer =
        if json { layer.json().with_ansi(false).boxed() } else { layer.with_ansi(colour).boxed() };
    // A second start (two runs in one test process) keeps the first subscriber.
    let started = tracing_subscriber::registry().with(layer).with(filter).try_init();
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
    Ok(())
}
