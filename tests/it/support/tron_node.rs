//! A small Tron of hand-placed transactions of one wallet, its nodes and their faults, in this
//! process: the index's lists, the nodes' HTTP interface and their JSON-RPC. What a test expects is
//! read from the chain itself.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use blotter::domain::Height;
use blotter::upstream::{Method, Request, Response, Transport, TransportError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

pub(crate) const WALLET: [u8; 20] = [42; 20];
pub(crate) const OTHER: [u8; 20] = [7; 20];
const TOKEN: &str = "cccccccccccccccccccccccccccccccccccccccc";
const ROUTER: &str = "dddddddddddddddddddddddddddddddddddddddd";
const TRANSFER: &str = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const EPOCH_MILLIS: u64 = 1_600_000_000_000;
const BLOCK_MILLIS: u64 = 3000;

pub(crate) fn millis(height: Height) -> u64 {
    EPOCH_MILLIS + height * BLOCK_MILLIS
}

/// One placed transaction.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) height: Height,
    pub(crate) id: [u8; 32],
    owner: [u8; 20],
    kind: &'static str,
    data: &'static str,
    failed: bool,
    /// Token movements: from, to, amount.
    moves: Vec<([u8; 20], [u8; 20], u64)>,
    exchange: Option<u64>,
}

impl Placed {
    fn id(&self) -> String {
        hex::encode(self.id)
    }

    fn transaction(&self) -> Value {
        let mut value = json!({"owner_address": format!("41{}", hex::encode(self.owner))});
        match self.kind {
            "TriggerSmartContract" => {
                value["contract_address"] = format!("41{ROUTER}").into();
                value["data"] = self.data.into();
            }
            "ExchangeTransactionContract" => {
                value["exchange_id"] = self.exchange.into();
                value["token_id"] = "5f".into();
                value["quant"] = 100.into();
            }
            _ => {
                value["to_address"] = format!("41{}", hex::encode(OTHER)).into();
                value["amount"] = 5.into();
            }
        }
        let result = if self.failed { "REVERT" } else { "SUCCESS" };
        json!({
            "txID": self.id(), "ret": [{"contractRet": result}],
            "raw_data": {"contract": [{"type": self.kind, "parameter": {"value": value}}]},
        })
    }

    fn info(&self) -> Value {
        let result = if self.failed { "REVERT" } else { "SUCCESS" };
        let mut info = json!({
            "id": self.id(), "blockNumber": self.height, "blockTimeStamp": millis(self.height),
            "receipt": {"result": result}, "log": self.logs(),
        });
        if self.exchange.is_some() {
            info["exchange_received_amount"] = 42.into();
        }
        info
    }

    fn logs(&self) -> Vec<Value> {
        let word = |account: &[u8; 20]| format!("{:0>64}", hex::encode(account));
        let log = |(from, to, amount): &([u8; 20], [u8; 20], u64)| {
            json!({"address": TOKEN, "topics": [TRANSFER, word(from), word(to)],
                   "data": format!("{amount:064x}")})
        };
        self.moves.iter().map(log).collect()
    }

    fn touches(&self) -> bool {
        self.owner == WALLET
    }
}

#[derive(Debug, Default)]
pub(crate) struct Chain {
    txs: Vec<Placed>,
    head: AtomicU64,
}

impl Chain {
    pub(crate) fn new(head: Height) -> Self {
        Self { head: AtomicU64::new(head), txs: Vec::new() }
    }

