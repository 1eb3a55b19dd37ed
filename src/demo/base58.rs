//! Base58 of any length, appended to a buffer. Account keys and signatures have their own coder
//! (`five8`); this one is for instruction data, of which an answer holds kilobytes.

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/// Five digits a limb: a limb times 2^32 plus a carry still fits 64 bits.
const LIMB: u64 = 58 * 58 * 58 * 58 * 58;
const LIMB_DIGITS: usize = 5;

pub(super) fn encode_32(bytes: &[u8; 32], out: &mut Vec<u8>) {
    let mut text = [0; 44];
    let len = five8::encode_32(bytes, &mut text);
    out.extend_from_slice(text.get(..usize::from(len)).unwrap_or_default());
}

pub(super) fn encode_64(bytes: &[u8; 64], out: &mut Vec<u8>) {
    let mut text = [0; 88];
    let len = five8::encode_64(bytes, &mut text);
    out.extend_from_slice(text.get(..usize::from(len)).unwrap_or_default());
}

pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    out.resize(out.len() + zeros, b'1');
    let (_, rest) = bytes.split_at(zeros);
    // Least significant limb first; room for 11 bits of digits a byte pair.
    let mut limbs: Vec<u64> = Vec::with_capacity(rest.len() / 3 + 2);
    let (head, words) = rest.split_at(rest.len() % 4);
    if !head.is_empty() {
        limbs.push(head.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    }
    for word in words.chunks_exact(4) {
        let mut carry = word.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        for limb in &mut limbs {
            carry += *limb << 32;
            *limb = carry % LIMB;
            carry /= LIMB;
        }
        while carry > 0 {
            limbs.push(carry % LIMB);
            carry /= LIMB;
        }
    }
    let mut leading = true;
    for limb in limbs.iter().rev() {
        let mut digits = [0_u8; LIMB_DIGITS];
        let mut left = *limb;
        for digit in digits.iter_mut().rev() {
            *digit = u8::try_from(left % 58).unwrap_or(0);
            left /= 58;
        }
        for digit in digits {
            leading &= digit == 0;
            if !leading {
                out.push(ALPHABET.get(usize::from(digit)).copied().unwrap_or(b'1'));
            }
        }
    }
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
}
