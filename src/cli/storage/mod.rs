//! Opens the store that the configuration names, and its keys.

pub(super) mod copy;

use std::path::Path;
use std::str::FromStr;

use crate::cli::config::Config;
use crate::cli::errors::CliError;
use crate::store::{Store, StoreError, StoreOptions};

/// Where trades, keys and usage are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StorageEngine {
    /// In a database where one is named, else in a file.
    Auto,
    File,
    Postgres,
}

impl FromStr for StorageEngine {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "auto" => Ok(Self::Auto),
            "file" => Ok(Self::File),
            "postgres" => Ok(Self::Postgres),
            _ => Err("expected \"auto\", \"file\" or \"postgres\""),
        }
    }
}

impl std::fmt::Display for StorageEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::File => "file",
            Self::Postgres => "postgres",
        })
    }
}

crate::cli::config::units::serde_as_text!(StorageEngine);

/// The address of the database, where the store is one.
pub(super) fn shared_url(config: &Config) -> Result<Option<&str>, CliError> {
    let url = config.storage.url.0.as_ref().map(crate::cli::config::secret::SecretText::expose);
    match (config.storage.engine, url) {
        (StorageEngine::File, _) | (StorageEngine::Auto, None) => Ok(None),
        (StorageEngine::Auto | StorageEngine::Postgres, Some(url)) => Ok(Some(url)),
        (StorageEngine::Postgres, None) => Err(CliError::plain(
            "storage.engine is \"postgres\": name the database by BLOTTER_STORAGE_URL".to_owned(),
        )),
    }
}

pub(super) async fn open(config: &Config) -> Result<Store, CliError> {
    match shared_url(config)? {
        Some(url) => connect(url, config.storage.connections).await,
        None => open_folder(&config.storage.path, config),
    }
}

pub(super) fn open_folder(folder: &Path, config: &Config) -> Result<Store, CliError> {
    let cache_bytes = usize::try_from(config.storage.cache.0).unwrap_or(usize::MAX);
    let opened = Store::open(folder, StoreOptions { cache_bytes });
    opened.map_err(|error| {
        let what = if matches!(error, StoreError::Locked { .. }) {
            "the data folder is in use; `blotter history --url URL --key KEY` asks the running server"
        } else {
            "the data folder cannot be used"
        };
        CliError::failed(what, error)
    })
}

#[cfg(feature = "postgres")]
pub(super) async fn connect(url: &str, connections: u32) -> Result<Store, CliError> {
    let connections = usize::try_from(connections).unwrap_or(usize::MAX);
    let options = crate::store::SharedOptions { url: url.to_owned(), connections };
    let connected = Store::connect(&options).await;
    connected.map_err(|error| CliError::failed("the database of the store cannot be used", error))
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "as with the feature")]
pub(super) async fn connect(_url: &str, _connections: u32) -> Result<Store, CliError> {
    let reason = "this blotter was built without the feature `postgres`";
    Err(CliError::plain(reason.to_owned()))
}
