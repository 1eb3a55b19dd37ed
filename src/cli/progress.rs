//! What people see while they wait, on stderr and only on a terminal.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use tokio::time::Instant;

const TICK: Duration = Duration::from_millis(120);
/// The total is asked for no more often.
const TOTAL_EVERY: Duration = Duration::from_secs(1);
/// A rate over less time is meaningless; over more it holds what was stored already, which comes much
/// faster than what is loaded.
const RATE_AFTER: Duration = Duration::from_secs(1);
const RATE_OVER: Duration = Duration::from_secs(20);

pub(super) struct ProgressLine(Option<Bar>);

struct Bar {
    shown: ProgressBar,
    /// Rows of late, and when they were there.
    marks: RefCell<VecDeque<(Instant, u64)>>,
    total: Cell<Option<u64>>,
    /// About how many there are, by an estimate.
    expected: Cell<Option<u64>>,
    asked_total: Cell<Option<Instant>>,
}

impl ProgressLine {
    /// Silent where that is asked for, and where stderr is no terminal.
    pub(super) fn start(silent: bool) -> Self {
        if silent || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.set_message("asking the chain");
        bar.enable_steady_tick(TICK);
        Self(Some(Bar::new(bar)))
    }

    pub(super) fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Values that an earlier call left open are asked for.
    pub(super) fn asks_for_values(&self) {
        if let Some(bar) = &self.0 {
            bar.shown.set_message("asking for values that are still open");
        }
    }

    /// About how many trades there are, before that is known.
    pub(super) fn expect(&self, trades: u64) {
        if let Some(bar) = &self.0 {
            bar.expected.set(Some(trades));
        }
    }

    /// So many trades, back to that time.
    pub(super) fn reached(&self, trades: u64, oldest: &str) {
        let Some(bar) = &self.0 else { return };
        let (news, took) = bar.mark(trades);
        let expected = bar.expected.get().filter(|expected| *expected > trades);
        let known = bar.total.get().map(|total| ("", total));
        let total = known.or(expected.map(|expected| ("about ", expected)));
        bar.shown.set_message(message(trades, total, news, took, oldest));
    }

    /// So many transactions were read anew, back to that time.
    pub(super) fn reread(&self, transactions: u64, oldest: &str) {
        if let Some(bar) = &self.0 {
            let count = HumanCount(transactions);
            bar.shown.set_message(format!("{count} transactions read anew, back to {oldest}"));
        }
    }

    /// Whether it would help to know how many there are.
    pub(super) fn wants_total(&self) -> bool {
        self.0.as_ref().is_some_and(|bar| {
            let recent = bar.asked_total.get().is_some_and(|at| at.elapsed() < TOTAL_EVERY);
            bar.total.get().is_none() && !recent
        })
    }

    /// How many there are in all, where that is known.
    pub(super) fn total(&self, total: Option<u64>) {
        if let Some(bar) = &self.0 {
            bar.asked_total.set(Some(Instant::now()));
            bar.total.set(total);
        }
    }
}

impl Bar {
    fn new(shown: ProgressBar) -> Self {
        Self {
            shown,
            marks: RefCell::default(),
            total: Cell::default(),
            expected: Cell::default(),
            asked_total: Cell::default(),
        }
    }

    /// Rows that came of late, and in what time.
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

/// `1,000 of 5,000 trades, back to …, 500 a second, 8 seconds left`. The total stands with the word in
/// front of it, which is empty where it is no estimate.
fn message(
    trades: u64,
    total: Option<(&str, u64)>,
    news: u64,
    took: Duration,
    oldest: &str,
) -> String {
    let of = total.map(|(about, total)| format!(" of {about}{}", HumanCount(total)));
    let (count, of) = (HumanCount(trades), of.unwrap_or_default());
    let mut text = format!("{count}{of} trades, back to {oldest}");
    if took < RATE_AFTER || news == 0 {
        return text;
    }
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let rate = news.saturating_mul(1000).checked_div(millis).unwrap_or_default();
    // Writing to a String cannot fail.
    let _ = write!(text, ", {} a second", HumanCount(rate));
    if let Some((about, total)) = total {
        let left = total.saturating_sub(trades);
        let millis = millis.saturating_mul(left).checked_div(news).unwrap_or_default();
        let _ = write!(text, ", {about}{} left", HumanDuration(Duration::from_millis(millis)));
    }
    text
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.shown.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_rate_and_time_left_where_they_are_known() {
        let at = |total, news, seconds| {
            message(1_500, total, news, Duration::from_secs(seconds), "2026-11-21")
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
    async fn the_rate_is_that_of_late() {
        let bar = Bar::new(ProgressBar::hidden());
        assert_eq!(bar.mark(100_000), (0, Duration::ZERO));
        let mut last = (0, Duration::ZERO);
        for second in 1..=60 {
            tokio::time::advance(Duration::from_secs(1)).await;
            last = bar.mark(300_000 + second * 50);
        }
        assert_eq!(last, (1_000, Duration::from_secs(20)), "what was stored is not of late");
    }
}
