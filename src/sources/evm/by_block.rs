//! Several wanted transactions of one block: the block and its receipts are two calls for all of
//! them, instead of two for each.

use std::collections::BTreeMap;

use serde_json::json;

use super::fetch::CandidateTx;
use super::{EvmSource, wire};
use crate::domain::Height;
use crate::rpc::batch::{Call, CallResponse};
use crate::rpc::pool::CallOptions;

impl EvmSource {
    /// Fills in what blocks with several of these transactions hold of them. Never fails: not every
    /// endpoint offers receipts by block, and what is left is requested by its hash.
    pub(super) async fn ask_by_block(&self, open: &mut [&mut CandidateTx], options: &CallOptions) {
        let mut wanted: BTreeMap<Height, usize> = BTreeMap::new();
        for one in open.iter() {
            *wanted.entry(one.candidate.block).or_default() += 1;
        }
        let least = self.inner.limits.block_candidates_min;
        let blocks: Vec<Height> =
            wanted.into_iter().filter(|(_, count)| *count >= least).map(|(at, _)| at).collect();
        let offers_receipts = self.inner.pool.parallel(RECEIPTS, options.without) > 0;
        if blocks.is_empty() || !offers_receipts {
            return;
        }
        let receipts = |height: &Height| {
            let params = json!([format!("{height:#x}")]);
            Call { method: RECEIPTS, params }
        };
        let receipts: Vec<Call> = blocks.iter().map(receipts).collect();
        let receipts = self.inner.pool.batch(&receipts, options).await;
        // Blocks without receipts are of no use.
        let found: Vec<(Height, CallResponse)> = blocks
            .into_iter()
            .zip(receipts)
            .filter_map(|(height, answer)| Some((height, answer.ok()?)))
            .collect();
        let whole = |(height, _): &(Height, CallResponse)| {
            let params = json!([format!("{height:#x}"), true]);
            Call { method: "eth_getBlockByNumber", params }
        };
        let wholes: Vec<Call> = found.iter().map(whole).collect();
        let wholes = self.inner.pool.batch(&wholes, options).await;
        for ((height, receipts), whole) in found.iter().zip(wholes) {
            let Ok(whole) = whole else { continue };
            for one in open.iter_mut().filter(|one| one.candidate.block == *height) {
                one.fill_from_block(&whole, receipts);
                one.settle(self.inner.chain.chain_id, true);
            }
        }
    }
}

const RECEIPTS: &str = "eth_getBlockReceipts";

impl CandidateTx {
    fn fill_from_block(&mut self, block: &CallResponse, receipts: &CallResponse) {
        let hash = &self.candidate.hash;
        let of = |result, by: &CallResponse| {
            let CallResponse { endpoint, request, .. } = *by;
            CallResponse { result, endpoint, request }
        };
        let tx = wire::transaction_in(&block.result, hash).map(|result| of(result, block));
        let receipt = wire::receipt_in(&receipts.result, hash).map(|result| of(result, receipts));
        if let (Some(tx), Some(receipt)) = (tx, receipt) {
            (self.tx, self.receipt) = (Some(tx), Some(receipt));
        }
    }
}
