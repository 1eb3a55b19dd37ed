//! The trades on disk: one file, one writer thread, many readers. The only code that names redb
//! and bincode.
//!
//! Invariants:
//! - A write is durable before it is answered, and is there whole or not at all.
//! - Rows of a wallet exist only at heights that its coverage holds, in the same transaction.
//! - A write that carries another epoch than the wallet's changes nothing.
//! - A chunk replaces: rows between its heights are deleted, whether or not times and heights agree
//!   (`rows.rs`); one that lies below everything stored reads nothing.
//! - A value that its transaction does not tell is given once: a chunk that replaces its row with
//!   the same one keeps it.
//! - What reopens heights deletes their rows. A reader that keeps to a `floor` never crosses a gap.
//! - Numbers of wallets, tokens and venues are never given twice.
//! - Reading never waits for writing; no lock is held across an await.

mod apply;
mod backup;
mod care;
mod codec;
#[cfg(test)]
mod codec_properties;
mod compaction;
mod credit;
mod disk;
mod error;
mod file;
#[cfg(fuzzing)]
pub mod fuzzing;
mod intern;
mod journal;
mod key;
mod memo;
mod meter;
mod prices;
mod read_only;
mod record;
mod records;
mod rows;
mod schema;
mod snapshot;
mod trade_codec;
mod upgrade;
pub mod upkeep;
mod values;
mod view;
mod writer;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use redb::StorageBackend;
use tokio::sync::{mpsc, oneshot};

use crate::domain::{Height, Wallet};

pub use care::StoreSize;
pub use credit::Credit;
pub use error::StoreError;
pub use record::{
    Anchor, Chunk, DeliveredRange, KeptCandle, NewValue, Pending, PriceRecord, StoreStats,
    TokenRecord, UsageUpdate, WalletId, WalletPatch, WalletRecord, WantedPlace, WantedValue,
    Written,
};
pub use view::View;

use file::{Shared, SharedBackend};
use writer::{Job, Reply, Writer};

/// Name of the file inside the data folder.
pub const FILE_NAME: &str = "trades.redb";

/// Every limit of the store, by name; none of them is a setting.
#[derive(Debug)]
pub struct StoreLimits {
    /// Requests that wait for the writer; the next caller waits until there is room.
    queued_jobs: usize,
    /// Records after which no further request joins a commit.
    joined_records: usize,
    /// Tokens and venues each whose numbers the writer keeps in memory.
    interned: usize,
    /// Tokens and venues each that readers keep in memory.
    memo_entries: usize,
    /// Tokens and venues each that one slice keeps at hand.
    slice_names: usize,
    /// Wallets that readers keep in memory between two commits.
    snapshot_records: usize,
    /// Rows for which a slice makes room before it reads them.
    slice_rows: usize,
    /// Minutes, over all chains, whose learned prices are kept, and as many of candles.
    price_minutes: u64,
    /// Learned prices of one minute.
    prices_per_minute: usize,
    /// Records that wait to be written to a compacted copy as well; above it the copy is given up.
    journal_records: usize,
    /// With fewer of them the copy takes the place of the file, which holds up writes meanwhile.
    journal_records_last: usize,
    /// Longest that a file is kept open for snapshots after another took its place.
    retired_wait: Duration,
}

pub const LIMITS: StoreLimits = StoreLimits {
    queued_jobs: 256,
    joined_records: 20_000,
    interned: 65_536,
    memo_entries: 16_384,
    slice_names: 256,
    snapshot_records: 1_024,
    slice_rows: 1_024,
    price_minutes: 100_000,
    prices_per_minute: 8,
    journal_records: 2_000_000,
    journal_records_last: 2_000,
    retired_wait: Duration::from_secs(60),
};

#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    /// Memory for pages of the file.
    pub cache_bytes: usize,
}

