//! Finds transactions by `eth_getLogs`: every token transfer to or from the wallet.
//!
//! One answer proves nothing: two endpoints are queried, or one twice, and answers that differ are
//! merged and queried again. Long answers are compared with those for two parts of the range.
//! Ranges grow while answers are small and shrink by the limits that errors name. If an endpoint
//! takes only small ranges, several are queried concurrently.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::future::join;

use super::EvmSource;
use super::discovery::{Candidate, ListRequest, Window};
use super::log_asker::{Answers, DepthReply, LogAsker, SearchFault};
use super::log_nodes::{Kept, LogChoice, Pace, no_logs_yet};
use super::log_search::{LogSearch, Query, TransferSide, Witness};
use super::log_sizes::LogSizes;
use super::ranges::Shrink;
use super::receipts::TokenTransfer;
use super::wire::{self, FoundLog};
use crate::decode::evm::{Account, TRANSFER, USER_OPERATION, Word};
use crate::domain::{Doubts, Height};
use crate::rpc::{EndpointId, Result, UpstreamError};

/// Rounds of answers per window.
const ROUNDS_MAX: u32 = 10;

#[derive(Debug)]
pub(super) struct LogLister {
    source: EvmSource,
    listing: ListRequest,
    /// `None`: everything is listed.
    next_high: Option<Height>,
    sizes: LogSizes,
    /// Endpoints that failed in this read.
    without: BTreeSet<EndpointId>,
    pruned: BTreeSet<EndpointId>,
    /// Consecutive queries that timed out, of any size.
    time_outs: u32,
    /// The lowest known log of each direction.
    witnesses: HashMap<TransferSide, Witness>,
}

/// Endpoints that lack logs of a window, and those on cooldown.
type Excluded<'a> = (&'a BTreeSet<EndpointId>, &'a BTreeSet<EndpointId>);

/// Whether an error is a cooldown that the call did not wait for, which is no failure of the logs.
fn is_cooldown(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Unavailable { attempts: 0, .. })
}

/// Whether one of the two endpoints is seen to keep the queried range. One whose answers lack logs
/// of the other's does not count, nor does one that left logs out before, compared with one that
/// did not.
fn is_kept(search: &LogSearch, both: [(LogChoice, Kept); 2], doubted: [bool; 2]) -> bool {
    let [first, second] = both;
    if first.0.on == second.0.on {
        return first.1 == Kept::Yes;
    }
    let (lacking, are_alike) = (search.lacking(), doubted == [true; 2]);
    let shows = |((choice, kept), is_doubted): ((LogChoice, Kept), bool)| {
        kept == Kept::Yes
            && !choice.lacks
            && !lacking.contains(&choice.on)
            && (are_alike || !is_doubted)
    };
    both.into_iter().zip(doubted).any(shows)
}

/// Consecutive timeouts after which another endpoint is used.
const TIME_OUTS_MAX: u32 = 6;

impl LogLister {
    pub(super) fn new(source: EvmSource, listing: ListRequest) -> Self {
        let sizes = LogSizes::new(&source.inner.limits, source.log_blocks_first());
        let next_high = (listing.low <= listing.high).then_some(listing.high);
        Self {
            source,
            listing,
            next_high,
            sizes,
            without: BTreeSet::new(),
            pruned: BTreeSet::new(),
            time_outs: 0,
            witnesses: HashMap::new(),
        }
    }

    pub(super) fn set_high(&mut self, high: Height) {
        self.next_high = (self.listing.low <= high).then_some(high);
    }

