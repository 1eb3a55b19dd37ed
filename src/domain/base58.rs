//! Base58 digits in groups of five: the stored form of numbers that are written more often than
//! they are read.

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const PAIR: u32 = 58 * 58;
/// One more than the largest limb: five digits. A limb times 2^32 plus a carry fits 64 bits.
pub const LIMB: u64 = 58 * 58 * 58 * 58 * 58;
/// Marks characters in [`DIGITS`] that are not digits.
pub const INVALID: u8 = u8::MAX;

/// Two characters each, the first in the lower byte. The length is a power of two, so that an index
/// can be masked instead of checked.
static PAIRS: [u16; 4096] = pairs();
/// The value of each character.
pub const DIGITS: [u8; 256] = digits();

#[expect(clippy::indexing_slicing, reason = "a table made at build time")]
const fn pairs() -> [u16; 4096] {
    let mut pairs = [0; 4096];
    let mut at = 0;
    while at < 58 * 58 {
        pairs[at] = u16::from_le_bytes([ALPHABET[at / 58], ALPHABET[at % 58]]);
        at += 1;
    }
    pairs
}

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

/// The five characters of a limb and three bytes of padding: writing a whole word costs no more
/// than writing a byte, and the next limb overwrites the padding.
pub fn limb_text(limb: u32) -> [u8; 8] {
    let pair = |value: u32| {
        let at = usize::try_from(value).unwrap_or(0) % PAIRS.len();
        u64::from(PAIRS.get(at).copied().unwrap_or_default())
    };
    let high = limb / PAIR;
    let (first, middle, last) = (pair(high / PAIR), pair(high % PAIR), pair(limb % PAIR));
    (first >> 8 | middle << 8 | last << 24).to_le_bytes()
}

pub(super) fn digit(character: u8) -> Option<u32> {
    let digit = DIGITS.get(usize::from(character)).copied().unwrap_or(INVALID);
    (digit != INVALID).then_some(u32::from(digit))
}
