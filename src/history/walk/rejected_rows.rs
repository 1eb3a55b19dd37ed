//! Passing rows: delivered ones, and those that the filter rejects.

use tokio::time::Instant;

use super::{Ending, Scope, Walk};
use crate::domain::{BareRow, Filter, Height, Position, TradeKey};
use crate::history::Result;
use crate::store::{View, WalletId};

impl Walk {
    /// Passes rows that the filter certainly rejects; true if more of them may follow.
    pub(super) async fn skip_rejected(&mut self, scope: Scope<'_>, floor: Height) -> Result<bool> {
        if self.request.filter.is_none() {
            return Ok(false);
        }
        let ((view, record, _), place) = (scope, self.from(scope).await?);
        let rejected = self.rejected(view, record.id, (place, floor))?;
        let Some((last, passed)) = rejected else { return Ok(false) };
        self.pass_to(last, (passed, 0));
        self.demand.update(|demand| demand.edge = None);
        Ok(passed >= self.inner.limits.rows_per_step_max)
    }

    /// The last of the next rows that the filter certainly rejects, and their number, at most one
    /// step's. `None` if the next row may match.
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

    /// Passes a run of rows of which `delivered` were delivered: all or none.
    pub(super) fn pass(&mut self, run: &[BareRow], delivered: usize) {
        let Some(last) = run.last().map(|row| row.key) else { return };
        self.pass_to(last, (run.len(), delivered));
    }

    /// Passes rows up to `last`: their number, and how many of them were delivered.
    pub(super) fn pass_to(&mut self, last: TradeKey, (rows, delivered): (usize, usize)) {
        let rows = u64::try_from(rows).unwrap_or(u64::MAX);
        let delivered = u64::try_from(delivered).unwrap_or(u64::MAX);
        self.position = Position::After(last);
        self.passed = self.passed.map(|passed| passed.saturating_add(rows));
        self.left = self.left.saturating_sub(delivered);
        if let Some(match_count) = &mut self.match_count {
            match_count.pass(last, (rows, delivered));
        }
    }

    /// Yields after a look whose rows were all rejected, and ends the walk at its deadline.
    pub(super) async fn yield_after_rejected(&mut self) {
        if Instant::now() >= self.deadline {
            self.ending = Some(Ending(None));
        }
        tokio::task::yield_now().await;
    }
}
