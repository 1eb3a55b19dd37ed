//! An estimate of a wallet's number of transactions by few calls; it never decides what is stored.

/// Number of a wallet's transactions, trades or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    pub transactions: u64,
    /// `transactions` is no count: it was extrapolated from pages at several depths of a list, or
    /// is a lower bound.
    pub is_rough: bool,
}

/// A page of a list, read downwards from one position; positions are heights or milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) from: u64,
    /// Position of its last entry; `from` where the page is empty.
    pub(super) to: u64,
    pub(super) entries: u64,
    /// The page was cut: more entries lie below.
    pub(super) is_full: bool,
}

impl Sample {
    /// Entries in a part of the list of this length, at the rate of this page.
    fn rate_over(&self, length: u64) -> u64 {
        let span = self.from.saturating_sub(self.to).max(1);
        let entries = u128::from(self.entries) * u128::from(length) / u128::from(span);
        u64::try_from(entries).unwrap_or(u64::MAX)
    }
}

/// Estimates the number of entries of a list: those of its pages, and between two pages the mean of
/// both pages' rates. `samples`: from the top down. `bottom`: the position below which the list has
/// no entry; without it nothing is added below the last page.
pub(super) fn extrapolate(samples: &[Sample], bottom: Option<u64>) -> u64 {
    let mut total: u64 = 0;
    let mut samples = samples.iter().peekable();
    while let Some(sample) = samples.next() {
        total = total.saturating_add(sample.entries);
        if !sample.is_full {
            return total;
        }
        while samples.next_if(|below| below.from >= sample.to).is_some() {}
        let between = match samples.peek() {
            // The list begins somewhere between the two pages; half of the distance is assumed.
            Some(below) if below.entries == 0 => sample.rate_over((sample.to - below.from) / 2),
            Some(below) => {
                let gap = sample.to - below.from;
                sample.rate_over(gap).midpoint(below.rate_over(gap))
            }
            None => sample.rate_over(bottom.map_or(0, |bottom| sample.to.saturating_sub(bottom))),
        };
        total = total.saturating_add(between);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(from: u64, to: u64, entries: u64) -> Sample {
        Sample { from, to, entries, is_full: entries >= 100 }
    }

    #[test]
    fn activity_between_pages_is_interpolated_from_their_rates() {
        assert_eq!(extrapolate(&[page(1_000, 900, 40)], None), 40);
        assert_eq!(extrapolate(&[page(1_000, 900, 100)], None), 100, "the least that there are");
        assert_eq!(extrapolate(&[page(1_000, 900, 100)], Some(0)), 1_000);
        let even = [page(1_000, 900, 100), page(500, 400, 100)];
        assert_eq!(extrapolate(&even, Some(0)), 1_000);
        let slower = [page(1_000, 900, 100), page(500, 300, 100)];
        assert_eq!(extrapolate(&slower, Some(0)), 100 + 300 + 100 + 150);
        let begins_between = [page(1_000, 900, 100), page(500, 500, 0)];
        assert_eq!(extrapolate(&begins_between, None), 300);
        let ends_inside = [page(1_000, 900, 100), page(500, 450, 20)];
        assert_eq!(extrapolate(&ends_inside, Some(0)), 100 + 280 + 20);
        let reaches_below = [page(1_000, 400, 100), page(500, 400, 100), page(100, 0, 100)];
        assert_eq!(extrapolate(&reaches_below, None), 100 + 175 + 100);
        assert_eq!(extrapolate(&[page(5, 5, 100)], Some(0)), 600, "all in one slot");
    }
}
