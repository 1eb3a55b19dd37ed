//! Reads one gap by pages of full transactions, as far down as the method reaches: segments in
//! parallel, delivered in order, their end checked against the wallet's list of signatures.

use std::collections::{BTreeMap, HashSet};

use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::SolanaSource;
use super::balance_chain::BalanceChain;
use super::end_check::{EndCheck, EndQuestion, EndVerdict};
use super::fetch::PageReply;
use super::full_pages::{FIRST_SLOT, FullPage, PageQuery};
use super::hint::Mark;
use super::index_reach::FULL_PAGES;
use super::open::Opening;
use super::segments::{PageRoom, SegmentRequest, Segments};
use super::timeline::{ReadyTxs, Timed};
use super::wire::Balance;
use crate::domain::{Doubts, Height, Proof, SourceAccount, Way};
use crate::rpc::{CallOptions, EndpointId, Result, UpstreamError};
use crate::sources::chunk::{GapRequest, RawChunk, RawTx, Tip};
use crate::sources::prefetch::{Depth, PrefetchReader, Prefetcher, RunAhead, Urgency};

/// False ends of pages in one read, after which lists take over.
const FALSE_ENDS_MAX: u32 = 2;

pub(super) enum PageEvent {
    Opened(Result<Opening>),
    Probed,
    Page(u64, usize, Result<FullPage>),
    Oldest(Result<FullPage>),
    Signatures(PageReply),
    FirstKept(Result<Vec<(EndpointId, Height)>>),
    /// The endpoints of the first page have named this chain again.
    Named(Result<()>),
}

#[derive(Debug)]
pub(super) enum PageStep {
    Chunk(Box<RawChunk>),
    /// The rest is read by lists.
    Lists(Box<GapRequest>),
}

pub(super) struct PageReader {
    source: SolanaSource,
    request: GapRequest,
    wallet: [u8; 32],
    prefetcher: Prefetcher<PageEvent>,
    /// `None` until the head is known.
    segments: Option<Segments>,
    is_oldest_asked: bool,
    begun: Instant,
    /// Whether the endpoints of the first page have named this chain since; `None`: there is no
    /// page yet.
    is_named: Option<bool>,
    end: Option<EndCheck>,
    false_ends: u32,
    doubts: Doubts,
    /// The lowest delivered entry that names the wallet.
    lowest_named: Option<Mark>,
    is_from_head: bool,
    /// The height from which lists continue.
    lists_from: Option<Height>,
    has_ended: bool,
    accounts: Vec<SourceAccount>,
    chain: BalanceChain,
    /// Token accounts of the wallet that were seen so far.
    own: HashSet<[u8; 32]>,
    /// Accounts that no chunk has reported yet.
    news: Vec<SourceAccount>,
    tip: Option<Tip>,
}

impl PageReader {
    pub(super) fn new(source: SolanaSource, request: GapRequest) -> Self {
        let mut reader = Self {
            // The registry gives a Solana source to Solana chains only.
            wallet: request.wallet.bytes().try_into().unwrap_or_default(),
            prefetcher: Prefetcher::new(&source.inner.readers),
            segments: None,
            is_oldest_asked: false,
            begun: Instant::now(),
            is_named: None,
            end: None,
            false_ends: 0,
            doubts: Doubts::NONE,
            lowest_named: None,
            is_from_head: request.high.is_none(),
            lists_from: None,
            has_ended: false,
            accounts: Vec::new(),
            chain: BalanceChain::default(),
            own: HashSet::new(),
            news: Vec::new(),
            tip: None,
            source,
            request,
        };
        reader.begin();
        reader
    }

    fn options(&self) -> CallOptions {
        CallOptions::new(self.request.lane.clone())
    }

    fn begin(&mut self) {
        let (source, options, wallet) = (self.source.clone(), self.options(), self.request.wallet);
        if let Some(high) = self.request.high {
            self.start(high);
        } else {
            let how = (self.request.first, self.source.newest_list());
            let opened = async move { source.open(wallet, how, &options).await };
            self.prefetcher.push(opened.map(PageEvent::Opened).boxed());
        }
        let unprobed = self.source.unprobed();
        if !unprobed.is_empty() {
            let (source, options) = (self.source.clone(), self.options());
            let probed = async move { source.probe_pages(unprobed, wallet, &options).await };
            self.prefetcher.push(probed.map(|_| PageEvent::Probed).boxed());
        }
    }

