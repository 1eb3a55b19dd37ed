//! Going behind rows: those that were delivered, and those that the filter rejects.

use tokio::time::Instant;

use super::{Ending, Walk};
use crate::domain::{BareRow, Filter, Height, Position, TradeKey};
use crate::history::Result;
use crate::store::{View, WalletId, WalletRecord};

impl Walk {
    /// Goes behind rows that the filter certainly rejects; true where more of them may follow.
    pub(super) async fn passes_over(
        &mut self,
        view: &View,
        record: &WalletRecord,
        (head, floor): (Height, Height),
    ) -> Result<bool> {
        if self.request.filter.is_none() {
            return Ok(false);
        }
        let place = self.from(view, record, head).await?;
        let rejected = self.rejected(view, record.id, (place, floor))?;
        let Some((last, passed)) = rejected else { return Ok(false) };
        self.pass_to(last, (passed, 0));
        self.demand.update(|demand| demand.edge = None);
        Ok(passed >= self.inner.limits.rows_per_step_max)
    }

    /// The last of the rows behind a place that the filter certainly rejects, and their number, as
    /// far as one step goes. None where the next row may match.
    pub(super) fn rejected(
        &self,
        view: &View,
        id: WalletId,
        part: (Position, Height),
    ) -> Result<Option<(TradeKey, usize)>> {
        let Filter { token, side, venue, .. } = &self.request.filter;
        if token.is_none() && side.is_none() && venue.is_none() {
            return Ok(None);
        }
        let limit = self.inner.limits.rows_per_step_max;
        Ok(view.pass_over(id, part, &self.request.filter, limit)?)
    }

    /// Goes behind a run of rows, of which so many were delivered: all or none.
    pub(super) fn pass(&mut self, run: &[BareRow], delivered: usize) {
        let Some(last) = run.last().map(|row| row.key) else { return };
        self.pass_to(last, (run.len(), delivered));
    }

    /// Goes behind a row, with so many since the last place, and so many of them delivered.
    pub(super) fn pass_to(&mut self, last: TradeKey, (rows, delivered): (usize, usize)) {
        let rows = u64::try_from(rows).unwrap_or(u64::MAX);
        let delivered = u64::try_from(delivered).unwrap_or(u64::MAX);
        self.position = Position::After(last);
        self.passed = self.passed.map(|passed| passed.saturating_add(rows));
        self.left = self.left.saturating_sub(delivered);
        if let Some(tally) = &mut self.tally {
            tally.pass(last, (rows, delivered));
        }
    }

    /// The filter let no row through: others come first, and so does the end.
    pub(super) async fn give_way(&mut self) {
        if Instant::now() >= self.deadline {
            self.ending = Some(Ending(None));
        }
        tokio::task::yield_now().await;
    }
}
