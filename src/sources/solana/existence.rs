//! Whether the chain's state has an account. An account that exists was created by a transaction
//! that names it, so lists without any entry of it are not believed.

use serde_json::json;

use super::{SolanaSource, if_offered, wire};
use crate::domain::Address;
use crate::rpc::{CallOptions, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existence {
    Open,
    Asked,
    Known,
}

impl SolanaSource {
    /// True too where no endpoint offers the method.
    pub(super) async fn may_exist(&self, wallet: Address, options: &CallOptions) -> Result<bool> {
        let none = json!({"offset": 0, "length": 0});
        let how = json!({"encoding": "base64", "commitment": "finalized", "dataSlice": none});
        let params = json!([wallet.to_string(), how]);
        let answer = self.inner.pool.call("getAccountInfo", params, options).await;
        let Some(answer) = if_offered(answer)? else { return Ok(true) };
        let account = wire::account(&answer.result)
            .map_err(|_| self.malformed(answer.endpoint, "getAccountInfo gave no account"))?;
        Ok(account.is_some())
    }
}
