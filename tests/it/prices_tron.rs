//! Native prices on Tron: a node's JSON-RPC returns the events of a pair whose price the test
//! knows.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::domain::{Address, Clock as _, Moment, Price, UnixSeconds};
use blotter::registry::{Chain, Registry};
use blotter::rpc::{
    EndpointConfig, Pool, PoolLimits, Request, Response, Transport, TransportError,
};
use blotter::sources::{Source, TronLimits, TronSource};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::support::reading::lane;
use super::support::script::Epoch;

const SYNC: &str = "0x1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1";

/// Its pair has an event every tenth block; other contracts are none.
#[derive(Debug)]
struct Node {
    chain: Chain,
    blocks_max: u64,
    queries: Mutex<u64>,
    /// So many calls of the pair are answered as if it were not made yet.
    lags: Mutex<u32>,
    /// The first answer to so many searches more is nothing.
    empty: Mutex<u32>,
    searched: Mutex<Vec<Value>>,
    /// Second answers to searches are errors.
    refuses: Mutex<bool>,
    head: Mutex<u64>,
}

/// Whether one of those that are left is taken.
fn is_left(count: &Mutex<u32>) -> bool {
    let mut left = count.lock().unwrap();
    let is_some = *left > 0;
    *left = left.saturating_sub(1);
    is_some
}

fn hex_of(address: &Address) -> String {
    format!("0x{}", hex::encode(address.bytes()))
}

fn padded(address: &Address) -> String {
    format!("0x{}{}", "0".repeat(24), hex::encode(address.bytes()))
}

/// Thousandths of a cent for a TRX at a height.
fn price(height: u64) -> u64 {
    25_000 + height % 1_000
}

impl Node {
    fn is_first(&self, filter: &Value) -> bool {
        let mut searched = self.searched.lock().unwrap();
        let is_first = !searched.contains(filter);
        searched.push(filter.clone());
        is_first
    }

    fn answer(&self, call: &Value) -> Value {
        let (id, first) = (&call["id"], &call["params"][0]);
        let result = match call["method"].as_str().unwrap() {
            "eth_call" => self.call(first),
            "eth_getLogs" if self.is_first(first) && is_left(&self.empty) => Ok(json!([])),
            "eth_getLogs" if *self.refuses.lock().unwrap() => Err("try again later".to_owned()),
            "eth_getLogs" => self.logs(first),
            "eth_blockNumber" => Ok(format!("{:#x}", *self.head.lock().unwrap()).into()),
            other => panic!("{other}"),
        };
        match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(text) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": text}})
            }
        }
    }

    fn call(&self, call: &Value) -> Result<Value, String> {
        let (pair, usdt) = (&self.chain.reference_pools[0], &self.chain.stablecoins[0]);
        let to = call["to"].as_str().unwrap();
        Ok(match (to, call["data"].as_str().unwrap()) {
            (to, _) if to == hex_of(pair) && is_left(&self.lags) => "0x".into(),
            (to, "0x0dfe1681") if to == hex_of(pair) => padded(&self.chain.wrapped_native).into(),
            (to, "0xd21220a7") if to == hex_of(pair) => padded(usdt).into(),
            (to, "0x313ce567") if to == hex_of(usdt) => format!("0x{:064x}", 6).into(),
            _ => return Err("Smart contract is not exist.".to_owned()),
        })
    }

    fn logs(&self, filter: &Value) -> Result<Value, String> {
        let height = |name: &str| {
            let text = filter[name].as_str().unwrap();
            u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
        };
        let (low, high) = (height("fromBlock"), height("toBlock"));
        if high - low >= self.blocks_max {
            return Err(format!("exceed max block range: {}", self.blocks_max));
        }
        *self.queries.lock().unwrap() += 1;
        let pair = hex_of(&self.chain.reference_pools[0]);
        assert_eq!(filter["address"], json!([pair]), "what is no pool is not asked about");
        let log = |height: u64| {
            let trx = 1_000_000_000_000_u64;
            let usdt = trx / 100_000 * price(height);
            json!({
                "address": pair, "topics": [SYNC], "data": format!("0x{trx:064x}{usdt:064x}"),
                "blockNumber": format!("{height:#x}"), "blockHash": format!("0x{}", "1".repeat(64)),
                "transactionHash": format!("0x{height:064x}"), "transactionIndex": "0x1",
                "logIndex": "0x2", "removed": false,
            })
        };
        // Quiet above ten millions.
        let events = (low..=high).filter(|height| height % 10 == 0 && *height < 10_000_000);
        Ok(events.map(log).collect())
    }
}

impl Transport for Node {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let answer = match asked.as_array() {
            Some(calls) => calls.iter().map(|call| self.answer(call)).collect(),
            None => self.answer(&asked),
        };
        let body = answer.to_string().into();
        Box::pin(async { Ok(Response { status: 200, retry_after: None, body }) })
    }
}