    fn start(&mut self, high: Height) {
        let low = self.request.low.max(FIRST_SLOT);
        self.request.high = Some(high);
        if high < low {
            self.lists_from = Some(high);
        } else {
            self.segments = Some(Segments::new(low, high));
        }
    }

    pub(super) fn take_unreported(&mut self) -> (Option<Tip>, Vec<SourceAccount>) {
        (self.tip.take(), std::mem::take(&mut self.news))
    }

    fn opened(&mut self, opening: Opening) {
        let Opening { head, accounts, tip, .. } = opening;
        if head < self.request.low {
            self.has_ended = true;
            return;
        }
        self.tip = tip;
        let accounts = accounts.unwrap_or_default();
        // A balance from above the head would hide its change from the next read; but every later
        // read needs to know that the account exists.
        let seen = |balance: &Balance| SourceAccount {
            account: balance.account,
            amount: Some(if balance.at <= head { balance.amount } else { SourceAccount::OPEN }),
            oldest: None,
        };
        self.accounts = accounts.iter().map(seen).collect();
        self.news = self.accounts.clone();
        self.chain.report(&accounts, head);
        self.start(head);
    }

    /// How much may be read in parallel, by the requests that endpoints take in the time of one
    /// answer.
    fn room(&self, urgency: Urgency) -> Option<(PageRoom, CallOptions)> {
        let (limit, without) = self.source.page_plan()?;
        let limits = &self.source.inner.limits;
        let depth = Depth {
            min: limit,
            max: limits.page_ahead_max.max(limit),
            total_max: limits.page_ahead_total_max,
        };
        let held = self.prefetcher.window(depth, 0, urgency);
        let parallel = self.source.inner.pool.parallel(FULL_PAGES, without);
        let segments = parallel.clamp(limits.segments_min, limits.segments_max);
        let options = CallOptions { without, ..self.options() };
        Some((PageRoom { segments, held, limit }, options))
    }

    fn request_pages(&mut self, urgency: Urgency) {
        let Some((room, options)) = self.room(urgency) else {
            return self.go_to_lists();
        };
        let Some(segments) = &mut self.segments else { return };
        let requests = segments.requests(room);
        let is_long = segments.is_long();
        for SegmentRequest { number, query, avoid } in requests {
            let limit = query.limit;
            let lane = self.request.lane.ranked(u64::MAX - query.high);
            let options = CallOptions { lane, avoid, ..options.clone() };
            let page = self.page(query, options);
            self.prefetcher
                .push(page.map(move |page| PageEvent::Page(number, limit, page)).boxed());
        }
        if is_long && self.prefetcher.run_ahead() == RunAhead::All && !self.is_oldest_asked {
            self.is_oldest_asked = true;
            let low = self.request.low.max(FIRST_SLOT);
            let high = self.segments.as_ref().and_then(Segments::next_high).unwrap_or(low);
            let (limit, known_to) = (room.limit, self.request.high);
            let query = PageQuery { low, high, limit, ascending: true, token: None, known_to };
            let page = self.page(query, options);
            self.prefetcher.push(page.map(PageEvent::Oldest).boxed());
        }
    }

    fn page(
        &self,
        query: PageQuery,
        options: CallOptions,
    ) -> impl Future<Output = Result<FullPage>> + use<> {
        let (source, wallet) = (self.source.clone(), (self.wallet, self.request.wallet));
        async move { source.full_page(wallet, &query, &options).await }
    }

    /// Checks the end of the pages against the list, once the pages have ended.
    fn request_end(&mut self) {
        let Some(segments) = &self.segments else { return };
        if self.end.is_none() && segments.end().is_some() {
            let low = self.request.low;
            let high = self.request.high.unwrap_or(low);
            let avoid = segments.answered_by().last().copied();
            let oldest = segments.oldest();
            let marks = self.lowest_marks();
            if marks.is_none() && !self.is_from_head {
                // Without marks, the list would be read from the head down to here.
                return self.go_to_lists();
            }
            self.end = Some(EndCheck::new(self.wallet, (low, high), oldest, marks, avoid));
        }
        let Some(question) = self.end.as_mut().and_then(EndCheck::question) else { return };
        let (source, options) = (self.source.clone(), self.options());
        self.prefetcher.push(match question {
            EndQuestion::Page(request, avoid) => async move {
                let options = CallOptions { avoid, ..options };
                PageEvent::Signatures(source.one_page(*request, options).await)
            }
            .boxed(),
            EndQuestion::FirstKept(by) => {
                async move { PageEvent::FirstKept(source.first_kept(by, &options).await) }.boxed()
            }
        });
    }

