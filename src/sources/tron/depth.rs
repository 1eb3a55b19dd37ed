//! How deep each endpoint keeps events. A node whose events were pruned, or that began to index them
//! late, finds nothing below and gives no error: so an endpoint counts for a height only where it
//! has shown events at least as deep. Those are of the reference pools, which are in nearly every
//! range, else of blocks whose transactions say that they have some.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::TronSource;
use super::search::{is_too_wide, search_reading};
use super::wire;
use crate::domain::{Doubts, Height};
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;
use crate::sources::ability::{Ability, AbilityKind, Offered};
use crate::sources::evm::wire as evm_wire;
use crate::sources::reference::TOPICS;

/// Answers without an event after which a range of the reference pools has none.
const EMPTY_ANSWERS: u32 = 3;
/// Answers to a search that must agree, and where answers were seen to differ.
const VOTES: usize = 2;
pub(super) const VOTES_OF_UNSTEADY: usize = 4;
/// Blocks of a search where a node takes too long for more.
const FEW_BLOCKS: u64 = 10;
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
}

impl Searched {
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
    /// It gave no answer to a search.
    failed_at: Option<Instant>,
    /// Of two answers to one search, one lacked events.
    is_unsteady: bool,
}

impl Known {
    fn is_failing(self) -> bool {
        self.failed_at.is_some_and(|at| at.elapsed() < FAILURE_PAUSE)
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

/// Where events are looked for that show what an endpoint keeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    height: Height,
    /// Below this height no contract ran, or no block is kept.
    lowest: Height,
    high: Height,
}

impl Sight {
    /// Events at or below a height show that it is kept, as nodes drop the oldest first; events above
    /// it where nothing lies below.
    pub(super) fn new(height: Height, lowest: Height, high: Height) -> Self {
        Self { height, lowest, high }
    }

    fn range(&self, blocks: u64) -> (Height, Height) {
        let more = blocks.saturating_sub(1);
        if self.height <= self.lowest {
            (self.height, self.high.min(self.height.saturating_add(more)))
        } else {
            (self.lowest.max(self.height.saturating_sub(more)), self.height)
        }
    }
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
        let ids = self.endpoint_ids();
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

    /// Who may be asked for events from a height on.
    pub(super) fn deep(&self, low: Height) -> Deep {
        let depths = self.depths();
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

    /// What was found of an endpoint's events.
    pub(super) fn events_of(&self, id: EndpointId) -> Ability {
        let known = self.depths().by.get(&id).and_then(|known| known.depth());
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
        self.depths().by.entry(id).or_default().is_unsteady = true;
    }

    /// An endpoint gave no answer to a search.
    pub(super) fn note_search_failure(&self, id: EndpointId) {
        self.depths().by.entry(id).or_default().failed_at = Some(Instant::now());
    }

    /// `Err`: nothing was learned now.
    async fn learn_depth(
        &self,
        id: EndpointId,
        (low, high): (Height, Height),
        floor: Height,
        options: &CallOptions,
    ) -> Result<Depth, UpstreamError> {
        let known = self.depths().by.get(&id).copied().unwrap_or_default();
        if let Some(depth) = known.answer(low, self.inner.limits.depth_age_max) {
            return Ok(depth);
        }
        let options = CallOptions { on: Some(id), ..options.clone() };
        let depth = match self.search_depth((low, high), floor, &options).await {
            Ok(from) => Depth::From(from),
            Err(UpstreamError::NotSupported { .. }) => Depth::NotOffered,
            Err(error) => return Err(error),
        };
        let searched = Searched { depth, low, at: Instant::now() };
        self.depths().by.entry(id).or_default().take(searched);
        Ok(depth)
    }

    /// The lowest height from `low` on at which the endpoint shows events.
    async fn search_depth(
        &self,
        (low, high): (Height, Height),
        floor: Height,
        options: &CallOptions,
    ) -> Result<Option<Height>, UpstreamError> {
        let limits = &self.inner.limits;
        let has_none_below = high / 2 > limits.events_from;
        let first = if has_none_below { limits.events_from } else { 0 };
        let bottom = low.max(first);
        let lowest = first.max(floor);
        if self.shows_events(Sight::new(bottom, lowest, high), options).await? {
            return Ok(Some(if bottom <= first { 0 } else { bottom }));
        }
        // Right above the first block nothing may lie below to be shown: the first ones speak for it.
        let is_near = (1..=limits.sentinel_blocks).contains(&(bottom - first));
        if is_near && self.shows_events(Sight::new(first, lowest, high), options).await? {
            return Ok(Some(0));
        }
        if bottom >= high || !self.shows_events(Sight::new(high, lowest, high), options).await? {
            return Ok(None);
        }
        let (mut missing, mut shown) = (bottom, high);
        while shown - missing > limits.sentinel_blocks {
            let middle = missing.midpoint(shown);
            if self.shows_events(Sight::new(middle, lowest, high), options).await? {
                shown = middle;
            } else {
                missing = middle;
            }
        }
        Ok(Some(shown))
    }

    /// Whether the endpoint has events at a height or near it.
    pub(super) async fn shows_events(
        &self,
        sight: Sight,
        options: &CallOptions,
    ) -> Result<bool, UpstreamError> {
        let limits = &self.inner.limits;
        let pools = &self.inner.references.pools;
        let emitters: Vec<String> = pools.iter().map(|pool| evm_wire::hex(pool)).collect();
        let mut blocks = limits.sentinel_blocks.min(limits.logs_range_max);
        for _ in 0..EMPTY_ANSWERS {
            if emitters.is_empty() {
                break;
            }
            let (from, to) = sight.range(blocks);
            let filter = json!({
                "fromBlock": format!("{from:#x}"),
                "toBlock": format!("{to:#x}"),
                "address": emitters,
                "topics": [TOPICS],
            });
            match self.has_events(&filter, options).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(UpstreamError::Rpc { message, .. })
                    if is_too_wide(&message) && blocks > FEW_BLOCKS =>
                {
                    blocks = FEW_BLOCKS;
                }
                Err(error) => return Err(error),
            }
        }
        let (from, to) = sight.range(limits.sample_blocks);
        for height in from..=to {
            if self.block_has_events(height, options).await? {
                let at = format!("{height:#x}");
                let filter = json!({"fromBlock": at, "toBlock": at});
                return Ok(self.has_events(&filter, options).await?
                    || self.has_events(&filter, options).await?);
            }
        }
        Ok(false)
    }

