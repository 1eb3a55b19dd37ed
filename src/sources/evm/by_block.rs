//! Fetches several transactions of one block by the block and its receipts: two calls for all of
//! them, instead of two for each.

use std::collections::{BTreeSet, HashMap};

use futures_util::future::join;

use super::blocks::{BLOCK_RECEIPTS, block_call, receipts_call};
use super::fetch::CandidateTx;
use super::{EvmSource, wire};
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
        let pool = &self.inner.pool;
        let (receipts, wholes) =
            join(pool.batch(&receipts, options), pool.batch(&wholes, options)).await;
        for ((height, receipts), whole) in blocks.iter().zip(receipts).zip(wholes) {
            let (Ok(receipts), Ok(whole)) = (receipts, whole) else { continue };
            for one in open.iter_mut().filter(|one| one.candidate.block == *height) {
                one.fill_from_block(&whole, &receipts);
                one.settle(self.inner.chain.chain_id, true);
            }
        }
    }
}

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
