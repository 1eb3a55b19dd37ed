//! Reads one gap of a wallet: decides what is requested next and what can be delivered.

use tokio::time::{Instant, sleep};

use super::TronSource;
use super::depth::EventDepth;
use super::fetch::{Fetched, want_by_first_answers, want_found, want_listed};
use super::list::{ListKind, PAGE_MAX};
use super::list_proof::{ListProof, ProofAnswer};
use super::lister::{ListError, ListState, Lister, account};
use super::logs::Found;
use super::open::ReadRange;
use super::timeline::{Key, Timeline};
use super::windows::Windows;
use super::wire::{HeightRange, Page};
use crate::decode::evm::{Account, Log, TRANSFER};
use crate::decode::tron::Transaction;
use crate::domain::{Doubts, Height, Proof, Resume, TxId, Way};
use crate::rpc::{CallOptions, EndpointId, Result, UpstreamError};
use crate::sources::chunk::{GapRequest, RawChunk, RawTx, Tip};
use crate::sources::prefetch::{
    ChunkReader, ChunkSizes, Depth, PrefetchReader, Prefetcher, Ready, Urgency,
};

enum Event {
    Opened(Result<ReadRange>),
    /// The lowest wanted block that nodes keep, looked up if nothing else shows how deep events are
    /// kept.
    Kept(Result<Option<EventDepth>>),
    Page(usize, Result<(Page, EndpointId), ListError>),
    /// Whether an endpoint returned lists while events are read.
    Probed(bool),
    ProofAnswer(Result<ProofAnswer>),
    Searched(Vec<HeightRange>, Result<Vec<(Found, bool)>>),
    /// The nodes that were searched down from a height have named this chain again.
    Named(Height, Result<()>),
    Fetched(Key, Result<Fetched>),
}

impl TronSource {
    pub(in crate::sources) fn read(&self, request: GapRequest) -> Box<dyn ChunkReader> {
        Box::new(Reading::new(self.clone(), request))
    }
}

struct Reading {
    source: TronSource,
    request: GapRequest,
    wallet: Account,
    options: CallOptions,
    /// `None` until it is known from where to read, and how deep if by events.
    lister: Option<Lister>,
    timeline: Timeline,
    prefetcher: Prefetcher<Event>,
    /// Delivered with the first chunk.
    tip: Option<Tip>,
    ended: bool,
    /// The lowest block that nodes keep: heights below stay unread.
    cut: Option<Height>,
    /// Doubts of everything read by events, and windows without two equal answers.
    doubts: Doubts,
    unconfirmed: Vec<HeightRange>,
    /// When the list or the events were opened, and heights from which searched nodes have not
    /// named this chain since (0: those of the lists' first pages).
    begun: Instant,
    unnamed: Vec<Height>,
    list_proof: ListProof,
    /// Number of queries for lists while events are read; `None`: no queries.
    probes: Option<u32>,
    /// Number of listed transactions that no endpoint returned.
    missing: usize,
    /// Grows from chunk to chunk, for early first rows and few later commits.
    chunk_min: usize,
}

impl Reading {
    fn new(source: TronSource, request: GapRequest) -> Self {
        let mut reader = Self {
            wallet: account(request.wallet),
            options: CallOptions::new(request.lane.clone()),
            lister: None,
            timeline: Timeline::new(request.low, request.high.unwrap_or(request.low)),
            prefetcher: Prefetcher::new(&source.inner.readers),
            tip: None,
            ended: false,
            cut: None,
            doubts: Doubts::NONE,
            unconfirmed: Vec::new(),
            begun: Instant::now(),
            unnamed: Vec::new(),
            list_proof: ListProof::new(0, Vec::new()),
            probes: None,
            missing: 0,
            chunk_min: 1,
            source,
            request,
        };
        reader.begin(resume(reader.request.resume.as_ref()));
        reader
    }

