//! One wallet's worker: plan, fetch, decode, write. No other task writes this wallet.

mod background_permit;
mod failing;
mod reorgs;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit};
use tokio::time::{Instant, sleep};

use super::anchors;
use super::error::HistoryError;
use super::failure_run::FailureRun;
use super::following::Standing;
use super::ingest::{Ingest, IngestError};
use super::plan::{CheckAge, Demand, Next, PlanInput, plan, reachable_gap, run_ahead};
use super::proven::{doubted_list, knows_accounts, next_reread};
use super::read_task::{self, ReadTask, StoredChunk};
use super::tasks::after;
use super::wallet_load::WalletLoad;
use super::wallet_lock::{LockState, WalletLock};
use super::{Inner, Result, chunk_join};
use crate::decode;
use crate::domain::{Gap, Height, Span, UnixMillis, Way};
use crate::rpc::Lane;
use crate::sources::{GapRequest, RawChunk, RawTx, RunAhead, Source};
use crate::store::{Anchor, WalletPatch, WalletRecord, Written};

/// Read tasks that one worker keeps open for gaps that take turns.
const READ_TASKS_MAX: usize = 3;

pub(super) struct Worker {
    inner: Arc<Inner>,
    load: Arc<WalletLoad>,
    source: Source,
    lane: Lane,
    read_tasks: Vec<ReadTask>,
    turns: usize,
    /// The last step was a check for newer heights that succeeded or failed.
    has_checked: bool,
    /// The wallet has or had a record; if it is gone, the wallet was forgotten.
    was_stored: bool,
    pause: Duration,
    background: Option<(OwnedSemaphorePermit, Instant)>,
    /// Generation of the configured sources when `source` was taken.
    generation: u64,
    /// When this run last found that the endpoints have cut the history.
    cut_found: Option<Instant>,
    wallet_lock: WalletLock,
    /// What scans found of the wallet, if a reader follows it.
    standing: Option<Standing>,
    /// Held while anchors are read and written: two concurrent writers would lose an anchor.
    anchor_lock: Arc<Mutex<()>>,
    /// No endpoint offers blocks, so anchors were not compared with the chain.
    is_unchecked: bool,
    /// The lowest and the highest anchor whose blocks no endpoint keeps any more.
    dropped: Option<(Height, Height)>,
    /// The wallet's record when the worker was last idle.
    idle_record: Option<WalletRecord>,
    /// When the last read from the head began, and when the last successful one began.
    opened_at: Instant,
    read_at: Option<Instant>,
    failures: FailureRun,
}

/// How a chunk extends the wallet's coverage.
#[derive(Debug, Clone, Copy)]
enum ChunkKind {
    /// New heights up to the head, which was queried at this time.
    Checked(UnixMillis),
    /// Heights of a gap.
    Below,
    /// Heights that were covered already.
    Again,
}

enum Flow {
    Again,
    Exit,
}

impl Worker {
    /// `generation` must be read before `source` is taken, so that a later replacement is noticed.
    pub(super) fn new(
        inner: Arc<Inner>,
        load: Arc<WalletLoad>,
        (source, generation): (Source, u64),
        lane: u64,
    ) -> Self {
        let lane = Lane::new(lane, Arc::clone(&load.priority));
        let pause = inner.limits.retry_pause_min;
        let (read_tasks, turns, background, cut_found) = (Vec::new(), 0, None, None);
        let wallet_lock = WalletLock::new(&inner.store);
        Self {
            inner,
            load,
            source,
            lane,
            read_tasks,
            turns,
            has_checked: false,
            was_stored: false,
            pause,
            background,
            generation,
            cut_found,
            wallet_lock,
            standing: None,
            anchor_lock: Arc::default(),
            is_unchecked: false,
            dropped: None,
            idle_record: None,
            opened_at: Instant::now(),
            read_at: None,
            failures: FailureRun::default(),
        }
    }

    /// Works until no reader needs the wallet.
    pub(super) async fn run(&mut self) {
        let (tasks, load) = (self.inner.tasks.clone(), Arc::clone(&self.load));
        loop {
            // Cancelling a step does not cancel a write that was sent to the store.
            let flow = tokio::select! {
                biased;
                () = tasks.cancelled() => return,
                () = load.closed() => return,
                flow = self.turn() => flow,
            };
            if matches!(flow, Flow::Exit) {
                return;
            }
        }
    }

