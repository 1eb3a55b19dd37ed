//! Symbols and decimals of tokens in bulk: many calls in one by the Multicall contract if the chain
//! has it, else in batches.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::abi;
use super::texts;
use super::wire::eth_call;
use crate::decode::evm::Account;
use crate::domain::Address;
use crate::registry::Chain;
use crate::rpc::classify::is_revert;
use crate::rpc::{
    Call, CallOptions, CallResponse, EndpointId, Pool, Result, UpstreamError, unless_final,
};
use crate::sources::symbol::TokenMeta;

/// Tokens per Multicall: two small calls each, far below any gas limit.
const TOKENS_PER_CALL: usize = 50;
/// Longest accepted result: a symbol may be of any length.
const ANSWER_CHARS_MAX: usize = 1 << 20;
const ASKED: [[u8; 4]; 2] = [abi::SYMBOL, abi::DECIMALS];

/// A token's answer about one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::sources) enum Given<T> {
    /// No answer, or one that cannot be decoded.
    #[default]
    Unanswered,
    /// The call reverts or returns no data: the token has no such field, if a second answer agrees.
    Nothing,
    Value(T),
}

impl<T> Given<T> {
    pub(in crate::sources) fn of(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Self::Value)
    }

    pub(super) fn read(data: &Data, read: impl Fn(&[u8]) -> Option<T>) -> Self {
        match data {
            Given::Unanswered => Self::Unanswered,
            Given::Nothing => Self::Nothing,
            // Undecodable data from the token itself counts as no field.
            Given::Value(data) => Self::of(read(data)),
        }
    }

    fn is_value(&self) -> bool {
        matches!(self, Self::Value(_))
    }

    /// Combines two answers: the field is missing only if both say so.
    fn join(self, second: Self) -> Self {
        match (self, second) {
            (Self::Value(value), _) | (_, Self::Value(value)) => Self::Value(value),
            (Self::Nothing, Self::Nothing) => Self::Nothing,
            (Self::Unanswered, _) | (_, Self::Unanswered) => Self::Unanswered,
        }
    }

    /// An error if it is unknown whether there is a value.
    fn known(self) -> Result<Option<T>, ()> {
        match self {
            Self::Value(value) => Ok(Some(value)),
            Self::Nothing => Ok(None),
            Self::Unanswered => Err(()),
        }
    }
}

pub(super) type Data = Given<Vec<u8>>;

#[derive(Debug, Clone, Default)]
struct TokenAnswer {
    symbol: Given<Arc<str>>,
    decimals: Given<u8>,
}

impl TokenAnswer {
    fn read(symbol: &Data, decimals: &Data) -> Self {
        Self {
            symbol: Given::read(symbol, abi::symbol),
            decimals: Given::read(decimals, abi::decimals),
        }
    }

    fn is_whole(&self) -> bool {
        self.symbol.is_value() && self.decimals.is_value()
    }
}

type ByToken = HashMap<Account, TokenAnswer>;

/// Two valid answers show that a token has no symbol or no decimals. Tokens without an answer are
/// left out; an error if no endpoint could be queried.
pub(super) async fn tokens(
    pool: &Pool,
    chain: &Chain,
    mints: &[Address],
    options: &CallOptions,
) -> Result<Vec<TokenMeta>> {
    let accounts: Vec<Account> =
        mints.iter().filter_map(|mint| mint.bytes().try_into().ok()).collect();
    let (mut first, left, by) = match chain.multicall {
        Some(contract) => in_one(pool, contract, &accounts, options).await?,
        None => (HashMap::new(), accounts.clone(), None),
    };
    let probe = chain.wrapped_native;
    let (more, later) = one_by_one(pool, &left, probe, options).await?;
    first.extend(more);
    let is_open = |token: &Account| !first.get(token).is_some_and(TokenAnswer::is_whole);
    let open: Vec<Account> = accounts.into_iter().filter(is_open).collect();
    let elsewhere = CallOptions { avoid: by.or(later), ..options.clone() };
    let (mut second, _) = one_by_one(pool, &open, probe, &elsewhere).await?;
    let meta = |mint: &Address| {
        let account: Account = mint.bytes().try_into().ok()?;
        let one = first.remove(&account).unwrap_or_default();
        let two = second.remove(&account).unwrap_or_default();
        let symbol = one.symbol.join(two.symbol).known().ok()?;
        let decimals = one.decimals.join(two.decimals).known().ok()?;
        Some(TokenMeta { mint: *mint, symbol, decimals })
    };
    Ok(mints.iter().filter_map(meta).collect())
}

