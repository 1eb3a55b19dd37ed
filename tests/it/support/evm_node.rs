//! A small EVM chain of hand-placed transactions, its nodes and their faults, in this process. What
//! a test expects is read from the chain itself.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::domain::Height;
use blotter::rpc::{Request, Response, Transport, TransportError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

pub(crate) type Account = [u8; 20];
pub(crate) type Word = [u8; 32];

pub(crate) const WALLET: Account = [0x42; 20];
pub(crate) const OTHER: Account = [0x66; 20];
/// An unknown contract.
pub(crate) const UNKNOWN: Account = [0x77; 20];
/// Who takes the fees of all blocks.
pub(crate) const PRODUCER: Account = [0xb1; 20];
/// `CoW` Protocol's settlement contract, the same on every chain.
pub(crate) const SETTLEMENT: &str = "0x9008D19f58AAbD9eD0D60971565AA8510560ab41";
pub(crate) const TRANSFER: &str =
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/// `Swap(address,uint256,uint256,uint256,uint256,address)` of Uniswap v2's pairs.
const SWAP: &str = "0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822";
/// `UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)` of ERC-4337.
const USER_OPERATION: &str = "0x49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f";
const WRAPPED: &str = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2";
/// `Deposit(address,uint256)` of the wrapped coin.
const DEPOSIT: &str = "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c";
/// Blocks above the final one.
const UNFINAL: u64 = 64;
const GAS_USED: u64 = 100;
const GAS_PRICE: u64 = 7;
/// What the wallet has before its first transaction.
const WEALTH: u64 = 1 << 50;

pub(crate) fn hex(bytes: &[u8]) -> String {
    format!("0x{}", ::hex::encode(bytes))
}

pub(crate) fn account(text: &str) -> Account {
    let mut account = [0; 20];
    ::hex::decode_to_slice(&text[2..], &mut account).unwrap();
    account
}

fn topic(account: &Account) -> String {
    format!("0x{}{}", "0".repeat(24), ::hex::encode(account))
}

/// One placed transaction.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) block: Height,
    pub(crate) hash: Word,
    pub(crate) from: Account,
    pub(crate) to: Account,
    pub(crate) value: u64,
    pub(crate) failed: bool,
    /// Whether a reader has to give it.
    pub(crate) wanted: bool,
    index: u32,
    logs: Vec<(Vec<String>, u64)>,
    /// Native coin that inner calls gave.
    pub(crate) calls: Vec<(Account, Account, u64)>,
}

impl Placed {
    /// A token's transfer.
    pub(crate) fn transfer(&mut self, from: &Account, to: &Account, amount: u64) -> &mut Self {
        self.logs.push((vec![TRANSFER.to_owned(), topic(from), topic(to)], amount));
        self
    }

    /// An event that says that a pool exchanged something.
    pub(crate) fn swap(&mut self) -> &mut Self {
        self.logs.push((vec![SWAP.to_owned(), topic(&self.to), topic(&self.from)], 1));
        self
    }

    pub(crate) fn user_operation(&mut self, of: &Account) -> &mut Self {
        let own = vec![USER_OPERATION.to_owned(), hex(&[1; 32]), topic(of), topic(&UNKNOWN)];
        self.logs.push((own, 1));
        self
    }

    pub(crate) fn call(&mut self, from: &Account, to: &Account, value: u64) -> &mut Self {
        self.calls.push((*from, *to, value));
        self
    }

    pub(crate) fn gives(&mut self, value: u64) -> &mut Self {
        self.value = value;
        self
    }

    pub(crate) fn fails(&mut self) -> &mut Self {
        self.failed = true;
        self.wanted = false;
        self.logs.clear();
        self
    }

    /// It cannot be a trade of the wallet.
    pub(crate) fn unwanted(&mut self) -> &mut Self {
        self.wanted = false;
        self
    }

    fn tx(&self) -> Value {
        json!({
            "hash": hex(&self.hash), "blockNumber": quantity(self.block),
            "transactionIndex": quantity(u64::from(self.index)), "from": hex(&self.from),
            "to": hex(&self.to), "value": quantity(self.value), "input": "0x12345678",
        })
    }

