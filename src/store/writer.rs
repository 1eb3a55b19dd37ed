//! The one thread that writes: it commits at once when idle, and joins what arrived during the
//! previous commit into the next one.

use std::fmt;
use std::sync::Arc;

use redb::Durability;
use tokio::sync::{mpsc, oneshot};

use crate::domain::{Height, Wallet};

use super::apply::Tables;
use super::file::Shared;
use super::intern::Known;
use super::journal::Entry;
use super::{
    Chunk, LIMITS, NewValue, PriceRecord, StoreError, TokenRecord, UsageUpdate, WalletId,
    WalletPatch, Written,
};

/// A request with the way back to its caller. A caller that has gone changes nothing: what was
/// sent is written.
#[derive(Debug)]
pub(super) enum Job {
    Intern(Wallet, Reply<WalletId>),
    Chunk(Box<Chunk>, Reply<Written>),
    Patch(WalletId, u64, Box<WalletPatch>, Reply<Written>),
    CutBack(WalletId, Height, Reply<u64>),
    Usage(Vec<UsageUpdate>, Reply<()>),
    Tokens(Vec<TokenRecord>, Reply<()>),
    Values(WalletId, u64, Box<(Vec<NewValue>, Vec<PriceRecord>)>, Reply<Written>),
    /// Has the file to itself, between two transactions.
    Alone(Alone),
    /// Only wakes the writer, which opens a failed file again.
    Mend,
    /// Answered when all that came before is durable and the file is closed.
    Close(oneshot::Sender<()>),
}

/// Work on the whole file, which answers its caller itself.
pub(super) struct Alone(Work);

type Work = Box<dyn FnOnce(&Arc<Shared>) + Send>;

impl Alone {
    pub(super) fn new(work: impl FnOnce(&Arc<Shared>) + Send + 'static) -> Self {
        Self(Box::new(work))
    }
}

impl fmt::Debug for Alone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alone").finish_non_exhaustive()
    }
}

/// An outcome waits here for the commit that makes it true.
#[derive(Debug)]
pub(super) struct Reply<T> {
    to: oneshot::Sender<Result<T, StoreError>>,
    outcome: Option<T>,
}

impl<T> Reply<T> {
    pub(super) fn new() -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (to, answer) = oneshot::channel();
        (Self { to, outcome: None }, answer)
    }

    fn settle(self, committed: Result<(), StoreError>) {
        let outcome = self.outcome.ok_or(StoreError::WriterGone);
        // The caller may have gone.
        let _ = self.to.send(committed.and(outcome));
    }
}

impl Job {
    pub(super) fn apply(
        &mut self,
        tables: &mut Tables<'_>,
        known: &mut Known,
    ) -> Result<(), StoreError> {
        match self {
            Self::Intern(wallet, reply) => reply.outcome = Some(tables.intern(wallet)?),
            Self::Chunk(chunk, reply) => reply.outcome = Some(tables.chunk(known, chunk)?),
            Self::Patch(id, epoch, patch, reply) => {
                reply.outcome = Some(tables.patch(*id, *epoch, patch)?);
            }
            Self::CutBack(id, above, reply) => reply.outcome = Some(tables.cut_back(*id, *above)?),
            Self::Usage(updates, reply) => {
                tables.usage(updates)?;
                reply.outcome = Some(());
            }
            Self::Tokens(tokens, reply) => {
                tables.tokens(known, tokens)?;
                reply.outcome = Some(());
            }
            Self::Values(id, epoch, new, reply) => {
                reply.outcome = Some(tables.values(*id, *epoch, &new.0, &new.1)?);
            }
            Self::Alone(_) | Self::Mend | Self::Close(_) => {}
        }
        Ok(())
    }

    /// The same request for another file, whose caller has gone.
    fn repeated(&self) -> Option<Self> {
        Some(match self {
            Self::Intern(wallet, _) => Self::Intern(*wallet, Reply::new().0),
            Self::Chunk(chunk, _) => Self::Chunk(chunk.clone(), Reply::new().0),
            Self::Patch(id, epoch, patch, _) => {
                Self::Patch(*id, *epoch, patch.clone(), Reply::new().0)
            }
            Self::CutBack(id, above, _) => Self::CutBack(*id, *above, Reply::new().0),
            Self::Usage(updates, _) => Self::Usage(updates.clone(), Reply::new().0),
            Self::Tokens(tokens, _) => Self::Tokens(tokens.clone(), Reply::new().0),
            Self::Values(id, epoch, new, _) => {
                Self::Values(*id, *epoch, new.clone(), Reply::new().0)
            }
            Self::Alone(_) | Self::Mend | Self::Close(_) => return None,
        })
    }

    fn settle(self, committed: Result<(), StoreError>) {
        match self {
            Self::Intern(_, reply) => reply.settle(committed),
            Self::Chunk(_, reply) | Self::Patch(.., reply) | Self::Values(.., reply) => {
                reply.settle(committed);
            }
            Self::CutBack(.., reply) => reply.settle(committed),
            Self::Usage(_, reply) | Self::Tokens(_, reply) => reply.settle(committed),
            Self::Alone(_) | Self::Mend | Self::Close(_) => {}
        }
    }

