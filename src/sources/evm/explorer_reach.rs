//! How far the lists of the endpoints of an index have come, as far as their own answers show.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join4;
use tokio::time::sleep;

use super::abilities::Abilities;
use super::descent::PageAsk;
use super::explorer_wire::{self as wire, ExplorerList, PAGE_TOO_LARGE};
use super::subject::Subject;
use super::texts::hex_text;
use crate::domain::Height;
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::UpstreamError;
use crate::rpc::exchange::Ask;
use crate::rpc::pool::{CallOptions, Pool};
use crate::rpc::scheduler::Lane;

/// A height above all: indexes take it as "up to the newest".
const NEWEST: Height = 999_999_999_999;
/// Times the chain's lag below which the newest row of an account may say that it is little used, and
/// not that the list is behind.
const QUIET: u64 = 16;
/// Newest rows that show how much an account is used, so many at least. It is not so little where it
/// has had none for several times the blocks of all of them.
const USED_ROWS: usize = 25;
const USED_ROWS_MIN: usize = 10;
const PAUSES: u64 = 4;
/// Blocks by which an index may fall back: what is further below its newest rows is not looked at again.
const FALL_MAX: u64 = 10_000;
/// Answers about the newest rows of each list.
pub(super) const NEWEST_ANSWERS: usize = 3;
/// Queries for so few rows that took too long, one after the other.
const SLOW_MAX: u32 = 4;
const SLOW_PAUSE: Duration = Duration::from_millis(500);

/// Whether an endpoint had come to a height before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Reached,
    Behind,
    /// It was not asked before.
    Unknown,
}

/// What a list shows of an account that is used all the time.
#[derive(Debug, Default)]
struct Newest {
    /// Heights of its newest row, by answer.
    rows: Vec<Height>,
    /// Blocks of its newest rows, where there are enough of them.
    used: Option<u64>,
}

impl Newest {
    /// Its newest row, where it says how far the list has come: one far below may be that of an account
    /// that is little used.
    fn reach(&self, by_head: Option<Height>, lag: u64) -> Option<Height> {
        let is_reach = |row: &Height| {
            let behind = by_head.map_or(0, |by_head| by_head.saturating_sub(*row));
            let is_pause = |used: u64| behind <= used.max(1).saturating_mul(PAUSES);
            behind <= lag * QUIET || !self.used.is_none_or(is_pause)
        };
        self.rows.iter().copied().max().filter(is_reach).or(by_head)
    }
}

#[derive(Debug)]
pub(super) struct ExplorerReach {
    pool: Pool,
    subject: Subject,
    lane: Lane,
    abilities: Arc<Abilities>,
    /// How far each endpoint's lists have come; `None` where that is not known.
    heads: Mutex<HashMap<EndpointId, Option<Height>>>,
    /// The oldest of the newest transactions that each endpoint showed before pages were asked for.
    shown: Mutex<HashMap<EndpointId, Height>>,
}

impl ExplorerReach {
    pub(super) fn new(
        pool: &Pool,
        subject: &Subject,
        lane: &Lane,
        abilities: &Arc<Abilities>,
    ) -> Self {
        Self {
            pool: pool.clone(),
            subject: subject.clone(),
            lane: lane.clone(),
            abilities: Arc::clone(abilities),
            heads: Mutex::default(),
            shown: Mutex::default(),
        }
    }

    /// How far all lists of an endpoint have come.
    pub(super) async fn head(&self) -> Result<Option<Height>, UpstreamError> {
        self.indexed(&CallOptions::new(self.lane.clone())).await
    }

    /// Endpoints that were asked.
    pub(super) fn known(&self) -> BTreeSet<EndpointId> {
        lock(&self.heads).keys().copied().collect()
    }

    /// The lowest height that one of them has come to.
    pub(super) fn lowest(&self) -> Option<Height> {
        lock(&self.heads).values().copied().flatten().min()
    }

    /// They are asked again: heads grow, and servers fall behind.
    pub(super) fn forget(&self) {
        lock(&self.heads).clear();
    }

    /// Whether an endpoint had indexed a height when it was asked for a page. Where there is only one,
    /// it was asked how far it has come before the list was begun; `known`: so were these, before the
    /// page. One that is asked after it may have come there since.
    pub(super) async fn of(
        &self,
        endpoint: EndpointId,
        height: Height,
        known: &BTreeSet<EndpointId>,
    ) -> Result<Reach, UpstreamError> {
        if self.pool.endpoints().len() < 2 {
            return Ok(Reach::Reached);
        }
        let head = lock(&self.heads).get(&endpoint).copied();
        let indexed = if let Some(indexed) = head {
            indexed
        } else {
            let here = CallOptions { on: Some(endpoint), ..CallOptions::new(self.lane.clone()) };
            Box::pin(self.indexed(&here)).await?
        };
        Ok(match indexed {
            Some(indexed) if indexed < height => Reach::Behind,
            Some(_) | None if known.contains(&endpoint) => Reach::Reached,
            Some(_) | None => Reach::Unknown,
        })
    }

