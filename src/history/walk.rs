//! A reader's walk through one wallet's history: newest first, never across a gap.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::Inner;
use super::board::{DemandGuard, Progress};
use super::error::HistoryError;
use super::plan::Demand;
use super::usage::Delivery;
use crate::domain::{
    Cursor, FilterTag, Height, KeyId, Position, Row, TradeKey, UnixMillis, UnixSeconds, Wallet,
};
use crate::store::{View, WalletRecord};

/// How much of the history a walk asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// All of it. What the window leaves is loaded on in the background.
    All,
    /// At most this many rows; nothing is loaded beyond them.
    Rows(u64),
}

#[derive(Debug, Clone)]
pub struct WalkRequest {
    pub wallet: Wallet,
    /// Under which key the rows are counted.
    pub key: KeyId,
    /// Trades that the key may be counted in all.
    pub quota: Option<u64>,
    pub resume: Option<Cursor>,
    pub want: Want,
    /// The walk ends after this time, whatever is left.
    pub window: Duration,
}

/// What comes next on a walk.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// At least one row, in order; [`Walk::cursor`] is now the point behind the last one.
    Rows(Vec<Row>),
    End(End),
}

/// How a walk ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The whole history down from the walk's head is stored.
    pub complete: bool,
    /// Rows remain below the cursor.
    pub more: bool,
    /// Complete: the wallet's trades up to the walk's head. Else: trades stored so far.
    pub trade_count: u64,
    /// The oldest trade, where the history is complete.
    pub first_trade: Option<UnixSeconds>,
    pub error: Option<HistoryError>,
}

/// Up to which height the answer is current, and when that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsOf {
    pub height: Height,
    pub at: UnixMillis,
}

/// One client's walk. Dropping it is hanging up: what it alone asked for stops loading.
#[derive(Debug)]
pub struct Walk {
    inner: Arc<Inner>,
    request: WalkRequest,
    demand: DemandGuard,
    progress: watch::Receiver<Progress>,
    failures_seen: u64,
    opened_at: UnixMillis,
    head_deadline: Instant,
    deadline: Instant,
    head: Option<Height>,
    /// The head was settled by this walk or by the one that the cursor came from.
    settled: bool,
    position: Position,
    left: u64,
}

/// What the store says at one moment.
enum Look {
    Rows(Vec<Row>),
    /// All is delivered down to the first height.
    Bottom,
    /// Wait: the height whose lower neighbours are missing, where one is known.
    Edge(Option<Height>),
}

impl Walk {
    pub(super) fn new(inner: Arc<Inner>, request: WalkRequest, demand: DemandGuard) -> Self {
        let mut progress = demand.board().subscribe();
        let failures_seen = progress.borrow_and_update().failures;
        let now = Instant::now();
        let position = request.resume.map_or(Position::Start, |cursor| cursor.position);
        // A cursor from before the first row has delivered nothing: it begins anew.
        let head = match position {
            Position::Start => None,
            Position::After(_) => request.resume.and_then(|cursor| cursor.head),
        };
        let left = match request.want {
            Want::All => u64::MAX,
            Want::Rows(rows) => rows,
        };
        inner.metrics.walks.add(1);
        Self {
            opened_at: inner.clock.now(),
            head_deadline: now + inner.limits.head_wait_max,
            deadline: now + request.window,
            settled: head.is_some(),
            inner,
            request,
            demand,
            progress,
            failures_seen,
            head,
            position,
            left,
        }
    }

    /// Where the walk stands; a later walk goes on from exactly there.
    pub fn cursor(&self) -> Cursor {
        Cursor { head: self.head, filter: FilterTag::default(), position: self.position }
    }

    /// Known as soon as anything of the wallet is stored.
    pub fn as_of(&self) -> Option<AsOf> {
        let record = self.inner.store.view().ok()?.wallet(&self.request.wallet).ok()??;
        let height = self.head.or_else(|| record.coverage.top())?;
        Some(AsOf { height, at: record.checked_at? })
    }

