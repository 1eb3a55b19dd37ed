//! Parses the address of the database, with options that the client does not know.

use std::path::PathBuf;
use std::str::FromStr as _;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};

use super::LIMITS;
use crate::store::{Result, StoreError};

#[derive(Debug)]
pub(super) struct DatabaseAddress {
    /// The settings for each host of the address.
    pub(super) hosts: Vec<Config>,
    /// A file with certificates that are trusted instead of the system's.
    pub(super) roots: Option<PathBuf>,
}

impl DatabaseAddress {
    /// Parses without connecting. Errors contain no part of the address.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let (url, roots) = without_roots(url);
        let mut config = Config::from_str(&url).map_err(|_| {
            StoreError::Unusable("expected postgres://user:password@host:port/database".to_owned())
        })?;
        config.connect_timeout(LIMITS.connect_wait);
        if config.get_application_name().is_none() {
            config.application_name("blotter");
        }
        // The primary, where there are several hosts.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        let hosts = (0..config.get_hosts().len().max(1)).map(|at| one_host(&config, at)).collect();
        Ok(Self { hosts, roots })
    }
}

/// The address without options that the client does not know: `sslrootcert`, and
/// `sslmode=verify-full`, which every TLS connection does here.
fn without_roots(url: &str) -> (String, Option<PathBuf>) {
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (mut roots, mut kept) = (None, Vec::new());
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslrootcert", "system")) => {}
            Some(("sslrootcert", path)) => {
                let path = percent_decode_str(path).decode_utf8_lossy();
                roots = Some(PathBuf::from(&*path));
            }
            Some(("sslmode", "verify-full")) => kept.push("sslmode=require"),
            Some(_) | None => kept.push(pair),
        }
    }
    (format!("{base}?{}", kept.join("&")), roots)
}

/// The settings for one of several hosts.
fn one_host(all: &Config, at: usize) -> Config {
    let mut one = Config::new();
    match all.get_hosts().get(at) {
        Some(Host::Tcp(name)) => drop(one.host(name)),
        Some(Host::Unix(path)) => drop(one.host_path(path)),
        None => {}
    }
    if let Some(address) = all.get_hostaddrs().get(at) {
        one.hostaddr(*address);
    }
    // One port may apply to all hosts.
    if let Some(port) = all.get_ports().get(at).or_else(|| all.get_ports().first()) {
        one.port(*port);
    }
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(name) = all.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    if let Some(name) = all.get_application_name() {
        one.application_name(name);
    }
    one.connect_timeout(LIMITS.connect_wait)
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .channel_binding(all.get_channel_binding())
        .target_session_attrs(all.get_target_session_attrs())
        .keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle());
    if let Some(wait) = all.get_tcp_user_timeout() {
        one.tcp_user_timeout(*wait);
    }
    one
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::SslMode;

    use super::*;

    #[test]
    fn each_host_has_settings_of_its_own() {
        let address = DatabaseAddress::parse("postgres://me:sesame@one,two:5433/x?sslmode=disable");
        let hosts = address.unwrap().hosts;
        let named: Vec<_> = hosts.iter().map(|host| (host.get_hosts(), host.get_ports())).collect();
        let host = |name: &str| Host::Tcp(name.to_owned());
        assert_eq!(named, [(&[host("one")][..], &[5432][..]), (&[host("two")], &[5433])]);
        for host in &hosts {
            assert_eq!((host.get_user(), host.get_dbname()), (Some("me"), Some("x")));
            assert_eq!(host.get_password(), Some(&b"sesame"[..]));
            assert_eq!(host.get_ssl_mode(), SslMode::Disable);
            assert_eq!(host.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        }
    }

    #[test]
    fn certificates_are_named_by_the_address() {
        let url = "postgres://me@db/x?sslmode=verify-full&sslrootcert=%2Fetc%2Fdb%20ca.pem";
        let DatabaseAddress { hosts, roots } = DatabaseAddress::parse(url).unwrap();
        assert_eq!(roots, Some(PathBuf::from("/etc/db ca.pem")));
        assert!(hosts.iter().all(|host| host.get_ssl_mode() == SslMode::Require));
        assert_eq!(
            DatabaseAddress::parse("postgres://me@db/x?sslrootcert=system").unwrap().roots,
            None
        );
        // Weaker checks are not offered.
        assert!(DatabaseAddress::parse("postgres://me@db/x?sslmode=verify-ca").is_err());
    }
}
