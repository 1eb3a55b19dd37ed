//! How far the account lists are indexed, by the newest entries of accounts that have some in
//! nearly every block. A reported head proves nothing about the lists, nor does one list about the
//! other.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use super::blocks::BLOCK_MILLIS;
use super::list::{GivenList, IndexedList, ListKind};
use super::lister::{LATEST, ListError};
use super::wire::Block;
use super::{TronLimits, TronSource};
use crate::domain::{Address, Height, lock};
use crate::rpc::{CallOptions, EndpointId, Result, UpstreamError};

/// Entries of a busy account per query.
const BUSY: usize = 50;
/// Observations kept per list: several servers may answer for one endpoint, and one may lag.
const OBSERVATIONS_MAX: usize = 8;
const OBSERVATION_AGE_MAX: Duration = Duration::from_secs(600);
/// Answers in an endpoint's first observation, and in each later one.
const FIRST_ANSWERS: u64 = 4;
const ANSWERS: u64 = 1;
/// Attempts to learn the indexed height of an endpoint that returned a page.
const REACH_TRIES: u32 = 3;
/// An answer may take this many times an endpoint's typical latency.
const LATE_ANSWER: u32 = 3;
/// Answers without an entry of a busy account, after which a list counts as silent.
const SILENT_ANSWERS: u64 = 3;
/// Pause between them if they replace those of a failed endpoint.
const SILENT_APART: Duration = Duration::from_secs(1);

/// The newest and the oldest of the newest entries in one observation, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct ListObservation {
    at: Instant,
    newest: u64,
    oldest: u64,
}

#[derive(Debug, Default)]
struct Reach {
    rounds: VecDeque<ListObservation>,
}

impl Reach {
    fn note(&mut self, round: ListObservation) {
        self.rounds.push_back(round);
        while self.rounds.len() > OBSERVATIONS_MAX {
            self.rounds.pop_front();
        }
    }

    /// The time up to which every server of the endpoint should have indexed: the newest entry
    /// seen, less the largest lag of an answer behind an earlier one.
    fn time(&self, now: Instant) -> Option<u64> {
        let mut newest = 0;
        let mut behind = 0;
        for round in &self.rounds {
            newest = newest.max(round.newest);
            if now.duration_since(round.at) < OBSERVATION_AGE_MAX {
                behind = behind.max(newest - round.oldest.min(newest));
            }
        }
        (newest > 0).then(|| newest - behind)
    }
}

/// Indexed times of each endpoint's lists, with the time of observation.
#[derive(Debug, Default)]
pub(super) struct Indexed {
    asked_at: Option<Instant>,
    by: HashMap<GivenList, Reach>,
    /// When lists of which nothing is known were looked at for a page's second answer.
    pub(super) looked_at: HashMap<GivenList, Instant>,
    /// Consecutive answers without an entry of a busy account.
    empty: HashMap<GivenList, u64>,
}

impl Indexed {
    fn is_known(&self, now: Instant, limits: &TronLimits) -> bool {
        self.asked_at.is_some_and(|at| now.duration_since(at) < limits.indexed_age_max)
    }

    /// Records answers about a busy account and the observation that they make.
    fn take(&mut self, of: GivenList, answers: &[BusyAnswer], round: Option<ListObservation>) {
        let is_given =
            |shown: &BusyAnswer| !matches!(shown, BusyAnswer::Failed | BusyAnswer::Refused);
        if let Some(round) = round {
            self.by.entry(of).or_default().note(round);
            self.empty.remove(&of);
        } else if answers.iter().all(is_given) {
            *self.empty.entry(of).or_default() += u64::try_from(answers.len()).unwrap_or(u64::MAX);
        }
    }

    /// Whether the list shows no entry of accounts that are busy elsewhere.
    fn is_silent(&self, of: GivenList) -> bool {
        self.empty.get(&of).is_some_and(|answers| *answers >= SILENT_ANSWERS)
    }

    fn reach(&self, id: EndpointId, kind: ListKind, now: Instant) -> Option<u64> {
        self.by.get(&(id, kind))?.time(now)
    }

    /// The newest time to which some endpoint has indexed a list.
    fn farthest(&self, kind: ListKind, now: Instant) -> Option<u64> {
        let of_kind = self.by.iter().filter(|((_, of), _)| *of == kind);
        of_kind.filter_map(|(_, reach)| reach.time(now)).max()
    }
}

