//! Requests to the writer thread, each with a channel back to its caller.

use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::apply::Tables;
use super::intern::Known;
use super::{Result, StoreError, WalletId};
use crate::domain::lock;

/// A request is carried out even when its caller no longer waits.
pub(super) enum Job {
    Write(Write),
    /// Runs between two transactions, with exclusive use of the file.
    Alone(Alone),
    /// Only wakes the writer, which reopens a failed file.
    Wake,
    /// Answered when all earlier requests are durable and the file is closed.
    Close(oneshot::Sender<()>),
}

/// Work on the whole file, which answers its caller itself.
pub(super) type Alone = Box<dyn FnOnce() + Send>;

/// The change of a write: applied to the file, and again to a copy that is made meanwhile.
pub(super) type Change = Arc<dyn Fn(&mut Tables<'_>, &mut Known) -> Result<()> + Send + Sync>;

pub(super) struct Write {
    /// Rows are written in the order of their keys, which begin with the wallet.
    pub(super) wallet: Option<WalletId>,
    /// Roughly how many records it writes.
    pub(super) weight: usize,
    pub(super) change: Change,
    /// Answers the caller, after the commit, with the outcome of the change.
    pub(super) reply: Box<dyn FnOnce(Result<()>) + Send>,
}

impl Write {
    pub(super) fn job<T: Send + 'static>(
        wallet: Option<WalletId>,
        weight: usize,
        change: impl Fn(&mut Tables<'_>, &mut Known) -> Result<T> + Send + Sync + 'static,
    ) -> (Job, oneshot::Receiver<Result<T>>) {
        let (to, answer) = oneshot::channel();
        let outcome = Arc::new(Mutex::new(None));
        let waiting = Arc::clone(&outcome);
        let change: Change = Arc::new(move |tables, known| {
            *lock(&waiting) = Some(change(tables, known)?);
            Ok(())
        });
        let reply = Box::new(move |committed: Result<()>| {
            let outcome = lock(&outcome).take().ok_or(StoreError::WriterGone);
            // The caller may no longer wait.
            let _ = to.send(committed.and(outcome));
        });
        (Job::Write(Self { wallet, weight, change, reply }), answer)
    }
}
