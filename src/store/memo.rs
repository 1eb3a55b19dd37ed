//! What readers remember of tokens and venues between slices, so that a row costs one look-up.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::domain::Token;

use super::LIMITS;

/// Filled from committed reads only. Venues never change. Tokens do: the writer forgets them
/// after the commit that changed them, and a read that began before may not put an old one back,
/// which is what `edition` is for.
#[derive(Debug, Default)]
pub(super) struct Memo {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    edition: u64,
    tokens: HashMap<u32, Arc<Token>>,
    venues: HashMap<u32, Arc<str>>,
}

impl Memo {
    /// Taken before the read transaction begins.
    pub(super) fn edition(&self) -> u64 {
        self.read().edition
    }

    pub(super) fn token(&self, id: u32) -> Option<Arc<Token>> {
        self.read().tokens.get(&id).cloned()
    }

    pub(super) fn venue(&self, id: u32) -> Option<Arc<str>> {
        self.read().venues.get(&id).cloned()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn keep_token(&self, edition: u64, id: u32, token: &Arc<Token>) {
        let mut state = self.write();
        if state.edition != edition {
            return;
        }
        if state.tokens.len() >= LIMITS.memo_entries {
            state.tokens.clear();
        }
        state.tokens.insert(id, Arc::clone(token));
    }

    pub(super) fn keep_venue(&self, id: u32, venue: &Arc<str>) {
        let mut state = self.write();
        if state.venues.len() >= LIMITS.memo_entries {
            state.venues.clear();
        }
        state.venues.insert(id, Arc::clone(venue));
    }

    /// After the commit that changed these tokens.
    pub(super) fn forget_tokens(&self, ids: &[u32]) {
        if ids.is_empty() {
            return;
        }
        let mut state = self.write();
        state.edition += 1;
        for id in ids {
            state.tokens.remove(id);
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
        let memo = Memo::default();
        let before = memo.edition();
        memo.keep_token(before, 7, &token(1));
        assert_eq!(memo.token(7), Some(token(1)));
        memo.forget_tokens(&[7]);
        memo.keep_token(before, 7, &token(1));
        assert_eq!(memo.token(7), None);
        memo.keep_token(memo.edition(), 7, &token(2));
        assert_eq!(memo.token(7), Some(token(2)));
    }

    #[test]
    fn it_is_bounded() {
        let memo = Memo::default();
        for id in 0..u32::try_from(LIMITS.memo_entries + 1).unwrap() {
            memo.keep_token(0, id, &token(0));
            memo.keep_venue(id, &Arc::from("x"));
        }
        assert!(memo.read().tokens.len() <= LIMITS.memo_entries);
        assert!(memo.read().venues.len() <= LIMITS.memo_entries);
    }
}
