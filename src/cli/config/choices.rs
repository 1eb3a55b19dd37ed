//! Settings that are one of a few words.

use super::units::{one_of_words, serde_as_text};
use crate::api::{Hosts, Proxies};
use crate::cli::config::Listen;
use crate::domain::named;

named! {
    /// `server.estimates`: whether size estimates, which need no key, are served.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in crate::cli) enum Estimates {
        /// Only if the server listens on a loopback address.
        Auto = "auto",
        On = "on",
        Off = "off",
    }
}

named! {
    /// `storage.engine`: where trades, keys and usage are stored.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in crate::cli) enum StorageEngine {
        /// In a database if one is configured, else in a file.
        Auto = "auto",
        File = "file",
        Postgres = "postgres",
    }
}

impl Estimates {
    pub(in crate::cli) fn are_on(self, listen: Listen) -> bool {
        match self {
            Self::Auto => listen.0.ip().is_loopback(),
            Self::On => true,
            Self::Off => false,
        }
    }
}

one_of_words!(StorageEngine, "expected \"auto\", \"file\" or \"postgres\"");
one_of_words!(Estimates, "expected \"auto\", \"on\" or \"off\"");
serde_as_text!(Proxies);
serde_as_text!(Hosts);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_this_machine_they_are_off_unless_asked_for() {
        let on = |setting: &str, listen: &str| {
            setting.parse::<Estimates>().unwrap().are_on(listen.parse().unwrap())
        };
        assert!(on("auto", "127.0.0.1:8080") && on("auto", "[::1]:8080"));
        assert!(!on("auto", "0.0.0.0:8080") && !on("auto", "192.0.2.1:8080"));
        assert!(on("on", "0.0.0.0:8080") && !on("off", "127.0.0.1:8080"));
    }
}
