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
        let body = json!({"address": wallet.to_string(), "visible": true});
        let reply = match self.post_solid(ACCOUNT, &body, options).await {
            Ok(reply) => reply,
            Err(error) if error.is_final() => return Ok(Doubts::NONE),
            Err(error) => return Err(error),
        };
        // Accounts of the first block have no time.
        let made = wire::account_made(&reply.body);
        let existed = made.is_some_and(|made| made <= top_at);
        Ok(if existed { Doubts::UNCONFIRMED } else { Doubts::NONE })
    }
}
