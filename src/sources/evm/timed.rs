//! The times of fetched transactions, from their list or from their blocks.
//!
//! Only some nodes report times in logs, and some of these are wrong; times in an index's lists are
//! one answer. So one block of each part is read too: if its time differs, or later blocks have
//! earlier times, all blocks are read.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{join, try_join};

use super::EvmSource;
use super::discovery::Candidate;
use super::fetch::{CandidateTx, FetchResult};
use super::wire::BlockHead;
use crate::decode::evm::Word;
use crate::domain::{Height, UnixSeconds};
use crate::rpc::{CallOptions, Result};
use crate::sources::chunk::RawTx;

type ListedTimes = BTreeMap<Height, UnixSeconds>;

impl EvmSource {
    /// Fetches with block times, as far as the list does not contain them.
    pub(super) async fn fetch_timed(
        &self,
        wanted: Vec<CandidateTx>,
        options: &CallOptions,
    ) -> Result<FetchResult> {
        let all = || wanted.iter().map(|one| &one.candidate);
        let untimed: BTreeSet<Height> =
            all().filter(|one| one.time.is_none()).map(|one| one.block).collect();
        let shown: ListedTimes =
            all().filter_map(|one| Some((one.block, listed_time(one)?))).collect();
        let witness = shown.keys().next().copied();
        let (given, witness) = join(
            try_join(self.fetch(wanted, options), self.times(untimed, options)),
            self.witness(witness, options),
        )
        .await;
        let ((mut fetched, missing), mut times) = given?;
        if !are_right(&shown, witness.as_ref()) {
            tracing::debug!("listed times are not those of the blocks");
            for one in fetched.iter_mut().filter(|one| shown.contains_key(&one.tx.block)) {
                one.candidate.time = None;
            }
            times.extend(self.times(shown.into_keys().collect(), options).await?);
        }
        Ok(FetchResult { fetched, times, missing })
    }

    /// `None` if the block is not available; the times of logs and lists are then used unchecked.
    async fn witness(&self, height: Option<Height>, options: &CallOptions) -> Option<BlockHead> {
        self.block_at(height?, &options.failing_soon()).await.ok()?.0
    }
}

impl FetchResult {
    /// Transactions, newest first, each with the time of its block; and those whose block no
    /// endpoint returns.
    pub(super) fn take_timed(&mut self) -> (Vec<RawTx>, Vec<(Height, Word)>) {
        let fetched = std::mem::take(&mut self.fetched);
        let (mut timed, mut untimed) = (Vec::with_capacity(fetched.len()), Vec::new());
        for one in fetched {
            match one.candidate.time.or_else(|| self.times.get(&one.tx.block).map(|read| read.0)) {
                Some(time) => timed.push((one.tx, time)),
                None => untimed.push((one.tx.block, one.tx.hash)),
            }
        }
        timed.sort_by_key(|(tx, _)| Reverse((tx.block, tx.index)));
        (timed.into_iter().map(|(tx, time)| RawTx::Evm(Box::new(tx), time)).collect(), untimed)
    }
}

/// The time that a log or a list shows. One with the whole transaction is of its block's header.
fn listed_time(candidate: &Candidate) -> Option<UnixSeconds> {
    candidate.time.filter(|_| candidate.whole.is_none())
}

fn are_right(shown: &ListedTimes, witness: Option<&BlockHead>) -> bool {
    let is_same = |block: &BlockHead| shown.get(&block.number).is_none_or(|at| *at == block.time);
    shown.values().is_sorted() && witness.is_none_or(is_same)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::lists_model::{WALLET, lane};
    use super::super::node_model::nodes;
    use super::super::receipts::TokenTransfer;
    use super::super::texts::hex_text;
    use super::*;

    /// The resulting times of transactions in blocks 5 and 9, whose logs or lists report these times.
    async fn timed(is_logged: bool, shown: [u32; 2]) -> Vec<(Height, UnixSeconds)> {
        let nodes = nodes(|_, method, params| {
            let id = params[0].as_str().unwrap_or_default().to_owned();
            let block = if id == hex_text(&[5; 32]) { "0x5" } else { "0x9" };
            Ok(match method {
                "eth_getTransactionByHash" => json!({
                    "hash": id, "blockNumber": block, "transactionIndex": "0x0", "value": "0x0",
                    "from": hex_text(&WALLET), "to": hex_text(&[8; 20]), "input": "0x",
                }),
                "eth_getTransactionReceipt" => json!({
                    "transactionHash": id, "status": "0x1",
                    "logs": [{"address": hex_text(&[7; 20]), "data": "0x01",
                              "topics": [hex_text(&[1; 32]), super::super::wire::topic(&WALLET)]}],
                }),
                // The time of a block is a hundred times its number.
                "eth_getBlockByNumber" => {
                    let time = if id == "0x5" { "0x1f4" } else { "0x384" };
                    json!({"number": id, "hash": hex_text(&[1; 32]), "timestamp": time})
                }
                _ => Value::Null,
            })
        });
        let transfer = is_logged.then_some(TokenTransfer { wallet: WALLET, is_logged });
        let one = |(block, time): (u8, u32)| {
            let bare = Candidate::bare([block; 32], block.into());
            let time = Some(UnixSeconds(time));
            CandidateTx::new(Candidate { time, transfer, sent: Some(true), ..bare })
        };
        let wanted = [9, 5].into_iter().zip([shown[1], shown[0]]).map(one).collect();
        let options = CallOptions::new(lane());
        let mut given = nodes.source(&["one"]).fetch_timed(wanted, &options).await.unwrap();
        let (timed, untimed) = given.take_timed();
        assert!(untimed.is_empty());
        timed.iter().map(|tx| (tx.height(), tx.time())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn times_of_logs_and_lists_that_are_not_those_of_their_blocks_are_not_believed() {
        let right = [(9, UnixSeconds(900)), (5, UnixSeconds(500))];
        for is_logged in [true, false] {
            assert_eq!(timed(is_logged, [1, 1]).await, right, "all wrong");
            assert_eq!(timed(is_logged, [500, 499]).await, right, "not in order");
            // The checked block agrees, so the other times are used.
            let believed = [(9, UnixSeconds(800)), right[1]];
            assert_eq!(timed(is_logged, [500, 800]).await, believed);
        }
    }
}
