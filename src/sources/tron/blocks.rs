//! Blocks: the head, hashes and times, the order of transactions.

use serde_json::json;

use super::TronSource;
use super::wire::{self, Block, Unreadable};
use crate::domain::{Height, TxId};
use crate::rpc::{CallOptions, EndpointId, Reply, Result, unless_final};
use crate::sources::hash_check::HashAnswer;

/// Shortest time between two blocks.
pub(super) const BLOCK_MILLIS: u64 = 3000;

/// A block and the endpoint that returned it, if one did.
type GivenBlock = Option<(Block, EndpointId)>;

impl TronSource {
    pub(super) async fn solid_head(&self, options: &CallOptions) -> Result<Block> {
        let reply = self.post("walletsolidity/getnowblock", &json!({}), options).await?;
        let block = self.read_block(&reply)?;
        block.ok_or_else(|| self.malformed(reply.endpoint, "getnowblock gave no block"))
    }

    /// Milliseconds of the block at a height; `None` if no node returns it.
    pub(super) async fn time_of(&self, at: Height, options: &CallOptions) -> Result<Option<u64>> {
        Ok(self.header(at, options).await?.map(|(block, _)| block.millis))
    }

    pub(crate) async fn block_hash(&self, at: Height, options: &CallOptions) -> Result<HashAnswer> {
        let (block, by) = self.header(at, options).await?.unzip();
        Ok((block.map(|block| block.hash), by))
    }

    pub(crate) async fn block_order(&self, at: Height, options: &CallOptions) -> Result<Vec<TxId>> {
        let block = self.whole_block(at, options).await?;
        let ids = block.map(|(block, _)| block.ids).unwrap_or_default();
        Ok(ids.into_iter().map(TxId::Tron).collect())
    }

    /// A block without its transactions if the node supports that, else the full block; `None` if
    /// no node returns it.
    async fn header(&self, height: Height, options: &CallOptions) -> Result<GivenBlock> {
        let body = json!({"id_or_num": height.to_string(), "detail": false});
        // Nodes that do not support the request return their newest block.
        if let Some(reply) = unless_final(self.post("wallet/getblock", &body, options).await)?
            && let Some(block) = self.read_block(&reply)?.filter(|block| block.height == height)
        {
            return Ok(Some((block, reply.endpoint)));
        }
        Ok(unless_final(self.whole_block(height, options).await)?.flatten())
    }

    /// The lowest block from `low` to `high` that nodes return, `low` itself if possible; `None` if
    /// they return none. Kept blocks have no holes.
    pub(super) async fn first_kept(
        &self,
        low: Height,
        high: Height,
        options: &CallOptions,
    ) -> Result<Option<Height>> {
        // Nodes differ on whether the genesis block can be queried.
        if self.header(low.max(1).min(high), options).await?.is_some() {
            return Ok(Some(low));
        }
        if self.header(high, options).await?.is_none() {
            return Ok(None);
        }
        let (mut missing, mut reported) = (low, high);
        while reported - missing > 1 {
            let middle = missing.midpoint(reported);
            if self.header(middle, options).await?.is_some() {
                reported = middle;
            } else {
                missing = middle;
            }
        }
        Ok(Some(reported))
    }

    async fn whole_block(&self, height: Height, options: &CallOptions) -> Result<GivenBlock> {
        let reply = self.post("wallet/getblockbynum", &json!({"num": height}), options).await?;
        let block = self.read_block(&reply)?.filter(|block| block.height == height);
        Ok(block.map(|block| (block, reply.endpoint)))
    }

    pub(super) fn read_block(&self, reply: &Reply) -> Result<Option<Block>> {
        wire::block(&reply.body).map_err(|Unreadable| self.malformed(reply.endpoint, "no block"))
    }
}
