//! Reads one wallet's history for a command: from the data folder and the nodes, or from a running
//! server.

use std::convert::Infallible;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::args::{SourceArgs, WalletArgs};
use super::client::{self, ClientRequest};
use super::config::Config;
use super::config::environment::Environment;
use super::coverage_note::CoverageNote;
use super::engine::{Engine, history_limits};
use super::errors::CliError;
use super::keys::unknown_chain;
use super::output::{Ending, Outcome, RowSink, TradeLine};
use super::progress::ProgressLine;
use super::signals;
use super::sources::is_on;
use crate::api::coverage_body;
use crate::domain::{Address, Cursor, Filter, KeyId, ValueSource, Wallet};
use crate::history::{End, Extent, History, HistoryError, Step, Walk, WalkRequest};
use crate::registry::{Chain, Registry};
use crate::rpc::Transport;

/// Longest time that one call reads.
const WINDOW_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Longest wait for the estimate that the progress line shows.
const ESTIMATE_WAIT_MAX: Duration = Duration::from_secs(10);
/// Longest wait for a chunk's prices, and for those that are pending from earlier calls. A command
/// has no background in which values could be completed later.
const VALUES_WAIT_MAX: Duration = Duration::from_secs(10);
const STOPPED: &str = "stopped; what was read is kept";
const ENDPOINTS: &str = "`blotter chains --check` tries each endpoint, and the configuration names \
                         your own (README, \"Serve a real chain\")";

/// The context shared by the commands that read a wallet.
pub(super) struct Context<'a> {
    pub(super) config: &'a Config,
    pub(super) registry: &'a Arc<Registry>,
    pub(super) environment: &'a Environment,
    pub(super) transport: &'a Arc<dyn Transport>,
    pub(super) quiet: bool,
}

impl Context<'_> {
    /// The chain of that name; an error if it is unknown or disabled.
    pub(super) fn chain(&self, name: &str) -> Result<&Chain, CliError> {
        let registry = self.registry;
        let chain = registry.chain_named(name).ok_or_else(|| unknown_chain(name, registry))?;
        if !is_on(self.config, chain) {
            let text = format!("{} is switched off in the configuration", chain.slug);
            return Err(CliError::Usage(text));
        }
        Ok(chain)
    }

    /// The server to read from, if flags or environment name one.
    pub(super) fn server_request(
        &self,
        source: &SourceArgs,
        chain: &Chain,
        address: Address,
        limit: Option<u64>,
    ) -> Result<Option<ClientRequest>, CliError> {
        let url = source.url.as_deref().or_else(|| self.environment.get("BLOTTER_URL"));
        let key = source.key.as_deref().or_else(|| self.environment.get("BLOTTER_KEY"));
        let insecure = source.insecure;
        url.map(|url| ClientRequest::new(url, key, &chain.slug, address, limit, insecure))
            .transpose()
    }

    /// Whether results on stdout are coloured.
    pub(super) fn colour_on_stdout(&self) -> bool {
        std::io::stdout().is_terminal() && self.environment.get("NO_COLOR").is_none()
    }

    pub(super) async fn engine(&self) -> Result<Engine, CliError> {
        let mut limits = history_limits(self.config);
        limits.enrich.value_wait_max = VALUES_WAIT_MAX;
        Engine::open(self.config, limits, Arc::clone(self.registry), self.transport).await
    }
}

/// One wallet and where its history is read from.
pub(super) struct WalletReading<'a> {
    context: &'a Context<'a>,
    pub(super) chain: Chain,
    pub(super) wallet: Wallet,
    limit: Option<u64>,
    /// The server to read from; `None` reads from the data folder and the nodes.
    server: Option<ClientRequest>,
}

