//! One transaction by its id.

use super::TronSource;
use super::fetch::Fetched;
use super::seen::SeenTx;
use crate::decode::evm::{Account, Word};
use crate::rpc::error::Result;
use crate::rpc::pool::CallOptions;
use crate::sources::chunk::{FoundTx, RawTx};

impl TronSource {
    /// `None` where no node has it among what is solid. A failed one is given too.
    pub(crate) async fn single(
        &self,
        id: Word,
        wallet: &Account,
        options: &CallOptions,
    ) -> Result<Option<FoundTx>> {
        match self.fetch(id, wallet, SeenTx::default(), true, options).await? {
            Fetched::Transaction(tx) | Fetched::Failed(tx) => {
                let time = tx.time;
                Ok(Some(FoundTx { raw: RawTx::Tron(tx, time), fee: None }))
            }
            Fetched::Unwanted | Fetched::Missing | Fetched::Lost(_) => Ok(None),
        }
    }
}
