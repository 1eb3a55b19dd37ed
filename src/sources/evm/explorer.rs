//! Finds transactions by the account lists of an Etherscan-like index: the wallet's own
//! transactions, its token transfers, and calls that gave it native coin.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::{OptionFuture, join, join_all};
use tokio::time::sleep;

use super::abilities::{IndexStart, ListSizes};
use super::descent::{Descent, DescentOutcome, PageAsk};
use super::discovery::{Discovery, Window};
use super::explorer_reach::{BusyAsk, ExplorerReach, Reach};
use super::explorer_wire::{self as wire, ExplorerList, PAGE_TOO_LARGE};
use super::list_client::ListClient;
use super::list_row::ListRow;
use super::merge::{self, Merge};
use super::sent_witness::SentWitness;
use super::texts::hex_text;
use crate::domain::{Doubts, Height};
use crate::rpc::{CallOptions, EndpointId, Reply, Result, UpstreamError};

/// Rows per page at first: every index returns that many.
const ROWS_FIRST: usize = 1_000;
/// Rows per page once such pages come full: the most that any index returns.
const ROWS_MAX: usize = 10_000;
const ROWS_MIN: usize = 10;
/// Consecutive answers of indexes that lag or lack known rows.
const LAGS_MAX: u32 = 8;
const LAG_PAUSE: Duration = Duration::from_millis(500);
/// Consecutive refusals of the list of calls, after which the other lists are read without it.
const REFUSALS_MAX: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Calls {
    /// No call was seen yet, perhaps because the index does not list calls.
    Unseen,
    Listed,
    NotListed,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "four steps that were taken or not")]
pub(super) struct ExplorerLister {
    client: ListClient,
    merge: Merge<ExplorerList>,
    low: Height,
    high: Height,
    calls: Calls,
    /// Rows to request per page, and their maximum.
    rows: usize,
    rows_max: usize,
    /// Page sizes seen in this read.
    page_sizes: ListSizes,
    reach: ExplorerReach,
    avoid: Option<EndpointId>,
    lags: u32,
    /// Consecutive refusals of the list of calls.
    refusals: u32,
    /// The index may mark transactions as failed that did not.
    doubts_failures: bool,
    /// Compares with the sent count, if the chain has one.
    witness: Option<SentWitness>,
    is_counted: bool,
    /// Endpoints that returned the newest pages.
    top: BTreeSet<EndpointId>,
    is_top_checked: bool,
    /// The height of the list of calls was queried again after the newest pages.
    is_looked_again: bool,
    /// How far down the lists go.
    start: Option<IndexStart>,
    /// The lowest height of the windows so far.
    delivered: Option<Height>,
}

impl ExplorerLister {
    pub(super) fn new(client: ListClient, (low, high): (Height, Height)) -> Self {
        Self {
            reach: ExplorerReach::new(client.clone()),
            witness: client.witness((low, high)),
            client,
            merge: Merge::new(&ExplorerList::ALL, low, high),
            low,
            high,
            calls: Calls::Unseen,
            rows: ROWS_FIRST,
            rows_max: ROWS_MAX,
            page_sizes: ListSizes::default(),
            avoid: None,
            lags: 0,
            refusals: 0,
            doubts_failures: false,
            is_counted: false,
            top: BTreeSet::new(),
            is_top_checked: false,
            is_looked_again: false,
            start: None,
            delivered: None,
        }
    }

    /// Lowers the top of the lists before anything is listed.
    pub(super) fn set_high(&mut self, high: Height) {
        self.merge.set_high(high);
        self.high = high;
        if let Some(witness) = &mut self.witness {
            witness.set_high(high);
        }
    }

    /// The height that all lists have reached.
    pub(super) async fn head(&self) -> Result<Option<Height>> {
        Box::pin(self.reach.head(None)).await
    }

