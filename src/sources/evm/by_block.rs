//! Fetches transactions by their blocks: several of one block by the block and its receipts, which
//! are two calls for all of them; and by position, as nodes drop the index by hash long before the
//! blocks (go-ethereum: `--history.transactions`, 2,350,000 blocks by default).

use std::collections::{BTreeSet, HashMap};

use futures_util::future::join;
use serde_json::json;
use serde_json::value::RawValue;

use super::blocks::{BLOCK_RECEIPTS, block_call, receipts_call};
use super::fetch::CandidateTx;
use super::{EvmSource, Past, wire};
use crate::domain::Height;
use crate::rpc::{Call, CallOptions, CallResponse};

impl EvmSource {
    /// Splits transactions into those of blocks that hold several of them, if an endpoint supports
    /// receipts by block, and the others.
    pub(super) fn by_block<'a>(
        &self,
        open: Vec<&'a mut CandidateTx>,
        options: &CallOptions,
    ) -> (Vec<&'a mut CandidateTx>, Vec<&'a mut CandidateTx>) {
        if self.inner.pool.parallel(BLOCK_RECEIPTS, options.without) == 0 {
            return (Vec::new(), open);
        }
        let mut wanted: HashMap<Height, usize> = HashMap::new();
        for one in &open {
            *wanted.entry(one.candidate.block).or_default() += 1;
        }
        let least = self.inner.limits.block_candidates_min;
        let is_crowded =
            |one: &&mut CandidateTx| wanted.get(&one.candidate.block).is_some_and(|n| *n >= least);
        open.into_iter().partition(is_crowded)
    }

    /// Fills in what the blocks of these transactions contain. Never fails: not every endpoint
    /// supports receipts by block, and missing parts are then queried by hash.
    pub(super) async fn ask_by_block(&self, open: &mut [&mut CandidateTx], options: &CallOptions) {
        let blocks: BTreeSet<Height> = open.iter().map(|one| one.candidate.block).collect();
        if blocks.is_empty() {
            return;
        }
        let receipts: Vec<Call> = blocks.iter().map(|height| receipts_call(*height)).collect();
        let wholes: Vec<Call> = blocks.iter().map(|height| block_call(*height, true)).collect();
        // Missing transactions are queried by hash.
        let (pool, options) = (&self.inner.pool, &options.failing_soon());
        let (receipts, wholes) =
            join(pool.batch(&receipts, options), pool.batch(&wholes, options)).await;
        for ((height, receipts), whole) in blocks.iter().zip(receipts).zip(wholes) {
            let (Ok(receipts), Ok(whole)) = (receipts, whole) else { continue };
            for one in open.iter_mut().filter(|one| one.candidate.block == *height) {
                one.fill_from_block(&whole, &receipts);
                one.settle(self.known(), true);
            }
        }
    }

    /// Whether look-ups by hash recently found nothing at this height.
    pub(super) fn is_forgotten(&self, one: &CandidateTx, attempt: u32) -> bool {
        attempt == 0 && self.is_pruned(Past::Hashes, one.candidate.block)
    }

    /// Fills in transactions from their blocks. Never fails: not every endpoint supports it.
    /// `lacked`: look-ups by hash found none of them.
    pub(super) async fn ask_by_place(
        &self,
        open: &mut [&mut CandidateTx],
        (with_receipts, lacked): (bool, bool),
        options: &CallOptions,
    ) {
        let calls = open.iter().flat_map(|one| {
            let tx = one.tx.is_none().then(|| by_place(one));
            let lacks_receipt = with_receipts && one.receipt.is_none();
            let receipt = lacks_receipt.then(|| receipts_call(one.candidate.block));
            [tx, receipt].into_iter().flatten()
        });
        let calls: Vec<Call> = calls.collect();
        // Where look-ups by hash fail, those by place may fail too.
        let fails_soon = open.iter().any(|one| one.fails);
        let options = CallOptions { fails_soon, ..options.clone() };
        let mut answers = self.inner.pool.batch(&calls, &options).await.into_iter();
        let mut answer = || answers.next()?.ok();
        for one in open {
            let (hash, is_placed) = (one.candidate.hash, one.candidate.index.is_some());
            if one.tx.is_none() {
                one.tx = answer().and_then(|answer| {
                    part(&answer, |raw| {
                        if is_placed {
                            wire::seen(raw).map(|_| raw.to_owned())
                        } else {
                            wire::transaction_in(raw, &hash)
                        }
                    })
                });
            }
            if with_receipts && one.receipt.is_none() {
                one.receipt =
                    answer().and_then(|answer| part(&answer, |raw| wire::receipt_in(raw, &hash)));
            }
            one.settle(self.known(), with_receipts);
            // Near the head, lagging nodes may not know the hash yet.
            let is_lacked = lacked && !one.fails;
            if is_lacked && one.is_done(with_receipts) && self.is_far_down(one.candidate.block) {
                self.note_pruned(Past::Hashes, one.candidate.block);
            }
        }
    }
}

impl CandidateTx {
    fn fill_from_block(&mut self, block: &CallResponse, receipts: &CallResponse) {
        let hash = &self.candidate.hash;
        let tx = part(block, |raw| wire::transaction_in(raw, hash));
        let receipt = part(receipts, |raw| wire::receipt_in(raw, hash));
        if let (Some(tx), Some(receipt)) = (tx, receipt) {
            (self.tx, self.receipt) = (Some(tx), Some(receipt));
        }
    }
}

fn by_place(one: &CandidateTx) -> Call {
    let block = one.candidate.block;
    match one.candidate.index {
        Some(index) => Call {
            method: "eth_getTransactionByBlockNumberAndIndex",
            params: json!([format!("{block:#x}"), format!("{index:#x}")]),
        },
        None => block_call(block, true),
    }
}

/// The part of an answer that concerns one transaction.
fn part(
    answer: &CallResponse,
    read: impl FnOnce(&RawValue) -> Option<Box<RawValue>>,
) -> Option<CallResponse> {
    Some(CallResponse { result: read(&answer.result)?, ..*answer })
}
