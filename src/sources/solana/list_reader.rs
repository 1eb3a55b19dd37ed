//! Reads one gap of a wallet by lists of signatures: decides what is requested next and what can be
//! delivered.

mod accounts;
mod balances;
mod ends;
mod events;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tokio::time::{Instant, sleep};

use super::SolanaSource;
use super::balance_chain::BalanceChain;
use super::fetch::{Fetched, FetchedEntry, PageReply, PageRequest};
use super::gateway::Owned;
use super::hint::{Mark, hint, resume};
use super::index_reach::IndexedList;
use super::late::LateEntries;
use super::list::{Entry, Kind, List};
use super::list_page::ListPage;
use super::listing::{Existence, Listing, PageState, Phase};
use super::open::Opening;
use super::owned::OwnedState;
use super::statuses::STATUSES_MAX;
use super::timeline::{ReadyTxs, Timed, Timeline};
use super::wire::Balance;
use crate::domain::{Doubts, Height, Proof, SourceAccount, TxId, Way};
use crate::rpc::{CallOptions, EndpointId, EndpointSet, Result, UpstreamError};
use crate::sources::chunk::{GapRequest, RawChunk, RawTx, Tip};
use crate::sources::pager::PageOutcome;
use crate::sources::prefetch::{Depth, Prefetcher, Urgency};

/// Accounts whose newest pages are requested together, also where each takes a request of its own.
const NEWEST_GROUP: usize = 16;

pub(super) enum ListEvent {
    Opened(Result<Opening>),
    /// The open accounts of a read that begins below the head.
    Accounts(Result<Opening>),
    Anchored(Result<Option<TxId>>),
    Pages(Vec<(usize, PageReply)>),
    Fetched(Result<Vec<FetchedEntry>>),
    /// The first block kept by the endpoints that reported the ends of these lists.
    FirstKept(Vec<usize>, Result<Vec<(EndpointId, Height)>>),
    Exists(Result<bool>),
    /// The transactions that a gateway lists, or those of them that nodes returned.
    Owned(Result<Vec<Owned>>),
    OwnedFetched(Result<Vec<FetchedEntry>>),
    /// The endpoints of first pages have named this chain again.
    Named(Result<()>),
    /// Entries that a list marks as failed, and which of them did not fail.
    NotFailed(Vec<Entry>, HashSet<TxId>),
}

pub(super) struct ListReader {
    source: SolanaSource,
    request: GapRequest,
    wallet: [u8; 32],
    phase: Phase,
    options: CallOptions,
    /// The slot at which the read begins.
    head: Height,
    /// The endpoint that reported it, which gives the first pages.
    head_by: Option<EndpointId>,
    /// An endpoint that reported the head and then gave no lists.
    without_lists: Option<EndpointId>,
    /// Number of lists whose ends only endpoints reported that do not say which blocks they keep.
    ends_in_vain: usize,
    /// A chunk was delivered, and with it the accounts known then.
    has_delivered: bool,
    doubts: Doubts,
    /// Whether the wallet exists, where its list is empty.
    existence: Existence,
    listings: Vec<Listing>,
    listed: HashMap<[u8; 32], usize>,
    chain: BalanceChain,
    /// Nodes that keep the whole chain.
    whole: BTreeSet<EndpointId>,
    timeline: Timeline,
    /// Listed transactions in a row that no endpoint returned, and how many of them were delivered
    /// as missing.
    missing: usize,
    missing_delivered: usize,
    late: LateEntries,
    /// Missing transactions of delivered heights.
    late_missing: Vec<Mark>,
    owned: OwnedState,
    prefetcher: Prefetcher<ListEvent>,
    begun: Instant,
    /// The highest slots of first pages for whose chain is to be asked again, and is asked.
    unnamed: [Option<Height>; 2],
    /// Grows with each chunk, so that the first rows come early and later commits are few.
    chunk_min: usize,
    /// Delivered with the first chunk.
    tip: Option<Tip>,
    /// Accounts delivered with the next chunk.
    news: HashMap<[u8; 32], SourceAccount>,
    known: HashMap<[u8; 32], SourceAccount>,
}

