//! Events of reference pools: by the nodes' logs, else by the open data gateway.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde_json::{Value, json};

use super::log_nodes::{Kept, LogChoice, no_logs_yet};
use super::ranges::{self, Shrink};
use super::wire::{self, FoundLog, head_call};
use super::{EvmSource, ReferencePool, portal_wire};
use crate::decode::evm::Account;
use crate::domain::Height;
use crate::rpc::{
    Ask, Call, CallAnswer, CallOptions, CallResponse, EndpointId, Pool, Result, UpstreamError,
};
use crate::sources::gateway::classify_stream;
use crate::sources::reference::{self, PoolEvent, Range, TOPICS};
use crate::sources::second_answers::Unconfirmed;

impl From<FoundLog> for PoolEvent {
    fn from(log: FoundLog) -> Self {
        Self { height: log.block, emitter: log.address, topics: log.topics, data: log.data }
    }
}

/// Log queries per request.
const QUERIES_MAX: usize = 50;
/// Blocks per query at first: busy pools have several events per block.
const BLOCKS_FIRST: u64 = 2_000;
/// Failures after which a node is not used any more.
const FAILURES_MAX: u32 = 3;
/// Answers per range from the gateway, each of which may end early.
const STREAMS_MAX: usize = 64;

/// Addresses, and pool ids where one contract holds many pools, as log filters have them.
#[derive(Debug)]
struct Emitters {
    emitters: Vec<String>,
    ids: Vec<String>,
}

impl Emitters {
    /// Contracts that are one pool each, and contracts that hold many.
    fn of(pools: &[ReferencePool]) -> Vec<Self> {
        let emitters = |many: bool| {
            let all = pools.iter().filter(|pool| pool.id.is_some() == many);
            let all: BTreeSet<Account> = all.map(|pool| pool.emitter).collect();
            all.iter().map(|emitter| wire::hex(emitter)).collect()
        };
        let ids = pools.iter().filter_map(|pool| pool.id).map(|id| wire::hex(&id)).collect();
        let groups = [
            Self { emitters: emitters(false), ids: Vec::new() },
            Self { emitters: emitters(true), ids },
        ];
        groups.into_iter().filter(|group| !group.emitters.is_empty()).collect()
    }

    fn query(&self, range: Range) -> Call {
        let Self { emitters, ids } = self;
        let topics = if ids.is_empty() { json!([TOPICS]) } else { json!([TOPICS, ids]) };
        wire::logs_call(range, [("address", json!(emitters)), ("topics", topics)])
    }

    fn portal_query(&self, (low, high): Range) -> Value {
        let Self { emitters, ids } = self;
        let logs = if ids.is_empty() {
            json!({"address": emitters, "topic0": TOPICS})
        } else {
            json!({"address": emitters, "topic0": TOPICS, "topic1": ids})
        };
        json!({
            "type": "evm", "fromBlock": low, "toBlock": high,
            "fields": {
                "block": {"number": true},
                "log": {
                    "logIndex": true, "transactionIndex": true, "address": true,
                    "topics": true, "data": true,
                },
            },
            "logs": [logs],
        })
    }
}

impl EvmSource {
    /// Events in the blocks that determine the prices at these heights, in chain order.
    pub(super) async fn pool_events(
        &self,
        pools: &[ReferencePool],
        heights: &BTreeSet<Height>,
        blocks: u64,
        options: &CallOptions,
    ) -> Result<Vec<PoolEvent>> {
        let ranges = reference::ranges(heights, blocks);
        let ranges: VecDeque<Range> =
            ranges.into_iter().flat_map(|range| reference::split(range, BLOCKS_FIRST)).collect();
        let mut events = Vec::new();
        for emitters in &Emitters::of(pools) {
            let mut left = ranges.clone();
            let failed = self.events_by_nodes(emitters, &mut left, &mut events, options).await;
            if let (Err(error), Some(portal)) = (&failed, &self.inner.portal) {
                let chain = &self.inner.chain.slug;
                tracing::debug!(chain, %error, "pools are read by the gateway");
                while let Some(range) = left.pop_front() {
                    let read = events_by_portal(portal, emitters, range, options).await;
                    // Of the two errors the one that a retry may resolve.
                    events.extend(
                        read.map_err(|own| if own.is_final() { error.clone() } else { own })?,
                    );
                }
            } else {
                // No source keeps events so old: the next source of prices is used.
                let is_cut = matches!(failed, Err(UpstreamError::HistoryCut { .. }));
                failed.or_else(|error| if is_cut { Ok(()) } else { Err(error) })?;
            }
        }
        // A stable sort: events of a block keep their order.
        events.sort_by_key(|event| event.height);
        Ok(events)
    }

