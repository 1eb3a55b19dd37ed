//! Pure: the rate that a refusal names, as providers word it.

/// Larger numbers are taken for something else: no provider allows more per key.
const RATE_MAX: u32 = 10_000;
/// The number follows this text.
const BEFORE: &str = "allowed_rps(";
/// The number precedes these texts, with at most one word between.
const AFTER: [&str; 2] = [" per second", "/sec"];

/// The rate in calls per 1,000 seconds; `None` if the text names no rate of calls.
pub(super) fn named_rate(text: &str) -> Option<u32> {
    let text = text.to_ascii_lowercase();
    let behind = text.split_once(BEFORE).and_then(|(_, rest)| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest.get(..end)?.parse().ok()
    });
    let rate: u32 = behind.or_else(|| AFTER.iter().find_map(|unit| number_before(&text, unit)))?;
    (1..=RATE_MAX).contains(&rate).then(|| rate * 1_000)
}

fn number_before(text: &str, unit: &str) -> Option<u32> {
    let (before, _) = text.split_once(unit)?;
    let before = before.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
    let begin = before.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    before.get(begin..)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_providers_word_them() {
        for (text, rate) in [
            ("request rate of (x) exceeded the allowed_rps(15), and the query server", 15_000),
            ("the maximum query frequency is 1 time per second", 1_000),
            ("Max calls per sec rate limit reached (3/sec)", 3_000),
            ("15/second request limit reached - reduce calls per second", 15_000),
            ("limited to 25 requests per second", 25_000),
        ] {
            assert_eq!(named_rate(text), Some(rate), "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_of_calls_names_none() {
        for text in [
            "exceeded its compute units per second capacity",
            "330 compute units per second",
            "daily request limit reached",
            "0/sec",
            "99999999999/sec",
            "",
        ] {
            assert_eq!(named_rate(text), None, "{text}");
        }
    }
}
