//! Symbols and decimals: of contracts by read-only calls, of TRC-10 tokens by their id.
//! Balances of a wallet.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::TronSource;
use super::wire::is_empty;
use crate::domain::{Address, Units};
use crate::rpc::{Call, CallOptions, CallOutcome, EndpointId, Result, unless_final};
use crate::sources::evm::balances::{balance, balance_calls};
use crate::sources::evm::tokens::Given;
use crate::sources::evm::{abi, wire as evm_wire};
use crate::sources::symbol::{TokenMeta, symbol};

const ZERO_ADDRESS: &str = "410000000000000000000000000000000000000000";

/// A field of a token over several answers.
#[derive(Debug, Clone, Default)]
struct Field<T> {
    value: Option<T>,
    absences: u32,
}

impl<T> Field<T> {
    fn take(&mut self, answer: Given<T>) {
        match answer {
            Given::Value(value) => self.value = Some(value),
            Given::Nothing => self.absences += 1,
            Given::Unanswered => {}
        }
    }

    /// Whether there is a value, or two answers that there is none.
    fn is_settled(&self) -> bool {
        self.value.is_some() || self.absences >= ABSENCES
    }
}

/// Answers that a token has no symbol or no decimals, after which it counts as having none.
const ABSENCES: u32 = 2;

#[derive(Debug, Clone)]
struct PendingToken {
    mint: Address,
    symbol: Field<Arc<str>>,
    decimals: Field<u8>,
    /// Use the HTTP interface: for TRC-10 tokens, and for all if nodes have no JSON-RPC.
    by_http: bool,
}

type Fields = (Given<Arc<str>>, Given<u8>);

impl PendingToken {
    fn new(mint: Address) -> Self {
        let by_http = mint.as_tron_asset().is_some();
        Self { mint, symbol: Field::default(), decimals: Field::default(), by_http }
    }

    fn is_settled(&self) -> bool {
        self.symbol.is_settled() && self.decimals.is_settled()
    }

    fn take(&mut self, (symbol, decimals): Fields) {
        self.symbol.take(symbol);
        self.decimals.take(decimals);
    }

    /// The caller queries a missing symbol again; without decimals there is no result.
    fn meta(self) -> Option<TokenMeta> {
        let is_known = self.decimals.is_settled();
        let (symbol, decimals) = (self.symbol.value, self.decimals.value);
        is_known.then_some(TokenMeta { mint: self.mint, symbol, decimals })
    }
}

impl TronSource {
    /// Metadata of tokens; those without an answer in time are left out.
    pub(crate) async fn tokens(
        &self,
        mints: &[Address],
        options: &CallOptions,
    ) -> Result<Vec<TokenMeta>> {
        let mut options = options.clone();
        let limits = &self.inner.limits;
        let is_paced = self.inner.pool.calls_at_once() < limits.tokens_batch;
        let until =
            Instant::now() + if is_paced { limits.tokens_wait_paced } else { limits.tokens_wait };
        let mut all: Vec<PendingToken> = mints.iter().copied().map(PendingToken::new).collect();
        let mut failure = None;
        for _ in 0..self.inner.limits.token_rounds {
            let mut open: Vec<&mut PendingToken> =
                all.iter_mut().filter(|one| !one.is_settled()).collect();
            if open.is_empty() {
                break;
            }
            match timeout_at(until, self.token_round(&mut open, &mut options)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => failure = Some(error),
                Err(_) => break,
            }
        }
        let metas: Vec<TokenMeta> = all.into_iter().filter_map(PendingToken::meta).collect();
        failure.filter(|_| metas.is_empty()).map_or(Ok(metas), Err)
    }

    /// Balances in the order of the tokens; `None` if a contract does not report one, if the node
    /// has no JSON-RPC, and for TRC-10 tokens, which have no contract.
    pub(crate) async fn balances(
        &self,
        wallet: Address,
        mints: &[Address],
        options: &CallOptions,
    ) -> Result<Vec<Option<Units>>> {
        let mut balances = Vec::with_capacity(mints.len());
        for group in mints.chunks(self.inner.limits.tokens_batch.max(1)) {
            let answered = self.rpc("eth_call", &balance_calls(wallet, group), options).await;
            let Some((answers, _)) = unless_final(answered)? else {
                balances.extend(group.iter().map(|_| None));
                continue;
            };
            balances.extend(group.iter().zip(answers).map(|(mint, answer)| {
                let is_contract = mint.as_tron_asset().is_none();
                answer.ok().filter(|_| is_contract).and_then(|raw| balance(&raw))
            }));
        }
        Ok(balances)
    }

