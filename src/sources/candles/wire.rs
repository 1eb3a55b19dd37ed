//! Pure: what the price service answers, with prices read digit by digit.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::domain::Price;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) time: u32,
    pub(super) price: Price,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    coins: HashMap<String, Coin<'a>>,
}

#[derive(Deserialize)]
struct Coin<'a> {
    #[serde(default, borrow)]
    prices: Vec<Row<'a>>,
}

#[derive(Deserialize)]
struct Row<'a> {
    timestamp: u32,
    #[serde(borrow)]
    price: &'a RawValue,
    #[serde(default, borrow)]
    confidence: Option<&'a RawValue>,
}

/// Below this the service itself doubts a price (of 10¹²).
const CONFIDENCE_MIN: Price = Price(900_000_000_000);

/// The records of a coin; `None` for an answer of another form. It leaves out unknown coins.
pub(super) fn records(body: &[u8], coin: &str) -> Option<Vec<Record>> {
    let answer: Answer<'_> = serde_json::from_slice(body).ok()?;
    let Some(listed) = answer.coins.get(coin) else { return Some(Vec::new()) };
    let sure = |row: &&Row<'_>| {
        row.confidence.and_then(|c| decimal(c.get())).is_none_or(|c| c >= CONFIDENCE_MIN)
    };
    let record = |row: &Row<'_>| {
        let price = decimal(row.price.get()).filter(|price| price.0 > 0)?;
        Some(Record { time: row.timestamp, price })
    };
    Some(listed.prices.iter().filter(sure).filter_map(record).collect())
}

/// Digits before the point that a price may have: far above any, far below what overflows.
const WHOLE_DIGITS_MAX: usize = 20;
/// Powers of ten that are followed.
const EXPONENT_MAX: i32 = 30;

/// A JSON number in units of 10⁻¹², what is below cut off.
fn decimal(text: &str) -> Option<Price> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !plain(part) || exponent.abs() > EXPONENT_MAX {
        return None;
    }
    let digits = format!("{whole}{part}");
    let point = i32::try_from(whole.len()).ok()? + exponent + i32::from(Price::DECIMALS);
    let kept = usize::try_from(point).unwrap_or(0);
    if kept > WHOLE_DIGITS_MAX + usize::from(Price::DECIMALS) {
        return None;
    }
    let cut: String = digits.chars().chain(std::iter::repeat('0')).take(kept).collect();
    if cut.is_empty() { Some(Price(0)) } else { cut.parse().ok().map(Price) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_digit_by_digit() {
        let read = |text: &str| decimal(text).map(|price| price.0);
        assert_eq!(read("1"), Some(1_000_000_000_000));
        assert_eq!(read("3127.4500000000001"), Some(3_127_450_000_000_000));
        assert_eq!(read("0.1"), Some(100_000_000_000));
        assert_eq!(read("1.5e-7"), Some(150_000));
        assert_eq!(read("2.5E+3"), Some(2_500_000_000_000_000));
        assert_eq!(read("1e-20"), Some(0));
        for bad in ["-1", "\"1\"", "null", "1e99", "NaN", ".5", "", "999999999999999999999"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_answer_gives_only_prices_that_are_certain() {
        let body = br#"{"coins":{"coingecko:solana":{"symbol":"SOL","prices":[
            {"timestamp":100,"price":150.25,"confidence":0.99},
            {"timestamp":200,"price":151,"confidence":0.5},
            {"timestamp":300,"price":0}]}}}"#;
        let expected = Record { time: 100, price: Price(150_250_000_000_000) };
        assert_eq!(records(body, "coingecko:solana"), Some(vec![expected]));
        assert_eq!(records(body, "coingecko:tron"), Some(Vec::new()));
        for bad in [&b"{}"[..], b"[]", b"<html>", br#"{"coins":{"a":{"prices":[{}]}}}"#] {
            assert_eq!(records(bad, "a"), None);
        }
    }
}
