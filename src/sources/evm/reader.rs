//! One gap of a wallet, read: windows from a list, chunks fetched ahead in parallel and given in
//! order.
//!
//! All requests under way live in the reader, so that dropping a `next` loses nothing and dropping
//! the reader stops everything.

use std::collections::VecDeque;
use std::convert::Infallible;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt as _, StreamExt as _};

use super::EvmSource;
use super::discovery::{Candidate, Discovery, Lister, Window};
use super::fetch::Batch;
use super::open::{Opened, Wanted};
use crate::decode::evm::Account;
use crate::domain::{Address, Height, Proof, Resume};
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;
use crate::sources::source::{GapRequest, RawChunk, Tip};

type Chunk = Result<RawChunk, UpstreamError>;
type Listed = (Lister, Result<Option<Window>, UpstreamError>);

/// What the list is doing.
enum Listing {
    /// To be opened, down from this height; `None`: from the head.
    Closed(Option<Height>),
    Opening(BoxFuture<'static, Result<Opened, UpstreamError>>),
    Idle(Discovery, Lister),
    Asked(Discovery, BoxFuture<'static, Listed>),
    Done,
}

pub(crate) struct EvmReader {
    source: EvmSource,
    request: GapRequest,
    wallet: Account,
    listing: Listing,
    /// What is listed ends above this height; `None` while nothing is.
    listed_to: Option<Height>,
    failed: Vec<Discovery>,
    /// Cut out of windows, to be fetched when there is room.
    waiting: VecDeque<Batch>,
    /// Each with its transactions as they count for the run-ahead.
    fetches: FuturesOrdered<BoxFuture<'static, (usize, Chunk)>>,
    ready: VecDeque<(usize, RawChunk)>,
    /// Told behind all chunks that came before it.
    failure: Option<UpstreamError>,
    /// Transactions asked for or not yet delivered, and how many may be.
    under_way: usize,
    run_ahead: usize,
    chunk_size: usize,
    eager: bool,
    /// Listed transactions so far that no endpoint gives.
    missing: usize,
    /// To be told with the first chunk.
    tip: Option<Tip>,
}

impl std::fmt::Debug for EvmReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EvmReader").field("listed_to", &self.listed_to).finish_non_exhaustive()
    }
}

enum Event {
    Opened(Result<Opened, UpstreamError>),
    Listed(Discovery, Listed),
    Fetched(usize, Chunk),
}

