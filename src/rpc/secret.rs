//! URLs and headers that may hold keys: usable, never shown.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Characters encoded in a query: all but letters, digits and `-._~` (RFC 3986).
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Characters encoded in a path, which may have several segments and percent codes already.
const PATH: &AsciiSet = &QUERY
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'%');

/// The URL of an endpoint. Shows scheme and host only; path, query and user info may hold keys.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl(String);

impl SecretUrl {
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The whole URL, for the transport alone.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Scheme, host and port: all that logs and errors may show.
    pub fn label(&self) -> String {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("http", &self.0));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        format!("{scheme}://{host}")
    }

    /// The URL with `path` appended to its path and `query` to its parameters.
    pub(crate) fn join(&self, path: &str, query: &[(&'static str, String)]) -> Self {
        let whole = self.0.split('#').next().unwrap_or_default();
        let (base, own) = whole.split_once('?').unwrap_or((whole, ""));
        let mut url = if path.is_empty() { base } else { base.trim_end_matches('/') }.to_owned();
        url.extend(utf8_percent_encode(path, PATH));
        let mut mark = '?';
        if !own.is_empty() {
            url.push('?');
            url.push_str(own.trim_end_matches('&'));
            mark = '&';
        }
        for (name, value) in query {
            url.push(std::mem::replace(&mut mark, '&'));
            url.extend(utf8_percent_encode(name, QUERY));
            url.push('=');
            url.extend(utf8_percent_encode(value, QUERY));
        }
        Self(url)
    }

    /// Parts that may be keys: user info, path segments, query values; as written, decoded, and as
    /// sent.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let rest = self.0.split_once("://").map_or(self.0.as_str(), |(_, rest)| rest);
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        let parts = user.split(':').chain(rest.split(['/', '?', '&', '=', '#']));
        let plain = parts.flat_map(|part| [part.to_owned(), unescaped(part).into_owned()]);
        plain.chain(basic(user)).filter(|part| may_be_key(part)).collect()
    }
}

/// Shorter parts are words such as `v2` and `rpc`; keys are longer.
const KEY_CHARS_MIN: usize = 6;

fn may_be_key(text: &str) -> bool {
    text.len() >= KEY_CHARS_MIN
}

/// A URL's user and password as its header has them (RFC 7617), without the padding.
fn basic(user: &str) -> Option<String> {
    let (name, word) = user.split_once(':').unwrap_or((user, ""));
    let pair = format!("{}:{}", unescaped(name), unescaped(word));
    (!user.is_empty()).then(|| STANDARD_NO_PAD.encode(pair))
}

/// Decodes percent-encoded bytes; invalid codes are kept.
fn unescaped(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Characters of an endpoint's text that are kept.
pub(super) const TEXT_MAX: usize = 500;

/// The beginning of an endpoint's text, without control characters and without the keys that it may
/// repeat. Keys are masked after control characters are dropped, else a key with one inside would
/// remain, and before the text is cut, else part of a key could remain.
pub(crate) fn mask(text: &str, secrets: &[String]) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    let masked = secrets.iter().fold(plain, |text, secret| text.replace(secret, "(hidden)"));
    masked.chars().take(TEXT_MAX).collect()
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Words of the value that may be keys: a server may repeat `Bearer KEY` as `KEY`.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let words = self.0.split([' ', ':', ',', ';', '=']);
        words.filter(|word| may_be_key(word)).map(str::to_owned).collect()
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_host_and_nothing_that_may_be_a_key() {
        let urls = [
            "https://user:planted@node.example:8443/planted?api-key=planted#planted",
            "https://node.example:8443/v2/planted",
            "https://node.example:8443",
        ];
        for url in urls {
            let shown = format!("{:?} {}", SecretUrl::new(url), SecretUrl::new(url).label());
            assert_eq!(shown, "https://node.example:8443 https://node.example:8443");
        }
        assert_eq!(format!("{:?}", SecretText::new("planted")), "(hidden)");
    }

    #[track_caller]
    fn joins(url: &str, path: &str, query: &[(&'static str, &str)], expected: &str) {
        let query: Vec<_> =
            query.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        assert_eq!(SecretUrl::new(url).join(path, &query).expose(), expected);
    }

    #[test]
    fn paths_and_parameters_go_behind_what_the_url_has() {
        joins("http://h", "", &[], "http://h");
        joins("http://h/api?apikey=k", "", &[("a", "1")], "http://h/api?apikey=k&a=1");
        joins("http://h/?apikey=k#top", "/v1/x", &[], "http://h/v1/x?apikey=k");
        joins("http://h/api/", "/v1", &[("a", "1"), ("b", "2")], "http://h/api/v1?a=1&b=2");
        joins("http://h/api/", "", &[("a", "x y&=%é/")], "http://h/api/?a=x%20y%26%3D%25%C3%A9%2F");
        joins("http://h", "/a?b#c d", &[], "http://h/a%3Fb%23c%20d");
    }

    #[test]
    fn keys_that_are_repeated_are_masked() {
        let url = SecretUrl::new("https://user:planted-1@node.example/v2/planted-2?key=planted-3");
        let mut secrets = url.secrets();
        secrets.extend(SecretText::new("Bearer planted-4").secrets());
        let text = "v2: planted-1, planted-2; planted-3: 'planted-4' at node.example";
        let shown = "v2: (hidden), (hidden); (hidden): '(hidden)' at node.example";
        assert_eq!(mask(text, &secrets), shown);
        assert_eq!(
            mask("a pla\u{1f}\u{1f}nted-2\n", &secrets),
            "a (hidden)",
            "torn by the endpoint"
        );
    }

    #[test]
    fn a_key_is_masked_in_each_form_that_a_node_sees() {
        let url = SecretUrl::new("https://na%6de:pass%2Fword@h/?key=ab%2Bcd%3D%3D&x=%e2%82%zz100%");
        let secrets = url.secrets();
        // The request's header contains `name:pass/word` in base64.
        for text in
            ["pass/word", "pass%2Fword", "Basic bmFtZTpwYXNzL3dvcmQ=", "ab+cd==", "ab%2Bcd%3D%3D"]
        {
            assert!(mask(text, &secrets).contains("(hidden)"), "{text}: {secrets:?}");
        }
        let lone = SecretUrl::new("https://planted@h/").secrets();
        assert_eq!(mask("Basic cGxhbnRlZDo=", &lone), "Basic (hidden)=");
        assert_eq!(SecretUrl::new("https://h/rpc").secrets(), Vec::<String>::new());
    }
}
