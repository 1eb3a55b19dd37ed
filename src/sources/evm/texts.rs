//! Numbers and bytes as indexes write them: decimal or hex, quoted or not, absent or null.

use serde_json::value::RawValue;

use super::wire::bytes;
pub(super) use super::wire::{account, data, hex as hex_text, word};
use crate::domain::{Units, UnixSeconds};

/// A scalar of any type; `None` for what is absent, null or empty.
pub(super) fn scalar(raw: Option<&RawValue>) -> Option<&str> {
    let text = raw?.get();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    (!text.is_empty() && text != "null").then_some(text)
}

/// The first four bytes of an input; `None` where it holds no call.
pub(super) fn selector(text: &str) -> Option<[u8; 4]> {
    bytes(text.get(..10)?)
}

/// Base units: hex with its prefix, else decimal.
pub(super) fn units(text: &str) -> Option<Units> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some("") => return Some(Units::ZERO),
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // The number parser allows signs and underscores.
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if plain { Units::from_str_radix(digits, radix).ok() } else { None }
}

pub(super) fn number(text: &str) -> Option<u64> {
    units(text)?.try_into().ok()
}

pub(super) fn index(text: &str) -> Option<u32> {
    number(text)?.try_into().ok()
}

pub(super) fn time(text: &str) -> Option<UnixSeconds> {
    index(text).map(UnixSeconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_in_both_bases_and_nothing_else() {
        assert_eq!(units("0x10"), Some(Units::from(16)));
        assert_eq!(units("10"), Some(Units::from(10)));
        assert_eq!(units("0x"), Some(Units::ZERO));
        for text in ["", "-1", "+1", "1.5", "1e3", "1_0", "0x-1", "ff", "0xfg"] {
            assert_eq!(units(text), None, "{text}");
        }
        assert_eq!(units(&format!("0x{}", "f".repeat(64))), Some(Units::MAX));
        assert_eq!(units(&format!("0x1{}", "f".repeat(64))), None);
        assert_eq!(index("4294967296"), None);
    }

    #[test]
    fn a_scalar_may_be_quoted_or_not() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        assert_eq!(scalar(Some(&raw("\"12\""))), Some("12"));
        assert_eq!(scalar(Some(&raw("12"))), Some("12"));
        assert_eq!(scalar(Some(&raw("null"))), None);
        assert_eq!(scalar(Some(&raw("\"\""))), None);
        assert_eq!(scalar(None), None);
    }
}
