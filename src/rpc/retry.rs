//! What follows from an attempt: a retry or the final error for the caller, and the observations
//! that are recorded for the endpoint.

use std::time::Duration;

use tokio::time::Instant;

use super::classify::{is_time_out, may_be_of_call};
use super::endpoint::{Endpoint, EndpointId};
use super::endpoint_set::EndpointSet;
use super::error::{Result, UpstreamError};
use super::policy::RetryDecision::{
    self, Fatal, ReduceBatch, ReduceRange, Refused, Retry, RetryElsewhere, SlowDown, Unknown,
    Unsupported,
};
use super::policy::{self, Failure};
use super::pool::{CallOptions, Pool};
use super::refusals::{Logged, RefusalKind};
use super::scheduler::Needs;

/// Failed attempts of one call that count against the endpoint, where it answers with an error that
/// may be of the call: it is up.
const REPEATED_FAILURES: u32 = 3;

#[derive(Clone, Copy)]
pub(super) struct PendingCall {
    /// Its index in the caller's list.
    pub(super) at: usize,
    attempts: u32,
    /// Attempts that failed, including those answered by a request to slow down.
    failures: u32,
    since: Instant,
    /// Time of all attempts and pauses, without the time in the queue, and without timed-out
    /// batches that are retried as smaller ones: those end with single calls.
    time_spent: Duration,
    avoid: Option<EndpointId>,
    /// Endpoints that lacked the data or answered with an unknown error in this round.
    pub(super) without: EndpointSet,
    rounds: u32,
    has_unknown_error: bool,
    /// Whether some failure concerned the endpoint rather than the call.
    has_endpoint_failure: bool,
}

impl PendingCall {
    pub(super) fn new(at: usize, options: &CallOptions) -> Self {
        Self {
            at,
            attempts: 0,
            failures: 0,
            since: Instant::now(),
            time_spent: Duration::ZERO,
            avoid: options.avoid,
            without: EndpointSet::default(),
            rounds: 0,
            has_unknown_error: false,
            has_endpoint_failure: false,
        }
    }

    fn after(self, sent: Sent) -> Self {
        let (attempts, time_spent) = (self.attempts + 1, self.time_spent + sent.took);
        Self { attempts, time_spent, avoid: Some(sent.endpoint), ..self }
    }

    /// Whether the call failed at several attempts before, and now with an error of its own.
    pub(super) fn fails_repeatedly(&self, failure: &Failure) -> bool {
        self.failures >= REPEATED_FAILURES && may_be_of_call(failure)
    }

    pub(super) fn needs(&self, options: &CallOptions, method: &'static str, calls: usize) -> Needs {
        Needs {
            lane: options.lane.clone(),
            on: options.on,
            avoid: self.avoid,
            is_confirmation: self.attempts == 0 && self.avoid.is_some() && !options.in_time,
            without: self.without.union(options.without),
            method,
            calls,
            is_hedge: false,
            is_replaceable: options.is_replaceable,
            since: self.since,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) endpoint: EndpointId,
    /// The request's number in the pool.
    pub(super) request: u64,
    pub(super) calls: usize,
    pub(super) began: Instant,
    pub(super) took: Duration,
    /// The cooldown that the endpoint requests.
    pub(super) cooldown: Option<Duration>,
}

pub(super) struct Observation {
    pub(super) decision: RetryDecision,
    pub(super) method: &'static str,
    pub(super) failure: Failure,
    /// The call alone has failed so often that this shows nothing more about the endpoint.
    pub(super) is_repeated: bool,
}

impl Pool {
    /// Decides about a call without a result: retry with a pause, or its final error.
    pub(super) fn decide_retry(
        &self,
        open: PendingCall,
        options: &CallOptions,
        sent: Sent,
        observation: &Observation,
    ) -> Result<(PendingCall, Duration)> {
        let Observation { decision, method, failure, .. } = observation;
        let limits = &self.inner.limits;
        let mut again = open.after(sent);
        if is_time_out(failure) && self.has_smaller_batch(sent) {
            again.time_spent = open.time_spent;
        }
        let is_own = options.fails_soon && open.failures > 0 && may_be_of_call(failure);
        match decision {
            Fatal | ReduceRange => return Err(failure.refusal(self.label(sent.endpoint))),
            ReduceBatch => return Ok((again, Duration::ZERO)),
            RetryElsewhere => again.without.insert(sent.endpoint),
            Unknown | Retry if is_own || *decision == Unknown => {
                again.has_unknown_error = true;
                again.without.insert(sent.endpoint);
            }
            Unknown | Retry | SlowDown | Refused => again.has_endpoint_failure = true,
            Unsupported => {}
        }
        let mut pause = Duration::ZERO;
        if again.without != EndpointSet::default() && !self.is_servable(again, options, method) {
            again.rounds += 1;
            if !again.has_unknown_error && !again.has_endpoint_failure
                || again.rounds >= limits.unknown_rounds
            {
                return Err(self.final_error(&again, sent, observation));
            }
            again.without = EndpointSet::default();
            pause = self.backoff(again.rounds);
        }
        if again.attempts >= limits.attempts_max || again.time_spent >= limits.retry_time_max {
            return Err(self.final_error(&again, sent, observation));
        }
        // Refusals do not count here: they disable the method by themselves.
        let is_passing = decision.is_failure() || *decision == SlowDown;
        again.failures += u32::from(is_passing);
        if is_passing
            && again.failures >= limits.replaceable_failures_max
            && self.inner.admission.is_replaced(&open.needs(options, method, 1))
        {
            // An endpoint that asks for fewer requests has not failed: the caller sees no attempts.
            let attempts = if decision.is_failure() { again.attempts } else { 0 };
            let last = format!("{}: {}", self.label(sent.endpoint), failure.log_text());
            return Err(UpstreamError::Unavailable { attempts, last });
        }
        if *decision == Retry && !is_own {
            pause = pause.max(self.pause(&again.needs(options, method, 1), again.attempts));
        }
        // For the other decisions the endpoint's own cooldown is the pause; another endpoint may
        // serve the call at once.
        again.time_spent += pause;
        Ok((again, pause))
    }

