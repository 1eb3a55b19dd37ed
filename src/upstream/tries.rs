//! What follows from a try: another one, the final error, and what is remembered of the endpoint.

use std::time::Duration;

use tokio::time::Instant;

use super::endpoint::{EndpointId, EndpointSet};
use super::error::UpstreamError;
use super::policy::{self, Failure, Verdict};
use super::pool::{CallOptions, Pool};
use super::queue::Needs;

/// A call that has no result yet.
#[derive(Clone, Copy)]
pub(super) struct Open {
    /// Its place in the caller's list.
    pub(super) at: usize,
    attempts: u32,
    since: Instant,
    /// All tries and pauses, without the time in the queue.
    spent: Duration,
    avoid: Option<EndpointId>,
    /// Those who said that they do not have it.
    pub(super) without: EndpointSet,
}

impl Open {
    pub(super) fn new(at: usize, options: &CallOptions) -> Self {
        Self {
            at,
            attempts: 0,
            since: Instant::now(),
            spent: Duration::ZERO,
            avoid: options.avoid,
            without: EndpointSet::default(),
        }
    }

    pub(super) fn needs(&self, options: &CallOptions, method: &'static str, calls: usize) -> Needs {
        Needs {
            lane: options.lane.clone(),
            on: options.on,
            avoid: self.avoid,
            is_opinion: self.attempts == 0 && self.avoid.is_some() && !options.in_time,
            without: self.without,
            method,
            calls,
            is_second: false,
            since: self.since,
        }
    }
}

/// A request that has ended.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) endpoint: EndpointId,
    pub(super) calls: usize,
    pub(super) began: Instant,
    pub(super) took: Duration,
    /// How long the endpoint asks to be left alone.
    pub(super) rest: Option<Duration>,
}

/// A call of it that gave no result.
pub(super) struct Lesson {
    pub(super) verdict: Verdict,
    pub(super) method: &'static str,
    pub(super) failure: Failure,
}

impl Pool {
    /// The call once more with its pause, or its final error.
    pub(super) fn next_try(
        &self,
        open: Open,
        options: &CallOptions,
        sent: Sent,
        lesson: &Lesson,
    ) -> Result<(Open, Duration), UpstreamError> {
        let Lesson { verdict, method, failure } = lesson;
        let limits = &self.inner.limits;
        let attempts = open.attempts + 1;
        let spent = open.spent + sent.took;
        let mut again = Open { attempts, spent, avoid: Some(sent.endpoint), ..open };
        match verdict {
            Verdict::Final => return Err(failure.refusal(self.label(sent.endpoint))),
            Verdict::SmallerBatch => return Ok((again, Duration::ZERO)),
            Verdict::Elsewhere => again.without.insert(sent.endpoint),
            Verdict::SlowDown | Verdict::Again | Verdict::NotOffered => {}
        }
        let needs = again.needs(options, method, 1);
        if *verdict == Verdict::Elsewhere && !self.inner.admission.is_servable(&needs) {
            return Err(failure.refusal(self.label(sent.endpoint)));
        }
        if attempts >= limits.attempts_max || spent >= limits.retry_time_max {
            let last = format!("{}: {failure}", self.label(sent.endpoint));
            return Err(UpstreamError::Unavailable { attempts, last });
        }
        let pause = match verdict {
            Verdict::Again => self.pause(&needs, attempts),
            // The endpoint's own rest is the pause; another endpoint may take it at once.
            Verdict::SlowDown
            | Verdict::NotOffered
            | Verdict::SmallerBatch
            | Verdict::Elsewhere
            | Verdict::Final => Duration::ZERO,
        };
        again.spent += pause;
        Ok((again, pause))
    }

    /// None while there are endpoints that were not asked in this round.
    fn pause(&self, needs: &Needs, attempts: u32) -> Duration {
        let choices = u32::try_from(self.inner.admission.choices(needs)).unwrap_or(1).max(1);
        if attempts.is_multiple_of(choices) {
            self.backoff(attempts / choices)
        } else {
            Duration::ZERO
        }
    }

    fn backoff(&self, attempt: u32) -> Duration {
        let limits = &self.inner.limits;
        policy::backoff(attempt, limits.backoff_min, limits.backoff_max, self.random())
    }

    /// Remembers what a request told about its endpoint; `works` where it had a result.
    pub(super) fn learn(&self, sent: Sent, works: bool, lessons: &[Lesson]) {
        let limits = &self.inner.limits;
        let now = Instant::now();
        let of = |verdict| lessons.iter().filter(move |lesson| lesson.verdict == verdict);
        let slow = of(Verdict::SlowDown).next_back();
        let failed = of(Verdict::Again).next_back().filter(|_| !works);
        let jitter = self.random();
        self.inner.admission.with(sent.endpoint, |endpoint| {
            if of(Verdict::SmallerBatch).next().is_some() {
                endpoint.batch = endpoint.batch.min((sent.calls / 2).max(1));
            }
            for absent in of(Verdict::NotOffered) {
                endpoint.does_not_offer(absent.method, now + limits.not_offered_rest);
            }
            if let Some(slow) = slow {
                let times = endpoint.slowed_down(slow.failure.to_string(), sent.began, now);
                let own = policy::backoff(times, limits.backoff_min, limits.backoff_max, jitter);
                endpoint.rest(sent.rest.unwrap_or(own), now);
            } else if let Some(failed) = failed {
                endpoint.failed(failed.failure.to_string(), limits, now);
            } else {
                endpoint.succeeded(sent.began, sent.took);
            }
        });
        if !lessons.is_empty() {
            self.inner.admission.refuse_hopeless();
        }
    }
}