#[derive(Debug)]
pub(super) enum BusyAnswer {
    /// The newest and the oldest entry of the page, and whether the page was full.
    Entries { newest: u64, oldest: u64, is_full: bool },
    /// The account has no entries.
    Nothing,
    /// The list was refused, which says nothing about its entries.
    Refused,
    /// No answer.
    Failed,
}

pub(super) type Newest = Vec<(EndpointId, ListKind, Vec<BusyAnswer>)>;

impl TronSource {
    /// Whether a list shows no entry of accounts that are busy elsewhere, at any endpoint that has
    /// it.
    pub(super) fn is_silent(&self, kind: ListKind) -> bool {
        let mut givers = self.inner.pool.ids();
        givers.retain(|id| lock(&self.inner.offers).has_given((*id, kind)));
        let indexed = lock(&self.inner.indexed);
        !givers.is_empty() && givers.into_iter().all(|id| indexed.is_silent((id, kind)))
    }

    /// Queries the newest entries of all lists; `None` if that was done recently.
    pub(super) async fn newest_listed(&self, options: &CallOptions) -> Option<Newest> {
        let limits = &self.inner.limits;
        if self.has_no_lists() || lock(&self.inner.indexed).is_known(Instant::now(), limits) {
            return None;
        }
        let mut ids = self.awake();
        if ids.is_empty() {
            ids = self.inner.pool.ids();
        }
        let mut newest = self.newest_of(&ids, options).await;
        if newest.iter().any(|(_, kind, _)| is_unshown(&newest, *kind)) {
            // The chain of these endpoints may not have been checked before.
            let late: Vec<_> = self.awake().into_iter().filter(|id| !ids.contains(id)).collect();
            newest.extend(self.newest_of(&late, options).await);
            self.ask_silent(&mut newest, options).await;
        }
        Some(newest)
    }

    pub(super) fn awake(&self) -> Vec<EndpointId> {
        let all = self.inner.pool.endpoints().into_iter();
        all.filter(|one| !one.resting).map(|one| one.id).collect()
    }

    async fn newest_of(&self, ids: &[EndpointId], options: &CallOptions) -> Newest {
        let open = lock(&self.inner.offers).open_lists(ids, Instant::now());
        let show = |(id, kind): GivenList| async move {
            let account = self.busy_account(kind)?;
            let answers = if self.is_new((id, kind)) { FIRST_ANSWERS } else { ANSWERS };
            let wait = self.longest_wait((id, kind));
            Some((id, kind, self.busy_answers((id, kind), account, (answers, wait), options).await))
        };
        join_all(open.into_iter().map(show)).await.into_iter().flatten().collect()
    }

    pub(super) fn is_new(&self, of: GivenList) -> bool {
        !lock(&self.inner.indexed).by.contains_key(&of)
    }

    /// Queries endpoints that show no entry several times, with pauses, if the other endpoints
    /// fail: only that shows that the account is not busy there.
    async fn ask_silent(&self, newest: &mut Newest, options: &CallOptions) {
        for kind in ListKind::BOTH {
            let account = self.busy_account(kind).filter(|_| is_unshown(newest, kind));
            let Some(account) = account else { continue };
            for (id, _, shown) in newest.iter_mut().filter(|(_, of, _)| *of == kind) {
                if lock(&self.inner.indexed).is_silent((*id, kind)) {
                    continue;
                }
                let options = from_one(*id, options);
                for nudge in 1..SILENT_ANSWERS {
                    if matches!(shown.last(), Some(BusyAnswer::Nothing)) {
                        sleep(SILENT_APART).await;
                        let how = (nudge, self.longest_wait((*id, kind)));
                        shown.push(self.busy_answer(kind, account, how, &options).await);
                    }
                }
            }
        }
    }

    async fn busy_answers(
        &self,
        (id, kind): GivenList,
        account: Address,
        (answers, wait): (u64, Duration),
        options: &CallOptions,
    ) -> Vec<BusyAnswer> {
        let options = from_one(id, options);
        // Each query differs in parameters but not in its answer, so that no cache answers it.
        let one = |nudge| self.busy_answer(kind, account, (nudge, wait), &options);
        // An endpoint without the list is not queried for it again.
        let first = if self.is_new((id, kind)) { 1 } else { answers };
        let mut shown = join_all((0..first).map(one)).await;
        if matches!(shown.first(), Some(BusyAnswer::Entries { .. })) {
            shown.extend(join_all((first..answers).map(one)).await);
        } else {
            shown.truncate(1);
        }
        shown
    }