impl ListReader {
    pub(super) fn new(source: SolanaSource, request: GapRequest) -> Self {
        let mut reader = Self {
            // The registry gives a Solana source to Solana chains only.
            wallet: request.wallet.bytes().try_into().unwrap_or_default(),
            phase: Phase::Opening,
            doubts: Doubts::NONE,
            existence: Existence::Open,
            options: CallOptions::new(request.lane.clone()),
            head: request.high.unwrap_or_default(),
            head_by: None,
            without_lists: None,
            ends_in_vain: 0,
            has_delivered: false,
            listings: Vec::new(),
            listed: HashMap::new(),
            chain: BalanceChain::default(),
            whole: BTreeSet::new(),
            timeline: Timeline::new(request.low, request.high.unwrap_or(request.low)),
            missing: 0,
            missing_delivered: 0,
            late: LateEntries::default(),
            late_missing: Vec::new(),
            owned: OwnedState::Done,
            prefetcher: Prefetcher::new(&source.inner.readers),
            begun: Instant::now(),
            unnamed: [None; 2],
            chunk_min: 1,
            tip: None,
            news: HashMap::new(),
            known: request.accounts.iter().map(|known| (known.account, *known)).collect(),
            source,
            request,
        };
        reader.begin();
        reader
    }

    /// Requests what a read needs first: the head, or a signature of the chain to list from.
    fn begin(&mut self) {
        let source = self.source.clone();
        let options = CallOptions { avoid: self.without_lists, ..self.options.clone() };
        let (wallet, how) = (self.request.wallet, (self.request.first, IndexedList::Signatures));
        if self.request.high.is_some() && !self.request.knows_accounts {
            self.prefetcher.push(Box::pin(async move {
                ListEvent::Accounts(source.open(wallet, how, &options).await)
            }));
            return;
        }
        match (self.request.high, resume(self.request.resume.as_ref())) {
            (None, _) => self.prefetcher.push(Box::pin(async move {
                ListEvent::Opened(source.open(wallet, how, &options).await)
            })),
            (Some(high), Some(hint)) => {
                self.timeline.remember(hint.0, hint.1);
                let list = List::new(Kind::Wallet, self.request.low, high);
                self.start(high, list.resumed(hint.0.1, hint.1));
            }
            (Some(high), None) => self.prefetcher.push(Box::pin(async move {
                ListEvent::Anchored(source.anchor_above(high, &options).await)
            })),
        }
    }

    /// Starts the lists: the wallet's, and those of the accounts that may hold wanted entries.
    fn start(&mut self, high: Height, wallet: List) {
        self.phase = Phase::Reading;
        self.list_by(Listing::new(self.wallet, wallet));
        self.ask_owned(high);
        if self.request.high.is_some() {
            let wanted = |known: &&SourceAccount| known.oldest.is_none_or(|oldest| oldest <= high);
            let accounts: Vec<[u8; 32]> =
                self.request.accounts.iter().filter(wanted).map(|known| known.account).collect();
            for account in accounts {
                self.list_account(account, high, false);
            }
        }
    }

    fn ask_owned(&mut self, high: Height) {
        self.owned = OwnedState::Done;
        let range = (self.request.low, high);
        if self.source.is_scanned(range) {
            self.owned = OwnedState::InFlight;
            let (source, wallet) = (self.source.clone(), self.request.wallet);
            let options = self.options.clone();
            self.prefetcher.push(Box::pin(async move {
                ListEvent::Owned(source.owned(&[wallet], range, &options).await)
            }));
        }
    }

    fn fetch_owned(&mut self) {
        let frontier = self.lists_frontier();
        // Where the lists are cut, nothing more comes from them.
        let frontier = frontier.filter(|_| self.cut_at(frontier).is_none());
        let unlisted = self.owned.take_unlisted(frontier, &mut self.timeline);
        let Some(entries) = unlisted else { return };
        let (source, options) = (self.source.clone(), self.options.clone());
        self.prefetcher.push(Box::pin(async move {
            ListEvent::OwnedFetched(source.transactions(entries, options).await)
        }));
    }

