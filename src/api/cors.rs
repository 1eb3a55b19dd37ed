//! Pages of other sites may ask too: keys travel in headers, never in cookies, so that every origin
//! may be allowed (Fetch standard, CORS protocol).

use warp::Reply as _;
use warp::http::StatusCode;
use warp::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, HeaderMap, HeaderValue,
};
use warp::reply::Response;

const ANYBODY: HeaderValue = HeaderValue::from_static("*");
/// Headers that a page may send in addition to the safelisted ones.
const SENT: HeaderValue =
    HeaderValue::from_static("authorization, content-type, x-api-key, x-request-id");
/// Headers that a page may read in addition to the safelisted ones.
const READ: HeaderValue = HeaderValue::from_static(
    "blotter-as-of, link, ratelimit, ratelimit-policy, retry-after, x-request-id",
);
/// Seconds for which a browser need not ask again: the most that Chromium keeps.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Lets any page read the answer.
pub(super) fn allow(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANYBODY);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, READ);
}

/// What a path answers, for OPTIONS and for the question that a browser asks beforehand.
pub(super) fn options(methods: &'static str) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static(methods);
    headers.insert(ALLOW, methods.clone());
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, SENT);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}