    /// The next window that all lists have passed. Cancel safe: an answer in flight is requested
    /// again.
    pub(super) async fn next(&mut self) -> Result<Option<Window>> {
        loop {
            if self.merge.is_done() {
                return Ok(None);
            }
            self.check_for_calls().await?;
            self.check_counts().await?;
            Box::pin(self.check_top()).await?;
            if self.needs_start() {
                Box::pin(self.check_start()).await;
            }
            let until = self.calls_until();
            if let Some(window) = self.merge.take(&self.client.subject, until) {
                self.delivered = Some(window.low);
                return Ok(Some(self.doubted(window)));
            }
            self.round().await?;
        }
    }

    /// The next window before its endpoints have confirmed that their lists did not fall back
    /// meanwhile: its transactions may be prefetched but not delivered. `None` if there is none.
    /// Cancel safe as [`Self::next`] is.
    pub(super) async fn likely(&mut self) -> Result<Option<Window>> {
        while !self.is_top_checked && !self.merge.is_done() {
            self.check_for_calls().await?;
            self.check_counts().await?;
            if self.merge.is_ready() {
                let window = self.merge.clone().take(&self.client.subject, self.calls_until());
                return Ok(window.map(|window| self.doubted(window)));
            }
            self.round().await?;
        }
        Ok(None)
    }

    fn doubted(&self, mut window: Window) -> Window {
        let IndexStart { rows, calls } = self.start.unwrap_or_default();
        window.doubts = window.doubts.union(self.doubts());
        if window.low < rows {
            window.doubts = window.doubts.union(Doubts::DEPTH);
        }
        if window.low < calls {
            window.doubts = window.doubts.union(Doubts::INNER_CALLS);
            let below = window.found.iter_mut().filter(|one| one.block < calls);
            below.for_each(|one| one.calls = None);
        }
        window
    }

    /// Whether the next window waits for that check: the newest one does so only if it is the last.
    fn needs_start(&self) -> bool {
        let is_last = |window: Window| window.low <= self.low;
        let next = || self.merge.clone().take(&self.client.subject, self.calls_until());
        self.delivered.is_some() || next().is_some_and(is_last)
    }

    /// Checks how far down the lists of the endpoints go that returned the newest pages.
    async fn check_start(&mut self) {
        if self.start.is_none() && self.is_top_checked {
            let looks = self.top.iter().map(|id| self.client.index_start(*id, self.high));
            let starts = join_all(looks).await.into_iter();
            self.start = Some(starts.fold(IndexStart::default(), IndexStart::joined));
        }
    }

    /// Queries one page of each list that the next window needs. Each is queried twice, because a
    /// cut page, or one of a server that lags, looks like any other; once if it confirms an end.
    async fn round(&mut self) -> Result<()> {
        if !self.is_top_checked {
            self.reach.forget_old();
        }
        self.reach.look_before(self.high).await?;
        let known = self.reach.known();
        let wanted = self.merge.wanted();
        let pages = wanted.iter().map(|(list, ask)| {
            let second = OptionFuture::from((!ask.confirms_end).then(|| self.page(*list, ask)));
            join(self.page(*list, ask), second)
        });
        // The first answer about the sent count, if it is not known.
        let witness = self.witness.as_ref().filter(|_| !self.is_counted);
        let counts = OptionFuture::from(witness.map(SentWitness::counts));
        let (answers, counts) = join(join_all(pages), counts).await;
        if let Some(counts) = counts.transpose()? {
            self.merge.set_counts(counts);
            self.is_counted = true;
        }
        let mut first_error = Ok(());
        for ((list, ask), answers) in wanted.into_iter().zip(answers) {
            let done = match answers {
                (Ok(one), Some(Ok(two))) => self.absorb(list, ask, [one, two], &known).await,
                (Ok(one), None) => self.absorb_end(list, ask, one, &known).await,
                (Err(error), _) | (_, Some(Err(error))) => {
                    self.adapt_to_error(list, ask, error).await
                }
            };
            first_error = first_error.and(done);
        }
        first_error
    }

