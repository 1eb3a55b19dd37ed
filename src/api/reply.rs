//! Builds responses with the headers of each kind.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use serde::Serialize;
use tokio::time::Instant;
use warp::Reply as _;
use warp::http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use warp::http::{HeaderMap, HeaderValue, StatusCode};
use warp::reply::Response;

use super::App;
use super::call::ApiCall;
use super::coding::{Coding, Frames};
use super::dto::{ErrorBody, ErrorObject};
use super::error::ApiError;
use super::packing::Packing;
use super::rate_limit::{RateState, whole_seconds};
use crate::domain::UnixMillis;
use crate::history::AsOf;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const NDJSON: HeaderValue =
    HeaderValue::from_static("application/x-ndjson; charset=utf-8");
pub(super) const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// Responses belong to a key, and proxies must neither store, transform nor delay them.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store, no-transform");
/// Makes nginx and similar proxies forward each piece immediately.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
/// Up to which height the response is current, and when that was checked.
const AS_OF: HeaderName = HeaderName::from_static("blotter-as-of");
const RATE_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATE: HeaderName = HeaderName::from_static("ratelimit");
pub(super) const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"blotter\"");

/// Capacity for the headers of a page.
const HEADERS_TYPICAL: usize = 12;

/// How long a response to a fast client is written before other tasks get a turn.
const TURN: Duration = Duration::from_millis(1);

pub(super) fn whole(status: StatusCode, kind: HeaderValue, body: Vec<u8>) -> Response {
    let length = HeaderValue::from(body.len());
    let mut response = Response::new(Bytes::from(body).into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(HEADERS_TYPICAL);
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CONTENT_LENGTH, length);
    headers.insert(CACHE_CONTROL, NO_STORE);
    response
}

/// A response with a complete body, compressed if that is worthwhile.
pub(super) fn whole_in(
    status: StatusCode,
    kind: HeaderValue,
    body: Vec<u8>,
    coding: Coding,
) -> Response {
    let (body, coding) = match coding.whole(&body) {
        Some(compressed) => (compressed, coding),
        None => (body, Coding::Identity),
    };
    let mut response = whole(status, kind, body);
    coding.set_headers(response.headers_mut());
    response
}

/// A response whose body is written piece by piece.
pub(super) fn streamed(
    kind: HeaderValue,
    frames: impl Frames,
    coding: Coding,
    packing: &Packing,
) -> Response {
    let frames = in_turns(packing.frames(coding, frames), TURN);
    let mut response = warp::reply::stream(Exclusive(Mutex::new(Box::pin(frames)))).into_response();
    put_stream_headers(response.headers_mut(), kind);
    coding.set_headers(response.headers_mut());
    response
}

/// Yields to other tasks between frames once `turn` has passed. A socket accepts megabytes before
/// it blocks, so without this one response would delay the others. A yield wakes another thread,
/// which costs too much after each frame.
fn in_turns(frames: Pin<Box<dyn Frames>>, turn: Duration) -> impl Frames {
    stream::unfold((frames, None), move |(mut frames, begun)| async move {
        let begun = match begun {
            Some(begun) if Instant::now().duration_since(begun) < turn => begun,
            Some(_) => {
                tokio::task::yield_now().await;
                Instant::now()
            }
            None => Instant::now(),
        };
        let frame = frames.next().await?;
        Some((frame, (frames, Some(begun))))
    })
}

pub(super) fn head_of_stream(kind: HeaderValue) -> Response {
    let mut response = Vec::new().into_response();
    put_stream_headers(response.headers_mut(), kind);
    response
}

fn put_stream_headers(headers: &mut HeaderMap, kind: HeaderValue) {
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, NO_STORE);
    let (name, value) = UNBUFFERED;
    headers.insert(name, value);
}

pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    // Writing cannot fail, since our shapes have string keys only.
    whole(status, JSON, serde_json::to_vec(value).unwrap_or_default())
}

pub(super) fn metrics(text: String) -> Response {
    whole(StatusCode::OK, OPEN_METRICS, text.into_bytes())
}

