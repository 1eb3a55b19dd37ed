//! Chain-identity check: each endpoint is queried once for its chain, and one that reports another
//! chain is disabled. A read waits until one endpoint is confirmed, not for all; endpoints that
//! have not answered by then are on cooldown until they do.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, Shared, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::endpoint::EndpointId;
use super::error::UpstreamError;
use super::pool::Pool;
use crate::domain::lock;

/// An endpoint that reports another chain is asked again after this long at first, and after twice as
/// long each time that it does so again: one answer may have been that of a confused proxy.
const WRONG_CHAIN_COOLDOWN_FIRST: Duration = Duration::from_secs(60);
const WRONG_CHAIN_COOLDOWN_MAX: Duration = Duration::from_secs(3600);
/// Reads continue after this long if no endpoint reports its chain.
const NO_ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Longest cooldown of an endpoint that has not answered yet.
const UNKNOWN_COOLDOWN: Duration = Duration::from_secs(20);

/// What an endpoint reports about its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainCheck {
    /// It reports the expected chain, or nothing.
    Match,
    Mismatch,
    /// Not reached now: queried again at the next read.
    Unknown,
}

/// The outcome of a check of all endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckOutcome {
    Unchanged,
    EndpointsChanged,
}

type Round = Shared<BoxFuture<'static, ()>>;

/// The check results of one pool's endpoints.
#[derive(Debug, Default)]
pub(crate) struct ChainChecks {
    reported: Arc<Answers>,
    /// The open queries: every task that waits for them drives them, and [`ChainChecks::go_on`].
    round: Mutex<Option<Round>>,
}

#[derive(Debug, Default)]
struct Answers {
    known: Mutex<HashMap<EndpointId, bool>>,
    /// The last cooldown of those that reported another chain, and its end.
    cooldowns: Mutex<HashMap<EndpointId, (Duration, Instant)>>,
    news: Notify,
}

impl Answers {
    fn next_cooldown(&self, id: EndpointId) -> Duration {
        let mut cooldowns = lock(&self.cooldowns);
        let last = cooldowns.get(&id).map(|(last, _)| *last);
        let next = last.map_or(WRONG_CHAIN_COOLDOWN_FIRST, |last| last.saturating_mul(2));
        let next = next.min(WRONG_CHAIN_COOLDOWN_MAX);
        cooldowns.insert(id, (next, Instant::now() + next));
        next
    }

    fn is_cooling_down(&self, id: EndpointId) -> bool {
        lock(&self.cooldowns).get(&id).is_some_and(|(_, until)| Instant::now() < *until)
    }

    fn note(&self, pool: &Pool, id: EndpointId, (method, reported): (&'static str, ChainCheck)) {
        match reported {
            ChainCheck::Match => {
                pool.release(id);
                lock(&self.cooldowns).remove(&id);
                lock(&self.known).insert(id, true);
            }
            ChainCheck::Mismatch => {
                tracing::error!(endpoint = %pool.label(id), "the endpoint reports another chain and is disabled until it reports this one");
                pool.cool_down(id, self.next_cooldown(id));
                pool.disable(id, method);
                lock(&self.known).insert(id, false);
            }
            ChainCheck::Unknown => {}
        }
        self.news.notify_waiters();
    }
}

/// Ends all open queries when dropped.
struct Ending<'a>(&'a ChainChecks);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        lock(&self.0.round).take();
    }
}

impl ChainChecks {
    /// Endpoints that answered, and whether their chain matches.
    pub(crate) fn known(&self) -> HashMap<EndpointId, bool> {
        lock(&self.reported.known).clone()
    }

