//! A small chain with the three kinds of index, in this process: requests are answered in the
//! wire format of each, with caps, page keys, lag and faults.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::abilities::Abilities;
use super::busy_fault::BusyFault;
use super::list_client::ListClient;
use super::subject::Subject;
use super::texts::hex_text;
use super::wire::topic;
use crate::decode::evm::{Account, TRANSFER, Word};
use crate::domain::{Height, defaults};
use crate::registry::Registry;
pub(super) use crate::rpc::scripted::lane;
use crate::rpc::scripted::{Epoch, NodeFault, rpc};
use crate::rpc::{EndpointConfig, Pool, PoolLimits, Request, Response, Transport, TransportError};

pub(super) const WALLET: Account = [0xaa; 20];
pub(super) const ROUTER: Account = [0xb0; 20];
pub(super) const POOL: Account = [0xb1; 20];
/// `GPv2Settlement`, which the tables contain.
pub(super) const SETTLEMENT: Account = [
    0x90, 0x08, 0xd1, 0x9f, 0x58, 0xaa, 0xbd, 0x9e, 0xd0, 0xd6, 0x09, 0x71, 0x56, 0x5a, 0xa8, 0x51,
    0x05, 0x60, 0xab, 0x41,
];
/// Wrapped ether and the first reference pool.
const BUSY: [&str; 2] =
    ["0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2", "0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640"];

#[derive(Debug, Clone)]
pub(super) struct ModelTx {
    pub(super) block: Height,
    pub(super) index: u32,
    pub(super) from: Account,
    pub(super) to: Account,
    pub(super) value: u64,
    pub(super) failed: bool,
    /// Token transfers: sender, recipient, amount.
    pub(super) tokens: Vec<(Account, Account, u64)>,
    /// Inner calls that transferred native coin.
    pub(super) calls: Vec<(Account, Account, u64)>,
}

impl ModelTx {
    pub(super) fn hash(&self) -> Word {
        let mut hash = [7; 32];
        hash[..8].copy_from_slice(&self.block.to_be_bytes());
        hash[8..12].copy_from_slice(&self.index.to_be_bytes());
        hash
    }

    fn hash_text(&self) -> String {
        hex_text(&self.hash())
    }

    /// Whether a row of this transaction can name the wallet as sender (`gives`) or recipient;
    /// other rows need not be written.
    fn may_name(&self, gives: bool) -> bool {
        let is = |from: &Account, to: &Account| *if gives { from } else { to } == WALLET;
        is(&self.from, &self.to)
            || self.tokens.iter().chain(&self.calls).any(|(from, to, _)| is(from, to))
    }
}

