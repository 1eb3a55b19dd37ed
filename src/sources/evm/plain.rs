//! Whether a wallet is a plain account. Without code it moves native coin only by its own
//! transactions, so that a way without inner calls finds all its trades. Payments by contracts
//! within these are found elsewhere (`lacks_calls` in `fetch.rs`).

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{EvmSource, wire};
use crate::decode::evm::Account;
use crate::domain::{Doubts, Height, Proof, lock};
use crate::rpc::{CallOptions, EndpointId};

/// Wallets whose result is cached, and for how long: an address may get code.
const REMEMBERED_MAX: usize = 10_000;
const REMEMBERED_FOR: Duration = Duration::from_secs(60);
/// Answers that must agree, from different endpoints if possible.
const ANSWERS: usize = 2;
/// Blocks below a head whose state is queried: deep enough for every server of the address, and
/// recent enough that its state is kept.
const BELOW_HEAD: u64 = 8;
/// Endpoints that are queried, one after the other, until one reports the code.
const ASKED_MAX: usize = 3;

impl EvmSource {
    /// Removes the doubt about inner calls from a proof if the wallet cannot have any up to a
    /// height. Queries only if that doubt keeps the span from being accepted.
    pub(super) async fn clear_inner_call_doubt(
        &self,
        (wallet, high): (&Account, Height),
        proof: Proof,
        options: &CallOptions,
    ) -> Proof {
        let is_open = proof.doubts.contains(Doubts::INNER_CALLS) && !self.accepts(proof);
        if !is_open || !self.is_plain(wallet, high, options).await {
            return proof;
        }
        Proof { doubts: proof.doubts.without(Doubts::INNER_CALLS), ..proof }
    }

    /// Whether the wallet had no code at a height or above, by states of given blocks: a node's
    /// newest block may be below.
    pub(super) async fn is_plain(
        &self,
        wallet: &Account,
        high: Height,
        options: &CallOptions,
    ) -> bool {
        let is_known =
            |(seen, at): &(Height, Instant)| *seen >= high && at.elapsed() < REMEMBERED_FOR;
        if lock(&self.inner.plain).get(wallet).is_some_and(is_known) {
            return true;
        }
        let (mut options, mut lowest) = (options.clone(), Height::MAX);
        for _ in 0..ANSWERS {
            let Some((seen, on)) = self.block_without_code(wallet, high, &options).await else {
                return false;
            };
            lowest = lowest.min(seen);
            options.avoid = Some(on);
        }
        let mut plain = lock(&self.inner.plain);
        if plain.len() >= REMEMBERED_MAX {
            plain.clear();
        }
        plain.insert(*wallet, (lowest, Instant::now()));
        true
    }

    /// A block at or above the height in which the wallet has no code, and the endpoint that
    /// reported it.
    async fn block_without_code(
        &self,
        wallet: &Account,
        high: Height,
        options: &CallOptions,
    ) -> Option<(Height, EndpointId)> {
        let (pool, mut options) = (&self.inner.pool, options.clone());
        for _ in 0..ASKED_MAX {
            let answer = pool.call("eth_blockNumber", json!([]), &options).await.ok()?;
            let (head, on) = (wire::number(&answer.result)?, answer.endpoint);
            let at = head.saturating_sub(BELOW_HEAD).max(high);
            let params = json!([wire::hex(wallet), format!("{at:#x}")]);
            if at > head {
                return None;
            }
            match pool.call("eth_getCode", params, &options.first_on(on)).await {
                Ok(answer) => return (answer.result.get().trim() == "\"0x\"").then_some((at, on)),
                Err(_) => options.without.insert(on),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::lists_model::{WALLET, lane};
    use super::super::node_model::nodes;
    use super::*;

    async fn is_plain(source: &EvmSource, high: Height) -> bool {
        source.is_plain(&WALLET, high, &CallOptions::new(lane())).await
    }

    /// The wallet received code in a block that the node has not seen.
    #[tokio::test(start_paused = true)]
    async fn a_node_that_has_not_come_to_a_height_says_nothing_of_code_there() {
        let nodes = nodes(|_, method, _| match method {
            "eth_blockNumber" => Ok("0x3e8".into()),
            _ => Ok("0x".into()),
        });
        let source = nodes.source(&["one"]);
        assert!(!is_plain(&source, 1_001).await);
        assert!(is_plain(&source, 1_000).await);
    }

    /// A wallet that had no code at one block may have code at a higher one.
    #[tokio::test(start_paused = true)]
    async fn that_a_wallet_has_no_code_is_remembered_with_the_height() {
        let nodes = nodes(|_, method, params| match method {
            "eth_blockNumber" => Ok("0x3e8".into()),
            _ if params[1] == "0x3e8" => Ok("0xef0100".into()),
            _ => Ok("0x".into()),
        });
        let source = nodes.source(&["one"]);
        assert!(is_plain(&source, 990).await);
        assert!(!is_plain(&source, 1_000).await);
    }
}
