//! A Solana signature, stored as base58 digits, because it is written far more often than parsed.

use std::fmt;

use super::base58::{LIMB, digit, limb_text};

/// Five digits each, 90 in all: 58^90 is more than 2^512.
const LIMBS: usize = 18;
const DIGITS: usize = LIMBS * 5;
/// Signatures from here on have no leading zero byte, so that their text is the digits of the
/// number and nothing else.
const FIRST_FULL: [u8; Signature::STORED_BYTES] = power_of_256(63);
/// The largest signature plus one.
const END: [u8; Signature::STORED_BYTES] = power_of_256(64);

/// 64 bytes, as 18 limbs of five base58 digits, most significant first and each big-endian: their
/// order is the order of the bytes. They keep the stored form, so that reading a row converts
/// nothing.
/// Converting bytes to digits is one division of the whole number per digit (about 200 ns with the
/// best tables); writing digits is one look-up for every two (`benches/encode.rs`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature {
    stored: [u8; Signature::STORED_BYTES],
}

impl Signature {
    pub const STORED_BYTES: usize = LIMBS * 4;

    pub fn from_bytes(bytes: &[u8; 64]) -> Self {
        let mut limbs = [0; LIMBS];
        for (at, word) in bytes.as_chunks().0.iter().enumerate() {
            let mut carry = u64::from(u32::from_be_bytes(*word));
            // So many words, 32 bits each, fit in two limbs more, 29.2 bits each.
            for limb in limbs.iter_mut().rev().take(at + 3) {
                let value = (u64::from(*limb) << 32) + carry;
                *limb = low(value % LIMB);
                carry = value / LIMB;
            }
        }
        Self::of(limbs)
    }

    fn of(limbs: [u32; LIMBS]) -> Self {
        let mut stored = [0; Self::STORED_BYTES];
        for (to, limb) in stored.as_chunks_mut().0.iter_mut().zip(limbs) {
            *to = limb.to_be_bytes();
        }
        Self { stored }
    }

    fn limbs(&self) -> impl Iterator<Item = u32> {
        self.stored.as_chunks().0.iter().map(|limb| u32::from_be_bytes(*limb))
    }

    pub fn to_bytes(self) -> [u8; 64] {
        // Least significant word first.
        let mut words = [0_u32; 16];
        for (at, limb) in self.limbs().enumerate() {
            let mut carry = u64::from(limb);
            // So many limbs fit in as many words.
            for word in words.iter_mut().take(at + 1) {
                let value = u64::from(*word) * LIMB + carry;
                *word = low(value & u64::from(u32::MAX));
                carry = value >> 32;
            }
        }
        let mut bytes = [0; 64];
        for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words.iter().rev()) {
            *to = word.to_be_bytes();
        }
        bytes
    }

    /// Reads base58 of exactly 64 bytes.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let signature = Self::of(read_digits(text)?);
        if signature.is_full() && signature.stored < END {
            return (!text.starts_with(b"1")).then_some(signature);
        }
        let mut bytes = [0; 64];
        five8::decode_64(text, &mut bytes).ok()?;
        Some(Self::from_bytes(&bytes))
    }

    /// Byte order is the order of signatures.
    pub fn to_stored(self) -> [u8; Self::STORED_BYTES] {
        self.stored
    }

    /// `None` for bytes that [`Self::to_stored`] does not write.
    #[inline]
    pub fn from_stored(stored: &[u8; Self::STORED_BYTES]) -> Option<Self> {
        let signature = Self { stored: *stored };
        let fit = signature.limbs().fold(true, |fit, limb| fit & (u64::from(limb) < LIMB));
        (fit && signature < Self { stored: END }).then_some(signature)
    }

    /// Appends the base58 text.
    pub fn push_text(&self, out: &mut Vec<u8>) {
        if !self.is_full() {
            // One signature in 256 begins with zeros, which base58 writes one by one.
            let mut text = [0; 88];
            let len = usize::from(five8::encode_64(&self.to_bytes(), &mut text));
            out.extend_from_slice(text.get(..len).unwrap_or(&text));
            return;
        }
        let text = self.digits();
        let text = text.get(..DIGITS).unwrap_or(&text);
        let zeros = text.iter().take_while(|digit| **digit == b'1').count();
        out.extend_from_slice(text.get(zeros..).unwrap_or_default());
    }

    /// The digits, with padding behind those of the last limb.
    fn digits(&self) -> [u8; DIGITS + 3] {
        let mut text = [0; DIGITS + 3];
        for (at, limb) in self.limbs().enumerate() {
            if let Some(to) = text.get_mut(at * 5..at * 5 + 8) {
                to.copy_from_slice(&limb_text(limb));
            }
        }
        text
    }

    /// Whether the first byte is not zero.
    fn is_full(&self) -> bool {
        FIRST_FULL <= self.stored
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(DIGITS);
        self.push_text(&mut text);
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({self})")
    }
}

