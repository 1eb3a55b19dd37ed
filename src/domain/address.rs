//! Addresses and transaction ids of the three families: checked once at the edge, bytes inside.

use std::fmt;

use sha3::{Digest as _, Keccak256};

use super::{Family, Signature};

/// The 20 bytes of an account or contract of the EVM and of Tron.
pub type Account = [u8; 20];
/// A hash, a topic, or any other 32-byte word of the EVM.
pub type Word = [u8; 32];

/// The hash of the EVM and of Tron, of these parts joined.
pub(crate) fn keccak256(parts: &[&[u8]]) -> Word {
    let mut hasher = Keccak256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// An account, contract, mint or token. One type for all, because their addresses have one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    Solana([u8; 32]),
    Evm([u8; 20]),
    /// Without the leading 0x41 byte. A TRC-10 token, which has a number and no contract, is
    /// encoded as that number and written as it.
    Tron([u8; 20]),
}

/// Numbers of tokens without a contract (TRC-10; java-tron assigns them from 1,000,001 up). No
/// precompiled contract has such an address.
const TRON_ASSETS: std::ops::RangeInclusive<u32> = 1_000_001..=9_999_999;

/// Id of a transaction: a signature on Solana, a hash elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TxId {
    Solana(Signature),
    Evm([u8; 32]),
    Tron([u8; 32]),
}

/// Why a text is not an address of the family.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("a Solana address is base58 text of 32 bytes (32 to 44 characters)")]
    Solana,
    #[error("an EVM address is 0x followed by 40 hex digits")]
    Evm,
    #[error(
        "the EVM address has a wrong EIP-55 checksum (write it in lower case to skip the check)"
    )]
    EvmChecksum,
    #[error("a Tron address is base58check text that begins with T (34 characters)")]
    Tron,
    #[error(
        "{expected}, and this is an address of another kind of chain: name its chain (`chain`, --chain)"
    )]
    OtherChain { expected: Box<Self> },
}

impl Address {
    /// Parses the text form of a family: base58; `0x` hex in any case except a wrong checksum; `T…`
    /// base58check.
    pub fn parse(family: Family, text: &str) -> Result<Self, AddressError> {
        parse(family, text).map_err(|expected| {
            let mut families = [Family::Solana, Family::Evm, Family::Tron].into_iter();
            if families.any(|other| other != family && parse(other, text).is_ok()) {
                return AddressError::OtherChain { expected: Box::new(expected) };
            }
            expected
        })
    }

    /// Reads a token as rows show it: an address, or the number of a TRC-10 token.
    pub fn parse_token(family: Family, text: &str) -> Result<Self, AddressError> {
        if family == Family::Tron
            && let Ok(number) = text.parse()
            && Self::is_tron_asset(number)
        {
            return Ok(Self::tron_asset(number));
        }
        Self::parse(family, text)
    }

    pub fn from_bytes(family: Family, bytes: &[u8]) -> Option<Self> {
        Some(match family {
            Family::Solana => Self::Solana(bytes.try_into().ok()?),
            Family::Evm => Self::Evm(bytes.try_into().ok()?),
            Family::Tron => Self::Tron(bytes.try_into().ok()?),
        })
    }

    /// The address that encodes the number of a TRC-10 token.
    pub fn tron_asset(number: u32) -> Self {
        let mut bytes = [0; 20];
        if let Some(tail) = bytes.last_chunk_mut() {
            *tail = number.to_be_bytes();
        }
        Self::Tron(bytes)
    }

    /// Whether a TRC-10 token may have that number.
    pub fn is_tron_asset(number: u32) -> bool {
        TRON_ASSETS.contains(&number)
    }

    /// The number of a TRC-10 token.
    pub fn as_tron_asset(&self) -> Option<u32> {
        let Self::Tron([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number @ ..]) = self else {
            return None;
        };
        Some(u32::from_be_bytes(*number)).filter(|number| Self::is_tron_asset(*number))
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Solana(bytes) => bytes,
            Self::Evm(bytes) | Self::Tron(bytes) => bytes,
        }
    }

    pub fn family(&self) -> Family {
        match self {
            Self::Solana(_) => Family::Solana,
            Self::Evm(_) => Family::Evm,
            Self::Tron(_) => Family::Tron,
        }
    }
}

impl TxId {
    pub fn from_bytes(family: Family, bytes: &[u8]) -> Option<Self> {
        Some(match family {
            Family::Solana => Self::solana(bytes.try_into().ok()?),
            Family::Evm => Self::Evm(bytes.try_into().ok()?),
            Family::Tron => Self::Tron(bytes.try_into().ok()?),
        })
    }

    pub fn solana(bytes: &[u8; 64]) -> Self {
        Self::Solana(Signature::from_bytes(bytes))
    }

    /// Parses the text form of a family: base58, or 32 bytes of hex, with `0x` on EVM and with or
    /// without it on Tron.
    pub fn parse(family: Family, text: &str) -> Option<Self> {
        let digits = match family {
            Family::Solana => return Self::parse_solana(text),
            Family::Evm => text.strip_prefix("0x")?,
            Family::Tron => text.strip_prefix("0x").unwrap_or(text),
        };
        Self::from_bytes(family, &hex::decode(digits).ok()?)
    }

    /// Base58 of 64 bytes.
    pub fn parse_solana(text: &str) -> Option<Self> {
        Signature::parse(text.as_bytes()).map(Self::Solana)
    }

    /// Appends the text form.
    pub fn push_text(&self, out: &mut Vec<u8>) {
        match self {
            Self::Solana(signature) => signature.push_text(out),
            Self::Evm(_) | Self::Tron(_) => out.extend_from_slice(self.to_string().as_bytes()),
        }
    }

