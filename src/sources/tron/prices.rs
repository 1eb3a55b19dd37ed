//! Price of the native coin from the chain's reference pools, by the nodes' JSON-RPC, where pools
//! have the form of EVM chains.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::try_join_all;
use serde_json::json;

use super::{RpcAnswers, TronSource, wire};
use crate::decode::evm::Account;
use crate::domain::{Height, Moment, Price};
use crate::rpc::{Call, CallOptions, CallOutcome, EndpointId, Result, UpstreamError};
use crate::sources::evm::abi;
use crate::sources::evm::wire::{self as evm_wire, head_call};
use crate::sources::known_pools::MISSING_ANSWERS;
use crate::sources::reference::{
    self, DECIMALS_MAX, PoolEvent, Range, ReferencePool, Search, TOPICS,
};
use crate::sources::second_answers::Unconfirmed;

/// Age in seconds of a block that every server that answers has.
const RECENT_SECONDS: u64 = 3 * 60 * 60;

/// The chain's reference pools, stablecoins and wrapped coin, by its row in the registry.
#[derive(Debug)]
pub(super) struct References {
    pub(super) pools: Vec<Account>,
    pub(super) stables: Vec<Account>,
    pub(super) wrapped: Account,
    pub(super) native_decimals: u8,
    pub(super) blocks: u64,
}

impl TronSource {
    /// Whether a token is the wrapped coin or a stablecoin.
    pub(super) fn is_reference(&self, token: &Account) -> bool {
        let References { stables, wrapped, .. } = &self.inner.references;
        wrapped == token || stables.contains(token)
    }

    pub(crate) async fn native_prices(
        &self,
        at: &[Moment],
        options: &CallOptions,
    ) -> Result<Vec<Option<Price>>> {
        let pools = self.references(options).await?;
        let asks_head = self.is_recent(at);
        let mut search = Search::new(&pools, at);
        for blocks in Search::search_depths(self.inner.references.blocks) {
            if search.open().is_empty() {
                break;
            }
            let ranges = reference::ranges(search.open(), blocks);
            let events = self.pool_events(&pools, ranges, asks_head, options).await?;
            search.read(&pools, &events, blocks);
        }
        Ok(search.prices(at))
    }

    async fn references(&self, options: &CallOptions) -> Result<Arc<Vec<ReferencePool>>> {
        if let Some(known) = self.inner.known_references.get() {
            return Ok(known);
        }
        let row = &self.inner.references;
        let asked = row.pools.iter().map(|emitter| self.confirmed_reference(*emitter, options));
        let pools = try_join_all(asked).await?.into_iter().flatten();
        Ok(self.inner.known_references.set(pools.collect(), row.pools.len()))
    }

