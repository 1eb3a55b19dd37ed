//! A JSON-RPC answer to one call or to a batch: each call gets its own answer, or an error without
//! an address and without control characters for a terminal.
//!
//! The first byte chooses the number of calls and the status, the rest is the body; of a 429 its
//! first line is the `Retry-After` header too.

#![no_main]

use std::sync::Arc;
use std::time::Duration;

use blotter::rpc::{Call, CallOptions, Request, Response, Transport, TransportError, UpstreamError};
use blotter_fuzz::reading::{SECRET, known, lane};
use blotter_fuzz::sample::pool;
use blotter_fuzz::{on_paused_time, target};
use futures_util::future::BoxFuture;
use serde_json::json;

const STATUSES: [u16; 8] = [200, 200, 200, 200, 400, 403, 429, 500];
const CALLS_MAX: usize = 4;

#[derive(Debug)]
struct Same(Response);

impl Transport for Same {
    fn send(&self, _: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let bodies = [
        (0, r#"{"jsonrpc":"2.0","id":0,"result":{"a":[1,"x",null]}}"#.to_owned()),
        (1, r#"[{"id":1,"result":7},{"id":"0","result":null}]"#.to_owned()),
        (2, r#"[{"id":2,"error":{"code":-32005,"message":"query returned more than 10000 results"}}]"#.to_owned()),
        (3, format!(r#"{{"id":null,"error":{{"code":-32600,"message":"batch, key {SECRET}"}}}}"#)),
        (24, "Wed, 21 Oct 2015 07:28:00 GMT\n<html><title>429 Too Many Requests</title></html>".to_owned()),
        (16, r#"{"error":{"code":-32601,"message":"the method echo does not exist"}}"#.to_owned()),
    ];
    bodies.map(|(choice, body)| [vec![choice], body.into_bytes()].concat()).to_vec()
}

fn attempt(bytes: &[u8]) {
    let Some((choice, body)) = bytes.split_first() else { return };
    let choice = usize::from(*choice);
    let (count, status) = (choice % CALLS_MAX + 1, STATUSES[choice / CALLS_MAX % STATUSES.len()]);
    let first = body.split(|byte| *byte == b'\n').next().map(String::from_utf8_lossy);
    let retry_after = first.filter(|_| status == 429).map(String::from);
    let response = Response { status, retry_after, body: body.to_vec().into() };
    let transport: Arc<dyn Transport> = Arc::new(Same(response));
    let pool = pool(&transport, "demo.test");
    let calls: Vec<Call> =
        (0..count).map(|at| Call { method: "echo", params: json!([at]) }).collect();
    on_paused_time(async {
        let options = CallOptions::new(lane());
        let answers = tokio::time::timeout(Duration::from_secs(600), pool.batch(&calls, &options));
        let answers = answers.await.expect("it ends");
        assert_eq!(answers.len(), count);
        let text = String::from_utf8_lossy(body);
        for answer in answers {
            if let Some(answer) = checked(answer) {
                assert!(text.contains(answer.result.get()), "{}", answer.result);
            }
        }
    });
}

fn checked<T>(answer: Result<T, UpstreamError>) -> Option<T> {
    if let Err(error) = &answer {
        let text = error.to_string();
        assert!(!text.chars().any(char::is_control) && text.chars().count() < 1_000, "{text:?}");
    }
    known(answer)
}

target!(seeds, attempt);