    fn receipt(&self) -> Value {
        let logs: Vec<Value> = self.logs.iter().map(|log| self.log(log)).collect();
        json!({
            "transactionHash": hex(&self.hash), "blockNumber": quantity(self.block),
            "status": if self.failed { "0x0" } else { "0x1" }, "logs": logs, "type": "0x2",
            "gasUsed": quantity(GAS_USED), "effectiveGasPrice": quantity(GAS_PRICE),
        })
    }

    fn log(&self, (topics, amount): &(Vec<String>, u64)) -> Value {
        json!({
            "address": hex(&UNKNOWN), "topics": topics, "data": format!("0x{amount:064x}"),
            "blockNumber": quantity(self.block), "transactionHash": hex(&self.hash),
            "transactionIndex": quantity(u64::from(self.index)), "removed": false,
        })
    }

    /// All inner calls: what emits logs has run.
    fn inner(&self) -> Vec<(Account, Account, u64)> {
        let ran = (!self.logs.is_empty() && self.to != UNKNOWN).then_some((self.to, UNKNOWN, 0));
        self.calls.iter().copied().chain(ran).collect()
    }

    fn tree(&self) -> Value {
        let call = |(from, to, value): &(Account, Account, u64)| json!({"type": "CALL", "from": hex(from), "to": hex(to), "value": quantity(*value)});
        let calls: Vec<Value> = self.inner().iter().map(call).collect();
        json!({"type": "CALL", "from": hex(&self.from), "to": hex(&self.to),
               "value": quantity(self.value), "calls": calls})
    }

    fn flat(&self) -> Value {
        let call = |from: &Account, to: &Account, value: u64, at: &[usize]| {
            let action = json!({"callType": "call", "from": hex(from), "to": hex(to),
                                "value": quantity(value)});
            json!({"type": "call", "action": action, "traceAddress": at})
        };
        let mut all = vec![call(&self.from, &self.to, self.value, &[])];
        for (at, (from, to, value)) in self.inner().iter().enumerate() {
            all.push(call(from, to, *value, &[at]));
        }
        Value::Array(all)
    }

    /// What it moves the wallet's balance by.
    fn net(&self) -> i64 {
        let signed = |value: u64| i64::try_from(value).unwrap();
        let mut net = 0;
        if self.from == WALLET {
            net -= signed(GAS_USED * GAS_PRICE);
        }
        if self.failed {
            return net;
        }
        for (from, to, value) in self.calls.iter().chain([&(self.from, self.to, self.value)]) {
            net += if *to == WALLET { signed(*value) } else { 0 };
            net -= if *from == WALLET { signed(*value) } else { 0 };
        }
        net
    }
}

fn quantity(number: u64) -> String {
    format!("{number:#x}")
}

fn number(value: &Value) -> u64 {
    u64::from_str_radix(&value.as_str().unwrap()[2..], 16).unwrap()
}

#[derive(Debug, Default)]
pub(crate) struct Chain {
    txs: Vec<Placed>,
    by_hash: HashMap<Word, usize>,
    head: AtomicU64,
}

impl Chain {
    pub(crate) fn new(head: Height) -> Self {
        Self { head: AtomicU64::new(head), ..Self::default() }
    }

