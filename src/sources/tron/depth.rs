//! How deep each endpoint keeps events. A node whose events were pruned, or that began to index them
//! late, finds nothing below and gives no error: so an endpoint counts for a height only where it
//! has shown events at least as deep.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::TronSource;
use super::depth_search::Witness;
use crate::domain::{Doubts, Height, lock};
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;
use crate::sources::ability::{Ability, AbilityKind, Offered};

/// Answers to a search that must agree, and where answers were seen to differ.
const VOTES: usize = 2;
pub(super) const VOTES_OF_UNSTEADY: usize = 4;
/// That an endpoint keeps events, or shows none, is believed for so long: nodes drop old blocks as
/// new ones come, and another server may answer at the same address.
const SHOWN_AGE_MAX: Duration = Duration::from_secs(30);
/// An endpoint that gave no answer is passed over for so long.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);

/// What is known of an endpoint's events.
#[derive(Debug, Clone, Copy)]
enum Depth {
    /// They are kept from this height on, and further down as far as is known; `None`: none were
    /// seen.
    From(Option<Height>),
    /// It does not offer them.
    NotOffered,
}

/// The result of one search for an endpoint's depth.
#[derive(Debug, Clone, Copy)]
struct Searched {
    depth: Depth,
    /// The lowest height that was looked at.
    low: Height,
    at: Instant,
    /// The oldest events that it has shown.
    witness: Option<Witness>,
}

impl Searched {
    /// Whether events were seen to be kept down to a height.
    fn shows(&self, low: Height) -> bool {
        matches!(self.depth, Depth::From(Some(from)) if from <= low)
    }

    /// Whether it answers for a height: it was seen to be kept, or something above it was seen to be
    /// missing of late.
    fn answers(&self, low: Height, age_max: Duration) -> bool {
        let (is_known, age_max) = match self.depth {
            Depth::From(Some(from)) if from <= low => (true, SHOWN_AGE_MAX),
            // A part of the range is missing: what is read ends there.
            Depth::From(Some(from)) => (from > self.low, age_max),
            Depth::From(None) => (low >= self.low, age_max.min(SHOWN_AGE_MAX)),
            Depth::NotOffered => (true, age_max),
        };
        is_known && self.at.elapsed() < age_max
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    searched: Option<Searched>,
    /// A later search that looked only further up, and found events there.
    above: Option<Searched>,
    /// Where it has shown the chain's first events.
    begins: Option<Height>,
    /// It gave no answer to a search.
    failed_at: Option<Instant>,
    /// Of two answers to one search, one lacked events.
    is_unsteady: bool,
}

impl Known {
    fn is_failing(self) -> bool {
        self.failed_at.is_some_and(|at| at.elapsed() < FAILURE_PAUSE)
    }

    fn shows(self, low: Height) -> bool {
        [self.above, self.searched].into_iter().flatten().any(|searched| searched.shows(low))
    }

    fn depth(self) -> Option<Depth> {
        self.searched.map(|searched| searched.depth)
    }

    /// The search that still answers for a height.
    fn answer(self, low: Height, age_max: Duration) -> Option<Depth> {
        let known = [self.above, self.searched].into_iter().flatten();
        let mut answers = known.filter(|searched| searched.answers(low, age_max));
        answers.next().map(|searched| searched.depth)
    }

