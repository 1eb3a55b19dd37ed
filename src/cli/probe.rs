//! What an endpoint can do, asked of it alone, family by family.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::domain::Family;
use crate::registry::{Chain, Finality};
use crate::rpc::{CallOptions, Pool, UpstreamError};

/// An address that has a history on every Solana chain: the program that makes token accounts.
const SOLANA_PROBE: &str = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";
/// Blocks of a log query that a node for histories should take.
const LOG_BLOCKS: u64 = 10_000;
/// keccak256 of `Transfer(address,address,uint256)`.
pub(super) const TRANSFER: &str =
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// One thing that was asked.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) what: &'static str,
    pub(super) ok: bool,
    pub(super) detail: String,
}

impl Finding {
    pub(super) fn of(what: &'static str, answer: Result<String, String>) -> Self {
        let ok = answer.is_ok();
        let (Ok(detail) | Err(detail)) = answer;
        Self { what, ok, detail }
    }
}

/// One endpoint in a pool of its own.
pub(super) struct ProbeTarget {
    pub(super) pool: Pool,
    pub(super) options: CallOptions,
    /// It is asked with a key of Tron's index.
    pub(super) has_tron_key: bool,
}

impl ProbeTarget {
    async fn call(&self, method: &'static str, params: Value) -> Result<Box<RawValue>, String> {
        let answer = self.pool.call(method, params, &self.options).await;
        answer.map(|answer| answer.result).map_err(|error| words(&error))
    }

    /// The chain's own name for itself.
    pub(super) async fn identity(&self, chain: &Chain) -> Result<String, String> {
        let (method, expected) = match chain.family {
            Family::Solana => ("getGenesisHash", chain.genesis_hash.clone()),
            Family::Evm => ("eth_chainId", chain.chain_id.map(|id| format!("{id:#x}"))),
            Family::Tron => return self.tron_identity(chain).await,
        };
        let answer = self.call(method, json!([])).await?;
        let reported = answer.get().trim_matches('"').to_owned();
        match expected {
            Some(expected) if expected != reported => {
                Err(format!("{method} is {reported}, not {expected}"))
            }
            _ => Ok(reported),
        }
    }

    /// Everything else that matters for reading histories.
    pub(super) async fn abilities(&self, chain: &Chain) -> Vec<Finding> {
        match chain.family {
            Family::Solana => self.solana().await,
            Family::Evm => self.evm(chain).await,
            Family::Tron => self.tron().await,
        }
    }

    async fn evm(&self, chain: &Chain) -> Vec<Finding> {
        let tag = match chain.finality {
            Finality::Finalized => "finalized",
            Finality::Safe => "safe",
            Finality::Depth(_) => "latest",
        };
        let head = self.call("eth_getBlockByNumber", json!([tag, false])).await.and_then(|block| {
            let block: Value = serde_json::from_str(block.get()).unwrap_or_default();
            block
                .get("number")
                .and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(|| format!("no block {tag}"))
        });
        let nothing = format!("0x{}", "0".repeat(64));
        let number = head.as_ref().ok().and_then(|text| hex_number(text)).unwrap_or(LOG_BLOCKS);
        let from = format!("{:#x}", number.saturating_sub(LOG_BLOCKS));
        let query = json!({"fromBlock": from, "toBlock": format!("{number:#x}"),
                           "topics": [TRANSFER, nothing, nothing]});
        let logs = self.call("eth_getLogs", json!([query])).await;
        let zero = format!("0x{}", "0".repeat(40));
        let state = self.call("eth_getBalance", json!([zero, "0x1"])).await;
        let tracer = json!({"tracer": "callTracer"});
        let trace = self.call("debug_traceTransaction", json!([nothing, tracer])).await;
        let flat = self.call("trace_transaction", json!([nothing])).await;
        let transfers = self
            .call(
                "alchemy_getAssetTransfers",
                json!([{"fromAddress": zero,
            "maxCount": "0x1", "category": ["external"]}]),
            )
            .await;
        vec![
            Finding::of("final head", head),
            Finding::of("logs of 10,000 blocks (eth_getLogs)", offered(logs)),
            Finding::of("old states (eth_getBalance)", offered(state)),
            Finding::of("traces (debug_traceTransaction)", known(trace)),
            Finding::of("traces (trace_transaction)", known(flat)),
            Finding::of("transfers of an address (alchemy_getAssetTransfers)", offered(transfers)),
        ]
    }

    async fn solana(&self) -> Vec<Finding> {
        let finalized = json!({"commitment": "finalized"});
        let head = self.call("getSlot", json!([finalized])).await;
        let first = self.call("getFirstAvailableBlock", json!([])).await;
        let query = json!([SOLANA_PROBE, {"limit": 1, "commitment": "finalized"}]);
        let list = self.call("getSignaturesForAddress", query.clone()).await;
        let full = self.call("getTransactionsForAddress", query).await;
        let text = |answer: Result<Box<RawValue>, String>| answer.map(|raw| raw.get().to_owned());
        let keeps_all = text(first).and_then(|first| match first.as_str() {
            "0" => Ok("from the first block".to_owned()),
            _ => Err(format!("only from slot {first}: old trades are missing")),
        });
        vec![
            Finding::of("finalized head", text(head)),
            Finding::of("keeps the whole history", keeps_all),
            Finding::of("lists an address (getSignaturesForAddress)", offered(list)),
            Finding::of("whole transactions by address (getTransactionsForAddress)", offered(full)),
        ]
    }
}

pub(super) fn words(error: &UpstreamError) -> String {
    let missing = matches!(error, UpstreamError::NotSupported { .. });
    if missing { "not offered".to_owned() } else { error.to_string() }
}

fn offered(answer: Result<Box<RawValue>, String>) -> Result<String, String> {
    answer.map(|_| "offered".to_owned())
}

/// A method that only says that it does not know the transaction is there.
fn known(answer: Result<Box<RawValue>, String>) -> Result<String, String> {
    match answer {
        Err(text) if text.contains("not found") => Ok("offered".to_owned()),
        other => offered(other),
    }
}

fn hex_number(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
