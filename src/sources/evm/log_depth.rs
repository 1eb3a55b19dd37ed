//! How far down an endpoint keeps logs. A node that has pruned old receipts returns `[]` without an
//! error, so an answer about old blocks counts only if the endpoint is seen to keep logs at or
//! below them: nodes prune the oldest first.

use std::collections::BTreeSet;

use serde_json::json;

use super::blocks::{block_call, receipts_call};
use super::log_nodes::{Kept, LogChoice};
use super::{EvmSource, wire};
use crate::decode::evm::Word;
use crate::domain::{Height, lock};
use crate::rpc::{Call, CallAnswer, CallOptions, CallResponse, Result, UpstreamError};

/// Factors of the chain's own number of blocks in which logs of busy contracts are searched for.
const REACHES: [u64; 3] = [1, 4, 16];
const BLOCKS_MIN: u64 = 8;
/// Blocks from a head upwards in which busy logs are searched for.
const BUSY_BLOCKS: u64 = 16;
/// Blocks whose receipts are sampled if busy contracts have no logs.
const SAMPLES: u64 = 24;
/// How often blocks below the lowest non-empty one are sampled.
const ROUNDS: u32 = 3;
/// Words by which pruned nodes refuse.
const PRUNED: [&str; 5] = ["pruned", "not available", "unavailable", "unknown block", "archive"];

/// Contracts that log something within a few blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Busy {
    WrappedCoin,
    ReferencePools,
}

#[derive(Debug)]
pub(super) struct BusyQuery {
    of: Busy,
    pub(super) call: Call,
}

/// A busy contract that has logs in some blocks down from a height.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nearby {
    of: Busy,
    blocks: u64,
}

/// What to search for down from a height, by the last answer that showed depth.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Sentinel {
    #[default]
    Unknown,
    /// Busy contracts have no logs down from this height; above it nothing is known.
    None(Height),
    Of(Nearby),
}

#[derive(Debug)]
pub(super) struct DepthLook {
    pub(super) kept: Kept,
    /// A contract with logs there, for a search in the same request.
    pub(super) nearby: Option<Nearby>,
    /// The first request of the look decided it; that request was sent concurrently with the
    /// queries.
    pub(super) at_once: bool,
    /// The endpoint did not answer the look.
    pub(super) failed: Option<UpstreamError>,
}

impl DepthLook {
    /// A result without logs of busy contracts.
    pub(super) fn bare(kept: Kept) -> Self {
        Self { kept, nearby: None, at_once: false, failed: None }
    }
}

/// A block with a transaction or, by its bloom filter, a log.
#[derive(Debug)]
struct Filled {
    height: Height,
    /// Hash of its first transaction.
    first: Option<Word>,
    /// Whether it has logs, by its bloom filter.
    has_logs: bool,
}

#[derive(Debug)]
enum Sample {
    Filled(Filled),
    Empty,
    /// The endpoint lacks one of the blocks.
    Absent,
    Unreadable,
}

impl EvmSource {
    /// Whether an endpoint keeps logs down to `low`: by busy logs that must be there, else by
    /// receipts.
    pub(super) async fn look_at_depth(
        &self,
        choice: LogChoice,
        (low, high): (Height, Height),
        options: &CallOptions,
    ) -> DepthLook {
        let options = choice.options(options);
        let looked = match self.busy_log(low, choice.blocks_max, &options).await {
            Ok(Some((at, nearby))) => {
                self.note_logs_kept(choice.on, at);
                let at_once = self.search_depths(choice.blocks_max).first() == Some(&nearby.blocks);
                Ok(DepthLook { nearby: Some(nearby), at_once, ..DepthLook::bare(Kept::Yes) })
            }
            // A refusal may concern blocks below `low`.
            Ok(None) | Err(UpstreamError::Rpc { .. }) => {
                let kept = self.looked_at_receipts(choice, (low, high), &options).await;
                kept.map(DepthLook::bare)
            }
            Err(error) => Err(error),
        };
        let look = looked.unwrap_or_else(|error| DepthLook {
            failed: Some(error),
            ..DepthLook::bare(Kept::Unknown)
        });
        // Near the chain's first blocks there may be no busy logs below, but some above.
        if look.kept == Kept::Yes && low >= self.sentinel_blocks() {
            *lock(&self.inner.sentinel) = look.nearby.map_or(Sentinel::None(low), Sentinel::Of);
        }
        look
    }

