//! Which endpoints are nodes of the right chain: each is asked once, and one that says it is of
//! another chain is left alone. A reading waits until one is known to be right, not for all; those
//! that have not answered by then rest until they do.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, Shared, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::endpoint::EndpointId;
use super::error::UpstreamError;
use super::pool::Pool;

/// A node of another chain is left alone this long.
const WRONG_CHAIN_REST: Duration = Duration::from_secs(3600);
/// Readings go on after this long where no node tells its chain.
const NOBODY_WAIT: Duration = Duration::from_secs(5);
/// One that has not answered yet is left alone this long at most.
const UNKNOWN_REST: Duration = Duration::from_secs(20);

/// What an endpoint says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainCheck {
    /// It does not say, or says what it should.
    Match,
    Mismatch,
    /// Not reached now: asked again at the next reading.
    Unknown,
}

/// What a look at the nodes' chain came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckOutcome {
    Unchanged,
    EndpointsDisabled,
}

type Round = Shared<BoxFuture<'static, ()>>;

/// What is known of the endpoints of one pool.
#[derive(Debug, Default)]
pub(crate) struct ChainChecks {
    told: Arc<Answers>,
    /// The questions under way: whoever waits for them works on them, and [`ChainChecks::go_on`].
    round: Mutex<Option<Round>>,
}

#[derive(Debug, Default)]
struct Answers {
    known: Mutex<HashMap<EndpointId, bool>>,
    news: Notify,
}

impl Answers {
    fn note(&self, pool: &Pool, id: EndpointId, told: ChainCheck) {
        match told {
            ChainCheck::Match => {
                pool.release(id);
                lock(&self.known).insert(id, true);
            }
            ChainCheck::Mismatch => {
                tracing::error!(endpoint = %pool.label(id), "a node of another chain is left alone");
                pool.bench(id, WRONG_CHAIN_REST);
                lock(&self.known).insert(id, false);
            }
            ChainCheck::Unknown => {}
        }
        self.news.notify_waiters();
    }
}

/// Leaves no question open.
struct Ending<'a>(&'a ChainChecks);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        lock(&self.0.round).take();
    }
}

impl ChainChecks {
    /// Those that told, and whether they are right.
    pub(crate) fn known(&self) -> HashMap<EndpointId, bool> {
        lock(&self.told.known).clone()
    }

    /// Waits until some endpoint is known to be right, all were asked, or nobody answers for long.
    pub(crate) async fn check(
        &self,
        pool: &Pool,
        ask: impl Fn(EndpointId) -> BoxFuture<'static, ChainCheck>,
    ) -> Result<CheckOutcome, UpstreamError> {
        let unknown = self.unknown(pool);
        if !unknown.is_empty() {
            let round = self.begin(pool, &unknown, ask);
            let enough = self.enough(round);
            // One that tells nothing of its chain may serve all the same.
            let _ = timeout(NOBODY_WAIT, enough).await;
        }
        self.judge(pool, &unknown)
    }

    async fn enough(&self, round: Round) {
        loop {
            let news = self.told.news.notified();
            // What has come since the last reading is taken in any case.
            let is_over = round.clone().now_or_never().is_some();
            if is_over || lock(&self.told.known).values().any(|right| *right) {
                return;
            }
            tokio::select! {
                biased;
                () = round.clone() => return,
                () = news => {}
            }
        }
    }

    /// Works on the questions that are under way; never ready. Dropping it drops them, with the
    /// places at endpoints that they hold.
    pub(crate) async fn go_on(&self) -> Infallible {
        let _end = Ending(self);
        loop {
            let news = self.told.news.notified();
            let round = lock(&self.round).clone();
            if let Some(round) = round {
                round.await;
                lock(&self.round).take_if(|round| round.peek().is_some());
            }
            news.await;
        }
    }

    /// Those that never told, and those that were wrong and have rested since.
    fn unknown(&self, pool: &Pool) -> Vec<EndpointId> {
        let known = self.known();
        let is_open = |id: &EndpointId, resting: bool| match known.get(id) {
            None => true,
            Some(right) => !right && !resting,
        };
        let all = pool.endpoints().into_iter();
        all.filter(|one| is_open(&one.id, one.resting)).map(|one| one.id).collect()
    }

    /// Joins the questions under way, or asks.
    fn begin(
        &self,
        pool: &Pool,
        unknown: &[EndpointId],
        ask: impl Fn(EndpointId) -> BoxFuture<'static, ChainCheck>,
    ) -> Round {
        let mut round = lock(&self.round);
        if let Some(round) = round.as_ref().filter(|round| round.peek().is_none()) {
            return round.clone();
        }
        let tell = |id: EndpointId| ask(id).map(move |told| (id, told));
        let mut asked: FuturesUnordered<_> = unknown.iter().map(|id| tell(*id)).collect();
        let (pool, answers) = (pool.clone(), Arc::clone(&self.told));
        let all = async move {
            while let Some((id, told)) = asked.next().await {
                answers.note(&pool, id, told);
            }
        };
        let begun = round.insert(all.boxed().shared()).clone();
        self.told.news.notify_waiters();
        begun
    }

    /// Leaves out those that have not told, where another one has; the question itself still reaches
    /// them.
    fn judge(&self, pool: &Pool, asked: &[EndpointId]) -> Result<CheckOutcome, UpstreamError> {
        let endpoints = pool.endpoints();
        let known = self.known();
        let is_wrong = |id: &EndpointId| known.get(id) == Some(&false);
        if let Some(one) = endpoints.first().filter(|_| endpoints.iter().all(|e| is_wrong(&e.id))) {
            return Err(UpstreamError::WrongChain { endpoint: one.label.clone() });
        }
        let some_are_right = known.values().any(|right| *right);
        let mut nodes = CheckOutcome::Unchanged;
        for id in asked.iter().filter(|id| known.get(*id) != Some(&true)) {
            if some_are_right && !is_wrong(id) {
                pool.exclude(*id, UNKNOWN_REST);
            }
            if some_are_right || is_wrong(id) {
                nodes = CheckOutcome::EndpointsDisabled;
            }
        }
        Ok(nodes)
    }
}

/// What a reading begins with, while the nodes are checked; once more where the first answers may
/// be those of one that is left out.
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
        (CheckOutcome::EndpointsDisabled, _) => open().await,
        (CheckOutcome::Unchanged, Either::Left(opened)) => opened.await,
        (CheckOutcome::Unchanged, Either::Right(opened)) => opened,
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
