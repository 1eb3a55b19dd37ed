//! Values that contain secrets, which `Display` and `Debug` hide.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use super::units::{Optional, serde_as_text};

const HIDDEN: &str = "***";
/// Longest words of a path that are shown: of lowercase letters and digits such as `v2`, and of
/// lowercase letters alone such as `ethereum-mainnet`. Anything else may be a key and is hidden.
const WORD_CHARS_MAX: usize = 5;
const PLAIN_WORD_CHARS_MAX: usize = 12;
const WORDS_MAX: usize = 3;

/// An endpoint's URL. Providers put keys into user info, path and query.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::cli) struct ConfigUrl {
    text: String,
    /// From the built-in tables: shown in full.
    is_public: bool,
}

/// A header value, a key or a database URL, never shown.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::cli) struct ConfigSecret(String);

impl ConfigUrl {
    /// Parses an `http` or `https` URL with a host.
    pub(in crate::cli) fn parse(text: &str) -> Result<Self, &'static str> {
        let expected = "expected an address such as \"https://host/path\"";
        let uri: http::Uri = text.parse().map_err(|_| expected)?;
        let known = matches!(uri.scheme_str(), Some("http" | "https"));
        let host = uri.host().is_some_and(|host| !host.is_empty());
        let is_public = false;
        if known && host { Ok(Self { text: text.to_owned(), is_public }) } else { Err(expected) }
    }

    /// Parses a URL of the built-in tables.
    pub(in crate::cli) fn public(text: &str) -> Result<Self, &'static str> {
        Ok(Self { is_public: true, ..Self::parse(text)? })
    }

    pub(in crate::cli) fn expose(&self) -> &str {
        &self.text
    }

    /// Host and port, which identify the endpoint in messages.
    pub(in crate::cli) fn host(&self) -> String {
        let uri = self.text.parse::<http::Uri>().ok();
        let authority = uri.as_ref().and_then(http::Uri::authority).map_or("", |a| a.as_str());
        authority.rsplit('@').next().unwrap_or_default().to_owned()
    }
}

impl ConfigSecret {
    pub(in crate::cli) fn expose(&self) -> &str {
        &self.0
    }
}

/// The URL with user info, key-like path segments and query values hidden.
impl fmt::Display for ConfigUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_public {
            return f.write_str(&self.text);
        }
        let Ok(uri) = self.text.parse::<http::Uri>() else { return f.write_str(HIDDEN) };
        let authority = uri.authority().map_or("", |a| a.as_str());
        write!(f, "{}://", uri.scheme_str().unwrap_or_default())?;
        if authority.contains('@') {
            write!(f, "{HIDDEN}@")?;
        }
        f.write_str(&self.host())?;
        let path = uri.path().strip_prefix('/').filter(|path| !path.is_empty());
        for segment in path.into_iter().flat_map(|path| path.split('/')) {
            let shown = if is_key_like(segment) { HIDDEN } else { segment };
            write!(f, "/{shown}")?;
        }
        for (at, pair) in uri.query().into_iter().flat_map(|q| q.split('&')).enumerate() {
            let name = pair.split_once('=').map_or(HIDDEN, |(name, _)| name);
            write!(f, "{}{name}={HIDDEN}", if at == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

fn is_key_like(segment: &str) -> bool {
    let is_plain = |word: &str| {
        let is_plain = word.bytes().all(|b| b.is_ascii_lowercase());
        let is_small = word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        is_small && word.len() <= WORD_CHARS_MAX || is_plain && word.len() <= PLAIN_WORD_CHARS_MAX
    };
    !segment.split('-').all(is_plain) || segment.split('-').count() > WORDS_MAX
}

impl FromStr for ConfigUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        Self::parse(text)
    }
}

impl FromStr for ConfigSecret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ConfigSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

serde_as_text!(ConfigUrl);
serde_as_text!(Optional<ConfigUrl>);
serde_as_text!(ConfigSecret);
serde_as_text!(Optional<ConfigSecret>);

impl fmt::Debug for ConfigUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for ConfigSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// Removes the value from a parser's error text, since it may be a secret in the wrong place. Its
/// type remains.
pub(super) fn without_value(reason: &str) -> String {
    const FOUND: [&str; 3] = ["invalid type: ", "invalid value: ", "unknown variant"];
    const EXPECTED: &str = ", expected ";
    // The value itself may contain these words too.
    let first = FOUND.iter().filter_map(|found| Some((reason.find(found)?, *found))).min();
    let parts = first.and_then(|(_, found)| {
        let (before, rest) = reason.split_once(found)?;
        let (value, expected) = rest.rsplit_once(EXPECTED)?;
        let kind = value.split([' ', '"', '`']).next().unwrap_or_default();
        Some([before, found, kind, EXPECTED, expected].concat())
    });
    parts.unwrap_or_else(|| reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, shown: &str) {
        assert_eq!(ConfigUrl::parse(url).unwrap().to_string(), shown);
    }

    #[test]
    fn shows_where_but_never_the_key() {
        check("https://api.example.org", "https://api.example.org");
        check("http://127.0.0.1:18545/sol", "http://127.0.0.1:18545/sol");
        check("https://me:word@h.example/rpc", "https://***@h.example/rpc");
        check("https://h.example/v2/aB3dE5fG7hI9jK1lM3", "https://h.example/v2/***");
        check(
            "https://h.example/datasets/blast-l2-mainnet",
            "https://h.example/datasets/blast-l2-mainnet",
        );
        for key in
            ["onlylowercaseletters", "LongWord", "short1", "550e-8400-e29b-41d4", "%61%62%63"]
        {
            check(&format!("https://h.example/rpc/{key}"), "https://h.example/rpc/***");
        }
        check("https://h.example/?api-key=abc&x", "https://h.example?api-key=***&***=***");
    }

    #[test]
    fn a_value_that_repeats_the_words_of_an_error_is_not_shown() {
        for (value, expected) in [("x", "one of `portal`, `logs`"), ("a, expected b", "a map")] {
            let reason = format!("unknown variant `invalid type: {value}`, expected {expected}");
            assert_eq!(without_value(&reason), format!("unknown variant, expected {expected}"));
        }
        assert_eq!(without_value("the key is of no chain"), "the key is of no chain");
    }

    #[test]
    fn refuses_what_is_no_address() {
        for bad in ["", "sol", "ftp://h/x", "https://", "/path", "http:// h/"] {
            assert!(ConfigUrl::parse(bad).is_err(), "{bad}");
        }
    }
}
