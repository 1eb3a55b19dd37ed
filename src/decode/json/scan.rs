//! Searches bytes and parses digits a machine word at a time.

const WORD: usize = 8;
const BLOCK: usize = 32;

/// Index of the first byte that `hits` marks, eight bytes at a time: most strings are so short that
/// a call of `memchr` costs more.
#[inline]
pub(super) fn find(bytes: &[u8], hits: impl Fn(u64) -> u64) -> Option<usize> {
    let (words, tail) = bytes.as_chunks();
    let mut before = 0;
    for word in words {
        let found = hits(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(before + first(found));
        }
        before += WORD;
    }
    let mut word = [0; WORD];
    word.get_mut(..tail.len())?.copy_from_slice(tail);
    let found = hits(u64::from_le_bytes(word));
    (found != 0).then(|| before + first(found))
}

/// Index of the first byte that `hits` marks, if it is among the next sixteen.
#[inline]
pub(super) fn find_near(bytes: &[u8], hits: impl Fn(u64) -> u64) -> Option<usize> {
    let (word, behind) = bytes.split_first_chunk()?;
    let found = hits(u64::from_le_bytes(*word));
    if found != 0 {
        return Some(first(found));
    }
    let found = hits(u64::from_le_bytes(*behind.first_chunk()?));
    (found != 0).then(|| WORD + first(found))
}

/// Index of the first quote in a text that may be long, in blocks that fill wider registers.
#[inline]
pub(super) fn find_far(bytes: &[u8]) -> Option<usize> {
    let blocks = bytes.as_chunks().0.iter();
    let before = blocks.take_while(|block| !holds_quote(block)).count() * BLOCK;
    find(bytes.get(before..)?, quotes).map(|len| before + len)
}

/// Compares all bytes without a branch, so that the compiler emits one vector comparison.
#[inline]
fn holds_quote(block: &[u8; BLOCK]) -> bool {
    block.iter().fold(false, |any, byte| {
        let quote = *byte == b'"';
        any | quote
    })
}

/// Index of the byte that holds the first mark.
#[expect(clippy::as_conversions, reason = "at most eight")]
#[inline]
fn first(marks: u64) -> usize {
    (marks.trailing_zeros() / u8::BITS) as usize
}

#[inline]
pub(super) fn quotes(word: u64) -> u64 {
    zeros(word ^ u64::from_le_bytes([b'"'; WORD]))
}

/// Quotes and backslashes.
#[inline]
pub(super) fn stops(word: u64) -> u64 {
    quotes(word) | zeros(word ^ u64::from_le_bytes([b'\\'; WORD]))
}

/// Marks each zero byte with its highest bit; bytes above the first one may be marked too.
#[inline]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(u64::from_le_bytes([1; WORD])) & !word & HIGHEST
}

const HIGHEST: u64 = u64::from_le_bytes([0x80; WORD]);

/// The number of leading digits of a word, and their value.
#[inline]
pub(super) fn digits(word: u64) -> (usize, u64) {
    let values = word ^ u64::from_le_bytes([b'0'; WORD]);
    // Values above nine reach the highest bit; a carry affects only later bytes.
    let others = (values.wrapping_add(u64::from_le_bytes([0x76; WORD])) | values) & HIGHEST;
    let len = first(others);
    // Shifts zeros in front of the digits, which are in text order, lowest byte first.
    let values = if len == 0 { 0 } else { values << (64 - 8 * len) };
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    (len, fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_end_of_a_string_of_any_length() {
        for len in 0..70 {
            let before = "!#[]\u{a2}".repeat(len / 6) + &"a".repeat(len % 6);
            for end in ["\"", "\\", "\"!\\\"", "\\\"\"\"\"\"\"\"\"\"\"\"\""] {
                let json = before.clone() + end;
                assert_eq!(find(json.as_bytes(), stops), Some(len), "{json}");
                assert_eq!(find(json.as_bytes(), quotes), json.find('"'), "{json}");
                assert_eq!(find_far(json.as_bytes()), json.find('"'), "{json}");
                let near = (json.len() >= 16).then_some(len).filter(|len| *len < 16);
                let near = near.or((json.len() >= 8).then_some(len).filter(|len| *len < 8));
                assert_eq!(find_near(json.as_bytes(), stops), near, "{json}");
            }
            assert_eq!(find(before.as_bytes(), stops), None);
        }
    }
}