    async fn busy_answer(
        &self,
        kind: ListKind,
        account: Address,
        (nudge, wait): (u64, Duration),
        options: &CallOptions,
    ) -> BusyAnswer {
        let list = IndexedList::new(LATEST + nudge);
        let page = self.page(account, kind, &list.cursor, BUSY, options);
        match timeout(wait, page).await {
            Ok(Ok((page, _))) => {
                let times = || page.rows.iter().map(|row| row.at);
                match (times().max(), times().min()) {
                    (Some(newest), Some(oldest)) => {
                        BusyAnswer::Entries { newest, oldest, is_full: page.rows.len() >= BUSY }
                    }
                    _ => BusyAnswer::Nothing,
                }
            }
            Ok(Err(ListError::Refused(_))) => BusyAnswer::Refused,
            Ok(Err(ListError::Failed(_))) | Err(_) => BusyAnswer::Failed,
        }
    }

    pub(super) fn longest_wait(&self, of: GivenList) -> Duration {
        let limits = &self.inner.limits;
        if self.is_new(of) { limits.indexed_first_wait } else { limits.indexed_wait }
    }

    /// An account that constantly has entries of a kind.
    pub(super) fn busy_account(&self, kind: ListKind) -> Option<Address> {
        let references = &self.inner.references;
        let account = match kind {
            ListKind::Transactions => references.stables.first(),
            ListKind::Transfers => references.pools.first(),
        };
        account.copied().map(Address::Tron)
    }

    /// An error if endpoints that returned pages have not reached a time by now: a server that fell
    /// behind meanwhile omitted the newest entries without a sign.
    pub(super) async fn check_reach(
        &self,
        given_by: &[GivenList],
        (at, answers): (u64, u64),
        options: &CallOptions,
    ) -> Result<()> {
        let checked = given_by.iter().map(|of| self.check_one_reach(*of, (at, answers), options));
        let all = join_all(checked).await;
        if all.into_iter().all(|has_come| has_come) {
            return Ok(());
        }
        Err(UpstreamError::unavailable("lists are not known to have come so far"))
    }

    /// Lists that have reached a time by observations since all were queried.
    pub(super) fn lists_shown(&self, at: u64) -> Vec<GivenList> {
        let indexed = lock(&self.inner.indexed);
        let Some(since) = indexed.asked_at else { return Vec::new() };
        let is_shown = |round: &ListObservation| round.at >= since && round.oldest >= at;
        let all = indexed.by.iter().filter(|(_, reach)| reach.rounds.iter().any(is_shown));
        all.map(|(of, _)| *of).collect()
    }

    /// An error if lists returned their newest pages before an observation showed that they had
    /// reached the time, and the lists' indexed time is known to be near it: they may have fallen
    /// back after an earlier read and omitted the newest entries.
    pub(super) fn check_seen(&self, unseen: &[GivenList], at: u64) -> Result<()> {
        let (now, indexed) = (Instant::now(), lock(&self.inner.indexed));
        let is_near = |known: u64| self.is_near(known, at);
        if unseen.iter().any(|(_, kind)| indexed.farthest(*kind, now).is_some_and(is_near)) {
            let last = "lists were not known to have come so far before their pages";
            return Err(UpstreamError::unavailable(last));
        }
        Ok(())
    }

    async fn check_one_reach(
        &self,
        (id, kind): GivenList,
        (at, answers): (u64, u64),
        options: &CallOptions,
    ) -> bool {
        let known = lock(&self.inner.indexed).farthest(kind, Instant::now());
        // No busy account is known, or the read begins far below the head.
        let is_far_below = |known: u64| !self.is_near(known, at);
        let Some(account) = self.busy_account(kind) else { return true };
        if known.is_some_and(is_far_below) {
            return true;
        }
        let is_silent = || known.is_none() && lock(&self.inner.indexed).is_silent((id, kind));
        for _ in 0..REACH_TRIES {
            if is_silent() {
                return true;
            }
            // Its pages were waited for, however long they took.
            let slow = self.inner.pool.typical_latency(id).unwrap_or_default() * LATE_ANSWER;
            let slow = slow.min(self.inner.limits.indexed_first_wait);
            let wait = self.longest_wait((id, kind)).max(slow);
            let round = self.look((id, kind), account, (answers, at, wait), options).await;
            if let Some(round) = round {
                return round.oldest >= at;
            }
        }
        is_silent()
    }

