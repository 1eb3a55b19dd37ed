//! A small Solana of hand-placed transactions, its nodes and their faults, in this process. What a
//! test expects is read from the chain itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::domain::{Address, Family, Height, TxId};
use blotter::rpc::{Request, Response, Transport, TransportError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

pub(crate) const GENESIS: &str = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d";
const TOKEN_PROGRAM: &str = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";

/// One placed transaction.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) slot: Height,
    pub(crate) id: TxId,
    keys: Vec<[u8; 32]>,
    failed: bool,
    closes: Option<[u8; 32]>,
    /// Token accounts of the first key that are open before and after.
    holds: Vec<[u8; 32]>,
    /// The whole transaction, where it is not an empty one.
    shows: Option<Value>,
    has_time: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Chain {
    txs: Vec<Placed>,
    by_id: HashMap<TxId, usize>,
    head: AtomicU64,
    /// Accounts that are open, what they hold, and since which slot.
    open: Vec<([u8; 32], u64, Height)>,
    account_infos: HashMap<[u8; 32], Value>,
}

pub(crate) fn key(number: u16) -> [u8; 32] {
    let mut key = [7; 32];
    key[..2].copy_from_slice(&number.to_be_bytes());
    key
}

pub(crate) fn text(key: [u8; 32]) -> String {
    Address::Solana(key).to_string()
}

impl Chain {
    pub(crate) fn new(head: Height) -> Self {
        Self { head: AtomicU64::new(head), ..Self::default() }
    }

    /// A transaction that names these keys.
    pub(crate) fn add(&mut self, slot: Height, keys: &[[u8; 32]]) -> &mut Placed {
        let mut id = [1; 64];
        let number = u64::try_from(self.txs.len()).unwrap();
        // Mixed, so that signatures have no order of their own.
        id[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        id[8..16].copy_from_slice(&number.to_be_bytes());
        let id = TxId::solana(&id);
        let keys = keys.to_vec();
        self.by_id.insert(id, self.txs.len());
        self.txs.push(Placed {
            slot,
            id,
            keys,
            failed: false,
            closes: None,
            holds: Vec::new(),
            shows: None,
            has_time: true,
        });
        self.txs.last_mut().unwrap()
    }

    pub(crate) fn open_account(&mut self, account: [u8; 32], amount: u64) {
        self.open_account_since(account, amount, 0);
    }

    pub(crate) fn open_account_since(&mut self, account: [u8; 32], amount: u64, slot: Height) {
        self.open.push((account, amount, slot));
    }

    /// Every so many transactions have no block time of their own.
    pub(crate) fn forget_times(&mut self, every: usize) {
        for tx in self.txs.iter_mut().step_by(every) {
            tx.has_time = false;
        }
    }

    pub(crate) fn set_amount(&mut self, account: [u8; 32], amount: u64) {
        for known in self.open.iter_mut().filter(|(key, ..)| *key == account) {
            known.1 = amount;
        }
    }

    pub(crate) fn close_account(&mut self, account: [u8; 32]) {
        self.open.retain(|(key, ..)| *key != account);
    }

    pub(crate) fn set_info(&mut self, account: [u8; 32], info: Value) {
        self.account_infos.insert(account, info);
    }

    pub(crate) fn set_head(&self, head: Height) {
        self.head.store(head, Ordering::Relaxed);
    }

    /// Ids of the successful transactions in these heights that name one of the keys, with slots.
    pub(crate) fn truth(
        &self,
        keys: &[[u8; 32]],
        low: Height,
        high: Height,
    ) -> Vec<(Height, TxId)> {
        let mut all: Vec<_> = self
            .txs
            .iter()
            .filter(|tx| !tx.failed && (low..=high).contains(&tx.slot))
            .filter(|tx| tx.keys.iter().any(|key| keys.contains(key)))
            .map(|tx| (tx.slot, tx.id))
            .collect();
        all.sort_unstable();
        all
    }

    fn find(&self, id: &str) -> Option<&Placed> {
        self.txs.get(*self.by_id.get(&TxId::parse_solana(id)?)?)
    }
}

impl Placed {
    pub(crate) fn failed(&mut self) -> &mut Self {
        self.failed = true;
        self
    }

    pub(crate) fn closes(&mut self, account: [u8; 32]) -> &mut Self {
        self.closes = Some(account);
        self.keys.push(account);
        self
    }

    /// Names a token account of the first key that is open before and after.
    pub(crate) fn holds(&mut self, account: [u8; 32]) -> &mut Self {
        self.holds.push(account);
        self.keys.push(account);
        self
    }

    pub(crate) fn shows(&mut self, tx: Value) -> &mut Self {
        self.shows = Some(tx);
        self
    }

    fn json(&self) -> Value {
        if let Some(mut tx) = self.shows.clone() {
            tx["slot"] = json!(self.slot);
            tx["blockTime"] = json!(1_600_000_000 + self.slot);
            tx["transaction"]["signatures"] = json!([self.id.to_string()]);
            return tx;
        }
        let mut keys: Vec<String> = self.keys.iter().map(|key| text(*key)).collect();
        let mut instructions = Vec::new();
        let mut tokens = Vec::new();
        if let Some(account) = self.closes {
            let at = self.keys.iter().position(|key| *key == account).unwrap();
            keys.push(TOKEN_PROGRAM.to_owned());
            // Instruction 9 is CloseAccount.
            instructions.push(json!({"programIdIndex": keys.len() - 1, "accounts": [at, 0, 0],
                                     "data": "A", "stackHeight": null}));
            tokens.push(json!({"accountIndex": at, "mint": text(key(60_000)), "owner": keys[0],
                               "programId": TOKEN_PROGRAM,
                               "uiTokenAmount": {"amount": "0", "decimals": 6}}));
        }
        let held = |account: &[u8; 32]| {
            let at = self.keys.iter().position(|key| key == account).unwrap();
            json!({"accountIndex": at, "mint": text(key(60_001)), "owner": keys[0],
                   "programId": TOKEN_PROGRAM, "uiTokenAmount": {"amount": "5", "decimals": 6}})
        };
        let held: Vec<Value> = self.holds.iter().map(held).collect();
        tokens.extend(held.clone());
        let after = vec![0; keys.len()];
        // The first key pays the fee.
        let mut before = after.clone();
        before[0] = 5_000;
        json!({
            "slot": self.slot,
            "blockTime": self.has_time.then_some(1_600_000_000 + self.slot),
            "version": "legacy",
            "transaction": {"signatures": [self.id.to_string()], "message": {
                "accountKeys": keys, "instructions": instructions, "recentBlockhash": text([9; 32]),
                "header": {"numRequiredSignatures": 1, "numReadonlySignedAccounts": 0,
                           "numReadonlyUnsignedAccounts": 0}}},
            "meta": {"err": null, "fee": 5000, "preBalances": before, "postBalances": after,
                     "preTokenBalances": tokens, "postTokenBalances": held,
                     "innerInstructions": [], "logMessages": []},
        })
    }
}

/// What is wrong with a node. `every` counts that node's calls of the kind; 0 is never.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    pub(crate) genesis: &'static str,
    pub(crate) latency: Duration,
    pub(crate) lag: Height,
    /// Slots by which lists are behind the node's own slot, also where `minContextSlot` demands more.
    pub(crate) list_lag: Height,
    /// Only in every so many requests; 0: always.
    pub(crate) list_lag_every: u64,
    pub(crate) first_block: Height,
    /// Orders each slot's signatures anew at each call.
    pub(crate) flips: bool,
    /// Pages lose the first entry behind their cursor.
    pub(crate) loses_edge_every: u64,
    pub(crate) empty_page_every: u64,
    /// Pages lose an entry in the middle.
    pub(crate) loses_inner_every: u64,
    /// Every so many lists of an owner's accounts are empty.
    pub(crate) no_accounts_every: u64,
    /// Longest page of one address's list.
    pub(crate) short_pages: Option<([u8; 32], usize)>,
    pub(crate) null_every: u64,
    /// Requests answered with status 429.
    pub(crate) too_many_every: u64,
    pub(crate) lists_token_accounts: bool,
    /// A slot whose block is not available, now or ever.
    pub(crate) no_block: Option<Height>,
    /// A method that it does not support.
    pub(crate) without: Option<&'static str>,
    /// Whether a list can be asked from a signature that is not in it.
    pub(crate) knows_foreign_cursors: bool,
    /// A transaction that is listed and never given.
    pub(crate) lacks: Option<TxId>,
    /// All transactions of these slots are listed and never given.
    pub(crate) lacks_slots: Option<(Height, Height)>,
    /// A transaction that is listed, and whose every request gets an error of this code.
    pub(crate) fails: Option<(TxId, i64)>,
    /// The code of the error to every request for a transaction: of those that it knows, or of all.
    pub(crate) fails_all: Option<(bool, i64)>,
    /// Distinguishes forks.
    pub(crate) hash_salt: u8,
    /// So many questions for the newest hash get `null`; `None`: the method is not offered.
    pub(crate) null_tips: Option<u64>,
}

impl Default for Ways {
    fn default() -> Self {
        Self {
            genesis: GENESIS,
            latency: Duration::from_millis(100),
            lag: 0,
            list_lag: 0,
            list_lag_every: 0,
            first_block: 0,
            flips: false,
            loses_edge_every: 0,
            empty_page_every: 0,
            loses_inner_every: 0,
            no_accounts_every: 0,
            short_pages: None,
            null_every: 0,
            too_many_every: 0,
            lists_token_accounts: true,
            no_block: None,
            without: None,
            knows_foreign_cursors: true,
            lacks: None,
            lacks_slots: None,
            fails_all: None,
            fails: None,
            hash_salt: 0,
            null_tips: None,
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    requests: u64,
    calls: BTreeMap<String, u64>,
    /// Lists asked, by address.
    lists: BTreeMap<String, u64>,
}

/// All nodes of a chain, by host name `node0`, `node1` …
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) chain: Mutex<Chain>,
    nodes: Vec<(Mutex<Ways>, Mutex<Counts>)>,
}

type Reply = Result<Value, (i64, String)>;

impl Net {
    pub(crate) fn new(chain: Chain, nodes: Vec<Ways>) -> Arc<Self> {
        let nodes = nodes.into_iter().map(|ways| (Mutex::new(ways), Mutex::default())).collect();
        Arc::new(Self { chain: Mutex::new(chain), nodes })
    }

    pub(crate) fn set(&self, node: usize, ways: Ways) {
        *self.nodes[node].0.lock().unwrap() = ways;
    }

    pub(crate) fn requests(&self) -> u64 {
        self.nodes.iter().map(|(_, counts)| counts.lock().unwrap().requests).sum()
    }

    pub(crate) fn calls(&self, method: &str) -> u64 {
        let of = |counts: &Mutex<Counts>| counts.lock().unwrap().calls.get(method).copied();
        self.nodes.iter().filter_map(|(_, counts)| of(counts)).sum()
    }

    pub(crate) fn calls_at(&self, node: usize, method: &str) -> u64 {
        self.nodes[node].1.lock().unwrap().calls.get(method).copied().unwrap_or(0)
    }

    pub(crate) fn lists_of(&self, address: [u8; 32]) -> u64 {
        let address = text(address);
        let of = |counts: &Mutex<Counts>| counts.lock().unwrap().lists.get(&address).copied();
        self.nodes.iter().filter_map(|(_, counts)| of(counts)).sum()
    }

    fn answer(&self, node: usize, body: &[u8]) -> Response {
        let (ways, counts) = &self.nodes[node];
        let mut ways = ways.lock().unwrap().clone();
        let mut counts = counts.lock().unwrap();
        counts.requests += 1;
        if ways.list_lag_every > 0 && !hits(ways.list_lag_every, counts.requests) {
            ways.list_lag = 0;
        }
        if hits(ways.too_many_every, counts.requests) {
            return Response { status: 429, retry_after: None, body: Bytes::new() };
        }
        let asked: Value = serde_json::from_slice(body).unwrap();
        let chain = self.chain.lock().unwrap();
        let mut one = |call: &Value| {
            let method = call["method"].as_str().unwrap();
            let count = counts.calls.entry(method.to_owned()).or_default();
            *count += 1;
            let count = *count;
            if method == "getSignaturesForAddress" {
                let address = call["params"][0].as_str().unwrap().to_owned();
                *counts.lists.entry(address).or_default() += 1;
            }
            match reply(&chain, &ways, method, &call["params"], count) {
                Ok(result) => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
                Err((code, message)) => json!({"jsonrpc": "2.0", "id": call["id"],
                                               "error": {"code": code, "message": message}}),
            }
        };
        let answer = match asked.as_array() {
            Some(calls) => Value::Array(calls.iter().map(&mut one).collect()),
            None => one(&asked),
        };
        Response {
            status: 200,
            retry_after: None,
            body: serde_json::to_vec(&answer).unwrap().into(),
        }
    }
}

impl Transport for Net {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            let host = request.url.label();
            let node: usize = host.rsplit("node").next().unwrap().parse().unwrap();
            let latency = self.nodes[node].0.lock().unwrap().latency;
            tokio::time::sleep(latency).await;
            Ok(self.answer(node, &request.body))
        })
    }
}

