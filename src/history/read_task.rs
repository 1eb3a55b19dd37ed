//! Runs a source's reader in its own task while earlier chunks are decoded and written.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::tasks::Tasks;
use super::walk::millis;
use crate::domain::{Height, UnixMillis};
use crate::rpc::UpstreamError;
use crate::sources::{GapReader, LateAccounts, RawChunk, RunAhead};

/// Chunks buffered between reader and writer.
const WAITING_CHUNKS_MAX: usize = 1;

type Fetched = Result<Option<RawChunk>, UpstreamError>;

/// The task of one gap's reader. Dropping it cancels the read.
#[derive(Debug)]
pub(super) struct ReadTask {
    /// Lower end of the gap.
    pub(super) low: Height,
    /// Upper end of the next chunk; `None` before the first chunk of a read from the head.
    pub(super) next_high: Option<Height>,
    chunks: mpsc::Receiver<Fetched>,
    /// Requests one more chunk; not needed while the run-ahead is `All`.
    chunk_requests: mpsc::Sender<()>,
    is_requested: bool,
    /// The reader has delivered its last chunk.
    has_ended: bool,
    /// A chunk that [`ReadTask::next_if`] received but did not return.
    peeked: Option<Fetched>,
    /// Range of heights of late transactions that were not stored, until their accounts are all
    /// reported.
    left_out: Option<(Height, Height)>,
    run_ahead: watch::Sender<RunAhead>,
    pub(super) began: Instant,
    _task: AbortOnDropHandle<()>,
}

impl ReadTask {
    /// When the read began, in wall-clock time: a chunk that was buffered while other heights were
    /// read shows the chain as of then.
    pub(super) fn began_at(&self, now: UnixMillis) -> UnixMillis {
        UnixMillis(now.0.saturating_sub(millis(self.began.elapsed())))
    }

    pub(super) fn start(
        tasks: &Tasks,
        reader: GapReader,
        low: Height,
        high: Option<Height>,
    ) -> Self {
        let (chunk_sender, chunks) = mpsc::channel(WAITING_CHUNKS_MAX);
        let (chunk_requests, ask_receiver) = mpsc::channel(1);
        let (run_ahead, wanted) = watch::channel(RunAhead::Unknown);
        let task = tasks.spawn_load(run(reader, chunk_sender, ask_receiver, wanted));
        let began = Instant::now();
        Self {
            low,
            next_high: high,
            chunks,
            chunk_requests,
            is_requested: false,
            has_ended: false,
            peeked: None,
            left_out: None,
            run_ahead,
            began,
            _task: AbortOnDropHandle::new(task),
        }
    }

    pub(super) fn set_run_ahead(&self, run_ahead: RunAhead) {
        self.run_ahead.send_if_modified(|now| std::mem::replace(now, run_ahead) != run_ahead);
    }

    /// The next chunk. Cancel safe.
    pub(super) async fn next(&mut self) -> Fetched {
        match self.peeked.take() {
            Some(peeked) => peeked,
            None => self.receive().await,
        }
    }

    /// The next chunk if `fits` accepts it; else it stays the next one. Cancel safe.
    pub(super) async fn next_if(
        &mut self,
        fits: impl FnOnce(&RawChunk) -> bool,
    ) -> Option<RawChunk> {
        if self.peeked.is_none() {
            self.peeked = Some(self.receive().await);
        }
        match self.peeked.take() {
            Some(Ok(Some(chunk))) if fits(&chunk) => Some(chunk),
            other => {
                self.peeked = other;
                None
            }
        }
    }

    async fn receive(&mut self) -> Fetched {
        if !std::mem::replace(&mut self.is_requested, true) {
            // The channel is full if a request is pending already.
            let _ = self.chunk_requests.try_send(());
        }
        let fetched = self.chunks.recv().await;
        self.is_requested = false;
        fetched
            .unwrap_or_else(|| if self.has_ended { Ok(None) } else { Err(stopped_error()) })
            .inspect(|chunk| self.has_ended |= chunk.is_none())
    }
}

/// The error of a task that ended before its reader: the remaining heights are unknown.
fn stopped_error() -> UpstreamError {
    UpstreamError::Unavailable { attempts: 1, last: "the reading was stopped".to_owned() }
}

/// What the other tasks need to know about a stored chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredChunk {
    /// Range of heights of late transactions that were not stored with it.
    left_out: Option<(Height, Height)>,
    heights: (Height, Height),
    late_accounts: LateAccounts,
}

