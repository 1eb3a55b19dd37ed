//! After the history: what is new, oldest first, as its heights become final and whole. A row that
//! comes late, below the position, ends the walk with an error, as no cursor says where it belongs.

use std::ops::Range;

use tokio::time::Instant;

use super::delivery::COUNTING_MAX;
use super::ending::count_below;
use super::{Look, Walk};
use crate::domain::{Position, Rows, TradeKey};
use crate::history::error::HistoryError;
use crate::history::plan::Demand;
use crate::store::WalletRecord;

impl Walk {
    /// The history down from the head is delivered; from now on the position is the newest row. The
    /// reader recognizes it by the empty step. `None` where more has come behind the position.
    pub(super) async fn go_live(&mut self) -> Result<Option<Rows>, HistoryError> {
        if self.is_changed().await? {
            return Err(HistoryError::Changed);
        }
        let view = self.inner.view()?;
        let (record, head) =
            self.record(&view).await?.zip(self.head).ok_or(HistoryError::Internal)?;
        let from = self.from(&view, &record, head).await?;
        let next = view.rows(record.id, from, 0, 1).await?.last_key();
        let follows = next.is_some_and(|key| !self.request.filter.ends_at(&key));
        if self.passed.is_some() && follows {
            return Ok(None);
        }
        // What is too new for the filter is behind the walk as well.
        let mut at =
            Self::first_below(&self.inner, &view, &record, (head, Position::Start)).await?;
        let newest = loop {
            let newest = view.rows(record.id, at, 0, 1).await?.last_key();
            match newest.filter(|key| key.height > head) {
                // Another process has stored it since the record was read: it is a new one.
                Some(above) => at = Position::After(above),
                None => break newest,
            }
        };
        // A filter's `from` ends a walk above heights that nothing is known of.
        let is_counted = record.coverage.is_complete(head);
        let count = count_below(&view, &record, head).await?;
        self.passed = is_counted.then_some(count);
        self.position = newest.map_or(Position::Start, Position::After);
        self.live = true;
        self.tally = None;
        self.demand.update(|demand| *demand = Demand { follows: true, ..Demand::default() });
        Ok(Some(Rows::default()))
    }

    /// Rows above the head, once no gap is left between it and the newest height known.
    pub(super) async fn look_live(&mut self) -> Result<Look, HistoryError> {
        let view = self.inner.view()?;
        let record = view.wallet(&self.request.wallet).await?;
        let Some(record) = record.filter(|record| self.settle(record)) else {
            return Ok(Look::Above);
        };
        let Some((head, top)) = self.head.zip(record.coverage.top()) else {
            return Ok(Look::Edge(None));
        };
        if top <= head {
            return self.unless_late(&record, 0, Look::Edge(None));
        }
        if record.coverage.run_low(top).is_none_or(|low| low > head + 1) {
            return Ok(Look::Edge(Some(top)));
        }
        let limit = self.inner.limits.rows_per_step_max;
        let mut rows = view.newer_rows(record.id, self.position, limit).await?;
        // Another process may have stored rows above a gap since the record was read.
        let unknown = rows.bare().iter().position(|row| row.key.height > top);
        rows.truncate(unknown.unwrap_or(rows.len()));
        if rows.is_empty() {
            self.head = Some(top);
            return self.unless_late(&record, 0, Look::Edge(None));
        }
        let count = rows.len();
        if count == limit && unknown.is_none() {
            // How many rows follow is not known.
            return Ok(Look::Rows(rows));
        }
        self.unless_late(&record, count, Look::Rows(rows))
    }

    /// What was looked for, where the wallet has no other rows than those that the walk has gone
    /// behind and so many newer ones: one of others was read late, or was taken back. Rows that were
    /// deleted to make room are read again before they are missed.
    fn unless_late(
        &self,
        record: &WalletRecord,
        newer: usize,
        look: Look,
    ) -> Result<Look, HistoryError> {
        let is_whole = record.coverage.top().is_some_and(|top| record.coverage.is_complete(top));
        let newer = u64::try_from(newer).unwrap_or(u64::MAX);
        let known = self.passed.filter(|_| is_whole).map(|passed| passed.saturating_add(newer));
        if known.is_none_or(|known| known == record.count) {
            return Ok(look);
        }
        Err(HistoryError::Changed)
    }

    /// As [`Walk::deliver_below`], upwards: a row joins the one below it where that was delivered too.
    pub(super) async fn deliver_live(&mut self, mut rows: Rows) -> Result<Rows, HistoryError> {
        let (keep, gone, error) = self.count_live(&rows).await;
        self.pass(rows.bare().get(..gone).unwrap_or_default(), 0);
        if let Some(error) = error.filter(|_| keep.is_empty()) {
            return Err(error);
        }
        self.demand.update(|demand| demand.edge = None);
        rows.keep(&keep);
        Ok(rows)
    }

    /// Counts rows and leaves the walk where it is: those to be delivered, how many it may go behind,
    /// and the error that ended it.
    async fn count_live(&self, rows: &Rows) -> (Vec<Range<usize>>, usize, Option<HistoryError>) {
        let until = Instant::now() + COUNTING_MAX;
        let (mut keep, mut position, mut gone) = (Vec::new(), self.position, 0);
        let is_all = self.request.filter.is_none();
        for (at, row) in rows.iter().enumerate() {
            let key = row.bare.key;
            if self.request.filter.matches(row) {
                let below = match position {
                    Position::After(below) if is_all => Some(below),
                    Position::Start | Position::After(_) => None,
                };
                let keys: Vec<TradeKey> = [key].into_iter().chain(below).collect();
                match self.count(Position::Start, &keys).await {
                    Ok(0) => return (keep, gone, Some(HistoryError::QuotaExceeded)),
                    Ok(_) => keep.push(at..at + 1),
                    Err(error) => return (keep, gone, Some(error)),
                }
            }
            (position, gone) = (Position::After(key), at + 1);
            if !keep.is_empty() && Instant::now() >= until {
                break;
            }
        }
        (keep, gone, None)
    }
}