    /// If the list lacks transactions that the sent count includes: checks whether the count is one
    /// of transactions (that of a contract is not), and gets a second answer about it.
    async fn check_counts(&mut self) -> Result<()> {
        let Some(witness) = self.witness.as_mut() else { return Ok(()) };
        let is_doubtful = self.merge.lacks_counts() || self.merge.refutes_counts();
        if is_doubtful && !witness.is_confirmed() {
            self.merge.set_counts(witness.confirm().await?);
        }
        if self.merge.refutes_counts() {
            self.merge.forget_counts();
        }
        if !self.merge.sent_differs() {
            return Ok(());
        }
        if witness.has_code().await? {
            self.merge.forget_counts();
        } else if !witness.is_confirmed() {
            self.merge.set_counts(witness.confirm().await?);
        }
        Ok(())
    }

    async fn page(&self, list: ExplorerList, ask: &PageAsk) -> Result<Reply> {
        let rows = ask.rows.unwrap_or(self.rows);
        let wallet = hex_text(&self.client.subject.wallet);
        let request = wire::page_ask(list, wallet, ask, rows);
        let options = CallOptions { avoid: self.avoid, ..self.client.options() };
        self.client.pool.ask(&request, wire::read_list, &options).await
    }

    async fn absorb(
        &mut self,
        list: ExplorerList,
        ask: PageAsk,
        replies: [Reply; 2],
        known: &BTreeSet<EndpointId>,
    ) -> Result<()> {
        let [one, two] = replies;
        for reply in [&one, &two] {
            if !self.had_reached(reply.endpoint, ask.end, known).await? {
                return Ok(());
            }
            if !self.is_top_checked {
                self.top.insert(reply.endpoint);
            }
        }
        let (one, two) = (self.rows_of(list, &one)?, self.rows_of(list, &two)?);
        let count = one.1.len();
        let is_cut =
            |id: EndpointId| !self.client.abilities.page_sizes.gives_more((id, list), count);
        let is_whole =
            count < ask.rows.unwrap_or(self.rows) && ![one.0, two.0].into_iter().any(is_cut);
        let is_short = one.1 == two.1 && is_whole;
        match merge::more_complete(one, two) {
            Ok((endpoint, page)) => {
                let done = self.absorb_page(list, ask, endpoint, page).await;
                if is_short {
                    self.merge.on_list(list, Descent::expect_end);
                }
                done
            }
            Err(endpoint) => self.miss(endpoint).await,
        }
    }

    /// Processes a third answer about a list's end; if it shows more, it does not count as a page.
    async fn absorb_end(
        &mut self,
        list: ExplorerList,
        ask: PageAsk,
        reply: Reply,
        known: &BTreeSet<EndpointId>,
    ) -> Result<()> {
        if !self.had_reached(reply.endpoint, ask.end, known).await? {
            return Ok(());
        }
        let (endpoint, page) = self.rows_of(list, &reply)?;
        let shown = self.merge.on_list(list, |list| list.shows_end(&page)).unwrap_or(Ok(true));
        match shown {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(fault) => return Err(self.client.unreadable(endpoint, list.action(), fault)),
        }
        self.absorb_page(list, ask, endpoint, page).await
    }

    /// Whether an endpoint had reached a height before it answered; if not, the page is queried
    /// again.
    async fn had_reached(
        &mut self,
        endpoint: EndpointId,
        height: Height,
        known: &BTreeSet<EndpointId>,
    ) -> Result<bool> {
        let reach = self.reach.of(endpoint, height, known).await?;
        if reach == Reach::Behind {
            self.wait_for_lagging(endpoint).await?;
        }
        Ok(reach == Reach::Reached)
    }

    fn rows_of(&self, list: ExplorerList, reply: &Reply) -> Result<(EndpointId, Vec<ListRow>)> {
        let rows = wire::rows(list, &reply.body, &self.client.subject.wallet);
        let what = || format!("{}: a row cannot be read", list.action());
        let rows = rows.ok_or_else(|| self.client.pool.malformed(reply.endpoint, what()))?;
        Ok((reply.endpoint, rows))
    }