    fn add(&mut self, height: Height, kind: &'static str, data: &'static str) -> &mut Placed {
        let number = u64::try_from(self.txs.len()).unwrap();
        let mut id = [1; 32];
        // Mixed, so that ids have no order of their own.
        id[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        id[8..16].copy_from_slice(&number.to_be_bytes());
        let moves = Vec::new();
        let (owner, failed, exchange) = (WALLET, false, None);
        self.txs.push(Placed { height, id, owner, kind, data, failed, moves, exchange });
        self.txs.last_mut().unwrap()
    }

    /// A call that gives one token and gets one: what a swap looks like from outside.
    pub(crate) fn swap(&mut self, height: Height) -> &mut Placed {
        let placed = self.add(height, "TriggerSmartContract", "18cbafe5");
        placed.moves = vec![(WALLET, OTHER, 3), (OTHER, WALLET, 4)];
        placed
    }

    /// Sold for TRX: the tokens go, and nothing comes that an event shows.
    pub(crate) fn sale(&mut self, height: Height) -> &mut Placed {
        let placed = self.add(height, "TriggerSmartContract", "18cbafe5");
        placed.moves = vec![(WALLET, OTHER, 3)];
        placed
    }

    /// Sent by somebody else, with the wallet's tokens.
    pub(crate) fn relayed(&mut self, height: Height) -> &mut Placed {
        let placed = self.swap(height);
        placed.owner = OTHER;
        placed
    }

    /// The wallet pays tokens, TRX, or nothing, or is paid: never a trade.
    pub(crate) fn noise(&mut self, height: Height, which: u64) {
        match which % 4 {
            0 => {
                let placed = self.add(height, "TriggerSmartContract", "a9059cbb");
                placed.moves = vec![(WALLET, OTHER, 3)];
            }
            1 => drop(self.add(height, "TransferContract", "")),
            2 => self.swap(height).failed = true,
            _ => self.airdrop(height),
        }
    }

    /// Tokens that somebody else sent, and some that pretend to move.
    pub(crate) fn airdrop(&mut self, height: Height) {
        let placed = self.add(height, "TriggerSmartContract", "12345678");
        placed.owner = OTHER;
        placed.moves = vec![(OTHER, WALLET, 9), (WALLET, OTHER, 0)];
    }

    pub(crate) fn exchange(&mut self, height: Height, exchange: u64) {
        self.add(height, "ExchangeTransactionContract", "").exchange = Some(exchange);
    }

    pub(crate) fn set_head(&self, head: Height) {
        self.head.store(head, Ordering::Relaxed);
    }

    /// What may be trades, in these heights.
    pub(crate) fn truth(&self, low: Height, high: Height) -> Vec<(Height, [u8; 32])> {
        let is_wanted = |tx: &&Placed| {
            let gave = tx.moves.iter().any(|(from, _, amount)| *from == WALLET && *amount > 0);
            let calls = tx.kind != "TransferContract" && !tx.data.starts_with("a9059cbb");
            !tx.failed && calls && (tx.owner == WALLET || gave)
        };
        let inside = self.txs.iter().filter(|tx| (low..=high).contains(&tx.height));
        let mut all: Vec<_> = inside.filter(is_wanted).map(|tx| (tx.height, tx.id)).collect();
        all.sort_unstable();
        all
    }
}

/// How the nodes err.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ways {
    /// No lists by address.
    pub(crate) no_index: bool,
    /// Every so many list pages end early and name no cursor.
    pub(crate) cut_pages: u64,
    /// Every so many list pages lack their first rows.
    pub(crate) lose_rows: u64,
    /// A transaction's info is unknown for the first asks.
    pub(crate) late_infos: u64,
    pub(crate) logs_range: u64,
    pub(crate) wrong_chain: bool,
}

/// The nodes as a transport.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) chain: Chain,
    ways: Ways,
    state: Mutex<State>,
    by_id: HashMap<String, usize>,
    /// The rows of both lists, made once.
    lists: [OnceLock<Vec<(u64, Value)>>; 2],
}

#[derive(Debug, Default)]
struct State {
    calls: BTreeMap<String, u64>,
    pages: u64,
    asked_infos: HashMap<String, u64>,
}

const PAGE_MAX: usize = 200;

impl Net {
    pub(crate) fn new(chain: Chain, ways: Ways) -> Self {
        let by_id = chain.txs.iter().enumerate().map(|(at, tx)| (tx.id(), at)).collect();
        Self { chain, ways, state: Mutex::default(), by_id, lists: Default::default() }
    }

    /// Requests by what was asked, without those that were refused.
    pub(crate) fn calls(&self, name: &str) -> u64 {
        let state = self.state.lock().unwrap();
        state.calls.iter().filter(|(key, _)| key.ends_with(name)).map(|(_, count)| *count).sum()
    }

