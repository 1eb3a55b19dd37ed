//! Reads one gap of a wallet: windows from a list, chunks prefetched concurrently and delivered in
//! order.

use std::collections::VecDeque;

use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::EvmSource;
use super::discovery::{Candidate, Discovery, Window};
use super::fetch::Batch;
use super::lister::Lister;
use super::open::{OpenedList, ReadTarget};
use crate::decode::evm::Account;
use crate::domain::{Address, Height, Proof};
use crate::rpc::{CallOptions, Result, UpstreamError};
use crate::sources::chunk::{GapRequest, RawChunk, Tip};
use crate::sources::prefetch::{
    ChunkReader, Fetch, PrefetchReader, Prefetcher, ReorderBuffer, RunAhead, Urgency,
};

type Chunk = Result<RawChunk>;
type Listed = (Lister, Result<Option<Window>>);

enum Listing {
    /// To be opened down from this height; `None`: from the head.
    Closed(Option<Height>),
    /// It has listed nothing yet.
    Open(Discovery, Lister),
    Idle(Discovery, Lister),
    /// It is being opened, or its next window is requested.
    InFlight,
    Done,
}

impl EvmSource {
    pub(in crate::sources) fn read(&self, request: GapRequest) -> Box<dyn ChunkReader> {
        Box::new(Reading::new(self.clone(), request))
    }
}

struct Reading {
    source: EvmSource,
    request: GapRequest,
    wallet: Account,
    listing: Listing,
    /// The lowest height that is listed; `None` if nothing is.
    listed_to: Option<Height>,
    /// When the list was opened, and when its last window was listed.
    listed: (Instant, Instant),
    /// The first window until it is proved: its transactions are prefetched but not delivered.
    likely: Option<Window>,
    failed: Vec<Discovery>,
    /// The last error of a way that may work later.
    failing: Option<UpstreamError>,
    /// The lowest height to read by the present list.
    floor: Height,
    /// Batches cut from windows, to be fetched when there is room.
    waiting: VecDeque<Batch>,
    prefetcher: Prefetcher<Event>,
    /// Chunks by number, each with its number of transactions, as it counts in `under_way`.
    chunks: ReorderBuffer<u64, usize, Chunk>,
    next_number: u64,
    /// An error that is reported after all chunks before it.
    failure: Option<UpstreamError>,
    /// Transactions in flight or not yet delivered, and their limit.
    under_way: usize,
    run_ahead: usize,
    chunk_size: usize,
    /// Listed transactions so far that no endpoint returns.
    missing: usize,
    /// Delivered with the first chunk.
    tip: Option<Tip>,
}

enum Event {
    OpenedList(Result<OpenedList>),
    /// A window that is not proved yet.
    Likely(Discovery, Listed),
    Listed(Discovery, Listed),
    Fetched(u64, Chunk),
}

impl Reading {
    fn new(source: EvmSource, request: GapRequest) -> Self {
        let wallet = match request.wallet {
            Address::Evm(wallet) => Some(wallet),
            Address::Solana(_) | Address::Tron(_) => None,
        };
        let limits = &source.inner.limits;
        Self {
            // A wallet of another family: there is nothing to read.
            listing: if wallet.is_some() { Listing::Closed(request.high) } else { Listing::Done },
            wallet: wallet.unwrap_or_default(),
            listed_to: None,
            listed: (Instant::now(), Instant::now()),
            likely: None,
            failed: source.second_opinion(request.another),
            failing: None,
            floor: request.low,
            waiting: VecDeque::new(),
            prefetcher: Prefetcher::new(&source.inner.readers),
            chunks: ReorderBuffer::default(),
            next_number: 0,
            failure: None,
            under_way: 0,
            run_ahead: limits.run_ahead_first,
            chunk_size: limits.chunk_first,
            missing: 0,
            tip: None,
            source,
            request,
        }
    }

    fn options(&self) -> CallOptions {
        CallOptions::new(self.request.lane.clone())
    }

    fn request_chunks(&mut self, room: usize) {
        while self.under_way < room {
            let Some(batch) = self.waiting.pop_front() else { return };
            let count = batch.candidates.len().max(1);
            self.under_way += count;
            let number = self.next_number;
            self.next_number += 1;
            self.chunks.insert_with(number, || (count, Fetch::InFlight { retries: 0 }));
            // The newest chunk is delivered first.
            let lane = self.request.lane.ranked(u64::MAX - batch.high);
            let chunk = self.source.clone().listed_chunk(batch, CallOptions::new(lane));
            self.prefetcher.push(chunk.map(move |chunk| Event::Fetched(number, chunk)).boxed());
        }
    }

