//! One gap of a wallet, read: windows from a list, chunks prefetched in parallel and delivered in
//! order.

use std::collections::VecDeque;
use std::convert::Infallible;

use futures_util::FutureExt as _;

use super::EvmSource;
use super::discovery::{Candidate, Discovery, Window};
use super::fetch::Batch;
use super::lister::Lister;
use super::open::{Opened, Wanted};
use crate::decode::evm::Account;
use crate::domain::{Address, Height, Proof};
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;
use crate::sources::chunk::{GapRequest, RawChunk, Tip};
use crate::sources::prefetch::{
    Fetch, PrefetchReader, Prefetcher, ReorderBuffer, RunAhead, Urgency, drive, next_chunk,
};

type Chunk = Result<RawChunk, UpstreamError>;
type Listed = (Lister, Result<Option<Window>, UpstreamError>);

/// What the list is doing.
enum Listing {
    /// To be opened, down from this height; `None`: from the head.
    Closed(Option<Height>),
    /// Nothing was listed by it.
    Open(Discovery, Lister),
    Idle(Discovery, Lister),
    /// Being opened, or its next window is requested.
    InFlight,
    Done,
}

/// Reads one gap.
pub(crate) struct EvmReader(Reading);

impl EvmReader {
    pub(super) fn new(source: EvmSource, request: GapRequest) -> Self {
        Self(Reading::new(source, request))
    }

    pub(crate) fn set_run_ahead(&mut self, run_ahead: RunAhead) {
        self.0.prefetcher.set_run_ahead(run_ahead);
    }

    /// The next chunk, newest first; `None` after the last one. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<RawChunk>, UpstreamError> {
        next_chunk(&mut self.0).await
    }

    /// Works on what is in flight without delivering; never ready.
    pub(crate) async fn drive(&mut self) -> Infallible {
        drive(&mut self.0).await
    }
}

struct Reading {
    source: EvmSource,
    request: GapRequest,
    wallet: Account,
    listing: Listing,
    /// What is listed ends above this height; `None` while nothing is.
    listed_to: Option<Height>,
    /// The first window, as long as it is not proved: what it holds is requested and not delivered.
    likely: Option<Window>,
    failed: Vec<Discovery>,
    /// The last error of those that may work later.
    failing: Option<UpstreamError>,
    /// The lowest height that the list in hand is read for.
    floor: Height,
    /// Cut out of windows, to be fetched when there is room.
    waiting: VecDeque<Batch>,
    prefetcher: Prefetcher<Event>,
    /// By their numbers, each with its transactions as they count for the run-ahead.
    chunks: ReorderBuffer<u64, usize, Chunk>,
    next_number: u64,
    /// Reported after all chunks before it.
    failure: Option<UpstreamError>,
    /// Transactions in flight or not yet delivered, and how many may be.
    under_way: usize,
    run_ahead: usize,
    chunk_size: usize,
    /// Listed transactions so far that no endpoint gives.
    missing: usize,
    /// Delivered with the first chunk.
    tip: Option<Tip>,
}

