//! A price that moves at every scale and is computed for any time directly: random values at the
//! points of grids from seconds to months, linear between them, larger grids with larger moves.
//! Over a day it moves about as much as a large coin.

use super::mix;

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
const STEPS: u64 = 1 << 20;

/// The price at a time, around `middle`.
pub(super) fn price(seed: u64, middle: u128, time: u64) -> u128 {
    let moved: i128 = (0..).zip(GRIDS).map(|(grid, sizes)| offset(seed, grid, sizes, time)).sum();
    let part = (BILLION + moved).max(1).unsigned_abs();
    middle / BILLION.unsigned_abs() * part
}

fn offset(seed: u64, grid: u64, (every, size): (u64, i128), time: u64) -> i128 {
    let point = |at: u64| {
        let chance = mix::hash(seed, &[grid, at, 91]) % (2 * STEPS);
        (i128::from(chance) - i128::from(STEPS)) * size / i128::from(STEPS)
    };
    let (at, done) = (time / every, i128::from(time % every));
    let (from, to) = (point(at), point(at + 1));
    from + (to - from) * done / i128::from(every)
}

#[cfg(test)]
mod tests {
    use super::*;

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
