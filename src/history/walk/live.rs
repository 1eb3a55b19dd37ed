//! After the history: new rows, oldest first, once their heights are final and covered. A late row
//! below the position ends the walk with an error, because no cursor can place it.

use std::ops::Range;

use tokio::time::Instant;

use super::delivery::COUNTING_MAX;
use super::ending::{RECOUNT_MAX, count_below};
use super::{Look, Scope, Walk};
use crate::domain::{BareRow, Position, Rows};
use crate::history::Result;
use crate::history::error::HistoryError;
use crate::history::plan::Demand;
use crate::store::WalletRecord;

impl Walk {
    /// Makes the walk live: the history down from the head is delivered, and the position becomes
    /// the newest row. The caller recognizes it by the empty step. `None` if more rows came behind
    /// the position.
    pub(super) async fn go_live(&mut self) -> Result<Option<Rows>> {
        if self.is_changed().await? {
            return Err(HistoryError::Changed);
        }
        let view = self.inner.view()?;
        let (record, head) =
            self.record(&view).await?.zip(self.head).ok_or(HistoryError::Internal)?;
        let from = self.from((&view, &record, head)).await?;
        let next = view.rows(record.id, from, 0, 1).await?.last_key();
        let follows = next.is_some_and(|key| !self.request.filter.ends_at(&key));
        let count = count_below(&view, &record, head).await?;
        // A row may have been added since the comparison above: one behind the position is still to
        // be delivered, one above it is found by the next comparison.
        let is_other = !self.request.filter.is_timed() && self.passed != Some(count);
        // With `from`, the walk ends above heights that may be unread.
        let since = match self.request.filter.from {
            Some(_) => self.count_since((&view, &record, head)).await?,
            None => record.coverage.is_complete(head).then_some(count),
        };
        // With `to` as well, `passed` counts from another row, so it cannot be compared.
        let is_open = self.request.filter.from.is_some() && self.request.filter.to.is_none();
        let is_late = is_open && since.is_some() && self.passed != since;
        if self.passed.is_some() && (follows || is_other || is_late) {
            return Ok(None);
        }
        // Rows that are too new for the filter count as passed as well.
        let mut at = self.first_below((&view, &record, head), Position::Start).await?;
        let newest = loop {
            let newest = view.rows(record.id, at, 0, 1).await?.last_key();
            match newest.filter(|key| key.height > head) {
                // Another process has stored it since the record was read: it is a new row.
                Some(above) => at = Position::After(above),
                None => break newest,
            }
        };
        self.passed = since;
        self.verified_at = None;
        self.position = newest.map_or(Position::Start, Position::After);
        self.live = true;
        self.match_count = None;
        self.demand.update(|demand| *demand = Demand { follows: true, ..Demand::default() });
        Ok(Some(Rows::default()))
    }

    /// Rows above the head, once no gap is left between it and the highest covered height.
    pub(super) async fn look_live(&mut self) -> Result<Look> {
        let view = self.inner.view()?;
        let record = view.wallet(&self.request.wallet).await?;
        let Some(record) = record.filter(|record| self.fix_head(record)) else {
            return Ok(Look::Above);
        };
        let Some((head, top)) = self.head.zip(record.coverage.top()) else {
            return Ok(Look::Edge(None));
        };
        // Rows were removed, or the store was replaced by one that is behind.
        if matches!(self.position, Position::After(key) if key.height > top) {
            return Ok(Look::Above);
        }
        if top > head && record.coverage.run_low(top).is_none_or(|low| low > head + 1) {
            return Ok(Look::Edge(record.coverage.run_low(top)));
        }
        let limit = self.inner.limits.rows_per_step_max;
        let mut rows = view.newer_rows(record.id, self.position, limit).await?;
        // Another process may have stored rows above a gap since the record was read.
        let unknown = rows.bare().iter().position(|row| row.key.height > top);
        rows.truncate(unknown.unwrap_or(rows.len()));
        if rows.is_empty() {
            self.head = Some(head.max(top));
            return self.unless_late((&view, &record, top), 0, Look::Edge(None)).await;
        }
        if rows.len() == limit && unknown.is_none() {
            // It is not known how many more rows follow, so counts cannot be compared.
            return Ok(Look::Rows(rows));
        }
        let count = self.count_not_older(rows.bare());
        self.unless_late((&view, &record, top), count, Look::Rows(rows)).await
    }

    /// Whether a failed load ends the walk once all stored rows are delivered: no endpoint keeps
    /// the heights right below the gap's upper edge, or the store is full.
    pub(super) async fn ends_live(&mut self, error: &HistoryError) -> Result<bool> {
        Ok(if let HistoryError::HistoryCut { first } = error {
            matches!(self.look_live().await?, Look::Edge(Some(low)) if low <= *first)
        } else if let HistoryError::StoreFull { .. } = error {
            !matches!(self.look_live().await?, Look::Rows(_))
        } else {
            false
        })
    }

