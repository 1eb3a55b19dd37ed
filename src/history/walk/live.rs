//! After the history: what is new, oldest first, as its heights become final and whole.

use super::{Look, Walk};
use crate::domain::{Position, Rows, TradeKey};
use crate::history::error::HistoryError;
use crate::history::plan::Demand;

impl Walk {
    /// The history down from the head is delivered; from now on the position is the newest row. The
    /// reader recognizes it by the empty step.
    pub(super) async fn go_live(&mut self) -> Result<Rows, HistoryError> {
        let view = self.inner.view()?;
        let (record, head) =
            self.record(&view).await?.zip(self.head).ok_or(HistoryError::Internal)?;
        let beginning = self.beginning(&view, &record, head).await?;
        let newest = view.rows(record.id, beginning, 0, 1).await?;
        self.position = newest.last_key().map_or(Position::Start, Position::After);
        self.live = true;
        self.passed = None;
        self.tally = None;
        self.demand.update(|demand| *demand = Demand { follows: true, ..Demand::default() });
        Ok(Rows::default())
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
        let rows = view.newer_rows(record.id, self.position, limit).await?;
        if rows.is_empty() {
            self.head = Some(top);
            return Ok(Look::Edge(None));
        }
        Ok(Look::Rows(rows))
    }

    /// As [`Walk::deliver_below`], upwards: a row joins the one below it where that was delivered too.
    pub(super) async fn deliver_live(&mut self, mut rows: Rows) -> Result<Rows, HistoryError> {
        let mut keep = Vec::new();
        let is_all = self.request.filter.is_none();
        for (at, row) in rows.iter().enumerate() {
            let key = row.bare.key;
            if self.request.filter.matches(row) {
                let below = match self.position {
                    Position::After(below) if is_all => Some(below),
                    Position::Start | Position::After(_) => None,
                };
                let keys: Vec<TradeKey> = [key].into_iter().chain(below).collect();
                if self.count(Position::Start, &keys).await? == 0 {
                    if keep.is_empty() {
                        return Err(HistoryError::QuotaExceeded);
                    }
                    break;
                }
                keep.push(at..at + 1);
            }
            self.position = Position::After(key);
        }
        self.demand.update(|demand| demand.edge = None);
        rows.keep(&keep);
        Ok(rows)
    }
}