    /// Lists an account from the top: without a cursor, behind which a node could lose an entry.
    fn list_account(&mut self, account: [u8; 32], high: Height, has_moved: bool) {
        if !self.listed.contains_key(&account) {
            let list = List::new(Kind::Account, self.request.low, high);
            let mut listing = Listing::new(account, list);
            listing.has_moved = has_moved;
            self.list_by(listing);
        }
    }

    fn list_by(&mut self, listing: Listing) {
        self.listed.insert(listing.address, self.listings.len());
        self.listings.push(listing);
    }

    fn may_begin_anew(&self) -> bool {
        let has_another = self.source.inner.pool.endpoints().len() > 1;
        has_another && !self.has_delivered && self.without_lists.is_none()
    }

    /// The endpoint that reported the head gives no lists now: starts anew from the head of another
    /// one, once, before anything is delivered.
    fn open_elsewhere(&mut self, error: UpstreamError) -> Result<()> {
        let Some(by) = self.head_by.filter(|_| self.may_begin_anew()) else { return Err(error) };
        self.without_lists = Some(by);
        (self.missing, self.missing_delivered, self.unnamed) = (0, 0, [None; 2]);
        (self.phase, self.doubts) = (Phase::Opening, Doubts::NONE);
        self.existence = Existence::Open;
        self.listings.clear();
        self.listed.clear();
        self.chain = BalanceChain::default();
        self.late = LateEntries::default();
        self.late_missing.clear();
        self.news.clear();
        self.prefetcher.cancel_all();
        self.begin();
        Ok(())
    }

    fn opened(&mut self, opening: Opening) {
        let Opening { head, known_to, endpoint, accounts, tip } = opening;
        if accounts.is_none() {
            self.doubts = Doubts::TOKEN_ACCOUNTS;
        }
        self.tip = tip;
        if head < self.request.low {
            self.phase = Phase::Ended;
            return;
        }
        (self.head, self.head_by) = (head, endpoint);
        self.timeline = Timeline::new(self.request.low, head);
        self.start(head, List::new(Kind::Wallet, self.request.low, head));
        let Some(accounts) = accounts else { return };
        let mut gone: HashMap<[u8; 32], SourceAccount> = self.known.clone();
        self.chain.report(&accounts, head);
        for Balance { account, amount, at } in accounts {
            let known = gone.remove(&account);
            // A balance from above the head does not show whether the account moved below it.
            let same = at <= head && known.is_some_and(|known| known.held(amount));
            if !same || self.request.low == 0 {
                let has_moved = at <= head && known.is_some_and(|known| known.is_balance_known());
                self.list_account(account, head, has_moved && !same);
                let oldest = known.and_then(|known| known.oldest);
                // A balance from above the head would hide its change from the next read; but every
                // later read needs to know that the account exists.
                let held = if at <= head { amount } else { SourceAccount::OPEN };
                self.news.insert(account, SourceAccount { account, amount: Some(held), oldest });
            }
        }
        for known in gone.into_values().filter(|known| known.amount.is_some()) {
            let has_moved = known_to <= head && known.is_balance_known();
            self.list_account(known.account, head, has_moved);
            // An account that closed above the head is listed by the next read.
            let amount = (known_to > head).then_some(SourceAccount::OPEN);
            self.news.insert(known.account, SourceAccount { amount, ..known });
        }
    }