    fn begin(&mut self, resume_at: Option<(Height, u64)>) {
        let (source, request, options) =
            (self.source.clone(), self.request.clone(), self.options.clone());
        let fits = |(height, _): &(Height, u64)| request.high == height.checked_sub(1);
        let resume_at = resume_at.filter(fits).map(|(_, at)| at);
        self.prefetcher.push(Box::pin(async move {
            Event::Opened(source.open(&request, resume_at, &options).await)
        }));
    }

    fn page(&mut self, number: usize, page: Result<(Page, EndpointId), ListError>) -> Result<()> {
        let Some(Lister::Index { listings, low_at }) = &mut self.lister else { return Ok(()) };
        let low_at = *low_at;
        let Some(listing) = listings.get_mut(number) else { return Ok(()) };
        let (mut page, by) = match page {
            Ok(given) => given,
            Err(ListError::Refused(last)) if !self.source.has_lists() => {
                tracing::info!(reason = %last, "account lists are refused; searching events instead, which show no TRC-10 trades");
                // Entries of the other list are discarded.
                self.prefetcher.cancel_all();
                self.search_events();
                self.probe(0);
                return Ok(());
            }
            // Lists that have worked are waited for, because events show less.
            Err(error) => return Err(self.source.list_error(error)),
        };
        let is_top = !listing.list.is_begun();
        (listing.is_asked, listing.last_by) = (false, Some(by));
        if !listing.list.absorb(&page, by) {
            if listing.list.misses() >= self.source.inner.limits.misses_max {
                return Err(self.source.malformed(by, "a list that lacks what it held before"));
            }
            return Ok(());
        }
        self.list_proof.note(listing.kind, by, page.items, is_top);
        page.rows.retain(|row| row.at >= low_at);
        self.timeline.add(page.rows);
        // Once for all first pages: nothing is delivered before the last of them.
        let is_begun = is_top && listings.iter().all(|listing| listing.list.is_begun());
        if is_begun {
            self.name_again(0);
        }
        Ok(())
    }

    fn search_events(&mut self) {
        self.lister = None;
        let (source, options) = (self.source.clone(), self.options.clone());
        let (low, high) = (self.request.low, self.timeline.next_high);
        self.prefetcher.push(Box::pin(async move {
            Event::Kept(source.events_kept(low, high, &options).await)
        }));
    }

    /// Queries lists again after a pause, until one is returned or they are known to be missing.
    fn probe(&mut self, asked: u32) {
        if self.source.has_no_lists() || asked >= PROBES_MAX {
            self.probes = None;
            return;
        }
        self.probes = Some(asked);
        let (source, wallet, options) =
            (self.source.clone(), self.request.wallet, self.options.clone());
        self.prefetcher.push(Box::pin(async move {
            sleep(source.inner.limits.lists_probe_pause).await;
            Event::Probed(source.probe_lists(wallet, &options).await)
        }));
    }

    fn probed(&mut self, has_lists: bool) {
        if !has_lists {
            return self.probe(self.probes.unwrap_or(0) + 1);
        }
        self.probes = None;
        if self.ended {
            return;
        }
        // The remaining heights are read by lists; the caller rereads those that were read by
        // events.
        self.prefetcher.cancel_all();
        self.unnamed.clear();
        (self.lister, self.cut, self.doubts) = (None, None, Doubts::NONE);
        self.request.high = Some(self.timeline.next_high);
        self.begin(None);
    }

    /// Continues by events, down to the depth that nodes keep: a search below finds nothing and
    /// proves nothing.
    fn search_from(&mut self, kept: Option<EventDepth>) -> Result<()> {
        let (low, high) = (self.request.low, self.timeline.next_high);
        let Some(EventDepth { from: kept, doubts }) = kept.filter(|kept| kept.from <= high) else {
            return Err(UpstreamError::HistoryCut { first: high + 1 });
        };
        self.cut = (kept > low).then_some(kept);
        self.doubts = doubts;
        self.unnamed.clear();
        self.timeline = Timeline::new(kept, high);
        let limits = &self.source.inner.limits;
        let windows = Windows::new(kept, high, limits.logs_range_max, limits.logs_batch_max);
        self.lister = Some(Lister::Events { windows, asked: 0 });
        Ok(())
    }