/// The open store; clones share it. Dropping the last one writes what was sent and closes the
/// file, which blocks for the time of a commit.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// Writes block their caller; see [`Store::in_step`].
    in_step: bool,
    /// `None` only while dropping.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// Opens the store in a data folder, creating folder (mode 0700) and file (0600) where they
    /// are missing. Blocks.
    ///
    /// # Errors
    /// `Locked` while another process has it, `NewerFormat` and `Foreign` for a file that this
    /// program must not touch, `Io` for the rest.
    pub fn open(folder: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let store =
            Self::start(file::open_file(&folder.join(FILE_NAME), options)?, options, false)?;
        // Not before the store is open: it may be another server's copy.
        compaction::remove_leftover(folder);
        Ok(store)
    }

    /// Opens the store on something else than a file, as tests of crashes and faults do.
    pub fn on_backend(
        backend: impl StorageBackend,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        Self::start(file::open_backend(backend)?, options, false)
    }

    /// Like [`Store::on_backend`], but a write blocks its caller's thread: on paused time a task
    /// that waited for another thread would let the time run away.
    pub fn in_step(
        backend: impl StorageBackend,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        Self::start(file::open_backend(backend)?, options, true)
    }

    fn start(
        backend: SharedBackend,
        options: StoreOptions,
        in_step: bool,
    ) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::open(backend, options)?);
        let (jobs, queue) = mpsc::channel(LIMITS.queued_jobs);
        let writer = Writer::new(Arc::clone(&shared), queue);
        let thread =
            thread::Builder::new().name("store-writer".to_owned()).spawn(move || writer.run())?;
        let thread = Mutex::new(Some(thread));
        Ok(Self { inner: Arc::new(Inner { shared, in_step, jobs: Some(jobs), thread }) })
    }

    /// What is stored now. Blocking and quick; see [`View`].
    pub fn view(&self) -> Result<View, StoreError> {
        if self.inner.shared.has_failed()
            && let Some(jobs) = &self.inner.jobs
        {
            if self.inner.in_step {
                let (reply, answer) = Reply::new();
                if jobs.try_send(Job::Usage(Vec::new(), reply)).is_ok() {
                    let _ = self.spin(answer);
                }
            } else {
                // A full queue wakes the writer as well.
                let _ = jobs.try_send(Job::Mend);
            }
        }
        self.inner.shared.view()
    }

    /// The record of a wallet, which is created where it is missing.
    pub async fn intern(&self, wallet: &Wallet) -> Result<WalletRecord, StoreError> {
        if let Some(record) = self.view()?.wallet(wallet)? {
            return Ok(WalletRecord::clone(&record));
        }
        let (reply, answer) = Reply::new();
        let id = self.ask(Job::Intern(*wallet, reply), answer).await?;
        self.view()?.wallet_by_id(id)?.ok_or(StoreError::UnknownWallet(id))
    }

    /// Replaces what is stored between the chunk's heights: rows, coverage and count change in one
    /// transaction. Once sent, it is written even where the caller stops waiting.
    ///
    /// # Errors
    /// `Invalid` for a chunk that contradicts itself. After `Io` the chunk may be stored or not;
    /// writing it again is safe.
    pub async fn write_chunk(&self, chunk: Chunk) -> Result<Written, StoreError> {
        let (reply, answer) = Reply::new();
        self.ask(Job::Chunk(Box::new(chunk), reply), answer).await
    }

    /// Changes the record. Reopened heights lose their rows at once, so that rows never stand at
    /// heights which are not covered; a reader would not have reached them behind the gap.
    pub async fn update_wallet(
        &self,
        id: WalletId,
        epoch: u64,
        patch: WalletPatch,
    ) -> Result<Written, StoreError> {
        let (reply, answer) = Reply::new();
        self.ask(Job::Patch(id, epoch, Box::new(patch), reply), answer).await
    }

    /// Deletes rows, coverage and anchors above a height, with all that the source remembers of
    /// the wallet, and raises the epoch, which is returned.
    pub async fn cut_back(&self, id: WalletId, above: Height) -> Result<u64, StoreError> {
        let (reply, answer) = Reply::new();
        self.ask(Job::CutBack(id, above, reply), answer).await
    }

    /// Writes all updates in one transaction.
    pub async fn write_usage(&self, updates: Vec<UsageUpdate>) -> Result<(), StoreError> {
        let (reply, answer) = Reply::new();
        self.ask(Job::Usage(updates, reply), answer).await
    }

    /// Adds what is newly known of tokens; what is known already stays.
    pub async fn write_tokens(&self, tokens: Vec<TokenRecord>) -> Result<(), StoreError> {
        let (reply, answer) = Reply::new();
        self.ask(Job::Tokens(tokens, reply), answer).await
    }

    /// Gives values to rows that wait for them, and keeps the prices met on the way. A row that has
    /// a value, or changed meanwhile, stays as it is.
    pub async fn write_values(
        &self,
        id: WalletId,
        epoch: u64,
        values: Vec<NewValue>,
        prices: Vec<PriceRecord>,
    ) -> Result<Written, StoreError> {
        let (reply, answer) = Reply::new();
        self.ask(Job::Values(id, epoch, Box::new((values, prices)), reply), answer).await
    }

    /// Writes what was sent, closes the file and ends the writer; further calls get `Closed`, and
    /// views that are still open get errors.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if let Some(jobs) = &self.inner.jobs
            && jobs.send(Job::Close(done)).await.is_ok()
            && !self.inner.in_step
        {
            // An error means that the writer ended in some other way.
            let _ = closed.await;
        }
        self.inner.join();
    }

    /// Sizes for the metrics.
    pub fn stats(&self) -> Result<StoreStats, StoreError> {
        let file_bytes = self.inner.shared.file_bytes()?;
        self.view()?.stats(file_bytes)
    }

    /// Waits for the writer without giving the thread away.
    fn spin<T>(
        &self,
        mut answer: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        loop {
            match answer.try_recv() {
                Ok(outcome) => return outcome,
                Err(oneshot::error::TryRecvError::Empty) => thread::yield_now(),
                Err(oneshot::error::TryRecvError::Closed) => return Err(self.inner.gone()),
            }
        }
    }

    async fn ask<T>(
        &self,
        job: Job,
        answer: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let jobs = self.inner.jobs.as_ref().ok_or(StoreError::Closed)?;
        if jobs.send(job).await.is_err() {
            return Err(self.inner.gone());
        }
        if self.inner.in_step {
            return self.spin(answer);
        }
        answer.await.unwrap_or_else(|_| Err(self.inner.gone()))
    }
}

impl Inner {
    fn gone(&self) -> StoreError {
        if self.shared.is_closed() { StoreError::Closed } else { StoreError::WriterGone }
    }

    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the store's writer ended by a panic");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The writer ends when nobody can send any more.
        self.jobs = None;
        self.join();
    }
}
