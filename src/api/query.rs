//! The parameters of a history request.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::error::ApiError;
use super::parameters::{escape, parameters};
use crate::domain::{Address, Family, Filter, Numbers, Side, UnixSeconds};

const NAMES: [&str; 10] =
    ["chain", "limit", "cursor", "token", "side", "dex", "from", "to", "follow", "numbers"];
/// The largest integer that every JSON reader holds exactly; a larger `limit` counts as this one.
const LIMIT_MAX: u64 = (1 << 53) - 1;
/// `limit` without a value.
const LIMIT_DEFAULT: u64 = 1000;
const DEX_BYTES_MAX: usize = 128;
/// Length of `2026-01-31`.
const DATE_CHARS: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct HistoryQuery {
    pub(super) chain: Option<String>,
    /// The rows of a page; `None` is a stream.
    pub(super) limit: Option<u64>,
    pub(super) cursor: Option<String>,
    pub(super) filter: FilterQuery,
    /// After the history, deliver new rows.
    pub(super) follow: bool,
    pub(super) numbers: Numbers,
}

/// The parameters that filter rows. The token is parsed once its chain is known.
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
        let [chain, limit, cursor, token, side, dex, from, to, follow, numbers] =
            parameters(query, NAMES)?;
        let limit = limit?.map(|limit| parse_limit(&limit)).transpose()?;
        let filter = FilterQuery {
            token: token?,
            side: side?.map(|side| parse_side(&side)).transpose()?,
            dex: dex?.map(parse_dex).transpose()?,
            from: from?.map(|time| parse_time("from", &time)).transpose()?,
            to: to?.map(|time| parse_time("to", &time)).transpose()?,
        };
        let numbers = numbers?.map(|numbers| parse_numbers(&numbers)).transpose()?;
        let follow =
            follow?.map(|follow| parse_switch("follow", &follow)).transpose()?.unwrap_or(false);
        // Clients that keep parameters in variables send empty ones first.
        let cursor = cursor?.filter(|cursor| !cursor.is_empty());
        let chain = chain?.filter(|chain| !chain.is_empty());
        let numbers = numbers.unwrap_or_default();
        Self { chain, limit, cursor, filter, follow, numbers }.agreeing()
    }

    /// The parameters to send again with the next page's cursor, beginning with `&`.
    pub(super) fn repeated(&self) -> String {
        let numbers = match self.numbers {
            Numbers::Literal => "",
            Numbers::Text => "&numbers=string",
        };
        self.filter.repeated() + numbers
    }

    /// Rejects parameters that contradict each other.
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
    pub(super) fn on(&self, family: Family) -> Result<Filter, ApiError> {
        let token = self
            .token
            .as_deref()
            .map(|token| Address::parse_token(family, token))
            .transpose()
            .map_err(|rule| ApiError::InvalidToken { rule })?;
        let venue = self.dex.as_deref().map(|dex| Arc::from(dex.to_lowercase()));
        Ok(Filter { token, side: self.side, venue, from: self.from, to: self.to })
    }

    /// The parameters of this filter, beginning with `&`.
    fn repeated(&self) -> String {
        let time = |time: Option<UnixSeconds>| time.map(|time| time.0.to_string());
        let given = [
            ("token", self.token.clone()),
            ("side", self.side.map(|side| side.name().to_owned())),
            ("dex", self.dex.clone()),
            ("from", time(self.from)),
            ("to", time(self.to)),
        ];
        let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.fold(String::new(), |out, (name, value)| {
            out + "&" + name + "=" + &escape(&value).to_string()
        })
    }
}

pub(super) const fn wrong<T>(name: &'static str, rule: &'static str) -> Result<T, ApiError> {
    Err(ApiError::InvalidParameter { name, rule })
}

fn parse_side(text: &str) -> Result<Side, ApiError> {
    let side = Side::ALL.into_iter().find(|side| text.eq_ignore_ascii_case(side.name()));
    side.map_or_else(|| wrong("side", "expected buy or sell"), Ok)
}

fn parse_dex(text: String) -> Result<String, ApiError> {
    let fits = !text.trim().is_empty() && text.len() <= DEX_BYTES_MAX;
    if fits { Ok(text) } else { wrong("dex", "expected a venue's name as in a trade's dex") }
}

pub(super) fn parse_numbers(text: &str) -> Result<Numbers, ApiError> {
    match text {
        "string" => Ok(Numbers::Text),
        "number" => Ok(Numbers::Literal),
        _ => wrong("numbers", "expected string or number"),
    }
}

pub(super) fn parse_switch(name: &'static str, text: &str) -> Result<bool, ApiError> {
    match text {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => wrong(name, "expected 1 or 0"),
    }
}

pub(super) fn parse_time(name: &'static str, text: &str) -> Result<UnixSeconds, ApiError> {
    const RULE: &str = "expected unix seconds, or a date or time of ISO 8601 from 1970 to 2106 \
                        such as 2026-01-31 or 2026-01-31T12:00:00Z";
    read_time(text).map_or_else(|| wrong(name, RULE), Ok)
}

/// Parses unix seconds, a date or a time. A fraction of a second is rounded up, since trades
/// have times in whole seconds.
pub fn read_time(text: &str) -> Option<UnixSeconds> {
    let seconds = if text.bytes().all(|b| b.is_ascii_digit()) {
        // These lengths are years, months or days of ISO's short form, not times of 1970.
        text.parse().ok().filter(|_| ![4, 6, 8].contains(&text.len()))
    } else {
        iso_seconds(text)
    };
    seconds.map(UnixSeconds)
}

/// Parses a calendar year in UTC. Returns its start and the start of the next year.
pub fn read_year(text: &str) -> Option<(UnixSeconds, UnixSeconds)> {
    let year = text.parse::<u32>().ok().filter(|_| text.len() == 4)?;
    Some((read_time(&format!("{year}-01-01"))?, read_time(&format!("{}-01-01", year + 1))?))
}

fn iso_seconds(text: &str) -> Option<u32> {
    // A `+` of an offset that was not percent-encoded was decoded as a space.
    let text = text.replace(' ', "+");
    let time = text.parse::<Timestamp>().ok().or_else(|| {
        let day = text.parse::<Date>().ok().filter(|_| text.len() == DATE_CHARS)?;
        Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })?;
    let fraction = i64::from(time.subsec_nanosecond() > 0);
    u32::try_from(time.as_second() + fraction).ok()
}

fn parse_limit(text: &str) -> Result<u64, ApiError> {
    if text.is_empty() {
        return Ok(LIMIT_DEFAULT);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ApiError::InvalidLimit);
    }
    if digits != text {
        return Ok(1);
    }
    // Only digits, so parsing fails only if the number is too large.
    Ok(digits.parse().unwrap_or(LIMIT_MAX).clamp(1, LIMIT_MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::parameters::decode_segment;

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
    fn a_repeated_parameter_is_refused_and_unknown_ones_are_ignored() {
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
                "|-1|1.5|4294967296|2026|202601|20260131|2026-13-01|2026-01-31T12:00:00|yesterday|1767225600000",
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
