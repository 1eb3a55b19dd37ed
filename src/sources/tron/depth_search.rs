//! Searches for events that show how deep an endpoint keeps them: of the reference pools, which are
//! in nearly every recent range, else of blocks whose transaction infos name some. That no event is
//! older than some height is not pruning if the chain had none before: transactions below, whose
//! infos are kept and name no event, show that.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde_json::json;

use super::TronSource;
use super::prices::pool_call;
use super::wire::{self, BlockEvents, is_too_wide, search_reading};
use crate::decode::evm::Word;
use crate::domain::Height;
use crate::rpc::{Call, CallOptions, Reply, Result, UpstreamError, unless_final};
use crate::sources::evm::wire as evm_wire;

/// Answers without an event after which a range has none of the reference pools.
const EMPTY_ANSWERS: u32 = 3;
/// Answers without an event that an info names, after which it counts as pruned.
const NAMED_ANSWERS: u32 = 2;
/// Blocks per search if a node refuses more or times out on them.
const FEW_BLOCKS: u64 = 10;
/// Places below the oldest events that are searched for others, at even distances, and blocks
/// searched at each; further places lie at doubling distances below those events.
const QUIET_PLACES: u64 = 24;
const QUIET_BLOCKS: u64 = 2;

/// Where to search for events that show an endpoint's depth: at or below a height, because nodes
/// prune the oldest first; above it only if nothing lies below.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchPlace {
    pub(super) height: Height,
    /// Below this height no contract ran, or no block is kept.
    pub(super) lowest: Height,
    pub(super) high: Height,
}

impl SearchPlace {
    fn range(&self, blocks: u64) -> (Height, Height) {
        let more = blocks.saturating_sub(1);
        if self.height <= self.lowest {
            (self.height, self.high.min(self.height.saturating_add(more)))
        } else {
            (self.lowest.max(self.height.saturating_sub(more)), self.height)
        }
    }
}

/// Events of one block that an endpoint has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Witness {
    pub(super) height: Height,
    /// The first topic of the events; `None`: events of the reference pools.
    topic: Option<Word>,
}

/// What some blocks show about an endpoint's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventLook {
    Shown(Witness),
    /// Infos of transactions are kept, and none names an event.
    Quiet,
    /// No infos of transactions, or events that they name are missing.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundDepth {
    /// `None`: it shows no events.
    pub(super) from: Option<Height>,
    /// The oldest events seen.
    pub(super) witness: Option<Witness>,
    /// The infos of the endpoint show that the chain has no events below this height.
    pub(super) begins: Option<Height>,
}

impl FoundDepth {
    fn from(from: Height, witness: Witness, begins: Option<Height>) -> Self {
        Self { from: Some(from), witness: Some(witness), begins }
    }
}

impl TronSource {
    /// The lowest height from `low` on at which the endpoint shows events. `begins`: the height of
    /// the chain's first events, if it has shown them before.
    pub(super) async fn search_depth(
        &self,
        (low, high): (Height, Height),
        (floor, begins): (Height, Option<Height>),
        options: &CallOptions,
    ) -> Result<FoundDepth> {
        let limits = &self.inner.limits;
        let has_none_below = high / 2 > limits.events_from;
        let first = if has_none_below { limits.events_from } else { 0 };
        let first = first.max(begins.unwrap_or(0));
        let bottom = low.max(first);
        let lowest = first.max(floor);
        let of_bottom = if bottom <= first { 0 } else { bottom };
        let sight = |height| SearchPlace { height, lowest, high };
        if let EventLook::Shown(one) = self.look_for_events(sight(bottom), options).await? {
            return Ok(FoundDepth::from(of_bottom, one, begins));
        }
        // Right above the first block there may be nothing below: the chain's first events decide.
        let is_near = (1..=limits.sentinel_blocks).contains(&(bottom - first));
        if is_near
            && let EventLook::Shown(one) = self.look_for_events(sight(first), options).await?
        {
            return Ok(FoundDepth::from(0, one, begins));
        }
        let top = sight(high);
        let look = if bottom < high {
            self.look_for_events(top, options).await?
        } else {
            EventLook::Nothing
        };
        let EventLook::Shown(shown) = look else {
            return Ok(FoundDepth { from: None, witness: None, begins });
        };
        let (from, oldest) = self.oldest((bottom, high), (lowest, shown), options).await?;
        match self.first_of_chain((bottom, oldest), options).await? {
            Some(one) => {
                let begins = (bottom <= first).then_some(one.height);
                Ok(FoundDepth::from(of_bottom, one, begins))
            }
            None => Ok(FoundDepth::from(from, oldest, None)),
        }
    }

