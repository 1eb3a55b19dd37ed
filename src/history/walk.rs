//! A reader's walk through one wallet's history: newest first, never across a gap; with `follow`,
//! then new rows, oldest first.

mod ahead;
mod delivery;
mod ending;
mod live;
mod match_count;
mod rejected_rows;
mod row_buffers;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::error::HistoryError;
use super::plan::Demand;
use super::wallet_load::{DemandGuard, Progress};
use super::{Inner, Result};
use crate::domain::{
    Cursor, Filter, FilterTag, Height, KeyId, Position, Rows, UnixMillis, UnixSeconds, Wallet,
};
use crate::store::{StoreError, View, WalletId, WalletRecord};
use ahead::ReadAhead;
use match_count::MatchCount;

pub(super) use match_count::MatchCounts;
pub(super) use row_buffers::RowBuffers;

/// How many rows a walk requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The whole history. After the walk's window, loading continues in the background.
    All,
    /// At most this many rows; nothing below them is loaded.
    Rows(u64),
}

#[derive(Debug, Clone)]
pub struct WalkRequest {
    pub wallet: Wallet,
    /// The key under which rows are counted.
    pub key: KeyId,
    /// The most trades that the key may be counted in all.
    pub quota: Option<u64>,
    /// A cursor of a walk with the same filter.
    pub resume: Option<Box<Cursor>>,
    pub filter: Filter,
    /// After the history, deliver new rows until the window ends. Requires `Extent::All`.
    pub follow: bool,
    pub want: Extent,
    /// The walk ends after this time, complete or not.
    pub window: Duration,
}

/// What comes next on a walk.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Rows in order; [`Walk::cursor`] is now behind the last one. Empty only once: when a
    /// following walk has delivered the history and becomes [`Walk::is_live`].
    Rows(Rows),
    End(End),
}

/// How a walk ended. With a filter, counts and times are those of the matching rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The whole history from the walk's head down is stored and proved.
    pub complete: bool,
    /// Rows remain below the cursor.
    pub more: bool,
    /// If complete: the wallet's trades up to the walk's head. Else: trades stored so far.
    pub trade_count: u64,
    /// Time of the oldest trade, if the history is complete.
    pub first_trade: Option<UnixSeconds>,
    pub error: Option<HistoryError>,
}

/// The height up to which the rows are current, and the time of that check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsOf {
    pub height: Height,
    pub at: UnixMillis,
}

/// One client's walk. Dropping it withdraws its demand, which stops loads that only it required.
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
    /// The head is fixed, by this walk or by the one that the cursor came from.
    head_is_fixed: bool,
    position: Position,
    /// Number of rows passed since the walk began, over all its requests, delivered or rejected. On
    /// a live walk: all rows up to the position that are not older than the filter's `from`,
    /// including those too new for the filter, which are not counted before. `None` if the cursor
    /// has no count.
    passed: Option<u64>,
    left: u64,
    /// When the walk stops waiting for outstanding proofs; set when it starts to wait.
    proof_deadline: Option<Instant>,
    /// The wallet's record at the last look: a look-up costs as much as reading some rows.
    seen_record: Option<SeenRecord>,
    tag: FilterTag,
    live: bool,
    /// On a live walk: the epoch at which all passed rows were found stored, and the number of
    /// other rows then. While both are unchanged, no row was added late.
    verified_at: Option<(u64, Option<u64>)>,
    /// All rows at or after the filter's `from` are known to be stored, even if heights below are
    /// not.
    from_reached: bool,
    /// Counts matching rows: during delivery on a walk from the beginning, else at the end. Boxed,
    /// because thousands of streams have none.
    match_count: Option<Box<MatchCount>>,
    /// The walk's end if all rows of the last look are delivered; only for pages. Boxed, because
    /// streams have none.
    page_end: Option<Box<End>>,
    /// The prefetched next rows. Boxed, because only shared stores need it.
    ahead: Option<Box<ReadAhead>>,
    /// Set once the walk is to end.
    ending: Option<Ending>,
}

