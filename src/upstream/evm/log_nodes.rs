//! What was learned of the endpoints' `eth_getLogs`: how large a range each takes, how far its own
//! chain has come, who failed of late.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use tokio::time::Instant;

use super::{EvmSource, lock};
use crate::domain::Height;
use crate::upstream::choice::SLOWER_MAX;
use crate::upstream::endpoint::EndpointId;

#[derive(Debug, Default)]
pub(super) struct LogNodes(HashMap<EndpointId, LogNode>);

#[derive(Debug, Default)]
struct LogNode {
    /// `None`: it has named no limit.
    blocks_max: Option<u64>,
    /// A block that it had.
    head: Height,
    failed_until: Option<Instant>,
    /// A range of so many blocks took too long of late.
    slow: Option<(u64, Instant)>,
}

impl LogNode {
    /// The most blocks that it takes, as far as is known.
    fn blocks_max(&self, now: Instant) -> Option<u64> {
        let slow = self.slow.filter(|(_, until)| *until > now);
        let fits = slow.map(|(blocks, _)| (blocks / 2).max(1));
        self.blocks_max.into_iter().chain(fits).min()
    }
}

/// An endpoint to ask for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogChoice {
    pub(super) on: EndpointId,
    pub(super) blocks_max: u64,
    /// It is not known to have come so far: the answer counts once it says so.
    pub(super) asks_head: bool,
}

impl EvmSource {
    /// Who is asked for logs up to `high`: of those that work, the one that takes the largest
    /// ranges, then a quick one, then the least busy one. `without`: those that failed in this read.
    pub(super) fn log_choice(
        &self,
        high: Height,
        without: &BTreeSet<EndpointId>,
    ) -> Option<LogChoice> {
        let checked = self.inner.vetting.known();
        let nodes = lock(&self.inner.log_nodes);
        let now = Instant::now();
        let most = self.inner.limits.log_blocks_max;
        let offers = |absent: &[String]| !absent.iter().any(|method| method == "eth_getLogs");
        let all = self.inner.pool.endpoints();
        let measured = all.iter().map(|endpoint| endpoint.latency).filter(|time| !time.is_zero());
        let bearable = measured.min().map(|quickest| quickest * SLOWER_MAX);
        let endpoints = all.into_iter().filter(|endpoint| {
            !without.contains(&endpoint.id)
                && checked.get(&endpoint.id) != Some(&false)
                && offers(&endpoint.not_offered)
        });
        let choices = endpoints.map(|endpoint| {
            let node = nodes.0.get(&endpoint.id);
            let blocks_max = node.and_then(|node| node.blocks_max(now)).unwrap_or(most).min(most);
            let fails = node.and_then(|node| node.failed_until).is_some_and(|until| until > now);
            let is_silent = !checked.contains_key(&endpoint.id);
            let asks_head = node.is_none_or(|node| node.head < high);
            let is_slow = bearable.is_some_and(|bearable| endpoint.latency > bearable);
            let is_doubtful = endpoint.resting || fails || is_silent;
            let order = (is_doubtful, Reverse(blocks_max), is_slow, endpoint.in_flight);
            (order, asks_head, LogChoice { on: endpoint.id, blocks_max, asks_head })
        });
        let best = choices.min_by_key(|(order, asks_head, choice)| (*order, *asks_head, choice.on));
        best.map(|(_, _, choice)| choice)
    }

    pub(super) fn note_log_head(&self, id: EndpointId, head: Height) {
        let mut nodes = lock(&self.inner.log_nodes);
        let node = nodes.0.entry(id).or_default();
        node.head = node.head.max(head);
    }

    pub(super) fn note_log_blocks(&self, id: EndpointId, most: u64) {
        let mut nodes = lock(&self.inner.log_nodes);
        let node = nodes.0.entry(id).or_default();
        node.blocks_max = Some(node.blocks_max.unwrap_or(most).min(most).max(1));
    }

    /// So many blocks took too long: half as many are asked for a while, by every reader.
    pub(super) fn note_slow_logs(&self, id: EndpointId, blocks: u64) {
        let until = Instant::now() + self.inner.limits.bench;
        lock(&self.inner.log_nodes).0.entry(id).or_default().slow = Some((blocks, until));
    }

    pub(super) fn note_log_failure(&self, id: EndpointId) {
        let until = Instant::now() + self.inner.limits.bench;
        lock(&self.inner.log_nodes).0.entry(id).or_default().failed_until = Some(until);
    }
}