enum Event {
    Opened(Result<Opened, UpstreamError>),
    /// What the list shows before it is proved.
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
            // Of another family: there is nothing to read.
            listing: if wallet.is_some() { Listing::Closed(request.high) } else { Listing::Done },
            wallet: wallet.unwrap_or_default(),
            listed_to: None,
            likely: None,
            failed: source.second_opinion(request.another),
            failing: None,
            floor: request.low,
            waiting: VecDeque::new(),
            prefetcher: Prefetcher::new(&source.inner.readers),
            chunks: ReorderBuffer::new(),
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
            // The newest is delivered first.
            let lane = self.request.lane.ranked(u64::MAX - batch.high);
            let chunk = self.source.clone().chunk(batch, CallOptions::new(lane));
            self.prefetcher.push(chunk.map(move |chunk| Event::Fetched(number, chunk)).boxed());
        }
    }

    /// Opens the list, or requests its next window.
    fn request_window(&mut self) {
        match std::mem::replace(&mut self.listing, Listing::InFlight) {
            Listing::Closed(high) => {
                let wanted = Wanted {
                    wallet: self.wallet,
                    low: self.request.low,
                    high,
                    failed: self.failed.clone(),
                    error: self.failing.clone(),
                    options: self.options(),
                };
                let opened = self.source.clone().open(wanted);
                self.prefetcher.push(opened.map(Event::Opened).boxed());
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

    /// The first rows of a wallet wait for their prices, and these for what the reference pools are. It is
    /// asked for again there where it fails here.
    fn learn_references(&mut self) {
        if !self.request.first {
            return;
        }
        let (source, options) = (self.source.clone(), self.options());
        let learned = async move { source.native_prices(&[], &options).await };
        self.prefetcher.set_background_work(learned.map(drop).boxed());
    }

    fn opened(&mut self, opened: Opened) {
        let Opened { kind, lister, low, high, tip, .. } = opened;
        // A search for logs chooses its first endpoint by what is under way at each.
        if kind != Discovery::Logs {
            self.learn_references();
        }
        self.tip = tip.or(self.tip);
        self.floor = low;
        let is_below = high < low;
        self.listing = if is_below { Listing::Done } else { Listing::Open(kind, lister) };
    }

    /// Only the first window: one that proves to be another takes all that was requested with it.
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

    /// Whether a window is the one that was likely. What was requested of another one is dropped.
    fn proves_likely(&mut self, window: &Result<Option<Window>, UpstreamError>) -> bool {
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
        if self.proves_likely(&window) {
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

    /// A chunk whose turn it is, unless more transactions are missing by now than may be.
    fn accept(&mut self, chunk: Chunk) -> Chunk {
        let chunk = chunk?;
        self.missing += chunk.missing.len();
        if self.missing > self.source.inner.limits.missing_max {
            let last = format!("no endpoint gives {} listed transactions", self.missing);
            return Err(UpstreamError::Unavailable { attempts: 1, last });
        }
        Ok(chunk)
    }

    /// The next chunk, where it is ready and accepted.
    fn pop_ready(&mut self) -> Option<RawChunk> {
        let (count, chunk) = self.chunks.pop_ready()?;
        match self.accept(chunk) {
            Ok(chunk) => {
                self.under_way = self.under_way.saturating_sub(count);
                Some(chunk)
            }
            Err(error) => {
                self.cut_off(error);
                None
            }
        }
    }

    /// Whether the next chunk is ready and makes one with that above it.
    fn is_above_ready(&self, upper: &RawChunk) -> bool {
        let Some(Fetch::Ready(Ok(lower))) = self.chunks.values().next().map(|slot| &slot.fetch)
        else {
            return false;
        };
        let joined = upper.txs.len() + lower.txs.len();
        joined <= self.source.inner.limits.joined_max && upper.is_above(lower)
    }

    /// What lies below would leave a gap above it.
    fn cut_off(&mut self, error: UpstreamError) {
        self.waiting.clear();
        self.prefetcher.cancel_all();
        self.chunks.take_before(None);
        self.fail(error);
    }

    /// What is found goes on below where this list ended, by the next way.
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
            // Nothing was listed: the next list reports its own head.
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

    /// Cuts a window into chunks, each of whole heights.
    fn take(&mut self, kind: Discovery, window: Window) {
        if kind == Discovery::Logs && self.listed_to.is_none() {
            self.learn_references();
        }
        let Window { low, high, found, skipped, doubts } = window;
        let proof = Proof::of(kind.way()).with(doubts).with(kind.blind_spots());
        if skipped > 0 {
            tracing::debug!(low, high, skipped, "transactions that only brought something");
        }
        self.listed_to = Some(low);
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
        let wallet = self.wallet;
        self.waiting.push_back(Batch { wallet, low, high, candidates, proof });
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

    fn finish(&mut self) -> Result<(), UpstreamError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Fetches what is listed and asks the list for more, while there is room.
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

    fn absorb(&mut self, event: Event) -> Result<(), UpstreamError> {
        match event {
            Event::Opened(Ok(opened)) => self.opened(opened),
            Event::Opened(Err(error)) => self.fail(error),
            Event::Likely(kind, listed) => self.likely(kind, listed),
            Event::Listed(kind, listed) => self.listed(kind, listed),
            Event::Fetched(number, chunk) => self.chunks.put(&number, chunk),
        }
        Ok(())
    }

    fn deliver(&mut self) -> Result<Option<RawChunk>, UpstreamError> {
        if self.likely.is_some() {
            return Ok(None);
        }
        let Some(mut chunk) = self.pop_ready() else { return Ok(None) };
        chunk.tip = self.tip.take();
        // Each is completed and stored in a turn of its own, which takes several answers. Where it is
        // not known that more is wanted, the first rows come sooner alone.
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