    /// Whether an endpoint is left that this round has not asked.
    fn is_servable(&self, open: PendingCall, options: &CallOptions, method: &'static str) -> bool {
        let needs = open.needs(options, method, 1);
        self.inner.admission.is_servable(&needs, options.fails_soon && open.has_unknown_error)
    }

    /// Whether the endpoint's batch size has since become smaller than the request's.
    fn has_smaller_batch(&self, sent: Sent) -> bool {
        let admission = &self.inner.admission;
        admission.with(sent.endpoint, |endpoint| endpoint.batch < sent.calls).unwrap_or(false)
    }

    /// The final error: that of the request if all endpoints rejected it and nothing else went
    /// wrong, else that no endpoint could serve it.
    fn final_error(&self, open: &PendingCall, sent: Sent, shown: &Observation) -> UpstreamError {
        let Observation { decision, method, failure, .. } = shown;
        let (label, is_clear) = (self.label(sent.endpoint), !open.has_endpoint_failure);
        match decision {
            RetryElsewhere if is_clear => return failure.refusal(label),
            Unknown if is_clear && open.rounds > 0 && failure.may_be_final() => {
                return failure.refusal(label);
            }
            Unsupported if is_clear && !open.has_unknown_error => {
                return UpstreamError::NotSupported { method: (*method).to_owned() };
            }
            Refused => {
                let (method, reason) = ((*method).to_owned(), failure.log_text());
                return UpstreamError::Refused { endpoint: label, method, reason };
            }
            RetryElsewhere | Unknown | Unsupported | SlowDown | Retry | ReduceBatch
            | ReduceRange | Fatal => {}
        }
        let last = format!("{label}: {}", failure.log_text());
        UpstreamError::Unavailable { attempts: open.attempts, last }
    }

