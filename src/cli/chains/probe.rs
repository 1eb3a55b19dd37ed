//! Probes the abilities of one endpoint, by family.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::decode::evm::TRANSFER;
use crate::domain::Family;
use crate::registry::{Chain, Finality};
use crate::rpc::{CallOptions, Pool, UpstreamError};
use crate::sources::AbilityKind;

/// An address with a history on every Solana chain: the associated token account program.
const SOLANA_PROBE: &str = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";
/// A wallet, and the program of the token accounts to list.
const SOLANA_OWNER: &str = "vines1vzrYbzLMRdu58ou5XTby4qAqVRLmqo36NKPTg";
const SOLANA_TOKENS: &str = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
/// Blocks of a log query that a node for histories should accept.
const LOG_BLOCKS: u64 = 10_000;

#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) what: &'static str,
    pub(super) ok: bool,
    pub(super) detail: String,
    /// The ability; findings with the same one can substitute each other.
    #[serde(skip)]
    pub(super) kind: Option<AbilityKind>,
    /// If the ability is missing: the consequence, and what to configure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) loses: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) configure: Option<&'static str>,
}

impl Finding {
    pub(super) fn of(what: &'static str, answer: Result<String, String>) -> Self {
        let ok = answer.is_ok();
        let (Ok(detail) | Err(detail)) = answer;
        Self { what, ok, detail, kind: None, loses: None, configure: None }
    }

