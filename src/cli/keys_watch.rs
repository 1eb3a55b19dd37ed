//! Keeps a running server's keys equal to the keys file.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::keys_file::{KeyEntry, KeysError, KeysFile};
use crate::api::{KeyInfo, KeyRing, Keys};
use crate::domain::UnixMillis;
use crate::history::Tasks;
use crate::registry::Registry;

/// A change is in force within two of these.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// The keys of the file, and the text that they were read from.
pub(super) struct KeysWatch {
    file: KeysFile,
    registry: Arc<Registry>,
    text: Mutex<String>,
    pub(super) keys: Keys,
}

impl KeysWatch {
    /// Reads the keys once; a file that cannot be used is an error only here.
    pub(super) fn new(file: KeysFile, registry: Arc<Registry>) -> Result<Self, KeysError> {
        let text = file.text()?;
        let keys = Keys::new(ring(&file.parse(&text)?, &registry));
        Ok(Self { file, registry, text: Mutex::new(text), keys })
    }

    /// Follows the file until the tasks are asked to end.
    pub(super) async fn run(self: Arc<Self>, tasks: Tasks) {
        loop {
            tokio::select! {
                () = tasks.cancelled() => return,
                () = tokio::time::sleep(POLL_EVERY) => {}
            }
            if let Err(error) = self.follow() {
                tracing::warn!(%error, "the keys file cannot be used; the keys stay as they were");
            }
        }
    }

    /// Puts the file's keys in force where it has changed.
    pub(super) fn follow(&self) -> Result<(), KeysError> {
        // The whole text is compared: times and sizes of files can stay the same over a change.
        let text = self.file.text()?;
        let mut known = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if text != *known {
            let entries = self.file.parse(&text);
            *known = text;
            let entries = entries?;
            tracing::info!(keys = entries.len(), "the keys have changed");
            self.keys.replace(ring(&entries, &self.registry));
        }
        Ok(())
    }
}

fn ring(entries: &[KeyEntry], registry: &Registry) -> KeyRing {
    entries.iter().map(|entry| (entry.hash.0, info(entry, registry))).collect()
}

fn info(entry: &KeyEntry, registry: &Registry) -> KeyInfo {
    let known = |slug: &String| registry.chain_named(slug).map(|chain| chain.id);
    // No key can read a chain that the table no longer has, so leaving it out widens nothing.
    let chains = || entry.chains.iter().filter_map(known).collect();
    KeyInfo {
        id: entry.id.0,
        public_id: entry.id.to_string(),
        name: entry.name.clone(),
        rate_millis: entry.rate.map(|rate| rate.millis),
        quota: entry.quota,
        streams: entry.streams,
        chains: (!entry.chains.is_empty()).then(chains),
        expires: entry.expires.map(|at| UnixMillis(u64::from(at.0.0) * 1000)),
        revoked: entry.revoked.is_some(),
    }
}