    /// Queries nodes; removes ranges that were read, and leaves those that no endpoint has.
    async fn events_by_nodes(
        &self,
        emitters: &Emitters,
        left: &mut VecDeque<Range>,
        events: &mut Vec<PoolEvent>,
        options: &CallOptions,
    ) -> Result<()> {
        let (mut excluded, mut failures) = (Excluded::default(), HashMap::<EndpointId, u32>::new());
        let (mut last, mut open) = (None::<UpstreamError>, left.drain(..).collect::<BTreeSet<_>>());
        // The lowest range first: an endpoint that keeps it keeps those above.
        while let (Some(lowest), Some(highest)) = (open.first().copied(), open.last()) {
            let Some(choice) = self.log_choice((lowest.0, highest.1), &excluded.below(lowest.0))
            else {
                open.remove(&lowest);
                left.push_back(lowest);
                continue;
            };
            open = open.into_iter().flat_map(|r| reference::split(r, choice.blocks_max)).collect();
            let asked: Vec<Range> = open.iter().copied().take(QUERIES_MAX).collect();
            let read = self.ask_events(emitters, &asked, choice, &mut open, events, options).await;
            match read {
                Ok(maybe_pruned) => excluded.maybe_pruned.extend(maybe_pruned),
                Err(error) => {
                    let failed = failures.entry(choice.on).or_default();
                    *failed += 1;
                    // Ranges that were read are kept after an invalid answer.
                    if error.is_final() || *failed >= FAILURES_MAX {
                        excluded.failed.insert(choice.on);
                        self.note_log_failure(choice.on);
                    }
                    // A temporary error is kept over a final one: its node may be back soon.
                    last = last.filter(|last| !last.is_final()).or(Some(error));
                }
            }
        }
        match (left.back(), excluded.maybe_pruned.values().max()) {
            (None, _) => Ok(()),
            (Some((_, high)), Some(_)) if last.as_ref().is_none_or(UpstreamError::is_final) => {
                Err(UpstreamError::HistoryCut { first: high + 1 })
            }
            (Some(_), _) => Err(last.unwrap_or_else(|| UpstreamError::NotSupported {
                method: "eth_getLogs".to_owned(),
            })),
        }
    }

    /// Queries events; returns the endpoints that returned none and may have pruned these blocks,
    /// and the height up to which they may have.
    async fn ask_events(
        &self,
        emitters: &Emitters,
        asked: &[Range],
        choice: LogChoice,
        open: &mut BTreeSet<Range>,
        events: &mut Vec<PoolEvent>,
        options: &CallOptions,
    ) -> Result<HashMap<EndpointId, Height>> {
        let (options, base_options) = (choice.options(options), options);
        let mut calls: Vec<Call> = asked.iter().map(|range| emitters.query(*range)).collect();
        if choice.asks_head {
            calls.push(head_call());
        }
        let mut answers = self.inner.pool.batch(&calls, &options).await;
        if choice.asks_head {
            let answer = answers.pop().unwrap_or(Err(UpstreamError::NoEndpoint));
            let head = self.note_log_head(answer)?;
            let high = asked.iter().map(|range| range.1).max().unwrap_or(0);
            if head < high {
                return Err(no_logs_yet(high));
            }
        }
        self.requery_empty_ranges(&calls, &mut answers, &options).await;
        let empty = asked.iter().zip(&answers).filter_map(|(range, answer)| {
            let answer = answer.as_ref().ok().filter(|answer| is_nothing(answer))?;
            Some((*range, answer.endpoint))
        });
        let maybe_pruned =
            self.endpoints_maybe_pruned(&empty.collect(), choice, base_options).await?;
        let mut first_error = None;
        for (range, answer) in asked.iter().zip(answers) {
            let may_be_pruned = |answer: &CallResponse| {
                is_nothing(answer)
                    && [choice.on, answer.endpoint].iter().all(|on| maybe_pruned.contains_key(on))
            };
            if answer.as_ref().is_ok_and(may_be_pruned) {
                continue;
            }
            match self.read_events(answer, *range, choice) {
                Ok((found, parts)) => {
                    events.extend(found);
                    open.remove(range);
                    open.extend(parts);
                }
                Err(error) => first_error = Some(error),
            }
        }
        first_error.map_or(Ok(maybe_pruned), Err)
    }

