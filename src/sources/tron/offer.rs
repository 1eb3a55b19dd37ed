//! Pure: which endpoints offer account lists. A refusal is no lack of an ability: an endpoint has
//! no lists only where it has answered so several times, with pauses between, and never gave one.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::TronLimits;
use crate::rpc::endpoint::EndpointId;

/// How lists were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListRefusal {
    /// The path is not there.
    Absent,
    /// By a key, a plan, or in words that are not known.
    Other,
}

/// What is known of one endpoint's lists.
#[derive(Debug, Default)]
struct Offer {
    has_worked: bool,
    refusals: u32,
    /// Refusals that stand for an answer of their own: one in `lists_refusal_spacing`.
    counted: u32,
    first_at: Option<Instant>,
    counted_at: Option<Instant>,
    paused_until: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct Offers {
    by: HashMap<EndpointId, Offer>,
}

impl Offers {
    pub(super) fn worked(&mut self, id: EndpointId) {
        self.by.insert(id, Offer { has_worked: true, ..Offer::default() });
    }

    pub(super) fn refused(
        &mut self,
        id: EndpointId,
        how: ListRefusal,
        now: Instant,
        limits: &TronLimits,
    ) {
        let offer = self.by.entry(id).or_default();
        // Lists that were asked for together are refused together: that is one refusal.
        if offer.paused_until.is_none_or(|until| until <= now) {
            let doubled = 2_u32.saturating_pow(offer.refusals.min(16));
            let pause = limits.lists_pause_min.saturating_mul(doubled).min(limits.lists_pause_max);
            offer.refusals = offer.refusals.saturating_add(1);
            offer.paused_until = Some(now + pause);
        }
        let is_apart = |at: Instant| now.duration_since(at) >= limits.lists_refusal_spacing;
        if how == ListRefusal::Absent && offer.counted_at.is_none_or(is_apart) {
            offer.counted += 1;
            offer.first_at.get_or_insert(now);
            offer.counted_at = Some(now);
        }
    }

    /// Whether an endpoint has lists, where that is known.
    pub(super) fn of(&self, id: EndpointId, limits: &TronLimits) -> Option<bool> {
        let offer = self.by.get(&id)?;
        if offer.has_worked {
            return Some(true);
        }
        self.is_absent(&[id], limits).then_some(false)
    }

    /// Any endpoint gave a list in this process.
    pub(super) fn has_worked(&self) -> bool {
        self.by.values().any(|offer| offer.has_worked)
    }

    /// No endpoint has lists, by several answers of each over `lists_absent_after`.
    pub(super) fn is_absent(&self, all: &[EndpointId], limits: &TronLimits) -> bool {
        let is_absent = |id: &EndpointId| {
            self.by.get(id).is_some_and(|offer| {
                let span = offer.first_at.zip(offer.counted_at);
                let span = span.map_or(Duration::ZERO, |(first, last)| last.duration_since(first));
                !offer.has_worked
                    && offer.counted >= limits.lists_refusals_min
                    && span >= limits.lists_absent_after
            })
        };
        !all.is_empty() && all.iter().all(is_absent)
    }

    /// When the first pause ends.
    pub(super) fn next_open(&self, all: &[EndpointId]) -> Option<Instant> {
        all.iter().filter_map(|id| self.by.get(id)?.paused_until).min()
    }

    /// Those that may be asked now.
    pub(super) fn open(&self, all: &[EndpointId], now: Instant) -> Vec<EndpointId> {
        let is_open = |id: &&EndpointId| {
            let until = self.by.get(id).and_then(|offer| offer.paused_until);
            until.is_none_or(|until| until <= now)
        };
        all.iter().filter(is_open).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: EndpointId = EndpointId(0);
    const OTHER: EndpointId = EndpointId(1);

    fn refuse(offers: &mut Offers, id: EndpointId, how: ListRefusal, times: u32, apart: Duration) {
        let now = Instant::now();
        for number in 0..times {
            offers.refused(id, how, now + apart * number, &TronLimits::default());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lists_are_absent_by_answers_over_time_of_every_endpoint() {
        let (limits, minute) = (TronLimits::default(), Duration::from_secs(60));
        let all = [ONE, OTHER];
        let mut offers = Offers::default();
        refuse(&mut offers, ONE, ListRefusal::Absent, 100, Duration::from_millis(10));
        assert!(!offers.is_absent(&[ONE], &limits), "all at once");
        let mut offers = Offers::default();
        refuse(&mut offers, ONE, ListRefusal::Other, 9, minute);
        assert!(!offers.is_absent(&[ONE], &limits), "a key, not a lack");
        refuse(&mut offers, ONE, ListRefusal::Absent, 2, minute * 3);
        assert!(!offers.is_absent(&[ONE], &limits), "too few");
        refuse(&mut offers, ONE, ListRefusal::Absent, 4, minute * 3);
        assert!(offers.is_absent(&[ONE], &limits) && !offers.is_absent(&all, &limits));
        refuse(&mut offers, OTHER, ListRefusal::Absent, 4, minute);
        assert!(offers.is_absent(&all, &limits) && !offers.has_worked());
        offers.worked(OTHER);
        refuse(&mut offers, OTHER, ListRefusal::Absent, 9, minute);
        assert!(!offers.is_absent(&all, &limits) && offers.has_worked(), "it has worked once");
        assert!(!offers.is_absent(&[], &limits));
    }

    /// Answers enough, each counted, in a time in which a provider only suspends a client.
    #[tokio::test(start_paused = true)]
    async fn lists_are_not_absent_by_answers_of_a_short_time() {
        let limits = TronLimits::default();
        let (apart, most) = (limits.lists_refusal_spacing, limits.lists_refusals_min);
        assert!(apart * (most - 1) < limits.lists_absent_after, "enough answers come sooner");
        let mut offers = Offers::default();
        refuse(&mut offers, ONE, ListRefusal::Absent, most, apart);
        assert!(!offers.is_absent(&[ONE], &limits) && offers.of(ONE, &limits).is_none());
        let late = Instant::now() + apart * most;
        offers.refused(ONE, ListRefusal::Absent, late, &limits);
        assert!(offers.is_absent(&[ONE], &limits) && offers.of(ONE, &limits) == Some(false));
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_minutes_and_end_by_an_answer() {
        let limits = TronLimits::default();
        let mut offers = Offers::default();
        let now = Instant::now();
        assert_eq!(offers.open(&[ONE], now), [ONE]);
        offers.refused(ONE, ListRefusal::Other, now, &limits);
        assert!(offers.open(&[ONE], now).is_empty());
        assert_eq!(offers.open(&[ONE], now + limits.lists_pause_min), [ONE]);
        refuse(&mut offers, ONE, ListRefusal::Other, 20, Duration::ZERO);
        assert_eq!(
            offers.open(&[ONE], now + limits.lists_pause_min),
            [ONE],
            "together: one refusal"
        );
        refuse(&mut offers, ONE, ListRefusal::Other, 20, limits.lists_pause_max);
        let last = now + limits.lists_pause_max * 19;
        assert!(offers.open(&[ONE], last + limits.lists_pause_max / 2).is_empty());
        assert_eq!(offers.open(&[ONE], last + limits.lists_pause_max), [ONE]);
        offers.worked(ONE);
        assert_eq!(offers.open(&[ONE], now), [ONE]);
    }
}
