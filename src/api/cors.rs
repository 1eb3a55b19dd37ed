//! CORS for every origin, which is safe since keys are sent in headers and never in cookies (Fetch
//! standard, CORS protocol).

use warp::Reply as _;
use warp::http::StatusCode;
use warp::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, HeaderMap, HeaderValue,
};
use warp::reply::Response;

const ANY_ORIGIN: HeaderValue = HeaderValue::from_static("*");
/// Request headers that are allowed in addition to the safelisted ones.
const SENT: HeaderValue =
    HeaderValue::from_static("authorization, content-type, x-api-key, x-request-id");
/// Response headers that are exposed in addition to the safelisted ones.
const READ: HeaderValue = HeaderValue::from_static(
    "blotter-as-of, link, ratelimit, ratelimit-policy, retry-after, x-request-id",
);
/// Seconds for which browsers cache a preflight response: the most that Chromium allows.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Lets pages of any origin read the response.
pub(super) fn allow(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, READ);
}

/// The response to OPTIONS, and so to a preflight request.
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