    /// The lowest height with events, given those of the highest one.
    async fn oldest(
        &self,
        (bottom, high): (Height, Height),
        (lowest, mut oldest): (Height, Witness),
        options: &CallOptions,
    ) -> Result<(Height, Witness)> {
        let (mut missing, mut shown) = (bottom, high);
        while shown - missing > self.inner.limits.sentinel_blocks {
            let middle = missing.midpoint(shown);
            let sight = SearchPlace { height: middle, lowest, high };
            match self.look_for_events(sight, options).await? {
                EventLook::Shown(one) => (shown, oldest) = (middle, one),
                EventLook::Quiet | EventLook::Nothing => missing = middle,
            }
        }
        Ok((shown, oldest))
    }

    /// The chain's first events, if there are none from `bottom` up to the oldest ones seen: at
    /// each searched place infos of transactions are kept and name no event.
    async fn first_of_chain(
        &self,
        (bottom, mut oldest): (Height, Witness),
        options: &CallOptions,
    ) -> Result<Option<Witness>> {
        for low in quiet_places(bottom, oldest.height).into_iter().rev() {
            let blocks = low..=oldest.height.min(low + QUIET_BLOCKS) - 1;
            match self.look_into(blocks, options).await? {
                EventLook::Shown(one) => oldest = one,
                EventLook::Quiet => {}
                EventLook::Nothing => return Ok(None),
            }
        }
        Ok(Some(oldest).filter(|oldest| oldest.height > bottom))
    }

    /// Whether the endpoint has events at a height or near it.
    pub(super) async fn look_for_events(
        &self,
        sight: SearchPlace,
        options: &CallOptions,
    ) -> Result<EventLook> {
        let limits = &self.inner.limits;
        let mut blocks = limits.sentinel_blocks.min(limits.logs_range_max);
        for _ in 0..EMPTY_ANSWERS {
            if self.inner.references.pools.is_empty() {
                break;
            }
            let range = sight.range(blocks);
            match self.oldest_event(self.events_of_pools(range), range, options).await {
                Ok(Some(height)) => return Ok(EventLook::Shown(Witness { height, topic: None })),
                Ok(None) => {}
                Err(UpstreamError::Rpc { code, message, .. })
                    if is_too_wide(code, &message) && blocks > FEW_BLOCKS =>
                {
                    blocks = FEW_BLOCKS;
                }
                Err(error) => return Err(error),
            }
        }
        let (from, to) = sight.range(limits.sample_blocks);
        self.look_into(from..=to, options).await
    }

    /// Checks the infos of some blocks, and searches for an event that they name.
    async fn look_into(
        &self,
        blocks: RangeInclusive<Height>,
        options: &CallOptions,
    ) -> Result<EventLook> {
        let mut look = EventLook::Nothing;
        for height in blocks {
            match self.events_named(height, options).await? {
                BlockEvents::Unknown => {}
                BlockEvents::None => look = EventLook::Quiet,
                BlockEvents::Some(topic) => {
                    let witness = Witness { height, topic: Some(topic) };
                    for _ in 0..NAMED_ANSWERS {
                        if self.shows(witness, options).await? {
                            return Ok(EventLook::Shown(witness));
                        }
                    }
                    return Ok(EventLook::Nothing);
                }
            }
        }
        Ok(look)
    }

    /// Whether the endpoint returns these events again.
    pub(super) async fn shows(&self, witness: Witness, options: &CallOptions) -> Result<bool> {
        let range = (witness.height, witness.height);
        Ok(self.oldest_event(self.search_for(witness), range, options).await?.is_some())
    }

    /// The search that returns these events again.
    pub(super) fn search_for(&self, Witness { height, topic }: Witness) -> Call {
        match topic {
            None => self.events_of_pools((height, height)),
            Some(topic) => {
                let topics = [("topics", json!([evm_wire::hex(&topic)]))];
                evm_wire::logs_call((height, height), topics)
            }
        }
    }

    fn events_of_pools(&self, range: (Height, Height)) -> Call {
        pool_call(&self.inner.references.pools, range)
    }

    async fn oldest_event(
        &self,
        search: Call,
        (low, high): (Height, Height),
        options: &CallOptions,
    ) -> Result<Option<Height>> {
        let (answers, endpoint) =
            self.rpc_asker(search_reading).ask("eth_getLogs", &[search], options).await?;
        let no_answer = || self.malformed(endpoint, "no answer to eth_getLogs");
        let answer = answers.into_iter().next().ok_or_else(no_answer)?;
        let raw = answer.map_err(|error| self.refused(endpoint, error))?;
        let heights = wire::heights(&raw);
        let heights = heights.ok_or_else(|| self.malformed(endpoint, "no list of events"))?;
        Ok(heights.into_iter().filter(|height| (low..=high).contains(height)).min())
    }

