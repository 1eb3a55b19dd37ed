//! Blocks: their hashes, the order of their transactions, their times.

use std::collections::BTreeSet;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::listing::FIRST_HEIGHTS;
use super::wire::{self, Block};
use super::{SolanaSource, if_offered, if_offered_now};
use crate::domain::{Height, TxId, UnixSeconds, lock};
use crate::rpc::{CallOptions, CallResponse, EndpointId, Result, UpstreamError, unless_final};
use crate::sources::hash_check::HashAnswer;

/// Error codes for a slot without a block: skipped, or missing in long-term storage
/// (agave `rpc-client-api`, custom errors -32007 and -32009).
pub(super) const NO_BLOCK: [i64; 2] = [-32007, -32009];
/// The error code for a block that the node has pruned (custom error -32001).
pub(in crate::sources) const DROPPED: i64 = -32001;
/// The error code for a block that the node lacks, yet or for good (custom error -32004).
pub(in crate::sources) const NOT_AVAILABLE: i64 = -32004;

impl SolanaSource {
    pub(crate) async fn block_hash(&self, at: Height, options: &CallOptions) -> Result<HashAnswer> {
        let (block, by) = match self.fetch_block(at, "none", options).await {
            Err(UpstreamError::Rpc { code, .. }) if NO_BLOCK.contains(&code) => (None, None),
            reported => reported?.unzip(),
        };
        Ok((block.and_then(|block| wire::pubkey(&block.blockhash)), by))
    }

    pub(crate) async fn block_order(&self, at: Height, options: &CallOptions) -> Result<Vec<TxId>> {
        // An error if the slot is reported to have no block. A `null` result is no order: another
        // answer may have the block soon.
        let block = self.fetch_block(at, "signatures", options).await?;
        let signatures = block.map(|(block, _)| block.signatures).unwrap_or_default();
        Ok(signatures.iter().filter_map(|text| TxId::parse_solana(text)).collect())
    }

    /// A signature of a block above a height, as the start of lists. `None` if nodes refuse or lack
    /// such a block: then lists start at the top, which may be far above. A passing failure is an
    /// error, for a later retry.
    pub(super) async fn anchor_above(
        &self,
        height: Height,
        options: &CallOptions,
    ) -> Result<Option<TxId>> {
        let pool = &self.inner.pool;
        let params = json!([height.saturating_add(1), 1, {"commitment": "finalized"}]);
        let answer = if_offered_now(pool.call("getBlocksWithLimit", params, options).await)?;
        let slots = answer.and_then(|it| serde_json::from_str::<Vec<Height>>(it.result.get()).ok());
        let Some(slot) = slots.and_then(|slots| slots.first().copied()) else { return Ok(None) };
        let params = block_params(slot, "signatures");
        let answer = if_offered_now(pool.call("getBlock", params, options).await)?;
        let block = answer.and_then(|answer| wire::block(&answer.result).ok()?);
        Ok(block.and_then(|block| TxId::parse_solana(block.signatures.last()?)))
    }

    async fn fetch_block(
        &self,
        slot: Height,
        details: &str,
        options: &CallOptions,
    ) -> Result<Option<(Block, EndpointId)>> {
        let answer = self.ask_block(slot, details, options).await?;
        match wire::block(&answer.result) {
            Ok(block) => Ok(block.map(|block| (block, answer.endpoint))),
            Err(_) => Err(self.malformed(answer.endpoint, "getBlock gave no block")),
        }
    }

    /// Fetches a block. One that no node has is queried again: near the head it arrives later, far
    /// below it is missing for good.
    pub(super) async fn ask_block(
        &self,
        slot: Height,
        details: &str,
        options: &CallOptions,
    ) -> Result<CallResponse> {
        let limits = &self.inner.limits;
        let mut tries = 1;
        loop {
            let params = block_params(slot, details);
            let asked = self.inner.pool.call("getBlock", params, options).await;
            let Err(UpstreamError::Rpc { code: NOT_AVAILABLE, message, .. }) = &asked else {
                return asked;
            };
            if tries >= limits.missing_tries_max {
                let is_near =
                    self.head(options).await? <= slot.saturating_add(limits.block_late_max);
                return if is_near {
                    Err(UpstreamError::unavailable(message.as_str()))
                } else {
                    asked
                };
            }
            sleep(limits.missing_pause * tries).await;
            tries += 1;
        }
    }

    /// The time of a slot's block: the reported one, else its own, else that of the nearest lower
    /// slot with a time; `None` if there is none.
    pub(super) async fn time_of(
        &self,
        slot: Height,
        reported: Option<i64>,
        options: &CallOptions,
    ) -> Result<Option<UnixSeconds>> {
        // Some answer 0 where no time is known.
        let reported = reported.and_then(|time| u64::try_from(time).ok());
        let time = match reported.filter(|time| *time > 0) {
            Some(time) => Some(time),
            None => self.time_near(slot, options).await?,
        };
        Ok(time.and_then(|time| u32::try_from(time).ok()).map(UnixSeconds))
    }

    /// A slot's time, else that of the nearest lower slot that has one.
    async fn time_near(&self, slot: Height, options: &CallOptions) -> Result<Option<u64>> {
        let lowest = slot.saturating_sub(self.inner.limits.time_slots_max);
        for near in (lowest..=slot).rev() {
            let asked =
                self.inner.pool.call("getBlockTime", Value::Array(vec![near.into()]), options);
            let answer = unless_final(asked.await)?;
            let time = answer.and_then(|answer| wire::number(&answer.result));
            if time.is_some_and(|time| time > 0) {
                return Ok(time);
            }
        }
        Ok(None)
    }

    /// The first block that each of these nodes keeps, without nodes that do not support the query.
    /// An error only if none answers.
    pub(super) async fn first_kept(
        &self,
        by: [Option<EndpointId>; 2],
        options: &CallOptions,
    ) -> Result<Vec<(EndpointId, Height)>> {
        let nodes: BTreeSet<EndpointId> = by.into_iter().flatten().collect();
        let asked = nodes.into_iter().map(|id| async move {
            // Another node can confirm the end instead.
            let options = CallOptions { on: Some(id), is_replaceable: true, ..options.clone() };
            let asked = self.inner.pool.call("getFirstAvailableBlock", json!([]), &options);
            let Some(answer) = if_offered(asked.await)? else { return Ok(None) };
            let first = wire::number(&answer.result)
                .ok_or_else(|| self.malformed(answer.endpoint, "getFirstAvailableBlock"))?;
            lock(&self.inner.first_kept).insert(id, first);
            Ok(Some((id, first)))
        });
        let mut asked: FuturesUnordered<_> = asked.collect();
        let (mut reported, mut failed) = (Vec::new(), Vec::new());
        while let Some(answer) = asked.next().await {
            match answer {
                // One node that keeps the whole chain suffices.
                Ok(Some((id, first))) if first <= FIRST_HEIGHTS => return Ok(vec![(id, first)]),
                Ok(kept) => reported.extend(kept),
                Err(error) => failed.push(error),
            }
        }
        failed.pop().filter(|_| reported.is_empty()).map_or(Ok(reported), Err)
    }
}

pub(super) fn block_params(slot: Height, details: &str) -> Value {
    let how = json!({
        "transactionDetails": details,
        "rewards": false,
        "commitment": "finalized",
        "maxSupportedTransactionVersion": 1,
    });
    json!([slot, how])
}
