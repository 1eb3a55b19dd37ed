//! Whether the chain's state knows an account. One that exists was made by a transaction that names
//! it, so lists without any entry of it are not believed.

use serde_json::json;

use super::{TronSource, wire};
use crate::domain::{Address, Doubts};
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;

const ACCOUNT: [&str; 2] = ["walletsolidity/getaccount", "wallet/getaccount"];

impl TronSource {
    /// What empty lists down from a time in milliseconds leave in doubt.
    pub(super) async fn doubts_of_nothing(
        &self,
        wallet: Address,
        top_at: u64,
        options: &CallOptions,
    ) -> Result<Doubts, UpstreamError> {
        let made = match self.account_made(wallet, options).await {
            Ok(made) => made,
            Err(error) if error.is_final() => return Ok(Doubts::NONE),
            Err(error) => return Err(error),
        };
        let existed = made.is_some_and(|made| made <= top_at);
        Ok(if existed { Doubts::UNCONFIRMED } else { Doubts::NONE })
    }

    /// When the account was made, in milliseconds; accounts of the first block have no time. `None`
    /// where the node does not have it.
    pub(super) async fn account_made(
        &self,
        wallet: Address,
        options: &CallOptions,
    ) -> Result<Option<u64>, UpstreamError> {
        let body = json!({"address": wallet.to_string(), "visible": true});
        let reply = self.post_solid(ACCOUNT, &body, options).await?;
        Ok(wire::account_made(&reply.body))
    }
}
