//! Pure: evidence in the same request as a log query, from the server that answers it. A server
//! that lacks a block, or has pruned old ones, returns no logs of them. Its head shows the first,
//! sentinel logs that must exist show the second. One address may belong to several servers.

use std::collections::BTreeSet;

use super::wire;
use crate::domain::Height;
use crate::rpc::{Call, CallAnswer, CallResponse};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestPart {
    Query,
    Head,
    /// Logs at the highest block or above, near the head.
    Above,
    /// Logs that exist on any endpoint that keeps logs so old.
    Sentinel,
}

/// Inserts the extra calls into each request that the endpoint makes of these calls, if its batch
/// size allows.
pub(super) fn with_extras(
    queries: Vec<Call>,
    extras: &[(RequestPart, Call)],
    batch: usize,
) -> (Vec<RequestPart>, Vec<Call>) {
    let room = batch.saturating_sub(extras.len());
    let is_one = room == 0 || queries.len() <= room;
    let size = if is_one { queries.len() } else { room };
    let mut calls = Vec::new();
    let mut rest = queries.into_iter().map(|call| (RequestPart::Query, call)).peekable();
    while rest.peek().is_some() {
        calls.extend(rest.by_ref().take(size));
        calls.extend(extras.iter().cloned());
    }
    calls.into_iter().unzip()
}

/// Queries whose answers came in none of these requests, or that have no answer.
pub(super) fn apart(
    queries: &[usize],
    answers: &[CallAnswer],
    requests: &BTreeSet<u64>,
) -> Vec<usize> {
    let is_in = |answer: &CallAnswer| {
        answer.as_ref().is_ok_and(|answer| requests.contains(&answer.request))
    };
    let of = queries.iter().zip(answers);
    of.filter(|(_, answer)| !is_in(answer)).map(|(at, _)| *at).collect()
}

fn number(head: &CallAnswer) -> Option<Height> {
    head.as_ref().ok().and_then(|head| wire::number(&head.result))
}

/// Requests whose server certainly has the logs: its head is far above them, or logs above them
/// came in the same request. Also returns the lowest head of the others.
pub(super) fn sure_in(
    heads: &[CallAnswer],
    shown_in: &BTreeSet<u64>,
    far_above: Height,
) -> (BTreeSet<u64>, Option<Height>) {
    let (mut sure, mut near) = (BTreeSet::new(), None::<Height>);
    for answer in heads {
        let (Ok(CallResponse { request, .. }), Some(head)) = (answer, number(answer)) else {
            continue;
        };
        if head >= far_above || shown_in.contains(request) {
            sure.insert(*request);
        } else {
            near = Some(near.map_or(head, |lowest| lowest.min(head)));
        }
    }
    (sure, near)
}

/// Whether all these heads are as high as one that is certain: they were just reported, but perhaps
/// in other requests than the logs.
pub(super) fn are_from(heads: &[CallAnswer], certain: Height) -> bool {
    let is_far = |head| number(head).is_some_and(|head| head >= certain);
    !heads.is_empty() && heads.iter().all(is_far)
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;
    use crate::rpc::{EndpointId, UpstreamError};

    fn parts(queries: usize, extras: &[RequestPart], batch: usize) -> String {
        let query = || Call { method: "eth_getLogs", params: json!([]) };
        let extras: Vec<_> = extras.iter().map(|part| (*part, query())).collect();
        let (parts, calls) = with_extras((0..queries).map(|_| query()).collect(), &extras, batch);
        assert_eq!(parts.len(), calls.len());
        let name = |part: &RequestPart| match part {
            RequestPart::Query => 'l',
            RequestPart::Head => 'h',
            RequestPart::Above => 'a',
            RequestPart::Sentinel => 's',
        };
        parts.iter().map(name).collect()
    }

    #[test]
    fn each_request_asks_for_the_head_too() {
        let heads = |queries, batch| parts(queries, &[RequestPart::Head], batch);
        assert_eq!([heads(2, 3), heads(2, 20)], ["llh", "llh"]);
        assert_eq!([heads(2, 2), heads(4, 3), heads(3, 3)], ["lhlh", "llhllh", "llhlh"]);
        assert_eq!(heads(2, 1), "llh", "which cannot");
        let both =
            |queries, batch| parts(queries, &[RequestPart::Head, RequestPart::Sentinel], batch);
        assert_eq!([both(2, 4), both(3, 4), both(2, 3)], ["llhs", "llhslhs", "lhslhs"]);
        assert_eq!([parts(3, &[], 2), both(2, 2), both(0, 9)], ["lll", "llhs", ""]);
    }

    fn answer(result: &Value, request: u64) -> CallResponse {
        let result = to_raw_value(result).unwrap();
        CallResponse { result, endpoint: EndpointId(0), request }
    }

    fn head(height: Height, request: u64) -> CallResponse {
        answer(&format!("{height:#x}").into(), request)
    }

    #[test]
    fn logs_of_another_request_than_a_head_are_apart() {
        let answer = |request| Ok(answer(&json!([]), request));
        let answers = [answer(1), answer(2), Err(UpstreamError::NoEndpoint)];
        assert_eq!(apart(&[4, 5, 6], &answers, &[1].into()), [5, 6]);
        assert_eq!(apart(&[4, 5], &answers[..2], &[1, 2].into()), [0_usize; 0]);
        assert_eq!(apart(&[4], &answers[..1], &[].into()), [4]);
    }

    #[test]
    fn a_head_that_came_just_now_far_above_the_blocks_is_as_good_as_one_that_is_believed() {
        let are_far = |heads: &[_]| are_from(heads, 1_050);
        assert!(are_far(&[Ok(head(1_050, 1)), Ok(head(2_000, 1))]));
        assert!(!are_far(&[Ok(head(2_000, 1)), Ok(head(1_049, 1))]), "each of them");
        assert!(!are_far(&[Ok(head(2_000, 1)), Err(UpstreamError::NoEndpoint)]));
        assert!(!are_far(&[]));
    }

    #[test]
    fn a_request_counts_near_the_head_with_logs_above_it_alone() {
        let heads = [
            Ok(head(1_064, 1)),
            Ok(head(1_063, 2)),
            Ok(head(1_001, 3)),
            Err(UpstreamError::NoEndpoint),
        ];
        let sure = |shown_in: &[u64]| sure_in(&heads, &shown_in.iter().copied().collect(), 1_064);
        assert_eq!(sure(&[]), ([1].into(), Some(1_001)));
        assert_eq!(sure(&[3]), ([1, 3].into(), Some(1_063)));
        assert_eq!(sure(&[2, 3]), ([1, 2, 3].into(), None));
    }
}
