//! Keys as fixed-width big-endian bytes, so that byte order is the order of delivery:
//!
//! ```text
//! wallet u32 | !time u32 | !height u64 | !index u32 | transaction id (72 or 32) | leg u16
//! ```
//!
//! Time, height and index are complemented: a forward scan is newest first, and a backfill, which
//! arrives newest first, appends at the right edge of a wallet's part of the tree.

use std::ops::RangeInclusive;

use crate::domain::{
    Address, ChainId, Family, Height, KeyId, Position, Signature, TradeKey, TxId, UnixSeconds,
};

use super::WalletId;

const ID_BYTES: usize = 4;
const HEIGHT_AT: usize = ID_BYTES + 4;
/// Offset of the transaction id.
pub(super) const TX_AT: usize = HEIGHT_AT + 8 + 4;
pub(super) const LEG_BYTES: usize = 2;
const CHAIN_BYTES: usize = 2;
/// Offset of the transaction in a [`wanted_value_key`].
pub(super) const WANTED_TX_AT: usize = CHAIN_BYTES + TX_AT;
const ROW_KEY_BYTES_MAX: usize = TX_AT + Signature::STORED_BYTES + LEG_BYTES;

/// A key, or a bound that sorts among keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowKey {
    bytes: [u8; ROW_KEY_BYTES_MAX + 1],
    len: usize,
}

/// Bounds of keys: the first inclusive, the second exclusive.
pub(super) type RowBounds = (RowKey, RowKey);

impl RowKey {
    const EMPTY: Self = Self { bytes: [0; ROW_KEY_BYTES_MAX + 1], len: 0 };

    pub(super) fn new(id: WalletId, key: &TradeKey) -> Self {
        let mut row = Self::start(id);
        row.push(&(!key.time.0).to_be_bytes());
        row.push(&(!key.height).to_be_bytes());
        row.push(&(!key.index).to_be_bytes());
        match &key.tx {
            TxId::Solana(signature) => row.push(&signature.to_stored()),
            TxId::Evm(hash) | TxId::Tron(hash) => row.push(hash),
        }
        row.push(&key.leg.to_be_bytes());
        row
    }

    /// Sorts before every key of the wallet.
    pub(super) fn start(id: WalletId) -> Self {
        let mut row = Self::EMPTY;
        row.push(&id.0.to_be_bytes());
        row
    }

    /// Sorts behind every key of the wallet.
    pub(super) fn end(id: WalletId) -> Self {
        let mut row = Self { bytes: [0xFF; ROW_KEY_BYTES_MAX + 1], len: 0 };
        row.push(&id.0.to_be_bytes());
        row.len = row.bytes.len();
        row
    }

    /// Sorts before the first key of the wallet at or below a time and, in that second, a height.
    pub(super) fn at(id: WalletId, time: UnixSeconds, height: Height) -> Self {
        let mut row = Self::start(id);
        row.push(&(!time.0).to_be_bytes());
        row.push(&(!height).to_be_bytes());
        row
    }

    /// Rows behind a position begin after this key.
    pub(super) fn behind(id: WalletId, after: Position) -> Self {
        match after {
            Position::Start => Self::start(id),
            Position::After(key) => Self::new(id, &key),
        }
    }

    /// Rows newer than a position end before this key.
    pub(super) fn above(id: WalletId, than: Position) -> Self {
        match than {
            Position::Start => Self::end(id),
            Position::After(key) => Self::new(id, &key),
        }
    }

    /// Bounds of the rows between two times, both inclusive.
    pub(super) fn between(id: WalletId, newest: UnixSeconds, oldest: UnixSeconds) -> RowBounds {
        let end = match oldest.0.checked_sub(1) {
            Some(before) => Self::at(id, UnixSeconds(before), Height::MAX),
            None => Self::end(id),
        };
        (Self::at(id, newest, Height::MAX), end)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }

    /// Appends bytes. The widths above never exceed the array.
    fn push(&mut self, part: &[u8]) {
        for (to, from) in self.bytes.iter_mut().skip(self.len).zip(part) {
            *to = *from;
        }
        self.len = (self.len + part.len()).min(self.bytes.len());
    }
}

