//! `blotter history`: one wallet, from the data folder or through a running server.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::args::HistoryArgs;
use super::client::{self, Asked};
use super::config::Config;
use super::engine::Engine;
use super::environment::Environment;
use super::errors::CliError;
use super::keys::unknown_chain;
use super::output::{Ending, TradeLine, Writer};
use super::progress::Progress;
use super::signals;
use super::target::Target;
use crate::domain::{Address, Filter, KeyId, Wallet};
use crate::history::{End, History, HistoryError, Step, Walk, WalkRequest, Want};
use crate::registry::{Chain, Registry};
use crate::upstream::Transport;

/// Longest that one call reads.
const WINDOW_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// How the reading of a history ended.
pub(super) struct Outcome {
    pub(super) ending: Ending,
    /// Why what was asked for is not all there.
    pub(super) short: Option<CliError>,
}

pub(super) fn run(
    args: &HistoryArgs,
    config: &Config,
    registry: &Arc<Registry>,
    environment: &Environment,
    transport: &Arc<dyn Transport>,
    runtime: &Runtime,
) -> Result<(), CliError> {
    let chain = find_chain(&args.chain, config, registry)?.clone();
    let address = Address::parse(chain.family, &args.address)
        .map_err(|error| CliError::Usage(format!("{}: {error}", args.address)))?;
    let url = args.url.as_deref().or_else(|| environment.get("BLOTTER_URL"));
    let key = args.key.as_deref().or_else(|| environment.get("BLOTTER_KEY"));
    let asked =
        url.map(|url| Asked::new(url, key, &chain.slug, address, args.limit)).transpose()?;
    let mut target = Target::open(args.output.as_deref())?;
    let on_terminal = target.is_terminal();
    let colour = on_terminal && environment.get("NO_COLOR").is_none();
    let progress = Progress::start(on_terminal);
    let native = chain.native.symbol.clone();
    let mut writer = Writer::new(&mut target, args.format, address.to_string(), native, colour);
    let result = runtime.block_on(async {
        writer.begin().map_err(CliError::Output)?;
        let outcome = if let Some(asked) = &asked {
            client::read(asked, &mut writer, &progress).await?
        } else {
            let engine = Engine::open(config, Arc::clone(registry), transport)?;
            let wallet = Wallet { chain: chain.id, address };
            let read =
                read_here(&engine.history, wallet, args.limit, &chain, &mut writer, &progress);
            let outcome = read.await;
            let closed = engine.close().await;
            let outcome = outcome?;
            closed?;
            outcome
        };
        writer.end(&outcome.ending).map_err(CliError::Output)?;
        outcome.short.map_or(Ok(()), Err)
    });
    drop(progress);
    match result {
        Ok(()) => target.keep(),
        Err(error) => {
            target.discard();
            Err(error)
        }
    }
}

/// The chain of that name, where this build reads it.
fn find_chain<'a>(
    name: &str,
    config: &Config,
    registry: &'a Registry,
) -> Result<&'a Chain, CliError> {
    let chain = registry.chain_named(name).ok_or_else(|| unknown_chain(name, registry))?;
    match config.chains.get(&chain.slug) {
        Some(settings) if settings.enabled == Some(false) => {
            Err(CliError::Usage(format!("{} is switched off in the configuration", chain.slug)))
        }
        _ => Ok(chain),
    }
}

async fn read_here(
    history: &History,
    wallet: Wallet,
    limit: Option<u64>,
    chain: &Chain,
    writer: &mut Writer<'_>,
    progress: &Progress,
) -> Result<Outcome, CliError> {
    let request = WalkRequest {
        wallet,
        key: KeyId::LOCAL,
        quota: None,
        resume: None,
        filter: Filter::default(),
        follow: false,
        want: limit.map_or(Want::All, Want::Rows),
        window: WINDOW_MAX,
    };
    let walk = history
        .walk(request)
        .map_err(|error| CliError::failed("the history cannot be read", error))?;
    follow(walk, wallet, limit, chain.native.decimals, writer, progress).await
}

/// Writes a walk's rows until it ends or a signal comes.
async fn follow(
    mut walk: Walk,
    wallet: Wallet,
    limit: Option<u64>,
    native_decimals: u8,
    writer: &mut Writer<'_>,
    progress: &Progress,
) -> Result<Outcome, CliError> {
    let stop = signals::stop()?;
    tokio::pin!(stop);
    loop {
        let step = tokio::select! {
            step = walk.next() => step,
            () = &mut stop => Step::End(End {
                complete: false,
                more: true,
                trade_count: writer.written(),
                first_trade: None,
                error: Some(HistoryError::ShuttingDown),
            }),
        };
        let cursor = walk.cursor().encode(&wallet);
        match step {
            Step::Rows(rows) => {
                let lines: Vec<TradeLine> =
                    rows.iter().map(|row| TradeLine::of_row(row, native_decimals)).collect();
                writer.rows(&lines, &cursor).map_err(CliError::Output)?;
                if let Some(row) = rows.last() {
                    progress.reached(writer.written(), &row.trade.key.time.to_string());
                }
            }
            Step::End(end) => return Ok(outcome(end, cursor, limit, writer.written())),
        }
    }
}

fn outcome(end: End, cursor: String, limit: Option<u64>, written: u64) -> Outcome {
    let reached_limit = limit.is_some_and(|limit| written >= limit);
    let short = match end.error {
        None if end.complete || reached_limit => None,
        None => Some(CliError::Incomplete("the time for one call is over".to_owned())),
        Some(_) if reached_limit => None,
        Some(HistoryError::ShuttingDown) => {
            Some(CliError::Incomplete("stopped; what was read is kept".to_owned()))
        }
        Some(error @ (HistoryError::NotAWallet { .. } | HistoryError::Store { .. })) => {
            Some(CliError::plain(error.to_string()))
        }
        Some(error) => Some(CliError::Incomplete(error.to_string())),
    };
    let ending = Ending {
        complete: end.complete,
        trade_count: end.trade_count,
        first_trade: end.first_trade.map(|time| time.to_string()),
        cursor: Some(cursor).filter(|_| end.more || !end.complete),
    };
    Outcome { ending, short }
}
