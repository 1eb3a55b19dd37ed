//! Whether look-ups of one thing fail by themselves, or the endpoints fail.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::classify::is_unknown;
use super::error::{Result, UpstreamError};
use super::pool::CallOptions;

/// Longest wait for a probe: longer than the cooldown of an endpoint that has just failed.
const PROBE_WAIT: Duration = Duration::from_secs(10);

/// The failures of look-ups of one thing. They are its own if a probe, which is a look-up of the
/// same kind of another thing, is answered between two of them: one that is answered after the last
/// failure may only show that an outage has ended.
pub(crate) struct OwnFailure {
    options: CallOptions,
    is_answering: bool,
    attempts_max: u32,
    /// When the present attempt began, and how long all retries take.
    began: Instant,
    time_max: Duration,
}

impl OwnFailure {
    pub(crate) fn new(options: &CallOptions, (attempts_max, time_max): (u32, Duration)) -> Self {
        let (options, began) = (options.failing_soon(), Instant::now());
        Self { options, is_answering: false, attempts_max, began, time_max }
    }

    /// The options of the next attempt: after an unanswered probe with all retries.
    pub(crate) fn options(&self) -> &CallOptions {
        &self.options
    }

    /// Records a failure that may be of the look-up. `true`: it is; `false`: another attempt is
    /// due.
    ///
    /// # Errors
    ///
    /// The failure, if no probe is answered after all retries, or no longer.
    pub(crate) async fn is_certain(
        &mut self,
        error: UpstreamError,
        is_answering: impl Future<Output = bool>,
    ) -> Result<bool> {
        let has_time = self.began.elapsed() < self.time_max;
        // An outage that began after the last probe does not count against the look-up.
        if std::mem::replace(&mut self.is_answering, is_answering.await) {
            return if self.is_answering { Ok(true) } else { Err(error) };
        }
        let left = |attempts| has_time && attempts < self.attempts_max;
        let had_all =
            matches!(&error, UpstreamError::Unavailable { attempts, .. } if !left(*attempts));
        if !self.is_answering && (had_all || !self.options.fails_soon) {
            return Err(error);
        }
        self.began = Instant::now();
        self.options.fails_soon = self.is_answering;
        Ok(false)
    }
}