    /// Makes an observation of `answers` answers and records it. `at`: milliseconds, assumed if
    /// nothing is known yet.
    async fn look(
        &self,
        of: GivenList,
        account: Address,
        (answers, at, wait): (u64, u64, Duration),
        options: &CallOptions,
    ) -> Option<ListObservation> {
        let now = Instant::now();
        let known = lock(&self.inner.indexed).farthest(of.1, now);
        let shown = self.busy_answers(of, account, (answers, wait), options).await;
        let round = observation_of(&shown, known.unwrap_or(at), Instant::now(), &self.inner.limits);
        lock(&self.inner.indexed).take(of, &shown, round);
        round
    }

    /// Observes lists again that are not known to have reached a time, so that a read does not wait
    /// until their earlier lag is forgotten.
    pub(super) async fn look_again(
        &self,
        ids: &[EndpointId],
        kind: ListKind,
        at: u64,
        options: &CallOptions,
    ) {
        let Some(account) = self.busy_account(kind) else { return };
        let how = |id: &EndpointId| (ANSWERS, at, self.longest_wait((*id, kind)));
        let looks = ids.iter().map(|id| self.look((*id, kind), account, how(id), options));
        join_all(looks).await;
    }

    /// Records an observation of all lists. False if an endpoint failed for a list whose indexed
    /// time is unknown and which is silent at no endpoint.
    fn take_newest(&self, newest: Newest, at: u64) -> bool {
        let (now, mut silent) = (Instant::now(), Vec::new());
        let mut indexed = lock(&self.inner.indexed);
        let failed = ListKind::BOTH.map(|kind| (kind, is_failed(&newest, kind)));
        for (id, kind, answers) in newest {
            let round = observation_of(&answers, at, now, &self.inner.limits);
            indexed.take((id, kind), &answers, round);
            if indexed.is_silent((id, kind)) {
                silent.push(kind);
            }
        }
        let is_answered = |(kind, is_failed): (ListKind, bool)| {
            !is_failed || silent.contains(&kind) || indexed.farthest(kind, now).is_some()
        };
        let are_answered = failed.into_iter().all(is_answered);
        if are_answered {
            indexed.asked_at = Some(now);
        }
        are_answered
    }

    /// Observes lists before the pages of a read that begins near their indexed time.
    pub(super) async fn look_before(&self, at: u64, options: &CallOptions) {
        let is_near = |kind: ListKind| {
            lock(&self.inner.indexed)
                .farthest(kind, Instant::now())
                .is_none_or(|known| self.is_near(known, at))
        };
        if ListKind::BOTH.into_iter().any(is_near)
            && let Some(newest) = Box::pin(self.newest_listed(options)).await
        {
            self.take_newest(newest, at);
        }
    }

    /// Whether a list known to have reached `known` may now lack entries of `at`.
    fn is_near(&self, known: u64, at: u64) -> bool {
        known.saturating_sub(at) <= millis(self.inner.limits.indexed_entry_age_max)
    }

    /// The height up to which some endpoint's lists are complete: the head less the larger of the
    /// observed lag and the chain's assumed one, because lists may lack blocks that no observation
    /// shows.
    pub(super) fn indexed_to(&self, head: &Block, newest: Option<Newest>) -> Result<Height> {
        if newest.is_some_and(|newest| !self.take_newest(newest, head.millis)) {
            let last = "no endpoint shows how far its lists have come";
            return Err(UpstreamError::unavailable(last));
        }
        let (now, indexed) = (Instant::now(), lock(&self.inner.indexed));
        let known = ListKind::BOTH.into_iter().filter_map(|kind| indexed.farthest(kind, now));
        let behind = known.min().map_or(0, |known| head.millis.saturating_sub(known));
        let behind = behind.div_ceil(BLOCK_MILLIS);
        Ok(head.height.saturating_sub(behind.max(self.inner.index_lag)))
    }

