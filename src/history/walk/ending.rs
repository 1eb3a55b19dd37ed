//! The end of a walk: its summary of the history, and the wait for outstanding proofs.

use std::time::Duration;

use tokio::time::Instant;

use super::{End, Extent, Scope, Step, Walk};
use crate::domain::{Height, Position};
use crate::history::Result;
use crate::history::error::HistoryError;
use crate::history::proven::Completeness;
use crate::store::{View, WalletRecord};

/// The most rows that a walk with a time filter counts again at its end: more would take longer
/// than a stream's heartbeat.
pub(super) const RECOUNT_MAX: u64 = 1_000_000;

impl Walk {
    /// Whether all rows are delivered but some spans with them are not proved yet. A stream, and a
    /// page without rows, give the worker some time for the proofs, because their end reports
    /// whether the history is complete.
    pub(super) async fn awaits_proof(&mut self) -> Result<bool> {
        if let Extent::Rows(most) = self.request.want
            && self.left < most
        {
            return Ok(false);
        }
        let record = self.record(&self.inner.view()?).await?;
        let proved = match (record, self.head) {
            (Some(record), Some(head)) => {
                !matches!(self.inner.completeness(&record, head), Completeness::Unproved(_))
            }
            (None, _) | (_, None) => true,
        };
        let now = Instant::now();
        let most = now + self.inner.limits.proof_wait_max;
        let until = *self.proof_deadline.get_or_insert_with(|| self.deadline.min(most));
        let waits = !proved && now < until;
        if !waits {
            self.proof_deadline = None;
        }
        Ok(waits)
    }

    pub(super) async fn end(&mut self, error: Option<HistoryError>) -> Step {
        let known = self.page_end.take().filter(|_| self.left == 0 && error.is_none());
        let end = match known {
            Some(end) => Ok(*end),
            None => self.summary(error).await,
        };
        let end = end.unwrap_or_else(|error| End {
            complete: false,
            more: true,
            trade_count: 0,
            first_trade: None,
            error: Some(error),
        });
        let end = self.with_endpoint_failure(end);
        // A page loads nothing below its rows, but heights in doubt are read again.
        let is_unproved =
            end.error.is_some() && Box::pin(self.ends_unproved(&end)).await.unwrap_or(false);
        let wants_more = self.request.want == Extent::All || is_unproved;
        if wants_more && !end.complete && !self.live {
            let error = end.error.as_ref().filter(|_| !is_unproved);
            self.inner.continue_in_background(&self.request, error);
        }
        if self.request.follow {
            // The window may end together with the history: new rows are still to be requested.
            return Step::End(End { complete: false, more: true, first_trade: None, ..end });
        }
        Step::End(end)
    }

    /// Whether all heights are stored and the error is a remaining doubt.
    async fn ends_unproved(&self, end: &End) -> Result<bool> {
        match (&end.error, self.head) {
            (Some(HistoryError::Unproved { .. }), _) => Ok(true),
            (Some(HistoryError::HistoryCut { .. }), Some(head)) => {
                let record = self.record(&self.inner.view()?).await?;
                let completeness = record.map(|record| self.inner.completeness(&record, head));
                Ok(matches!(completeness, Some(Completeness::Unproved(_))))
            }
            _ => Ok(false),
        }
    }

    /// If nothing is stored and every endpoint has failed since the walk began, without a useful
    /// answer, the end reports that failure: an empty page would mean that a load is in progress.
    fn with_endpoint_failure(&self, end: End) -> End {
        let is_empty = end.error.is_none() && !end.complete && self.head.is_none();
        if !is_empty {
            return end;
        }
        let Some(source) = self.inner.sources.get(&self.request.wallet.chain) else { return end };
        let (window, left) = (self.request.window, self.deadline.duration_since(Instant::now()));
        let open_for = window.saturating_sub(left);
        let endpoints = source.endpoints();
        let answered = |ago: Option<Duration>| ago.is_some_and(|ago| ago <= open_for);
        if endpoints.iter().any(|one| answered(one.answered_ago) || one.last_error.is_none()) {
            return end;
        }
        let reason = endpoints.into_iter().find_map(|one| one.last_error);
        let error = reason.map(|detail| HistoryError::UpstreamUnavailable { detail });
        End { error, ..end }
    }

    pub(super) async fn summary(&self, error: Option<HistoryError>) -> Result<End> {
        let view = self.inner.view()?;
        let none = End { complete: false, more: true, trade_count: 0, first_trade: None, error };
        if !self.request.filter.is_none() {
            let match_count = self.match_count.as_deref().copied().unwrap_or_default();
            return Ok(self.filtered_summary(&match_count, none).await);
        }
        let Some(record) = self.record(&view).await? else { return Ok(none) };
        let Some(head) = self.head.filter(|_| !self.live) else {
            return Ok(End { trade_count: record.count, ..none });
        };
        let doubt = match self.inner.completeness(&record, head) {
            Completeness::Gap => return Ok(End { trade_count: record.count, ..none }),
            Completeness::Unproved(error) => Some(error),
            Completeness::Complete => None,
        };
        let trade_count = count_below(&view, &record, head).await?;
        let from = self.from((&view, &record, head)).await?;
        let below = view.rows(record.id, from, 0, 1).await?;
        let is_changed = self.passed.is_some_and(|passed| passed != trade_count);
        let changed = is_changed.then_some(HistoryError::Changed);
        if let Some(doubt) = doubt.or(changed.filter(|_| below.is_empty())) {
            let error = none.error.or(Some(doubt).filter(|_| below.is_empty()));
            return Ok(End { trade_count, error, ..none });
        }
        Ok(End {
            // After an error that ends the walk early the client must come back for the remaining
            // rows.
            complete: none.error.is_none() || below.is_empty(),
            more: !below.is_empty(),
            trade_count,
            // The oldest stored row may be above the head.
            first_trade: view.first_time(record.id).await?.filter(|_| trade_count > 0),
            error: none.error.filter(|_| !below.is_empty()),
        })
    }

