//! Finds which of many wallets had token transfers, by `eth_getLogs` with lists of wallets as
//! topics.
//!
//! Scans overlap by some blocks, for endpoints whose log index lags behind their head. One endpoint
//! is queried, once.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::log_nodes::LogChoice;
use super::log_search::TransferSide;
use super::ranges::{self, Shrink};
use super::wire::{self, FoundLog, head_call};
use super::{EvmLimits, EvmSource};
use crate::decode::evm::{Account, TRANSFER, USER_OPERATION};
use crate::domain::{Address, Height};
use crate::rpc::{Call, CallOptions, CallResponse, Result, UpstreamError};
use crate::sources::reference::split;
use crate::sources::scan::{ScanTarget, Scanned, lowest_unseen};

/// The height above which each wallet is searched.
pub(crate) type Tops = HashMap<Account, Height>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    topics: usize,
    blocks: u64,
}

enum Failure {
    /// Smaller queries may succeed.
    TooMuch(Shrink),
    Endpoint(UpstreamError),
}

impl Size {
    fn shrink(self, shrink: Shrink, topics_min: usize) -> Option<Self> {
        match shrink {
            Shrink::To(blocks) | Shrink::AtMost(blocks) if blocks < self.blocks => {
                Some(Self { blocks: blocks.max(1), ..self })
            }
            Shrink::To(_) | Shrink::AtMost(_) | Shrink::Half if self.topics > topics_min => {
                Some(Self { topics: (self.topics / 2).max(topics_min), ..self })
            }
            Shrink::To(_) | Shrink::AtMost(_) | Shrink::Half => {
                (self.blocks > 1).then_some(Self { blocks: self.blocks / 2, ..self })
            }
        }
    }
}

impl EvmSource {
    pub(crate) async fn scan(
        &self,
        targets: &[ScanTarget],
        options: &CallOptions,
    ) -> Result<Scanned> {
        let limits = &self.inner.limits;
        let high = self.head(options).await?;
        let low = lowest_unseen(targets, high, limits.scan_blocks_max);
        if low > high {
            return Ok(Scanned { low, high, moved: Vec::new() });
        }
        let tops = tops(targets);
        let mut last = UpstreamError::NotSupported { method: "eth_getLogs".to_owned() };
        let (mut without, mut size) = (BTreeSet::new(), None);
        for _ in 0..limits.scan_attempts_max {
            let Some(choice) = self.log_choice((low, high), &without) else { break };
            let most = size.unwrap_or_else(|| self.size_of(choice, limits));
            match self.scan_on(choice, &tops, (low, high), most, options).await {
                Ok(logs) => {
                    let moved = moved(&tops, &logs).into_iter();
                    let moved = moved.map(|(wallet, at)| (Address::Evm(wallet), at)).collect();
                    return Ok(Scanned { low, high, moved });
                }
                Err(Failure::TooMuch(shrink)) => {
                    let smaller = most.shrink(shrink, limits.scan_topics_min);
                    match smaller {
                        Some(smaller) => self.note_scan_size(choice, shrink, smaller),
                        None => drop(without.insert(choice.on)),
                    }
                    size = smaller;
                }
                Err(Failure::Endpoint(error)) => {
                    (last, size) = (error, None);
                    without.insert(choice.on);
                }
            }
        }
        Err(last)
    }

    fn size_of(&self, choice: LogChoice, limits: &EvmLimits) -> Size {
        let known = self.log_topics(choice.on).unwrap_or(limits.scan_topics_max);
        Size { topics: known.min(limits.scan_topics_max).max(1), blocks: choice.blocks_max.max(1) }
    }

    fn note_scan_size(&self, choice: LogChoice, shrink: Shrink, size: Size) {
        if let Shrink::AtMost(_) = shrink {
            self.note_log_blocks(choice.on, size.blocks);
        }
        self.note_log_topics(choice.on, size.topics);
    }

    /// Logs of all wallets in a range, from one endpoint that has reached its top.
    async fn scan_on(
        &self,
        choice: LogChoice,
        tops: &Tops,
        (low, high): (Height, Height),
        size: Size,
        options: &CallOptions,
    ) -> Result<Vec<FoundLog>, Failure> {
        let overlap = self.inner.chain.index_lag.min(size.blocks / 2);
        let range = (low.saturating_sub(overlap), high);
        let queries = queries(tops, range, size);
        let mut calls: Vec<Call> = queries.iter().map(|(_, call)| call.clone()).collect();
        calls.push(head_call());
        let options = choice.options(options);
        let mut answers = self.inner.pool.batch(&calls, &options).await;
        let head = answers.pop().unwrap_or(Err(UpstreamError::NoEndpoint));
        let mut logs = Vec::new();
        for ((range, _), answer) in queries.iter().zip(answers) {
            let answer = answer.map_err(|error| of_error(error, *range))?;
            logs.extend(self.logs_in(&answer, *range).map_err(Failure::Endpoint)?);
        }
        self.check_head(high, head).map_err(Failure::Endpoint)?;
        Ok(logs)
    }

