//! Estimates a wallet's activity from the newest page of its own list and, where that is full, from
//! pages further down.

use futures_util::future::join_all;
use tokio::time::timeout;

use super::SolanaSource;
use super::fetch::page_call;
use super::list::{Entry, PAGE_MAX};
use crate::domain::{Address, Height, TxId};
use crate::rpc::{Call, CallOptions, Result};
use crate::sources::activity::{Activity, Sample, extrapolate};

impl SolanaSource {
    pub(crate) async fn activity(&self, owner: Address, options: &CallOptions) -> Result<Activity> {
        let newest = self.page_below(owner, None, options).await?;
        let (all, failed) =
            (newest.len(), newest.iter().filter(|entry| entry.has_failed()).count());
        let Some(top) = newest.first().map(|entry| entry.slot).filter(|_| all >= PAGE_MAX) else {
            return Ok(Activity { transactions: count(all - failed), is_rough: false });
        };
        let first = sample(top, &newest);
        let limits = &self.inner.limits;
        let depths = limits.activity_depths.iter().filter_map(|depth| first.to.checked_sub(*depth));
        let deeper = depths.map(|slot| self.sample_below(owner, slot, options));
        let deeper = timeout(limits.activity_wait, join_all(deeper)).await.unwrap_or_default();
        let samples: Vec<Sample> =
            [first].into_iter().chain(deeper.into_iter().flatten()).collect();
        let entries = u128::from(extrapolate(&samples, None));
        // The share of failed entries is taken from the newest page.
        let done = entries * u128::from(count(all - failed)) / u128::from(count(all).max(1));
        Ok(Activity { transactions: u64::try_from(done).unwrap_or(u64::MAX), is_rough: true })
    }

    /// A page from a slot downwards; `None` where no node returns one.
    async fn sample_below(
        &self,
        wallet: Address,
        slot: Height,
        options: &CallOptions,
    ) -> Option<Sample> {
        let before = self.anchor_above(slot, options).await.ok()??;
        let page = self.page_below(wallet, Some(before), options).await.ok()?;
        Some(sample(slot, &page))
    }

    async fn page_below(
        &self,
        wallet: Address,
        before: Option<TxId>,
        options: &CallOptions,
    ) -> Result<Vec<Entry>> {
        let Call { method, params } = page_call(wallet, PAGE_MAX, before, None);
        self.entries(&self.inner.pool.call(method, params, options).await?)
    }
}

fn sample(from: Height, entries: &[Entry]) -> Sample {
    let to = entries.last().map_or(from, |entry| entry.slot);
    Sample { from, to, entries: count(entries.len()), is_full: entries.len() >= PAGE_MAX }
}

fn count(entries: usize) -> u64 {
    u64::try_from(entries).unwrap_or(u64::MAX)
}
