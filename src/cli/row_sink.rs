//! Where the rows of a history go, and how its reading ended.

use super::coverage_note::CoverageNote;
use super::errors::CliError;
use super::output::{Ending, TradeLine};

/// Takes a history's rows as they come, newest first.
pub(super) trait RowSink {
    /// `cursor` stands behind the last of them.
    fn rows(&mut self, rows: Vec<TradeLine>, cursor: &str) -> Result<(), CliError>;

    /// The last rows of a history, behind which no cursor stands.
    fn last_rows(&mut self, rows: Vec<TradeLine>) -> Result<(), CliError> {
        self.rows(rows, "")
    }

    /// Rows taken so far, those of an earlier call that is gone on with among them.
    fn written(&self) -> u64;
}

/// How the reading of a history ended.
pub(super) struct Outcome {
    pub(super) ending: Ending,
    /// Why what was asked for is not all there.
    pub(super) short: Option<CliError>,
    /// Rows of this call whose value is still being looked for. A server does not say.
    pub(super) values_pending: u64,
    /// What is read and proved of it, where that is known.
    pub(super) coverage: Option<CoverageNote>,
}

impl Outcome {
    pub(super) fn new(ending: Ending, short: Option<CliError>) -> Self {
        Self { ending, short, values_pending: 0, coverage: None }
    }

    /// What is said of the history next to its rows.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.coverage.iter().flat_map(CoverageNote::lines).chain(self.values_note())
    }

    /// Rows whose value may come yet.
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