    /// Endpoints whose list is known to have reached a time; all of them if that is known of none.
    pub(super) fn indexed_at(
        &self,
        ids: &[EndpointId],
        kind: ListKind,
        at: u64,
    ) -> Vec<EndpointId> {
        let now = Instant::now();
        let indexed = lock(&self.inner.indexed);
        if at >= LATEST || indexed.farthest(kind, now).is_none() {
            return ids.to_vec();
        }
        let has_come =
            |id: &&EndpointId| indexed.reach(**id, kind, now).is_some_and(|reach| reach >= at);
        ids.iter().filter(has_come).copied().collect()
    }
}

/// Options for one endpoint that can be replaced: other endpoints report their lists and return the
/// pages as well.
pub(super) fn from_one(id: EndpointId, options: &CallOptions) -> CallOptions {
    CallOptions { on: Some(id), is_replaceable: true, ..options.clone() }
}

/// Whether some endpoint did not answer about a list.
fn is_failed(newest: &Newest, kind: ListKind) -> bool {
    let mut of_kind = newest.iter().filter(|(_, of, _)| *of == kind);
    of_kind.any(|(_, _, shown)| shown.iter().any(|shown| matches!(shown, BusyAnswer::Failed)))
}

/// Whether some endpoint did not answer about a list, and no other shows an entry of it.
fn is_unshown(newest: &Newest, kind: ListKind) -> bool {
    let mut of_kind = newest.iter().filter(|(_, of, _)| *of == kind);
    is_failed(newest, kind)
        && !of_kind.any(|(_, _, shown)| matches!(shown.first(), Some(BusyAnswer::Entries { .. })))
}

