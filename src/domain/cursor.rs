//! The resume token of a walk: opaque text that never expires and is bound to its wallet.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::{Family, Height, TradeKey, TxId, UnixSeconds, Wallet};

const VERSION: u8 = 1;
/// The version with the number of passed rows.
const VERSION_COUNTED: u8 = 2;
const CHECKSUM_BYTES: usize = 8;
/// A Solana signature and the fields around it.
const BYTES_TYPICAL: usize = 128;
/// Whether the head is recorded, and whether the walk follows the chain above it.
const HEAD_NONE: u8 = 0;
const HEAD_KNOWN: u8 = 1;
const HEAD_LIVE: u8 = 2;

/// The filter to which a walk is bound, by [`super::Filter::tag`]; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FilterTag(pub u32);

/// The place that a walk has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Position {
    /// Before the newest row.
    #[default]
    Start,
    /// Directly behind this row.
    After(TradeKey),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The height at which the walk started; `None` while no source has reported a head.
    pub head: Option<Height>,
    pub filter: FilterTag,
    /// The walk follows the chain: everything up to the head was delivered, and above it everything
    /// up to the position, which is the newest row delivered.
    pub live: bool,
    pub position: Position,
    /// Rows that the walk has gone behind since its start, delivered or rejected by its filter,
    /// where the count is known: at the end a difference to the stored count shows that rows were
    /// added or removed above the position.
    pub passed: Option<u64>,
}

/// A cursor that was damaged, or belongs to another wallet, chain or version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is damaged, or was given for another wallet, chain or filter")]
pub struct CursorError;

impl Cursor {
    pub fn encode(&self, wallet: &Wallet) -> String {
        let mut bytes = Vec::with_capacity(BYTES_TYPICAL);
        bytes.push(if self.passed.is_some() { VERSION_COUNTED } else { VERSION });
        bytes.extend(self.filter.0.to_be_bytes());
        bytes.extend(self.passed.into_iter().flat_map(u64::to_be_bytes));
        match self.head {
            None => bytes.push(HEAD_NONE),
            Some(head) => {
                bytes.push(if self.live { HEAD_LIVE } else { HEAD_KNOWN });
                bytes.extend(head.to_be_bytes());
            }
        }
        if let Position::After(key) = &self.position {
            bytes.extend(key.time.0.to_be_bytes());
            bytes.extend(key.height.to_be_bytes());
            bytes.extend(key.index.to_be_bytes());
            bytes.extend(key.leg.to_be_bytes());
            bytes.extend(key.tx.to_bytes());
        }
        bytes.extend(checksum(&bytes, wallet));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a cursor that was issued for this wallet.
    pub fn decode(text: &str, wallet: &Wallet) -> Result<Self, CursorError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| CursorError)?;
        let (body, sum) = bytes
            .split_at_checked(bytes.len().saturating_sub(CHECKSUM_BYTES))
            .ok_or(CursorError)?;
        if sum != checksum(body, wallet) {
            return Err(CursorError);
        }
        read(body, wallet.address.family()).ok_or(CursorError)
    }
}

fn read(mut body: &[u8], family: Family) -> Option<Cursor> {
    let body = &mut body;
    let [version] = take::<1>(body)?;
    let filter = FilterTag(u32::from_be_bytes(take(body)?));
    let passed = match version {
        VERSION => None,
        VERSION_COUNTED => Some(u64::from_be_bytes(take(body)?)),
        _ => return None,
    };
    let [kind] = take::<1>(body)?;
    let head = match kind {
        HEAD_NONE => None,
        HEAD_KNOWN | HEAD_LIVE => Some(u64::from_be_bytes(take(body)?)),
        _ => return None,
    };
    let live = kind == HEAD_LIVE;
    let position = if body.is_empty() {
        Position::Start
    } else {
        Position::After(TradeKey {
            time: UnixSeconds(u32::from_be_bytes(take(body)?)),
            height: u64::from_be_bytes(take(body)?),
            index: u32::from_be_bytes(take(body)?),
            leg: u16::from_be_bytes(take(body)?),
            tx: TxId::from_bytes(family, body)?,
        })
    };
    Some(Cursor { head, filter, live, position, passed })
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*head)
}

fn checksum(body: &[u8], wallet: &Wallet) -> [u8; CHECKSUM_BYTES] {
    let mut hash = Sha256::new();
    hash.update(wallet.chain.0.to_be_bytes());
    hash.update(wallet.address.bytes());
    hash.update(body);
    let digest = hash.finalize();
    std::array::from_fn(|at| digest.get(at).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{Address, ChainId};

    fn wallet(chain: u16, seed: u8) -> Wallet {
        Wallet { chain: ChainId(chain), address: Address::Solana([seed; 32]) }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}") {
            prop_assert_eq!(Cursor::decode(&text, &wallet(1, 7)), Err(CursorError));
        }
    }
}
