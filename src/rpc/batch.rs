//! JSON-RPC calls, one or many: in batches, each call with its own result.
//!
//! Not guaranteed: that a call is sent once. All calls only read.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use super::classify::classify;
use super::endpoint::EndpointId;
use super::endpoint_set::EndpointSet;
use super::error::{Result, UpstreamError};
use super::jsonrpc::{self, Call, DecodeError, RpcError};
use super::own_failure::{OwnFailure, is_answered};
use super::policy::Failure;
use super::pool::{CallOptions, Pool};
use super::retry::{Observation, PendingCall, Sent};
use super::transport::{Ask, Received};

#[derive(Debug)]
pub struct CallResponse {
    pub result: Box<RawValue>,
    pub endpoint: EndpointId,
    /// Number of the request that contained the call: results with the same number are one
    /// server's.
    pub request: u64,
}

pub(crate) type CallAnswer = Result<CallResponse>;

#[derive(Default)]
struct BatchOutcome {
    /// `None` if no request was sent.
    sent: Option<Sent>,
    outcomes: Vec<(PendingCall, Result<Box<RawValue>, Observation>)>,
    refused: Vec<(PendingCall, UpstreamError)>,
    unsent: Vec<PendingCall>,
}

impl Pool {
    pub async fn call(
        &self,
        method: &'static str,
        params: Value,
        options: &CallOptions,
    ) -> CallAnswer {
        let mut answers = self.batch(&[Call { method, params }], options).await;
        answers.pop().unwrap_or(Err(UpstreamError::NoEndpoint))
    }

    /// Makes many calls; results are in the order of `calls`, one each. Split by the endpoints'
    /// batch sizes; a failed call is retried by itself.
    pub async fn batch(&self, calls: &[Call], options: &CallOptions) -> Vec<CallAnswer> {
        let mut results: Vec<Option<CallAnswer>> = calls.iter().map(|_| None).collect();
        let mut in_flight = FuturesUnordered::new();
        let all: Vec<PendingCall> =
            (0..calls.len()).map(|at| PendingCall::new(at, options)).collect();
        for group in self.split_into_batches(all) {
            in_flight.push(self.send_batch(calls, group, options, Duration::ZERO));
        }
        while let Some(outcome) = in_flight.next().await {
            for (group, pause) in self.record_outcome(calls, options, outcome, &mut results) {
                in_flight.push(self.send_batch(calls, group, options, pause));
            }
        }
        results.into_iter().map(|one| one.unwrap_or(Err(UpstreamError::NoEndpoint))).collect()
    }

    /// Makes look-ups of single things; an error for each that fails by itself: others of its
    /// method, with `probe` as their parameters, are answered. An error if the endpoints fail.
    pub(crate) async fn batch_of_own(
        &self,
        calls: &[Call],
        probe: &Value,
        options: &CallOptions,
    ) -> Result<Vec<CallAnswer>> {
        let mut own = OwnFailure::new(options, self.retries_max());
        let mut answers = self.batch(calls, own.options()).await;
        loop {
            let (mut open, mut last) = (Vec::new(), None);
            for (at, answer) in answers.iter().enumerate() {
                match answer {
                    Err(error) if error.may_be_of_call() => {
                        open.push(at);
                        last = Some(error.clone());
                    }
                    Err(error) => return Err(error.clone()),
                    Ok(_) => {}
                }
            }
            let Some(last) = last else { return Ok(answers) };
            let asked: Vec<Call> = open.iter().filter_map(|at| calls.get(*at)).cloned().collect();
            if own.is_certain(last, self.are_answered(&asked, probe, options)).await? {
                return Ok(answers);
            }
            let again = self.batch(&asked, own.options()).await;
            for (at, answer) in open.into_iter().zip(again) {
                if let Some(place) = answers.get_mut(at) {
                    *place = answer;
                }
            }
        }
    }

    /// Whether a probe of each of the calls' methods is answered now.
    async fn are_answered(&self, calls: &[Call], probe: &Value, options: &CallOptions) -> bool {
        let methods: BTreeSet<&'static str> = calls.iter().map(|call| call.method).collect();
        for method in methods {
            let probe = Call { method, params: probe.clone() };
            if !self.is_answering(probe, options).await {
                return false;
            }
        }
        true
    }