/// The observation that answers make; `None` if no answer has a recent entry or a full page of
/// closely spaced ones: an account that is not busy and has no recent entry shows nothing.
fn observation_of(
    answers: &[BusyAnswer],
    head: u64,
    now: Instant,
    limits: &TronLimits,
) -> Option<ListObservation> {
    let age_max = millis(limits.indexed_entry_age_max);
    let span_max = millis(limits.indexed_span_max);
    let shows = |shown: &BusyAnswer| match shown {
        BusyAnswer::Entries { newest, oldest, is_full } => {
            let is_busy = *is_full && newest - oldest <= span_max;
            (is_busy || head.saturating_sub(*newest) <= age_max).then_some(*newest)
        }
        BusyAnswer::Nothing | BusyAnswer::Refused | BusyAnswer::Failed => None,
    };
    let times = || answers.iter().filter_map(shows);
    Some(ListObservation { at: now, newest: times().max()?, oldest: times().min()? })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use serde_json::json;

    use super::super::fake::{self, ScriptedNodes, options};
    use super::*;

    fn observation_of(newest: u64, oldest: u64) -> ListObservation {
        ListObservation { at: Instant::now(), newest, oldest }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_behind_counts_against_its_endpoint() {
        let mut reach = Reach::default();
        assert_eq!(reach.time(Instant::now()), None);
        reach.note(observation_of(1_000, 1_000));
        assert_eq!(reach.time(Instant::now()), Some(1_000));
        // One of two servers lacks the newest 300.
        reach.note(observation_of(1_100, 800));
        assert_eq!(reach.time(Instant::now()), Some(800));
        // An observation stays: a later answer of the lagging server does not lower it further.
        reach.note(observation_of(900, 900));
        assert_eq!(reach.time(Instant::now()), Some(800));
        tokio::time::advance(OBSERVATION_AGE_MAX).await;
        assert_eq!(reach.time(Instant::now()), Some(1_100));
    }

    #[test]
    fn one_empty_answer_of_a_busy_account_shows_nothing_of_its_list() {
        let mut indexed = Indexed::default();
        let of = (EndpointId(0), ListKind::Transfers);
        indexed.take(of, &[BusyAnswer::Nothing], None);
        indexed.take(of, &[BusyAnswer::Failed], None);
        indexed.take(of, &[BusyAnswer::Refused], None);
        indexed.take(of, &[BusyAnswer::Nothing], None);
        assert!(!indexed.is_silent(of));
        indexed.take(of, &[BusyAnswer::Nothing], None);
        assert!(indexed.is_silent(of) && !indexed.is_silent((EndpointId(1), of.1)));
        indexed.take(of, &[BusyAnswer::Nothing], Some(observation_of(1_000, 1_000)));
        assert!(!indexed.is_silent(of), "it shows some now");
    }

    /// The lists may have fallen back before their pages, and may have caught up since.
    #[tokio::test(start_paused = true)]
    async fn newest_pages_of_lists_that_had_not_shown_how_far_they_were_count_far_below_alone() {
        let (limits, newest) = (TronLimits::default(), 1_700_000_000_000);
        let far = newest - millis(limits.indexed_entry_age_max) - 1;
        let nodes = ScriptedNodes::new(|_| (404, "<html></html>".into()));
        let source = fake::source(&["one"], &nodes, limits);
        let of = (EndpointId(0), ListKind::Transfers);
        assert!(source.check_seen(&[of], newest).is_ok(), "its accounts are not busy");
        lock(&source.inner.indexed).take(of, &[], Some(observation_of(newest, newest)));
        assert!(source.check_seen(&[of], newest).is_err());
        assert!(source.check_seen(&[of], far).is_ok() && source.check_seen(&[], newest).is_ok());
    }

    /// How long a look takes at an endpoint that fails next to one whose list is empty, or fails
    /// too after some answers, and whether it shows enough.
    async fn look(answers: usize) -> (Duration, bool) {
        let left = AtomicUsize::new(answers);
        let nodes = ScriptedNodes::new(move |(host, path, _)| {
            let is_left = |left: usize| left.checked_sub(1);
            let lists = path.contains("/accounts/");
            if host == "quiet" && left.fetch_update(Relaxed, Relaxed, is_left).is_ok() {
                return (200, json!({"data": [], "success": true, "meta": {"page_size": 0}}));
            }
            (if lists { 503 } else { 404 }, "<html></html>".into())
        });
        let source = fake::source(&["fails", "quiet"], &nodes, TronLimits::default());
        let began = Instant::now();
        let newest = source.newest_listed(&options()).await.unwrap();
        (began.elapsed(), source.take_newest(newest, 1_000))
    }

    #[tokio::test(start_paused = true)]
    async fn several_empty_answers_of_one_endpoint_show_enough_where_another_one_fails() {
        let both = ListKind::BOTH.len() * usize::try_from(SILENT_ANSWERS).unwrap();
        let (took, shows) = look(both).await;
        // A second lies between them: a server that begins anew gives nothing for a moment.
        let apart = SILENT_APART * u32::try_from(SILENT_ANSWERS - 1).unwrap();
        assert!(shows && (apart..Duration::from_secs(6)).contains(&took), "{took:?}");
        for fewer in 0..both {
            assert!(!look(fewer).await.1, "{fewer}");
        }
    }

    /// As slowly as it gives the pages of a read.
    #[tokio::test(start_paused = true)]
    async fn a_slow_endpoint_is_waited_for_until_it_shows_how_far_it_has_come() {
        let nodes = ScriptedNodes::after(Duration::from_secs(5), |_| {
            let rows = json!([{"transaction_id": "0".repeat(64), "block_timestamp": 1_000}]);
            (200, json!({"data": rows, "success": true, "meta": {"page_size": 1}}))
        });
        let source = fake::source(&["slow"], &nodes, TronLimits::default());
        let of = (EndpointId(0), ListKind::Transfers);
        let (account, list) = (source.busy_account(of.1).unwrap(), IndexedList::new(LATEST));
        assert!(source.page(account, of.1, &list.cursor, BUSY, &options()).await.is_ok());
        lock(&source.inner.indexed).take(of, &[], Some(observation_of(1_000, 1_000)));
        assert!(source.check_one_reach(of, (1_000, ANSWERS), &options()).await);
    }

    #[test]
    fn one_list_says_nothing_of_the_other() {
        let mut indexed = Indexed::default();
        let (id, now) = (EndpointId(0), Instant::now());
        indexed.by.entry((id, ListKind::Transfers)).or_default().note(observation_of(1_000, 1_000));
        assert_eq!(indexed.farthest(ListKind::Transfers, now), Some(1_000));
        assert_eq!(indexed.farthest(ListKind::Transactions, now), None);
    }
}
