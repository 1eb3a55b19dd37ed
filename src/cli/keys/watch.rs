//! Applies changes of the store's keys to a running server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::file::{KeyEntry, KeysError};
use super::store::KeyStore;
use crate::api::{KeyInfo, KeyRing, Keys};
use crate::domain::{UnixMillis, lock};
use crate::history::{Share, Tasks};
use crate::registry::Registry;

/// A change takes effect within two intervals.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// The keys of a server, and the text that they were parsed from.
pub(in crate::cli) struct KeysWatch {
    file: KeyStore,
    registry: Arc<Registry>,
    /// The text, and this process's share of the keys' rates and streams.
    known: Mutex<(String, Share)>,
    pub(in crate::cli) keys: Keys,
}

impl KeysWatch {
    /// Reads the keys. Only here an unusable file is an error.
    pub(in crate::cli) async fn new(
        file: KeyStore,
        registry: Arc<Registry>,
    ) -> Result<Self, KeysError> {
        let text = file.text().await?;
        let share = file.share();
        let keys = Keys::new(ring(&file.parse(&text)?, &registry, share));
        Ok(Self { file, registry, known: Mutex::new((text, share)), keys })
    }

    /// Polls the keys until the tasks are stopped.
    pub(in crate::cli) async fn run(self: Arc<Self>, tasks: Tasks) {
        while tasks.run(tokio::time::sleep(POLL_EVERY)).await.is_some() {
            if let Err(error) = self.follow().await {
                tracing::warn!(%error, "cannot read the keys; the previous keys stay valid");
            }
        }
    }

    /// Applies the keys if they or the number of processes have changed.
    pub(in crate::cli) async fn follow(&self) -> Result<(), KeysError> {
        // Compares the whole text, since a change may leave a file's time and size the same.
        let now = (self.file.text().await?, self.file.share());
        let mut known = lock(&self.known);
        if now != *known {
            let entries = self.file.parse(&now.0);
            let share = now.1;
            *known = now;
            let (entries, processes) = (entries?, share.processes());
            tracing::info!(keys = entries.len(), processes, "the keys were reloaded");
            self.keys.replace(ring(&entries, &self.registry, share));
        }
        Ok(())
    }
}

fn ring(entries: &[KeyEntry], registry: &Registry, share: Share) -> KeyRing {
    entries.iter().map(|entry| (entry.hash.0, info(entry, registry, share))).collect()
}

/// Each process of a shared store allows its share of a key's rate and streams; they count the
/// quota together.
fn info(entry: &KeyEntry, registry: &Registry, share: Share) -> KeyInfo {
    let known = |slug: &String| registry.chain_named(slug).map(|chain| chain.id);
    // A chain that the table no longer has cannot be read by any key, so it can be left out.
    let chains = || entry.chains.iter().filter_map(known).collect();
    KeyInfo {
        id: entry.id.0,
        public_id: entry.id.to_string(),
        name: entry.name.clone(),
        rate_millis: entry.rate.map(|rate| (rate.millis / u64::from(share.processes())).max(1)),
        quota: entry.quota,
        streams: entry.streams.map(|streams| share.of_places(streams)),
        chains: (!entry.chains.is_empty()).then(chains),
        expires: entry.expires.map(|at| UnixMillis(u64::from(at.0.0) * 1000)),
        revoked: entry.revoked.is_some(),
    }
}
