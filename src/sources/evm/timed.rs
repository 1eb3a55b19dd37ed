//! The times of fetched transactions, from their list or from their blocks.
//!
//! Only some nodes report times in logs, and some of these are wrong; times in an index's lists are
//! one answer. So one block of each part is read too: if its time differs, or later blocks have
//! earlier times, all blocks are read. A header whose hash is not the one that its transactions name
//! may be another chain's.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{join, try_join};
use tokio::time::Instant;

use super::EvmSource;
use super::blocks::BlockTimes;
use super::discovery::Candidate;
use super::fetch::{CandidateTx, FetchResult};
use super::wire::BlockHead;
use crate::decode::evm::Word;
use crate::domain::{Height, UnixSeconds, lock};
use crate::rpc::{CallOptions, Result};
use crate::sources::chunk::RawTx;

/// Reads, each with two equal answers, after which a header is believed whose hash its transactions
/// do not name: of a chain of which no header had theirs, and of another one.
const OTHER_HEAD_READS: [u32; 2] = [1, 3];
/// Heights with as many such reads that show that blocks of the chain have two hashes: then one read
/// is enough.
const TWO_HASHES_MIN: usize = 32;
/// Heights of such headers to keep.
const OTHER_HEADS_MAX: usize = 10_000;

type ListedTimes = BTreeMap<Height, UnixSeconds>;
/// Blocks, with the hash that their transactions name.
type NamedBlocks = BTreeMap<Height, Option<Word>>;

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
        let begun = Instant::now();
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
        let untimed = fetched.iter().filter(|one| one.candidate.time.is_none());
        let named = untimed.map(|one| (one.tx.block, one.block_hash)).collect();
        let times = self.named_only(&named, (times, begun), options).await?;
        Ok(FetchResult { fetched, times, missing })
    }

    /// `None` if the block is not available; the times of logs and lists are then used unchecked.
    async fn witness(&self, height: Option<Height>, options: &CallOptions) -> Option<BlockHead> {
        self.block_at(height?, &options.failing_soon()).await.ok()?.0
    }

    /// Blocks by their headers, as `times`, without those of another chain.
    pub(super) async fn times_of(
        &self,
        blocks: &NamedBlocks,
        options: &CallOptions,
    ) -> Result<BlockTimes> {
        let begun = Instant::now();
        let times = self.times(blocks.keys().copied().collect(), options).await?;
        self.named_only(blocks, (times, begun), options).await
    }

    /// Removes headers, read since `begun`, whose hash is not the one that their transactions name.
    /// Each is read once more, and the endpoints must name this chain. Some nodes give a block two
    /// hashes (Nethermind 1.11.3): such a header counts after a few reads.
    async fn named_only(
        &self,
        blocks: &NamedBlocks,
        (mut times, begun): (BlockTimes, Instant),
        options: &CallOptions,
    ) -> Result<BlockTimes> {
        let is_named = |height: &Height, head: &BlockHead| {
            let named = blocks.get(height).copied().flatten().map(|hash| hash == head.hash);
            if named == Some(true) {
                self.inner.abilities.note_named_block();
            }
            named != Some(false)
        };
        let others: BlockTimes =
            times.extract_if(|height, (head, _)| !is_named(height, head)).collect();
        let Some((_, by)) = others.values().next() else { return Ok(times) };
        let elsewhere = CallOptions { avoid: Some(*by), ..options.clone() };
        let (mut again, mut same) =
            (self.times(others.keys().copied().collect(), &elsewhere).await?, BlockTimes::new());
        same.extend(again.extract_if(|height, (head, _)| !is_named(height, head)));
        times.extend(again);
        if same.is_empty() {
            return Ok(times);
        }
        self.confirm_chain((begun, Instant::now()), options).await?;
        same.retain(|height, (head, _)| {
            let is_same = others.get(height).is_some_and(|(first, _)| first.hash == head.hash);
            is_same && self.believes_head(*height, head.hash)
        });
        times.extend(same);
        Ok(times)
    }

    /// Counts a read in which two answers gave a header this hash, which its transactions do not
    /// name; whether that is enough.
    fn believes_head(&self, height: Height, hash: Word) -> bool {
        let [unnamed, named] = OTHER_HEAD_READS;
        let mut heads = lock(&self.inner.other_heads);
        if heads.len() >= OTHER_HEADS_MAX {
            heads.clear();
        }
        let is_usual =
            heads.values().filter(|(_, reads)| *reads >= named).count() >= TWO_HASHES_MIN;
        let wanted = if self.inner.abilities.name_blocks() && !is_usual { named } else { unnamed };
        let (known, reads) = heads.entry(height).or_insert((hash, 0));
        if *known != hash {
            (*known, *reads) = (hash, 0);
        }
        *reads += 1;
        let is_enough = *reads >= wanted;
        let chain = &self.inner.chain.slug;
        tracing::debug!(
            chain,
            height,
            is_enough,
            "a block's header has another hash than its transactions name"
        );
        is_enough
    }
}