    /// Infos that were asked for more than once.
    pub(crate) fn asked_again(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let again = state.asked_infos.iter().filter(|(_, count)| **count > 1);
        again.map(|(id, _)| id.clone()).collect()
    }

    fn answer(&self, request: &Request) -> (u16, Value) {
        let url = request.url.expose();
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let path = path.split("/planted-secret").nth(1).unwrap().trim_start_matches('/').to_owned();
        let name = match path.strip_prefix("v1/accounts/") {
            Some(rest) => rest.split_once('/').unwrap().1.to_owned(),
            None => path.clone(),
        };
        *self.state.lock().unwrap().calls.entry(name.clone()).or_default() += 1;
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        assert_eq!(request.method == Method::Get, path.starts_with("v1"));
        match name.as_str() {
            "transactions" | "transactions/trc20" if !self.ways.no_index => {
                (200, self.page(&name, query))
            }
            "jsonrpc" => (200, self.rpc(&body)),
            "walletsolidity/getnowblock" => (200, self.block(self.head())),
            "wallet/getblock" => {
                (200, self.block(body["id_or_num"].as_str().unwrap().parse().unwrap()))
            }
            "wallet/getblockbynum" => (200, self.block(body["num"].as_u64().unwrap())),
            "wallet/gettransactionbyid" => (200, self.find(&body, Placed::transaction)),
            "wallet/gettransactioninfobyid" => (200, self.info(&body)),
            "wallet/getexchangebyid" => {
                (200, json!({"first_token_id": "31303032303030", "second_token_id": "5f"}))
            }
            _ => (404, json!({"error": "not found"})),
        }
    }

    fn head(&self) -> Height {
        self.chain.head.load(Ordering::Relaxed)
    }

    fn block(&self, height: Height) -> Value {
        if height > self.head() {
            return json!({});
        }
        let in_it = self.chain.txs.iter().filter(|tx| tx.height == height);
        let ids: Vec<Value> = in_it.map(|tx| json!({"txID": tx.id()})).collect();
        json!({"blockID": format!("{height:064x}"), "transactions": ids,
               "block_header": {"raw_data": {"number": height, "timestamp": millis(height)}}})
    }

    fn find(&self, body: &Value, shape: impl Fn(&Placed) -> Value) -> Value {
        let id = body["value"].as_str().unwrap();
        let at = self.by_id.get(id).map(|at| &self.chain.txs[*at]);
        at.map_or(json!({}), shape)
    }

    fn info(&self, body: &Value) -> Value {
        let id = body["value"].as_str().unwrap().to_owned();
        let mut state = self.state.lock().unwrap();
        let asked = state.asked_infos.entry(id).or_default();
        *asked += 1;
        if *asked <= self.ways.late_infos {
            return json!({});
        }
        drop(state);
        self.find(body, Placed::info)
    }

    fn rows(&self, name: &str) -> &[(u64, Value)] {
        let list = usize::from(name != "transactions");
        self.lists[list].get_or_init(|| self.make_rows(name))
    }

    fn make_rows(&self, name: &str) -> Vec<(u64, Value)> {
        let mut rows = Vec::new();
        for tx in &self.chain.txs {
            let at = millis(tx.height);
            if name == "transactions" {
                if tx.touches() {
                    let mut item = tx.transaction();
                    item["blockNumber"] = tx.height.into();
                    item["block_timestamp"] = at.into();
                    rows.push((at, item));
                }
                continue;
            }
            for (from, to, amount) in &tx.moves {
                let text =
                    |account: &[u8; 20]| blotter::domain::Address::Tron(*account).to_string();
                let row = json!({"transaction_id": tx.id(), "block_timestamp": at, "type": "Transfer",
                                 "from": text(from), "to": text(to), "value": amount.to_string()});
                rows.push((at, row));
            }
        }
        // Inside of one moment the ids mix the order.
        rows.sort_by_cached_key(|(at, row)| (Reverse(*at), row.to_string()));
        rows
    }

