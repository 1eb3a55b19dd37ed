//! Pure: which endpoints offer account lists. A refusal is no lack of an ability: an endpoint has
//! no lists only where it has answered so about both of them, several times over minutes, and never
//! gave one.

use std::collections::HashMap;

use tokio::time::Instant;

use super::TronLimits;
use super::list::ListKind;
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
    /// One in `lists_refusal_spacing` stands for an answer of its own.
    absences: HashMap<ListKind, Absences>,
    paused_until: Option<Instant>,
}

/// Answers that one list is not there.
#[derive(Debug, Clone, Copy)]
struct Absences {
    count: u32,
    first_at: Instant,
    last_at: Instant,
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
        (kind, how): (ListKind, ListRefusal),
        now: Instant,
        limits: &TronLimits,
    ) {
        let offer = self.by.entry(id).or_default();
        let doubled = 2_u32.saturating_pow(offer.refusals.min(16));
        let pause = limits.lists_pause_min.saturating_mul(doubled).min(limits.lists_pause_max);
        offer.refusals = offer.refusals.saturating_add(1);
        offer.paused_until = Some(now + pause);
        if how == ListRefusal::Absent {
            let first = Absences { count: 1, first_at: now, last_at: now };
            let known = offer.absences.entry(kind).or_insert(first);
            if now.duration_since(known.last_at) >= limits.lists_refusal_spacing {
                (known.count, known.last_at) = (known.count + 1, now);
            }
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

    /// No endpoint has lists, by several answers of each about each list over `lists_absent_after`.
    pub(super) fn is_absent(&self, all: &[EndpointId], limits: &TronLimits) -> bool {
        let lacks = |offer: &Offer, kind: &ListKind| {
            offer.absences.get(kind).is_some_and(|known| {
                let span = known.last_at.duration_since(known.first_at);
                known.count >= limits.lists_refusals_min && span >= limits.lists_absent_after
            })
        };
        let is_absent = |id: &EndpointId| {
            self.by.get(id).is_some_and(|offer| {
                !offer.has_worked && ListKind::BOTH.iter().all(|kind| lacks(offer, kind))
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
    use std::time::Duration;

    use super::*;

    const ONE: EndpointId = EndpointId(0);
    const OTHER: EndpointId = EndpointId(1);

    fn refuse(offers: &mut Offers, id: EndpointId, how: ListRefusal, times: u32, apart: Duration) {
        for kind in ListKind::BOTH {
            refuse_one(offers, id, (kind, how), (times, apart));
        }
    }

    fn refuse_one(
        offers: &mut Offers,
        id: EndpointId,
        how: (ListKind, ListRefusal),
        (times, apart): (u32, Duration),
    ) {
        let now = Instant::now();
        for number in 0..times {
            offers.refused(id, how, now + apart * number, &TronLimits::default());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn both_lists_have_to_be_absent() {
        let (limits, minutes) = (TronLimits::default(), Duration::from_secs(180));
        let mut offers = Offers::default();
        for (kind, is_absent) in ListKind::BOTH.into_iter().zip([false, true]) {
            refuse_one(&mut offers, ONE, (kind, ListRefusal::Absent), (4, minutes));
            assert_eq!(offers.is_absent(&[ONE], &limits), is_absent, "{kind:?}");
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
        refuse(&mut offers, OTHER, ListRefusal::Absent, 4, minute * 2);
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
        let late = Instant::now() + limits.lists_absent_after;
        for kind in ListKind::BOTH {
            offers.refused(ONE, (kind, ListRefusal::Absent), late, &limits);
        }
        assert!(offers.is_absent(&[ONE], &limits) && offers.of(ONE, &limits) == Some(false));
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_minutes_and_end_by_an_answer() {
        let limits = TronLimits::default();
        let mut offers = Offers::default();
        let now = Instant::now();
        assert_eq!(offers.open(&[ONE], now), [ONE]);
        offers.refused(ONE, (ListKind::Transfers, ListRefusal::Other), now, &limits);
        assert!(offers.open(&[ONE], now).is_empty());
        assert_eq!(offers.open(&[ONE], now + limits.lists_pause_min), [ONE]);
        refuse(&mut offers, ONE, ListRefusal::Other, 20, Duration::ZERO);
        assert!(offers.open(&[ONE], now + limits.lists_pause_max / 2).is_empty());
        assert_eq!(offers.open(&[ONE], now + limits.lists_pause_max), [ONE]);
        offers.worked(ONE);
        assert_eq!(offers.open(&[ONE], now), [ONE]);
    }
}