    /// Opens the list, or requests its next window.
    fn request_window(&mut self) {
        match std::mem::replace(&mut self.listing, Listing::InFlight) {
            Listing::Closed(high) => {
                let wanted = ReadTarget {
                    wallet: self.wallet,
                    low: self.request.low,
                    high,
                    failed: self.failed.clone(),
                    error: self.failing.clone(),
                    options: self.options(),
                };
                let opened = self.source.clone().open(wanted);
                self.prefetcher.push(opened.map(Event::OpenedList).boxed());
            }
            Listing::Open(kind, mut lister) if self.may_expect() => self.prefetcher.push(
                async move {
                    let window = lister.likely().await;
                    Event::Likely(kind, (lister, window))
                }
                .boxed(),
            ),
            Listing::Open(kind, mut lister) | Listing::Idle(kind, mut lister) => {
                let listed = async move {
                    let window = lister.next().await;
                    Event::Listed(kind, (lister, window))
                };
                self.prefetcher.push(listed.boxed());
            }
            other @ (Listing::InFlight | Listing::Done) => self.listing = other,
        }
    }

    /// Prefetches the reference pools, which the prices of a wallet's first rows need. A failure is
    /// ignored: prices query them again.
    fn prefetch_references(&mut self) {
        if !self.request.first {
            return;
        }
        let (source, options) = (self.source.clone(), self.options());
        let learned = async move { source.native_prices(&[], &options).await };
        self.prefetcher.set_background_work(learned.map(drop).boxed());
    }

    fn opened(&mut self, opened: OpenedList) {
        let OpenedList { kind, lister, low, high, tip, .. } = opened;
        // A log search chooses its first endpoint by the requests in flight at each.
        if kind != Discovery::Logs {
            self.prefetch_references();
        }
        self.tip = tip.or(self.tip);
        (self.floor, self.listed.0) = (low, Instant::now());
        let is_below = high < low;
        self.listing = if is_below { Listing::Done } else { Listing::Open(kind, lister) };
    }

    /// Whether to prefetch before the proof: only for the first window, as a window that proves to
    /// be different discards all these requests.
    fn may_expect(&self) -> bool {
        self.listed_to.is_none() && self.source.inner.abilities.are_proved()
    }

    fn likely(&mut self, kind: Discovery, (lister, window): Listed) {
        match window {
            Ok(window) => {
                self.likely.clone_from(&window);
                if let Some(window) = window {
                    self.take(kind, window);
                }
                self.listing = Listing::Idle(kind, lister);
            }
            Err(error) => self.change_list(kind, error),
        }
    }

    /// Whether a window equals the prefetched one; if not, the requests of the prefetched one are
    /// discarded.
    fn matches_prefetched(&mut self, window: &Result<Option<Window>>) -> bool {
        let Some(likely) = self.likely.take() else { return false };
        if matches!(window, Ok(Some(window)) if *window == likely) {
            return true;
        }
        self.source.inner.abilities.note_unproved();
        self.waiting.clear();
        self.prefetcher.cancel_all();
        self.chunks.take_before(None);
        self.under_way = 0;
        self.listed_to = None;
        self.chunk_size = self.source.inner.limits.chunk_first;
        false
    }

    fn listed(&mut self, kind: Discovery, (lister, window): Listed) {
        if self.matches_prefetched(&window) {
            self.listing = Listing::Idle(kind, lister);
            return;
        }
        match window {
            Ok(Some(window)) => {
                self.take(kind, window);
                self.listing = Listing::Idle(kind, lister);
            }
            Ok(None) => {
                self.source.note_list_success(kind);
                // Another way reads what lies below.
                self.listing = self.listing_below(self.floor);
            }
            Err(error) => self.change_list(kind, error),
        }
    }

    /// Accepts the next chunk, unless too many transactions are missing by now.
    fn accept(&mut self, chunk: Chunk) -> Chunk {
        let chunk = chunk?;
        self.missing += chunk.missing.len();
        if self.missing > self.source.inner.limits.missing_max {
            let last = format!("no endpoint gives {} listed transactions", self.missing);
            return Err(UpstreamError::Unavailable { attempts: 1, last });
        }
        Ok(chunk)
    }

    fn pop_ready(&mut self) -> Option<RawChunk> {
        let (count, chunk) = self.chunks.pop_ready()?;
        match self.accept(chunk) {
            Ok(chunk) => {
                self.under_way = self.under_way.saturating_sub(count);
                Some(chunk)
            }
            Err(error) => {
                self.stop_listing(error);
                None
            }
        }
    }

    fn is_above_ready(&self, upper: &RawChunk) -> bool {
        let Some(Fetch::Ready(Ok(lower))) = self.chunks.values().next().map(|slot| &slot.fetch)
        else {
            return false;
        };
        let joined = upper.txs.len() + lower.txs.len();
        joined <= self.source.inner.limits.joined_max && upper.is_above(lower)
    }

