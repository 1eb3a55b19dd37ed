//! The newest page of the index's list.

use super::TronSource;
use super::list::{List, PAGE_MAX};
use super::lister::{LATEST, ListKind};
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
        let list = List::new(LATEST);
        let page = self.page(wallet, ListKind::Transactions, list.cursor(), PAGE_MAX, &options);
        let (page, _) = page.await.map_err(|error| self.list_error(error))?;
        Ok(Activity::of_page(page.items, PAGE_MAX))
    }
}
