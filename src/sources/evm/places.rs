//! Transactions by their place. Nodes forget look-ups by hash long before they drop the blocks
//! (go-ethereum: `--history.transactions`, 2,350,000 blocks by default).

use serde_json::json;

use super::blocks::{block_call, receipts_call};
use super::fetch::CandidateTx;
use super::{EvmSource, Past, wire};
use crate::rpc::batch::{Call, CallResponse};
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;

impl EvmSource {
    /// Whether look-ups by hash found nothing at this height, not long ago.
    pub(super) fn is_forgotten(&self, one: &CandidateTx, attempt: u32) -> bool {
        attempt == 0 && self.is_pruned(Past::Hashes, one.candidate.block)
    }

    /// Fills in what blocks hold of these transactions. Never fails: not every endpoint offers it. `lacked`:
    /// look-ups by hash gave none of them.
    pub(super) async fn ask_by_place(
        &self,
        open: &mut [&mut CandidateTx],
        (with_receipts, lacked): (bool, bool),
        options: &CallOptions,
    ) {
        let (mut calls, mut places) = (Vec::new(), Vec::new());
        for (at, one) in (0..).zip(open.iter()) {
            if one.tx.is_none() {
                calls.push(by_place(one));
                places.push((at, Part::Tx));
            }
            if with_receipts && one.receipt.is_none() {
                calls.push(receipts_call(one.candidate.block));
                places.push((at, Part::Receipt));
            }
        }
        let answers = self.inner.pool.batch(&calls, options).await;
        for ((at, part), answer) in places.into_iter().zip(answers) {
            if let Some(one) = open.get_mut(at) {
                one.fill(part, answer);
            }
        }
        for one in open {
            one.settle(self.inner.chain.chain_id, with_receipts);
            // Near the head, nodes that are behind do not know it by its hash yet.
            if lacked && one.is_done(with_receipts) && self.is_far_down(one.candidate.block) {
                self.note_pruned(Past::Hashes, one.candidate.block);
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Tx,
    Receipt,
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

impl CandidateTx {
    fn fill(&mut self, part: Part, answer: Result<CallResponse, UpstreamError>) {
        let Ok(CallResponse { result, endpoint, request }) = answer else { return };
        let hash = &self.candidate.hash;
        let result = match (part, self.candidate.index) {
            (Part::Tx, Some(_)) => wire::seen(&result).is_some().then_some(result),
            (Part::Tx, None) => wire::transaction_in(&result, hash),
            (Part::Receipt, _) => wire::receipt_in(&result, hash),
        };
        let place = match part {
            Part::Tx => &mut self.tx,
            Part::Receipt => &mut self.receipt,
        };
        *place = result.map(|result| CallResponse { result, endpoint, request });
    }
}