/// The number that a text encodes, without regard to leading zeros.
fn read_digits(text: &[u8]) -> Option<[u32; LIMBS]> {
    let mut limbs = [0_u32; LIMBS];
    for (limb, digits) in limbs.iter_mut().rev().zip(text.rchunks(5)) {
        for character in digits {
            *limb = *limb * 58 + digit(*character)?;
        }
    }
    (text.len() <= DIGITS).then_some(limbs)
}

/// The callers have taken the rest of a division by less than 2^32.
fn low(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[expect(clippy::indexing_slicing, clippy::as_conversions, reason = "runs at build time")]
const fn power_of_256(exponent: u32) -> [u8; Signature::STORED_BYTES] {
    let mut limbs = [0; LIMBS];
    limbs[LIMBS - 1] = 1;
    let mut times = 0;
    while times < exponent {
        let mut carry = 0;
        let mut at = LIMBS;
        while at > 0 {
            at -= 1;
            let value = limbs[at] as u64 * 256 + carry;
            limbs[at] = (value % LIMB) as u32;
            carry = value / LIMB;
        }
        times += 1;
    }
    let mut stored = [0; Signature::STORED_BYTES];
    let mut at = 0;
    while at < stored.len() {
        stored[at] = limbs[at / 4].to_be_bytes()[at % 4];
        at += 1;
    }
    stored
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes with any number of zeros at the beginning, and any of the largest ones.
    fn bytes() -> impl Strategy<Value = [u8; 64]> {
        let random = proptest::collection::vec(any::<u8>(), 64);
        (random, 0_usize..=64, prop_oneof![Just(0_u8), Just(255)]).prop_map(
            |(random, same, filler)| {
                let mut bytes = [filler; 64];
                let from = if filler == 0 || same > 60 { same } else { same / 8 };
                bytes[from..].copy_from_slice(&random[from..]);
                bytes
            },
        )
    }

    proptest! {
        #[test]
        fn is_written_and_read_as_the_slow_coder_does(bytes in bytes()) {
            let signature = Signature::from_bytes(&bytes);
            let text = bs58::encode(bytes).into_string();
            prop_assert_eq!(signature.to_string(), text.as_str());
            prop_assert_eq!(signature.to_bytes(), bytes);
            prop_assert_eq!(Signature::parse(text.as_bytes()), Some(signature));
            prop_assert_eq!(Signature::from_stored(&signature.to_stored()), Some(signature));
        }

        #[test]
        fn order_is_that_of_the_bytes(a in bytes(), b in bytes()) {
            let (left, right) = (Signature::from_bytes(&a), Signature::from_bytes(&b));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left.to_stored().cmp(&right.to_stored()), a.cmp(&b));
        }

        #[test]
        fn a_text_is_a_signature_where_the_slow_coder_finds_64_bytes(
            text in "[1-9A-HJ-NP-Za-km-z]{62,92}|1{0,70}[1-9A-HJ-NP-Za-km-z]{0,90}|[ -~]{80,90}",
        ) {
            let slow = bs58::decode(&text).into_vec().ok().and_then(|bytes| bytes.try_into().ok());
            let slow = slow.map(|bytes: [u8; 64]| Signature::from_bytes(&bytes));
            prop_assert_eq!(Signature::parse(text.as_bytes()), slow);
        }

        #[test]
        fn stored_bytes_are_taken_only_as_they_are_written(stored in any::<[[u8; 4]; LIMBS]>(), small in any::<bool>()) {
            let mut stored: [u8; 72] = stored.as_flattened().try_into().unwrap();
            if small {
                stored.chunks_exact_mut(4).for_each(|limb| limb[0] &= 0x1F);
                stored[..4].copy_from_slice(&[0; 4]);
            }
            if let Some(signature) = Signature::from_stored(&stored) {
                prop_assert_eq!(signature.to_stored(), stored);
                prop_assert_eq!(Signature::from_bytes(&signature.to_bytes()), signature);
            }
        }
    }

    #[test]
    fn the_edges_of_what_is_written_fast() {
        let mut full = [0; 64];
        full[0] = 1;
        let mut below = [255; 64];
        below[0] = 0;
        for bytes in [full, below, [0; 64], [255; 64]] {
            let signature = Signature::from_bytes(&bytes);
            let text = bs58::encode(bytes).into_string();
            assert_eq!(signature.to_string(), text);
            assert_eq!(Signature::parse(text.as_bytes()), Some(signature));
            assert_eq!(Signature::from_stored(&signature.to_stored()), Some(signature));
        }
        assert_eq!(Signature::from_bytes(&full).stored, FIRST_FULL);
        let mut end = Signature::from_bytes(&[255; 64]);
        end.stored[Signature::STORED_BYTES - 1] += 1;
        assert_eq!(end.stored, END);
        assert_eq!(Signature::from_stored(&end.to_stored()), None);
    }
}
