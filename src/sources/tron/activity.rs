//! Estimates a wallet's activity: the newest page of the index's list; if it is full, also pages
//! further down and the time when the account was created.

use futures_util::future::join_all;
use tokio::time::timeout;

use super::TronSource;
use super::list::{IndexedList, ListKind, PAGE_MAX};
use super::lister::LATEST;
use super::wire::Page;
use crate::domain::Address;
use crate::rpc::{CallOptions, Result};
use crate::sources::activity::{Activity, Sample, extrapolate};

impl TronSource {
    pub(crate) async fn activity(&self, owner: Address, options: &CallOptions) -> Result<Activity> {
        let newest = self.page_below(owner, LATEST, options).await?;
        let top = newest.rows.first().map_or(0, |row| row.at);
        let first = sample(top, &newest);
        if !first.is_full {
            return Ok(Activity { transactions: first.entries, is_rough: false });
        }
        let all = self.samples(owner, first, options);
        let (samples, made) =
            timeout(self.inner.limits.activity_wait, all).await.unwrap_or((vec![first], None));
        Ok(Activity { transactions: extrapolate(&samples, made), is_rough: true })
    }

    /// Pages at even distances between the newest one and the account's creation.
    async fn samples(
        &self,
        wallet: Address,
        first: Sample,
        options: &CallOptions,
    ) -> (Vec<Sample>, Option<u64>) {
        let made = self.account_state(wallet, options).await.ok().and_then(|(made, _)| made);
        let Some(made) = made.filter(|made| *made > 0) else { return (vec![first], None) };
        let pages = self.inner.limits.activity_pages;
        let step = first.to.saturating_sub(made) / pages.saturating_add(1);
        let at = (1..=pages).map(|number| first.to.saturating_sub(step.saturating_mul(number)));
        let deeper = at.map(|at| async move {
            let page = self.page_below(wallet, at, options).await.ok()?;
            Some(sample(at, &page))
        });
        let deeper = join_all(deeper).await.into_iter().flatten();
        ([first].into_iter().chain(deeper).collect(), Some(made))
    }

    async fn page_below(&self, wallet: Address, at: u64, options: &CallOptions) -> Result<Page> {
        let list = IndexedList::new(at);
        let page = self.page(wallet, ListKind::Transactions, &list.cursor, PAGE_MAX, options);
        Ok(page.await.map_err(|error| self.list_error(error))?.0)
    }
}

fn sample(from: u64, page: &Page) -> Sample {
    let to = page.rows.last().map_or(from, |row| row.at);
    let entries = u64::try_from(page.items).unwrap_or(u64::MAX);
    Sample { from, to, entries, is_full: page.items >= PAGE_MAX }
}