    /// Releases the wallet's lock, however the work ended. A process that stops releases all locks
    /// at once.
    pub(super) async fn end(mut self) {
        if !self.inner.tasks.is_cancelled() {
            self.wallet_lock.release_lock(&self.inner.store).await;
        }
    }

    async fn turn(&mut self) -> Flow {
        let began = Instant::now();
        match self.step().await {
            Ok(flow) => flow,
            Err(error) => self.failed(error, began).await,
        }
    }

    async fn step(&mut self) -> Result<Flow, IngestError> {
        self.reload_source();
        self.lapse().await?;
        let Some(record) = self.record().await? else {
            self.inner.close(&self.load);
            return Ok(Flow::Exit);
        };
        let demands = self.load.snapshot();
        self.standing = self.standing(&record, &demands);
        let next = plan(&demands, self.known(&record), self.turns);
        if !matches!(next, Next::Idle) {
            // Waits for its turn before it locks the wallet, which other processes can load
            // meanwhile.
            if !self.may_work().await {
                return Ok(Flow::Again);
            }
            match self.wallet_lock.take(&self.inner.store, record.id).await? {
                LockState::Held => {}
                LockState::Acquired => return Ok(Flow::Again),
                LockState::HeldByOther => return self.follow(&record).await,
            }
        }
        // Set before the check, so that a failed check also leaves gaps their turn.
        self.has_checked = matches!(next, Next::Refresh { .. });
        match next {
            Next::Idle => return self.idle(&record, &demands).await,
            Next::Refresh { low } => {
                self.has_checked = self.refresh(&record, low, run_ahead(&demands)).await?;
            }
            Next::Fill { gap, eager } => {
                let is_all = eager || self.load.background().is_some();
                let ahead = if is_all { RunAhead::All } else { run_ahead(&demands) };
                self.fill(&record, gap, ahead).await?;
            }
            Next::Reread { low, high } => self.reread(&record, low, high).await?,
        }
        self.turns = self.turns.wrapping_add(1);
        Ok(Flow::Again)
    }

    /// After a reload, later reads use the new source.
    fn reload_source(&mut self) {
        let generation = self.inner.sources.generation();
        if generation == self.generation {
            return;
        }
        self.generation = generation;
        if let Some(source) = self.inner.sources.get(&self.load.wallet.chain) {
            self.source = source;
            self.read_tasks.clear();
        }
    }

    /// The wallet's record, created if needed; `None` if the wallet was forgotten: it is not
    /// created again for readers that are still open.
    async fn record(&mut self) -> Result<Option<WalletRecord>> {
        let known = self.inner.view()?.wallet(&self.load.wallet).await?;
        let record = match known {
            Some(record) => WalletRecord::clone(&record),
            None if self.was_stored => return Ok(None),
            None => self.inner.store.intern(&self.load.wallet).await?,
        };
        self.was_stored = true;
        Ok(Some(record))
    }

