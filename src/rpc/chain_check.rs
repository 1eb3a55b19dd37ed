//! Chain-identity check: each endpoint is queried for its chain at intervals, and one that reports
//! another chain is disabled. A read waits until one endpoint is confirmed, not for all; endpoints
//! without an answer by then are excluded until they answer. What a read listed counts only once
//! the endpoints that answered have reported this chain again.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, Shared, WeakShared, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::endpoint::EndpointId;
use super::error::{Result, UpstreamError};
use super::pool::Pool;
use crate::domain::lock;

/// An endpoint that reports another chain is queried again after this long, and after twice as long
/// each further time: one answer may be an error of a proxy.
const WRONG_CHAIN_COOLDOWN_FIRST: Duration = Duration::from_secs(60);
const WRONG_CHAIN_COOLDOWN_MAX: Duration = Duration::from_secs(3600);
/// A confirmed endpoint is queried again by the first read after this long: another server may
/// answer at its address by then.
const RIGHT_CHAIN_KEPT: Duration = Duration::from_secs(600);
/// Reads start without a confirmed endpoint after this long.
const NO_ANSWER_WAIT: Duration = Duration::from_secs(5);
/// An endpoint that answered with an unexpected error is queried again after this long, if no other
/// one is confirmed.
const ODD_CHAIN_KEPT: Duration = Duration::from_secs(60);
/// JSON-RPC codes for an invalid request or an unknown method.
const REQUEST_ERRORS: RangeInclusive<i64> = -32602..=-32600;
/// How long an endpoint without an answer is excluded at most.
const UNKNOWN_COOLDOWN: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainCheck {
    Match,
    Mismatch,
    /// The endpoint answers, but the answer names no chain.
    Silent,
    /// The endpoint answers with an error that it may return for any call.
    Odd,
    /// The endpoint did not answer: the next read queries it again.
    Unknown,
}

