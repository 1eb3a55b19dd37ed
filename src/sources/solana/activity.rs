//! The newest page of the wallet's own list.

use serde_json::json;

use super::list::PAGE_MAX;
use super::{SolanaSource, wire};
use crate::domain::Address;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;
use crate::rpc::scheduler::Lane;
use crate::sources::activity::Activity;

const METHOD: &str = "getSignaturesForAddress";

impl SolanaSource {
    pub(crate) async fn activity(
        &self,
        wallet: Address,
        lane: &Lane,
    ) -> Result<Activity, UpstreamError> {
        let options = CallOptions::new(lane.clone());
        let how = json!({"limit": PAGE_MAX, "commitment": "finalized"});
        let params = json!([wallet.to_string(), how]);
        let answer = self.inner.pool.call(METHOD, params, &options).await?;
        let entries = wire::signatures(&answer.result)
            .ok_or_else(|| self.malformed(answer.endpoint, "getSignaturesForAddress"))?;
        let done = entries.iter().filter(|entry| !entry.failed).count();
        Ok(Activity { more: entries.len() >= PAGE_MAX, ..Activity::of_page(done, PAGE_MAX) })
    }
}