    fn searched(
        &mut self,
        asked_for: Vec<HeightRange>,
        found: Result<Vec<(Found, bool)>>,
    ) -> Result<()> {
        let found = found?;
        let Some(Lister::Events { windows, asked }) = &mut self.lister else { return Ok(()) };
        *asked -= 1;
        let mut top = None;
        for (window, (found, is_confirmed)) in asked_for.into_iter().zip(found) {
            match found {
                Found::Rows(rows) => {
                    top = top.max(Some(window.high));
                    windows.known(window);
                    self.unconfirmed.extend(Some(window).filter(|_| !is_confirmed));
                    self.timeline.add(rows);
                }
                Found::TooMuch(range) if windows.shrink(window, range) => {}
                Found::Unread => windows.mark_for_retry(window),
                Found::TooMuch(_) => {
                    let message = "a single block holds too many events".to_owned();
                    let endpoint = "eth_getLogs".to_owned();
                    return Err(UpstreamError::Rpc { endpoint, code: 0, message });
                }
            }
        }
        if let Some(top) = top {
            self.name_again(top);
        }
        Ok(())
    }

    /// Asks the nodes that were searched for their chain while the transactions are fetched: events
    /// of another one would be none, and the first entries of its lists overlap with nothing.
    fn name_again(&mut self, top: Height) {
        self.unnamed.push(top);
        let (source, options) = (self.source.clone(), self.options.clone());
        let read = (self.begun, Instant::now());
        self.prefetcher.push(Box::pin(async move {
            Event::Named(top, source.confirm_chain(read, &options).await)
        }));
    }

    fn named(&mut self, top: Height) {
        if let Some(at) = self.unnamed.iter().position(|one| *one == top) {
            self.unnamed.swap_remove(at);
        }
    }

    fn fetched(&mut self, key: &Key, fetched: Result<Fetched>) -> Result<()> {
        let last = match fetched {
            Ok(Fetched::Transaction(tx) | Fetched::Failed(tx))
                if !self.timeline.is_of(key, &tx) =>
            {
                "a listed transaction is given with another block".to_owned()
            }
            Ok(Fetched::Transaction(tx)) => {
                self.timeline.put(key, tx);
                return Ok(());
            }
            Ok(Fetched::Failed(tx)) => {
                self.timeline.pass(key, Some(tx.call.block));
                return Ok(());
            }
            Ok(Fetched::Unwanted) => {
                self.timeline.pass(key, None);
                return Ok(());
            }
            Ok(Fetched::Lost(height)) => return self.lost(key, height),
            Ok(Fetched::Missing) => "a listed transaction is given by no endpoint".to_owned(),
            Err(UpstreamError::Unavailable { last, .. }) => last,
            // One transaction that nodes do not return must not block the others.
            Err(error @ (UpstreamError::Rpc { .. } | UpstreamError::Malformed { .. })) => {
                error.to_string()
            }
            Err(error) => return Err(error),
        };
        let attempts = self.timeline.mark_for_retry(key);
        // The last attempt is by its block.
        if attempts <= self.source.inner.limits.missing_tries_max {
            return Ok(());
        }
        Err(UpstreamError::Unavailable { attempts, last })
    }

    fn lost(&mut self, key: &Key, height: Height) -> Result<()> {
        self.missing += 1;
        let most = self.source.inner.limits.missing_max;
        if self.missing > most {
            let last = format!("more than {most} listed transactions are given by no endpoint");
            return Err(UpstreamError::unavailable(last));
        }
        tracing::warn!(height, id = %hex::encode(key.1), "no endpoint returns a listed transaction; it is reported as missing and requested again later");
        self.timeline.mark_missing(key, height);
        Ok(())
    }

    fn frontier(&self) -> Option<u64> {
        let lister = self.lister.as_ref();
        lister.map_or(Some(u64::MAX), |lister| lister.frontier(self.timeline.floor()))
    }

