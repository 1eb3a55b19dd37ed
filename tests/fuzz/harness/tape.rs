//! What nodes answered, as lines of text: `KEY ANSWER`, in the order in which it was asked.
//!
//! A key is a method, or what a path is about. An answer is a result, which gets its envelope and
//! the right id when it is played; `!` and an error; or `#`, a status and a body. Line ends inside of
//! an answer stand as the byte 0x1e.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use blotter::rpc::{HttpMethod, Request, Response, Transport, TransportError};
use futures_util::future::BoxFuture;
use serde_json::Value;

/// Requests that are answered from the tape; then everything is refused.
const ANSWERED_MAX: usize = 400;
/// A reader that retries for ever, though all is refused, never ends.
const REFUSED_MAX: usize = 3_000;
/// Longer parts of a path are ids and addresses.
const NAME_CHARS_MAX: usize = 24;
const LINE_END: u8 = 0x1e;

struct Asked {
    key: String,
    /// `None`: the answer has no envelope.
    id: Option<Value>,
}

/// What a request asks for, and whether as a batch.
fn asked(request: &Request) -> (Vec<Asked>, bool) {
    let body = serde_json::from_slice::<Value>(&request.body).unwrap_or_default();
    let call = |call: &Value| {
        Some(Asked { key: call.get("method")?.as_str()?.to_owned(), id: call.get("id").cloned() })
    };
    if let Some(calls) = body.as_array() {
        return (calls.iter().filter_map(call).collect(), true);
    }
    let plain = || Asked { key: name(request), id: None };
    (vec![call(&body).unwrap_or_else(plain)], false)
}

/// The short parts of the path, and the action that a query names.
fn name(request: &Request) -> String {
    let url = request.url.expose();
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parts = path.split('/').skip(1).filter(|part| part.len() <= NAME_CHARS_MAX);
    let action = query.split('&').filter_map(|pair| pair.strip_prefix("action="));
    let method = match request.method {
        HttpMethod::Get => "get",
        HttpMethod::Post => "post",
    };
    let parts: Vec<&str> = std::iter::once(method).chain(parts).chain(action).collect();
    parts.join("/")
}

/// Answers from a tape.
#[derive(Debug)]
pub struct Player(Mutex<Tape>);

#[derive(Debug, Default)]
struct Tape {
    /// By key, what is still to be answered, last first.
    answers: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    count: usize,
}

impl Player {
    pub fn new(lines: &[u8]) -> Arc<Self> {
        let mut tape = Tape::default();
        for line in lines.split(|byte| *byte == b'\n') {
            let at = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
            let (key, answer) = line.split_at(at);
            let inside = |byte: &u8| if *byte == LINE_END { b'\n' } else { *byte };
            let answer = answer.get(1..).unwrap_or_default().iter().map(inside).collect();
            tape.answers.entry(key.to_vec()).or_default().push(answer);
        }
        for answers in tape.answers.values_mut() {
            answers.reverse();
        }
        Arc::new(Self(Mutex::new(tape)))
    }

    fn tape(&self) -> MutexGuard<'_, Tape> {
        self.0.lock().expect("no holder panics")
    }
}

impl Tape {
    /// The last answer to a key is given again and again.
    fn next(&mut self, key: &str) -> Option<Vec<u8>> {
        let answers = self.answers.get_mut(key.as_bytes())?;
        if answers.len() > 1 { answers.pop() } else { answers.first().cloned() }
    }

    fn answer(&mut self, request: &Request) -> Response {
        self.count += 1;
        if self.count > ANSWERED_MAX {
            assert!(self.count <= ANSWERED_MAX + REFUSED_MAX, "it never ends");
            return response(403, b"no more".to_vec());
        }
        let (asked, batch) = asked(request);
        let [one] = asked.as_slice() else { return self.batch(&asked) };
        let Some(answer) = self.next(&one.key) else {
            return match &one.id {
                Some(id) => response(200, envelope(id, b"null")),
                None => response(404, b"{}".to_vec()),
            };
        };
        match (answer.strip_prefix(b"#"), &one.id) {
            (Some(rest), _) => {
                let (status, body) = rest.split_at(rest.len().min(3));
                let status = std::str::from_utf8(status).ok().and_then(|text| text.parse().ok());
                response(status.unwrap_or(500), body.to_vec())
            }
            (None, Some(_)) if batch => self.batch(&asked),
            (None, Some(id)) => response(200, envelope(id, &answer)),
            (None, None) => response(200, answer),
        }
    }

    fn batch(&mut self, asked: &[Asked]) -> Response {
        let null = Value::Null;
        let entries: Vec<Vec<u8>> = asked
            .iter()
            .map(|one| {
                let answer = self.next(&one.key).unwrap_or_else(|| b"null".to_vec());
                envelope(one.id.as_ref().unwrap_or(&null), &answer)
            })
            .collect();
        response(200, [b"[".as_slice(), &entries.join(b",".as_slice()), b"]"].concat())
    }
}

fn envelope(id: &Value, answer: &[u8]) -> Vec<u8> {
    let (name, value) = match answer.strip_prefix(b"!") {
        Some(error) => ("error", error),
        None => ("result", answer),
    };
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{name}\":");
    [head.as_bytes(), value, b"}"].concat()
}

fn response(status: u16, body: Vec<u8>) -> Response {
    Response { status, retry_after: None, body: body.into() }
}

impl Transport for Player {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let answer = self.tape().answer(&request);
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// Writes down what another transport answers.
#[derive(Debug)]
pub struct Recorder {
    inner: Arc<dyn Transport>,
    lines: Mutex<Vec<Vec<u8>>>,
}

impl Recorder {
    pub fn new(inner: Arc<dyn Transport>) -> Arc<Self> {
        Arc::new(Self { inner, lines: Mutex::default() })
    }

    pub fn lines(&self) -> Vec<u8> {
        self.lines.lock().expect("no holder panics").concat()
    }

    fn note(&self, request: &Request, response: &Response) {
        let mut lines = self.lines.lock().expect("no holder panics");
        let mut line = |key: &str, answer: &[u8]| {
            let inside = |byte: &u8| if *byte == b'\n' { LINE_END } else { *byte };
            let answer: Vec<u8> = answer.iter().map(inside).collect();
            // More are not played.
            if lines.len() < ANSWERED_MAX {
                lines.push([key.as_bytes(), b" ", &answer, b"\n"].concat());
            }
        };
        let body = serde_json::from_slice::<Value>(&response.body).unwrap_or_default();
        for one in asked(request).0 {
            let Some(id) = &one.id else {
                if response.status == 200 {
                    line(&one.key, &response.body);
                } else {
                    line(&one.key, format!("#{}{body}", response.status).as_bytes());
                }
                continue;
            };
            let entries = body.as_array().map_or(std::slice::from_ref(&body), Vec::as_slice);
            let Some(entry) = entries.iter().find(|entry| entry["id"] == *id) else { continue };
            match entry.get("error") {
                Some(error) => line(&one.key, format!("!{error}").as_bytes()),
                None => line(&one.key, entry["result"].to_string().as_bytes()),
            }
        }
    }
}

impl Transport for Recorder {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            let response = self.inner.send(request.clone()).await?;
            self.note(&request, &response);
            Ok(response)
        })
    }
}