    /// The lowest entry that names the wallet, and one in a slot above it, in the order (above,
    /// lowest).
    fn lowest_marks(&self) -> Option<(Mark, Mark)> {
        let held = self.segments.iter().flat_map(Segments::oldest_held);
        let named = held.filter_map(|tx| self.named(tx)).chain(self.lowest_named);
        let mut named = named.peekable();
        let tail = *named.peek()?;
        Some((named.find(|(slot, _)| *slot > tail.0)?, tail))
    }

    fn named(&self, (tx, _): &Timed) -> Option<Mark> {
        tx.names(&self.wallet).then(|| tx.id().map(|id| (tx.slot(), id)))?
    }

    /// Asks for the chain again while further pages come: the first page overlaps with nothing that
    /// would show another chain's.
    fn name_again(&mut self) {
        if self.is_named.is_some() {
            return;
        }
        self.is_named = Some(false);
        let (source, options) = (self.source.clone(), self.options());
        let read = (self.begun, Instant::now());
        let named = async move { source.confirm_chain(read, &options).await };
        self.prefetcher.push(named.map(PageEvent::Named).boxed());
    }

    fn page_failed(&mut self, number: u64, limit: usize, error: &UpstreamError) {
        tracing::debug!(%error, limit, "a page of full transactions cannot be read");
        let may_be_large = matches!(error, UpstreamError::Unavailable { .. });
        let is_other = matches!(error, UpstreamError::Malformed { .. });
        if is_other || may_be_large && self.source.shrink_pages(limit) {
            if let Some(segments) = &mut self.segments {
                segments.fail(number);
            }
            return;
        }
        tracing::warn!(%error, "full-transaction pages failed; reading signature lists instead");
        if error.is_final() {
            self.source.inner.pool.ids().into_iter().for_each(|id| self.source.give_up_pages(id));
        }
        self.go_to_lists();
    }

    /// Leaves all that is not delivered to lists.
    fn go_to_lists(&mut self) {
        let next = self.segments.take().and_then(|segments| segments.next_high());
        self.lists_from = next.or(self.lists_from).or(self.request.high);
        self.prefetcher.cancel_all();
    }

    fn check_end(&mut self) {
        let Some(segments) = &mut self.segments else { return };
        match self.end.as_ref().map(|end| end.verdict) {
            Some(EndVerdict::Contradicted) if self.false_ends < FALSE_ENDS_MAX => {
                self.false_ends += 1;
                self.end = None;
                segments.reopen_end();
            }
            Some(EndVerdict::Contradicted) => {
                for id in segments.answered_by() {
                    self.source.give_up_pages(id);
                }
                self.go_to_lists();
            }
            Some(EndVerdict::Lost) => self.go_to_lists(),
            Some(EndVerdict::Open | EndVerdict::Confirmed | EndVerdict::GoesOn) | None => {}
        }
    }

    fn is_confirmed(&self) -> bool {
        let verdict = self.end.as_ref().map(|end| end.verdict);
        matches!(verdict, Some(EndVerdict::Confirmed | EndVerdict::GoesOn))
    }

    /// Whether balances show that some transaction is missing among these, or between these and what
    /// was delivered.
    fn lacks_some(&mut self, txs: &[Timed]) -> bool {
        let held = txs.iter().flat_map(|(tx, _)| tx.held_token_accounts(&self.wallet));
        self.own.extend(held.map(|(account, _)| account));
        let txs: Vec<_> = txs.iter().map(|(tx, _)| (tx.slot(), Some(&**tx))).collect();
        !self.chain.add(&txs, |account, _| self.own.contains(account), |_, _| false).is_empty()
    }