    pub(super) async fn next(&mut self) -> Result<Option<Window>> {
        let Some(high) = self.next_high else { return Ok(None) };
        let mut last = UpstreamError::NotSupported { method: "eth_getLogs".to_owned() };
        let (mut lacking, mut rests) = (BTreeSet::new(), BTreeSet::new());
        while let Some(choice) = self.choice(high, (&lacking, &rests))? {
            self.sizes.limit(choice.blocks_max);
            let ranges = self.ranges(high);
            match Box::pin(self.search(&ranges, choice)).await {
                Ok((logs, doubts)) => {
                    let low = ranges.last().map_or(high, |(low, _)| *low);
                    self.next_high = low.checked_sub(1).filter(|next| *next >= self.listing.low);
                    self.time_outs = 0;
                    self.adapt(&ranges, logs.len(), choice);
                    return Ok(Some(self.window((low, high), logs, doubts)));
                }
                Err(SearchFault::Lacks) => drop(lacking.insert(choice.on)),
                // The endpoint is on cooldown: it remains a choice for the next window.
                Err(SearchFault::Failed(error)) if is_cooldown(&error) => {
                    rests.insert(choice.on);
                    last = error;
                }
                Err(SearchFault::TooMuch(shrink)) => {
                    if shrink == Shrink::Half {
                        self.source.note_refused_logs(choice.on, self.sizes.blocks);
                    }
                    self.shrink(shrink, choice);
                }
                Err(SearchFault::TooSlow) => last = self.handle_timeout(choice),
                Err(SearchFault::Pruned(error)) => {
                    last = error;
                    self.pruned.insert(choice.on);
                }
                Err(fault @ (SearchFault::Behind | SearchFault::Unindexed)) => {
                    last = no_logs_yet(high);
                    // The endpoint has the logs of lower blocks.
                    let is_low = matches!(fault, SearchFault::Unindexed);
                    let left = if is_low { &mut rests } else { &mut self.without };
                    left.insert(choice.on);
                }
                Err(SearchFault::Failed(error)) => {
                    self.without.insert(choice.on);
                    self.note_fault(choice, &error);
                    last = error;
                }
            }
        }
        // A later read or window uses the then current state.
        self.without.clear();
        Err(last)
    }

    fn ranges(&self, high: Height) -> Vec<(Height, Height)> {
        let (mut ranges, mut top) = (Vec::new(), Some(high));
        while let Some(high) = top.filter(|_| ranges.len() < self.sizes.ranges) {
            let low = high.saturating_sub(self.sizes.blocks - 1).max(self.listing.low);
            ranges.push((low, high));
            top = low.checked_sub(1).filter(|next| *next >= self.listing.low);
        }
        ranges
    }

    /// Chooses an endpoint; those that lack logs of the window come last, and their answers have a
    /// doubt.
    fn best(&self, high: Height, (lacking, rests): Excluded<'_>) -> Option<LogChoice> {
        let blocks =
            self.sizes.blocks.saturating_mul(u64::try_from(self.sizes.ranges).unwrap_or(1));
        let range = (high.saturating_sub(blocks - 1).max(self.listing.low), high);
        let without: BTreeSet<EndpointId> =
            self.without.iter().chain(&self.pruned).chain(rests).copied().collect();
        let others = without.union(lacking).copied().collect();
        let lacks = |choice| LogChoice { lacks: true, ..choice };
        let last = || self.source.log_choice(range, &without).map(lacks);
        self.source.log_choice(range, &others).or_else(last)
    }

    /// Two queries per range. The highest end at the lowest known log, if it is near.
    fn queries(&self, ranges: &[(Height, Height)], choice: LogChoice) -> Vec<Query> {
        let near = |range: &(Height, Height), side: &TransferSide| {
            let (low, high) = *range;
            let witness = self.witnesses.get(side).filter(|_| ranges.len() == 1)?;
            let length = high - low + 1;
            let most = choice.blocks_max.min(length.saturating_mul(4));
            let fits = witness.0 > high && witness.0 - low < most && self.sizes.is_free();
            fits.then_some(*witness)
        };
        let of = |range: &(Height, Height)| {
            TransferSide::BOTH.map(|s| Query::new(s, *range, near(range, &s)))
        };
        ranges.iter().flat_map(of).collect()
    }

