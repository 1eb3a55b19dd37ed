//! Limits of callers: token buckets for requests, counted permits for concurrent work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::domain::lock;
use tokio::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestRate {
    /// Time to refill one request.
    interval: Duration,
    burst: u64,
}

/// The state of a bucket after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateState {
    pub(super) burst: u64,
    /// Time to fill an empty bucket.
    pub(super) window_seconds: u64,
    pub(super) remaining: u64,
    /// Time to fill this bucket.
    pub(super) reset_seconds: u64,
}

impl RequestRate {
    /// `millis` are requests per 1,000 seconds, 0 counts as 1; `saved` is the time whose requests
    /// form the burst.
    pub(super) fn new(millis: u64, saved: Duration) -> Self {
        let millis = millis.max(1);
        let saved = u64::try_from(saved.as_millis()).unwrap_or(u64::MAX);
        let burst = (saved.saturating_mul(millis) / 1_000_000).max(1);
        Self { interval: Duration::from_nanos(1_000_000_000_000 / millis), burst }
    }
}

/// A token bucket, stored as the time at which it is full again.
#[derive(Debug, Default)]
pub(super) struct Bucket(Mutex<Option<Instant>>);

impl Bucket {
    /// Takes `count` requests or none; the error holds the wait until all of them fit. More than
    /// the burst never fit.
    pub(super) fn take(
        &self,
        count: u32,
        rate: RequestRate,
        now: Instant,
    ) -> Result<RateState, (RateState, Duration)> {
        let mut full_at = lock(&self.0);
        let window = rate.interval.saturating_mul(u32::try_from(rate.burst).unwrap_or(u32::MAX));
        let used = full_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let state = |used: Duration| {
            let requests = window.saturating_sub(used).as_nanos() / rate.interval.as_nanos().max(1);
            RateState {
                burst: rate.burst,
                window_seconds: whole_seconds(window),
                remaining: u64::try_from(requests).unwrap_or(u64::MAX),
                reset_seconds: whole_seconds(used),
            }
        };
        let after = used.saturating_add(rate.interval.saturating_mul(count));
        if after > window {
            return Err((state(used), after.saturating_sub(window)));
        }
        *full_at = Some(now + after);
        Ok(state(after))
    }
}

/// Rounded up, so that a client that waits this long waits long enough.
pub(super) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Counted permits; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Permits(Arc<AtomicUsize>);

/// One permit, returned on drop.
#[derive(Debug)]
pub(super) struct Permit(Arc<AtomicUsize>);

impl Permits {
    /// `None` if `max` are taken.
    pub(super) fn take(&self, max: usize) -> Option<Permit> {
        let one_more = |taken: usize| (taken < max).then_some(taken + 1);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.ok().map(|_| Permit(Arc::clone(&self.0)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_full_bucket_gives_its_burst_and_then_one_per_interval() {
        let (bucket, start) = (Bucket::default(), Instant::now());
        let rate = RequestRate::new(4000, SECOND);
        for left in [3, 2, 1, 0] {
            let state = bucket.take(1, rate, start).unwrap();
            assert_eq!((state.burst, state.window_seconds, state.remaining), (4, 1, left));
        }
        let (state, wait) = bucket.take(1, rate, start).unwrap_err();
        assert_eq!((state.remaining, state.reset_seconds), (0, 1));
        assert_eq!(wait, Duration::from_millis(250));
        assert!(bucket.take(1, rate, start + Duration::from_millis(249)).is_err());
        assert!(bucket.take(1, rate, start + Duration::from_millis(250)).is_ok());
        assert!(bucket.take(1, rate, start + Duration::from_millis(250)).is_err());
        assert_eq!(bucket.take(1, rate, start + 60 * SECOND).unwrap().remaining, 3);
    }

    #[test]
    fn half_a_request_a_second_is_one_in_two() {
        let (bucket, start) = (Bucket::default(), Instant::now());
        let rate = RequestRate::new(500, SECOND);
        assert_eq!(bucket.take(1, rate, start).unwrap().window_seconds, 2);
        assert_eq!(bucket.take(1, rate, start + SECOND).unwrap_err().1, SECOND);
        assert!(bucket.take(1, rate, start + 2 * SECOND).is_ok());
    }

    #[test]
    fn several_are_taken_together_or_not_at_all() {
        let (bucket, start) = (Bucket::default(), Instant::now());
        let rate = RequestRate::new(4000, SECOND);
        assert_eq!(bucket.take(3, rate, start).unwrap().remaining, 1);
        let (state, wait) = bucket.take(4, rate, start).unwrap_err();
        assert_eq!((state.remaining, wait), (1, Duration::from_millis(750)));
        assert_eq!(bucket.take(1, rate, start).unwrap().remaining, 0, "the list took nothing");
        assert!(bucket.take(4, rate, start + SECOND).is_ok(), "a whole burst");
    }

    #[test]
    fn extreme_rates_do_no_harm() {
        let start = Instant::now();
        for millis in [0, 1, u64::MAX] {
            let rate = RequestRate::new(millis, SECOND);
            assert!(Bucket::default().take(1, rate, start).is_ok(), "{millis}");
        }
    }

    #[test]
    fn a_permit_comes_back_when_it_is_dropped() {
        let permits = Permits::default();
        let first = permits.take(2).unwrap();
        let _second = permits.take(2).unwrap();
        assert!(permits.take(2).is_none());
        drop(first);
        assert_eq!(permits.0.load(Ordering::Relaxed), 1);
        assert!(permits.take(2).is_some());
    }
}