impl StoredChunk {
    pub(super) fn of(chunk: &RawChunk, left_out: Option<(Height, Height)>) -> Self {
        let heights = (chunk.low, chunk.high);
        Self { left_out, heights, late_accounts: chunk.late_accounts }
    }
}

/// Called once a chunk of the task at index `at` is stored: drops tasks that would miss
/// transactions, so that they start again. Returns the new index of the task.
///
/// Late transactions of uncovered heights come with the read of these heights, which must know
/// their account. Open tasks do not know accounts that this one has just reported. Conversely,
/// transactions that this task left out, of an account that it has not reported yet, may lie in
/// heights that another task stores first; this task is then restarted from its present position,
/// and finds them once more. A report drops other tasks only once: those that start later know the
/// accounts.
pub(super) fn drop_unaware(read_tasks: &mut Vec<ReadTask>, at: usize, news: StoredChunk) -> usize {
    let Some(read_task) = read_tasks.get_mut(at) else { return at };
    let all = || read_task.left_out.into_iter().chain(news.left_out);
    let low = all().map(|(low, _)| low).min();
    read_task.left_out = low.zip(all().map(|(_, high)| high).max());
    let reported = match news.late_accounts {
        LateAccounts::Unreported => None,
        LateAccounts::Partly => read_task.left_out,
        LateAccounts::All => read_task.left_out.take(),
    };
    let (mut place, mut before) = (0, 0);
    read_tasks.retain(|read_task| {
        let heights = (read_task.low, read_task.next_high.unwrap_or(Height::MAX));
        let lacks = reported.is_some_and(|left_out| overlap(left_out, heights));
        let has_left = read_task.left_out.is_some_and(|left_out| overlap(left_out, news.heights));
        let is_kept = place == at || !(lacks || has_left);
        before += usize::from(is_kept && place < at);
        place += 1;
        is_kept
    });
    before
}

fn overlap(one: (Height, Height), other: (Height, Height)) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}

/// Lower end of a check for newer heights that began within `linger`. It is finished even without
/// readers: readers with short windows would otherwise restart it for ever.
pub(super) fn unfinished_check(read_tasks: &[ReadTask], linger: Duration) -> Option<Height> {
    let is_unfinished = |read_task: &&ReadTask| {
        read_task.low > 0 && read_task.next_high.is_none() && read_task.began.elapsed() < linger
    };
    read_tasks.iter().find(is_unfinished).map(|read_task| read_task.low)
}

/// Forwards only changes: the reader itself subtracts what it has delivered.
fn forward_run_ahead(wanted: &mut watch::Receiver<RunAhead>, reader: &mut GapReader) {
    if wanted.has_changed().unwrap_or(false) {
        reader.set_run_ahead(*wanted.borrow_and_update());
    }
}