    async fn search(
        &mut self,
        ranges: &[(Height, Height)],
        choice: LogChoice,
    ) -> Result<(Vec<FoundLog>, Doubts), SearchFault> {
        let low = ranges.last().map_or(0, |(low, _)| *low);
        let high = ranges.first().map_or(low, |(_, high)| *high);
        let mut failed = BTreeSet::new();
        let second = self.another((low, high), choice.on, &failed).unwrap_or(choice);
        let doubted = [choice, second].map(|one| self.source.is_log_node_doubted(one.on));
        let mut search = LogSearch::new(self.queries(ranges, choice), doubted[0]);
        let asker = self.asker((low, high));
        let (open, again) = (search.open(), search.wanted_again());
        let first_answer = asker.ask(&search, &open, choice);
        let second_answer = asker.ask_again(&search, &again, second, second.on == choice.on);
        let (answers, kept, again) = if asker.is_tried {
            let DepthReply { outcome, kept } = first_answer.await;
            // Concurrent queries would both be refused.
            (outcome?, kept, second_answer.await)
        } else {
            let (first, again) = join(first_answer, second_answer).await;
            (first.outcome?, first.kept, again)
        };
        self.take(&mut search, choice, answers);
        if kept == Kept::No && !choice.lacks {
            return Err(SearchFault::Lacks);
        }
        let mut kept_by_both = [(choice, kept), (second, Kept::Unknown)];
        match again.outcome {
            Ok(answers) if again.kept != Kept::No => {
                self.take(&mut search, second, answers);
                kept_by_both[1].1 = again.kept;
            }
            answer if second.on != choice.on => {
                self.note_failure(second, &answer);
                failed.insert(second.on);
            }
            _ => {}
        }
        let is_kept = is_kept(&search, kept_by_both, doubted);
        self.confirm(&mut search, (low, high), second.on, failed).await;
        let mut doubts = if search.open().is_empty() { Doubts::NONE } else { Doubts::UNCONFIRMED };
        if doubts == Doubts::NONE {
            // An endpoint that lacks known logs cannot confirm them.
            let lacks = search.lacking().contains(&choice.on);
            self.check_parts(&search, (low, high), if lacks { second } else { choice }).await?;
        }
        if !is_kept || choice.lacks {
            doubts = doubts.union(Doubts::DEPTH);
        }
        let (logs, witnesses) = search.finish(high);
        self.witnesses.extend(witnesses);
        Ok((logs, doubts))
    }

    /// Compares long answers with answers for parts of their ranges: an endpoint that truncates
    /// answers without an error returns the same logs each time.
    async fn check_parts(
        &self,
        search: &LogSearch,
        range: (Height, Height),
        choice: LogChoice,
    ) -> Result<(), SearchFault> {
        // The cap of an endpoint is no lower than an answer that was whole.
        let whole = self.source.whole_logs(choice.on);
        let many = self.source.inner.limits.log_many.max(whole + 1);
        let mut parts = search.parts(many);
        let open = parts.open();
        if open.is_empty() {
            return Ok(());
        }
        let (asker, requests) = (self.asker(range), [open]);
        let answers = asker.ask_again(&parts, &requests, choice, true).await.outcome?;
        parts.add(answers.logs, choice.on);
        if !search.is_as(&parts, many) {
            return Err(SearchFault::TooMuch(Shrink::Half));
        }
        self.source.note_whole_logs(choice.on, search.longest());
        Ok(())
    }

    /// Queries further answers until enough agree, alternating between endpoints if there are
    /// several.
    async fn confirm(
        &self,
        search: &mut LogSearch,
        range: (Height, Height),
        mut last: EndpointId,
        mut failed: BTreeSet<EndpointId>,
    ) {
        for _ in 0..ROUNDS_MAX {
            let open = search.open();
            let next = self.another(range, last, &failed).filter(|_| !open.is_empty());
            let Some(next) = next else { return };
            let reply = self.asker(range).ask(search, &open, next).await;
            match reply.outcome {
                Ok(answers) if reply.kept != Kept::No || next.lacks => {
                    self.take(search, next, answers);
                }
                answer => {
                    self.note_failure(next, &answer);
                    failed.insert(next.on);
                }
            }
            last = next.on;
        }
    }

