//! How far down each endpoint keeps events. A node that has pruned its events, or began to index
//! them late, returns none below and no error: so an endpoint counts for a height only if it has
//! shown events at least as deep.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::TronSource;
use super::depth_search::Witness;
use crate::domain::{Doubts, Height, lock};
use crate::rpc::{CallOptions, EndpointId, Result, UpstreamError};
use crate::sources::ability::{Ability, AbilityKind, Offered};

/// Answers to a search that must agree, and the same for an endpoint whose answers differed before.
const VOTES: usize = 2;
pub(super) const VOTES_OF_UNSTEADY: usize = 4;
/// How long an endpoint counts as keeping events, or as having none: nodes prune blocks as new ones
/// come, and another server may answer at the same address.
const DEPTH_AGE_MAX: Duration = Duration::from_secs(30);
/// How long an endpoint that gave no answer is avoided.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy)]
enum Depth {
    /// From this height up, perhaps further down; `None`: none were seen.
    From(Option<Height>),
    /// The endpoint does not support event queries.
    NotOffered,
}

#[derive(Debug, Clone, Copy)]
struct DepthSearch {
    depth: Depth,
    low: Height,
    at: Instant,
    /// The oldest events seen.
    witness: Option<Witness>,
}

impl DepthSearch {
    /// Whether events were seen to be kept down to a height.
    fn shows(&self, low: Height) -> bool {
        matches!(self.depth, Depth::From(Some(from)) if from <= low)
    }