    /// Queries each token once: contracts and TRC-10 tokens concurrently.
    async fn token_round(
        &self,
        open: &mut [&mut PendingToken],
        options: &mut CallOptions,
    ) -> Result<()> {
        let asked = options.clone();
        let each = open.iter_mut().map(|one| &mut **one);
        let (mut rest, mut contracts): (Vec<_>, Vec<_>) = each.partition(|one| one.by_http);
        let by_rpc = self.ask_contracts(&mut contracts, &asked, &mut options.avoid);
        let (by_rpc, by_http) = join(by_rpc, self.ask_one_by_one(&mut rest, &asked)).await;
        // Not every node has JSON-RPC.
        let mut turned: Vec<_> = contracts.into_iter().filter(|one| one.by_http).collect();
        self.ask_one_by_one(&mut turned, &asked).await.and(by_rpc).and(by_http)
    }

    async fn ask_contracts(
        &self,
        contracts: &mut [&mut PendingToken],
        asked: &CallOptions,
        avoid: &mut Option<EndpointId>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        for group in contracts.chunks_mut(self.inner.limits.tokens_batch.max(1)) {
            let mints: Vec<Address> = group.iter().map(|one| one.mint).collect();
            match self.contracts(&mints, asked).await {
                Ok((fields, by)) => {
                    *avoid = Some(by);
                    group.iter_mut().zip(fields).for_each(|(one, fields)| one.take(fields));
                }
                Err(error) if error.is_final() => {
                    for one in group {
                        one.by_http = true;
                    }
                }
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    async fn ask_one_by_one(
        &self,
        tokens: &mut [&mut PendingToken],
        asked: &CallOptions,
    ) -> Result<()> {
        let mut outcome = Ok(());
        for group in tokens.chunks_mut(self.inner.limits.tokens_parallel.max(1)) {
            let answers = group.iter().map(|one| self.token(one.mint, asked));
            let answers = join_all(answers).await;
            for (one, answer) in group.iter_mut().zip(answers) {
                match answer {
                    Ok(fields) => one.take(fields),
                    Err(error) => outcome = Err(error),
                }
            }
        }
        outcome
    }

    async fn contracts(
        &self,
        mints: &[Address],
        options: &CallOptions,
    ) -> Result<(Vec<Fields>, EndpointId)> {
        let both = |mint: &Address| {
            [abi::SYMBOL, abi::DECIMALS].map(|of| evm_wire::eth_call(mint.bytes(), &of))
        };
        let calls: Vec<Call> = mints.iter().flat_map(both).collect();
        let (answers, endpoint) = self.rpc("eth_call", &calls, options).await?;
        let (pairs, _) = answers.as_chunks::<2>();
        if pairs.len() != mints.len() {
            return Err(self.malformed(endpoint, "eth_call gave too few answers"));
        }
        let fields = pairs
            .iter()
            .map(|[symbol, decimals]| (read(symbol, abi::symbol), read(decimals, abi::decimals)));
        Ok((fields.collect(), endpoint))
    }

    async fn token(&self, mint: Address, options: &CallOptions) -> Result<Fields> {
        if let Some(number) = mint.as_tron_asset() {
            let number = number.to_string();
            let body = json!({"value": number});
            let answer = self.post("wallet/getassetissuebyid", &body, options).await;
            let Some(reply) = unless_final(answer)? else {
                return Ok((Given::Nothing, Given::Nothing));
            };
            // A token that was moved exists, so an empty reply does not count as an answer.
            return Ok(match Asset::read(&reply.body, &number).map(|one| one.meta(mint)) {
                Some(meta) => (Given::of(meta.symbol), Given::of(meta.decimals)),
                None => (Given::Unanswered, Given::Unanswered),
            });
        }
        let (symbol, decimals) = join(
            self.constant(mint, "symbol()", options, abi::symbol),
            self.constant(mint, "decimals()", options, abi::decimals),
        )
        .await;
        Ok((symbol?, decimals?))
    }

    async fn constant<T>(
        &self,
        contract: Address,
        selector: &str,
        options: &CallOptions,
        decode: fn(&[u8]) -> Option<T>,
    ) -> Result<Given<T>> {
        let body = json!({
            "owner_address": ZERO_ADDRESS,
            "contract_address": format!("41{}", hex::encode(contract.bytes())),
            "function_selector": selector,
            "parameter": "",
            "visible": false,
        });
        let answer = self.post("wallet/triggerconstantcontract", &body, options).await;
        let Some(reply) = unless_final(answer)? else { return Ok(Given::Nothing) };
        if is_empty(&reply.body) {
            return Ok(Given::Unanswered);
        }
        Ok(Given::of(constant(&reply.body).as_deref().and_then(decode)))
    }
}

/// Reads an answer of JSON-RPC: an error is the contract's answer, `null` is no answer.
fn read<T>(answer: &CallOutcome, decode: fn(&[u8]) -> Option<T>) -> Given<T> {
    match answer {
        Err(_) => Given::Nothing,
        Ok(raw) => {
            evm_wire::returned(raw).map_or(Given::Unanswered, |data| Given::of(decode(&data)))
        }
    }
}

/// The result of a read-only call. A reverted call has one too, with the failure inside.
fn constant(body: &[u8]) -> Option<Vec<u8>> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let returned = answer.pointer("/transaction/ret").and_then(Value::as_array);
    // Set only if the call failed.
    let is_failure =
        |of: &Value| of.get("ret").is_some_and(|ret| !ret.is_null() && ret != "SUCESS");
    if returned.is_some_and(|all| all.iter().any(is_failure)) {
        return None;
    }
    hex::decode(answer.pointer("/constant_result/0")?.as_str()?).ok()
}

#[derive(Deserialize)]
struct Asset {
    id: Option<String>,
    #[serde(default)]
    abbr: String,
    #[serde(default)]
    name: String,
    /// Omitted if 0.
    #[serde(default)]
    precision: u8,
}

impl Asset {
    /// `None` for another token.
    fn read(body: &[u8], number: &str) -> Option<Self> {
        let asset = serde_json::from_slice::<Self>(body).ok()?;
        (asset.id.as_deref() == Some(number)).then_some(asset)
    }

    fn meta(&self, mint: Address) -> TokenMeta {
        let text = |hex: &str| hex::decode(hex).ok().and_then(|text| symbol(&text));
        let symbol = text(&self.abbr).or_else(|| text(&self.name));
        TokenMeta { mint, symbol, decimals: Some(self.precision) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TronLimits;
    use super::super::fake::{self, ScriptedNodes, options};
    use super::*;

    #[test]
    fn reads_what_contracts_answer() {
        let usdt = format!("{:064x}{:064x}{:0<64}", 32, 4, hex::encode("USDT"));
        let answer = format!(
            r#"{{"result":{{"result":true}},"constant_result":["{usdt}"],
            "transaction":{{"ret":[{{}}],"visible":false}}}}"#
        );
        assert_eq!(abi::symbol(&constant(answer.as_bytes()).unwrap()).as_deref(), Some("USDT"));
        let six = format!(r#"{{"constant_result":["{:064x}"]}}"#, 6);
        assert_eq!(abi::decimals(&constant(six.as_bytes()).unwrap()), Some(6));
    }

    /// java-tron's limit of a request, by one error in place of all answers.
    #[tokio::test(start_paused = true)]
    async fn a_batch_that_is_refused_as_a_whole_is_made_of_fewer_calls() {
        for (code, message) in [(-32005, "limit exceeded"), (-32005, "Batch size 9 exceeds 2")] {
            let nodes = ScriptedNodes::new(move |(_, _, body)| match body.as_array() {
                Some(calls) if calls.len() > 2 => {
                    let error = json!({"code": code, "message": message});
                    (200, json!({"jsonrpc": "2.0", "id": null, "error": error}))
                }
                // A single call comes without an array.
                _ => fake::rpc(body, |_, _| json!(format!("0x{:064x}", 6))),
            });
            let source = fake::source(&["one"], &nodes, TronLimits::default());
            let mints = [1, 2, 3].map(|number| Address::Tron([number; 20]));
            let (fields, _) = source.contracts(&mints, &options()).await.unwrap();
            assert!(fields.len() == 3 && nodes.count("jsonrpc") > 3, "{message}");
        }
    }

    #[test]
    fn what_reverts_is_unknown() {
        let reverted = r#"{"result":{"result":true,"message":"52"},"constant_result":[""],
            "transaction":{"ret":[{"ret":"FAILED"}]}}"#;
        assert_eq!(constant(reverted.as_bytes()), None);
        let no_contract = r#"{"result":{"code":"CONTRACT_VALIDATE_ERROR","message":"53"}}"#;
        assert_eq!(constant(no_contract.as_bytes()), None);
    }

    #[test]
    fn reads_tokens_without_a_contract() {
        let json = r#"{"owner_address":"41","name":"426974546f7272656e74","abbr":"425454",
            "precision":6,"id":"1002000"}"#;
        let mint = Address::tron_asset(1_002_000);
        let expected = TokenMeta { mint, symbol: Some("BTT".into()), decimals: Some(6) };
        let read = |number| Asset::read(json.as_bytes(), number).map(|asset| asset.meta(mint));
        assert_eq!((read("1002000"), read("1002001")), (Some(expected), None));
    }
}