impl<'a> WalletReading<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        args: &WalletArgs,
        limit: Option<u64>,
    ) -> Result<Self, CliError> {
        let reading = Self::of_nodes(context, args)?;
        let (chain, address) = (&reading.chain, reading.wallet.address);
        let server = context.server_request(&args.source, chain, address, limit)?;
        Ok(Self { limit, server, ..reading })
    }

    /// Reads from the nodes, even if the environment names a server.
    pub(super) fn of_nodes(context: &'a Context<'a>, args: &WalletArgs) -> Result<Self, CliError> {
        let chain = context.chain(&args.source.chain)?.clone();
        let address = parse_address(&chain, &args.address)?;
        let wallet = Wallet { chain: chain.id, address };
        Ok(Self { context, chain, wallet, limit: None, server: None })
    }

    pub(super) fn is_remote(&self) -> bool {
        self.server.is_some()
    }

    /// Whether this reading can resume from a cursor.
    pub(super) fn accepts(&self, cursor: &str) -> bool {
        Cursor::decode(cursor, &self.wallet).is_ok()
    }

    /// Passes all rows, or those behind a cursor, to the sink.
    pub(super) async fn read(
        &self,
        sink: &mut dyn RowSink,
        progress: &ProgressLine,
        resume: Option<String>,
    ) -> Result<Outcome, CliError> {
        if let Some(server) = &self.server {
            return client::read(server, sink, progress, resume).await;
        }
        let engine = self.context.engine().await?;
        let outcome = self.read_here(&engine.history, sink, progress, resume).await;
        let report = engine.history.coverage(self.wallet).await.ok().flatten();
        let coverage = coverage_body(report.as_ref(), &self.wallet, &self.chain);
        let closed = engine.close().await;
        let outcome = outcome?;
        closed?;
        Ok(Outcome { coverage: Some(CoverageNote(coverage)), ..outcome })
    }

    async fn read_here(
        &self,
        history: &History,
        sink: &mut dyn RowSink,
        progress: &ProgressLine,
        resume: Option<String>,
    ) -> Result<Outcome, CliError> {
        let unusable = |error| CliError::failed("the cursor cannot be used", error);
        let resume = resume.map(|text| Cursor::decode(&text, &self.wallet)).transpose();
        let left = self.limit.map(|limit| limit.saturating_sub(sink.written()));
        let request = WalkRequest {
            wallet: self.wallet,
            key: KeyId::LOCAL,
            quota: None,
            resume: resume.map_err(unusable)?.map(Box::new),
            filter: Filter::default(),
            follow: false,
            want: left.map_or(Extent::All, Extent::Rows),
            window: WINDOW_MAX,
        };
        let walk = history
            .walk(request)
            .map_err(|error| CliError::failed("the history cannot be read", error))?;
        self.follow(history, walk, sink, progress).await
    }

    /// Passes a walk's rows to the sink until the walk ends or a signal arrives.
    async fn follow(
        &self,
        history: &History,
        mut walk: Walk,
        sink: &mut dyn RowSink,
        progress: &ProgressLine,
    ) -> Result<Outcome, CliError> {
        let stop = signals::stop()?;
        tokio::pin!(stop);
        progress.shows_values();
        tokio::select! {
            _ = timeout(VALUES_WAIT_MAX, history.complete_values(&self.wallet)) => {}
            () = &mut stop => return Err(CliError::Incomplete(STOPPED.to_owned())),
        }
        let native_decimals = self.chain.native.decimals;
        let expected = self.expected(history, progress);
        tokio::pin!(expected);
        let mut values_pending = 0;
        loop {
            let step = tokio::select! {
                step = walk.next() => step,
                never = &mut expected => match never {},
                () = &mut stop => Step::End(End {
                    complete: false,
                    more: true,
                    trade_count: sink.written(),
                    first_trade: None,
                    error: Some(HistoryError::ShuttingDown),
                }),
            };
            let cursor = walk.cursor().encode(&self.wallet);
            match step {
                Step::Rows(rows) => {
                    let waiting =
                        rows.bare().iter().filter(|row| row.valued == ValueSource::Pending);
                    values_pending += u64::try_from(waiting.count()).unwrap_or(u64::MAX);
                    let lines = rows.iter().map(|row| TradeLine::of_row(row, native_decimals));
                    sink.rows(lines.collect(), &cursor)?;
                    if let Some(last) = rows.last_key() {
                        progress.reached(sink.written(), &last.time.to_string());
                    }
                    if progress.wants_total() {
                        progress.total(walk.known_total().await);
                    }
                }
                Step::End(end) => {
                    let outcome = outcome(end, cursor, self.limit, sink.written());
                    return Ok(Outcome { values_pending, ..outcome });
                }
            }
        }
    }

    /// Passes an estimate of the size to a visible progress line. Never completes.
    async fn expected(&self, history: &History, progress: &ProgressLine) -> Infallible {
        if progress.is_shown()
            && let Ok(estimate) = history.estimate(self.wallet, true, ESTIMATE_WAIT_MAX).await
        {
            progress.expect(estimate.trades);
        }
        std::future::pending().await
    }
}

