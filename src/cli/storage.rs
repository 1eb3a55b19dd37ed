//! Opens the store that the configuration names, and its keys.

use std::path::Path;

use super::config::Config;
use super::config::choices::StorageEngine;
use super::errors::CliError;
use crate::store::{Store, StoreError, StoreOptions};

/// The URL of the database, if the store is one.
pub(super) fn shared_url(config: &Config) -> Result<Option<&str>, CliError> {
    // It would become a folder's name, with the password in it.
    if is_address(&config.storage.path.to_string_lossy()) {
        let what = "--data-dir (BLOTTER_DATA_DIR, storage.path) names a folder: name a database by \
                    BLOTTER_STORAGE_URL";
        return Err(CliError::Usage(what.to_owned()));
    }
    let url = config.storage.url.0.as_ref().map(super::config::secret::ConfigSecret::expose);
    match (config.storage.engine, url) {
        (StorageEngine::File, _) | (StorageEngine::Auto, None) => Ok(None),
        (StorageEngine::Auto | StorageEngine::Postgres, Some(url)) => Ok(Some(url)),
        (StorageEngine::Postgres, None) => Err(CliError::Usage(
            "storage.engine is \"postgres\": name the database by BLOTTER_STORAGE_URL".to_owned(),
        )),
    }
}

/// Checks the settings as far as possible without opening the store.
pub(super) fn check(config: &Config) -> Result<(), CliError> {
    shared_url(config)?.map_or(Ok(()), |url| check_url("storage.url (BLOTTER_STORAGE_URL)", url))
}

/// Whether a text names no folder.
pub(super) fn is_address(text: &str) -> bool {
    text.contains("://")
}

/// `setting` is named by the error, the address is not.
#[cfg(feature = "postgres")]
pub(super) fn check_url(setting: &str, url: &str) -> Result<(), CliError> {
    let checked = crate::store::SharedOptions::check_url(url);
    checked.map_err(|error| CliError::Usage(format!("{setting}: {error}")))
}

#[cfg(not(feature = "postgres"))]
pub(super) fn check_url(_setting: &str, _url: &str) -> Result<(), CliError> {
    Err(CliError::plain(NO_POSTGRES))
}

pub(super) async fn open(config: &Config) -> Result<Store, CliError> {
    check(config)?;
    match shared_url(config)? {
        Some(url) => connect(url, config.storage.connections).await,
        None => open_folder(&config.storage.path, config),
    }
}

pub(super) fn options(config: &Config) -> StoreOptions {
    let cache_bytes = usize::try_from(config.storage.cache.0).unwrap_or(usize::MAX);
    StoreOptions { cache_bytes }
}

pub(super) fn open_folder(folder: &Path, config: &Config) -> Result<Store, CliError> {
    let opened = Store::open(folder, options(config));
    opened.map_err(|error| CliError::failed(advice(folder, &error), error))
}

fn advice(folder: &Path, error: &StoreError) -> String {
    let folder = folder.display();
    if let StoreError::Locked { .. } = error {
        return format!(
            "the data folder {folder} is in use by a running blotter: stop that one, or name another \
             folder with --data-dir; `blotter admin` and the commands with --url ask the running one"
        );
    }
    if let StoreError::Io(_) = error {
        return format!(
            "the data folder {folder} cannot be used: it has to be a folder that this user may write \
             to; --data-dir (or storage.path) names another one"
        );
    }
    format!("the data folder {folder} cannot be used")
}

#[cfg(not(feature = "postgres"))]
const NO_POSTGRES: &str = "this blotter was built without the feature `postgres`: leave out storage.url \
                           and storage.engine, or build it with the feature";

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
    Err(CliError::plain(NO_POSTGRES))
}