    /// A transaction that a reader has to return, unless set otherwise.
    pub(crate) fn add(&mut self, block: Height, from: &Account, to: &Account) -> &mut Placed {
        let number = u64::try_from(self.txs.len()).unwrap();
        let mut hash = [1; 32];
        // Mixed, so that hashes have no order of their own.
        hash[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        hash[8..16].copy_from_slice(&number.to_be_bytes());
        let index = self.txs.iter().rev().take_while(|tx| tx.block == block).count();
        self.by_hash.insert(hash, self.txs.len());
        self.txs.push(Placed {
            block,
            hash,
            from: *from,
            to: *to,
            value: 0,
            failed: false,
            wanted: true,
            index: u32::try_from(index).unwrap(),
            logs: Vec::new(),
            calls: Vec::new(),
        });
        self.txs.last_mut().unwrap()
    }

    pub(crate) fn set_head(&self, head: Height) {
        self.head.store(head, Ordering::Relaxed);
    }

    /// Those that a reader of these heights has to give.
    pub(crate) fn truth(&self, low: Height, high: Height) -> Vec<(Height, Word)> {
        let range = low..=high;
        let wanted = self.txs.iter().filter(|tx| tx.wanted && range.contains(&tx.block));
        let mut all: Vec<_> = wanted.map(|tx| (tx.block, tx.hash)).collect();
        all.sort_unstable();
        all
    }

    fn find(&self, hash: &Value) -> Option<&Placed> {
        let mut word = [0; 32];
        ::hex::decode_to_slice(&hash.as_str()?[2..], &mut word).ok()?;
        self.txs.get(*self.by_hash.get(&word)?)
    }
}

/// Which traces a node gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traces {
    Tree,
    Flat,
    None,
}

/// How a node says that a range is too wide or an answer too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    /// The range that works.
    Range,
    /// The most that works.
    Most,
    /// Only that it is too much.
    TooMuch,
}

/// What is wrong with a node. `every` counts that node's calls of the kind, of logs those with the same
/// filter; 0 is never.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a way by itself")]
pub(crate) struct Ways {
    pub(crate) chain_id: u64,
    pub(crate) lag: Height,
    pub(crate) knows_tags: bool,
    pub(crate) gives_logs: bool,
    pub(crate) range_max: u64,
    pub(crate) results_max: usize,
    pub(crate) says: Says,
    pub(crate) gives_time: bool,
    pub(crate) null_every: u64,
    /// Requests answered with status 429.
    pub(crate) too_many_every: u64,
    /// A transaction that is listed and never given.
    pub(crate) lacks: Option<Word>,
    /// A method that fails on one first parameter, and what it says.
    pub(crate) breaks: Option<(&'static str, String, &'static str)>,
    /// A transaction whose logs are left out of every answer.
    pub(crate) hides_logs_of: Option<Word>,
    /// Receipts of another block.
    pub(crate) misplaces_every: u64,
    /// Receipts without their logs, and receipts that say that it failed.
    pub(crate) bare_every: u64,
    pub(crate) failed_every: u64,
    pub(crate) traces: Traces,
    /// Traces hold the outermost call alone.
    pub(crate) hollow_traces: bool,
    /// The code of accounts; `None`: the method is not offered.
    pub(crate) code: Option<&'static str>,
    /// Neither traces nor states of blocks below it.
    pub(crate) past_from: Height,
    pub(crate) keeps_states: bool,
    /// So many first requests for a trace say that the transaction is too old.
    pub(crate) old_traces: u64,
    /// Where a trace is asked for, transactions of other blocks are not found.
    pub(crate) traceable: Range<Height>,
    /// Distinguishes forks.
    pub(crate) hash_salt: u8,
    /// Answers nothing at all.
    pub(crate) dead: bool,
    /// Times the latency of the others.
    pub(crate) slower: u32,
    /// Below it neither logs nor receipts, without an error.
    pub(crate) logs_from: Height,
    /// Only while it answers each so many-th request.
    pub(crate) drops_every: Option<u64>,
    /// Log answers that come without any logs, or without the newest half of them.
    pub(crate) empty_logs_every: u64,
    pub(crate) short_logs_every: u64,
    /// The same for all of a request, but each so many-th one.
    pub(crate) full_requests_every: u64,
    /// The newest so many logs alone where there are more, without an error.
    pub(crate) logs_cap: usize,
    /// Blocks by which the logs are behind the newest block, always.
    pub(crate) logs_lag: Height,
    /// No contract has logs but those of the wallet's transactions.
    pub(crate) quiet: bool,
    /// What it says where a block, or the receipts of one, is asked for below `logs_from`.
    pub(crate) refuses_blocks: Option<&'static str>,
    pub(crate) refuses_receipts: Option<&'static str>,
    /// Log answers of a backend that is so many blocks behind.
    pub(crate) behind_every: u64,
    pub(crate) behind: Height,
    /// Below it transactions are found by their place alone.
    pub(crate) hashes_from: Height,
}

