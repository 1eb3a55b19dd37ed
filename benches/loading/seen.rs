//! A transport that notes what is asked: calls, and which of them the loading cannot do without.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex};

use blotter::demo::DemoTransport;
use blotter::rpc::{Request, Response, Transport, TransportError};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use crate::TRIP;

/// Calls without which there are no rows: what is asked once more is not among the least.
const TRANSACTIONS: [&str; 5] = [
    "getTransaction",
    "eth_getTransactionByHash",
    "eth_getTransactionReceipt",
    "debug_traceTransaction",
    "trace_transaction",
];
const LISTS: [&str; 1] = ["getSignaturesForAddress"];
/// Pages of transactions, of which no batch may hold several.
const FULL_PAGES: &str = "getTransactionsForAddress";
/// Parts of paths, for interfaces that have such.
const TRANSACTION_PATHS: [&str; 2] = ["/gettransactionbyid", "/gettransactioninfobyid"];
const LIST_PATHS: [&str; 1] = ["/v1/accounts/"];

#[derive(Debug)]
pub(crate) struct Seen {
    inner: DemoTransport,
    /// The wallet as logs name it.
    wallet: String,
    /// A request counts as one call, even if a batch: so Tron's index counts.
    by_request: bool,
    counts: Mutex<Counts>,
    hasher: RandomState,
    began: Instant,
    /// Each request with the round trips since the beginning.
    prints: bool,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    /// Of these, requests to an index or gateway next to the node.
    pub(crate) index_calls: u64,
    /// Of the others, by method, and the requests that held them.
    pub(crate) by_method: BTreeMap<String, u64>,
    pub(crate) node_requests: u64,
    /// Ranges of blocks whose logs of reference pools were read, for prices: highest block, lowest.
    pub(crate) priced: BTreeSet<(u64, u64)>,
    /// Each once: names, prices and what nodes are asked about themselves too.
    distinct: HashSet<u64>,
    /// Searches of the wallet's logs that were made again: a proof takes two answers to each, as one
    /// may lack logs without a sign.
    confirmed: HashSet<u64>,
    /// Distinct calls for transactions and lists, apart from those that a batch may hold.
    single: HashSet<u64>,
    batched: HashSet<u64>,
    /// Distinct pages of lists that are requests of their own, of a node and of an index or gateway
    /// next to it.
    pages: HashSet<u64>,
    index_pages: HashSet<u64>,
}

impl Counts {
    pub(crate) fn single(&self) -> u64 {
        count(&self.single)
    }

    pub(crate) fn batched(&self) -> u64 {
        count(&self.batched)
    }

    pub(crate) fn pages(&self) -> u64 {
        count(&self.pages)
    }

    pub(crate) fn index_pages(&self) -> u64 {
        count(&self.index_pages)
    }

    /// With the second answers that a proof takes.
    pub(crate) fn distinct(&self) -> u64 {
        count(&self.distinct) + count(&self.confirmed)
    }

    /// For transactions and lists alone.
    pub(crate) fn for_rows(&self) -> u64 {
        self.single() + self.batched() + self.pages() + self.index_pages()
    }
}

fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

fn count(of: &HashSet<u64>) -> u64 {
    u64::try_from(of.len()).unwrap()
}

impl Seen {
    pub(crate) fn new(inner: DemoTransport, wallet: String, by_request: bool) -> Arc<Self> {
        let (counts, hasher, began) = (Mutex::default(), RandomState::new(), Instant::now());
        let prints = std::env::args().any(|arg| arg == "--requests");
        Arc::new(Self { inner, wallet, by_request, counts, hasher, began, prints })
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts.lock().unwrap().clone()
    }

    /// Counts calls once, and a search of the wallet's logs twice.
    fn note_distinct(&self, counts: &mut Counts, calls: &[Value], key: u64) {
        let is_known = !counts.distinct.insert(key);
        if is_known && calls.iter().any(|call| self.is_own_logs(call)) {
            counts.confirmed.insert(key);
        }
    }

    fn note(&self, request: &Request) {
        let mut counts = self.counts.lock().unwrap();
        let url = request.url.expose();
        let key = self.hasher.hash_one((url, &request.body));
        let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let calls = body.as_array().map_or_else(|| std::slice::from_ref(&body), Vec::as_slice);
        let is_rpc = calls.iter().any(|call| call["method"].is_string());
        counts.node_requests += u64::from(!url.contains("//index"));
        if is_rpc && !self.by_request {
            for call in calls {
                self.note_call(&mut counts, call);
            }
            return;
        }
        counts.calls += 1;
        self.note_distinct(&mut counts, calls, key);
        if is_rpc {
            let is_own = calls.iter().any(|call| self.is_for_rows(call));
            if is_own {
                counts.single.insert(key);
            }
            return;
        }
        let holds = |parts: &[&str]| parts.iter().any(|part| url.contains(part));
        if url.contains("//index") {
            counts.index_calls += 1;
            counts.index_pages.insert(key);
        } else if holds(&LIST_PATHS) {
            counts.pages.insert(key);
        } else if holds(&TRANSACTION_PATHS) {
            counts.single.insert(key);
        }
    }

    fn note_call(&self, counts: &mut Counts, call: &Value) {
        counts.calls += 1;
        let (method, params) = (call["method"].as_str().unwrap_or(""), call["params"].to_string());
        *counts.by_method.entry(method.to_owned()).or_default() += 1;
        if method == "eth_getLogs" && !self.is_own_logs(call) {
            let block = |name: &str| call["params"][0][name].as_str().and_then(number);
            counts.priced.extend(block("toBlock").zip(block("fromBlock")));
        }
        let key = self.hasher.hash_one((method, &params));
        self.note_distinct(counts, std::slice::from_ref(call), key);
        if method == FULL_PAGES {
            counts.single.insert(key);
        } else if LISTS.contains(&method) || self.is_for_rows(call) {
            counts.batched.insert(key);
        }
    }

    fn is_for_rows(&self, call: &Value) -> bool {
        let method = call["method"].as_str().unwrap_or("");
        TRANSACTIONS.contains(&method) || self.is_own_logs(call)
    }

    /// Logs of reference pools are for no rows.
    fn is_own_logs(&self, call: &Value) -> bool {
        call["method"] == "eth_getLogs" && call["params"].to_string().contains(&self.wallet)
    }
}

/// What is asked, in few words: methods and how often, or the address.
fn summary(request: &Request) -> String {
    let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let calls = body.as_array().map_or_else(|| std::slice::from_ref(&body), Vec::as_slice);
    let mut methods: BTreeMap<&str, u64> = BTreeMap::new();
    for call in calls {
        *methods.entry(call["method"].as_str().unwrap_or("")).or_default() += 1;
    }
    let is_rpc = methods.keys().any(|method| !method.is_empty());
    if is_rpc { format!("{methods:?}") } else { request.url.expose().to_owned() }
}

impl Transport for Seen {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        self.note(&request);
        if self.prints {
            let trips = self.began.elapsed().as_secs_f64() / TRIP.as_secs_f64();
            println!("{trips:.2} {}", summary(&request));
        }
        self.inner.send(request)
    }
}
