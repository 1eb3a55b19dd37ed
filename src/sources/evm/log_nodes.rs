//! What was learned about each endpoint's `eth_getLogs`: its largest range, the heights of its
//! logs, and recent failures.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::wire::{self, FoundLog};
use super::{EvmLimits, EvmSource};
use crate::domain::{Height, lock};
use crate::rpc::selection::SLOWER_MAX;
use crate::rpc::{
    CallAnswer, CallOptions, CallResponse, EndpointId, EndpointStatus, Result, UpstreamError,
};
use crate::sources::server_reach::RecentHead;

/// How long an endpoint counts as lacking old logs: it may be backfilled, or one answer may be
/// wrong.
const LACKING_VALID_FOR: Duration = Duration::from_secs(30);
/// How long an endpoint counts as keeping them: nodes prune blocks as new ones come, and another
/// server may answer at the same address.
const KEPT_VALID_FOR: Duration = Duration::from_secs(30);

/// Batch size from which the head of the server is requested too, even far below a head that was
/// reported this long ago: the server may have been restarted from older blocks since.
const HEAD_BATCH_MIN: usize = 8;
const HEAD_FRESH: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct LogNodes(HashMap<EndpointId, LogNode>);

type Expiring<T> = Option<(T, Instant)>;

fn if_current<T>(noted: Expiring<T>, now: Instant) -> Option<T> {
    noted.filter(|(_, until)| *until > now).map(|(seen, _)| seen)
}

#[derive(Debug, Default)]
struct LogNode {
    /// The limit that the endpoint named recently; it may be that of one of several servers.
    named: Expiring<u64>,
    /// The most topics in one position; `None`: it has refused no number of them.
    topics_max: Option<usize>,
    head: RecentHead,
    /// When the endpoint last reported a head.
    head_at: Option<Instant>,
    failed_until: Option<Instant>,
    /// A range of this many blocks timed out recently.
    slow: Expiring<u64>,
    /// A range of this many blocks was refused recently without a named limit.
    refused: Expiring<u64>,
    /// The longest range answered recently.
    answered: Expiring<u64>,
    /// A height from which up it was seen to keep logs, until this time.
    kept: Expiring<Height>,
    /// A height from which down it was seen to lack logs.
    lacking: Expiring<Height>,
    /// It was seen to leave logs out of an answer.
    doubted_until: Option<Instant>,
    /// Logs of the longest answer recently confirmed by parts: it does not cap shorter ones.
    whole: Expiring<usize>,
}

impl LogNode {
    /// The largest range, as far as known.
    fn blocks_max(&self, now: Instant) -> Option<u64> {
        let fits = if_current(self.slow, now).map(|blocks| (blocks / 2).max(1));
        if_current(self.named, now).into_iter().chain(fits).min()
    }

    /// The largest range that will probably be answered.
    fn blocks_likely(&self, now: Instant) -> Option<u64> {
        let below = if_current(self.refused, now).map(|blocks| blocks.saturating_sub(1));
        self.blocks_max(now).into_iter().chain(below).min()
    }

