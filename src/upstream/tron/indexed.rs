//! How far the account lists have indexed, learned from the lists: by the newest entries of
//! accounts that have some in nearly every block. A head that is reported next to them says nothing
//! of what they hold.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::blocks::{BLOCK_MILLIS, Head};
use super::list::List;
use super::lister::{LATEST, ListKind};
use super::{TronLimits, TronSource};
use crate::domain::{Address, Height};
use crate::upstream::pool::CallOptions;

/// Entries of a busy account that are looked at.
const BUSY: usize = 50;
/// Answers that count: the one that is furthest behind decides, as several servers may answer.
const ANSWERS_MAX: usize = 8;
const ANSWER_AGE_MAX: Duration = Duration::from_secs(180);

/// How far the newest entries were behind the head, by when that was seen.
#[derive(Debug, Default)]
pub(super) struct Indexed {
    asked_at: Option<Instant>,
    behind: VecDeque<(Instant, u64)>,
}

impl Indexed {
    fn is_known(&self, now: Instant, limits: &TronLimits) -> bool {
        self.asked_at.is_some_and(|at| now.duration_since(at) < limits.indexed_age_max)
    }

    fn note(&mut self, now: Instant, behind: Option<u64>) {
        self.asked_at = Some(now);
        self.behind.extend(behind.map(|behind| (now, behind)));
        while self.behind.len() > ANSWERS_MAX {
            self.behind.pop_front();
        }
        self.behind.retain(|(at, _)| now.duration_since(*at) < ANSWER_AGE_MAX);
    }

    /// Milliseconds.
    fn behind(&self) -> Option<u64> {
        self.behind.iter().map(|(_, behind)| *behind).max()
    }
}

impl TronSource {
    /// Times of the newest entries that the lists show; nothing where that was asked lately, or
    /// cannot be learned.
    pub(super) async fn newest_listed(&self, options: &CallOptions) -> Option<Vec<Option<u64>>> {
        let now = Instant::now();
        if self.has_no_lists() || self.indexed().is_known(now, &self.inner.limits) {
            return None;
        }
        let accounts = [self.inner.references.stables.first(), self.inner.references.pools.first()];
        let asked = ListKind::BOTH.into_iter().zip(accounts);
        let newest = asked.map(|(kind, account)| async move {
            let account = Address::Tron(*account?);
            let page = self.page(account, kind, List::new(LATEST).cursor(), BUSY, options).await;
            let times: Vec<u64> = page.ok()?.0.rows.iter().map(|row| row.at).collect();
            let (newest, oldest) = (times.iter().max()?, times.iter().min()?);
            let span = Duration::from_millis(newest - oldest);
            // An account that is not that busy says nothing.
            let is_busy = times.len() >= BUSY && span <= self.inner.limits.indexed_span_max;
            is_busy.then_some(*newest)
        });
        Some(join_all(newest).await)
    }

    /// The height up to which the lists are complete: what they have shown, and not so far up as
    /// they may lack blocks where they show nothing.
    pub(super) fn indexed_to(&self, head: &Head, newest: Option<Vec<Option<u64>>>) -> Height {
        let mut indexed = self.indexed();
        if let Some(newest) = newest {
            let oldest = newest.into_iter().flatten().min();
            let behind = oldest.map(|oldest| head.millis.saturating_sub(oldest));
            indexed.note(Instant::now(), behind);
        }
        let behind = indexed.behind().unwrap_or(0).div_ceil(BLOCK_MILLIS);
        head.height.saturating_sub(behind.max(self.inner.index_lag))
    }

    fn indexed(&self) -> std::sync::MutexGuard<'_, Indexed> {
        self.inner.indexed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