    /// 64 bytes on Solana, 32 elsewhere.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Solana(signature) => signature.to_bytes().to_vec(),
            Self::Evm(bytes) | Self::Tron(bytes) => bytes.to_vec(),
        }
    }
}

fn parse(family: Family, text: &str) -> Result<Address, AddressError> {
    match family {
        Family::Solana => parse_solana(text).ok_or(AddressError::Solana),
        Family::Evm => parse_evm(text),
        Family::Tron => parse_tron(text).ok_or(AddressError::Tron),
    }
}

fn parse_solana(text: &str) -> Option<Address> {
    let mut bytes = [0; 32];
    five8::decode_32(text.as_bytes(), &mut bytes).ok()?;
    Some(Address::Solana(bytes))
}

fn parse_evm(text: &str) -> Result<Address, AddressError> {
    let digits =
        text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).ok_or(AddressError::Evm)?;
    let mut bytes = [0; 20];
    hex::decode_to_slice(digits, &mut bytes).map_err(|_| AddressError::Evm)?;
    let one_case = !digits.contains(|c: char| c.is_ascii_lowercase())
        || !digits.contains(|c: char| c.is_ascii_uppercase());
    let right = one_case || Address::Evm(bytes).to_string().get(2..) == Some(digits);
    if right { Ok(Address::Evm(bytes)) } else { Err(AddressError::EvmChecksum) }
}

fn parse_tron(text: &str) -> Option<Address> {
    if text.len() != 34 || !text.starts_with('T') {
        return None;
    }
    let raw = bs58::decode(text).with_check(Some(0x41)).into_vec().ok()?;
    Some(Address::Tron(raw.get(1..)?.try_into().ok()?))
}

/// The canonical text: base58, EIP-55 mixed case, `T…` or a TRC-10 token's number.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Solana(bytes) => {
                let mut text = [0; 44];
                let len = five8::encode_32(bytes, &mut text);
                write_ascii(f, text.get(..usize::from(len)))
            }
            Self::Evm(bytes) => write_eip55(f, bytes),
            Self::Tron(bytes) => match self.as_tron_asset() {
                Some(number) => write!(f, "{number}"),
                None => f.write_str(&bs58::encode(bytes).with_check_version(0x41).into_string()),
            },
        }
    }
}

impl fmt::Display for TxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Solana(signature) => signature.fmt(f),
            Self::Evm(bytes) => {
                f.write_str("0x")?;
                write_hash(f, bytes)
            }
            Self::Tron(bytes) => write_hash(f, bytes),
        }
    }
}

fn write_ascii(f: &mut fmt::Formatter<'_>, text: Option<&[u8]>) -> fmt::Result {
    f.write_str(text.and_then(|t| std::str::from_utf8(t).ok()).ok_or(fmt::Error)?)
}

fn write_hash(f: &mut fmt::Formatter<'_>, bytes: &[u8; 32]) -> fmt::Result {
    let mut text = [0; 64];
    hex::encode_to_slice(bytes, &mut text).map_err(|_| fmt::Error)?;
    write_ascii(f, Some(&text))
}

/// Upper case where the hash of the lower-case digits has a nibble of 8 or more (EIP-55).
fn write_eip55(f: &mut fmt::Formatter<'_>, bytes: &[u8; 20]) -> fmt::Result {
    let digits = hex::encode(bytes);
    let hash = hex::encode(keccak256(&[digits.as_bytes()]));
    f.write_str("0x")?;
    for (digit, nibble) in digits.chars().zip(hash.chars()) {
        let upper = nibble.to_digit(16).is_some_and(|n| n >= 8);
        write!(f, "{}", if upper { digit.to_ascii_uppercase() } else { digit })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_each_family() {
        let cases = [
            (Family::Solana, "So11111111111111111111111111111111111111112"),
            (Family::Solana, "11111111111111111111111111111111"),
            // The example of EIP-55 itself.
            (Family::Evm, "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"),
            (Family::Tron, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"),
        ];
        for (family, text) in cases {
            assert_eq!(Address::parse(family, text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_tron_token_without_a_contract_is_written_as_its_number() {
        let token = Address::tron_asset(1_002_000);
        assert_eq!((token.to_string(), token.as_tron_asset()), ("1002000".into(), Some(1_002_000)));
        // Routers take the zero address for TRX; it and a contract's address are no TRC-10 numbers.
        let none = Address::parse(Family::Tron, "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb").unwrap();
        assert_eq!((none, none.as_tron_asset()), (Address::Tron([0; 20]), None));
        assert_eq!(Address::Tron([7; 20]).as_tron_asset(), None);
        assert_eq!(Address::from_bytes(Family::Tron, token.bytes()), Some(token));
    }

    #[test]
    fn an_evm_address_may_have_any_case_but_a_wrong_checksum() {
        let canonical = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
        for text in [canonical.to_lowercase(), format!("0x{}", canonical[2..].to_uppercase())] {
            assert_eq!(Address::parse(Family::Evm, &text).unwrap().to_string(), canonical);
        }
        let wrong = "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
        assert_eq!(Address::parse(Family::Evm, wrong), Err(AddressError::EvmChecksum));
    }

    #[test]
    fn refuses_what_is_no_address() {
        let bad = [
            (Family::Solana, ""),
            (Family::Solana, "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"),
            (Family::Solana, "So1111111111111111111111111111111111111111l"),
            (Family::Solana, "So111111111111111111111111111111111111111121111111"),
            (Family::Evm, "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"),
            (Family::Evm, "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeA"),
            (Family::Tron, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u"),
            (Family::Tron, "41a614f803b6fd780986a42c78ec9c7f77e6ded13c"),
        ];
        for (family, text) in bad {
            assert!(Address::parse(family, text).is_err(), "{text}");
        }
    }
}
