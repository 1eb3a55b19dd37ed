//! Pure: which endpoints have account lists. A refusal does not mean that a list is missing: that
//! requires several such answers with pauses in between, and no page ever. One list without the
//! other does not show what a wallet did.

use std::collections::HashMap;

use tokio::time::Instant;

use super::TronLimits;
use super::list::{GivenList, ListKind};
use crate::rpc::EndpointId;
use crate::sources::spaced::SpacedAnswers;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListRefusal {
    /// The path does not exist.
    Absent,
    /// For lack of a key or a plan, or with an unknown text.
    Other,
}

/// Whether there are enough refusals over a long enough time.
pub(super) fn show_absence(refusals: &SpacedAnswers, limits: &TronLimits) -> bool {
    refusals.are_enough(limits.lists_refusals_min, limits.lists_absent_after)
}

#[derive(Debug, Default)]
struct ListOffer {
    has_worked: bool,
    refusals: u32,
    absences: SpacedAnswers,
    /// Refusals of any kind.
    refused: SpacedAnswers,
    paused_until: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct Offers {
    by: HashMap<GivenList, ListOffer>,
}

impl Offers {
    pub(super) fn worked(&mut self, list: GivenList) {
        self.by.insert(list, ListOffer { has_worked: true, ..ListOffer::default() });
    }

    pub(super) fn refused(
        &mut self,
        list: GivenList,
        how: ListRefusal,
        now: Instant,
        limits: &TronLimits,
    ) {
        let offer = self.by.entry(list).or_default();
        // Concurrent queries are refused together: that is one refusal.
        if offer.paused_until.is_none_or(|until| until <= now) {
            let doubled = 2_u32.saturating_pow(offer.refusals.min(16));
            let pause = limits.lists_pause_min.saturating_mul(doubled).min(limits.lists_pause_max);
            offer.refusals = offer.refusals.saturating_add(1);
            offer.paused_until = Some(now + pause);
        }
        offer.refused.note(now, limits.lists_refusal_spacing);
        if how == ListRefusal::Absent {
            offer.absences.note(now, limits.lists_refusal_spacing);
        }
    }

    /// Whether an endpoint has both lists, if known.
    pub(super) fn of(&self, id: EndpointId, limits: &TronLimits) -> Option<bool> {
        if ListKind::BOTH.iter().all(|kind| self.has_given((id, *kind))) {
            return Some(true);
        }
        self.is_absent(&[id], limits).then_some(false)
    }

    /// Whether some endpoint has returned a list in this process, and the other list was returned
    /// too or has not been refused for long by all that answer about it.
    pub(super) fn has_worked(&self, all: &[EndpointId], limits: &TronLimits) -> bool {
        let given =
            |kind: &ListKind| self.by.iter().any(|((_, of), offer)| of == kind && offer.has_worked);
        // Endpoints that have not answered about the list do not count: they may never return it.
        let is_refused = |kind: &ListKind| {
            let mut known = all.iter().filter_map(|id| self.by.get(&(*id, *kind))).peekable();
            known.peek().is_some() && known.all(|offer| show_absence(&offer.refused, limits))
        };
        let mut kinds = ListKind::BOTH.iter();
        ListKind::BOTH.iter().any(given) && kinds.all(|kind| given(kind) || !is_refused(kind))
    }

    pub(super) fn has_given(&self, list: GivenList) -> bool {
        self.by.get(&list).is_some_and(|offer| offer.has_worked)
    }

    /// Whether no endpoint has one of the lists, by several answers of each over
    /// `lists_absent_after` that the path does not exist.
    pub(super) fn is_absent(&self, all: &[EndpointId], limits: &TronLimits) -> bool {
        let is_absent = |list: &GivenList| {
            let offer = self.by.get(list);
            offer.is_some_and(|offer| !offer.has_worked && show_absence(&offer.absences, limits))
        };
        let lack = |kind: &ListKind| all.iter().all(|id| is_absent(&(*id, *kind)));
        !all.is_empty() && ListKind::BOTH.iter().any(lack)
    }

    pub(super) fn next_open(&self, all: &[EndpointId], kind: ListKind) -> Option<Instant> {
        all.iter().filter_map(|id| self.by.get(&(*id, kind))?.paused_until).min()
    }

    pub(super) fn open(&self, all: &[EndpointId], kind: ListKind, now: Instant) -> Vec<EndpointId> {
        all.iter().copied().filter(|id| self.is_open((*id, kind), now)).collect()
    }

    /// Lists for which these endpoints may be queried now.
    pub(super) fn open_lists(&self, all: &[EndpointId], now: Instant) -> Vec<GivenList> {
        let lists = all.iter().flat_map(|id| ListKind::BOTH.map(|kind| (*id, kind)));
        lists.filter(|list| self.is_open(*list, now)).collect()
    }

