//! The first round trip of a read: the head, the token accounts, the kind of the address, and the
//! chain's identity.

use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::index_reach::IndexedList;
use super::wire::{self, Balance};
use super::{SolanaSource, if_offered, if_offered_now};
use crate::domain::{Address, Height};
use crate::rpc::{
    Call, CallOptions, CallResponse, ChainCheck, CheckOutcome, EndpointId, EndpointSet,
    EndpointStatus, Result, UpstreamError, checked,
};
use crate::sources::chunk::Tip;

pub(super) const TOKEN_PROGRAM: &str = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
pub(super) const TOKEN_2022_PROGRAM: &str = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb";
/// Names the chain by its first block.
const CHAIN_METHOD: &str = "getGenesisHash";
/// Bytes of a mint and of a token account under the first token program (SPL Token source).
const MINT_BYTES: usize = 82;
const TOKEN_ACCOUNT_BYTES: usize = 165;
/// Attempts where an answer cannot be read.
const TRIES_MAX: u32 = 4;

#[derive(Debug)]
pub(super) struct Opening {
    pub(super) head: Height,
    /// The slot for which the accounts are known: at or above the head, up to which lists are read.
    pub(super) known_to: Height,
    /// An endpoint that has reached this slot: lists up to the head are requested from it.
    pub(super) endpoint: Option<EndpointId>,
    /// Token accounts that are open at the head, with their balances; `None` where no node lists
    /// them.
    pub(super) accounts: Option<Vec<Balance>>,
    pub(super) tip: Option<Tip>,
}

impl SolanaSource {
    /// Opens a read. `list`: the list that is read up to the head.
    pub(super) async fn open(
        &self,
        wallet: Address,
        (first, list): (bool, IndexedList),
        options: &CallOptions,
    ) -> Result<Opening> {
        let is_alone = self.inner.pool.endpoints().len() < 2;
        let open = || async move {
            let mut behind = Vec::new();
            for _ in 1..TRIES_MAX {
                let known = behind.last().copied();
                let options = self.past(&behind, options);
                let how = (first, list, false);
                match self.ask_opening(wallet, how, &mut behind, &options).await {
                    Err(UpstreamError::Malformed { .. }) => {}
                    Err(UpstreamError::Unavailable { .. }) if !is_alone && !behind.is_empty() => {
                        // Lists of another endpoint may reach far enough, unless none answers.
                        if behind.last().copied() == known {
                            break;
                        }
                    }
                    other => return other,
                }
            }
            let is_last = !self.has_unasked(&behind, true);
            let farthest = self.inner.reach.farthest(list, &behind).filter(|_| is_last);
            let options = farthest.map_or_else(|| options.clone(), |id| options.first_on(id));
            self.ask_opening(wallet, (first, list, is_last), &mut behind, &options).await
        };
        checked(self.check_chain(options), open).await
    }

    /// Whether some working endpoint is not among those whose lists were behind; with `or_new`, one
    /// that has not been used yet counts too.
    fn has_unasked(&self, behind: &[EndpointId], or_new: bool) -> bool {
        let is_new = |one: &EndpointStatus| one.answered_ago.is_none() && one.last_error.is_none();
        let is_usable = |one: &EndpointStatus| !one.resting || (or_new && is_new(one));
        let all = self.inner.pool.endpoints();
        all.iter().any(|one| is_usable(one) && !behind.contains(&one.id))
    }

    /// Leaves out endpoints whose lists were behind while another one works; then prefers another
    /// than the last of them.
    fn past(&self, behind: &[EndpointId], options: &CallOptions) -> CallOptions {
        let avoid = behind.last().copied().or(options.avoid);
        let mut options = CallOptions { avoid, ..options.clone() };
        if self.has_unasked(behind, false) {
            for id in behind {
                options.without.insert(*id);
            }
        }
        options
    }

