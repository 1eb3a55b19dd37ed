//! The embedded arm: one file, one writer thread, many readers.

use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use tokio::sync::{mpsc, oneshot};

use super::apply::Tables;
use super::file::{Shared, SharedBackend};
use super::file_view::FileView;
use super::intern::Known;
use super::job::{Job, Write};
use super::writer::Writer;
use super::{
    Chunk, LIMITS, NewValue, PriceRecord, Result, StoreError, StoreOptions, StoreStats,
    TokenRecord, UsageUpdate, WalletId, WalletPatch, WalletRecord, Written,
};
use crate::domain::{Height, Wallet, lock};

#[derive(Debug, Clone)]
pub(super) struct FileStore {
    pub(super) inner: Arc<FileStoreInner>,
}

#[derive(Debug)]
pub(super) struct FileStoreInner {
    pub(super) shared: Arc<Shared>,
    /// Whether writes block their caller's thread; see [`Store::in_step`](super::Store::in_step).
    in_step: bool,
    /// `None` only while dropping.
    pub(super) jobs: Option<mpsc::Sender<Job>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Shared {
    fn view(self: &Arc<Self>) -> Result<FileView> {
        // A failed file must fail its readers too, even where its pages are cached.
        let snapshot = if self.has_failed() {
            Arc::new(self.snapshot()?)
        } else {
            self.latest.get_or(|| self.snapshot())?
        };
        Ok(FileView::new(snapshot, Arc::clone(self)))
    }
}

impl FileStore {
    /// Starts the writer of an opened file.
    pub(super) fn start(
        backend: SharedBackend,
        options: StoreOptions,
        in_step: bool,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::open(backend, options)?);
        let (jobs, queue) = mpsc::channel(LIMITS.queued_jobs);
        let writer = Writer::new(Arc::clone(&shared), queue);
        let thread =
            thread::Builder::new().name("store-writer".to_owned()).spawn(move || writer.run())?;
        let thread = Mutex::new(Some(thread));
        Ok(Self { inner: Arc::new(FileStoreInner { shared, in_step, jobs: Some(jobs), thread }) })
    }

    pub(super) fn view(&self) -> Result<FileView> {
        if self.inner.shared.has_failed()
            && let Some(jobs) = &self.inner.jobs
        {
            if self.inner.in_step {
                let (nothing, answer) = Write::job(None, 1, |_, _| Ok(()));
                if jobs.try_send(nothing).is_ok() {
                    let _ = self.spin(answer);
                }
            } else {
                // Where the queue is full, its requests wake the writer.
                let _ = jobs.try_send(Job::Wake);
            }
        }
        self.inner.shared.view()
    }

    pub(super) async fn intern(&self, wallet: &Wallet) -> Result<WalletRecord> {
        if let Some(record) = self.view()?.read(|view| view.wallet(wallet))? {
            return Ok(WalletRecord::clone(&record));
        }
        let wallet = *wallet;
        let id = self.write(None, 1, move |tables, _| tables.intern(&wallet)).await?;
        let record = self.view()?.read(|view| view.wallet_by_id(id))?;
        record.ok_or(StoreError::UnknownWallet(id))
    }

    pub(super) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if let Some(jobs) = &self.inner.jobs
            && jobs.send(Job::Close(done)).await.is_ok()
            && !self.inner.in_step
        {
            // An error: the writer ended otherwise.
            let _ = closed.await;
        }
        self.inner.join();
    }

    pub(super) fn stats(&self) -> Result<StoreStats> {
        let file_bytes = self.inner.shared.file_bytes()?;
        self.view()?.read(|view| view.stats(file_bytes))
    }

    /// Waits for the writer on the caller's thread, so that paused time does not advance.
    fn spin<T>(&self, mut answer: oneshot::Receiver<Result<T>>) -> Result<T> {
        loop {
            match answer.try_recv() {
                Ok(outcome) => return outcome,
                Err(oneshot::error::TryRecvError::Empty) => thread::yield_now(),
                Err(oneshot::error::TryRecvError::Closed) => return Err(self.inner.gone()),
            }
        }
    }

    async fn write<T: Send + 'static>(
        &self,
        wallet: Option<WalletId>,
        weight: usize,
        change: impl Fn(&mut Tables<'_>, &mut Known) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (job, answer) = Write::job(wallet, weight, change);
        self.ask(job, answer).await
    }

    pub(super) async fn ask<T>(&self, job: Job, answer: oneshot::Receiver<Result<T>>) -> Result<T> {
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

/// Declares writes that are one request each: its wallet, its weight, and its change.
macro_rules! writes {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty =
        $wallet:expr, $weight:expr, |$tables:ident, $known:pat_param| $change:expr;)*) => {
        impl FileStore {
            $(pub(super) async fn $name(
                &self, $($argument: $type),*
            ) -> Result<$result> {
                let (wallet, weight) = ($wallet, $weight);
                self.write(wallet, weight, move |$tables, $known| $change).await
            })*
        }
    };
}

writes! {
    write_chunk(chunk: Chunk) -> Written =
        Some(chunk.id), 1 + chunk.trades.len(), |tables, known| tables.chunk(known, &chunk);

    update_wallet(id: WalletId, epoch: u64, patch: WalletPatch) -> Written =
        Some(id), 1, |tables, _| tables.patch(id, epoch, &patch);

    cut_back(id: WalletId, above: Height) -> u64 =
        Some(id), 1, |tables, _| tables.cut_back(id, above);

    write_usage(updates: Vec<UsageUpdate>) -> () =
        None, 1 + updates.len(), |tables, _| tables.usage(&updates);

    write_tokens(tokens: Vec<TokenRecord>) -> () =
        None, 1 + tokens.len(), |tables, known| tables.tokens(known, &tokens);

    write_values(
        id: WalletId, epoch: u64, values: Vec<NewValue>, prices: Vec<PriceRecord>
    ) -> Written =
        Some(id), 1 + values.len() + prices.len(),
        |tables, _| tables.values(id, epoch, &values, &prices);
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
        // The writer ends without a sender.
        self.jobs = None;
        self.join();
    }
}