    /// A reference pool; `None` once several answers show that it does not exist: a node may not
    /// have it yet.
    async fn confirmed_reference(
        &self,
        emitter: Account,
        options: &CallOptions,
    ) -> Result<Option<ReferencePool>> {
        let mut options = options.clone();
        for _ in 0..MISSING_ANSWERS {
            match self.reference(emitter, &options).await {
                Ok(Ok(pool)) => return Ok(Some(pool)),
                Ok(Err(by)) => options.avoid = Some(by),
                // A request with a single call was refused.
                Err(UpstreamError::Rpc { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// What a pool and its tokens report; `Err` names an endpoint by which it is no pool of the
    /// native coin and a stablecoin.
    async fn reference(
        &self,
        emitter: Account,
        options: &CallOptions,
    ) -> Result<Result<ReferencePool, EndpointId>> {
        let row = &self.inner.references;
        let calls = abi::TOKENS.map(|selector| (emitter, selector));
        let (sides, by) = self.constants(&calls, options).await?;
        let side = |at: usize| {
            let word = sides.get(at)?.as_deref()?.first_chunk::<32>()?;
            evm_wire::account_of(word)
        };
        let (native_first, stable) = match (side(0), side(1)) {
            (Some(one), Some(stable)) if one == row.wrapped => (true, stable),
            (Some(stable), Some(one)) if one == row.wrapped => (false, stable),
            _ => return Ok(Err(by)),
        };
        if !row.stables.contains(&stable) {
            return Ok(Err(by));
        }
        let (reported, by) = self.constants(&[(stable, abi::DECIMALS)], options).await?;
        let decimals = reported.first().and_then(|data| abi::decimals(data.as_deref()?));
        let decimals = decimals.filter(|reported| *reported <= DECIMALS_MAX);
        let pool = decimals.map(|stable_decimals| ReferencePool {
            emitter,
            id: None,
            native_first,
            native_decimals: row.native_decimals,
            stable_decimals,
        });
        Ok(pool.ok_or(by))
    }

    /// Results of contracts' calls without arguments, and the endpoint; `None` if one has no
    /// result.
    async fn constants(
        &self,
        asked: &[(Account, [u8; 4])],
        options: &CallOptions,
    ) -> Result<(Vec<Option<Vec<u8>>>, EndpointId)> {
        let calls: Vec<Call> =
            asked.iter().map(|(to, selector)| evm_wire::eth_call(to, selector)).collect();
        let (answers, by) = self.rpc("eth_call", &calls, options).await?;
        let data = |answer: &CallOutcome| evm_wire::returned(answer.as_ref().ok()?);
        Ok((answers.iter().map(data).collect(), by))
    }

    /// Whether some of these moments are so recent that a server may lack their blocks.
    fn is_recent(&self, at: &[Moment]) -> bool {
        let newest = at.iter().map(|moment| u64::from(moment.time.0)).max();
        let now = self.inner.pool.now().0 / 1_000;
        newest.is_some_and(|newest| newest.saturating_add(RECENT_SECONDS) > now)
    }

    /// `asks_head`: the server must show its height before the events.
    async fn pool_events(
        &self,
        pools: &[ReferencePool],
        ranges: Vec<Range>,
        asks_head: bool,
        options: &CallOptions,
    ) -> Result<Vec<PoolEvent>> {
        let limits = &self.inner.limits;
        let emitters: Vec<Account> = pools.iter().map(|pool| pool.emitter).collect();
        let mut left: VecDeque<Range> =
            ranges.into_iter().flat_map(|r| reference::split(r, limits.logs_range_max)).collect();
        let mut events = Vec::new();
        while !left.is_empty() {
            let count = left.len().min(limits.logs_batch_max.max(1));
            let asked: Vec<Range> = left.drain(..count).collect();
            let calls: Vec<Call> = asked.iter().map(|range| pool_call(&emitters, *range)).collect();
            let high = asked.iter().map(|range| range.1).max().filter(|_| asks_head);
            let (answers, endpoint) = match self.confirmed_events(&calls, high, options).await {
                // An error of the whole request.
                Err(UpstreamError::Rpc { code, message, endpoint }) => {
                    let parts = smaller(&asked, (code, &message));
                    left.extend(parts.ok_or(UpstreamError::Rpc { endpoint, code, message })?);
                    continue;
                }
                answered => answered?,
            };
            for (range, answer) in asked.iter().zip(answers) {
                match answer {
                    Ok(result) => {
                        let found = self.events(&result, *range, endpoint)?;
                        events.extend(found.into_iter().map(PoolEvent::from));
                    }
                    Err(error) => {
                        let parts =
                            smaller(std::slice::from_ref(range), (error.code, &error.message));
                        left.extend(parts.ok_or_else(|| self.refused(endpoint, error))?);
                    }
                }
            }
        }
        // A stable sort: events of a block keep their order.
        events.sort_by_key(|event| event.height);
        Ok(events)
    }

    /// Queries ranges without events again, at another endpoint if possible: reference pools are
    /// busy, so an empty range needs confirmation. A price from more distant events would be wrong.
    async fn confirmed_events(
        &self,
        calls: &[Call],
        high: Option<Height>,
        options: &CallOptions,
    ) -> RpcAnswers {
        let (mut answers, endpoint) = self.events_up_to(calls, high, options).await?;
        let mut open = Unconfirmed::of(&answers, |events| events.get() == "[]");
        let elsewhere = CallOptions { avoid: Some(endpoint), ..options.clone() };
        let here = CallOptions { on: Some(endpoint), ..options.clone() };
        for (is_last, options) in [(false, elsewhere), (true, here)] {
            let again = open.calls(calls);
            if again.is_empty() {
                break;
            }
            match self.events_up_to(&again, high, &options).await {
                Ok((found, _)) => open.take(&mut answers, found),
                Err(error) if is_last => return Err(error),
                Err(_) => {}
            }
        }
        Ok((answers, endpoint))
    }

    /// Answers of a server that shows before them that it has reached a height.
    async fn events_up_to(
        &self,
        calls: &[Call],
        high: Option<Height>,
        options: &CallOptions,
    ) -> RpcAnswers {
        let Some(high) = high else { return self.rpc("eth_getLogs", calls, options).await };
        let all: Vec<Call> = [head_call()].into_iter().chain(calls.iter().cloned()).collect();
        let (answers, by) = self.rpc("eth_getLogs", &all, options).await?;
        let mut events = answers.into_iter();
        let head = events.next().and_then(|head| evm_wire::number(&head.ok()?));
        if head.is_none_or(|head| head < high) {
            let last = format!("no node gives events up to block {high} yet");
            return Err(UpstreamError::unavailable(last));
        }
        Ok((events.collect(), by))
    }
}

/// Smaller ranges if the node refuses these as too large and they can be split: of as many blocks
/// as it names, else halves.
fn smaller(ranges: &[Range], (code, message): (i64, &str)) -> Option<Vec<Range>> {
    let can_split = ranges.iter().any(|(low, high)| low < high);
    let named = wire::range_named(message);
    (wire::is_too_large(code, message) && can_split).then(|| {
        let part = |range: &Range| {
            let blocks = range.1 - range.0;
            let fits = named.filter(|named| *named <= blocks);
            reference::split(*range, fits.unwrap_or(blocks.div_ceil(2)))
        };
        ranges.iter().flat_map(part).collect()
    })
}

pub(super) fn pool_call(pools: &[Account], range: Range) -> Call {
    let emitters: Vec<String> = pools.iter().map(|pool| evm_wire::hex(pool)).collect();
    evm_wire::logs_call(range, [("address", json!(emitters)), ("topics", json!([TOPICS]))])
}
