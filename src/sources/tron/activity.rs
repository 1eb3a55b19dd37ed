//! The newest page of the index's list.

use super::TronSource;
use super::list::{List, PAGE_MAX};
use super::lister::{LATEST, ListKind};
use crate::domain::Address;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;
use crate::rpc::scheduler::Lane;
use crate::sources::activity::Activity;

impl TronSource {
    pub(crate) async fn activity(
        &self,
        wallet: Address,
        lane: &Lane,
    ) -> Result<Activity, UpstreamError> {
        let options = CallOptions::new(lane.clone());
        let list = List::new(LATEST);
        let page = self.page(wallet, ListKind::Transactions, list.cursor(), PAGE_MAX, &options);
        let (page, _) = page.await.map_err(|error| self.list_error(error))?;
        Ok(Activity::of_page(page.items, PAGE_MAX))
    }
}
