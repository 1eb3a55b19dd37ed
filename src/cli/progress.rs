//! What people see while they wait, on stderr and only on a terminal.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use tokio::time::Instant;

const TICK: Duration = Duration::from_millis(120);
/// The total is asked for no more often.
const TOTAL_EVERY: Duration = Duration::from_secs(1);
/// A rate over less time is meaningless.
const RATE_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Progress(Option<Bar>);

struct Bar {
    shown: ProgressBar,
    began: Instant,
    /// Rows that were there when it began, from an earlier call.
    first: Cell<Option<u64>>,
    total: Cell<Option<u64>>,
    asked_total: Cell<Option<Instant>>,
}

impl Progress {
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
        let (first, total, asked_total) = (Cell::default(), Cell::default(), Cell::default());
        Self(Some(Bar { shown: bar, began: Instant::now(), first, total, asked_total }))
    }

    /// So many trades, back to that time.
    pub(super) fn reached(&self, trades: u64, oldest: &str) {
        let Some(bar) = &self.0 else { return };
        let first = bar.first.get().unwrap_or(trades);
        bar.first.set(Some(first));
        let (news, took) = (trades.saturating_sub(first), bar.began.elapsed());
        bar.shown.set_message(message(trades, bar.total.get(), news, took, oldest));
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

/// `1,000 of 5,000 trades, back to …, 500 a second, 8 seconds left`.
fn message(trades: u64, total: Option<u64>, news: u64, took: Duration, oldest: &str) -> String {
    let count = HumanCount(trades);
    let mut text = match total {
        Some(total) => format!("{count} of {} trades, back to {oldest}", HumanCount(total)),
        None => format!("{count} trades, back to {oldest}"),
    };
    if took < RATE_AFTER || news == 0 {
        return text;
    }
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let rate = news.saturating_mul(1000).checked_div(millis).unwrap_or_default();
    // Writing to a String cannot fail.
    let _ = write!(text, ", {} a second", HumanCount(rate));
    if let Some(total) = total {
        let left = total.saturating_sub(trades);
        let millis = millis.saturating_mul(left).checked_div(news).unwrap_or_default();
        let _ = write!(text, ", {} left", HumanDuration(Duration::from_millis(millis)));
    }
    text
}

impl Drop for Progress {
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
            at(Some(6_500), 1_000, 2),
            "1,500 of 6,500 trades, back to 2026-11-21, 500 a second, 10 seconds left"
        );
    }
}