    /// Whether the list of transactions has ended. If it is empty, the first rows of the list of
    /// token movements would otherwise be delivered without that doubt.
    fn has_all_transactions(&self) -> bool {
        let Some(Lister::Index { listings, .. }) = &self.lister else { return false };
        let of_kind = |one: &&ListState| one.kind == ListKind::Transactions;
        listings.iter().find(of_kind).is_some_and(|one| one.list.frontier(0).is_none())
    }

    fn ask_proof(&mut self) {
        let Some(Lister::Index { listings, .. }) = &self.lister else { return };
        let is_begun = listings.iter().all(|listing| listing.list.is_begun());
        let has_ended = self.has_all_transactions();
        let [transactions, _] = &**listings;
        let ended = transactions.last_by.filter(|_| has_ended);
        let oldest = transactions.list.shown_above();
        let question = self.list_proof.question(is_begun, has_ended);
        let depth = || ended.and_then(|by| self.list_proof.depth_question(by, oldest));
        let Some(question) = question.or_else(depth) else { return };
        let (source, options) = (self.source.clone(), self.options.clone());
        let about = (self.request.wallet, self.list_proof.top_at);
        self.prefetcher.push(Box::pin(async move {
            Event::ProofAnswer(source.confirm(question, about, &options).await)
        }));
    }

    fn is_unproved(&self) -> bool {
        match &self.lister {
            Some(Lister::Index { .. }) => self.list_proof.is_open(self.has_all_transactions()),
            Some(Lister::Events { .. }) => false,
            None => true,
        }
    }

    fn ask_lists(&mut self, frontier: Option<u64>) {
        let Some(frontier) = frontier else { return };
        let floor = self.timeline.floor();
        let limits = &self.source.inner.limits;
        match &mut self.lister {
            Some(Lister::Index { listings, low_at }) => {
                for (number, listing) in listings.iter_mut().enumerate() {
                    // Only the list that delays the others.
                    let is_behind = listing.list.frontier(floor) == Some(frontier);
                    if listing.is_asked || !is_behind {
                        continue;
                    }
                    listing.is_asked = true;
                    let (source, wallet) = (self.source.clone(), self.request.wallet);
                    let (kind, cursor) = (listing.kind, listing.list.cursor.clone());
                    let is_short = cursor.is_first && *low_at > 0;
                    let limit = if is_short { limits.refresh_page } else { PAGE_MAX };
                    let mut options = self.options.clone();
                    let last_by = listing.last_by;
                    options.avoid = last_by.filter(|_| listing.list.is_second_look());
                    self.prefetcher.push(Box::pin(async move {
                        let page = if cursor.is_first {
                            let of = (kind, &cursor, limit);
                            source.newest_page(wallet, of, last_by, &options).await
                        } else {
                            source.page_twice(wallet, kind, &cursor, &options).await
                        };
                        Event::Page(number, page)
                    }));
                }
            }
            Some(Lister::Events { windows, asked }) => {
                let wanted = self.prefetcher.run_ahead().transactions() / limits.logs_ahead_for;
                while *asked < wanted.clamp(limits.logs_ahead_min, limits.logs_ahead_max) {
                    let planned = windows.plan();
                    if planned.is_empty() {
                        return;
                    }
                    *asked += 1;
                    let (source, wallet, options) =
                        (self.source.clone(), self.wallet, self.options.clone());
                    self.prefetcher.push(Box::pin(async move {
                        let found = source.search(&wallet, &planned, &options).await;
                        Event::Searched(planned, found)
                    }));
                }
            }
            None => {}
        }
    }

