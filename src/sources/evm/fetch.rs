//! From candidates to a chunk: fetches transactions and receipts in batches, then inner movements,
//! then block times.

use std::collections::HashMap;

use futures_util::future::{join, try_join};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::abilities::Abilities;
use super::blocks::BlockTimes;
use super::discovery::Candidate;
use super::native::Traced;
use super::{EvmSource, fees, receipts, wire};
use crate::decode::evm::{self, Account, NativeFlows, Transaction, Word};
use crate::domain::{Doubts, Height, Proof, TxId, Units, Way};
use crate::rpc::{Call, CallOptions, CallResponse, EndpointId, Result, UpstreamError};
use crate::sources::chunk::{FoundTx, RawChunk};

/// Attempt at which transactions are also queried by their position, after two empty answers by
/// hash.
const BY_PLACE: u32 = 2;
/// Answers rejected because their logs do not match the bloom filter: of a chain of which no filter
/// matched any logs, and of another one.
const UNFILLED_MAX: [u32; 2] = [3, 6];

/// Candidates of a range that become one chunk.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) wallet: Account,
    pub(super) low: Height,
    pub(super) high: Height,
    pub(super) candidates: Vec<Candidate>,
    pub(super) proof: Proof,
    /// When its list was opened, and when its window was listed.
    pub(super) listed: (Instant, Instant),
}

pub(super) struct FetchedTx {
    pub(super) candidate: Candidate,
    pub(super) tx: Transaction,
    pub(super) fee: Option<Units>,
    /// The hash of its block, as far as the answers contain it.
    pub(super) block_hash: Option<Word>,
}

pub(super) struct CandidateTx {
    pub(super) candidate: Candidate,
    pub(super) tx: Option<CallResponse>,
    pub(super) receipt: Option<CallResponse>,
    done: Option<(Transaction, Option<Units>)>,
    /// Whether the last look-up by hash ended with an error.
    pub(super) fails: bool,
    /// Number of receipts whose logs did not match their bloom filter.
    unfilled: u32,
}

#[derive(Default)]
pub(super) struct FetchResult {
    pub(super) fetched: Vec<FetchedTx>,
    pub(super) times: BlockTimes,
    /// Transactions that no endpoint returns.
    pub(super) missing: Vec<(Height, Word)>,
}

impl EvmSource {
    /// The batch's chunk, if the nodes that listed it are still on this chain.
    pub(super) async fn listed_chunk(self, batch: Batch, options: CallOptions) -> Result<RawChunk> {
        let (listed, source) = (batch.listed, self.clone());
        let is_by_nodes = matches!(batch.proof.way, Way::Logs | Way::Transfers);
        let confirmed =
            async { if is_by_nodes { self.confirm_chain(listed, &options).await } else { Ok(()) } };
        let chunk = Box::pin(source.chunk(batch, options.clone()));
        // First, as the endpoint may take few calls a second.
        let ((), chunk) = try_join(confirmed, chunk).await?;
        Ok(chunk)
    }

