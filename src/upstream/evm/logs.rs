//! Transactions by `eth_getLogs`: every token that came to or left the wallet.
//!
//! Ranges grow while answers are small and shrink by what errors say. Where an endpoint takes only
//! small ones, several are asked at once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::EvmSource;
use super::discovery::{Candidate, Listing, Window};
use super::log_nodes::LogChoice;
use super::ranges::{self, Shrink};
use super::wire::{self, FoundLog};
use crate::decode::evm::{Account, Word};
use crate::domain::{Doubts, Height};
use crate::upstream::classify;
use crate::upstream::endpoint::EndpointId;
use crate::upstream::error::UpstreamError;
use crate::upstream::pool::{Answer, Call, CallOptions};

/// keccak256 of `Transfer(address,address,uint256)`.
pub(super) const TRANSFER: &str =
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/// keccak256 of `UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)`, whose
/// second indexed part is the account (ERC-4337).
pub(super) const USER_OPERATION: &str =
    "0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f";

#[derive(Debug)]
pub(super) struct LogLister {
    source: EvmSource,
    listing: Listing,
    /// `None`: all is listed.
    next_high: Option<Height>,
    /// Blocks of the next query, and how many queries are asked at once.
    blocks: u64,
    queries: usize,
    /// A size that was too much, and windows since.
    too_much: Option<(u64, u32)>,
    /// Endpoints that failed here.
    without: BTreeSet<EndpointId>,
    /// Endpoints that do not keep blocks so old.
    pruned: BTreeSet<EndpointId>,
    /// Queries in a row that took too long, whatever their size.
    time_outs: u32,
}

/// Queries in a row that take too long after which another endpoint is asked.
const TIME_OUTS_MAX: u32 = 6;

/// What some queries came to.
enum Asked {
    Logs(Vec<FoundLog>),
    TooMuch(Shrink),
    /// The same, by the time that it takes.
    TooSlow,
    /// The endpoint does not keep some of these blocks.
    Pruned(UpstreamError),
    /// The endpoint has not come so far.
    Behind,
}

impl LogLister {
    pub(super) fn new(source: EvmSource, listing: Listing) -> Self {
        let blocks = source.inner.limits.log_blocks_first;
        let next_high = (listing.low <= listing.high).then_some(listing.high);
        Self {
            source,
            listing,
            next_high,
            blocks,
            queries: 1,
            too_much: None,
            without: BTreeSet::new(),
            pruned: BTreeSet::new(),
            time_outs: 0,
        }
    }

    pub(super) fn set_high(&mut self, high: Height) {
        self.next_high = (self.listing.low <= high).then_some(high);
    }

    pub(super) async fn next(&mut self) -> Result<Option<Window>, UpstreamError> {
        let Some(high) = self.next_high else { return Ok(None) };
        let mut last = UpstreamError::NotSupported { method: "eth_getLogs".to_owned() };
        while let Some(choice) = self.choice(high)? {
            self.blocks = self.blocks.min(choice.blocks_max).max(1);
            let ranges = self.ranges(high);
            match self.ask(&ranges, choice).await {
                Ok(Asked::Logs(logs)) => {
                    let low = ranges.last().map_or(high, |(low, _)| *low);
                    self.next_high = low.checked_sub(1).filter(|next| *next >= self.listing.low);
                    self.time_outs = 0;
                    self.adapt(logs.len(), choice);
                    return Ok(Some(self.window(low, high, logs)));
                }
                Ok(Asked::TooMuch(shrink)) => self.shrink(shrink, choice),
                Ok(Asked::TooSlow) => last = self.slow(choice),
                Ok(Asked::Pruned(error)) => {
                    last = error;
                    self.pruned.insert(choice.on);
                }
                Ok(Asked::Behind) => {
                    last = UpstreamError::Unavailable {
                        attempts: 1,
                        last: format!("no node gives logs up to block {high} yet"),
                    };
                    self.without.insert(choice.on);
                }
                Err(error) => {
                    last = error;
                    self.without.insert(choice.on);
                    self.source.note_log_failure(choice.on);
                }
            }
        }
        // A later read, or a later window, finds them as they are then.
        self.without.clear();
        Err(last)
    }

    /// The next ranges, going down.
    fn ranges(&self, high: Height) -> Vec<(Height, Height)> {
        let (mut ranges, mut top) = (Vec::new(), Some(high));
        while let Some(high) = top.filter(|_| ranges.len() < self.queries) {
            let low = high.saturating_sub(self.blocks - 1).max(self.listing.low);
            ranges.push((low, high));
            top = low.checked_sub(1).filter(|next| *next >= self.listing.low);
        }
        ranges
    }

