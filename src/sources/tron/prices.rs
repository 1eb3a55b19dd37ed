//! Price of the native coin from the chain's reference pools, by the nodes' JSON-RPC, which has
//! pools in the form of EVM chains.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use futures_util::future::try_join_all;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{TronSource, wire};
use crate::decode::evm::Account;
use crate::domain::{Height, Moment, Price};
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::UpstreamError;
use crate::rpc::jsonrpc::CallOutcome;
use crate::rpc::pool::CallOptions;
use crate::rpc::scheduler::Lane;
use crate::sources::evm::{abi, wire as evm_wire};
use crate::sources::reference::{
    self, DECIMALS_MAX, PoolEvent, Range, ReferencePool, Search, TOPICS,
};

/// `token0()`, `token1()` and `decimals()`.
const FIRST: &str = "0x0dfe1681";
const SECOND: &str = "0xd21220a7";
const DECIMALS: &str = "0x313ce567";

/// What is known of the chain's row.
#[derive(Debug)]
pub(super) struct References {
    pub(super) pools: Vec<Account>,
    pub(super) stables: Vec<Account>,
    pub(super) wrapped: Account,
    pub(super) native_decimals: u8,
    pub(super) blocks: u64,
}

impl TronSource {
    pub(crate) async fn native_prices(
        &self,
        at: &[Moment],
        lane: &Lane,
    ) -> Result<Vec<Option<Price>>, UpstreamError> {
        let options = CallOptions::new(lane.clone());
        let pools = self.references(&options).await?;
        let mut search = Search::new(&pools, at);
        for blocks in Search::reaches(self.inner.references.blocks) {
            if search.open().is_empty() {
                break;
            }
            let events = self.pool_events(&pools, search.open(), blocks, &options).await?;
            search.read(&pools, &events, blocks);
        }
        Ok(search.prices(at))
    }

    async fn references(
        &self,
        options: &CallOptions,
    ) -> Result<Arc<Vec<ReferencePool>>, UpstreamError> {
        if let Some(known) = self.inner.known_references.get() {
            return Ok(known);
        }
        let row = &self.inner.references;
        let asked = row.pools.iter().map(|emitter| self.reference(*emitter, options));
        let pools = try_join_all(asked).await?.into_iter().flatten();
        Ok(self.inner.known_references.set(pools.collect(), row.pools.len()))
    }

    /// What a pool and its coins say of themselves; `None` where it is no pool of the native coin and a
    /// stablecoin.
    async fn reference(
        &self,
        emitter: Account,
        options: &CallOptions,
    ) -> Result<Option<ReferencePool>, UpstreamError> {
        let row = &self.inner.references;
        let sides = self.constants(&[(emitter, FIRST), (emitter, SECOND)], options).await?;
        let side = |at: usize| {
            let word = sides.get(at)?.as_deref()?.first_chunk::<32>()?;
            evm_wire::account_of(word)
        };
        let (native_first, stable) = match (side(0), side(1)) {
            (Some(one), Some(stable)) if one == row.wrapped => (true, stable),
            (Some(stable), Some(one)) if one == row.wrapped => (false, stable),
            _ => return Ok(None),
        };
        if !row.stables.contains(&stable) {
            return Ok(None);
        }
        let reported = self.constants(&[(stable, DECIMALS)], options).await?;
        let decimals = reported.first().and_then(|data| abi::decimals(data.as_deref()?));
        let decimals = decimals.filter(|reported| *reported <= DECIMALS_MAX);
        Ok(decimals.map(|stable_decimals| ReferencePool {
            emitter,
            id: None,
            native_first,
            native_decimals: row.native_decimals,
            stable_decimals,
        }))
    }

    /// What contracts answer to calls without arguments; `None` where one does not.
    async fn constants(
        &self,
        asked: &[(Account, &str)],
        options: &CallOptions,
    ) -> Result<Vec<Option<Vec<u8>>>, UpstreamError> {
        let call = |(to, data): &(Account, &str)| {
            ("eth_call", json!([{"to": evm_wire::hex(to), "data": data}, "latest"]))
        };
        let calls: Vec<_> = asked.iter().map(call).collect();
        let (answers, _) = self.rpc("eth_call", &calls, options).await?;
        let data = |answer: &CallOutcome| evm_wire::returned(answer.as_ref().ok()?);
        Ok(answers.iter().map(data).collect())
    }

    async fn pool_events(
        &self,
        pools: &[ReferencePool],
        heights: &BTreeSet<Height>,
        blocks: u64,
        options: &CallOptions,
    ) -> Result<Vec<PoolEvent>, UpstreamError> {
        let limits = &self.inner.limits;
        let emitters: Vec<Account> = pools.iter().map(|pool| pool.emitter).collect();
        let ranges = reference::ranges(heights, blocks);
        let mut left: VecDeque<Range> =
            ranges.into_iter().flat_map(|r| reference::split(r, limits.logs_range_max)).collect();
        let mut events = Vec::new();
        while !left.is_empty() {
            let count = left.len().min(limits.logs_batch_max.max(1));
            let asked: Vec<Range> = left.drain(..count).collect();
            let calls: Vec<_> =
                asked.iter().map(|range| ("eth_getLogs", filter(&emitters, *range))).collect();
            let (answers, endpoint) = match self.rpc("eth_getLogs", &calls, options).await {
                Ok(answered) => answered,
                // What is said of all of them.
                Err(UpstreamError::Rpc { code, message, endpoint }) => {
                    let parts = smaller(&asked, &message);
                    left.extend(parts.ok_or(UpstreamError::Rpc { endpoint, code, message })?);
                    continue;
                }
                Err(error) => return Err(error),
            };
            for (range, answer) in asked.iter().zip(answers) {
                match answer {
                    Ok(result) => events.extend(self.read_events(&result, *range, endpoint)?),
                    Err(error) => {
                        let parts = smaller(std::slice::from_ref(range), &error.message);
                        left.extend(parts.ok_or_else(|| self.refused(endpoint, error))?);
                    }
                }
            }
        }
        // Stable: inside a block they stay in the order in which they came.
        events.sort_by_key(|event| event.height);
        Ok(events)
    }

    fn read_events(
        &self,
        result: &RawValue,
        (low, high): Range,
        by: EndpointId,
    ) -> Result<impl Iterator<Item = PoolEvent> + use<>, UpstreamError> {
        let logs = evm_wire::logs(result)
            .filter(|logs| logs.iter().all(|log| (low..=high).contains(&log.block)));
        let logs = logs.ok_or_else(|| self.malformed(by, "eth_getLogs gave no events"))?;
        Ok(logs.into_iter().map(PoolEvent::from))
    }
}

/// Smaller ranges where the node says that these are too large and they can be split: of as many
/// blocks as it names, else halves.
fn smaller(ranges: &[Range], message: &str) -> Option<Vec<Range>> {
    let can_split = ranges.iter().any(|(low, high)| low < high);
    let named = wire::range_named(message);
    (wire::is_too_much(message) && can_split).then(|| {
        let part = |range: &Range| {
            let blocks = range.1 - range.0;
            let fits = named.filter(|named| *named <= blocks);
            reference::split(*range, fits.unwrap_or(blocks.div_ceil(2)))
        };
        ranges.iter().flat_map(part).collect()
    })
}

fn filter(emitters: &[Account], (low, high): Range) -> Value {
    let emitters: Vec<String> = emitters.iter().map(|emitter| evm_wire::hex(emitter)).collect();
    json!([{
        "fromBlock": format!("{low:#x}"),
        "toBlock": format!("{high:#x}"),
        "address": emitters,
        "topics": [TOPICS],
    }])
}
