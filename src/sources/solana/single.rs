//! One transaction by its signature.

use super::SolanaSource;
use super::fetch::transaction_call;
use crate::decode::solana as decoder;
use crate::domain::{TxId, UnixSeconds};
use crate::rpc::error::Result;
use crate::rpc::pool::CallOptions;
use crate::sources::chunk::{FoundTx, RawTx};

impl SolanaSource {
    /// `None` where no node has it among what is final. A failed one is given too.
    pub(crate) async fn single(&self, id: TxId, options: &CallOptions) -> Result<Option<FoundTx>> {
        let call = transaction_call(id);
        let answer = self.inner.pool.call(call.method, call.params, options).await?;
        let text = answer.result.get();
        if text.trim() == "null" {
            return Ok(None);
        }
        let parsed = decoder::parse(text.as_bytes()).ok().filter(|tx| tx.id() == Some(id));
        let Some(tx) = parsed else {
            return Err(self.malformed(answer.endpoint, "getTransaction gave another transaction"));
        };
        let time = self.time_of(tx.slot(), tx.block_time(), options).await?;
        let time = time.unwrap_or(UnixSeconds(0));
        Ok(Some(FoundTx { raw: RawTx::Solana(Box::new(tx), time), fee: None }))
    }
}