impl EvmReader {
    pub(super) fn new(source: EvmSource, request: GapRequest) -> Self {
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
            failed: source.second_opinion(request.another),
            waiting: VecDeque::new(),
            fetches: FuturesOrdered::new(),
            ready: VecDeque::new(),
            failure: None,
            under_way: 0,
            run_ahead: limits.run_ahead_first,
            chunk_size: limits.chunk_first,
            eager: false,
            missing: 0,
            tip: None,
            source,
            request,
        }
    }

    pub(crate) fn set_eager(&mut self, eager: bool) {
        self.eager = eager;
    }

    /// The next chunk, newest first; `None` after the last one. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<RawChunk>, UpstreamError> {
        loop {
            if let Some((count, mut chunk)) = self.ready.pop_front() {
                chunk.tip = self.tip.take();
                let limits = &self.source.inner.limits;
                self.under_way = self.under_way.saturating_sub(count);
                self.run_ahead = (self.run_ahead * 2).min(limits.run_ahead_max);
                return Ok(Some(chunk));
            }
            self.begin_more();
            if self.is_idle() {
                return self.failure.take().map_or(Ok(None), Err);
            }
            self.step().await;
        }
    }

    /// Works on what is under way without delivering; never ready.
    pub(crate) async fn drive(&mut self) -> Infallible {
        loop {
            self.begin_more();
            if self.is_idle() {
                return std::future::pending().await;
            }
            self.step().await;
        }
    }

    fn is_idle(&self) -> bool {
        let lists = matches!(self.listing, Listing::Opening(_) | Listing::Asked(..));
        !lists && self.fetches.is_empty()
    }

    fn options(&self) -> CallOptions {
        CallOptions::new(self.request.lane.clone())
    }

    /// Fetches what is listed and asks the list for more, while there is room.
    fn begin_more(&mut self) {
        let limits = &self.source.inner.limits;
        let room = if self.eager { limits.run_ahead_max } else { self.run_ahead };
        while self.under_way < room {
            let Some(batch) = self.waiting.pop_front() else { break };
            let count = batch.candidates.len().max(1);
            self.under_way += count;
            // The newest is delivered first.
            let lane = self.request.lane.ranked(u64::MAX - batch.high);
            let chunk = self.source.clone().chunk(batch, CallOptions::new(lane));
            self.fetches.push_back(chunk.map(move |chunk| (count, chunk)).boxed());
        }
        if self.under_way >= room || !self.waiting.is_empty() {
            return;
        }
        self.listing = match std::mem::replace(&mut self.listing, Listing::Done) {
            Listing::Closed(high) => {
                let wanted = Wanted {
                    wallet: self.wallet,
                    low: self.request.low,
                    high,
                    failed: self.failed.clone(),
                    options: self.options(),
                };
                Listing::Opening(self.source.clone().open(wanted).boxed())
            }
            Listing::Idle(kind, mut lister) => {
                let asked = async move {
                    let window = lister.next().await;
                    (lister, window)
                };
                Listing::Asked(kind, asked.boxed())
            }
            other @ (Listing::Opening(_) | Listing::Asked(..) | Listing::Done) => other,
        };
    }

    /// Waits for one thing to happen. Cancel safe: what is under way stays.
    async fn step(&mut self) {
        let listing = &mut self.listing;
        let list = async {
            match listing {
                Listing::Opening(opening) => Event::Opened(opening.await),
                Listing::Asked(kind, asked) => Event::Listed(*kind, asked.await),
                Listing::Closed(_) | Listing::Idle(..) | Listing::Done => {
                    std::future::pending().await
                }
            }
        };
        let fetches = &mut self.fetches;
        let fetch = async {
            match fetches.next().await {
                Some((count, chunk)) => Event::Fetched(count, chunk),
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            biased;
            event = fetch => event,
            event = list => event,
        };
        self.handle(event);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Opened(Ok(Opened { kind, lister, high, tip })) => {
                self.tip = tip.or(self.tip);
                self.listing = if high < self.request.low {
                    Listing::Done
                } else {
                    Listing::Idle(kind, lister)
                };
            }
            Event::Opened(Err(error)) => self.fail(error),
            Event::Listed(kind, (lister, Ok(Some(window)))) => {
                self.take(kind, window);
                self.listing = Listing::Idle(kind, lister);
            }
            Event::Listed(kind, (_, Ok(None))) => {
                self.source.note_list_success(kind);
                self.listing = Listing::Done;
            }
            Event::Listed(kind, (_, Err(error))) => self.change_list(kind, error),
            Event::Fetched(count, Ok(chunk)) => self.deliver(count, chunk),
            Event::Fetched(_, Err(error)) => self.cut_off(error),
        }
    }

    fn deliver(&mut self, count: usize, chunk: RawChunk) {
        self.missing += chunk.missing.len();
        if self.missing > self.source.inner.limits.missing_max {
            let last = format!("no endpoint gives {} listed transactions", self.missing);
            return self.cut_off(UpstreamError::Unavailable { attempts: 1, last });
        }
        self.ready.push_back((count, chunk));
    }

    /// What lies below would leave a gap above it.
    fn cut_off(&mut self, error: UpstreamError) {
        self.waiting.clear();
        self.fetches.clear();
        self.fail(error);
    }

    /// What is found goes on below where this list ended, by the next way.
    fn change_list(&mut self, kind: Discovery, error: UpstreamError) {
        let others = self
            .source
            .inner
            .discovery
            .iter()
            .filter(|other| **other != kind && !self.failed.contains(*other));
        if others.count() == 0 {
            return self.fail(error);
        }
        self.source.list_failed(kind, &error);
        self.failed.push(kind);
        self.listing = match self.listed_to {
            // Nothing was listed: the next one tells its own head.
            None => Listing::Closed(self.request.high),
            Some(above) => match above.checked_sub(1).filter(|high| *high >= self.request.low) {
                Some(high) => Listing::Closed(Some(high)),
                None => Listing::Done,
            },
        };
    }

    fn fail(&mut self, error: UpstreamError) {
        self.listing = Listing::Done;
        self.failure = Some(error);
    }

    /// Cuts a window into chunks, each of whole heights.
    fn take(&mut self, kind: Discovery, window: Window) {
        let Window { low, high, found, resume, skipped, doubts } = window;
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
                self.cut((bottom, top), std::mem::take(&mut part), None, proof);
                top = candidate.block;
            }
            part.push(candidate);
        }
        self.cut((low, top), part, resume, proof);
    }

    fn cut(
        &mut self,
        (low, high): (Height, Height),
        candidates: Vec<Candidate>,
        resume: Option<Resume>,
        proof: Proof,
    ) {
        let limits = &self.source.inner.limits;
        self.chunk_size = (self.chunk_size * 2).min(limits.chunk_max);
        let wallet = self.wallet;
        self.waiting.push_back(Batch { wallet, low, high, candidates, resume, proof });
    }
}