/// The fields of a wallet's record that a walk needs between two looks.
#[derive(Debug, Clone, Copy)]
struct SeenRecord {
    id: WalletId,
    checked_at: Option<UnixMillis>,
}

/// A view of the store, the wallet's record in it, and a height up to which rows are meant.
type Scope<'a> = (&'a View, &'a WalletRecord, Height);

/// Why a walk ends before the end of its history; `None`: without a reason to report.
#[derive(Debug, Clone)]
struct Ending(Option<HistoryError>);

/// The result of one look at the store.
enum Look {
    Rows(Rows),
    /// Rows that the filter rejects were skipped, and more may follow.
    Passed,
    /// All rows down to the first height are delivered.
    Bottom,
    /// Wait for a load: the height whose lower neighbours are missing, if one is known.
    Edge(Option<Height>),
    /// Wait: the walk is live and its head is above all stored heights, because rows were deleted
    /// or the store was replaced.
    Above,
}

impl Walk {
    pub(super) fn new(inner: Arc<Inner>, request: WalkRequest, demand: DemandGuard) -> Self {
        let mut progress = demand.load.subscribe();
        let failures_seen = progress.borrow_and_update().failures;
        let now = Instant::now();
        let resume = request.resume.as_deref();
        let position = resume.map_or(Position::Start, |cursor| cursor.position);
        let live = request.follow && resume.is_some_and(|cursor| cursor.live);
        // A cursor in front of the first row has delivered nothing.
        let begins_anew = position == Position::Start && !live;
        let head = resume.filter(|_| !begins_anew).and_then(|cursor| cursor.head);
        let passed = if begins_anew { Some(0) } else { resume.and_then(|cursor| cursor.passed) };
        let counts = !request.filter.is_none() && begins_anew;
        let left = match request.want {
            Extent::All => u64::MAX,
            Extent::Rows(rows) => rows,
        };
        inner.metrics.walks.add(1);
        Self {
            opened_at: inner.clock.now(),
            // A walk with a window shorter than this wait must still serve the stored rows.
            head_deadline: now + inner.limits.head_wait_max.min(request.window / 2),
            deadline: now + request.window,
            head_is_fixed: head.is_some(),
            seen_record: None,
            tag: request.filter.tag(),
            match_count: counts.then(Box::default),
            live,
            verified_at: None,
            from_reached: false,
            page_end: None,
            ahead: None,
            ending: None,
            inner,
            request,
            demand,
            progress,
            failures_seen,
            head,
            position,
            passed,
            left,
            proof_deadline: None,
        }
    }

    /// The walk's position; a later walk resumes exactly there.
    pub fn cursor(&self) -> Cursor {
        let Self { head, tag, live, position, passed, .. } = *self;
        Cursor { head, filter: tag, live, position, passed }
    }

    /// Whether the history is delivered, so that rows are now new ones, oldest first.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// The head and the time of its check; `None` while nothing of the wallet is stored.
    pub async fn as_of(&self) -> Option<AsOf> {
        if let Some((height, seen_record)) = self.head.zip(self.seen_record) {
            return Some(AsOf { height, at: seen_record.checked_at? });
        }
        let view = self.inner.store.view().ok()?;
        let record = view.wallet(&self.request.wallet).await.ok()??;
        let height = self.head.or_else(|| record.coverage.top())?;
        Some(AsOf { height, at: record.checked_at? })
    }

    /// Number of trades in all, once it is known.
    pub async fn known_total(&self) -> Option<u64> {
        self.head?;
        self.summary(None).await.ok().filter(|end| end.complete).map(|end| end.trade_count)
    }

    /// The next rows, or the end. Cancel safe: a caller may drop the future and call again.
    pub async fn next(&mut self) -> Step {
        loop {
            if let Some(Ending(error)) = self.ending.clone() {
                if !self.request.filter.is_none() {
                    Box::pin(self.finish_match_count()).await;
                }
                return Box::pin(self.end(error)).await;
            }
            match self.turn().await {
                Ok(Some(rows)) => return Step::Rows(rows),
                Ok(None) => {}
                Err(error) => self.ending = Some(Ending(Some(error))),
            }
        }
    }

