//! Pure: which endpoint takes a request now, or whether waiting for a faster one is better.
//!
//! A slow endpoint next to a fast one helps only where the fast one's queue takes longer than the
//! slow one's answer; else it delays everything that is delivered in order.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offer {
    /// Its index in the pool.
    pub(super) at: usize,
    pub(super) failures: u32,
    pub(super) typical_latency: Option<Duration>,
    pub(super) in_flight: usize,
    pub(super) concurrency: usize,
    /// Age of the newest request in flight: if all places are taken, no answer came since.
    pub(super) youngest: Duration,
    /// Time until the rate and the cooldown allow a request.
    pub(super) free_in: Duration,
    pub(super) is_cooling_down: bool,
    /// Time between two requests, by the rate.
    pub(super) spacing: Duration,
}

/// Assumed latency of an endpoint without a measurement.
pub(crate) const PRESUMED_LATENCY: Duration = Duration::from_millis(500);
/// How many times slower than the avoided endpoint another one may be where it is preferred, not
/// required.
pub(crate) const SLOWER_MAX: u32 = 4;
/// Consecutive failures beyond which more do not change the selection.
const FAILURES_SEEN: u32 = 2;

impl Offer {
    fn is_full(&self) -> bool {
        self.in_flight >= self.concurrency
    }

    fn is_ready(&self) -> bool {
        self.free_in.is_zero() && !self.is_full()
    }

    fn rank(&self) -> u32 {
        self.failures.min(FAILURES_SEEN)
    }

    /// Expected time to the answer of a request that is sent now.
    fn expected_latency(&self) -> Duration {
        let typical_latency = self.typical_latency.unwrap_or(PRESUMED_LATENCY);
        if self.is_full() { typical_latency.max(self.youngest) } else { typical_latency }
    }

    /// The same weighted by requests in flight, so that equal endpoints share the work.
    fn load(&self) -> (u32, u128) {
        let places = micros(self.expected_latency()) * cast(self.concurrency + self.in_flight);
        (self.rank(), places / cast(self.concurrency.max(1)))
    }

    /// Microseconds between two answers of a busy endpoint.
    fn turn(&self) -> u128 {
        let by_places = micros(self.expected_latency()) / cast(self.concurrency.max(1));
        by_places.max(micros(self.spacing)).max(1)
    }
}

/// Endpoints for a request that should not go to `avoid`. `strictly`: even a much slower one; else
/// `avoid` may be used again.
pub(super) fn without_avoided(mut offers: Vec<Offer>, avoid: usize, strictly: bool) -> Vec<Offer> {
    let avoided = offers.iter().find(|one| one.at == avoid).map(Offer::expected_latency);
    let bearable = avoided.map(|avoided| (avoided * SLOWER_MAX).max(PRESUMED_LATENCY));
    let is_choice = |one: &Offer| {
        let in_time = bearable.is_none_or(|bearable| one.expected_latency() <= bearable);
        one.at != avoid && !one.is_cooling_down && (strictly || in_time)
    };
    if offers.iter().any(is_choice) {
        offers.retain(|one| one.at != avoid);
    }
    offers
}

/// The endpoint for a request that waits behind `ahead` others for a faster one; `None`: keep
/// waiting.
pub(super) fn choose(offers: &[Offer], ahead: usize) -> Option<usize> {
    if let Some(unknown) = unmeasured_idle(offers, ahead) {
        return Some(unknown.at);
    }
    let ready = || offers.iter().filter(|one| one.is_ready());
    let quickest = ready().min_by_key(|one| (one.rank(), one.expected_latency()))?;
    let waiting = finish_by_waiting(offers, quickest, ahead);
    if waiting.is_some_and(|waiting| waiting < micros(quickest.expected_latency())) {
        return None;
    }
    ready().min_by_key(|one| one.load()).map(|one| one.at)
}

/// An idle endpoint without a recent measurement gets one request to measure its latency: never the
/// next request in delivery order, and only if another endpoint can hedge it.
fn unmeasured_idle(offers: &[Offer], ahead: usize) -> Option<&Offer> {
    let known = offers.iter().any(|one| one.typical_latency.is_some() && one.free_in.is_zero());
    let unknown = offers.iter().filter(|one| one.typical_latency.is_none() && one.rank() == 0);
    let mut idle = unknown.filter(|one| one.is_ready() && one.in_flight == 0);
    idle.next().filter(|_| known && ahead > 0)
}

/// Microseconds to the answer when waiting for a faster endpoint that is busy now.
fn finish_by_waiting(offers: &[Offer], ready: &Offer, ahead: usize) -> Option<u128> {
    /// Answers are counted over this many microseconds.
    const SPAN: u128 = 1_000_000_000_000;
    let quicker = |one: &&Offer| {
        !one.is_ready()
            && one.rank() <= ready.rank()
            && one.expected_latency() < ready.expected_latency()
    };
    let quick = || offers.iter().filter(quicker);
    let first = quick().map(|one| micros(one.free_in) + micros(one.expected_latency())).min()?;
    let answers: u128 = quick().map(|one| SPAN / one.turn()).sum();
    Some(first + SPAN * (cast(ahead) + 1) / answers.max(1))
}

fn micros(time: Duration) -> u128 {
    time.as_micros()
}

