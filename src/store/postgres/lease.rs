//! The lease of this process: a heartbeat row, by the clock of the database.
//!
//! A wallet's holder is a column of its state. Every write of the wallet checks it, so that a
//! process which was suspended past its lease changes nothing. Taking over a dead process's wallet
//! raises the epoch as well.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::watch;
use tokio::time::Instant;

use crate::domain::lock;
use crate::store::Share;

/// This process among those that share the store.
#[derive(Debug, Default)]
pub(super) struct Lease {
    /// 0 before the first heartbeat and after the lease was lost.
    pub(super) node: AtomicI64,
    /// The number of a lost lease, whose row the next heartbeat deletes.
    pub(super) given_up: AtomicI64,
    /// Until when this process holds its wallets for certain, by its own clock.
    pub(super) until: Mutex<Option<Instant>>,
    pub(super) share: watch::Sender<Share>,
    pub(super) losses: watch::Sender<u64>,
}

impl Lease {
    /// The number under which this process writes; `None` without a lease.
    pub(super) fn node(&self) -> Option<i64> {
        Some(self.node.load(Ordering::Acquire)).filter(|node| *node != 0)
    }

    pub(super) fn renewed(&self, node: i64, until: Instant) {
        self.node.store(node, Ordering::Release);
        *lock(&self.until) = Some(until);
    }

    pub(super) fn lose(&self) {
        let node = self.node.swap(0, Ordering::AcqRel);
        if node != 0 {
            self.given_up.store(node, Ordering::Release);
            self.losses.send_modify(|losses| *losses += 1);
        }
    }
}
