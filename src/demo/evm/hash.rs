//! Accounts, words and their hashes.

use std::collections::HashMap;
use std::sync::Mutex;

use sha3::{Digest as _, Keccak256};

use crate::domain::lock;
pub(super) use crate::domain::{Account, Word};

/// Hashes of the signatures of functions and events, each computed once.
#[derive(Debug, Default)]
pub(super) struct Signatures {
    known: Mutex<HashMap<&'static str, Word>>,
}

impl Signatures {
    /// The first topic of an event.
    pub(super) fn topic(&self, text: &'static str) -> Word {
        *lock(&self.known).entry(text).or_insert_with(|| keccak(&[text.as_bytes()]))
    }

    /// A function's first four bytes.
    pub(super) fn selector(&self, text: &'static str) -> [u8; 4] {
        self.topic(text).first_chunk().copied().unwrap_or_default()
    }
}

pub(super) fn tail(word: &Word) -> Account {
    word.last_chunk().copied().unwrap_or_default()
}

pub(super) fn keccak(parts: &[&[u8]]) -> Word {
    let mut hasher = Keccak256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}
