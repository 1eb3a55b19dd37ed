//! Pure: limits that errors of `eth_getLogs` name.
//!
//! Texts of providers and clients, from their documentation and from indexers that keep such tables
//! (ponder, rindexer, graph-node).

use crate::domain::Height;
use crate::rpc::classify::{self, TIME_OUTS, words};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shrink {
    /// To this many blocks, for this query.
    To(u64),
    /// To this many blocks, for all queries to this endpoint.
    AtMost(u64),
    /// To half: the answer was too large or took too long.
    Half,
}

/// Texts that the answer, not the range, is too large or too slow.
const TOO_MUCH: &[&str] = &[
    "more than",
    "too many",
    "too large",
    "too big",
    "response size",
    "size exceeded",
    "exceed max results",
    "exceeds max results",
    "exceeds limit of",
    "exceeds the limit",
    "timeout",
    "timed out",
    "deadline",
    "too long",
];

/// `None` if the text is not about ranges.
pub(super) fn read(text: &str, from: Height, to: Height) -> Option<Shrink> {
    let text = text.to_lowercase().replace("eth_getlogs", "");
    let asked = to.saturating_sub(from).saturating_add(1);
    if let Some((low, high)) = named_range(&text)
        && low <= high
        && high - low + 1 < asked
    {
        let blocks = high - low + 1;
        // The named range may be the endpoint's maximum.
        let rest = text.split('[').next().unwrap_or_default();
        let is_most = text.contains("range") && numbers(rest).contains(&blocks);
        return Some(if is_most { Shrink::AtMost(blocks) } else { Shrink::To(blocks) });
    }
    let holds = |words: &[&str]| words::holds(&text, words);
    let about_results = holds(&["result", "logs", "entries", "response", "size", "bytes"])
        && !holds(&["range limit", "block range", "max range", "blocks range"]);
    // Texts that the range is too large.
    if holds(&["range", "block"]) && !about_results {
        // The ends of the queried range are no limits.
        let limit = |most: &u64| (1..asked).contains(most) && *most != from && *most != to;
        if let Some(most) = numbers(&text).into_iter().filter(limit).max() {
            return Some(Shrink::AtMost(most));
        }
        return holds(&["range", "exceed", "limit", "too", "maximum"]).then_some(Shrink::Half);
    }
    holds(TOO_MUCH).then_some(Shrink::Half)
}

/// The same with the error's code: an error that the classification table assigns to ranges is one,
/// even if its text names no size.
pub(super) fn of_error(code: i64, text: &str, from: Height, to: Height) -> Option<Shrink> {
    let is_range = classify::is_range(code, text) || TIME_OUTS.contains(&code);
    read(text, from, to).or(is_range.then_some(Shrink::Half))
}

/// Whether the query timed out rather than being refused for its size.
pub(in crate::sources) fn is_time_out(code: i64, text: &str) -> bool {
    let text = text.to_lowercase();
    let slow = ["timeout", "timed out", "time-out", "deadline", "too long", "time limit"];
    TIME_OUTS.contains(&code) || words::holds(&text, &slow)
}

/// A range named in the text: `[0x…, 0x…]`, or `A-B` after "range".
fn named_range(text: &str) -> Option<(Height, Height)> {
    if let Some((_, rest)) = text.split_once('[') {
        let (inside, _) = rest.split_once(']')?;
        let (low, high) = inside.split_once(',')?;
        return Some((height(low.trim())?, height(high.trim())?));
    }
    let (_, rest) = text.rsplit_once("range ")?;
    let word = rest.split_whitespace().next()?;
    let (low, high) = word.split_once('-')?;
    Some((height(low)?, height(high.trim_end_matches(['.', ',']))?))
}

fn height(text: &str) -> Option<Height> {
    match text.strip_prefix("0x") {
        Some(digits) => Height::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Numbers in the text: `10,000`, `1k`, `2048`.
fn numbers(text: &str) -> Vec<u64> {
    let plain = text.replace(',', "");
    let mut numbers = Vec::new();
    let mut rest = plain.as_str();
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from_digit) = rest.split_at(start);
        let end = from_digit.find(|c: char| !c.is_ascii_digit()).unwrap_or(from_digit.len());
        let (digits, behind) = from_digit.split_at(end);
        rest = behind;
        // Error codes, hex numbers and the like follow other characters.
        let alone = !before.ends_with(|c: char| c.is_alphanumeric() || ['-', '#'].contains(&c));
        let thousands = behind.starts_with('k');
        if let (true, Ok(number)) = (alone, digits.parse::<u64>()) {
            numbers.push(if thousands { number.saturating_mul(1000) } else { number });
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_how_a_range_has_to_change() {
        let most = |blocks| Some(Shrink::AtMost(blocks));
        let (to, half) = (|blocks| Some(Shrink::To(blocks)), Some(Shrink::Half));
        for (text, expected) in [
            // A range that works is used.
            (
                "Log response size exceeded. You can make eth_getLogs requests with up to a 2K \
                 block range. Based on your parameters, this block range should work: [0x0, 0x3e7]",
                to(1000),
            ),
            (
                "query returned more than 10000 results. Try with this block range [0x0, 0x1f3].",
                to(500),
            ),
            ("query exceeds max results 20000, retry with the range 0-499", to(500)),
            // A largest range is remembered.
            ("range 1000000 exceeds limit of 10000", most(10_000)),
            ("eth_getLogs is limited to a 10,000 range", most(10_000)),
            ("exceed maximum block range: 50000", most(50_000)),
            ("ranges over 10000 blocks are not supported on freetier", most(10_000)),
            ("query exceeds max block range 100000", most(100_000)),
            ("eth_getLogs range is too large, max is 1k blocks", most(1_000)),
            ("Maximum allowed number of requested blocks is 1000", most(1_000)),
            ("eth_getLogs is limited to 1024 block", most(1_024)),
            ("range 2500 is bigger than range limit 2000", most(2_500)),
            ("block range is too wide (maximum 1024)", most(1_024)),
            ("please limit the query to at most 1000 blocks", most(1_000)),
            ("requested too many blocks from 0 to 999999, maximum is set to 2048", most(2_048)),
            // A suggested range that is as long as the limit.
            (
                "You can make eth_getLogs requests with up to a 500 block range. Based on your \
                 parameters, this block range should work: [0x0, 0x1f3]",
                most(500),
            ),
            ("invalid range 0x12d687 to 0x99, at most 1000 blocks", most(1_000)),
            // Texts that report too many results or blocks, without a number, halve the range.
            ("query returned more than 10000 results", half),
            ("logs matched by query exceeds limit of 10000", half),
            ("response size should not greater than 10000000 bytes", half),
            ("backend response too large", half),
            ("context deadline exceeded (timeout)", half),
            ("Block range is too large", half),
            ("block range too large", half),
            ("Block range limit exceeded.", half),
            ("block range is larger than max block range", half),
            // Other texts are not about ranges.
            ("execution reverted", None),
            ("invalid argument 0: hex string without 0x prefix", None),
        ] {
            assert_eq!(read(text, 0, 999_999), expected, "{text}");
        }
    }
}
