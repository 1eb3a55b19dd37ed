//! Estimates a wallet's activity by its sent count: any node reports it, and most trades are sent.

use serde_json::json;

use super::{EvmSource, wire};
use crate::domain::Address;
use crate::rpc::{CallOptions, Result};
use crate::sources::activity::Activity;

const METHOD: &str = "eth_getTransactionCount";

impl EvmSource {
    pub(crate) async fn activity(
        &self,
        wallet: Address,
        options: &CallOptions,
    ) -> Result<Activity> {
        let params = json!([wallet.to_string(), "latest"]);
        let answer = self.inner.pool.call(METHOD, params, options).await?;
        let transactions =
            wire::number(&answer.result).ok_or_else(|| self.malformed(answer.endpoint, METHOD))?;
        Ok(Activity { transactions, is_rough: false })
    }
}