    async fn absorb_page(
        &mut self,
        list: ExplorerList,
        ask: PageAsk,
        endpoint: EndpointId,
        mut page: Vec<ListRow>,
    ) -> Result<()> {
        let (count, asked) = (page.len(), ask.rows.unwrap_or(self.rows));
        let of = (endpoint, list);
        // A page that confirms an end is shorter than the two before it.
        let is_whole = ask.confirms_end || (count < asked && self.page_sizes.gives_more(of, count));
        self.page_sizes.note(of, &page);
        self.client.abilities.note_page(of, &page);
        let shows_success = self.client.abilities.shows_success(endpoint);
        self.doubts_failures |= !shows_success || merge::are_all_failed(&page);
        if self.doubts_failures {
            merge::doubt_failures(&mut page);
        }
        if list == ExplorerList::Calls {
            self.refusals = 0;
            if count > 0 {
                self.client.abilities.note_calls(Discovery::Explorer);
                self.calls = Calls::Listed;
            }
        }
        match self.merge.absorb(&self.client.subject, list, page, is_whole) {
            Ok(DescentOutcome::Taken) => {
                self.lags = 0;
                self.avoid = None;
                if ask.rows.is_none() && count >= self.rows {
                    self.rows = self.rows_max;
                }
                Ok(())
            }
            Ok(DescentOutcome::Missed) => self.miss(endpoint).await,
            Err(fault) => Err(self.client.unreadable(endpoint, list.action(), fault)),
        }
    }

    /// Adapts the lists to an error. A refusal does not prove that the index lists no calls: a read
    /// without them has a doubt.
    async fn adapt_to_error(
        &mut self,
        list: ExplorerList,
        ask: PageAsk,
        error: UpstreamError,
    ) -> Result<()> {
        // 413: the response exceeds the size limit.
        let too_large = matches!(error, UpstreamError::Rpc { code, .. } if [PAGE_TOO_LARGE, 413].contains(&code));
        if too_large && ask.rows.is_none() && self.rows > ROWS_MIN {
            self.rows = (self.rows / 2).max(ROWS_MIN);
            self.rows_max = self.rows;
            return Ok(());
        }
        if list == ExplorerList::Calls && error.is_final() {
            self.refusals += 1;
            if self.refusals < REFUSALS_MAX {
                sleep(LAG_PAUSE * self.refusals).await;
            } else {
                tracing::warn!(%error, "the list of inner calls is refused; account lists are read without it");
                self.calls = Calls::NotListed;
                self.merge.on_list(list, Descent::give_up);
            }
            return Ok(());
        }
        Err(error)
    }

    /// Handles an answer that lacks known rows: its list may have fallen back since its height was
    /// queried, so that is queried again before the next page.
    async fn miss(&mut self, endpoint: EndpointId) -> Result<()> {
        if !self.is_top_checked {
            self.reach.forget();
        }
        self.wait_for_lagging(endpoint).await
    }

    /// Tries another endpoint next, or the same one after a pause.
    async fn wait_for_lagging(&mut self, endpoint: EndpointId) -> Result<()> {
        self.lags += 1;
        self.avoid = Some(endpoint);
        if self.lags > LAGS_MAX {
            self.lags = 0;
            // Servers catch up meanwhile.
            self.reach.forget();
            return Err(UpstreamError::Unavailable {
                attempts: LAGS_MAX,
                last: format!("{} lags behind", self.client.pool.label(endpoint)),
            });
        }
        sleep(LAG_PAUSE).await;
        Ok(())
    }

    /// Checks that the endpoints of the newest pages still show rows as new as before: if a list
    /// has fallen back meanwhile, its pages may lack the newest rows.
    async fn check_top(&mut self) -> Result<()> {
        if self.is_top_checked || !self.merge.is_ready() {
            return Ok(());
        }
        for endpoint in self.top.clone() {
            if self.check_calls_reach(endpoint).await? {
                return Ok(());
            }
            let lists = ExplorerList::ALL.into_iter().filter(|list| self.is_read(*list));
            let lists: Vec<ExplorerList> = lists.collect();
            let looks =
                lists.iter().map(|list| self.reach.rollback_since_look(endpoint, *list, self.high));
            let looks = join_all(looks).await;
            for (list, fallen) in lists.into_iter().zip(looks) {
                if let Some(heights) = fallen? {
                    self.client.abilities.reach.note(endpoint, list, &heights);
                    return Err(self.discard_rows(endpoint, list));
                }
            }
        }
        self.is_top_checked = true;
        Ok(())
    }