/// By one Multicall: its results, the tokens of calls that it could not make, and the endpoint.
async fn in_one(
    pool: &Pool,
    contract: Address,
    tokens: &[Account],
    options: &CallOptions,
) -> Result<(ByToken, Vec<Account>, Option<EndpointId>)> {
    let groups: Vec<&[Account]> = tokens.chunks(TOKENS_PER_CALL).collect();
    let calls: Vec<Call> = groups
        .iter()
        .map(|group| {
            let each = group.iter().flat_map(|token| ASKED.map(|selector| (*token, selector)));
            eth_call(contract.bytes(), &abi::aggregate3(&each.collect::<Vec<_>>()))
        })
        .collect();
    let (mut reported, mut left, mut by) = (HashMap::new(), Vec::new(), None);
    for (group, answer) in groups.into_iter().zip(pool.batch(&calls, options).await) {
        by = answer.as_ref().ok().map(|answer| answer.endpoint).or(by);
        let answer = match answer {
            // One of its tokens may time out on every node.
            Err(UpstreamError::Unavailable { .. }) => None,
            answer => unless_final(answer)?,
        };
        let results = match answer.map(|answer| data(&answer)) {
            Some(Given::Value(data)) => abi::results(&data, group.len() * 2).map(owned),
            Some(Given::Nothing | Given::Unanswered) | None => None,
        };
        let Some(results) = results else {
            left.extend(group);
            continue;
        };
        for (token, pair) in group.iter().zip(results.chunks(2)) {
            if let [symbol, decimals] = pair {
                reported.insert(*token, TokenAnswer::read(symbol, decimals));
            }
        }
    }
    Ok((reported, left, by))
}

/// A reverted call has no data.
fn owned(results: Vec<Option<&[u8]>>) -> Vec<Data> {
    let one = |data: Option<&[u8]>| match data {
        Some(data) if !data.is_empty() => Given::Value(data.to_vec()),
        Some(_) | None => Given::Nothing,
    };
    results.into_iter().map(one).collect()
}

/// Queries fields token by token. If any call, or that of `probe`, is answered, a failed one is the
/// token's failure and not the endpoints'.
async fn one_by_one(
    pool: &Pool,
    tokens: &[Account],
    probe: Address,
    options: &CallOptions,
) -> Result<(ByToken, Option<EndpointId>)> {
    let each = tokens.iter().flat_map(|token| ASKED.map(|selector| eth_call(token, &selector)));
    let answers = pool.batch(&each.collect::<Vec<_>>(), options).await;
    let (mut given, mut by) = (Vec::with_capacity(answers.len()), None);
    let mut failed = None;
    for answer in answers {
        given.push(match answer {
            Ok(answer) => {
                by = Some(answer.endpoint);
                data(&answer)
            }
            Err(UpstreamError::Rpc { code, message, .. }) if is_revert(code, &message) => {
                Given::Nothing
            }
            Err(UpstreamError::Rpc { .. }) => Given::Unanswered,
            Err(error @ UpstreamError::Unavailable { .. }) => {
                failed = Some(error);
                Given::Unanswered
            }
            Err(error) => return Err(error),
        });
    }
    let are_open = given.iter().all(|one| *one == Given::Unanswered);
    if let Some(error) = failed.filter(|_| are_open)
        && !pool.is_answering(eth_call(probe.bytes(), &abi::DECIMALS), options).await
    {
        return Err(error);
    }
    let pairs = tokens.iter().zip(given.chunks(2));
    let reported = pairs.filter_map(|(token, pair)| match pair {
        [symbol, decimals] => Some((*token, TokenAnswer::read(symbol, decimals))),
        _ => None,
    });
    Ok((reported.collect(), by))
}