    /// An error if the endpoint has not reached the range's top: it returns no logs for blocks that
    /// it lacks.
    fn check_head(&self, high: Height, answer: Result<CallResponse>) -> Result<()> {
        let newest = self.note_log_head(answer)?;
        if newest < high {
            let last = format!("endpoint has blocks up to {newest} only, of {high}");
            return Err(UpstreamError::unavailable(last));
        }
        Ok(())
    }
}

pub(crate) fn tops(targets: &[ScanTarget]) -> Tops {
    let top = |target: &ScanTarget| Some((target.wallet.bytes().try_into().ok()?, target.top));
    targets.iter().filter_map(top).collect()
}

pub(crate) fn topics(tops: &Tops) -> Vec<Value> {
    let mut accounts: Vec<&Account> = tops.keys().collect();
    accounts.sort_unstable();
    accounts.into_iter().map(|account| wire::topic(account).into()).collect()
}

/// A refusal without a size may concern the number of topics.
fn of_error(error: UpstreamError, (low, high): (Height, Height)) -> Failure {
    let UpstreamError::Rpc { code, message, .. } = &error else { return Failure::Endpoint(error) };
    let is_slow = ranges::is_time_out(*code, message);
    let shrink = ranges::of_error(*code, message, low, high).filter(|_| !is_slow);
    Failure::TooMuch(shrink.unwrap_or(Shrink::Half))
}

/// Two queries per window of blocks and group of wallets.
fn queries(tops: &Tops, range: (Height, Height), size: Size) -> Vec<((Height, Height), Call)> {
    let (topics, mut queries) = (topics(tops), Vec::new());
    for range in split(range, size.blocks) {
        for group in topics.chunks(size.topics) {
            for side in TransferSide::BOTH {
                let topics = [("topics", side.topics_of(&group.into()))];
                queries.push((range, wire::logs_call(range, topics)));
            }
        }
    }
    queries
}

/// The highest height above its top at which each wallet moved a token or sent an operation.
pub(crate) fn moved(tops: &Tops, logs: &[FoundLog]) -> HashMap<Account, Height> {
    let mut moved = HashMap::new();
    for log in logs {
        for account in named(log) {
            if tops.get(&account).is_some_and(|top| log.block > *top) {
                let highest = moved.entry(account).or_insert(log.block);
                *highest = log.block.max(*highest);
            }
        }
    }
    moved
}

fn named(log: &FoundLog) -> Vec<Account> {
    match log.topics.as_slice() {
        [TRANSFER, from, to] if log.data.iter().any(|byte| *byte != 0) => {
            [from, to].into_iter().filter_map(wire::account_of).collect()
        }
        [USER_OPERATION, _, sender, ..] => wire::account_of(sender).into_iter().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Size = Size { topics: 1_000, blocks: 64 };

    #[test]
    fn what_is_too_much_shrinks_to_one_block_of_the_fewest_topics() {
        assert_eq!(FULL.shrink(Shrink::AtMost(10), 8), Some(Size { blocks: 10, ..FULL }));
        assert_eq!(FULL.shrink(Shrink::Half, 8), Some(Size { topics: 500, ..FULL }));
        assert_eq!(FULL.shrink(Shrink::To(100), 8), Some(Size { topics: 500, ..FULL }));
        let (mut size, mut steps) = (Some(FULL), 0);
        while let Some(now) = size {
            (size, steps) = (now.shrink(Shrink::Half, 8), steps + 1);
        }
        assert_eq!(steps, 14);
    }

    #[test]
    fn a_log_moves_the_wallets_that_it_names_above_their_tops() {
        let topic = |account: u8| wire::word(&wire::topic(&[account; 20])).unwrap();
        let log = |block, from, to, amount| FoundLog {
            address: [9; 20],
            topics: vec![TRANSFER, topic(from), topic(to)],
            data: vec![0, amount],
            block,
            hash: [0; 32],
            index: None,
            time: None,
        };
        let tops = Tops::from([([1; 20], 10), ([2; 20], 20)]);
        let logs = [log(15, 1, 2, 1), log(12, 3, 1, 1), log(30, 1, 2, 0)];
        assert_eq!(moved(&tops, &logs), HashMap::from([([1; 20], 15)]));
    }

    #[test]
    fn ten_thousand_wallets_take_twenty_queries() {
        let wallet = |n: u64| {
            let mut account = [0; 20];
            account[..8].copy_from_slice(&n.to_be_bytes());
            (account, 5)
        };
        let tops: Tops = (0..10_000).map(wallet).collect();
        assert_eq!(queries(&tops, (6, 60), FULL).len(), 20);
        assert_eq!(queries(&tops, (6, 70), FULL).len(), 40);
    }
}