    /// Makes the next step the end, for this reason.
    pub fn stop(&mut self, reason: HistoryError) {
        self.ending.get_or_insert(Ending(Some(reason)));
    }

    pub fn set_quota(&mut self, quota: Option<u64>) {
        self.request.quota = quota;
    }

    /// Looks at the store once and acts on the result.
    async fn turn(&mut self) -> Result<Option<Rows>> {
        if self.inner.tasks.is_cancelled() {
            return Err(HistoryError::ShuttingDown);
        }
        if self.demand.load.is_closed() {
            return Err(HistoryError::Changed);
        }
        // Boxed, so that a waiting walk does not need memory for the states of these futures.
        let look = Box::pin(self.look()).await?;
        if !matches!(look, Look::Bottom) {
            // Heights are to be read again: the wait for their proof starts after that.
            self.proof_deadline = None;
        }
        match look {
            Look::Rows(rows) => {
                let rows = Box::pin(self.deliver(rows)).await?;
                if !rows.is_empty() {
                    self.inner.metrics.rows_delivered.add(rows.len());
                    return Ok(Some(rows));
                }
                // Returns the rows' buffer so that other walks can use it.
                self.inner.row_buffers.put(rows);
                self.yield_after_rejected().await;
                Ok(None)
            }
            Look::Passed => {
                self.yield_after_rejected().await;
                Ok(None)
            }
            Look::Bottom if Box::pin(self.awaits_proof()).await? => {
                self.ask(self.head);
                self.wait().await?;
                Ok(None)
            }
            Look::Bottom if self.request.follow => Box::pin(self.go_live()).await,
            Look::Bottom => {
                self.ending = Some(Ending(None));
                Ok(None)
            }
            Look::Edge(edge) => {
                self.ask(edge);
                self.wait().await?;
                Ok(None)
            }
            Look::Above => {
                self.demand.update(|demand| demand.fresh = true);
                self.wait().await?;
                Ok(None)
            }
        }
    }

    async fn look(&mut self) -> Result<Look> {
        if self.live { self.look_live().await } else { self.look_below().await }
    }

    /// Reads on from the position within one read transaction.
    async fn look_below(&mut self) -> Result<Look> {
        if self.left == 0 && self.seen_record.is_some() {
            return Ok(Look::Bottom);
        }
        let (limit, is_last) = self.slice();
        let Some((view, record)) = self.view_behind_position(limit).await? else {
            return Ok(Look::Edge(None));
        };
        if !self.fix_head(&record) {
            return Ok(Look::Edge(None));
        }
        self.seen_record = Some(SeenRecord { id: record.id, checked_at: record.checked_at });
        if self.left == 0 {
            return Ok(Look::Bottom);
        }
        let Some(head) = self.head else { return Ok(Look::Edge(None)) };
        let from = match self.position {
            Position::Start => head,
            Position::After(key) => key.height.min(head),
        };
        let Some(floor) = record.coverage.run_low(from) else { return Ok(Look::Edge(Some(from))) };
        if self.skip_rejected((&view, &record, head), floor).await? {
            return Ok(Look::Passed);
        }
        let part = (self.from((&view, &record, head)).await?, floor);
        let (mut rows, more) = match view.rows_into(record.id, part, limit, self.row_buffer()).await
        {
            // Another process has removed rows since the record was read: look again.
            Err(StoreError::Overtaken) => return Ok(Look::Rows(Rows::default())),
            read => read?,
        };
        if self.begins_above(&rows, head) {
            return Ok(Look::Rows(Rows::default()));
        }
        if !is_last {
            self.read_ahead(&rows, limit);
        }
        self.page_end = None;
        if is_last && rows.len() >= limit {
            self.page_end = self.page_end((&view, &record, head), more).await?.map(Box::new);
        }
        let is_cut = self.cut_at_from(&mut rows);
        if rows.is_empty() {
            self.inner.row_buffers.put(std::mem::take(&mut rows));
        }
        self.from_reached =
            rows.is_empty() && self.is_from_reached((&view, &record, from), floor).await?;
        if is_cut && self.from_reached {
            return Ok(Look::Bottom);
        }
        Ok(match floor {
            _ if !rows.is_empty() => Look::Rows(rows),
            0 if record.coverage.is_complete(head) => Look::Bottom,
            // All heights below are covered, but a rollback removed heights between the head and
            // the position.
            0 => Look::Edge(Some(head)),
            _ if self.from_reached => Look::Bottom,
            _ => Look::Edge(Some(floor)),
        })
    }

