//! URLs and headers that may hold keys: usable, never shown.

use std::fmt;

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

    /// Scheme, host and port: what may be shown.
    pub fn label(&self) -> String {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("http", &self.0));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        format!("{scheme}://{host}")
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())
    }
}

/// A header's value.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
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
}
