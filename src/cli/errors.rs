//! What can end a command, and the exit code it ends with.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

/// Exit codes; the README lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Failed,
    /// Wrong flags, arguments or configuration.
    Usage,
    /// The rows that were written are right, but the history is not all there.
    Incomplete,
}

impl Exit {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            // What clap exits with for wrong flags.
            Self::Usage => 2,
            Self::Incomplete => 3,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error("{0}")]
    Usage(String),
    #[error("the configuration cannot be used")]
    Config(#[source] Box<dyn Error + Send + Sync>),
    #[error("the keys cannot be read or changed")]
    Keys(#[source] Box<dyn Error + Send + Sync>),
    #[error("cannot {action} {}", path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot write the output")]
    Output(#[source] io::Error),
    #[error("{what}")]
    Failed {
        what: String,
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    #[error("the history is not complete: {0}")]
    Incomplete(String),
    /// What was written is no longer a part of the history, and cannot be gone on with.
    #[error("the history changed while it was read: begin again, without --resume")]
    Changed,
}

impl CliError {
    pub(super) fn failed(
        what: impl Into<String>,
        source: impl Error + Send + Sync + 'static,
    ) -> Self {
        Self::Failed { what: what.into(), source: Some(Box::new(source)) }
    }

    pub(super) fn plain(what: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), source: None }
    }

    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::Config(_) => Exit::Usage,
            Self::Incomplete(_) => Exit::Incomplete,
            Self::Keys(_)
            | Self::File { .. }
            | Self::Output(_)
            | Self::Changed
            | Self::Failed { .. } => Exit::Failed,
        }
    }

    /// A reader that went away (`blotter history … | head`) is no failure.
    pub(super) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(source) if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The error and its causes, one a line.
    pub(super) fn report(&self) -> String {
        let mut text = format!("error: {self}");
        let mut cause = self.source();
        while let Some(error) = cause {
            // Writing to a String cannot fail.
            let _ = write!(text, "\nbecause: {error}");
            cause = error.source();
        }
        text
    }
}
