//! Symbols and decimals of tokens: many in one call by the chain's Multicall3, else each by itself.

use serde_json::json;

use super::{EvmSource, abi, wire};
use crate::decode::evm::Account;
use crate::domain::Address;
use crate::upstream::error::UpstreamError;
use crate::upstream::pool::{Answer, Call, CallOptions};
use crate::upstream::queue::Lane;
use crate::upstream::source::TokenMeta;

/// Tokens of one call, each asked twice.
const TOKENS_PER_CALL: usize = 50;

impl EvmSource {
    pub(in crate::upstream) async fn tokens(
        &self,
        mints: &[Address],
        lane: &Lane,
    ) -> Result<Vec<TokenMeta>, UpstreamError> {
        let options = CallOptions::new(lane.clone());
        let tokens: Vec<Account> = mints.iter().filter_map(evm_account).collect();
        let mut metas = Vec::with_capacity(tokens.len());
        for group in tokens.chunks(TOKENS_PER_CALL) {
            match self.by_multicall(group, &options).await? {
                Some(told) => metas.extend(told),
                None => metas.extend(self.one_by_one(group, &options).await?),
            }
        }
        Ok(metas)
    }

    /// `None` where the chain has no such contract, or it does not answer.
    async fn by_multicall(
        &self,
        tokens: &[Account],
        options: &CallOptions,
    ) -> Result<Option<Vec<TokenMeta>>, UpstreamError> {
        let Some(contract) = self.inner.chain.multicall.as_ref().and_then(evm_account) else {
            return Ok(None);
        };
        let questions: Vec<(Account, [u8; 4])> = tokens
            .iter()
            .flat_map(|token| [(*token, abi::SYMBOL), (*token, abi::DECIMALS)])
            .collect();
        let data = abi::aggregate3(&questions);
        let Call { method, params } = call(&contract, &data);
        let told = match self.inner.pool.call(method, params, options).await {
            Ok(answer) => returned(&answer),
            Err(UpstreamError::Rpc { .. } | UpstreamError::NotSupported { .. }) => None,
            Err(error) => return Err(error),
        };
        let results = told.as_deref().and_then(|data| abi::results(data, questions.len()));
        let Some(results) = results else { return Ok(None) };
        let pairs = tokens.iter().zip(results.chunks(2));
        Ok(Some(
            pairs
                .map(|(token, pair)| {
                    let of = |at: usize| pair.get(at).copied().flatten();
                    meta(token, of(0), of(1))
                })
                .collect(),
        ))
    }

    async fn one_by_one(
        &self,
        tokens: &[Account],
        options: &CallOptions,
    ) -> Result<Vec<TokenMeta>, UpstreamError> {
        let calls: Vec<Call> = tokens
            .iter()
            .flat_map(|token| [call(token, &abi::SYMBOL), call(token, &abi::DECIMALS)])
            .collect();
        let mut answers = Vec::with_capacity(calls.len());
        for answer in self.inner.pool.batch(&calls, options).await {
            answers.push(match answer {
                Ok(answer) => returned(&answer),
                // A contract without the function reverts.
                Err(error) if error.is_final() => None,
                Err(error) => return Err(error),
            });
        }
        let told = |at: usize| answers.get(at).and_then(Option::as_deref);
        let metas = tokens.iter().enumerate();
        Ok(metas.map(|(at, token)| meta(token, told(at * 2), told(at * 2 + 1))).collect())
    }
}

fn meta(token: &Account, symbol: Option<&[u8]>, decimals: Option<&[u8]>) -> TokenMeta {
    TokenMeta {
        mint: Address::Evm(*token),
        symbol: symbol.and_then(abi::symbol),
        decimals: decimals.and_then(abi::decimals),
    }
}

fn call(to: &Account, data: &[u8]) -> Call {
    let params = json!([{"to": wire::hex(to), "data": wire::hex(data)}, "latest"]);
    Call { method: "eth_call", params }
}

fn returned(answer: &Answer) -> Option<Vec<u8>> {
    let text: &str = serde_json::from_str(answer.result.get()).ok()?;
    hex::decode(text.strip_prefix("0x")?).ok()
}

fn evm_account(address: &Address) -> Option<Account> {
    match address {
        Address::Evm(account) => Some(*account),
        Address::Solana(_) | Address::Tron(_) => None,
    }
}
