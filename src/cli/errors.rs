//! What can end a command, and the exit code it ends with; the README lists those.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

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

    /// For `map_err`: what cannot be done to which file.
    pub(super) fn file(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { action, path: path.clone(), source }
    }

    pub(super) fn exit_code(&self) -> u8 {
        match self {
            // What clap exits with for wrong flags.
            Self::Usage(_) | Self::Config(_) => 2,
            // The rows that were written are right, but the history is not all there.
            Self::Incomplete(_) => 3,
            Self::Keys(_)
            | Self::File { .. }
            | Self::Output(_)
            | Self::Changed
            | Self::Failed { .. } => 1,
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
            let reason = error.to_string();
            // Some errors end with the text of their cause.
            if !text.ends_with(&reason) {
                // Writing to a String cannot fail.
                let _ = write!(text, "\nbecause: {reason}");
            }
            cause = error.source();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_named_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("the file cannot be used: {0}")]
        struct Named(#[source] io::Error);
        let error = CliError::failed("there is no store", Named(io::Error::other("no such file")));
        let expected = "error: there is no store\nbecause: the file cannot be used: no such file";
        assert_eq!(error.report(), expected);
        let error = CliError::file("read", Path::new("a"))(io::Error::other("no such file"));
        assert_eq!(error.report(), "error: cannot read a\nbecause: no such file");
    }
}
