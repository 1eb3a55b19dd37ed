//! Care while serving: what is loading, pausing it, copies, forgetting, other endpoints.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::error::HistoryError;
use super::{Capacity, History, Inner, Result};
use crate::domain::{ChainId, Coverage, Height, UnixSeconds, Wallet, lock};
use crate::sources::Source;
use crate::store::{StoreSize, StoreStats};

/// What an operator asks of a running engine first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// `None` where the store is no file of this process.
    pub size: Option<StoreSize>,
    pub stats: StoreStats,
    pub capacity: Capacity,
    pub paused: bool,
}

/// One wallet that has readers or loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    pub wallet: Wallet,
    /// Open walks of it.
    pub readers: usize,
    /// It loads on without a reader too.
    pub background: bool,
    /// Stored rows.
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
    /// Labels of the endpoints that its requests went to of late.
    pub endpoints: Vec<String>,
}

/// A wallet that takes no reader while this lives.
#[derive(Debug)]
struct Held<'a> {
    inner: &'a Inner,
    wallet: Wallet,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        lock(&self.inner.held).remove(&self.wallet);
    }
}

impl History {
    /// Writes a copy of the store into a folder while all goes on, with the usage counted so far:
    /// its bytes. Nothing is overwritten.
    pub async fn backup(&self, to: &Path) -> Result<u64> {
        self.inner.usage.flush().await?;
        Ok(self.inner.store.backup(to).await?)
    }

    /// Gives free space of the store back while all goes on: its bytes before and after.
    pub async fn compact(&self) -> Result<(u64, u64)> {
        Ok(self.inner.store.compact().await?)
    }

    /// Ends the wallet's walks and loads, then deletes all that is stored of it, but for a keyed hash
    /// with what each key has counted: how many rows there were.
    ///
    /// # Errors
    /// `Overloaded` while another call forgets the same wallet.
    pub async fn forget(&self, wallet: Wallet, seed: [u64; 4]) -> Result<Option<u64>> {
        let inner = &*self.inner;
        let _held = inner.hold(wallet).ok_or(HistoryError::Overloaded)?;
        let record = inner.view()?.wallet(&wallet).await?;
        let leaving = record.map(|record| inner.usage.leave(record.id));
        inner.usage.flush().await?;
        let rows = inner.store.forget(wallet, seed).await?;
        if let Some(leaving) = leaving {
            leaving.finish();
        }
        inner.rereads.begin_again(&wallet);
        Ok(rows)
    }

    /// Stops or continues what no reader waits for: background loads, symbols, values.
    pub fn set_paused(&self, paused: bool) {
        self.inner.paused.send_replace(paused);
    }

    pub async fn status(&self) -> Result<Status> {
        let inner = &self.inner;
        let (size, stats) = (inner.store.size()?, inner.store.stats().await?);
        let (capacity, paused) = (inner.keeper.capacity(), inner.is_paused());
        Ok(Status { size, stats, capacity, paused })
    }

    pub fn is_paused(&self) -> bool {
        self.inner.is_paused()
    }

    /// `None` where the store is no file of this process.
    pub fn store_size(&self) -> Result<Option<StoreSize>> {
        Ok(self.inner.store.size()?)
    }

    pub fn capacity(&self) -> Capacity {
        self.inner.keeper.capacity()
    }

    /// All wallets with readers or loads.
    pub async fn loads(&self) -> Result<Vec<Load>> {
        let boards: Vec<_> = lock(&self.inner.boards).values().map(Arc::clone).collect();
        let mut loads = Vec::with_capacity(boards.len());
        for board in boards {
            let record = self.inner.view()?.wallet(&board.wallet).await?;
            let coverage = record.as_ref().map(|record| &record.coverage);
            let top = coverage.and_then(Coverage::top);
            let progress = board.progress();
            loads.push(Load {
                wallet: board.wallet,
                readers: board.readers(),
                background: board.background().is_some(),
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
                endpoints: board.priority.endpoints(self.inner.limits.endpoints_shown_age),
            });
        }
        Ok(loads)
    }

    /// Reads these chains by other sources from now on; `None` ends reading a chain. Open walks go
    /// on, and what is loading goes on where it stands.
    pub fn replace_sources(&self, changed: HashMap<ChainId, Option<Source>>) {
        self.inner.sources.replace(changed, &self.inner.tasks);
        for board in lock(&self.inner.boards).values() {
            board.wake();
        }
    }
}

impl Inner {
    pub(super) fn is_paused(&self) -> bool {
        *self.paused.borrow()
    }

    pub(super) fn is_held(&self, wallet: &Wallet) -> bool {
        lock(&self.held).contains(wallet)
    }

    /// Ends what is open of a wallet and keeps it from readers. `None` where another call does so.
    fn hold(&self, wallet: Wallet) -> Option<Held<'_>> {
        let mut boards = lock(&self.boards);
        if !lock(&self.held).insert(wallet) {
            return None;
        }
        if let Some(board) = boards.remove(&wallet) {
            board.close();
        }
        Some(Held { inner: self, wallet })
    }
}