async fn run(
    mut reader: GapReader,
    chunks: mpsc::Sender<Fetched>,
    mut chunk_requests: mpsc::Receiver<()>,
    mut wanted: watch::Receiver<RunAhead>,
) {
    loop {
        loop {
            if *wanted.borrow() == RunAhead::All {
                break;
            }
            tokio::select! {
                biased;
                is_requested = chunk_requests.recv() => match is_requested {
                    Some(()) => break,
                    None => return,
                },
                // `changed` marks the value as seen, so that `forward_run_ahead` does not forward
                // it again.
                changed = wanted.changed() => match changed {
                    Ok(()) => reader.set_run_ahead(*wanted.borrow_and_update()),
                    Err(_) => return,
                },
                never = reader.drive() => match never {},
            }
        }
        forward_run_ahead(&mut wanted, &mut reader);
        let fetched = reader.next().await;
        let last = !matches!(fetched, Ok(Some(_)));
        tokio::select! {
            biased;
            sent = chunks.send(fetched) => if sent.is_err() || last { return },
            never = reader.drive() => match never {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that ended after it had sent these chunks.
    fn stopped_after(sent: Vec<Fetched>) -> ReadTask {
        let (sender, chunks) = mpsc::channel(sent.len().max(1));
        for fetched in sent {
            sender.try_send(fetched).unwrap();
        }
        let (chunk_requests, _) = mpsc::channel(1);
        let (run_ahead, _) = watch::channel(RunAhead::Unknown);
        ReadTask {
            low: 0,
            next_high: None,
            chunks,
            chunk_requests,
            is_requested: false,
            has_ended: false,
            peeked: None,
            left_out: None,
            run_ahead,
            began: Instant::now(),
            _task: Tasks::new().spawn_owned(async {}),
        }
    }

    /// Tasks of three gaps: one up to the head, and two below it. `left_out`: the index of a task,
    /// and the heights of its late transactions that were not stored.
    fn three(left_out: Option<(usize, (Height, Height))>) -> Vec<ReadTask> {
        let gaps = [(70, None), (40, Some(60)), (10, Some(30))];
        let read_task = |(at, (low, next_high))| ReadTask {
            low,
            next_high,
            left_out: left_out.and_then(|(of, heights)| (of == at).then_some(heights)),
            ..stopped_after(Vec::new())
        };
        gaps.into_iter().enumerate().map(read_task).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_that_would_leave_a_hole_are_started_anew() {
        use LateAccounts::{All, Partly, Unreported};
        let news =
            |left_out, heights, late_accounts| StoredChunk { left_out, heights, late_accounts };
        let lowest = Some((2, (45, 50)));
        for (before, at, news, kept, place) in [
            (None, 2, news(None, (25, 30), All), &[70, 40, 10][..], 2),
            (None, 2, news(Some((45, 50)), (25, 30), Unreported), &[70, 40, 10], 2),
            // The chunk reports all accounts of the late transactions that were not stored with it.
            (None, 2, news(Some((45, 50)), (25, 30), All), &[70, 10], 1),
            (None, 2, news(Some((45, 80)), (25, 30), Partly), &[10], 0),
            (None, 1, news(Some((65, 65)), (55, 60), All), &[70, 40, 10], 1),
            (None, 1, news(Some((90, 95)), (55, 60), All), &[40, 10], 0),
            // A later chunk that reports the accounts does the same; others drop nothing.
            (lowest, 2, news(None, (20, 24), All), &[70, 10], 1),
            (lowest, 2, news(None, (20, 24), Partly), &[70, 10], 1),
            (lowest, 2, news(None, (20, 24), Unreported), &[70, 40, 10], 2),
            // Those heights are stored before that.
            (lowest, 1, news(None, (50, 60), Unreported), &[70, 40], 1),
            (lowest, 1, news(None, (55, 60), Unreported), &[70, 40, 10], 1),
            (lowest, 3, news(None, (50, 60), All), &[70, 40, 10], 3),
        ] {
            let mut read_tasks = three(before);
            assert_eq!(drop_unaware(&mut read_tasks, at, news), place, "{at} {news:?}");
            let left: Vec<Height> = read_tasks.iter().map(|read_task| read_task.low).collect();
            assert_eq!(left, kept, "{at} {news:?}");
        }
        // What is left out is remembered.
        let mut read_tasks = three(None);
        drop_unaware(&mut read_tasks, 2, news(Some((45, 45)), (28, 30), Unreported));
        drop_unaware(&mut read_tasks, 2, news(Some((50, 50)), (25, 27), Unreported));
        assert_eq!(read_tasks.last().and_then(|read_task| read_task.left_out), Some((45, 50)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_reported_drops_the_others_once() {
        use LateAccounts::{All, Partly, Unreported};
        let lows = |read_tasks: &[ReadTask]| {
            read_tasks.iter().map(|read_task| read_task.low).collect::<Vec<_>>()
        };
        let news = |heights, late_accounts| StoredChunk { left_out: None, heights, late_accounts };
        for (reported, after) in [(All, None), (Partly, Some((45, 50)))] {
            let mut read_tasks = three(Some((2, (45, 50))));
            assert_eq!(drop_unaware(&mut read_tasks, 2, news((25, 30), reported)), 1);
            assert_eq!(lows(&read_tasks), [70, 10], "{reported:?}");
            assert_eq!(read_tasks.last().and_then(|read_task| read_task.left_out), after);
            // The dropped task is started anew.
            read_tasks.extend(three(None).into_iter().filter(|read_task| read_task.low == 40));
            drop_unaware(&mut read_tasks, 1, news((20, 24), Unreported));
            assert_eq!(lows(&read_tasks), [70, 10, 40], "it knows the account: {reported:?}");
            drop_unaware(&mut read_tasks, 2, news((50, 60), Unreported));
            let is_kept = lows(&read_tasks).contains(&10);
            assert_eq!(is_kept, after.is_none(), "of others the rest is open: {reported:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reading_that_is_cut_off_is_no_end() {
        let cut = stopped_after(Vec::new()).next().await;
        assert!(matches!(cut, Err(UpstreamError::Unavailable { .. })), "{cut:?}");
        let mut whole = stopped_after(vec![Ok(None)]);
        for _ in 0..2 {
            assert!(matches!(whole.next().await, Ok(None)));
        }
    }
}
