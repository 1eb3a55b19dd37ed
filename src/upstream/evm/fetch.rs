//! From candidates to a chunk: transactions and receipts in batches, then what moved inside, then
//! the times of their blocks.

use std::collections::{BTreeSet, HashMap};

use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::EvmSource;
use super::discovery::Candidate;
use super::native::Traced;
use super::wire;
use crate::decode::evm::{self, Account, NativeFlows, Transaction};
use crate::domain::{Height, Resume, Units, UnixSeconds};
use crate::upstream::error::UpstreamError;
use crate::upstream::pool::{Answer, Call, CallOptions};
use crate::upstream::source::{RawChunk, RawTx};

/// Candidates of some heights that become one chunk.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) wallet: Account,
    pub(super) low: Height,
    pub(super) high: Height,
    pub(super) candidates: Vec<Candidate>,
    /// How the list goes on below.
    pub(super) resume: Option<Resume>,
}

/// A candidate with what was fetched of it.
struct Fetched {
    candidate: Candidate,
    tx: Transaction,
    fee: Option<Units>,
}

impl EvmSource {
    pub(super) async fn chunk(
        self,
        batch: Batch,
        options: CallOptions,
    ) -> Result<RawChunk, UpstreamError> {
        let Batch { wallet, low, high, candidates, resume } = batch;
        let mut blocks: HashMap<Height, u32> = HashMap::new();
        for candidate in &candidates {
            *blocks.entry(candidate.block).or_default() += 1;
        }
        let (unsure, sure): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|one| one.whole.is_none() && one.sent.is_none());
        let mut sure = sure;
        sure.extend(self.worth_fetching(&wallet, unsure, &options).await?);
        let mut fetched = self.fetch(sure, &options).await?;
        fetched.retain(|one| one.tx.succeeded);
        self.add_native(&wallet, &mut fetched, &blocks, &options).await;
        let txs = self.timed(fetched, &options).await?;
        Ok(RawChunk { low, high, txs, resume, accounts: Vec::new() })
    }

    /// Of those that only brought something: the ones that the wallet sent or ran, or that came
    /// through a known contract. Costs one light call each.
    async fn worth_fetching(
        &self,
        wallet: &Account,
        candidates: Vec<Candidate>,
        options: &CallOptions,
    ) -> Result<Vec<Candidate>, UpstreamError> {
        let (tables, chain) = (self.inner.registry.evm(), &self.inner.chain);
        let heads = self.ask_all(&candidates, "eth_getTransactionByHash", options).await?;
        let mut worth = Vec::new();
        for (candidate, head) in candidates.into_iter().zip(heads) {
            let parties = wire::parties(&head.result).ok_or_else(|| {
                self.malformed(head.endpoint, "eth_getTransactionByHash gave no transaction")
            })?;
            // A wallet that is a contract is called by whoever owns it.
            let called = |to| to == *wallet || tables.is_known(chain, &to);
            if parties.from == *wallet || parties.to.is_some_and(called) {
                worth.push(candidate);
            }
        }
        Ok(worth)
    }

    async fn fetch(
        &self,
        candidates: Vec<Candidate>,
        options: &CallOptions,
    ) -> Result<Vec<Fetched>, UpstreamError> {
        let (whole, bare): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|candidate| candidate.whole.is_some());
        let mut fetched: Vec<Fetched> = whole
            .into_iter()
            .filter_map(|mut candidate| {
                let tx = *candidate.whole.take()?;
                Some(Fetched { candidate, tx, fee: None })
            })
            .collect();
        let (txs, receipts) = futures_util::future::try_join(
            self.ask_all(&bare, "eth_getTransactionByHash", options),
            self.ask_all(&bare, "eth_getTransactionReceipt", options),
        )
        .await?;
        for ((candidate, tx), receipt) in bare.into_iter().zip(txs).zip(receipts) {
            let parsed =
                evm::parse(tx.result.get().as_bytes(), receipt.result.get().as_bytes()).ok();
            let right =
                parsed.filter(|tx| tx.hash == candidate.hash && tx.block == candidate.block);
            let tx = right.ok_or_else(|| {
                self.malformed(
                    receipt.endpoint,
                    "a transaction or a receipt is not the one asked for",
                )
            })?;
            fetched.push(Fetched { candidate, tx, fee: wire::fee(&receipt.result) });
        }
        Ok(fetched)
    }

    /// One answer a candidate. What no node has yet is asked again for a while.
    async fn ask_all(
        &self,
        candidates: &[Candidate],
        method: &'static str,
        options: &CallOptions,
    ) -> Result<Vec<Answer>, UpstreamError> {
        let limits = &self.inner.limits;
        let mut answers: Vec<Option<Answer>> = candidates.iter().map(|_| None).collect();
        let mut avoid = None;
        for attempt in 0..=limits.missing_tries_max {
            let open: Vec<usize> = (0..candidates.len())
                .filter(|at| answers.get(*at).is_some_and(Option::is_none))
                .collect();
            if open.is_empty() {
                break;
            }
            if attempt > 1 {
                sleep(limits.missing_pause * attempt).await;
            }
            let calls: Vec<Call> = open
                .iter()
                .filter_map(|at| candidates.get(*at))
                .map(|candidate| Call { method, params: json!([wire::hex(&candidate.hash)]) })
                .collect();
            let options = CallOptions { avoid, ..options.clone() };
            for (at, answer) in open.into_iter().zip(self.inner.pool.batch(&calls, &options).await)
            {
                let answer = answer?;
                if is_null(&answer.result) {
                    avoid = Some(answer.endpoint);
                } else if let Some(place) = answers.get_mut(at) {
                    *place = Some(answer);
                }
            }
        }
        answers.into_iter().collect::<Option<_>>().ok_or_else(|| UpstreamError::Unavailable {
            attempts: limits.missing_tries_max,
            last: format!("a listed transaction is given by no node ({method})"),
        })
    }

    async fn add_native(
        &self,
        wallet: &Account,
        fetched: &mut [Fetched],
        blocks: &HashMap<Height, u32>,
        options: &CallOptions,
    ) {
        let mut open = Vec::new();
        for Fetched { candidate, tx, fee } in fetched {
            if let Some(calls) = candidate.calls.take() {
                tx.native = NativeFlows::Calls(calls);
            }
            if tx.native == NativeFlows::Unknown && self.may_trade(tx) {
                let alone = blocks.get(&tx.block) == Some(&1);
                open.push(Traced { tx, fee: *fee, alone });
            }
        }
        if !open.is_empty() {
            self.fill_native(wallet, open, options).await;
        }
    }

    /// Newest first, each with the time of its block.
    async fn timed(
        &self,
        fetched: Vec<Fetched>,
        options: &CallOptions,
    ) -> Result<Vec<RawTx>, UpstreamError> {
        let untimed: BTreeSet<Height> = fetched
            .iter()
            .filter(|one| one.candidate.time.is_none())
            .map(|one| one.tx.block)
            .collect();
        let times = self.times(untimed, options).await?;
        let mut timed: Vec<(Transaction, UnixSeconds)> = fetched
            .into_iter()
            .filter_map(|one| {
                let time = one.candidate.time.or_else(|| times.get(&one.tx.block).copied())?;
                Some((one.tx, time))
            })
            .collect();
        timed.sort_by_key(|(tx, _)| std::cmp::Reverse((tx.block, tx.index)));
        Ok(timed.into_iter().map(|(tx, time)| RawTx::Evm(Box::new(tx), time)).collect())
    }
}

fn is_null(raw: &RawValue) -> bool {
    raw.get().trim() == "null"
}
