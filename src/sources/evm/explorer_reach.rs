//! How far the lists of an index's endpoints are synchronized, as far as their answers show.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::{join4, try_join_all};
use tokio::time::{Instant, sleep};

use super::descent::PageAsk;
use super::explorer_wire::{self as wire, ExplorerList, NOT_INDEXED, PAGE_TOO_LARGE};
use super::list_client::ListClient;
use super::texts::hex_text;
use crate::domain::{Height, lock};
use crate::rpc::{Ask, CallOptions, EndpointId, Pool, Reply, Result, UpstreamError};

/// A height above all blocks: indexes take it as "up to the newest".
const NEWEST: Height = 999_999_999_999;
/// Factor of the chain's lag within which an account's newest row is the list's height; an older
/// row may only mean that the account is little used.
const QUIET: u64 = 16;
/// Newest rows by which an account's use is measured, and their minimum. The list is behind if the
/// account has had no row for several times the blocks that these span.
const USED_ROWS: usize = 25;
const USED_ROWS_MIN: usize = 10;
const PAUSES: u64 = 4;
/// The most blocks by which an index may fall back; rows further below are not checked again.
const FALL_MAX: u64 = 10_000;
/// Rows requested in each query for the newest ones of a list.
const NEWEST_ROWS: [usize; 3] = [1, 2, USED_ROWS];
/// How often an answer too short to measure an account's use is requested again.
const SHORT_MAX: usize = 2;
/// How often a query for so few rows is repeated after a timeout; and a query for calls after any
/// refusal.
const SLOW_MAX: u32 = 4;
const REFUSED_MAX: u32 = 2;
const SLOW_PAUSE: Duration = Duration::from_millis(500);
/// The observed height of an endpoint counts for this long for the newest pages that are queried
/// after it.
const LOOK_AGE_MAX: Duration = Duration::from_secs(10);

/// Whether an endpoint had reached a height before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Reached,
    Behind,
    /// The endpoint's height was not queried before.
    Unknown,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct BusyAsk {
    pub(super) low: Option<Height>,
    pub(super) end: Height,
    pub(super) rows: usize,
}

impl BusyAsk {
    fn newest(rows: usize) -> Self {
        Self { low: None, end: NEWEST, rows }
    }
}

#[derive(Debug, Default)]
struct NewestRows {
    /// Height of the newest row in each answer.
    rows: Vec<Height>,
    /// Number of blocks that its newest rows span, if there are enough rows; the maximum if the
    /// account has so few rows in all.
    spanned_blocks: Option<u64>,
    /// The rows were requested only up to this height.
    end: Option<Height>,
    /// No answer was available.
    is_refused: bool,
}

impl NewestRows {
    /// `is_all`: the account has no other rows.
    fn add(&mut self, page: &[Height], is_all: bool) {
        self.rows.extend(page.first());
        let (Some(first), Some(last)) = (page.first(), page.last()) else { return };
        if page.len() >= USED_ROWS_MIN {
            self.spanned_blocks = Some(first.saturating_sub(*last));
        } else if is_all {
            self.spanned_blocks = Some(u64::MAX);
        }
    }

    fn newest(&self) -> Option<Height> {
        self.rows.iter().copied().max()
    }

    /// The list's height: that of the newest row, unless it is old and the account's rows show that
    /// it is little used; then the head less the lag.
    fn reach(&self, by_head: Option<Height>, lag: u64) -> Option<Height> {
        let is_reach = |row: &Height| {
            let behind = behind(*row, by_head);
            let is_pause =
                |spanned_blocks: u64| behind <= spanned_blocks.max(1).saturating_mul(PAUSES);
            behind <= lag * QUIET || !self.spanned_blocks.is_some_and(is_pause)
        };
        self.newest().filter(is_reach).or(by_head)
    }

    /// Whether the rows are old and more are needed to distinguish a lagging list from a little
    /// used account.
    fn needs_more_rows(&self, by_head: Option<Height>, lag: u64) -> bool {
        let is_old = |row: Height| behind(row, by_head) > lag * QUIET;
        self.spanned_blocks.is_none() && self.newest().is_some_and(is_old)
    }