    /// Adds an endpoint to those whose lists are behind; `is_last`: it waits for them as if there were
    /// no other one.
    async fn ask_opening(
        &self,
        wallet: Address,
        (first, list, is_last): (bool, IndexedList, bool),
        behind: &mut Vec<EndpointId>,
        options: &CallOptions,
    ) -> Result<Opening> {
        let finalized = || json!([{"commitment": "finalized"}]);
        let mut calls = vec![Call { method: "getLatestBlockhash", params: finalized() }];
        let owner = wallet.to_string();
        let programs = [TOKEN_PROGRAM, TOKEN_2022_PROGRAM].map(|program| Call {
            method: "getTokenAccountsByOwner",
            params: owned(&owner, program),
        });
        calls.extend(programs.iter().cloned());
        if first {
            let how = json!({"encoding": "base64", "commitment": "finalized"});
            calls.push(Call { method: "getAccountInfo", params: json!([owner, how]) });
        }
        // Joins two answers: an account that one answer leaves out would not be listed.
        let pool = &self.inner.pool;
        let is_alone = pool.endpoints().len() < 2;
        if is_alone {
            calls.extend(programs.iter().cloned());
        }
        // Behind the accounts in the batch: the reported slot must not be below theirs.
        calls.push(Call { method: "getSlot", params: finalized() });
        let reach = self.opening_call(list);
        let asks_reach = reach.is_some();
        calls.extend(reach);
        // From any endpoint: one whose lists are behind may be the only one that lists accounts.
        let (on, without) = (None, EndpointSet::default());
        let any = CallOptions { on, without, is_replaceable: false, ..options.clone() };
        let again = async { if is_alone { Vec::new() } else { pool.batch(&programs, &any).await } };
        let (mut answers, again) = join(pool.batch(&calls, options), again).await;
        let reach = if asks_reach { answers.pop() } else { None };
        let slot = answers.pop().unwrap_or(Err(UpstreamError::NoEndpoint))?;
        let reported = wire::number(&slot.result)
            .ok_or_else(|| self.malformed(slot.endpoint, "getSlot gave no number"))?;
        let mut answers = answers.into_iter().chain(again);
        let mut next = || answers.next().unwrap_or(Err(UpstreamError::NoEndpoint));
        let tip = self.tip(next())?;
        let accounts = self.both(next(), next())?;
        if first {
            self.inspect(next())?;
        }
        let accounts = joined(accounts, self.both(next(), next())?);
        // Balances from a lagging node do not cover changes above its own head; and an account that
        // closed between the head and the slot of the balances would be in no list that is read.
        let known_to = accounts.as_ref().map_or(reported, |(known_to, _)| *known_to);
        let of = (slot.endpoint, list);
        let listed = self.listed_to(of, (known_to, is_last), reach, options).await;
        if listed.is_err() {
            behind.push(slot.endpoint);
        }
        let head = listed?;
        let accounts = accounts.map(|(_, accounts)| accounts);
        let endpoint = Some(slot.endpoint).filter(|_| reported >= head);
        Ok(Opening { head, known_to, endpoint, accounts, tip })
    }

    /// The newest block; `None` where no node supports the method. Without it a reorg while the
    /// rows are read goes unnoticed.
    fn tip(&self, reported: Result<CallResponse>) -> Result<Option<Tip>> {
        let Some(answer) = if_offered_now(reported)? else { return Ok(None) };
        let what = "getLatestBlockhash gave no block";
        let (height, hash) = wire::latest_blockhash(&answer.result)
            .ok_or_else(|| self.malformed(answer.endpoint, what))?;
        Ok(Some(Tip { height, hash }))
    }

    /// The accounts of both token programs with the slot up to which both are known; none where
    /// nodes do not list accounts by owner.
    fn both(&self, classic: Result<CallResponse>, newer: Result<CallResponse>) -> Result<Accounts> {
        let (mut all, mut known_to) = (Vec::new(), Height::MAX);
        for answer in [classic, newer] {
            // Some services require another plan for this method than for the rest.
            let Some(answer) = if_offered(answer)? else { return Ok(None) };
            let what = "getTokenAccountsByOwner gave no accounts";
            let (at, accounts) = wire::token_accounts(&answer.result)
                .ok_or_else(|| self.malformed(answer.endpoint, what))?;
            known_to = known_to.min(at);
            all.extend(accounts);
        }
        Ok(Some((known_to, all)))
    }

