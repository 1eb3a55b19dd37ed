//! The query string and the address segment, read by hand: what is wrong is told by name.
//!
//! Parameters that are not known are ignored, so that clients written for a later version work;
//! a known one that stands twice is refused, because either value could be meant.

use super::error::ApiError;

/// The largest integer that every JSON reader holds exactly; a larger `limit` counts as this one.
pub(super) const LIMIT_MAX: u64 = (1 << 53) - 1;
/// `limit` without a value.
const LIMIT_DEFAULT: u64 = 1000;

/// The parameters of a history request, decoded and not yet checked against each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct HistoryQuery {
    pub(super) chain: Option<String>,
    /// Present: page mode.
    pub(super) limit: Option<u64>,
    pub(super) cursor: Option<String>,
}

impl HistoryQuery {
    pub(super) fn parse(query: &str) -> Result<Self, ApiError> {
        let mut raw = [("chain", None), ("limit", None), ("cursor", None)];
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name);
            let known = raw.iter_mut().find(|(known, _)| name == known.as_bytes());
            let Some((name, slot)) = known else { continue };
            if slot.replace(decode(value)).is_some() {
                return Err(ApiError::InvalidParameter { name, rule: "it may stand once only" });
            }
        }
        let [chain, limit, cursor] = raw.map(|(name, value)| value.map(|value| text(name, value)));
        let limit = limit.transpose()?.map(|limit| parse_limit(&limit)).transpose()?;
        // Clients that keep the cursor in a variable send an empty one first.
        let cursor = cursor.transpose()?.filter(|cursor| !cursor.is_empty());
        Ok(Self { chain: chain.transpose()?, limit, cursor })
    }
}

fn text(name: &'static str, bytes: Vec<u8>) -> Result<String, ApiError> {
    let rule = "its percent-encoding is not valid UTF-8";
    String::from_utf8(bytes).map_err(|_| ApiError::InvalidParameter { name, rule })
}

fn parse_limit(text: &str) -> Result<u64, ApiError> {
    if text.is_empty() {
        return Ok(LIMIT_DEFAULT);
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ApiError::InvalidLimit);
    }
    if negative {
        return Ok(1);
    }
    // All digits, so that it only fails by being too large.
    Ok(digits.parse().unwrap_or(LIMIT_MAX).clamp(1, LIMIT_MAX))
}

/// The address of the path.
pub(super) fn decode_segment(segment: &str) -> Result<String, ApiError> {
    String::from_utf8(unescape(segment, false)).map_err(|_| ApiError::UnreadableAddress)
}

fn decode(text: &str) -> Vec<u8> {
    unescape(text, true)
}

/// Percent-decoding; a `%` without two hex digits stands for itself.
fn unescape(text: &str, plus_is_space: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        out.push(match first {
            b'%' => match tail.split_first_chunk::<2>().and_then(|(hex, _)| byte(*hex)) {
                Some(byte) => {
                    rest = tail.get(2..).unwrap_or_default();
                    byte
                }
                None => b'%',
            },
            b'+' if plus_is_space => b' ',
            other => *other,
        });
    }
    out
}

fn byte(hex: [u8; 2]) -> Option<u8> {
    let [high, low] = hex.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? * 16 + low?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn limit(query: &str, expected: Option<u64>) {
        let parsed = HistoryQuery::parse(query).map(|query| query.limit);
        assert_eq!(parsed, Ok(expected), "{query}");
    }

    #[test]
    fn limits() {
        limit("", None);
        limit("limit", Some(1000));
        limit("limit=", Some(1000));
        limit("limit=1", Some(1));
        limit("limit=0", Some(1));
        limit("limit=-5", Some(1));
        limit("limit=-99999999999999999999999", Some(1));
        limit("limit=007", Some(7));
        limit("li%6Dit=%31%30", Some(10));
        limit("limit=10000000", Some(10_000_000));
        limit("limit=9007199254740992", Some(LIMIT_MAX));
        limit("limit=18446744073709551616", Some(LIMIT_MAX));
        limit(&format!("limit={}", "9".repeat(400)), Some(LIMIT_MAX));
        for wrong in ["abc", "1.5", "1e3", "0x10", "-", "+5", "%20", "5%205", "null", "١"] {
            let parsed = HistoryQuery::parse(&format!("limit={wrong}"));
            assert_eq!(parsed, Err(ApiError::InvalidLimit), "{wrong}");
        }
    }

    #[test]
    fn a_known_parameter_stands_once_and_unknown_ones_are_ignored() {
        let twice = |name| Err(ApiError::InvalidParameter { name, rule: "it may stand once only" });
        assert_eq!(HistoryQuery::parse("limit=1&limit=1"), twice("limit"));
        assert_eq!(HistoryQuery::parse("cursor=a&x=1&cursor="), twice("cursor"));
        assert_eq!(HistoryQuery::parse("chain=sol&ch%61in=eth"), twice("chain"));
        let query = HistoryQuery::parse("a=1&a=2&&=&%ff=%ff&Limit=3&chain=sol").unwrap();
        assert_eq!(query, HistoryQuery { chain: Some("sol".into()), ..HistoryQuery::default() });
    }

    #[test]
    fn what_is_not_utf8_is_refused_by_name() {
        let rule = "its percent-encoding is not valid UTF-8";
        let wrong = |name| Err(ApiError::InvalidParameter { name, rule });
        assert_eq!(HistoryQuery::parse("chain=%ff"), wrong("chain"));
        assert_eq!(HistoryQuery::parse("cursor=%C3%28"), wrong("cursor"));
        assert_eq!(decode_segment("%ff"), Err(ApiError::UnreadableAddress));
        assert_eq!(decode_segment("a+b%2Bc%"), Ok("a+b+c%".to_owned()));
    }

    proptest! {
        #[test]
        fn every_text_comes_through_its_encoding(value in "\\PC{1,40}") {
            let encoded = value.bytes().fold(String::new(), |text, b| format!("{text}%{b:02X}"));
            let query = HistoryQuery::parse(&format!("cursor={encoded}")).unwrap();
            prop_assert_eq!(query.cursor, Some(value));
        }

        #[test]
        fn nothing_makes_it_panic(query in any::<String>()) {
            let _ = HistoryQuery::parse(&query);
            let _ = decode_segment(&query);
        }
    }
}
