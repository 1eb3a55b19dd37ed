//! JSON-RPC 2.0 envelopes. Results stay raw text; the caller knows their type.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub struct Call {
    pub method: &'static str,
    pub params: Value,
}

/// A node's error object; some services return a text instead, others a code as text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Value")]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl From<Value> for RpcError {
    fn from(error: Value) -> Self {
        let text = |part: &Value| part.as_str().map(str::to_owned);
        let field = |name: &str| error.get(name).unwrap_or(&Value::Null);
        let code = field("code");
        let code = code.as_i64().or_else(|| code.as_str()?.parse().ok()).unwrap_or(0);
        // Some services describe the error in `data`, which also holds the result of a reverted
        // call.
        let data = text(field("data")).filter(|data| !data.starts_with("0x"));
        let text_given = text(&error).or_else(|| text(field("message")));
        let message = match (text_given, data) {
            (Some(message), Some(data)) if !message.contains(&data) => format!("{message}: {data}"),
            (message, data) => message.or(data).unwrap_or_default(),
        };
        Self { code, message }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    /// `Some` for a null result too, whose raw text is `null`.
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    error: Option<RpcError>,
}

fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

pub(crate) type CallOutcome = Result<Box<RawValue>, RpcError>;

/// Ids are below this power of two, so that any kind of number holds them.
const IDS: u32 = 1 << 24;

/// The body of a request: one object for one call, else an array; ids count from `first`. Requests
/// have different ids, because a cache or a proxy may answer one with the body of another.
pub(crate) fn encode(first: u32, calls: &[&Call]) -> Vec<u8> {
    let call = |(at, Call { method, params }): (u32, &&Call)| {
        let id = first.wrapping_add(at) % IDS;
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    };
    let mut all: Vec<Value> = (0..).zip(calls).map(call).collect();
    let body = if all.len() == 1 { all.remove(0) } else { all.into() };
    body.to_string().into_bytes()
}

/// Decodes the answer to `count` calls with ids from `first` on. `Ok`: one entry a call, `None`
/// where none came for it (ids may come in any order, twice or not at all). `Err`: one error for
/// all, or not JSON-RPC.
pub(crate) fn decode(
    body: &[u8],
    first: u32,
    count: usize,
) -> Result<Vec<Option<CallOutcome>>, DecodeError> {
    let text = std::str::from_utf8(body).map_err(|_| DecodeError::NotJsonRpc)?;
    let mut answers: Vec<Option<CallOutcome>> = (0..count).map(|_| None).collect();
    if text.trim_start().starts_with('[') {
        let envelopes: Vec<Envelope<'_>> =
            serde_json::from_str(text).map_err(|_| DecodeError::NotJsonRpc)?;
        for envelope in envelopes {
            let at = envelope.id.and_then(|id| place_of(id, first));
            let place = at.and_then(|at| answers.get_mut(at));
            if let (Some(place @ None), Some(outcome)) = (place, outcome(&envelope)) {
                *place = Some(outcome);
            }
        }
        return Ok(answers);
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|_| DecodeError::NotJsonRpc)?;
    match (outcome(&envelope), answers.as_mut_slice()) {
        (Some(outcome), [place]) => {
            // Errors may come without the id of their call.
            let is_ours = |id| place_of(id, first) == Some(0) || id.get() == "null";
            *place = (outcome.is_err() || envelope.id.is_none_or(is_ours)).then_some(outcome);
            Ok(answers)
        }
        (Some(Err(error)), _) => Err(DecodeError::Error(error)),
        (Some(Ok(_)) | None, _) => Err(DecodeError::NotJsonRpc),
    }
}

/// The place of a call in its request by its id, which some services return as text.
fn place_of(id: &RawValue, first: u32) -> Option<usize> {
    let id = id.get().trim_matches('"').parse::<u32>().ok().filter(|id| *id < IDS)?;
    usize::try_from(id.wrapping_sub(first) % IDS).ok()
}

/// An answer that is not one entry for each call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// One error object instead of an array.
    Error(RpcError),
    NotJsonRpc,
}

fn outcome(envelope: &Envelope<'_>) -> Option<CallOutcome> {
    match (&envelope.error, envelope.result) {
        (Some(error), _) => Some(Err(error.clone())),
        (None, Some(result)) => Some(Ok(result.to_owned())),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_call_is_one_object() {
        let call = Call { method: "m", params: json!([1]) };
        let body: Value = serde_json::from_slice(&encode(7, &[&call])).unwrap();
        let expected = json!({"jsonrpc": "2.0", "id": 7, "method": "m", "params": [1]});
        assert_eq!(body, expected);
    }

    #[test]
    fn a_null_result_is_a_result() {
        let answers = decode(br#"{"jsonrpc":"2.0","id":0,"result":null}"#, 0, 1).unwrap();
        assert_eq!(answers[0].as_ref().unwrap().as_ref().unwrap().get(), "null");
    }

    #[test]
    fn one_error_for_a_whole_batch_is_recognized() {
        let body =
            br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}"#;
        let error = RpcError { code: -32600, message: "batch too large".to_owned() };
        assert_eq!(decode(body, 0, 3).unwrap_err(), DecodeError::Error(error));
    }

    #[test]
    fn invalid_answers_are_garbage() {
        let bodies: [&[u8]; 6] = [b"", b"<html>", b"{\"id\":0", b"[{]", b"\xff", b"{\"id\":0}"];
        for body in bodies {
            assert_eq!(decode(body, 0, 1).unwrap_err(), DecodeError::NotJsonRpc);
        }
    }

    /// The answer could come from a cache that mixes up two requests, each of one call or more.
    #[test]
    fn an_answer_to_another_request_is_none() {
        for first in [6, IDS - 1, u32::MAX] {
            let call = Call { method: "m", params: json!([]) };
            let own: Value = serde_json::from_slice(&encode(first, &[&call; 2])).unwrap();
            let ids = [0, 1].map(|at| own[at]["id"].clone());
            let is_given = |id: &Value, first: u32| {
                let one = json!({"id": id, "result": 1});
                let many = decode(json!([one]).to_string().as_bytes(), first, 1).unwrap();
                let one = decode(one.to_string().as_bytes(), first, 1).unwrap();
                assert_eq!(one[0].is_some(), many[0].is_some());
                one[0].is_some()
            };
            assert_eq!(ids.clone().map(|id| is_given(&id, first)), [true, false]);
            assert_eq!(ids.map(|id| is_given(&id, first.wrapping_add(1))), [false, true]);
        }
        let failed = br#"{"id":1,"error":{"code":1,"message":"m"}}"#;
        assert!(decode(failed, 7, 1).unwrap()[0].is_some(), "which some services number anew");
    }

    proptest! {
        /// However a node reorders, drops, repeats and adds entries, each call gets that of its id.
        #[test]
        fn each_call_gets_its_own_answer(order in proptest::collection::vec(0_usize..12, 0..24)) {
            let entries: Vec<_> = order.iter().map(|id| json!({"id": id, "result": id * 10})).collect();
            let body = serde_json::to_vec(&entries).unwrap();
            for (at, answer) in decode(&body, 0, 8).unwrap().into_iter().enumerate() {
                let got = answer.map(|a| a.unwrap().get().to_owned());
                prop_assert_eq!(got, order.contains(&at).then(|| (at * 10).to_string()));
            }
        }
    }
}