    /// A finding with the consequence of a missing ability.
    pub(super) fn ability(
        kind: AbilityKind,
        what: &'static str,
        answer: Result<String, String>,
    ) -> Self {
        let finding = Self::of(what, answer);
        let is_short = !finding.ok;
        Self {
            kind: Some(kind),
            loses: is_short.then(|| kind.loses()),
            configure: is_short.then(|| kind.configure()),
            ..finding
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct CheckedEndpoint {
    pub(super) chain: String,
    pub(super) endpoint: String,
    /// It responds, and it is a node of this chain.
    pub(super) usable: bool,
    pub(super) latency_ms: Option<u64>,
    pub(super) results: Vec<Finding>,
}

/// The search for the earliest logs queries this many times `reference_blocks`, and is exact to
/// this fraction of the chain.
const EARLIEST_REACH: u64 = 4;
const EARLIEST_PARTS: u64 = 1000;

/// One endpoint in a pool of its own.
pub(super) struct ProbeTarget {
    pub(super) pool: Pool,
    pub(super) options: CallOptions,
    /// Requests have a key of Tron's index.
    pub(super) has_tron_key: bool,
}

impl ProbeTarget {
    async fn call(&self, method: &'static str, params: Value) -> Result<Box<RawValue>, String> {
        let answer = self.pool.call(method, params, &self.options).await;
        answer.map(|answer| answer.result).map_err(|error| error_text(&error))
    }

    /// # Errors
    /// If no attempt got a response, or the node does not report its head either. A refusal to
    /// report its chain alone is a response.
    pub(super) async fn reach(&self, family: Family) -> Result<(), UpstreamError> {
        let rpc = |method| self.pool.call(method, json!([]), &self.options);
        let answer = match family {
            Family::Solana => rpc("getGenesisHash").await.map(drop),
            Family::Evm => rpc("eth_chainId").await.map(drop),
            Family::Tron => self.tron_block("wallet/getblockbynum", r#"{"num":0}"#).await.map(drop),
        };
        match (answer, family) {
            (Err(error @ UpstreamError::Unavailable { .. }), _) => Err(error),
            (Ok(()), _) => Ok(()),
            // A node of another family refuses this too, and no history is read without it.
            (Err(_), Family::Solana) => rpc("getSlot").await.map(drop),
            (Err(_), Family::Evm) => rpc("eth_blockNumber").await.map(drop),
            (Err(_), Family::Tron) => {
                self.tron_block("walletsolidity/getnowblock", "{}").await.map(drop)
            }
        }
    }

    /// The chain's identity as the node reports it.
    async fn reported(&self, family: Family) -> Result<String, String> {
        let method = match family {
            Family::Solana => "getGenesisHash",
            Family::Evm => "eth_chainId",
            Family::Tron => return self.tron_chain_id().await,
        };
        let answer = self.call(method, json!([])).await?;
        Ok(answer.get().trim_matches('"').to_owned())
    }

    /// # Errors
    /// If the endpoint does not report this chain.
    pub(super) async fn identity(&self, chain: &Chain) -> Result<String, String> {
        let reported = self.reported(chain.family).await?;
        other_chain(chain, &reported).map_or(Ok(reported), Err)
    }

    /// Why it is a node of another chain. A refusal does not show that.
    pub(super) async fn other_chain(&self, chain: &Chain) -> Option<String> {
        other_chain(chain, &self.reported(chain.family).await.ok()?)
    }

    /// Probes the other abilities that reading histories needs.
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
                           "topics": [transfer_topic(), nothing, nothing]});
        let logs = self.call("eth_getLogs", json!([query])).await;
        let zero = format!("0x{}", "0".repeat(40));
        let state = self.call("eth_getBalance", json!([zero, "0x1"])).await;
        let tracer = json!({"tracer": "callTracer"});
        let trace = self.call("debug_traceTransaction", json!([nothing, tracer])).await;
        let flat = self.call("trace_transaction", json!([nothing])).await;
        let query = json!({"fromAddress": zero, "maxCount": "0x1", "category": ["external"]});
        let transfers = self.call("alchemy_getAssetTransfers", json!([query])).await;
        let earliest = self.earliest_logs(chain, number).await;
        let (old, traces) = (AbilityKind::States, AbilityKind::Traces);
        let by_transfers = "transfers of an address (alchemy_getAssetTransfers)";
        vec![
            Finding::of("final head", head),
            Finding::of("logs of 10,000 blocks (eth_getLogs)", offered(logs)),
            Finding::ability(AbilityKind::Logs, "earliest logs", earliest),
            Finding::ability(old, "old states (eth_getBalance)", offered(state)),
            Finding::ability(traces, "traces (debug_traceTransaction)", known(trace)),
            Finding::ability(traces, "traces (trace_transaction)", known(flat)),
            Finding::ability(AbilityKind::AssetTransfers, by_transfers, offered(transfers)),
        ]
    }

    /// The first block, by bisection, from which on the wrapped coin and the reference pools have
    /// logs: where the endpoint's logs begin, or those contracts do.
    async fn earliest_logs(&self, chain: &Chain, head: u64) -> Result<String, String> {
        let reach = chain.reference_blocks.max(1) * EARLIEST_REACH;
        let top = head.saturating_sub(reach);
        if !self.has_logs(chain, top, reach).await {
            return Err("none seen near the head".to_owned());
        }
        let (mut without, mut with) = (0, top);
        while with - without > (head / EARLIEST_PARTS).max(1) {
            let middle = without.midpoint(with);
            if self.has_logs(chain, middle, reach).await {
                with = middle;
            } else {
                without = middle;
            }
        }
        Ok(format!(
            "seen from about block {with} on, of {head}; histories that begin below are cut"
        ))
    }

    async fn has_logs(&self, chain: &Chain, low: u64, blocks: u64) -> bool {
        let busy = chain.reference_pools.iter().chain([&chain.wrapped_native]);
        let busy: Vec<String> =
            busy.map(|address| format!("0x{}", hex::encode(address.bytes()))).collect();
        let query = json!({"fromBlock": format!("{low:#x}"),
                           "toBlock": format!("{:#x}", low + blocks - 1), "address": busy});
        let answer = self.call("eth_getLogs", json!([query])).await;
        answer.is_ok_and(|logs| logs.get().trim() != "[]" && logs.get().trim() != "null")
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
        let owner = json!([SOLANA_OWNER, {"programId": SOLANA_TOKENS},
                           {"encoding": "base64", "dataSlice": {"offset": 0, "length": 0}}]);
        let accounts = self.call("getTokenAccountsByOwner", owner).await;
        let (lists, pages) = (AbilityKind::SignatureLists, AbilityKind::FullPages);
        let by_owner = "token accounts of a wallet (getTokenAccountsByOwner)";
        let in_full = "whole transactions by address (getTransactionsForAddress)";
        vec![
            Finding::of("finalized head", text(head)),
            Finding::of("keeps the whole history", keeps_all),
            Finding::ability(lists, "lists an address (getSignaturesForAddress)", offered(list)),
            Finding::ability(AbilityKind::TokenAccounts, by_owner, offered(accounts)),
            Finding::ability(pages, in_full, offered(full)),
        ]
    }
}

fn other_chain(chain: &Chain, reported: &str) -> Option<String> {
    let expected = match chain.family {
        Family::Solana => chain.genesis_hash.clone(),
        Family::Evm | Family::Tron => chain.chain_id.map(|id| format!("{id:#x}")),
    };
    let expected = expected.filter(|expected| expected != reported)?;
    Some(format!("it reports the chain {reported}, not {expected}"))
}

pub(super) fn error_text(error: &UpstreamError) -> String {
    let missing = matches!(error, UpstreamError::NotSupported { .. });
    if missing { "not offered".to_owned() } else { error.to_string() }
}

fn offered(answer: Result<Box<RawValue>, String>) -> Result<String, String> {
    answer.map(|_| "offered".to_owned())
}

/// A method that reports an unknown transaction is offered.
fn known(answer: Result<Box<RawValue>, String>) -> Result<String, String> {
    match answer {
        Err(text) if text.contains("not found") => Ok("offered".to_owned()),
        other => offered(other),
    }
}

pub(super) fn transfer_topic() -> String {
    format!("0x{}", hex::encode(TRANSFER))
}

fn hex_number(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EIP-20 names the event; its topic is the Keccak-256 hash of the text.
    #[test]
    fn transfers_are_asked_for_by_the_topic_of_their_event() {
        use sha3::{Digest as _, Keccak256};
        let hash = Keccak256::digest("Transfer(address,address,uint256)");
        assert_eq!(transfer_topic(), format!("0x{}", hex::encode(hash)));
    }
}