    /// How many rows the next look reads, and whether they are the walk's last.
    fn slice(&self) -> (usize, bool) {
        let most = self.inner.limits.rows_per_step_max;
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let is_last = self.request.filter.is_none() && left <= most;
        (if is_last { left } else { most }, is_last)
    }

    /// Whether an unready step may be dropped without cost; with a shared store its query would be
    /// repeated.
    pub fn is_prompt(&self) -> bool {
        !self.inner.store.is_shared()
    }

    /// A row buffer. Without a filter the rows are delivered together with their buffer, so a new
    /// one is used.
    fn row_buffer(&self) -> Rows {
        if self.request.filter.is_none() { Rows::default() } else { self.inner.row_buffers.take() }
    }

    /// Truncates `rows` before the first row older than the filter's `from`; true if there was one.
    fn cut_at_from(&self, rows: &mut Rows) -> bool {
        let filter = self.request.filter.from.map(|_| &self.request.filter);
        let end = filter.and_then(|f| rows.bare().iter().position(|row| f.ends_at(&row.key)));
        if let Some(end) = end {
            rows.truncate(end);
        }
        end.is_some()
    }

    /// Whether nothing below this range of covered heights can match the filter's `from`: a
    /// transaction in it, trade or not, is old enough.
    async fn is_from_reached(&self, (view, record, high): Scope<'_>, low: Height) -> Result<bool> {
        let WalkRequest { wallet, filter, .. } = &self.request;
        let Some(last) = filter.ends_behind(wallet.address.family()) else { return Ok(false) };
        let reached = self.progress.borrow().reached;
        let is_old = |(height, time): (Height, UnixSeconds)| {
            filter.ends_below(time) && (low..=high).contains(&height)
        };
        if reached.is_some_and(is_old) {
            return Ok(true);
        }
        match view.rows(record.id, Position::After(last), low, 1).await {
            Err(StoreError::Overtaken) => Ok(false),
            older => Ok(!older?.is_empty()),
        }
    }

    /// The position from which the next rows are read.
    async fn from(&self, scope: Scope<'_>) -> Result<Position> {
        match self.position {
            Position::Start => self.start_position(scope).await,
            Position::After(_) => Ok(self.position),
        }
    }

    /// Whether another process has stored rows above the head since the record was read: the next
    /// look reads the record again.
    fn begins_above(&self, rows: &Rows, head: Height) -> bool {
        let first = rows.bare().first().filter(|_| self.position == Position::Start);
        first.is_some_and(|row| row.key.height > head)
    }

    /// The walk's starting position if no row is above its head.
    fn first_possible_position(&self) -> Position {
        let WalkRequest { wallet, filter, .. } = &self.request;
        let begin = filter.begins_behind(wallet.address.family());
        begin.map_or(Position::Start, Position::After)
    }

    /// The walk's starting position. Rows stored above the head since it was fixed may lie above a
    /// gap, and belong to later walks.
    async fn start_position(&self, scope: Scope<'_>) -> Result<Position> {
        self.first_below(scope, self.first_possible_position()).await
    }

