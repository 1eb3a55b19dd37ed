//! What people see while they wait, on stderr and only on a terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressStyle};

const TICK: Duration = Duration::from_millis(120);

pub(super) struct Progress(Option<ProgressBar>);

impl Progress {
    /// Silent where stderr is no terminal, or where rows are written to the same one.
    pub(super) fn start(rows_on_terminal: bool) -> Self {
        if rows_on_terminal || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.set_message("asking the chain");
        bar.enable_steady_tick(TICK);
        Self(Some(bar))
    }

    /// So many trades, back to that time.
    pub(super) fn reached(&self, trades: u64, oldest: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(format!("{} trades, back to {oldest}", HumanCount(trades)));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
