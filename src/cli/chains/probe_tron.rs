//! Probes a Tron endpoint: an index with nodes behind it (`TronGrid`), or a node.

use bytes::Bytes;
use serde_json::{Value, json};

use super::probe::{Finding, ProbeTarget, error_text, transfer_topic};
use crate::rpc::{Ask, Reply, ReplyClass, UpstreamError};
use crate::sources::{tron_reading, tron_rpc_reading};

pub(super) const KEY_HEADER: &str = "TRON-PRO-API-KEY";
/// An account with transactions: the WTRX contract.
const PROBE: &str = "TNUC9Qb1rRpS5CbWLmNMxXBjyFoydXjWFR";
const PROBE_HEX: &str = "41891cdb91d149f23b1a45d9c5ca78a88d0cb44c18";
const ZERO_ADDRESS: &str = "410000000000000000000000000000000000000000";
/// java-tron's default limit on the blocks of an event query.
const LOG_BLOCKS: u64 = 5_000;
/// The newest blocks, which are searched for inner calls.
const RECENT: u64 = 4;

type Answer = Result<Value, String>;

impl ProbeTarget {
    async fn tron_ask(
        &self,
        name: &'static str,
        path: &str,
        query: Vec<(&'static str, String)>,
        body: Option<Value>,
        read: fn(u16, &[u8]) -> ReplyClass,
    ) -> Answer {
        let body = body.map(|body| Bytes::from(body.to_string()));
        let ask = Ask { name, path: path.to_owned(), query, body };
        let reply =
            self.pool.ask(&ask, read, &self.options).await.map_err(|error| error_text(&error))?;
        serde_json::from_slice(&reply.body).map_err(|_| "an answer that is no JSON".to_owned())
    }

    pub(super) async fn tron_block(
        &self,
        name: &'static str,
        body: &'static str,
    ) -> Result<Reply, UpstreamError> {
        let body = Some(Bytes::from_static(body.as_bytes()));
        let ask = Ask { name, path: format!("/{name}"), query: Vec::new(), body };
        self.pool.ask(&ask, tron_reading, &self.options).await
    }

    async fn tron_post(&self, name: &'static str, body: Value) -> Answer {
        self.tron_ask(name, &format!("/{name}"), Vec::new(), Some(body), tron_reading).await
    }

    async fn tron_rpc(&self, method: &'static str, params: Value) -> Answer {
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
        let answer = self.tron_ask(method, "/jsonrpc", Vec::new(), Some(body), tron_rpc_reading);
        let answer = answer.await?;
        match (answer.get("result"), answer.get("error")) {
            (Some(result), _) => Ok(result.clone()),
            (None, Some(error)) => {
                Err(error.get("message").and_then(Value::as_str).unwrap_or("an error").to_owned())
            }
            (None, None) => Err("an answer without a result".to_owned()),
        }
    }

    async fn tron_list(&self, name: &'static str, tail: &str) -> Result<String, String> {
        let path = format!("/v1/accounts/{PROBE}/{tail}");
        let query = vec![("only_confirmed", "true".to_owned()), ("limit", "1".to_owned())];
        let page = self.tron_ask(name, &path, query, None, tron_reading).await?;
        let is_list = page.get("data").is_some_and(Value::is_array);
        if is_list { Ok("offered".to_owned()) } else { Err("no list".to_owned()) }
    }

    /// The chain id by JSON-RPC, else by the first block, whose id ends with it.
    pub(super) async fn tron_chain_id(&self) -> Result<String, String> {
        if let Ok(reported) = self.tron_rpc("eth_chainId", json!([])).await {
            return Ok(reported.as_str().unwrap_or_default().to_owned());
        }
        let block = self.tron_post("wallet/getblockbynum", json!({"num": 0})).await?;
        let id = block.get("blockID").and_then(Value::as_str).unwrap_or_default();
        let end = id.len().checked_sub(8).and_then(|from| id.get(from..));
        let end = end.ok_or("the node returns no first block")?;
        Ok(u32::from_str_radix(end, 16).map_or_else(|_| end.to_owned(), |id| format!("{id:#x}")))
    }

    pub(super) async fn tron(&self) -> Vec<Finding> {
        let head = self.tron_post("walletsolidity/getnowblock", json!({})).await;
        let head = head.and_then(|block| height(&block).ok_or_else(|| "no block".to_owned()));
        let number = head.clone().unwrap_or(LOG_BLOCKS);
        let key = if self.has_tron_key {
            Ok("sent".to_owned())
        } else {
            Err("none: the public index limits such callers at its own discretion".to_owned())
        };
        vec![
            Finding::of("solid head", head.map(|head| head.to_string())),
            Finding::of(
                "lists an account (/v1/accounts/…/transactions)",
                self.tron_list("transactions", "transactions").await,
            ),
            Finding::of(
                "lists its tokens (/v1/accounts/…/transactions/trc20)",
                self.tron_list("trc20", "transactions/trc20").await,
            ),
            Finding::of("events of 5,000 blocks (eth_getLogs)", self.tron_logs(number).await),
            Finding::of("read-only calls (triggerconstantcontract)", self.tron_constant().await),
            Finding::of("keeps the whole history", self.tron_first().await),
            Finding::of("keeps inner calls (vm.saveInternalTx)", self.tron_inner(number).await),
            Finding::of("key (TRON-PRO-API-KEY)", key),
        ]
    }

    async fn tron_logs(&self, head: u64) -> Result<String, String> {
        let nothing = format!("0x{}", "0".repeat(64));
        let low = head.saturating_sub(LOG_BLOCKS - 1);
        let query = json!({"fromBlock": format!("{low:#x}"), "toBlock": format!("{head:#x}"),
                           "topics": [transfer_topic(), nothing, nothing]});
        self.tron_rpc("eth_getLogs", json!([query])).await.map(|_| "offered".to_owned())
    }

    async fn tron_constant(&self) -> Result<String, String> {
        let body = json!({"owner_address": ZERO_ADDRESS, "contract_address": PROBE_HEX,
                          "function_selector": "decimals()", "parameter": "", "visible": false});
        let answer = self.tron_post("wallet/triggerconstantcontract", body).await?;
        let reported =
            answer.get("constant_result").and_then(|list| list.get(0)).and_then(Value::as_str);
        let has_decimals = reported.is_some_and(|reported| reported.ends_with('6'));
        if has_decimals {
            Ok("offered".to_owned())
        } else {
            Err("WTRX has not 6 decimals".to_owned())
        }
    }

    async fn tron_first(&self) -> Result<String, String> {
        let block = self.tron_post("wallet/getblockbynum", json!({"num": 1})).await?;
        match height(&block) {
            Some(1) => Ok("from the first block".to_owned()),
            Some(_) | None => Err("not from the first block: old trades are missing".to_owned()),
        }
    }

    /// Nearly every block contains inner calls.
    async fn tron_inner(&self, head: u64) -> Result<String, String> {
        let mut calls = 0;
        for block in head.saturating_sub(RECENT - 1)..=head {
            let name = "wallet/gettransactioninfobyblocknum";
            let infos = self.tron_post(name, json!({"num": block})).await?;
            for info in infos.as_array().into_iter().flatten() {
                if info.get("internal_transactions").is_some() {
                    return Ok("yes".to_owned());
                }
                calls += usize::from(info.get("log").is_some());
            }
        }
        Err(match calls {
            0 => "the newest blocks contain no internal call to judge by".to_owned(),
            _ => "no: TRX paid by a sale is known only where an event contains it".to_owned(),
        })
    }
}

fn height(block: &Value) -> Option<u64> {
    let data = block.get("block_header")?.get("raw_data")?;
    Some(data.get("number").and_then(Value::as_u64).unwrap_or(0))
}