    fn depth(&self, low: Height, now: Instant) -> Option<Kept> {
        if if_current(self.lacking, now).is_some_and(|lacking| low <= lacking) {
            return Some(Kept::No);
        }
        if_current(self.kept, now).is_some_and(|kept| kept <= low).then_some(Kept::Yes)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    Yes,
    No,
    /// The answers decide neither.
    Unknown,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogChoice {
    pub(super) on: EndpointId,
    pub(super) blocks_max: u64,
    /// The same by recent refusals, which may have concerned only some blocks.
    pub(super) blocks_likely: u64,
    /// Some server behind the address may lag: an answer counts only with a head that is high
    /// enough.
    pub(super) asks_head: bool,
    /// Calls per request.
    pub(super) batch: usize,
    /// The endpoint is known to lack the lowest block.
    pub(super) lacks: bool,
    pub(super) is_doubtful: bool,
    pub(super) pace: Pace,
    /// Another endpoint is equally suitable, so this one is given up after few failures.
    pub(super) has_another: bool,
}

impl LogChoice {
    pub(super) fn options(self, options: &CallOptions) -> CallOptions {
        CallOptions { is_replaceable: self.has_another, ..options.first_on(self.on) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pace {
    Usual,
    /// Its answers take several times as long.
    Slow,
}

impl EvmSource {
    /// Chooses the endpoint for the logs of a range: of those that keep them and work, the one with
    /// the largest range, then a fast one, then the least busy one. `without`: those that failed in
    /// this read.
    pub(super) fn log_choice(
        &self,
        (low, high): (Height, Height),
        without: &BTreeSet<EndpointId>,
    ) -> Option<LogChoice> {
        let checked = self.inner.chain_checks.known();
        let nodes = lock(&self.inner.log_nodes);
        let now = Instant::now();
        let limits = &self.inner.limits;
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
            let is_checked = checked.contains_key(&endpoint.id);
            let is_slow = bearable.is_some_and(|bearable| endpoint.latency > bearable);
            let pace = if is_slow { Pace::Slow } else { Pace::Usual };
            let choice = choice(&endpoint, node, (low, high), (is_checked, limits, now));
            let choice = LogChoice { pace, ..choice };
            let LogChoice { lacks, is_doubtful, blocks_likely, .. } = choice;
            let order = (lacks, is_doubtful, Reverse(blocks_likely), pace, endpoint.in_flight);
            (order, choice)
        });
        let choices: Vec<_> = choices.collect();
        let good = choices.iter().filter(|(_, choice)| !choice.lacks && !choice.is_doubtful);
        let has_another = good.count() > 1;
        let best =
            choices.into_iter().min_by_key(|(order, choice)| (*order, choice.asks_head, choice.on));
        best.map(|(_, choice)| LogChoice { has_another, ..choice })
    }

    pub(super) fn note_log_head(&self, answer: CallAnswer) -> Result<Height> {
        let (answer, now) = (answer?, Instant::now());
        let head = self.head_in(&answer)?;
        self.with_log_node(answer.endpoint, |node, _| {
            node.head.note(head, now);
            node.head_at = Some(now);
        });
        Ok(head)
    }

    pub(super) fn log_head(&self, id: EndpointId) -> Option<Height> {
        lock(&self.inner.log_nodes).0.get(&id).and_then(|node| node.head.get(Instant::now()))
    }

    /// The logs of an answer; an error if one is outside the requested range.
    pub(super) fn logs_in(
        &self,
        answer: &CallResponse,
        (low, high): (Height, Height),
    ) -> Result<Vec<FoundLog>> {
        let malformed = |what| self.malformed(answer.endpoint, what);
        let logs = wire::logs(&answer.result);
        let logs = logs.ok_or_else(|| malformed("eth_getLogs gave no logs"))?;
        if logs.iter().any(|log| !(low..=high).contains(&log.block)) {
            return Err(malformed("eth_getLogs gave logs of other blocks"));
        }
        Ok(logs)
    }

    pub(super) fn note_log_blocks(&self, id: EndpointId, most: u64) {
        let now = Instant::now();
        self.with_log_node(id, |node, until| {
            let least = if_current(node.named, now).unwrap_or(most).min(most).max(1);
            node.named = Some((least, until));
        });
    }

    pub(super) fn note_answered_logs(&self, id: EndpointId, blocks: u64) {
        let now = Instant::now();
        self.with_log_node(id, |node, until| {
            let longer = node.answered.filter(|(most, until)| *until > now && *most > blocks);
            node.answered = longer.or(Some((blocks, until)));
        });
    }

    /// Blocks of a read's first range: more if an endpoint took more recently, as it does for most
    /// wallets. Short ranges show more precisely where an endpoint that lacks logs begins to have
    /// them.
    pub(super) fn log_blocks_first(&self) -> u64 {
        let (now, limits) = (Instant::now(), &self.inner.limits);
        let answered = |node: &LogNode| {
            let is_short = node.lacking.is_some();
            let blocks = if_current(node.answered, now).filter(|_| !is_short)?;
            Some(blocks.min(node.blocks_likely(now).unwrap_or(u64::MAX)))
        };
        let known = lock(&self.inner.log_nodes).0.values().filter_map(answered).max();
        known.unwrap_or(0).clamp(limits.log_blocks_first, limits.log_blocks_known)
    }

    /// Records a refusal of this many blocks without a named limit: another endpoint may take them.
    pub(super) fn note_refused_logs(&self, id: EndpointId, blocks: u64) {
        self.with_log_node(id, |node, until| {
            node.refused = Some((blocks, until));
            node.answered = node.answered.filter(|(most, _)| *most < blocks);
        });
    }

    pub(super) fn note_log_topics(&self, id: EndpointId, most: usize) {
        self.with_log_node(id, |node, _| node.topics_max = Some(most.max(1)));
    }

    /// The most topics in one position that the endpoint is known to take.
    pub(super) fn log_topics(&self, id: EndpointId) -> Option<usize> {
        lock(&self.inner.log_nodes).0.get(&id).and_then(|node| node.topics_max)
    }

    /// Records a timeout of this many blocks: all readers query half as many for a while.
    pub(super) fn note_slow_logs(&self, id: EndpointId, blocks: u64) {
        self.with_log_node(id, |node, until| node.slow = Some((blocks, until)));
    }

    /// Records a quick answer of this many blocks. If they were the most allowed after a timeout,
    /// allows twice as many and returns true.
    pub(super) fn note_quick_logs(&self, id: EndpointId, blocks: u64) -> bool {
        let mut nodes = lock(&self.inner.log_nodes);
        let slow = nodes.0.get_mut(&id).and_then(|node| node.slow.as_mut());
        let slow = slow.filter(|(slow, until)| *until > Instant::now() && blocks >= *slow / 2);
        slow.map(|(slow, _)| *slow = slow.saturating_mul(2)).is_some()
    }

    pub(super) fn note_log_failure(&self, id: EndpointId) {
        self.with_log_node(id, |node, until| node.failed_until = Some(until));
    }

    /// The lowest height from which the endpoint is known to keep logs now.
    pub(super) fn logs_kept_from(&self, id: EndpointId) -> Option<Height> {
        if_current(lock(&self.inner.log_nodes).0.get(&id)?.kept, Instant::now())
    }

    /// Whether the endpoint keeps its logs at a height, as far as known.
    pub(super) fn known_depth(&self, id: EndpointId, low: Height) -> Option<Kept> {
        lock(&self.inner.log_nodes).0.get(&id)?.depth(low, Instant::now())
    }

    /// For the status: the lowest height from which it keeps logs, one at which it lacks them, and
    /// the largest range.
    pub(super) fn known_logs(
        &self,
        id: EndpointId,
    ) -> (Option<Height>, Option<Height>, Option<u64>) {
        let (nodes, now) = (lock(&self.inner.log_nodes), Instant::now());
        let Some(node) = nodes.0.get(&id) else { return (None, None, None) };
        let kept = node.kept.map(|(height, _)| height);
        let lacking = node.lacking.map(|(height, _)| height);
        // Expiry of an observation matters only for reads; the status shows older ones too.
        let lacking = lacking.filter(|lacking| kept.is_none_or(|kept| *lacking < kept));
        (kept, lacking, node.blocks_max(now))
    }

    pub(super) fn note_logs_kept(&self, id: EndpointId, from: Height) {
        let now = Instant::now();
        self.with_log_node(id, |node, _| {
            let is_lower = if_current(node.kept, now).is_none_or(|kept| from < kept);
            node.kept = if is_lower { Some((from, now + KEPT_VALID_FOR)) } else { node.kept };
        });
    }

    pub(super) fn note_logs_lacking(&self, id: EndpointId, at: Height) {
        let until = Instant::now() + LACKING_VALID_FOR;
        let label = self.inner.pool.label(id);
        tracing::warn!(endpoint = %label, height = at, "endpoint does not keep logs as old as this");
        self.with_log_node(id, |node, _| node.lacking = Some((at, until)));
    }

    pub(super) fn note_logs_left_out(&self, id: EndpointId) {
        self.with_log_node(id, |node, until| node.doubted_until = Some(until));
    }

    /// Number of logs up to which the endpoint's answers are known to be uncapped.
    pub(super) fn whole_logs(&self, id: EndpointId) -> usize {
        let nodes = lock(&self.inner.log_nodes);
        let whole = nodes.0.get(&id).and_then(|node| if_current(node.whole, Instant::now()));
        whole.unwrap_or(0)
    }

    /// Records that an answer with this many logs held all of its range.
    pub(super) fn note_whole_logs(&self, id: EndpointId, logs: usize) {
        let logs = logs.max(self.whole_logs(id));
        self.with_log_node(id, |node, until| node.whole = Some((logs, until)));
    }

    pub(super) fn is_log_node_doubted(&self, id: EndpointId) -> bool {
        let nodes = lock(&self.inner.log_nodes);
        let until = nodes.0.get(&id).and_then(|node| node.doubted_until);
        until.is_some_and(|until| until > Instant::now())
    }

    /// Changes what is known of an endpoint; `change` gets the expiry of new observations.
    fn with_log_node(&self, id: EndpointId, change: impl FnOnce(&mut LogNode, Instant)) {
        let until = Instant::now() + self.inner.limits.contradiction_cooldown;
        change(lock(&self.inner.log_nodes).0.entry(id).or_default(), until);
    }
}

pub(super) fn no_logs_yet(high: Height) -> UpstreamError {
    UpstreamError::unavailable(format!("no node gives logs up to block {high} yet"))
}

fn choice(
    endpoint: &EndpointStatus,
    node: Option<&LogNode>,
    (low, high): (Height, Height),
    (is_checked, limits, now): (bool, &EvmLimits, Instant),
) -> LogChoice {
    let most = limits.log_blocks_max;
    let certain = high.saturating_add(limits.log_head_margin);
    let is_fresh = |at: Instant| now.duration_since(at) < HEAD_FRESH;
    let is_late = !node.and_then(|node| node.head_at).is_some_and(is_fresh);
    let fails = node.and_then(|node| node.failed_until).is_some_and(|until| until > now);
    LogChoice {
        on: endpoint.id,
        blocks_max: node.and_then(|node| node.blocks_max(now)).unwrap_or(most).min(most),
        blocks_likely: node.and_then(|node| node.blocks_likely(now)).unwrap_or(most).min(most),
        asks_head: (endpoint.batch >= HEAD_BATCH_MIN && is_late)
            || node.is_none_or(|node| node.head.get(now) < Some(certain)),
        batch: endpoint.batch,
        lacks: node.and_then(|node| node.depth(low, now)) == Some(Kept::No),
        is_doubtful: endpoint.resting || fails || !is_checked,
        pace: Pace::Usual,
        has_another: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::node_model::{NO_METHOD, nodes};
    use super::*;

    /// Servers behind one address differ by some blocks: a head that one of them has just reported
    /// does not show that the others have come to the range.
    #[tokio::test(start_paused = true)]
    async fn a_range_near_the_last_head_is_searched_with_the_head_of_its_server() {
        let (now, limits) = (Instant::now(), EvmLimits::default());
        let nodes = nodes(|_, _, _| Err(NO_METHOD));
        let endpoint = nodes.pool_of_single_calls(&["one"]).endpoints().remove(0);
        let asks = |head: Option<Height>| {
            let mut node = LogNode { head_at: head.map(|_| now), ..LogNode::default() };
            if let Some(head) = head {
                node.head.note(head, now);
            }
            let chosen = (true, &limits, now);
            choice(&endpoint, Some(&node), (10, 100), chosen).asks_head
        };
        let certain = 100 + limits.log_head_margin;
        assert!(asks(None) && asks(Some(99)) && asks(Some(100)) && asks(Some(certain - 1)));
        assert!(!asks(Some(certain)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_endpoint_keeps_is_believed_for_half_a_minute() {
        let now = Instant::now();
        let node = LogNode { kept: Some((100, now + KEPT_VALID_FOR)), ..LogNode::default() };
        let after = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(node.depth(100, after(29)), Some(Kept::Yes));
        assert_eq!(node.depth(99, after(29)), None);
        assert_eq!(node.depth(100, after(31)), None);
    }

    /// Shorter ranges that are answered often do not keep a long range in use that is refused now.
    #[tokio::test(start_paused = true)]
    async fn a_read_begins_with_a_range_that_was_answered_of_late_and_not_refused_since() {
        let source = nodes(|_, _, _| Err(NO_METHOD)).source(&["one"]);
        let (id, limits) = (EndpointId(0), EvmLimits::default());
        let usual = limits.log_blocks_first;
        assert_eq!(source.log_blocks_first(), usual);
        source.note_answered_logs(id, 80_000);
        tokio::time::advance(limits.contradiction_cooldown / 2).await;
        source.note_answered_logs(id, 5);
        assert_eq!(source.log_blocks_first(), 80_000);
        tokio::time::advance(limits.contradiction_cooldown / 2).await;
        assert_eq!(source.log_blocks_first(), usual, "it was too long ago");
        source.note_answered_logs(id, 80_000);
        source.note_refused_logs(id, 80_000);
        assert_eq!(source.log_blocks_first(), usual, "it is refused");
    }

    /// Only one of several servers behind the address may have named the limit.
    #[tokio::test(start_paused = true)]
    async fn a_limit_that_an_endpoint_names_is_believed_for_a_while() {
        let (now, cooldown) = (Instant::now(), EvmLimits::default().contradiction_cooldown);
        let node = LogNode { named: Some((10, now + cooldown)), ..LogNode::default() };
        assert_eq!(node.blocks_max(now + cooldown / 2), Some(10));
        assert_eq!(node.blocks_max(now + cooldown), None);
    }
}
