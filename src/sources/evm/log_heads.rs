//! Pure: heads that come in one request with logs. A server that has not come to a block answers
//! with no logs of it, and an address may be that of several servers.

use serde_json::json;

use crate::rpc::batch::{Answer, Call};
use crate::rpc::error::UpstreamError;

pub(super) const HEAD: &str = "eth_blockNumber";

/// Nodes answer with nothing for blocks that they do not have yet: each request that an endpoint
/// makes of these calls asks for its head too, where it takes two calls in one.
pub(super) fn with_heads(mut queries: Vec<Call>, batch: usize) -> Vec<Call> {
    let head = || Call { method: HEAD, params: json!([]) };
    if batch < 2 || queries.len() < batch {
        queries.push(head());
        return queries;
    }
    let mut rest = queries.into_iter().peekable();
    let mut calls = Vec::new();
    while rest.peek().is_some() {
        calls.extend(rest.by_ref().take(batch - 1));
        calls.push(head());
    }
    calls
}

/// Queries that were answered in a request without a head, or in none.
pub(super) fn apart(
    queries: &[usize],
    answers: &[Result<Answer, UpstreamError>],
    heads: &[Result<Answer, UpstreamError>],
) -> Vec<usize> {
    let shows_head = |request: u64| heads.iter().flatten().any(|head| head.request == request);
    let is_apart = |answer: &Result<Answer, UpstreamError>| {
        !answer.as_ref().is_ok_and(|answer| shows_head(answer.request))
    };
    let of = queries.iter().zip(answers);
    of.filter(|(_, answer)| is_apart(answer)).map(|(at, _)| *at).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::rpc::endpoint::EndpointId;

    fn methods(queries: usize, batch: usize) -> String {
        let query = || Call { method: "eth_getLogs", params: json!([]) };
        let calls = with_heads((0..queries).map(|_| query()).collect(), batch);
        calls.iter().map(|call| if call.method == HEAD { 'h' } else { 'l' }).collect()
    }

    #[test]
    fn each_request_asks_for_the_head_too() {
        assert_eq!([methods(2, 3), methods(2, 20)], ["llh", "llh"]);
        assert_eq!([methods(2, 2), methods(4, 3), methods(3, 3)], ["lhlh", "llhllh", "llhlh"]);
        assert_eq!(methods(2, 1), "llh", "which cannot");
    }

    #[test]
    fn logs_of_another_request_than_a_head_are_apart() {
        let endpoint = EndpointId(0);
        let answer = |request| {
            let result = to_raw_value(&json!([])).unwrap();
            Ok(Answer { result, endpoint, request })
        };
        let answers = [answer(1), answer(2), Err(UpstreamError::NoEndpoint)];
        assert_eq!(apart(&[4, 5, 6], &answers, &[answer(1)]), [5, 6]);
        assert_eq!(apart(&[4, 5], &answers[..2], &[answer(1), answer(2)]), [0_usize; 0]);
        assert_eq!(apart(&[4], &answers[..1], &[Err(UpstreamError::NoEndpoint)]), [4]);
    }
}