/// Whether a probe is answered in time, if only with the error that there is no such thing.
pub(crate) async fn is_answered<T>(probe: impl Future<Output = Result<T>>) -> bool {
    let answer = timeout(PROBE_WAIT, probe).await;
    answer.is_ok_and(|answer| answer.err().is_none_or(|error| is_unknown(&error)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rpc::scripted::{NodeFault, ScriptedNodes, options, rpc};
    use crate::rpc::{Call, CallAnswer, EndpointId};

    const ONE: NodeFault = NodeFault::Rpc(-32603, "internal error");

    /// How an endpoint fails: an error of the call, or a status.
    type Failing = Result<NodeFault, u16>;

    /// Looks up the numbers 1 to 3. `fails` decides by host, number and time since the start how a
    /// host fails, if at all.
    async fn look_ups(
        hosts: &[&str],
        fails: impl Fn(&str, u64, Duration) -> Option<Failing> + Send + Sync + 'static,
    ) -> Result<Vec<CallAnswer>> {
        let began = Instant::now();
        let nodes = ScriptedNodes::new(move |(host, _, body)| {
            let of = |number| fails(host, number, began.elapsed());
            if let Some(Err(status)) = of(0) {
                return (status, json!("unavailable"));
            }
            rpc(body, |_, params| match of(params[0].as_u64().unwrap()) {
                Some(Ok(fault)) => Err(fault),
                Some(Err(_)) | None => Ok(params[0].clone()),
            })
        });
        let calls = [1, 2, 3].map(|number| Call { method: "byId", params: json!([number]) });
        let probe: Value = json!([0]);
        nodes.pool(hosts).batch_of_own(&calls, &probe, &options()).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_up_that_fails_for_ever_is_known_soon() {
        for hosts in [&["one"][..], &["one", "other", "third"]] {
            for fault in [ONE, NodeFault::Rpc(7, "rlp: element is larger")] {
                let began = Instant::now();
                let fails = move |_: &str, number, _| (number == 2).then_some(Ok(fault));
                let answers = look_ups(hosts, fails).await.unwrap();
                let is_given: Vec<bool> = answers.iter().map(CallAnswer::is_ok).collect();
                assert_eq!(is_given, [true, false, true], "{hosts:?} {fault:?}");
                assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
            }
        }
    }

    /// The outage may end while the probe is under way.
    #[tokio::test(start_paused = true)]
    async fn an_outage_that_passes_sets_no_look_up_aside() {
        for passes in [1, 2, 4, 8].map(Duration::from_secs) {
            let errors = move |_: &str, _, at: Duration| (at < passes).then_some(Ok(ONE));
            let statuses = move |_: &str, _, at: Duration| (at < passes).then_some(Err(503));
            for hosts in [&["one"][..], &["one", "other"]] {
                let by_errors = look_ups(hosts, errors).await.unwrap();
                assert!(by_errors.iter().all(Result::is_ok), "{passes:?}: {by_errors:?}");
                let by_status = look_ups(hosts, statuses).await.unwrap();
                assert!(by_status.iter().all(Result::is_ok), "{passes:?}: {by_status:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn endpoints_that_stay_away_or_refuse_set_no_look_up_aside() {
        let slow_down = NodeFault::Rpc(429, "too many requests");
        for fault in [Ok(ONE), Ok(slow_down), Ok(NodeFault::Broken), Err(503), Err(429)] {
            let answers = look_ups(&["one", "other"], move |_, _, _| Some(fault)).await;
            assert!(answers.is_err(), "{fault:?}: {answers:?}");
        }
    }

    /// A call on which a good endpoint failed once does not end because the other one refuses it.
    #[tokio::test(start_paused = true)]
    async fn one_error_next_to_an_endpoint_that_refuses_ends_nothing() {
        for status in [401, 403, 429] {
            let fails = move |host: &str, number, at: Duration| match host {
                "refuses" => Some(Err(status)),
                _ => (number == 2 && at < Duration::from_millis(100)).then_some(Ok(ONE)),
            };
            let answers = look_ups(&["good", "refuses"], fails).await.unwrap();
            assert!(answers.iter().all(Result::is_ok), "{status}: {answers:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_that_begins_after_the_probe_sets_no_look_up_aside() {
        for status in [503, 429] {
            let fails = move |_: &str, number, at: Duration| {
                let is_out = at >= Duration::from_secs(2);
                is_out.then_some(Err(status)).or((number > 0).then_some(Ok(ONE)))
            };
            let answers = look_ups(&["one", "other"], fails).await;
            assert!(answers.is_err(), "{status}: {answers:?}");
        }
    }

    /// Nothing waits for an endpoint that has failed all the time.
    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_is_down_does_not_keep_a_failure_open() {
        let nodes = ScriptedNodes::new(|(host, _, body)| {
            let fault = if host == "down" { NodeFault::Broken } else { ONE };
            let fails = |params: &Value| host == "down" || params[0] == 1;
            rpc(body, |_, params| if fails(params) { Err(fault) } else { Ok(json!(7)) })
        });
        let (pool, on_it) = (nodes.pool(&["down", "fails"]), options().first_on(EndpointId(0)));
        for _ in 0..3 {
            assert!(pool.call("byId", json!([0]), &on_it).await.is_err());
        }
        tokio::time::sleep(Duration::from_secs(31)).await;
        let (began, call) = (Instant::now(), Call { method: "byId", params: json!([1]) });
        let answers = pool.batch_of_own(&[call], &json!([0]), &options()).await.unwrap();
        assert!(answers.iter().all(CallAnswer::is_err), "{answers:?}");
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    }

    /// An endpoint that is unavailable for a while may have the answer on which another one fails.
    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_is_away_is_waited_for() {
        for away in [Ok(NodeFault::Broken), Err(503)] {
            let fails = move |host: &str, number, at: Duration| match host {
                "away" => (at < Duration::from_secs(5)).then_some(away),
                _ => (number == 2).then_some(Ok(ONE)),
            };
            let answers = look_ups(&["away", "fails"], fails).await.unwrap();
            assert!(answers.iter().all(Result::is_ok), "{away:?}: {answers:?}");
        }
    }
}