    fn is_open(&self, list: GivenList, now: Instant) -> bool {
        let until = self.by.get(&list).and_then(|offer| offer.paused_until);
        until.is_none_or(|until| until <= now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ONE: EndpointId = EndpointId(0);
    const OTHER: EndpointId = EndpointId(1);

    const KIND: ListKind = ListKind::Transfers;

    fn refuse(offers: &mut Offers, id: EndpointId, how: ListRefusal, times: u32, apart: Duration) {
        let now = Instant::now();
        for number in 0..times {
            offers.refused((id, KIND), how, now + apart * number, &TronLimits::default());
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
        assert!(offers.is_absent(&all, &limits) && !offers.has_worked(&all, &limits));
        for kind in ListKind::BOTH {
            offers.worked((OTHER, kind));
        }
        refuse(&mut offers, OTHER, ListRefusal::Absent, 9, minute);
        assert!(!offers.is_absent(&all, &limits));
        assert!(offers.has_worked(&all, &limits), "it has worked once");
        assert!(!offers.is_absent(&[], &limits));
    }

    #[tokio::test(start_paused = true)]
    async fn one_list_without_the_other_is_no_ability() {
        let limits = TronLimits::default();
        let mut offers = Offers::default();
        offers.worked((ONE, ListKind::Transactions));
        assert!(offers.has_worked(&[ONE], &limits) && offers.of(ONE, &limits).is_none());
        offers.refused((ONE, KIND), ListRefusal::Absent, Instant::now(), &limits);
        assert!(offers.has_worked(&[ONE], &limits), "it is asked for again");
        let now = Instant::now();
        assert!(offers.open(&[ONE], KIND, now).is_empty());
        assert_eq!(offers.open_lists(&[ONE], now), [(ONE, ListKind::Transactions)]);
        refuse(&mut offers, ONE, ListRefusal::Absent, 4, Duration::from_secs(60));
        assert!(offers.is_absent(&[ONE], &limits) && offers.of(ONE, &limits) == Some(false));
        assert!(!offers.has_worked(&[ONE], &limits));
        assert!(!offers.has_worked(&[ONE, OTHER], &limits), "the other one answers nothing");
        // Another endpoint has the list that this one lacks.
        offers.worked((OTHER, KIND));
        let both = [ONE, OTHER];
        assert!(offers.has_worked(&both, &limits) && !offers.is_absent(&both, &limits));
        offers.worked((ONE, KIND));
        assert_eq!(offers.of(ONE, &limits), Some(true));
    }

    /// Enough answers are counted, but within a time for which a provider only suspends a client.
    #[tokio::test(start_paused = true)]
    async fn lists_are_not_absent_by_answers_of_a_short_time() {
        let limits = TronLimits::default();
        let (apart, most) = (limits.lists_refusal_spacing, limits.lists_refusals_min);
        assert!(apart * (most - 1) < limits.lists_absent_after, "enough answers come sooner");
        let mut offers = Offers::default();
        refuse(&mut offers, ONE, ListRefusal::Absent, most, apart);
        assert!(!offers.is_absent(&[ONE], &limits) && offers.of(ONE, &limits).is_none());
        let late = Instant::now() + apart * most;
        offers.refused((ONE, KIND), ListRefusal::Absent, late, &limits);
        assert!(offers.is_absent(&[ONE], &limits) && offers.of(ONE, &limits) == Some(false));
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_minutes_and_end_by_an_answer() {
        let limits = TronLimits::default();
        let mut offers = Offers::default();
        let now = Instant::now();
        assert_eq!(offers.open(&[ONE], KIND, now), [ONE]);
        offers.refused((ONE, KIND), ListRefusal::Other, now, &limits);
        assert!(offers.open(&[ONE], KIND, now).is_empty());
        assert_eq!(offers.open(&[ONE], KIND, now + limits.lists_pause_min), [ONE]);
        refuse(&mut offers, ONE, ListRefusal::Other, 20, Duration::ZERO);
        assert_eq!(
            offers.open(&[ONE], KIND, now + limits.lists_pause_min),
            [ONE],
            "together: one refusal"
        );
        refuse(&mut offers, ONE, ListRefusal::Other, 20, limits.lists_pause_max);
        let last = now + limits.lists_pause_max * 19;
        assert!(offers.open(&[ONE], KIND, last + limits.lists_pause_max / 2).is_empty());
        assert_eq!(offers.open(&[ONE], KIND, last + limits.lists_pause_max), [ONE]);
        offers.worked((ONE, KIND));
        assert_eq!(offers.open(&[ONE], KIND, now), [ONE]);
    }
}