    /// A search that shows events at its lowest height says nothing of what was seen to be kept below
    /// that, by which another read goes on.
    fn take(&mut self, searched: Searched) {
        let shown = |one: Searched| match one.depth {
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
    by: HashMap<EndpointId, Known>,
}

/// Where events are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventDepth {
    pub(super) from: Height,
    pub(super) doubts: Doubts,
}

/// The endpoints that keep events of a height.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Deep {
    pub(super) ids: Vec<EndpointId>,
    /// There is one, and all others are known not to keep them: it alone can confirm itself.
    pub(super) is_alone: bool,
    /// Answers that must agree.
    pub(super) votes: usize,
}

impl TronSource {
    /// Down to where events from `low` to `high` can be read; `None` where no block is kept.
    pub(super) async fn events_kept(
        &self,
        low: Height,
        high: Height,
        options: &CallOptions,
    ) -> Result<Option<EventDepth>, UpstreamError> {
        let wanted = low;
        let Some(low) = self.first_kept(low, high, options).await? else { return Ok(None) };
        // Where blocks begin, nothing can be seen of events below.
        let floor = if low > wanted { low } else { 0 };
        let ids = self.searchable(low);
        let depths = ids.iter().map(|id| self.learn_depth(*id, (low, high), floor, options));
        let depths = join_all(depths).await;
        let froms = depths.iter().filter_map(|depth| match depth {
            Ok(Depth::From(from)) => Some(*from),
            Ok(Depth::NotOffered) | Err(_) => None,
        });
        let (mut offered, mut from) = (false, None);
        for one in froms {
            offered = true;
            from = from.min(one).or(one).or(from);
        }
        if let Some(from) = from {
            return Ok(Some(EventDepth { from: from.max(low), doubts: Doubts::NONE }));
        }
        match depths.into_iter().find_map(Result::err) {
            Some(error) => Err(error),
            // A quiet chain, or one whose pools are not known: nothing shows how deep it goes.
            None if offered => Ok(Some(EventDepth { from: low, doubts: Doubts::DEPTH })),
            None => Err(UpstreamError::NotSupported { method: "eth_getLogs".to_owned() }),
        }
    }

    /// Endpoints without those that gave no answer of late, where another one has shown events of a height.
    fn searchable(&self, low: Height) -> Vec<EndpointId> {
        let (all, depths) = (self.endpoint_ids(), lock(&self.inner.depths));
        let known = |id: &EndpointId| depths.by.get(id).copied().unwrap_or_default();
        let working = all.iter().copied().filter(|id| !known(id).is_failing());
        let working: Vec<EndpointId> = working.collect();
        if working.iter().any(|id| known(id).shows(low)) { working } else { all }
    }

    /// Who may be asked for events from a height on.
    pub(super) fn deep(&self, low: Height) -> Deep {
        let depths = lock(&self.inner.depths);
        let known = |id: &EndpointId| depths.by.get(id).copied().unwrap_or_default();
        let all = self.endpoint_ids();
        let with = |is_deep: &dyn Fn(Option<Height>) -> bool| -> Vec<EndpointId> {
            let fits = |id: &&EndpointId| match known(id).depth() {
                Some(Depth::From(from)) => is_deep(from),
                Some(Depth::NotOffered) | None => false,
            };
            all.iter().filter(fits).copied().collect()
        };
        let mut ids = with(&|from| from.is_some_and(|from| from <= low));
        if ids.is_empty() && with(&|from| from.is_some()).is_empty() {
            // None has shown any: then each counts as much as the other.
            ids = with(&|from| from.is_none());
        }
        let is_alone = ids.len() == 1 && all.iter().all(|id| known(id).depth().is_some());
        let works = |id: &EndpointId| !known(id).is_failing();
        if ids.iter().any(works) {
            ids.retain(works);
        }
        let is_unsteady = ids.iter().any(|id| known(id).is_unsteady);
        Deep { ids, is_alone, votes: if is_unsteady { VOTES_OF_UNSTEADY } else { VOTES } }
    }

    /// Events that show again how deep an endpoint keeps them, for a request about blocks down to
    /// a height.
    pub(super) fn sentinel(&self, id: EndpointId, low: Height) -> Option<Witness> {
        let known = lock(&self.inner.depths).by.get(&id).copied().unwrap_or_default();
        let searches = [known.above, known.searched].into_iter().flatten();
        let mut deep = searches.filter(|searched| searched.shows(low));
        deep.next()?.witness
    }

