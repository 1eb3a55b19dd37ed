//! The writer thread: commits at once when idle, and joins the requests that arrived during a
//! commit into the next one.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::apply::Tables;
use super::file::Shared;
use super::intern::Known;
use super::job::{Job, Write};
use super::journal::JournalEntry;
use super::schema::begin_write;
use super::{LIMITS, Result, StoreError};

/// Why a transaction was aborted.
struct Failure {
    /// Index in the batch of the request that is at fault; `None` where the file is.
    job: Option<usize>,
    error: StoreError,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self { job: None, error }
    }
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    jobs: mpsc::Receiver<Job>,
    known: Known,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, jobs: mpsc::Receiver<Job>) -> Self {
        Self { shared, jobs, known: Known::default() }
    }

    /// Ends when the store is closed or dropped, after all earlier requests are written.
    pub(super) fn run(mut self) {
        let mut closing = Vec::new();
        while let Some(first) = self.jobs.blocking_recv() {
            let mut batch = Vec::new();
            let (mut weight, mut next, mut alone) = (0, Some(first), None);
            while let Some(job) = next {
                match job {
                    Job::Write(write) => {
                        weight += write.weight;
                        batch.push(write);
                    }
                    Job::Wake => {}
                    Job::Alone(work) => alone = Some(work),
                    Job::Close(done) => {
                        self.jobs.close();
                        closing.push(done);
                    }
                }
                let room = weight < LIMITS.joined_records && alone.is_none();
                next = if room { self.jobs.try_recv().ok() } else { None };
            }
            self.write(batch);
            if let Some(work) = alone {
                self.shared.latest.forget();
                work();
                self.shared.latest.forget();
            }
        }
        self.shared.close();
        for done in closing {
            let _ = done.send(());
        }
    }

    /// Commits a batch and answers each of its requests.
    fn write(&mut self, mut batch: Vec<Write>) {
        // A stable sort: requests of one wallet keep their order.
        batch.sort_by_key(|write| write.wallet);
        while !batch.is_empty() {
            let (committed, job) = match self.commit(&batch) {
                Ok(()) => (Ok(()), None),
                Err(Failure { job, error }) => (Err(error), job),
            };
            if let Err(error) = &committed {
                tracing::error!(%error, requests = batch.len(), "a commit failed");
            }
            match job {
                // The others get a transaction without the faulty request.
                Some(at) => (batch.remove(at).reply)(committed),
                None => batch.drain(..).for_each(|write| (write.reply)(committed.clone())),
            }
        }
        // Readers need an open file too. If reopening fails, the next wake-up tries again.
        if let Err(error) = self.reopen_if_failed() {
            tracing::error!(%error, "cannot reopen the store's file; the next request tries again");
        }
    }

    /// Commits all requests in one transaction, or none of them.
    fn commit(&mut self, batch: &[Write]) -> Result<(), Failure> {
        self.reopen_if_failed()?;
        self.known.changed.clear();
        let opened = self.shared.opened();
        self.shared.latest.forget();
        let result = self.try_commit(batch);
        if let Err(Failure { job: None, .. }) = &result {
            self.shared.mark_failed(opened);
            self.shared.journal.abandon("a commit failed");
        }
        match &result {
            Ok(()) => {
                let entry = |of: &Write| JournalEntry::Write(of.weight, Arc::clone(&of.change));
                self.shared.journal.add(batch.iter().map(entry));
                self.shared.cache.forget_tokens(&self.known.changed);
            }
            // The cache holds numbers of a transaction that was aborted.
            Err(_) => self.known = Known::default(),
        }
        self.shared.latest.forget();
        result
    }

    fn reopen_if_failed(&self) -> Result<()> {
        if self.shared.has_failed() { self.shared.reopen() } else { Ok(()) }
    }

    fn try_commit(&mut self, batch: &[Write]) -> Result<(), Failure> {
        let known = &mut self.known;
        let txn = self.shared.with(begin_write)?;
        {
            let mut tables = Tables::open(&txn)?;
            for (at, write) in batch.iter().enumerate() {
                if let Err(error) = (write.change)(&mut tables, known) {
                    let job = error.is_of_one_request().then_some(at);
                    return Err(Failure { job, error });
                }
            }
        }
        txn.commit().map_err(StoreError::from)?;
        Ok(())
    }
}
