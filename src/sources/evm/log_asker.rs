//! One endpoint's answers to the log queries of a search, with evidence that the endpoint has
//! reached the highest block and keeps logs down to the lowest.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::future::{Either, join, join_all, select};

use super::EvmSource;
use super::log_depth::{BusyQuery, DepthLook, blocks_within};
use super::log_nodes::{Kept, LogChoice};
use super::log_requests::{RequestPart, apart, are_from, sure_in, with_extras};
use super::log_search::{LogSearch, Query, TransferSide};
use super::ranges::{self, Shrink};
use super::wire::{FoundLog, head_call};
use crate::decode::evm::Account;
use crate::domain::Height;
use crate::rpc::{CallAnswer, CallOptions, CallResponse, Result, UpstreamError, classify};

/// How often queries are sent in all while their answers lack sentinel logs that a depth look
/// shows.
const SILENT_MAX: u32 = 4;
/// How often queries near the head are sent until logs of busy contracts arrive with them.
const ABOVE_MAX: u32 = 3;
/// Batch size from which one call is a sentinel, if a window needs many queries.
const SENTINEL_BATCH_MIN: usize = 8;

#[derive(Debug)]
pub(super) struct LogAsker<'a> {
    pub(super) source: &'a EvmSource,
    pub(super) wallet: Account,
    pub(super) options: &'a CallOptions,
    /// The range of the whole search.
    pub(super) range: (Height, Height),
    pub(super) blocks: u64,
    /// This many blocks are probably refused, so the endpoint's depth is checked only once they are
    /// answered.
    pub(super) is_tried: bool,
}

pub(super) struct DepthReply {
    pub(super) outcome: Result<Answers, SearchFault>,
    pub(super) kept: Kept,
}

pub(super) enum SearchFault {
    TooMuch(Shrink),
    /// The same because the query took too long.
    TooSlow,
    /// The endpoint has pruned some of these blocks.
    Pruned(UpstreamError),
    /// The endpoint has not reached the highest block.
    Behind,
    /// The endpoint has reached it, but its logs have not.
    Unindexed,
    /// The endpoint keeps no logs so old; another one may.
    Lacks,
    Failed(UpstreamError),
}

impl From<UpstreamError> for SearchFault {
    fn from(error: UpstreamError) -> Self {
        Self::Failed(error)
    }
}

type LogsByQuery = Vec<(usize, Vec<FoundLog>)>;

#[derive(Default)]
pub(super) struct Answers {
    pub(super) logs: LogsByQuery,
    /// Queries whose answers came without the head of their server.
    pub(super) apart: Vec<usize>,
    /// Queries whose answers came without sentinel logs, which exist wherever logs so old are kept.
    unproven: Vec<usize>,
}

enum Round {
    Answered(Answers),
    /// The head is near, and no request showed logs up to the highest block.
    Unshown(Height),
}

impl Answers {
    fn and(mut self, more: Self) -> Self {
        self.logs.extend(more.logs);
        self.apart.extend(more.apart);
        self
    }
}

