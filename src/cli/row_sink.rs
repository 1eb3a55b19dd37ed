//! The receiver of a history's rows, and the outcome of reading it.

use super::coverage_note::CoverageNote;
use super::errors::CliError;
use super::output::{Ending, TradeLine};

/// Receives a history's rows, newest first.
pub(super) trait RowSink {
    /// `cursor` is the position behind the last of these rows.
    fn rows(&mut self, rows: Vec<TradeLine>, cursor: &str) -> Result<(), CliError>;

    /// The last rows of a history, which have no cursor behind them.
    fn last_rows(&mut self, rows: Vec<TradeLine>) -> Result<(), CliError> {
        self.rows(rows, "")
    }

    /// Rows received so far, including those of an earlier call that this one resumes.
    fn written(&self) -> u64;
}

pub(super) struct Outcome {
    pub(super) ending: Ending,
    /// Why rows are missing, if any are.
    pub(super) short: Option<CliError>,
    /// Rows of this call whose value is still pending; 0 if a server was read, which does not
    /// report it.
    pub(super) values_pending: u64,
    /// Which heights are read and proved, if known.
    pub(super) coverage: Option<CoverageNote>,
}

impl Outcome {
    pub(super) fn new(ending: Ending, short: Option<CliError>) -> Self {
        Self { ending, short, values_pending: 0, coverage: None }
    }

    /// Notes about the history for the user, one line each.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.coverage.iter().flat_map(CoverageNote::lines).chain(self.values_note())
    }

    /// A note about rows whose value is still pending.
    pub(super) fn values_note(&self) -> Option<String> {
        let count = self.values_pending;
        let trades = if count == 1 { "trade is" } else { "trades are" };
        (count > 0).then(|| {
            format!(
                "values: those of {count} {trades} not known yet; the same call asks for them again"
            )
        })
    }
}