fn hits(every: u64, count: u64) -> bool {
    every > 0 && count.is_multiple_of(every)
}

fn reply(chain: &Chain, ways: &Ways, method: &str, params: &Value, count: u64) -> Reply {
    let head = chain.head.load(Ordering::Relaxed) - ways.lag;
    let context = json!({"slot": head});
    match method {
        _ if ways.without == Some(method) => Err((-32601, "Method not found".to_owned())),
        "getGenesisHash" => Ok(json!(ways.genesis)),
        "getSlot" => Ok(json!(head)),
        "getLatestBlockhash" if ways.null_tips.is_some_and(|nulls| count <= nulls) => {
            Ok(json!(null))
        }
        "getLatestBlockhash" if ways.null_tips.is_some() => {
            let value = json!({"blockhash": text([ways.hash_salt; 32])});
            Ok(json!({"context": context, "value": value}))
        }
        "getFirstAvailableBlock" => Ok(json!(ways.first_block)),
        "getBlockTime" => Ok(json!(1_600_000_000 + params[0].as_u64().unwrap())),
        "getAccountInfo" => {
            let Some(Address::Solana(key)) = address(&params[0]) else { return Ok(json!(null)) };
            Ok(json!({"context": context, "value": chain.account_infos.get(&key)}))
        }
        "getTokenAccountsByOwner" if ways.lists_token_accounts => {
            let classic = params[1]["programId"] == TOKEN_PROGRAM;
            let value: Vec<Value> = chain
                .open
                .iter()
                .filter(|(.., since)| classic && *since <= head)
                .filter(|_| !hits(ways.no_accounts_every, count))
                .map(|(account, amount, _)| keyed(*account, *amount))
                .collect();
            Ok(json!({"context": context, "value": value}))
        }
        "getSignaturesForAddress" => list(chain, ways, head, params, count),
        "getTransaction" => {
            let tx = chain.find(params[0].as_str().unwrap());
            let known = tx.filter(|tx| tx.slot <= head && tx.slot >= ways.first_block);
            let one = ways.fails.filter(|(id, _)| tx.is_some_and(|tx| tx.id == *id));
            let all = ways.fails_all.filter(|(known, _)| tx.is_some() || !known);
            if let Some(code) = one.map(|(_, code)| code).or(all.map(|(_, code)| code)) {
                return Err((code, "unexpected".to_owned()));
            }
            let is_lacked = |tx: &Placed| {
                let of_slots = ways.lacks_slots;
                ways.lacks == Some(tx.id)
                    || of_slots.is_some_and(|(low, high)| (low..=high).contains(&tx.slot))
            };
            let given = known.filter(|tx| !hits(ways.null_every, count) && !is_lacked(tx));
            Ok(given.map_or(Value::Null, Placed::json))
        }
        "getBlocksWithLimit" => {
            let from = params[0].as_u64().unwrap();
            let slot = chain.txs.iter().map(|tx| tx.slot).filter(|slot| *slot >= from).min();
            Ok(json!(slot.into_iter().collect::<Vec<_>>()))
        }
        "getBlock" => {
            let slot = params[0].as_u64().unwrap();
            if slot < ways.first_block {
                return Err((-32001, format!("Block {slot} cleaned up, does not exist on node")));
            }
            if ways.no_block == Some(slot) {
                return Err((-32004, format!("Block not available for slot {slot}")));
            }
            let ids: Vec<String> =
                chain.txs.iter().filter(|tx| tx.slot == slot).map(|tx| tx.id.to_string()).collect();
            if ids.is_empty() {
                return Err((-32007, format!("Slot {slot} was skipped")));
            }
            Ok(json!({"blockhash": text([ways.hash_salt; 32]), "signatures": ids}))
        }
        _ => Err((-32601, "Method not found".to_owned())),
    }
}