    /// What was found of an endpoint's events.
    pub(super) fn events_of(&self, id: EndpointId) -> Ability {
        let known = lock(&self.inner.depths).by.get(&id).and_then(|known| known.depth());
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

    /// An endpoint's answers to one search differ.
    pub(super) fn note_unsteady(&self, id: EndpointId) {
        lock(&self.inner.depths).by.entry(id).or_default().is_unsteady = true;
    }

    /// An endpoint gave no answer to a search.
    pub(super) fn note_search_failure(&self, id: EndpointId) {
        lock(&self.inner.depths).by.entry(id).or_default().failed_at = Some(Instant::now());
    }

    /// `Err`: nothing was learned now.
    async fn learn_depth(
        &self,
        id: EndpointId,
        (low, high): (Height, Height),
        floor: Height,
        options: &CallOptions,
    ) -> Result<Depth, UpstreamError> {
        let known = lock(&self.inner.depths).by.get(&id).copied().unwrap_or_default();
        if let Some(depth) = known.answer(low, self.inner.limits.depth_age_max) {
            return Ok(depth);
        }
        // Others show how deep they keep them.
        let options = CallOptions { on: Some(id), is_replaceable: true, ..options.clone() };
        let (depth, found) =
            match self.search_depth((low, high), (floor, known.begins), &options).await {
                Ok(found) => (Depth::From(found.from), Some(found)),
                Err(UpstreamError::NotSupported { .. }) => (Depth::NotOffered, None),
                Err(error) => {
                    self.note_search_failure(id);
                    return Err(error);
                }
            };
        let witness = found.and_then(|found| found.witness);
        let searched = Searched { depth, low, at: Instant::now(), witness };
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

    /// A node that has events of the reference pools in every block from a height on.
    fn source(kept_from: &Arc<AtomicU64>) -> TronSource {
        let kept_from = Arc::clone(kept_from);
        let nodes = ScriptedNodes::new(move |(_, path, body)| match path {
            "wallet/getblock" => fake::header(body),
            "jsonrpc" => fake::rpc(body, |_, filter| {
                let high = fake::quantity(&filter["toBlock"]);
                let is_kept = high >= kept_from.load(Ordering::Relaxed);
                if is_kept { json!([{"blockNumber": format!("{high:#x}")}]) } else { json!([]) }
            }),
            _ => (200, json!([])),
        });
        fake::source(&["one"], &nodes, TronLimits { events_from: 0, ..TronLimits::default() })
    }

    async fn from(source: &TronSource, low: Height) -> Height {
        source.events_kept(low, 100_000, &options()).await.unwrap().unwrap().from
    }

    /// A read of all heights takes longer than what was seen is believed, and another one, of the
    /// newest heights, looks again meanwhile.
    #[tokio::test(start_paused = true)]
    async fn a_look_higher_up_takes_nothing_from_a_read_further_down() {
        let source = source(&Arc::default());
        assert_eq!(from(&source, 0).await, 0);
        for low in [50_000, 99_000] {
            tokio::time::advance(SHOWN_AGE_MAX).await;
            assert_eq!(from(&source, low).await, low);
            assert_eq!(source.deep(10).ids, [EndpointId(0)]);
        }
        assert_eq!(source.events_of(EndpointId(0)).from, Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_higher_up_that_shows_none_says_so_of_all_below() {
        let kept_from = Arc::default();
        let source = source(&kept_from);
        assert_eq!(from(&source, 0).await, 0);
        kept_from.store(70_000, Ordering::Relaxed);
        tokio::time::advance(SHOWN_AGE_MAX).await;
        assert!((70_000..71_000).contains(&from(&source, 50_000).await));
        assert!(source.deep(10).ids.is_empty() && source.deep(69_000).ids.is_empty());
        assert_eq!(source.deep(71_000).ids, [EndpointId(0)]);
    }
}