    async fn has_events(
        &self,
        filter: &Value,
        options: &CallOptions,
    ) -> Result<bool, UpstreamError> {
        let call = [("eth_getLogs", json!([filter]))];
        let (answers, endpoint) =
            self.rpc_asker(search_reading).ask("eth_getLogs", &call, options).await?;
        match answers.into_iter().next() {
            Some(Ok(raw)) => {
                let events = serde_json::from_str::<Vec<&RawValue>>(raw.get());
                let events = events.map_err(|_| self.malformed(endpoint, "no list of events"))?;
                Ok(!events.is_empty())
            }
            Some(Err(error)) => {
                let endpoint = self.inner.pool.label(endpoint);
                let (code, message) = (error.code, error.message);
                Err(UpstreamError::Rpc { endpoint, code, message })
            }
            None => Err(self.malformed(endpoint, "no answer to eth_getLogs")),
        }
    }

    /// Whether a block's transactions have events, as their infos say; false where that is not
    /// offered.
    async fn block_has_events(
        &self,
        height: Height,
        options: &CallOptions,
    ) -> Result<bool, UpstreamError> {
        let body = json!({"num": height});
        match self.post("wallet/gettransactioninfobyblocknum", &body, options).await {
            Ok(reply) => Ok(wire::have_events(&reply.body)),
            Err(error) if error.is_final() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn depths(&self) -> MutexGuard<'_, Depths> {
        self.inner.depths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::TronLimits;
    use super::super::fake::{self, FakeNodes, options};
    use super::*;

    /// A node that has events of the reference pools in every block from a height on.
    fn source(kept_from: &Arc<AtomicU64>) -> TronSource {
        let kept_from = Arc::clone(kept_from);
        let nodes = FakeNodes::new(move |(_, path, body)| match path {
            "wallet/getblock" => {
                let height = body["id_or_num"].as_str().unwrap().parse().unwrap();
                (200, fake::block(height, height * 3_000))
            }
            "jsonrpc" => fake::rpc(body, |_, filter| {
                let high = fake::quantity(&filter["toBlock"]);
                let is_kept = high >= kept_from.load(Ordering::Relaxed);
                if is_kept { json!([{"blockNumber": format!("{high:#x}")}]) } else { json!([]) }
            }),
            _ => (200, json!([])),
        });
        fake::source(&["one"], nodes, TronLimits { events_from: 0, ..TronLimits::default() })
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
