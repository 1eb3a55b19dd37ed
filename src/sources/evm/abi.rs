//! Pure: the few ABI encodings that token metadata needs (Solidity documentation, "Contract ABI
//! Specification"; Multicall3's `aggregate3`, mds1/multicall3). Offsets and lengths in answers are
//! checked against the length of the answer.

use std::sync::Arc;

use crate::decode::evm::Account;
use crate::domain::Units;
use crate::sources::symbol;

/// `symbol()`.
pub(crate) const SYMBOL: [u8; 4] = [0x95, 0xd8, 0x9b, 0x41];
/// `name()`.
pub(super) const NAME: [u8; 4] = [0x06, 0xfd, 0xde, 0x03];
/// `decimals()`.
pub(crate) const DECIMALS: [u8; 4] = [0x31, 0x3c, 0xe5, 0x67];
/// `token0()` and `token1()` (Uniswap/v2-core, v3-core).
pub(crate) const TOKENS: [[u8; 4]; 2] = [[0x0d, 0xfe, 0x16, 0x81], [0xd2, 0x12, 0x20, 0xa7]];
/// `aggregate3((address,bool,bytes)[])`.
const AGGREGATE3: [u8; 4] = [0x82, 0xad, 0x56, 0xcb];
const WORD: usize = 32;

fn push(word: usize, to: &mut Vec<u8>) {
    to.extend(Units::from(word).to_be_bytes::<WORD>());
}

/// Encodes calls without arguments, each of which may fail.
pub(super) fn aggregate3(calls: &[(Account, [u8; 4])]) -> Vec<u8> {
    /// Target, may fail, offset of the data, its length, the data.
    const ENTRY: usize = 5 * WORD;
    let mut data = AGGREGATE3.to_vec();
    push(WORD, &mut data);
    push(calls.len(), &mut data);
    for at in 0..calls.len() {
        push(calls.len() * WORD + at * ENTRY, &mut data);
    }
    for (target, selector) in calls {
        data.extend([0; WORD - 20]);
        data.extend(target);
        push(1, &mut data);
        push(3 * WORD, &mut data);
        push(selector.len(), &mut data);
        data.extend(selector);
        data.extend([0; WORD - 4]);
    }
    data
}

/// Decodes the results of `count` calls; `None` inside for a call that failed.
pub(super) fn results(data: &[u8], count: usize) -> Option<Vec<Option<&[u8]>>> {
    let list = tail(data, 0)?;
    if length(list, 0)? != count {
        return None;
    }
    let entries = list.get(WORD..)?;
    (0..count)
        .map(|at| {
            let entry = tail(entries, at * WORD)?;
            let succeeded = !number(entry, 0)?.is_zero();
            let given = bytes(tail(entry, WORD)?)?;
            Some(succeeded.then_some(given))
        })
        .collect()
}

/// Decodes a `uint8`, of any integer type that the contract declares.
pub(crate) fn decimals(data: &[u8]) -> Option<u8> {
    number(data, 0)?.try_into().ok()
}

/// Decodes a string, or the 32 bytes that tokens older than the standard return.
pub(crate) fn symbol(data: &[u8]) -> Option<Arc<str>> {
    let text = tail(data, 0).and_then(bytes);
    let fixed = || data.get(..WORD).filter(|_| data.len() == WORD);
    symbol::symbol(text.or_else(fixed)?)
}

fn number(data: &[u8], at: usize) -> Option<Units> {
    data.get(at..)?.first_chunk::<WORD>().map(|word| Units::from_be_bytes(*word))
}

fn length(data: &[u8], at: usize) -> Option<usize> {
    number(data, at)?.try_into().ok()
}

/// The bytes from the offset stored at `at`.
fn tail(data: &[u8], at: usize) -> Option<&[u8]> {
    data.get(length(data, at)?..)
}

/// A length followed by that many bytes.
fn bytes(data: &[u8]) -> Option<&[u8]> {
    data.get(WORD..)?.get(..length(data, 0)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn word(value: usize) -> Vec<u8> {
        let mut word = Vec::new();
        push(value, &mut word);
        word
    }

    fn text(text: &[u8]) -> Vec<u8> {
        let mut data = [word(32), word(text.len()), text.to_vec()].concat();
        data.resize(data.len().next_multiple_of(32), 0);
        data
    }

    #[test]
    fn asks_as_the_contract_expects() {
        // By hand from the ABI specification: one call of `decimals()` on 0x11…11.
        let expected = [
            "82ad56cb",
            "0000000000000000000000000000000000000000000000000000000000000020",
            "0000000000000000000000000000000000000000000000000000000000000001",
            "0000000000000000000000000000000000000000000000000000000000000020",
            "0000000000000000000000001111111111111111111111111111111111111111",
            "0000000000000000000000000000000000000000000000000000000000000001",
            "0000000000000000000000000000000000000000000000000000000000000060",
            "0000000000000000000000000000000000000000000000000000000000000004",
            "313ce56700000000000000000000000000000000000000000000000000000000",
        ];
        assert_eq!(hex::encode(aggregate3(&[([0x11; 20], DECIMALS)])), expected.concat());
    }

    #[test]
    fn reads_what_each_call_gave() {
        let entry = |ok: usize, given: &[u8]| {
            let mut entry = [word(ok), word(64), word(given.len()), given.to_vec()].concat();
            entry.resize(entry.len().next_multiple_of(32), 0);
            entry
        };
        let (first, second) = (entry(1, b"abc"), entry(0, b"why"));
        let heads = [word(64), word(64 + first.len())].concat();
        let data = [word(32), word(2), heads, first, second].concat();
        assert_eq!(results(&data, 2), Some(vec![Some(b"abc".as_slice()), None]));
        assert_eq!(results(&data, 3), None);
        for cut in 0..data.len() - 32 {
            assert_eq!(results(&data[..cut], 2), None, "{cut}");
        }
    }

    #[test]
    fn a_symbol_is_a_string_or_32_bytes() {
        assert_eq!(symbol(&text(b"USDC")).as_deref(), Some("USDC"));
        assert_eq!(symbol(&text("US\u{7}DC\n ₮".as_bytes())).as_deref(), Some("USDC ₮"));
        let mut fixed = b"MKR".to_vec();
        fixed.resize(32, 0);
        assert_eq!(symbol(&fixed).as_deref(), Some("MKR"));
        assert_eq!(symbol(&text(&[b'x'; 500])).map(|text| text.len()), Some(32));
        let wild = [word(32), word(255 << 24)].concat();
        let rest = [vec![0; 32], vec![0; 31], vec![255; 96], wild];
        for nothing in [vec![], text(b""), text(b"\0\0")].into_iter().chain(rest) {
            assert_eq!(symbol(&nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn decimals_are_a_byte() {
        assert_eq!(decimals(&word(18)), Some(18));
        assert_eq!(decimals(&word(255)), Some(255));
        assert_eq!(decimals(&word(256)), None);
        assert_eq!(decimals(&[0xff; 32]), None);
        assert_eq!((decimals(&[]), decimals(&[0; 8])), (None, None));
    }

    proptest! {
        #[test]
        fn any_input_is_read_or_refused(
            data in proptest::collection::vec(any::<u8>(), 0..300), count in 0_usize..9,
            small in proptest::collection::vec(0_usize..200, 0..12),
        ) {
            let words: Vec<u8> = small.into_iter().flat_map(word).collect();
            for data in [data, words] {
                let _ = (results(&data, count), decimals(&data));
                prop_assert!(symbol(&data).is_none_or(|text| text.chars().count() <= 32));
            }
        }
    }
}
