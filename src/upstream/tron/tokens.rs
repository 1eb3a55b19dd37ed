//! Symbols and decimals: of contracts by read-only calls, of TRC-10 tokens by their number.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use serde::Deserialize;
use serde_json::{Value, json};

use tokio::time::{Instant, timeout_at};

use super::TronSource;
use crate::domain::Address;
use crate::upstream::error::UpstreamError;
use crate::upstream::evm::wire as evm_wire;
use crate::upstream::jsonrpc::Outcome;
use crate::upstream::pool::CallOptions;
use crate::upstream::queue::Lane;
use crate::upstream::source::TokenMeta;
use crate::upstream::symbol::symbol;

const WORD: usize = 32;
/// `symbol()` and `decimals()`.
const SYMBOL: &str = "0x95d89b41";
const DECIMALS: &str = "0x313ce567";
/// Who asks: nobody.
const ZERO_ADDRESS: &str = "410000000000000000000000000000000000000000";

impl TronSource {
    /// Tokens of which nothing could be asked now, or in time, are left out.
    pub(in crate::upstream) async fn tokens(
        &self,
        mints: &[Address],
        lane: &Lane,
    ) -> Result<Vec<TokenMeta>, UpstreamError> {
        let options = CallOptions::new(lane.clone());
        let limits = &self.inner.limits;
        let until = Instant::now() + limits.tokens_wait;
        let (mut metas, mut failure) = (Vec::with_capacity(mints.len()), None);
        let is_contract = |mint: &Address| mint.as_tron_asset().is_none();
        let (contracts, mut one_by_one): (Vec<Address>, Vec<Address>) =
            mints.iter().copied().partition(is_contract);
        for group in contracts.chunks(limits.tokens_batch.max(1)) {
            match timeout_at(until, self.contracts(group, &options)).await {
                Ok(Ok(told)) => metas.extend(told),
                // Not every node speaks JSON-RPC.
                Ok(Err(error)) if error.is_final() => one_by_one.extend(group),
                Ok(Err(error)) => failure = Some(error),
                Err(_) => break,
            }
        }
        for group in one_by_one.chunks(limits.tokens_parallel.max(1)) {
            let asked = group.iter().map(|mint| timeout_at(until, self.token(*mint, &options)));
            for told in join_all(asked).await.into_iter().flatten() {
                match told {
                    Ok(meta) => metas.push(meta),
                    Err(error) => failure = Some(error),
                }
            }
        }
        match failure {
            Some(error) if metas.is_empty() => Err(error),
            Some(_) | None => Ok(metas),
        }
    }

    /// Many contracts in one request.
    async fn contracts(
        &self,
        mints: &[Address],
        options: &CallOptions,
    ) -> Result<Vec<TokenMeta>, UpstreamError> {
        let call = |mint: &Address, selector: &str| {
            let to = evm_wire::hex(mint.bytes());
            ("eth_call", json!([{"to": to, "data": selector}, "latest"]))
        };
        let calls: Vec<_> =
            mints.iter().flat_map(|mint| [SYMBOL, DECIMALS].map(|of| call(mint, of))).collect();
        let (answers, endpoint) = self.rpc("eth_call", &calls, options).await?;
        let (pairs, _) = answers.as_chunks::<2>();
        if pairs.len() != mints.len() {
            return Err(self.malformed(endpoint, "eth_call gave too few answers"));
        }
        let data = |answer: &Outcome| evm_wire::returned(answer.as_ref().ok()?);
        let metas = mints.iter().zip(pairs).map(|(mint, [symbol, decimals])| TokenMeta {
            mint: *mint,
            symbol: data(symbol).as_deref().and_then(abi_text),
            decimals: data(decimals).as_deref().and_then(abi_decimals),
        });
        Ok(metas.collect())
    }

    async fn token(
        &self,
        mint: Address,
        options: &CallOptions,
    ) -> Result<TokenMeta, UpstreamError> {
        if let Some(number) = mint.as_tron_asset() {
            let body = json!({"value": number.to_string()});
            let answer = self.told("wallet/getassetissuebyid", &body, options).await?;
            let asset = answer.and_then(|body| serde_json::from_slice::<Asset>(&body).ok());
            return Ok(match asset {
                Some(asset) if asset.id.is_some() => asset.meta(mint),
                Some(_) | None => TokenMeta { mint, symbol: None, decimals: None },
            });
        }
        let (symbol, decimals) = join(
            self.constant(mint, "symbol()", options),
            self.constant(mint, "decimals()", options),
        )
        .await;
        let symbol = symbol?.as_deref().and_then(abi_text);
        let decimals = decimals?.as_deref().and_then(abi_decimals);
        Ok(TokenMeta { mint, symbol, decimals })
    }

    /// What a contract answers to a call without arguments; `None` where it does not answer.
    async fn constant(
        &self,
        contract: Address,
        selector: &str,
        options: &CallOptions,
    ) -> Result<Option<Vec<u8>>, UpstreamError> {
        let body = json!({
            "owner_address": ZERO_ADDRESS,
            "contract_address": format!("41{}", hex::encode(contract.bytes())),
            "function_selector": selector,
            "parameter": "",
            "visible": false,
        });
        let answer = self.told("wallet/triggerconstantcontract", &body, options).await?;
        let answer = answer.and_then(|body| serde_json::from_slice::<Constant>(&body).ok());
        Ok(answer.and_then(Constant::bytes))
    }

