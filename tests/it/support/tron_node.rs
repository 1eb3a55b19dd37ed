//! A small Tron of hand-placed transactions of one wallet, its nodes and their faults, in this
//! process: the index's lists, the nodes' HTTP interface and their JSON-RPC. What a test expects is
//! read from the chain itself.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use blotter::domain::{Address, Height};
use blotter::rpc::{HttpMethod, Request, Response, Transport, TransportError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

pub(crate) const WALLET: [u8; 20] = [42; 20];
pub(crate) const OTHER: [u8; 20] = [7; 20];
const TOKEN: &str = "cccccccccccccccccccccccccccccccccccccccc";
/// USDT.
const STABLECOIN: &str = "a614f803b6fd780986a42c78ec9c7f77e6ded13c";
/// The selector of a call that swaps.
const SWAP: &str = "18cbafe5";
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
    token: &'static str,
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
        let call = |to: &str, value: Value| {
            json!({"caller_address": format!("41{ROUTER}"), "callValueInfo": [value],
                   "transferTo_address": format!("41{to}")})
        };
        let calls = match (self.moves.is_empty(), self.is_sale()) {
            (true, _) => vec![],
            (false, false) => vec![call(self.token, json!({}))],
            (false, true) => vec![
                call(self.token, json!({})),
                call(&hex::encode(WALLET), json!({"callValue": 7})),
            ],
        };
        let mut info = json!({
            "id": self.id(), "blockNumber": self.height, "blockTimeStamp": millis(self.height),
            "receipt": {"result": result}, "log": self.logs(), "internal_transactions": calls,
        });
        if self.exchange.is_some() {
            info["exchange_received_amount"] = 42.into();
        }
        info
    }

    /// Tokens go by a swap's call, and only TRX comes.
    fn is_sale(&self) -> bool {
        let [(from, _, 1..)] = self.moves.as_slice() else { return false };
        self.data == SWAP && *from == WALLET
    }

    fn logs(&self) -> Vec<Value> {
        let word = |account: &[u8; 20]| format!("{:0>64}", hex::encode(account));
        let log = |(from, to, amount): &([u8; 20], [u8; 20], u64)| {
            json!({"address": self.token, "topics": [TRANSFER, word(from), word(to)],
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
        let token = TOKEN;
        self.txs.push(Placed { height, id, owner, kind, data, failed, moves, token, exchange });
        self.txs.last_mut().unwrap()
    }

    /// All tokens are a stablecoin.
    pub(crate) fn of_stablecoins(mut self) -> Self {
        self.txs.iter_mut().for_each(|tx| tx.token = STABLECOIN);
        self
    }

    /// A call that gives one token and gets one: what a swap looks like from outside.
    pub(crate) fn swap(&mut self, height: Height) -> &mut Placed {
        let placed = self.add(height, "TriggerSmartContract", SWAP);
        placed.moves = vec![(WALLET, OTHER, 3), (OTHER, WALLET, 4)];
        placed
    }

    /// Sold for TRX: the tokens go, and nothing comes that an event shows.
    pub(crate) fn sale(&mut self, height: Height) -> &mut Placed {
        let placed = self.add(height, "TriggerSmartContract", SWAP);
        placed.moves = vec![(WALLET, OTHER, 3)];
        placed
    }

    /// A call with a transfer of nothing.
    pub(crate) fn empty_transfer(&mut self, height: Height) {
        self.sale(height).moves = vec![(WALLET, OTHER, 0)];
    }

    /// Sent by another account, with the wallet's tokens.
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

    /// Tokens that another account sent, and some that pretend to move.
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
#[expect(clippy::struct_excessive_bools, reason = "each way to err by itself")]
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
    /// So many first pages of each list are empty.
    pub(crate) empty_pages: u64,
    /// The list of transactions has none, or that of token movements.
    pub(crate) no_transactions: bool,
    pub(crate) no_transfers: bool,
    /// The status with which the list of token movements is refused; 0: it is not.
    pub(crate) transfers_refused: u16,
    /// Blocks by which the lists are behind the node.
    pub(crate) lists_behind: Height,
    /// When the chain's state says that the wallet's account was made; `None`: it has none.
    pub(crate) account_made: Option<u64>,
    /// Other accounts than the wallet have an entry in each block.
    pub(crate) busy_index: bool,
    /// Every so many searches for the wallet's events find nothing.
    pub(crate) empty_logs: u64,
    /// Events below this height are gone, and no answer says so.
    pub(crate) logs_from: Height,
    /// Searches over more blocks end with status 504.
    pub(crate) logs_time: u64,
    /// Searches for the wallet's events get no answer; those that show how deep they are kept do.
    pub(crate) hangs: bool,
    /// The placed transactions, by number, that are not found by id.
    pub(crate) lost_ids: Vec<usize>,
    /// Nor are they in their blocks.
    pub(crate) lost_in_blocks: bool,
    /// So many first infos of each transaction come without their events.
    pub(crate) bare_infos: u64,
    /// So many first answers about each token are null.
    pub(crate) null_tokens: u64,
    /// Tokens revert at every call.
    pub(crate) mute_tokens: bool,
    /// Blocks by which each head but the first is behind.
    pub(crate) later_heads_behind: Height,
    /// No page of the lists names a cursor.
    pub(crate) no_cursors: bool,
    /// Entries of a page at most, where that is fewer than the index's documented limit.
    pub(crate) entries_max: Option<usize>,
    /// java-tron as it is by default: infos without internal transactions.
    pub(crate) no_inner_calls: bool,
}

/// A transaction that the nodes fail on, and what they answer in place of it.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    pub(crate) height: Height,
    pub(crate) id: [u8; 32],
    /// Whether they fail on its block too.
    pub(crate) in_block: bool,
    pub(crate) answer: (u16, Value),
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
    /// The status that lists are refused with; 0: they are not.
    refusal: AtomicU16,
    /// The same of these methods.
    refused: Mutex<(&'static str, u16)>,
    broken: Mutex<Option<Broken>>,
    /// Blocks by which the lists are behind the node by now.
    behind: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    calls: BTreeMap<String, u64>,
    pages: u64,
    searches: u64,
    asked_infos: HashMap<String, u64>,
    asked_lists: HashMap<String, u64>,
    asked_tokens: HashMap<String, u64>,
}

const PAGE_MAX: usize = 200;

impl Net {
    pub(crate) fn new(chain: Chain, ways: Ways) -> Self {
        let by_id = chain.txs.iter().enumerate().map(|(at, tx)| (tx.id(), at)).collect();
        let (state, lists, refusal) = (Mutex::default(), Default::default(), AtomicU16::new(0));
        let behind = AtomicU64::new(ways.lists_behind);
        let (refused, broken) = (Mutex::new(("", 0)), Mutex::default());
        Self { chain, ways, state, by_id, lists, refusal, refused, broken, behind }
    }

    /// From now on the lists are so many blocks behind the node.
    pub(crate) fn set_lists_behind(&self, blocks: Height) {
        self.behind.store(blocks, Ordering::Relaxed);
    }

    /// The newest block that the lists have.
    fn listed(&self) -> Height {
        self.head().saturating_sub(self.behind.load(Ordering::Relaxed))
    }

    /// From now on lists are refused with a status, or answered again where it is 0.
    pub(crate) fn refuse_lists(&self, status: u16) {
        self.refusal.store(status, Ordering::Relaxed);
    }

    /// From now on what ends so is refused with a status, and nothing else.
    pub(crate) fn refuse(&self, method: &'static str, status: u16) {
        *self.refused.lock().unwrap() = (method, status);
    }

    /// From now on the nodes fail on this transaction, or on none.
    pub(crate) fn fail_on(&self, broken: Option<Broken>) {
        *self.broken.lock().unwrap() = broken;
    }

    fn broken_answer(&self, body: &Value) -> Option<(u16, Value)> {
        let Broken { height, id, in_block, answer } = self.broken.lock().unwrap().clone()?;
        let is_of = body["value"] == hex::encode(id) || in_block && body["num"] == height;
        is_of.then_some(answer)
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
        let (account, name) = match path.strip_prefix("v1/accounts/") {
            Some(rest) => rest.split_once('/').unwrap(),
            None => ("", path.as_str()),
        };
        let (name, is_wallets) = (name.to_owned(), account == Address::Tron(WALLET).to_string());
        let refusal = match self.refusal.load(Ordering::Relaxed) {
            0 if name == "transactions/trc20" => self.ways.transfers_refused,
            refusal => refusal,
        };
        if path.starts_with("v1") && refusal > 0 {
            *self.state.lock().unwrap().calls.entry("refused".to_owned()).or_default() += 1;
            return (refusal, json!("<html>refused</html>"));
        }
        if path.starts_with("v1") && !is_wallets && !self.ways.no_index {
            return (200, self.busy_page(&name, query));
        }
        let (method, status) = *self.refused.lock().unwrap();
        if status > 0 && name.ends_with(method) {
            return (status, json!("<html>refused</html>"));
        }
        *self.state.lock().unwrap().calls.entry(name.clone()).or_default() += 1;
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        assert_eq!(request.method == HttpMethod::Get, path.starts_with("v1"));
        // These nodes offer no solid view of transactions, broken or not.
        let broken = self.broken_answer(&body).filter(|_| name.starts_with("wallet/"));
        if let Some(answer) = broken {
            return answer;
        }
        match name.as_str() {
            "transactions" | "transactions/trc20" if !self.ways.no_index => {
                (200, self.page(&name, query))
            }
            "jsonrpc" if self.takes_too_long(&body) => {
                (504, json!("<html>gateway time-out</html>"))
            }
            "jsonrpc" => (200, self.rpc(&body)),
            "walletsolidity/getnowblock" => {
                let is_first = self.calls("getnowblock") == 1;
                let behind = if is_first { 0 } else { self.ways.later_heads_behind };
                (200, self.block(self.head() - behind))
            }
            "wallet/getblock" => {
                (200, self.block(body["id_or_num"].as_str().unwrap().parse().unwrap()))
            }
            "wallet/getblockbynum" => (200, self.block(body["num"].as_u64().unwrap())),
            "wallet/gettransactioninfobyblocknum" => (200, self.infos(&body)),
            "wallet/gettransactionbyid" => (200, self.find(&body, Placed::transaction)),
            "wallet/gettransactioninfobyid" => (200, self.info(&body)),
            "walletsolidity/getaccount" => (200, self.account(&body["address"])),
            "wallet/getexchangebyid" => {
                (200, json!({"first_token_id": "31303032303030", "second_token_id": "5f"}))
            }
            _ => (404, json!({"error": "not found"})),
        }
    }

    fn head(&self) -> Height {
        self.chain.head.load(Ordering::Relaxed)
    }

    fn account(&self, address: &Value) -> Value {
        if *address != Address::Tron(WALLET).to_string() {
            return json!({"address": address, "type": "Contract"});
        }
        let made = |at: u64| json!({"address": address, "create_time": at, "balance": 5});
        self.ways.account_made.map_or(json!({}), made)
    }

    fn block(&self, height: Height) -> Value {
        if height > self.head() {
            return json!({});
        }
        let ids: Vec<Value> = self.inside(height).map(Placed::transaction).collect();
        json!({"blockID": format!("{height:064x}"), "transactions": ids,
               "block_header": {"raw_data": {"number": height, "timestamp": millis(height)}}})
    }

    /// The transactions of a block, as it shows them.
    fn inside(&self, height: Height) -> impl Iterator<Item = &Placed> {
        let shown = |at: &usize| !self.ways.lost_in_blocks || !self.ways.lost_ids.contains(at);
        let all = self.chain.txs.iter().enumerate();
        all.filter(move |(at, tx)| tx.height == height && shown(at)).map(|(_, tx)| tx)
    }

    fn infos(&self, body: &Value) -> Value {
        let inside = self.inside(body["num"].as_u64().unwrap());
        inside.map(|tx| self.without_calls(tx.info())).collect()
    }

    /// A page of an account that has an entry in every block, or none.
    fn busy_page(&self, name: &str, query: &str) -> Value {
        let newest = self.listed();
        let limit = query.split_once("limit=").unwrap().1;
        let limit: String = limit.chars().take_while(char::is_ascii_digit).collect();
        let count = if self.ways.busy_index { limit.parse().unwrap() } else { 0 };
        let key = if name == "transactions" { "txID" } else { "transaction_id" };
        let row = |height: Height| json!({key: format!("{height:064x}"), "block_timestamp": millis(height)});
        let data: Vec<Value> = (0..count).map(|back| row(newest - back)).collect();
        json!({"data": data, "success": true, "meta": {"page_size": count}})
    }

    fn takes_too_long(&self, body: &Value) -> bool {
        let one = [body.clone()];
        let calls = body.as_array().map_or(one.as_slice(), Vec::as_slice);
        let number = |call: &Value, key: &str| {
            let text = call["params"][0][key].as_str().unwrap_or("0x0");
            u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap()
        };
        let blocks = |call: &Value| number(call, "toBlock") - number(call, "fromBlock") + 1;
        self.ways.logs_time > 0 && calls.iter().any(|call| blocks(call) > self.ways.logs_time)
    }

    fn find(&self, body: &Value, shape: impl Fn(&Placed) -> Value) -> Value {
        let id = body["value"].as_str().unwrap();
        let at = self.by_id.get(id).filter(|at| !self.ways.lost_ids.contains(at));
        at.map(|at| &self.chain.txs[*at]).map_or(json!({}), shape)
    }

    fn info(&self, body: &Value) -> Value {
        let id = body["value"].as_str().unwrap().to_owned();
        let mut state = self.state.lock().unwrap();
        let asked = state.asked_infos.entry(id).or_default();
        *asked += 1;
        let asked = *asked;
        drop(state);
        if asked <= self.ways.late_infos {
            return json!({});
        }
        let mut info = self.find(body, Placed::info);
        if asked <= self.ways.bare_infos && info["log"].is_array() {
            info["log"] = json!([]);
        }
        self.without_calls(info)
    }

    /// An info as this node keeps it.
    fn without_calls(&self, mut info: Value) -> Value {
        let hidden = info.as_object_mut().filter(|_| self.ways.no_inner_calls);
        hidden.and_then(|info| info.remove("internal_transactions"));
        info
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
            // What failed has no events, from which token movements are listed.
            for (from, to, amount) in tx.moves.iter().filter(|_| !tx.failed) {
                let text = |account: &[u8; 20]| Address::Tron(*account).to_string();
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
        let most = self.ways.entries_max.unwrap_or(PAGE_MAX);
        let limit = usize::try_from(number("limit").unwrap()).unwrap().min(most);
        let start = usize::try_from(number("fingerprint").unwrap_or(0)).unwrap();
        let all = self.rows(name);
        let high = high.min(millis(self.listed()));
        let from = all.partition_point(|(at, _)| *at > high);
        let to = all.partition_point(|(at, _)| *at >= low);
        let fits = &all[from..to.max(from)];
        let mut data: Vec<Value> =
            fits.iter().skip(start).take(limit).map(|(_, row)| row.clone()).collect();
        let mut meta = json!({"page_size": data.len()});
        if start + limit < fits.len() && !self.ways.no_cursors {
            meta["fingerprint"] = (start + limit).to_string().into();
        }
        let mut state = self.state.lock().unwrap();
        let asked = state.asked_lists.entry(name.to_owned()).or_default();
        *asked += 1;
        let is_first = name == "transactions";
        let is_none = if is_first { self.ways.no_transactions } else { self.ways.no_transfers };
        if *asked <= self.ways.empty_pages || is_none {
            return json!({"data": [], "success": true, "meta": {"page_size": 0}});
        }
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
                "eth_blockNumber" => Ok(json!(format!("{:#x}", self.head()))),
                "eth_getLogs" => self.logs(&call["params"][0]),
                "eth_call" => self.token(&call["params"][0]),
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

    fn is_empty_search(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.searches += 1;
        // Mixed, so that not always the same searches of a batch are hit.
        let mixed = state.searches.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.ways.empty_logs > 0 && mixed.is_multiple_of(self.ways.empty_logs)
    }

    /// A symbol of one letter, and two decimals.
    fn token(&self, call: &Value) -> Result<Value, String> {
        if self.ways.mute_tokens {
            return Err("REVERT opcode executed".to_owned());
        }
        let data = call["data"].as_str().unwrap();
        let mut state = self.state.lock().unwrap();
        let asked = state.asked_tokens.entry(format!("{}{data}", call["to"])).or_default();
        *asked += 1;
        if *asked <= self.ways.null_tokens {
            return Ok(Value::Null);
        }
        let decimals = data == "0x313ce567";
        let word = if decimals { format!("{:064x}", 2) } else { format!("{:0<64}", "54") };
        Ok(json!(format!("0x{word}")))
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
        if filter["address"].is_array() {
            let low = low.max(self.ways.logs_from);
            let swaps = (low..=high).filter(|height| height % 4 == 0);
            return Ok(swaps
                .map(|height| json!({"blockNumber": format!("{height:#x}")}))
                .collect());
        }
        if self.is_empty_search() {
            return Ok(json!([]));
        }
        let low = low.max(self.ways.logs_from);
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
            let topic = hex::encode(WALLET);
            let asked = String::from_utf8_lossy(&request.body);
            if self.ways.hangs && asked.contains("eth_getLogs") && asked.contains(&topic) {
                tokio::time::sleep(request.timeout).await;
                return Err(TransportError::Timeout);
            }
            let (status, body) = self.answer(&request);
            let body = Bytes::from(body.to_string());
            Ok(Response { status, retry_after: None, body })
        })
    }
}

/// Nodes by the host of their URL.
#[derive(Debug)]
pub(crate) struct Hosts(pub(crate) Vec<(&'static str, Arc<Net>)>);

impl Transport for Hosts {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let host = request.url.label().trim_start_matches("http://").to_owned();
        let (_, net) = self.0.iter().find(|(name, _)| *name == host).unwrap();
        net.send(request)
    }
}