    async fn looked_at_receipts(
        &self,
        choice: LogChoice,
        (low, high): (Height, Height),
        options: &CallOptions,
    ) -> Result<Kept> {
        let top = self.logs_kept_from(choice.on).unwrap_or(high).max(low);
        let kept = match self.keeps_receipts((low, top), options).await {
            Err(error @ UpstreamError::Unavailable { .. }) => return Err(error),
            kept => kept.unwrap_or_else(|error| of_error(&error)),
        };
        match kept {
            Kept::Yes => self.note_logs_kept(choice.on, low),
            Kept::No => self.note_logs_lacking(choice.on, low),
            Kept::Unknown => return Ok(Kept::Unknown),
        }
        Ok(self.known_depth(choice.on, low).unwrap_or(Kept::Unknown))
    }

    /// The lowest busy log (of the wrapped coin or a reference pool) in some blocks down from
    /// `high`, and the query that finds it.
    async fn busy_log(
        &self,
        high: Height,
        blocks_max: u64,
        options: &CallOptions,
    ) -> Result<Option<(Height, Nearby)>> {
        for blocks in self.search_depths(blocks_max) {
            let low = high.saturating_sub(blocks - 1);
            let queries = self.busy_queries(low, high);
            let calls: Vec<Call> = queries.iter().map(|query| query.call.clone()).collect();
            let mut lowest = None::<(Height, Nearby)>;
            let answers = self.inner.pool.batch(&calls, options).await;
            for (query, answer) in queries.iter().zip(answers) {
                let within = blocks_within(&answer?, (low, high));
                let Some(found) = within.into_iter().min() else { continue };
                if lowest.is_none_or(|(lowest, _)| found < lowest) {
                    lowest = Some((found, Nearby { of: query.of, blocks }));
                }
            }
            if lowest.is_some() || low == 0 {
                return Ok(lowest);
            }
        }
        Ok(None)
    }

    /// Numbers of blocks to search for busy logs, ascending.
    fn search_depths(&self, blocks_max: u64) -> BTreeSet<u64> {
        let few = self.sentinel_blocks();
        REACHES.into_iter().map(|times| (few * times).min(blocks_max).max(1)).collect()
    }

    /// Whether nodes return a busy log at a final head or a little above it. A hint that such logs
    /// can be expected there; it proves nothing about another answer.
    pub(super) async fn has_busy_log(
        &self,
        head: Height,
        newest: Height,
        options: &CallOptions,
    ) -> bool {
        let (call, range) = self.busy_above(head, newest);
        let answers = self.inner.pool.batch(&[call], options).await;
        let nearest =
            answers.iter().flatten().flat_map(|answer| blocks_within(answer, range)).min();
        *lock(&self.inner.busy_above) = nearest.map(|nearest| (head, nearest));
        nearest.is_some()
    }

    /// A query for busy logs in the `BUSY_BLOCKS` blocks from `high` up, at most up to a block that
    /// is known to exist: a log in the answer shows that the server has the logs of `high`.
    pub(super) fn busy_above(&self, high: Height, newest: Height) -> (Call, (Height, Height)) {
        let range = (high, newest.min(high.saturating_add(BUSY_BLOCKS - 1)).max(high));
        let emitters = self.busy_groups().into_iter().flat_map(|(_, emitters)| emitters);
        (busy_call(range, &emitters.collect::<Vec<String>>()), range)
    }

    /// The lowest block from `high` up with a busy log, by the last look at a final head.
    pub(super) fn nearest_busy(&self, high: Height) -> Option<Height> {
        let seen = *lock(&self.inner.busy_above);
        seen.filter(|(head, _)| *head == high).map(|(_, nearest)| nearest)
    }

