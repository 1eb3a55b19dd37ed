//! A bounded cache.

use std::hash::Hash;
use std::sync::Mutex;

use foldhash::HashMap;

use super::lock;

/// A map of at most `max` entries: a full one is emptied before the next entry.
#[derive(Debug)]
pub struct BoundedCache<K, V> {
    entries: Mutex<HashMap<K, V>>,
    max: usize,
}

impl<K: Eq + Hash, V: Clone> BoundedCache<K, V> {
    pub fn new(max: usize) -> Self {
        Self { entries: Mutex::default(), max }
    }

    pub fn get(&self, key: &K) -> Option<V> {
        lock(&self.entries).get(key).cloned()
    }

    pub fn put(&self, key: K, value: V) {
        let mut entries = lock(&self.entries);
        if entries.len() >= self.max {
            entries.clear();
        }
        entries.insert(key, value);
    }

    pub fn take(&self, key: &K) -> Option<V> {
        lock(&self.entries).remove(key)
    }

    pub fn clear(&self) {
        lock(&self.entries).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_entries_are_kept_than_the_limit() {
        let cache = BoundedCache::new(2);
        (0..3).for_each(|at| cache.put(at, at));
        assert_eq!([0, 1, 2].map(|at| cache.get(&at)), [None, None, Some(2)]);
    }
}
