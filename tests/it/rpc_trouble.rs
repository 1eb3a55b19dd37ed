//! The pool of endpoints under several faults at once: no stalls, no request storms, no leaks.

use std::sync::Arc;
use std::time::Duration;

use blotter::rpc::{Call, CallOptions, EndpointConfig, Lane, Priority, SecretText, UpstreamError};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::support::script::{Act, Script, at, calls, echoes, lane, pool};

const RATE_LIMITED: &str = r#"{"id":0,"error":{"code":-32005,"message":"rate limit reached"}}"#;

fn single(host: &str) -> EndpointConfig {
    EndpointConfig { batch: Some(1), ..at(host) }
}

fn gaps(script: &Script) -> Vec<Duration> {
    let times: Vec<Instant> = script.sent().iter().map(|(_, at, _)| *at).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// A request in flight completes even if its caller is not polled, so that its permit is not
/// released while the endpoint still works on it.
#[tokio::test(start_paused = true)]
async fn a_request_whose_caller_is_not_polled_ends_and_gives_back_its_place() {
    let narrow = EndpointConfig { concurrency: Some(1), ..single("one") };
    let script = Arc::new(Script::default().host("one", 100, [Act::Echo]));
    let pool = pool(&script, vec![narrow]);
    let (mine, options) = (calls(1), lane(1));
    let mut left_alone = Box::pin(pool.batch(&mine, &options));
    assert!(left_alone.as_mut().now_or_never().is_none());
    let began = Instant::now();
    echoes(&pool, 1, &lane(2)).await;
    assert_eq!(began.elapsed(), Duration::from_millis(200), "one after the other");
    sleep(Duration::from_secs(5)).await;
    assert!(left_alone.await.iter().all(Result::is_ok));
    let latency = pool.endpoints()[0].latency;
    assert_eq!(latency, Duration::from_millis(100), "without the time in which none polled it");
    assert_eq!(script.sent_to("one"), 2);
}

/// A reader's owner may not poll its requests for a while: other calls continue.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_not_polled_delays_no_other() {
    let limited = EndpointConfig { rate_millihertz: Some(10_000), ..single("one") };
    let narrow = EndpointConfig { concurrency: Some(1), ..single("one") };
    for endpoint in [limited, narrow] {
        let script = Arc::new(Script::default().host("one", 50, [Act::Echo]));
        let pool = pool(&script, vec![endpoint]);
        let (mine, options) = (calls(20), lane(2));
        let mut busy = Box::pin(pool.batch(&mine, &options));
        assert!(busy.as_mut().now_or_never().is_none());
        let (left_alone, options) = (calls(1), lane(1));
        let mut left_alone = Box::pin(pool.batch(&left_alone, &options));
        assert!(left_alone.as_mut().now_or_never().is_none());
        let third = lane(3);
        let others = async { tokio::join!(&mut busy, echoes(&pool, 20, &third)) };
        let ended = timeout(Duration::from_secs(6), others).await;
        assert!(ended.is_ok(), "the others wait for one that is never polled");
        drop(left_alone);
    }
}

/// The same for the first waiter, on whose timer the others could depend.
#[tokio::test(start_paused = true)]
async fn the_first_waiter_may_be_the_one_that_is_not_polled() {
    let script = Arc::new(Script::default().host("one", 5, [Act::Echo]));
    let endpoint = EndpointConfig { rate_millihertz: Some(5_000), ..single("one") };
    let pool = pool(&script, vec![endpoint]);
    echoes(&pool, 2, &lane(2)).await;
    let (left_alone, options) = (calls(1), lane(1));
    let mut left_alone = Box::pin(pool.batch(&left_alone, &options));
    assert!(left_alone.as_mut().now_or_never().is_none());
    let ended = timeout(Duration::from_secs(6), echoes(&pool, 20, &lane(2))).await;
    assert!(ended.is_ok(), "the others wait for one that is never polled");
    assert!(left_alone.await[0].is_ok(), "it gets its turn when it is polled again");
}