    /// Whether the list's height is known. A list without any row of the account counts as lagging
    /// by no more than the chain's usual lag.
    fn shows_reach(&self, by_head: Option<Height>, lag: u64) -> bool {
        !self.is_refused && !self.needs_more_rows(by_head, lag)
    }
}

fn behind(row: Height, by_head: Option<Height>) -> u64 {
    by_head.map_or(0, |by_head| by_head.saturating_sub(row))
}

#[derive(Debug)]
pub(super) struct ExplorerReach {
    client: ListClient,
    /// Height of each endpoint's lists and the time of the observation; `None` if unknown.
    heads: Mutex<HashMap<EndpointId, (Option<Height>, Instant)>>,
    /// Endpoints whose list of calls did not show its height.
    unknown_calls: Mutex<BTreeSet<EndpointId>>,
    /// The oldest of the newest rows that each list showed before pages were queried.
    shown: Mutex<HashMap<(EndpointId, ExplorerList), Height>>,
}

impl ExplorerReach {
    pub(super) fn new(client: ListClient) -> Self {
        Self {
            client,
            heads: Mutex::default(),
            unknown_calls: Mutex::default(),
            shown: Mutex::default(),
        }
    }

    pub(super) fn known(&self) -> BTreeSet<EndpointId> {
        lock(&self.heads).keys().copied().collect()
    }

    /// The lowest height of these endpoints.
    pub(super) fn lowest(&self) -> Option<Height> {
        lock(&self.heads).values().filter_map(|(head, _)| *head).min()
    }

    /// Forgets old observations, so that their endpoints are queried again: they may have fallen
    /// back.
    pub(super) fn forget_old(&self) {
        lock(&self.heads).retain(|_, (_, at)| at.elapsed() < LOOK_AGE_MAX);
    }

    /// Forgets all observations: heads grow, and servers fall behind.
    pub(super) fn forget(&self) {
        lock(&self.heads).clear();
    }

    /// Queries the height of the only endpoint, if there is one alone, before pages up to a height:
    /// it may have fallen back since an earlier read, and caught up again by the end of this one.
    pub(super) async fn look_before(&self, height: Height) -> Result<()> {
        let all = self.client.pool.endpoints();
        let [only] = all.as_slice() else { return Ok(()) };
        if self.known().is_empty() && !self.is_far_above(only.id, height) {
            Box::pin(self.head(Some(only.id))).await?;
        }
        Ok(())
    }

    /// Whether all lists of an endpoint were recently so far above a height that they cannot have
    /// fallen back below it.
    fn is_far_above(&self, endpoint: EndpointId, height: Height) -> bool {
        let far = Some(height.saturating_add(FALL_MAX));
        let reach = &self.client.abilities.reach;
        ExplorerList::ALL.into_iter().all(|list| reach.reached(endpoint, list) >= far)
    }

    /// Whether an endpoint had indexed a height before a page was queried; `known`: the endpoints
    /// whose height was queried before. One that is queried only after the page may have caught up
    /// since.
    pub(super) async fn of(
        &self,
        endpoint: EndpointId,
        height: Height,
        known: &BTreeSet<EndpointId>,
    ) -> Result<Reach> {
        if self.client.pool.endpoints().len() < 2 && self.is_far_above(endpoint, height) {
            return Ok(Reach::Reached);
        }
        let head = lock(&self.heads).get(&endpoint).map(|(head, _)| *head);
        let indexed = if let Some(indexed) = head {
            indexed
        } else {
            Box::pin(self.head(Some(endpoint))).await?
        };
        Ok(match indexed {
            Some(indexed) if indexed < height => Reach::Behind,
            Some(_) | None if known.contains(&endpoint) => Reach::Reached,
            Some(_) | None => Reach::Unknown,
        })
    }

    /// Whether the heights of the lists of calls are known for all queried endpoints. If only some
    /// list calls of the wrapped coin, the others list no calls.
    pub(super) fn shows_calls(&self) -> bool {
        let (shown, heads) = (lock(&self.shown), lock(&self.heads));
        let lists = |id: &EndpointId| shown.contains_key(&(*id, ExplorerList::Calls));
        let are_alike = heads.keys().all(lists) || !heads.keys().any(lists);
        are_alike && lock(&self.unknown_calls).is_empty()
    }