impl ChainCheck {
    pub(crate) fn of<T: PartialEq>(reported: Result<Option<T>>, expected: &T) -> Self {
        match reported {
            Ok(Some(reported)) if reported == *expected => Self::Match,
            Ok(Some(_)) => Self::Mismatch,
            Ok(None) | Err(UpstreamError::NotSupported { .. }) => Self::Silent,
            Err(UpstreamError::Rpc { code, .. }) if REQUEST_ERRORS.contains(&code) => Self::Silent,
            Err(UpstreamError::Rpc { .. }) => Self::Odd,
            Err(_) => Self::Unknown,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckOutcome {
    Unchanged,
    EndpointsChanged,
}

type Round = Shared<BoxFuture<'static, ()>>;
pub(super) type Recheck = BoxFuture<'static, ChainCheck>;

#[derive(Debug, Default)]
pub(crate) struct ChainChecks {
    pub(super) reported: Arc<ChainAnswers>,
    /// The pending queries; polled by each task that waits for them, and by
    /// [`ChainChecks::drive_queries`].
    round: Mutex<Option<Round>>,
    /// The last query of each endpoint after a read, with its beginning.
    pub(super) rechecks: Mutex<HashMap<EndpointId, (Instant, WeakShared<Recheck>)>>,
}

#[derive(Debug, Default)]
pub(super) struct ChainAnswers {
    known: Mutex<HashMap<EndpointId, Reported>>,
    /// Beginning and end of the last query in which the endpoint named this chain.
    pub(super) named: Mutex<HashMap<EndpointId, (Instant, Instant)>>,
    /// When an endpoint that counted as one of this chain named another one.
    left: Mutex<HashMap<EndpointId, Instant>>,
    updated: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Reported {
    is_right: bool,
    basis: Basis,
    /// The endpoint is not queried again before this time.
    until: Instant,
    cooldown: Duration,
}

/// Why an endpoint counts as one of this chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Basis {
    Reported,
    /// It was confirmed, but gave no answer to the last query: other endpoints are not excluded
    /// because of it.
    Outdated,
    /// It answered with an unexpected error, and no other endpoint is confirmed.
    Odd,
}

impl Reported {
    fn is_confirmed(&self) -> bool {
        self.is_right && self.basis == Basis::Reported
    }
}

impl ChainAnswers {
    pub(super) fn is_right(&self, id: EndpointId) -> Option<bool> {
        lock(&self.known).get(&id).map(|known| known.is_right)
    }

    /// An endpoint that has left this chain since, whose answers were used until then.
    pub(super) fn left_since(&self, begun: Instant) -> Option<EndpointId> {
        lock(&self.left).iter().find(|(_, at)| **at >= begun).map(|(id, _)| *id)
    }

    fn is_reported(&self, id: EndpointId) -> bool {
        lock(&self.known).get(&id).is_some_and(Reported::is_confirmed)
    }

    /// Whether some endpoint was confirmed by an answer, of any age.
    fn has_answered(&self) -> bool {
        let is_answered = |known: &Reported| known.is_right && known.basis != Basis::Odd;
        lock(&self.known).values().any(is_answered)
    }

    fn has_right(&self) -> bool {
        lock(&self.known).values().any(Reported::is_confirmed)
    }

    fn store_check(&self, id: EndpointId, is_right: bool, basis: Basis, cooldown: Duration) {
        let until = Instant::now() + cooldown;
        lock(&self.known).insert(id, Reported { is_right, basis, until, cooldown });
    }

    /// Marks the endpoint to be queried again at the next read.
    fn outdate(&self, id: EndpointId) {
        if let Some(known) = lock(&self.known).get_mut(&id) {
            known.basis = Basis::Outdated;
        }
    }

    fn store_mismatch(&self, pool: &Pool, id: EndpointId) {
        let last =
            lock(&self.known).get(&id).filter(|known| !known.is_right).map(|known| known.cooldown);
        let next = last.map_or(WRONG_CHAIN_COOLDOWN_FIRST, |last| last.saturating_mul(2));
        let next = next.min(WRONG_CHAIN_COOLDOWN_MAX);
        pool.cool_down(id, next);
        self.store_check(id, false, Basis::Reported, next);
    }

    pub(super) fn record(&self, pool: &Pool, id: EndpointId, reported: ChainCheck, began: Instant) {
        if reported == ChainCheck::Match {
            lock(&self.named).insert(id, (began, Instant::now()));
        }
        let before = self.is_right(id);
        let was_right = before == Some(true);
        match reported {
            ChainCheck::Mismatch => {
                tracing::error!(endpoint = %pool.label(id), "the endpoint reports another chain and is disabled until it reports this one");
                if was_right {
                    lock(&self.left).insert(id, Instant::now());
                }
                self.store_mismatch(pool, id);
            }
            // Only a matching answer enables an endpoint that reported another chain.
            ChainCheck::Silent | ChainCheck::Odd | ChainCheck::Unknown if before == Some(false) => {
                self.store_mismatch(pool, id);
            }
            ChainCheck::Odd | ChainCheck::Unknown if self.is_reported(id) => {
                self.outdate(id);
            }
            // Next to a confirmed endpoint this one counts as not reached; else reads use it.
            ChainCheck::Odd if self.has_right() => {}
            ChainCheck::Odd => self.store_check(id, true, Basis::Odd, ODD_CHAIN_KEPT),
            ChainCheck::Match | ChainCheck::Silent => {
                // Stored before the release: `exclude_unconfirmed`, which may exclude the endpoint
                // meanwhile, checks the result again.
                self.store_check(id, true, Basis::Reported, RIGHT_CHAIN_KEPT);
                lock(&self.known).retain(|_, known| known.basis != Basis::Odd);
                // A cooldown of an endpoint that was confirmed before has another cause and is
                // kept.
                if before == Some(true) {
                    pool.enable(id);
                } else {
                    pool.release(id);
                }
            }
            ChainCheck::Unknown => {}
        }
        self.updated.notify_waiters();
    }
}

struct DropQueries<'a>(&'a ChainChecks);

impl Drop for DropQueries<'_> {
    fn drop(&mut self) {
        lock(&self.0.round).take();
    }
}

impl ChainChecks {
    /// Whether the chain matches, for each endpoint that answered.
    pub(crate) fn known(&self) -> HashMap<EndpointId, bool> {
        let known = lock(&self.reported.known);
        known.iter().map(|(id, known)| (*id, known.is_right)).collect()
    }

