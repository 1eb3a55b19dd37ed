//! The keys of a store: a file in the data folder, or its text in the database.

use std::path::Path;

use super::file::{self, Created, KeyEntry, KeyTerms, KeysError, KeysFile, ShownId};
use crate::cli::config::Config;
use crate::cli::errors::CliError;
use crate::cli::storage;
use crate::domain::UnixMillis;
use crate::store::{Share, Store};

/// Name of the document in the database.
const DOCUMENT: &str = "keys";
/// Name of the key that a server creates if there is none.
pub(in crate::cli) const FIRST_NAME: &str = "first";
/// Attempts to change the keys against concurrent changes of other processes.
const TRIES_MAX: u32 = 64;

#[derive(Debug, Clone)]
pub(in crate::cli) enum KeyStore {
    File(KeysFile),
    Shared(Store),
}

impl KeyStore {
    pub(in crate::cli) fn of(config: &Config, store: &Store) -> Self {
        if store.is_shared() {
            Self::Shared(store.clone())
        } else {
            Self::File(KeysFile::new(&config.storage.path))
        }
    }

    pub(in crate::cli) fn of_folder(folder: &Path) -> Self {
        Self::File(KeysFile::new(folder))
    }

    /// Adds the keys that another store lacks, and revokes its keys that are revoked here. Returns
    /// the number of both.
    pub(in crate::cli) async fn copy_to(&self, other: &Self) -> Result<usize, KeysError> {
        let keys = self.list().await?;
        let add = |there: &mut Vec<KeyEntry>| {
            let mut count = 0;
            for key in &keys {
                match there.iter_mut().find(|known| known.id == key.id) {
                    None => there.push(key.clone()),
                    Some(known) if known.revoked.is_none() && key.revoked.is_some() => {
                        known.revoked = key.revoked;
                    }
                    Some(_) => continue,
                }
                count += 1;
            }
            Ok(count)
        };
        other.change(add).await
    }

    /// Opens the keys. A store in a data folder stays closed, since another process may have it
    /// open.
    pub(in crate::cli) async fn open(config: &Config) -> Result<Self, CliError> {
        match storage::shared_url(config)? {
            Some(_) => Ok(Self::Shared(storage::open(config).await?)),
            None => Ok(Self::File(KeysFile::new(&config.storage.path))),
        }
    }

    /// This process's share of the limits that the processes of a shared store divide.
    pub(in crate::cli) fn share(&self) -> Share {
        match self {
            Self::File(_) => Share::default(),
            Self::Shared(store) => store.share().map(|share| *share.borrow()).unwrap_or_default(),
        }
    }

    pub(in crate::cli) async fn text(&self) -> Result<String, KeysError> {
        match self {
            Self::File(file) => file.text(),
            Self::Shared(store) => Ok(store.document(DOCUMENT).await?),
        }
    }

    pub(in crate::cli) fn parse(&self, text: &str) -> Result<Vec<KeyEntry>, KeysError> {
        match self {
            Self::File(file) => file.parse(text),
            Self::Shared(_) => file::parse("keys of the database".as_ref(), text),
        }
    }

    pub(in crate::cli) async fn list(&self) -> Result<Vec<KeyEntry>, KeysError> {
        self.parse(&self.text().await?)
    }

    pub(in crate::cli) async fn create(
        &self,
        terms: KeyTerms,
        now: UnixMillis,
    ) -> Result<Created, KeysError> {
        self.change(|keys| file::add(keys, terms.clone(), now)).await
    }

    pub(in crate::cli) async fn create_first(
        &self,
        now: UnixMillis,
    ) -> Result<Option<Created>, KeysError> {
        // Checked first without a lock, which would have to be written: keys are never removed.
        if !self.list().await?.is_empty() {
            if let Self::File(file) = self {
                file.make_private();
            }
            return Ok(None);
        }
        let terms = KeyTerms { name: Some(FIRST_NAME.to_owned()), ..KeyTerms::default() };
        let add_first = |keys: &mut Vec<KeyEntry>| {
            let first = keys.is_empty().then(|| file::add(keys, terms.clone(), now));
            first.transpose()
        };
        self.change(add_first).await
    }

    /// Revokes a key; a key that was revoked before keeps its time.
    pub(in crate::cli) async fn revoke(
        &self,
        id: ShownId,
        now: UnixMillis,
    ) -> Result<(), KeysError> {
        self.change(|keys| file::revoke(keys, id, now)).await
    }

    /// Changes a file under its lock; changes the database by compare-and-swap with retries.
    async fn change<T>(
        &self,
        change: impl Fn(&mut Vec<KeyEntry>) -> Result<T, KeysError>,
    ) -> Result<T, KeysError> {
        let store = match self {
            Self::File(file) => return file.change(change),
            Self::Shared(store) => store,
        };
        for _ in 0..TRIES_MAX {
            let before = store.document(DOCUMENT).await?;
            let (after, outcome) = file::edited("database".as_ref(), &before, &change)?;
            if before == after || store.put_document(DOCUMENT, &before, &after).await? {
                return Ok(outcome);
            }
        }
        Err(KeysError::Contended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

    #[tokio::test]
    async fn a_key_that_is_revoked_between_two_copies_is_revoked_in_both_stores() {
        let temp = tempfile::tempdir().unwrap();
        let of = |name: &str| KeyStore::of_folder(&temp.path().join(name));
        let (from, to) = (of("from"), of("to"));
        let created = from.create(KeyTerms::default(), NOW).await.unwrap();
        from.create(KeyTerms::default(), NOW).await.unwrap();
        assert_eq!(from.copy_to(&to).await.unwrap(), 2);
        assert_eq!(from.copy_to(&to).await.unwrap(), 0);
        from.revoke(created.id, NOW).await.unwrap();
        assert_eq!(from.copy_to(&to).await.unwrap(), 1);
        let states: Vec<_> = to.list().await.unwrap().iter().map(|key| key.state(NOW)).collect();
        assert_eq!(states, ["revoked", "active"]);
    }
}
