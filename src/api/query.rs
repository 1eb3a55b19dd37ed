//! Parses the query string and the address segment; an error names the parameter.
//!
//! Parameters that are not known are ignored, so that clients written for a later version work,
//! but a misspelt one is refused: without it the answer would be another one. A known one that
//! stands twice is refused, because either value could be meant.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::error::ApiError;
use crate::domain::{Address, Family, Filter, Side, UnixSeconds};

const NAMES: [&str; 9] =
    ["chain", "limit", "cursor", "token", "side", "dex", "from", "to", "follow"];
/// From here on two letters may be wrong.
const LONG_NAME_CHARS: usize = 6;
/// Up to here a name is near words that mean something else.
const SHORT_NAME_CHARS: usize = 3;
/// The largest integer that every JSON reader holds exactly; a larger `limit` counts as this one.
const LIMIT_MAX: u64 = (1 << 53) - 1;
/// `limit` without a value.
const LIMIT_DEFAULT: u64 = 1000;
const DEX_BYTES_MAX: usize = 128;
/// Of `2026-01-31`.
const DATE_CHARS: usize = 10;

/// The parameters of a history request, decoded and not yet checked against each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct HistoryQuery {
    pub(super) chain: Option<String>,
    /// Present: page mode.
    pub(super) limit: Option<u64>,
    pub(super) cursor: Option<String>,
    pub(super) filter: FilterQuery,
    /// After the history, what is new.
    pub(super) follow: bool,
}

/// The parameters that choose among rows. The token is read once its chain is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct FilterQuery {
    pub(super) token: Option<String>,
    pub(super) side: Option<Side>,
    pub(super) dex: Option<String>,
    pub(super) from: Option<UnixSeconds>,
    pub(super) to: Option<UnixSeconds>,
}

impl HistoryQuery {
    pub(super) fn parse(query: &str) -> Result<Self, ApiError> {
        let mut raw = NAMES.map(|name| (name, None));
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name);
            let known = raw.iter_mut().find(|(known, _)| *name == *known.as_bytes());
            let Some((name, slot)) = known else {
                refuse_misspelt(&name)?;
                continue;
            };
            if slot.replace(decode(value)).is_some() {
                return Err(ApiError::InvalidParameter { name, rule: "it may stand once only" });
            }
        }
        let [chain, limit, cursor, token, side, dex, from, to, follow] =
            raw.map(|(name, value)| value.map(|value| text(name, value)).transpose());
        let limit = limit?.map(|limit| parse_limit(&limit)).transpose()?;
        let filter = FilterQuery {
            token: token?,
            side: side?.map(|side| parse_side(&side)).transpose()?,
            dex: dex?.map(parse_dex).transpose()?,
            from: from?.map(|time| parse_time("from", &time)).transpose()?,
            to: to?.map(|time| parse_time("to", &time)).transpose()?,
        };
        let follow = follow?.map(|follow| parse_follow(&follow)).transpose()?.unwrap_or(false);
        // Clients that keep them in variables send empty ones first.
        let cursor = cursor?.filter(|cursor| !cursor.is_empty());
        let chain = chain?.filter(|chain| !chain.is_empty());
        Self { chain, limit, cursor, filter, follow }.agreeing()
    }

    /// Refuses parameters that do not go together.
    fn agreeing(self) -> Result<Self, ApiError> {
        let FilterQuery { from, to, .. } = &self.filter;
        let empty = from.zip(*to).is_some_and(|(from, to)| to <= from);
        match self.follow {
            _ if empty => wrong("to", "it has to be later than from"),
            true if self.limit.is_some() => {
                wrong("follow", "only a stream follows: leave limit out")
            }
            true if to.is_some() => wrong("follow", "what is new has no end: leave to out"),
            _ => Ok(self),
        }
    }
}

impl FilterQuery {
    /// The filter on a chain of this family.
    pub(super) fn on(&self, family: Family) -> Result<Filter, ApiError> {
        let token = self.token.as_deref().map(|token| parse_token(family, token)).transpose()?;
        let venue = self.dex.as_deref().map(|dex| Arc::from(dex.to_lowercase()));
        Ok(Filter { token, side: self.side, venue, from: self.from, to: self.to })
    }