    /// The backoff before the next attempt; zero while there are endpoints that this round has not
    /// tried.
    fn pause(&self, needs: &Needs, attempts: u32) -> Duration {
        let choices = u32::try_from(self.inner.admission.usable_count(needs)).unwrap_or(1).max(1);
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

    /// Records what a request showed about its endpoint. `worked`: methods that returned a result,
    /// and whether it was null.
    pub(super) fn record_observations(
        &self,
        sent: Sent,
        worked: &[(&'static str, bool)],
        observations: &[Observation],
    ) {
        let (limits, now, jitter) = (&self.inner.limits, Instant::now(), self.random());
        self.inner.admission.with(sent.endpoint, |endpoint| {
            for observation in observations {
                record_observation(endpoint, sent, observation, now);
            }
            for (method, is_null) in worked {
                endpoint.refusals.worked(method, *is_null, sent.began);
            }
            let of = |wanted: fn(RetryDecision) -> bool| {
                observations.iter().rfind(|observation| wanted(observation.decision))
            };
            let slow = of(|decision| decision == SlowDown);
            let failed = of(RetryDecision::is_failure).filter(|_| worked.is_empty());
            // A call on which every node fails must not put the endpoint on cooldown for others.
            let failed = failed.filter(|_| !observations.iter().all(|one| one.is_repeated));
            let fatal = of(|decision| decision == Fatal);
            if let Some(slow) = slow {
                let times = endpoint.slowed_down(slow.failure.to_string(), sent.began, now);
                let own = policy::backoff(times, limits.backoff_min, limits.backoff_max, jitter);
                endpoint.cool_down(sent.cooldown.unwrap_or(own), now);
            } else if let Some(failed) = failed {
                endpoint.failed(failed.failure.log_text(), now);
            } else if !worked.is_empty() || fatal.is_some() || observations.is_empty() {
                endpoint.succeeded(sent.began, sent.took);
            }
        });
        if !observations.is_empty() {
            self.inner.admission.reject_hopeless();
        }
    }
}

fn record_observation(endpoint: &mut Endpoint, sent: Sent, shown: &Observation, now: Instant) {
    let Endpoint { refusals, limits, .. } = endpoint;
    let Observation { decision, method, failure, .. } = shown;
    let times = (sent.began, now);
    match decision {
        ReduceBatch => endpoint.reduce_batch(sent.calls / 2, now),
        Unsupported => {
            refusals.refused(RefusalKind::Unsupported, method, times, limits);
            endpoint.last_error = Some(failure.log_text());
        }
        Refused => {
            refusals.refused(RefusalKind::Denied, method, times, limits);
            endpoint.last_error = Some(failure.log_text());
            if endpoint.refusals.is_log_due(Logged::Denied, now) {
                let (label, words) = (&endpoint.label, failure.log_text());
                tracing::warn!(endpoint = %label, method, reason = %words,
                    "endpoint refuses requests for lack of a key, a plan or a quota: disabled with growing pauses; check its key and plan");
            }
        }
        RetryElsewhere => refusals.lacked(method, now + limits.lacking_cooldown),
        Unknown => {
            if endpoint.refusals.is_log_due(Logged::Unknown, now) {
                let (label, words) = (&endpoint.label, failure.log_text());
                tracing::warn!(endpoint = %label, method, reason = %words,
                    "endpoint answers with an unknown error: counted as its failure, other endpoints are asked");
            }
        }
        Retry if is_time_out(failure) => endpoint.timed_out(sent.calls, now),
        SlowDown | Retry | ReduceRange | Fatal => {}
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use serde_json::json;

    use super::*;
    use crate::rpc::limits::PoolLimits;
    use crate::rpc::scripted::{NodeFault, ScriptedNodes, options, rpc};

    /// Sends `count` calls at once to the first of two endpoints, which fails them all; returns the
    /// time until the last of them has ended.
    async fn calls(is_replaceable: bool, fault: NodeFault, count: usize) -> Duration {
        let nodes = ScriptedNodes::new(move |(_, _, body)| rpc(body, |_, _| Err(fault)));
        let pool = nodes.pool(&["fails", "works"]);
        let options = CallOptions { is_replaceable, ..options().first_on(EndpointId(0)) };
        let began = Instant::now();
        let calls = (0..count).map(|_| pool.call("logs", json!([]), &options));
        assert!(join_all(calls).await.iter().all(Result::is_err));
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_is_named_next_to_others_is_given_up_soon() {
        let soon = PoolLimits::default().replaceable_wait;
        let unknown = NodeFault::Rpc(0, "Missed `to` address");
        let slow_down = NodeFault::Rpc(429, "too many requests");
        for fault in [unknown, slow_down, NodeFault::Broken] {
            for count in [1, 8, 50] {
                let took = calls(true, fault, count).await;
                assert!(took <= soon, "{fault:?} {count}: {took:?}");
            }
            assert!(calls(false, fault, 8).await > soon, "{fault:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_is_named_is_not_given_up_while_the_others_are_on_cooldown() {
        let nodes = ScriptedNodes::new(|(_, _, body)| rpc(body, |_, _| Err(NodeFault::Broken)));
        let pool = nodes.pool(&["alone", "rests"]);
        pool.cool_down(EndpointId(1), PoolLimits::default().retry_time_max);
        let began = Instant::now();
        let answer = pool.call("logs", json!([]), &options().first_on(EndpointId(0))).await;
        assert!(answer.is_err() && began.elapsed() > PoolLimits::default().replaceable_wait);
    }
}
