//! Checks before routing: that a proxy in front cannot read a request differently, and that its
//! host is a name of this server.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use warp::http::header::HOST;
use warp::http::uri::Authority;
use warp::http::{HeaderMap, Uri, Version};

use super::error::ApiError;
use super::framing::Framing;

/// Host names that a server accepts: none, or a list such as `trades.example, *.example`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts(Vec<String>);

#[derive(Debug, Clone)]
pub(super) struct Refused(pub(super) ApiError);

#[derive(Debug, Clone)]
pub(super) struct Arrivals {
    /// `None` accepts every name.
    hosts: Option<Hosts>,
}

impl Arrivals {
    /// A server on loopback accepts only names of loopback and the given ones, as a protection
    /// against DNS rebinding. Any other server cannot know its names, so it checks only if some are
    /// given.
    pub(super) fn at(listens: Option<SocketAddr>, hosts: &Hosts) -> Self {
        let is_local = listens.is_some_and(|address| address.ip().to_canonical().is_loopback());
        Self { hosts: (is_local || !hosts.0.is_empty()).then(|| hosts.clone()) }
    }

    pub(super) fn check(
        &self,
        version: Version,
        uri: &Uri,
        headers: &HeaderMap,
        framing: &Framing,
    ) -> Result<(), ApiError> {
        if framing.is_ambiguous(headers) {
            return Err(ApiError::Ambiguous("it has both a content-length and chunks"));
        }
        let mut named = headers.get_all(HOST).iter();
        let host = match (named.next(), named.next()) {
            (Some(host), None) => host,
            (Some(_), Some(_)) => return Err(ApiError::Ambiguous("it names two hosts")),
            (None, _) if version < Version::HTTP_11 => return Ok(()),
            (None, _) => return Err(ApiError::Ambiguous("it names no host")),
        };
        let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
        let Some(host) =
            host.filter(|host| !host.host().is_empty() && !host.as_str().contains('@'))
        else {
            return Err(ApiError::Ambiguous("its host is no name or address"));
        };
        let names = [Some(&host), uri.authority()];
        match &self.hosts {
            Some(hosts) if !names.iter().flatten().all(|name| hosts.hold(name.host())) => {
                Err(ApiError::Misdirected)
            }
            _ => Ok(()),
        }
    }
}

impl Hosts {
    fn hold(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        is_loopback(host) || self.0.iter().any(|name| is_named(name, host))
    }
}

fn is_named(name: &str, host: &str) -> bool {
    match name.strip_prefix('*') {
        Some(end) => host.len() > end.len() && host.ends_with(end),
        None => host == name,
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse();
    address.is_ok_and(|ip: IpAddr| ip.to_canonical().is_loopback())
        || host == "localhost"
        || host.ends_with(".localhost")
}

impl FromStr for Hosts {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RULE: &str =
            "expected host names without a port such as \"trades.example, *.inner.example\"";
        let fits = |name: &str| {
            let plain = name.strip_prefix("*.").unwrap_or(name);
            let is_part = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
            !plain.is_empty()
                && plain.chars().all(is_part)
                && (!plain.contains(':') || plain.starts_with('['))
        };
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let name = |name: &str| fits(name).then(|| name.to_ascii_lowercase());
        names.map(name).collect::<Option<_>>().map(Self).ok_or(RULE)
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_read_and_shown() {
        let hosts: Hosts = " Trades.example,*.inner.example, [2001:db8::1] ".parse().unwrap();
        assert_eq!(hosts.to_string(), "trades.example, *.inner.example, [2001:db8::1]");
        for name in ["TRADES.example", "a.inner.example", "[2001:db8::1]", "localhost", "127.1.1.1"]
        {
            assert!(hosts.hold(name), "{name}");
        }
        for name in ["inner.example", "xinner.example", "example", "10.0.0.1", ""] {
            assert!(!hosts.hold(name), "{name}");
        }
        for wrong in ["a:80", "https://a", "a/b", "*", "*.", "a b"] {
            assert!(wrong.parse::<Hosts>().is_err(), "{wrong}");
        }
        assert_eq!("".parse(), Ok(Hosts::default()));
    }
}
