//! The prefetcher of a gap reader: requests run ahead of delivery within a depth, and chunks are
//! delivered in order. The same for every family.
//!
//! All requests in flight live in the prefetcher, so that dropping a `next_chunk` loses nothing and
//! dropping the reader cancels everything.

mod reorder;

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};

pub(super) use reorder::{Fetch, ReorderBuffer, Slot};

use super::chunk::RawChunk;
use crate::domain::Height;
use crate::rpc::{Result, UpstreamError};

/// The number of transactions that the client will want next. Beyond it, the prefetched amount
/// grows with what is delivered, within the source's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunAhead {
    /// It is not known what is wanted after the next chunk.
    #[default]
    Unknown,
    /// This many transactions.
    Transactions(usize),
    /// Everything down to the end of the range.
    All,
}

impl RunAhead {
    /// Nothing after what is delivered.
    pub const NOTHING: Self = Self::Transactions(0);

    /// For a number of rows: most transactions of a wallet have one or two.
    pub fn rows(rows: u64) -> Self {
        Self::Transactions(usize::try_from(rows).unwrap_or(usize::MAX))
    }

    fn after_delivery(self, count: usize) -> Self {
        match self {
            Self::Transactions(wanted) => Self::Transactions(wanted.saturating_sub(count)),
            Self::Unknown | Self::All => self,
        }
    }

    pub(super) fn transactions(self) -> usize {
        match self {
            Self::Unknown => 0,
            Self::Transactions(wanted) => wanted,
            Self::All => usize::MAX,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// No caller waits for a chunk now.
    Ahead,
    /// A caller waits for the next chunk.
    Next,
    /// A caller waits and nothing is in flight: the next transactions are requested beyond the
    /// window, so that a read never waits for room that only those transactions would free.
    Stalled,
}

const DOUBLINGS_MAX: u32 = 10;

#[derive(Debug, Clone, Copy)]
pub(super) struct Depth {
    pub(super) min: usize,
    pub(super) max: usize,
    /// For all readers of the source together.
    pub(super) total_max: usize,
}

#[derive(Debug)]
pub(super) struct ChunkSizes {
    pub(super) chunk_min: usize,
    pub(super) chunk_max: usize,
    /// Skipped entries after which a chunk without transactions is delivered.
    pub(super) skipped_max: usize,
}

/// What a timeline of listed transactions can deliver now: transactions, and ids of listed ones
/// that no endpoint returns.
#[derive(Debug)]
pub(super) struct Ready<T, I> {
    pub(super) low: Height,
    pub(super) high: Height,
    pub(super) txs: Vec<T>,
    pub(super) missing: Vec<(Height, I)>,
}

/// The requests in flight of one reader, and its prefetch depth.
pub(super) struct Prefetcher<E> {
    in_flight: FuturesUnordered<BoxFuture<'static, E>>,
    /// Background work that no chunk waits for.
    background_work: Option<BoxFuture<'static, ()>>,
    /// An error that occurred while no caller waited for a chunk.
    failure: Option<UpstreamError>,
    run_ahead: RunAhead,
    /// The requested run-ahead is delivered completely.
    is_exhausted: bool,
    /// How often the run-ahead was used up; each time doubles the prefetched amount.
    doublings: u32,
    pub(super) delivered: usize,
    readers: Arc<AtomicUsize>,
}

impl<E> Prefetcher<E> {
    pub(super) fn new(readers: &Arc<AtomicUsize>) -> Self {
        readers.fetch_add(1, Ordering::Relaxed);
        Self {
            in_flight: FuturesUnordered::new(),
            background_work: None,
            failure: None,
            run_ahead: RunAhead::default(),
            is_exhausted: false,
            doublings: 0,
            delivered: 0,
            readers: Arc::clone(readers),
        }
    }

    pub(super) fn set_run_ahead(&mut self, run_ahead: RunAhead) {
        if run_ahead == RunAhead::NOTHING {
            self.doublings = 0;
        } else if self.is_exhausted {
            self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
        }
        (self.run_ahead, self.is_exhausted) = (run_ahead, false);
    }

    pub(super) fn run_ahead(&self) -> RunAhead {
        self.run_ahead
    }

    /// Whether a request is premature: no caller waits, and no further transactions are known to be
    /// wanted.
    pub(super) fn is_premature(&self, urgency: Urgency) -> bool {
        urgency == Urgency::Ahead && self.run_ahead.transactions() == 0
    }

    /// How many entries to list ahead of those that are fetched, at most `most`.
    pub(super) fn list_depth(&self, most: usize, urgency: Urgency) -> usize {
        // The bound holds for a stalled reader too, whose caller may take chunks slowly.
        let is_far = urgency == Urgency::Stalled;
        if is_far { most } else { self.run_ahead.transactions().clamp(1, most) }
    }

    pub(super) fn push(&mut self, request: BoxFuture<'static, E>) {
        self.in_flight.push(request);
    }

    /// Polls background work together with the requests in flight, as long as the reader is polled.
    pub(super) fn set_background_work(&mut self, work: BoxFuture<'static, ()>) {
        self.background_work = Some(work);
    }

    pub(super) fn cancel_all(&mut self) {
        (self.in_flight, self.background_work) = (FuturesUnordered::new(), None);
    }

    /// The next event of the requests in flight; `None` if there are none.
    async fn next_event(&mut self) -> Option<E> {
        poll_fn(|context| {
            // Requests come before the background work: chunks wait for them.
            let event = self.in_flight.poll_next_unpin(context);
            let is_done = |background_work: &mut BoxFuture<'_, ()>| {
                background_work.poll_unpin(context).is_ready()
            };
            if self.background_work.as_mut().is_some_and(is_done) {
                self.background_work = None;
            }
            event
        })
        .await
    }

    pub(super) fn count_delivered(&mut self, count: usize) {
        self.delivered += count;
        self.run_ahead = self.run_ahead.after_delivery(count);
        self.is_exhausted |= self.run_ahead == RunAhead::NOTHING;
    }

    /// Number of transactions that may be in flight or wait for delivery; `under_way` are so
    /// already.
    pub(super) fn window(&self, depth: Depth, under_way: usize, urgency: Urgency) -> usize {
        let readers = self.readers.load(Ordering::Relaxed).max(1);
        let share = (depth.total_max / readers).min(depth.max).max(depth.min);
        let wanted = match self.run_ahead {
            RunAhead::Unknown => self.delivered,
            RunAhead::Transactions(wanted) => wanted.saturating_mul(1 << self.doublings),
            RunAhead::All => share,
        };
        let window = wanted.clamp(depth.min, share);
        if urgency == Urgency::Stalled { window.max(under_way + depth.min) } else { window }
    }
}

impl<E> Drop for Prefetcher<E> {
    fn drop(&mut self) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reader that decides what to request next and what can be delivered.
pub(super) trait PrefetchReader {
    type Event;
    type Chunk;

