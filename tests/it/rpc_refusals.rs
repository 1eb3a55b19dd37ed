//! Endpoints that refuse: a good endpoint next to them serves every call, a single refusal is never
//! taken for a missing ability, and the reason is kept.

use std::sync::Arc;
use std::time::Duration;

use blotter::rpc::{EndpointConfig, Pool, UpstreamError};
use proptest::prelude::*;
use serde_json::json;
use tokio::time::{Instant, advance, timeout};

use crate::support::script::{Act, Script, at, echoes, lane, pool};

/// Errors by which one endpoint refuses what another one serves. Bodies as providers send them, with
/// the status that they came with (sources: ../shared/corpus/refusals).
const REFUSALS: &[(u16, &str)] = &[
    (200, r#"{"id":0,"error":{"code":-32000,"message":"Unauthorized: You must authenticate"}}"#),
    (200, r#"{"id":null,"error":{"code":-32000,"message":"a text that no table knows"}}"#),
    (200, r#"{"id":0,"error":{"code":77,"message":""}}"#),
    (200, r#"{"id":0,"error":"a text in place of an error"}"#),
    (200, r#"{"message":"no Route matched with those values"}"#),
    (200, "max usage reached"),
    (200, ""),
    (400, r#"{"id":0,"error":{"message":"Can't route your request","code":12}}"#),
    (400, r#"{"id":0,"error":{"code":26,"message":"Unknown block"}}"#),
    (403, r#"{"id":0,"error":{"code":-32602,"message":"Request blocked"}}"#),
    (403, r#"{"id":0,"error":{"code":403,"message":"Your IP or provider is blocked"}}"#),
    (401, "invalid project id\n"),
    (404, "<html>404</html>"),
    (410, r#"{"id":0,"error":{"code":410,"message":"The RPC call has been disabled"}}"#),
    (429, r#"{"error":{"code":-32429,"message":"max usage reached"}}"#),
    (500, r#"{"id":0,"error":{"code":-32013,"message":"backend returned an invalid response"}}"#),
    (503, r#"{"id":0,"error":{"code":-32011,"message":"no backends available for method"}}"#),
    (521, "error code: 521"),
];

fn refuses(status: u16, body: &'static str) -> Act {
    Act::Status(status, body, None)
}

fn next_to_a_good_one(acts: impl IntoIterator<Item = Act>) -> (Arc<Script>, Pool) {
    let script = Script::default().host("bad", 1, acts).host("good", 60, [Act::Echo]);
    let script = Arc::new(script);
    let pool = pool(&script, vec![single("bad"), single("good")]);
    (script, pool)
}

fn single(host: &str) -> EndpointConfig {
    EndpointConfig { batch: Some(1), ..at(host) }
}

#[tokio::test(start_paused = true)]
async fn a_quick_refusing_endpoint_takes_nothing_from_a_slower_good_one() {
    for (status, body) in REFUSALS {
        let (script, pool) = next_to_a_good_one([refuses(*status, body)]);
        let began = Instant::now();
        for _ in 0..40 {
            echoes(&pool, 1, &lane(1)).await;
        }
        assert!(began.elapsed() < Duration::from_secs(9), "{status} {body} {:?}", began.elapsed());
        let wasted = script.sent_to("bad");
        assert!(wasted <= 12, "{status} {body}: asked {wasted} times in 40 calls");
    }
}

/// The status and any text of a body.
fn any_refusal() -> impl Strategy<Value = (u16, String)> {
    let status = prop_oneof![Just(200_u16), 300_u16..600];
    let words = prop_oneof![
        "[ -~]{0,60}",
        Just("method not found".to_owned()),
        Just("pruned history unavailable".to_owned()),
        Just("rate limit".to_owned()),
        Just("block range is too large".to_owned()),
        Just("is not supported".to_owned()),
    ];
    let code = prop_oneof![-33_000_i64..-31_990, 0_i64..600, Just(4444_i64)];
    (status, words, code, 0_u8..4).prop_map(|(status, words, code, shape)| {
        let error = json!({"code": code, "message": words});
        let body = match shape {
            0 => json!({"jsonrpc": "2.0", "id": 0, "error": error}).to_string(),
            1 => json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string(),
            2 => json!({"error": words}).to_string(),
            _ => words,
        };
        (status, body)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    /// The only errors that end a call at once are those of the call itself.
    #[test]
    fn no_body_of_a_bad_endpoint_fails_a_call_that_a_good_one_serves(
        bodies in proptest::collection::vec(any_refusal(), 1..4),
        first in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let acts = bodies.iter().map(|(status, body)| {
                // The script keeps texts for the whole program, as its hand-written ones are.
                Act::Status(*status, Box::leak(body.clone().into_boxed_str()), None)
            });
            let acts: Vec<Act> = acts.collect();
            let mut hosts = vec![single("bad"), single("good")];
            if !first { hosts.reverse(); }
            let script = Script::default().host("bad", 1, acts).host("good", 60, [Act::Echo]);
            let script = Arc::new(script);
            let pool = pool(&script, hosts);
            for _ in 0..6 {
                let served = timeout(Duration::from_secs(30), echoes(&pool, 3, &lane(1))).await;
                assert!(served.is_ok(), "not served in time next to {bodies:?}");
            }
        });
    }
}

/// Words of an error may also be parts of the URL: the error is classified before it is masked.
#[tokio::test(start_paused = true)]
async fn words_that_the_url_has_too_are_understood() {
    const PRUNED: &str =
        r#"{"id":0,"error":{"code":-32000,"message":"this request needs an archive node"}}"#;
    let script = Arc::new(Script::default().host("one", 1, [Act::Body(PRUNED)]));
    let pool = pool(&script, vec![EndpointConfig::new("http://one/archive/planted")]);
    let error = pool.call("eth_getBalance", json!([5]), &lane(1)).await.unwrap_err();
    let message = "this request needs an (hidden) node".to_owned();
    assert_eq!(error, UpstreamError::Rpc { endpoint: "http://one".into(), code: -32000, message });
    assert_eq!(script.sent().len(), 1, "final, where no other endpoint is");
}

#[tokio::test(start_paused = true)]
async fn one_answer_takes_no_method_from_a_chain_with_one_endpoint() {
    let absent = r#"{"id":0,"error":{"code":-32601,"message":"the method echo does not exist/is not available"}}"#;
    for act in [Act::Body(absent), Act::Status(404, "<html>404</html>", None)] {
        let script = Arc::new(Script::default().host("one", 1, [act, Act::Echo]));
        echoes(&pool(&script, vec![single("one")]), 1, &lane(1)).await;
    }
}

/// After three answers over time the method counts as absent; it is retried at growing intervals.
#[tokio::test(start_paused = true)]
async fn an_absent_method_is_believed_after_spaced_answers_and_tried_again() {
    let absent = r#"{"id":0,"error":{"code":-32601,"message":"Method not found"}}"#;
    let script = Arc::new(Script::default().host("one", 1, [Act::Body(absent)]));
    let pool = pool(&script, vec![single("one")]);
    let options = lane(1);
    let call = || pool.call("echo", json!([1]), &options);
    let error = call().await.unwrap_err();
    assert_eq!(error, UpstreamError::NotSupported { method: "echo".to_owned() });
    let sent = script.sent();
    assert_eq!(sent.len(), 3);
    assert!(sent[2].1 - sent[0].1 >= Duration::from_secs(1), "spaced");
    assert!(call().await.is_err());
    assert_eq!(script.sent().len(), 3, "it is remembered");
    advance(Duration::from_secs(61)).await;
    assert!(call().await.is_err());
    assert_eq!(script.sent().len(), 4, "asked again after a minute");
    advance(Duration::from_secs(61)).await;
    assert!(call().await.is_err());
    assert_eq!(script.sent().len(), 4, "later each time");
}

/// A method that worked once is not reported as unsupported: the caller may retry.
#[tokio::test(start_paused = true)]
async fn a_method_that_worked_is_unavailable_not_absent() {
    let absent = r#"{"id":0,"error":{"code":-32601,"message":"Method not found"}}"#;
    let script = Arc::new(Script::default().host("one", 1, [Act::Echo, Act::Body(absent)]));
    let pool = pool(&script, vec![single("one")]);
    echoes(&pool, 1, &lane(1)).await;
    let error = pool.call("echo", json!([1]), &lane(1)).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Unavailable { .. }), "{error:?}");
}

/// Servers return null for what they lack, so null does not show that a method is offered.
#[tokio::test(start_paused = true)]
async fn a_method_that_gave_null_once_is_absent_by_later_answers() {
    let null = r#"{"id":null,"result":null}"#;
    let absent = r#"{"id":0,"error":{"code":-32601,"message":"Method not found"}}"#;
    let acts = [Act::Body(null), Act::Body(absent)];
    let script = Arc::new(Script::default().host("one", 1, acts));
    let pool = pool(&script, vec![single("one")]);
    let first = pool.call("echo", json!([1]), &lane(1)).await;
    assert_eq!(first.map(|answer| answer.result.get().to_owned()), Ok("null".to_owned()));
    let error = pool.call("echo", json!([1]), &lane(1)).await.unwrap_err();
    assert_eq!(error, UpstreamError::NotSupported { method: "echo".to_owned() });
}

/// For a refused key: a few attempts, then growing pauses, and the provider's words in the error.
#[tokio::test(start_paused = true)]
async fn a_refused_key_ends_a_call_soon_with_its_reason_and_is_seldom_tried_again() {
    for (status, body) in [
        (401, "invalid project id\n"),
        (403, r#"{"id":0,"error":{"code":-32602,"message":"invalid project id"}}"#),
        (200, r#"{"id":null,"error":{"code":-32000,"message":"invalid project id"}}"#),
    ] {
        let script = Arc::new(Script::default().host("one", 1, [refuses(status, body)]));
        let pool = pool(&script, vec![single("one")]);
        let began = Instant::now();
        let error = pool.call("echo", json!([1]), &lane(1)).await.unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(10), "{body} {:?}", began.elapsed());
        assert!(matches!(error, UpstreamError::Refused { .. }), "{error:?}");
        assert!(error.to_string().contains("invalid project id"), "{error}");
        for _ in 0..60 {
            advance(Duration::from_secs(60)).await;
            assert!(pool.call("echo", json!([1]), &lane(1)).await.is_err());
        }
        let tries = script.sent().len();
        assert!((5..=12).contains(&tries), "{body}: {tries} tries in an hour");
    }
}

/// A few refusals that pass by themselves cost time, not the call.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_passes_is_waited_for() {
    for (status, body) in REFUSALS {
        let acts = [refuses(*status, body), refuses(*status, body), Act::Echo];
        let script = Arc::new(Script::default().host("one", 1, acts));
        let pool = pool(&script, vec![single("one")]);
        let answer = pool.call("echo", json!([5]), &lane(1)).await;
        assert_eq!(
            answer.map(|a| a.result.get().to_owned()),
            Ok("5".to_owned()),
            "{status} {body}"
        );
    }
}

/// An error of the call itself is final only when every endpoint answers with one.
#[tokio::test(start_paused = true)]
async fn an_error_that_all_endpoints_give_is_final() {
    let body = r#"{"id":0,"error":{"code":-32602,"message":"Invalid param: WrongSize"}}"#;
    let script = Script::default().host("one", 1, [Act::Body(body)]);
    let script = Arc::new(script.host("two", 1, [Act::Body(body)]));
    let pool = pool(&script, vec![single("one"), single("two")]);
    let error = pool.call("echo", json!([1]), &lane(1)).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Rpc { code: -32602, .. }), "{error:?}");
    assert!(script.sent_to("one") >= 2 && script.sent_to("two") >= 2, "each more than once");
}

/// A parameter error with these words is about the parameter, not the method.
#[tokio::test(start_paused = true)]
async fn a_parameter_that_is_not_supported_takes_no_method_away() {
    let body = r#"{"id":0,"error":{"code":-32602,"message":"encoding base58 is not supported"}}"#;
    let acts = std::iter::repeat_n(Act::Body(body), 4).chain([Act::Echo]);
    let script = Arc::new(Script::default().host("one", 1, acts));
    let pool = pool(&script, vec![single("one")]);
    assert!(pool.call("echo", json!([1]), &lane(1)).await.is_err());
    assert!(pool.endpoints()[0].not_offered.is_empty());
    echoes(&pool, 3, &lane(1)).await;
}

/// One error for a whole batch that concerns one call says nothing about the others.
#[tokio::test(start_paused = true)]
async fn a_range_error_for_a_whole_batch_leaves_the_other_calls() {
    let body = r#"{"id":null,"error":{"code":-32600,"message":"up to a 10 block range"}}"#;
    let script = Arc::new(Script::default().host("one", 1, [refuses(400, body), Act::Echo]));
    let pool = pool(&script, vec![at("one")]);
    let call = |method| blotter::rpc::Call { method, params: json!([7]) };
    let answers = pool.batch(&[call("eth_getLogs"), call("eth_blockNumber")], &lane(1)).await;
    assert!(matches!(&answers[0], Err(UpstreamError::Rpc { code: -32600, .. })), "{answers:?}");
    assert_eq!(answers[1].as_ref().unwrap().result.get(), "7");
}

#[tokio::test(start_paused = true)]
async fn a_time_out_of_a_log_query_is_for_the_caller_at_once() {
    let timed_out = r#"{"id":0,"error":{"code":30,"message":"Request timeout on the free plan"}}"#;
    for act in [
        Act::Status(408, timed_out, None),
        Act::Status(504, "<html>504 Gateway Time-out</html>", None),
        Act::Status(524, "error code: 524", None),
        Act::Never,
    ] {
        let script = Arc::new(Script::default().host("one", 1, [act.clone()]));
        let pool = pool(&script, vec![single("one")]);
        let error = pool.call("eth_getLogs", json!([1]), &lane(1)).await.unwrap_err();
        assert!(matches!(error, UpstreamError::Rpc { .. }), "{act:?} {error:?}");
        assert_eq!(script.sent().len(), 1, "{act:?}");
    }
}