    /// How many trades there are in all, once that is known.
    pub fn known_total(&self) -> Option<u64> {
        self.head?;
        self.summary(None).ok().filter(|end| end.complete).map(|end| end.trade_count)
    }

    /// The next rows, or the end. Cancel safe: a caller may drop the future and call again.
    pub async fn next(&mut self) -> Step {
        loop {
            if self.inner.tasks.is_cancelled() {
                return self.end(Some(HistoryError::ShuttingDown));
            }
            match self.look() {
                Err(error) => return self.end(Some(error)),
                Ok(Look::Rows(rows)) => return self.deliver(rows),
                Ok(Look::Bottom) => return self.end(None),
                Ok(Look::Edge(edge)) => {
                    self.ask(edge);
                    if let Some(step) = self.wait().await {
                        return step;
                    }
                }
            }
        }
    }

    /// Reads on from the position, in one read transaction.
    fn look(&mut self) -> Result<Look, HistoryError> {
        let view = self.inner.view()?;
        let Some(record) = view.wallet(&self.request.wallet)? else {
            return Ok(Look::Edge(None));
        };
        if !self.settle(&record) {
            return Ok(Look::Edge(None));
        }
        if self.left == 0 {
            return Ok(Look::Bottom);
        }
        let Some(head) = self.head else { return Ok(Look::Edge(None)) };
        let from = match self.position {
            Position::Start => head,
            Position::After(key) => key.height.min(head),
        };
        let Some(floor) = record.coverage.run_low(from) else { return Ok(Look::Edge(Some(from))) };
        let limit = usize::try_from(self.left).unwrap_or(usize::MAX);
        let limit = limit.min(self.inner.limits.rows_per_step_max);
        let rows = view.rows(record.id, self.from(&view, &record, head)?, floor, limit)?;
        Ok(match floor {
            _ if !rows.is_empty() => Look::Rows(rows),
            0 if record.coverage.is_complete(head) => Look::Bottom,
            // Below all is known, but above, between the head and here, something was cut away.
            0 => Look::Edge(Some(head)),
            _ => Look::Edge(Some(floor)),
        })
    }

    /// Where the next rows begin: what was stored above the head since it was settled stands behind
    /// a gap maybe, and is for later walks.
    fn from(
        &self,
        view: &View,
        record: &WalletRecord,
        head: Height,
    ) -> Result<Position, HistoryError> {
        let mut position = self.position;
        if position != Position::Start || record.coverage.top().is_none_or(|top| top <= head) {
            return Ok(position);
        }
        loop {
            let rows = view.rows(record.id, position, 0, self.inner.limits.rows_per_step_max)?;
            let above = rows.iter().take_while(|row| row.trade.key.height > head).count();
            if let Some(last) = above.checked_sub(1).and_then(|at| rows.get(at)) {
                position = Position::After(last.trade.key);
            }
            if above < rows.len() || rows.is_empty() {
                return Ok(position);
            }
        }
    }

    /// Fixes the head that the walk starts from: the newest one, as soon as the last check is
    /// young enough, else after a bounded wait the one of the last check. False: not yet.
    fn settle(&mut self, record: &WalletRecord) -> bool {
        let Some(top) = record.coverage.top() else { return false };
        let oldest = self.opened_at.0.saturating_sub(millis(self.inner.limits.freshness));
        let is_fresh = record.checked_at.is_some_and(|at| at.0 >= oldest);
        if self.settled {
            // A head above all that the chain has now (the store or the chain is another one).
            let above = self.head.is_none_or(|head| head > top);
            if above && is_fresh {
                self.head = Some(top);
            }
            return !above || is_fresh;
        }
        let failed = self.progress.borrow().failures > self.failures_seen;
        self.settled = is_fresh || failed || Instant::now() >= self.head_deadline;
        if self.settled {
            self.head = Some(top);
            let all = (self.request.want == Want::All).then_some(top);
            self.demand.update(|demand| *demand = Demand { all_below: all, ..Demand::default() });
        }
        self.settled
    }