    /// The first position at or behind the given one whose next row is not above the head.
    async fn first_below(&self, scope: Scope<'_>, mut position: Position) -> Result<Position> {
        let (view, record, head) = scope;
        if record.coverage.top().is_none_or(|top| top <= head) {
            return Ok(position);
        }
        loop {
            let limit = self.inner.limits.rows_per_step_max;
            let rows = view.rows(record.id, position, 0, limit).await?;
            let above = rows.bare().iter().take_while(|row| row.key.height > head).count();
            if let Some(last) = above.checked_sub(1).and_then(|at| rows.bare().get(at)) {
                position = Position::After(last.key);
            }
            if above < rows.len() || rows.is_empty() {
                return Ok(position);
            }
        }
    }

    /// Fixes the walk's head: the newest height once the last check is fresh, else after a bounded
    /// wait the height of the last check. False while it waits.
    fn fix_head(&mut self, record: &WalletRecord) -> bool {
        let Some(top) = record.coverage.top() else { return false };
        let oldest = self.opened_at.0.saturating_sub(millis(self.inner.limits.freshness));
        // A check time in the future comes from a wrong clock and is ignored.
        let newest = self.inner.clock.now().0;
        let is_fresh = record.checked_at.is_some_and(|at| (oldest..=newest).contains(&at.0));
        if self.head_is_fixed {
            // The head is above the chain's present head: the store or the chain was replaced.
            let above = self.head.is_none_or(|head| head > top);
            if above && is_fresh {
                self.head = Some(top);
            }
            return !above || is_fresh;
        }
        let failed = self.progress.borrow().failures > self.failures_seen;
        self.head_is_fixed = is_fresh || failed || Instant::now() >= self.head_deadline;
        if self.head_is_fixed {
            self.head = Some(top);
            let all = (self.request.want == Extent::All).then_some(top);
            self.demand.update(|demand| *demand = Demand { all_below: all, ..Demand::default() });
        }
        self.head_is_fixed
    }

    async fn deliver(&mut self, rows: Rows) -> Result<Rows> {
        if self.live { self.deliver_live(rows).await } else { self.deliver_below(rows).await }
    }

    fn ask(&self, edge: Option<Height>) {
        let rows = match self.request.want {
            Extent::All => None,
            Extent::Rows(_) => Some(self.left),
        };
        self.demand.update(|demand| {
            demand.edge = edge;
            demand.rows = rows;
            demand.follows = self.live;
            demand.fresh = !self.live && (!self.head_is_fixed || edge.is_none());
        });
    }

    /// Waits until the worker reports progress, a deadline passes or the tasks are cancelled.
    async fn wait(&mut self) -> Result<()> {
        let settling = !self.head_is_fixed && Instant::now() < self.head_deadline;
        let until = if settling { self.deadline.min(self.head_deadline) } else { self.deadline };
        let until = self.proof_deadline.map_or(until, |proof| until.min(proof));
        let mut progress = self.progress.clone();
        let stopped = tokio::select! {
            biased;
            () = self.inner.tasks.cancelled() => true,
            _ = timeout_at(until, progress.changed()) => false,
        };
        self.progress = progress;
        if stopped {
            return Err(HistoryError::ShuttingDown);
        }
        let failure = {
            let news = self.progress.borrow_and_update();
            (news.failures > self.failures_seen).then(|| news.failure.clone()).flatten()
        };
        if let Some(error) = failure {
            Box::pin(self.fail(error)).await?;
        } else if Instant::now() >= self.deadline {
            self.ending = Some(Ending(None));
        }
        Ok(())
    }

    /// After a failed load: the walk first delivers stored rows, then ends. A live walk waits for
    /// the next attempt, if that may succeed.
    async fn fail(&mut self, error: HistoryError) -> Result<()> {
        let ends = if self.live {
            self.ends_live(&error).await?
        } else {
            !matches!(self.look_below().await?, Look::Rows(_) | Look::Passed | Look::Bottom)
        };
        if ends {
            return Err(error);
        }
        self.failures_seen = self.progress.borrow().failures;
        Ok(())
    }

    async fn record(&self, view: &View) -> Result<Option<Arc<WalletRecord>>> {
        Ok(view.wallet(&self.request.wallet).await?)
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.inner.metrics.walks.subtract_one();
    }
}

pub(in crate::history) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
