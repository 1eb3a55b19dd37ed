//! The door for `tests/fuzz` to stored values and keys. Only a build for fuzzing has it.

use std::fmt::Debug;

use super::codec::{
    decode_account, decode_anchors, decode_candle, decode_learned, decode_pending, decode_ranges,
    decode_state, decode_token, decode_wallet, encode_account, encode_anchors, encode_candle,
    encode_learned, encode_pending, encode_ranges, encode_state, encode_token, encode_wallet,
};
use super::key::{RowKey, read_row_key, rows_of_wanted};
use super::trade_codec::{decode_trade, encode_trade, is_derived_or_pending};
use super::{StoreError, WalletId};
use crate::domain::Family;

const TABLE: &str = "fuzzed";
/// Kinds of values, and keys of rows.
pub const KINDS: u8 = 11;

/// Reads a value; what is taken is written and read again as the same.
pub fn value(kind: u8, bytes: &[u8]) {
    match kind % KINDS {
        0 => same(bytes, |bytes| decode_wallet(TABLE, bytes), encode_wallet),
        1 => same(bytes, |bytes| decode_state(TABLE, bytes), encode_state),
        2 => same(bytes, |bytes| decode_anchors(TABLE, bytes), |all| encode_anchors(all)),
        3 => same(bytes, |bytes| decode_pending(TABLE, bytes), encode_pending),
        4 => same(bytes, |bytes| decode_account(TABLE, [7; 32], bytes), encode_account),
        5 => same(bytes, |bytes| decode_token(TABLE, bytes), encode_token),
        6 => {
            is_derived_or_pending(bytes);
            let encode = |trade: &_| {
                let mut into = Vec::new();
                encode_trade(trade, &mut into);
                Ok(into)
            };
            same(bytes, |bytes| decode_trade(TABLE, bytes), encode);
        }
        7 => same(bytes, |bytes| decode_learned(TABLE, bytes), |all| encode_learned(all)),
        8 => same(bytes, |bytes| decode_candle(TABLE, bytes), |price| encode_candle(*price)),
        9 => {
            let decode = |bytes: &[u8]| decode_ranges(TABLE, Family::Evm, bytes);
            same(bytes, decode, |ranges| encode_ranges(WalletId(1), ranges));
        }
        _ => key(bytes),
    }
}

fn same<T: Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, StoreError>,
    encode: impl Fn(&T) -> Result<Vec<u8>, StoreError>,
) {
    let value = match decode(bytes) {
        Ok(value) => value,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let again = encode(&value).and_then(|bytes| decode(&bytes));
    assert_eq!(format!("{:?}", Ok::<_, StoreError>(value)), format!("{again:?}"));
}

/// Bytes that decode to a key encode to the same bytes, and sort between the bounds of the wallet.
fn key(bytes: &[u8]) {
    let _ = rows_of_wanted(bytes);
    for family in [Family::Solana, Family::Evm, Family::Tron] {
        let Some((id, _)) = bytes.split_first_chunk() else { continue };
        let Some(read) = read_row_key(bytes, family) else { continue };
        let id = WalletId(u32::from_be_bytes(*id));
        let written = RowKey::new(id, &read);
        assert_eq!(read_row_key(written.bytes(), family), Some(read));
        // Keys of the first format are written as those of the second.
        assert!(written.bytes() == bytes || written.bytes().len() > bytes.len());
        assert!(RowKey::start(id).bytes() < bytes && bytes < RowKey::end(id).bytes());
    }
}