    async fn ask(
        &self,
        ranges: &[(Height, Height)],
        choice: LogChoice,
    ) -> Result<Asked, UpstreamError> {
        let wallet = wire::topic(&self.listing.wallet);
        let mut calls: Vec<Call> = ranges
            .iter()
            .flat_map(|(low, high)| {
                let from = json!([TRANSFER, wallet]);
                let to = json!([[TRANSFER, USER_OPERATION], null, wallet]);
                [query(*low, *high, &from), query(*low, *high, &to)]
            })
            .collect();
        // Nodes answer with nothing for blocks that they do not have yet.
        if choice.asks_head {
            calls.push(Call { method: "eth_blockNumber", params: json!([]) });
        }
        let options = CallOptions { on: Some(choice.on), ..self.listing.options.clone() };
        let mut answers = self.source.inner.pool.batch(&calls, &options).await;
        let head = choice.asks_head.then(|| answers.pop()).flatten();
        let asked = self.read_all(ranges, answers);
        // One error for the whole batch is of its queries, whatever it means for the head.
        if choice.asks_head
            && matches!(asked, Ok(Asked::Logs(_)) | Err(_))
            && !self.has_come(ranges, choice, head)?
        {
            return Ok(Asked::Behind);
        }
        asked
    }

    fn read_all(
        &self,
        ranges: &[(Height, Height)],
        answers: Vec<Result<Answer, UpstreamError>>,
    ) -> Result<Asked, UpstreamError> {
        let mut logs = Vec::new();
        for (at, answer) in answers.into_iter().enumerate() {
            let (low, high) = ranges.get(at / 2).copied().unwrap_or_default();
            match self.read(answer, low, high)? {
                Asked::Logs(found) => logs.extend(found),
                other @ (Asked::TooMuch(_) | Asked::TooSlow | Asked::Pruned(_) | Asked::Behind) => {
                    return Ok(other);
                }
            }
        }
        Ok(Asked::Logs(logs))
    }

    /// Whether the endpoint says that it has the highest of these blocks.
    fn has_come(
        &self,
        ranges: &[(Height, Height)],
        choice: LogChoice,
        answer: Option<Result<Answer, UpstreamError>>,
    ) -> Result<bool, UpstreamError> {
        let answer = answer.unwrap_or(Err(UpstreamError::NoEndpoint))?;
        let head = wire::number(&answer.result).ok_or_else(|| {
            self.source.malformed(answer.endpoint, "eth_blockNumber gave no number")
        })?;
        self.source.note_log_head(choice.on, head);
        Ok(ranges.first().is_none_or(|(_, high)| head >= *high))
    }