impl LogAsker<'_> {
    /// Sends queries with a sentinel in the same requests if there is room; else checks the
    /// endpoint's depth concurrently.
    pub(super) async fn ask(
        &self,
        search: &LogSearch,
        open: &[usize],
        choice: LogChoice,
    ) -> DepthReply {
        let sentinels = self.sentinels(open.len(), choice);
        if !sentinels.is_empty() {
            return self.ask_with(search, open.to_vec(), choice, sentinels).await;
        }
        let look = self.depth(choice);
        let answers = self.answers(search, open, choice, &[]);
        let (mut outcome, (look, is_later)) = if self.is_tried {
            match answers.await {
                logs @ Ok(_) => (logs, look.await),
                outcome => return DepthReply { outcome, kept: Kept::Unknown },
            }
        } else {
            match select(pin!(answers), pin!(look)).await {
                // The queries failed, so another endpoint is used; the depth look is not needed.
                Either::Left((outcome @ Err(SearchFault::Failed(_)), _)) => {
                    return DepthReply { outcome, kept: Kept::Unknown };
                }
                Either::Left((outcome, look)) => (outcome, look.await),
                Either::Right((seen, answers)) => (answers.await, seen),
            }
        };
        let mut kept = look.kept;
        if let Some(error) = look.failed.filter(|_| choice.has_another && outcome.is_ok()) {
            return DepthReply { outcome: Err(SearchFault::Failed(error)), kept };
        }
        // An endpoint that keeps the logs now may have lacked them when it answered.
        if is_later && kept == Kept::Yes && outcome.is_ok() {
            outcome = self.answers(search, open, choice, &[]).await;
        }
        let is_believed = kept == Kept::Yes && !choice.lacks;
        if outcome.is_ok() && is_believed {
            let look = self.keeps_still(choice).await;
            kept = look.kept;
            if let Some(error) = look.failed.filter(|_| choice.has_another) {
                outcome = Err(SearchFault::Failed(error));
            }
        }
        DepthReply { outcome, kept }
    }

    /// Whether the endpoint keeps the lowest block, by earlier answers or a depth look; and whether
    /// that look was queried later than the search.
    async fn depth(&self, choice: LogChoice) -> (DepthLook, bool) {
        if let Some(kept) = self.source.known_depth(choice.on, self.range.0) {
            return (DepthLook::bare(kept), false);
        }
        let look = self.source.look_at_depth(choice, self.range, self.options).await;
        // If no busy contract has logs, a second answer would double the cost of each search.
        let is_later = look.nearby.is_some() && (self.is_tried || !look.at_once);
        (look, is_later)
    }

    /// Whether the endpoint still keeps the lowest block after it answered, as it may have pruned
    /// it meanwhile. If no logs are known there the earlier result is used: a look at blocks costs
    /// more calls than the search.
    async fn keeps_still(&self, choice: LogChoice) -> DepthLook {
        let Some(sentinel) = self.source.whole_sentinel(self.range.0, choice.blocks_max) else {
            return DepthLook::bare(Kept::Yes);
        };
        let answers =
            self.source.inner.pool.batch(&[sentinel.call], &choice.options(self.options)).await;
        if answers.iter().flatten().any(|answer| self.newest_log(answer).is_some()) {
            self.source.note_logs_kept(choice.on, self.range.0);
            return DepthLook::bare(Kept::Yes);
        }
        self.source.look_at_depth(choice, self.range, self.options).await
    }

    /// Further answers, each in its own request. `is_shown`: another answer of the endpoint shows
    /// its depth, as the first of these does for the others.
    pub(super) async fn ask_again(
        &self,
        search: &LogSearch,
        requests: &[Vec<usize>],
        choice: LogChoice,
        is_shown: bool,
    ) -> DepthReply {
        let (first, others) = requests.split_first().map_or((&[][..], requests), |(f, o)| (f, o));
        let first = async {
            if is_shown {
                let outcome = self.answers(search, first, choice, &[]).await;
                return DepthReply { outcome, kept: Kept::Yes };
            }
            self.ask(search, first, choice).await
        };
        let others = join_all(others.iter().map(|open| self.answers(search, open, choice, &[])));
        let (DepthReply { outcome, kept }, others) = join(first, others).await;
        // A failed query is repeated later.
        let outcome = outcome.map(|first| others.into_iter().flatten().fold(first, Answers::and));
        DepthReply { outcome, kept }
    }

    /// An answer without sentinel logs counts only if a depth look shows none either.
    async fn ask_with(
        &self,
        search: &LogSearch,
        mut open: Vec<usize>,
        choice: LogChoice,
        mut sentinels: Vec<BusyQuery>,
    ) -> DepthReply {
        let (mut shown, mut is_quiet) = (Answers::default(), false);
        for _ in 0..SILENT_MAX {
            let mut answers = match self.answers(search, &open, choice, &sentinels).await {
                Ok(answers) => answers,
                outcome => return DepthReply { outcome, kept: Kept::Unknown },
            };
            let unproven = std::mem::take(&mut answers.unproven);
            if unproven.is_empty() {
                self.source.note_logs_kept(choice.on, self.range.0);
                return DepthReply { outcome: Ok(shown.and(answers)), kept: Kept::Yes };
            }
            let look = self.source.look_at_depth(choice, self.range, self.options).await;
            // The endpoint may have lacked the logs when it answered: the queries are repeated.
            let was_quiet = std::mem::replace(&mut is_quiet, look.nearby.is_none());
            let is_late = look.kept == Kept::Yes && !was_quiet;
            if is_quiet && !is_late {
                return DepthReply { outcome: Ok(shown.and(answers)), kept: look.kept };
            }
            sentinels.clear();
            let nearby = look.nearby.into_iter();
            let sentinel = |nearby| self.source.sentinel(nearby, self.range.0, choice.blocks_max);
            sentinels.extend(nearby.filter_map(sentinel));
            answers.logs.retain(|(at, _)| !unproven.contains(at));
            shown = shown.and(answers);
            open = unproven;
        }
        DepthReply { outcome: Err(SearchFault::Lacks), kept: Kept::No }
    }

    fn sentinels(&self, queries: usize, choice: LogChoice) -> Vec<BusyQuery> {
        let all = self.source.sentinels(self.range.0, choice.blocks_max);
        // Each request has one query too.
        let others = 1 + usize::from(choice.asks_head) + usize::from(self.near(choice).is_some());
        let room = choice.batch.saturating_sub(others);
        let is_cheap = queries <= TransferSide::BOTH.len() || choice.batch >= SENTINEL_BATCH_MIN;
        let room = if is_cheap && queries > 0 && !choice.lacks { room } else { 0 };
        all.into_iter().rev().take(room).collect()
    }

    fn newest_log(&self, answer: &CallResponse) -> Option<Height> {
        blocks_within(answer, (0, self.range.0)).into_iter().max()
    }

    /// The answers; near the head together with logs of busy contracts, which show that the log
    /// index has caught up, as it may lag behind the reported head.
    async fn answers(
        &self,
        search: &LogSearch,
        open: &[usize],
        choice: LogChoice,
        sentinels: &[BusyQuery],
    ) -> Result<Answers, SearchFault> {
        let mut newest = self.near(choice);
        for _ in 0..ABOVE_MAX {
            match self.round(search, open, choice, (sentinels, newest)).await? {
                Round::Answered(answers) => return Ok(answers),
                Round::Unshown(head) => newest = Some(head),
            }
        }
        Err(SearchFault::Unindexed)
    }

    /// The top of the search for busy logs, if the queries are probably near the endpoint's head.
    fn near(&self, choice: LogChoice) -> Option<Height> {
        let high = self.range.1;
        let head = self.source.log_head(choice.on).filter(|head| *head < self.certain_head(high));
        self.source.nearest_busy(high).or(head).filter(|_| choice.asks_head)
    }

    /// A height so far above that a server with this head has the logs: its index lags no further.
    fn certain_head(&self, high: Height) -> Height {
        high.saturating_add(self.source.inner.chain.index_lag)
    }

    /// One answer to each query, with a head, busy logs above and a sentinel in the same requests
    /// as needed.
    async fn round(
        &self,
        search: &LogSearch,
        open: &[usize],
        choice: LogChoice,
        (sentinels, newest): (&[BusyQuery], Option<Height>),
    ) -> Result<Round, SearchFault> {
        let queries: Vec<(usize, &Query)> =
            open.iter().filter_map(|at| Some((*at, search.get(*at)?))).collect();
        let Some(high) = queries.iter().map(|(_, query)| query.high).max() else {
            return Ok(Round::Answered(Answers::default()));
        };
        let calls = queries.iter().map(|(_, query)| query.call(&self.wallet)).collect();
        let heads = choice.asks_head.then(|| (RequestPart::Head, head_call()));
        let above = newest.map(|newest| self.source.busy_above(high, newest));
        let above_call = above.iter().map(|(call, _)| (RequestPart::Above, call.clone()));
        let busy = sentinels.iter().map(|sentinel| (RequestPart::Sentinel, sentinel.call.clone()));
        let extras: Vec<_> = heads.into_iter().chain(above_call).chain(busy).collect();
        let (parts, calls) = with_extras(calls, &extras, choice.batch);
        let answers = self.source.inner.pool.batch(&calls, &choice.options(self.options)).await;
        let [mut found, mut heads, mut shown, mut busy] = [const { Vec::new() }; 4];
        for (part, answer) in parts.into_iter().zip(answers) {
            match part {
                RequestPart::Query => found.push(answer),
                RequestPart::Head => heads.push(answer),
                RequestPart::Above => shown.push(answer),
                RequestPart::Sentinel => busy.push(answer),
            }
        }
        let unproven = apart(open, &found, &self.kept_in(&busy, sentinels));
        let range = above.map_or((high, high), |(_, range)| range);
        let shown = shown.iter().flatten().filter(|one| !blocks_within(one, range).is_empty());
        let shown_in: BTreeSet<u64> = shown.map(|answer| answer.request).collect();
        let (sure_in, near) = sure_in(&heads, &shown_in, self.certain_head(high));
        let margin = self.source.inner.limits.log_head_margin;
        let is_open = choice.asks_head && !are_from(&heads, high.saturating_add(margin));
        let apart = if is_open { apart(open, &found, &sure_in) } else { Vec::new() };
        let read = |((at, query), answer): (&(usize, &Query), _)| {
            Ok((*at, self.read(answer, (query.low, query.high))?))
        };
        let logs: Result<LogsByQuery, SearchFault> = queries.iter().zip(found).map(read).collect();
        // An error for the whole batch concerns the queries, not the head.
        if matches!(logs, Ok(_) | Err(SearchFault::Failed(_))) {
            for head in heads {
                if !self.has_come(high, choice, head)? {
                    return Err(SearchFault::Behind);
                }
            }
        }
        let logs = logs?;
        let answered = Round::Answered(Answers { logs, apart, unproven });
        let is_shown = !shown_in.is_empty() || !sure_in.is_empty();
        Ok(near.filter(|_| !is_shown).map_or(answered, Round::Unshown))
    }

    /// Requests whose answer contains a sentinel's logs.
    fn kept_in(&self, busy: &[CallAnswer], sentinels: &[BusyQuery]) -> BTreeSet<u64> {
        let mut kept_in = BTreeSet::new();
        for (answer, sentinel) in busy.iter().zip(sentinels.iter().cycle()) {
            let Ok(answer) = answer else { continue };
            let Some(newest) = self.newest_log(answer) else { continue };
            kept_in.insert(answer.request);
            self.source.note_sentinel(sentinel, self.range.0, newest);
        }
        kept_in
    }

    /// Whether the endpoint's heads cover the highest block for each of its servers, which may lag
    /// by as much as one recently did.
    fn has_come(&self, high: Height, choice: LogChoice, answer: CallAnswer) -> Result<bool> {
        let head = self.source.note_log_head(answer)?;
        let reach = &self.source.inner.abilities.node_reach;
        reach.note(choice.on, (), &[head]);
        Ok(reach.reached(choice.on, ()) >= Some(high))
    }

    fn read(
        &self,
        answer: CallAnswer,
        range: (Height, Height),
    ) -> Result<Vec<FoundLog>, SearchFault> {
        let first_blocks = self.source.inner.limits.log_blocks_first;
        let answer = match answer {
            Ok(answer) => answer,
            Err(UpstreamError::Rpc { message, endpoint, code }) => {
                return Err(refused(code, message, endpoint, range));
            }
            // Large ranges may exceed the endpoint's time limit.
            Err(UpstreamError::Unavailable { attempts: 1.., .. }) if self.blocks > first_blocks => {
                return Err(SearchFault::TooMuch(Shrink::To(first_blocks)));
            }
            Err(error) => return Err(error.into()),
        };
        Ok(self.source.logs_in(&answer, range)?)
    }
}