    /// Rows are written in the order of their keys, which begin with the wallet.
    fn wallet(&self) -> Option<WalletId> {
        match self {
            Self::Chunk(chunk, _) => Some(chunk.id),
            Self::Patch(id, ..) | Self::CutBack(id, ..) | Self::Values(id, ..) => Some(*id),
            Self::Intern(..)
            | Self::Usage(..)
            | Self::Tokens(..)
            | Self::Alone(_)
            | Self::Mend
            | Self::Close(_) => None,
        }
    }

    /// Roughly how many records it writes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Chunk(chunk, _) => 1 + chunk.trades.len(),
            Self::Usage(updates, _) => 1 + updates.len(),
            Self::Tokens(tokens, _) => 1 + tokens.len(),
            Self::Values(_, _, new, _) => 1 + new.0.len() + new.1.len(),
            Self::Intern(..)
            | Self::Patch(..)
            | Self::CutBack(..)
            | Self::Alone(_)
            | Self::Mend
            | Self::Close(_) => 1,
        }
    }
}

/// Why a transaction was given up.
struct Failure {
    /// Place in the batch of the one request that is at fault, else the file is.
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

    /// Ends when the store is closed or dropped, after all that was sent before is written.
    pub(super) fn run(mut self) {
        let mut closing = Vec::new();
        while let Some(first) = self.jobs.blocking_recv() {
            let mut batch = Vec::new();
            let (mut weight, mut next, mut alone) = (0, Some(first), None);
            while let Some(job) = next {
                weight += job.weight();
                match job {
                    Job::Mend => {}
                    Job::Alone(work) => alone = Some(work),
                    Job::Close(done) => {
                        self.jobs.close();
                        closing.push(done);
                    }
                    Job::Intern(..)
                    | Job::Chunk(..)
                    | Job::Patch(..)
                    | Job::CutBack(..)
                    | Job::Usage(..)
                    | Job::Tokens(..)
                    | Job::Values(..) => batch.push(job),
                }
                let room = weight < LIMITS.joined_records && alone.is_none();
                next = if room { self.jobs.try_recv().ok() } else { None };
            }
            self.write(batch);
            if let Some(Alone(work)) = alone {
                self.shared.latest.forget();
                work(&self.shared);
                self.shared.latest.forget();
            }
        }
        self.shared.close();
        for done in closing {
            let _ = done.send(());
        }
    }

    /// Answers every job of the batch, each after its own fate is settled.
    fn write(&mut self, mut batch: Vec<Job>) {
        // Stable: jobs of one wallet keep the order in which they came.
        batch.sort_by_key(Job::wallet);
        while !batch.is_empty() {
            let (committed, job) = match self.commit(&mut batch) {
                Ok(()) => (Ok(()), None),
                Err(Failure { job, error }) => (Err(error), job),
            };
            if let Err(error) = &committed {
                tracing::error!(%error, requests = batch.len(), "a commit failed");
            }
            match job {
                // The others get a transaction without it.
                Some(at) => batch.remove(at).settle(committed),
                None => batch.drain(..).for_each(|job| job.settle(committed.clone())),
            }
        }
        // Readers need an open file too. Where it cannot be opened, the next wake-up tries again.
        if let Err(error) = self.mend() {
            tracing::error!(%error, "the file cannot be opened again");
        }
    }

    /// One transaction for all of them, or none of it.
    fn commit(&mut self, batch: &mut [Job]) -> Result<(), Failure> {
        self.mend()?;
        self.known.changed.clear();
        let opened = self.shared.opened();
        self.shared.latest.forget();
        let result = self.try_commit(batch);
        if let Err(Failure { job: None, .. }) = &result {
            self.shared.fail(opened);
            self.shared.journal.abandon("a commit failed");
        }
        if result.is_ok() {
            let committed = batch.iter().filter_map(Job::repeated).map(Entry::Job);
            self.shared.journal.add(committed);
        }
        match &result {
            Ok(()) => self.shared.memo.forget_tokens(&self.known.changed),
            // Numbers given in a transaction that never was.
            Err(_) => self.known = Known::default(),
        }
        self.shared.latest.forget();
        result
    }

    fn mend(&self) -> Result<(), StoreError> {
        if self.shared.has_failed() { self.shared.reopen() } else { Ok(()) }
    }

    fn try_commit(&mut self, batch: &mut [Job]) -> Result<(), Failure> {
        let known = &mut self.known;
        let mut txn = self.shared.with(|database| Ok(database.begin_write()?))?;
        txn.set_durability(Durability::Immediate)
            .map_err(|error| StoreError::Engine(error.to_string()))?;
        // An unclean end then costs milliseconds at the next start instead of a walk over all.
        txn.set_quick_repair(true);
        {
            let mut tables = Tables::open(&txn)?;
            for (at, job) in batch.iter_mut().enumerate() {
                if let Err(error) = job.apply(&mut tables, known) {
                    let job = error.is_of_one_request().then_some(at);
                    return Err(Failure { job, error });
                }
            }
        }
        txn.commit().map_err(StoreError::from)?;
        Ok(())
    }
}
