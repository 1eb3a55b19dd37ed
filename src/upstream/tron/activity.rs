//! The newest page of the index's list.

use super::TronSource;
use super::list::{Cursor, PAGE_MAX};
use super::lister::ListKind;
use crate::domain::Address;
use crate::upstream::activity::Activity;
use crate::upstream::error::UpstreamError;
use crate::upstream::pool::CallOptions;
use crate::upstream::queue::Lane;

impl TronSource {
    pub(in crate::upstream) async fn activity(
        &self,
        wallet: Address,
        lane: &Lane,
    ) -> Result<Activity, UpstreamError> {
        let options = CallOptions::new(lane.clone());
        // Later than any block.
        let cursor = Cursor { max: u64::from(u32::MAX) * 1000, fingerprint: None };
        let (page, _) = self.page(wallet, ListKind::Transactions, cursor, 0, &options).await?;
        Ok(Activity::of_page(page.items, PAGE_MAX))
    }
}
