//! Plain HTTP through the pool: its requests, and what it concludes from answers.

use std::sync::Arc;
use std::time::Duration;

use blotter::rpc::{
    Ask, EndpointConfig, HttpMethod, Pool, Reply, ReplyClass, SecretText, UpstreamError,
};
use tokio::time::Instant;

use crate::support::script::{Act, Script, at, lane, pool};

/// A minimal explorer: words in the body decide how it is classified.
fn read(status: u16, body: &[u8]) -> ReplyClass {
    let text = String::from_utf8_lossy(body).into_owned();
    match text.split(' ').next().unwrap() {
        "good" if status == 200 => ReplyClass::Good,
        "slow" => ReplyClass::SlowDown(Some(Duration::from_secs(3))),
        "absent" => ReplyClass::NotOffered(text),
        "refused" => ReplyClass::Refused { code: 7, message: text },
        _ => ReplyClass::Again(text),
    }
}

fn ask(path: &str, query: &[(&'static str, &str)], body: Option<&'static str>) -> Ask {
    let query = query.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Ask { name: "list", path: path.to_owned(), query, body: body.map(Into::into) }
}

async fn list(pool: &Pool) -> Result<Reply, UpstreamError> {
    pool.ask(&ask("", &[], None), read, &lane(1)).await
}

#[tokio::test(start_paused = true)]
async fn path_query_and_body_go_where_they_belong() {
    let script = Arc::new(Script::default().host("one", 1, [Act::Body("good")]));
    let header = ("x-token".to_owned(), SecretText::new("planted"));
    let endpoint =
        EndpointConfig { headers: vec![header], ..EndpointConfig::new("http://one/api?apikey=K") };
    let pool = pool(&script, vec![endpoint]);
    let (query, posted) = ([("module", "account"), ("sort", "a&b")], Some(r#"{"a":1}"#));
    let reply = pool.ask(&ask("/v1/x", &query, None), read, &lane(1)).await.unwrap();
    assert_eq!(&*reply.body, b"good");
    pool.ask(&ask("", &[], posted), read, &lane(1)).await.unwrap();
    let sent = script.requests();
    assert_eq!(sent[0].url.expose(), "http://one/api/v1/x?apikey=K&module=account&sort=a%26b");
    assert_eq!((sent[0].method, sent[0].body.len()), (HttpMethod::Get, 0));
    assert_eq!(sent[1].url.expose(), "http://one/api?apikey=K");
    assert_eq!((sent[1].method, &*sent[1].body), (HttpMethod::Post, br#"{"a":1}"#.as_slice()));
    assert!(sent.iter().all(|request| request.headers.len() == 1));
    assert_eq!(pool.endpoints()[0].calls["list"].sent, 2);
}

#[tokio::test(start_paused = true)]
async fn a_slow_down_is_waited_for_and_other_trouble_is_asked_again() {
    let acts = [
        Act::Body("slow"),
        Act::Body("<html>"),
        Act::Break,
        Act::Status(502, "", None),
        Act::Body("good"),
    ];
    let script = Arc::new(Script::default().host("one", 1, acts));
    let pool = pool(&script, vec![at("one")]);
    let began = Instant::now();
    list(&pool).await.unwrap();
    assert_eq!(script.sent().len(), 5);
    assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
    let counts = pool.endpoints()[0].calls["list"];
    assert_eq!((counts.sent, counts.failed), (5, 4));
}

/// The header is the server's own, independent of how the body is classified.
#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_with_any_body() {
    for (status, body) in [(429, "<html>"), (503, "<html>"), (429, "slow")] {
        let acts = [Act::Status(status, body, Some("9")), Act::Body("good")];
        let script = Arc::new(Script::default().host("one", 1, acts));
        let began = Instant::now();
        list(&pool(&script, vec![at("one")])).await.unwrap();
        let took = began.elapsed().as_secs();
        assert!((9..11).contains(&took), "{status} {body}: {took} s");
    }
    let acts = [Act::Status(429, "refused", Some("9")), Act::Body("good")];
    let script = Arc::new(Script::default().host("one", 1, acts));
    let pool = pool(&script, vec![at("one")]);
    assert!(matches!(list(&pool).await, Err(UpstreamError::Rpc { .. })));
    assert!(pool.endpoints()[0].resting);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_final_and_shows_no_key() {
    let script = Arc::new(Script::default().host(
        "one",
        1,
        [Act::Body("refused path-key-1234 for header-key-5555")],
    ));
    let header = ("authorization".to_owned(), SecretText::new("Bearer header-key-5555"));
    let endpoint =
        EndpointConfig { headers: vec![header], ..EndpointConfig::new("http://one/path-key-1234") };
    let pool = pool(&script, vec![endpoint]);
    let error = list(&pool).await.unwrap_err();
    let message = "refused (hidden) for (hidden)".to_owned();
    assert_eq!(error, UpstreamError::Rpc { endpoint: "http://one".to_owned(), code: 7, message });
    assert_eq!(script.sent().len(), 1);
}

/// Texts are cut after keys are masked, because half a key would not be recognized.
#[tokio::test(start_paused = true)]
async fn no_part_of_a_key_is_left_where_a_long_text_is_cut() {
    const KEY: &str = "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6";
    for first in ["slow", "again"] {
        // At these lengths the cut falls inside a key.
        for letters in [170, 180, 190, 470, 480, 490] {
            let body = format!("{first} {} {KEY} {KEY}", "x".repeat(letters)).leak();
            let acts = [Act::Status(429, body, None), Act::Body("good")];
            let script = Arc::new(Script::default().host("one", 1, acts));
            let pool = pool(&script, vec![EndpointConfig::new(format!("http://one/v2/{KEY}"))]);
            list(&pool).await.unwrap();
            let shown = pool.endpoints()[0].last_error.clone().unwrap();
            assert!(shown.contains("xxx"), "{shown}");
            for at in 0..KEY.len() - 6 {
                assert!(!shown.contains(&KEY[at..at + 6]), "{first} {letters}: {shown}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_endpoint_lacks_another_gives_and_what_all_lack_is_not_supported() {
    let script = |two| {
        let script = Script::default().host("one", 1, [Act::Body("absent")]);
        Arc::new(script.host("two", 1, [two]))
    };
    let good = script(Act::Body("good"));
    let began = Instant::now();
    list(&pool(&good, vec![at("one"), at("two")])).await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(20), "{:?}", began.elapsed());
    let script = script(Act::Body("absent"));
    let pool = pool(&script, vec![at("one"), at("two")]);
    for _ in 0..3 {
        let error = list(&pool).await.unwrap_err();
        assert_eq!(error, UpstreamError::NotSupported { method: "list".to_owned() });
    }
    assert_eq!((script.sent_to("one"), script.sent_to("two")), (3, 3), "believed, remembered");
}

#[tokio::test(start_paused = true)]
async fn a_dead_endpoint_is_given_up_in_bounded_time() {
    let acts = [Act::Body("nothing-good path-key-1234")];
    let script = Arc::new(Script::default().host("one", 1, acts));
    let pool = pool(&script, vec![EndpointConfig::new("http://one/path-key-1234")]);
    let began = Instant::now();
    let error = list(&pool).await.unwrap_err();
    assert!(matches!(error, UpstreamError::Unavailable { .. }), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let shown = format!("{error} {:?}", pool.endpoints());
    assert!(shown.contains("nothing-good (hidden)") && !shown.contains("path-key"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn its_rate_and_its_turns_are_those_of_all_calls() {
    let script = Arc::new(Script::default().host("one", 1, [Act::Body("good")]));
    let endpoint = EndpointConfig { rate_millihertz: Some(2_000), ..at("one") };
    let pool = pool(&script, vec![endpoint]);
    let began = Instant::now();
    for _ in 0..9 {
        list(&pool).await.unwrap();
    }
    let took = began.elapsed();
    assert!(took > Duration::from_millis(3_800) && took < Duration::from_secs(5), "{took:?}");
}

/// JSON-RPC: history that one node has dropped.
#[tokio::test(start_paused = true)]
async fn pruned_history_is_asked_of_each_endpoint_once_then_final() {
    const PRUNED: &str =
        r#"{"id":0,"error":{"code":-32000,"message":"missing trie node 01 (path ) state"}}"#;
    let echo = [Act::Body(PRUNED), Act::Body(PRUNED), Act::Echo];
    let script = Script::default().host("one", 1, [Act::Body(PRUNED)]);
    let script = Arc::new(script.host("two", 1, [Act::Body(PRUNED)]).host("three", 1, echo));
    let pool = pool(&script, vec![at("one"), at("two"), at("three")]);
    let options = lane(1);
    let call = || pool.call("eth_getBalance", serde_json::json!([5]), &options);
    for _ in 0..2 {
        let error = call().await.unwrap_err();
        assert!(matches!(error, UpstreamError::Rpc { code: -32000, .. }), "{error:?}");
    }
    assert_eq!(script.sent().len(), 6, "each endpoint once a call");
    assert_eq!(call().await.unwrap().result.get(), "5");
}
