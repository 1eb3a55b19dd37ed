//! Errors that end a command, and their exit codes, which the README lists.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::table::printable;

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
    /// The rows written so far are no longer part of the history, so the call cannot be resumed.
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

    /// For `map_err`: names the failed action and the file.
    pub(super) fn file(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { action, path: path.clone(), source }
    }

    pub(super) fn exit_code(&self) -> u8 {
        match self {
            // The exit code of clap for invalid flags.
            Self::Usage(_) | Self::Config(_) => 2,
            // The written rows are correct, but rows are missing.
            Self::Incomplete(_) => 3,
            Self::Keys(_)
            | Self::File { .. }
            | Self::Output(_)
            | Self::Changed
            | Self::Failed { .. } => 1,
        }
    }

    /// Whether the reader of the output has exited (`blotter history … | head`), which is no
    /// failure.
    pub(super) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(source) if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The error and its causes. A server or a node may have written parts of them: no escape
    /// sequence reaches the terminal.
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
        text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
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

    #[test]
    fn what_a_server_says_cannot_command_the_terminal() {
        let error = CliError::plain("the server says \u{1b}]0;x\u{7}\r: no\nnext");
        assert_eq!(error.report(), "error: the server says \u{fffd}]0;x\u{fffd}\u{fffd}: no\nnext");
    }
}