    /// Stops the list after an error: anything below would leave a gap.
    fn stop_listing(&mut self, error: UpstreamError) {
        self.waiting.clear();
        self.prefetcher.cancel_all();
        self.chunks.take_before(None);
        self.fail(error);
    }

    /// Continues by the next way below the end of a list that failed.
    fn change_list(&mut self, kind: Discovery, error: UpstreamError) {
        let is_other = |other: &Discovery| *other != kind && !self.failed.contains(other);
        if !self.source.inner.discovery.iter().any(is_other) {
            return self.fail(error);
        }
        self.source.list_failed(kind, &error);
        self.failed.push(kind);
        if !error.is_final() {
            self.failing = Some(error);
        }
        self.listing = match self.listed_to {
            // Nothing was listed: the next list determines its own head.
            None => Listing::Closed(self.request.high),
            Some(above) => self.listing_below(above),
        };
    }

    fn listing_below(&self, height: Height) -> Listing {
        let below = height.checked_sub(1).filter(|below| *below >= self.request.low);
        below.map_or(Listing::Done, |high| Listing::Closed(Some(high)))
    }

    fn fail(&mut self, error: UpstreamError) {
        self.listing = Listing::Done;
        self.failure = Some(error);
    }

    /// Cuts a window into batches of whole heights.
    fn take(&mut self, kind: Discovery, window: Window) {
        if kind == Discovery::Logs && self.listed_to.is_none() {
            self.prefetch_references();
        }
        let Window { low, high, found, skipped, doubts } = window;
        let proof = Proof::of(kind.way()).with(doubts).with(kind.blind_spots());
        if skipped > 0 {
            tracing::debug!(low, high, skipped, "transactions that only brought something");
        }
        (self.listed_to, self.listed.1) = (Some(low), Instant::now());
        let (mut top, mut part): (Height, Vec<Candidate>) = (high, Vec::new());
        for candidate in found {
            let is_new_height = part.last().is_some_and(|last| last.block != candidate.block);
            if is_new_height && part.len() >= self.chunk_size {
                let bottom = candidate.block.saturating_add(1);
                self.cut((bottom, top), std::mem::take(&mut part), proof);
                top = candidate.block;
            }
            part.push(candidate);
        }
        self.cut((low, top), part, proof);
    }

    fn cut(&mut self, (low, high): (Height, Height), candidates: Vec<Candidate>, proof: Proof) {
        let limits = &self.source.inner.limits;
        self.chunk_size = (self.chunk_size * 2).min(limits.chunk_max);
        let (wallet, listed) = (self.wallet, self.listed);
        self.waiting.push_back(Batch { wallet, low, high, candidates, proof, listed });
    }
}

impl PrefetchReader for Reading {
    type Event = Event;
    type Chunk = RawChunk;

    fn prefetcher(&mut self) -> &mut Prefetcher<Event> {
        &mut self.prefetcher
    }

    fn has_ended(&self) -> bool {
        let is_listed = matches!(self.listing, Listing::Done) && self.waiting.is_empty();
        is_listed && self.chunks.len() == 0
    }

    fn finish(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Fetches listed transactions and requests the next window while there is room.
    fn request_more(&mut self, urgency: Urgency) {
        if urgency == Urgency::Ahead && self.prefetcher.run_ahead() == RunAhead::NOTHING {
            return;
        }
        let limits = &self.source.inner.limits;
        let wanted = self.prefetcher.run_ahead().transactions();
        let room = self.run_ahead.max(wanted).min(limits.run_ahead_max);
        self.request_chunks(room);
        if self.likely.is_some() || self.under_way < room && self.waiting.is_empty() {
            self.request_window();
        }
    }

    fn absorb(&mut self, event: Event) -> Result<()> {
        match event {
            Event::OpenedList(Ok(opened)) => self.opened(opened),
            Event::OpenedList(Err(error)) => self.fail(error),
            Event::Likely(kind, listed) => self.likely(kind, listed),
            Event::Listed(kind, listed) => self.listed(kind, listed),
            Event::Fetched(number, chunk) => self.chunks.put(&number, chunk),
        }
        Ok(())
    }

    fn deliver(&mut self) -> Result<Option<RawChunk>> {
        if self.likely.is_some() {
            return Ok(None);
        }
        let Some(mut chunk) = self.pop_ready() else { return Ok(None) };
        chunk.tip = self.tip.take();
        // Each delivered chunk is enriched and stored by itself, which takes several answers. While
        // it is not known that more is wanted, the first rows are delivered alone for speed.
        while self.prefetcher.run_ahead() != RunAhead::Unknown
            && self.is_above_ready(&chunk)
            && let Some(lower) = self.pop_ready()
        {
            chunk.join(lower);
        }
        self.prefetcher.count_delivered(chunk.txs.len());
        let most = self.source.inner.limits.run_ahead_max;
        self.run_ahead = (self.run_ahead * 2).min(most);
        Ok(Some(chunk))
    }
}
