//! Just enough of the contract ABI to ask many tokens for their names at once, and to read what they
//! say. Whatever is told, nothing beyond the answer's own bytes is read.

use std::sync::Arc;

use crate::decode::evm::Account;

/// Bytes of a word.
const WORD: usize = 32;
/// Characters of a symbol that are kept.
const SYMBOL_CHARS_MAX: usize = 32;
/// `aggregate3((address,bool,bytes)[])` of Multicall3.
const AGGREGATE3: [u8; 4] = [0x82, 0xad, 0x56, 0xcb];
/// `symbol()` and `decimals()` of ERC-20.
pub(super) const SYMBOL: [u8; 4] = [0x95, 0xd8, 0x9b, 0x41];
pub(super) const DECIMALS: [u8; 4] = [0x31, 0x3c, 0xe5, 0x67];

/// Calls that may fail each by itself, as one.
pub(super) fn aggregate3(calls: &[(Account, [u8; 4])]) -> Vec<u8> {
    let mut out = AGGREGATE3.to_vec();
    number(&mut out, WORD);
    number(&mut out, calls.len());
    // Target, whether it may fail, where its data is; length and data.
    let size = 5 * WORD;
    for at in 0..calls.len() {
        number(&mut out, calls.len() * WORD + at * size);
    }
    for (target, selector) in calls {
        out.extend([0; 12]);
        out.extend(target);
        number(&mut out, 1);
        number(&mut out, 3 * WORD);
        number(&mut out, selector.len());
        out.extend(selector);
        out.extend([0; 28]);
    }
    out
}

fn number(out: &mut Vec<u8>, value: usize) {
    let mut word = [0; WORD];
    let bytes = u64::try_from(value).unwrap_or(u64::MAX).to_be_bytes();
    if let Some(end) = word.last_chunk_mut::<8>() {
        *end = bytes;
    }
    out.extend(word);
}

/// What each of `count` calls returned; `None` for one that failed. `None` where it is no such list.
pub(super) fn results(data: &[u8], count: usize) -> Option<Vec<Option<&[u8]>>> {
    let list = data.get(read(data, 0)?..)?;
    if read(list, 0)? != count {
        return None;
    }
    let heads = list.get(WORD..)?;
    (0..count)
        .map(|at| {
            let entry = heads.get(read(heads, at * WORD)?..)?;
            let good = read(entry, 0)? == 1;
            let bytes = entry.get(read(entry, WORD)?..)?;
            let length = read(bytes, 0)?;
            let returned = bytes.get(WORD..)?.get(..length)?;
            Some(good.then_some(returned))
        })
        .collect()
}

/// A word that is a number of this machine.
fn read(data: &[u8], at: usize) -> Option<usize> {
    let word = data.get(at..at.checked_add(WORD)?)?;
    let (high, low) = word.split_last_chunk::<8>()?;
    if high.iter().any(|byte| *byte != 0) {
        return None;
    }
    usize::try_from(u64::from_be_bytes(*low)).ok()
}

/// `uint8`, or any larger number that is one.
pub(super) fn decimals(returned: &[u8]) -> Option<u8> {
    u8::try_from(read(returned, 0)?).ok()
}

/// Text, or the 32 bytes in which tokens of old keep theirs.
pub(super) fn symbol(returned: &[u8]) -> Option<Arc<str>> {
    let text = if returned.len() == WORD {
        returned
    } else {
        let text = returned.get(read(returned, 0)?..)?;
        let length = read(text, 0)?;
        text.get(WORD..)?.get(..length)?
    };
    clean(text)
}

fn clean(text: &[u8]) -> Option<Arc<str>> {
    let clean: String = String::from_utf8_lossy(text)
        .chars()
        .filter(|c| !c.is_control() && *c != char::REPLACEMENT_CHARACTER)
        .take(SYMBOL_CHARS_MAX)
        .collect();
    let clean = clean.trim();
    (!clean.is_empty()).then(|| clean.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<u8> {
        hex::decode(text.split_whitespace().collect::<String>()).unwrap()
    }

    fn word(value: u64) -> String {
        format!("{value:064x}")
    }

    /// By hand, after the ABI specification.
    #[test]
    fn many_calls_are_one() {
        let data = aggregate3(&[([0xaa; 20], SYMBOL), ([0xbb; 20], DECIMALS)]);
        let expected = [
            "82ad56cb".to_owned(),
            word(0x20),
            word(2),
            word(0x40),
            word(0x40 + 0xa0),
            format!("{}{}", "0".repeat(24), "aa".repeat(20)),
            word(1),
            word(0x60),
            word(4),
            format!("95d89b41{}", "0".repeat(56)),
            format!("{}{}", "0".repeat(24), "bb".repeat(20)),
            word(1),
            word(0x60),
            word(4),
            format!("313ce567{}", "0".repeat(56)),
        ];
        assert_eq!(data, words(&expected.concat()));
    }

    #[test]
    fn each_result_is_read_by_itself() {
        let text = [
            word(0x20),
            word(2),
            word(0x40),
            word(0xc0),
            word(1),
            word(0x40),
            word(32),
            word(6),
            word(0),
            word(0x40),
            word(0),
        ];
        let data = words(&text.concat());
        // The first takes four words, so that the second begins at 0x40 + 0x80.
        let read = results(&data, 2).unwrap();
        assert_eq!(read, [Some(words(&word(6)).as_slice()), None]);
        assert_eq!(decimals(read[0].unwrap()), Some(6));
        assert_eq!(results(&data, 3), None);
    }

    #[test]
    fn symbols_of_both_forms() {
        let told = |text: &str| symbol(&words(text));
        let usdc = format!("{}{}{}{}", word(0x20), word(4), "55534443", "0".repeat(56));
        assert_eq!(told(&usdc).as_deref(), Some("USDC"));
        // Maker's token keeps 32 bytes.
        let mkr = format!("4d4b52{}", "0".repeat(58));
        assert_eq!(told(&mkr).as_deref(), Some("MKR"));
        assert_eq!(told(&format!("{}{}", word(0x20), word(0))), None);
        assert_eq!(told(&format!("{}{}", word(0x20), word(1 << 40))), None);
        assert_eq!(symbol(&[]), None);
    }

    #[test]
    fn absurd_decimals_are_none() {
        assert_eq!(decimals(&words(&word(18))), Some(18));
        assert_eq!(decimals(&words(&word(256))), None);
        assert_eq!(decimals(&[0xff; 32]), None);
        assert_eq!(decimals(&[]), None);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(data in proptest::collection::vec(any::<u8>(), 0..400), count in 0_usize..8) {
            let _ = (symbol(&data), decimals(&data), results(&data, count));
        }
    }
}
