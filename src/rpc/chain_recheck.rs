//! The chain-identity check after a read: another server may have answered at an endpoint's address
//! since the last one, and the lists of another chain look like those of a wallet without trades.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, join_all};
use tokio::time::{Instant, timeout};

use super::chain_check::{ChainCheck, ChainChecks, Recheck};
use super::endpoint::EndpointId;
use super::error::{Result, UpstreamError};
use super::pool::Pool;
use crate::domain::lock;

/// An endpoint that takes longer is accepted: rows wait for the answer, and most of what was read
/// came from faster ones.
const RECHECK_WAIT: Duration = Duration::from_secs(1);
/// An endpoint that answers other calls and not this one is not asked again for this long, as each
/// window would wait.
const SILENT_PAUSE: Duration = Duration::from_secs(30);

impl ChainChecks {
    /// Checks endpoints again that have answered calls since their last check, unless that began
    /// after `since`. An error if one reports another chain, or was found to do so after `begun`: a
    /// read between these times may contain data of that chain. Endpoints that do not answer in
    /// time, and those that never reported a chain, are accepted.
    pub(crate) async fn confirm(
        &self,
        pool: &Pool,
        (method, begun, since): (&'static str, Instant, Instant),
        ask: impl Fn(EndpointId) -> BoxFuture<'static, ChainCheck>,
    ) -> Result<()> {
        let is_used = |id: &EndpointId| self.reported.is_right(*id) != Some(false);
        let is_open = |id: &EndpointId| {
            let named = lock(&self.reported.named).get(id).copied();
            let answered = pool.answered_at(*id);
            named.is_some_and(|(began, ended)| began < since && answered > Some(ended))
        };
        let open: Vec<EndpointId> =
            pool.ids().into_iter().filter(is_used).filter(is_open).collect();
        let began = Instant::now();
        let asked = open.iter().map(|id| {
            let recheck = self.recheck(pool, *id, since, (method, &ask));
            async move { (*id, timeout(RECHECK_WAIT, recheck).await) }
        });
        let answers = join_all(asked).await;
        for (id, answer) in &answers {
            if !matches!(answer, Ok(ChainCheck::Match | ChainCheck::Mismatch)) {
                // One that rests may be another server by its next answer.
                let is_there = pool.answered_at(*id) > Some(began);
                let later = Instant::now() + if is_there { SILENT_PAUSE } else { Duration::ZERO };
                lock(&self.reported.named).insert(*id, (later, later));
            }
        }
        let mut answers = answers.into_iter();
        let denied = answers.find(|(_, answer)| *answer == Ok(ChainCheck::Mismatch));
        match denied.map(|(id, _)| id).or_else(|| self.reported.left_since(begun)) {
            Some(id) => {
                let last = format!("{} has named another chain meanwhile", pool.label(id));
                Err(UpstreamError::unavailable(last))
            }
            None => Ok(()),
        }
    }

    /// Queries an endpoint's chain; shared by all reads that ended before the query began. Another
    /// chain in two answers disables the endpoint, and in one of them discards what was read.
    fn recheck(
        &self,
        pool: &Pool,
        id: EndpointId,
        since: Instant,
        (method, ask): (&'static str, impl Fn(EndpointId) -> BoxFuture<'static, ChainCheck>),
    ) -> Shared<Recheck> {
        let mut pending = lock(&self.rechecks);
        let last = pending.get(&id).filter(|(began, _)| *began >= since);
        if let Some(asked) = last.and_then(|(_, asked)| asked.upgrade()) {
            return asked;
        }
        let (began, first, second) = (Instant::now(), ask(id), ask(id));
        let (pool, answers) = (pool.clone(), Arc::clone(&self.reported));
        let asked = async move {
            let reported = first.await;
            let is_known = match reported {
                ChainCheck::Match => true,
                ChainCheck::Mismatch => second.await == ChainCheck::Mismatch,
                ChainCheck::Silent | ChainCheck::Odd | ChainCheck::Unknown => false,
            };
            if is_known && reported == ChainCheck::Mismatch {
                pool.disable(id, method);
                pool.disable(id, method);
            }
            if is_known {
                answers.record(&pool, id, reported, began);
            }
            reported
        };
        let asked = asked.boxed().shared();
        if let Some(weak) = asked.downgrade() {
            pending.insert(id, (began, weak));
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::{advance, sleep};

    use super::ChainCheck::{Match, Mismatch, Unknown};
    use super::*;
    use crate::rpc::scripted::{ScriptedNodes, options, rpc};

    const METHOD: &str = "chain";

    /// The endpoint names this chain, answers a call, and is asked again for what was read since
    /// `before` seconds ago; returns whether that is refused, and the number of questions.
    async fn confirmed(answers: &'static [ChainCheck], used: bool, before: u64) -> (bool, usize) {
        let pool = ScriptedNodes::new(|(_, _, body)| rpc(body, |_, _| Ok(json!(1)))).pool(&["one"]);
        let (checks, asked) = (ChainChecks::default(), Arc::new(std::sync::Mutex::new(0)));
        let named = |_: EndpointId| async { Match }.boxed();
        checks.check(&pool, METHOD, named).await.unwrap();
        advance(Duration::from_secs(5)).await;
        if used {
            pool.call("logs", json!([]), &options()).await.unwrap();
        }
        let since = Instant::now() - Duration::from_secs(before);
        let ask = |_: EndpointId| {
            let asked = Arc::clone(&asked);
            async move {
                sleep(Duration::from_millis(1)).await;
                let mut asked = lock(&asked);
                *asked += 1;
                answers[*asked - 1]
            }
            .boxed()
        };
        let twice = || checks.confirm(&pool, (METHOD, since, since), ask);
        let (one, two) = futures_util::future::join(twice(), twice()).await;
        assert_eq!(one.is_err(), two.is_err(), "the answer is shared");
        let count = *lock(&asked);
        (one.is_err(), count)
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_counts_only_once_its_endpoint_names_the_chain_again() {
        assert_eq!(confirmed(&[Match], true, 0).await, (false, 1));
        assert_eq!(confirmed(&[Mismatch, Mismatch], true, 0).await, (true, 2));
        assert_eq!(confirmed(&[Mismatch, Match], true, 0).await, (true, 2), "once is enough");
        assert_eq!(confirmed(&[Unknown], true, 0).await, (false, 1), "it does not say");
        assert_eq!(confirmed(&[], false, 0).await, (false, 0), "it has answered nothing since");
        assert_eq!(confirmed(&[], true, 5).await, (false, 0), "it was read before");
    }

    /// Another reader finds it out first: this one may hold answers from before, and gets none.
    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_left_the_chain_spoils_what_was_begun_before_and_nothing_else() {
        let pool = ScriptedNodes::new(|(_, _, body)| rpc(body, |_, _| Ok(json!(1)))).pool(&["one"]);
        let checks = ChainChecks::default();
        let always = |answer: ChainCheck| move |_: EndpointId| async move { answer }.boxed();
        checks.check(&pool, METHOD, always(Match)).await.unwrap();
        let begun = Instant::now();
        advance(Duration::from_secs(5)).await;
        pool.call("logs", json!([]), &options()).await.unwrap();
        let found = (METHOD, begun, Instant::now());
        assert!(checks.confirm(&pool, found, always(Mismatch)).await.is_err());
        advance(Duration::from_secs(1)).await;
        let now = Instant::now();
        assert!(checks.confirm(&pool, (METHOD, begun, now), always(Unknown)).await.is_err());
        // It is disabled: what it says is of no account.
        assert!(checks.confirm(&pool, (METHOD, now, now), always(Mismatch)).await.is_ok());
    }

    /// One that answers nothing at all may be another server once it does.
    #[tokio::test(start_paused = true)]
    async fn an_endpoint_without_any_answer_is_asked_again_once_it_answers() {
        let pool = ScriptedNodes::new(|(_, _, body)| rpc(body, |_, _| Ok(json!(1)))).pool(&["one"]);
        let checks = ChainChecks::default();
        let always = |answer: ChainCheck| move |_: EndpointId| async move { answer }.boxed();
        checks.check(&pool, METHOD, always(Match)).await.unwrap();
        for (answers, is_found) in [(false, true), (true, false)] {
            advance(SILENT_PAUSE).await;
            pool.call("logs", json!([]), &options()).await.unwrap();
            let begun = Instant::now();
            let busy = pool.clone();
            let silent = |_: EndpointId| {
                let busy = busy.clone();
                async move {
                    sleep(Duration::from_millis(1)).await;
                    if answers {
                        busy.call("logs", json!([]), &options()).await.unwrap();
                    }
                    Unknown
                }
                .boxed()
            };
            assert!(checks.confirm(&pool, (METHOD, begun, begun), silent).await.is_ok());
            advance(Duration::from_secs(5)).await;
            pool.call("logs", json!([]), &options()).await.unwrap();
            let found = (METHOD, Instant::now(), Instant::now());
            let once = |_: EndpointId| async { ChainCheck::Odd }.boxed();
            let named = Arc::new(std::sync::Mutex::new(0));
            let ask = |id: EndpointId| {
                *lock(&named) += 1;
                once(id)
            };
            assert!(checks.confirm(&pool, found, ask).await.is_ok());
            assert_eq!(*lock(&named) > 0, is_found, "answers other calls: {answers}");
        }
    }

    /// The rows of a read wait for it.
    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_is_not_waited_for() {
        let pool = ScriptedNodes::new(|(_, _, body)| rpc(body, |_, _| Ok(json!(1)))).pool(&["one"]);
        let checks = ChainChecks::default();
        let named = |_: EndpointId| async { Match }.boxed();
        checks.check(&pool, METHOD, named).await.unwrap();
        advance(Duration::from_secs(5)).await;
        pool.call("logs", json!([]), &options()).await.unwrap();
        let slow = |_: EndpointId| {
            async {
                sleep(RECHECK_WAIT * 4).await;
                Mismatch
            }
            .boxed()
        };
        let began = Instant::now();
        assert!(checks.confirm(&pool, (METHOD, began, began), slow).await.is_ok());
        assert_eq!(began.elapsed(), RECHECK_WAIT);
    }
}