    /// Queries for logs that exist down from a height on any endpoint that keeps logs so old: of
    /// the contract that had some in the last look; before the first look, of all busy contracts.
    pub(super) fn sentinels(&self, low: Height, blocks_max: u64) -> Vec<BusyQuery> {
        let known = *lock(&self.inner.sentinel);
        match known {
            Sentinel::None(seen_at) if low <= seen_at => Vec::new(),
            Sentinel::Unknown | Sentinel::None(_) => {
                let blocks = self.sentinel_blocks().min(blocks_max).max(1);
                self.busy_queries(low.saturating_sub(blocks - 1), low)
            }
            Sentinel::Of(nearby) => self.sentinel(nearby, low, blocks_max).into_iter().collect(),
        }
    }

    /// The query that last showed logs, down from `low`, if the endpoint takes that many blocks.
    pub(super) fn whole_sentinel(&self, low: Height, blocks_max: u64) -> Option<BusyQuery> {
        let known = *lock(&self.inner.sentinel);
        match known {
            Sentinel::Of(nearby) if nearby.blocks <= blocks_max => {
                self.sentinel(nearby, low, blocks_max)
            }
            Sentinel::Of(_) | Sentinel::Unknown | Sentinel::None(_) => None,
        }
    }

    /// Queries down from `low` for a contract that has logs nearby.
    pub(super) fn sentinel(
        &self,
        nearby: Nearby,
        low: Height,
        blocks_max: u64,
    ) -> Option<BusyQuery> {
        let blocks = nearby.blocks.min(blocks_max).max(1);
        let all = self.busy_queries(low.saturating_sub(blocks - 1), low);
        all.into_iter().find(|query| query.of == nearby.of)
    }

    /// Records an answer with a sentinel's logs, the newest of them at `newest`.
    pub(super) fn note_sentinel(&self, shown: &BusyQuery, low: Height, newest: Height) {
        let distance = low.saturating_sub(newest) + 1;
        let blocks = self.search_depths(u64::MAX).range(distance..).next().copied();
        let nearby = Nearby { of: shown.of, blocks: blocks.unwrap_or(distance) };
        *lock(&self.inner.sentinel) = Sentinel::Of(nearby);
    }

    fn sentinel_blocks(&self) -> u64 {
        self.inner.chain.reference_blocks.max(BLOCKS_MIN)
    }

    fn busy_queries(&self, low: Height, high: Height) -> Vec<BusyQuery> {
        let query = |(of, emitters): (Busy, Vec<String>)| BusyQuery {
            of,
            call: busy_call((low, high), &emitters),
        };
        self.busy_groups().into_iter().map(query).collect()
    }

    fn busy_groups(&self) -> Vec<(Busy, Vec<String>)> {
        let chain = &self.inner.chain;
        let hex = |address: &crate::domain::Address| wire::hex(address.bytes());
        let pools: Vec<String> = chain.reference_pools.iter().map(hex).collect();
        let coin = vec![hex(&chain.wrapped_native)];
        let groups = [(Busy::WrappedCoin, coin), (Busy::ReferencePools, pools)];
        groups.into_iter().filter(|(_, group)| !group.is_empty()).collect()
    }

    /// Whether receipts are kept, by sampled blocks from `low` up; if all are empty there is
    /// nothing to keep.
    async fn keeps_receipts(
        &self,
        (low, mut top): (Height, Height),
        options: &CallOptions,
    ) -> Result<Kept> {
        let mut kept = Kept::Yes;
        for _ in 0..ROUNDS {
            let filled = match self.lowest_filled((low, top), options).await? {
                Sample::Filled(filled) => filled,
                Sample::Empty => return Ok(kept),
                Sample::Absent => return Ok(Kept::No),
                Sample::Unreadable => return Ok(Kept::Unknown),
            };
            kept = self.keeps_block(&filled, options).await;
            match filled.height.checked_sub(1).filter(|below| *below >= low) {
                Some(below) if kept == Kept::Yes => top = below,
                Some(_) | None => return Ok(kept),
            }
        }
        Ok(kept)
    }

