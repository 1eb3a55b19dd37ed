//! Blocks: the final head, their hashes and times, the order of their transactions.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use super::EvmSource;
use super::wire::{self, BlockHead};
use crate::domain::{Height, TxId};
use crate::registry::Finality;
use crate::rpc::{Call, CallOptions, CallResponse, EndpointId, Result, UpstreamError};
use crate::sources::chunk::Tip;
use crate::sources::hash_check::HashAnswer;

/// Blocks by height, without their transactions; each with the endpoint that returned it.
pub(super) type BlockTimes = HashMap<Height, (BlockHead, EndpointId)>;

impl EvmSource {
    /// The newest block that a reorg can no longer replace.
    pub(crate) async fn head(&self, options: &CallOptions) -> Result<Height> {
        Ok(self.tagged_head(options).await?.0)
    }

    /// The newest final block, with its hash where a node reports it.
    pub(super) async fn final_tip(&self, options: &CallOptions) -> Result<(Height, Option<Tip>)> {
        let (height, tip) = self.tagged_head(options).await?;
        if tip.is_some() {
            return Ok((height, tip));
        }
        // Without the hash a later replacement of the block would go unnoticed.
        let (block, _) = self.block_at(height, options).await?;
        Ok((height, block.map(|block| Tip { height, hash: block.hash })))
    }

    async fn tagged_head(&self, options: &CallOptions) -> Result<(Height, Option<Tip>)> {
        let chain = &self.inner.chain;
        let tag = match chain.finality {
            Finality::Finalized => "finalized",
            Finality::Safe => "safe",
            Finality::Depth(depth) => return Ok((self.head_below(depth, options).await?, None)),
        };
        match self.block(json!(tag), options).await {
            Ok((Some(block), _)) => {
                let tip = Tip { height: block.number, hash: block.hash };
                Ok((block.number, Some(tip)))
            }
            // Nodes that do not know the tag return null or an error.
            Ok((None, _)) | Err(UpstreamError::Rpc { .. } | UpstreamError::NotSupported { .. }) => {
                Ok((self.head_below(chain.index_lag, options).await?, None))
            }
            Err(error) => Err(error),
        }
    }

    async fn head_below(&self, depth: u64, options: &CallOptions) -> Result<Height> {
        Ok(self.newest(options).await?.saturating_sub(depth))
    }

    /// The newest block, which may still be reorged.
    pub(super) async fn newest(&self, options: &CallOptions) -> Result<Height> {
        let answer = self.inner.pool.call("eth_blockNumber", json!([]), options).await?;
        self.head_in(&answer)
    }

    pub(super) fn head_in(&self, answer: &CallResponse) -> Result<Height> {
        wire::number(&answer.result)
            .ok_or_else(|| self.malformed(answer.endpoint, "eth_blockNumber gave no number"))
    }

    pub(crate) async fn block_hash(
        &self,
        height: Height,
        options: &CallOptions,
    ) -> Result<HashAnswer> {
        let (block, by) = self.block_at(height, options).await?;
        Ok((block.map(|block| block.hash), Some(by)))
    }

    pub(crate) async fn block_order(
        &self,
        height: Height,
        options: &CallOptions,
    ) -> Result<Vec<TxId>> {
        let (block, _) = self.block_at(height, options).await?;
        let hashes = block.map(|block| block.transactions).unwrap_or_default();
        Ok(hashes.into_iter().map(TxId::Evm).collect())
    }

    pub(super) async fn block_at(
        &self,
        height: Height,
        options: &CallOptions,
    ) -> Result<(Option<BlockHead>, EndpointId)> {
        let (block, by) = self.block(json!(format!("{height:#x}")), options).await?;
        Ok((block.filter(|block| block.number == height), by))
    }

    async fn block(
        &self,
        which: Value,
        options: &CallOptions,
    ) -> Result<(Option<BlockHead>, EndpointId)> {
        let params = json!([which, false]);
        let answer = self.inner.pool.call("eth_getBlockByNumber", params, options).await?;
        let block = wire::block(&answer.result)
            .map_err(|()| self.malformed(answer.endpoint, "eth_getBlockByNumber gave no block"))?;
        Ok((block, answer.endpoint))
    }

    /// Blocks for their times and producers, each queried once; without those that no endpoint
    /// returns.
    pub(super) async fn times(
        &self,
        heights: BTreeSet<Height>,
        options: &CallOptions,
    ) -> Result<BlockTimes> {
        let (mut times, mut wanted) = (BlockTimes::new(), heights);
        let tries = self.inner.limits.missing_tries_max;
        let mut avoid = options.avoid;
        for attempt in 0..=tries {
            if wanted.is_empty() {
                return Ok(times);
            }
            self.pause_for_missing(attempt).await;
            let calls: Vec<Call> = wanted.iter().map(|height| block_call(*height, false)).collect();
            let options = CallOptions { avoid, ..options.clone() };
            let probe = json!(["latest", false]);
            let answers = self.inner.pool.batch_of_own(&calls, &probe, &options).await?;
            let mut open = BTreeSet::new();
            for (height, answer) in wanted.into_iter().zip(answers) {
                // A block on which every endpoint fails is queried once more.
                let Ok(answer) = answer else {
                    if attempt == 0 {
                        open.insert(height);
                    }
                    continue;
                };
                // A block that one node lacks is queried on another.
                match wire::block(&answer.result) {
                    Ok(Some(block)) if block.number == height => {
                        let head = BlockHead { transactions: Vec::new(), ..block };
                        times.insert(height, (head, answer.endpoint));
                    }
                    Ok(_) | Err(()) => {
                        avoid = Some(answer.endpoint);
                        open.insert(height);
                    }
                }
            }
            wanted = open;
        }
        Ok(times)
    }
}

/// Queries a block with full transactions, or with their hashes only.
pub(super) fn block_call(height: Height, is_whole: bool) -> Call {
    Call { method: "eth_getBlockByNumber", params: json!([format!("{height:#x}"), is_whole]) }
}

pub(super) const BLOCK_RECEIPTS: &str = "eth_getBlockReceipts";

pub(super) fn receipts_call(height: Height) -> Call {
    Call { method: BLOCK_RECEIPTS, params: json!([format!("{height:#x}")]) }
}