    /// Whether rows were added or removed above the position. Compared twice, because other
    /// processes may write to a shared store between its answers.
    pub(super) async fn is_changed(&self) -> Result<bool> {
        for _ in 0..2 {
            if !self.counts_differ().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn counts_differ(&self) -> Result<bool> {
        // A live walk compares in `unless_late`, up to its position.
        let passed = self.passed.filter(|_| !self.live);
        let Some((passed, head)) = passed.zip(self.head) else { return Ok(false) };
        let view = self.inner.view()?;
        let Some(record) = self.record(&view).await? else { return Ok(passed > 0) };
        if self.request.filter.is_timed() {
            if passed > RECOUNT_MAX {
                return Ok(false);
            }
            let (scope, place): (Scope<'_>, _) = ((&view, &record, head), self.position);
            return Ok(self.count_before(scope, place, passed).await? != passed);
        }
        let stored = count_below(&view, &record, head).await?;
        let Some(rest) = stored.checked_sub(passed) else { return Ok(true) };
        Ok(rest > 0 && self.count_behind((&view, &record, head), rest).await? != rest)
    }

    /// Number of rows between the walk's beginning and a position; stops once it exceeds `max`.
    pub(super) async fn count_before(
        &self,
        scope: Scope<'_>,
        place: Position,
        max: u64,
    ) -> Result<u64> {
        let Position::After(end) = place else { return Ok(0) };
        let limit = self.inner.limits.rows_per_step_max;
        let (mut at, mut count) = (self.start_position(scope).await?, 0);
        let (view, record, _) = scope;
        while count <= max {
            let rows = view.rows(record.id, at, 0, limit).await?;
            let before = rows.bare().iter().take_while(|row| row.key <= end).count();
            count = u64::try_from(before).map_or(u64::MAX, |rows| rows.saturating_add(count));
            let Some(last) = rows.last_key().filter(|_| before == rows.len()) else { break };
            at = Position::After(last);
            tokio::task::yield_now().await;
        }
        Ok(count)
    }

    /// Number of rows behind the position; stops once it exceeds `max`. There may be many: a page
    /// that the last matching row fills stands before all rows that its filter rejects.
    async fn count_behind(&self, scope: Scope<'_>, max: u64) -> Result<u64> {
        let (view, record, _) = scope;
        let limit = self.inner.limits.rows_per_step_max;
        let (mut at, mut count) = (self.from(scope).await?, 0);
        while count <= max {
            let rejected = self.rejected(view, record.id, (at, 0))?;
            let (last, rows) = if let Some((last, rows)) = rejected {
                (Some(last), rows)
            } else {
                let rows = view.rows(record.id, at, 0, limit).await?;
                (rows.last_key(), rows.len())
            };
            let Some(last) = last else { break };
            at = Position::After(last);
            count = u64::try_from(rows).map_or(u64::MAX, |rows| rows.saturating_add(count));
            tokio::task::yield_now().await;
        }
        Ok(count)
    }

    /// The end of a page whose rows one look found; `None` if not all is stored and proved, or no
    /// row follows: then the rows must be counted before the end is computed.
    pub(super) async fn page_end(&self, scope: Scope<'_>, more: bool) -> Result<Option<End>> {
        let (view, record, head) = scope;
        if !more || !self.inner.is_complete(record, head) {
            return Ok(None);
        }
        let trade_count = count_below(view, record, head).await?;
        let first_trade = view.first_time(record.id).await?;
        Ok(Some(End { complete: true, more, trade_count, first_trade, error: None }))
    }
}

/// Number of stored rows up to a head.
pub(super) async fn count_below(view: &View, record: &WalletRecord, head: Height) -> Result<u64> {
    if record.coverage.top().is_some_and(|top| top <= head) {
        return Ok(record.count);
    }
    let (mut count, mut epoch) = (record.count, record.epoch);
    loop {
        let above = view.count_above(record.id, head, u64::MAX).await?;
        // In a shared store, rows above are counted after the record was read, and others may write
        // in between.
        let again = view.wallet_by_id(record.id).await?;
        match again.map(|again| (again.count, again.epoch)) {
            Some(now) if now != (count, epoch) => (count, epoch) = now,
            Some(_) | None => return Ok(count.saturating_sub(above)),
        }
        tokio::task::yield_now().await;
    }
}