    /// The same parameters once more, to stand behind others.
    pub(super) fn repeated(&self) -> String {
        let side = self.side.map(|side| match side {
            Side::Buy => "buy".to_owned(),
            Side::Sell => "sell".to_owned(),
        });
        let time = |time: Option<UnixSeconds>| time.map(|time| time.0.to_string());
        let given = [
            ("token", self.token.clone()),
            ("side", side),
            ("dex", self.dex.clone()),
            ("from", time(self.from)),
            ("to", time(self.to)),
        ];
        let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.fold(String::new(), |out, (name, value)| out + "&" + name + "=" + &escape(&value))
    }
}

const fn wrong<T>(name: &'static str, rule: &'static str) -> Result<T, ApiError> {
    Err(ApiError::InvalidParameter { name, rule })
}

/// Refuses a name that is nearly a known one.
fn refuse_misspelt(name: &[u8]) -> Result<(), ApiError> {
    let Ok(name) = std::str::from_utf8(name) else { return Ok(()) };
    match NAMES.into_iter().find(|known| is_near(name, known)) {
        Some(known) => Err(ApiError::MisspeltParameter { name: name.to_owned(), known }),
        None => Ok(()),
    }
}

/// One change apart, or two of a long name. Many words are near a short one: there only what is
/// put behind or between its letters counts.
fn is_near(name: &str, known: &str) -> bool {
    let most = if known.len() >= LONG_NAME_CHARS { 2 } else { 1 };
    if name.len().abs_diff(known.len()) > most {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let kept = if known.len() < SHORT_NAME_CHARS { known } else { known.get(..1).unwrap_or(known) };
    let is_other =
        known.len() <= SHORT_NAME_CHARS && (name.len() < known.len() || !name.starts_with(kept));
    !is_other && distance(&name, known) <= most
}

/// Letters put in, left out or put for others, and neighbours that changed places.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    let at = |rows: &[Vec<usize>], row: usize, column: usize| {
        rows.get(row).and_then(|row| row.get(column)).copied().unwrap_or(usize::MAX - 1)
    };
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let left = row.last().copied().unwrap_or_default() + 1;
            let mut least =
                left.min(at(&rows, i, j + 1) + 1).min(at(&rows, i, j) + usize::from(a != b));
            let swapped =
                i > 0 && j > 0 && one.get(i - 1) == Some(b) && other.get(j - 1) == Some(a);
            if swapped {
                least = least.min(at(&rows, i - 1, j - 1) + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    at(&rows, one.len(), other.len())
}

/// As rows show it: an address, or the number of a TRC-10 token.
fn parse_token(family: Family, text: &str) -> Result<Address, ApiError> {
    if family == Family::Tron
        && let Ok(number) = text.parse()
        && Address::is_tron_asset(number)
    {
        return Ok(Address::tron_asset(number));
    }
    Address::parse(family, text).map_err(|rule| ApiError::InvalidToken { rule })
}

fn parse_side(text: &str) -> Result<Side, ApiError> {
    match text.to_ascii_lowercase().as_str() {
        "buy" => Ok(Side::Buy),
        "sell" => Ok(Side::Sell),
        _ => wrong("side", "expected buy or sell"),
    }
}

fn parse_dex(text: String) -> Result<String, ApiError> {
    let fits = !text.trim().is_empty() && text.len() <= DEX_BYTES_MAX;
    if fits { Ok(text) } else { wrong("dex", "expected a venue's name as in a trade's dex") }
}

fn parse_follow(text: &str) -> Result<bool, ApiError> {
    match text {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => wrong("follow", "expected 1 or 0"),
    }
}

fn parse_time(name: &'static str, text: &str) -> Result<UnixSeconds, ApiError> {
    const RULE: &str = "expected unix seconds, or a date or time of ISO 8601 from 1970 to 2106 \
                        such as 2026-01-31 or 2026-01-31T12:00:00Z";
    read_time(text).map_or_else(|| wrong(name, RULE), Ok)
}

/// Unix seconds, a date or a time. Whole seconds: a fraction counts as the next one, before which
/// no trade of that second stands.
pub fn read_time(text: &str) -> Option<UnixSeconds> {
    let seconds = if text.bytes().all(|b| b.is_ascii_digit()) {
        // Four digits are a year and no moment of 1970.
        text.parse().ok().filter(|_| text.len() != 4)
    } else {
        iso_seconds(text)
    };
    seconds.map(UnixSeconds)
}

fn iso_seconds(text: &str) -> Option<u32> {
    // The sign of an offset that was not percent-encoded has become a space.
    let text = text.replace(' ', "+");
    let time = text.parse::<Timestamp>().ok().or_else(|| {
        let day = text.parse::<Date>().ok().filter(|_| text.len() == DATE_CHARS)?;
        Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })?;
    let fraction = i64::from(time.subsec_nanosecond() > 0);
    u32::try_from(time.as_second() + fraction).ok()
}

fn text(name: &'static str, bytes: Cow<'_, [u8]>) -> Result<String, ApiError> {
    let rule = "its percent-encoding is not valid UTF-8";
    String::from_utf8(bytes.into_owned()).map_err(|_| ApiError::InvalidParameter { name, rule })
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
    String::from_utf8(unescape(segment, false).into_owned())
        .map_err(|_| ApiError::UnreadableAddress)
}

/// Percent-encoding of everything that could mean something in a URL.
fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

fn decode(text: &str) -> Cow<'_, [u8]> {
    unescape(text, true)
}