    /// The lowest of the sampled blocks with a transaction, or with a log by its bloom filter.
    async fn lowest_filled(
        &self,
        (low, top): (Height, Height),
        options: &CallOptions,
    ) -> Result<Sample> {
        let step = ((top - low) / SAMPLES).max(1);
        let heights = (0..SAMPLES).map(|at| low + at * step).filter(|height| *height <= top);
        let heights: Vec<Height> = heights.collect();
        let calls: Vec<Call> = heights.iter().map(|at| block_call(*at, false)).collect();
        let answers = self.inner.pool.batch(&calls, options).await;
        for (height, answer) in heights.into_iter().zip(answers) {
            let answer = answer?;
            match wire::block(&answer.result) {
                Ok(Some(block)) => {
                    let has_logs = has_logs(answer.result.get());
                    let first = block.transactions.first().copied();
                    if first.is_some() || has_logs {
                        return Ok(Sample::Filled(Filled { height, first, has_logs }));
                    }
                }
                Ok(None) => return Ok(Sample::Absent),
                Err(()) => return Ok(Sample::Unreadable),
            }
        }
        Ok(Sample::Empty)
    }

    /// Whether a block is kept: by its logs, else by its receipts. If these have logs that a search
    /// does not return, the search is not trusted there.
    async fn keeps_block(&self, filled: &Filled, options: &CallOptions) -> Kept {
        let logs = wire::logs_call((filled.height, filled.height), []);
        let mut calls = vec![logs, receipts_call(filled.height)];
        let receipt = |hash: Word| Call {
            method: "eth_getTransactionReceipt",
            params: json!([wire::hex(&hash)]),
        };
        calls.extend(filled.first.map(receipt));
        let mut answers = self.inner.pool.batch(&calls, options).await.into_iter();
        let logs = answers.next().and_then(Result::ok);
        if logs.as_ref().is_some_and(|logs| logs.result.get().contains("\"topics\"")) {
            return Kept::Yes;
        }
        let receipts: Vec<_> = answers.collect();
        let holds_log = |answer: &CallAnswer| {
            answer.as_ref().is_ok_and(|answer| answer.result.get().contains("\"topics\""))
        };
        if logs.is_some() && (filled.has_logs || receipts.iter().any(holds_log)) {
            // One empty answer proves nothing.
            calls.truncate(1);
            let again = self.inner.pool.batch(&calls, options).await;
            return if again.iter().any(holds_log) {
                Kept::Yes
            } else if again.iter().all(Result::is_ok) {
                Kept::No
            } else {
                Kept::Unknown
            };
        }
        if receipts.iter().any(is_something) {
            Kept::Yes
        } else if receipts.iter().any(Result::is_ok) {
            Kept::No
        } else {
            let refused = receipts.iter().filter_map(|answer| answer.as_ref().err()).map(of_error);
            refused.max_by_key(|kept| *kept == Kept::No).unwrap_or(Kept::Unknown)
        }
    }
}

fn busy_call(range: (Height, Height), emitters: &[String]) -> Call {
    wire::logs_call(range, [("address", json!(emitters))])
}

pub(super) fn blocks_within(answer: &CallResponse, (low, high): (Height, Height)) -> Vec<Height> {
    let logs = wire::logs(&answer.result).unwrap_or_default();
    logs.iter().map(|log| log.block).filter(|block| (low..=high).contains(block)).collect()
}

/// Whether a block's bloom filter has any bit set.
fn has_logs(block: &str) -> bool {
    let filter = block.split_once("\"logsBloom\"").map_or("", |(_, behind)| behind);
    let digits = filter.split('"').nth(1).and_then(|text| text.strip_prefix("0x"));
    digits.is_some_and(|digits| digits.bytes().any(|digit| digit != b'0'))
}

fn is_something(answer: &CallAnswer) -> bool {
    let empty = |answer: &CallResponse| ["null", "[]"].contains(&answer.result.get().trim());
    answer.as_ref().is_ok_and(|answer| !empty(answer))
}

fn of_error(error: &UpstreamError) -> Kept {
    let UpstreamError::Rpc { message, .. } = error else { return Kept::Unknown };
    let text = message.to_lowercase();
    if PRUNED.iter().any(|word| text.contains(word)) { Kept::No } else { Kept::Unknown }
}
