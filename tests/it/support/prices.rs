//! Measures of estimates against the truth, in millionths.

use std::fmt;

use blotter::domain::Units;

/// By how much estimates are off.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    millionths: Vec<u64>,
    missing: usize,
}

impl Errors {
    pub(crate) fn add(&mut self, given: Option<Units>, truth: Units) {
        let Some(given) = given else { return self.missing += 1 };
        let off = given.abs_diff(truth) * Units::from(1_000_000) / truth;
        self.millionths.push(off.try_into().unwrap_or(u64::MAX));
    }

    fn at(&self, percent: usize) -> u64 {
        let mut sorted = self.millionths.clone();
        sorted.sort_unstable();
        sorted[(sorted.len() - 1) * percent / 100]
    }

    /// What the estimates are held to: median below 0.3 %, 99th percentile below 2 %; of a hundred
    /// at most so many may be missing.
    #[track_caller]
    pub(crate) fn check(&self, at_least: usize, missing_percent_max: usize) {
        assert!(self.millionths.len() >= at_least.max(1), "{self}");
        assert!(self.at(50) < 3_000, "{self}");
        assert!(self.at(99) < 20_000, "{self}");
        let all = self.missing + self.millionths.len();
        assert!(self.missing * 100 <= all * missing_percent_max, "{self}");
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (given, missing) = (self.millionths.len(), self.missing);
        let (median, high) = (self.at(50), self.at(99));
        write!(f, "median {median} ppm, p99 {high} ppm, {given} given, {missing} not")
    }
}