    fn deliver(&mut self, mut rows: Vec<Row>) -> Step {
        let keys: Vec<TradeKey> = rows.iter().map(|row| row.trade.key).collect();
        match self.count(&keys) {
            Err(error) => return self.end(Some(error)),
            Ok(0) => return self.end(Some(HistoryError::QuotaExceeded)),
            Ok(allowed) => rows.truncate(allowed),
        }
        if let Some(row) = rows.last() {
            self.position = Position::After(row.trade.key);
        }
        self.left = self.left.saturating_sub(u64::try_from(rows.len()).unwrap_or(u64::MAX));
        self.demand.update(|demand| demand.edge = None);
        self.inner.metrics.rows_delivered.add(rows.len());
        Step::Rows(rows)
    }

    fn count(&self, keys: &[TradeKey]) -> Result<usize, HistoryError> {
        let record = self.record(&self.inner.view()?)?.ok_or(HistoryError::Internal)?;
        let WalkRequest { key, quota, .. } = self.request;
        let delivery = Delivery { key, quota, wallet: record.id, after: self.position, keys };
        Ok(self.inner.usage.deliver(delivery)?)
    }

    fn ask(&self, edge: Option<Height>) {
        self.demand.update(|demand| {
            demand.edge = edge;
            demand.fresh = !self.settled || edge.is_none();
        });
    }

    /// Waits for news; a step where the walk ends instead.
    async fn wait(&mut self) -> Option<Step> {
        let settling = !self.settled && Instant::now() < self.head_deadline;
        let until = if settling { self.deadline.min(self.head_deadline) } else { self.deadline };
        let mut progress = self.progress.clone();
        let stopped = tokio::select! {
            biased;
            () = self.inner.tasks.cancelled() => Some(HistoryError::ShuttingDown),
            _ = timeout_at(until, progress.changed()) => None,
        };
        self.progress = progress;
        if let Some(error) = stopped {
            return Some(self.end(Some(error)));
        }
        let failure = {
            let news = self.progress.borrow_and_update();
            (news.failures > self.failures_seen).then(|| news.failure.clone()).flatten()
        };
        if let Some(error) = failure {
            return self.fail(error);
        }
        (Instant::now() >= self.deadline).then(|| self.end(None))
    }

    /// After a failed load: the walk first goes on with what is stored, then ends.
    fn fail(&mut self, error: HistoryError) -> Option<Step> {
        match self.look() {
            Ok(Look::Rows(_) | Look::Bottom) => {
                self.failures_seen = self.progress.borrow().failures;
                None
            }
            Ok(Look::Edge(_)) | Err(_) => Some(self.end(Some(error))),
        }
    }

    fn end(&mut self, error: Option<HistoryError>) -> Step {
        let end = self.summary(error).unwrap_or_else(|error| End {
            complete: false,
            more: true,
            trade_count: 0,
            first_trade: None,
            error: Some(error),
        });
        if self.request.want == Want::All && !end.complete {
            self.inner.go_on_in_background(&self.request, end.error.as_ref());
        }
        Step::End(end)
    }

    fn summary(&self, error: Option<HistoryError>) -> Result<End, HistoryError> {
        let view = self.inner.view()?;
        let none = End { complete: false, more: true, trade_count: 0, first_trade: None, error };
        let Some(record) = self.record(&view)? else { return Ok(none) };
        let Some(head) = self.head.filter(|head| record.coverage.is_complete(*head)) else {
            return Ok(End { trade_count: record.count, ..none });
        };
        let above = view.count_above(record.id, head, u64::MAX)?;
        let below = view.rows(record.id, self.from(&view, &record, head)?, 0, 1)?;
        Ok(End {
            // With an error that cuts the walk short the client has to come back for the rest.
            complete: none.error.is_none() || below.is_empty(),
            more: !below.is_empty(),
            trade_count: record.count.saturating_sub(above),
            first_trade: view.first_time(record.id)?,
            error: none.error.filter(|_| !below.is_empty()),
        })
    }

    fn record(&self, view: &View) -> Result<Option<WalletRecord>, HistoryError> {
        Ok(view.wallet(&self.request.wallet)?)
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.inner.metrics.walks.subtract_one();
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