pub(super) fn id_of(row_key: &[u8]) -> Option<WalletId> {
    Some(WalletId(u32::from_be_bytes(array(row_key, 0)?)))
}

/// The inverse of [`RowKey::new`]; `None` for bytes that it does not write.
#[inline]
pub(super) fn read_row_key(bytes: &[u8], family: Family) -> Option<TradeKey> {
    let tx_end = bytes.len().checked_sub(LEG_BYTES)?;
    Some(TradeKey {
        time: time_of(bytes)?,
        height: height_of(bytes)?,
        index: !u32::from_be_bytes(array(bytes, TX_AT - 4)?),
        tx: read_tx(bytes.get(TX_AT..tx_end)?, family)?,
        leg: u16::from_be_bytes(array(bytes, tx_end)?),
    })
}

#[inline]
fn read_tx(bytes: &[u8], family: Family) -> Option<TxId> {
    match (family, <&[u8; Signature::STORED_BYTES]>::try_from(bytes)) {
        (Family::Solana, Ok(stored)) => Signature::from_stored(stored).map(TxId::Solana),
        // Ranges of usage may be from the first format, which had the 64 bytes as they are.
        (Family::Solana | Family::Evm | Family::Tron, _) => TxId::from_bytes(family, bytes),
    }
}

pub(super) fn time_of(row_key: &[u8]) -> Option<UnixSeconds> {
    Some(UnixSeconds(!u32::from_be_bytes(array(row_key, ID_BYTES)?)))
}

pub(super) fn height_of(row_key: &[u8]) -> Option<Height> {
    Some(!u64::from_be_bytes(array(row_key, HEIGHT_AT)?))
}

/// Chain, then address: the key of wallets and of tokens. A chain has one family, so the bytes of
/// the address are enough.
pub(super) fn address_key(chain: ChainId, address: &Address) -> Vec<u8> {
    [&chain.0.to_be_bytes(), address.bytes()].concat()
}

/// Wallet, then account: the key of a source account.
pub(super) fn account_key(id: WalletId, account: &[u8; 32]) -> [u8; 36] {
    let mut key = [0; 36];
    for (to, from) in key.iter_mut().zip(id.0.to_be_bytes().iter().chain(account)) {
        *to = *from;
    }
    key
}

pub(super) fn accounts_of(id: WalletId) -> RangeInclusive<[u8; 36]> {
    account_key(id, &[0; 32])..=account_key(id, &[0xFF; 32])
}

/// Chain, then time of the last look-up (0 for never), then number of the token.
pub(super) fn wanted_key(chain: ChainId, asked_ms: u64, token: u32) -> [u8; 14] {
    let mut key = [0; 14];
    let parts = chain.0.to_be_bytes().into_iter().chain(asked_ms.to_be_bytes());
    for (to, from) in key.iter_mut().zip(parts.chain(token.to_be_bytes())) {
        *to = from;
    }
    key
}

/// The number that ends a [`wanted_key`].
pub(super) fn token_of_wanted(key: &[u8; 14]) -> Option<u32> {
    Some(u32::from_be_bytes(array(key, 10)?))
}

/// The key without its leg: what the rows of one transaction share.
pub(super) fn transaction_of(row_key: &[u8]) -> &[u8] {
    row_key.get(..row_key.len().saturating_sub(LEG_BYTES)).unwrap_or(&[])
}

/// The id of the transaction, as it is stored.
pub(super) fn tx_of(row_key: &[u8]) -> &[u8] {
    transaction_of(row_key).get(TX_AT..).unwrap_or(&[])
}

/// Chain, then the part of a row key that the rows of a transaction share.
pub(super) fn wanted_value_key(chain: ChainId, row_key: &[u8]) -> Vec<u8> {
    [&chain.0.to_be_bytes(), transaction_of(row_key)].concat()
}