/// Percent-decoding; a `%` without two hex digits stands for itself.
fn unescape(text: &str, plus_is_space: bool) -> Cow<'_, [u8]> {
    // To the end in any case: a loop without a way out is quicker, and cursors are long.
    if !text.bytes().fold(false, |found, byte| found | matches!(byte, b'%' | b'+')) {
        return text.as_bytes().into();
    }
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
    out.into()
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
        let query = HistoryQuery::parse("a=1&a=2&&=&%ff=%ff&page=3&chain=sol").unwrap();
        assert_eq!(query, HistoryQuery { chain: Some("sol".into()), ..HistoryQuery::default() });
    }

    #[track_caller]
    fn refused(query: &str, name: &str) {
        let error = HistoryQuery::parse(query).expect_err(query);
        assert!(error.message().starts_with(&format!("parameter {name}: ")), "{error}");
    }

    #[test]
    fn filters_say_what_is_wrong_with_them() {
        for (name, values) in [
            ("side", "|bought|buy,sell|%20buy"),
            ("dex", "|%20"),
            (
                "from",
                "|-1|1.5|4294967296|2026|2026-13-01|2026-01-31T12:00:00|yesterday|1767225600000",
            ),
            ("to", "|2026-1-1|1969-12-31T23:59:59Z"),
            ("follow", "|2|yes"),
        ] {
            for value in values.split('|') {
                refused(&format!("{name}={value}"), name);
            }
        }
        refused("from=10&to=10", "to");
        refused("follow=1&limit=5", "follow");
        refused("follow=1&to=5", "follow");
    }

    #[test]
    fn times_are_read_in_every_form_that_answers_have() {
        for text in [
            "1767225600",
            "2026-01-01",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00%2B00:00",
            "2026-01-01T00:00:00+00:00",
            "2026-01-01T01:00:00+01:00",
            "2025-12-31T23:59:59.5Z",
        ] {
            let query = HistoryQuery::parse(&format!("from={text}")).unwrap();
            assert_eq!(query.filter.from, Some(UnixSeconds(1_767_225_600)), "{text}");
        }
    }

    #[test]
    fn a_tokens_form_is_its_chains() {
        let token = |family, text: &str| {
            let filter = FilterQuery { token: Some(text.to_owned()), ..FilterQuery::default() };
            filter.on(family).map(|filter| filter.token.map(|token| token.to_string()))
        };
        let usdt = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";
        assert_eq!(token(Family::Tron, usdt), Ok(Some(usdt.to_owned())));
        assert_eq!(token(Family::Tron, "1002000"), Ok(Some("1002000".to_owned())));
        assert!(token(Family::Evm, usdt).is_err());
        assert!(token(Family::Solana, "BONK").is_err());
    }

    #[test]
    fn a_filter_is_repeated_as_it_was_meant() {
        let query = "dex=Orca+%26+Co&side=SELL&from=2026-01-01&token=a%2Fb";
        let filter = HistoryQuery::parse(query).unwrap().filter;
        let again = filter.repeated();
        assert_eq!(again, "&token=a%2Fb&side=sell&dex=Orca%20%26%20Co&from=1767225600");
        assert_eq!(HistoryQuery::parse(&again).unwrap().filter, filter);
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