fn source(blocks_max: u64) -> (Source, Arc<Node>) {
    let chain = Registry::embedded().unwrap().chain_named("tron").unwrap().clone();
    let node = Arc::new(Node {
        chain: chain.clone(),
        blocks_max,
        queries: Mutex::default(),
        lags: Mutex::default(),
        empty: Mutex::default(),
        searched: Mutex::default(),
        refuses: Mutex::default(),
        head: Mutex::new(20_000_000),
    });
    let endpoints = vec![EndpointConfig::new("https://tron.test")];
    let transport: Arc<dyn Transport> = Arc::<Node>::clone(&node);
    let pool = Pool::new(endpoints, transport, PoolLimits::default(), Arc::new(Epoch), 7);
    (Source::Tron(TronSource::new(pool, &chain, TronLimits::default())), node)
}

fn at(heights: &[u64]) -> Vec<Moment> {
    heights.iter().map(|height| Moment { height: *height, time: UnixSeconds(0) }).collect()
}

/// The price at a height with an event.
fn exact(height: u64) -> Price {
    Price(u128::from(price(height)) * 10_000_000)
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_pair_is_the_price_at_a_height() {
    for blocks_max in [5_000, 7] {
        let (source, node) = source(blocks_max);
        let shown = source.native_prices(&at(&[8_000_014, 8_000_019, 8_000_023]), &lane()).await;
        assert_eq!(shown.unwrap(), [8_000_010, 8_000_010, 8_000_020].map(|at| Some(exact(at))));
        // Of five ranges of seven blocks, two have no event and are asked twice.
        assert_eq!(*node.queries.lock().unwrap(), if blocks_max == 7 { 7 } else { 1 });
        // In the block of an event, the price is between the old and the new one.
        let shown = source.native_prices(&at(&[8_000_010]), &lane()).await.unwrap();
        assert_eq!(shown[0], Some(exact(8_000_005)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_pair_is_looked_at_further_back_and_then_it_says_nothing() {
    let (source, _) = source(5_000);
    let shown = source.native_prices(&at(&[10_000_100, 10_009_000]), &lane()).await.unwrap();
    assert_eq!(shown, [Some(exact(9_999_990)), None]);
}

#[tokio::test(start_paused = true)]
async fn a_pair_that_the_node_did_not_know_is_asked_for_again() {
    let (source, node) = source(5_000);
    *node.lags.lock().unwrap() = u32::MAX;
    let at = at(&[8_000_014]);
    assert_eq!(source.native_prices(&at, &lane()).await.unwrap(), [None]);
    *node.lags.lock().unwrap() = 0;
    tokio::time::sleep(Duration::from_secs(599)).await;
    assert_eq!(source.native_prices(&at, &lane()).await.unwrap(), [None]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let shown = source.native_prices(&at, &lane()).await.unwrap();
    assert_eq!(shown, [Some(exact(8_000_010))]);
}

/// A row that is stored without a value for this reason would never get one.
#[tokio::test(start_paused = true)]
async fn one_answer_that_does_not_know_the_pair_is_asked_again_at_once() {
    for calls in [1, 2, 3, 4] {
        let (source, node) = source(5_000);
        *node.lags.lock().unwrap() = calls;
        let shown = source.native_prices(&at(&[8_000_014]), &lane()).await.unwrap();
        assert_eq!(shown, [Some(exact(8_000_010))], "{calls}");
    }
}

/// A server that dropped old events, or has not indexed new ones, answers with nothing and no error.
#[tokio::test(start_paused = true)]
async fn one_answer_without_events_is_asked_again() {
    let (source, node) = source(5_000);
    *node.empty.lock().unwrap() = u32::MAX;
    let shown = source.native_prices(&at(&[8_000_014]), &lane()).await.unwrap();
    assert_eq!(shown, [Some(exact(8_000_010))]);
}

/// It is not accepted either if the second request fails.
#[tokio::test(start_paused = true)]
async fn one_answer_without_events_is_none_where_the_next_ones_fail() {
    let (source, node) = source(5_000);
    *node.empty.lock().unwrap() = u32::MAX;
    *node.refuses.lock().unwrap() = true;
    let shown = source.native_prices(&at(&[8_000_014]), &lane()).await;
    assert!(shown.is_err(), "{shown:?}");
}

/// Events from further away would give another price.
#[tokio::test(start_paused = true)]
async fn a_server_that_has_not_come_to_a_new_block_gives_no_price_for_it() {
    let (source, node) = source(5_000);
    let time = Epoch.now().seconds();
    for (head, old) in [(8_000_013, false), (8_000_014, false), (8_000_013, true)] {
        *node.head.lock().unwrap() = head;
        let time = if old { UnixSeconds(time.0 - 20_000) } else { time };
        let shown = source.native_prices(&[Moment { height: 8_000_014, time }], &lane()).await;
        if head < 8_000_014 && !old {
            assert!(shown.is_err(), "{shown:?}");
        } else {
            assert_eq!(shown.unwrap(), [Some(exact(8_000_010))]);
        }
    }
}
