//! Maintenance while serving: status, loads, pausing, backup, forgetting a wallet, replacing
//! sources.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::error::HistoryError;
use super::{Capacity, History, Inner, Result};
use crate::domain::{ChainId, Coverage, Height, UnixSeconds, Wallet, lock};
use crate::sources::Source;
use crate::store::{StoreSize, StoreStats};

/// Summary of a running engine for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// `None` if the store is not a file of this process.
    pub size: Option<StoreSize>,
    pub stats: StoreStats,
    pub capacity: Capacity,
    pub paused: bool,
}

/// A wallet that has readers or is being loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    pub wallet: Wallet,
    /// Number of its open walks.
    pub readers: usize,
    /// It is also loaded without a reader.
    pub background: bool,
    /// Number of stored rows.
    pub rows: u64,
    /// The highest covered height.
    pub top: Option<Height>,
    /// The lowest height that is covered without a gap from the top.
    pub reached: Option<Height>,
    /// Time of the oldest transaction of the latest chunk.
    pub reached_time: Option<UnixSeconds>,
    pub complete: bool,
    pub failures: u64,
    pub last_error: Option<String>,
    /// Labels of the endpoints that recently served its requests.
    pub endpoints: Vec<String>,
}

/// Keeps readers away from a wallet while it exists.
#[derive(Debug)]
struct Forgetting<'a> {
    inner: &'a Inner,
    wallet: Wallet,
}

impl Drop for Forgetting<'_> {
    fn drop(&mut self) {
        lock(&self.inner.forgetting).remove(&self.wallet);
    }
}

impl History {
    /// Copies the store into a folder while serving goes on, including the usage counted so far;
    /// returns the copy's bytes. Overwrites nothing.
    pub async fn backup(&self, to: &Path) -> Result<u64> {
        self.inner.usage.flush().await?;
        Ok(self.inner.store.backup(to).await?)
    }

    /// Returns the store's free space to the disk while serving goes on: its bytes before and
    /// after.
    pub async fn compact(&self) -> Result<(u64, u64)> {
        Ok(self.inner.store.compact().await?)
    }

    /// Ends the wallet's walks and loads, then deletes all its data except, under a keyed hash,
    /// what each key has counted. Returns the number of deleted rows.
    ///
    /// # Errors
    /// `Overloaded` while another call forgets the same wallet.
    pub async fn forget(&self, wallet: Wallet, seed: [u64; 4]) -> Result<Option<u64>> {
        let inner = &*self.inner;
        let _held = inner.begin_forgetting(wallet).ok_or(HistoryError::Overloaded)?;
        let record = inner.view()?.wallet(&wallet).await?;
        let leaving = record.map(|record| inner.usage.stop_counting(record.id));
        inner.usage.flush().await?;
        let rows = inner.store.forget(wallet, seed).await?;
        if let Some(leaving) = leaving {
            leaving.finish();
        }
        inner.rereads.begin_again(&wallet);
        Ok(rows)
    }

    /// Pauses or resumes work that no reader waits for: background loads, symbols, values.
    pub fn set_paused(&self, paused: bool) {
        self.inner.paused.send_replace(paused);
    }

    pub async fn status(&self) -> Result<Status> {
        let inner = &self.inner;
        let (size, stats) = (inner.store.size()?, inner.store.stats().await?);
        let (capacity, paused) = (inner.eviction_state.capacity(), inner.is_paused());
        Ok(Status { size, stats, capacity, paused })
    }

    pub fn is_paused(&self) -> bool {
        self.inner.is_paused()
    }

    /// `None` if the store is not a file of this process.
    pub fn store_size(&self) -> Result<Option<StoreSize>> {
        Ok(self.inner.store.size()?)
    }

    pub fn capacity(&self) -> Capacity {
        self.inner.eviction_state.capacity()
    }

    /// All wallets with readers or loads.
    pub async fn loads(&self) -> Result<Vec<Load>> {
        let loads: Vec<_> = lock(&self.inner.loads).values().map(Arc::clone).collect();
        let mut reports = Vec::with_capacity(loads.len());
        for load in loads {
            let record = self.inner.view()?.wallet(&load.wallet).await?;
            let coverage = record.as_ref().map(|record| &record.coverage);
            let top = coverage.and_then(Coverage::top);
            let progress = load.progress();
            reports.push(Load {
                wallet: load.wallet,
                readers: load.readers(),
                background: load.background().is_some(),
                rows: record.as_ref().map_or(0, |record| record.count),
                top,
                reached: top.zip(coverage).and_then(|(top, coverage)| coverage.run_low(top)),
                reached_time: progress.reached.map(|(_, time)| time),
                complete: record
                    .as_ref()
                    .zip(top)
                    .is_some_and(|(record, top)| self.inner.is_complete(record, top)),
                failures: progress.failures,
                last_error: progress.failure.map(|error| error.to_string()),
                endpoints: load.priority.endpoints(self.inner.limits.endpoints_shown_age),
            });
        }
        Ok(reports)
    }

    /// Replaces the sources of these chains; `None` removes a chain. Open walks and loads go on.
    pub fn replace_sources(&self, changed: HashMap<ChainId, Option<Source>>) {
        self.inner.sources.replace(changed, &self.inner.tasks);
        for load in lock(&self.inner.loads).values() {
            load.wake();
        }
    }
}

impl Inner {
    pub(super) fn is_paused(&self) -> bool {
        *self.paused.borrow()
    }

    /// Closes a wallet's `WalletLoad` and keeps readers away; `None` if another call does so.
    fn begin_forgetting(&self, wallet: Wallet) -> Option<Forgetting<'_>> {
        let mut loads = lock(&self.loads);
        if !lock(&self.forgetting).insert(wallet) {
            return None;
        }
        if let Some(load) = loads.remove(&wallet) {
            load.close();
        }
        Some(Forgetting { inner: self, wallet })
    }
}
