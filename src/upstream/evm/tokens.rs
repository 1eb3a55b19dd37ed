//! Symbols and decimals of tokens, in bulk: many calls in one where the chain has the contract
//! for it, else in batches.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::abi;
use super::texts::{self, hex_text};
use crate::decode::evm::Account;
use crate::domain::Address;
use crate::registry::Chain;
use crate::upstream::error::UpstreamError;
use crate::upstream::pool::{Answer, Call, CallOptions, Pool};
use crate::upstream::queue::Lane;
use crate::upstream::source::TokenMeta;

/// Tokens in one call of the contract: two small calls each, far below any gas limit of a call.
const TOKENS_PER_CALL: usize = 50;
/// Bytes of one answer that are looked at: a symbol may be as long as its contract likes.
const ANSWER_CHARS_MAX: usize = 1 << 20;
const ASKED: [[u8; 4]; 2] = [abi::SYMBOL, abi::DECIMALS];

/// What each token answered, if it did.
#[derive(Debug, Clone, Default)]
struct Told {
    symbol: Option<String>,
    decimals: Option<u8>,
}

impl Told {
    fn read(symbol: Option<&[u8]>, decimals: Option<&[u8]>) -> Self {
        Self { symbol: symbol.and_then(abi::symbol), decimals: decimals.and_then(abi::decimals) }
    }
}

/// Tokens that do not tell have neither; those that no node could be asked about are an error.
pub(super) async fn tokens(
    pool: &Pool,
    chain: &Chain,
    mints: &[Address],
    lane: &Lane,
) -> Result<Vec<TokenMeta>, UpstreamError> {
    let accounts: Vec<Account> =
        mints.iter().filter_map(|mint| mint.bytes().try_into().ok()).collect();
    let options = CallOptions::new(lane.clone());
    let (mut told, left) = match chain.multicall {
        Some(contract) => in_one(pool, contract, &accounts, &options).await?,
        None => (HashMap::new(), accounts),
    };
    told.extend(one_by_one(pool, &left, &options).await?);
    let meta = |mint: &Address| {
        let account: Option<Account> = mint.bytes().try_into().ok();
        let told = account.and_then(|account| told.get(&account)).cloned().unwrap_or_default();
        TokenMeta { mint: *mint, symbol: told.symbol.map(Into::into), decimals: told.decimals }
    };
    Ok(mints.iter().map(meta).collect())
}

/// What the contract could tell, and the tokens of the calls that it could not make.
async fn in_one(
    pool: &Pool,
    contract: Address,
    tokens: &[Account],
    options: &CallOptions,
) -> Result<(HashMap<Account, Told>, Vec<Account>), UpstreamError> {
    let groups: Vec<&[Account]> = tokens.chunks(TOKENS_PER_CALL).collect();
    let calls: Vec<Call> = groups
        .iter()
        .map(|group| {
            let each = group.iter().flat_map(|token| ASKED.map(|selector| (*token, selector)));
            call(contract.bytes(), &abi::aggregate3(&each.collect::<Vec<_>>()))
        })
        .collect();
    let (mut told, mut left) = (HashMap::new(), Vec::new());
    for (group, answer) in groups.into_iter().zip(pool.batch(&calls, options).await) {
        let data = match answer {
            Ok(answer) => data(&answer),
            Err(error) if error.is_final() => None,
            Err(error) => return Err(error),
        };
        let results = data.as_deref().and_then(|data| abi::results(data, group.len() * 2));
        let Some(results) = results else {
            left.extend(group);
            continue;
        };
        for (token, pair) in group.iter().zip(results.chunks(2)) {
            if let [symbol, decimals] = pair {
                told.insert(*token, Told::read(*symbol, *decimals));
            }
        }
    }
    Ok((told, left))
}

async fn one_by_one(
    pool: &Pool,
    tokens: &[Account],
    options: &CallOptions,
) -> Result<HashMap<Account, Told>, UpstreamError> {
    let each = tokens.iter().flat_map(|token| ASKED.map(|selector| call(token, &selector)));
    let answers = pool.batch(&each.collect::<Vec<_>>(), options).await;
    let mut given = Vec::with_capacity(answers.len());
    for answer in answers {
        given.push(match answer {
            Ok(answer) => data(&answer),
            // It reverts, or it is no token.
            Err(UpstreamError::Rpc { .. }) => None,
            Err(error) => return Err(error),
        });
    }
    let pairs = tokens.iter().zip(given.chunks(2));
    Ok(pairs
        .filter_map(|(token, pair)| match pair {
            [symbol, decimals] => {
                Some((*token, Told::read(symbol.as_deref(), decimals.as_deref())))
            }
            _ => None,
        })
        .collect())
}

fn call(to: &[u8], data: &[u8]) -> Call {
    let params: Value = json!([{"to": hex_text(to), "data": hex_text(data)}, "latest"]);
    Call { method: "eth_call", params }
}

fn data(answer: &Answer) -> Option<Vec<u8>> {
    let raw: &RawValue = &answer.result;
    let text = texts::scalar(Some(raw)).filter(|text| text.len() <= ANSWER_CHARS_MAX)?;
    texts::data(text)
}
