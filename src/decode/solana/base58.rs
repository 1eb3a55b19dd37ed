//! Decodes base58 ten characters at a time: a block has thousands of base58 strings.

use crate::domain::base58::{DIGITS, INVALID};

/// Longest text that is decoded; the largest instruction data is about 1,700 characters.
const TEXT_LEN_MAX: usize = 16_384;

/// An address, decoded at compile time.
#[expect(
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "runs at build time, where a wrong text stops the build"
)]
pub(super) const fn address(text: &str) -> [u8; 32] {
    let (text, mut bytes) = (text.as_bytes(), [0_u8; 32]);
    let mut at = 0;
    while at < text.len() {
        let mut carry = DIGITS[text[at] as usize] as u32;
        assert!(carry < 58, "a character that is not base58");
        let mut place = 32;
        while place > 0 {
            place -= 1;
            carry += bytes[place] as u32 * 58;
            bytes[place] = carry as u8;
            carry >>= 8;
        }
        assert!(carry == 0, "more than 32 bytes");
        at += 1;
    }
    bytes
}

/// Characters per step: 58^10 is less than 2^64.
const CHUNK: usize = 10;
const CHUNK_FACTOR: u64 = 58_u64.pow(10);
/// Every digit is below it; [`INVALID`] is not.
const DIGIT_BOUND: u8 = 64;

/// The 32 bytes of an address; `None` where the text is not one.
pub(super) fn decode_address(text: &[u8]) -> Option<[u8; 32]> {
    let (head, chunks) = text.as_rchunks::<CHUNK>();
    // Little-endian.
    let mut limbs = [value(head)?, 0, 0, 0];
    for chunk in chunks {
        if multiply_add(&mut limbs, value(chunk)?) != 0 {
            return None;
        }
    }
    let mut bytes = [0; 32];
    for (place, limb) in bytes.as_chunks_mut().0.iter_mut().zip(limbs.iter().rev()) {
        *place = limb.to_be_bytes();
    }
    let ones = text.iter().take_while(|byte| **byte == b'1').count();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    (ones == zeros).then_some(bytes)
}

/// Decodes texts one after another into one buffer.
#[derive(Debug)]
pub(super) struct Decoder {
    /// Little-endian.
    limbs: Vec<u64>,
    bytes: Vec<u8>,
}

impl Decoder {
    /// With capacity for nearly all instructions.
    pub(super) fn new() -> Self {
        Self { limbs: Vec::with_capacity(16), bytes: Vec::with_capacity(128) }
    }

    /// The bytes of a text; `None` where it is not base58 or too long.
    pub(super) fn decode(&mut self, text: &[u8]) -> Option<&[u8]> {
        if text.len() > TEXT_LEN_MAX {
            return None;
        }
        let zeros = text.iter().take_while(|byte| **byte == b'1').count();
        let (head, chunks) = text.get(zeros..)?.as_rchunks::<CHUNK>();
        self.limbs.clear();
        self.limbs.push(value(head)?);
        for chunk in chunks {
            let carry = multiply_add(&mut self.limbs, value(chunk)?);
            if carry > 0 {
                self.limbs.push(carry);
            }
        }
        self.bytes.clear();
        self.bytes.resize(zeros, 0);
        let mut limbs = self.limbs.iter().rev().skip_while(|limb| **limb == 0);
        if let Some(highest) = limbs.next() {
            let bytes = highest.to_be_bytes();
            self.bytes.extend(bytes.iter().skip_while(|byte| **byte == 0));
        }
        for limb in limbs {
            self.bytes.extend_from_slice(&limb.to_be_bytes());
        }
        Some(&self.bytes)
    }
}

/// The value of at most [`CHUNK`] characters.
#[inline]
fn value(text: &[u8]) -> Option<u64> {
    let (mut number, mut all) = (0_u64, 0);
    for byte in text {
        let digit = DIGITS.get(usize::from(*byte)).copied().unwrap_or(INVALID);
        all |= digit;
        // Ten times the largest byte does not reach 2^64 either.
        number = number.wrapping_mul(58).wrapping_add(u64::from(digit));
    }
    (all < DIGIT_BOUND).then_some(number)
}

/// Appends one more chunk to the number; returns the carry.
#[inline]
fn multiply_add(limbs: &mut [u64], chunk: u64) -> u64 {
    let mut carry = chunk;
    for limb in limbs {
        // (2^64 - 1)^2 + 2^64 - 1 is less than 2^128.
        let product = u128::from(*limb) * u128::from(CHUNK_FACTOR);
        (*limb, carry) = halves(product.wrapping_add(u128::from(carry)));
    }
    carry
}

/// Lower and upper half.
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "halves of a number")]
#[inline]
fn halves(number: u128) -> (u64, u64) {
    (number as u64, (number >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(text: &str) -> Option<Vec<u8>> {
        Decoder::new().decode(text.as_bytes()).map(<[u8]>::to_vec)
    }

    #[test]
    fn empty_text_and_the_largest_address_decode() {
        assert_eq!(decode(""), Some(Vec::new()));
        assert_eq!(decode("11"), Some(vec![0, 0]));
        assert_eq!(decode_address(b""), None);
        assert_eq!(decode_address(&[b'1'; 32]), Some([0; 32]));
        assert_eq!(decode_address(&[b'1'; 33]), None);
        // 2^256 - 1 and its successor.
        assert_eq!(
            decode_address(b"JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFG"),
            Some([255; 32])
        );
        assert_eq!(decode_address(b"JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFH"), None);
    }

    proptest! {
        #[test]
        fn an_address_is_what_another_library_says(bytes in any::<[u8; 32]>(), zeros in 0_usize..33, text in "[1-9A-HJ-NP-Za-km-z]{0,60}", other in "[ -~]{43}") {
            let mut bytes = bytes;
            bytes[..zeros].fill(0);
            for text in [bs58::encode(bytes).into_string(), text, other] {
                let mut wanted = [0; 32];
                let wanted = five8::decode_32(&text, &mut wanted).ok().map(|()| wanted);
                prop_assert_eq!(decode_address(text.as_bytes()), wanted, "{}", text);
            }
        }

        #[test]
        fn reads_what_another_library_wrote(bytes in proptest::collection::vec(any::<u8>(), 0..600), zeros in 0_usize..4) {
            let mut bytes = bytes;
            bytes.splice(0..0, vec![0; zeros]);
            let text = bs58::encode(&bytes).into_string();
            prop_assert_eq!(decode(&text), Some(bytes));
        }

        #[test]
        fn refuses_other_text(text in "[1-9A-Za-z]{0,20}[0OIl+/ ][1-9A-Za-z]{0,20}") {
            prop_assert_eq!(decode(&text), None);
        }
    }
}