impl Default for Ways {
    fn default() -> Self {
        Self {
            chain_id: 1,
            lag: 0,
            knows_tags: true,
            gives_logs: true,
            range_max: u64::MAX,
            results_max: usize::MAX,
            says: Says::Most,
            gives_time: false,
            null_every: 0,
            too_many_every: 0,
            lacks: None,
            breaks: None,
            hides_logs_of: None,
            misplaces_every: 0,
            bare_every: 0,
            failed_every: 0,
            traces: Traces::Tree,
            hollow_traces: false,
            code: None,
            past_from: 0,
            keeps_states: true,
            old_traces: 0,
            traceable: 0..Height::MAX,
            hash_salt: 0,
            dead: false,
            slower: 1,
            logs_from: 0,
            drops_every: None,
            empty_logs_every: 0,
            short_logs_every: 0,
            full_requests_every: 0,
            logs_cap: usize::MAX,
            logs_lag: 0,
            quiet: false,
            refuses_blocks: None,
            refuses_receipts: None,
            behind_every: 0,
            behind: 0,
            hashes_from: 0,
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    requests: u64,
    calls: BTreeMap<String, u64>,
    /// Of searches for logs by their filter, from a number of its own.
    filters: HashMap<String, u64>,
}

/// All nodes of a chain, by host name `node0`, `node1` …; other hosts know nothing.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) chain: Mutex<Chain>,
    nodes: Vec<(Mutex<Ways>, Mutex<Counts>)>,
    latency: Duration,
}

type Reply = Result<Value, (i64, String)>;

impl Net {
    pub(crate) fn new(chain: Chain, nodes: Vec<Ways>) -> Arc<Self> {
        let nodes = nodes.into_iter().map(|ways| (Mutex::new(ways), Mutex::default())).collect();
        Arc::new(Self { chain: Mutex::new(chain), nodes, latency: Duration::from_millis(100) })
    }

    pub(crate) fn set(&self, node: usize, ways: Ways) {
        *self.nodes[node].0.lock().unwrap() = ways;
    }

    pub(crate) fn requests(&self) -> u64 {
        self.nodes.iter().map(|(_, counts)| counts.lock().unwrap().requests).sum()
    }

    pub(crate) fn calls(&self, method: &str) -> u64 {
        let of = |at| self.calls_of(at, method);
        (0..self.nodes.len()).map(of).sum()
    }

    pub(crate) fn calls_of(&self, node: usize, method: &str) -> u64 {
        self.nodes[node].1.lock().unwrap().calls.get(method).copied().unwrap_or(0)
    }

    fn answer(&self, node: usize, body: &[u8]) -> Response {
        let (ways, counts) = &self.nodes[node];
        let mut ways = ways.lock().unwrap().clone();
        let mut counts = counts.lock().unwrap();
        counts.requests += 1;
        if ways.drops_every.is_some_and(|every| !hits(every, scattered(counts.requests))) {
            ways.logs_from = 0;
        }
        if ways.full_requests_every > 0 && !hits(ways.full_requests_every, counts.requests) {
            ways.empty_logs_every = 1;
        }
        if hits(ways.too_many_every, counts.requests) {
            return status(429);
        }
        let asked: Value = serde_json::from_slice(body).unwrap();
        let chain = self.chain.lock().unwrap();
        let mut one = |call: &Value| {
            let method = call["method"].as_str().unwrap();
            let Counts { calls, filters, .. } = &mut *counts;
            let count = calls.entry(method.to_owned()).or_default();
            *count += 1;
            let number = match method {
                // Of the same search, so that its answers are wrong in turns, however they are asked.
                "eth_getLogs" => {
                    let text = call["params"].to_string();
                    let first = text.bytes().map(u64::from).sum();
                    let number = filters.entry(text).or_insert(first);
                    *number += 1;
                    *number
                }
                _ => *count,
            };
            let node = Node { chain: &chain, ways: &ways, count: number };
            match node.reply(method, &call["params"]) {
                Ok(result) => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
                Err((code, message)) => json!({"jsonrpc": "2.0", "id": call["id"],
                                               "error": {"code": code, "message": message}}),
            }
        };
        let answer = match asked.as_array() {
            Some(calls) => Value::Array(calls.iter().map(&mut one).collect()),
            None => one(&asked),
        };
        Response { body: serde_json::to_vec(&answer).unwrap().into(), ..status(200) }
    }
}

fn status(status: u16) -> Response {
    Response { status, retry_after: None, body: Bytes::new() }
}

impl Transport for Net {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            let host = request.url.label();
            let node = host.rsplit_once("node").map(|(_, node)| node.parse::<usize>().unwrap());
            let slower = node.map_or(1, |node| self.nodes[node].0.lock().unwrap().slower);
            tokio::time::sleep(self.latency * slower).await;
            let Some(node) = node else { return Ok(status(404)) };
            if self.nodes[node].0.lock().unwrap().dead {
                return Err(TransportError::Connect("refused".to_owned()));
            }
            Ok(self.answer(node, &request.body))
        })
    }
}