    fn page(&mut self, number: usize, page: ListPage) -> Result<()> {
        let ListPage { entries, goes_on, by } = page;
        let (low, resumed) = (self.request.low, self.request.high);
        let Some(listing) = self.listings.get_mut(number) else { return Ok(()) };
        listing.last_by = Some(by);
        let before = std::mem::replace(&mut listing.state, PageState::Paged);
        match listing.list.absorb(&entries, goes_on) {
            PageOutcome::Lower(_) | PageOutcome::Inside { .. } | PageOutcome::Nothing => {
                let is_wallets = listing.list.kind == Kind::Wallet;
                let [_, previous] = listing.answered_by;
                listing.answered_by = [previous, Some(by)];
                self.timeline.add(&entries, is_wallets);
                if listing.lacks_its_change(&entries, low) {
                    self.doubts = self.doubts.union(Doubts::UNCONFIRMED);
                }
                if listing.is_late() {
                    self.late.add(&entries, self.timeline.next_high);
                }
            }
            PageOutcome::Miss => {
                if before == (PageState::Asked { is_first: true }) {
                    listing.state = PageState::New;
                }
            }
            // The resume hint did not work: starts from the top.
            PageOutcome::Lost if listing.is_fresh && resumed.is_some() => {
                listing.begin_anew(low, self.timeline.next_high);
            }
            PageOutcome::Lost => {
                return Err(self.source.malformed(by, "a list that lacks what it held before"));
            }
        }
        Ok(())
    }

    /// A page that cannot be read is requested again: of many lists, one answer of `null` must not
    /// end the read.
    fn torn(&mut self, number: usize, error: UpstreamError) -> Result<()> {
        let Some(listing) = self.listings.get_mut(number) else { return Ok(()) };
        let is_first = listing.state == PageState::Asked { is_first: true };
        listing.state = if is_first { PageState::New } else { PageState::Paged };
        if listing.list.miss() == PageOutcome::Lost { Err(error) } else { Ok(()) }
    }

    /// No endpoint knows the cursor: starts from the top where the cursor was a hint.
    fn unknown_cursor(&mut self, number: usize, error: UpstreamError) -> Result<()> {
        let high = self.timeline.next_high;
        let Some(listing) = self.listings.get_mut(number) else { return Ok(()) };
        if listing.is_fresh && self.request.high.is_some() {
            listing.begin_anew(self.request.low, high);
            return Ok(());
        }
        self.torn(number, error)
    }

    /// Many in a row may be missing because no endpoint returns any transaction now. The read ends
    /// only once it has delivered more than `missing_max` of them, however many one request or slot
    /// holds: so the next read begins below them.
    fn take_fetched(&mut self, fetched: Vec<FetchedEntry>) -> Result<()> {
        for (entry, tx) in fetched {
            self.fetched(entry, tx);
        }
        let limits = &self.source.inner.limits;
        let is_many = self.missing_delivered > limits.missing_max;
        if !is_many || self.missing <= self.missing_delivered {
            return Ok(());
        }
        let last = "many listed transactions are given by no endpoint".to_owned();
        Err(UpstreamError::Unavailable { attempts: limits.missing_tries_max, last })
    }

    fn fetched(&mut self, entry: Entry, tx: Fetched) {
        let is_late = self.late.is_in_flight(&entry.id);
        let is_failing = matches!(tx, Fetched::Failing);
        let Fetched::Transaction(tx) = tx else {
            let tries = if is_late {
                self.late.mark_for_retry(entry)
            } else {
                self.timeline.mark_for_retry(entry.slot, entry.id)
            };
            if !is_failing && tries < self.source.inner.limits.missing_tries_max {
                return;
            }
            self.missing += 1;
            let (slot, id) = (entry.slot, entry.id);
            tracing::warn!(slot, %id, "no endpoint returns a listed transaction; it is reported as missing and requested again later");
            if is_late {
                // The heights of this transaction are already delivered.
                self.late.give_up(&id);
                self.late_missing.push((slot, id));
            } else {
                self.timeline.lose(slot, id);
            }
            return;
        };
        // An endpoint returns transactions now: those before it are missing for reasons of their
        // own.
        (self.missing, self.missing_delivered) = (0, 0);
        self.list_shown(&tx.0, entry.slot);
        if is_late {
            self.late.put(&entry.id, tx);
        } else {
            self.timeline.put(entry.slot, entry.id, tx);
        }
    }

    /// The slot at and below which entries may be unknown; `None`: everything wanted is known.
    fn frontier(&self) -> Option<Height> {
        let next = self.owned.is_open().then_some(self.timeline.next_high);
        let [open, asked] = self.unnamed;
        next.or_else(|| self.lists_frontier().max(open).max(asked))
    }

