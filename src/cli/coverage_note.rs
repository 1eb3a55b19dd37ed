//! Describes the open parts of a history's coverage for the user: cut, doubts, gaps and blind
//! spots, from the JSON of `GET …/coverage`.

use super::table::printable;
use crate::api::{CoverageBody, SpanBody};

/// Most spans and gaps that are listed; further ones are counted.
const SHOWN_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct CoverageNote(pub(super) CoverageBody);

impl CoverageNote {
    /// `None` for any other response, such as that of a server without this route.
    pub(super) fn read(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok().map(Self)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.0.complete
    }

    /// Whether every height was read, proved or not.
    pub(super) fn is_read(&self) -> bool {
        self.0.height.is_some() && self.0.gaps.is_empty()
    }

    /// The distinct doubts of spans that are not accepted as proof of a complete history.
    pub(super) fn doubts(&self) -> Vec<&str> {
        let open = self.0.spans.iter().filter(|span| !span.accepted);
        let mut doubts: Vec<&str> =
            open.flat_map(|span| span.doubts.iter().map(AsRef::as_ref)).collect();
        doubts.sort_unstable();
        doubts.dedup();
        doubts
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let CoverageBody { complete, height, history_cut, blind_spots, spans, gaps, .. } = &self.0;
        let Some(top) = height else { return vec!["coverage: no height was read".to_owned()] };
        let state = if *complete { "read and proved" } else { "not all read and proved" };
        let mut lines = vec![format!("coverage: heights 0 to {top}, {state}")];
        if let Some(first) = history_cut {
            lines.push(format!("  cut: the nodes keep the history only from height {first}"));
        }
        let open: Vec<&SpanBody> = spans.iter().filter(|span| !span.accepted).collect();
        let missing = gaps.iter();
        let missing = missing.map(|gap| format!("  heights {} to {}: not read", gap.low, gap.high));
        lines.extend(open.iter().map(|span| self.span(span)).chain(missing).take(SHOWN_MAX));
        let more = (open.len() + gaps.len()).saturating_sub(SHOWN_MAX);
        if more > 0 {
            lines.push(format!("  … and {more} more ranges"));
        }
        let blind = blind_spots.iter().map(|name| self.meaning(name));
        lines.extend(blind.map(|name| format!("  not seen by any configured way: {name}")));
        // A server may have written parts of them.
        lines.iter().map(|line| printable(line)).collect()
    }

    fn span(&self, span: &SpanBody) -> String {
        let SpanBody { low, high, way, doubts, missing, .. } = span;
        let doubts: Vec<String> = doubts.iter().map(|name| self.meaning(name)).collect();
        let missing = match missing.first() {
            Some(first) if missing.len() > 1 => {
                format!(" ({first} and {} more)", missing.len() - 1)
            }
            Some(first) => format!(" ({first})"),
            None => String::new(),
        };
        format!("  heights {low} to {high}, read by {way}: {}{missing}", doubts.join("; "))
    }

    fn meaning(&self, name: &str) -> String {
        match self.0.meanings.get(name) {
            Some(meaning) => format!("{name} ({meaning})"),
            None => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(complete: bool, spans: &str, gaps: &str) -> CoverageNote {
        let json = format!(
            r#"{{"wallet":"w","chain":"eth","complete":{complete},"rows":3,"height":90,"asOf":null,
            "historyCut":null,"blindSpots":["inner_calls"],
            "meanings":{{"inner_calls":"coin","depth":"too old"}},"spans":[{spans}],"gaps":[{gaps}]}}"#
        );
        CoverageNote::read(json.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_open_is_named_with_its_heights_and_meaning() {
        let proved = r#"{"low":50,"high":90,"way":"logs","doubts":["inner_calls"],"accepted":true,"missing":[]}"#;
        let all = note(true, proved, "");
        let blind = "  not seen by any configured way: inner_calls (coin)";
        assert_eq!(all.lines(), ["coverage: heights 0 to 90, read and proved", blind]);
        assert!(all.doubts().is_empty());
        let doubtful = r#"{"low":9,"high":49,"way":"logs","doubts":["depth","inner_calls"],"accepted":false,"missing":["0xa","0xb"]}"#;
        let open = note(false, &format!("{proved},{doubtful}"), r#"{"low":0,"high":8}"#);
        let expected = [
            "coverage: heights 0 to 90, not all read and proved",
            "  heights 9 to 49, read by logs: depth (too old); inner_calls (coin) (0xa and 1 more)",
            "  heights 0 to 8: not read",
            blind,
        ];
        assert_eq!(open.lines(), expected);
        assert_eq!(open.doubts(), ["depth", "inner_calls"]);
        let hostile = note(false, &doubtful.replace("0xa", "\\u001b[2J"), "").lines().concat();
        assert!(hostile.contains("(\u{fffd}[2J and 1 more)"), "{hostile}");
    }

    #[test]
    fn other_answers_are_no_coverage() {
        assert!(CoverageNote::read(br#"{"trades":[],"complete":true}"#).is_none());
        assert!(CoverageNote::read(b"<html>").is_none());
    }

    #[test]
    fn many_ranges_are_counted() {
        let gaps = [r#"{"low":1,"high":2}"#; SHOWN_MAX + 3].join(",");
        let lines = note(false, "", &gaps).lines();
        assert!(lines.contains(&"  … and 3 more ranges".to_owned()), "{lines:?}");
    }
}