    /// Whether a block's transactions have events by their infos; unknown if the endpoint does not
    /// support that query.
    async fn events_named(&self, height: Height, options: &CallOptions) -> Result<BlockEvents> {
        let body = json!({"num": height});
        let answer = self.post("wallet/gettransactioninfobyblocknum", &body, options).await;
        let events = |reply: Reply| wire::block_events(&reply.body);
        Ok(unless_final(answer)?.map_or(BlockEvents::Unknown, events))
    }
}

/// Heights from `bottom` up to the oldest events: at even distances, and more of them close to
/// those events, where pruning would begin.
fn quiet_places(bottom: Height, oldest: Height) -> BTreeSet<Height> {
    let span = oldest.saturating_sub(bottom);
    let even = (0..QUIET_PLACES).map(|at| bottom + span / QUIET_PLACES * at);
    let doubled = (1..u64::BITS).map_while(|at| oldest.checked_sub(QUIET_BLOCKS << at));
    even.chain(doubled).filter(|at| (bottom..oldest).contains(at)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::TronLimits;
    use super::super::fake::{self, ScriptedNodes, options};
    use super::*;
    use crate::domain::Doubts;

    const HEAD: Height = 10_000_000;
    /// The chain's first event, and the first one of its reference pools.
    const FIRST: Height = 3_100_000;
    const POOLS: Height = 5_000_000;

    /// A node of a chain whose every block has one transaction: it keeps events and infos from
    /// these heights on.
    fn node(events: Height, infos: Height) -> Arc<ScriptedNodes> {
        let topic = "ab".repeat(32);
        let info = move |height: Height| match height {
            _ if height < infos => json!([]),
            0..FIRST => json!([{"id": "01"}]),
            _ => json!([{"id": "01"}, {"id": "02", "log": [{"topics": [topic]}]}]),
        };
        ScriptedNodes::new(move |(_, path, body)| match path {
            "wallet/getblock" => fake::header(body),
            "wallet/gettransactioninfobyblocknum" => (200, info(body["num"].as_u64().unwrap())),
            "jsonrpc" => fake::rpc(body, |_, filter| {
                let first = if filter["address"].is_array() { POOLS } else { FIRST }.max(events);
                let low = fake::quantity(&filter["fromBlock"]).max(first);
                let is_there = low <= fake::quantity(&filter["toBlock"]);
                if is_there { json!([{"blockNumber": format!("{low:#x}")}]) } else { json!([]) }
            }),
            _ => (404, json!({"error": "not found"})),
        })
    }

    async fn kept(nodes: &Arc<ScriptedNodes>, low: Height) -> (Height, TronSource) {
        let source = fake::source(&["one"], nodes, TronLimits::default());
        let kept = source.events_kept(low, HEAD, &options()).await.unwrap().unwrap();
        assert_eq!(kept.doubts, Doubts::NONE);
        (kept.from, source)
    }

    /// The blocks before the first contracts hold no events. The search covers more blocks than
    /// these, and does not take them for pruned ones.
    #[tokio::test(start_paused = true)]
    async fn a_chain_whose_first_blocks_have_no_events_is_not_cut_there() {
        let nodes = node(0, 0);
        let (from, source) = kept(&nodes, 0).await;
        assert_eq!(from, 0);
        let (began, asked) = (nodes.count("blocknum"), nodes.count("jsonrpc"));
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        let again = source.events_kept(0, HEAD, &options()).await.unwrap().unwrap();
        assert_eq!(again.from, 0);
        let more = nodes.count("blocknum") + nodes.count("jsonrpc") - began - asked;
        assert!(more <= 10, "{more}: where they begin is remembered");
        assert_eq!(kept(&nodes, 2_500_000).await.0, 2_500_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_without_old_events_is_cut_whether_or_not_it_has_old_infos() {
        for infos in [0, 4_000_000] {
            let (from, _) = kept(&node(4_000_000, infos), 0).await;
            assert!((4_000_000..4_001_000).contains(&from), "{from}, infos from {infos}");
        }
        let (from, _) = kept(&node(0, 3_050_000), 0).await;
        assert!((3_100_000..3_101_000).contains(&from), "{from}: nothing shows what lay below");
    }

    /// Reads of higher blocks do not show where the events of the chain begin.
    #[tokio::test(start_paused = true)]
    async fn the_first_events_are_those_of_all_blocks() {
        let nodes = node(0, 2_400_000);
        let (from, source) = kept(&nodes, 2_500_000).await;
        assert_eq!(from, 2_500_000);
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        let kept = source.events_kept(0, HEAD, &options()).await.unwrap().unwrap();
        assert!((3_100_000..3_101_000).contains(&kept.from), "{}", kept.from);
    }
}