/// As many hits as in turns, but in no step with those who ask in turns (the finalizer of `SplitMix64`).
fn scattered(count: u64) -> u64 {
    let mixed = (count ^ (count >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn hits(every: u64, count: u64) -> bool {
    every > 0 && count.is_multiple_of(every)
}

/// A node while it answers one call.
struct Node<'a> {
    chain: &'a Chain,
    ways: &'a Ways,
    /// Calls of this method so far, or of this search for logs.
    count: u64,
}

impl Node<'_> {
    fn head(&self) -> Height {
        self.chain.head.load(Ordering::Relaxed) - self.ways.lag
    }

    fn reply(&self, method: &str, params: &Value) -> Reply {
        let absent = || Err((-32601, format!("the method {method} does not exist")));
        if let Some((broken, on, says)) = &self.ways.breaks
            && *broken == method
            && params[0] == json!(on)
        {
            return Err((-32000, (*says).to_owned()));
        }
        match method {
            "eth_chainId" => Ok(json!(quantity(self.ways.chain_id))),
            "eth_blockNumber" => Ok(json!(quantity(self.newest()))),
            "eth_getBlockByNumber" => self.block(&params[0], params[1] == json!(true)),
            "eth_getLogs" if self.ways.gives_logs => self.logs(&params[0]),
            "eth_getTransactionByHash" => Ok(self.given(params).map_or(Value::Null, Placed::tx)),
            "eth_getTransactionByBlockNumberAndIndex" => Ok(self.at_place(params)),
            "eth_getBlockReceipts" => {
                self.refuses(self.ways.refuses_receipts, number(&params[0]))?;
                Ok(self.receipts(number(&params[0])))
            }
            "eth_getTransactionReceipt" => {
                self.refuses(self.ways.refuses_receipts, self.block_of(&params[0]))?;
                Ok(self.receipt(params))
            }
            "debug_traceTransaction" if self.ways.traces == Traces::Tree => {
                let is_given = self.count > self.ways.old_traces;
                let block = self.chain.find(&params[0]).unwrap().block;
                if !self.ways.traceable.contains(&block) {
                    return Err((-32000, "transaction not found".to_owned()));
                }
                self.past(if is_given { block } else { 0 })?;
                let mut tree = self.chain.find(&params[0]).unwrap().tree();
                if self.ways.hollow_traces {
                    tree["calls"] = json!([]);
                }
                Ok(tree)
            }
            "eth_getCode" if self.ways.code.is_some() => Ok(json!(self.ways.code)),
            "trace_transaction" if self.ways.traces == Traces::Flat => {
                self.past(self.chain.find(&params[0]).unwrap().block)?;
                Ok(self.chain.find(&params[0]).unwrap().flat())
            }
            "eth_getBalance" if self.ways.keeps_states => {
                let at = number(&params[1]);
                self.past(at)?;
                let net: i64 = self.until(at).map(Placed::net).sum();
                Ok(json!(quantity(WEALTH.checked_add_signed(net).unwrap())))
            }
            "eth_getTransactionCount" if self.ways.keeps_states => {
                let at = number(&params[1]);
                self.past(at)?;
                let sent = self.until(at).filter(|tx| tx.from == WALLET).count();
                Ok(json!(quantity(u64::try_from(sent).unwrap())))
            }
            _ => absent(),
        }
    }

    fn refuses(&self, says: Option<&str>, block: Height) -> Result<(), (i64, String)> {
        let says = says.filter(|_| block < self.ways.logs_from);
        says.map_or(Ok(()), |says| Err((-32000, says.to_owned())))
    }

    /// Of a transaction, also of one that only fills its block.
    fn block_of(&self, hash: &Value) -> Height {
        let filler = || number(&json!(hash.as_str().unwrap()[..18]));
        self.chain.find(hash).map_or_else(filler, |tx| tx.block)
    }

    /// The newest block, which is not final.
    fn newest(&self) -> Height {
        self.head() + UNFINAL
    }

    /// Of a transaction that has no other purpose than to be in its block.
    fn filler(block: Height) -> Placed {
        let mut filler = Chain::default();
        let deposit = filler.add(block, &OTHER, &account(WRAPPED));
        deposit.hash = [0xf1; 32];
        deposit.hash[..8].copy_from_slice(&block.to_be_bytes());
        deposit.index = 900;
        deposit.logs.push((vec![DEPOSIT.to_owned(), topic(&OTHER)], 5));
        deposit.clone()
    }

    fn at_place(&self, params: &Value) -> Value {
        let (block, index) = (number(&params[0]), number(&params[1]));
        let here = |tx: &&Placed| tx.block == block && u64::from(tx.index) == index;
        let tx = self.chain.txs.iter().find(here);
        tx.filter(|tx| self.ways.lacks != Some(tx.hash)).map_or(Value::Null, Placed::tx)
    }

    fn receipts(&self, block: Height) -> Value {
        if block > self.newest() || block < self.ways.logs_from {
            return Value::Null;
        }
        let here = self.chain.txs.iter().filter(|tx| tx.block == block);
        let given = here.filter(|tx| self.ways.lacks != Some(tx.hash)).map(Placed::receipt);
        given.chain([Self::filler(block).receipt()]).collect()
    }

    fn until(&self, block: Height) -> impl Iterator<Item = &Placed> {
        self.chain.txs.iter().filter(move |tx| tx.block <= block)
    }

    fn past(&self, block: Height) -> Result<(), (i64, String)> {
        if block >= self.ways.past_from.max(1) {
            return Ok(());
        }
        Err((-32000, "missing trie node 1234 (path ) state is not available".to_owned()))
    }

    fn given(&self, params: &Value) -> Option<&Placed> {
        let tx = self.chain.find(&params[0]).filter(|tx| tx.block <= self.head())?;
        let is_hidden = hits(self.ways.null_every, self.count)
            || self.ways.lacks == Some(tx.hash)
            || tx.block < self.ways.hashes_from;
        (!is_hidden).then_some(tx)
    }

    fn receipt(&self, params: &Value) -> Value {
        let Some(tx) = self.given(params) else { return Value::Null };
        let mut receipt = tx.receipt();
        if hits(self.ways.misplaces_every, self.count) {
            receipt["transactionHash"] = json!(hex(&[3; 32]));
        }
        let is_failed = hits(self.ways.failed_every, self.count);
        if is_failed || hits(self.ways.bare_every, self.count) {
            receipt["logs"] = json!([]);
        }
        if is_failed {
            receipt["status"] = json!("0x0");
        }
        receipt
    }

    fn block(&self, which: &Value, whole: bool) -> Reply {
        let height = match which.as_str().unwrap() {
            "finalized" | "safe" if !self.ways.knows_tags => {
                return Err((
                    -32602,
                    "invalid argument 0: hex string without 0x prefix".to_owned(),
                ));
            }
            "finalized" | "safe" => self.head(),
            "latest" => self.newest(),
            _ => number(which),
        };
        if height > self.newest() {
            return Ok(Value::Null);
        }
        self.refuses(self.ways.refuses_blocks, height)?;
        let here = self.chain.txs.iter().filter(|tx| tx.block == height);
        let filler = Self::filler(height);
        let shown = |tx: &Placed| if whole { tx.tx() } else { json!(hex(&tx.hash)) };
        let all: Vec<Value> = here.chain([&filler]).map(shown).collect();
        Ok(json!({"number": quantity(height), "hash": hex(&[self.ways.hash_salt; 32]),
                  "timestamp": quantity(1_600_000_000 + height), "transactions": all,
                  "miner": hex(&PRODUCER)}))
    }

    fn logs(&self, filter: &Value) -> Reply {
        let (low, high) = (number(&filter["fromBlock"]), number(&filter["toBlock"]));
        assert!(low <= high, "a range that holds blocks");
        let Ways { range_max, results_max, says, .. } = *self.ways;
        if high - low >= range_max {
            return Err((-32000, too_wide(says, low, range_max)));
        }
        let behind = if hits(self.ways.behind_every, self.count) { self.ways.behind } else { 0 };
        let newest = self.newest() - behind - self.ways.logs_lag;
        if let Some(emitters) = filter.get("address").filter(|emitters| !emitters.is_null()) {
            let asks = emitters.to_string().to_lowercase().contains(&WRAPPED[2..]);
            let wrapped = asks && !self.ways.quiet;
            let range = low.max(self.ways.logs_from)..=high.min(newest);
            let logs = range.filter(|_| wrapped).take(100).map(|block| {
                let filler = Self::filler(block);
                let mut log = filler.log(&filler.logs[0]);
                log["address"] = json!(WRAPPED);
                log
            });
            return Ok(logs.collect());
        }
        let mut found = Vec::new();
        let is_whole_block = low == high && filter["topics"].is_null();
        if is_whole_block && (self.ways.logs_from..=newest).contains(&low) {
            let filler = Self::filler(low);
            found.push(filler.log(&filler.logs[0]));
        }
        for tx in &self.chain.txs {
            if tx.block < low || tx.block > high || tx.block > newest {
                continue;
            }
            if tx.block < self.ways.logs_from || self.ways.hides_logs_of == Some(tx.hash) {
                continue;
            }
            for log in tx.logs.iter().filter(|(topics, _)| fits(topics, &filter["topics"])) {
                if found.len() == results_max {
                    return Err((-32005, too_many(says, low, tx.block, results_max)));
                }
                let mut log = tx.log(log);
                if self.ways.gives_time {
                    log["blockTimestamp"] = json!(quantity(1_600_000_000 + tx.block));
                }
                found.push(log);
            }
        }
        if hits(self.ways.empty_logs_every, self.count) {
            found.clear();
        }
        if hits(self.ways.short_logs_every, self.count) {
            found.truncate(found.len() / 2);
        }
        found.drain(..found.len().saturating_sub(self.ways.logs_cap));
        Ok(Value::Array(found))
    }
}

fn fits(topics: &[String], filter: &Value) -> bool {
    filter.as_array().into_iter().flatten().enumerate().all(|(at, wanted)| {
        let has = |wanted: &Value| topics.get(at).is_some_and(|topic| wanted == topic);
        match wanted {
            Value::Null => true,
            Value::Array(any) => any.iter().any(has),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => has(wanted),
        }
    })
}

fn too_wide(says: Says, low: Height, most: u64) -> String {
    match says {
        Says::Range => format!(
            "You can make eth_getLogs requests with up to a {most} block range. Based on your \
             parameters, this block range should work: [{low:#x}, {:#x}]",
            low + most - 1
        ),
        Says::Most => format!("exceed maximum block range: {most}"),
        Says::TooMuch => "block range is larger than max block range".to_owned(),
    }
}

/// `last`: the block in which the answer became too long.
fn too_many(says: Says, low: Height, last: Height, most: usize) -> String {
    match says {
        Says::Range if last > low => format!(
            "query returned more than {most} results. Try with this block range [{low:#x}, {:#x}].",
            last - 1
        ),
        Says::Range | Says::Most => format!("query exceeds max results {most}"),
        Says::TooMuch => "response size should not greater than 10000000 bytes".to_owned(),
    }
}
