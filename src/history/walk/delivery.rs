//! Downward delivery. A row is passed only when it is delivered: a caller may drop the step while
//! rows are counted, and a shared store counts each run in a transaction that may fail.

use std::ops::Range;
use std::time::Duration;

use tokio::time::Instant;

use super::Walk;
use crate::domain::{Position, Rows, TradeKey};
use crate::history::Result;
use crate::history::error::HistoryError;
use crate::history::usage::Delivery;

/// After this time a step delivers what is counted so far: a stream drops a step that is not ready
/// within its heartbeat, and with a slow database no step would ever end.
pub(super) const COUNTING_MAX: Duration = Duration::from_secs(1);

/// Adjacent rows that all match the filter, or all do not.
struct Run {
    range: Range<usize>,
    wanted: bool,
}

impl Walk {
    /// Keeps the matching rows, as many as the page and the quota allow. Usage is counted by runs
    /// of adjacent rows.
    pub(super) async fn deliver_below(&mut self, mut rows: Rows) -> Result<Rows> {
        let (runs, error) = self.count_runs(&rows).await;
        let mut keep = Vec::new();
        for Run { range, wanted } in runs {
            let run = rows.bare().get(range.clone()).unwrap_or_default();
            self.pass(run, if wanted { run.len() } else { 0 });
            if wanted {
                keep.push(range);
            }
        }
        // After some rows were counted the error is not returned: the next step meets it again.
        if let Some(error) = error.filter(|_| keep.is_empty()) {
            return Err(error);
        }
        rows.keep(&keep);
        self.demand.update(|demand| demand.edge = None);
        Ok(rows)
    }

    /// Counts rows without moving the walk: returns the runs that it may pass, and the error that
    /// stopped it, if any.
    async fn count_runs(&self, rows: &Rows) -> (Vec<Run>, Option<HistoryError>) {
        let until = Instant::now() + COUNTING_MAX;
        let mut left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let (mut runs, mut after, mut at) = (Vec::new(), self.position, 0);
        while let Some((wanted, len)) = self.run(rows, at) {
            let end = at + if wanted { len.min(left) } else { len };
            let run = rows.bare().get(at..end).unwrap_or_default();
            if wanted {
                let allowed = match self.count((after, None), run).await {
                    Ok(0) if !run.is_empty() => return (runs, Some(HistoryError::QuotaExceeded)),
                    Ok(allowed) => allowed,
                    Err(error) => return (runs, Some(error)),
                };
                runs.push(Run { range: at..at + allowed, wanted });
                left = left.saturating_sub(allowed);
                if allowed < run.len() || left == 0 || Instant::now() >= until {
                    break;
                }
            } else {
                runs.push(Run { range: at..end, wanted });
            }
            after = run.last().map_or(after, |row| Position::After(row.key));
            at = end;
        }
        (runs, None)
    }

    /// Whether the row at `at` matches the filter, and how many rows from it on do the same.
    fn run(&self, rows: &Rows, at: usize) -> Option<(bool, usize)> {
        let filter = &self.request.filter;
        let mut rest = rows.iter_from(at);
        let wanted = filter.matches(rest.next()?);
        if filter.is_none() {
            return Some((wanted, rows.len() - at));
        }
        let alike = rest.take_while(|row| filter.matches(*row) == wanted);
        Some((wanted, 1 + alike.count()))
    }

    /// Counts rows behind a position; returns how many of them the quota allows. Their range joins
    /// that of the row right below, if given.
    pub(super) async fn count<K: AsRef<TradeKey> + Sync>(
        &self,
        (after, below): (Position, Option<TradeKey>),
        rows: &[K],
    ) -> Result<usize> {
        let wallet = match self.seen_record {
            Some(found) => found.id,
            None => self.record(&self.inner.view()?).await?.ok_or(HistoryError::Internal)?.id,
        };
        let request = &self.request;
        let (key, quota) = (request.key, request.quota);
        let delivery = Delivery { key, quota, wallet, after, below, rows };
        Ok(self.inner.usage.deliver(&delivery).await?)
    }
}
