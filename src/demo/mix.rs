//! Stateless randomness: every number of the demo chain is a keyed mix of its inputs. Not
//! cryptography; it only has to look random and not repeat by accident.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of splitmix64.
pub(super) const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One number from several; the order of the parts counts.
pub(super) fn hash(seed: u64, parts: &[u64]) -> u64 {
    parts.iter().fold(mix(seed), |state, part| mix(state.rotate_left(17) ^ part))
}

/// 32 bytes from several parts: an address that is never decoded.
pub(super) fn key(seed: u64, parts: &[u64]) -> [u8; 32] {
    let mut out = [0; 32];
    fill(hash(seed, parts), &mut out);
    out
}

/// Writes the stream of `state` over `out`.
pub(super) fn fill(state: u64, out: &mut [u8]) {
    for (counter, chunk) in (0_u64..).zip(out.chunks_mut(8)) {
        let word = mix(state ^ counter.wrapping_mul(GOLDEN)).to_le_bytes();
        for (to, from) in chunk.iter_mut().zip(word) {
            *to = from;
        }
    }
}

/// Hashes bytes to one number.
pub(super) fn digest(seed: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(mix(seed), |state, chunk| {
        mix(state.rotate_left(17) ^ u64::from_le_bytes(joined(&[chunk])))
    })
}

/// The parts one after another, in `N` bytes.
pub(super) fn joined<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut out = [0; N];
    for (to, from) in out.iter_mut().zip(parts.iter().copied().flatten()) {
        *to = *from;
    }
    out
}

/// Encodes `BODY` bytes in `ALL` bytes that look random and can be decoded with the same seed: a
/// check, then the body under a stream that the check starts.
pub(super) fn seal<const BODY: usize, const ALL: usize>(seed: u64, body: &[u8; BODY]) -> [u8; ALL] {
    let mut out = [0; ALL];
    let (check, text) = out.split_at_mut(ALL - BODY);
    fill(digest(seed, body), check);
    fill(digest(mix(seed), check), text);
    for (to, from) in text.iter_mut().zip(body) {
        *to ^= from;
    }
    out
}

/// Decodes what [`seal`] encoded; `None` for anything else.
pub(super) fn open<const BODY: usize, const ALL: usize>(
    seed: u64,
    sealed: &[u8; ALL],
) -> Option<[u8; BODY]> {
    let (check, text) = sealed.split_at_checked(ALL.checked_sub(BODY)?)?;
    let mut body = [0; BODY];
    fill(digest(mix(seed), check), &mut body);
    for (to, from) in body.iter_mut().zip(text) {
        *to ^= from;
    }
    (seal::<BODY, ALL>(seed, &body) == *sealed).then_some(body)
}

/// A short sequence of related random numbers.
#[derive(Debug, Clone)]
pub(super) struct Dice {
    state: u64,
}

impl Dice {
    pub(super) fn new(seed: u64, parts: &[u64]) -> Self {
        Self { state: hash(seed, parts) }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number in `low..=high`.
    pub(super) fn range(&mut self, low: u64, high: u64) -> u64 {
        let width = high.saturating_sub(low).saturating_add(1);
        low + self.next() % width.max(1)
    }

    pub(super) fn percent(&mut self, share: u64) -> bool {
        self.range(0, 99) < share
    }

    /// One of the list; the first element is the default of an empty draw.
    pub(super) fn pick<T: Copy>(&mut self, first: T, others: &[T]) -> T {
        let at = usize::try_from(self.range(0, u64::try_from(others.len()).unwrap_or(0)));
        at.ok()
            .and_then(|at| at.checked_sub(1))
            .and_then(|at| others.get(at))
            .copied()
            .unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_the_same_seed_only() {
        for n in 0..200_u64 {
            let mut body = [0; 48];
            fill(n, &mut body);
            let sealed: [u8; 64] = seal(7, &body);
            assert_eq!(open(7, &sealed), Some(body));
            assert_eq!(open::<48, 64>(8, &sealed), None);
            let mut damaged = sealed;
            damaged[usize::try_from(n % 64).unwrap()] ^= 1;
            assert_eq!(open::<48, 64>(7, &damaged), None);
        }
    }
}
