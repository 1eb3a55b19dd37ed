//! Base58 of any length, five characters at a time: instruction data is read by the thousand.

/// Longest text that is read; the largest instruction data is about 1,700 characters.
const TEXT_LEN_MAX: usize = 16_384;
const INVALID: u8 = u8::MAX;

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const DIGITS: [u8; 256] = digits();

#[expect(
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a table made at build time"
)]
const fn digits() -> [u8; 256] {
    let mut table = [INVALID; 256];
    let mut at = 0;
    while at < ALPHABET.len() {
        table[ALPHABET[at] as usize] = at as u8;
        at += 1;
    }
    table
}

/// An address that is known when the program is built.
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

/// The bytes that the text stands for; `None` where it is no base58 or too long.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > TEXT_LEN_MAX {
        return None;
    }
    let zeros = text.iter().take_while(|byte| **byte == b'1').count();
    // Little-endian limbs of 32 bits.
    let mut limbs: Vec<u32> = Vec::with_capacity(text.len() / 5 + 2);
    for chunk in text.get(zeros..)?.chunks(5) {
        let (mut factor, mut carry) = (1_u64, 0_u64);
        for byte in chunk {
            let digit = DIGITS.get(usize::from(*byte)).copied().filter(|d| *d != INVALID)?;
            carry = carry * 58 + u64::from(digit);
            factor *= 58;
        }
        for limb in &mut limbs {
            let sum = u64::from(*limb) * factor + carry;
            *limb = low(sum);
            carry = sum >> 32;
        }
        if carry > 0 {
            limbs.push(low(carry));
        }
    }
    let mut bytes = vec![0; zeros];
    let mut leading = true;
    for byte in limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()) {
        leading &= byte == 0;
        if !leading {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "the lower 32 bits")]
fn low(sum: u64) -> u32 {
    sum as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn reads_what_another_library_wrote(bytes in proptest::collection::vec(any::<u8>(), 0..600), zeros in 0_usize..4) {
            let mut bytes = bytes;
            bytes.splice(0..0, vec![0; zeros]);
            let text = bs58::encode(&bytes).into_string();
            prop_assert_eq!(decode(text.as_bytes()), Some(bytes));
        }

        #[test]
        fn refuses_other_text(text in "[1-9A-Za-z]{0,20}[0OIl+/ ][1-9A-Za-z]{0,20}") {
            prop_assert_eq!(decode(text.as_bytes()), None);
        }
    }
}
