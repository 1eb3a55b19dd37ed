//! Requests to the writer, each with the way back to its caller.

use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::apply::Tables;
use super::intern::Known;
use super::{Result, StoreError, WalletId};
use crate::domain::lock;

/// A caller that has gone changes nothing: what was sent is written.
pub(super) enum Job {
    Write(Write),
    /// Has the file to itself, between two transactions.
    Alone(Alone),
    /// Only wakes the writer, which opens a failed file again.
    Mend,
    /// Answered when all that came before is durable and the file is closed.
    Close(oneshot::Sender<()>),
}

/// Work on the whole file, which answers its caller itself.
pub(super) type Alone = Box<dyn FnOnce() + Send>;

/// What a write does, once in the file, and once more in a copy that is made meanwhile.
pub(super) type Change = Arc<dyn Fn(&mut Tables<'_>, &mut Known) -> Result<()> + Send + Sync>;

pub(super) struct Write {
    /// Rows are written in the order of their keys, which begin with the wallet.
    pub(super) wallet: Option<WalletId>,
    /// Roughly how many records it writes.
    pub(super) weight: usize,
    pub(super) change: Change,
    /// Answers the caller. The outcome of the change has waited for the commit that makes it true.
    pub(super) settle: Box<dyn FnOnce(Result<()>) + Send>,
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
        let settle = Box::new(move |committed: Result<()>| {
            let outcome = lock(&outcome).take().ok_or(StoreError::WriterGone);
            // The caller may have gone.
            let _ = to.send(committed.and(outcome));
        });
        (Job::Write(Self { wallet, weight, change, settle }), answer)
    }
}