    /// Refuses programs, mints and token accounts; what does not exist may still be a wallet.
    fn inspect(&self, answer: Result<CallResponse>) -> Result<()> {
        let Some(answer) = if_offered(answer)? else { return Ok(()) };
        let account = wire::account(&answer.result)
            .map_err(|_| self.malformed(answer.endpoint, "getAccountInfo gave no account"))?;
        let Some(account) = account else { return Ok(()) };
        let refused = |what: &str| Err(UpstreamError::NotAWallet { reason: what.to_owned() });
        if account.executable {
            return refused("it is a program");
        }
        let of_tokens = [TOKEN_PROGRAM, TOKEN_2022_PROGRAM].contains(&account.owner.as_ref());
        match account.bytes().map(|data| data.len()) {
            Some(MINT_BYTES) if of_tokens => refused("it is the mint of a token"),
            Some(TOKEN_ACCOUNT_BYTES) if of_tokens => {
                refused("it is a token account; ask for its owner")
            }
            // Extended accounts state their kind directly after the plain layout.
            Some(more) if of_tokens && more > TOKEN_ACCOUNT_BYTES => {
                refused("it is a mint or a token account")
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the chain's state has an account: one that exists was created by a transaction that
    /// names it, so lists without any entry of it are not believed. True too where no endpoint
    /// offers the method.
    pub(super) async fn may_exist(&self, wallet: Address, options: &CallOptions) -> Result<bool> {
        let none = json!({"offset": 0, "length": 0});
        let how = json!({"encoding": "base64", "commitment": "finalized", "dataSlice": none});
        let params = json!([wallet.to_string(), how]);
        let answer = self.inner.pool.call("getAccountInfo", params, options).await;
        let Some(answer) = if_offered(answer)? else { return Ok(true) };
        let account = wire::account(&answer.result)
            .map_err(|_| self.malformed(answer.endpoint, "getAccountInfo gave no account"))?;
        Ok(account.is_some())
    }

    /// Checks once for each endpoint whether it is a node of this chain; endpoints of other chains
    /// are not used.
    async fn check_chain(&self, options: &CallOptions) -> Result<CheckOutcome> {
        let Some(expected) = &self.inner.genesis_hash else { return Ok(CheckOutcome::Unchanged) };
        let ask = |id| self.ask_chain(expected, CallOptions { on: Some(id), ..options.clone() });
        self.inner.chain_checks.check(&self.inner.pool, CHAIN_METHOD, ask).await
    }

    /// Confirms that the endpoints that answered a read, from its beginning up to `since`, are
    /// still on this chain.
    pub(in crate::sources) async fn confirm_chain(
        &self,
        (begun, since): (Instant, Instant),
        options: &CallOptions,
    ) -> Result<()> {
        let Some(expected) = &self.inner.genesis_hash else { return Ok(()) };
        let ask = |id| self.ask_chain(expected, options.first_on(id));
        let read = (CHAIN_METHOD, begun, since);
        self.inner.chain_checks.confirm(&self.inner.pool, read, ask).await
    }

    fn ask_chain(&self, expected: &str, options: CallOptions) -> BoxFuture<'static, ChainCheck> {
        let (pool, expected) = (self.inner.pool.clone(), expected.to_owned());
        async move {
            let reported = pool.call(CHAIN_METHOD, Value::Array(vec![]), &options).await;
            ChainCheck::of(reported.map(|answer| wire::text(&answer.result)), &expected)
        }
        .boxed()
    }
}

type Accounts = Option<(Height, Vec<Balance>)>;

/// The union of the accounts of two answers, known up to the lower slot; each with its newest
/// balance, and the first slot at which it was seen with that balance.
fn joined(one: Accounts, two: Accounts) -> Accounts {
    let (Some(one), Some(two)) = (&one, &two) else { return one.or(two) };
    let mut all: BTreeMap<[u8; 32], Balance> = BTreeMap::new();
    for balance in one.1.iter().chain(&two.1) {
        let known = all.entry(balance.account).or_insert(*balance);
        if known.amount == balance.amount {
            known.at = known.at.min(balance.at);
        } else if known.at < balance.at {
            *known = *balance;
        }
    }
    Some((one.0.min(two.0), all.into_values().collect()))
}

fn owned(owner: &str, program: &str) -> Value {
    json!([owner, {"programId": program}, {
        "encoding": "base64",
        "commitment": "finalized",
        "dataSlice": {"offset": wire::AMOUNT_OFFSET, "length": wire::AMOUNT_BYTES},
    }])
}
