//! After the history: what is new, oldest first, as its heights become final and whole.

use std::ops::Range;

use tokio::time::Instant;

use super::delivery::COUNTING_MAX;
use super::{Look, Walk};
use crate::domain::{Position, Rows, TradeKey};
use crate::history::error::HistoryError;
use crate::history::plan::Demand;

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
        if self.passed.is_some() && !view.rows(record.id, from, 0, 1).await?.is_empty() {
            return Ok(None);
        }
        let mut at = self.beginning(&view, &record, head).await?;
        let newest = loop {
            let newest = view.rows(record.id, at, 0, 1).await?.last_key();
            match newest.filter(|key| key.height > head) {
                // Another process has stored it since the record was read: it is a new one.
                Some(above) => at = Position::After(above),
                None => break newest,
            }
        };
        self.position = newest.map_or(Position::Start, Position::After);
        self.live = true;
        self.passed = None;
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
            return Ok(Look::Edge(None));
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
            return Ok(Look::Edge(None));
        }
        Ok(Look::Rows(rows))
    }

    /// As [`Walk::deliver_below`], upwards: a row joins the one below it where that was delivered too.
    pub(super) async fn deliver_live(&mut self, mut rows: Rows) -> Result<Rows, HistoryError> {
        let (keep, position, error) = self.count_live(&rows).await;
        self.position = position;
        if let Some(error) = error.filter(|_| keep.is_empty()) {
            return Err(error);
        }
        self.demand.update(|demand| demand.edge = None);
        rows.keep(&keep);
        Ok(rows)
    }

    /// Counts rows and leaves the walk where it is: those to be delivered, the place behind them, and
    /// the error that ended it.
    async fn count_live(&self, rows: &Rows) -> (Vec<Range<usize>>, Position, Option<HistoryError>) {
        let until = Instant::now() + COUNTING_MAX;
        let (mut keep, mut position) = (Vec::new(), self.position);
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
                    Ok(0) => return (keep, position, Some(HistoryError::QuotaExceeded)),
                    Ok(_) => keep.push(at..at + 1),
                    Err(error) => return (keep, position, Some(error)),
                }
            }
            position = Position::After(key);
            if !keep.is_empty() && Instant::now() >= until {
                break;
            }
        }
        (keep, position, None)
    }
}
