//! Symbols and decimals of tokens, in bulk: many calls in one where the chain has the contract
//! for it, else in batches.

use std::collections::HashMap;
use std::sync::Arc;

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
    symbol: Option<Arc<str>>,
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
        TokenMeta { mint: *mint, symbol: told.symbol, decimals: told.decimals }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::future::BoxFuture;

    use super::super::lists_model::{Epoch, lane, subject};
    use super::*;
    use crate::upstream::endpoint::EndpointConfig;
    use crate::upstream::limits::PoolLimits;
    use crate::upstream::transport::{Request, Response, Transport, TransportError};

    /// Tokens by their first byte: 1 is USDC with 6 decimals, 2 has a symbol of 32 bytes and no
    /// decimals, all others revert.
    #[derive(Debug)]
    struct Contracts {
        multicall: bool,
    }

    fn word(value: u8) -> Vec<u8> {
        let mut word = vec![0; 32];
        word[31] = value;
        word
    }

    fn fixed(text: &[u8]) -> Vec<u8> {
        let mut word = text.to_vec();
        word.resize(32, 0);
        word
    }

    fn one(token: u8, selector: &[u8]) -> Option<Vec<u8>> {
        match (token, selector == abi::SYMBOL) {
            (1, true) => Some([word(32), word(4), fixed(b"USDC")].concat()),
            (1, false) => Some(word(6)),
            (2, true) => Some(fixed(b"MKR")),
            _ => None,
        }
    }

    impl Contracts {
        fn call(&self, to: &[u8], data: &[u8]) -> Option<Vec<u8>> {
            if data.len() == 4 {
                return one(to[0], data);
            }
            if !self.multicall {
                return Some(Vec::new());
            }
            // Entries of five words behind their offsets, as `abi::aggregate3` writes them.
            let count = usize::from(data[4 + 63]);
            let entries = &data[4 + 64 + 32 * count..];
            let given: Vec<Vec<u8>> = entries
                .chunks(160)
                .map(|entry| {
                    let told = one(entry[12], &entry[128..132]);
                    let mut bytes = told.clone().unwrap_or_default();
                    let length = word(u8::try_from(bytes.len()).unwrap());
                    bytes.resize(bytes.len().next_multiple_of(32), 0);
                    [word(u8::from(told.is_some())), word(64), length, bytes].concat()
                })
                .collect();
            let (mut heads, mut at) = (Vec::new(), 32 * count);
            for entry in &given {
                let mut head = vec![0; 32];
                head[30..].copy_from_slice(&u16::try_from(at).unwrap().to_be_bytes());
                heads.extend(head);
                at += entry.len();
            }
            Some([word(32), word(data[4 + 63]), heads, given.concat()].concat())
        }
    }

    impl Transport for Contracts {
        fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
            let asked: Value = serde_json::from_slice(&request.body).unwrap();
            let answer = |call: &Value| {
                let hex = |name: &str| {
                    let text = call["params"][0][name].as_str().unwrap();
                    hex::decode(text.trim_start_matches("0x")).unwrap()
                };
                match self.call(&hex("to"), &hex("data")) {
                    Some(data) => json!({"id": call["id"], "result": hex_text(&data)}),
                    None => json!({
                        "id": call["id"], "error": {"code": 3, "message": "execution reverted"},
                    }),
                }
            };
            let body = match asked.as_array() {
                Some(calls) => Value::from(calls.iter().map(answer).collect::<Vec<_>>()),
                None => answer(&asked),
            };
            let body = body.to_string().into();
            Box::pin(async { Ok(Response { status: 200, retry_after: None, body }) })
        }
    }

    /// The same whether the chain has the contract, lacks it, or answers nothing for it.
    #[tokio::test(start_paused = true)]
    async fn tokens_tell_what_they_can_with_and_without_the_contract() {
        let chain = (*subject().chain).clone();
        let mints: Vec<Address> = (1..=60).map(|byte| Address::Evm([byte; 20])).collect();
        for (contract, multicall) in
            [(chain.multicall, true), (chain.multicall, false), (None, false)]
        {
            let chain = Chain { multicall: contract, ..chain.clone() };
            let endpoints = vec![EndpointConfig::new("http://one/")];
            let transport = Arc::new(Contracts { multicall });
            let pool = Pool::new(endpoints, transport, PoolLimits::default(), Arc::new(Epoch), 1);
            let metas = tokens(&pool, &chain, &mints, &lane()).await.unwrap();
            assert_eq!(metas.len(), mints.len());
            let told = |at: usize| (metas[at].symbol.as_deref(), metas[at].decimals);
            assert_eq!(told(0), (Some("USDC"), Some(6)));
            assert_eq!(told(1), (Some("MKR"), None));
            assert!((2..60).all(|at| told(at) == (None, None)));
        }
    }
}
