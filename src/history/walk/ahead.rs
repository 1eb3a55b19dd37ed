//! Prefetch for shared stores, where a read is a round trip: the next rows are read while the last
//! ones are delivered.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::Walk;
use crate::domain::{Position, Rows};
use crate::store::{StoreError, View, WalletRecord};

/// A view with the rows behind a position, and the wallet's record; `None` without a record.
type RecordView = Option<(View, Arc<WalletRecord>)>;

/// A prefetch in flight.
#[derive(Debug)]
pub(super) struct ReadAhead {
    after: Position,
    limit: usize,
    began: Instant,
    read: oneshot::Receiver<Result<RecordView, StoreError>>,
    _task: AbortOnDropHandle<()>,
}

impl Walk {
    /// The rows behind the position: prefetched ones if they fit and are recent, else a new view.
    pub(super) async fn view_behind_position(
        &mut self,
        limit: usize,
    ) -> Result<RecordView, StoreError> {
        let age_max = self.inner.limits.ahead_age_max;
        let is_due = |ahead: &ReadAhead| {
            (ahead.after, ahead.limit) == (self.position, limit) && ahead.began.elapsed() <= age_max
        };
        if let Some(ahead) = self.ahead.take().filter(|ahead| is_due(ahead))
            && let Ok(record_view) = ahead.read.await
        {
            return record_view;
        }
        let after = match self.position {
            Position::Start => self.first_possible_position(),
            Position::After(_) => self.position,
        };
        let view = self.inner.store.view_at(after, limit)?;
        let record = view.wallet(&self.request.wallet).await?;
        Ok(record.map(|record| (view, record)))
    }

    /// Starts to prefetch the rows behind a full slice.
    pub(super) fn read_ahead(&mut self, rows: &Rows, limit: usize) {
        let Some(last) = rows.last_key().filter(|_| rows.len() == limit) else { return };
        let left = if self.request.filter.is_none() {
            self.left.saturating_sub(u64::try_from(limit).unwrap_or(u64::MAX))
        } else {
            u64::MAX
        };
        let limit = usize::try_from(left).unwrap_or(usize::MAX).min(limit);
        if limit == 0 || !self.inner.store.is_shared() {
            return;
        }
        let (store, wallet, after) =
            (self.inner.store.clone(), self.request.wallet, Position::After(last));
        let (reply, read) = oneshot::channel();
        let task = self.inner.tasks.spawn_owned(async move {
            let record_view = async {
                let view = store.view_at(after, limit)?;
                let record = view.wallet(&wallet).await?;
                Ok(record.map(|record| (view, record)))
            };
            // The walk may have ended.
            drop(reply.send(record_view.await));
        });
        let began = Instant::now();
        self.ahead = Some(Box::new(ReadAhead { after, limit, began, read, _task: task }));
    }
}