    /// An answer, `None` where it was refused for good.
    async fn told(
        &self,
        name: &'static str,
        body: &Value,
        options: &CallOptions,
    ) -> Result<Option<bytes::Bytes>, UpstreamError> {
        match self.post(name, body, options).await {
            Ok(reply) => Ok(Some(reply.body)),
            Err(error) if error.is_final() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[derive(Deserialize)]
struct Constant {
    #[serde(default)]
    constant_result: Vec<String>,
    transaction: Option<Transaction>,
}

#[derive(Deserialize)]
struct Transaction {
    #[serde(default)]
    ret: Vec<Ret>,
}

#[derive(Deserialize)]
struct Ret {
    /// Only when it failed.
    ret: Option<String>,
}

impl Constant {
    /// A call that reverted has a result too, and says so only inside.
    fn bytes(self) -> Option<Vec<u8>> {
        let failed = self.transaction.is_some_and(|tx| {
            tx.ret.iter().any(|ret| ret.ret.as_deref().is_some_and(|ret| ret != "SUCESS"))
        });
        if failed { None } else { hex::decode(self.constant_result.first()?).ok() }
    }
}

#[derive(Deserialize)]
struct Asset {
    id: Option<String>,
    #[serde(default)]
    abbr: String,
    #[serde(default)]
    name: String,
    /// Left out where it is 0.
    #[serde(default)]
    precision: u8,
}

impl Asset {
    fn meta(&self, mint: Address) -> TokenMeta {
        let text = |hex: &str| hex::decode(hex).ok().and_then(|text| symbol(&text));
        let symbol = text(&self.abbr).or_else(|| text(&self.name));
        TokenMeta { mint, symbol, decimals: Some(self.precision) }
    }
}

/// A text of the contract interface: where it begins, its length, its bytes; or one word, as the
/// oldest tokens have it.
fn abi_text(data: &[u8]) -> Option<Arc<str>> {
    if data.len() == WORD {
        return symbol(data);
    }
    let begin = number(data.get(..WORD)?)?;
    let body = data.get(begin..)?;
    let length = number(body.get(..WORD)?)?;
    symbol(body.get(WORD..)?.get(..length)?)
}

fn abi_decimals(data: &[u8]) -> Option<u8> {
    u8::try_from(number(data.get(..WORD)?)?).ok()
}

fn number(word: &[u8]) -> Option<usize> {
    let (zeros, tail) = word.split_last_chunk::<4>()?;
    let is_small = zeros.iter().all(|byte| *byte == 0);
    is_small.then(|| usize::try_from(u32::from_be_bytes(*tail)).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(json: &str) -> Option<Vec<u8>> {
        serde_json::from_str::<Constant>(json).unwrap().bytes()
    }

    #[test]
    fn reads_what_contracts_answer() {
        let usdt = format!("{:064x}{:064x}{:0<64}", 32, 4, hex::encode("USDT"));
        let answer = format!(
            r#"{{"result":{{"result":true}},"constant_result":["{usdt}"],
            "transaction":{{"ret":[{{}}],"visible":false}}}}"#
        );
        assert_eq!(abi_text(&constant(&answer).unwrap()).as_deref(), Some("USDT"));
        let six = format!(r#"{{"constant_result":["{:064x}"]}}"#, 6);
        assert_eq!(abi_decimals(&constant(&six).unwrap()), Some(6));
        // One word, padded.
        assert_eq!(
            abi_text(&hex::decode(format!("{:0<64}", "4d4b52")).unwrap()).as_deref(),
            Some("MKR")
        );
    }

    #[test]
    fn what_reverts_or_makes_no_sense_is_unknown() {
        let reverted = r#"{"result":{"result":true,"message":"52"},"constant_result":[""],
            "transaction":{"ret":[{"ret":"FAILED"}]}}"#;
        assert_eq!(constant(reverted), None);
        let no_contract = r#"{"result":{"code":"CONTRACT_VALIDATE_ERROR","message":"53"}}"#;
        assert_eq!(constant(no_contract), None);
        assert_eq!(abi_decimals(&[0xff; 32]), None);
        assert_eq!(abi_decimals(&[0; 8]), None);
        assert_eq!(abi_text(&[0xff; 96]), None);
        let mut wild = [0; 64];
        wild[31] = 32;
        wild[60] = 0xff;
        assert_eq!(abi_text(&wild), None);
    }

    #[test]
    fn reads_tokens_without_a_contract() {
        let json = r#"{"owner_address":"41","name":"426974546f7272656e74","abbr":"425454",
            "precision":6,"id":"1002000"}"#;
        let mint = Address::tron_asset(1_002_000);
        let expected = TokenMeta { mint, symbol: Some("BTT".into()), decimals: Some(6) };
        assert_eq!(serde_json::from_str::<Asset>(json).unwrap().meta(mint), expected);
    }
}
