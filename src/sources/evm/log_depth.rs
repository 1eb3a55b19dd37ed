//! How far down an endpoint keeps logs. A node that has dropped the receipts of old blocks returns
//! `[]` for them and no error, so an answer about old blocks counts only where the endpoint is seen
//! to keep logs at or below them: nodes drop the oldest first.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::log_nodes::LogChoice;
use super::{EvmSource, wire};
use crate::decode::evm::Word;
use crate::domain::Height;
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::{Answer, Call, CallOptions};

/// Blocks of a look for logs of busy contracts, times the chain's own number of them.
const REACHES: [u64; 3] = [1, 4, 16];
const BLOCKS_MIN: u64 = 8;
/// Blocks above a head in which they are looked for.
const BUSY_BLOCKS: u64 = 64;
/// Blocks whose receipts are asked about where the busy contracts have no logs.
const SAMPLES: u64 = 8;
/// How pruned nodes refuse.
const PRUNED: [&str; 5] = ["pruned", "not available", "unavailable", "unknown block", "archive"];

/// Whether an endpoint keeps the logs of a height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    Yes,
    No,
    /// Its answers show neither.
    Unknown,
}

impl EvmSource {
    /// Whether an endpoint keeps logs down to `low`, by logs that must be there, else by receipts.
    pub(super) async fn keeps_logs(
        &self,
        choice: LogChoice,
        (low, high): (Height, Height),
        options: &CallOptions,
    ) -> Kept {
        if let Some(kept) = self.known_depth(choice.on, low) {
            return kept;
        }
        let options = CallOptions { on: Some(choice.on), ..options.clone() };
        let kept = match self.busy_log(low, choice.blocks_max, &options).await {
            Ok(Some(at)) => {
                self.note_logs_kept(choice.on, at);
                return Kept::Yes;
            }
            // A refusal may be about the blocks below.
            Ok(None) | Err(UpstreamError::Rpc { .. }) => {
                let top = self.logs_kept_from(choice.on).unwrap_or(high).max(low);
                self.keeps_receipts((low, top), &options).await
            }
            Err(error) => Err(error),
        };
        match kept.unwrap_or_else(|error| of_error(&error)) {
            Kept::Yes => self.note_logs_kept(choice.on, low),
            Kept::No => self.note_logs_lacking(choice.on, low),
            Kept::Unknown => return Kept::Unknown,
        }
        self.known_depth(choice.on, low).unwrap_or(Kept::Unknown)
    }

    /// The lowest log of the wrapped coin or a reference pool in some blocks down from `high`.
    async fn busy_log(
        &self,
        high: Height,
        blocks_max: u64,
        options: &CallOptions,
    ) -> Result<Option<Height>, UpstreamError> {
        let near = self.inner.chain.reference_blocks.max(BLOCKS_MIN);
        let reaches = REACHES.map(|times| (near * times).min(blocks_max).max(1));
        for blocks in BTreeSet::from(reaches) {
            let low = high.saturating_sub(blocks - 1);
            let calls = self.busy_queries(low, high);
            let mut lowest: Option<Height> = None;
            for answer in self.inner.pool.batch(&calls, options).await {
                let logs = wire::logs(&answer?.result).unwrap_or_default();
                let within = logs.iter().map(|log| log.block).filter(|b| (low..=high).contains(b));
                lowest = within.chain(lowest).min();
            }
            if lowest.is_some() || low == 0 {
                return Ok(lowest);
            }
        }
        Ok(None)
    }

    /// The newest log of the wrapped coin or a reference pool in some blocks up from a final head:
    /// shows that logs are there up to that head. `None` where there is none, or no answer.
    pub(super) async fn newest_busy_log(
        &self,
        head: Height,
        newest: Height,
        options: &CallOptions,
    ) -> Option<Height> {
        let range = head..=newest.min(head.saturating_add(BUSY_BLOCKS - 1));
        let calls = self.busy_queries(*range.start(), *range.end());
        let answers = self.inner.pool.batch(&calls, options).await;
        let logs = answers.into_iter().flatten().filter_map(|answer| wire::logs(&answer.result));
        logs.flatten().map(|log| log.block).filter(|block| range.contains(block)).max()
    }

    fn busy_queries(&self, low: Height, high: Height) -> Vec<Call> {
        let chain = &self.inner.chain;
        let hex = |address: &crate::domain::Address| wire::hex(address.bytes());
        let pools: Vec<String> = chain.reference_pools.iter().map(hex).collect();
        let groups = [vec![hex(&chain.wrapped_native)], pools];
        let query = |emitters: Vec<String>| Call {
            method: "eth_getLogs",
            params: json!([{
                "fromBlock": format!("{low:#x}"),
                "toBlock": format!("{high:#x}"),
                "address": emitters,
            }]),
        };
        groups.into_iter().filter(|group| !group.is_empty()).map(query).collect()
    }

    /// By some blocks from `low` up: where none holds a transaction there is nothing to keep.
    async fn keeps_receipts(
        &self,
        (low, top): (Height, Height),
        options: &CallOptions,
    ) -> Result<Kept, UpstreamError> {
        let step = ((top - low) / SAMPLES).max(1);
        let heights = (0..SAMPLES).map(|at| low + at * step).filter(|height| *height <= top);
        let heights: Vec<Height> = heights.collect();
        let calls: Vec<Call> =
            heights.iter().map(|at| by_height("eth_getBlockByNumber", *at)).collect();
        let mut filled: Option<(Height, Word)> = None;
        for (height, answer) in
            heights.into_iter().zip(self.inner.pool.batch(&calls, options).await)
        {
            match wire::block(&answer?.result) {
                Ok(Some(block)) => {
                    let first = block.transactions.first().map(|hash| (height, *hash));
                    filled = filled.or(first);
                }
                Ok(None) => return Ok(Kept::No),
                Err(()) => return Ok(Kept::Unknown),
            }
        }
        let Some((height, hash)) = filled else { return Ok(Kept::Yes) };
        let receipt = json!([wire::hex(&hash)]);
        let calls = [
            by_height("eth_getBlockReceipts", height),
            Call { method: "eth_getTransactionReceipt", params: receipt },
        ];
        let answers = self.inner.pool.batch(&calls, options).await;
        Ok(if answers.iter().any(is_something) {
            Kept::Yes
        } else if answers.iter().any(Result::is_ok) {
            Kept::No
        } else {
            Kept::Unknown
        })
    }

    fn logs_kept_from(&self, on: EndpointId) -> Option<Height> {
        super::lock(&self.inner.log_nodes).kept_from(on)
    }
}

fn by_height(method: &'static str, height: Height) -> Call {
    let at = format!("{height:#x}");
    let params: Value =
        if method == "eth_getBlockByNumber" { json!([at, false]) } else { json!([at]) };
    Call { method, params }
}

fn is_something(answer: &Result<Answer, UpstreamError>) -> bool {
    let empty = |answer: &Answer| ["null", "[]"].contains(&answer.result.get().trim());
    answer.as_ref().is_ok_and(|answer| !empty(answer))
}

fn of_error(error: &UpstreamError) -> Kept {
    let UpstreamError::Rpc { message, .. } = error else { return Kept::Unknown };
    let text = message.to_lowercase();
    if PRUNED.iter().any(|word| text.contains(word)) { Kept::No } else { Kept::Unknown }
}
