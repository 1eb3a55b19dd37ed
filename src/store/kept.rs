//! What this process remembers of the store, bounded.

use std::hash::Hash;
use std::sync::Mutex;

use crate::domain::lock;
use foldhash::HashMap;

/// Entries up to a number; one too many begins anew.
#[derive(Debug)]
pub(super) struct CachedState<K, V> {
    entries: Mutex<HashMap<K, V>>,
    max: usize,
}

impl<K: Eq + Hash, V: Clone> CachedState<K, V> {
    pub(super) fn new(max: usize) -> Self {
        Self { entries: Mutex::default(), max }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        lock(&self.entries).get(key).cloned()
    }

    pub(super) fn put(&self, key: K, value: V) {
        let mut entries = lock(&self.entries);
        if entries.len() >= self.max {
            entries.clear();
        }
        entries.insert(key, value);
    }

    #[cfg(feature = "postgres")]
    pub(super) fn take(&self, key: &K) -> Option<V> {
        lock(&self.entries).remove(key)
    }

    #[cfg(feature = "postgres")]
    pub(super) fn clear(&self) {
        lock(&self.entries).clear();
    }
}