    /// A node that has pruned old receipts returns no events and no error. Returns the endpoints
    /// without evidence that they keep the lowest block without events, and the highest such block;
    /// none if the chosen endpoint keeps it.
    async fn endpoints_maybe_pruned(
        &self,
        empty: &BTreeMap<Range, EndpointId>,
        choice: LogChoice,
        options: &CallOptions,
    ) -> Result<HashMap<EndpointId, Height>> {
        let mut maybe_pruned = HashMap::new();
        let (Some((lowest, _)), Some((top, _))) = (empty.first_key_value(), empty.last_key_value())
        else {
            return Ok(maybe_pruned);
        };
        let others: BTreeSet<EndpointId> =
            empty.values().copied().filter(|on| *on != choice.on).collect();
        for on in std::iter::once(choice.on).chain(others) {
            let kept = if let Some(kept) = self.known_depth(on, lowest.0) {
                kept
            } else {
                let choice = LogChoice { on, ..choice };
                let look = self.look_at_depth(choice, *lowest, options).await;
                look.failed.map_or(Ok(look.kept), Err)?
            };
            if kept != Kept::Yes {
                maybe_pruned.insert(on, top.0);
            } else if on == choice.on {
                break;
            }
        }
        Ok(maybe_pruned)
    }

    /// Queries ranges without events again, at another endpoint if possible: reference pools are
    /// busy, so an empty range needs confirmation. A price from more distant events would be wrong.
    async fn requery_empty_ranges(
        &self,
        calls: &[Call],
        answers: &mut [CallAnswer],
        options: &CallOptions,
    ) {
        let elsewhere = CallOptions { on: None, avoid: options.on, ..options.clone() };
        let mut open = Unconfirmed::of(answers, is_nothing);
        for options in [&elsewhere, options] {
            let again = open.calls(calls);
            if again.is_empty() {
                return;
            }
            open.take(answers, self.inner.pool.batch(&again, options).await);
        }
    }

    /// The events of a range, or the smaller ranges to query instead.
    fn read_events(
        &self,
        answer: CallAnswer,
        range: Range,
        choice: LogChoice,
    ) -> Result<(Vec<PoolEvent>, Vec<Range>)> {
        let (low, high) = range;
        let answer = match answer {
            Ok(answer) => answer,
            Err(UpstreamError::Rpc { message, endpoint, code }) => {
                let blocks = match ranges::read(&message, low, high).filter(|_| low < high) {
                    Some(Shrink::AtMost(blocks)) => {
                        self.note_log_blocks(choice.on, blocks);
                        blocks
                    }
                    Some(Shrink::To(blocks)) => blocks,
                    Some(Shrink::Half) => (high - low).div_ceil(2),
                    None => return Err(UpstreamError::Rpc { message, endpoint, code }),
                };
                return Ok((Vec::new(), reference::split(range, blocks.min(high - low).max(1))));
            }
            Err(error) => return Err(error),
        };
        let logs = self.logs_in(&answer, range)?;
        Ok((logs.into_iter().map(PoolEvent::from).collect(), Vec::new()))
    }
}

fn is_nothing(answer: &CallResponse) -> bool {
    answer.result.get() == "[]"
}

/// Endpoints that are not queried, or not for low ranges.
#[derive(Debug, Default)]
struct Excluded {
    failed: BTreeSet<EndpointId>,
    /// The height up to which each may have pruned logs.
    maybe_pruned: HashMap<EndpointId, Height>,
}

impl Excluded {
    fn below(&self, low: Height) -> BTreeSet<EndpointId> {
        let pruned = self.maybe_pruned.iter().filter(|(_, top)| low <= **top).map(|(on, _)| *on);
        self.failed.iter().copied().chain(pruned).collect()
    }
}

async fn events_by_portal(
    portal: &Pool,
    emitters: &Emitters,
    (low, high): Range,
    options: &CallOptions,
) -> Result<Vec<PoolEvent>> {
    let options = CallOptions::new(options.lane.clone());
    let (mut events, mut next) = (Vec::new(), low);
    let mut path = "/finalized-stream";
    for _ in 0..STREAMS_MAX {
        let body = emitters.portal_query((next, high)).to_string().into();
        let ask = Ask { name: path, path: path.to_owned(), query: Vec::new(), body: Some(body) };
        let reply = match portal.ask(&ask, classify_stream, &options).await {
            // Not all gateways support finalized blocks.
            Err(UpstreamError::NotSupported { .. }) if path == "/finalized-stream" => {
                path = "/stream";
                continue;
            }
            answered => answered?,
        };
        let malformed = || portal.malformed(reply.endpoint, "blocks are not those asked for");
        let blocks = portal_wire::blocks(&reply.body).ok_or_else(malformed)?;
        if !blocks.iter().all(|block| (next..=high).contains(&block.number)) {
            return Err(malformed());
        }
        let last = blocks.iter().map(|block| block.number).max().ok_or_else(malformed)?;
        for mut block in blocks {
            block.logs.sort_by_key(|log| log.index);
            events.extend(block.logs.into_iter().map(|log| PoolEvent {
                height: block.number,
                emitter: log.log.address,
                topics: log.log.topics.into_vec(),
                data: log.log.data,
            }));
        }
        if last >= high {
            return Ok(events);
        }
        next = last + 1;
    }
    Err(UpstreamError::unavailable("the gateway gives its answer in too many parts"))
}