    pub(crate) async fn is_answering(&self, probe: Call, options: &CallOptions) -> bool {
        is_answered(self.call(probe.method, probe.params, options)).await
    }

    /// Splits calls into batches of the current size, each of calls that exclude the same
    /// endpoints.
    fn split_into_batches(&self, open: Vec<PendingCall>) -> Vec<Vec<PendingCall>> {
        let size = self.batch_size();
        let mut alike: BTreeMap<EndpointSet, Vec<PendingCall>> = BTreeMap::new();
        for one in open {
            alike.entry(one.without).or_default().push(one);
        }
        alike.values().flat_map(|all| all.chunks(size).map(<[PendingCall]>::to_vec)).collect()
    }

    async fn send_batch(
        &self,
        calls: &[Call],
        group: Vec<PendingCall>,
        options: &CallOptions,
        pause: Duration,
    ) -> BatchOutcome {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        let method = |open: &PendingCall| calls.get(open.at).map_or("", |call| call.method);
        let Some(first) = group.first() else { return BatchOutcome::default() };
        let needs = first.needs(options, method(first), group.len());
        let permit = match self.inner.admission.admit(needs.clone()).await {
            Ok(permit) => permit,
            Err(error) => {
                // Another endpoint may support the calls of other methods.
                let is_same = |open: &PendingCall| method(open) == needs.method;
                let (same, unsent) = group.into_iter().partition::<Vec<_>, _>(is_same);
                let refused = same.into_iter().map(|open| (open, error.clone())).collect();
                return BatchOutcome { refused, unsent, ..BatchOutcome::default() };
            }
        };
        let now = Instant::now();
        let known = |open: &PendingCall| {
            let offers =
                self.inner.admission.with(permit.endpoint, |e| e.serves(method(open), now));
            offers.unwrap_or(true)
        };
        let (mut sending, mut unsent) = group.into_iter().partition::<Vec<_>, _>(known);
        unsent.extend(sending.split_off(permit.calls.min(sending.len())));
        if sending.is_empty() {
            // The endpoint refused the methods since the permit was granted.
            return BatchOutcome { unsent, ..BatchOutcome::default() };
        }
        let asked: Vec<&Call> = sending.iter().filter_map(|open| calls.get(open.at)).collect();
        let first_id = self.take_ids(asked.len());
        let ask = Ask {
            name: needs.method,
            path: String::new(),
            query: Vec::new(),
            body: Some(Bytes::from(jsonrpc::encode(first_id, &asked))),
        };
        let (sent, received) = self.send_hedged(permit, &needs, &ask, asked.len()).await;
        let secrets = self.secrets(sent.endpoint);
        let outcomes = outcomes_by_call((sending, first_id), received, method, &secrets);
        for (open, outcome) in &outcomes {
            self.count(sent.endpoint, method(open), outcome.is_err());
        }
        BatchOutcome { sent: Some(sent), outcomes, refused: Vec::new(), unsent }
    }