    fn lists_frontier(&self) -> Option<Height> {
        self.listings.iter().filter_map(|listing| listing.frontier(self.request.low)).max()
    }

    /// Whether the wallet's list has ended without any entry. Such a list was read from the top,
    /// whichever heights are wanted (one that begins at a signature and gets nothing restarts
    /// there), so it shows no entry above or below those heights either.
    fn is_nothing_listed(&self) -> bool {
        let is_empty = |wallet: &Listing| wallet.list.has_ended() && wallet.list.lowest.is_none();
        self.listings.first().is_some_and(is_empty)
    }

    fn ask_existence(&mut self) {
        if self.existence != Existence::Open || !self.is_nothing_listed() {
            return;
        }
        self.existence = Existence::Asked;
        let (source, options) = (self.source.clone(), self.options.clone());
        let wallet = self.request.wallet;
        self.prefetcher.push(Box::pin(async move {
            ListEvent::Exists(source.may_exist(wallet, &options).await)
        }));
    }

    /// Requests the pages that delay the delivery, while there is room for their entries.
    fn ask_pages(&mut self, urgency: Urgency) {
        let frontier = self.lists_frontier();
        let ahead = self.prefetcher.list_depth(self.source.inner.limits.list_ahead_max, urgency);
        let room = self.timeline.wants_entries(frontier, ahead);
        // A failure of this endpoint is answered by a new start from another one's head.
        let is_replaceable = self.may_begin_anew();
        let mut accounts: BTreeMap<_, Vec<PageRequest>> = BTreeMap::new();
        for (number, listing) in self.listings.iter_mut().enumerate() {
            let blocks = room && listing.list.frontier().is_some_and(|at| Some(at) == frontier);
            let is_first = listing.state == PageState::New;
            let due = is_first || (listing.state == PageState::Paged && blocks);
            // That nothing follows is confirmed early, as it takes no room; for accounts, of which
            // there may be many, after the first rows.
            let is_early = listing.list.kind == Kind::Wallet || self.prefetcher.delivered > 0;
            let is_end =
                is_early && listing.list.wants_second_answer() && listing.state == PageState::Paged;
            if listing.list.has_ended() || !(due || is_end) {
                continue;
            }
            listing.state = PageState::Asked { is_first };
            let from_head = self.request.high.is_none() && is_first;
            let request = listing.request(number, self.head, is_first);
            let is_newest = request.is_newest;
            let second = listing.list.wants_second_answer() || listing.list.missed();
            let on = self.head_by.filter(|_| from_head && !listing.is_relisted);
            let avoid = listing.avoided(second);
            let of = (on, avoid, listing.without(&self.source.inner.pool));
            // Accounts are found one after another while rows are delivered: to wait for a slow
            // node at the end of each would make the whole read as slow as that node.
            let in_time = !(listing.list.missed() || listing.reopened > 0);
            if listing.list.kind == Kind::Account {
                accounts.entry((of, in_time, is_newest)).or_default().push(request);
            } else {
                let options = on_or_any(of, is_replaceable, &self.options);
                let source = self.source.clone();
                let page =
                    async move { ListEvent::Pages(source.page_twice(request, options).await) };
                self.prefetcher.push(Box::pin(page));
            }
        }
        for ((of, in_time, is_newest), requests) in accounts {
            for group in requests.chunks(self.group_size(is_newest)) {
                let options = on_or_any(of, is_replaceable, &self.options);
                let options = CallOptions { in_time, ..options };
                let (source, asked) = (self.source.clone(), group.to_vec());
                self.prefetcher.push(Box::pin(async move {
                    ListEvent::Pages(source.pages(asked, options).await)
                }));
            }
        }
    }

    /// Number of lists whose pages are requested together; how far they reach is requested once for
    /// the group, in the same request.
    fn group_size(&self, is_newest: bool) -> usize {
        let is_asked = is_newest && self.source.busy.is_some();
        match self.source.inner.pool.batch_size() {
            0 | 1 if is_asked => NEWEST_GROUP,
            0 | 1 => 1,
            size => size - usize::from(is_asked),
        }
    }

