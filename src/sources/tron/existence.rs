//! Whether the chain's state has an account. An account that exists was created by a transaction
//! that names it, so empty lists are wrong then. That it does not exist requires two answers, from
//! different endpoints if possible, whose states include all blocks of the read and show an account
//! that exists. Where no endpoint shows accounts, it is not known.

use serde_json::json;

use super::TronSource;
use super::wire::{self, Unreadable};
use crate::domain::{Address, Doubts};
use crate::rpc::{CallOptions, EndpointId, Result, UpstreamError, unless_final};

const ACCOUNT: [&str; 2] = ["walletsolidity/getaccount", "wallet/getaccount"];
const NEWEST: [&str; 2] = ["walletsolidity/getnowblock", "wallet/getnowblock"];
/// Answers that an account is missing, and the most that are queried.
const ANSWERS: u32 = 2;
const TRIES: u32 = 4;

impl TronSource {
    /// Doubts of a read whose lists were empty down from a time in milliseconds; `None` where no
    /// endpoint shows accounts.
    pub(super) async fn doubts_of_empty_lists(
        &self,
        wallet: Address,
        top_at: u64,
        options: &CallOptions,
    ) -> Result<Option<Doubts>> {
        let (mut options, mut missing, mut shows_none) = (options.clone(), 0, false);
        for _ in 0..TRIES {
            let state = self.account_state(wallet, &options).await;
            let Some((made, by)) = unless_final(state)? else { return Ok(None) };
            if made.is_some_and(|made| made <= top_at) {
                return Ok(Some(Doubts::UNCONFIRMED));
            }
            if self.has_reached(by, top_at, &options).await? {
                let is_real = self.shows_accounts(by, &options).await?;
                missing += u32::from(is_real);
                shows_none |= !is_real;
            }
            if missing >= ANSWERS {
                return Ok(Some(Doubts::NONE));
            }
            options.avoid = Some(by);
        }
        if shows_none {
            return Ok(Some(Doubts::UNCONFIRMED));
        }
        let last = "no endpoint's state is known to hold all blocks of the read".to_owned();
        Err(UpstreamError::Unavailable { attempts: TRIES, last })
    }

    /// When the account was created, in milliseconds; accounts of the genesis block have no time.
    /// `None` if the node does not have it.
    pub(super) async fn account_state(
        &self,
        wallet: Address,
        options: &CallOptions,
    ) -> Result<(Option<u64>, EndpointId)> {
        let body = json!({"address": wallet.to_string(), "visible": true});
        let reply = self.post_solid(ACCOUNT, &body, options).await?;
        let made = wire::account_made(&reply.body)
            .map_err(|Unreadable| self.malformed(reply.endpoint, "getaccount gave no account"))?;
        Ok((made, reply.endpoint))
    }

    /// Whether an endpoint's state has the wrapped coin's contract: one that has no account at all
    /// may be that of an endpoint which gives empty answers under load.
    async fn shows_accounts(&self, by: EndpointId, options: &CallOptions) -> Result<bool> {
        let options = CallOptions { on: Some(by), ..options.clone() };
        let wrapped = Address::Tron(self.inner.references.wrapped);
        let state = unless_final(self.account_state(wrapped, &options).await)?;
        Ok(state.is_some_and(|(made, _)| made.is_some()))
    }

    /// Whether an endpoint has reached a time in milliseconds: else its state lacks newer accounts.
    async fn has_reached(&self, by: EndpointId, at: u64, options: &CallOptions) -> Result<bool> {
        let options = CallOptions { on: Some(by), ..options.clone() };
        let answer = self.post_solid(NEWEST, &json!({}), &options).await;
        let Some(reply) = unless_final(answer)? else { return Ok(false) };
        Ok(self.read_block(&reply)?.is_some_and(|block| block.millis >= at))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::TronLimits;
    use super::super::fake::{self, ScriptedNodes, options};
    use super::*;
    use crate::rpc::EndpointId;

    const WALLET: Address = Address::Tron([7; 20]);

    /// Two nodes: each with whether its state has the account, and the time of its newest block.
    fn nodes(states: [(bool, u64); 2]) -> Arc<ScriptedNodes> {
        ScriptedNodes::new(move |(host, path, body)| {
            let (has_it, millis) = states[usize::from(host == "other")];
            let is_other = body["address"] != WALLET.to_string();
            match path.split_once('/').unwrap_or_default().1 {
                "getaccount" if has_it || is_other => (200, json!({"address": body["address"]})),
                "getaccount" => (200, json!({})),
                "getnowblock" => (200, fake::block(100, millis)),
                _ => (404, json!({"error": "not found"})),
            }
        })
    }

    async fn doubts(states: [(bool, u64); 2]) -> Result<Option<Doubts>> {
        let source = fake::source(&["one", "other"], &nodes(states), TronLimits::default());
        // So that the first answer comes from the first of them.
        let options = CallOptions { avoid: Some(EndpointId(1)), ..options() };
        source.doubts_of_empty_lists(WALLET, 1_000, &options).await
    }

    #[tokio::test(start_paused = true)]
    async fn that_an_account_is_missing_takes_two_answers() {
        assert_eq!(doubts([(false, 1_000), (false, 1_000)]).await, Ok(Some(Doubts::NONE)));
        for states in [[(false, 1_000), (true, 1_000)], [(true, 1_000), (false, 1_000)]] {
            assert_eq!(doubts(states).await, Ok(Some(Doubts::UNCONFIRMED)));
        }
    }

    /// Under load, a proxy may give empty answers to everything.
    #[tokio::test(start_paused = true)]
    async fn a_state_without_any_account_shows_none_to_be_missing() {
        let nodes = ScriptedNodes::new(|(_, path, _)| match path {
            "walletsolidity/getaccount" => (200, json!({})),
            _ => (200, fake::block(100, 1_000)),
        });
        let source = fake::source(&["one", "other"], &nodes, TronLimits::default());
        let found = source.doubts_of_empty_lists(WALLET, 1_000, &options()).await;
        assert_eq!(found, Ok(Some(Doubts::UNCONFIRMED)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_is_not_known_where_no_endpoint_shows_accounts() {
        let nodes = ScriptedNodes::new(|_| (404, json!({"error": "not found"})));
        let source = fake::source(&["one", "other"], &nodes, TronLimits::default());
        let found = source.doubts_of_empty_lists(WALLET, 1_000, &options()).await;
        assert_eq!(found, Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_of_lower_blocks_shows_no_account_to_be_missing() {
        let found = doubts([(false, 999), (false, 999)]).await;
        assert!(found.is_err_and(|error| !error.is_final()));
        for heads in [[999, 1_000], [1_000, 999]] {
            let states = heads.map(|millis| (false, millis));
            assert_eq!(doubts(states).await, Ok(Some(Doubts::NONE)), "twice by the other one");
        }
        assert_eq!(doubts([(true, 0), (true, 0)]).await, Ok(Some(Doubts::UNCONFIRMED)));
    }
}
