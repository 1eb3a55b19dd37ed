//! Tokens and venues that readers cache between slices.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::domain::Token;

use super::LIMITS;

/// Filled from committed reads only. Venues never change. Tokens do: the writer removes them after
/// the commit that changed them, and `edition` keeps a read that began before from putting an old
/// one back.
#[derive(Debug, Default)]
pub(super) struct ReaderCache {
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    edition: u64,
    tokens: Slots<Arc<Token>>,
    venues: Slots<Arc<str>>,
}

impl Default for State {
    fn default() -> Self {
        let entries = LIMITS.cached_names;
        Self { edition: 0, tokens: Slots::new(entries), venues: Slots::new(entries) }
    }
}

/// A cache with one slot for each number modulo `count`. Numbers ascend from 0, so they share slots
/// only where there are more of them than slots. Memory is allocated for the first value: most
/// reads of a waiting stream have none.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Vec<Option<(u32, T)>>,
    count: usize,
}

impl<T: Clone> Slots<T> {
    pub(super) fn new(count: usize) -> Self {
        Self { slots: Vec::new(), count }
    }

    fn get(&self, id: u32) -> Option<&T> {
        let (kept, value) = self.slots.get(self.slot(id))?.as_ref()?;
        (*kept == id).then_some(value)
    }

    /// The cached value, else the one that `make` returns.
    pub(super) fn get_or<E>(
        &mut self,
        id: u32,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        if let Some(value) = self.get(id) {
            return Ok(value.clone());
        }
        let value = make()?;
        self.put(id, value.clone());
        Ok(value)
    }

    fn put(&mut self, id: u32, value: T) {
        let slot = self.slot(id);
        if self.slots.is_empty() {
            self.slots.resize(self.count, None);
        }
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = Some((id, value));
        }
    }

    fn remove(&mut self, id: u32) {
        let slot = self.slot(id);
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.take_if(|(kept, _)| *kept == id);
        }
    }

    fn slot(&self, id: u32) -> usize {
        usize::try_from(id).unwrap_or_default() % self.count.max(1)
    }
}

impl ReaderCache {
    /// Must be read before the read transaction begins.
    pub(super) fn edition(&self) -> u64 {
        self.read().edition
    }

    pub(super) fn token(&self, id: u32) -> Option<Arc<Token>> {
        self.read().tokens.get(id).cloned()
    }

    pub(super) fn venue(&self, id: u32) -> Option<Arc<str>> {
        self.read().venues.get(id).cloned()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn keep_token(&self, edition: u64, id: u32, token: &Arc<Token>) {
        let mut state = self.write();
        if state.edition == edition {
            state.tokens.put(id, Arc::clone(token));
        }
    }

    pub(super) fn keep_venue(&self, id: u32, venue: &Arc<str>) {
        self.write().venues.put(id, Arc::clone(venue));
    }

    /// Must be called after the commit that changed these tokens.
    pub(super) fn forget_tokens(&self, ids: &[u32]) {
        if ids.is_empty() {
            return;
        }
        let mut state = self.write();
        state.edition += 1;
        for id in ids {
            state.tokens.remove(*id);
        }
    }

    pub(super) fn forget_all(&self) {
        let mut state = self.write();
        *state = State { edition: state.edition + 1, ..State::default() };
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Address;

    fn token(decimals: u8) -> Arc<Token> {
        Arc::new(Token::new(Address::Evm([1; 20]), None, Some(decimals)))
    }

    #[test]
    fn a_read_from_before_a_change_puts_nothing_back() {
        let cache = ReaderCache::default();
        let before = cache.edition();
        cache.keep_token(before, 7, &token(1));
        assert_eq!(cache.token(7), Some(token(1)));
        cache.forget_tokens(&[7]);
        cache.keep_token(before, 7, &token(1));
        assert_eq!(cache.token(7), None);
        cache.keep_token(cache.edition(), 7, &token(2));
        assert_eq!(cache.token(7), Some(token(2)));
    }

    #[test]
    fn numbers_that_share_a_slot_are_not_taken_for_each_other() {
        let cache = ReaderCache::default();
        let far = u32::try_from(LIMITS.cached_names).unwrap() + 7;
        cache.keep_token(0, 7, &token(1));
        cache.keep_token(0, far, &token(2));
        assert_eq!((cache.token(7), cache.token(far)), (None, Some(token(2))));
        cache.forget_tokens(&[7]);
        assert_eq!(cache.token(far), Some(token(2)));
        cache.forget_tokens(&[far]);
        assert_eq!(cache.token(far), None);
    }
}