    /// Whether the result decides about a height: events were seen at or below it, or were recently
    /// seen to be missing there.
    fn answers(&self, low: Height, age_max: Duration) -> bool {
        let (is_known, age_max) = match self.depth {
            Depth::From(Some(from)) if from <= low => (true, DEPTH_AGE_MAX),
            // Part of the range is missing: the read will end there.
            Depth::From(Some(from)) => (from > self.low, age_max),
            Depth::From(None) => (low >= self.low, age_max.min(DEPTH_AGE_MAX)),
            Depth::NotOffered => (true, age_max),
        };
        is_known && self.at.elapsed() < age_max
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct EndpointDepth {
    searched: Option<DepthSearch>,
    /// A later search of higher blocks only, which found events there.
    above: Option<DepthSearch>,
    /// The height of the chain's first events, if the endpoint has shown them.
    begins: Option<Height>,
    /// The last search that the endpoint did not answer.
    failed_at: Option<Instant>,
    /// Two answers to one search differed: one of them lacked events.
    is_unsteady: bool,
}

impl EndpointDepth {
    fn is_failing(self) -> bool {
        self.failed_at.is_some_and(|at| at.elapsed() < FAILURE_PAUSE)
    }

    fn shows(self, low: Height) -> bool {
        [self.above, self.searched].into_iter().flatten().any(|searched| searched.shows(low))
    }

    /// Whether events of a height were seen to be missing by the last search; false if a search has
    /// failed since.
    fn lacks(self, low: Height) -> bool {
        self.searched.is_some_and(|searched| {
            let is_missing = match searched.depth {
                // A result at the lowest searched height does not decide about heights below.
                Depth::From(Some(from)) => from > low && from > searched.low,
                Depth::From(None) => low >= searched.low,
                Depth::NotOffered => true,
            };
            is_missing && self.failed_at.is_none_or(|at| at < searched.at)
        })
    }

    fn depth(self) -> Option<Depth> {
        self.searched.map(|searched| searched.depth)
    }

    /// The search that still decides about a height.
    fn answer(self, low: Height, age_max: Duration) -> Option<Depth> {
        let known = [self.above, self.searched].into_iter().flatten();
        let mut answers = known.filter(|searched| searched.answers(low, age_max));
        answers.next().map(|searched| searched.depth)
    }

    /// Adds a result. A search that shows events at its lowest height keeps an earlier result about
    /// deeper heights, by which another read continues.
    fn take(&mut self, searched: DepthSearch) {
        let shown = |one: DepthSearch| match one.depth {
            Depth::From(from) => from,
            Depth::NotOffered => None,
        };
        let is_deeper = |from: Height| from < searched.low;
        let deeper = self.searched.and_then(shown).is_some_and(is_deeper);
        if deeper && shown(searched).is_some_and(|from| from <= searched.low) {
            self.above = Some(searched);
        } else {
            (self.searched, self.above) = (Some(searched), None);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Depths {
    by: HashMap<EndpointId, EndpointDepth>,
}

impl Depths {
    fn known(&self, id: EndpointId) -> EndpointDepth {
        self.by.get(&id).copied().unwrap_or_default()
    }

    /// Endpoints without those that recently gave no answer, if one of the remaining suffices.
    fn without_failing(
        &self,
        ids: Vec<EndpointId>,
        is_enough: impl Fn(EndpointDepth) -> bool,
    ) -> Vec<EndpointId> {
        let working = ids.iter().copied().filter(|id| !self.known(*id).is_failing());
        let working: Vec<EndpointId> = working.collect();
        if working.iter().any(|id| is_enough(self.known(*id))) { working } else { ids }
    }
}

/// The lowest height of a read by events, and its doubts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventDepth {
    pub(super) from: Height,
    pub(super) doubts: Doubts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventEndpoints {
    pub(super) ids: Vec<EndpointId>,
    /// A single endpoint keeps them, all others were seen not to: its own second answer confirms
    /// the first.
    pub(super) is_alone: bool,
    /// Answers that must agree.
    pub(super) votes: usize,
}

impl TronSource {
    /// The height down to which events from `low` to `high` can be read; `None` if no block is
    /// kept.
    pub(super) async fn events_kept(
        &self,
        low: Height,
        high: Height,
        options: &CallOptions,
    ) -> Result<Option<EventDepth>> {
        let wanted = low;
        let Some(low) = self.first_kept(low, high, options).await? else { return Ok(None) };
        // At the lowest kept block there can be no events below to show the depth.
        let floor = if low > wanted { low } else { 0 };
        let all = self.inner.pool.ids();
        let shows = |known: EndpointDepth| known.shows(low);
        let first = lock(&self.inner.depths).without_failing(all.clone(), shows);
        let learn = |id: &EndpointId| self.learn_depth(*id, (low, high), floor, options);
        let mut depths = join_all(first.iter().map(learn)).await;
        let is_kept =
            |depth: &Result<Depth>| matches!(depth, Ok(Depth::From(Some(from))) if *from <= low);
        if !depths.iter().any(is_kept) {
            // An endpoint that failed may keep more than those that answered.
            let left = all.iter().filter(|id| !first.contains(id));
            depths.extend(join_all(left.map(learn)).await);
        }
        let froms = depths.iter().filter_map(|depth| match depth {
            Ok(Depth::From(from)) => Some(*from),
            Ok(Depth::NotOffered) | Err(_) => None,
        });
        let froms: Vec<Option<Height>> = froms.collect();
        if let Some(from) = froms.iter().flatten().min() {
            return Ok(Some(EventDepth { from: low.max(*from), doubts: Doubts::NONE }));
        }
        match depths.into_iter().find_map(Result::err) {
            Some(error) => Err(error),
            // The chain is quiet, or its pools are unknown: no event shows the depth.
            None if !froms.is_empty() => Ok(Some(EventDepth { from: low, doubts: Doubts::DEPTH })),
            None => Err(UpstreamError::NotSupported { method: "eth_getLogs".to_owned() }),
        }
    }

    /// The endpoints to query for events from a height on.
    pub(super) fn event_endpoints(&self, low: Height) -> EventEndpoints {
        let depths = lock(&self.inner.depths);
        let known = |id: &EndpointId| depths.known(*id);
        let all = self.inner.pool.ids();
        let with = |is_deep: &dyn Fn(Option<Height>) -> bool| -> Vec<EndpointId> {
            let fits = |id: &&EndpointId| match known(id).depth() {
                Some(Depth::From(from)) => is_deep(from),
                Some(Depth::NotOffered) | None => false,
            };
            all.iter().filter(fits).copied().collect()
        };
        let mut ids = with(&|from| from.is_some_and(|from| from <= low));
        if ids.is_empty() && with(&|from| from.is_some()).is_empty() {
            // No endpoint has shown events, so all count equally.
            ids = with(&|from| from.is_none());
        }
        let mut others = all.iter().filter(|id| !ids.contains(id));
        let is_alone = ids.len() == 1 && others.all(|id| known(id).lacks(low));
        let ids = depths.without_failing(ids, |_| true);
        let is_unsteady = ids.iter().any(|id| known(id).is_unsteady);
        EventEndpoints { ids, is_alone, votes: if is_unsteady { VOTES_OF_UNSTEADY } else { VOTES } }
    }

    /// Known events whose repetition shows that the endpoint still keeps events, for a request
    /// about blocks down to a height.
    pub(super) fn sentinel(&self, id: EndpointId, low: Height) -> Option<Witness> {
        let known = lock(&self.inner.depths).known(id);
        let searches = [known.above, known.searched].into_iter().flatten();
        let mut deep = searches.filter(|searched| searched.shows(low));
        deep.next()?.witness
    }

    /// What was found of an endpoint's events, for the status.
    pub(super) fn events_of(&self, id: EndpointId) -> Ability {
        let known = lock(&self.inner.depths).known(id).depth();
        let new = |offered| Ability::new(AbilityKind::Events, offered);
        match known {
            None => new(Offered::Unknown),
            Some(Depth::NotOffered) => new(Offered::No),
            Some(Depth::From(from)) => {
                let lacks = from.and_then(|from| from.checked_sub(1));
                Ability { from, lacks, ..new(Offered::Yes) }
            }
        }
    }

    pub(super) fn record_unsteady(&self, id: EndpointId) {
        lock(&self.inner.depths).by.entry(id).or_default().is_unsteady = true;
    }

    pub(super) fn record_search_failure(&self, id: EndpointId) {
        lock(&self.inner.depths).by.entry(id).or_default().failed_at = Some(Instant::now());
    }

    /// `Err`: nothing was learned.
    async fn learn_depth(
        &self,
        id: EndpointId,
        (low, high): (Height, Height),
        floor: Height,
        options: &CallOptions,
    ) -> Result<Depth> {
        let known = lock(&self.inner.depths).known(id);
        if let Some(depth) = known.answer(low, self.inner.limits.depth_age_max) {
            return Ok(depth);
        }
        // Other endpoints show their depth.
        let options = CallOptions { on: Some(id), is_replaceable: true, ..options.clone() };
        let (depth, found) =
            match self.search_depth((low, high), (floor, known.begins), &options).await {
                Ok(found) => (Depth::From(found.from), Some(found)),
                Err(UpstreamError::NotSupported { .. }) => (Depth::NotOffered, None),
                Err(error) => {
                    self.record_search_failure(id);
                    return Err(error);
                }
            };
        let witness = found.and_then(|found| found.witness);
        let searched = DepthSearch { depth, low, at: Instant::now(), witness };
        let mut depths = lock(&self.inner.depths);
        let known = depths.by.entry(id).or_default();
        known.take(searched);
        known.begins = found.and_then(|found| found.begins);
        Ok(depth)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use serde_json::json;

    use super::super::TronLimits;
    use super::super::fake::{self, ScriptedNodes, options};
    use super::*;

    /// In place of a height: the node answers no search.
    const FAILS: Height = Height::MAX;

    /// A source of nodes that have events of the reference pools in every block from a height on,
    /// which differs by node.
    fn source<const COUNT: usize>(all: [(&'static str, &Arc<AtomicU64>); COUNT]) -> TronSource {
        let kept = all.map(|(host, kept_from)| (host, Arc::clone(kept_from)));
        let nodes = ScriptedNodes::new(move |(host, path, body)| {
            let (_, kept_from) = kept.iter().find(|(of, _)| *of == host).unwrap();
            let kept_from = kept_from.load(Ordering::Relaxed);
            match path {
                "wallet/getblock" => fake::header(body),
                "jsonrpc" if kept_from == FAILS => (500, json!("down")),
                "jsonrpc" => fake::rpc(body, |_, filter| {
                    let high = fake::quantity(&filter["toBlock"]);
                    let is_kept = high >= kept_from;
                    if is_kept { json!([{"blockNumber": format!("{high:#x}")}]) } else { json!([]) }
                }),
                _ => (200, json!([])),
            }
        });
        let limits = TronLimits { events_from: 0, ..TronLimits::default() };
        fake::source(&all.map(|(host, _)| host), &nodes, limits)
    }

    async fn from(source: &TronSource, low: Height) -> Height {
        source.events_kept(low, 100_000, &options()).await.unwrap().unwrap().from
    }

    /// A read of all heights takes longer than a look is believed; meanwhile another read, of the
    /// newest heights, looks again.
    #[tokio::test(start_paused = true)]
    async fn a_look_higher_up_takes_nothing_from_a_read_further_down() {
        let source = source([("one", &Arc::default())]);
        assert_eq!(from(&source, 0).await, 0);
        for low in [50_000, 99_000] {
            tokio::time::advance(DEPTH_AGE_MAX).await;
            assert_eq!(from(&source, low).await, low);
            assert_eq!(source.event_endpoints(10).ids, [EndpointId(0)]);
        }
        assert_eq!(source.events_of(EndpointId(0)).from, Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_higher_up_that_shows_none_says_so_of_all_below() {
        let kept_from = Arc::default();
        let source = source([("one", &kept_from)]);
        assert_eq!(from(&source, 0).await, 0);
        kept_from.store(70_000, Ordering::Relaxed);
        tokio::time::advance(DEPTH_AGE_MAX).await;
        assert!((70_000..71_000).contains(&from(&source, 50_000).await));
        assert!(
            source.event_endpoints(10).ids.is_empty()
                && source.event_endpoints(69_000).ids.is_empty()
        );
        assert_eq!(source.event_endpoints(71_000).ids, [EndpointId(0)]);
    }

    /// An endpoint that was seen to keep events from a height on, where nothing below was looked
    /// at, may also keep events below that height.
    #[tokio::test(start_paused = true)]
    async fn one_is_not_alone_next_to_another_whose_depth_is_not_known() {
        let (one, two) = (Arc::default(), Arc::default());
        let source = source([("one", &one), ("two", &two)]);
        assert_eq!(from(&source, 50_000).await, 50_000);
        tokio::time::advance(DEPTH_AGE_MAX).await;
        two.store(FAILS, Ordering::Relaxed);
        assert_eq!(from(&source, 0).await, 0);
        let deep = source.event_endpoints(10);
        assert_eq!((deep.ids, deep.is_alone), (vec![EndpointId(0)], false));
        // The endpoint answers again, after it has pruned the events.
        two.store(70_000, Ordering::Relaxed);
        tokio::time::advance(DEPTH_AGE_MAX).await;
        assert_eq!(from(&source, 0).await, 0);
        assert!(source.event_endpoints(10).is_alone);
        tokio::time::advance(DEPTH_AGE_MAX).await;
        source.record_search_failure(EndpointId(1));
        assert!(!source.event_endpoints(10).is_alone, "another server may answer there now");
    }

    /// The endpoint that showed the events has pruned them since.
    #[tokio::test(start_paused = true)]
    async fn one_that_failed_is_asked_where_the_others_keep_no_more() {
        let (one, two) = (Arc::default(), Arc::default());
        let source = source([("one", &one), ("two", &two)]);
        assert_eq!(from(&source, 0).await, 0);
        one.store(70_000, Ordering::Relaxed);
        tokio::time::advance(DEPTH_AGE_MAX * 100).await;
        source.record_search_failure(EndpointId(1));
        assert_eq!(from(&source, 0).await, 0);
        assert_eq!(source.event_endpoints(10).ids, [EndpointId(1)]);
    }
}