    fn ask_transactions(&mut self, urgency: Urgency) {
        let limits = &self.source.inner.limits;
        let batch = self.source.inner.pool.batch_size();
        let (max, total_max) = (limits.run_ahead_max, limits.run_ahead_total_max);
        let depth = Depth { min: batch, max, total_max };
        let window = self.prefetcher.window(depth, self.timeline.under_way(), urgency);
        while self.timeline.under_way() < window && self.timeline.has_waiting() {
            let room = window - self.timeline.under_way();
            let (entries, tries) = self.timeline.take(batch.min(room));
            if entries.is_empty() {
                return;
            }
            self.push_transactions(entries, tries);
        }
    }

    fn ask_failed(&mut self) {
        loop {
            let entries = self.timeline.take_failed(STATUSES_MAX);
            if entries.is_empty() {
                return;
            }
            let (source, options) = (self.source.clone(), self.options.clone());
            self.prefetcher.push(Box::pin(async move {
                let not_failed = source.not_failed(&entries, &options).await;
                ListEvent::NotFailed(entries, not_failed)
            }));
        }
    }

    /// Requests late transactions: nothing is delivered before they are here.
    fn ask_late(&mut self) {
        let batch = self.source.inner.pool.batch_size().max(1);
        loop {
            let (entries, retries) = self.late.take(batch);
            if entries.is_empty() {
                return;
            }
            self.push_transactions(entries, retries);
        }
    }

    fn push_transactions(&mut self, entries: Vec<Entry>, retries: u32) {
        // Requests for the newest transactions go first, as these are delivered first.
        let rank = entries.first().map_or(0, |entry| u64::MAX - entry.slot);
        let (source, mut options) = (self.source.clone(), self.options.clone());
        options.lane = options.lane.ranked(rank);
        let pause = self.source.inner.limits.missing_pause * retries;
        self.prefetcher.push(Box::pin(async move {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            ListEvent::Fetched(source.transactions(entries, options).await)
        }));
    }

    /// The lowest height that is available, where lower ones are wanted and no node keeps them.
    fn cut_at(&self, frontier: Option<Height>) -> Option<Height> {
        let frontier = frontier?;
        let low = self.request.low;
        let is_cut = self.listings.iter().any(|one| one.cut(low) == Some(frontier));
        is_cut.then_some(frontier.saturating_add(1))
    }

    fn chunk(&mut self, ready: ReadyTxs) -> RawChunk {
        let ReadyTxs { low, high, txs, mut missing } = ready;
        missing.append(&mut self.late_missing);
        self.prefetcher.count_delivered(txs.len());
        self.has_delivered = true;
        self.missing_delivered = self.missing;
        // Answers come in any order: an account may be found before the transaction that closes it.
        let late = self.listings.iter().filter(|one| one.is_late() && !one.list.has_ended());
        if let Some(reach) = late.map(|one| one.list.reach()).max() {
            self.late.skip(txs.iter().filter_map(|(tx, _)| Some((tx.slot(), tx.id()?))));
            self.late.forget_above(reach);
        }
        let (accounts, late_accounts) = self.take_news(high);
        RawChunk {
            low,
            high,
            txs: raw(txs),
            late: raw(self.late.take_ready()),
            resume: self.timeline.last_two().map(|(above, tail)| hint(above, tail)),
            proof: Proof::of(Way::Signatures).with(self.doubts),
            missing,
            accounts,
            late_accounts,
            tip: self.tip.take(),
        }
    }
}

fn raw(txs: Vec<Timed>) -> Vec<RawTx> {
    txs.into_iter().map(|(tx, time)| RawTx::Solana(tx, time)).collect()
}

/// Uses the endpoint `on`, where there is one; else prefers another one than `avoid`, and leaves
/// out `without`.
fn on_or_any(
    (on, avoid, without): (Option<EndpointId>, Option<EndpointId>, EndpointSet),
    is_replaceable: bool,
    options: &CallOptions,
) -> CallOptions {
    match on {
        Some(id) => CallOptions { is_replaceable, ..options.first_on(id) },
        None => CallOptions { avoid, without: options.without.union(without), ..options.clone() },
    }
}