    /// Waits until an endpoint is confirmed (an unexpected error does not count), all were queried,
    /// or the time limit has passed. `method` is the method that `ask` calls.
    pub(crate) async fn check(
        &self,
        pool: &Pool,
        method: &'static str,
        ask: impl Fn(EndpointId) -> BoxFuture<'static, ChainCheck>,
    ) -> Result<CheckOutcome> {
        let (unknown, before) = (self.due_for_check(pool), self.known());
        if !unknown.is_empty() {
            let round = self.join_or_start(pool, &unknown, (method, ask));
            // If some queried endpoint was never known, an outdated confirmation of another one
            // does not end the wait.
            let are_known = unknown.iter().all(|id| before.contains_key(id));
            let enough = self.wait_for_confirmation(round, are_known);
            // An endpoint that does not report its chain can still serve the read.
            let _ = timeout(NO_ANSWER_WAIT, enough).await;
        }
        let outcome = self.exclude_unconfirmed(pool, &unknown, &before)?;
        let after = self.known();
        let is_back =
            |id: &EndpointId| before.get(id) == Some(&false) && after.get(id) == Some(&true);
        // Other calls to a disabled endpoint were refused meanwhile: they must be repeated.
        let is_back = unknown.iter().any(is_back);
        Ok(if is_back { CheckOutcome::EndpointsChanged } else { outcome })
    }

    async fn wait_for_confirmation(&self, round: Round, are_known: bool) {
        let is_enough = || self.reported.has_right() || are_known && self.reported.has_answered();
        loop {
            let updated = self.reported.updated.notified();
            // Polls the queries once, to take all answers that arrived since the last read.
            let is_over = round.clone().now_or_never().is_some();
            if is_over || is_enough() {
                return;
            }
            tokio::select! {
                biased;
                () = round.clone() => return,
                () = updated => {}
            }
        }
    }

    /// Drives the pending queries; never ready. Dropping it drops them, with their permits.
    pub(crate) async fn drive_queries(&self) -> Infallible {
        let _end = DropQueries(self);
        loop {
            let updated = self.reported.updated.notified();
            let round = lock(&self.round).clone();
            if let Some(round) = round {
                round.await;
                lock(&self.round).take_if(|round| round.peek().is_some());
            }
            updated.await;
        }
    }

    fn due_for_check(&self, pool: &Pool) -> Vec<EndpointId> {
        let (known, now) = (lock(&self.reported.known), Instant::now());
        let is_open = |id: &EndpointId| known.get(id).is_none_or(|known| known.until <= now);
        pool.ids().into_iter().filter(is_open).collect()
    }

    fn join_or_start(
        &self,
        pool: &Pool,
        unknown: &[EndpointId],
        (method, ask): (&'static str, impl Fn(EndpointId) -> BoxFuture<'static, ChainCheck>),
    ) -> Round {
        let mut round = lock(&self.round);
        if let Some(round) = round.as_ref().filter(|round| round.peek().is_none()) {
            return round.clone();
        }
        let twice = |id: EndpointId| query_twice(pool.clone(), id, method, [ask(id), ask(id)]);
        let mut queried: FuturesUnordered<_> = unknown.iter().map(|id| twice(*id)).collect();
        let (pool, answers, began) = (pool.clone(), Arc::clone(&self.reported), Instant::now());
        let all = async move {
            while let Some((id, reported)) = queried.next().await {
                answers.record(&pool, id, reported, began);
            }
        };
        let begun = round.insert(all.boxed().shared()).clone();
        self.reported.updated.notify_waiters();
        begun
    }