    /// How many of these rows are not older than the filter's `from`; only those are counted, as in
    /// [`Walk::count_since`].
    fn count_not_older(&self, rows: &[BareRow]) -> usize {
        rows.iter().filter(|row| !self.request.filter.ends_at(&row.key)).count()
    }

    /// Returns `look` if the wallet has no rows other than the passed ones and `newer` ones; else a
    /// row was added late or rolled back, and the walk ends with an error. Evicted rows are read
    /// again before they are missed.
    async fn unless_late(
        &mut self,
        (view, record, top): Scope<'_>,
        newer: usize,
        look: Look,
    ) -> Result<Look> {
        let newer = u64::try_from(newer).unwrap_or(u64::MAX);
        let Some(known) = self.passed.map(|passed| passed.saturating_add(newer)) else {
            return Ok(look);
        };
        let older = record.count.checked_sub(known);
        if older.is_some() && self.verified_at == Some((record.epoch, older)) {
            return Ok(look);
        }
        let stored = match self.request.filter.from {
            Some(_) => self.count_since((view, record, top)).await?,
            None => record.coverage.is_complete(top).then_some(record.count),
        };
        if stored.is_none_or(|stored| stored == known) {
            self.verified_at = stored.map(|_| (record.epoch, older));
            return Ok(look);
        }
        // In a shared store the rows are read after the record, and others may write in between.
        let again = self.inner.view()?.wallet(&self.request.wallet).await?;
        let state = |record: &WalletRecord| (record.count, record.epoch);
        if again.as_deref().map(state) != Some(state(record)) {
            return Ok(Look::Rows(Rows::default()));
        }
        Err(HistoryError::Changed)
    }

    /// Number of rows up to a height that are not older than the filter's `from`; `None` if some
    /// may not be stored, or there are too many to count.
    async fn count_since(&self, (view, record, head): Scope<'_>) -> Result<Option<u64>> {
        let Some(floor) = record.coverage.run_low(head) else { return Ok(None) };
        let limit = self.inner.limits.rows_per_step_max;
        let mut at = self.first_below((view, record, head), Position::Start).await?;
        let mut count = 0_u64;
        while count <= RECOUNT_MAX {
            let mut rows = view.rows(record.id, at, floor, limit).await?;
            let is_last = rows.len() < limit;
            let is_cut = self.cut_at_from(&mut rows);
            count = count.saturating_add(u64::try_from(rows.len()).unwrap_or(u64::MAX));
            let Some(last) = rows.last_key().filter(|_| !is_cut && !is_last) else {
                let is_whole =
                    floor == 0 || self.is_from_reached((view, record, head), floor).await?;
                return Ok(is_whole.then_some(count));
            };
            at = Position::After(last);
            tokio::task::yield_now().await;
        }
        Ok(None)
    }

    /// As [`Walk::deliver_below`], upwards: a row's range joins that of the row below, if that was
    /// delivered too.
    pub(super) async fn deliver_live(&mut self, mut rows: Rows) -> Result<Rows> {
        let (keep, passable, error) = self.count_live(&rows).await;
        let run = rows.bare().get(..passable).unwrap_or_default();
        if let Some(last) = run.last() {
            self.pass_to(last.key, (self.count_not_older(run), 0));
        }
        if let Some(error) = error.filter(|_| keep.is_empty()) {
            return Err(error);
        }
        self.demand.update(|demand| demand.edge = None);
        rows.keep(&keep);
        Ok(rows)
    }

    /// Counts rows without moving the walk: the ranges to deliver, how many rows it may pass, and
    /// the error that stopped it.
    async fn count_live(&self, rows: &Rows) -> (Vec<Range<usize>>, usize, Option<HistoryError>) {
        let until = Instant::now() + COUNTING_MAX;
        let (mut keep, mut position, mut passable) = (Vec::new(), self.position, 0);
        let is_all = self.request.filter.is_none();
        for (at, row) in rows.iter().enumerate() {
            let key = row.bare.key;
            if self.request.filter.matches(row) {
                let below = match position {
                    Position::After(below) if is_all => Some(below),
                    Position::Start | Position::After(_) => None,
                };
                match self.count((Position::Start, below), &[key]).await {
                    Ok(0) => return (keep, passable, Some(HistoryError::QuotaExceeded)),
                    Ok(_) => keep.push(at..at + 1),
                    Err(error) => return (keep, passable, Some(error)),
                }
            }
            (position, passable) = (Position::After(key), at + 1);
            if !keep.is_empty() && Instant::now() >= until {
                break;
            }
        }
        (keep, passable, None)
    }
}