    fn prefetcher(&mut self) -> &mut Prefetcher<Self::Event>;

    fn has_ended(&self) -> bool;

    /// The outcome of the read after its last chunk.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// Requests as much as the window allows.
    fn request_more(&mut self, urgency: Urgency);

    fn absorb(&mut self, event: Self::Event) -> Result<()>;

    fn deliver(&mut self) -> Result<Option<Self::Chunk>>;
}

/// Reads one gap of a wallet as adjacent chunks.
pub(super) trait ChunkReader: Send {
    fn set_run_ahead(&mut self, run_ahead: RunAhead);

    /// The next chunk, newest first; `None` after the last one. Cancel safe.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<RawChunk>>>;

    /// Drives the requests in flight without delivering; never ready.
    fn drive(&mut self) -> BoxFuture<'_, Infallible>;
}

impl<R: PrefetchReader<Chunk = RawChunk, Event: Send> + Send> ChunkReader for R {
    fn set_run_ahead(&mut self, run_ahead: RunAhead) {
        self.prefetcher().set_run_ahead(run_ahead);
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Option<RawChunk>>> {
        Box::pin(next_chunk(self))
    }

    fn drive(&mut self) -> BoxFuture<'_, Infallible> {
        Box::pin(drive(self))
    }
}

/// The next chunk, newest first; `None` after the last one. Cancel safe.
pub(super) async fn next_chunk<R: PrefetchReader>(reader: &mut R) -> Result<Option<R::Chunk>> {
    loop {
        if let Some(error) = reader.prefetcher().failure.take() {
            return Err(error);
        }
        if reader.has_ended() {
            return reader.finish().map(|()| None);
        }
        reader.request_more(Urgency::Next);
        if reader.prefetcher().in_flight.is_empty() {
            reader.request_more(Urgency::Stalled);
        }
        if let Some(chunk) = reader.deliver()? {
            return Ok(Some(chunk));
        }
        if reader.has_ended() {
            continue;
        }
        // What could be delivered may have shown that something is missing.
        if reader.prefetcher().in_flight.is_empty() {
            reader.request_more(Urgency::Stalled);
        }
        if let Some(event) = reader.prefetcher().next_event().await {
            reader.absorb(event)?;
        } else {
            let last = "the reading of this wallet stands still".to_owned();
            return Err(UpstreamError::Unavailable { attempts: 0, last });
        }
        // Answers that arrived together go into one chunk.
        while let Some(Some(event)) = reader.prefetcher().in_flight.next().now_or_never() {
            reader.absorb(event)?;
        }
    }
}

/// Drives the requests in flight, within the depth, without delivering; never ready. Requests hold
/// permits at endpoints and must not wait for a caller that takes chunks slowly.
pub(super) async fn drive<R: PrefetchReader>(reader: &mut R) -> Infallible {
    loop {
        if reader.has_ended() || reader.prefetcher().failure.is_some() {
            // Requests that are no longer polled would hold their permits until those lapse.
            reader.prefetcher().cancel_all();
            return std::future::pending().await;
        }
        reader.request_more(Urgency::Ahead);
        match reader.prefetcher().next_event().await {
            Some(event) => {
                let failure = reader.absorb(event).err();
                reader.prefetcher().failure = failure;
            }
            None => return std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future;

    use super::*;

    /// Nothing is requested but what a test pushes.
    struct Idle(Prefetcher<Result<()>>);

    impl PrefetchReader for Idle {
        type Event = Result<()>;
        type Chunk = ();

        fn prefetcher(&mut self) -> &mut Prefetcher<Self::Event> {
            &mut self.0
        }

        fn has_ended(&self) -> bool {
            false
        }

        fn request_more(&mut self, _: Urgency) {}

        fn absorb(&mut self, event: Self::Event) -> Result<()> {
            event
        }

        fn deliver(&mut self) -> Result<Option<()>> {
            Ok(None)
        }
    }

    #[test]
    fn as_much_is_requested_ahead_as_is_wanted_less_what_is_delivered() {
        const DEPTH: Depth = Depth { min: 5, max: 400, total_max: 1_000 };
        let mut one: Prefetcher<()> = Prefetcher::new(&Arc::default());
        let window = |of: &Prefetcher<()>| of.window(DEPTH, 0, Urgency::Next);
        assert!(one.is_premature(Urgency::Ahead) && !one.is_premature(Urgency::Next));
        assert_eq!((window(&one), one.list_depth(50, Urgency::Next)), (5, 1));
        one.set_run_ahead(RunAhead::rows(100));
        assert!(!one.is_premature(Urgency::Ahead));
        assert_eq!((window(&one), one.list_depth(50, Urgency::Next)), (100, 50));
        one.count_delivered(70);
        assert_eq!((window(&one), one.list_depth(50, Urgency::Next)), (30, 30));
        one.count_delivered(30);
        assert!(one.is_premature(Urgency::Ahead), "all that was wanted is delivered");
        // It delivered fewer rows than requested.
        one.set_run_ahead(RunAhead::rows(40));
        assert_eq!(window(&one), 80);
        one.count_delivered(45);
        one.set_run_ahead(RunAhead::rows(10));
        assert_eq!(window(&one), 40);
        one.set_run_ahead(RunAhead::NOTHING);
        one.set_run_ahead(RunAhead::rows(10));
        assert_eq!(window(&one), 10, "another page");
        one.set_run_ahead(RunAhead::All);
        one.count_delivered(900);
        assert_eq!((window(&one), one.list_depth(50, Urgency::Next)), (400, 50));
    }

    #[test]
    fn after_a_failure_that_no_reader_takes_yet_no_request_keeps_its_place() {
        let mut reader = Idle(Prefetcher::new(&Arc::default()));
        let place = Arc::new(());
        let held = Arc::clone(&place);
        reader.0.push(Box::pin(async move {
            future::pending::<()>().await;
            drop(held);
            Ok(())
        }));
        reader.0.push(Box::pin(future::ready(Err(UpstreamError::NoEndpoint))));
        assert!(drive(&mut reader).now_or_never().is_none());
        assert_eq!(Arc::strong_count(&place), 1, "the other request is still under way");
        let next = next_chunk(&mut reader).now_or_never();
        assert!(matches!(next, Some(Err(UpstreamError::NoEndpoint))), "{next:?}");
    }

    #[test]
    fn what_no_chunk_waits_for_is_done_next_to_the_requests_and_ends_with_them() {
        let mut reader = Idle(Prefetcher::new(&Arc::default()));
        let works = Arc::new(AtomicUsize::new(0));
        let work = |ends: bool| {
            let works = Arc::clone(&works);
            Box::pin(async move {
                works.fetch_add(1, Ordering::Relaxed);
                if !ends {
                    future::pending::<()>().await;
                }
                drop(works);
            })
        };
        for ends in [true, false] {
            reader.0.set_background_work(work(ends));
            reader.0.push(Box::pin(future::pending()));
            assert!(drive(&mut reader).now_or_never().is_none());
        }
        assert_eq!((works.load(Ordering::Relaxed), Arc::strong_count(&works)), (2, 2));
        reader.0.cancel_all();
        assert_eq!(Arc::strong_count(&works), 1);
    }
}