    fn ask_transactions(&mut self, urgency: Urgency) {
        let limits = &self.source.inner.limits;
        let depth = Depth {
            min: limits.run_ahead_min,
            max: limits.run_ahead_max,
            total_max: limits.run_ahead_total_max,
        };
        let window = self.prefetcher.window(depth, self.timeline.under_way(), urgency);
        while self.timeline.under_way() < window {
            let Some(taken) = self.timeline.take() else { return };
            let (source, wallet, mut options) =
                (self.source.clone(), self.wallet, self.options.clone());
            // The newest transaction is delivered first.
            options.lane = options.lane.ranked(u64::MAX - taken.key.0.0);
            let pause = limits.missing_pause * taken.tries;
            self.prefetcher.push(Box::pin(async move {
                if !pause.is_zero() {
                    sleep(pause).await;
                }
                let fetched = source.fetch_listed(&taken, &wallet, &options).await;
                Event::Fetched(taken.key, fetched)
            }));
        }
    }

    /// Doubt of a chunk that was just taken if a list may have returned one of its moments in part.
    fn doubts_of_cuts(&mut self) -> Doubts {
        let Some(Lister::Index { listings, .. }) = &mut self.lister else { return Doubts::NONE };
        let edge = self.timeline.edge.filter(|_| !self.ended);
        let reached = edge.map_or(0, |(_, at)| at);
        let cut = listings.iter_mut().filter_map(|one| one.list.take_cuts(reached).then_some(()));
        if cut.count() > 0 { Doubts::UNCONFIRMED } else { Doubts::NONE }
    }

    fn proof_by_events(&self, low: Height, high: Height) -> Proof {
        let overlaps = |window: &HeightRange| window.low <= high && low <= window.high;
        let is_unconfirmed = self.unconfirmed.iter().any(overlaps);
        let unconfirmed = if is_unconfirmed { Doubts::UNCONFIRMED } else { Doubts::NONE };
        Proof::of(Way::Events).with(Doubts::TRC10).with(self.doubts).with(unconfirmed)
    }
}

impl Reading {
    /// Whether transactions moved tokens of the wallet while the lists of these have no entry of it:
    /// tokens that every index lists, or any where the lists have no entry either of an account that
    /// is used all the time, as they may be empty for everyone.
    fn lists_no_tokens(&self, txs: &[Transaction]) -> bool {
        let wallet = account(self.request.wallet);
        let is_silent = self.source.is_silent(ListKind::Transfers);
        let moves = |log: &Log| match log.topics.as_slice() {
            [TRANSFER, from, to] => [from, to].iter().any(|end| end.ends_with(&wallet)),
            _ => false,
        };
        let is_some = |log: &Log| log.data.iter().any(|byte| *byte != 0);
        let is_listed = |log: &Log| is_silent || self.source.is_reference(&log.address);
        let shows = |log: &Log| moves(log) && is_some(log) && is_listed(log);
        !self.list_proof.shows_transfers && txs.iter().any(|tx| tx.call.logs.iter().any(shows))
    }
}

impl PrefetchReader for Reading {
    type Event = Event;
    type Chunk = RawChunk;

    fn prefetcher(&mut self) -> &mut Prefetcher<Event> {
        &mut self.prefetcher
    }

    /// Also waits for the result of queries for lists, which decides whether the read is accepted.
    fn has_ended(&self) -> bool {
        self.ended && self.probes.is_none()
    }

    fn finish(&mut self) -> Result<()> {
        self.cut.take().map_or(Ok(()), |first| Err(UpstreamError::HistoryCut { first }))
    }

    fn request_more(&mut self, urgency: Urgency) {
        if self.prefetcher.is_premature(urgency) {
            return;
        }
        let frontier = self.frontier();
        let Some(lister) = &self.lister else { return };
        let limits = &self.source.inner.limits;
        let want = if matches!(lister, Lister::Events { .. }) { want_found } else { want_listed };
        self.timeline.decide(frontier, limits.passed_max, want);
        let ahead = self.prefetcher.list_depth(limits.list_ahead_max, urgency);
        let likely = lister.likely();
        // Prefetched transactions are not delivered before the lists are confirmed.
        if likely.is_some() || self.timeline.waiting(ahead) < ahead {
            self.ask_lists(frontier);
        }
        if let Some(likely) = likely {
            self.timeline.expect(likely, want_by_first_answers);
        }
        self.ask_transactions(urgency);
        self.ask_proof();
    }