    fn asker(&self, range: (Height, Height)) -> LogAsker<'_> {
        LogAsker {
            source: &self.source,
            wallet: self.listing.wallet,
            options: &self.listing.options,
            range,
            blocks: self.sizes.blocks,
            is_tried: self.sizes.is_tried(),
        }
    }

    fn note_failure(&self, by: LogChoice, outcome: &Result<Answers, SearchFault>) {
        if let Err(SearchFault::Failed(error)) = outcome {
            self.note_fault(by, error);
        }
    }

    fn note_fault(&self, by: LogChoice, error: &UpstreamError) {
        if !is_cooldown(error) {
            self.source.note_log_failure(by.on);
        }
    }

    fn take(&self, search: &mut LogSearch, by: LogChoice, answers: Answers) {
        search.note_apart(&answers.apart);
        search.add(answers.logs, by.on);
        for lacking in search.lacking() {
            self.source.note_logs_left_out(lacking);
        }
    }

    /// Another endpoint for the same ranges that is not much slower, else the same one again.
    fn another(
        &self,
        range: (Height, Height),
        last: EndpointId,
        failed: &BTreeSet<EndpointId>,
    ) -> Option<LogChoice> {
        let without = self.without.iter().chain(&self.pruned);
        let same: BTreeSet<EndpointId> = without.chain(failed).copied().collect();
        let mut others = same.clone();
        others.insert(last);
        let takes = |choice: &LogChoice| choice.blocks_max >= self.sizes.blocks;
        let is_good = |choice: &LogChoice| {
            choice.blocks_likely >= self.sizes.blocks
                && !choice.lacks
                && !choice.is_doubtful
                && choice.pace == Pace::Usual
        };
        // If this endpoint fails, the last one is used again.
        let replaceable = |choice: LogChoice| LogChoice {
            has_another: choice.has_another || !failed.contains(&last),
            ..choice
        };
        let other = self.source.log_choice(range, &others).filter(is_good).map(replaceable);
        other.or_else(|| self.source.log_choice(range, &same).filter(takes))
    }

    /// The next endpoint. If only endpoints remain that have pruned some of these blocks, one of
    /// them with a smaller range, down to the oldest block that they keep.
    fn choice(&mut self, high: Height, left: Excluded<'_>) -> Result<Option<LogChoice>> {
        let choice = self.best(high, left);
        if choice.is_some() || self.pruned.is_empty() {
            return Ok(choice);
        }
        self.pruned.clear();
        if self.sizes.blocks > 1 || self.sizes.ranges > 1 {
            let least = self.best(high, left);
            if let Some(choice) = least {
                self.shrink(Shrink::Half, choice);
            }
            return Ok(least);
        }
        // Endpoints that failed for another reason may keep more.
        let is_cut = self.without.is_empty() && left.1.is_empty();
        if is_cut { Err(UpstreamError::HistoryCut { first: high + 1 }) } else { Ok(None) }
    }

    /// Handles a timeout: halves the range, or changes the endpoint if no size is fast enough.
    fn handle_timeout(&mut self, choice: LogChoice) -> UpstreamError {
        self.time_outs += 1;
        if self.time_outs > TIME_OUTS_MAX || self.sizes.blocks <= 1 {
            self.time_outs = 0;
            self.without.insert(choice.on);
            self.source.note_log_failure(choice.on);
        } else {
            self.source.note_slow_logs(choice.on, self.sizes.blocks);
            self.shrink(Shrink::Half, choice);
        }
        let last = "eth_getLogs takes too long for any range".to_owned();
        UpstreamError::Unavailable { attempts: self.time_outs, last }
    }

    fn shrink(&mut self, shrink: Shrink, choice: LogChoice) {
        if let Shrink::AtMost(blocks) = shrink {
            self.source.note_log_blocks(choice.on, blocks);
        }
        self.sizes.shrink(shrink);
    }

    /// Makes ranges larger or queries more of them concurrently while answers are small.
    fn adapt(&mut self, ranges: &[(Height, Height)], logs: usize, choice: LogChoice) {
        let limits = &self.source.inner.limits;
        self.sizes.note_answered(ranges.len(), limits);
        // The lowest range may be shorter than the size.
        let longest = ranges.iter().map(|(low, high)| high - low + 1).max();
        self.source.note_answered_logs(choice.on, longest.unwrap_or(1));
        if logs >= limits.log_few {
            return;
        }
        let (blocks, is_free) = (self.sizes.blocks, self.sizes.is_free());
        if is_free && self.source.note_quick_logs(choice.on, blocks) {
            self.sizes.double();
        } else {
            self.sizes.grow(choice.blocks_max, limits);
        }
    }

    fn window(&self, (low, high): (Height, Height), logs: Vec<FoundLog>, doubts: Doubts) -> Window {
        let mut found: BTreeMap<(Height, Word), Candidate> = BTreeMap::new();
        let transfer = TokenTransfer { wallet: self.listing.wallet, is_logged: true };
        for log in logs {
            let Some(sent) = self.concerns(&log) else { continue };
            let entry = found.entry((log.block, log.hash)).or_insert(Candidate {
                index: log.index,
                transfer: Some(transfer),
                ..Candidate::bare(log.hash, log.block)
            });
            entry.time = entry.time.or(log.time);
            if sent {
                entry.sent = Some(true);
            }
        }
        let found = found.into_values().rev().collect();
        Window { low, high, found, skipped: 0, doubts }
    }

    /// Whether a log makes its transaction a candidate; the value says whether the wallet gave
    /// something by it or got it from a contract that fills orders.
    fn concerns(&self, log: &FoundLog) -> Option<bool> {
        let (from, to) = match log.topics.as_slice() {
            [TRANSFER, from, to] if log.data.iter().any(|byte| *byte != 0) => (from, to),
            [_, _, _] => return None,
            // `UserOperationEvent` has four topics, as NFT transfers do, which are no candidates.
            topics => return (topics.first() == Some(&USER_OPERATION)).then_some(true),
        };
        let wallet = Some(self.listing.wallet);
        if wire::account_of(from) == wallet && wire::account_of(to) != wallet {
            return Some(true);
        }
        let known = |account: Account| self.source.is_settlement(&account);
        Some(wire::account_of(from).is_some_and(known))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::lists_model::{WALLET, lane};
    use super::super::node_model::nodes;
    use super::super::texts::hex_text;
    use super::*;
    use crate::rpc::CallOptions;

    /// An endpoint that does not accept such long ranges gives no second answer about them, which
    /// would show the depth of the first one.
    #[tokio::test(start_paused = true)]
    async fn logs_that_an_endpoint_does_not_keep_are_read_by_shorter_ranges_of_one_that_does() {
        let nodes = nodes(|host, method, params| {
            let log = json!({
                "address": hex_text(&[7; 20]), "topics": [hex_text(&[1; 32])], "data": "0x",
                "blockNumber": params[0]["toBlock"], "transactionHash": hex_text(&[3; 32]),
                "logIndex": "0x0", "transactionIndex": "0x0", "blockHash": hex_text(&[4; 32]),
                "removed": false,
            });
            Ok(match (host, method) {
                (_, "eth_blockNumber") => json!("0x186a0"),
                ("archive", "eth_getLogs") => json!([log]),
                (_, "eth_getLogs") => json!([]),
                _ => Value::Null,
            })
        });
        let source = nodes.source(&["pruned", "archive"]);
        source.note_log_blocks(EndpointId(1), 500);
        let (low, high, options) = (1_000, 2_000, CallOptions::new(lane()));
        let mut lister = LogLister::new(source, ListRequest { wallet: WALLET, low, high, options });
        let window = lister.next().await.unwrap().unwrap();
        assert_eq!((window.low, window.doubts), (1_501, Doubts::NONE));
    }
}