defaults! {
    /// The faults and limits of the index.
    #[derive(Debug, Clone)]
    pub(super) struct Ways {
        /// The most rows or transfers in an answer.
        pub(super) cap: usize = 1000,
        /// Blocks of the gateway's answer, at most.
        pub(super) blocks: usize = 1000,
        /// Heights that the gateway's answer covers, at most; 0: all.
        pub(super) gateway_covers: u64 = 0,
        /// Blocks that it keeps of an answer next to the last one, as if there were no others; 0:
        /// all.
        pub(super) gateway_keeps: usize = 0,
        /// Every n-th request fails; 0: none.
        pub(super) trouble: usize = 0,
        pub(super) has_calls: bool = true,
        /// The first block of the gateway.
        pub(super) first: Height = 0,
        /// The first block of which the gateway has traces.
        pub(super) traces_from: Height = 0,
        /// By host: blocks by which the index is below the head.
        pub(super) lag: HashMap<String, u64> = HashMap::new(),
        /// Blocks by which the lists of an index are below the head that it reports.
        pub(super) list_lag: u64 = 0,
        /// One in this many answers to an account list comes from a server this many blocks behind;
        /// 0: none.
        pub(super) behind_every: usize = 0,
        pub(super) behind: u64 = 0,
        /// This many first queries for the list of calls are refused.
        pub(super) refuses_calls: usize = 0,
        /// This host offers a list of calls without any row.
        pub(super) lists_no_calls_on: Option<&'static str> = None,
        /// Every n-th page of account lists is cut to `kept` rows; 0: none.
        pub(super) short_every: usize = 0,
        pub(super) kept: usize = 0,
        /// Pages down from a block below this one hold their first row alone.
        pub(super) ends_below: Height = 0,
        /// The transactions of accounts that others use are marked as failed.
        pub(super) busy_failed: bool = false,
        /// A list, and the first block of which it has rows.
        pub(super) lists_from: Option<(&'static str, Height)> = None,
        /// Blocks between rows of accounts that others use; 0: none.
        pub(super) busy_apart: usize = 0,
        /// The list with the fault, the fault, and the number of faulty answers.
        pub(super) busy_fault: Option<(&'static str, BusyFault, usize)> = None,
        /// Status and body of the gateway's first answers about its metadata, and their number.
        pub(super) metadata: Option<(u16, &'static str, usize)> = None,
        /// Texts with which the gateway refuses the first queries for traces.
        pub(super) refuses_traces: Vec<&'static str> = Vec::new(),
    }
}

#[derive(Debug, Default)]
pub(super) struct Model {
    /// Transactions in the order of the chain.
    pub(super) txs: Vec<ModelTx>,
    pub(super) head: Height,
    pub(super) ways: Ways,
    pub(super) sent: AtomicUsize,
    calls_asked: AtomicUsize,
    pages: AtomicUsize,
    lists_asked: AtomicUsize,
    metadata_asked: AtomicUsize,
    traces_asked: AtomicUsize,
    busy_faults: AtomicUsize,
    /// Blocks by which single lists lag, until this many pages of the wallet were returned.
    fallen: Mutex<HashMap<&'static str, u64>>,
    fallen_pages: AtomicUsize,
    pub(super) abilities: Arc<Abilities>,
}

/// The newest row of an account that is used all the time.
fn busy(block: Height) -> ModelTx {
    let (from, to) = (SETTLEMENT, POOL);
    let (tokens, calls) = (vec![(from, to, 1)], vec![(from, to, 1)]);
    ModelTx { block, index: 0, from, to, value: 0, failed: false, tokens, calls }
}

impl Model {
    pub(super) fn new(mut txs: Vec<ModelTx>, head: Height, ways: Ways) -> Arc<Self> {
        txs.sort_by_key(|tx| (tx.block, tx.index));
        txs.dedup_by_key(|tx| (tx.block, tx.index));
        let fallen_pages = AtomicUsize::new(usize::MAX);
        Arc::new(Self { txs, head, ways, fallen_pages, ..Self::default() })
    }

    pub(super) fn pool(self: &Arc<Self>, hosts: &[&str]) -> Pool {
        self.pool_with(hosts, PoolLimits::default())
    }

    pub(super) fn pool_with(self: &Arc<Self>, hosts: &[&str], limits: PoolLimits) -> Pool {
        let endpoints =
            hosts.iter().map(|host| EndpointConfig::new(format!("http://{host}/api"))).collect();
        let transport: Arc<dyn Transport> = self.clone();
        Pool::new(endpoints, transport, limits, Arc::new(Epoch), 1)
    }

    pub(super) fn client(self: &Arc<Self>, hosts: &[&str]) -> ListClient {
        ListClient { abilities: Arc::clone(&self.abilities), ..client(self.pool(hosts)) }
    }

    /// From now on one list lags by this many blocks.
    pub(super) fn fall(&self, action: &'static str, blocks: u64) {
        self.fallen.lock().unwrap().insert(action, blocks);
    }

    /// No list lags any more once this many pages of the wallet were returned.
    pub(super) fn rise_after(&self, pages: usize) {
        self.fallen_pages.store(pages, Ordering::Relaxed);
    }

    fn head_of(&self, host: &str) -> Height {
        self.head - self.ways.lag.get(host).copied().unwrap_or(0)
    }

    /// The transactions that the index of this host holds, newest first.
    fn down_from(&self, host: &str) -> impl Iterator<Item = &ModelTx> {
        let head = self.head_of(host);
        self.txs.iter().rev().filter(move |tx| tx.block <= head)
    }

    fn explorer(&self, host: &str, query: &HashMap<String, String>) -> Value {
        let get = |name: &str| query.get(name).cloned().unwrap_or_default();
        let number = |name: &str| get(name).parse::<u64>().unwrap();
        if get("module") == "block" {
            return json!({"jsonrpc": "2.0", "id": 1, "result": format!("{:#x}", self.head_of(host))});
        }
        let action = get("action");
        if action == "txlistinternal" {
            if self.calls_asked.fetch_add(1, Ordering::Relaxed) < self.ways.refuses_calls {
                return refusal("Error! Odd weather");
            }
            if self.ways.lists_no_calls_on == Some(host) {
                return no_rows();
            }
        }
        if !["txlist", "tokentx", "txlistinternal"].contains(&action.as_str())
            || action == "txlistinternal" && !self.ways.has_calls
        {
            return refusal("Error! Missing Or invalid Action name");
        }
        let (page, offset) = (number("page"), number("offset"));
        if page * offset > 10_000 {
            let text = "Result window is too large, PageNo x Offset size must be less than or \
                        equal to 10000";
            return json!({"status": "0", "message": text, "result": null});
        }
        let first = self.ways.lists_from.filter(|(of, _)| *of == action);
        let first = first.map_or(0, |(_, first)| first);
        let within = number("startblock").max(first)..=number("endblock");
        let (page, offset) = (usize::try_from(page).unwrap(), usize::try_from(offset).unwrap());
        let address = get("address");
        let listed = self.listed(host, &action);
        if BUSY.contains(&address.as_str()) {
            return self.busy(&action, (within, listed), offset);
        }
        let is_edge = get("sort") == "desc" && number("endblock") < self.ways.ends_below;
        let kept = self.kept(is_edge);
        let mut rows: Vec<Value> = self
            .down_from(host)
            .filter(|tx| within.contains(&tx.block) && tx.block <= listed)
            .filter(|tx| match action.as_str() {
                "txlist" => tx.from == WALLET || tx.to == WALLET,
                "txlistinternal" => !tx.calls.is_empty(),
                _ => tx.may_name(true) || tx.may_name(false),
            })
            .flat_map(|tx| rows(tx, &action).into_iter().rev())
            .filter(|row| row["from"] == *address || row["to"] == *address)
            .collect();
        if get("sort") == "asc" {
            rows.reverse();
        }
        let most = offset.min(self.ways.cap).min(kept);
        let rows: Vec<Value> = rows.into_iter().skip((page - 1) * offset).take(most).collect();
        if rows.is_empty() {
            return no_rows();
        }
        json!({"status": "1", "message": "OK", "result": rows})
    }

    /// The most rows of the next page of the wallet's lists.
    fn kept(&self, is_edge: bool) -> usize {
        let number = self.pages.fetch_add(1, Ordering::Relaxed) + 1;
        let is_short = self.ways.short_every > 0 && number.is_multiple_of(self.ways.short_every);
        let kept = if is_short { self.ways.kept } else { usize::MAX };
        if is_edge { 1 } else { kept }
    }

    fn busy(
        &self,
        action: &str,
        (within, listed): (RangeInclusive<Height>, Height),
        count: usize,
    ) -> Value {
        let low = *within.start();
        let heights = (0..=listed).rev().step_by(self.ways.busy_apart.max(1));
        let heights = heights.take_while(|at| *at >= low).filter(|at| within.contains(at));
        let heights = heights.take(count);
        let failed = self.ways.busy_failed && action == "txlist";
        let rows = heights.flat_map(|at| rows(&ModelTx { failed, ..busy(at) }, action));
        let mut rows: Vec<Value> = rows.take(self.ways.cap).collect();
        let fault = self.ways.busy_fault.filter(|(of, fault, answers)| {
            let is_hit = *of == action && fault.concerns(&within, self.head, count);
            is_hit && self.busy_faults.fetch_add(1, Ordering::Relaxed) < *answers
        });
        match fault.map(|(_, fault, _)| fault) {
            Some(BusyFault::TooLarge | BusyFault::TooLargeInAll) => {
                return refusal("Query Timeout occured. Please select a smaller result dataset");
            }
            Some(BusyFault::Processing | BusyFault::NewestProcessing) => {
                let text = "Some internal transactions within this block range have not yet been \
                            processed";
                return json!({"status": "2", "message": text, "result": []});
            }
            Some(BusyFault::Cut) => rows.truncate(3),
            None => {}
        }
        json!({"status": "1", "message": "OK", "result": rows})
    }

    /// The height of a list on the server that answers.
    fn listed(&self, host: &str, action: &str) -> Height {
        let asked = self.lists_asked.fetch_add(1, Ordering::Relaxed) + 1;
        let every = self.ways.behind_every;
        let is_behind = every > 0 && asked.is_multiple_of(every);
        let is_low = self.pages.load(Ordering::Relaxed) < self.fallen_pages.load(Ordering::Relaxed);
        let fallen = self.fallen.lock().unwrap().get(action).copied().filter(|_| is_low);
        let fallen = fallen.unwrap_or(0);
        let lag = self.ways.list_lag + fallen + if is_behind { self.ways.behind } else { 0 };
        self.head_of(host).saturating_sub(lag)
    }

    fn alchemy(&self, host: &str, filter: &Value) -> Result<Value, NodeFault> {
        let height = |name: &str| {
            let text = filter[name].as_str().unwrap().trim_start_matches("0x");
            u64::from_str_radix(text, 16).unwrap()
        };
        let within = height("fromBlock")..=height("toBlock");
        let categories = filter["category"].as_array().unwrap();
        if categories.contains(&"internal".into()) && !self.ways.has_calls {
            let text = "The internal category is only for some networks";
            return Err(NodeFault::Rpc(-32602, text));
        }
        let key = filter["pageKey"].as_str().map_or(0, |key| key.parse::<usize>().unwrap());
        let size = self.ways.cap.min(1000);
        let mut rows: Vec<Value> = self
            .down_from(host)
            .filter(|tx| within.contains(&tx.block) && !tx.failed)
            .filter(|tx| tx.may_name(filter.get("fromAddress").is_some()))
            .flat_map(|tx| transfers(tx).into_iter().rev())
            .filter(|row| categories.contains(&row["category"]))
            .filter(|row| match filter.get("fromAddress") {
                Some(from) => row["from"] == *from,
                None => row["to"] == filter["toAddress"],
            })
            .collect();
        if filter["order"] == "asc" {
            rows.reverse();
        }
        let rows: Vec<Value> = rows.into_iter().skip(key).take(size + 1).collect();
        let more = rows.len() > size;
        let page: Vec<&Value> = rows.iter().take(size).collect();
        let mut answer = json!({"transfers": page});
        if more {
            answer["pageKey"] = (key + size).to_string().into();
        }
        Ok(answer)
    }

    fn portal(&self, host: &str, query: &Value) -> (u16, String) {
        let (from, to) = (query["fromBlock"].as_u64().unwrap(), query["toBlock"].as_u64().unwrap());
        let traced = query["fields"].get("trace").is_some();
        if traced && !self.ways.has_calls || from < self.ways.first {
            return (400, "column 'trace_address' is not found".to_owned());
        }
        if traced {
            let asked = self.traces_asked.fetch_add(1, Ordering::Relaxed);
            if let Some(text) = self.ways.refuses_traces.get(asked) {
                return (400, (*text).to_owned());
            }
        }
        let is_probe = query["logs"].as_array().is_some_and(|items| items.iter().any(is_probe));
        let head = self.head_of(host);
        if from > head {
            return (204, String::new());
        }
        let covered = self.ways.gateway_covers.checked_sub(1).map(|more| from + more);
        let to = to.min(head).min(covered.unwrap_or(head));
        let mut lines: Vec<(Height, Value)> = Vec::new();
        for tx in self.txs.iter().filter(|tx| (from..=to).contains(&tx.block)) {
            if lines.len() > self.ways.blocks {
                break;
            }
            let traced = traced && tx.block >= self.ways.traces_from;
            let Some(found) = portal_rows(tx, traced, is_probe) else { continue };
            match lines.last_mut() {
                Some((block, line)) if *block == tx.block => {
                    for kind in ["transactions", "logs", "traces"] {
                        let more = found[kind].as_array().unwrap().clone();
                        line[kind].as_array_mut().unwrap().extend(more);
                    }
                }
                _ => lines.push((tx.block, found)),
            }
        }
        if lines.len() > self.ways.blocks {
            lines.truncate(self.ways.blocks);
        } else if lines.last().is_none_or(|(block, _)| *block != to) {
            lines.push((to, json!({"header": {"number": to}})));
        }
        if self.ways.gateway_keeps > 0 && lines.len() > self.ways.gateway_keeps {
            lines.drain(self.ways.gateway_keeps..lines.len() - 1);
        }
        let lines: Vec<String> = lines.iter().map(|(_, line)| line.to_string()).collect();
        (200, lines.join("\n"))
    }

    fn answer(&self, request: &Request) -> (u16, String) {
        let url = request.url.expose().trim_start_matches("http://");
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let (host, path) = place.split_once('/').unwrap();
        if path == "api/finalized-head" {
            return (200, json!({"number": self.head_of(host), "hash": "0x"}).to_string());
        }
        if path == "api/metadata" {
            let asked = self.metadata_asked.fetch_add(1, Ordering::Relaxed);
            return match self.ways.metadata.filter(|(.., answers)| asked < *answers) {
                Some((status, body, _)) => (status, body.to_owned()),
                None => (200, json!({"start_block": self.ways.first}).to_string()),
            };
        }
        if path.ends_with("stream") {
            let query: Value = serde_json::from_slice(&request.body).unwrap();
            return self.portal(host, &query);
        }
        if request.body.is_empty() {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let query = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            return (200, self.explorer(host, &query).to_string());
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let (status, body) = rpc(&body, |method, params| match method {
            "eth_blockNumber" => Ok(format!("{:#x}", self.head_of(host)).into()),
            _ => self.alchemy(host, &params[0]),
        });
        (status, body.to_string())
    }
}

impl Transport for Model {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            let (mut status, mut body) = self.answer(&request);
            let mut retry_after = None;
            if self.ways.trouble > 0 && number.is_multiple_of(self.ways.trouble) {
                match number / self.ways.trouble % 5 {
                    0 => (status, retry_after) = (429, Some("1".to_owned())),
                    1 => (status, body) = (503, "<html>".to_owned()),
                    2 => body.truncate(body.len() / 2),
                    3 => body = "<html>try later</html>".to_owned(),
                    _ => return Err(TransportError::Broken("reset".to_owned())),
                }
            }
            Ok(Response { status, retry_after, body: body.into() })
        })
    }
}

fn refusal(text: &str) -> Value {
    json!({"status": "0", "message": "NOTOK", "result": text})
}

fn no_rows() -> Value {
    json!({"status": "0", "message": "No transactions found", "result": []})
}

/// The rows of a transaction in the list that this action queries, in order.
fn rows(tx: &ModelTx, action: &str) -> Vec<Value> {
    let row = |from: &Account, to: &Account, value: u64, more: Value| {
        let mut row = json!({
            "blockNumber": tx.block.to_string(), "timeStamp": (1_700_000_000 + tx.block).to_string(),
            "hash": tx.hash_text(), "transactionIndex": tx.index.to_string(),
            "from": hex_text(from), "to": hex_text(to), "value": value.to_string(),
        });
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row
    };
    match action {
        "txlist" => {
            let error = if tx.failed { "1" } else { "0" };
            let input = json!({"isError": error, "input": "0x12345678"});
            vec![row(&tx.from, &tx.to, tx.value, input)]
        }
        _ if tx.failed => vec![],
        "tokentx" => {
            let more = json!({"tokenSymbol": "X", "tokenDecimal": "18"});
            tx.tokens.iter().map(|(from, to, value)| row(from, to, *value, more.clone())).collect()
        }
        _ => {
            let each = tx.calls.iter().flat_map(|(from, to, value)| {
                let of = |kind| row(from, to, *value, json!({"type": kind, "isError": "0"}));
                ["delegatecall", "call"].map(of)
            });
            each.collect()
        }
    }
}

fn transfers(tx: &ModelTx) -> Vec<Value> {
    let one = |category: &str, from: &Account, to: &Account, value: u64| {
        json!({
            "blockNum": format!("{:#x}", tx.block), "hash": tx.hash_text(), "category": category,
            "from": hex_text(from), "to": hex_text(to), "value": 0.1,
            "rawContract": {"value": format!("{value:#x}")},
            "metadata": {"blockTimestamp": "2023-11-14T22:13:20.000Z"},
        })
    };
    let mut all = vec![one("external", &tx.from, &tx.to, tx.value)];
    all.extend(tx.tokens.iter().map(|(from, to, value)| one("erc20", from, to, *value)));
    all.extend(tx.calls.iter().map(|(from, to, value)| one("internal", from, to, *value)));
    all.retain(|row| row["rawContract"]["value"] != "0x0");
    all
}

/// Whether this query asks for the traces of all transactions that brought the wallet something.
fn is_probe(item: &Value) -> bool {
    item["topic2"].is_array() && item["transactionTraces"] == true && item["address"].is_null()
}

/// The rows that pass the filters of the gateway; `None` where none does.
fn portal_rows(tx: &ModelTx, traced: bool, is_probe: bool) -> Option<Value> {
    let tokens = if tx.failed { &[][..] } else { &tx.tokens };
    let from_wallet = tokens.iter().any(|(from, ..)| *from == WALLET);
    let full = tx.from == WALLET || from_wallet;
    if !full && !tokens.iter().any(|(_, to, _)| *to == WALLET) {
        return None;
    }
    let logs: Vec<Value> = (0..)
        .zip(tokens)
        .filter(|(_, (from, to, _))| full || *from == WALLET || *to == WALLET)
        .map(|(at, (from, to, value)): (u32, _)| {
            json!({
                "logIndex": tx.index * 100 + at, "transactionIndex": tx.index,
                "address": hex_text(&[0xc0; 20]),
                "topics": [hex_text(&TRANSFER), topic(from), topic(to)],
                "data": format!("0x{value:064x}"),
            })
        })
        .collect();
    let trace = |address: Vec<usize>, from: &Account, to: &Account, value: u64, below: usize| {
        json!({
            "transactionIndex": tx.index, "traceAddress": address, "type": "call",
            "subtraces": below, "error": null, "action": {
                "from": hex_text(from), "to": hex_text(to), "value": format!("{value:#x}"),
                "callType": "call",
            },
        })
    };
    let mut traces = vec![];
    if (full || is_probe) && traced {
        traces.push(trace(vec![], &tx.from, &tx.to, tx.value, tx.calls.len()));
        traces.extend(
            tx.calls.iter().enumerate().map(|(at, (f, t, v))| trace(vec![at], f, t, *v, 0)),
        );
    }
    Some(json!({
        "header": {"number": tx.block, "timestamp": 1_700_000_000 + tx.block},
        "transactions": [{
            "transactionIndex": tx.index, "hash": tx.hash_text(), "from": hex_text(&tx.from),
            "to": hex_text(&tx.to), "value": format!("{:#x}", tx.value),
            "sighash": "0x12345678", "status": u8::from(!tx.failed),
        }],
        "logs": logs, "traces": traces,
    }))
}

/// A client of endpoints about which nothing is known yet.
pub(super) fn client(pool: Pool) -> ListClient {
    let abilities = Arc::default();
    let (counting, nodes) = (None, None);
    ListClient { pool, subject: subject(), lane: lane(), abilities, counting, nodes }
}

pub(super) fn subject() -> Subject {
    static SUBJECT: LazyLock<Subject> = LazyLock::new(|| {
        let registry = Arc::new(Registry::embedded().unwrap());
        let chain = Arc::new(registry.chain_named("eth").unwrap().clone());
        Subject { wallet: WALLET, chain, registry }
    });
    SUBJECT.clone()
}