    fn read(
        &self,
        answer: Result<Answer, UpstreamError>,
        low: Height,
        high: Height,
    ) -> Result<Asked, UpstreamError> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(UpstreamError::Rpc { message, endpoint, code }) => {
                return refused(code, message, endpoint, (low, high));
            }
            // Large ranges may take longer than an endpoint has time.
            Err(UpstreamError::Unavailable { .. }) if self.blocks > self.first_blocks() => {
                return Ok(Asked::TooMuch(Shrink::To(self.first_blocks())));
            }
            Err(error) => return Err(error),
        };
        let logs = wire::logs(&answer.result)
            .ok_or_else(|| self.source.malformed(answer.endpoint, "eth_getLogs gave no logs"))?;
        if logs.iter().any(|log| !(low..=high).contains(&log.block)) {
            let what = "eth_getLogs gave logs of other blocks";
            return Err(self.source.malformed(answer.endpoint, what));
        }
        Ok(Asked::Logs(logs))
    }

    fn first_blocks(&self) -> u64 {
        self.source.inner.limits.log_blocks_first
    }

    /// Who is asked next; where none is left but those that do not keep blocks so old, a smaller
    /// range of them, down to the oldest block that they keep.
    fn choice(&mut self, high: Height) -> Result<Option<LogChoice>, UpstreamError> {
        let without: BTreeSet<EndpointId> = self.without.union(&self.pruned).copied().collect();
        let choice = self.source.log_choice(high, &without);
        if choice.is_some() || self.pruned.is_empty() {
            return Ok(choice);
        }
        self.pruned.clear();
        if self.blocks > 1 || self.queries > 1 {
            let least = self.source.log_choice(high, &self.without);
            if let Some(choice) = least {
                self.shrink(Shrink::Half, choice);
            }
            return Ok(least);
        }
        // Endpoints that failed otherwise may keep more.
        let is_cut = self.without.is_empty();
        if is_cut { Err(UpstreamError::HistoryCut { first: high + 1 }) } else { Ok(None) }
    }

    /// Half of what took too long; another endpoint where no size is quick enough.
    fn slow(&mut self, choice: LogChoice) -> UpstreamError {
        self.time_outs += 1;
        if self.time_outs > TIME_OUTS_MAX || self.blocks <= 1 {
            self.time_outs = 0;
            self.without.insert(choice.on);
            self.source.note_log_failure(choice.on);
        } else {
            self.source.note_slow_logs(choice.on, self.blocks);
            self.shrink(Shrink::Half, choice);
        }
        let last = "eth_getLogs takes too long, whatever the range".to_owned();
        UpstreamError::Unavailable { attempts: self.time_outs, last }
    }

    /// Smaller queries, by at least one block: one of a single block is never too wide.
    fn shrink(&mut self, shrink: Shrink, choice: LogChoice) {
        let most = match shrink {
            Shrink::To(blocks) => blocks,
            Shrink::AtMost(blocks) => {
                self.source.note_log_blocks(choice.on, blocks);
                blocks
            }
            Shrink::Half => self.blocks / 2,
        };
        match shrink {
            Shrink::Half => {
                self.queries = 1;
                self.too_much = Some((self.blocks, 0));
            }
            Shrink::To(_) => self.too_much = Some((self.blocks, 0)),
            Shrink::AtMost(_) => {}
        }
        self.blocks = most.min(self.blocks.saturating_sub(1)).max(1);
    }

    /// Larger queries, or more of them at once, while answers are small.
    fn adapt(&mut self, logs: usize, choice: LogChoice) {
        let limits = &self.source.inner.limits;
        if let Some((_, windows)) = &mut self.too_much {
            *windows += 1;
        }
        // What was too much may be less elsewhere in the chain.
        self.too_much = self.too_much.filter(|(_, windows)| *windows < limits.log_windows_small);
        if logs >= limits.log_few {
            return;
        }
        let below = self.too_much.map_or(u64::MAX, |(blocks, _)| blocks.saturating_sub(1));
        let most = choice.blocks_max.min(below);
        let larger = [4, 2].map(|times| self.blocks.saturating_mul(times));
        let fits = larger.into_iter().find(|blocks| *blocks <= most);
        // A limit that is known is used to the full; one that was only run into is kept away from.
        let grown = fits.or((choice.blocks_max < below).then_some(choice.blocks_max));
        match grown.filter(|blocks| *blocks > self.blocks) {
            Some(blocks) => self.blocks = blocks,
            None => self.queries = (self.queries * 2).min(limits.log_queries_max),
        }
    }

    fn window(&self, low: Height, high: Height, logs: Vec<FoundLog>) -> Window {
        let mut found: BTreeMap<(Height, Word), Candidate> = BTreeMap::new();
        for log in logs {
            let Some(sent) = self.concerns(&log) else { continue };
            let entry = found.entry((log.block, log.hash)).or_insert(Candidate {
                hash: log.hash,
                block: log.block,
                index: log.index,
                time: None,
                whole: None,
                calls: None,
                sent: None,
            });
            entry.time = entry.time.or(log.time);
            if sent {
                entry.sent = Some(true);
            }
        }
        let found = found.into_values().rev().collect();
        Window { low, high, found, resume: None, skipped: 0, doubts: Doubts::NONE }
    }

    /// Whether a log makes its transaction a candidate, and whether the wallet gave something by it
    /// or got it from a contract that fills orders.
    fn concerns(&self, log: &FoundLog) -> Option<bool> {
        let [kind, from, to] = log.topics.as_slice() else {
            // `UserOperationEvent` has three indexed parts, as a token that is one of its kind has.
            let [kind, ..] = log.topics.as_slice() else { return None };
            return (wire::hex(kind) == USER_OPERATION).then_some(true);
        };
        if wire::hex(kind) != TRANSFER || log.data.iter().all(|byte| *byte == 0) {
            return None;
        }
        let wallet = Some(self.listing.wallet);
        if wire::account_of(from) == wallet && wire::account_of(to) != wallet {
            return Some(true);
        }
        let known = |account: Account| self.source.is_settlement(&account);
        Some(wire::account_of(from).is_some_and(known))
    }
}

/// What a refused search is about.
fn refused(
    code: i64,
    message: String,
    endpoint: String,
    (low, high): (Height, Height),
) -> Result<Asked, UpstreamError> {
    let error = |message| UpstreamError::Rpc { endpoint, code, message };
    if ranges::is_time_out(code, &message) {
        return Ok(Asked::TooSlow);
    }
    if classify::is_pruned(code, &message) {
        return Ok(Asked::Pruned(error(message)));
    }
    match ranges::of_error(code, &message, low, high) {
        Some(shrink) if low < high => Ok(Asked::TooMuch(shrink)),
        _ => Err(error(message)),
    }
}

fn query(low: Height, high: Height, topics: &Value) -> Call {
    let params = json!([{
        "fromBlock": format!("{low:#x}"),
        "toBlock": format!("{high:#x}"),
        "topics": topics,
    }]);
    Call { method: "eth_getLogs", params }
}
