//! The 32-byte words of an event.

use super::transaction::{Account, Log, Word};
use crate::domain::Units;

pub(super) const ZERO: Account = [0; 20];
/// The placeholder of many routers for the native coin (ERC-7528).
pub(super) const NATIVE_PLACEHOLDER: Account = [0xee; 20];

/// The address in a word; `None` if the word cannot be one.
pub(super) fn address(word: &Word) -> Option<Account> {
    let (padding, bytes) = word.split_first_chunk::<12>()?;
    (padding == &[0; 12]).then(|| bytes.try_into().ok())?
}

pub(in crate::decode) fn units(word: &Word) -> Units {
    Units::from_be_bytes(*word)
}

/// A signed amount without its sign.
pub(super) fn absolute(units: Units) -> Units {
    if units.bit(255) { units.wrapping_neg() } else { units }
}

/// The word at an index of an event's data.
pub(in crate::decode) fn word(log: &Log, at: usize) -> Option<&Word> {
    let (words, _) = log.data.as_chunks::<32>();
    words.get(at)
}

/// All words of an event: indexed ones, then its data.
pub(super) fn words(log: &Log) -> impl Iterator<Item = &Word> {
    let (words, _) = log.data.as_chunks::<32>();
    log.topics.iter().skip(1).chain(words)
}

/// A topic, decoded at compile time.
#[expect(clippy::panic, reason = "runs at build time, where a wrong text stops the build")]
pub(in crate::decode) const fn topic(text: &str) -> Word {
    match const_hex::const_decode_to_array(text.as_bytes()) {
        Ok(word) => word,
        Err(_) => panic!("a topic has 64 hex digits"),
    }
}