fn address(text: &Value) -> Option<Address> {
    Address::parse(Family::Solana, text.as_str()?).ok()
}

fn keyed(account: [u8; 32], amount: u64) -> Value {
    use base64::Engine as _;
    let data = base64::engine::general_purpose::STANDARD.encode(amount.to_le_bytes());
    json!({"pubkey": text(account),
           "account": {"data": [data, "base64"], "owner": TOKEN_PROGRAM, "executable": false}})
}

fn list(chain: &Chain, ways: &Ways, head: Height, params: &Value, count: u64) -> Reply {
    let Some(Address::Solana(address)) = address(&params[0]) else {
        return Err((-32602, "Invalid param".to_owned()));
    };
    let how = &params[1];
    if how["minContextSlot"].as_u64().is_some_and(|slot| slot > head) {
        return Err((-32016, "Minimum context slot has not been reached".to_owned()));
    }
    let head = head.saturating_sub(ways.list_lag);
    if ways.empty_page_every > 0 && hits(ways.empty_page_every, count) {
        return Ok(json!([]));
    }
    let mut named: Vec<&Placed> = chain
        .txs
        .iter()
        .filter(|tx| tx.slot <= head && tx.slot >= ways.first_block && tx.keys.contains(&address))
        .collect();
    let salt = if ways.flips { count.wrapping_mul(0x5851_f42d_4c95_7f2d) } else { 0 };
    let rank = |tx: &Placed| {
        let TxId::Solana(id) = tx.id else { return 0 };
        let number = u64::from_be_bytes(id.to_bytes()[..8].try_into().unwrap());
        (number ^ salt).wrapping_mul(0x2545_f491_4f6c_dd1d) ^ salt
    };
    named.sort_by_key(|tx| (std::cmp::Reverse(tx.slot), rank(tx)));
    let mut from = 0;
    if let Some(before) = how["before"].as_str() {
        let cursor = chain.find(before).filter(|tx| tx.slot <= head && tx.slot >= ways.first_block);
        let Some(cursor) = cursor else { return Ok(json!([])) };
        let place = named.iter().position(|tx| tx.id == cursor.id);
        if place.is_none() && !ways.knows_foreign_cursors {
            return Ok(json!([]));
        }
        from =
            place.map_or_else(|| named.partition_point(|tx| tx.slot >= cursor.slot), |at| at + 1);
        from += usize::from(hits(ways.loses_edge_every, count));
    }
    let limit = usize::try_from(how["limit"].as_u64().unwrap()).unwrap();
    if !(1..=1000).contains(&limit) {
        return Err((-32602, "Invalid limit; max 1000".to_owned()));
    }
    let page_max = ways.short_pages.filter(|(of, _)| *of == address).map_or(1000, |(_, max)| max);
    let mut page: Vec<&&Placed> = named.iter().skip(from).take(limit.min(page_max)).collect();
    if page.len() > 2 && hits(ways.loses_inner_every, count) {
        page.remove(page.len() / 2);
    }
    let page = page.into_iter().map(|tx| {
        let err = tx.failed.then(|| json!({"InstructionError": [0, "Custom"]}));
        let time = tx.has_time.then_some(1_600_000_000 + tx.slot);
        json!({"signature": tx.id.to_string(), "slot": tx.slot, "blockTime": time,
               "err": err, "memo": null, "confirmationStatus": "finalized"})
    });
    Ok(Value::Array(page.collect()))
}
