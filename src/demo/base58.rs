//! Encodes base58 of any length into a buffer: an answer contains kilobytes of it.

use crate::domain::base58::{LIMB, limb_text};

/// Limbs on the stack: enough for 64 bytes, which are 88 digits.
const SMALL: usize = 18;

pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    out.resize(out.len() + zeros, b'1');
    let (_, rest) = bytes.split_at(zeros);
    // 29.3 bits a limb: one limb more than words for every eleven of them.
    let need = rest.len() / 4 + rest.len() / 40 + 2;
    let mut small = [0_u64; SMALL];
    let mut large = Vec::new();
    let limbs = if need <= SMALL {
        &mut small[..]
    } else {
        large.resize(need, 0);
        large.as_mut_slice()
    };
    let used = fill(rest, limbs);
    write(limbs.get(..used).unwrap_or_default(), out);
}

/// Converts big-endian bytes to limbs, least significant first; returns the number of limbs.
fn fill(bytes: &[u8], limbs: &mut [u64]) -> usize {
    let (head, words) = bytes.split_at(bytes.len() % 4);
    let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let mut used = 0;
    for word in std::iter::once(word(head)).chain(words.chunks_exact(4).map(word)) {
        let mut carry = word;
        for limb in limbs.iter_mut().take(used) {
            carry += *limb << 32;
            *limb = carry % LIMB;
            carry /= LIMB;
        }
        while carry > 0 {
            if let Some(limb) = limbs.get_mut(used) {
                *limb = carry % LIMB;
            }
            used += 1;
            carry /= LIMB;
        }
    }
    used
}

fn write(limbs: &[u64], out: &mut Vec<u8>) {
    let start = out.len();
    for limb in limbs.iter().rev() {
        let [text @ .., _, _, _] = limb_text(u32::try_from(*limb).unwrap_or(0));
        out.extend_from_slice(&text);
    }
    // Only the first limb can begin with zeros.
    let written = out.get(start..).unwrap_or_default();
    let leading = written.iter().take_while(|digit| **digit == b'1').count();
    out.drain(start..start + leading);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn writes_what_the_slow_coder_writes(bytes in proptest::collection::vec(any::<u8>(), 0..300), zeros in 0_usize..4) {
            let mut data = vec![0; zeros];
            data.extend(bytes);
            let mut text = Vec::new();
            encode(&data, &mut text);
            prop_assert_eq!(String::from_utf8(text).unwrap(), bs58::encode(&data).into_string());
        }
    }

    #[test]
    fn writes_the_largest_of_every_length() {
        for length in 0..600 {
            let (data, mut text) = (vec![255; length], Vec::new());
            encode(&data, &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), bs58::encode(&data).into_string());
        }
    }
}