    fn chunk(&mut self, chunk: ReadyTxs, by: &[EndpointId]) -> RawChunk {
        let ReadyTxs { mut low, high, txs, missing } = chunk;
        let lowest = txs.iter().filter_map(|tx| self.named(tx)).min_by_key(|(slot, _)| *slot);
        self.lowest_named = lowest.or(self.lowest_named);
        self.prefetcher.count_delivered(txs.len());
        let has_all = self.segments.as_ref().is_none_or(|rest| rest.next_high().is_none());
        if has_all {
            self.segments = None;
            if self.end.as_ref().map(|end| end.verdict) == Some(EndVerdict::Confirmed) {
                low = self.request.low;
            }
            self.lists_from = low.checked_sub(1).filter(|next| *next >= self.request.low);
            self.has_ended = self.lists_from.is_none();
        }
        let is_doubtful = !self.source.finds_by_owner(by);
        let mut doubts = if is_doubtful { Doubts::TOKEN_ACCOUNTS } else { Doubts::NONE };
        if is_doubtful && (has_all || self.doubts.is_empty()) {
            self.doubts = doubts;
            self.source.note_unproved_by_pages(self.wallet, has_all);
        }
        // What pages lack is brought by lists.
        if self.lacks_some(&txs) && !is_doubtful {
            doubts = doubts.union(Doubts::UNCONFIRMED);
            self.source.note_unproved_by_pages(self.wallet, true);
        }
        RawChunk {
            low,
            high,
            txs: txs.into_iter().map(|(tx, time)| RawTx::Solana(tx, time)).collect(),
            proof: Proof::of(Way::FullPages).with(doubts),
            missing,
            accounts: std::mem::take(&mut self.news),
            tip: self.tip.take(),
            ..RawChunk::default()
        }
    }

    /// The request for the heights that lists have to read, from `high` down.
    fn rest(&self, high: Height) -> GapRequest {
        // An account that was open at an earlier head and is closed now may have moved in the rest.
        let was_open = |known: &&SourceAccount| self.accounts.is_empty() || known.amount.is_some();
        let known = self.request.accounts.iter().filter(was_open);
        let mut accounts: BTreeMap<_, SourceAccount> =
            known.map(|known| (known.account, *known)).collect();
        for seen in &self.accounts {
            accounts.entry(seen.account).or_insert(*seen).amount = seen.amount;
        }
        GapRequest {
            high: Some(high),
            resume: None,
            first: false,
            accounts: accounts.into_values().collect(),
            // This read requested the accounts at the head: those that an earlier read knew may
            // lack new ones.
            knows_accounts: !self.accounts.is_empty()
                || !self.is_from_head && self.request.knows_accounts,
            ..self.request.clone()
        }
    }
}

impl PrefetchReader for PageReader {
    type Event = PageEvent;
    type Chunk = PageStep;

    fn prefetcher(&mut self) -> &mut Prefetcher<PageEvent> {
        &mut self.prefetcher
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn request_more(&mut self, urgency: Urgency) {
        if self.prefetcher.is_premature(urgency) || self.segments.is_none() {
            return;
        }
        self.request_pages(urgency);
        self.request_end();
    }

    fn absorb(&mut self, event: PageEvent) -> Result<()> {
        match event {
            PageEvent::Opened(opening) => self.opened(opening?),
            PageEvent::Page(number, _, Ok(page)) => {
                self.name_again();
                if let Some(segments) = &mut self.segments {
                    segments.absorb(number, page);
                }
            }
            PageEvent::Page(number, limit, Err(error)) => self.page_failed(number, limit, &error),
            PageEvent::Named(named) => {
                named?;
                self.is_named = Some(true);
            }
            PageEvent::Oldest(Ok(page)) => {
                if let Some(segments) = &mut self.segments {
                    segments.set_oldest(page);
                }
            }
            // Failures here only make the read slower.
            PageEvent::Oldest(Err(_)) | PageEvent::Probed => {}
            PageEvent::Signatures(page) => {
                if let Some(end) = &mut self.end {
                    end.absorb(page)?;
                }
                self.check_end();
            }
            PageEvent::FirstKept(kept) => {
                if let Some(end) = &mut self.end {
                    // Where none of these endpoints says what it keeps, lists ask others.
                    end.prove(&kept.unwrap_or_default());
                }
                self.check_end();
            }
        }
        if self.segments.as_ref().is_some_and(Segments::is_lost) {
            self.go_to_lists();
        }
        Ok(())
    }

    fn deliver(&mut self) -> Result<Option<PageStep>> {
        let most = self.source.inner.limits.chunk_max;
        let is_confirmed = self.is_confirmed();
        let segments = self.segments.as_mut().filter(|_| self.is_named != Some(false));
        let chunk = segments.and_then(|segments| segments.deliver(is_confirmed, most));
        if let Some((chunk, by)) = chunk {
            return Ok(Some(PageStep::Chunk(Box::new(self.chunk(chunk, &by)))));
        }
        if self.segments.is_none()
            && let Some(high) = self.lists_from
        {
            self.has_ended = true;
            return Ok(Some(PageStep::Lists(Box::new(self.rest(high)))));
        }
        Ok(None)
    }
}