    /// Queries the height of an endpoint's list of calls again, if it was unknown before its pages.
    /// True if it is known now: the pages may be from a list that lagged, and are queried again.
    async fn check_calls_reach(&mut self, endpoint: EndpointId) -> Result<bool> {
        let is_done = self.is_looked_again || !self.is_read(ExplorerList::Calls);
        if is_done || self.reach.calls_were_known(endpoint, self.high) {
            return Ok(false);
        }
        let reached = Box::pin(self.reach.head(Some(endpoint))).await?;
        self.is_looked_again = true;
        if reached.is_some_and(|reached| reached < self.high) {
            return Err(self.discard_rows(endpoint, ExplorerList::Calls));
        }
        let shows = self.reach.shows_calls();
        if shows {
            self.restart_lists();
        }
        Ok(shows)
    }

    /// Discards all rows read so far, as those of this endpoint do not count; a later query shows
    /// how far it is synchronized.
    fn discard_rows(&mut self, endpoint: EndpointId, list: ExplorerList) -> UpstreamError {
        self.restart_lists();
        self.is_looked_again = false;
        self.reach.forget();
        let last =
            format!("{}: {} has fallen behind", self.client.pool.label(endpoint), list.action());
        UpstreamError::Unavailable { attempts: 1, last }
    }

    fn restart_lists(&mut self) {
        self.merge.set_high(self.high);
        self.top.clear();
    }

    fn is_read(&self, list: ExplorerList) -> bool {
        list != ExplorerList::Calls || self.calls != Calls::NotListed
    }

    /// Checks the wrapped coin's contract if the wallet has no call: it gives native coin
    /// constantly, so if it has no call either, the index lists none.
    async fn check_for_calls(&mut self) -> Result<()> {
        let is_ended = self.merge.on_list(ExplorerList::Calls, |list| list.is_ended());
        if self.calls != Calls::Unseen || is_ended == Some(false) {
            return Ok(());
        }
        if self.reach.lists_calls() {
            self.calls = self.note_calls(true);
            return Ok(());
        }
        let asked = BusyAsk { low: None, end: self.high, rows: 1 };
        let options = self.client.options();
        self.calls = match self.reach.busy_page(ExplorerList::Calls, asked, &options).await {
            Ok(reply) => {
                let rows =
                    wire::rows(ExplorerList::Calls, &reply.body, &self.client.subject.wallet);
                self.note_calls(rows.is_some_and(|rows| !rows.is_empty()))
            }
            Err(_) => Calls::NotListed,
        };
        Ok(())
    }

    fn note_calls(&self, are_there: bool) -> Calls {
        if are_there {
            self.client.abilities.note_calls(Discovery::Explorer);
            return Calls::Listed;
        }
        self.client.abilities.note_no_calls(Discovery::Explorer);
        Calls::NotListed
    }

    fn doubts(&self) -> Doubts {
        match self.calls {
            Calls::NotListed => Doubts::INNER_CALLS,
            // The list of calls may lag by hours.
            Calls::Unseen | Calls::Listed if !self.reach.shows_calls() => Doubts::INNER_CALLS,
            Calls::Unseen | Calls::Listed => Doubts::NONE,
        }
    }

    /// The height up to which the list of calls is complete.
    fn calls_until(&self) -> Option<Height> {
        let indexed = self.reach.lowest();
        let is_known = self.calls == Calls::Listed && self.reach.shows_calls();
        is_known.then_some(indexed.map_or(self.high, |at| at.min(self.high)))
    }
}