    /// Excludes endpoints without an answer if another one is confirmed; calls that name an
    /// endpoint, such as the chain query, still reach it.
    fn exclude_unconfirmed(
        &self,
        pool: &Pool,
        queried: &[EndpointId],
        before: &HashMap<EndpointId, bool>,
    ) -> Result<CheckOutcome> {
        let endpoints = pool.endpoints();
        let known = self.known();
        let is_wrong = |id: &EndpointId| known.get(id) == Some(&false);
        if let Some(one) = endpoints.first().filter(|_| endpoints.iter().all(|e| is_wrong(&e.id))) {
            return Err(UpstreamError::WrongChain { endpoint: one.label.clone() });
        }
        let some_are_right = self.reported.has_right();
        let mut nodes = CheckOutcome::Unchanged;
        for id in queried.iter().filter(|id| known.get(*id) != Some(&true)) {
            if some_are_right && !is_wrong(id) {
                pool.exclude(*id, UNKNOWN_COOLDOWN);
                // Its answer may have arrived since the decision.
                if self.reported.is_right(*id) == Some(true) {
                    pool.release(*id);
                }
            }
            // Endpoints that were known to be on another chain change nothing.
            if (some_are_right || is_wrong(id)) && before.get(id) != Some(&false) {
                nodes = CheckOutcome::EndpointsChanged;
            }
        }
        Ok(nodes)
    }
}

/// Queries an endpoint's chain; another chain is confirmed by a second query, and the endpoint
/// serves nothing else in between.
async fn query_twice(
    pool: Pool,
    id: EndpointId,
    method: &'static str,
    [first, second]: [BoxFuture<'static, ChainCheck>; 2],
) -> (EndpointId, ChainCheck) {
    let mut reported = first.await;
    if reported == ChainCheck::Mismatch {
        pool.disable(id, method);
        match second.await {
            ChainCheck::Match => reported = ChainCheck::Match,
            ChainCheck::Mismatch => pool.disable(id, method),
            ChainCheck::Silent | ChainCheck::Odd | ChainCheck::Unknown => {}
        }
    }
    (id, reported)
}

/// Runs `open`, the first part of a read, concurrently with the chain check; repeats it if its
/// answers may come from an endpoint that was excluded.
pub(crate) async fn checked<T, F: Future<Output = Result<T>>>(
    check: impl Future<Output = Result<CheckOutcome>>,
    open: impl Fn() -> F,
) -> Result<T> {
    let (check, opened) = (std::pin::pin!(check), std::pin::pin!(open()));
    let (nodes, opened) = match select(check, opened).await {
        Either::Left((nodes, opened)) => (nodes?, Either::Left(opened)),
        Either::Right((opened, check)) => (check.await?, Either::Right(opened)),
    };
    match (nodes, opened) {
        (CheckOutcome::EndpointsChanged, _) => open().await,
        (CheckOutcome::Unchanged, Either::Left(opened)) => opened.await,
        (CheckOutcome::Unchanged, Either::Right(opened)) => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};

    use serde_json::{Value, json};
    use tokio::time::{advance, sleep};

    use super::ChainCheck::{Match, Mismatch, Odd, Silent, Unknown};
    use super::*;
    use crate::rpc::scripted::{NO_METHOD, ScriptedNodes, options, rpc};

    const METHOD: &str = "chain";

    struct World {
        pool: Pool,
        checks: ChainChecks,
    }

    impl World {
        /// Nodes of which only the one named "old" lacks traces.
        fn new(hosts: &[&str]) -> Self {
            let nodes = ScriptedNodes::new(|(host, _, body)| {
                rpc(body, |_, _| if host == "old" { Err(NO_METHOD) } else { Ok(json!("0x1")) })
            });
            Self { pool: nodes.pool(hosts), checks: ChainChecks::default() }
        }

        /// A check in which the first endpoint gives these answers, one for each question, and all
        /// others give the right answer.
        async fn check(&self, answers: &[ChainCheck]) -> Result<CheckOutcome> {
            let answers = Arc::new(Mutex::new(VecDeque::from(answers.to_vec())));
            let first = self.pool.endpoints().first().map(|one| one.id);
            let ask = |id: EndpointId| {
                let (answers, is_first) = (Arc::clone(&answers), Some(id) == first);
                async move { if is_first { lock(&answers).pop_front().unwrap() } else { Match } }
                    .boxed()
            };
            let outcome = self.checks.check(&self.pool, METHOD, ask).await;
            assert_eq!(lock(&answers).pop_front(), None, "it was not asked so often");
            outcome
        }

        async fn traces(&self) -> Result<Value> {
            let answer = self.pool.call("traces", json!([]), &options()).await?;
            Ok(serde_json::from_str(answer.result.get()).unwrap())
        }
    }

    #[test]
    fn only_the_chain_itself_is_the_right_one() {
        let refused = UpstreamError::NotSupported { method: METHOD.to_owned() };
        let lost = UpstreamError::Unavailable { attempts: 1, last: "no answer".to_owned() };
        let answers = [Ok(Some(1)), Ok(Some(56)), Ok(None), Err(refused), Err(lost)];
        let shown = answers.map(|reported| ChainCheck::of(reported, &1));
        assert_eq!(shown, [Match, Mismatch, Silent, Silent, Unknown]);
        // A service that answers every call with the same error may serve any chain, or none.
        for (code, shows) in [(-32602, Silent), (0, Odd), (-32000, Odd)] {
            let (endpoint, message) = (String::new(), "Missed `to` address".to_owned());
            let error = UpstreamError::Rpc { endpoint, code, message };
            assert_eq!(ChainCheck::of(Err(error), &1), shows, "{code}");
        }
    }

    /// A check in which the first endpoint answers at once and the second one later.
    async fn slow_check(world: &World, first: ChainCheck, slow: ChainCheck) -> HashSet<usize> {
        let ask = |id: EndpointId| {
            async move {
                if id == EndpointId(0) {
                    return first;
                }
                sleep(NO_ANSWER_WAIT / 2).await;
                slow
            }
            .boxed()
        };
        world.checks.check(&world.pool, METHOD, ask).await.unwrap();
        let right = world.checks.known().into_iter().filter(|(_, is_right)| *is_right);
        right.map(|(id, _)| id.0).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_odd_error_counts_only_while_no_other_endpoint_is_right() {
        let world = World::new(&["odd", "slow"]);
        let began = Instant::now();
        assert_eq!(slow_check(&world, Odd, Match).await, HashSet::from([1]));
        assert_eq!(began.elapsed(), NO_ANSWER_WAIT / 2);
        assert_eq!(slow_check(&world, Odd, Match).await, HashSet::from([1]), "asked again");
        let world = World::new(&["odd", "lost"]);
        assert_eq!(slow_check(&world, Odd, Unknown).await, HashSet::from([0]));
        // The other endpoint may be the right one: an error of the first one does not exclude it.
        assert_eq!(world.pool.endpoints().iter().filter(|one| one.resting).count(), 0);
        assert_eq!(slow_check(&world, Odd, Match).await, HashSet::from([1]));
    }

    /// The providers refuse only the question for the chain, or no other endpoint is left.
    #[tokio::test(start_paused = true)]
    async fn no_endpoint_is_left_out_for_one_that_was_right_and_answers_no_more() {
        let world = World::new(&["unknown", "dies"]);
        let excluded = || world.pool.endpoints().iter().filter(|one| one.resting).count();
        assert_eq!(slow_check(&world, Unknown, Match).await, HashSet::from([1]));
        assert_eq!(excluded(), 1);
        for answer in [Unknown, Odd] {
            advance(RIGHT_CHAIN_KEPT).await;
            // A confirmed endpoint counts until it is queried again.
            slow_check(&world, Unknown, answer).await;
            let _ = timeout(UNKNOWN_COOLDOWN, world.checks.drive_queries()).await;
            assert_eq!(slow_check(&world, Unknown, answer).await, HashSet::from([1]));
            assert_eq!(excluded(), 0, "{answer:?}");
            let _ = timeout(UNKNOWN_COOLDOWN, world.checks.drive_queries()).await;
        }
        advance(ODD_CHAIN_KEPT).await;
        assert_eq!(slow_check(&world, Unknown, Match).await, HashSet::from([1]));
        assert_eq!(excluded(), 1, "it answers again");
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_others_lack_is_lacking_once_another_chain_is_confirmed() {
        let world = World::new(&["wrong", "old"]);
        world.check(&[Mismatch, Mismatch]).await.unwrap();
        let traces = world.traces().await;
        assert!(matches!(traces, Err(UpstreamError::NotSupported { .. })), "{traces:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_answer_of_another_chain_loses_nothing() {
        for second in [Silent, Unknown] {
            let world = World::new(&["wrong", "old"]);
            world.check(&[Mismatch, second]).await.unwrap();
            let traces = world.traces().await;
            assert!(matches!(traces, Err(UpstreamError::Unavailable { .. })), "{traces:?}");
        }
        let world = World::new(&["confused", "old"]);
        world.check(&[Mismatch, Match]).await.unwrap();
        assert_eq!(world.traces().await, Ok(json!("0x1")));
    }

    #[tokio::test(start_paused = true)]
    async fn what_reports_another_chain_alone_loses_nothing() {
        let world = World::new(&["wrong"]);
        let outcome = world.check(&[Mismatch, Mismatch]).await;
        assert!(matches!(outcome, Err(UpstreamError::WrongChain { .. })), "{outcome:?}");
        let traces = world.traces().await;
        assert!(matches!(traces, Err(UpstreamError::Unavailable { .. })), "{traces:?}");
        advance(WRONG_CHAIN_COOLDOWN_FIRST).await;
        assert_eq!(world.check(&[Match]).await, Ok(CheckOutcome::EndpointsChanged));
        assert_eq!(world.traces().await, Ok(json!("0x1")));
    }

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_was_right_is_asked_again() {
        let world = World::new(&["moved", "old"]);
        world.check(&[Match]).await.unwrap();
        advance(RIGHT_CHAIN_KEPT / 2).await;
        world.check(&[]).await.unwrap();
        advance(RIGHT_CHAIN_KEPT / 2).await;
        // Only the answer of another chain revokes the confirmation.
        for answers in [&[Unknown][..], &[Mismatch, Match], &[], &[Silent]] {
            world.check(answers).await.unwrap();
            assert_eq!(world.traces().await, Ok(json!("0x1")), "{answers:?}");
            if answers != [Unknown] {
                advance(RIGHT_CHAIN_KEPT / 2).await;
            }
        }
        advance(RIGHT_CHAIN_KEPT / 2).await;
        let outcome = world.check(&[Mismatch, Mismatch]).await;
        assert_eq!(outcome, Ok(CheckOutcome::EndpointsChanged));
        let traces = world.traces().await;
        assert!(matches!(traces, Err(UpstreamError::NotSupported { .. })), "{traces:?}");
    }

    /// A round may end between the two answers; a cooldown of the endpoint's own stays.
    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_was_right_serves_again_by_one_right_answer() {
        let world = World::new(&["moved", "old"]);
        world.check(&[Match]).await.unwrap();
        let first = world.pool.endpoints().first().unwrap().id;
        world.pool.disable(first, METHOD);
        assert!(world.traces().await.is_err());
        advance(RIGHT_CHAIN_KEPT).await;
        world.pool.cool_down(first, RIGHT_CHAIN_KEPT);
        world.check(&[Match]).await.unwrap();
        let traces = world.traces().await;
        assert!(matches!(traces, Err(UpstreamError::Unavailable { .. })), "{traces:?}");
        advance(RIGHT_CHAIN_KEPT).await;
        assert_eq!(world.traces().await, Ok(json!("0x1")));
    }

    #[tokio::test(start_paused = true)]
    async fn another_chain_is_taken_back_by_the_right_one_and_by_nothing_else() {
        let world = World::new(&["wrong", "good"]);
        assert_eq!(world.check(&[Mismatch, Mismatch]).await, Ok(CheckOutcome::EndpointsChanged));
        let is_right = || *world.checks.known().iter().min_by_key(|(id, _)| **id).unwrap().1;
        let mut cooldown = WRONG_CHAIN_COOLDOWN_FIRST;
        for answer in [Silent, Unknown] {
            advance(cooldown).await;
            cooldown *= 2;
            // An endpoint that was disabled changed nothing of what was read during the question.
            assert_eq!(world.check(&[answer]).await, Ok(CheckOutcome::Unchanged));
            assert!(!is_right() && world.check(&[]).await.is_ok());
        }
        advance(cooldown).await;
        assert_eq!(world.check(&[Match]).await, Ok(CheckOutcome::EndpointsChanged));
        assert!(is_right());
    }
}
