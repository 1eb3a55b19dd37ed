//! The progress line, on stderr and only on a terminal.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::table::printable;

const TICK: Duration = Duration::from_millis(120);
/// Shortest interval between requests for the total.
const TOTAL_EVERY: Duration = Duration::from_secs(1);
/// A rate over less than `RATE_AFTER` is meaningless. Over more than `RATE_OVER` it would include
/// stored rows, which arrive much faster than loaded ones.
const RATE_AFTER: Duration = Duration::from_secs(1);
const RATE_OVER: Duration = Duration::from_secs(20);

pub(super) struct ProgressLine {
    bar: ProgressBar,
    /// Recent times, and the number of rows at each.
    marks: RefCell<VecDeque<(Instant, u64)>>,
    total: Cell<Option<u64>>,
    /// The estimated total.
    expected: Cell<Option<u64>>,
    total_requested_at: Cell<Option<Instant>>,
}

impl ProgressLine {
    /// Shows nothing if `silent` is set or stderr is no terminal.
    pub(super) fn start(silent: bool) -> Self {
        if silent || !std::io::stderr().is_terminal() {
            return Self::of(ProgressBar::hidden());
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.set_message("asking the chain");
        bar.enable_steady_tick(TICK);
        Self::of(bar)
    }

    fn of(bar: ProgressBar) -> Self {
        Self {
            bar,
            marks: RefCell::default(),
            total: Cell::default(),
            expected: Cell::default(),
            total_requested_at: Cell::default(),
        }
    }

    pub(super) fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Values pending from earlier calls are being looked up.
    pub(super) fn shows_values(&self) {
        self.bar.set_message("asking for values that are still open");
    }

    pub(super) fn expect(&self, trades: u64) {
        self.expected.set(Some(trades));
    }

    /// The reading has reached this many trades, back to this time.
    pub(super) fn reached(&self, trades: u64, oldest: &str) {
        let (recent, took) = self.mark(trades);
        let expected = self.expected.get().filter(|expected| *expected > trades);
        let known = self.total.get().map(|total| ("", total));
        let total = known.or(expected.map(|expected| ("about ", expected)));
        self.bar.set_message(message(trades, total, recent, took, &printable(oldest)));
    }

    /// This many transactions were read again, back to this time.
    pub(super) fn reread(&self, transactions: u64, oldest: &str) {
        let count = HumanCount(transactions);
        self.bar.set_message(format!("{count} transactions read anew, back to {oldest}"));
    }

    /// Whether the caller should determine the total now.
    pub(super) fn wants_total(&self) -> bool {
        let recent = self.total_requested_at.get().is_some_and(|at| at.elapsed() < TOTAL_EVERY);
        self.is_shown() && self.total.get().is_none() && !recent
    }

    pub(super) fn total(&self, total: Option<u64>) {
        self.total_requested_at.set(Some(Instant::now()));
        self.total.set(total);
    }

    /// The number of recent rows, and the time in which they arrived.
    fn mark(&self, trades: u64) -> (u64, Duration) {
        let (mut marks, now) = (self.marks.borrow_mut(), Instant::now());
        marks.push_back((now, trades));
        while marks.len() > 2 && marks.front().is_some_and(|(at, _)| now - *at > RATE_OVER) {
            marks.pop_front();
        }
        let (at, first) = marks.front().copied().unwrap_or((now, trades));
        (trades.saturating_sub(first), now - at)
    }
}

/// `1,000 of 5,000 trades, back to …, 500 a second, 8 seconds left`. `total` is the word before the
/// total, which is empty unless it is an estimate, and the total.
fn message(
    trades: u64,
    total: Option<(&str, u64)>,
    recent: u64,
    took: Duration,
    oldest: &str,
) -> String {
    let of = total.map(|(about, total)| format!(" of {about}{}", HumanCount(total)));
    let (count, of) = (HumanCount(trades), of.unwrap_or_default());
    let mut text = format!("{count}{of} trades, back to {oldest}");
    if took < RATE_AFTER || recent == 0 {
        return text;
    }
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let rate = recent.saturating_mul(1000).checked_div(millis).unwrap_or_default();
    // Writing to a String cannot fail.
    let _ = write!(text, ", {} a second", HumanCount(rate));
    if let Some((about, total)) = total {
        let left = total.saturating_sub(trades);
        let millis = millis.saturating_mul(left).checked_div(recent).unwrap_or_default();
        let _ = write!(text, ", {about}{} left", HumanDuration(Duration::from_millis(millis)));
    }
    text
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_time_left_are_shown_where_they_are_known() {
        let at = |total, recent, seconds| {
            message(1_500, total, recent, Duration::from_secs(seconds), "2026-11-21")
        };
        assert_eq!(at(None, 1_000, 0), "1,500 trades, back to 2026-11-21");
        assert_eq!(at(None, 1_000, 2), "1,500 trades, back to 2026-11-21, 500 a second");
        assert_eq!(
            at(Some(("", 6_500)), 1_000, 2),
            "1,500 of 6,500 trades, back to 2026-11-21, 500 a second, 10 seconds left"
        );
        assert_eq!(
            at(Some(("about ", 6_500)), 1_000, 2),
            "1,500 of about 6,500 trades, back to 2026-11-21, 500 a second, about 10 seconds left"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_is_that_of_the_last_seconds() {
        let progress = ProgressLine::of(ProgressBar::hidden());
        assert_eq!(progress.mark(100_000), (0, Duration::ZERO));
        let mut last = (0, Duration::ZERO);
        for second in 1..=60 {
            tokio::time::advance(Duration::from_secs(1)).await;
            last = progress.mark(300_000 + second * 50);
        }
        assert_eq!(last, (1_000, Duration::from_secs(20)), "what was stored is not of late");
    }
}
