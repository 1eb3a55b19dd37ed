//! Fetches transactions by their position in a block. Nodes drop the index by hash long before the
//! blocks (go-ethereum: `--history.transactions`, 2,350,000 blocks by default).

use serde_json::json;
use serde_json::value::RawValue;

use super::blocks::{block_call, receipts_call};
use super::fetch::CandidateTx;
use super::{EvmSource, Past, wire};
use crate::rpc::{Call, CallOptions, CallResponse, Result};

impl EvmSource {
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
        let mut answers = self.inner.pool.batch(&calls, options).await.into_iter();
        for one in open {
            let (hash, is_placed) = (one.candidate.hash, one.candidate.index.is_some());
            if one.tx.is_none() {
                one.tx = found(answers.next(), |raw| {
                    if is_placed {
                        wire::seen(&raw).is_some().then_some(raw)
                    } else {
                        wire::transaction_in(&raw, &hash)
                    }
                });
            }
            if with_receipts && one.receipt.is_none() {
                one.receipt = found(answers.next(), |raw| wire::receipt_in(&raw, &hash));
            }
            one.settle(self.inner.chain.chain_id, with_receipts);
            // Near the head, lagging nodes may not know the hash yet.
            let is_lacked = lacked && !one.fails;
            if is_lacked && one.is_done(with_receipts) && self.is_far_down(one.candidate.block) {
                self.note_pruned(Past::Hashes, one.candidate.block);
            }
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

/// The parts of one transaction in an answer.
fn found(
    answer: Option<Result<CallResponse>>,
    read: impl FnOnce(Box<RawValue>) -> Option<Box<RawValue>>,
) -> Option<CallResponse> {
    let CallResponse { result, endpoint, request } = answer?.ok()?;
    Some(CallResponse { result: read(result)?, endpoint, request })
}