    fn absorb(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Opened(opening) => {
                let ReadRange { high, top_at, low_at, tip } = opening?;
                (self.tip, self.begun) = (tip, Instant::now());
                self.list_proof = ListProof::new(top_at, self.source.lists_shown(top_at));
                if high < self.request.low {
                    self.ended = true;
                    return Ok(());
                }
                self.timeline = Timeline::new(self.request.low, high);
                if self.source.has_no_lists() && !self.source.may_ask_lists() {
                    self.search_events();
                } else {
                    self.lister = Some(Lister::index(top_at, low_at));
                }
            }
            Event::Kept(kept) => self.search_from(kept?)?,
            Event::Page(number, page) => self.page(number, page)?,
            Event::Probed(has_lists) => self.probed(has_lists),
            Event::ProofAnswer(confirmed) => self.list_proof.confirm(confirmed?),
            Event::Searched(windows, found) => self.searched(windows, found)?,
            Event::Named(top, named) => {
                named?;
                self.named(top);
            }
            Event::Fetched(key, fetched) => self.fetched(&key, fetched)?,
        }
        Ok(())
    }

    fn deliver(&mut self) -> Result<Option<RawChunk>> {
        if self.is_unproved() {
            return Ok(None);
        }
        let limits = &self.source.inner.limits;
        let sizes = ChunkSizes {
            chunk_min: self.chunk_min,
            chunk_max: limits.chunk_max,
            skipped_max: limits.passed_max,
        };
        let frontier = self.frontier();
        let by_events = matches!(self.lister, Some(Lister::Events { .. }));
        if !by_events && !self.unnamed.is_empty() {
            return Ok(None);
        }
        let unnamed = self.unnamed.iter().max().copied().filter(|_| by_events);
        let frontier = frontier.max(unnamed);
        let by_height = frontier.filter(|_| by_events);
        let ready = self.timeline.deliver(frontier, &sizes).or_else(|| {
            let frontier = by_height?;
            self.timeline.deliver_known(frontier, limits.sparse_blocks)
        });
        let Some(Ready { low, high, txs, missing }) = ready else { return Ok(None) };
        self.ended = self.timeline.done;
        self.prefetcher.count_delivered(txs.len());
        self.chunk_min = (self.chunk_min * 2).min(limits.chunk_max / 2).max(1);
        let by_time = matches!(self.lister, Some(Lister::Index { .. }));
        let proof = if by_time { self.list_proof.proof() } else { self.proof_by_events(low, high) };
        let proof = proof.with(self.source.doubts_of_calls(&txs)).with(self.doubts_of_cuts());
        let is_bare = by_time && self.lists_no_tokens(&txs);
        let proof = if is_bare { proof.with(Doubts::UNCONFIRMED) } else { proof };
        Ok(Some(RawChunk {
            low,
            high,
            txs: txs.into_iter().map(raw).collect(),
            resume: self.timeline.edge.filter(|_| by_time && !self.ended).map(hint),
            proof,
            missing: missing.into_iter().map(|(height, id)| (height, TxId::Tron(id))).collect(),
            tip: self.tip.take(),
            ..RawChunk::default()
        }))
    }
}

/// Queries for lists in one read.
const PROBES_MAX: u32 = 9;

fn raw(tx: Transaction) -> RawTx {
    let time = tx.time;
    RawTx::Tron(Box::new(tx), time)
}

/// A hint for where a later read continues: the height, and that block's time.
fn hint((height, at): (Height, u64)) -> Resume {
    Resume([height.to_be_bytes(), at.to_be_bytes()].concat())
}

fn resume(hint: Option<&Resume>) -> Option<(Height, u64)> {
    let (height, at) = hint?.0.split_first_chunk::<8>()?;
    let at = u64::from_be_bytes(at.try_into().ok()?);
    Some((u64::from_be_bytes(*height), at)).filter(|(height, _)| *height > 0)
}
