//! How far the account lists have indexed, learned from the lists: by the newest entries of
//! accounts that have some in nearly every block. A head that is reported next to them says nothing
//! of what they hold.

use std::collections::{HashMap, VecDeque};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, timeout};

use super::blocks::{BLOCK_MILLIS, Head};
use super::list::List;
use super::lister::{LATEST, ListKind};
use super::{TronLimits, TronSource};
use crate::domain::{Address, Height};
use crate::rpc::endpoint::EndpointId;
use crate::rpc::pool::CallOptions;

/// Entries of a busy account that are looked at.
const BUSY: usize = 50;
/// Answers that count: the one that is furthest behind decides, as several servers may answer.
const ANSWERS_MAX: usize = 8;
const ANSWER_AGE_MAX: Duration = Duration::from_secs(600);

/// How far the newest entries of each endpoint were behind the head, by when that was seen.
#[derive(Debug, Default)]
pub(super) struct Indexed {
    asked_at: Option<Instant>,
    /// The time of the newest solid block, and when it was learned.
    head: Option<(Instant, u64)>,
    behind: HashMap<EndpointId, VecDeque<(Instant, u64)>>,
}

/// The time of the newest entry that an endpoint shows, and whether the account is one that has
/// entries all the time, by what else it shows.
pub(super) type Newest = Vec<(EndpointId, u64, bool)>;

impl Indexed {
    fn is_known(&self, now: Instant, limits: &TronLimits) -> bool {
        self.asked_at.is_some_and(|at| now.duration_since(at) < limits.indexed_age_max)
    }

    fn note(&mut self, now: Instant, id: EndpointId, behind: u64) {
        let answers = self.behind.entry(id).or_default();
        answers.push_back((now, behind));
        while answers.len() > ANSWERS_MAX {
            answers.pop_front();
        }
    }

    /// Milliseconds, of one endpoint; `None` where it is not known.
    fn behind(&self, now: Instant, id: EndpointId) -> Option<u64> {
        let answers = self.behind.get(&id).into_iter().flatten();
        let of_late = answers.filter(|(at, _)| now.duration_since(*at) < ANSWER_AGE_MAX);
        of_late.map(|(_, behind)| *behind).max()
    }
}

impl TronSource {
    /// Times of the newest entries that the lists show; nothing where that was asked lately.
    pub(super) async fn newest_listed(&self, options: &CallOptions) -> Option<Newest> {
        let limits = &self.inner.limits;
        if self.has_no_lists() || self.indexed().is_known(Instant::now(), limits) {
            return None;
        }
        let all = self.inner.pool.endpoints().into_iter();
        let awake: Vec<EndpointId> = all.filter(|one| !one.resting).map(|one| one.id).collect();
        let all = self.offers().open(&awake, Instant::now());
        let accounts = [self.inner.references.stables.first(), self.inner.references.pools.first()];
        let of_kinds = ListKind::BOTH.into_iter().zip(accounts);
        let asked = of_kinds.flat_map(|(kind, account)| {
            all.iter().filter_map(move |id| Some((*id, kind, Address::Tron(*account?))))
        });
        let newest = asked.map(|(id, kind, account)| async move {
            let options = CallOptions { on: Some(id), ..options.clone() };
            let list = List::new(LATEST);
            let page = self.page(account, kind, list.cursor(), BUSY, &options);
            let page = timeout(limits.indexed_wait, page).await.ok()?;
            let times: Vec<u64> = page.ok()?.0.rows.iter().map(|row| row.at).collect();
            let (newest, oldest) = (times.iter().max()?, times.iter().min()?);
            let span = Duration::from_millis(newest - oldest);
            Some((id, *newest, times.len() >= BUSY && span <= limits.indexed_span_max))
        });
        Some(join_all(newest).await.into_iter().flatten().collect())
    }

    /// The height up to which some endpoint's lists are complete: what they have shown, and not so
    /// far up as lists may lack blocks where they show nothing.
    pub(super) fn indexed_to(&self, head: &Head, newest: Option<Newest>) -> Height {
        let now = Instant::now();
        let mut indexed = self.indexed();
        indexed.head = Some((now, head.millis));
        if let Some(newest) = newest {
            indexed.asked_at = Some(now);
            let age_max = millis(self.inner.limits.indexed_entry_age_max);
            for (id, at, is_busy) in newest {
                let behind = head.millis.saturating_sub(at);
                // An account without an entry for long, and that is not busy, shows nothing.
                if is_busy || behind <= age_max {
                    indexed.note(now, id, behind);
                }
            }
        }
        let known = indexed.behind.keys().filter_map(|id| indexed.behind(now, *id));
        let behind = known.min().unwrap_or(0).div_ceil(BLOCK_MILLIS);
        head.height.saturating_sub(behind.max(self.inner.index_lag))
    }

    /// Those of some endpoints whose lists are known to have come as far as a time; where that is
    /// known of none, all.
    pub(super) fn indexed_at(&self, ids: &[EndpointId], at: u64) -> Vec<EndpointId> {
        let now = Instant::now();
        let indexed = self.indexed();
        let head = indexed.head.map(|(seen, head)| head + millis(now.duration_since(seen)));
        let reach = |id: &EndpointId| Some(head?.saturating_sub(indexed.behind(now, *id)?));
        let is_known = self.endpoint_ids().iter().any(|id| reach(id).is_some());
        if at >= LATEST || !is_known {
            return ids.to_vec();
        }
        ids.iter().filter(|id| reach(id).is_some_and(|reach| reach >= at)).copied().collect()
    }

    fn indexed(&self) -> MutexGuard<'_, Indexed> {
        self.inner.indexed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