/// Its turn was given to another call by then: it waits for the next.
#[tokio::test(start_paused = true)]
async fn a_turn_that_has_lapsed_is_not_used() {
    let latency = Duration::from_millis(200);
    let script = Arc::new(Script::default().host("one", 200, [Act::Echo]));
    let pool = pool(&script, vec![EndpointConfig { concurrency: Some(1), ..single("one") }]);
    let (mine, options) = (calls(5), lane(2));
    let mut busy = Box::pin(pool.batch(&mine, &options));
    assert!(busy.as_mut().now_or_never().is_none());
    let (left_alone, options) = (calls(1), lane(1));
    let mut left_alone = Box::pin(pool.batch(&left_alone, &options));
    assert!(left_alone.as_mut().now_or_never().is_none());
    assert!(timeout(Duration::from_millis(1_250), &mut busy).await.is_err());
    let (busy, late) = tokio::join!(busy, left_alone);
    assert!(busy.iter().chain(&late).all(Result::is_ok));
    assert!(gaps(&script).iter().all(|gap| *gap >= latency), "one at a time: {:?}", gaps(&script));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_rests_for_long_is_not_waited_for() {
    let script = Arc::new(Script::default().host("one", 1, [Act::Late(50)]));
    let pool = pool(&script, vec![EndpointConfig { concurrency: Some(1), ..single("one") }]);
    let status = pool.endpoints();
    let bench = async {
        sleep(Duration::from_millis(10)).await;
        pool.cool_down(status[0].id, Duration::from_secs(3600));
        pool.call("echo", json!([1]), &lane(2)).await
    };
    let (mine, options) = (calls(3), lane(1));
    let began = Instant::now();
    let (waited, late) = tokio::join!(pool.batch(&mine, &options), bench);
    assert!(began.elapsed() < Duration::from_secs(31), "{:?}", began.elapsed());
    assert!(matches!(late, Err(UpstreamError::Unavailable { .. })), "{late:?}");
    assert!(waited[0].is_ok(), "what was under way is taken");
    assert!(matches!(waited[2], Err(UpstreamError::Unavailable { .. })), "{:?}", waited[2]);
}

/// Calls that wait for a dead node are not tried one by one for hours.
#[tokio::test(start_paused = true)]
async fn all_who_wait_for_a_dead_node_give_up_in_bounded_time() {
    let slow_down = Act::Status(429, "", Some("20"));
    for (act, wait_max) in [(Act::Break, 60), (Act::Status(502, "", None), 60), (slow_down, 45)] {
        let script = Arc::new(Script::default().host("one", 1, [act.clone()]));
        let pool = pool(&script, vec![single("one")]);
        let began = Instant::now();
        let all = pool.batch(&calls(300), &lane(1)).await;
        assert!(began.elapsed() < Duration::from_secs(wait_max), "{act:?} {:?}", began.elapsed());
        assert!(all.iter().all(|one| matches!(one, Err(UpstreamError::Unavailable { .. }))));
    }
}

/// Each call takes its time, so that ten at once would take too long for ever.
#[tokio::test(start_paused = true)]
async fn a_batch_that_takes_too_long_is_sent_in_smaller_ones() {
    let script = Arc::new(Script::default().host("one", 1, [Act::Each(3_000)]));
    let pool = pool(&script, vec![at("one")]);
    echoes(&pool, 1, &lane(1)).await;
    echoes(&pool, 10, &lane(1)).await;
    assert_eq!(pool.endpoints()[0].batch, 5);
    let before = script.sent().len();
    echoes(&pool, 10, &lane(1)).await;
    assert_eq!(script.sent().len() - before, 2, "they are small from the start for a while");
    // Two of them, each too slow for ten.
    let script = Script::default().host("one", 1, [Act::Each(9_000)]);
    let script = Arc::new(script.host("two", 1, [Act::Each(9_000)]));
    let pool = self::pool(&script, vec![at("one"), at("two")]);
    for endpoint in pool.endpoints() {
        let mut options = lane(1);
        options.on = Some(endpoint.id);
        echoes(&pool, 1, &options).await;
    }
    echoes(&pool, 10, &lane(1)).await;
}

/// Its timeouts say nothing about the batch size.
#[tokio::test(start_paused = true)]
async fn a_silent_endpoint_is_given_up_with_whole_batches() {
    let script = Arc::new(Script::default().host("one", 1, [Act::Never]));
    let pool = pool(&script, vec![at("one")]);
    let began = Instant::now();
    let all = pool.batch(&calls(10), &lane(1)).await;
    assert!(all.iter().all(|one| matches!(one, Err(UpstreamError::Unavailable { .. }))));
    assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
    assert_eq!((script.sent().len(), pool.endpoints()[0].batch), (2, 10));
    // One that falls silent trips the breaker on the way down to single calls.
    let script = Arc::new(Script::default().host("one", 1, [Act::Echo, Act::Never]));
    let pool = self::pool(&script, vec![at("one")]);
    echoes(&pool, 1, &lane(1)).await;
    let began = Instant::now();
    let all = pool.batch(&calls(10), &lane(1)).await;
    assert!(all.iter().all(|one| matches!(one, Err(UpstreamError::Unavailable { .. }))));
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn answers_with_one_entry_too_few_do_not_open_the_breaker() {
    let acts = std::iter::repeat_n(Act::Muddle, 8).chain([Act::Echo]);
    let script = Arc::new(Script::default().host("one", 1, acts));
    let pool = pool(&script, vec![at("one")]);
    let began = Instant::now();
    echoes(&pool, 80, &lane(1)).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_in_a_200_answer_makes_longer_pauses_each_time() {
    let acts = std::iter::repeat_n(Act::Body(RATE_LIMITED), 6).chain([Act::Echo]);
    let script = Arc::new(Script::default().host("one", 1, acts));
    echoes(&pool(&script, vec![at("one")]), 1, &lane(1)).await;
    let gaps = gaps(&script);
    assert!(gaps[5] >= gaps[0] * 8, "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn one_burst_over_the_limit_counts_once() {
    let acts = std::iter::repeat_n(Act::Status(429, "", None), 8).chain([Act::Echo]);
    let script = Arc::new(Script::default().host("one", 5, acts));
    let pool = pool(&script, vec![single("one")]);
    let began = Instant::now();
    echoes(&pool, 8, &lane(1)).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_answers_nonsense_with_a_good_status_rests_then_is_probed_by_one() {
    let acts = std::iter::repeat_n(Act::Body("<html>"), 8).chain([Act::Late(300)]);
    let script = Arc::new(Script::default().host("one", 1, acts));
    let pool = pool(&script, vec![single("one")]);
    let began = Instant::now();
    let (all, options) = (calls(8), lane(1));
    let asked = pool.batch(&all, &options);
    tokio::pin!(asked);
    let watch = async {
        sleep(Duration::from_millis(100)).await;
        pool.endpoints()[0].resting
    };
    let (_, rested) = tokio::join!(&mut asked, watch);
    assert!(rested, "eight failures in a row open the breaker");
    let times: Vec<Instant> = script.sent().iter().map(|(_, at, _)| *at).collect();
    assert_eq!(times[..8].iter().filter(|at| **at - began < Duration::from_secs(1)).count(), 8);
    assert!(times[8] - times[7] >= Duration::from_secs(2), "it rests");
    assert!(times[9] - times[8] >= Duration::from_millis(300), "one probe goes first");
    assert!(times[10] - times[9] < Duration::from_millis(10), "then all");
}

/// A long queue at a slow endpoint is no reason to fail a call at its first error.
#[tokio::test(start_paused = true)]
async fn time_in_the_queue_is_not_time_for_tries() {
    let acts = std::iter::repeat_n(Act::Echo, 50).chain([Act::Status(503, "", None), Act::Echo]);
    let script = Arc::new(Script::default().host("one", 5, acts));
    let endpoint = EndpointConfig { rate_millihertz: Some(1_000), ..single("one") };
    echoes(&pool(&script, vec![endpoint]), 60, &lane(1)).await;
    assert_eq!(script.sent().len(), 61);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_never_answered_is_helped_too() {
    let script =
        Arc::new(Script::default().host("silent", 1, [Act::Never]).host("other", 20, [Act::Echo]));
    let pool = pool(&script, vec![at("silent"), at("other")]);
    let began = Instant::now();
    echoes(&pool, 1, &lane(1)).await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let began = Instant::now();
    for _ in 0..20 {
        echoes(&pool, 1, &lane(1)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(3), "the other one is asked first from now on");
}

#[tokio::test(start_paused = true)]
async fn stragglers_cost_few_extra_requests() {
    let script = Script::default().host("one", 10, [Act::Late(9_000)]);
    let script = Arc::new(script.host("two", 10, [Act::Late(9_000)]));
    let wide = |host| EndpointConfig { concurrency: Some(500), ..single(host) };
    let pool = pool(&script, vec![wide("one"), wide("two")]);
    echoes(&pool, 200, &lane(1)).await;
    let extra = script.sent().len() - 200;
    assert!((1..=30).contains(&extra), "{extra} extra requests for 200");
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_web_server_take_no_method_away() {
    let acts = [
        Act::Status(404, "404 page not found", None),
        Act::Status(405, "<html><h1>405 Not Allowed</h1></html>", None),
        Act::Status(403, "<html>this address is not allowed</html>", None),
        Act::Echo,
    ];
    let script = Arc::new(Script::default().host("one", 1, acts));
    echoes(&pool(&script, vec![at("one")]), 1, &lane(1)).await;
    assert_eq!(script.sent().len(), 4);
}

/// Nodes repeat the key in their answers, and the last error of a node is shown to all callers.
#[tokio::test(start_paused = true)]
async fn a_node_that_repeats_its_key_does_not_reveal_it() {
    let answer = r#"{"id":0,"error":{"code":-32000,
        "message":"key path-key-1234 or query-key-9876 or head-key-5555 is over its quota"}}"#;
    let refused = r#"{"id":0,"error":{"code":-32602,"message":"bad key path-key-1234"}}"#;
    let url = "http://one/v2/path-key-1234?api-key=query-key-9876";
    let header = ("authorization".to_owned(), SecretText::new("Bearer head-key-5555"));
    let endpoint = EndpointConfig { headers: vec![header], ..EndpointConfig::new(url) };
    for (body, words) in [(answer, "over its quota"), (refused, "bad key")] {
        let script = Arc::new(Script::default().host("one", 1, [Act::Body(body)]));
        let pool = pool(&script, vec![endpoint.clone()]);
        let refused = pool.call("echo", json!([1]), &lane(1)).await;
        let shown = format!("{refused:?} {:?} {pool:?}", pool.endpoints());
        assert!(shown.contains(words), "{shown}");
        for secret in ["path-key", "query-key", "head-key"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_endpoint_is_asked_without_a_pause() {
    let script =
        Arc::new(Script::default().host("one", 1, [Act::Break]).host("two", 1, [Act::Echo]));
    let pool = pool(&script, vec![at("one"), at("two")]);
    let began = Instant::now();
    echoes(&pool, 1, &lane(1)).await;
    assert!(began.elapsed() < Duration::from_millis(20), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_batch_leaves_out_what_its_endpoint_does_not_offer() {
    let script = Arc::new(Script::default().host("one", 1, [Act::Lacks]));
    let pool = pool(&script, vec![at("one")]);
    let both = [
        Call { method: "echo", params: json!(["a"]) },
        Call { method: "absent", params: json!(["b"]) },
    ];
    for _ in 0..3 {
        let answers = pool.batch(&both, &lane(1)).await;
        assert_eq!(answers[0].as_ref().unwrap().result.get(), "\"a\"");
        assert!(matches!(answers[1], Err(UpstreamError::NotSupported { .. })), "{answers:?}");
    }
    let asked = script.sent();
    let times = asked.iter().flat_map(|(.., calls)| calls).filter(|c| c["method"] == "absent");
    assert_eq!(times.count(), 3, "asked until it is believed");
}

/// A refused method does not fail the other calls of its batch.
#[tokio::test(start_paused = true)]
async fn a_batch_that_begins_with_what_is_not_offered_gives_the_rest() {
    let script = Arc::new(Script::default().host("one", 1, [Act::Lacks]));
    let pool = pool(&script, vec![at("one")]);
    let not_offered =
        |answer: &Result<_, _>| matches!(answer, Err(UpstreamError::NotSupported { .. }));
    assert!(not_offered(&pool.call("absent", json!([1]), &lane(1)).await));
    let both = ["absent", "echo", "absent", "echo"];
    let both = both.map(|method| Call { method, params: json!([method]) });
    let answers = pool.batch(&both, &lane(1)).await;
    assert!(not_offered(&answers[0]) && not_offered(&answers[2]), "{answers:?}");
    assert!(answers[1].is_ok() && answers[3].is_ok(), "{answers:?}");
    assert_eq!(script.sent().len(), 4, "three answers, then what is offered");
}

/// Two endpoints fail, one slowly: the pauses that both request are respected.
#[tokio::test(start_paused = true)]
async fn a_straggler_and_its_helper_are_both_listened_to() {
    let slow_down = || [Act::Status(429, "", Some("25"))];
    let script = Script::default().host("one", 2_500, slow_down()).host("two", 900, slow_down());
    let script = Arc::new(script);
    let pool = pool(&script, vec![at("one"), at("two")]);
    let (asked, options) = (calls(1), lane(1));
    let asked = pool.batch(&asked, &options);
    assert!(timeout(Duration::from_secs(4), asked).await.is_err(), "both rest");
    assert!(pool.endpoints().iter().all(|endpoint| endpoint.resting));
    assert_eq!(script.sent().len(), 2);
}

/// For any behaviour of two endpoints, each call gets its own answer and all places are released.
#[tokio::test(start_paused = true)]
async fn a_storm_of_faults_costs_no_answer_and_no_place() {
    for seed in 0..40_u64 {
        let acts = |host: u64| {
            let mut x = seed * 2 + host + 1;
            let faults = (0..60).map(move |_| {
                x = x
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                match (x >> 40) % 12 {
                    0 => Act::Status(429, "", Some("1")),
                    1 => Act::Status(503, "busy", None),
                    2 => Act::Body("<html>"),
                    3 => Act::Break,
                    4 => Act::Muddle,
                    5 => Act::Body(RATE_LIMITED),
                    6 => Act::Late(3_000),
                    _ => Act::Echo,
                }
            });
            faults.chain([Act::Echo]).collect::<Vec<_>>()
        };
        let script = Script::default().host("one", 20, acts(0)).host("two", 60, acts(1));
        let script = Arc::new(script);
        let pool = pool(&script, vec![at("one"), at("two")]);
        let all = (0..6).map(|wallet| {
            let pool = pool.clone();
            async move {
                let priority = Arc::new(Priority::background());
                priority.set_interactive(wallet % 2 == 0);
                let options = CallOptions::new(Lane::new(wallet, priority));
                let asked = calls(37);
                for (at, answer) in pool.batch(&asked, &options).await.into_iter().enumerate() {
                    let answer = answer.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                    assert_eq!(answer.result.get(), at.to_string(), "seed {seed}");
                }
            }
        });
        join_all(all).await;
        assert!(pool.endpoints().iter().all(|endpoint| endpoint.in_flight == 0), "seed {seed}");
    }
}
