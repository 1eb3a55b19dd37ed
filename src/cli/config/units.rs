//! Durations, sizes, rates and addresses, as the configuration and the command line write them.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

/// A duration such as `250ms`, `55s`, `2m`, `24h` or `30d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct Wait(pub(in crate::cli) Duration);

/// A number of bytes such as `512KiB`, `256MiB`, `1GiB` or `4096B`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct Size(pub(in crate::cli) u64);

/// An address and a port to listen on; port 0 takes a free one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Listen(pub(in crate::cli) SocketAddr);

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let numeric = text.replacen("localhost:", "127.0.0.1:", 1);
        numeric
            .parse()
            .map(Self)
            .map_err(|_| "expected an address and a port such as \"127.0.0.1:8080\"")
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value; `None` if the text is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Optional<T>(pub(in crate::cli) Option<T>);

/// Events per second, in thousandths so that `0.5` is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct RateSetting {
    pub(in crate::cli) millis: u64,
}

const WAIT_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZE_UNITS: [(&str, u64); 4] =
    [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const WAIT_EXPECTED: &str =
    "expected a duration such as \"250ms\", \"55s\", \"2m\", \"24h\" or \"30d\"";
const SIZE_EXPECTED: &str = "expected a size such as \"512KiB\", \"256MiB\" or \"1GiB\"";
const RATE_EXPECTED: &str =
    "expected a number a second above 0, with at most 3 decimals, such as 10 or 0.5";

/// Parses a number with a unit, such as `12ms`, into the smallest unit.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Writes a value in the largest unit that divides it, so that it parses back exactly.
fn unscaled(value: u64, units: &[(&str, u64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let fits = |(_, factor): &&(&str, u64)| value != 0 && value.is_multiple_of(*factor);
    match units.iter().find(fits).or(units.last()) {
        Some((name, factor)) => write!(f, "{}{name}", value / factor),
        None => write!(f, "{value}"),
    }
}

impl FromStr for Wait {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let millis = scaled(text, &WAIT_UNITS).ok_or(WAIT_EXPECTED)?;
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        unscaled(u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX), &WAIT_UNITS, f)
    }
}

impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        scaled(text, &SIZE_UNITS).map(Self).ok_or(SIZE_EXPECTED)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        unscaled(self.0, &SIZE_UNITS, f)
    }
}

impl<T: FromStr> FromStr for Optional<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text.is_empty() { Ok(Self(None)) } else { text.parse().map(Some).map(Self) }
    }
}

impl<T: fmt::Display> fmt::Display for Optional<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |value| value.fmt(f))
    }
}

impl FromStr for RateSetting {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        let millis = Some(format!("{whole}{part:0<3}"))
            .filter(|_| !whole.is_empty() && digits(whole) && digits(part) && part.len() <= 3)
            .and_then(|joined| joined.parse().ok())
            .filter(|millis| *millis > 0);
        Ok(Self { millis: millis.ok_or(RATE_EXPECTED)? })
    }
}

impl fmt::Display for RateSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.millis / 1000, self.millis % 1000);
        match part {
            0 => write!(f, "{whole}"),
            _ => f.write_str(format!("{whole}.{part:03}").trim_end_matches('0')),
        }
    }
}

macro_rules! serde_as_text {
    ($type:ty) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(from)?;
                text.parse().map_err(<D::Error as serde::de::Error>::custom)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
    };
}
pub(in crate::cli) use serde_as_text;

/// Implements text conversion and serde for an enum with named values.
macro_rules! one_of_words {
    ($name:ident, $expected:literal) => {
        impl std::str::FromStr for $name {
            type Err = &'static str;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.into_iter().find(|value| value.name() == text).ok_or($expected)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        $crate::cli::config::units::serde_as_text!($name);
    };
}
pub(in crate::cli) use one_of_words;

serde_as_text!(Wait);
serde_as_text!(Size);
serde_as_text!(Optional<Size>);
serde_as_text!(Listen);
serde_as_text!(Optional<Listen>);

/// In a file a rate is a number; on the command line it is text.
impl<'de> Deserialize<'de> for RateSetting {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RateVisitor)
    }
}

struct RateVisitor;

impl Visitor<'_> for RateVisitor {
    type Value = RateSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(RATE_EXPECTED.trim_start_matches("expected "))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<RateSetting, E> {
        number.to_string().parse().map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<RateSetting, E> {
        // By the shortest text, which has the digits as written, without float arithmetic.
        number.to_string().parse().map_err(|_| E::invalid_value(Unexpected::Float(number), &self))
    }
}

impl Serialize for RateSetting {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match i64::try_from(self.millis / 1000) {
            Ok(whole) if self.millis.is_multiple_of(1000) => to.serialize_i64(whole),
            _ => to.serialize_f64(self.to_string().parse().map_err(serde::ser::Error::custom)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T>(text: &str, expected: Option<&T>, printed: &str)
    where
        T: FromStr<Err = &'static str> + fmt::Display + PartialEq + fmt::Debug,
    {
        let value = text.parse::<T>().ok();
        let value = value.as_ref();
        assert_eq!(value, expected, "{text}");
        if let Some(value) = value {
            assert_eq!(value.to_string(), printed);
        }
    }

    #[test]
    fn durations_have_a_unit() {
        let millis = |n| Wait(Duration::from_millis(n));
        check("250ms", Some(&millis(250)), "250ms");
        check("55s", Some(&millis(55_000)), "55s");
        check("120s", Some(&millis(120_000)), "2m");
        check("0s", Some(&millis(0)), "0ms");
        check("30d", Some(&millis(30 * 86_400_000)), "30d");
        for bad in ["", "55", "s", "5 sec", "-1s", "1.5s", "99999999999999999999d"] {
            check::<Wait>(bad, None, "");
        }
    }

    #[test]
    fn sizes_have_a_binary_unit() {
        check("256MiB", Some(&Size(256 << 20)), "256MiB");
        check("1024KiB", Some(&Size(1 << 20)), "1MiB");
        check("5B", Some(&Size(5)), "5B");
        for bad in ["256", "256MB", "MiB", "99999999999GiB"] {
            check::<Size>(bad, None, "");
        }
    }

    #[test]
    fn rates_are_exact_to_a_thousandth() {
        check("10", Some(&RateSetting { millis: 10_000 }), "10");
        check("0.5", Some(&RateSetting { millis: 500 }), "0.5");
        check("2.025", Some(&RateSetting { millis: 2_025 }), "2.025");
        for bad in ["0", "-1", ".5", "1.0001", "fast", ""] {
            check::<RateSetting>(bad, None, "");
        }
    }
}
