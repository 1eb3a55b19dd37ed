//! Configuration errors.

use std::path::PathBuf;

use crate::cli::errors::CliError;

/// Why a configuration cannot be used, with the key and its position.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ConfigError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{place}: {reason}")]
    Wrong { place: String, reason: String },
    #[error("{key} has no value")]
    Missing { key: &'static str },
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::Config(Box::new(error))
    }
}