    pub(super) async fn chunk(self, batch: Batch, options: CallOptions) -> Result<RawChunk> {
        let Batch { wallet, low, high, candidates, proof, .. } = batch;
        let mut blocks: HashMap<Height, u32> = HashMap::new();
        for candidate in &candidates {
            *blocks.entry(candidate.block).or_default() += 1;
        }
        let (unsure, sure): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|one| one.whole.is_none() && one.sent.is_none());
        let (mut given, (worthy, missing)) = try_join(
            self.fetch_timed(sure.into_iter().map(CandidateTx::new).collect(), &options),
            self.worth_fetching(&wallet, unsure, &options),
        )
        .await?;
        let more = self.fetch_timed(worthy, &options).await?;
        given.fetched.extend(more.fetched);
        given.times.extend(more.times);
        given.missing.extend(more.missing.into_iter().chain(missing));
        given.fetched.retain(|one| one.tx.succeeded);
        self.add_native(&wallet, &mut given.fetched, &blocks, &options).await;
        let is_open = self.add_producers(&wallet, &mut given, &options).await
            || self.has_empty_list((&wallet, high), proof.way, &given.fetched, &options).await
            || self.lacks_rows(&wallet, proof.way, &given.fetched);
        let is_refused = |one: &FetchedTx| one.tx.native == NativeFlows::Refused;
        // Without its payment a sale for native coin is not recognized, so such a read keeps a
        // doubt.
        let proof = if is_open || given.fetched.iter().any(is_refused) {
            proof.with(Doubts::UNCONFIRMED)
        } else {
            proof
        };
        let lacks_calls = self.lacks_calls(&given.fetched);
        if lacks_calls && proof.doubts.contains(Doubts::INNER_CALLS) && !self.accepts(proof) {
            self.leave_to_lists(&mut given.fetched);
        }
        let proof = if lacks_calls && self.awaits_calls(&given.fetched) {
            proof
        } else {
            self.clear_inner_call_doubt((&wallet, high), proof, &options).await
        };
        let (txs, untimed) = given.take_timed();
        let missing = given.missing.into_iter().chain(untimed);
        let missing = missing.map(|(height, hash)| (height, TxId::Evm(hash))).collect();
        Ok(RawChunk { low, high, txs, proof, missing, ..RawChunk::default() })
    }

    /// One transaction with its network fee; `None` if no node has it in a block. Failed ones are
    /// returned too.
    pub(crate) async fn single(
        &self,
        hash: Word,
        wallet: &Account,
        options: &CallOptions,
    ) -> Result<Option<FoundTx>> {
        let params = json!([wire::hex(&hash)]);
        let answer = self.inner.pool.call("eth_getTransactionByHash", params, options).await?;
        let Some(block) = wire::seen(&answer.result).and_then(|seen| seen.block) else {
            return Ok(None);
        };
        // No list shows the wallet's other transactions there: the block and its logs are checked.
        let alone = HashMap::from([(block, 1)]);
        let candidate = CandidateTx::new(Candidate::bare(hash, block));
        let mut given = self.fetch_timed(vec![candidate], options).await?;
        self.add_native(wallet, &mut given.fetched, &alone, options).await;
        self.add_producers(wallet, &mut given, options).await;
        if let Some(one) = given.fetched.first_mut() {
            self.verify_by_logs(wallet, &mut one.tx, options).await;
        }
        let fee = given.fetched.first().and_then(|one| one.fee);
        let (mut timed, untimed) = given.take_timed();
        if untimed.is_empty() {
            return Ok(timed.pop().map(|raw| FoundTx { raw, fee }));
        }
        Err(UpstreamError::unavailable("no endpoint gives the transaction's block"))
    }

    /// Of candidates that only brought something: those that the wallet sent or ran, or that came
    /// through a known contract. Costs one light call each.
    async fn worth_fetching(
        &self,
        wallet: &Account,
        candidates: Vec<Candidate>,
        options: &CallOptions,
    ) -> Result<(Vec<CandidateTx>, Vec<(Height, Word)>)> {
        let (tables, chain) = (self.inner.registry.evm(), &self.inner.chain);
        let mut all: Vec<CandidateTx> = candidates.into_iter().map(CandidateTx::new).collect();
        let missing = self.ask_until(&mut all, false, options).await?;
        let count = all.len();
        all.retain(|one| {
            let seen = one.tx.as_ref().and_then(|answer| wire::seen(&answer.result));
            // A contract wallet is called by its owner.
            let called = |to| to == *wallet || tables.is_known(chain, &to);
            seen.is_some_and(|seen| seen.from == *wallet || seen.to.is_some_and(called))
        });
        let skipped = count - all.len();
        if skipped > 0 {
            tracing::debug!(skipped, "transactions that only brought something");
        }
        Ok((all, missing))
    }

    pub(super) async fn fetch(
        &self,
        wanted: Vec<CandidateTx>,
        options: &CallOptions,
    ) -> Result<(Vec<FetchedTx>, Vec<(Height, Word)>)> {
        let (mut bare, mut fetched) = (Vec::new(), Vec::new());
        for mut one in wanted {
            match one.candidate.whole.take() {
                Some(tx) => {
                    let (candidate, fee, block_hash) = (one.candidate, None, None);
                    fetched.push(FetchedTx { candidate, tx: *tx, fee, block_hash });
                }
                None => bare.push(one),
            }
        }
        let missing = self.ask_until(&mut bare, true, options).await?;
        fetched.extend(bare.into_iter().filter_map(|one| {
            let (tx, fee) = one.done?;
            let mut answers = [one.receipt, one.tx].into_iter().flatten();
            let block_hash = answers.find_map(|answer| receipts::block_hash(&answer.result));
            Some(FetchedTx { candidate: one.candidate, tx, fee, block_hash })
        }));
        Ok((fetched, missing))
    }

    /// Queries transactions, and receipts where needed. What a node lacks, fails on, or returns
    /// with another block, is queried elsewhere, by its position, and repeatedly. Returns what no
    /// endpoint has.
    async fn ask_until(
        &self,
        all: &mut [CandidateTx],
        with_receipts: bool,
        options: &CallOptions,
    ) -> Result<Vec<(Height, Word)>> {
        let tries = self.inner.limits.missing_tries_max;
        let mut avoid = None;
        for attempt in 0..=tries {
            // A transaction on which endpoints fail is queried by its position, and not again after
            // that.
            let is_open = |one: &&mut CandidateTx| {
                !one.is_done(with_receipts) && (attempt <= BY_PLACE || !one.fails)
            };
            let mut open: Vec<&mut CandidateTx> = all.iter_mut().filter(is_open).collect();
            if open.is_empty() {
                break;
            }
            self.pause_for_missing(attempt).await;
            let options = CallOptions { avoid, ..options.clone() };
            let is_lacked = attempt == BY_PLACE;
            let mut placed: Vec<_> = open
                .extract_if(.., |one| is_lacked || one.fails || self.is_forgotten(one, attempt))
                .collect();
            if !placed.is_empty() {
                self.ask_by_place(&mut placed, (with_receipts, is_lacked), &options).await;
                let is_left = |one: &&mut CandidateTx| !one.is_done(with_receipts) && !one.fails;
                open.extend(placed.into_iter().filter(is_left));
            }
            if attempt == 0 && with_receipts {
                let (mut crowded, mut single) = self.by_block(open, &options);
                let ((), lacking) = join(
                    self.ask_by_block(&mut crowded, &options),
                    self.ask_by_hash(&mut single, true, &options),
                )
                .await;
                avoid = lacking?.or(avoid);
                crowded.retain(|one| !one.is_done(true));
                open = crowded;
            }
            let lacking = self.ask_by_hash(&mut open, with_receipts, &options).await?;
            avoid = lacking.or(avoid);
        }
        let left = all.iter().filter(|one| !one.is_done(with_receipts));
        let missing: Vec<_> = left.map(|one| (one.candidate.block, one.candidate.hash)).collect();
        for (height, hash) in &missing {
            let (chain, hash) = (&self.inner.chain.slug, wire::hex(hash));
            tracing::warn!(
                chain,
                height,
                hash,
                "no endpoint returns a listed transaction; it is reported as missing and requested again later"
            );
        }
        Ok(missing)
    }

    /// Queries by hash; returns an endpoint that lacks some transaction.
    async fn ask_by_hash(
        &self,
        open: &mut [&mut CandidateTx],
        with_receipts: bool,
        options: &CallOptions,
    ) -> Result<Option<EndpointId>> {
        if open.is_empty() {
            return Ok(None);
        }
        let calls: Vec<Call> = open.iter().flat_map(|one| one.calls(with_receipts)).collect();
        let probe = json!([wire::hex(&[0; 32])]);
        let mut answers = self.inner.pool.batch_of_own(&calls, &probe, options).await?.into_iter();
        let mut avoid = None;
        for one in open {
            let mut fails = false;
            for part in one.open_parts(with_receipts) {
                match answers.next().and_then(Result::ok) {
                    Some(answer) if answer.result.get().trim() == "null" => {
                        avoid = Some(answer.endpoint);
                    }
                    answer => {
                        fails |= answer.is_none();
                        *part = answer;
                    }
                }
            }
            one.fails = fails;
            if let Some(wrong) = one.settle(self.known(), with_receipts) {
                avoid = Some(wrong);
            }
        }
        Ok(avoid)
    }

    /// What answers about transactions are checked by.
    pub(super) fn known(&self) -> (Option<u64>, &Abilities) {
        (self.inner.chain.chain_id, &self.inner.abilities)
    }

    /// Waits for nodes that lag to catch up.
    pub(super) async fn pause_for_missing(&self, attempt: u32) {
        if attempt > BY_PLACE {
            sleep(self.inner.limits.missing_pause * attempt).await;
        }
    }

    /// Whether inner movements of some transaction remain unknown to nodes and to this list: a way
    /// that lists calls may have them.
    fn lacks_calls(&self, fetched: &[FetchedTx]) -> bool {
        fetched.iter().any(|one| self.lacks_native(&one.tx))
    }

    /// Whether some configured list may have such movements.
    fn awaits_calls(&self, fetched: &[FetchedTx]) -> bool {
        let mut open = fetched.iter().filter(|one| self.lacks_native(&one.tx));
        open.any(|one| self.may_list_calls(one.tx.block))
    }

    fn lacks_native(&self, tx: &Transaction) -> bool {
        matches!(tx.native, NativeFlows::Unknown | NativeFlows::Gone) && self.may_trade(tx)
    }

    /// Leaves values open that a way with calls will read, or may have read before.
    fn leave_to_lists(&self, fetched: &mut [FetchedTx]) {
        for one in fetched.iter_mut().filter(|one| self.lacks_native(&one.tx)) {
            one.tx.native = NativeFlows::Gone;
        }
    }

    async fn add_native(
        &self,
        wallet: &Account,
        fetched: &mut [FetchedTx],
        blocks: &HashMap<Height, u32>,
        options: &CallOptions,
    ) {
        let mut open = Vec::new();
        for FetchedTx { candidate, tx, fee, .. } in &mut *fetched {
            if let Some(calls) = &candidate.calls {
                tx.native = NativeFlows::Calls(calls.clone());
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

    /// Sets the block producers of trades that may depend on them. Costs a call for each block that
    /// was not read for its time. Returns whether a block was not available.
    async fn add_producers(
        &self,
        wallet: &Account,
        given: &mut FetchResult,
        options: &CallOptions,
    ) -> bool {
        let may_tip = |one: &&mut FetchedTx| {
            self.may_trade(&one.tx) && evm::may_tip(&self.inner.chain, wallet, &one.tx)
        };
        let open: Vec<&mut FetchedTx> = given.fetched.iter_mut().filter(may_tip).collect();
        let is_unread = |one: &&&mut FetchedTx| !given.times.contains_key(&one.tx.block);
        let unread = open.iter().filter(is_unread).map(|one| (one.tx.block, one.block_hash));
        let read = self.times_of(&unread.collect(), options).await;
        given.times.extend(read.unwrap_or_default());
        let mut is_open = false;
        for one in open {
            let read = given.times.get(&one.tx.block);
            is_open |= read.is_none();
            one.tx.producer = read.and_then(|(head, _)| head.producer);
        }
        is_open
    }
}

impl CandidateTx {
    pub(super) fn new(candidate: Candidate) -> Self {
        Self { candidate, tx: None, receipt: None, done: None, fails: false, unfilled: 0 }
    }

    pub(super) fn is_done(&self, with_receipt: bool) -> bool {
        if with_receipt { self.done.is_some() } else { self.tx.is_some() }
    }

    fn calls(&self, with_receipt: bool) -> impl Iterator<Item = Call> + use<> {
        let hash = wire::hex(&self.candidate.hash);
        let tx = self.tx.is_none().then_some("eth_getTransactionByHash");
        let wants_receipt = with_receipt && self.receipt.is_none();
        let receipt = wants_receipt.then_some("eth_getTransactionReceipt");
        let methods = [tx, receipt].into_iter().flatten();
        methods.map(move |method| Call { method, params: json!([hash]) })
    }

    /// Where the answers are stored, in the order of `calls`.
    fn open_parts(
        &mut self,
        with_receipt: bool,
    ) -> impl Iterator<Item = &mut Option<CallResponse>> {
        let tx = self.tx.is_none().then_some(&mut self.tx);
        let receipt = (with_receipt && self.receipt.is_none()).then_some(&mut self.receipt);
        [tx, receipt].into_iter().flatten()
    }

    /// Stores answers; rejects one that contradicts the list, and returns its endpoint.
    pub(super) fn settle(
        &mut self,
        (chain_id, abilities): (Option<u64>, &Abilities),
        with_receipt: bool,
    ) -> Option<EndpointId> {
        let tx = self.tx.as_ref()?;
        let (hash, block) = (self.candidate.hash, self.candidate.block);
        let is_listed = |seen: &wire::TxHeader| seen.hash == hash && seen.block == Some(block);
        if !wire::seen(&tx.result).is_some_and(|seen| is_listed(&seen)) {
            return self.tx.take().map(|answer| answer.endpoint);
        }
        let receipt = self.receipt.as_ref().filter(|_| with_receipt)?;
        let parsed = evm::parse(tx.result.get().as_bytes(), receipt.result.get().as_bytes());
        if let Some(parsed) =
            parsed.ok().filter(|parsed| self.is_sound((chain_id, abilities), parsed))
        {
            self.done = Some((parsed, fees::fee(chain_id, &receipt.result)));
            return None;
        }
        self.unfilled += 1;
        self.tx = None;
        self.receipt.take().map(|answer| answer.endpoint)
    }

    /// Whether the answers are consistent with each other and with the list. Some chains' bloom
    /// filters do not match their logs: a mismatch is accepted after a few answers.
    fn is_sound(
        &self,
        (chain_id, abilities): (Option<u64>, &Abilities),
        parsed: &Transaction,
    ) -> bool {
        let (Some(tx), Some(receipt)) = (&self.tx, &self.receipt) else { return false };
        // One answer may have lost the log.
        let is_listed = self.candidate.transfer.is_none_or(|transfer| {
            transfer.is_in(parsed) || (self.unfilled > 0 && transfer.may_be_native(parsed))
        });
        let filled = receipts::fills_filter(&receipt.result, &parsed.logs);
        let is_taken = || {
            let [unknown, known] = UNFILLED_MAX;
            self.unfilled >= if abilities.fill_filters() { known } else { unknown }
        };
        if filled == Some(true) {
            abilities.note_filled_filter();
        }
        is_listed
            && receipts::are_of_one(chain_id, [&tx.result, &receipt.result], parsed)
            && (filled != Some(false) || is_taken())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::value::to_raw_value;

    use super::super::Discovery;
    use super::super::lists_model::lane;
    use super::super::node_model::nodes;
    use super::super::receipts::TokenTransfer;
    use super::super::texts::hex_text;
    use super::*;
    use crate::decode::evm::TRANSFER;

    const WALLET: Account = [5; 20];

    /// Settles the answers about a purchase for native coin, whose received token is on a list.
    /// `has_log`: whether the receipt holds the log of its transfer.
    fn settled(one: &mut CandidateTx, has_log: bool) -> Option<EndpointId> {
        settled_by(&Abilities::default(), one, (has_log, false))
    }

    /// The bits of that log in a bloom filter, as the Yellow Paper (4.4.3) has them.
    const BITS: [usize; 12] = [269, 481, 524, 744, 798, 1048, 1060, 1163, 1170, 1241, 1443, 1821];

    fn settled_by(
        abilities: &Abilities,
        one: &mut CandidateTx,
        (has_log, has_filter): (bool, bool),
    ) -> Option<EndpointId> {
        let mut filter = [0; 256];
        for bit in BITS.into_iter().filter(|_| has_filter) {
            filter[255 - bit / 8] |= 1_u8 << (bit % 8);
        }
        let hash = hex_text(&[1; 32]);
        let topics = [hex_text(&TRANSFER), hex_text(&[0; 32]), wire::topic(&WALLET)];
        let log = json!({"address": hex_text(&[7; 20]), "topics": topics, "data": "0x01"});
        let logs = if has_log { vec![log] } else { Vec::new() };
        let tx = json!({
            "hash": hash, "blockNumber": "0x9", "transactionIndex": "0x0", "value": "0x64",
            "from": hex_text(&WALLET), "to": hex_text(&[8; 20]), "input": "0x",
        });
        let receipt = json!({
            "transactionHash": hash, "status": "0x1", "logs": logs, "logsBloom": hex_text(&filter),
        });
        let answer = |result| {
            let result = to_raw_value(&result).unwrap();
            Some(CallResponse { result, endpoint: EndpointId(3), request: 1 })
        };
        (one.tx, one.receipt) = (answer(tx), answer(receipt));
        one.settle((Some(1), abilities), true)
    }

    /// On some chains filters are not those of logs. Where one was, a receipt that does not fill
    /// its own lacks some.
    #[test]
    fn a_receipt_that_does_not_fill_its_filter_takes_more_answers_where_others_do() {
        let bare = || CandidateTx::new(Candidate::bare([1; 32], 9));
        for (has_shown, rejected) in [(None, 3), (Some((true, false)), 3), (Some((true, true)), 6)]
        {
            let abilities = Abilities::default();
            if let Some(shown) = has_shown {
                assert_eq!(settled_by(&abilities, &mut bare(), shown), None);
            }
            let mut one = bare();
            for _ in 0..rejected {
                let by = settled_by(&abilities, &mut one, (false, true));
                assert_eq!((by, one.is_done(true)), (Some(EndpointId(3)), false), "{has_shown:?}");
            }
            let by = settled_by(&abilities, &mut one, (false, true));
            assert_eq!((by, one.is_done(true)), (None, true), "{has_shown:?}");
        }
    }

    /// Some indexes list native coin as a token, which leaves no log; one answer may also lack it.
    #[test]
    fn that_a_listed_token_left_no_log_takes_two_answers() {
        let transfer = Some(TokenTransfer { wallet: WALLET, is_logged: false });
        let candidate = Candidate { sent: Some(true), transfer, ..Candidate::bare([1; 32], 9) };
        let mut one = CandidateTx::new(candidate.clone());
        assert_eq!((settled(&mut one, false), one.is_done(true)), (Some(EndpointId(3)), false));
        assert_eq!((settled(&mut one, false), one.is_done(true)), (None, true));
        let mut other = CandidateTx::new(candidate);
        assert_eq!((settled(&mut other, true), other.is_done(true)), (None, true));
    }

    /// The value of a trade may depend on the block producer.
    #[tokio::test(start_paused = true)]
    async fn a_producer_that_no_node_shows_is_to_be_asked_for_later() {
        let by = |miner: Value| {
            let hash = hex_text(&[1; 32]);
            json!({"number": "0x9", "hash": hash, "timestamp": "0x1", "miner": miner})
        };
        for (block, expected) in [
            (Value::Null, (None, true)),
            (by(hex_text(&[3; 20]).into()), (Some([3; 20]), false)),
            (by(hex_text(&[0; 20]).into()), (None, false)),
            (by(Value::Null), (None, false)),
        ] {
            let nodes = nodes(move |_, method, _| match method {
                "eth_getBlockByNumber" => Ok(block.clone()),
                _ => Ok(Value::Null),
            });
            let mut one = CandidateTx::new(Candidate::bare([1; 32], 9));
            settled(&mut one, true);
            let (mut tx, fee) = one.done.unwrap();
            (tx.from, tx.to) = ([6; 20], Some(WALLET));
            // A pair's `Swap`.
            let topic = "0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822";
            tx.logs[0].topics[0] = wire::word(topic).unwrap();
            let paid = evm::NativeMove { from: WALLET, to: [3; 20], value: Units::from(5_u64) };
            tx.native = NativeFlows::Calls(vec![paid]);
            let fetched = vec![FetchedTx { candidate: one.candidate, tx, fee, block_hash: None }];
            let mut given = FetchResult { fetched, ..FetchResult::default() };
            let (source, options) = (nodes.source(&["one"]), CallOptions::new(lane()));
            let is_open = source.add_producers(&WALLET, &mut given, &options).await;
            assert_eq!((given.fetched[0].tx.producer, is_open), expected);
        }
    }

    /// Near the head, a lagging server returns a transaction by its hash a little later.
    #[tokio::test(start_paused = true)]
    async fn look_ups_by_hash_that_find_nothing_near_the_head_show_nothing_of_others() {
        for (head, is_forgotten) in [(60, false), (5_000, true)] {
            let nodes = nodes(|_, method, _| match method {
                "eth_getTransactionByBlockNumberAndIndex" => Ok(json!({
                    "hash": hex_text(&[1; 32]), "blockNumber": "0x9", "transactionIndex": "0x0",
                    "value": "0x64", "from": hex_text(&WALLET), "to": hex_text(&[8; 20]), "input": "0x",
                })),
                _ => Ok(Value::Null),
            });
            let source = nodes.source(&["one"]);
            source.note_list_head(Discovery::Logs, head);
            let listed =
                || CandidateTx::new(Candidate { index: Some(0), ..Candidate::bare([1; 32], 9) });
            let options = CallOptions::new(lane());
            assert_eq!(source.ask_until(&mut [listed()], false, &options).await, Ok(Vec::new()));
            assert_eq!(source.is_forgotten(&listed(), 0), is_forgotten, "{head}");
        }
    }
}
