//! Text that holds a secret: used by name, shown hidden.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

const HIDDEN: &str = "***";
/// Words of a path that are no longer than these are shown: those of lowercase letters and digits
/// such as `v2`, and those of lowercase letters alone such as `ethereum-mainnet`. All else is taken
/// for a key.
const WORD_CHARS_MAX: usize = 5;
const PLAIN_WORD_CHARS_MAX: usize = 12;
const WORDS_MAX: usize = 3;

/// An endpoint's address. Providers put keys into user info, path and query.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::cli) struct ConfigUrl {
    text: String,
    /// Published for all: nothing of it is hidden.
    is_public: bool,
}

/// An endpoint's address, or nothing where the text is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct OptionalUrl(pub(in crate::cli) Option<ConfigUrl>);

/// A header value or key.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::cli) struct ConfigSecret(String);

/// The address of a database, or nothing where the text is empty. Nothing of it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct OptionalSecret(pub(in crate::cli) Option<ConfigSecret>);

impl ConfigUrl {
    /// Refuses what is no `http` or `https` address with a host.
    pub(in crate::cli) fn parse(text: &str) -> Result<Self, &'static str> {
        let expected = "expected an address such as \"https://host/path\"";
        let uri: http::Uri = text.parse().map_err(|_| expected)?;
        let known = matches!(uri.scheme_str(), Some("http" | "https"));
        let host = uri.host().is_some_and(|host| !host.is_empty());
        let is_public = false;
        if known && host { Ok(Self { text: text.to_owned(), is_public }) } else { Err(expected) }
    }

    /// One of the built-in tables.
    pub(in crate::cli) fn public(text: &str) -> Result<Self, &'static str> {
        Ok(Self { is_public: true, ..Self::parse(text)? })
    }

    pub(in crate::cli) fn expose(&self) -> &str {
        &self.text
    }

    /// Host and port alone, to name the endpoint by.
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

/// The address with user info, key-like path segments and query values hidden.
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

impl std::str::FromStr for OptionalSecret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self((!text.is_empty()).then(|| ConfigSecret(text.to_owned()))))
    }
}

impl fmt::Display for OptionalSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { HIDDEN } else { "" })
    }
}

super::units::serde_as_text!(OptionalSecret);

impl std::str::FromStr for OptionalUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() { Ok(Self(None)) } else { ConfigUrl::parse(text).map(Some).map(Self) }
    }
}

impl fmt::Display for OptionalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |url| url.fmt(f))
    }
}

super::units::serde_as_text!(OptionalUrl);

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

impl<'de> Deserialize<'de> for ConfigUrl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ConfigSecret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self)
    }
}

impl Serialize for ConfigUrl {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Serialize for ConfigSecret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(HIDDEN)
    }
}

/// A value of the wrong type may be a secret: its kind alone is named.
pub(super) fn without_value(reason: &str) -> String {
    const FOUND: [&str; 2] = ["invalid type: ", "invalid value: "];
    const EXPECTED: &str = ", expected ";
    let parts = FOUND.iter().find_map(|found| {
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
    fn refuses_what_is_no_address() {
        for bad in ["", "sol", "ftp://h/x", "https://", "/path", "http:// h/"] {
            assert!(ConfigUrl::parse(bad).is_err(), "{bad}");
        }
    }
}