    fn known<'a>(&self, record: &'a WalletRecord) -> PlanInput<'a> {
        let now = self.inner.clock.now();
        // A check time in the future comes from a wrong clock and is ignored.
        let fresh = |at: UnixMillis| at <= now && now.since(at) <= self.inner.limits.freshness;
        let retry = self.inner.limits.cut_retry_after;
        let cut_is_news = self.cut_found.is_some_and(|at| at.elapsed() < retry);
        let is_fresh = record.checked_at.is_some_and(fresh);
        PlanInput {
            coverage: &record.coverage,
            check: match (is_fresh, self.has_checked) {
                (true, _) => CheckAge::Fresh,
                (false, true) => CheckAge::Slow,
                (false, false) => CheckAge::Old,
            },
            is_current: match self.standing {
                Some(Standing::Quiet) => true,
                Some(Standing::Due) => false,
                Some(Standing::Unscanned) | None => is_fresh,
            },
            cut: record.cut.filter(|_| cut_is_news),
            decoder: decode::version(self.load.wallet.address.family()),
            spans_max: self.inner.limits.spans_max,
            doubtful: self.doubtful(record),
            may_reread: self.inner.rereads.due(&record.wallet).is_some(),
            unfinished: read_task::unfinished_check(
                &self.read_tasks,
                self.inner.limits.check_linger_max,
            ),
        }
    }

    fn standing(&self, record: &WalletRecord, demands: &[Demand]) -> Option<Standing> {
        let is_followed = demands.iter().any(|demand| demand.follows);
        let top = record.coverage.top().filter(|_| is_followed)?;
        Some(self.inner.standing(self.load.wallet, top, self.read_at))
    }

    /// The heights to reread for a better proof, if a reread is due.
    fn doubtful(&self, record: &WalletRecord) -> Option<(Height, Height)> {
        self.inner.rereads.due(&record.wallet)?;
        let spans: Vec<&Span> = self.inner.unproved(record, Height::MAX).collect();
        next_reread(&spans, self.inner.rereads.below(&record.wallet))
    }

    /// Nothing to do: reports a cut to readers that wait below it, then waits for a new demand.
    async fn idle(
        &mut self,
        record: &WalletRecord,
        demands: &[Demand],
    ) -> Result<Flow, IngestError> {
        // Another process that shares the store may have written what readers here wait for.
        if self
            .idle_record
            .replace(record.clone())
            .is_some_and(|idle_record| idle_record != *record)
        {
            self.load.notify_update();
        }
        let blocked = self.blocking_cut(record, demands);
        if let Some(first) = blocked {
            self.load.notify_failure(HistoryError::HistoryCut { first });
        }
        let is_unproved = self.inner.unproved(record, Height::MAX).next().is_some();
        if self.load.background().is_some() && (blocked.is_some() || !is_unproved) {
            self.inner.clear_background(&self.load).await?;
        }
        self.background = None;
        self.read_tasks.iter().for_each(|read_task| read_task.set_run_ahead(RunAhead::NOTHING));
        self.wallet_lock.release_lock(&self.inner.store).await;
        let grace = match self.standing {
            // A scan that finds something wakes the worker.
            Some(Standing::Quiet) => self.inner.limits.scan_every,
            Some(Standing::Due | Standing::Unscanned) | None => self.inner.limits.idle_grace,
        };
        tokio::select! {
            biased;
            () = self.inner.tasks.cancelled() => return Ok(Flow::Exit),
            () = self.load.changed() => return Ok(Flow::Again),
            () = sleep(grace) => {}
        }
        self.read_tasks.clear();
        Ok(if self.inner.remove_if_unwanted(&self.load) { Flow::Exit } else { Flow::Again })
    }

    /// Another process loads the wallet: polls its record and notifies the readers here. Demand of
    /// the background alone is left to that process.
    async fn follow(&mut self, record: &WalletRecord) -> Result<Flow, IngestError> {
        self.read_tasks.clear();
        self.background = None;
        if !self.load.has_readers() {
            self.load.set_background(None);
        }
        let pause = sleep(self.inner.limits.follow_every);
        if self.inner.tasks.run(pause).await.is_none() {
            return Ok(Flow::Exit);
        }
        if self.record().await?.as_ref() != Some(record) {
            self.load.notify_update();
        }
        Ok(if self.inner.remove_if_unwanted(&self.load) { Flow::Exit } else { Flow::Again })
    }

    /// The first height that the nodes keep, if a demand cannot be met because of it.
    fn blocking_cut(&self, record: &WalletRecord, demands: &[Demand]) -> Option<Height> {
        let known = self.known(record);
        let open = PlanInput { cut: None, ..known };
        let waits = |height: Option<Height>| {
            height.is_some_and(|h| {
                reachable_gap(h, open).is_some() && reachable_gap(h, known).is_none()
            })
        };
        let waiting = demands.iter().any(|demand| waits(demand.edge) || waits(demand.all_below));
        known.cut.filter(|_| waiting)
    }

    /// Checks for heights from `low` up to the head. False if it had no result: a reorg, a changed
    /// demand or a stale chunk.
    async fn refresh(
        &mut self,
        record: &WalletRecord,
        low: Height,
        ahead: RunAhead,
    ) -> Result<bool, IngestError> {
        let known = self
            .read_tasks
            .iter()
            .position(|read_task| read_task.low == low && read_task.next_high.is_none());
        let at = if let Some(at) = known {
            at
        } else {
            self.opened_at = Instant::now();
            self.open(record, Gap { low, high: low, resume: None }, true, None).await?
        };
        let Some(read_task) = self.read_tasks.get(at) else { return Ok(false) };
        read_task.set_run_ahead(ahead);
        let checked_at = read_task.began_at(self.inner.clock.now());
        let is_old = read_task.began.elapsed() > self.inner.limits.freshness;
        if (known.is_none() || is_old) && self.roll_back_reorg(record).await? {
            self.read_tasks.clear();
            return Ok(false);
        }
        let Some(fetched) = self.fetch(at).await? else { return Ok(false) };
        let Some(raw) = fetched else {
            self.read_tasks.remove(at);
            let patch = WalletPatch { checked_at: Some(checked_at), ..WalletPatch::default() };
            self.patch(record, patch).await?;
            self.read_at = Some(self.opened_at);
            self.load.notify_update();
            return Ok(true);
        };
        let heights: Vec<Height> =
            [raw.high].into_iter().chain(raw.txs.first().map(RawTx::height)).collect();
        // Also without rows: a block that a reorg replaces later may hold a trade then.
        let anchor = anchors::from_chunk(&raw);
        let anchor = anchor.filter(|_| !self.is_unchecked);
        let stored = self.store(record, raw, ChunkKind::Checked(checked_at), at, anchor).await?;
        self.read_at = if stored { Some(self.opened_at) } else { self.read_at };
        if stored && anchor.is_none() && !self.is_unchecked {
            self.anchor(record, heights);
        }
        Ok(stored)
    }

    async fn fill(
        &mut self,
        record: &WalletRecord,
        gap: Gap,
        ahead: RunAhead,
    ) -> Result<(), IngestError> {
        let fits = |read_task: &ReadTask| {
            read_task.low == gap.low && read_task.next_high == Some(gap.high)
        };
        let at = match self.read_tasks.iter().position(fits) {
            Some(at) => at,
            None => self.open(record, gap, false, None).await?,
        };
        if let Some(read_task) = self.read_tasks.get(at) {
            read_task.set_run_ahead(ahead);
        }
        let Some(fetched) = self.fetch(at).await? else { return Ok(()) };
        match fetched {
            Some(raw) => drop(self.store(record, raw, ChunkKind::Below, at, None).await?),
            None => drop(self.read_tasks.remove(at)),
        }
        Ok(())
    }

    /// Reads covered heights again, with the present decoder or for a better proof. Only a chunk
    /// whose proof is accepted replaces stored rows.
    async fn reread(
        &mut self,
        record: &WalletRecord,
        low: Height,
        high: Height,
    ) -> Result<(), IngestError> {
        let fits = |read_task: &ReadTask| read_task.low == low && read_task.next_high == Some(high);
        let at = if let Some(at) = self.read_tasks.iter().position(fits) {
            at
        } else {
            let another = self.way_to_avoid(record, high);
            self.open(record, Gap { low, high, resume: None }, false, another).await?
        };
        let fetched = match self.fetch(at).await {
            Ok(Some(fetched)) => fetched,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.reread_failed(high);
                return Err(error);
            }
        };
        let Some(raw) = fetched else {
            self.read_tasks.remove(at);
            return Ok(());
        };
        if !self.source.accepts(raw.proof) {
            self.read_tasks.remove(at);
            self.reread_failed(raw.high);
            return Ok(());
        }
        self.store(record, raw, ChunkKind::Again, at, None).await.map(drop)
    }

    /// If the list of the stored proof may lack transactions, every second attempt avoids its way.
    fn way_to_avoid(&self, record: &WalletRecord, high: Height) -> Option<Way> {
        let failures = self.inner.rereads.due(&record.wallet).unwrap_or(0);
        let proof = record.coverage.span_at(high)?.proof;
        doubted_list(proof).filter(|_| failures.is_multiple_of(2))
    }

    /// Records a failed reread; the next one is below this height.
    fn reread_failed(&self, below: Height) {
        let limits = &self.inner.limits;
        let pauses = (limits.reread_pause_min, limits.reread_pause_max);
        self.inner.rereads.failed(self.load.wallet, below, pauses);
    }

    /// Starts to read a gap; with `to_head` the source determines the upper end.
    async fn open(
        &mut self,
        record: &WalletRecord,
        gap: Gap,
        to_head: bool,
        another: Option<Way>,
    ) -> Result<usize> {
        if self.read_tasks.len() >= READ_TASKS_MAX {
            self.read_tasks.remove(0);
        }
        let high = (!to_head).then_some(gap.high);
        let accounts = self.inner.view()?.accounts(record.id).await?;
        let reader = self.source.read(GapRequest {
            wallet: record.wallet.address,
            low: gap.low,
            high,
            resume: gap.resume,
            knows_accounts: knows_accounts(record, &accounts),
            accounts,
            lane: self.lane.clone(),
            first: record.coverage.top().is_none(),
            another,
        });
        self.read_tasks.push(ReadTask::start(&self.inner.tasks, reader, gap.low, high));
        Ok(self.read_tasks.len() - 1)
    }

    /// The next chunk of a read task; the outer `None` if a demand changed first.
    async fn fetch(&mut self, at: usize) -> Result<Option<Option<RawChunk>>, IngestError> {
        let lapse = self.lapses_in();
        let Some(read_task) = self.read_tasks.get_mut(at) else { return Ok(None) };
        tokio::select! {
            biased;
            () = self.inner.tasks.cancelled() => Ok(None),
            () = self.wallet_lock.lost() => {
                self.read_tasks.clear();
                Ok(None)
            }
            fetched = read_task.next() => match fetched {
                Ok(fetched) => Ok(Some(fetched)),
                Err(error) => {
                    self.read_tasks.remove(at);
                    Err(error.into())
                }
            },
            () = self.load.changed() => Ok(None),
            () = after(lapse) => Ok(None),
        }
    }

    /// Decodes, enriches and writes a chunk. False if it was stale because of a rollback.
    async fn store(
        &mut self,
        record: &WalletRecord,
        mut raw: RawChunk,
        stored: ChunkKind,
        at: usize,
        anchor: Option<Anchor>,
    ) -> Result<bool, IngestError> {
        let checked_at = match stored {
            ChunkKind::Checked(at) => Some(at),
            ChunkKind::Below | ChunkKind::Again => None,
        };
        let reread = matches!(stored, ChunkKind::Again).then(|| raw.ids());
        let anchor_lock = Arc::clone(&self.anchor_lock);
        let Self { inner, source, lane, read_tasks, dropped, .. } = &mut *self;
        let ingest = Ingest::new(inner, source, lane, record)?;
        let left_out = ingest.uncovered_late(&raw);
        // Stored before the accounts that revealed them, so that a crash cannot lose them.
        for late in ingest.late_chunks(&mut raw).await? {
            if matches!(inner.store.write_chunk(late).await?, Written::Stale) {
                inner.metrics.chunks_stale.add(1);
                read_tasks.clear();
                return Ok(false);
            }
        }
        let mut read = ingest.decode(raw).await;
        if let Some(read_task) = read_tasks.get_mut(at).filter(|_| reread.is_none()) {
            read = chunk_join::join_below(&ingest, read_task, read).await;
        }
        let (low, reached) = (read.raw.low, read.reached());
        let news = StoredChunk::of(&read.raw, left_out);
        let mut chunk = ingest.enrich(read, reread, checked_at).await?;
        let _alone = anchor_lock.lock().await;
        if let Some(anchor) = anchor {
            chunk.anchors = Some(inner.anchors_with(record.id, anchor, *dropped).await?);
        }
        let is_proved = source.accepts(chunk.proof) && chunk.missing.is_empty();
        inner.make_room().await?;
        if matches!(inner.store.write_chunk(chunk).await?, Written::Stale) {
            inner.metrics.chunks_stale.add(1);
            self.read_tasks.clear();
            return Ok(false);
        }
        inner.metrics.chunks_stored.add(1);
        let at = read_task::drop_unaware(&mut self.read_tasks, at, news);
        match stored {
            ChunkKind::Again if is_proved => self.inner.rereads.succeeded(&record.wallet),
            ChunkKind::Again => self.reread_failed(low),
            ChunkKind::Checked(_) | ChunkKind::Below => {}
        }
        match self.read_tasks.get_mut(at) {
            Some(read_task) if read_task.low < low => read_task.next_high = Some(low - 1),
            Some(_) => drop(self.read_tasks.remove(at)),
            None => {}
        }
        self.pause = self.inner.limits.retry_pause_min;
        self.load.notify_progress(reached);
        Ok(true)
    }

    async fn patch(&self, record: &WalletRecord, patch: WalletPatch) -> Result<()> {
        let written = self.inner.store.update_wallet(record.id, record.epoch, patch).await;
        Ok(written.map(drop)?)
    }
}
