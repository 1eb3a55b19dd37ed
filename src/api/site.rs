//! The page at `/` and its files, all embedded.

use sha2::{Digest as _, Sha256};
use warp::Reply as _;
use warp::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use warp::http::{HeaderMap, StatusCode};
use warp::reply::Response;

use super::call::ApiCall;
use super::coding::Coding;
use super::error::ApiError;
use super::reply;

const CSS: HeaderValue = HeaderValue::from_static("text/css; charset=utf-8");
const SCRIPT: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");
const SVG: HeaderValue = HeaderValue::from_static("image/svg+xml");

/// The page runs only its own files, connects only to its own server, and cannot be framed.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
/// Linked explorers do not learn the page's address.
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
const OPENER_POLICY: (HeaderName, HeaderValue) = (
    HeaderName::from_static("cross-origin-opener-policy"),
    HeaderValue::from_static("same-origin"),
);
/// The page itself is revalidated each time, mostly with a 304.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");
/// The path of a file contains its version.
const CACHE_FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

const INDEX: &str = include_str!("../../data/page/index.html");
/// Placeholder in the page for the version of its files.
const VERSION_MARK: &str = "{version}";

/// Embeds the named files.
macro_rules! files {
    ($($name:literal,)*) => {
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../data/page/", $name)))),*];
    };
}

files! {
    "address.js", "api.js", "app.js", "chart.js", "coverage.js", "csv.js", "decimal.js",
    "disposals.js", "explorer.js", "export.js", "figures.js", "filters.js", "format.js",
    "icon.svg", "json.js", "keys.js", "layout.css", "lots.js", "panel.js", "place.js", "pnl.js",
    "positions.js", "recent.js", "rows.js", "session.js", "stream.js", "style.css",
    "summary.js", "table.css", "table.js", "tax.js", "theme.js", "trades.js",
}

#[derive(Debug)]
pub(super) struct Site {
    /// Hash of all files together, so that a page never mixes files of two builds.
    version: String,
    index: String,
}

impl Site {
    pub(super) fn new() -> Self {
        let mut digest = Sha256::new_with_prefix(INDEX);
        for (name, body) in FILES {
            digest.update(name);
            digest.update(body);
        }
        let version: String = hex::encode(digest.finalize()).chars().take(16).collect();
        let index = INDEX.replace(VERSION_MARK, &version);
        Self { version, index }
    }

    pub(super) fn page(&self, call: &ApiCall) -> Response {
        let mut response = self.answer(call, reply::HTML, &self.index, REVALIDATE);
        let headers = response.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, POLICY);
        headers.insert(REFERRER_POLICY, NO_REFERRER);
        let (name, value) = OPENER_POLICY;
        headers.insert(name, value);
        response
    }

    pub(super) fn file(
        &self,
        call: &ApiCall,
        version: &str,
        name: &str,
    ) -> Result<Response, ApiError> {
        let file = FILES.iter().find(|(known, _)| *known == name && version == self.version);
        let (name, body) = file.ok_or(ApiError::NotFound)?;
        let kind = match name.rsplit_once('.') {
            Some((_, "css")) => CSS,
            Some((_, "svg")) => SVG,
            _ => SCRIPT,
        };
        Ok(self.answer(call, kind, body, CACHE_FOREVER))
    }

    fn answer(&self, call: &ApiCall, kind: HeaderValue, body: &str, keep: HeaderValue) -> Response {
        // Weak: the same tag for each coding of the body (RFC 9110, section 8.8.3).
        let tag = format!("W/\"{}\"", self.version);
        let mut response = if has_tag(&call.headers, &tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let coding = Coding::accepted(&call.headers);
            reply::whole_in(StatusCode::OK, kind, body.as_bytes().to_vec(), coding)
        };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, keep);
        headers.insert(X_CONTENT_TYPE_OPTIONS, reply::NO_SNIFF);
        reply::put(headers, ETAG, tag);
        response
    }
}

/// Whether the client has this version (RFC 9110, section 13.1.2).
fn has_tag(headers: &HeaderMap, tag: &str) -> bool {
    let opaque = tag.trim_start_matches("W/");
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|one| one == "*" || one.trim_start_matches("W/") == opaque)
}
