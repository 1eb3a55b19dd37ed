//! Requests to the writer, each with the way back to its caller.

use tokio::sync::oneshot;

use super::apply::Tables;
use super::intern::Known;
use super::{
    Chunk, NewValue, PriceRecord, StoreError, TokenRecord, UsageUpdate, WalletId, WalletPatch,
    Written,
};
use crate::domain::{Height, Wallet, opaque};

/// A request with the way back to its caller. A caller that has gone changes nothing: what was
/// sent is written.
#[derive(Debug)]
pub(super) enum Job {
    Intern(Wallet, JobReply<WalletId>),
    Chunk(Box<Chunk>, JobReply<Written>),
    Patch(WalletId, u64, Box<WalletPatch>, JobReply<Written>),
    CutBack(WalletId, Height, JobReply<u64>),
    Usage(Vec<UsageUpdate>, JobReply<()>),
    Tokens(Vec<TokenRecord>, JobReply<()>),
    Values(WalletId, u64, Box<(Vec<NewValue>, Vec<PriceRecord>)>, JobReply<Written>),
    /// Has the file to itself, between two transactions.
    Alone(Alone),
    /// Only wakes the writer, which opens a failed file again.
    Mend,
    /// Answered when all that came before is durable and the file is closed.
    Close(oneshot::Sender<()>),
}

/// Work on the whole file, which answers its caller itself.
pub(super) struct Alone(Work);

type Work = Box<dyn FnOnce() + Send>;

impl Alone {
    pub(super) fn new(work: impl FnOnce() + Send + 'static) -> Self {
        Self(Box::new(work))
    }

    pub(super) fn run(self) {
        (self.0)();
    }
}

opaque!(Alone);

/// An outcome waits here for the commit that makes it true.
#[derive(Debug)]
pub(super) struct JobReply<T> {
    to: oneshot::Sender<Result<T, StoreError>>,
    outcome: Option<T>,
}

impl<T> JobReply<T> {
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
    pub(super) fn repeated(&self) -> Option<Self> {
        Some(match self {
            Self::Intern(wallet, _) => Self::Intern(*wallet, JobReply::new().0),
            Self::Chunk(chunk, _) => Self::Chunk(chunk.clone(), JobReply::new().0),
            Self::Patch(id, epoch, patch, _) => {
                Self::Patch(*id, *epoch, patch.clone(), JobReply::new().0)
            }
            Self::CutBack(id, above, _) => Self::CutBack(*id, *above, JobReply::new().0),
            Self::Usage(updates, _) => Self::Usage(updates.clone(), JobReply::new().0),
            Self::Tokens(tokens, _) => Self::Tokens(tokens.clone(), JobReply::new().0),
            Self::Values(id, epoch, new, _) => {
                Self::Values(*id, *epoch, new.clone(), JobReply::new().0)
            }
            Self::Alone(_) | Self::Mend | Self::Close(_) => return None,
        })
    }

    pub(super) fn settle(self, committed: Result<(), StoreError>) {
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
    pub(super) fn wallet(&self) -> Option<WalletId> {
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
