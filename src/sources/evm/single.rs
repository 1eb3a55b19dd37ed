//! One transaction by its hash.

use serde_json::json;

use super::EvmSource;
use super::discovery::Candidate;
use super::wire;
use crate::decode::evm::{Account, Word};
use crate::rpc::{CallOptions, Result};
use crate::sources::chunk::FoundTx;

impl EvmSource {
    /// One transaction; `None` if no node has it in a block. Failed ones are returned too.
    pub(crate) async fn single(
        &self,
        hash: Word,
        wallet: &Account,
        options: &CallOptions,
    ) -> Result<Option<FoundTx>> {
        let params = json!([wire::hex(&hash)]);
        let method = "eth_getTransactionByHash";
        let answer = self.inner.pool.call(method, params, options).await?;
        let Some(block) = wire::seen(&answer.result).and_then(|seen| seen.block) else {
            return Ok(None);
        };
        let found = self.fetch_one(wallet, Candidate::bare(hash, block), options).await?;
        Ok(found.map(|(raw, fee)| FoundTx { raw, fee }))
    }
}