pub(super) fn problem(
    error: &ApiError,
    message: &str,
    now: UnixMillis,
    request_id: &str,
    path: &str,
) -> Vec<u8> {
    let kind = error.kind();
    let body = ErrorBody {
        error: ErrorObject {
            code: &kind.group(),
            message,
            timestamp: now.seconds().to_string(),
            request_id,
        },
        r#type: kind.uri(),
        title: kind.title,
        status: kind.status.as_u16(),
        detail: message,
        instance: path,
    };
    // Writing cannot fail, since our shapes have string keys only.
    serde_json::to_vec(&body).unwrap_or_default()
}

/// Seconds that a client should wait before a retry.
pub(super) fn retry_after(app: &App, error: &ApiError) -> Option<u64> {
    error.retry_after(app.limits.retry_after).map(|wait| whole_seconds(wait).max(1))
}

pub(super) fn error(call: &ApiCall, error: &ApiError) -> Response {
    let message = call.app.message(error);
    let body = problem(error, &message, call.now(), &call.request_id, &call.path);
    let mut response = whole(error.kind().status, PROBLEM, body);
    let headers = response.headers_mut();
    if let Some(wait) = retry_after(&call.app, error) {
        headers.insert(RETRY_AFTER, HeaderValue::from(wait));
    }
    if let ApiError::Unauthorized = error {
        headers.insert(WWW_AUTHENTICATE, CHALLENGE);
    }
    if let ApiError::Ambiguous(_) = error {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let ApiError::MethodNotAllowed { allowed } = error {
        headers.insert(ALLOW, HeaderValue::from_static(allowed));
    }
    if let ApiError::RateLimited { state, .. }
    | ApiError::TooManyStreams { rate: Some(state), .. }
    | ApiError::TooManyPnl { rate: Some(state), .. }
    | ApiError::TooManyExplained { rate: Some(state), .. } = error
    {
        put_rate(headers, *state);
    }
    response
}

/// Adds the rate headers for a key with a rate.
pub(super) fn rated(mut response: Response, rate: Option<RateState>) -> Response {
    if let Some(state) = rate {
        put_rate(response.headers_mut(), state);
    }
    response
}

/// The fields of draft-ietf-httpapi-ratelimit-headers.
fn put_rate(headers: &mut HeaderMap, state: RateState) {
    let RateState { burst, window_seconds, remaining, reset_seconds } = state;
    put(headers, RATE_POLICY, format!("\"default\";q={burst};w={window_seconds}"));
    put(headers, RATE, format!("\"default\";r={remaining};t={reset_seconds}"));
}

pub(super) fn put_as_of(headers: &mut HeaderMap, as_of: Option<AsOf>) {
    if let Some(AsOf { height, at }) = as_of {
        let (time, mut digits) = (at.seconds().text(), itoa::Buffer::new());
        let as_of = [digits.format(height).as_bytes(), b"; ", time.as_slice()].concat();
        put(headers, AS_OF, as_of);
    }
}

/// Inserts a header, unless its value is invalid.
pub(super) fn put(headers: &mut HeaderMap, name: HeaderName, value: impl Into<Bytes>) {
    if let Ok(value) = HeaderValue::from_maybe_shared(value.into()) {
        headers.insert(name, value);
    }
}

/// Makes a stream `Sync`, as warp requires. Polling has exclusive access, so the lock is never
/// taken.
struct Exclusive<S>(Mutex<Pin<Box<S>>>);

impl<S: Stream> Stream for Exclusive<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let inner = self.get_mut().0.get_mut().unwrap_or_else(PoisonError::into_inner);
        inner.as_mut().poll_next(cx)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn frames_that_are_ready_still_give_way() {
        let ready = || {
            let frames = ["a", "b"];
            Box::pin(stream::iter(
                frames.map(|frame| Ok::<_, std::convert::Infallible>(Bytes::from(frame))),
            ))
        };
        let mut frames = std::pin::pin!(in_turns(ready(), Duration::MAX));
        assert_eq!(frames.next().now_or_never(), Some(Some(Ok("a".into()))));
        assert_eq!(frames.next().now_or_never(), Some(Some(Ok("b".into()))), "in one turn");
        let mut frames = std::pin::pin!(in_turns(ready(), Duration::ZERO));
        assert_eq!(frames.next().now_or_never(), Some(Some(Ok("a".into()))));
        assert_eq!(frames.next().now_or_never(), None, "the second comes in its turn");
        assert_eq!(frames.next().await, Some(Ok("b".into())));
        assert_eq!(frames.next().await, None);
    }
}