fn cast(count: usize) -> u128 {
    u128::try_from(count).unwrap_or(u128::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn offer(at: usize, typical_latency: u32, in_flight: usize) -> Offer {
        Offer {
            at,
            failures: 0,
            typical_latency: (typical_latency > 0).then_some(MS * typical_latency),
            in_flight,
            concurrency: 8,
            youngest: Duration::ZERO,
            free_in: Duration::ZERO,
            is_cooling_down: false,
            spacing: Duration::ZERO,
        }
    }

    #[test]
    fn a_slow_one_waits_for_a_queue_that_is_longer_than_its_answer() {
        // Eight places of 80 ms give an answer every 10 ms: 392 requests and their wait take 4 s.
        let offers = [offer(0, 80, 8), offer(1, 4_000, 0)];
        assert_eq!(choose(&offers, 0), None);
        assert_eq!(choose(&offers, 390), None);
        assert_eq!(choose(&offers, 392), Some(1));
        assert_eq!(choose(&[offer(0, 80, 7), offer(1, 4_000, 0)], 1_000), Some(0));
    }

    #[test]
    fn equals_share_and_one_that_fails_comes_last() {
        assert_eq!(choose(&[offer(0, 80, 3), offer(1, 80, 2)], 0), Some(1));
        let failing = Offer { failures: 1, ..offer(1, 10, 0) };
        assert_eq!(choose(&[offer(0, 80, 3), failing], 0), Some(0));
        assert_eq!(choose(&[offer(0, 80, 8), failing], 0), Some(1), "rather than none");
    }

    #[test]
    fn one_that_rests_is_not_waited_for_longer_than_the_other_takes() {
        let resting = |ms| Offer { free_in: MS * ms, ..offer(0, 80, 0) };
        assert_eq!(choose(&[resting(30_000), offer(1, 4_000, 0)], 0), Some(1));
        assert_eq!(choose(&[resting(1_000), offer(1, 4_000, 0)], 0), None);
    }

    #[test]
    fn one_that_has_fallen_silent_is_not_waited_for() {
        let silent = Offer { youngest: MS * 6_000, ..offer(0, 80, 8) };
        assert_eq!(choose(&[silent, offer(1, 4_000, 0)], 0), Some(1));
    }

    #[test]
    fn an_unknown_one_is_measured_by_one_request_that_is_not_the_next() {
        let (known, unknown) = (offer(0, 80, 8), offer(1, 0, 0));
        assert_eq!(choose(&[known, unknown], 0), None);
        assert_eq!(choose(&[known, unknown], 1), Some(1));
        assert_eq!(choose(&[known, Offer { in_flight: 1, ..unknown }], 1), None);
        assert_eq!(choose(&[offer(0, 0, 1), unknown], 0), Some(1), "no latency is known");
    }

    #[test]
    fn a_second_opinion_is_worth_a_wait_and_a_second_try_is_not() {
        let (fast, slow) = (offer(0, 80, 8), offer(1, 4_000, 0));
        let places = |offers: Vec<Offer>| offers.iter().map(|one| one.at).collect::<Vec<_>>();
        assert_eq!(places(without_avoided(vec![fast, slow], 0, true)), [1]);
        assert_eq!(places(without_avoided(vec![fast, slow], 0, false)), [0, 1]);
        assert_eq!(places(without_avoided(vec![fast, offer(1, 300, 0)], 0, false)), [1]);
        let resting = Offer { is_cooling_down: true, ..slow };
        assert_eq!(places(without_avoided(vec![fast, resting], 0, true)), [0, 1]);
    }

    fn any_offer() -> impl Strategy<Value = Offer> {
        let ms = || (0_u32..5_000).prop_map(|ms| MS * ms);
        let typical_latency = proptest::option::of((1_u32..5_000).prop_map(|ms| MS * ms));
        let rest = prop_oneof![Just(Duration::ZERO), ms()];
        (0_u32..4, typical_latency, 0_usize..10, 1_usize..10, ms(), rest, ms()).prop_map(
            |(failures, typical_latency, in_flight, concurrency, youngest, free_in, spacing)| {
                Offer {
                    at: 0,
                    failures,
                    typical_latency,
                    in_flight,
                    concurrency,
                    youngest,
                    free_in,
                    is_cooling_down: false,
                    spacing,
                }
            },
        )
    }

    proptest! {
        /// The chosen endpoint always has a free place; if the call waits instead, it waits for a
        /// faster endpoint, which has a place for it.
        #[test]
        fn a_place_is_used_or_worth_the_wait(
            mut offers in proptest::collection::vec(any_offer(), 1..5),
            ahead in 0_usize..2_000,
        ) {
            offers.iter_mut().enumerate().for_each(|(at, one)| one.at = at);
            let free = |one: &Offer| one.free_in.is_zero() && one.in_flight < one.concurrency;
            let any_free = offers.iter().any(free);
            if let Some(at) = choose(&offers, ahead) {
                prop_assert!(free(&offers[at]));
            } else {
                let busy_one_is_quicker = offers.iter().filter(|one| !free(one)).any(|busy| {
                    offers.iter().filter(|one| free(one)).all(|one| {
                        busy.typical_latency.unwrap_or(PRESUMED_LATENCY) < one.typical_latency.unwrap_or(PRESUMED_LATENCY)
                            || busy.failures < one.failures
                    })
                });
                prop_assert!(!any_free || busy_one_is_quicker);
            }
            if any_free {
                prop_assert!(choose(&offers, 100_000_000).is_some(), "a queue always ends");
            }
        }
    }
}
