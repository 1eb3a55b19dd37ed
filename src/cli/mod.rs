//! The program's commands. Only this layer reads flags, environment variables, configuration files
//! and the wall clock, and only it prints.

mod admin;
mod args;
mod chains;
mod client;
mod clock;
mod config;
mod copy_store;
mod coverage_note;
mod demo;
mod destination;
mod engine;
mod errors;
mod explain;
mod export;
#[cfg(fuzzing)]
pub mod fuzzing;
mod history;
mod http_get;
mod keys;
mod logging;
mod output;
mod pnl;
mod progress;
mod reading;
mod seed;
mod serve;
mod shell;
mod show_config;
mod signals;
mod sources;
mod storage;
mod table;
mod target;
mod verify;

use std::ffi::OsString;
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;

use clap::Parser as _;
use tokio::runtime::Runtime;

use crate::registry::Registry;
use crate::rpc::{HttpTransport, Transport};
use args::{Args, Command};
use config::environment::Environment;
use errors::CliError;
use reading::Context;

/// The version; in a release build, for which `docs/deploy/release` sets `BLOTTER_BUILD`, also its
/// commit and target.
const VERSION: &str = match option_env!("BLOTTER_BUILD") {
    Some(build) => build,
    None => concat!(env!("CARGO_PKG_VERSION"), " (no release)"),
};

/// Runs the program with the process's own arguments and environment.
pub fn run() -> ExitCode {
    run_with(std::env::args_os(), &Environment::of_process())
}

fn run_with(arguments: impl Iterator<Item = OsString>, environment: &Environment) -> ExitCode {
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => {
            // Help goes to stdout, errors to stderr. A failure to print cannot be reported.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(u8::MAX));
        }
    };
    match dispatch(&args, environment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            serve::print_notice(&error.report());
            ExitCode::from(error.exit_code())
        }
    }
}

fn dispatch(args: &Args, environment: &Environment) -> Result<(), CliError> {
    let mut registry = tables()?;
    let config = read_config(&args.flags(), environment, &registry)?;
    for own in config.own_chains(&registry) {
        registry.add(own).map_err(|error| CliError::failed("a configured chain", error))?;
    }
    let is_server = matches!(args.command, Command::Serve { .. } | Command::Demo(_));
    let level = if is_server { "info" } else { "warn" };
    logging::start(environment, args.common.log_json, level)?;
    for name in &config.unused_variables {
        tracing::warn!("unknown variable {name}; it is ignored");
    }
    let registry = Arc::new(registry);
    let mut out = std::io::stdout();
    let quiet = args.common.quiet;
    let context =
        |transport| Context { config: &config, registry: &registry, environment, transport, quiet };
    match &args.command {
        Command::Serve { .. } => {
            // A reload reads the same flags and environment variables.
            let (flags, environment) = (args.flags(), environment.clone());
            let load: serve::reload::LoadConfig =
                Box::new(move || read_config(&flags, &environment, &tables()?));
            runtime()?.block_on(serve::run(&config, registry, &http()?, load))
        }
        Command::Demo(demo) => {
            let keep_data =
                args.common.data_dir.is_some() || environment.get("BLOTTER_DATA_DIR").is_some();
            runtime()?.block_on(demo::run(demo, config, registry, keep_data))
        }
        Command::History(args) => history::run(args, &context(&http()?), &runtime()?),
        Command::Pnl(args) => pnl::run(args, &context(&http()?), &runtime()?, &mut out),
        Command::Explain(args) => explain::run(args, &context(&http()?), &runtime()?, &mut out),
        Command::Verify(args) => verify::run(args, &context(&http()?), &runtime()?, &mut out),
        Command::Forget(args) => {
            runtime()?.block_on(serve::upkeep::forget(args, &context(&http()?), &mut out))
        }
        Command::Keys(args) => {
            runtime()?.block_on(keys::run(&args.command, &config, &registry, &mut out))
        }
        Command::Chains { check: true, json } => {
            let transport = http()?;
            runtime()?.block_on(chains::check::run(*json, &config, &registry, &transport, &mut out))
        }
        Command::Chains { json, .. } => chains::run(*json, &config, &registry, &mut out),
        Command::Storage { command } => {
            runtime()?.block_on(copy_store::run(command, &config, &registry, &mut out))
        }
        Command::Admin(args) => admin::run(args, &config, &registry, &mut out),
        Command::Backup(args) => serve::upkeep::backup(args, &config, &mut out),
        Command::Compact => serve::upkeep::compact(&config, &mut out),
        Command::Completions { shell } => shell::completions(*shell, &mut out),
        Command::Man => shell::man(&mut out),
        Command::Config => show_config::run(&config, &registry, &mut out),
    }
}

fn tables() -> Result<Registry, CliError> {
    Registry::embedded()
        .map_err(|error| CliError::failed("the built-in tables cannot be used", error))
}

fn read_config(
    flags: &config::Flags,
    environment: &Environment,
    registry: &Registry,
) -> Result<config::Config, CliError> {
    let read = |path: &std::path::Path| std::fs::read_to_string(path);
    Ok(config::load(flags, environment, registry, read)?)
}

/// One thread more than there are processors, which looks at the sockets while the others poll;
/// loading tasks are polled next to all of them (`history/ready_limit.rs`).
fn runtime() -> Result<Runtime, CliError> {
    let threads = available_parallelism().map_or(1, NonZero::get) + 1;
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    // Workers change threads thousands of times a second while wallets load: without a limit a
    // hundred threads, each with memory of its own. Where none is free, a loading task delays its
    // worker's other tasks. Packing takes these threads too; look-ups of nodes' names do not.
    builder.worker_threads(threads).max_blocking_threads(threads);
    let built = builder.enable_all().build();
    let runtime =
        built.map_err(|error| CliError::failed("the runtime cannot be started", error))?;
    runtime.block_on(async { signals::outlive_file_limits() })?;
    Ok(runtime)
}

fn http() -> Result<Arc<dyn Transport>, CliError> {
    let transport = HttpTransport::new()
        .map_err(|error| CliError::failed("the HTTP client cannot be started", error))?;
    Ok(Arc::new(transport))
}