    /// Whether some endpoint lists calls of the wrapped coin.
    pub(super) fn lists_calls(&self) -> bool {
        lock(&self.shown).keys().any(|(_, list)| *list == ExplorerList::Calls)
    }

    /// Whether the list of calls of an endpoint was known to reach a height before its pages; by
    /// earlier reads if this one did not query it.
    pub(super) fn calls_were_known(&self, endpoint: EndpointId, height: Height) -> bool {
        if lock(&self.heads).contains_key(&endpoint) {
            return !lock(&self.unknown_calls).contains(&endpoint);
        }
        self.client.abilities.reach.newest(endpoint, ExplorerList::Calls) >= Some(height)
    }

    /// Whether a list no longer shows rows as new as before its pages; returns the height then and
    /// now. Calls that are not available now are ignored.
    pub(super) async fn rollback_since_look(
        &self,
        endpoint: EndpointId,
        list: ExplorerList,
        high: Height,
    ) -> Result<Option<[Height; 2]>> {
        let is_calls = list == ExplorerList::Calls;
        if is_calls && lock(&self.unknown_calls).contains(&endpoint) {
            return Ok(None);
        }
        let Some(shown) = self.newest_before_pages(endpoint, list, high) else { return Ok(None) };
        let before = shown.min(high);
        let low = before.saturating_sub(FALL_MAX);
        // Calls of newer blocks may still be being indexed; a query that includes them is refused
        // as a whole.
        let end = if is_calls { shown.saturating_add(1) } else { NEWEST };
        let asked = BusyAsk { low: Some(low), end, rows: NEWEST_ROWS.len() + 1 };
        match self.newest_page(list, asked, &self.client.on(endpoint)).await {
            Ok((page, _)) => {
                let newest = page.first().copied().unwrap_or(low);
                Ok((newest < before).then_some([before, newest]))
            }
            Err(error) if is_calls && error.is_final() => {
                lock(&self.unknown_calls).insert(endpoint);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The height that a list showed before its pages; by earlier reads if this one did not query
    /// it, as far as they concern these heights.
    fn newest_before_pages(
        &self,
        endpoint: EndpointId,
        list: ExplorerList,
        high: Height,
    ) -> Option<Height> {
        let here = lock(&self.shown).get(&(endpoint, list)).copied();
        let near = |newest: &Height| newest.saturating_sub(high) < FALL_MAX;
        let earlier = || self.client.abilities.reach.newest(endpoint, list).filter(near);
        here.or_else(earlier)
    }

    /// Height of an endpoint's lists: by their newest rows of busy accounts, else by the head that
    /// it reports less the chain's lag. Several servers may answer; the one furthest behind counts.
    /// `on`: this endpoint, else any that works.
    pub(super) async fn head(&self, on: Option<EndpointId>) -> Result<Option<Height>> {
        let endpoint = self.endpoint(on).await?;
        let here = self.client.on(endpoint);
        let (transactions, tokens, calls, reported) = join4(
            self.newest_rows(ExplorerList::Transactions, (None, NEWEST), &here),
            self.newest_rows(ExplorerList::Tokens, (None, NEWEST), &here),
            self.newest_rows(ExplorerList::Calls, (None, NEWEST), &here),
            head(&self.client.pool, &here),
        )
        .await;
        let (transactions, tokens, reported) = (transactions?, tokens?, reported?);
        let by_head = reported.map(|head| head.saturating_sub(self.client.subject.chain.index_lag));
        let calls = match calls {
            Err(error) if error.is_final() => self.near_calls(&error, by_head, &here).await?,
            calls => calls?,
        };
        let mut newest = [transactions, tokens, calls];
        for (list, newest) in ExplorerList::ALL.into_iter().zip(&mut newest) {
            self.query_more_rows(list, newest, by_head, &here).await?;
            self.record_rows(endpoint, list, newest);
            if let Some(shown) = newest.rows.iter().min() {
                lock(&self.shown).insert((endpoint, list), *shown);
            }
        }
        Ok(self.record_reach(endpoint, &newest, by_head))
    }

    /// Records newest rows. Rows that were requested only up to a height are shifted up by the
    /// distance from there to the newest height that the list has shown, so that the list does not
    /// seem to lag.
    fn record_rows(&self, endpoint: EndpointId, list: ExplorerList, newest: &NewestRows) {
        let reach = &self.client.abilities.reach;
        let most = newest.end.map(|end| end.saturating_sub(1));
        let above = reach.newest(endpoint, list).zip(most);
        let above = above.map_or(0, |(known, most)| known.saturating_sub(most));
        let rows: Vec<_> = newest.rows.iter().map(|row| row.saturating_add(above)).collect();
        reach.note(endpoint, list, &rows);
    }

    async fn endpoint(&self, on: Option<EndpointId>) -> Result<EndpointId> {
        let all = self.client.pool.endpoints();
        let only = all.first().filter(|_| all.len() == 1).map(|endpoint| endpoint.id);
        if let Some(endpoint) = on.or(only) {
            return Ok(endpoint);
        }
        let (list, options) = (ExplorerList::Transactions, self.client.options());
        Ok(self.newest_page(list, BusyAsk::newest(1), &options).await?.1)
    }

    /// Height of all lists that show one; calls that do not are unknown.
    fn record_reach(
        &self,
        endpoint: EndpointId,
        newest: &[NewestRows; 3],
        by_head: Option<Height>,
    ) -> Option<Height> {
        let lag = self.client.subject.chain.index_lag;
        let known = ExplorerList::ALL.into_iter().zip(newest).filter(|(list, newest)| {
            *list != ExplorerList::Calls || newest.shows_reach(by_head, lag)
        });
        let reached: Vec<_> = known.map(|(_, newest)| newest.reach(by_head, lag)).collect();
        if reached.len() < newest.len() {
            lock(&self.unknown_calls).insert(endpoint);
        } else {
            lock(&self.unknown_calls).remove(&endpoint);
        }
        let behind = self.client.abilities.reach.lag(endpoint);
        let lowest = reached.into_iter().min().flatten();
        let lowest = lowest.map(|lowest| lowest.saturating_sub(behind));
        lock(&self.heads).insert(endpoint, (lowest, Instant::now()));
        lowest
    }

    /// Queries the newest calls after the query for all calls was refused: only those near a
    /// height, which is cheaper for an index; if it is still working on the newest blocks, as it
    /// nearly always is, only those below the chain's lag.
    async fn near_calls(
        &self,
        refused: &UpstreamError,
        height: Option<Height>,
        options: &CallOptions,
    ) -> Result<NewestRows> {
        let low = height.unwrap_or(0).saturating_sub(self.client.subject.chain.index_lag * QUIET);
        let ends = [None, height];
        for end in ends.into_iter().skip(usize::from(is_worked_on(refused))) {
            let range = (Some(low), end.unwrap_or(NEWEST));
            match self.newest_rows(ExplorerList::Calls, range, options).await {
                Ok(rows) => {
                    return Ok(NewestRows { end, is_refused: rows.rows.is_empty(), ..rows });
                }
                Err(error) if is_worked_on(&error) => {}
                Err(error) if error.is_final() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(NewestRows { is_refused: true, ..NewestRows::default() })
    }

    /// Old rows mean a list that lags or a little used account. An answer too short to decide is
    /// requested again, with more rows below.
    async fn query_more_rows(
        &self,
        list: ExplorerList,
        newest: &mut NewestRows,
        by_head: Option<Height>,
        options: &CallOptions,
    ) -> Result<()> {
        for more in 1..=SHORT_MAX {
            if !newest.needs_more_rows(by_head, self.client.subject.chain.index_lag) {
                return Ok(());
            }
            match self.whole_page(list, USED_ROWS + more, options).await {
                Ok((page, is_all)) => newest.add(&page, is_all),
                Err(error) if list == ExplorerList::Calls && error.is_final() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A page of so many newest rows; true if another query shows that there are no more.
    async fn whole_page(
        &self,
        list: ExplorerList,
        rows: usize,
        options: &CallOptions,
    ) -> Result<(Vec<Height>, bool)> {
        let (mut page, _) = self.newest_page(list, BusyAsk::newest(rows), options).await?;
        let Some(lowest) = page.last().copied().filter(|_| page.len() < USED_ROWS_MIN) else {
            return Ok((page, false));
        };
        let asked = BusyAsk { end: lowest, ..BusyAsk::newest(rows) };
        let (below, _) = self.newest_page(list, asked, options).await?;
        let is_all = below.is_empty();
        page.extend(below);
        Ok((page, is_all))
    }

    /// Queries the newest rows several times, each time differently so that no cache answers. For a
    /// list that was not seen before the first query goes alone, so that a refusal costs one
    /// request.
    async fn newest_rows(
        &self,
        list: ExplorerList,
        (low, end): (Option<Height>, Height),
        options: &CallOptions,
    ) -> Result<NewestRows> {
        let page = |rows| self.newest_page(list, BusyAsk { low, end, rows }, options);
        let seen =
            options.on.and_then(|endpoint| self.client.abilities.reach.newest(endpoint, list));
        let (first, rest): (&[usize], &[usize]) = match seen {
            Some(_) => (&[], &NEWEST_ROWS),
            None => NEWEST_ROWS.split_at(1),
        };
        let mut newest = NewestRows::default();
        for rows in [first, rest] {
            for (page, _) in try_join_all(rows.iter().map(|rows| page(*rows))).await? {
                newest.add(&page, false);
            }
        }
        Ok(newest)
    }

    /// Heights of the newest rows of a busy account, each less one: the row's own block may be
    /// indexed in part.
    async fn newest_page(
        &self,
        list: ExplorerList,
        asked: BusyAsk,
        options: &CallOptions,
    ) -> Result<(Vec<Height>, EndpointId)> {
        let reply = self.busy_page(list, asked, options).await?;
        let rows = wire::rows(list, &reply.body, &self.client.subject.wallet).unwrap_or_default();
        self.client.abilities.note_page((reply.endpoint, list), &rows);
        let heights = rows.iter().map(|row| row.block.saturating_sub(1)).collect();
        Ok((heights, reply.endpoint))
    }

    /// Queries a few rows. A query this small that timed out is repeated, as it succeeds later. The
    /// one for all calls of the wrapped coin is the heaviest of all and is not: the caller requests
    /// fewer calls next.
    pub(super) async fn busy_page(
        &self,
        list: ExplorerList,
        BusyAsk { low, end, rows }: BusyAsk,
        options: &CallOptions,
    ) -> Result<Reply> {
        let chain = &self.client.subject.chain;
        let pool = chain.reference_pools.first().filter(|_| list == ExplorerList::Tokens);
        let busy = hex_text(pool.unwrap_or(&chain.wrapped_native).bytes());
        let most = match (list, low) {
            (ExplorerList::Transactions | ExplorerList::Tokens, _) => SLOW_MAX,
            (ExplorerList::Calls, Some(_)) => REFUSED_MAX,
            (ExplorerList::Calls, None) => 0,
        };
        let low = low.unwrap_or(0);
        let ask = PageAsk { low, end, page: 1, rows: Some(rows), confirms_end: false };
        let request = wire::page_ask(list, busy, &ask, rows);
        let mut reply = self.client.pool.ask(&request, wire::read_list, options).await;
        for again in 1..=most {
            let Err(UpstreamError::Rpc { code, .. }) = &reply else { break };
            if *code != PAGE_TOO_LARGE && list != ExplorerList::Calls {
                break;
            }
            sleep(SLOW_PAUSE * again).await;
            reply = self.client.pool.ask(&request, wire::read_list, options).await;
        }
        reply
    }
}

/// Whether an index refuses a list because some of its blocks are still being indexed.
fn is_worked_on(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Rpc { code: NOT_INDEXED, .. })
}

/// Queries the newest block in Etherscan's form, then in Blockscout's.
async fn head(pool: &Pool, options: &CallOptions) -> Result<Option<Height>> {
    for (name, module, action) in [
        ("proxy/eth_blockNumber", "proxy", "eth_blockNumber"),
        ("block/eth_block_number", "block", "eth_block_number"),
    ] {
        let query = vec![("module", module.to_owned()), ("action", action.to_owned())];
        let ask = Ask { name, path: String::new(), query, body: None };
        match pool.ask(&ask, wire::read_head, options).await {
            Ok(reply) => return Ok(wire::head(&reply.body)),
            Err(error) if error.is_final() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
