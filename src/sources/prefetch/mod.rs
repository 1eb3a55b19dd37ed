//! The prefetcher of a gap reader: requests run ahead of delivery within a depth, and chunks are
//! delivered in order. The same for every family.
//!
//! All requests in flight live in the prefetcher, so that dropping a `next_chunk` loses nothing and
//! dropping the reader cancels everything.

mod ready;
mod reorder;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};

pub(super) use ready::{ChunkSizes, Ready};
pub(super) use reorder::{Fetch, ReorderBuffer};

use crate::rpc::error::UpstreamError;

/// Why more is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// No reader takes chunks now.
    Ahead,
    /// A reader waits for the next chunk.
    Next,
    /// It waits, and nothing is in flight: what is next is requested although no room is left, so that
    /// a read never waits for room that only its next transactions would make.
    Stalled,
}

/// How many transactions may be in flight or wait to be delivered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depth {
    pub(super) min: usize,
    pub(super) max: usize,
    /// Of all readers of the source together.
    pub(super) total_max: usize,
}

/// The requests in flight of one reader, and how far they may run ahead.
pub(super) struct Prefetcher<E> {
    in_flight: FuturesUnordered<BoxFuture<'static, E>>,
    /// An error that came while no reader took chunks.
    failure: Option<UpstreamError>,
    is_eager: bool,
    /// Transactions delivered so far: the depth of a reader that is not eager.
    delivered: usize,
    /// Readers of the source.
    readers: Arc<AtomicUsize>,
}

impl<E> Prefetcher<E> {
    pub(super) fn new(readers: &Arc<AtomicUsize>) -> Self {
        readers.fetch_add(1, Ordering::Relaxed);
        Self {
            in_flight: FuturesUnordered::new(),
            failure: None,
            is_eager: false,
            delivered: 0,
            readers: Arc::clone(readers),
        }
    }

    /// Eager: as far ahead as the limits allow; else the depth grows with what is delivered.
    pub(super) fn set_eager(&mut self, is_eager: bool) {
        self.is_eager = is_eager;
    }

    pub(super) fn is_eager(&self) -> bool {
        self.is_eager
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    pub(super) fn push(&mut self, request: BoxFuture<'static, E>) {
        self.in_flight.push(request);
    }

    /// Cancels what is in flight.
    pub(super) fn cancel_all(&mut self) {
        self.in_flight = FuturesUnordered::new();
    }

    pub(super) fn delivered(&self) -> usize {
        self.delivered
    }

    pub(super) fn count_delivered(&mut self, count: usize) {
        self.delivered += count;
    }

    /// How many transactions may be in flight or wait now; `under_way` of them are.
    pub(super) fn window(&self, depth: Depth, under_way: usize, urgency: Urgency) -> usize {
        let readers = self.readers.load(Ordering::Relaxed).max(1);
        let share = (depth.total_max / readers).min(depth.max).max(depth.min);
        let window = if self.is_eager { share } else { self.delivered.clamp(depth.min, share) };
        if urgency == Urgency::Stalled { window.max(under_way + depth.min) } else { window }
    }
}

impl<E> Drop for Prefetcher<E> {
    fn drop(&mut self) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reader that decides what is requested next and what can be delivered.
pub(super) trait PrefetchReader {
    /// What comes of a request.
    type Event;
    type Chunk;

    fn prefetcher(&mut self) -> &mut Prefetcher<Self::Event>;

    /// Whether all chunks are delivered.
    fn has_ended(&self) -> bool;

    /// The outcome of the read after its last chunk.
    fn finish(&mut self) -> Result<(), UpstreamError> {
        Ok(())
    }

    /// Requests as much as there is room for.
    fn request_more(&mut self, urgency: Urgency);

    fn absorb(&mut self, event: Self::Event) -> Result<(), UpstreamError>;

    fn deliver(&mut self) -> Result<Option<Self::Chunk>, UpstreamError>;
}

/// The next chunk, newest first; `None` after the last one. Cancel safe.
pub(super) async fn next_chunk<R: PrefetchReader>(
    reader: &mut R,
) -> Result<Option<R::Chunk>, UpstreamError> {
    loop {
        if let Some(error) = reader.prefetcher().failure.take() {
            return Err(error);
        }
        if reader.has_ended() {
            return reader.finish().map(|()| None);
        }
        reader.request_more(Urgency::Next);
        if reader.prefetcher().is_idle() {
            reader.request_more(Urgency::Stalled);
        }
        if let Some(chunk) = reader.deliver()? {
            return Ok(Some(chunk));
        }
        if reader.has_ended() {
            continue;
        }
        match reader.prefetcher().in_flight.next().await {
            Some(event) => reader.absorb(event)?,
            None => return Err(stalled()),
        }
        // What came at the same time makes one chunk.
        while let Some(Some(event)) = reader.prefetcher().in_flight.next().now_or_never() {
            reader.absorb(event)?;
        }
    }
}

/// Drives the requests in flight, within the depth, without delivering; never ready. Requests that
/// hold a place at an endpoint must not wait for a slow taker of chunks.
pub(super) async fn drive<R: PrefetchReader>(reader: &mut R) -> Infallible {
    loop {
        if reader.has_ended() || reader.prefetcher().failure.is_some() {
            // What nothing polls any more would hold its place at an endpoint until that lapses.
            reader.prefetcher().cancel_all();
            return std::future::pending().await;
        }
        reader.request_more(Urgency::Ahead);
        match reader.prefetcher().in_flight.next().await {
            Some(event) => {
                let failure = reader.absorb(event).err();
                reader.prefetcher().failure = failure;
            }
            None => return std::future::pending().await,
        }
    }
}

fn stalled() -> UpstreamError {
    let last = "the reading of this wallet stands still".to_owned();
    UpstreamError::Unavailable { attempts: 0, last }
}

#[cfg(test)]
mod tests {
    use std::future;

    use super::*;

    /// Nothing is requested but what a test pushes.
    struct Idle(Prefetcher<Result<(), UpstreamError>>);

    impl PrefetchReader for Idle {
        type Event = Result<(), UpstreamError>;
        type Chunk = ();

        fn prefetcher(&mut self) -> &mut Prefetcher<Self::Event> {
            &mut self.0
        }

        fn has_ended(&self) -> bool {
            false
        }

        fn request_more(&mut self, _: Urgency) {}

        fn absorb(&mut self, event: Self::Event) -> Result<(), UpstreamError> {
            event
        }

        fn deliver(&mut self) -> Result<Option<()>, UpstreamError> {
            Ok(None)
        }
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
}