pub(super) fn parse_address(chain: &Chain, text: &str) -> Result<Address, CliError> {
    let name = if text.trim().is_empty() { "the wallet's address" } else { text };
    Address::parse(chain.family, text).map_err(|error| CliError::Usage(format!("{name}: {error}")))
}

fn outcome(end: End, cursor: String, limit: Option<u64>, written: u64) -> Outcome {
    let reached_limit = limit.is_some_and(|limit| written >= limit);
    let short = match end.error {
        None if end.complete || reached_limit => None,
        None => Some(CliError::Incomplete("the time for one call is over".to_owned())),
        Some(_) if reached_limit => None,
        Some(HistoryError::ShuttingDown) => Some(CliError::Incomplete(STOPPED.to_owned())),
        // The written rows are correct, and the reading can resume once there is space.
        Some(error @ HistoryError::StoreFull { .. }) if written > 0 => {
            Some(CliError::Incomplete(error.to_string()))
        }
        Some(
            error @ (HistoryError::NotAWallet { .. }
            | HistoryError::StoreFull { .. }
            | HistoryError::Store { .. }),
        ) => Some(CliError::plain(error.to_string())),
        Some(HistoryError::Changed) => Some(CliError::Changed),
        Some(error @ HistoryError::UpstreamUnavailable { .. }) => {
            Some(CliError::Incomplete(format!("{error}; {ENDPOINTS}")))
        }
        Some(error) => Some(CliError::Incomplete(error.to_string())),
    };
    let ending = Ending {
        complete: end.complete,
        trade_count: end.trade_count,
        first_trade: end.first_trade.map(|time| time.to_string()),
        cursor: Some(cursor).filter(|_| end.more || !end.complete),
    };
    Outcome::new(ending, short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_a_full_store_cut_off_are_an_incomplete_history() {
        let short = |written| {
            let error = Some(HistoryError::StoreFull { reason: "no space" });
            let end = End { complete: false, more: true, trade_count: 3, first_trade: None, error };
            outcome(end, "c1".to_owned(), None, written).short
        };
        assert!(matches!(short(3), Some(CliError::Incomplete(_))), "they are gone on with");
        assert!(matches!(short(0), Some(CliError::Failed { .. })), "there are none");
    }

    #[test]
    fn where_no_node_answers_the_error_says_what_to_try() {
        let error = HistoryError::UpstreamUnavailable { detail: "no connection".to_owned() };
        let error = Some(error);
        let end = End { complete: false, more: true, trade_count: 0, first_trade: None, error };
        let report = outcome(end, "c1".to_owned(), None, 0).short.unwrap().report();
        assert!(report.contains("no connection; `blotter chains --check` tries each"), "{report}");
    }

    #[test]
    fn an_empty_address_is_named_in_the_error() {
        let registry = Registry::embedded().unwrap();
        let chain = registry.chain_named("sol").unwrap();
        for text in ["", " "] {
            let error = parse_address(chain, text).unwrap_err().report();
            assert!(error.contains("the wallet's address: a Solana address is"), "{error}");
        }
    }
}