/// The prefix of all [`wanted_value_key`]s of a wallet.
pub(super) fn wanted_of_wallet(chain: ChainId, id: WalletId) -> Vec<u8> {
    [chain.0.to_be_bytes().as_slice(), &id.0.to_be_bytes()].concat()
}

/// The wallet of a [`wanted_value_key`], and bounds around the rows of its transaction.
pub(super) fn rows_of_wanted(key: &[u8]) -> Option<(WalletId, RowBounds)> {
    let shared = key.get(CHAIN_BYTES..)?;
    let mut start = RowKey::EMPTY;
    start.push(shared);
    let mut end = start;
    end.push(&[0xFF; LEG_BYTES + 1]);
    Some((id_of(shared)?, (start, end)))
}

/// API key, then wallet.
pub(super) fn usage_key(key: KeyId, id: WalletId) -> (u64, u32) {
    (key.0, id.0)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> impl Strategy<Value = TradeKey> {
        // Small ranges, so that every field gets to decide an order.
        let edge = |max: u64| prop_oneof![0..3_u64, Just(255), Just(256), Just(max)];
        (
            edge(u64::from(u32::MAX)),
            edge(u64::MAX),
            edge(u64::from(u32::MAX)),
            prop_oneof![Just(0_u8), Just(1), Just(255)],
            edge(u64::from(u16::MAX)),
        )
            .prop_map(|(time, height, index, tx, leg)| TradeKey {
                time: UnixSeconds(u32::try_from(time).unwrap()),
                height,
                index: u32::try_from(index).unwrap(),
                tx: TxId::solana(&[tx; 64]),
                leg: u16::try_from(leg).unwrap(),
            })
    }

    proptest! {
        #[test]
        fn byte_order_is_the_order_of_delivery(a in keys(), b in keys()) {
            let id = WalletId(7);
            let (left, right) = (RowKey::new(id, &a), RowKey::new(id, &b));
            prop_assert_eq!(left.bytes().cmp(right.bytes()), a.cmp(&b));
        }

        #[test]
        fn a_key_is_decoded_as_it_was_encoded(key in keys(), id in any::<u32>()) {
            let row = RowKey::new(WalletId(id), &key);
            prop_assert_eq!(read_row_key(row.bytes(), Family::Solana), Some(key));
            prop_assert_eq!(read_row_key(row.bytes(), Family::Evm), None);
            let short = TradeKey { tx: TxId::Tron([9; 32]), ..key };
            let row = RowKey::new(WalletId(id), &short);
            prop_assert_eq!(read_row_key(row.bytes(), Family::Tron), Some(short));
        }

        #[test]
        fn bounds_hold_a_wallet_and_nothing_else(key in keys(), id in any::<u32>()) {
            let row = RowKey::new(WalletId(id), &key);
            prop_assert!(RowKey::start(WalletId(id)).bytes() < row.bytes());
            prop_assert!(row.bytes() < RowKey::end(WalletId(id)).bytes());
            prop_assert!(RowKey::at(WalletId(id), key.time, key.height).bytes() < row.bytes());
            if let Some(next) = id.checked_add(1) {
                prop_assert!(RowKey::end(WalletId(id)).bytes() < RowKey::start(WalletId(next)).bytes());
            }
            if let Some(lower) = key.height.checked_sub(1) {
                prop_assert!(row.bytes() < RowKey::at(WalletId(id), key.time, lower).bytes());
            }
        }
    }

    #[test]
    fn the_layout_is_what_the_file_holds() {
        let key = TradeKey {
            time: UnixSeconds(0x0102_0304),
            height: 5,
            index: 6,
            tx: TxId::Evm([0xAB; 32]),
            leg: 7,
        };
        let mut expected = vec![0, 0, 0, 9, 0xFE, 0xFD, 0xFC, 0xFB];
        expected.extend([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFA, 0xFF, 0xFF, 0xFF, 0xF9]);
        expected.extend([0xAB; 32]);
        expected.extend([0, 7]);
        assert_eq!(RowKey::new(WalletId(9), &key).bytes(), expected);
    }
}
