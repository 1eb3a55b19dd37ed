//! The account keys of a transaction, and addresses decoded once.

use super::base58::decode_address;
use super::raw_error::{LIMITS, RawError};
use super::wire::{KeyText, Meta};

pub(super) type AccountKey = [u8; 32];

/// The keys as bytes, and as the text by which `jsonParsed` refers to them.
pub(super) struct AccountKeys<'a> {
    pub(super) bytes: Vec<AccountKey>,
    texts: Vec<&'a [u8]>,
    /// The first characters of each text, to compare first: `jsonParsed` names keys by the hundred.
    starts: Vec<u64>,
}

impl<'a> AccountKeys<'a> {
    pub(super) fn read(listed: &[KeyText<'a>], meta: &Meta<'a>) -> Result<Self, RawError> {
        let mut texts: Vec<&[u8]> = Vec::with_capacity(meta.pre_balances.len());
        texts.extend(listed.iter().map(|key| key.text));
        // In `jsonParsed` the list is complete already.
        let more = meta.writable.iter().chain(&meta.readonly);
        if !more.clone().all(|text| texts.contains(text)) {
            texts.extend(more);
        }
        if texts.len() > LIMITS.keys {
            return Err(RawError::TooMany("account keys"));
        }
        let mut bytes = Vec::with_capacity(texts.len());
        for text in &texts {
            bytes.push(key(text)?);
        }
        let starts = texts.iter().map(|text| start(text)).collect();
        Ok(Self { bytes, texts, starts })
    }

    /// Index of an address among the keys.
    pub(super) fn find(&self, text: &[u8]) -> Option<u8> {
        let wanted = start(text);
        let alike = |(_, start): &(usize, &u64)| **start == wanted;
        let mut alike = self.starts.iter().enumerate().filter(alike).map(|(at, _)| at);
        let at = alike.find(|at| self.texts.get(*at) == Some(&text))?;
        u8::try_from(at).ok()
    }
}

/// The first characters of an address as one number.
fn start(text: &[u8]) -> u64 {
    text.first_chunk().map_or(0, |start| u64::from_le_bytes(*start))
}

pub(super) fn key(text: &[u8]) -> Result<AccountKey, RawError> {
    decode_address(text).ok_or(RawError::Broken("address"))
}

/// A cache of decoded addresses: the balance lists repeat the same few mints and owners.
pub(super) struct AddressCache<'a> {
    known: Vec<(u64, &'a [u8], AccountKey)>,
}

impl<'a> AddressCache<'a> {
    pub(super) fn new() -> Self {
        Self { known: Vec::with_capacity(16) }
    }

    pub(super) fn key(&mut self, text: &'a [u8]) -> Result<AccountKey, RawError> {
        let wanted = start(text);
        let mut known = self.known.iter();
        if let Some((.., key)) = known.find(|(start, known, _)| *start == wanted && *known == text)
        {
            return Ok(*key);
        }
        let key = key(text)?;
        self.known.push((wanted, text, key));
        Ok(key)
    }
}

pub(super) fn units(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
