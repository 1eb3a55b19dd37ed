//! Stateless randomness: every number of the demo chain is a keyed mix of its inputs.

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
        chunk.copy_from_slice(word.split_at(chunk.len()).0);
    }
}

pub(super) fn digest(seed: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(mix(seed), |state, chunk| {
        mix(state.rotate_left(17) ^ u64::from_le_bytes(joined(&[chunk])))
    })
}

/// The parts one after another, in `N` bytes.
pub(super) fn joined<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut out = [0; N];
    let mut rest = out.as_mut_slice();
    for part in parts {
        let length = part.len().min(rest.len());
        let (to, after) = rest.split_at_mut(length);
        to.copy_from_slice(part.split_at(length).0);
        rest = after;
    }
    out
}

/// `ALL` bytes that look random: a check of the body, then the body under the check's stream.
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

    /// Picks an element of the list; an empty draw gives the first one.
    pub(super) fn pick<T: Copy>(&mut self, first: T, others: &[T]) -> T {
        let at = usize::try_from(self.range(0, u64::try_from(others.len()).unwrap_or(0)));
        at.ok()
            .and_then(|at| at.checked_sub(1))
            .and_then(|at| others.get(at))
            .copied()
            .unwrap_or(first)
    }
}

/// Seconds between the points of a grid, and by how many billionths of the price they move it.
const GRIDS: [(u64, i128); 6] = [
    (8, 300_000),
    (1 << 6, 1_000_000),
    (1 << 10, 4_500_000),
    (1 << 14, 17_000_000),
    (1 << 18, 70_000_000),
    (1 << 22, 250_000_000),
];
const BILLION: i128 = 1_000_000_000;
/// Resolution of a point's random value.
const GRID_STEPS: u64 = 1 << 20;

/// The price at a time, around `middle`. It moves at every scale, over a day about as much as a
/// large coin: random values at the points of grids, linear between them.
pub(super) fn price(seed: u64, middle: u128, time: u64) -> u128 {
    let moved: i128 = (0..).zip(GRIDS).map(|(grid, sizes)| offset(seed, grid, sizes, time)).sum();
    let part = (BILLION + moved).max(1).unsigned_abs();
    middle / BILLION.unsigned_abs() * part
}

fn offset(seed: u64, grid: u64, (every, size): (u64, i128), time: u64) -> i128 {
    let point = |at: u64| {
        let chance = hash(seed, &[grid, at, 91]) % (2 * GRID_STEPS);
        (i128::from(chance) - i128::from(GRID_STEPS)) * size / i128::from(GRID_STEPS)
    };
    let (at, done) = (time / every, i128::from(time % every));
    let (from, to) = (point(at), point(at + 1));
    from + (to - from) * done / i128::from(every)
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

    /// The typical change within so many seconds in billionths, sampled at many times.
    fn typical(within: u64) -> u128 {
        let middle = 3_000 * 1_000_000_000_000;
        let mut moves: Vec<u128> = (0..2_001)
            .map(|n| {
                let time = 1_700_000_000 + n * 7_919;
                let (one, other) = (price(5, middle, time), price(5, middle, time + within));
                one.abs_diff(other) * 1_000_000_000 / one
            })
            .collect();
        moves.sort_unstable();
        moves[moves.len() / 2]
    }

    #[test]
    fn moves_more_the_longer_one_waits() {
        assert!((50_000..1_000_000).contains(&typical(12)), "{}", typical(12));
        assert!((500_000..10_000_000).contains(&typical(600)), "{}", typical(600));
        assert!((5_000_000..60_000_000).contains(&typical(86_400)), "{}", typical(86_400));
    }
}