pub(super) fn data(answer: &CallResponse) -> Data {
    let raw: &RawValue = &answer.result;
    let Some(text) = texts::scalar(Some(raw)) else { return Given::Unanswered };
    if text.len() > ANSWER_CHARS_MAX {
        return Given::Nothing;
    }
    match texts::data(text) {
        Some(data) if data.is_empty() => Given::Nothing,
        Some(data) => Given::Value(data),
        None => Given::Unanswered,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::Value;

    use super::super::lists_model::subject;
    use super::super::node_model::{NodeFault, nodes};
    use super::super::texts::hex_text;
    use super::*;
    use crate::rpc::scripted::options;

    const REVERTED: NodeFault = NodeFault::Rpc(3, "execution reverted");

    /// Tokens by their first byte: 1 is USDC with 6 decimals, 2 has a symbol of 32 bytes and no
    /// decimals, 0xc0 is the wrapped coin, all others revert.
    #[derive(Debug, Default)]
    struct Contracts {
        multicall: bool,
        /// Every n-th call is answered with null; 0: none, 1: every call.
        null_every: usize,
        is_silent: bool,
        /// A token whose calls time out on every node, alone or in a Multicall.
        endless: Option<u8>,
        /// The node gives no answer at all.
        is_down: bool,
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
            (0xc0, false) => Some(word(18)),
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
                    let reported = one(entry[12], &entry[128..132]);
                    let mut bytes = reported.clone().unwrap_or_default();
                    let length = word(u8::try_from(bytes.len()).unwrap());
                    bytes.resize(bytes.len().next_multiple_of(32), 0);
                    [word(u8::from(reported.is_some())), word(64), length, bytes].concat()
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

    fn pool(contracts: Contracts) -> Pool {
        let calls = AtomicUsize::new(0);
        let contracts = nodes(move |_, _, params| {
            let hex = |name: &str| {
                let text = params[0][name].as_str().unwrap();
                hex::decode(text.trim_start_matches("0x")).unwrap()
            };
            let number = calls.fetch_add(1, Ordering::Relaxed) + 1;
            let every = contracts.null_every;
            if contracts.is_silent || every > 0 && number.is_multiple_of(every) {
                return Ok(Value::Null);
            }
            let (to, data) = (hex("to"), hex("data"));
            let is_about =
                |token: u8| to == [token; 20] || data.windows(20).any(|bytes| bytes == [token; 20]);
            if contracts.is_down {
                return Err(NodeFault::Broken);
            }
            if contracts.endless.is_some_and(is_about) {
                return Err(NodeFault::Rpc(-32000, "execution aborted (timeout = 5s)"));
            }
            let data = contracts.call(&to, &data);
            data.map(|data| hex_text(&data).into()).ok_or(REVERTED)
        });
        contracts.pool(&["one"])
    }

    /// Metadata of 60 tokens, on a chain with or without the Multicall contract.
    async fn metas(has_contract: bool, contracts: Contracts) -> Vec<TokenMeta> {
        metas_of(1..=60, has_contract, contracts).await.unwrap()
    }

    async fn metas_of(
        numbers: RangeInclusive<u8>,
        has_contract: bool,
        contracts: Contracts,
    ) -> Result<Vec<TokenMeta>> {
        let chain = (*subject().chain).clone();
        let chain = Chain { multicall: chain.multicall.filter(|_| has_contract), ..chain };
        let mints: Vec<Address> = numbers.map(|byte| Address::Evm([byte; 20])).collect();
        tokens(&pool(contracts), &chain, &mints, &options()).await
    }

    /// It is left out: it may have decimals.
    #[tokio::test(start_paused = true)]
    async fn a_token_that_every_node_fails_on_holds_up_no_others() {
        for multicall in [true, false] {
            let endless = || Contracts { multicall, endless: Some(60), ..Contracts::default() };
            let metas = metas(multicall, endless()).await;
            assert_eq!(metas.len(), 59);
            let usdc = (metas[0].symbol.as_deref(), metas[0].decimals);
            assert_eq!(usdc, (Some("USDC"), Some(6)));
            // The wrapped coin answers.
            assert_eq!(metas_of(60..=60, multicall, endless()).await, Ok(Vec::new()));
            let is_down = Contracts { multicall, is_down: true, ..Contracts::default() };
            let failed = metas_of(60..=60, multicall, is_down).await;
            assert!(matches!(failed, Err(UpstreamError::Unavailable { .. })), "{failed:?}");
        }
    }

    /// A client's error text for a call that fails on every node.
    #[tokio::test(start_paused = true)]
    async fn a_token_whose_code_breaks_off_has_no_decimals() {
        let nodes = nodes(|_, _, _| Err(NodeFault::Rpc(-32000, "stack underflow (0 <=> 4)")));
        let (chain, mint) = (subject().chain, Address::Evm([9; 20]));
        let metas = tokens(&nodes.pool(&["one"]), &chain, &[mint], &options()).await;
        assert_eq!(metas, Ok(vec![TokenMeta { mint, symbol: None, decimals: None }]));
    }

    /// The same with and without the contract, and where its calls return nothing.
    #[tokio::test(start_paused = true)]
    async fn tokens_are_read_with_and_without_the_multicall_contract() {
        for (has_contract, multicall) in [(true, true), (true, false), (false, false)] {
            let contracts = Contracts { multicall, ..Contracts::default() };
            let metas = metas(has_contract, contracts).await;
            assert_eq!(metas.len(), 60);
            let reported = |at: usize| (metas[at].symbol.as_deref(), metas[at].decimals);
            assert_eq!(reported(0), (Some("USDC"), Some(6)));
            assert_eq!(reported(1), (Some("MKR"), None));
            assert!((2..60).all(|at| reported(at) == (None, None)));
        }
    }

    /// Issue 16, 9: null is no answer.
    #[tokio::test(start_paused = true)]
    async fn a_token_without_an_answer_is_left_out_and_never_without_decimals() {
        for (multicall, null_every) in [(true, 1), (true, 2), (false, 3), (false, 4), (true, 0)] {
            let is_silent = null_every == 0;
            let contracts = Contracts { multicall, null_every, is_silent, ..Contracts::default() };
            let metas = metas(multicall, contracts).await;
            assert!(metas.len() < 60 || null_every == 2, "{null_every}");
            assert!(!is_silent || metas.is_empty());
            for meta in metas {
                let expected = match meta.mint.bytes()[0] {
                    1 => (Some("USDC"), Some(6)),
                    2 => (Some("MKR"), None),
                    _ => (None, None),
                };
                assert_eq!((meta.symbol.as_deref(), meta.decimals), expected);
            }
        }
    }
}
