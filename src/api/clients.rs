//! The addresses of clients, by connection or as reported by a trusted proxy, with their open
//! connections and their rates without a key.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use ipnet::IpNet;
use tokio::time::Instant;
use warp::http::HeaderMap;

use super::error::ApiError;
use super::rate_limit::{Bucket, RateState, RequestRate};
use crate::domain::lock;

const FORWARDED_FOR: &str = "x-forwarded-for";
/// The prefix of an IPv6 address that one household or server usually owns.
const V6_PREFIX_BITS: u32 = 64;

/// The remote address of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// Addresses whose `x-forwarded-for` is trusted: none, or a list such as `127.0.0.1, 10.0.0.0/8`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proxies(Vec<IpNet>);

impl Proxies {
    pub(super) fn hold(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|net| net.contains(&address))
    }
}

impl FromStr for Proxies {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RULE: &str = "expected IP addresses or networks such as \"127.0.0.1, 10.0.0.0/8\"";
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let net = |part: &str| {
            let (address, bits) = part.split_once('/').unwrap_or((part, ""));
            let address: IpAddr = address.parse().ok()?;
            if bits.is_empty() {
                return Some(address.into());
            }
            IpNet::new(address, bits.parse().ok()?).ok()
        };
        parts.map(net).collect::<Option<_>>().map(Self).ok_or(RULE)
    }
}

impl std::fmt::Display for Proxies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
    }
}

/// The client's address: the last hop that is no trusted proxy. The client itself may have written
/// the hops left of it.
pub(super) fn client(peer: Option<Peer>, headers: &HeaderMap, proxies: &Proxies) -> IpAddr {
    let Some(Peer(mut client)) = peer else { return IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let forwarded: Vec<&str> =
        headers.get_all(FORWARDED_FOR).iter().filter_map(|v| v.to_str().ok()).collect();
    for hop in forwarded.join(",").rsplit(',') {
        let Some(next) = proxies.hold(client).then(|| hop.trim().parse().ok()).flatten() else {
            break;
        };
        client = next;
    }
    client_network(client.to_canonical())
}

fn client_network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => {
            let mask = u128::MAX << (128 - V6_PREFIX_BITS);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct OpenConnections(Arc<Mutex<HashMap<IpAddr, u32>>>);

/// One counted connection; it counts until it is dropped.
#[derive(Debug)]
pub(super) struct CountedConnection {
    open: OpenConnections,
    who: IpAddr,
}

impl OpenConnections {
    /// Counts one more connection; `None` if its address has `max`.
    pub(super) fn count(&self, peer: Peer, max: u32) -> Option<CountedConnection> {
        let who = client_network(peer.0.to_canonical());
        let mut known = lock(&self.0);
        let count = known.get(&who).copied().unwrap_or(0);
        (count < max).then(|| {
            known.insert(who, count + 1);
            CountedConnection { open: self.clone(), who }
        })
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut known = lock(&self.open.0);
        match known.get_mut(&self.who) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(known.remove(&self.who)),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct ClientRates(Mutex<HashMap<IpAddr, Arc<Bucket>>>);

impl ClientRates {
    pub(super) fn take(
        &self,
        who: IpAddr,
        rate: RequestRate,
        max: usize,
    ) -> Result<RateState, ApiError> {
        let mut known = lock(&self.0);
        if known.len() >= max && !known.contains_key(&who) {
            // The common budget of all clients bounds what this allows.
            known.clear();
        }
        let bucket = Arc::clone(known.entry(who).or_default());
        drop(known);
        Ok(bucket.take(1, rate, Instant::now())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(peer: &str, forwarded: &[&str], proxies: &str, expected: &str) {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, value.parse().unwrap());
        }
        let found = client(Some(Peer(peer.parse().unwrap())), &headers, &proxies.parse().unwrap());
        assert_eq!(found, expected.parse::<IpAddr>().unwrap(), "{peer} {forwarded:?} {proxies}");
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        check("9.9.9.9", &["1.1.1.1"], "", "9.9.9.9");
        check("9.9.9.9", &["1.1.1.1"], "10.0.0.0/8", "9.9.9.9");
        check("10.1.2.3", &["1.1.1.1"], "10.0.0.0/8", "1.1.1.1");
        check("::ffff:10.1.2.3", &["1.1.1.1"], "10.0.0.0/8", "1.1.1.1");
        check("10.1.2.3", &["6.6.6.6, 1.1.1.1"], "10.0.0.0/8", "1.1.1.1");
        check("10.1.2.3", &["6.6.6.6", "1.1.1.1, 10.9.9.9"], "10.0.0.0/8", "1.1.1.1");
        check("10.1.2.3", &["1.1.1.1, junk"], "10.0.0.0/8", "10.1.2.3");
        check("10.1.2.3", &[], "10.0.0.0/8", "10.1.2.3");
        check("::1", &["2001:db8:1:2:3:4:5:6"], "::1", "2001:db8:1:2::");
    }

    #[test]
    fn an_address_has_so_many_connections_and_is_forgotten_with_the_last() {
        let open = OpenConnections::default();
        let count = |peer: &str| open.count(Peer(peer.parse().unwrap()), 2);
        let held = [
            count("9.9.9.9"),
            count("::ffff:9.9.9.9"),
            count("2001:db8:1:2::1"),
            count("2001:db8:1:2:f::2"),
        ];
        assert!(held.iter().all(Option::is_some));
        assert!(count("9.9.9.9").is_none() && count("2001:db8:1:2::3").is_none());
        assert!(count("9.9.9.8").is_some() && count("2001:db8:1:3::1").is_some());
        let [first, rest @ ..] = held;
        drop(first);
        assert!(count("9.9.9.9").is_some());
        assert!(open.count(Peer("1.1.1.1".parse().unwrap()), 0).is_none());
        drop(rest);
        assert!(lock(&open.0).is_empty());
    }

    #[test]
    fn networks_are_read_and_shown() {
        for wrong in ["x", "10.0.0.0/33", "::/129", "10.0.0.0/", "1.1.1.1;2.2.2.2"] {
            let read: Result<Proxies, _> = wrong.parse();
            assert!(read.is_err() || wrong.ends_with('/'), "{wrong}");
        }
        let all: Proxies = "0.0.0.0/0, ::1".parse().unwrap();
        assert!(all.hold("8.8.8.8".parse().unwrap()) && !all.hold("::2".parse().unwrap()));
        assert_eq!(all.to_string(), "0.0.0.0/0, ::1/128");
    }
}
