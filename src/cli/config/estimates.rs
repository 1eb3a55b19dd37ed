//! Whether size estimates are answered, which needs no key.

use std::fmt;
use std::str::FromStr;

use super::units::serde_as_text;
use crate::api::{Hosts, Proxies};
use crate::cli::config::Listen;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Estimates {
    /// Only while the server listens on this machine alone.
    Auto,
    On,
    Off,
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

impl FromStr for Estimates {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err("expected \"auto\", \"on\" or \"off\""),
        }
    }
}

impl fmt::Display for Estimates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        })
    }
}

serde_as_text!(Estimates);
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