fn refused(
    code: i64,
    message: String,
    endpoint: String,
    (low, high): (Height, Height),
) -> SearchFault {
    let error = |message| UpstreamError::Rpc { endpoint, code, message };
    if ranges::is_time_out(code, &message) {
        return SearchFault::TooSlow;
    }
    if classify::is_pruned(code, &message) {
        return SearchFault::Pruned(error(message));
    }
    match ranges::of_error(code, &message, low, high) {
        Some(shrink) if low < high => SearchFault::TooMuch(shrink),
        _ => SearchFault::Failed(error(message)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use serde_json::{Value, json};

    use super::super::lists_model::lane;
    use super::super::log_nodes::Pace;
    use super::super::node_model::{ScriptedNodes, nodes};
    use super::super::texts::hex_text;
    use super::*;
    use crate::rpc::EndpointId;

    /// One endpoint, which accepts all filters in one request.
    fn choice() -> LogChoice {
        LogChoice {
            on: EndpointId(0),
            blocks_max: 10_000,
            blocks_likely: 10_000,
            asks_head: false,
            batch: 1,
            lacks: false,
            is_doubtful: false,
            pace: Pace::Usual,
            has_another: false,
        }
    }

    /// The answers of a node with one transaction in each block: the block, its receipts, or one
    /// receipt.
    fn block_or_receipts(method: &str, params: &Value, log: &Value) -> Value {
        match method {
            "eth_getBlockByNumber" => json!({
                "number": params[0], "hash": hex_text(&[1; 32]), "timestamp": "0x1",
                "transactions": [hex_text(&[2; 32])], "logsBloom": "0x01",
            }),
            "eth_getBlockReceipts" => json!([{"logs": [log]}]),
            _ => json!({"logs": [log]}),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn that_busy_contracts_have_no_logs_is_known_down_from_a_height_alone() {
        let nodes = nodes(|_, method, params| {
            let log = json!({"topics": []});
            Ok(match method {
                // The node returns logs of single blocks only, and none of the busy contracts.
                "eth_getLogs" if params[0]["address"].is_null() => json!([log]),
                "eth_getLogs" => json!([]),
                _ => block_or_receipts(method, params, &log),
            })
        });
        let source = nodes.source(&["one"]);
        let options = CallOptions::new(lane());
        let look = source.look_at_depth(choice(), (1_000, 2_000), &options).await;
        assert_eq!(look.kept, Kept::Yes);
        let are_asked = |low| !source.sentinels(low, 10_000).is_empty();
        assert_eq!([999, 1_000, 1_001, 50_000].map(are_asked), [false, false, true, true]);
    }

    const OF_WALLET: Height = 1_500;

    /// A node that has no logs at first. `is_back`: whether a search with this filter makes them
    /// available.
    fn without_logs_until(
        is_back: impl Fn(&Value) -> bool + Send + Sync + 'static,
    ) -> Arc<ScriptedNodes> {
        let has_logs = AtomicBool::new(false);
        nodes(move |_, method, params| {
            let filter = &params[0];
            has_logs.fetch_or(method == "eth_getLogs" && is_back(filter), Ordering::Relaxed);
            let height = if filter["address"].is_null() { json!("0x5dc") } else { json!("0x3e8") };
            let log = json!({
                "address": hex_text(&[7; 20]), "topics": [hex_text(&[1; 32])], "data": "0x",
                "blockNumber": height, "transactionHash": hex_text(&[3; 32]), "logIndex": "0x0",
                "transactionIndex": "0x0", "blockHash": hex_text(&[4; 32]), "removed": false,
            });
            Ok(match method {
                "eth_getLogs" if has_logs.load(Ordering::Relaxed) => json!([log]),
                "eth_getLogs" => json!([]),
                _ => block_or_receipts(method, params, &log),
            })
        })
    }

    /// The wallet's logs in one search of blocks far below the head.
    async fn logs_of_wallet(nodes: &Arc<ScriptedNodes>, batch: usize) -> Vec<Height> {
        let (source, options) = (nodes.source(&["one"]), CallOptions::new(lane()));
        let asker = LogAsker {
            source: &source,
            wallet: [5; 20],
            options: &options,
            range: (1_000, 2_000),
            blocks: 1_001,
            is_tried: false,
        };
        let query = Query::new(TransferSide::BOTH[0], (1_000, 2_000), None);
        let search = LogSearch::new(vec![query], false);
        let reply = asker.ask(&search, &search.open(), LogChoice { batch, ..choice() }).await;
        assert_eq!(reply.kept, Kept::Yes);
        let Ok(answers) = reply.outcome else { panic!("no logs") };
        answers.logs.iter().flat_map(|(_, logs)| logs).map(|log| log.block).collect()
    }

    /// The node's old logs become available while blocks are requested to check its depth.
    #[tokio::test(start_paused = true)]
    async fn answers_from_before_a_check_without_a_busy_contract_are_requested_again() {
        let is_whole_block =
            |filter: &Value| filter["address"].is_null() && filter["topics"].is_null();
        let nodes = without_logs_until(is_whole_block);
        assert_eq!(logs_of_wallet(&nodes, 20).await, [OF_WALLET]);
    }

    /// The logs become available while those of busy contracts are searched in more blocks.
    #[tokio::test(start_paused = true)]
    async fn answers_from_before_the_depth_was_shown_are_requested_again() {
        let is_further = |filter: &Value| {
            let from = filter["fromBlock"].as_str().unwrap();
            let from = u64::from_str_radix(from.trim_start_matches("0x"), 16).unwrap();
            !filter["address"].is_null() && from + 100 < 1_000
        };
        let nodes = without_logs_until(is_further);
        assert_eq!(logs_of_wallet(&nodes, 1).await, [OF_WALLET]);
    }
}