    /// What an endpoint showed before its pages; where this read did not look, what it showed to
    /// earlier ones, as far as that is about these heights.
    pub(super) fn shown_before(
        &self,
        endpoint: EndpointId,
        list: ExplorerList,
        high: Height,
    ) -> Option<Height> {
        let here = lock(&self.shown).get(&endpoint).copied();
        let near = |newest: &Height| newest.saturating_sub(high) < FALL_MAX;
        let earlier = || self.abilities.reach.newest(endpoint, list).filter(near);
        here.or_else(|| earlier().map(|newest| newest.min(high)))
    }

    /// How far the lists of an endpoint have come, by their newest rows of accounts that are used
    /// all the time; where they show none, by the head that it reports less the chain's lag. Several
    /// servers may answer for it: what the one farthest behind shows counts.
    async fn indexed(&self, options: &CallOptions) -> Result<Option<Height>, UpstreamError> {
        let all = self.pool.endpoints();
        let only = all.first().filter(|_| all.len() == 1).map(|endpoint| endpoint.id);
        let endpoint = if let Some(endpoint) = options.on.or(only) {
            endpoint
        } else {
            self.newest_row(ExplorerList::Transactions, 1, options).await?.1
        };
        let here = CallOptions { on: Some(endpoint), ..options.clone() };
        let (transactions, tokens, calls, reported) = join4(
            self.newest_rows(ExplorerList::Transactions, &here),
            self.newest_rows(ExplorerList::Tokens, &here),
            self.newest_calls(&here),
            head(&self.pool, &here),
        )
        .await;
        let reported = reported?;
        let lag = self.subject.chain.index_lag;
        let by_head = reported.map(|reported| reported.saturating_sub(lag));
        let newest = [transactions?, tokens?, calls?];
        for (list, newest) in ExplorerList::ALL.into_iter().zip(&newest) {
            self.abilities.reach.note(endpoint, list, &newest.rows);
        }
        if let Some(shown) = newest.first().and_then(|newest| newest.rows.iter().min()) {
            lock(&self.shown).insert(endpoint, *shown);
        }
        let lowest = newest.iter().map(|newest| newest.reach(by_head, lag)).min().flatten();
        let behind = self.abilities.reach.behind(endpoint);
        let lowest = lowest.map(|lowest| lowest.saturating_sub(behind));
        lock(&self.heads).insert(endpoint, lowest);
        Ok(lowest)
    }

    async fn newest_calls(&self, options: &CallOptions) -> Result<Newest, UpstreamError> {
        match self.newest_rows(ExplorerList::Calls, options).await {
            Err(error) if error.is_final() => Ok(Newest::default()),
            rows => rows,
        }
    }

    /// Of several answers, each to another question, so that no cache gives it. One after the other:
    /// all at once would fill the endpoint's places and drive other requests to slower endpoints.
    async fn newest_rows(
        &self,
        list: ExplorerList,
        options: &CallOptions,
    ) -> Result<Newest, UpstreamError> {
        let mut newest = Newest::default();
        for rows in (1..NEWEST_ANSWERS).chain([USED_ROWS]) {
            let (page, _) = self.newest_page(list, rows, options).await?;
            newest.rows.extend(page.first());
            if let (Some(first), Some(last)) = (page.first(), page.last())
                && page.len() >= USED_ROWS_MIN
            {
                newest.used = Some(first.saturating_sub(*last));
            }
        }
        Ok(newest)
    }

    /// Below the newest row of a busy account: its block may be indexed in part.
    pub(super) async fn newest_row(
        &self,
        list: ExplorerList,
        rows: usize,
        options: &CallOptions,
    ) -> Result<(Option<Height>, EndpointId), UpstreamError> {
        let (page, endpoint) = self.newest_page(list, rows, options).await?;
        Ok((page.first().copied(), endpoint))
    }

    async fn newest_page(
        &self,
        list: ExplorerList,
        rows: usize,
        options: &CallOptions,
    ) -> Result<(Vec<Height>, EndpointId), UpstreamError> {
        let chain = &self.subject.chain;
        let pool = chain.reference_pools.first().filter(|_| list == ExplorerList::Tokens);
        let busy = hex_text(pool.unwrap_or(&chain.wrapped_native).bytes());
        let ask = PageAsk { low: 0, end: NEWEST, page: 1, rows: Some(rows), confirms_end: false };
        let request = wire::page_ask(list, busy, &ask, rows);
        let mut reply = self.pool.ask(&request, wire::read_list, options).await;
        for again in 1..=SLOW_MAX {
            // So few rows are as little as can be asked for: a query that took too long passes.
            let Err(UpstreamError::Rpc { code: PAGE_TOO_LARGE, .. }) = &reply else { break };
            sleep(SLOW_PAUSE * again).await;
            reply = self.pool.ask(&request, wire::read_list, options).await;
        }
        let reply = reply?;
        let rows = wire::rows(list, &reply.body, &self.subject.wallet).unwrap_or_default();
        let heights = rows.iter().map(|row| row.block.saturating_sub(1)).collect();
        Ok((heights, reply.endpoint))
    }
}

/// Asks as Etherscan has it, then as Blockscout does.
async fn head(pool: &Pool, options: &CallOptions) -> Result<Option<Height>, UpstreamError> {
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

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
