//! Words of ABI-encoded input.

use crate::domain::Units;

pub(super) const WORD: usize = 32;

pub(super) fn word(words: &[u8], at: usize) -> Option<Units> {
    let bytes: &[u8; WORD] = words.get(at.checked_mul(WORD)?..)?.first_chunk()?;
    Some(Units::from_be_bytes(*bytes))
}

pub(super) fn number(words: &[u8], at: usize) -> Option<usize> {
    word(words, at)?.try_into().ok()
}

/// A `bytes` or `string` argument: its length, then its content.
pub(super) fn bytes(data: &[u8], at: usize) -> Option<&[u8]> {
    let text = data.get(at..)?;
    text.get(WORD..)?.get(..number(text, 0)?)
}

/// The last 20 bytes of a word; contracts ignore the bytes before them.
pub(super) fn account(words: &[u8], at: usize) -> Option<[u8; 20]> {
    word(words, at)?.to_be_bytes::<WORD>().last_chunk().copied()
}

/// Builds ABI words for tests.
#[cfg(test)]
pub(super) mod written {
    use super::WORD;
    use crate::domain::{Account, Units};

    pub(in crate::decode) fn of(account: Account) -> Units {
        Units::from_be_slice(&account)
    }

    pub(in crate::decode) fn at(number: usize) -> Units {
        Units::from(number)
    }

    pub(in crate::decode) fn words(words: &[Units]) -> Vec<u8> {
        words.iter().flat_map(Units::to_be_bytes::<WORD>).collect()
    }

    /// A `bytes` or `string` argument.
    pub(in crate::decode) fn bytes(content: &[u8]) -> Vec<u8> {
        let padding = content.len().next_multiple_of(WORD) - content.len();
        [words(&[at(content.len())]), content.to_vec(), vec![0; padding]].concat()
    }
}