    fn page(&self, name: &str, query: &str) -> Value {
        let query: HashMap<&str, &str> =
            query.split('&').filter_map(|p| p.split_once('=')).collect();
        let number = |key: &str| query.get(key).map(|text| text.parse::<u64>().unwrap());
        assert_eq!(query["only_confirmed"], "true");
        assert_eq!(query["order_by"], "block_timestamp%2Cdesc");
        let (low, high) = (number("min_timestamp").unwrap_or(0), number("max_timestamp").unwrap());
        let limit = usize::try_from(number("limit").unwrap()).unwrap().min(PAGE_MAX);
        let start = usize::try_from(number("fingerprint").unwrap_or(0)).unwrap();
        let all = self.rows(name);
        let high = high.min(millis(self.head()));
        let from = all.partition_point(|(at, _)| *at > high);
        let to = all.partition_point(|(at, _)| *at >= low);
        let fits = &all[from..to.max(from)];
        let mut data: Vec<Value> =
            fits.iter().skip(start).take(limit).map(|(_, row)| row.clone()).collect();
        let mut meta = json!({"page_size": data.len()});
        if start + limit < fits.len() {
            meta["fingerprint"] = (start + limit).to_string().into();
        }
        let mut state = self.state.lock().unwrap();
        state.pages += 1;
        let is = |every: u64| every > 0 && state.pages.is_multiple_of(every);
        if is(self.ways.cut_pages) {
            data.truncate(data.len() / 2 + 1);
            meta = json!({});
        }
        if is(self.ways.lose_rows) {
            data.drain(..data.len().min(3));
        }
        json!({"data": data, "success": true, "meta": meta})
    }

    fn rpc(&self, body: &Value) -> Value {
        let one = |call: &Value| {
            let answer = match call["method"].as_str().unwrap() {
                "eth_chainId" if self.ways.wrong_chain => Ok(json!("0x1")),
                "eth_chainId" => Ok(json!("0x2b6653dc")),
                "eth_getLogs" => self.logs(&call["params"][0]),
                _ => Err("the method does not exist/is not available".to_owned()),
            };
            match answer {
                Ok(result) => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
                Err(message) => json!({"jsonrpc": "2.0", "id": call["id"],
                                       "error": {"code": -32602, "message": message}}),
            }
        };
        match body.as_array() {
            Some(calls) => calls.iter().map(one).collect(),
            None => one(body),
        }
    }

    fn logs(&self, filter: &Value) -> Result<Value, String> {
        let number = |key: &str| {
            let text = filter[key].as_str().unwrap();
            u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap()
        };
        let (low, high) = (number("fromBlock"), number("toBlock"));
        assert!(high <= self.head(), "asked above the head, where nodes answer nothing");
        let range = if self.ways.logs_range == 0 { 5000 } else { self.ways.logs_range };
        if high - low >= range {
            return Err(format!("exceed max block range: {range}"));
        }
        let wanted: Vec<Option<&str>> =
            filter["topics"].as_array().unwrap().iter().map(Value::as_str).collect();
        let mut found = Vec::new();
        for tx in self.chain.txs.iter().filter(|tx| (low..=high).contains(&tx.height)) {
            if tx.failed {
                continue;
            }
            for log in tx.logs() {
                let topics: Vec<String> = log["topics"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|topic| format!("0x{}", topic.as_str().unwrap()))
                    .collect();
                let fits =
                    wanted.iter().zip(&topics).all(|(want, topic)| want.is_none_or(|w| w == topic));
                if fits {
                    found.push(json!({
                        "address": format!("0x{TOKEN}"), "topics": topics,
                        "data": format!("0x{}", log["data"].as_str().unwrap()),
                        "blockNumber": format!("{:#x}", tx.height),
                        "transactionHash": format!("0x{}", tx.id()),
                    }));
                }
            }
        }
        Ok(Value::Array(found))
    }
}

impl Transport for Net {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            let (status, body) = self.answer(&request);
            let body = Bytes::from(body.to_string());
            Ok(Response { status, retry_after: None, body })
        })
    }
}