    /// Waits until some endpoint matches, all were queried, or the wait without an answer is over. `method`
    /// is what `ask` calls.
    pub(crate) async fn check(
        &self,
        pool: &Pool,
        method: &'static str,
        ask: impl Fn(EndpointId) -> BoxFuture<'static, ChainCheck>,
    ) -> Result<CheckOutcome, UpstreamError> {
        let (unknown, before) = (self.unknown(pool), self.known());
        if !unknown.is_empty() {
            let round = self.begin(pool, &unknown, (method, ask));
            let enough = self.enough(round);
            // An endpoint that does not report its chain may serve all the same.
            let _ = timeout(NO_ANSWER_WAIT, enough).await;
        }
        let outcome = self.judge(pool, &unknown)?;
        let after = self.known();
        let is_back =
            |id: &EndpointId| before.get(id) == Some(&false) && after.get(id) == Some(&true);
        // What was asked next to the question was refused.
        let is_back = unknown.iter().any(is_back);
        Ok(if is_back { CheckOutcome::EndpointsChanged } else { outcome })
    }

    async fn enough(&self, round: Round) {
        loop {
            let news = self.reported.news.notified();
            // Takes all answers since the last read in any case.
            let is_over = round.clone().now_or_never().is_some();
            if is_over || lock(&self.reported.known).values().any(|right| *right) {
                return;
            }
            tokio::select! {
                biased;
                () = round.clone() => return,
                () = news => {}
            }
        }
    }

    /// Drives the open queries; never ready. Dropping it drops them, with their permits.
    pub(crate) async fn go_on(&self) -> Infallible {
        let _end = Ending(self);
        loop {
            let news = self.reported.news.notified();
            let round = lock(&self.round).clone();
            if let Some(round) = round {
                round.await;
                lock(&self.round).take_if(|round| round.peek().is_some());
            }
            news.await;
        }
    }

    /// Endpoints without an answer, and those of another chain whose cooldown is over.
    fn unknown(&self, pool: &Pool) -> Vec<EndpointId> {
        let known = self.known();
        let is_open = |id: &EndpointId| match known.get(id) {
            None => true,
            Some(right) => !right && !self.reported.is_cooling_down(*id),
        };
        pool.endpoints().into_iter().map(|one| one.id).filter(is_open).collect()
    }

    /// Joins the open queries, or starts them.
    fn begin(
        &self,
        pool: &Pool,
        unknown: &[EndpointId],
        (method, ask): (&'static str, impl Fn(EndpointId) -> BoxFuture<'static, ChainCheck>),
    ) -> Round {
        let mut round = lock(&self.round);
        if let Some(round) = round.as_ref().filter(|round| round.peek().is_none()) {
            return round.clone();
        }
        let tell = |id: EndpointId| ask(id).map(move |reported| (id, reported));
        let mut queried: FuturesUnordered<_> = unknown.iter().map(|id| tell(*id)).collect();
        let (pool, answers) = (pool.clone(), Arc::clone(&self.reported));
        let all = async move {
            while let Some((id, reported)) = queried.next().await {
                answers.note(&pool, id, (method, reported));
            }
        };
        let begun = round.insert(all.boxed().shared()).clone();
        self.reported.news.notify_waiters();
        begun
    }

    /// Excludes endpoints without an answer, if another one matches; the query itself still reaches
    /// them.
    fn judge(&self, pool: &Pool, queried: &[EndpointId]) -> Result<CheckOutcome, UpstreamError> {
        let endpoints = pool.endpoints();
        let known = self.known();
        let is_wrong = |id: &EndpointId| known.get(id) == Some(&false);
        if let Some(one) = endpoints.first().filter(|_| endpoints.iter().all(|e| is_wrong(&e.id))) {
            return Err(UpstreamError::WrongChain { endpoint: one.label.clone() });
        }
        let some_are_right = known.values().any(|right| *right);
        let mut nodes = CheckOutcome::Unchanged;
        for id in queried.iter().filter(|id| known.get(*id) != Some(&true)) {
            if some_are_right && !is_wrong(id) {
                pool.exclude(*id, UNKNOWN_COOLDOWN);
            }
            if some_are_right || is_wrong(id) {
                nodes = CheckOutcome::EndpointsChanged;
            }
        }
        Ok(nodes)
    }
}

/// Runs the first part of a read while the endpoints are checked; repeats it where its answers may
/// be those of an excluded one.
pub(crate) async fn checked<T, F: Future<Output = Result<T, UpstreamError>>>(
    check: impl Future<Output = Result<CheckOutcome, UpstreamError>>,
    open: impl Fn() -> F,
) -> Result<T, UpstreamError> {
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
