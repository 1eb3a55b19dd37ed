//! Deserializes addresses and bytes of the tables.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::domain::{Account, Address, Family};

const TRON_TEXT_BYTES: usize = 34;

/// Parses an address of the family whose form the text has.
impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let family = match text.as_bytes() {
            [b'0', b'x' | b'X', ..] => Family::Evm,
            [b'T', ..] if text.len() == TRON_TEXT_BYTES => Family::Tron,
            _ => Family::Solana,
        };
        Self::parse(family, &text).map_err(|error| D::Error::custom(format!("{text}: {error}")))
    }
}

/// An account of an EVM chain or of Tron, whose tables have one form.
pub(super) fn account<'de, D: Deserializer<'de>>(from: D) -> Result<Account, D::Error> {
    match Address::deserialize(from)? {
        Address::Evm(bytes) | Address::Tron(bytes) => Ok(bytes),
        other @ Address::Solana(_) => Err(D::Error::custom(format!("{other}: another family"))),
    }
}

/// For a column that some rows lack.
pub(super) fn some_account<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Account>, D::Error> {
    account(from).map(Some)
}

pub(super) fn hex<'de, D: Deserializer<'de>, const N: usize>(from: D) -> Result<[u8; N], D::Error> {
    bytes(&String::deserialize(from)?)
}

pub(super) fn selectors<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<[u8; 4]>, D::Error> {
    Vec::<String>::deserialize(from)?.iter().map(|text| bytes(text)).collect()
}

fn bytes<const N: usize, E: serde::de::Error>(text: &str) -> Result<[u8; N], E> {
    let mut bytes = [0; N];
    let read = hex::decode_to_slice(text.strip_prefix("0x").unwrap_or(text), &mut bytes);
    read.map(|()| bytes).map_err(|error| E::custom(format!("{text}: {error}")))
}