impl FetchResult {
    /// Transactions, newest first, each with the time of its block; and those whose block no
    /// endpoint returns.
    pub(super) fn take_timed(&mut self) -> (Vec<RawTx>, Vec<(Height, Word)>) {
        let fetched = std::mem::take(&mut self.fetched);
        let (mut timed, mut untimed) = (Vec::with_capacity(fetched.len()), Vec::new());
        for one in fetched {
            match one
                .candidate
                .time
                .or_else(|| self.times.get(&one.tx.block).map(|read| read.0.time))
            {
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
    use std::sync::{Arc, Mutex};

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

    /// A node whose transactions name the hash `0x0707…` for their block.
    struct Named {
        source: EvmSource,
        headers: Arc<Mutex<Vec<Value>>>,
        chain_id: Arc<Mutex<u64>>,
    }

    /// Its answers about headers: the hash of each in turn, the last one repeated. The time of a
    /// header is its hash's first byte.
    fn named(hashes: &'static [u8]) -> Named {
        let headers = Arc::new(Mutex::new(Vec::new()));
        let chain_id = Arc::new(Mutex::new(1));
        let (asked, id) = (Arc::clone(&headers), Arc::clone(&chain_id));
        let nodes = nodes(move |_, method, params| {
            Ok(match method {
                "eth_chainId" => json!(format!("{:#x}", *lock(&id))),
                "eth_getTransactionByHash" => json!({
                    "hash": params[0], "blockNumber": "0x5", "transactionIndex": "0x0",
                    "value": "0x0", "from": hex_text(&WALLET), "to": hex_text(&[8; 20]),
                    "input": "0x", "blockHash": hex_text(&[7; 32]),
                }),
                "eth_getTransactionReceipt" => json!({
                    "transactionHash": params[0], "status": "0x1", "logs": [],
                    "blockHash": hex_text(&[7; 32]),
                }),
                "eth_getBlockByNumber" => {
                    let mut asked = lock(&asked);
                    let hash = hashes[asked.len().min(hashes.len() - 1)];
                    asked.push(params[0].clone());
                    json!({"number": params[0], "hash": hex_text(&[hash; 32]),
                           "timestamp": format!("{hash:#x}")})
                }
                _ => Value::Null,
            })
        });
        Named { source: nodes.source(&["one"]), headers, chain_id }
    }

    impl Named {
        /// The time of the transaction in a read, and the number of headers that were requested.
        async fn read(&self) -> Result<(Option<u32>, usize)> {
            let before = lock(&self.headers).len();
            let wanted = vec![CandidateTx::new(Candidate::bare([5; 32], 5))];
            let options = CallOptions::new(lane());
            let mut given = self.source.fetch_timed(wanted, &options).await?;
            let (timed, untimed) = given.take_timed();
            assert_eq!(timed.len() + untimed.len(), 1);
            Ok((timed.first().map(|tx| tx.time().0), lock(&self.headers).len() - before))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_header_that_its_transactions_do_not_name_is_read_again_and_gives_no_time() {
        let one = named(&[7, 9, 7, 9, 9, 9, 9, 8, 9, 9, 9, 9, 9, 9, 9, 9, 9]);
        assert_eq!(one.read().await, Ok((Some(7), 1)), "no request more where they agree");
        assert_eq!(one.read().await, Ok((Some(7), 2)), "the second answer is the right one");
        for read in 0..2 {
            assert_eq!(one.read().await, Ok((None, 2)), "{read}");
        }
        assert_eq!(one.read().await, Ok((None, 2)), "two answers that differ count for nothing");
        // A node may give a block two hashes.
        assert_eq!(one.read().await, Ok((Some(9), 2)));
    }

    #[tokio::test(start_paused = true)]
    async fn headers_of_a_chain_of_which_none_is_named_are_believed() {
        let one = named(&[9]);
        assert_eq!(one.read().await, Ok((Some(9), 2)));
    }

    /// As of a chain whose old blocks have other hashes than its new ones: a read takes few heights
    /// that stay unfinished, so that a large wallet would take many.
    #[tokio::test]
    async fn headers_of_a_chain_of_which_many_are_not_named_are_believed() {
        let source = named(&[9]).source;
        source.inner.abilities.note_named_block();
        let is_believed = |height| source.believes_head(height, [9; 32]);
        for height in 0..32 {
            assert_eq!([0; 3].map(|_| is_believed(height)), [false, false, true], "{height}");
        }
        assert!(is_believed(99));
    }

    #[tokio::test(start_paused = true)]
    async fn a_transaction_whose_header_is_not_believed_is_not_missing() {
        let source = named(&[9]).source;
        source.inner.abilities.note_named_block();
        let found = source.single([5; 32], &WALLET, &CallOptions::new(lane())).await;
        let error = found.unwrap_err().to_string();
        assert!(error.contains("the transaction's block"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_header_of_a_node_that_names_another_chain_discards_the_read() {
        let one = named(&[9]);
        let options = CallOptions::new(lane());
        one.source.check_chain(&options).await.unwrap();
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        *lock(&one.chain_id) = 56;
        let error = one.read().await.unwrap_err().to_string();
        assert!(error.contains("named another chain"), "{error}");
    }
}
