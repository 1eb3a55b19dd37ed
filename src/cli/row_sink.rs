//! Where the rows of a history go, and how its reading ended.

use super::coverage_note::CoverageNote;
use super::errors::CliError;
use super::output::{Ending, TradeLine};

/// Takes a history's rows as they come, newest first.
pub(super) trait RowSink {
    /// `cursor` stands behind the last of them.
    fn rows(&mut self, rows: Vec<TradeLine>, cursor: &str) -> Result<(), CliError>;

    /// The last rows of a history, behind which no cursor stands: this one is in front of them.
    fn last_rows(&mut self, rows: Vec<TradeLine>, cursor: &str) -> Result<(), CliError> {
        self.rows(rows, cursor)
    }

    /// Rows taken so far, those of an earlier call that is gone on with among them.
    fn written(&self) -> u64;
}

/// How the reading of a history ended.
pub(super) struct Outcome {
    pub(super) ending: Ending,
    /// Why what was asked for is not all there.
    pub(super) short: Option<CliError>,
    /// What is read and proved of it, where that is known.
    pub(super) coverage: Option<CoverageNote>,
}