    /// Records results and observations about the endpoint; returns the calls to retry, and when.
    fn record_outcome(
        &self,
        calls: &[Call],
        options: &CallOptions,
        outcome: BatchOutcome,
        results: &mut [Option<CallAnswer>],
    ) -> Vec<(Vec<PendingCall>, Duration)> {
        let BatchOutcome { sent, outcomes, refused, unsent } = outcome;
        for (open, error) in refused {
            set_result(results, open.at, Err(error));
        }
        let mut again: Vec<_> = self
            .split_into_batches(unsent)
            .into_iter()
            .map(|group| (group, Duration::ZERO))
            .collect();
        let Some(sent) = sent else { return again };
        let (mut worked, mut observations, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (open, outcome) in outcomes {
            let method = calls.get(open.at).map_or("", |call| call.method);
            match outcome {
                Ok(result) => {
                    let is_null = result.get().trim() == "null";
                    worked.push((method, is_null));
                    let Sent { endpoint, request, .. } = sent;
                    set_result(results, open.at, Ok(CallResponse { result, endpoint, request }));
                }
                Err(observation) => {
                    observations.push(observation);
                    failed.push(open);
                }
            }
        }
        self.record_observations(sent, &worked, &observations);
        let (mut retry, mut pause) = (Vec::new(), Duration::ZERO);
        for (open, observation) in failed.into_iter().zip(&observations) {
            match self.decide_retry(open, options, sent, observation) {
                Ok((open, wait)) => {
                    pause = pause.max(wait);
                    retry.push(open);
                }
                Err(error) => set_result(results, open.at, Err(error)),
            }
        }
        again.extend(self.split_into_batches(retry).into_iter().map(|group| (group, pause)));
        again
    }
}

fn set_result(results: &mut [Option<CallAnswer>], at: usize, result: CallAnswer) {
    if let Some(place) = results.get_mut(at) {
        *place = Some(result);
    }
}

/// Assigns answers to calls. Errors are classified by their whole text, because masking may remove
/// a part of it; the text that is kept is masked.
fn outcomes_by_call(
    (sending, first_id): (Vec<PendingCall>, u32),
    received: Received,
    method: impl Fn(&PendingCall) -> &'static str,
    secrets: &[String],
) -> Vec<(PendingCall, Result<Box<RawValue>, Observation>)> {
    let in_batch = sending.len() > 1;
    let observe = |open: &PendingCall, failure: &Failure, shown: Failure| {
        let decision = classify(failure, method(open), in_batch);
        let is_repeated = open.fails_repeatedly(failure);
        Observation { decision, method: method(open), failure: shown, is_repeated }
    };
    match match_answers(received, first_id, sending.len()) {
        Ok(answers) => {
            let outcomes = sending.into_iter().zip(answers).map(|(open, answer)| {
                let answer = answer.unwrap_or(Err(Failure::Missing));
                (open, answer.map_err(|failure| observe(&open, &failure, failure.masked(secrets))))
            });
            outcomes.collect()
        }
        Err(failure) => {
            let shown = failure.masked(secrets);
            let outcome = |open| (open, Err(observe(&open, &failure, shown.clone())));
            sending.into_iter().map(outcome).collect()
        }
    }
}

type Entry = Option<Result<Box<RawValue>, Failure>>;

/// Status and body are read separately: an error body may come with any status, and a non-JSON body
/// with status 200.
fn match_answers(received: Received, first_id: u32, count: usize) -> Result<Vec<Entry>, Failure> {
    let response = received.map_err(Failure::Transport)?;
    let status = response.status;
    let good = (200..300).contains(&status);
    let failed =
        |error: RpcError| Failure::Rpc { status, code: error.code, message: error.message };
    match jsonrpc::decode(&response.body, first_id, count) {
        Ok(answers) if good || answers.iter().any(Option::is_some) => {
            let answers = answers.into_iter();
            Ok(answers.map(|answer| answer.map(|outcome| outcome.map_err(failed))).collect())
        }
        Err(DecodeError::Error(error)) => Err(failed(error)),
        Ok(_) | Err(DecodeError::NotJsonRpc) => {
            let text = String::from_utf8_lossy(&response.body).into_owned();
            Err(Failure::Http { status, text })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::super::scripted::{ScriptedNodes, options, rpc};
    use super::*;

    /// A cache or proxy that mixes up requests answers each second request with the body of the one
    /// before it.
    #[tokio::test(start_paused = true)]
    async fn the_body_of_an_earlier_request_is_no_answer() {
        let kept: Arc<Mutex<Vec<(u16, Value)>>> = Arc::default();
        let nodes = ScriptedNodes::new(move |(_, _, body)| {
            let mut kept = kept.lock().unwrap();
            kept.pop().unwrap_or_else(|| {
                let given = rpc(body, |_, params| Ok(params[0].clone()));
                kept.push(given.clone());
                given
            })
        });
        for count in [1, 2] {
            let pool = nodes.pool(&["one"]);
            for round in 0..4 {
                let numbers = (0..count).map(|at| 10 * round + at);
                let call = |number| Call { method: "echo", params: json!([number]) };
                let calls: Vec<Call> = numbers.clone().map(call).collect();
                let answers = pool.batch(&calls, &options()).await;
                for (number, answer) in numbers.zip(answers) {
                    assert_eq!(answer.unwrap().result.get(), number.to_string());
                }
            }
        }
    }
}
