//! Pure: compares the wallet's own transactions in a list, by their nonces, with the number that
//! the chain counts.
//!
//! An account without code sends nonces without holes, so nothing is missing between two
//! consecutive ones in a list. The chain's count at the top of a read is the nonce after its newest
//! transaction, the count below its lowest height that of its oldest.

use crate::domain::Height;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SentNonce {
    #[default]
    No,
    Nonce(u64),
    /// The list has no nonces.
    Unnumbered,
}

/// The sent counts at both ends of a read; `None` if no endpoint returns them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SentTotals {
    /// Transactions sent up to the highest height.
    pub(super) top: Option<u64>,
    /// Transactions sent below the lowest height.
    pub(super) bottom: Option<u64>,
    /// Transactions sent until now, if endpoints do not keep older counts.
    pub(super) latest: Option<u64>,
}

/// How far down the sent transactions are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SentCount {
    counts: SentTotals,
    /// The lowest nonce delivered.
    lowest: Option<u64>,
}

impl SentCount {
    pub(super) fn set_counts(&mut self, counts: SentTotals) {
        self.counts = counts;
    }

    pub(super) fn is_counted(&self) -> bool {
        self.counts.top.is_some()
    }

    /// Whether the count at the top is lower than the newest nonce shows, or the present one lower
    /// than the oldest does (a lagging server may lack new transactions): nonces do not count this
    /// wallet's transactions then.
    pub(super) fn is_refuted_by(&self, nonces: &[u64]) -> bool {
        let SentTotals { top, latest, .. } = self.counts;
        let is_below = |count: Option<u64>, nonce: Option<&u64>| {
            count.zip(nonce).is_some_and(|(count, nonce)| *nonce >= count)
        };
        is_below(top, nonces.iter().max()) || is_below(latest, nonces.iter().min())
    }

    pub(super) fn has_next(&self) -> bool {
        self.expected().is_some()
    }

    /// The nonce after the next one down.
    fn expected(&self) -> Option<u64> {
        self.lowest.or(self.counts.top)
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.expected().is_some_and(|expected| self.counts.bottom == Some(expected))
    }

    /// Whether these nonces, the next ones down, have no hole, also to what follows.
    pub(super) fn fits(&self, nonces: &[u64], follows: Follows) -> bool {
        let mut sorted = nonces.to_vec();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        sorted.dedup();
        let mut expected = self.expected();
        for nonce in sorted {
            if expected.is_some_and(|expected| nonce.checked_add(1) != Some(expected)) {
                return false;
            }
            expected = Some(nonce);
        }
        let below = match follows {
            Follows::Unknown => None,
            Follows::Nonce(nonce) => nonce.checked_add(1),
            Follows::Nothing => self.counts.bottom,
        };
        expected.zip(below).is_none_or(|(expected, below)| expected == below)
    }

    pub(super) fn pass(&mut self, nonces: &[u64]) {
        self.lowest = nonces.iter().copied().chain(self.lowest).min();
    }
}

/// What follows below some rows of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    Unknown,
    Nonce(u64),
    /// The list has ended without another sent transaction.
    Nothing,
}

/// The height down to which a list agrees with its nonces: a hole may lie between the lowest known
/// nonce and the next, so heights below it wait. `None`: nothing can be delivered yet.
pub(super) fn proved_low(low: Height, top: Height, lowest_sent: Option<Height>) -> Option<Height> {
    let proved = low.max(lowest_sent?.saturating_add(1));
    (proved <= top).then_some(proved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(top: Option<u64>, bottom: Option<u64>) -> SentCount {
        SentCount { counts: SentTotals { top, bottom, latest: None }, lowest: None }
    }

    #[test]
    fn nonces_without_a_hole_fit_and_others_do_not() {
        let known = of(Some(10), Some(0));
        assert!(known.fits(&[9, 8, 7], Follows::Nonce(6)));
        assert!(known.fits(&[7, 9, 8, 9], Follows::Unknown), "in any order");
        for (nonces, follows) in [
            (&[8, 7][..], Follows::Unknown),
            (&[9, 7], Follows::Unknown),
            (&[9, 8], Follows::Nonce(6)),
            (&[9, 8], Follows::Nothing),
            (&[10, 9], Follows::Unknown),
            (&[], Follows::Nothing),
            (&[], Follows::Nonce(8)),
        ] {
            assert!(!known.fits(nonces, follows), "{nonces:?} {follows:?}");
        }
        assert!(known.fits(&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0], Follows::Nothing));
    }

    #[test]
    fn a_count_below_what_the_list_shows_is_none() {
        assert!(!of(Some(10), Some(0)).is_refuted_by(&[9]));
        assert!(!of(Some(0), None).is_refuted_by(&[]));
        assert!(of(Some(9), Some(0)).is_refuted_by(&[8, 9]), "nine were sent before it");
        let unknown = of(None, Some(0));
        assert!(!unknown.is_refuted_by(&[9]) && !unknown.is_counted(), "no endpoint counts");
    }

    #[test]
    fn where_old_counts_are_not_kept_the_one_of_today_shows_whether_nonces_count() {
        let today = |latest| SentCount {
            counts: SentTotals { latest: Some(latest), ..SentTotals::default() },
            lowest: None,
        };
        assert!(today(0).is_refuted_by(&[57, 60]), "a chain that counts none");
        assert!(today(57).is_refuted_by(&[57, 60]));
        assert!(!today(59).is_refuted_by(&[57, 60]), "a server that is behind");
        assert!(!today(61).is_refuted_by(&[57, 60]) && !today(0).is_refuted_by(&[]));
        assert!(!today(61).is_counted(), "what was sent above the read is in it");
    }

    #[test]
    fn a_hole_between_rows_shows_without_any_count() {
        let unknown = of(None, None);
        assert!(unknown.fits(&[9, 8], Follows::Nothing));
        assert!(unknown.fits(&[], Follows::Nothing));
        assert!(!unknown.fits(&[9, 7], Follows::Unknown));
        assert!(!unknown.fits(&[9], Follows::Nonce(7)));
        let mut passed = unknown;
        passed.pass(&[9, 8]);
        assert!(passed.fits(&[7], Follows::Unknown) && !passed.fits(&[6], Follows::Unknown));
    }

    #[test]
    fn below_the_last_counted_one_none_is_waited_for() {
        let mut known = of(Some(10), Some(8));
        assert!(!known.is_exhausted());
        known.pass(&[9, 8]);
        assert!(known.is_exhausted() && known.fits(&[], Follows::Nothing));
        assert!(!of(None, Some(0)).is_exhausted());
    }

    #[test]
    fn heights_wait_for_the_next_nonce_below_them() {
        assert_eq!(proved_low(50, 100, Some(60)), Some(61));
        assert_eq!(proved_low(50, 100, Some(40)), Some(50), "the next one is known");
        assert_eq!(proved_low(50, 60, Some(60)), None);
        assert_eq!(proved_low(50, 100, None), None);
    }
}
