//! The embedded arm: one file, one writer thread, many readers.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use redb::StorageBackend;
use tokio::sync::{mpsc, oneshot};

use super::file::{self, Shared, SharedBackend};
use super::file_view::FileView;
use super::job::{Job, JobReply};
use super::writer::Writer;
use super::{
    Chunk, FILE_NAME, LIMITS, NewValue, PriceRecord, StoreError, StoreOptions, StoreStats,
    TokenRecord, UsageUpdate, WalletId, WalletPatch, WalletRecord, Written,
};
use crate::domain::{Height, Wallet, lock};

/// The open store; clones share it. Dropping the last one writes what was sent and closes the
/// file, which blocks for the time of a commit.
#[derive(Debug, Clone)]
pub(super) struct FileStore {
    pub(super) inner: Arc<FileStoreInner>,
}

#[derive(Debug)]
pub(super) struct FileStoreInner {
    pub(super) shared: Arc<Shared>,
    /// Writes block their caller; see [`FileStore::in_step`].
    in_step: bool,
    /// `None` only while dropping.
    pub(super) jobs: Option<mpsc::Sender<Job>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Shared {
    fn view(self: &Arc<Self>) -> Result<FileView, StoreError> {
        // A file that failed shall be seen to fail, though its pages may be in memory.
        let snapshot = if self.has_failed() {
            Arc::new(self.snapshot()?)
        } else {
            self.latest.get_or(|| self.snapshot())?
        };
        Ok(FileView::new(snapshot, Arc::clone(self)))
    }
}

impl FileStore {
    /// Opens the store in a data folder, creating folder (mode 0700) and file (0600) where they
    /// are missing. Blocks.
    ///
    /// # Errors
    /// `Locked` while another process has it, `NewerFormat` and `Foreign` for a file that this
    /// program must not touch, `Io` for the rest.
    pub(super) fn open(folder: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        Self::start(file::open_file(&folder.join(FILE_NAME), options)?, options, false)
    }

    /// Like [`FileStore::in_step`], on a file.
    pub(super) fn open_in_step(folder: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        Self::start(file::open_file(&folder.join(FILE_NAME), options)?, options, true)
    }

    /// Opens the store on something else than a file, as tests of crashes and faults do.
    pub(super) fn on_backend(
        backend: impl StorageBackend,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        Self::start(file::open_backend(backend)?, options, false)
    }

    /// Like [`FileStore::on_backend`], but a write blocks its caller's thread: on paused time a task
    /// that waited for another thread would let the time run away.
    pub(super) fn in_step(
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
        Ok(Self { inner: Arc::new(FileStoreInner { shared, in_step, jobs: Some(jobs), thread }) })
    }

    /// What is stored now. Blocking and quick; see [`FileView`].
    pub(super) fn view(&self) -> Result<FileView, StoreError> {
        if self.inner.shared.has_failed()
            && let Some(jobs) = &self.inner.jobs
        {
            if self.inner.in_step {
                let (reply, answer) = JobReply::new();
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
    pub(super) async fn intern(&self, wallet: &Wallet) -> Result<WalletRecord, StoreError> {
        if let Some(record) = self.view()?.read(|view| view.wallet(wallet))? {
            return Ok(WalletRecord::clone(&record));
        }
        let (reply, answer) = JobReply::new();
        let id = self.ask(Job::Intern(*wallet, reply), answer).await?;
        let record = self.view()?.read(|view| view.wallet_by_id(id))?;
        record.ok_or(StoreError::UnknownWallet(id))
    }

    /// Replaces what is stored between the chunk's heights: rows, coverage and count change in one
    /// transaction. Once sent, it is written even where the caller stops waiting.
    ///
    /// # Errors
    /// `Invalid` for a chunk that contradicts itself. After `Io` the chunk may be stored or not;
    /// writing it again is safe.
    pub(super) async fn write_chunk(&self, chunk: Chunk) -> Result<Written, StoreError> {
        let (reply, answer) = JobReply::new();
        self.ask(Job::Chunk(Box::new(chunk), reply), answer).await
    }

    /// Changes the record. Reopened heights lose their rows at once, so that rows never stand at
    /// heights which are not covered; a reader would not have reached them behind the gap.
    pub(super) async fn update_wallet(
        &self,
        id: WalletId,
        epoch: u64,
        patch: WalletPatch,
    ) -> Result<Written, StoreError> {
        let (reply, answer) = JobReply::new();
        self.ask(Job::Patch(id, epoch, Box::new(patch), reply), answer).await
    }

    /// Deletes rows, coverage and anchors above a height, with all that the source remembers of
    /// the wallet, and raises the epoch, which is returned.
    pub(super) async fn cut_back(&self, id: WalletId, above: Height) -> Result<u64, StoreError> {
        let (reply, answer) = JobReply::new();
        self.ask(Job::CutBack(id, above, reply), answer).await
    }

    /// Writes all updates in one transaction.
    pub(super) async fn write_usage(&self, updates: Vec<UsageUpdate>) -> Result<(), StoreError> {
        let (reply, answer) = JobReply::new();
        self.ask(Job::Usage(updates, reply), answer).await
    }

    /// Adds what is newly known of tokens; what is known already stays.
    pub(super) async fn write_tokens(&self, tokens: Vec<TokenRecord>) -> Result<(), StoreError> {
        let (reply, answer) = JobReply::new();
        self.ask(Job::Tokens(tokens, reply), answer).await
    }

    /// Gives values to rows that wait for them, and keeps the prices met on the way. A row that has
    /// a value, or changed meanwhile, stays as it is.
    pub(super) async fn write_values(
        &self,
        id: WalletId,
        epoch: u64,
        values: Vec<NewValue>,
        prices: Vec<PriceRecord>,
    ) -> Result<Written, StoreError> {
        let (reply, answer) = JobReply::new();
        self.ask(Job::Values(id, epoch, Box::new((values, prices)), reply), answer).await
    }

    /// Writes what was sent, closes the file and ends the writer; further calls get `Closed`, and
    /// views that are still open get errors.
    pub(super) async fn close(&self) {
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
    pub(super) fn stats(&self) -> Result<StoreStats, StoreError> {
        let file_bytes = self.inner.shared.file_bytes()?;
        self.view()?.read(|view| view.stats(file_bytes))
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

    pub(super) async fn ask<T>(
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

impl FileStoreInner {
    fn gone(&self) -> StoreError {
        if self.shared.is_closed() { StoreError::Closed } else { StoreError::WriterGone }
    }

    fn join(&self) {
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the store's writer ended by a panic");
        }
    }
}

impl Drop for FileStoreInner {
    fn drop(&mut self) {
        // The writer ends when no sender is left.
        self.jobs = None;
        self.join();
    }
}
